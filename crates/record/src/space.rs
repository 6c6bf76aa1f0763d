//! Room in the data ring, and how a commit plans to use it.
//!
//! ```text
//!      floor's tail            tail                     head            one lap after the floor's tail
//!  ... | kept for the released | live pages and garbage | free pages .. |
//! ```
//! 1. *Free* pages end where the block of the oldest floor's tail would come round: nothing that a cut would fall back
//!    to is ever erased or overwritten.
//! 2. Cleaning the block at the tail costs at most one page for each of its pages that holds a current record
//!    (records of `k` pages, packed again in their order, never take more than `k` further pages), and gives a whole
//!    block back at the release. So the costs of a commit are known before its first write.
//! 3. Commits that add records leave [`reserve`] pages free. Deallocations and cleaning may use them: two blocks (one
//!    that an opening abandons, one to clean into) and two pages for each block of a whole lap.

use crate::data_page::{Draft, ENTRY_BYTES};
use crate::error::Error;
use crate::index::copy_pages;
use crate::live::LivePages;
use crate::root::{ROOT_BYTES_MAX, ROOT_RUNS_MAX};
use crate::run::{self, Run};
use crate::state::{RecordId, State};
use crate::window::Layout;

/// A change that a commit makes: the record's new bytes, or none to deallocate it.
pub type Change<'c> = (RecordId, Option<&'c [u8]>);

/// Takes a change: the record, and its new bytes or none.
pub type EachChange<'e> = dyn FnMut(RecordId, Option<&[u8]>) -> Result<(), Error> + 'e;

/// The changes of a commit, told one after the other, so that they need not be in memory together.
pub trait Changes {
    /// Tells each change to `each`, and stops at its first error. A commit asks several times: it is told the same.
    ///
    /// # Errors
    /// Those of `each`.
    fn visit(&self, each: &mut EachChange<'_>) -> Result<(), Error>;
}

impl Changes for &[Change<'_>] {
    fn visit(&self, each: &mut EachChange<'_>) -> Result<(), Error> {
        self.iter().try_for_each(|(id, record)| each(*id, *record))
    }
}

/// What changes come to.
pub(crate) struct Measured {
    /// Pages that they take by themselves, with their root.
    pub(crate) pages: u64,
    /// Whether there are records among them, not deallocations alone.
    pub(crate) adds: bool,
    /// One more than the highest id.
    ids: usize,
}

/// Pages that commits leave free for deallocations and cleaning.
pub(crate) fn reserve(layout: &Layout) -> u64 {
    2 * layout.data.block_pages + 2 * layout.data.blocks() + 4
}

/// Pages after which the index is folded: four times what that costs.
fn fold_after(copy_pages: u64) -> u64 {
    16 + 4 * copy_pages
}

/// What a commit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The caller's changes; cleaning on the way.
    Changes,
    /// Cleaning as far as the free pages go.
    Cleaning,
    /// A new index copy.
    Folding,
}

/// A lap of cleaning for the sake of room: where it ends, and what was free when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lap {
    until: u64,
    free: u64,
}

/// What a commit will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Pages of the data ring, at most.
    pub(crate) pages: u64,
    /// The new tail: blocks before it are cleaned.
    pub(crate) tail: u64,
    /// Whether a new index copy is written.
    pub(crate) fold: bool,
}

/// Measures changes, each of which must pass `check`.
pub(crate) fn measure(
    layout: &Layout,
    changes: &dyn Changes,
    check: impl Fn(RecordId, usize) -> Result<(), Error>,
) -> Result<Measured, Error> {
    let mut draft = Draft::new(layout.body_bytes());
    let mut measured = Measured { pages: 1, adds: false, ids: 0 };
    changes.visit(&mut |id, record| {
        let bytes = record.map_or(0, <[u8]>::len);
        check(id, bytes)?;
        if !draft.fits(bytes) {
            draft = Draft::new(layout.body_bytes());
            measured.pages += 1;
        }
        draft.take(bytes);
        measured.adds |= record.is_some();
        measured.ids = measured.ids.max((id.0 as usize).saturating_add(1));
        Ok(())
    })?;
    measured.pages += u64::from(!draft.fits_root(ROOT_BYTES_MAX));
    Ok(measured)
}

impl State {
    /// Pages that may be written before something is released.
    pub(crate) fn free_pages(&self) -> u64 {
        self.free_after(self.floors.oldest().tail, self.head)
    }

    fn free_after(&self, tail: u64, head: u64) -> u64 {
        let data = &self.layout.data;
        data.block_start(data.block(tail) + data.blocks()).saturating_sub(head)
    }

    /// Pages that records of one commit may fill now.
    pub(crate) fn pages_left(&self) -> u64 {
        // One page for a root that finds no room beside the last record.
        self.free_pages().saturating_sub(reserve(&self.layout) + 1)
    }

    /// Bytes of records and their entries that one commit surely takes now, however they are cut up: of two
    /// neighbouring pages, packed in order, the contents are more than one page.
    pub(crate) fn bytes_left(&self) -> u64 {
        self.pages_left().div_ceil(2) * self.layout.record_room() as u64
    }

    /// Whether the index ring has room for a copy of `pages` pages.
    fn index_has_room(&self, pages: u64) -> bool {
        let ring = &self.layout.index;
        let end = ring.block_start(ring.block(self.floors.oldest().index_first) + ring.blocks());
        self.index_head + pages <= end
    }

    /// Plans a commit, or says that it does not fit. Nothing is written, nothing changes.
    pub(crate) fn plan(
        &self,
        changes: &Measured,
        purpose: Purpose,
        runs: &[Run],
        index: &[u32],
    ) -> Result<Plan, Error> {
        let (free, pages) = (self.free_pages(), changes.pages);
        let needed = if changes.adds { pages + reserve(&self.layout) } else { pages };
        if needed > free {
            return Err(Error::Full { needed, free });
        }
        let ids = self.ids.max(changes.ids);
        let copy_pages = copy_pages(&self.layout, runs.len() + 1, ids);
        let can_fold = self.index_has_room(copy_pages);
        // A run for this opening comes on top, unless it is there.
        let continues = runs.last().is_some_and(|last| Some(last.epoch) == self.epoch);
        let runs_after_fold =
            run::after(runs, self.fold).count() + usize::from(!continues || self.fold == self.version);
        let must_fold = runs_after_fold > ROOT_RUNS_MAX || purpose == Purpose::Folding;
        if must_fold && !can_fold {
            return Err(Error::Full { needed, free });
        }
        let due = self.head + pages - self.fold > fold_after(copy_pages);
        let cleaning = Cleaning { state: self, index, pages, free, can_fold };
        let tail = match purpose {
            Purpose::Changes => cleaning.as_needed(),
            Purpose::Cleaning => cleaning.as_possible(),
            Purpose::Folding => (self.tail, 0),
        };
        let (tail, cost) = tail;
        if purpose == Purpose::Cleaning && tail == self.tail {
            // No block can be moved, or none is left: a commit would only take room.
            return Err(Error::Full { needed, free });
        }
        let fold = must_fold || (due && can_fold) || tail > self.fold + 1;
        let pages = if cost > 0 { pages + cost + 1 } else { pages };
        Ok(Plan { pages, tail, fold })
    }
}

/// Choosing how many blocks after the tail to clean.
struct Cleaning<'a> {
    state: &'a State,
    index: &'a [u32],
    /// Pages of the commit before cleaning.
    pages: u64,
    free: u64,
    can_fold: bool,
}

impl Cleaning<'_> {
    /// The blocks that may be cleaned: (tail after it, pages that must move). Never the block that the commit is
    /// written to, and nothing that recovery needs because the index is not folded.
    fn blocks(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let data = self.state.layout.data;
        let blocks = data.block(self.state.tail)..data.block(self.state.head);
        let tails = blocks.map(move |block| (block, data.block_start(block + 1)));
        tails
            .take_while(|(_, tail)| self.can_fold || *tail <= self.state.fold + 1)
            .map(|(block, tail)| (tail, LivePages::of(&self.state.layout, self.index, block).count()))
    }

    fn affordable(&self, cost: u64) -> bool {
        self.pages + cost < self.free
    }

    /// Free pages after the release, if `cost` pages move and `tail` is the new tail.
    fn projected(&self, tail: u64, cost: u64) -> u64 {
        self.state.free_after(tail, self.state.head + self.pages + cost + 1)
    }

    /// As far as it pays: cheap blocks while less than three quarters of the ring is free, any block while the
    /// reserve is touched, but never much more than the commit itself.
    fn as_needed(&self) -> (u64, u64) {
        let data = &self.state.layout.data;
        let (mut tail, mut cost) = (self.state.tail, 0);
        for (next_tail, live) in self.blocks() {
            let projected = self.projected(tail, cost);
            let urgent = projected < reserve(&self.state.layout) + data.block_pages;
            let cheap = projected < data.pages / 4 * 3 && 2 * live <= data.block_pages;
            let bound = if urgent { (4 * self.pages + 8).max(data.block_pages) } else { 3 * self.pages + 8 };
            if !(urgent || cheap) || cost + live > bound || !self.affordable(cost + live) {
                break;
            }
            (tail, cost) = (next_tail, cost + live);
        }
        (tail, cost)
    }

    /// As far as the free pages go, to where the most is gained; if nothing is, as far as possible, because garbage
    /// further on is reached only past the blocks before it.
    fn as_possible(&self) -> (u64, u64) {
        let start = self.projected(self.state.tail, 0);
        let (mut best, mut furthest) = ((self.state.tail, 0), (self.state.tail, 0));
        let (mut most, mut cost) = (start, 0);
        for (tail, live) in self.blocks() {
            cost += live;
            if !self.affordable(cost) {
                break;
            }
            furthest = (tail, cost);
            if self.projected(tail, cost) > most {
                (best, most) = ((tail, cost), self.projected(tail, cost));
            }
        }
        if most > start { best } else { furthest }
    }
}

impl State {
    /// Notes that a commit cleans for the sake of room; false if there is no more to gain. Records of half empty
    /// pages come together only by moving them, so what a lap gains is known after it: a lap without gain is the last
    /// one until something changes.
    pub(crate) fn lap_goes_on(&mut self) -> bool {
        let free = self.free_pages();
        let lap = self.lap.get_or_insert(Lap { until: self.head, free });
        if self.tail >= lap.until {
            if free <= lap.free {
                return false;
            }
            *lap = Lap { until: self.head, free };
        }
        true
    }

    /// See [`crate::Store::pages_max`]: what a lap of cleaning leaves beside packed records is a partly filled commit
    /// page for each block at most, and the rest of the tail's block.
    pub(crate) fn pages_max(&self) -> u64 {
        let data = &self.layout.data;
        data.pages.saturating_sub(reserve(&self.layout) + data.block_pages + data.blocks())
    }

    /// The most a record may have.
    pub(crate) fn record_bytes_max(&self) -> usize {
        self.layout.record_bytes_max()
    }
}

impl Layout {
    /// The most a record may have.
    pub(crate) fn record_bytes_max(&self) -> usize {
        self.record_room() - ENTRY_BYTES
    }
}
