//! Which of several clients changes a dispersed table: leases, and claims that are over or in vain.

use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use counterfoil_disperse::{Catalogue, Claim, Provider, Secret, open_cloud};
use counterfoil_sql::EngineOptions;

use crate::catalogue::SECRET;
use crate::clients::{brought_back, client, made, made_at, world};
use crate::database::{Database, ask};
use crate::dispersed::World;

/// A database that waits for little.
fn hasty() -> Database {
    Database::with_options(EngineOptions { parallelism: 2, lease_seconds: 2, ..EngineOptions::default() })
}

/// Puts a claim of a client that nobody hears of any more at a cloud.
fn put_claim(cloud: &Path, version: u64, still: u32) {
    let catalogue = Catalogue::new(Secret::new(SECRET));
    let folder: Arc<dyn Provider> =
        open_cloud(&format!("dir:{}", cloud.display()), catalogue.files_key()).expect("a cloud");
    let shown = catalogue.read(&*folder, &counterfoil_disperse::Patient).expect("what it shows");
    let claim = Claim { client: [9; 16], version: shown[0].0.version + version - 1, still };
    // Each at a place of its own: what has been seen is not read again.
    let place = [still as u8; 16];
    folder.put(&catalogue.name(), &catalogue.code_claim(shown[0].0.table, claim, place)).expect("put");
}

#[test]
fn a_claim_that_stands_still_or_is_of_before_is_over() {
    let mut world = world("n INT FOR (sum)");
    world.database.ask("INSERT INTO t VALUES (1)");
    // Of the version that is there: it is waited for as long as it says, and no longer.
    put_claim(&world.path("b"), 1, 2);
    let begun = std::time::Instant::now();
    assert_eq!(world.database.ask("INSERT INTO t VALUES (2)"), "INSERT 1");
    assert!(begun.elapsed() >= Duration::from_secs(2), "it was not waited for");
    let notices = world.database.session.take_notices().join("\n");
    assert!(notices.contains("another client has not gone on"), "{notices}");
    // It is gone then.
    assert_eq!(world.database.ask("INSERT INTO t VALUES (3)"), "INSERT 1");
    assert_eq!(world.database.session.take_notices(), Vec::<String>::new());
    // Of a version before: a cloud that shows it again keeps nobody.
    put_claim(&world.path("b"), 0, 45);
    assert_eq!(world.database.ask("INSERT INTO t VALUES (4)"), "INSERT 1");
    assert_eq!(world.database.session.take_notices(), Vec::<String>::new());
    assert_eq!(client(&world.path("c")).ask("SELECT sum(n) FROM t"), "10");
}

#[test]
fn a_transaction_that_was_overtaken_is_undone() {
    let mut world = made(World::of(hasty()), "n INT FOR (sum)");
    world.database.ask("INSERT INTO t VALUES (1)");
    let mut other = brought_back(hasty(), &world.path("a"));
    // It claims again what it counts on no longer, as long as nobody else does.
    world.database.ask("BEGIN");
    world.database.ask("INSERT INTO t VALUES (20)");
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(world.database.ask("COMMIT"), "COMMIT");
    assert_eq!(other.ask("SELECT sum(n) FROM t"), "21");
    // Whoever waits for it takes over when it has stood still.
    world.database.ask("BEGIN");
    world.database.ask("INSERT INTO t VALUES (300)");
    assert_eq!(other.ask("INSERT INTO t VALUES (4000)"), "INSERT 1");
    let notices = other.session.take_notices().join("\n");
    assert!(notices.contains("another client has not gone on"), "{notices}");
    let refused = world.database.ask("COMMIT");
    assert!(refused.contains("another client has changed it") && refused.contains("try again"), "{refused}");
    assert_eq!(world.database.ask("COMMIT"), "COMMIT");
    assert_eq!(world.database.ask("SELECT sum(n) FROM t"), "4021");
    // And a statement within it is, too.
    world.database.ask("BEGIN");
    world.database.ask("INSERT INTO t VALUES (50000)");
    assert_eq!(other.ask("INSERT INTO t VALUES (600000)"), "INSERT 1");
    let refused = world.database.ask("INSERT INTO t VALUES (50000)");
    assert!(refused.contains("another client has changed it"), "{refused}");
    assert_eq!(world.database.ask("ROLLBACK"), "ROLLBACK");
    assert_eq!(world.database.ask("INSERT INTO t VALUES (7000000)"), "INSERT 1");
    assert_eq!(other.ask("SELECT sum(n) FROM t"), "7604021");
    // Nor is the table dropped from under whoever has gone on with it.
    world.database.ask("BEGIN");
    assert_eq!(world.database.ask("DROP TABLE t"), "DROP TABLE");
    assert_eq!(other.ask("INSERT INTO t VALUES (10000000)"), "INSERT 1");
    let refused = world.database.ask("COMMIT");
    assert!(refused.contains("another client has changed it"), "{refused}");
    assert_eq!(world.database.ask("SELECT sum(n) FROM t"), "17604021");
    other.session.take_notices();
    assert_eq!(other.ask("REPAIR TABLE t EXTENDED"), "a|0|0|complete\nb|0|0|complete\nc|0|0|complete");
}

#[test]
fn claims_of_one_table_are_not_taken_for_known_while_another_is_changed() {
    let mut world = world("n INT FOR (sum)");
    let with = "WITH (engine = 'dispersed', clouds = 'a, b, c', may_fail = 1, may_collude = 1)";
    world.database.ask(&format!("CREATE TABLE u (n INT FOR (sum)) {with}"));
    world.database.ask("INSERT INTO t VALUES (1); INSERT INTO u VALUES (1)");
    let mut other = client(&world.path("a"));
    other.ask("REPAIR TABLE u");
    other.ask("BEGIN");
    assert_eq!(other.ask("UPDATE u SET n = n * 10"), "UPDATE 1");
    // All of the catalogue is read here, the other one's claim among it.
    assert_eq!(world.database.ask("INSERT INTO t VALUES (2)"), "INSERT 1");
    let mut session = world.database.connect();
    let waiting = std::thread::spawn(move || ask(&mut session, "UPDATE u SET n = n + 1", &[]));
    std::thread::sleep(Duration::from_millis(500));
    assert!(!waiting.is_finished(), "it has not waited");
    assert_eq!(other.ask("COMMIT"), "COMMIT");
    assert_eq!(waiting.join().expect("an answer"), "UPDATE 1");
    assert_eq!(world.database.ask("SELECT sum(n) FROM u"), "11");
}

#[test]
fn of_more_clouds_than_are_needed_no_two_that_fail_in_turn_keep_others_out() {
    let mut world = made_at(World::of(Database::new()), &["a", "b", "c", "d"], "n INT FOR (sum)");
    world.database.ask("INSERT INTO t VALUES (1)");
    let mut other = client(&world.path("a"));
    world.database.ask("BEGIN");
    world.set_there("c", false);
    assert_eq!(world.database.ask("INSERT INTO t VALUES (20)"), "INSERT 1");
    world.set_there("c", true);
    world.set_there("d", false);
    world.database.ask("COMMIT");
    world.set_there("d", true);
    // There was never more than one away.
    assert_eq!(other.ask("INSERT INTO t VALUES (300)"), "INSERT 1");
    assert_eq!(other.ask("SELECT sum(n) FROM t"), "321");
    assert_eq!(world.database.ask("SELECT sum(n) FROM t"), "321");
}

#[test]
fn who_lays_a_table_anew_beside_others_does_not_go_apart() {
    let mut world = world("n INT FOR (sum)");
    world.database.ask("INSERT INTO t SELECT value FROM generate_series(1, 20) AS t(value)");
    let mut other = client(&world.path("a"));
    // Leases are no queue: who lays anew all the time leaves others few moments.
    other.ask("SET lock_timeout = '120s'");
    let mut sum = 210;
    let (ready, rows) = (Arc::new(Barrier::new(2)), 30);
    let inserting = {
        let ready = ready.clone();
        std::thread::spawn(move || {
            ready.wait();
            for n in 0..rows {
                let told = other.ask(&format!("INSERT INTO t VALUES ({n})"));
                assert_eq!(told, "INSERT 1");
            }
            other
        })
    };
    ready.wait();
    while !inserting.is_finished() {
        let begun = Instant::now();
        let told = world.database.ask("REFRESH TABLE t");
        assert!(!told.contains("GIVE WAY"), "{told}");
        std::thread::sleep(begun.elapsed());
    }
    let mut other = inserting.join().expect("it inserts");
    sum += (0..rows).sum::<i32>();
    for client in [&mut world.database, &mut other] {
        client.ask("REPAIR TABLE t");
        assert_eq!(client.ask("SELECT sum(n), count(*) FROM t"), format!("{sum}|{}", 20 + rows));
    }
}

#[test]
fn claims_in_vain_take_no_lease_away() {
    let mut world = made(World::of(hasty()), "n INT FOR (sum)");
    world.database.ask("INSERT INTO t VALUES (1)");
    assert_eq!(world.database.ask("BEGIN; INSERT INTO t VALUES (20)"), "BEGIN\nINSERT 1");
    // Whoever waits for it claims in between, and takes it back.
    ["a", "b", "c"].into_iter().for_each(|cloud| put_claim(&world.path(cloud), 1, 45));
    // It is claimed anew before COMMIT.
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(world.database.ask("COMMIT"), "COMMIT");
    assert_eq!(world.database.session.take_notices(), Vec::<String>::new());
    assert_eq!(client(&world.path("b")).ask("SELECT sum(n) FROM t"), "21");
    // Whoever had taken over claims above it.
    assert_eq!(world.database.ask("BEGIN; INSERT INTO t VALUES (300)"), "BEGIN\nINSERT 1");
    put_claim(&world.path("b"), 1024, 3);
    std::thread::sleep(Duration::from_millis(1100));
    assert!(world.database.ask("COMMIT").contains("another client has changed it"), "it was not overtaken");
}
