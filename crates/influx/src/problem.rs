//! Why a line was rejected.

use std::fmt;

use crate::limits::REJECTS_SHOWN_MAX;
use crate::value::FieldType;

/// What is wrong with a line, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The bytes are not text.
    NotUtf8,
    /// The line begins with a comma or has nothing before its first space.
    NoMeasurement,
    /// A tag is not `NAME=VALUE`.
    TagWithoutValue,
    /// A name or a tag's value is empty.
    EmptyName,
    /// A tag's value has an equals sign that is not escaped.
    EqualsInTag,
    /// A tag stands twice in the line.
    TagTwice(String),
    /// Nothing follows the measurement and its tags.
    NoFields,
    /// A field is not `NAME=VALUE`.
    FieldWithoutValue,
    /// A field stands twice in the line.
    FieldTwice(String),
    /// A value is no number, no boolean and no string.
    NotAValue,
    /// A number does not fit its type.
    OutOfRange,
    /// A string has no closing quote.
    UnclosedString,
    /// Something stands between a closing quote and the comma or space after it.
    AfterString,
    /// The time is not a whole number.
    NotATime,
    /// The time is not within the years 1677 to 2262, in the precision that the request named.
    TimeOutOfRange,
    /// Something stands behind the time.
    AfterTime,
    /// Too long or too many: the limit's name and value.
    Limit(&'static str, usize),
    /// A name that the table keeps for itself.
    ReservedName,
    /// One name for a tag and for a field.
    TagAndField(String),
    /// A field has another type than its column.
    TypeConflict {
        /// The name of the field.
        field: String,
        /// The type of the value in this line.
        line: FieldType,
        /// The type that the column has.
        column: FieldType,
    },
    /// A word or number that is no quality of OPC UA.
    NotAQuality(String),
    /// There is no such table, and none may be made.
    NoTable(String),
    /// What the store says about this row.
    Refused(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::NotUtf8 => f.write_str("not UTF-8: send text in UTF-8"),
            Problem::NoMeasurement => f.write_str("no measurement: begin the line with its name"),
            Problem::TagWithoutValue => f.write_str("a tag without a value: write NAME=VALUE, or leave the tag out"),
            Problem::EmptyName => f.write_str("an empty name or tag: give it a text, or leave it out"),
            Problem::EqualsInTag => f.write_str("an equals sign in a tag: write \\="),
            Problem::TagTwice(name) => write!(f, "tag {name:?} stands twice: leave one out"),
            Problem::NoFields => f.write_str("no fields: write NAME=VALUE behind a space"),
            Problem::FieldWithoutValue => f.write_str("a field without a value: write NAME=VALUE, or leave it out"),
            Problem::FieldTwice(name) => write!(f, "field {name:?} stands twice: leave one out"),
            Problem::NotAValue => f.write_str("not a value: write 1.5, 1i, 1u, true, or a string in double quotes"),
            Problem::OutOfRange => f.write_str("a number out of the range of its type: leave the field out"),
            Problem::UnclosedString => {
                f.write_str("a string without its closing quote: close it, and write \\\" inside")
            }
            Problem::AfterString => f.write_str("text behind a string: write \\\" for a quote inside it"),
            Problem::NotATime => f.write_str("not a time: write a whole number, in the request's precision"),
            Problem::TimeOutOfRange => f.write_str("a time outside 1677 to 2262: check the request's precision"),
            Problem::AfterTime => {
                f.write_str("text behind the time: begin another line, and write \"\\ \" for a space")
            }
            Problem::Limit(what, max) => write!(f, "{what}: at most {max}"),
            Problem::ReservedName => f.write_str("the name \"time\" is that of the time: rename the tag or field"),
            Problem::TagAndField(name) => write!(f, "{name:?} is a tag and a field: rename one of them"),
            Problem::TypeConflict { field, line, column } => {
                write!(f, "type conflict: field {field:?} is {line} here, its column {column}: send {column}")
            }
            Problem::NotAQuality(text) => write!(f, "{text:?} is no quality: send a status of OPC UA or its code"),
            Problem::NoTable(name) => write!(f, "there is no table {name:?}, and none may be made: create it first"),
            Problem::Refused(why) => f.write_str(why),
        }
    }
}

/// A problem at its byte in the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// From 0; what concerns the line as a whole stands at its first byte.
    pub offset: usize,
    /// What is wrong.
    pub problem: Problem,
}

impl Fault {
    pub(crate) fn at(offset: usize, problem: Problem) -> Fault {
        Fault { offset, problem }
    }
}

/// A rejected line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// The line's number from 1, comments and empty lines counted.
    pub line: u64,
    /// The byte in the line from 1; 0 where the line as a whole is meant.
    pub column: u64,
    /// What is wrong.
    pub problem: Problem,
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            0 => write!(f, "line {}: {}", self.line, self.problem),
            column => write!(f, "line {}, column {column}: {}", self.line, self.problem),
        }
    }
}

impl std::error::Error for Reject {}

/// How many lines were rejected, and why the first of them were: bounded, however many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejects {
    count: u64,
    shown: Vec<Reject>,
}

impl Rejects {
    /// Counts one more.
    pub fn push(&mut self, reject: Reject) {
        self.push_with(|| reject);
    }

    /// Counts one more, which is described only where there is room for it.
    pub fn push_with(&mut self, describe: impl FnOnce() -> Reject) {
        self.count += 1;
        if self.shown.len() < REJECTS_SHOWN_MAX {
            self.shown.push(describe());
        }
    }

    /// Takes over what another has counted.
    pub fn append(&mut self, other: Rejects) {
        self.count += other.count;
        let room = REJECTS_SHOWN_MAX.saturating_sub(self.shown.len());
        self.shown.extend(other.shown.into_iter().take(room));
        self.shown.sort_by_key(|reject| reject.line);
    }

    /// Rejected lines.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The first of them, at most [`REJECTS_SHOWN_MAX`].
    pub fn shown(&self) -> &[Reject] {
        &self.shown
    }

    /// True where every line was taken.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Display for Rejects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, reject) in self.shown.iter().enumerate() {
            write!(f, "{}{reject}", if index == 0 { "" } else { "; " })?;
        }
        match self.count - self.shown.len() as u64 {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}
