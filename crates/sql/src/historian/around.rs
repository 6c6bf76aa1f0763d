//! What `resample` and `value_at` need not read: of each series everything before the last sample that the range begins with, and
//! behind it everything after the first.
//!
//! ```text
//! Historian: ValueAt ...                     Historian: ValueAt ...
//!   Projection, Filter            ->           Projection, Filter
//!     Series: readings                           Series: readings, from the last sample up to ...
//! ```
//! The functions do not change, nor do their answers: the rows that are left out say nothing about the range. What is a sample
//! is judged by what stands between: a row that a filter leaves out is none, nor is one whose value becomes NULL.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};

use super::node::{Operation, Operator, Work};
use super::samples::Samples;
use super::signal::{Method, Signal};
use crate::error::{Error, Result};
use crate::scan::Output;
use crate::series::{Around, Sampled, SeriesScan};
use counterfoil_series::Span;

/// An operator over an input that reads less; none where its answer might not be the same.
pub(crate) fn from_last_sample(
    plan: &Arc<dyn ExecutionPlan>,
) -> Result<Option<Arc<dyn ExecutionPlan>>, DataFusionError> {
    let Some(operator) = plan.downcast_ref::<Operator>() else { return Ok(None) };
    let Some((range, signal, value)) = wanted(&operator.work) else { return Ok(None) };
    let Some(chain) = Chain::of(&operator.input) else { return Ok(None) };
    let keys = operator.work.keys;
    if !(0..=keys).all(|column| chain.is_plain(column, column == keys)) {
        return Ok(None);
    }
    let around = Around { range, beyond: signal.method == Method::Linear, sampled: sampled(chain.steps, keys, value) };
    Ok(Some(Arc::new(operator.with_input(rebuilt(&operator.input, around)?))))
}

/// The range that an operator asks about, and which column of its input holds values.
fn wanted(work: &Work) -> Option<(Span, Signal, usize)> {
    match &work.operation {
        Operation::Resample(resample) => {
            let range = Span { first: resample.grid.start, last: resample.grid.stop - 1 };
            Some((range, resample.signal, work.keys + 1))
        }
        Operation::ValueAt(value_at) => {
            let at = value_at.at?;
            Some((Span { first: at, last: at }, value_at.signal, work.keys + 2))
        }
        _ => None,
    }
}

/// What is done with the rows of a scan.
#[derive(Clone)]
enum Between {
    Project(Vec<Arc<dyn PhysicalExpr>>, SchemaRef),
    Filter(Arc<dyn PhysicalExpr>, Option<Vec<usize>>),
}

/// The nodes between an operator and the scan under it, the lowest first.
struct Chain<'a> {
    scan: &'a SeriesScan,
    steps: Vec<Between>,
}

impl<'a> Chain<'a> {
    fn of(plan: &'a Arc<dyn ExecutionPlan>) -> Option<Chain<'a>> {
        let (mut plan, mut steps) = (plan, Vec::new());
        loop {
            if let Some(scan) = plan.downcast_ref::<SeriesScan>() {
                steps.reverse();
                let plain = !scan.is_limited() && !scan.is_around();
                return plain.then_some(Chain { scan, steps });
            }
            let (step, below) = between(plan)?;
            steps.push(step);
            plan = below;
        }
    }

    /// Whether a column is the time of the table, or one that names its series, as it stands there.
    fn is_plain(&self, column: usize, is_time: bool) -> bool {
        let below = self.steps.iter().rev().try_fold(column, |column, step| match step {
            Between::Project(exprs, _) => Some(exprs.get(column)?.downcast_ref::<Column>()?.index()),
            Between::Filter(_, Some(shown)) => shown.get(column).copied(),
            Between::Filter(_, None) => Some(column),
        });
        let place = below.and_then(|column| self.scan.output().get(column).copied());
        match place {
            Some(Output::Column(place)) if is_time => place == self.scan.form().time,
            Some(Output::Column(place)) => self.scan.form().keys.contains(&place),
            _ => false,
        }
    }
}

/// A node that does the same with each row, whichever others there are; and what is under it.
fn between(plan: &Arc<dyn ExecutionPlan>) -> Option<(Between, &Arc<dyn ExecutionPlan>)> {
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let exprs: Vec<_> = projection.expr().iter().map(|shown| shown.expr.clone()).collect();
        let steady = !exprs.iter().any(is_volatile);
        return steady.then(|| (Between::Project(exprs, projection.schema()), projection.input()));
    }
    let filter = plan.downcast_ref::<FilterExec>()?;
    let steady = filter.fetch().is_none() && !is_volatile(filter.predicate());
    let shown = filter.projection().as_ref().map(|shown| shown.to_vec());
    steady.then(|| (Between::Filter(filter.predicate().clone(), shown), filter.input()))
}

impl Between {
    fn of(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        match self {
            Between::Project(exprs, schema) => {
                let column = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(batch)?.into_array(batch.num_rows());
                let columns = exprs.iter().map(column).collect::<Result<_, DataFusionError>>()?;
                Ok(RecordBatch::try_new(schema.clone(), columns)?)
            }
            Between::Filter(predicate, shown) => {
                let stays = predicate.evaluate(batch)?.into_array(batch.num_rows())?;
                let stays = stays.as_boolean_opt().ok_or_else(|| Error::Bug("a condition that is none".into()))?;
                let batch = filter_record_batch(batch, stays)?;
                Ok(match shown {
                    Some(shown) => batch.project(shown)?,
                    None => batch,
                })
            }
        }
    }
}

/// Looks for samples among the rows of a scan.
fn sampled(steps: Vec<Between>, time: usize, value: usize) -> Sampled {
    Arc::new(move |rows| {
        let rows = steps.iter().try_fold(rows.clone(), |rows, step| step.of(&rows))?;
        let samples = Samples::new(&rows, time, value, value + 1)?;
        let mut places = (0..rows.num_rows()).filter_map(|row| samples.at(row)).map(|sample| sample.ts);
        let first = places.next();
        let last = places.next_back().or(first);
        Ok(first.zip(last).map(|(first, last)| Span { first, last }))
    })
}

/// The same nodes over a scan of less.
fn rebuilt(plan: &Arc<dyn ExecutionPlan>, around: Around) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    let less = plan.clone().transform_up(|plan| match plan.downcast_ref::<SeriesScan>() {
        Some(scan) => Ok(Transformed::yes(Arc::new(scan.around(around.clone())) as Arc<dyn ExecutionPlan>)),
        None => Ok(Transformed::no(plan)),
    })?;
    Ok(less.data)
}
