//! A scan of the rows that an index named while the plan ran, in the place of one that was planned to read the whole table.

use std::fmt;
use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::EmptyRecordBatchStream;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::leaf_node::leaf_node;
use crate::scan::TableScan;

/// A scan of what an index names, in as many parts as the one in whose place it is.
#[derive(Debug)]
pub(crate) struct NarrowScan {
    scan: TableScan,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl NarrowScan {
    /// `whole`: the scan in whose place it is.
    pub(crate) fn new(scan: TableScan, whole: &TableScan) -> Self {
        NarrowScan { scan, properties: whole.properties().clone(), metrics: ExecutionPlanMetricsSet::new() }
    }
}

/// A part of a scan that may have fewer of them than the one in whose place it is.
pub(crate) fn part(
    scan: &TableScan,
    partition: usize,
    context: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream, DataFusionError> {
    match partition < scan.properties().output_partitioning().partition_count() {
        true => scan.execute(partition, context),
        false => Ok(Box::pin(EmptyRecordBatchStream::new(scan.schema()))),
    }
}

impl DisplayAs for NarrowScan {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scan.fmt_as(kind, f)
    }
}

impl ExecutionPlan for NarrowScan {
    fn name(&self) -> &'static str {
        "NarrowScan"
    }

    leaf_node!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        part(&self.scan, partition, context)
    }
}
