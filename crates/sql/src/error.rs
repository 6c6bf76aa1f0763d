//! What the SQL floor can answer instead of doing what it was asked.

use std::fmt;

use counterfoil_log as log;
use counterfoil_relation as relation;
use datafusion::arrow::error::ArrowError;
use datafusion::common::{DataFusionError, SchemaError};
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::TokenizerError;

use crate::memory;
use crate::ram::Ram;
use crate::wording;

/// Why a statement was not run.
///
/// Display is `what (where): what to do`, without values of rows: errors end up in logs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The statement does not parse, or names and types in it do not fit.
    Sql(String),
    /// A row breaks a rule of its table.
    Constraint(String),
    /// A value is out of the range of its column.
    TooLarge(String),
    /// A text is longer than its column takes.
    TooLong(String),
    /// The statement is understood and refused because this database cannot do it.
    NotSupported(String),
    /// A table or view does not exist.
    NoTable(String),
    /// A column does not exist.
    NoColumn(String),
    /// A cursor does not exist.
    NoCursor(String),
    /// Something else that has a name does not exist: an index, a setting, a savepoint, a file.
    NotFound(String),
    /// What is to be made is there already.
    Taken(Named, String),
    /// A number was divided by zero.
    DivisionByZero,
    /// A number does not fit its type.
    OutOfRange,
    /// What is calculated does not fit its type: what it is.
    Overflow(String),
    /// A function has no value for what it is given: the root of a negative number.
    Undefined(String),
    /// A statement would update one row twice.
    Twice(String),
    /// The transaction has failed, and waits for ROLLBACK.
    Failed,
    /// A text is no value of the type that it should have.
    NotValid(String),
    /// A transaction that only reads was to change something.
    ReadOnly,
    /// It is too late in a transaction to say this of it.
    Begun(String),
    /// A text has a zero in it, which none may have.
    ZeroInText,
    /// The caller broke the rules of this interface.
    Misuse(String),
    /// Text that came with a statement (a COPY file) is malformed.
    Input(String),
    /// The query needs more working memory than it may take.
    Memory(String),
    /// Another connection or process is writing, and did not end in time.
    Locked(String),
    /// Another transaction committed since this one, which sees the same throughout, began.
    Conflict(String),
    /// A server could not be reached, or broke off.
    Network(String),
    /// What a server that nobody trusts said is not what the owner of a published table signed; and the verdict in a word.
    NotVerified(String, Option<&'static str>),
    /// The query was interrupted by its caller.
    Interrupted,
    /// It took longer than `statement_timeout` says.
    TimedOut,
    /// A file of the host (COPY) could not be read or written.
    Host(String),
    /// The table store refused.
    Relation(relation::Error),
    /// The log refused.
    Log(log::Error),
    /// Ours. Please report it.
    Bug(String),
    /// What is wrong, and where in the text that was given.
    At(Box<Error>, Position),
}

/// Where in a text something is wrong, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// A letter of the statement.
    Statement {
        /// Its line.
        line: u64,
        /// Its place in the line.
        column: u64,
    },
    /// A line of the rows that came with the statement (COPY).
    Rows {
        /// The line.
        line: u64,
    },
    /// A line of a file of the host that the statement names.
    File {
        /// Its name.
        name: String,
        /// The line.
        line: u64,
    },
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Statement { line, column } => write!(f, "line {line}, column {column}"),
            Position::Rows { line } => write!(f, "line {line}"),
            Position::File { name, line } => write!(f, "{name} line {line}"),
        }
    }
}

/// What has a name that another cannot have beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A table, a view or an index.
    Table,
    /// A schema.
    Schema,
    /// A cursor of the session.
    Cursor,
    /// A statement that the session has prepared.
    Statement,
}

/// The result of a statement, or of a part of one.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// That there is a table, a view or an index of a name: one of them has it.
pub(crate) fn name_taken(name: &str) -> Error {
    Error::Taken(Named::Table, format!("there is a table, view or index {name} already"))
}

impl Error {
    /// The same error, saying where in the text that was given.
    pub(crate) fn at(self, position: Position) -> Self {
        Error::At(Box::new(self), position)
    }

    /// The same error, where rows are those of a file.
    pub(crate) fn in_file(self, name: &str) -> Self {
        match self {
            Error::At(error, Position::Rows { line }) => error.at(Position::File { name: name.to_owned(), line }),
            other => other,
        }
    }

    /// Whether the medium has no room left.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Error::Log(error) => error.is_full(),
            Error::Relation(error) => match error.cause() {
                relation::Cause::Log { source, .. } => source.is_full(),
                _ => false,
            },
            _ => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Sql(text)
            | Error::Constraint(text)
            | Error::TooLarge(text)
            | Error::TooLong(text)
            | Error::NoTable(text)
            | Error::NoColumn(text)
            | Error::NoCursor(text)
            | Error::NotFound(text)
            | Error::Taken(_, text)
            | Error::NotValid(text)
            | Error::Overflow(text)
            | Error::Undefined(text)
            | Error::Twice(text)
            | Error::Begun(text)
            | Error::Misuse(text)
            | Error::Input(text)
            | Error::Memory(text)
            | Error::Locked(text)
            | Error::Conflict(text)
            | Error::Network(text)
            | Error::NotVerified(text, _)
            | Error::Host(text) => f.write_str(text),
            Error::DivisionByZero => f.write_str("division by zero"),
            Error::Failed => f.write_str("the transaction has failed: ROLLBACK it first"),
            Error::ReadOnly => f.write_str("this transaction is READ ONLY"),
            Error::ZeroInText => f.write_str("a text has a zero byte in it, which none may have"),
            Error::OutOfRange => f.write_str("a number is out of the range of its type"),
            Error::NotSupported(what) => write!(f, "not supported: {what}"),
            Error::Interrupted => f.write_str("interrupted"),
            Error::TimedOut => {
                f.write_str("interrupted: it took longer than statement_timeout says: SET statement_timeout = 0 lets statements take as long as they do")
            }
            Error::Relation(error) => error.fmt(f),
            Error::Log(error) => error.fmt(f),
            Error::Bug(text) => write!(f, "internal error: {text}: please report it"),
            Error::At(error, position) => write!(f, "{error} ({position})"),
        }
    }
}

impl std::error::Error for Error {}

impl From<log::Error> for Error {
    fn from(error: log::Error) -> Self {
        Error::Log(error)
    }
}

impl Error {
    /// What tables answered to a query, with what to do where its memory is too small.
    pub(crate) fn of_tables(error: relation::Error) -> Self {
        match error.memory_needed() {
            // One step of a query has half of what there is at most.
            Some(bytes) => Error::of_memory(bytes, bytes.saturating_mul(2)),
            None => Error::Relation(error),
        }
    }

    /// A query needs so many bytes, and has as many where all queries have so many.
    pub(crate) fn of_memory(bytes: usize, of_all: usize) -> Self {
        Error::Memory(format!(
            "the query needs {bytes} bytes of working memory at least: give it more (--ram {}), or let it look at fewer rows",
            Ram::for_queries(of_all)
        ))
    }
}

impl From<ParserError> for Error {
    fn from(error: ParserError) -> Self {
        match error {
            ParserError::TokenizerError(text) | ParserError::ParserError(text) => unparsed(&text),
            ParserError::RecursionLimitExceeded => Error::Sql("the statement is nested too deeply".into()),
        }
    }
}

impl From<TokenizerError> for Error {
    fn from(error: TokenizerError) -> Self {
        unparsed(&error.to_string())
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        arrow(&error)
    }
}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        datafusion(&error)
    }
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        DataFusionError::External(Box::new(error))
    }
}

/// Finds what a person needs in an error of the query library: our own error if one travelled through it, else the
/// innermost message without the library's prefixes.
fn datafusion(error: &DataFusionError) -> Error {
    match error {
        DataFusionError::External(inner) => external(inner.as_ref()),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => datafusion(inner),
        DataFusionError::Shared(inner) => datafusion(inner),
        DataFusionError::Collection(errors) => match errors.first() {
            Some(first) => datafusion(first),
            None => Error::Bug("an empty collection of errors".into()),
        },
        DataFusionError::ArrowError(inner, _) => arrow(inner),
        DataFusionError::SQL(inner, _) => Error::from((**inner).clone()),
        DataFusionError::SchemaError(inner, _) => schema(inner),
        DataFusionError::NotImplemented(text) => wording::known(&first_line(text))
            .unwrap_or_else(|| Error::NotSupported(wording::plain(&decapitated(&first_line(text))))),
        DataFusionError::Plan(text)
        | DataFusionError::Configuration(text)
        | DataFusionError::Execution(text)
        | DataFusionError::Substrait(text)
        | DataFusionError::Ffi(text) => said(text),
        DataFusionError::ExecutionJoin(join) if join.is_cancelled() => Error::Interrupted,
        DataFusionError::ResourcesExhausted(refusal) => {
            let enough =
                memory::needed(refusal).map_or_else(String::new, |bytes| format!(" {}", Ram::for_queries(bytes)));
            Error::Memory(format!(
                "the query needs more working memory than it may take: give it more (--ram{enough}), or let it look at fewer rows"
            ))
        }
        DataFusionError::IoError(inner) => host(inner),
        DataFusionError::Internal(text) => {
            wording::known(&first_line(text)).unwrap_or_else(|| Error::Bug(readable(&error.strip_backtrace())))
        }
        other => Error::Bug(readable(&other.strip_backtrace())),
    }
}

/// What the library says, in the words of SQL.
fn said(text: &str) -> Error {
    // A name may have several lines, which are no part of what the library adds.
    if let Some((_, rest)) = text.split_once("table '")
        && let Some((name, _)) = rest.split_once("' not found").filter(|(name, _)| name.contains('\n'))
    {
        let name = name.trim_start_matches("counterfoil.").trim_start_matches("public.");
        return Error::NoTable(format!("table '{name}' not found"));
    }
    let text = bare(text);
    if let Some(error) = wording::known(&text) {
        return error;
    }
    if let Some(name) = text.strip_prefix("table '").and_then(|rest| rest.strip_suffix("' not found")) {
        return Error::NoTable(format!("table '{}' not found", name.trim_start_matches("counterfoil.")));
    }
    Error::Sql(wording::plain(&decapitated(&text)))
}

fn external(error: &(dyn std::error::Error + Send + Sync + 'static)) -> Error {
    if let Some(error) = error.downcast_ref::<Error>() {
        return error.clone();
    }
    if let Some(error) = error.downcast_ref::<DataFusionError>() {
        return datafusion(error);
    }
    if let Some(error) = error.downcast_ref::<ArrowError>() {
        return arrow(error);
    }
    said(&error.to_string())
}

/// What a file answered: our own error if it came through one.
fn host(error: &std::io::Error) -> Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(ours) => ours.clone(),
        None => Error::Host(error.to_string()),
    }
}

fn arrow(error: &ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(inner) => external(inner.as_ref()),
        ArrowError::IoError(_, inner) => host(inner),
        ArrowError::DivideByZero => Error::DivisionByZero,
        ArrowError::ArithmeticOverflow(_) => Error::OutOfRange,
        ArrowError::CastError(text) if text.starts_with("Cannot cast string") => {
            // The library quotes the value here; values do not belong into messages that may be logged.
            let kind = text.rsplit(" to value of ").next().unwrap_or(text);
            let kind = kind.strip_suffix(" type").unwrap_or(kind);
            Error::NotValid(format!("a text is not a valid {}", crate::types::arrow_name(kind)))
        }
        ArrowError::ParseError(_) => {
            Error::NotValid("a text is not a valid value of the type it is compared with".into())
        }
        ArrowError::CastError(text)
        | ArrowError::ComputeError(text)
        | ArrowError::InvalidArgumentError(text)
        | ArrowError::NotYetImplemented(text) => said(text),
        other => said(&other.to_string()),
    }
}

fn schema(error: &SchemaError) -> Error {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let mut known: Vec<&str> = valid_fields.iter().map(|column| column.name.as_str()).collect();
            known.retain(|name| !name.starts_with(crate::HIDDEN));
            known.truncate(12);
            let hint = if known.is_empty() { String::new() } else { format!(" (there are {})", known.join(", ")) };
            Error::NoColumn(format!("no column {}{hint}", field.flat_name()))
        }
        SchemaError::AmbiguousReference { field } => {
            Error::Sql(format!("column {} is ambiguous: qualify it with its table", field.name))
        }
        other => Error::Sql(readable(&other.to_string())),
    }
}

pub(crate) fn first_line(text: &str) -> String {
    let text = text.split("\n\nbacktrace:").next().unwrap_or(text);
    let first = text.lines().next().unwrap_or_default().trim();
    // What a pattern lacks is said behind the pattern, in the last line.
    match text.lines().last().and_then(|last| last.trim().strip_prefix("error: ")) {
        Some(last) if first.ends_with(':') => format!("{first} {last}"),
        _ => first.to_owned(),
    }
}

fn readable(text: &str) -> String {
    decapitated(&bare(text))
}

/// A message without what the library puts around it.
fn bare(text: &str) -> String {
    let mut text = first_line(text);
    for prefix in [
        "Error during planning: ",
        "Execution error: ",
        "External error: ",
        "Arrow error: ",
        "Compute error: ",
        "Cast error: ",
        "Invalid argument error: ",
        "Optimizer rule 'type_coercion' failed",
        "This feature is not implemented: ",
        "Schema error: ",
        "type_coercion",
        "caused by ",
    ] {
        while let Some(rest) = text.strip_prefix(prefix) {
            text = rest.to_owned();
        }
    }
    let text = text.replace("datafusion.public.", "").replace("counterfoil.public.", "");
    let text = text.split(" No function matches the given name").next().unwrap_or(&text).to_owned();
    text.trim().trim_end_matches('.').to_owned()
}

/// What the parser says, with where it stopped.
fn unparsed(text: &str) -> Error {
    let (what, position) = wording::parse_error(text);
    let error = Error::Sql(decapitated(what.trim()));
    match position {
        Some((line, column)) => error.at(Position::Statement { line, column }),
        None => error,
    }
}

/// Lower-cases the first letter of a sentence that begins with an ordinary word.
fn decapitated(text: &str) -> String {
    let mut letters = text.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if first.is_uppercase() && second.is_lowercase() => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}
