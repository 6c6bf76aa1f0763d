//! redb: a copy-on-write tree.

use std::path::Path;

use redb::{Database, ReadableDatabase, TableDefinition, WriteTransaction};

use super::{CACHE_BYTES, Key, KeyValue, Visit};
use crate::Failure;

const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("tuples");

pub struct Redb {
    database: Database,
    under_way: Option<WriteTransaction>,
}

impl Redb {
    pub fn create(folder: &Path) -> Result<Redb, Failure> {
        let database = Database::builder().set_cache_size(CACHE_BYTES).create(folder.join("redb"))?;
        let mut made = Redb { database, under_way: None };
        made.change(|_| Ok(()))?;
        made.commit()?;
        Ok(made)
    }

    fn change(
        &mut self,
        change: impl FnOnce(&mut redb::Table<'_, &[u8], &[u8]>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if self.under_way.is_none() {
            self.under_way = Some(self.database.begin_write()?);
        }
        match &self.under_way {
            Some(transaction) => change(&mut transaction.open_table(TABLE)?),
            None => Ok(()),
        }
    }
}

impl KeyValue for Redb {
    fn put_all(&mut self, entries: &mut dyn Iterator<Item = (Key, [u8; 5], usize)>) -> Result<(), Failure> {
        // The table is opened once for all that come together.
        self.change(|table| {
            for (key, room, bytes) in entries {
                table.insert(&key[..], &room[..bytes])?;
            }
            Ok(())
        })
    }

    fn delete_all(&mut self, keys: &mut dyn Iterator<Item = Key>) -> Result<(), Failure> {
        self.change(|table| {
            for key in keys {
                table.remove(&key[..])?;
            }
            Ok(())
        })
    }

    fn commit(&mut self) -> Result<(), Failure> {
        if let Some(transaction) = self.under_way.take() {
            transaction.commit()?;
        }
        Ok(())
    }

    fn visit(&mut self, from: &Key, until: &Key, mut visit: impl FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let transaction = self.database.begin_read()?;
        for entry in transaction.open_table(TABLE)?.range(&from[..]..=&until[..])? {
            let (key, value) = entry?;
            visit(key.value(), value.value());
        }
        Ok(())
    }

    fn last(&mut self, from: &Key, until: &Key, visit: Visit<'_>) -> Result<(), Failure> {
        let transaction = self.database.begin_read()?;
        if let Some(entry) = transaction.open_table(TABLE)?.range(&from[..]..=&until[..])?.next_back() {
            let (key, value) = entry?;
            visit(key.value(), value.value());
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Failure> {
        self.commit()
    }
}
