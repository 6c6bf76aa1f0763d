//! A table in numbers: for people who look at one.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use counterfoil_log::{NamelessPage, PoolId, View};

use crate::tables::{SeriesTables, TableNumber};
use crate::{Error, node};

/// Pages of which a survey tells where they are.
const PAGES_TOLD_MAX: usize = 1 << 16;

/// A page of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Page {
    /// The number of its write.
    pub write: u64,
    /// Where it is in the pool.
    pub page: u64,
    /// How high it stands in its tree: 0 for a leaf.
    pub level: usize,
}

impl From<Page> for NamelessPage {
    fn from(page: Page) -> Self {
        NamelessPage { page: page.page, write: page.write }
    }
}

/// A table in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Its pool.
    pub pool: PoolId,
    /// Series it has.
    pub series: usize,
    /// Points in leaves, those included that late points take the place of.
    pub points_in_leaves: u64,
    /// Points that no leaf has yet.
    pub open_points: u64,
    /// Changes to what leaves cover, not yet made there.
    pub late_points: u64,
    /// Pages by their height, leaves first.
    pub pages: Vec<u64>,
    /// Bytes of the journal.
    pub journal_bytes: u64,
    /// Bytes of the names of series.
    pub name_bytes: u64,
    /// The pages written last, 65,536 at most, in the order of their writes.
    pub newest: Vec<Page>,
}

impl SeriesTables {
    /// A table in numbers. Reads all its nodes and no leaf; memory does not grow with the table.
    ///
    /// # Errors
    /// As [`SeriesTables::find`].
    pub fn survey(&self, view: &dyn View, table: TableNumber) -> Result<Survey, Error> {
        let (files, state) = self.open(view, table)?;
        let mut pages = alloc::vec![0; 1];
        let mut newest = BinaryHeap::new();
        node::visit(view, &files, &state, &mut |level, entry| {
            pages.resize(pages.len().max(level + 1), 0);
            pages[level] += 1;
            newest.push(Reverse(Page { write: entry.at.write, page: entry.at.page, level }));
            if newest.len() > PAGES_TOLD_MAX {
                newest.pop();
            }
            Ok(())
        })?;
        let all = || state.series.iter();
        Ok(Survey {
            pool: files.pages.pool(),
            series: state.names.len(),
            points_in_leaves: all().map(|series| series.edge.points()).sum(),
            open_points: all().map(|series| series.tail.len() as u64).sum(),
            late_points: all().map(|series| series.late.len() as u64).sum(),
            pages,
            journal_bytes: state.bytes,
            name_bytes: state.names.bytes(),
            newest: newest.into_sorted_vec().into_iter().rev().map(|Reverse(page)| page).collect(),
        })
    }
}
