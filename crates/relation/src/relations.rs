//! The face of the crate: every table of one database.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use counterfoil_log::View;

use crate::{
    ColumnId, Error, IndexId, KeyRange, NewColumn, NewIndex, NewTable, RowBatch, RowBlock, RowId, Salvage, Scan,
    Statement, Storage, StoredView, Table, TableId, Value, VerifyProgress, VerifyReport,
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
/// The methods that change something take the writer with a transaction begun, see what it has done so far, and after
/// an error leave it half done: the caller goes back to a savepoint taken before the call (or rolls all back) and then
/// calls [`Relations::rolled_back`].
pub struct Relations {}

impl Relations {
    /// For a database just opened.
    #[must_use]
    pub fn new() -> Self;

    // Reading the catalog

    /// All tables, by name.
    pub fn tables(&self, view: &dyn View) -> Result<Vec<Arc<Table>>, Error>;

    /// A table by name.
    pub fn table(&self, view: &dyn View, name: &str) -> Result<Option<Arc<Table>>, Error>;

    /// A table by number.
    pub fn table_by_id(&self, view: &dyn View, id: TableId) -> Result<Option<Arc<Table>>, Error>;

    /// All views (CREATE VIEW), by name.
    pub fn views(&self, view: &dyn View) -> Result<Vec<StoredView>, Error>;

    /// What a name stands for: table, view or index.
    pub fn named(&self, view: &dyn View, name: &str) -> Result<Option<Named>, Error>;

    // Reading rows

    /// Rows the view sees in a table: exact, and without reading them.
    pub fn count(&self, view: &dyn View, table: &Table) -> Result<u64, Error>;

    /// Reads a whole table in the order of row numbers.
    pub fn scan<V: View + Clone>(&self, view: V, table: &Table) -> Result<Scan<V>, Error>;

    /// Reads rows by number, in the order given. Rows that are not there are NULLs and not visible.
    /// `columns`: places of the columns whose long values are wanted; `None` is all.
    pub fn fetch(&self, view: &dyn View, table: &Table, rows: &[RowId], columns: Option<&[usize]>)
    -> Result<RowBlock, Error>;

    /// The rows whose key lies in a range, in the order of their keys.
    /// `None` if the index has more than `rows_max` candidates: then a scan is the better way.
    pub fn lookup(&self, view: &dyn View, table: &Table, index: IndexId, range: &KeyRange, rows_max: usize)
    -> Result<Option<Vec<RowId>>, Error>;

    /// For each row of a batch the row of the table with the same key in a unique index (none where the key has a NULL).
    pub fn conflicts(&self, view: &dyn View, table: &Table, index: IndexId, batch: &RowBatch)
    -> Result<Vec<Option<RowId>>, Error>;

    /// For each row of a batch the first earlier row of the same batch with the same key (none where the key has a NULL).
    pub fn repeats(&self, table: &Table, index: IndexId, batch: &RowBatch) -> Result<Vec<Option<usize>>, Error>;

    // Changing rows

    /// Adds rows; checks NOT NULL, bounds, keys and references. Returns the number of the first; the others follow on.
    /// `batch` has the table's layout ([`Table::layout`]); defaults and identity values are the caller's to fill in.
    pub fn insert(&self, writer: &mut dyn Storage, table: &Table, batch: &RowBatch) -> Result<RowId, Error>;

    /// As [`Relations::insert`], for a statement of several batches: a reference from the table to itself that does not
    /// hold yet is looked at again by [`Relations::finish`].
    pub fn insert_in(&self, statement: &mut Statement<'_>, writer: &mut dyn Storage, table: &Table, batch: &RowBatch)
    -> Result<RowId, Error>;

    /// Ends a statement of several batches.
    pub fn finish(&self, statement: Statement<'_>, writer: &mut dyn Storage) -> Result<(), Error>;

    /// Gives visible rows new images, all columns of them: row i of the batch becomes row `rows[i]`. Constraints are
    /// checked when all have changed; references to changed keys act as ON UPDATE says.
    pub fn update(&self, writer: &mut dyn Storage, table: &Table, rows: &[RowId], batch: &RowBatch) -> Result<u64, Error>;

    /// As [`Relations::update`], telling the statement's observer of rows that change by cascading.
    pub fn update_in(&self, statement: &mut Statement<'_>, writer: &mut dyn Storage, table: &Table, rows: &[RowId], batch: &RowBatch)
    -> Result<u64, Error>;

    /// Deletes rows (those not visible are passed over); references to them act as ON DELETE says.
    /// Returns how many of `rows` were there.
    pub fn delete(&self, writer: &mut dyn Storage, table: &Table, rows: &[RowId]) -> Result<u64, Error>;

    /// As [`Relations::delete`], telling the statement's observer of rows that change by cascading.
    pub fn delete_in(&self, statement: &mut Statement<'_>, writer: &mut dyn Storage, table: &Table, rows: &[RowId])
    -> Result<u64, Error>;

    /// Takes `count` values of an identity column: the first of them; the others follow by the identity's increment.
    /// Values that rows bring along are never handed out later.
    pub fn next_identity(&self, writer: &mut dyn Storage, table: &Table, column: ColumnId, count: u64) -> Result<i64, Error>;

    /// Deletes all rows at once. Refused while another table references this one (enforced).
    /// `restart`: RESTART IDENTITY.
    pub fn truncate(&self, writer: &mut dyn Storage, table: &Table, restart: bool) -> Result<(), Error>;

    // Defining

    /// CREATE TABLE.
    pub fn create_table(&self, writer: &mut dyn Storage, table: &NewTable) -> Result<Arc<Table>, Error>;

    /// DROP TABLE. `cascade`: foreign keys of other tables that reference it go too; otherwise they forbid it.
    pub fn drop_table(&self, writer: &mut dyn Storage, table: &Table, cascade: bool) -> Result<(), Error>;

    /// ALTER TABLE ... RENAME TO.
    pub fn rename_table(&self, writer: &mut dyn Storage, table: &Table, name: &str) -> Result<Arc<Table>, Error>;

    /// ALTER TABLE ... ADD COLUMN: rows that are there have `value` (the default, evaluated once).
    pub fn add_column(&self, writer: &mut dyn Storage, table: &Table, column: &NewColumn, value: &Value) -> Result<Arc<Table>, Error>;

    /// ALTER TABLE ... DROP COLUMN, with the table's own keys, checks, foreign keys and indexes over it.
    /// `cascade`: foreign keys of other tables that reference it go too; otherwise they forbid it.
    pub fn drop_column(&self, writer: &mut dyn Storage, table: &Table, column: &str, cascade: bool) -> Result<Arc<Table>, Error>;

    /// ALTER TABLE ... RENAME COLUMN. `rewrite` gets the text of each check over the column and returns it with the new name.
    pub fn rename_column(&self, writer: &mut dyn Storage, table: &Table, from: &str, to: &str, rewrite: &mut dyn FnMut(&str) -> String)
    -> Result<Arc<Table>, Error>;

    /// CREATE [UNIQUE] INDEX, over the rows that are there.
    pub fn create_index(&self, writer: &mut dyn Storage, table: &Table, index: &NewIndex) -> Result<Arc<Table>, Error>;

    /// DROP INDEX.
    pub fn drop_index(&self, writer: &mut dyn Storage, name: &str) -> Result<(), Error>;

    /// CREATE VIEW; `replace`: OR REPLACE.
    pub fn create_view(&self, writer: &mut dyn Storage, view: &StoredView, replace: bool) -> Result<(), Error>;

    /// DROP VIEW.
    pub fn drop_view(&self, writer: &mut dyn Storage, name: &str) -> Result<(), Error>;

    // Keeping house

    /// To be called after a commit.
    pub fn committed(&self);

    /// To be called after a rollback, whole or to a savepoint, with the writer as it now is.
    pub fn rolled_back(&self, view: &dyn View);

    /// Work that is due, inside a transaction of its own after a commit: merges index runs that have become many,
    /// rewrites tables that are mostly dead. Returns whether there is anything to commit.
    pub fn maintain(&self, writer: &mut dyn Storage) -> Result<bool, Error>;

    /// VACUUM, of one table or all: rewrites the rows that are there into one segment and the indexes into one run each.
    pub fn vacuum(&self, writer: &mut dyn Storage, table: Option<&Table>) -> Result<(), Error>;

    /// Checks every table: rows, rows against indexes, indexes against rows, references. Goes on past damage.
    pub fn verify(&self, view: &dyn View, progress: &mut dyn FnMut(&VerifyProgress<'_>)) -> Result<VerifyReport, Error>;

    /// Reads what can still be read of a table.
    pub fn salvage<V: View>(&self, view: V, table: &Table) -> Result<Salvage<V>, Error>;
}
