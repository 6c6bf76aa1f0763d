//! Providers that only keep objects: fragments lie there as files (fragment_file.rs), and questions are answered here.
//!
//! 1. A file's name says what is in it: a retry writes the same file again, and what somebody else put there, or changed, is told
//!    before anything reads it.
//! 2. A file that is not as it was written is an obstacle for none of the others: what they have is shown, and goes, before its failure is
//!    told.
//! 3. A file never changes. Rows that go are left out of a new file, and the old one is deleted after that: a cut in between leaves a
//!    row twice, of which one counts.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;

use crate::fragment_file::{self, FILE_ROWS, FileName};
use crate::fragments::{Answer, Fragments, Name, Question, Test, evaluate};
use crate::keys::Secret;
use crate::provider::{Failure, Provider};
use crate::remembered::Remembered;

/// Bytes of fragments in a file, unless one row has more.
const FILE_BYTES: usize = 32 << 20;
/// How often what lies there may change while it is read.
const PASSES_MAX: usize = 16;
/// Rows for which room is made before they have been read.
const ROWS_RESERVED: usize = 1 << 20;

/// What keeps objects.
pub trait Store: Send + Sync {
    /// The names of the objects in a folder; none if there is no folder.
    ///
    /// # Errors
    /// [`Failure`].
    fn list(&self, folder: &str) -> Result<Vec<String>, Failure>;

    /// Bytes of an object, from the first of `range` to before its end; none if it is not there (any more). Of a shorter object what
    /// there is; a store that knows no ranges gives all of it.
    ///
    /// # Errors
    /// [`Failure`], for more than [`FILE_BYTES_MAX`](crate::FILE_BYTES_MAX) bytes among others.
    fn get(&self, folder: &str, name: &str, range: Range<u64>) -> Result<Option<Vec<u8>>, Failure>;

    /// Keeps an object: whole or not at all, and durable before this returns.
    ///
    /// # Errors
    /// [`Failure`].
    fn put(&self, folder: &str, name: &str, bytes: &[u8]) -> Result<(), Failure>;

    /// Lets go of an object, if it is there.
    ///
    /// # Errors
    /// [`Failure`].
    fn delete(&self, folder: &str, name: &str) -> Result<(), Failure>;

    /// Lets go of a folder without objects, if it is there.
    ///
    /// # Errors
    /// [`Failure`].
    fn delete_folder(&self, folder: &str) -> Result<(), Failure>;

    /// Whether it takes no more to read it than if it were here.
    fn is_near(&self) -> bool {
        false
    }
}

impl<S: Store + ?Sized> Store for Arc<S> {
    fn list(&self, folder: &str) -> Result<Vec<String>, Failure> {
        (**self).list(folder)
    }

    fn get(&self, folder: &str, name: &str, range: Range<u64>) -> Result<Option<Vec<u8>>, Failure> {
        (**self).get(folder, name, range)
    }

    fn put(&self, folder: &str, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        (**self).put(folder, name, bytes)
    }

    fn delete(&self, folder: &str, name: &str) -> Result<(), Failure> {
        (**self).delete(folder, name)
    }

    fn delete_folder(&self, folder: &str) -> Result<(), Failure> {
        (**self).delete_folder(folder)
    }

    fn is_near(&self) -> bool {
        (**self).is_near()
    }
}

/// What came of reading a file.
enum Read {
    Rows(Fragments),
    /// It has none of the rows that are asked for.
    NotAsked,
    /// It is not there any more.
    Gone,
}

/// Places of which rows were shown. Whoever has a machine answer for them chooses places: the hash is one that they do not know.
#[derive(Default)]
struct Places(hashbrown::HashSet<u64>);

impl Places {
    /// The rows of one of so many files that were not shown yet.
    fn new_of(&mut self, rows: Fragments, files: usize) -> Fragments {
        let Self(seen) = self;
        if seen.is_empty() {
            // Most files have as many rows as the first; but a listing may say what it likes.
            seen.reserve(rows.places.len().saturating_mul(files).min(ROWS_RESERVED));
        }
        let new: Vec<usize> = (0..rows.places.len()).filter(|row| seen.insert(rows.places[*row])).collect();
        if new.len() == rows.places.len() { rows } else { rows.chosen(&new) }
    }
}

/// A provider that keeps objects.
pub struct StoredProvider<S> {
    store: S,
    key: Secret,
    remembered: Option<Remembered>,
}

impl<S: Store> StoredProvider<S> {
    /// A provider over a store; `key` tells the owner's files from others.
    #[must_use]
    pub fn new(store: S, key: Secret) -> Self {
        Self { store, key, remembered: None }
    }

    /// With so many bytes of memory for columns that were read: for a server, which is asked again.
    #[must_use]
    pub fn with_memory(self, bytes_max: usize) -> Self {
        Self { remembered: Some(Remembered::new(bytes_max)), ..self }
    }

    fn files(&self, table: &Name) -> Result<Vec<FileName>, Failure> {
        // What else lies there is somebody else's.
        let mut names: Vec<FileName> =
            self.store.list(table.as_str())?.into_iter().filter_map(FileName::parse).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The rows of a file, with these of their columns (all, unless some are named); none: it has gone meanwhile.
    fn read(
        &self,
        table: &Name,
        name: &FileName,
        columns: Option<&BTreeSet<&str>>,
    ) -> Result<Option<Fragments>, Failure> {
        let known = self.remembered.as_ref().zip(columns);
        if let Some(rows) =
            known.and_then(|(remembered, columns)| remembered.get(table.as_str(), name.as_str(), columns))
        {
            return Ok(Some(rows));
        }
        let get = |range| self.store.get(table.as_str(), name.as_str(), range);
        let rows = fragment_file::read(name, &self.key, columns, &get)?;
        if let Some(((remembered, _), rows)) = known.zip(rows.as_ref()) {
            remembered.put(table.as_str(), name.as_str(), rows);
        }
        Ok(rows)
    }

    /// Whether a file may have rows that are asked for. Of a large one its places tell, before its other columns are fetched: whoever reads
    /// a table in turns asks for some rows after the others.
    fn may_have(&self, table: &Name, name: &FileName, question: &Question) -> Result<bool, Failure> {
        let Some(places) = question.places.as_ref().filter(|_| !name.is_small()) else { return Ok(true) };
        let there = self.read(table, name, Some(&BTreeSet::new()))?;
        // Of one that has gone meanwhile nothing is known.
        Ok(there.is_none_or(|rows| rows.places.iter().any(|place| places.binary_search(place).is_ok())))
    }

    /// The rows of a file, unless it has none of those that are asked for.
    fn read_if_asked(
        &self,
        table: &Name,
        name: &FileName,
        (question, columns): (&Question, &BTreeSet<&str>),
    ) -> Result<Read, Failure> {
        match self.may_have(table, name, question)? {
            true => Ok(self.read(table, name, Some(columns))?.map_or(Read::Gone, Read::Rows)),
            false => Ok(Read::NotAsked),
        }
    }

    fn delete(&self, table: &Name, name: &FileName) -> Result<(), Failure> {
        self.store.delete(table.as_str(), name.as_str())?;
        self.remembered.iter().for_each(|remembered| remembered.forget(table.as_str(), name.as_str()));
        Ok(())
    }

    /// Writes a file anew without some rows, if it has any of them.
    fn leave_out(&self, table: &Name, name: &FileName, gone: &HashSet<u64>) -> Result<(), Failure> {
        let Some(rows) = self.read(table, name, None)? else { return Ok(()) };
        let kept: Vec<usize> = (0..rows.places.len()).filter(|row| !gone.contains(&rows.places[*row])).collect();
        if kept.len() == rows.places.len() {
            return Ok(());
        }
        if !kept.is_empty() {
            self.write(table, &rows.chosen(&kept))?;
        }
        self.delete(table, name)
    }

    fn write(&self, table: &Name, rows: &Fragments) -> Result<(), Failure> {
        let file = fragment_file::encode(rows, &self.key);
        let (name, file) = file.map_err(|error| Failure::Refused(format!("no file can be made of them: {error}")))?;
        self.store.put(table.as_str(), name.as_str(), &file)
    }
}

impl<S: Store> Provider for StoredProvider<S> {
    fn is_near_fragments(&self) -> bool {
        self.store.is_near()
    }

    fn put(&self, table: &Name, rows: &Fragments) -> Result<(), Failure> {
        let mut some = Vec::new();
        let mut bytes = 0;
        for row in 0..rows.places.len() {
            let own = rows.row_bytes(row);
            if !some.is_empty() && (some.len() == FILE_ROWS || bytes + own > FILE_BYTES) {
                self.write(table, &rows.chosen(&some))?;
                (some, bytes) = (Vec::new(), 0);
            }
            some.push(row);
            bytes += own;
        }
        if some.is_empty() { Ok(()) } else { self.write(table, &rows.chosen(&some)) }
    }

    fn remove(&self, table: &Name, places: &[u64]) -> Result<(), Failure> {
        let gone: HashSet<u64> = places.iter().copied().collect();
        let mut failed = None;
        for name in self.files(table)? {
            match self.leave_out(table, &name, &gone) {
                // Where there is no room for what is left of a file, others may go altogether, and make some.
                Err(failure @ (Failure::Refused(_) | Failure::Malformed(_))) => failed = Some(failure),
                outcome => outcome?,
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn ask(
        &self,
        table: &Name,
        question: &Question,
        take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let names = question.columns.iter().chain(&question.sums).chain(question.tests.iter().map(Test::column));
        let columns: BTreeSet<&str> = names.map(Name::as_str).collect();
        let (mut seen, mut done, mut damaged) = (Places::default(), HashSet::new(), None);
        for _ in 0..PASSES_MAX {
            let mut names = self.files(table)?;
            if names.is_empty() && done.is_empty() {
                // Somebody else's folder, or an emptied one: that no row matches is not for it to say.
                return Err(Failure::NoTable);
            }
            names.retain(|name| done.insert(name.clone()));
            let (mut is_settled, count) = (true, names.len());
            for name in names {
                match self.read_if_asked(table, &name, (question, &columns)) {
                    Ok(Read::Rows(rows)) => {
                        let answer = evaluate(&seen.new_of(rows, count), question);
                        let lacks = || Failure::Malformed(format!("file {} lacks a column", name.as_str()));
                        take(answer.ok_or_else(lacks)?)?;
                    }
                    Ok(Read::NotAsked) => {}
                    // It was written anew meanwhile, without some rows: the others are in a file that is listed now.
                    Ok(Read::Gone) => is_settled = false,
                    Err(failure @ Failure::Malformed(_)) => drop(damaged.get_or_insert(failure)),
                    Err(failure) => return Err(failure),
                }
            }
            if is_settled {
                return damaged.map_or(Ok(()), Err);
            }
        }
        Err(Failure::Unreachable("what lies there changes faster than it can be read".into()))
    }

    fn drop_table(&self, table: &Name) -> Result<(), Failure> {
        for name in self.files(table)? {
            self.delete(table, &name)?;
        }
        self.store.delete_folder(table.as_str())
    }
}
