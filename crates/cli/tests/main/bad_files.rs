//! What is no database, or no whole one.

use super::stage::Stage;

const SQL: &str = "SELECT 1";

#[test]
fn what_is_no_database_is_exit_1() {
    let stage = Stage::new();
    stage.refused(&["absent", SQL], 1, &["absent", "no such database"]);
    stage.write("empty", "");
    stage.write("text", "hello\n".repeat(10_000));
    stage.write("noise", noise(3 << 20));
    std::fs::create_dir(stage.path("folder")).expect("a folder");
    for name in ["empty", "text", "noise", "folder"] {
        stage.refused(&[name, SQL], 1, &[name, "not a Counterfoil database"]);
        stage.refused(&["verify", name], 1, &[name]);
        stage.refused(&["inspect", name], 1, &[name]);
        stage.refused(&["backup", name, "copy"], 1, &[]);
    }
    assert!(!stage.path("copy").exists());
}

#[test]
fn a_file_cut_short_is_never_believed() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT); INSERT INTO t SELECT i FROM generate_series(1, 100000) s(i)"]);
    let whole = stage.read("db");
    for length in [1, 100, 2048, 4096, 300_000, whole.len() / 4, whole.len() / 2, whole.len() - 5000] {
        stage.write("db", &whole[..length]);
        let ended = stage.run(&["db", "SELECT count(*), sum(a) FROM t", "--no-header"]);
        match ended.code {
            0 => assert_eq!(ended.out, "100000,5000050000\n", "cut at {length}"),
            1 | 3 => ended.says(&[]),
            code => panic!("cut at {length}: exit code {code}: {}", ended.err),
        }
    }
    stage.write("db", &whole);
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "100000");
}

#[test]
fn what_cannot_be_written_is_exit_2() {
    let stage = Stage::with_database();
    stage.refused(&["init", "absent/db"], 1, &["absent/db"]);
    stage.good(&["db", "CREATE TABLE t (a INT); INSERT INTO t VALUES (7)"]);
    stage.refused(&["export", "db", "t", "/proc/nothing.csv"], 1, &[]);
    let mut full = stage.command(&["export", "db", "t", "/dev/full"]);
    let ended = super::stage::ended(full.output().expect("runs"));
    assert_eq!(ended.code, 2, "{}", ended.err);
    ended.says(&["no space", "(/dev/full)"]);
}

/// The kernel refuses to let the file grow, as a full disk does.
#[test]
fn a_full_disk_is_exit_2_and_loses_nothing() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT, b TEXT); INSERT INTO t VALUES (7, 'x')"]);
    let fill = "INSERT INTO t SELECT i, repeat(md5(i::text), 50) FROM generate_series(1, 20000) s(i)";
    let limited = |words: &str| {
        let mut shell = std::process::Command::new("sh");
        let program = env!("CARGO_BIN_EXE_counterfoil");
        // Blocks of 512 bytes in some shells, of 1024 in others: 6 or 12 MiB.
        shell.args(["-c", &format!("trap '' XFSZ; ulimit -f 12288; exec '{program}' {words}")]);
        shell.current_dir(stage.folder()).env_clear();
        shell.env("COUNTERFOIL_KEY_FILE", stage.path("k")).env("COUNTERFOIL_STATE_DIR", stage.path("state"));
        super::stage::ended(shell.output().expect("runs"))
    };
    let ended = limited(&format!("db \"{fill}\""));
    assert_eq!(ended.code, 2, "{}", ended.err);
    ended.says(&["no room"]);
    assert_eq!(limited("db 'SELECT * FROM t' --no-header").out, "7,x\n");
    assert_eq!(limited("db \"INSERT INTO t VALUES (8, 'y')\"").code, 0);
    stage.good(&["verify", "db"]);
    stage.good(&["db", fill]);
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "20002");
}

/// Root may write everywhere, so a read-only mount would be needed for it: whoever else runs this needs no more.
#[test]
fn a_file_that_may_only_be_read_is_read() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT); INSERT INTO t VALUES (7)"]);
    let before = stage.read("db");
    std::fs::set_permissions(stage.path("db"), std::fs::Permissions::from_mode(0o400)).expect("set");
    assert_eq!(stage.ask("SELECT a FROM t"), "7");
    assert!(before == stage.read("db"));
    if std::fs::OpenOptions::new().write(true).open(stage.path("db")).is_err() {
        stage.refused(&["db", "DELETE FROM t"], 2, &["read"]);
    }
}

/// Reading writes nothing, to the database or beside it.
#[test]
fn reading_leaves_no_trace() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT); INSERT INTO t VALUES (7)"]);
    let listing = || {
        let mut all: Vec<(std::path::PathBuf, Vec<u8>)> = Vec::new();
        let mut folders = vec![stage.folder().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    all.push((path.clone(), std::fs::read(path).expect("read")));
                }
            }
        }
        all.sort();
        all
    };
    let before = listing();
    stage.ask("SELECT * FROM t");
    stage.good(&["verify", "db"]);
    stage.good(&["inspect", "db"]);
    stage.good(&["export", "db", "t", "-"]);
    stage.good(&["counter", "show", "db"]);
    stage.good(&["key", "list", "db"]);
    stage.good(&["kv", "db", "list"]);
    assert!(before == listing());
}

fn noise(length: usize) -> Vec<u8> {
    let mut seed = 1u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u8
    };
    (0..length).map(|_| next()).collect()
}
