//! What users of psql expect of common queries.

use crate::database::Database;

#[test]
fn numbers_are_postgresqls() {
    let mut database = Database::new();
    database.expect(&[
        ("SELECT 7 / 2, -7 / 2, 7 % 3, 7 / 2.0", "3|-3|1|3.5000000000000000"),
        ("SELECT 0.1 + 0.2, 1 / 3.0", "0.3|0.3333333333333333"),
        ("SELECT CAST(2.7 AS INTEGER), 2.5::int, 3.5::double precision::int, (-2.5)::int", "3|3|4|-3"),
        ("SELECT 9223372036854775807 + 1", "error: an integer is out of range"),
        ("SELECT 1 / 0", "error: division by zero"),
        ("SELECT round(2.567, 2), floor(2.7), ceil(2.1), abs(-3), power(2, 10)", "2.57|2|3|3|1024"),
        ("SELECT 1e3, 1.50, 2::numeric(5,2)", "1000|1.50|2.00"),
        ("SELECT count(*), sum(1), max(2) FROM (VALUES (1)) AS v", "1|1|2"),
    ]);
}

#[test]
fn texts_and_times_are_postgresqls() {
    let mut database = Database::new();
    database.expect(&[
        ("SELECT 'a' || 1 || NULL, 'a' || 'b'", "NULL|ab"),
        (
            "SELECT timestamp '2024-02-29 10:00:00'::text, true::text, 1.0::double precision::text",
            "2024-02-29 10:00:00|true|1",
        ),
        ("SELECT 'abcdef'::varchar(3), 'x'::char(3)", "abc|x"),
        ("SELECT 'a '::char(4) = 'a'::char(4), length('a  '::char(3)), 'a '::varchar(4) = 'a'", "true|1|false"),
        ("SELECT date '2024-03-01' - date '2024-02-01', date '2024-02-28' + 2", "29|2024-03-01"),
        ("SELECT timestamp '2024-01-31 00:00' + interval '1 month'", "2024-02-29 00:00:00"),
        (
            "SELECT extract(year FROM date '2024-02-29'), date_trunc('month', timestamp '2024-02-29 11:12:13')",
            "2024|2024-02-01 00:00:00",
        ),
        ("SELECT 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ("SELECT length(gen_random_uuid()::text)", "36"),
        ("SELECT '\\x6869'::bytea", "\\x6869"),
        ("SELECT now() = now(), current_date = now()::date", "true|true"),
        ("SELECT length(now()::text) <= length('2026-01-01 00:00:00.000000+00')", "true"),
        ("SELECT 'Hello' LIKE 'h%', 'Hello' ILIKE 'h%', 'Hello' ~ '^H'", "false|true|true"),
        ("SELECT coalesce(NULL, 'x'), nullif(1, 1), greatest(1, 3, 2)", "x|NULL|3"),
        ("SELECT string_agg(x, ',' ORDER BY x) FROM (VALUES ('b'), ('a')) AS v(x)", "a,b"),
        ("SELECT array_agg(x ORDER BY x) FROM (VALUES (2), (1)) AS v(x)", "{1,2}"),
    ]);
}

#[test]
fn nulls_sort_last_ascending_and_first_descending() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (2), (NULL), (1)");
    database.expect(&[
        ("SELECT a FROM t ORDER BY a", "1\n2\nNULL"),
        ("SELECT a FROM t ORDER BY a DESC", "NULL\n2\n1"),
        ("SELECT a FROM t ORDER BY a NULLS FIRST LIMIT 2", "NULL\n1"),
        ("SELECT a FROM t ORDER BY a FETCH FIRST 1 ROWS ONLY", "1"),
        ("SELECT a FROM t ORDER BY a OFFSET 2", "NULL"),
    ]);
}

#[test]
fn names_fold_and_quoted_names_do_not() {
    let mut database = Database::new();
    database.expect(&[
        ("CREATE TABLE \"Mixed\" (\"Case\" INTEGER, plain INTEGER)", "CREATE TABLE"),
        ("INSERT INTO \"Mixed\" (\"Case\", PLAIN) VALUES (1, 2)", "INSERT 1"),
        ("SELECT \"Case\", Plain FROM \"Mixed\"", "1|2"),
        ("SELECT * FROM Mixed", "error: table 'mixed' not found"),
        ("UPDATE \"Mixed\" SET \"Case\" = \"Case\" + 1 WHERE PLAIN = 2", "UPDATE 1"),
        ("SELECT public.\"Mixed\".\"Case\" FROM public.\"Mixed\"", "2"),
    ]);
}

#[test]
fn columns_are_named_as_they_are_written() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)");
    let mut names = |sql: &str| {
        let counterfoil_sql::Outcome::Rows(rows) = database.session.run_one(sql, &[]).unwrap() else { panic!("rows") };
        rows.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>().join("|")
    };
    assert_eq!(names("SELECT 1, 1, count(*), a + 1 AS b FROM t GROUP BY a"), "1|1|count(*)|b");
    assert_eq!(names("SELECT a, a, t.a FROM t"), "a|a|a");
    assert_eq!(names("SELECT x.a, y.a FROM t x, t y"), "a|a");
}

/// What stands behind it was taken for its right side: `a IS DISTINCT FROM (b OR c)`.
#[test]
fn is_distinct_from_ends_before_and_and_or() {
    let mut database = Database::after(
        "CREATE TABLE t (id INTEGER, a BOOLEAN, b BOOLEAN, c BOOLEAN); \
         INSERT INTO t VALUES (1, FALSE, FALSE, TRUE), (2, TRUE, FALSE, TRUE), (3, NULL, NULL, FALSE), (4, TRUE, FALSE, FALSE)",
    );
    database.expect(&[
        ("SELECT id FROM t WHERE a IS NOT DISTINCT FROM b OR c ORDER BY id", "1\n2\n3"),
        ("SELECT id FROM t WHERE c OR a IS NOT DISTINCT FROM b ORDER BY id", "1\n2\n3"),
        ("SELECT id FROM t WHERE a IS DISTINCT FROM b AND c ORDER BY id", "2"),
        ("SELECT id FROM t WHERE id IS DISTINCT FROM 1 + 1 AND id < 4 ORDER BY id", "1\n3"),
        ("SELECT id FROM t WHERE NOT a IS DISTINCT FROM b OR id = 2 ORDER BY id", "1\n2\n3"),
    ]);
}

#[test]
fn common_shapes_of_queries_run() {
    let mut database = Database::after(
        "CREATE TABLE t (g TEXT, n INTEGER); INSERT INTO t VALUES ('a', 1), ('a', 2), ('b', 3), ('c', NULL)",
    );
    database.expect(&[
        ("SELECT g, sum(n) FROM t GROUP BY g HAVING sum(n) > 2 ORDER BY g", "a|3\nb|3"),
        (
            "SELECT g, n, row_number() OVER (PARTITION BY g ORDER BY n) FROM t ORDER BY g, n",
            "a|1|1\na|2|2\nb|3|1\nc|NULL|1",
        ),
        ("WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 4) SELECT sum(i) FROM r", "10"),
        ("SELECT DISTINCT ON (g) g, n FROM t ORDER BY g, n DESC", "a|2\nb|3\nc|NULL"),
        ("SELECT g FROM t WHERE n > ALL (SELECT 1) ORDER BY g", "a\nb"),
        (
            "SELECT CASE WHEN n IS NULL THEN 'none' ELSE 'some' END, count(*) FROM t GROUP BY 1 ORDER BY 1",
            "none|1\nsome|3",
        ),
        ("SELECT (SELECT max(n) FROM t u WHERE u.g = t.g) FROM t ORDER BY 1", "2\n2\n3\nNULL"),
        ("SELECT g FROM t EXCEPT SELECT 'a' ORDER BY g", "b\nc"),
        ("SELECT x FROM generate_series(1, 3) AS s(x)", "1\n2\n3"),
        ("SELECT a.g FROM t a LEFT JOIN t b ON a.n = b.n + 1 WHERE b.n IS NULL ORDER BY a.g", "a\nc"),
        ("VALUES (1, 'x'), (2, 'y')", "1|x\n2|y"),
    ]);
}

/// A text that is no number is an error wherever it becomes one, and not NULL.
#[test]
fn texts_that_are_no_numbers_are_no_floating_point_numbers() {
    let mut database = Database::after("CREATE TABLE s (n TEXT); INSERT INTO s VALUES ('1.5'), ('12,5')");
    for wrong in ["SELECT 'abc'::FLOAT8", "SELECT ''::REAL", "SELECT n::FLOAT8 FROM s", "SELECT sum(n::REAL) FROM s"] {
        assert!(database.ask(wrong).starts_with("error: "), "{wrong}: {}", database.ask(wrong));
    }
    assert_eq!(database.ask("SELECT sum(n::FLOAT8) FROM s WHERE n < '12'"), "1.5");
}

/// Of the time between two instants, and of intervals, parts are those that PostgreSQL has.
#[test]
fn parts_of_spans_are_those_of_days_and_what_is_left() {
    let mut database = Database::new();
    let span = "(TIMESTAMP '2024-03-02 13:11:40.5' - TIMESTAMP '2024-02-29 12:00:05')";
    let parts = format!(
        "SELECT extract(day FROM {span}), extract(hour FROM {span}), extract(minute FROM {span}), extract(second FROM {span}),
                extract(milliseconds FROM {span}), date_part('epoch', {span}), date_part('epoch', INTERVAL '1 year')"
    );
    assert_eq!(database.ask(&parts), "2|1|11|35.500000|35500.000|177095.5|31557600");
}
