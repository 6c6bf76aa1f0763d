//! Aggregations over a series table that need not look at its points: the engine keeps summaries of pages, and the newest point of
//! each series in memory.
//!
//! ```text
//! AggregateExec: mode=Final           AggregateExec: mode=Final
//!   AggregateExec: mode=Partial  ->     SeriesSummaries
//!     SeriesScan
//! ```
//! What takes the place of the partial aggregation gives the states that it would give; the query library makes answers of them,
//! with its own types, roundings and NULLs. Where anything is asked that summaries do not say, the plan stays what it is.

mod node;
pub(super) mod option;
mod question;
mod rule;
mod states;

pub(crate) use rule::from_summaries;
