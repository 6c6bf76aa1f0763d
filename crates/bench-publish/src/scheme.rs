//! A table whose answers are checked, under three schemes: an owner that signs, a server that answers and takes updates, a
//! reader that believes neither more nor less than its scheme allows.
//!
//! All have the same records: 512 bytes, of which the first four are the key, twice the record's number. Updates change what
//! stands behind the key.

pub mod bas;
pub mod condensed;
pub mod embedded;
pub mod journal;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use crate::Failure;
use crate::random::Random;
pub use journal::Journal;

pub const RECORD: usize = 512;

pub type Record = [u8; RECORD];

/// Keys from the first to the last.
pub type Keys = RangeInclusive<u32>;

/// A record begins with its key.
pub fn key_of(record: &Record) -> u32 {
    u32::from_be_bytes([record[0], record[1], record[2], record[3]])
}

/// A record by its number, as it is after so many updates of it.
pub fn record(number: u32, updates: u64) -> Record {
    let mut random = Random(u64::from(number) << 32 | updates);
    let mut record = [0; RECORD];
    record.as_chunks_mut::<8>().0.iter_mut().for_each(|word| *word = random.next().to_le_bytes());
    record[..4].copy_from_slice(&(number * 2).to_be_bytes());
    record
}

/// Owner and server, which many threads use at once.
pub trait Scheme: Sync {
    /// What the owner sends to the server for an update.
    type Signed: Send;
    type Reader: Reader;

    /// The server's answer: records of these keys, and their proof.
    fn answer(&self, keys: Keys) -> Result<Vec<u8>, Failure>;

    /// The owner changes records in one transaction, in the order of their keys, each once.
    fn sign(&self, records: &[Record]) -> Result<Self::Signed, Failure>;

    /// The server takes what the owner signed; queries see it when this returns.
    fn take(&self, signed: Self::Signed) -> Result<(), Failure>;

    /// The owner ends a period; what changed in it is not believed any more in its older form.
    fn end_period(&self) -> Result<(), Failure>;

    /// A reader who knows all that the owner has told by now.
    fn reader(&self) -> Result<Self::Reader, Failure>;

    /// Where the server makes updates durable.
    fn journal(&self) -> &Journal;

    fn update(&self, records: &[Record]) -> Result<(), Failure> {
        self.take(self.sign(records)?)
    }
}

pub trait Reader {
    /// The records of these keys, if the answer is the owner's, whole, and as fresh as the scheme can tell.
    fn check(&self, keys: Keys, answer: &[u8]) -> Option<Vec<Record>>;
}
