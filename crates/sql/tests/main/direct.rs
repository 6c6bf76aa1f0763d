//! Simple questions are answered without the query library, exactly as the library answers them.

use counterfoil_sql::{Function, Outcome, Question, Rows, Value, column};
use datafusion::arrow::datatypes::SchemaRef;

use crate::database::Database;

const OFF: &str = "SET enable_direct_queries = off";
const ON: &str = "SET enable_direct_queries = on";

/// Two tables of every type, one of which references the other, and a view.
fn types() -> Database {
    let mut database = Database::after(
        "CREATE TABLE p (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, code CHAR(3), flag BOOLEAN);
         CREATE TABLE t (id BIGINT PRIMARY KEY, small SMALLINT, p INTEGER REFERENCES p, d DOUBLE PRECISION, r REAL,
             n NUMERIC(10, 2), day DATE, tick TIME, ts TIMESTAMP, fine TIMESTAMP(9), tz TIMESTAMPTZ, u UUID, b BYTEA,
             v VARCHAR(20), flag BOOLEAN, \"Odd Name\" INTEGER);
         CREATE TABLE pair (a INTEGER, b TEXT, value INTEGER, PRIMARY KEY (a, b));
         CREATE TABLE child (id INTEGER PRIMARY KEY, a INTEGER, b TEXT, FOREIGN KEY (a, b) REFERENCES pair);
         CREATE INDEX ON t (small); CREATE INDEX ON t (u); CREATE INDEX ON t (ts); CREATE INDEX ON t (v);
         CREATE INDEX ON t (n); CREATE INDEX ON t (day); CREATE INDEX ON t (d); CREATE INDEX ON t (tz);
         CREATE VIEW seen AS SELECT id, small FROM t",
    );
    for statement in [
        "INSERT INTO p SELECT i, 'name ' || i, 'c' || i % 10, i % 3 = 0 FROM generate_series(1, 40) AS i",
        &format!("INSERT INTO t VALUES {}", (1..=5000).map(row).collect::<Vec<_>>().join(", ")),
        "INSERT INTO pair SELECT i % 10, 'b' || i / 10, i FROM generate_series(0, 99) AS i",
        "INSERT INTO child SELECT i, CASE WHEN i % 5 > 0 THEN i % 10 END, 'b' || i % 10 FROM generate_series(0, 2999) AS i",
        "DELETE FROM t WHERE id % 50 = 7",
        "UPDATE t SET small = 5, v = NULL WHERE id % 90 = 1",
    ] {
        let said = database.ask(statement);
        assert!(!said.starts_with("error"), "{statement}: {said}");
    }
    database
}

fn row(i: i32) -> String {
    let (day, hour, minute, second) = (i / 1440 % 28 + 1, i / 60 % 24, i % 60, i % 60);
    let p = if i % 41 == 0 { "NULL".into() } else { (i % 41).to_string() };
    let flag = ["true", "false", "NULL"][i as usize % 3];
    format!(
        "({i}, {}, {p}, {}, {}, {}, '2024-01-{:02}', '10:{minute:02}:05', '2024-01-{day:02} {hour:02}:{minute:02}:00',
          '2024-01-01 00:{minute:02}:{second:02}.123456789', '2024-01-{day:02} {hour:02}:{minute:02}:00Z',
          '{i:032x}', '\\x{i:08x}', 'v{}', {flag}, {})",
        i % 100,
        f64::from(i) / 4.0,
        f64::from(i) / 8.0,
        f64::from(i) / 100.0,
        i % 28 + 1,
        i % 50,
        i % 7,
    )
}

/// What a query answers: its columns, and its rows, in some order where it says none.
fn answer(database: &mut Database, query: &str, parameters: &[Value]) -> Result<(SchemaRef, Vec<String>), String> {
    let outcome = database.session.run_one(query, parameters).map_err(|error| error.to_string())?;
    match outcome {
        Outcome::Rows(rows) => lines(rows, query.contains("ORDER BY")),
        _ => Err("no rows".into()),
    }
}

fn lines(rows: Rows, is_ordered: bool) -> Result<(SchemaRef, Vec<String>), String> {
    let schema = rows.schema().clone();
    let mut lines = Vec::new();
    for batch in rows.collect_all().map_err(|error| error.to_string())? {
        assert_eq!(batch.schema(), schema);
        lines.extend((0..batch.num_rows()).map(|row| format!("{:?}", batch.slice(row, 1).columns())));
    }
    if !is_ordered {
        lines.sort();
    }
    Ok((schema, lines))
}

/// Asks both ways, which must agree; whether the first was direct.
fn both(database: &mut Database, query: &str, parameters: &[Value]) -> bool {
    let direct = answer(database, query, parameters);
    let plan = database.session.run_one(&format!("EXPLAIN {query}"), parameters);
    let is_direct = plan.is_ok_and(|plan| match plan {
        Outcome::Rows(rows) => format!("{:?}", rows.collect_all()).contains("Direct: "),
        _ => false,
    });
    database.expect(&[(OFF, "SET")]);
    let planned = answer(database, query, parameters);
    database.expect(&[(ON, "SET")]);
    assert_eq!(direct, planned, "{query} {parameters:?}");
    is_direct
}

#[test]
fn simple_questions_are_answered_directly_and_alike() {
    let mut database = types();
    for query in [
        "SELECT * FROM t WHERE id = 77",
        "SELECT v, id AS number, v FROM t AS x WHERE x.id = 77",
        "SELECT x.* FROM t x WHERE id IN (77, 78, 5000, 5001, NULL)",
        "SELECT id FROM public.t WHERE 100 > id AND id >= 95",
        "SELECT id FROM t WHERE id BETWEEN 10 AND 20 AND (small = 11 OR small = 12 OR flag)",
        "SELECT id, \"Odd Name\" FROM t WHERE small = 3 AND NOT flag",
        "SELECT id FROM t WHERE small = 3 AND v IS NULL",
        "SELECT id FROM t WHERE u = '00000000-0000-0000-0000-00000000004d'",
        "SELECT id FROM t WHERE v = 'v7' AND small <> -3 LIMIT 4",
        "SELECT id FROM t WHERE id = NULL",
        "SELECT id, v FROM t WHERE v LIKE 'v6%' AND small = 6",
        "SELECT id FROM t WHERE day = '2024-01-03' AND id < 3000",
        "SELECT id FROM t WHERE day BETWEEN DATE '2024-01-02' AND '2024-01-03' AND id < 90",
        "SELECT id FROM t WHERE day IN ('2024-01-01', '2024-02-28', NULL) AND id < 90",
        "SELECT id FROM t WHERE ts >= '2024-01-02 10:07:00' AND ts < TIMESTAMP '2024-01-02 11:00:00' AND id < 2060",
        "SELECT id FROM t WHERE ts < '2024-01-02' AND id > 1400 AND id < 1460",
        "SELECT id FROM t WHERE tz = '2024-01-02 10:07:00+00'",
        "SELECT id FROM t WHERE fine = '2024-01-01 00:07:07.123456789' AND id < 90",
        "SELECT id FROM t WHERE (n = 1.25 OR n = 1.5 OR n = 2) AND id < 90",
        "SELECT id FROM t WHERE n BETWEEN -1 AND 0.75 AND id < 90",
        "SELECT id FROM t WHERE id < 90 AND (r = 1 OR r = 0.5)",
        "SELECT id FROM t WHERE r < 0.1 AND id < 90",
        "SELECT id FROM t WHERE small = 40000",
        "SELECT id FROM t WHERE small < 40000 AND id < 90",
        "SELECT id FROM t WHERE NOT (small >= -40000) AND id < 90",
        "SELECT id FROM t WHERE NOT (small = 99999999999) AND id < 90",
        "SELECT id FROM t WHERE (small <= -40000 OR \"Odd Name\" < 3000000000) AND id < 90",
        "SELECT id, name FROM p WHERE name LIKE 'name 1%'",
        "SELECT id FROM p WHERE name LIKE 'name 7' OR name LIKE 'name%' AND id < 5",
        "SELECT id, v FROM t WHERE v LIKE '%' AND id < 100",
        "SELECT id FROM p WHERE name LIKE ''",
        "SELECT t.id FROM t JOIN p ON t.p = p.id WHERE name LIKE 'name 7%%'",
        "SELECT id FROM t WHERE id = -5",
        "SELECT id FROM t WHERE (id = 5) AND ((small IS NOT NULL))",
        "SELECT * FROM p",
        "SELECT id FROM p WHERE code = 'c3'",
        "SELECT name FROM p LIMIT 0",
        "SELECT t.id, p.name FROM t JOIN p ON t.p = p.id WHERE p.name = 'name 7'",
        "SELECT * FROM t INNER JOIN p ON p.id = t.p AND t.id < 50",
        "SELECT t.id, name FROM t, p WHERE t.p = p.id AND t.id = 30",
        "SELECT t.id, p.id, name, p.flag FROM t LEFT JOIN p ON t.p = p.id WHERE t.id BETWEEN 30 AND 90",
        "SELECT t.id, name FROM t LEFT JOIN p ON t.p = p.id AND p.flag WHERE t.id BETWEEN 30 AND 90",
        "SELECT child.id, value FROM child JOIN pair ON child.a = pair.a AND child.b = pair.b WHERE value = 33",
        "SELECT child.id FROM child JOIN pair ON child.a = pair.a AND child.b = pair.b WHERE child.id < 40 LIMIT 400",
    ] {
        assert!(both(&mut database, query, &[]), "{query}");
    }
}

#[test]
fn what_is_not_so_is_answered_directly_and_alike() {
    let mut database = types();
    for query in [
        "SELECT id FROM t WHERE NOT (id > 3)",
        "SELECT id FROM t WHERE NOT (NOT id <= 3)",
        "SELECT id FROM t WHERE id < 90 AND id NOT BETWEEN 10 AND 80",
        "SELECT id FROM t WHERE id < 90 AND small NOT BETWEEN NULL AND 30",
        "SELECT id FROM t WHERE id < 90 AND small NOT BETWEEN 30 AND NULL",
        "SELECT id FROM t WHERE id NOT IN (5) AND small = 3",
        "SELECT id FROM t WHERE small = 3 AND \"Odd Name\" IS NOT NULL AND v NOT IN ('v3', 'v53')",
        "SELECT id FROM t WHERE small = 3 AND id NOT IN (3, NULL)",
        "SELECT id FROM t WHERE id < 200 AND p NOT IN (1, 2, 3) AND NOT flag",
        "SELECT id FROM t WHERE id < 200 AND NOT (p = 3 OR flag)",
        "SELECT id FROM t WHERE id < 200 AND NOT (p > 3 AND flag)",
        "SELECT id FROM t WHERE id < 200 AND NOT (p IS NULL OR v IS NOT NULL)",
        "SELECT id FROM t WHERE id < 200 AND NOT (p IN (3, 4, NULL) OR small = 5)",
        "SELECT id FROM t WHERE id < 200 AND NOT (p = NULL)",
        "SELECT id FROM t WHERE id < 200 AND v NOT LIKE 'v1%'",
        "SELECT id FROM t WHERE id < 200 AND v NOT LIKE 'v7'",
        "SELECT id FROM t WHERE id < 200 AND v NOT LIKE '%'",
        "SELECT id FROM p WHERE name NOT LIKE 'name 1%'",
        "SELECT id FROM t WHERE d = 1.25",
        "SELECT id FROM t WHERE d > 1249.5 AND d <> 1250",
        "SELECT id FROM t WHERE d IN (2, 2.5, -1.0, 1.1)",
        "SELECT id FROM t WHERE d BETWEEN 1.2 AND 2.5",
        "SELECT id FROM t WHERE id < 20 AND d NOT BETWEEN 2 AND 3.75",
    ] {
        assert!(both(&mut database, query, &[]), "{query}");
    }
    for query in [
        "SELECT id FROM t WHERE d = 1e0",
        "SELECT id FROM t WHERE d < .5",
        "SELECT id FROM t WHERE d = 0.1234567890123456789",
    ] {
        assert!(!both(&mut database, query, &[]), "{query}");
    }
}

#[test]
fn alternatives_of_several_tables_are_answered_directly_and_alike() {
    let mut database = types();
    for query in [
        "SELECT t.id, p.name FROM t JOIN p ON t.p = p.id WHERE p.name = 'name 7' OR t.small = 3",
        "SELECT t.id FROM t JOIN p ON t.p = p.id WHERE (p.name = 'name 7' AND t.small < 50) OR t.id IN (3, 5) OR t.v = 'v7'",
        "SELECT t.id FROM t JOIN p ON t.p = p.id AND (p.id = 7 OR t.id = 9 OR t.d = 2.5)",
        "SELECT t.id FROM t, p WHERE t.p = p.id AND NOT (p.id <> 7 AND t.id <> 9)",
        "SELECT count(*), max(t.id) FROM t JOIN p ON t.p = p.id WHERE p.id = 7 OR t.u = '00000000-0000-0000-0000-00000000004d'",
        "SELECT p.name, count(*) FROM t JOIN p ON t.p = p.id WHERE p.id = 7 OR t.id = 9 GROUP BY p.name ORDER BY p.name",
        "SELECT t.id FROM t JOIN p ON t.p = p.id WHERE (p.id = 7 OR t.id < 50) AND (p.name LIKE 'name 7%' OR t.v IS NULL)",
        "SELECT t.id, p.name FROM t LEFT JOIN p ON t.p = p.id WHERE t.id < 90 AND (p.name = 'name 7' OR p.id IS NULL)",
        "SELECT t.id, p.name FROM t LEFT JOIN p ON t.p = p.id WHERE p.name = 'name 7' OR t.id = 41",
        "SELECT t.id FROM t LEFT JOIN p ON t.p = p.id WHERE t.id = 34 AND p.flag",
        "SELECT t.id FROM t LEFT JOIN p ON t.p = p.id AND p.id = 5 WHERE p.id IS NULL AND t.id < 9",
        "SELECT t.id FROM t LEFT JOIN p ON t.p = p.id AND p.flag WHERE t.id < 90 AND NOT (p.code = 'c3' OR t.small > 40)",
        "SELECT child.id FROM child JOIN pair ON child.a = pair.a AND child.b = pair.b WHERE child.id = 5 OR (pair.a = 3 AND pair.b = 'b3')",
    ] {
        assert!(both(&mut database, query, &[]), "{query}");
    }
    // One alternative that names many rows, or none that an index knows: all are read, by the library.
    for query in [
        "SELECT t.id FROM t JOIN p ON t.p = p.id WHERE p.name = 'name 7' OR t.id > 3",
        "SELECT t.id FROM t JOIN p ON t.p = p.id WHERE p.name = 'name 7' OR t.\"Odd Name\" = 3",
    ] {
        assert!(!both(&mut database, query, &[]), "{query}");
    }
    for (query, by) in [
        (
            "SELECT t.id FROM t JOIN p ON t.p = p.id WHERE p.name = 'name 7' OR t.small = 3",
            "indexes: [p_name_key along t_p_fkey or t_small_idx]",
        ),
        (
            "SELECT count(*) FROM t JOIN p ON t.p = p.id WHERE (p.id = 7 OR t.id = 9) AND t.d < 70000",
            "indexes: [p_pkey along t_p_fkey or t_pkey]",
        ),
    ] {
        let plan = database.ask(&format!("EXPLAIN {query}"));
        assert!(plan.contains("Direct: ") && plan.contains(by), "{plan}");
    }
}

#[test]
fn what_becomes_of_few_rows_is_answered_directly_and_alike() {
    let mut database = types();
    for query in [
        "SELECT id FROM t WHERE id IN (77, 78, 70) ORDER BY id",
        "SELECT id, v FROM t WHERE small = 3 ORDER BY v DESC, id",
        "SELECT id FROM t WHERE small IN (3, 5) ORDER BY v NULLS FIRST, 1 DESC LIMIT 7 OFFSET 3",
        "SELECT id FROM t WHERE small IN (3, 5) ORDER BY v DESC NULLS LAST, t.id LIMIT 9",
        "SELECT id AS number, d FROM t AS x WHERE id < 90 ORDER BY flag, x.r DESC, number",
        "SELECT * FROM t WHERE id BETWEEN 30 AND 60 ORDER BY tz DESC, fine, id",
        "SELECT id FROM t WHERE id < 90 ORDER BY n DESC, id",
        "SELECT id, u, b FROM t WHERE id < 90 ORDER BY u DESC",
        "SELECT b FROM t WHERE id < 90 ORDER BY b DESC",
        "SELECT * FROM p ORDER BY code, flag, name",
        "SELECT DISTINCT small FROM t WHERE id < 200",
        "SELECT DISTINCT flag, code FROM p ORDER BY 2, flag DESC",
        "SELECT DISTINCT d, v FROM t WHERE id < 200 ORDER BY v LIMIT 0",
        "SELECT count(*) FROM t WHERE id < 20",
        "SELECT COUNT(*), count(v), Count(t.flag) AS flags FROM t WHERE small = 5",
        "SELECT count(*) FROM t WHERE id < 0",
        "SELECT min(id), max(small), sum(small), avg(id), sum(n), avg(n), min(d), max(r), min(day), max(ts) FROM t WHERE id < 200",
        "SELECT min(tick), max(fine), min(tz), max(id), sum(p), avg(small) FROM t WHERE small = 9",
        "SELECT sum(n), avg(n), min(day), max(name), count(p.id) FROM t JOIN p ON t.p = p.id WHERE t.id < 0",
        "SELECT min(name), max(name) FROM p",
        "SELECT small FROM t WHERE id < 20 GROUP BY small",
        "SELECT small, count(*) FROM t WHERE id < 200 GROUP BY small ORDER BY count(*) DESC, small",
        "SELECT small AS s, count(*) AS many FROM t WHERE id < 200 GROUP BY small ORDER BY many DESC, s LIMIT 5",
        "SELECT v, flag, sum(id), avg(n) FROM t WHERE id < 200 GROUP BY v, 2 HAVING count(*) > 5 AND 9000 > sum(id) ORDER BY v, flag",
        "SELECT v FROM t WHERE id < 200 GROUP BY v, small HAVING small = 3 ORDER BY v, max(id)",
        "SELECT d, count(*) FROM t WHERE id < 50 GROUP BY d ORDER BY d DESC",
        "SELECT count(*) FROM t WHERE id < 200 GROUP BY small HAVING count(*) = NULL",
        "SELECT v FROM t WHERE id < 200 GROUP BY v HAVING avg(id) > 100.5 ORDER BY v",
        "SELECT p.name, count(*), max(t.id) FROM t JOIN p ON t.p = p.id WHERE p.code = 'c3' GROUP BY p.name ORDER BY p.name",
        "SELECT p.flag, sum(t.n) FROM t LEFT JOIN p ON t.p = p.id WHERE t.id BETWEEN 30 AND 90 GROUP BY p.flag ORDER BY 1",
        "SELECT DISTINCT p.flag FROM t LEFT JOIN p ON t.p = p.id WHERE t.id BETWEEN 30 AND 90 ORDER BY p.flag DESC",
        "SELECT id FROM t WHERE id = 3 OFFSET 1",
        "SELECT ALL id FROM t WHERE id < 9 ORDER BY id OFFSET 2 ROWS",
        "SELECT count(ALL v) FROM t WHERE id < 9",
        "SELECT id FROM t ORDER BY v, id LIMIT 3",
        "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 3 OFFSET 60",
        "SELECT min(ts), max(ts) FROM t",
        "SELECT p.name, t.d FROM t JOIN p ON t.p = p.id ORDER BY t.d DESC NULLS LAST LIMIT 4",
    ] {
        assert!(both(&mut database, query, &[]), "{query}");
    }
    for parameters in [[Value::Integer(200), Value::Integer(4)], [Value::Integer(9), Value::Integer(0)]] {
        let query =
            "SELECT small, count(*) FROM t WHERE id < $1 GROUP BY small HAVING count(*) < 9 ORDER BY small LIMIT $2";
        assert!(both(&mut database, query, &parameters));
    }
}

#[test]
fn what_else_becomes_of_rows_is_planned() {
    let mut database = types();
    for query in [
        // Many rows.
        "SELECT small, count(*) FROM t GROUP BY small",
        "SELECT id FROM t ORDER BY fine, id LIMIT 3",
        "SELECT count(*) FROM t",
        // Expressions.
        "SELECT id FROM t WHERE id < 20 ORDER BY id + 1",
        "SELECT id % 7 FROM t WHERE id < 20 GROUP BY id % 7 ORDER BY 1",
        "SELECT sum(id + 1) FROM t WHERE id < 20",
        "SELECT count(*) + 1 FROM t WHERE id < 20",
        "SELECT v FROM t WHERE id < 200 GROUP BY v HAVING count(*) > 5 OR v = 'v3' ORDER BY v",
        "SELECT v FROM t WHERE id < 200 GROUP BY v HAVING v IS NULL ORDER BY v",
        // Aggregates that are not ours.
        "SELECT count(DISTINCT small) FROM t WHERE id < 20",
        "SELECT count(*) FILTER (WHERE flag) FROM t WHERE id < 20",
        "SELECT stddev(id) FROM t WHERE id < 20",
        "SELECT sum(d) FROM t WHERE id < 20",
        "SELECT min(v) FROM t WHERE id < 20",
        "SELECT max(code) FROM p",
        "SELECT count(1) FROM t WHERE id < 20",
        "SELECT row_number() OVER (ORDER BY id) FROM t WHERE id < 20 ORDER BY 1",
        "SELECT max(id) OVER () FROM t WHERE id < 20",
        "SELECT \"count\"(*) FROM t WHERE id < 20",
        // Names that could be two things.
        "SELECT small AS id FROM t WHERE id < 20 ORDER BY id",
        "SELECT v AS small, count(*) FROM t WHERE id < 200 GROUP BY v, small HAVING small = 3 ORDER BY 1, 2",
        "SELECT max(id) AS id FROM t WHERE id < 20 ORDER BY id",
        "SELECT DISTINCT ON (small) small FROM t WHERE id < 20 ORDER BY small",
        "SELECT small FROM t WHERE id < 20 GROUP BY GROUPING SETS ((small), ()) ORDER BY 1",
        "SELECT small FROM t WHERE id < 20 GROUP BY ROLLUP (small) ORDER BY 1",
        // Errors are the library's.
        "SELECT id, count(*) FROM t WHERE id < 20",
        "SELECT small, v FROM t WHERE id < 20 GROUP BY small",
        "SELECT small FROM t WHERE id < 20 GROUP BY small ORDER BY v",
        "SELECT DISTINCT small FROM t WHERE id < 20 ORDER BY v",
        "SELECT id FROM t WHERE id < 20 ORDER BY 2",
        "SELECT id FROM t WHERE id < 20 ORDER BY 0",
        "SELECT id FROM t WHERE id < 20 GROUP BY 2",
        "SELECT id FROM t WHERE id < 20 ORDER BY nothing",
        "SELECT id FROM t WHERE id < 20 HAVING id > 3",
        "SELECT sum(v) FROM t WHERE id < 20",
        "SELECT sum(*) FROM t WHERE id < 20",
        "SELECT max(id, small) FROM t WHERE id < 20",
        "SELECT id FROM t WHERE id < 20 ORDER BY count(*)",
        "SELECT id FROM t WHERE id < 20 OFFSET -1",
    ] {
        assert!(!both(&mut database, query, &[]), "{query}");
    }
}

#[test]
fn a_sum_out_of_range_says_so_either_way() {
    let mut database = Database::after("CREATE TABLE n (id INTEGER PRIMARY KEY, big BIGINT)");
    database.ask("INSERT INTO n VALUES (1, 9223372036854775807), (2, 1)");
    for query in ["SELECT sum(big) FROM n", "SELECT id / 3, sum(big) FROM n GROUP BY id / 3"] {
        assert!(database.ask(query).starts_with("error: a sum is out of the range"), "{}", database.ask(query));
    }
}

#[test]
fn what_is_not_simple_is_planned() {
    let mut database = types();
    for query in [
        "SELECT id + 1 FROM t WHERE id = 77",
        "SELECT small, current_role FROM t WHERE id = 3",
        "SELECT id FROM t WHERE id = 3 OR id + 1 = 5",
        "SELECT id FROM p WHERE name LIKE 'name _'",
        "SELECT id FROM p WHERE name LIKE '%7'",
        "SELECT id FROM p WHERE name LIKE 'na%7'",
        "SELECT id FROM p WHERE name LIKE 'name\\%'",
        "SELECT id FROM p WHERE name ILIKE 'NAME 1%'",
        "SELECT id FROM p WHERE code LIKE 'c3%'",
        "SELECT id FROM p WHERE name LIKE NULL",
        "SELECT id FROM p WHERE name LIKE 'name#%' ESCAPE '#'",
        "SELECT id FROM t WHERE id LIKE '7%'",
        "SELECT id FROM t WHERE id = '77'",
        "SELECT id FROM t WHERE day = '2024-1-05'",
        "SELECT id FROM t WHERE day = 'yesterday'",
        "SELECT id FROM t WHERE ts = '2024-01-05T00:00:00'",
        "SELECT id FROM t WHERE tz = '2024-01-05 00:00:00'",
        "SELECT id FROM t WHERE tz = '2024-01-05 02:00:00+02'",
        "SELECT id FROM t WHERE n = 1.255",
        "SELECT id FROM t WHERE n < 99999999999",
        "SELECT id FROM t WHERE small < 1.5",
        "SELECT id FROM t WHERE id IN (SELECT 5)",
        "SELECT id FROM t WHERE \"Odd Name\" = 3",
        "SELECT id FROM t WHERE id = small AND small = 3",
        "SELECT id FROM seen WHERE id = 3",
        "SELECT table_name FROM information_schema.tables",
        "SELECT t.id FROM t JOIN p USING (id) WHERE t.id = 3",
        "SELECT t.id FROM t NATURAL JOIN p WHERE t.id = 3",
        "SELECT t.id FROM t RIGHT JOIN p ON t.p = p.id WHERE t.id = 3",
        "SELECT t.id FROM t LEFT JOIN p ON t.p = p.id AND t.id > 5 WHERE t.id < 9",
        "SELECT t.id FROM t JOIN p ON t.id = p.id WHERE t.id = 3",
        "SELECT a.id FROM child AS a JOIN pair ON a.a = pair.a WHERE a.id = 3",
        "SELECT t.id FROM t JOIN p ON t.p = p.id AND t.small = p.id WHERE t.id = 3",
        "SELECT t.id FROM t, p WHERE t.id = 3",
        "SELECT id FROM t TABLESAMPLE SYSTEM (50)",
        "SELECT id FROM t WHERE id = 3 FOR UPDATE",
        "SELECT u.id FROM t AS u (id, other) WHERE u.id = 3",
        // Errors are the library's.
        "SELECT nothing FROM t WHERE id = 3",
        "SELECT id FROM t, p WHERE id = 3",
        "SELECT t.id FROM t AS x WHERE x.id = 3",
        "SELECT id FROM t JOIN t ON id = id",
        "SELECT a.id FROM t AS a JOIN p ON b.p = p.id JOIN t AS b ON b.p = p.id WHERE a.id = 3",
        "SELECT a.id FROM t AS a, t AS b JOIN p ON a.p = p.id WHERE a.id = 3 AND b.id = 3 AND b.p = p.id",
        "SELECT id FROM missing",
        "SELECT id FROM t WHERE flag = 1",
        "SELECT id FROM t WHERE small",
        "SELECT id FROM t WHERE id = $1",
        "SELECT id FROM t LIMIT -1",
        "SELECT FROM p WHERE id = 3",
        "SELECT *, * FROM p WHERE id = 3",
        "SELECT *, id AS name FROM p WHERE id = 3",
        "SELECT x.*, id FROM t x WHERE id = 77",
        "SELECT t.id, p.* FROM t LEFT JOIN p ON t.p = p.id WHERE t.id BETWEEN 30 AND 90",
        "SELECT p.* FROM public.p WHERE id = 3",
        "SELECT public.p.* FROM p WHERE id = 3",
        "SELECT id AS Ä FROM p WHERE id = 3",
        "SELECT Ä.id FROM p AS Ä WHERE id = 3",
        "SELECT id FROM t WHERE u = '00000000-0000-0000-0000-00000000004D'",
        "SELECT id FROM t WHERE u = '00000000-0000-0000-0000-00000000004D' AND u = '00000000-0000-0000-0000-00000000004d'",
    ] {
        assert!(!both(&mut database, query, &[]), "{query}");
    }
}

#[test]
fn parameters_are_values_of_the_columns_types() {
    let mut database = types();
    let at = 1_704_067_200_000_000_000_i128;
    let minute = 60_000_000_000_i128;
    for (condition, value, is_direct) in [
        ("id = $1", Value::Integer(77), true),
        ("small = $1", Value::Integer(77), true),
        ("small = $1", Value::Integer(70_000), true),
        ("small > $1 AND id < 90", Value::Integer(-70_000), true),
        ("id = $1", Value::Text("77".into()), false),
        ("id = $1", Value::Null, true),
        ("d = $1", Value::Double(4.25), true),
        ("d = $1", Value::Integer(4), true),
        ("d < $1 AND id < 20", Value::Decimal { unscaled: -325, scale: 2 }, true),
        ("d = $1", Value::Integer((1 << 53) + 1), false),
        ("d = $1", Value::Double(-f64::NAN), true),
        ("d < $1 AND id < 20", Value::Double(-f64::NAN), true),
        ("day > $1 AND id < 90", Value::Date(2_932_897), false),
        ("tick >= $1 AND id < 90", Value::Time(86_400_000_000), false),
        ("tick >= $1 AND id < 90", Value::Time(-1), false),
        ("ts > $1 AND id < 90", Value::Timestamp(at * 1000), false),
        ("n = $1", Value::Decimal { unscaled: 1250, scale: 2 }, true),
        ("n = $1", Value::Decimal { unscaled: 12_505, scale: 3 }, false),
        ("n < $1 AND id < 90", Value::Integer(3), true),
        ("r > $1 AND id < 90", Value::Decimal { unscaled: 35, scale: 2 }, true),
        ("day = $1", Value::Text("2024-01-02".into()), true),
        ("day = $1", Value::Text("no day".into()), false),
        ("ts = $1", Value::Text("2024-01-01 00:07:00".into()), true),
        ("day = $1", Value::Date(19_724), true),
        ("tick > $1 AND id < 90", Value::Time(36_050_000_000), true),
        ("ts = $1", Value::Timestamp(at + 7 * minute), true),
        ("ts = $1", Value::Timestamp(at + 7 * minute + 1), false),
        ("fine < $1 AND id < 90", Value::Timestamp(at + 7 * minute), true),
        ("tz = $1", Value::TimestampTz(at + 60 * minute), true),
        ("u = $1", Value::Uuid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 77]), true),
        ("u = $1", Value::Text("00000000-0000-0000-0000-00000000004d".into()), true),
        ("u = $1", Value::Text("no uuid".into()), false),
        ("v = $1", Value::Text("v7".into()), true),
        ("b = $1 AND id < 90", Value::Bytes(vec![0, 0, 0, 5]), true),
        ("flag = $1 AND id < 90", Value::Boolean(true), true),
        ("id = -$1", Value::Integer(-77), false),
    ] {
        let query = format!("SELECT id, v FROM t WHERE {condition}");
        assert_eq!(both(&mut database, &query, std::slice::from_ref(&value)), is_direct, "{query} {value:?}");
    }
    let rows = [Value::Integer(90), Value::Integer(3)];
    assert!(both(&mut database, "SELECT name FROM p LIMIT $2", &rows));
    assert!(both(&mut database, "SELECT p.name FROM t JOIN p ON p.id = t.p WHERE t.id = $1 LIMIT $2", &rows));
}

#[test]
fn a_transaction_sees_what_it_has_done_itself() {
    let mut database = types();
    database.expect(&[
        ("BEGIN", "BEGIN"),
        ("INSERT INTO p VALUES (99, 'new')", "INSERT 1"),
        ("SELECT name FROM p WHERE id = 99", "new"),
        ("UPDATE p SET name = 'newer' WHERE id = 99", "UPDATE 1"),
        ("SELECT name FROM p WHERE id = 99", "newer"),
        ("SELECT t.id, name FROM t JOIN p ON t.p = p.id WHERE p.id = 99", ""),
        ("UPDATE t SET p = 99 WHERE id = 5", "UPDATE 1"),
        ("SELECT t.id, name FROM t JOIN p ON t.p = p.id WHERE p.id = 99", "5|newer"),
        ("ROLLBACK", "ROLLBACK"),
        ("SELECT name FROM p WHERE id = 99", ""),
    ]);
}

#[test]
fn questions_of_programs_are_answered_as_their_texts_are() {
    let mut database = types();
    let along = || column("t.p").is_same_as(column("p.id"));
    let few = || column("t.id").between(30, 60);
    for (question, text) in [
        (Question::of("t").filter(column("id").equals(77)), "SELECT * FROM t WHERE id = 77"),
        (
            Question::of("t")
                .filter(column("small").is_in([3, 4, 5]))
                .filter(column("v").is_not_null())
                .columns(["id", "v"]),
            "SELECT id, v FROM t WHERE small IN (3, 4, 5) AND v IS NOT NULL",
        ),
        (
            Question::of("t").join("p", along()).filter(few().and(column("name").differs("name 33"))),
            "SELECT * FROM t JOIN p ON t.p = p.id WHERE t.id BETWEEN 30 AND 60 AND name <> 'name 33'",
        ),
        (
            Question::of("t")
                .left_join("p", along().and(column("p.flag").equals(true)))
                .filter(few())
                .columns(["t.id", "name"]),
            "SELECT t.id, name FROM t LEFT JOIN p ON t.p = p.id AND p.flag WHERE t.id BETWEEN 30 AND 60",
        ),
        (
            Question::of("t").filter(column("id").less(3).or(column("id").greater(4998)).or(column("v").is_null())),
            "SELECT * FROM t WHERE id < 3 OR id > 4998 OR v IS NULL",
        ),
        (Question::of("t").filter(column("id").is_in(Vec::<i64>::new())), "SELECT * FROM t WHERE false"),
        (
            Question::of("t").filter(few()).filter(!column("p").is_in([33, 34]).or(column("v").equals("v40"))),
            "SELECT * FROM t WHERE id BETWEEN 30 AND 60 AND NOT (p IN (33, 34) OR v = 'v40')",
        ),
        (
            Question::of("t").filter(few()).filter(!column("p").is_in(Vec::<i64>::new())),
            "SELECT * FROM t WHERE id BETWEEN 30 AND 60",
        ),
        (
            Question::of("t").join("p", along()).filter(column("name").equals("name 7").or(column("t.id").less(9))),
            "SELECT * FROM t JOIN p ON t.p = p.id WHERE name = 'name 7' OR t.id < 9",
        ),
        (
            // Not near at hand.
            Question::of("t").filter(!column("n").equals(Value::Decimal { unscaled: 125, scale: 2 })).columns(["id"]),
            "SELECT id FROM t WHERE NOT (n = 1.25)",
        ),
        (
            Question::of("t")
                .filter(few())
                .columns(["id", "v"])
                .order_by_descending(column("v"))
                .order_by(column("id"))
                .offset(2),
            "SELECT id, v FROM t WHERE id BETWEEN 30 AND 60 ORDER BY v DESC, id OFFSET 2",
        ),
        (
            Question::of("t").filter(few()).columns(["v"]).distinct().order_by(column("v")).limit(3),
            "SELECT DISTINCT v FROM t WHERE id BETWEEN 30 AND 60 ORDER BY v LIMIT 3",
        ),
        (
            Question::of("t")
                .join("p", along())
                .filter(few())
                .columns(["p.flag"])
                .count_rows("many")
                .aggregate(Function::Greatest, column("t.id"), "last")
                .group_by(column("p.flag"))
                .order_by(column("many")),
            "SELECT p.flag, count(*) AS many, max(t.id) AS last FROM t JOIN p ON t.p = p.id WHERE t.id BETWEEN 30 AND 60 \
             GROUP BY p.flag ORDER BY many",
        ),
        (Question::of("p").filter(column("name").like("name 1%")), "SELECT * FROM p WHERE name LIKE 'name 1%'"),
        (Question::of("p").filter(column("name").like("%_7")), "SELECT * FROM p WHERE name LIKE '%_7'"),
        // Not near at hand.
        (
            Question::of("t")
                .filter(column("n").differs(Value::Decimal { unscaled: 125, scale: 2 }))
                .columns(["small"])
                .aggregate(Function::Sum, column("d"), "total")
                .aggregate(Function::Mean, column("t.n"), "mean")
                .aggregate(Function::Least, column("d"), "least")
                .aggregate(Function::Count, column("v"), "count")
                .count_rows("rows")
                .group_by(column("small"))
                .order_by_descending(column("small"))
                .offset(1)
                .limit(9),
            "SELECT small, sum(d) AS total, avg(n) AS mean, min(d) AS least, count(v) AS count, count(*) AS rows FROM t WHERE n <> 1.25 \
             GROUP BY small ORDER BY small DESC OFFSET 1 LIMIT 9",
        ),
        (
            Question::of("t").filter(column("n").equals(Value::Decimal { unscaled: 125, scale: 2 })).columns(["id"]),
            "SELECT id FROM t WHERE n = 1.25",
        ),
        (
            Question::of("t")
                .filter(column("Odd Name").at_most(2))
                .filter(column("id").at_most(9000))
                .columns(["Odd Name", "id"]),
            "SELECT \"Odd Name\", id FROM t WHERE \"Odd Name\" <= 2 AND id <= 9000",
        ),
        (Question::of("seen").filter(column("id").equals(5)), "SELECT * FROM seen WHERE id = 5"),
        (
            Question::of("t").join("p", column("t.id").is_same_as(column("p.id"))).columns(["t.id", "p.name"]),
            "SELECT t.id, p.name FROM t JOIN p ON t.id = p.id",
        ),
        (Question::of("t").columns(["nothing"]), "SELECT nothing FROM t"),
        (Question::of("nothing"), "SELECT * FROM nothing"),
        (Question::of("T"), "SELECT * FROM \"T\""),
        (Question::of("t").filter(column("nothing").is_in(Vec::<i64>::new())), "SELECT * FROM t WHERE nothing IN (1)"),
        (Question::of("x\\\"; DELETE FROM t; --"), "SELECT * FROM nothing"),
        (Question::of("t").join("t", along()), "SELECT * FROM t JOIN t ON t.p = p.id"),
    ] {
        let rows = database.session.ask_question(&question).map_err(|error| error.to_string());
        let asked = rows.and_then(|rows| lines(rows, text.contains("ORDER BY")));
        let said = answer(&mut database, text, &[]);
        assert_eq!(asked.as_ref().ok(), said.as_ref().ok(), "{text}: {asked:?}");
        assert_eq!(asked.is_err(), said.is_err(), "{text}");
    }
    let three = database.session.ask_question(&Question::of("t").filter(few()).limit(3)).unwrap();
    assert_eq!(lines(three, false).unwrap().1.len(), 3);
}

#[test]
fn a_failed_transaction_takes_no_question() {
    let mut database = types();
    database.ask("BEGIN");
    database.ask("SELECT nothing FROM t");
    assert!(database.session.ask_question(&Question::of("p")).is_err());
    database.expect(&[("ROLLBACK", "ROLLBACK")]);
    assert!(database.session.ask_question(&Question::of("p")).is_ok());
}

#[test]
fn changes_of_few_rows_are_those_of_the_library() {
    let statements = [
        "UPDATE t SET small = 7 WHERE id = 77",
        "UPDATE t SET small = '8', v = NULL, flag = true, p = NULL WHERE id IN (70, 71, 77) AND small <> 71",
        "UPDATE t AS x SET v = 'other' WHERE x.v = 'v7' AND x.id < 900",
        "UPDATE t SET small = small + 1, v = 'one more' WHERE small = 9",
        "UPDATE t SET day = '2025-05-05', n = 3, d = 4, u = '00000000-0000-0000-0000-0000000000ff' WHERE id = 78",
        "UPDATE t SET small = 100000 WHERE id = 77",
        "UPDATE t SET small = 'many' WHERE id = 77",
        "UPDATE t SET small = 'many' WHERE id = -1",
        "UPDATE t SET p = 1000 WHERE id = 77",
        "UPDATE t SET id = 78 WHERE id = 77",
        "UPDATE t SET nothing = 78 WHERE id = 77",
        "UPDATE t SET v = 'far too long for a column of twenty letters' WHERE id = 77",
        "UPDATE p SET id = 4001, name = 'moved' WHERE id = 40",
        "UPDATE p SET name = NULL WHERE id = 39",
        "UPDATE t SET \"Odd Name\" = DEFAULT WHERE id = 81 RETURNING id, \"Odd Name\"",
        "UPDATE t SET v = 'returned' WHERE id IN (82, 83) RETURNING *",
        "UPDATE t SET __counterfoil_row = 5 WHERE id = 3",
        "DELETE FROM t WHERE id = 85",
        "DELETE FROM t WHERE id BETWEEN 90 AND 95 RETURNING id, v",
        "DELETE FROM t AS x WHERE x.small = 33 AND x.id > 1000",
        "DELETE FROM p WHERE id = 3",
        "DELETE FROM child WHERE id = 4 OR id = 5",
        "DELETE FROM child USING pair WHERE child.a = pair.a AND child.b = pair.b AND value = 33",
        "DELETE FROM p WHERE id = 41",
        "SELECT __counterfoil_row FROM t WHERE id = 3",
        "UPDATE t SET v = 'x' WHERE __counterfoil_row = 5",
        "DELETE FROM t WHERE __counterfoil_row IN (11, 12)",
        "DELETE FROM t WHERE __counterfoil_row IS NULL",
    ];
    let (mut direct, mut planned) = (types(), types());
    planned.expect(&[(OFF, "SET")]);
    for statement in statements {
        let (one, other) = (direct.ask(statement), planned.ask(statement));
        assert_eq!(one, other, "{statement}");
    }
    for table in ["t", "p", "pair", "child"] {
        let all = format!("SELECT * FROM {table} ORDER BY 1, 2");
        assert!(direct.ask(&all) == planned.ask(&all), "{table}");
    }
    let with = |database: &mut Database, value: Value| {
        let outcome = database.session.run_one("UPDATE t SET v = $1 WHERE id = $2", &[value, Value::Integer(97)]);
        (outcome.map(drop).map_err(|error| error.to_string()), database.ask("SELECT v FROM t WHERE id = 97"))
    };
    for value in [Value::Text("given".into()), Value::Null, Value::Integer(5), Value::Boolean(true), Value::Double(1.5)]
    {
        assert_eq!(with(&mut direct, value.clone()), with(&mut planned, value));
    }
}

#[test]
fn what_an_index_says_whole_is_counted_without_its_rows() {
    let mut database = Database::after(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT);
         INSERT INTO t SELECT x, x % 10, 'b' FROM generate_series(1, 50000) AS g(x); CREATE INDEX ON t (a);
         UPDATE t SET a = 3 WHERE id <= 5; DELETE FROM t WHERE id = 13",
    );
    for (question, answer) in [
        ("SELECT count(*) FROM t WHERE a = 3", "5003"),
        ("SELECT count(1) FROM t WHERE a BETWEEN 3 AND 4 AND a <> 99", "10002"),
        ("SELECT count(*) AS n, count(*) FROM t WHERE a IN (3, 4, 3) HAVING count(*) > 5", "10002|10002"),
        ("SELECT (SELECT count(*) FROM t WHERE a = 3) + 1", "5004"),
        ("SELECT count(*) FROM (SELECT 1 FROM t WHERE a = 3 LIMIT 7) AS few", "7"),
        ("SELECT EXISTS (SELECT 1 FROM t WHERE a = 99)", "false"),
    ] {
        assert_eq!(database.ask(question), answer, "{question}");
        database.ask("SET enable_direct_queries = off");
        assert_eq!(database.ask(question), answer, "{question}, planned");
        database.ask("SET enable_direct_queries = on");
    }
    let told = database.ask("EXPLAIN SELECT count(*) FROM t WHERE a = 3");
    assert!(told.contains("Answer: indexes: [entries of t_a_idx] (0 candidates of t)"), "{told}");
    // A number that is known before anything is read needs no scan.
    let told = database.ask("EXPLAIN SELECT (SELECT count(*) FROM t WHERE a = 3) + 1");
    assert!(!told.contains("Scan: ") && !told.contains("Index: "), "{told}");
    let told = database.ask("EXPLAIN SELECT i.x FROM t CROSS JOIN generate_series(1, 2) AS i(x) WHERE t.a = 3");
    assert!(told.contains("Index: entries of t_a_idx of t"), "{told}");
}

#[test]
fn the_first_of_an_order_are_read_at_the_end_of_its_index() {
    let mut database = Database::after(
        "CREATE TABLE devices (id INTEGER PRIMARY KEY, name TEXT);
         CREATE TABLE log (id INTEGER PRIMARY KEY, device INTEGER REFERENCES devices, at BIGINT NOT NULL, level DOUBLE PRECISION);
         CREATE INDEX ON log (at); CREATE INDEX ON log (level); CREATE INDEX ON log (device, at);
         INSERT INTO devices SELECT x, 'd' || x FROM generate_series(0, 49) AS g(x);
         INSERT INTO log SELECT x, x % 50, x * 60,
             CASE WHEN x % 100 = 7 THEN NULL ELSE (x * 7919 % 100003) / 2.0 END FROM generate_series(1, 50000) AS g(x)",
    );
    for (question, index, answer) in [
        ("SELECT id FROM log ORDER BY at DESC LIMIT 3", "log_at_idx", "50000;49999;49998"),
        ("SELECT id FROM log ORDER BY at LIMIT 2 OFFSET 5", "log_at_idx", "6;7"),
        ("SELECT max(at) FROM log", "log_at_idx", "3000000"),
        ("SELECT id FROM log WHERE device = 7 ORDER BY at DESC LIMIT 2", "log_device_at_idx", "49957;49907"),
        ("SELECT max(id) FROM log WHERE device = 7", "log_pkey", "49957"),
        (
            "SELECT l.id, d.name FROM log l JOIN devices d ON d.id = l.device ORDER BY l.at DESC LIMIT 2",
            "log_at_idx",
            "50000|d0;49999|d49",
        ),
        ("SELECT id FROM log ORDER BY level DESC NULLS LAST LIMIT 1", "log_level_idx", ""),
        ("SELECT min(level), max(level) FROM log", "log_level_idx", ""),
    ] {
        let plan = database.ask(&format!("EXPLAIN {question}"));
        let few = plan.split(" candidates of log").next().and_then(|plan| plan.rsplit('(').next()?.parse::<u32>().ok());
        assert!(few.is_some_and(|few| few < 100), "{question}: {plan}");
        assert!(plan.contains("Answer: indexes: [") && plan.contains(index), "{question}: {plan}");
        let found = database.ask(question);
        database.ask("SET enable_direct_queries = off");
        assert_eq!(found, database.ask(question), "{question}");
        database.ask("SET enable_direct_queries = on");
        assert!(answer.is_empty() || found.replace('\n', ";") == answer, "{question}: {found}");
    }
}

/// TIMESTAMP has microseconds, whoever reads the statement: finer is what is compared with a column that has more.
#[test]
fn a_timestamp_is_as_fine_wherever_it_is_read() {
    let fine = "2024-02-29 12:00:00.123456789";
    let mut database = Database::after(&format!(
        "CREATE TABLE r (id INTEGER PRIMARY KEY, at TIMESTAMP(9)); INSERT INTO r VALUES (2, '{fine}'), (3, TIMESTAMP '{fine}')"
    ));
    for (condition, found) in [
        (format!("at = TIMESTAMP '{fine}'"), "3"),
        (format!("at = '{fine}'"), "2"),
        (format!("at < TIMESTAMP '{fine}'"), "2"),
    ] {
        assert_eq!(database.ask(&format!("SELECT id FROM r WHERE {condition}")), found, "{condition}");
        let planned = format!("SELECT id FROM r WHERE {condition} OR length(id::text) > 5");
        assert_eq!(database.ask(&planned), found, "{planned}");
    }
}

/// An index that names too many rows of a small table is no reason not to read it: many of its rows may lead to few.
#[test]
fn a_small_table_is_read_where_its_index_names_much_of_it() {
    let mut database = Database::after(
        "CREATE TABLE place (id INTEGER PRIMARY KEY, zone INTEGER); CREATE INDEX ON place (zone);
         INSERT INTO place SELECT x, x % 2 FROM generate_series(1, 400) AS g(x);
         CREATE TABLE trip (id INTEGER PRIMARY KEY, place INTEGER REFERENCES place);
         INSERT INTO trip SELECT x, CASE WHEN x % 2000 = 0 THEN 7 ELSE 2 * (x % 200) + 2 END FROM generate_series(1, 20000) AS g(x)",
    );
    let question =
        "SELECT p.zone, count(*) FROM trip t JOIN place p ON p.id = t.place WHERE p.zone = 1 GROUP BY p.zone";
    let told = database.ask(&format!("EXPLAIN {question}"));
    assert!(told.contains("Direct: Answer: indexes: [place read along trip_place_fkey] (10 candidates"), "{told}");
    assert_eq!(database.ask(question), "1|10");
    database.ask("SET enable_direct_queries = off");
    assert_eq!(database.ask(question), "1|10");
}
