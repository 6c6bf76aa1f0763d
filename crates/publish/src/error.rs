//! What can go wrong for an owner.

use std::fmt;

use counterfoil_proof::Malformed;

/// Why something was not published.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The table or a row of it cannot be published.
    Misuse(String),
    /// The ledger does not hold what it should.
    Corrupt(&'static str),
    /// An earlier change did not become durable: open the publication again.
    Latched,
    /// Whoever watches called it off. Nothing of it happened; the publication is to be opened again.
    CalledOff,
    /// The root key is kept elsewhere and was not handed in.
    RootNeeded,
    /// The ledger cannot be read or written: what it said.
    Ledger(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misuse(what) | Self::Ledger(what) => f.write_str(what),
            Self::Latched => f.write_str("an earlier change did not become durable: open the publication again"),
            Self::CalledOff => f.write_str("called off: nothing was published"),
            Self::RootNeeded => f.write_str("this takes the root key, which is kept elsewhere"),
            Self::Corrupt(what) => write!(f, "the owner's state does not hold {what}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Self {
        Self::Misuse(malformed.0.to_string())
    }
}
