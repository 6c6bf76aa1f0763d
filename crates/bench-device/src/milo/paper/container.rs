//! A log container (section 3): pages that are written one behind the other, in blocks of its own, and reclaimed whole.

use std::collections::VecDeque;

use super::nand::{BLOCK_PAGES, Nand, PAGE_BYTES};

#[derive(Default)]
pub struct Container {
    blocks: VecDeque<u64>,
    /// Pages that were written, those that were given back among them, and how many those are.
    pages: u64,
    forgotten: u64,
}

impl Container {
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Appends a page, of which so many bytes say something.
    pub fn append(&mut self, nand: &mut Nand, bytes: &[u8]) -> u64 {
        if self.pages.is_multiple_of(BLOCK_PAGES) {
            self.blocks.push_back(nand.take_block());
        }
        let mut page = [0; PAGE_BYTES];
        page[..bytes.len()].copy_from_slice(bytes);
        self.pages += 1;
        nand.program(self.place(self.pages - 1), &page);
        nand.cipher(bytes.len());
        self.pages - 1
    }

    /// Reads within a page; whether anything was transferred.
    pub fn read(&self, nand: &Nand, page: u64, offset: usize, buffer: &mut [u8]) -> bool {
        nand.read(self.place(page), offset, buffer)
    }

    /// Reads a whole page that is not looked at again.
    pub fn pass(&self, nand: &Nand, page: u64) -> [u8; PAGE_BYTES] {
        let mut bytes = [0; PAGE_BYTES];
        nand.pass(self.place(page), 0, &mut bytes);
        bytes
    }

    /// Gives back the blocks that lie before a page.
    pub fn forget_before(&mut self, nand: &mut Nand, page: u64) {
        while self.forgotten + BLOCK_PAGES <= page {
            let block = self.blocks.pop_front().expect("blocks of pages that were written");
            nand.free_block(block);
            self.forgotten += BLOCK_PAGES;
        }
    }

    /// Gives all blocks back.
    pub fn reclaim(&mut self, nand: &mut Nand) {
        self.blocks.drain(..).for_each(|block| nand.free_block(block));
        *self = Self::default();
    }

    fn place(&self, page: u64) -> u64 {
        assert!((self.forgotten..self.pages).contains(&page), "a page that was written and is kept");
        self.blocks[((page - self.forgotten) / BLOCK_PAGES) as usize] * BLOCK_PAGES + page % BLOCK_PAGES
    }
}
