//! fjall: a log-structured merge tree.

use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::{CACHE_BYTES, Key, KeyValue, Visit};
use crate::Failure;

pub struct Fjall {
    database: Database,
    tuples: Keyspace,
}

impl Fjall {
    pub fn create(folder: &Path) -> Result<Fjall, Failure> {
        let database = Database::builder(folder.join("fjall")).cache_size(CACHE_BYTES as u64).open()?;
        let tuples = database.keyspace("tuples", KeyspaceCreateOptions::default)?;
        Ok(Fjall { database, tuples })
    }
}

impl KeyValue for Fjall {
    fn put_all(&mut self, entries: &mut dyn Iterator<Item = (Key, [u8; 5], usize)>) -> Result<(), Failure> {
        let mut batch = self.database.batch();
        for (key, room, bytes) in entries {
            batch.insert(&self.tuples, &key[..], &room[..bytes]);
        }
        Ok(batch.commit()?)
    }

    fn delete_all(&mut self, keys: &mut dyn Iterator<Item = Key>) -> Result<(), Failure> {
        let mut batch = self.database.batch();
        for key in keys {
            batch.remove(&self.tuples, &key[..]);
        }
        Ok(batch.commit()?)
    }

    fn commit(&mut self) -> Result<(), Failure> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }

    fn visit(&mut self, from: &Key, until: &Key, mut visit: impl FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        for entry in self.tuples.range(&from[..]..=&until[..]) {
            let (key, value) = entry.into_inner()?;
            visit(&key, &value);
        }
        Ok(())
    }

    fn last(&mut self, from: &Key, until: &Key, visit: Visit<'_>) -> Result<(), Failure> {
        if let Some(entry) = self.tuples.range(&from[..]..=&until[..]).next_back() {
            let (key, value) = entry.into_inner()?;
            visit(&key, &value);
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Failure> {
        self.commit()?;
        // What waits in memory goes into tables, and its journal with it; then compaction ends.
        self.tuples.rotate_memtable_and_wait()?;
        while self.database.active_compactions() > 0 || self.database.outstanding_flushes() > 0 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Ok(())
    }
}
