//! Subqueries in expressions, sets with doubles and rows of values, where the query library answers otherwise than PostgreSQL or not at all.
//! (Random ones beside SQLite: `crates/counterfoil/tests/against_sqlite/subqueries.rs`.)

use counterfoil_sql::Ram;

use crate::database::Database;

fn database() -> Database {
    Database::after(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, c INTEGER); CREATE TABLE m (x INTEGER); CREATE TABLE oa (id INTEGER PRIMARY KEY, t TEXT);
         CREATE TABLE ob (id INTEGER PRIMARY KEY, oa INTEGER REFERENCES oa);
         CREATE TABLE k (a INTEGER, b INTEGER, v INTEGER, PRIMARY KEY (a, b)); INSERT INTO k VALUES (1, 1, 7), (1, 2, 8), (2, 1, 9);
         INSERT INTO t VALUES (1, 10), (2, 20), (3, 30); INSERT INTO m VALUES (1), (1), (1), (2), (NULL), (NULL);
         INSERT INTO oa VALUES (1, 'a'), (2, 'b'); INSERT INTO ob VALUES (5, 1), (6, 1), (7, NULL)",
    )
}

/// Both with much memory and with little, as each has a way of its own.
fn expect(questions: &[(&str, &str)]) {
    for ram in ["64MB", "64K"] {
        let mut database = database();
        database.expect(&[(&format!("SET ram = '{ram}'"), "SET")]);
        database.expect(questions);
    }
}

#[test]
fn a_table_inside_is_not_the_one_outside_of_the_same_name() {
    expect(&[
        ("SELECT id, c IN (SELECT c FROM t WHERE id = 1) FROM t ORDER BY id", "1|true\n2|false\n3|false"),
        ("SELECT id FROM t WHERE c NOT IN (SELECT c FROM t) OR id > 1 ORDER BY id", "2\n3"),
        ("SELECT id FROM t WHERE (c > ANY (SELECT c FROM t WHERE id < 3)) IS TRUE ORDER BY id", "2\n3"),
        (
            "SELECT c, sum(id) FROM t GROUP BY c HAVING sum(id) IN (SELECT sum(id) FROM t GROUP BY c) ORDER BY 1",
            "10|1\n20|2\n30|3",
        ),
        (
            "UPDATE t SET c = CASE WHEN c IN (SELECT c FROM t WHERE id < 3) THEN 1 ELSE 2 END WHERE id > 1 RETURNING id, c",
            "2|1\n3|2",
        ),
        ("DELETE FROM t WHERE (c IN (SELECT c FROM t WHERE id = 2)) IS TRUE RETURNING id", "2"),
        ("SELECT count(*) FROM t", "2"),
    ]);
}

#[test]
fn a_subquery_without_a_row_is_null() {
    expect(&[
        ("SELECT CASE WHEN (SELECT id FROM oa WHERE id = 77) IS NULL THEN 'none' ELSE 'some' END", "none"),
        ("SELECT id FROM oa WHERE (SELECT x.id FROM oa x WHERE x.id = 99) IS NULL ORDER BY id", "1\n2"),
        ("SELECT id FROM oa WHERE coalesce((SELECT x.id FROM oa x WHERE x.id = 99), 1) = id", "1"),
        ("SELECT (SELECT 'x' FROM oa WHERE id = 99) IS NULL", "true"),
        ("SELECT (SELECT v FROM (SELECT 'x' AS v FROM oa WHERE id = 99) q) IS NULL", "true"),
        ("SELECT (SELECT 1 WHERE false), coalesce((SELECT id FROM oa WHERE false), 7)", "NULL|7"),
        ("SELECT (SELECT count(*) FROM oa WHERE id > 50 HAVING count(*) > 3)", "NULL"),
        ("SELECT (SELECT count(*) FROM oa WHERE id > 50) IS NULL, (SELECT 1) IS NULL", "false|false"),
        ("INSERT INTO oa SELECT 8, 'n' WHERE (SELECT id FROM oa WHERE id = 8) IS NULL", "INSERT 1"),
        ("UPDATE oa SET t = (SELECT 'q' FROM ob WHERE id = 77) WHERE id = 8 RETURNING id, t", "8|NULL"),
        ("DELETE FROM t WHERE (SELECT x.id FROM t x WHERE x.id = 99) IS NOT NULL", "DELETE 0"),
    ]);
}

#[test]
fn not_in_of_what_no_row_has_knows_nulls() {
    expect(&[
        ("SELECT id FROM t WHERE 5 NOT IN (SELECT x FROM m)", ""),
        ("SELECT id FROM t WHERE 5 NOT IN (SELECT x FROM m WHERE x IS NULL)", ""),
        ("SELECT id FROM t WHERE 5 NOT IN (SELECT x FROM m WHERE x IS NOT NULL) ORDER BY id", "1\n2\n3"),
        ("SELECT id FROM t WHERE NULL NOT IN (SELECT x FROM m WHERE x > 9) ORDER BY id", "1\n2\n3"),
    ]);
}

#[test]
fn subqueries_speak_of_the_query_around_them_by_more_than_what_is_equal() {
    expect(&[
        ("SELECT id, (SELECT max(c) FROM t y WHERE y.id < z.id) FROM t z ORDER BY id", "1|NULL\n2|10\n3|20"),
        (
            "SELECT z.x, (SELECT count(*) FROM m y WHERE y.x <> z.x) FROM m z WHERE z.x IS NULL OR z.x > 1",
            "2|3\nNULL|0\nNULL|0",
        ),
        ("SELECT id FROM t WHERE c > (SELECT avg(c) FROM t y WHERE y.id <> t.id)", "3"),
        (
            "SELECT id, c > ANY (SELECT c FROM t WHERE id < 3), c >= ALL (SELECT c FROM t) FROM t ORDER BY id",
            "1|false|false\n2|true|false\n3|true|true",
        ),
        (
            "SELECT DISTINCT x, x > ANY (SELECT x FROM m), x <= ALL (SELECT x FROM m) FROM m ORDER BY x",
            "1|NULL|NULL\n2|true|false\nNULL|NULL|NULL",
        ),
        (
            "SELECT id, CASE WHEN EXISTS (SELECT 1 FROM ob WHERE ob.oa < oa.id) THEN 'y' ELSE 'n' END FROM oa ORDER BY id",
            "1|n\n2|y",
        ),
        ("UPDATE t x SET c = (SELECT max(c) FROM t y WHERE y.id <> x.id) WHERE id < 3 RETURNING id, c", "1|30\n2|30"),
        // Of a NULL outside this may be true, which is not said by what is equal.
        (
            "SELECT (SELECT count(*) FROM m y WHERE y.x IS DISTINCT FROM z.x) FROM m z",
            "error: not supported: a subquery in this place",
        ),
    ]);
}

#[test]
fn a_subquery_has_one_row_by_a_key_or_by_what_is_there() {
    expect(&[
        ("SELECT id, (SELECT oa.t FROM oa WHERE oa.id = ob.oa) FROM ob ORDER BY id", "5|a\n6|a\n7|NULL"),
        ("SELECT id, (SELECT ob.id FROM ob WHERE ob.oa = oa.id AND ob.id <> 5) FROM oa ORDER BY id", "1|6\n2|NULL"),
        (
            "SELECT id, (SELECT ob.id FROM ob WHERE ob.oa = oa.id ORDER BY ob.id DESC, ob.id LIMIT 1) FROM oa ORDER BY id",
            "1|6\n2|NULL",
        ),
        (
            "SELECT id, (SELECT -ob.id FROM ob WHERE ob.oa = oa.id ORDER BY ob.id LIMIT 1) FROM oa ORDER BY id",
            "1|-5\n2|NULL",
        ),
        (
            "SELECT id, (SELECT ob.id FROM ob WHERE ob.oa = oa.id) FROM oa",
            "error: a subquery in an expression has more than one row: say which with LIMIT 1, or take max()",
        ),
        (
            "SELECT (SELECT v FROM k WHERE k.a = t.id) FROM t",
            "error: a subquery in an expression has more than one row: say which with LIMIT 1, or take max()",
        ),
        ("SELECT t.id, (SELECT v FROM k WHERE k.a = t.id AND k.b = 2) FROM t ORDER BY 1", "1|8\n2|NULL\n3|NULL"),
        // Nobody asks for what would have two.
        ("SELECT id, (SELECT ob.id FROM ob WHERE ob.oa = oa.id) FROM oa WHERE id = 2", "2|NULL"),
    ]);
}

#[test]
fn columns_of_one_name_inside_stay_apart() {
    expect(&[
        (
            "SELECT id, (SELECT y.id FROM t x, t y WHERE x.id = z.id AND y.c = z.c LIMIT 1), \
             (SELECT count(*) FROM t x, t y WHERE x.id = z.id AND y.id = z.c / 10) FROM t z ORDER BY id",
            "1|1|1\n2|2|1\n3|3|1",
        ),
        (
            "SELECT id FROM t z WHERE EXISTS (SELECT 1 FROM t x, k y WHERE x.id = z.id AND y.a = x.id AND y.b = z.id) ORDER BY id",
            "1",
        ),
        (
            "SELECT id FROM oa WHERE NOT EXISTS (SELECT 1 FROM ob x, t y WHERE x.id = oa.id + 4 AND y.id = oa.id) ORDER BY id",
            "",
        ),
        (
            "SELECT id FROM t z WHERE EXISTS (SELECT 1 FROM oa FULL JOIN t USING (id) WHERE id = z.id) ORDER BY id",
            "1\n2\n3",
        ),
        (
            "SELECT (SELECT row_number() OVER (ORDER BY id) FROM t x WHERE x.id = z.id) FROM t z",
            "error: not supported: a window over rows that speak of the query around it: write it as a join",
        ),
        (
            "SELECT id, (SELECT count(*) FROM ob WHERE ob.oa = oa.id LIMIT 1), (SELECT count(*) FROM ob WHERE ob.oa = oa.id ORDER BY 1) FROM oa ORDER BY id",
            "1|2|2\n2|0|0",
        ),
        ("SELECT id FROM oa WHERE EXISTS (SELECT count(*) FROM ob WHERE ob.oa = oa.id) ORDER BY id", "1\n2"),
        (
            "SELECT id FROM oa z WHERE EXISTS (SELECT 1 FROM ob o WHERE o.id IN (SELECT p.id FROM ob p WHERE p.oa IN (SELECT z.id FROM oa z ORDER BY z.id LIMIT 1))) ORDER BY id",
            "1\n2",
        ),
    ]);
}

#[test]
fn a_column_inside_may_be_called_as_a_table_outside() {
    expect(&[
        ("SELECT id FROM oa WHERE EXISTS (SELECT 1 FROM ob WHERE ob.oa = oa.id)", "1"),
        ("SELECT oa.id, (SELECT count(*) FROM ob c WHERE c.oa = oa.id) FROM oa oa ORDER BY 1", "1|2\n2|0"),
        ("WITH oa AS (SELECT 1 AS id) SELECT id FROM oa WHERE EXISTS (SELECT 1 FROM ob WHERE ob.oa = oa.id)", "1"),
        ("DELETE FROM oa WHERE NOT EXISTS (SELECT 1 FROM ob WHERE ob.oa = oa.id) RETURNING id", "2"),
        (
            "SELECT id FROM oa WHERE EXISTS (SELECT 1 FROM ob WHERE EXISTS (SELECT 1 FROM t WHERE t.id = oa.id))",
            "error: not supported: oa.id, of a query further out than the one around it: join its table in between",
        ),
    ]);
}

#[test]
fn sets_with_doubles_count_them() {
    expect(&[
        ("SELECT x FROM m EXCEPT ALL SELECT 1 ORDER BY x", "1\n1\n2\nNULL\nNULL"),
        ("SELECT x FROM m INTERSECT ALL (VALUES (1), (1), (2), (NULL)) ORDER BY x", "1\n1\n2\nNULL"),
        ("SELECT 1 UNION ALL SELECT 1 EXCEPT ALL SELECT 1", "1"),
        ("SELECT x, 1 AS y FROM m EXCEPT ALL SELECT id, 1 FROM t ORDER BY x", "1|1\n1|1\nNULL|1\nNULL|1"),
        ("SELECT x FROM m EXCEPT SELECT 1 ORDER BY x", "2\nNULL"),
        ("SELECT x FROM m INTERSECT SELECT x FROM m ORDER BY x", "1\n2\nNULL"),
        ("SELECT DISTINCT x FROM m INTERSECT ALL SELECT x FROM m ORDER BY x", "1\n2\nNULL"),
        ("CREATE VIEW v AS SELECT x FROM m EXCEPT ALL SELECT id FROM t", "CREATE VIEW"),
        ("SELECT x FROM v ORDER BY x", "1\n1\nNULL\nNULL"),
    ]);
}

#[test]
fn rows_of_values_are_null_and_compare_by_their_parts() {
    expect(&[
        (
            "SELECT (NULL, NULL) IS NULL, (1, NULL) IS NULL, (1, NULL) IS NOT NULL, ROW(1, 2) IS NOT NULL",
            "true|false|false|true",
        ),
        ("SELECT ROW(1, ROW(2, 3)) < ROW(1, ROW(2, 4)), ROW(1, ROW(NULL, NULL)) IS NOT NULL", "true|true"),
        ("SELECT id FROM t WHERE ROW(id, c) = ROW(1, NULL)", ""),
        ("SELECT id FROM t WHERE ROW(id, c) >= ROW(2, 20) AND ROW(c) > ROW(20)", "3"),
        ("SELECT id FROM t WHERE ROW(id, c) IN (ROW(1, 10), (3, 31), ROW(NULL, 20)) ORDER BY id", "1"),
    ]);
}

#[test]
fn numbers_compare_though_no_type_has_room_for_both() {
    let mut database = Database::after(
        "CREATE TABLE n (m NUMERIC(38, 0), f NUMERIC(38, 30), i BIGINT);
         INSERT INTO n VALUES (1, 1.5, 1), (99999999999999999999999999999999999999, 0.5, 9223372036854775807)",
    );
    database.expect(&[
        ("SELECT i FROM n WHERE m > 0.5 ORDER BY i", "1\n9223372036854775807"),
        ("SELECT i FROM n WHERE m > 1e40", ""),
        ("SELECT i FROM n WHERE m BETWEEN 0.1 AND 1.9", "1"),
        ("SELECT i FROM n WHERE m IN (0.5, 1.0)", "1"),
        ("SELECT i FROM n WHERE m NOT IN (0.5, 1.0)", "9223372036854775807"),
        ("SELECT i FROM n WHERE m > f ORDER BY i", "9223372036854775807"),
        ("SELECT i FROM n WHERE i > 0.00000000000000000000000000001 AND i <> f ORDER BY i", "1\n9223372036854775807"),
        ("SELECT i FROM n WHERE m IS DISTINCT FROM 1.000", "9223372036854775807"),
    ]);
}

#[test]
fn an_index_is_asked_for_what_a_subquery_says() {
    let mut database = Database::after(
        "CREATE TABLE big (id INTEGER PRIMARY KEY, n TEXT NOT NULL, p INTEGER, g INTEGER); CREATE INDEX ON big (p);
         INSERT INTO big SELECT i, 'n' || i, NULLIF(i / 10, 0), i % 7 FROM generate_series(1, 40000) AS s(i)",
    );
    // With so much that a table is read in parts, and with little.
    for ram in ["1GB", "64K"] {
        database.expect(&[(&format!("SET ram = '{ram}'"), "SET")]);
        let plan = database.ask("EXPLAIN SELECT id FROM big WHERE id = (SELECT max(id) FROM big WHERE g = 3)");
        assert!(plan.contains("Index: big_pkey when its value is known"), "{plan}");
        let plan = database.ask("EXPLAIN SELECT id FROM big WHERE (SELECT count(*) FROM big) = id");
        assert!(plan.contains("Index: big_pkey when its value is known"), "{plan}");
        let plan = database.ask("EXPLAIN SELECT id FROM big WHERE g = (SELECT max(id) FROM big WHERE g = 3)");
        assert!(!plan.contains("when its value is known"), "{plan}");
        database.expect(&[
            ("SELECT n FROM big WHERE id = (SELECT max(id) FROM big WHERE g = 3)", "n39994"),
            ("SELECT id FROM big WHERE (SELECT 77) = p AND n <> 'n777' ORDER BY id LIMIT 2", "770\n771"),
            ("SELECT count(*) FROM big WHERE p = (SELECT id FROM big WHERE n = 'n77')", "10"),
            // So many that an index is of no use, none, and what is nothing's equal.
            ("SELECT count(*) FROM big WHERE p = (SELECT 5) OR id = (SELECT 9)", "11"),
            ("SELECT count(*) FROM big WHERE id = (SELECT max(id) + 1 FROM big)", "0"),
            ("SELECT n FROM big WHERE id = (SELECT count(*) FROM big)", "n40000"),
            ("SELECT n FROM big WHERE id = (SELECT 1099511627776)", ""),
            ("SELECT count(*) FROM big WHERE p = (SELECT p FROM big WHERE id = 3)", "0"),
            ("BEGIN", "BEGIN"),
            ("UPDATE big SET g = 100 WHERE p = (SELECT max(p) FROM big WHERE id < 100)", "UPDATE 10"),
            ("DELETE FROM big WHERE id = (SELECT min(id) FROM big WHERE g = 100)", "DELETE 1"),
            ("SELECT count(*), min(id) FROM big WHERE g = (SELECT 100)", "9|91"),
            ("ROLLBACK", "ROLLBACK"),
        ]);
    }
}

#[test]
fn copies_of_subqueries_are_bounded() {
    let mut database = database();
    let mut value = String::from("c");
    for _ in 0..7 {
        value = format!("(CASE WHEN c IN (SELECT {value} FROM t) THEN 1 ELSE 0 END)");
    }
    // Conditions of their own are told once, and may nest.
    let mut rows = String::from("SELECT c FROM t");
    for _ in 0..10 {
        rows = format!("SELECT c FROM t WHERE c IN ({rows})");
    }
    database.expect(&[
        (
            &format!("SELECT {value} FROM t"),
            "error: not supported: subqueries that are worked out several times nest too deep in expressions: write some as joins",
        ),
        (&format!("{rows} ORDER BY c"), "10\n20\n30"),
    ]);
}

/// A subquery, a WITH query and a view hand the order of their rows on, as far as nothing but columns and conditions stands between.
#[test]
fn rows_keep_the_order_of_what_they_come_from() {
    for ram in [None, Some(Ram::LEAST)] {
        keeps_orders(&mut Database::in_ram(ram));
    }
}

fn keeps_orders(database: &mut Database) {
    let script = "CREATE TABLE t (id INTEGER PRIMARY KEY, x INTEGER, y TEXT);
         INSERT INTO t SELECT i, i * 7919 % 10007, 'y' || i FROM generate_series(1, 10006) AS s(i);
         CREATE VIEW v AS SELECT id, x FROM t ORDER BY x DESC";
    database.session.run(script, &[]).unwrap();
    let ascending = "8967\n7927\n6887";
    database.expect(&[
        ("SELECT id FROM (SELECT * FROM t ORDER BY x) q LIMIT 3", ascending),
        ("SELECT id FROM (SELECT id FROM t ORDER BY x) q LIMIT 3", ascending),
        ("WITH q AS (SELECT id, x FROM t ORDER BY x) SELECT id FROM q LIMIT 3", ascending),
        ("SELECT id FROM (SELECT * FROM (SELECT * FROM t ORDER BY x) a WHERE id > 0) b FETCH FIRST 3 ROWS ONLY", ascending),
        ("SELECT id FROM v OFFSET 10003", "6887\n7927\n8967"),
        ("SELECT x FROM (SELECT * FROM t ORDER BY x) q WHERE id % 2 = 0 LIMIT 3", "10\n11\n12"),
        ("SELECT id, row_number() OVER () FROM (SELECT id FROM t ORDER BY x) q LIMIT 2", "8967|1\n7927|2"),
        ("SELECT x FROM (SELECT * FROM t ORDER BY x) q ORDER BY id DESC LIMIT 1", "2088"),
        ("SELECT count(*), sum(x) FROM (SELECT * FROM t ORDER BY x) q", "10006|50065021"),
        ("SELECT t.id FROM t JOIN (SELECT id FROM t ORDER BY x LIMIT 2) q ON q.id = t.id ORDER BY t.x", "8967\n7927"),
        ("SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM (SELECT * FROM t ORDER BY x) q WHERE q.id = t.x)", "10006"),
        ("SELECT count(*) FROM t o WHERE x IN (SELECT q.id FROM (SELECT * FROM t WHERE t.id > 5 ORDER BY x) q)", "10001"),
        ("SELECT count(*) FROM t WHERE x = (SELECT max(q.x) FROM (SELECT * FROM t i ORDER BY y) q WHERE q.id = t.id)", "10006"),
    ]);
    let rows = database.ask("SELECT x FROM (SELECT * FROM t ORDER BY x) q WHERE y <> ''");
    assert!(rows.lines().map(|x| x.parse::<u32>().unwrap()).is_sorted(), "all rows come in order");
    // Where nobody sees the order, nobody sorts.
    let explained = database.ask("EXPLAIN SELECT count(*) FROM (SELECT * FROM t ORDER BY x) q");
    assert!(!explained.contains("Sort"), "{explained}");
}

/// Which row it is, and how many are wanted, is nothing to EXISTS.
#[test]
fn exists_may_say_which_row_and_how_many() {
    let mut database = Database::after(
        "CREATE TABLE o (id INTEGER PRIMARY KEY, x INTEGER); INSERT INTO o VALUES (1, 30), (2, 10), (3, 20), (4, NULL)",
    );
    let inner = "SELECT 1 FROM o p WHERE p.x > o.x";
    for more in ["LIMIT 1", "ORDER BY p.x LIMIT 5", "ORDER BY 1 FETCH FIRST ROW ONLY"] {
        for (sql, expected) in [
            (format!("SELECT id FROM o WHERE EXISTS ({inner} {more}) ORDER BY id"), "2\n3"),
            (format!("SELECT id FROM o WHERE NOT EXISTS ({inner} {more}) ORDER BY id"), "1\n4"),
            (format!("SELECT id, EXISTS ({inner} {more}) FROM o ORDER BY id"), "1|false\n2|true\n3|true\n4|false"),
        ] {
            assert_eq!(database.ask(&sql), expected, "{sql}");
        }
    }
    database.expect(&[
        ("SELECT EXISTS (SELECT 1 FROM o LIMIT 0), EXISTS (SELECT 1 FROM o LIMIT 1)", "false|true"),
        ("SELECT EXISTS (SELECT 1 FROM o OFFSET 4), EXISTS (SELECT 1 FROM o LIMIT 1 OFFSET 3)", "false|true"),
    ]);
}
