//! REPAIR TABLE: clouds that have lost what they were given, or show something else, have it again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use counterfoil_disperse::fragments::{Name, Question};
use counterfoil_disperse::{Catalogue, Provider as _, Secret};
use counterfoil_sql::{Rights, Session, lost_tables};

use crate::catalogue::{Owning, SECRET};
use crate::database::{Database, ask};
use crate::dispersed::{ROWS, World, ask_all, both, files, same};
use crate::fickle::{Fault, Fickle, fickle};

#[test]
fn a_cloud_that_lost_everything_gets_it_back() {
    let mut world = both();
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    same(&mut world, "DELETE FROM TABLE WHERE id = 3");
    for cloud in ["a", "b", "c"] {
        std::fs::remove_dir_all(world.path(cloud)).expect("the cloud");
        std::fs::create_dir(world.path(cloud)).expect("an empty one");
        let repaired = world.database.ask("REPAIR TABLE people");
        let expected = |own: &str| format!("{own}|{}|0|complete", if own == cloud { 4 } else { 0 });
        assert_eq!(repaired, ["a", "b", "c"].map(expected).join("\n"));
        for gone in ["a", "b", "c"] {
            world.set_there(gone, false);
            ask_all(&mut world);
            world.set_there(gone, true);
        }
    }
    assert!(world.database.ask("REPAIR TABLE plain").contains("not dispersed"));
    world.set_there("a", false);
    assert!(world.database.ask("REPAIR TABLE people").contains("a|0|0|out of reach"));
}

/// Whoever comes in from outside mends what lies at clouds, and moves it, and says of no cloud where it is.
#[test]
fn who_comes_in_from_outside_does_with_clouds_what_he_may_do_with_tables() {
    let mut world = both();
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    let session = |rights: Rights| Session::with_rights(world.database.engine.clone(), rights).expect("a session");
    let [mut guest, mut reader] = [true, false].map(|writes| session(Rights { writes, host_files: false }));
    let complete = ["a", "b", "c"].map(|cloud| format!("{cloud}|0|0|complete")).join("\n");
    assert_eq!(ask(&mut guest, "REPAIR TABLE people", &[]), complete);
    assert!(!ask(&mut guest, "REFRESH TABLE people", &[]).starts_with("error"));
    assert!(ask(&mut reader, "REPAIR TABLE people", &[]).contains("reader"));
    for refused in
        ["CREATE CLOUD d OPTIONS (url 'dir:/tmp/d')", "ALTER CLOUD a OPTIONS (url 'dir:/tmp/d')", "DROP CLOUD a"]
    {
        let said = ask(&mut guest, refused, &[]);
        assert!(said.contains("whoever runs the server says where they are"), "{said}");
    }
    // Nor does he learn which folders there are, of clouds or others, by calling them by their addresses.
    for folder in [world.path("a").display().to_string(), "/".into(), "/nowhere/at/all".into()] {
        for sql in [
            format!("USE CLOUDS 'file://{folder}'"),
            format!("ALTER TABLE people ALTER COLUMN name USE CLOUDS 'file://{folder}' AND 'a'"),
            format!(
                "CREATE TABLE mine (id INT USE CLOUDS 'file://{folder}' AND 'a') WITH (engine = 'dispersed', clouds = 'a, b, c')"
            ),
        ] {
            let said = ask(&mut guest, &sql, &[]);
            assert!(said.contains("whoever runs the server says where they are"), "{sql}: {said}");
        }
    }
    ask_all(&mut world);
}

/// Whoever answers at the address of another cloud would get its shares beside those that he has: nothing is put there.
#[test]
fn clouds_whose_addresses_were_exchanged_are_given_nothing() {
    let mut world = both();
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    let exchange = |world: &World| {
        let [a, b, aside] = ["a", "b", "aside"].map(|cloud| world.path(cloud));
        for (from, to) in [(&a, &aside), (&b, &a), (&aside, &b)] {
            std::fs::rename(from, to).expect("exchanged");
        }
    };
    let rows_there = |world: &World| ["a", "b"].map(|cloud| files(&world.path(cloud)).len());
    let before = rows_there(&world);
    exchange(&world);
    // What comes now lies there under both names: it is not taken for what a cloud had before.
    assert_eq!(world.database.ask("INSERT INTO people (id, name) VALUES (77, 'exchanged')"), "INSERT 1");
    let before_repair = rows_there(&world);
    for how in ["", " EXTENDED", " LET GO"] {
        let repaired = world.database.ask(&format!("REPAIR TABLE people{how}"));
        for (cloud, other) in [("a", "b"), ("b", "a")] {
            let line = format!("{cloud}|0|0|out of reach: what lies at its address is what cloud {other} was given");
            assert!(
                repaired.contains(&line) || how == " LET GO" && repaired.starts_with("error: "),
                "{how}: {repaired}"
            );
        }
    }
    assert_eq!(rows_there(&world), before_repair);
    // What came meanwhile lies where the other one is, and is read and deleted as long as that is so.
    exchange(&world);
    let repaired = world.database.ask("REPAIR TABLE people");
    assert!(repaired.contains("a|0|0|out of reach: what lies at its address"), "{repaired}");
    exchange(&world);
    assert_eq!(world.database.ask("SELECT name FROM people WHERE id = 77"), "exchanged");
    assert_eq!(world.database.ask("DELETE FROM people WHERE id = 77"), "DELETE 1");
    exchange(&world);
    let repaired = world.database.ask("REPAIR TABLE people");
    assert!(repaired.lines().all(|line| line.ends_with("|complete")), "{repaired}");
    assert_eq!(rows_there(&world), before);
    ask_all(&mut world);
}

#[test]
fn what_a_cloud_shows_otherwise_is_put_there_anew() {
    let (mut database, clouds) = fickle();
    let columns =
        "id INT PRIMARY KEY, n INT FOR (sum, equality), word TEXT FOR (equality, prefix), day DATE FOR (range)";
    let with = "WITH (engine = 'dispersed', clouds = 'f0, f1, f2', may_fail = 1, may_collude = 1)";
    assert_eq!(database.ask(&format!("CREATE TABLE t ({columns}) {with}")), "CREATE TABLE");
    let rows = "SELECT i, i * 3, 'w' || i % 7, DATE '2024-01-01' FROM generate_series(1, 5000) AS s(i)";
    assert_eq!(database.ask(&format!("INSERT INTO t {rows}")), "INSERT 5000");
    let complete = |put: [u32; 3]| {
        put.iter().enumerate().map(|(cloud, put)| format!("f{cloud}|{put}|0|complete")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(database.ask("REPAIR TABLE t EXTENDED"), complete([0, 0, 0]));
    clouds.0[1].fail(Fault::Changing, 0);
    database.session.take_notices();
    assert_eq!(database.ask("REPAIR TABLE t EXTENDED"), complete([0, 5000, 0]));
    let notices = database.session.take_notices().join("\n");
    assert!(notices.contains("cloud f1 showed 5000 rows otherwise than it was given them"), "{notices}");
    // Which rows lie there is right: nothing else is looked at without EXTENDED.
    assert_eq!(database.ask("REPAIR TABLE t"), complete([0, 0, 0]));
    clouds.0[1].heal();
    assert_eq!(database.ask("REPAIR TABLE t EXTENDED"), complete([0, 0, 0]));
    assert_eq!(database.ask("SELECT sum(n), count(*) FROM t"), "37507500|5000");
}

#[test]
fn a_file_that_is_not_as_it_was_written_is_mended() {
    let mut world = both();
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    same(&mut world, "DELETE FROM TABLE WHERE id = 3");
    for (cloud, cut) in [("a", false), ("b", true), ("c", false)] {
        let path = files(&world.path(cloud)).into_iter().max_by_key(|path| path.metadata().expect("a file").len());
        let path = path.expect("a file of the table");
        let mut bytes = std::fs::read(&path).expect("a file");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        bytes.truncate(if cut { middle } else { bytes.len() });
        std::fs::write(&path, bytes).expect("a changed file");
        // With another one away there are not enough that have all of it: nothing is let go of.
        let other = if cloud == "c" { "a" } else { "c" };
        world.set_there(other, false);
        let told = world.database.ask("REPAIR TABLE people EXTENDED");
        assert!(!told.contains(&format!("{cloud}|4|0|complete")), "{told}");
        assert!(path.is_file(), "{cloud} has what it had");
        world.set_there(other, true);
        let repaired = world.database.ask("REPAIR TABLE people EXTENDED");
        // What could be read without the other one was put there already, as the file that it was.
        let left = if told.contains(&format!("{cloud}|4|")) { 0 } else { 4 };
        let expected = |own: &str| format!("{own}|{}|0|complete", if own == cloud { left } else { 0 });
        assert_eq!(repaired, ["a", "b", "c"].map(expected).join("\n"), "{cloud}");
        for gone in ["a", "b", "c"] {
            world.set_there(gone, false);
            ask_all(&mut world);
            world.set_there(gone, true);
        }
    }
}

#[test]
fn what_clouds_leave_out_is_read_where_more_of_them_fail_than_may() {
    // Of these rows the last ones are at one cloud no more, which says so of nothing; the others have damaged files each.
    for at in [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]] {
        let (mut world, spoiled) = damaged(&at);
        std::fs::remove_file(spoiled.last().expect("the last cloud's file")).expect("it is lost");
        let some = "id IN (13, 14, 23, 24, 3, 4)";
        for (sql, expected) in [
            (format!("SELECT count(note), min(id) FROM t WHERE {some}"), "6|3"),
            (format!("SELECT count(*) FROM t WHERE {some}"), "6"),
            ("SELECT count(note) FROM t WHERE name IN ('name 3', 'name 13', 'name 23')".to_owned(), "3"),
            ("INSERT INTO t VALUES (3, 'new', ''), (13, 'new', ''), (23, 'new', '')".to_owned(), "error"),
            (format!("DELETE FROM t WHERE {some}"), "DELETE 6"),
        ] {
            let told = world.database.ask(&sql);
            assert!(told.starts_with(expected) && (expected == "error" || told == expected), "{at:?}: {sql}: {told}");
        }
    }
}

#[test]
fn a_cloud_that_was_put_back_does_not_decide_alone_which_rows_match() {
    // Of two clouds each has a damaged file, and the third one is as it was before the last row.
    for (at, old) in [(["a", "b"], "c"), (["b", "c"], "a"), (["a", "c"], "b")] {
        let (mut world, spoiled) = damaged(&at);
        // Nothing of them can be read, nor what codes say.
        spoiled.iter().for_each(cut_short);
        let before = world.path(old).with_extension("before");
        copy(&world.path(old), &before);
        assert_eq!(world.database.ask("INSERT INTO t VALUES (700, 'name 7', 'seven')"), "INSERT 1");
        std::fs::remove_dir_all(world.path(old)).expect("gone");
        copy(&before, &world.path(old));
        for (sql, expected) in [
            ("SELECT count(note) FROM t WHERE id IN (3, 13, 700)", "3"),
            ("DELETE FROM t WHERE id IN (3, 13, 700)", "DELETE 3"),
        ] {
            assert_eq!(world.database.ask(sql), expected, "{at:?}, {old}: {sql}");
        }
    }
}

fn cut_short(file: &PathBuf) {
    std::fs::OpenOptions::new().write(true).open(file).and_then(|file| file.set_len(100)).expect("cut");
}

/// All that lies in a folder.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("lists") {
        let entry = entry.expect("an entry").path();
        let place = to.join(entry.file_name().expect("a name"));
        match entry.is_dir() {
            true => copy(&entry, &place),
            false => drop(std::fs::copy(&entry, &place).expect("a copy")),
        }
    }
}

/// A table of five files at each of three clouds, of which some are damaged: of the first rows at these clouds, each a letter, of the next ones
/// at those. The files are given, in the order of rows and clouds.
fn damaged(at: &[&str]) -> (World, Vec<PathBuf>) {
    damaged_as("encryption", at)
}

fn damaged_as(coding: &str, at: &[&str]) -> (World, Vec<PathBuf>) {
    let mut world = World::new();
    let with =
        format!("WITH (engine = 'dispersed', clouds = 'a, b, c', may_fail = 1, may_collude = 1, coding = '{coding}')");
    world.database.ask(&format!("CREATE TABLE t (id INT PRIMARY KEY, name TEXT FOR (equality), note TEXT) {with}"));
    let mut spoiled = Vec::new();
    for part in 0..5_usize {
        let clouds: Vec<String> = at.get(part).iter().flat_map(|at| at.chars()).map(String::from).collect();
        let has = |world: &World| clouds.iter().flat_map(|cloud| files(&world.path(cloud))).collect::<BTreeSet<_>>();
        let before = has(&world);
        let rows = format!(
            "SELECT i, 'name ' || i, 'note ' || i FROM generate_series({}, {}) AS s(i)",
            part * 10 + 1,
            part * 10 + 10
        );
        assert_eq!(world.database.ask(&format!("INSERT INTO t {rows}")), "INSERT 10");
        for path in &has(&world) - &before {
            let mut bytes = std::fs::read(&path).expect("a file");
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(&path, bytes).expect("a changed file");
            spoiled.push(path);
        }
    }
    (world, spoiled)
}

const ALL_FIFTY: &str = "SELECT count(id), count(name), count(note), sum(length(note)) FROM t";

/// Which columns can be read.
fn readable(world: &mut World) -> Vec<bool> {
    ["id", "name", "note"]
        .map(|column| world.database.ask(&format!("SELECT count({column}) FROM t WHERE {column} IS NOT NULL")) == "50")
        .to_vec()
}

#[test]
fn what_each_cloud_can_show_is_read_where_all_have_damaged_files() {
    for coding in ["encryption", "encryption, replication", "encryption, dispersion"] {
        let (mut world, _) = damaged_as(coding, &["a", "b", "c"]);
        for (sql, expected) in [
            (ALL_FIFTY, "50|50|50|341"),
            (
                "SELECT id, note FROM t WHERE name IN ('name 3', 'name 13', 'name 23', 'name 33') ORDER BY id",
                "3|note 3\n13|note 13\n23|note 23\n33|note 33",
            ),
            ("SELECT count(note) FROM t WHERE name = 'nobody'", "0"),
            ("SELECT count(*), sum(id) FROM t WHERE name = 'name 7'", "1|7"),
            ("SELECT note FROM t WHERE name = 'name 50' AND id > 3", "note 50"),
        ] {
            assert_eq!(world.database.ask(sql), expected, "{coding}: {sql}");
        }
        let notices = world.database.session.take_notices().join("\n");
        assert!(notices.contains("REPAIR TABLE t EXTENDED puts there anew"), "{coding}: {notices}");
        assert_eq!(world.database.ask("UPDATE t SET note = 'new' WHERE name = 'name 13'"), "UPDATE 1", "{coding}");
        assert_eq!(world.database.ask("SELECT id FROM t WHERE note = 'new'"), "13", "{coding}");
    }
}

#[test]
fn what_no_cloud_can_show_is_said_where_it_is_asked_for() {
    let (mut world, _) = damaged(&["abc"]);
    for sql in [ALL_FIFTY, "SELECT id, name, note FROM t WHERE name = 'name 3'"] {
        let told = world.database.ask(sql);
        assert!(told.starts_with("error: column ") && told.contains("is not as it was written"), "{sql}: {told}");
    }
}

#[test]
fn rows_that_are_damaged_at_all_clouds_that_have_them_can_be_let_go_of() {
    for (at, is_cut) in [("abc", false), ("ac", false), ("abc", true), ("ac", true)] {
        let (mut world, spoiled) = damaged(&[at]);
        if is_cut {
            // Not even which rows lie in them can be read.
            spoiled.iter().for_each(cut_short);
        }
        let told = world.database.ask("REPAIR TABLE t EXTENDED");
        let advised = |line: &str| line.contains("10 rows cannot be read") && line.contains("REPAIR TABLE t LET GO");
        assert!(told.lines().all(advised), "{at}: {told}");
        world.database.session.take_notices();
        let told = world.database.ask("REPAIR TABLE t LET GO");
        let notices = world.database.session.take_notices().join("\n");
        assert!(notices.contains("rows that no cloud could give back are gone: 10"), "{at}: {told}\n{notices}");
        let told = world.database.ask("REPAIR TABLE t EXTENDED");
        assert!(told.lines().all(|line| line.ends_with("|complete")), "{at}: {told}");
        assert_eq!(world.database.ask(ALL_FIFTY), "40|40|40|280", "{at}");
        assert_eq!(world.database.ask("REPAIR TABLE t EXTENDED"), "a|0|0|complete\nb|0|0|complete\nc|0|0|complete");
        assert_eq!(world.waiting(), "a 0 0, b 0 0, c 0 0");
    }
}

/// A repair that has clouds let go of what is damaged knows that they have none of it then.
#[test]
fn no_cloud_is_named_for_what_a_repair_had_it_let_go_of() {
    for at in [["a"].as_slice(), &["b"], &["a", "b", "c"], &["ab"]] {
        let (mut world, _) = damaged(at);
        world.database.session.take_notices();
        let told = world.database.ask("REPAIR TABLE t EXTENDED");
        assert!(told.contains("|50|0|complete"), "{at:?}: {told}");
        let notices = world.database.session.take_notices().join("\n");
        assert!(!notices.contains("does not show rows"), "{at:?}: {notices}");
    }
}

#[test]
fn files_that_are_damaged_at_every_cloud_are_mended_from_the_others() {
    for worsen in [|_: &PathBuf| {}, be_a_folder, be_endless] {
        mended_from_the_others(worsen);
    }
}

fn be_a_folder(file: &PathBuf) {
    std::fs::remove_file(file).and_then(|()| std::fs::create_dir(file)).expect("a folder");
}

fn be_endless(file: &PathBuf) {
    std::fs::OpenOptions::new().write(true).open(file).and_then(|file| file.set_len(1 << 40)).expect("a length");
}

fn mended_from_the_others(worsen: fn(&PathBuf)) {
    let (mut world, spoiled) = damaged(&["a", "b", "c"]);
    spoiled.iter().for_each(worsen);
    assert_eq!(world.database.ask(ALL_FIFTY), "50|50|50|341");
    let repaired = world.database.ask("REPAIR TABLE t EXTENDED");
    assert!(repaired.lines().all(|line| line.ends_with("|complete")), "{repaired}");
    for gone in ["a", "b", "c"] {
        world.set_there(gone, false);
        assert_eq!(world.database.ask(ALL_FIFTY), "50|50|50|341", "without {gone}");
        world.set_there(gone, true);
    }
    assert_eq!(world.database.ask("REPAIR TABLE t EXTENDED"), "a|0|0|complete\nb|0|0|complete\nc|0|0|complete");
}

#[test]
fn a_repair_takes_nothing_that_is_nowhere_else() {
    for away in ["a", "c"] {
        let (mut world, _) = damaged(&["b"]);
        world.set_there(away, false);
        let (before, had) = (readable(&mut world), files(&world.path("b")));
        let repaired = world.database.ask("REPAIR TABLE t EXTENDED");
        assert!(!repaired.contains("b|0|0|complete"), "{repaired}");
        let has: BTreeSet<PathBuf> = files(&world.path("b")).into_iter().collect();
        assert!(had.iter().all(|path| has.contains(path)), "{away} is away: {} files, then {}", had.len(), has.len());
        let still = readable(&mut world);
        assert!(before.iter().zip(&still).all(|(before, still)| still >= before), "{away}: {before:?}, then {still:?}");
        world.set_there(away, true);
        let repaired = world.database.ask("REPAIR TABLE t EXTENDED");
        assert!(repaired.lines().all(|line| line.ends_with("|complete")), "{repaired}");
        assert_eq!(world.database.ask(ALL_FIFTY), "50|50|50|341");
    }
}

#[test]
fn a_damaged_file_of_which_rows_were_deleted_is_mended() {
    let (mut world, _) = damaged(&["b"]);
    assert_eq!(world.database.ask("DELETE FROM t WHERE id = 3"), "DELETE 1");
    let repaired = world.database.ask("REPAIR TABLE t EXTENDED");
    assert!(repaired.lines().all(|line| line.ends_with("|complete")), "{repaired}");
    for gone in ["a", "c"] {
        world.set_there(gone, false);
        assert_eq!(world.database.ask(ALL_FIFTY), "49|49|49|335", "without {gone}");
        world.set_there(gone, true);
    }
    assert_eq!(world.waiting(), "a 0 0, b 0 0, c 0 0");
}

#[test]
fn what_nobody_can_give_back_does_not_keep_a_table_where_it_lay() {
    let (mut database, clouds) = fickle();
    let with = "WITH (engine = 'dispersed', clouds = 'f0, f1, f2', may_fail = 1, may_collude = 1)";
    database.ask(&format!("CREATE TABLE t (id INT PRIMARY KEY, n INT FOR (sum)) {with}"));
    database.ask("INSERT INTO t SELECT i, i FROM generate_series(1, 20) AS s(i)");
    let before: Vec<_> = clouds.0[..3].iter().map(|cloud| places(cloud)).collect();
    database.ask("INSERT INTO t VALUES (21, 21)");
    for (cloud, before) in clouds.0[..3].iter().zip(&before) {
        for (table, place) in places(cloud).difference(before) {
            cloud.remove(table, &[*place]).expect("an honest cloud");
        }
    }
    assert_eq!(database.ask("REFRESH TABLE t"), "REFRESH TABLE");
    // What is new is told nevertheless.
    assert_eq!(database.ask("INSERT INTO t VALUES (22, 22)"), "INSERT 1");
    let shown = database.ask("SHOW CLOUDS");
    let to_put = shown.lines().filter_map(|line| line.split('|').nth(3)).collect::<Vec<_>>();
    assert!(to_put.iter().all(|rows| *rows == "0"), "{shown}");
    assert!(!database.ask("REPAIR TABLE t").starts_with("error"));
    let shown = database.ask("SHOW CLOUDS");
    let to_move = shown.lines().filter_map(|line| line.rsplit('|').nth(1)?.parse::<u64>().ok()).max();
    assert_eq!(to_move, Some(1), "what can be read has moved: {shown}");
    assert_eq!(database.ask("REPAIR TABLE t LET GO"), "f0|0|0|complete\nf1|0|0|complete\nf2|0|0|complete");
    assert_eq!(database.ask("SELECT sum(n), count(id) FROM t"), "232|21");
    let shown = database.ask("SHOW CLOUDS");
    assert!(shown.lines().take(3).all(|line| line.ends_with("|0|0|0|0")), "{shown}");
}

#[test]
fn a_damaged_file_of_one_layout_is_no_damage_of_another() {
    let (mut world, spoiled) = damaged(&["abc"]);
    // What can be read moves, and the rest stays where it lies.
    assert_eq!(world.database.ask("REFRESH TABLE t"), "REFRESH TABLE");
    world.database.ask("REPAIR TABLE t");
    let before: BTreeSet<PathBuf> = ["a", "b", "c"].iter().flat_map(|cloud| files(&world.path(cloud))).collect();
    assert!(spoiled.iter().all(|path| before.contains(path)), "they are kept, since nobody can give them back");
    let told = world.database.ask("REPAIR TABLE t EXTENDED");
    for cloud in ["a", "b", "c"] {
        let own = told.lines().find(|line| line.starts_with(cloud)).expect("a line of each");
        assert!(own.starts_with(&format!("{cloud}|0|0|")) && !own.ends_with("complete"), "{told}");
    }
    // The 40 rows that lie well are not given anew.
    let after: BTreeSet<PathBuf> = ["a", "b", "c"].iter().flat_map(|cloud| files(&world.path(cloud))).collect();
    assert_eq!(before, after);
}

/// What a cloud has, as places of its tables.
fn places(cloud: &Fickle) -> BTreeSet<(Name, u64)> {
    let mut all = BTreeSet::new();
    for table in cloud.tables.lock().iter() {
        let shown = cloud.ask(table, &Question::default(), &mut |answer| {
            all.extend(answer.rows.places.iter().map(|place| (table.clone(), *place)));
            Ok(())
        });
        shown.expect("an honest cloud");
    }
    all
}

#[test]
fn a_row_that_nobody_can_give_back_is_no_obstacle_for_the_others() {
    let (mut database, clouds) = fickle();
    let with = "WITH (engine = 'dispersed', clouds = 'f0, f1, f2', may_fail = 1, may_collude = 1)";
    database.ask(&format!("CREATE TABLE t (id INT PRIMARY KEY, n INT FOR (sum), word TEXT FOR (equality)) {with}"));
    database.ask("INSERT INTO t SELECT i, i, 'w' || i FROM generate_series(1, 31) AS s(i)");
    // Each cloud lacks three rows that the others have, and one that none has.
    for id in 32..42 {
        let before: Vec<_> = clouds.0[..3].iter().map(|cloud| places(cloud)).collect();
        assert_eq!(database.ask(&format!("INSERT INTO t VALUES ({id}, {id}, 'w{id}')")), "INSERT 1");
        for (number, cloud) in clouds.0[..3].iter().enumerate().filter(|(number, _)| id == 41 || id % 3 == *number) {
            for (table, place) in places(cloud).difference(&before[number]) {
                cloud.remove(table, &[*place]).expect("an honest cloud");
            }
        }
    }
    assert!(database.ask("SELECT id, word FROM t").starts_with("error"), "no cloud has all of them");
    let told = database.ask("REPAIR TABLE t");
    assert_eq!(told.lines().filter(|line| line.contains("|3|0|1 rows cannot be read")).count(), 3, "{told}");
    assert!(told.contains("REPAIR TABLE t LET GO"), "{told}");
    let told = database.ask("REPAIR TABLE t EXTENDED");
    assert_eq!(told.lines().filter(|line| line.contains("|0|0|1 rows cannot be read")).count(), 3, "{told}");
    // What does not answer may have it.
    clouds.0[1].fail(Fault::Unreachable, 0);
    let refused = database.ask("REPAIR TABLE t LET GO");
    assert!(refused.contains("not known to be lost") && refused.contains("cloud f1"), "{refused}");
    clouds.0[1].heal();
    database.session.take_notices();
    let told = database.ask("REPAIR TABLE t LET GO");
    assert_eq!(told, "f0|0|0|complete\nf1|0|0|complete\nf2|0|0|complete");
    let notices = database.session.take_notices().join("\n");
    assert!(notices.contains("rows that no cloud could give back are gone: 1"), "{notices}");
    assert_eq!(database.ask("SELECT sum(n), count(*) FROM t"), "820|40");
    assert_eq!(database.ask("SELECT id FROM t WHERE word = 'w1'"), "1");
    assert_eq!(database.ask("REPAIR TABLE t EXTENDED"), told);
}

/// Flips a bit in the middle of the largest file of a cloud's catalogue.
fn spoil_the_catalogue(cloud: &Path) {
    let name = Catalogue::new(Secret::new(SECRET)).name();
    let of_catalogue = |path: &PathBuf| path.to_string_lossy().contains(name.as_str());
    let largest =
        files(cloud).into_iter().filter(of_catalogue).max_by_key(|path| path.metadata().expect("a file").len());
    let path = largest.expect("a file of the catalogue");
    let mut bytes = std::fs::read(&path).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).expect("a changed file");
}

/// Rows of each table that one cloud and the key bring back.
pub fn brought_back(world: &World, cloud: &str) -> Vec<(String, u64)> {
    let mut again = Database::new();
    let url = format!("dir:{}", world.path(cloud).display());
    let lost = lost_tables(&again.engine, &SECRET, (&url, None), &mut |_| ()).expect("tables");
    let brought = again.session.bring_back(lost, &SECRET).expect("brought back");
    let mut tables: Vec<_> = brought.into_iter().map(|table| (table.name, table.rows)).collect();
    tables.sort();
    tables
}

#[test]
fn a_catalogue_that_a_cloud_cannot_show_is_told_anew() {
    let mut world = World::new();
    world.database.engine.belong_to(Arc::new(Owning));
    world.database.session.note_split(&SECRET).expect("noted");
    for table in ["one", "other"] {
        let with = "WITH (engine = 'dispersed', clouds = 'a, b, c')";
        assert_eq!(
            world.database.ask(&format!("CREATE TABLE {table} (id INT, n INT FOR (sum)) {with}")),
            "CREATE TABLE"
        );
        assert_eq!(world.database.ask(&format!("INSERT INTO {table} VALUES (1, 10), (2, 20)")), "INSERT 2");
    }
    spoil_the_catalogue(&world.path("b"));
    // It may know of a later day: nothing more is told to it, and that is said.
    world.database.session.take_notices();
    world.database.ask("INSERT INTO one VALUES (3, 30)");
    let notices = world.database.session.take_notices().join("\n");
    assert!(notices.contains("cloud b is told later"), "{notices}");
    let told = world.database.ask("REPAIR TABLE one");
    assert!(told.contains("b|0|0|what brings the table back is not shown") && told.contains("EXTENDED"), "{told}");
    // With another one away nobody can say whether there was a later day.
    world.set_there("c", false);
    let told = world.database.ask("REPAIR TABLE one EXTENDED");
    assert!(told.contains("b|0|0|what brings the table back is not shown"), "{told}");
    world.set_there("c", true);
    assert_eq!(world.database.ask("REPAIR TABLE one EXTENDED"), "a|0|0|complete\nb|0|0|complete\nc|0|0|complete");
    assert_eq!(world.waiting(), "a 0 0, b 0 0, c 0 0");
    let all = [("one".to_owned(), 3), ("other".to_owned(), 2)];
    for cloud in ["a", "b", "c"] {
        assert_eq!(brought_back(&world, cloud), all, "{cloud}");
    }
    for gone in ["a", "b", "c"] {
        world.set_there(gone, false);
        assert_eq!(world.database.ask("SELECT sum(n), count(*) FROM one"), "60|3");
        world.set_there(gone, true);
    }
}
