//! The whole contents of a medium at one moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Dice, Tearing};

/// Bytes that a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;

/// The whole contents of a medium. Pages are shared between images, so keeping thousands of them is cheap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    page_bytes: u32,
    blank: u8,
    pages: BTreeMap<u64, Arc<[u8]>>,
}

impl Image {
    /// Nothing but blank pages.
    pub fn blank(page_bytes: u32, blank: u8) -> Self {
        Self { page_bytes, blank, pages: BTreeMap::new() }
    }

    /// The image that a file of these bytes is; a last page that is not whole is filled with zeros.
    pub fn from_file(page_bytes: u32, bytes: &[u8]) -> Self {
        let mut image = Self::blank(page_bytes, 0);
        for (number, part) in (0..).zip(bytes.chunks(page_bytes as usize)) {
            let mut page = vec![0; page_bytes as usize];
            page[..part.len()].copy_from_slice(part);
            image.set(number, &page);
        }
        image
    }

    /// The bytes of a file with these contents.
    pub fn to_file(&self) -> Vec<u8> {
        let pages = self.pages.last_key_value().map_or(0, |(number, _)| number + 1);
        (0..pages).flat_map(|number| self.page(number).to_vec()).collect()
    }

    /// The bytes of a page.
    pub fn page(&self, number: u64) -> Arc<[u8]> {
        match self.pages.get(&number) {
            Some(page) => page.clone(),
            None => vec![self.blank; self.page_bytes as usize].into(),
        }
    }

    /// Whether the page was programmed since its last erase.
    pub fn holds(&self, number: u64) -> bool {
        self.pages.contains_key(&number)
    }

    /// The numbers of all pages that were.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.pages.keys().copied()
    }

    /// Replaces a page.
    pub fn set(&mut self, number: u64, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.page_bytes as usize, "pages are written whole");
        self.pages.insert(number, bytes.into());
    }

    /// Makes a page blank.
    pub fn clear(&mut self, number: u64) {
        self.pages.remove(&number);
    }

    /// Takes one page as it is in another image.
    pub fn take(&mut self, number: u64, from: &Image) {
        match from.pages.get(&number) {
            Some(page) => _ = self.pages.insert(number, page.clone()),
            None => self.clear(number),
        }
    }

    /// Turns one bit over, counted from the start of the page.
    pub fn flip(&mut self, number: u64, bit: u64) {
        let mut bytes = self.page(number).to_vec();
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        self.set(number, &bytes);
    }

    /// The numbers of all pages that differ from another image.
    pub fn differing(&self, other: &Image) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.numbers().chain(other.numbers()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.retain(|&number| self.page(number) != other.page(number));
        numbers
    }

    /// Turns `count` bits of a page over.
    pub(crate) fn damage(&mut self, number: u64, count: u64, dice: &mut Dice) {
        for _ in 0..count {
            self.flip(number, dice.below(u64::from(self.page_bytes) * 8));
        }
    }

    /// A page part of the way from what it was to what it was to become.
    pub(crate) fn tear(&mut self, number: u64, new: Option<&[u8]>, tearing: Tearing, start: u64, dice: &mut Dice) {
        let old = self.page(number);
        let blank;
        let new_bytes = match new {
            Some(bytes) => bytes,
            None => {
                blank = vec![self.blank; self.page_bytes as usize];
                &blank
            }
        };
        let mixed: Vec<u8> = match tearing {
            Tearing::Untouched => return,
            Tearing::Complete | Tearing::Fickle => match new {
                Some(bytes) => return self.set(number, bytes),
                None => return self.clear(number),
            },
            Tearing::Byte(byte) => {
                let kept = u64::from(byte).saturating_sub(start).min(old.len() as u64) as usize;
                new_bytes[..kept].iter().chain(&old[kept..]).copied().collect()
            }
            Tearing::Bits | Tearing::Unreadable => old
                .iter()
                .zip(new_bytes)
                .map(|(old, new)| {
                    let taken = dice.roll() as u8;
                    (old & !taken) | (new & taken)
                })
                .collect(),
        };
        // An erase that got all the way through a page erased it; a program that changed no bit did not begin.
        let is_blank = mixed.iter().all(|byte| *byte == self.blank);
        if is_blank && (new.is_none() || !self.holds(number)) {
            self.clear(number);
        } else {
            self.set(number, &mixed);
        }
    }

    /// A page some of whose sectors are those of another version of it.
    pub(crate) fn mix_sectors(&mut self, number: u64, other: &[u8], dice: &mut Dice) {
        let mut bytes = self.page(number).to_vec();
        for (sector, theirs) in bytes.chunks_mut(SECTOR_BYTES).zip(other.chunks(SECTOR_BYTES)) {
            if dice.once_in(2) {
                sector.copy_from_slice(theirs);
            }
        }
        self.set(number, &bytes);
    }
}
