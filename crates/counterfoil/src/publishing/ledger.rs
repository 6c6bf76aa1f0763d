//! The owner's state as a table of a sealed database: key and value, both bytes.

use std::collections::HashSet;

use counterfoil_publish::{Change, Error, Ledger, Pair};
use datafusion::arrow::array::{Array, AsArray, BinaryArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;

use super::alone::Alone;
use crate::connection::{Connection, Value};
use crate::database::Database;
use crate::error::Kind;
use crate::schema::quoted;

/// Keys that one statement deletes.
const DELETED_AT_ONCE: usize = 256;

/// The table of a database that is there for one owner's state.
const LEDGER: &str = "ledger";

/// Where it is kept how many incidents were looked at; no key of a publication begins so.
const INCIDENTS: &[u8] = b"incidents";

/// The owner's state. Whoever publishes holds the whole table in memory: the keys are held beside it, so that what is new is
/// not looked for.
pub struct TableLedger {
    connection: Connection,
    table: String,
    known: HashSet<Vec<u8>>,
}

impl TableLedger {
    /// The state of a database that holds one and nothing else; it is made if it is not there.
    ///
    /// # Errors
    /// Those of reading and writing.
    pub fn new(alone: &Alone<'_>) -> Result<Self, crate::Error> {
        Self::in_table(alone.database.connect()?, LEDGER)
    }

    /// The state of a table that PUBLISH published, beside it; it is made if it is not there.
    ///
    /// # Errors
    /// Those of reading and writing.
    pub fn of_published(alone: &Alone<'_>, table: &str) -> Result<Self, crate::Error> {
        let connection = Connection::own(alone.database.inner.clone())?;
        Self::in_table(connection, &counterfoil_sql::ledger_name(table))
    }

    /// The state as it is at this moment, of a published table or that of a database of its own, to be looked at: others may be
    /// publishing from it. Nothing where there is none.
    ///
    /// # Errors
    /// Those of reading.
    pub fn to_look_at(database: &Database, table: Option<&str>) -> Result<Option<Self>, crate::Error> {
        let mut connection = Connection::own(database.inner.clone())?;
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", &[])?;
        let table = table.map_or(LEDGER.into(), counterfoil_sql::ledger_name);
        match connection.columns(&table)? {
            None => Ok(None),
            Some(_) => Self::read(connection, &table).map(Some),
        }
    }

    fn in_table(mut connection: Connection, table: &str) -> Result<Self, crate::Error> {
        if connection.columns(table)?.is_none() {
            let create = format!("CREATE TABLE {} (key BYTEA PRIMARY KEY, value BYTEA NOT NULL)", quoted(table));
            connection.execute(&create, &[])?;
        }
        Self::read(connection, table)
    }

    fn read(mut connection: Connection, table: &str) -> Result<Self, crate::Error> {
        let name = quoted(table);
        let known = pairs(&mut connection, &format!("SELECT key, key FROM {name}"), &[])?;
        let known = known.into_iter().map(|(key, _)| key).collect();
        Ok(Self { connection, table: table.to_owned(), known })
    }

    /// Whether nothing was published from here.
    #[must_use]
    pub fn is_new(&self) -> bool {
        !self.known.contains(&b"m"[..])
    }

    /// How many incidents of its database are known to have been looked at.
    ///
    /// # Errors
    /// Those of reading.
    pub fn incidents(&mut self) -> Result<u64, Error> {
        let known = self.get(INCIDENTS)?.unwrap_or_default();
        Ok(known.try_into().map_or(0, u64::from_be_bytes))
    }

    /// Remembers that so many incidents were looked at.
    ///
    /// # Errors
    /// Those of writing.
    pub fn set_incidents(&mut self, incidents: u64) -> Result<(), Error> {
        self.commit(vec![(INCIDENTS.to_vec(), Some(incidents.to_be_bytes().to_vec()))])
    }

    fn change(&mut self, changes: &[Change]) -> Result<(), crate::Error> {
        let gone: Vec<&Vec<u8>> = changes.iter().map(|(key, _)| key).filter(|key| self.known.contains(*key)).collect();
        for keys in gone.chunks(DELETED_AT_ONCE) {
            let places: Vec<String> = (1..=keys.len()).map(|place| format!("${place}")).collect();
            let values: Vec<Value> = keys.iter().map(|key| Value::Bytes((*key).clone())).collect();
            let sql = format!("DELETE FROM {} WHERE key IN ({})", quoted(&self.table), places.join(", "));
            self.connection.execute(&sql, &values)?;
        }
        let new = || changes.iter().filter_map(|(key, value)| value.as_ref().map(|value| (key, value)));
        let keys = BinaryArray::from_iter_values(new().map(|(key, _)| key));
        let values = BinaryArray::from_iter_values(new().map(|(_, value)| value));
        let columns = ["key".to_owned(), "value".to_owned()];
        let batch = RecordBatch::try_from_iter([
            ("key", std::sync::Arc::new(keys) as std::sync::Arc<dyn Array>),
            ("value", std::sync::Arc::new(values)),
        ]);
        let batch = batch.map_err(|_| crate::Error::new(Kind::Bug, "two columns of one length"))?;
        let mut batches = std::iter::once(Ok::<_, crate::Error>(batch));
        self.connection.load(&self.table, &columns, &mut batches)?;
        Ok(())
    }
}

/// The later value of each key counts.
fn last_of_each(changes: Vec<Change>) -> Vec<Change> {
    let last: std::collections::BTreeMap<Vec<u8>, Option<Vec<u8>>> = changes.into_iter().collect();
    last.into_iter().collect()
}

fn pairs(connection: &mut Connection, sql: &str, values: &[Value]) -> Result<Vec<Pair>, crate::Error> {
    let mut pairs = Vec::new();
    for batch in connection.query(sql, values)? {
        let batch = batch?;
        let column = |at: usize| {
            cast(batch.column(at), &DataType::Binary)
                .map_err(|_| crate::Error::new(Kind::Corrupt, "the owner's state is another table"))
        };
        let (keys, values) = (column(0)?, column(1)?);
        let (keys, values) = (keys.as_binary::<i32>(), values.as_binary::<i32>());
        pairs.extend((0..batch.num_rows()).map(|row| (keys.value(row).to_vec(), values.value(row).to_vec())));
    }
    Ok(pairs)
}

fn told(error: crate::Error) -> Error {
    Error::Ledger(error.to_string())
}

impl Ledger for TableLedger {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let sql = format!("SELECT key, value FROM {} WHERE key = $1", quoted(&self.table));
        let found = pairs(&mut self.connection, &sql, &[Value::Bytes(key.to_vec())]).map_err(told)?;
        Ok(found.into_iter().next().map(|(_, value)| value))
    }

    fn scan(&mut self, prefix: &[u8]) -> Result<Vec<Pair>, Error> {
        // No key has more than 40 bytes, nor any that sorts behind so many of the highest.
        let bounds = [Value::Bytes(prefix.to_vec()), Value::Bytes([prefix, &[0xFF; 40]].concat())];
        let sql = format!("SELECT key, value FROM {} WHERE key >= $1 AND key <= $2 ORDER BY key", quoted(&self.table));
        pairs(&mut self.connection, &sql, &bounds).map_err(told)
    }

    fn commit(&mut self, changes: Vec<Change>) -> Result<(), Error> {
        let changes = last_of_each(changes);
        self.connection.execute("BEGIN", &[]).map_err(told)?;
        let changed = self.change(&changes).and_then(|()| self.connection.execute("COMMIT", &[]));
        if let Err(error) = changed {
            // The first error is the one to tell.
            let _ = self.connection.execute("ROLLBACK", &[]);
            return Err(told(error));
        }
        for (key, value) in changes {
            if value.is_some() {
                self.known.insert(key)
            } else {
                self.known.remove(&key)
            };
        }
        Ok(())
    }
}
