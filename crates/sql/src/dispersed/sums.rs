//! Sums, averages and counts of a dispersed table, or of rows that clouds know to match, added up where the shares lie.
//!
//! ```text
//! partial aggregation <- [filter <-] union <- rows here               union <- partial aggregation <- [filter <-] rows here
//!                                          <- rows of clouds     =>         <- one row of states: what clouds add up
//! ```
//! Only what needs no row: count(*), and count, sum and avg of columns FOR (sum). Of a filter, conditions that codes know as a whole
//! (exact.rs of `counterfoil_disperse`); where clouds do not agree on the rows, they are fetched and added up here.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use counterfoil_disperse::{Asking as Ask, Condition, Report, Sum, Table, Unanswered, sum_of};
use counterfoil_relation::Type;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef, i256};
use datafusion::common::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, replace_children_if_necessary,
};
use datafusion::scalar::ScalarValue;

use super::scan::{AtFault, DispersedScan, Hides};
use super::turns::{ROWS_LEAST, in_turns};
use super::waiting::Waiting;
use crate::error::{Error, Result};
use crate::leaf_node::leaf_node;
use crate::published::{Asking, stream};

/// A state of an aggregate, which is one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// How many rows there are.
    Rows,
    /// How many values of a column (its place in the table) there are.
    Values(usize),
    /// The sum of a column.
    Sum(usize),
}

/// What takes the place of an aggregation over a whole dispersed table.
pub(crate) fn from_shares(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>, DataFusionError> {
    let Some(aggregate) = plan.downcast_ref::<AggregateExec>() else { return Ok(None) };
    let is_whole = *aggregate.mode() == AggregateMode::Partial && aggregate.group_expr().is_empty();
    if !is_whole || aggregate.filter_expr().iter().any(Option::is_some) {
        return Ok(None);
    }
    let Some(Above { union, predicate, columns }) = above(aggregate.input()) else { return Ok(None) };
    let [here, away] = &union.inputs()[..] else { return Ok(None) };
    let Some(scan) = away.downcast_ref::<DispersedScan>() else { return Ok(None) };
    let conditions = match predicate {
        None if !scan.is_whole() => return Ok(None),
        None => Vec::new(),
        Some(predicate) => match scan.exact(predicate) {
            Some(conditions) => conditions,
            None => return Ok(None),
        },
    };
    let place = |column: usize| scan.place(*columns.get(column)?);
    let schema = aggregate.input_schema();
    let states: Option<Vec<Vec<State>>> =
        aggregate.aggr_expr().iter().map(|of| states(of, scan, &schema, &place)).collect();
    let Some(states) = states else { return Ok(None) };
    let sums = DispersedSums::new(scan.clone(), conditions, states.concat(), aggregate.schema());
    let here = instead(aggregate.input(), here)?;
    let here: Arc<dyn ExecutionPlan> = Arc::new(AggregateExec::try_new(
        AggregateMode::Partial,
        aggregate.group_expr().clone(),
        aggregate.aggr_expr().to_vec(),
        aggregate.filter_expr().to_vec(),
        here,
        aggregate.input_schema(),
    )?);
    UnionExec::try_new(vec![here, Arc::new(sums)]).map(Some)
}

/// What stands between an aggregation, or a sort, and the union of rows here and away.
pub(super) struct Above<'a> {
    pub union: &'a UnionExec,
    pub predicate: Option<&'a Arc<dyn PhysicalExpr>>,
    /// For each column that is aggregated, which one of the union's it is.
    pub columns: Vec<usize>,
}

/// Looks through projections of columns, and one filter.
pub(super) fn above(plan: &Arc<dyn ExecutionPlan>) -> Option<Above<'_>> {
    if let Some(union) = plan.downcast_ref::<UnionExec>() {
        let columns = (0..union.schema().fields().len()).collect();
        return Some(Above { union, predicate: None, columns });
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let mut above = above(projection.input())?;
        let column = |of: &ProjectionExpr| above.columns.get(of.expr.downcast_ref::<Column>()?.index()).copied();
        above.columns = projection.expr().iter().map(column).collect::<Option<_>>()?;
        return Some(above);
    }
    let filter = plan.downcast_ref::<FilterExec>()?;
    let Above { union, predicate: None, columns } = above(filter.input())? else { return None };
    // The predicate is to be about the union's columns as they stand.
    let is_plain = columns.iter().enumerate().all(|(at, column)| at == *column);
    let columns = match filter.projection() {
        None => columns,
        Some(projection) => projection.iter().map(|column| columns.get(*column).copied()).collect::<Option<_>>()?,
    };
    is_plain.then_some(Above { union, predicate: Some(filter.predicate()), columns })
}

/// The same over something else than the union: one side of it alone, or another one.
pub(super) fn instead(
    plan: &Arc<dyn ExecutionPlan>,
    other: &Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    if plan.downcast_ref::<UnionExec>().is_some() {
        return Ok(other.clone());
    }
    let children = plan.children().into_iter().map(|child| instead(child, other)).collect::<Result<_, _>>()?;
    replace_children_if_necessary(plan.clone(), children)
}

/// The states that an aggregate has; none: shares do not tell.
fn states(
    of: &AggregateFunctionExpr,
    scan: &DispersedScan,
    schema: &Schema,
    place: &dyn Fn(usize) -> Option<usize>,
) -> Option<Vec<State>> {
    if of.is_distinct() {
        return None;
    }
    let [argument] = &of.expressions()[..] else { return None };
    if of.fun().name() == "count" && argument.downcast_ref::<Literal>().is_some_and(|of| !of.value().is_null()) {
        return Some(vec![State::Rows]);
    }
    let place = place(column(argument, schema)?)?;
    match of.fun().name() {
        _ if !scan.adds(place) => None,
        "count" => Some(vec![State::Values(place)]),
        "sum" => Some(vec![State::Sum(place)]),
        "avg" => Some(vec![State::Values(place), State::Sum(place)]),
        _ => None,
    }
}

/// The column whose numbers an expression has, as they are or in a wider type.
fn column(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<usize> {
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        let widens = match cast.cast_type() {
            // What is cast so is whole: of a decimal it would be other numbers.
            DataType::Int64 | DataType::Int32 | DataType::Float64 => is_whole(cast.expr(), schema),
            _ => false,
        };
        return if widens { column(cast.expr(), schema) } else { None };
    }
    expr.downcast_ref::<Column>().map(Column::index)
}

fn is_whole(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    expr.data_type(schema).is_ok_and(|kind| kind.is_integer())
}

/// What must be true of the rows. Constants are for nobody to see.
#[derive(Clone)]
struct Conditions(Vec<Condition>);

impl fmt::Debug for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} conditions", self.0.len())
    }
}

/// The plan node: one row.
#[derive(Clone, Debug)]
pub(crate) struct DispersedSums {
    scan: DispersedScan,
    conditions: Conditions,
    states: Vec<State>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl DispersedSums {
    fn new(scan: DispersedScan, conditions: Vec<Condition>, states: Vec<State>, schema: SchemaRef) -> Self {
        let equivalence = EquivalenceProperties::new(schema.clone());
        let partitioning = Partitioning::UnknownPartitioning(1);
        let properties = PlanProperties::new(equivalence, partitioning, EmissionType::Final, Boundedness::Bounded);
        // What clouds were asked is counted by the scan, and shown here.
        let (properties, metrics) = (Arc::new(properties), scan.metrics());
        DispersedSums { scan, conditions: Conditions(conditions), states, schema, properties, metrics }
    }

    /// Asks for all states.
    fn ask(&self, asking: &Asking) -> Result<RecordBatch> {
        let all = self.scan.kept()?.live();
        let (mut left, mut total) = (vec![all.clone()], Answer::default());
        let (mut at_fault, mut is_believed) = (AtFault::default(), true);
        while let Some(rows) = left.pop() {
            // Rows that are gone show in no sum: a cloud may have others in their stead.
            let ask = |opened: &Table, asked: Ask<'_>, are_believed: bool, report: &mut Report| {
                let answer = self.answer(opened, asked, is_believed && are_believed, report);
                at_fault.add(opened, asked.goal, report);
                answer
            };
            let hides = if self.conditions.0.is_empty() { Hides::WhoseItIs } else { Hides::WhatIsGone };
            match self.scan.asked(&Waiting::scan(asking), &rows, hides, ask) {
                // Values that are added up here may have no room: fewer have.
                Err(Error::Memory(_)) if rows.len() > ROWS_LEAST => {
                    asking.hold(0)?;
                    left.extend(in_turns(&rows));
                }
                // What the turns before left out nobody has looked at.
                Ok(_)
                    if is_believed
                        && hides == Hides::WhatIsGone
                        && at_fault.is_beyond_belief
                        && rows.len() < all.len() =>
                {
                    is_believed = false;
                    (left, total) = (in_turns(&all), Answer::default());
                }
                answers => total = answers?.into_iter().fold(total, Answer::with),
            }
        }
        self.batch(&total)
    }

    /// What clouds say of the rows that they say match, if they are believed; or what their values say.
    fn answer(
        &self,
        opened: &Table,
        asked: Ask<'_>,
        are_believed: bool,
        report: &mut Report,
    ) -> Result<Answer, Unanswered> {
        let conditions = &self.conditions.0;
        let declaration = opened.coder().declaration();
        let adds = |place: usize| declaration.column(self.id(place)).is_some_and(|of| declaration.limbs(of).is_some());
        // Of a database that was put back clouds do not know all rows, and a layout from before has codes of its own: then values decide.
        let narrowing = if self.scan.is_put_back() || !are_believed { &[][..] } else { conditions };
        let rows = match !are_believed || narrowing.len() < conditions.len() || !self.places().all(adds) {
            true => None,
            false => opened.exactly(asked, conditions, report)?,
        };
        let Some(rows) = rows else { return self.answer_here(opened, asked, narrowing, report) };
        let numbers: Vec<u64> = rows.iter().collect();
        let mut sums = Vec::new();
        for place in self.places() {
            let sum = opened.sum(asked, self.id(place), &numbers, report)?;
            sums.extend(sum.map(|sum| (place, sum)));
        }
        if !conditions.is_empty() && opened.is_beyond_belief(asked.goal, report) {
            return self.answer_here(opened, asked, &[], report);
        }
        Ok(Answer { rows: numbers.len() as u64, sums })
    }

    /// Adds up here, from the values.
    fn answer_here(
        &self,
        opened: &Table,
        asked: Ask<'_>,
        narrowing: &[Condition],
        report: &mut Report,
    ) -> Result<Answer, Unanswered> {
        let conditions = &self.conditions.0;
        let mut wanted: Vec<u16> = self.places().map(|place| self.id(place)).collect();
        wanted.extend(conditions.iter().map(Condition::column));
        wanted.sort_unstable();
        wanted.dedup();
        let found = opened.read(asked, &wanted, narrowing, report)?;
        let rows = found.matching(&wanted, conditions);
        let of = |place: usize| wanted.iter().position(|id| *id == self.id(place)).map(|at| &found.columns[at]);
        let sums = self.places().filter_map(|place| Some((place, sum_of(of(place)?, &rows))));
        Ok(Answer { rows: rows.len() as u64, sums: sums.collect() })
    }

    /// The columns that are added up, by their places in the table, each once.
    fn places(&self) -> impl Iterator<Item = usize> {
        let places = self.states.iter().filter_map(|state| match state {
            State::Rows => None,
            State::Values(place) | State::Sum(place) => Some(*place),
        });
        places.collect::<BTreeSet<usize>>().into_iter()
    }

    fn id(&self, place: usize) -> u16 {
        self.scan.table().columns[place].id.0 as u16
    }

    fn batch(&self, answer: &Answer) -> Result<RecordBatch> {
        let of = |place: usize| answer.sums.iter().find(|(own, _)| *own == place).map(|(_, sum)| *sum);
        let arrays = self.states.iter().zip(self.schema.fields()).map(|(state, field)| {
            let told = match state {
                State::Rows => Some(i128::from(answer.rows)),
                State::Values(place) => Some(i128::from(of(*place).map_or(0, |sum| sum.values))),
                State::Sum(place) => match of(*place) {
                    Some(sum) if sum.values > 0 => Some(sum.total.ok_or_else(too_large)?),
                    _ => None,
                },
            };
            scalar(field.data_type(), told)
        });
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_>>()?;
        Ok(RecordBatch::try_new(self.schema.clone(), arrays)?)
    }
}

/// What was added up.
#[derive(Default)]
struct Answer {
    rows: u64,
    /// By the columns' places in the table.
    sums: Vec<(usize, Sum)>,
}

impl Answer {
    /// That of these rows and of others.
    fn with(mut self, other: Self) -> Self {
        self.rows += other.rows;
        for (place, sum) in other.sums {
            match self.sums.iter_mut().find(|(own, _)| *own == place) {
                Some((_, own)) => *own = own.with(sum),
                None => self.sums.push((place, sum)),
            }
        }
        self
    }
}

/// In the words of a table whose rows are here.
fn too_large() -> Error {
    Error::Overflow("a sum is out of the range of its type: cast to NUMERIC first".into())
}

/// One number of a type.
fn scalar(kind: &DataType, number: Option<i128>) -> Result<ArrayRef> {
    let out_of_range = |_| too_large();
    let value = match kind {
        DataType::Int64 => ScalarValue::Int64(number.map(i64::try_from).transpose().map_err(out_of_range)?),
        DataType::UInt64 => ScalarValue::UInt64(number.map(u64::try_from).transpose().map_err(out_of_range)?),
        DataType::Decimal128(precision, scale) => {
            let most = 10_i128.checked_pow(u32::from(*precision)).unwrap_or(i128::MAX);
            if number.is_some_and(|number| number.checked_abs().is_none_or(|of| of >= most)) {
                return Err(too_large());
            }
            ScalarValue::Decimal128(number, *precision, *scale)
        }
        // What an average of wide numbers is made of: it has room for more than a sum here can be.
        DataType::Decimal256(precision, scale) => {
            ScalarValue::Decimal256(number.map(i256::from_i128), *precision, *scale)
        }
        DataType::Float64 => ScalarValue::Float64(number.map(|number| number as f64)),
        other => return Err(Error::Bug(format!("a sum as {other}"))),
    };
    Ok(value.to_array()?)
}

impl DispersedSums {
    pub(super) fn scan(&self) -> &DispersedScan {
        &self.scan
    }

    pub(super) fn conditions(&self) -> &[Condition] {
        &self.conditions.0
    }

    /// The columns that are added up.
    pub(super) fn ids(&self) -> Vec<u16> {
        self.places().map(|place| self.id(place)).collect()
    }
}

impl DispersedScan {
    /// Whether a column of this table has shares.
    fn adds(&self, place: usize) -> bool {
        let column = &self.table().columns[place];
        let told = self.kept().ok();
        let has = told.and_then(|kept| {
            let own = kept.declaration().column(column.id.0 as u16)?;
            kept.declaration().limbs(own)
        });
        has.is_some() && !matches!(column.kind, Type::Real | Type::Double)
    }
}

impl DisplayAs for DispersedSums {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |place: usize| self.scan.table().columns[place].name.as_str();
        let told = |state: &State| match state {
            State::Rows => "rows".to_owned(),
            State::Values(place) => format!("values of {}", name(*place)),
            State::Sum(place) => format!("sum of {}", name(*place)),
        };
        let told: Vec<String> = self.states.iter().map(told).collect();
        write!(f, "DispersedSums: {}, added up at clouds: [{}]", self.scan.table().name, told.join(", "))?;
        let asked = self.scan.asked_at(&self.conditions.0);
        if asked.is_empty() { Ok(()) } else { write!(f, " of rows that clouds know: [{}]", asked.join(", ")) }
    }
}

impl ExecutionPlan for DispersedSums {
    fn name(&self) -> &'static str {
        "DispersedSums"
    }

    leaf_node!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        let (own, metrics) = (self.clone(), BaselineMetrics::new(&self.metrics, partition));
        Ok(stream(self.schema.clone(), &context, metrics, move |asking| Ok([own.ask(asking)?].into())))
    }
}
