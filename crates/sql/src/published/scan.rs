//! Asking for a published table: a plan node whose rows are verified before the first of them is given.

use std::fmt;
use std::sync::Arc;

use counterfoil_relation::{Table, Test};
use datafusion::common::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, Partitioning, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SortOrderPushdownResult};

use super::asking::{Asking, stream};
use super::provider::Statement;
use super::{Planned, SortBy, VerifiedTable, Wanted};
use crate::error::Result;
use crate::leaf_node::leaf_node;

/// The plan node.
#[derive(Clone)]
pub(crate) struct PublishedScan {
    table: Arc<Table>,
    verified: Arc<dyn VerifiedTable>,
    wanted: Arc<Wanted>,
    planned: Planned,
    statement: Statement,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl PublishedScan {
    pub(super) fn plan(
        table: Arc<Table>,
        verified: Arc<dyn VerifiedTable>,
        wanted: Wanted,
        statement: Statement,
    ) -> Result<Self> {
        let (planned, properties) = (verified.plan(&wanted)?, properties(&wanted));
        let (wanted, metrics) = (Arc::new(wanted), ExecutionPlanMetricsSet::new());
        Ok(PublishedScan { table, verified, wanted, planned, statement, properties, metrics })
    }

    /// The same table with something else wanted of it.
    fn with(&self, wanted: Wanted) -> Result<Self> {
        Self::plan(self.table.clone(), self.verified.clone(), wanted, self.statement.clone())
    }

    /// The keys of an order, if all of them are columns.
    fn keys(&self, order: &[PhysicalSortExpr]) -> Option<Vec<SortBy>> {
        let key = |by: &PhysicalSortExpr| {
            let column = by.expr.downcast_ref::<Column>()?;
            Some(SortBy {
                column: *self.wanted.columns.get(column.index())?,
                is_descending: by.options.descending,
                nulls_first: by.options.nulls_first,
            })
        };
        order.iter().map(key).collect()
    }
}

/// One part, in the order that is wanted.
fn properties(wanted: &Wanted) -> Arc<PlanProperties> {
    let mut equivalence = EquivalenceProperties::new(wanted.schema.clone());
    let expression = |by: &SortBy| {
        let index = wanted.columns.iter().position(|column| *column == by.column)?;
        let column = Column::new(wanted.schema.field(index).name(), index);
        let options =
            datafusion::arrow::compute::SortOptions { descending: by.is_descending, nulls_first: by.nulls_first };
        Some(PhysicalSortExpr::new(Arc::new(column), options))
    };
    let order: Option<Vec<PhysicalSortExpr>> = wanted.sort.iter().map(expression).collect();
    if let Some(order) = order.and_then(LexOrdering::new) {
        equivalence.add_ordering(order);
    }
    let partitioning = Partitioning::UnknownPartitioning(1);
    let properties = PlanProperties::new(equivalence, partitioning, EmissionType::Incremental, Boundedness::Bounded);
    Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative))
}

impl fmt::Debug for PublishedScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishedScan").field("table", &self.table.name).finish()
    }
}

impl DisplayAs for PublishedScan {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |column: usize| self.table.columns[column].name.as_str();
        let names = |columns: &[usize]| columns.iter().map(|column| name(*column)).collect::<Vec<_>>().join(", ");
        write!(
            f,
            "Published: {}, {}, columns: [{}]",
            self.table.name,
            self.planned.words,
            names(&self.wanted.columns)
        )?;
        let mut tested = Vec::new();
        self.wanted.tests.iter().for_each(|test: &Test| test.columns(&mut tested));
        tested.sort_unstable();
        tested.dedup();
        if !tested.is_empty() {
            write!(f, ", tests: [{}]", names(&tested))?;
        }
        if !self.wanted.sort.is_empty() {
            let by = |by: &SortBy| format!("{}{}", name(by.column), if by.is_descending { " DESC" } else { "" });
            write!(f, ", sorted by: [{}]", self.wanted.sort.iter().map(by).collect::<Vec<_>>().join(", "))?;
        }
        self.wanted.limit.map_or(Ok(()), |limit| write!(f, ", limit: {limit}"))
    }
}

impl ExecutionPlan for PublishedScan {
    fn name(&self) -> &'static str {
        "PublishedScan"
    }

    leaf_node!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let PublishedScan { verified, wanted, statement, table, .. } = self.clone();
        let ask = move |asking: &mut Asking| {
            let answer = verified.ask(&wanted, statement.may_write, asking)?;
            if let Some(verdict) = answer.verdict {
                statement.verdicts.add(&table.name, verdict);
            }
            answer.note.into_iter().for_each(|note| statement.verdicts.note(note));
            Ok(answer.batches.into())
        };
        Ok(stream(self.wanted.schema.clone(), &context, metrics, ask))
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
    ) -> Result<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>, DataFusionError> {
        // Which rows a limit leaves is decided: by another order than this one, perhaps.
        let keys = self.keys(order).filter(|_| self.wanted.limit.is_none());
        let Some(sort) = keys else { return Ok(SortOrderPushdownResult::Unsupported) };
        let sorted = self.with(Wanted { sort, ..Wanted::clone(&self.wanted) })?;
        Ok(match sorted.planned.is_sorted {
            true => SortOrderPushdownResult::Exact { inner: Arc::new(sorted) },
            false => SortOrderPushdownResult::Unsupported,
        })
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        // Where it cannot be planned so, somebody else counts the rows.
        let limited = self.with(Wanted { limit, ..Wanted::clone(&self.wanted) }).ok()?;
        Some(Arc::new(limited))
    }

    fn fetch(&self) -> Option<usize> {
        self.wanted.limit
    }
}
