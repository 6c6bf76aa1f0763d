//! What an owner remembers: an ordered map of bytes with commits.

use std::collections::BTreeMap;

use crate::error::Error;

/// A key and its value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// A key and the value that it gets, or none if it goes.
pub type Change = (Vec<u8>, Option<Vec<u8>>);

/// An ordered map whose changes become durable together, at a commit, or not at all.
///
/// Whoever implements it seals it: the secrets of the owner are in it.
pub trait Ledger {
    /// The value of a key.
    ///
    /// # Errors
    /// [`Error::Ledger`].
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;

    /// All pairs whose keys begin with `prefix`, in order.
    ///
    /// # Errors
    /// [`Error::Ledger`].
    fn scan(&mut self, prefix: &[u8]) -> Result<Vec<Pair>, Error>;

    /// Makes all of `changes` durable: values of keys, or none for keys that go.
    ///
    /// # Errors
    /// [`Error::Ledger`]: then none of them is.
    fn commit(&mut self, changes: Vec<Change>) -> Result<(), Error>;
}

/// A ledger in memory, for tests: what is cloned from it is what a cut would leave.
#[derive(Clone, Default)]
pub struct MemoryLedger(BTreeMap<Vec<u8>, Vec<u8>>);

impl Ledger for MemoryLedger {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.0.get(key).cloned())
    }

    fn scan(&mut self, prefix: &[u8]) -> Result<Vec<Pair>, Error> {
        let from = self.0.range(prefix.to_vec()..).take_while(|(key, _)| key.starts_with(prefix));
        Ok(from.map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn commit(&mut self, changes: Vec<Change>) -> Result<(), Error> {
        for (key, value) in changes {
            match value {
                Some(value) => self.0.insert(key, value),
                None => self.0.remove(&key),
            };
        }
        Ok(())
    }
}
