//! What people who keep records of machines ask of them: functions over any table with times and values.
//!
//! ```text
//! FROM resample(readings, '1 hour', '2026-01-01', '2026-01-02')
//!        |  expand: the call is read, its input planned, the plan put in its place under a hidden name
//!        v
//!      Historian: Resample ...          node: one row out for each bucket
//!        Sort by keys, time             only where the table is not in that order
//!          Scan: readings               filtered by time
//! ```
//!
//! docs/historian.md says what each function answers, and what it does at the edges.
//!
//! | file | knows |
//! |---|---|
//! | [`expand`], [`call`], [`build`] | calls in statements, their arguments, plans for them |
//! | [`shape`], [`instants`] | which columns are what |
//! | [`node`] | the operator in the query library |
//! | [`around`] | what of a series table need not be read |
//! | [`signal`], [`grid`], [`quality`] | what is known between samples; buckets; qualities |
//! | [`resample`], [`value_at`], [`gapfill`], [`lttb`], [`m4`] | one function each |

mod around;
mod build;
mod call;
mod expand;
mod gapfill;
mod grid;
mod instants;
mod keys;
mod lttb;
mod m4;
mod node;
mod quality;
mod resample;
mod samples;
mod shape;
mod signal;
mod value_at;

pub(crate) use around::from_last_sample;
pub(crate) use call::inputs;
pub(crate) use grid::{Tick, later};
pub(crate) use node::Planner as QueryPlanner;
pub(crate) use quality::{aggregates, scalars};
