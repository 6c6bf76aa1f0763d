//! The data segment: its end, to which everything is written, and cleaning (4.4).

use crate::observed::Observed;
use crate::subject::{Counter, Refusal};

use super::RELOCATIONS_MAX;
use super::data_page::{Draft, records};
use super::index::{Index, Move};
use super::secure::Segment;

pub struct Log {
    segment: Segment,
    /// The next page to be written, and its version. Versions begin at 1.
    tail: u32,
    version: u32,
    draft: Draft,
    /// Whether the block of the tail was entered: its pages may be written.
    is_entered: bool,
    /// Records of this commit, and records that cleaning moved and of which no index copy tells yet.
    committed: Vec<Move>,
    relocated: Vec<Move>,
    /// Blocks that this commit has cleaned.
    cleaned: u32,
    is_full: bool,
}

impl Log {
    pub fn new(segment: Segment) -> Self {
        Self {
            segment,
            tail: 0,
            version: 1,
            draft: Draft::new(),
            is_entered: false,
            committed: Vec::new(),
            relocated: Vec::new(),
            cleaned: 0,
            is_full: false,
        }
    }

    /// The version of a record on a page.
    pub fn read(&self, device: &Observed, page: u32, id: u32) -> Option<Counter> {
        let body = self.segment.read(device, page, self.version_of(page)?);
        records(&body).find(|(found, _)| *found == id).map(|(_, counter)| counter)
    }

    /// The version that a page must have: one less for each page that it lies before the tail. None if it was not written.
    fn version_of(&self, page: u32) -> Option<u32> {
        // The page at the tail was written a whole lap ago.
        let back = match self.segment.distance(page, self.tail) {
            0 => self.segment.pages,
            distance => distance,
        };
        self.version.checked_sub(back).filter(|version| *version > 0)
    }

    pub fn begin_commit(&mut self) {
        self.cleaned = 0;
    }

    /// Writes what is left of a commit, and the index copy that makes it count.
    pub fn end_commit(&mut self, device: &mut Observed, index: &mut Index) {
        self.write_draft(device);
        let mut moves = std::mem::take(&mut self.relocated);
        moves.append(&mut self.committed);
        index.write(device, &moves);
    }

    /// Adds a record of a commit.
    pub fn append(
        &mut self,
        device: &mut Observed,
        index: &mut Index,
        id: u32,
        counter: &Counter,
    ) -> Result<(), Refusal> {
        self.make_room(device, id);
        // Cleaning may fill the block to its end, so that the next one is entered at once.
        while self.is_at_new_block() {
            self.enter_block(device, index)?;
            self.make_room(device, id);
        }
        self.draft.push(id, counter);
        self.committed.push((id, self.tail));
        Ok(())
    }

    fn make_room(&mut self, device: &mut Observed, id: u32) {
        if self.draft.holds(id) || !self.draft.has_room() {
            self.write_draft(device);
        }
    }

    fn write_draft(&mut self, device: &mut Observed) {
        if !self.draft.is_empty() {
            self.segment.write(device, self.tail, self.version, self.draft.body());
            (self.tail, self.version) = (self.segment.after(self.tail, 1), self.version + 1);
            (self.draft, self.is_entered) = (Draft::new(), false);
        }
    }

    fn is_at_new_block(&self) -> bool {
        !self.is_entered && self.draft.is_empty() && self.tail.is_multiple_of(self.segment.block_pages)
    }

    /// Goes on to the block at the tail, of which nothing is needed any more, and cleans the one behind it.
    fn enter_block(&mut self, device: &mut Observed, index: &mut Index) -> Result<(), Refusal> {
        // Cleaning a block twice gains nothing (4.4.1). What was half done stays so: recovery would take it back.
        self.is_full |= self.cleaned >= self.segment.blocks() - 1;
        if self.is_full {
            return Err(Refusal::Full);
        }
        (self.is_entered, self.cleaned) = (true, self.cleaned + 1);
        // The copy on the medium may still tell of records in the block that is going to be erased.
        self.tell_relocated(device, index);
        #[cfg(test)]
        assert!(index.tells_nothing_of(device, self.tail..self.tail + self.segment.block_pages), "all is told of");
        let oldest = self.segment.after(self.tail, self.segment.block_pages);
        for page in oldest..oldest + self.segment.block_pages {
            self.clean_page(device, index, page);
        }
        Ok(())
    }

    /// Moves what is current in a page to the log's end.
    fn clean_page(&mut self, device: &mut Observed, index: &mut Index, page: u32) {
        let Some(version) = self.version_of(page) else { return };
        let body = self.segment.read(device, page, version);
        let found: Vec<(u32, Counter)> = records(&body).collect();
        for (id, counter) in found {
            if index.page_of(device, id) != Some(page) {
                continue;
            }
            if !self.draft.has_room() {
                self.write_draft(device);
            }
            assert!(!self.is_at_new_block(), "what is current in a block fits into a block");
            self.draft.push(id, &counter);
            self.relocated.push((id, self.tail));
            if self.relocated.len() > RELOCATIONS_MAX {
                self.tell_relocated(device, index);
            }
        }
    }

    /// Writes an index copy that tells of moved records, but of those that are not on the medium yet.
    fn tell_relocated(&mut self, device: &mut Observed, index: &mut Index) {
        let tail = self.tail;
        let (waiting, written): (Vec<Move>, Vec<Move>) = self.relocated.iter().partition(|(_, page)| *page == tail);
        if !written.is_empty() {
            #[cfg(test)]
            assert!(
                written.iter().all(|(id, page)| self.read(device, *page, *id).is_some()),
                "what is told of is there"
            );
            index.write(device, &written);
        }
        self.relocated = waiting;
    }
}
