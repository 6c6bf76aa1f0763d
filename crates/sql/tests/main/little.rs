//! With little memory questions are answered as with much, or end with what they need; and the memory they take is bounded.

use counterfoil_sql::{EngineOptions, Ram, Spill};

use crate::database::Database;

/// A table and one that it references, with an index for some columns.
fn filled(ram: Option<Ram>) -> Database {
    let spill = Some(Spill { folder: std::env::temp_dir(), bytes_max: 64 << 20 });
    let options = EngineOptions { parallelism: 2, spill, ..EngineOptions::default() };
    let mut database = Database::with_options(ram.map_or(options.clone(), |ram| ram.bounds(options)));
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

const ANSWERED: [&str; 30] = [
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
];

const REFUSED: [&str; 6] = [
    "SELECT id FROM t ORDER BY id + 1 LIMIT 2",
    "SELECT id % 7, count(*) FROM t GROUP BY id % 7",
    "SELECT t.id FROM t JOIN p ON t.a = p.id",
    "SELECT id, row_number() OVER (ORDER BY a) FROM t",
    "SELECT id FROM t WHERE a IN (SELECT kind FROM p)",
    "SELECT id FROM p UNION SELECT id FROM t",
];

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

#[test]
fn with_little_memory_answers_are_the_same_or_it_is_said_what_is_needed() {
    let mut little = filled(Some(Ram::LEAST));
    let mut much = filled(None);
    for query in ANSWERED {
        let (answer, answered) = (much.ask(query), little.ask(query));
        assert!(!answer.starts_with("error"), "{query}: {answer}");
        assert!(lines(query, &answered) == lines(query, &answer), "{query}: {answered}");
    }
    for query in REFUSED {
        assert!(!much.ask(query).starts_with("error"), "{query}");
        let said = little.ask(query);
        assert!(said.starts_with("error: this query has") && said.contains("--ram 64M"), "{query}: {said}");
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
    let said = database.ask("SELECT * FROM t");
    assert!(said.starts_with("error: the query needs more working memory"), "{said}");
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
