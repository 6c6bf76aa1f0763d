//! Answers that a reader checks: what an owner signs, how it is laid out, how it is verified.
//!
//! No engine, no network and no clock: whoever calls brings bytes and the time of day.

mod curve;
