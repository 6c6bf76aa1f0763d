//! Series tables: how columns, keys and rows of SQL become series, times and values, and back.
//!
//! A series table is defined like every other; its primary key is the columns that name a series and, last, the time. The definition
//! lies with the others' (`relation` keeps it and holds no row), the points with the series engine.

mod about;
mod apart;
mod append;
mod around;
mod block;
mod bounds;
mod catalog;
mod change;
mod columns;
mod define;
mod door;
mod keys;
mod options;
mod order;
mod reader;
mod retention;
mod rows;
mod scan;
mod summaries;
mod thin;
mod writer;

use std::sync::Arc;

use counterfoil_relation::{Table, Type};
use counterfoil_series::{Kind, TableNumber};

pub(crate) use apart::{FUTURE, divide, is_apart, is_there, notice as notice_of_apart};
pub use apart::{count_apart, kept_apart};
pub use append::{Appended, NewField, NewPoints, Reason, TIME_COLUMN};
pub(crate) use around::{Around, Sampled};
pub(crate) use catalog::table as catalog_table;
pub(crate) use change::{Elsewhere, conflicts, delete, fetch, insert, insert_as_given, update, without_expired_rows};
pub(crate) use columns::{Given, insert as insert_columns};
pub(crate) use define::{add_column, check, check_added, create, drop, renamed_column, set_options, truncate};
pub(crate) use options::{Told, is_known as option_is_known, span};
pub use reader::{SeriesReader, count, newest, survey};
pub(crate) use retention::{Keeper, notice as notice_of_expired};
pub(crate) use scan::{SeriesScan, SeriesTarget, decides};
pub(crate) use summaries::from_summaries;
pub(crate) use summaries::option::check_kept;
pub(crate) use thin::Doors;
pub use writer::{Cursor, PointWriter, Written};

use crate::error::{Error, Result};

/// What WITH (engine = ...) says for a series table.
pub(crate) const ENGINE: &str = "series";

/// Whether a table is a series table.
pub fn is_series(table: &Table) -> bool {
    table.engine.as_ref().is_some_and(|engine| engine.name == ENGINE)
}

/// Refuses to add constraints to a series table, or to drop them.
pub(crate) fn keep_constraints(table: &Table) -> Result<()> {
    if !is_series(table) {
        return Ok(());
    }
    Err(Error::NotSupported("constraints of a series table: its key is its series and its time".into()))
}

/// The columns of a series table by what they are for.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub(crate) number: TableNumber,
    /// Places of the columns that name a series.
    pub(crate) keys: Vec<usize>,
    /// The place of the time.
    pub(crate) time: usize,
    /// Places of the other columns, and which column of the engine each is.
    pub(crate) values: Vec<(usize, usize)>,
}

impl Form {
    /// That of a table that was checked when it was made.
    pub(crate) fn of(table: &Table) -> Result<Form> {
        let broken = || Error::Bug(format!("series table {} has no key", table.name));
        let key = table.primary_key.as_ref().ok_or_else(broken)?;
        let places: Option<Vec<usize>> = key.columns.iter().map(|column| table.position(*column)).collect();
        let mut keys = places.ok_or_else(broken)?;
        let time = keys.pop().ok_or_else(broken)?;
        let mut values = Vec::new();
        for (place, column) in
            table.columns.iter().enumerate().filter(|(place, _)| !keys.contains(place) && *place != time)
        {
            // Columns are numbered from 1 as they are added, and those of the key are there from the beginning.
            let before = key.columns.iter().filter(|other| other.0 < column.id.0).count();
            values.push((place, column.id.0 as usize - 1 - before));
        }
        Ok(Form { number: TableNumber(table.id.0), keys, time, values })
    }

    /// The same where of the other columns only those at some places are read, and which of the engine's columns these are.
    pub(crate) fn reading(&self, places: &[usize]) -> (Form, Vec<usize>) {
        let mut values: Vec<_> = self.values.iter().copied().filter(|(place, _)| places.contains(place)).collect();
        values.sort_by_key(|(_, slot)| *slot);
        let slots = values.iter().map(|(_, slot)| *slot).collect();
        values.iter_mut().enumerate().for_each(|(at, (_, slot))| *slot = at);
        (Form { values, ..self.clone() }, slots)
    }
}

/// How the engine holds values of a type; none if it cannot.
pub(crate) fn kind(of: &Type) -> Option<Kind> {
    Some(match of {
        Type::Boolean | Type::SmallInt | Type::Integer | Type::BigInt | Type::Date | Type::Time => Kind::Integer,
        Type::Timestamp { .. } | Type::TimestampTz => Kind::Integer,
        Type::Numeric { precision, .. } if *precision <= 18 => Kind::Integer,
        Type::Real | Type::Double => Kind::Double,
        Type::Text | Type::VarChar(_) | Type::Char(_) | Type::Bytea => Kind::Text,
        _ => return None,
    })
}

/// An error of the engine where no table is at hand.
pub fn error(error: counterfoil_series::Error) -> Error {
    match error {
        counterfoil_series::Error::Log(error) => Error::Log(error),
        counterfoil_series::Error::Corrupt { what } => Error::Relation(counterfoil_relation::Error::corrupt("", what)),
        other => Error::Constraint(other.to_string()),
    }
}

/// An error of the engine, with the table's name.
pub(crate) fn told(table: &Arc<Table>) -> impl Fn(counterfoil_series::Error) -> Error + '_ {
    use counterfoil_series::Error as Series;
    move |error| match error {
        Series::Log(error) => Error::Log(error),
        Series::Corrupt { what } => Error::Relation(counterfoil_relation::Error::corrupt(&table.name, what)),
        other => Error::Constraint(format!("{other} (table {})", table.name)),
    }
}
