//! `WHERE id = (SELECT ...)`: a scan whose index is asked when the subquery has said for what.
//!
//! The query library answers a subquery that is not of the query around it once, before anything else, and compares its value with every row
//! (DataFusion 55, `ScalarSubqueryExec`). When a part of this scan is begun the value is known, and if an index names few rows that have it
//! these are read; else what the scan would have read. The condition above it stays.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{ColumnarValue, Expr, Operator, ident};
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column};
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::error::Result;
use crate::filter;
use crate::leaf_node::leaf_node;
use crate::narrow_scan;
use crate::scan::{Output, TableScan};

/// The plan node.
#[derive(Debug)]
struct LateScan {
    scan: TableScan,
    /// The index that is asked, for people.
    index: String,
    /// Columns, by their places in the table, and what they are to be equal to.
    sought: Vec<(usize, Arc<dyn PhysicalExpr>)>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl LateScan {
    /// The scan with the values that are known by now among its tests. It is planned for each part: a plan may run several times, with other
    /// values.
    fn known(&self) -> Result<TableScan> {
        let table = &self.scan.target().table;
        let mut tests = self.scan.tests().to_vec();
        for (column, value) in &self.sought {
            let Ok(ColumnarValue::Scalar(value)) = value.evaluate(&RecordBatch::new_empty(self.scan.schema())) else {
                continue;
            };
            let equal = ident(&table.columns[*column].name).eq(Expr::Literal(value, None));
            tests.extend(filter::compile(&equal, table));
        }
        self.scan.with_tests(tests)
    }
}

impl DisplayAs for LateScan {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index: {} when its value is known, else ", self.index)?;
        self.scan.fmt_as(kind, f)
    }
}

impl ExecutionPlan for LateScan {
    fn name(&self) -> &'static str {
        "LateScan"
    }

    leaf_node!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        let known = self.known()?;
        // What an index names is one part.
        narrow_scan::part(&known, partition, context)
    }
}

/// The rule, behind the ones that make joins and counts of scans.
#[derive(Debug)]
pub(crate) struct Late;

impl PhysicalOptimizerRule for Late {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        plan.transform_up(|node| {
            let late = node.downcast_ref::<FilterExec>().and_then(late);
            match late {
                Some(late) => {
                    let over = datafusion::physical_plan::replace_children_if_necessary(node, vec![Arc::new(late)])?;
                    Ok(Transformed::yes(over))
                }
                None => Ok(Transformed::no(node)),
            }
        })
        .data()
    }

    fn name(&self) -> &str {
        "late_scan"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What a filter reads, if that is a whole table of which it wants rows with what a subquery says in an index's first column.
fn late(filter: &FilterExec) -> Option<LateScan> {
    let scan = filter.input().downcast_ref::<TableScan>().filter(|scan| !scan.is_of_few() && scan.fetch().is_none())?;
    let table = &scan.target().table;
    let sought: Vec<_> =
        split_conjunction(filter.predicate()).into_iter().filter_map(|condition| sought(condition, scan)).collect();
    let leads =
        |column: usize| table.indexes.iter().find(|index| index.columns.first() == Some(&table.columns[column].id));
    let index = sought.iter().find_map(|(column, _)| leads(*column))?.name.clone();
    let (scan, properties) = (scan.clone(), scan.properties().clone());
    Some(LateScan { scan, index, sought, properties, metrics: ExecutionPlanMetricsSet::new() })
}

/// The column, by its place in the table, that a condition wants to be equal to what a subquery says.
fn sought(condition: &Arc<dyn PhysicalExpr>, scan: &TableScan) -> Option<(usize, Arc<dyn PhysicalExpr>)> {
    let equal = condition.downcast_ref::<BinaryExpr>().filter(|equal| *equal.op() == Operator::Eq)?;
    let (column, value) = [(equal.left(), equal.right()), (equal.right(), equal.left())]
        .into_iter()
        .find_map(|(column, value)| Some((column_of(column, scan)?, value)))?;
    value.downcast_ref::<ScalarSubqueryExpr>()?;
    match scan.output().get(column.index())? {
        Output::Column(place) => Some((*place, value.clone())),
        Output::RowId => None,
    }
}

/// The column that a side of a comparison is, also where it was made a wider integer: as many numbers are equal to it.
fn column_of<'a>(side: &'a Arc<dyn PhysicalExpr>, scan: &TableScan) -> Option<&'a Column> {
    let Some(cast) = side.downcast_ref::<CastExpr>() else { return side.downcast_ref::<Column>() };
    let column = cast.expr().downcast_ref::<Column>()?;
    let is_integer = scan.schema().field(column.index()).data_type().is_integer() && cast.cast_type().is_integer();
    is_integer.then_some(column)
}
