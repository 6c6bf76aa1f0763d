//! Why a text is not asked, or an answer not shown.

use core::fmt;

use counterfoil_proof::{Malformed, Type};

/// Why a text is not asked, or an answer not shown. Holds names and types, never values.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Longer than [`crate::TEXT_BYTES_MAX`], or nested or chained deeper than a reader's stack bears.
    TooLong(&'static str),
    /// No SQL.
    Syntax(String),
    /// SQL that is not answered here.
    NotSupported(String),
    /// A table that is not the one asked.
    UnknownTable {
        /// The name in the text.
        name: String,
        /// The table that there is.
        known: String,
    },
    /// A column that the table has not.
    UnknownColumn {
        /// The name in the text.
        name: String,
        /// The columns that there are.
        columns: Vec<String>,
    },
    /// Something that a column's type does not do.
    TypeMismatch {
        /// The column.
        column: String,
        /// Its type.
        kind: Type,
        /// What was wanted of it.
        wanted: String,
    },
    /// A text that is no value of a type.
    NoValue(Type),
    /// A sum or mean that its type does not hold.
    Overflow(&'static str),
    /// Rows that are none of the question's: a mistake of the caller, as verified rows always are.
    OtherRows(&'static str),
    /// A definition, or a question about it, that no reader accepts.
    Malformed(Malformed),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(limit) => write!(f, "the text is too long: {limit}"),
            Self::Syntax(what) => write!(f, "no SQL: {what}"),
            Self::NotSupported(what) => {
                write!(f, "not supported: {what}")
            }
            Self::UnknownTable { name, known } => write!(f, "no table {name:?} here, only {known:?}"),
            Self::UnknownColumn { name, columns } => {
                write!(f, "no column {name:?}; there are {}", columns.join(", "))
            }
            Self::TypeMismatch { column, kind, wanted } => {
                write!(f, "column {column:?} is {}: {wanted}", type_name(*kind))
            }
            Self::NoValue(kind) => write!(f, "a text that is no value of {}", type_name(*kind)),
            Self::Overflow(what) => write!(f, "{what} does not fit its type"),
            Self::OtherRows(what) => write!(f, "rows of another question: {what}"),
            Self::Malformed(what) => what.fmt(f),
        }
    }
}

impl core::error::Error for Error {}

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

pub(crate) fn not_supported<T>(what: impl Into<String>) -> Result<T, Error> {
    Err(Error::NotSupported(what.into()))
}

/// A type as SQL names it.
#[must_use]
pub fn type_name(kind: Type) -> String {
    match kind {
        Type::Boolean => "BOOLEAN".into(),
        Type::SmallInt => "SMALLINT".into(),
        Type::Integer => "INTEGER".into(),
        Type::BigInt => "BIGINT".into(),
        Type::Real => "REAL".into(),
        Type::Double => "DOUBLE PRECISION".into(),
        Type::Numeric(precision, scale) => format!("NUMERIC({precision},{scale})"),
        Type::Text => "TEXT".into(),
        Type::Bytea => "BYTEA".into(),
        Type::Date => "DATE".into(),
        Type::Time => "TIME".into(),
        Type::Timestamp => "TIMESTAMP".into(),
        Type::TimestampNanos => "TIMESTAMP(9)".into(),
        Type::TimestampTz => "TIMESTAMPTZ".into(),
        Type::Uuid => "UUID".into(),
        _ => "a type of a later version".into(),
    }
}
