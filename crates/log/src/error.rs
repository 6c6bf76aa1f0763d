//! What the log can answer instead of doing what it was asked.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use counterfoil_flash as flash;
use counterfoil_vault::CounterError;

/// Why the log did not do what it was asked: a pointer to the cause, since every result has room for one, and moves it.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Cause>);

/// The cause of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The medium failed.
    Device(flash::Error),
    /// Bytes that authenticate, or need not, make no sense.
    Corrupt {
        /// What was being read.
        what: &'static str,
    },
    /// A page is not what the root says it must be: changed, moved, replaced by an older one, or rotten.
    Tampered {
        /// What was being read.
        what: &'static str,
        /// The page on the medium.
        page: u64,
    },
    /// The image is older than the one-way counter says it must be.
    RolledBack {
        /// The version of the newest root in the image.
        image: u64,
        /// The value of the counter.
        counter: u64,
    },
    /// The one-way counter cannot vouch for this image.
    CounterLost {
        /// The version of the newest root in the image.
        image: u64,
        /// What is wrong with the counter.
        reason: String,
    },
    /// The medium of the one-way counter failed: a disk that is full, a folder that went away.
    CounterFailed {
        /// What was being done.
        operation: &'static str,
        /// The operating system's error number, or the driver's.
        code: i32,
    },
    /// The one-way counter is held for another copy of this database, which is open for writing.
    CounterHeld {
        /// The process that holds it, if the system told.
        process: Option<u32>,
    },
    /// No room. Nothing was changed.
    Full {
        /// Extents there are.
        extents: u64,
        /// The oldest snapshot that holds space back, if one does.
        pinned: Option<u64>,
    },
    /// The caller broke the rules of this interface.
    Misuse(&'static str),
    /// A record's name or value is larger than the log takes.
    TooLarge {
        /// Bytes there are.
        bytes: u64,
        /// Bytes there may be.
        bytes_max: u64,
    },
    /// The commits after this one are not kept any more: begin again from a snapshot.
    Gone {
        /// The last commit that was read.
        commit: u64,
        /// The commit after which commits are kept.
        oldest: u64,
    },
    /// The source of randomness failed, and without it nothing may be sealed.
    NoEntropy,
    /// An earlier write failed: what is on the medium is known again after the next open.
    Latched,
}

// What is made where something failed stands once, and not at each place that may fail.
impl Error {
    /// What is wrong.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.0
    }

    /// Whether there was no room.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(*self.0, Cause::Full { .. })
    }

    /// [`Cause::Corrupt`].
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn corrupt(what: &'static str) -> Self {
        Cause::Corrupt { what }.into()
    }

    /// [`Cause::Tampered`].
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn tampered(what: &'static str, page: u64) -> Self {
        Cause::Tampered { what, page }.into()
    }

    /// [`Cause::Full`].
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn full(extents: u64, pinned: Option<u64>) -> Self {
        Cause::Full { extents, pinned }.into()
    }

    /// [`Cause::Misuse`].
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn misuse(what: &'static str) -> Self {
        Cause::Misuse(what).into()
    }

    /// [`Cause::Latched`].
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn latched() -> Self {
        Cause::Latched.into()
    }
}

impl From<Cause> for Error {
    #[cold]
    #[inline(never)]
    fn from(cause: Cause) -> Self {
        Error(Box::new(cause))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Device(error) => error.fmt(f),
            Cause::Corrupt { what } => write!(f, "the {what} makes no sense"),
            Cause::Tampered { what, page } => {
                write!(f, "page {page} ({what}) is not what was last written there")
            }
            Cause::RolledBack { image, counter } => write!(
                f,
                "this image is older than what was last acknowledged: its version is {image}, the counter stands at {counter}"
            ),
            Cause::CounterLost { image, reason } => {
                write!(f, "the counter cannot vouch for this image (version {image}): {reason}")
            }
            Cause::CounterFailed { operation, code } => CounterError::Device { operation, code: *code }.fmt(f),
            Cause::CounterHeld { process } => CounterError::Held { process: *process }.fmt(f),
            Cause::Full { extents, pinned: None } => write!(f, "no room left in {extents} extents"),
            Cause::Full { extents, pinned: Some(commit) } => {
                write!(f, "no room left in {extents} extents while a reader holds snapshot {commit}")
            }
            Cause::Misuse(what) => f.write_str(what),
            Cause::TooLarge { bytes, bytes_max } => write!(f, "{bytes} bytes, where at most {bytes_max} fit"),
            Cause::Gone { commit, oldest } => {
                write!(f, "the commits after {commit} are not kept any more, only those after {oldest}")
            }
            Cause::NoEntropy => f.write_str("the source of randomness failed"),
            Cause::Latched => f.write_str("an earlier write failed: open the database again"),
        }
    }
}

impl core::error::Error for Error {}

impl From<flash::Error> for Error {
    #[cold]
    #[inline(never)]
    fn from(error: flash::Error) -> Self {
        Cause::Device(error).into()
    }
}
