//! What EXPLAIN and EXPLAIN LEAKAGE say of dispersed tables: what runs where, and what clouds learn of it.

use std::collections::BTreeSet;

use crate::dispersed::{ROWS, World, both, same};

#[test]
fn plans_and_leakage_say_what_runs_where() {
    let mut world = both();
    same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
    for (sql, parts) in [
        (
            "SELECT name FROM people WHERE salary > 5 AND name = 'Ada'",
            &["range of salary at", "equality of name at"][..],
        ),
        ("SELECT name FROM people WHERE note = 'x'", &["Dispersed: people, columns: [name, note]"]),
        (
            "SELECT sum(salary), count(*), avg(small) FROM people",
            &["added up at clouds: [sum of salary, rows, values of small, sum of small]"],
        ),
        ("SELECT id FROM people WHERE name LIKE 'Adalb%'", &["prefix of name at"]),
        ("SELECT min(salary) FROM people", &["Dispersed: people, columns: [salary]"]),
    ] {
        let plan = world.database.ask(&format!("EXPLAIN {sql}"));
        assert!(parts.iter().all(|part| plan.contains(part)), "{sql}: {plan}");
    }
    for sql in ["SELECT sum(salary) FROM people", "SELECT id FROM people WHERE name = 'Ada'"] {
        let plan = world.database.ask(&format!("EXPLAIN ANALYZE {sql}"));
        assert!(["a_bytes=", "a_questions=", "a_time="].iter().all(|part| plan.contains(part)), "{sql}: {plan}");
    }
    let told = world.database.ask("EXPLAIN LEAKAGE SELECT note FROM people WHERE name = 'Ada' AND salary < 5");
    for line in [
        "people|a|at rest|how many rows and columns there are, as what each column is coded, which rows come, move and go together, and when; \
         of the catalogue how many entries come and go with each change, and the classes of their lengths",
        "people|a|from all queries|which columns each question is about, which rows it concerns, for how many values or characters it asks, \
         which questions ask for the same, of orders in how many blocks of four bits two bounds agree, and which rows are asked for because another cloud does not show them",
        "people|a|at rest|name: which are equal (and how often each comes)",
        "people|b|at rest|name: lengths, in classes",
        "people|a|from this query|name: which rows have one of 1 values, and whether it was asked before",
        "people|a|from this query|which rows are fetched, and of how many columns",
        "people|a and b (more than may_collude)|at rest|salary: the values",
    ] {
        assert!(told.lines().any(|told| told == line), "{line} in\n{told}");
    }
    // What a cloud alone must not know is not said to be known.
    assert!(!told.lines().any(|line| line.starts_with("people|a|") && line.contains("the values\n")), "{told}");
    assert_eq!(world.database.ask("EXPLAIN LEAKAGE SELECT count(*) FROM plain"), "");
    let told = world.database.ask("EXPLAIN LEAKAGE DROP TABLE people");
    assert!(told.contains("EXPLAIN LEAKAGE of SELECT, INSERT, UPDATE, DELETE, TRUNCATE or EXECUTE"), "{told}");
}

#[test]
fn whatever_is_asked_of_clouds_can_be_explained() {
    let mut world = both();
    world.database.ask("PREPARE of_name AS SELECT sum(salary) FROM people WHERE name = $1");
    let name = "people|a|from this query|name: which rows have one of 1 values, and whether it was asked before";
    for (sql, line) in [
        ("SELECT sum(salary) FROM people WHERE name = 'Ada' OPTIMIZE FOR RELIABILITY QUORUM 2", name),
        ("SELECT sum(salary) FROM people WHERE name = 'Ada' OPTIMIZE FOR PERFORMANCE", name),
        ("EXECUTE of_name('Ada')", name),
        ("TRUNCATE people", "people|a|from this query|which rows go, together"),
        ("TRUNCATE plain, people", "people|b|from this query|which rows go, together"),
    ] {
        let told = world.database.ask(&format!("EXPLAIN LEAKAGE {sql}"));
        assert!(told.lines().any(|told| told == line), "{line} in\n{told}");
    }
    for (sql, error) in [
        ("EXECUTE of_name", "wants 1 arguments"),
        ("EXECUTE nobody", "no prepared statement nobody"),
        ("TRUNCATE nothing", "nothing"),
        ("DELETE FROM people OPTIMIZE FOR PERFORMANCE", "behind a query"),
    ] {
        let told = world.database.ask(&format!("EXPLAIN LEAKAGE {sql}"));
        assert!(told.contains(error), "{sql}: {told}");
    }
}

/// A question of orders shows more than which rows it finds, also where it asks for one value.
#[test]
fn what_orders_show_is_said_of_each_question() {
    let mut world = World::new();
    let told = "age INT FOR (range)) WITH (engine = 'dispersed', clouds = 'a, b, c', key_backup = 'none')";
    world.database.ask(&format!("CREATE TABLE t (id INT, {told}"));
    let notices = world.database.session.take_notices().join("\n");
    assert!(
        notices.contains("how they compare with each question (and the first four bits in which they differ)"),
        "{notices}"
    );
    let shows =
        |with: &str| format!("age: how each value compares with {with}, the first four bits in which they differ");
    for (question, line) in [
        ("age = 5", shows("one value")),
        ("age > 5", shows("each end of the range")),
        ("age BETWEEN 5 AND 7", shows("each end of the range")),
    ] {
        let told = world.database.ask(&format!("EXPLAIN LEAKAGE SELECT id FROM t WHERE {question}"));
        let of_age: Vec<&str> = told.lines().filter(|line| line.contains("|from this query|age: ")).collect();
        let is_it = |told: &&str| told.ends_with(&format!("{line}, and whether it was asked before"));
        assert!(!of_age.is_empty() && of_age.iter().all(is_it), "{question}: {told}");
    }
    let told = world.database.ask("EXPLAIN LEAKAGE SELECT id FROM t");
    assert!(told.contains("from all queries|age: the order of all that was asked for"), "{told}");
    assert!(told.contains("of each value and what was asked for the first four bits in which they differ"), "{told}");
}

/// Two codes answer how a text begins: orders show how it compares, too.
#[test]
fn beginnings_are_asked_of_the_code_that_shows_less() {
    let mut world = World::new();
    let with = "WITH (engine = 'dispersed', clouds = 'a, b, c', key_backup = 'none')";
    for (table, uses, learns) in [
        ("begins", "prefix", "which texts begin as the question says"),
        ("either", "prefix, range", "which texts begin as the question says"),
        (
            "compares",
            "range",
            "how each value compares with each end of the range, the first four bits in which they differ",
        ),
    ] {
        world.database.ask(&format!("CREATE TABLE {table} (id INT PRIMARY KEY, x TEXT FOR ({uses})) {with}"));
        world.database.ask(&format!("INSERT INTO {table} VALUES (1, 'abc'), (2, 'abd'), (3, 'acd'), (4, NULL)"));
        for (question, rows) in [("LIKE 'ab%'", "1\n2"), ("LIKE 'ab%d'", "2"), ("NOT LIKE 'ab%'", "3")] {
            let sql = format!("SELECT id FROM {table} WHERE x {question} ORDER BY id");
            assert_eq!(world.database.ask(&sql), rows, "{sql}");
        }
        let told = world.database.ask(&format!("EXPLAIN LEAKAGE SELECT id FROM {table} WHERE x LIKE 'ab%'"));
        let of_x = |line: &&str| line.contains("|from this query|x: ");
        let of_x: Vec<&str> = told.lines().filter(of_x).collect();
        assert!(!of_x.is_empty() && of_x.iter().all(|line| line.contains(learns)), "{table}: {told}");
    }
}

#[test]
fn what_one_cloud_alone_says_is_called_unverified() {
    let mut world = World::new();
    for (table, with, is_alone) in [
        ("one", "clouds = 'a'", [true, true, true]),
        ("two", "clouds = 'a, b'", [false, true, true]),
        ("three", "clouds = 'a, b, c'", [false, false, false]),
    ] {
        let with = format!("WITH (engine = 'dispersed', {with}, key_backup = 'none')");
        let columns = "id INT PRIMARY KEY, x TEXT FOR (equality), n INT FOR (sum)";
        world.database.ask(&format!("CREATE TABLE {table} ({columns}) {with}"));
        world.database.ask(&format!("INSERT INTO {table} VALUES (1, 'a', 10), (2, 'b', 20), (3, 'b', 30)"));
        world.database.session.take_notices();
        let mut unverified = |sql: &str, answer: &str| {
            assert_eq!(world.database.ask(&sql.replace("TABLE", table)), answer, "{sql} of {table}");
            world.database.session.take_notices().join("\n").contains("unverified")
        };
        let questions = [
            ("SELECT sum(n) FROM TABLE", "60"),
            ("SELECT sum(n) FROM TABLE WHERE x = 'b'", "50"),
            ("SELECT id FROM TABLE WHERE x = 'b' ORDER BY id", "2\n3"),
        ];
        assert_eq!(questions.map(|(sql, answer)| unverified(sql, answer)), is_alone, "{table}");
        // Of all rows it is known here which there are, and who has a key is there or not.
        assert!(!unverified("SELECT id FROM TABLE ORDER BY id", "1\n2\n3"));
        assert!(!unverified("SELECT n FROM TABLE WHERE id = 2", "20"));
        assert!(!unverified("SELECT n FROM TABLE WHERE id IN (1, 3) ORDER BY id", "10\n30"));
        assert_eq!(unverified("SELECT n FROM TABLE WHERE id = 4", ""), is_alone[2]);
    }
}

/// What has one length alone says by it that it is there: NULL is as long.
#[test]
fn of_uuids_nobody_learns_which_are_null() {
    let mut world = World::new();
    let with =
        "WITH (engine = 'dispersed', clouds = 'a, b, c', coding = 'encryption, replication', key_backup = 'none')";
    assert_eq!(world.database.ask(&format!("CREATE TABLE t (u UUID, x TEXT) {with}")), "CREATE TABLE");
    let told = world.database.session.take_notices().join("\n");
    assert!(
        told.contains("u: a, b and c each learn nothing") && told.contains("x: a, b and c each learn lengths"),
        "{told}"
    );
    world.database.ask("INSERT INTO t VALUES ('00000000-0000-0000-0000-00000000000a', 'x'), (NULL, NULL)");
    assert_eq!(world.database.ask("SELECT u FROM t ORDER BY u"), "00000000-0000-0000-0000-00000000000a\nNULL");
}

#[test]
fn no_cloud_is_left_out_of_what_is_learned() {
    let mut world = World::new();
    let mut names: Vec<String> = Vec::new();
    for number in 0..10 {
        let name = format!("n{number}");
        world.add_folder(&name);
        names.push(name);
    }
    for (may_collude, several, left_out) in [(2, 45 + 120, 0), (4, 256, 45 + 120 + 210 + 252 - 256)] {
        let with = format!("clouds = '{}', may_fail = 1, may_collude = {may_collude}", names.join(", "));
        let columns = "id INT PRIMARY KEY, t TEXT FOR (equality) USE CLOUDS 'n8' AND 'n9'";
        world.database.ask(&format!("CREATE TABLE ten{may_collude} ({columns}) WITH (engine = 'dispersed', {with})"));
        world.database.session.take_notices();
        let told = world.database.ask(&format!("EXPLAIN LEAKAGE SELECT * FROM ten{may_collude} WHERE t = 'x'"));
        let who: BTreeSet<&str> = told.lines().filter_map(|line| line.split('|').nth(1)).collect();
        assert!(names.iter().all(|name| who.contains(name.as_str())), "{who:?}");
        assert_eq!(who.len(), names.len() + several);
        for cloud in ["n8", "n9"] {
            assert!(
                told.contains(&format!("|{cloud}|at rest|t: which are equal (and how often each comes)")),
                "{told}"
            );
        }
        let notices = world.database.session.take_notices().join("\n");
        assert_eq!(notices.contains(&format!("{left_out} coalitions more")), left_out > 0, "{notices}");
    }
}
