//! What a listener writes to.

use std::fmt;
use std::sync::Arc;

use crate::batch::Batch;
use crate::listener::credentials::Credentials;
use crate::problem::Rejects;
use crate::schema::Schema;

/// What a request wants to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum Access {
    Write { database: String },
    ListDatabases,
    CreateDatabase { database: String },
    DropDatabase { database: String },
}

/// A batch and where it goes.
#[derive(Debug)]
pub struct Write {
    /// The database that the request named.
    pub database: String,
    /// Its lines, or a part of them.
    pub batch: Batch,
}

/// What became of a batch: it is durable but for these rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Rows that were refused, by [`Table::reject`](crate::Table::reject).
    pub rejects: Rejects,
}

/// Why a sink did not do what it was asked. The texts go to the client: what and what to do, nothing of other users.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SinkError {
    /// No such database: 404, on which Telegraf creates it.
    UnknownDatabase(String),
    /// Nobody whom the sink knows: 401.
    Unauthenticated,
    /// Somebody who may not do this: 403.
    Forbidden(String),
    /// The request can never succeed: 400.
    Refused(String),
    /// The device is full: 507, which clients try again.
    Full(String),
    /// Nothing can be written now (read only, or another process writes): 503, which clients try again.
    Unavailable(String),
    /// The device failed, or what lies on it cannot be trusted: 500, which clients try again.
    Failed(String),
}

impl fmt::Display for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SinkError::UnknownDatabase(name) => write!(f, "database not found: {name:?}"),
            SinkError::Unauthenticated => f.write_str("unauthorized access: send a token, or a user and password"),
            SinkError::Forbidden(text)
            | SinkError::Refused(text)
            | SinkError::Full(text)
            | SinkError::Unavailable(text)
            | SinkError::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for SinkError {}

/// Where lines go: a database, or a test.
///
/// Its functions may block. [`write`](Sink::write) is called by one thread alone, the others by several.
pub trait Sink: Send + Sync + 'static {
    /// Writes batches of several requests, one result for each in their order. A result that is not an error says that
    /// its rows are durable: that is when the client is told. One commit may cover them all.
    ///
    /// A batch that fails may be partly there: clients send it again, and rows of the same key replace each other.
    fn write(&self, group: Vec<Write>) -> Vec<Result<Written, SinkError>>;

    /// What is known of the columns of a database, for one request.
    ///
    /// # Errors
    /// [`SinkError::UnknownDatabase`], before the body is read.
    fn schema(&self, database: &str) -> Result<Arc<dyn Schema>, SinkError>;

    /// Whether whoever has these credentials may do this.
    ///
    /// # Errors
    /// [`SinkError::Unauthenticated`] or [`SinkError::Forbidden`].
    fn authorize(&self, credentials: &Credentials, access: &Access) -> Result<(), SinkError>;

    /// The names of the databases that whoever may list them sees.
    ///
    /// # Errors
    /// As the store's.
    fn databases(&self) -> Result<Vec<String>, SinkError>;

    /// Creates a database; one that is there is no error.
    ///
    /// # Errors
    /// As the store's.
    fn create_database(&self, name: &str) -> Result<(), SinkError>;

    /// Drops a database; one that is not there is no error.
    ///
    /// # Errors
    /// As the store's.
    fn drop_database(&self, name: &str) -> Result<(), SinkError>;

    /// Whether a write could succeed now, for `/health`. Must not wait for one.
    ///
    /// # Errors
    /// Why not.
    fn health(&self) -> Result<(), SinkError> {
        Ok(())
    }
}
