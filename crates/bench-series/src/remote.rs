//! Peers in a process of their own, whose code ours is not linked with: Berkeley DB, LMDB and RocksDB from Debian's packages,
//! DuckDB from its Python wheel, Chronix as a Rust program with a lock file of its own. `scripts/bench-peers` puts their
//! programs into the target folder.
//!
//! ```text
//! to the peer, little endian: 'I' insert, 'U' update, 'D' delete: sort u8, count u32, tuples | 'C' commit | 'S' settle
//!     'F' fold: sort u8, fold u8, series u32, first i64, last i64, parameter f64
//!     'A' the same of all series: sort u8, fold u8, first i64, last i64, count u32, parameters
//!     'N' newest: sort u8
//! tuple: series u32, quality u8, 3 zeros, time i64, value f64
//! from it: C, S -> 1 byte | F, A -> tuples u64, number f64 | N -> count u32, tuples
//! ```
//! Tuples go sorted by key. The peer stores them while we sort the next ones on another core, so its rate gains a little; it
//! has committed all of them before a clock stops.

use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::Failure;
use crate::query::{Answer, Fold};
use crate::store::{Span, Store};
use crate::workload::{Sort, Tuple};

const TUPLE_BYTES: usize = 24;

/// A peer and the pipes to it.
pub struct Remote {
    child: Child,
    to: Option<BufWriter<ChildStdin>>,
    from: BufReader<ChildStdout>,
    habits: Habits,
}

/// What a peer wants.
#[derive(Clone, Copy)]
pub struct Habits {
    /// Whether it wants tuples by key; columns come as they are.
    pub is_sorted: bool,
    /// How many are deleted in a benchmark at most.
    pub deletions_max: usize,
}

impl Default for Habits {
    fn default() -> Habits {
        Habits { is_sorted: false, deletions_max: usize::MAX }
    }
}

/// Where `scripts/bench-peers` puts programs: into the target folder that this one is somewhere in.
pub fn programs() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    let found = own.ancestors().map(|folder| folder.join("peers")).find(|folder| folder.is_dir());
    Ok(found.unwrap_or_else(|| own.join("peers")))
}

impl Remote {
    /// Starts a peer on an empty folder; none if its program is not there.
    pub fn start(program: &[PathBuf], folder: &Path, habits: Habits) -> Result<Option<Remote>, Failure> {
        let Some((first, rest)) = program.split_first() else { return Ok(None) };
        if !program.iter().all(|file| file.exists()) {
            return Ok(None);
        }
        let mut command = Command::new(first);
        let mut child = command.args(rest).arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (to, from) = (child.stdin.take().ok_or("no pipe")?, child.stdout.take().ok_or("no pipe")?);
        let to = Some(BufWriter::with_capacity(1 << 18, to));
        Ok(Some(Remote { child, to, from: BufReader::new(from), habits }))
    }

    fn to(&mut self) -> Result<&mut BufWriter<ChildStdin>, Failure> {
        self.to.as_mut().ok_or_else(|| "the peer was ended".into())
    }

    fn send(&mut self, word: u8, sort: Sort, tuples: &[Tuple]) -> Result<(), Failure> {
        let sorted = self.habits.is_sorted.then(|| {
            let mut sorted = tuples.to_vec();
            sorted.sort_by_key(|tuple| (tuple.series, tuple.time));
            sorted
        });
        let to = self.to()?;
        to.write_all(&[word, sort as u8])?;
        to.write_all(&(tuples.len() as u32).to_le_bytes())?;
        for tuple in sorted.as_deref().unwrap_or(tuples) {
            let mut bytes = [0; TUPLE_BYTES];
            bytes[..4].copy_from_slice(&tuple.series.to_le_bytes());
            bytes[4] = tuple.quality;
            bytes[8..16].copy_from_slice(&tuple.time.to_le_bytes());
            bytes[16..].copy_from_slice(&tuple.value.to_le_bytes());
            to.write_all(&bytes)?;
        }
        Ok(())
    }

    fn take<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], Failure> {
        self.to()?.flush()?;
        let mut bytes = [0; BYTES];
        self.from.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn answer(&mut self) -> Result<Answer, Failure> {
        let bytes: [u8; 16] = self.take()?;
        let (tuples, number) = bytes.split_at(8);
        Ok(Answer { tuples: u64::from_le_bytes(tuples.try_into()?), number: f64::from_le_bytes(number.try_into()?) })
    }

    fn word(&mut self, word: u8) -> Result<(), Failure> {
        self.to()?.write_all(&[word])?;
        self.take::<1>().map(drop)
    }
}

/// The number of a fold, and what it needs to know.
fn number(fold: &Fold) -> (u8, f64) {
    match fold {
        Fold::Raw => (0, 0.0),
        Fold::Count => (1, 0.0),
        Fold::Sum => (2, 0.0),
        Fold::Average => (3, 0.0),
        Fold::Extremes => (4, 0.0),
        Fold::Above(threshold) => (5, *threshold),
        Fold::Gaps(most) => (6, *most as f64),
    }
}

impl Store for Remote {
    fn insert(&mut self, sort: Sort, tuples: &[Tuple]) -> Result<(), Failure> {
        self.send(b'I', sort, tuples)
    }

    fn update(&mut self, sort: Sort, tuples: &[Tuple]) -> Result<(), Failure> {
        self.send(b'U', sort, tuples)
    }

    fn delete(&mut self, sort: Sort, tuples: &[Tuple]) -> Result<(), Failure> {
        self.send(b'D', sort, tuples)
    }

    fn deletions_max(&self) -> usize {
        self.habits.deletions_max
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.word(b'C')
    }

    fn fold(&mut self, sort: Sort, series: u32, span: Span, fold: Fold) -> Result<Answer, Failure> {
        let (kind, parameter) = number(&fold);
        let to = self.to()?;
        to.write_all(&[b'F', sort as u8, kind])?;
        to.write_all(&series.to_le_bytes())?;
        to.write_all(&span.first.to_le_bytes())?;
        to.write_all(&span.last.to_le_bytes())?;
        to.write_all(&parameter.to_le_bytes())?;
        self.answer()
    }

    fn fold_all(&mut self, sort: Sort, span: Span, folds: &[Fold]) -> Result<Answer, Failure> {
        let kind = folds.first().map_or(0, |fold| number(fold).0);
        let to = self.to()?;
        to.write_all(&[b'A', sort as u8, kind])?;
        to.write_all(&span.first.to_le_bytes())?;
        to.write_all(&span.last.to_le_bytes())?;
        to.write_all(&(folds.len() as u32).to_le_bytes())?;
        folds.iter().try_for_each(|fold| to.write_all(&number(fold).1.to_le_bytes()))?;
        self.answer()
    }

    fn newest(&mut self, sort: Sort) -> Result<Vec<Tuple>, Failure> {
        self.to()?.write_all(&[b'N', sort as u8])?;
        let count = u32::from_le_bytes(self.take()?);
        let tuple = |bytes: [u8; TUPLE_BYTES]| -> Result<Tuple, Failure> {
            Ok(Tuple {
                series: u32::from_le_bytes(bytes[..4].try_into()?),
                time: i64::from_le_bytes(bytes[8..16].try_into()?),
                value: f64::from_le_bytes(bytes[16..].try_into()?),
                quality: bytes[4],
            })
        };
        (0..count).map(|_| self.take().and_then(tuple)).collect()
    }

    fn settle(&mut self) -> Result<(), Failure> {
        self.word(b'S')
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // The end of its input is the end of its work.
        drop(self.to.take());
        let _ = self.child.wait();
    }
}
