//! Line protocol into the database: what clients of InfluxDB write to, and files of lines.
//!
//! ```text
//! listener -> batches -> sink  \
//!                               rows of series tables -> one transaction
//! file, pipe -> lines ---------/
//! ```

mod databases;
mod lines;
mod points;
mod schema;
mod sink;

use std::net::SocketAddr;
use std::sync::Arc;

use counterfoil_influx::listener::{Listener, Settings};
pub use lines::{LinePrecision, Lines, LinesImported};
use sink::DatabaseSink;

use crate::database::Database;
use crate::ending::Ending;
use crate::error::{Error, Kind, Result};

/// How clients of InfluxDB are served.
#[derive(Clone, Debug)]
pub struct InfluxOptions {
    address: SocketAddr,
    may_create: bool,
    asks_who: bool,
    quality_fields: Vec<String>,
    ending: Ending,
}

impl InfluxOptions {
    /// At an address, port 0 for any free one: tables and columns are made as lines come, and every request but `/ping` and
    /// `/health` shows who sends it.
    #[must_use]
    pub fn at(address: SocketAddr) -> Self {
        Self { address, may_create: true, asks_who: true, quality_fields: Vec::new(), ending: Ending::default() }
    }

    /// Whether tables and columns are made as lines come; else such lines are refused.
    #[must_use]
    pub fn create(self, may_create: bool) -> Self {
        Self { may_create, ..self }
    }

    /// A field that holds qualities of OPC UA. There may be several.
    #[must_use]
    pub fn quality_field(mut self, name: impl Into<String>) -> Self {
        self.quality_fields.push(name.into());
        self
    }

    /// What is told when the database cannot go on; one of its own unless it is given here.
    #[must_use]
    pub fn ending(self, ending: Ending) -> Self {
        Self { ending, ..self }
    }

    /// Ask nobody who they are: whoever reaches the address may write and drop everything. Loopback addresses alone can be
    /// served so.
    #[must_use]
    pub fn danger_no_authentication(self) -> Self {
        Self { asks_who: false, ..self }
    }
}

/// Serves clients of InfluxDB until it is shut down or dropped.
pub struct InfluxListener {
    listener: Listener,
    ending: Ending,
}

impl Database {
    /// Serves clients of InfluxDB. The writer's lock is taken with the first batch and kept like that of every writer.
    ///
    /// # Errors
    /// [`Kind::Misuse`] where there is no user whom it could ask for, and where nobody is asked at an address that others
    /// can reach; what the system says about the address.
    pub fn serve_influx(&self, options: InfluxOptions) -> Result<InfluxListener> {
        let InfluxOptions { address, may_create, asks_who, quality_fields, ending } = options;
        if asks_who && self.users().list()?.is_empty() {
            return Err(Error::new(Kind::Misuse, "there is no user who could write")
                .advise("add one with `counterfoil user add DB NAME`, or serve a loopback address with --no-auth"));
        }
        if !asks_who && !address.ip().is_loopback() {
            return Err(Error::new(Kind::Misuse, "without users only a loopback address is served")
                .at(address)
                .advise("name one such as 127.0.0.1:8086, or leave --no-auth out"));
        }
        let sink = Arc::new(DatabaseSink::new(self.clone(), may_create, asks_who, ending.clone())?);
        let mut settings = Settings::default();
        settings.quality_fields = quality_fields;
        let listener = Listener::bind(address, sink, settings)
            .map_err(|error| Error::host("listen", address, &error).advise("choose another address"))?;
        Ok(InfluxListener { listener, ending })
    }
}

impl InfluxListener {
    /// The address it listens at.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// What is told when the database cannot go on, and waited for by whoever serves it.
    #[must_use]
    pub fn ending(&self) -> Ending {
        self.ending.clone()
    }

    /// Takes no more requests, and ends when those that had begun are answered: within some ten seconds.
    pub fn shut_down(self) {
        self.listener.shut_down();
    }
}
