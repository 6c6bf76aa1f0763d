//! What the database can answer instead of doing what it was asked.
//!
//! Every error is one line for people, `what (where): what to do`, and one [`Kind`] for programs. Values of rows and
//! secrets are in neither.

use std::borrow::Cow;
use std::fmt;

use crate::position::Position;
use crate::rule::BrokenRule;
use crate::sqlstate;

/// What sort of error it is: what a program decides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The rules of this interface are broken: a wrong option, a handle used after `fork`.
    Misuse,
    /// The statement does not parse, or names and types in it do not fit.
    Sql,
    /// A row breaks a rule of its table.
    Constraint,
    /// Understood, and refused because this database cannot do it.
    NotSupported,
    /// A file, table, column, record or slot does not exist.
    NotFound,
    /// No key slot opens with this key or passphrase.
    WrongKey,
    /// The file is not a Counterfoil database.
    NotADatabase,
    /// Data that was to be brought in is malformed.
    Input,
    /// The snapshot was given up because the writer needed its space.
    SnapshotTooOld,
    /// The medium, or the system around it, refused or failed.
    Device,
    /// No room left.
    Full,
    /// A server could not be reached.
    Network,
    /// A promise between our own functions was broken: please report it.
    Bug,
    /// What authenticates makes no sense.
    Corrupt,
    /// A page is not what was last written there.
    Tampered,
    /// The image is older than what the counter vouches for.
    RolledBack,
    /// The counter cannot vouch for the image.
    CounterLost,
    /// An answer from an untrusted server failed verification.
    NotVerified,
    /// Another connection or process is writing.
    Locked,
    /// The caller interrupted it.
    Interrupted,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 20] = [
        Kind::Misuse,
        Kind::Sql,
        Kind::Constraint,
        Kind::NotSupported,
        Kind::NotFound,
        Kind::WrongKey,
        Kind::NotADatabase,
        Kind::Input,
        Kind::SnapshotTooOld,
        Kind::Device,
        Kind::Full,
        Kind::Network,
        Kind::Bug,
        Kind::Corrupt,
        Kind::Tampered,
        Kind::RolledBack,
        Kind::CounterLost,
        Kind::NotVerified,
        Kind::Locked,
        Kind::Interrupted,
    ];

    /// Its name, as it is written here: what faces in other languages call their errors.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Misuse => "Misuse",
            Kind::Sql => "Sql",
            Kind::Constraint => "Constraint",
            Kind::NotSupported => "NotSupported",
            Kind::NotFound => "NotFound",
            Kind::WrongKey => "WrongKey",
            Kind::NotADatabase => "NotADatabase",
            Kind::Input => "Input",
            Kind::SnapshotTooOld => "SnapshotTooOld",
            Kind::Device => "Device",
            Kind::Full => "Full",
            Kind::Network => "Network",
            Kind::Bug => "Bug",
            Kind::Corrupt => "Corrupt",
            Kind::Tampered => "Tampered",
            Kind::RolledBack => "RolledBack",
            Kind::CounterLost => "CounterLost",
            Kind::NotVerified => "NotVerified",
            Kind::Locked => "Locked",
            Kind::Interrupted => "Interrupted",
        }
    }

    /// Whether a database that is served cannot go on after it: its device failed, or what lies on it cannot be trusted.
    #[must_use]
    pub fn ends_serving(self) -> bool {
        use Kind::{Corrupt, CounterLost, Device, RolledBack, Tampered};
        matches!(self, Device | Corrupt | Tampered | RolledBack | CounterLost)
    }

    /// The exit code of a program that ends with this error.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Kind::Misuse
            | Kind::Sql
            | Kind::Constraint
            | Kind::NotSupported
            | Kind::NotFound
            | Kind::WrongKey
            | Kind::NotADatabase
            | Kind::Input
            | Kind::SnapshotTooOld => 1,
            Kind::Device | Kind::Full | Kind::Network | Kind::Bug => 2,
            Kind::Corrupt | Kind::Tampered | Kind::RolledBack | Kind::CounterLost | Kind::NotVerified => 3,
            Kind::Locked => 4,
            Kind::Interrupted => 130,
        }
    }
}

/// Why something was not done.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Parts>);

#[derive(Clone, PartialEq, Eq)]
struct Parts {
    kind: Kind,
    state: Option<&'static str>,
    what: Cow<'static, str>,
    place: Option<String>,
    position: Option<Position>,
    advice: Option<Cow<'static, str>>,
    verdict: Option<&'static str>,
    rule: Option<BrokenRule>,
}

/// The result of an operation on a database.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error that says what happened and nothing else.
    pub fn new(kind: Kind, what: impl Into<Cow<'static, str>>) -> Self {
        let (state, place, position, advice, verdict, rule) = (None, None, None, None, None, None);
        Self(Box::new(Parts { kind, state, what: what.into(), place, position, advice, verdict, rule }))
    }

    /// The same error, saying where. An inner place stays.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.0.place.get_or_insert_with(|| place.to_string());
        self
    }

    /// The same error, saying where in a text. A position that is there stays.
    #[must_use]
    pub fn at_position(mut self, position: Position) -> Self {
        self.0.position.get_or_insert(position);
        self
    }

    /// Where in a statement, a file or rows it is, if that is known: the place says of which.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.0.position
    }

    /// The same error of a part of a larger text, that begins there in it. What says its place already keeps it.
    #[must_use]
    pub fn part_of(mut self, text: impl fmt::Display, begins: Position) -> Self {
        if self.0.place.is_none() {
            self.0.position =
                Some(self.0.position.map_or(Position::of_line(begins.line), |inner| inner.within(begins)));
            self.0.place = Some(text.to_string());
        }
        self
    }

    /// The same, of a text without a name, where the error says a letter of the part.
    #[must_use]
    pub fn part_that_begins(mut self, begins: Position) -> Self {
        if let (None, Some(inner @ Position { column: Some(_), .. })) = (&self.0.place, self.0.position) {
            self.0.position = Some(inner.within(begins));
        }
        self
    }

    /// The same error, saying what to do. Advice that is there stays.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<Cow<'static, str>>) -> Self {
        self.0.advice.get_or_insert_with(|| advice.into());
        self
    }

    /// The same error without a place: the caller knows a better one.
    #[must_use]
    pub(crate) fn without_place(mut self) -> Self {
        self.0.place = None;
        self
    }

    /// Where: the file, table or address, and the line in it.
    fn location(&self) -> Option<String> {
        match (&self.0.place, self.0.position) {
            (None, None) => None,
            (Some(place), None) => Some(place.clone()),
            (None, Some(position)) => Some(position.to_string()),
            (Some(place), Some(position)) => Some(format!("{place} {position}")),
        }
    }

    /// What happened, without where and what to do.
    pub(crate) fn what(&self) -> &str {
        &self.0.what
    }

    /// Why an answer of an untrusted server was refused, in one word: `forged`, `incomplete`, `stale`, `malformed`, `clock` and
    /// their like. None for all other errors.
    #[must_use]
    pub fn verdict(&self) -> Option<&'static str> {
        self.0.verdict
    }

    /// The same error with the word of a refused answer.
    #[must_use]
    pub fn with_verdict(mut self, verdict: Option<&'static str>) -> Self {
        self.0.verdict = verdict;
        self
    }

    /// What sort of error it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The code of the SQL standard for it, as PostgreSQL has them (SQLSTATE, five characters): programs look at this and not at the
    /// text.
    #[must_use]
    pub fn sqlstate(&self) -> &'static str {
        self.0.state.unwrap_or_else(|| sqlstate::of_kind(self.0.kind))
    }

    /// The same error with a code that says more than its kind.
    #[must_use]
    pub(crate) fn with_state(mut self, state: Option<&'static str>) -> Self {
        self.0.state = state;
        self
    }

    /// The rule of a table that a row would break, where that is what went wrong.
    #[must_use]
    pub fn rule(&self) -> Option<&BrokenRule> {
        self.0.rule.as_ref()
    }

    /// The same error with the rule that a row would break.
    #[must_use]
    pub(crate) fn with_rule(mut self, rule: Option<BrokenRule>) -> Self {
        self.0.rule = rule;
        self
    }

    /// The exit code of a program that ends with this error.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.0.kind.exit_code()
    }

    /// What the system said about a file or folder.
    pub fn host(doing: &str, place: impl fmt::Display, error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        let (kind, advice) = match error.kind() {
            ErrorKind::NotFound => (Kind::NotFound, "check the name"),
            ErrorKind::AlreadyExists => (Kind::Misuse, "choose another name"),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                (Kind::Full, "make room and try again")
            }
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => (Kind::Device, "check the permissions"),
            ErrorKind::IsADirectory | ErrorKind::NotADirectory | ErrorKind::InvalidInput => {
                (Kind::Misuse, "check the name")
            }
            _ => (Kind::Device, "see the system's log"),
        };
        Self::new(kind, format!("could not {doing}: {}", system(error))).at(place).advise(advice)
    }
}

/// The system's words without its number.
pub(crate) fn system(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => "no reason given".into(),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One line each, whatever a file name or a library put into it.
        let mut line = self.0.what.to_string();
        if let Some(location) = self.location() {
            // What says which column it was, as the floors below do, says that with the rest of where it was.
            let (what, inner) = match line.strip_suffix(')').and_then(|line| line.rsplit_once(" (")) {
                Some((what, inner)) if inner.starts_with("column ") => (what, format!(", {inner}")),
                _ => (&*line, String::new()),
            };
            line = format!("{what} ({location}{inner})");
        }
        if let Some(advice) = &self.0.advice {
            line.push_str(&format!(": {advice}"));
        }
        for letter in line.chars() {
            match letter {
                '\n' | '\r' | '\t' => f.write_str(" ")?,
                letter if letter.is_control() => write!(f, "{}", letter.escape_default())?,
                letter => write!(f, "{letter}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line() {
        let error = Error::new(Kind::Input, "two\nlines").at("a\x1b[31mfile").advise("look");
        assert_eq!(error.to_string(), "two lines (a\\u{1b}[31mfile): look");
        assert_eq!(error.exit_code(), 1);
    }

    #[test]
    fn no_kind_is_left_out() {
        assert_eq!(Kind::ALL.len(), Kind::Interrupted as usize + 1, "the last one counts them");
        for (place, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, place);
            assert_eq!(kind.name(), format!("{kind:?}"));
        }
    }

    #[test]
    fn the_innermost_place_wins() {
        let error = Error::new(Kind::Sql, "no").at("line 3").at("file");
        assert_eq!(error.to_string(), "no (line 3)");
    }

    #[test]
    fn a_position_is_told_with_its_place() {
        let error = Error::new(Kind::Sql, "no").at_position(Position { line: 2, column: Some(5) });
        assert_eq!(error.to_string(), "no (line 2, column 5)");
        assert_eq!(error.at("x.sql").advise("look").to_string(), "no (x.sql line 2, column 5): look");
        let error = Error::new(Kind::Input, "no").at_position(Position::of_line(7)).at("x.csv");
        assert_eq!(error.to_string(), "no (x.csv line 7)");
        let begins = Position { line: 3, column: Some(4) };
        assert_eq!(error.part_of("y.sql", begins).to_string(), "no (x.csv line 7)");
        let error = Error::new(Kind::Sql, "no");
        assert_eq!(error.clone().part_of("y.sql", begins).to_string(), "no (y.sql line 3)");
        assert_eq!(error.clone().part_that_begins(begins).to_string(), "no");
        let error = error.at_position(Position { line: 1, column: Some(2) });
        assert_eq!(error.clone().part_of("y.sql", begins).to_string(), "no (y.sql line 3, column 5)");
        assert_eq!(error.part_that_begins(begins).to_string(), "no (line 3, column 5)");
        let error = Error::new(Kind::Sql, "no number (column a)").advise("look");
        assert_eq!(error.to_string(), "no number (column a): look");
        assert_eq!(error.at("x.csv").to_string(), "no number (x.csv, column a): look");
        let error = Error::new(Kind::Sql, "no column a (there are b)").at("x.sql");
        assert_eq!(error.to_string(), "no column a (there are b) (x.sql)");
    }

    #[test]
    fn the_system_is_quoted_in_its_words() {
        let error = Error::host("open the file", "x.csv", &std::io::Error::from_raw_os_error(2));
        assert_eq!(error.to_string(), "could not open the file: no such file or directory (x.csv): check the name");
        assert_eq!(error.kind(), Kind::NotFound);
    }
}
