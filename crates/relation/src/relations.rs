//! The face of the crate: every table of one database.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use counterfoil_log::Order as _;
use counterfoil_log::View;

use crate::access::Shared;
use crate::bounds::BUILD_BYTES;
use crate::catalog;
use crate::change::Changes;
use crate::found::Found;
use crate::fresh::FRESH_ROWS;
use crate::index::IndexReader;
use crate::key::{ByteRange, Keys};
use crate::read::Wanted;
use crate::reorganize::Vacuum;
use crate::{
    ColumnId, Error, IndexDef, IndexId, KeyRange, RowBatch, RowBlock, RowId, Salvage, Scan, Statement, Storage,
    StoredView, Table, TableId, TableUse, Type, VerifyProgress, VerifyReport, alter, define, figures, identity, insert,
    join, merge, reference, reorganize, settle, verify,
};

/// What a name stands for. Tables, views and indexes share one space of names.
#[derive(Clone, Debug)]
pub enum Named {
    /// A table.
    Table(Arc<Table>),
    /// A view.
    View(StoredView),
    /// An index of a table.
    Index(Arc<Table>, IndexId),
}

/// The tables of one open database: shared by all readers and the writer.
///
/// It holds no truth, only what it has read: dropping it and making a new one loses nothing.
///
/// The methods that change something take the writer with a transaction begun, see what it has done so far, and after
/// an error leave it half done: the caller goes back to a savepoint taken before the call (or rolls all back) and then
/// calls [`Relations::rolled_back`]. Tables are handed over as [`Table`]s but always looked up by number in the view at
/// hand, so that one that was altered meanwhile is seen as it is.
pub struct Relations {
    pub(crate) shared: Shared,
}

impl Default for Relations {
    fn default() -> Self {
        Self::new()
    }
}

/// Reading the catalog.
impl Relations {
    /// For a database just opened.
    #[must_use]
    pub fn new() -> Self {
        Self::with_fresh_rows(FRESH_ROWS).with_build_bytes(BUILD_BYTES)
    }

    /// The same, with another bound for the rows whose index entries are kept in memory (and read again after an open).
    /// It may differ from open to open.
    #[must_use]
    pub fn with_fresh_rows(fresh_rows: usize) -> Self {
        Relations { shared: Shared::new(fresh_rows) }
    }

    /// All tables, by name.
    ///
    /// # Errors
    /// [`Error::corrupt`] for a catalog that makes no sense.
    pub fn tables(&self, view: &dyn View) -> Result<Vec<Arc<Table>>, Error> {
        self.shared.catalog.tables(view)
    }

    /// A table by name.
    ///
    /// # Errors
    /// As [`Relations::tables`].
    pub fn table(&self, view: &dyn View, name: &str) -> Result<Option<Arc<Table>>, Error> {
        match self.named(view, name)? {
            Some(Named::Table(table)) => Ok(Some(table)),
            _ => Ok(None),
        }
    }

    /// A table by number.
    ///
    /// # Errors
    /// As [`Relations::tables`].
    pub fn table_by_id(&self, view: &dyn View, id: TableId) -> Result<Option<Arc<Table>>, Error> {
        self.shared.catalog.table(view, id)
    }

    /// All views (CREATE VIEW), by name.
    ///
    /// # Errors
    /// As [`Relations::tables`].
    pub fn views(&self, view: &dyn View) -> Result<Vec<StoredView>, Error> {
        catalog::stored_views(view)
    }

    /// What a name stands for: table, view or index.
    ///
    /// # Errors
    /// As [`Relations::tables`].
    pub fn named(&self, view: &dyn View, name: &str) -> Result<Option<Named>, Error> {
        self.shared.catalog.named(view, name)
    }
}

/// Reading rows.
impl Relations {
    /// Rows the view sees in a table: exact, and without reading them.
    ///
    /// # Errors
    /// [`crate::Cause::Log`], [`Error::corrupt`].
    pub fn count(&self, view: &dyn View, table: &Table) -> Result<u64, Error> {
        Ok(self.shared.access(view, table.id)?.count())
    }

    /// Bytes of a row of a table with its long values, on average.
    ///
    /// # Errors
    /// As [`Relations::count`].
    pub fn row_bytes(&self, view: &dyn View, table: &Table) -> Result<u64, Error> {
        let access = self.shared.access(view, table.id)?;
        let (rows, bytes) = access.parts.iter().fold((0_u64, 0_u64), |(rows, bytes), part| {
            (rows.saturating_add(part.count), bytes.saturating_add(part.bytes()))
        });
        Ok(bytes / rows.max(1))
    }

    /// Reads a whole table in the order of row numbers.
    ///
    /// # Errors
    /// [`crate::Cause::Log`], [`Error::corrupt`].
    pub fn scan<V: View>(&self, view: V, table: &Table) -> Result<Scan<V>, Error> {
        let access = self.shared.access(&view, table.id)?;
        Ok(Scan::new(view, access))
    }

    /// Reads rows by number, in the order given. Rows that are not there are NULLs and not visible.
    /// `columns`: places of the columns whose long values are wanted; `None` is all.
    ///
    /// # Errors
    /// [`crate::Cause::Log`], [`Error::corrupt`].
    pub fn fetch(
        &self,
        view: &dyn View,
        table: &Table,
        rows: &[RowId],
        columns: Option<&[usize]>,
    ) -> Result<RowBlock, Error> {
        let wanted = columns.map_or(Wanted::all(), Wanted::only);
        self.shared.access(view, table.id)?.fetch(view, rows, &wanted)
    }

    /// As [`Relations::fetch`], if the long values have so many bytes at most, or four times as many of one row alone; otherwise
    /// [`Error::memory`].
    ///
    /// # Errors
    /// As [`Relations::fetch`], and [`Error::memory`].
    pub fn fetch_within(
        &self,
        view: &dyn View,
        table: &Table,
        rows: &[RowId],
        columns: &[usize],
        heap_bytes: u64,
    ) -> Result<RowBlock, Error> {
        self.shared.access(view, table.id)?.fetch(view, rows, &Wanted::only(columns).within(heap_bytes))
    }

    /// As [`Relations::fetch_within`], and nothing else of the rows but what they join, if that is wanted.
    pub(crate) fn fetch_apart(
        &self,
        view: &dyn View,
        table: &Table,
        rows: &[RowId],
        columns: &[usize],
        (joins, heap_bytes): (bool, u64),
    ) -> Result<RowBlock, Error> {
        let wanted = Wanted::only(columns).apart(joins).within(heap_bytes);
        self.shared.access(view, table.id)?.fetch(view, rows, &wanted)
    }

    /// The rows whose key lies in a range, in the order of their keys.
    /// `None` if the index has more than `rows_max` candidates: then a scan is the better way.
    ///
    /// # Errors
    /// [`Error::misuse`] for an index that is not there or a range of other types, [`crate::Cause::Log`], [`Error::corrupt`].
    pub fn lookup(
        &self,
        view: &dyn View,
        table: &Table,
        index: IndexId,
        range: &KeyRange,
        rows_max: usize,
    ) -> Result<Option<Vec<RowId>>, Error> {
        self.in_index(view, table, (index, range), |reader, range| {
            let Some(candidates) = reader.candidates(range, rows_max)? else { return Ok(None) };
            let mut confirmed = reader.confirm(&candidates, range)?;
            confirmed.order();
            Ok(Some(confirmed.into_iter().map(|(_, row)| row).collect()))
        })
    }

    /// Rows whose key may lie in a range, in the order of their numbers: all whose key does, and some whose key did once.
    /// Whoever reads the rows anyway is spared reading them twice. `None` if there are more than `rows_max`.
    ///
    /// # Errors
    /// As [`Relations::lookup`].
    pub fn candidates(
        &self,
        view: &dyn View,
        table: &Table,
        index: IndexId,
        range: &KeyRange,
        rows_max: usize,
    ) -> Result<Option<Vec<RowId>>, Error> {
        self.in_index(view, table, (index, range), |reader, range| reader.candidates(range, rows_max))
    }

    /// As [`Relations::candidates`], which rows that came in the order of their keys spare where one is asked for.
    pub(crate) fn candidates_or_owner(
        &self,
        view: &dyn View,
        table: &Table,
        range: (IndexId, &KeyRange),
        rows_max: usize,
    ) -> Result<Option<Vec<RowId>>, Error> {
        self.in_index(view, table, range, |reader, range| match reader.owner(range)? {
            Some(row) => Ok(Some(Vec::from([row]))),
            None => reader.candidates(range, rows_max),
        })
    }

    /// Rows of so many entries of an index at the beginning of a range, or at its end, in the order of their numbers: some may have
    /// had such a key once. `None` if the entries take more than so many bytes.
    pub(crate) fn outermost(
        &self,
        view: &dyn View,
        table: &Table,
        range: (IndexId, &KeyRange),
        count: (bool, usize),
        bytes_max: usize,
    ) -> Result<Option<Vec<RowId>>, Error> {
        self.in_index(view, table, range, |reader, range| reader.outermost(range, count, bytes_max))
    }

    /// Asks an index about a range of its keys.
    fn in_index<T>(
        &self,
        view: &dyn View,
        table: &Table,
        (index, range): (IndexId, &KeyRange),
        ask: impl FnOnce(&IndexReader<'_>, &ByteRange) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let access = self.shared.access(view, table.id)?;
        let index = index_of(&access.table, index)?;
        let range = range.encode(&kinds(&access.table, index))?;
        ask(&self.shared.index(view, &access, index, false)?, &range)
    }

    /// Rows of a table from which a path of foreign keys may lead to one of some rows of the table at its end, in the order
    /// of their numbers: all from which it does, and some from which it did once. `path`: its place among the table's
    /// joins. `None` if there are more than `rows_max`: then a scan is the better way.
    ///
    /// # Errors
    /// [`Error::misuse`] for a path that is not there, [`crate::Cause::Log`], [`Error::corrupt`].
    pub fn joined_to(
        &self,
        view: &dyn View,
        table: &Table,
        path: usize,
        rows: &[RowId],
        rows_max: usize,
    ) -> Result<Option<Vec<RowId>>, Error> {
        let access = self.shared.access(view, table.id)?;
        let join = access.table.joins.get(path).ok_or_else(|| Error::misuse("a path that is not there"))?;
        let mut rows = rows.to_vec();
        rows.order();
        rows.dedup();
        let mut found = Found::all(rows_max);
        let is_all = join::find_joined_to(&self.shared, view, &access, join, &rows, &mut found)?;
        Ok(is_all.then(|| found.finish_all()))
    }

    /// Finds rows of a table from which a path leads to one of some rows of the table at its end, each of them named once; whether
    /// there are not too many.
    pub(crate) fn find_joined_to(
        &self,
        view: &dyn View,
        table: &Table,
        (path, rows): (usize, &[RowId]),
        found: &mut Found,
    ) -> Result<bool, Error> {
        let access = self.shared.access(view, table.id)?;
        let join = access.table.joins.get(path).ok_or_else(|| Error::misuse("a path that is not there"))?;
        join::find_joined_to(&self.shared, view, &access, join, rows, found)
    }

    /// Finds rows whose keys may lie in one of some ranges of an index; whether there are not too many.
    pub(crate) fn find_in(
        &self,
        view: &dyn View,
        table: &Table,
        (index, ranges): (IndexId, &[KeyRange]),
        found: &mut Found,
    ) -> Result<bool, Error> {
        let access = self.shared.access(view, table.id)?;
        let index = index_of(&access.table, index)?;
        let (kinds, reader) = (kinds(&access.table, index), self.shared.index(view, &access, index, false)?);
        for range in ranges {
            if !found.add(&reader, &range.encode(&kinds)?)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// For each row of a batch the row of the table with the same key in a unique index (none where the key has a NULL).
    ///
    /// # Errors
    /// As [`Relations::lookup`].
    pub fn conflicts(
        &self,
        view: &dyn View,
        table: &Table,
        index: IndexId,
        batch: &RowBatch,
    ) -> Result<Vec<Option<RowId>>, Error> {
        let access = self.shared.access(view, table.id)?;
        let index = unique_index(&access.table, index)?;
        let keys = Keys::of(batch, &access.places(&index.columns)?)?;
        let sorted = keys.sorted();
        let mut conflicts = vec![None; batch.count()];
        for (place, row) in self.shared.index(view, &access, index, false)?.matches(&keys, &sorted)? {
            conflicts[sorted[place]] = Some(row);
        }
        Ok(conflicts)
    }

    /// For each row of a batch the first earlier row of the same batch with the same key (none where the key has a NULL).
    ///
    /// # Errors
    /// [`Error::misuse`] for an index that is not there or a batch of another layout.
    pub fn repeats(&self, table: &Table, index: IndexId, batch: &RowBatch) -> Result<Vec<Option<usize>>, Error> {
        if batch.layout().columns() != table.layout().columns() {
            return Err(Error::misuse("rows of another layout than the table's"));
        }
        let places: Option<Vec<_>> = unique_index(table, index)?.columns.iter().map(|id| table.position(*id)).collect();
        let keys = Keys::of(batch, &places.ok_or_else(|| Error::misuse("an index over columns that are not there"))?)?;
        let mut repeats = vec![None; batch.count()];
        for same in keys.sorted().chunk_by(|one, two| keys.key(*one) == keys.key(*two)) {
            same[1..].iter().for_each(|row| repeats[*row] = Some(same[0]));
        }
        Ok(repeats)
    }
}

fn index_of(table: &Table, index: IndexId) -> Result<&IndexDef, Error> {
    table.index(index).ok_or_else(|| Error::misuse("an index that is not there"))
}

fn unique_index(table: &Table, index: IndexId) -> Result<&IndexDef, Error> {
    table.index(index).filter(|index| index.unique).ok_or_else(|| Error::misuse("no unique index"))
}

/// The types of the columns of an index's keys.
pub(crate) fn kinds(table: &Table, index: &IndexDef) -> Vec<Type> {
    let place = |id: &ColumnId| table.position(*id).map(|place| table.columns[place].kind);
    index.columns.iter().filter_map(place).collect()
}

/// Changing rows.
impl Relations {
    /// Adds rows; checks NOT NULL, bounds, keys and references. Returns the number of the first; the others follow on.
    /// `batch` has the table's layout ([`Table::layout`]); defaults and identity values are the caller's to fill in.
    ///
    /// # Errors
    /// [`crate::Cause::Constraint`], [`Error::misuse`] for another layout, [`crate::Cause::Log`], [`Error::corrupt`].
    pub fn insert(&self, writer: &mut dyn Storage, table: &Table, batch: &RowBatch) -> Result<RowId, Error> {
        let mut statement = Statement::new();
        let first = self.insert_in(&mut statement, writer, table, batch)?;
        self.finish(statement, writer)?;
        Ok(first)
    }

    /// As [`Relations::insert`], for a statement of several batches: a reference from the table to itself that does not
    /// hold yet is looked at again by [`Relations::finish`].
    ///
    /// # Errors
    /// As [`Relations::insert`].
    pub fn insert_in(
        &self,
        statement: &mut Statement<'_>,
        writer: &mut dyn Storage,
        table: &Table,
        batch: &RowBatch,
    ) -> Result<RowId, Error> {
        insert::insert(&self.shared, statement, writer, table, batch)
    }

    /// Ends a statement of several batches.
    ///
    /// # Errors
    /// As [`Relations::insert`].
    pub fn finish(&self, statement: Statement<'_>, writer: &mut dyn Storage) -> Result<(), Error> {
        reference::finish(&self.shared, statement, writer)
    }

    /// Gives visible rows new images, all columns of them: row i of the batch becomes row `rows[i]`. Constraints are
    /// checked when all have changed; references to changed keys act as ON UPDATE says. Returns how many rows it was
    /// given.
    ///
    /// # Errors
    /// [`crate::Cause::Constraint`], [`Error::misuse`] for another layout, a row given twice or one that is not there,
    /// [`crate::Cause::Log`], [`Error::corrupt`].
    pub fn update(
        &self,
        writer: &mut dyn Storage,
        table: &Table,
        rows: &[RowId],
        batch: &RowBatch,
    ) -> Result<u64, Error> {
        self.update_in(&mut Statement::new(), writer, table, rows, batch)
    }

    /// As [`Relations::update`], telling the statement's observer of rows that change by cascading.
    ///
    /// # Errors
    /// As [`Relations::update`], and what the observer says.
    pub fn update_in(
        &self,
        statement: &mut Statement<'_>,
        writer: &mut dyn Storage,
        table: &Table,
        rows: &[RowId],
        batch: &RowBatch,
    ) -> Result<u64, Error> {
        Changes::new(&self.shared, statement).update(writer, table.id, rows, batch)
    }

    /// Deletes rows (those not visible are passed over); references to them act as ON DELETE says.
    /// Returns how many of `rows` were there.
    ///
    /// # Errors
    /// [`crate::Cause::Constraint`], [`crate::Cause::Log`], [`Error::corrupt`].
    pub fn delete(&self, writer: &mut dyn Storage, table: &Table, rows: &[RowId]) -> Result<u64, Error> {
        self.delete_in(&mut Statement::new(), writer, table, rows)
    }

    /// As [`Relations::delete`], telling the statement's observer of rows that change by cascading.
    ///
    /// # Errors
    /// As [`Relations::delete`], and what the observer says.
    pub fn delete_in(
        &self,
        statement: &mut Statement<'_>,
        writer: &mut dyn Storage,
        table: &Table,
        rows: &[RowId],
    ) -> Result<u64, Error> {
        Changes::new(&self.shared, statement).delete(writer, table.id, rows)
    }

    /// Takes `count` values of an identity column: the first of them; the others follow by the identity's increment.
    /// Values that rows bring along are never handed out later.
    ///
    /// # Errors
    /// [`crate::Cause::Constraint`] when there are no more, [`Error::misuse`] for another column.
    pub fn next_identity(
        &self,
        writer: &mut dyn Storage,
        table: &Table,
        column: ColumnId,
        count: u64,
    ) -> Result<i64, Error> {
        let table = define::reread(&self.shared, writer, table.id)?;
        identity::take(writer, &table, column, count)
    }

    /// Deletes all rows at once. Refused while another table references this one (enforced).
    /// `restart`: RESTART IDENTITY.
    ///
    /// # Errors
    /// [`Error::sql`] where it is refused, [`crate::Cause::Log`].
    pub fn truncate(&self, writer: &mut dyn Storage, table: &Table, restart: bool) -> Result<(), Error> {
        alter::truncate(&self.shared, writer, table.id, restart, &[])
    }

    /// The same of one of several tables that all lose their rows: they may reference one another.
    ///
    /// # Errors
    /// Those of [`Relations::truncate`].
    pub fn truncate_together(
        &self,
        writer: &mut dyn Storage,
        table: &Table,
        restart: bool,
        together: &[TableId],
    ) -> Result<(), Error> {
        alter::truncate(&self.shared, writer, table.id, restart, together)
    }

    /// The next values of identity columns, as far as some were taken; none of a column that has no more.
    ///
    /// # Errors
    /// [`Error::corrupt`].
    pub fn identities(&self, view: &dyn View, table: &Table) -> Result<Vec<(ColumnId, Option<i64>)>, Error> {
        catalog::identities(view, table.id)
    }

    /// Lets a table without rows go on where another one has ended: with its next row's number, if that is above its own, and the next
    /// values of its identity columns.
    ///
    /// # Errors
    /// [`Error::misuse`] for a table with rows, and for a number behind the last one that a row may have.
    pub fn go_on_at(
        &self,
        writer: &mut dyn Storage,
        table: &Table,
        row: RowId,
        identities: &[(ColumnId, Option<i64>)],
    ) -> Result<(), Error> {
        if self.count(&*writer, table)? > 0 {
            return Err(Error::misuse("rows of a table that has some"));
        }
        alter::go_on_at(&self.shared, writer, table.id, row)?;
        catalog::put_identities(writer, table.id, &identities.to_vec())
    }
}

/// Keeping house.
impl Relations {
    /// To be called after a commit, with the writer as it now is.
    pub fn committed(&self, view: &dyn View) {
        self.shared.committed(view);
    }

    /// To be called after a rollback, whole or to a savepoint, with the writer as it now is. From here on no view of
    /// what was rolled back may be read.
    pub fn rolled_back(&self, view: &dyn View) {
        self.shared.rolled_back(view);
    }

    /// A step of the work that is due in tables that have changed, inside a transaction of its own after a commit: renews a segment
    /// of which much is gone, or merges some entries of index runs that have become many. Returns whether there is anything to
    /// commit; then there may be more to do.
    ///
    /// # Errors
    /// [`crate::Cause::Log`], [`Error::corrupt`].
    pub fn maintain(&self, writer: &mut dyn Storage) -> Result<bool, Error> {
        reorganize::maintain(&self.shared, writer)
    }

    /// As [`Relations::maintain`], but only what is pressing: for after each commit, where somebody calls that when there is time.
    ///
    /// # Errors
    /// [`crate::Cause::Log`], [`Error::corrupt`].
    pub fn relieve(&self, writer: &mut dyn Storage) -> Result<bool, Error> {
        reorganize::relieve(&self.shared, writer)
    }

    /// Gives up what merges have made so far, for the room it takes: they begin anew when there is more. Whether there was anything.
    ///
    /// # Errors
    /// [`crate::Cause::Log`], [`Error::corrupt`].
    pub fn abandon_merges(&self, writer: &mut dyn Storage) -> Result<bool, Error> {
        let mut any = false;
        for id in catalog::table_ids(writer)? {
            any |= merge::abandon(&self.shared, writer, id)?;
        }
        Ok(any)
    }

    /// Has [`Relations::maintain`] look at all tables: those of a database just opened may have been left half tidied.
    ///
    /// # Errors
    /// [`Error::corrupt`].
    pub fn note_all(&self, view: &dyn View) -> Result<(), Error> {
        catalog::table_ids(view)?.into_iter().for_each(|id| settle::note(&self.shared, id));
        Ok(())
    }

    /// VACUUM, of one table or all: renews the segments of which something is gone, joins small ones, and merges each index into
    /// one sorted run. Tables that are tidy are left alone.
    ///
    /// # Errors
    /// [`crate::Cause::Log`], [`Error::corrupt`].
    pub fn vacuum(&self, writer: &mut dyn Storage, table: Option<&Table>) -> Result<(), Error> {
        let ids = match table {
            Some(table) => vec![table.id],
            None => catalog::table_ids(writer)?,
        };
        for id in ids {
            let mut vacuum = Vacuum::of(id);
            while vacuum.step(&self.shared, writer)? {}
        }
        Ok(())
    }

    /// One step of a VACUUM, for a transaction of its own: whether there was one. Each may be the last; one that begins anew goes on
    /// where it was.
    ///
    /// # Errors
    /// [`crate::Cause::Log`], [`Error::corrupt`].
    pub fn vacuum_step(&self, writer: &mut dyn Storage, vacuum: &mut Vacuum) -> Result<bool, Error> {
        vacuum.step(&self.shared, writer)
    }

    /// How a table is kept, and what VACUUM would cost and gain.
    ///
    /// # Errors
    /// [`crate::Cause::Log`], [`Error::corrupt`].
    pub fn figures(&self, view: &dyn View, table: &Table) -> Result<TableUse, Error> {
        figures::of(&self.shared, view, table.id)
    }

    /// Checks every table: rows, rows against indexes, indexes against rows, references. Goes on past damage.
    ///
    /// # Errors
    /// Only what is no damage; what is damaged stands in the report.
    pub fn verify(
        &self,
        view: &dyn View,
        progress: &mut dyn FnMut(&VerifyProgress<'_>),
    ) -> Result<VerifyReport, Error> {
        verify::verify(&self.shared, view, progress)
    }

    /// Reads what can still be read of a table.
    ///
    /// # Errors
    /// [`Error::corrupt`] if not even the catalog says where it lies.
    pub fn salvage<V: View>(&self, view: V, table: &Table) -> Result<Salvage<V>, Error> {
        Salvage::open(&self.shared, view, table.id)
    }
}
