//! Sums of signatures over stretches of orders, so that a range that was asked before takes a few additions.
//!
//! Stretches begin where records' numbers say so ([`counterfoil_mirror::sums`]), on each level one in sixteen of the one below. A sum is
//! made when an answer holds all of its stretch, and forgotten when an update touches a place in it. Nothing of it is stored: a mirror
//! that starts makes them again as it is asked.
//!
//! 1. The sums of a table are those of one state of it. Whoever answers from another one neither finds them nor adds to them.
//! 2. A stretch is kept with its end: where an entry came or went that is one, the stretch that was asked for is another.
//! 3. They take so much memory and no more: all are forgotten when there are more.
//!
//! Nothing is signed over them: a wrong one is an answer that readers refuse.

use std::collections::{BTreeMap, HashMap};

use counterfoil_mirror::sums::LEVELS;
use counterfoil_mirror::wire::State;
use counterfoil_proof::{Digest, SignatureSum};
use parking_lot::Mutex;

use crate::store::Touched;

/// What a stretch takes beside its two places.
const BYTES_BESIDE: usize = 320;

/// The sums of all tables.
pub(crate) struct KeptSums {
    bytes_max: usize,
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    bytes: usize,
    /// By the digests of their definitions.
    by_definition: HashMap<Digest, TableSums>,
}

/// The sums of a table as it was in a state: by order, level, and where a stretch begins.
struct TableSums {
    state: State,
    stretches: BTreeMap<Vec<u8>, (Vec<u8>, SignatureSum)>,
}

/// A table in a state.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub table: Digest,
    pub state: State,
}

/// A stretch of a level of an order, from where it begins to where the next one does.
pub(crate) struct Stretch<'a> {
    pub order: u8,
    pub level: u8,
    pub begin: &'a [u8],
    pub end: &'a [u8],
}

impl Stretch<'_> {
    fn key(&self) -> Vec<u8> {
        key(self.order, self.level, self.begin)
    }
}

fn key(order: u8, level: u8, begin: &[u8]) -> Vec<u8> {
    [&[order, level], begin].concat()
}

impl KeptSums {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, tables: Mutex::default() }
    }

    /// The sum of a stretch, if it is kept.
    pub(crate) fn find(&self, at: &Moment, stretch: &Stretch<'_>) -> Option<SignatureSum> {
        let tables = self.tables.lock();
        let sums = tables.by_definition.get(&at.table).filter(|sums| sums.state == at.state)?;
        let (end, sum) = sums.stretches.get(&stretch.key())?;
        (end == stretch.end).then_some(*sum)
    }

    /// Keeps what was made of a table in a state, unless that is one of before.
    pub(crate) fn keep<'a>(&self, at: &Moment, made: impl Iterator<Item = (Stretch<'a>, SignatureSum)>) {
        let mut tables = self.tables.lock();
        if tables.by_definition.get(&at.table).is_some_and(|sums| sums.state.progress > at.state.progress) {
            return;
        }
        if tables.by_definition.get(&at.table).is_some_and(|sums| sums.state != at.state) {
            tables.forget(&at.table);
        }
        let mut bytes = 0;
        let sums = tables.by_definition.entry(at.table);
        let sums = sums.or_insert_with(|| TableSums { state: at.state, stretches: BTreeMap::new() });
        for (stretch, sum) in made {
            bytes += bytes_of(stretch.begin, stretch.end);
            let before = sums.stretches.insert(stretch.key(), (stretch.end.to_vec(), sum));
            bytes -= before.map_or(0, |(end, _)| bytes_of(stretch.begin, &end).min(bytes));
        }
        tables.bytes += bytes;
        if tables.bytes > self.bytes_max {
            *tables = Tables::default();
        }
    }

    /// A table went from one state to the next one, which touched these places.
    pub(crate) fn moved(&self, before: &Moment, after: State, touched: &Touched) {
        let mut tables = self.tables.lock();
        let Some(sums) = tables.by_definition.get_mut(&before.table).filter(|sums| sums.state != after) else { return };
        let Touched::Places(places) = touched else { return tables.forget(&before.table) };
        if sums.state != before.state {
            return tables.forget(&before.table);
        }
        sums.state = after;
        let gone: usize = places.iter().map(|(order, position)| sums.remove(*order, position)).sum();
        tables.bytes -= gone;
    }
}

impl Tables {
    fn forget(&mut self, table: &Digest) {
        let gone = self.by_definition.remove(table).map_or(0, |sums| sums.bytes());
        self.bytes -= gone;
    }
}

impl TableSums {
    fn bytes(&self) -> usize {
        self.stretches.iter().map(|(key, (end, _))| bytes_of(&key[2..], end)).sum()
    }

    /// Forgets the stretches in which a place is; gives the bytes that they took.
    fn remove(&mut self, order: u8, position: &[u8]) -> usize {
        let mut gone = 0;
        for level in 1..=LEVELS as u8 {
            let least = key(order, level, &[]);
            let holds = self.stretches.range(least..=key(order, level, position)).next_back();
            let Some((begin, (end, _))) = holds.filter(|(_, (end, _))| position < &end[..]) else { continue };
            gone += bytes_of(&begin[2..], end);
            let begin = begin.clone();
            self.stretches.remove(&begin);
        }
        gone
    }
}

fn bytes_of(begin: &[u8], end: &[u8]) -> usize {
    begin.len() + end.len() + BYTES_BESIDE
}
