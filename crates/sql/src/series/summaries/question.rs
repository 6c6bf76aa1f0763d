//! What an aggregation asks, if summaries can say it.

use std::sync::Arc;

use counterfoil_relation::{Table, Type};
use counterfoil_series::Summarized;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::DataFusionError;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::scalar::ScalarValue;

use crate::bin::Bin;
use crate::date_bin;
use crate::historian::Tick;
use crate::scan::Output;
use crate::series::{Form, SeriesScan};

/// By what rows are grouped.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Group {
    /// The column at this place names a series.
    Key(usize),
    /// Buckets of time.
    Bin(Bin),
}

/// What is asked of each group.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Wanted {
    /// How many rows.
    Rows,
    /// How many values of a column, by its place among those of which summaries are wanted.
    Count(usize),
    Sum(usize),
    Mean(usize),
    Least(usize, Type),
    Greatest(usize, Type),
    /// The earliest time, or the latest.
    Time {
        latest: bool,
    },
    /// A column of the first point, or of the last, with those that the library orders by.
    End {
        of: Place,
        latest: bool,
        ordered: Vec<Place>,
    },
}

/// A column of a single point.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    /// One that names the series.
    Key(usize),
    Time,
    /// One of which summaries are wanted, with its type.
    Summary(usize, Type),
    /// Any other, by its number in the engine.
    Point(usize, Type),
}

/// A question that can be answered without a look at all points.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) groups: Vec<Group>,
    pub(super) wanted: Vec<Wanted>,
    /// Columns of the engine of which summaries are wanted.
    pub(super) columns: Vec<usize>,
    /// Whether points are looked up at the ends of buckets.
    pub(super) ends: bool,
    /// Whether each group is one series, or a part of one.
    pub(super) single: bool,
}

/// What reads the input of an aggregation, with the expressions in between put into those above.
pub(super) struct Input<'a> {
    pub(super) scan: &'a SeriesScan,
    between: Vec<&'a ProjectionExec>,
}

impl<'a> Input<'a> {
    pub(super) fn of(plan: &'a Arc<dyn ExecutionPlan>) -> Option<Input<'a>> {
        let (mut plan, mut between) = (plan, Vec::new());
        loop {
            if let Some(scan) = plan.downcast_ref::<SeriesScan>() {
                return Some(Input { scan, between });
            }
            let projection = plan.downcast_ref::<ProjectionExec>()?;
            between.push(projection);
            plan = projection.input();
        }
    }

    /// An expression over the scan.
    fn over_scan(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
        let through = |expr: Arc<dyn PhysicalExpr>, projection: &&ProjectionExec| {
            let replaced = expr.transform_up(|expr| match expr.downcast_ref::<Column>() {
                None => Ok(Transformed::no(expr)),
                Some(column) => match projection.expr().get(column.index()) {
                    Some(below) => Ok(Transformed::yes(below.expr.clone())),
                    None => Err(DataFusionError::Internal("a column that is not there".into())),
                },
            });
            replaced.map(|replaced| replaced.data)
        };
        self.between.iter().try_fold(expr.clone(), through).ok()
    }
}

/// Gathers what is asked.
pub(super) struct Reader<'a> {
    input: Input<'a>,
    table: &'a Table,
    form: &'a Form,
    summarized: &'a Summarized,
    asked: Asked,
}

impl<'a> Reader<'a> {
    /// What an aggregation asks; none if its plan had better stay.
    pub(super) fn read(
        aggregate: &AggregateExec,
        input: Input<'a>,
        summarized: &'a Summarized,
        series_count: usize,
    ) -> Option<Asked> {
        let by = aggregate.group_expr();
        let plain = by.is_single() && by.null_expr().is_empty() && aggregate.limit_options().is_none();
        if !plain || aggregate.filter_expr().iter().any(Option::is_some) {
            return None;
        }
        let (table, form) = (input.scan.table(), input.scan.form());
        let asked = Asked { groups: Vec::new(), wanted: Vec::new(), columns: Vec::new(), ends: false, single: false };
        let mut reader = Reader { input, table, form, summarized, asked };
        for (expr, _) in by.expr() {
            let group = reader.group(expr)?;
            reader.asked.groups.push(group);
        }
        let bins = reader.asked.groups.iter().filter(|group| matches!(group, Group::Bin(_))).count();
        let named = |place: &usize| reader.asked.groups.contains(&Group::Key(*place));
        reader.asked.single = series_count <= 1 || form.keys.iter().all(named);
        for expr in aggregate.aggr_expr() {
            let wanted = reader.wanted(expr)?;
            reader.asked.wanted.push(wanted);
        }
        // DISTINCT has groups and asks nothing of them: the names of series are at hand, but whether they have points is not.
        (bins <= 1 && !reader.asked.wanted.is_empty()).then_some(reader.asked)
    }

    /// The place of a plain column in the table.
    fn column(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
        let column = expr.downcast_ref::<Column>()?;
        match self.input.scan.output().get(column.index())? {
            Output::Column(place) => Some(*place),
            Output::RowId => None,
        }
    }

    fn group(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Group> {
        let expr = self.input.over_scan(expr)?;
        if let Some(place) = self.column(&expr) {
            return self.form.keys.contains(&place).then_some(Group::Key(place));
        }
        let call = expr.downcast_ref::<ScalarFunctionExpr>().filter(|call| call.fun().name() == date_bin::NAME)?;
        let [width, time, origin @ ..] = call.args() else { return None };
        let literal =
            |expr: &Arc<dyn PhysicalExpr>| expr.downcast_ref::<Literal>().map(|literal| literal.value().clone());
        let origin = match origin {
            [] => 0,
            [origin] => ticks(&literal(origin)?)?,
            _ => return None,
        };
        let ScalarValue::IntervalMonthDayNano(Some(width)) = literal(width)? else { return None };
        let tick = Tick::of(&time.data_type(&self.input.scan.schema()).ok()?)?;
        (self.column(time)? == self.form.time).then_some(())?;
        // What is no width is refused where the plan is run.
        Bin::new(width, origin, tick).ok().map(Group::Bin)
    }

    fn wanted(&mut self, expr: &AggregateFunctionExpr) -> Option<Wanted> {
        if expr.is_distinct() || expr.ignore_nulls() {
            return None;
        }
        let arguments = expr.expressions();
        let [argument] = arguments.as_slice() else { return None };
        let argument = self.input.over_scan(argument)?;
        match expr.fun().name() {
            "count" => self.count(&argument),
            "sum" => self.summed(&argument).map(Wanted::Sum),
            "avg" => self.summed(&argument).map(Wanted::Mean),
            name @ ("min" | "max") => self.extreme(&argument, name == "max"),
            name @ ("first_value" | "last_value") => self.end(&argument, expr, name == "last_value"),
            _ => None,
        }
    }

    fn count(&mut self, argument: &Arc<dyn PhysicalExpr>) -> Option<Wanted> {
        if let Some(literal) = argument.downcast_ref::<Literal>() {
            return (!literal.value().is_null()).then_some(Wanted::Rows);
        }
        let place = self.column(argument)?;
        if place == self.form.time || self.form.keys.contains(&place) {
            return Some(Wanted::Rows);
        }
        self.summary(place).map(Wanted::Count)
    }

    /// A column of numbers, or what it is cast to that it may be summed.
    fn summed(&mut self, argument: &Arc<dyn PhysicalExpr>) -> Option<usize> {
        let (expr, to) = match argument.downcast_ref::<CastExpr>() {
            Some(cast) => (cast.expr(), Some(cast.cast_type().clone())),
            None => (argument, None),
        };
        let place = self.column(expr)?;
        let fits = matches!(
            (&self.table.columns.get(place)?.kind, to),
            (Type::Double | Type::BigInt | Type::Numeric { .. }, None)
                | (Type::SmallInt | Type::Integer | Type::BigInt, Some(DataType::Int64 | DataType::Float64))
                | (Type::Real | Type::Double, Some(DataType::Float64))
        );
        if fits { self.summary(place) } else { None }
    }

    fn extreme(&mut self, argument: &Arc<dyn PhysicalExpr>, greatest: bool) -> Option<Wanted> {
        let place = self.column(argument)?;
        if place == self.form.time {
            return Some(Wanted::Time { latest: greatest });
        }
        let kind = self.table.columns[place].kind;
        if matches!(kind, Type::Boolean) {
            return None;
        }
        let at = self.summary(place)?;
        Some(if greatest { Wanted::Greatest(at, kind) } else { Wanted::Least(at, kind) })
    }

    /// The first value or the last by time: within one series no two points have one time.
    fn end(&mut self, argument: &Arc<dyn PhysicalExpr>, expr: &AggregateFunctionExpr, last: bool) -> Option<Wanted> {
        if !self.asked.single {
            return None;
        }
        let (time, named) = expr.order_bys().split_last()?;
        let mut ordered = Vec::new();
        for by in named {
            let place = self.column(&self.input.over_scan(&by.expr)?)?;
            ordered.push(self.form.keys.contains(&place).then_some(Place::Key(place))?);
        }
        if self.column(&self.input.over_scan(&time.expr)?)? != self.form.time {
            return None;
        }
        ordered.push(Place::Time);
        let place = self.column(argument)?;
        let of = self.place(place)?;
        Some(Wanted::End { of, latest: last != time.options.descending, ordered })
    }

    fn place(&mut self, place: usize) -> Option<Place> {
        if place == self.form.time {
            return Some(Place::Time);
        }
        if self.form.keys.contains(&place) {
            return Some(Place::Key(place));
        }
        let kind = self.table.columns.get(place)?.kind;
        if let Some(at) = self.summary(place) {
            return Some(Place::Summary(at, kind));
        }
        self.asked.ends = true;
        Some(Place::Point(self.slot(place)?, kind))
    }

    fn slot(&self, place: usize) -> Option<usize> {
        self.form.values.iter().find(|(other, _)| *other == place).map(|(_, slot)| *slot)
    }

    /// The place of a column among those of which summaries are wanted; none if it has none.
    fn summary(&mut self, place: usize) -> Option<usize> {
        let slot = self.slot(place)?;
        if !self.summarized.columns.iter().any(|column| *column as usize == slot) {
            return None;
        }
        let columns = &mut self.asked.columns;
        Some(columns.iter().position(|other| *other == slot).unwrap_or_else(|| {
            columns.push(slot);
            columns.len() - 1
        }))
    }
}

fn ticks(time: &ScalarValue) -> Option<i64> {
    match time {
        ScalarValue::TimestampMicrosecond(ticks, _) | ScalarValue::TimestampNanosecond(ticks, _) => *ticks,
        _ => None,
    }
}
