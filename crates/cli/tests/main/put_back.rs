//! Copies of a database that were put back while its clouds went on: they undo nothing, and say what they do not know.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::brought_back::{ALL, bring_back, good_elsewhere, lose, told};
use super::dispersed::set_there;
use super::stage::Stage;

#[test]
fn a_copy_that_was_put_back_lays_nothing_anew_over_what_it_does_not_know() {
    let (stage, _) = told();
    stage.good(&["backup", "db", "copy"]);
    stage.good(&["db", "REFRESH TABLE people"]);
    stage.good(&["db", "INSERT INTO people VALUES (2000, 'later', 2)"]);
    let rows = stage.good(&["db", ALL]);
    fs::remove_file(stage.path("db")).expect("the database");
    stage.good(&["restore", "copy", "db"]);
    for anew in ["REFRESH TABLE people", "ALTER TABLE people SET (max_rows = 100000)"] {
        stage.refused(&["db", anew], 1, &["put back", "REPAIR TABLE people", "nothing has changed"]);
    }
    // Whoever asks for rows, of a key as of values, says what REPAIR says, and blames no cloud.
    for sql in ["REPAIR TABLE people", ALL, "SELECT sum(salary) FROM people", "SELECT name FROM people WHERE id = 7"] {
        let says = stage.refused(&["db", sql], 1, &["altered or refreshed after this copy", "restore --from"]);
        assert!(!says.contains("does not show"), "{sql}: {says}");
    }
    for sql in ["UPDATE people SET name = 'x' WHERE id = 7", "INSERT INTO people VALUES (3000, 'went on', 3)"] {
        stage.refused(&["db", sql], 1, &["would undo", "restore --from", "nothing has changed"]);
    }
    // The only catalogue that leads to the newest rows is there still.
    for (cloud, name) in [("dir:a", "from-a"), ("dir:b", "from-b"), ("dir:c", "from-c")] {
        stage.good(&["restore", "--from", cloud, name, "--key-file", "shares"]);
        assert_eq!(stage.good(&[name, ALL]), rows, "from {cloud}");
    }
}

#[test]
fn who_was_put_back_takes_what_clouds_were_told_of_since() {
    let (stage, _) = told();
    stage.good(&["backup", "db", "copy"]);
    stage.good(&["db", "REFRESH TABLE people"]);
    stage.good(&["db", "INSERT INTO people VALUES (2000, 'later', 2); DELETE FROM people WHERE id = 1"]);
    let rows = stage.good(&["db", ALL]);
    fs::remove_file(stage.path("db")).expect("the database");
    stage.good(&["restore", "copy", "db"]);
    stage.refused(
        &["db", "INSERT INTO people VALUES (3000, 'x', 3)"],
        1,
        &["would undo", "REPAIR TABLE people GIVE WAY"],
    );
    let repaired = stage.good(&["db", "REPAIR TABLE people GIVE WAY"]);
    assert_eq!(repaired.matches("complete").count(), 3, "{repaired}");
    assert_eq!(stage.good(&["db", ALL]), rows);
    stage.good(&["db", "INSERT INTO people VALUES (3000, 'went on', 3)"]);
    let rows = stage.good(&["db", ALL]);
    stage.good(&["restore", "--from", "dir:a", "from-a", "--key-file", "shares"]);
    assert_eq!(stage.good(&["from-a", ALL]), rows);
}

#[test]
fn a_copy_from_before_rows_went_says_that_it_is_older_and_what_to_do() {
    let (stage, _) = told();
    stage.good(&["backup", "db", "copy"]);
    stage.good(&["db", "DELETE FROM people WHERE id IN (1, 2)"]);
    // There are as many rows as the copy knows, and others.
    stage.good(&[
        "db",
        "UPDATE people SET salary = salary + 1 WHERE id = 3; INSERT INTO people VALUES (90, 'x', 1), (91, 'y', 2)",
    ]);
    let rows = stage.good(&["db", ALL]);
    fs::remove_file(stage.path("db")).expect("the database");
    stage.good(&["restore", "copy", "db"]);
    for sql in [ALL, "SELECT sum(salary) FROM people"] {
        let says = stage.refused(&["db", sql], 1, &["older than what its clouds have", "REPAIR TABLE people"]);
        assert!(!says.contains("does not show"), "{sql}: {says}");
    }
    stage.refused(&["db", "INSERT INTO people VALUES (3000, 'went on', 3)"], 1, &["would undo", "REPAIR TABLE people"]);
    let told = stage.run(&["db", "REPAIR TABLE people"]);
    assert!(told.code == 0 && told.err.contains("are gone here, too: 3"), "{}", told.err);
    let left = stage.good(&["db", ALL]);
    assert!(left.lines().count() == 1 + 27 && left.lines().all(|line| rows.contains(line)), "{left}");
}

/// The files below a folder.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { BTreeSet::from([path]) }).collect()
}

/// The files that a statement that adds rows puts at a cloud, but for its catalogue, of which others are replaced.
fn added(stage: &Stage, cloud: &str, sql: &str) -> Vec<PathBuf> {
    let before = files(&stage.path(cloud));
    stage.good(&["db", sql]);
    let after = files(&stage.path(cloud));
    let replaced: BTreeSet<_> = before.difference(&after).map(|path| path.parent()).collect();
    after.difference(&before).filter(|path| !replaced.contains(&path.parent())).cloned().collect()
}

/// An older copy of a database that has gone on since takes its place.
fn put_back(stage: &Stage) {
    fs::remove_file(stage.path("db")).expect("the database");
    stage.good(&["restore", "copy", "db"]);
}

#[test]
fn who_lacks_rows_is_named_also_by_a_copy_that_is_older() {
    for (cloud, other) in [("a", "b"), ("b", "c"), ("c", "a")] {
        let (stage, _) = told();
        let lost = added(&stage, cloud, "INSERT INTO people VALUES (50, 'x', 1), (51, 'y', 2)");
        assert!(!lost.is_empty(), "{cloud}");
        stage.good(&["backup", "db", "copy"]);
        stage.good(&["db", "INSERT INTO people VALUES (2000, 'later', 2)"]);
        put_back(&stage);
        lost.iter().for_each(|path| fs::remove_file(path).expect("a file"));
        // All clouds that have a column are asked.
        let sql = "SELECT count(id), count(name), count(salary) FROM people OPTIMIZE FOR RELIABILITY QUORUM 1";
        let told = stage.run(&["db", sql]);
        assert_eq!(told.code, 0, "{}", told.err);
        assert!(told.err.contains(&format!("cloud {cloud}: it does not show rows")), "{}", told.err);
        // What another one may have that is away has nobody let go of.
        set_there(&stage, other, false);
        let told = stage.run(&["db", ALL]);
        let says = &told.err;
        assert!(told.code != 0 && says.contains("cannot be had") && !says.contains("older than"), "{says}");
        set_there(&stage, other, true);
    }
}

#[test]
fn a_copy_that_is_older_says_so_after_it_has_told_something_too() {
    let (stage, _) = told();
    stage.good(&["backup", "db", "copy"]);
    stage.good(&["db", "DELETE FROM notes WHERE note = 'one'"]);
    put_back(&stage);
    for _ in 0..2 {
        let says = stage.refused(&["db", "SELECT * FROM notes"], 1, &["older than what its clouds have"]);
        assert!(!says.contains("does not show"), "{says}");
        // And undoes nothing of what it does not know.
        stage.refused(&["db", "INSERT INTO notes (note) VALUES ('mine')"], 1, &["would undo", "REPAIR TABLE notes"]);
    }
    stage.good(&["db", "REPAIR TABLE notes"]);
    stage.good(&["db", "INSERT INTO notes (note) VALUES ('mine')"]);
}

#[test]
fn a_copy_that_is_older_tells_nothing_of_tables_that_it_does_not_change() {
    let (stage, _) = told();
    stage.good(&["backup", "db", "copy"]);
    stage.good(&["db", "DELETE FROM people WHERE id IN (1, 2); INSERT INTO people VALUES (2000, 'later', 2)"]);
    let rows = stage.good(&["db", ALL]);
    put_back(&stage);
    stage.good(&["db", "INSERT INTO notes (note) VALUES ('mine')"]);
    for (cloud, name) in [("dir:a", "from-a"), ("dir:b", "from-b"), ("dir:c", "from-c")] {
        stage.good(&["restore", "--from", cloud, name, "--key-file", "shares"]);
        assert_eq!(stage.good(&[name, ALL]), rows, "from {cloud}");
    }
}

#[test]
fn what_a_restored_backup_goes_on_with_is_what_comes_back() {
    let (stage, _) = told();
    stage.good(&["backup", "db", "copy"]);
    // Clouds are told of a day that the backup does not know, several times, and with other key slots.
    stage.write("k2", "fedcba9876543210".repeat(4));
    stage.good(&["key", "add", "db", "--new-key-file", "k2"]);
    for id in 301..304 {
        stage.good(&["db", &format!("INSERT INTO people VALUES ({id}, 'of the other day', 1)")]);
    }
    fs::remove_file(stage.path("db")).expect("the database");
    stage.good(&["restore", "copy", "db"]);
    // What was acknowledged on that day goes when somebody says so, and not before.
    for sql in [
        "INSERT INTO people VALUES (400, 'went on', 1)",
        "UPDATE people SET salary = salary + 1 WHERE id = 3",
        "DELETE FROM people WHERE id = 3",
        "TRUNCATE people",
    ] {
        stage.refused(&["db", sql], 1, &["put back", "would undo", "restore --from", "REPAIR TABLE people"]);
    }
    // On another machine, which has counters of its own.
    good_elsewhere(&stage, &["restore", "--from", "dir:b", "beside", "--key-file", "shares"]);
    assert_eq!(good_elsewhere(&stage, &["beside", ALL]).matches("of the other day").count(), 3);
    stage.good(&["db", "REPAIR TABLE people"]);
    stage.good(&["db", "INSERT INTO people VALUES (400, 'went on', 1)"]);
    let rows = stage.good(&["db", ALL]);
    assert!(rows.contains("400,went on") && !rows.contains("of the other day"), "{rows}");
    lose(&stage);
    bring_back(&stage, "dir:a");
    assert_eq!(stage.good(&["db", ALL]), rows);
}

#[test]
fn a_client_that_was_put_back_undoes_nothing_of_others() {
    let (stage, _) = told();
    good_elsewhere(&stage, &["restore", "--from", "dir:a", "other", "--key-file", "shares"]);
    stage.good(&["backup", "db", "copy"]);
    stage.good(&["db", "INSERT INTO people VALUES (1000, 'of the other day', 1)"]);
    good_elsewhere(&stage, &["other", "INSERT INTO people VALUES (2000, 'elsewhere', 2)"]);
    fs::remove_file(stage.path("db")).expect("the database");
    stage.good(&["restore", "copy", "db"]);
    // What it told itself since is behind it, as whoever put it back wanted it; what others told is not.
    for statement in ["INSERT INTO people VALUES (3000, 'went on', 1)", "REPAIR TABLE people"] {
        stage.refused(&["db", statement], 4, &["another copy of this database has told", "GIVE WAY"]);
    }
    let rows = good_elsewhere(&stage, &["other", ALL]);
    assert!(rows.contains("2000,elsewhere") && rows.contains("1000,of the other day"), "{rows}");
    let complete = "cloud,rows_put,rows_removed,state\na,0,0,complete\nb,0,0,complete\nc,0,0,complete\n";
    assert_eq!(stage.good(&["db", "REPAIR TABLE people GIVE WAY"]), complete);
    assert_eq!(stage.good(&["db", ALL]), rows);
    stage.good(&["db", "INSERT INTO people VALUES (3000, 'went on', 1)"]);
    assert_eq!(stage.good(&["db", ALL]), good_elsewhere(&stage, &["other", ALL]));
}
