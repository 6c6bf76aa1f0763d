//! The interactive shell: statements over several lines until a semicolon, and commands that begin with a backslash.

mod complete;

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use counterfoil::{Database, Error, Kind, TransactionState, quoted};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};

use crate::arguments::Format;
use crate::closing;
use crate::failure::{Failure, Result};
use crate::output::Style;
use crate::sql::Runner;
use crate::terminal::{self, Cancelling};
use complete::Completion;
use counterfoil::statements;

const HELP: &str = "\
SQL statements end with a semicolon.
  \\d              list tables and views
  \\d TABLE        describe a table
  \\i FILE         run a file
  \\timing [on|off]  tell how long statements take
  \\history on     remember what is typed, in a file of this user, from now on
  \\history off    stop remembering, and forget
  \\?              this list
  \\q              leave (or Ctrl-D)
Ctrl-C cancels what is being typed or what is running.";

/// Runs it until it is left.
pub fn run(database: &Database, style: Style) -> Result<()> {
    let config =
        Config::builder().auto_add_history(false).max_history_size(1000).map(rustyline::config::Builder::build);
    let config = config.unwrap_or_default();
    let mut editor: Editor<Completion, FileHistory> =
        Editor::with_history(config.clone(), FileHistory::with_config(&config)).map_err(|error| broken(&error))?;
    editor.set_helper(Some(Completion::default()));
    let mut shell = Shell {
        runner: Runner { connection: database.connect()?, style },
        database: database.clone(),
        timing: false,
        history: None,
        pending: String::new(),
    };
    if !terminal::is_quiet() {
        say(format_args!("counterfoil {}: \\? lists commands, \\q leaves", env!("CARGO_PKG_VERSION")))?;
    }
    shell.learn(&mut editor);
    let left = shell.talk(&mut editor);
    let Shell { runner, .. } = shell;
    runner.warn_of_open_transaction();
    drop(runner);
    left?;
    closing::close(database.clone())
}

fn broken(error: &ReadlineError) -> Failure {
    counterfoil::Error::new(Kind::Device, format!("the terminal cannot be read: {error}")).into()
}

struct Shell {
    runner: Runner,
    database: Database,
    timing: bool,
    /// Where lines are remembered, once that was asked for.
    history: Option<PathBuf>,
    /// The beginning of a statement.
    pending: String,
}

type Lines = Editor<Completion, FileHistory>;

impl Shell {
    fn talk(&mut self, editor: &mut Lines) -> Result<()> {
        loop {
            match editor.readline(&self.prompt()) {
                Ok(line) => {
                    if !self.line(editor, &line)? {
                        return Ok(());
                    }
                }
                Err(ReadlineError::Interrupted) => self.pending.clear(),
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(broken(&error)),
            }
        }
    }

    fn prompt(&self) -> String {
        let name = match self.database.place().path().and_then(|path| path.file_stem()) {
            Some(name) => name.to_string_lossy(),
            None => Cow::Borrowed("memory"),
        };
        let state = match self.runner.connection.transaction_state() {
            TransactionState::Idle => "",
            TransactionState::Open => "*",
            TransactionState::Failed => "!",
        };
        let sign = if self.pending.is_empty() { "=" } else { "-" };
        format!("{name}{sign}{state}> ")
    }

    /// Takes a line; false to leave.
    fn line(&mut self, editor: &mut Lines, line: &str) -> Result<bool> {
        if self.pending.is_empty() && line.trim_start().starts_with('\\') {
            self.remember(editor, line);
            return self.command(editor, line.trim());
        }
        if self.pending.is_empty() && matches!(line.trim(), "exit" | "quit") {
            return Ok(false);
        }
        self.pending.push_str(line);
        self.pending.push('\n');
        let text = std::mem::take(&mut self.pending);
        let (complete, taken) = statements::split_complete(&text);
        if complete.is_empty() {
            self.pending = if statements::is_blank(&text) { String::new() } else { text };
            return Ok(true);
        }
        self.remember(editor, text[..taken].trim());
        for statement in &complete {
            if !self.statement(statement.text)? {
                break;
            }
        }
        let rest = text[taken..].trim_start();
        self.pending = if statements::is_blank(rest) { String::new() } else { rest.to_owned() };
        if complete.iter().any(|statement| changes_names(statement.text)) {
            self.learn(editor);
        }
        Ok(true)
    }

    /// Runs a statement; false if it failed.
    fn statement(&mut self, text: &str) -> Result<bool> {
        let begun = Instant::now();
        let interrupt = self.runner.connection.interrupt();
        let cancelling = Cancelling::with(move || interrupt.raise());
        let result = match statements::copies_in(text) {
            true => Err(copy_in_refused().into()),
            false => self.runner.statement(text),
        };
        drop(cancelling);
        let good = self.told(result)?;
        if self.timing {
            say(format_args!("Time: {:.3} ms", begun.elapsed().as_secs_f64() * 1000.0))?;
        }
        Ok(good)
    }

    /// Tells an error and goes on; only a terminal that is gone ends the shell.
    fn told(&self, result: Result<()>) -> Result<bool> {
        match result {
            Ok(()) => Ok(true),
            Err(Failure::Error(error)) => {
                terminal::error(&error);
                Ok(false)
            }
            Err(gone) => Err(gone),
        }
    }

    /// Runs a command that begins with a backslash; false to leave.
    fn command(&mut self, editor: &mut Lines, line: &str) -> Result<bool> {
        let (command, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let argument = argument.trim().trim_end_matches(';').trim();
        match (command, argument) {
            ("\\q", _) => return Ok(false),
            ("\\?" | "\\h" | "\\help", _) => say(HELP)?,
            ("\\d" | "\\dt", "") => self.list()?,
            ("\\d", table) => self.describe(table)?,
            ("\\i", "") => terminal::error("\\i wants a file"),
            ("\\i", file) => {
                let interrupt = self.runner.connection.interrupt();
                let cancelling = Cancelling::with(move || interrupt.raise());
                let result = self.runner.file(&PathBuf::from(file));
                drop(cancelling);
                self.told(result)?;
                self.learn(editor);
            }
            ("\\timing", "on" | "off" | "") => {
                self.timing = if argument.is_empty() { !self.timing } else { argument == "on" };
                say(format_args!("Timing is {}.", if self.timing { "on" } else { "off" }))?;
            }
            ("\\history", "on" | "off") => self.set_history(editor, argument == "on"),
            ("\\history" | "\\timing", _) => terminal::error(format_args!("{command} is followed by on or off")),
            _ => terminal::error(format_args!("no command {command}: \\? lists them")),
        }
        Ok(true)
    }

    fn list(&mut self) -> Result<()> {
        self.show(
            "SELECT table_name AS name, CASE table_type WHEN 'VIEW' THEN 'view' ELSE 'table' END AS kind \
             FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1",
        )
    }

    fn describe(&mut self, table: &str) -> Result<()> {
        let name = match table.strip_prefix('"').and_then(|table| table.strip_suffix('"')) {
            Some(inner) => inner.replace("\"\"", "\""),
            None => table.to_lowercase(),
        };
        self.show(&format!("DESCRIBE {}", quoted(&name)))
    }

    /// Shows rows as a table, whatever format results have.
    fn show(&mut self, sql: &str) -> Result<()> {
        let format = std::mem::replace(&mut self.runner.style.format, Format::Table);
        let shown = self.runner.statement(sql);
        self.runner.style.format = format;
        self.told(shown).map(drop)
    }

    /// Tells the editor which names there are, for completion.
    fn learn(&mut self, editor: &mut Lines) {
        let Some(helper) = editor.helper_mut() else { return };
        let mut names = Vec::new();
        for table in self.database.table_names().unwrap_or_default() {
            let columns = self.runner.connection.columns(&table).ok().flatten().unwrap_or_default();
            names.extend(columns.into_iter().map(|column| column.name));
            names.push(table);
        }
        helper.learn(names);
    }

    fn remember(&mut self, editor: &mut Lines, text: &str) {
        if text.is_empty() {
            return;
        }
        // In memory always, so that the arrow keys work; in a file only if that was asked for.
        let _ = editor.add_history_entry(text.replace('\n', " "));
        if let Some(path) = &self.history {
            let _ = editor.append_history(path);
        }
    }

    fn set_history(&mut self, editor: &mut Lines, on: bool) {
        let Ok(counterfoil::Counter::File(folder)) = counterfoil::Counter::user_default() else {
            return terminal::error("nothing says where the history is kept: set COUNTERFOIL_STATE_DIR");
        };
        let path = folder.join("history");
        if !on {
            self.history = None;
            let _ = std::fs::remove_file(&path);
            return terminal::note("history is off, and what it held is deleted");
        }
        if let Err(error) = make_private(&folder, &path) {
            return terminal::error(counterfoil::Error::host("keep the history", path.display(), &error));
        }
        // What was typed before it was asked for is not written.
        let _ = editor.clear_history();
        let _ = editor.load_history(&path);
        terminal::note(format_args!("from now on statements are kept in the clear in {}", path.display()));
        self.history = Some(path);
    }
}

/// A file that only its owner may read.
fn make_private(folder: &std::path::Path, path: &std::path::Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path).map(drop)
}

/// The shell reads key by key: rows come from elsewhere.
fn copy_in_refused() -> Error {
    let refused = "not supported: COPY ... FROM STDIN in the shell";
    Error::new(Kind::NotSupported, refused)
        .advise("put it into a script for -f with the rows, name a file, or use `import`")
}

fn changes_names(text: &str) -> bool {
    matches!(statements::first_word(text).as_str(), "CREATE" | "DROP" | "ALTER" | "COMMIT" | "ROLLBACK")
}

fn say(what: impl std::fmt::Display) -> Result<()> {
    writeln!(io::stdout(), "{what}").map_err(Failure::output)
}
