//! Where a partial aggregation over a series table asks what summaries say, they say it.

use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};

use super::node::SeriesSummaries;
use super::question::{Input, Reader};

/// What takes the place of an aggregation that summaries answer.
pub(crate) fn from_summaries(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>, DataFusionError> {
    let Some(aggregate) = plan.downcast_ref::<AggregateExec>() else { return Ok(None) };
    if *aggregate.mode() != AggregateMode::Partial {
        return Ok(None);
    }
    let Some(input) = Input::of(aggregate.input()) else { return Ok(None) };
    let scan = input.scan;
    if scan.is_limited() {
        return Ok(None);
    }
    let summarized = scan.summarized()?;
    let Some(asked) = Reader::read(aggregate, input, &summarized, scan.series_count()) else { return Ok(None) };
    Ok(Some(Arc::new(SeriesSummaries::new(scan, asked, aggregate.schema())?)))
}
