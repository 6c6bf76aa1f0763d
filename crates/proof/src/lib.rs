//! Answers that a reader checks: what an owner signs, how it is laid out, how it is verified.
//!
//! No engine, no network and no clock: whoever calls brings bytes and the time of day.
#![forbid(unsafe_code)]

mod curve;
mod signature;

pub use signature::{
    GROUPS_MAX, Group, Hint, KeyError, Message, PublicKey, SecretKey, Signature, SignatureError, SignatureSum, verify,
    verify_groups,
};
