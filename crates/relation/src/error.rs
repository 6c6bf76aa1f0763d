//! What a table can answer instead of doing what it was asked.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use counterfoil_log as log;

/// Why something was not done: a pointer to the cause, since every result has room for one, and moves it.
///
/// Row values never appear in an error: names of tables, constraints and columns do.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Cause>);

/// The cause of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
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

// What is made where something failed stands once, and not at each place that may fail.
impl Error {
    /// What is wrong.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.0
    }

    /// The same, to be taken apart.
    #[must_use]
    pub fn into_cause(self) -> Cause {
        *self.0
    }

    /// [`Cause::Sql`].
    #[must_use]
    pub fn sql(message: impl Into<String>) -> Self {
        Cause::Sql(message.into()).into()
    }

    /// [`Cause::NotSupported`].
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn not_supported(what: String) -> Self {
        Cause::NotSupported(what).into()
    }

    /// [`Cause::Misuse`].
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn misuse(what: &'static str) -> Self {
        Cause::Misuse(what).into()
    }

    /// [`Cause::Memory`].
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn memory(needed: Option<usize>) -> Self {
        Cause::Memory { needed }.into()
    }

    /// [`Cause::Corrupt`].
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn corrupt(table: &str, what: &'static str) -> Self {
        Cause::Corrupt { table: table.into(), what }.into()
    }

    /// Names the table in an error of the log.
    pub(crate) fn log(table: &str) -> impl Fn(log::Error) -> Error + Copy + '_ {
        move |source| Error::of_log(table, source)
    }

    /// [`Cause::Log`].
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn of_log(table: &str, source: log::Error) -> Self {
        Cause::Log { table: table.into(), source }.into()
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn violation(rule: Rule, constraint: &str, table: &str, columns: Vec<String>) -> Self {
        let violation = Violation { rule, constraint: constraint.into(), table: table.into(), columns };
        violation.into()
    }

    /// Bytes of memory that it would have taken, if that is what was missing, and known.
    #[must_use]
    pub fn memory_needed(&self) -> Option<usize> {
        match *self.0 {
            Cause::Memory { needed } => needed,
            _ => None,
        }
    }

    /// Whether there was too little memory.
    #[must_use]
    pub fn is_memory(&self) -> bool {
        matches!(*self.0, Cause::Memory { .. })
    }

    /// Whether reading met bytes that are damaged, rather than a broken promise of the caller or the device.
    pub(crate) fn is_damage(&self) -> bool {
        use log::Cause::{Corrupt, Device, Tampered};
        match self.cause() {
            Cause::Corrupt { .. } => true,
            Cause::Log { source, .. } => matches!(source.cause(), Tampered { .. } | Corrupt { .. } | Device(_)),
            _ => false,
        }
    }
}

impl From<Cause> for Error {
    #[cold]
    #[inline(never)]
    fn from(cause: Cause) -> Self {
        Error(Box::new(cause))
    }
}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Self {
        Cause::Constraint(Box::new(violation)).into()
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
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

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Constraint(violation) => violation.fmt(f),
            Cause::Sql(message) => f.write_str(message),
            Cause::NotSupported(what) => write!(f, "not supported: {what}"),
            Cause::Misuse(what) => f.write_str(what),
            Cause::Corrupt { table, what } if table.is_empty() => write!(f, "the {what} makes no sense"),
            Cause::Corrupt { table, what } => write!(f, "table {table}: the {what} makes no sense"),
            Cause::Log { table, source } if table.is_empty() => source.fmt(f),
            Cause::Log { table, source } => write!(f, "table {table}: {source}"),
            Cause::Memory { needed: Some(bytes) } => write!(f, "this needs {bytes} bytes of memory"),
            Cause::Memory { needed: None } => f.write_str("this needs more memory, or a place to put rows aside"),
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self.cause() {
            Cause::Log { source, .. } => Some(source),
            _ => None,
        }
    }
}
