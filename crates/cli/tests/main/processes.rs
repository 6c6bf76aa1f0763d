//! Several processes at one database, and those that are killed.

use std::io::{BufRead, BufReader, Write};
use std::process::Child;
use std::time::{Duration, Instant};

use super::stage::{Stage, ended};

/// A writer that has begun and waits for more.
fn writing(stage: &Stage, sql: &str) -> Child {
    begun(stage, &["db"], sql)
}

/// A shell that has run this and waits for more.
fn begun(stage: &Stage, words: &[&str], sql: &str) -> Child {
    let mut child = stage.spawn(words);
    let text = format!("{sql}; SELECT 'ready';\n");
    child.stdin.as_mut().expect("a pipe").write_all(text.as_bytes()).expect("written");
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while line != "ready\n" {
        line.clear();
        assert!(out.read_line(&mut line).expect("read") > 0, "it ended early");
    }
    child
}

/// Another program that writes SQL into a pipe may want the answer before it goes on.
#[test]
fn statements_in_a_pipe_are_answered_as_they_come() {
    let stage = Stage::with_database();
    let mut child = stage.spawn(&["db", "--no-header"]);
    let mut input = child.stdin.take().expect("a pipe");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let (sender, answers) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        while output.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            let _ = sender.send(std::mem::take(&mut line));
        }
    });
    for turn in 0..5 {
        write!(input, "SELECT 'a;b', ").expect("written");
        std::thread::sleep(Duration::from_millis(20));
        writeln!(input, "{turn};").expect("written");
        let answer = answers.recv_timeout(Duration::from_secs(60)).expect("an answer before the pipe ends");
        assert_eq!(answer, format!("a;b,{turn}\n"));
    }
    drop(input);
    assert!(child.wait().expect("ends").success());
}

#[test]
fn the_second_writer_waits_and_then_says_who_writes() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT)"]);
    let mut writer = writing(&stage, "INSERT INTO t VALUES (1)");
    let begun = Instant::now();
    let pid = writer.id().to_string();
    stage.refused(&["db", "INSERT INTO t VALUES (2)", "--lock-timeout", "0.5"], 4, &[&pid, "counterfoil", "(db)"]);
    assert!(begun.elapsed() > Duration::from_millis(450));
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "1", "readers go on");
    drop(writer.stdin.take());
    assert!(writer.wait().expect("ends").success());
    stage.good(&["db", "INSERT INTO t VALUES (2)"]);
}

#[test]
fn a_counter_is_not_forgotten_under_a_writer() {
    let stage = Stage::with_database();
    let mut writer = writing(&stage, "CREATE TABLE t (a INT)");
    let pid = writer.id().to_string();
    stage.refused(&["counter", "forget", "db", "--yes", "--lock-timeout", "0.2"], 4, &[&pid, "writing", "(db)"]);
    drop(writer.stdin.take());
    assert!(writer.wait().expect("ends").success());
    stage.good(&["verify", "db"]);
    stage.good(&["counter", "forget", "db", "--yes"]);
}

#[test]
fn a_copy_is_not_written_to_beside_its_original() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT)"]);
    stage.copy("db", "copy");
    // Both are open before either writes: nothing is wrong with the copy's version yet.
    let mut copy = begun(&stage, &["copy", "--lock-timeout", "0.2"], "SELECT count(*) FROM t");
    let mut writer = writing(&stage, "INSERT INTO t VALUES (1)");
    let pid = writer.id().to_string();
    let says = [pid.as_str(), "counterfoil", "another copy"];
    let mut input = copy.stdin.take().expect("a pipe");
    input.write_all(b"INSERT INTO t VALUES (2);\n").expect("written");
    drop(input);
    let refused = ended(copy.wait_with_output().expect("ends"));
    assert_eq!(refused.code, 4, "{}", refused.err);
    refused.says(&says);
    stage.refused(&["counter", "adopt", "copy", "--yes", "--lock-timeout", "0.2"], 4, &says);
    stage.refused(&["counter", "forget", "copy", "--yes"], 4, &says);
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "1", "readers are not held up");
    // A killed writer leaves no lock; the copy is then what it is, older.
    writer.kill().expect("killed");
    writer.wait().expect("ends");
    stage.refused(&["copy", "INSERT INTO t VALUES (2)"], 3, &["counter"]);
    stage.good(&["db", "INSERT INTO t VALUES (2)"]);
    assert_eq!(std::fs::read_dir(stage.path("state")).expect("a folder").count(), 1, "locks go with their owners");
}

#[test]
fn a_killed_writer_leaves_no_lock_and_every_commit() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT)"]);
    let mut writer =
        writing(&stage, "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); BEGIN; INSERT INTO t VALUES (3)");
    writer.kill().expect("killed");
    writer.wait().expect("ends");
    assert_eq!(stage.ask("SELECT count(*), sum(a) FROM t"), "2,3");
    stage.good(&["db", "INSERT INTO t VALUES (4)", "--lock-timeout", "0.1"]);
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "3");
    stage.good(&["verify", "db"]);
}

#[test]
fn a_reader_keeps_its_snapshot_beside_a_writer() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT); INSERT INTO t SELECT i FROM generate_series(1, 20000) s(i)"]);
    let mut reader = writing(&stage, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(a) FROM t");
    for _ in 0..5 {
        let refill = "DELETE FROM t; INSERT INTO t SELECT i FROM generate_series(1, 30000) s(i)";
        stage.good(&["sql", "db", "-c", refill, "-c", "VACUUM"]);
    }
    let mut input = reader.stdin.take().expect("a pipe");
    input.write_all(b"SELECT count(*), sum(a) FROM t;\nCOMMIT;\nSELECT count(*) FROM t;\n").expect("written");
    drop(input);
    let ended = ended(reader.wait_with_output().expect("ends"));
    assert_eq!(ended.code, 0, "{}", ended.err);
}

#[test]
fn a_killed_init_leaves_nothing_or_everything() {
    let stage = Stage::new();
    for wait in 0..12 {
        let mut init = stage.spawn(&["init", "db"]);
        std::thread::sleep(Duration::from_millis(wait * 7));
        init.kill().expect("killed");
        init.wait().expect("ends");
        if stage.path("db").exists() {
            stage.good(&["verify", "db"]);
            std::fs::remove_file(stage.path("db")).expect("removed");
        }
    }
    stage.good(&["init", "db"]);
    stage.good(&["verify", "db"]);
    assert!(!stage.path("db.creating").exists());
}

#[test]
fn many_commits_of_many_processes_add_up() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT)"]);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let stage = &stage;
            scope.spawn(move || {
                for turn in 0..5 {
                    let sql = format!("INSERT INTO t VALUES ({})", writer * 5 + turn);
                    stage.good(&["db", &sql, "--lock-timeout", "60"]);
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let mut before = 0;
                for _ in 0..8 {
                    let count: u32 = stage.ask("SELECT count(*) FROM t").parse().expect("a number");
                    assert!(count >= before);
                    before = count;
                }
            });
        }
    });
    assert_eq!(stage.ask("SELECT count(*), count(DISTINCT a) FROM t"), "20,20");
}
