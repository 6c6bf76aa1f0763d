//! What can go wrong between us and a TPM.

use core::fmt;

/// Why a TPM did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TpmError {
    /// There is none where it was looked for.
    Absent,
    /// The way to it failed.
    System {
        /// What was being done.
        operation: &'static str,
        /// The operating system's error number.
        code: i32,
    },
    /// It answered with an error.
    Refused {
        /// What it was asked for.
        operation: &'static str,
        /// Its response code (TPM 2.0 Library, part 2, 6.6).
        code: u32,
    },
    /// Its answer makes no sense.
    Malformed {
        /// What it was asked for.
        operation: &'static str,
    },
    /// Its answer is not authentic: it comes from another TPM, or from somebody in between.
    NotAuthentic {
        /// What it was asked for.
        operation: &'static str,
    },
    /// The random generator failed.
    NoEntropy,
}

impl fmt::Display for TpmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TpmError::Absent => f.write_str("there is no TPM here"),
            TpmError::System { operation, code } => write!(f, "the TPM could not be {operation} (error {code})"),
            TpmError::Refused { operation, code } => {
                write!(f, "the TPM could not be {operation}: it answered {code:#x}")?;
                reason(*code).map_or(Ok(()), |reason| write!(f, ", {reason}"))
            }
            TpmError::Malformed { operation } => {
                write!(f, "the TPM could not be {operation}: its answer makes no sense")
            }
            TpmError::NotAuthentic { operation } => {
                write!(f, "the TPM could not be {operation}: its answer is not authentic")
            }
            TpmError::NoEntropy => crate::NoEntropy.fmt(f),
        }
    }
}

impl core::error::Error for TpmError {}

/// No memory left for another index.
pub(crate) const NV_SPACE: u32 = 0x14B;
/// Too many wrong passwords: it takes none for a while.
const LOCKOUT: u32 = 0x921;

/// What a response code means, where a person can do something about it.
pub(crate) fn reason(code: u32) -> Option<&'static str> {
    match error_number(code) {
        NV_SPACE => Some("its memory is full"),
        LOCKOUT => Some("it is locked out after wrong passwords"),
        AUTH_FAIL | BAD_AUTH => Some("its owner has a password"),
        _ => None,
    }
}

/// A MAC or password that is wrong, counted against dictionary attacks.
pub(crate) const AUTH_FAIL: u32 = 0x8E;
/// The same, not counted.
pub(crate) const BAD_AUTH: u32 = 0xA2;

/// A response code without the number of the handle, parameter or session that it is about.
pub(crate) fn error_number(code: u32) -> u32 {
    if code & 0x80 != 0 { code & 0xBF } else { code }
}
