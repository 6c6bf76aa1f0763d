//! A mirror beside PostgreSQL: a private server of this test's own, cut off at any byte, and killed.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ::postgres::{Client, NoTls};
use counterfoil_mirror_server::{Postgres, Store, TableName};
use counterfoil_test_servers::{Certificates, PostgresServer, certificates};

use crate::honest::follows;
use crate::world::{Dice, Unread, World, listen, row};

/// A store in it, by way of a port that leads there.
pub fn store(server: &PostgresServer, port: u16) -> Arc<dyn Store> {
    Arc::new(Postgres::open(&server.url(port)).expect("a store"))
}

#[test]
fn a_mirror_beside_postgresql_follows_its_owner() {
    let Some(server) = PostgresServer::start() else { return };
    follows(store(&server, server.port));
}

#[test]
fn a_mirror_beside_postgresql_reaches_it_encrypted_and_by_its_certificate() {
    let made = certificates(&["127.0.0.1"]);
    let Some(server) = PostgresServer::start_with_tls(&made.certificate, &made.key) else { return };
    let (url, file) = (server.url(server.port), |made: &Certificates| made.authority.display().to_string());
    let vouched = |made: &Certificates| format!("{url}?sslmode=require&sslrootcert={}", file(made));
    follows(Arc::new(Postgres::open(&vouched(&made)).expect("a store")));
    // It takes no others; a stranger does not vouch for it, nor does this machine.
    let told = |url: &str| Postgres::open(url).err().expect("no store").to_string();
    assert!(told(&url).contains("pg_hba.conf"), "{}", told(&url));
    for url in [vouched(&certificates(&["127.0.0.1"])), format!("{url}?sslmode=require")] {
        assert!(told(&url).contains("no encrypted connection to PostgreSQL"), "{}", told(&url));
    }
    let named = told("postgres://me:hidden@127.0.0.1/x?sslmode=perhaps");
    assert!(named.contains("sslmode is require") && !named.contains("hidden"), "{named}");
}

#[test]
fn an_update_that_another_one_overtakes_is_done_behind_it() {
    let Some(server) = PostgresServer::start() else { return };
    let mut dice = Dice(11);
    let mut world = World::new();
    world.insert((0..30).map(|day| row("A", day, day)).collect());
    world.close();
    let listener = listen(store(&server, server.port), world.owner, |_| ());
    let address = listener.address();
    world.push(address, 1 << 20);
    // Before it is decided what the update does, and behind that.
    for touched in ["UPDATE counterfoil_kept SET kept = kept", "UPDATE counterfoil_names SET tab = tab"] {
        world.change(&mut dice);
        world.close();
        let update = world.publication.update_for(&world.state(address), 1 << 20).expect("an update").expect("news");
        // As a mirror does that writes to the same database.
        let url = server.url(server.port);
        let (locked, is_locked) = std::sync::mpsc::channel();
        let beside = thread::spawn(move || {
            let mut client = Client::connect(&url, NoTls).expect("a connection");
            let mut transaction = client.transaction().expect("a transaction");
            transaction.execute(touched, &[]).expect("updated");
            locked.send(()).expect("somebody waits");
            let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
            while transaction.query_one(waits, &[]).expect("who waits").get::<_, i64>(0) == 0 {
                // What a transaction sees of it is what it saw first.
                transaction.batch_execute("SELECT pg_stat_clear_snapshot()").expect("seen anew");
                thread::sleep(Duration::from_millis(5));
            }
            transaction.commit().expect("committed");
        });
        is_locked.recv().expect("it is locked");
        assert_eq!(world.post(address, "update", &update).status, 200);
        beside.join().expect("a client");
        world.holds(address);
    }
}

#[test]
fn a_mirror_beside_postgresql_shuts_down_with_all_its_connections() {
    let Some(server) = PostgresServer::start() else { return };
    let store = store(&server, server.port);
    let mut world = World::new();
    world.insert(vec![row("A", 1, 5)]);
    world.close();
    let listener = listen(store.clone(), world.owner, |_| ());
    world.push(listener.address(), 1 << 20);
    // Readers who ask at the same time have a connection each, and all of these wait for the next ones.
    let name = TableName { owner: *world.owner.bytes(), name: "prices".into() };
    let readings: Vec<_> = (0..3).map(|_| store.read(&name).expect("a store").expect("a table")).collect();
    drop(readings);
    // Nobody but the mirror has them, as in a program that serves.
    drop(store);
    listener.shut_down();
}

/// A way to the database that ends after so many bytes.
pub struct Wire {
    pub address: SocketAddr,
    left: Arc<AtomicI64>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Wire {
    pub fn to(port: u16) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("an address");
        let (left, open) = (Arc::new(AtomicI64::new(i64::MAX)), Arc::new(Mutex::new(Vec::new())));
        let wire = Self { address, left: left.clone(), open: open.clone() };
        thread::spawn(move || {
            for client in socket.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                let copies = [client.try_clone(), server.try_clone()].map(|stream| stream.expect("a stream"));
                open.lock().expect("streams").extend(copies);
                let [to, from] = [client.try_clone(), server.try_clone()].map(|stream| stream.expect("a stream"));
                let left = left.clone();
                thread::spawn(move || pass(client, server, Some(&left)));
                thread::spawn(move || pass(from, to, None));
            }
        });
        wire
    }

    pub fn cut_after(&self, bytes: i64) {
        self.left.store(bytes, Ordering::SeqCst);
    }

    /// Both ways are cut, and then stand open again.
    pub fn mend(&self) {
        self.open.lock().expect("streams").drain(..).for_each(|stream| drop(stream.shutdown(std::net::Shutdown::Both)));
        self.cut_after(i64::MAX);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, left: Option<&AtomicI64>) {
    // What is small would wait for what was sent before it to be acknowledged, 40 ms at each question.
    let _ = to.set_nodelay(true);
    let mut buffer = [0; 4096];
    while let Ok(bytes @ 1..) = from.read(&mut buffer) {
        let before = left.map_or(i64::MAX, |left| left.fetch_sub(bytes as i64, Ordering::SeqCst));
        let bytes = bytes.min(before.max(0) as usize);
        if to.write_all(&buffer[..bytes]).is_err() || before <= bytes as i64 && left.is_some() {
            break;
        }
    }
    let _ = (from.shutdown(std::net::Shutdown::Both), to.shutdown(std::net::Shutdown::Both));
}

#[test]
fn cut_off_at_any_byte_it_has_all_of_an_update_or_nothing() {
    let Some(server) = PostgresServer::start() else { return };
    let full = std::env::var("COUNTERFOIL_PROOF").is_ok_and(|size| size == "full");
    let wire = Wire::to(server.port);
    let mut dice = Dice(9);
    let mut world = World::new();
    world.insert((0..30).map(|day| row("A", day, day)).collect());
    world.close();
    let listener = listen(store(&server, wire.address.port()), world.owner, |_| ());
    let address = listener.address();
    let (mut left, mut cuts) = (1, 0);
    loop {
        world.push(address, 1 << 20);
        world.holds(address);
        world.change(&mut dice);
        world.close();
        let before = world.state(address);
        let update = world.publication.update_for(&before, 1 << 20).expect("an update").expect("news");
        wire.cut_after(left);
        let status = world.post(address, "update", &update).status;
        wire.mend();
        // The first ones find connections that are dead, and say so.
        let after = (0..50).find_map(|_| match world.get(address, "state").status {
            200 => Some(world.state(address)),
            _ => None,
        });
        let is_done = after.expect("a mirror that comes back") != before;
        assert!(is_done || status != 200, "an update that was acknowledged is gone, after {left} bytes");
        match world.ask(address, &world.all(0)) {
            Ok(verified) => assert_eq!(verified.as_of == world.now, is_done),
            Err(Unread::Status) => (),
            Err(Unread::Refused(refusal)) => panic!("an honest mirror after {left} bytes: {refusal}"),
        }
        cuts += 1;
        if status == 200 {
            break;
        }
        left += if full { 16 } else { 400 };
    }
    println!("{cuts} cuts, {left} bytes");
    assert!(cuts > 5);
}

#[test]
fn a_database_that_is_killed_is_an_error_and_then_goes_on() {
    let Some(mut server) = PostgresServer::start() else { return };
    let mut dice = Dice(10);
    let mut world = World::new();
    world.insert((0..30).map(|day| row("A", day, day)).collect());
    world.close();
    let listener = listen(store(&server, server.port), world.owner, |limits| limits.answers_at_once_max = 2);
    let address = listener.address();
    world.push(address, 500);
    for _ in 0..2 {
        world.holds(address);
        server.kill();
        for what in ["state", "manifest", "head"] {
            assert_eq!(world.get(address, what).status, 500);
        }
        server.run();
        world.change(&mut dice);
        world.close();
        world.push(address, 500);
    }
    world.holds(address);
}
