//! Counters and keys in a TPM: an emulator of each test's own.

use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::stage::{Ended, Stage, ended};

struct Machine {
    stage: Stage,
    swtpm: Option<Child>,
}

impl Machine {
    /// None, said aloud, where the emulator is not installed, except in CI.
    fn new() -> Option<Self> {
        if Command::new("swtpm").arg("--version").stdout(Stdio::null()).status().is_err() {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "swtpm is not installed (scripts/setup test)");
            eprintln!("not tested: swtpm is not installed (scripts/setup test)");
            return None;
        }
        let mut machine = Self { stage: Stage::new(), swtpm: None };
        machine.plug_in("tpm");
        Some(machine)
    }

    /// Takes the TPM out and another one in: the one whose memory is this folder.
    fn plug_in(&mut self, name: &str) {
        self.pull_out();
        let (state, socket) = (self.stage.path(name), self.stage.path("socket"));
        std::fs::create_dir_all(&state).expect("a folder");
        let _ = std::fs::remove_file(&socket);
        let swtpm = Command::new("swtpm")
            .args(["socket", "--tpm2", "--flags", "not-need-init,startup-clear"])
            .args(["--tpmstate", &format!("dir={}", state.display())])
            .args(["--server", &format!("type=unixio,path={}", socket.display())])
            .args(["--ctrl", &format!("type=unixio,path={}", self.stage.path("control").display())])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.swtpm = Some(swtpm.expect("starts"));
        let begun = Instant::now();
        while UnixStream::connect(&socket).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(20), "swtpm does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn pull_out(&mut self) {
        if let Some(mut swtpm) = self.swtpm.take() {
            swtpm.kill().expect("killed");
            swtpm.wait().expect("ended");
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.stage.command(words);
        command.env("COUNTERFOIL_TPM", self.stage.path("socket"));
        command
    }

    fn run(&self, words: &[&str]) -> Ended {
        ended(self.command(words).output().expect("runs"))
    }

    fn good(&self, words: &[&str]) -> String {
        let ended = self.run(words);
        assert_eq!(ended.code, 0, "{words:?}: {}", ended.err);
        ended.out
    }

    fn refused(&self, words: &[&str], code: i32, says: &[&str]) {
        let ended = self.run(words);
        assert_eq!(ended.code, code, "{words:?}: {} {}", ended.out, ended.err);
        ended.says(says);
    }

    /// Without any key but what the machine has.
    fn run_keyless(&self, words: &[&str]) -> Ended {
        ended(self.command(words).env_remove("COUNTERFOIL_KEY_FILE").output().expect("runs"))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.pull_out();
    }
}

#[test]
fn a_counter_in_a_tpm_tells_the_newest_image() {
    let Some(mut machine) = Machine::new() else { return };
    machine.good(&["init", "db", "--counter", "tpm"]);
    machine.good(&["db", "CREATE TABLE t (a INT); INSERT INTO t VALUES (1)"]);
    let shown = machine.good(&["counter", "show", "db"]);
    assert!(
        shown.contains("kind     tpm") && shown.contains("socket") && shown.contains("the newest image"),
        "{shown}"
    );
    machine.stage.copy("db", "old");
    machine.good(&["db", "INSERT INTO t VALUES (2)"]);
    machine.stage.copy("db", "new");
    machine.stage.copy("old", "db");
    machine.refused(&["db", "SELECT * FROM t"], 3, &["not the newest image"]);
    machine.refused(&["db", "INSERT INTO t VALUES (3)"], 3, &["not the newest image"]);
    machine.refused(&["counter", "show", "db"], 3, &["not the newest image"]);
    machine.stage.copy("new", "db");
    machine.good(&["db", "INSERT INTO t VALUES (3)"]);
    machine.good(&["verify", "db"]);
    // A copy that goes on by itself, and the original after it.
    machine.stage.copy("db", "copy");
    machine.good(&["copy", "INSERT INTO t VALUES (4)"]);
    machine.refused(&["db", "SELECT * FROM t"], 3, &["not the newest image"]);
    machine.stage.copy("copy", "db");
    machine.refused(&["rekey", "db", "--data"], 1, &["not supported", "TPM"]);
    machine.good(&["backup", "db", "backup"]);
    machine.good(&["db", "INSERT INTO t VALUES (5)"]);
    machine.good(&["restore", "backup", "db"]);
    assert_eq!(machine.good(&["db", "SELECT count(*) FROM t", "--no-header"]).trim(), "4");
    machine.plug_in("other");
    let ended = machine.run(&["db", "SELECT count(*) FROM t"]);
    assert!(ended.code == 0 && ended.err.contains("freshness not checked"), "{}", ended.err);
    machine.refused(&["db", "SELECT 1", "--require-counter"], 3, &["there is no counter"]);
    machine.refused(&["db", "INSERT INTO t VALUES (6)"], 3, &["there is no counter"]);
    machine.good(&["counter", "adopt", "db", "--yes"]);
    machine.good(&["db", "INSERT INTO t VALUES (6)"]);
    machine.good(&["counter", "forget", "db", "--yes"]);
    machine.refused(&["db", "INSERT INTO t VALUES (7)"], 3, &["there is no counter"]);
    machine.refused(&["counter", "forget", "db", "--yes"], 1, &["there is no counter"]);
}

#[test]
fn a_tpm_that_does_not_answer_is_a_failed_device() {
    let Some(mut machine) = Machine::new() else { return };
    machine.good(&["init", "db", "--counter", "tpm"]);
    machine.pull_out();
    machine.refused(&["db", "SELECT 1"], 2, &["counter"]);
    machine.refused(&["db", "CREATE TABLE t (a INT)"], 2, &["counter"]);
    machine.refused(&["init", "another", "--counter", "tpm"], 2, &["counter"]);
    assert!(!machine.stage.path("another").exists());
    std::fs::remove_file(machine.stage.path("socket")).expect("removed");
    machine.refused(&["init", "another", "--counter", "tpm"], 2, &["counter", "TPM"]);
    machine.plug_in("tpm");
    machine.good(&["db", "CREATE TABLE t (a INT)"]);
}

#[test]
fn a_device_that_nobody_attends_may_go_on_from_an_older_image() {
    let Some(machine) = Machine::new() else { return };
    machine.good(&["init", "db", "--counter", "tpm"]);
    machine.good(&["db", "SET on_rollback = 'record'; SET rollback_limit = 2; CREATE TABLE t (a INT)"]);
    machine.stage.copy("db", "old");
    machine.good(&["db", "INSERT INTO t VALUES (1)"]);
    for round in 1..=2 {
        machine.stage.copy("old", "db");
        machine.good(&["db", "INSERT INTO t VALUES (2)"]);
        let incidents = machine.good(&["db", "SELECT count(*) FROM counterfoil.incidents", "--no-header"]);
        assert_eq!(incidents.trim(), "1", "round {round}");
        machine.refused(&["verify", "db"], 3, &["gone on from"]);
    }
    // The image does not remember how often; the TPM does.
    machine.stage.copy("old", "db");
    machine.refused(&["db", "INSERT INTO t VALUES (3)"], 3, &["rollback_limit"]);
    machine.good(&["counter", "adopt", "db", "--yes"]);
    machine.good(&["verify", "db"]);
}

#[test]
fn a_tpm_opens_its_slot_and_no_other() {
    let Some(mut machine) = Machine::new() else { return };
    machine.good(&["init", "db"]);
    machine.good(&["db", "CREATE TABLE t (a INT)"]);
    assert_eq!(machine.run_keyless(&["db", "SELECT 1"]).code, 1);
    machine.good(&["key", "add", "db", "--tpm"]);
    assert!(machine.good(&["key", "list", "db"]).contains("1  TPM"));
    let ended = machine.run_keyless(&["db", "INSERT INTO t VALUES (1)"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let ended = machine.run_keyless(&["key", "list", "db"]);
    assert!(ended.out.lines().any(|line| line.contains("TPM") && line.contains("opened it now")), "{}", ended.out);
    machine.plug_in("other");
    let ended = machine.run_keyless(&["db", "SELECT 1"]);
    assert_eq!(ended.code, 1);
    ended.says(&["wrong key"]);
    machine.good(&["db", "SELECT * FROM t"]);
    machine.good(&["key", "change", "db", "1", "--tpm"]);
    assert_eq!(machine.run_keyless(&["db", "SELECT 1"]).code, 0);
    machine.plug_in("tpm");
    assert_eq!(machine.run_keyless(&["db", "SELECT 1"]).code, 1);
    machine.good(&["key", "remove", "db", "1"]);
    machine.plug_in("other");
    machine.run_keyless(&["db", "SELECT 1"]).says(&["no key was given"]);
}
