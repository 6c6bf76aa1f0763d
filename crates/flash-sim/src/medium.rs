//! The state behind a simulated device: what is durable, what is seen, and what waits in between.
//!
//! Invariants
//! 1. `settled` is what a cut right now could not take away; `seen` is what reads answer.
//! 2. A page in neither `pending` nor the bad luck of a failed flush is the same in both.
//! 3. Chance depends on the seed and the number of the write alone, never on what was rolled before.

use std::collections::BTreeSet;

use counterfoil_flash::{BlockNumber, Error, Operation, PageNumber};

use crate::tear::survive;
use crate::{Again, Attacker, Dice, Fault, Image, Meters, Part, Programming, Scenario, Survivors, Tearing};

/// The code of every error after a power cut.
pub const POWER_CUT: i32 = -1;
/// The code of an error that a scenario asked for.
pub const FAULT: i32 = -2;
/// The code of an operation on a bad block.
pub const BAD_BLOCK: i32 = -3;
/// The code of reading a page that error correction gave up.
pub const UNCORRECTABLE: i32 = -5;
/// The code of programming a page of a block below one that is programmed already.
pub const OUT_OF_ORDER: i32 = -4;

/// Bits that turn over in a page that fades, and in one that shares its cells with a page being cut.
pub(crate) const FADED_BITS: u64 = 9;

/// One numbered operation.
pub(crate) enum Write<'a> {
    Program(u64, &'a [u8]),
    Erase(u64),
    Flush,
}

pub(crate) struct Medium {
    pub(crate) part: Part,
    pub(crate) scenario: Scenario,
    pub(crate) meters: Meters,
    /// Numbered operations so far.
    pub(crate) writes: u64,
    pub(crate) attacker: Option<Attacker>,
    pub(crate) settled: Image,
    pub(crate) seen: Image,
    /// Programs since the last flush, oldest first.
    pub(crate) pending: Vec<(u64, std::sync::Arc<[u8]>)>,
    /// Pages that read well once more and then badly.
    pub(crate) fading: BTreeSet<u64>,
    /// Pages that error correction finds torn.
    pub(crate) unreadable: BTreeSet<u64>,
    /// Words with error correction, by page and index, that were torn and read as errors.
    pub(crate) torn_words: BTreeSet<(u64, u32)>,
    /// The page programmed last.
    newest: Option<u64>,
    /// Blocks that look erased and are not.
    pub(crate) fickle: BTreeSet<u64>,
    /// The first page that was to be programmed against the part's rules.
    pub(crate) refused: Option<PageNumber>,
    bad: BTreeSet<u64>,
    cut: bool,
    latched: bool,
}

impl Medium {
    pub(crate) fn new(part: Part, scenario: Scenario) -> Self {
        let blank = Image::blank(part.geometry.page_bytes, part.blank());
        Self {
            meters: Meters::default(),
            writes: 0,
            attacker: None,
            settled: blank.clone(),
            seen: blank,
            pending: Vec::new(),
            fading: BTreeSet::new(),
            unreadable: BTreeSet::new(),
            torn_words: BTreeSet::new(),
            newest: None,
            fickle: BTreeSet::new(),
            refused: None,
            bad: part.bad_blocks.iter().copied().collect(),
            cut: false,
            latched: false,
            part,
            scenario,
        }
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    pub(crate) fn is_bad(&self, block: BlockNumber) -> bool {
        self.bad.contains(&block.0)
    }

    /// The medium as it is found after the power came back.
    pub(crate) fn power_on(&mut self) {
        if !self.cut {
            self.lose_power(Survivors::Any);
        }
        self.cut = false;
        self.latched = false;
        self.seen = self.settled.clone();
    }

    /// The medium as the next process finds it: the cache lives on.
    pub(crate) fn reopen(&mut self) {
        self.latched = false;
    }

    /// What reads as written and is not waiting to be written any more is read from the medium again.
    pub(crate) fn drop_cache(&mut self) {
        self.seen = self.settled.clone();
        for (number, bytes) in &self.pending {
            self.seen.set(*number, bytes);
        }
    }

    pub(crate) fn image(&self) -> Image {
        self.settled.clone()
    }

    pub(crate) fn image_seen(&self) -> Image {
        self.seen.clone()
    }

    pub(crate) fn image_if_cut(&self, survivors: Survivors, seed: u64) -> Image {
        let mut image = self.settled.clone();
        survive(&mut image, &self.pending, survivors, &mut Dice::of_event(seed, self.writes));
        image
    }

    pub(crate) fn restore(&mut self, image: Image) {
        self.seen = image.clone();
        self.settled = image;
        self.pending.clear();
        self.fading.clear();
        self.unreadable.clear();
        self.torn_words.clear();
        self.fickle.clear();
        self.cut = false;
        self.latched = false;
    }

    pub(crate) fn read(&mut self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        self.check_power(Operation::Read, page)?;
        let start = self.part.geometry.locate(page, offset, buffer.len())?;
        let page_bytes = u64::from(self.part.geometry.page_bytes);
        let sector_bytes = u64::from(self.part.prices.sector_bytes.max(1));
        let mut at = start;
        let mut rest = buffer;
        while !rest.is_empty() {
            let (number, within) = (at / page_bytes, at % page_bytes);
            let count = rest.len().min((page_bytes - within) as usize);
            if self.unreadable.contains(&number) || self.has_torn_word(number, within, count) {
                return Err(Error::Device {
                    operation: Operation::Read,
                    page: PageNumber(number),
                    code: UNCORRECTABLE,
                });
            }
            let (piece, after) = rest.split_at_mut(count);
            piece.copy_from_slice(&self.seen.page(number)[within as usize..within as usize + count]);
            self.meters.reads += 1;
            self.meters.read_bytes += count as u64;
            self.meters.read_sectors += (within + count as u64).div_ceil(sector_bytes) - within / sector_bytes;
            self.fade(number);
            at += count as u64;
            rest = after;
        }
        Ok(())
    }

    /// Whether a word that was torn lies in a range of a page.
    fn has_torn_word(&self, number: u64, within: u64, count: usize) -> bool {
        let Some(bytes) = self.part.word_bytes() else { return false };
        let (first, last) = (within / u64::from(bytes), (within + count as u64 - 1) / u64::from(bytes));
        self.torn_words.range((number, first as u32)..=(number, last as u32)).next().is_some()
    }

    /// Damages a fading page that was read.
    fn fade(&mut self, number: u64) {
        if self.fading.remove(&number) {
            self.damage(number, FADED_BITS, &mut Dice::of_event(self.scenario.seed, !number));
        }
    }

    fn damage(&mut self, number: u64, bits: u64, dice: &mut Dice) {
        self.seen.damage(number, bits, &mut dice.clone());
        self.settled.damage(number, bits, dice);
    }

    pub(crate) fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), Error> {
        self.check_writing(Operation::Program, page)?;
        let geometry = self.part.geometry;
        assert!(data.len().is_multiple_of(geometry.page_bytes as usize), "pages are programmed whole");
        geometry.locate(page, 0, data.len()).map_err(|error| match error {
            Error::OutOfRange { page, .. } if geometry.grows => Error::Full { page },
            other => other,
        })?;
        for (number, bytes) in (page.0..).zip(data.chunks_exact(geometry.page_bytes as usize)) {
            self.check_block(Operation::Program, number)?;
            if let Err(refusal) = self.check_manners(number, bytes) {
                self.refused.get_or_insert(PageNumber(number));
                return Err(refusal);
            }
            self.meters.programs += 1;
            self.meters.scattered_programs += u64::from(self.is_scattered(number));
            self.newest = Some(number);
            self.meters.program_bytes += bytes.len() as u64;
            self.write(Write::Program(number, bytes))?;
        }
        Ok(())
    }

    pub(crate) fn erase(&mut self, block: BlockNumber) -> Result<(), Error> {
        let geometry = self.part.geometry;
        let first = geometry.first_page(block);
        self.check_writing(Operation::Erase, first)?;
        geometry.locate(first, 0, geometry.page_bytes as usize)?;
        if !geometry.erase_before_program {
            return Ok(());
        }
        self.check_block(Operation::Erase, first.0)?;
        self.meters.erases += 1;
        self.write(Write::Erase(block.0))
    }

    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.check_writing(Operation::Flush, PageNumber(0))?;
        self.meters.flushes += 1;
        self.write(Write::Flush)
    }

    fn check_power(&self, operation: Operation, page: PageNumber) -> Result<(), Error> {
        if self.cut { Err(Error::Device { operation, page, code: POWER_CUT }) } else { Ok(()) }
    }

    fn check_writing(&self, operation: Operation, page: PageNumber) -> Result<(), Error> {
        self.check_power(operation, page)?;
        if self.latched { Err(Error::Latched) } else { Ok(()) }
    }

    fn check_block(&self, operation: Operation, number: u64) -> Result<(), Error> {
        let page = PageNumber(number);
        if self.is_bad(self.part.geometry.block_of(page)) {
            return Err(Error::Device { operation, page, code: BAD_BLOCK });
        }
        Ok(())
    }

    /// Whether a translation layer has to begin another erase unit for this page.
    fn is_scattered(&self, number: u64) -> bool {
        let Some(newest) = self.newest else { return false };
        self.part.unit_of(newest).is_some_and(|unit| !unit.contains(&number) && number != newest + 1)
    }

    /// Whether the part lets this page be programmed now.
    fn check_manners(&self, number: u64, bytes: &[u8]) -> Result<(), Error> {
        let page = PageNumber(number);
        let may_again = match self.part.programming {
            Programming::Clears(Again::Anyhow) => true,
            Programming::Clears(Again::ClearingMore) => {
                self.seen.page(number).iter().zip(bytes).all(|(old, new)| new & !old == 0)
            }
            _ => !self.part.geometry.erase_before_program,
        };
        if self.seen.holds(number) && !may_again {
            return Err(Error::NotErased { page });
        }
        let pages = u64::from(self.part.geometry.block_pages);
        let block_end = (number / pages + 1) * pages;
        if self.part.in_order && (number + 1..block_end).any(|later| self.seen.holds(later)) {
            return Err(Error::Device { operation: Operation::Program, page, code: OUT_OF_ORDER });
        }
        Ok(())
    }

    /// One numbered write, with everything that the scenario has in store for it.
    fn write(&mut self, write: Write<'_>) -> Result<(), Error> {
        self.writes += 1;
        let mut dice = Dice::of_event(self.scenario.seed, self.writes);
        let faults: Vec<Fault> =
            self.scenario.faults.iter().copied().filter(|fault| fault.at() == self.writes).collect();
        let before = self.attacker.is_some().then(|| self.settled.clone());
        let mut result = Ok(());
        let mut is_done = false;
        for fault in &faults {
            if let Some(outcome) = self.disturb(fault, &write, &mut dice) {
                result = result.and(outcome);
                is_done = true;
            }
        }
        if !is_done {
            self.perform(&write);
        }
        for fault in faults {
            match (fault, &write) {
                (Fault::Fade { .. }, Write::Program(number, _)) => _ = self.fading.insert(*number),
                (Fault::Rot { page, bits, .. }, _) => self.damage(page, bits, &mut dice),
                _ => {}
            }
        }
        if let (Some(attacker), Some(before)) = (&self.attacker, before)
            && before != self.settled
        {
            attacker.see(self.settled.clone());
        }
        result
    }

    /// The write as it should be.
    fn perform(&mut self, write: &Write<'_>) {
        match *write {
            Write::Program(number, bytes) => {
                let bytes = &*self.programmed(number, bytes);
                self.seen.set(number, bytes);
                self.fading.remove(&number);
                self.unreadable.remove(&number);
                if self.fickle.contains(&(number / u64::from(self.part.geometry.block_pages))) {
                    self.fading.insert(number);
                }
                if self.part.cached {
                    self.pending.push((number, self.seen.page(number)));
                } else {
                    // The bytes are there once: a part of a gigabyte takes one.
                    self.settled.take(number, &self.seen);
                }
            }
            Write::Erase(block) => {
                self.fickle.remove(&block);
                for number in self.pages_of(block) {
                    self.seen.clear(number);
                    self.settled.clear(number);
                    self.fading.remove(&number);
                    self.unreadable.remove(&number);
                    self.torn_words.retain(|(page, _)| *page != number);
                }
            }
            Write::Flush if self.is_lie() => {}
            Write::Flush => {
                survive(&mut self.settled, &std::mem::take(&mut self.pending), Survivors::All, &mut Dice::new(0))
            }
        }
    }

    /// Whether this flush is acknowledged and does nothing.
    fn is_lie(&self) -> bool {
        let mut dice = Dice::of_event(self.scenario.seed, self.writes ^ (1 << 62));
        self.part.lying_flushes.is_some_and(|times| dice.once_in(times.max(1)))
    }

    /// What a page holds once it was programmed.
    pub(crate) fn programmed(&self, number: u64, bytes: &[u8]) -> Vec<u8> {
        match self.part.programming {
            Programming::Clears(_) => self.settled.page(number).iter().zip(bytes).map(|(old, new)| old & new).collect(),
            Programming::Replaces | Programming::Words { .. } => bytes.to_vec(),
        }
    }

    /// What a fault makes of the write; nothing if it lets it pass.
    fn disturb(&mut self, fault: &Fault, write: &Write<'_>, dice: &mut Dice) -> Option<Result<(), Error>> {
        let (operation, page) = self.place_of(write);
        let failed = |code| Some(Err(Error::Device { operation, page, code }));
        match (*fault, write) {
            (Fault::Cut { tearing, survivors, .. }, _) => {
                let is_flushed = matches!(write, Write::Flush) && tearing == Tearing::Complete;
                let in_flight = self.in_flight(write);
                self.lose_power(if is_flushed { Survivors::All } else { survivors });
                self.tear_settled(write, tearing, dice);
                if tearing != Tearing::Untouched {
                    self.damage_units(&in_flight, dice);
                }
                failed(POWER_CUT)
            }
            (Fault::LostFlush { .. }, Write::Flush) => Some(Ok(())),
            (Fault::FailedFlush { .. }, Write::Flush) => {
                survive(&mut self.settled, &std::mem::take(&mut self.pending), Survivors::Any, dice);
                self.latched = true;
                failed(FAULT)
            }
            (Fault::FailedWrite { .. }, Write::Program(..) | Write::Erase(_)) => {
                self.tear_both(write, dice);
                self.latched = true;
                failed(FAULT)
            }
            (Fault::BadBlock { .. }, Write::Program(..) | Write::Erase(_)) => {
                self.tear_both(write, dice);
                self.bad.insert(self.part.geometry.block_of(page).0);
                failed(BAD_BLOCK)
            }
            _ => None,
        }
    }

    fn place_of(&self, write: &Write<'_>) -> (Operation, PageNumber) {
        match *write {
            Write::Program(number, _) => (Operation::Program, PageNumber(number)),
            Write::Erase(block) => (Operation::Erase, self.part.geometry.first_page(BlockNumber(block))),
            Write::Flush => (Operation::Flush, PageNumber(0)),
        }
    }

    fn lose_power(&mut self, survivors: Survivors) {
        let mut dice = Dice::of_event(self.scenario.seed, self.writes ^ (1 << 63));
        survive(&mut self.settled, &std::mem::take(&mut self.pending), survivors, &mut dice);
        self.cut = true;
    }

    pub(crate) fn pages_of(&self, block: u64) -> std::ops::Range<u64> {
        let pages = u64::from(self.part.geometry.block_pages);
        block * pages..(block + 1) * pages
    }
}
