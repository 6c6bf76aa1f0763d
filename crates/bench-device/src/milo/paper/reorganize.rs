//! Reorganization (section 5): everything is read once and written once, indexes of fresh rows are sorted in between, and what
//! was deleted and updated is worked out row by row before.

use super::container::Container;
use super::database::{Database, written};
use super::nand::{Nand, PAGE_BYTES};
use crate::milo::data::{self, Change, Data};
use crate::milo::figure7::TABLES;

/// Bytes of an entry that is sorted: number of the index, key, identifier.
const ENTRY_BYTES: usize = 1 + 10 + 4;

impl Database {
    /// Reorganizes into `data`, all rows as they now are; `changes` were made since the last time.
    pub fn reorganize(&mut self, data: &Data, changes: &[Change]) {
        let expanded = changes.iter().map(|change| self.expand(change)).sum::<u64>();
        self.sort(expanded as usize * ENTRY_BYTES);
        for table in 0..TABLES.len() {
            let keys = self.tables[table].fresh.pass(&self.nand) as usize;
            self.sort(keys * PAGE_BYTES);
            let stored = &self.tables[table];
            stored.rows.pass(&self.nand);
            stored.joins.iter().for_each(|joins| joins.pass(&self.nand));
            stored.sorted.iter().for_each(|index| index.pass(&self.nand));
            let new = written(&mut self.nand, data, table);
            let mut old = std::mem::replace(&mut self.tables[table], new);
            old.rows.reclaim(&mut self.nand);
            old.joins.iter_mut().for_each(|joins| joins.reclaim(&mut self.nand));
            old.sorted.into_iter().for_each(|index| index.reclaim(&mut self.nand));
            old.fresh.reclaim(&mut self.nand);
            old.ranges.reclaim(&mut self.nand);
        }
        std::mem::take(&mut self.changes).reclaim(&mut self.nand);
    }

    /// Finds what a change means for all indexes: the rows that join its row, and of a deleted one also all keys of each. How many
    /// entries that are.
    fn expand(&self, change: &Change) -> u64 {
        let (table, row, is_deleted) = match *change {
            Change::Delete { table, row } => (table, row, true),
            Change::Value { table, row, .. } => (table, row, false),
            Change::Filling { .. } => return 0,
        };
        let mut entries = 0;
        for other in (0..TABLES.len()).filter(|other| data::joined(*other).contains(&table)) {
            let rows = if other == table { vec![row] } else { self.joining(other, table, row) };
            for row in &rows {
                if is_deleted {
                    self.joins(other, *row).iter().for_each(|(joined, row)| _ = self.values(*joined, *row));
                    self.values(other, *row);
                    entries += self.tables[other].selections.len() as u64;
                } else {
                    // Its old value leaves and its new one comes.
                    entries += 2;
                }
            }
        }
        entries
    }

    /// Sorts so many bytes in runs of the whole memory: they are written and read once more.
    fn sort(&mut self, bytes: usize) {
        let (mut runs, page) = (Container::default(), [b's'; PAGE_BYTES]);
        for _ in 0..bytes.div_ceil(PAGE_BYTES) {
            runs.append(&mut self.nand, &page);
        }
        pass(&self.nand, &runs);
        runs.reclaim(&mut self.nand);
    }
}

fn pass(nand: &Nand, container: &Container) {
    (0..container.pages()).for_each(|page| _ = container.pass(nand, page));
    nand.cipher(container.pages() as usize * PAGE_BYTES);
}
