//! Nameless pools: pages that are written where the medium likes it best, and whose place only their parent knows.
//! (Chronos 2.3 and 2.4: nameless writes.)
//!
//! ```text
//! write_nameless(pool, payload) -> (page, write)    the free page nearest after the last one written, all around
//! read_nameless(pool, (page, write)) -> payload
//! free_nameless(pool, (page, write))                free again once no commit that may come back needs it
//!
//! pool:  slot 0      slot 1      slot 2         page = slot x extent_pages + position
//!        | extent |  | extent |  (given back)
//! ```
//! A page is numbered within its pool, so its number outlives a copy whose extents lie elsewhere. The same place is
//! written again and again; what tells its contents apart is the number of the write, which the parent keeps and the
//! seal is made under. Which opening made a write, and so which epoch it was sealed in, is told by a list: writes are
//! numbered in their order, so each opening has a range of them.
//!
//! Invariants (`Pool::check`):
//! 1. what is live and how many extents there are is counted as they are; an opening counts the live pages it wrote;
//! 2. openings stand in the order of their first writes, all below `next_write`.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use crate::Error;
use crate::bits::Bits;
use crate::space::Extent;
use crate::state::NUMBER_MAX;

/// The number of a nameless pool. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(pub u64);

/// Where a nameless page is: its parent keeps both numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamelessPage {
    /// The page, numbered within its pool.
    pub page: u64,
    /// The number of the write. Under one key none is used twice.
    pub write: u64,
}

/// How a pool is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    /// Of a hundred pages of the pool, how many are kept free: the more, the shorter the way from write to write (fifty
    /// divided by this in pages, where pages are written anew at random), and the more room it takes. At most 90.
    pub free_percent: u8,
}

impl PoolOptions {
    /// The largest share.
    pub(crate) const FREE_PERCENT_MAX: u8 = 90;

    pub(crate) fn are_sound(self) -> bool {
        self.free_percent <= PoolOptions::FREE_PERCENT_MAX
    }
}

impl Default for PoolOptions {
    /// Ten in a hundred, some five pages from write to write: DESIGN, "log", has what was measured.
    fn default() -> Self {
        PoolOptions { free_percent: 10 }
    }
}

/// Slots that are copied together when one of them changes.
pub(crate) const CHUNK_SLOTS: usize = 64;

/// Chunks without an extent that a slot may lie behind those there are.
const GAP_CHUNKS_MAX: usize = 1 << 12;

/// An extent of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) extent: Extent,
    /// No live page of it has a lower number of its write. Where pages are written once and in order, this is the write
    /// at position 0, and the others follow.
    pub(crate) first_write: u64,
    pub(crate) live: Bits,
}

/// [`CHUNK_SLOTS`] slots.
pub(crate) type Chunk = Vec<Option<Slot>>;

/// The writes of one opening, from `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(crate) first: u64,
    pub(crate) epoch: u64,
    /// Pages of these writes that are live.
    pub(crate) live: u64,
}

/// A pool as of one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) options: PoolOptions,
    extent_pages: u32,
    pub(crate) chunks: Arc<Vec<Arc<Chunk>>>,
    pub(crate) openings: Arc<Vec<Opening>>,
    pub(crate) next_write: u64,
    live: u64,
    extents: u32,
}

fn corrupt() -> Error {
    Error::corrupt("page of a pool")
}

impl Pool {
    pub(crate) fn new(options: PoolOptions, extent_pages: u32) -> Self {
        Pool {
            options,
            extent_pages,
            chunks: Arc::default(),
            openings: Arc::default(),
            next_write: 1,
            live: 0,
            extents: 0,
        }
    }

    /// A pool put together from what a checkpoint tells of it.
    pub(crate) fn from_parts(
        options: PoolOptions,
        extent_pages: u32,
        chunks: Vec<Arc<Chunk>>,
        openings: Vec<Opening>,
        next_write: u64,
    ) -> Result<Self, Error> {
        let (chunks, openings) = (Arc::new(chunks), Arc::new(openings));
        let mut pool = Pool { options, extent_pages, chunks, openings, next_write, live: 0, extents: 0 };
        let counted = pool.slots().map(|(_, slot)| u64::from(slot.live.count()));
        pool.live = counted.sum();
        pool.extents = pool.slots().count() as u32;
        if pool.is_sound() { Ok(pool) } else { Err(corrupt()) }
    }

    /// Whether the invariants of this file's head hold.
    fn is_sound(&self) -> bool {
        let firsts = self.openings.iter().map(|opening| opening.first);
        let bounds = firsts.clone().skip(1).chain([self.next_write]);
        let in_order = firsts.zip(bounds).all(|(first, bound)| first < bound);
        let of_openings = self.openings.iter().try_fold(0u64, |sum, opening| sum.checked_add(opening.live));
        in_order && (1..=NUMBER_MAX).contains(&self.next_write) && of_openings == Some(self.live)
    }

    pub(crate) fn extent_pages(&self) -> u32 {
        self.extent_pages
    }

    /// Live pages.
    pub(crate) fn live(&self) -> u64 {
        self.live
    }

    /// Extents there are.
    pub(crate) fn extents(&self) -> u32 {
        self.extents
    }

    /// Pages there are, written or not.
    pub(crate) fn pages(&self) -> u64 {
        u64::from(self.extents) * u64::from(self.extent_pages)
    }

    /// The number of a page.
    pub(crate) fn page(&self, slot: u32, position: u32) -> u64 {
        u64::from(slot) * u64::from(self.extent_pages) + u64::from(position)
    }

    /// Slot and position of a page.
    pub(crate) fn split(&self, page: u64) -> Option<(u32, u32)> {
        let pages = u64::from(self.extent_pages);
        Some((u32::try_from(page / pages).ok()?, (page % pages) as u32))
    }

    pub(crate) fn slot(&self, slot: u32) -> Option<&Slot> {
        self.chunks.get(slot as usize / CHUNK_SLOTS)?.get(slot as usize % CHUNK_SLOTS)?.as_ref()
    }

    fn slot_mut(&mut self, slot: u32) -> Option<&mut Option<Slot>> {
        let chunk = Arc::make_mut(&mut self.chunks).get_mut(slot as usize / CHUNK_SLOTS)?;
        Arc::make_mut(chunk).get_mut(slot as usize % CHUNK_SLOTS)
    }

    /// The slots that have an extent, by their numbers.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (u32, &Slot)> + '_ {
        let all = self.chunks.iter().flat_map(|chunk| chunk.iter());
        (0u32..).zip(all).filter_map(|(number, slot)| Some((number, slot.as_ref()?)))
    }

    /// The lowest slot without an extent.
    pub(crate) fn vacant_slot(&self) -> u32 {
        let all = self.chunks.iter().flat_map(|chunk| chunk.iter());
        (0u32..).zip(all).find(|(_, slot)| slot.is_none()).map_or(self.slots_max(), |(number, _)| number)
    }

    fn slots_max(&self) -> u32 {
        (self.chunks.len() * CHUNK_SLOTS) as u32
    }

    /// Where a page lies, if it is live and its write has an epoch: extent, position, epoch.
    pub(crate) fn locate(&self, page: NamelessPage) -> Option<(Extent, u32, u64)> {
        let (slot, position) = self.split(page.page)?;
        let slot = self.slot(slot)?;
        let is_live = slot.live.contains(position) && page.write >= slot.first_write && page.write < self.next_write;
        let opening = self.openings.get(self.opening_of(page.write)?)?;
        is_live.then_some((slot.extent, position, opening.epoch))
    }

    fn opening_of(&self, write: u64) -> Option<usize> {
        self.openings.partition_point(|opening| opening.first <= write).checked_sub(1)
    }

    /// Gives a slot an extent.
    pub(crate) fn add_slot(&mut self, number: u32, extent: Extent, first_write: u64) -> Result<(), Error> {
        let live = Bits::none(self.extent_pages);
        let wanted = number as usize / CHUNK_SLOTS + 1;
        if wanted > self.chunks.len() + GAP_CHUNKS_MAX {
            return Err(corrupt());
        }
        while self.chunks.len() < wanted {
            Arc::make_mut(&mut self.chunks).push(Arc::new(vec![None; CHUNK_SLOTS]));
        }
        let slot = self.slot_mut(number).filter(|slot| slot.is_none()).ok_or_else(corrupt)?;
        *slot = Some(Slot { extent, first_write, live });
        self.extents += 1;
        Ok(())
    }

    /// Takes a slot's extent away, in which nothing is live.
    pub(crate) fn remove_slot(&mut self, number: u32) -> Result<Extent, Error> {
        let slot = self.slot_mut(number).ok_or_else(corrupt)?;
        let gone = slot.take_if(|slot| slot.live.count() == 0).ok_or_else(corrupt)?;
        self.extents -= 1;
        Ok(gone.extent)
    }

    /// Takes note of a write in `epoch`.
    pub(crate) fn write(&mut self, page: NamelessPage, epoch: u64) -> Result<(), Error> {
        let (number, position) = self.split(page.page).ok_or_else(corrupt)?;
        let in_order = page.write >= self.next_write && page.write < NUMBER_MAX;
        let slot = self.slot_mut(number).and_then(Option::as_mut).filter(|_| in_order).ok_or_else(corrupt)?;
        if page.write < slot.first_write || !slot.live.insert(position) {
            return Err(corrupt());
        }
        let openings = Arc::make_mut(&mut self.openings);
        match openings.last_mut() {
            Some(last) if last.epoch == epoch => last.live += 1,
            _ => {
                openings.retain(|opening| opening.live > 0);
                openings.push(Opening { first: page.write, epoch, live: 1 });
            }
        }
        self.next_write = page.write + 1;
        self.live += 1;
        Ok(())
    }

    /// Takes note that nobody points to a page any more.
    pub(crate) fn free(&mut self, page: NamelessPage) -> Result<(), Error> {
        self.locate(page).ok_or_else(corrupt)?;
        let (number, position) = self.split(page.page).ok_or_else(corrupt)?;
        let index = self.opening_of(page.write).ok_or_else(corrupt)?;
        let openings = Arc::make_mut(&mut self.openings);
        let last = index + 1 == openings.len();
        let opening = openings.get_mut(index).filter(|opening| opening.live > 0).ok_or_else(corrupt)?;
        opening.live -= 1;
        if opening.live == 0 && !last {
            openings.remove(index);
        }
        let slot = self.slot_mut(number).and_then(Option::as_mut).ok_or_else(corrupt)?;
        slot.live.remove(position);
        self.live -= 1;
        Ok(())
    }

    /// The chunk of slots that holds a page.
    pub(crate) fn chunk_of(&self, page: u64) -> u32 {
        self.split(page).map_or(0, |(slot, _)| slot / CHUNK_SLOTS as u32)
    }

    /// Asserts the invariants of this file's head.
    pub(crate) fn check(&self) {
        assert!(self.is_sound(), "openings stand in order and count what is live");
        let live: u64 = self.slots().map(|(_, slot)| u64::from(slot.live.count())).sum();
        assert_eq!((live, self.slots().count() as u32), (self.live, self.extents), "pages and extents are counted");
    }
}
