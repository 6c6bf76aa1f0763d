//! `sql`: statements from the command line, from files, from standard input.
//!
//! Each `-c` is one transaction. Files and standard input commit statement by statement and stop at the first error,
//! whose line is named. `-1` makes one transaction of everything.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use counterfoil::{Connection, Error, Kind, Outcome, TransactionState};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::arguments::{Format, Sql};
use crate::context::Context;
use crate::failure::{Failure, Result, input, misuse};
use crate::output::Style;
use crate::statements::{self, Statement};
use crate::{shell, terminal};

/// The places of `-c` and `-f` on the command line: they run in the order in which they stand.
#[derive(Default)]
pub struct Order {
    commands: Vec<usize>,
    files: Vec<usize>,
}

impl Order {
    pub fn of(matches: &ArgMatches) -> Self {
        let Some(("sql", matches)) = matches.subcommand() else { return Self::default() };
        let places = |name| matches.indices_of(name).map(Iterator::collect).unwrap_or_default();
        Self { commands: places("command"), files: places("file") }
    }
}

enum Input {
    Command(String),
    File(PathBuf),
}

pub fn run(context: &Context, arguments: Sql, order: &Order) -> Result<()> {
    let style = Style::for_standard_output(arguments.shape.format, &arguments.shape.fields)?;
    let options = context.options(&arguments.db)?.read_only(arguments.read_only);
    let database = counterfoil::Database::open(options)?;
    let inputs = inputs(&arguments, order);
    if inputs.is_empty() && io::stdin().is_terminal() {
        return shell::run(&database, style);
    }
    let mut runner = Runner { connection: database.connect()?, style, reads_input: false };
    if arguments.one {
        runner.connection.execute("BEGIN", &[])?;
    }
    for input in inputs {
        match input {
            Input::Command(text) if arguments.one => runner.script(&text)?,
            Input::Command(text) => runner.transaction(&text)?,
            Input::File(path) => {
                runner.reads_input = true;
                runner.file(&path)?;
                runner.reads_input = false;
            }
        }
    }
    if arguments.one {
        runner.commit()?;
    }
    runner.warn_of_open_transaction();
    drop(runner);
    Ok(database.close()?)
}

/// What is to be run, in the order of the command line; standard input if nothing is named.
fn inputs(arguments: &Sql, order: &Order) -> Vec<Input> {
    let mut inputs: Vec<(usize, Input)> = Vec::new();
    let place = |places: &[usize], index: usize| places.get(index).copied().unwrap_or(usize::MAX);
    for (index, text) in arguments.command.iter().enumerate() {
        inputs.push((place(&order.commands, index), Input::Command(text.clone())));
    }
    for (index, path) in arguments.file.iter().enumerate() {
        inputs.push((place(&order.files, index), Input::File(path.clone())));
    }
    inputs.sort_by_key(|(place, _)| *place);
    let first = arguments.sql.iter().map(|text| Input::Command(text.clone()));
    let mut inputs: Vec<Input> = first.chain(inputs.into_iter().map(|(_, input)| input)).collect();
    if inputs.is_empty() && !io::stdin().is_terminal() {
        inputs.push(Input::File("-".into()));
    }
    inputs
}

/// Runs statements and prints what they answer.
pub struct Runner {
    pub connection: Connection,
    pub style: Style,
    /// Whether statements come from where the rows of a COPY would have to come from.
    pub reads_input: bool,
}

impl Runner {
    /// To be told at the end: what was not committed is not kept.
    pub fn warn_of_open_transaction(&self) {
        if self.connection.transaction_state() != TransactionState::Idle {
            terminal::warning("the transaction was not committed, so it is rolled back");
        }
    }

    /// Runs a text as one transaction, unless it has transactions of its own.
    fn transaction(&mut self, text: &str) -> Result<()> {
        let statements = statements::split(text);
        let own = statements.iter().any(|statement| statements::is_transaction_control(statement.text));
        if statements.len() < 2 || own || self.connection.transaction_state() != TransactionState::Idle {
            return self.each(&statements);
        }
        self.connection.execute("BEGIN", &[])?;
        self.each(&statements).inspect_err(|_| {
            // The first error is the one to tell.
            let _ = self.connection.execute("ROLLBACK", &[]);
        })?;
        self.commit()
    }

    fn commit(&mut self) -> Result<()> {
        if self.connection.transaction_state() == TransactionState::Failed {
            return Err(misuse("the transaction had failed, so it is rolled back").into());
        }
        self.connection.execute("COMMIT", &[])?;
        Ok(())
    }

    /// Runs a text statement by statement.
    pub fn script(&mut self, text: &str) -> Result<()> {
        self.each(&statements::split(text))
    }

    fn each(&mut self, statements: &[Statement<'_>]) -> Result<()> {
        statements.iter().try_for_each(|statement| self.statement(statement.text))
    }

    /// Runs a file statement by statement, as it is read. Errors name its lines.
    pub fn file(&mut self, path: &Path) -> Result<()> {
        let (source, name) = if path.as_os_str() == "-" {
            (io::stdin().as_fd().try_clone_to_owned().map(File::from), "standard input".to_owned())
        } else {
            (File::open(path), path.display().to_string())
        };
        let mut source = source.map_err(|error| Error::host("read the file", &name, &error))?;
        let mut pending = Vec::new();
        let mut line = 1;
        let mut step = READ_BYTES;
        loop {
            let ended = read_on(&mut source, &mut pending, step);
            let ended = ended.map_err(|error| Error::host("read the file", &name, &error))?;
            let text = prefix(&pending, ended).map_err(|lines| {
                input("the text is not UTF-8").at(format!("{name} line {}", line + lines)).advise("convert it first")
            })?;
            let (statements, taken) =
                if ended { (statements::split(text), text.len()) } else { statements::split_complete(text) };
            for statement in statements {
                let at = line + statement.line - 1;
                self.statement(statement.text).map_err(|failure| failure.at(format!("{name} line {at}")))?;
            }
            if ended {
                return Ok(());
            }
            line += pending[..taken].iter().filter(|byte| **byte == b'\n').count();
            pending.drain(..taken);
            // A statement that does not end yet is looked at again only when there is twice as much of it, or when
            // whoever writes it waits.
            step = READ_BYTES.max(pending.len());
        }
    }

    /// Runs one statement and prints what it answers.
    pub fn statement(&mut self, text: &str) -> Result<()> {
        if statements::copies_in(text) {
            // In a script the rows would stand between its statements; `-c` takes them from standard input.
            if self.reads_input {
                let refused = "not supported: COPY ... FROM STDIN with the rows in the script";
                return Err(Error::new(Kind::NotSupported, refused).advise("name a file, or use `import`").into());
            }
            let rows = self.connection.copy_in(text, &mut io::stdin().lock())?;
            return self.print(Outcome::Count { tag: "COPY", rows });
        }
        for outcome in self.connection.run(text, &[])? {
            self.print(outcome)?;
        }
        Ok(())
    }

    fn print(&mut self, outcome: Outcome) -> Result<()> {
        match outcome {
            Outcome::Rows(rows) => {
                let mut count = 0;
                let mut writer = self.style.begin(rows.schema(), Box::new(io::BufWriter::new(io::stdout())))?;
                for batch in rows {
                    let batch = batch?;
                    count += batch.num_rows();
                    writer.batch(&batch)?;
                }
                writer.finish()?;
                if self.talks() {
                    say(format_args!("({count} {})", if count == 1 { "row" } else { "rows" }))?;
                }
                Ok(())
            }
            Outcome::CopyOut(text) => {
                let mut out = io::BufWriter::new(io::stdout());
                for piece in text {
                    out.write_all(&piece?).map_err(Failure::output)?;
                }
                out.flush().map_err(Failure::output)
            }
            Outcome::Count { tag, rows } if self.talks() => say(format_args!("{tag} {rows}")),
            Outcome::Done(tag) if self.talks() && !tag.is_empty() => say(tag),
            _ => Ok(()),
        }
    }

    /// Whether a person looks at the output, so that more than results belong into it.
    fn talks(&self) -> bool {
        self.style.format == Format::Table && io::stdout().is_terminal() && !terminal::is_quiet()
    }
}

const READ_BYTES: usize = 1 << 20;
const PIECE_BYTES: usize = 64 << 10;

/// Reads on, until enough is there or nothing more is waiting: who writes into a pipe may want an answer first. True at
/// the end.
fn read_on(source: &mut File, text: &mut Vec<u8>, enough: usize) -> io::Result<bool> {
    let before = text.len();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match source.read(&mut piece) {
            Ok(0) => return Ok(true),
            Ok(read) => text.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        let mut waiting = [PollFd::new(source.as_fd(), PollFlags::POLLIN)];
        // Where nobody can tell, reading is as good as asking.
        let waits = poll(&mut waiting, PollTimeout::ZERO).map_or(true, |ready| ready > 0);
        if text.len() - before >= enough || !waits {
            return Ok(false);
        }
    }
}

/// The part of bytes that is text: all of it at the end, else up to the last whole letter. The error counts line ends.
fn prefix(bytes: &[u8], ended: bool) -> Result<&str, usize> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) if error.error_len().is_none() && !ended => {
            Ok(std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default())
        }
        Err(error) => Err(bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count()),
    }
}

fn say(what: impl std::fmt::Display) -> Result<()> {
    writeln!(io::stdout(), "{what}").map_err(Failure::output)
}
