//! Tables that move: ALTER TABLE ... USE CLOUDS, FOR, SET (clouds = ...), and REFRESH TABLE.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::database::{Database, ask, is_full};
use crate::dispersed::{FLOATS, ROWS, World, ask_all, both, files, same};
use crate::fickle::fickle;

fn filled() -> World {
    let mut world = both();
    ["d", "e"].into_iter().for_each(|cloud| world.add_folder(cloud));
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    same(&mut world, &format!("INSERT INTO TABLE (id, weight, real) VALUES {FLOATS}"));
    world
}

#[test]
fn a_table_answers_alike_wherever_it_lies() {
    let mut world = filled();
    for (at, (sql, emptied)) in [
        ("ALTER TABLE people SET (clouds = 'b, c, d')", "a"),
        ("ALTER TABLE people ALTER COLUMN salary USE CLOUDS 'cloud://a' AND 'd' AND 'e'", ""),
        ("ALTER TABLE people ALTER COLUMN name FOR (fetching)", ""),
        ("ALTER TABLE people ALTER big FOR (sum, equality)", ""),
        ("REFRESH TABLE people", ""),
        ("ALTER TABLE people ALTER COLUMN note USE CLOUDS 'b' AND 'c' AND 'd' WITH 'encryption, dispersion'", ""),
        ("ALTER TABLE people SET (coding = 'encryption, replication')", ""),
        ("ALTER TABLE people ALTER COLUMN note USE CLOUDS 'auto' WITH 'encryption'", ""),
        ("ALTER TABLE people SET (may_collude = 2, may_fail = 0)", ""),
        ("ALTER TABLE people ALTER COLUMN salary USE CLOUDS 'auto'", "a"),
        ("ALTER TABLE people SET (clouds = 'a', may_collude = 0)", "b"),
        ("ALTER TABLE people SET (clouds = 'a, b, c, d, e', may_fail = 1, may_collude = 1)", ""),
    ]
    .into_iter()
    .enumerate()
    {
        let before: Vec<_> = ["a", "b", "c", "d", "e"].iter().flat_map(|cloud| files(&world.path(cloud))).collect();
        let said = if sql.starts_with("REFRESH") { "REFRESH TABLE" } else { "ALTER TABLE" };
        assert_eq!(world.database.ask(sql), said, "{sql}");
        ask_all(&mut world);
        assert!(
            emptied.is_empty() || files(&world.path(emptied)).is_empty(),
            "{sql}: cloud {emptied} has let go of it"
        );
        assert!(before.iter().all(|file| !file.exists()), "{sql}: nothing of the layout before is left");
        same(&mut world, &format!("INSERT INTO TABLE (id, name, salary) VALUES ({}, 'Zoe', 1.25)", 100 + at));
        same(&mut world, &format!("UPDATE TABLE SET small = {at} WHERE id = {}", 99 + at));
        let created = world.database.ask("SHOW CREATE TABLE people");
        assert_eq!(created.contains("USE CLOUDS 'a' AND 'd' AND 'e'"), (1..9).contains(&at), "{created}");
        ask_all(&mut world);
    }
    same_again(&mut world);
    // Where one may fail, one may.
    for cloud in ["a", "b", "c", "d", "e"] {
        world.set_there(cloud, false);
        ask_all(&mut world);
        world.set_there(cloud, true);
    }
    let repaired = world.database.ask("REPAIR TABLE people");
    assert_eq!(repaired, ["a", "b", "c", "d", "e"].map(|cloud| format!("{cloud}|0|0|complete")).join("\n"));
}

/// What SHOW CREATE TABLE says makes the table as it is.
#[track_caller]
fn same_again(world: &mut World) {
    for sql in [
        "ALTER TABLE people ALTER COLUMN salary USE CLOUDS 'a' AND 'd' AND 'e'",
        "ALTER TABLE people ALTER COLUMN note USE CLOUDS 'b' AND 'c' WITH 'encryption, dispersion'",
        "ALTER TABLE people ALTER COLUMN name USE CLOUDS 'auto' WITH 'encryption, replication'",
    ] {
        assert_eq!(world.database.ask(sql), "ALTER TABLE");
    }
    let mut created = || world.database.ask("SHOW CREATE TABLE people").split_once('|').expect("a name").1.to_owned();
    let said = created();
    assert!(said.contains("USE CLOUDS 'b' AND 'c' WITH 'encryption, dispersion'"), "{said}");
    let copy = said.replace("people", "folk");
    assert_eq!(world.database.ask(&copy), "CREATE TABLE");
    let again = world.database.ask("SHOW CREATE TABLE folk").replacen("folk|", "", 1);
    assert_eq!(again, copy);
    assert_eq!(world.database.ask("DROP TABLE folk"), "DROP TABLE");
}

#[test]
fn a_move_waits_for_a_cloud_and_goes_on() {
    let mut world = filled();
    world.set_there("d", false);
    assert_eq!(world.database.ask("ALTER TABLE people SET (clouds = 'b, c, d')"), "ALTER TABLE");
    let notices = world.database.session.take_notices().join("\n");
    assert!(notices.contains("rows lie as before") && notices.contains("backups from before now"), "{notices}");
    ask_all(&mut world);
    let shown = world.database.ask("SHOW CLOUDS");
    assert!(shown.lines().any(|line| line.starts_with("d|") && line.ends_with("|9|0")), "{shown}");
    // Where its rows still lie it is a table, too.
    assert!(shown.lines().any(|line| line.starts_with("a|") && line.ends_with("|1|0|0|0|0")), "{shown}");
    // The world goes on: what comes waits for the clouds where it is to lie, what goes is gone.
    same(&mut world, "INSERT INTO TABLE (id, name, salary) VALUES (200, 'Zoe', 5)");
    same(&mut world, "DELETE FROM TABLE WHERE id IN (1, 20)");
    same(&mut world, "UPDATE TABLE SET salary = 7 WHERE id IN (2, 200)");
    ask_all(&mut world);
    assert!(world.database.ask("DROP CLOUD a").contains("rows of table people still lie at cloud a"));
    world.set_there("c", false);
    ask_all(&mut world);
    for cloud in ["c", "d"] {
        world.set_there(cloud, true);
    }
    let repaired = world.database.ask("REPAIR TABLE people");
    assert_eq!(repaired, ["b", "c", "d"].map(|cloud| format!("{cloud}|0|0|complete")).join("\n"));
    ask_all(&mut world);
    assert!(files(&world.path("a")).is_empty());
    assert_eq!(world.database.ask("DROP CLOUD a"), "DROP CLOUD");
    for cloud in ["b", "c", "d"] {
        world.set_there(cloud, false);
        ask_all(&mut world);
        world.set_there(cloud, true);
    }
}

#[test]
fn a_cloud_that_is_gone_for_good_is_left_behind() {
    let mut world = filled();
    world.set_there("a", false);
    assert_eq!(world.database.ask("ALTER TABLE people SET (clouds = 'b, c, d')"), "ALTER TABLE");
    let notices = world.database.session.take_notices().join("\n");
    ask_all(&mut world);
    assert!(notices.contains("cloud a keeps what has moved away"), "{notices}");
    assert_eq!(world.database.ask("DROP CLOUD a"), "DROP CLOUD");
    let notices = world.database.session.take_notices().join("\n");
    assert!(notices.contains("cloud a may keep tables that have moved away (1)"), "{notices}");
    same(&mut world, "INSERT INTO TABLE (id, name) VALUES (200, 'Zoe')");
    world.database.session.take_notices();
    assert_eq!(world.database.ask("REPAIR TABLE people").lines().count(), 3);
    ask_all(&mut world);
    assert_eq!(world.database.session.take_notices(), Vec::<String>::new());
}

#[test]
fn who_reads_meanwhile_reads_what_was_there() {
    let mut world = filled();
    let mut other = world.database.connect();
    let begun = ask(&mut other, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM people", &[]);
    assert_eq!(begun, "BEGIN\n9");
    assert_eq!(world.database.ask("REFRESH TABLE people"), "REFRESH TABLE");
    same(&mut world, "INSERT INTO TABLE (id, name, salary, small) VALUES (200, 'Zoe', 5, 5)");
    for sql in [
        "SELECT * FROM TABLE WHERE id <> 200 ORDER BY id",
        "SELECT sum(salary), count(*) FROM TABLE WHERE id <> 200",
        "SELECT id FROM TABLE WHERE name = 'Ada' AND id <> 200",
    ] {
        let before = ask(&mut other, &sql.replace("TABLE", "people").replace("id <> 200", "id >= 0"), &[]);
        assert_eq!(before, world.database.ask(&sql.replace("TABLE", "plain")), "{sql}");
    }
    let sums = ask(&mut other, "SELECT sum(small), count(*) FROM people", &[]);
    assert_eq!(sums, world.database.ask("SELECT sum(small), count(*) FROM plain WHERE id <> 200"));
}

#[test]
fn what_cannot_be_is_told() {
    let mut world = filled();
    for (sql, part) in [
        ("ALTER TABLE people ALTER COLUMN nobody FOR (sum)", "no column nobody"),
        ("ALTER TABLE people ALTER COLUMN note FOR (sum)", "not added up"),
        ("ALTER TABLE people ALTER COLUMN note FOR (speed)", "fetching alone"),
        ("ALTER TABLE people ALTER COLUMN note USE CLOUDS 'x' AND 'y'", "no cloud x: CREATE CLOUD x"),
        ("ALTER TABLE people ALTER COLUMN salary USE CLOUDS 'a' AND 'b'", "the sum of salary"),
        ("ALTER TABLE people ALTER COLUMN note USE CLOUDS 'a'", "column note with may_fail = 1 takes 2"),
        ("ALTER TABLE people SET (clouds = 'a')", "takes 2"),
        ("ALTER TABLE people ALTER COLUMN note USE CLOUDS 'a' AND 'b' WITH 'dispersion'", "say 'encryption'"),
        ("ALTER TABLE people SET (coding = 'encryption, caesar')", "the table WITH 'caesar'"),
        ("ALTER TABLE people SET (key_backup = 'none')", "clouds, coding, may_fail, may_collude, max_rows"),
        ("ALTER TABLE plain ALTER COLUMN note USE CLOUDS 'a'", "table plain is not dispersed"),
        ("REFRESH TABLE plain", "table plain is not dispersed"),
        ("REFRESH TABLE nothing", "no table nothing"),
        ("BEGIN; REFRESH TABLE people", "no part of a transaction"),
    ] {
        let answer = world.database.ask(sql);
        let last = answer.lines().last().unwrap_or_default();
        assert!(last.starts_with("error: ") && last.contains(part), "{sql}: {answer}");
        world.database.ask("ROLLBACK");
    }
    ask_all(&mut world);
    // What is so already moves nothing.
    let before: Vec<_> = ["a", "b", "c"].iter().flat_map(|cloud| files(&world.path(cloud))).collect();
    assert_eq!(world.database.ask("ALTER TABLE people SET (clouds = 'A, b, c')"), "ALTER TABLE");
    assert!(before.iter().all(|file| file.exists()));
}

const THREE: &str = "CREATE TABLE t (id INT PRIMARY KEY, n INT FOR (sum, equality)) WITH (engine = 'dispersed', clouds = 'f0, f1, f2'); \
                     INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)";

#[test]
fn a_table_has_no_more_rows_than_their_sum_has_room_for() {
    for may_collude in [0, 1] {
        let (mut database, _) = fickle();
        let with =
            format!("WITH (engine = 'dispersed', clouds = 'f0, f1, f2', may_fail = 1, may_collude = {may_collude})");
        database.ask(&format!("CREATE TABLE t (id INT, v NUMERIC(17,0) FOR (sum)) {with}"));
        database.ask("INSERT INTO t SELECT i, 99999999999999999 FROM generate_series(1, 200) AS s(i)");
        let refused = database.ask("ALTER TABLE t SET (max_rows = 199)");
        assert!(refused.contains("has 200 rows, more than max_rows = 199"), "{refused}");
        assert_eq!(database.ask("ALTER TABLE t SET (max_rows = 200)"), "ALTER TABLE");
        assert_eq!(database.ask("SELECT sum(v), count(*) FROM t"), "19999999999999999800|200");
        assert!(database.ask("INSERT INTO t VALUES (201, 1)").contains("at most 200 rows"));
    }
}

fn rows_to_move(database: &mut Database) -> u64 {
    let shown = database.ask("SHOW CLOUDS");
    shown.lines().filter_map(|line| line.rsplit('|').nth(1)?.parse::<u64>().ok()).max().expect("clouds")
}

#[test]
fn a_cloud_that_hangs_keeps_neither_readers_nor_writers() {
    // Each of them takes half a minute of waiting.
    for hanging in if is_full() { 0..3 } else { 1..2 } {
        let (mut database, clouds) = fickle();
        database.ask(THREE);
        let cloud = clouds.0[hanging].clone();
        cloud.hangs.store(true, Ordering::Relaxed);
        // Whoever waited for it would wait until somebody ends this.
        let (over, is_over) = std::sync::mpsc::channel::<()>();
        let end = std::thread::spawn({
            let cloud = cloud.clone();
            move || {
                if is_over.recv_timeout(Duration::from_secs(240)).is_err() {
                    cloud.hangs.store(false, Ordering::Relaxed);
                }
            }
        });
        assert_eq!(database.ask("INSERT INTO t VALUES (4, 40)"), "INSERT 1");
        let noted = database.session.take_notices().join("\n");
        assert!(noted.contains(&format!("cloud f{hanging} is told later")), "{noted}");
        assert_eq!(database.ask("UPDATE t SET n = 21 WHERE id = 2"), "UPDATE 1");
        assert_eq!(database.ask("SELECT id, n FROM t ORDER BY id"), "1|10\n2|21\n3|30\n4|40");
        assert_eq!(database.ask("SELECT sum(n) FROM t"), "101");
        assert!(cloud.hangs.load(Ordering::Relaxed), "all of it was waited for");
        over.send(()).expect("it waits");
        end.join().expect("ended");
        cloud.hangs.store(false, Ordering::Relaxed);
        // What it was told in the end does not come twice, and what it was not told comes.
        let mut shown = String::new();
        // It takes a moment until the errand of before has ended.
        for _ in 0..500 {
            database.ask("REPAIR TABLE t");
            shown = database.ask("SHOW CLOUDS");
            if shown.lines().all(|line| line.ends_with("|0|0|0")) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(shown.lines().all(|line| line.ends_with("|0|0|0")), "{shown}");
        assert_eq!(database.ask("SELECT id, n FROM t ORDER BY id"), "1|10\n2|21\n3|30\n4|40");
    }
}

#[test]
fn a_move_may_be_interrupted() {
    let (mut database, clouds) = fickle();
    database.ask(THREE);
    let interrupt = database.session.interrupt();
    *clouds.0[1].at_rows.lock() = Some(Box::new(move || interrupt.raise()));
    assert_eq!(database.ask("ALTER TABLE t SET (clouds = 'f3, f4, f5')"), "error: interrupted");
    // It is to lie there, and its rows lie where they did.
    assert!(database.ask("SHOW CREATE TABLE t").contains("f3, f4, f5"));
    assert_eq!(rows_to_move(&mut database), 3);
    assert_eq!(database.ask("SELECT sum(n), count(*) FROM t"), "60|3");
    // What is changed next takes them along.
    database.ask("INSERT INTO t VALUES (4, 40)");
    assert_eq!(rows_to_move(&mut database), 0);
    assert_eq!(database.ask("SELECT id, n FROM t ORDER BY id"), "1|10\n2|20\n3|30\n4|40");
    assert!(
        clouds.0[..3].iter().all(|cloud| cloud.tables.lock().is_empty()),
        "what has moved is gone from where it lay"
    );
}

#[test]
fn an_altered_table_whose_rows_cannot_be_read_is_altered() {
    let (mut database, clouds) = fickle();
    database.ask(THREE);
    let down = |from| clouds.0[..2].iter().for_each(|cloud| cloud.fails_from.store(from, Ordering::Relaxed));
    down(1);
    assert_eq!(database.ask("ALTER TABLE t SET (clouds = 'f3, f4, f5')"), "ALTER TABLE");
    let notices = database.session.take_notices().join("\n");
    assert!(
        notices.contains("rows cannot be read now") && notices.contains("rows lie as before, and move"),
        "{notices}"
    );
    // No two clouds say what the sum is; its cells are right wherever they lie.
    assert_eq!(database.ask("SELECT sum(n) FROM t"), "60");
    assert!(
        database.ask("SELECT id, n FROM t").starts_with("error: "),
        "those of id lie at the two that do not answer"
    );
    down(0);
    assert_eq!(database.ask("SELECT sum(n) FROM t"), "60");
    assert_eq!(database.ask("REPAIR TABLE t"), "f3|0|0|complete\nf4|0|0|complete\nf5|0|0|complete");
    assert_eq!(rows_to_move(&mut database), 0);
}

#[test]
fn a_move_may_be_cut_anywhere() {
    let questions =
        ["SELECT id, n FROM t ORDER BY id", "SELECT sum(n), count(*) FROM t", "SELECT id FROM t WHERE n = 20"];
    let mut cuts = 0;
    for cloud in 0..4 {
        for cut in 1.. {
            let (mut database, clouds) = fickle();
            database.ask(
                "CREATE TABLE t (id INT PRIMARY KEY, n INT FOR (sum, equality)) WITH (engine = 'dispersed', clouds = 'f0, f1, f2')",
            );
            database.ask("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)");
            let fickle = &clouds.0[cloud];
            let before = fickle.calls.load(Ordering::Relaxed);
            fickle.fails_from.store(before + cut, Ordering::Relaxed);
            database.ask("ALTER TABLE t SET (clouds = 'f1, f2, f3')");
            let was_cut = fickle.calls.load(Ordering::Relaxed) > before + cut;
            database.ask("INSERT INTO t VALUES (4, 40)");
            database.ask("DELETE FROM t WHERE id = 3");
            let expected = ["1|10\n2|20\n4|40", "70|3", "2"];
            for (sql, expected) in questions.iter().zip(expected) {
                assert_eq!(database.ask(sql), expected, "cloud {cloud}, cut {cut}: {sql}");
            }
            fickle.fails_from.store(0, Ordering::Relaxed);
            database.ask("REPAIR TABLE t");
            let down = &clouds.0[1 + cloud % 3];
            down.fails_from.store(1, Ordering::Relaxed);
            for (sql, expected) in questions.iter().zip(expected) {
                assert_eq!(database.ask(sql), expected, "cloud {cloud}, cut {cut}, one down: {sql}");
            }
            down.fails_from.store(0, Ordering::Relaxed);
            let shown = database.ask("SHOW CLOUDS");
            assert!(shown.lines().all(|line| line.ends_with("|0|0|0")), "cloud {cloud}, cut {cut}: {shown}");
            if !was_cut {
                break;
            }
            cuts += 1;
        }
    }
    assert!(cuts > 6, "{cuts} cuts were tried");
}

#[test]
fn sums_are_never_of_other_rows_whatever_changes_while_clouds_are_asked() {
    let (mut database, clouds) = fickle();
    database.ask("CREATE TABLE t (id INT PRIMARY KEY, n INT FOR (sum)) WITH (engine = 'dispersed', clouds = 'f0')");
    database.ask("INSERT INTO t VALUES (1, 10), (2, 20)");
    let meanwhile = |gone: u32, comes: u32| {
        let mut other = database.connect();
        *clouds.0[0].at_sum.lock() = Some(Box::new(move || {
            // As many rows, but others.
            let sql = format!("DELETE FROM t WHERE id = {gone}; INSERT INTO t VALUES ({comes}, {comes}0)");
            assert_eq!(ask(&mut other, &sql, &[]), "DELETE 1\nINSERT 1");
        }));
    };
    // It is asked again by itself, of what is there then.
    meanwhile(1, 3);
    let mut reader = database.connect();
    assert_eq!(ask(&mut reader, "SELECT sum(n) FROM t", &[]), "50");
    meanwhile(2, 4);
    assert_eq!(ask(&mut reader, "BEGIN; SELECT sum(n) FROM t; COMMIT", &[]), "BEGIN\n70\nCOMMIT");
    // A transaction that sees one state cannot see another one.
    meanwhile(3, 5);
    let answer = ask(&mut reader, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(n) FROM t", &[]);
    assert!(answer.contains("ask again"), "{answer}");
    assert_eq!(ask(&mut reader, "ROLLBACK; SELECT sum(n) FROM t", &[]), "ROLLBACK\n90");
}
