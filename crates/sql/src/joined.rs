//! Reading rows of a table together with the rows that they join along foreign keys: a plan node.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use counterfoil_relation::{
    self as relation, Candidates, Condition, JoinedRows, NO_ROW, RowId, Selection, Side, Source, Table,
};
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::{DataFusionError, Statistics};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, RecordOutput};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;

use crate::error::{Error, Result};
use crate::leaf_node::{leaf_node, properties};
use crate::rows;
use crate::running::Hold;
use crate::scan::{INLINE_ROWS_MAX, Target};
use crate::steps::{Step, Steps};

/// Rows of the root that a thread reads at a time, at most: a few milliseconds, in which it is worth while to wake it. And about how many
/// bytes they have, at most.
const PIECE_ROWS: u64 = 4096;
const PIECE_BYTES: u64 = 1 << 20;

/// A column of one of the tables of a tree of joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The table, by its place among the leaves.
    pub(crate) leaf: usize,
    /// The column's place in the table.
    pub(crate) column: usize,
}

/// The plan node.
#[derive(Clone)]
pub(crate) struct JoinedScan {
    target: Target,
    leaves: Arc<Vec<Source>>,
    /// What must be true besides, of rows of several of them.
    conditions: Arc<Vec<Condition>>,
    output: Arc<Vec<Place>>,
    schema: SchemaRef,
    /// Rows of the root that come into question.
    ids: Arc<Vec<RowId>>,
    /// The indexes that named them.
    indexes: Vec<String>,
    limit: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl JoinedScan {
    /// Reads candidates of the target's table, which is one of the leaves, and what they join.
    pub(crate) fn new(
        target: Target,
        (leaves, conditions): (Vec<Source>, Vec<Condition>),
        output: Vec<Place>,
        schema: SchemaRef,
        candidates: Candidates,
    ) -> Self {
        let properties = properties(&schema, 1);
        JoinedScan {
            target,
            leaves: Arc::new(leaves),
            conditions: Arc::new(conditions),
            output: Arc::new(output),
            schema,
            ids: Arc::new(candidates.rows),
            indexes: candidates.by,
            limit: None,
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The same scan, of so many rows at most.
    pub(crate) fn with_limit(self, limit: Option<usize>) -> Self {
        JoinedScan { limit, ..self }
    }

    /// Begins to read, so many rows of the root at a time, on so many threads.
    pub(crate) fn stream(
        &self,
        (step_rows, threads): (usize, usize),
        hold: Hold,
        named: Option<MemoryReservation>,
    ) -> SendableRecordBatchStream {
        let metrics = BaselineMetrics::new(&self.metrics, 0);
        let reading = Reading {
            target: self.target.clone(),
            leaves: self.leaves.clone(),
            conditions: self.conditions.clone(),
            columns: self.columns(),
            output: self.output.clone(),
            schema: self.schema.clone(),
            ids: self.ids.clone(),
            _named: named,
        };
        let is_soon_done = self.ids.len() as u64 <= INLINE_ROWS_MAX;
        let step_rows = step_rows.max(1);
        if threads > 1 && !is_soon_done && self.limit.is_none() {
            return reading.on_threads((step_rows.min(self.piece_rows()), threads), hold, metrics);
        }
        let rows_left = self.limit.unwrap_or(usize::MAX);
        let work = Work { reading, next: 0, rows_left, step_rows };
        Steps::stream(work, hold, is_soon_done, metrics, self.schema.clone())
    }

    /// Rows that are worth while for a thread, and not too much of its memory.
    fn piece_rows(&self) -> usize {
        let Target { relations, snapshot, table } = &self.target;
        // Where that cannot be told, reading will not go better.
        let row_bytes = relations.row_bytes(snapshot, table).unwrap_or(PIECE_BYTES).max(1);
        (PIECE_BYTES / row_bytes).clamp(1, PIECE_ROWS) as usize
    }

    /// For each leaf the columns whose values are needed: those shown and those tested.
    fn columns(&self) -> Vec<Vec<usize>> {
        let said = self.said();
        let of_leaf = |(number, leaf): (usize, &Source)| {
            let said = said.iter().filter(|place| place.source == number).map(|place| place.column);
            let shown = self.output.iter().filter(|place| place.leaf == number).map(|place| place.column);
            let mut columns: Vec<usize> = shown.chain(leaf.tested_columns()).chain(said).collect();
            columns.sort_unstable();
            columns.dedup();
            columns
        };
        self.leaves.iter().enumerate().map(of_leaf).collect()
    }

    /// The columns that conditions on several tables look at.
    fn said(&self) -> Vec<relation::Place> {
        let mut places = Vec::new();
        self.conditions.iter().for_each(|condition| condition.places(&mut places));
        places.sort_unstable();
        places.dedup();
        places
    }
}

impl fmt::Debug for JoinedScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinedScan").field("table", &self.target.table.name).finish()
    }
}

/// The foreign keys of a path, by the columns that reference.
fn described(root: &Table, leaf: &Source) -> String {
    let join = leaf.path.and_then(|path| root.joins.get(path));
    let key = join.and_then(|join| root.foreign_key(join.steps.first()?.key));
    let columns = key.iter().flat_map(|key| &key.columns).filter_map(|id| root.position(*id));
    let columns: Vec<&str> = columns.map(|place| root.columns[place].name.as_str()).collect();
    let further = match join.map_or(0, |join| join.steps.len()) {
        0 | 1 => String::new(),
        steps => format!(" and {} more", steps - 1),
    };
    let or_none = if leaf.is_optional { " or none" } else { "" };
    format!("{}{or_none} by {}{further}", leaf.table.name, columns.join(", "))
}

impl DisplayAs for JoinedScan {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = &self.target.table;
        let joined = self.leaves.iter().filter(|leaf| leaf.path.is_some()).map(|leaf| described(root, leaf));
        write!(f, "Join along foreign keys: {} to {}", root.name, joined.collect::<Vec<_>>().join("; "))?;
        write!(f, ", indexes: [{}] ({} candidates of {})", self.indexes.join(", "), self.ids.len(), root.name)?;
        let shown = self.output.iter().map(|place| {
            let table = &self.leaves[place.leaf].table;
            format!("{}.{}", table.name, table.columns[place.column].name)
        });
        write!(f, ", columns: [{}]", shown.collect::<Vec<_>>().join(", "))?;
        let mut tested = Vec::new();
        let said = self.said();
        for (number, leaf) in self.leaves.iter().enumerate() {
            let mut columns = leaf.tested_columns();
            columns.extend(said.iter().filter(|place| place.source == number).map(|place| place.column));
            columns.sort_unstable();
            columns.dedup();
            let name = |column: &usize| format!("{}.{}", leaf.table.name, leaf.table.columns[*column].name);
            tested.extend(columns.iter().map(name));
        }
        if tested.is_empty() { Ok(()) } else { write!(f, ", tests: [{}]", tested.join(", ")) }
    }
}

impl ExecutionPlan for JoinedScan {
    fn name(&self) -> &'static str {
        "JoinedScan"
    }

    leaf_node!();

    fn execute(
        &self,
        _partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        let named = MemoryConsumer::new("JoinedScan").register(context.memory_pool());
        named.try_grow(self.ids.len() * size_of::<RowId>())?;
        let config = context.session_config();
        let pace = (config.batch_size(), config.target_partitions());
        Ok(self.stream(pace, context, Some(named)))
    }

    fn statistics_from_inputs(
        &self,
        _inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>, DataFusionError> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        if args.partition().is_none() {
            statistics.num_rows = Precision::Inexact(self.ids.len());
        }
        Ok(Arc::new(statistics))
    }
}

/// What is read, and how it is shown.
struct Reading {
    target: Target,
    leaves: Arc<Vec<Source>>,
    conditions: Arc<Vec<Condition>>,
    /// For each leaf the columns whose values are needed.
    columns: Vec<Vec<usize>>,
    output: Arc<Vec<Place>>,
    schema: SchemaRef,
    ids: Arc<Vec<RowId>>,
    /// The memory of `ids`, where it is counted.
    _named: Option<MemoryReservation>,
}

/// A scan under way, step by step.
struct Work {
    reading: Reading,
    next: usize,
    rows_left: usize,
    step_rows: usize,
}

impl Step for Work {
    fn step(&mut self) -> Result<Option<RecordBatch>> {
        let end = (self.next + self.step_rows).min(self.reading.ids.len());
        if self.next == end || self.rows_left == 0 {
            return Ok(None);
        }
        let batch = self.reading.batch(self.next..end)?;
        self.next = end;
        let batch = batch.slice(0, batch.num_rows().min(self.rows_left));
        self.rows_left -= batch.num_rows();
        Ok(Some(batch))
    }
}

impl Reading {
    /// The same in pieces of so many rows, of which so many threads read one each. They come in their order. A stream that is dropped
    /// leaves as many pieces to run out.
    fn on_threads(
        self,
        (piece_rows, threads): (usize, usize),
        hold: Hold,
        metrics: BaselineMetrics,
    ) -> SendableRecordBatchStream {
        let (schema, elapsed) = (self.schema.clone(), metrics.elapsed_compute().clone());
        let (count, reading) = (self.ids.len(), Arc::new(self));
        let begin = move |from: usize| {
            let (reading, hold, elapsed) = (reading.clone(), hold.clone(), elapsed.clone());
            tokio::task::spawn_blocking(move || {
                let (_hold, _timer) = (hold, elapsed.timer());
                reading.batch(from..count.min(from + piece_rows))
            })
        };
        let pieces = futures::stream::iter((0..count).step_by(piece_rows)).map(begin).buffered(threads);
        let batches = pieces.map(move |done| {
            let batch = match done {
                Ok(batch) => batch,
                Err(error) if error.is_cancelled() => Err(Error::Interrupted),
                Err(_) => Err(Error::Bug("a thread that reads rows panicked".into())),
            };
            if let Ok(batch) = &batch {
                batch.record_output(&metrics);
            }
            batch.map_err(DataFusionError::from)
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }

    /// Some of the rows and what they join.
    fn batch(&self, rows: Range<usize>) -> Result<RecordBatch> {
        let Target { relations, snapshot, .. } = &self.target;
        let rows = &self.ids[rows];
        let joined = relations.read_where(snapshot, &self.leaves, &self.conditions, &self.columns, rows);
        let joined = joined.map_err(Error::Relation)?;
        if joined.count == 0 {
            return Ok(RecordBatch::new_empty(self.schema.clone()));
        }
        self.shown(&joined)
    }

    fn shown(&self, joined: &JoinedRows) -> Result<RecordBatch> {
        let column = |place: &Place| match &joined.sides[place.leaf] {
            Some(Side { block, places }) if self.leaves[place.leaf].is_optional => {
                let all = rows::decode(&block.rows, place.column, &Selection::All(block.count()))?;
                let there = places.iter().map(|place| Some(*place).filter(|place| *place != NO_ROW));
                Ok(take(&all, &UInt32Array::from_iter(there), None)?)
            }
            Some(Side { block, places }) => rows::decode(&block.rows, place.column, &Selection::At(places.clone())),
            None => Err(Error::Bug("a column of a table that was not read".into())),
        };
        let columns = self.output.iter().map(column).collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(joined.count));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}
