//! The owner of a published table: what it signs, when, and what it remembers (Scalable Verification, section 3.1).
//!
//! - [`Publication`] is the face: rows in, signed entries and summaries out.
//! - A [`Ledger`] keeps what an owner must not forget, in one commit with what it allows: a signature leaves the process
//!   only when the ledger knows that it was made, a summary only when it is kept and will be sent in the same bytes for ever.
//! - [`Publication::rotate`] and its kin let keys come and go, [`Publication::renew`] makes old signatures again.
//!
//! ```text
//! rows -> edit -> affected records and their neighbours -> versions, links, signatures -> ledger (one commit) -> mirror
//!                                                           '-> change list of the open period -> summary at its end
//! ```
#![forbid(unsafe_code)]

mod ages;
mod beside;
mod edit;
mod error;
mod filters;
mod groups;
mod keys;
mod ledger;
mod outbox;
mod period;
mod publication;
mod renewal;
mod restored;
mod roots;
mod secrets;
mod settle;
mod status;
mod sync;
mod tree;
mod watch;

pub use beside::Beside;
pub use edit::Edit;
pub use error::Error;
pub use keys::{NewKey, Terms};
pub use ledger::{Change, Ledger, MemoryLedger, Pair};
pub use publication::{Edited, Plan, Publication};
pub use renewal::Renewed;
pub use restored::Restored;
pub use secrets::Secrets;
pub use status::Status;
pub use watch::Watch;
