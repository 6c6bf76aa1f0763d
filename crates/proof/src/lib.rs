//! Answers that a reader checks: what an owner signs, how it is laid out, how it is verified.
//!
//! No engine, no network and no clock: whoever calls brings bytes and the time of day.
#![forbid(unsafe_code)]
#![cfg_attr(not(any(test, feature = "threads")), no_std)]

extern crate alloc;

mod bytes;
mod curve;
mod error;
mod filter;
mod sparse_set;

pub use error::Malformed;
pub use filter::{FilterBits, Salt};
pub use sparse_set::SparseSet;
