//! Batches of lines as rows for series tables, and what the tables say as problems of lines.

use counterfoil_influx::{self as lines, Column, FieldType, Kind, Problem, Reject, Rejects, Table};
use counterfoil_sql::relation::{self, Type};
use counterfoil_sql::series_engine::Values;
use counterfoil_sql::{Appended, NewField, NewPoints, Reason, TIME_COLUMN};

/// The type of unsigned integers: what the series engine keeps of them exactly.
const UNSIGNED: Type = Type::Numeric { precision: 18, scale: 0 };

/// The type of the column of a field.
fn column_type(of: FieldType) -> Type {
    match of {
        FieldType::Integer => Type::BigInt,
        FieldType::Unsigned => UNSIGNED,
        FieldType::Boolean => Type::Boolean,
        FieldType::Text => Type::Text,
        FieldType::Quality => Type::SmallInt,
        _ => Type::Double,
    }
}

/// The field whose column has this type.
fn field_type(of: Type) -> Option<FieldType> {
    let all = [
        FieldType::Float,
        FieldType::Integer,
        FieldType::Unsigned,
        FieldType::Boolean,
        FieldType::Text,
        FieldType::Quality,
    ];
    all.into_iter().find(|field| column_type(*field) == of)
}

/// What a column of a series table is to lines; none for what they cannot have.
pub(super) fn kind_of(table: &relation::Table, name: &str) -> Option<Kind> {
    let (_, column) = table.column(name)?;
    let is_key = table.primary_key.as_ref().is_some_and(|key| key.columns.contains(&column.id));
    match is_key {
        true => (name != TIME_COLUMN).then_some(Kind::Tag),
        false => field_type(column.kind).map(Kind::Field),
    }
}

/// A measurement's lines on their way into a table, with the values taken out of their columns.
pub(super) struct Rows {
    lines: Table,
    values: Vec<(Type, Values)>,
}

impl Rows {
    pub(super) fn new(mut lines: Table) -> Self {
        let values = lines.fields.iter_mut().map(taken).collect();
        Self { lines, values }
    }

    pub(super) fn measurement(&self) -> &str {
        &self.lines.name
    }

    /// Rows for a table of this name.
    pub(super) fn points(&mut self, table: String, may_create: bool, options: Vec<(String, String)>) -> NewPoints<'_> {
        let Self { lines, values } = self;
        let set = |set| lines.tags.set(set).collect();
        let fields = lines.fields.iter().zip(std::mem::take(values));
        let fields = fields.map(|(column, (kind, values))| NewField {
            name: &column.name,
            kind,
            values,
            rows: column.rows.as_deref(),
        });
        NewPoints {
            table,
            may_create,
            options,
            tags: lines.tags.names(),
            sets: (0..lines.tags.len() as u32).map(set).collect(),
            set_of: &lines.sets,
            times: &lines.times,
            fields: fields.collect(),
        }
    }

    /// The numbers of the lines that were refused, and why.
    fn refused<'a>(&'a self, appended: &'a Appended) -> impl Iterator<Item = (u64, &'a Reason)> {
        appended.refused().map(|(row, reason)| (self.lines.lines.get(row).copied().unwrap_or(0), reason))
    }
}

/// What was refused of the tables of a batch, the first lines first: those are the ones that are shown.
pub(super) fn rejects<'a>(tables: impl Iterator<Item = (&'a Rows, &'a Appended)>) -> Rejects {
    let mut all: Vec<(u64, &Reason)> = tables.flat_map(|(rows, appended)| rows.refused(appended)).collect();
    all.sort_by_key(|(line, _)| *line);
    let mut rejects = Rejects::default();
    for (line, reason) in all {
        rejects.push_with(|| Reject { line, column: 0, problem: problem(reason) });
    }
    rejects
}

/// The values of a column. An unsigned one that is too large for any column becomes the largest there is, which is
/// refused in its turn.
fn taken(column: &mut Column) -> (Type, Values) {
    let kind = column_type(column.values.field_type());
    let empty = lines::Values::Boolean(Vec::new());
    let values = match std::mem::replace(&mut column.values, empty) {
        lines::Values::Float(values) => Values::Doubles(values),
        lines::Values::Integer(values) => Values::Integers(values),
        lines::Values::Unsigned(values) => {
            Values::Integers(values.into_iter().map(|value| i64::try_from(value).unwrap_or(i64::MAX)).collect())
        }
        lines::Values::Boolean(values) => Values::Integers(values.into_iter().map(i64::from).collect()),
        lines::Values::Quality(values) => Values::Integers(values.into_iter().map(i64::from).collect()),
        lines::Values::Text(texts) => {
            Values::Texts((0..texts.len()).filter_map(|at| Some(texts.get(at)?.as_bytes().into())).collect())
        }
        // Kinds of fields that are not known here yet have no values that could be kept.
        _ => Values::Doubles(Vec::new()),
    };
    (kind, values)
}

fn problem(reason: &Reason) -> Problem {
    match reason {
        Reason::NoTable(table) => Problem::NoTable(table.clone()),
        Reason::TagAndField(name) => Problem::TagAndField(name.clone()),
        Reason::Type { column, given, is } => match (field_type(*given), field_type(*is)) {
            (Some(line), Some(has)) => Problem::TypeConflict { field: column.clone(), line, column: has },
            _ => Problem::Refused(reason.to_string()),
        },
        other => Problem::Refused(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_a_type_of_its_own() {
        for field in [FieldType::Float, FieldType::Unsigned, FieldType::Quality] {
            assert_eq!(field_type(column_type(field)), Some(field));
        }
        assert_eq!(field_type(Type::Uuid), None);
        assert_eq!(field_type(Type::Numeric { precision: 10, scale: 2 }), None);
    }
}
