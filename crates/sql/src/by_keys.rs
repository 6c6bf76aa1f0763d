//! `WHERE key IN (SELECT ...)` and its like: a join whose one side turns out to have few rows, and whose other side is a table of which an
//! index says where their keys are.
//!
//! ```text
//! one side is begun    it ends within so many rows    the index is asked for their keys, and the join reads what it names
//!                      it goes on                     the join reads the whole table, and of this side first the rows that came
//! ```
//! The query library plans a join by how many rows it expects and reads a table to its end however few of it are met (what tells scans of
//! keys while a plan runs is left out here: planner.rs). This rule comes last, over joins as they are; each of them still compares what it
//! is given. Between the join and the table there may be what lets a row through, or not, whatever other rows there are: and groups by the
//! key, of which whole ones are left out.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, JoinType, NullEquality, ScalarValue};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, ident, lit};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::joins::{HashJoinExec, JoinOnRef, SortMergeJoinExec};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties, replace_children_if_necessary,
};
use futures::future::Either;
use futures::{StreamExt, TryStreamExt, future, stream};
use parking_lot::Mutex;
use tokio::sync::{Notify, OnceCell};

use crate::begun_side::{BegunSide, Part};
use crate::error::Result;
use crate::filter;
use crate::inner_node::{no_expressions, over_children};
use crate::narrow_scan::NarrowScan;
use crate::scan::TableScan;
use crate::scan_below::{over_scan, place_of, scan_below};
use crate::types;

/// So few rows of the side that is begun may be looked for: their keys are a list that an index is asked for. They may take this part of the
/// memory, which others want.
const ROWS_MAX: usize = 1024;
const MEMORY_SHARE: usize = 16;
/// Nodes that read what a statement has said, or a recursive query has found last.
const AT_HAND: [&str; 4] = ["DataSourceExec", "EmptyExec", "PlaceholderRowExec", "WorkTableExec"];

/// The plan node, over the join.
#[derive(Debug)]
struct ByKeys {
    join: Arc<dyn ExecutionPlan>,
    met: Met,
    /// The index that is asked, for people.
    index: String,
    running: Mutex<Running>,
    /// As it ran, for people.
    ran: Arc<OnceLock<Arc<dyn ExecutionPlan>>>,
}

/// How two sides meet.
#[derive(Clone, Debug)]
struct Met {
    /// The side that is begun: the first or the second.
    begun: usize,
    keys: Vec<Key>,
}

/// What is compared, as one side says it, and the column of the other one's table, by its place.
type Key = (Arc<dyn PhysicalExpr>, usize);
/// The join as it runs, or why it does not.
type Rebuilt = Result<Arc<dyn ExecutionPlan>, Arc<DataFusionError>>;

/// A run of the plan: all parts of a join share what it keeps, and so they share what was begun.
#[derive(Default)]
struct Running {
    parts: HashSet<usize>,
    join: Arc<OnceCell<Rebuilt>>,
    begun: Arc<Mutex<Option<Vec<SendableRecordBatchStream>>>>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("parts", &self.parts).finish_non_exhaustive()
    }
}

impl ByKeys {
    /// The same over another join, as rules and plans that run again make it.
    fn over(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        // What ran is not what is to run.
        let join = match self.ran.get() {
            Some(_) => Some(reset_plan_states(self.join.clone())?),
            None => children.into_iter().next(),
        };
        let join = join.ok_or_else(|| DataFusionError::Internal("a join without itself".into()))?;
        // Where it is no longer such a join it is what it is.
        Ok(by_keys(&join).map_or(join, |keyed| Arc::new(keyed)))
    }

    /// Begins with the side that the join keeps, in the first part that is asked for.
    fn begin(&self, part: usize, context: &Arc<TaskContext>) -> Result<Running, DataFusionError> {
        let mut running = self.running.lock();
        if !running.parts.insert(part) {
            *running = Running { parts: HashSet::from([part]), ..Running::default() };
        }
        if running.parts.len() == 1 {
            let kept = self.join.children()[self.met.begun];
            let parts = 0..kept.output_partitioning().partition_count();
            let streams = parts.map(|part| kept.execute(part, context.clone())).collect::<Result<Vec<_>, _>>()?;
            *running.begun.lock() = Some(streams);
        }
        Ok(Running { parts: HashSet::new(), join: running.join.clone(), begun: running.begun.clone() })
    }
}

impl DisplayAs for ByKeys {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ByKeys: index {} is asked if there are few", self.index)
    }
}

impl ExecutionPlan for ByKeys {
    fn name(&self) -> &'static str {
        "ByKeys"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.join.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![self.ran.get().unwrap_or(&self.join)]
    }

    no_expressions!();
    over_children!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        let Running { join: rebuilt, begun, .. } = self.begin(partition, &context)?;
        let (join, met, schema) = (self.join.clone(), self.met.clone(), self.join.schema());
        let ran = self.ran.clone();
        let rows = async move {
            let join = rebuilt.get_or_init(|| async {
                let begun = begun.lock().take().ok_or_else(|| DataFusionError::Execution("called off".into()));
                met.over(&join, begun?, &context).await.map_err(Arc::new)
            });
            let join = join.await.clone().map_err(DataFusionError::Shared)?;
            ran.get_or_init(|| join.clone());
            join.execute(partition, context)
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream::once(rows).try_flatten())))
    }
}

impl Met {
    /// The join over what was begun of one side, and of the other what it meets, if that is little.
    async fn over(
        &self,
        join: &Arc<dyn ExecutionPlan>,
        begun: Vec<SendableRecordBatchStream>,
        context: &Arc<TaskContext>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let mut sides: Vec<_> = join.children().into_iter().cloned().collect();
        let first = First::new(context);
        let mut parts = future::try_join_all(begun.into_iter().map(|part| first.rows(part, context))).await?;
        if parts.iter().all(|part| part.rest.is_none()) {
            if let Some(narrow) = self.named(&sides[1 - self.begun], &parts)? {
                sides[1 - self.begun] = over_scan(&sides[1 - self.begun], &Arc::new(narrow))?;
            }
        } else {
            // They are many, and others want the memory.
            parts.iter_mut().flat_map(|part| &mut part.batches).for_each(|(_, memory)| *memory = None);
        }
        sides[self.begun] = Arc::new(BegunSide::of(&sides[self.begun], parts));
        replace_children_if_necessary(join.clone(), sides)
    }

    /// The scan of the rows that an index names for what was begun; none where no index names few.
    fn named(&self, other: &Arc<dyn ExecutionPlan>, parts: &[Part]) -> Result<Option<NarrowScan>, DataFusionError> {
        let Some(whole) = scan_below(other) else { return Ok(None) };
        let table = &whole.target().table;
        let mut tests = whole.tests().to_vec();
        for (key, column) in &self.keys {
            let kind = types::arrow(&table.columns[*column].kind);
            let mut values = HashSet::new();
            for (batch, _) in parts.iter().flat_map(|part| &part.batches) {
                values.extend(values_of(&**key, &kind, batch)?);
            }
            let met = match values.is_empty() {
                true => lit(false),
                false => {
                    let values = values.into_iter().map(|value| Expr::Literal(value, None)).collect();
                    ident(&table.columns[*column].name).in_list(values, false)
                }
            };
            tests.extend(filter::compile(&met, table));
        }
        let scan = whole.with_tests(tests)?;
        let is_narrow = scan.named_rows().is_some();
        Ok(is_narrow.then(|| NarrowScan::new(scan, whole)))
    }
}

/// The rows that come first, of all parts of a side.
struct First {
    /// How many there are, and their bytes.
    came: Mutex<(usize, usize)>,
    bytes_max: usize,
    /// Told when there are too many: no part is waited for any longer.
    is_full: Notify,
}

impl First {
    fn new(context: &TaskContext) -> Self {
        let bytes_max = match context.memory_pool().memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / MEMORY_SHARE,
            _ => usize::MAX,
        };
        First { came: Mutex::default(), bytes_max, is_full: Notify::new() }
    }

    /// Reads a part as long as there are few rows in all of them, and memory for them.
    async fn rows(
        &self,
        mut part: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<Part, DataFusionError> {
        let mut batches = Vec::new();
        loop {
            let mut full = std::pin::pin!(self.is_full.notified());
            full.as_mut().enable();
            if self.came.lock().0 > ROWS_MAX {
                return Ok(Part { batches, rest: Some(part) });
            }
            let batch = match future::select(full, part.next()).await {
                Either::Left(_) => continue,
                Either::Right((batch, _)) => batch.transpose()?,
            };
            let Some(batch) = batch else { return Ok(Part { batches, rest: None }) };
            let memory = self.count(&batch, context);
            batches.push((batch, memory));
        }
    }

    /// Counts a batch; none where there is no memory for it, and it goes on with what it has.
    fn count(&self, batch: &RecordBatch, context: &TaskContext) -> Option<MemoryReservation> {
        let (bytes, mut came) = (batch.get_array_memory_size(), self.came.lock());
        let memory = MemoryConsumer::new("keys that are met").register(context.memory_pool());
        let has_room = came.1.saturating_add(bytes) <= self.bytes_max && memory.try_grow(bytes).is_ok();
        came.0 += if has_room { batch.num_rows() } else { ROWS_MAX + 1 };
        came.1 = came.1.saturating_add(bytes);
        if came.0 > ROWS_MAX {
            self.is_full.notify_waiters();
        }
        has_room.then_some(memory)
    }
}

/// What a key is in each row, as a value of the column that it meets. Where it is NULL, or a wider integer than the column has, it is equal to
/// nothing there.
fn values_of(
    key: &dyn PhysicalExpr,
    kind: &DataType,
    batch: &RecordBatch,
) -> Result<Vec<ScalarValue>, DataFusionError> {
    let column = key.evaluate(batch)?.into_array(batch.num_rows())?;
    let column = if column.data_type().is_integer() { cast(&column, kind)? } else { column };
    let there = (0..column.len()).filter(|row| !column.is_null(*row));
    there.map(|row| ScalarValue::try_from_array(&column, row)).collect()
}

/// The rule, behind all others.
#[derive(Debug)]
pub(crate) struct Keyed;

impl PhysicalOptimizerRule for Keyed {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        plan.transform_up(|node| match by_keys(&node) {
            Some(keyed) => Ok(Transformed::yes(Arc::new(keyed))),
            None => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "by_keys"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A join of two sides by what is equal.
struct Join<'a> {
    sides: [&'a Arc<dyn ExecutionPlan>; 2],
    on: JoinOnRef<'a>,
    kind: JoinType,
    /// The side that the library holds to be the smaller one.
    smaller: usize,
    /// Whether both are sorted before they are merged.
    reads_both: bool,
}

impl<'a> Join<'a> {
    fn of(node: &'a Arc<dyn ExecutionPlan>) -> Option<Self> {
        let (join, nulls) = if let Some(join) = node.downcast_ref::<HashJoinExec>() {
            // NOT IN wants to know of NULLs that no key meets.
            if join.null_aware {
                return None;
            }
            let sides = [join.left(), join.right()];
            (
                Join { sides, on: join.on(), kind: *join.join_type(), smaller: 0, reads_both: false },
                join.null_equality(),
            )
        } else {
            // The one whose rows of a key are kept.
            let join = node.downcast_ref::<SortMergeJoinExec>()?;
            let sides = [join.left(), join.right()];
            (Join { sides, on: join.on(), kind: join.join_type(), smaller: 1, reads_both: true }, join.null_equality())
        };
        (nulls == NullEquality::NullEqualsNothing).then_some(join)
    }

    /// Whether no row of a side is wanted that meets none of the other one.
    fn is_met(&self, side: usize) -> bool {
        let (first, second) = self.kind.on_lr_is_preserved();
        [first, second][side]
    }

    /// Whether a side is read before the first row comes anyhow, or is soon read: whoever wants one row alone waits for no more.
    fn begins_anyhow(&self, side: usize) -> bool {
        side == self.smaller || self.reads_both || is_surely_few(self.sides[side])
    }

    /// What is compared where one side is begun, and the index of the other one's table.
    fn keys(&self, begun: usize) -> Option<(Vec<Key>, String)> {
        let other = self.sides[1 - begun];
        let scan = scan_below(other).filter(|scan| !scan.is_of_few() && scan.fetch().is_none())?;
        let table = &scan.target().table;
        let compared = self.on.iter().map(|(first, second)| if begun == 0 { (first, second) } else { (second, first) });
        let keys: Vec<_> = compared.filter_map(|(key, met)| Some((key.clone(), place_of(met, other)?))).collect();
        let leads =
            |column: usize| table.indexes.iter().find(|index| index.columns.first() == Some(&table.columns[column].id));
        let index = keys.iter().find_map(|(_, column)| leads(*column))?.name.clone();
        Some((keys, index))
    }
}

/// Whether a side reads nothing but what is at hand, and tables of few rows.
fn is_surely_few(side: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some(scan) = side.downcast_ref::<TableScan>() {
        return scan.is_of_few();
    }
    let below = side.children();
    match below.is_empty() {
        true => AT_HAND.contains(&side.name()),
        false => below.into_iter().all(is_surely_few),
    }
}

/// The node over a join of which one side reads a whole table with an index of what is compared, and no row of it is wanted that meets none of
/// the other side. The smaller side is begun, if it may be.
fn by_keys(node: &Arc<dyn ExecutionPlan>) -> Option<ByKeys> {
    let join = Join::of(node)?;
    let may_be_begun = [join.smaller, 1 - join.smaller].into_iter();
    let may_be_begun = may_be_begun.filter(|side| join.is_met(1 - side) && join.begins_anyhow(*side));
    let (begun, (keys, index)) = may_be_begun.into_iter().find_map(|side| Some((side, join.keys(side)?)))?;
    Some(ByKeys { join: node.clone(), met: Met { begun, keys }, index, running: Mutex::default(), ran: Arc::default() })
}
