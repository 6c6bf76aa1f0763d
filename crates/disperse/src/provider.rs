//! Who holds fragments: what every provider can do, whatever it is.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::fragments::{Answer, Fragments, Name, Question, evaluate};
use crate::lateness::Lateness;

/// Why a provider did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It cannot be reached, or did not answer in time: it may be there again later.
    Unreachable(String),
    /// It answered that it will not: full, no right to.
    Refused(String),
    /// It has no such table.
    NoTable,
    /// What it answered is none.
    Malformed(String),
    /// Whoever waits has called it off.
    CalledOff,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(what) => write!(f, "out of reach: {what}"),
            Self::Refused(what) => write!(f, "it refused: {what}"),
            Self::NoTable => f.write_str("it has no such table"),
            Self::Malformed(what) => write!(f, "its answer is none: {what}"),
            Self::CalledOff => f.write_str("called off"),
        }
    }
}

/// A provider. What it is told again is done once: rows have the places that they have, and always the same fragments.
pub trait Provider: Send + Sync {
    /// Takes rows in. A part of them may be there already.
    ///
    /// # Errors
    /// [`Failure`]: then some of them may be there, and they are to be told again.
    fn put(&self, table: &Name, rows: &Fragments) -> Result<(), Failure>;

    /// Lets go of the rows at these places, those that it has of them.
    ///
    /// # Errors
    /// [`Failure`]: then some of them may be gone, and they are to be told again.
    fn remove(&self, table: &Name, places: &[u64]) -> Result<(), Failure>;

    /// Answers a question, part by part.
    ///
    /// # Errors
    /// [`Failure`], the `take`'s own among them: what was taken does not count then. [`Failure::NoTable`], if it likes, of a table without rows, too.
    fn ask(
        &self,
        table: &Name,
        question: &Question,
        take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure>;

    /// Lets go of a table, if it has it.
    ///
    /// # Errors
    /// [`Failure`].
    fn drop_table(&self, table: &Name) -> Result<(), Failure>;

    /// Whether questions are answered where the fragments lie. Of one that gives files all of a column comes here with each of them.
    fn is_near_fragments(&self) -> bool {
        true
    }

    /// Where it is noted that it was waited for in vain; none: nobody remembers that of it.
    fn lateness(&self) -> Option<&Lateness> {
        None
    }
}

/// A provider in the memory of this process: gone with it. For tests, and to try things.
#[derive(Default)]
pub struct MemoryProvider {
    tables: Mutex<BTreeMap<Name, Held>>,
}

/// The rows of a table, batch by batch as they came.
#[derive(Default)]
struct Held {
    batches: Vec<Fragments>,
    places: HashSet<u64>,
}

/// Rows of an answer's part at most.
const PART_ROWS: usize = 1 << 14;

impl MemoryProvider {
    fn held<T>(&self, body: impl FnOnce(&mut BTreeMap<Name, Held>) -> T) -> T {
        // Whoever panicked while holding it left each batch whole.
        body(&mut self.tables.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The rows of a batch that `keep` wants, in pieces of `PART_ROWS` at most.
fn pieces(rows: &Fragments, keep: impl Fn(u64) -> bool) -> Vec<Fragments> {
    let kept: Vec<usize> = (0..rows.places.len()).filter(|row| keep(rows.places[*row])).collect();
    kept.chunks(PART_ROWS).map(|piece| rows.chosen(piece)).collect()
}

impl Provider for MemoryProvider {
    fn put(&self, table: &Name, rows: &Fragments) -> Result<(), Failure> {
        self.held(|tables| {
            let held = tables.entry(table.clone()).or_default();
            let new = pieces(rows, |place| !held.places.contains(&place));
            new.iter().for_each(|piece| held.places.extend(&piece.places));
            held.batches.extend(new);
            Ok(())
        })
    }

    fn remove(&self, table: &Name, places: &[u64]) -> Result<(), Failure> {
        self.held(|tables| {
            let Some(held) = tables.get_mut(table) else { return Ok(()) };
            let gone: HashSet<u64> = places.iter().copied().filter(|place| held.places.remove(place)).collect();
            let touched = |batch: &Fragments| batch.places.iter().any(|place| gone.contains(place));
            let batches = std::mem::take(&mut held.batches).into_iter().flat_map(|batch| match touched(&batch) {
                true => pieces(&batch, |place| !gone.contains(&place)),
                false => vec![batch],
            });
            held.batches = batches.collect();
            Ok(())
        })
    }

    fn ask(
        &self,
        table: &Name,
        question: &Question,
        take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut at = 0;
        loop {
            // Not held while the answer is taken: whoever takes it may ask again.
            let answer = self.held(|tables| {
                let held =
                    tables.get(table).filter(|held| at > 0 || !held.batches.is_empty()).ok_or(Failure::NoTable)?;
                let batch = held.batches.get(at);
                let malformed = || Failure::Refused("a column that is not there".into());
                batch.map(|batch| evaluate(batch, question).ok_or_else(malformed)).transpose()
            })?;
            let Some(answer) = answer else { return Ok(()) };
            take(answer)?;
            at += 1;
        }
    }

    fn drop_table(&self, table: &Name) -> Result<(), Failure> {
        self.held(|tables| tables.remove(table));
        Ok(())
    }
}
