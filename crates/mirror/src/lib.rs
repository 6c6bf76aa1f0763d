//! What an untrusted server keeps of published tables, and how it answers questions (Scalable Verification, sections 3.2 to 3.4).
//!
//! - [`Entry`] is a signed record, head or tail as it is kept; a [`Shelf`] holds them in the table's orders.
//! - [`answer`] makes the [`counterfoil_proof::Answer`] to a question from a shelf, [`totals`] that to one for totals, from
//!   signed nodes ([`NodeEntry`]).
//! - [`site`] is a shelf made of files that any web server can serve: readers find their rows in it themselves.
//! - [`wire`] is what a mirror that runs as a server and its owner tell each other.
//!
//! A mirror knows no secret and decides nothing: whatever it gets wrong, readers refuse.
#![forbid(unsafe_code)]

mod entry;
mod memory;
mod node_entry;
mod nodes;
mod prove;
mod prove_totals;
mod shelf;
pub mod site;
pub mod wire;

pub use entry::{Entry, Record};
pub use memory::MemoryShelf;
pub use node_entry::{NodeEntry, nodes_of, place};
pub use nodes::Nodes;
pub use prove::{AnswerError, answer};
pub use prove_totals::totals;
pub use shelf::Shelf;
