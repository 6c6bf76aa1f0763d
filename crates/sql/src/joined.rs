//! Reading rows of a table together with the rows that they join along foreign keys: a plan node.

use std::fmt;
use std::sync::Arc;

use counterfoil_relation::{RowBlock, RowId, Table};
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::{DataFusionError, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::error::{Error, Result};
use crate::filter::{self, Test};
use crate::leaf_node::leaf_node;
use crate::rows::{self, Rows};
use crate::scan::{INLINE_ROWS_MAX, Target};
use crate::steps::{Step, Steps};

/// A column of one of the tables of a tree of joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The table, by its place among the leaves.
    pub(crate) leaf: usize,
    /// The column's place in the table.
    pub(crate) column: usize,
}

/// A table of a tree of joins.
#[derive(Clone)]
pub(crate) struct Leaf {
    /// The table.
    pub(crate) table: Arc<Table>,
    /// The path by which rows of the root join it, by its place among the root's joins; none for the root.
    pub(crate) path: Option<usize>,
    /// What must be true of its rows.
    pub(crate) tests: Vec<Test>,
    /// Whether rows stay that join none of its rows, or only one of which the tests are not true: their columns are NULL.
    pub(crate) is_optional: bool,
}

/// The plan node.
#[derive(Clone)]
pub(crate) struct JoinedScan {
    target: Target,
    leaves: Arc<Vec<Leaf>>,
    output: Arc<Vec<Place>>,
    schema: SchemaRef,
    /// Rows of the root that come into question.
    ids: Arc<Vec<RowId>>,
    /// The indexes that named them.
    indexes: Vec<String>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl JoinedScan {
    /// Reads `ids` of the target's table, which is one of the leaves, and what they join.
    pub(crate) fn new(
        target: Target,
        leaves: Vec<Leaf>,
        output: Vec<Place>,
        schema: SchemaRef,
        ids: Vec<RowId>,
        indexes: Vec<String>,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        JoinedScan {
            target,
            leaves: Arc::new(leaves),
            output: Arc::new(output),
            schema,
            ids: Arc::new(ids),
            indexes,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// For each leaf the columns whose values are needed: those shown and those tested.
    fn columns(&self) -> Vec<Vec<usize>> {
        let of_leaf = |(number, leaf): (usize, &Leaf)| {
            let shown = self.output.iter().filter(|place| place.leaf == number).map(|place| place.column);
            let mut columns: Vec<usize> = shown.collect();
            leaf.tests.iter().for_each(|test| test.columns(&mut columns));
            columns.sort_unstable();
            columns.dedup();
            columns
        };
        self.leaves.iter().enumerate().map(of_leaf).collect()
    }
}

impl fmt::Debug for JoinedScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinedScan").field("table", &self.target.table.name).finish()
    }
}

/// The foreign keys of a path, by the columns that reference.
fn described(root: &Table, leaf: &Leaf) -> String {
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
        for leaf in self.leaves.iter() {
            let mut columns = Vec::new();
            leaf.tests.iter().for_each(|test| test.columns(&mut columns));
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
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let work = Work {
            target: self.target.clone(),
            leaves: self.leaves.clone(),
            columns: self.columns(),
            output: self.output.clone(),
            schema: self.schema.clone(),
            ids: self.ids.clone(),
            next: 0,
            step_rows: context.session_config().batch_size(),
        };
        Ok(Steps::stream(work, self.ids.len() as u64 <= INLINE_ROWS_MAX, metrics, self.schema.clone()))
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

/// A scan under way.
struct Work {
    target: Target,
    leaves: Arc<Vec<Leaf>>,
    /// For each leaf the columns whose values are needed.
    columns: Vec<Vec<usize>>,
    output: Arc<Vec<Place>>,
    schema: SchemaRef,
    ids: Arc<Vec<RowId>>,
    next: usize,
    step_rows: usize,
}

/// Rows of one leaf: a block, and for each row of the answer its place there, or [`NO_ROW`]; none if nothing of the leaf is
/// needed.
type Side = Option<(RowBlock, Vec<u32>)>;

/// The place of a row that an optional leaf does not have.
const NO_ROW: u32 = u32::MAX;

impl Step for Work {
    /// The next batch that has a row.
    fn step(&mut self) -> Result<Option<RecordBatch>> {
        while self.next < self.ids.len() {
            let end = (self.next + self.step_rows.max(1)).min(self.ids.len());
            let ids = self.ids.clone();
            let piece = &ids[self.next..end];
            self.next = end;
            let (sides, count) = self.join(piece)?;
            if count > 0 {
                return self.batch(&sides, count).map(Some);
            }
        }
        Ok(None)
    }
}

impl Work {
    fn fetch(&self, leaf: usize, rows: &[RowId]) -> Result<RowBlock> {
        let Target { relations, snapshot, .. } = &self.target;
        let (table, columns) = (&self.leaves[leaf].table, &self.columns[leaf]);
        relations.fetch(snapshot, table, rows, Some(columns)).map_err(Error::Relation)
    }

    /// Reads rows of the root and, leaf by leaf, what those join that are still in question; how many are in the end.
    fn join(&self, ids: &[RowId]) -> Result<(Vec<Side>, usize)> {
        let root = self.leaves.iter().position(|leaf| leaf.path.is_none());
        let root = root.ok_or_else(|| Error::Bug("a tree of joins without a root".into()))?;
        let block = self.fetch(root, ids)?;
        let mut kept: Vec<u32> = match filter::select(&block, &self.leaves[root].tests)? {
            Rows::All(count) => (0..count as u32).collect(),
            Rows::At(places) => places,
        };
        let mut sides: Vec<Side> = self.leaves.iter().map(|_| None).collect();
        for (number, leaf) in self.leaves.iter().enumerate() {
            let Some(path) = leaf.path else { continue };
            let ends: Vec<Option<RowId>> = kept.iter().map(|row| block.joined(*row as usize, path)).collect();
            let (side, stay) = self.look_up(number, leaf, &ends)?;
            retain(&mut kept, &stay);
            sides.iter_mut().flatten().for_each(|(_, places)| retain(places, &stay));
            sides[number] = side;
        }
        let count = kept.len();
        sides[root] = Some((block, kept));
        Ok((sides, count))
    }

    /// The rows of a leaf at the ends of paths, and which paths lead to one of which the tests are true.
    fn look_up(&self, number: usize, leaf: &Leaf, ends: &[Option<RowId>]) -> Result<(Side, Vec<bool>)> {
        if self.columns[number].is_empty() && leaf.tests.is_empty() {
            return Ok((None, ends.iter().map(|end| leaf.is_optional || end.is_some()).collect()));
        }
        let mut distinct: Vec<RowId> = ends.iter().copied().flatten().collect();
        distinct.sort_unstable();
        distinct.dedup();
        let block = self.fetch(number, &distinct)?;
        if block.visible_count() < distinct.len() {
            let what = "row that is joined along a foreign key";
            let error = counterfoil_relation::Error::Corrupt { table: leaf.table.name.clone(), what };
            return Err(Error::Relation(error));
        }
        let mut holds = vec![false; distinct.len()];
        match filter::select(&block, &leaf.tests)? {
            Rows::All(_) => holds.fill(true),
            Rows::At(places) => places.iter().for_each(|place| holds[*place as usize] = true),
        }
        let place = |end: &Option<RowId>| end.and_then(|end| distinct.binary_search(&end).ok());
        let places = ends.iter().map(|end| place(end).filter(|place| holds[*place]));
        let mut places: Vec<u32> = places.map(|place| place.map_or(NO_ROW, |place| place as u32)).collect();
        let stay: Vec<bool> = places.iter().map(|place| leaf.is_optional || *place != NO_ROW).collect();
        retain(&mut places, &stay);
        Ok((Some((block, places)), stay))
    }

    fn batch(&self, sides: &[Side], count: usize) -> Result<RecordBatch> {
        let column = |place: &Place| match &sides[place.leaf] {
            Some((block, places)) if self.leaves[place.leaf].is_optional => {
                let all = rows::decode(&block.rows, place.column, &Rows::All(block.count()))?;
                let there = places.iter().map(|place| Some(*place).filter(|place| *place != NO_ROW));
                Ok(take(&all, &UInt32Array::from_iter(there), None)?)
            }
            Some((block, places)) => rows::decode(&block.rows, place.column, &Rows::At(places.clone())),
            None => Err(Error::Bug("a column of a table that was not read".into())),
        };
        let columns = self.output.iter().map(column).collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}

/// Keeps those that stay.
fn retain(places: &mut Vec<u32>, stay: &[bool]) {
    let mut stay = stay.iter();
    places.retain(|_| stay.next().copied().unwrap_or(false));
}
