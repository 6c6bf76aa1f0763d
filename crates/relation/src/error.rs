//! What a table can answer instead of doing what it was asked.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use counterfoil_log as log;

/// Why something was not done.
///
/// Row values never appear in an error: names of tables, constraints and columns do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The rows would break a rule of their table. The caller undoes the statement.
    Constraint(Box<Violation>),
    /// The definition asked for makes no sense: a name that is taken, a column that is not there.
    Sql(String),
    /// Understood, and not offered.
    NotSupported(String),
    /// The caller broke the rules of this interface.
    Misuse(&'static str),
    /// Bytes that authenticate make no sense.
    Corrupt {
        /// The table, or empty for the catalog.
        table: String,
        /// What was being read.
        what: &'static str,
    },
    /// The log below failed: tampered pages, a full medium, a broken device.
    Log {
        /// The table, or empty for the catalog.
        table: String,
        /// What the log said.
        source: log::Error,
    },
    /// The memory for a question is used up before it is answered.
    Memory {
        /// About how many bytes it would take; unknown where only a place to put things aside is missing.
        needed: Option<usize>,
    },
}

/// A rule that rows would break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What sort of rule.
    pub rule: Rule,
    /// The rule's name; for a rule of one column without a name of its own, the column's.
    pub constraint: String,
    /// The table whose rule it is.
    pub table: String,
    /// The columns it speaks of.
    pub columns: Vec<String>,
}

/// The rules a table can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// A value must be there.
    NotNull,
    /// No two rows with the same key.
    Unique,
    /// The row referenced must exist.
    Reference,
    /// A row that others reference must stay.
    Referenced,
    /// A text is longer than its type allows; characters there may be.
    Length(u32),
    /// A number does not fit NUMERIC(precision, scale).
    Range(u8, u8),
    /// The next value of an identity column does not fit its type.
    Identity,
    /// A CHECK, evaluated by the caller.
    Check,
}

impl Error {
    pub(crate) fn sql(message: impl Into<String>) -> Self {
        Error::Sql(message.into())
    }

    pub(crate) fn corrupt(table: &str, what: &'static str) -> Self {
        Error::Corrupt { table: table.into(), what }
    }

    /// Names the table in an error of the log.
    pub(crate) fn log(table: &str) -> impl Fn(log::Error) -> Error + Copy + '_ {
        move |source| Error::Log { table: table.into(), source }
    }

    pub(crate) fn violation(rule: Rule, constraint: &str, table: &str, columns: Vec<String>) -> Self {
        let violation = Violation { rule, constraint: constraint.into(), table: table.into(), columns };
        Error::Constraint(Box::new(violation))
    }

    /// Whether reading met bytes that are damaged, rather than a broken promise of the caller or the device.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Error::Corrupt { .. } => true,
            Error::Log { source, .. } => {
                matches!(source, log::Error::Tampered { .. } | log::Error::Corrupt { .. } | log::Error::Device(_))
            }
            _ => false,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { rule, constraint, table, columns } = self;
        let columns = columns.join(", ");
        match rule {
            Rule::NotNull => write!(f, "column {columns} of table {table} must not be NULL"),
            Rule::Unique => {
                write!(f, "table {table} already has a row with this key ({columns}): unique constraint {constraint}")
            }
            Rule::Reference => write!(
                f,
                "a row of table {table} references a row that does not exist ({columns}): foreign key {constraint}"
            ),
            Rule::Referenced => {
                write!(f, "a row is still referenced from table {table} ({columns}): foreign key {constraint}")
            }
            Rule::Length(max) => {
                write!(f, "a text is longer than the {max} characters of column {columns} of table {table}")
            }
            Rule::Range(precision, scale) => {
                write!(f, "a number does not fit NUMERIC({precision},{scale}) of column {columns} of table {table}")
            }
            Rule::Identity => write!(f, "identity column {columns} of table {table} has no more values"),
            Rule::Check => write!(f, "a row of table {table} breaks check constraint {constraint}"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Constraint(violation) => violation.fmt(f),
            Error::Sql(message) => f.write_str(message),
            Error::NotSupported(what) => write!(f, "not supported: {what}"),
            Error::Misuse(what) => f.write_str(what),
            Error::Corrupt { table, what } if table.is_empty() => write!(f, "the {what} makes no sense"),
            Error::Corrupt { table, what } => write!(f, "table {table}: the {what} makes no sense"),
            Error::Log { table, source } if table.is_empty() => source.fmt(f),
            Error::Log { table, source } => write!(f, "table {table}: {source}"),
            Error::Memory { needed: Some(bytes) } => write!(f, "this needs {bytes} bytes of memory"),
            Error::Memory { needed: None } => f.write_str("this needs more memory, or a place to put rows aside"),
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Error::Log { source, .. } => Some(source),
            _ => None,
        }
    }
}
