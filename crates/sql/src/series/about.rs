//! Conditions about what names series, as they are asked of the keys of all series.

use counterfoil_relation::{Table, Type};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr};

use crate::error::Result;
use crate::text;
use crate::value::parse;

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

/// The text of a UUID as we write it; anything else as it is.
fn as_ours(expr: Expr) -> Expr {
    let Expr::Literal(value, metadata) = expr else { return expr };
    let bytes = value.try_as_str().flatten().and_then(parse::uuid);
    let ours = bytes.and_then(|bytes| {
        let mut written = String::new();
        text::uuid(&mut written, &bytes);
        ScalarValue::Utf8(Some(written)).cast_to(&value.data_type()).ok()
    });
    Expr::Literal(ours.unwrap_or(value), metadata)
}
