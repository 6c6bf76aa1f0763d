//! The columns of an input, told apart, and the rows that operators read of them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, LogicalPlanBuilder, cast, lit};
use datafusion::scalar::ScalarValue;

use super::call::Call;
use super::expand::Input;
use super::grid::Tick;
use super::instants::Instants;
use super::node::{Node, Operation, Work};
use crate::error::Result;
use crate::types;

/// Tells instants from samples in the input of `value_at`.
pub(super) const IS_INSTANT: &str = "__counterfoil_instant";
/// The names of what operators read by place, which no key has.
pub(super) const VALUE: &str = "__counterfoil_value";
pub(super) const QUALITY: &str = "__counterfoil_quality";

/// A column of an input.
#[derive(Clone)]
pub(super) struct Place {
    pub column: Column,
    pub field: FieldRef,
}

impl Place {
    /// The column under its own name, of no table.
    pub(super) fn plain(&self) -> Expr {
        Expr::Column(self.column.clone()).alias(self.field.name())
    }

    pub(super) fn kind(&self) -> &DataType {
        self.field.data_type()
    }
}

pub(super) fn places(plan: &LogicalPlan) -> Vec<Place> {
    let place =
        |(table, field): (Option<&_>, &FieldRef)| Place { column: Column::from((table, field)), field: field.clone() };
    plan.schema().iter().map(place).collect()
}

/// An input whose columns have been told apart.
pub(super) struct Shape {
    all: Vec<Place>,
    pub keys: Vec<Place>,
    pub time: Place,
    pub tick: Tick,
}

/// The columns that hold a signal.
pub(super) struct Measured {
    value: Expr,
    quality: Expr,
}

impl Call {
    /// Tells keys and time from the other columns.
    pub(super) fn shape(&self, input: &Input, keyed: bool) -> Result<Shape> {
        let all = places(&input.plan);
        let find = |name: &String| {
            let found = all.iter().find(|place| place.field.name() == name).cloned();
            found.ok_or_else(|| {
                let names: Vec<&str> = all.iter().map(|place| place.field.name().as_str()).collect();
                self.error(format!("{} has no column {name} (it has {})", input.name, names.join(", ")))
            })
        };
        let time = match self.column("ts")? {
            Some(name) => find(&name)?,
            None => self.only_time(input, &all)?,
        };
        let Some(tick) = Tick::of(time.kind()) else {
            let kind = types::result_name(time.kind());
            return Err(
                self.error(format!("{} is {kind}: the times must be TIMESTAMP or TIMESTAMPTZ", time.field.name()))
            );
        };
        let names = match (self.columns("by")?, &input.key) {
            (Some(names), _) => names,
            (None, Some(key)) if key.contains(time.field.name()) => {
                key.iter().filter(|name| *name != time.field.name()).cloned().collect()
            }
            (None, _) if keyed && !self.is_one_series(&all, &time)? => {
                return Err(self.error(format!(
                    "which columns of {} tell series apart? Write by => (a, b), or by => '' where all rows are one series",
                    input.name
                )));
            }
            (None, _) => Vec::new(),
        };
        let keys = names.iter().map(find).collect::<Result<Vec<_>>>()?;
        if let Some(twice) = names.iter().enumerate().find(|(place, name)| names[..*place].contains(name)) {
            return Err(self.error(format!("by names {} twice", twice.1)));
        }
        if keys.iter().any(|key| key.column == time.column) {
            return Err(self.error("the time is no key"));
        }
        Ok(Shape { all, keys, time, tick })
    }

    pub(super) fn only_time(&self, input: &Input, all: &[Place]) -> Result<Place> {
        let times: Vec<&Place> = all.iter().filter(|place| matches!(place.kind(), DataType::Timestamp(..))).collect();
        match times.as_slice() {
            [time] => Ok((*time).clone()),
            [] => Err(self.error(format!("{} has no column of type TIMESTAMP", input.name))),
            _ => Err(self.error(format!("{} has {} columns of times: say ts => name", input.name, times.len()))),
        }
    }

    /// Whether there is no column that could be a key.
    fn is_one_series(&self, all: &[Place], time: &Place) -> Result<bool> {
        let value = self.column("value")?.unwrap_or_else(|| "value".into());
        let quality = self.column("quality")?.unwrap_or_else(|| "quality".into());
        let other = |place: &&Place| ![time.field.name(), &value, &quality].contains(&place.field.name());
        Ok(all.iter().find(other).is_none())
    }

    /// Value and quality of a signal, as the operators read them.
    pub(super) fn measured(&self, input: &Input, shape: &Shape) -> Result<Measured> {
        let find = |name: &str| shape.all.iter().find(|place| place.field.name() == name);
        let name = self.column("value")?.unwrap_or_else(|| "value".into());
        let value = find(&name).ok_or_else(|| {
            self.error(format!("{} has no column {name}: say which holds the values with value => name", input.name))
        })?;
        if !(value.kind().is_numeric() || value.kind() == &DataType::Boolean) {
            let kind = types::result_name(value.kind());
            return Err(self.error(format!("{name} is {kind}: values must be numbers or BOOLEAN")));
        }
        let quality = match self.column("quality")? {
            Some(name) => Some(find(&name).ok_or_else(|| self.error(format!("{} has no column {name}", input.name)))?),
            None => find("quality"),
        };
        if let Some(quality) = quality.filter(|quality| !quality.kind().is_integer()) {
            let (name, kind) = (quality.field.name(), types::result_name(quality.kind()));
            return Err(self.error(format!("{name} is {kind}: a quality is a SMALLINT from 0 to 255")));
        }
        let quality = quality.map(|quality| Expr::Column(quality.column.clone()));
        Ok(Measured {
            value: Expr::Column(value.column.clone()),
            quality: quality.unwrap_or_else(|| lit(ScalarValue::Int64(None))),
        })
    }
}

impl Shape {
    pub(super) fn key_fields(&self) -> Vec<FieldRef> {
        self.keys.iter().map(|key| nullable(&key.field)).collect()
    }

    /// The columns of what answers points of a drawing.
    pub(super) fn point_fields(&self) -> Vec<FieldRef> {
        let mut fields = self.key_fields();
        fields.push(Arc::new(self.time.field.as_ref().clone().with_nullable(false)));
        fields.push(Arc::new(Field::new("value", DataType::Float64, false)));
        fields
    }

    /// The columns that are neither key nor time.
    pub(super) fn others(&self) -> Vec<Place> {
        let used: HashSet<&Column> = self.keys.iter().chain([&self.time]).map(|place| &place.column).collect();
        self.all.iter().filter(|place| !used.contains(&place.column)).cloned().collect()
    }

    /// Keys, time, value and quality of the samples within a range; for `value_at` with the columns of its instants.
    pub(super) fn samples(
        &self,
        input: &Input,
        measured: Measured,
        range: (Option<i64>, Option<i64>),
        instants: Option<Option<&Instants>>,
    ) -> Result<LogicalPlan> {
        let time = || Expr::Column(self.time.column.clone());
        let mut rows = LogicalPlanBuilder::from(input.plan.clone());
        if let Some(from) = range.0 {
            rows = rows.filter(time().gt_eq(lit(self.literal(from))))?;
        }
        if let Some(to) = range.1 {
            rows = rows.filter(time().lt_eq(lit(self.literal(to))))?;
        }
        let mut columns: Vec<Expr> = self.keys.iter().map(Place::plain).collect();
        columns.push(self.time.plain());
        if let Some(instants) = instants {
            let name = instants.map_or(self.time.field.name(), |instants| instants.time.field.name());
            columns.pop();
            columns.push(time().alias(name));
            columns.push(lit(false).alias(IS_INSTANT));
        }
        // The operators take numbers of every kind. Where no type is asked for, nothing is computed here: a plan that computes is
        // dealt out to several processors, and the order in which a series table is read is lost.
        let (value, quality) = match instants.flatten() {
            Some(_) => (cast(measured.value, DataType::Float64), cast(measured.quality, DataType::Int64)),
            None => (measured.value, measured.quality),
        };
        columns.extend([value.alias(VALUE), quality.alias(QUALITY)]);
        for extra in instants.flatten().iter().flat_map(|instants| &instants.extras) {
            columns.push(lit(ScalarValue::try_from(extra.kind())?).alias(extra.field.name()));
        }
        Ok(rows.project(columns)?.build()?)
    }

    fn literal(&self, ticks: i64) -> ScalarValue {
        match self.time.kind() {
            DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
                ScalarValue::TimestampNanosecond(Some(ticks), zone.clone())
            }
            DataType::Timestamp(_, zone) => ScalarValue::TimestampMicrosecond(Some(ticks), zone.clone()),
            _ => ScalarValue::Int64(Some(ticks)),
        }
    }

    /// The operator over its input, which is ordered by the keys and so many columns after them.
    pub(super) fn node(
        &self,
        call: &Call,
        operation: Operation,
        input: LogicalPlan,
        fields: Vec<FieldRef>,
        ordered: usize,
    ) -> Result<LogicalPlan> {
        let mut seen = HashSet::new();
        if let Some(twice) = fields.iter().find(|field| !seen.insert(field.name())) {
            let name = twice.name();
            return Err(call.error(format!(
                "the answer has a column {name} of its own: rename yours in a query, (SELECT {name} AS other ...)"
            )));
        }
        let schema = Arc::new(DFSchema::from_unqualified_fields(fields.into(), HashMap::new())?);
        let keys = self.keys.len();
        let work = Work { operation, keys, ordered: keys + ordered };
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(Node { work, input, schema }) }))
    }
}

pub(super) fn nullable(field: &FieldRef) -> FieldRef {
    Arc::new(field.as_ref().clone().with_nullable(true))
}
