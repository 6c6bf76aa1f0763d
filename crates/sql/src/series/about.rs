//! Conditions about what names series, as they are asked of the keys of all series.

use counterfoil_relation::{Table, Type};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr};

use crate::error::Result;
use crate::uuids::as_ours;

/// A condition with its columns named without their table, and texts that stand for a UUID in the form that ours have: they are
/// texts to the query library, which would tell capitals from small letters.
pub(super) fn keys(expr: Expr, table: &Table) -> Result<Expr> {
    let is_uuid = |expr: &Expr| match expr {
        Expr::Column(column) => table.column(&column.name).is_some_and(|(_, column)| column.kind == Type::Uuid),
        _ => false,
    };
    let plain = expr.transform_up(|expr| {
        Ok(Transformed::yes(match expr {
            Expr::Column(mut column) => {
                column.relation = None;
                Expr::Column(column)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
                let (left, right) = match (is_uuid(&left), is_uuid(&right)) {
                    (true, _) => (left, Box::new(as_ours(*right))),
                    (_, true) => (Box::new(as_ours(*left)), right),
                    _ => (left, right),
                };
                Expr::BinaryExpr(BinaryExpr { left, op, right })
            }
            Expr::InList(InList { expr, list, negated }) if is_uuid(&expr) => {
                Expr::InList(InList { expr, list: list.into_iter().map(as_ours).collect(), negated })
            }
            Expr::Between(Between { expr, negated, low, high }) if is_uuid(&expr) => {
                Expr::Between(Between { expr, negated, low: Box::new(as_ours(*low)), high: Box::new(as_ours(*high)) })
            }
            other => other,
        }))
    })?;
    Ok(plain.data)
}
