//! Records by name: bytes under names, in the same file and the same commits as the tables.

use std::sync::Arc;

use counterfoil_log::{RECORD_NAME_BYTES_MAX, RECORD_VALUE_BYTES_MAX, View, record_space};

use crate::database::Database;
use crate::error::{Error, Kind, Result};

/// The record store of a database.
#[derive(Clone)]
pub struct Records {
    database: Database,
}

impl Records {
    /// Bytes that a record may have at most.
    pub const VALUE_BYTES_MAX: usize = RECORD_VALUE_BYTES_MAX;
    /// Bytes that a name may have at most.
    pub const NAME_BYTES_MAX: usize = RECORD_NAME_BYTES_MAX;

    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// The bytes under a name.
    ///
    /// # Errors
    /// Those of reading.
    pub fn get(&self, name: &str) -> Result<Option<Arc<[u8]>>> {
        self.database.require_process()?;
        Ok(self.database.snapshot()?.record(record_space::USER, name.as_bytes()))
    }

    /// Keeps bytes under a name; what was there is replaced.
    ///
    /// # Errors
    /// [`Kind::Input`] for names and values that are too long; those of writing.
    pub fn put(&self, name: &str, value: &[u8]) -> Result<()> {
        check(name, value)?;
        self.database.change(|writer| Ok(writer.put_record(record_space::USER, name.as_bytes(), value)?))
    }

    /// Deletes records, all in one commit; answers how many of them there were.
    ///
    /// # Errors
    /// Those of writing.
    pub fn delete(&self, names: &[&str]) -> Result<usize> {
        self.database.require_process()?;
        let snapshot = self.database.snapshot()?;
        let mut present: Vec<&&str> =
            names.iter().filter(|name| snapshot.record(record_space::USER, name.as_bytes()).is_some()).collect();
        present.sort_unstable();
        present.dedup();
        if present.is_empty() {
            return Ok(0);
        }
        self.database.change(|writer| {
            for name in &present {
                writer.delete_record(record_space::USER, name.as_bytes())?;
            }
            Ok(present.len())
        })
    }

    /// The names that begin with `prefix`, in order, and how many bytes each has.
    ///
    /// # Errors
    /// Those of reading.
    pub fn list(&self, prefix: &str) -> Result<Vec<(String, usize)>> {
        self.database.require_process()?;
        let records = self.database.snapshot()?.records(record_space::USER, prefix.as_bytes());
        let shown = |(name, value): (Vec<u8>, Arc<[u8]>)| (String::from_utf8_lossy(&name).into_owned(), value.len());
        Ok(records.into_iter().map(shown).collect())
    }
}

/// Whether a record can be.
pub(crate) fn check(name: &str, value: &[u8]) -> Result<()> {
    if name.is_empty() || name.len() > Records::NAME_BYTES_MAX {
        return Err(Error::new(Kind::Input, format!("a name of {} bytes is not possible", name.len()))
            .advise(format!("use 1 to {} bytes", Records::NAME_BYTES_MAX)));
    }
    if value.len() > Records::VALUE_BYTES_MAX {
        let text = format!("a record of {} bytes is too large", value.len());
        return Err(Error::new(Kind::Input, text).advise(format!("{} fit at most", Records::VALUE_BYTES_MAX)));
    }
    Ok(())
}
