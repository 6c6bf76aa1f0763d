//! What a medium can answer instead of doing what it was asked.

use core::fmt;

use crate::PageNumber;

/// What was being done when a medium failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Opening the medium.
    Open,
    /// Reading a byte range.
    Read,
    /// Programming a page.
    Program,
    /// Erasing a block.
    Erase,
    /// Making everything written so far durable.
    Flush,
    /// Locking the medium against other processes.
    Lock,
}

/// Why a medium did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The medium failed; `code` is the operating system's error number or the driver's own.
    Device {
        /// What was being done.
        operation: Operation,
        /// Where.
        page: PageNumber,
        /// The operating system's error number, or the driver's.
        code: i32,
    },
    /// The address lies past the end of the medium.
    OutOfRange {
        /// The first page that is not there.
        page: PageNumber,
        /// Pages that are.
        page_count: u64,
    },
    /// The page was programmed since its last erase.
    NotErased {
        /// Which page.
        page: PageNumber,
    },
    /// No room: the size limit, the disk or the quota is reached.
    Full {
        /// The page that found no room.
        page: PageNumber,
    },
    /// An earlier write or flush failed, so nobody knows what is on the medium until it is opened again.
    Latched,
    /// The medium was opened for reading only, or can only be read.
    ReadOnly,
    /// What is to be opened is not of the right sort: a directory or a pipe for a file, a file for a block device.
    WrongSort {
        /// What was asked for.
        wanted: &'static str,
    },
    /// The block device carries something already, and nobody said that it may go.
    Occupied {
        /// What it carries.
        by: &'static str,
    },
    /// No medium has this shape.
    Shape {
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Open => "open",
            Operation::Read => "read",
            Operation::Program => "write",
            Operation::Erase => "erase",
            Operation::Flush => "flush",
            Operation::Lock => "lock",
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Device { operation: operation @ (Operation::Open | Operation::Lock), code, .. } => {
                write!(f, "could not {operation}: ")?;
                code_for_people(*code, f)
            }
            Error::Device { operation, page, code } => {
                write!(f, "the device failed to {operation} at page {}: ", page.0)?;
                code_for_people(*code, f)
            }
            Error::OutOfRange { page, page_count } => {
                write!(f, "page {} lies past the end of the medium, which has {page_count} pages", page.0)
            }
            Error::NotErased { page } => write!(f, "page {} was not erased before it was written again", page.0),
            Error::Full { page } => write!(f, "no room for page {}", page.0),
            Error::Latched => f.write_str("an earlier write failed, so the medium must be opened again first"),
            Error::ReadOnly => f.write_str("the medium was opened for reading only"),
            Error::WrongSort { wanted } => write!(f, "this is not {wanted}"),
            Error::Occupied { by } => write!(f, "the device carries {by}"),
            Error::Shape { reason } => write!(f, "no medium has this shape: {reason}"),
        }
    }
}

#[cfg(feature = "std")]
fn code_for_people(code: i32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{}", std::io::Error::from_raw_os_error(code))
}

#[cfg(not(feature = "std"))]
fn code_for_people(code: i32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "error {code}")
}

impl core::error::Error for Error {}
