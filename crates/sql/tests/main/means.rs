//! `avg` of integers is that of their exact sum, however the library goes over them.

use crate::database::Database;

fn filled() -> Database {
    let mut database = Database::new();
    database.ask("CREATE TABLE t (id INT PRIMARY KEY, kind TEXT, big BIGINT, small SMALLINT)");
    database.ask(
        "INSERT INTO t VALUES (1, 'a', 9223372036854775807, 1), (2, 'a', -9223372036854775808, 2), (3, 'a', 0, 2), \
         (4, 'b', 9007199254740993, NULL), (5, 'b', -9007199254740992, 7), (6, 'c', NULL, NULL), (7, 'b', 9007199254740993, 1)",
    );
    database
}

#[test]
fn a_mean_is_that_of_the_exact_sum() {
    let mut database = filled();
    for (sql, expected) in [
        // The join keeps the relation's own engine from answering.
        ("SELECT avg(t.big) FROM t JOIN t u ON t.id + 0 = u.id + 0 WHERE t.kind = 'a'", "-0.3333333333333333"),
        ("SELECT avg(big) FROM t WHERE kind = 'a'", "-0.3333333333333333"),
        ("SELECT avg(t.big) FROM t, t u WHERE t.id IN (4, 5)", "0.5"),
        (
            "SELECT t.kind, avg(t.big), avg(t.small) FROM t, t u GROUP BY t.kind HAVING avg(t.big) <> 1.5 ORDER BY 1",
            "a|-0.3333333333333333|1.6666666666666667\nb|3.0023997515803315e+15|4",
        ),
        (
            "SELECT avg(DISTINCT big), avg(big), count(DISTINCT kind) FROM t WHERE kind = 'b'",
            "0.5|3.0023997515803315e+15|1",
        ),
        (
            "SELECT kind, avg(DISTINCT big), count(DISTINCT id) FROM t GROUP BY kind ORDER BY kind",
            "a|-0.3333333333333333|3\nb|0.5|3\nc|NULL|1",
        ),
        ("SELECT avg(big) FILTER (WHERE id IN (4, 5)), avg(small) FILTER (WHERE id > 90) FROM t", "0.5|NULL"),
        (
            "SELECT id, avg(big) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t WHERE id IN (1, 2, 4, 5, 6, 7) ORDER BY id",
            "1|9.223372036854776e+18\n2|-0.5\n4|-4.6071824188000174e+18\n5|0.5\n6|-9.007199254740992e+15\n7|9.007199254740992e+15",
        ),
        ("SELECT avg(NULL::BIGINT), avg(3), avg(2.5::REAL), avg(1.25::NUMERIC(4,2))", "NULL|3|2.5|1.2500000000000000"),
        ("SELECT avg(big) FROM t WHERE id > 100", "NULL"),
        ("SELECT mean(t.small) FROM t, t u", "2.6"),
    ] {
        assert_eq!(database.ask(sql), expected, "{sql}");
    }
}

/// It had six digits, and the others were cut off.
#[test]
fn a_mean_of_numeric_has_16_digits_and_is_rounded() {
    let mut database = Database::after(
        "CREATE TABLE n (id INTEGER PRIMARY KEY, m NUMERIC(9,2), w NUMERIC(38,0)); \
         INSERT INTO n VALUES (1, 1, 99999999999999999999999999999999), (2, 1, 0), (3, 0, NULL), (4, NULL, 1)",
    );
    for (sql, expected) in [
        ("SELECT avg(m) FROM n", "0.6666666666666667"),
        // Not by relations themselves, but by the library.
        (
            "SELECT avg(m + 0), avg(-m), avg(m) FILTER (WHERE id > 3) FROM n",
            "0.6666666666666667|-0.6666666666666667|NULL",
        ),
        ("SELECT avg(DISTINCT m), round(avg(m), 2) FROM n", "0.5000000000000000|0.67"),
        (
            "SELECT id > 1, avg(m) FROM n GROUP BY id > 1 ORDER BY 1",
            "false|1.0000000000000000\ntrue|0.5000000000000000",
        ),
        (
            "SELECT id, avg(m) OVER (ORDER BY id ROWS 2 PRECEDING) FROM n ORDER BY id",
            "1|1.0000000000000000\n2|1.0000000000000000\n3|0.6666666666666667\n4|0.5000000000000000",
        ),
        // As far as 38 digits leave room for them.
        ("SELECT avg(w) FROM n", "33333333333333333333333333333333.3333"),
        ("SELECT avg(w + 0) FROM n", "33333333333333333333333333333333.3333"),
    ] {
        assert_eq!(database.ask(sql), expected, "{sql}");
    }
}

#[test]
fn a_sum_may_leave_its_range_on_its_way_and_come_back() {
    let mut database = Database::new();
    let some = "(VALUES (1, 9223372036854775807), (2, 3), (3, -5)) AS s(id, v)";
    assert_eq!(database.ask(&format!("SELECT sum(v) FROM {some}")), "9223372036854775805");
    let moving = format!("SELECT sum(v) OVER (ORDER BY id ROWS 1 PRECEDING) FROM {some} ORDER BY id DESC LIMIT 1");
    assert_eq!(database.ask(&moving), "error: a sum is out of the range of its type: cast to NUMERIC first");
    let beyond = "SELECT sum(v) FROM (VALUES (9223372036854775807), (3)) AS s(v)";
    assert_eq!(database.ask(beyond), "error: a sum is out of the range of its type: cast to NUMERIC first");
}

#[test]
fn the_sum_of_a_group_may_leave_its_range_on_its_way_too() {
    let mut database = Database::new();
    let some = "(VALUES ('a', 9223372036854775807), ('a', 3), ('b', NULL), ('a', -5), ('b', NULL), ('c', -9223372036854775808), ('c', 0)) AS s(k, v)";
    let sums = format!("SELECT k, sum(v) FROM {some} GROUP BY k ORDER BY k");
    assert_eq!(database.ask(&sums), "a|9223372036854775805\nb|NULL\nc|-9223372036854775808");
    let chosen = format!("SELECT k, sum(v) FILTER (WHERE v <> 3) FROM {some} GROUP BY k ORDER BY k");
    assert_eq!(database.ask(&chosen), "a|9223372036854775802\nb|NULL\nc|-9223372036854775808");
    let beyond = format!("SELECT k, sum(v) FROM {some} WHERE v >= 0 GROUP BY k ORDER BY k");
    assert_eq!(database.ask(&beyond), "error: a sum is out of the range of its type: cast to NUMERIC first");
    let of_parts = format!("SELECT sum(v) FROM {some} GROUP BY GROUPING SETS ((k), ()) ORDER BY 1");
    assert_eq!(database.ask(&of_parts), "-9223372036854775808\n-3\n9223372036854775805\nNULL");
}

#[test]
fn a_sum_of_numeric_is_right_or_an_error_wherever_it_is_added_up() {
    const BEYOND: &str = "error: a sum is out of the range of its type: cast to NUMERIC first";
    let mut database = Database::new();
    database.ask("CREATE TABLE t (id INT, k TEXT, n NUMERIC(38,10), big BIGINT)");
    let most = "9999999999999999999999999999.9999999999";
    let rows = [(1, "a", most, i64::MAX), (2, "a", most, i64::MAX), (3, "b", "5", 2), (4, "c", "-7", -9)];
    for (id, k, n, big) in rows {
        database.ask(&format!("INSERT INTO t VALUES ({id}, '{k}', {n}, {big})"));
    }
    for of in ["n", "n + 0", "big", "big + 0"] {
        for sql in [
            format!("SELECT sum({of}) FROM t WHERE upper(k) = 'A'"),
            format!("SELECT sum({of}) FROM t WHERE k = 'a'"),
            format!("SELECT k, sum({of}) FROM t WHERE upper(k) = 'A' GROUP BY k"),
            format!("SELECT k, sum({of}) FROM t GROUP BY ROLLUP (k)"),
            format!("SELECT sum({of}) OVER () FROM t"),
            format!("SELECT sum({of}) OVER (ORDER BY id) FROM t"),
            format!("SELECT sum({of}) OVER (ORDER BY id ROWS 1 PRECEDING) FROM t"),
            format!("SELECT sum(DISTINCT {of} - id % 2) FROM t WHERE id < 3"),
            format!("SELECT sum({of}) FILTER (WHERE id < 3) FROM t"),
        ] {
            assert_eq!(database.ask(&sql), BEYOND, "{sql}");
        }
    }
    // On its way it may be as large as it likes.
    let back = format!(
        "(VALUES (1, 'a', {most}), (2, 'a', {most}), (3, 'a', -{most}), (4, 'b', -{most}), (5, 'b', 1), (6, 'b', NULL)) AS s(id, k, n)"
    );
    for (sql, expected) in [
        (format!("SELECT sum(n) FROM {back}"), "1.0000000000"),
        (
            format!("SELECT k, sum(n) FROM {back} GROUP BY k ORDER BY k"),
            "a|9999999999999999999999999999.9999999999\nb|-9999999999999999999999999998.9999999999",
        ),
        (format!("SELECT sum(DISTINCT n) FROM {back}"), "1.0000000000"),
        (
            format!(
                "SELECT id, sum(n) OVER (ORDER BY id ROWS 1 PRECEDING) FROM {back} WHERE id > 3 ORDER BY id DESC LIMIT 2"
            ),
            "6|1.0000000000\n5|-9999999999999999999999999998.9999999999",
        ),
        ("SELECT sum(n) FROM t WHERE upper(k) = 'NOBODY'".into(), "NULL"),
        ("SELECT sum(DISTINCT n), sum(n) FROM t WHERE id > 2".into(), "-2.0000000000|-2.0000000000"),
    ] {
        assert_eq!(database.ask(&sql), expected, "{sql}");
    }
}
