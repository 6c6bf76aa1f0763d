//! Series: points ordered by series and time (Chronos), compressed column by column in leaves that are written once.
//!
//! - [`SeriesTables`] is the face: one per open database, shared by readers and the one writer.
//! - [`Batch`] carries points in, a [`Scan`] gives them out, block by block.
//! - [`codec`] turns the values of a column into bytes and back; [`Leaf`] is what becomes of points in a page.
//!
//! ```text
//!   batch -> open points of each series -> leaves (full, written once) -> nodes -> edge of the series
//!            '------- journal: whatever is in no leaf, and how the edges changed -------'
//! ```
//! What is known of a table is what its journal says from its beginning on: reading it again gives the same state.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

mod aggregate;
mod backward;
mod batch;
mod budget;
pub mod codec;
mod column;
mod digest;
mod edge;
mod error;
mod files;
mod find;
mod journal;
mod leaf;
mod merge;
mod names;
mod node;
mod open;
mod pages;
mod points;
#[cfg(test)]
mod recompute;
mod relocate;
mod retain;
mod row;
mod scan;
mod series;
mod shelf;
mod state;
mod summary;
mod survey;
mod tables;
mod tail;
#[cfg(test)]
mod tests;
mod wide;
mod write;

pub use aggregate::{Aggregation, Bucket, Buckets, Question};
pub use backward::Backward;
pub use batch::Batch;
pub use column::{Column, Kind, Text, Value, Values};
pub use counterfoil_log::Storage;
pub use digest::Summarized;
pub use error::Error;
pub use files::Options;
pub use find::Found;
pub use leaf::{Leaf, Packed, columns_max, pack, text_bytes_max};
pub use names::{KEY_BYTES_MAX, SERIES_MAX};
pub use points::{Points, Span};
pub use retain::Dropped;
pub use row::{Field, Row};
pub use scan::{Block, Scan};
pub use summary::{Sum, Summary};
pub use survey::{Page, Survey};
pub use tables::{Limits, SeriesTables, TableNumber};
