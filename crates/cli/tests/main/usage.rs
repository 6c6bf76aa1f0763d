//! The command line itself.

use super::stage::Stage;

const COMMANDS: [&str; 24] = [
    "sql",
    "init",
    "import",
    "export",
    "kv",
    "verify",
    "inspect",
    "reorganize",
    "compact",
    "purge",
    "backup",
    "restore",
    "salvage",
    "key",
    "keygen",
    "rekey",
    "counter",
    "serve",
    "user",
    "publish",
    "ask",
    "mirror",
    "provider",
    "demo",
];

#[test]
fn help_lists_every_command_and_no_other() {
    let help = Stage::new().good(&["--help"]);
    let listed: Vec<&str> = help
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(listed, COMMANDS, "{help}");
}

#[test]
fn every_command_has_help() {
    let stage = Stage::new();
    for command in COMMANDS {
        assert!(stage.good(&[command, "--help"]).contains("Usage: counterfoil"), "{command}");
    }
    assert!(stage.good(&["--version"]).starts_with("counterfoil "));
}

#[test]
fn a_mistyped_command_is_not_taken_for_a_database_without_a_word() {
    let stage = Stage::with_database();
    let told = stage.refused(&["verfy", "db"], 1, &["there is no such database (verfy): "]);
    assert!(told.ends_with(": `counterfoil verify` may be meant, or make it with `counterfoil init`\n"), "{told}");
    stage.refused(&["imprt", "db"], 1, &["`counterfoil import` may be meant"]);
    // What is near to no command, or is there, is a database.
    stage.refused(&["frob", "SELECT 1"], 1, &["no such database (frob): make it with `counterfoil init`"]);
    stage.copy("db", "verfy");
    assert_eq!(stage.good(&["verfy", "SELECT 1", "--no-header"]), "1\n");
}

#[test]
fn wrong_use_is_exit_1_and_one_line() {
    let stage = Stage::new();
    for words in [
        &[][..],
        &["verify"],
        &["verify", "db", "--no-such-option"],
        &["init", "db", "--page-size", "4K9"],
        &["init", "db", "--page-size", "1000"],
        &["init", "db", "--cipher", "rot13"],
        &["init", "db", "--counter", "abacus"],
        &["init", "db", "--size", "1K"],
        &["import", "db"],
        &["import", "db", "t"],
        &["export", "db", "t"],
        &["sql", "db", "--delimiter", "xx"],
        &["sql", "db", "--format", "xml"],
        &["key", "remove", "db", "x"],
        &["sql", "db", "--lock-timeout", "soon"],
    ] {
        stage.refused(words, 1, &[]);
    }
    assert!(!stage.path("db").exists());
}

#[test]
fn what_is_not_there_yet_says_so() {
    let stage = Stage::with_database();
    stage.refused(&["init", "other", "--counter", "nor"], 1, &["not supported"]);
    stage.refused(
        &["restore", "--from", "https://example.org/", "other"],
        1,
        &["shares of the key are needed", "key split"],
    );
    stage.refused(&["provider", "db"], 1, &["provider"]);
    stage.good(&["init", "./publish"]);
    stage.good(&["./publish", "SELECT 1"]);
}

#[test]
fn help_is_a_word_too() {
    let stage = Stage::new();
    assert_eq!(stage.good(&["help"]), stage.good(&["--help"]));
    assert_eq!(stage.good(&["help", "key", "add"]), stage.good(&["key", "add", "--help"]));
}

#[test]
fn sql_may_begin_with_a_comment() {
    let stage = Stage::new();
    assert_eq!(stage.good(&[":memory:", "-c", "-- one\nSELECT 1", "--no-header"]), "1\n");
    assert_eq!(stage.good(&[":memory:", "SELECT NULL", "--no-header", "--null", "-"]), "-\n");
}

#[test]
fn init_refuses_to_overwrite() {
    let stage = Stage::with_database();
    let before = stage.read("db");
    stage.refused(&["init", "db"], 1, &["db", "already"]);
    assert!(stage.read("db") == before);
    stage.write("other", "something");
    stage.refused(&["init", "other"], 1, &["other", "already"]);
    assert_eq!(stage.text("other"), "something");
}

#[test]
fn init_takes_every_cipher_and_page_size() {
    let stage = Stage::new();
    for cipher in ["aes-256-gcm-siv", "aes-256-gcm", "chacha20-poly1305", "ascon-aead128", "aes-128-ocb3"] {
        stage.good(&["init", cipher, "--cipher", cipher]);
        stage.good(&[cipher, "CREATE TABLE t (a INT); INSERT INTO t VALUES (1)"]);
        assert_eq!(stage.good(&[cipher, "SELECT a FROM t", "--no-header"]), "1\n");
        assert!(stage.good(&["inspect", cipher]).contains(cipher));
    }
    for size in ["512", "1024", "16384", "65536"] {
        stage.good(&["init", size, "--page-size", size]);
        stage.good(&[size, "CREATE TABLE t (a TEXT); INSERT INTO t VALUES (repeat('x', 100000))"]);
        assert_eq!(stage.good(&[size, "SELECT length(a) FROM t", "--no-header"]), "100000\n");
        stage.good(&["verify", size]);
    }
}

#[test]
fn a_limit_of_size_is_kept() {
    let stage = Stage::new();
    stage.good(&["init", "db", "--size", "4M"]);
    let fill =
        "CREATE TABLE t (a TEXT); INSERT INTO t SELECT repeat(md5(i::text), 100) FROM generate_series(1, 10000) s(i)";
    stage.refused(&["db", fill], 2, &["no room"]);
    assert!(stage.read("db").len() <= 4 << 20);
    stage.good(&["db", "CREATE TABLE u (a INT); INSERT INTO u VALUES (7)"]);
    assert_eq!(stage.ask("SELECT a FROM u"), "7");
}

#[test]
fn a_database_in_memory_is_not_kept_and_not_kept_safe() {
    let stage = Stage::new();
    assert_eq!(stage.good(&[":memory:", "SELECT 42", "--no-header"]), "42\n");
    for words in [
        &["backup", ":memory:", "copy"][..],
        &["restore", "copy", ":memory:"],
        &["salvage", ":memory:", "folder"],
        &["key", "list", ":memory:"],
        &["rekey", ":memory:", "--data"],
        &["counter", "show", ":memory:"],
        &["user", "list", ":memory:"],
    ] {
        stage.refused(words, 1, &["memory", "name a file"]);
    }
    assert!(!stage.path("copy").exists() && !stage.path("folder").exists());
    for word in ["init", "verify", "inspect", "reorganize", "compact"] {
        stage.good(&[word, ":memory:"]);
    }
    assert_eq!(stage.good(&["purge", ":memory:"]), "done\n");
    assert!(!stage.path(":memory:").exists() && !stage.path("state").exists());
}

#[test]
fn what_the_parser_refuses_is_one_whole_sentence() {
    let stage = Stage::new();
    let line = stage.refused(&["db", "SELECT 1", "--format", "xml"], 1, &["'xml'", "jsonl"]);
    assert!(!line.trim_end().ends_with(':'), "{line}");
}

#[test]
fn every_argument_is_explained() {
    let stage = Stage::new();
    for words in [&["kv", "db", "put"][..], &["kv", "db", "get"], &["key", "add"], &["counter", "show"], &["sql"]] {
        let help = stage.good(&[words, &["--help"]].concat());
        let bare = help.lines().map(str::trim).find(|line| line.ends_with('>') && line.starts_with('<'));
        assert_eq!(bare, None, "{words:?}");
    }
}

#[test]
fn only_block_devices_are_taken_for_such() {
    let stage = Stage::new();
    stage.write("file", "");
    stage.refused(&["init", "block:file"], 1, &["not a block device"]);
    stage.refused(&["init", "block:/dev/null"], 1, &["not a block device"]);
    stage.refused(&["init", "block:absent"], 1, &["block:absent"]);
    stage.refused(&["init", "block:/dev/null", "--size", "10M"], 1, &["taken whole"]);
    stage.refused(&["block:file", "SELECT 1"], 1, &["block device"]);
}

#[test]
fn a_device_is_not_sealed_anew_in_place_and_the_way_is_told() {
    let stage = Stage::new();
    stage.refused(
        &["rekey", "block:/dev/null", "--data"],
        1,
        &["not supported", "backup", "--erase", "(block:/dev/null)"],
    );
    stage.good(&["init", "db"]);
    stage.good(&["backup", "db", "saved"]);
    stage.refused(&["restore", "saved", "block:/dev/null", "--erase"], 1, &["not a block device"]);
    stage.refused(&["restore", "saved", "block:/dev/null", "--as-new"], 1, &["not a block device"]);
    stage.refused(&["restore", "saved", ":memory:"], 1, &["memory"]);
}

/// Where nothing says where state is kept, reading goes on and writing says what to set.
#[test]
fn without_a_place_for_state_the_variable_is_named() {
    let stage = Stage::with_database();
    let run = |words: &[&str]| {
        let mut command = stage.command(words);
        super::stage::ended(command.env_remove("HOME").env_remove("COUNTERFOIL_STATE_DIR").output().expect("runs"))
    };
    let read = run(&["db", "SELECT 1", "--no-header"]);
    assert_eq!((read.code, read.out.as_str(), read.err.as_str()), (0, "1\n", "note: freshness not checked\n"));
    for words in [&["db", "CREATE TABLE t (a INT)"][..], &["counter", "adopt", "db", "--yes"], &["init", "other"]] {
        let ended = run(words);
        assert_eq!(ended.code, 1, "{words:?}: {}", ended.err);
        ended.says(&["COUNTERFOIL_STATE_DIR"]);
    }
}

#[test]
fn ram_is_a_size_and_bounds_what_a_query_may_do() {
    let stage = Stage::with_database();
    stage.ask("CREATE TABLE t AS SELECT i, i % 7 AS a FROM generate_series(1, 1000) AS i");
    assert_eq!(
        stage.good(&["db", "SELECT a, count(*) FROM t GROUP BY a ORDER BY a LIMIT 1", "--ram", "64K"]),
        "a,count(*)\n0,142\n"
    );
    let sorted = ["db", "SELECT i FROM t ORDER BY i + a, i LIMIT 2", "--ram", "64K"];
    assert_eq!(stage.good(&sorted), "i\n1\n2\n");
    stage.refused(&["db", "SELECT unnest(array_agg(i)) FROM t", "--ram", "64K"], 2, &["--ram 64M"]);
    stage.good(&["db", "SELECT unnest(array_agg(i)) FROM t", "--ram", "64M"]);
    stage.refused(&["db", "SELECT 1", "--ram", "1K"], 1, &["1kB", "64kB is the least"]);
    stage.refused(&["db", "SELECT 1", "--ram", "little"], 1, &["a number of bytes is wanted"]);
}

#[test]
fn help_tells_what_a_command_takes() {
    let stage = Stage::new();
    let formats = |command: &str| {
        let help = stage.good(&[command, "--help"]);
        help.lines().find(|line| line.contains("Format of rows")).map(str::trim).unwrap_or_default().to_owned()
    };
    assert!(formats("sql").ends_with("table, csv, json, jsonl or arrow"), "{}", formats("sql"));
    assert!(formats("export").ends_with("csv, json, jsonl, parquet or arrow"), "{}", formats("export"));
    assert!(formats("import").ends_with("arrow or influx"), "{}", formats("import"));
    assert!(stage.good(&["serve", "--help"]).contains("clients of PostgreSQL"));
    assert_eq!(stage.good(&["sql", "--version"]), stage.good(&["--version"]));
}
