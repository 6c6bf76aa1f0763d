//! First rows in the order of a column, and least and greatest values, of which clouds say which rows they may be: what a relation answers,
//! of a small part of the rows, whoever of the clouds fails.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use counterfoil_sql::Ram;

use crate::database::Database;
use crate::dispersed::{World, same};
use crate::fickle::{FAULTS, Fault, Reached, fickle};

/// More than a few times what is opened to find a bound.
const ROWS: u32 = 6000;
const COLUMNS: &str = "id BIGINT PRIMARY KEY, name TEXT{o}, salary NUMERIC(10,2){o}, born DATE NOT NULL{o}, place VARCHAR(40){o}, \
                       big BIGINT{o}, is_in BOOLEAN{o}, weight DOUBLE PRECISION{o}, kind INT FOR (equality), age INT";
/// Of `place` most are NULL, of `kind` and `is_in` there are few, and texts begin alike.
const VALUES: &str = "v, CASE WHEN v % 97 > 0 THEN 'begins alike ' || v * 7919 % 6007 END, \
    CASE WHEN v % 89 > 0 THEN (v * 7919 % 60007) / 100.0 - 300 END, DATE '1900-01-01' + CAST(v * 31 % 40009 AS INT), \
    CASE WHEN v % 5 = 0 THEN 'p' || v % 1000 END, \
    CASE WHEN v % 3000 = 7 THEN NULL WHEN v % 2 = 0 THEN 9223372036854775807 - v ELSE v - 9223372036854775807 END, v % 3 = 0, \
    v * 7919 % 6007 / 7.0, v % 7, v % 90";

const QUESTIONS: &[&str] = &[
    "SELECT min(salary), max(salary) FROM TABLE",
    "SELECT max(name), min(name), max(born), min(big), max(big) FROM TABLE",
    "SELECT min(place), max(place), min(is_in), max(is_in) FROM TABLE",
    "SELECT min(weight), max(weight) FROM TABLE",
    "SELECT max(salary) FROM TABLE WHERE kind = 3",
    "SELECT min(salary), max(born) FROM TABLE WHERE salary > 100 AND born < '1950-01-01'",
    "SELECT max(salary) FROM TABLE WHERE kind = 99",
    "SELECT max(salary) FROM TABLE WHERE age = 33",
    "SELECT max(salary) FROM TABLE WHERE age + kind = 33",
    "SELECT max(salary), count(*) FROM TABLE",
    "SELECT kind, max(salary) FROM TABLE GROUP BY kind ORDER BY kind",
    "SELECT id, salary FROM TABLE ORDER BY salary, id LIMIT 10",
    "SELECT id, salary FROM TABLE ORDER BY salary DESC, id LIMIT 10",
    "SELECT id, salary FROM TABLE ORDER BY salary DESC, id LIMIT 100",
    "SELECT id, salary FROM TABLE ORDER BY salary DESC NULLS LAST, id DESC LIMIT 5 OFFSET 20",
    "SELECT id, salary FROM TABLE ORDER BY salary NULLS FIRST, id LIMIT 80",
    "SELECT id FROM TABLE ORDER BY born DESC, id LIMIT 7",
    "SELECT id, place FROM TABLE ORDER BY place DESC NULLS LAST, id LIMIT 12",
    "SELECT id, big FROM TABLE ORDER BY big DESC, id LIMIT 4",
    "SELECT id, big FROM TABLE ORDER BY big, id LIMIT 4",
    "SELECT id, name FROM TABLE ORDER BY name DESC NULLS LAST, id LIMIT 4",
    "SELECT id, name FROM TABLE ORDER BY name, born LIMIT 4",
    "SELECT id FROM TABLE ORDER BY is_in, salary, id LIMIT 4",
    "SELECT id, age FROM TABLE WHERE kind IN (1, 2) ORDER BY salary DESC NULLS LAST, id LIMIT 6",
    "SELECT id FROM TABLE WHERE salary BETWEEN -5 AND 5 ORDER BY born, id LIMIT 6",
    "SELECT id FROM TABLE WHERE name LIKE 'begins alike 3%' ORDER BY salary, id LIMIT 6",
    "SELECT id FROM TABLE WHERE age < 10 ORDER BY born DESC, id LIMIT 6",
    "SELECT id FROM TABLE ORDER BY salary + 1 DESC, id LIMIT 3",
    "SELECT id FROM TABLE ORDER BY salary, id LIMIT 0",
    "SELECT t.id FROM (SELECT id, salary FROM TABLE ORDER BY salary DESC NULLS LAST, id LIMIT 5) t JOIN TABLE o ON t.id = o.id ORDER BY 1",
    "SELECT id FROM TABLE WHERE salary = (SELECT max(salary) FROM TABLE) ORDER BY id",
];

/// `people` at clouds, `plain` here.
fn fill(world: &mut World, clouds: &str) {
    let dispersed = COLUMNS.replace("{o}", " FOR (danger order)");
    let create = format!("CREATE TABLE people ({dispersed}) WITH (engine = 'dispersed', clouds = '{clouds}')");
    assert_eq!(world.database.ask(&create), "CREATE TABLE");
    let plain = COLUMNS.replace("{o}", "").replace(" FOR (equality)", "");
    assert_eq!(world.database.ask(&format!("CREATE TABLE plain ({plain})")), "CREATE TABLE");
    same(world, &format!("INSERT INTO TABLE SELECT {VALUES} FROM generate_series(1, {ROWS}) AS t(v)"));
}

fn ask_all(world: &mut World) {
    QUESTIONS.iter().for_each(|sql| same(world, sql));
}

/// With clouds that fail as somebody outside has them fail.
fn faulty() -> (World, Arc<Reached>) {
    let (database, clouds) = fickle();
    let mut world = World::of(database);
    fill(&mut world, "f0, f1, f2");
    (world, clouds)
}

#[test]
fn first_rows_are_those_of_a_relation() {
    let mut world = World::new();
    fill(&mut world, "a, b, c");
    ask_all(&mut world);
    same(&mut world, "DELETE FROM TABLE WHERE salary > 250 OR born < '1910-01-01' OR id % 11 = 0");
    same(&mut world, "UPDATE TABLE SET salary = 299.99, name = 'zz' WHERE id = 3777");
    ask_all(&mut world);
    // Rows that wait here, and rows that move.
    world.set_there("b", false);
    same(
        &mut world,
        "INSERT INTO TABLE (id, salary, born, name) VALUES (10001, 400, '1800-01-01', 'a'), (10002, -400, '2200-01-01', 'zzz')",
    );
    ask_all(&mut world);
    world.set_there("b", true);
    world.add_folder("d");
    assert_eq!(world.database.ask("ALTER TABLE people SET (clouds = 'a, b, d')"), "ALTER TABLE");
    ask_all(&mut world);
    same(&mut world, "BEGIN");
    same(&mut world, "DELETE FROM TABLE WHERE id = 10001");
    same(&mut world, "INSERT INTO TABLE (id, salary, born) VALUES (10003, -500, '2300-01-01')");
    ask_all(&mut world);
    same(&mut world, "ROLLBACK");
    ask_all(&mut world);
}

#[test]
fn first_rows_take_a_small_part_of_the_rows() {
    let mut world = World::new();
    fill(&mut world, "a, b, c");
    let told = world.database.ask("EXPLAIN SELECT id FROM people ORDER BY salary DESC NULLS LAST LIMIT 3");
    assert!(told.contains("first at clouds: [3 greatest of salary at "), "{told}");
    let told = world.database.ask("EXPLAIN SELECT min(born), max(salary) FROM people WHERE kind = 3");
    assert!(
        told.contains("first at clouds: [1 least of born at ") && told.contains("1 greatest of salary at "),
        "{told}"
    );
    for sql in
        ["SELECT min(age) FROM people", "SELECT id FROM people ORDER BY salary", "SELECT max(weight) FROM people"]
    {
        let told = world.database.ask(&format!("EXPLAIN {sql}"));
        assert!(!told.contains("first at clouds"), "{sql}: {told}");
    }
    for (first, all) in [
        ("SELECT max(salary) FROM people", "SELECT avg(salary) FROM people"),
        ("SELECT id, salary FROM people ORDER BY salary DESC NULLS LAST LIMIT 3", "SELECT id, salary FROM people"),
        ("SELECT id, salary FROM people ORDER BY salary DESC LIMIT 3", "SELECT id, salary FROM people"),
        ("SELECT id, name FROM people ORDER BY born LIMIT 3", "SELECT id, name, born FROM people"),
    ] {
        let [first_bytes, all_bytes] = [first, all].map(|sql| world.bytes(sql));
        assert!(first_bytes > 0.0 && first_bytes * 3.0 < all_bytes, "{first}: {first_bytes} of {all_bytes}");
    }
    // Texts of which NULL may come first, and a column whose order one cloud alone has: it could leave out the one row that comes first.
    let told = world.database.ask("EXPLAIN SELECT id FROM people ORDER BY name DESC LIMIT 3");
    assert!(!told.contains("first at clouds"), "{told}");
    let two = "CREATE TABLE two (n INT FOR (danger order)) WITH (engine = 'dispersed', clouds = 'a, b')";
    assert_eq!(world.database.ask(two), "CREATE TABLE");
    world.database.ask("INSERT INTO two SELECT v FROM generate_series(1, 3000) AS t(v)");
    let told = world.database.ask("EXPLAIN SELECT max(n) FROM two");
    assert!(!told.contains("first at clouds"), "{told}");
    let told = world.database.ask("EXPLAIN SELECT max(n) FROM two OPTIMIZE FOR PERFORMANCE");
    assert!(told.contains("first at clouds"), "{told}");
    assert_eq!(world.database.ask("SELECT max(n), min(n) FROM two"), "3000|1");
    let told = world.database.ask("EXPLAIN LEAKAGE SELECT max(salary) FROM people");
    assert!(told.contains("salary: that its first rows are asked for, and about how many "), "{told}");
    assert!(told.contains("which rows are fetched") && !told.contains("that all rows are fetched"), "{told}");
}

#[test]
fn whoever_fails_changes_no_first_rows() {
    let (mut world, clouds) = faulty();
    clouds.0.iter().for_each(|cloud| cloud.remember());
    same(&mut world, "UPDATE TABLE SET salary = salary + 700, born = born + 50000 WHERE id % 100 = 1");
    for fault in FAULTS {
        for cloud in &clouds.0[..3] {
            cloud.fail(fault, 0);
            ask_all(&mut world);
            cloud.fails_from.store(0, Ordering::Relaxed);
        }
    }
}

/// A bound is of rows that are opened anew each time: one that counted twice would let too few come up to it.
#[test]
fn round_by_round_no_row_is_lost() {
    let mut world = World::new();
    let columns = "id INT, n BIGINT{o}";
    let create = format!(
        "CREATE TABLE people ({}) WITH (engine = 'dispersed', clouds = 'a, b, c')",
        columns.replace("{o}", " FOR (danger order)")
    );
    assert_eq!(world.database.ask(&create), "CREATE TABLE");
    assert_eq!(world.database.ask(&format!("CREATE TABLE plain ({})", columns.replace("{o}", ""))), "CREATE TABLE");
    same(&mut world, "INSERT INTO TABLE SELECT v, v * 7919 % 60013 FROM generate_series(1, 60000) AS t(v)");
    for count in [1, 10, 40, 100] {
        same(&mut world, &format!("SELECT id, n FROM TABLE ORDER BY n DESC, id LIMIT {count}"));
        same(&mut world, &format!("SELECT id, n FROM TABLE WHERE id > 1000 ORDER BY n, id LIMIT {count}"));
    }
    same(&mut world, "SELECT min(n), max(n) FROM TABLE");
    let (some, all) = (world.bytes("SELECT max(n) FROM people"), world.bytes("SELECT sum(n) FROM people"));
    assert!(some > 0.0 && some * 30.0 < all, "{some} of {all}");
}

/// More clouds lie than may. Where both are found out, by rows that they do not show, nobody is believed about which come first.
#[test]
fn where_more_are_found_to_lie_than_may_all_rows_are_read() {
    let (mut world, clouds) = faulty();
    let columns = ["name", "salary", "born", "place", "big", "is_in", "age"];
    let mut found_out = 0;
    for pair in [[0, 1], [0, 2], [1, 2]] {
        for by in &columns[..5] {
            for beside in columns.iter().filter(|beside| *beside != by) {
                let sql = |table: &str| {
                    format!("SELECT {by}, {beside} FROM {table} ORDER BY {by} DESC NULLS LAST, {beside} LIMIT 5")
                };
                pair.iter().for_each(|cloud| clouds.0[*cloud].fail(Fault::Hiding, 0));
                world.database.session.take_notices();
                let told = world.database.ask(&sql("people"));
                let notices = world.database.session.take_notices().join("\n");
                pair.iter().for_each(|cloud| clouds.0[*cloud].fails_from.store(0, Ordering::Relaxed));
                if !told.starts_with("error: ") && pair.iter().all(|cloud| notices.contains(&format!("cloud f{cloud}")))
                {
                    assert_eq!(told, world.database.ask(&sql("plain")), "{pair:?}: {}", sql("people"));
                    found_out += 1;
                }
            }
        }
    }
    assert!(found_out > 0, "nobody was found out");
}

/// What is left of all rows has no room at once: it is read in turns.
#[test]
fn first_rows_are_the_same_in_little_memory() {
    let mut world = World::of(Database::in_ram(Some(Ram::of(1 << 20).expect("enough"))));
    ["a", "b", "c"].into_iter().for_each(|cloud| world.add_folder(cloud));
    fill(&mut world, "a, b, c");
    ask_all(&mut world);
}
