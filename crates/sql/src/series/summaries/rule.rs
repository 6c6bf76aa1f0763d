//! Where a partial aggregation over a series table asks what summaries say, they say it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::DataFusionError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};

use super::node::SeriesSummaries;
use super::question::{Input, Reader};

/// Whether a session's plans use summaries.
#[derive(Clone, Debug)]
pub(crate) struct Switch(Arc<AtomicBool>);

impl Default for Switch {
    fn default() -> Self {
        Switch(Arc::new(AtomicBool::new(true)))
    }
}

impl Switch {
    pub(crate) fn set(&self, on: bool) {
        self.0.store(on, Ordering::Relaxed);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The rule.
#[derive(Debug)]
pub(crate) struct FromSummaries {
    pub(crate) switch: Switch,
}

impl PhysicalOptimizerRule for FromSummaries {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        if !self.switch.is_on() {
            return Ok(plan);
        }
        plan.transform_up(|plan| {
            Ok(match answered(&plan)? {
                Some(answered) => Transformed::yes(Arc::new(answered) as Arc<dyn ExecutionPlan>),
                None => Transformed::no(plan),
            })
        })
        .map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "from_summaries"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What can take the place of a node.
fn answered(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<SeriesSummaries>, DataFusionError> {
    let Some(aggregate) = plan.downcast_ref::<AggregateExec>() else { return Ok(None) };
    if *aggregate.mode() != AggregateMode::Partial {
        return Ok(None);
    }
    let Some(input) = Input::of(aggregate.input()) else { return Ok(None) };
    let scan = input.scan;
    if scan.is_limited() {
        return Ok(None);
    }
    let summarized = scan.summarized()?;
    let asked = Reader::read(aggregate, input, &summarized, scan.series_count());
    asked.map(|asked| SeriesSummaries::new(scan, asked, aggregate.schema()).map_err(DataFusionError::from)).transpose()
}
