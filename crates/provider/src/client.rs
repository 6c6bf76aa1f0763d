//! The owner's side of a provider.

use std::io::{self, BufRead as _};
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
use crate::wire::{self, FRAME_BYTES_MAX, Reply, Request, TOKEN_BYTES_MAX, VERSION};

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
        if self.token.len() > TOKEN_BYTES_MAX {
            let text =
                "the secret_file has more in it than a token: `counterfoil provider token` prints one, in one line";
            return Err(Failure::Refused(text.into()));
        }
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
            let is_there = wire::say(&mut connection, request).is_ok() && self.is_answered(&mut connection)?;
            if is_there {
                return self.end(connection, hear);
            }
        }
        let mut connection = self.connect()?;
        connection.sock.wait(self.patience);
        wire::say(&mut connection, request).map_err(|failure| self.told(failure))?;
        self.end(connection, hear)
    }

    /// Whether the other side is still there to answer. One that says nothing is not asked again by another connection.
    fn is_answered(&self, connection: &mut Connection) -> Result<bool, Failure> {
        connection.sock.wait(self.patience);
        match connection.fill_buf() {
            Ok(bytes) => Ok(!bytes.is_empty()),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(self.unreachable(error)),
            Err(_) => Ok(false),
        }
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

/// Owners and providers of different versions: what each says is to be done, and nothing is taken for an answer.
#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use counterfoil_disperse::fragments::{Name, Question};
    use counterfoil_disperse::{Failure, Provider as _};
    use rustls::{ServerConnection, StreamOwned};

    use super::{Connection, Remote};
    use crate::identity::Identity;
    use crate::server::{Limits, Options, serve};
    use crate::stream::Timed;
    use crate::tokens::Tokens;
    use crate::wire::{self, FRAME_BYTES_MAX, HELLO_BYTES_MAX, Reply, Request, VERSION};

    const PATIENCE: Duration = Duration::from_secs(20);

    /// A connection on which nothing was said yet.
    fn connected(url: &str) -> Connection {
        let remote = Remote::new(url, None).expect("an address");
        let address = remote.address.resolve().expect("an address")[0];
        let stream = Timed::new(TcpStream::connect(address).expect("in"), PATIENCE).expect("a stream");
        let name = "provider.invalid".try_into().expect("a name");
        StreamOwned::new(rustls::ClientConnection::new(remote.config, name).expect("a session"), stream)
    }

    /// What a provider says to a first message, framed.
    fn heard(url: &str, first: &[u8]) -> Failure {
        let mut connection = connected(url);
        connection.write_all(&[&(first.len() as u32).to_be_bytes(), first].concat()).expect("said");
        match wire::hear(&mut connection, FRAME_BYTES_MAX) {
            Ok(Some(Reply::Failed { kind, text })) => wire::failure(kind, text),
            Ok(Some(_)) => panic!("a stranger came in"),
            Ok(None) => panic!("it ended without a word"),
            Err(failure) => failure,
        }
    }

    #[test]
    fn a_provider_tells_owners_of_other_versions_what_to_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let token = Tokens::in_folder(folder.path()).add("ada", PATIENCE * 60).expect("a token").reveal().to_owned();
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let options = Options { folder: folder.path().to_owned(), listen, limits: Limits::default(), note: |_| () };
        let told = serve(options, |url| {
            let hello = |version: u16| {
                let hello = Request::Hello { version, token: token.clone() };
                postcard::to_allocvec(&hello).expect("memory")
            };
            let mut told: Vec<Failure> = [0, VERSION + 1, u16::MAX].map(|version| heard(url, &hello(version))).into();
            // One that says more than this one does, one that says it otherwise, one that does not say hello, and none of them.
            let more = [hello(VERSION + 1), b"more".to_vec()].concat();
            let drop = postcard::to_allocvec(&Request::Drop { table: name() }).expect("memory");
            told.extend([more, vec![9; 40], drop, vec![], vec![0; HELLO_BYTES_MAX]].map(|first| heard(url, &first)));
            told
        });
        for failure in told.expect("a server") {
            let Failure::Refused(text) = &failure else { panic!("{failure}") };
            assert!(text.contains(&format!("speaks version {VERSION}")) && text.contains("newer program"), "{text}");
        }
    }

    fn name() -> Name {
        Name::parse("t0000000000000001").expect("a name")
    }

    /// A provider that falls silent is waited for once, and on the connection that there is: not by another one as well.
    #[test]
    fn one_that_falls_silent_is_waited_for_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let identity = Identity::in_folder(folder.path()).expect("a key");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("provider://{}?pin={}", listener.local_addr().expect("an address"), identity.pin());
        let patience = Duration::from_millis(600);
        let cloud = Remote::new(&url, Some("x")).expect("an address").with_patience(patience);
        let (accepts, accepted) = channel();
        std::thread::spawn(move || {
            // The first one has two answers, for its greeting and for what it is told first.
            let mut answers = 2;
            let mut held = Vec::new();
            while let Ok((stream, _)) = listener.accept() {
                let _ = accepts.send(());
                let session = ServerConnection::new(identity.server().expect("a key")).expect("a session");
                let mut connection = StreamOwned::new(session, Timed::new(stream, PATIENCE).expect("a stream"));
                for _ in 0..std::mem::take(&mut answers) {
                    let _ = wire::hear::<Request>(&mut connection, FRAME_BYTES_MAX).expect("a message");
                    wire::say(&mut connection, &Reply::Done).expect("said");
                }
                held.push(connection);
            }
        });
        cloud.drop_table(&name()).expect("done");
        assert_eq!(accepted.try_iter().count(), 1);
        assert!(matches!(cloud.drop_table(&name()), Err(Failure::Unreachable(_))));
        assert_eq!(accepted.try_iter().count(), 0, "it was waited for on another connection, too");
    }

    /// A provider that hears something, says these bytes for it, and so on.
    fn asked_of(says: Vec<Vec<u8>>) -> Failure {
        let folder = tempfile::tempdir().expect("a folder");
        let identity = Identity::in_folder(folder.path()).expect("a key");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("provider://{}?pin={}", listener.local_addr().expect("an address"), identity.pin());
        let (done, is_done) = channel::<()>();
        let talking = std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("somebody");
            let session = ServerConnection::new(identity.server().expect("a key")).expect("a session");
            let mut connection = StreamOwned::new(session, Timed::new(stream, PATIENCE).expect("a stream"));
            for says in says {
                let _ = wire::hear::<Request>(&mut connection, FRAME_BYTES_MAX).expect("a message");
                let framed = [&(says.len() as u32).to_be_bytes(), &says[..]].concat();
                connection.write_all(&framed).and_then(|()| connection.flush()).expect("said");
            }
            let _ = is_done.recv();
        });
        let cloud = Remote::new(&url, Some("x")).expect("an address").with_patience(PATIENCE);
        let asked = cloud.ask(&name(), &Question::default(), &mut |_| panic!("an answer in other words"));
        drop((done, cloud));
        talking.join().expect("ended");
        asked.expect_err("no answer")
    }

    #[test]
    fn an_owner_takes_nothing_for_an_answer_that_another_version_says() {
        let message = |reply: &Reply| postcard::to_allocvec(reply).expect("memory");
        let refused = Reply::of(&Failure::Refused("this provider speaks version 2, and you 1".into()));
        let told = asked_of(vec![message(&refused)]);
        assert!(matches!(&told, Failure::Refused(text) if text.contains("version 2")), "{told}");
        // In words of another version: at once, and where an answer should be.
        for says in [
            vec![vec![7, 7, 7]],
            vec![[message(&Reply::Done), b"more".to_vec()].concat()],
            vec![message(&Reply::Done), vec![7, 7, 7]],
            vec![message(&Reply::Done), vec![1, 200]],
        ] {
            let told = asked_of(says);
            assert!(matches!(&told, Failure::Malformed(text) if text.contains("newer program")), "{told}");
        }
    }
}
