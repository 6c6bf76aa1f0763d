//! With little memory questions are answered as with much, or end with what they need; and the memory they take is bounded.

use counterfoil_sql::Ram;

use crate::database::Database;

/// A table and one that it references, with an index for some columns.
fn filled(ram: Option<Ram>) -> Database {
    let mut database = Database::in_ram(ram);
    for statement in [
        "CREATE TABLE p (id INTEGER PRIMARY KEY, name TEXT, kind INTEGER)",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p, a INTEGER, d DOUBLE PRECISION, v TEXT, day DATE, \
         at TIMESTAMP, n NUMERIC(8,2), r REAL)",
        "CREATE INDEX ON p (kind)",
        "CREATE INDEX ON t (a)",
        "INSERT INTO p SELECT i, 'name ' || i % 37, i % 5 FROM generate_series(1, 300) AS i",
        "INSERT INTO t SELECT i, i % 300 + 1, i % 211, i / 8.0, 'text ' || i % 1009, DATE '2013-01-01' + (i % 400)::INTEGER, \
         (DATE '2013-01-01' + (i % 400)::INTEGER)::TIMESTAMP, i * 0.25, i / 16.0 FROM generate_series(1, 20000) AS i",
        "DELETE FROM t WHERE a = 33",
        "UPDATE t SET v = 'new', p = NULL WHERE a = 7",
    ] {
        let said = database.ask(statement);
        assert!(!said.starts_with("error"), "{statement}: {said}");
    }
    database
}

const ANSWERED: [&str; 37] = [
    "SELECT * FROM t WHERE id = 77",
    "SELECT * FROM t ORDER BY v DESC, id LIMIT 50",
    "SELECT id, d FROM t ORDER BY d DESC, id OFFSET 19000 LIMIT 40",
    "SELECT v, count(*), min(id), max(d), avg(a) FROM t GROUP BY v ORDER BY v",
    "SELECT DISTINCT a FROM t ORDER BY a DESC",
    "SELECT count(*) FROM t",
    "SELECT count(*), sum(a), avg(id) FROM t WHERE id > 5",
    "SELECT name, count(*), sum(a) FROM t JOIN p ON t.p = p.id GROUP BY name HAVING count(*) > 500 ORDER BY name",
    "SELECT t.id, name FROM t LEFT JOIN p ON t.p = p.id WHERE a IN (7, 8) ORDER BY name NULLS FIRST, t.id",
    "SELECT t.id FROM t JOIN p ON t.p = p.id WHERE kind = 3 AND v LIKE 'text 1%' ORDER BY t.id DESC",
    "SELECT id + 1, upper(v) FROM t WHERE id + a = 300",
    "SELECT id FROM t WHERE id % 5000 = 3 AND v > 'text 2'",
    "SELECT table_name, column_name FROM information_schema.columns ORDER BY table_name, ordinal_position",
    "SELECT x FROM (VALUES (3), (1), (2)) AS y (x) ORDER BY x + 0",
    "SELECT t.id, name FROM t JOIN p ON t.p = p.id WHERE p.id = 3 OR a IN (7, 8) OR v = 'text 77' ORDER BY t.id",
    "SELECT count(*), max(d) FROM t JOIN p ON t.p = p.id WHERE (kind = 3 AND a = 8) OR p.name NOT LIKE 'name%' OR d = 0.5",
    // Dates, times and numbers are read as their column's type.
    "SELECT count(*) FROM t WHERE day BETWEEN '2013-02-01' AND '2013-03-01'",
    "SELECT id FROM t WHERE day = DATE '2013-02-01' ORDER BY v, id",
    "SELECT day, count(*) FROM t WHERE day < '2013-01-20' GROUP BY day ORDER BY day",
    "SELECT count(*), max(at) FROM t WHERE at >= '2013-01-02' AND at < TIMESTAMP '2013-01-03 12:30:00'",
    "SELECT count(*) FROM t WHERE at <= '2013-01-02 00:00:00.5' AND day IN ('2013-01-02', '2013-01-03')",
    "SELECT a, sum(n) FROM t WHERE n BETWEEN 10 AND 99.75 GROUP BY a ORDER BY a",
    "SELECT count(*) FROM t WHERE n = 1.5 OR n = 2 OR n IN (3.25, 4)",
    "SELECT id FROM t WHERE r = 5.5 OR r < 0.25 ORDER BY v, id",
    "SELECT count(*), min(r) FROM t WHERE r > 1000 AND n < 4500.5",
    "SELECT a, count(*) FROM t WHERE a < 99999999999 AND NOT (p > 3000000000) GROUP BY a ORDER BY a",
    // Along foreign keys, with columns that are worked out.
    "SELECT t.id, upper(p.name) FROM t JOIN p ON t.p = p.id WHERE t.a = 5",
    "SELECT t.id, p.name FROM t JOIN p ON t.p = p.id WHERE t.a = 4 + 1",
    "SELECT t.id, p.name || 'x' FROM t JOIN p ON t.p = p.id WHERE p.id = 77 AND t.day = date '2013-05-05'",
    "SELECT p.*, t.* FROM p JOIN t ON t.p = p.id WHERE t.id = 5",
    // Counts beside what is counted once each.
    "SELECT count(*), count(DISTINCT v) FROM t",
    "SELECT count(id), count(DISTINCT v) FROM t",
    "SELECT count(*), sum(1), count(2), count(DISTINCT v) FROM t",
    "SELECT count(p), sum(CASE WHEN p IS NOT NULL THEN 1 ELSE 0 END), count(DISTINCT v), count(*) FROM t",
    "SELECT a % 3, count(*), count(p), count(DISTINCT v), sum(a), max(d) FROM t GROUP BY a % 3 ORDER BY 1",
    "SELECT count(*), count(p), count(DISTINCT v), count(DISTINCT v) + count(*) FROM t WHERE id < 0",
    "SELECT p, count(*) AS many, count(DISTINCT a + 1) FROM t GROUP BY p HAVING count(*) > 60 ORDER BY 1 NULLS FIRST",
];

/// What the query library is left with: rows are sorted aside for it.
const REWORDED: [&str; 62] = [
    "SELECT id, row_number() OVER (ORDER BY id DESC) FROM t ORDER BY id",
    "SELECT id, rank() OVER (PARTITION BY a ORDER BY d), lag(v) OVER (PARTITION BY a ORDER BY d) FROM t ORDER BY id",
    "SELECT id, sum(a) OVER (ORDER BY id), lead(id, 3) OVER (ORDER BY id) FROM t ORDER BY id",
    "SELECT id, count(*) OVER (PARTITION BY p ORDER BY a, id ROWS UNBOUNDED PRECEDING) FROM t ORDER BY id",
    "SELECT id, max(d) OVER (ORDER BY a) FROM t ORDER BY id",
    "SELECT id FROM t ORDER BY id + 1 LIMIT 2",
    "SELECT id % 7, count(*) FROM t GROUP BY id % 7",
    "SELECT t.id, p.id FROM t JOIN p ON t.a = p.id",
    "SELECT id FROM t WHERE a IN (SELECT kind FROM p)",
    "SELECT id FROM p UNION SELECT id FROM t",
    "SELECT count(DISTINCT a) FROM t",
    "SELECT p, count(DISTINCT a), count(DISTINCT v), sum(d) FROM t GROUP BY p",
    "SELECT sum(d), avg(d), sum(r), max(v), min(v) FROM t",
    "SELECT a, sum(d), avg(d) FROM t GROUP BY a",
    "SELECT a, count(*) FROM t GROUP BY a HAVING count(*) > 90 OR a = 7 OR min(id) < 3",
    "SELECT a, count(*), 1, 'x' FROM t GROUP BY a ORDER BY 2, 1",
    "SELECT a AS id, id AS a FROM t ORDER BY a, id LIMIT 5",
    "SELECT id FROM t WHERE v ILIKE 'TEXT 77%'",
    "SELECT id FROM t WHERE a = 1.5 OR a = 7.0",
    "SELECT upper(name), count(*) FROM t JOIN p ON t.p = p.id GROUP BY upper(name) ORDER BY 2 DESC, 1",
    "SELECT lower(v) AS low, sum(a) + 1, sum(a) / count(*) FROM t GROUP BY low ORDER BY low DESC LIMIT 20 OFFSET 3",
    "SELECT DISTINCT a % 10, length(v) FROM t",
    "SELECT t.id FROM t LEFT JOIN p ON t.a = p.kind WHERE p.id IS NULL",
    "SELECT t.id, p.name FROM t FULL JOIN p ON t.a = p.id WHERE t.id IS NULL OR t.id < 900",
    "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM p WHERE p.id = t.a)",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM p WHERE p.id = t.a AND p.kind > 3)",
    "SELECT id FROM t WHERE d > (SELECT avg(d) FROM t) AND id < 10100",
    "SELECT name, (SELECT sum(a) FROM t WHERE t.p = q.id) AS n FROM p AS q",
    "SELECT x.id, y.id FROM p x JOIN p y ON x.kind = y.kind WHERE x.id < y.id AND y.id < 90",
    "SELECT count(*) FROM t x JOIN t y ON x.v = y.v AND x.day = y.day",
    "SELECT x.id, y.id FROM p x CROSS JOIN p y WHERE x.id + y.id = 300",
    "SELECT x.id, y.id FROM p x JOIN p y ON x.id > y.id * 40",
    "SELECT id FROM t WHERE a = 3 EXCEPT SELECT id FROM t WHERE p < 100",
    "SELECT id FROM t INTERSECT SELECT kind FROM p",
    "SELECT a FROM t UNION ALL SELECT kind FROM p ORDER BY 1 DESC LIMIT 30",
    "WITH w AS (SELECT a, max(d) AS top FROM t GROUP BY a) SELECT t.id, w.top FROM t JOIN w ON t.a = w.a AND t.d = w.top",
    "SELECT day, n, count(*) FROM t GROUP BY day, n HAVING count(*) = 1 AND n < 50 ORDER BY n",
    "SELECT a, array_agg(id) FROM t WHERE id < 2000 GROUP BY a",
    "SELECT a, string_agg(v, ',' ORDER BY id DESC) FROM t WHERE id < 2000 GROUP BY a ORDER BY a",
    "SELECT bool_and(a > 3), bool_or(a > 300), stddev(a) IS NULL FROM t",
    "SELECT a > 100, max(at), min(day) FROM t GROUP BY a > 100",
    "SELECT count(*) FROM (SELECT DISTINCT p, a FROM t) AS x",
    "SELECT a FROM (SELECT a, count(*) AS n FROM t GROUP BY a) AS x WHERE n = (SELECT max(n) FROM (SELECT count(*) AS n FROM t GROUP BY a) y)",
    "SELECT kind, sum(total) FROM p JOIN (SELECT p, sum(a) AS total FROM t GROUP BY p) AS x ON x.p = p.id GROUP BY kind ORDER BY kind",
    "SELECT CASE WHEN a < 100 THEN 'low' ELSE 'high' END AS side, count(*) FROM t GROUP BY side ORDER BY side",
    "SELECT id FROM t ORDER BY d / 3 DESC NULLS LAST, id LIMIT 7",
    "SELECT v FROM t GROUP BY v ORDER BY count(*) DESC, v LIMIT 9",
    "SELECT id FROM t WHERE a NOT IN (SELECT kind FROM p WHERE kind < 4)",
    "SELECT id FROM t WHERE p NOT IN (SELECT kind FROM p)",
    "SELECT id FROM t WHERE p NOT IN (SELECT kind FROM p WHERE kind > 4)",
    "SELECT id FROM p WHERE id NOT IN (SELECT p FROM t WHERE a IN (6, 7))",
    "SELECT id FROM p WHERE id * 1.5 NOT IN (SELECT d FROM t) AND name NOT IN (SELECT v FROM t)",
    "SELECT x.id, y.id FROM t x JOIN t y ON x.d = y.d AND x.at = y.at AND x.id < 100",
    "SELECT x.id, y.id FROM p x LEFT JOIN p y ON x.kind = y.kind AND x.id > y.id * 20 AND y.name <> x.name",
    "SELECT x.id, y.id FROM p x RIGHT JOIN p y ON x.kind = y.kind AND x.id > y.id * 20 WHERE y.id < 50",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 300) SELECT sum(n), max(n) FROM r",
    "SELECT p, string_agg(v, ',') FROM t WHERE id < 3000 GROUP BY p",
    "SELECT count(*) FROM t x JOIN t y ON CASE WHEN x.id > 9 THEN NULL ELSE x.d END = CASE WHEN y.id > 9 THEN NULL ELSE y.d END \
     WHERE x.id < 50 AND y.id < 50",
    "SELECT round(avg(a), 2), min(length(v)), count(p) FROM t WHERE NOT (a BETWEEN 3 AND 200)",
    // Groups by texts, some of them long.
    "SELECT substr(v || ' and some letters', 1, a % 25), a % 3, substr('letters ' || v, 1, a % 20), count(*) FROM t GROUP BY 1, 2, 3",
    "SELECT DISTINCT v || ' and some letters', name || ' and a few more' FROM t LEFT JOIN p ON t.p = p.id",
    "SELECT v || ' and some letters' AS w, day, count(*) FROM t GROUP BY 1, 2 ORDER BY w DESC, day LIMIT 50",
];

/// What is kept in memory whole, as long as there is some, by rows.
const KEPT: [(&str, &str); 4] = [
    ("SELECT id, sum(id) OVER (ORDER BY id ROWS BETWEEN 3000 PRECEDING AND CURRENT ROW) FROM ", "t"),
    ("SELECT id, sum(id) OVER (PARTITION BY id % 3) FROM ", "t"),
    ("SELECT id % 2, id % 3, count(*) FROM (SELECT id FROM t) y GROUP BY ROLLUP (id % 2, id % 3), id > ", "id"),
    (
        "SELECT x.id, y.id FROM (SELECT id FROM p WHERE id < 20) x FULL JOIN t y ON x.id = y.id AND x.id % 2 = 0 WHERE 0 < ",
        "1",
    ),
];

const REFUSED: [&str; 1] = ["SELECT unnest(array_agg(id)) FROM t"];

/// The memory that an error names, behind `(--ram `.
fn ram(told: &str) -> Ram {
    let digits: String = told.chars().take_while(char::is_ascii_digit).collect();
    let shift = if told[digits.len()..].starts_with('M') { 20 } else { 10 };
    Ram::of(digits.parse::<u64>().expect("a number") << shift).expect("enough")
}

/// The lines of an answer, in some order where the query says none.
fn lines<'a>(query: &str, answer: &'a str) -> Vec<&'a str> {
    let mut lines: Vec<&str> = answer.lines().collect();
    if !query.contains("ORDER BY") {
        lines.sort_unstable();
    }
    lines
}

/// How the answers of two databases differ, if they do.
fn differing(much: &mut Database, little: &mut Database, query: &str) -> Option<String> {
    let (answer, answered) = (much.ask(query), little.ask(query));
    let (wanted, found) = (lines(query, &answer), lines(query, &answered));
    if wanted == found && !answer.starts_with("error") {
        return None;
    }
    let differs = wanted.iter().zip(&found).find(|(one, other)| one != other);
    let both_fail = if differs.is_none() { &answer[..answer.len().min(200)] } else { "" };
    Some(format!("{query}: {} lines and {}, {differs:?} {both_fail}", wanted.len(), found.len()))
}

#[test]
fn with_little_memory_answers_are_the_same_or_it_is_said_what_is_needed() {
    let mut little = filled(Some(Ram::LEAST));
    let mut much = filled(None);
    for query in ANSWERED {
        let (answer, answered) = (much.ask(query), little.ask(query));
        assert!(!answer.starts_with("error"), "{query}: {answer}");
        assert!(lines(query, &answered) == lines(query, &answer), "{query}: {answered}");
    }
    let differ: Vec<String> = REWORDED.iter().filter_map(|query| differing(&mut much, &mut little, query)).collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    for (query, rows) in KEPT {
        let few = format!("{query}{}", if rows == "t" { "(SELECT id FROM t WHERE id <= 90) AS x" } else { rows });
        assert_eq!(differing(&mut much, &mut little, &few), None);
        if rows == "t" {
            let said = little.ask(&format!("{query}{rows}"));
            let needed = said.strip_prefix("error: the query needs ").and_then(|said| said.split(' ').next());
            let needed = needed.and_then(|bytes| bytes.parse::<usize>().ok());
            assert!(needed.is_some_and(|bytes| bytes > 64 << 10) && said.contains("--ram"), "{said}");
        }
    }
    for query in REFUSED {
        assert!(little.ask(&format!("EXPLAIN {query}")).contains("Refused"), "{query}");
        assert!(!much.ask(query).starts_with("error"), "{query}");
        let said = little.ask(query);
        assert!(said.starts_with("error: this query has a step") && said.contains("--ram 64M"), "{query}: {said}");
    }
    let all = "SELECT id, p, a, d, v FROM t ORDER BY id";
    for statement in [
        "UPDATE t SET a = a + 1 WHERE id % 3 = 0",
        "DELETE FROM t WHERE v LIKE 'text 99%'",
        "INSERT INTO t SELECT id + 100000, p, a, d, v FROM t WHERE a < 9",
        "DELETE FROM p WHERE id = 17",
    ] {
        assert_eq!(little.ask(statement), much.ask(statement), "{statement}");
    }
    assert!(little.ask(all) == much.ask(all));
}

/// What the library plans is read by an index, too, where there is no room for the numbers of all rows that it names.
#[test]
fn what_is_planned_is_read_by_an_index_in_passes() {
    let mut little = filled(Some(Ram::LEAST));
    let mut much = filled(None);
    let both = |little: &mut Database, much: &mut Database, sql: &str| {
        assert_eq!(differing(much, little, sql), None);
        assert!(!much.ask(sql).starts_with("error"), "{sql}");
    };
    for (query, way) in [
        ("SELECT id, upper(v) FROM t WHERE id > 5000 AND id <= 5900", "t_pkey in passes of t"),
        (
            "SELECT id, a, length(v) FROM t WHERE a IN (3, 8, 9, 11, 30, 40, 50, 60, 70) AND length(v) > 5",
            "t_a_idx in passes of t",
        ),
        ("SELECT id + a FROM t WHERE (id < 700 OR a = 5) AND id % 3 = 1 ORDER BY id DESC", "in passes of t"),
        ("SELECT id + a FROM t WHERE id BETWEEN 100 AND 1000 LIMIT 3000", "t_pkey in passes of t"),
        ("SELECT upper(v) FROM t WHERE id > 5000 AND id <= 5100", "t_pkey of t (100 candidates)"),
    ] {
        let plan = little.ask(&format!("EXPLAIN {query}"));
        assert!(plan.contains(way), "{query}: {plan}");
        both(&mut little, &mut much, query);
    }
    // Rows that were changed are named, and a statement changes rows by their numbers.
    for change in [
        "UPDATE t SET a = a + length(v), v = upper(v) WHERE id BETWEEN 1000 AND 1900 AND length(v) > 3",
        "DELETE FROM t WHERE id BETWEEN 1500 AND 2400 AND id % 2 = length(v) % 2",
        "INSERT INTO t SELECT 500000 + id, p, a, d, lower(v), day, at, n, r FROM t WHERE id > 3000 AND id <= 3900",
        "UPDATE t SET a = -1 WHERE id > 4000 AND id <= 4900 AND upper(v) <> 'NEW'",
    ] {
        assert_eq!(little.ask(change), much.ask(change), "{change}");
        both(&mut little, &mut much, "SELECT id, a, upper(v) FROM t WHERE id > 1200 AND id <= 2100");
        both(&mut little, &mut much, "SELECT id, length(v) FROM t WHERE a = -1");
    }
    both(&mut little, &mut much, "SELECT id, p, a, d, v FROM t ORDER BY id");
    // Of long texts few are read at a time.
    let long =
        "INSERT INTO t (id, a, v) SELECT 600000 + i, 7, repeat('x', 3000) || i FROM generate_series(1, 900) AS i";
    assert_eq!(little.ask(long), much.ask(long));
    both(&mut little, &mut much, "SELECT id, length(v) FROM t WHERE id > 600000 AND id <= 700000");
}

#[test]
fn a_session_can_have_less_than_the_others() {
    let mut database = filled(None);
    let (query, refused) = (ANSWERED[3], REFUSED[0]);
    let answer = database.ask(query);
    database.expect(&[("SHOW ram", "default"), ("SET ram = '64K'", "SET"), ("SHOW ram", "64kB")]);
    assert!(database.ask(query) == answer);
    assert!(database.ask(refused).contains("--ram 64M"));
    assert!(database.ask(&format!("EXPLAIN {query}")).contains("Answer: all rows of t"));
    for wrong in ["SET ram = '63K'", "SET ram = 'much'", "SET ram = '900G'"] {
        assert!(database.ask(wrong).starts_with("error"), "{wrong}");
        database.expect(&[("SHOW ram", "64kB")]);
    }
    database.expect(&[("SET ram = '64MB'", "SET"), ("SHOW ram", "64MB")]);
    assert!(!database.ask(refused).starts_with("error"));
    database.expect(&[("SET ram = '100000'", "SET"), ("RESET ram", "RESET"), ("SHOW ram", "default")]);
    assert!(!database.ask(refused).starts_with("error"));
    database.expect(&[("SET ram = '64K'", "SET"), ("RESET ALL", "RESET"), ("SHOW ram", "default")]);
}

#[test]
fn a_transaction_reads_what_it_has_changed_in_little_memory() {
    let mut database = filled(Some(Ram::LEAST));
    database.expect(&[("BEGIN", "BEGIN")]);
    database.ask("UPDATE t SET v = 'mine' WHERE id < 4");
    let few = database.ask("SELECT id, v FROM t WHERE id < 4 ORDER BY id");
    assert_eq!(few.matches("mine").count(), 3, "{few}");
    // Rows that are read ahead are put aside.
    let mut much = filled(None);
    much.ask("UPDATE t SET v = 'mine' WHERE id < 4");
    for query in [
        "SELECT * FROM t ORDER BY id",
        "SELECT *, upper(v) FROM t WHERE id % 2 = 1",
        "SELECT a, v FROM t ORDER BY a, v",
    ] {
        assert_eq!(differing(&mut much, &mut database, query), None);
    }
    database.expect(&[("ROLLBACK", "ROLLBACK")]);
}

#[test]
fn a_row_with_a_long_text_is_read_or_it_is_said_how_much_it_needs() {
    let mut little = filled(Some(Ram::LEAST));
    let insert = |little: &mut Database, id: u64, length: usize| {
        little.expect(&[(&format!("INSERT INTO t (id, v) VALUES ({id}, '{}')", "x".repeat(length)), "INSERT 1")]);
    };
    for (id, length) in [(30_001, 900), (30_002, 3_900)] {
        insert(&mut little, id, length);
        assert_eq!(little.ask(&format!("SELECT v FROM t WHERE id = {id}")), "x".repeat(length));
    }
    assert_eq!(little.ask("SELECT count(*) FROM t WHERE v LIKE 'xxx%'"), "2");
    insert(&mut little, 30_003, 200_000);
    let query = "SELECT v FROM t WHERE id = 30003";
    let said = little.ask(query);
    let needed =
        said.strip_prefix("error: the query needs ").and_then(|said| said.split(' ').next()?.parse::<u64>().ok());
    assert!(needed.is_some_and(|bytes| (200_000..4_000_000).contains(&bytes)), "{said}");
    // Whoever does what is said comes to the answer: what is needed at least may show in more than one step.
    let mut answer = said;
    for _ in 0..3 {
        let Some((_, told)) = answer.split_once("(--ram ") else { break };
        little = filled(Some(ram(told)));
        insert(&mut little, 30_003, 200_000);
        answer = little.ask(query);
    }
    assert!(answer == "x".repeat(200_000), "{}", &answer[..answer.len().min(200)]);
}

#[test]
fn memory_that_nobody_else_has_is_there_for_an_answer() {
    // Groups of long keys: a share of a sixteenth would be the least that there is up to 682 KB.
    let mut database = filled(None);
    database.ask("CREATE TABLE g (k TEXT, n INTEGER)");
    database.ask("INSERT INTO g SELECT repeat('k', 3000) || i % 500, i FROM generate_series(0, 1999) AS s(i)");
    let query = "SELECT k, count(*) FROM g GROUP BY k ORDER BY k DESC NULLS LAST LIMIT 1";
    let answer = format!("{}99|4", "k".repeat(3000));
    let mut needed = 0;
    for kilobytes in [64, 96, 128, 256, 512, 1024] {
        database.expect(&[(&format!("SET ram = '{kilobytes}K'"), "SET")]);
        let said = database.ask(query);
        if said != answer {
            let told = said.split_once("(--ram ").map(|(_, told)| ram(told));
            let given = Ram::of(kilobytes << 10).expect("enough");
            assert!(told.is_some_and(|told| told > given), "at {kilobytes}K: {}", &said[..said.len().min(200)]);
            needed = kilobytes;
        }
    }
    assert!((64..512).contains(&needed), "more than {needed}K is needed");
}

/// Tables whose joins have many rows for a key, and rows that a series has in order.
fn joined(ram: Option<Ram>) -> Database {
    let mut database = Database::in_ram(ram);
    for statement in [
        "CREATE TABLE a (id INTEGER PRIMARY KEY, x INTEGER)",
        "INSERT INTO a SELECT n, n % 7 FROM generate_series(1, 100) AS g(n)",
        "CREATE TABLE b (id INTEGER PRIMARY KEY, x INTEGER)",
        "INSERT INTO b SELECT n, n % 9 FROM generate_series(1, 50) AS g(n)",
        "CREATE TABLE s (x INTEGER)",
        "INSERT INTO s VALUES (1), (2), (3)",
        "CREATE TABLE ser (s INTEGER, ts TIMESTAMP, v INTEGER, PRIMARY KEY (s, ts)) WITH (engine = 'series')",
        "INSERT INTO ser SELECT n % 4, (DATE '2024-01-01' + (n / 4)::INTEGER)::TIMESTAMP, n FROM generate_series(0, 399) AS g(n)",
        "CREATE TABLE dup (id INTEGER PRIMARY KEY, s INTEGER)",
        "INSERT INTO dup SELECT n, n % 4 FROM generate_series(0, 19) AS g(n)",
        "CREATE TABLE many (id INTEGER PRIMARY KEY, s INTEGER, w INTEGER)",
        "INSERT INTO many SELECT n, n % 4, n FROM generate_series(0, 1999) AS g(n)",
        "CREATE TABLE z (id INTEGER PRIMARY KEY, d DOUBLE PRECISION, g INTEGER)",
        "INSERT INTO z SELECT n, 0, n / 2 FROM generate_series(2, 1001) AS g(n)",
    ] {
        let said = database.ask(statement);
        assert!(!said.starts_with("error"), "{statement}: {said}");
    }
    database
}

/// Queries that ask for more of a join than its rows, with what they answer.
const OF_JOINS: [(&str, &str); 23] = [
    ("SELECT count(*) FROM (SELECT a.id FROM a JOIN b ON a.x = b.x LIMIT 5) q", "5"),
    ("SELECT count(*) FROM (SELECT id FROM a WHERE x IN (SELECT x FROM b) LIMIT 4) q", "4"),
    ("SELECT count(*) FROM (SELECT id FROM a WHERE x NOT IN (SELECT x FROM b WHERE x < 3) LIMIT 4) q", "4"),
    ("SELECT count(*) FROM (SELECT a.id FROM a LEFT JOIN b ON a.x = b.x LIMIT 3 OFFSET 2) q", "3"),
    ("SELECT b.id FROM s JOIN b ON s.x = b.x ORDER BY b.id DESC LIMIT 4", "48\n47\n46\n39"),
    (
        "SELECT string_agg(b.id::TEXT, ' ' ORDER BY b.id DESC) FROM s JOIN b ON s.x = b.x WHERE b.id < 21",
        "20 19 12 11 10 3 2 1",
    ),
    (
        "SELECT sum(n * id) FROM (SELECT row_number() OVER (ORDER BY b.id) AS n, b.id FROM s JOIN b ON s.x = b.x) q WHERE id < 4",
        "14",
    ),
    (
        "SELECT dup.s, ser.ts FROM dup JOIN ser ON dup.s = ser.s ORDER BY dup.s, ser.ts OFFSET 5 LIMIT 1",
        "0|2024-01-02 00:00:00",
    ),
    (
        "SELECT count(*) FROM (SELECT dup.s, ser.ts, count(*) FROM dup JOIN ser ON dup.s = ser.s GROUP BY dup.s, ser.ts) q",
        "400",
    ),
    ("SELECT count(*) FROM dup JOIN ser ON dup.s = ser.s JOIN ser z ON z.s = dup.s AND z.ts = ser.ts", "2000"),
    (
        "SELECT p.s, w.ts FROM (SELECT * FROM many ORDER BY s LIMIT 1500) p JOIN (SELECT * FROM ser WHERE v < 12) w ON p.s = w.s \
         ORDER BY p.s, w.ts OFFSET 498 LIMIT 4",
        "0|2024-01-01 00:00:00\n0|2024-01-01 00:00:00\n0|2024-01-02 00:00:00\n0|2024-01-02 00:00:00",
    ),
    (
        "SELECT count(*) FROM (SELECT d * CASE WHEN id % 2 = 0 THEN -1 ELSE 1 END AS e, g, count(*) FROM z GROUP BY e, g) q",
        "500",
    ),
    ("SELECT count(*) FROM (SELECT DISTINCT d * CASE WHEN id % 2 = 0 THEN -1 ELSE 1 END AS e, g FROM z) q", "500"),
    ("SELECT count(*) FROM (SELECT id, -d AS e FROM z) p JOIN z ON p.id = z.id AND p.e = z.d", "1000"),
    ("SELECT count(*) FROM (SELECT NULL AS n, id FROM a) p JOIN (SELECT NULL AS n, id FROM b) q ON p.n = q.n", "0"),
    ("SELECT count(*) < 22 FROM (SELECT floor(random() * 3) AS k, x, count(*) FROM a GROUP BY 1, 2) q", "true"),
    ("SELECT count(*) FROM b LEFT JOIN (SELECT * FROM a WHERE x % 2 = 1) a ON b.x = a.x AND b.id < a.id", "221"),
    ("SELECT count(*) FROM (SELECT * FROM a WHERE x % 2 = 1) a RIGHT JOIN b ON b.x = a.x AND b.id < a.id", "221"),
    ("SELECT a.x FROM a JOIN b ON a.x = b.x GROUP BY a.x ORDER BY count(*) DESC, a.x LIMIT 2", "1\n2"),
    (
        "SELECT count(*) FROM (SELECT id FROM a UNION ALL SELECT id FROM b) u JOIN (SELECT id FROM a UNION ALL SELECT id FROM b) v USING (id)",
        "250",
    ),
    (
        "SELECT count(*) FROM (SELECT id AS c FROM a WHERE x > (SELECT avg(x) FROM b)) q \
         WHERE c = (SELECT min(g) FROM generate_series(1, 78) AS y (g) WHERE c + 1 = g)",
        "0",
    ),
    ("DELETE FROM a WHERE id IN (SELECT a.id FROM a JOIN b ON a.x = b.x LIMIT 1)", "DELETE 1"),
    ("SELECT count(*) FROM a", "99"),
];

#[test]
fn what_is_asked_of_a_join_is_the_same_in_little_memory() {
    for ram in [None, Some(Ram::LEAST)] {
        let mut database = joined(ram);
        let answers = OF_JOINS.map(|(query, wanted)| (query, wanted, database.ask(query)));
        let wrong: Vec<_> = answers.iter().filter(|(_, wanted, answer)| wanted != answer).collect();
        assert!(wrong.is_empty(), "{ram:?}: {wrong:#?}");
    }
}

/// Of a join the rows of one side that have one key are kept: it must be the parents that are, not their children.
#[test]
fn a_parent_may_have_more_children_than_there_is_room_for() {
    let [mut little, mut much] = [Some(Ram::LEAST), None].map(|ram| {
        let mut database = filled(ram);
        for statement in [
            "CREATE TABLE parent (id INTEGER PRIMARY KEY, v TEXT, w TEXT)",
            "INSERT INTO parent SELECT i, 'parent ' || i || ' of a long name', NULLIF('w' || i % 3, 'w1') FROM generate_series(1, 40) AS g(i)",
            // Some have no parent that is there, or none at all.
            "CREATE TABLE child (id INTEGER PRIMARY KEY, p INTEGER, q INTEGER REFERENCES parent)",
            "INSERT INTO child SELECT i, NULLIF(i % 9 + 34, 36), i % 40 + 1 FROM generate_series(1, 30000) AS g(i)",
        ] {
            let said = database.ask(statement);
            assert!(!said.starts_with("error"), "{statement}: {said}");
        }
        database
    });
    for query in [
        "SELECT p.id, max(c.id), count(c.id), count(*) FROM parent p LEFT JOIN child c ON c.p = p.id GROUP BY p.id",
        "SELECT p.v, p.w, c.id, c.p FROM parent p LEFT JOIN child c ON c.p = p.id",
        "SELECT p.w, c.id FROM child c RIGHT JOIN parent p ON c.p = p.id",
        "SELECT p.id, p.w, c.id, c.p FROM parent p FULL JOIN child c ON c.p = p.id",
        "SELECT c.id, c.p, p.v FROM child c FULL JOIN parent p ON c.p = p.id",
        "SELECT p.id, p.v, c.id FROM parent p JOIN child c ON c.p = p.id",
        "SELECT p.id, p.w, c.id FROM parent p JOIN child c ON c.p = p.id AND c.id % 100 > p.id * 2",
        "SELECT p.v, count(c.p), min(q.id) FROM parent p LEFT JOIN child c ON c.p = p.id LEFT JOIN p q ON q.id = p.id GROUP BY p.v",
        "SELECT id, (SELECT count(*) FROM child WHERE p = parent.id) FROM parent",
        // More rows than there is room for their numbers.
        "SELECT c.id + 1, p.v FROM child c JOIN parent p ON c.q = p.id WHERE p.id <= 9",
    ] {
        assert_eq!(differing(&mut much, &mut little, query), None);
    }
}

/// A small table that no index serves is read, and what it names is followed back, though there is no room for all of that at once.
#[test]
fn rows_of_a_small_table_lead_to_many_in_passes() {
    let [mut little, mut much] = [Some(Ram::LEAST), None].map(filled);
    for query in [
        "SELECT count(*) FROM t JOIN p ON t.p = p.id WHERE p.name = 'name 7'",
        "SELECT t.id, p.id FROM t JOIN p ON t.p = p.id WHERE p.name LIKE '%7' AND t.v > 'text 5' ORDER BY t.id",
        "SELECT p.id, count(*), max(t.v) FROM t JOIN p ON t.p = p.id WHERE p.name = 'name 7' GROUP BY p.id",
    ] {
        assert_eq!(differing(&mut much, &mut little, query), None);
    }
    let told = little
        .ask("EXPLAIN SELECT count(*) FROM t JOIN p ON t.p = p.id WHERE p.name IN ('name 7', 'name 8', 'name 9')");
    assert!(told.contains("p read along t_p_fkey"), "{told}");
}

#[test]
fn what_has_no_room_says_with_how_much_to_try_again() {
    for query in [
        "SELECT max(r) FROM (SELECT g, sum(g) OVER () AS r FROM generate_series(1, 20000) x(g)) q",
        "SELECT count(*) FROM (SELECT p.name, count(DISTINCT t.v) FROM p JOIN t ON t.p = p.id GROUP BY p.name) q",
        "SELECT max(length(all_of_it)) FROM (SELECT array_to_string(array_agg(v), ',') AS all_of_it FROM t) q",
        "SELECT count(*) FROM (SELECT DISTINCT substr(repeat(v, 3000), 1, 8) FROM t WHERE id < 20) q",
        "SELECT count(*) FROM t x FULL JOIN t y ON x.id = y.id AND x.a < y.id",
    ] {
        let (answer, tries) = followed(&mut filled(None), query);
        assert!(!answer.starts_with("error"), "{query}: {answer}");
        assert!(tries <= 3, "{query}: {tries} tries");
    }
}

#[test]
fn rows_without_end_are_not_counted_to_their_end() {
    let mut database = filled(Some(Ram::LEAST));
    let endless = "generate_series(1, 1000000000000) AS s(v)";
    for statement in [
        format!("SELECT array_agg(v) FROM {endless}"),
        format!("SELECT sum(v) OVER () FROM {endless}"),
        format!("UPDATE t SET id = t.id + 100000 FROM {endless} WHERE s.v > t.id"),
    ] {
        let said = database.ask(&statement);
        assert!(said.starts_with("error: the query needs"), "{statement}: {said}");
    }
    // What has no room is beside the join whose first side has ended.
    let groups = "SELECT v % 2 AS g, array_agg(v) AS a FROM generate_series(1, 300000) AS t(v) GROUP BY v % 2";
    let first = "SELECT row_number() OVER (ORDER BY v) AS n FROM generate_series(1, 30) AS s(v)";
    let said = database.ask(&format!("SELECT count(a) FROM ({first}) x JOIN ({groups}) y ON x.n > y.g"));
    assert!(said.starts_with("error: the query needs"), "{said}");
}

/// What comes of a statement in 64 KB by whoever does what it says, and how often that was tried.
fn followed(database: &mut Database, statement: &str) -> (String, usize) {
    assert_eq!(database.ask("SET ram = '64K'"), "SET");
    let (mut given, mut tries) = (Ram::LEAST, 1);
    loop {
        let said = database.ask(statement);
        if !said.starts_with("error: the query needs") {
            return (said, tries);
        }
        let (_, advice) = said.split_once("(--ram ").unwrap_or_else(|| panic!("{statement}: {said}"));
        let (advice, _) = advice.split_once(')').expect("what was opened");
        let advised = ram(advice);
        let most = Ram::of(1 << 30).expect("enough");
        assert!(advised > given && advised <= most, "{statement}, of {given}: {said}");
        assert_eq!(database.ask(&format!("SET ram = '{advice}'")), "SET");
        (given, tries) = (advised, tries + 1);
    }
}

#[test]
fn rows_that_are_changed_together_have_room_or_none_is_changed() {
    for (statement, answer) in [
        ("UPDATE t SET id = id + 100000", "UPDATE 19905"),
        ("DELETE FROM p WHERE id NOT IN (SELECT p FROM t WHERE p IS NOT NULL)", "DELETE 5000"),
        ("DELETE FROM t WHERE id > 9000 RETURNING id", "10948 lines"),
        (
            "UPDATE t SET id = t.id + 100000 FROM generate_series(1, 4) AS s(n) WHERE t.id < 2000 AND s.n < 4",
            "UPDATE 1989",
        ),
    ] {
        let mut database = filled(None);
        database.ask("INSERT INTO p SELECT i, 'alone', 3 FROM generate_series(1001, 6000) AS i");
        let all = "SELECT count(*), sum(id) FROM t UNION ALL SELECT count(*), sum(id) FROM p ORDER BY 1";
        let before = database.ask(all);
        assert_eq!(database.ask("SET ram = '64K'"), "SET");
        let said = database.ask(statement);
        assert!(said.starts_with("error: the query needs"), "{statement}: {said}");
        assert_eq!(database.ask(all), before, "{statement}");
        let (answered, tries) = followed(&mut database, statement);
        let lines = format!("{} lines", answered.lines().count());
        assert!(
            answered == answer || lines == answer,
            "{statement}: {lines}, {}",
            &answered[..answered.len().min(200)]
        );
        // Where rows come more than once they are not counted to the end.
        let most = if statement.contains(" FROM generate_series") { 8 } else { 3 };
        assert!(tries <= most, "{statement}: {tries} tries");
    }
}

/// What others reference is a key: a column that is none is changed part by part, as in a table that nobody references.
#[test]
fn rows_that_others_reference_change_in_parts() {
    let mut database = filled(None);
    database.ask("INSERT INTO p SELECT i, 'alone', 3 FROM generate_series(1001, 6000) AS i");
    database.ask("CREATE TABLE n (id INT PRIMARY KEY, p INT REFERENCES p (id) NOT ENFORCED)");
    assert_eq!(database.ask("SET ram = '64K'"), "SET");
    let columns = database.ask("SELECT count(*) FROM p");
    let changed = database.ask("UPDATE p SET name = name || '!'");
    assert_eq!(changed, format!("UPDATE {columns}"));
    assert_eq!(database.ask("SELECT count(*) FROM p WHERE name LIKE '%!'"), columns);
}

/// Rows that meet others are updated some at a time, and none of them twice, whatever part it comes in.
#[test]
fn on_conflict_takes_its_rows_in_parts() {
    for ram in [None, Some(Ram::LEAST)] {
        let mut database = filled(ram);
        database.ask("CREATE TABLE u (id INT PRIMARY KEY, v TEXT, n INT)");
        assert_eq!(database.ask("INSERT INTO u SELECT i, 'old', 0 FROM generate_series(1, 9000) AS i"), "INSERT 9000");
        for (statement, answer) in [
            (
                "INSERT INTO u SELECT i, 'new', 1 FROM generate_series(5001, 12000) AS i ON CONFLICT (id) DO UPDATE SET v = excluded.v, n = u.n + excluded.n",
                "INSERT 7000",
            ),
            ("SELECT v, n, count(*) FROM u GROUP BY v, n ORDER BY v, n", "new|1|7000\nold|0|5000"),
            ("INSERT INTO u SELECT id, v, n FROM u ON CONFLICT DO NOTHING", "INSERT 0"),
            (
                "INSERT INTO u SELECT i % 13000, 'third', 3 FROM generate_series(9000, 16000) AS i ON CONFLICT DO NOTHING",
                "INSERT 1000",
            ),
            ("SELECT count(*), min(id), max(id) FROM u", "13000|0|12999"),
        ] {
            assert_eq!(database.ask(statement), answer, "{statement}");
        }
        let before = database.ask("SELECT sum(n), count(*) FROM u");
        for statement in [
            "INSERT INTO u SELECT i % 6000, 'x', 9 FROM generate_series(0, 7000) AS i ON CONFLICT (id) DO UPDATE SET n = 5",
            "INSERT INTO u SELECT 20000 + i % 6000, 'x', 9 FROM generate_series(0, 7000) AS i ON CONFLICT (id) DO UPDATE SET n = 5",
        ] {
            let said = database.ask(statement);
            assert!(said.contains("two of the new rows have the same key"), "{statement}: {said}");
            assert_eq!(database.ask("SELECT sum(n), count(*) FROM u"), before);
        }
    }
}

/// What a statement asks of its own table is what was there before it, whatever part asks.
#[test]
fn a_statement_in_parts_sees_none_of_its_parts() {
    for ram in [None, Some(Ram::LEAST)] {
        let mut database = filled(ram);
        database.ask("CREATE TABLE w (id INT PRIMARY KEY, n INT)");
        let values: Vec<String> = (0..1200).map(|id| format!("({id}, (SELECT count(*) FROM w))")).collect();
        assert_eq!(database.ask(&format!("INSERT INTO w VALUES {}", values.join(", "))), "INSERT 1200");
        assert_eq!(database.ask("SELECT min(n), max(n), count(*) FROM w"), "0|0|1200");
        let upserted = database.ask(
            "INSERT INTO w SELECT i, 7 FROM generate_series(0, 2399) AS i \
             ON CONFLICT (id) DO UPDATE SET n = (SELECT count(*) + max(n) FROM w) + excluded.n",
        );
        assert_eq!(upserted, "INSERT 2400");
        assert_eq!(database.ask("SELECT n, count(*) FROM w GROUP BY n ORDER BY n"), "7|1200\n1207|1200");
    }
}

#[test]
fn many_values_that_are_worked_out_are_put_in_little_memory() {
    let mut database = filled(Some(Ram::LEAST));
    database.ask("CREATE TABLE w (id INT PRIMARY KEY, d DATE, t TIMESTAMP, n NUMERIC(9,2), v TEXT)");
    let row = |id: usize| {
        format!(
            "({id} + 0, DATE '2024-01-01' + {}, TIMESTAMP '2024-01-01 00:00:00', {id} / 2.0, 'v' || {id})",
            id % 300
        )
    };
    let values: Vec<String> = (0..2000).map(row).collect();
    assert_eq!(database.ask(&format!("INSERT INTO w VALUES {}", values.join(", "))), "INSERT 2000");
    assert_eq!(database.ask("SELECT count(*), max(v) FROM w"), "2000|v999");
}

#[test]
fn what_a_window_keeps_is_held_as_long_as_somebody_has_it() {
    let mut database = filled(Some(Ram::LEAST));
    let said =
        database.ask("SELECT max(r) FROM (SELECT g, sum(g) OVER () AS r FROM generate_series(1, 100000) x(g)) q");
    assert!(said.starts_with("error: the query needs"), "{said}");
    database.expect(&[("BEGIN", "BEGIN")]);
    let mut declare = |number: usize| {
        let cursor = format!("DECLARE c{number} CURSOR FOR SELECT id, sum(a) OVER () FROM t WHERE id < 300");
        (database.ask(&cursor), database.ask(&format!("FETCH 1 FROM c{number}")))
    };
    let refused = (0..100).find(|number| {
        let (declared, fetched) = declare(*number);
        declared.contains("memory") || fetched.contains("memory")
    });
    assert!(refused.is_some(), "a hundred windows are held in 64 KB");
}

/// Two steps along foreign keys, with something worked out: what is joined already is the larger side.
#[test]
fn of_a_chain_of_joins_the_side_of_few_rows_is_kept() {
    let mut little = Database::in_ram(Some(Ram::LEAST));
    for statement in [
        "CREATE TABLE g (id INTEGER PRIMARY KEY, kind INTEGER)",
        "CREATE TABLE p (id INTEGER PRIMARY KEY, g INTEGER REFERENCES g, v INTEGER)",
        "CREATE TABLE f (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p, n NUMERIC(10,2))",
        "INSERT INTO g SELECT i, i % 5 FROM generate_series(1, 2) AS s(i)",
        "INSERT INTO p SELECT i, 1 + i % 2, i % 100 FROM generate_series(1, 500) AS s(i)",
        "INSERT INTO f SELECT i, 1 + i % 500, i / 100.0 FROM generate_series(1, 20000) AS s(i)",
    ] {
        let said = little.ask(statement);
        assert!(!said.starts_with("error"), "{statement}: {said}");
    }
    let chain = "FROM f JOIN p ON f.p = p.id JOIN g ON p.g = g.id GROUP BY g.kind ORDER BY g.kind";
    let summed = little.ask(&format!("SELECT g.kind, sum(f.n) {chain}"));
    assert_eq!(little.ask(&format!("SELECT g.kind, sum(f.n + 0) {chain}")), summed);
}
