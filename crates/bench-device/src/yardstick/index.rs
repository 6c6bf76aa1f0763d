//! The index segment (4.1): copies of an array that tells for each id the page of its record.
//!
//! ```text
//! copy:  head [12], for what recovery needs | slots, a page number each | zeros to the end of the last page
//! ```

use crate::observed::Observed;

use super::secure::{BODY_BYTES, Body, Segment};

/// Page of the log's end, length of the index, number of free ids, version: for recovery, which is not built.
const HEAD_BYTES: usize = 12;

/// A record and the page where it stands.
pub type Move = (u32, u32);

/// Pages of a copy that tells of so many ids.
pub fn pages(ids: u32, slot_bytes: usize) -> u32 {
    (HEAD_BYTES + ids as usize * slot_bytes).div_ceil(BODY_BYTES) as u32
}

pub struct Index {
    segment: Segment,
    slot_bytes: usize,
    /// Ids that the current copy tells of, where it begins, and its version.
    ids: u32,
    first: u32,
    version: u32,
    /// The page buffer: which page of the copy stands in it.
    buffer: Option<(u32, Body)>,
}

impl Index {
    pub fn new(segment: Segment, slot_bytes: usize) -> Self {
        Self { segment, slot_bytes, ids: 0, first: 0, version: 0, buffer: None }
    }

    /// Gives the page buffer back.
    pub fn forget(&mut self) {
        self.buffer = None;
    }

    /// The page of a record.
    pub fn page_of(&mut self, device: &Observed, id: u32) -> Option<u32> {
        if id >= self.ids {
            return None;
        }
        let (page, at) = self.place(id);
        let body = match self.buffer {
            Some((buffered, body)) if buffered == page => body,
            _ => self.segment.read(device, self.segment.after(self.first, page), self.version),
        };
        self.buffer = Some((page, body));
        let mut bytes = [0; 4];
        bytes[..self.slot_bytes].copy_from_slice(&body[at..at + self.slot_bytes]);
        // Zero stands for no record.
        u32::from_le_bytes(bytes).checked_sub(1)
    }

    /// Whether the copy on the medium tells of no record on these pages.
    #[cfg(test)]
    pub fn tells_nothing_of(&mut self, device: &Observed, pages: std::ops::Range<u32>) -> bool {
        (0..self.ids).all(|id| self.page_of(device, id).is_none_or(|page| !pages.contains(&page)))
    }

    /// Writes a whole new copy with these moves; later ones count.
    pub fn write(&mut self, device: &mut Observed, moves: &[Move]) {
        let ids = moves.iter().map(|(id, _)| id + 1).fold(self.ids, u32::max);
        let (before, count) = (pages(self.ids, self.slot_bytes), pages(ids, self.slot_bytes));
        let (old, version) = (self.first, self.version);
        let first = if version == 0 { 0 } else { self.segment.after(old, before) };
        for page in 0..count {
            let mut body = match version > 0 && page < before {
                true => self.segment.read(device, self.segment.after(old, page), version),
                false => [0; BODY_BYTES],
            };
            for (id, to) in moves {
                let (of, at) = self.place(*id);
                if of == page {
                    body[at..at + self.slot_bytes].copy_from_slice(&(to + 1).to_le_bytes()[..self.slot_bytes]);
                }
            }
            self.segment.write(device, self.segment.after(first, page), version + 1, &body);
        }
        (self.ids, self.first, self.version, self.buffer) = (ids, first, version + 1, None);
    }

    /// The page of a copy that the slot of an id stands on, and where. Slots of two bytes are not cut by a page's end.
    fn place(&self, id: u32) -> (u32, usize) {
        let at = HEAD_BYTES + id as usize * self.slot_bytes;
        ((at / BODY_BYTES) as u32, at % BODY_BYTES)
    }
}
