//! How the program ends: one line on standard error, and an exit code.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use counterfoil::{Error, Kind, Position};

/// Why a command ended early.
#[derive(Debug)]
pub enum Failure {
    /// An error to be told.
    Error(Error),
    /// What was printed, or put into a file, could not be written.
    Output(io::Error),
    /// Whoever read our output has gone: nobody is left to be told.
    ClosedPipe,
}

/// The result of a command, or of a part of one.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// What the system said about our own output.
    pub fn output(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Failure::ClosedPipe } else { Failure::Output(error) }
    }

    /// The same, where the output is a file.
    #[must_use]
    pub fn of_file(self, path: &Path) -> Self {
        match self {
            Failure::Output(error) => Failure::Error(Error::host("write the file", path.display(), &error)),
            other => other,
        }
    }

    /// The exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Error(error) => error.exit_code(),
            Failure::Output(_) => Kind::Device.exit_code(),
            Failure::ClosedPipe => 0,
        }
    }

    /// The same, saying which database it was where the error is of the database and says no place of its own. What is
    /// wrong with a statement is not.
    #[must_use]
    pub fn about(self, database: Option<&str>) -> Self {
        match (self, database) {
            (Failure::Error(error), Some(database)) if matches!(error.exit_code(), 2..=4) => {
                Failure::Error(error.at(database))
            }
            (other, _) => other,
        }
    }

    /// The same with another error, if there is one.
    #[must_use]
    pub fn map(self, change: impl FnOnce(Error) -> Error) -> Self {
        match self {
            Failure::Error(error) => Failure::Error(change(error)),
            other => other,
        }
    }

    /// The same, saying where.
    #[must_use]
    pub fn at(self, place: impl fmt::Display) -> Self {
        self.map(|error| error.at(place))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

/// Wrong use of the program.
pub fn misuse(what: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(Kind::Misuse, what)
}

/// Malformed data that was to be brought in.
pub fn input(what: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(Kind::Input, what)
}

/// The same, of a line of it, from 1.
pub fn on_line(line: u64, what: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    input(what).at_position(Position::of_line(line))
}

/// Tells a failure on standard error and turns it into the program's exit code.
pub fn report(failure: &Failure) -> ExitCode {
    match failure {
        Failure::Error(error) => crate::terminal::error(error),
        Failure::Output(error) => {
            crate::terminal::error(Error::host("write the output", "standard output", error));
        }
        Failure::ClosedPipe => {}
    }
    ExitCode::from(failure.exit_code())
}

/// Tells what the argument parser refused, in one line.
pub fn usage(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // The parser calls the program after the command that was asked for its version.
            let printed = match error.kind() {
                ErrorKind::DisplayVersion => writeln!(io::stdout(), "counterfoil {}", env!("CARGO_PKG_VERSION")),
                _ => error.print(),
            };
            return match printed {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => report(&Failure::output(error)),
            };
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            crate::terminal::error("no command was given: `counterfoil --help` lists them");
            return ExitCode::from(1);
        }
        _ => {}
    }
    crate::terminal::error(usage_line(&error.to_string()));
    ExitCode::from(1)
}

/// The parser's paragraphs as `what: what to do`.
fn usage_line(text: &str) -> String {
    let mut what = Vec::new();
    let mut advice = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(first) = line.strip_prefix("error: ") {
            what.push(first.trim_end_matches(':').to_owned());
        } else if let Some(tip) = line.strip_prefix("tip: ") {
            advice.push(tip.to_owned());
        } else if let Some(usage) = line.strip_prefix("Usage: ") {
            advice.push(format!("usage is `{usage}`"));
        } else if !line.starts_with("For more information") {
            what.push(line.to_owned());
        }
    }
    let what = what.join(" ");
    // What a value may be is said with it.
    if advice.is_empty() { what } else { format!("{what}: {}", advice.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::Parser;

    #[test]
    fn the_parsers_paragraphs_become_a_line() {
        let error = Arguments::try_parse_from(["counterfoil", "verify", "x", "--jus"]).expect_err("no such option");
        let line = usage_line(&error.to_string());
        assert!(line.starts_with("unexpected argument '--jus' found: "), "{line}");
        let error = Arguments::try_parse_from(["counterfoil", "backup", "x"]).expect_err("a file is missing");
        let line = usage_line(&error.to_string());
        assert!(line.contains("required arguments were not provided <FILE>: usage is"), "{line}");
        let error =
            Arguments::try_parse_from(["counterfoil", "sql", "x", "--format", "y"]).expect_err("no such format");
        let line = usage_line(&error.to_string());
        assert!(line.contains("'y'") && line.ends_with("influx]"), "{line}");
    }
}
