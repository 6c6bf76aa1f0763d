//! Files of a machine that is reached by ssh.
//!
//! ```text
//! FOLDER/TABLE/NAME.part, then NAME      a file that comes in pieces is renamed when it is whole, and on the disk
//! ```
//! 1. The server may be anybody's: a packet has a bound, an operation an end, and what comes is counted.
//! 2. Everything here may be done again: names say what is in a file. A connection that waited and is not there any more is replaced.
//! 3. Not by OpenDAL's service: it panics at a name that is no UTF-8 and at files without a mode, its library takes as much memory as a
//!    server's count of names asks for, and it neither renames nor syncs, nor can be told where known hosts are.

mod files;
mod session;

use std::ops::Range;
use std::time::Duration;

use counterfoil_disperse::{Failure, Store};
use parking_lot::Mutex;
use russh_sftp::protocol::FileAttributes;

use crate::address::{Address, Place};
use crate::leftovers::Leftovers;
use crate::objects::PAUSES;
use crate::pace::Pace;
use crate::worker::Worker;
use session::{Session, if_there};

/// Connections that wait for somebody.
const IDLE_MAX: usize = 4;

/// A folder of a machine that is reached by ssh.
pub(crate) struct Sftp {
    worker: Worker,
    address: Address,
    /// The file of the key that one shows; none: those that ssh has.
    key_file: Option<String>,
    idle: Mutex<Vec<Session>>,
    patience: Duration,
    leftovers: Leftovers,
}

impl Sftp {
    pub fn new(address: Address, key_file: Option<&str>, patience: Duration) -> Result<Self, String> {
        let url = address.to_string();
        let worker = Worker::new(&url)?;
        let key_file = key_file.map(str::to_owned);
        Ok(Self { worker, address, key_file, idle: Mutex::default(), patience, leftovers: Leftovers::default() })
    }

    /// The path of something as the server has it.
    fn path(&self, rest: &str) -> String {
        let is_home = matches!(self.address.place, Place::Sftp { is_home: true, .. });
        let path = self.address.path(rest);
        let path = path.trim_end_matches('/');
        if is_home { path.to_owned() } else { format!("/{path}") }
    }

    /// Does something on a connection, which waits for the next one if that went well; and again if it did not get through.
    fn with<T>(&self, body: impl AsyncFn(&Session, &Pace) -> Result<T, Failure>) -> Result<T, Failure> {
        self.worker.wait(async {
            let pace = Pace::new(self.patience);
            let mut pauses = PAUSES.iter();
            loop {
                let waited = self.idle.lock().pop();
                let is_new = waited.is_none();
                let done = self.tried(waited, &pace, &body).await;
                let Err(failure @ Failure::Unreachable(_)) = done else { return done };
                if !is_new && pace.allows(Duration::ZERO) {
                    continue; // it may have been closed while it waited
                }
                let Some(pause) = pauses.next().filter(|pause| pace.allows(**pause)) else { return Err(failure) };
                tokio::time::sleep(*pause).await;
            }
        })
    }

    async fn tried<T>(
        &self,
        waited: Option<Session>,
        pace: &Pace,
        body: impl AsyncFn(&Session, &Pace) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let session = match waited {
            Some(session) => session,
            None => pace.hold(Session::open(&self.address, self.key_file.as_deref(), self.patience)).await??,
        };
        let done = body(&session, pace).await;
        // What the server refuses does not end a connection.
        if matches!(done, Ok(_) | Err(Failure::Refused(_))) {
            let mut idle = self.idle.lock();
            if idle.len() < IDLE_MAX {
                idle.push(session);
            }
        }
        done
    }

    async fn names(&self, session: &Session, pace: &Pace, folder: &str) -> Result<Vec<String>, Failure> {
        match files::names(session, pace, &self.path(folder)).await? {
            Some(names) => Ok(names),
            None => files::finds(session, pace, &self.path("")).await.map(|()| Vec::new()),
        }
    }

    async fn remove(&self, session: &Session, pace: &Pace, folder: &str, name: &str) -> Result<(), Failure> {
        let path = self.path(&format!("{folder}/{name}"));
        session.asks(pace, async { if_there(session.raw.remove(path).await) }).await.map(drop)
    }

    /// Writes a file beside its place, and puts it there.
    async fn write(&self, session: &Session, pace: &Pace, at: (&str, &str), bytes: &[u8]) -> Result<(), Failure> {
        let (folder, name) = at;
        let beside = self.path(&format!("{folder}/{}", Leftovers::beside(name)));
        if !files::write(session, pace, &beside, bytes).await? {
            files::finds(session, pace, &self.path("")).await?;
            // Somebody else may make it at the same time: then the next line finds it.
            let made = session.raw.mkdir(self.path(folder), FileAttributes::empty());
            let made = pace.hold(made).await?;
            if !files::write(session, pace, &beside, bytes).await? {
                return Err(Failure::Refused(format!("no folder can be made in {} ({})", self.path(""), made.is_ok())));
            }
        }
        // A cut before this leaves the file beside.
        session.asks(pace, session.rename(&beside, &self.path(&format!("{folder}/{name}")))).await
    }
}

impl Store for Sftp {
    fn list(&self, folder: &str) -> Result<Vec<String>, Failure> {
        let names = self.with(async |session, pace| self.names(session, pace, folder).await)?;
        self.leftovers.note(folder, &names);
        Ok(names)
    }

    fn get(&self, folder: &str, name: &str, range: Range<u64>) -> Result<Option<Vec<u8>>, Failure> {
        let path = self.path(&format!("{folder}/{name}"));
        self.with(async |session, pace| files::read(session, pace, &path, range.clone()).await)
    }

    fn put(&self, folder: &str, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let done = self.with(async |session, pace| self.write(session, pace, (folder, name), bytes).await);
        for leftover in self.leftovers.take((folder, name), &done) {
            // One that stays is shown by the next listing.
            drop(self.delete(folder, &leftover));
        }
        done
    }

    fn delete(&self, folder: &str, name: &str) -> Result<(), Failure> {
        self.with(async |session, pace| self.remove(session, pace, folder, name).await)
    }

    fn delete_folder(&self, folder: &str) -> Result<(), Failure> {
        self.with(async |session, pace| {
            let (cut, others): (Vec<_>, Vec<_>) =
                self.names(session, pace, folder).await?.into_iter().partition(|name| Leftovers::is_one(name));
            for name in cut {
                self.remove(session, pace, folder, &name).await?;
            }
            if !others.is_empty() {
                return Ok(()); // somebody else's
            }
            session.asks(pace, async { if_there(session.raw.rmdir(self.path(folder)).await) }).await.map(drop)
        })
    }
}
