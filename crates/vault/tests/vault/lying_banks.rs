//! Banks that acknowledge what they did not do, under the counters on chips.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use counterfoil_flash::{BankShape, Banks, BlockNumber, Error, Operation, PageNumber};
use counterfoil_flash_sim::{POWER_CUT, Scenario, SimulatedBanks};
use counterfoil_vault::{Counter, CounterError, EccCounter, NorCounter};

/// Banks whose programs, or erases, are acknowledged and not done.
#[derive(Clone)]
struct Lying {
    banks: SimulatedBanks,
    no_program: Arc<AtomicBool>,
    no_erase: Arc<AtomicBool>,
    /// An erase programs all cells first, as NOR flash does, and the power fails before it goes on.
    cut_erase: Arc<AtomicBool>,
}

impl Lying {
    fn new(banks: SimulatedBanks) -> Self {
        Self { banks, no_program: Arc::default(), no_erase: Arc::default(), cut_erase: Arc::default() }
    }
}

impl Banks for Lying {
    fn shape(&self) -> BankShape {
        self.banks.shape()
    }

    fn read(&self, bank: BlockNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        self.banks.read(bank, offset, buffer)
    }

    fn program(&mut self, bank: BlockNumber, offset: u32, word: &[u8]) -> Result<(), Error> {
        if self.no_program.load(Ordering::Relaxed) { Ok(()) } else { self.banks.program(bank, offset, word) }
    }

    fn erase(&mut self, bank: BlockNumber) -> Result<(), Error> {
        if self.cut_erase.load(Ordering::Relaxed) {
            // From the end on, and not as far as the head.
            (32..self.shape().bank_bytes).try_for_each(|offset| self.banks.program(bank, offset, &[0]))?;
            return Err(Error::Device { operation: Operation::Erase, page: PageNumber(bank.0), code: POWER_CUT });
        }
        if self.no_erase.load(Ordering::Relaxed) { Ok(()) } else { self.banks.erase(bank) }
    }
}

fn counters() -> [(Lying, Box<dyn Counter>); 2] {
    let nor = Lying::new(SimulatedBanks::nor(34, Scenario::calm(1)));
    let words = Lying::new(SimulatedBanks::ecc_words(256, 8, Scenario::calm(1)));
    let on_nor = Box::new(NorCounter::new(nor.clone()).expect("a shape"));
    let in_words = Box::new(EccCounter::new(words.clone()).expect("a shape"));
    [(nor, on_nor), (words, in_words)]
}

#[test]
fn a_step_that_was_not_programmed_is_noticed() {
    for (banks, mut counter) in counters() {
        counter.adopt(5, &[0; 16]).expect("adopts");
        counter.step(6, &[0; 16]).expect("steps");
        banks.no_program.store(true, Ordering::Relaxed);
        let stepped = counter.step(7, &[0; 16]);
        let is_told = matches!(
            stepped,
            Err(CounterError::Stuck { asked: 7, found: 6 } | CounterError::Device { operation: "programmed", .. })
        );
        assert!(is_told, "{stepped:?}");
        banks.no_program.store(false, Ordering::Relaxed);
        assert_eq!(counter.value().expect("stands").value, 6);
        counter.step(7, &[0; 16]).expect("steps");
    }
}

#[test]
fn a_new_bank_whose_head_was_not_programmed_is_noticed() {
    for (banks, mut counter) in counters() {
        banks.no_program.store(true, Ordering::Relaxed);
        assert!(counter.adopt(5, &[0; 16]).is_err(), "nothing was written");
        banks.no_program.store(false, Ordering::Relaxed);
        counter.adopt(5, &[0; 16]).expect("adopts");
    }
}

#[test]
fn a_bank_that_was_not_erased_is_not_begun() {
    for (banks, mut counter) in counters() {
        counter.adopt(0, &[0; 16]).expect("adopts");
        banks.no_erase.store(true, Ordering::Relaxed);
        let refused = (1..200).find_map(|to| counter.step(to, &[0; 16]).err().map(|error| (to, error)));
        let (to, error) = refused.expect("a bank comes round");
        assert!(matches!(error, CounterError::Device { operation: "erased", .. }), "{error}");
        banks.no_erase.store(false, Ordering::Relaxed);
        assert_eq!(counter.value().expect("stands").value, to - 1, "the full bank still says so");
        counter.step(to, &[0; 16]).expect("steps");
    }
}

/// Else the old head of a bank that is begun for an adoption would stand before bits that are all cleared.
#[test]
fn an_erase_that_was_cut_takes_the_counter_no_higher_than_it_was_asked_to() {
    let [(banks, mut counter), _] = counters();
    counter.adopt(5, &[0; 16]).expect("adopts");
    counter.step(6, &[0; 16]).expect("steps");
    counter.adopt(10, &[0; 16]).expect("adopts");
    counter.step(11, &[0; 16]).expect("steps");
    banks.cut_erase.store(true, Ordering::Relaxed);
    assert!(counter.adopt(14, &[0; 16]).is_err(), "the power failed");
    banks.cut_erase.store(false, Ordering::Relaxed);
    let mut counter = NorCounter::new(banks).expect("a shape");
    assert_eq!(counter.value().expect("stands").value, 11);
}
