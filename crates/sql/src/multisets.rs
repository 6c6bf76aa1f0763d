//! `EXCEPT ALL` and `INTERSECT ALL`: of a row that is m times on the left and n times on the right come m - n, or the smaller of both.
//!
//! The query library makes the joins of them that it makes of EXCEPT and INTERSECT, and only leaves doubles on the left (DataFusion 55): one row
//! on the right then takes all that are like it, or keeps them. Here the like of each side are numbered, and the number is one more column of
//! which the join says that it is equal: the first n on the left have a partner.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DataFusionError, JoinType, NullEquality};
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::{Expr, ExprFunctionExt as _, Join, LogicalPlan, LogicalPlanBuilder};

/// Numbers what is alike on both sides of every `EXCEPT ALL` and `INTERSECT ALL`.
pub(crate) fn counted(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    let counted = plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::Join(join) if is_of_all(&join) => Ok(Transformed::yes(numbered(join)?)),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(counted.data)
}

/// No statement can spell such a join; of a left side without doubles no copy is more than one, and the join is right as it is.
fn is_of_all(join: &Join) -> bool {
    let of_rows = matches!(join.join_type, JoinType::LeftAnti | JoinType::LeftSemi);
    of_rows
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && !matches!(*join.left, LogicalPlan::Distinct(_))
        // Of a view that is done when the statement around it is looked at.
        && !join.on.last().is_some_and(|(left, _)| *left == Expr::Column(Column::new_unqualified(copy("left"))))
}

fn numbered(join: Join) -> Result<LogicalPlan, DataFusionError> {
    let columns = join.left.schema().columns();
    let mut keys: (Vec<Expr>, Vec<Expr>) = join.on.into_iter().unzip();
    let [(left, left_copy), (right, right_copy)] =
        [copies(&join.left, &keys.0, "left")?, copies(&join.right, &keys.1, "right")?];
    keys.0.push(left_copy);
    keys.1.push(right_copy);
    let on = keys.0.into_iter().zip(keys.1).collect();
    let (left, right) = (left.into(), right.into());
    let equality = NullEquality::NullEqualsNull;
    let joined = Join::try_new(left, right, on, None, join.join_type, join.join_constraint, equality, false)?;
    LogicalPlanBuilder::from(LogicalPlan::Join(joined)).project(columns.into_iter().map(Expr::Column))?.build()
}

/// What the number of a copy is called.
fn copy(side: &str) -> String {
    format!("{}_{side}_copy", crate::HIDDEN)
}

/// A side with a column more, which numbers rows of the same keys from 1 on.
fn copies(side: &LogicalPlan, keys: &[Expr], name: &str) -> Result<(LogicalPlan, Expr), DataFusionError> {
    let number = row_number().partition_by(keys.to_vec()).build()?;
    let number_name = number.schema_name().to_string();
    let name = copy(name);
    let own = side.schema().columns().into_iter().map(Expr::Column);
    let all = own.chain([Expr::Column(Column::new_unqualified(number_name)).alias(&name)]);
    let numbered = LogicalPlanBuilder::from(side.clone()).window([number])?.project(all)?.build()?;
    Ok((numbered, Expr::Column(Column::new_unqualified(name))))
}
