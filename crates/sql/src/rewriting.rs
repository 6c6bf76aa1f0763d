//! Expressions in other words: of a plan under the names that they had, and of a query without those of queries inside.

use std::ops::ControlFlow;

use datafusion::common::DataFusionError;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{self, Query, VisitMut, VisitorMut};

/// A plan with its expressions rewritten, those of subqueries, too, from the inside out.
pub(crate) fn of_plan(
    plan: LogicalPlan,
    mut rewrite: impl FnMut(Expr) -> Result<Transformed<Expr>, DataFusionError>,
) -> Result<LogicalPlan, DataFusionError> {
    Ok(plan.transform_up_with_subqueries(|node| of_node(node, &mut rewrite))?.data)
}

/// The same of one node.
pub(crate) fn of_node(
    node: LogicalPlan,
    mut rewrite: impl FnMut(Expr) -> Result<Transformed<Expr>, DataFusionError>,
) -> Result<Transformed<LogicalPlan>, DataFusionError> {
    let names = NamePreserver::new(&node);
    node.map_expressions(|expr| {
        let name = names.save(&expr);
        Ok(expr.transform_up(&mut rewrite)?.update_data(|expr| name.restore(expr)))
    })
}

/// Changes the expressions of a part of a query, and none of queries inside.
pub(crate) fn of_query(part: &mut impl VisitMut, change: impl FnMut(&mut ast::Expr)) {
    let _ = part.visit(&mut Own { change, inside: 0 });
}

struct Own<F> {
    change: F,
    /// Queries around an expression.
    inside: usize,
}

impl<F: FnMut(&mut ast::Expr)> VisitorMut for Own<F> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.inside += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.inside -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if self.inside == 0 {
            (self.change)(expr);
        }
        ControlFlow::Continue(())
    }
}
