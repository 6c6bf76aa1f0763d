//! Formats of rows.

use super::stage::Stage;

const ROWS: &str = "SELECT * FROM (VALUES (1, 'a,\"b\"', true), (NULL, '', NULL)) v(n, t, b)";

#[test]
fn csv_is_what_a_pipe_gets() {
    let stage = Stage::new();
    assert_eq!(stage.good(&[":memory:", ROWS]), "n,t,b\n1,\"a,\"\"b\"\"\",true\n,\"\",\n");
    let other = stage.good(&[":memory:", ROWS, "--null", "NA", "--no-header", "--delimiter", ";"]);
    assert_eq!(other, "1;\"a,\"\"b\"\"\";true\nNA;\"\";NA\n");
}

#[test]
fn json_and_lines() {
    let stage = Stage::new();
    let json = stage.good(&[":memory:", ROWS, "--format", "json"]);
    assert_eq!(json, "[{\"n\":1,\"t\":\"a,\\\"b\\\"\",\"b\":true},\n{\"n\":null,\"t\":\"\",\"b\":null}]\n");
    let lines = stage.good(&[":memory:", ROWS, "--format", "jsonl"]);
    assert_eq!(lines.lines().count(), 2);
    assert_eq!(stage.good(&[":memory:", "SELECT 1 AS a WHERE false", "--format", "json"]), "[]\n");
    assert_eq!(stage.good(&[":memory:", "SELECT 1 AS a WHERE false", "--format", "jsonl"]), "");
}

#[test]
fn a_table_when_asked_for() {
    let table = Stage::new().good(&[":memory:", "SELECT 1 AS n, 'ü' AS t", "--format", "table"]);
    assert_eq!(table, "┌───┬───┐\n│ n │ t │\n├───┼───┤\n│ 1 │ ü │\n└───┴───┘\n");
}

#[test]
fn nothing_in_a_table_steers_the_terminal() {
    let table = Stage::new().good(&[":memory:", "SELECT chr(27) || '[31mred' AS t", "--format", "table"]);
    assert!(!table.contains('\u{1b}') && table.contains("\\u{1b}[31mred"), "{table}");
}

#[test]
fn arrow_is_a_stream_and_big_numbers_keep_their_digits() {
    let stage = Stage::new();
    let ended = stage.run(&[":memory:", ROWS, "--format", "arrow"]);
    assert_eq!(&ended.bytes[..4], &[0xFF; 4], "a continuation mark comes first");
    let sql = "SELECT 9007199254740993 AS n, 1.10::numeric(10,2) AS d, 'NaN'::double precision AS x";
    assert_eq!(
        stage.good(&[":memory:", sql, "--format", "jsonl"]),
        "{\"n\":9007199254740993,\"d\":1.10,\"x\":\"NaN\"}\n"
    );
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let stage = Stage::new();
    let mut child = stage.spawn(&[":memory:", "SELECT i FROM generate_series(1, 300000) s(i)"]);
    drop(child.stdin.take());
    drop(child.stdout.take());
    let ended = super::stage::ended(child.wait_with_output().expect("ends"));
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
}
