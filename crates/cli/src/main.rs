//! The program `counterfoil`.
#![forbid(unsafe_code)]
fn main() {}
