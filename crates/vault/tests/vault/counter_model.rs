//! Every history of a counter on a chip, in a model of its cells: whatever can happen is a choice, and all choices are made.
//!
//! A session is a power-on: the counter is asked, stepped, asked and stepped again. At every program and every erase the
//! power may fail, with the word or bank untouched, done, half done, or left between, so that each read decides anew. From
//! every state of the cells that a session can leave, every session is played, over several changes of the bank.
//!
//! The law: a value that is answered is not below any that was answered or acknowledged, and not above the one that was
//! last asked for, which is one more; and one who asks for a step that is acknowledged finds it taken.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Mutex;

use counterfoil_flash::{BankShape, Banks, BlockNumber, Error, Operation, PageNumber};
use counterfoil_vault::{Counter, CounterError, CounterKind, EccCounter, NorCounter};

const BLANK: u8 = 0xFF;

/// One word: what it may read as (`None` is an error of error correction), and whether a write to it was ever begun.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Word {
    reads: Vec<Option<Vec<u8>>>,
    is_begun: bool,
}

/// The cells, and the choices that are made as they are used.
struct Model<'a> {
    shape: BankShape,
    banks: &'a mut [Vec<Word>; 2],
    choices: &'a Mutex<Choices>,
    is_cut: bool,
    /// Nothing goes wrong.
    is_calm: bool,
}

/// A path through the tree of what can happen.
#[derive(Default)]
struct Choices {
    /// What was chosen, and out of how many.
    path: Vec<(u8, u8)>,
    at: usize,
    /// Whether the power failed on this path.
    is_cut: bool,
}

impl Choices {
    fn choose(&mut self, options: u8) -> u8 {
        if self.at == self.path.len() {
            self.path.push((0, options));
        }
        let (choice, known) = self.path[self.at];
        assert_eq!(known, options, "the same history branches the same way");
        self.at += 1;
        choice
    }

    /// Goes on to the next path; false when all were taken.
    fn advance(&mut self) -> bool {
        (self.at, self.is_cut) = (0, false);
        while let Some((choice, options)) = self.path.pop() {
            if choice + 1 < options {
                self.path.push((choice + 1, options));
                return true;
            }
        }
        false
    }
}

impl Word {
    fn whole(bytes: Vec<u8>, is_begun: bool) -> Self {
        Self { reads: vec![Some(bytes)], is_begun }
    }

    /// Each of these readings once.
    fn between(reads: impl IntoIterator<Item = Option<Vec<u8>>>) -> Self {
        let reads: BTreeSet<_> = reads.into_iter().collect();
        Self { reads: reads.into_iter().collect(), is_begun: true }
    }
}

impl Model<'_> {
    fn failed<T>(&self, operation: Operation) -> Result<T, Error> {
        Err(Error::Device { operation, page: PageNumber(0), code: 1 })
    }

    fn choose(&self, options: u8) -> u8 {
        if self.is_calm {
            return 0;
        }
        self.choices.lock().expect("one thread").choose(options)
    }

    /// Whether the power fails in this operation.
    fn cuts_now(&self) -> bool {
        let is_cut = self.choose(2) == 1;
        self.choices.lock().expect("one thread").is_cut |= is_cut;
        is_cut
    }

    fn blank(&self) -> Vec<u8> {
        vec![BLANK; self.shape.word_bytes as usize]
    }

    /// What a word is once it was programmed, or that it may not be.
    fn programmed(&self, old: &Word, word: &[u8]) -> Option<Word> {
        if !self.shape.clears_again {
            return (!old.is_begun).then(|| Word::whole(word.to_vec(), true));
        }
        let clear = |bytes: &Vec<u8>| bytes.iter().zip(word).map(|(old, new)| old & new).collect();
        Some(Word::between(old.reads.iter().map(|read| read.as_ref().map(clear))))
    }

    /// What a cut leaves of a word that was to become another one.
    fn torn(&self, old: &Word, new: &Word) -> Word {
        let both = old.reads.iter().chain(&new.reads).cloned();
        match (self.choose(4), self.shape.clears_again) {
            (0, true) => old.clone(),
            // It shows no trace of having been begun.
            (0, false) => Word { is_begun: true, ..old.clone() },
            (1, _) => new.clone(),
            (2, true) => Word::between(both),
            (2, false) => Word::between(new.reads.iter().cloned().chain([None])),
            (_, true) => {
                let half = |read: &Option<Vec<u8>>| {
                    let (old, new) = (old.reads[0].clone().unwrap_or_default(), read.clone().unwrap_or_default());
                    Some(old.iter().zip(new).map(|(old, new)| old & !0x55 | new & 0x55).collect())
                };
                Word::between(new.reads.iter().map(half))
            }
            (_, false) => Word::between([None]),
        }
    }
}

impl Banks for Model<'_> {
    fn shape(&self) -> BankShape {
        self.shape
    }

    fn read(&self, bank: BlockNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        self.shape.check(bank, offset, buffer.len())?;
        if self.is_cut {
            return self.failed(Operation::Read);
        }
        let word_bytes = self.shape.word_bytes as usize;
        let (first, end) = (offset as usize / word_bytes, (offset as usize + buffer.len()).div_ceil(word_bytes));
        let words = &self.banks[bank.0 as usize][first..end];
        // One choice for all words that are between: the same side of each.
        let readings = words.iter().map(|word| word.reads.len()).max().unwrap_or(1);
        let side = if readings > 1 { self.choose(readings as u8) as usize } else { 0 };
        let mut bytes = Vec::new();
        for word in words {
            match &word.reads[side.min(word.reads.len() - 1)] {
                Some(read) => bytes.extend(read),
                None => return self.failed(Operation::Read),
            }
        }
        let start = offset as usize - first * word_bytes;
        buffer.copy_from_slice(&bytes[start..start + buffer.len()]);
        Ok(())
    }

    fn program(&mut self, bank: BlockNumber, offset: u32, word: &[u8]) -> Result<(), Error> {
        self.shape.check(bank, offset, word.len())?;
        if self.is_cut {
            return self.failed(Operation::Program);
        }
        let place = (bank.0 as usize, (offset / self.shape.word_bytes) as usize);
        let old = self.banks[place.0][place.1].clone();
        let Some(new) = self.programmed(&old, word) else {
            // The part refuses, or its error correction no longer fits.
            if self.choose(2) == 1 {
                self.banks[place.0][place.1] = Word::between([None]);
            }
            return Err(Error::NotErased { page: PageNumber(0) });
        };
        self.is_cut = self.cuts_now();
        self.banks[place.0][place.1] = if self.is_cut { self.torn(&old, &new) } else { new };
        if self.is_cut { self.failed(Operation::Program) } else { Ok(()) }
    }

    fn erase(&mut self, bank: BlockNumber) -> Result<(), Error> {
        self.shape.check(bank, 0, 0)?;
        if self.is_cut {
            return self.failed(Operation::Erase);
        }
        let blank = Word::whole(self.blank(), false);
        self.is_cut = self.cuts_now();
        // Words with error correction are spoiled in one way only, and halves of a bank are not told apart: that is enough.
        let ways: &[u8] = if self.shape.clears_again { &[0, 1, 2, 3, 4, 5, 6] } else { &[0, 1, 2, 5] };
        let way = if self.is_cut { ways[self.choose(ways.len() as u8) as usize] } else { 1 };
        let (zero, other) = (vec![0; self.blank().len()], vec![0x5A; self.blank().len()]);
        let is_nor = self.shape.clears_again;
        let words = &mut self.banks[bank.0 as usize];
        let half = words.len() / 2;
        for (index, word) in words.iter_mut().enumerate() {
            let old = word.reads.iter().cloned();
            *word = match way {
                0 => continue,
                1 => blank.clone(),
                2 if is_nor => Word::between(old.chain(blank.reads.clone())),
                // Each word is read by itself there: with more of them between, the histories are too many.
                2 if index < 2 => Word::between(old.chain(blank.reads.clone())),
                2 => blank.clone(),
                3 if index < half => blank.clone(),
                4 if index >= half => blank.clone(),
                3 | 4 => continue,
                5 if is_nor => Word::between([Some(zero.clone())]),
                5 => Word::between([None]),
                _ => Word::between([Some(other.clone())]),
            };
        }
        if self.is_cut { self.failed(Operation::Erase) } else { Ok(()) }
    }
}

/// Cuts in a row that the reserve of the smallest bank of words stands.
const CUTS_STOOD: u8 = 2;

/// The cells, the highest value answered or acknowledged, the highest asked for, and how many sessions in a row were cut,
/// as far as that matters.
type State = ([Vec<Word>; 2], u64, u64, u8);

/// One power-on. Any error ends it, and none may come unless the power failed.
fn session(model: Model<'_>, is_nor: bool, (answered, asked): (&mut u64, &mut u64)) -> Result<(), CounterError> {
    fn play<C: Counter>(counter: &mut C, answered: &mut u64, asked: &mut u64) -> Result<(), CounterError> {
        for _ in 0..if counter.kind() == CounterKind::Nor { 2 } else { 1 } {
            let value = counter.value()?.value;
            assert!((*answered..=*asked).contains(&value), "{value} was answered between {answered} and {asked}");
            *answered = value;
            *asked = value + 1;
            counter.step(value + 1, &[1; 16])?;
            *answered = value + 1;
        }
        if counter.kind() == CounterKind::Nor {
            assert_eq!(counter.value()?.value, *answered);
        }
        Ok(())
    }
    match is_nor {
        true => play(&mut NorCounter::new(model)?, answered, asked),
        false => play(&mut EccCounter::new(model)?, answered, asked),
    }
}

/// A counter that has stepped so often without a cut.
fn begin<C: Counter>(counter: &mut C, first: u64, calm: u64) {
    counter.adopt(first, &[0; 16]).expect("adopts");
    (1..=calm).for_each(|step| counter.step(first + step, &[1; 16]).expect("steps"));
}

/// Plays every session from every state that is reached before the counter has gone so far.
fn explore(shape: BankShape, (first, calm, last): (u64, u64, u64), sessions_max: usize) -> usize {
    let blank = Word::whole(vec![BLANK; shape.word_bytes as usize], false);
    let words = (shape.bank_bytes / shape.word_bytes) as usize;
    let mut banks = [vec![blank.clone(); words], vec![blank; words]];
    let choices = Mutex::default();
    let model = Model { shape, banks: &mut banks, choices: &choices, is_cut: false, is_calm: true };
    match shape.clears_again {
        true => begin(&mut NorCounter::new(model).expect("a shape"), first, calm),
        false => begin(&mut EccCounter::new(model).expect("a shape"), first, calm),
    }
    let first = first + calm;
    let mut known: BTreeSet<State> = BTreeSet::from([(banks.clone(), first, first, 0)]);
    let mut open: VecDeque<State> = known.iter().cloned().collect();
    let mut played = 0;
    while let Some((banks, answered, asked, cuts)) = open.pop_front().filter(|_| played < sessions_max) {
        let choices = Mutex::<Choices>::default();
        loop {
            let (mut banks, mut answered, mut asked) = (banks.clone(), answered, asked);
            let model = Model { shape, banks: &mut banks, choices: &choices, is_cut: false, is_calm: false };
            let outcome = session(model, shape.clears_again, (&mut answered, &mut asked));
            let was_cut = choices.lock().expect("one thread").is_cut;
            let is_spoiled = outcome == Err(CounterError::Damaged) && !shape.clears_again && cuts >= CUTS_STOOD;
            assert!(outcome.is_ok() || was_cut || is_spoiled, "{outcome:?} without a cut");
            assert!(asked <= answered + 1);
            played += 1;
            let state = (banks, answered, asked, if outcome.is_ok() { 0 } else { CUTS_STOOD.min(cuts + 1) });
            if answered < last && known.insert(state.clone()) {
                open.push_back(state);
            }
            if played >= sessions_max || !choices.lock().expect("one thread").advance() {
                break;
            }
        }
    }
    println!("{} states, {played} sessions", known.len());
    played
}

fn is_full_size() -> bool {
    std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full")
}

/// Sixty-four bits a bank, of which five are left.
#[test]
fn a_counter_of_bits_keeps_the_law_in_every_history() {
    let shape = BankShape { bank_bytes: 40, word_bytes: 8, clears_again: true };
    let last = 5 + 59 + if is_full_size() { 75 } else { 10 };
    assert!(explore(shape, (5, 59, last), usize::MAX) > 10_000);
}

/// A few values a bank, and the lower half comes round in between. These histories do not come to an end: those with few cuts
/// are played first.
#[test]
fn a_counter_of_words_keeps_the_law_in_most_histories() {
    let shape = BankShape { bank_bytes: 96, word_bytes: 8, clears_again: false };
    let sessions_max = if is_full_size() { 10_000_000 } else { 40_000 };
    let first = u64::from(u32::MAX) - 1;
    assert_eq!(explore(shape, (first, 0, first + 8), sessions_max), sessions_max);
}
