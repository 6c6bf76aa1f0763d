//! Reading a series table for the query library: only the series and the span of time that a query asks for.

use std::fmt;
use std::sync::Arc;

use counterfoil_log::Snapshot;
use counterfoil_relation::{Table, Type};
use counterfoil_series::{Scan, SeriesTables, Span};
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{SchemaRef, TimeUnit};
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::common::{DFSchema, DataFusionError, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, utils};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::about;
use super::around::{Around, At, Walk};
use super::block::Blocks;
use super::order::{self, Order};
use super::{Form, apart, change, keys, told};
use crate::error::Result;
use crate::filter::{self, Comparison, Constant, Test};
use crate::historian::Tick;
use crate::leaf_node::leaf_node;
use crate::scan::Output;
use crate::steps::{Step, Steps};

/// Fewer points than this are read in one part.
const PARTS_POINTS_MIN: u64 = 200_000;
/// A part with fewer points is read where it is asked for.
const INLINE_POINTS_MAX: u64 = 10_000;

/// What a scan looks at, shared by its parts.
#[derive(Clone)]
pub(crate) struct SeriesTarget {
    pub(crate) tables: Arc<SeriesTables>,
    pub(crate) snapshot: Snapshot,
    pub(crate) table: Arc<Table>,
}

/// Whether the scan decides a condition by itself: one about the time, or about nothing but what names a series.
pub(crate) fn decides(expr: &Expr, table: &Table) -> bool {
    Form::of(table).is_ok_and(|form| span_of(expr, table, &form).is_some() || is_about_keys(expr, table, &form))
}

/// The span of time that a condition means exactly.
fn span_of(expr: &Expr, table: &Table, form: &Form) -> Option<Span> {
    span(&filter::compile(expr, table)?, form.time)
}

fn span(test: &Test, time: usize) -> Option<Span> {
    let none = Span { first: 0, last: -1 };
    match test {
        Test::Never => Some(none),
        Test::All(tests) => {
            let spans = tests.iter().map(|test| span(test, time)).collect::<Option<Vec<_>>>()?;
            Some(spans.into_iter().fold(Span::ALL, |all, one| all.within(&one)))
        }
        Test::Compare { column, comparison, constant: Constant::Whole(at) } if *column == time => {
            let (before, after) = (at.checked_sub(1), at.checked_add(1));
            Some(match comparison {
                Comparison::Equal => Span { first: *at, last: *at },
                Comparison::Less => before.map_or(none, |last| Span { last, ..Span::ALL }),
                Comparison::AtMost => Span { last: *at, ..Span::ALL },
                Comparison::Greater => after.map_or(none, |first| Span { first, ..Span::ALL }),
                Comparison::AtLeast => Span { first: *at, ..Span::ALL },
                Comparison::Unequal => return None,
            })
        }
        _ => None,
    }
}

/// Whether a condition looks at columns that name series, at no others, and answers the same whenever it is asked.
fn is_about_keys(expr: &Expr, table: &Table, form: &Form) -> bool {
    let mut columns = std::collections::HashSet::new();
    let is_key = |name: &str| table.column(name).is_some_and(|(place, _)| form.keys.contains(&place));
    utils::expr_to_columns(expr, &mut columns).is_ok()
        && !columns.is_empty()
        && columns.iter().all(|column| is_key(&column.name))
        && !expr.is_volatile()
        && !expr.contains_outer()
}

/// The plan node.
#[derive(Clone)]
pub(crate) struct SeriesScan {
    target: SeriesTarget,
    form: Arc<Form>,
    output: Arc<Vec<Output>>,
    schema: SchemaRef,
    span: Span,
    /// The columns that name series, by place in the table, a row for every series of the table.
    keys: Arc<[Option<ArrayRef>]>,
    /// The series wanted, in the order of their keys.
    series: Arc<Vec<u32>>,
    /// Whether those are not all.
    is_chosen: bool,
    points: Precision<usize>,
    /// Series of each part, and parts.
    per_part: usize,
    parts: usize,
    parallelism: usize,
    limit: Option<usize>,
    /// The part of each series that is wanted; none is all.
    around: Option<Arc<Around>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl SeriesScan {
    /// Plans a scan of what conditions leave.
    ///
    /// # Errors
    /// What reading the table answers.
    pub(crate) fn plan(
        target: SeriesTarget,
        output: Vec<Output>,
        schema: SchemaRef,
        filters: &[Expr],
        limit: Option<usize>,
        (session, parallelism): (&dyn Session, usize),
    ) -> Result<Self> {
        let form = Form::of(&target.table)?;
        let (count, is_exact) = target.tables.count(&target.snapshot, form.number).map_err(told(&target.table))?;
        let names = target.tables.keys(&target.snapshot, form.number).map_err(told(&target.table))?;
        let keys = keys::record_batch(&target.table, &form, &names)?;
        let (spans, about_keys): (Vec<_>, Vec<_>) = filters
            .iter()
            .map(|expr| (span_of(expr, &target.table, &form), expr))
            .partition(|(span, _)| span.is_some());
        let span = spans.into_iter().filter_map(|(span, _)| span).fold(Span::ALL, |all, one| all.within(&one));
        let wanted = chosen(&target.table, &keys, names.len(), about_keys.iter().map(|(_, expr)| *expr), session)?;
        let is_chosen = !about_keys.is_empty();
        let share = count as usize / names.len().max(1) * wanted.len();
        let points = match (is_chosen, span == Span::ALL, is_exact) {
            (false, true, true) => Precision::Exact(count as usize),
            (_, true, _) => Precision::Inexact(share),
            _ => Precision::Inexact(share / 3),
        };
        // All parts that may run at once, or one: a plan deals rows of a few parts out to more by hash, and their order is lost.
        let parts_max = if share as u64 >= PARTS_POINTS_MIN { parallelism.max(1) } else { 1 };
        let per_part = wanted.len().div_ceil(parts_max).max(1);
        let keys: Arc<[_]> = change::key_columns_of(&target.table, &form, &keys).into();
        let order = Order::of(wanted, &form, &keys)?;
        let (equivalence, partitioning) = order.properties(&form, &output, &schema, per_part)?;
        let parts = order::parts(order.series.len(), per_part);
        let properties =
            PlanProperties::new(equivalence, partitioning, EmissionType::Incremental, Boundedness::Bounded)
                .with_scheduling_type(SchedulingType::Cooperative);
        Ok(SeriesScan {
            target,
            form: Arc::new(form),
            output: Arc::new(output),
            schema,
            span,
            keys,
            series: Arc::new(order.series),
            is_chosen,
            points,
            per_part,
            parts,
            parallelism: parallelism.max(1),
            limit,
            around: None,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    pub(super) fn target(&self) -> &SeriesTarget {
        &self.target
    }

    pub(super) fn table(&self) -> &Table {
        &self.target.table
    }

    pub(crate) fn form(&self) -> &Form {
        &self.form
    }

    pub(super) fn form_shared(&self) -> Arc<Form> {
        self.form.clone()
    }

    pub(crate) fn output(&self) -> &[Output] {
        &self.output
    }

    pub(super) fn span(&self) -> Span {
        self.span
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    pub(super) fn series_count(&self) -> usize {
        self.series.len()
    }

    /// How many parts may run at once.
    pub(super) fn parallelism(&self) -> usize {
        self.parallelism
    }

    /// The series that are read.
    ///
    /// # Errors
    /// What reading their names answers.
    pub(super) fn series(&self) -> Result<Vec<u32>> {
        Ok(self.series.to_vec())
    }

    /// Which columns have summaries.
    ///
    /// # Errors
    /// What reading the table answers.
    pub(super) fn summarized(&self) -> Result<Arc<counterfoil_series::Summarized>> {
        let SeriesTarget { tables, snapshot, table } = &self.target;
        tables.summarized(snapshot, self.form.number).map_err(told(table))
    }

    /// The same of a part of each series alone.
    pub(crate) fn around(&self, around: Around) -> SeriesScan {
        SeriesScan { around: Some(Arc::new(around)), ..self.clone() }
    }

    pub(crate) fn is_around(&self) -> bool {
        self.around.is_some()
    }

    fn work(&self, part: usize) -> Result<Work> {
        let SeriesTarget { tables, snapshot, table } = &self.target;
        let series = self.series.chunks(self.per_part).nth(part).unwrap_or_default().to_vec();
        let places = self.output.iter().filter_map(|output| match output {
            Output::Column(place) => Some(*place),
            Output::RowId => None,
        });
        let (form, slots) = self.form.reading(&places.collect::<Vec<_>>());
        let (keys, output, schema) = (self.keys.clone(), self.output.clone(), self.schema.clone());
        let blocks = Blocks { table: table.clone(), form, keys, output, schema };
        let way = match &self.around {
            Some(around) => Way::Around(Box::new(Walk {
                target: self.target.clone(),
                form: self.form.clone(),
                blocks,
                slots,
                span: self.span,
                around: around.clone(),
                ahead: series.into_iter(),
                at: At::End,
            })),
            None => {
                let scan = tables.scan(snapshot.clone(), self.form.number, Some(series), self.span);
                Way::All(Box::new(scan.map_err(told(table))?.columns(&slots)), blocks)
            }
        };
        Ok(Work { way, rows_left: self.limit.unwrap_or(usize::MAX) })
    }

    /// Which part of each series is read, for people.
    fn show_around(&self, around: &Around, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = matches!(self.table().columns[self.form.time].kind, Type::Timestamp { nanoseconds: true });
        let unit = if nanoseconds { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
        let shown = |time| Tick { unit, zoned: false }.shown(time);
        write!(f, ", from the last sample up to {}", shown(around.range.first))?;
        match around.beyond {
            true => write!(f, " to the first after {}", shown(around.range.last)),
            false => Ok(()),
        }
    }
}

/// The series whose names fulfil all conditions.
fn chosen<'e>(
    table: &Table,
    keys: &RecordBatch,
    count: usize,
    filters: impl Iterator<Item = &'e Expr>,
    session: &dyn Session,
) -> Result<Vec<u32>> {
    let schema = DFSchema::try_from(keys.schema().as_ref().clone())?;
    let mut wanted: Vec<u32> = (0..count as u32).collect();
    for filter in filters {
        let filter = about::keys(filter.clone(), table)?;
        let expr = session.create_physical_expr(filter, &schema)?;
        let answer = expr.evaluate(keys)?.into_array(keys.num_rows())?;
        let answer = datafusion::arrow::array::AsArray::as_boolean(&answer).clone();
        let holds = |at: usize| datafusion::arrow::array::Array::is_valid(&answer, at) && answer.value(at);
        wanted.retain(|series| holds(*series as usize));
    }
    Ok(wanted)
}

impl fmt::Debug for SeriesScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeriesScan").field("table", &self.target.table.name).finish()
    }
}

impl DisplayAs for SeriesScan {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = &self.target.table;
        let apart = if apart::is_apart(table) { "future." } else { "" };
        write!(f, "Series: {apart}{}", table.name)?;
        if self.parts > 1 {
            write!(f, " in {} parts", self.parts)?;
        }
        let shown = self.output.iter().map(|output| match output {
            Output::Column(column) => table.columns[*column].name.as_str(),
            Output::RowId => "row number",
        });
        write!(f, ", columns: [{}]", shown.collect::<Vec<_>>().join(", "))?;
        if self.is_chosen {
            write!(f, ", {} series", self.series.len())?;
        }
        if self.span != Span::ALL {
            write!(f, ", {} within a span", table.columns[self.form.time].name)?;
        }
        if let Some(around) = &self.around {
            self.show_around(around, f)?;
        }
        self.limit.map_or(Ok(()), |limit| write!(f, ", limit: {limit}"))
    }
}

impl ExecutionPlan for SeriesScan {
    fn name(&self) -> &'static str {
        "SeriesScan"
    }

    leaf_node!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let inline = self.points.get_value().is_some_and(|points| *points as u64 <= INLINE_POINTS_MAX);
        Ok(Steps::stream(self.work(partition)?, context, inline, metrics, self.schema.clone()))
    }

    fn statistics_from_inputs(
        &self,
        _inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>, DataFusionError> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        if args.partition().is_none() {
            statistics.num_rows = match self.limit {
                None => self.points,
                Some(limit) => self.points.map(|points| points.min(limit)).to_inexact(),
            };
        }
        Ok(Arc::new(statistics))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(SeriesScan { limit, ..self.clone() }))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }
}

/// One part of a scan, step by step.
struct Work {
    way: Way,
    rows_left: usize,
}

/// Which points are read.
enum Way {
    All(Box<Scan<Snapshot>>, Blocks),
    Around(Box<Walk>),
}

impl Step for Work {
    fn step(&mut self) -> Result<Option<RecordBatch>> {
        if self.rows_left == 0 {
            return Ok(None);
        }
        let batch = match &mut self.way {
            Way::All(scan, blocks) => match scan.next().map_err(told(&blocks.table))? {
                Some(block) => Some(blocks.batch(&block)?),
                None => None,
            },
            Way::Around(walk) => walk.step()?,
        };
        let Some(mut batch) = batch else { return Ok(None) };
        if batch.num_rows() > self.rows_left {
            batch = batch.slice(0, self.rows_left);
        }
        self.rows_left -= batch.num_rows();
        Ok(Some(batch))
    }
}
