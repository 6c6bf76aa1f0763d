//! Which side of a merging join is kept, key by key: the one with fewer rows.
//!
//! The library keeps the rows of the right side that have one key, and goes through those of the left. Of a parent with its children,
//! LEFT JOIN, these are the children of one parent, and they may be many; so the sides are exchanged:
//!
//! ```text
//! parents LEFT JOIN children  ->  children FULL JOIN parents, without the rows that have no parent
//! ```

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::stats::Precision;
use datafusion::common::{DataFusionError, JoinType};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::expressions::{Column, IsNotNullExpr};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use super::merged::Expr;
use crate::error::Error;
use crate::unordered::Unordered;

/// How a join is merged.
#[derive(Clone, Copy)]
pub(super) enum Sides {
    /// As it is.
    AsTheyAre,
    /// With its sides exchanged, as a join of this kind; where `there` says so, without the rows in which that column of the left
    /// side is NULL, since it never is otherwise.
    Exchanged { kind: JoinType, there: Option<usize> },
}

impl Sides {
    /// `is_filtered`: whether more is said than that keys are equal.
    pub fn of(
        kind: JoinType,
        (left, right): (&Arc<dyn ExecutionPlan>, &Arc<dyn ExecutionPlan>),
        is_filtered: bool,
    ) -> Result<Self, DataFusionError> {
        let there = left.schema().fields().iter().position(|field| !field.is_nullable());
        let exchanged = match (kind, is_filtered, there) {
            (JoinType::Inner, ..) => Sides::Exchanged { kind, there: None },
            (JoinType::Full, false, _) => Sides::Exchanged { kind, there: None },
            (JoinType::Left, false, Some(_)) => Sides::Exchanged { kind: JoinType::Full, there },
            _ => return Ok(Sides::AsTheyAre),
        };
        let are_more = matches!((rows(left)?, rows(right)?), (Some(left), Some(right)) if right > left);
        Ok(if are_more { exchanged } else { Sides::AsTheyAre })
    }

    /// The columns of the left side and of the right one, of a join whose sides were exchanged.
    pub fn in_order(
        joined: Arc<dyn ExecutionPlan>,
        (left, right): (&Schema, &Schema),
        there: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let count = right.fields().len();
        let column = |schema: &Schema, place: usize, at: usize| Column::new(schema.field(place).name(), at);
        let joined: Arc<dyn ExecutionPlan> = match there {
            None => Arc::new(Unordered::new(joined)),
            Some(there) => {
                let is_there = IsNotNullExpr::new(Arc::new(column(left, there, count + there)));
                Arc::new(FilterExec::try_new(Arc::new(is_there), Arc::new(Unordered::new(joined)))?)
            }
        };
        let of_left = (0..left.fields().len()).map(|place| {
            let own = column(left, place, count + place);
            let is_there = there.is_some() && !left.field(place).is_nullable();
            let shown: Expr = if is_there { Arc::new(There(Arc::new(own))) } else { Arc::new(own) };
            (shown, left.field(place).name().clone())
        });
        let of_right =
            (0..count).map(|place| (Arc::new(column(right, place, place)) as Expr, right.field(place).name().clone()));
        Ok(Arc::new(ProjectionExec::try_new(of_left.chain(of_right).collect::<Vec<_>>(), joined)?))
    }
}

/// About how many rows there are; none where that is not known. Of a join along a foreign key, of which the library knows nothing once it is
/// merged, there are as many as on its larger side.
fn rows(of: &Arc<dyn ExecutionPlan>) -> Result<Option<usize>, DataFusionError> {
    let statistics = StatisticsContext::new().compute(of.as_ref(), &StatisticsArgs::new())?;
    match statistics.num_rows {
        Precision::Exact(rows) | Precision::Inexact(rows) => Ok(Some(rows)),
        Precision::Absent => {
            let below = of.children().into_iter().map(rows).collect::<Result<Vec<_>, _>>()?;
            Ok(below.into_iter().flatten().max())
        }
    }
}

/// A column that is NULL in no row that is left.
#[derive(Debug, Eq)]
struct There(Expr);

impl PartialEq for There {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq(&other.0)
    }
}

impl fmt::Display for There {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Hash for There {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PhysicalExpr for There {
    fn data_type(&self, schema: &Schema) -> Result<DataType, DataFusionError> {
        self.0.data_type(schema)
    }

    fn nullable(&self, _schema: &Schema) -> Result<bool, DataFusionError> {
        Ok(false)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue, DataFusionError> {
        self.0.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.0]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>, DataFusionError> {
        let own = children.into_iter().next().ok_or_else(|| Error::Bug("no column".into()))?;
        Ok(Arc::new(There(own)))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_sql(f)
    }
}
