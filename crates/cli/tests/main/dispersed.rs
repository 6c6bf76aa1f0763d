//! Dispersed tables from one run of the program to the next, and through runs that are killed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use counterfoil_test_servers::PostgresServer;

use super::stage::Stage;

const CREATE: &str = "CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT FOR (equality), salary NUMERIC(10,2) FOR (sum)) \
                      WITH (engine = 'dispersed', clouds = 'a, b, c')";

/// A database with three folders as clouds, and shares of its key.
pub fn dispersed() -> Stage {
    let stage = Stage::with_database();
    for cloud in ["a", "b", "c"] {
        fs::create_dir(stage.path(cloud)).expect("a cloud");
        stage.good(&["db", &format!("CREATE CLOUD {cloud} OPTIONS (url 'dir:{cloud}')")]);
    }
    let told = stage.run(&["db", CREATE]);
    assert_eq!(told.code, 0, "{}", told.err);
    assert!(
        told.err.contains("note: salary: a, b and c each learn nothing; 2 together learn the values"),
        "{}",
        told.err
    );
    stage.good(&["key", "split", "db", "--need", "2", "--of", "3", "shares"]);
    stage
}

pub fn set_there(stage: &Stage, cloud: &str, is_there: bool) {
    let (path, gone) = (stage.path(cloud), stage.path(&format!("{cloud}.gone")));
    let (from, to) = if is_there { (gone, path) } else { (path, gone) };
    fs::rename(from, to).expect("the cloud");
}

#[test]
fn the_next_run_reads_what_the_one_before_wrote() {
    let stage = dispersed();
    stage.good(&["db", "INSERT INTO people VALUES (1, 'Ada', 10.50), (2, 'Bob', NULL), (3, 'Ada', -3)"]);
    let ask = |sql: &str| stage.good(&["db", sql]);
    assert_eq!(ask("SELECT * FROM people ORDER BY id"), "id,name,salary\n1,Ada,10.50\n2,Bob,\n3,Ada,-3.00\n");
    assert_eq!(ask("SELECT sum(salary), count(*) FROM people"), "sum(salary),count(*)\n7.50,3\n");
    stage.refused(&["db", "INSERT INTO people VALUES (3, 'Eve', 0)"], 1, &["people_pkey"]);
    // What is kept here says how many rows there are, and where; nobody is asked.
    assert!(stage.good(&["inspect", "db"]).contains("people: 3 rows at clouds a, b, c"));
    assert!(stage.good(&["verify", "db"]).contains("table people: 3 rows at clouds a, b, c, which are not asked here"));
    // One is down: a note says so, and what it has not been told waits.
    set_there(&stage, "c", false);
    let told = stage.run(&["db", "INSERT INTO people VALUES (4, 'Dan', 1)"]);
    assert_eq!(told.code, 0);
    assert!(told.err.contains("cloud c is told later what has changed: out of reach"), "{}", told.err);
    let waits = ask("SHOW CLOUDS");
    assert!(
        waits.lines().nth(1).is_some_and(|line| line.starts_with("a,dir:/") && line.ends_with(",1,0,0,0,0")),
        "{waits}"
    );
    assert!(
        waits.lines().nth(3).is_some_and(|line| line.starts_with("c,dir:/") && line.ends_with(",1,1,0,0,0")),
        "{waits}"
    );
    assert_eq!(ask("SELECT sum(salary), count(*) FROM people"), "sum(salary),count(*)\n8.50,4\n");
    // Two are down: no answer, and both are named.
    set_there(&stage, "b", false);
    stage.refused(&["db", "SELECT name FROM people"], 2, &["cloud b", "cannot be had"]);
    set_there(&stage, "b", true);
    set_there(&stage, "c", true);
    let repaired = ask("REPAIR TABLE people");
    assert_eq!(repaired, "cloud,rows_put,rows_removed,state\na,0,0,complete\nb,0,0,complete\nc,0,0,complete\n");
    // The backup has the key, and so the table.
    stage.good(&["backup", "db", "copy"]);
    stage.good(&["verify", "db"]);
    // Files that were changed: no rows of them are believed, and of two such clouds none are shown.
    for cloud in ["a", "b"] {
        spoil(&stage.path(cloud));
    }
    stage.refused(&["db", "SELECT * FROM people"], 3, &["cloud a", "is not as it was written"]);
}

fn spoil(path: &Path) {
    for entry in fs::read_dir(path).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            spoil(&path);
            continue;
        }
        let mut bytes = fs::read(&path).expect("a file");
        bytes[5] ^= 1;
        fs::write(&path, bytes).expect("a file");
    }
}

#[test]
fn a_restored_backup_goes_on_beside_what_clouds_have_of_after_it() {
    let stage = dispersed();
    let ask = |sql: &str| stage.good(&["db", sql]);
    ask("INSERT INTO people VALUES (1, 'Ada', 1), (2, 'Bob', 2)");
    stage.good(&["backup", "db", "copy"]);
    ask("INSERT INTO people VALUES (3, 'lost', 100), (4, 'lost', 200)");
    ask("DELETE FROM people WHERE id = 1");
    fs::remove_file(stage.path("db")).expect("the database is lost");
    stage.good(&["restore", "copy", "db"]);
    // What was deleted since is gone at the clouds, which is told, whatever is asked; then it is gone here, too.
    for sql in ["SELECT name FROM people WHERE id = 1", "SELECT sum(salary) FROM people"] {
        stage.refused(&["db", sql], 1, &["older than what its clouds have", "REPAIR TABLE people"]);
    }
    for sql in ["DELETE FROM people WHERE id = 1", "INSERT INTO people VALUES (3, 'Eve', 3)"] {
        stage.refused(&["db", sql], 1, &["put back", "would undo", "REPAIR TABLE people"]);
    }
    let mended = stage.run(&["db", "REPAIR TABLE people"]);
    assert!(mended.err.contains("gone here, too: 1"), "{}", mended.err);
    assert_eq!(ask("SELECT name FROM people"), "name\nBob\n");
    // The same numbers again, for other rows.
    ask("INSERT INTO people VALUES (3, 'Eve', 3), (4, 'Dan', 4)");
    for _ in 0..2 {
        assert_eq!(ask("SELECT * FROM people ORDER BY id"), "id,name,salary\n2,Bob,2.00\n3,Eve,3.00\n4,Dan,4.00\n");
        assert_eq!(ask("SELECT sum(salary), count(*) FROM people"), "sum(salary),count(*)\n9.00,3\n");
        assert_eq!(ask("SELECT id FROM people WHERE name = 'lost'"), "id\n");
        ask("REPAIR TABLE people");
    }
    let repaired = ask("REPAIR TABLE people");
    assert_eq!(repaired, "cloud,rows_put,rows_removed,state\na,0,0,complete\nb,0,0,complete\nc,0,0,complete\n");
}

#[test]
fn two_databases_of_postgresql_and_a_folder_are_three_clouds() {
    let Some(mut server) = PostgresServer::start() else { return };
    let stage = Stage::with_database();
    fs::create_dir(stage.path("a")).expect("a cloud");
    let url = server.url(server.port);
    let other = format!("{}template1", url.trim_end_matches("postgres"));
    for (cloud, url) in [("a", "dir:a"), ("b", &url), ("c", &other)] {
        stage.good(&["db", &format!("CREATE CLOUD {cloud} OPTIONS (url '{url}')")]);
    }
    // One place by two names would know what two are to know together.
    for url in [url.as_str(), "dir:./a/../a"] {
        let twice = format!("CREATE CLOUD d OPTIONS (url '{url}')");
        stage.refused(&["db", &twice], 1, &["already: a cloud that fails, or looks, does so as a whole"]);
    }
    let secret = format!("CREATE CLOUD d OPTIONS (url '{url}', secret_file 'nowhere')");
    stage.refused(&["db", &secret], 2, &["secret of cloud d", "nowhere"]);
    stage.refused(&["db", "CREATE CLOUD d OPTIONS (url 'postgres://me:pass@example.com/x')"], 1, &["secret_file"]);
    let create = CREATE.replace("(equality)", "(equality, prefix)").replace("(sum)", "(sum, range)");
    stage.good(&["db", &create]);
    stage.good(&["key", "split", "db", "--need", "2", "--of", "3", "shares"]);
    stage.good(&[
        "db",
        "INSERT INTO people SELECT value, 'name ' || value % 9, value * 1.5 FROM generate_series(1, 500) AS t(value)",
    ]);
    let questions = [
        ("SELECT count(*), sum(salary), avg(salary) FROM people", "500,187875.00,375.7500000000000000"),
        ("SELECT count(*), min(id) FROM people WHERE name = 'name 7'", "55,7"),
        ("SELECT count(*), max(id) FROM people WHERE salary BETWEEN 15 AND 30", "11,20"),
        ("SELECT count(*) FROM people WHERE name LIKE 'name 1%'", "56"),
    ];
    let ask_all = || {
        for (sql, expected) in questions {
            assert_eq!(stage.good(&["db", sql]).lines().nth(1), Some(expected), "{sql}");
        }
    };
    ask_all();
    stage.refused(&["db", "INSERT INTO people VALUES (77, 'again', 0)"], 1, &["people_pkey"]);
    set_there(&stage, "a", false);
    ask_all();
    stage.good(&["db", "UPDATE people SET salary = salary WHERE id < 100; DELETE FROM people WHERE id > 500"]);
    set_there(&stage, "a", true);
    // Two clouds, which are one server: more than may fail.
    server.kill();
    stage.refused(&["db", "SELECT name FROM people"], 2, &["cloud", "connection to PostgreSQL failed"]);
    let told = stage.run(&["db", "INSERT INTO people VALUES (1000, NULL, NULL); DELETE FROM people WHERE id = 1000"]);
    // The folder has the keys, sealed: reading all of them takes the place of asking for one.
    assert!(told.code == 0 && told.err.contains("cloud b: out of reach"), "{}", told.err);
    server.run();
    stage.good(&["db", "INSERT INTO people VALUES (1000, NULL, NULL); DELETE FROM people WHERE id = 1000"]);
    ask_all();
    let repaired = stage.good(&["db", "REPAIR TABLE people"]);
    assert_eq!(repaired, "cloud,rows_put,rows_removed,state\na,0,0,complete\nb,0,0,complete\nc,0,0,complete\n");
    stage.good(&["db", "DROP TABLE people"]);
}

#[test]
fn rows_come_to_clouds_from_files_of_each_kind() {
    let stage = dispersed();
    stage.good(&["db", "INSERT INTO people VALUES (1, 'Ada', 10.5), (2, NULL, -3), (3, 'Zoë', NULL)"]);
    let rows = stage.good(&["db", "SELECT * FROM people ORDER BY id"]);
    for file in ["people.csv", "people.parquet", "people.arrow"] {
        stage.good(&["export", "db", "people", file]);
        stage.good(&["db", "TRUNCATE people"]);
        stage.good(&["import", "db", "people", file]);
        set_there(&stage, "a", false);
        assert_eq!(stage.good(&["db", "SELECT * FROM people ORDER BY id"]), rows, "{file}");
        set_there(&stage, "a", true);
    }
}

/// Clouds are told behind the commit: whoever loads a file hears of one that was not.
#[test]
fn an_import_says_which_cloud_is_told_later() {
    let stage = dispersed();
    fs::write(stage.path("people.csv"), "id,name,salary\n1,Ada,10.5\n2,Bob,3\n").expect("written");
    fs::write(stage.path("more.csv"), "id,name,salary\n3,Eve,1\n4,Dan,2\n").expect("written");
    set_there(&stage, "a", false);
    for arguments in
        [&["import", "db", "people", "people.csv"][..], &["import", "db", "people", "more.csv", "--batch", "1"]]
    {
        let told = stage.run(arguments);
        assert!(told.code == 0 && told.err.contains("cloud a is told later what has changed"), "{}", told.err);
    }
    set_there(&stage, "a", true);
}

#[test]
fn a_program_that_is_killed_while_it_tells_clouds_loses_nothing() {
    let stage = dispersed();
    stage.good(&["db", "CREATE TABLE plain (id BIGINT PRIMARY KEY, name TEXT, salary NUMERIC(10,2))"]);
    for round in 0..12_u64 {
        let rows = format!(
            "SELECT {round} * 1000 + value, 'name ' || value % 7, value FROM generate_series(1, 400) AS t(value)"
        );
        let gone = |table: &str| format!("DELETE FROM {table} WHERE id % 5 = {}", round % 5);
        let raise = |table: &str| format!("UPDATE {table} SET salary = salary + 1 WHERE name = 'name {}'", round % 7);
        let script: String = ["people", "plain"]
            .iter()
            .map(|table| format!("{}; {}; INSERT INTO {table} {rows};", gone(table), raise(table)))
            .collect();
        let mut child = stage.spawn(&["sql", "db", "-c", &script]);
        std::thread::sleep(Duration::from_millis(40 + 37 * round));
        child.kill().expect("killed");
        child.wait().expect("ended");
        if round % 3 == 2 {
            // The others give back what this one loses.
            fs::remove_dir_all(stage.path("b")).expect("a cloud");
            fs::create_dir(stage.path("b")).expect("an empty one");
            let repaired = stage.good(&["db", "REPAIR TABLE people"]);
            assert!(repaired.lines().skip(1).all(|line| line.ends_with(",complete")), "{repaired}");
        }
        let all = |table: &str| stage.good(&["db", &format!("SELECT * FROM {table} ORDER BY id")]);
        assert_eq!(all("people"), all("plain"), "round {round}");
        let sums = |table: &str| stage.good(&["db", &format!("SELECT sum(salary), count(*) FROM {table}")]);
        assert_eq!(sums("people"), sums("plain"), "round {round}");
    }
    let repaired = stage.good(&["db", "REPAIR TABLE people"]);
    let after = "cloud,rows_put,rows_removed,state\na,0,0,complete\nb,0,0,complete\nc,0,0,complete\n";
    assert_eq!(stage.good(&["db", "REPAIR TABLE people"]), after, "{repaired}");
    let here = stage.good(&["db", "SHOW CLOUDS"]);
    assert!(here.lines().skip(1).all(|line| line.ends_with(",1,0,0,0,0")), "{here}");
    // Whatever was cut, clouds know what brings all of it back.
    let all = stage.good(&["db", "SELECT * FROM people ORDER BY id"]);
    fs::remove_file(stage.path("db")).expect("the database");
    stage.good(&["restore", "--from", "dir:c", "db", "--key-file", "shares"]);
    assert_eq!(stage.good(&["db", "SELECT * FROM people ORDER BY id"]), all);
}
