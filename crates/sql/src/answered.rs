//! Answering a question of rows that are joined along foreign keys, grouped, once each or in order, where it lies and in little memory:
//! a plan node over [`Answer`].

use std::fmt;
use std::sync::Arc;

use counterfoil_log::Snapshot;
use counterfoil_relation::{self as relation, Answer, Function, Output, Place, Plan, Progress, RowBatch, Selection};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::{DataFusionError, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use parking_lot::Mutex;

use crate::aside::{Aside, Lent, Means};
use crate::error::{Error, Result};
use crate::leaf_node::{leaf_node, properties};
use crate::rows;
use crate::running::Hold;
use crate::scan::{INLINE_ROWS_MAX, Target};
use crate::steps::{Step, Steps};

/// More rows than so many that indexes name are left to the query library, which has several threads for them.
const NAMED_ROWS_MAX: u64 = 16_384;

/// The plan node.
#[derive(Clone)]
pub(crate) struct AnsweredScan {
    /// The root of the question.
    target: Target,
    plan: Plan,
    schema: SchemaRef,
    means: Means,
    /// Rows of the root that indexes name; without them all are read.
    candidates: Option<usize>,
    /// What named them.
    by: Vec<String>,
    /// As it was begun to know that; for whoever runs it first.
    begun: Arc<Mutex<Option<Begun>>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// An answer, with the memory that it has.
struct Begun {
    answer: Answer<Snapshot>,
    lent: Lent,
}

impl AnsweredScan {
    /// Begins to answer a question.
    pub(crate) fn begin(target: Target, plan: Plan, schema: SchemaRef, means: Means) -> Result<Self> {
        let begun = begin(&target, &plan, &means)?;
        let properties = properties(&schema, 1);
        Ok(AnsweredScan {
            target,
            plan,
            schema,
            means,
            candidates: begun.answer.candidates(),
            by: begun.answer.by().to_vec(),
            begun: Arc::new(Mutex::new(Some(begun))),
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// Whether it is soon done.
    pub(crate) fn is_of_few(&self) -> Result<bool> {
        let bound = if self.candidates.is_some() { NAMED_ROWS_MAX } else { INLINE_ROWS_MAX };
        Ok(self.rows()? <= bound)
    }

    /// Rows of the root that are read, at most.
    fn rows(&self) -> Result<u64> {
        match self.candidates {
            Some(candidates) => Ok(candidates as u64),
            None => self.target.relations.count(&self.target.snapshot, &self.target.table).map_err(Error::Relation),
        }
    }

    /// Begins to read the answer.
    pub(crate) fn stream(&self, hold: Hold) -> Result<SendableRecordBatchStream> {
        let begun = self.begun.lock().take();
        let Begun { answer, lent } = begun.map_or_else(|| begin(&self.target, &self.plan, &self.means), Ok)?;
        let metrics = BaselineMetrics::new(&self.metrics, 0);
        let is_soon_done = self.rows()? <= INLINE_ROWS_MAX;
        let (aside, plan, means) = (self.means.aside(lent.bytes), self.plan.clone(), self.means.clone());
        let nothing = RecordBatch::new_empty(self.schema.clone());
        let (target, schema) = (self.target.clone(), self.schema.clone());
        let begun = Begun { answer, lent };
        let work = Work { target, plan, means, schema, nothing, begun: Some(begun), aside, has_given: false };
        Ok(Steps::stream(work, hold, is_soon_done, metrics, self.schema.clone()))
    }

    fn shown(&self, output: &Output) -> String {
        let name = |place: &Place| {
            let table = &self.plan.sources[place.source].table;
            format!("{}.{}", table.name, table.columns[place.column].name)
        };
        match output {
            Output::Column(place) => name(place),
            Output::CountRows => "count(*)".into(),
            Output::Aggregate(function, place) => {
                format!("{}({})", name_of(*function), name(place))
            }
        }
    }
}

/// A function as SQL calls it.
pub(crate) fn name_of(function: Function) -> &'static str {
    match function {
        Function::Count => "count",
        Function::Sum => "sum",
        Function::Mean => "avg",
        Function::Least => "min",
        Function::Greatest => "max",
    }
}

fn begin(target: &Target, plan: &Plan, means: &Means) -> Result<Begun> {
    begin_with(target, plan, means.lend()?)
}

/// With memory that grows, as long as there is some, until it is enough to begin.
fn begin_with(target: &Target, plan: &Plan, mut lent: Lent) -> Result<Begun> {
    loop {
        match target.relations.answer(target.snapshot.clone(), plan.clone(), lent.bytes) {
            Err(error) if error.memory_needed().is_some_and(|needed| lent.grow(needed)) => {}
            answer => return Ok(Begun { answer: answer.map_err(Error::of_tables)?, lent }),
        }
    }
}

impl fmt::Debug for AnsweredScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnsweredScan").field("table", &self.target.table.name).finish()
    }
}

impl DisplayAs for AnsweredScan {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = &self.target.table.name;
        match self.candidates {
            None => write!(f, "Answer: all rows of {root}")?,
            Some(count) => write!(f, "Answer: indexes: [{}] ({count} candidates of {root})", self.by.join(", "))?,
        }
        let joined = self.plan.sources.iter().filter(|source| source.path.is_some());
        let joined: Vec<_> = joined.map(|source| source.table.name.as_str()).collect();
        if !joined.is_empty() {
            write!(f, ", along foreign keys to: [{}]", joined.join(", "))?;
        }
        let list = |all: &mut dyn Iterator<Item = String>| all.collect::<Vec<_>>().join(", ");
        let shown = list(&mut self.plan.outputs[..self.plan.shown].iter().map(|output| self.shown(output)));
        write!(f, ", columns: [{shown}]")?;
        if !self.plan.groups.is_empty() {
            let groups = list(&mut self.plan.groups.iter().map(|place| self.shown(&Output::Column(*place))));
            write!(f, ", groups: [{groups}]")?;
        }
        if self.plan.is_distinct {
            f.write_str(", distinct")?;
        }
        if !self.plan.order.is_empty() {
            let order = |order: &relation::Order| {
                let down = if order.is_descending { " descending" } else { "" };
                format!("{}{down}", self.shown(&self.plan.outputs[order.output]))
            };
            write!(f, ", order: [{}]", list(&mut self.plan.order.iter().map(order)))?;
        }
        if self.plan.offset > 0 {
            write!(f, ", offset: {}", self.plan.offset)?;
        }
        self.plan.limit.map_or(Ok(()), |limit| write!(f, ", limit: {limit}"))
    }
}

impl ExecutionPlan for AnsweredScan {
    fn name(&self) -> &'static str {
        "AnsweredScan"
    }

    leaf_node!();

    fn execute(
        &self,
        _partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        Ok(self.stream(context)?)
    }

    fn statistics_from_inputs(
        &self,
        _inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>, DataFusionError> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        if let (None, Some(candidates)) = (args.partition(), self.candidates) {
            statistics.num_rows = Precision::Inexact(candidates);
        }
        Ok(Arc::new(statistics))
    }
}

/// An answer under way.
struct Work {
    target: Target,
    plan: Plan,
    means: Means,
    schema: SchemaRef,
    /// What a step without rows hands over; made once, since most steps of a small question have none.
    nothing: RecordBatch,
    /// None after an error.
    begun: Option<Begun>,
    aside: Aside,
    /// Whether somebody has rows of it: from then on it cannot begin again.
    has_given: bool,
}

impl Step for Work {
    fn step(&mut self) -> Result<Option<RecordBatch>> {
        let Some(begun) = &mut self.begun else { return Ok(None) };
        match begun.answer.step(&self.target.relations, &mut self.aside) {
            Ok(Progress::Working) => Ok(Some(self.nothing.clone())),
            Ok(Progress::Rows(rows)) => {
                self.has_given = true;
                self.batch(&rows).map(Some)
            }
            Ok(Progress::End) => Ok(None),
            Err(error) => match error.memory_needed() {
                Some(needed) if !self.has_given => self.begin_again(needed),
                _ => Err(self.aside.error(error)),
            },
        }
    }
}

impl Work {
    /// Begins with more memory, if there is some: that a row or a group needs it shows when it comes.
    fn begin_again(&mut self, needed: usize) -> Result<Option<RecordBatch>> {
        let error = |aside: &mut Aside| aside.error(relation::Error::memory(Some(needed)));
        let Some(Begun { answer, mut lent }) = self.begun.take() else { return Err(error(&mut self.aside)) };
        drop(answer);
        // What it had put aside is of nobody any more, and its memory is there for it.
        self.aside = self.means.aside(lent.bytes);
        if !lent.grow(needed) {
            return Err(error(&mut self.aside));
        }
        self.aside = self.means.aside(lent.bytes);
        self.begun = Some(begin_with(&self.target, &self.plan, lent)?);
        Ok(Some(self.nothing.clone()))
    }

    fn batch(&self, rows: &RowBatch) -> Result<RecordBatch> {
        let all = Selection::All(rows.count());
        let columns = (0..self.schema.fields().len()).map(|column| rows::decode(rows, column, &all));
        Ok(RecordBatch::try_new(self.schema.clone(), columns.collect::<Result<_>>()?)?)
    }
}
