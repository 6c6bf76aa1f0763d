//! What a condition of a plan says of the tables of a tree, in the words of the floor of tables.

use std::sync::Arc;

use counterfoil_relation::{self as relation, Table};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal, NotExpr,
};
use datafusion::scalar::ScalarValue;

use crate::filter::{self, Test};
use crate::joined::Place;

/// What a condition says.
pub(super) struct Said {
    /// True where the condition is.
    pub(super) condition: relation::Condition,
    /// Whether the condition is true where this is.
    pub(super) is_all: bool,
}

/// Reads conditions over columns of tables.
pub(super) struct Reader<'r> {
    /// What the columns of the expression are.
    pub(super) place: &'r dyn Fn(usize) -> Option<Place>,
    /// The table of a leaf.
    pub(super) table: &'r dyn Fn(usize) -> &'r Table,
}

impl Reader<'_> {
    /// What is true where `expr` is, or, where `wanted` is false, where `expr` is false; none where that is nothing of ours. Of two
    /// that must both be true one alone is something, of alternatives all are needed.
    pub(super) fn read(&self, expr: &Arc<dyn PhysicalExpr>, wanted: bool) -> Option<Said> {
        if let Some(not) = expr.downcast_ref::<NotExpr>()
            && not.arg().downcast_ref::<Column>().is_none()
        {
            return self.read(not.arg(), !wanted);
        }
        if let Some(binary) = expr.downcast_ref::<BinaryExpr>()
            && matches!(binary.op(), Operator::And | Operator::Or)
        {
            let (one, other) = (self.read(binary.left(), wanted), self.read(binary.right(), wanted));
            // One of two is false where not both are true, and the other way round.
            let is_both = (*binary.op() == Operator::And) == wanted;
            return if is_both { both(one, other) } else { Some(either(one?, other?)) };
        }
        let (leaf, test) = self.test(expr, wanted)?;
        Some(Said { condition: relation::Condition::Of(leaf, test), is_all: true })
    }

    /// The test of one column that an expression is.
    fn test(&self, expr: &Arc<dyn PhysicalExpr>, wanted: bool) -> Option<(usize, Test)> {
        let place = |expr: &Arc<dyn PhysicalExpr>| (self.place)(expr.downcast_ref::<Column>()?.index());
        if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
            let comparison = filter::comparison_of(*binary.op())?;
            let (Place { leaf, column }, comparison, value) = match (literal(binary.left()), literal(binary.right())) {
                (None, Some(value)) => (place(binary.left())?, comparison, value),
                (Some(value), None) => (place(binary.right())?, comparison.turned(), value),
                _ => return None,
            };
            let comparison = if wanted { comparison } else { comparison.opposite() };
            return Some((leaf, filter::compare((self.table)(leaf), column, comparison, value)?));
        }
        if let Some(list) = expr.downcast_ref::<InListExpr>() {
            let Place { leaf, column } = place(list.expr())?;
            let values = list.list().iter().map(literal).collect::<Option<Vec<_>>>()?;
            return Some((leaf, filter::listed((self.table)(leaf), column, &values, wanted != list.negated())?));
        }
        if let Some(like) = expr.downcast_ref::<LikeExpr>() {
            let Place { leaf, column } = place(like.expr()).filter(|_| !like.case_insensitive())?;
            let test = filter::like((self.table)(leaf), column, literal(like.pattern())?.try_as_str()??)?;
            return Some((leaf, if wanted != like.negated() { test } else { filter::unlike(test) }));
        }
        let is_null = expr.downcast_ref::<IsNullExpr>().map(|null| (null.arg(), wanted));
        if let Some((of, wanted)) =
            is_null.or_else(|| expr.downcast_ref::<IsNotNullExpr>().map(|null| (null.arg(), !wanted)))
        {
            let Place { leaf, column } = place(of)?;
            return Some((leaf, Test::Null { column, wanted }));
        }
        let (of, wanted) = expr.downcast_ref::<NotExpr>().map_or((expr, wanted), |not| (not.arg(), !wanted));
        let Place { leaf, column } = place(of)?;
        Some((leaf, filter::truth((self.table)(leaf), column, wanted)?))
    }
}

fn literal(expr: &Arc<dyn PhysicalExpr>) -> Option<&ScalarValue> {
    expr.downcast_ref::<Literal>().map(Literal::value)
}

fn both(one: Option<Said>, other: Option<Said>) -> Option<Said> {
    match (one, other) {
        (Some(one), Some(other)) => Some(Said {
            is_all: one.is_all && other.is_all,
            condition: relation::Condition::All(vec![one.condition, other.condition]),
        }),
        (one, other) => one.or(other).map(|said| Said { is_all: false, ..said }),
    }
}

fn either(one: Said, other: Said) -> Said {
    Said { is_all: one.is_all && other.is_all, condition: one.condition.or(other.condition) }
}
