//! Reading what can still be read of a damaged database.

use counterfoil_log::{Recovered, Snapshot, View, record_space};
use counterfoil_relation::{Relations, Table};
use counterfoil_sql::SeriesReader;
use counterfoil_sql::series_engine::SeriesTables;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::options::Options;
use crate::volume::{Freshness, Volume};

/// Rows that are turned into a batch at once.
const BATCH_ROWS: usize = 8192;

/// A database being salvaged: whatever authenticates of the newest commit that can be found. No counter is asked to
/// agree, because what is left may be all there is.
pub struct Salvage {
    snapshot: Snapshot,
    relations: Relations,
    tables: Vec<Arc<Table>>,
    /// Why the image may not be the newest one: rows that came later are not in it.
    pub doubts: Vec<String>,
    /// What else should be known of the whole, such as rows that lie elsewhere.
    pub notes: Vec<String>,
}

/// Why the image may not be the newest one, or not whole.
fn doubt(judged: Result<(Recovered, Freshness)>) -> Option<Error> {
    match judged {
        Ok((_, Freshness::Behind(permitted))) => Some(permitted.refusal),
        Ok(_) => None,
        Err(error) => Some(error),
    }
}

/// What series tables keep apart, under the names by which it is imported.
fn kept_apart(snapshot: &Snapshot, tables: &[Arc<Table>]) -> Result<Vec<Arc<Table>>> {
    let series = SeriesTables::new();
    let mut found = Vec::new();
    for table in tables {
        let apart = counterfoil_sql::kept_apart(table);
        // What cannot be counted may still be read in part.
        if let Some(apart) = apart.filter(|_| !matches!(counterfoil_sql::count_apart(&series, snapshot, table), Ok(0)))
        {
            let mut apart = Arc::unwrap_or_clone(apart);
            apart.name = counterfoil_sql::kept_apart_name(&table.name);
            found.push(Arc::new(apart));
        }
    }
    Ok(found)
}

/// What could not be read of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// Numbers of the rows, from and up to but without, in order.
    pub rows: Vec<(u64, u64)>,
    /// What else is lost, such as deletions: rows may appear as they once were. And which rows lie elsewhere.
    pub notes: Vec<String>,
}

impl Salvage {
    /// Opens a database as far as it can be opened.
    ///
    /// # Errors
    /// Those of opening, if there is nothing to begin with; [`crate::Kind::CounterLost`] where a counter is required
    /// and there is none.
    pub fn open(options: Options) -> Result<Self> {
        let place = options.place.clone();
        let salvage = || -> Result<Self> {
            let volume = Volume::open(options.read_only(true))?;
            if volume.options.require_counter {
                volume.counter_record()?;
            }
            let snapshot = volume.recover()?.snapshot();
            let mut doubts = Vec::new();
            doubts.extend(volume.settle(&snapshot).err().map(|error| error.to_string()));
            doubts.extend(doubt(volume.recover_and_judge()).map(|error| error.to_string()));
            let relations = Relations::new();
            let mut tables = relations.tables(&snapshot)?;
            // Keys of published tables do not go into files that everybody can read.
            tables.retain(|table| !counterfoil_sql::is_hidden(&table.name) && !counterfoil_sql::is_published(table));
            let notes = tables.iter().filter_map(|table| counterfoil_sql::rows_elsewhere(&snapshot, table)).collect();
            tables.extend(kept_apart(&snapshot, &tables)?);
            Ok(Self { snapshot, relations, tables, doubts, notes })
        };
        salvage().map_err(|error| error.at(&place))
    }

    /// Names of the tables.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(|table| table.name.as_str())
    }

    /// Names and types of a table's columns.
    #[must_use]
    pub fn schema(&self, index: usize) -> SchemaRef {
        counterfoil_sql::table_schema(&self.tables[index])
    }

    /// Reads all rows of a table that authenticate, and answers what is missing.
    ///
    /// # Errors
    /// Only those of `take`, and of tables of which nothing can be read.
    pub fn read<E: From<crate::Error>>(
        &self,
        index: usize,
        take: &mut dyn FnMut(RecordBatch) -> Result<(), E>,
    ) -> Result<Missing, E> {
        let table = &self.tables[index];
        if let Some(reader) = self.series_reader(table)? {
            return read_series(reader, take);
        }
        let mut salvage = self.relations.salvage(self.snapshot.clone(), table).map_err(crate::Error::from)?;
        while let Some(block) = salvage.next(BATCH_ROWS).map_err(crate::Error::from)? {
            take(counterfoil_sql::table_batch(table, &block).map_err(crate::Error::from)?)?;
        }
        Ok(Missing {
            rows: salvage.missing().iter().map(|range| (range.start.0, range.end.0)).collect(),
            notes: salvage.notes().to_vec(),
        })
    }

    fn series_reader(&self, table: &Arc<Table>) -> Result<Option<SeriesReader>, crate::Error> {
        Ok(SeriesReader::open(&SeriesTables::new(), self.snapshot.clone(), table)?)
    }

    /// Names and values of the records that were kept by name.
    #[must_use]
    pub fn records(&self) -> Vec<(Vec<u8>, Arc<[u8]>)> {
        self.snapshot.records(record_space::USER, b"")
    }
}

/// Reads what can be read of a series table.
fn read_series<E: From<crate::Error>>(
    mut reader: SeriesReader,
    take: &mut dyn FnMut(RecordBatch) -> Result<(), E>,
) -> Result<Missing, E> {
    let mut notes = Vec::new();
    loop {
        match reader.next() {
            Ok(None) => return Ok(Missing { rows: Vec::new(), notes }),
            Ok(Some(batch)) => take(batch)?,
            Err(error) => notes.push(format!("a page of points cannot be read: {error}")),
        }
    }
}
