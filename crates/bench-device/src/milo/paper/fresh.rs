//! TSelect as it is before a reorganization (4.3.1): the indexes of one table, which are filled together.

use std::collections::HashMap;

use super::bloom::{self, FILTER_BYTES, Key, PAGE_FILTERS, PAGE_KEYS};
use super::buffer::{Buffer, By};
use super::container::Container;
use super::nand::{Nand, PAGE_BYTES};
use super::pointers::Pointers;

/// Rows that a page of BF speaks of.
pub const FILTERED_ROWS: u64 = PAGE_KEYS * PAGE_FILTERS;
const ENTRY_BYTES: usize = 10;

/// What there is beside KEY (7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Nothing.
    FullScan,
    /// BF.
    BloomScan,
    /// BF and PTR, and chains are never broken.
    Skip,
    /// BF and PTR; a chain goes on where no more than so many pages of BF, beside that of the row itself, had to be read.
    BoundedSkip(u64),
}

impl Scheme {
    fn has_filters(self) -> bool {
        self != Scheme::FullScan
    }

    /// Up to which distance rows are chained.
    fn pointers(self) -> Option<Pointers> {
        match self {
            Scheme::FullScan | Scheme::BloomScan => None,
            Scheme::Skip => Some(Pointers::up_to(u64::MAX)),
            Scheme::BoundedSkip(pages) => Some(Pointers::up_to((pages + 1) * FILTERED_ROWS)),
        }
    }

    /// The first page of BF that is asked for the row before a row.
    fn first_page(self, row: u64) -> u64 {
        match self {
            Scheme::BoundedSkip(pages) => (row / FILTERED_ROWS).saturating_sub(pages),
            _ => 0,
        }
    }
}

/// An index.
#[derive(Default)]
struct Index {
    keys: Container,
    filters: Container,
    pointers: Container,
    /// The last row of each key, which only loading may look at.
    last: HashMap<Key, u64>,
}

/// The indexes of a table.
pub struct Fresh {
    scheme: Scheme,
    rows: u64,
    indexes: Vec<Index>,
    buffer: Buffer,
    /// Filters that fill no page of BF yet, index by index, and the page where they begin.
    waiting: Container,
    waiting_at: u64,
}

impl Fresh {
    pub fn new(indexes: usize, scheme: Scheme) -> Self {
        let buffer = Buffer::new(indexes, scheme.pointers().map_or(0, Pointers::bytes));
        let indexes = std::iter::repeat_with(Index::default).take(indexes).collect();
        Self { scheme, rows: 0, indexes, buffer, waiting: Container::default(), waiting_at: 0 }
    }

    /// Bytes that a commit of a row makes durable of it.
    pub fn row_bytes(&self) -> usize {
        self.buffer.row_bytes()
    }

    /// Reads all that is to be sorted anew: KEY. How many pages that are.
    pub fn pass(&self, nand: &Nand) -> u64 {
        let pass = |index: &Index| {
            (0..index.keys.pages()).for_each(|page| _ = index.keys.pass(nand, page));
            index.keys.pages()
        };
        let pages = self.indexes.iter().map(pass).sum();
        nand.cipher(pages as usize * PAGE_BYTES);
        pages
    }

    /// Gives everything back.
    pub fn reclaim(mut self, nand: &mut Nand) {
        for index in &mut self.indexes {
            index.keys.reclaim(nand);
            index.filters.reclaim(nand);
            index.pointers.reclaim(nand);
        }
        self.buffer.reclaim(nand);
        self.waiting.reclaim(nand);
    }

    /// Appends a row with its key in each index.
    pub fn insert(&mut self, nand: &mut Nand, keys: &[Key]) {
        let before = match self.scheme.pointers() {
            Some(_) => self.before(nand, keys),
            None => vec![None; keys.len()],
        };
        self.append(nand, keys, &before);
    }

    /// Appends a row as [`Fresh::insert`] does, and leaves the same behind, without searching for the rows before.
    pub fn load(&mut self, nand: &mut Nand, keys: &[Key]) {
        let (row, first) = (self.rows, self.scheme.first_page(self.rows) * FILTERED_ROWS);
        let is_chained = self.scheme.pointers().is_some();
        let last =
            |(index, key): (&mut Index, &Key)| index.last.insert(*key, row).filter(|last| is_chained && *last >= first);
        let before: Vec<Option<u64>> = self.indexes.iter_mut().zip(keys).map(last).collect();
        self.append(nand, keys, &before);
    }

    fn append(&mut self, nand: &mut Nand, keys: &[Key], before: &[Option<u64>]) {
        let distance = |before: &Option<u64>| before.map_or(0, |before| (self.rows - before) as u32);
        let entries = keys.iter().zip(before).map(|(key, before)| (*key, distance(before))).collect();
        self.buffer.push(nand, entries);
        self.rows += 1;
        if self.rows.is_multiple_of(PAGE_KEYS) {
            self.fill_keys(nand);
        }
        let page_pointers = self.scheme.pointers().map(Pointers::in_page);
        if page_pointers.is_some_and(|pointers| self.rows.is_multiple_of(pointers)) {
            self.fill_pointers(nand);
        }
        let first = page_pointers.map_or(u64::MAX, |pointers| self.rows / pointers * pointers);
        self.buffer.forget_before(nand, first.min(self.first_waiting()));
    }

    /// The first row whose keys fill no page yet.
    fn first_waiting(&self) -> u64 {
        self.rows / PAGE_KEYS * PAGE_KEYS
    }

    fn all(&self) -> Vec<usize> {
        (0..self.indexes.len()).collect()
    }

    /// Writes a page of KEY for each index, and its filter.
    fn fill_keys(&mut self, nand: &mut Nand) {
        let mut keys: Vec<Vec<Key>> = vec![Vec::new(); self.indexes.len()];
        let first = self.rows - PAGE_KEYS;
        self.buffer.keys(nand, (By::Insert, &self.all()), first, |index, _, key| {
            keys[index].push(*key);
            true
        });
        keys.iter_mut().for_each(|keys| keys.reverse());
        let keeps_last = self.scheme.pointers().is_some();
        for (number, (index, keys)) in self.indexes.iter_mut().zip(&keys).enumerate() {
            index.keys.append(nand, &key_page(secret(number, first / PAGE_KEYS), keys, keeps_last));
        }
        if self.scheme.has_filters() {
            let filters = keys.iter().map(|keys| bloom::filter(keys.iter()).to_vec()).collect();
            self.fill_filters(nand, filters);
        }
    }

    /// How many filters of each index fill no page of BF.
    fn filters_waiting(&self) -> u64 {
        self.rows / PAGE_KEYS % PAGE_FILTERS
    }

    fn fill_filters(&mut self, nand: &mut Nand, newest: Vec<Vec<u8>>) {
        let before = (self.rows / PAGE_KEYS - 1) % PAGE_FILTERS;
        let of_index = |(index, newest): (usize, Vec<u8>)| {
            let mut filters = self.waiting_filters(nand, index, before);
            filters.extend(newest);
            filters
        };
        let filters: Vec<Vec<u8>> = newest.into_iter().enumerate().map(of_index).collect();
        self.waiting_at = self.waiting.pages();
        if before + 1 == PAGE_FILTERS {
            for (index, filters) in self.indexes.iter_mut().zip(&filters) {
                index.filters.append(nand, filters);
            }
        } else {
            for page in filters.concat().chunks(PAGE_BYTES) {
                self.waiting.append(nand, page);
            }
        }
        self.waiting.forget_before(nand, self.waiting_at);
    }

    /// The filters of an index, of which there are `count`, that fill no page of BF.
    fn waiting_filters(&self, nand: &Nand, index: usize, count: u64) -> Vec<u8> {
        let mut filters = vec![0; count as usize * FILTER_BYTES];
        let (mut at, mut done) = (index * filters.len(), 0);
        while done < filters.len() {
            let (page, offset) = (self.waiting_at + (at / PAGE_BYTES) as u64, at % PAGE_BYTES);
            let bytes = (PAGE_BYTES - offset).min(filters.len() - done);
            if self.waiting.read(nand, page, offset, &mut filters[done..done + bytes]) {
                nand.cipher(bytes.div_ceil(FILTER_BYTES) * bloom::LOOKED_AT_BYTES);
            }
            (at, done) = (at + bytes, done + bytes);
        }
        filters
    }

    /// Writes a page of PTR for each index.
    fn fill_pointers(&mut self, nand: &mut Nand) {
        let Some(pointers) = self.scheme.pointers() else { return };
        for number in 0..self.indexes.len() {
            let rows = self.rows - pointers.in_page()..self.rows;
            let distances: Vec<u32> = rows.map(|row| self.buffer.pointer(nand, number, row) as u32).collect();
            self.indexes[number].pointers.append(nand, &pointers.page(&distances));
        }
    }

    /// For each index the row before the next one with a key, as far as it is looked for.
    fn before(&self, nand: &Nand, keys: &[Key]) -> Vec<Option<u64>> {
        let mut found = vec![None; keys.len()];
        let mut missing = keys.len();
        self.buffer.keys(nand, (By::Insert, &self.all()), self.first_waiting(), |index, row, key| {
            if found[index].is_none() && *key == keys[index] {
                (found[index], missing) = (Some(row), missing - 1);
            }
            missing > 0
        });
        let first_page = self.scheme.first_page(self.rows);
        for (number, key) in keys.iter().enumerate().filter(|_| missing > 0) {
            if found[number].is_none() {
                found[number] = self.in_filters(nand, number, key, (first_page, self.rows), &mut last_of);
            }
        }
        found
    }

    /// Rows with a key, the newest first.
    pub fn lookup(&self, nand: &Nand, index: usize, key: &Key) -> Vec<u64> {
        let mut rows = Vec::new();
        match self.scheme {
            Scheme::FullScan | Scheme::BloomScan => self.scan(nand, index, key, &mut rows),
            Scheme::Skip | Scheme::BoundedSkip(_) => self.follow(nand, index, key, &mut rows),
        }
        rows
    }

    fn scan(&self, nand: &Nand, index: usize, key: &Key, rows: &mut Vec<u64>) {
        self.buffer.keys(nand, (By::Query, &[index]), self.first_waiting(), |_, row, found| {
            rows.extend((found == key).then_some(row));
            true
        });
        if self.scheme.has_filters() {
            self.in_filters(nand, index, key, (0, self.rows), &mut |found| {
                rows.extend(found.iter().rev());
                None
            });
        } else {
            let pages = (0..self.indexes[index].keys.pages()).rev();
            pages.for_each(|page| rows.extend(self.in_key_page(nand, index, page, key).iter().rev()));
        }
    }

    fn follow(&self, nand: &Nand, index: usize, key: &Key, rows: &mut Vec<u64>) {
        let mut newest = None;
        self.buffer.keys(nand, (By::Query, &[index]), self.first_waiting(), |_, row, found| {
            newest = (found == key).then_some(row);
            newest.is_none()
        });
        let mut next = newest.or_else(|| self.in_filters(nand, index, key, (0, self.rows), &mut last_of));
        let mut cell = None;
        while let Some(row) = next {
            rows.push(row);
            next = match self.pointer(nand, index, row, &mut cell) {
                0 => {
                    let skipped_to = self.scheme.first_page(row);
                    self.in_filters(nand, index, key, (0, skipped_to * FILTERED_ROWS), &mut last_of)
                }
                distance => Some(row - distance),
            };
        }
    }

    fn pointer(&self, nand: &Nand, index: usize, row: u64, cell: &mut Option<u64>) -> u64 {
        let Some(pointers) = self.scheme.pointers() else { return 0 };
        let container = &self.indexes[index].pointers;
        if row >= container.pages() * pointers.in_page() {
            return self.buffer.pointer(nand, index, row);
        }
        let (distance, found) = pointers.read(container, nand, row);
        if cell.replace(found) != Some(found) {
            nand.cipher(16);
        }
        distance
    }

    /// Asks the filters of pages of KEY before a row, the newest first, down to a page of BF. `take` says of the rows with the
    /// key on a page whether one of them ends the search.
    fn in_filters(
        &self,
        nand: &Nand,
        index: usize,
        key: &Key,
        (first_page, before): (u64, u64),
        take: &mut dyn FnMut(&[u64]) -> Option<u64>,
    ) -> Option<u64> {
        let whole = self.rows / FILTERED_ROWS;
        if before > whole * FILTERED_ROWS && self.filters_waiting() > 0 {
            let filters = self.waiting_filters(nand, index, self.filters_waiting());
            let found = self.in_filter_page(nand, (index, whole), key, &filters, take);
            if found.is_some() {
                return found;
            }
        }
        let mut pages = (first_page..whole.min(before.div_ceil(FILTERED_ROWS))).rev();
        pages.find_map(|page| {
            let filters = self.indexes[index].filters.pass(nand, page);
            nand.cipher(PAGE_FILTERS as usize * bloom::LOOKED_AT_BYTES);
            self.in_filter_page(nand, (index, page), key, &filters[..PAGE_FILTERS as usize * FILTER_BYTES], take)
        })
    }

    fn in_filter_page(
        &self,
        nand: &Nand,
        (index, page): (usize, u64),
        key: &Key,
        filters: &[u8],
        take: &mut dyn FnMut(&[u64]) -> Option<u64>,
    ) -> Option<u64> {
        let mut filters = filters.chunks_exact(FILTER_BYTES).enumerate().rev();
        filters.find_map(|(place, filter)| {
            let page = page * PAGE_FILTERS + place as u64;
            let found = bloom::may_hold(filter, key).then(|| self.in_key_page(nand, index, page, key));
            found.and_then(|found| take(&found))
        })
    }

    /// The rows with a key on a page of KEY: the last one alone where they are chained.
    fn in_key_page(&self, nand: &Nand, index: usize, page: u64, key: &Key) -> Vec<u64> {
        let bytes = self.indexes[index].keys.pass(nand, page);
        let sought = bloom::under(secret(index, page), key).to_le_bytes();
        let entries = bytes.chunks_exact(ENTRY_BYTES).filter(|entry| entry[..8] == sought);
        let rows: Vec<u64> =
            entries.map(|entry| page * PAGE_KEYS + u64::from(u16::from_le_bytes([entry[8], entry[9]]))).collect();
        // The searched key, and the seal of what was found; of all keys where nothing was, or where one may lack.
        let is_all = rows.is_empty() || self.scheme.pointers().is_none();
        nand.cipher(if is_all { 16 + PAGE_BYTES } else { 32 });
        rows
    }
}

fn last_of(rows: &[u64]) -> Option<u64> {
    rows.last().copied()
}

fn secret(index: usize, page: u64) -> u64 {
    (index as u64) << 40 | page
}

/// A page of KEY: of equal keys the last one alone, where the others are chained to it.
fn key_page(secret: u64, keys: &[Key], keeps_last: bool) -> Vec<u8> {
    let is_kept = |place: usize| !keeps_last || !keys[place + 1..].contains(&keys[place]);
    let entry = |place: usize| {
        let key = bloom::under(secret, &keys[place]).to_le_bytes();
        key.into_iter().chain((place as u16).to_le_bytes())
    };
    (0..keys.len()).filter(|place| is_kept(*place)).flat_map(entry).collect()
}

#[cfg(test)]
impl Fresh {
    /// Lets loading know of a row that was inserted.
    pub fn note(&mut self, keys: &[Key]) {
        let row = self.rows - 1;
        self.indexes.iter_mut().zip(keys).for_each(|(index, key)| _ = index.last.insert(*key, row));
    }

    /// All pointers of the first index.
    pub fn chain(&self, nand: &Nand) -> Vec<u64> {
        (0..self.rows).map(|row| self.pointer(nand, 0, row, &mut None)).collect()
    }
}
