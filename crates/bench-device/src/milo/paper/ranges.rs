//! A bitmap index for ranges (7.4, after Chan and Ioannidis): numbers in two digits, each encoded by range, so that any range asks three
//! bitmaps.
//!
//! ```text
//! groups    448 rows: 36 bitmaps of 56 bytes, in one page
//! bitmaps   16,128 rows: 36 pages of one bitmap each, once there are 36 groups
//! ```

use super::container::Container;
use super::nand::Nand;

const BASE: u64 = 19;
/// Bitmaps of a digit: that it is at most 0, 1, ... 17. It is always at most 18.
const DIGIT_BITMAPS: usize = BASE as usize - 1;
const BITMAPS: usize = 2 * DIGIT_BITMAPS;
const GROUP_BYTES: usize = 56;
const GROUP_ROWS: usize = GROUP_BYTES * 8;
/// Groups that become a page of each bitmap.
const GROUPS: u64 = 36;

/// What is asked of the digits of a number above another one.
struct Asked {
    high: usize,
    low: usize,
}

#[derive(Default)]
pub struct Ranges {
    bitmaps: Container,
    groups: Container,
    /// Groups that have become bitmaps.
    folded: u64,
    open: Vec<u64>,
    rows: u64,
}

impl Ranges {
    pub fn push(&mut self, nand: &mut Nand, number: u64) {
        assert!(number < BASE * BASE, "numbers have two digits");
        self.open.push(number);
        self.rows += 1;
        if self.open.len() == GROUP_ROWS {
            let bitmaps = (0..BITMAPS).flat_map(|bitmap| packed(&self.open, bitmap));
            self.groups.append(nand, &bitmaps.collect::<Vec<u8>>());
            self.open.clear();
            if self.groups.pages() - self.folded == GROUPS {
                self.fold(nand);
            }
        }
    }

    fn fold(&mut self, nand: &mut Nand) {
        let pages: Vec<_> = (self.folded..self.groups.pages()).map(|page| self.groups.pass(nand, page)).collect();
        for bitmap in 0..BITMAPS {
            let bits = pages.iter().flat_map(|page| page[bitmap * GROUP_BYTES..][..GROUP_BYTES].to_vec());
            self.bitmaps.append(nand, &bits.collect::<Vec<u8>>());
        }
        self.folded = self.groups.pages();
        self.groups.forget_before(nand, self.folded);
    }

    /// Rows whose number is above this one, the newest first.
    pub fn above(&self, nand: &Nand, number: u64) -> Vec<u64> {
        let number = number.min(BASE * BASE - 1);
        let asked = Asked { high: (number / BASE) as usize, low: (number % BASE) as usize };
        let mut rows = Vec::new();
        for set in 0..self.folded / GROUPS {
            let read = |bitmap: usize| {
                let page = self.bitmaps.pass(nand, set * BITMAPS as u64 + bitmap as u64);
                nand.cipher(GROUPS as usize * GROUP_BYTES);
                page[..GROUPS as usize * GROUP_BYTES].to_vec()
            };
            asked.rows(read, set * GROUPS * GROUP_ROWS as u64, &mut rows);
        }
        for group in self.folded..self.groups.pages() {
            let read = |bitmap: usize| {
                let mut bits = vec![0; GROUP_BYTES];
                self.groups.read(nand, group, bitmap * GROUP_BYTES, &mut bits);
                nand.cipher(GROUP_BYTES);
                bits
            };
            asked.rows(read, group * GROUP_ROWS as u64, &mut rows);
        }
        let first_open = self.rows - self.open.len() as u64;
        rows.extend((first_open..).zip(&self.open).filter(|(_, open)| **open > number).map(|(row, _)| row));
        rows.reverse();
        rows
    }

    pub fn reclaim(mut self, nand: &mut Nand) {
        self.bitmaps.reclaim(nand);
        self.groups.reclaim(nand);
    }
}

impl Asked {
    fn rows(&self, read: impl Fn(usize) -> Vec<u8>, first: u64, rows: &mut Vec<u64>) {
        let digit = |base: usize, digit: Option<usize>| match digit {
            Some(digit) if digit < DIGIT_BITMAPS => Some(read(base + digit)),
            _ => None,
        };
        let at_most = digit(0, Some(self.high));
        let below = digit(0, self.high.checked_sub(1));
        let low = digit(DIGIT_BITMAPS, Some(self.low));
        let bytes = [&at_most, &below, &low].into_iter().flatten().map(Vec::len).next().unwrap_or(0);
        for byte in 0..bytes {
            let at_most = at_most.as_ref().map_or(0xFF, |bits| bits[byte]);
            let is_below = below.as_ref().map_or(0, |bits| bits[byte]);
            let is_low = low.as_ref().map_or(0xFF, |bits| bits[byte]);
            let above = !at_most | (at_most & !is_below & !is_low);
            rows.extend((0..8).filter(|bit| above & 1 << bit != 0).map(|bit| first + byte as u64 * 8 + bit));
        }
    }
}

/// The bits of a bitmap.
fn packed(numbers: &[u64], bitmap: usize) -> Vec<u8> {
    let digit = |number: u64| if bitmap < DIGIT_BITMAPS { number / BASE } else { number % BASE };
    let is_set = |number: &u64| digit(*number) <= (bitmap % DIGIT_BITMAPS) as u64;
    let byte = |numbers: &[u64]| {
        let bits = numbers.iter().enumerate().filter(|(_, number)| is_set(number));
        bits.fold(0u8, |byte, (place, _)| byte | 1 << place)
    };
    numbers.chunks(8).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use counterfoil_flash_sim::Dice;

    use super::*;

    #[test]
    fn ranges_are_what_looking_at_each_number_finds() {
        let (mut dice, mut nand, mut ranges) = (Dice::new(3), Nand::new(500), Ranges::default());
        let numbers: Vec<u64> = (0..40_000).map(|_| dice.below(BASE * BASE)).collect();
        for (row, number) in (0..).zip(&numbers) {
            ranges.push(&mut nand, *number);
            if dice.once_in(3000) || row == 39_999 {
                let above = dice.below(BASE * BASE + 5);
                let expected: Vec<u64> = (0..=row).rev().filter(|row| numbers[*row as usize] > above).collect();
                assert!(ranges.above(&nand, above) == expected, "above {above} of {row}");
            }
        }
    }
}
