//! Lists of values about one expression, `x IN (1, 2) AND x NOT IN (2, 3)`, are put together here.
//!
//! The query library does that, too, as if nothing were NULL: `x NOT IN (1) OR x NOT IN (2)` is TRUE for it, and is NULL where x is, so a row
//! came that is none of the answer. It finds nothing left to put together where this was before it.

use datafusion::common::DataFusionError;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, lit};
use datafusion::scalar::ScalarValue;

/// The same expression, in which no two lists of one `AND` or `OR` are about the same.
pub(crate) fn put_together(expr: Expr) -> Result<Expr, DataFusionError> {
    let expr = expr.transform_down(|expr| match expr {
        Expr::Not(inner) => Ok(match denied(*inner) {
            // What it has become is looked at: it may be a chain.
            Ok(denied) => Transformed::new(put_together(denied)?, true, TreeNodeRecursion::Jump),
            Err(inner) => Transformed::no(Expr::Not(Box::new(inner))),
        }),
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
            let operands = operands(expr, op).into_iter().map(put_together).collect::<Result<Vec<_>, _>>()?;
            Ok(Transformed::new(chained(merged(operands, op), op), true, TreeNodeRecursion::Jump))
        }
        Expr::InList(list) if list.negated && list.list.iter().any(is_null) => Ok(Transformed::yes(without_null(list))),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(expr.data)
}

/// NOT of a chain, a list or a NOT, inside; or that it is none of these.
fn denied(expr: Expr) -> Result<Expr, Expr> {
    match expr {
        Expr::Not(inner) => Ok(*inner),
        Expr::InList(list) => Ok(Expr::InList(InList { negated: !list.negated, ..list })),
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let op = if op == Operator::And { Operator::Or } else { Operator::And };
            let [left, right] = [left, right].map(|side| Box::new(Expr::Not(side)));
            Ok(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        other => Err(other),
    }
}

/// What a chain of one operator is of, from left to right.
fn operands(expr: Expr, of: Operator) -> Vec<Expr> {
    let (mut found, mut left) = (Vec::new(), vec![expr]);
    while let Some(expr) = left.pop() {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left: before, op, right }) if op == of => left.extend([*before, *right]),
            // The last ones come first.
            other => found.push(other),
        }
    }
    found.reverse();
    found
}

fn chained(operands: Vec<Expr>, op: Operator) -> Expr {
    let chain = |left, right| Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) });
    operands.into_iter().reduce(chain).unwrap_or_else(|| lit(op == Operator::And))
}

/// Lists about one expression.
struct About {
    expr: Expr,
    /// Of each list its values, and whether it is NOT IN.
    lists: Vec<(Vec<Expr>, bool)>,
}

/// Operands of which those that are lists about the same are one, where the first of them was.
fn merged(operands: Vec<Expr>, op: Operator) -> Vec<Expr> {
    let mut groups: Vec<About> = Vec::new();
    // Each as it is, or the place of its group.
    let mut merged: Vec<Result<Expr, usize>> = Vec::new();
    for operand in operands {
        match operand {
            Expr::InList(InList { expr, list, negated }) if list.iter().all(is_value) => {
                match groups.iter_mut().find(|group| group.expr == *expr) {
                    Some(group) => group.lists.push((list, negated)),
                    None => {
                        merged.push(Err(groups.len()));
                        groups.push(About { expr: *expr, lists: vec![(list, negated)] });
                    }
                }
            }
            Expr::InList(list) if !list.list.iter().all(|item| matches!(item, Expr::Literal(..))) => {
                merged.push(Ok(compared(list)));
            }
            Expr::InList(list) => merged.push(Ok(without_null(list))),
            other => merged.push(Ok(other)),
        }
    }
    let mut groups: Vec<Vec<Expr>> = groups.into_iter().map(|group| group.in_chain(op)).collect();
    let own = |operand: Result<Expr, usize>| match operand {
        Ok(operand) => vec![operand],
        Err(group) => std::mem::take(&mut groups[group]),
    };
    merged.into_iter().flat_map(own).collect()
}

impl About {
    fn in_chain(self, op: Operator) -> Vec<Expr> {
        let (denied, named): (Vec<_>, Vec<_>) = self.lists.into_iter().partition(|(_, negated)| *negated);
        let [denied, named] = [denied, named].map(|lists| lists.into_iter().map(|(list, _)| list).collect());
        match op {
            Operator::And => vec![all_of(self.expr, named, denied)],
            _ => any_of(self.expr, named, denied),
        }
    }
}

/// `x IN (..) AND x IN (..) AND x NOT IN (..)`.
fn all_of(expr: Expr, named: Vec<Vec<Expr>>, denied: Vec<Vec<Expr>>) -> Expr {
    let denied = denied.into_iter().reduce(union);
    let Some(named) = named.into_iter().reduce(intersection) else {
        return expr.in_list(denied.unwrap_or_default(), true);
    };
    let left: Vec<Expr> = named.into_iter().filter(|value| !denied.iter().flatten().any(|own| own == value)).collect();
    match left.is_empty() {
        // FALSE, and NULL where x is.
        true => expr.is_null().and(unknown()),
        false => expr.in_list(left, false),
    }
}

/// `x IN (..) OR x IN (..)`, and `x NOT IN (..) OR x NOT IN (..)`.
fn any_of(expr: Expr, named: Vec<Vec<Expr>>, denied: Vec<Vec<Expr>>) -> Vec<Expr> {
    let named = named.into_iter().reduce(union).map(|list| expr.clone().in_list(list, false));
    let denied = denied.into_iter().reduce(intersection).map(|list| match list.is_empty() {
        // TRUE, and NULL where x is.
        true => expr.is_not_null().or(unknown()),
        false => expr.in_list(list, true),
    });
    named.into_iter().chain(denied).collect()
}

fn union(mut all: Vec<Expr>, more: Vec<Expr>) -> Vec<Expr> {
    let new: Vec<Expr> = more.into_iter().filter(|value| !all.contains(value)).collect();
    all.extend(new);
    all
}

fn intersection(mut all: Vec<Expr>, other: Vec<Expr>) -> Vec<Expr> {
    all.retain(|value| other.contains(value));
    all
}

/// A list without its NULLs: beside them it is never FALSE, or never TRUE if it is NOT IN.
fn without_null(InList { expr, list, negated }: InList) -> Expr {
    let list: Vec<Expr> = list.into_iter().filter(|item| !is_null(item)).collect();
    match (list.is_empty(), negated) {
        (true, _) => unknown(),
        (false, true) => expr.in_list(list, true).and(unknown()),
        (false, false) => expr.in_list(list, false).or(unknown()),
    }
}

/// A list of what is no constant, as comparisons.
fn compared(InList { expr, list, negated }: InList) -> Expr {
    let one = |item: Expr| if negated { expr.as_ref().clone().not_eq(item) } else { expr.as_ref().clone().eq(item) };
    chained(list.into_iter().map(one).collect(), if negated { Operator::And } else { Operator::Or })
}

fn unknown() -> Expr {
    Expr::Literal(ScalarValue::Boolean(None), None)
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if value.is_null())
}

fn is_value(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if !value.is_null())
}
