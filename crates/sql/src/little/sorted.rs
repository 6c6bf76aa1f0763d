//! Rows in order, sorted in little memory: a plan node over [`Sorting`].

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties, apply_expression_roots,
};
use futures::{Stream, StreamExt, TryStreamExt};
use tokio::task::yield_now;

use super::sorting::{Sorted, Sorting, may_be_put_aside};
use crate::error::Error;
use crate::inner_node::over_children;
use crate::spill::SealedFiles;

/// The plan node: each part of its input in order, by itself.
pub(super) struct SortedAside {
    input: Arc<dyn ExecutionPlan>,
    ordering: LexOrdering,
    /// Whether -0 is 0 among keys, as in groups.
    folds_zero: bool,
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
        Some(SortedAside {
            input,
            ordering,
            folds_zero: false,
            fetch,
            spill,
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// The same for groups, of which -0 and 0 are one.
    pub(super) fn for_groups(self) -> Self {
        SortedAside { folds_zero: true, ..self }
    }

    /// Whether it gives on all rows that it is given.
    pub(super) fn gives_all_on(&self) -> bool {
        self.fetch.is_none()
    }

    /// The same over another input.
    fn over(&self, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let input = children.into_iter().next().ok_or_else(|| Error::Bug("nothing to sort".into()))?;
        let sorted = SortedAside::new(input, self.ordering.clone(), self.fetch, self.spill.clone());
        let sorted = sorted.ok_or_else(|| Error::Bug("rows that cannot be put aside".into()))?;
        Ok(Arc::new(SortedAside { folds_zero: self.folds_zero, ..sorted }))
    }

    /// All rows of a part, in order.
    fn stream(&self, part: usize, context: &Arc<TaskContext>) -> Result<SendableRecordBatchStream, DataFusionError> {
        let mut input = self.input.execute(part, context.clone())?;
        let metrics = BaselineMetrics::new(&self.metrics, part);
        let keys = (&self.ordering, self.folds_zero);
        let sorting = Sorting::new(&self.schema(), keys, self.fetch, self.spill.as_ref(), context)?;
        let sorted = async move {
            let mut sorting = sorting;
            while let Some(batch) = input.next().await {
                sorting.add(&batch?)?;
            }
            drop(input);
            while sorting.step()? {
                yield_now().await;
            }
            Ok::<_, DataFusionError>(batches(sorting.finish()?, metrics))
        };
        let batches = futures::stream::once(sorted).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}

/// Sorted rows, between any two batches of which whoever waits for the statement may call it off.
fn batches(sorted: Sorted, metrics: BaselineMetrics) -> impl Stream<Item = Result<RecordBatch, DataFusionError>> {
    futures::stream::try_unfold((sorted, metrics), |(mut sorted, metrics)| async move {
        yield_now().await;
        let batch = sorted.batch()?;
        Ok(batch.map(|batch| {
            metrics.record_output(batch.num_rows());
            (batch, (sorted, metrics))
        }))
    })
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

    over_children!();

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
