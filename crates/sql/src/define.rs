//! Defining tables, indexes and views: CREATE, ALTER, DROP, VACUUM.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use counterfoil_log::View;
use counterfoil_relation::{self as relation, NewIndex, NewTable, Vacuum};
use datafusion::sql::sqlparser::ast::{
    AlterTable, AlterTableOperation, ColumnDef, CreateIndex, CreateTable, CreateTableOptions, DropBehavior, Expr,
    Ident, IndexColumn, IndexType, ObjectType, Query, RenameTableNameKind, SqlOption, Statement, Value as Literal,
    ValueWithSpan, visit_expressions, visit_expressions_mut,
};

use crate::cast;
use crate::columns;
use crate::dispersed;
use crate::error::{Error, Result, name_taken};
use crate::evaluate;
use crate::naming;
use crate::parameters;
use crate::planner;
use crate::published;
use crate::publishing;
use crate::series;
use crate::session::{Outcome, Session};
use crate::statement::{fold, ident, table_name};
use crate::transaction::Change;
use crate::types;
use crate::value::Value;
use crate::views::Cascade;

impl Session {
    /// Everything that defines something, or is not supported.
    pub(crate) fn define(&mut self, statement: &Statement, parameters: &[Value]) -> Result<Outcome> {
        match statement {
            Statement::CreateTable(create) => self.create_table(create, parameters),
            Statement::CreateIndex(create) => self.create_index(create),
            Statement::CreateView(create) => self.create_view(create),
            Statement::AlterTable(alter) => self.alter_table(alter),
            Statement::Drop { object_type, if_exists, names, cascade, .. } => {
                let names = names.iter().map(table_name).collect::<Result<Vec<_>>>()?;
                self.drop_objects(*object_type, &names, *if_exists, *cascade)
            }
            Statement::Truncate(truncate) => self.truncate(truncate),
            Statement::Vacuum(vacuum) => {
                let name = vacuum.table_name.as_ref().map(table_name).transpose()?;
                self.vacuum(name.as_deref())
            }
            Statement::CreateSchema { schema_name, if_not_exists, .. } => {
                self.create_schema(schema_name, *if_not_exists)
            }
            Statement::Comment { object_type, object_name, .. } => self.comment(*object_type, object_name),
            Statement::Analyze(_) => Ok(Outcome::Done("ANALYZE")),
            other => Err(Error::NotSupported(beginning(&other.to_string()))),
        }
    }

    fn create_table(&mut self, create: &CreateTable, parameters: &[Value]) -> Result<Outcome> {
        refuse_table(create)?;
        let engine = match says_where(&create.table_options) || self.cache.is_own || create.temporary {
            true => engine_of(&create.table_options)?,
            false => self.engine_used()?,
        };
        let name = table_name(&create.name)?;
        if !self.cache.is_own {
            reserved(&name)?;
        }
        if let Some(engine) = engine.as_ref().filter(|engine| engine.name == published::ENGINE) {
            return self.create_published(create, name, engine.clone());
        }
        if let Some(engine) = engine.as_ref().filter(|engine| engine.name == dispersed::ENGINE) {
            return self.create_dispersed(create, name, engine.clone());
        }
        if let Some(query) = &create.query {
            self.follow(query)?;
        }
        self.change(|session, change| {
            if session.taken(change, &name, create.if_not_exists)? {
                return Ok(Outcome::Done("CREATE TABLE"));
            }
            if let Some(query) = &create.query {
                if engine.is_some() {
                    return Err(Error::NotSupported(
                        "CREATE TABLE ... AS for a series: CREATE it, then INSERT ... SELECT".into(),
                    ));
                }
                return session.create_table_as(change, &name, &create.columns, query, parameters);
            }
            let table = session.new_table(name, &create.columns, &create.constraints)?;
            let table = NewTable { engine, ..table };
            let relations = session.engine().relations.clone();
            if table.engine.is_some() {
                series::check(&table)?;
            }
            let made = relations.create_table(&mut *change.lease, &table).map_err(Error::Relation)?;
            if series::is_series(&made) {
                series::create(&session.engine().series, &mut change.lease, &made)?;
            }
            Ok(Outcome::Done("CREATE TABLE"))
        })
    }

    /// Whether a name is taken; an error unless IF NOT EXISTS.
    fn taken(&mut self, change: &Change, name: &str, if_not_exists: bool) -> Result<bool> {
        self.is_taken(&*change.lease, name, if_not_exists)
    }

    /// The same of any state.
    pub(crate) fn is_taken(&self, view: &dyn View, name: &str, if_not_exists: bool) -> Result<bool> {
        match self.engine().relations.named(view, name).map_err(Error::Relation)? {
            None => Ok(false),
            Some(_) if if_not_exists => Ok(true),
            Some(_) => Err(name_taken(name)),
        }
    }

    fn create_table_as(
        &mut self,
        change: &mut Change,
        name: &str,
        names: &[ColumnDef],
        query: &Query,
        parameters: &[Value],
    ) -> Result<Outcome> {
        let mut statement = Statement::Query(Box::new(query.clone()));
        parameters::bind(&mut statement, parameters)?;
        naming::name_columns(&mut statement, self.names);
        let snapshot = change.lease.pending();
        let plan = self.planner.plan(statement, &snapshot, Vec::new())?;
        let shown = naming::shown(&Arc::new(self.planner.schema_of(&plan)?));
        let fields = shown.fields();
        if !names.is_empty() && names.len() != fields.len() {
            return Err(Error::Sql(format!("{} names for the {} columns of the query", names.len(), fields.len())));
        }
        let mut columns = Vec::with_capacity(fields.len());
        for (place, field) in fields.iter().enumerate() {
            let name = names.get(place).map_or_else(|| field.name().clone(), |column| fold(&column.name));
            columns.push(relation::NewColumn::new(name, types::of_field(field)?));
        }
        columns::distinct(columns.iter().map(|column| column.name.as_str()))?;
        let table = NewTable { name: name.to_owned(), columns, ..NewTable::default() };
        let relations = self.engine().relations.clone();
        let table = relations.create_table(&mut *change.lease, &table).map_err(Error::Relation)?;
        let mut stream = self.planner.stream(&plan)?;
        let mut rows = 0;
        while let Some(batch) = self.planner.next(&mut stream)? {
            let arrays = batch.columns().iter().zip(&table.columns);
            let arrays = arrays.map(|(array, column)| cast::to_column(array, &column.kind, &column.name).map(Some));
            let images = crate::rows::encode(&table.layout(), &arrays.collect::<Result<Vec<_>>>()?, batch.num_rows())?;
            relations.insert(&mut *change.lease, &table, &images).map_err(Error::Relation)?;
            rows += batch.num_rows() as u64;
        }
        Ok(Outcome::Count { tag: "SELECT", rows })
    }

    fn create_index(&mut self, create: &CreateIndex) -> Result<Outcome> {
        if create.predicate.is_some() || !create.include.is_empty() || create.nulls_distinct == Some(false) {
            return Err(Error::NotSupported("CREATE INDEX with WHERE, INCLUDE or NULLS NOT DISTINCT".into()));
        }
        if !matches!(create.using, None | Some(IndexType::BTree)) {
            return Err(Error::NotSupported("index types other than btree".into()));
        }
        let name = create.name.as_ref().map(table_name).transpose()?;
        let index = NewIndex { name, columns: index_columns(&create.columns)?, unique: create.unique };
        let table = table_name(&create.table_name)?;
        self.change(|session, change| {
            if let Some(name) = &index.name
                && session.taken(change, name, create.if_not_exists)?
            {
                return Ok(Outcome::Done("CREATE INDEX"));
            }
            let table = planner::table(session.engine(), &*change.lease, &table)?;
            published::refuse(&table, "CREATE INDEX")?;
            dispersed::refuse(&table, "CREATE INDEX")?;
            if series::is_series(&table) {
                return Err(Error::NotSupported(
                    "CREATE INDEX on a series table: it is ordered by series and time".into(),
                ));
            }
            let relations = session.engine().relations.clone();
            relations.create_index(&mut *change.lease, &table, &index).map_err(Error::Relation)?;
            Ok(Outcome::Done("CREATE INDEX"))
        })
    }

    fn drop_objects(&mut self, kind: ObjectType, names: &[String], if_exists: bool, cascade: bool) -> Result<Outcome> {
        let (tag, what) = match kind {
            ObjectType::Table => ("DROP TABLE", "table"),
            ObjectType::View => ("DROP VIEW", "view"),
            ObjectType::Index => ("DROP INDEX", "index"),
            other => return Err(Error::NotSupported(format!("DROP {other}"))),
        };
        for name in names.iter().filter(|_| what == "table") {
            self.lease_to_drop(name)?;
        }
        self.freeing_change(|session, change| {
            for name in names {
                session.drop_object(change, name, what, if_exists, cascade)?;
            }
            Ok(Outcome::Done(tag))
        })
    }

    fn drop_object(
        &mut self,
        change: &mut Change,
        name: &str,
        what: &str,
        if_exists: bool,
        cascade: bool,
    ) -> Result<()> {
        let relations = self.engine().relations.clone();
        let named = relations.named(&*change.lease, name).map_err(Error::Relation)?;
        let (is, dropped) = match named {
            None if if_exists => return Ok(()),
            None if what == "index" => return Err(Error::NotFound(format!("no {what} {name}"))),
            None => return Err(Error::NoTable(format!("no {what} {name}"))),
            Some(relation::Named::Table(table)) if what == "table" => {
                publishing::keep_published(&*change.lease, name)?;
                self.drop_dependents(change, name, cascade)?;
                if series::is_series(&table) {
                    series::drop(&self.engine().series, &mut change.lease, &table)?;
                }
                if published::is_published(&table) {
                    published::forget(self.engine(), change, &table)?;
                }
                if dispersed::is_dispersed(&table) {
                    dispersed::forget(self, change, &table)?;
                }
                ("table", relations.drop_table(&mut *change.lease, &table, cascade))
            }
            Some(relation::Named::View(_)) if what == "view" => {
                self.drop_dependents(change, name, cascade)?;
                ("view", relations.drop_view(&mut *change.lease, name))
            }
            Some(relation::Named::Index(..)) if what == "index" => {
                ("index", relations.drop_index(&mut *change.lease, name))
            }
            Some(relation::Named::Table(_)) => ("table", Ok(())),
            Some(relation::Named::View(_)) => ("view", Ok(())),
            Some(relation::Named::Index(..)) => ("index", Ok(())),
        };
        if is != what {
            return Err(Error::Sql(format!("{name} is a {is}: write DROP {}", is.to_uppercase())));
        }
        dropped.map_err(Error::Relation)
    }

    fn vacuum(&mut self, name: Option<&str>) -> Result<Outcome> {
        self.guard.transaction.allows_alone("VACUUM")?;
        let relations = self.engine().relations.clone();
        let tables = {
            // A snapshot that lived on would keep what the steps free.
            let snapshot = self.view()?;
            match name {
                Some(name) => vec![planner::table(self.engine(), &snapshot, name)?],
                None => relations.tables(&snapshot).map_err(Error::Relation)?,
            }
        };
        for table in tables {
            // Each step is a commit: whoever ends it keeps what was done, and others write in between.
            let mut vacuum = Vacuum::of(table.id);
            let mut more = true;
            while more {
                self.planner.interrupt.check()?;
                more = self.freeing_change(|_, change| {
                    let is_there = relations.table_by_id(&*change.lease, table.id).map_err(Error::Relation)?.is_some();
                    Ok(is_there && relations.vacuum_step(&mut *change.lease, &mut vacuum).map_err(Error::Relation)?)
                })?;
            }
        }
        Ok(Outcome::Done("VACUUM"))
    }

    fn alter_table(&mut self, alter: &AlterTable) -> Result<Outcome> {
        let name = table_name(&alter.name)?;
        if let [AlterTableOperation::SetOptionsParens { options }] = &alter.operations[..] {
            let view = self.view()?;
            let table = planner::table(self.engine(), &view, &name);
            drop(view);
            if table.is_ok_and(|table| dispersed::is_dispersed(&table)) {
                let options = options.iter().map(option).collect::<Result<_>>()?;
                return self.relay(&name, &dispersed::Relaid::Options(options));
            }
        }
        self.lease_named(&name)?;
        self.change(|session, change| {
            let mut name = name;
            for operation in &alter.operations {
                let absent =
                    session.engine().relations.named(&*change.lease, &name).map_err(Error::Relation)?.is_none();
                if absent && alter.if_exists {
                    return Ok(Outcome::Done("ALTER TABLE"));
                }
                let table = planner::table(session.engine(), &*change.lease, &name)?;
                publishing::keep_published(&*change.lease, &table.name)?;
                published::refuse(&table, "ALTER TABLE")?;
                match is_renaming(operation) && dispersed::is_dispersed(&table) {
                    true => session.is_leased_still(change, &table)?,
                    false => dispersed::refuse(&table, "ALTER TABLE")?,
                }
                let over = session.views_over(change, &name)?;
                name = session.alter(change, &table, operation)?;
                let (what, cascade) = changed(&table.name, operation);
                session.keep_views(change, &over, &what, cascade)?;
            }
            session.engine().doors.forget();
            Ok(Outcome::Done("ALTER TABLE"))
        })
    }

    /// One operation of ALTER TABLE; answers the table's name after it.
    fn alter(
        &mut self,
        change: &mut Change,
        table: &relation::Table,
        operation: &AlterTableOperation,
    ) -> Result<String> {
        let relations = self.engine().relations.clone();
        let lease = &mut *change.lease;
        let altered = match operation {
            AlterTableOperation::AddColumn { if_not_exists, column_def, column_position: None, .. } => {
                if *if_not_exists && table.column(&fold(&column_def.name)).is_some() {
                    return Ok(table.name.clone());
                }
                return self.add_column(change, table, column_def);
            }
            AlterTableOperation::DropColumn { column_names, if_exists, drop_behavior, .. } => {
                let cascade = matches!(drop_behavior, Some(DropBehavior::Cascade));
                Ok(drop_columns(&relations, lease, table, column_names, (*if_exists, cascade))?)
            }
            AlterTableOperation::AddConstraint { constraint, not_valid } => {
                return self.add_constraint(change, table, constraint, *not_valid);
            }
            AlterTableOperation::AlterColumn { column_name, op } => {
                return self.alter_column(change, table, &fold(column_name), op);
            }
            AlterTableOperation::DropConstraint { if_exists, name, drop_behavior } => {
                let cascade = matches!(drop_behavior, Some(DropBehavior::Cascade));
                return self.drop_constraint(change, table, &fold(name), (*if_exists, cascade));
            }
            AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                return self.rename_column(change, table, (&fold(old_column_name), &fold(new_column_name)));
            }
            AlterTableOperation::RenameTable {
                table_name: RenameTableNameKind::To(to) | RenameTableNameKind::As(to),
            } => {
                let to = table_name(to)?;
                reserved(&to)?;
                let made = relations.rename_table(lease, table, &to);
                if dispersed::is_dispersed(table) {
                    dispersed::renamed(self, table);
                }
                made
            }
            AlterTableOperation::SetOptionsParens { options } if series::is_series(table) => {
                let options = options.iter().map(option).collect::<Result<_>>()?;
                Ok(series::set_options(self.engine(), &mut change.lease, table, options)?)
            }
            other => return Err(Error::NotSupported(format!("ALTER TABLE ... {}", beginning(&other.to_string())))),
        };
        Ok(altered.map_err(Error::Relation)?.name.clone())
    }

    fn add_column(&mut self, change: &mut Change, table: &relation::Table, column: &ColumnDef) -> Result<String> {
        let relations = self.engine().relations.clone();
        let (column, value) = self.added_column(column)?;
        let lacks_value = column.not_null && value == relation::Value::Null;
        if lacks_value && relations.count(&*change.lease, table).map_err(Error::Relation)? > 0 {
            let text = format!("column {} is NOT NULL and the table has rows: give it a DEFAULT", column.name);
            return Err(Error::Constraint(text));
        }
        if series::is_series(table) {
            series::check_added(table, &column)?;
        }
        let made = relations.add_column(&mut *change.lease, table, &column, &value).map_err(Error::Relation)?;
        if series::is_series(&made) {
            series::add_column(&self.engine().series, &mut change.lease, &made)?;
        }
        Ok(made.name.clone())
    }

    fn rename_column(
        &mut self,
        change: &mut Change,
        table: &relation::Table,
        (from, to): (&str, &str),
    ) -> Result<String> {
        reserved(to)?;
        series::check_kept(table, from)?;
        let option = series::renamed_column(table, from, Some(to))?;
        let relations = self.engine().relations.clone();
        let made = relations.rename_column(&mut *change.lease, table, from, to, &mut |sql| renamed(sql, from, to));
        let mut made = made.map_err(Error::Relation)?;
        if let Some(option) = option {
            made = series::set_options(self.engine(), &mut change.lease, &made, vec![option])?;
        }
        if dispersed::is_dispersed(table) {
            made = dispersed::renamed_column(self, change, &made, (from, to))?;
        }
        Ok(made.name.clone())
    }
}

/// What is said of a table alone, and moves nothing.
fn is_renaming(operation: &AlterTableOperation) -> bool {
    matches!(operation, AlterTableOperation::RenameColumn { .. } | AlterTableOperation::RenameTable { .. })
}

/// Drops columns; the table without them.
fn drop_columns(
    relations: &relation::Relations,
    lease: &mut dyn relation::Storage,
    table: &relation::Table,
    names: &[Ident],
    (if_exists, cascade): (bool, bool),
) -> Result<Arc<relation::Table>> {
    let mut present = Arc::new(table.clone());
    for column in names.iter().map(fold) {
        series::renamed_column(&present, &column, None)?;
        match present.column(&column) {
            Some(_) => {
                series::check_kept(&present, &column)?;
                present = relations.drop_column(lease, &present, &column, cascade).map_err(Error::Relation)?;
            }
            None if if_exists => {}
            None => return Err(Error::NoColumn(format!("no column {column} in table {}", table.name))),
        }
    }
    Ok(present)
}

/// What an operation of ALTER TABLE changes under views, and whether they go with it.
fn changed(table: &str, operation: &AlterTableOperation) -> (String, Cascade) {
    match operation {
        AlterTableOperation::DropColumn { column_names, drop_behavior, .. } => {
            let names: Vec<String> = column_names.iter().map(fold).collect();
            let asked = matches!(drop_behavior, Some(DropBehavior::Cascade));
            let cascade = if asked { Cascade::Asked } else { Cascade::Possible };
            (format!("column {} of table {table}", names.join(", ")), cascade)
        }
        AlterTableOperation::RenameColumn { old_column_name, .. } => {
            (format!("the name of column {} of table {table}", fold(old_column_name)), Cascade::Never)
        }
        AlterTableOperation::RenameTable { .. } => (format!("the name of table {table}"), Cascade::Never),
        AlterTableOperation::AlterColumn { column_name, .. } => {
            (format!("the type of column {} of table {table}", fold(column_name)), Cascade::Never)
        }
        _ => (format!("table {table}"), Cascade::Never),
    }
}

/// The words that a statement begins with, up to the first name: enough to say what is not supported.
pub(crate) fn beginning(text: &str) -> String {
    let is_word = |word: &&str| word.chars().all(|letter| letter.is_ascii_uppercase());
    let words: Vec<&str> = text.split(|letter: char| letter.is_whitespace() || letter == '(').take(3).collect();
    words.into_iter().take_while(is_word).collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

/// Refuses names that are ours.
pub(crate) fn reserved(name: &str) -> Result<()> {
    if name.starts_with(crate::HIDDEN) {
        return Err(Error::Sql(format!("names that begin with {} are reserved", crate::HIDDEN)));
    }
    Ok(())
}

fn refuse_table(create: &CreateTable) -> Result<()> {
    let odd = [
        (
            create.temporary || create.global.is_some(),
            "temporary tables: CREATE TABLE and DROP TABLE, ROLLBACK what made it, or name a query in WITH",
        ),
        (create.or_replace, "CREATE OR REPLACE TABLE: DROP TABLE IF EXISTS first"),
        (create.external, "external tables"),
        (
            create.like.is_some() || create.clone.is_some(),
            "CREATE TABLE ... LIKE: CREATE TABLE ... AS SELECT * FROM it LIMIT 0 has its columns",
        ),
        (create.inherits.is_some(), "INHERITS: tables have no parents"),
        (create.partition_of.is_some() || create.partition_by.is_some(), "partitions"),
        (create.without_rowid || create.strict, "WITHOUT ROWID and STRICT"),
        (create.on_commit.is_some(), "ON COMMIT"),
    ];
    match odd.iter().find(|(is, _)| *is) {
        Some((_, what)) => Err(Error::NotSupported((*what).into())),
        None => Ok(()),
    }
}

/// The kind of table that WITH (engine = ...) asks for, with its options; none for a relation.
pub(crate) fn engine_of(options: &CreateTableOptions) -> Result<Option<relation::Engine>> {
    let options = match options {
        CreateTableOptions::None => return Ok(None),
        CreateTableOptions::With(options) => options,
        _ => return Err(Error::NotSupported("table options other than WITH (engine = ...)".into())),
    };
    let mut engine = relation::Engine { name: "relation".into(), options: Vec::new() };
    for given in options.iter().filter(|given| !is_of_pages(given)) {
        let (name, value) = option(given)?;
        match name.as_str() {
            "engine" => engine.name = value,
            _ => engine.options.push((name, value)),
        }
    }
    let known = match engine.name.as_str() {
        "relation" => |_: &str| false,
        series::ENGINE => series::option_is_known,
        published::ENGINE => published::option_is_known,
        dispersed::ENGINE => dispersed::option_is_known,
        other => {
            let engines = "'relation', 'series', 'published' or 'dispersed'";
            return Err(Error::NotSupported(format!("engine = '{other}': {engines}")));
        }
    };
    match engine.options.iter().find(|(name, _)| !known(name)) {
        Some((name, _)) => Err(Error::NotSupported(format!("the table option {name} (engine {})", engine.name))),
        None => Ok(Some(engine).filter(|engine| engine.name != "relation")),
    }
}

/// Whether a table says of itself where it lies.
fn says_where(options: &CreateTableOptions) -> bool {
    match options {
        CreateTableOptions::None => false,
        CreateTableOptions::With(options) => options.iter().any(|given| !is_of_pages(given)),
        _ => true,
    }
}

/// Whether an option is about pages that are changed in place, and about who cleans them up: there are none here, and tools set it
/// without being asked (`pgbench`, dumps).
fn is_of_pages(given: &SqlOption) -> bool {
    let SqlOption::KeyValue { key, .. } = given else { return false };
    let name = fold(key);
    matches!(name.as_str(), "fillfactor" | "parallel_workers" | "toast_tuple_target") || name.starts_with("autovacuum_")
}

/// The name and the text of a table option.
fn option(given: &SqlOption) -> Result<(String, String)> {
    let SqlOption::KeyValue { key, value } = given else {
        return Err(Error::NotSupported(format!("the table option {given}")));
    };
    let name = fold(key);
    let value = text(value).or_else(|| number(value)).ok_or_else(|| {
        Error::Sql(format!("{name} wants {}", if is_number(&name) { "a whole number" } else { "a quoted text" }))
    })?;
    Ok((name, value))
}

fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Value(ValueWithSpan { value: Literal::SingleQuotedString(text), .. }) => Some(text.clone()),
        Expr::Identifier(name) => Some(fold(name)),
        _ => None,
    }
}

/// The text of an option that is a number: whether it may be one is known to whom it is for, if there is such an option.
fn number(value: &Expr) -> Option<String> {
    match value {
        Expr::Value(ValueWithSpan { value: Literal::Number(number, false), .. }) => Some(number.clone()),
        _ => None,
    }
}

/// Whether an option is a number.
fn is_number(name: &str) -> bool {
    name == published::MAX_AGE || dispersed::option_is_number(name)
}

/// The columns of an index or key: plain names, in order.
pub(crate) fn index_columns(columns: &[IndexColumn]) -> Result<Vec<String>> {
    let name = |column: &IndexColumn| match &column.column.expr {
        Expr::Identifier(name) if column.operator_class.is_none() => Ok(fold(name)),
        other => Err(Error::NotSupported(format!("an index over {other}: over columns only"))),
    };
    columns.iter().map(name).collect()
}

/// The columns an expression speaks of.
pub(crate) fn columns_of(expr: &Expr) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut columns = Vec::new();
    let _ = visit_expressions(expr, |expr: &Expr| {
        let name = match expr {
            Expr::Identifier(name) => Some(fold(name)),
            Expr::CompoundIdentifier(names) => names.last().map(fold),
            _ => None,
        };
        columns.extend(name.filter(|name| seen.insert(name.clone())));
        ControlFlow::<()>::Continue(())
    });
    columns
}

/// The text of a condition, whose columns are named without their table: that may be renamed.
pub(crate) fn unqualified(condition: &Expr) -> String {
    let mut condition = condition.clone();
    let _ = visit_expressions_mut(&mut condition, |expr: &mut Expr| {
        if let Expr::CompoundIdentifier(names) = expr
            && let Some(name) = names.pop()
        {
            *expr = Expr::Identifier(name);
        }
        ControlFlow::<()>::Continue(())
    });
    condition.to_string()
}

/// The text of a condition after a column was renamed.
pub(crate) fn renamed(sql: &str, from: &str, to: &str) -> String {
    let Ok(mut expr) = evaluate::parse(sql) else { return sql.to_owned() };
    let rename = |name: &mut Ident| {
        if fold(name) == from {
            *name = ident(to);
        }
    };
    let _ = visit_expressions_mut(&mut expr, |expr: &mut Expr| {
        match expr {
            Expr::Identifier(name) => rename(name),
            Expr::CompoundIdentifier(names) => names.last_mut().into_iter().for_each(rename),
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
    expr.to_string()
}
