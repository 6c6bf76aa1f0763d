//! What a series table can answer instead of doing what it was asked.

use core::fmt;

use counterfoil_log as log;

use crate::codec::Nonsense;

/// Why something was not done. Values never appear in an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A point with this series and time is there already, and the table refuses a second one. Where it stood in the batch.
    Duplicate {
        /// Its place in the batch.
        at: usize,
    },
    /// A point whose values together are too long.
    TooLong {
        /// Bytes that a point may have at most.
        bytes_max: usize,
    },
    /// More columns than a point in a page can have.
    TooMany {
        /// Columns beside the key that a table may have.
        columns_max: usize,
    },
    /// More columns with summaries than a node has room for.
    TooManySummaries {
        /// Columns of a table that may have summaries.
        columns_max: usize,
    },
    /// The caller broke the rules of this interface.
    Misuse(&'static str),
    /// Bytes that authenticate make no sense.
    Corrupt {
        /// What was being read.
        what: &'static str,
    },
    /// The log below failed: tampered pages, a full medium, a broken device.
    Log(log::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Duplicate { .. } => f.write_str("a point of this series and time is there already"),
            Error::TooLong { bytes_max } => {
                write!(f, "the texts of a point may have {bytes_max} bytes together, and a key 4,096")
            }
            Error::TooMany { columns_max } => {
                write!(f, "a series table has at most {columns_max} columns beside its key")
            }
            Error::TooManySummaries { columns_max } => {
                write!(f, "with pages of this size {columns_max} columns of a series table may have summaries")
            }
            Error::Misuse(what) => f.write_str(what),
            Error::Corrupt { what } => write!(f, "the {what} of a series table makes no sense"),
            Error::Log(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for Error {}

impl From<log::Error> for Error {
    fn from(error: log::Error) -> Self {
        Error::Log(error)
    }
}

impl Error {
    pub(crate) fn nonsense(what: &'static str) -> impl Fn(Nonsense) -> Error + Copy {
        move |_| Error::Corrupt { what }
    }
}
