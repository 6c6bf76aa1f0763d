//! Pages of the data segment (4.1).
//!
//! ```text
//! body: count u16 | page index: count x { id u16, end of the record u16 } | zeros | records, the first one at the very end
//! ```

use crate::subject::{COUNTER_BYTES, Counter};

use super::secure::{BODY_BYTES, Body};

const COUNT_BYTES: usize = 2;
/// Bytes of a slot of the page index: the paper has four.
pub const SLOT_BYTES: usize = 4;

/// A page in the making.
#[derive(Clone)]
pub struct Draft {
    body: Body,
    count: usize,
}

impl Draft {
    pub fn new() -> Self {
        Self { body: [0; BODY_BYTES], count: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether another record fits.
    pub fn has_room(&self) -> bool {
        COUNT_BYTES + (self.count + 1) * (SLOT_BYTES + COUNTER_BYTES) <= BODY_BYTES
    }

    /// Whether a version of a record stands in it already; a page has one at most.
    pub fn holds(&self, id: u32) -> bool {
        records(&self.body).any(|(found, _)| found == id)
    }

    pub fn push(&mut self, id: u32, counter: &Counter) {
        let (slot, end) = (COUNT_BYTES + self.count * SLOT_BYTES, BODY_BYTES - self.count * COUNTER_BYTES);
        self.body[slot..slot + 2].copy_from_slice(&(id as u16).to_le_bytes());
        self.body[slot + 2..slot + 4].copy_from_slice(&(end as u16).to_le_bytes());
        self.body[end - COUNTER_BYTES..end].copy_from_slice(counter);
        self.count += 1;
        self.body[..COUNT_BYTES].copy_from_slice(&(self.count as u16).to_le_bytes());
    }

    pub fn body(&self) -> &Body {
        &self.body
    }
}

/// The records of a page, with their ids.
pub fn records(body: &Body) -> impl Iterator<Item = (u32, Counter)> + '_ {
    let number = |at: usize| usize::from(u16::from_le_bytes([body[at], body[at + 1]]));
    (0..number(0)).map(move |count| {
        let slot = COUNT_BYTES + count * SLOT_BYTES;
        let (id, end) = (number(slot), number(slot + 2));
        let mut counter = [0; COUNTER_BYTES];
        counter.copy_from_slice(&body[end - COUNTER_BYTES..end]);
        (id as u32, counter)
    })
}
