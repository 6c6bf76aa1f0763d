//! Columns and constraints of CREATE TABLE, turned into what the catalog keeps.

use std::collections::HashSet;
use std::ops::ControlFlow;

use counterfoil_relation::{
    Action, Identity, NewCheck, NewColumn, NewConstraint, NewForeignKey, NewKey, NewTable, Table, Type, Value as Stored,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::DFSchema;
use datafusion::sql::sqlparser::ast::{
    ColumnDef, ColumnOption, ConstraintCharacteristics, DataType as SqlType, Expr, ForeignKeyConstraint, GeneratedAs,
    Ident, NullsDistinctOption, ReferentialAction, SequenceOptions, TableConstraint, UnaryOperator, Value as Literal,
    ValueWithSpan, visit_expressions,
};

use crate::assign;
use crate::cast;
use crate::define::{self, columns_of, index_columns, unqualified};
use crate::error::{Error, Result};
use crate::evaluate;
use crate::session::Session;
use crate::statement::{fold, table_name};
use crate::types;

impl Session {
    /// What CREATE TABLE asks for.
    pub(crate) fn new_table(
        &mut self,
        name: String,
        columns: &[ColumnDef],
        constraints: &[TableConstraint],
    ) -> Result<NewTable> {
        let mut table = NewTable { name, ..NewTable::default() };
        for column in columns {
            self.column(&mut table, column)?;
        }
        distinct(table.columns.iter().map(|column| column.name.as_str()))?;
        for constraint in constraints {
            self.constraint(&mut table, constraint)?;
        }
        self.prove_checks(&table)?;
        Ok(table)
    }

    /// The constraint of ADD CONSTRAINT.
    pub(crate) fn added_constraint(&mut self, table: &Table, constraint: &TableConstraint) -> Result<NewConstraint> {
        let mut new = NewTable { name: table.name.clone(), ..NewTable::default() };
        new.columns = table.columns.iter().map(|column| NewColumn::new(&column.name, column.kind)).collect();
        self.constraint(&mut new, constraint)?;
        self.prove_checks(&new)?;
        let key = new.primary_key.map(NewConstraint::PrimaryKey);
        let unique = new.uniques.pop().map(NewConstraint::Unique);
        let check = new.checks.pop().map(NewConstraint::Check);
        let foreign = new.foreign_keys.pop().map(NewConstraint::ForeignKey);
        key.or(unique).or(check).or(foreign).ok_or_else(|| Error::NotSupported(format!("the constraint {constraint}")))
    }

    /// A column of ADD COLUMN, and what the rows that are there get.
    pub(crate) fn added_column(&mut self, column: &ColumnDef) -> Result<(NewColumn, Stored)> {
        let mut table = NewTable::default();
        self.column(&mut table, column)?;
        let only = table.primary_key.is_none()
            && table.uniques.is_empty()
            && table.checks.is_empty()
            && table.foreign_keys.is_empty();
        let Some(column) = table.columns.pop().filter(|column| only && column.identity.is_none()) else {
            return Err(Error::NotSupported("ADD COLUMN with a key, CHECK, REFERENCES or IDENTITY".into()));
        };
        let value = match (&column.default_value, &column.default) {
            (Some(value), _) => value.clone(),
            (None, Some(sql)) => self.default_value(&evaluate::parse(sql)?, &column.kind, &column.name)?,
            (None, None) => Stored::Null,
        };
        Ok((column, value))
    }

    fn column(&mut self, table: &mut NewTable, definition: &ColumnDef) -> Result<()> {
        let name = fold(&definition.name);
        define::reserved(&name)?;
        let (kind, serial) = column_type(&definition.data_type)?;
        let mut column = NewColumn::new(name.clone(), kind);
        if serial {
            column = column.not_null();
            column.identity = Some(Identity { always: false, start: 1, increment: 1 });
        }
        for option in &definition.options {
            self.option(table, &mut column, option.name.as_ref(), &option.option)?;
        }
        if column.identity.is_some() && !matches!(kind, Type::SmallInt | Type::Integer | Type::BigInt) {
            return Err(Error::Sql(format!("identity column {name} must be SMALLINT, INTEGER or BIGINT")));
        }
        table.columns.push(column);
        Ok(())
    }

    fn option(
        &mut self,
        table: &mut NewTable,
        column: &mut NewColumn,
        name: Option<&Ident>,
        option: &ColumnOption,
    ) -> Result<()> {
        let constraint = name.map(fold);
        let key = |name: Option<String>| NewKey { name, columns: vec![column.name.clone()] };
        match option {
            ColumnOption::Null => {}
            ColumnOption::NotNull => column.not_null = true,
            ColumnOption::Default(expr) => {
                column.default = Some(expr.to_string());
                let value = self.default_value(expr, &column.kind, &column.name)?;
                column.default_value = is_constant(expr).then_some(value);
            }
            ColumnOption::PrimaryKey(primary) => {
                enforced(primary.characteristics.as_ref())?;
                primary_key(table, key(constraint))?;
            }
            ColumnOption::Unique(unique) => {
                nulls(unique.nulls_distinct)?;
                enforced(unique.characteristics.as_ref())?;
                table.uniques.push(key(constraint));
            }
            ColumnOption::ForeignKey(foreign) => {
                let columns = vec![column.name.clone()];
                table.foreign_keys.push(foreign_key(foreign, columns, constraint)?);
            }
            ColumnOption::Check(check) => {
                let name = constraint.or_else(|| check.name.as_ref().map(fold));
                table.checks.push(NewCheck { name, sql: unqualified(&check.expr), columns: columns_of(&check.expr) });
            }
            ColumnOption::Generated { generated_as, sequence_options, generation_expr: None, .. } => {
                column.identity = Some(identity(*generated_as, sequence_options.as_deref())?);
                column.not_null = true;
            }
            ColumnOption::Generated { .. } => {
                return Err(Error::NotSupported("GENERATED ALWAYS AS (expression)".into()));
            }
            other => return Err(refused(other, &column.name)),
        }
        Ok(())
    }

    fn constraint(&mut self, table: &mut NewTable, constraint: &TableConstraint) -> Result<()> {
        match constraint {
            TableConstraint::PrimaryKey(primary) => {
                enforced(primary.characteristics.as_ref())?;
                let name = primary.name.as_ref().map(fold);
                primary_key(table, NewKey { name, columns: index_columns(&primary.columns)? })?;
            }
            TableConstraint::Unique(unique) => {
                nulls(unique.nulls_distinct)?;
                enforced(unique.characteristics.as_ref())?;
                let name = unique.name.as_ref().map(fold);
                table.uniques.push(NewKey { name, columns: index_columns(&unique.columns)? });
            }
            TableConstraint::ForeignKey(foreign) => {
                let columns = foreign.columns.iter().map(fold).collect();
                table.foreign_keys.push(foreign_key(foreign, columns, foreign.name.as_ref().map(fold))?);
            }
            TableConstraint::Check(check) => {
                let name = check.name.as_ref().map(fold);
                table.checks.push(NewCheck { name, sql: unqualified(&check.expr), columns: columns_of(&check.expr) });
            }
            other => return Err(Error::NotSupported(format!("the constraint {other}"))),
        }
        Ok(())
    }

    /// The value of a default now: proves that it has one, and that the column can hold it.
    pub(crate) fn default_value(&mut self, expr: &Expr, kind: &Type, name: &str) -> Result<Stored> {
        let array = self.planner.constants(expr, 1)?;
        let array = cast::to_column(&array, kind, name)?;
        let value = cast::element(array.as_ref(), 0)?;
        assign::assign(&value, kind).map_err(|misfit| misfit.error(name, kind, value.kind()))
    }

    /// Refuses checks that do not plan: better now than at the first INSERT.
    pub(crate) fn prove_checks(&mut self, table: &NewTable) -> Result<()> {
        let field = |column: &NewColumn| Field::new(&column.name, types::arrow(&column.kind), true);
        let schema = Schema::new(table.columns.iter().map(field).collect::<Vec<_>>());
        let schema = DFSchema::try_from_qualified_schema(table.name.as_str(), &schema)?;
        for check in &table.checks {
            let condition = self.planner.expression(&evaluate::parse(&check.sql)?, &schema)?;
            if !matches!(condition.data_type(schema.as_arrow())?, DataType::Boolean | DataType::Null) {
                return Err(Error::Sql(format!("a CHECK must be true or false: {}", check.sql)));
            }
        }
        Ok(())
    }
}

/// The type of a column, and whether it counts up by itself (SERIAL).
fn column_type(kind: &SqlType) -> Result<(Type, bool)> {
    if let SqlType::Custom(name, arguments) = kind
        && arguments.is_empty()
    {
        match name.to_string().to_ascii_lowercase().as_str() {
            "smallserial" | "serial2" => return Ok((Type::SmallInt, true)),
            "serial" | "serial4" => return Ok((Type::Integer, true)),
            "bigserial" | "serial8" => return Ok((Type::BigInt, true)),
            _ => {}
        }
    }
    Ok((types::column(kind)?, false))
}

fn primary_key(table: &mut NewTable, key: NewKey) -> Result<()> {
    if table.primary_key.is_some() {
        return Err(Error::Sql(format!("table {} has two primary keys", table.name)));
    }
    table.primary_key = Some(key);
    Ok(())
}

fn nulls(option: NullsDistinctOption) -> Result<()> {
    match option {
        NullsDistinctOption::NotDistinct => Err(Error::NotSupported("UNIQUE NULLS NOT DISTINCT".into())),
        _ => Ok(()),
    }
}

fn enforced(characteristics: Option<&ConstraintCharacteristics>) -> Result<bool> {
    let Some(characteristics) = characteristics else { return Ok(true) };
    if characteristics.deferrable == Some(true) || characteristics.initially.is_some() {
        return Err(Error::NotSupported(
            "DEFERRABLE constraints: they are checked at the end of each statement".into(),
        ));
    }
    Ok(characteristics.enforced != Some(false))
}

fn foreign_key(foreign: &ForeignKeyConstraint, columns: Vec<String>, name: Option<String>) -> Result<NewForeignKey> {
    if foreign.match_kind.is_some() {
        return Err(Error::NotSupported("MATCH in a foreign key".into()));
    }
    Ok(NewForeignKey {
        name,
        columns,
        parent: table_name(&foreign.foreign_table)?,
        parent_columns: foreign.referred_columns.iter().map(fold).collect(),
        on_delete: action(foreign.on_delete),
        on_update: action(foreign.on_update),
        not_enforced: !enforced(foreign.characteristics.as_ref())?,
    })
}

fn action(action: Option<ReferentialAction>) -> Action {
    match action {
        None | Some(ReferentialAction::NoAction) => Action::NoAction,
        Some(ReferentialAction::Restrict) => Action::Restrict,
        Some(ReferentialAction::Cascade) => Action::Cascade,
        Some(ReferentialAction::SetNull) => Action::SetNull,
        Some(ReferentialAction::SetDefault) => Action::SetDefault,
    }
}

fn identity(generated: GeneratedAs, options: Option<&[SequenceOptions]>) -> Result<Identity> {
    let always = match generated {
        GeneratedAs::Always => true,
        GeneratedAs::ByDefault => false,
        GeneratedAs::ExpStored => return Err(Error::NotSupported("GENERATED ALWAYS AS (expression)".into())),
    };
    let mut identity = Identity { always, start: 1, increment: 1 };
    for option in options.unwrap_or_default() {
        match option {
            SequenceOptions::StartWith(value, _) => identity.start = whole(value)?,
            SequenceOptions::IncrementBy(value, _) => identity.increment = whole(value)?,
            SequenceOptions::Cache(_) | SequenceOptions::Cycle(false) => {}
            SequenceOptions::MinValue(None) | SequenceOptions::MaxValue(None) => {}
            other => return Err(Error::NotSupported(format!("the sequence option{other}"))),
        }
    }
    if identity.increment == 0 {
        return Err(Error::Sql("INCREMENT BY 0 would never count".into()));
    }
    Ok(identity)
}

fn whole(value: &Expr) -> Result<i64> {
    let wrong = || Error::Sql(format!("{value} is not a whole number"));
    match value {
        Expr::Value(ValueWithSpan { value: Literal::Number(digits, _), .. }) => digits.parse().map_err(|_| wrong()),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => Ok(-whole(expr)?),
        _ => Err(wrong()),
    }
}

/// Whether an expression is the same at any time: it calls no function.
pub(crate) fn is_constant(expr: &Expr) -> bool {
    visit_expressions(expr, |expr: &Expr| match expr {
        Expr::Function(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })
    .is_continue()
}

/// Refuses a name that comes twice.
pub(crate) fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(Error::Sql(format!("column {name} is named twice")));
        }
    }
    Ok(())
}

/// FOR and USE of a column are of tables that clouds keep.
fn refused(option: &ColumnOption, column: &str) -> Error {
    let text = option.to_string();
    Error::NotSupported(match text.split(' ').next() {
        Some(word @ ("FOR" | "USE")) => format!(
            "{word} of column {column}: the table lies here; WITH (engine = 'dispersed', clouds = 'a, b, c') has clouds keep it"
        ),
        _ => format!("the column option {text}"),
    })
}
