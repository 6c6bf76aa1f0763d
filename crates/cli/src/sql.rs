//! `sql`: statements from the command line, from files, from standard input.
//!
//! Each `-c` is one transaction. Files and standard input commit statement by statement and stop at the first error,
//! whose line is named. `-1` makes one transaction of everything.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use counterfoil::{Connection, Kind, Outcome, Position, TransactionState};

use crate::arguments::{self, Format, Sql};
use crate::closing;
use crate::context::Context;
use crate::failure::{Failure, Result, misuse};
use crate::output::Style;
use crate::script::{Script, Step};
use crate::{shell, terminal};
use counterfoil::statements::{self, Statement};

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
    let database = counterfoil::Database::open(options).map_err(|error| mistyped(&arguments.db, error))?;
    let inputs = inputs(&arguments, order);
    if inputs.is_empty() && io::stdin().is_terminal() {
        return shell::run(&database, style);
    }
    let mut runner = Runner { connection: database.connect()?, style };
    if arguments.one {
        runner.connection.execute("BEGIN", &[])?;
    }
    for input in inputs {
        match input {
            Input::Command(text) if arguments.one => runner.script(&text)?,
            Input::Command(text) => runner.transaction(&text)?,
            Input::File(path) => runner.file(&path)?,
        }
    }
    if arguments.one {
        runner.commit()?;
    }
    runner.warn_of_open_transaction();
    drop(runner);
    closing::close(database)
}

/// What to say of a database that is not there, where a command is called nearly so.
fn mistyped(db: &str, error: counterfoil::Error) -> counterfoil::Error {
    match arguments::command_like(db) {
        Some(meant) if error.kind() == Kind::NotFound => {
            counterfoil::Error::new(Kind::NotFound, "there is no such database")
                .at(db)
                .advise(format!("`counterfoil {meant}` may be meant, or make it with `counterfoil init`"))
        }
        _ => error,
    }
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
        statements.iter().try_for_each(|statement| {
            let begins = Position { line: statement.line as u64, column: Some(statement.column as u64) };
            self.statement(statement.text).map_err(|failure| failure.map(|error| error.part_that_begins(begins)))
        })
    }

    /// Runs a file statement by statement, as it is read. Errors name its lines.
    pub fn file(&mut self, path: &Path) -> Result<()> {
        let mut script = Script::open(path)?;
        while let Some(step) = script.next()? {
            let done = match statements::copies_in(&step.text) {
                true => self.copy_of(&mut script, &step),
                false => self.statement(&step.text),
            };
            done.map_err(|failure| failure.map(|error| error.part_of(script.name(), step.begins)))?;
        }
        Ok(())
    }

    /// Runs a COPY whose rows stand behind it. What is wrong with one is told by its own line.
    fn copy_of(&mut self, script: &mut Script, step: &Step) -> Result<()> {
        let name = script.name().to_owned();
        let mut rows = script.rows()?;
        let begins = rows.begins();
        self.copy_in(&step.text, &mut rows).map_err(|failure| {
            failure.map(|error| match error.position() {
                Some(Position { column: None, .. }) => error.part_of(name, begins),
                _ => error,
            })
        })
    }

    /// Runs one statement and prints what it answers.
    pub fn statement(&mut self, text: &str) -> Result<()> {
        if statements::copies_in(text) {
            return self.copy_in(text, &mut io::stdin().lock());
        }
        let done = self.run(text);
        self.notices();
        done
    }

    fn run(&mut self, text: &str) -> Result<()> {
        let outcomes = self.connection.run(text, &[])?;
        outcomes.into_iter().try_for_each(|outcome| self.print(outcome))
    }

    fn copy_in(&mut self, text: &str, rows: &mut dyn BufRead) -> Result<()> {
        let rows = self.connection.copy_in(text, rows)?;
        self.print(Outcome::Count { tag: "COPY", rows })?;
        self.notices();
        Ok(())
    }

    /// What a statement said beside its answer.
    fn notices(&mut self) {
        for notice in self.connection.take_notices() {
            terminal::note(format_args!("{notice}"));
        }
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

fn say(what: impl std::fmt::Display) -> Result<()> {
    writeln!(io::stdout(), "{what}").map_err(Failure::output)
}
