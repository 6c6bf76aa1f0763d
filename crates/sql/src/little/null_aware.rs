//! NOT IN as SQL has it: nothing is known to be outside of a list that has NULL, and NULL is outside of an empty list alone.
//!
//! ```text
//! rows of the list, read once: none  -> all rows that the anti join leaves
//!                              NULL  -> no row
//!                              other -> those that it leaves and whose key is not NULL
//! ```
//! The query library knows it of a table of keys in memory alone, which has the rows of the other side: all that are asked.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::compute::{filter_record_batch, is_not_null};
use datafusion::common::DataFusionError;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, apply_expression_roots};
use futures::{StreamExt, TryStreamExt};

use crate::error::Error;
use crate::inner_node::over_children;

/// The plan node.
#[derive(Debug)]
pub(super) struct NullAware {
    /// Rows that have no partner in the list.
    anti: Arc<dyn ExecutionPlan>,
    list: Arc<dyn ExecutionPlan>,
    /// What is looked for, in rows of the first, and in what, in rows of the second.
    keys: (Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>),
}

/// What a list has.
#[derive(Clone, Copy, PartialEq)]
enum List {
    Nothing,
    Null,
    Other,
}

impl NullAware {
    /// Both of them in one part.
    pub(super) fn new(
        anti: Arc<dyn ExecutionPlan>,
        list: Arc<dyn ExecutionPlan>,
        keys: (Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>),
    ) -> Self {
        NullAware { anti, list, keys }
    }

    fn over(&self, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let [anti, list] = <[_; 2]>::try_from(children).map_err(|_| Error::Bug("NOT IN without a list".into()))?;
        Ok(Arc::new(NullAware::new(anti, list, self.keys.clone())))
    }
}

/// Reads the list as far as it takes to know.
async fn looked_at(mut list: SendableRecordBatchStream, key: Arc<dyn PhysicalExpr>) -> Result<List, DataFusionError> {
    let mut found = List::Nothing;
    while let Some(batch) = list.try_next().await? {
        if batch.num_rows() == 0 {
            continue;
        }
        found = List::Other;
        if key.evaluate(&batch)?.into_array(batch.num_rows())?.logical_null_count() > 0 {
            return Ok(List::Null);
        }
    }
    Ok(found)
}

fn left(batch: &RecordBatch, key: &Arc<dyn PhysicalExpr>) -> Result<RecordBatch, DataFusionError> {
    let keys = key.evaluate(batch)?.into_array(batch.num_rows())?;
    Ok(filter_record_batch(batch, &is_not_null(&keys)?)?)
}

impl DisplayAs for NullAware {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NullAware: {} NOT IN {}", self.keys.0, self.keys.1)
    }
}

impl ExecutionPlan for NullAware {
    fn name(&self) -> &'static str {
        "NullAware"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.anti.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true, false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.anti, &self.list]
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion, DataFusionError>,
    ) -> Result<TreeNodeRecursion, DataFusionError> {
        apply_expression_roots([&self.keys.0, &self.keys.1], visit)
    }

    over_children!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        let list = self.list.execute(partition, context.clone())?;
        let anti = self.anti.execute(partition, context)?;
        let (key, key_of_list) = self.keys.clone();
        let rows = async move {
            let list = looked_at(list, key_of_list).await?;
            let rows = match list {
                List::Null => futures::stream::empty().boxed(),
                List::Nothing => anti.boxed(),
                List::Other => anti.map(move |batch| left(&batch?, &key)).boxed(),
            };
            Ok::<_, DataFusionError>(rows)
        };
        let rows = futures::stream::once(rows).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
