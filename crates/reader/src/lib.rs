//! A reader of published tables: from SQL and an owner's name to rows that are the owner's, complete, and of a known age.
//!
//! - [`read`] asks a mirror and checks what it sends. Where its files come from is a
//!   [`Fetch`](counterfoil_mirror::site::Fetch): a folder, or whatever brings bytes over a network.
//! - [`Opened`] is a table that programs with an SQL of their own ask question by question.
//! - [`read_join`] asks for two tables of one owner, each at its own place and under its own manifest.
//! - [`Memory`] is what a reader has seen of a table: no mirror can show it anything older afterwards.
//! - [`Kept`], of two tables [`KeptJoin`], is an answer with all that it takes to check it again, years later and without a network.
//!
//! ```text
//! SQL -> question -> files of a mirror -> answer -> checked against owner, manifest, summaries, memory -> rows and verdict
//! ```
//! No network and no clock: whoever calls brings bytes and the time of day. What a mirror sends ends in an [`Error`], never
//! in rows that are not the owner's.
#![forbid(unsafe_code)]

mod error;
mod joining;
mod kept;
mod kept_join;
mod memory;
mod moving;
mod reading;
mod terms;
mod verdict;

pub use error::Error;
pub use joining::{JoinReading, read_join};
pub use kept::{KEPT_BYTES_MAX, Kept};
pub use kept_join::KeptJoin;
pub use memory::Memory;
pub use reading::{Opened, Reading, place_of, read};
pub use terms::Terms;
pub use verdict::Verdict;
