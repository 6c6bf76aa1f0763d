//! Rows in order, sorted in little memory: a plan node over [`Sorting`].

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties, apply_expression_roots,
};
use futures::StreamExt;

use super::sorting::{Sorting, may_be_put_aside};
use crate::error::Error;
use crate::spill::SealedFiles;

/// The plan node: each part of its input in order, by itself.
pub(super) struct SortedAside {
    input: Arc<dyn ExecutionPlan>,
    ordering: LexOrdering,
    /// Rows wanted, at most.
    fetch: Option<usize>,
    spill: Option<Arc<SealedFiles>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl SortedAside {
    /// None where rows of such columns cannot be put aside.
    pub(super) fn new(
        input: Arc<dyn ExecutionPlan>,
        ordering: LexOrdering,
        fetch: Option<usize>,
        spill: Option<Arc<SealedFiles>>,
    ) -> Option<Self> {
        if !may_be_put_aside(&input.schema(), &ordering) {
            return None;
        }
        let mut equivalence = input.equivalence_properties().clone();
        equivalence.reorder(ordering.clone()).ok()?;
        let parts = input.output_partitioning().clone();
        let properties = Arc::new(PlanProperties::new(equivalence, parts, EmissionType::Final, Boundedness::Bounded));
        Some(SortedAside { input, ordering, fetch, spill, properties, metrics: ExecutionPlanMetricsSet::new() })
    }

    /// The same over another input.
    fn over(&self, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let input = children.into_iter().next().ok_or_else(|| Error::Bug("nothing to sort".into()))?;
        let sorted = SortedAside::new(input, self.ordering.clone(), self.fetch, self.spill.clone());
        Ok(Arc::new(sorted.ok_or_else(|| Error::Bug("rows that cannot be put aside".into()))?))
    }

    /// All rows of a part, in order.
    fn stream(&self, part: usize, context: &Arc<TaskContext>) -> Result<SendableRecordBatchStream, DataFusionError> {
        let mut input = self.input.execute(part, context.clone())?;
        let metrics = BaselineMetrics::new(&self.metrics, part);
        let sorting = Sorting::new(&self.schema(), &self.ordering, self.fetch, self.spill.as_ref(), context)?;
        let sorted = async move {
            let mut sorting = sorting;
            while let Some(batch) = input.next().await {
                sorting.add(&batch?)?;
            }
            drop(input);
            Ok::<_, DataFusionError>(sorting.finish()?)
        };
        let batches = futures::stream::once(sorted).flat_map(move |sorted| {
            let metrics = metrics.clone();
            let batches = match sorted {
                Ok(sorted) => sorted.map(|batch| batch.map_err(DataFusionError::from)).left_stream(),
                Err(error) => futures::stream::iter([Err(error)]).right_stream(),
            };
            batches.inspect(move |batch| batch.iter().for_each(|batch| metrics.record_output(batch.num_rows())))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}

impl fmt::Debug for SortedAside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SortedAside").field("order", &self.ordering.to_string()).finish_non_exhaustive()
    }
}

impl DisplayAs for SortedAside {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SortedAside: order: [{}]", self.ordering)?;
        self.fetch.map_or(Ok(()), |rows| write!(f, ", limit: {rows}"))
    }
}

impl ExecutionPlan for SortedAside {
    fn name(&self) -> &'static str {
        "SortedAside"
    }

    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion, DataFusionError>,
    ) -> Result<TreeNodeRecursion, DataFusionError> {
        apply_expression_roots(self.ordering.iter().map(|key| &key.expr), visit)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        self.over(children)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        self.over(children)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        self.stream(partition, &context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
