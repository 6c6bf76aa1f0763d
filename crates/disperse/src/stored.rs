//! Providers that only keep objects: fragments lie there as Parquet files, and questions are answered here.
//!
//! ```text
//! TABLE/MAC.parquet      place UINT64, one column for each fragment: UINT64 for shares, BINARY for everything else
//! MAC                    the first 16 bytes of HMAC-SHA256(key, the file), in hexadecimal
//! ```
//! 1. A file's name says what is in it: a retry writes the same file again, and what somebody else put there, or changed, is told
//!    before anything reads it. So the library that reads Parquet sees our own files alone.
//! 2. A file never changes. Rows that go are left out of a new file, and the old one is deleted after that: a cut in between leaves a
//!    row twice, of which one counts.
//! 3. Whoever may read the files can query them with what they like (Spark, Trino, DuckDB): they see what the store sees.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, BinaryArray, RecordBatch, UInt64Array};
use bytes::Bytes;
use hmac::Mac as _;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::fragments::{Answer, Data, Fragments, Name, Question, Strings, Test, evaluate};
use crate::keys::Secret;
use crate::provider::{Failure, Provider};
use crate::remembered::Remembered;

/// Rows of a file at most.
const FILE_ROWS: usize = 1 << 16;
/// Bytes of fragments in a file, unless one row has more.
const FILE_BYTES: usize = 32 << 20;
/// Bytes of a file that is read at most, whoever wrote it.
pub const FILE_BYTES_MAX: u64 = 1 << 30;
/// How often what lies there may change while it is read.
const PASSES_MAX: usize = 16;
const PLACE: &str = "place";
const ENDING: &str = ".parquet";

/// What keeps objects.
pub trait Store: Send + Sync {
    /// The names of the objects in a folder; none if there is no folder.
    ///
    /// # Errors
    /// [`Failure`].
    fn list(&self, folder: &str) -> Result<Vec<String>, Failure>;

    /// An object; none if it is not there (any more).
    ///
    /// # Errors
    /// [`Failure`], for one of more than [`FILE_BYTES_MAX`] bytes among others.
    fn get(&self, folder: &str, name: &str) -> Result<Option<Vec<u8>>, Failure>;

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
}

impl<S: Store + ?Sized> Store for Arc<S> {
    fn list(&self, folder: &str) -> Result<Vec<String>, Failure> {
        (**self).list(folder)
    }

    fn get(&self, folder: &str, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        (**self).get(folder, name)
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

    fn name(&self, file: &[u8]) -> String {
        let mut mac = self.key.mac();
        mac.update(file);
        let mac = mac.finalize().into_bytes();
        let digits: String = mac[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        digits + ENDING
    }

    fn files(&self, table: &Name) -> Result<Vec<String>, Failure> {
        let mut names = self.store.list(table.as_str())?;
        // What else lies there is somebody else's.
        names.retain(|name| name.len() == 32 + ENDING.len() && name.ends_with(ENDING));
        names.sort_unstable();
        Ok(names)
    }

    /// The rows of a file, with these of their columns (all, unless some are named); none: it has gone meanwhile.
    fn read(&self, table: &Name, name: &str, columns: Option<&BTreeSet<&str>>) -> Result<Option<Fragments>, Failure> {
        let known = self.remembered.as_ref().zip(columns);
        if let Some(rows) = known.and_then(|(remembered, columns)| remembered.get(table.as_str(), name, columns)) {
            return Ok(Some(rows));
        }
        let Some(file) = self.store.get(table.as_str(), name)? else { return Ok(None) };
        if self.name(&file) != name {
            return Err(Failure::Malformed(format!("file {name} is not as it was written")));
        }
        let rows = decode(file, columns).map_err(|error| Failure::Malformed(format!("file {name}: {error}")))?;
        if let Some((remembered, _)) = known {
            remembered.put(table.as_str(), name, &rows);
        }
        Ok(Some(rows))
    }

    fn delete(&self, table: &Name, name: &str) -> Result<(), Failure> {
        self.store.delete(table.as_str(), name)?;
        self.remembered.iter().for_each(|remembered| remembered.forget(table.as_str(), name));
        Ok(())
    }

    fn write(&self, table: &Name, rows: &Fragments) -> Result<String, Failure> {
        let file = encode(rows).map_err(|error| Failure::Refused(format!("no file can be made of them: {error}")))?;
        let name = self.name(&file);
        self.store.put(table.as_str(), &name, &file)?;
        Ok(name)
    }
}

impl<S: Store> Provider for StoredProvider<S> {
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
        if some.is_empty() { Ok(()) } else { self.write(table, &rows.chosen(&some)).map(drop) }
    }

    fn remove(&self, table: &Name, places: &[u64]) -> Result<(), Failure> {
        let gone: HashSet<u64> = places.iter().copied().collect();
        for name in self.files(table)? {
            let Some(rows) = self.read(table, &name, None)? else { continue };
            let kept: Vec<usize> = (0..rows.places.len()).filter(|row| !gone.contains(&rows.places[*row])).collect();
            if kept.len() == rows.places.len() {
                continue;
            }
            if !kept.is_empty() {
                self.write(table, &rows.chosen(&kept))?;
            }
            self.delete(table, &name)?;
        }
        Ok(())
    }

    fn ask(
        &self,
        table: &Name,
        question: &Question,
        take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let names = question.columns.iter().chain(&question.sums).chain(question.tests.iter().map(Test::column));
        let columns: BTreeSet<&str> = names.map(Name::as_str).collect();
        // Places are as good as random: they need no hash that nobody can foresee, and are many.
        let (mut seen, mut done) = (hashbrown::HashSet::new(), HashSet::new());
        for _ in 0..PASSES_MAX {
            let mut names = self.files(table)?;
            names.retain(|name| done.insert(name.clone()));
            let mut is_settled = true;
            for name in names {
                let Some(rows) = self.read(table, &name, Some(&columns))? else {
                    // It was written anew meanwhile, without some rows: the others are in a file that is listed now.
                    is_settled = false;
                    continue;
                };
                let new: Vec<usize> = (0..rows.places.len()).filter(|row| seen.insert(rows.places[*row])).collect();
                let rows = if new.len() == rows.places.len() { rows } else { rows.chosen(&new) };
                let answer = evaluate(&rows, question);
                take(answer.ok_or_else(|| Failure::Malformed(format!("file {name} lacks a column")))?)?;
            }
            if is_settled {
                return Ok(());
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

fn encode(rows: &Fragments) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut columns: Vec<(&str, ArrayRef)> = vec![(PLACE, Arc::new(UInt64Array::from(rows.places.clone())))];
    for (name, data) in &rows.columns {
        let array: ArrayRef = match data {
            Data::Shares(shares) => Arc::new(UInt64Array::from(shares.clone())),
            Data::Strings(strings) => Arc::new(BinaryArray::from_iter_values(strings.iter())),
        };
        columns.push((name.as_str(), array));
    }
    let batch = RecordBatch::try_from_iter(columns)?;
    // Fragments look like noise: neither dictionaries nor a search for repetitions find anything in most of them.
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .build();
    let mut file = Vec::new();
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(&mut file, batch.schema(), options)?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(file)
}

fn decode(file: Vec<u8>, columns: Option<&BTreeSet<&str>>) -> Result<Fragments, Box<dyn std::error::Error>> {
    let mut rows = Fragments::default();
    let mut reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(file))?.with_batch_size(FILE_ROWS);
    if let Some(columns) = columns {
        let wanted = std::iter::once(PLACE).chain(columns.iter().copied());
        let mask = ProjectionMask::columns(reader.parquet_schema(), wanted);
        reader = reader.with_projection(mask);
    }
    for batch in reader.build()? {
        let batch = batch?;
        for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
            let numbers = array.as_any().downcast_ref::<UInt64Array>().map(|numbers| numbers.values().to_vec());
            let strings = array.as_any().downcast_ref::<BinaryArray>().map(|array| {
                let mut strings = Strings::default();
                array.iter().for_each(|string| strings.push(string.unwrap_or_default()));
                strings
            });
            if field.name() == PLACE {
                rows.places.extend(numbers.ok_or("places that are no numbers")?);
                continue;
            }
            let name = Name::parse(field.name()).ok_or("a column of another name")?;
            let data = numbers.map(Data::Shares).or(strings.map(Data::Strings)).ok_or("a column of another type")?;
            rows.append(name, data).ok_or("a column of two types")?;
        }
    }
    if rows.is_even() { Ok(rows) } else { Err("columns of different lengths".into()) }
}
