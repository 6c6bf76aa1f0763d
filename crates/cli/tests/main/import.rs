//! Files into tables.

use std::io::Write;

use super::stage::Stage;

fn columns(stage: &Stage, table: &str) -> String {
    let sql = format!(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = '{table}' ORDER BY ordinal_position"
    );
    stage.ask(&sql)
}

#[test]
fn types_fit_the_whole_file() {
    let stage = Stage::with_database();
    let mut csv = String::from("i,big,x,b,d,t,z,s,none\n");
    for row in 0..20_000 {
        csv.push_str(&format!(
            "{row},9007199254740993,{row}.5,true,2013-01-0{},2013-01-01 10:00:00,007,text,\n",
            row % 9 + 1
        ));
    }
    csv.push_str("-1,1,2,FALSE,2013-12-31,2013-01-01T10:00:00Z,008,\"\",\n");
    stage.write("t.csv", &csv);
    stage.good(&["import", "db", "t", "t.csv", "--create"]);
    assert_eq!(
        columns(&stage, "t"),
        "i,bigint;big,bigint;x,double precision;b,boolean;d,date;t,timestamp without time zone;z,text;s,text;none,text"
    );
    assert_eq!(stage.ask("SELECT count(*), min(i), count(none), count(s) FROM t"), "20001,-1,0,20001");
    assert_eq!(stage.ask("SELECT z, s, t FROM t WHERE i = -1"), "008,\"\",2013-01-01 10:00:00");
    stage.good(&["verify", "db"]);
}

#[test]
fn na_is_text_until_told_otherwise() {
    let stage = Stage::with_database();
    stage.write("t.csv", "a,b\n1,NA\nNA,2\n");
    stage.good(&["import", "db", "t", "t.csv", "--create"]);
    assert_eq!(columns(&stage, "t"), "a,text;b,text");
    stage.good(&["import", "db", "u", "t.csv", "--create", "--null", "NA"]);
    assert_eq!(columns(&stage, "u"), "a,bigint;b,bigint");
    assert_eq!(stage.ask("SELECT count(a), count(*) FROM u"), "1,2");
}

#[test]
fn empty_is_null_and_quoted_empty_is_not() {
    let stage = Stage::with_database();
    stage.write("t.csv", "a,b\n,\"\"\n\"x\ny\",\"NA\"\n");
    stage.good(&["import", "db", "t", "t.csv", "--create", "--null", "NA"]);
    assert_eq!(stage.ask("SELECT count(*) FROM t WHERE a IS NULL AND b = ''"), "1");
    assert_eq!(stage.ask("SELECT count(*) FROM t WHERE b = 'NA'"), "1");
}

#[test]
fn ragged_and_mistyped_lines_are_named_and_nothing_is_kept() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT, b DATE)"]);
    let mut csv = String::from("a,b\n");
    (0..40_000).for_each(|row| csv.push_str(&format!("{row},2013-01-01\n")));
    for (line, says) in [
        ("7", &["line 40002", "1 fields"][..]),
        ("7,2013-01-01,extra", &["line 40002", "3 fields", "extra"]),
        ("seven,2013-01-01", &["line 40002", "column a", "seven", "integer"]),
        ("7,2013-02-30", &["line 40002", "column b", "2013-02-30"]),
        ("99999999999,2013-01-01", &["line 40002", "99999999999"]),
        ("\"7,2013-01-01", &["line 40002", "quote"]),
        ("7,\"2013-01-01\"x", &["line 40002", "quote"]),
    ] {
        stage.write("t.csv", format!("{csv}{line}\n"));
        stage.refused(&["import", "db", "t", "t.csv"], 1, &[says, &["t.csv"]].concat());
        assert_eq!(stage.ask("SELECT count(*) FROM t"), "0", "{line}");
    }
    stage.write("t.csv", b"a,b\n7,\xFF\n");
    stage.refused(&["import", "db", "t", "t.csv"], 1, &["line 2", "UTF-8"]);
    stage.refused(&["import", "db", "u", "t.csv", "--create"], 1, &["line 2", "UTF-8"]);
    stage.refused(&["db", "SELECT * FROM u"], 1, &["u"]);
}

#[test]
fn names_of_columns_are_matched() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT DEFAULT 5, b TEXT, id INT GENERATED ALWAYS AS IDENTITY)"]);
    stage.write("t.csv", "\u{feff}B\r\nx\r\ny\r\n");
    stage.good(&["import", "db", "t", "t.csv"]);
    assert_eq!(stage.ask("SELECT a, b, id FROM t ORDER BY id"), "5,x,1;5,y,2");
    stage.write("u.csv", "a,c\n1,2\n");
    stage.refused(&["import", "db", "t", "u.csv"], 1, &["no column c"]);
    stage.write("v.csv", "7,z,9\n");
    stage.good(&["import", "db", "t", "v.csv", "--no-header"]);
    assert_eq!(stage.ask("SELECT a, b FROM t WHERE id = 9"), "7,z");
    stage.write("w.csv", "a;b\n3;w\n");
    stage.good(&["import", "db", "t", "w.csv", "--delimiter", ";"]);
    assert_eq!(stage.ask("SELECT a FROM t WHERE b = 'w'"), "3");
    stage.refused(&["import", "db", "nowhere", "w.csv"], 1, &["no table nowhere", "--create"]);
    stage.refused(&["import", "db", "t", "absent.csv"], 1, &["absent.csv"]);
}

#[test]
fn keys_are_made_and_kept() {
    let stage = Stage::with_database();
    stage.write("t.csv", "Code,Name\n1,a\n2,b\n1,c\n");
    stage.refused(&["import", "db", "t", "t.csv", "--create", "--key", "code"], 1, &["t"]);
    stage.refused(&["db", "SELECT * FROM t"], 1, &[]);
    stage.refused(&["import", "db", "t", "t.csv", "--create", "--key", "nothing"], 1, &["no column nothing"]);
    stage.write("t.csv", "Code,Name\n1,a\n2,b\n");
    stage.good(&["import", "db", "t", "t.csv", "--create", "--key", "code"]);
    assert_eq!(stage.ask("SELECT name FROM t WHERE code = 2"), "b");
    stage.refused(&["import", "db", "t", "t.csv"], 1, &["t"]);
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "2");
    stage.refused(&["import", "db", "t", "t.csv", "--create"], 1, &["t"]);
}

#[test]
fn gzip_and_zip_are_unpacked() {
    let stage = Stage::with_database();
    let csv: String = std::iter::once("a\n".to_owned()).chain((0..50_000).map(|row| format!("{row}\n"))).collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(csv.as_bytes()).expect("packed");
    stage.write("t.csv.gz", gzip.finish().expect("packed"));
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file("inner.csv", zip::write::SimpleFileOptions::default()).expect("a member");
    zip.write_all(csv.as_bytes()).expect("packed");
    stage.write("t.zip", zip.finish().expect("packed").into_inner());
    for file in ["t.csv.gz", "t.zip"] {
        stage.good(&["import", "db", "t", file, "--create"]);
        assert_eq!(stage.ask("SELECT count(*), sum(a) FROM t"), "50000,1249975000");
        stage.good(&["db", "DROP TABLE t"]);
        let mut cut = stage.read(file);
        cut.truncate(cut.len() / 2);
        stage.write("cut.csv.gz", cut);
        stage.refused(&["import", "db", "t", "cut.csv.gz", "--create"], 1, &["cut.csv.gz"]);
    }
}

#[test]
fn json_lines_keep_their_digits() {
    let stage = Stage::with_database();
    let lines = "{\"a\":1,\"b\":\"x\",\"d\":\"2013-01-01\"}\n\n{\"b\":null,\"a\":2.5,\"c\":{\"k\":[1]}}\n{}\n";
    stage.write("t.jsonl", lines);
    stage.good(&["import", "db", "t", "t.jsonl", "--create"]);
    assert_eq!(columns(&stage, "t"), "a,double precision;b,text;d,date;c,text");
    assert_eq!(stage.ask("SELECT a, b, c FROM t ORDER BY a NULLS LAST"), "1,x,;2.5,,\"{\"\"k\"\":[1]}\";,,");
    stage.good(&["db", "CREATE TABLE n (d NUMERIC(38,10))"]);
    stage.write("n.jsonl", "{\"d\":1234567890123456789012345678.0123456789}\n");
    stage.good(&["import", "db", "n", "n.jsonl"]);
    assert_eq!(stage.ask("SELECT d FROM n"), "1234567890123456789012345678.0123456789");
    for (line, says) in [
        ("[1]", &["line 2", "object"][..]),
        ("{\"d\":\"abc\"}", &["line 2", "column d", "abc"]),
        ("{\"d\":1,\"d\":2}", &["line 2", "twice"]),
        ("{\"d\":1", &["line 2"]),
    ] {
        stage.write("bad.jsonl", format!("{{\"d\":1}}\n{line}\n"));
        stage.refused(&["import", "db", "n", "bad.jsonl"], 1, says);
    }
    assert_eq!(stage.ask("SELECT count(*) FROM n"), "1");
}

#[test]
fn batches_are_commits_of_their_own() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT)"]);
    let rows = |from: u32, to: u32| -> String { (from..to).map(|row| format!("{row}\n")).collect() };
    stage.write("t.csv", format!("a\n{}", rows(0, 100_000)));
    stage.good(&["import", "db", "t", "t.csv", "--batch", "30000"]);
    assert_eq!(stage.ask("SELECT count(*), sum(a) FROM t"), "100000,4999950000");
    stage.good(&["db", "TRUNCATE t"]);
    stage.write("t.csv", format!("a\n{}x\n", rows(0, 100_000)));
    stage.refused(&["import", "db", "t", "t.csv", "--batch", "7000"], 1, &["line 100002"]);
    assert_eq!(
        stage.ask("SELECT count(*), max(a) FROM t"),
        "98000,97999",
        "all batches before the one with the bad line"
    );
    // Rows before a bad one, of a table that knows, too; and of lines of JSON.
    stage.good(&["db", "CREATE TABLE k (a INT PRIMARY KEY)"]);
    stage.write("k.csv", "a\n1\n2\n3\n2\n4\n");
    stage.write("k.jsonl", "{\"a\":5}\n{\"a\":6}\n{\"a\":7,\"a\":8}\n");
    stage.write("w.csv", "a\n8\n9\n10,x\n11\n");
    for (file, batch, rows, says) in
        [("k.csv", "1", 3, "key"), ("k.jsonl", "1", 2, "line 3"), ("w.csv", "2", 2, "line 4")]
    {
        let told = stage.refused(&["import", "db", "k", file, "--batch", batch, "-q"], 1, &[says]);
        assert!(told.contains(&format!("note: the first {rows} rows of {file} are in")), "{told}");
    }
    assert_eq!(stage.ask("SELECT string_agg(CAST(a AS TEXT), ' ' ORDER BY a) FROM k"), "1 2 3 5 6 8 9");
    // Without batches none of a file is in.
    stage.write("whole.csv", "a\n20\n21\n10,x\n");
    stage.refused(&["import", "db", "k", "whole.csv"], 1, &["line 4"]);
    assert_eq!(stage.ask("SELECT count(*) FROM k WHERE a > 9"), "0");
}

#[test]
fn what_is_exported_as_json_comes_back() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, NULL), (3, '},{ \"')"]);
    stage.good(&["export", "db", "t", "t.json", "--format", "json"]);
    stage.good(&["import", "db", "u", "t.json", "--create"]);
    assert_eq!(stage.ask("SELECT count(*) FROM t NATURAL JOIN u"), "2");
    assert_eq!(stage.ask("SELECT a FROM u WHERE b IS NULL"), "2");
    stage.write("bad.json", "[{\"a\":1},\n{\"a\":\"x\"}]");
    stage.refused(&["import", "db", "u", "bad.json"], 1, &["line 2", "column a"]);
}

#[test]
fn many_files_make_one_table() {
    let stage = Stage::with_database();
    stage.write("a.csv", "x,y\n1,a\n");
    stage.write("b.csv", "y,x\nb,2.5\n");
    stage.good(&["import", "db", "t", "a.csv", "b.csv", "--create"]);
    assert_eq!(stage.ask("SELECT x, y FROM t ORDER BY x"), "1,a;2.5,b");
    stage.write("c.csv", "x,y\nz,c\n");
    stage.refused(&["import", "db", "t", "a.csv", "c.csv"], 1, &["c.csv", "line 2"]);
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "3", "the file before it is whole");
}

#[test]
fn standard_input_is_a_file_too() {
    let stage = Stage::with_database();
    let ended = stage.run_with_input(&["import", "db", "t", "-", "--create"], "a\n1\n2\n");
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(stage.ask("SELECT sum(a) FROM t"), "3");
}

#[test]
fn empty_and_foreign_files_are_refused() {
    let stage = Stage::with_database();
    stage.write("empty.csv", "");
    stage.refused(&["import", "db", "t", "empty.csv", "--create"], 1, &["empty.csv"]);
    stage.write("t.parquet", "not Parquet at all");
    stage.refused(&["import", "db", "t", "t.parquet", "--create"], 1, &["t.parquet"]);
    stage.write("t.zip", b"PK\x03\x04 and nothing else");
    stage.refused(&["import", "db", "t", "t.zip", "--create"], 1, &["t.zip"]);
    stage.write("header.csv", "a,b\n");
    stage.good(&["import", "db", "t", "header.csv", "--create"]);
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "0");
}

#[test]
fn an_archive_without_files_is_no_table() {
    let stage = Stage::with_database();
    stage.write("none.zip", [&b"PK\x05\x06"[..], &[0; 18]].concat());
    stage.refused(&["import", "db", "t", "none.zip", "--create"], 1, &["holds 0 files", "none.zip"]);
    assert_eq!(stage.ask("SELECT count(*) FROM information_schema.tables WHERE table_name = 't'"), "0");
}

#[test]
fn a_pipe_is_read_like_a_file() {
    let stage = Stage::with_database();
    nix::unistd::mkfifo(&stage.path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let path = stage.path("pipe");
    let writer = std::thread::spawn(move || std::fs::write(path, "a,b\n1,x\n2,y\n").expect("written"));
    stage.good(&["import", "db", "t", "pipe", "--create"]);
    writer.join().expect("ends");
    assert_eq!(stage.ask("SELECT a, b FROM t ORDER BY a"), "1,x;2,y");
}

#[test]
fn numbers_out_of_range_are_refused_with_their_line() {
    let stage = Stage::with_database();
    stage.good(&[
        "db",
        "CREATE TABLE t (r REAL, d DOUBLE PRECISION);
         CREATE TABLE s (ts TIMESTAMP PRIMARY KEY, d DOUBLE PRECISION) WITH (engine = 'series')",
    ]);
    stage.write("r.csv", "r,d\n1,1\n1e39,1\n");
    stage.refused(&["import", "db", "t", "r.csv"], 1, &["line 3", "1e39", "real"]);
    stage.write("d.jsonl", "{\"d\":1}\n{\"d\":1e309}\n");
    stage.refused(&["import", "db", "t", "d.jsonl"], 1, &["line 2", "1e309", "double precision"]);
    stage.write("s.csv", "ts,d\n2024-01-01,1e309\n");
    stage.refused(&["import", "db", "s", "s.csv"], 1, &["line 2", "1e309"]);
    stage.write("zero.jsonl", "{\"a\":\"x\\u0000y\"}\n");
    stage.refused(&["import", "db", "z", "zero.jsonl", "--create"], 1, &["line 1"]);
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "0");
    stage.write("inf.csv", "r,d\ninf,-Infinity\n");
    stage.good(&["import", "db", "t", "inf.csv"]);
    assert_eq!(stage.ask("SELECT r, d FROM t"), "Infinity,-Infinity");
}

#[test]
fn no_digit_is_lost_where_a_table_is_made() {
    let stage = Stage::with_database();
    stage.write("n.csv", "n\n12345678901234567.89\n0.5\n");
    stage.good(&["import", "db", "n", "n.csv", "--create"]);
    assert_eq!(stage.ask("SELECT n FROM n ORDER BY n DESC LIMIT 1"), "12345678901234567.89");
    stage.write("m.jsonl", "{\"n\":0.12345678901234567890}\n{\"n\":7}\n");
    stage.good(&["import", "db", "m", "m.jsonl", "--create"]);
    assert_eq!(stage.ask("SELECT n FROM m ORDER BY n LIMIT 1"), "0.12345678901234567890");
}

#[test]
fn a_file_that_is_called_an_archive_and_is_none_is_no_text() {
    let stage = Stage::with_database();
    for name in ["t.zip", "t.csv.gz"] {
        stage.write(name, "a\n1\n");
        stage.refused(&["import", "db", "t", name, "--create"], 1, &[name, "though it is called one"]);
    }
    stage.write("t.csv.zst", b"\x28\xB5\x2F\xFD");
    stage.refused(&["import", "db", "t", "t.csv.zst", "--create"], 1, &["not supported: files packed with zstd"]);
    assert_eq!(stage.ask("SELECT count(*) FROM information_schema.tables WHERE table_name = 't'"), "0");
}

#[test]
fn what_is_wrong_in_a_file_is_told_by_its_line() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT, b TEXT)"]);
    for (name, content, says) in [
        ("t.csv", "a,b\n1,x\n2\n", "(t.csv line 3)"),
        ("t.csv", "a,b\n1,x\nz,y\n", "(t.csv line 3)"),
        ("t.csv", "a,b\n1,\"x\n", "(t.csv line 2)"),
        ("t.csv", "a,a\n1,1\n", "(t.csv line 1)"),
        ("t.jsonl", "{\"a\":1}\n{\"a\":\n", "(t.jsonl line 2)"),
        ("t.json", "[{\"a\":1},\n7]", "(t.json line 2)"),
    ] {
        stage.write(name, content);
        stage.refused(&["import", "db", "t", name], 1, &[says]);
    }
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "0");
}
