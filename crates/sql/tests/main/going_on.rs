//! A client learns how a table lies that another one has altered or refreshed, and gives way where each has done so.

use std::sync::Arc;

use counterfoil_sql::{EngineOptions, lost_tables};

use crate::catalogue::{Owning, SECRET};
use crate::clients::{client, world};
use crate::database::{Database, is_full};
use crate::fickle::{Fault, Reached, fickle};

const CREATE: &str = "id INT PRIMARY KEY, n INT FOR (sum), name TEXT";

#[test]
fn whoever_has_an_older_copy_learns_what_was_altered() {
    let mut world = world(CREATE);
    world.database.ask("INSERT INTO t VALUES (1, 1, 'one'), (2, 20, 'two')");
    let mut other = client(&world.path("a"));
    other.ask("PREPARE added AS SELECT sum(n) FROM t WHERE name = $1");
    assert_eq!(other.ask("EXECUTE added ('two')"), "20");
    world.add_folder("d");
    for (at, altered) in [
        "ALTER TABLE t ALTER COLUMN n FOR (fetching)",
        "ALTER TABLE t ALTER COLUMN name FOR (equality)",
        "ALTER TABLE t SET (clouds = 'a, b, d', max_rows = 100000)",
        "ALTER TABLE t ALTER COLUMN n USE CLOUDS 'b' AND 'd' AND 'a' WITH 'encryption, dispersion'",
        "REFRESH TABLE t",
    ]
    .into_iter()
    .enumerate()
    {
        let done = world.database.ask(altered);
        assert!(["ALTER TABLE", "REFRESH TABLE"].contains(&done.as_str()), "{altered}: {done}");
        let id = at + 10;
        assert_eq!(world.database.ask(&format!("INSERT INTO t VALUES ({id}, {id}, 'two')")), "INSERT 1");
        other.session.take_notices();
        let sum: usize = 20 + (10..=id).sum::<usize>();
        assert_eq!(other.ask("EXECUTE added ('two')"), sum.to_string(), "{altered}");
        let notices = other.session.take_notices().join("\n");
        assert_eq!(
            notices.contains("another client has altered how it lies"),
            altered.starts_with("ALTER"),
            "{notices}"
        );
        let shown = |database: &mut Database| database.ask("SHOW CREATE TABLE t");
        assert_eq!(shown(&mut other), shown(&mut world.database), "{altered}");
        assert_eq!(other.ask(&format!("UPDATE t SET n = n + 0 WHERE id = {id}")), "UPDATE 1", "{altered}");
        assert_eq!(world.database.ask("SELECT sum(n) FROM t WHERE name = 'two'"), sum.to_string(), "{altered}");
    }
    assert!(other.ask("SHOW CLOUDS").lines().any(|line| line.starts_with("d|dir:")));
    // Nothing of how it lay is left.
    assert_eq!(std::fs::read_dir(world.path("d")).expect("a cloud").count(), 2, "rows and a catalogue");
}

#[test]
fn what_is_another_table_by_now_is_not_followed() {
    let mut world = world(CREATE);
    world.database.ask("INSERT INTO t VALUES (1, 1, 'one')");
    let mut other = client(&world.path("a"));
    assert_eq!(world.database.ask("ALTER TABLE t RENAME COLUMN n TO amount"), "ALTER TABLE");
    world.database.ask("ALTER TABLE t ALTER COLUMN amount FOR (fetching)");
    for sql in ["SELECT n FROM t", "INSERT INTO t VALUES (2, 2, 'two')", "REPAIR TABLE t GIVE WAY"] {
        let told = other.ask(sql);
        assert!(
            told.contains("its columns or rules are others by now") && told.contains("restore --from"),
            "{sql}: {told}"
        );
    }
}

/// Somebody with clouds in memory, who waits for little.
fn hasty(clouds: &Arc<Reached>) -> Database {
    let options = EngineOptions { parallelism: 2, lease_seconds: 1, ..EngineOptions::default() };
    let database = Database::with_options(options);
    database.engine.reach_clouds_with(clouds.clone());
    database.engine.belong_to(Arc::new(Owning));
    database
}

/// Two clients of a table with three rows.
fn owner_and_other(clouds: &Arc<Reached>) -> [Database; 2] {
    let mut owner = hasty(clouds);
    owner.session.note_split(&SECRET).expect("noted");
    (0..3).for_each(|cloud| _ = owner.ask(&format!("CREATE CLOUD f{cloud} OPTIONS (url 'fickle:{cloud}')")));
    let with = "WITH (engine = 'dispersed', clouds = 'f0, f1, f2', may_fail = 1, may_collude = 1)";
    assert_eq!(owner.ask(&format!("CREATE TABLE t ({CREATE}) {with}")), "CREATE TABLE");
    owner.ask("INSERT INTO t VALUES (1, 1, 'one'), (2, 20, 'two'), (3, 300, 'three')");
    let mut other = hasty(clouds);
    let lost = lost_tables(&other.engine, &SECRET, ("fickle:0", None), &mut |note| panic!("{note}"));
    other.session.bring_back(lost.expect("tables"), &SECRET).expect("brought back");
    other.ask("REPAIR TABLE t");
    [owner, other]
}

/// A REFRESH of which clouds hear nothing behind so many calls, and so many of another client: whether it came to its end, and whether
/// somebody had to give way.
fn cut_off(after: u64, times: usize) -> [bool; 2] {
    let id = format!("{after} calls, then {times}");
    let (_, clouds) = fickle();
    let [mut owner, mut other] = owner_and_other(&clouds);
    clouds.0.iter().for_each(|cloud| cloud.fail(Fault::Unreachable, after));
    assert_eq!(owner.ask("REFRESH TABLE t"), "REFRESH TABLE", "{id}");
    let has_ended = !clouds.0[..3].iter().any(|cloud| cloud.has_failed());
    clouds.0.iter().for_each(|cloud| cloud.heal());
    (0..times).for_each(|_| assert_eq!(other.ask("REFRESH TABLE t"), "REFRESH TABLE", "{id}"));
    assert_eq!(other.ask("UPDATE t SET n = n + 4000 WHERE id = 1"), "UPDATE 1", "{id}");

    let told = owner.ask("SELECT sum(n) FROM t");
    assert!(told == "4321" || told.contains("REPAIR TABLE t GIVE WAY"), "{id}: {told}");
    let repaired = owner.ask("REPAIR TABLE t GIVE WAY");
    assert_eq!(repaired, "f0|0|0|complete\nf1|0|0|complete\nf2|0|0|complete", "{id}");
    for client in [&mut owner, &mut other] {
        let rows = client.ask("SELECT id, n, name FROM t ORDER BY id");
        assert_eq!(rows, "1|4001|one\n2|20|two\n3|300|three", "{id}");
    }
    assert_eq!(owner.ask("INSERT INTO t VALUES (4, 5, 'four')"), "INSERT 1", "{id}");
    assert_eq!(other.ask("SELECT sum(n) FROM t"), "4326", "{id}");
    for cloud in &clouds.0[..3] {
        assert_eq!(cloud.tables.lock().len(), 2, "{id}: rows and a catalogue");
    }
    [has_ended, told != "4321"]
}

/// After every call that a REFRESH makes its clouds hear nothing more of it, as if its process were killed; another client goes on, and lays
/// the table anew once, or twice: then nothing that it has is of the number of what was cut off.
#[test]
fn who_was_cut_off_in_a_refresh_gives_way_to_another_clients() {
    for times in [1, 2] {
        let (mut has_given_way, mut has_ended, mut after) = (0, false, 0);
        while !has_ended {
            let [ended, gave_way] = cut_off(after, times);
            has_ended = ended;
            has_given_way += usize::from(gave_way);
            after += if is_full() { 1 } else { 5 };
        }
        assert!(has_given_way > 2 && after > 20, "{has_given_way} of {after}");
    }
}
