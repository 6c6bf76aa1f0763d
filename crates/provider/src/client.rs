//! The owner's side of a provider.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use counterfoil_disperse::fragments::{Answer, Fragments, Name, Question};
use counterfoil_disperse::{Failure, Provider};
use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use zeroize::Zeroizing;

use crate::address::Address;
use crate::stream::Timed;
use crate::wire::{self, FRAME_BYTES_MAX, Reply, Request, VERSION};

/// How long an answer, or a part of one, is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a connection is waited for.
const PATIENCE_CONNECT: Duration = Duration::from_secs(10);
/// Connections that wait for the next question.
const IDLE_MAX: usize = 4;

type Connection = StreamOwned<ClientConnection, Timed>;

/// A provider that is reached over a network.
pub struct Remote {
    address: Address,
    token: Zeroizing<String>,
    config: Arc<ClientConfig>,
    has_other_key: Arc<AtomicBool>,
    patience: Duration,
    idle: Mutex<Vec<Connection>>,
}

impl Remote {
    /// The provider at an address, with the token that it gave. Nobody is asked yet.
    ///
    /// # Errors
    /// What is wrong with the address, for people.
    pub fn new(url: &str, token: Option<&str>) -> Result<Self, String> {
        let address = Address::parse(url)?;
        let has_other_key = Arc::new(AtomicBool::new(false));
        let config = crate::identity::client(address.pin, has_other_key.clone())
            .map_err(|error| format!("cloud at {url}: {error}"))?;
        let token = Zeroizing::new(token.unwrap_or_default().trim().to_owned());
        Ok(Self { address, token, config, has_other_key, patience: PATIENCE, idle: Mutex::default() })
    }

    /// So patient and no more.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    fn unreachable(&self, error: impl std::fmt::Display) -> Failure {
        Failure::Unreachable(format!("{}: {error}", self.address))
    }

    fn connect(&self) -> Result<Connection, Failure> {
        let addresses = self.address.resolve().map_err(|error| self.unreachable(error))?;
        let mut last = Failure::Unreachable(format!("{}: its host has no address", self.address));
        for address in addresses {
            match TcpStream::connect_timeout(&address, PATIENCE_CONNECT.min(self.patience)) {
                Ok(stream) => return self.enter(stream),
                Err(error) => last = self.unreachable(error),
            }
        }
        Err(last)
    }

    fn enter(&self, stream: TcpStream) -> Result<Connection, Failure> {
        let stream = Timed::new(stream, self.patience).map_err(|error| self.unreachable(error))?;
        // No name is looked at: the key says who it is.
        let name = ServerName::try_from("provider.invalid").map_err(|error| self.unreachable(error))?;
        let session = ClientConnection::new(self.config.clone(), name).map_err(|error| self.unreachable(error))?;
        let mut connection = StreamOwned::new(session, stream);
        let hello = Request::Hello { version: VERSION, token: self.token.to_string() };
        wire::say(&mut connection, &hello).map_err(|failure| self.told(failure))?;
        self.done(&mut connection)?;
        Ok(connection)
    }

    /// A key that is not the pinned one is no server that is away.
    fn told(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Unreachable(_) if self.has_other_key.load(Ordering::Relaxed) => Failure::Malformed(format!(
                "{}: another server is there: its key is not the one of the address",
                self.address
            )),
            Failure::Unreachable(what) => self.unreachable(what),
            other => other,
        }
    }

    fn hear(&self, connection: &mut Connection) -> Result<Reply, Failure> {
        connection.sock.wait(self.patience);
        match wire::hear(connection, FRAME_BYTES_MAX).map_err(|failure| self.told(failure))? {
            Some(Reply::Failed { kind, text }) => Err(wire::failure(kind, text)),
            Some(reply) => Ok(reply),
            None => Err(self.unreachable("it has ended the connection")),
        }
    }

    fn done(&self, connection: &mut Connection) -> Result<(), Failure> {
        match self.hear(connection)? {
            Reply::Done => Ok(()),
            _ => Err(Failure::Malformed("a part of an answer where nothing was asked".into())),
        }
    }

    /// Says something and hears what comes of it. All of it may be said twice, if a connection that waited has gone meanwhile.
    fn say(
        &self,
        request: &Request,
        hear: &mut dyn FnMut(&mut Connection) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let waiting = self.idle.lock().pop();
        if let Some(mut connection) = waiting {
            connection.sock.wait(self.patience);
            let is_there = wire::say(&mut connection, request).is_ok() && self.is_answered(&mut connection);
            if is_there {
                return self.end(connection, hear);
            }
        }
        let mut connection = self.connect()?;
        connection.sock.wait(self.patience);
        wire::say(&mut connection, request).map_err(|failure| self.told(failure))?;
        self.end(connection, hear)
    }

    /// Whether the other side is still there to answer.
    fn is_answered(&self, connection: &mut Connection) -> bool {
        use std::io::BufRead as _;
        connection.sock.wait(self.patience);
        connection.fill_buf().is_ok_and(|bytes| !bytes.is_empty())
    }

    fn end(
        &self,
        mut connection: Connection,
        hear: &mut dyn FnMut(&mut Connection) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match hear(&mut connection) {
            Ok(()) => {}
            // It has said all that it had to say.
            Err(failure @ Failure::Refused(_)) => {
                self.keep(connection);
                return Err(failure);
            }
            Err(failure) => {
                connection.sock.end();
                return Err(failure);
            }
        }
        self.keep(connection);
        Ok(())
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
    }
}

impl Provider for Remote {
    fn put(&self, table: &Name, rows: &Fragments) -> Result<(), Failure> {
        for rows in wire::parts(rows) {
            self.say(&Request::Put { table: table.clone(), rows }, &mut |connection| self.done(connection))?;
        }
        Ok(())
    }

    fn remove(&self, table: &Name, places: &[u64]) -> Result<(), Failure> {
        let request = Request::Remove { table: table.clone(), places: places.to_vec() };
        self.say(&request, &mut |connection| self.done(connection))
    }

    fn ask(
        &self,
        table: &Name,
        question: &Question,
        take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let request = Request::Ask { table: table.clone(), question: question.clone() };
        self.say(&request, &mut |connection| {
            loop {
                match self.hear(connection)? {
                    Reply::Part(answer) if wire::is_whole(&answer.rows) => take(answer)?,
                    Reply::Done => return Ok(()),
                    _ => return Err(Failure::Malformed("an answer that does not hold together".into())),
                }
            }
        })
    }

    fn drop_table(&self, table: &Name) -> Result<(), Failure> {
        self.say(&Request::Drop { table: table.clone() }, &mut |connection| self.done(connection))
    }
}
