//! A table as a thing of its own, for programs that need no SQL.

use std::sync::Arc;

use counterfoil_relation::Table;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType;

use crate::connection::{Rows, Value};
use crate::database::Database;
use crate::error::{Error, Kind, Result};
use crate::schema::quoted;

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ColumnInfo {
    /// Its name.
    pub name: String,
    /// Its type, as SQL writes it.
    pub kind: String,
    /// Its type, as Arrow carries it.
    pub arrow: DataType,
    /// Whether NULL is refused.
    pub not_null: bool,
    /// DEFAULT, as SQL text.
    pub default: Option<String>,
    /// Whether it is GENERATED AS IDENTITY.
    pub is_identity: bool,
    /// Whether it belongs to the primary key.
    pub is_key: bool,
}

/// A table of a database.
#[derive(Clone)]
pub struct Relation {
    database: Database,
    table: Arc<Table>,
}

impl Relation {
    pub(crate) fn new(database: &Database, name: &str) -> Result<Self> {
        database.require_process()?;
        let snapshot = database.snapshot()?;
        let table = database.inner.engine.relations().table(&snapshot, name)?;
        let table = table.ok_or_else(|| Error::new(Kind::NotFound, format!("no table {name}")))?;
        if let Some(engine) = &table.engine {
            let text = format!("table {name} (engine {}) as a relation, whose rows are here", engine.name);
            return Err(Error::new(Kind::Misuse, text).advise("ask it in SQL"));
        }
        Ok(Self { database: database.clone(), table })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.table.name
    }

    /// Its columns, in order.
    #[must_use]
    pub fn columns(&self) -> Vec<ColumnInfo> {
        crate::schema::columns(&self.table)
    }

    /// Rows in it, without reading them.
    ///
    /// # Errors
    /// Those of reading.
    pub fn count(&self) -> Result<u64> {
        self.database.require_process()?;
        Ok(self.database.inner.engine.relations().count(&self.database.snapshot()?, &self.table)?)
    }

    /// All rows.
    ///
    /// # Errors
    /// Those of reading.
    pub fn rows(&self) -> Result<Rows> {
        self.database.connect()?.query(&format!("SELECT * FROM {}", quoted(self.name())), &[])
    }

    /// The row with this primary key, or none.
    ///
    /// # Errors
    /// [`Kind::Misuse`] if the table has no primary key, or one of another width.
    pub fn get(&self, key: &[Value]) -> Result<Option<RecordBatch>> {
        let condition = self.key_condition(key)?;
        let sql = format!("SELECT * FROM {} WHERE {condition}", quoted(self.name()));
        let mut rows = self.database.connect()?.query(&sql, key)?;
        let found = rows.find(|batch| !matches!(batch, Ok(batch) if batch.num_rows() == 0));
        found.transpose()
    }

    /// Adds a row: a value for each column, in order.
    ///
    /// # Errors
    /// [`Kind::Constraint`], and those of writing.
    pub fn insert(&self, row: &[Value]) -> Result<()> {
        let places: Vec<String> = (1..=row.len()).map(|number| format!("${number}")).collect();
        let sql = format!("INSERT INTO {} VALUES ({})", quoted(self.name()), places.join(", "));
        self.database.connect()?.execute(&sql, row).map(drop)
    }

    /// Adds many rows as one statement; the batches have the table's columns, in order.
    ///
    /// # Errors
    /// [`Kind::Constraint`], and those of writing; then none of the rows is there.
    pub fn load(&self, batches: impl IntoIterator<Item = RecordBatch>) -> Result<u64> {
        let columns: Vec<String> = self.table.columns.iter().map(|column| column.name.clone()).collect();
        let mut batches = batches.into_iter().map(Ok::<_, Error>);
        self.database.connect()?.load(self.name(), &columns, &mut batches)
    }

    /// Deletes the row with this primary key; whether it was there.
    ///
    /// # Errors
    /// As [`Relation::get`], and those of writing.
    pub fn delete(&self, key: &[Value]) -> Result<bool> {
        let condition = self.key_condition(key)?;
        let sql = format!("DELETE FROM {} WHERE {condition}", quoted(self.name()));
        Ok(self.database.connect()?.execute(&sql, key)? > 0)
    }

    fn key_condition(&self, key: &[Value]) -> Result<String> {
        let columns: Vec<ColumnInfo> = self.columns().into_iter().filter(|column| column.is_key).collect();
        if columns.is_empty() || columns.len() != key.len() {
            let text = format!("table {} has a primary key of {} columns", self.name(), columns.len());
            return Err(Error::new(Kind::Misuse, text).advise(format!("{} values were given", key.len())));
        }
        let key = self.table.primary_key.as_ref().map(|key| key.columns.as_slice()).unwrap_or_default();
        let names = key.iter().filter_map(|id| self.table.columns.iter().find(|column| column.id == *id));
        let terms = names.enumerate().map(|(place, column)| format!("{} = ${}", quoted(&column.name), place + 1));
        Ok(terms.collect::<Vec<_>>().join(" AND "))
    }
}
