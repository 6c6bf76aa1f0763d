//! Where keys come from, and who may open.

use std::fs;

use super::stage::{Stage, ended};

type Change<'a> = &'a dyn Fn(&mut std::process::Command);

fn query(stage: &Stage, change: impl FnOnce(&mut std::process::Command)) -> super::stage::Ended {
    let mut command = stage.command(&["sql", "db", "SELECT 1", "--no-header"]);
    command.env_remove("COUNTERFOIL_KEY_FILE");
    change(&mut command);
    ended(command.output().expect("runs"))
}

#[test]
fn every_source_of_a_key_is_found() {
    let stage = Stage::with_database();
    let digits = stage.text("k");
    stage.write(
        "raw",
        (0..32).map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).expect("hex")).collect::<Vec<_>>(),
    );
    stage.write("newline", format!("{digits}\n"));
    std::fs::create_dir(stage.path("credentials")).expect("a folder");
    stage.copy("k", "credentials/counterfoil.key");
    let ways: [(&str, Change<'_>); 7] = [
        ("option", &|command| _ = command.args(["--key-file", "k"])),
        ("raw bytes", &|command| _ = command.args(["--key-file", "raw"])),
        ("newline", &|command| _ = command.args(["--key-file", "newline"])),
        ("file variable", &|command| _ = command.env("COUNTERFOIL_KEY_FILE", "k")),
        ("credentials", &|command| _ = command.env("CREDENTIALS_DIRECTORY", stage.path("credentials"))),
        ("digits", &|command| _ = command.env("COUNTERFOIL_KEY", &digits)),
        ("option before all", &|command| {
            command.args(["--key-file", "k"]).env("COUNTERFOIL_KEY", "nonsense").env("COUNTERFOIL_KEY_FILE", "nowhere");
        }),
    ];
    for (way, change) in ways {
        let ended = query(&stage, change);
        assert_eq!((ended.code, ended.out.as_str()), (0, "1\n"), "{way}: {}", ended.err);
    }
}

#[test]
fn without_a_key_nothing_waits_for_one() {
    let stage = Stage::with_database();
    let ended = query(&stage, |_| {});
    assert_eq!(ended.code, 1);
    ended.says(&["no key", "--key-file"]);
    let mut init = stage.command(&["init", "other"]);
    let ended = super::stage::ended(init.env_remove("COUNTERFOIL_KEY_FILE").output().expect("runs"));
    assert_eq!(ended.code, 1);
    assert!(!stage.path("other").exists());
}

#[test]
fn wrong_keys_are_exit_1() {
    let stage = Stage::with_database();
    stage.write("wrong", "ff".repeat(32));
    stage.write("short", "ff");
    assert!(query(&stage, |command| _ = command.args(["--key-file", "wrong"])).err.contains("wrong key"));
    for file in ["wrong", "short", "absent"] {
        let ended = query(&stage, |command| _ = command.args(["--key-file", file]));
        assert_eq!(ended.code, 1, "{}", ended.err);
        ended.says(&[]);
    }
    let ended = query(&stage, |command| _ = command.env("COUNTERFOIL_PASSPHRASE", "guess"));
    assert_eq!(ended.code, 1);
    ended.says(&["wrong key or passphrase"]);
}

#[test]
fn passphrases_open_from_file_and_environment() {
    let stage = Stage::new();
    stage.write("p", "correct horse\n");
    let mut init = stage.command(&["init", "db", "--passphrase-file", "p"]);
    assert!(init.env_remove("COUNTERFOIL_KEY_FILE").status().expect("runs").success());
    let ways: [Change<'_>; 3] = [
        &|command| _ = command.args(["--passphrase-file", "p"]),
        &|command| _ = command.env("COUNTERFOIL_PASSPHRASE_FILE", "p"),
        &|command| _ = command.env("COUNTERFOIL_PASSPHRASE", "correct horse"),
    ];
    for change in ways {
        let ended = query(&stage, change);
        assert_eq!(ended.code, 0, "{}", ended.err);
    }
}

#[test]
fn keygen_makes_private_keys_and_overwrites_none() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new();
    stage.good(&["keygen", "-o", "new"]);
    assert_eq!(stage.text("new").trim_end().len(), 64);
    let mode = std::fs::metadata(stage.path("new")).expect("there").permissions().mode();
    assert_eq!(mode & 0o077, 0);
    stage.refused(&["keygen", "-o", "new"], 1, &["new"]);
    assert_ne!(stage.good(&["keygen"]), stage.good(&["keygen"]));
}

#[test]
fn slots_are_added_changed_and_removed() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT); INSERT INTO t VALUES (7)"]);
    stage.good(&["keygen", "-o", "k2"]);
    stage.write("p", "correct horse");
    stage.good(&["key", "add", "db", "--new-key-file", "k2"]);
    stage.good(&["key", "add", "db", "--new-passphrase-file", "p"]);
    let list = stage.good(&["key", "list", "db"]);
    assert_eq!(list.lines().count(), 3, "{list}");
    assert!(list.contains("key file") && list.contains("passphrase") && list.contains("opened it now"), "{list}");
    let opens = |option: &str, file: &str| query(&stage, |command| _ = command.args([option, file])).code == 0;
    assert!(opens("--key-file", "k2") && opens("--passphrase-file", "p"));

    stage.good(&["keygen", "-o", "k3"]);
    stage.good(&["key", "change", "db", "1", "--new-key-file", "k3"]);
    assert!(!opens("--key-file", "k2") && opens("--key-file", "k3"));
    stage.good(&["key", "remove", "db", "2"]);
    assert!(!opens("--passphrase-file", "p"));
    stage.refused(&["key", "remove", "db", "5"], 1, &["no key slot 5"]);
    stage.good(&["key", "remove", "db", "1"]);
    stage.refused(&["key", "remove", "db", "0"], 1, &["last"]);
    assert_eq!(stage.ask("SELECT a FROM t"), "7");
    stage.good(&["verify", "db"]);
}

#[test]
fn last_months_slot_put_back_is_noticed() {
    let stage = Stage::with_database();
    stage.good(&["keygen", "-o", "k2"]);
    let before = stage.read("db");
    stage.good(&["rekey", "db", "--new-key-file", "k2"]);
    assert_eq!(query(&stage, |command| _ = command.args(["--key-file", "k"])).code, 1);
    // The two copies of the header as they were, in an image that is the newest otherwise.
    let mut mixed = stage.read("db");
    for start in [0, 256 << 10] {
        mixed[start..start + 4096].copy_from_slice(&before[start..start + 4096]);
    }
    stage.write("db", &mixed);
    let ended = query(&stage, |command| _ = command.args(["--key-file", "k"]));
    assert_eq!(ended.code, 3, "{}", ended.err);
}

#[test]
fn rekeying_the_data_refuses_the_old_file() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT PRIMARY KEY, b TEXT); INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 5000) s(i)"]);
    stage.run_with_input(&["kv", "db", "put", "name"], "value");
    stage.copy("db", "old");
    stage.good(&["rekey", "db", "--data"]);
    assert_eq!(
        stage.ask("SELECT count(*), max(b) FROM t"),
        stage.ask("SELECT 5000, max(md5(i::text)) FROM generate_series(1, 5000) s(i)")
    );
    assert_eq!(stage.good(&["kv", "db", "get", "name"]), "value");
    stage.good(&["verify", "db"]);
    stage.refused(&["old", "SELECT 1"], 3, &[]);
}

#[test]
fn shares_open_together() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT); INSERT INTO t VALUES (7)"]);
    stage.good(&["key", "split", "db", "--need", "2", "--of", "3", "shares"]);
    stage.refused(&["key", "split", "db", "--need", "4", "--of", "3", "more"], 1, &["not possible"]);
    stage.refused(&["key", "split", "db", "--need", "2", "--of", "3", "shares"], 1, &["shares"]);
    let opens = |count: usize| {
        let folder = format!("some-{count}");
        std::fs::create_dir(stage.path(&folder)).expect("a folder");
        for number in 1..=count {
            stage.copy(&format!("shares/share-{number}-of-3.txt"), &format!("{folder}/{number}"));
        }
        query(&stage, |command| _ = command.args(["--key-file", &folder]))
    };
    let one = opens(1);
    assert_eq!(one.code, 1);
    one.says(&["2 shares are needed"]);
    assert_eq!(opens(2).code, 0);
    assert_eq!(opens(3).code, 0);
    stage.good(&["rekey", "db", "--data"]);
    assert_eq!(query(&stage, |command| _ = command.args(["--key-file", "some-2"])).code, 1);
}

/// What a killed `key split` leaves has another name: nobody takes it for all shares, and the next one says what to do with it.
#[test]
fn shares_are_all_there_or_not_under_their_name() {
    let stage = Stage::with_database();
    let split = ["key", "split", "db", "--need", "2", "--of", "3", "shares"];
    fs::create_dir(stage.path("shares.unfinished")).expect("a folder");
    stage.write("shares.unfinished/share-1-of-3.txt", "half");
    stage.refused(&split, 1, &["shares.unfinished has shares that were never complete", "delete that folder"]);
    assert!(!stage.path("shares").exists());
    fs::remove_dir_all(stage.path("shares.unfinished")).expect("deleted");
    stage.good(&split);
    assert_eq!(fs::read_dir(stage.path("shares")).expect("shares").count(), 3);
    assert!(!stage.path("shares.unfinished").exists());
    stage.refused(&split, 1, &["shares"]);
}
