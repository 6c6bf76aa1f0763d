//! A rule that puts a cheaper node with the same answer where a plan has a dearer one. A session can turn all such rules off.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::DataFusionError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

/// Whether a session's plans take shortcuts.
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

/// What can take the place of a node, if anything can.
pub(crate) type Cheaper = fn(&Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>, DataFusionError>;

/// The rule.
pub(crate) struct Shortcut {
    pub(crate) name: &'static str,
    pub(crate) switch: Switch,
    pub(crate) cheaper: Cheaper,
}

impl fmt::Debug for Shortcut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shortcut").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PhysicalOptimizerRule for Shortcut {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        if !self.switch.is_on() {
            return Ok(plan);
        }
        let cheaper = plan.transform_up(|plan| match (self.cheaper)(&plan)? {
            Some(cheaper) => Ok(Transformed::yes(cheaper)),
            None => Ok(Transformed::no(plan)),
        });
        cheaper.map(|cheaper| cheaper.data)
    }

    fn name(&self) -> &str {
        self.name
    }

    fn schema_check(&self) -> bool {
        true
    }
}
