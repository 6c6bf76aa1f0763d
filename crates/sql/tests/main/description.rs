//! What statements want and answer, before they run.

use counterfoil_sql::arrow::datatypes::{DataType, FieldRef, TimeUnit};
use counterfoil_sql::{Value, field_name, result_name};

use crate::database::{Database, ask};

fn tables() -> Database {
    Database::after(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, big BIGINT, name TEXT DEFAULT 'x', price NUMERIC(10,2), at TIMESTAMP,
                         zoned TIMESTAMPTZ, day DATE, good BOOLEAN, raw BYTEA, x DOUBLE PRECISION);
         CREATE TABLE u (id BIGINT, t INTEGER, mark UUID)",
    )
}

/// Names of the parameters' types, and the columns with theirs.
fn described(database: &mut Database, sql: &str, given: &[Option<DataType>]) -> (Vec<String>, Option<Vec<String>>) {
    let description = database.session.description(sql, given).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let kind = |kind: &Option<FieldRef>| kind.as_ref().map_or_else(|| "?".to_owned(), |kind| field_name(kind));
    let columns = description.columns.map(|columns| {
        let column = |field: &std::sync::Arc<counterfoil_sql::arrow::datatypes::Field>| {
            format!("{} {}", field.name(), result_name(field.data_type()))
        };
        columns.fields().iter().map(column).collect()
    });
    (description.parameters.iter().map(kind).collect(), columns)
}

#[test]
fn parameters_are_what_stands_beside_them() {
    let mut database = tables();
    for (sql, expected) in [
        ("SELECT 1", ""),
        ("SELECT * FROM t WHERE id = $1", "integer"),
        ("SELECT * FROM t WHERE $1 = id", "integer"),
        ("SELECT * FROM t WHERE big > $1 AND name LIKE $2", "bigint, text"),
        ("SELECT * FROM t WHERE price BETWEEN $2 AND $1", "numeric(10,2), numeric(10,2)"),
        ("SELECT * FROM t WHERE at >= $1 AND zoned < $2 AND day = $3", "timestamp, timestamp with time zone, date"),
        ("SELECT * FROM t WHERE id IN ($1, $2)", "integer, integer"),
        ("SELECT * FROM t WHERE good = $1 AND raw = $2 AND x < $3", "boolean, bytea, double precision"),
        ("SELECT $1::INTEGER, CAST($2 AS DATE), $3::NUMERIC(5,2)", "integer, date, numeric(5,2)"),
        ("SELECT id + $1 FROM t", "integer"),
        ("SELECT * FROM t ORDER BY id LIMIT $1 OFFSET $2", "bigint, bigint"),
        ("SELECT * FROM t JOIN u ON u.t = t.id AND u.id = $1", "bigint"),
        ("SELECT * FROM (SELECT id FROM t WHERE name = $2) AS s WHERE id = $1", "integer, text"),
        ("SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.t = t.id AND u.id = $1)", "bigint"),
        ("WITH w AS (SELECT * FROM u WHERE id = $1) SELECT * FROM w", "bigint"),
        ("SELECT $1", "?"),
        (
            "SELECT abs($1), sqrt($2), round($3), round($4, $5)",
            "double precision, double precision, double precision, numeric(38,10), integer",
        ),
        (
            "SELECT substr(name, $1, $2), substring(name FROM $3 FOR 2), left($4, $5) FROM t",
            "integer, integer, integer, ?, integer",
        ),
        ("SELECT * FROM t WHERE $1", "boolean"),
        (
            "SELECT CASE WHEN $1 THEN 1 END FROM t WHERE NOT $2 AND ($3) GROUP BY id HAVING $4",
            "boolean, boolean, boolean, boolean",
        ),
        ("SELECT * FROM generate_series(1, $1)", "bigint"),
        ("SELECT * FROM t WHERE name = repeat('x', $1) AND big = $2", "integer, bigint"),
        ("SELECT * FROM t WHERE id = $2", "?, integer"),
        ("INSERT INTO t VALUES ($1, $2, $3)", "integer, bigint, text"),
        ("INSERT INTO t (name, id) VALUES ($1, $2), (DEFAULT, $3 + 1)", "text, integer, bigint"),
        ("INSERT INTO t (id, day) SELECT id, $1 FROM u WHERE t = $2", "?, integer"),
        (
            "INSERT INTO t (id) VALUES ($1) ON CONFLICT (id) DO UPDATE SET name = excluded.name || $2 WHERE t.big > $3",
            "integer, text, bigint",
        ),
        ("UPDATE t SET price = $1, day = $2 WHERE id = $3", "numeric(10,2), date, integer"),
        ("UPDATE t SET big = big + $1 FROM u WHERE u.t = t.id AND u.id = $2", "bigint, bigint"),
        ("DELETE FROM t WHERE at < $1", "timestamp"),
        ("DELETE FROM t USING u WHERE u.t = t.id AND u.id = $1", "bigint"),
        ("DECLARE c CURSOR FOR SELECT * FROM t WHERE id = $1", "integer"),
        ("SELECT * FROM u WHERE mark = $1 OR mark IN ($2, $3)", "uuid, uuid, uuid"),
        ("INSERT INTO u (mark, id) VALUES ($1, $2)", "uuid, bigint"),
        ("UPDATE u SET mark = $1 WHERE mark = $2", "uuid, uuid"),
        ("SELECT $1::UUID", "uuid"),
        ("SELECT relname FROM pg_class WHERE oid = ANY($1::oid[]) AND relname <> '$2::oid[]'", "bigint[]"),
    ] {
        assert_eq!(described(&mut database, sql, &[]).0.join(", "), expected, "{sql}");
    }
}

#[test]
fn columns_are_those_that_come() {
    let mut database = tables();
    for (sql, parameters) in [
        ("SELECT id, name AS called, count(*) FROM t WHERE id > $1 GROUP BY id, name", vec![Value::Integer(1)]),
        ("SELECT * FROM t", vec![]),
        ("SELECT big + $1 FROM t", vec![Value::Integer(1)]),
        ("SELECT $1::BIGINT + 1, 'a', NULL, 1.5", vec![Value::Integer(1)]),
        ("VALUES (1, 'a'), (2, 'b')", vec![]),
        ("INSERT INTO t (id) VALUES ($1) RETURNING id, name, price * 2 AS twice", vec![Value::Integer(1)]),
        ("INSERT INTO t (id) VALUES ($1) RETURNING *", vec![Value::Integer(2)]),
        ("UPDATE t SET name = $1 RETURNING id, name", vec![Value::from("n")]),
        ("DELETE FROM t WHERE id = $1 RETURNING t.*", vec![Value::Integer(1)]),
        ("SHOW server_version", vec![]),
        ("EXPLAIN SELECT * FROM t", vec![]),
    ] {
        let (_, columns) = described(&mut database, sql, &[]);
        let mut outcomes = database.session.run(sql, &parameters).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let Some(counterfoil_sql::Outcome::Rows(rows)) = outcomes.pop() else { panic!("{sql} answers no rows") };
        let fields = rows.schema().fields().iter();
        let came: Vec<_> = fields.map(|it| format!("{} {}", it.name(), result_name(it.data_type()))).collect();
        assert_eq!(columns, Some(came), "{sql}");
    }
    for sql in ["UPDATE t SET name = 'x'", "BEGIN", "CREATE TABLE v (a INTEGER)", "DELETE FROM t", ""] {
        assert_eq!(described(&mut database, sql, &[]).1, None, "{sql}");
    }
    assert_eq!(ask(&mut database.session, "SELECT count(*) FROM t", &[]), "1", "describing changed nothing");
}

#[test]
fn what_is_known_of_parameters_counts() {
    let mut database = tables();
    let given = [Some(DataType::Timestamp(TimeUnit::Microsecond, None)), None];
    let (parameters, columns) = described(&mut database, "SELECT $1, $1 > $2", &given);
    assert_eq!(parameters, ["timestamp", "timestamp"]);
    assert_eq!(columns.unwrap()[0].split_once(' ').unwrap().1, "timestamp");
    let (parameters, columns) = described(&mut database, "SELECT abs($1)", &[Some(DataType::Int64)]);
    assert_eq!((parameters[0].as_str(), columns.unwrap()[0].as_str()), ("bigint", "abs($1) bigint"));
}

/// What was said of a statement once is said again for as long as its tables are as they were.
#[test]
fn descriptions_follow_their_tables() {
    let mut database =
        Database::after("CREATE TABLE t (a INTEGER); CREATE TABLE u (a TEXT); CREATE VIEW v AS SELECT a FROM t");
    let sql = "INSERT INTO t SELECT a::INTEGER FROM u WHERE a = $1 RETURNING *";
    for _ in 0..2 {
        assert_eq!(described(&mut database, sql, &[]), (vec!["text".into()], Some(vec!["a integer".into()])));
    }
    assert_eq!(described(&mut database, sql, &[Some(DataType::Int64)]).0, ["bigint"]);
    database.ask("BEGIN; ALTER TABLE t ADD COLUMN b BIGINT");
    assert_eq!(described(&mut database, sql, &[]).1, Some(vec!["a integer".into(), "b bigint".into()]));
    database.ask("ROLLBACK");
    assert_eq!(described(&mut database, sql, &[]).1, Some(vec!["a integer".into()]));
    assert_eq!(described(&mut database, "SELECT * FROM v", &[]).1, Some(vec!["a integer".into()]));
    database.ask("DROP TABLE u; DROP VIEW v; CREATE VIEW v AS SELECT a + 1.5 AS a FROM t; CREATE TABLE u (a DATE)");
    assert_eq!(described(&mut database, "SELECT * FROM v", &[]).1, Some(vec!["a numeric(12,1)".into()]));
    assert!(database.session.description(sql, &[]).is_ok_and(|told| told.parameters[0].is_some()));
}

#[test]
fn what_cannot_be_described_is_told_and_bounded() {
    let mut database = tables();
    for sql in ["SELECT * FROM nothing WHERE a = $1", "SELECT nothing FROM t", "INSERT INTO nothing VALUES ($1)"] {
        assert!(database.session.description(sql, &[]).is_err(), "{sql}");
    }
    // Nobody gets four billion places by naming one of them.
    assert_eq!(database.session.prepare("SELECT $4000000000").unwrap(), 0);
    assert_eq!(
        ask(&mut database.session, "SELECT $4000000000", &[]),
        "error: parameter $4000000000: parameters are written $1, $2, up to $65535"
    );
    assert_eq!(ask(&mut database.session, "SELECT $65536", &[]).split(':').next(), Some("error"));
}

/// Texts that nest as deep as they may.
fn deep_texts() -> Vec<String> {
    let around = |before: &str, inner: &str, after: &str, times: usize| {
        format!("SELECT {}{inner}{}", before.repeat(times), after.repeat(times))
    };
    vec![
        around("CASE WHEN 1 = 1 THEN ", "1", " END", 90),
        around("abs(", "1", ")", 90),
        around("coalesce(", "$1", ", 1)", 10),
        around("(", "1", ")", 90),
        format!("SELECT {}", ["1"; 900].join(" + ")),
        format!("SELECT {}", ["1"; 900].join(" UNION ALL SELECT ")),
        format!("SELECT {}", ["$1::INTEGER = 1"; 300].join(" OR ")),
        format!("SELECT * FROM {}(SELECT 1 AS a){}", "(SELECT * FROM ".repeat(40), " AS s)".repeat(40) + " AS s"),
        around("(SELECT ", "1", ")", 12),
    ]
}

#[test]
fn what_nests_deep_is_described_and_run_on_small_stacks() {
    let mut database = tables();
    for (number, sql) in deep_texts().iter().enumerate() {
        let start = &sql[..40];
        assert!(database.session.prepare(sql).is_ok(), "{start}");
        database.session.description(sql, &[]).unwrap_or_else(|error| panic!("{start}: {error}"));
        let answer = ask(&mut database.session, sql, &[Value::Integer(1)]);
        assert!(!answer.starts_with("error"), "{start}: {answer}");
        assert_eq!(database.ask(&format!("PREPARE p{number} AS {sql}")), "PREPARE", "{start}");
        let execute = format!("EXECUTE p{number}{}", if sql.contains('$') { "(1)" } else { "" });
        assert_eq!(ask(&mut database.session, &execute, &[]), answer, "{start}");
        database.session.description(&execute, &[]).expect("describes");
        if !sql.contains('$') {
            assert_eq!(
                database.ask(&format!("CREATE VIEW v{number} AS SELECT * FROM ({sql}) AS q(c)")),
                "CREATE VIEW",
                "{start}"
            );
            assert_eq!(database.ask(&format!("SELECT * FROM v{number}")), answer, "{start}");
        }
    }
}

#[test]
fn rules_of_tables_that_are_long_are_kept_on_small_stacks() {
    let mut database = Database::new();
    let long = ["1"; 900].join(" + ");
    let case = format!("{}1{}", "CASE WHEN a > 0 THEN ".repeat(40), " END".repeat(40));
    let made = format!("CREATE TABLE t (a INTEGER, b INTEGER DEFAULT {long}, CHECK (a < {long}), CHECK ({case} = 1))");
    database.expect(&[
        (made.as_str(), "CREATE TABLE"),
        ("INSERT INTO t (a) VALUES (899)", "INSERT 1"),
        ("SELECT * FROM t", "899|900"),
        ("UPDATE t SET a = 1", "UPDATE 1"),
        ("ALTER TABLE t ADD CHECK (b > 0)", "ALTER TABLE"),
    ]);
    assert!(database.ask("INSERT INTO t (a) VALUES (900)").starts_with("error: "));
    assert!(database.ask("INSERT INTO t (a) VALUES (-1)").starts_with("INSERT"), "NULL is not false");
}

/// What the query library would write out to more than the machine has.
#[test]
fn what_would_grow_out_of_all_bounds_is_refused() {
    let mut database = tables();
    let around = |before: &str, after: &str, times: usize| {
        format!("SELECT {}id{} FROM t", before.repeat(times), after.repeat(times))
    };
    let deeper = format!("SELECT {}1{}", "(SELECT ".repeat(13), ")".repeat(13));
    assert_eq!(
        database.ask(&deeper),
        "error: not supported: subqueries nest more than 12 deep in expressions: write some as joins"
    );
    let refused = "error: not supported: BETWEEN, IN and coalesce nest too deep in an expression: name inner ones in a \
                   subquery in FROM";
    for (before, after) in [
        ("coalesce(", ", 1)"),
        ("((", " BETWEEN 0 AND 2)::INTEGER)"),
        ("((", " IN (1, 2, 3))::INTEGER)"),
        ("coalesce(abs(", "), 7)"),
    ] {
        assert_eq!(database.ask(&around(before, after, 40)), refused, "{before}");
        assert_eq!(database.ask(&around(before, after, 6)), "", "{before}");
    }
    let long = format!(
        "SELECT id FROM t WHERE id IN ({})",
        (0..70_000).map(|it| it.to_string()).collect::<Vec<_>>().join(",")
    );
    assert_eq!(database.ask(&long), "");
}
