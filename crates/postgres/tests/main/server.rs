//! A database in memory that is served.

use counterfoil::{Database, Options, Role};
use counterfoil_postgres::{Limits, Listener, Settings};

use crate::client::{Client, Refused};

pub const PASSWORD: &str = "correct horse";

/// A server of its own for each test.
pub struct Server {
    pub database: Database,
    pub listener: Listener,
}

impl Server {
    /// With a writer, `alice`, and a reader, `bob`.
    pub fn new() -> Self {
        Self::with(|settings| settings)
    }

    pub fn with(change: impl FnOnce(Settings) -> Settings) -> Self {
        let database = Database::create(Options::memory()).expect("a database");
        for (name, role) in [("alice", Role::Writer), ("bob", Role::Reader)] {
            database.users().add(name, role, &PASSWORD.to_owned().into()).expect("a user");
        }
        let limits = Limits { refusal_delay: std::time::Duration::ZERO, ..Limits::default() };
        let settings = change(Settings::at("127.0.0.1:0".parse().expect("an address")).limits(limits));
        let listener = Listener::bind(&database, settings).expect("a listener");
        Server { database, listener }
    }

    pub fn client(&self, user: &str) -> Client {
        self.shown(user, PASSWORD).expect("a client")
    }

    /// One who says with which settings it would like to begin.
    pub fn saying(&self, settings: &[(&str, &str)]) -> Result<Client, Refused> {
        Client::connect_with(self.listener.address(), ("alice", PASSWORD), settings)
    }

    pub fn shown(&self, user: &str, password: &str) -> Result<Client, Refused> {
        Client::connect(self.listener.address(), user, password)
    }
}
