//! Sums, averages and counts of a whole dispersed table, added up where the shares lie.
//!
//! ```text
//! partial aggregation <- union <- rows here               union <- partial aggregation <- rows here
//!                              <- rows of clouds     =>         <- one row of states: what clouds add up
//! ```
//! Only what needs no row: count(*), and count, sum and avg of columns FOR (sum).

use std::fmt;
use std::sync::Arc;

use counterfoil_disperse::{Asking as Ask, Report, Rows};
use counterfoil_relation::Type;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion::scalar::ScalarValue;

use super::scan::DispersedScan;
use super::waiting::Waiting;
use super::{notes, unanswered};
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
    let Some(union) = aggregate.input().downcast_ref::<UnionExec>() else { return Ok(None) };
    let [here, away] = &union.inputs()[..] else { return Ok(None) };
    let Some(scan) = away.downcast_ref::<DispersedScan>().filter(|scan| scan.is_whole()) else { return Ok(None) };
    let states: Option<Vec<Vec<State>>> = aggregate.aggr_expr().iter().map(|of| states(of, scan)).collect();
    let Some(states) = states else { return Ok(None) };
    let sums = DispersedSums::new(scan.clone(), states.concat(), aggregate.schema());
    let here: Arc<dyn ExecutionPlan> = Arc::new(AggregateExec::try_new(
        AggregateMode::Partial,
        aggregate.group_expr().clone(),
        aggregate.aggr_expr().to_vec(),
        aggregate.filter_expr().to_vec(),
        here.clone(),
        aggregate.input_schema(),
    )?);
    UnionExec::try_new(vec![here, Arc::new(sums)]).map(Some)
}

/// The states that an aggregate has; none: shares do not tell.
fn states(of: &AggregateFunctionExpr, scan: &DispersedScan) -> Option<Vec<State>> {
    if of.is_distinct() {
        return None;
    }
    let [argument] = &of.expressions()[..] else { return None };
    if of.fun().name() == "count" && argument.downcast_ref::<Literal>().is_some_and(|of| !of.value().is_null()) {
        return Some(vec![State::Rows]);
    }
    let place = scan.place(column(argument, &scan.schema())?)?;
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

/// The plan node: one row.
#[derive(Clone, Debug)]
pub(crate) struct DispersedSums {
    scan: DispersedScan,
    states: Vec<State>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl DispersedSums {
    fn new(scan: DispersedScan, states: Vec<State>, schema: SchemaRef) -> Self {
        let equivalence = EquivalenceProperties::new(schema.clone());
        let partitioning = Partitioning::UnknownPartitioning(1);
        let properties = PlanProperties::new(equivalence, partitioning, EmissionType::Final, Boundedness::Bounded);
        let (properties, metrics) = (Arc::new(properties), ExecutionPlanMetricsSet::new());
        DispersedSums { scan, states, schema, properties, metrics }
    }

    /// Asks for all states.
    fn ask(&self, asking: &Asking) -> Result<RecordBatch> {
        let (kept, table) = (self.scan.kept()?, self.scan.table());
        let opened = self.scan.opened(&kept)?;
        let rows: Rows = kept.state.live.clone();
        let numbers: Vec<u64> = rows.iter().collect();
        let (waiting, mut report) = (Waiting::scan(asking), Report::default());
        let mut sums = Vec::new();
        for state in &self.states {
            let (State::Values(place) | State::Sum(place)) = state else { continue };
            if sums.iter().all(|(of, _)| of != place) {
                let asked = Ask { state: &kept.state, watch: &waiting };
                let sum = opened.sum(asked, table.columns[*place].id.0 as u16, &numbers, &mut report);
                if sum.is_err() {
                    self.scan.is_current(&kept)?;
                }
                let told = sum.map_err(|error| unanswered(&table.name, &kept.declaration.clouds, &waiting, error))?;
                sums.push((*place, told.ok_or_else(|| Error::Bug("a sum without shares".into()))?));
            }
        }
        for note in notes(&table.name, &kept.declaration.clouds, &report) {
            self.scan.note(note);
        }
        let of = |place: usize| sums.iter().find(|(own, _)| *own == place).map(|(_, sum)| *sum);
        let arrays = self.states.iter().zip(self.schema.fields()).map(|(state, field)| {
            let told = match state {
                State::Rows => Some(numbers.len() as i128),
                State::Values(place) => of(*place).map(|sum| i128::from(sum.values)),
                State::Sum(place) => match of(*place) {
                    Some(sum) if sum.values > 0 => Some(sum.total.ok_or(Error::OutOfRange)?),
                    _ => None,
                },
            };
            scalar(field.data_type(), told)
        });
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_>>()?;
        Ok(RecordBatch::try_new(self.schema.clone(), arrays)?)
    }
}

/// One number of a type.
fn scalar(kind: &DataType, number: Option<i128>) -> Result<ArrayRef> {
    let out_of_range = |_| Error::OutOfRange;
    let value = match kind {
        DataType::Int64 => ScalarValue::Int64(number.map(i64::try_from).transpose().map_err(out_of_range)?),
        DataType::UInt64 => ScalarValue::UInt64(number.map(u64::try_from).transpose().map_err(out_of_range)?),
        DataType::Decimal128(precision, scale) => {
            let most = 10_i128.checked_pow(u32::from(*precision)).unwrap_or(i128::MAX);
            if number.is_some_and(|number| number.checked_abs().is_none_or(|of| of >= most)) {
                return Err(Error::OutOfRange);
            }
            ScalarValue::Decimal128(number, *precision, *scale)
        }
        DataType::Float64 => ScalarValue::Float64(number.map(|number| number as f64)),
        other => return Err(Error::Bug(format!("a sum as {other}"))),
    };
    Ok(value.to_array()?)
}

impl DispersedScan {
    /// Whether a column of this table has shares.
    fn adds(&self, place: usize) -> bool {
        let column = &self.table().columns[place];
        let told = self.kept().ok();
        let has = told.and_then(|kept| {
            let own = kept.declaration.column(column.id.0 as u16)?;
            kept.declaration.limbs(own)
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
        write!(f, "DispersedSums: {}, added up at clouds: [{}]", self.scan.table().name, told.join(", "))
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
