//! What transactions are: how far they are kept from each other, and whether they only read.

use datafusion::sql::sqlparser::ast::{
    TransactionAccessMode, TransactionIsolationLevel as Level, TransactionMode as Said,
};

use crate::error::{Error, Result};

/// What a transaction is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    pub(crate) isolation: Isolation,
    pub(crate) read_only: bool,
}

impl Modes {
    /// With what was said beside it.
    ///
    /// # Errors
    /// [`Error::NotSupported`] for a level that another product has.
    pub(crate) fn and(mut self, said: &[Said]) -> Result<Self> {
        for mode in said {
            match mode {
                Said::AccessMode(mode) => self.read_only = matches!(mode, TransactionAccessMode::ReadOnly),
                Said::IsolationLevel(level) => {
                    let known = Isolation::of(*level);
                    self.isolation = known.ok_or_else(|| Error::NotSupported(format!("ISOLATION LEVEL {level}")))?;
                }
            }
        }
        Ok(self)
    }

    /// The same of a transaction that is open: one that has asked for something sees what it sees, and goes on reading only where it did.
    ///
    /// # Errors
    /// [`Error::Begun`] for what had to be said before; otherwise as [`Modes::and`].
    pub(crate) fn become_of(self, said: &[Said], has_asked: bool) -> Result<Self> {
        self.become_these(self.and(said)?, has_asked)
    }

    /// The same where it is to be all of these.
    ///
    /// # Errors
    /// [`Error::Begun`].
    pub(crate) fn become_these(self, modes: Self, has_asked: bool) -> Result<Self> {
        let first = |what: &str| Error::Begun(format!("{what} comes before the first query of a transaction"));
        if has_asked && self.read_only && !modes.read_only {
            return Err(first("SET TRANSACTION READ WRITE"));
        }
        if has_asked && self.isolation != modes.isolation {
            return Err(first("SET TRANSACTION ISOLATION LEVEL"));
        }
        Ok(modes)
    }
}

/// A level, as it was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Isolation {
    ReadUncommitted,
    #[default]
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Isolation {
    const ALL: [Isolation; 4] =
        [Isolation::ReadUncommitted, Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable];

    /// The level of a mode; none for one that is another product's.
    pub(crate) fn of(level: Level) -> Option<Self> {
        Some(match level {
            Level::ReadUncommitted => Isolation::ReadUncommitted,
            Level::ReadCommitted => Isolation::ReadCommitted,
            Level::RepeatableRead => Isolation::RepeatableRead,
            Level::Serializable => Isolation::Serializable,
            Level::Snapshot => return None,
        })
    }

    /// The level of this name.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let found = Isolation::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(text.trim()));
        found.ok_or_else(|| {
            let names = Isolation::ALL.map(Isolation::name).join(", ");
            Error::Sql(format!("{text} is no level of isolation: {names} are"))
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Isolation::ReadUncommitted => "read uncommitted",
            Isolation::ReadCommitted => "read committed",
            Isolation::RepeatableRead => "repeatable read",
            Isolation::Serializable => "serializable",
        }
    }

    /// Whether all statements see what the first one saw.
    pub(crate) fn is_stable(self) -> bool {
        matches!(self, Isolation::RepeatableRead | Isolation::Serializable)
    }
}
