//! Groups by several columns, some of them texts, in little memory.
//!
//! Where the library hands on groups that are over, and the last of their texts is long and the next ones are short, it begins a block of 2 MB
//! for each column of texts that lie apart from it (`Utf8View`; DataFusion 55, `take_buffers_with_whole_last`). Texts that lie in their column (`Utf8`) take what they are long: so
//! keys are made that, and the groups' texts what they were.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::DataFusionError;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, PhysicalGroupBy};
use datafusion::physical_plan::expressions::{CastExpr, Column};
use datafusion::physical_plan::projection::ProjectionExec;

use super::merged::Expr;

/// The same groups by texts in their columns; none where there are no others, or one key alone, for which the library takes no blocks.
pub(super) fn in_columns(node: &AggregateExec) -> Result<Option<AggregateExec>, DataFusionError> {
    let (keys, schema) = (node.group_expr().expr(), node.input().schema());
    let mut is_other = false;
    let keys = keys.iter().map(|(key, name)| {
        let key = match in_column(&key.data_type(&schema)?) {
            None => key.clone(),
            Some(kind) => {
                is_other = true;
                Arc::new(CastExpr::new(key.clone(), kind, None)) as Expr
            }
        };
        Ok((key, name.clone()))
    });
    let keys = keys.collect::<Result<Vec<_>, DataFusionError>>()?;
    if !is_other || keys.len() < 2 {
        return Ok(None);
    }
    let (groups, aggregates) = (PhysicalGroupBy::new_single(keys), node.aggr_expr().to_vec());
    let (filters, input) = (node.filter_expr().to_vec(), node.input().clone());
    AggregateExec::try_new(*node.mode(), groups, aggregates, filters, input, node.input_schema()).map(Some)
}

/// Groups whose columns are of these types again.
pub(super) fn as_they_were(
    grouped: Arc<dyn ExecutionPlan>,
    schema: &Schema,
) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    let shown = grouped.schema();
    let columns = schema.fields().iter().zip(shown.fields()).enumerate().map(|(place, (before, now))| {
        let column: Expr = Arc::new(Column::new(now.name(), place));
        let column = match before.data_type() == now.data_type() {
            true => column,
            false => Arc::new(CastExpr::new(column, before.data_type().clone(), None)),
        };
        (column, before.name().clone())
    });
    Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), grouped)?))
}

/// The type of texts that lie in their column; none of what does not lie apart from it.
pub(super) fn in_column(kind: &DataType) -> Option<DataType> {
    match kind {
        DataType::Utf8View => Some(DataType::Utf8),
        DataType::BinaryView => Some(DataType::Binary),
        _ => None,
    }
}
