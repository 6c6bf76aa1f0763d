//! Where the pages of a container lie, in little memory: most containers lie in one piece, which is kept within them. The others have
//! 4 bytes for each run of pages, and 36 for each extent.
//!
//! ```text
//! extents  | extent 7, first page 0 at 4, pieces from 0 | extent 9, first page 5 at 0, pieces from 2 | ...
//! pieces   | 0 on, 0 further | 3 on, 7 further | 0 on, 0 further | ...      how long each is follows from the next one
//! ```
//! On media that are written in order, containers of a group take turns in an extent, so a run may be a single page.
//!
//! Invariants:
//! 1. pieces and extents ascend by their first pages; every extent has a piece, and its first one begins where it does;
//! 2. neighbouring pieces do not continue one another on the medium; an extent comes twice in a row under the same key only where
//!    a piece of it lies before its first one, or too far behind.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::root::Run;
use crate::space::Extent;

/// Neighbouring pages in one extent, under one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// How many pages of the container come between the first one in the extent and the first one of this.
    pages: u16,
    /// How many positions of the extent do.
    positions: u16,
}

/// Pieces that lie in one extent one after another. Without the room that a processor may want before numbers of 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, packed(4))]
struct InExtent {
    /// The first page's number within the container.
    first: u64,
    allocation: u64,
    epoch: u64,
    extent: u32,
    /// The first page's position in the extent.
    position: u32,
    /// The place of its first piece.
    pieces: u32,
}

impl InExtent {
    /// What a run that begins with page `first` is in this extent; none if it lies elsewhere, or cannot be told from here.
    fn piece(&self, first: u64, run: &Run) -> Option<Piece> {
        let same = (self.extent, self.allocation, self.epoch) == (run.extent, run.allocation, run.epoch);
        let pages = u16::try_from(first.checked_sub(self.first)?).ok()?;
        let positions = u16::try_from(run.position.checked_sub(self.position)?).ok()?;
        same.then_some(Piece { pages, positions })
    }
}

/// The runs of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs(Kept);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Kept {
    #[default]
    None,
    One(Only),
    More(Arc<List>),
}

/// A run that is the only one, so that it begins with page 0. Most containers have it in themselves, so it is as small as can be; one
/// whose numbers are larger is in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Only {
    allocation: u32,
    epoch: u32,
    extent: u32,
    position: u16,
    pages: u16,
}

impl Only {
    fn of(run: &Run) -> Option<Self> {
        Some(Only {
            allocation: u32::try_from(run.allocation).ok()?,
            epoch: u32::try_from(run.epoch).ok()?,
            extent: run.extent,
            position: u16::try_from(run.position).ok()?,
            pages: u16::try_from(run.pages).ok()?,
        })
    }

    fn run(self) -> Run {
        Run {
            first: 0,
            extent: self.extent,
            position: self.position.into(),
            pages: self.pages.into(),
            allocation: self.allocation.into(),
            epoch: self.epoch.into(),
        }
    }
}

impl Runs {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Kept::None => 0,
            Kept::One(_) => 1,
            Kept::More(list) => list.pieces.len(),
        }
    }

    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Run> + '_ {
        self.from(0)
    }

    /// Those that end behind a page, in order.
    pub(crate) fn ending_behind(&self, page: u64) -> impl Iterator<Item = Run> + '_ {
        self.from(self.place_of(page).unwrap_or(self.len()))
    }

    /// The run that holds a page.
    pub(crate) fn holding(&self, page: u64) -> Option<Run> {
        self.run(self.place_of(page)?)
    }

    /// Pages in all.
    pub(crate) fn pages(&self) -> u64 {
        match &self.0 {
            Kept::None => 0,
            Kept::One(only) => u64::from(only.pages),
            Kept::More(list) => list.pages,
        }
    }

    fn from(&self, place: usize) -> impl Iterator<Item = Run> + '_ {
        (place..self.len()).filter_map(|place| self.run(place))
    }

    /// The place of the run that holds a page.
    fn place_of(&self, page: u64) -> Option<usize> {
        match &self.0 {
            Kept::None => None,
            Kept::One(only) => (page < u64::from(only.pages)).then_some(0),
            Kept::More(list) => list.place_of(page),
        }
    }

    /// The run at a place.
    fn run(&self, place: usize) -> Option<Run> {
        match &self.0 {
            Kept::None => None,
            Kept::One(only) => (place == 0).then_some(only.run()),
            Kept::More(list) => list.run(place),
        }
    }

    /// How many of the last ones lie in an extent, one after another.
    pub(crate) fn count_in_last(&self, extent: Extent) -> usize {
        let Kept::More(list) = &self.0 else { return self.iter().filter(|run| run.lies_in(extent)).count() };
        let last =
            list.extents.last().filter(|last| (last.extent, last.allocation) == (extent.number, extent.allocation));
        last.map_or(0, |last| list.pieces.len() - last.pieces as usize)
    }

    /// Whether the last one ends at a position of an extent.
    pub(crate) fn end_at(&self, extent: Extent, position: u32) -> bool {
        let last = self.len().checked_sub(1).and_then(|last| self.run(last));
        last.is_some_and(|last| last.lies_in(extent) && last.position.checked_add(last.pages) == Some(position))
    }

    /// Adds pages at the end; where they begin is known here.
    pub(crate) fn add(&mut self, run: Run) {
        let (before, one) = match &mut self.0 {
            Kept::More(list) => return Arc::make_mut(list).add(run),
            Kept::None => (None, Some(run)),
            Kept::One(only) => (Some(only.run()), only.run().and(&run)),
        };
        if let Some(only) = one.and_then(|run| Only::of(&run)) {
            self.0 = Kept::One(only);
            return;
        }
        let mut list = List::default();
        before.into_iter().chain([run]).for_each(|run| list.add(run));
        self.0 = Kept::More(Arc::new(list));
    }
}

/// More runs than one, or one that is large.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct List {
    extents: Vec<InExtent>,
    pieces: Vec<Piece>,
    /// Pages in all.
    pages: u64,
}

impl List {
    fn place_of(&self, page: u64) -> Option<usize> {
        if page >= self.pages {
            return None;
        }
        let number = self.extents.partition_point(|extent| extent.first <= page).checked_sub(1)?;
        let extent = self.extents.get(number)?;
        let pages = page - extent.first;
        let begin = extent.pieces as usize;
        let end = self.extents.get(number + 1).map_or(self.pieces.len(), |next| next.pieces as usize);
        let within = self.pieces.get(begin..end)?.partition_point(|piece| u64::from(piece.pages) <= pages);
        (begin + within).checked_sub(1)
    }

    fn run(&self, place: usize) -> Option<Run> {
        let piece = self.pieces.get(place)?;
        let number = self.extents.partition_point(|extent| extent.pieces as usize <= place).checked_sub(1)?;
        let extent = self.extents.get(number)?;
        let next = self.extents.get(number + 1);
        let first = extent.first + u64::from(piece.pages);
        let end = match self.pieces.get(place + 1) {
            Some(_) if next.is_some_and(|next| next.pieces as usize == place + 1) => next.map_or(0, |next| next.first),
            Some(after) => extent.first + u64::from(after.pages),
            None => self.pages,
        };
        Some(Run {
            first,
            extent: extent.extent,
            position: extent.position + u32::from(piece.positions),
            pages: (end - first) as u32,
            allocation: extent.allocation,
            epoch: extent.epoch,
        })
    }

    fn add(&mut self, run: Run) {
        let first = self.pages;
        self.pages += u64::from(run.pages);
        let last = self.pieces.len().checked_sub(1).and_then(|last| self.run_before(last, first));
        if last.is_some_and(|last| last.continues_with(&run)) {
            return;
        }
        let known = self.extents.last().and_then(|extent| extent.piece(first, &run));
        if known.is_none() {
            let Run { extent, position, allocation, epoch, .. } = run;
            make_room(&mut self.extents);
            self.extents.push(InExtent {
                first,
                allocation,
                epoch,
                extent,
                position,
                pieces: self.pieces.len() as u32,
            });
        }
        make_room(&mut self.pieces);
        self.pieces.push(known.unwrap_or(Piece { pages: 0, positions: 0 }));
    }

    /// The last run, when there were so many pages.
    fn run_before(&self, last: usize, pages: u64) -> Option<Run> {
        self.run(last).map(|run| Run { pages: (pages - run.first) as u32, ..run })
    }
}

/// Where memory is little, a vector that doubles has too much room to spare.
pub(crate) fn make_room<T>(list: &mut Vec<T>) {
    if cfg!(feature = "small") && list.len() == list.capacity() {
        list.reserve_exact(1 + list.len() / 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_take_what_is_said() {
        assert_eq!([size_of::<Piece>(), size_of::<InExtent>(), size_of::<Only>()], [4, 36, 16]);
        assert_eq!(size_of::<Runs>(), if cfg!(target_pointer_width = "64") { 24 } else { 20 });
    }

    /// Runs against the list of them that this stands for.
    #[test]
    fn they_are_those_that_were_added() {
        let mut dice = 7_u64;
        let mut roll = |sides: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) % sides
        };
        for _ in 0..200 {
            let (mut runs, mut plain) = (Runs::default(), Vec::<Run>::new());
            let mut position = 0;
            for _ in 0..roll(40) {
                let (extent, epoch) = ((roll(3) + 5) as u32, 1 + roll(2));
                position = if roll(3) == 0 { roll(100) as u32 * (1 + 2000 * (roll(9) / 8) as u32) } else { position };
                let pages = if roll(50) == 0 { 70_000 } else { 1 + roll(3) as u32 };
                let first = runs.pages();
                let run = Run { first: 99, extent, position, pages, allocation: u64::from(extent) * 10, epoch };
                runs.add(run);
                match plain.last_mut() {
                    Some(last) if last.continues_with(&run) => last.pages += pages,
                    _ => plain.push(Run { first, ..run }),
                }
                position += pages;
            }
            assert!(runs.iter().eq(plain.iter().copied()));
            assert_eq!(runs.len(), plain.len());
            let edges = plain.iter().flat_map(|run| [run.first, run.first + 1, run.first + u64::from(run.pages) - 1]);
            for page in edges.chain(runs.pages()..runs.pages() + 2).collect::<Vec<_>>() {
                let holds = |run: &&Run| (run.first..run.first + u64::from(run.pages)).contains(&page);
                assert_eq!(runs.holding(page), plain.iter().find(holds).copied());
                let behind = plain.iter().filter(|run| run.first + u64::from(run.pages) > page);
                assert!(runs.ending_behind(page).eq(behind.copied()));
            }
        }
    }
}
