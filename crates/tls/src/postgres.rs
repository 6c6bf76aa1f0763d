//! Addresses of databases of PostgreSQL, or of what speaks its protocol, and connections to them that are encrypted.

mod address;
mod encrypted;

use std::error::Error as _;
use std::fmt;
use std::io;

pub use address::Address;
pub use encrypted::Encrypted;

/// Why a connection is not encrypted as it was to be.
#[derive(Debug)]
pub enum Unencrypted {
    /// The server does not encrypt connections.
    NotOffered,
    /// Nobody vouches for it, or the two do not come together.
    Failed(rustls::Error),
}

impl Unencrypted {
    /// Reads it out of an error of the library, if it is that.
    #[must_use]
    pub fn of(error: &tokio_postgres::Error) -> Option<Self> {
        let cause = error.source()?;
        if cause.to_string().contains("does not support TLS") {
            return Some(Self::NotOffered);
        }
        let inner = cause.downcast_ref::<io::Error>()?.get_ref()?;
        inner.downcast_ref::<rustls::Error>().cloned().map(Self::Failed)
    }
}

impl fmt::Display for Unencrypted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOffered => f.write_str("PostgreSQL does not encrypt connections, and sslmode=require wants it"),
            Self::Failed(error) => write!(f, "no encrypted connection to PostgreSQL: {error}"),
        }
    }
}
