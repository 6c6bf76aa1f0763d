//! Tests only: a memory of every (key, nonce) pair that this process sealed with.
//!
//! Keys are remembered by digest. A pair seen twice is a duplicate, except that an opening root, whose key is made
//! from its contents, may be sealed again with the same contents.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::vec::Vec;

use sha2::{Digest, Sha256};

/// The first half of the SHA-256 of a key.
pub type KeyDigest = [u8; 16];

/// A pair that was used more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The key, by digest.
    pub key: KeyDigest,
    /// The nonce, short ones padded with zeros.
    pub nonce: [u8; 24],
    /// How often the pair was used.
    pub uses: u64,
}

/// How often a pair was used, and for which text where that may repeat.
struct Use {
    count: u64,
    text: Option<KeyDigest>,
}

type Pairs = HashMap<(KeyDigest, [u8; 24]), Use>;

fn pairs() -> MutexGuard<'static, Pairs> {
    static PAIRS: OnceLock<Mutex<Pairs>> = OnceLock::new();
    PAIRS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// The digest under which a key is remembered.
pub fn key_digest(key: &[u8]) -> KeyDigest {
    let mut digest = KeyDigest::default();
    digest.copy_from_slice(&Sha256::digest(key)[..16]);
    digest
}

/// Remembers one use of a pair. Nonces have at most 24 bytes.
pub fn observe(key: KeyDigest, nonce: &[u8]) {
    remember(key, nonce, None);
}

/// Remembers an opening root: the same pair for the same text is one use.
pub fn observe_synthetic(key: &[u8], number: u64, text: &[u8]) {
    remember(key_digest(key), &number.to_le_bytes(), Some(key_digest(text)));
}

fn remember(key: KeyDigest, nonce: &[u8], text: Option<KeyDigest>) {
    let mut wide = [0; 24];
    wide[..nonce.len()].copy_from_slice(nonce);
    let mut pairs = pairs();
    let seen = pairs.entry((key, wide)).or_insert(Use { count: 0, text });
    let repeated = seen.count > 0 && text.is_some() && seen.text == text;
    seen.count += u64::from(!repeated);
}

/// Every pair that was used more than once since the last [`reset`].
pub fn duplicates() -> Vec<Duplicate> {
    let pairs = pairs();
    let twice = pairs.iter().filter(|(_, seen)| seen.count > 1);
    twice.map(|((key, nonce), seen)| Duplicate { key: *key, nonce: *nonce, uses: seen.count }).collect()
}

/// How many different pairs were seen since the last [`reset`].
pub fn distinct() -> usize {
    pairs().len()
}

/// Takes the memory for so many pairs at once: for a test that counts what others take.
pub fn reserve(pairs_more: usize) {
    pairs().reserve(pairs_more);
}

/// Forgets everything: for a test that plays one history twice on purpose.
pub fn reset() {
    pairs().clear();
}
