//! One run of the benchmark: a design on a board with so many counters, and what came of it.

use crate::board::{Board, Flash};
use crate::drm::{self, Outcome, Transaction};
use crate::ours::{self, Layout};
use crate::subject::Refusal;
use crate::work::{CipherPrices, Clock, Work};
use crate::yardstick;

/// Which store runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// The paper's, rebuilt.
    Yardstick,
    Ours,
}

impl Design {
    pub const BOTH: [Design; 2] = [Design::Yardstick, Design::Ours];

    pub fn name(self) -> &'static str {
        match self {
            Design::Yardstick => "paper's design",
            Design::Ours => "ours",
        }
    }

    /// The counted clock of a board, with the cipher of this design.
    pub fn clock(self, board: &Board) -> Clock {
        let cipher = match self {
            Design::Yardstick => CipherPrices::TWO_PASSES,
            Design::Ours => CipherPrices::OCB3,
        };
        Clock { prices: board.prices(), cipher }
    }

    /// How many counters there are when so many percent of what the data ring holds are taken.
    pub fn counters(self, board: &Board, percent: u32) -> u32 {
        let fill = f64::from(percent) / 100.0;
        match self {
            Design::Yardstick => yardstick::Layout::of(board).counters(board, fill),
            Design::Ours => Layout::advised(board).counters(board, fill),
        }
    }

    /// The percentage of what the data ring holds that so many counters take.
    pub fn percent(self, board: &Board, counters: u32) -> f64 {
        100.0 * f64::from(counters) / f64::from(self.counters(board, 100))
    }
}

/// A run to be made.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub design: Design,
    pub board: Board,
    pub counters: u32,
}

impl Case {
    /// Runs the benchmark.
    pub fn run(&self) -> Result<Measured, String> {
        let Self { board, counters, .. } = *self;
        // As many transactions before as the part has pages, twice: all blocks have come round when it is measured.
        let unmeasured = 2 * (board.blocks() * board.block_pages()) as usize;
        let outcome = match self.design {
            Design::Yardstick => {
                let layout = yardstick::Layout::of(&board);
                Ok(yardstick::with(&board, &layout, |store, _| drm::measure(store, counters, unmeasured)))
            }
            Design::Ours => {
                let layout = Layout::advised(&board);
                ours::with(&board, &layout, counters, |store, _| drm::measure(store, counters, unmeasured))
            }
        };
        match outcome {
            Ok(Outcome::Done(done)) => Ok(Measured::new(&self.design.clock(&board), &done)),
            Ok(Outcome::NotLoaded(at, Refusal::Full)) => Err(format!("full when {at} were loaded")),
            Ok(Outcome::Stopped(at, Refusal::Full)) => Err(format!("full after {at} transactions")),
            Ok(Outcome::NotLoaded(_, refusal) | Outcome::Stopped(_, refusal)) | Err(refusal) => {
                Err(refusal.to_string())
            }
        }
    }

    /// What we go for: the mean and the 99th percentile, in milliseconds. None where no goal was set.
    pub fn goal(&self, percent: u32) -> Option<(f64, Option<f64>)> {
        let at = match percent {
            1 => 0,
            2..=50 => 1,
            75..=90 => 2,
            _ => return None,
        };
        let (means, p99) = match (self.board.flash, self.board.kilobytes) {
            (Flash::Nand, 128) => ([10.0, 18.0, 25.0], Some(40.0)),
            (Flash::Nor, 128) => ([25.0, 35.0, 50.0], Some(400.0)),
            (Flash::Nand, _) => ([15.0, 50.0, 55.0], None),
            (Flash::Nor, _) => ([30.0, 90.0, 100.0], None),
        };
        Some((means[at], p99))
    }
}

/// What the measured transactions took.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Sums over all of them.
    pub reading: Work,
    pub committing: Work,
    /// Nanoseconds of each, in ascending order.
    times: Vec<u64>,
}

impl Measured {
    fn new(clock: &Clock, done: &[Transaction]) -> Self {
        let (mut reading, mut committing) = (Work::default(), Work::default());
        for transaction in done {
            reading += transaction.reading;
            committing += transaction.committing;
        }
        let time = |one: &Transaction| clock.nanoseconds(&one.reading) + clock.nanoseconds(&one.committing);
        let mut times: Vec<u64> = done.iter().map(time).collect();
        times.sort_unstable();
        Self { reading, committing, times }
    }

    pub fn transactions(&self) -> u64 {
        self.times.len() as u64
    }

    pub fn all(&self) -> Work {
        let mut all = self.reading;
        all += self.committing;
        all
    }

    /// Milliseconds.
    pub fn mean(&self) -> f64 {
        self.times.iter().sum::<u64>() as f64 / self.times.len() as f64 / 1e6
    }

    /// Milliseconds that so many percent of the transactions do not exceed.
    pub fn percentile(&self, percent: usize) -> f64 {
        self.times[(self.times.len() * percent / 100).min(self.times.len() - 1)] as f64 / 1e6
    }

    pub fn most(&self) -> f64 {
        self.percentile(100)
    }

    /// A count for each transaction.
    pub fn each(&self, count: u64) -> f64 {
        count as f64 / self.times.len() as f64
    }
}
