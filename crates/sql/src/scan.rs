//! Reading a table for the query library: a plan node that scans ranges of a table, or fetches the rows of an index.

use std::fmt;
use std::sync::Arc;

use counterfoil_log::Snapshot;
use counterfoil_relation::{
    self as relation, Count, NamedRows, Passes, Relations, RowBlock, RowId, Scan, Selection, Table, Test, select,
};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::{DataFusionError, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::error::{Error, Result};
use crate::leaf_node::{leaf_node, properties};
use crate::rows;
use crate::running::Hold;
use crate::steps::{Step, Steps};

/// A part with fewer rows is read where it is asked for: handing it to another thread would cost more than reading it.
pub(crate) const INLINE_ROWS_MAX: u64 = 2048;
/// Fewer rows than this are not worth a part of their own.
const PART_ROWS_MIN: u64 = 16_384;

/// A column of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The column at this place in the table.
    Column(usize),
    /// The number of the row.
    RowId,
}

/// How far a scan may reach.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// Parts of it that may run at once.
    pub parts: usize,
    /// Rows that an index may name for it.
    pub room: usize,
    /// Bytes of long values that are read at a time, where there is a bound.
    pub heap_bytes: Option<u64>,
}

/// What is read: all of it, the rows an index named or names in passes (where there is no room for the numbers of all), or nothing but
/// their number.
#[derive(Clone)]
enum Source {
    Whole { parts: usize },
    Named(Arc<NamedRows>),
    InPasses { by: Arc<str> },
    Counted(Arc<Count>),
}

/// What a scan looks at, shared by its parts.
#[derive(Clone)]
pub struct Target {
    /// The tables.
    pub relations: Arc<Relations>,
    /// What is seen.
    pub snapshot: Snapshot,
    /// The table.
    pub table: Arc<Table>,
}

/// The plan node.
#[derive(Clone)]
pub struct TableScan {
    target: Target,
    output: Arc<Vec<Output>>,
    schema: SchemaRef,
    tests: Arc<Vec<Test>>,
    limit: Option<usize>,
    source: Source,
    heap_bytes: Option<u64>,
    room: usize,
    rows: u64,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl TableScan {
    /// Plans a scan: looks into the best index where the tests allow it, else cuts the table into parts.
    ///
    /// # Errors
    /// What reading the index or the catalog answers.
    pub fn plan(
        target: Target,
        output: Vec<Output>,
        schema: SchemaRef,
        tests: Vec<Test>,
        limit: Option<usize>,
        reach: Reach,
    ) -> Result<Self> {
        let total = target.relations.count(&target.snapshot, &target.table).map_err(Error::Relation)?;
        let Target { relations, snapshot, table } = &target;
        let named = relations.named_within(snapshot, table, &tests, reach.room).map_err(Error::Relation)?;
        let (source, rows) = match named {
            Some(named) => {
                let rows = named.rows.len() as u64;
                (Source::Named(Arc::new(named)), rows)
            }
            None => match relations.in_passes(snapshot, table, &tests, reach.room).map_err(Error::Relation)? {
                Some(passes) => (Source::InPasses { by: passes.by().into() }, total),
                None => {
                    let parts = (total / PART_ROWS_MIN).clamp(1, reach.parts.max(1) as u64) as usize;
                    (Source::Whole { parts }, total)
                }
            },
        };
        let scan = TableScan::with(target, output, schema, tests, limit, source);
        Ok(TableScan { rows, heap_bytes: reach.heap_bytes, room: reach.room, ..scan })
    }

    /// A scan of which nothing is wanted but how many rows there are, if an index alone says that.
    pub(crate) fn of_count(
        target: Target,
        schema: SchemaRef,
        tests: Vec<Test>,
        limit: Option<usize>,
        room: usize,
    ) -> Result<Option<Self>> {
        let Some(count) = counted(&target, &tests, room)? else { return Ok(None) };
        let rows = count.rows;
        let scan = TableScan::with(target, Vec::new(), schema, tests, limit, Source::Counted(Arc::new(count)));
        Ok(Some(TableScan { rows, ..scan }))
    }

    fn with(
        target: Target,
        output: Vec<Output>,
        schema: SchemaRef,
        tests: Vec<Test>,
        limit: Option<usize>,
        source: Source,
    ) -> Self {
        let parts = match &source {
            Source::Whole { parts } => *parts,
            Source::Named(_) | Source::InPasses { .. } | Source::Counted(_) => 1,
        };
        let properties = properties(&schema, parts);
        TableScan {
            target,
            output: Arc::new(output),
            schema,
            tests: Arc::new(tests),
            limit,
            source,
            heap_bytes: None,
            room: usize::MAX,
            rows: 0,
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// A scan that only says which rows are meant: no index has been asked.
    pub(crate) fn of_all(target: Target, tests: Vec<Test>) -> Self {
        let schema = SchemaRef::new(Schema::empty());
        TableScan::with(target, Vec::new(), schema, tests, None, Source::Whole { parts: 1 })
    }

    /// The same scan with other tests: an index is asked anew.
    ///
    /// # Errors
    /// As of [`TableScan::plan`].
    pub(crate) fn with_tests(&self, tests: Vec<Test>) -> Result<Self> {
        let parts = self.properties.output_partitioning().partition_count();
        let reach = Reach { parts, room: self.room, heap_bytes: self.heap_bytes };
        let (target, output) = (self.target.clone(), self.output.to_vec());
        TableScan::plan(target, output, self.schema.clone(), tests, self.limit, reach)
    }

    /// What is looked at.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// What is shown.
    pub(crate) fn output(&self) -> &[Output] {
        &self.output
    }

    /// What must be true of each row.
    pub(crate) fn tests(&self) -> &[Test] {
        &self.tests
    }

    /// Rows that indexes may name for it, or for a join of which it is the root.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// The rows that an index named, if one was asked.
    pub(crate) fn named_rows(&self) -> Option<&NamedRows> {
        match &self.source {
            Source::Named(named) => Some(named),
            Source::Whole { .. } | Source::InPasses { .. } | Source::Counted(_) => None,
        }
    }

    /// The columns whose values are needed: those shown and those tested.
    fn columns(&self) -> Vec<usize> {
        let mut columns = Vec::new();
        self.tests.iter().for_each(|test| test.columns(&mut columns));
        columns.extend(self.output.iter().filter_map(|output| match output {
            Output::Column(column) => Some(*column),
            Output::RowId => None,
        }));
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// Whether it is soon done: it reads the rows that an index named, or a table of few rows.
    pub(crate) fn is_of_few(&self) -> bool {
        self.rows <= INLINE_ROWS_MAX || !matches!(self.source, Source::Whole { .. } | Source::InPasses { .. })
    }

    /// Begins to read a part, so many rows at a time.
    pub(crate) fn stream(&self, part: usize, step_rows: usize, hold: Hold) -> Result<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(&self.metrics, part);
        let work = self.work(part, step_rows)?;
        Ok(Steps::stream(work, hold, self.rows <= INLINE_ROWS_MAX, metrics, self.schema.clone()))
    }

    fn work(&self, part: usize, step_rows: usize) -> Result<Work> {
        let columns = self.columns();
        let reader = match &self.source {
            Source::Whole { parts } => {
                let target = &self.target;
                let scan = target.relations.scan(target.snapshot.clone(), &target.table).map_err(Error::Relation)?;
                let scan = scan.with_columns(&columns);
                let scan = match self.heap_bytes {
                    Some(heap_bytes) => scan.with_heap_bytes(heap_bytes),
                    None => scan,
                };
                let mut scans = scan.split(*parts);
                // There may be fewer parts than were asked for.
                if part < scans.len() { Reader::Scan(Box::new(scans.swap_remove(part))) } else { Reader::Nothing }
            }
            Source::Named(named) => {
                let (target, heap_bytes) = (self.target.clone(), self.heap_bytes.unwrap_or(u64::MAX));
                Reader::Named { target, named: named.clone(), next: 0, columns, heap_bytes }
            }
            Source::InPasses { .. } => self.in_passes(columns)?,
            Source::Counted(count) => Reader::Counted(count.rows),
        };
        Ok(Work {
            reader,
            output: self.output.clone(),
            schema: self.schema.clone(),
            tests: self.tests.clone(),
            rows_left: self.limit.unwrap_or(usize::MAX),
            step_rows,
        })
    }
}

impl TableScan {
    /// The same passes as when it was planned.
    fn in_passes(&self, columns: Vec<usize>) -> Result<Reader> {
        let target = self.target.clone();
        let Target { relations, snapshot, table } = &target;
        let passes = relations.in_passes(snapshot, table, &self.tests, self.room).map_err(Error::Relation)?;
        let passes = passes.ok_or_else(|| Error::Bug("an index that names other rows now".into()))?;
        let (due, heap_bytes) = (Vec::new(), self.heap_bytes.unwrap_or(u64::MAX));
        Ok(Reader::InPasses { target, passes: Box::new(passes), due, columns, heap_bytes })
    }
}

impl fmt::Debug for TableScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableScan").field("table", &self.target.table.name).finish()
    }
}

impl DisplayAs for TableScan {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = &self.target.table;
        match &self.source {
            Source::Whole { parts: 1 } => write!(f, "Scan: {}", table.name)?,
            Source::Whole { parts } => write!(f, "Scan: {} in {parts} parts", table.name)?,
            Source::InPasses { by } => write!(f, "Index: {by} of {}", table.name)?,
            Source::Counted(count) => write!(f, "Index: {} of {}", count.by, table.name)?,
            Source::Named(named) => {
                let index = if named.index.is_empty() { "none" } else { &named.index };
                write!(f, "Index: {index} of {} ({} candidates)", table.name, named.rows.len())?;
            }
        }
        let shown = self.output.iter().map(|output| match output {
            Output::Column(column) => table.columns[*column].name.as_str(),
            Output::RowId => "row number",
        });
        write!(f, ", columns: [{}]", shown.collect::<Vec<_>>().join(", "))?;
        let mut tested = Vec::new();
        self.tests.iter().for_each(|test| test.columns(&mut tested));
        tested.sort_unstable();
        tested.dedup();
        if !tested.is_empty() {
            let names: Vec<_> = tested.into_iter().map(|column| table.columns[column].name.as_str()).collect();
            write!(f, ", tests: [{}]", names.join(", "))?;
        }
        self.limit.map_or(Ok(()), |limit| write!(f, ", limit: {limit}"))
    }
}

impl ExecutionPlan for TableScan {
    fn name(&self) -> &'static str {
        "TableScan"
    }

    leaf_node!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        Ok(self.stream(partition, context.session_config().batch_size(), context)?)
    }

    fn statistics_from_inputs(
        &self,
        _inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>, DataFusionError> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        if args.partition().is_none() {
            let rows = usize::try_from(self.rows).unwrap_or(usize::MAX);
            statistics.num_rows = match (&self.source, self.tests.is_empty(), self.limit) {
                (Source::Whole { .. }, true, None) => Precision::Exact(rows),
                // Each part stops at the limit for itself.
                (Source::Whole { .. }, true, Some(limit)) => Precision::Inexact(rows.min(limit)),
                (Source::Whole { .. }, false, _) | (Source::InPasses { .. }, ..) => {
                    Precision::Inexact(rows.div_ceil(5))
                }
                (Source::Named(_), ..) => Precision::Inexact(rows),
                (Source::Counted(_), _, limit) => Precision::Exact(limit.map_or(rows, |limit| rows.min(limit))),
            };
        }
        Ok(Arc::new(statistics))
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(TableScan { limit, ..self.clone() }))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }
}

/// One part of a scan, step by step.
struct Work {
    reader: Reader,
    output: Arc<Vec<Output>>,
    schema: SchemaRef,
    tests: Arc<Vec<Test>>,
    rows_left: usize,
    step_rows: usize,
}

enum Reader {
    /// So many rows of which nothing is shown.
    Counted(u64),
    Scan(Box<Scan<Snapshot>>),
    Named {
        target: Target,
        named: Arc<NamedRows>,
        next: usize,
        columns: Vec<usize>,
        heap_bytes: u64,
    },
    InPasses {
        target: Target,
        passes: Box<Passes>,
        /// Rows that are read next.
        due: Vec<RowId>,
        columns: Vec<usize>,
        heap_bytes: u64,
    },
    Nothing,
}

impl Reader {
    fn next(&mut self, step_rows: usize) -> Result<Option<RowBlock>> {
        match self {
            Reader::Nothing | Reader::Counted(_) => Ok(None),
            Reader::Scan(scan) => scan.next(step_rows).map_err(Error::of_tables),
            Reader::Named { target, named, next, columns, heap_bytes } => {
                let ids: &[RowId] = &named.rows[*next..];
                let fetched = fetch(target, &ids[..step_rows.min(ids.len())], columns, *heap_bytes)?;
                *next += fetched.as_ref().map_or(0, |(count, _)| *count);
                Ok(fetched.map(|(_, block)| block))
            }
            Reader::InPasses { target, passes, due, columns, heap_bytes } => {
                if due.is_empty() {
                    *due = passes.next(&target.relations, &target.snapshot, step_rows).map_err(Error::Relation)?;
                }
                let fetched = fetch(target, due, columns, *heap_bytes)?;
                due.drain(..fetched.as_ref().map_or(0, |(count, _)| *count));
                Ok(fetched.map(|(_, block)| block))
            }
        }
    }
}

/// The first of these rows, and how many they are: fewer where their long values are many. None of none.
fn fetch(target: &Target, ids: &[RowId], columns: &[usize], heap_bytes: u64) -> Result<Option<(usize, RowBlock)>> {
    let Target { relations, snapshot, table } = target;
    let mut count = ids.len();
    while count > 0 {
        match relations.fetch_within(snapshot, table, &ids[..count], columns, heap_bytes) {
            Err(error) if error.is_memory() && count > 1 => count = count.div_ceil(2),
            block => return block.map(|block| Some((count, block))).map_err(Error::of_tables),
        }
    }
    Ok(None)
}

impl Step for Work {
    fn step(&mut self) -> Result<Option<RecordBatch>> {
        if self.rows_left == 0 {
            return Ok(None);
        }
        if let Reader::Counted(left) = &mut self.reader {
            let count = (*left).min(self.step_rows as u64);
            *left -= count;
            return if count == 0 { Ok(None) } else { self.of_nothing(count as usize).map(Some) };
        }
        let Some(block) = self.reader.next(self.step_rows)? else { return Ok(None) };
        let selected = select(&block, &self.tests).map_err(Error::Relation)?;
        match selected.count() {
            0 => Ok(Some(RecordBatch::new_empty(self.schema.clone()))),
            _ => self.batch(&block, &selected).map(Some),
        }
    }
}

impl Work {
    /// So many rows of no columns.
    fn of_nothing(&mut self, count: usize) -> Result<RecordBatch> {
        let count = count.min(self.rows_left);
        self.rows_left -= count;
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), Vec::new(), &options)?)
    }

    fn batch(&mut self, block: &RowBlock, selected: &Selection) -> Result<RecordBatch> {
        let columns = self.output.iter().map(|output| match output {
            Output::Column(column) => rows::decode(&block.rows, *column, selected),
            Output::RowId => Ok(row_ids(block, selected)),
        });
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(selected.count()));
        let mut batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?;
        if batch.num_rows() > self.rows_left {
            batch = batch.slice(0, self.rows_left);
        }
        self.rows_left -= batch.num_rows();
        Ok(batch)
    }
}

/// How many rows there are of which tests are true, if an index alone says it.
fn counted(target: &Target, tests: &[Test], room: usize) -> Result<Option<Count>> {
    let Target { relations, snapshot, table } = target;
    if tests.is_empty() {
        return Ok(None);
    }
    let source = relation::Source { table: table.clone(), path: None, tests: tests.to_vec(), is_optional: false };
    // Room for rows is room for their numbers.
    let room_bytes = room.saturating_mul(size_of::<RowId>());
    relations.count_by_index(snapshot, &source, room_bytes).map_err(Error::Relation)
}

fn row_ids(block: &RowBlock, selected: &Selection) -> ArrayRef {
    let id = |row: usize| block.id(row).0 as i64;
    let ids: Vec<i64> = match selected {
        Selection::All(count) => (0..*count).map(id).collect(),
        Selection::At(places) => places.iter().map(|place| id(*place as usize)).collect(),
    };
    Arc::new(Int64Array::from(ids))
}
