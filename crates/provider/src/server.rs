//! The server: a thread for each connection, and no more of either than was said.
//!
//! ```text
//! FOLDER/identity    the key of the server           FOLDER/tokens     who may come in
//! FOLDER/files       what tells its files from others (32 random bytes)
//! FOLDER/held/NAME   the fragments of a client, a folder for each table (`counterfoil_disperse::StoredProvider`)
//! FOLDER/serving     empty; locked by the server
//! ```
//! What is put is durable before Done is said. A server that is killed leaves whole files.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use counterfoil_disperse::fragments::{Fragments, Name};
use counterfoil_disperse::{Failure, Folder, Provider as _, Secret, StoredProvider};
use counterfoil_vault::{Entropy as _, SystemEntropy};
use parking_lot::Mutex;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use zeroize::Zeroizing;

use crate::identity::Identity;
use crate::stream::Timed;
use crate::tokens::{Shown, Tokens};
use crate::wire::{self, FRAME_BYTES_MAX, HELLO_BYTES_MAX, Reply, Request, VERSION};

/// What a server takes at most.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Connections at once: whoever comes beyond them is sent away.
    pub connections_max: usize,
    /// How long a stranger may take to show a token.
    pub patience_hello: Duration,
    /// How long a message, or the reading of one, may take.
    pub patience_message: Duration,
    /// How long a connection may be silent.
    pub patience_idle: Duration,
    /// Bytes of fragments that are kept in memory for each client, so that they are not read again.
    pub memory_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 64,
            patience_hello: Duration::from_secs(10),
            patience_message: Duration::from_secs(60),
            patience_idle: Duration::from_secs(900),
            memory_bytes: 256 << 20,
        }
    }
}

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where everything lies.
    pub folder: PathBuf,
    /// Where it listens.
    pub listen: SocketAddr,
    /// What it takes at most.
    pub limits: Limits,
    /// Hears of what whoever runs the server should know, a line at a time.
    pub note: fn(&str),
}

/// Between two notes of clients that were sent away.
const NOTED: Duration = Duration::from_secs(60);

/// Why there is no server.
#[derive(Debug)]
pub enum ServeError {
    /// The folder, or what is in it.
    Folder(PathBuf, io::Error),
    /// Another one serves the folder: each would bring back what the other has left out.
    Served(PathBuf),
    /// The address.
    Listen(SocketAddr, io::Error),
    /// The key of the server.
    Key(rustls::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder, error) => write!(f, "could not use the folder ({}): {error}", folder.display()),
            Self::Served(folder) => write!(f, "another provider serves this folder already ({})", folder.display()),
            Self::Listen(address, error) => write!(f, "could not listen ({address}): {error}"),
            Self::Key(error) => write!(f, "the key of the server cannot be used: {error}"),
        }
    }
}

impl std::error::Error for ServeError {}

/// The fragments of a client.
struct Held {
    provider: StoredProvider<Folder>,
    /// Held by whoever changes them: of two that leave rows out of one file each would bring back what the other has left out.
    changing: Mutex<()>,
}

impl Held {
    fn put(&self, table: &Name, rows: &Fragments) -> Result<(), Failure> {
        let _one_at_a_time = self.changing.lock();
        self.provider.put(table, rows)
    }

    fn remove(&self, table: &Name, places: &[u64]) -> Result<(), Failure> {
        let _one_at_a_time = self.changing.lock();
        self.provider.remove(table, places)
    }

    fn drop_table(&self, table: &Name) -> Result<(), Failure> {
        let _one_at_a_time = self.changing.lock();
        self.provider.drop_table(table)
    }
}

/// What all connections share.
struct Serving {
    folder: PathBuf,
    files: Secret,
    tokens: Tokens,
    tls: Arc<ServerConfig>,
    limits: Limits,
    connections: AtomicUsize,
    /// When it was noted last that somebody was sent away.
    sent_away: Mutex<Option<Instant>>,
    note: fn(&str),
    /// Those that are open, by numbers of their own.
    open: Mutex<HashMap<usize, TcpStream>>,
    numbers: AtomicUsize,
    /// Each client's fragments, as far as they are in memory.
    held: Mutex<HashMap<String, Arc<Held>>>,
}

/// Serves until `running` returns, which is told the address for owners.
///
/// # Errors
/// [`ServeError`].
pub fn serve<T>(options: Options, running: impl FnOnce(&str) -> T) -> Result<T, ServeError> {
    let Options { folder, listen, limits, note } = options;
    let wrong = |error| ServeError::Folder(folder.clone(), error);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder.join("held")).map_err(wrong)?;
    let _served = only_one(&folder)?;
    let identity = Identity::in_folder(&folder).map_err(wrong)?;
    let files = files_key(&folder).map_err(wrong)?;
    let listener = TcpListener::bind(listen).map_err(|error| ServeError::Listen(listen, error))?;
    let address = listener.local_addr().map_err(|error| ServeError::Listen(listen, error))?;
    let serving = Arc::new(Serving {
        tokens: Tokens::in_folder(&folder),
        folder,
        files,
        tls: identity.server().map_err(ServeError::Key)?,
        limits,
        connections: AtomicUsize::new(0),
        sent_away: Mutex::default(),
        note,
        open: Mutex::default(),
        numbers: AtomicUsize::new(0),
        held: Mutex::default(),
    });
    let is_ending = Arc::new(AtomicBool::new(false));
    let accepting = {
        let (serving, is_ending) = (serving.clone(), is_ending.clone());
        std::thread::spawn(move || accept(&listener, &serving, &is_ending))
    };
    let done = running(&format!("provider://{address}?pin={}", identity.pin()));
    is_ending.store(true, Ordering::SeqCst);
    // Whoever waits for a connection is woken by one.
    let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
    let _ = accepting.join();
    serving.end();
    Ok(done)
}

/// What the server of a folder holds as long as it serves; the system lets go of it however the server ends.
fn only_one(folder: &Path) -> Result<fs::File, ServeError> {
    let wrong = |error| ServeError::Folder(folder.to_owned(), error);
    let path = folder.join("serving");
    let file = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map_err(wrong)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(ServeError::Served(folder.to_owned())),
        Err(fs::TryLockError::Error(error)) => Err(wrong(error)),
    }
}

/// What tells files of this server from others: whatever was put beside them, or changed, is not read.
fn files_key(folder: &Path) -> io::Result<Secret> {
    let path = folder.join("files");
    let mut key = Zeroizing::new([0; 32]);
    match fs::File::open(&path) {
        Ok(mut file) => file.read_exact(&mut *key)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            SystemEntropy.fill(&mut *key).map_err(|_| io::Error::other("the system gives no random numbers"))?;
            let part = path.with_extension("part");
            let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
            file.write_all(&*key)?;
            file.sync_all()?;
            fs::rename(part, path)?;
        }
        Err(error) => return Err(error),
    }
    Ok(Secret::new(*key))
}

fn accept(listener: &TcpListener, serving: &Arc<Serving>, is_ending: &AtomicBool) {
    for stream in listener.incoming() {
        if is_ending.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else {
            // No descriptor, or a client that has gone again: others will come.
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        match Guest::enter(serving) {
            // A thread that cannot be had is a connection that ends.
            Some(guest) => _ = std::thread::Builder::new().spawn(move || guest.talk(stream)),
            None => serving.note_sent_away(),
        }
    }
}

/// One connection, counted.
struct Guest(Arc<Serving>);

impl Guest {
    fn enter(serving: &Arc<Serving>) -> Option<Self> {
        let before = serving.connections.fetch_add(1, Ordering::SeqCst);
        let guest = Self(serving.clone());
        (before < serving.limits.connections_max).then_some(guest)
    }

    fn talk(&self, stream: TcpStream) {
        let serving = &self.0;
        let number = serving.numbers.fetch_add(1, Ordering::Relaxed);
        let Ok(other) = stream.try_clone() else { return };
        serving.open.lock().insert(number, other);
        self.answer(stream);
        serving.open.lock().remove(&number);
    }

    fn answer(&self, stream: TcpStream) {
        let serving = &self.0;
        let Ok(stream) = Timed::new(stream, serving.limits.patience_hello) else { return };
        let Ok(session) = ServerConnection::new(serving.tls.clone()) else { return };
        let mut connection = StreamOwned::new(session, stream);
        // What goes wrong with a connection ends it: whoever is there says again what was not answered.
        if let Ok(Some(held)) = serving.hello(&mut connection) {
            let _ = serving.answer_all(&mut connection, &held);
        }
        connection.sock.end();
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

type Connection = StreamOwned<ServerConnection, Timed>;

impl Serving {
    /// Hears nothing more. What has been heard is done, and answered.
    fn end(&self) {
        let until = Instant::now() + self.limits.patience_message;
        while self.connections.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            self.open.lock().values().for_each(|stream| drop(stream.shutdown(Shutdown::Read)));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whoever was sent away knows no more than that nobody talks with him.
    fn note_sent_away(&self) {
        let mut noted = self.sent_away.lock();
        if noted.is_none_or(|at| at.elapsed() >= NOTED) {
            *noted = Some(Instant::now());
            let most = self.limits.connections_max;
            (self.note)(&format!("clients are sent away: there are {most} connections, and no more are taken at once"));
        }
    }

    /// Who it is; none: nobody who may come in, which was said.
    fn hello(&self, connection: &mut Connection) -> Result<Option<Arc<Held>>, Failure> {
        let refused = |connection: &mut Connection, text: &str| {
            wire::say(connection, &Reply::of(&Failure::Refused(text.into()))).map(|()| None)
        };
        let own = format!("this provider speaks version {VERSION}");
        let (version, token) = match wire::hear(connection, HELLO_BYTES_MAX) {
            Ok(None) => return Ok(None),
            Ok(Some(Request::Hello { version, token })) => (version, token),
            // Of another version nothing may be as it is here but that somebody begins.
            Ok(Some(_)) | Err(Failure::Malformed(_)) => {
                let text = format!("{own}, and what you say is no hello of it: take the newer program on both sides");
                return refused(connection, &text);
            }
            Err(failure) => return Err(failure),
        };
        let token = Zeroizing::new(token);
        if version != VERSION {
            let text = format!("{own}, and you {version}: take the newer program on both sides");
            return refused(connection, &text);
        }
        match self.tokens.who(&token) {
            Ok(Shown::Client(name)) => {
                wire::say(connection, &Reply::Done)?;
                Ok(Some(self.held(&name)))
            }
            Ok(Shown::Expired) => {
                refused(connection, "the token has expired: have a new one made, with `provider token`")
            }
            Ok(Shown::Unknown) => {
                refused(connection, "no such token: secret_file names the file with the one that was given")
            }
            Err(_) => refused(connection, "the provider cannot read its tokens"),
        }
    }

    fn held(&self, name: &str) -> Arc<Held> {
        let mut held = self.held.lock();
        let own = held.entry(name.to_owned()).or_insert_with(|| {
            let folder = self.folder.join("held").join(name);
            // What cannot be made is told when something is put there.
            let _ = fs::DirBuilder::new().mode(0o700).create(&folder);
            let provider = StoredProvider::new(Folder(folder), self.files.clone());
            let provider = provider.with_memory(self.limits.memory_bytes);
            Arc::new(Held { provider, changing: Mutex::default() })
        });
        own.clone()
    }

    /// A failure as clients are told of it: where their folders lie is nobody's business but the provider's.
    fn as_told(&self, failure: Failure) -> Failure {
        let own = format!("{}/", self.folder.join("held").display());
        let told = |text: String| text.replace(&own, "");
        match failure {
            Failure::Refused(text) => Failure::Refused(told(text)),
            Failure::Unreachable(text) => Failure::Unreachable(told(text)),
            Failure::Malformed(text) => Failure::Malformed(told(text)),
            other => other,
        }
    }

    fn answer_all(&self, connection: &mut Connection, held: &Held) -> Result<(), Failure> {
        loop {
            connection.sock.wait(self.limits.patience_idle);
            let Some(request) = wire::hear(connection, FRAME_BYTES_MAX)? else { return Ok(()) };
            connection.sock.wait(self.limits.patience_message);
            let done = match request {
                Request::Put { table, rows } if wire::is_whole(&rows) => held.put(&table, &rows),
                Request::Put { .. } => Err(Failure::Refused("rows that do not hold together".into())),
                Request::Remove { table, places } => held.remove(&table, &places),
                Request::Drop { table } => held.drop_table(&table),
                Request::Ask { table, question } => held.provider.ask(&table, &question, &mut |answer| {
                    for part in wire::answers(answer) {
                        connection.sock.wait(self.limits.patience_message);
                        wire::say(connection, &Reply::Part(part))?;
                    }
                    Ok(())
                }),
                Request::Hello { .. } => Err(Failure::Refused("who is there was said already".into())),
            };
            connection.sock.wait(self.limits.patience_message);
            match done {
                Ok(()) => wire::say(connection, &Reply::Done)?,
                Err(failure) => wire::say(connection, &Reply::of(&self.as_told(failure)))?,
            }
        }
    }
}
