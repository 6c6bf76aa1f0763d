//! What a store knows beside what stands in the caller's buffers.
//!
//! Invariants (`State::check`):
//! 1. tail <= fold + 1 <= version + 1 <= head; `tail` begins a block.
//! 2. The runs lie between the tail's block and the version, in order.
//! 3. Every slot of the index that is in use belongs to a run, and `live` counts them.
//! 4. The oldest floor is what a cut would fall back to: the head never comes round to its tail's block.

use counterfoil_flash::{Geometry, PageNumber};
use counterfoil_vault::{Epoch, Tag};

use crate::Error;
use crate::index::{IndexCopy, NO_SLOT, copy_pages};
use crate::run::{self, Run};
use crate::space::Lap;
use crate::window::{Layout, Window};

/// The number of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(pub u32);

/// The name of one commit and of nothing else.
///
/// The version alone names a commit only as long as nobody puts back pages of a history that was cut short: such a
/// history may hold another commit of the same version. Whoever anchors a commit must anchor both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// The sequence of the commit page.
    pub version: u64,
    /// The tag of the commit page.
    pub tag: Tag,
}

/// Working memory, all of it the caller's. Contents need not be cleared.
pub struct Buffers<'a> {
    /// One for each record id that the store shall take.
    pub index: &'a mut [u32],
    /// As [`BufferSizes::runs`] says.
    pub runs: &'a mut [Run],
    /// One page: the page in the making.
    pub page: &'a mut [u8],
    /// One page: the page being read.
    pub scratch: &'a mut [u8],
}

/// How large [`Buffers`] must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSizes {
    /// Record ids for which the window has room; the index may be smaller if fewer are used.
    pub ids_max: u32,
    /// Elements of `runs`.
    pub runs: usize,
    /// Bytes of `page` and of `scratch`.
    pub page_bytes: usize,
    /// The most bytes that a record may have.
    pub record_bytes_max: usize,
}

impl BufferSizes {
    /// The sizes for a window on a medium of this geometry.
    ///
    /// # Errors
    /// [`Error::Geometry`] if the window does not suit a store.
    pub fn of(geometry: &Geometry, window: &Window) -> Result<BufferSizes, Error> {
        let layout = Layout::new(geometry, window)?;
        let runs = layout.runs_max();
        let record_bytes_max = layout.record_bytes_max();
        Ok(BufferSizes { ids_max: layout.ids_max(), runs, page_bytes: layout.page_bytes, record_bytes_max })
    }
}

impl Layout {
    /// Runs at most: every one begins on a block of its own, and one more while a commit is in the making.
    pub(crate) fn runs_max(&self) -> usize {
        self.data.blocks() as usize + 1
    }

    /// Ids at most, so that a copy of their slots with all runs has room.
    pub(crate) fn ids_max(&self) -> u32 {
        let words = self.index_copy_pages_max().saturating_mul(self.index_page_words() as u64);
        let ids = words.saturating_sub(self.runs_max() as u64 * 10);
        u32::try_from(ids).unwrap_or(u32::MAX).min(u32::MAX - 1)
    }
}

impl Buffers<'_> {
    pub(crate) fn check(&self, layout: &Layout) -> Result<(), Error> {
        let needs = [
            ("runs", layout.runs_max(), self.runs.len()),
            ("the page in the making", layout.page_bytes, self.page.len()),
            ("the page being read", layout.page_bytes, self.scratch.len()),
        ];
        for (what, needed, given) in needs {
            if given < needed {
                return Err(Error::BufferTooSmall { what, needed, given });
            }
        }
        Ok(())
    }

    /// The buffers with exactly one page in each page buffer.
    pub(crate) fn trimmed(self, layout: &Layout) -> Result<Self, Error> {
        self.check(layout)?;
        let Buffers { index, runs, page, scratch } = self;
        let (page, _) = page.split_at_mut(layout.page_bytes);
        let (scratch, _) = scratch.split_at_mut(layout.page_bytes);
        Ok(Buffers { index, runs, page, scratch })
    }
}

/// What a commit that may still be fallen back to needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Floor {
    pub(crate) version: u64,
    pub(crate) tail: u64,
    pub(crate) index_first: u64,
}

/// Floors that are told apart; further commits share the newest.
const FLOORS_MAX: usize = 6;

/// The released commit and those after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Floors {
    floors: [Floor; FLOORS_MAX],
    count: usize,
}

impl Floors {
    pub(crate) fn new(released: Floor) -> Floors {
        Floors { floors: [released; FLOORS_MAX], count: 1 }
    }

    /// The released commit, or one before it.
    pub(crate) fn oldest(&self) -> Floor {
        self.floors[0]
    }

    pub(crate) fn push(&mut self, floor: Floor) {
        // When all are taken the newest is forgotten: its release then releases the one before it, which is less.
        self.count = (self.count + 1).min(FLOORS_MAX);
        self.floors[self.count - 1] = floor;
    }

    pub(crate) fn release(&mut self, version: u64) {
        let known = self.floors[..self.count].iter().rposition(|floor| floor.version <= version);
        if let Some(oldest) = known {
            self.floors.copy_within(oldest..self.count, 0);
            self.count -= oldest;
        }
    }
}

/// What a store knows beside its buffers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub(crate) layout: Layout,
    /// The opening under which we write; none while only reading.
    pub(crate) epoch: Option<Epoch>,
    pub(crate) version: u64,
    pub(crate) tag: Tag,
    pub(crate) tail: u64,
    pub(crate) fold: u64,
    pub(crate) copy: IndexCopy,
    /// The next sequence of the data ring, and of the index ring.
    pub(crate) head: u64,
    pub(crate) index_head: u64,
    /// Ids below this one may have records.
    pub(crate) ids: usize,
    pub(crate) live: u32,
    pub(crate) run_count: usize,
    /// Where `allocate` looks next.
    pub(crate) cursor: usize,
    pub(crate) floors: Floors,
    /// The lap that `prepare` is on, since the last commit of changes.
    pub(crate) lap: Option<Lap>,
    pub(crate) latched: bool,
}

impl State {
    /// Takes up writing under `epoch`, on fresh blocks of both rings: pages of an opening that was cut short may
    /// stand after the newest commit, and no position is ever tried twice.
    pub(crate) fn start_writing(&mut self, epoch: Epoch, runs: &[Run]) -> Result<(), Error> {
        if self.epoch.is_some() {
            return Err(Error::Misuse("the record store is already open for writing"));
        }
        if runs.last().is_some_and(|last| last.epoch == epoch) || self.copy.epoch == epoch {
            return Err(Error::Misuse("an opening for writing needs an epoch of its own"));
        }
        self.epoch = Some(epoch);
        self.head = self.layout.data.fresh_block(self.version + 1);
        self.index_head = self.layout.index.fresh_block(self.copy.first + self.copy.pages(&self.layout));
        Ok(())
    }

    pub(crate) fn name(&self) -> Name {
        Name { version: self.version, tag: self.tag }
    }

    /// Ids that the store can hold with an index buffer of this length.
    pub(crate) fn ids_limit(&self, index: &[u32]) -> u32 {
        self.layout.ids_max().min(u32::try_from(index.len()).unwrap_or(u32::MAX))
    }

    /// The page that a slot of the index stands for.
    pub(crate) fn page_of(&self, slot: u32) -> PageNumber {
        self.layout.data.slot_page(u64::from(slot))
    }

    /// Asserts the invariants of this file's head.
    pub(crate) fn check(&self, runs: &[Run], index: &[u32]) {
        let data = &self.layout.data;
        assert!(self.tail <= self.fold + 1 && self.fold <= self.version && self.version < self.head, "order");
        assert!(self.tail.is_multiple_of(data.block_pages), "the tail begins a block");
        assert!(runs.iter().all(|run| run.first < run.end && run.end > self.tail), "runs after the tail");
        assert!(runs.windows(2).all(|pair| pair[0].end <= pair[1].first), "runs in order");
        assert_eq!(runs.last().map(|run| run.end), Some(self.version + 1), "runs end with the commit page");
        assert!(copy_pages(&self.layout, runs.len(), self.ids) <= self.layout.index_copy_pages_max());
        let slots = index.iter().take(self.ids).filter(|slot| **slot != NO_SLOT);
        let mut live = 0;
        for slot in slots {
            let sequence = data.sequence_at(u64::from(*slot), self.version);
            assert!(sequence >= self.tail && run::epoch_of(runs, sequence).is_some(), "slots lie in runs");
            live += 1;
        }
        assert_eq!(live, self.live, "records are counted");
        let oldest = data.block(self.floors.oldest().tail);
        assert!(self.head <= data.block_start(oldest + data.blocks()), "the head stays behind the oldest floor");
    }
}

/// A store that was put aside, so that its medium and buffers can be used for something else in between. The
/// buffers must come back as they were.
pub struct Suspended(pub(crate) State);

impl Suspended {
    /// The buffers it had, to take up what was put aside: that is large, and is not moved here.
    pub(crate) fn taken_up<'b>(&self, buffers: Buffers<'b>) -> Result<Buffers<'b>, Error> {
        let Suspended(state) = self;
        let buffers = buffers.trimmed(&state.layout)?;
        if buffers.index.len() < state.ids {
            return Err(Error::BufferTooSmall { what: "the index", needed: state.ids, given: buffers.index.len() });
        }
        Ok(buffers)
    }
}
