//! The laws of the vault, seen from outside.

mod counters;
mod headers;
mod key_changes;
mod medium;
mod pages;
mod vectors;
