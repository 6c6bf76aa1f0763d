//! Making room in the list of openings: what the oldest of them wrote and is still current is written anew, in commits of
//! their own, a few pages each. A cut between two of them loses nothing of what the ones before gained.

use counterfoil_flash::Device;

use super::commit::Assembly;
use super::error::Error;
use super::opening::Opening;
use super::sequence::Sequence;
use super::store::Standalone;
use super::word::Word;

/// Leaves that one of these commits writes at most for either reason.
pub(crate) const LEAVES_MAX: u32 = 2;

impl<D: Device + ?Sized, W: Word> Standalone<'_, D, W> {
    /// Retires openings until half of the list is free: so many more openings can be cut short before they have retired
    /// one themselves. A store that is too full to do so goes on as long as the list has room at all.
    pub(crate) fn retire_openings(&mut self) -> Result<(), Error> {
        while self.state.opening_count > self.openings.len() / 2 {
            let Some(next) = self.openings().get(1).copied() else { break };
            match self.retire_before(&next) {
                Err(Error::Full) if self.state.opening_count < self.openings.len() => break,
                outcome => outcome?,
            }
        }
        Ok(())
    }

    fn retire_before(&mut self, next: &Opening) -> Result<(), Error> {
        self.ready_to_write()?;
        let count = self.state.opening_count;
        while self.state.opening_count == count {
            self.move_some_before(next.data_first, next.index_first)?;
        }
        Ok(())
    }

    /// Moves everything that is current in older pages than these.
    pub(crate) fn move_before(&mut self, data_first: Sequence, index_first: Sequence) -> Result<(), Error> {
        while self.state.floor.tail < data_first || self.state.floor.index_tail < index_first {
            self.move_some_before(data_first, index_first)?;
        }
        Ok(())
    }

    fn move_some_before(&mut self, data_first: Sequence, index_first: Sequence) -> Result<(), Error> {
        self.make_index_room(0, 2 * LEAVES_MAX)?;
        let before = self.progress();
        if self.state.free_pages() < self.pages_to_move() + 4 {
            return Err(Error::Full);
        }
        self.write_commit(true, &mut |store, assembly| {
            store.settle(assembly, data_first)?;
            for _ in 0..LEAVES_MAX {
                let oldest = store.oldest_leaf_page();
                if oldest >= index_first {
                    break;
                }
                store.relocate(assembly, oldest)?;
            }
            store.clean_to(assembly, data_first)?;
            store.write_map()
        })?;
        if before == self.progress() { Err(Error::Full) } else { Ok(()) }
    }

    /// What a commit that makes room changes, if it gets anywhere.
    pub(crate) fn progress(&self) -> (usize, Sequence, Sequence, usize, Sequence) {
        let (state, pending) = (&self.state, &self.pending);
        (state.opening_count, state.tail, pending.replay, pending.room(), self.oldest_leaf_page())
    }

    /// Lets recovery begin at this page or later, so that the pages before it can be cleaned: writes some leaves, until no
    /// change is pending, and then the map.
    pub(crate) fn settle(&mut self, assembly: &mut Assembly, end: Sequence) -> Result<(), Error> {
        if self.pending.replay >= end {
            return Ok(());
        }
        for _ in 0..LEAVES_MAX {
            let fullest = self.pending.fullest_leaf(self.state.leaf_ids, |_| true);
            fullest.map_or(Ok(()), |(leaf, _)| self.write_leaf(assembly, leaf))?;
        }
        if self.pending.is_empty() {
            self.write_map()?;
            self.pending.begin_at(assembly.first);
        }
        Ok(())
    }
}
