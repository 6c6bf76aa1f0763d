//! Rows of a fixed length (section 3.1): a row's number is its place. Those that fill no page yet are in memory, and durable in
//! a commit's page.

use super::container::Container;
use super::nand::{Nand, PAGE_BYTES};

pub struct Records {
    record_bytes: usize,
    container: Container,
    count: u64,
    tail: Vec<u8>,
}

impl Records {
    pub fn new(record_bytes: usize) -> Self {
        Self { record_bytes, container: Container::default(), count: 0, tail: Vec::new() }
    }

    fn in_page(&self) -> usize {
        PAGE_BYTES / self.record_bytes
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn record_bytes(&self) -> usize {
        self.record_bytes
    }

    pub fn push(&mut self, nand: &mut Nand, record: &[u8]) {
        assert_eq!(record.len(), self.record_bytes, "records have one length");
        self.tail.extend(record);
        self.count += 1;
        if self.tail.len() == self.in_page() * self.record_bytes {
            self.container.append(nand, &std::mem::take(&mut self.tail));
        }
    }

    /// Reads a piece of a record, and deciphers what it had to transfer.
    pub fn read(&self, nand: &Nand, record: u64, offset: usize, buffer: &mut [u8]) {
        let (page, within) = (record / self.in_page() as u64, record as usize % self.in_page());
        let at = within * self.record_bytes + offset;
        if page == self.container.pages() {
            buffer.copy_from_slice(&self.tail[at..at + buffer.len()]);
        } else if self.container.read(nand, page, at, buffer) {
            nand.cipher(buffer.len());
        }
    }

    /// Reads everything once.
    pub fn pass(&self, nand: &Nand) {
        for page in 0..self.container.pages() {
            self.container.pass(nand, page);
            nand.cipher(self.in_page() * self.record_bytes);
        }
    }

    pub fn reclaim(&mut self, nand: &mut Nand) {
        self.container.reclaim(nand);
        (self.count, self.tail) = (0, Vec::new());
    }
}
