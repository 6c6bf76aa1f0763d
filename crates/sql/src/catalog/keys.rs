//! `pg_index`, `pg_constraint`, and the statements that would make them and views again.

use counterfoil_relation::{Action, Check, ForeignKey, IndexDef, IndexOrigin, KeyDef, StoredView, Table};

use super::held::{Held, places};
use super::numbers::{Object, PUBLIC};
use super::shape::{Cell, Rows};
use super::texts::quote_ident;
use super::types;

/// The rows of `pg_index`.
pub(super) fn indexes(rows: &mut Rows, held: &Held) {
    for (table, index) in held.indexes() {
        let each = |number: i64| Cell::Numbers(vec![number; index.columns.len()]);
        let collation = |place: &i64| {
            let column = table.columns.get(usize::try_from(*place - 1).ok()?)?;
            match &types::laid_out(types::of_column(&column.kind).0)[4] {
                Cell::Number(collation) => Some(*collation),
                _ => None,
            }
        };
        let places = places(table, &index.columns);
        let collations = places.iter().map(|place| collation(place).unwrap_or(0)).collect();
        rows.push([
            ("indexrelid", held.index_number(table, index).into()),
            ("indrelid", held.table_number(table).into()),
            ("indnatts", Cell::Number(index.columns.len() as i64)),
            ("indnkeyatts", Cell::Number(index.columns.len() as i64)),
            ("indisunique", index.unique.into()),
            ("indisprimary", (index.origin == IndexOrigin::PrimaryKey).into()),
            ("indimmediate", true.into()),
            ("indisvalid", true.into()),
            ("indisready", true.into()),
            ("indislive", true.into()),
            ("indkey", Cell::Numbers(places)),
            ("indcollation", Cell::Numbers(collations)),
            ("indclass", each(0)),
            ("indoption", each(0)),
        ]);
    }
}

/// The rows of `pg_indexes`.
pub(super) fn shown_indexes(rows: &mut Rows, held: &Held) {
    for (table, index) in held.indexes() {
        rows.push([
            ("schemaname", crate::SCHEMA.into()),
            ("tablename", (&table.name).into()),
            ("indexname", (&index.name).into()),
            ("indexdef", index_definition(table, index).into()),
        ]);
    }
}

/// The rows of `pg_constraint`.
pub(super) fn constraints(rows: &mut Rows, held: &Held) {
    for table in &held.tables {
        for key in table.primary_key.iter().chain(&table.uniques) {
            let is_primary = table.primary_key.as_ref() == Some(key);
            let places = places(table, &key.columns);
            rows.push(constraint(
                held,
                table,
                &key.name,
                &Object::Key(table.id, key.index),
                [
                    ("contype", if is_primary { "p" } else { "u" }.into()),
                    ("conindid", held.numbers.get(&Object::Index(table.id, key.index)).into()),
                    ("conkey", Cell::Numbers(places)),
                ],
            ));
        }
        for check in &table.checks {
            let places = places(table, &check.columns);
            rows.push(constraint(
                held,
                table,
                &check.name,
                &Object::Check(table.id, check.name.clone()),
                [("contype", "c".into()), ("conkey", Cell::Numbers(places)), ("conbin", (&check.sql).into())],
            ));
        }
        table.foreign_keys.iter().for_each(|key| reference(rows, held, table, key));
    }
}

fn constraint<const N: usize>(
    held: &Held,
    table: &Table,
    name: &String,
    object: &Object,
    own: [(&'static str, Cell); N],
) -> [(&'static str, Cell); 19] {
    let mut said = [
        ("oid", held.numbers.get(object).into()),
        ("conname", name.into()),
        ("connamespace", PUBLIC.into()),
        ("convalidated", true.into()),
        ("conrelid", held.table_number(table).into()),
        ("conislocal", true.into()),
        ("connoinherit", false.into()),
        ("contype", Cell::Null),
        ("conindid", 0.into()),
        ("conkey", Cell::Null),
        ("conbin", Cell::Null),
        ("confrelid", 0.into()),
        ("confupdtype", " ".into()),
        ("confdeltype", " ".into()),
        ("confmatchtype", " ".into()),
        ("confkey", Cell::Null),
        ("condeferrable", false.into()),
        ("condeferred", false.into()),
        ("coninhcount", 0.into()),
    ];
    for (name, cell) in own {
        said.iter_mut().filter(|(known, _)| *known == name).for_each(|(_, known)| *known = cell.clone());
    }
    said
}

fn reference(rows: &mut Rows, held: &Held, table: &Table, key: &ForeignKey) {
    let Some(parent) = held.table(key.parent) else { return };
    let object = Object::Reference(table.id, key.name.clone());
    rows.push(constraint(
        held,
        table,
        &key.name,
        &object,
        [
            ("contype", "f".into()),
            ("conindid", held.numbers.get(&Object::Index(key.parent, key.parent_index)).into()),
            ("conkey", Cell::Numbers(places(table, &key.columns))),
            ("confrelid", held.table_number(parent).into()),
            ("confupdtype", letter(key.on_update).into()),
            ("confdeltype", letter(key.on_delete).into()),
            ("confmatchtype", "s".into()),
            ("confkey", Cell::Numbers(places(parent, &key.parent_columns))),
            ("convalidated", key.enforced.into()),
        ],
    ));
}

fn letter(action: Action) -> &'static str {
    match action {
        Action::NoAction => "a",
        Action::Restrict => "r",
        Action::Cascade => "c",
        Action::SetNull => "n",
        Action::SetDefault => "d",
    }
}

fn columns(table: &Table, columns: &[counterfoil_relation::ColumnId]) -> String {
    let names = columns.iter().filter_map(|id| table.columns.iter().find(|column| column.id == *id));
    names.map(|column| quote_ident(&column.name)).collect::<Vec<_>>().join(", ")
}

/// What `pg_get_indexdef` answers.
pub(super) fn index_definition(table: &Table, index: &IndexDef) -> String {
    format!(
        "CREATE {}INDEX {} ON {}.{} USING btree ({})",
        if index.unique { "UNIQUE " } else { "" },
        quote_ident(&index.name),
        crate::SCHEMA,
        quote_ident(&table.name),
        columns(table, &index.columns)
    )
}

/// What `pg_get_indexdef` answers of each column.
pub(super) fn index_columns(table: &Table, index: &IndexDef) -> Vec<String> {
    index.columns.iter().map(|column| columns(table, &[*column])).collect()
}

/// What `pg_get_constraintdef` answers of a key.
pub(super) fn key_definition(table: &Table, key: &KeyDef) -> String {
    let sort = if table.primary_key.as_ref() == Some(key) { "PRIMARY KEY" } else { "UNIQUE" };
    format!("{sort} ({})", columns(table, &key.columns))
}

/// What `pg_get_constraintdef` answers of a condition.
pub(super) fn check_definition(check: &Check) -> String {
    format!("CHECK ({})", check.sql)
}

/// What `pg_get_constraintdef` answers of a reference.
pub(super) fn reference_definition(held: &Held, table: &Table, key: &ForeignKey) -> Option<String> {
    let parent = held.table(key.parent)?;
    let action = |when: &str, action: Action| match action {
        Action::NoAction => String::new(),
        Action::Restrict => format!(" ON {when} RESTRICT"),
        Action::Cascade => format!(" ON {when} CASCADE"),
        Action::SetNull => format!(" ON {when} SET NULL"),
        Action::SetDefault => format!(" ON {when} SET DEFAULT"),
    };
    Some(format!(
        "FOREIGN KEY ({}) REFERENCES {}({}){}{}{}",
        columns(table, &key.columns),
        quote_ident(&parent.name),
        columns(parent, &key.parent_columns),
        action("UPDATE", key.on_update),
        action("DELETE", key.on_delete),
        if key.enforced { "" } else { " NOT VALID" },
    ))
}

/// What `pg_get_viewdef` answers.
pub(super) fn view_definition(view: &StoredView) -> String {
    format!(" {};", view.sql.trim().trim_end_matches(';'))
}
