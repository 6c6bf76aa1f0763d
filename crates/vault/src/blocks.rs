//! Benches only: how many blocks of 16 bytes this process had ciphered, as an engine that takes a block at a time would count.
//!
//! A page counts the blocks of its text and two more (OCB3: one for the nonce, one for the tag); a cell one, the tweak of a page
//! of cells two, and its MAC the blocks it runs over. Nothing is counted without the feature `blocks`.

#[cfg(feature = "blocks")]
mod counting {
    use core::sync::atomic::{AtomicU64, Ordering};

    static COUNT: AtomicU64 = AtomicU64::new(0);

    /// Blocks so far.
    pub fn counted() -> u64 {
        COUNT.load(Ordering::Relaxed)
    }

    pub(crate) fn count(blocks: usize) {
        COUNT.fetch_add(blocks as u64, Ordering::Relaxed);
    }
}

#[cfg(not(feature = "blocks"))]
mod counting {
    pub(crate) fn count(_blocks: usize) {}
}

pub(crate) use counting::count;
#[cfg(feature = "blocks")]
pub use counting::counted;

/// Counts the blocks of a text that is ciphered or run over.
pub(crate) fn count_text(bytes: usize, more: usize) {
    count(bytes.div_ceil(16) + more);
}
