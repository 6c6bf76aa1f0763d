//! Joins whose one side turns out to have few rows ask an index of the other side's table for their keys, and answer as if they read it all.

use counterfoil_sql::Ram;

use crate::database::Database;

/// More rows than are read in one go, with keys that are NULL, met by none, and met by many.
fn tables(ram: Option<Ram>) -> Database {
    let mut database = Database::in_ram(ram);
    for statement in [
        "CREATE TABLE p (id INTEGER PRIMARY KEY, code TEXT UNIQUE, grp INTEGER, big BIGINT)",
        "INSERT INTO p SELECT i, 'c' || i, i % 7, i FROM generate_series(1, 3000) AS s(i)",
        "CREATE TABLE f (id INTEGER PRIMARY KEY, p INTEGER, code TEXT, x DOUBLE PRECISION, day DATE, n NUMERIC(8,2))",
        "INSERT INTO f SELECT i, CASE WHEN i % 11 > 0 THEN 1 + i * 7 % 2500 END, CASE WHEN i % 13 > 0 THEN 'c' || (i % 3100) END,
                              i % 500, DATE '2024-01-01' + i % 400, i / 100.0 FROM generate_series(1, 20000) AS s(i)",
        "CREATE INDEX f_p ON f (p)",
        "CREATE INDEX f_code ON f (code, p)",
        "CREATE INDEX f_x ON f (x)",
        "CREATE INDEX f_day ON f (day)",
    ] {
        let said = database.ask(statement);
        assert!(!said.starts_with("error"), "{statement}: {said}");
    }
    database
}

/// Each with a column of the table that is looked for in `{}`, and whether an index is asked.
const QUESTIONS: &[(&str, &str, bool)] = &[
    ("SELECT count(*), sum(n) FROM f WHERE {} IN (SELECT id FROM p WHERE code IN ('c5', 'c6', 'c2999'))", "p", true),
    ("SELECT id FROM f WHERE {} IN (SELECT id FROM p WHERE id < 3) AND n > 10 ORDER BY id", "p", true),
    ("SELECT id FROM f WHERE {} IN (SELECT big FROM p WHERE id IN (7, 9)) ORDER BY id", "p", true),
    ("SELECT count(*) FROM f WHERE {} IN (SELECT id FROM p WHERE code = 'none')", "p", true),
    ("SELECT count(*) FROM f WHERE {} IN (SELECT NULLIF(id, 3) FROM p WHERE id < 5)", "p", true),
    ("SELECT count(*) FROM f WHERE {} IN (SELECT id FROM p WHERE grp = 3)", "p", true),
    ("SELECT count(*) FROM f WHERE {} IN (SELECT id FROM p WHERE grp > 1)", "p", true),
    ("SELECT count(*) FROM f WHERE {} NOT IN (SELECT id FROM p WHERE id < 3)", "p", false),
    ("SELECT count(*) FROM f WHERE EXISTS (SELECT 1 FROM p WHERE p.id = f.{} AND p.id < 5)", "p", true),
    ("SELECT count(*) FROM f WHERE NOT EXISTS (SELECT 1 FROM p WHERE p.id = f.{} AND p.id < 5)", "p", false),
    (
        "SELECT p.id, count(f.id) FROM p LEFT JOIN f ON f.{} = p.id WHERE p.code IN ('c5', 'c2900') GROUP BY p.id ORDER BY 1",
        "p",
        true,
    ),
    (
        "SELECT p.code, (SELECT count(*) FROM f WHERE f.{} = p.id) FROM p WHERE p.id < 4 OR p.id = 2900 ORDER BY 1",
        "p",
        true,
    ),
    (
        "SELECT p.code, (SELECT max(n) FROM f WHERE f.{} = p.id) FROM p WHERE p.id < 4 OR p.id = 2900 ORDER BY 1",
        "p",
        true,
    ),
    ("SELECT count(*), min(v.y) FROM f JOIN (VALUES (7, 1), (8, 2), (7, 3)) AS v (x, y) ON v.x = f.{}", "p", true),
    (
        "SELECT count(*) FROM f JOIN (VALUES ('c7', 8), ('c50', 351)) AS v (x, y) ON v.x = f.{} AND v.y = f.p",
        "code",
        true,
    ),
    (
        "SELECT p.id FROM p WHERE p.code IN ('c1', 'c2', 'c2900') AND NOT EXISTS (SELECT 1 FROM f WHERE f.{} = p.id) ORDER BY 1",
        "p",
        true,
    ),
    (
        "SELECT p.id FROM p WHERE p.id < 9 AND p.id NOT IN (SELECT f.{} FROM f WHERE f.p IS NOT NULL) ORDER BY 1",
        "p",
        false,
    ),
    ("SELECT count(*) FROM f a JOIN p ON p.id = a.p + 0 JOIN f b ON b.{} = p.id WHERE a.id = 100", "p", true),
    ("SELECT count(*) FROM f WHERE {} IN (SELECT DATE '2024-01-01' + id FROM p WHERE id < 4)", "day", true),
    ("SELECT count(*) FROM f WHERE {} IN (SELECT id * 1.0::FLOAT8 FROM p WHERE id < 4)", "x", false),
    (
        "WITH RECURSIVE w AS (SELECT 5 AS at UNION SELECT f.id % 50 FROM w JOIN f ON f.{} = w.at) SELECT count(*), sum(at) FROM w",
        "p",
        true,
    ),
];

/// As a column of an index, and as something that none is asked for.
fn both(question: &str, column: &str) -> [String; 2] {
    let hidden = match column {
        "code" => "code || ''".to_owned(),
        "day" => "day + 0".to_owned(),
        other => format!("{other} + 0"),
    };
    [question.replace("{}", column), question.replace("{}", &hidden)]
}

#[test]
fn what_an_index_is_asked_for_is_what_a_scan_finds() {
    let mut database = tables(None);
    let asked = same_both_ways(&mut database);
    for ((question, column, is_asked), plan) in QUESTIONS.iter().zip(asked) {
        assert_eq!(plan.contains("ByKeys: index"), *is_asked, "{question}\n{plan}");
        // Of many keys all is read; and of a recursive query each step is a plan of its own.
        if *is_asked && !question.contains("grp") && !question.contains("RECURSIVE") {
            let [by_keys, _] = both(question, column);
            let ran = database.ask(&format!("EXPLAIN ANALYZE {by_keys}"));
            let is_read = ran.lines().any(|line| line.contains("Index: ") && line.contains(" of f ("));
            assert!(is_read, "{by_keys}\n{ran}");
        }
    }
}

#[test]
fn with_little_memory_too() {
    // What is merged as a full join is read whole, and so are the rows of groups.
    let asked = same_both_ways(&mut tables(Some(Ram::of(64 << 10).expect("enough"))));
    let asked = asked.iter().filter(|plan| plan.contains("ByKeys: index")).count();
    assert!(asked >= 12, "{asked}");
}

/// The plan of each question, which is answered as without an index.
fn same_both_ways(database: &mut Database) -> Vec<String> {
    let mut plans = Vec::new();
    for (question, column, _) in QUESTIONS {
        let [by_keys, scanned] = both(question, column);
        plans.push(database.ask(&format!("EXPLAIN {by_keys}")));
        let expected = database.ask(&scanned);
        assert!(!expected.starts_with("error"), "{scanned}: {expected}");
        assert_eq!(database.ask(&by_keys), expected, "{by_keys}");
        let prepared = format!("PREPARE q AS {by_keys}");
        assert_eq!(database.ask(&prepared), "PREPARE");
        (0..2).for_each(|_| assert_eq!(database.ask("EXECUTE q"), expected, "{by_keys}"));
        database.ask("DEALLOCATE q");
    }
    plans
}

#[test]
fn what_ran_is_shown_and_changes_meet_few_rows_too() {
    let mut database = tables(None);
    let wanted = "WHERE p IN (SELECT id FROM p WHERE code IN ('c5', 'c6'))";
    let ran = database.ask(&format!("EXPLAIN ANALYZE SELECT count(*) FROM f {wanted}"));
    assert!(ran.contains("Rows that were read already") && ran.contains("Index: f_p of f ("), "{ran}");
    let ran = database.ask("EXPLAIN ANALYZE SELECT count(*) FROM f WHERE p IN (SELECT id FROM p WHERE grp > 1)");
    assert!(ran.contains("Rows that were read already") && ran.contains("Scan: f"), "{ran}");
    let count = database.ask(&format!("SELECT count(*) FROM f {wanted}"));
    assert_eq!(database.ask(&format!("UPDATE f SET n = 0 {wanted}")), format!("UPDATE {count}"));
    assert_eq!(database.ask(&format!("DELETE FROM f {wanted}")), format!("DELETE {count}"));
    assert_eq!(database.ask(&format!("SELECT count(*) FROM f {wanted}")), "0");
    assert_eq!(database.ask("DELETE FROM f WHERE p IN (SELECT id FROM p WHERE code = 'none')"), "DELETE 0");
}

/// A page behind the last row of the one before: by rows that are compared, and as people write that out.
#[test]
fn pages_behind_a_key_are_read_where_the_index_says_that_they_begin() {
    let mut database = tables(None);
    database.ask("CREATE TABLE g AS SELECT id, code, p FROM f WHERE id <= 5000");
    for (behind, order) in [("(code, p) > ('c250', 7)", "code, p, id"), ("(p, id) <= (1200, 9000)", "p DESC, id DESC")]
    {
        let page = |table: &str| format!("SELECT id, code, p FROM {table} WHERE {behind} ORDER BY {order} LIMIT 4");
        let plan = database.ask(&format!("EXPLAIN {}", page("f")));
        assert!(plan.contains("Answer: indexes: ["), "{plan}");
        let expected = database.ask(&page("(SELECT * FROM f WHERE id + 0 > 0) AS f"));
        assert_eq!(database.ask(&page("f")), expected, "{behind}");
    }
    let written_out = "FROM f WHERE code > 'c250' OR (code = 'c250' AND p > 7) ORDER BY code, p, id LIMIT 4";
    let plan = database.ask(&format!("EXPLAIN SELECT id {written_out}"));
    assert!(plan.contains("Answer: indexes: ["), "{plan}");
    let by_rows = database.ask("SELECT id FROM f WHERE (code, p) > ('c250', 7) ORDER BY code, p, id LIMIT 4");
    assert_eq!(database.ask(&format!("SELECT id {written_out}")), by_rows);
    // The bounds are those around all alternatives.
    let apart =
        "FROM f WHERE p > 30 OR (p = 10 AND id > 500) OR (p BETWEEN 12 AND 13 AND id < 9000) ORDER BY p, id LIMIT 5";
    let expected = database
        .ask(&format!("SELECT p, id {}", apart.replace("p > 30", "p + 0 > 30").replace("(p = 10", "(p + 0 = 10")));
    assert!(expected.starts_with("10|"), "{expected}");
    assert_eq!(database.ask(&format!("SELECT p, id {apart}")), expected);
    // As values, with NULLs on either side.
    let rows = "(VALUES (1, 2), (1, NULL), (NULL, 2), (2, 0), (0, 9)) AS r (a, b)";
    let compared =
        database.ask(&format!("SELECT (a, b) > (1, 1), (a, b) <= (1, NULL), NOT (a, b) < (1, 3) FROM {rows}"));
    assert_eq!(compared, "true|NULL|false\nNULL|NULL|NULL\nNULL|NULL|NULL\ntrue|false|true\nfalse|true|false");
}

#[test]
fn what_is_there_is_found_by_its_index_where_little_is() {
    let mut database = tables(None);
    database.ask("ALTER TABLE f ADD COLUMN h INTEGER");
    database.ask("UPDATE f SET h = id WHERE id % 1000 = 0");
    database.ask("CREATE INDEX f_h ON f (h)");
    let plan = database.ask("EXPLAIN SELECT id FROM f WHERE h IS NOT NULL");
    assert!(plan.contains("Index: f_h of f (20 candidates)") || plan.contains("[f_h] (20 candidates"), "{plan}");
    assert_eq!(database.ask("SELECT count(*), sum(id) FROM f WHERE h IS NOT NULL"), "20|210000");
    assert_eq!(database.ask("SELECT count(*) FROM f WHERE h IS NOT NULL"), "20");
    let plan = database.ask("EXPLAIN SELECT id FROM f WHERE p IS NOT NULL");
    assert!(plan.contains("Scan: f"), "{plan}");
    database.ask("UPDATE f SET h = NULL WHERE id = 1000");
    assert_eq!(database.ask("SELECT count(*) FROM f WHERE h IS NOT NULL AND h > 0"), "19");
}
