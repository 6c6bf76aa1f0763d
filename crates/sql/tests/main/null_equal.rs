//! Joins by IS NOT DISTINCT FROM, beside joins and conditions by `=`: NULL is equal to NULL for the one, and for none of the others.

use crate::database::Database;

/// A few rows, some of them with NULL in what they are joined by.
fn database() -> Database {
    Database::after(
        "CREATE TABLE p (k INTEGER PRIMARY KEY, a INTEGER, b TEXT); CREATE TABLE c (k INTEGER PRIMARY KEY, r INTEGER, b TEXT);
         INSERT INTO p VALUES (1, NULL, 'x'), (2, 5, NULL), (3, NULL, NULL);
         INSERT INTO c VALUES (10, NULL, 'x'), (11, 5, NULL), (12, 7, 'z')",
    )
}

const ANSWERS: [(&str, &str); 7] = [
    ("SELECT c.k, p.k FROM c JOIN p ON c.r IS NOT DISTINCT FROM p.a ORDER BY 1, 2", "10|1\n10|3\n11|2"),
    // What the last join said held for the one below it: rows were lost, and rows came that do not belong there.
    (
        "SELECT c.k, p.k, o.k FROM c JOIN p ON c.r IS NOT DISTINCT FROM p.a JOIN c o ON o.b = p.b ORDER BY 1, 2",
        "10|1|10",
    ),
    (
        "SELECT c.k, p.k, o.k FROM c JOIN c o ON o.b = c.b JOIN p ON c.r IS NOT DISTINCT FROM p.a ORDER BY 1, 2",
        "10|1|10\n10|3|10",
    ),
    // A condition became a key of the join, and NULL equal to NULL for it.
    ("SELECT c.k, p.k FROM c JOIN p ON c.r IS NOT DISTINCT FROM p.a WHERE c.b = p.b", "10|1"),
    ("SELECT c.k, p.k FROM c, p WHERE c.r IS NOT DISTINCT FROM p.a AND c.b = p.b", "10|1"),
    ("SELECT c.k, p.k FROM c LEFT JOIN p ON c.r IS NOT DISTINCT FROM p.a ORDER BY 1, 2", "10|1\n10|3\n11|2\n12|NULL"),
    ("SELECT r FROM c INTERSECT SELECT a FROM p ORDER BY r", "5\nNULL"),
];

#[test]
fn null_is_equal_to_null_for_these_keys_alone() {
    let mut database = database();
    database.expect(&ANSWERS);
    database.expect(&[("SET ram = '64K'", "SET")]);
    database.expect(&ANSWERS);
}

#[test]
fn such_a_condition_is_a_key_where_there_is_no_other() {
    let mut database = database();
    let plan = database
        .ask("EXPLAIN SELECT c.k, p.k, o.k FROM c JOIN p ON c.r IS NOT DISTINCT FROM p.a JOIN c o ON o.b = p.b");
    assert_eq!(plan.matches("HashJoinExec").count(), 2, "{plan}");
    assert_eq!(plan.matches("NullsEqual: true").count(), 1, "{plan}");
}
