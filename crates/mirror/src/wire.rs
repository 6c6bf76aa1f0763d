//! What an owner sends to a mirror that runs as a server, and what such a mirror tells of itself.
//!
//! ```text
//! GET  OWNER/TABLE/manifest     the owner's signed word          GET  OWNER/TABLE/state    State: what the mirror has
//! GET  OWNER/TABLE/head         Standing: "ask me"               POST OWNER/TABLE/update   Update, signed by the owner
//! GET  OWNER/TABLE/summaries/N  as a site's file                 POST OWNER/TABLE/answer   a question, and its answer
//! ```
//! 1. A mirror takes an update only if it begins where the mirror stands, and leads further: none counts twice.
//! 2. Between the parts of a load a mirror has no whole table, and answers no question.
//! 3. Parsing allocates no more than a small multiple of the bytes that came.

mod standing;
mod state;
mod summary;
mod update;

pub use standing::Standing;
pub use state::{Progress, State};
pub use summary::SummaryHead;
pub use update::{Change, UPDATE_BYTES_MAX, Update};

use counterfoil_proof::Digest;
use sha2::{Digest as _, Sha256};

/// SHA-256 of `bytes` under a domain, as everywhere in what is signed.
pub(crate) fn digest(domain: &str, bytes: &[u8]) -> Digest {
    let mut hash = Sha256::new();
    hash.update([domain.len() as u8]);
    hash.update(domain.as_bytes());
    hash.update(bytes);
    hash.finalize().into()
}
