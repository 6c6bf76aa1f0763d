//! Relocation: where a medium is erased by whole extents, pages go that keep extents from being given back.
//!
//! ```text
//! the pool names pages -> each says which series and height it is of, and from which time on -> the way to it from the edge
//!                      -> it is written anew as it is, and every node above it with the new place
//! ```
//! Leaves die in the order of time where retention takes them, and extents with them. Late points and deletions kill leaves here and
//! there, and what lives beside them would keep an extent for good. A cut leaves what the last commit had.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use counterfoil_log::NamelessPage;

use crate::edge::{Entry, Splice};
use crate::leaf::Leaf;
use crate::node;
use crate::pages::PageAt;
use crate::points::Points;
use crate::write::Change;
use crate::{Error, Storage};

/// Pages that are named at a time.
pub(crate) const PAGES_AT_ONCE: usize = 64;

/// What moves of one series: from which times on, and where it is.
#[derive(Default)]
struct Moving {
    firsts: BTreeSet<i64>,
    pages: BTreeSet<u64>,
}

impl Moving {
    fn is_within(&self, entry: &Entry) -> bool {
        self.firsts.range(entry.first..=entry.last).next().is_some()
    }
}

/// The pages of a pool that should go elsewhere.
pub(crate) fn wanted(storage: &dyn Storage, pages: &crate::pages::Pages) -> Result<Vec<NamelessPage>, Error> {
    Ok(storage.pages_to_relocate(pages.pool(), PAGES_AT_ONCE)?)
}

impl Change<'_> {
    /// Writes pages of the table anew, and whatever stands above them.
    pub(crate) fn relocate(&mut self, pages: &[NamelessPage]) -> Result<(), Error> {
        let mut moving = BTreeMap::<u32, Moving>::new();
        for page in pages {
            let (series, first) = self.place(*page)?;
            let moving = moving.entry(series).or_default();
            moving.firsts.insert(first);
            moving.pages.insert(page.write);
        }
        for (number, moving) in &moving {
            self.relocate_series(*number, moving)?;
        }
        self.tell_edges()
    }

    /// Which series a page is of, and its first time.
    fn place(&self, page: NamelessPage) -> Result<(u32, i64), Error> {
        let at = PageAt { page: page.page, write: page.write };
        let payload = self.files.pages.read(self.storage, at)?;
        let Ok(leaf) = Leaf::new(&payload) else {
            return node::place(&payload, self.files).map_err(Error::nonsense("node"));
        };
        let mut points = Points::new(&[]);
        leaf.read_some(&mut points, (&self.state.kinds, &[])).map_err(Error::nonsense("leaf"))?;
        let first = points.times.first().ok_or(Error::Corrupt { what: "leaf" })?;
        Ok((leaf.series, *first))
    }

    fn relocate_series(&mut self, number: u32, moving: &Moving) -> Result<(), Error> {
        let entries: Vec<_> = self.state.series_mut(number)?.edge.entries().collect();
        let mut done = Vec::new();
        for (level, place, entry) in entries.iter().filter(|(_, _, entry)| moving.is_within(entry)) {
            if let Some(entries) = self.relocated(number, *level, entry, moving)? {
                done.push(Splice { series: number, level: *level as u8, at: *place as u32, removed: 1, entries });
            }
        }
        // From the newest on: the places of older ones stay what they were.
        done.into_iter().rev().try_for_each(|splice| self.splice(splice))?;
        (0..self.state.series_mut(number)?.edge.levels.len()).try_for_each(|level| self.promote(number, level))
    }

    /// What stands in the place of an entry when what moves has moved; none if nothing under it does.
    fn relocated(
        &mut self,
        number: u32,
        level: usize,
        entry: &Entry,
        moving: &Moving,
    ) -> Result<Option<Vec<Entry>>, Error> {
        let moves = moving.pages.contains(&entry.at.write);
        if level == 0 {
            if !moves {
                return Ok(None);
            }
            let payload = self.files.pages.read(self.storage, entry.at)?;
            let at = self.files.pages.write(self.storage, &payload)?;
            self.files.pages.free(self.storage, entry.at)?;
            return Ok(Some(Vec::from([Entry { at, ..entry.clone() }])));
        }
        let (mut entries, mut has_changed) = (Vec::new(), moves);
        for child in node::read(self.storage, self.files, (number, level), entry)? {
            let replaced = match moving.is_within(&child) {
                true => self.relocated(number, level - 1, &child, moving)?,
                false => None,
            };
            has_changed |= replaced.is_some();
            entries.extend(replaced.unwrap_or_else(|| Vec::from([child])));
        }
        if !has_changed {
            return Ok(None);
        }
        self.files.pages.free(self.storage, entry.at)?;
        self.write_nodes(number, level, &entries).map(Some)
    }
}
