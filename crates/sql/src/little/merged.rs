//! Joins by merging rows that are in the order of their keys.
//!
//! The rule comes before orders are asked for: the library sorts what is to be merged, and sorts its rows anew where somebody above
//! wants another order than a join by a table of keys would have left as it was.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, JoinSide, JoinType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::expressions::Column;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;

use super::merge_key::MergeKey;
use super::null_aware::NullAware;
use super::sides::Sides;
use super::{is_at_hand, one_part};
use crate::unordered::Unordered;

pub(super) type Expr = Arc<dyn PhysicalExpr>;

/// The rule.
#[derive(Debug)]
pub(crate) struct Merging;

impl PhysicalOptimizerRule for Merging {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        plan.transform_up(|node| {
            let merged = match node.downcast_ref::<HashJoinExec>() {
                Some(join) if !is_at_hand(&node)? => merged(join)?,
                _ => None,
            };
            Ok(merged.map_or_else(|| Transformed::no(node), Transformed::yes))
        })
        .data()
    }

    fn name(&self) -> &str {
        "merging"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The same rows as a join by a table of keys has, in whatever order; none where the library cannot merge them.
fn merged(join: &HashJoinExec) -> Result<Option<Arc<dyn ExecutionPlan>>, DataFusionError> {
    // Of a full join with more conditions than keys the library takes columns for NOT NULL that are NULL (DataFusion 55).
    let is_other = match join.join_type() {
        JoinType::RightMark => true,
        JoinType::Full => join.filter().is_some(),
        _ => join.null_aware && (*join.join_type() != JoinType::LeftAnti || join.filter().is_some()),
    };
    // Keys are worked out more than once.
    let is_volatile = join.on().iter().any(|(left, right)| is_volatile(left) || is_volatile(right));
    if is_other || is_volatile || join.on().is_empty() || join.fetch().is_some() {
        return Ok(None);
    }
    let (left, right) = (side(join.left()), side(join.right()));
    let on = join.on().iter().map(|keys| Ok((key(&keys.0, &left.schema())?, key(&keys.1, &right.schema())?)));
    let on = on.collect::<Result<Vec<(Expr, Expr)>, DataFusionError>>()?;
    let (options, nulls) = (vec![options(); on.len()], join.null_equality());
    let sides = Sides::of(*join.join_type(), (join.left(), join.right()), join.filter().is_some())?;
    if let Sides::Exchanged { kind, there } = sides {
        let schemas = (left.schema(), right.schema());
        let filter = join.filter().map(|filter| left_first(&filter.swap())).transpose()?;
        let on = on.into_iter().map(|(left, right)| (right, left)).collect();
        let merged = Arc::new(SortMergeJoinExec::try_new(right, left, on, filter, kind, options, nulls)?);
        return shown(join, Sides::in_order(merged, (&schemas.0, &schemas.1), there)?).map(Some);
    }
    let filter = join.filter().map(left_first).transpose()?;
    let merged = SortMergeJoinExec::try_new(left, right.clone(), on, filter, *join.join_type(), options, nulls)?;
    let mut merged: Arc<dyn ExecutionPlan> = Arc::new(merged);
    if let (true, [keys]) = (join.null_aware, join.on()) {
        merged = Arc::new(NullAware::new(merged, right, keys.clone()));
    }
    shown(join, Arc::new(Unordered::new(merged))).map(Some)
}

/// A side of a join, which is sorted whatever order it may have: the library leaves out a sort by keys of which it knows that the first
/// determines the others, and then finds that the rows are not in their order (DataFusion 55).
fn side(input: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    Arc::new(Unordered::new(one_part(input)))
}

/// A key by which the library can merge.
fn key(key: &Expr, schema: &Schema) -> Result<Expr, DataFusionError> {
    Ok(match is_merged(&key.data_type(schema)?) {
        true => key.clone(),
        false => Arc::new(MergeKey::new(key.clone(), schema)?),
    })
}

/// A filter that names columns of the left side first. The library's merging join hands them over so, whatever the filter says, and
/// of a join whose sides were exchanged it takes one side's columns for the other's (DataFusion 55, `get_filter_columns`).
fn left_first(filter: &JoinFilter) -> Result<JoinFilter, DataFusionError> {
    let mut places: Vec<usize> = (0..filter.column_indices().len()).collect();
    places.sort_by_key(|place| filter.column_indices()[*place].side != JoinSide::Left);
    let indices: Vec<ColumnIndex> = places.iter().map(|place| filter.column_indices()[*place].clone()).collect();
    // Where a row finds no partner they are NULL while the filter is worked out, whatever the table says.
    let fields = places.iter().map(|place| filter.schema().field(*place).clone().with_nullable(true));
    let schema = Schema::new(fields.collect::<Vec<Field>>());
    let expression = filter.expression().clone().transform_up(|expr| {
        let Some(column) = expr.downcast_ref::<Column>() else { return Ok(Transformed::no(expr)) };
        let now = places.iter().position(|place| *place == column.index()).unwrap_or(column.index());
        let column: Expr = Arc::new(Column::new(column.name(), now));
        Ok(Transformed::yes(column))
    });
    Ok(JoinFilter::new(expression.data()?, indices, Arc::new(schema)))
}

/// The columns that the join shows, if those are not all.
fn shown(join: &HashJoinExec, merged: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    let Some(columns) = &join.projection else { return Ok(merged) };
    let schema = merged.schema();
    let columns = columns.iter().map(|column| {
        let name = schema.field(*column).name();
        (Arc::new(Column::new(name, *column)) as Expr, name.clone())
    });
    Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), merged)?))
}

fn options() -> SortOptions {
    SortOptions { descending: false, nulls_first: false }
}

/// Whether the library merges by keys of a type as it finds them in a table of keys. Not so floating-point numbers: it stumbles over
/// NaN, and of some types it knows nothing (DataFusion 55, `compare_join_arrays`).
fn is_merged(kind: &DataType) -> bool {
    use DataType::{
        Binary, BinaryView, Boolean, Date32, Date64, Decimal128, Int8, Int16, Int32, Int64, LargeBinary, LargeUtf8,
        Timestamp, UInt8, UInt16, UInt32, UInt64, Utf8, Utf8View,
    };
    match kind {
        Timestamp(_, zone) => zone.is_none(),
        Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Date32 | Date64 => true,
        Decimal128(..) | Utf8 | Utf8View | LargeUtf8 | Binary | BinaryView | LargeBinary => true,
        _ => false,
    }
}
