//! What PostgreSQL 15 answers where the query library answers otherwise without a word, each seen there.

use crate::database::Database;

/// With much memory and with little.
fn expect(before: &str, questions: &[(&str, &str)]) {
    for ram in ["64MB", "64K"] {
        let mut database = if before.is_empty() { Database::new() } else { Database::after(before) };
        database.expect(&[(&format!("SET ram = '{ram}'"), "SET")]);
        database.expect(questions);
    }
}

#[test]
fn numbers_with_an_exponent_are_exact() {
    expect(
        "CREATE TABLE t (d DOUBLE PRECISION, v INTEGER); CREATE INDEX ON t (d); INSERT INTO t VALUES (100000, 1), (1e15, 2), (6.02e23, 3)",
        &[
            ("SELECT v FROM t WHERE d = 1e5", "1"),
            ("SELECT v FROM t WHERE d > 1e5 AND d < 6.02E+23", "2"),
            ("SELECT v FROM t WHERE d IN (1e15, 6.02e23) ORDER BY v", "2\n3"),
            ("SELECT d / 1e5 FROM t WHERE v = 1", "1"),
            ("SELECT v * 1e3, v + 1e3, v * 1e-3 FROM t WHERE v = 2", "2000|1002|0.002"),
            ("SELECT 1e5, 1.5e-3, 12.5e1, .5e1, 1e38", "100000|0.0015|125|5|1e+38"),
            // Exponents that no number of a machine holds, and one that a sum of digits would not.
            ("SELECT 1e-9223372036854775808, 1e-2147483648, 1e-99999999999999999999", "0|0|0"),
            ("SELECT 1e400", "error: a number is out of range (double precision)"),
        ],
    );
}

#[test]
fn what_no_floating_point_number_comes_near_is_out_of_range() {
    let out_of_range = "error: a number is out of range (double precision)";
    expect(
        "CREATE TABLE t (d DOUBLE PRECISION, r REAL, n TEXT); INSERT INTO t VALUES (1e300, 1, '1e309')",
        &[
            ("SELECT '1e309'::float8", out_of_range),
            ("SELECT 1e309::float8", out_of_range),
            ("SELECT '1e-400'::float8", out_of_range),
            ("SELECT n::float8 FROM t", out_of_range),
            ("SELECT '1e39'::real", "error: a number is out of range (real)"),
            ("SELECT d::real FROM t", "error: a number is out of range (real)"),
            ("SELECT 'inf'::float8, '-Infinity'::real, ' 1.5 '::float8, '0e999'::float8", "Infinity|-Infinity|1.5|0"),
            ("SELECT r FROM t WHERE d = '1e300'", "1"),
            ("INSERT INTO t (d) VALUES (1e309)", out_of_range),
            ("INSERT INTO t (d) VALUES ('1e309')", "error: a value is out of range (column d, double precision)"),
            ("INSERT INTO t (r) VALUES ('1e39')", "error: a value is out of range (column r, real)"),
            ("INSERT INTO t (r) VALUES (1e39)", "error: a floating-point number is out of range (column r, real)"),
        ],
    );
}

#[test]
fn functions_in_from_name_their_columns() {
    expect(
        "",
        &[
            ("SELECT generate_series FROM generate_series(5, 6)", "5\n6"),
            ("SELECT g FROM generate_series(5, 6) g", "5\n6"),
            ("SELECT unnest FROM unnest(ARRAY[7])", "7"),
            ("SELECT value FROM generate_series(5, 6)", "error: no column value (there are generate_series)"),
        ],
    );
}

#[test]
fn a_name_of_several_lines_is_told_whole() {
    expect("", &[("SELECT * FROM \"a\nb\"", "error: table 'a\nb' not found")]);
}

#[test]
fn signs_and_comments_behind_operators_are_their_own() {
    expect(
        "CREATE TABLE t (a INTEGER, b INTEGER); INSERT INTO t VALUES (-3, 3), (4, -4)",
        &[
            ("SELECT 1 WHERE 3>-1 AND 3>/*c*/2 AND 3>=--c\n2", "1"),
            ("SELECT a FROM t WHERE a>=-3 AND a<>-3", "4"),
            ("SELECT a FROM t WHERE a<-b OR a>+3", "4"),
            ("SELECT a FROM t WHERE a=-b ORDER BY a", "-3\n4"),
            ("SELECT 1 WHERE 1 <-> 2", "error: not supported: operator <->"),
        ],
    );
}

#[test]
fn intervals_compare_by_how_long_they_are() {
    expect(
        "",
        &[
            ("SELECT timestamp '2024-03-01' - timestamp '2024-01-01' > interval '30 days'", "true"),
            ("SELECT interval '1 day' = interval '24 hours', interval '1 month' = interval '30 days'", "true|true"),
            ("SELECT interval '25 hours' > interval '1 day', interval '1 month' < interval '29 days'", "true|false"),
            ("SELECT interval '2 days' BETWEEN interval '47 hours' AND interval '49 hours'", "true"),
            (
                "SELECT interval '1 month' IN (interval '30 days'), interval '1 day' NOT IN (interval '24 hours')",
                "true|false",
            ),
            ("SELECT interval '1 day' IS DISTINCT FROM interval '24 hours', NULL > interval '1 day'", "false|NULL"),
            ("SELECT timestamp '2024-01-10' + (-interval '1 day 2 hours')", "2024-01-08 22:00:00"),
            ("SELECT '30'::interval = interval '30 seconds', '12.6'::interval < interval '13 seconds'", "true|true"),
        ],
    );
}

#[test]
fn a_date_and_an_interval_are_a_time() {
    expect(
        "CREATE TABLE t (dt DATE); INSERT INTO t VALUES ('2024-01-31')",
        &[
            (
                "SELECT date '2024-01-01' + interval '36 hours', interval '1 day' + dt FROM t",
                "2024-01-02 12:00:00|2024-02-01 00:00:00",
            ),
            (
                "SELECT dt - interval '1 hour', dt + interval '1 month' FROM t",
                "2024-01-30 23:00:00|2024-02-29 00:00:00",
            ),
            ("SELECT count(*) FROM t WHERE timestamp '2024-01-31 11:00' < dt + interval '12 hours'", "1"),
            (
                "SELECT * FROM generate_series(date '2024-01-01', date '2024-01-01' + interval '2 days', interval '1 day')",
                "2024-01-01 00:00:00\n2024-01-02 00:00:00\n2024-01-03 00:00:00",
            ),
            (
                "SELECT dt >= date '2024-01-31' + interval '1 hour', dt > date '2024-01-31' - interval '1 hour' FROM t",
                "false|true",
            ),
            (
                "SELECT dt < date '2024-01-31' + interval '1 hour', dt <= date '2024-01-31' - interval '1 hour' FROM t",
                "true|false",
            ),
            (
                "SELECT dt BETWEEN date '2024-01-30' + interval '1 hour' AND date '2024-01-30' + interval '1 day' FROM t",
                "true",
            ),
            (
                "SELECT date '2024-01-30' + interval '1 day' <= dt, dt = date '2024-01-30' + interval '1 day' FROM t",
                "true|true",
            ),
            ("SELECT dt + 2, dt - 1, dt - date '2024-01-01' FROM t", "2024-02-02|2024-01-30|30"),
        ],
    );
}

#[test]
fn what_is_put_together_with_texts_is_as_a_cast_shows_it() {
    expect(
        "CREATE TABLE t (d DOUBLE PRECISION, b BOOLEAN, z TIMESTAMP, a DATE, n NUMERIC(5, 2)); INSERT INTO t VALUES (1, true, '2024-01-01 10:00', '2024-02-29', 1.5)",
        &[
            (
                "SELECT 'x' || z, z || 'x', 'x' || d || b || a || n FROM t",
                "x2024-01-01 10:00:00|2024-01-01 10:00:00x|x1true2024-02-291.50",
            ),
            ("SELECT concat('x', b, d, z, NULL, 7), concat_ws('-', d, 'y', b) FROM t", "xt12024-01-01 10:00:007|1-y-t"),
            (
                "SELECT array[date '2024-01-01'] || date '2024-01-02', array[true] || false",
                "{2024-01-01,2024-01-02}|{true,false}",
            ),
            ("SELECT 'x' || NULL || d, 'a' || interval '1 day 2 hours' FROM t", "NULL|a1 day 02:00:00"),
        ],
    );
}

#[test]
fn a_case_asks_nothing_behind_its_guard() {
    expect(
        "CREATE TABLE t (id INTEGER, v INTEGER, s TEXT); INSERT INTO t VALUES (1, 0, 'x'), (2, 5, '7'), (3, NULL, NULL)",
        &[
            ("SELECT id FROM t WHERE CASE WHEN v = 0 THEN false ELSE 10 / v > 1 END", "2"),
            ("SELECT id FROM t WHERE CASE WHEN s = 'x' THEN true WHEN s::int > 5 THEN false END", "1"),
            ("SELECT id FROM t WHERE NOT CASE WHEN v = 0 THEN false ELSE 10 / v > 1 END", "1"),
            ("SELECT id, CASE WHEN v = 0 THEN NULL ELSE 10 % v = 0 END FROM t ORDER BY id", "1|NULL\n2|true\n3|NULL"),
        ],
    );
}

#[test]
fn times_are_written_by_patterns_or_not_at_all() {
    let unknown = "error: not supported: to_char, to_date or to_timestamp with parts other than YYYY, YY, MM, Mon, Month, DD, DDD, Dy, Day, HH24, HH12, MI, SS, MS, US, AM, IYYY, IW, TZ";
    expect(
        "",
        &[
            (
                "SELECT to_char(timestamp '2024-03-05 14:05', 'yyyy-mm-dd hh24:mi'), to_char(timestamp '2024-03-05 14:05', 'HH12:MI pm')",
                "2024-03-05 14:05|02:05 pm",
            ),
            ("SELECT to_char(timestamp '2024-03-05 14:05', 'FMDD FMMonth')", unknown),
            ("SELECT to_char(timestamp '2024-03-05 14:05', 'Q')", unknown),
            ("SELECT to_timestamp('05.03.2024 07', 'DD.MM.YYYY SSSS')", unknown),
        ],
    );
}

#[test]
fn windows_go_on_from_what_they_name() {
    expect(
        "CREATE TABLE t (g INTEGER, v INTEGER); INSERT INTO t VALUES (1, 1), (1, 2), (2, 5)",
        &[
            (
                "SELECT g, v, sum(v) OVER (w ORDER BY v), sum(v) OVER (w), sum(v) OVER w, count(*) OVER w2 FROM t \
                 WINDOW w AS (PARTITION BY g), w2 AS (w ORDER BY v) ORDER BY g, v",
                "1|1|1|3|3|1\n1|2|3|3|3|2\n2|5|5|5|5|1",
            ),
            (
                "SELECT v, (SELECT max(s) FROM (SELECT sum(v) OVER (w) AS s FROM t u WINDOW w AS (PARTITION BY v)) q) FROM t \
                 WINDOW w AS (ORDER BY g) ORDER BY v",
                "1|5\n2|5\n5|5",
            ),
        ],
    );
}

#[test]
fn using_makes_one_column_of_two() {
    expect(
        "CREATE TABLE a (k INTEGER, x TEXT); CREATE TABLE b (y TEXT, k INTEGER); CREATE TABLE c (k INTEGER, z INTEGER);
         INSERT INTO a VALUES (1, 'a1'), (3, 'a3'); INSERT INTO b VALUES ('b2', 2), ('b3', 3); INSERT INTO c VALUES (2, 7), (4, 8)",
        &[
            ("SELECT k, x, y FROM a FULL JOIN b USING (k) ORDER BY k", "1|a1|NULL\n2|NULL|b2\n3|a3|b3"),
            ("SELECT k FROM a RIGHT JOIN b USING (k) ORDER BY k", "2\n3"),
            ("SELECT * FROM a JOIN b USING (k)", "3|a3|b3"),
            ("SELECT * FROM a FULL JOIN b USING (k) FULL JOIN c USING (k) ORDER BY k", "1|a1|NULL|NULL\n2|NULL|b2|7\n3|a3|b3|NULL\n4|NULL|NULL|8"),
            ("SELECT a.k, b.k, k FROM a LEFT JOIN b USING (k) WHERE k < 3", "1|NULL|1"),
            ("SELECT a.*, y FROM a JOIN b USING (k) WHERE k = 3", "3|a3|b3"),
            ("SELECT max(k), count(*) FROM a FULL JOIN b USING (k) WHERE k > 1", "3|2"),
            ("SELECT k, count(*) FROM a FULL JOIN b USING (k) GROUP BY k HAVING k <> 2 ORDER BY k", "1|1\n3|1"),
            ("SELECT k FROM a JOIN b USING (k) WHERE EXISTS (SELECT 1 FROM c WHERE k = 4)", "3"),
            ("SELECT x FROM a LEFT JOIN b USING (k) ORDER BY k DESC", "a3\na1"),
            ("SELECT max(x) FROM a LEFT JOIN b USING (k) GROUP BY k ORDER BY -k", "a3\na1"),
            ("SELECT x, row_number() OVER w FROM a LEFT JOIN b USING (k) WINDOW w AS (ORDER BY k DESC) ORDER BY 1", "a1|2\na3|1"),
            ("SELECT * FROM public.a JOIN public.b USING (k)", "3|a3|b3"),
            ("CREATE VIEW v AS SELECT * FROM a FULL JOIN b USING (k)", "CREATE VIEW"),
            ("SELECT k, x, y FROM v WHERE k = 2", "2|NULL|b2"),
        ],
    );
}

#[test]
fn frames_that_move_forget_what_leaves_them() {
    expect(
        "CREATE TABLE t (i INTEGER, x DOUBLE PRECISION); INSERT INTO t VALUES (1, 1e20), (2, 1), (3, 1), (4, 'NaN'), (5, 2), (6, NULL), (7, 4)",
        &[
            (
                "SELECT i, sum(x) OVER (ORDER BY i ROWS 1 PRECEDING) FROM t ORDER BY i",
                "1|1e+20\n2|1e+20\n3|2\n4|NaN\n5|NaN\n6|2\n7|4",
            ),
            (
                "SELECT i, avg(x) OVER (ORDER BY i ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM t WHERE i <> 4 ORDER BY i",
                "1|1\n2|1.5\n3|2\n5|4\n6|4\n7|NULL",
            ),
        ],
    );
}

#[test]
fn results_of_doubles_and_numerics_are_doubles() {
    expect(
        "CREATE TABLE t (d DOUBLE PRECISION); INSERT INTO t VALUES ('1e-20'), ('NaN'), (NULL)",
        &[
            (
                "SELECT coalesce(d, 0.5), greatest(d, 0.25) FROM t WHERE d IS NULL OR d < 1 ORDER BY 1",
                "1e-20|0.25\n0.5|0.25",
            ),
            ("SELECT CASE WHEN d > 1 THEN d ELSE 0.5 END FROM t WHERE d IS NOT NULL ORDER BY 1", "0.5\nNaN"),
            ("SELECT d FROM t WHERE d < 1 UNION ALL SELECT 0.5 ORDER BY 1", "1e-20\n0.5"),
            ("SELECT nullif(d, 0.5) FROM t WHERE d < 1", "1e-20"),
        ],
    );
}

#[test]
fn numbers_round_and_turn_as_they_do_there() {
    expect(
        "CREATE TABLE t (a BIGINT, s SMALLINT, n NUMERIC(3, 2)); INSERT INTO t VALUES (-9223372036854775808, 5, 9.99)",
        &[
            ("SELECT round(2.5::double precision), round(2.5), round(-1.5::double precision)", "2|3|-2"),
            ("SELECT ceil(99.5), ceil(n), floor(-n), trunc(n) FROM t", "100|10|-10|9"),
            ("SELECT -s, -(-s) FROM t", "-5|5"),
            ("SELECT -a FROM t", "error: an integer is out of range"),
            ("INSERT INTO t VALUES (1, 1, 1), (2, 2)", "error: VALUES has lists of 3 and of 2 values"),
            ("SELECT array_remove(array[1, 2, 1], 1), array_replace(array[1, 2, 1], 1, 9)", "{2}|{9,2,9}"),
            ("SELECT lpad('abc', x, 'x'), rpad('abc', x) FROM (VALUES (-1), (4)) AS v(x)", "|\nxabc|abc "),
        ],
    );
}

/// A text beside a NUMERIC says all its digits: those that a column has no room for count.
#[test]
fn texts_beside_exact_numbers_are_not_rounded() {
    expect(
        "CREATE TABLE acc (id INTEGER PRIMARY KEY, bal NUMERIC(10,2), n NUMERIC(5,0), i INTEGER); CREATE INDEX ON acc (bal); \
         INSERT INTO acc VALUES (1, 100.00, 12, 10), (2, 77.78, 13, 20)",
        &[
            ("SELECT id FROM acc WHERE bal = '77.777'", ""),
            ("SELECT id FROM acc WHERE bal = ' 77.780 ' ORDER BY id", "2"),
            ("SELECT id FROM acc WHERE bal > '77.777' ORDER BY id", "1\n2"),
            ("SELECT id FROM acc WHERE bal < '77.777' OR bal <= '77.777' OR bal >= '100.001'", ""),
            ("SELECT id FROM acc WHERE bal <> '77.777' ORDER BY id", "1\n2"),
            ("SELECT id FROM acc WHERE '77.777' = bal", ""),
            ("SELECT id FROM acc WHERE bal IN ('77.777', '99.996', '100')", "1"),
            ("SELECT id FROM acc WHERE bal NOT IN ('77.777', '100')", "2"),
            ("SELECT id FROM acc WHERE bal BETWEEN '77.779' AND '77.781'", "2"),
            ("SELECT id FROM acc WHERE bal NOT BETWEEN '77.781' AND '99.996' ORDER BY id", "1\n2"),
            ("SELECT id FROM acc WHERE '77.777' BETWEEN bal AND '78'", ""),
            ("SELECT id FROM acc WHERE bal IS NOT DISTINCT FROM '77.777'", ""),
            ("SELECT CASE bal WHEN '77.777' THEN 'a' WHEN '77.78' THEN 'b' END FROM acc ORDER BY id", "NULL\nb"),
            ("SELECT id FROM acc WHERE n = '12.4'", ""),
            ("SELECT id FROM acc WHERE bal = '9999999999' OR bal = '1e3' OR bal = '0.7778e2'", "2"),
            ("SELECT bal * '1.005', bal + '0.004', bal - '0.004' FROM acc WHERE id = 1", "100.50000|100.004|99.996"),
            (
                "SELECT '0.004' + bal, round(bal / '0.001', 1), bal % '0.3' FROM acc WHERE id = 1",
                "100.004|100000.0|0.10",
            ),
            ("SELECT i * '2' FROM acc ORDER BY id", "20\n40"),
            (
                "SELECT coalesce(NULL::NUMERIC(10,2), '1.2345'), greatest(bal, '100.001') FROM acc WHERE id = 1",
                "1.2345|100.001",
            ),
            ("SELECT nullif(bal, '100.001') = 100, least('0.001', bal) FROM acc WHERE id = 1", "true|0.001"),
            ("SELECT CASE WHEN id = 1 THEN bal ELSE '1.2345' END = 1.2345 FROM acc ORDER BY id", "false\ntrue"),
            ("UPDATE acc SET bal = bal * '1.005' WHERE id = 1", "UPDATE 1"),
            ("SELECT bal FROM acc WHERE id = 1", "100.50"),
            ("DELETE FROM acc WHERE bal = '77.776'", "DELETE 0"),
            (
                "SELECT id FROM acc WHERE bal < '1e50' AND bal > '-1e50' AND bal > '1e-50' AND bal < '9e40' ORDER BY id",
                "1\n2",
            ),
            ("SELECT id FROM acc WHERE bal = '77.7800000000000000000000000000000000000000000'", "2"),
            ("SELECT id FROM acc WHERE bal = 'x'", "error: a text is not a valid numeric, of 76 digits at most"),
            ("SELECT id FROM acc ORDER BY id LIMIT 1::NUMERIC(2,0)", "1"),
            ("SELECT NULL || NULL IS NULL", "true"),
            ("SELECT id FROM acc ORDER BY id LIMIT '1' OFFSET '1'", "2"),
        ],
    );
}

/// What an upsert says of rows that it meets is looked at, whether it meets any or not.
#[test]
fn what_is_wrong_with_an_upsert_is_found_before_it_meets_a_row() {
    for update in [
        "SET nix = 1",
        "SET b = excluded.nix",
        "SET b = nixfun(1)",
        "SET b = 'z' WHERE nix > 1",
        "SET b = (SELECT q FROM nixtable)",
    ] {
        let mut database = Database::after("CREATE TABLE t (id INTEGER PRIMARY KEY, b TEXT, n INTEGER)");
        let upsert = format!("INSERT INTO t VALUES (5, 'x') ON CONFLICT (id) DO UPDATE {update}");
        assert!(database.ask(&upsert).starts_with("error"), "{upsert}");
        database.expect(&[("SELECT count(*) FROM t", "0")]);
    }
    // What subqueries answer is asked where a row is met, and what WITH names is not looked for before.
    let mut database = Database::after(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, b TEXT, n INTEGER); INSERT INTO t (id) VALUES (1), (2)",
    );
    database.expect(&[
        ("INSERT INTO t VALUES (5) ON CONFLICT (id) DO UPDATE SET n = (SELECT id FROM t)", "INSERT 1"),
        ("INSERT INTO t VALUES (6) ON CONFLICT (id) DO UPDATE SET n = (SELECT 1 / (max(id) - max(id)) FROM t)", "INSERT 1"),
        ("INSERT INTO t VALUES (7) ON CONFLICT (id) DO UPDATE SET n = 1 WHERE (SELECT id FROM t) > 0", "INSERT 1"),
        (
            "WITH w AS (SELECT 8 AS i) INSERT INTO t SELECT i FROM w ON CONFLICT (id) DO UPDATE SET n = (SELECT i FROM w)",
            "INSERT 1",
        ),
    ]);
    let mut database = Database::after("CREATE TABLE t (id INTEGER PRIMARY KEY, b TEXT, n INTEGER)");
    let upsert = "INSERT INTO t VALUES (5, 'x') ON CONFLICT (id) DO UPDATE SET n = excluded.id";
    database.expect(&[
        (upsert, "INSERT 1"),
        (upsert, "INSERT 1"),
        ("SELECT * FROM t", "5|x|5"),
        ("DELETE FROM t", "DELETE 1"),
        ("ALTER TABLE t DROP COLUMN n", "ALTER TABLE"),
    ]);
    // Again, since the table is another one.
    assert!(database.ask(upsert).starts_with("error"));
    database.expect(&[("SELECT count(*) FROM t", "0")]);
}

#[test]
fn subqueries_of_returning_see_tables_as_they_were() {
    expect(
        "CREATE TABLE r (id INTEGER PRIMARY KEY, i INTEGER); INSERT INTO r VALUES (1, 1), (2, 2)",
        &[
            ("INSERT INTO r VALUES (3, 3) RETURNING id, (SELECT count(*) FROM r)", "3|2"),
            ("UPDATE r SET i = 5 WHERE id = 1 RETURNING i, (SELECT sum(i) FROM r)", "5|6"),
            ("DELETE FROM r WHERE id = 2 RETURNING i, (SELECT count(*) FROM r)", "2|3"),
            (
                "INSERT INTO r VALUES (3, 9) ON CONFLICT (id) DO UPDATE SET i = 9 RETURNING i, (SELECT sum(i) FROM r)",
                "9|8",
            ),
            ("SELECT id, i FROM r ORDER BY id", "1|5\n3|9"),
        ],
    );
}

#[test]
fn statements_that_were_taken_for_others_are_what_they_say() {
    let before = "CREATE TABLE t (id INTEGER PRIMARY KEY, b TEXT); CREATE TABLE s (id INTEGER, b TEXT); \
                  INSERT INTO s VALUES (1, 's'); CREATE TABLE k (k INTEGER PRIMARY KEY, u INTEGER NOT NULL UNIQUE, d INTEGER REFERENCES k (u))";
    let mut database = Database::after(before);
    database.expect(&[
        ("INSERT INTO t SELECT 5, 'x' ON CONFLICT (id) DO NOTHING", "INSERT 1"),
        ("INSERT INTO t SELECT 5, 'x' ON CONFLICT (id) DO NOTHING", "INSERT 0"),
        ("SELECT 1 AS on", "1"),
        (
            "UPDATE t SET b = s.b FROM s RETURNING t.id, s.b",
            "error: not supported: RETURNING of s: it answers what became of t alone",
        ),
        (
            "DELETE FROM t USING s RETURNING s.id",
            "error: not supported: RETURNING of s: it answers what became of t alone",
        ),
        ("UPDATE t SET b = s.b FROM s RETURNING t.id, t.b", "5|s"),
        ("UPDATE t AS o SET b = 'y' FROM s RETURNING o.id, (SELECT max(s.b) FROM s)", "5|s"),
        ("BEGIN", "BEGIN"),
        ("BEGIN", "BEGIN"),
        ("INSERT INTO t VALUES (6, 'x')", "INSERT 1"),
        ("ROLLBACK", "ROLLBACK"),
        ("SELECT count(*) FROM t", "1"),
    ]);
    let refused = database.ask("ALTER TABLE k DROP COLUMN u");
    assert!(refused.contains("is referenced by foreign key") && refused.contains("CASCADE"), "{refused}");
    database.expect(&[("ALTER TABLE k DROP COLUMN u CASCADE", "ALTER TABLE")]);
}

/// Rows of a cursor are read when they are fetched, and what is wrong with them is met then.
#[test]
fn a_cursor_is_declared_before_its_rows_are_read() {
    let mut database = Database::after("CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)");
    database.expect(&[
        ("BEGIN", "BEGIN"),
        ("DECLARE c CURSOR FOR SELECT 1 / (id - 1) FROM t WHERE id = 1", "DECLARE CURSOR"),
        ("SELECT count(*) FROM t", "3"),
        ("COMMIT", "COMMIT"),
    ]);
}
