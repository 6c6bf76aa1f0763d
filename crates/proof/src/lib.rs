//! Answers that a reader checks: what an owner signs, how it is laid out, how it is verified.
//!
//! No engine, no network and no clock: whoever calls brings bytes and the time of day.
#![forbid(unsafe_code)]

extern crate alloc;

#[allow(dead_code, reason = "answers use the rest")]
mod bytes;
mod curve;
mod error;
mod filter;
mod signature;
mod sparse_set;

pub use error::Malformed;
pub use filter::{FilterBits, Salt};
pub use signature::{
    GROUPS_MAX, Group, Hint, KeyError, Message, PublicKey, SecretKey, Signature, SignatureError, SignatureSum, verify,
    verify_groups,
};
pub use sparse_set::SparseSet;
