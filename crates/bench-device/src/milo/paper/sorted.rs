//! TSelect as a reorganization leaves it (4.3.2).
//!
//! ```text
//! lists     identifiers of 4 bytes, ascending for each key, key by key without a gap
//! entries   key 10 | where its list ends 4      sorted, 146 a page
//! levels    the highest key of each page below, 204 a page, up to one page
//! ```

use super::bloom::Key;
use super::container::Container;
use super::nand::{Nand, PAGE_BYTES};

const ID_BYTES: usize = 4;
const KEY_BYTES: usize = size_of::<Key>();
const ENTRY_BYTES: usize = KEY_BYTES + 4;
const PAGE_IDS: usize = PAGE_BYTES / ID_BYTES;
const PAGE_ENTRIES: usize = PAGE_BYTES / ENTRY_BYTES;
const FANOUT: usize = PAGE_BYTES / KEY_BYTES;

#[derive(Default)]
pub struct Sorted {
    lists: Container,
    entries: Container,
    entry_count: usize,
    /// From the page above entries up to the root.
    levels: Vec<Container>,
}

impl Sorted {
    /// Writes an index of entries that are sorted by key and row.
    pub fn build(nand: &mut Nand, sorted: impl Iterator<Item = (Key, u32)>) -> Self {
        let mut index = Self::default();
        let (mut ids, mut entries, mut ids_before) = (Vec::new(), Vec::<(Key, u32)>::new(), 0u32);
        for (key, row) in sorted {
            ids.extend(row.to_le_bytes());
            ids_before += 1;
            match entries.last_mut().filter(|(last, _)| *last == key) {
                Some((_, end)) => *end = ids_before,
                None => entries.push((key, ids_before)),
            }
            if ids.len() == PAGE_BYTES {
                index.lists.append(nand, &std::mem::take(&mut ids));
            }
        }
        if !ids.is_empty() {
            index.lists.append(nand, &ids);
        }
        index.entry_count = entries.len();
        let mut highest = Vec::new();
        for page in entries.chunks(PAGE_ENTRIES) {
            let bytes = page.iter().flat_map(|(key, end)| key.iter().copied().chain(end.to_le_bytes()));
            index.entries.append(nand, &bytes.collect::<Vec<u8>>());
            highest.extend(page.last().map(|(key, _)| *key));
        }
        while highest.len() > 1 {
            let mut level = Container::default();
            let mut above = Vec::new();
            for page in highest.chunks(FANOUT) {
                level.append(nand, &page.concat());
                above.extend(page.last().copied());
            }
            index.levels.push(level);
            highest = above;
        }
        index
    }

    /// Rows with keys from one to another, the newest first.
    pub fn lookup(&self, nand: &Nand, from: &Key, to: &Key) -> Vec<u64> {
        let Some((start, end)) = self.ids(nand, from, to) else { return Vec::new() };
        let mut rows = Vec::new();
        for page in (start as usize / PAGE_IDS..(end as usize).div_ceil(PAGE_IDS)).rev() {
            let first = page * PAGE_IDS;
            let within = (start as usize).max(first) - first..(end as usize).min(first + PAGE_IDS) - first;
            let mut bytes = vec![0; within.len() * ID_BYTES];
            self.lists.read(nand, page as u64, within.start * ID_BYTES, &mut bytes);
            nand.cipher(bytes.len());
            let ids = bytes.chunks_exact(ID_BYTES).rev();
            rows.extend(ids.map(|id| u64::from(u32::from_le_bytes([id[0], id[1], id[2], id[3]]))));
        }
        // Lists of several keys are merged.
        rows.sort_unstable_by(|a, b| b.cmp(a));
        rows
    }

    /// Where the lists of keys from one to another begin and end.
    fn ids(&self, nand: &Nand, from: &Key, to: &Key) -> Option<(u32, u32)> {
        let mut place = self.first_at_least(nand, from)?;
        let start = if place == 0 { 0 } else { self.entry(nand, place - 1).1 };
        let mut end = start;
        while place < self.entry_count {
            let (key, list_end) = self.entry(nand, place);
            if key > *to {
                break;
            }
            (end, place) = (list_end, place + 1);
        }
        (end > start).then_some((start, end))
    }

    /// The first entry whose key is not below a key.
    fn first_at_least(&self, nand: &Nand, sought: &Key) -> Option<usize> {
        let mut page = 0;
        for (height, level) in self.levels.iter().enumerate().rev() {
            let mut bytes = [0; PAGE_BYTES];
            if level.read(nand, page as u64, 0, &mut bytes) {
                nand.cipher(PAGE_BYTES);
            }
            // A key begins with no zero, what is behind the last key does.
            let keys = bytes.chunks_exact(KEY_BYTES).take_while(|key| key[0] != 0);
            page = page * FANOUT + keys.take_while(|key| *key < sought).count();
            if page >= self.pages_below(height) {
                return None;
            }
        }
        let (mut low, mut high) = (page * PAGE_ENTRIES, self.entry_count.min((page + 1) * PAGE_ENTRIES));
        while low < high {
            let middle = (low + high) / 2;
            if self.entry(nand, middle).0 < *sought { low = middle + 1 } else { high = middle }
        }
        (low < self.entry_count).then_some(low)
    }

    /// Pages below a level.
    fn pages_below(&self, height: usize) -> usize {
        let below = if height == 0 { &self.entries } else { &self.levels[height - 1] };
        below.pages() as usize
    }

    fn entry(&self, nand: &Nand, place: usize) -> (Key, u32) {
        let mut bytes = [0; ENTRY_BYTES];
        // A sector that was looked at stays in memory.
        if self.entries.read(nand, (place / PAGE_ENTRIES) as u64, place % PAGE_ENTRIES * ENTRY_BYTES, &mut bytes) {
            nand.cipher(PAGE_BYTES / 4);
        }
        let (key, end) = bytes.split_at(KEY_BYTES);
        (key.try_into().expect("ten bytes"), u32::from_le_bytes(end.try_into().expect("four bytes")))
    }

    /// Reads everything once.
    pub fn pass(&self, nand: &Nand) {
        for container in [&self.lists, &self.entries] {
            (0..container.pages()).for_each(|page| _ = container.pass(nand, page));
            nand.cipher(container.pages() as usize * PAGE_BYTES);
        }
    }

    pub fn reclaim(mut self, nand: &mut Nand) {
        self.lists.reclaim(nand);
        self.entries.reclaim(nand);
        self.levels.iter_mut().for_each(|level| level.reclaim(nand));
    }
}
