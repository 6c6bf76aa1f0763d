//! The codes of the SQL standard for errors, as PostgreSQL has them ("PostgreSQL Error Codes"): programs look at these and not at
//! texts.

use counterfoil_relation::{Cause, Rule};

use crate::error::{Error, Named};

impl Error {
    /// The code of what went wrong; none where its kind says as much.
    pub fn sqlstate(&self) -> Option<&'static str> {
        Some(match self {
            Error::NoTable(_) => "42P01",
            Error::NoColumn(_) => "42703",
            Error::NoCursor(_) => "34000",
            Error::Taken(Named::Table, _) => "42P07",
            Error::Taken(Named::Schema, _) => "42P06",
            Error::Taken(Named::Cursor, _) => "42P03",
            Error::Taken(Named::Statement, _) => "42P05",
            Error::DivisionByZero => "22012",
            Error::OutOfRange | Error::Overflow(_) | Error::TooLarge(_) => "22003",
            Error::TooLong(_) => "22001",
            Error::NotValid(_) => "22P02",
            Error::ZeroInText => "22021",
            Error::Conflict(_) => "40001",
            Error::ReadOnly => "25006",
            Error::Begun(_) => "25001",
            Error::Failed => "25P02",
            Error::Undefined(_) => "2201F",
            Error::Twice(_) => "21000",
            Error::Relation(error) => match error.cause() {
                Cause::Constraint(violation) => of_rule(violation.rule),
                _ => return None,
            },
            Error::At(error, _) => return error.sqlstate(),
            _ => return None,
        })
    }
}

fn of_rule(rule: Rule) -> &'static str {
    match rule {
        Rule::NotNull => "23502",
        Rule::Unique => "23505",
        Rule::Reference | Rule::Referenced => "23503",
        Rule::Check => "23514",
        Rule::Length(_) => "22001",
        Rule::Range(..) => "22003",
        Rule::Identity => "2200H",
        _ => "23000",
    }
}
