//! What the counter says of an image: the rule of opening, in one place.
//!
//! An image is accepted if its version is the counter's value, one above it (a commit that a cut interrupted), or two
//! above it for an opening root.

use core::fmt;

/// How an accepted image stands to its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// The counter holds the image's version.
    Level,
    /// The newest root is ahead, as a cut leaves it; an opening for writing steps the counter up to it first.
    Ahead {
        /// By how much: 1, or 2 for an opening root.
        by: u8,
    },
}

/// Why an image is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The image is older than what was acknowledged.
    RolledBack {
        /// The version of its newest root.
        version: u64,
        /// What the counter holds.
        counter: u64,
    },
    /// The counter stands too low to be this image's.
    CounterLost {
        /// The version of its newest root.
        version: u64,
        /// What the counter holds.
        counter: u64,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::RolledBack { version, counter } => {
                write!(f, "the image is at {version} and the counter at {counter}: an older image was put back")
            }
            Refused::CounterLost { version, counter } => {
                write!(
                    f,
                    "the counter is at {counter} and the image at {version}: the counter was put back or replaced"
                )
            }
        }
    }
}

impl core::error::Error for Refused {}

/// Compares the version of an image's newest root with the counter. `opening`: whether that root is an opening root.
///
/// # Errors
/// [`Refused`], naming both values.
pub fn judge(version: u64, opening: bool, counter: u64) -> Result<Accepted, Refused> {
    match version.checked_sub(counter) {
        None => Err(Refused::RolledBack { version, counter }),
        Some(0) => Ok(Accepted::Level),
        Some(1) => Ok(Accepted::Ahead { by: 1 }),
        Some(2) if opening => Ok(Accepted::Ahead { by: 2 }),
        Some(_) => Err(Refused::CounterLost { version, counter }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ahead_is_for_opening_roots_only() {
        assert_eq!(judge(7, false, 7), Ok(Accepted::Level));
        assert_eq!(judge(8, false, 7), Ok(Accepted::Ahead { by: 1 }));
        assert_eq!(judge(9, true, 7), Ok(Accepted::Ahead { by: 2 }));
        assert_eq!(judge(9, false, 7), Err(Refused::CounterLost { version: 9, counter: 7 }));
        assert_eq!(judge(10, true, 7), Err(Refused::CounterLost { version: 10, counter: 7 }));
        assert_eq!(judge(6, true, 7), Err(Refused::RolledBack { version: 6, counter: 7 }));
        assert_eq!(judge(0, false, u64::MAX), Err(Refused::RolledBack { version: 0, counter: u64::MAX }));
        assert_eq!(judge(u64::MAX, false, 0), Err(Refused::CounterLost { version: u64::MAX, counter: 0 }));
    }
}
