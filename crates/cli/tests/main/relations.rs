//! Tables of rows in a file.

use super::stage::Stage;

#[test]
fn inspect_tells_what_a_rewrite_would_cost_and_gain() {
    let stage = Stage::with_database();
    stage.good(&[
        "db",
        "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE t (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p)",
    ]);
    stage.good(&["db", "INSERT INTO p SELECT i FROM generate_series(0, 99) AS i"]);
    for part in 0..3 {
        let rows = format!("generate_series({}, {})", part * 20_000, part * 20_000 + 19_999);
        stage.good(&["db", &format!("INSERT INTO t SELECT i, i % 100 FROM {rows} AS i ORDER BY i")]);
    }
    let text = stage.good(&["inspect", "db"]);
    assert!(text.contains("reorganize     p: nothing to gain"), "{text}");
    assert!(text.contains("index          t_p_fkey: "), "{text}");
    assert!(text.contains("runs: 3 of tier 0; 0 new rows in none yet"), "{text}");
    assert!(text.contains("reorganize     t: VACUUM writes about "), "{text}");
    assert!(text.contains("smaller, with one run where an index has 3"), "{text}");
    stage.good(&["db", "DELETE FROM t WHERE id % 3 = 0"]);
    let text = stage.good(&["inspect", "db"]);
    assert!(text.contains("66 % there; 20000 deleted and 0 updated in logs of 156.2 KiB"), "{text}");
    stage.good(&["db", "VACUUM"]);
    let text = stage.good(&["inspect", "db"]);
    assert!(text.contains("reorganize     t: nothing to gain"), "{text}");
    assert!(text.contains("100 % there; 0 deleted"), "{text}");
}
