//! The functions as nodes of plans: one logical node and one physical operator for all of them.
//!
//! 1. The first columns of the input and of the output are the keys, the next is the time.
//! 2. The input comes in parts by key, each in order of keys and time: where a table is in that order, nothing is sorted;
//!    elsewhere the query library sorts, within the bound of working memory.
//! 3. The output is in the same order. It is made while the input is read, and waits where nobody takes it.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DFSchemaRef, DataFusionError};
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, OrderingRequirements, PhysicalSortExpr};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, InputDistributionRequirements,
    Partitioning, PhysicalExpr, PlanProperties,
};
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use tokio::sync::mpsc::Sender;

use super::gapfill::Gapfill;
use super::lttb::Lttb;
use super::m4::M4;
use super::resample::Resample;
use super::value_at::ValueAt;
use crate::error::Error;
use crate::inner_node::{no_expressions, over_children};
use crate::null_equal;

/// What is done with samples.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    Resample(Resample),
    ValueAt(ValueAt),
    Gapfill(Gapfill),
    Lttb(Lttb),
    M4(M4),
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Resample(inner) => inner.fmt(f),
            Operation::ValueAt(inner) => inner.fmt(f),
            Operation::Gapfill(inner) => inner.fmt(f),
            Operation::Lttb(inner) => inner.fmt(f),
            Operation::M4(inner) => inner.fmt(f),
        }
    }
}

/// An operation and how its input lies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Work {
    pub operation: Operation,
    /// Key columns.
    pub keys: usize,
    /// Columns by which the input is ordered: the keys, the time, and what tells apart what happens at one time.
    pub ordered: usize,
}

impl Work {
    fn show(&self, schema: &SchemaRef, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.operation)?;
        let keys: Vec<&str> = schema.fields()[..self.keys].iter().map(|field| field.name().as_str()).collect();
        write!(f, ", by: [{}]", keys.join(", "))
    }
}

/// The logical node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub work: Work,
    pub input: LogicalPlan,
    pub schema: DFSchemaRef,
}

impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.work.hash(state);
        self.input.hash(state);
    }
}

impl PartialOrd for Node {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for Node {
    fn name(&self) -> &str {
        "Historian"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    /// What is asked of the keys is asked of the samples: series that nobody wants are not read.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        self.schema.fields().iter().skip(self.work.keys).map(|field| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.work.show(self.schema.inner(), f)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self, DataFusionError> {
        let input = inputs.into_iter().next().ok_or_else(|| Error::Bug("a node without input".into()))?;
        Ok(Node { input, ..self.clone() })
    }

    fn necessary_children_exprs(&self, _: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![(0..self.input.schema().fields().len()).collect()])
    }
}

/// The query library's own planner, and one for our node.
#[derive(Debug)]
pub(crate) struct Planner;

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn datafusion::catalog::Session,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(Planner)]);
        planner.create_physical_plan(&null_equal::keyed(plan.clone())?, session).await
    }
}

#[async_trait]
impl ExtensionPlanner for Planner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn datafusion::catalog::Session,
        _context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>, DataFusionError> {
        let (Some(node), [input]) = (node.as_any().downcast_ref::<Node>(), inputs) else { return Ok(None) };
        let schema = node.schema.inner().clone();
        Ok(Some(Arc::new(Operator::new(node.work.clone(), schema, input.clone()))))
    }
}

/// The physical operator.
#[derive(Debug)]
pub(crate) struct Operator {
    pub work: Work,
    schema: SchemaRef,
    pub input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

fn column(schema: &SchemaRef, index: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(schema.field(index).name(), index))
}

/// Ascending, NULL last: as ORDER BY does.
fn order(schema: &SchemaRef, columns: usize) -> Vec<PhysicalSortExpr> {
    let options = SortOptions { descending: false, nulls_first: false };
    (0..columns).map(|index| PhysicalSortExpr::new(column(schema, index), options)).collect()
}

impl Operator {
    fn new(work: Work, schema: SchemaRef, input: Arc<dyn ExecutionPlan>) -> Self {
        // Keys stand where they stood. Parts made by other columns are none that could be told of the answer.
        let is_key = |expr: &Arc<dyn PhysicalExpr>| {
            expr.downcast_ref::<Column>().is_some_and(|column| column.index() < work.keys)
        };
        let partitioning = match input.output_partitioning() {
            Partitioning::Hash(by, parts) if by.iter().all(is_key) => Partitioning::Hash(by.clone(), *parts),
            other => Partitioning::UnknownPartitioning(other.partition_count()),
        };
        let equivalence = EquivalenceProperties::new_with_orderings(schema.clone(), [order(&schema, work.keys + 1)]);
        let properties =
            Arc::new(PlanProperties::new(equivalence, partitioning, input.pipeline_behavior(), input.boundedness()));
        Operator { work, schema, input, properties, metrics: ExecutionPlanMetricsSet::new() }
    }

    /// The same over another input.
    pub(crate) fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Operator {
        Operator::new(self.work.clone(), self.schema.clone(), input)
    }

    fn over(&self, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let input = children.into_iter().next().ok_or_else(|| Error::Bug("an operator without input".into()))?;
        Ok(Arc::new(self.with_input(input)))
    }
}

impl DisplayAs for Operator {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.work.show(&self.schema, f)
    }
}

impl ExecutionPlan for Operator {
    fn name(&self) -> &'static str {
        "Historian"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let keys: Vec<_> = (0..self.work.keys).map(|key| column(&self.input.schema(), key)).collect();
        InputDistributionRequirements::new(vec![match keys.is_empty() {
            true => Distribution::SinglePartition,
            false => Distribution::KeyPartitioned(keys),
        }])
    }

    /// Rows dealt out in turns would lose the order that they have; they go to their parts by key.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let order = order(&self.input.schema(), self.work.ordered);
        vec![datafusion::physical_expr::LexOrdering::new(order).map(OrderingRequirements::from)]
    }

    no_expressions!();

    over_children!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        let input = self.input.execute(partition, context.clone())?;
        let mut builder = RecordBatchReceiverStream::builder(self.schema.clone(), 1);
        let output = Output {
            schema: self.schema.clone(),
            sender: builder.tx(),
            rows_max: context.session_config().batch_size().max(1),
            metrics: BaselineMetrics::new(&self.metrics, partition),
            memory: MemoryConsumer::new(format!("Historian[{partition}]")).register(context.memory_pool()),
        };
        let work = self.work.clone();
        builder.spawn(async move {
            match &work.operation {
                Operation::Resample(operation) => operation.run(work.keys, input, output).await,
                Operation::ValueAt(operation) => operation.run(work.keys, input, output).await,
                Operation::Gapfill(operation) => operation.run(work.keys, input, output).await,
                Operation::Lttb(operation) => operation.run(work.keys, input, output).await,
                Operation::M4(operation) => operation.run(work.keys, input, output).await,
            }
        });
        Ok(builder.build())
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Where an operation puts its rows.
pub(crate) struct Output {
    /// What the rows look like.
    pub schema: SchemaRef,
    /// After so many rows a batch is handed over.
    pub rows_max: usize,
    /// What is kept across batches is taken from the bound of working memory.
    pub memory: MemoryReservation,
    sender: Sender<Result<RecordBatch, DataFusionError>>,
    metrics: BaselineMetrics,
}

impl Output {
    /// Hands a batch over, and waits until there is room for it.
    pub(crate) async fn send(&self, batch: RecordBatch) -> Result<(), DataFusionError> {
        self.metrics.record_output(batch.num_rows());
        let sent = self.sender.send(Ok(batch)).await;
        sent.map_err(|_| Error::Interrupted.into())
    }
}
