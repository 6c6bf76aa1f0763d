//! Joins along foreign keys: read off the rows, they answer as the query library's own joins do.

use crate::database::Database;

const OFF: &str = "SET enable_foreign_key_joins = off";
const ON: &str = "SET enable_foreign_key_joins = on";

/// Figure 7 of MILo-DB, small: T0 references T1 and T3, T1 references T2, T3 references T4 and T5.
fn paper() -> Database {
    let mut database = Database::after(
        "CREATE TABLE t2 (id INTEGER PRIMARY KEY, dup INTEGER, ms INTEGER);
         CREATE TABLE t4 (id INTEGER PRIMARY KEY, dup INTEGER, ms INTEGER);
         CREATE TABLE t5 (id INTEGER PRIMARY KEY, dup INTEGER, ms INTEGER);
         CREATE TABLE t1 (id INTEGER PRIMARY KEY, t2 INTEGER REFERENCES t2, dup INTEGER, ms INTEGER);
         CREATE TABLE t3 (id INTEGER PRIMARY KEY, t4 INTEGER REFERENCES t4, t5 INTEGER, dup INTEGER, ms INTEGER,
             FOREIGN KEY (t5) REFERENCES t5 NOT ENFORCED);
         CREATE TABLE t0 (id BIGINT PRIMARY KEY, t1 INTEGER REFERENCES t1, t3 INTEGER REFERENCES t3, dup INTEGER, ms INTEGER);
         CREATE INDEX ON t2 (dup); CREATE INDEX ON t4 (dup); CREATE INDEX ON t5 (dup); CREATE INDEX ON t1 (dup);
         CREATE INDEX ON t3 (dup); CREATE INDEX ON t0 (dup)",
    );
    for statement in [
        "INSERT INTO t2 SELECT i, i % 10, i * 7 % 1000 FROM generate_series(0, 49) AS i",
        "INSERT INTO t4 SELECT i, i % 10, i * 3 % 1000 FROM generate_series(0, 29) AS i",
        "INSERT INTO t5 SELECT i, i % 10, i * 9 % 1000 FROM generate_series(0, 39) AS i",
        "INSERT INTO t1 SELECT i, i * 13 % 50, i % 40, i * 7 % 1000 FROM generate_series(0, 399) AS i",
        // Some reference nothing, and some what does not exist.
        "INSERT INTO t3 SELECT i, nullif(i * 11 % 31, 30), i * 17 % 45, i % 40, i * 3 % 1000 FROM generate_series(0, 599) AS i",
        "INSERT INTO t0 SELECT i, i * 31 % 400, nullif(i * 37 % 601, 600), i % 300, i % 1000 FROM generate_series(0, 5999) AS i",
        "DELETE FROM t0 WHERE id % 97 = 5",
        "UPDATE t0 SET t1 = 7, dup = 1 WHERE id % 101 = 3",
        "UPDATE t3 SET t4 = 12 WHERE id % 31 = 4",
        "UPDATE t5 SET id = 41 WHERE id = 39",
    ] {
        let said = database.ask(statement);
        assert!(!said.starts_with("error"), "{statement}: {said}");
    }
    database
}

/// Answers a query both ways; they must agree. What the plan says with the rule.
fn both(database: &mut Database, query: &str) -> String {
    // What is answered without the library's planner is compared elsewhere.
    database.expect(&[("SET enable_direct_queries = off", "SET")]);
    let joined = database.ask(query);
    assert!(!joined.starts_with("error"), "{query}: {joined}");
    database.expect(&[(OFF, "SET")]);
    let plain = database.ask(query);
    let plan = database.ask(&format!("EXPLAIN {query}"));
    assert!(!plan.contains("Join along"), "{query}: {plan}");
    database.expect(&[(ON, "SET")]);
    assert_eq!(joined, plain, "{query}");
    database.ask(&format!("EXPLAIN {query}"))
}

#[test]
fn a_tree_of_joins_is_one_scan() {
    let mut database = paper();
    let all = "t0 JOIN t1 ON t0.t1 = t1.id JOIN t2 ON t1.t2 = t2.id JOIN t3 ON t0.t3 = t3.id \
               JOIN t4 ON t3.t4 = t4.id JOIN t5 ON t3.t5 = t5.id";
    for (query, indexes) in [
        (format!("SELECT t0.id, t1.ms, t2.ms, t5.id FROM {all} WHERE t1.dup = 3 ORDER BY 1"), "t1_dup_idx"),
        (format!("SELECT t0.id, t4.dup FROM {all} WHERE t0.dup = 7 AND t4.ms < 50 ORDER BY 1"), "t0_dup_idx"),
        (format!("SELECT count(*), sum(t3.ms), min(t5.ms) FROM {all} WHERE t1.id IN (3, 5, 9)"), "t1_pkey"),
        (
            format!("SELECT t2.dup, count(*) FROM {all} WHERE t3.id BETWEEN 5 AND 9 GROUP BY t2.dup ORDER BY 1"),
            "t3_pkey",
        ),
        ("SELECT t0.id FROM t0, t3 WHERE t3.id = t0.t3 AND t3.t4 IS NULL AND t3.id < 60 ORDER BY 1".into(), "t3_"),
        ("SELECT count(*) FROM t3 JOIN t0 ON t0.t3 = t3.id WHERE t3.id = 17".into(), "t3_pkey"),
        (format!("SELECT t0.id, t2.ms, t4.ms FROM {all} WHERE t2.ms = 7 AND t4.dup < 3 ORDER BY 1"), "t2 read"),
        (format!("SELECT count(*), sum(t0.ms) FROM {all} WHERE t4.ms IN (3, 6, 9, 12)"), "t4 read"),
        (
            format!("SELECT t0.id, t2.ms FROM {all} WHERE t2.id = 7 OR t5.id = 5 ORDER BY 1"),
            // The library knows that t3.t5 is 5 as well, and the nearer index serves.
            "t2_pkey along t0_t1_fkey.t1_t2_fkey or t3_t5_fkey along t0_t3_fkey",
        ),
        (
            format!("SELECT count(*) FROM {all} WHERE NOT (t2.id <> 7 AND t5.id NOT IN (5, 6) AND t0.dup IS NOT NULL)"),
            " along t0_t3_fkey",
        ),
        ("SELECT a.id, b.id FROM t3 AS a JOIN t5 AS b ON a.t5 = b.id WHERE b.id = 41".into(), "t5_pkey"),
        ("SELECT * FROM t1 JOIN t2 ON t1.t2 = t2.id AND t2.id = 7 ORDER BY t1.id DESC LIMIT 3".into(), "t2_pkey"),
    ] {
        let plan = both(&mut database, &query);
        assert!(plan.contains("Join along foreign keys: "), "{query}: {plan}");
        assert!(plan.contains(indexes), "{query}: {plan}");
        assert!(!plan.contains("HashJoin"), "{query}: {plan}");
    }
}

#[test]
fn what_is_no_join_along_foreign_keys_is_left_alone() {
    let mut database = paper();
    for query in [
        // By other columns, by one of two, by more than a key says.
        "SELECT count(*) FROM t0 JOIN t1 ON t0.dup = t1.dup WHERE t1.id = 3",
        "SELECT count(*) FROM t0 JOIN t1 ON t0.t1 = t1.id AND t0.dup = t1.dup WHERE t1.id = 3",
        "SELECT count(*) FROM t0 JOIN t1 ON t0.t3 = t1.id WHERE t1.id = 3",
        "SELECT count(*) FROM t0 JOIN t1 ON t0.t1 = t1.id + 1 WHERE t1.id = 3",
        // Rows that join nothing are part of the answer, or the only one.
        "SELECT count(*), count(t1.id) FROM t1 LEFT JOIN t0 ON t0.t1 = t1.id AND t0.id < 9 WHERE t1.id = 3",
        "SELECT count(*), count(t1.id) FROM t0 LEFT JOIN t1 ON t0.t1 = t1.id AND t1.id = 3",
        "SELECT count(*) FROM t0 WHERE t0.t1 NOT IN (SELECT id FROM t1 WHERE dup = 3)",
        // No index names few.
        "SELECT count(*) FROM t0 JOIN t1 ON t0.t1 = t1.id WHERE t1.ms > 5",
        "SELECT count(*) FROM t0 JOIN t1 ON t0.t1 = t1.id WHERE t1.id > 5",
        "SELECT count(*) FROM t0 JOIN t1 ON t0.t1 = t1.id WHERE t1.id = 3 OR t0.ms + t1.ms > 1990",
        "SELECT count(*) FROM t0 JOIN t1 ON t0.t1 = t1.id WHERE t1.id = 3 OR t0.ms = 5",
    ] {
        let plan = both(&mut database, query);
        assert!(!plan.contains("Join along"), "{query}: {plan}");
    }
    // The part that is one: what stays of t0 is not decided by it.
    let part = "SELECT count(*) FROM t0 LEFT JOIN (t1 JOIN t2 ON t1.t2 = t2.id AND t2.id = 7) ON t0.t1 = t1.id WHERE t0.dup = 7";
    let plan = both(&mut database, part);
    assert!(plan.contains("HashJoin") && plan.contains("Join along foreign keys: t1 to t2"), "{plan}");
}

#[test]
fn conditions_between_tables_and_tables_that_may_lack_a_row() {
    let mut database = paper();
    for query in [
        "SELECT count(*) FROM t0 JOIN t1 ON t0.t1 = t1.id AND t0.ms < t1.ms WHERE t1.id = 3",
        "SELECT t0.id, t1.ms + t2.ms FROM t0 JOIN t1 ON t0.t1 = t1.id JOIN t2 ON t1.t2 = t2.id \
         WHERE t2.id = 7 AND t0.ms + t1.ms > 700 AND t1.id::text LIKE '1%' ORDER BY 1",
        "SELECT t0.id, t1.id, t1.ms FROM t0 LEFT JOIN t1 ON t0.t1 = t1.id AND t1.dup < 20 WHERE t0.dup = 7 ORDER BY 1",
        "SELECT t0.id, t3.id, t4.id, t5.ms FROM t0 LEFT JOIN t3 ON t0.t3 = t3.id LEFT JOIN t4 ON t3.t4 = t4.id \
         JOIN t1 ON t0.t1 = t1.id LEFT JOIN t2 ON t2.id = t1.t2 LEFT JOIN t5 ON t5.id = 3 WHERE t1.id IN (3, 5) ORDER BY 1",
        "SELECT t0.id, t1.ms, t2.dup FROM t0 JOIN t1 ON t0.t1 = t1.id LEFT JOIN t2 ON t1.t2 = t2.id AND t2.dup = 4 \
         WHERE t1.id BETWEEN 3 AND 9 AND (t2.id IS NULL OR t2.ms > 100) ORDER BY 1",
        "SELECT count(*), count(t4.id), count(t5.dup), max(t5.ms) FROM t0 JOIN t3 ON t0.t3 = t3.id \
         LEFT JOIN t4 ON t3.t4 = t4.id LEFT JOIN t5 ON t3.t5 = t5.id WHERE t3.dup = 11",
        "SELECT t0.id, t1.id AS one FROM t0 JOIN t3 ON t0.t3 = t3.id AND t0.ms < t3.ms LEFT JOIN t1 ON t0.t1 = t1.id \
         WHERE t0.dup = 7 AND (t1.ms > 500 OR t0.ms > 300) ORDER BY 1",
        "SELECT t3.id FROM t3 LEFT JOIN t5 ON t3.t5 = t5.id WHERE t3.id < 20 AND t5.id IS NULL ORDER BY 1",
    ] {
        let plan = both(&mut database, query);
        // With a condition only where no two columns have one name.
        let is_plain = !query.contains(" < t1.ms") && !query.contains("LIKE") && !query.contains(" < t3.ms");
        assert!(!is_plain || plan.contains("Join along foreign keys: "), "{query}: {plan}");
    }
    let apart = "SELECT t0.ms FROM t0 JOIN t3 ON t0.t3 = t3.id AND t0.ms < t3.t5 * 20 WHERE t0.dup = 7 ORDER BY 1";
    let plan = both(&mut database, apart);
    assert!(plan.contains("Join along foreign keys: "), "{plan}");
}

#[test]
fn several_threads_read_rows_that_are_many_and_none_is_lost_or_moved() {
    let mut database = paper();
    let more = "INSERT INTO t0 SELECT i, i * 31 % 400, NULL, i % 300, i % 1000 FROM generate_series(20000, 49999) AS i ORDER BY i";
    assert_eq!(database.ask(more), "INSERT 30000");
    let query =
        "SELECT t0.id, t1.ms, t2.dup FROM t0 JOIN t1 ON t0.t1 = t1.id JOIN t2 ON t1.t2 = t2.id WHERE t1.dup < 9";
    let ordered = format!("{query} ORDER BY t0.id");
    let plan = both(&mut database, &ordered);
    let candidates = plan.split(" candidates of t0").next().and_then(|plan| plan.rsplit('(').next());
    let candidates: usize = candidates.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{plan}"));
    assert!(candidates > 6000, "two threads have something to do: {plan}");
    // Without an order they come, where no planner puts others between, in that of the rows they were read from.
    let expected = database.ask(&ordered);
    assert!(expected.lines().count() > 6000);
    database.expect(&[("SET enable_direct_queries = on", "SET")]);
    let found = database.ask(query);
    let differs = found.lines().zip(expected.lines()).position(|(one, other)| one != other);
    assert_eq!((found.lines().count(), differs), (expected.lines().count(), None), "rows are lost or moved");
    for rows in [700, 4100] {
        let first: Vec<&str> = expected.lines().take(rows).collect();
        assert!(database.ask(&format!("{query} LIMIT {rows}")) == first.join("\n"), "of the first {rows}");
    }
}

#[test]
fn columns_of_one_name_are_not_taken_for_one_another() {
    let mut database = paper();
    for query in [
        "SELECT t0.id, t1.id FROM t0 JOIN t3 ON t0.t3 = t3.id AND t0.ms < t3.ms LEFT JOIN t1 ON t0.t1 = t1.id \
         WHERE t0.dup = 7 AND (t1.id IS NULL OR t0.id > 3000) ORDER BY 1",
        "SELECT t0.id, t3.id, t1.dup, t0.dup FROM t0 LEFT JOIN t1 ON t0.t1 = t1.id JOIN t3 ON t0.t3 = t3.id \
         WHERE t3.dup = 11 AND t0.ms + t3.ms > 500 AND (t1.dup IS NULL OR t1.dup < t0.dup) ORDER BY 1",
    ] {
        both(&mut database, query);
    }
}

#[test]
fn two_references_to_one_table_and_keys_of_two_columns() {
    let mut database = Database::after(
        "CREATE TABLE airport (faa CHAR(3) PRIMARY KEY, name TEXT);
         CREATE TABLE weather (origin CHAR(3), hour INTEGER, wind REAL, PRIMARY KEY (origin, hour));
         CREATE TABLE flight (id INTEGER PRIMARY KEY, origin CHAR(3) REFERENCES airport, dest CHAR(3) REFERENCES airport,
             hour INTEGER, carrier TEXT, FOREIGN KEY (hour, origin) REFERENCES weather (hour, origin));
         INSERT INTO airport SELECT 'A' || lpad(i::text, 2, '0'), 'airport ' || i FROM generate_series(0, 59) AS i;
         INSERT INTO weather SELECT 'A' || lpad((i % 3)::text, 2, '0'), i / 3, i FROM generate_series(0, 299) AS i;
         INSERT INTO flight SELECT i, 'A' || lpad((i % 3)::text, 2, '0'), 'A' || lpad((i * 7 % 60)::text, 2, '0'),
             nullif(i % 101, 100), 'c' || (i % 16) FROM generate_series(0, 4999) AS i",
    );
    for query in [
        "SELECT f.id, o.name, d.name, w.wind FROM flight AS f JOIN airport AS o ON f.origin = o.faa \
         JOIN airport AS d ON f.dest = d.faa JOIN weather AS w ON w.origin = f.origin AND w.hour = f.hour \
         WHERE d.faa = 'A07' ORDER BY f.id",
        "SELECT f.id, w.wind FROM flight AS f JOIN weather AS w ON w.origin = f.origin AND w.hour = f.hour \
         WHERE w.hour = 3 AND w.origin = 'A01' ORDER BY 1",
        "SELECT count(*), max(o.name) FROM flight AS f JOIN airport AS o ON f.origin = o.faa \
         JOIN weather AS w ON w.origin = o.faa AND w.hour = f.hour WHERE f.id BETWEEN 10 AND 30",
        "SELECT d.name, count(*) FROM flight f JOIN airport d ON d.faa = f.dest JOIN airport again ON again.faa = f.dest \
         WHERE f.dest IN ('A01', 'A02') GROUP BY 1 ORDER BY 1",
    ] {
        let plan = both(&mut database, query);
        assert!(plan.contains("Join along foreign keys: flight to "), "{query}: {plan}");
    }
    // Half of a key of two columns joins something else.
    let half =
        "SELECT count(*) FROM flight AS f JOIN weather AS w ON w.hour = f.hour WHERE w.hour = 3 AND w.origin = 'A01'";
    let plan = both(&mut database, half);
    assert!(!plan.contains("Join along"), "{plan}");
}

#[test]
fn a_transaction_joins_what_it_has_changed() {
    let mut database = paper();
    let query = "SELECT count(*), sum(t0.id), min(t2.id) FROM t0 JOIN t1 ON t0.t1 = t1.id JOIN t2 ON t1.t2 = t2.id WHERE t2.id = 7";
    let before = database.ask(query);
    for statement in ["BEGIN", "UPDATE t1 SET t2 = 7 WHERE id = 11", "INSERT INTO t0 VALUES (10000, 11, NULL, 0, 0)"] {
        assert!(!database.ask(statement).starts_with("error"));
    }
    let plan = both(&mut database, query);
    assert!(plan.contains("Join along"), "{plan}");
    assert_ne!(database.ask(query), before);
    database.ask("ROLLBACK");
    both(&mut database, query);
    assert_eq!(database.ask(query), before);
    for statement in
        ["VACUUM", "UPDATE t2 SET id = 60 WHERE id = 7", "ALTER TABLE t3 ADD COLUMN extra TEXT DEFAULT 'x'"]
    {
        let said = database.ask(statement);
        // t2.id is referenced by t1, so it stays.
        assert!(!said.starts_with("error") || said.contains("foreign key"), "{said}");
        both(&mut database, query);
    }
}
