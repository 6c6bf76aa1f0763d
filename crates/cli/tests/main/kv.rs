//! Records by name.

use super::stage::Stage;

#[test]
fn records_are_put_got_listed_and_deleted() {
    let stage = Stage::with_database();
    let bytes: Vec<u8> = (0..=255).collect();
    stage.write("value", &bytes);
    stage.good(&["kv", "db", "put", "a/1", "value"]);
    assert_eq!(stage.run_with_input(&["kv", "db", "put", "a/2", "-"], "two").code, 0);
    assert_eq!(stage.run_with_input(&["kv", "db", "put", "b"], "").code, 0);
    assert_eq!(stage.run(&["kv", "db", "get", "a/1"]).bytes, bytes);
    assert_eq!(stage.good(&["kv", "db", "get", "a/2"]), "two");
    assert_eq!(stage.good(&["kv", "db", "get", "b"]), "");
    assert_eq!(stage.good(&["kv", "db", "list"]), "a/1\na/2\nb\n");
    assert_eq!(stage.good(&["kv", "db", "list", "a/"]), "a/1\na/2\n");
    stage.refused(&["kv", "db", "get", "c"], 1, &["no record c"]);
    stage.refused(&["kv", "db", "delete", "b", "c"], 1, &["no record c"]);
    stage.good(&["kv", "db", "delete", "a/1", "b"]);
    assert_eq!(stage.good(&["kv", "db", "list"]), "a/2\n");
}

#[test]
fn what_is_too_large_is_refused() {
    let stage = Stage::with_database();
    stage.write("large", vec![7; (1 << 20) + 1]);
    stage.refused(&["kv", "db", "put", "x", "large"], 1, &["large"]);
    stage.write("most", vec![7; 1 << 20]);
    stage.good(&["kv", "db", "put", "x", "most"]);
    assert_eq!(stage.run(&["kv", "db", "get", "x"]).bytes.len(), 1 << 20);
    stage.refused(&["kv", "db", "put", &"n".repeat(300), "most"], 1, &[]);
    stage.refused(&["kv", "db", "put", "x", "absent"], 1, &["absent"]);
}
