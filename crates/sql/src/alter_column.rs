//! ALTER TABLE ... ALTER COLUMN: defaults, NOT NULL, and other types.
//!
//! A type whose values are stored as those of the old one is a word in the catalog. Any other is an UPDATE of all rows, in parts as one
//! is ([`crate::change`]), from the column as it was to one that has stepped in front of it
//! ([`relation::Relations::begin_retype`]): CHECKs and NOT NULL are held against the new values on the way, and the transaction of the
//! statement has all of it or nothing.

use std::ops::ControlFlow;

use counterfoil_relation::{self as relation, ColumnChange, NewCheck, NewColumn, NewTable, Retype, Table, Type};
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, DataType as SqlType, Expr, Ident, Statement, visit_expressions,
};

use crate::change::asks_others;
use crate::columns::is_constant;
use crate::define::{beginning, renamed};
use crate::error::{Error, Result};
use crate::evaluate;
use crate::series;
use crate::session::Session;
use crate::statement::{self, fold, ident};
use crate::transaction::Change;
use crate::types;

/// What a column is called whose values become those of another type.
const ASIDE: &str = "__counterfoil_aside";

impl Session {
    /// Alters a column; answers the table's name.
    pub(crate) fn alter_column(
        &mut self,
        change: &mut Change,
        table: &Table,
        name: &str,
        operation: &AlterColumnOperation,
    ) -> Result<String> {
        let Some((_, column)) = table.column(name) else {
            return Err(no_column(name, table));
        };
        let said = match operation {
            AlterColumnOperation::SetDefault { value } => self.said_default(column, value)?,
            AlterColumnOperation::DropDefault => ColumnChange::NoDefault,
            _ if series::is_series(table) => {
                return Err(Error::NotSupported(format!(
                    "ALTER COLUMN ... {} of a series table: it has its columns as they were made",
                    beginning(&operation.to_string())
                )));
            }
            AlterColumnOperation::SetNotNull => ColumnChange::NotNull,
            AlterColumnOperation::DropNotNull => ColumnChange::Nullable,
            AlterColumnOperation::SetDataType { data_type, using, .. } => {
                return self.retype(change, table, column, (data_type, using.as_ref()));
            }
            AlterColumnOperation::AddGenerated { .. } => {
                return Err(Error::NotSupported(
                    "ADD GENERATED for a column that is there: say IDENTITY in CREATE TABLE".into(),
                ));
            }
        };
        let relations = &self.engine().relations;
        relations.alter_column(&mut *change.lease, table, name, &said).map_err(Error::Relation)?;
        Ok(table.name.clone())
    }

    fn said_default(&mut self, column: &relation::Column, value: &Expr) -> Result<ColumnChange> {
        let worked_out = self.default_value(value, &column.kind, &column.name)?;
        Ok(ColumnChange::Default { sql: value.to_string(), value: is_constant(value).then_some(worked_out) })
    }

    /// TYPE: by the catalog alone where that does, else by an UPDATE of all rows.
    fn retype(
        &mut self,
        change: &mut Change,
        table: &Table,
        column: &relation::Column,
        (data_type, using): (&SqlType, Option<&Expr>),
    ) -> Result<String> {
        let kind = types::column(data_type)?;
        using.map_or(Ok(()), |using| check_using(using, table))?;
        if column.identity.is_some() && !is_whole(&kind) {
            return Err(Error::Sql(format!("identity column {} must be SMALLINT, INTEGER or BIGINT", column.name)));
        }
        let using = using.filter(|expr| !is_itself(expr, column, &kind));
        if using.is_none() && !becomes(&column.kind, &kind) {
            let (name, to) = (&column.name, types::name(&kind));
            return Err(Error::Sql(format!("column {name} does not become {to} by itself: write USING {name}::{to}")));
        }
        let default_value = self.default_as(column, &kind)?;
        if using.is_none() && (kind == column.kind || self.fits_as_stored(change, table, column, &kind)?) {
            let said = ColumnChange::Kind { kind, default_value };
            let relations = &self.engine().relations;
            relations.alter_column(&mut *change.lease, table, &column.name, &said).map_err(Error::Relation)?;
            return Ok(table.name.clone());
        }
        self.rewrite_column(change, table, column, (kind, using), default_value)
    }

    /// The value of a column's default as one of another type, where it is a constant.
    fn default_as(&mut self, column: &relation::Column, kind: &Type) -> Result<Option<relation::Value>> {
        let Some(sql) = &column.default else { return Ok(None) };
        let value = self.default_value(&evaluate::parse(sql)?, kind, &column.name).map_err(|error| {
            let (name, to) = (&column.name, types::name(kind));
            Error::Sql(format!("the default of column {name} is no {to}: DROP DEFAULT first ({error})"))
        })?;
        Ok(column.default_value.is_some().then_some(value))
    }

    /// Whether the values that are there are, as they are stored, values of the new type.
    fn fits_as_stored(
        &mut self,
        change: &mut Change,
        table: &Table,
        column: &relation::Column,
        kind: &Type,
    ) -> Result<bool> {
        if !column.kind.is_stored_like(kind) {
            return Ok(false);
        }
        match (column.kind, *kind) {
            (_, Type::Text) => Ok(true),
            (Type::VarChar(from), Type::VarChar(to)) if from <= to => Ok(true),
            // A longer one may end in blanks, which go, or is an error: either is for the UPDATE to find.
            (_, Type::VarChar(to)) => {
                let (table, name) = (ident(&table.name), ident(&column.name));
                let query = format!("SELECT 1 FROM {table} WHERE character_length({name}) > {to} LIMIT 1");
                Ok(!self.answers_a_row(change, &query)?)
            }
            (Type::Numeric { precision: from, .. }, Type::Numeric { precision: to, .. }) => Ok(from <= to),
            _ => Ok(false),
        }
    }

    /// Gives every row a value of the new type.
    fn rewrite_column(
        &mut self,
        change: &mut Change,
        table: &Table,
        column: &relation::Column,
        (kind, using): (Type, Option<&Expr>),
        default_value: Option<relation::Value>,
    ) -> Result<String> {
        let name = &column.name;
        let value = match using {
            Some(using) => renamed(&using.to_string(), name, ASIDE),
            None if kind.is_text() && !column.kind.is_text() => format!("CAST({ASIDE} AS TEXT)"),
            None => ASIDE.to_owned(),
        };
        let relations = self.engine().relations.clone();
        let retype = Retype { column: name, kind, default_value, keeps_values: using.is_none(), aside: ASIDE };
        let begun = relations.begin_retype(&mut *change.lease, table, &retype).map_err(Error::Relation)?;
        self.prove_checks(&as_new(&begun))?;
        let update = format!("UPDATE {} SET {} = {value}", ident(&table.name), ident(name));
        let Some(Statement::Update(update)) = statement::parse(&update)?.pop() else {
            return Err(Error::Bug("an update of ours is none".into()));
        };
        self.update_in(change, None, &update, (&begun, &table.name), &[])?;
        let ended = relations.end_retype(&mut *change.lease, &begun, &retype);
        Ok(ended.map_err(Error::Relation)?.name.clone())
    }
}

/// USING is of the row's columns alone, as they are.
fn check_using(using: &Expr, table: &Table) -> Result<()> {
    if asks_others(&using.clone()) {
        return Err(Error::NotSupported("a subquery in USING: an UPDATE of another column may have one".into()));
    }
    let is_default = |name: &Ident| name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default");
    let wrong = visit_expressions(using, |expr: &Expr| match expr {
        Expr::Identifier(name) if is_default(name) => {
            ControlFlow::Break(Error::Sql("DEFAULT in USING: say a value for each row, or SET DEFAULT".into()))
        }
        Expr::Identifier(name) if fold(name) == ASIDE => ControlFlow::Break(no_column(&name.value, table)),
        Expr::CompoundIdentifier(names) => match &names[..] {
            [of, name] if fold(of) == table.name && fold(name) != ASIDE => ControlFlow::Continue(()),
            _ => ControlFlow::Break(no_column(&expr.to_string(), table)),
        },
        Expr::Function(function) if function.over.is_some() => {
            ControlFlow::Break(Error::Sql("a window function in USING: it is of one row".into()))
        }
        _ => ControlFlow::Continue(()),
    });
    match wrong {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

fn no_column(name: &str, table: &Table) -> Error {
    Error::NoColumn(format!("no column {name} in table {}", table.name))
}

/// What is to be proved of a table whose columns have changed.
fn as_new(table: &Table) -> NewTable {
    let named = |id: &relation::ColumnId| table.position(*id).map(|place| table.columns[place].name.clone());
    let check = |check: &relation::Check| NewCheck {
        name: Some(check.name.clone()),
        sql: check.sql.clone(),
        columns: check.columns.iter().filter_map(named).collect(),
    };
    NewTable {
        name: table.name.clone(),
        columns: table.columns.iter().map(|column| NewColumn::new(&column.name, column.kind)).collect(),
        checks: table.checks.iter().map(check).collect(),
        ..NewTable::default()
    }
}

fn is_whole(kind: &Type) -> bool {
    matches!(kind, Type::SmallInt | Type::Integer | Type::BigInt)
}

/// Whether USING says no more than the type does, as migrations write it: the column, or a cast of it that rounds and cuts as its
/// assignment would.
fn is_itself(using: &Expr, column: &relation::Column, kind: &Type) -> bool {
    let is_column = |expr: &Expr| {
        let last = match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(names) => names.last(),
            _ => None,
        };
        last.is_some_and(|name| fold(name) == column.name)
    };
    // An assignment reads a REAL as it is written.
    let is_cast_alike = column.kind != Type::Real;
    match using {
        Expr::Nested(inner) => is_itself(inner, column, kind),
        Expr::Cast { expr, data_type, .. } => {
            let is_bounded = matches!(kind, Type::VarChar(_) | Type::Char(_));
            let is_same = types::column(data_type).is_ok_and(|to| to == *kind);
            is_cast_alike && is_column(expr) && is_same && !is_bounded && becomes(&column.kind, kind)
        }
        expr => is_column(expr) && becomes(&column.kind, kind),
    }
}

/// Whether values of one type become those of another without being asked: PostgreSQL's assignments.
fn becomes(from: &Type, to: &Type) -> bool {
    let is_number = |kind: &Type| is_whole(kind) || matches!(kind, Type::Real | Type::Double | Type::Numeric { .. });
    let is_instant = |kind: &Type| matches!(kind, Type::Timestamp { .. } | Type::TimestampTz);
    let is_day = |kind: &Type| is_instant(kind) || *kind == Type::Date;
    from == to
        || to.is_text()
        || (is_number(from) && is_number(to))
        || (is_day(from) && is_day(to))
        || (is_instant(from) && *to == Type::Time)
}
