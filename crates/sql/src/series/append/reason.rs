//! Why a row was left out.

use std::fmt;

use counterfoil_relation::Type;

use crate::types;

/// Why a row was left out. Display is `what: what to do`, without values.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// There is no such table, and none may be made.
    NoTable(String),
    /// The table is not one for such rows: why not.
    Table(String),
    /// A name that no table or column can have: why not.
    Name(String),
    /// A tag that is not in the key of the table.
    NewTag(String),
    /// One name for a column of the key and another one.
    TagAndField(String),
    /// There is no such column, and none may be added.
    NoColumn(String),
    /// A column could not be added: why not.
    Column(String),
    /// The column has another type than the values.
    Type {
        /// Its name.
        column: String,
        /// The type of the values.
        given: Type,
        /// The type of the column.
        is: Type,
    },
    /// A number is outside the bounds of its column's type.
    Range {
        /// The name of the column.
        column: String,
        /// Its type.
        is: Type,
    },
    /// More columns than a point can have.
    Columns(usize),
    /// The tags together are too long.
    Key(usize),
    /// More series than a table can have.
    Series(usize),
    /// The texts of the row together are too long.
    Texts(usize),
    /// A row with this key is there already, and the table was made to refuse a second one.
    Duplicate,
    /// A row that is older than what the table keeps.
    Expired,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NoTable(table) => write!(f, "there is no table {table:?}, and none may be made: create it first"),
            Reason::Table(why) | Reason::Name(why) | Reason::Column(why) => f.write_str(why),
            Reason::NewTag(tag) => write!(
                f,
                "tag {tag:?} is not in the key of the table, and a key does not grow: leave it out, send it as a field, or \
                 make the table anew with it"
            ),
            Reason::TagAndField(name) => write!(f, "{name:?} is a tag and a field: rename one of them"),
            Reason::NoColumn(column) => {
                write!(f, "there is no column {column:?}, and none may be made: add it first, or leave the field out")
            }
            Reason::Type { column, given, is } => {
                let (given, is) = (types::name(given), types::name(is));
                write!(f, "type conflict: field {column:?} is {given} here, its column {is}: send {is}")
            }
            Reason::Range { column, is } => {
                write!(f, "a number out of the range of column {column:?}, {}: leave it out", types::name(is))
            }
            Reason::Columns(max) => {
                write!(f, "a series table has at most {max} columns beside its key: use another measurement")
            }
            Reason::Key(max) => write!(f, "the tags of a series have at most {max} bytes together: shorten them"),
            Reason::Series(max) => {
                write!(f, "a series table holds at most {max} series: send what grows as a field, not as a tag")
            }
            Reason::Texts(max) => {
                write!(f, "the texts of a row have at most {max} bytes together: shorten them, or use several rows")
            }
            Reason::Expired => f.write_str("older than what the table keeps (retention): leave it out"),
            Reason::Duplicate => {
                f.write_str("a row with this key is there already, and the table has on_duplicate = 'error'")
            }
        }
    }
}
