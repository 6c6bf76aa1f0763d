//! One-way counters: the memory that an attacker who puts back yesterday's image cannot put back.
//!
//! A counter holds a number that only grows and the tag of the commit that took it there.
//!
//! 1. A step counts only once it was read back.
//! 2. A counter never goes down, and never stays while claiming to have moved.
//! 3. A counter that is absent, damaged or another database's says which; it never repairs itself silently.

use core::fmt;

use crate::Tag;

/// What kind of counter a database is bound to; the number stands in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CounterKind {
    /// No counter: putting back an older image is not detected.
    None = 1,
    /// A file in the user's state directory ([`crate::FileCounter`]).
    File = 2,
    /// A TPM 2.0 NV counter.
    Tpm = 3,
    /// Cells of NOR flash.
    Nor = 4,
    /// Words of flash with error correction.
    Ecc = 5,
}

impl CounterKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [CounterKind; 5] =
        [CounterKind::None, CounterKind::File, CounterKind::Tpm, CounterKind::Nor, CounterKind::Ecc];

    /// The number in the header.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The kind with this number, if there is one.
    pub fn from_number(number: u8) -> Option<CounterKind> {
        CounterKind::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// The name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            CounterKind::None => "none",
            CounterKind::File => "file",
            CounterKind::Tpm => "tpm",
            CounterKind::Nor => "nor",
            CounterKind::Ecc => "ecc",
        }
    }

    /// The kind with this name, if there is one.
    pub fn from_name(name: &str) -> Option<CounterKind> {
        CounterKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for CounterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a counter holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterValue {
    /// The number.
    pub value: u64,
    /// The tag of the commit that took the counter there, where the counter has room for one.
    pub tag: Option<Tag>,
}

/// Why a counter did not answer, or did not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CounterError {
    /// There is none: a new machine, a container, a deleted state directory.
    Absent,
    /// There is one, and its bytes do not authenticate.
    Damaged,
    /// There is one, and it is another database's.
    Foreign,
    /// It stands lower than this handle has seen it stand: put back, or it forgets.
    WentBack {
        /// The highest value seen.
        seen: u64,
        /// What it holds now.
        found: u64,
    },
    /// It was asked to go to a value below the one it holds.
    Lower {
        /// What it holds.
        present: u64,
        /// Where it was asked to go.
        asked: u64,
    },
    /// It was asked to go up by more than one: another copy of the database went on meanwhile.
    Skipped {
        /// What it holds.
        present: u64,
        /// Where it was asked to go.
        asked: u64,
    },
    /// It already holds the value, for another commit: two copies of one database went on.
    OtherCommit {
        /// The value.
        value: u64,
    },
    /// Another process, or another opening in this one, holds it for another copy of the database.
    Held {
        /// The process, if the system told.
        process: Option<u32>,
    },
    /// It acknowledged a step and did not move.
    Stuck {
        /// Where it was asked to go.
        asked: u64,
        /// What it holds.
        found: u64,
    },
    /// The machine that made this handle, or the medium below it, failed; `code` is the operating system's.
    Device {
        /// What was being done.
        operation: &'static str,
        /// The operating system's error number, or the driver's.
        code: i32,
    },
}

impl fmt::Display for CounterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CounterError::Absent => f.write_str("there is no counter for this database here"),
            CounterError::Damaged => f.write_str("the counter of this database is damaged"),
            CounterError::Foreign => f.write_str("the counter belongs to another database"),
            CounterError::WentBack { seen, found } => {
                write!(f, "the counter went back from {seen} to {found}")
            }
            CounterError::Lower { present, asked } => {
                write!(f, "the counter holds {present} and was asked to go down to {asked}")
            }
            CounterError::Skipped { present, asked } => {
                write!(f, "the counter holds {present} and was asked to go to {asked}: it goes up by one")
            }
            CounterError::OtherCommit { value } => {
                write!(
                    f,
                    "the counter already holds {value} for another commit: two copies of this database are in use"
                )
            }
            CounterError::Held { process: Some(process) } => {
                write!(f, "process {process} holds the counter for another copy of this database")
            }
            CounterError::Held { process: None } => {
                f.write_str("the counter is held for another copy of this database")
            }
            CounterError::Stuck { asked, found } => {
                write!(f, "the counter was stepped to {asked} and still holds {found}")
            }
            CounterError::Device { operation, code } => {
                write!(f, "the counter could not be {operation} (error {code})")
            }
        }
    }
}

impl core::error::Error for CounterError {}

/// A number that only grows, outside the reach of whoever holds the database.
pub trait Counter: Send {
    /// What kind of counter this is.
    fn kind(&self) -> CounterKind;

    /// What it holds. What was once answered is never taken back, not by a cut either: a counter on a chip that finds the
    /// traces of a step that a cut ended makes them last before it answers.
    ///
    /// # Errors
    /// [`CounterError`].
    fn value(&mut self) -> Result<CounterValue, CounterError>;

    /// Goes up by one to `to`, the number of the commit (or group of commits) whose newest frame has this tag, and reads
    /// back that it did. Going to the value it holds, for the commit it holds, does nothing. It never goes up by more:
    /// two copies of one database on one counter would otherwise step over each other unnoticed.
    ///
    /// # Errors
    /// [`CounterError`]; after one, nobody knows where the counter stands until [`Counter::value`] is asked again.
    fn step(&mut self, to: u64, tag: &Tag) -> Result<(), CounterError>;

    /// Takes what [`Counter::adopt`] will need and a medium may lack, before an image is made that nothing but an adoption
    /// makes good. It is given back with this handle, unless the counter is adopted. Some counters need nothing.
    ///
    /// # Errors
    /// [`CounterError::Device`].
    fn reserve(&mut self) -> Result<(), CounterError> {
        Ok(())
    }

    /// Binds an image to a counter that is absent, damaged or foreign, or raises a good one. Only ever on a
    /// person's word or at `init`: whoever calls this leaves an incident behind.
    ///
    /// # Errors
    /// [`CounterError::Lower`] for a good counter that stands higher, [`CounterError::Device`].
    fn adopt(&mut self, value: u64, tag: &Tag) -> Result<(), CounterError>;
}

/// What every counter checks before it moves: `Ok(false)` when there is nothing to do.
pub(crate) fn may_step(present: &CounterValue, to: u64, tag: &Tag) -> Result<bool, CounterError> {
    if to < present.value {
        return Err(CounterError::Lower { present: present.value, asked: to });
    }
    if to == present.value {
        return match present.tag {
            Some(held) if held != *tag => Err(CounterError::OtherCommit { value: to }),
            _ => Ok(false),
        };
    }
    if to - present.value > 1 {
        return Err(CounterError::Skipped { present: present.value, asked: to });
    }
    Ok(true)
}
