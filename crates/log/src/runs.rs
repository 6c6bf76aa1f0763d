//! Where the pages of a container lie, in little memory: 8 bytes for each run of pages, and 32 for each extent.
//!
//! ```text
//! extents  | extent 7, first page 0, pieces from 0 | extent 9, first page 5, pieces from 2 | ...
//! pieces   | page 0 + 0 at 4 | page 0 + 3 at 11 | page 5 + 0 at 0 | ...         how long each is follows from the next one
//! ```
//! On media that are written in order, containers of a group take turns in an extent, so a run may be a single page.
//!
//! Invariants:
//! 1. pieces and extents ascend by their first pages; every extent has a piece, and its first one begins where it does;
//! 2. neighbouring pieces do not continue one another on the medium, neighbouring extents are not the same under the same key.

use alloc::vec::Vec;

use crate::root::Run;

/// Neighbouring pages in one extent, under one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// The first page's number within the container, from that of the extent's first one on.
    offset: u32,
    /// Its position in the extent.
    position: u32,
}

/// Pieces that lie in one extent one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InExtent {
    /// The first page's number within the container.
    first: u64,
    allocation: u64,
    epoch: u64,
    extent: u32,
    /// The place of its first piece.
    pieces: u32,
}

/// The runs of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    extents: Vec<InExtent>,
    pieces: Vec<Piece>,
    /// Pages in all.
    pages: u64,
}

impl Runs {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Run> + '_ {
        self.from(0)
    }

    /// Those that end behind a page, in order.
    pub(crate) fn ending_behind(&self, page: u64) -> impl Iterator<Item = Run> + '_ {
        let run = self.place_of(page).unwrap_or(self.pieces.len());
        self.from(run)
    }

    /// The run that holds a page.
    pub(crate) fn holding(&self, page: u64) -> Option<Run> {
        self.run(self.place_of(page)?)
    }

    /// Pages in all.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    fn from(&self, place: usize) -> impl Iterator<Item = Run> + '_ {
        (place..self.pieces.len()).filter_map(|place| self.run(place))
    }

    /// The place of the run that holds a page.
    fn place_of(&self, page: u64) -> Option<usize> {
        if page >= self.pages {
            return None;
        }
        let number = self.extents.partition_point(|extent| extent.first <= page).checked_sub(1)?;
        let extent = self.extents.get(number)?;
        let offset = u32::try_from(page - extent.first).ok()?;
        let begin = extent.pieces as usize;
        let end = self.extents.get(number + 1).map_or(self.pieces.len(), |next| next.pieces as usize);
        let within = self.pieces.get(begin..end)?.partition_point(|piece| piece.offset <= offset);
        (begin + within).checked_sub(1)
    }

    /// The run at a place.
    fn run(&self, place: usize) -> Option<Run> {
        let piece = self.pieces.get(place)?;
        let number = self.extents.partition_point(|extent| extent.pieces as usize <= place).checked_sub(1)?;
        let extent = self.extents.get(number)?;
        let next = self.extents.get(number + 1);
        let first = extent.first + u64::from(piece.offset);
        let end = match self.pieces.get(place + 1) {
            Some(_) if next.is_some_and(|next| next.pieces as usize == place + 1) => next.map_or(0, |next| next.first),
            Some(after) => extent.first + u64::from(after.offset),
            None => self.pages,
        };
        Some(Run {
            first,
            extent: extent.extent,
            position: piece.position,
            pages: (end - first) as u32,
            allocation: extent.allocation,
            epoch: extent.epoch,
        })
    }

    /// Adds pages at the end; where they begin is known here.
    pub(crate) fn add(&mut self, run: Run) {
        let first = self.pages;
        self.pages += u64::from(run.pages);
        let last = self.pieces.len().checked_sub(1).and_then(|last| self.run_before(last, first));
        if last.is_some_and(|last| last.continues_with(&run)) {
            return;
        }
        let same = |extent: &&InExtent| {
            (extent.extent, extent.allocation, extent.epoch) == (run.extent, run.allocation, run.epoch)
        };
        let offset = self.extents.last().filter(same).and_then(|extent| u32::try_from(first - extent.first).ok());
        if offset.is_none() {
            let Run { extent, allocation, epoch, .. } = run;
            make_room(&mut self.extents);
            self.extents.push(InExtent { first, allocation, epoch, extent, pieces: self.pieces.len() as u32 });
        }
        make_room(&mut self.pieces);
        self.pieces.push(Piece { offset: offset.unwrap_or(0), position: run.position });
    }

    /// The last run, when there were so many pages.
    fn run_before(&self, last: usize, pages: u64) -> Option<Run> {
        self.run(last).map(|run| Run { pages: (pages - run.first) as u32, ..run })
    }
}

/// Where memory is little, a vector that doubles has too much room to spare.
fn make_room<T>(list: &mut Vec<T>) {
    if cfg!(feature = "small") && list.len() == list.capacity() {
        list.reserve_exact(1 + list.len() / 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                position = if roll(3) == 0 { roll(100) as u32 } else { position };
                let pages = 1 + roll(3) as u32;
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
            for page in 0..runs.pages() + 2 {
                let holds = |run: &&Run| (run.first..run.first + u64::from(run.pages)).contains(&page);
                assert_eq!(runs.holding(page), plain.iter().find(holds).copied());
                let behind = plain.iter().filter(|run| run.first + u64::from(run.pages) > page);
                assert!(runs.ending_behind(page).eq(behind.copied()));
            }
        }
    }
}
