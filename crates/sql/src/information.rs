//! `information_schema`: what the database says of itself, as tables, with the standard's names.

use std::sync::Arc;

use counterfoil_log::Snapshot;
use counterfoil_relation::{self as relation, Action, ColumnId, Identity, Table, Type};
use datafusion::arrow::array::{ArrayRef, Int32Array, RecordBatch, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};

use crate::error::{Error, Result};
use crate::planner::Planner;
use crate::published;
use crate::show::default_of;
use crate::types;

/// A value of one of these tables.
enum Cell {
    Text(Option<String>),
    Number(Option<i32>),
}

fn text(text: impl Into<String>) -> Cell {
    Cell::Text(Some(text.into()))
}

fn yes(is: bool) -> Cell {
    text(if is { "YES" } else { "NO" })
}

/// One of the tables of `information_schema`, by name.
pub(crate) fn table(name: &str, planner: &mut Planner, snapshot: &Snapshot) -> Result<Option<RecordBatch>> {
    let relations = planner.engine().relations.clone();
    let mut tables = relations.tables(snapshot).map_err(Error::Relation)?;
    tables.retain(|table| !crate::publishing::is_hidden(&table.name));
    let stored_views = || relations.views(snapshot).map_err(Error::Relation);
    let (names, rows) = match name {
        "schemata" => (SCHEMATA, schemata()),
        "tables" => (TABLES, tables_and_views(&tables, &stored_views()?)),
        "views" => (VIEWS, views(&stored_views()?)),
        // While a view is described its columns alone matter, and a view of this table would describe itself for ever.
        "columns" if planner.is_describing() => (COLUMNS, Vec::new()),
        "columns" => (COLUMNS, columns(planner, snapshot, &tables)?),
        "table_constraints" => (TABLE_CONSTRAINTS, constraints(&tables)),
        "key_column_usage" => (KEY_COLUMN_USAGE, key_columns(&tables)),
        "constraint_column_usage" => (CONSTRAINT_COLUMN_USAGE, column_usage(&tables)),
        "referential_constraints" => (REFERENTIAL_CONSTRAINTS, references(&tables)),
        "check_constraints" => (CHECK_CONSTRAINTS, checks(&tables)),
        _ => return Ok(None),
    };
    batch(names, rows).map(Some)
}

const SCHEMATA: &[&str] = &["catalog_name", "schema_name", "schema_owner"];

fn schemata() -> Vec<Vec<Cell>> {
    let row = |schema: &str| vec![text(crate::CATALOG), text(schema), text("owner")];
    vec![row(crate::INFORMATION), row(crate::SCHEMA)]
}

const TABLES: &[&str] = &["table_catalog", "table_schema", "table_name", "table_type", "is_insertable_into"];

fn tables_and_views(tables: &[Arc<Table>], views: &[relation::StoredView]) -> Vec<Vec<Cell>> {
    let row = |name: &str, kind: &str, takes_rows: bool| {
        vec![text(crate::CATALOG), text(crate::SCHEMA), text(name), text(kind), yes(takes_rows)]
    };
    let tables = tables.iter().map(|table| row(&table.name, "BASE TABLE", !published::is_published(table)));
    tables.chain(views.iter().map(|view| row(&view.name, "VIEW", false))).collect()
}

const VIEWS: &[&str] = &["table_catalog", "table_schema", "table_name", "view_definition"];

fn views(views: &[relation::StoredView]) -> Vec<Vec<Cell>> {
    let row = |view: &relation::StoredView| {
        vec![text(crate::CATALOG), text(crate::SCHEMA), text(&view.name), text(&view.sql)]
    };
    views.iter().map(row).collect()
}

const CHECK_CONSTRAINTS: &[&str] = &["constraint_catalog", "constraint_schema", "constraint_name", "check_clause"];

const TABLE_CONSTRAINTS: &[&str] = &[
    "constraint_catalog",
    "constraint_schema",
    "constraint_name",
    "table_catalog",
    "table_schema",
    "table_name",
    "constraint_type",
    "enforced",
];

const KEY_COLUMN_USAGE: &[&str] = &[
    "constraint_catalog",
    "constraint_schema",
    "constraint_name",
    "table_catalog",
    "table_schema",
    "table_name",
    "column_name",
    "ordinal_position",
    "position_in_unique_constraint",
];

const CONSTRAINT_COLUMN_USAGE: &[&str] = &[
    "table_catalog",
    "table_schema",
    "table_name",
    "column_name",
    "constraint_catalog",
    "constraint_schema",
    "constraint_name",
];

const REFERENTIAL_CONSTRAINTS: &[&str] = &[
    "constraint_catalog",
    "constraint_schema",
    "constraint_name",
    "unique_constraint_catalog",
    "unique_constraint_schema",
    "unique_constraint_name",
    "match_option",
    "update_rule",
    "delete_rule",
];

const COLUMNS: &[&str] = &[
    "table_catalog",
    "table_schema",
    "table_name",
    "column_name",
    "ordinal_position",
    "column_default",
    "is_nullable",
    "data_type",
    "character_maximum_length",
    "numeric_precision",
    "numeric_scale",
    "datetime_precision",
    "is_identity",
    "identity_generation",
    "identity_start",
    "identity_increment",
    "identity_maximum",
    "identity_minimum",
    "identity_cycle",
];

fn columns(planner: &mut Planner, snapshot: &Snapshot, tables: &[Arc<Table>]) -> Result<Vec<Vec<Cell>>> {
    let mut rows = Vec::new();
    for table in tables {
        for (place, column) in table.columns.iter().enumerate() {
            let mut row = column_row(&table.name, place, &column.name, &column.kind);
            row[5] = Cell::Text(default_of(column).filter(|_| column.identity.is_none()));
            row[6] = yes(!column.not_null);
            if let Some(identity) = &column.identity {
                row.splice(12.., identity_cells(identity, &column.kind));
            }
            rows.push(row);
        }
    }
    let views = planner.engine().relations.views(snapshot).map_err(Error::Relation)?;
    for view in views {
        // A view whose tables have changed under it has no columns; it must not hide the others.
        let Ok(schema) = planner.view_schema(&view, snapshot) else { continue };
        for (place, field) in schema.fields().iter().enumerate() {
            let kind = types::of_field(field).unwrap_or(Type::Text);
            rows.push(column_row(&view.name, place, field.name(), &kind));
        }
    }
    Ok(rows)
}

fn column_row(table: &str, place: usize, name: &str, kind: &Type) -> Vec<Cell> {
    let number = |number: i32| Cell::Number(Some(number));
    let none = || Cell::Number(None);
    let whole = types::name(kind);
    let short = whole.split('(').next().unwrap_or(&whole).trim();
    let data_type = match kind {
        Type::Timestamp { .. } => "timestamp without time zone",
        _ => short,
    };
    let letters = match kind {
        Type::VarChar(letters) | Type::Char(letters) => i32::try_from(*letters).ok(),
        _ => None,
    };
    let (precision, scale) = match kind {
        Type::SmallInt => (number(16), number(0)),
        Type::Integer => (number(32), number(0)),
        Type::BigInt => (number(64), number(0)),
        Type::Real => (number(24), none()),
        Type::Double => (number(53), none()),
        Type::Numeric { precision, scale } => (number((*precision).into()), number((*scale).into())),
        _ => (none(), none()),
    };
    let fraction = match kind {
        Type::Timestamp { nanoseconds: true } => number(9),
        Type::Timestamp { .. } | Type::TimestampTz | Type::Time => number(6),
        Type::Date => number(0),
        _ => none(),
    };
    vec![
        text(crate::CATALOG),
        text(crate::SCHEMA),
        text(table),
        text(name),
        number(place as i32 + 1),
        Cell::Text(None),
        yes(true),
        text(data_type),
        Cell::Number(letters),
        precision,
        scale,
        fraction,
        yes(false),
        Cell::Text(None),
        Cell::Text(None),
        Cell::Text(None),
        Cell::Text(None),
        Cell::Text(None),
        yes(false),
    ]
}

/// What the last columns say of an identity column. It counts up from 1 or down from -1, as far as its type reaches.
fn identity_cells(identity: &Identity, kind: &Type) -> Vec<Cell> {
    let (least, most) = match kind {
        Type::SmallInt => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Type::Integer => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    let (least, most) = if identity.increment > 0 { (1, most) } else { (least, -1) };
    let generation = if identity.always { "ALWAYS" } else { "BY DEFAULT" };
    let numbers = [identity.start, identity.increment, most, least].map(|number| text(number.to_string()));
    let said = [yes(true), text(generation)];
    said.into_iter().chain(numbers).chain([yes(false)]).collect()
}

fn constraints(tables: &[Arc<Table>]) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for table in tables {
        let mut push = |name: &str, kind: &str, enforced: bool| {
            let place = || [text(crate::CATALOG), text(crate::SCHEMA)];
            let mut row: Vec<Cell> = place().into_iter().chain([text(name)]).chain(place()).collect();
            row.extend([text(&table.name), text(kind), yes(enforced)]);
            rows.push(row);
        };
        table.primary_key.iter().for_each(|key| push(&key.name, "PRIMARY KEY", true));
        table.uniques.iter().for_each(|key| push(&key.name, "UNIQUE", true));
        table.foreign_keys.iter().for_each(|key| push(&key.name, "FOREIGN KEY", key.enforced));
        table.checks.iter().for_each(|check| push(&check.name, "CHECK", true));
    }
    rows
}

fn name_of(table: &Table, column: ColumnId) -> String {
    let found = table.columns.iter().find(|other| other.id == column);
    found.map(|column| column.name.clone()).unwrap_or_default()
}

fn key_columns(tables: &[Arc<Table>]) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for table in tables {
        let mut push = |name: &str, columns: &[ColumnId], referenced: &[i32]| {
            for (place, column) in columns.iter().enumerate() {
                rows.push(vec![
                    text(crate::CATALOG),
                    text(crate::SCHEMA),
                    text(name),
                    text(crate::CATALOG),
                    text(crate::SCHEMA),
                    text(&table.name),
                    text(name_of(table, *column)),
                    Cell::Number(Some(place as i32 + 1)),
                    Cell::Number(referenced.get(place).copied()),
                ]);
            }
        };
        table.primary_key.iter().chain(&table.uniques).for_each(|key| push(&key.name, &key.columns, &[]));
        for key in &table.foreign_keys {
            let parent = tables.iter().find(|table| table.id == key.parent);
            let index = parent.and_then(|table| table.index(key.parent_index));
            // References may name the columns of the key in another order than the key has.
            let place = |column| index.and_then(|index| index.columns.iter().position(|other| other == column));
            let places = key.parent_columns.iter().filter_map(place).map(|place| place as i32 + 1);
            push(&key.name, &key.columns, &places.collect::<Vec<_>>());
        }
    }
    rows
}

/// The columns that constraints speak of; of a foreign key those that it references.
fn column_usage(tables: &[Arc<Table>]) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for table in tables {
        let mut push = |of: &Table, name: &str, columns: &[ColumnId]| {
            let place = || [text(crate::CATALOG), text(crate::SCHEMA)];
            let used = columns.iter().map(|column| {
                let column = [text(&of.name), text(name_of(of, *column))];
                place().into_iter().chain(column).chain(place()).chain([text(name)]).collect()
            });
            rows.extend(used);
        };
        table.primary_key.iter().chain(&table.uniques).for_each(|key| push(table, &key.name, &key.columns));
        table.checks.iter().for_each(|check| push(table, &check.name, &check.columns));
        for key in &table.foreign_keys {
            let parent = tables.iter().find(|table| table.id == key.parent);
            parent.into_iter().for_each(|parent| push(parent, &key.name, &key.parent_columns));
        }
    }
    rows
}

fn references(tables: &[Arc<Table>]) -> Vec<Vec<Cell>> {
    let rule = |action: Action| match action {
        Action::NoAction => text("NO ACTION"),
        Action::Restrict => text("RESTRICT"),
        Action::Cascade => text("CASCADE"),
        Action::SetNull => text("SET NULL"),
        Action::SetDefault => text("SET DEFAULT"),
    };
    let mut rows = Vec::new();
    for key in tables.iter().flat_map(|table| &table.foreign_keys) {
        let parent = tables.iter().find(|table| table.id == key.parent);
        let index = parent.and_then(|table| table.index(key.parent_index)).map(|index| index.name.clone());
        rows.push(vec![
            text(crate::CATALOG),
            text(crate::SCHEMA),
            text(&key.name),
            text(crate::CATALOG),
            text(crate::SCHEMA),
            Cell::Text(index),
            text("NONE"),
            rule(key.on_update),
            rule(key.on_delete),
        ]);
    }
    rows
}

fn checks(tables: &[Arc<Table>]) -> Vec<Vec<Cell>> {
    let checks = tables.iter().flat_map(|table| &table.checks);
    checks.map(|check| vec![text(crate::CATALOG), text(crate::SCHEMA), text(&check.name), text(&check.sql)]).collect()
}

/// The columns of numbers among the names of all these tables.
fn is_number(name: &str) -> bool {
    name.ends_with("_position")
        || name.ends_with("_precision")
        || name.starts_with("position_in")
        || matches!(name, "numeric_scale" | "character_maximum_length")
}

fn batch(names: &[&str], rows: Vec<Vec<Cell>>) -> Result<RecordBatch> {
    let mut fields = Vec::with_capacity(names.len());
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(names.len());
    for (place, name) in names.iter().enumerate() {
        let cells = rows.iter().map(|row| &row[place]);
        let (kind, array): (DataType, ArrayRef) = if is_number(name) {
            let numbers = cells.map(|cell| match cell {
                Cell::Number(number) => *number,
                Cell::Text(_) => None,
            });
            (DataType::Int32, Arc::new(Int32Array::from_iter(numbers)))
        } else {
            let texts = cells.map(|cell| match cell {
                Cell::Text(text) => text.as_deref(),
                Cell::Number(_) => None,
            });
            (DataType::Utf8View, Arc::new(StringViewArray::from_iter(texts)))
        };
        fields.push(Field::new(*name, kind, true));
        arrays.push(array);
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}
