//! Three kinds of mirrors of some tables, each of which is brought up to date, and killed while it is.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use counterfoil_mirror::site::write;
use counterfoil_mirror::wire::State;
use counterfoil_mirror_server::{Embedded, Listener};
use counterfoil_proof::Owner;
use counterfoil_reader::place_of;

use crate::client::attempt;
use crate::cuts::Medium;
use crate::database::{Server, Wire};
use crate::world::{Dice, World, listen};

/// Something that serves tables of one owner.
pub trait Mirror {
    /// Where readers find it now.
    fn address(&self) -> SocketAddr;
    /// Takes what is new of these tables.
    fn follow(&mut self, worlds: &mut [World]);
    /// Takes a part of what is new of a table, is killed over it, and comes back.
    fn die(&mut self, world: &mut World, dice: &mut Dice);
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

    fn die(&mut self, world: &mut World, dice: &mut Dice) {
        self.medium.cut_after(dice.below(40) as usize);
        post(world, self.address());
        self.listener.take().into_iter().for_each(Listener::shut_down);
        self.medium = self.medium.again(dice);
        self.run();
    }
}

/// Beside PostgreSQL, over a way that breaks off.
pub struct InDatabase {
    server: Server,
    wire: Wire,
    listener: Listener,
}

impl InDatabase {
    pub fn new(owner: Owner) -> Option<Self> {
        let server = Server::start()?;
        let wire = Wire::to(server.port);
        let listener = listen(server.store(wire.address.port()), owner, |_| ());
        Some(Self { server, wire, listener })
    }
}

impl Mirror for InDatabase {
    fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    fn follow(&mut self, worlds: &mut [World]) {
        worlds.iter_mut().for_each(|world| catch_up(world, self.listener.address()));
    }

    fn die(&mut self, world: &mut World, dice: &mut Dice) {
        if dice.below(40) == 0 {
            self.server.kill();
            self.server.run();
        } else {
            self.wire.cut_after(dice.below(6000) as i64);
            post(world, self.address());
            self.wire.mend();
        }
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
        let served = folder.path().join("served");
        std::fs::create_dir(&served).expect("a folder");
        let server = Command::new("python3")
            .args(["-m", "http.server", "--bind", "127.0.0.1", &address.port().to_string(), "--directory"])
            .arg(&served)
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

    fn places(&self, world: &World) -> [PathBuf; 2] {
        let place = place_of(&self.owner, &world.publication.definition().name);
        ["written", "served"].map(|which| self.folder.path().join(which).join(&place))
    }

    /// Writes the site anew and sends what is other there, at most so many files.
    fn send(&self, world: &mut World, files_most: usize) {
        let [written, served] = self.places(world);
        let summaries = world.publication.summaries().expect("summaries");
        write(world.publication.shelf(), world.publication.manifest(), &summaries, &written).expect("a site");
        let mut files = files(&written, Path::new(""));
        // As they are written: pages and summaries, the manifest, and the head last of all.
        let rank = |path: &PathBuf| ["about.txt", "manifest", "head"].iter().position(|last| path == Path::new(last));
        files.sort_by_key(|path| rank(path));
        let is_other =
            |path: &&PathBuf| std::fs::read(served.join(path)).ok() != std::fs::read(written.join(path)).ok();
        let changed: Vec<&PathBuf> = files.iter().filter(is_other).collect();
        for path in changed.iter().take(files_most) {
            let (from, to) = (written.join(path), served.join(path));
            std::fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
            std::fs::copy(from, to.with_extension("new")).expect("a copy");
            std::fs::rename(to.with_extension("new"), to).expect("a file");
        }
        if changed.len() <= files_most {
            let gone = self::files(&served, Path::new("")).into_iter().filter(|path| !written.join(path).exists());
            gone.for_each(|path| std::fs::remove_file(served.join(path)).expect("a file"));
        }
    }
}

fn files(folder: &Path, below: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder.join(below)) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.map(|entry| entry.expect("an entry")) {
        let path = below.join(entry.file_name());
        match entry.path().is_dir() {
            true => found.extend(files(folder, &path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

impl Mirror for InFolder {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn follow(&mut self, worlds: &mut [World]) {
        worlds.iter_mut().for_each(|world| self.send(world, usize::MAX));
    }

    fn die(&mut self, world: &mut World, dice: &mut Dice) {
        self.send(world, dice.below(8) as usize);
    }
}

impl Drop for InFolder {
    fn drop(&mut self) {
        let _ = (self.server.kill(), self.server.wait());
    }
}
