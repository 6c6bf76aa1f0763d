//! A folder of its own for each test, with a key, a state directory, and the program.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

pub struct Stage {
    folder: TempDir,
}

/// How a command ended.
pub struct Ended {
    /// What it ended with; after a signal, that signal's number with a minus before it.
    pub code: i32,
    pub out: String,
    pub bytes: Vec<u8>,
    pub err: String,
}

impl Stage {
    /// A folder with a key file in it.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let stage = Self { folder };
        stage.write("k", "0123456789abcdef".repeat(4));
        stage
    }

    /// A folder with a key and an empty database.
    pub fn with_database() -> Self {
        let stage = Self::new();
        stage.good(&["init", "db"]);
        stage
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("written");
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("read")
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).expect("text")
    }

    pub fn copy(&self, from: &str, to: &str) {
        fs::copy(self.path(from), self.path(to)).expect("copied");
    }

    /// The program, in this folder, with this folder's key and state and nothing else of the environment.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_counterfoil"));
        command
            .args(words)
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("TMPDIR", self.folder.path())
            .env("COUNTERFOIL_KEY_FILE", self.path("k"))
            .env("COUNTERFOIL_STATE_DIR", self.path("state"))
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, words: &[&str]) -> Ended {
        ended(self.command(words).output().expect("runs"))
    }

    pub fn run_with_input(&self, words: &[&str], input: impl AsRef<[u8]>) -> Ended {
        let mut child = self.spawn(words);
        child.stdin.take().expect("a pipe").write_all(input.as_ref()).ok();
        ended(child.wait_with_output().expect("ends"))
    }

    /// As [`Stage::run`], on a disk on which no file can grow.
    pub fn run_where_it_is_full(&self, words: &[&str]) -> Ended {
        ended(self.command_where_it_is_full(words).stdin(Stdio::null()).output().expect("runs"))
    }

    /// A command on a disk on which no file can grow.
    pub fn command_where_it_is_full(&self, words: &[&str]) -> Command {
        let program = self.command(words);
        let mut shell = Command::new("sh");
        // Without the signal the system answers an error, as a full disk does.
        shell.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]).arg(program.get_program());
        shell.args(program.get_args()).current_dir(self.folder.path()).env_clear();
        shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell
    }

    /// Started, with pipes.
    pub fn spawn(&self, words: &[&str]) -> Child {
        let mut command = self.command(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts")
    }

    /// A command that ends well; what it printed.
    pub fn good(&self, words: &[&str]) -> String {
        let ended = self.run(words);
        assert_eq!(ended.code, 0, "{words:?}: {}", ended.err);
        ended.out
    }

    /// A command that is refused with this exit code and one line that holds all of these.
    pub fn refused(&self, words: &[&str], code: i32, says: &[&str]) -> String {
        let ended = self.run(words);
        assert_eq!(ended.code, code, "{words:?}: {} {}", ended.out, ended.err);
        ended.says(says);
        ended.err
    }

    /// What SQL answers, as CSV without the names.
    pub fn ask(&self, sql: &str) -> String {
        self.good(&["db", sql, "--no-header"]).trim_end().replace('\n', ";")
    }
}

impl Ended {
    /// Asserts that there is one line of error, and that it holds all of these.
    pub fn says(&self, parts: &[&str]) {
        let errors: Vec<&str> = self.err.lines().filter(|line| line.starts_with("error: ")).collect();
        let others = self.err.lines().filter(|line| !line.starts_with("error: ") && !line.starts_with("note: "));
        assert_eq!((errors.len(), others.count()), (1, 0), "{}", self.err);
        for part in parts {
            assert!(errors[0].contains(part), "{part:?} is not in {:?}", errors[0]);
        }
    }
}

pub fn ended(output: Output) -> Ended {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended {
        code: output.status.code().unwrap_or_else(|| -output.status.signal().unwrap_or(0)),
        out: text(&output.stdout),
        err: text(&output.stderr),
        bytes: output.stdout,
    }
}
