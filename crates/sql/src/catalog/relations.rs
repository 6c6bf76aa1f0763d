//! `pg_class`, `pg_attribute` and what else tells of tables, views and their columns.

use std::sync::Arc;

use counterfoil_log::Snapshot;
use counterfoil_relation::{Column, Table, Type};
use datafusion::arrow::datatypes::Schema;

use super::held::{Held, shown_indexes};
use super::numbers::{BTREE, HEAP, OWNER, Object, PG_CATALOG, PUBLIC};
use super::shape::{Cell, Rows, Shape, shapes};
use super::{Viewed, keys, types};
use crate::planner::Planner;
use crate::types::from_arrow;

/// The views with their columns. One whose tables have changed under it has none; it must not hide the others.
pub(super) fn viewed(held: &Held, planner: &mut Planner, snapshot: &Snapshot) -> Viewed {
    let mut describe = |view| planner.view_schema(view, snapshot).ok().map(Arc::new);
    held.views.iter().map(|view| (view.name.clone(), describe(view))).collect()
}

/// What `pg_class` says of a relation.
#[derive(Default)]
struct Class<'a> {
    number: u32,
    name: &'a str,
    schema: u32,
    kind: &'a str,
    access: u32,
    columns: usize,
    checks: usize,
    has_index: bool,
    has_triggers: bool,
}

fn class(rows: &mut Rows, class: &Class<'_>) {
    let stored = class.kind != "v";
    rows.push([
        ("oid", class.number.into()),
        ("relname", class.name.into()),
        ("relnamespace", class.schema.into()),
        ("relowner", OWNER.into()),
        ("relam", class.access.into()),
        ("relfilenode", if stored { class.number } else { 0 }.into()),
        // Nobody counted the rows of a table.
        ("reltuples", if class.kind == "i" { 0 } else { -1 }.into()),
        ("relhasindex", class.has_index.into()),
        ("relpersistence", "p".into()),
        ("relkind", class.kind.into()),
        ("relnatts", Cell::Number(class.columns as i64)),
        ("relchecks", Cell::Number(class.checks as i64)),
        ("relhasrules", (!stored).into()),
        ("relhastriggers", class.has_triggers.into()),
        ("relispopulated", true.into()),
        ("relreplident", if class.kind == "r" && class.schema != PG_CATALOG { "d" } else { "n" }.into()),
    ]);
}

/// The rows of `pg_class`.
pub(super) fn classes(rows: &mut Rows, held: &Held, viewed: &Viewed) {
    for table in &held.tables {
        class(
            rows,
            &Class {
                number: held.table_number(table),
                name: &table.name,
                schema: PUBLIC,
                kind: "r",
                access: HEAP,
                columns: table.columns.len(),
                checks: table.checks.len(),
                has_index: shown_indexes(table).next().is_some(),
                // By which PostgreSQL keeps foreign keys, and psql knows to ask for them.
                has_triggers: !table.foreign_keys.is_empty() || table.is_referenced(),
            },
        );
    }
    for (table, index) in held.indexes() {
        let number = held.index_number(table, index);
        let columns = index.columns.len();
        class(
            rows,
            &Class { number, name: &index.name, schema: PUBLIC, kind: "i", access: BTREE, columns, ..Class::default() },
        );
    }
    for (view, (_, schema)) in held.views.iter().zip(viewed) {
        let columns = schema.as_ref().map_or(0, |schema| schema.fields().len());
        let number = held.view_number(view);
        class(rows, &Class { number, name: &view.name, schema: PUBLIC, kind: "v", columns, ..Class::default() });
    }
    for shape in shapes() {
        class(rows, &own(shape));
    }
}

/// A table of the catalogue itself.
fn own(shape: &Shape) -> Class<'_> {
    // Views have numbers of their own behind those of tables.
    let (kind, access) = if shape.number < 12_000 { ("r", HEAP) } else { ("v", 0) };
    let columns = shape.columns.len();
    Class { number: shape.number, name: shape.name, schema: PG_CATALOG, kind, access, columns, ..Class::default() }
}

/// What `pg_attribute` says of a column.
struct Attribute<'a> {
    of: u32,
    place: usize,
    name: &'a str,
    kind: (u32, i32),
    not_null: bool,
    has_default: bool,
    identity: &'a str,
}

fn attribute(rows: &mut Rows, attribute: &Attribute<'_>) {
    let [bytes, by_value, alignment, storage, collation] = types::laid_out(attribute.kind.0);
    rows.push([
        ("attrelid", attribute.of.into()),
        ("attname", attribute.name.into()),
        ("atttypid", attribute.kind.0.into()),
        ("attstattarget", (-1).into()),
        ("attlen", bytes),
        ("attnum", Cell::Number(attribute.place as i64 + 1)),
        ("attcacheoff", (-1).into()),
        ("atttypmod", attribute.kind.1.into()),
        ("attbyval", by_value),
        ("attalign", alignment),
        ("attstorage", storage),
        ("attnotnull", attribute.not_null.into()),
        ("atthasdef", attribute.has_default.into()),
        ("attidentity", attribute.identity.into()),
        ("attislocal", true.into()),
        ("attcollation", collation),
    ]);
}

/// The rows of `pg_attribute`.
pub(super) fn attributes(rows: &mut Rows, held: &Held, viewed: &Viewed) {
    for table in &held.tables {
        let of = held.table_number(table);
        table.columns.iter().enumerate().for_each(|(place, column)| attribute(rows, &of_column(of, place, column)));
    }
    for (table, index) in held.indexes() {
        let of = held.index_number(table, index);
        for (place, column) in index.columns.iter().enumerate() {
            let Some(column) = table.position(*column).and_then(|at| table.columns.get(at)) else { continue };
            let kind = types::of_column(&column.kind);
            let name = &column.name;
            attribute(rows, &Attribute { of, place, name, kind, not_null: false, has_default: false, identity: "" });
        }
    }
    for (view, (_, schema)) in held.views.iter().zip(viewed) {
        let of = held.view_number(view);
        schema.iter().for_each(|schema| of_view(rows, of, schema));
    }
    for shape in shapes() {
        for (place, column) in shape.columns.iter().enumerate() {
            let kind = (types::of_catalog(column.kind), -1);
            let (of, name, not_null) = (shape.number, column.name, !column.is_nullable);
            attribute(rows, &Attribute { of, place, name, kind, not_null, has_default: false, identity: "" });
        }
    }
}

fn of_column(of: u32, place: usize, column: &Column) -> Attribute<'_> {
    Attribute {
        of,
        place,
        name: &column.name,
        kind: types::of_column(&column.kind),
        not_null: column.not_null,
        has_default: column.default.is_some() && column.identity.is_none(),
        identity: column.identity.map_or("", |identity| if identity.always { "a" } else { "d" }),
    }
}

fn of_view(rows: &mut Rows, of: u32, schema: &Schema) {
    for (place, field) in schema.fields().iter().enumerate() {
        let kind = types::of_column(&from_arrow(field.data_type()).unwrap_or(Type::Text));
        let name = field.name();
        attribute(rows, &Attribute { of, place, name, kind, not_null: false, has_default: false, identity: "" });
    }
}

/// The rows of `pg_attrdef`: the defaults as they were written, where PostgreSQL keeps what its parser made of them.
pub(super) fn defaults(rows: &mut Rows, held: &Held) {
    for table in &held.tables {
        for (place, column) in table.columns.iter().enumerate() {
            let Some(default) = column.default.as_ref().filter(|_| column.identity.is_none()) else { continue };
            rows.push([
                ("oid", held.numbers.get(&Object::Default(table.id, column.id)).into()),
                ("adrelid", held.table_number(table).into()),
                ("adnum", Cell::Number(place as i64 + 1)),
                ("adbin", default.into()),
            ]);
        }
    }
}

/// The rows of `pg_tables`.
pub(super) fn tables(rows: &mut Rows, held: &Held) {
    let mut push = |schema: &str, name: &str, has_indexes: bool, has_triggers: bool| {
        rows.push([
            ("schemaname", schema.into()),
            ("tablename", name.into()),
            ("tableowner", crate::functions::USER.into()),
            ("hasindexes", has_indexes.into()),
            ("hasrules", false.into()),
            ("hastriggers", has_triggers.into()),
            ("rowsecurity", false.into()),
        ]);
    };
    for table in &held.tables {
        let has_triggers = !table.foreign_keys.is_empty() || table.is_referenced();
        push(crate::SCHEMA, &table.name, shown_indexes(table).next().is_some(), has_triggers);
    }
    shapes().filter(|shape| own(shape).kind == "r").for_each(|shape| push(super::SCHEMA, shape.name, false, false));
}

/// The rows of `pg_views`.
pub(super) fn views(rows: &mut Rows, held: &Held) {
    for view in &held.views {
        rows.push([
            ("schemaname", crate::SCHEMA.into()),
            ("viewname", (&view.name).into()),
            ("viewowner", crate::functions::USER.into()),
            ("definition", keys::view_definition(view).into()),
        ]);
    }
}

/// The name of what counts a column up, as PostgreSQL would have named it.
pub(super) fn sequence_name(table: &Table, column: &Column) -> String {
    format!("{}_{}_seq", table.name, column.name)
}

/// The rows of `pg_sequence`: one for each identity column. What counts it up is no relation of its own here.
pub(super) fn sequences(rows: &mut Rows, held: &Held) {
    for table in &held.tables {
        for column in &table.columns {
            let Some(identity) = column.identity else { continue };
            let (smallest, largest) = match column.kind {
                Type::SmallInt => (i64::from(i16::MIN), i64::from(i16::MAX)),
                Type::Integer => (i64::from(i32::MIN), i64::from(i32::MAX)),
                _ => (i64::MIN, i64::MAX),
            };
            let (smallest, largest) = if identity.increment > 0 { (1, largest) } else { (smallest, -1) };
            rows.push([
                ("seqrelid", held.numbers.get(&Object::Sequence(table.id, column.id)).into()),
                ("seqtypid", types::of_column(&column.kind).0.into()),
                ("seqstart", Cell::Number(identity.start)),
                ("seqincrement", Cell::Number(identity.increment)),
                ("seqmax", Cell::Number(largest)),
                ("seqmin", Cell::Number(smallest)),
                ("seqcache", 1.into()),
            ]);
        }
    }
}
