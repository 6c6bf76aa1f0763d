//! UPDATE and DELETE, and the statements with which the query library's own hooks lost data.

use crate::database::Database;

fn animals() -> Database {
    Database::after(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, n INTEGER);
         INSERT INTO t VALUES (1, 'ant', 10), (2, 'bee', 20), (3, 'cat', NULL), (4, 'dog', 40);
         CREATE TABLE other (id INTEGER, n INTEGER);
         INSERT INTO other VALUES (1, 100), (1, 100), (3, 300), (9, NULL);",
    )
}

#[test]
fn delete_where_in_subquery_deletes_those_rows_only() {
    let mut database = animals();
    database.expect(&[
        ("DELETE FROM t WHERE id IN (SELECT id FROM other)", "DELETE 2"),
        ("SELECT id FROM t ORDER BY id", "2\n4"),
    ]);
}

#[test]
fn delete_where_exists_and_not_in() {
    let mut database = animals();
    database.expect(&[
        ("DELETE FROM t WHERE EXISTS (SELECT 1 FROM other WHERE other.id = t.id AND other.n > 100)", "DELETE 1"),
        ("SELECT id FROM t ORDER BY id", "1\n2\n4"),
        ("DELETE FROM t WHERE id NOT IN (SELECT id FROM other)", "DELETE 2"),
        ("SELECT id FROM t", "1"),
        ("DELETE FROM t WHERE n NOT IN (SELECT n FROM other)", "DELETE 0"),
    ]);
}

#[test]
fn delete_where_false_and_where_null_delete_nothing() {
    let mut database = animals();
    database.expect(&[
        ("DELETE FROM t WHERE false", "DELETE 0"),
        ("DELETE FROM t WHERE NULL", "DELETE 0"),
        ("DELETE FROM t WHERE n = NULL", "DELETE 0"),
        ("UPDATE t SET n = 0 WHERE false", "UPDATE 0"),
        ("UPDATE t SET n = 0 WHERE NULL", "UPDATE 0"),
        ("SELECT count(*), sum(n) FROM t", "4|70"),
        ("DELETE FROM t", "DELETE 4"),
        ("SELECT count(*) FROM t", "0"),
    ]);
}

#[test]
fn limit_is_refused_in_changes() {
    let mut database = animals();
    database.expect(&[
        ("DELETE FROM t LIMIT 1", "error: not supported: LIMIT and ORDER BY in DELETE: choose the rows in WHERE"),
        ("UPDATE t SET n = 1 LIMIT 1", "error: not supported: LIMIT and ORDER BY in UPDATE: choose the rows in WHERE"),
        ("SELECT count(*) FROM t", "4"),
    ]);
}

#[test]
fn update_from_updates_a_row_once() {
    let mut database = animals();
    database.expect(&[
        ("UPDATE t SET n = other.n + 1 FROM other WHERE other.id = t.id", "UPDATE 2"),
        ("SELECT id, n FROM t ORDER BY id", "1|101\n2|20\n3|301\n4|40"),
        (
            "UPDATE t AS x SET n = x.n + y.n FROM t AS y WHERE y.id = x.id + 1 AND x.id < 3 RETURNING x.*",
            "1|ant|121\n2|bee|321",
        ),
        ("SELECT id, n FROM t ORDER BY id", "1|121\n2|321\n3|301\n4|40"),
    ]);
}

#[test]
fn delete_using_deletes_a_row_once() {
    let mut database = animals();
    database.expect(&[
        (
            "DELETE FROM t USING other WHERE other.id = t.id RETURNING *",
            "error: not supported: RETURNING * of several tables: write RETURNING t.*",
        ),
        ("DELETE FROM t USING other WHERE other.id = t.id RETURNING t.id, name", "1|ant\n3|cat"),
        ("SELECT id FROM t ORDER BY id", "2\n4"),
    ]);
}

#[test]
fn self_reference_sees_the_table_as_it_was() {
    let mut database = animals();
    database.expect(&[
        ("UPDATE t SET n = (SELECT max(n) FROM t) WHERE n < (SELECT max(n) FROM t)", "UPDATE 2"),
        ("SELECT id, n FROM t ORDER BY id", "1|40\n2|40\n3|NULL\n4|40"),
        ("INSERT INTO t SELECT id + 10, name, n FROM t", "INSERT 4"),
        ("DELETE FROM t WHERE id IN (SELECT id - 10 FROM t)", "DELETE 4"),
        ("SELECT id FROM t ORDER BY id", "11\n12\n13\n14"),
        ("UPDATE t SET id = id + 1", "UPDATE 4"),
        ("SELECT id FROM t ORDER BY id", "12\n13\n14\n15"),
    ]);
}

#[test]
fn update_sets_lists_defaults_and_returns() {
    let mut database = animals();
    database.expect(&[
        ("UPDATE t SET (name, n) = ('eel', 5) WHERE id = 1 RETURNING *", "1|eel|5"),
        ("UPDATE t SET n = DEFAULT WHERE id = 1 RETURNING n", "NULL"),
        ("UPDATE t SET n = 1, n = 2", "error: column n is set twice"),
        ("UPDATE t SET nope = 1", "error: no column nope in table t"),
        ("UPDATE t SET n = 'x'", "error: a text is not a valid integer (column n)"),
        ("UPDATE t SET n = n * 1000000000 WHERE id = 4", "error: an integer is out of range (column n, integer)"),
        ("UPDATE nowhere SET n = 1", "error: no table nowhere"),
        ("WITH big AS (SELECT id FROM t WHERE id > 2) UPDATE t SET n = 0 WHERE id IN (SELECT id FROM big)", "UPDATE 2"),
        ("SELECT id, n FROM t ORDER BY id", "1|NULL\n2|20\n3|0\n4|0"),
    ]);
}

#[test]
fn on_conflict_does_nothing_or_updates() {
    let mut database = animals();
    database.expect(&[
        ("INSERT INTO t VALUES (1, 'x', 1)", "error: table t already has a row with this key (id): unique constraint t_pkey"),
        ("INSERT INTO t VALUES (1, 'x', 1), (5, 'e', 5), (5, 'f', 6) ON CONFLICT DO NOTHING", "INSERT 1"),
        ("SELECT name FROM t WHERE id IN (1, 5) ORDER BY id", "ant\ne"),
        (
            "INSERT INTO t VALUES (1, 'new', 1), (6, 'six', 6) ON CONFLICT (id) DO UPDATE SET name = excluded.name, n = t.n + excluded.n RETURNING id, name, n",
            "1|new|11\n6|six|6",
        ),
        ("INSERT INTO t VALUES (1, 'w', 1) ON CONFLICT (id) DO UPDATE SET name = 'no' WHERE t.n > 1000", "INSERT 0"),
        (
            "INSERT INTO t VALUES (7, 'a', 1), (7, 'b', 2) ON CONFLICT (id) DO UPDATE SET n = 0",
            "error: two of the new rows have the same key: ON CONFLICT DO UPDATE would update one row twice",
        ),
        ("INSERT INTO t SELECT id, 'again', 0 FROM t ON CONFLICT (id) DO UPDATE SET name = excluded.name", "INSERT 6"),
        ("SELECT DISTINCT name FROM t", "again"),
        ("INSERT INTO t VALUES (1, 'x', 1) ON CONFLICT (name) DO NOTHING", "error: no unique constraint over these columns of table t"),
        ("INSERT INTO t VALUES (1, 'x', 1) ON CONFLICT ON CONSTRAINT t_pkey DO NOTHING", "INSERT 0"),
    ]);
}

/// More rows than are changed at a time, in the ways that must not be split and in those that are.
#[test]
fn many_rows_are_updated_as_if_at_once() {
    let mut database = Database::after(
        "CREATE TABLE many (id INTEGER PRIMARY KEY, n INTEGER, note TEXT);
         INSERT INTO many SELECT i, i, 'note ' || i FROM generate_series(1, 200000) AS s(i);",
    );
    database.expect(&[
        ("UPDATE many SET n = n + 1, note = upper(note)", "UPDATE 200000"),
        ("SELECT count(*), sum(n - id), min(note), max(length(note)) FROM many", "200000|200000|NOTE 1|11"),
        ("UPDATE many SET id = id + 1", "UPDATE 200000"),
        ("SELECT min(id), max(id), count(DISTINCT id), sum(id - n) FROM many", "2|200001|200000|0"),
        (
            "UPDATE many SET n = o.n FROM (SELECT id + 70000 AS id, n FROM many) AS o WHERE o.id = many.id",
            "UPDATE 130000",
        ),
        ("SELECT count(*), sum(id - n) FROM many WHERE id <> n", "130000|9100000000"),
        ("UPDATE many SET n = 1 / (id - 200001)", "error: division by zero"),
        ("SELECT count(*) FROM many WHERE id <> n", "130000"),
    ]);
}
