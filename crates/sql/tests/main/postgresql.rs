//! What people bring with them from PostgreSQL, as tables of statements and what they answer.

use crate::database::Database;

#[test]
fn literals_become_what_they_are_compared_with() {
    let mut database = Database::after(
        "CREATE TABLE t (y BYTEA, b BOOLEAN, d DOUBLE PRECISION, r REAL, h DATE);
         INSERT INTO t VALUES ('\\x01', 't', 0.1, 0.5, '2024-01-01'), ('\\xff', 'f', 1e300, 2, '2024-01-02')",
    );
    database.expect(&[
        ("SELECT y FROM t WHERE y = '\\x01'", "\\x01"),
        ("SELECT y FROM t WHERE '\\x01' <> y", "\\xff"),
        ("SELECT y FROM t WHERE y IN ('\\x01', '\\x02')", "\\x01"),
        ("SELECT y FROM t WHERE y BETWEEN '\\x02' AND '\\xff'", "\\xff"),
        ("SELECT y FROM t WHERE y NOT BETWEEN '\\x02' AND '\\xff'", "\\x01"),
        ("SELECT y FROM t WHERE y = 'x\\'", "error: a text is not a valid bytea"),
        ("SELECT y FROM t WHERE b = 't'", "\\x01"),
        ("SELECT y FROM t WHERE b = 'maybe'", "error: a text is not a valid boolean"),
        ("SELECT y FROM t WHERE d = 0.1", "\\x01"),
        ("SELECT y FROM t WHERE d IN (0.1, 5.5)", "\\x01"),
        ("SELECT y FROM t WHERE d BETWEEN 0.05 AND 0.2", "\\x01"),
        ("SELECT y FROM t WHERE r > 0.5", "\\xff"),
        ("SELECT y FROM t WHERE h > 5", "error: there is no date > bigint: cast one side"),
        ("SELECT '5' + 1, 2 * '3'", "6|6"),
        ("UPDATE t SET y = '\\x02' WHERE y = '\\x01'", "UPDATE 1"),
        ("DELETE FROM t WHERE y = '\\x02'", "DELETE 1"),
    ]);
}

#[test]
fn in_is_unknown_where_null_makes_it_so() {
    let mut database = Database::after(
        "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2), (NULL);
         CREATE TABLE u (b INTEGER, c INTEGER); INSERT INTO u VALUES (1, 1), (NULL, 2)",
    );
    database.expect(&[
        (
            "SELECT a, a IN (SELECT b FROM u), a NOT IN (SELECT b FROM u) FROM t ORDER BY a",
            "1|true|false\n2|NULL|NULL\nNULL|NULL|NULL",
        ),
        ("SELECT a FROM t WHERE a NOT IN (SELECT b FROM u) OR a = 2", "2"),
        ("SELECT a FROM t WHERE NOT (a IN (SELECT b FROM u) OR a > 5)", ""),
        ("SELECT a FROM t WHERE (a IN (SELECT b FROM u WHERE c = 1)) IS NOT TRUE ORDER BY a", "2\nNULL"),
        ("SELECT a FROM t WHERE a NOT IN (SELECT b FROM u WHERE c = a) ORDER BY a", "NULL"),
        ("SELECT a, a NOT IN (SELECT b FROM u WHERE false) FROM t ORDER BY a", "1|true\n2|true\nNULL|true"),
        ("DELETE FROM t WHERE a NOT IN (SELECT b FROM u) OR a IN (SELECT c FROM u WHERE b IS NULL)", "DELETE 1"),
    ]);
}

#[test]
fn what_differs_in_its_casts_only_is_not_the_same() {
    let mut database =
        Database::after("CREATE TABLE t (x INTEGER, n NUMERIC(4,2)); INSERT INTO t VALUES (1, 0.25), (2, 0.5)");
    database.expect(&[
        ("SELECT avg(x), avg(x::REAL), avg(n), avg(n::INTEGER) FROM t", "1.5|1.5|0.3750000000000000|0.5"),
        ("SELECT sum(n::INTEGER), sum(n) FROM t HAVING sum(n) > 0.7 ORDER BY sum(n)", "1|0.75"),
        ("SELECT x::BIGINT, count(x), count(x::BIGINT) FROM t GROUP BY x::BIGINT ORDER BY 1", "1|1|1\n2|1|1"),
    ]);
}

#[test]
fn numbers_and_times_as_they_are_written() {
    Database::new().expect(&[
        ("SELECT 0x1F + 1, 1_000, X'1F'", "32|1000|\\x1f"),
        ("SELECT 0xFFFFFFFFFFFFFFFF", "error: an integer is out of range"),
        ("SELECT generate_series(1, 3)", "1\n2\n3"),
        ("SELECT localtimestamp = now()::TIMESTAMP, localtime = localtimestamp::TIME", "true|true"),
        ("SELECT now()::TIMESTAMP(3)", "error: not supported: TIMESTAMP(3): TIMESTAMP keeps 6 or 9 digits of a second"),
        ("CREATE TABLE t (a TIME(0))", "error: not supported: TIME(0): TIME keeps 6 digits of a second"),
    ]);
}

#[test]
fn rows_compare_part_by_part() {
    Database::new().expect(&[
        ("SELECT (1, NULL) = (1, 2), (1, 2) = (1, 2), (1, 2) <> (1, 3)", "NULL|true|true"),
        ("SELECT (1, 2) < (1, 3), (2, 1) < (1, 9), (1, 2) >= (1, 2)", "true|false|true"),
        ("SELECT (1, 2) IN ((1, 2), (3, 4)), (1, 2) NOT IN ((1, 3))", "true|true"),
    ]);
}

#[test]
fn times_are_postgresqls() {
    Database::new().expect(&[
        ("SELECT timestamp '2024-01-03 03:04:05' - timestamp '2024-01-01'", "2 days 03:04:05"),
        ("SELECT interval '1 year 2 months 3 days 04:05:06'", "1 year 2 mons 3 days 04:05:06"),
        ("SELECT interval '-1-2', '04:05'::interval", "-1 year -2 mons|04:05:00"),
        (
            "SELECT extract(second FROM timestamp '2024-01-01 00:00:01.5'), date_part('second', time '00:00:02')",
            "1.500000|2",
        ),
        (
            "SELECT extract(month FROM date '2024-03-01') / 2, date_part('month', date '2024-03-01') / 2",
            "1.5000000000000000|1.5",
        ),
        (
            "SELECT extract(epoch FROM date '2024-01-01'), extract(epoch FROM timestamp '2024-01-01')",
            "1704067200|1704067200.000000",
        ),
        (
            "SELECT extract(epoch FROM interval '14 mon 3 days 1.5 s'), extract(millisecond FROM time '00:00:01.5')",
            "37000801.500000|1500.000",
        ),
        (
            "SELECT extract(microseconds FROM time '00:00:01.5'), date_part('milliseconds', time '00:00:01.5')",
            "1500000|1500",
        ),
        (
            "SELECT date_part('epoch', timestamp '2024-01-01 00:00:00.5'), pg_typeof(extract(dow FROM now()))",
            "1704067200.5|numeric(10,0)",
        ),
        ("SELECT timestamp '2024-12-31 23:59:59.9999999', time '23:59:59.9999999'", "2025-01-01 00:00:00|24:00:00"),
        (
            "SELECT timestamptz '2024-01-01 00:00:00.0000015+00', timestamp '2024-01-01 00:00:00.0000025'",
            "2024-01-01 00:00:00.000002+00|2024-01-01 00:00:00.000002",
        ),
        (
            "SELECT timestamp(9) '2024-01-01 00:00:00.0000019'::timestamp, timestamp(9) '2024-01-01 00:00:00.0000019'",
            "2024-01-01 00:00:00.000002|2024-01-01 00:00:00.0000019",
        ),
        ("SELECT timestamptz '2024-01-01 00:00:00+02' AT TIME ZONE 'Europe/Berlin'", "2023-12-31 23:00:00"),
        ("SELECT timestamp '2024-07-01 00:00:00' AT TIME ZONE 'Europe/Berlin'", "2024-06-30 22:00:00+00"),
        ("SELECT timestamp '2024-01-01' AT TIME ZONE 'Nowhere/Land'", "error: there is no such time zone"),
        ("SELECT NULL::timestamp AT TIME ZONE 'UTC' IS NULL", "true"),
        ("SELECT to_date('2024-01-02', 'YYYY-MM-DD')", "2024-01-02"),
        ("SELECT to_timestamp('2024-01-02 03:04:05', 'YYYY-MM-DD HH24:MI:SS')", "2024-01-02 03:04:05+00"),
        ("SELECT transaction_timestamp() = now()", "true"),
    ]);
}

#[test]
fn numbers_and_texts_are_postgresqls() {
    Database::new().expect(&[
        ("SELECT '1e-5'::numeric, ' -2.5E+3 '::numeric(6, 1), '1e3'::numeric(4)", "0.00001|-2500.0|1000"),
        ("SELECT ('{1e-5, 2.5}'::numeric[])[1], 0.00001 = ANY('{NULL, 1e-5}'::numeric[])", "0.00001|true"),
        (
            "SELECT nullif(u, 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11') IS NULL, \
             greatest(u, '{FFFFFFFF-9c0b-4ef8-bb6d-6bb9bd380a11}'), least(u, 'B0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11') = u \
             FROM (SELECT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS u) AS t",
            "true|ffffffff-9c0b-4ef8-bb6d-6bb9bd380a11|true",
        ),
        (
            "SELECT x::numeric(5, 2), x::numeric FROM (VALUES ('1.005'), ('-1e-2')) AS v(x)",
            "1.01|1.0050000000\n-0.01|-0.0100000000",
        ),
        ("SELECT '1e3'::numeric(3)", "error: a number is out of range (numeric(3,0))"),
        ("SELECT x::numeric(3) FROM (VALUES ('1e'), ('')) AS v(x)", "error: a text is not a valid numeric"),
        ("SELECT '1.5'::numeric, 100::numeric, 1e308 * 10 > 1", "1.5|100|true"),
        ("SELECT 1::double precision / 0", "error: division by zero"),
        (
            "SELECT 2::numeric / 3, -2 / 3.0, 0.5::numeric(38,20) / 3",
            "0.6666666666666667|-0.6666666666666667|0.166666666666666666666667",
        ),
        ("SELECT 1::numeric / 0", "error: division by zero"),
        (
            "SELECT x::numeric, y::numeric, z::numeric FROM (VALUES (1.25, 7, 0.5::float8)) AS t(x, y, z)",
            "1.25|7|0.5000000000",
        ),
        ("SELECT chr(65), chr(8364), chr(NULL)", "A|€|NULL"),
        ("SELECT chr(0)", "error: a text has a zero byte in it, which none may have"),
        ("SELECT U&'a\\0000b'", "error: a text has a zero byte in it, which none may have"),
        ("SELECT 1::double precision / 4, NULL::real / 0", "0.25|NULL"),
        ("SELECT floor(-1.5), ceiling(1.2), trunc(2.7), sign(-5)", "-2|2|2|-1"),
        ("SELECT variance(x) FROM (VALUES (1), (2), (3)) AS v(x)", "1"),
        (
            "SELECT length('\\xdead'::bytea), length('ünï'), octet_length('ünï'), octet_length('\\x01'::bytea)",
            "2|3|5|1",
        ),
        ("SELECT encode('hi'::bytea, 'base64'), decode('aGk=', 'base64')", "aGk=|\\x6869"),
        ("SELECT 'a_c' LIKE 'a#_c' ESCAPE '#', 'abc' LIKE 'a#_c' ESCAPE '#'", "true|false"),
        ("SELECT 'abc' SIMILAR TO 'a(b|c)_', 'abc' SIMILAR TO 'a', 'a.c' NOT SIMILAR TO 'a.%'", "true|false|false"),
        ("SELECT U&'\\0061', 'a' || U&'b'", "a|ab"),
    ]);
}

#[test]
fn statements_are_written_as_for_postgresql() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2)");
    database.expect(&[
        ("VACUUM ANALYZE t; VACUUM (FULL, ANALYZE) t; VACUUM VERBOSE", "VACUUM\nVACUUM\nVACUUM"),
        ("CREATE TABLE w (x, y) AS SELECT a, a * 2 FROM t; SELECT x, y FROM w ORDER BY x", "SELECT 2\n1|2\n2|4"),
        ("CREATE TABLE one AS SELECT sum(a) AS n, max(a) AS most FROM t; SELECT n, most FROM one", "SELECT 1\n3|2"),
        ("TABLE t", "1\n2"),
        ("SELECT a FROM t WHERE a IN (VALUES (1), (3)) OR a NOT IN (VALUES (2), (1))", "1"),
        ("SELECT a FROM t ORDER BY a FETCH FIRST (1) ROWS ONLY", "1"),
        ("SELECT a FROM t ORDER BY a OFFSET 1 ROWS FETCH NEXT (1 + 1) ROWS ONLY", "2"),
        ("BEGIN; INSERT INTO t VALUES (3); ABORT; SELECT count(*) FROM t", "BEGIN\nINSERT 1\nROLLBACK\n2"),
        (
            "CREATE TABLE i (id INTEGER GENERATED BY DEFAULT AS IDENTITY (START WITH 10 INCREMENT BY 5), b INTEGER)",
            "CREATE TABLE",
        ),
        ("INSERT INTO i (b) VALUES (1), (2) RETURNING id", "10\n15"),
    ]);
}

#[test]
fn what_only_postgresql_has_is_not_supported() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER)");
    for (sql, expected) in [
        ("SELECT age(now(), now())", "function age"),
        ("SELECT 1::money", "type money"),
        ("SELECT a::text::int[] FROM t", "casts to arrays"),
        ("SELECT @ -5", "operator @"),
        ("SELECT extract(century FROM date '2024-01-01')", "the part century of a date"),
        ("SELECT * FROM t TABLESAMPLE BERNOULLI (10)", "TABLESAMPLE"),
        (
            "WITH x AS (INSERT INTO t VALUES (1) RETURNING a) SELECT * FROM x",
            "INSERT, UPDATE and DELETE inside a query",
        ),
        ("CREATE TABLE x (a INTEGER DEFAULT (SELECT 1))", "a subquery in this place"),
        ("CREATE TABLE x AS SELECT interval '1 day' AS b", "a column of type interval"),
        ("CREATE TABLE x AS SELECT 1 AS b WITH NO DATA", "CREATE TABLE ... AS ... WITH NO DATA"),
        ("CREATE TABLE x (b) AS SELECT 1 WITH NO DATA", "CREATE TABLE ... AS ... WITH NO DATA"),
        ("CLUSTER t", "CLUSTER"),
        ("MOVE 5 FROM c", "MOVE"),
        ("SELECT * FROM t WITH ORDINALITY", "WITH ORDINALITY"),
        ("SELECT * FROM unnest(ARRAY[1], ARRAY[2]) WITH ORDINALITY", "WITH ORDINALITY"),
        ("EXPLAIN (ANALYZE, FORMAT JSON) SELECT 1", "EXPLAIN (FORMAT JSON)"),
        ("INSERT INTO t (a) OVERRIDING SYSTEM VALUE VALUES (1)", "INSERT ... OVERRIDING SYSTEM VALUE"),
        ("CREATE TABLE c (a INTEGER REFERENCES t (a) ON DELETE SET NULL (a))", "ON DELETE SET NULL with columns"),
        ("DO $$ BEGIN END $$", "DO"),
        ("CREATE UNLOGGED TABLE x (a INTEGER)", "CREATE UNLOGGED"),
    ] {
        assert_eq!(database.ask(sql), format!("error: not supported: {expected}"), "{sql}");
    }
}

#[test]
fn mistakes_are_told_in_the_words_of_sql() {
    let mut database =
        Database::after("CREATE TABLE t (a INTEGER, b TEXT, d DOUBLE PRECISION); INSERT INTO t VALUES (1, 'x', 'NaN')");
    for (sql, expected) in [
        ("SELEC 1", "expected an SQL statement, found SELEC (line 1, column 1)"),
        ("SELECT 40000::smallint", "a number is out of the range of its type"),
        ("SELECT 999.99::numeric(4, 1)", "a number is out of the range of its type"),
        ("SELECT abs(-9223372036854775808)", "a number is out of the range of its type"),
        ("SELECT 'maybe'::boolean", "a text is not a valid boolean"),
        ("SELECT make_date(2024, 2, 30)", "there is no such date"),
        ("SELECT sum(b) FROM t", "function sum does not take these arguments"),
        ("SELECT upper(1)", "function upper does not take these arguments"),
        ("SELECT to_char(1234.5, '9999.99')", "function to_char does not take these arguments"),
        ("SELECT a + b FROM t", "there is no integer + text: cast one side"),
        ("SELECT 1 || 2", "there is no bigint || bigint: cast one side"),
        ("SELECT a, count(*) FROM t", "column t.a must appear in GROUP BY, or in an aggregate function"),
        ("SELECT a FROM t WHERE 1", "WHERE, HAVING and ON take conditions, not other values"),
        ("SELECT (SELECT 1, 2)", "a subquery in an expression must have one column"),
        ("SELECT * FROM information_schema.nosuch", "table 'information_schema.nosuch' not found"),
    ] {
        assert_eq!(database.ask(sql), format!("error: {expected}"), "{sql}");
    }
}

/// Nothing that the query library says of itself reaches anybody.
#[test]
fn no_message_speaks_of_the_library() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER, b TEXT, z TIMESTAMPTZ, y BYTEA)");
    for sql in [
        "SELECT substring('hello' FROM '^h.')",
        "SELECT substring(y FROM 2) FROM t",
        "SELECT round('a')",
        "SELECT avg(b) FROM t",
        "SELECT coalesce()",
        "SELECT 1 LIKE '1'",
        "SELECT 1 AND true",
        "SELECT NOT 1",
        "SELECT a FROM t LIMIT 'x'",
        "SELECT a FROM t HAVING true",
        "SELECT v.x, l.z FROM (VALUES (1)) AS v(x), LATERAL (SELECT x * 2) AS l(z)",
        "SELECT y + 1 FROM t",
        "SELECT z + 1 FROM t",
        "SELECT '2300-01-01'::timestamp(9)",
        "SELECT b::date + y FROM t",
        "SELECT a FROM t UNION SELECT 1, 2",
        "SELECT x.x.x FROM t",
    ] {
        let answer = database.ask(sql);
        assert!(answer.starts_with("error: "), "{sql}: {answer}");
        for word in [
            "Int64",
            "Int32",
            "Utf8",
            "Binary",
            "Decimal128",
            "internal",
            "Error",
            "error during",
            "signature",
            "DataFusion",
        ] {
            assert!(!answer.contains(word), "{sql}: {answer}");
        }
    }
}

#[test]
fn a_short_list_of_keys_is_looked_up_in_the_index() {
    let mut database = Database::after(
        "CREATE TABLE t (a BIGINT PRIMARY KEY, b TEXT); INSERT INTO t SELECT v, 'x' FROM generate_series(1, 5000) AS s(v)",
    );
    for condition in
        ["a IN (7, 8)", "a IN (7, 8, 8, NULL)", "a = 7 OR a = 8 OR a = 7", "a IN (1, 2, 3, 4, 7, 8) AND a > 5"]
    {
        let plan = database.ask(&format!("EXPLAIN SELECT a FROM t WHERE {condition}"));
        assert!(plan.contains("Index: t_pkey"), "{condition}: {plan}");
        assert_eq!(database.ask(&format!("SELECT a FROM t WHERE {condition} ORDER BY a")), "7\n8", "{condition}");
    }
}

#[test]
fn rows_of_functions_have_numbers_where_they_are_asked_for() {
    Database::new().expect(&[
        ("SELECT * FROM unnest(ARRAY['a', 'b', NULL]) WITH ORDINALITY", "a|1\nb|2\nNULL|3"),
        ("SELECT unnest, ordinality FROM unnest(ARRAY[7]) WITH ORDINALITY", "7|1"),
        ("SELECT u.u, u.ordinality FROM unnest(ARRAY[7, 8]) WITH ORDINALITY u ORDER BY 2 DESC", "8|2\n7|1"),
        ("SELECT v, n FROM unnest(ARRAY[7, 8]) WITH ORDINALITY AS u(v, n) WHERE n = 2", "8|2"),
        ("SELECT x, ordinality FROM generate_series(5, 6) WITH ORDINALITY AS g(x)", "5|1\n6|2"),
        ("SELECT max(n), max(x), pg_typeof(max(n)) FROM generate_series(1, 100000) WITH ORDINALITY AS g(x, n) WHERE x = n", "100000|100000|bigint"),
    ]);
}
