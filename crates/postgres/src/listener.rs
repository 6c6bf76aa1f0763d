//! Where clients come in: a thread for each of them.

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use counterfoil::{Database, Ending, Error, Kind, Result, SERVER_VERSION};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::budget::Budget;
use crate::cancel::Cancel;
use crate::first_words;
use crate::greeting::{Guest, Porter};
use crate::limits::Limits;
use crate::session::{LetIn, Session};
use crate::socket::{self, Socket};
use crate::sqlstate::{Refusal, Stopped};
use crate::tls::Tls;
use crate::watch::{self, Watch};
use crate::wire::{Stream, Wire, put_text};

/// What clients are told about the server: what it claims decides which catalogue they ask for.
const SETTINGS: [(&str, &str); 10] = [
    ("server_version", SERVER_VERSION),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("IntervalStyle", "postgres"),
    ("in_hot_standby", "off"),
    ("TimeZone", "UTC"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
    ("is_superuser", "off"),
];

/// How long is waited for somebody to go who was sent away: for the answer to a wrong password, at most.
const ROOM_WAIT: Duration = Duration::from_secs(1);
/// How long those who are told something when serving ends may take to hear it.
const ANSWER_WAIT: Duration = Duration::from_secs(2);

/// How clients of PostgreSQL are served.
#[derive(Clone, Debug)]
pub struct Settings {
    address: SocketAddr,
    asks_who: bool,
    tls: Option<Tls>,
    limits: Limits,
    ending: Ending,
}

impl Settings {
    /// At an address, port 0 for any free one; everybody shows a name and a password.
    #[must_use]
    pub fn at(address: SocketAddr) -> Self {
        Settings { address, asks_who: true, tls: None, limits: Limits::default(), ending: Ending::default() }
    }

    /// Ask nobody who they are: whoever reaches the address may read and write everything. Loopback addresses alone can be
    /// served so.
    #[must_use]
    pub fn danger_no_authentication(self) -> Self {
        Settings { asks_who: false, ..self }
    }

    /// Show this certificate to whoever asks for TLS. Addresses that others reach are served with it, and whoever comes from
    /// another machine has to ask.
    #[must_use]
    pub fn tls(self, tls: Tls) -> Self {
        Settings { tls: Some(tls), ..self }
    }

    /// Other bounds.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Settings { limits, ..self }
    }

    /// What is told when the database cannot go on; one of its own unless it is given here.
    #[must_use]
    pub fn ending(self, ending: Ending) -> Self {
        Settings { ending, ..self }
    }
}

/// Serves clients until it is shut down or dropped.
pub struct Listener {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
    looking: Option<JoinHandle<()>>,
}

/// A client, as others see it.
struct Client {
    stream: TcpStream,
    since: Instant,
    /// What a statement of it is ended with, once it was let in.
    cancel: Option<([u8; 4], Cancel)>,
    /// Whether it has closed its end.
    is_gone: bool,
}

impl Client {
    fn is_stranger(&self) -> bool {
        self.cancel.is_none()
    }
}

struct Shared {
    porter: Porter,
    ending: Ending,
    budget: Arc<Budget>,
    is_over: AtomicBool,
    clients: Mutex<HashMap<u32, Client>>,
    gone: Condvar,
    watch: Watch,
}

impl Listener {
    /// Listens.
    ///
    /// # Errors
    /// [`Kind::Misuse`] where there is no user whom it could ask for, and for an address that others can reach if nobody is
    /// asked or nothing is encrypted; what the system says about the address.
    pub fn bind(database: &Database, settings: Settings) -> Result<Self> {
        let Settings { address, asks_who, tls, limits, ending } = settings;
        if asks_who && database.users().list()?.is_empty() {
            return Err(Error::new(Kind::Misuse, "there is no user who could come in")
                .advise("add one with `counterfoil user add DB NAME`, or serve a loopback address with --no-auth"));
        }
        may_listen(address, asks_who, tls.is_some())?;
        let host = |error: io::Error| Error::host("listen", address, &error).advise("choose another address");
        let socket = TcpListener::bind(address).map_err(host)?;
        let address = socket.local_addr().map_err(host)?;
        let porter = Porter { database: database.clone(), asks_who, tls, limits };
        let shared = Arc::new(Shared {
            porter,
            ending,
            budget: Budget::new(limits.large_bytes_max, limits.small_bytes),
            is_over: AtomicBool::new(false),
            clients: Mutex::new(HashMap::new()),
            gone: Condvar::new(),
            watch: Watch::new().map_err(host)?,
        });
        let mut listener = Listener { address, shared: shared.clone(), accepting: None, looking: None };
        listener.looking = Some(begin("postgres watch", &shared, Shared::end_gone).map_err(host)?);
        listener.accepting = Some(begin("postgres", &shared, move |shared| accept(&socket, shared)).map_err(host)?);
        Ok(listener)
    }

    /// The address it listens at.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What is told when the database cannot go on, and waited for by whoever serves it.
    #[must_use]
    pub fn ending(&self) -> Ending {
        self.shared.ending.clone()
    }

    /// Takes no more clients, ends what runs, and waits for those that are there to go: within some ten seconds.
    pub fn shut_down(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(looking) = self.looking.take() else { return };
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Whoever waits for the next client gets one.
        if let Some(accepting) = self.accepting.take() {
            drop(TcpStream::connect(self.address));
            let _ = accepting.join();
        }
        // Whoever looks after clients holds them but while it waits.
        drop(self.shared.clients.lock());
        self.shared.gone.notify_all();
        let _ = looking.join();
        let until = Instant::now() + self.shared.porter.limits.shutdown_wait;
        let mut clients = self.shared.clients.lock();
        for client in clients.values() {
            if let Some((_, cancel)) = &client.cancel {
                cancel.raise();
            }
            let _ = client.stream.shutdown(Shutdown::Read);
        }
        // Nothing more is heard of them, and what they are being told may still reach them: why the database cannot go on, perhaps.
        self.shared.wait_for_all(&mut clients, until.min(Instant::now() + ANSWER_WAIT));
        for client in clients.values() {
            let _ = client.stream.shutdown(Shutdown::Both);
        }
        self.shared.wait_for_all(&mut clients, until);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.end();
    }
}

/// A thread of the listener's.
fn begin(
    name: &str,
    shared: &Arc<Shared>,
    work: impl FnOnce(&Arc<Shared>) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let shared = shared.clone();
    std::thread::Builder::new().name(name.into()).spawn(move || work(&shared))
}

/// Whether an address may be served so.
fn may_listen(address: SocketAddr, asks_who: bool, encrypts: bool) -> Result<()> {
    let (what, advice) = match (socket::is_loopback(address.ip()), asks_who, encrypts) {
        (true, ..) | (false, true, true) => return Ok(()),
        (false, false, _) => (
            "without users only a loopback address is served",
            "name one such as 127.0.0.1:5432, or leave --no-auth out",
        ),
        (false, true, false) => (
            "without TLS only a loopback address is served",
            "give --tls-certificate-file and --tls-key-file, or name 127.0.0.1:5432 and reach it through ssh -L",
        ),
    };
    Err(Error::new(Kind::Misuse, what).at(address).advise(advice))
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut number = 0u32;
    for stream in listener.incoming() {
        if shared.is_over.load(Ordering::SeqCst) {
            return;
        }
        // A client that went before it was taken, or no room for one more file: the next one may do better.
        let Ok(stream) = stream else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        number = number.wrapping_add(1);
        let taken = take(shared, number, stream);
        if taken.is_err() {
            shared.forget(number);
        }
    }
}

fn take(shared: &Arc<Shared>, number: u32, stream: TcpStream) -> io::Result<()> {
    if !shared.count_stranger(number, &stream)? {
        return Ok(());
    }
    let wire = Wire::new(Socket::new(stream, shared.porter.limits)?, shared.budget.clone());
    let own = shared.clone();
    std::thread::Builder::new().name(format!("postgres {number}")).spawn(move || {
        let served = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| own.serve(number, wire)));
        own.forget(number);
        drop(served);
    })?;
    Ok(())
}

impl Shared {
    /// Waits until no client is left.
    fn wait_for_all(&self, clients: &mut MutexGuard<'_, HashMap<u32, Client>>, until: Instant) {
        while !clients.is_empty() && !self.gone.wait_until(clients, until).timed_out() {}
    }

    /// Counts somebody of whom nobody knows anything; false where there is no room. Those who say nothing do not keep others out:
    /// of too many the one who has been there longest goes. It is waited for, so that there are never more threads than that.
    fn count_stranger(&self, number: u32, stream: &TcpStream) -> io::Result<bool> {
        let until = Instant::now() + ROOM_WAIT;
        let mut clients = self.clients.lock();
        loop {
            let strangers = clients.values().filter(|client| client.is_stranger());
            if strangers.clone().count() < self.porter.limits.strangers_max {
                let stream = stream.try_clone()?;
                clients.insert(number, Client { stream, since: Instant::now(), cancel: None, is_gone: false });
                return Ok(true);
            }
            if let Some(longest) = strangers.min_by_key(|client| client.since) {
                let _ = longest.stream.shutdown(Shutdown::Both);
            }
            if self.gone.wait_until(&mut clients, until).timed_out() {
                return Ok(false);
            }
        }
    }

    fn forget(&self, number: u32) {
        if let Some(client) = self.clients.lock().remove(&number) {
            self.watch.remove(&client.stream);
        }
        self.gone.notify_all();
    }

    /// Ends what clients asked for who are gone, until the listener ends.
    fn end_gone(self: &Arc<Self>) {
        let is_over = || self.is_over.load(Ordering::SeqCst);
        let mut clients = self.clients.lock();
        while !is_over() {
            let until = Instant::now() + watch::PERIOD;
            // Each client that goes wakes this, too.
            while !is_over() && !self.gone.wait_until(&mut clients, until).timed_out() {}
            for number in self.watch.gone().unwrap_or_default() {
                clients.entry(number).and_modify(|client| client.is_gone = true);
            }
            // Each time anew: what it sent behind the statement that ran is not to run either.
            let gone = clients.values().filter(|client| client.is_gone);
            gone.filter_map(|client| client.cancel.as_ref()).for_each(|(_, cancel)| cancel.raise());
        }
    }

    fn serve<S: Stream>(&self, number: u32, mut wire: Wire<S>) {
        match self.let_in(number, &mut wire) {
            Ok(Some(guest)) => {
                Session::new(wire, guest, self.porter.limits, self.ending.clone()).serve();
            }
            Ok(None) => {}
            Err(Stopped::Refused(refusal)) => {
                if let Some(error) = refusal.end() {
                    self.ending.failed(error.clone());
                }
                if refusal.send(&mut wire).is_ok() {
                    wire.close();
                }
            }
            Err(Stopped::Ended(_)) => {}
        }
    }

    /// A connection for whoever was let in; none for one who wanted something ended.
    fn let_in<S: Stream>(&self, number: u32, wire: &mut Wire<S>) -> Result<Option<LetIn>, Stopped> {
        let (pass, settings) = match self.porter.hear(wire)? {
            Guest::User { pass, settings } => (pass, settings),
            Guest::Canceller { number, key } => {
                self.cancel(number, key);
                return Ok(None);
            }
        };
        let mut connection = self.porter.database.connect_as(pass.role())?;
        let cancel = Cancel::of(connection.interrupt());
        let key: [u8; 4] = counterfoil::random()?;
        self.count_in(number, key, cancel.clone())?;
        let notices = first_words::begin_with(&mut connection, &settings)?;
        for (name, value) in SETTINGS {
            wire.send(b'S', |out| {
                put_text(out, name);
                put_text(out, value);
            })?;
        }
        wire.send(b'K', |out| {
            out.extend_from_slice(&number.to_be_bytes());
            out.extend_from_slice(&key);
        })?;
        Ok(Some(LetIn { connection, pass, cancel, notices }))
    }

    fn count_in(&self, number: u32, key: [u8; 4], cancel: Cancel) -> Result<(), Refusal> {
        let mut clients = self.clients.lock();
        if clients.values().filter(|client| !client.is_stranger()).count() >= self.porter.limits.connections_max {
            return Err(Refusal::fatal("53300", "too many clients: try again later"));
        }
        if let Some(client) = clients.get_mut(&number) {
            let watched = self.watch.add(number, &client.stream);
            watched.map_err(|_| Refusal::fatal("53000", "there is no room to look after one more client"))?;
            client.cancel = Some((key, cancel));
        }
        Ok(())
    }

    fn cancel(&self, number: u32, key: [u8; 4]) {
        if let Some(Client { cancel: Some((own, cancel)), .. }) = self.clients.lock().get(&number) {
            // However the key differs, it takes as long.
            let differs = own.iter().zip(key).fold(0, |differs, (own, key)| differs | (own ^ key));
            if differs == 0 {
                cancel.raise();
            }
        }
    }
}
