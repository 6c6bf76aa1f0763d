//! Tables out to files, and back.

use std::sync::Arc;

use counterfoil::arrow::array::{ArrayRef, Int32Array, NullArray, RecordBatch};
use counterfoil::arrow::ipc::CompressionType;
use counterfoil::arrow::ipc::writer::{IpcWriteOptions, StreamWriter};

use super::stage::Stage;

const TABLE: &str = "CREATE TABLE t (
    id INTEGER PRIMARY KEY, b BOOLEAN, s SMALLINT, l BIGINT, r REAL, x DOUBLE PRECISION, n NUMERIC(20,4), v VARCHAR(10),
    t TEXT, y BYTEA, d DATE, c TIME, ts TIMESTAMP, tz TIMESTAMPTZ, u UUID);
  INSERT INTO t VALUES
    (1, true, -3, 9007199254740993, 1.5, 0.1, 12345.6789, 'v', 'a,\"b\"' || chr(10) || 'c', '\\xdeadbeef', '2013-01-01',
     '10:00:01.5', '2013-01-01 10:00:00.000001', '2013-01-01 10:00:00+02', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, false, 0, 0, 'NaN', 'Infinity', 0, '', '', '', '0001-01-01', '00:00', '9999-12-31 23:59:59', 'epoch',
     '00000000-0000-0000-0000-000000000000')";

#[test]
fn every_type_comes_back_through_every_format() {
    let stage = Stage::with_database();
    stage.good(&["db", TABLE]);
    let expected = stage.good(&["db", "SELECT * FROM t ORDER BY id"]);
    for file in ["t.csv", "t.jsonl", "t.parquet", "t.arrow"] {
        stage.good(&["export", "db", "t", file]);
        stage.good(&["db", "TRUNCATE t"]);
        stage.good(&["import", "db", "t", file]);
        assert_eq!(stage.good(&["db", "SELECT * FROM t ORDER BY id"]), expected, "{file}");
    }
}

/// An Arrow stream of one column.
fn stream(column: ArrayRef, options: IpcWriteOptions) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter([("id", column)]).expect("rows");
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options).expect("a stream");
    writer.write(&batch).expect("written");
    writer.into_inner().expect("ended")
}

fn packed() -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME));
    stream(Arc::new(Int32Array::from_iter_values(0..9999)), options.expect("known"))
}

fn nulls() -> Vec<u8> {
    stream(Arc::new(NullArray::new(1 << 40)), IpcWriteOptions::default())
}

#[test]
fn an_arrow_stream_makes_a_table_and_lies_about_nothing() {
    let stage = Stage::with_database();
    stage.good(&["db", TABLE]);
    stage.good(&["export", "db", "t", "t.arrow"]);
    stage.good(&["import", "db", "u", "t.arrow", "--create"]);
    let all = |table: &str| stage.good(&["db", &format!("SELECT id, l, x, t, d FROM {table} ORDER BY id")]);
    assert_eq!(all("u"), all("t"));
    let whole = stage.read("t.arrow");
    // A length that is a lie, a stream that breaks off, the other form, and noise.
    let mut long = whole.clone();
    long[4..8].copy_from_slice(&i32::MAX.to_le_bytes());
    for (name, bytes) in [
        ("long", &long[..]),
        ("cut", &whole[..whole.len() / 2]),
        ("file", b"ARROW1\0\0"),
        ("noise", &[7; 999]),
        ("short", &whole[..6]),
    ] {
        stage.write("bad.arrow", bytes);
        let told = stage.run(&["import", "db", "bad", "bad.arrow", "--create"]);
        assert!(told.code == 1 && told.err.contains("Arrow"), "{name}: {} {}", told.code, told.err);
    }
    // What is packed says how long it becomes, and rows that take no bytes are as many as they say.
    stage.write("packed.arrow", packed());
    stage.refused(&["import", "db", "bad", "packed.arrow", "--create"], 1, &["an Arrow stream that is packed"]);
    stage.write("nulls.arrow", nulls());
    stage.refused(&["import", "db", "t", "nulls.arrow"], 1, &["more rows than bits"]);
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x41;
        stage.write("bad.arrow", &bytes);
        let told = stage.run(&["import", "db", "t", "bad.arrow"]);
        assert!([0, 1].contains(&told.code), "byte {at}: {} {}", told.code, told.err);
        stage.good(&["db", "TRUNCATE t"]);
    }
}

#[test]
fn queries_and_pipes() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2), (NULL)"]);
    stage.good(&["export", "db", "--query", "SELECT a * 2 AS b FROM t WHERE a > 1", "q.csv"]);
    assert_eq!(stage.text("q.csv"), "b\n4\n");
    assert_eq!(stage.good(&["export", "db", "t", "-", "--null", "-", "--no-header"]), "1\n2\n-\n");
    stage.good(&["export", "db", "t", "t.dat", "--format", "jsonl"]);
    assert_eq!(stage.text("t.dat"), "{\"a\":1}\n{\"a\":2}\n{\"a\":null}\n");
    stage.good(&["import", "db", "t", "t.dat", "--format", "jsonl"]);
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "6");
    stage.refused(&["export", "db", "nowhere", "x.csv"], 1, &["nowhere"]);
    stage.refused(&["export", "db", "--query", "SELECT 1/0", "x.csv"], 1, &[]);
    assert!(!stage.path("x.csv").exists());
    stage.refused(&["export", "db", "t", "absent/x.csv"], 1, &["absent/x.csv"]);
}

#[test]
fn one_column_of_nulls_comes_back() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a TEXT); INSERT INTO t VALUES (NULL), (''), ('x'), (NULL)"]);
    stage.good(&["export", "db", "t", "t.csv"]);
    assert_eq!(stage.text("t.csv"), "a\n\n\"\"\nx\n\n");
    stage.good(&["db", "TRUNCATE t"]);
    stage.good(&["import", "db", "t", "t.csv"]);
    assert_eq!(stage.ask("SELECT count(*), count(a) FROM t"), "4,2");
}

#[test]
fn everything_is_rebuilt() {
    let stage = Stage::with_database();
    stage.good(&[
        "db",
        "CREATE TABLE parent (a INT, b INT, PRIMARY KEY (a, b), UNIQUE (b), CHECK (a > 0));
         CREATE TABLE child (id BIGINT GENERATED ALWAYS AS IDENTITY, a INT, b INT DEFAULT 5, \"Odd name\" TEXT NOT NULL,
             FOREIGN KEY (a, b) REFERENCES parent (a, b) ON DELETE CASCADE);
         CREATE INDEX child_b ON child (b);
         CREATE VIEW v AS SELECT \"Odd name\" FROM child;
         INSERT INTO parent VALUES (1, 2), (3, 4);
         INSERT INTO child (a, b, \"Odd name\") VALUES (1, 2, 'x'), (NULL, NULL, ''), (3, 4, 'z')",
    ]);
    stage.run_with_input(&["kv", "db", "put", "odd/name \"1\""], "value");
    for (folder, format) in [("all-csv", "csv"), ("all-parquet", "parquet"), ("all-jsonl", "jsonl")] {
        stage.good(&["export", "db", "--all", folder, "--format", format]);
        let other = format!("{folder}.db");
        stage.good(&["init", &other]);
        stage.good(&["import", &other, "--all", folder]);
        for sql in ["SELECT * FROM parent ORDER BY a", "SELECT * FROM child ORDER BY id", "SELECT * FROM v ORDER BY 1"]
        {
            assert_eq!(stage.good(&[&other, sql]), stage.good(&["db", sql]), "{folder}: {sql}");
        }
        assert_eq!(stage.good(&["kv", &other, "get", "odd/name \"1\""]), "value");
        stage.good(&[&other, "INSERT INTO child (a, b, \"Odd name\") VALUES (1, 2, 'new')"]);
        assert_eq!(stage.good(&[&other, "SELECT max(id) FROM child", "--no-header"]), "4\n");
        stage.refused(&[&other, "INSERT INTO child (a, b, \"Odd name\") VALUES (9, 9, 'new')"], 1, &["child"]);
        stage.refused(&[&other, "INSERT INTO parent VALUES (0, 9)"], 1, &["parent"]);
        stage.good(&["verify", &other]);
        stage.refused(&["import", &other, "--all", folder], 1, &["already"]);
    }
    stage.refused(&["export", "db", "--all", "all-csv"], 1, &["all-csv"]);
}

#[test]
fn what_leans_on_another_is_rebuilt_behind_it() {
    let stage = Stage::with_database();
    stage.good(&[
        "db",
        "CREATE TABLE t (a INT PRIMARY KEY, b INT); INSERT INTO t VALUES (1, 1), (2, 1);
         CREATE VIEW z AS SELECT a FROM t;
         CREATE VIEW b AS SELECT a FROM z WHERE a IN (SELECT a FROM t);
         CREATE VIEW a AS WITH z AS (SELECT a + 1 AS a FROM b) SELECT a FROM z;
         CREATE TABLE b_parent (id INT PRIMARY KEY, up INT REFERENCES b_parent (id));
         CREATE TABLE a_child (id INT PRIMARY KEY REFERENCES b_parent (id) NOT ENFORCED);
         INSERT INTO b_parent VALUES (1, 1); INSERT INTO a_child VALUES (9)",
    ]);
    stage.good(&["export", "db", "--all", "all"]);
    stage.good(&["init", "again"]);
    stage.good(&["import", "again", "--all", "all"]);
    for sql in ["SELECT * FROM a ORDER BY a", "SELECT * FROM b_parent", "SELECT * FROM a_child"] {
        assert_eq!(stage.good(&["again", sql]), stage.good(&["db", sql]), "{sql}");
    }
    stage.good(&["export", "again", "--all", "twice"]);
    assert_eq!(stage.text("twice/schema.sql"), stage.text("all/schema.sql"));
}

#[test]
fn an_interrupted_export_leaves_nothing() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('tHe-MaRkEr')"]);
    std::fs::create_dir(stage.path("out")).expect("a folder");
    let listing = || std::fs::read_dir(stage.path("out")).expect("a folder").flatten().collect::<Vec<_>>();
    for signal in [nix::sys::signal::SIGINT, nix::sys::signal::SIGTERM] {
        let query = "SELECT a, i, j FROM t, generate_series(1, 100000) x(i), generate_series(1, 100000) y(j)";
        let child = stage.spawn(&["export", "db", "--query", query, "out/file.csv"]);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while !listing().iter().any(|entry| entry.metadata().is_ok_and(|metadata| metadata.len() > 0)) {
            assert!(std::time::Instant::now() < deadline, "it does not begin");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let process = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a process"));
        nix::sys::signal::kill(process, signal).expect("sent");
        let ended = super::stage::ended(child.wait_with_output().expect("ends"));
        assert_eq!(ended.code, 130);
        ended.says(&["interrupted"]);
        assert!(listing().is_empty(), "{:?}", listing());
    }
}

/// Of a folder with some of the tables nothing says that there are more.
#[test]
fn an_interrupted_export_of_everything_leaves_nothing() {
    let stage = Stage::with_database();
    let rows = "SELECT i AS a, repeat('x', 100) AS b FROM generate_series(1, 300000) s(i)";
    stage.good(&["db", &format!("CREATE TABLE a (x INT); CREATE TABLE t AS {rows}")]);
    for signal in [nix::sys::signal::SIGINT, nix::sys::signal::SIGTERM] {
        let mut child = stage.spawn(&["export", "db", "--all", "out"]);
        while !stage.path("out/a.csv").exists() {
            assert!(child.try_wait().expect("asked").is_none(), "it ended before it was interrupted");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let process = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a process"));
        nix::sys::signal::kill(process, signal).expect("sent");
        let ended = super::stage::ended(child.wait_with_output().expect("ends"));
        assert_eq!(ended.code, 130, "{}", ended.err);
        ended.says(&["interrupted: nothing was exported"]);
        assert!(!stage.path("out").exists());
    }
}

/// What could not be written is not in the way of trying again.
#[test]
fn a_full_disk_leaves_nothing_half_made() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT)"]);
    let attempts: [(&str, &[&str]); 4] = [
        ("key", &["keygen", "-o", "key"]),
        ("shares", &["key", "split", "db", "--need", "2", "--of", "3", "shares"]),
        ("map.svg", &["inspect", "db", "--svg", "map.svg"]),
        ("all", &["export", "db", "--all", "all"]),
    ];
    for (made, words) in attempts {
        let ended = stage.run_where_it_is_full(words);
        assert_eq!(ended.code, 2, "{words:?}: {}", ended.err);
        assert!(!stage.path(made).exists(), "{words:?}");
        stage.good(words);
        assert!(stage.path(made).exists(), "{words:?}");
    }
}

#[test]
fn everything_is_as_of_one_moment() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE a (i INT)", "-c", "CREATE TABLE b (i INT)"]);
    let mut writer = stage.spawn(&["db"]);
    let mut input = writer.stdin.take().expect("a pipe");
    let writing = std::thread::spawn(move || {
        for i in 0..1000 {
            let both = format!("BEGIN; INSERT INTO a VALUES ({i}); INSERT INTO b VALUES ({i}); COMMIT;");
            let tables = format!("CREATE TABLE t{i} (x INT); DROP TABLE t{i};");
            if std::io::Write::write_all(&mut input, format!("{both} {tables}\n").as_bytes()).is_err() {
                return;
            }
        }
    });
    for turn in 0..6 {
        let folder = format!("all{turn}");
        stage.good(&["export", "db", "--all", &folder]);
        let lines = |name: &str| stage.text(&format!("{folder}/{name}")).lines().count();
        assert_eq!(lines("a.csv"), lines("b.csv"));
        let made = stage.text(&format!("{folder}/schema.sql")).matches("CREATE TABLE").count();
        assert_eq!(made, lines("tables.tsv"), "turn {turn}");
    }
    writer.kill().expect("killed");
    writer.wait().expect("ends");
    writing.join().expect("ends");
}

#[test]
fn names_that_promise_what_is_not_done_are_refused() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('x')"]);
    for name in ["t.csv.gz", "t.zip", "t.csv.zst"] {
        stage.refused(&["export", "db", "t", name], 1, &["not supported: packing", name]);
        assert!(!stage.path(name).exists());
    }
    stage.good(&["export", "db", "t", "t.arrow"]);
    assert!(stage.read("t.arrow").starts_with(&[0xFF; 4]), "an IPC stream");
}

/// Rows in the clear are for whoever asked for them, whichever command writes them.
#[test]
fn what_is_written_in_the_clear_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT); INSERT INTO t VALUES (1)"]);
    assert_eq!(stage.run_with_input(&["kv", "db", "put", "name", "-"], "value").code, 0);
    stage.good(&["export", "db", "t", "t.csv"]);
    stage.good(&["export", "db", "--all", "all"]);
    stage.good(&["salvage", "db", "saved"]);
    stage.good(&["db", "COPY t TO 'copied.csv'"]);
    let inside = |folder: &str| {
        std::fs::read_dir(stage.path(folder)).expect("a folder").map(|entry| entry.expect("an entry").path())
    };
    let files: Vec<_> = [stage.path("t.csv"), stage.path("copied.csv")]
        .into_iter()
        .chain(["all", "all/records", "saved", "saved/records"].into_iter().flat_map(inside))
        .filter(|path| path.is_file())
        .collect();
    assert!(files.len() >= 11, "{files:?}");
    for file in files {
        let mode = file.metadata().expect("is there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
    }
    // A file that is there keeps what its owner gave it.
    std::fs::set_permissions(stage.path("copied.csv"), std::fs::Permissions::from_mode(0o644)).expect("set");
    stage.good(&["db", "COPY t TO 'copied.csv'"]);
    assert_eq!(stage.path("copied.csv").metadata().expect("is there").permissions().mode() & 0o777, 0o644);
}

/// Tables and records are one transaction: what fails at the last of them leaves nothing.
#[test]
fn all_of_a_folder_is_brought_in_or_nothing() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT); INSERT INTO t VALUES (1)"]);
    for name in ["one", "two"] {
        assert_eq!(stage.run_with_input(&["kv", "db", "put", name, "-"], name).code, 0);
    }
    stage.good(&["export", "db", "--all", "all"]);
    std::fs::rename(stage.path("all/records/1"), stage.path("away")).expect("renamed");
    stage.good(&["init", "other"]);
    stage.refused(&["import", "other", "--all", "all"], 1, &["all/records/1"]);
    assert_eq!(
        stage.good(&[
            "other",
            "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'",
            "--no-header"
        ]),
        "0\n"
    );
    assert_eq!(stage.good(&["kv", "other", "list"]), "");
    std::fs::rename(stage.path("away"), stage.path("all/records/1")).expect("renamed");
    stage.good(&["import", "other", "--all", "all"]);
    assert_eq!(stage.good(&["kv", "other", "get", "two"]), "two");
    stage.good(&["verify", "other"]);
}

#[test]
fn what_the_database_says_of_itself_is_exported_by_its_name() {
    let stage = Stage::with_database();
    stage.good(&["export", "db", "counterfoil.incidents", "incidents.csv"]);
    assert!(stage.text("incidents.csv").contains("kind"));
    stage.good(&["db", "CREATE TABLE \"a.b\" (x INT); INSERT INTO \"a.b\" VALUES (7)"]);
    stage.good(&["export", "db", "a.b", "ab.csv"]);
    assert_eq!(stage.text("ab.csv"), "x\n7\n");
    stage.good(&["db", "CREATE TABLE own (z INT); CREATE TABLE \"Own\" (y INT)"]);
    stage.good(&["export", "db", "public.own", "lower.csv"]);
    assert_eq!(stage.text("lower.csv"), "z\n");
    stage.good(&["export", "db", "public.\"Own\"", "upper.csv"]);
    assert_eq!(stage.text("upper.csv"), "y\n");
    // A view whose name has a dot is found by it.
    stage.good(&["db", "CREATE VIEW \"v.w\" AS SELECT 8 AS y"]);
    for name in ["\"v.w\"", "v.w"] {
        stage.good(&["export", "db", name, "vw.csv"]);
        assert_eq!(stage.text("vw.csv"), "y\n8\n");
    }
}
