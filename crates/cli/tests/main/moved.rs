//! Tables that move to other clouds and keys, from one run of the program to the next, and through runs that are killed.

use std::fs;
use std::time::Duration;

use super::brought_back::{ALL, bring_back, lose, told};
use super::dispersed::dispersed;
use super::stage::Stage;

fn with_another_cloud(stage: &Stage) {
    add_cloud(stage, "d");
}

fn add_cloud(stage: &Stage, cloud: &str) {
    fs::create_dir(stage.path(cloud)).expect("a cloud");
    stage.good(&["db", &format!("CREATE CLOUD {cloud} OPTIONS (url 'dir:{cloud}')")]);
}

#[test]
fn a_table_that_moved_is_brought_back_from_where_it_lies() {
    let (stage, rows) = told();
    with_another_cloud(&stage);
    stage.good(&["backup", "db", "copy"]);
    let moved = stage.run(&["db", "ALTER TABLE people SET (clouds = 'b, c, d')"]);
    assert_eq!(moved.code, 0, "{}", moved.err);
    assert!(moved.err.contains("salary: b, c and d each learn nothing"), "{}", moved.err);
    assert!(moved.err.contains("backups from before now cannot read it any more"), "{}", moved.err);
    assert_eq!(stage.good(&["db", ALL]), rows);
    assert!(stage.good(&["db", "SHOW CREATE TABLE people"]).contains("clouds = 'b, c, d'"));
    stage.good(&["db", "DROP CLOUD a"]);
    stage.good(&["verify", "db"]);
    lose(&stage);
    stage.refused(&["restore", "--from", "dir:a", "db", "--key-file", "shares"], 1, &["shows no table"]);
    let brought = bring_back(&stage, "dir:d");
    assert!(brought.contains("table people: 30 rows"), "{brought}");
    assert_eq!(stage.good(&["db", ALL]), rows);
    // The backup from before cannot read it, says what can, and leaves that alone.
    lose(&stage);
    stage.good(&["restore", "copy", "db"]);
    let refused = stage.run(&["db", ALL]);
    assert_ne!(refused.code, 0, "{}", refused.out);
    stage.refused(
        &["db", "REPAIR TABLE people"],
        1,
        &["altered or refreshed after this copy", "restore --from", "dir:"],
    );
    stage.run(&["db", "INSERT INTO people VALUES (300, 'Eve', 1)"]);
    lose(&stage);
    bring_back(&stage, "dir:b");
    assert_eq!(stage.good(&["db", ALL]), rows);
}

#[test]
fn a_table_that_lies_at_none_of_its_old_clouds_is_not_forgotten() {
    let (stage, rows) = told();
    ["d", "e", "f"].into_iter().for_each(|cloud| add_cloud(&stage, cloud));
    stage.good(&["backup", "db", "copy"]);
    stage.good(&["db", "ALTER TABLE people SET (clouds = 'd, e, f')"]);
    lose(&stage);
    stage.good(&["restore", "copy", "db"]);
    // What its old clouds have let go of looks as if it were deleted.
    for _ in 0..2 {
        stage.refused(
            &["db", "REPAIR TABLE people"],
            1,
            &["its clouds have none of the rows", "restore --from", "TAKE OVER"],
        );
    }
    // If most of them do not answer, nobody knows.
    let all = ["a", "b"].map(|cloud| (stage.path(cloud), stage.path(&format!("{cloud}-away"))));
    all.iter().for_each(|(here, away)| fs::rename(here, away).expect("away"));
    stage.refused(&["db", "REPAIR TABLE people"], 1, &["do not answer", "SHOW CLOUDS"]);
    all.iter().for_each(|(here, away)| fs::rename(away, here).expect("back"));
    // They have been told nothing by it: a catalogue there would lead to rows that nobody can read.
    lose(&stage);
    stage.refused(&["restore", "--from", "dir:a", "db", "--key-file", "shares"], 1, &["shows no table"]);
    for cloud in ["dir:b", "dir:c"] {
        let brought = bring_back(&stage, cloud);
        assert!(brought.contains("table notes") && !brought.contains("table people"), "{brought}");
        lose(&stage);
    }
    bring_back(&stage, "dir:e");
    assert_eq!(stage.good(&["db", ALL]), rows);
}

#[test]
fn a_program_that_is_killed_while_a_table_moves_loses_nothing() {
    let stage = dispersed();
    with_another_cloud(&stage);
    stage.good(&["db", "CREATE TABLE plain (id BIGINT PRIMARY KEY, name TEXT, salary NUMERIC(10,2))"]);
    let both = |sql: &str| ["people", "plain"].map(|table| stage.good(&["db", &sql.replace("TABLE", table)]));
    both("INSERT INTO TABLE SELECT value, 'name ' || value % 7, value FROM generate_series(1, 5000) AS t(value)");
    let moves = [
        "ALTER TABLE people SET (clouds = 'b, c, d')",
        "REFRESH TABLE people",
        "ALTER TABLE people ALTER COLUMN name FOR (equality, prefix)",
        "ALTER TABLE people SET (clouds = 'a, b, c, d')",
    ];
    for round in 0..8_usize {
        let mut child = stage.spawn(&["sql", "db", "-c", moves[round % moves.len()]]);
        std::thread::sleep(Duration::from_millis(30 + 43 * round as u64));
        child.kill().expect("killed");
        child.wait().expect("ended");
        let [people, plain] = both("SELECT * FROM TABLE ORDER BY id");
        assert_eq!(people, plain, "round {round}");
        both(&format!("DELETE FROM TABLE WHERE id % 50 = {round}"));
        both(&format!("INSERT INTO TABLE VALUES ({}, 'name 1', -5)", 10_000 + round));
        for sql in [
            "SELECT sum(salary) AS s, count(*) AS c FROM TABLE",
            "SELECT id FROM TABLE WHERE name = 'name 1' ORDER BY id",
        ] {
            let [people, plain] = both(sql);
            assert_eq!(people, plain, "round {round}: {sql}");
        }
    }
    stage.good(&["db", "REPAIR TABLE people"]);
    let shown = stage.good(&["db", "SHOW CLOUDS"]);
    assert!(shown.lines().skip(1).all(|line| line.ends_with(",0,0,0,0")), "{shown}");
    let rows = stage.good(&["db", ALL]);
    assert_eq!(rows, stage.good(&["db", &ALL.replace("people", "plain")]));
    lose(&stage);
    bring_back(&stage, "dir:b");
    assert_eq!(stage.good(&["db", ALL]), rows);
}
