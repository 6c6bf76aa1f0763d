//! Joins by IS NOT DISTINCT FROM, for which NULL is equal to NULL.
//!
//! The query library makes a key of such a condition where a join has no other, and has the join say that its keys are equal where both
//! are NULL. Then it goes on to improve the plan, and forgets of which key that was said (DataFusion 55):
//!
//! - joins that stand on one another are taken apart and put together anew, and what the last of them says holds for all
//!   (`eliminate_cross_join`): rows with NULL are lost, or come to joins by `=`;
//! - a condition `a = b` that comes down to such a join becomes a key of it (`extract_equijoin_predicate`), and so does one of a WHERE
//!   above it.
//!
//! So the condition stays a condition while the plan is improved, and becomes a key when that is done: after it nothing comes to a join.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, NullEquality};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::optimizer::{ApplyOrder, Optimizer};
use datafusion::optimizer::{OptimizerConfig, OptimizerContext, OptimizerRule};

/// The library's rule that makes keys of conditions, but for those for which NULL is equal to NULL.
#[derive(Debug)]
struct PlainKeys(ExtractEquijoinPredicate);

impl OptimizerRule for PlainKeys {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>, DataFusionError> {
        if !has_condition(&plan) || is_null_equal(&plan) {
            return Ok(Transformed::no(plan));
        }
        let keyed = self.0.rewrite(plan.clone(), config)?;
        Ok(if is_null_equal(&keyed.data) { Transformed::no(plan) } else { keyed })
    }
}

/// The rules by which the library improves plans, with ours in the place of its own.
pub(crate) fn rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let library = ExtractEquijoinPredicate::new();
    let mut rules = Optimizer::new().rules;
    if let Some(rule) = rules.iter_mut().find(|rule| rule.name() == library.name()) {
        *rule = Arc::new(PlainKeys(library));
    }
    rules
}

/// A plan that is as good as it becomes, with keys in the place of the conditions that were left.
pub(crate) fn keyed(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    let (library, context) = (ExtractEquijoinPredicate::new(), OptimizerContext::new());
    let keyed = plan.transform_up_with_subqueries(|plan| match has_condition(&plan) && !is_null_equal(&plan) {
        true => library.rewrite(plan, &context),
        false => Ok(Transformed::no(plan)),
    })?;
    Ok(keyed.data)
}

fn has_condition(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if join.filter.is_some())
}

fn is_null_equal(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if join.null_equality == NullEquality::NullEqualsNull)
}
