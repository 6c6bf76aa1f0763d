//! What a store that stands alone can answer instead of doing what it was asked. A byte: what is larger goes through
//! memory at every return, and the processors that this is for have little room for code.

use core::fmt;

use counterfoil_flash::Error as FlashError;

/// Why the store did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Error {
    /// The medium failed.
    Device = 1,
    /// A page is not what the commit says it must be: changed, moved, stale, rotten, or never written.
    Tampered,
    /// A page authenticates and makes no sense.
    Corrupt,
    /// No whole commit authenticates.
    NoCommit,
    /// An older image than the one that the counter speaks of.
    RolledBack,
    /// The counter stands too low to be this image's.
    CounterLost,
    /// The counter did not answer, or did not move.
    Counter,
    /// The commit needs more room than there is. Nothing of it was written.
    Full,
    /// There is no record of this number.
    NoRecord,
    /// The number is past the last that store and memory have room for.
    IdOutOfRange,
    /// All numbers are in use.
    IdsExhausted,
    /// A record is longer than a page can hold.
    RecordTooLong,
    /// A commit has more changes than one takes.
    TooManyChanges,
    /// A buffer handed over by the caller is too small for the medium, or for what stands on it.
    BufferTooSmall,
    /// The medium or the shape does not suit a store.
    Geometry,
    /// Neither counter nor generator, and a cipher that does not stand that; or a salted store without a generator.
    NoGenerator,
    /// The store was opened by another process.
    OtherProcess,
    /// An earlier write failed, so nobody knows what is on the medium until the store is opened again.
    Latched,
    /// The numbers of laps, of openings, or of the commits of this opening are used up: the store can still be read.
    WornOut,
    /// Names have 1 to 255 bytes, and the store must have been made with ids for them.
    Name,
    /// A fault of this library: something that it promises itself did not hold. What was acknowledged is safe.
    Bug,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Device => "the medium failed",
            Error::Tampered => "a page does not authenticate",
            Error::Corrupt => "a page makes no sense",
            Error::NoCommit => "there is no whole commit",
            Error::RolledBack => "the image is older than its counter says: an older one was put back",
            Error::CounterLost => "the counter stands below the image: it was put back or replaced",
            Error::Counter => "the counter did not answer or did not move",
            Error::Full => "the record store is full",
            Error::NoRecord => "there is no record of this number",
            Error::IdOutOfRange => "the record number is past the last one",
            Error::IdsExhausted => "all record numbers are in use",
            Error::RecordTooLong => "the record is longer than a page holds",
            Error::TooManyChanges => "more changes than one commit takes",
            Error::BufferTooSmall => "a buffer is too small for this store",
            Error::Geometry => "the medium or the shape does not suit a record store",
            Error::NoGenerator => "this store needs a counter or a generator that it does not have",
            Error::OtherProcess => "the record store was opened by another process",
            Error::Latched => "an earlier write failed, so the record store must be opened again first",
            Error::Bug => "a fault of the record store itself: please report it",
            Error::Name => "a name has 1 to 255 bytes, in a store that was made for names",
            Error::WornOut => "the record store has used up its numbers and can only be read",
        })
    }
}

impl core::error::Error for Error {}

impl From<FlashError> for Error {
    fn from(error: FlashError) -> Error {
        if error == FlashError::Latched { Error::Latched } else { Error::Device }
    }
}
