//! What names in a SELECT stand for, and what its WHERE says.

use std::ops::Range;

use counterfoil_proof::{Definition, Type};
use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value as Written, ValueWithSpan};

use crate::condition::Condition;
use crate::error::{Error, not_supported};
use crate::like::Pattern;
use crate::literal::{Comparison, Literal};
use crate::set::Set;
use crate::statement::folded;

/// The tables of a SELECT: one, or two whose columns stand in a row.
pub(crate) struct Names<'a> {
    /// The columns of all tables.
    pub(crate) definition: &'a Definition,
    /// What the tables are called in the SELECT, and which of the columns each has.
    pub(crate) tables: Vec<(&'a str, Range<u16>)>,
}

enum Operand {
    Column(u16),
    Literal(Literal),
}

impl<'a> Names<'a> {
    /// The column that an expression names; none if it is something else.
    pub(crate) fn column(&self, expression: &Expr) -> Result<Option<u16>, Error> {
        match expression {
            Expr::Nested(inner) => self.column(inner),
            Expr::Identifier(name) => self.named(&folded(name), self.all_columns()).map(Some),
            Expr::CompoundIdentifier(names) => match &names[..] {
                [table, name] => self.named(&folded(name), self.columns_of(&folded(table))?).map(Some),
                _ => not_supported("names of several parts"),
            },
            _ => Ok(None),
        }
    }

    /// The one table of a SELECT.
    pub(crate) fn of_one(definition: &'a Definition, table: &'a str) -> Self {
        Self { definition, tables: vec![(table, 0..definition.columns.len() as u16)] }
    }

    pub(crate) fn all_columns(&self) -> Range<u16> {
        0..self.definition.columns.len() as u16
    }

    /// The columns of the table that is called so.
    pub(crate) fn columns_of(&self, table: &str) -> Result<Range<u16>, Error> {
        let found = self.tables.iter().find(|(known, _)| *known == table).map(|(_, columns)| columns.clone());
        found.ok_or_else(|| {
            let known: Vec<&str> = self.tables.iter().map(|(known, _)| *known).collect();
            Error::UnknownTable { name: table.into(), known: known.join(" and ") }
        })
    }

    fn named(&self, name: &str, among: Range<u16>) -> Result<u16, Error> {
        let column = |at: &u16| &self.definition.columns[usize::from(*at)].name;
        let mut found = among.clone().filter(|at| column(at) == name);
        match (found.next(), found.next()) {
            (Some(at), None) => Ok(at),
            (Some(_), Some(_)) => not_supported(format!("the name {name} alone, which both tables have")),
            (None, _) => {
                let columns = among.map(|at| column(&at).clone()).collect();
                Err(Error::UnknownColumn { name: name.into(), columns })
            }
        }
    }

    pub(crate) fn kind(&self, column: u16) -> Type {
        self.definition.columns[usize::from(column)].kind
    }

    pub(crate) fn mismatch<T>(&self, column: u16, wanted: &str) -> Result<T, Error> {
        let column = &self.definition.columns[usize::from(column)];
        Err(Error::TypeMismatch { column: column.name.clone(), kind: column.kind, wanted: wanted.into() })
    }

    fn operand(&self, expression: &Expr) -> Result<Operand, Error> {
        if let Some(column) = self.column(expression)? {
            return Ok(Operand::Column(column));
        }
        match Literal::of(expression)? {
            Some(literal) => Ok(Operand::Literal(literal)),
            None => not_supported(kind_of(expression)),
        }
    }

    fn column_operand(&self, expression: &Expr) -> Result<u16, Error> {
        match self.operand(expression)? {
            Operand::Column(column) => Ok(column),
            Operand::Literal(_) => not_supported("conditions on literals alone"),
        }
    }

    /// What an expression in WHERE says.
    pub(crate) fn condition(&self, expression: &Expr) -> Result<Condition, Error> {
        Ok(match expression {
            Expr::Nested(inner) => self.condition(inner)?,
            Expr::BinaryOp { op: BinaryOperator::And, .. } => {
                Condition::And(self.chain(expression, &BinaryOperator::And)?)
            }
            Expr::BinaryOp { op: BinaryOperator::Or, .. } => {
                Condition::Or(self.chain(expression, &BinaryOperator::Or)?)
            }
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => Condition::Not(Box::new(self.condition(expr)?)),
            Expr::IsNull(inner) => Condition::IsNull(self.column_operand(inner)?),
            Expr::IsNotNull(inner) => not(true, Condition::IsNull(self.column_operand(inner)?)),
            Expr::IsTrue(inner) => Condition::Is(Box::new(self.condition(inner)?), Some(true)),
            Expr::IsNotTrue(inner) => not(true, Condition::Is(Box::new(self.condition(inner)?), Some(true))),
            Expr::IsFalse(inner) => Condition::Is(Box::new(self.condition(inner)?), Some(false)),
            Expr::IsNotFalse(inner) => not(true, Condition::Is(Box::new(self.condition(inner)?), Some(false))),
            Expr::IsUnknown(inner) => Condition::Is(Box::new(self.condition(inner)?), None),
            Expr::IsNotUnknown(inner) => not(true, Condition::Is(Box::new(self.condition(inner)?), None)),
            Expr::BinaryOp { left, op, right } => match comparison(op) {
                Some(comparison) => self.comparison(left, comparison, right)?,
                None => return not_supported(kind_of(expression)),
            },
            Expr::Between { expr, negated, low, high } => not(
                *negated,
                Condition::And(vec![
                    self.comparison(expr, Comparison::GreaterOrEqual, low)?,
                    self.comparison(expr, Comparison::LessOrEqual, high)?,
                ]),
            ),
            Expr::InList { expr, list, negated } => not(*negated, self.list(expr, list)?),
            Expr::Like { negated, any: false, expr, pattern, escape_char } => {
                not(*negated, self.like(expr, pattern, escape_char.as_ref())?)
            }
            _ => self.truth(expression)?,
        })
    }

    /// The parts of a chain of one operator, from left to right, taken without recursion.
    fn chain(&self, expression: &Expr, operator: &BinaryOperator) -> Result<Vec<Condition>, Error> {
        let mut parts = Vec::new();
        let mut left_most = expression;
        while let Expr::BinaryOp { left, op, right } = left_most
            && op == operator
        {
            parts.push(self.condition(right)?);
            left_most = left;
        }
        parts.push(self.condition(left_most)?);
        parts.reverse();
        Ok(parts)
    }

    fn comparison(&self, left: &Expr, comparison: Comparison, right: &Expr) -> Result<Condition, Error> {
        match (self.operand(left)?, self.operand(right)?) {
            (Operand::Column(column), Operand::Literal(literal)) => self.compared(column, comparison, &literal),
            (Operand::Literal(literal), Operand::Column(column)) => {
                self.compared(column, comparison.flipped(), &literal)
            }
            (Operand::Column(left), Operand::Column(right)) if self.kind(left) == self.kind(right) => {
                Ok(Condition::Columns(left, comparison, right))
            }
            (Operand::Column(_), Operand::Column(_)) => not_supported("comparisons of columns of two types"),
            (Operand::Literal(_), Operand::Literal(_)) => not_supported("conditions on literals alone"),
        }
    }

    fn compared(&self, column: u16, comparison: Comparison, literal: &Literal) -> Result<Condition, Error> {
        let name = &self.definition.columns[usize::from(column)].name;
        let place = literal.place(name, self.kind(column))?;
        Ok(comparison.values(&place).map_or(Condition::Constant(None), |set| Condition::Within(column, set)))
    }

    fn list(&self, expression: &Expr, list: &[Expr]) -> Result<Condition, Error> {
        let column = self.column_operand(expression)?;
        let name = &self.definition.columns[usize::from(column)].name;
        let mut sets = Vec::new();
        let mut has_null = false;
        for item in list {
            let Operand::Literal(literal) = self.operand(item)? else {
                return not_supported("columns in a list of IN");
            };
            match Comparison::Equal.values(&literal.place(name, self.kind(column))?) {
                Some(set) => sets.push(set),
                None => has_null = true,
            }
        }
        let within = Condition::Within(column, Set::union(sets));
        // Not being among the others is unknown as soon as one of them is.
        Ok(if has_null { Condition::Or(vec![within, Condition::Constant(None)]) } else { within })
    }

    fn like(&self, expression: &Expr, pattern: &Expr, escape: Option<&ValueWithSpan>) -> Result<Condition, Error> {
        let column = self.column_operand(expression)?;
        if self.kind(column) != Type::Text {
            return self.mismatch(column, "LIKE is for texts");
        }
        let escape = match escape.map(|escape| &escape.value) {
            None => Some('\\'),
            Some(Written::SingleQuotedString(text)) if text.chars().count() <= 1 => text.chars().next(),
            Some(_) => return not_supported("an ESCAPE that is not one character"),
        };
        match self.operand(pattern)? {
            Operand::Literal(Literal::Text(text)) => Ok(Condition::Like(column, Pattern::parse(&text, escape)?)),
            Operand::Literal(Literal::Null) => Ok(Condition::Constant(None)),
            _ => not_supported("a LIKE pattern that is no string"),
        }
    }

    /// A truth value that stands alone: a literal or a column.
    fn truth(&self, expression: &Expr) -> Result<Condition, Error> {
        match self.operand(expression)? {
            Operand::Literal(Literal::Null) => Ok(Condition::Constant(None)),
            Operand::Literal(Literal::Boolean(value)) => Ok(Condition::Constant(Some(value))),
            Operand::Literal(_) => not_supported("a condition that is no truth value"),
            Operand::Column(column) if self.kind(column) == Type::Boolean => {
                self.compared(column, Comparison::Equal, &Literal::Boolean(true))
            }
            Operand::Column(column) => self.mismatch(column, "a condition is a truth value"),
        }
    }
}

fn not(is_negated: bool, condition: Condition) -> Condition {
    if is_negated { Condition::Not(Box::new(condition)) } else { condition }
}

fn comparison(operator: &BinaryOperator) -> Option<Comparison> {
    Some(match operator {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessOrEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

/// What an expression is, in words: printing it whole would go as deep as it is nested.
pub(crate) fn kind_of(expression: &Expr) -> &'static str {
    match expression {
        Expr::BinaryOp { .. } => "operators but AND, OR and comparisons of a column with a literal or a column",
        Expr::UnaryOp { .. } => "a sign or operator before anything but a number",
        Expr::Function(_) => "functions but COUNT, SUM, MIN, MAX and AVG of a column in the select list",
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => "subqueries",
        Expr::ILike { .. } | Expr::SimilarTo { .. } | Expr::RLike { .. } => "ILIKE, SIMILAR TO and regular expressions",
        Expr::Like { .. } | Expr::AnyOp { .. } | Expr::AllOp { .. } => "ANY, SOME and ALL",
        Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..) => "IS DISTINCT FROM",
        Expr::Case { .. } => "CASE",
        Expr::Cast { .. } | Expr::Convert { .. } => "CAST of anything but a string",
        Expr::Interval(_) => "intervals of time",
        Expr::Tuple(_) => "rows of several values",
        Expr::Collate { .. } => "COLLATE: texts sort by their bytes",
        Expr::AtTimeZone { .. } | Expr::Extract { .. } => "AT TIME ZONE and EXTRACT",
        _ => "this expression",
    }
}
