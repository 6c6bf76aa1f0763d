//! Tables as the SQL that makes them: what `export --all` writes and `import --all` runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use counterfoil_log::Snapshot;
use counterfoil_relation::{Action, Column, ColumnId, ForeignKey, IndexOrigin, Table, TableId};
use counterfoil_sql as sql;
use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::DataType;

use crate::database::Database;
use crate::error::Result;
use crate::relation::ColumnInfo;

/// A name in quotes.
#[must_use]
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The SQL type of a column that holds what an Arrow type carries.
///
/// # Errors
/// [`crate::Kind::NotSupported`] for lists, structures and other types that no column has.
pub fn sql_type(kind: &DataType) -> Result<String> {
    Ok(sql::type_name(&sql::column_type(kind)?))
}

/// Appends the text of one cell, as PostgreSQL writes it. NULL appends nothing: ask the array first.
///
/// # Errors
/// [`crate::Kind::Bug`] for a type that no query yields.
pub fn write_cell(out: &mut String, array: &dyn Array, row: usize) -> Result<()> {
    Ok(sql::text::write_cell(out, array, row)?)
}

pub(crate) fn columns(table: &Table) -> Vec<ColumnInfo> {
    let key = table.primary_key.as_ref().map(|key| key.columns.as_slice()).unwrap_or_default();
    let info = |column: &Column| ColumnInfo {
        name: column.name.clone(),
        kind: sql::type_name(&column.kind),
        arrow: sql::arrow_type(&column.kind),
        not_null: column.not_null,
        default: column.default.clone(),
        is_identity: column.identity.is_some(),
        is_key: key.contains(&column.id),
    };
    table.columns.iter().map(info).collect()
}

impl Database {
    /// The statements that make clouds, tables, indexes and views anew. Parents come before the tables that reference them, and
    /// views before those that read them; where tables reference each other in a circle, one reference has to be left out, and
    /// a comment says which.
    ///
    /// # Errors
    /// Those of reading.
    pub fn schema_sql(&self) -> Result<String> {
        self.require_process()?;
        self.schema(&self.snapshot()?)
    }

    fn schema(&self, snapshot: &Snapshot) -> Result<String> {
        let tables = in_order(self.listed(snapshot)?);
        let mut sql = String::new();
        if tables.iter().any(|table| sql::is_dispersed(table)) {
            sql.push_str(&sql::clouds_sql(snapshot)?);
        }
        for (place, table) in tables.iter().enumerate() {
            table_sql(&mut sql, table, &tables, place);
        }
        for table in &tables {
            indexes_sql(&mut sql, table);
        }
        for view in sql::views_in_order(self.inner.engine.relations().views(snapshot)?)? {
            let columns = match view.columns.as_slice() {
                [] => String::new(),
                names => format!(" ({})", list(names.iter().map(String::as_str))),
            };
            sql.push_str(&format!("CREATE VIEW {}{columns} AS {};\n", quoted(&view.name), view.sql));
        }
        Ok(sql)
    }

    /// Names of the tables, in the order in which they can be made and filled.
    ///
    /// # Errors
    /// Those of reading.
    pub fn table_names(&self) -> Result<Vec<String>> {
        self.require_process()?;
        let tables = in_order(self.listed(&self.snapshot()?)?);
        Ok(tables.iter().map(|table| table.name.clone()).collect())
    }

    /// Names of those of the tables whose rows are here: not of published ones, whose rows come from a server.
    ///
    /// # Errors
    /// Those of reading.
    pub fn filled_table_names(&self) -> Result<Vec<String>> {
        self.require_process()?;
        let mut tables = in_order(self.listed(&self.snapshot()?)?);
        tables.retain(|table| !sql::is_published(table));
        Ok(tables.iter().map(|table| table.name.clone()).collect())
    }
}

impl Database {
    /// Names under which SQL reads and fills what series tables keep apart because it was ahead of the clock; of tables that keep
    /// something apart.
    ///
    /// # Errors
    /// Those of reading.
    pub fn kept_apart_names(&self) -> Result<Vec<String>> {
        self.require_process()?;
        let apart = self.kept_apart(&self.snapshot()?)?;
        Ok(apart.into_iter().map(|(table, _)| sql::kept_apart_name(&table)).collect())
    }

    /// The tables that users have: not those in which the keys of published ones are kept.
    fn listed(&self, snapshot: &Snapshot) -> Result<Vec<Arc<Table>>> {
        let mut tables = self.tables(snapshot)?;
        tables.retain(|table| !sql::is_hidden(&table.name));
        Ok(tables)
    }

    /// Series tables that keep points apart, and how many.
    pub(crate) fn kept_apart(&self, snapshot: &Snapshot) -> Result<Vec<(String, u64)>> {
        let mut apart = Vec::new();
        for table in in_order(self.tables(snapshot)?) {
            match sql::count_apart(self.inner.engine.series(), snapshot, &table)? {
                0 => {}
                count => apart.push((table.name.clone(), count)),
            }
        }
        Ok(apart)
    }
}

/// Parents before children, by name otherwise. What stands in a circle comes last.
fn in_order(mut waiting: Vec<Arc<Table>>) -> Vec<Arc<Table>> {
    waiting.sort_by(|one, other| one.name.cmp(&other.name));
    let mut done: BTreeSet<TableId> = BTreeSet::new();
    let mut ordered = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let ready = |table: &Arc<Table>| {
            table.foreign_keys.iter().all(|key| key.parent == table.id || done.contains(&key.parent))
        };
        let next = waiting.iter().position(ready).unwrap_or(0);
        let table = waiting.remove(next);
        done.insert(table.id);
        ordered.push(table);
    }
    ordered
}

fn table_sql(sql: &mut String, table: &Table, tables: &[Arc<Table>], place: usize) {
    let mut parts: Vec<String> = table.columns.iter().map(|column| column_sql(table, column)).collect();
    let names = |ids: &[ColumnId]| list(ids.iter().filter_map(|id| name_of(table, *id)));
    let constraint = |name: &str, rest: String| format!("CONSTRAINT {} {rest}", quoted(name));
    if let Some(key) = &table.primary_key {
        parts.push(constraint(&key.name, format!("PRIMARY KEY ({})", names(&key.columns))));
    }
    for key in &table.uniques {
        parts.push(constraint(&key.name, format!("UNIQUE ({})", names(&key.columns))));
    }
    for check in &table.checks {
        parts.push(constraint(&check.name, format!("CHECK ({})", check.sql)));
    }
    for key in &table.foreign_keys {
        let known = tables[..=place].iter().find(|parent| parent.id == key.parent);
        match known {
            Some(parent) => parts.push(constraint(&key.name, reference_sql(key, names(&key.columns), parent))),
            None => sql.push_str(&format!(
                "-- left out: foreign key {} of table {}, which stands in a circle of references\n",
                key.name, table.name
            )),
        }
    }
    let with = table.engine.as_ref().map(counterfoil_sql::with_clause).unwrap_or_default();
    sql.push_str(&format!("CREATE TABLE {} (\n    {}\n){with};\n", quoted(&table.name), parts.join(",\n    ")));
}

fn column_sql(table: &Table, column: &Column) -> String {
    let mut sql = format!("{} {}", quoted(&column.name), sql::type_name(&column.kind));
    sql.push_str(&sql::for_clause(table, &column.name));
    if let Some(identity) = &column.identity {
        let when = if identity.always { "ALWAYS" } else { "BY DEFAULT" };
        sql.push_str(&format!(
            " GENERATED {when} AS IDENTITY (INCREMENT BY {} START WITH {})",
            identity.increment, identity.start
        ));
    }
    if let Some(default) = &column.default {
        sql.push_str(&format!(" DEFAULT {default}"));
    }
    if column.not_null {
        sql.push_str(" NOT NULL");
    }
    sql
}

fn reference_sql(key: &ForeignKey, columns: String, parent: &Table) -> String {
    let parent_columns = list(key.parent_columns.iter().filter_map(|id| name_of(parent, *id)));
    let mut sql = format!("FOREIGN KEY ({columns}) REFERENCES {} ({parent_columns})", quoted(&parent.name));
    for (event, action) in [("DELETE", key.on_delete), ("UPDATE", key.on_update)] {
        if action != Action::NoAction {
            sql.push_str(&format!(" ON {event} {}", action_sql(action)));
        }
    }
    if !key.enforced {
        sql.push_str(" NOT ENFORCED");
    }
    sql
}

fn action_sql(action: Action) -> &'static str {
    match action {
        Action::NoAction => "NO ACTION",
        Action::Restrict => "RESTRICT",
        Action::Cascade => "CASCADE",
        Action::SetNull => "SET NULL",
        Action::SetDefault => "SET DEFAULT",
    }
}

fn indexes_sql(sql: &mut String, table: &Table) {
    for index in table.indexes.iter().filter(|index| index.origin == IndexOrigin::Created) {
        let unique = if index.unique { "UNIQUE " } else { "" };
        let columns = list(index.columns.iter().filter_map(|id| name_of(table, *id)));
        sql.push_str(&format!(
            "CREATE {unique}INDEX {} ON {} ({columns});\n",
            quoted(&index.name),
            quoted(&table.name)
        ));
    }
}

fn name_of(table: &Table, id: ColumnId) -> Option<&str> {
    table.columns.iter().find(|column| column.id == id).map(|column| column.name.as_str())
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(quoted).collect::<Vec<_>>().join(", ")
}
