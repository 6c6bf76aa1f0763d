//! What one would pick instead, as a store of the benchmark. The written order is theirs: what comes in between two looks at
//! the clock is sorted by key first, as each of them likes it best.
//!
//! ```text
//! key: series u32, big endian, highest bit set for booleans | time i64, big endian        value: f32 or u8 | quality u8
//! ```
//! Stores of keys and values so have the paper's 17 bytes for an analog tuple.

mod fjall;
mod redb;
mod sqlite;

pub use fjall::Fjall;
pub use redb::Redb;
pub use sqlite::Sqlite;

use crate::Failure;
use crate::query::{Answer, Fold, Folding};
use crate::store::{Span, Store};
use crate::workload::{SERIES, Sort, Tuple};

/// Memory that each may keep pages in.
pub const CACHE_BYTES: usize = 256 << 20;

pub type Key = [u8; 12];

fn key(sort: Sort, series: u32, time: i64) -> Key {
    let number = series | (u32::from(sort == Sort::Boolean) << 31);
    let mut key = [0; 12];
    key[..4].copy_from_slice(&number.to_be_bytes());
    key[4..].copy_from_slice(&(time as u64).to_be_bytes());
    key
}

/// Series and time of a key.
fn split(key: &[u8]) -> Option<(u32, i64)> {
    let (number, time) = key.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*number) & (u32::MAX >> 1), u64::from_be_bytes(time.try_into().ok()?) as i64))
}

/// A value of an analog tuple in 5 bytes, of a boolean one in 2.
fn value(sort: Sort, tuple: &Tuple, room: &mut [u8; 5]) -> usize {
    match sort {
        Sort::Analog => {
            room[..4].copy_from_slice(&(tuple.value as f32).to_be_bytes());
            room[4] = tuple.quality;
            5
        }
        Sort::Boolean => {
            room[..2].copy_from_slice(&[tuple.value as u8, tuple.quality]);
            2
        }
    }
}

/// Value and quality.
fn read(value: &[u8]) -> Option<(f64, u8)> {
    match *value {
        [a, b, c, d, quality] => Some((f64::from(f32::from_be_bytes([a, b, c, d])), quality)),
        [value, quality] => Some((f64::from(value), quality)),
        _ => None,
    }
}

/// What is visited, entry by entry.
pub type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]);

/// A store of keys and values, in the order of the keys.
pub trait KeyValue {
    /// One call of the store's own for each entry; they come sorted, with as many bytes of the value as it has.
    fn put_all(&mut self, entries: &mut dyn Iterator<Item = (Key, [u8; 5], usize)>) -> Result<(), Failure>;
    fn delete_all(&mut self, keys: &mut dyn Iterator<Item = Key>) -> Result<(), Failure>;
    fn commit(&mut self) -> Result<(), Failure>;
    /// Visits what is from one key to another, both included.
    fn visit(&mut self, from: &Key, until: &Key, visit: impl FnMut(&[u8], &[u8])) -> Result<(), Failure>;
    /// Visits the last entry that is from one key to another.
    fn last(&mut self, from: &Key, until: &Key, visit: Visit<'_>) -> Result<(), Failure>;
    fn settle(&mut self) -> Result<(), Failure>;
}

/// One of them as a store of tuples.
pub struct Plain<K>(pub K);

impl<K: KeyValue> Store for Plain<K> {
    fn insert(&mut self, sort: Sort, tuples: &[Tuple]) -> Result<(), Failure> {
        let entry = |tuple: Tuple| {
            let mut room = [0; 5];
            let bytes = value(sort, &tuple, &mut room);
            (key(sort, tuple.series, tuple.time), room, bytes)
        };
        self.0.put_all(&mut sorted(tuples).into_iter().map(entry))
    }

    fn delete(&mut self, sort: Sort, tuples: &[Tuple]) -> Result<(), Failure> {
        self.0.delete_all(&mut sorted(tuples).into_iter().map(|tuple| key(sort, tuple.series, tuple.time)))
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.0.commit()
    }

    fn fold(&mut self, sort: Sort, series: u32, span: Span, fold: Fold) -> Result<Answer, Failure> {
        let mut folding = Folding::new(fold);
        let (from, until) = (key(sort, series, span.first), key(sort, series, span.last));
        self.0.visit(&from, &until, |key, value| {
            if let (Some((_, time)), Some((value, quality))) = (split(key), read(value)) {
                folding.take(time, value, quality);
            }
        })?;
        Ok(folding.answer())
    }

    fn newest(&mut self, sort: Sort) -> Result<Vec<Tuple>, Failure> {
        let mut found = Vec::new();
        for series in 0..SERIES {
            let (from, until) = (key(sort, series, 0), key(sort, series, i64::MAX));
            self.0.last(&from, &until, &mut |key, value| {
                if let (Some((series, time)), Some((value, quality))) = (split(key), read(value)) {
                    found.push(Tuple { series, time, value, quality });
                }
            })?;
        }
        Ok(found)
    }

    fn settle(&mut self) -> Result<(), Failure> {
        self.0.settle()
    }
}

/// Tuples by their keys; of those with one key the last.
pub fn sorted(tuples: &[Tuple]) -> Vec<Tuple> {
    let mut tuples = tuples.to_vec();
    tuples.sort_by_key(|tuple| (tuple.series, tuple.time));
    tuples
}
