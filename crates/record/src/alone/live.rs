//! One bit for each entry of a data page: whether it may hold a current record.
//!
//! 1. A clear bit is a promise: nothing current stands there. A set bit may be late: a record that was replaced since
//!    its leaf was written keeps its bit until the leaf is written again, and is known from the pending changes.
//! 2. Where the caller has no memory for the bits, every entry may be current and the leaves are asked.

/// The bits, in the caller's buffer; too short a buffer is none.
pub(crate) struct LiveEntries<'a> {
    bits: &'a mut [u8],
    page_entries: u32,
}

impl<'a> LiveEntries<'a> {
    pub(crate) fn new(bits: &'a mut [u8], pages: u32, page_entries: u32) -> Self {
        let needed = (pages * page_entries).div_ceil(8) as usize;
        let bits = if bits.len() < needed { &mut [] } else { bits };
        bits.fill(0);
        LiveEntries { bits, page_entries }
    }

    /// Clears all bits.
    pub(crate) fn clear(&mut self) {
        self.bits.fill(0);
    }

    /// Whether there is memory for the bits.
    pub(crate) fn is_kept(&self) -> bool {
        !self.bits.is_empty()
    }

    pub(crate) fn set(&mut self, slot: u32, is_live: bool) {
        if let Some(byte) = self.bits.get_mut((slot / 8) as usize) {
            let bit = 1 << (slot % 8);
            *byte = if is_live { *byte | bit } else { *byte & !bit };
        }
    }

    pub(crate) fn get(&self, slot: u32) -> bool {
        self.bits.get((slot / 8) as usize).is_none_or(|byte| byte >> (slot % 8) & 1 == 1)
    }

    /// The entries of a page that may be current, one bit each.
    pub(crate) fn of_page(&self, page: u32) -> u32 {
        let first = page * self.page_entries;
        (0..self.page_entries).filter(|entry| self.get(first + entry)).fold(0, |mask, entry| mask | 1 << entry)
    }

    /// A page is written anew: nothing of what stood there is current.
    pub(crate) fn clear_page(&mut self, page: u32) {
        let first = page * self.page_entries;
        (first..first + self.page_entries).for_each(|slot| self.set(slot, false));
    }
}
