//! Two banks of cells, as one-way counters have them, with the faults of a [`Scenario`].
//!
//! Programs and erases are numbered from 1. A cut tears them as its tearing says:
//!
//! | | bits that may be cleared again | words with error correction |
//! |---|---|---|
//! | `untouched`, `complete` | as it was, as it should be | the same |
//! | `byteN`, `bits` | some bits changed | a word reads as anything, blank included, or as an error; of a bank any of them |
//! | `fickle` | each changed bit reads one way now and another way later | each changed word reads as it was, as it should be, or as an error |
//! | `unreadable` | like `bits` | a torn word reads as an error |

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use counterfoil_flash::{BankShape, Banks, BlockNumber, Error, Operation, PageNumber};

use crate::medium::{FAULT, POWER_CUT, UNCORRECTABLE};
use crate::{Dice, Fault, Scenario, Tearing};

/// Simulated cells. Clones are the same cells.
#[derive(Clone)]
pub struct SimulatedBanks {
    state: Arc<Mutex<State>>,
}

#[derive(Clone)]
struct State {
    shape: BankShape,
    scenario: Scenario,
    banks: [Vec<u8>; 2],
    /// Words that were programmed since their last erase, or begun to be: bank and offset.
    begun: BTreeSet<(u64, u32)>,
    /// Words that read as errors.
    torn: BTreeSet<(u64, u32)>,
    /// Words that read one way now and another way later, and what they were to become.
    unstable: BTreeMap<(u64, u32), Vec<u8>>,
    writes: u64,
    erases: u64,
    reads: u64,
    is_cut: bool,
}

impl SimulatedBanks {
    /// Blank cells to which the scenario will happen.
    pub fn new(shape: BankShape, scenario: Scenario) -> Self {
        assert!(shape.bank_bytes.is_multiple_of(shape.word_bytes), "a bank holds whole words");
        let banks = [(); 2].map(|()| vec![0xFF; shape.bank_bytes as usize]);
        let state = State {
            shape,
            scenario,
            banks,
            begun: BTreeSet::new(),
            torn: BTreeSet::new(),
            unstable: BTreeMap::new(),
            writes: 0,
            erases: 0,
            reads: 0,
            is_cut: false,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// NOR flash whose bytes may be programmed again.
    pub fn nor(bank_bytes: u32, scenario: Scenario) -> Self {
        Self::new(BankShape { bank_bytes, word_bytes: 1, clears_again: true }, scenario)
    }

    /// Words with error correction, programmed once between two erases.
    pub fn ecc_words(bank_bytes: u32, word_bytes: u32, scenario: Scenario) -> Self {
        Self::new(BankShape { bank_bytes, word_bytes, clears_again: false }, scenario)
    }

    /// Other cells in the same state, with nothing in store for them.
    pub fn copied(&self) -> Self {
        let mut state = self.lock().clone();
        state.scenario.faults.clear();
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Changes what will happen from now on. The numbers of writes go on.
    pub fn set_scenario(&self, scenario: Scenario) {
        self.lock().scenario = scenario;
    }

    /// Programs and erases so far: the number of the last write.
    pub fn writes(&self) -> u64 {
        self.lock().writes
    }

    /// Erases so far.
    pub fn erases(&self) -> u64 {
        self.lock().erases
    }

    /// Whether the power failed and has not come back.
    pub fn is_cut(&self) -> bool {
        self.lock().is_cut
    }

    /// Brings the power back.
    pub fn power_on(&self) {
        self.lock().is_cut = false;
    }

    /// **Danger: goes down too.** What one with power over the cells would do.
    pub fn danger_set(&self, bank: BlockNumber, offset: u32, byte: u8) {
        self.lock().banks[bank.0 as usize][offset as usize] = byte;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn failed<T>(operation: Operation, bank: BlockNumber, code: i32) -> Result<T, Error> {
        Err(Error::Device { operation, page: PageNumber(bank.0), code })
    }

    fn read(&mut self, bank: BlockNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        if self.is_cut {
            return Self::failed(Operation::Read, bank, POWER_CUT);
        }
        self.shape.check(bank, offset, buffer.len())?;
        self.reads += 1;
        let word_bytes = self.shape.word_bytes;
        let mut dice = Dice::of_event(self.scenario.seed, !self.reads);
        let mut bytes = self.banks[bank.0 as usize].clone();
        let end = offset + buffer.len() as u32;
        for at in (offset / word_bytes * word_bytes..end).step_by(word_bytes as usize) {
            if self.torn.contains(&(bank.0, at)) {
                return Self::failed(Operation::Read, bank, UNCORRECTABLE);
            }
            let Some(other) = self.unstable.get(&(bank.0, at)) else { continue };
            let word = &mut bytes[at as usize..(at + word_bytes) as usize];
            if self.shape.clears_again {
                mix(word, other, &mut dice);
            } else {
                match dice.below(3) {
                    0 => return Self::failed(Operation::Read, bank, UNCORRECTABLE),
                    1 => word.copy_from_slice(other),
                    _ => {}
                }
            }
        }
        buffer.copy_from_slice(&bytes[offset as usize..end as usize]);
        Ok(())
    }

    /// What happens to this write, if anything does.
    fn fault(&mut self) -> Option<Fault> {
        self.writes += 1;
        self.scenario.faults.iter().copied().find(|fault| fault.at() == self.writes)
    }

    fn program(&mut self, bank: BlockNumber, offset: u32, word: &[u8]) -> Result<(), Error> {
        let word_bytes = self.shape.word_bytes;
        assert!(word.len() == word_bytes as usize && offset.is_multiple_of(word_bytes), "words are programmed whole");
        if self.is_cut {
            return Self::failed(Operation::Program, bank, POWER_CUT);
        }
        self.shape.check(bank, offset, word.len())?;
        let place = (bank.0, offset);
        let old = self.word(place);
        if !self.shape.clears_again && self.begun.contains(&place) {
            // Its error correction no longer fits, whatever it holds now.
            self.torn.insert(place);
            return Err(Error::NotErased { page: PageNumber(bank.0) });
        }
        let target: Vec<u8> = old.iter().zip(word).map(|(old, new)| old & new).collect();
        match self.fault() {
            Some(Fault::Cut { tearing, .. }) => {
                let mut dice = Dice::of_event(self.scenario.seed, self.writes);
                self.tear(place, &target, tearing, &mut dice);
                self.is_cut = true;
                Self::failed(Operation::Program, bank, POWER_CUT)
            }
            Some(_) => {
                self.begun.insert(place);
                Self::failed(Operation::Program, bank, FAULT)
            }
            None => {
                self.put(place, &target);
                Ok(())
            }
        }
    }

    fn erase(&mut self, bank: BlockNumber) -> Result<(), Error> {
        if self.is_cut {
            return Self::failed(Operation::Erase, bank, POWER_CUT);
        }
        self.shape.check(bank, 0, 0)?;
        self.erases += 1;
        let word_bytes = self.shape.word_bytes;
        let places: Vec<_> =
            (0..self.shape.bank_bytes).step_by(word_bytes as usize).map(|offset| (bank.0, offset)).collect();
        match self.fault() {
            Some(Fault::Cut { tearing, .. }) => {
                let mut dice = Dice::of_event(self.scenario.seed, self.writes);
                let is_clearing = self.shape.clears_again && tearing == Tearing::Bits && dice.once_in(2);
                let target = vec![if is_clearing { 0 } else { 0xFF }; word_bytes as usize];
                for place in places {
                    // Of words with error correction some are untouched, and some are erased.
                    let fate = match (self.shape.clears_again, dice.below(3)) {
                        (false, 0) => Tearing::Untouched,
                        (false, 1) => Tearing::Complete,
                        _ => tearing,
                    };
                    let tearing = if tearing == Tearing::Untouched { tearing } else { fate };
                    self.tear(place, &target, tearing, &mut dice);
                }
                self.is_cut = true;
                Self::failed(Operation::Erase, bank, POWER_CUT)
            }
            Some(_) => Self::failed(Operation::Erase, bank, FAULT),
            None => {
                for place in places {
                    self.put(place, &vec![0xFF; word_bytes as usize]);
                    self.begun.remove(&place);
                }
                Ok(())
            }
        }
    }

    fn word(&self, (bank, offset): (u64, u32)) -> Vec<u8> {
        self.banks[bank as usize][offset as usize..(offset + self.shape.word_bytes) as usize].to_vec()
    }

    fn put(&mut self, place: (u64, u32), bytes: &[u8]) {
        let (bank, offset) = place;
        self.banks[bank as usize][offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
        self.begun.insert(place);
        self.torn.remove(&place);
        self.unstable.remove(&place);
    }

    fn tear(&mut self, place: (u64, u32), target: &[u8], tearing: Tearing, dice: &mut Dice) {
        let mut bytes = self.word(place);
        match tearing {
            Tearing::Untouched => {}
            Tearing::Complete => self.put(place, target),
            Tearing::Fickle => {
                self.begun.insert(place);
                if bytes != target {
                    self.unstable.insert(place, target.to_vec());
                }
            }
            Tearing::Byte(_) | Tearing::Bits | Tearing::Unreadable if self.shape.clears_again => {
                let unstable = self.unstable.remove(&place);
                unstable.iter().for_each(|other| mix(&mut bytes, other, dice));
                mix(&mut bytes, target, dice);
                self.put(place, &bytes);
            }
            Tearing::Byte(_) | Tearing::Bits | Tearing::Unreadable => {
                let is_error = tearing == Tearing::Unreadable || dice.once_in(3);
                match dice.below(4) {
                    // It shows no trace of having been begun.
                    0 => {}
                    1 => bytes.fill(0xFF),
                    _ => bytes.iter_mut().for_each(|byte| *byte = dice.roll() as u8),
                }
                self.put(place, &bytes);
                if is_error {
                    self.torn.insert(place);
                }
            }
        }
    }
}

/// Takes some of the bits of another word.
fn mix(word: &mut [u8], other: &[u8], dice: &mut Dice) {
    for (byte, other) in word.iter_mut().zip(other) {
        let taken = dice.roll() as u8;
        *byte = (*byte & !taken) | (other & taken);
    }
}

impl Banks for SimulatedBanks {
    fn shape(&self) -> BankShape {
        self.lock().shape
    }

    fn read(&self, bank: BlockNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        self.lock().read(bank, offset, buffer)
    }

    fn program(&mut self, bank: BlockNumber, offset: u32, word: &[u8]) -> Result<(), Error> {
        self.lock().program(bank, offset, word)
    }

    fn erase(&mut self, bank: BlockNumber) -> Result<(), Error> {
        self.lock().erase(bank)
    }
}
