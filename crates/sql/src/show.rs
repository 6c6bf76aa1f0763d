//! SHOW and DESCRIBE: small tables about the database and the session.

use std::sync::Arc;

use counterfoil_relation::{self as relation, Action, Table};
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, ShowCreateObject, ShowStatementFilter, ShowStatementFilterPosition, ShowStatementOptions,
    Statement,
};

use crate::dispersed;
use crate::engine::Rows;
use crate::error::{Error, Result};
use crate::publishing;
use crate::session::{Outcome, Session};
use crate::statement::{fold, ident, table_name};
use crate::types;

impl Session {
    pub(crate) fn show(&mut self, statement: &Statement) -> Result<Outcome> {
        match statement {
            Statement::ShowVariable { variable } => self.show_variable(variable),
            Statement::ShowTables { show_options, .. } => {
                let names = self.relation_names(true, true)?;
                listed("table_name", names, show_options)
            }
            Statement::ShowViews { show_options, .. } => {
                let names = self.relation_names(false, true)?;
                listed("view_name", names, show_options)
            }
            Statement::ShowSchemas { show_options, .. } => {
                let names = vec![crate::INFORMATION.to_owned(), crate::SCHEMA.to_owned()];
                listed("schema_name", names, show_options)
            }
            Statement::ShowDatabases { show_options, .. } => {
                listed("database_name", vec![crate::CATALOG.to_owned()], show_options)
            }
            Statement::ShowColumns { show_options, .. } => {
                let name = show_options.show_in.as_ref().and_then(|place| place.parent_name.as_ref());
                let name = name.ok_or_else(|| Error::Sql("SHOW COLUMNS wants FROM and a table".into()))?;
                self.describe(name)
            }
            Statement::ShowCreate { obj_type: ShowCreateObject::Table | ShowCreateObject::View, obj_name } => {
                self.show_create(obj_name)
            }
            Statement::ExplainTable { table_name, .. } => self.describe(table_name),
            other => Err(Error::NotSupported(other.to_string())),
        }
    }

    /// Names of tables and views.
    fn relation_names(&mut self, tables: bool, views: bool) -> Result<Vec<String>> {
        let view = self.view()?;
        let relations = self.engine().relations.clone();
        let mut names = Vec::new();
        if tables {
            let tables = relations.tables(&view).map_err(Error::Relation)?;
            names.extend(tables.iter().map(|table| table.name.clone()).filter(|name| !publishing::is_hidden(name)));
        }
        if views {
            names.extend(relations.views(&view).map_err(Error::Relation)?.into_iter().map(|view| view.name));
        }
        names.sort();
        Ok(names)
    }

    fn show_variable(&mut self, variable: &[Ident]) -> Result<Outcome> {
        let name = variable.iter().map(fold).collect::<Vec<_>>().join(".");
        match name.as_str() {
            "clouds" => self.show_clouds(),
            "all" => {
                let all = self.all_settings()?;
                let (names, values) = all.into_iter().map(|(name, value)| (Some(name), Some(value))).unzip();
                table(vec![("name", names), ("setting", values)])
            }
            "time.zone" => table(vec![("TimeZone", vec![self.value_of("timezone")])]),
            "transaction.isolation.level" => {
                table(vec![("transaction_isolation", vec![self.value_of("transaction_isolation")])])
            }
            "publications" => self.show_publications(),
            _ => match self.setting(&name)? {
                Some(value) => table(vec![(&name, vec![Some(value)])]),
                None => Err(Error::NotFound(format!("no setting {name}: SHOW ALL lists them"))),
            },
        }
    }

    /// Column, type, NULL, key and default, one row a column.
    fn describe(&mut self, name: &ObjectName) -> Result<Outcome> {
        let name = table_name(name)?;
        let view = self.view()?;
        let named = self.engine().relations.named(&view, &name).map_err(Error::Relation)?;
        let mut columns: [Vec<Option<String>>; 5] = Default::default();
        let mut push = |row: [Option<String>; 5]| {
            columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        };
        match named {
            Some(relation::Named::Table(table)) => {
                for column in &table.columns {
                    push([
                        Some(column.name.clone()),
                        Some(types::name(&column.kind)),
                        Some(if column.not_null { "NO" } else { "YES" }.into()),
                        key_of(&table, column.id).map(str::to_owned),
                        default_of(column),
                    ]);
                }
            }
            Some(relation::Named::View(stored)) => {
                for field in self.planner.view_schema(&stored, &view)?.fields() {
                    let kind = types::field_name(field);
                    push([Some(field.name().clone()), Some(kind), Some("YES".into()), None, None]);
                }
            }
            _ => return Err(Error::NoTable(format!("no table {name}"))),
        }
        let names = ["column_name", "data_type", "is_nullable", "key", "column_default"];
        table(names.into_iter().zip(columns).collect())
    }

    fn show_create(&mut self, name: &ObjectName) -> Result<Outcome> {
        let name = table_name(name)?;
        let sql = self.create_statement(&name)?;
        table(vec![("name", vec![Some(name)]), ("statement", vec![Some(sql)])])
    }

    /// The statements that make a table (with its indexes) or a view, as SQL: what `export --all` writes.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn create_statement(&mut self, name: &str) -> Result<String> {
        let view = self.view()?;
        let relations = self.engine().relations.clone();
        match relations.named(&view, name).map_err(Error::Relation)? {
            Some(relation::Named::Table(table)) => {
                let parent =
                    |id| Ok(relations.table_by_id(&view, id).map_err(Error::Relation)?.map(|table| (*table).clone()));
                create_table(&table, parent)
            }
            Some(relation::Named::View(stored)) => {
                let columns: Vec<_> = stored.columns.iter().map(|name| quoted(name)).collect();
                let columns = if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(", ")) };
                Ok(format!("CREATE VIEW {}{columns} AS {}", quoted(name), stored.sql))
            }
            _ => Err(Error::NoTable(format!("no table {name}"))),
        }
    }
}

fn listed(title: &str, mut names: Vec<String>, options: &ShowStatementOptions) -> Result<Outcome> {
    match &options.filter_position {
        None => {}
        Some(
            ShowStatementFilterPosition::Infix(ShowStatementFilter::Like(pattern))
            | ShowStatementFilterPosition::Suffix(ShowStatementFilter::Like(pattern)),
        ) => names.retain(|name| like(name, pattern)),
        Some(_) => return Err(Error::NotSupported("SHOW with a filter other than LIKE".into())),
    }
    table(vec![(title, names.into_iter().map(Some).collect())])
}

/// `%` is any letters, `_` one.
fn like(text: &str, pattern: &str) -> bool {
    match pattern.chars().next() {
        None => text.is_empty(),
        Some('%') => {
            let rest = &pattern[1..];
            text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| like(&text[at..], rest))
        }
        Some(letter) => {
            let mut letters = text.chars();
            let first = letters.next();
            first.is_some_and(|first| letter == '_' || letter == first)
                && like(letters.as_str(), &pattern[letter.len_utf8()..])
        }
    }
}

/// A table of texts as an outcome.
pub(crate) fn table(columns: Vec<(&str, Vec<Option<String>>)>) -> Result<Outcome> {
    let batch = texts(columns)?;
    Ok(Outcome::Rows(Rows::batches(batch.schema(), vec![batch])))
}

/// A table of texts.
pub(crate) fn texts(columns: Vec<(&str, Vec<Option<String>>)>) -> Result<RecordBatch> {
    let fields: Vec<_> = columns.iter().map(|(name, _)| Field::new(*name, DataType::Utf8View, true)).collect();
    let arrays = columns.into_iter().map(|(_, values)| Arc::new(StringViewArray::from_iter(values)) as ArrayRef);
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays.collect())?)
}

fn key_of(table: &Table, column: relation::ColumnId) -> Option<&'static str> {
    if table.primary_key.as_ref().is_some_and(|key| key.columns.contains(&column)) {
        return Some("PRIMARY KEY");
    }
    if table.uniques.iter().any(|key| key.columns.contains(&column)) {
        return Some("UNIQUE");
    }
    table.foreign_keys.iter().any(|key| key.columns.contains(&column)).then_some("FOREIGN KEY")
}

/// The default of a column as SQL, or how it counts up.
pub(crate) fn default_of(column: &relation::Column) -> Option<String> {
    column.default.clone().or_else(|| column.identity.map(generated))
}

fn generated(identity: relation::Identity) -> String {
    let always = if identity.always { "ALWAYS" } else { "BY DEFAULT" };
    match (identity.start, identity.increment) {
        (1, 1) => format!("GENERATED {always} AS IDENTITY"),
        (start, step) => format!("GENERATED {always} AS IDENTITY (START WITH {start} INCREMENT BY {step})"),
    }
}

/// A name as SQL reads it back.
pub(crate) fn quoted(name: &str) -> String {
    let plain = name.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '_')
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !datafusion::sql::sqlparser::keywords::ALL_KEYWORDS.contains(&name.to_ascii_uppercase().as_str());
    if plain { name.to_owned() } else { ident(name).to_string() }
}

/// ` WITH (engine = ..., ...)`, as CREATE TABLE says it.
pub fn with_clause(engine: &relation::Engine) -> String {
    // Of the names of options this one alone is a word that SQL has for something else.
    let quoted = |name: &str| if name == "table" { "\"table\"".to_owned() } else { name.to_owned() };
    let option = |(name, value): (&str, &str)| format!("{} = '{}'", quoted(name), value.replace('\'', "''"));
    let options = engine.options.iter().filter(|(name, _)| !dispersed::is_of_column(name));
    let options = options.map(|(name, value)| (name.as_str(), value.as_str()));
    let options = std::iter::once(("engine", engine.name.as_str())).chain(options).map(option);
    format!(" WITH ({})", options.collect::<Vec<_>>().join(", "))
}

/// The statement that makes a table anew. `parent`: the table of a number, to which a foreign key leads.
pub(crate) fn create_table(
    table: &Table,
    parent: impl Fn(relation::TableId) -> Result<Option<Table>>,
) -> Result<String> {
    let names = |table: &Table, columns: &[relation::ColumnId]| {
        let names = columns.iter().filter_map(|id| table.columns.iter().find(|column| column.id == *id));
        names.map(|column| quoted(&column.name)).collect::<Vec<_>>().join(", ")
    };
    let mut lines = Vec::new();
    for column in &table.columns {
        let mut line = format!("{} {}", quoted(&column.name), types::name(&column.kind));
        line.push_str(&dispersed::for_clause(table, &column.name));
        if column.not_null && column.identity.is_none() {
            line.push_str(" NOT NULL");
        }
        if let Some(default) = &column.default {
            line.push_str(&format!(" DEFAULT {default}"));
        }
        if let Some(identity) = column.identity {
            line.push_str(&format!(" {}", generated(identity)));
        }
        lines.push(line);
    }
    if let Some(key) = &table.primary_key {
        lines.push(format!("CONSTRAINT {} PRIMARY KEY ({})", quoted(&key.name), names(table, &key.columns)));
    }
    for key in &table.uniques {
        lines.push(format!("CONSTRAINT {} UNIQUE ({})", quoted(&key.name), names(table, &key.columns)));
    }
    for check in &table.checks {
        lines.push(format!("CONSTRAINT {} CHECK ({})", quoted(&check.name), check.sql));
    }
    for key in &table.foreign_keys {
        let parent = parent(key.parent)?.ok_or_else(|| Error::Bug("a foreign key without a parent".into()))?;
        lines.push(format!(
            "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {} ({}){}{}{}",
            quoted(&key.name),
            names(table, &key.columns),
            quoted(&parent.name),
            names(&parent, &key.parent_columns),
            action(" ON DELETE", key.on_delete),
            action(" ON UPDATE", key.on_update),
            if key.enforced { "" } else { " NOT ENFORCED" },
        ));
    }
    let mut sql = format!("CREATE TABLE {} (\n  {}\n)", quoted(&table.name), lines.join(",\n  "));
    sql.push_str(&table.engine.as_ref().map(with_clause).unwrap_or_default());
    for index in table.indexes.iter().filter(|index| index.origin == relation::IndexOrigin::Created) {
        sql.push_str(&format!(
            ";\nCREATE {}INDEX {} ON {} ({})",
            if index.unique { "UNIQUE " } else { "" },
            quoted(&index.name),
            quoted(&table.name),
            names(table, &index.columns)
        ));
    }
    Ok(sql)
}

fn action(when: &str, action: Action) -> String {
    let what = match action {
        Action::NoAction => return String::new(),
        Action::Restrict => "RESTRICT",
        Action::Cascade => "CASCADE",
        Action::SetNull => "SET NULL",
        Action::SetDefault => "SET DEFAULT",
    };
    format!("{when} {what}")
}
