//! A lost laptop: one cloud and the shares of the key bring dispersed tables back.

use std::fs;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use super::dispersed::{dispersed, set_there};
use super::stage::Stage;

pub const ALL: &str = "SELECT * FROM people ORDER BY id";

/// A database with rows at three folders, and the shares of its key.
pub fn told() -> (Stage, String) {
    let stage = dispersed();
    let ask = |sql: &str| stage.good(&["db", sql]);
    ask("INSERT INTO people SELECT value, 'name ' || value % 3, value * 1.5 FROM generate_series(1, 40) AS t(value)");
    ask("DELETE FROM people WHERE id % 4 = 0");
    ask("UPDATE people SET name = 'Ada' WHERE id = 7");
    ask("CREATE TABLE notes (id INT GENERATED ALWAYS AS IDENTITY, note TEXT NOT NULL CHECK (length(note) < 100)) \
         WITH (engine = 'dispersed', clouds = 'b, c', may_collude = 0, may_fail = 1)");
    ask("INSERT INTO notes (note) VALUES ('one'), ('two')");
    let rows = ask(ALL);
    (stage, rows)
}

/// The laptop is gone, with all that was on it.
pub fn lose(stage: &Stage) {
    fs::remove_file(stage.path("db")).expect("the database");
    fs::remove_dir_all(stage.path("state")).expect("its counter");
}

pub fn bring_back(stage: &Stage, cloud: &str) -> String {
    let told = stage.run(&["restore", "--from", cloud, "db", "--key-file", "shares"]);
    assert_eq!(told.code, 0, "{}", told.err);
    told.err
}

/// A command on another machine, which has a state of its own: how it ended, and what it said.
fn elsewhere(stage: &Stage, words: &[&str]) -> (Option<i32>, String, String) {
    let told = stage.command(words).env("COUNTERFOIL_STATE_DIR", stage.path("elsewhere")).output().expect("runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (told.status.code(), text(told.stdout), text(told.stderr))
}

/// The same, which ends well.
pub fn good_elsewhere(stage: &Stage, words: &[&str]) -> String {
    let (code, out, says) = elsewhere(stage, words);
    assert_eq!(code, Some(0), "{words:?}: {says}");
    out
}

/// Clouds have nothing of tables that are not at them: what they show does not take the place of a database that opens.
#[test]
fn a_database_that_opens_is_not_replaced_by_what_clouds_show() {
    let (stage, rows) = told();
    stage.good(&["db", "CREATE TABLE mine (id INT); INSERT INTO mine VALUES (1), (2)"]);
    let words = ["restore", "--from", "dir:a", "db", "--key-file", "shares"];
    stage.refused(&words, 1, &["this database is there, and opens", "move it away"]);
    assert_eq!(stage.ask("SELECT count(*) FROM mine"), "2");
    // What does not open any more is replaced.
    let mut bytes = stage.read("db");
    let end = bytes.len();
    bytes[end / 8..].fill(0);
    stage.write("db", bytes);
    assert_ne!(stage.run(&["db", "SELECT 1"]).code, 0);
    stage.good(&words);
    assert_eq!(stage.good(&["db", ALL]), rows);
}

/// A client on another machine, with a row that the first one has not heard of.
fn with_another_client() -> Stage {
    let (stage, _) = told();
    stage.good(&["key", "split", "db", "--need", "2", "--of", "3", "again"]);
    good_elsewhere(&stage, &["restore", "--from", "dir:a", "other", "--key-file", "again"]);
    good_elsewhere(&stage, &["other", "INSERT INTO people VALUES (2000, 'elsewhere', 2)"]);
    stage
}

#[test]
fn what_is_written_elsewhere_claims_no_table_that_was_brought_back() {
    let (stage, _) = told();
    lose(&stage);
    bring_back(&stage, "dir:b");
    // Once clouds hear of all that was brought back.
    stage.good(&["db", "INSERT INTO people VALUES (2000, 'first', 2)"]);
    // Whoever claims a table hears that a cloud is away.
    set_there(&stage, "b", false);
    let told = stage.run(&["db", "INSERT INTO people VALUES (3000, 'other', 3)"]);
    assert!(
        told.code == 0 && told.err.contains("table people: cloud b") && !told.err.contains("notes"),
        "{}",
        told.err
    );
    set_there(&stage, "b", true);
    for table in ["people", "notes"] {
        let repaired = stage.good(&["db", &format!("REPAIR TABLE {table}")]);
        assert!(repaired.lines().skip(1).all(|line| line.ends_with(",complete")), "{repaired}");
    }
}

#[test]
fn another_process_of_a_database_takes_away_no_lease_of_it() {
    let stage = with_another_client();
    stage.good(&["db", "REPAIR TABLE people"]);
    let mut shell = stage.spawn(&["sql", "db", "-f", "-", "--no-header"]);
    let (mut words, mut told) = (shell.stdin.take().expect("its input"), shell.stdout.take().expect("its output"));
    let mut say = |sql: &str| {
        words.write_all(format!("{sql};\nSELECT 'said';\n").as_bytes()).expect("it reads");
        words.flush().expect("it reads");
        let mut seen = Vec::new();
        while !seen.ends_with(b"said\n") {
            let mut byte = [0];
            assert_eq!(told.read(&mut byte).expect("it writes"), 1, "{}", String::from_utf8_lossy(&seen));
            seen.push(byte[0]);
        }
    };
    say("BEGIN");
    say("INSERT INTO people VALUES (3000, 'open', 3)");
    let early = ["db", "INSERT INTO people VALUES (3001, 'early', 3)", "--lock-timeout", "1"];
    stage.refused(&early, 4, &["is writing"]);
    // Its claim stands: whoever is another client waits.
    let others = ["other", "INSERT INTO people VALUES (4000, 'other', 4)"];
    let mut command = stage.command(&others);
    let mut waits = command.env("COUNTERFOIL_STATE_DIR", stage.path("elsewhere")).spawn().expect("starts");
    std::thread::sleep(Duration::from_secs(3));
    assert!(waits.try_wait().expect("its state").is_none(), "it does not wait");
    say("COMMIT");
    drop(words);
    assert!(shell.wait().expect("ends").success() && waits.wait().expect("ends").success());
    for ask in [stage.good(&["db", ALL]), good_elsewhere(&stage, &["other", ALL])] {
        assert!(ask.contains("3000,open") && ask.contains("4000,other"), "{ask}");
    }
    repaired(&stage);
    assert!(good_elsewhere(&stage, &["other", ALL]).contains("4000,other"));
}

fn repaired(stage: &Stage) {
    let complete = "cloud,rows_put,rows_removed,state\na,0,0,complete\nb,0,0,complete\nc,0,0,complete\n";
    assert_eq!(stage.good(&["db", "REPAIR TABLE people"]), complete);
}

#[test]
fn what_was_exported_makes_its_clouds_anew() {
    let (stage, rows) = told();
    stage.good(&["export", "db", "--all", "all"]);
    stage.good(&["init", "other"]);
    stage.refused(&["import", "other", "--all", "all"], 1, &["key split"]);
    stage.good(&["key", "split", "other", "--need", "2", "--of", "3", "other-shares"]);
    stage.good(&["import", "other", "--all", "all"]);
    assert_eq!(stage.good(&["other", ALL]), rows);
    // Both lie at the same clouds, and neither takes the other's.
    assert_eq!(stage.good(&["db", ALL]), rows);
    assert!(stage.good(&["other", "SHOW CREATE TABLE people"]).contains("FOR (sum)"));
}

#[test]
fn salvage_says_that_rows_lie_elsewhere() {
    let (stage, _) = told();
    let saved = stage.run(&["salvage", "db", "saved"]);
    assert_eq!(saved.code, 0, "{}", saved.err);
    for part in ["30 of its rows lie at clouds a, b, c", "restore --from", "something is missing"] {
        assert!(saved.err.contains(part), "{part}: {}", saved.err);
    }
}

#[test]
fn one_cloud_and_the_shares_bring_everything_back() {
    let (stage, rows) = told();
    lose(&stage);
    let told = bring_back(&stage, "dir:b");
    assert!(told.contains("table people: 30 rows") && told.contains("table notes: 2 rows"), "{told}");
    // What opened it opens it again: the key file, and the shares.
    assert_eq!(stage.good(&["db", ALL]), rows);
    assert_eq!(stage.good(&["sql", "db", "-c", ALL, "--key-file", "shares"]), rows);
    assert_eq!(stage.good(&["db", "SELECT id, note FROM notes ORDER BY id"]), "id,note\n1,one\n2,two\n");
    repaired(&stage);
    stage.good(&["db", "REPAIR TABLE notes"]);
    // And it goes on: keys, checks, identities and sums are what they were.
    stage.refused(&["db", "INSERT INTO people VALUES (7, 'again', 0)"], 1, &["people_pkey"]);
    stage.refused(&["db", "INSERT INTO notes (note) VALUES (repeat('x', 100))"], 1, &["check"]);
    stage.good(&["db", "INSERT INTO notes (note) VALUES ('three'); INSERT INTO people VALUES (100, 'Eve', 1)"]);
    assert_eq!(stage.good(&["db", "SELECT id FROM notes WHERE note = 'three'"]), "id\n3\n");
    assert_eq!(
        stage.good(&["db", "SELECT count(*), sum(id) FROM people WHERE name = 'Ada'"]),
        "count(*),sum(id)\n1,7\n"
    );
    assert_eq!(stage.good(&["db", "SELECT count(*), sum(salary) FROM people"]), "count(*),sum(salary)\n31,901.00\n");
    stage.good(&["verify", "db"]);
    assert!(stage.good(&["db", "SELECT kind FROM counterfoil.incidents"]).contains("restored"));
    // Once more, from another cloud, with what came since.
    let rows = stage.good(&["db", ALL]);
    lose(&stage);
    bring_back(&stage, "dir:c");
    assert_eq!(stage.good(&["db", ALL]), rows);
    repaired(&stage);
    stage.good(&["db", "DROP TABLE people"]);
    stage.good(&["db", "DROP TABLE notes"]);
    for cloud in ["a", "b", "c"] {
        let left: Vec<_> =
            fs::read_dir(stage.path(cloud)).expect("a cloud").map(|entry| entry.expect("one").path()).collect();
        let files: usize = left.iter().map(|folder| fs::read_dir(folder).map_or(1, Iterator::count)).sum();
        assert_eq!(files, 0, "{cloud}: {left:?}");
    }
}

#[test]
fn of_clouds_that_differ_the_newest_counts_and_the_others_are_named() {
    let (stage, _) = told();
    let copy = |from: &str, to: &str| {
        let copied = std::process::Command::new("cp").arg("-r").arg(stage.path(from)).arg(stage.path(to)).status();
        assert!(copied.expect("runs").success());
    };
    // Cloud a is put back to what it was before some rows came; b is away; what c has is newest.
    copy("a", "yesterday");
    stage.good(&["db", "INSERT INTO people VALUES (200, 'newest', 9)"]);
    let rows = stage.good(&["db", ALL]);
    fs::remove_dir_all(stage.path("a")).expect("a");
    fs::rename(stage.path("yesterday"), stage.path("a")).expect("yesterday's");
    set_there(&stage, "b", false);
    lose(&stage);
    let told = bring_back(&stage, "dir:a");
    assert!(told.contains("table people: the cloud that was named shows version"), "{told}");
    assert!(told.contains("cloud b could not be asked"), "{told}");
    set_there(&stage, "b", true);
    assert_eq!(stage.good(&["db", ALL]), rows);
    let told = stage.good(&["db", "REPAIR TABLE people"]);
    assert!(told.contains("a,1,0,complete"), "{told}");
    repaired(&stage);
    // Cloud a knows of the newest version again, by itself.
    lose(&stage);
    set_there(&stage, "b", false);
    set_there(&stage, "c", false);
    let told = bring_back(&stage, "dir:a");
    assert!(told.contains("table people: 31 rows"), "{told}");
    // One cloud alone is fewer than what cells lie at, and more than may be missing: it is told when the others are away.
    stage.refused(&["db", ALL], 2, &["out of reach"]);
    set_there(&stage, "b", true);
    assert_eq!(stage.good(&["db", ALL]), rows);
}

#[test]
fn a_database_that_is_replaced_is_refused_from_then_on() {
    let (stage, rows) = told();
    fs::rename(stage.path("db"), stage.path("old")).expect("moved away");
    bring_back(&stage, "dir:a");
    assert_eq!(stage.good(&["db", ALL]), rows);
    fs::rename(stage.path("old"), stage.path("db")).expect("the one before");
    stage.refused(&["db", ALL], 3, &["counter"]);
}

#[test]
fn what_cannot_be_brought_back_is_told() {
    let (stage, _) = told();
    let words = |from: &str, db: &str, key: &str| ["restore", "--from", from, db, "--key-file", key].map(str::to_owned);
    let refused = |from: &str, db: &str, key: &str, code: i32, says: &[&str]| {
        let words = words(from, db, key);
        stage.refused(&words.each_ref().map(String::as_str), code, says);
    };
    refused("dir:a", "other", "k", 1, &["shares of the key are needed", "key split"]);
    fs::create_dir(stage.path("empty")).expect("a folder");
    refused("dir:empty", "other", "shares", 1, &["shows no table", "right cloud"]);
    refused("dir:nowhere", "other", "shares", 1, &["no such folder"]);
    refused("ftp://example.com", "other", "shares", 1, &["dir:PATH"]);
    stage.write("plain", "no database");
    refused("dir:a", "plain", "shares", 1, &["plain"]);
    stage.refused(&["restore", "--from", "dir:a", "one", "two"], 1, &["takes the place of the backup"]);
    stage.refused(&["restore", "copy"], 1, &["where is the database to be"]);
    // Shares of another database, and entries that were changed.
    stage.good(&["init", "second"]);
    stage.good(&["key", "split", "second", "--need", "2", "--of", "2", "others"]);
    refused("dir:a", "other", "others", 1, &["shows no table"]);
    assert!(!stage.path("other").exists() && !stage.path("other.creating").exists());
}

#[test]
fn rows_wait_for_shares_unless_nobody_wants_them() {
    let stage = Stage::with_database();
    fs::create_dir(stage.path("a")).expect("a cloud");
    stage.good(&["db", "CREATE CLOUD a OPTIONS (url 'dir:a')"]);
    stage.good(&["db", "CREATE TABLE t (a INT) WITH (engine = 'dispersed', clouds = 'a')"]);
    stage.refused(
        &["db", "INSERT INTO t VALUES (1)"],
        1,
        &["no shares of its key were made", "key split", "key_backup"],
    );
    let none = "CREATE TABLE n (a INT) WITH (engine = 'dispersed', clouds = 'a', key_backup = 'none')";
    stage.good(&["db", none]);
    stage.good(&["db", "INSERT INTO n VALUES (1)"]);
    stage.refused(&["db", &none.replace("'none'", "'x'").replace(" n ", " m ")], 1, &["'split'", "'none'"]);
    stage.good(&["key", "split", "db", "--need", "2", "--of", "3", "shares"]);
    stage.good(&["db", "INSERT INTO t VALUES (1)"]);
    // A new key of the data has no shares.
    stage.good(&["rekey", "db", "--data"]);
    stage.refused(&["db", "INSERT INTO t VALUES (2)"], 1, &["key split"]);
    stage.good(&["key", "split", "db", "--need", "2", "--of", "3", "new"]);
    stage.good(&["db", "INSERT INTO t VALUES (2)"]);
    lose(&stage);
    // Nor does what the old shares would open lie there any more.
    stage.refused(&["restore", "--from", "dir:a", "db", "--key-file", "shares"], 1, &["no table"]);
    bring_back_with(&stage, "new");
    assert_eq!(stage.good(&["db", "SELECT a FROM t ORDER BY a"]), "a\n1\n2\n");
    stage.refused(&["db", "SELECT a FROM n"], 1, &["n", "not found"]);
}

pub fn bring_back_with(stage: &Stage, shares: &str) {
    stage.good(&["restore", "--from", "dir:a", "db", "--key-file", shares]);
}

#[test]
fn two_machines_change_one_table_in_turns() {
    let (stage, _) = told();
    good_elsewhere(&stage, &["restore", "--from", "dir:a", "other", "--key-file", "shares"]);
    let count = "SELECT count(*), sum(salary) FROM people";
    for round in 1..=3 {
        let (own, others) = (1000 + round, 2000 + round);
        stage.good(&["db", &format!("INSERT INTO people VALUES ({own}, 'here', 1)")]);
        good_elsewhere(&stage, &["other", &format!("INSERT INTO people VALUES ({others}, 'elsewhere', 2)")]);
        let taken = format!("INSERT INTO people VALUES ({own}, 'again', 2)");
        let (code, _, says) = elsewhere(&stage, &["other", &taken]);
        assert!(code == Some(1) && says.contains("people_pkey"), "{says}");
        let counted = good_elsewhere(&stage, &["other", count]);
        assert!(counted.contains(&format!("\n{},", 30 + 2 * round)), "{counted}");
        let told = stage.run(&["db", count]);
        assert_eq!((told.out, told.err), (counted, String::new()));
    }
    // Each of them is brought back as the other one knows it.
    let rows = good_elsewhere(&stage, &["other", ALL]);
    assert_eq!(stage.good(&["db", ALL]), rows);
    lose(&stage);
    bring_back(&stage, "dir:c");
    assert_eq!(stage.good(&["db", ALL]), rows);
}

#[test]
fn a_client_of_a_key_that_was_changed_destroys_nothing() {
    let stage = with_another_client();
    stage.good(&["rekey", "db", "--data"]);
    stage.good(&["key", "split", "db", "--need", "2", "--of", "3", "new"]);
    stage.good(&["db", "INSERT INTO people VALUES (1000, 'here', 1)"]);
    for statement in ["INSERT INTO people VALUES (3000, 'lost', 2)", "REPAIR TABLE people"] {
        let (code, _, says) = elsewhere(&stage, &["other", statement]);
        assert!(code == Some(4) && says.contains("rekey --data") && says.contains("restore --from"), "{says}");
    }
    assert_eq!(stage.good(&["db", "SELECT count(*) FROM people"]), "count(*)\n32\n");
    // Any one of them shows it, also to who takes what it has for what counts, and to who only reads.
    for cloud in ["a", "b", "c"] {
        let away = ["a", "b", "c"].into_iter().filter(|other| *other != cloud);
        away.clone().for_each(|other| set_there(&stage, other, false));
        for statement in ["TRUNCATE people", "REPAIR TABLE people", "REPAIR TABLE people TAKE OVER"] {
            let (code, _, says) = elsewhere(&stage, &["other", statement]);
            assert!(code == Some(4) && says.contains("rekey --data"), "{statement}: {says}");
        }
        away.for_each(|other| set_there(&stage, other, true));
    }
    let (_, _, says) = elsewhere(&stage, &["other", ALL]);
    assert!(says.contains("another client has changed the key"), "{says}");
    // Where one cloud has not heard of the new key yet, the others have.
    set_there(&stage, "c", false);
    good_elsewhere(&stage, &["restore", "--from", "dir:b", "third", "--key-file", "new"]);
    set_there(&stage, "c", true);
    set_there(&stage, "a", false);
    stage.good(&["rekey", "db", "--data"]);
    stage.good(&["key", "split", "db", "--need", "2", "--of", "3", "newer"]);
    stage.good(&["db", "DELETE FROM people WHERE id = 1000"]);
    set_there(&stage, "a", true);
    let (code, _, says) = elsewhere(&stage, &["third", "INSERT INTO people VALUES (3000, 'lost', 2)"]);
    assert!(code == Some(4) && says.contains("rekey --data"), "{says}");
    stage.good(&["db", "INSERT INTO people VALUES (1000, 'here', 1)"]);
    assert_eq!(stage.good(&["db", "SELECT count(*) FROM people"]), "count(*)\n32\n");
}

#[test]
fn a_key_that_is_changed_by_who_is_behind_destroys_nothing() {
    let stage = with_another_client();
    // It has not heard of that row, nor does it hear of it under the new key before it looks.
    stage.good(&["rekey", "db", "--data"]);
    stage.good(&["key", "split", "db", "--need", "2", "--of", "3", "new"]);
    stage.good(&["db", "INSERT INTO people VALUES (1000, 'here', 1)"]);
    assert_eq!(stage.good(&["db", "SELECT count(*) FROM people"]), "count(*)\n32\n");
    lose(&stage);
    let told = stage.run(&["restore", "--from", "dir:b", "db", "--key-file", "new"]);
    assert_eq!(told.code, 0, "{}", told.err);
    assert_eq!(stage.good(&["db", "SELECT count(*) FROM people"]), "count(*)\n32\n");
    // Nor does one that was brought back and has not been compared with its clouds.
    good_elsewhere(&stage, &["restore", "--from", "dir:b", "third", "--key-file", "new"]);
    stage.good(&["db", "INSERT INTO people VALUES (4000, 'here', 1)"]);
    good_elsewhere(&stage, &["rekey", "third", "--data"]);
    good_elsewhere(&stage, &["key", "split", "third", "--need", "2", "--of", "3", "newest"]);
    let complete = "cloud,rows_put,rows_removed,state\na,0,0,complete\nb,0,0,complete\nc,0,0,complete\n";
    assert_eq!(good_elsewhere(&stage, &["third", "REPAIR TABLE people"]), complete);
    assert_eq!(good_elsewhere(&stage, &["third", "SELECT count(*) FROM people"]), "count(*)\n33\n");
}

#[test]
fn clients_of_a_new_key_take_turns_while_a_cloud_has_not_heard_of_it() {
    let (stage, _) = told();
    set_there(&stage, "a", false);
    stage.good(&["rekey", "db", "--data"]);
    stage.good(&["key", "split", "db", "--need", "2", "--of", "3", "new"]);
    stage.good(&["db", "INSERT INTO people VALUES (1000, 'here', 1)"]);
    good_elsewhere(&stage, &["restore", "--from", "dir:b", "other", "--key-file", "new"]);
    for round in 1..=3 {
        let own = format!("INSERT INTO people VALUES ({}, 'here', 1)", 1000 + round);
        stage.good(&["db", &own]);
        good_elsewhere(&stage, &["other", &format!("INSERT INTO people VALUES ({}, 'elsewhere', 2)", 2000 + round)]);
    }
    set_there(&stage, "a", true);
    let repaired = stage.good(&["db", "REPAIR TABLE people"]);
    assert!(repaired.lines().skip(1).all(|line| line.ends_with(",complete")), "{repaired}");
    let rows = stage.good(&["db", ALL]);
    assert_eq!(rows.lines().count(), 1 + 30 + 7, "{rows}");
    assert_eq!(good_elsewhere(&stage, &["other", ALL]), rows);
}

#[test]
fn who_drops_a_table_that_others_go_on_with_drops_it_at_home_alone() {
    let stage = with_another_client();
    stage.good(&["backup", "db", "copy"]);
    // Made of a copy it is another database, which has no say at clouds.
    stage.good(&["restore", "copy", "new", "--as-new"]);
    let rows = stage.good(&["new", "SELECT count(*) FROM people"]);
    for statement in ["REPAIR TABLE people", "REPAIR TABLE people TAKE OVER", "DELETE FROM people"] {
        stage.refused(&["new", statement], 4, &["of which this one was made", "DROP TABLE people"]);
    }
    assert_eq!(stage.good(&["new", "SELECT count(*) FROM people"]), rows);
    let told = stage.run(&["new", "DROP TABLE people"]);
    assert!(told.code == 0 && told.err.contains("its clouds keep what they have"), "{}", told.err);
    // So has one of a key that was changed.
    stage.good(&["rekey", "db", "--data"]);
    stage.good(&["key", "split", "db", "--need", "2", "--of", "3", "newer"]);
    stage.good(&["db", "INSERT INTO people VALUES (1000, 'here', 1)"]);
    let (code, _, says) = elsewhere(&stage, &["other", "DROP TABLE people"]);
    assert!(code == Some(0) && says.contains("its clouds keep what they have"), "{says}");
    assert_eq!(stage.good(&["db", "SELECT count(*) FROM people"]), "count(*)\n32\n");
    repaired(&stage);
}

#[test]
fn what_nobody_here_knows_stays_at_a_cloud_that_does_not_show_what_it_was_told() {
    let stage = dispersed();
    stage.good(&[
        "db",
        "CREATE TABLE u (id INT) WITH (engine = 'dispersed', clouds = 'b, c', may_fail = 0, may_collude = 0)",
    ]);
    stage.good(&["db", "INSERT INTO u VALUES (1)"]);
    good_elsewhere(&stage, &["restore", "--from", "dir:b", "other", "--key-file", "shares"]);
    good_elsewhere(&stage, &["other", "REPAIR TABLE u"]);
    stage.good(&["db", "INSERT INTO u VALUES (2)"]);
    // The folder of this name at both clouds is the catalogue: one cloud has it damaged, and the other one is away.
    let names = |cloud: &str| {
        let entries = fs::read_dir(stage.path(cloud)).expect("a cloud");
        entries.map(|entry| entry.expect("one").file_name()).collect::<std::collections::BTreeSet<_>>()
    };
    let catalogue = names("b").intersection(&names("c")).next().expect("a catalogue").clone();
    for file in fs::read_dir(stage.path("c").join(catalogue)).expect("a folder") {
        let path = file.expect("one").path();
        let mut bytes = fs::read(&path).expect("a file");
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        fs::write(path, bytes).expect("written");
    }
    set_there(&stage, "b", false);
    let (_, out, says) = elsewhere(&stage, &["other", "REPAIR TABLE u"]);
    assert!(out.contains("\nc,0,0,"), "{out}{says}");
    set_there(&stage, "b", true);
    stage.good(&["db", "REPAIR TABLE u EXTENDED"]);
    assert_eq!(stage.good(&["db", "SELECT id FROM u ORDER BY id"]), "id\n1\n2\n");
}

#[test]
fn a_row_that_a_cloud_lacks_is_missed_by_no_answer() {
    let stage = dispersed();
    let with = "WITH (engine = 'dispersed', clouds = 'a, b, c', may_fail = 1, may_collude = 1)";
    stage.good(&["db", &format!("CREATE TABLE t (id INT, q TEXT FOR (equality), r TEXT FOR (equality)) {with}")]);
    stage.good(&["db", "INSERT INTO t VALUES (1, 'one', 'one')"]);
    good_elsewhere(&stage, &["restore", "--from", "dir:a", "other", "--key-file", "shares"]);
    set_there(&stage, "a", false);
    stage.good(&["db", "INSERT INTO t VALUES (2, 'two', 'two')"]);
    assert_eq!(good_elsewhere(&stage, &["other", "SELECT count(*) FROM t"]), "count(*)\n2\n");
    set_there(&stage, "a", true);
    good_elsewhere(&stage, &["other", "INSERT INTO t VALUES (3, 'three', 'three')"]);
    stage.good(&["db", "INSERT INTO t VALUES (4, 'four', 'four')"]);
    // Cloud a was given the row by the other one, which told the next version.
    for (away, column) in [("b", "q"), ("b", "r"), ("c", "q"), ("c", "r")] {
        set_there(&stage, away, false);
        let told = stage.good(&["db", &format!("SELECT count(*) FROM t WHERE {column} = 'two'")]);
        assert_eq!(told, "count(*)\n1\n", "{away}, {column}");
        set_there(&stage, away, true);
    }
    stage.good(&["db", "REPAIR TABLE t"]);
    set_there(&stage, "c", false);
    assert_eq!(stage.good(&["db", "SELECT count(*) FROM t WHERE q = 'two'"]), "count(*)\n1\n");
}

#[test]
fn a_table_that_was_dropped_while_a_cloud_was_away_goes_there_whatever_the_key() {
    let (stage, _) = told();
    let with = "WITH (engine = 'dispersed', clouds = 'a, b', may_fail = 0, may_collude = 0)";
    stage.good(&["db", &format!("CREATE TABLE v (id INT) {with}")]);
    stage.good(&["db", "INSERT INTO v VALUES (7)"]);
    set_there(&stage, "a", false);
    stage.good(&["db", "DROP TABLE v"]);
    stage.good(&["rekey", "db", "--data"]);
    stage.good(&["key", "split", "db", "--need", "2", "--of", "3", "new"]);
    set_there(&stage, "a", true);
    // Whatever is done next.
    stage.good(&["db", "SELECT 1"]);
    good_elsewhere(&stage, &["restore", "--from", "dir:a", "older", "--key-file", "shares"]);
    let (code, _, says) = elsewhere(&stage, &["older", "SELECT * FROM v"]);
    assert!(code == Some(1) && says.contains("table 'v' not found"), "{says}");
    stage.good(&["db", "DROP TABLE people, notes"]);
    for cloud in ["a", "b", "c"] {
        let left = there(&stage, cloud);
        // The old catalogue says there that tables were told under another key.
        assert!(left.len() <= 1, "{cloud}: {left:?}");
    }
}

/// What a cloud has, by the names of its folders.
fn there(stage: &Stage, cloud: &str) -> std::collections::BTreeSet<std::ffi::OsString> {
    let entries = fs::read_dir(stage.path(cloud)).expect("a cloud").map(|entry| entry.expect("one"));
    // The catalogue's folder stays when nothing is in it any more.
    let has_files = |entry: &fs::DirEntry| fs::read_dir(entry.path()).expect("a folder").next().is_some();
    entries.filter(has_files).map(|entry| entry.file_name()).collect()
}

#[test]
fn a_database_made_of_another_one_drops_nothing_for_it() {
    let (stage, _) = told();
    stage.good(&["db", "DROP TABLE notes"]);
    let before = there(&stage, "a");
    set_there(&stage, "a", false);
    stage.good(&["db", "DROP TABLE people"]);
    stage.good(&["backup", "db", "copy"]);
    stage.good(&["restore", "copy", "new", "--as-new"]);
    set_there(&stage, "a", true);
    stage.good(&["new", "SELECT 1"]);
    assert_eq!(there(&stage, "a"), before);
    stage.good(&["db", "SELECT 1"]);
    assert!(there(&stage, "a").is_empty(), "{:?}", there(&stage, "a"));
}

#[test]
fn a_database_made_of_another_one_changes_nothing_that_no_catalogue_shows() {
    let stage = dispersed();
    let with = "WITH (engine = 'dispersed', clouds = 'a, b, c'";
    stage.good(&["db", &format!("CREATE TABLE alone (id INT, n INT FOR (sum)) {with}, key_backup = 'none')")]);
    stage.good(&["db", "INSERT INTO alone VALUES (1, 10), (2, 20)"]);
    // Of one that is as young no cloud has been told.
    ["a", "b", "c"].into_iter().for_each(|cloud| set_there(&stage, cloud, false));
    stage.good(&["db", &format!("CREATE TABLE young (id INT, n INT FOR (sum)) {with})")]);
    stage.good(&["db", "INSERT INTO young VALUES (3, 300)"]);
    stage.good(&["backup", "db", "copy"]);
    stage.good(&["restore", "copy", "new", "--as-new"]);
    ["a", "b", "c"].into_iter().for_each(|cloud| set_there(&stage, cloud, true));
    for table in ["alone", "young"] {
        for (before, behind) in
            [("DELETE FROM", ""), ("INSERT INTO", "VALUES (9, 9)"), ("TRUNCATE", ""), ("REPAIR TABLE", "TAKE OVER")]
        {
            stage.refused(&["new", &format!("{before} {table} {behind}")], 4, &["of which this one was made"]);
        }
    }
    assert_eq!(stage.good(&["new", "SELECT sum(n) FROM alone"]), "sum(n)\n30\n");
    assert_eq!(stage.good(&["new", "SELECT sum(n) FROM young"]), "sum(n)\n300\n");
    for table in ["alone", "young"] {
        let told = stage.run(&["new", &format!("DROP TABLE {table}")]);
        assert!(told.code == 0 && told.err.contains("its clouds keep what they have"), "{}", told.err);
        stage.good(&["new", "SELECT 1"]);
    }
    assert_eq!(stage.good(&["db", "SELECT sum(n), count(id) FROM alone"]), "sum(n),count(id)\n30,2\n");
    assert_eq!(stage.good(&["db", "SELECT sum(n), count(id) FROM young"]), "sum(n),count(id)\n300,1\n");
    // What it makes itself is its own.
    stage.good(&["new", &format!("CREATE TABLE own (id INT, n INT FOR (sum)) {with}, key_backup = 'none')")]);
    stage.good(&["new", "INSERT INTO own VALUES (5, 50000)"]);
    assert_eq!(stage.good(&["new", "SELECT sum(n) FROM own"]), "sum(n)\n50000\n");
}

#[test]
fn a_dropped_table_stays_with_whoever_has_gone_on_under_another_key() {
    let stage = with_another_client();
    ["a", "b", "c"].into_iter().for_each(|cloud| set_there(&stage, cloud, false));
    stage.good(&["db", "DROP TABLE people"]);
    ["a", "b", "c"].into_iter().for_each(|cloud| set_there(&stage, cloud, true));
    good_elsewhere(&stage, &["rekey", "other", "--data"]);
    good_elsewhere(&stage, &["key", "split", "other", "--need", "2", "--of", "3", "others"]);
    good_elsewhere(&stage, &["other", "INSERT INTO people VALUES (3000, 'elsewhere', 3)"]);
    let told = stage.run(&["db", "SELECT 1"]);
    assert!(told.code == 0 && told.err.contains("another client has gone on with it"), "{}", told.err);
    assert_eq!(good_elsewhere(&stage, &["other", "SELECT count(*) FROM people"]), "count(*)\n32\n");
    let repaired = good_elsewhere(&stage, &["other", "REPAIR TABLE people"]);
    assert!(repaired.lines().skip(1).all(|line| line.ends_with(",0,0,complete")), "{repaired}");
    let told = stage.run(&["db", "SELECT 1"]);
    assert!(!told.err.contains("another client"), "it is said once: {}", told.err);
}

#[test]
fn who_brings_a_database_back_ends_what_a_change_of_its_key_began() {
    let (stage, _) = told();
    set_there(&stage, "a", false);
    stage.good(&["rekey", "db", "--data"]);
    stage.good(&["key", "split", "db", "--need", "2", "--of", "3", "new"]);
    stage.good(&["db", "INSERT INTO people VALUES (1000, 'here', 1)"]);
    lose(&stage);
    stage.good(&["restore", "--from", "dir:b", "db", "--key-file", "new"]);
    set_there(&stage, "a", true);
    stage.good(&["db", "INSERT INTO people VALUES (1001, 'again', 1)"]);
    stage.refused(&["restore", "--from", "dir:a", "older", "--key-file", "shares"], 1, &["shows no table"]);
    repaired(&stage);
}

#[test]
fn shares_of_a_new_key_bring_tables_back_as_soon_as_they_are_made() {
    let (stage, rows) = told();
    stage.good(&["rekey", "db", "--data"]);
    stage.good(&["key", "split", "db", "--need", "2", "--of", "3", "new"]);
    lose(&stage);
    let words = ["restore", "--from", "dir:a", "db", "--key-file", "shares"];
    stage.refused(&words, 1, &["shows no table", "it was changed since", "key split"]);
    stage.good(&["restore", "--from", "dir:a", "db", "--key-file", "new"]);
    assert_eq!(stage.good(&["db", ALL]), rows);
    repaired(&stage);
}
