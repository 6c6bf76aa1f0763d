//! The shell and the prompts, on a terminal of their own.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use nix::pty::openpty;

use super::stage::Stage;

/// The program on a terminal.
struct Terminal {
    child: Child,
    keys: File,
    screen: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    fn new(stage: &Stage, words: &[&str], change: impl FnOnce(&mut std::process::Command)) -> Self {
        let pty = openpty(None, None).expect("a terminal");
        let side = File::from(pty.slave);
        let mut command = stage.command(words);
        command.env("TERM", "xterm");
        command.stdin(Stdio::from(side.try_clone().expect("a clone")));
        command.stdout(Stdio::from(side.try_clone().expect("a clone"))).stderr(Stdio::from(side));
        change(&mut command);
        let child = command.spawn().expect("starts");
        drop(command);
        let keys = File::from(pty.master);
        let mut reading = keys.try_clone().expect("a clone");
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = reading.read(&mut buffer) {
                if sender.send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, keys, screen, seen: String::new() }
    }

    /// Waits until this is on the screen, and answers what came before it since the last time.
    fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(at) = self.seen.find(text) {
                let before = self.seen[..at].to_owned();
                self.seen = self.seen[at + text.len()..].to_owned();
                return before;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.screen.recv_timeout(left) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("{text:?} does not come: {:?}", self.seen),
            }
        }
    }

    fn type_in(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("typed");
    }

    /// Waits for the end, and not for ever.
    fn code(mut self) -> i32 {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(status) = self.child.try_wait().expect("waits") {
                return status.code().unwrap_or_else(|| -status.signal().unwrap_or(0));
            }
            if Instant::now() > deadline {
                let _ = self.child.kill();
                panic!("it does not end: {:?}", self.seen);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn init_asks_twice_and_prints_the_recovery_code_once() {
    let stage = Stage::new();
    let without_key = |command: &mut std::process::Command| _ = command.env_remove("COUNTERFOIL_KEY_FILE");
    let mut terminal = Terminal::new(&stage, &["init", "db"], without_key);
    terminal.wait_for("New passphrase: ");
    terminal.type_in("correct horse\n");
    terminal.wait_for("The same again: ");
    terminal.type_in("correct house\n");
    terminal.wait_for("differ");
    assert_eq!(terminal.code(), 1);
    assert!(!stage.path("db").exists());

    let mut terminal = Terminal::new(&stage, &["init", "db"], without_key);
    terminal.wait_for("New passphrase: ");
    terminal.type_in("correct house\u{7f}\u{7f}\u{7f}rse\n");
    terminal.wait_for("The same again: ");
    terminal.type_in("correct horse\n");
    terminal.wait_for("recovery code: ");
    let code = terminal.wait_for("\r\n");
    assert_eq!(terminal.code(), 0);

    for secret in ["correct horse", &code] {
        let mut terminal = Terminal::new(&stage, &["db", "SELECT 40 + 2"], without_key);
        let before = terminal.wait_for("Passphrase: ");
        assert!(!before.contains(secret));
        terminal.type_in(&format!("{secret}\n"));
        let shown = terminal.wait_for("42");
        assert!(!shown.contains(secret), "the secret was shown");
        assert_eq!(terminal.code(), 0);
    }
    let mut terminal = Terminal::new(&stage, &["db", "SELECT 1"], without_key);
    terminal.wait_for("Passphrase: ");
    terminal.type_in("\u{3}");
    assert_eq!(terminal.code(), 130);
}

#[test]
fn a_key_file_on_a_terminal_still_gets_a_recovery_code() {
    let stage = Stage::new();
    let mut terminal = Terminal::new(&stage, &["init", "db"], |_| {});
    terminal.wait_for("recovery code: ");
    assert_eq!(terminal.code(), 0);
    let mut terminal = Terminal::new(&stage, &["init", "other", "--no-recovery"], |_| {});
    terminal.child.wait().expect("ends");
    terminal.type_in("");
    assert!(!stage.good(&["key", "list", "other"]).contains("recovery"));
}

#[test]
fn the_shell_runs_statements_over_several_lines() {
    let stage = Stage::with_database();
    let mut shell = Terminal::new(&stage, &["db"], |_| {});
    shell.wait_for("db=> ");
    shell.type_in("CREATE TABLE birds (name TEXT,\n");
    shell.wait_for("db-> ");
    shell.type_in("wings INT);\n");
    shell.wait_for("db=> ");
    shell.type_in("INSERT INTO birds VALUES ('wren', 2);\n");
    shell.wait_for("INSERT 1");
    shell.type_in("SELECT name, wings\nFROM birds;\n");
    shell.wait_for("wren");
    shell.wait_for("(1 row)");
    shell.type_in("SELECT nonsense;\n");
    shell.wait_for("error:");
    shell.wait_for("nonsense");
    shell.type_in("\\d\n");
    shell.wait_for("birds");
    shell.type_in("\\d birds\n");
    shell.wait_for("wings");
    shell.type_in("\\timing\n");
    shell.wait_for("Timing is on");
    shell.type_in("SELECT 1;\n");
    shell.wait_for("Time: ");
    shell.type_in("\\?\n");
    shell.wait_for("\\q");
    shell.type_in("\\nonsense\n");
    shell.wait_for("no command");
    shell.wait_for("db=> ");
    shell.type_in("SELECT 1,\n");
    shell.wait_for("db-> ");
    shell.type_in("\u{3}");
    shell.wait_for("db=> ");
    shell.type_in("BEGIN;\n");
    shell.wait_for("db=*> ");
    shell.type_in("SELECT nonsense;\n");
    shell.wait_for("db=!> ");
    shell.type_in("ROLLBACK;\n");
    shell.wait_for("db=> ");
    shell.type_in("\\q\n");
    assert_eq!(shell.code(), 0);
    assert_eq!(stage.ask("SELECT * FROM birds"), "wren,2");
}

#[test]
fn leaving_an_open_transaction_is_told() {
    let stage = Stage::with_database();
    let mut shell = Terminal::new(&stage, &["db"], |_| {});
    shell.wait_for("db=> ");
    shell.type_in("\\history\n");
    shell.wait_for("on or off");
    shell.type_in("BEGIN;\n");
    shell.wait_for("db=*> ");
    shell.type_in("\u{4}");
    shell.wait_for("not committed");
    assert_eq!(shell.code(), 0);
}

#[test]
fn words_are_completed() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE extraordinary (a INT); INSERT INTO extraordinary VALUES (4242)"]);
    let mut shell = Terminal::new(&stage, &["db"], |_| {});
    shell.wait_for("db=> ");
    shell.type_in("SELECT a FROM extra\t");
    shell.wait_for("extraordinary");
    shell.type_in(";\n");
    shell.wait_for("4242");
    shell.wait_for("db=> ");
    shell.type_in("\u{4}");
    assert_eq!(shell.code(), 0);
}

#[test]
fn ctrl_c_cancels_a_file_and_the_shell_goes_on() {
    let stage = Stage::with_database();
    let long =
        "SELECT count(*) FROM generate_series(1, 100000) a(i), generate_series(1, 1000000) b(j) WHERE i + j = -1;";
    stage.write("long.sql", format!("CREATE TABLE t (a INT);\n{long}\nCREATE TABLE u (a INT);\n"));
    let mut shell = Terminal::new(&stage, &["db"], |_| {});
    shell.wait_for("db=> ");
    shell.type_in("\\i long.sql\n");
    shell.wait_for("CREATE TABLE");
    std::thread::sleep(Duration::from_secs(1));
    let child = nix::unistd::Pid::from_raw(i32::try_from(shell.child.id()).expect("a process"));
    nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGINT).expect("sent");
    shell.wait_for("interrupted (long.sql line 2)");
    shell.wait_for("db=> ");
    shell.type_in("\u{4}");
    assert_eq!(shell.code(), 0);
    assert_eq!(stage.ask("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"), "t");
}

#[test]
fn ctrl_c_cancels_the_statement_and_the_shell_goes_on() {
    let stage = Stage::with_database();
    let mut shell = Terminal::new(&stage, &["db"], |_| {});
    shell.wait_for("db=> ");
    shell.type_in(
        "SELECT count(*) FROM generate_series(1, 100000) a(i), generate_series(1, 1000000) b(j) WHERE i + j = -1;\n",
    );
    std::thread::sleep(Duration::from_secs(2));
    // The terminal is not the child's controlling one here, so the signal that the key would make is sent by hand.
    let child = nix::unistd::Pid::from_raw(i32::try_from(shell.child.id()).expect("a process"));
    nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGINT).expect("sent");
    shell.wait_for("interrupted");
    shell.type_in("SELECT 40 + 2;\n");
    shell.wait_for("42");
    shell.type_in("\\q\n");
    assert_eq!(shell.code(), 0);
}

#[test]
fn history_is_written_only_when_asked_for() {
    let stage = Stage::with_database();
    let mut shell = Terminal::new(&stage, &["db"], |_| {});
    shell.wait_for("db=> ");
    shell.type_in("SELECT 'before';\n");
    shell.wait_for("(1 row)");
    assert!(!stage.path("state/history").exists());
    shell.type_in("\\history on\n");
    shell.wait_for("kept in the clear");
    shell.type_in("SELECT 'after';\n");
    shell.wait_for("(1 row)");
    shell.type_in("\\q\n");
    assert_eq!(shell.code(), 0);
    let history = stage.text("state/history");
    assert!(history.contains("after") && !history.contains("before"), "{history}");
}
