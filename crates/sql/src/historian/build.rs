//! The plan of a call: its input brought into the shape that the operator reads, and the operator on top.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Field, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::Expr as Written;

use super::call::Call;
use super::expand::Input;
use super::gapfill::{Fill, Gapfill};
use super::grid::Grid;
use super::instants::Instants;
use super::lttb::Lttb;
use super::m4::M4;
use super::node::Operation;
use super::resample::{self, Resample};
use super::shape::{Place, Shape, nullable};
use super::signal::{Method, Signal};
use super::value_at::ValueAt;
use crate::error::Result;
use crate::planner::Planner;
use crate::types;
use crate::value::parse;

impl Planner {
    /// The plan of a call.
    pub(super) fn build(&self, call: &Call, input: Input, instants: Option<Input>) -> Result<LogicalPlan> {
        match call.function {
            "resample" => self.resample(call, input),
            "value_at" => self.value_at(call, input, instants),
            "gapfill" => self.gapfill(call, input),
            "m4" => self.m4(call, input),
            _ => self.lttb(call, input),
        }
    }

    fn resample(&self, call: &Call, input: Input) -> Result<LogicalPlan> {
        let shape = call.shape(&input, true)?;
        let (grid, signal) = (self.grid(call, &shape)?, self.signal(call, &shape)?);
        let measured = call.measured(&input, &shape)?;
        let range = signal.range(grid.start, grid.stop - 1);
        let samples = shape.samples(&input, measured, range, None)?;
        let mut fields = shape.key_fields();
        fields.push(Arc::new(Field::new("bucket", shape.time.kind().clone(), false)));
        fields.extend(resample::fields().into_iter().map(Arc::new));
        shape.node(call, Operation::Resample(Resample { grid, signal }), samples, fields, 1)
    }

    fn value_at(&self, call: &Call, input: Input, instants: Option<Input>) -> Result<LogicalPlan> {
        let shape = call.shape(&input, true)?;
        let signal = self.signal(call, &shape)?;
        let measured = call.measured(&input, &shape)?;
        let at = match &instants {
            Some(_) => None,
            None => Some(self.instant(call, "at", shape.time.kind())?),
        };
        let range = at.map_or((None, None), |at| signal.range(at, at));
        let own = instants.as_ref().map(|instants| Instants::new(call, instants, &shape)).transpose()?;
        let samples = shape.samples(&input, measured, range, Some(own.as_ref()))?;
        let mut fields = shape.key_fields();
        let name = own.as_ref().map_or(shape.time.field.name(), |own| own.time.field.name());
        let when = |name: &str| Arc::new(Field::new(name, shape.time.kind().clone(), true));
        fields.push(when(name));
        fields.extend(own.iter().flat_map(|own| &own.extras).map(|extra| nullable(&extra.field)));
        fields.push(Arc::new(Field::new("value", DataType::Float64, true)));
        fields.push(Arc::new(Field::new("quality", DataType::Int16, true)));
        fields.push(when("sample_ts"));
        let rows = match (own, instants) {
            (Some(own), Some(instants)) => {
                let asked = own.rows(instants.plan, &samples, &shape)?;
                LogicalPlanBuilder::from(samples).union(asked)?.build()?
            }
            _ => samples,
        };
        let operation = Operation::ValueAt(ValueAt { signal, tick: shape.tick, at });
        shape.node(call, operation, rows, fields, 2)
    }

    fn gapfill(&self, call: &Call, input: Input) -> Result<LogicalPlan> {
        let shape = call.shape(&input, false)?;
        let grid = self.grid(call, &shape)?;
        let values = shape.others();
        let fills = self.fills(call, &values)?;
        let columns = shape.keys.iter().chain([&shape.time]).chain(&values).map(Place::plain);
        let rows = LogicalPlanBuilder::from(input.plan).project(columns.collect::<Vec<_>>())?.build()?;
        let mut fields = shape.key_fields();
        fields.push(Arc::new(shape.time.field.as_ref().clone().with_nullable(false)));
        fields.extend(values.iter().map(|value| nullable(&value.field)));
        shape.node(call, Operation::Gapfill(Gapfill { grid, fills }), rows, fields, 1)
    }

    fn lttb(&self, call: &Call, input: Input) -> Result<LogicalPlan> {
        let shape = call.shape(&input, true)?;
        let measured = call.measured(&input, &shape)?;
        let points = call.required("points")?;
        let wrong = || call.error("points: how many points stay of each series, two at least");
        let count = cast(&self.constants(points, 1)?, &DataType::Int64).map_err(|_| wrong())?;
        let count = count.as_primitive::<Int64Type>();
        let points = count.iter().next().flatten().and_then(|count| usize::try_from(count).ok());
        let points = points.filter(|points| *points >= 2).ok_or_else(wrong)?;
        let samples = shape.samples(&input, measured, (None, None), None)?;
        shape.node(call, Operation::Lttb(Lttb { points }), samples, shape.point_fields(), 1)
    }

    fn m4(&self, call: &Call, input: Input) -> Result<LogicalPlan> {
        let shape = call.shape(&input, true)?;
        let measured = call.measured(&input, &shape)?;
        let grid = self.grid(call, &shape)?;
        let samples = shape.samples(&input, measured, (Some(grid.start), Some(grid.stop - 1)), None)?;
        shape.node(call, Operation::M4(M4 { grid }), samples, shape.point_fields(), 1)
    }

    fn grid(&self, call: &Call, shape: &Shape) -> Result<Grid> {
        let start = self.instant(call, "start", shape.time.kind())?;
        let stop = self.instant(call, "stop", shape.time.kind())?;
        let width = self.interval(call, "width")?.ok_or_else(|| call.error("width is missing"))?;
        Grid::new(start, stop, width, shape.tick).map_err(|error| call.error(error))
    }

    fn signal(&self, call: &Call, shape: &Shape) -> Result<Signal> {
        let method = match call.word("method").as_deref() {
            None | Some("step" | "locf") => Method::Step,
            Some("linear") => Method::Linear,
            Some(other) => return Err(call.error(format!("method => {other}: 'step' (or 'locf') and 'linear' are"))),
        };
        let max_age = self.interval(call, "max_age")?.map(|age| shape.tick.ticks("max_age", age));
        Ok(Signal { method, max_age: max_age.transpose().map_err(|error| call.error(error))? })
    }

    /// A constant in the type of the input's times.
    fn instant(&self, call: &Call, name: &str, kind: &DataType) -> Result<i64> {
        let written = call.required(name)?;
        let wrong = || call.error(format!("{name} => {written}: write a constant timestamp, as '2026-01-31 12:00:00'"));
        let value = self.constant(written).ok_or_else(wrong)?;
        if is_text(value.data_type()) {
            let text = cast(&value, &DataType::Utf8)?;
            let (nanoseconds, _) = parse::timestamp(text.as_string::<i32>().value(0)).ok_or_else(wrong)?;
            let size = if matches!(kind, DataType::Timestamp(TimeUnit::Nanosecond, _)) { 1 } else { 1000 };
            return i64::try_from(nanoseconds.div_euclid(size)).map_err(|_| wrong());
        }
        if !matches!(value.data_type(), DataType::Timestamp(..) | DataType::Date32) {
            return Err(wrong());
        }
        let ticks = cast(&strictly(&value, kind).ok_or_else(wrong)?, &DataType::Int64)?;
        Ok(ticks.as_primitive::<Int64Type>().value(0))
    }

    fn interval(&self, call: &Call, name: &str) -> Result<Option<IntervalMonthDayNano>> {
        let Some(written) = call.argument(name) else { return Ok(None) };
        let wrong = || call.error(format!("{name} => {written}: write a constant interval, as '15 minutes'"));
        let value = self.constant(written).ok_or_else(wrong)?;
        let value = if is_text(value.data_type()) { cast(&value, &DataType::Utf8)? } else { value };
        let value = strictly(&value, &DataType::Interval(IntervalUnit::MonthDayNano)).ok_or_else(wrong)?;
        Ok(Some(value.as_primitive::<IntervalMonthDayNanoType>().value(0)))
    }

    /// The value of an expression without columns, unless it is NULL.
    fn constant(&self, written: &Written) -> Option<ArrayRef> {
        self.constants(written, 1).ok().filter(|value| value.is_valid(0))
    }

    fn fills(&self, call: &Call, values: &[Place]) -> Result<Vec<Fill>> {
        let Some(written) = call.argument("fill") else { return Ok(vec![Fill::Null; values.len()]) };
        let wrong = || call.error(format!("fill => {written}: 'null', 'previous', 'linear', or a constant"));
        let text = match self.constant(written) {
            Some(value) => cast(&value, &DataType::Utf8).map_err(|_| wrong())?.as_string::<i32>().value(0).to_owned(),
            None => written.to_string(),
        };
        let mut words: Vec<&str> = text.split(',').map(str::trim).collect();
        if words.len() == 1 {
            words = vec![words[0]; values.len()];
        }
        if words.len() != values.len() {
            let names: Vec<&str> = values.iter().map(|value| value.field.name().as_str()).collect();
            let (given, names) = (words.len(), names.join(", "));
            return Err(
                call.error(format!("fill: {given} words for the columns {names}: write one for all, or one for each"))
            );
        }
        words.iter().zip(values).map(|(word, value)| fill(call, word, value)).collect()
    }
}

fn fill(call: &Call, word: &str, column: &Place) -> Result<Fill> {
    let (name, kind) = (column.field.name(), types::result_name(column.kind()));
    match word.to_lowercase().as_str() {
        "null" => Ok(Fill::Null),
        "previous" | "prev" | "locf" => Ok(Fill::Previous),
        "linear" if matches!(column.kind(), DataType::Float64 | DataType::Float32) => Ok(Fill::Linear),
        "linear" => {
            Err(call.error(format!("fill: no line goes through {name}, which is {kind}: cast it to DOUBLE PRECISION")))
        }
        _ => match ScalarValue::from(word).cast_to(column.kind()) {
            Ok(value) if !value.is_null() => Ok(Fill::Constant(value)),
            _ => Err(call.error(format!("fill: '{word}' is no {kind} for {name}, nor 'null', 'previous' or 'linear'"))),
        },
    }
}

impl Signal {
    /// The times of the samples on which what is known in `from..=to` depends.
    fn range(&self, from: i64, to: i64) -> (Option<i64>, Option<i64>) {
        let last = match self.method {
            Method::Step => Some(to),
            Method::Linear => self.max_age.map(|age| to.saturating_add(age).saturating_add(1)),
        };
        (self.max_age.map(|age| from.saturating_sub(age)), last)
    }
}

fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// A value in another type, unless that fails.
fn strictly(value: &ArrayRef, kind: &DataType) -> Option<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(value, kind, &options).ok().filter(|value| value.is_valid(0))
}
