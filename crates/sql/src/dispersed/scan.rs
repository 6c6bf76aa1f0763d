//! Asking clouds for rows: a plan node whose rows have been opened and checked before the first of them is given, or, where there is no
//! room for all (`turns.rs`), the first of each turn.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::available_parallelism;

use counterfoil_disperse::fragments::Name;
use counterfoil_disperse::{self as disperse, Asking as Ask, Condition, Found, Kept, Layout, Report, Rows, Unanswered};
use counterfoil_log::Snapshot;
use counterfoil_relation::{ColumnId, Table, Test};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::asked_where::{asked_at, fetched_from};
use super::first::FirstRows;
use super::following::{Overtaken, is_overtaken};
use super::metering::Metering;
use super::reading::{Reading, Since, There, deleted};
use super::turns::Turns;
use super::waiting::Waiting;
use super::{Dispersed, columns, conditions, is_put_back, kept, put_back};
use crate::error::{Error, Result};
use crate::leaf_node::leaf_node;
use crate::published::{Asking, Verdicts, in_turns};
use crate::store::Store;

/// What a scan wants.
#[derive(Clone)]
pub(super) struct Wanted {
    /// Places of columns; behind the last one, the rows' numbers.
    pub columns: Vec<usize>,
    /// What must be true of a row.
    pub tests: Vec<Test>,
    /// How texts begin.
    pub begins: Vec<Begins>,
    /// So many rows are enough; none: all are wanted.
    pub rows_most: Option<usize>,
    /// What the answer is to be above all.
    pub goal: disperse::Goal,
    /// Rows of a batch at most.
    pub batch_rows: usize,
    /// What the batches are.
    pub schema: SchemaRef,
}

/// How a text begins.
#[derive(Clone)]
pub(super) struct Begins {
    /// The place of its column.
    pub column: usize,
    /// The letters.
    pub text: String,
    /// The same as bounds, for orders.
    pub bounds: Option<Test>,
}

/// What does not show in an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Hides {
    /// Nothing that matters: what is gone cannot be had.
    Nothing,
    /// That it is of other rows, as many.
    WhoseItIs,
    /// That rows are gone: clouds do not name them.
    WhatIsGone,
}

/// Who has been found at fault while rows were read in turns.
#[derive(Default)]
pub(super) struct AtFault {
    /// By what the first cloud calls a layout's table.
    of: BTreeMap<Name, Report>,
    /// Whether nobody may be believed any more about which rows match.
    pub is_beyond_belief: bool,
}

impl AtFault {
    pub(super) fn add(&mut self, opened: &disperse::Table, goal: disperse::Goal, report: &Report) {
        let all = self.of.entry(opened.coder().table_name(0)).or_default();
        all.add(report.clone());
        self.is_beyond_belief |= opened.is_beyond_belief(goal, all);
    }
}

/// The plan node.
#[derive(Clone)]
pub(crate) struct DispersedScan {
    table: Arc<Table>,
    snapshot: Snapshot,
    wanted: Arc<Wanted>,
    /// Rows that come first are enough.
    first: Option<Arc<FirstRows>>,
    verdicts: Arc<Verdicts>,
    dispersed: Arc<Dispersed>,
    store: Arc<dyn Store>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl DispersedScan {
    pub(super) fn new(
        (table, snapshot): (Arc<Table>, Snapshot),
        wanted: Wanted,
        (verdicts, dispersed, store): (Arc<Verdicts>, Arc<Dispersed>, Arc<dyn Store>),
    ) -> Self {
        let equivalence = EquivalenceProperties::new(wanted.schema.clone());
        let partitioning = Partitioning::UnknownPartitioning(1);
        let properties =
            PlanProperties::new(equivalence, partitioning, EmissionType::Incremental, Boundedness::Bounded);
        let properties = Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative));
        let metrics = ExecutionPlanMetricsSet::new();
        let wanted = Arc::new(wanted);
        DispersedScan { table, snapshot, wanted, first: None, verdicts, dispersed, store, properties, metrics }
    }

    /// The same of rows that come first alone, and of others that are about as early.
    pub(super) fn with_first(&self, first: FirstRows) -> Self {
        DispersedScan { first: Some(Arc::new(first)), ..self.clone() }
    }

    /// What the answer is to be above all.
    pub(super) fn goal(&self) -> disperse::Goal {
        self.wanted.goal
    }

    pub(super) fn first(&self) -> Option<&FirstRows> {
        self.first.as_deref()
    }

    /// The rows that are meant, and what clouds may be asked about them.
    pub(super) fn meant(&self) -> Result<(Rows, Vec<Condition>)> {
        let kept = kept(&self.snapshot, &self.table)?;
        let (mut rows, mut conditions) = (kept.live(), self.conditions());
        if let Some(most) = self.wanted.rows_most.filter(|most| (*most as u64) < rows.len()) {
            rows = rows.iter().take(most).collect();
        }
        if !rows.is_empty() && is_put_back(&self.snapshot, &kept)? {
            self.note(put_back(&self.table.name));
            conditions.clear();
        }
        Ok((rows, conditions))
    }

    /// Asks for rows, and checks what comes back.
    pub(super) fn read(
        &self,
        asking: &Asking,
        rows: &Rows,
        conditions: &[Condition],
        at_fault: &mut AtFault,
    ) -> Result<VecDeque<RecordBatch>> {
        let (waiting, ids) = (Waiting::scan(asking), self.ids());
        let hides = if conditions.is_empty() { Hides::Nothing } else { Hides::WhatIsGone };
        let found = self.asked(&waiting, rows, hides, |opened, asked, are_believed, report| {
            let found = opened.read(asked, &ids, if are_believed { conditions } else { &[] }, report);
            at_fault.add(opened, asked.goal, report);
            report.is_unverified &= !found.as_ref().is_ok_and(|found| self.is_complete(&ids, found, conditions));
            found
        })?;
        let mut batches = VecDeque::new();
        for found in found {
            batches.extend(self.batches(&found)?);
        }
        asking.hold(batches.iter().map(RecordBatch::get_array_memory_size).sum())?;
        Ok(batches)
    }

    /// Whether no row can be missing among those that were read and opened: one has each key that is asked for.
    fn is_complete(&self, ids: &[u16], found: &Found, conditions: &[Condition]) -> bool {
        let is_key = |id: u16| self.table.unique_indexes().any(|index| *index.columns == [ColumnId(id.into())]);
        conditions.iter().any(|condition| match condition {
            Condition::Equal { column, values } if is_key(*column) => {
                found.matching(ids, std::slice::from_ref(condition)).len() == values.len()
            }
            _ => false,
        })
    }

    /// Those of some rows of which clouds say that conditions may be true.
    pub(super) fn matching(
        &self,
        asking: &Asking,
        rows: &Rows,
        conditions: &[Condition],
        at_fault: &mut AtFault,
    ) -> Result<Rows> {
        let found =
            self.asked(&Waiting::scan(asking), rows, Hides::WhatIsGone, |opened, asked, are_believed, report| {
                let found = opened.read(asked, &[], if are_believed { conditions } else { &[] }, report);
                at_fault.add(opened, asked.goal, report);
                found
            })?;
        Ok(found.into_iter().flat_map(|found| found.rows).collect())
    }

    /// Asks the clouds of each layout about rows of the snapshot, where they lie now; again, if they were on their way. Where others have told
    /// clouds something since, and those do not say whether rows are there still, `ask` hears that no cloud is to be believed about rows that
    /// are not opened.
    pub(super) fn asked<T>(
        &self,
        waiting: &Waiting<'_>,
        rows: &Rows,
        hides: Hides,
        mut ask: impl FnMut(&disperse::Table, Ask<'_>, bool, &mut Report) -> Result<T, Unanswered>,
    ) -> Result<Vec<T>> {
        if rows.is_empty() {
            // Nobody is to be asked. And of a table that this transaction has made nobody knows yet.
            return Ok(Vec::new());
        }
        let (metering, mut are_believed) = (Metering::default(), true);
        let answer = loop {
            let now = self.store.snapshot()?;
            let reading =
                Reading::now((&self.dispersed, &now), &self.table, rows, &metering)?.with_goal(self.wanted.goal);
            let mut noted = Vec::new();
            let answer =
                reading.each(waiting, &mut noted, |opened, asked, report| ask(opened, asked, are_believed, report));
            if hides != Hides::Nothing && are_believed || answer.is_err() {
                match reading.since(&self.store.snapshot()?)? {
                    // Each layout is dropped once: this comes to an end.
                    Since::Moved => continue,
                    Since::Deleted => break Err(deleted(&self.table)),
                    Since::Nothing => {}
                }
                // Of what others have deleted nothing shows in an answer, but that it is not there.
                if let Some(why) = self.overtaken(&now, hides)? {
                    match reading.are_there(waiting)? {
                        There::Gone => break Err(why),
                        There::Unknown if answer.is_ok() => {
                            are_believed = false;
                            continue;
                        }
                        There::Unknown | There::All => {}
                    }
                }
            }
            noted.into_iter().for_each(|note| self.note(note));
            break answer;
        };
        metering.tell(&self.metrics);
        answer
    }

    /// What is to be said if rows of an answer are not there any more, for others may have let go of them.
    fn overtaken(&self, now: &Snapshot, hides: Hides) -> Result<Option<Error>> {
        Ok(match is_overtaken(&self.dispersed, now, &self.table)? {
            Some(Overtaken::WhatFollows) => Some(deleted(&self.table)),
            // What of a table that was dropped is there still is what it was.
            Some(Overtaken::End(end)) => Some(end).filter(|_| hides == Hides::WhatIsGone),
            None => None,
        })
    }

    /// Where is counted what clouds were asked.
    pub(super) fn metrics(&self) -> ExecutionPlanMetricsSet {
        self.metrics.clone()
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// The layout to which rows come, with its clouds.
    pub(super) fn opened(&self, layout: &Layout) -> Result<disperse::Table> {
        super::opened(&self.dispersed, &self.snapshot, &self.table, layout)
    }

    pub(super) fn note(&self, note: String) {
        self.verdicts.note(note);
    }

    /// Whether all rows are meant.
    pub(super) fn is_whole(&self) -> bool {
        self.wanted.rows_most.is_none() && self.wanted.tests.is_empty() && self.wanted.begins.is_empty()
    }

    /// Whether some of the rows are enough, which are named then.
    pub(super) fn has_limit(&self) -> bool {
        self.wanted.rows_most.is_some()
    }

    /// The place in the table of a column of the answer.
    pub(super) fn place(&self, column: usize) -> Option<usize> {
        self.wanted.columns.get(column).copied().filter(|place| *place < self.table.columns.len())
    }

    pub(super) fn kept(&self) -> Result<Kept> {
        kept(&self.snapshot, &self.table)
    }

    /// What clouds decide of conditions, for people.
    pub(super) fn asked_at(&self, conditions: &[Condition]) -> Vec<String> {
        let Ok(kept) = self.kept() else { return Vec::new() };
        conditions.iter().filter_map(|condition| asked_at(&kept, condition)).collect()
    }

    /// Whether the database was put back, or may have been, since its clouds were asked what they have.
    pub(super) fn is_put_back(&self) -> bool {
        self.kept().and_then(|kept| is_put_back(&self.snapshot, &kept)).unwrap_or(true)
    }

    /// The conditions that a predicate over this scan's columns is, and nothing else, all of which codes know as a whole; none: it
    /// takes values.
    pub(super) fn exact(&self, predicate: &Arc<dyn PhysicalExpr>) -> Option<Vec<Condition>> {
        let conditions = self.decided(predicate)?;
        let opened = self.kept().and_then(|kept| self.opened(kept.current())).ok()?;
        conditions.iter().all(|condition| opened.knows(condition)).then_some(conditions)
    }

    /// The conditions that a predicate over this scan's columns is, and nothing else, which opened values decide.
    pub(super) fn decided(&self, predicate: &Arc<dyn PhysicalExpr>) -> Option<Vec<Condition>> {
        conditions::exact(&self.table, predicate, &|column| self.place(column))
    }

    /// What clouds may be asked for.
    pub(super) fn conditions(&self) -> Vec<Condition> {
        let begins = self.wanted.begins.iter().flat_map(|begins| self.begun(begins));
        conditions::conditions(&self.table, &self.wanted.tests).into_iter().chain(begins).collect()
    }

    /// What clouds may be asked of how a text begins: where a code of beginnings serves, nobody compares orders, which would show more.
    fn begun(&self, Begins { column, text, bounds }: &Begins) -> Vec<Condition> {
        let begun = conditions::begun(&self.table, *column, text);
        let has_code = self.kept().is_ok_and(|kept| {
            let declared = kept.declaration().column(begun.column()).map(|column| column.operations.prefix);
            declared == Some(true)
        });
        match bounds {
            Some(bounds) if !has_code => conditions::conditions(&self.table, std::slice::from_ref(bounds)),
            _ => vec![begun],
        }
    }

    pub(super) fn ids(&self) -> Vec<u16> {
        let columns = self.wanted.columns.iter().filter_map(|place| self.table.columns.get(*place));
        columns.map(|column| column.id.0 as u16).collect()
    }

    /// The rows as batches, which as many threads make as there are cores.
    fn batches(&self, found: &Found) -> Result<VecDeque<RecordBatch>> {
        let step = self.wanted.batch_rows;
        let starts = (0..found.rows.len()).step_by(step);
        let ranges: Vec<Range<usize>> = starts.map(|from| from..(from + step).min(found.rows.len())).collect();
        let own = ranges.len().div_ceil(available_parallelism().map_or(1, usize::from)).max(1);
        let make = |ranges: &[Range<usize>]| -> Result<Vec<RecordBatch>> {
            ranges.iter().map(|range| self.batch(found, range.clone())).collect()
        };
        if ranges.len() <= 1 {
            return Ok(make(&ranges)?.into());
        }
        let make = &make;
        let made: Vec<Result<Vec<RecordBatch>>> = std::thread::scope(|scope| {
            let threads: Vec<_> = ranges.chunks(own).map(|ranges| scope.spawn(move || make(ranges))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });
        Ok(made.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    fn batch(&self, found: &Found, range: Range<usize>) -> Result<RecordBatch> {
        let mut values = found.columns.iter();
        let array = |place: &usize| -> Result<ArrayRef> {
            match self.table.columns.get(*place).zip(values.next()) {
                Some((column, plain)) => columns::array(&column.kind, plain, range.clone()),
                None => {
                    let numbers = found.rows[range.clone()].iter().map(|row| *row as i64);
                    Ok(Arc::new(Int64Array::from_iter_values(numbers)))
                }
            }
        };
        let arrays = self.wanted.columns.iter().map(array).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(range.len()));
        Ok(RecordBatch::try_new_with_options(self.wanted.schema.clone(), arrays, &options)?)
    }
}

impl fmt::Debug for DispersedScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DispersedScan").field("table", &self.table.name).finish()
    }
}

impl DisplayAs for DispersedScan {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |place: &usize| self.table.columns.get(*place).map_or("row", |column| column.name.as_str());
        let names = self.wanted.columns.iter().map(name).collect::<Vec<_>>().join(", ");
        write!(f, "Dispersed: {}, columns: [{names}]", self.table.name)?;
        if let Some(most) = self.wanted.rows_most {
            write!(f, ", rows at most: {most}")?;
        }
        let asked = self.asked_at(&self.conditions());
        if !asked.is_empty() {
            write!(f, ", asked at clouds: [{}]", asked.join(", "))?;
        }
        let ordered = self.ordered_at();
        if !ordered.is_empty() {
            write!(f, ", first at clouds: [{}]", ordered.join(", "))?;
        }
        let fetched = self.kept().map(|kept| fetched_from(&kept, &self.ids())).unwrap_or_default();
        if fetched.is_empty() { Ok(()) } else { write!(f, ", fetched from: [{}]", fetched.join("; ")) }
    }
}

impl ExecutionPlan for DispersedScan {
    fn name(&self) -> &'static str {
        "DispersedScan"
    }

    leaf_node!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        let (metrics, mut turns) = (BaselineMetrics::new(&self.metrics, partition), Turns::of(self.clone()));
        Ok(in_turns(self.wanted.schema.clone(), &context, metrics, move |asking| turns.next(asking)))
    }
}
