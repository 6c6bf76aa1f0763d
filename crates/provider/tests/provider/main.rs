//! A provider of one's own: what it answers, whom it lets in, and what it does not put up with.

mod answers;
mod entering;
mod host;
#[path = "../../../clouds/tests/clouds/questions.rs"]
mod questions;
