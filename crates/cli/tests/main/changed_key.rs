//! Dispersed tables while the key of the database was changed and nobody has shares of the new one.

use std::fs;

use super::brought_back::{bring_back_with, good_elsewhere, lose};
use super::stage::Stage;

#[test]
fn old_shares_bring_tables_back_until_there_are_new_ones() {
    let stage = Stage::with_database();
    fs::create_dir(stage.path("a")).expect("a cloud");
    stage.good(&["db", "CREATE CLOUD a OPTIONS (url 'dir:a')"]);
    stage.good(&["key", "split", "db", "--need", "2", "--of", "3", "shares"]);
    for table in ["t", "u"] {
        stage.good(&["db", &format!("CREATE TABLE {table} (a INT) WITH (engine = 'dispersed', clouds = 'a')")]);
        stage.good(&["db", &format!("INSERT INTO {table} VALUES (1), (2), (3)")]);
    }
    // However often: clouds were told under the first of these keys alone.
    for _ in 0..34 {
        stage.good(&["rekey", "db", "--data"]);
    }
    // Whatever is changed is told when there are new shares, and not before.
    stage.refused(&["db", "UPDATE t SET a = 7"], 1, &["key split"]);
    stage.refused(&["db", "REPAIR TABLE t"], 1, &["key split"]);
    let deleted = stage.run(&["db", "DELETE FROM t WHERE a = 2"]);
    assert!(deleted.code == 0 && deleted.err.contains("key split"), "{}", deleted.err);
    stage.good(&["db", "TRUNCATE u"]);
    stage.good(&["db", "ALTER TABLE t RENAME COLUMN a TO b"]);
    stage.good(&["db", "CREATE TABLE v (a INT) WITH (engine = 'dispersed', clouds = 'a')"]);
    assert_eq!(stage.good(&["db", "SELECT b FROM t ORDER BY b"]), "b\n1\n3\n");
    good_elsewhere(&stage, &["restore", "--from", "dir:a", "other", "--key-file", "shares"]);
    for table in ["t", "u"] {
        let rows = good_elsewhere(&stage, &["other", &format!("SELECT a FROM {table} ORDER BY a")]);
        assert_eq!(rows, "a\n1\n2\n3\n");
    }
    stage.good(&["key", "split", "db", "--need", "2", "--of", "3", "new"]);
    lose(&stage);
    stage.refused(&["restore", "--from", "dir:a", "db", "--key-file", "shares"], 1, &["no table"]);
    bring_back_with(&stage, "new");
    assert_eq!(stage.good(&["db", "SELECT b FROM t ORDER BY b"]), "b\n1\n3\n");
    assert_eq!(stage.good(&["db", "SELECT a FROM u"]), "a\n");
}
