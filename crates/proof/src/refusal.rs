//! Why an answer is not to be trusted.

use core::fmt;

use crate::error::Malformed;

/// Why an answer is refused. Never a boolean: what to do next depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The bytes are none that an honest mirror sends.
    Malformed(&'static str),
    /// The answer is to another question.
    OtherQuestion,
    /// Rows may be missing: the proof does not reach around what was asked.
    Incomplete(&'static str),
    /// The owner did not sign this: a value was changed, a row left out, added or moved.
    Forged(&'static str),
    /// The owner signed it, and has changed it since; or it is too old for what was asked.
    Stale(&'static str),
    /// The times do not fit: something is signed for later than now.
    Clock(&'static str),
    /// No proof of it exists.
    NotProvable(&'static str),
}

impl Refusal {
    /// The verdict in one word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed",
            Self::OtherQuestion => "answer to another question",
            Self::Incomplete(_) => "incomplete",
            Self::Forged(_) => "forged",
            Self::Stale(_) => "stale",
            Self::Clock(_) => "clock",
            Self::NotProvable(_) => "not provable",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherQuestion => f.write_str(self.word()),
            Self::Malformed(what)
            | Self::Incomplete(what)
            | Self::Forged(what)
            | Self::Stale(what)
            | Self::Clock(what)
            | Self::NotProvable(what) => write!(f, "{}: {what}", self.word()),
        }
    }
}

impl core::error::Error for Refusal {}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed.0)
    }
}
