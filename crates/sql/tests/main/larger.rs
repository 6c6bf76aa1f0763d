//! Dispersed tables that are larger than the working memory of a query: read in turns, with the answers of a relation.

use counterfoil_sql::EngineOptions;

use crate::database::{Database, ask, is_full};
use crate::dispersed::{World, files};

const MEMORY_BYTES: usize = 8 << 20;
/// Bytes of each row's note.
const WIDTH: usize = 10_000;

fn bounded() -> World {
    let options = EngineOptions { memory_bytes: MEMORY_BYTES, parallelism: 1, spill: None, ..Default::default() };
    let mut world = World::of(Database::with_options(options));
    ["a", "b", "c"].into_iter().for_each(|cloud| world.add_folder(cloud));
    world
}

/// The same rows in `people` at clouds and in `plain` here, of three times as many bytes as there is memory.
fn filled(world: &mut World) -> usize {
    let rows = 3 * MEMORY_BYTES / WIDTH;
    let columns =
        |uses: [&str; 2]| format!("(id INT PRIMARY KEY, kind INT{}, n NUMERIC(8,2){}, note TEXT)", uses[0], uses[1]);
    let dispersed = columns([" FOR (equality)", " FOR (sum)"]);
    let told =
        world.database.ask(&format!("CREATE TABLE people {dispersed} WITH (engine = 'dispersed', clouds = 'a, b, c')"));
    assert_eq!(told, "CREATE TABLE");
    world.database.ask(&format!("CREATE TABLE plain {}", columns(["", ""])));
    for from in (0..rows).step_by(100) {
        let to = (from + 100).min(rows) - 1;
        for table in ["plain", "people"] {
            let sql = format!(
                "INSERT INTO {table} SELECT i, i % 3, i * 1.25, md5(i::TEXT) || repeat('x', {WIDTH}) FROM generate_series({from}, {to}) AS s(i)"
            );
            assert_eq!(world.database.ask(&sql), format!("INSERT {}", to + 1 - from));
        }
    }
    rows
}

#[track_caller]
fn same(world: &mut World, sql: &str) {
    let [people, plain] = ["people", "plain"].map(|table| {
        let answer = world.database.ask(&sql.replace("TABLE", table));
        let mut lines: Vec<String> = answer.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    });
    assert!(!plain[0].starts_with("error"), "{}", plain[0]);
    let differs = people.iter().zip(&plain).find(|(one, other)| one != other);
    assert!(people == plain, "{sql}: {} lines, the first that differs: {differs:?}", people.len());
}

#[test]
fn a_table_that_has_no_room_is_read_in_turns() {
    let mut world = bounded();
    let rows = filled(&mut world);
    let bytes: u64 = files(&world.path("b")).iter().map(|file| file.metadata().expect("a file").len()).sum();
    assert!(bytes > (rows * WIDTH) as u64, "cells do not get smaller");
    let questions = [
        "SELECT id, n, substr(note, 1, 40) FROM TABLE",
        "SELECT id, substr(note, 1, 40) FROM TABLE WHERE kind = 1",
        "SELECT count(*), sum(length(note)), max(note) FROM TABLE WHERE n > 10",
        "SELECT kind, max(substr(note, 1, 40)) FROM TABLE GROUP BY kind ORDER BY kind",
        "SELECT sum(n), count(*) FROM TABLE",
    ];
    questions.iter().for_each(|sql| same(&mut world, sql));
    // Rows that are on their way, gone, and changed.
    world.set_there("c", false);
    same(&mut world, "DELETE FROM TABLE WHERE length(note) > 10 AND id % 7 = 3");
    same(&mut world, "UPDATE TABLE SET note = note || 'y' WHERE kind = 2");
    questions.iter().for_each(|sql| same(&mut world, sql));
    // A cloud that is away is met in each turn, and told of once.
    world.database.session.take_notices();
    world.database.ask("SELECT id, substr(note, 1, 40) FROM people");
    let notices = world.database.session.take_notices();
    let away = notices.iter().filter(|note| note.contains("cloud c")).count();
    assert!(away <= 1, "{notices:?}");
    world.set_there("c", true);
    let repaired = world.database.ask("REPAIR TABLE people");
    assert!(repaired.lines().all(|line| line.ends_with("|complete")), "{repaired}");
    if is_full() {
        assert_eq!(world.database.ask("REFRESH TABLE people"), "REFRESH TABLE");
        questions.iter().for_each(|sql| same(&mut world, sql));
    }
}

#[test]
fn rows_that_go_between_turns_are_told() {
    let mut world = bounded();
    filled(&mut world);
    let mut other = world.database.connect();
    let ids = |answer: &str| answer.lines().map(str::to_owned).collect::<Vec<_>>();
    let all = ids(&world.database.ask("SELECT id FROM plain WHERE length(note) > 0 ORDER BY id"));
    world.database.ask(
        "BEGIN ISOLATION LEVEL REPEATABLE READ; DECLARE c CURSOR FOR SELECT id FROM people WHERE length(note) > 0",
    );
    let first = ids(&world.database.ask("FETCH 10 FROM c"));
    assert_eq!(first, all[..10]);
    assert!(ask(&mut other, "DELETE FROM people WHERE id >= 0", &[]).starts_with("DELETE"));
    // What is fetched behind it is the rest, or an error that says what has happened: never an end as if that were all.
    let rest = world.database.ask("FETCH ALL FROM c");
    assert!(
        rest.contains("ask again") || ids(&rest) == all[10..],
        "{} lines: {}",
        rest.lines().count(),
        rest.lines().last().unwrap_or_default()
    );
}

#[test]
fn sums_that_have_no_room_are_added_up_in_turns() {
    let options = EngineOptions { memory_bytes: 1 << 20, parallelism: 1, spill: None, ..Default::default() };
    let mut world = World::of(Database::with_options(options));
    ["a", "b", "c"].into_iter().for_each(|cloud| world.add_folder(cloud));
    for (table, columns, with) in [
        (
            "people",
            "(id INT PRIMARY KEY, kind INT FOR (equality), n NUMERIC(8,2) FOR (sum))",
            " WITH (engine = 'dispersed', clouds = 'a, b, c')",
        ),
        ("plain", "(id INT PRIMARY KEY, kind INT, n NUMERIC(8,2))", ""),
    ] {
        assert_eq!(world.database.ask(&format!("CREATE TABLE {table} {columns}{with}")), "CREATE TABLE");
        for from in (0..60_000).step_by(2000) {
            let rows = format!("generate_series({from}, {}) AS s(i)", from + 1999);
            world.database.ask(&format!("INSERT INTO {table} SELECT i, i % 3, i * 1.25 FROM {rows}"));
        }
    }
    // One who has the tags is away, so that nobody confirms what the other one names: values decide.
    for cloud in ["a", "b", "c"] {
        world.set_there(cloud, false);
        same(&mut world, "SELECT sum(n), count(*), avg(n) FROM TABLE WHERE kind = 1");
        same(&mut world, "SELECT sum(n), count(n) FROM TABLE");
        world.set_there(cloud, true);
    }
}
