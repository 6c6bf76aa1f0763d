//! BUF (6.1): keys and pointers of rows that fill no page of KEY or PTR yet, of all indexes of a table together.
//!
//! ```text
//! page: for each index  m keys of 10 bytes | m pointers of 0, 2 or 4 bytes      m rows, as many as there is room for
//! ```
//! The page in the making is in memory; a commit makes its rows durable in a journal of its own. While rows are inserted, copies
//! of the newest 16 pages are in memory, too: half of the paper's 64 KB, which queries need for other things.

use std::collections::VecDeque;

use super::bloom::Key;
use super::container::Container;
use super::nand::{Nand, PAGE_BYTES};

const KEY_BYTES: usize = size_of::<Key>();
/// Pages of which an insert has copies.
const PAGES_KEPT: usize = 16;

/// Who searches for keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    Insert,
    Query,
}

pub struct Buffer {
    indexes: usize,
    pointer_bytes: usize,
    pages: Container,
    /// The newest pages, the last one first.
    kept: VecDeque<Vec<u8>>,
    /// The rows of the page in the making: keys and pointers of all indexes.
    open: Vec<Vec<(Key, u32)>>,
}

impl Buffer {
    pub fn new(indexes: usize, pointer_bytes: usize) -> Self {
        let buffer =
            Self { indexes, pointer_bytes, pages: Container::default(), kept: VecDeque::new(), open: Vec::new() };
        assert!(buffer.page_rows() > 0, "a page has room for the entries of a row");
        buffer
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> usize {
        self.indexes * (KEY_BYTES + self.pointer_bytes)
    }

    fn page_rows(&self) -> usize {
        PAGE_BYTES / self.row_bytes()
    }

    fn strip_bytes(&self) -> usize {
        self.page_rows() * (KEY_BYTES + self.pointer_bytes)
    }

    /// Appends a row. Its number is that of the rows before it.
    pub fn push(&mut self, nand: &mut Nand, entries: Vec<(Key, u32)>) {
        self.open.push(entries);
        if self.open.len() == self.page_rows() {
            let mut bytes = Vec::new();
            for index in 0..self.indexes {
                self.open.iter().for_each(|row| bytes.extend(row[index].0));
                let pointers = self.open.iter().map(|row| row[index].1.to_le_bytes());
                pointers.for_each(|pointer| bytes.extend(&pointer[..self.pointer_bytes]));
            }
            self.pages.append(nand, &bytes);
            bytes.resize(PAGE_BYTES, 0);
            self.kept.truncate(PAGES_KEPT - 1);
            self.kept.push_front(bytes);
            self.open.clear();
        }
    }

    /// Lets go of what lies before a row.
    pub fn forget_before(&mut self, nand: &mut Nand, row: u64) {
        self.pages.forget_before(nand, row / self.page_rows() as u64);
    }

    pub fn reclaim(&mut self, nand: &mut Nand) {
        self.pages.reclaim(nand);
        self.kept.clear();
        self.open.clear();
    }

    /// Keys of some indexes from a row on, the newest first: `visit` is told the place of an index among them, a row and its key,
    /// and says whether to go on. Where it is all indexes, a page is transferred once.
    pub fn keys(
        &self,
        nand: &Nand,
        (by, indexes): (By, &[usize]),
        first: u64,
        mut visit: impl FnMut(usize, u64, &Key) -> bool,
    ) -> bool {
        let page_rows = self.page_rows() as u64;
        let closed = self.pages.pages() * page_rows;
        for (within, entries) in self.open.iter().enumerate().rev() {
            let row = closed + within as u64;
            if row < first {
                return true;
            }
            if !(0..indexes.len()).all(|place| visit(place, row, &entries[indexes[place]].0)) {
                return false;
            }
        }
        for page in (first / page_rows..self.pages.pages()).rev() {
            let strips = self.strips(nand, page, by, indexes);
            for within in (0..page_rows).rev().filter(|within| page * page_rows + within >= first) {
                for (place, strip) in strips.iter().enumerate() {
                    let key = &strip[within as usize * KEY_BYTES..][..KEY_BYTES];
                    if !visit(place, page * page_rows + within, key.try_into().expect("the bytes of a key")) {
                        return false;
                    }
                }
            }
        }
        true
    }

    fn strips(&self, nand: &Nand, page: u64, by: By, indexes: &[usize]) -> Vec<Vec<u8>> {
        let strip_bytes = self.strip_bytes();
        let (from, to) = (indexes[0] * strip_bytes, (indexes[indexes.len() - 1] + 1) * strip_bytes);
        let mut bytes = vec![0; to - from];
        let kept = self.kept.get((self.pages.pages() - 1 - page) as usize).filter(|_| by == By::Insert);
        if let Some(kept) = kept {
            bytes.copy_from_slice(&kept[from..to]);
        } else if self.pages.read(nand, page, from, &mut bytes) {
            // A searched key of each index is enciphered and compared; what it is not compared with is not deciphered.
            nand.cipher(indexes.len() * 16);
        }
        indexes.iter().map(|index| bytes[index * strip_bytes - from..][..strip_bytes].to_vec()).collect()
    }

    /// The pointer of an index at a row that is still here.
    pub fn pointer(&self, nand: &Nand, index: usize, row: u64) -> u64 {
        let page_rows = self.page_rows() as u64;
        let (page, within) = (row / page_rows, (row % page_rows) as usize);
        if page == self.pages.pages() {
            return u64::from(self.open[within][index].1);
        }
        let mut bytes = [0; 4];
        let offset = index * self.strip_bytes() + self.page_rows() * KEY_BYTES + within * self.pointer_bytes;
        self.pages.read(nand, page, offset, &mut bytes[..self.pointer_bytes]);
        nand.cipher(16);
        u64::from(u32::from_le_bytes(bytes))
    }
}
