//! Backups, and databases made of them.

use super::stage::Stage;

fn filled() -> Stage {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT PRIMARY KEY, b TEXT); INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 20000) s(i)"]);
    stage.run_with_input(&["kv", "db", "put", "name"], "value");
    stage
}

#[test]
fn a_backup_replaces_what_it_is_of() {
    let stage = filled();
    stage.good(&["backup", "db", "copy"]);
    stage.refused(&["backup", "db", "copy"], 1, &["copy", "already"]);
    stage.good(&["db", "DELETE FROM t"]);
    stage.copy("db", "today");
    stage.good(&["restore", "copy", "db"]);
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "20000");
    assert_eq!(stage.good(&["kv", "db", "get", "name"]), "value");
    assert_eq!(stage.ask("SELECT kind FROM counterfoil.incidents"), "restored");
    stage.good(&["verify", "db"]);
    stage.good(&["db", "INSERT INTO t VALUES (0, '')"]);
    for other in ["today", "copy"] {
        stage.refused(&[other, "SELECT 1"], 3, &[]);
    }
    // Once more, over a database that is gone.
    std::fs::remove_file(stage.path("db")).expect("removed");
    stage.good(&["restore", "copy", "db"]);
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "20000");
}

/// Ctrl-C ends each of them with 130 and takes away what was in the making.
#[test]
fn an_interrupted_copy_leaves_the_old_file_and_nothing_else() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t AS SELECT i AS a, repeat('x', 100) AS b FROM generate_series(1, 400000) s(i)"]);
    stage.good(&["backup", "db", "saved"]);
    let rows = "SELECT count(*) FROM t";
    for words in [&["backup", "db", "other"][..], &["restore", "saved", "other"], &["rekey", "db", "--data"]] {
        let mut child = stage.spawn(words);
        let on_its_way = stage.path(if words[0] == "rekey" { "db.creating" } else { "other.creating" });
        while !on_its_way.exists() {
            assert!(child.try_wait().expect("asked").is_none(), "{words:?} ended before it was interrupted");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), nix::sys::signal::Signal::SIGINT)
            .expect("sent");
        let ended = super::stage::ended(child.wait_with_output().expect("ends"));
        assert_eq!(ended.code, 130, "{words:?}: {}", ended.err);
        let meaning = if words[0] == "backup" { "there is no backup" } else { "what was not committed is not kept" };
        ended.says(&["interrupted", meaning]);
        assert!(!on_its_way.exists() && !stage.path("other").exists(), "{words:?}");
        assert_eq!(stage.ask(rows), "400000");
    }
    stage.good(&["verify", "db"]);
}

#[test]
fn as_new_is_another_database() {
    let stage = filled();
    stage.good(&["backup", "db", "copy"]);
    stage.good(&["restore", "copy", "new", "--as-new"]);
    stage.good(&["new", "DELETE FROM t WHERE a > 5"]);
    assert_eq!(stage.good(&["new", "SELECT count(*) FROM t", "--no-header"]), "5\n");
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "20000");
    assert_eq!(stage.good(&["kv", "new", "get", "name"]), "value");
    stage.good(&["verify", "new"]);
    stage.good(&["verify", "db"]);
    assert_eq!(std::fs::read_dir(stage.path("state")).expect("a folder").count(), 2);
    stage.refused(&["restore", "copy", "new"], 1, &["another database"]);
    stage.refused(&["restore", "copy", "new", "--as-new"], 1, &["already"]);
}

/// A page that is lost at the end of a plain copy makes it an older one; only the counter can say so.
#[test]
fn a_plain_copy_is_restored_with_a_word_about_what_it_may_lack() {
    let stage = filled();
    stage.copy("db", "plain");
    let ended = stage.run(&["restore", "plain", "new", "--as-new"]);
    assert!(ended.code == 0 && ended.err.contains("note: ") && ended.err.contains("no backup"), "{}", ended.err);
    assert!(ended.err.contains("knows of no later one"), "{}", ended.err);
    stage.good(&["db", "DELETE FROM t WHERE a = 1"]);
    let ended = stage.run(&["restore", "plain", "newer", "--as-new"]);
    assert!(ended.code == 0 && ended.err.contains("has seen later ones"), "{}", ended.err);
    stage.good(&["backup", "db", "copy"]);
    let ended = stage.run(&["restore", "copy", "newest", "--as-new"]);
    assert!(ended.code == 0 && !ended.err.contains("no backup"), "{}", ended.err);
}

#[test]
fn a_damaged_backup_is_refused_and_replaces_nothing() {
    let stage = filled();
    stage.good(&["backup", "db", "copy"]);
    let before = stage.read("db");
    let whole = stage.read("copy");
    // Not every page is needed: the first one from the end whose loss is noticed.
    let noticed = (1..).map(|back| whole.len() - back * 4096).find(|at| {
        let mut bytes = whole.clone();
        bytes[*at] ^= 1;
        stage.write("copy", &bytes);
        stage.run(&["restore", "copy", "probe", "--as-new"]).code == 3
    });
    assert!(noticed.is_some() && !stage.path("probe").exists());
    let ended = stage.run(&["restore", "copy", "db"]);
    assert_eq!(ended.code, 3, "{}", ended.err);
    assert!(before == stage.read("db"));
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "20000");
    stage.write("other", "something");
    stage.refused(&["restore", "other", "db"], 1, &["other", "not a Counterfoil database"]);
    stage.good(&["backup", "db", "good"]);
    stage.refused(&["restore", "good", "other"], 1, &["something else"]);
    assert_eq!(stage.text("other"), "something");
}

#[test]
fn a_backup_beside_a_writer_is_of_one_moment() {
    let stage = filled();
    let mut writer = stage.spawn(&["db"]);
    let mut input = writer.stdin.take().expect("a pipe");
    let feeder = std::thread::spawn(move || {
        use std::io::Write;
        for round in 0..400 {
            // Both tables move together: a backup that is torn shows it.
            let text = format!(
                "BEGIN; UPDATE t SET b = '{round}' WHERE a = 1; UPDATE t SET b = '{round}' WHERE a = 2; COMMIT;\n"
            );
            if input.write_all(text.as_bytes()).is_err() {
                return;
            }
        }
    });
    std::thread::sleep(std::time::Duration::from_millis(300));
    for turn in 0..5 {
        let name = format!("copy-{turn}");
        stage.good(&["backup", "db", &name]);
        let pair = stage.run(&[&name, "SELECT count(DISTINCT b) FROM t WHERE a < 3", "--no-header"]);
        assert!(pair.code == 0 || pair.code == 3, "{}", pair.err);
        stage.good(&["restore", &name, &format!("{name}-new"), "--as-new"]);
        let pair = stage.good(&[&format!("{name}-new"), "SELECT count(DISTINCT b) FROM t WHERE a < 3", "--no-header"]);
        assert!(pair == "1\n" || (turn == 0 && pair == "2\n"), "{pair}");
        stage.good(&["verify", &format!("{name}-new")]);
    }
    feeder.join().expect("fed");
    let ended = super::stage::ended(writer.wait_with_output().expect("ends"));
    assert_eq!(ended.code, 0, "{}", ended.err);
}

#[test]
fn compacting_keeps_the_rows() {
    let stage = filled();
    stage.good(&["db", "DELETE FROM t WHERE a % 2 = 0; UPDATE t SET b = 'x' WHERE a < 100"]);
    stage.good(&["reorganize", "db"]);
    stage.good(&["compact", "db"]);
    assert_eq!(stage.good(&["purge", "db"]), "not guaranteed on this medium\n");
    assert_eq!(stage.ask("SELECT count(*), sum(a) FROM t"), "10000,100000000");
    stage.good(&["verify", "db"]);
}

#[test]
fn a_killed_rekey_leaves_a_database_that_opens() {
    let stage = filled();
    for turn in 0..14_u64 {
        let mut rekey = stage.spawn(&["rekey", "db", "--data"]);
        std::thread::sleep(std::time::Duration::from_millis(turn * 23));
        rekey.kill().expect("killed");
        rekey.wait().expect("ends");
        assert_eq!(stage.run(&["db", "SELECT count(*) FROM t", "--no-header"]).err, "", "turn {turn}");
        stage.good(&["verify", "db"]);
        stage.good(&["db", &format!("INSERT INTO t VALUES ({}, '')", 30_000 + turn)]);
    }
    stage.good(&["rekey", "db", "--data"]);
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "20014");
    assert_eq!(stage.ask("SELECT count(*) FROM counterfoil.incidents"), "0");
    assert!(!stage.path("db.creating").exists());
}
