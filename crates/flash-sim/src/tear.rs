//! What a cut leaves behind on the medium.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::medium::{FADED_BITS, Medium, Write};
use crate::{Dice, Image, Programming, Survivors, Tearing};

/// Sectors at most that a cut damages in an erase unit of a translation layer.
const DAMAGED_MAX: u64 = 4;

impl Medium {
    /// Leaves a failed write half done, durably and to be seen.
    pub(crate) fn tear_both(&mut self, write: &Write<'_>, dice: &mut Dice) {
        self.tear_settled(write, Tearing::Bits, dice);
        let settled = self.settled.clone();
        let numbers = match *write {
            Write::Program(number, _) => number..number + 1,
            Write::Erase(block) => self.pages_of(block),
            Write::Flush => 0..0,
        };
        // A later flush must not bring out what was in the cache beneath.
        self.pending.retain(|(number, _)| !numbers.contains(number));
        for number in numbers {
            self.seen.take(number, &settled);
        }
    }

    /// Leaves on the medium what was done of a write when the power failed.
    pub(crate) fn tear_settled(&mut self, write: &Write<'_>, tearing: Tearing, dice: &mut Dice) {
        match *write {
            Write::Program(number, bytes) => {
                let bytes = self.programmed(number, bytes);
                match self.part.word_bytes() {
                    Some(word_bytes) => self.tear_words(number, Some(&bytes), tearing, (0, word_bytes), dice),
                    None => self.settled.tear(number, Some(&bytes), tearing, 0, dice),
                }
                match tearing {
                    Tearing::Fickle => _ = self.fading.insert(number),
                    Tearing::Unreadable if self.part.word_bytes().is_none() => _ = self.unreadable.insert(number),
                    _ => {}
                }
                if let Some(older) = self.part.older_pair(number).filter(|_| tearing != Tearing::Untouched) {
                    self.settled.damage(older, FADED_BITS, dice);
                }
            }
            Write::Erase(block) => self.tear_erase(block, tearing, dice),
            // How far a flush got shows in what survives.
            Write::Flush => {}
        }
    }

    /// Leaves a block part of the way to being erased.
    fn tear_erase(&mut self, block: u64, tearing: Tearing, dice: &mut Dice) {
        let pages = self.pages_of(block);
        // NOR flash clears all bits of a block before it sets them: how far had it got?
        let is_clearing = matches!(self.part.programming, Programming::Clears(_)) && dice.once_in(2);
        for (index, number) in (0..).zip(pages.clone()) {
            let start = index * u64::from(self.part.geometry.page_bytes);
            if let Some(word_bytes) = self.part.word_bytes() {
                self.tear_words(number, None, tearing, (start, word_bytes), dice);
            } else if is_clearing && tearing == Tearing::Bits {
                self.settled.tear(number, Some(&vec![0; self.part.geometry.page_bytes as usize]), tearing, 0, dice);
            } else {
                self.settled.tear(number, None, tearing, start, dice);
            }
        }
        match tearing {
            Tearing::Fickle => {
                self.fickle.insert(block);
                self.fading.extend(pages);
            }
            Tearing::Unreadable if self.part.word_bytes().is_none() => self.unreadable.extend(pages),
            _ => {}
        }
    }

    /// Leaves a page of words part of the way: each as it was, as it should be, or torn. `start` is where the page begins
    /// within what is written, in bytes.
    fn tear_words(
        &mut self,
        number: u64,
        new: Option<&[u8]>,
        tearing: Tearing,
        (start, word_bytes): (u64, u32),
        dice: &mut Dice,
    ) {
        if matches!(tearing, Tearing::Complete | Tearing::Fickle) {
            self.torn_words.retain(|(page, _)| *page != number);
        }
        if !matches!(tearing, Tearing::Byte(_) | Tearing::Bits | Tearing::Unreadable) {
            return self.settled.tear(number, new, tearing, start, dice);
        }
        let mut bytes = self.settled.page(number).to_vec();
        let target = new.map_or_else(|| vec![self.part.blank(); bytes.len()], <[u8]>::to_vec);
        let words = bytes.len() as u64 / u64::from(word_bytes);
        let surely_torn = dice.below(words);
        for (index, (word, target)) in
            (0..).zip(bytes.chunks_mut(word_bytes as usize).zip(target.chunks(word_bytes as usize)))
        {
            let fate = match tearing {
                Tearing::Byte(done) => {
                    let begin = start + index * u64::from(word_bytes);
                    u64::from(done).saturating_sub(begin).min(u64::from(word_bytes))
                }
                _ if index == surely_torn => 1,
                _ => [0, 1, u64::from(word_bytes)][dice.below(3) as usize],
            };
            if fate == u64::from(word_bytes) {
                word.copy_from_slice(target);
                self.torn_words.remove(&(number, index as u32));
            } else if fate > 0 {
                word.iter_mut().for_each(|byte| *byte = dice.roll() as u8);
                if tearing == Tearing::Unreadable || dice.once_in(2) {
                    self.torn_words.insert((number, index as u32));
                }
            }
        }
        let is_blank = bytes.iter().all(|byte| *byte == self.part.blank());
        if is_blank && (new.is_none() || !self.settled.holds(number)) {
            self.settled.clear(number);
        } else {
            self.settled.set(number, &bytes);
        }
    }

    /// The pages that a part with a translation layer may be writing while the power fails during this write.
    pub(crate) fn in_flight(&self, write: &Write<'_>) -> Vec<u64> {
        let under_way = match *write {
            Write::Program(number, _) => Some(number),
            Write::Erase(_) | Write::Flush => None,
        };
        self.pending.iter().map(|(number, _)| *number).chain(under_way).collect()
    }

    /// Damages some sectors that share an erase unit with pages that were being written, and were not written themselves:
    /// a translation layer copies them to a fresh unit, and the cut comes in the middle of that.
    pub(crate) fn damage_units(&mut self, in_flight: &[u64], dice: &mut Dice) {
        let mut units: Vec<_> = in_flight.iter().filter_map(|number| self.part.unit_of(*number)).collect();
        units.sort_by_key(|unit| unit.start);
        units.dedup();
        for unit in units {
            for _ in 0..dice.below(DAMAGED_MAX + 1) {
                let number = unit.start + dice.below(unit.end - unit.start);
                if !in_flight.contains(&number) && self.settled.holds(number) {
                    self.damage_sector(number, dice);
                }
            }
        }
    }

    /// A page that nobody wrote: unreadable, blank, with bits turned over, or with a sector of another one.
    fn damage_sector(&mut self, number: u64, dice: &mut Dice) {
        match dice.below(4) {
            0 => _ = self.unreadable.insert(number),
            1 => self.settled.clear(number),
            2 => self.settled.damage(number, FADED_BITS, dice),
            _ => {
                let other = self.settled.page(number ^ 1);
                self.settled.mix_sectors(number, &other, dice);
            }
        }
    }
}

/// Brings to the medium what survives of the cache.
pub(crate) fn survive(settled: &mut Image, pending: &[(u64, Arc<[u8]>)], survivors: Survivors, dice: &mut Dice) {
    match survivors {
        Survivors::None => {}
        Survivors::All => pending.iter().for_each(|(number, bytes)| settled.set(*number, bytes)),
        Survivors::Any => {
            let mut versions: BTreeMap<u64, Vec<&[u8]>> = BTreeMap::new();
            for (number, bytes) in pending {
                versions.entry(*number).or_default().push(bytes);
            }
            // Any order among the versions of a page means that any of them may be the last.
            for (number, versions) in versions {
                let chosen = dice.below(versions.len() as u64 + 1) as usize;
                if let Some(bytes) = versions.get(chosen) {
                    settled.set(number, bytes);
                }
                if dice.once_in(4) {
                    let other = versions[dice.below(versions.len() as u64) as usize];
                    settled.mix_sectors(number, other, dice);
                }
            }
        }
    }
}
