//! Benchmarks.
#![forbid(unsafe_code)]
fn main() {}
