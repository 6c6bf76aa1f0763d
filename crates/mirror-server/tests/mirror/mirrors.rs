//! Three kinds of mirrors of some tables, each of which is brought up to date, and killed while it is.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use counterfoil_mirror::site::{Destination, OwnFolder, write_to};
use counterfoil_mirror::wire::State;
use counterfoil_mirror_server::{Embedded, Listener};
use counterfoil_proof::Owner;
use counterfoil_reader::place_of;
use counterfoil_test_servers::PostgresServer;

use crate::client::attempt;
use crate::cuts::Medium;
use crate::database::{Wire, store};
use crate::world::{Dice, World, listen};

/// Something that serves tables of one owner.
pub trait Mirror {
    /// Where readers find it now.
    fn address(&self) -> SocketAddr;
    /// Takes what is new of these tables.
    fn follow(&mut self, worlds: &mut [World]);
    /// Takes a part of what is new of a table, is killed over it, and comes back. Gives a word for it.
    fn die(&mut self, world: &mut World, dice: &mut Dice) -> &'static str;
}

/// Posts what is new once, as far as anybody is there to take it; whether nothing is.
fn post(world: &mut World, address: SocketAddr) -> bool {
    let state = attempt(address, &format!("GET {}", world.path("state")), b"").filter(|state| state.status == 200);
    let Some(state) = state.map(|state| State::from_bytes(&state.body).expect("a state")) else { return false };
    match world.publication.update_for(&state, 1 << 20).expect("an update") {
        None => true,
        Some(update) => {
            let _ = attempt(address, &format!("POST {}", world.path("update")), &update);
            false
        }
    }
}

/// The first ones after a cut find connections that are dead.
fn catch_up(world: &mut World, address: SocketAddr) {
    (0..1000).find(|_| post(world, address)).expect("a mirror that has all of it in the end");
}

/// Beside an embedded store, on a disk whose power fails.
pub struct OnDisk {
    medium: Medium,
    listener: Option<Listener>,
    owner: Owner,
}

impl OnDisk {
    pub fn new(owner: Owner) -> Self {
        let mut mirror = Self { medium: Medium::default(), listener: None, owner };
        mirror.run();
        mirror
    }

    fn run(&mut self) {
        let store = Arc::new(Embedded::on(self.medium.clone()).expect("a store"));
        self.listener = Some(listen(store, self.owner, |_| ()));
    }
}

impl Mirror for OnDisk {
    fn address(&self) -> SocketAddr {
        self.listener.as_ref().expect("a server").address()
    }

    fn follow(&mut self, worlds: &mut [World]) {
        let address = self.address();
        worlds.iter_mut().for_each(|world| catch_up(world, address));
    }

    fn die(&mut self, world: &mut World, dice: &mut Dice) -> &'static str {
        self.medium.cut_after(dice.below(40) as usize);
        post(world, self.address());
        self.listener.take().into_iter().for_each(Listener::shut_down);
        self.medium = self.medium.again(dice);
        self.run();
        "deaths"
    }
}

/// Beside PostgreSQL, over a way that breaks off.
pub struct InDatabase {
    server: PostgresServer,
    wire: Wire,
    listener: Listener,
    deaths: u64,
}

impl InDatabase {
    pub fn new(owner: Owner) -> Option<Self> {
        let server = PostgresServer::start()?;
        let wire = Wire::to(server.port);
        let listener = listen(store(&server, wire.address.port()), owner, |_| ());
        Some(Self { server, wire, listener, deaths: 0 })
    }
}

impl Mirror for InDatabase {
    fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    fn follow(&mut self, worlds: &mut [World]) {
        worlds.iter_mut().for_each(|world| catch_up(world, self.listener.address()));
    }

    fn die(&mut self, world: &mut World, dice: &mut Dice) -> &'static str {
        self.deaths += 1;
        if self.deaths % 8 == 5 {
            self.server.kill();
            self.server.run();
            return "kills";
        }
        self.wire.cut_after(dice.below(6000) as i64);
        post(world, self.address());
        self.wire.mend();
        "deaths"
    }
}

/// A folder that a web server serves which knows nothing of all this; its files are sent there one by one.
pub struct InFolder {
    folder: tempfile::TempDir,
    address: SocketAddr,
    server: Child,
    owner: Owner,
}

impl InFolder {
    pub fn new(owner: Owner) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let address = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port");
        let server = Command::new("python3")
            .args(["-m", "http.server", "--bind", "127.0.0.1", &address.port().to_string(), "--directory"])
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("python3");
        let is_there = |_: &i32| {
            thread::sleep(Duration::from_millis(50));
            attempt(address, "GET /", b"").is_some()
        };
        (0..1200).find(is_there).expect("a web server that comes up");
        Self { folder, address, server, owner }
    }

    /// Sends what is other there, at most so many files; whether that was all.
    fn send(&self, world: &mut World, files_most: usize) -> bool {
        let place = place_of(&self.owner, &world.publication.definition().name);
        let folder = self.folder.path().join(place);
        let mut sent = Sent { there: OwnFolder::make(&folder).expect("a folder"), folder, left: files_most };
        let summaries = world.publication.summaries().expect("summaries");
        match write_to(world.publication.shelf(), world.publication.manifest(), &summaries, &mut sent) {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(sent.left, 0, "{error}");
                false
            }
        }
    }
}

/// The way to a folder, which breaks off after so many files. It does not wait for the disk: nothing here tests that.
struct Sent {
    there: OwnFolder,
    folder: PathBuf,
    left: usize,
}

impl Destination for Sent {
    fn has(&mut self, path: &str, bytes: &[u8]) -> io::Result<bool> {
        self.there.has(path, bytes)
    }

    fn put(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        self.left = self.left.checked_sub(1).ok_or_else(|| io::Error::other("the way broke off"))?;
        let path = self.folder.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder"))?;
        let aside = path.with_extension("new");
        std::fs::write(&aside, bytes)?;
        std::fs::rename(aside, path)
    }

    fn settle(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn read(&mut self, path: &str) -> io::Result<Option<Vec<u8>>> {
        self.there.read(path)
    }

    fn pages(&mut self) -> io::Result<Vec<String>> {
        self.there.pages()
    }

    fn remove(&mut self, path: &str) -> io::Result<()> {
        self.there.remove(path)
    }
}

impl Mirror for InFolder {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn follow(&mut self, worlds: &mut [World]) {
        assert!(worlds.iter_mut().all(|world| self.send(world, usize::MAX)));
    }

    fn die(&mut self, world: &mut World, dice: &mut Dice) -> &'static str {
        self.send(world, dice.below(8) as usize);
        "deaths"
    }
}

impl Drop for InFolder {
    fn drop(&mut self) {
        let _ = (self.server.kill(), self.server.wait());
    }
}
