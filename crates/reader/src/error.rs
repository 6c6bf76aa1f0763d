//! Why there are no rows.

use std::fmt;

use counterfoil_mirror::site::SiteError;
use counterfoil_mirror::{AnswerError, Unanswered};
use counterfoil_proof::{Malformed, Refusal};

use crate::moving::ATTEMPTS_MAX;

/// Why there are no rows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// What was asked is no SQL, or not answered here.
    Sql(counterfoil_ask::Error),
    /// The mirror could not be reached, or broke off: what it was, and where.
    Unreachable(String),
    /// There is no published table at this place: the file that is not there.
    NoTable(String),
    /// The mirror does not serve a file that it names itself: it is being brought up to date, or holds something back.
    Withheld(String),
    /// The answer is not to be trusted.
    Refused(Refusal),
    /// A file of the mirror is damaged, and which.
    Damaged(String, Malformed),
    /// The mirror stood elsewhere each time that it was asked, and why there were no rows the last time.
    Moving(Box<Error>),
    /// No kept answer, or one of a later version.
    NotKept(Malformed),
}

impl Error {
    /// Why an answer is not to be trusted, in one word; none where that is not what is wrong.
    #[must_use]
    pub fn word(&self) -> Option<&'static str> {
        match self {
            Self::Refused(refusal) => Some(refusal.word()),
            Self::Damaged(_, what) => Some(Refusal::from(*what).word()),
            Self::Moving(last) => last.word(),
            _ => None,
        }
    }

    /// Whether it may come of an update between two fetches, so that it is worth asking once more where the mirror stands
    /// elsewhere by now.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Withheld(_) | Self::Damaged(..))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sql(error) => error.fmt(f),
            Self::Unreachable(what) => f.write_str(what),
            Self::NoTable(path) => write!(f, "no published table is here: there is no {path}"),
            Self::Withheld(path) => write!(f, "the mirror does not serve {path}, which it names itself"),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Damaged(path, what) => write!(f, "malformed: {path} is damaged ({what})"),
            Self::Moving(last) => {
                write!(f, "{last}; it stood elsewhere each of the {ATTEMPTS_MAX} times that it was asked")
            }
            Self::NotKept(what) => write!(f, "no answer that was kept: {what}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<counterfoil_ask::Error> for Error {
    fn from(error: counterfoil_ask::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<SiteError> for Error {
    fn from(error: SiteError) -> Self {
        match error {
            SiteError::Fetch(what) => Self::Unreachable(what),
            SiteError::Missing(path) => Self::Withheld(path),
            SiteError::Damaged(path, what) => Self::Damaged(path, what),
        }
    }
}

impl From<Unanswered<SiteError>> for Error {
    fn from(error: Unanswered<SiteError>) -> Self {
        match error {
            Unanswered::Question(what) => Self::Refused(what.into()),
            Unanswered::Answer(error) => error.into(),
        }
    }
}

impl From<AnswerError<SiteError>> for Error {
    fn from(error: AnswerError<SiteError>) -> Self {
        match error {
            AnswerError::Shelf(error) => error.into(),
            AnswerError::Shelved(what) => Self::Refused(what.into()),
        }
    }
}
