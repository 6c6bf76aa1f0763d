//! A reader of published tables: from SQL and an owner's name to rows that are the owner's, complete, and of a known age.
//!
//! - [`read`] asks a mirror and checks what it sends. Where its files come from is a
//!   [`Fetch`](counterfoil_mirror::site::Fetch): a folder, or whatever brings bytes over a network.
//! - [`Memory`] is what a reader has seen of a table: no mirror can show it anything older afterwards.
//! - [`Kept`] is an answer with all that it takes to check it again, years later and without a network.
//!
//! ```text
//! SQL -> question -> files of a mirror -> answer -> checked against owner, manifest, summaries, memory -> rows and verdict
//! ```
//! No network and no clock: whoever calls brings bytes and the time of day. What a mirror sends ends in an [`Error`], never
//! in rows that are not the owner's.
#![forbid(unsafe_code)]

mod error;
mod kept;
mod memory;
mod reading;
mod terms;
mod verdict;

pub use error::Error;
pub use kept::{KEPT_BYTES_MAX, Kept};
pub use memory::Memory;
pub use reading::{Reading, place_of, read};
pub use terms::Terms;
pub use verdict::Verdict;
