//! Changed files, yesterday's files, counters.

use super::stage::Stage;

fn filled() -> Stage {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT PRIMARY KEY, b TEXT); INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 20000) s(i)"]);
    stage
}

#[test]
fn a_flipped_byte_is_caught_or_without_effect() {
    let stage = filled();
    let whole = stage.read("db");
    let sql = "SELECT count(*), sum(a), count(DISTINCT b) FROM t";
    let expected = stage.ask(sql);
    let mut caught = 0;
    for turn in 0..48 {
        let mut bytes = whole.clone();
        let at = whole.len() / 48 * turn + 1234;
        bytes[at] ^= 0x10;
        stage.write("db", &bytes);
        let ended = stage.run(&["db", sql, "--no-header"]);
        match ended.code {
            0 => assert_eq!(ended.out.trim_end(), expected, "byte {at}"),
            3 => {
                caught += 1;
                ended.says(&[]);
            }
            code => panic!("byte {at}: exit code {code}: {}", ended.err),
        }
    }
    assert!(caught > 3, "{caught} were caught");
    stage.write("db", &whole);
    stage.good(&["verify", "db"]);
}

#[test]
fn a_damaged_table_does_not_hold_the_others_hostage() {
    let stage = filled();
    stage.good(&["db", "CREATE TABLE u (a INT); INSERT INTO u VALUES (7)"]);
    let whole = stage.read("db");
    // Pages of t, which is by far the largest, from the end backwards.
    for back in 1..200 {
        let mut bytes = whole.clone();
        let at = whole.len() - back * 16 * 4096 + 100;
        bytes[at] ^= 1;
        stage.write("db", &bytes);
        if stage.run(&["db", "SELECT count(b), max(b) FROM t"]).code != 0 {
            break;
        }
    }
    stage.refused(&["db", "SELECT max(b) FROM t"], 3, &["t", "page"]);
    assert_eq!(stage.ask("SELECT a FROM u"), "7");
    let ended = stage.run(&["verify", "db"]);
    assert_eq!(ended.code, 3);
    // Who makes a backup of it hears of that now, and not when it is to be restored.
    let ended = stage.run(&["backup", "db", "copy"]);
    assert_eq!(ended.code, 3, "{}", ended.err);
    assert!(ended.err.contains("note: copy holds a backup of a database that is damaged"), "{}", ended.err);
    assert_eq!(stage.run(&["restore", "copy", "other"]).code, 3);
    stage.good(&["salvage", "db", "saved"]);
    let rows = stage.text("saved/t.csv").lines().count() - 1;
    assert!(rows > 10_000 && rows < 20_000, "{rows} rows were saved");
    assert_eq!(stage.text("saved/u.csv"), "a\n7\n");
    assert!(stage.text("saved/missing.txt").contains("missing"));
}

/// The checkpoint tells where everything is, and stands twice.
#[test]
fn a_damaged_checkpoint_is_read_from_its_copy_and_made_good() {
    let stage = filled();
    // Extents of 256 KiB: two with headers, eight of the checkpoint's window, eight of its copy.
    let extent = 256 << 10;
    let (first, second) = (2 * extent, 10 * extent);
    for (turn, copy) in [first..second, second..second + (second - first)].into_iter().enumerate() {
        let mut bytes = stage.read("db");
        let written = |page: &usize| bytes[*page..page + 4096].iter().any(|byte| *byte != 0);
        let pages: Vec<usize> = copy.step_by(4096).filter(written).collect();
        assert!(pages.len() > 2, "{} pages", pages.len());
        pages.iter().for_each(|page| bytes[page + 1000] ^= 1);
        stage.write("db", &bytes);
        let rows = 20_000 + turn;
        assert_eq!(stage.ask("SELECT count(*) FROM t"), rows.to_string());
        let ended = stage.run(&["verify", "db"]);
        assert_eq!(ended.code, 3, "{}", ended.err);
        assert!(ended.err.contains("checkpoint") && ended.err.contains("other copy is good"), "{}", ended.err);
        let saved = format!("saved-{turn}");
        stage.good(&["salvage", "db", &saved]);
        assert_eq!(stage.text(&format!("{saved}/t.csv")).lines().count(), rows + 1);
        let ended = stage.run(&["db", &format!("INSERT INTO t VALUES (-{turn}, 'new')")]);
        assert_eq!(ended.code, 0, "{}", ended.err);
        assert!(ended.err.contains("note: ") && ended.err.contains("checkpoint"), "{}", ended.err);
        stage.good(&["verify", "db"]);
    }
}

#[test]
fn yesterdays_file_is_refused() {
    let stage = filled();
    stage.copy("db", "yesterday");
    stage.good(&["db", "DELETE FROM t WHERE a > 100"]);
    stage.copy("db", "today");
    stage.copy("yesterday", "db");
    for words in [&["db", "SELECT 1"][..], &["verify", "db"], &["db", "DELETE FROM t"], &["export", "db", "t", "-"]] {
        stage.refused(words, 3, &["not the newest", "version", "counter"]);
    }
    stage.refused(&["counter", "show", "db"], 3, &["not the newest"]);
    stage.copy("today", "db");
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "100");

    // On its owner's word the older one is taken after all; then the newer one is refused.
    stage.copy("yesterday", "db");
    stage.refused(&["counter", "adopt", "db"], 1, &["--yes"]);
    stage.good(&["counter", "adopt", "db", "--yes"]);
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "20000");
    assert_eq!(stage.ask("SELECT kind FROM counterfoil.incidents"), "counter adopted by hand");
    stage.refused(&["today", "SELECT 1"], 3, &[]);
}

#[test]
fn an_unattended_device_goes_on_from_an_older_file_and_says_so_until_it_is_accepted() {
    let stage = filled();
    stage.good(&["db", "SET on_rollback = 'record'; SET rollback_limit = 1"]);
    stage.copy("db", "yesterday");
    stage.good(&["db", "DELETE FROM t WHERE a > 100"]);
    stage.copy("yesterday", "db");
    let ended = stage.run(&["db", "SELECT count(*) FROM t", "--no-header"]);
    assert_eq!((ended.code, ended.out.as_str()), (0, "20000\n"));
    assert!(
        ended.err.starts_with("note: this is not the newest image") && ended.err.lines().count() == 1,
        "{}",
        ended.err
    );
    stage.refused(&["counter", "show", "db"], 3, &["not the newest"]);
    stage.refused(&["verify", "db"], 3, &["not the newest"]);
    stage.good(&["salvage", "db", "saved"]);
    let report = stage.text("saved/missing.txt");
    assert!(report.starts_with("this is not the newest image"), "{report}");
    assert!(report.ends_with("nothing is missing of this image, which may not be the newest\n"), "{report}");
    assert_eq!(stage.run(&["db", "INSERT INTO t VALUES (0, '')"]).code, 0);
    assert_eq!(stage.run(&["db", "SELECT kind FROM counterfoil.incidents", "--no-header"]).out, "rolled back\n");
    stage.refused(&["verify", "db"], 3, &["counter adopt"]);
    assert!(stage.run(&["inspect", "db"]).out.contains("on rollback    record, up to 1; 1 not accepted"));
    stage.copy("yesterday", "db");
    stage.refused(&["db", "SELECT 1"], 3, &["rollback_limit = 1 is reached"]);
    stage.good(&["counter", "adopt", "db", "--yes"]);
    stage.good(&["verify", "db"]);
    assert_eq!(stage.run(&["db", "SELECT 1"]).err, "");
}

#[test]
fn an_absent_counter_is_a_note_and_then_an_incident() {
    let stage = filled();
    std::fs::remove_dir_all(stage.path("state")).expect("removed");
    let ended = stage.run(&["db", "SELECT count(*) FROM t", "--no-header"]);
    assert_eq!((ended.code, ended.out.as_str()), (0, "20000\n"));
    assert_eq!(ended.err, "note: freshness not checked\n");
    stage.refused(&["--require-counter", "db", "SELECT 1"], 3, &["no counter"]);
    stage.refused(&["--require-counter", "salvage", "db", "saved"], 3, &["no counter"]);
    // One that never had a counter cannot give what is asked for either.
    stage.good(&["init", "without", "--counter", "none"]);
    stage.good(&["without", "SELECT 1"]);
    stage.refused(&["--require-counter", "without", "SELECT 1"], 3, &["without a counter"]);
    assert!(!stage.path("saved").exists());
    stage.good(&["salvage", "db", "saved"]);
    assert!(!stage.path("state").exists(), "reading wrote beside the database");
    let ended = stage.run(&["db", "INSERT INTO t VALUES (0, '')"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.err.contains("counter adopted"), "{}", ended.err);
    assert_eq!(stage.ask("SELECT kind FROM counterfoil.incidents"), "counter adopted");
    assert_eq!(stage.run(&["db", "SELECT 1"]).err, "");
}

/// A counter that cannot be written is a fault of the machine, and the image does not run ahead of it.
#[test]
fn a_state_directory_that_cannot_be_written_changes_nothing() {
    let stage = filled();
    stage.write("file", "");
    let whole = stage.read("db");
    for _ in 0..3 {
        let mut command = stage.command(&["db", "INSERT INTO t VALUES (0, '')"]);
        let ended =
            super::stage::ended(command.env("COUNTERFOIL_STATE_DIR", stage.path("file")).output().expect("runs"));
        assert_eq!(ended.code, 2, "{}", ended.err);
        ended.says(&["counter could not be created", "COUNTERFOIL_STATE_DIR"]);
        assert!(!ended.err.contains("os error"), "{}", ended.err);
        assert!(whole == stage.read("db"), "the image ran ahead");
    }
    stage.good(&["db", "INSERT INTO t VALUES (0, '')"]);
    assert_eq!(std::fs::read_dir(stage.path("state")).expect("a folder").count(), 1);
}

/// An adoption needs room beside the database. Without it the image stays where the good counter knows it.
#[test]
fn a_full_state_directory_changes_nothing() {
    let stage = filled();
    let name = std::fs::read_dir(stage.path("state")).expect("a folder").next().expect("a counter").expect("an entry");
    let fresh = name.file_name().to_string_lossy().into_owned() + ".new";
    let whole = stage.read("db");
    std::fs::create_dir(stage.path("other")).expect("made");
    let attempts: [(&str, &[&str]); 2] =
        [("other", &["db", "INSERT INTO t VALUES (0, '')"]), ("state", &["counter", "adopt", "db", "--yes"])];
    for (folder, arguments) in attempts {
        std::os::unix::fs::symlink("/dev/full", stage.path(folder).join(&fresh)).expect("made");
        let mut command = stage.command(arguments);
        let ended =
            super::stage::ended(command.env("COUNTERFOIL_STATE_DIR", stage.path(folder)).output().expect("runs"));
        assert_eq!(ended.code, 2, "{}", ended.err);
        ended.says(&["counter could not be created"]);
        assert!(whole == stage.read("db"), "the image ran ahead");
    }
    assert_eq!(std::fs::read_dir(stage.path("other")).expect("a folder").count(), 0);
    assert_eq!(std::fs::read_dir(stage.path("state")).expect("a folder").count(), 1);
    stage.good(&["verify", "db"]);
    stage.good(&["db", "INSERT INTO t VALUES (0, '')"]);
}

#[test]
fn damaged_older_and_foreign_counters_are_not_believed() {
    let stage = filled();
    let folder = stage.path("state");
    let name = std::fs::read_dir(&folder).expect("a folder").next().expect("a counter").expect("an entry").file_name();
    let counter = format!("state/{}", name.to_string_lossy());
    let older = stage.read(&counter);
    stage.good(&["db", "INSERT INTO t VALUES (0, '')"]);
    let newest = stage.read(&counter);
    stage.write(&counter, &older);
    stage.refused(&["db", "SELECT 1"], 3, &["counter"]);
    stage.write(&counter, "nonsense");
    stage.refused(&["db", "SELECT 1"], 3, &["counter"]);
    stage.refused(&["db", "DELETE FROM t"], 3, &["counter"]);
    stage.write(&counter, &newest);
    stage.good(&["verify", "db"]);
    stage.good(&["counter", "forget", "db", "--yes"]);
    assert!(!stage.path(&counter).exists());
    stage.refused(&["counter", "forget", "db", "--yes"], 1, &["no counter"]);
}

#[test]
fn a_clone_that_went_on_is_refused() {
    let stage = filled();
    stage.copy("db", "clone");
    stage.good(&["db", "INSERT INTO t VALUES (0, 'a')"]);
    stage.refused(&["clone", "INSERT INTO t VALUES (0, 'b')"], 3, &[]);
    assert_eq!(stage.ask("SELECT b FROM t WHERE a = 0"), "a");
}

#[test]
fn without_a_counter_the_owner_was_told() {
    let stage = Stage::new();
    let ended = stage.run(&["init", "db", "--counter", "none"]);
    assert!(ended.err.contains("not detected"), "{}", ended.err);
    stage.good(&["db", "CREATE TABLE t (a INT)"]);
    stage.copy("db", "yesterday");
    stage.good(&["db", "INSERT INTO t VALUES (1)"]);
    stage.copy("yesterday", "db");
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "0");
    assert!(!stage.path("state").exists());
    stage.refused(&["counter", "adopt", "db", "--yes"], 1, &["no counter"]);
}

#[test]
fn one_header_copy_is_enough_and_the_next_change_repairs() {
    let stage = filled();
    stage.good(&["keygen", "-o", "k2"]);
    for start in [0, 256 << 10] {
        let mut bytes = stage.read("db");
        bytes[start + 200] ^= 1;
        stage.write("db", &bytes);
        let ended = stage.run(&["db", "SELECT count(*) FROM t", "--no-header"]);
        assert_eq!((ended.code, ended.out.as_str()), (0, "20000\n"), "{}", ended.err);
        assert!(ended.err.contains("note: header copy"), "{}", ended.err);
        assert_eq!(stage.run(&["verify", "db"]).code, 3);
        stage.good(&["key", "add", "db", "--new-key-file", "k2"]);
        stage.good(&["verify", "db"]);
    }
}
