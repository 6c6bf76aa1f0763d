//! How deep plans may nest where the library's rules take exponential time or memory of the depth (DataFusion 55).

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::error::{Error, Result};

/// Subqueries in expressions: some rules go into each of them twice.
const SUBQUERIES_MAX: usize = 12;

/// Nodes that an expression may have once its shorthands are written out: some megabytes.
const NODES_MAX: u64 = 1 << 16;

/// How much more nodes that may be than are written: expressions that are merely long are not refused.
const GROWTH_MAX: u64 = 16;

/// Lists up to this long are written out as comparisons.
const SHORT_LIST: usize = 3;

/// Refuses a plan that could not be made in a sensible time and memory.
pub(crate) fn bounded(plan: LogicalPlan) -> Result<LogicalPlan> {
    if depth(&plan)? > SUBQUERIES_MAX {
        let text = format!("subqueries nest more than {SUBQUERIES_MAX} deep in expressions: write some as joins");
        return Err(Error::NotSupported(text));
    }
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            let size = Size::of(expr)?;
            if size.grown > NODES_MAX && size.grown / size.written > GROWTH_MAX {
                let text =
                    "BETWEEN, IN and coalesce nest too deep in an expression: name inner ones in a subquery in FROM";
                return Err(Error::NotSupported(text.into()).into());
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(plan)
}

/// Subqueries within subqueries, those in FROM not counted.
fn depth(plan: &LogicalPlan) -> Result<usize> {
    let mut deepest = 0;
    plan.apply(|node| {
        node.apply_subqueries(|subquery| {
            deepest = deepest.max(1 + depth(subquery)?);
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(deepest)
}

/// Nodes that a plan may come to have when subqueries in it are told in other words, each of them several times: half a second.
const GROWN_MAX: usize = 2048;

/// What a plan had of nodes before its subqueries were told in other words.
#[derive(Clone, Copy)]
pub(crate) struct Written(usize);

impl Written {
    pub(crate) fn of(plan: &LogicalPlan) -> Result<Self> {
        nodes(plan, usize::MAX).map(Self)
    }

    /// Refuses what has grown too much. It is asked after each step: a step makes copies that share what is in them, and the next one would
    /// look at every one of them.
    pub(crate) fn bounded(self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let most = GROWN_MAX.max(4 * self.0);
        if nodes(&plan, most)? <= most {
            return Ok(plan);
        }
        let text = "subqueries that are worked out several times nest too deep in expressions: write some as joins";
        Err(Error::NotSupported(text.into()))
    }
}

/// Nodes of a plan with those of its subqueries, as far as they are counted.
fn nodes(plan: &LogicalPlan, most: usize) -> Result<usize> {
    let mut nodes = 0;
    plan.apply_with_subqueries(|_| {
        nodes += 1;
        Ok(if nodes > most { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(nodes)
}

/// Nodes of an expression.
struct Size {
    written: u64,
    /// With the shorthands written out that say an operand once and compare it several times.
    grown: u64,
}

impl Size {
    fn of(expr: &Expr) -> datafusion::common::Result<Self> {
        let (mut written, mut grown) = (1_u64, 1_u64);
        expr.apply_children(|child| {
            let size = Size::of(child)?;
            written += size.written;
            grown = grown.saturating_add(size.grown);
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(Size { written, grown: grown.saturating_mul(times(expr)) })
    }
}

/// How often an operand is repeated where an expression is written out.
fn times(expr: &Expr) -> u64 {
    match expr {
        Expr::Between(_) => 2,
        Expr::InList(InList { list, .. }) if list.len() <= SHORT_LIST => list.len() as u64,
        Expr::ScalarFunction(ScalarFunction { func, .. }) if matches!(func.name(), "coalesce" | "nvl" | "nvl2") => 2,
        _ => 1,
    }
}
