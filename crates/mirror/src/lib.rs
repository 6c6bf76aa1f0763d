//! What an untrusted server keeps of published tables, and how it answers questions (Scalable Verification, sections 3.2 to 3.4).
//!
//! - [`Entry`] is a signed record, head or tail as it is kept; a [`Shelf`] holds them in the table's orders.
//! - [`answer`] makes the [`counterfoil_proof::Answer`] to a question from a shelf, [`answer_bytes`] its bytes.
//! - [`totals`] makes the answer to a question for totals, from signed nodes ([`NodeEntry`]).
//! - [`find`] makes the [`counterfoil_proof::Found`] that answers a question about values, for joins; [`reply`] takes any.
//! - [`site`] is a shelf made of files that any web server can serve: readers find their rows in it themselves.
//! - [`sums`] says over which stretches of an order sums of signatures are kept.
//! - [`wire`] is what a mirror that runs as a server and its owner tell each other.
//!
//! A mirror knows no secret and decides nothing: whatever it gets wrong, readers refuse.
#![forbid(unsafe_code)]

mod entry;
mod filter_index;
mod filters;
mod find;
mod groups;
mod memory;
mod node_entry;
mod nodes;
mod packed;
mod prove;
mod prove_bytes;
mod prove_totals;
mod reply;
mod shelf;
pub mod site;
pub mod sums;
pub mod wire;

pub use entry::{Entry, Record};
pub use filters::{SignedFilter, filters_of};
pub use find::{find, find_without_filters};
pub use groups::{GROUPS, Groups, SignedGroup};
pub use memory::MemoryShelf;
pub use node_entry::{NodeEntry, nodes_of, place};
pub use nodes::Nodes;
pub use packed::PackedShelf;
pub use prove::{AnswerError, answer};
pub use prove_bytes::answer_bytes;
pub use prove_totals::totals;
pub use reply::{Unanswered, reply};
pub use shelf::Shelf;
