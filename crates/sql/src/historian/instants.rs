//! The instants of `value_at`, where they are a table.

use std::collections::HashSet;

use datafusion::common::Column;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit};
use datafusion::scalar::ScalarValue;

use super::call::Call;
use super::expand::Input;
use super::shape::{IS_INSTANT, Place, QUALITY, Shape, VALUE, places};
use crate::error::Result;

/// A table of instants.
pub(super) struct Instants {
    pub time: Place,
    /// The columns that say which series is asked, in the order of its keys; empty where all are.
    keys: Vec<Place>,
    pub extras: Vec<Place>,
}

impl Instants {
    pub(super) fn new(call: &Call, input: &Input, shape: &Shape) -> Result<Self> {
        let all = places(&input.plan);
        let time = call.only_time(input, &all)?;
        let named = |key: &Place| all.iter().find(|place| place.field.name() == key.field.name()).cloned();
        let keys: Vec<Place> = shape.keys.iter().filter_map(named).collect();
        if !keys.is_empty() && keys.len() < shape.keys.len() {
            let names: Vec<&str> = shape.keys.iter().map(|key| key.field.name().as_str()).collect();
            let names = names.join(", ");
            return Err(call.error(format!("at: the instants must have all of the columns {names}, or none of them")));
        }
        let used: HashSet<&Column> = keys.iter().chain([&time]).map(|place| &place.column).collect();
        let extras = all.iter().filter(|place| !used.contains(&place.column)).cloned().collect();
        Ok(Instants { time, keys, extras })
    }

    /// The instants in the shape of the samples: where they name no series, each is asked of every series.
    pub(super) fn rows(&self, plan: LogicalPlan, samples: &LogicalPlan, shape: &Shape) -> Result<LogicalPlan> {
        let series: Vec<Expr> =
            shape.keys.iter().map(|key| Expr::Column(Column::from_name(key.field.name()))).collect();
        let everywhere = self.keys.is_empty() && !series.is_empty();
        let mut rows = LogicalPlanBuilder::from(plan);
        let mut columns: Vec<Expr> = Vec::new();
        if everywhere {
            let all = LogicalPlanBuilder::from(samples.clone()).project(series.clone())?.distinct()?.build()?;
            rows = rows.cross_join(all)?;
            columns = series;
        } else {
            for (own, key) in self.keys.iter().zip(&shape.keys) {
                let column = Expr::Column(own.column.clone());
                columns.push(cast(column, key.kind().clone()).alias(key.field.name()));
            }
        }
        let time = Expr::Column(self.time.column.clone());
        columns.push(cast(time, shape.time.kind().clone()).alias(self.time.field.name()));
        columns.push(lit(true).alias(IS_INSTANT));
        columns.push(lit(ScalarValue::Float64(None)).alias(VALUE));
        columns.push(lit(ScalarValue::Int64(None)).alias(QUALITY));
        columns.extend(self.extras.iter().map(Place::plain));
        Ok(rows.project(columns)?.build()?)
    }
}
