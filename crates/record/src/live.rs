//! Which pages of a block hold records that are still the current ones.

use crate::window::{BLOCK_PAGES_MAX, Layout};

const WORDS: usize = BLOCK_PAGES_MAX as usize / 64;

/// One bit for each page of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LivePages {
    bits: [u64; WORDS],
}

impl LivePages {
    /// The pages of an absolute block of the data ring in which the index finds records.
    pub(crate) fn of(layout: &Layout, index: &[u32], block: u64) -> LivePages {
        let data = &layout.data;
        let first = data.block_start(block) % data.pages;
        let mut bits = [0; WORDS];
        for slot in index {
            let within = u64::from(*slot).wrapping_sub(first);
            if within < data.block_pages
                && let Some(word) = bits.get_mut((within / 64) as usize)
            {
                *word |= 1 << (within % 64);
            }
        }
        LivePages { bits }
    }

    pub(crate) fn count(&self) -> u64 {
        self.bits.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Whether the page at this position of the block holds a current record.
    pub(crate) fn holds(&self, position: u64) -> bool {
        self.bits.get((position / 64) as usize).is_some_and(|word| word >> (position % 64) & 1 == 1)
    }
}
