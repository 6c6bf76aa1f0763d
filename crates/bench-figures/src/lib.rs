//! For benchmarks alone: what all of them say of where and when they measured.
#![forbid(unsafe_code)]

pub mod machine;
