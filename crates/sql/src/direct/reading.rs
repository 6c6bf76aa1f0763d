//! Reads a question out of a statement, where a statement is one.
//!
//! What is not recognised is no question: then the query library reads the statement, refuses what is wrong with it and says so.
//! So nothing here guesses: a word that the library might take otherwise is none of ours.

use counterfoil_relation::Type;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as SqlType, Expr, GroupByExpr, Ident, Join, JoinConstraint, JoinOperator, LimitClause,
    ObjectNamePart, Query, Select, SelectFlavor, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Statement,
    TableAlias, TableFactor, TableWithJoins, TimezoneInfo, TypedString, UnaryOperator, Value as Literal,
    WildcardAdditionalOptions,
};

use super::question::{Asked, ColumnName, Condition, Joined, Made, Question, Shown, Source};
use super::refining;
use crate::filter::{self, Comparison};
use crate::idioms;
use crate::naming::Names;
use crate::parameters;
use crate::statement::{fold, kept_apart, table_name};
use crate::value::Value;

/// The question that a statement is.
pub(super) fn question(statement: &Statement, parameters: &[Value], names: Names) -> Option<Question> {
    let Statement::Query(query) = statement else { return None };
    let Query {
        with: None,
        body,
        order_by,
        limit_clause,
        fetch: None,
        locks,
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators,
    } = query.as_ref()
    else {
        return None;
    };
    let SetExpr::Select(select) = body.as_ref() else { return None };
    if !locks.is_empty() || !pipe_operators.is_empty() {
        return None;
    }
    let reading = Reading { parameters };
    let (limit, offset) = reading.limit(limit_clause.as_ref())?;
    let mut question = Question { limit, ..Question::default() };
    let (shown, from, selection) = plain(select)?;
    from.iter().try_for_each(|tables| reading.tables(tables, &mut question.sources))?;
    question.shown = shown.iter().map(|item| reading_shown(item, names)).collect::<Option<_>>()?;
    question.refined = reading.refined(select, order_by.as_ref(), &question.shown)?;
    question.refined.offset = offset;
    // What stands beside a star may be the same column again, and tables that are named with their schema are not known without it:
    // the library says so.
    let has_star = question.shown.iter().any(|shown| matches!(shown, Shown::All | Shown::AllOf(_)));
    if has_star && (shown.len() > 1 || from.iter().any(names_a_schema)) {
        return None;
    }
    if let Some(selection) = selection {
        reading.conditions(selection, &mut question.conditions)?;
    }
    Some(question)
}

/// The value that an expression is in every row, if it is a literal or a parameter whose type is the same wherever it stands.
pub(crate) fn constant(expr: &Expr, parameters: &[Value]) -> Option<ScalarValue> {
    Some(match (Reading { parameters }).value(expr)? {
        Value::Null => ScalarValue::Null,
        Value::Boolean(truth) => ScalarValue::Boolean(Some(truth)),
        Value::Integer(number) => ScalarValue::Int64(Some(number)),
        Value::Text(text) => ScalarValue::Utf8(Some(text)),
        _ => return None,
    })
}

fn names_a_schema(tables: &TableWithJoins) -> bool {
    let mut factors = std::iter::once(&tables.relation).chain(tables.joins.iter().map(|join| &join.relation));
    factors.any(|factor| matches!(factor, TableFactor::Table { name, .. } if name.0.len() > 1))
}

/// What a SELECT shows, of which tables, and which rows: if that is all it says, beside what becomes of the rows.
fn plain(select: &Select) -> Option<(&[SelectItem], &[TableWithJoins], Option<&Expr>)> {
    let Select {
        select_token: _,
        optimizer_hints,
        distinct: _,
        select_modifiers: None,
        top: None,
        top_before_distinct: _,
        projection,
        exclude: None,
        into: None,
        from,
        lateral_views,
        prewhere: None,
        selection,
        connect_by,
        group_by: GroupByExpr::Expressions(_, modifiers),
        cluster_by,
        distribute_by,
        sort_by,
        having: _,
        named_window,
        qualify: None,
        window_before_qualify: _,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    } = select
    else {
        return None;
    };
    // A question without columns asks for all; a SELECT without them for none.
    let nothing_else = !projection.is_empty()
        && optimizer_hints.is_empty()
        && lateral_views.is_empty()
        && connect_by.is_empty()
        && modifiers.is_empty()
        && cluster_by.is_empty()
        && distribute_by.is_empty()
        && sort_by.is_empty()
        && named_window.is_empty();
    nothing_else.then_some((projection, from, selection.as_ref()))
}

fn reading_shown(item: &SelectItem, names: Names) -> Option<Shown> {
    let bare = |options: &WildcardAdditionalOptions| {
        let WildcardAdditionalOptions {
            wildcard_token: _,
            opt_ilike: None,
            opt_exclude: None,
            opt_except: None,
            opt_replace: None,
            opt_rename: None,
            opt_alias: None,
        } = options
        else {
            return None;
        };
        Some(())
    };
    Some(match item {
        SelectItem::Wildcard(options) => {
            bare(options)?;
            Shown::All
        }
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
            bare(options)?;
            let [ObjectNamePart::Identifier(alias)] = name.0.as_slice() else { return None };
            Shown::AllOf(named(alias)?)
        }
        SelectItem::UnnamedExpr(expr) => match refining::made(expr)? {
            Made::Column(column) => Shown::Column(column, None),
            made => Shown::Made(made, names.of(expr)),
        },
        SelectItem::ExprWithAlias { expr, alias } => match refining::made(expr)? {
            Made::Column(column) => Shown::Column(column, Some(named(alias)?)),
            made => Shown::Made(made, named(alias)?),
        },
        _ => return None,
    })
}

/// A name, if it is folded alike by everybody: letters beyond ASCII are not.
fn named(name: &Ident) -> Option<String> {
    (name.quote_style.is_some() || name.value.is_ascii()).then(|| fold(name))
}

pub(super) fn column(expr: &Expr) -> Option<ColumnName> {
    // Words such as `current_role` are not columns, whatever columns there are.
    let is_word = |name: &Ident| name.quote_style.is_none() && fold(name).starts_with("current_");
    match expr {
        Expr::Identifier(name) if !is_word(name) => Some(ColumnName { table: None, column: named(name)? }),
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [table, column] => Some(ColumnName { table: Some(named(table)?), column: named(column)? }),
            _ => None,
        },
        _ => None,
    }
}

/// Reads with the values of parameters.
pub(super) struct Reading<'p> {
    parameters: &'p [Value],
}

impl Reading<'_> {
    /// The rows wanted, and how many are left out before them, if those are numbers.
    fn limit(&self, clause: Option<&LimitClause>) -> Option<(Option<usize>, u64)> {
        let (limit, offset) = match clause {
            None => return Some((None, 0)),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => (limit, offset),
            Some(_) => return None,
        };
        let number = |expr: &Expr| match self.value(expr)? {
            Value::Integer(rows) => u64::try_from(rows).ok(),
            Value::Text(rows) => rows.trim().parse().ok(),
            Value::Decimal { unscaled, scale: 0 } => u64::try_from(unscaled).ok(),
            _ => None,
        };
        let limit = match limit {
            Some(limit) => Some(usize::try_from(number(limit)?).ok()?),
            None => None,
        };
        Some((limit, offset.as_ref().map_or(Some(0), |offset| number(&offset.value))?))
    }

    fn tables(&self, tables: &TableWithJoins, sources: &mut Vec<Source>) -> Option<()> {
        let from = sources.len();
        sources.push(source(&tables.relation, Joined::Beside)?);
        for Join { relation, global, join_operator } in &tables.joins {
            if *global {
                return None;
            }
            let joined = match join_operator {
                JoinOperator::Join(JoinConstraint::On(on)) | JoinOperator::Inner(JoinConstraint::On(on)) => {
                    Joined::Where { from, on: self.conjuncts(on)? }
                }
                JoinOperator::Left(JoinConstraint::On(on)) | JoinOperator::LeftOuter(JoinConstraint::On(on)) => {
                    Joined::OrNone { from, on: self.conjuncts(on)? }
                }
                _ => return None,
            };
            sources.push(source(relation, joined)?);
        }
        Some(())
    }

    fn conjuncts(&self, expr: &Expr) -> Option<Vec<Condition>> {
        let mut conditions = Vec::new();
        self.conditions(expr, &mut conditions)?;
        Some(conditions)
    }

    /// Adds what `expr` says, piece by piece.
    fn conditions(&self, expr: &Expr, conditions: &mut Vec<Condition>) -> Option<()> {
        match expr {
            Expr::Nested(inner) => self.conditions(inner, conditions),
            Expr::BinaryOp { left, .. } if matches!(**left, Expr::Tuple(_)) => {
                self.conditions(&idioms::rewritten(expr)?, conditions)
            }
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                self.conditions(left, conditions)?;
                self.conditions(right, conditions)
            }
            _ => self.condition(expr).map(|condition| conditions.push(condition)),
        }
    }

    fn condition(&self, expr: &Expr) -> Option<Condition> {
        Some(Condition(match expr {
            Expr::Nested(inner) => return self.condition(inner),
            Expr::BinaryOp { left, .. } if matches!(**left, Expr::Tuple(_)) => {
                return self.condition(&idioms::rewritten(expr)?);
            }
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => Asked::Is { column: column(expr)?, truth: true },
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => match column(expr) {
                Some(column) => Asked::Is { column, truth: false },
                None => Asked::Not(Box::new(self.condition(expr)?)),
            },
            Expr::IsNull(inner) => Asked::Null { column: column(inner)?, wanted: true },
            Expr::IsNotNull(inner) => Asked::Null { column: column(inner)?, wanted: false },
            Expr::BinaryOp { op: BinaryOperator::And, .. } => Asked::All(self.conjuncts(expr)?),
            Expr::BinaryOp { left, op: BinaryOperator::Or, right } => {
                Asked::Any(vec![self.condition(left)?, self.condition(right)?])
            }
            Expr::BinaryOp { left, op, right } => self.comparison(left, comparison(op)?, right)?,
            Expr::Between { expr, negated, low, high } => {
                let side = |comparison, value: &Expr| {
                    Some(Condition(Asked::Compare { column: column(expr)?, comparison, value: self.value(value)? }))
                };
                not_if(*negated, Asked::All(vec![side(Comparison::AtLeast, low)?, side(Comparison::AtMost, high)?]))
            }
            Expr::InList { expr, list, negated } => {
                let values = list.iter().map(|value| self.value(value)).collect::<Option<_>>()?;
                not_if(*negated, Asked::In { column: column(expr)?, values })
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char: None } => match self.value(pattern)? {
                Value::Text(pattern) => not_if(*negated, Asked::Like { column: column(expr)?, pattern }),
                _ => return None,
            },
            _ => return None,
        }))
    }

    fn comparison(&self, left: &Expr, comparison: Comparison, right: &Expr) -> Option<Asked> {
        match (column(left), column(right)) {
            (Some(one), Some(other)) if comparison == Comparison::Equal => Some(Asked::Same(one, other)),
            (Some(column), None) => Some(Asked::Compare { column, comparison, value: self.value(right)? }),
            (None, Some(column)) => {
                Some(Asked::Compare { column, comparison: comparison.turned(), value: self.value(left)? })
            }
            _ => None,
        }
    }

    /// The value of a literal or a parameter.
    pub(super) fn value(&self, expr: &Expr) -> Option<Value> {
        let literal = match expr {
            Expr::Nested(inner) => return self.value(inner),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => return negative(expr),
            Expr::Value(literal) => &literal.value,
            Expr::TypedString(typed) => return typed_value(typed),
            _ => return None,
        };
        match literal {
            Literal::Placeholder(name) => parameters::value(name, self.parameters).ok().cloned(),
            Literal::Number(digits, false) => number(digits, false),
            Literal::SingleQuotedString(text) => Some(Value::Text(text.clone())),
            Literal::Boolean(truth) => Some(Value::Boolean(*truth)),
            Literal::Null => Some(Value::Null),
            _ => None,
        }
    }
}

/// `DATE '2013-02-01'`, and its like.
fn typed_value(typed: &TypedString) -> Option<Value> {
    let Literal::SingleQuotedString(text) = &typed.value.value else { return None };
    let kind = match typed.data_type {
        SqlType::Date => Type::Date,
        SqlType::Timestamp(None, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            Type::Timestamp { nanoseconds: false }
        }
        _ => return None,
    };
    // A TIMESTAMP has microseconds: what is finer the library cuts.
    let is_too_fine = |value: &Value| matches!(value, Value::Timestamp(nanoseconds) if nanoseconds % 1000 != 0);
    filter::written(&kind, text).filter(|value| !is_too_fine(value))
}

fn not_if(negated: bool, asked: Asked) -> Asked {
    if negated { Asked::Not(Box::new(Condition(asked))) } else { asked }
}

fn negative(expr: &Expr) -> Option<Value> {
    let Expr::Value(literal) = expr else { return None };
    let Literal::Number(digits, false) = &literal.value else { return None };
    number(digits, true)
}

/// A number as it is written: an integer, or one with digits behind the point.
fn number(written: &str, is_negative: bool) -> Option<Value> {
    let sign = if is_negative { "-" } else { "" };
    let Some((whole, behind)) = written.split_once('.') else {
        return format!("{sign}{written}").parse().ok().map(Value::Integer);
    };
    // `1e5` is a number of another type.
    let is_plain = behind.bytes().all(|digit| digit.is_ascii_digit());
    let unscaled = format!("{sign}{whole}{behind}").parse().ok().filter(|_| is_plain && !whole.is_empty())?;
    Some(Value::Decimal { unscaled, scale: u8::try_from(behind.len()).ok()? })
}

pub(super) fn comparison(operator: &BinaryOperator) -> Option<Comparison> {
    Some(match operator {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::Unequal,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::AtMost,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::AtLeast,
        _ => return None,
    })
}

/// A table that is named, and nothing more is said of it.
fn source(factor: &TableFactor, joined: Joined) -> Option<Source> {
    let TableFactor::Table {
        name,
        alias,
        args: None,
        with_hints,
        version: None,
        with_ordinality: false,
        partitions,
        json_path: None,
        sample: None,
        index_hints,
    } = factor
    else {
        return None;
    };
    let is_alike = |part: &ObjectNamePart| matches!(part, ObjectNamePart::Identifier(name) if named(name).is_some());
    let table = table_name(name).ok().filter(|table| kept_apart(table).is_none() && name.0.iter().all(is_alike))?;
    if !with_hints.is_empty() || !partitions.is_empty() || !index_hints.is_empty() {
        return None;
    }
    let alias = match alias {
        None => table.clone(),
        Some(TableAlias { explicit: _, name, columns, at: None }) if columns.is_empty() => named(name)?,
        Some(_) => return None,
    };
    Some(Source { table, alias, joined })
}
