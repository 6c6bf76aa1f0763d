//! SHA-256 with a domain: bytes of one kind never hash to what bytes of another kind hash to.

use sha2::{Digest as _, Sha256};

/// A SHA-256.
pub type Digest = [u8; 32];

/// The digest of `parts`, joined, under `domain`. Whoever calls makes sure that the parts can be told apart.
pub(crate) fn digest(domain: &str, parts: &[&[u8]]) -> Digest {
    let mut hash = Sha256::new();
    hash.update([domain.len() as u8]);
    hash.update(domain.as_bytes());
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}
