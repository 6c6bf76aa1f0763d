//! A store in one file, kept by redb.
//!
//! ```text
//! names      owner (32), name          -> number of a table
//! kept       table                     -> Kept
//! summaries  table, period             -> a summary as served
//! entries    table, record             -> an entry's, a node's, a group's or a filter's bytes
//! orders     table (8), order (1), position -> record; with 64 added to the order's number, its filters by lower bound, with
//!            128 its nodes; with 32 the groups
//! ```
//! An update is one write transaction, durable when it returns; a reader has a snapshot of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use redb::{
    Builder, Database, DatabaseError, ReadOnlyTable, ReadTransaction, ReadableDatabase as _, ReadableTable as _,
    ReadableTableMetadata as _, StorageBackend, TableDefinition, WriteTransaction,
};

use crate::places::places;
use crate::store::{Decide, Kept, Place, Reading, Refused, Store, StoreChange, StoreError, TableName, Touched, Visit};

const NAMES: TableDefinition<'_, &[u8], u64> = TableDefinition::new("names");
const KEPT: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("kept");
const SUMMARIES: TableDefinition<'_, (u64, u64), &[u8]> = TableDefinition::new("summaries");
const ENTRIES: TableDefinition<'_, (u64, u64), &[u8]> = TableDefinition::new("entries");
const ORDERS: TableDefinition<'_, &[u8], u64> = TableDefinition::new("orders");

const CACHE_BYTES: usize = 64 << 20;

/// A store in one file.
pub struct Embedded {
    /// There until it is closed.
    database: Option<Database>,
}

impl Drop for Embedded {
    /// Closing writes what the library knows of free pages. A damaged file must not end the process then, either: nothing that was
    /// acknowledged waits for it.
    fn drop(&mut self) {
        let database = self.database.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(database)));
    }
}

fn failed(error: impl Into<redb::Error>) -> StoreError {
    match error.into() {
        redb::Error::Corrupted(_) => StoreError::Damaged("the store's file"),
        error => StoreError::Failed(error.to_string()),
    }
}

impl Embedded {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// [`StoreError`]: another process has it open, it is no store, or it is damaged.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::opened(|builder| builder.create(path))
    }

    /// Opens what a medium of another kind holds.
    ///
    /// # Errors
    /// As [`Embedded::open`].
    pub fn on(medium: impl StorageBackend) -> Result<Self, StoreError> {
        Self::opened(|builder| builder.create_with_backend(medium))
    }

    fn opened(create: impl FnOnce(&Builder) -> Result<Database, DatabaseError>) -> Result<Self, StoreError> {
        // The library asserts what its file should be; a damaged one must not end the process.
        let open = || -> Result<Self, StoreError> {
            let database = create(Database::builder().set_cache_size(CACHE_BYTES)).map_err(failed)?;
            let writing = database.begin_write().map_err(failed)?;
            writing.open_table(NAMES).map_err(failed)?;
            writing.open_table(KEPT).map_err(failed)?;
            writing.open_table(SUMMARIES).map_err(failed)?;
            writing.open_table(ENTRIES).map_err(failed)?;
            writing.open_table(ORDERS).map_err(failed)?;
            writing.commit().map_err(failed)?;
            Ok(Self { database: Some(database) })
        };
        catch_unwind(AssertUnwindSafe(open)).unwrap_or(Err(StoreError::Damaged("the store's file")))
    }
}

impl Embedded {
    fn database(&self) -> &Database {
        self.database.as_ref().expect("it is there until it is closed")
    }
}

fn name_key(name: &TableName) -> Vec<u8> {
    [&name.owner[..], name.name.as_bytes()].concat()
}

fn place_key(table: u64, order: u8, position: &[u8]) -> Vec<u8> {
    [&table.to_be_bytes()[..], &[order], position].concat()
}

impl Store for Embedded {
    fn read(&self, name: &TableName) -> Result<Option<Box<dyn Reading>>, StoreError> {
        let reading = self.database().begin_read().map_err(failed)?;
        let names = reading.open_table(NAMES).map_err(failed)?;
        let Some(table) = names.get(&name_key(name)[..]).map_err(failed)?.map(|table| table.value()) else {
            return Ok(None);
        };
        Ok(Some(Box::new(Snapshot::of(&reading, table)?)))
    }

    fn update(
        &self,
        names: &[TableName],
        tables_max: u64,
        decide: &Decide<'_>,
    ) -> Result<Result<Touched, Refused>, StoreError> {
        let writing = self.database().begin_write().map_err(failed)?;
        let known = known(&writing, names)?;
        let kept = known.map(|table| kept(&writing, table)).transpose()?;
        let change = match decide(kept.as_ref()) {
            Ok(Some(change)) => change,
            Ok(None) => return Ok(Ok(Touched::Places(Vec::new()))),
            Err(refused) => return Ok(Err(refused)),
        };
        let Some(table) = known.map_or_else(|| new_table(&writing, tables_max), |table| Ok(Some(table)))? else {
            return Ok(Err(Refused::Forbidden("this mirror keeps as many tables as it may".into())));
        };
        let before = apply(&writing, table, names, change)?;
        writing.commit().map_err(failed)?;
        Ok(Ok(Touched::by(change, before)))
    }
}

fn known(writing: &WriteTransaction, names: &[TableName]) -> Result<Option<u64>, StoreError> {
    let table = writing.open_table(NAMES).map_err(failed)?;
    for name in names {
        if let Some(known) = table.get(&name_key(name)[..]).map_err(failed)? {
            return Ok(Some(known.value()));
        }
    }
    Ok(None)
}

fn kept(writing: &WriteTransaction, table: u64) -> Result<Kept, StoreError> {
    let tables = writing.open_table(KEPT).map_err(failed)?;
    let kept = tables.get(table).map_err(failed)?.ok_or(StoreError::Damaged("what is kept of a table"))?;
    Kept::from_bytes(kept.value())
}

fn new_table(writing: &WriteTransaction, tables_max: u64) -> Result<Option<u64>, StoreError> {
    let tables = writing.open_table(KEPT).map_err(failed)?;
    if tables.len().map_err(failed)? >= tables_max {
        return Ok(None);
    }
    let last = tables.last().map_err(failed)?.map_or(0, |(last, _)| last.value());
    Ok(Some(last + 1))
}

/// Gives the places where entries were that are others now.
fn apply(
    writing: &WriteTransaction,
    table: u64,
    names: &[TableName],
    change: &StoreChange,
) -> Result<Vec<Place>, StoreError> {
    let mut all_names = writing.open_table(NAMES).map_err(failed)?;
    for name in names {
        all_names.insert(&name_key(name)[..], table).map_err(failed)?;
    }
    let mut tables = writing.open_table(KEPT).map_err(failed)?;
    tables.insert(table, &change.kept.to_bytes()[..]).map_err(failed)?;
    if change.is_anew {
        clear(writing, table)?;
    }
    let mut summaries = writing.open_table(SUMMARIES).map_err(failed)?;
    for (period, summary) in &change.summaries {
        summaries.insert((table, *period), &summary[..]).map_err(failed)?;
    }
    let mut entries = writing.open_table(ENTRIES).map_err(failed)?;
    let mut orders = writing.open_table(ORDERS).map_err(failed)?;
    let mut left = Vec::new();
    // All leave their places before any takes one: a row may move to where another one was.
    for rid in change.gone.iter().chain(change.put.iter().map(|(rid, _, _)| rid)) {
        if let Some(before) = entries.remove((table, *rid)).map_err(failed)? {
            for (order, position) in places(before.value(), &change.definition)?.1 {
                orders.remove(&place_key(table, order, &position)[..]).map_err(failed)?;
                left.push((order, position));
            }
        }
    }
    for (rid, entry, places) in &change.put {
        entries.insert((table, *rid), &entry[..]).map_err(failed)?;
        for (order, position) in places {
            orders.insert(&place_key(table, *order, position)[..], *rid).map_err(failed)?;
        }
    }
    Ok(left)
}

/// Removes all of a table but its name and what is kept of it.
fn clear(writing: &WriteTransaction, table: u64) -> Result<(), StoreError> {
    let all = (table, 0)..=(table, u64::MAX);
    writing.open_table(SUMMARIES).map_err(failed)?.retain_in(all.clone(), |_, _| false).map_err(failed)?;
    writing.open_table(ENTRIES).map_err(failed)?.retain_in(all, |_, _| false).map_err(failed)?;
    let (first, end) = (table.to_be_bytes(), (table + 1).to_be_bytes());
    let all = &first[..]..&end[..];
    writing.open_table(ORDERS).map_err(failed)?.retain_in::<&[u8], _>(all, |_, _| false).map_err(failed)
}

struct Snapshot {
    table: u64,
    kept: Kept,
    summaries: ReadOnlyTable<(u64, u64), &'static [u8]>,
    entries: ReadOnlyTable<(u64, u64), &'static [u8]>,
    orders: ReadOnlyTable<&'static [u8], u64>,
}

impl Snapshot {
    fn of(reading: &ReadTransaction, table: u64) -> Result<Self, StoreError> {
        let tables = reading.open_table(KEPT).map_err(failed)?;
        let kept = tables.get(table).map_err(failed)?.ok_or(StoreError::Damaged("what is kept of a table"))?;
        Ok(Self {
            table,
            kept: Kept::from_bytes(kept.value())?,
            summaries: reading.open_table(SUMMARIES).map_err(failed)?,
            entries: reading.open_table(ENTRIES).map_err(failed)?,
            orders: reading.open_table(ORDERS).map_err(failed)?,
        })
    }

    fn visit(&self, key: &[u8], rid: u64, visit: &mut Visit<'_>) -> Result<bool, StoreError> {
        let entry = self.entries.get((self.table, rid)).map_err(failed)?;
        let entry = entry.ok_or(StoreError::Damaged("an entry that its order names"))?;
        visit(key.get(9..).unwrap_or_default(), entry.value())
    }
}

impl Reading for Snapshot {
    fn kept(&self) -> &Kept {
        &self.kept
    }

    fn summary(&mut self, period: u64) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.summaries.get((self.table, period)).map_err(failed)?.map(|summary| summary.value().to_vec()))
    }

    fn upward(&mut self, order: u8, from: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let (from, end) = (place_key(self.table, order, from), place_key(self.table, order, &[3]));
        for found in self.orders.range::<&[u8]>(&from[..]..&end[..]).map_err(failed)? {
            let (key, rid) = found.map_err(failed)?;
            if !self.visit(key.value(), rid.value(), visit)? {
                break;
            }
        }
        Ok(())
    }

    fn downward(&mut self, order: u8, before: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let (first, before) = (place_key(self.table, order, &[]), place_key(self.table, order, before));
        for found in self.orders.range::<&[u8]>(&first[..]..&before[..]).map_err(failed)?.rev() {
            let (key, rid) = found.map_err(failed)?;
            if !self.visit(key.value(), rid.value(), visit)? {
                break;
            }
        }
        Ok(())
    }
}
