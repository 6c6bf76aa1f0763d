//! The DRM benchmark of the paper (section 6.1): *n* counters; each transaction reads one to five of them at random,
//! increments each and commits them.

use counterfoil_flash_sim::Dice;

use crate::subject::{COUNTER_BYTES, Counter, Refusal, Subject};
use crate::work::Work;

/// Transactions that are measured.
pub const TRANSACTIONS: usize = 1000;
/// Counters that a transaction takes at most.
const COUNTERS_MAX: u64 = 5;
/// Counters that each commit of the load writes.
const LOADED_AT_ONCE: usize = 10;

/// One transaction: what reading its counters took, and what committing them took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transaction {
    pub reading: Work,
    pub committing: Work,
}

/// How far a run came.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// All transactions that were to be measured.
    Done(Vec<Transaction>),
    /// The store refused: while it was loaded, after so many counters.
    NotLoaded(u32, Refusal),
    /// The store refused: after so many transactions, those before the measured ones among them.
    Stopped(usize, Refusal),
}

/// A run of the benchmark: the same choices for every store.
pub struct Run {
    dice: Dice,
    counters: u32,
}

impl Run {
    pub fn new(counters: u32) -> Self {
        Self { dice: Dice::new(5), counters }
    }

    /// Writes all counters.
    pub fn load(&self, store: &mut dyn Subject) -> Result<(), (u32, Refusal)> {
        let all: Vec<u32> = (0..self.counters).collect();
        for ids in all.chunks(LOADED_AT_ONCE) {
            let changes: Vec<(u32, Counter)> = ids.iter().map(|id| (*id, fresh(*id))).collect();
            store.commit(&changes).map_err(|refusal| (ids[0], refusal))?;
        }
        Ok(())
    }

    /// One transaction.
    pub fn transaction(&mut self, store: &mut dyn Subject) -> Result<Transaction, Refusal> {
        let ids = self.choose();
        let before = store.work();
        let read = ids.iter().map(|id| Ok((*id, incremented(store.read(*id)?))));
        let changes = read.collect::<Result<Vec<(u32, Counter)>, Refusal>>()?;
        let between = store.work();
        store.commit(&changes)?;
        Ok(Transaction { reading: between - before, committing: store.work() - between })
    }

    fn choose(&mut self) -> Vec<u32> {
        let count = 1 + self.dice.below(COUNTERS_MAX);
        let mut ids: Vec<u32> = (0..count).map(|_| self.dice.below(u64::from(self.counters)) as u32).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// A counter as it is loaded: its descriptor tells its id, its value is zero.
fn fresh(id: u32) -> Counter {
    let mut counter = [7; COUNTER_BYTES];
    counter[..4].copy_from_slice(&id.to_le_bytes());
    counter[COUNTER_BYTES - 4..].fill(0);
    counter
}

fn incremented(mut counter: Counter) -> Counter {
    let value = &mut counter[COUNTER_BYTES - 4..];
    let next = u32::from_le_bytes([value[0], value[1], value[2], value[3]]).wrapping_add(1);
    value.copy_from_slice(&next.to_le_bytes());
    counter
}

/// Loads a store, makes so many transactions that are not measured, so that the rings have come round, and then those
/// that are.
pub fn measure(store: &mut dyn Subject, counters: u32, unmeasured: usize) -> Outcome {
    let mut run = Run::new(counters);
    if let Err((loaded, refusal)) = run.load(store) {
        return Outcome::NotLoaded(loaded, refusal);
    }
    let mut measured = Vec::with_capacity(TRANSACTIONS);
    for number in 0..unmeasured + TRANSACTIONS {
        match run.transaction(store) {
            Ok(transaction) if number >= unmeasured => measured.push(transaction),
            Ok(_) => {}
            Err(refusal) => return Outcome::Stopped(number, refusal),
        }
    }
    Outcome::Done(measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Board;
    use crate::{ours, yardstick};

    /// What all counters hold together after some transactions, and how many increments were committed.
    fn play(store: &mut dyn Subject, counters: u32) -> (u32, u32) {
        let mut run = Run::new(counters);
        run.load(store).expect("is loaded");
        let mut chooser = Run::new(counters);
        let committed = (0..300).map(|_| {
            run.transaction(store).expect("commits");
            chooser.choose().len() as u32
        });
        let committed = committed.sum();
        let value = |id| {
            let counter = store.read(id).expect("is there");
            assert_eq!(counter[..4], id.to_le_bytes(), "the descriptor of {id}");
            u32::from_le_bytes([counter[20], counter[21], counter[22], counter[23]])
        };
        ((0..counters).map(value).sum(), committed)
    }

    #[test]
    fn counters_count_in_both_stores() {
        for board in Board::ALL {
            let (theirs, _) = yardstick::with(&board, &yardstick::Layout::of(&board), |store, _| play(store, 500));
            let (own, committed) = ours::with(&board, &ours::Layout::advised(&board), 500, |store, _| play(store, 500))
                .expect("a store is made");
            assert_eq!((theirs, own), (committed, committed), "{board}");
        }
    }

    #[test]
    fn a_store_that_is_too_small_says_so() {
        let board = Board::ALL[0];
        let outcome = ours::with(&board, &ours::Layout::advised(&board), 4000, |store, _| measure(store, 4000, 0));
        assert!(matches!(outcome, Ok(Outcome::NotLoaded(1000..4000, Refusal::Full))), "{outcome:?}");
    }
}
