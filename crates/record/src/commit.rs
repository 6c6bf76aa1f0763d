//! Writing a commit.
//!
//! ```text
//! data ring:   | changes ... | survivors of cleaned blocks ... | last page = commit page: root |  flush
//! index ring:                       | index copy, if it is time |
//! ```
//! 1. Whether the commit fits is known before its first write (space.rs).
//! 2. Nothing is flushed before the end, so a cut leaves any part of these pages behind. Until the commit page and all
//!    that it names stand on the medium, the commit before is the newest whole one, and nothing of that was touched.
//! 3. After a failed write the index in memory speaks of pages that may not be there: the store latches.

use counterfoil_flash::Device;
use counterfoil_vault::{Epoch, TAG_BYTES, Tag};

use crate::data_page::{DataPage, Draft};
use crate::error::Error;
use crate::head::{HEAD_BYTES, Head};
use crate::index::{NO_SLOT, write_copy};
use crate::live::LivePages;
use crate::ring_io;
use crate::root::{Root, root_bytes};
use crate::run::{self, Run};
use crate::space::{Changes, Measured, Plan, Purpose, measure};
use crate::state::Floor;
use crate::store::Store;

/// A commit in the making.
struct Assembly {
    epoch: Epoch,
    /// The first page of the commit, and the page being filled.
    first: u64,
    sequence: u64,
    draft: Draft,
}

impl<D: Device + ?Sized> Store<'_, D> {
    /// Plans and writes a commit; the new version.
    pub(crate) fn commit_for(&mut self, purpose: Purpose, changes: &dyn Changes) -> Result<u64, Error> {
        let epoch = self.ready_to_write()?;
        let measured = self.check_changes(changes)?;
        let (state, runs) = (&self.state, self.buffers.runs.get(..self.state.run_count).unwrap_or_default());
        let index = self.buffers.index.get(..state.ids).unwrap_or_default();
        let plan = state.plan(&measured, purpose, runs, index)?;
        if purpose == Purpose::Changes {
            self.state.lap = None;
        }
        let outcome = self.write(epoch, changes, &plan);
        self.state.latched |= outcome.is_err();
        outcome
    }

    fn check_changes(&self, changes: &dyn Changes) -> Result<Measured, Error> {
        let (ids, bytes_max) = (self.state.ids_limit(self.buffers.index), self.state.record_bytes_max());
        measure(&self.state.layout, changes, |id, bytes| match () {
            () if id.0 >= ids => Err(Error::IdOutOfRange { id, limit: ids }),
            () if bytes > bytes_max => Err(Error::RecordTooLong { bytes, limit: bytes_max }),
            () => Ok(()),
        })
    }

    fn write(&mut self, epoch: Epoch, changes: &dyn Changes, plan: &Plan) -> Result<u64, Error> {
        let head = self.state.head;
        let draft = Draft::new(self.state.layout.body_bytes());
        let mut assembly = Assembly { epoch, first: head, sequence: head, draft };
        self.buffers.page.fill(0);
        changes.visit(&mut |id, record| self.put(&mut assembly, id.0, record))?;
        self.move_survivors(&mut assembly, plan.tail)?;
        let tag = self.finish(&mut assembly, plan)?;
        let version = assembly.sequence;
        assert!(version - head < plan.pages, "a commit keeps to its plan");
        self.state.version = version;
        self.state.tag = tag;
        self.state.head = version + 1;
        self.state.cursor = 0;
        let (tail, index_first) = (self.state.tail, self.state.copy.first);
        self.state.floors.push(Floor { version, tail, index_first });
        Ok(version)
    }

    /// Puts an entry into the page being filled, or into the next one.
    fn put(&mut self, assembly: &mut Assembly, id: u32, record: Option<&[u8]>) -> Result<(), Error> {
        if !assembly.draft.fits(record.map_or(0, <[u8]>::len)) {
            self.next_page(assembly)?;
        }
        let slot = (assembly.sequence % self.state.layout.data.pages) as u32;
        let Some(place) = self.buffers.index.get_mut(id as usize) else { return Ok(()) };
        let body = body_of(self.buffers.page);
        if *place == slot {
            assembly.draft.void(body, id);
        }
        assembly.draft.push(body, id, record);
        self.state.live += u32::from(*place == NO_SLOT && record.is_some());
        self.state.live -= u32::from(*place != NO_SLOT && record.is_none());
        *place = if record.is_some() { slot } else { NO_SLOT };
        self.state.ids = self.state.ids.max(id as usize + 1);
        Ok(())
    }

    /// Writes the page being filled as an inner page of the commit and begins the next one.
    fn next_page(&mut self, assembly: &mut Assembly) -> Result<(), Error> {
        self.write_page(assembly, None)?;
        assembly.sequence += 1;
        assembly.draft = Draft::new(self.state.layout.body_bytes());
        self.buffers.page.fill(0);
        Ok(())
    }

    fn write_page(&mut self, assembly: &Assembly, root: Option<&Root>) -> Result<Tag, Error> {
        assembly.draft.finish(body_of(self.buffers.page), assembly.first, self.state.version, root);
        let (ring, page) = (&self.state.layout.data, &mut *self.buffers.page);
        ring_io::write(self.device, self.vault, ring, assembly.sequence, assembly.epoch, page)
    }

    /// Copies the current records of the blocks before `tail` into this commit.
    fn move_survivors(&mut self, assembly: &mut Assembly, tail: u64) -> Result<(), Error> {
        let data = self.state.layout.data;
        for block in data.block(self.state.tail)..data.block(tail) {
            let index = self.buffers.index.get(..self.state.ids).unwrap_or_default();
            let live = LivePages::of(&self.state.layout, index, block);
            for position in (0..data.block_pages).filter(|position| live.holds(*position)) {
                self.move_page(assembly, data.block_start(block) + position)?;
            }
        }
        Ok(())
    }

    fn move_page(&mut self, assembly: &mut Assembly, sequence: u64) -> Result<(), Error> {
        let ring = self.state.layout.data;
        let at = ring.page(sequence);
        let slot = (sequence % ring.pages) as u32;
        let runs = self.buffers.runs.get(..self.state.run_count).unwrap_or_default();
        let epoch = run::epoch_of(runs, sequence).ok_or(Error::Corrupt { page: at, what: "page outside all runs" })?;
        // The page is read into a buffer of its own, lent out while `put` works on the other.
        let scratch = core::mem::take(&mut self.buffers.scratch);
        let head = Head { sequence, epoch };
        let outcome = ring_io::open(&*self.device, self.vault, &ring, &head, scratch).and_then(|opened| {
            let page = DataPage::parse(opened.body).map_err(|what| Error::Corrupt { page: at, what })?;
            for entry in page.entries() {
                let current = self.buffers.index.get(entry.id as usize) == Some(&slot);
                if current && entry.record.is_some() {
                    self.put(assembly, entry.id, entry.record)?;
                }
            }
            Ok(())
        });
        self.buffers.scratch = scratch;
        outcome
    }

    /// Writes index copy and commit page and makes everything durable.
    fn finish(&mut self, assembly: &mut Assembly, plan: &Plan) -> Result<Tag, Error> {
        let runs_after_fold = |runs: &[Run], fold| run::after(runs, fold).count();
        let mut run_count = self.push_run(assembly)?;
        let runs = self.buffers.runs.get(..run_count).unwrap_or_default();
        let inline = if plan.fold { 0 } else { runs_after_fold(runs, self.state.fold) };
        if !assembly.draft.fits_root(root_bytes(inline)) {
            self.next_page(assembly)?;
            run_count = self.push_run(assembly)?;
        }
        let runs = self.buffers.runs.get_mut(..run_count).unwrap_or_default();
        self.state.run_count = run::drop_before(runs, plan.tail);
        self.state.tail = plan.tail;
        if plan.fold {
            self.write_index(assembly)?;
        }
        let runs = self.buffers.runs.get(..self.state.run_count).unwrap_or_default();
        let after_fold = run::after(runs, self.state.fold);
        let root = Root::new(plan.tail, self.state.fold, self.state.copy, after_fold);
        let root = root.ok_or(Error::Misuse("a commit has more runs than its plan allowed"))?;
        let tag = self.write_page(assembly, Some(&root))?;
        self.device.flush()?;
        Ok(tag)
    }

    /// Makes the runs cover the pages of this commit so far.
    fn push_run(&mut self, assembly: &Assembly) -> Result<usize, Error> {
        let count = self.state.run_count;
        let covered = count.checked_sub(1).and_then(|last| self.buffers.runs.get(last)).map(|last| last.end);
        let first = covered.map_or(assembly.first, |end| end.max(assembly.first));
        let run = Run { first, end: assembly.sequence + 1, epoch: assembly.epoch };
        let count = run::push(self.buffers.runs, count, run);
        self.state.run_count = count.ok_or(Error::Misuse("the runs of a store outgrew their buffer"))?;
        Ok(self.state.run_count)
    }

    /// Writes a copy of the whole index, this commit included.
    fn write_index(&mut self, assembly: &Assembly) -> Result<(), Error> {
        let runs = self.buffers.runs.get(..self.state.run_count).unwrap_or_default();
        let slots = self.buffers.index.get(..self.state.ids).unwrap_or_default();
        let (layout, first, epoch) = (&self.state.layout, self.state.index_head, assembly.epoch);
        let (device, scratch) = (&mut *self.device, &mut *self.buffers.scratch);
        let copy = write_copy(device, self.vault, layout, first, epoch, runs, slots, scratch)?;
        self.state.index_head = first + copy.pages(layout);
        self.state.copy = copy;
        self.state.fold = assembly.sequence;
        Ok(())
    }
}

/// The part of a page that is ours: between clear head and tag.
fn body_of(page: &mut [u8]) -> &mut [u8] {
    let end = page.len() - TAG_BYTES;
    &mut page[HEAD_BYTES..end]
}
