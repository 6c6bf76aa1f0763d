//! What the store can answer instead of doing what it was asked.

use core::fmt;

use counterfoil_flash::{Error as FlashError, PageNumber};

use crate::RecordId;

/// Why the store did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The medium failed.
    Device(FlashError),
    /// A page is not what the commit says it must be: changed, moved, stale, rotten, or never written.
    Tampered {
        /// Where it stands.
        page: PageNumber,
    },
    /// A page authenticates and makes no sense.
    Corrupt {
        /// Where it stands.
        page: PageNumber,
        /// What makes no sense.
        what: &'static str,
    },
    /// No whole commit authenticates in the window.
    NoCommit {
        /// Pages that claimed to belong to the store.
        claims: u64,
    },
    /// The commit needs more room than there is. Nothing was written.
    Full {
        /// Pages that it needs at most, with those that must stay free after it.
        needed: u64,
        /// Pages that may be written before a release.
        free: u64,
    },
    /// There is no record of this number.
    NoRecord(RecordId),
    /// The number is past the last that the store, or the caller's index buffer, has room for.
    IdOutOfRange {
        /// The number.
        id: RecordId,
        /// How many there can be.
        limit: u32,
    },
    /// All numbers are in use.
    IdsExhausted {
        /// How many there can be.
        limit: u32,
    },
    /// A record is longer than a page can hold.
    RecordTooLong {
        /// Its bytes.
        bytes: usize,
        /// The most a record may have.
        limit: usize,
    },
    /// A buffer handed over by the caller is too small.
    BufferTooSmall {
        /// Which buffer.
        what: &'static str,
        /// What it must hold.
        needed: usize,
        /// What it holds.
        given: usize,
    },
    /// The medium or the window does not suit a store.
    Geometry(&'static str),
    /// The caller broke a promise.
    Misuse(&'static str),
    /// An earlier write failed, so nobody knows what is on the medium until the store is opened again.
    Latched,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Device(error) => error.fmt(f),
            Error::Tampered { page } => write!(f, "record page {} does not authenticate", page.0),
            Error::Corrupt { page, what } => write!(f, "record page {} makes no sense: {what}", page.0),
            Error::NoCommit { claims } => {
                write!(f, "no commit of the record store authenticates ({claims} pages claim to belong to it)")
            }
            Error::Full { needed, free } => {
                write!(f, "the record store is full: {needed} pages needed, {free} free")
            }
            Error::NoRecord(id) => write!(f, "there is no record {}", id.0),
            Error::IdOutOfRange { id, limit } => write!(f, "record {} is past the last of {limit}", id.0),
            Error::IdsExhausted { limit } => write!(f, "all {limit} record numbers are in use"),
            Error::RecordTooLong { bytes, limit } => {
                write!(f, "a record of {bytes} bytes is longer than a page holds ({limit})")
            }
            Error::BufferTooSmall { what, needed, given } => {
                write!(f, "the buffer for {what} holds {given} where {needed} are needed")
            }
            Error::Geometry(what) => write!(f, "the medium does not suit a record store: {what}"),
            Error::Misuse(what) => f.write_str(what),
            Error::Latched => f.write_str("an earlier write failed, so the record store must be opened again first"),
        }
    }
}

impl core::error::Error for Error {}

impl From<FlashError> for Error {
    fn from(error: FlashError) -> Error {
        Error::Device(error)
    }
}
