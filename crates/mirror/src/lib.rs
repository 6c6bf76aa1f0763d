//! What an untrusted server keeps of published tables, and how it answers questions (Scalable Verification, sections 3.2 to 3.4).
//!
//! - [`Entry`] is a signed record, head or tail as it is kept; a [`Shelf`] holds them in the table's orders.
//! - [`answer`] makes the [`counterfoil_proof::Answer`] to a question from a shelf.
//! - [`site`] is a shelf made of files that any web server can serve: readers find their rows in it themselves.
//!
//! A mirror knows no secret and decides nothing: whatever it gets wrong, readers refuse.
#![forbid(unsafe_code)]

mod entry;
mod memory;
mod prove;
mod shelf;
pub mod site;

pub use entry::{Entry, Record};
pub use memory::MemoryShelf;
pub use prove::{AnswerError, answer};
pub use shelf::Shelf;
