//! Benches only: how many blocks of 16 bytes this thread had ciphered, as an engine that takes a block at a time would count.
//!
//! A page counts the blocks of its text and two more (OCB3: one for the nonce, one for the tag); a cell one, the tweak of a page
//! of cells two, and its MAC the blocks it runs over. Nothing is counted without the feature `blocks`.

#[cfg(feature = "blocks")]
mod counting {
    extern crate std;
    use core::cell::Cell;

    std::thread_local! {
        static COUNT: Cell<u64> = const { Cell::new(0) };
    }

    /// Blocks so far.
    pub fn counted() -> u64 {
        COUNT.get()
    }

    pub(crate) fn count(blocks: usize) {
        COUNT.set(COUNT.get() + blocks as u64);
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
