//! A query that runs out of working memory starts once more, frugally: in one part and with small batches.
//!
//! ```text
//! plan -> run in parts -> first batch -> the rest
//!              | memory ended
//!              v
//!         run in one part, small batches -> ...
//! ```
//!
//! Sorters and groups of several parts share the bound, and wide rows make large batches. In one part, each has all of
//! its half and a batch is small, so that a sort ends well whatever its size. Once a row has been handed out it is too
//! late for that; sorts and groups hand nothing out before they have seen all rows.

use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::config::ConfigOptions;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use crate::engine::EngineOptions;
use crate::error::Result;
use crate::{memory, running};

/// Rows of a batch in a frugal run.
const BATCH_ROWS: usize = 128;

/// The library set up for frugal runs; none where it is so little memory that no run is otherwise.
pub(crate) fn state(state: &SessionState, engine: &EngineOptions) -> Result<Option<Arc<SessionState>>> {
    if engine.is_little {
        return Ok(None);
    }
    let mut config =
        state.config().clone().with_target_partitions(1).with_batch_size(state.config().batch_size().min(BATCH_ROWS));
    let options: &mut ConfigOptions = config.options_mut();
    memory::configure(options, engine.memory_bytes, 1)?;
    Ok(Some(Arc::new(SessionStateBuilder::new_from_existing(state.clone()).with_config(config).build())))
}

/// Starts a query, with a second start in reserve if there is a state for it.
pub(crate) async fn stream(
    state: &SessionState,
    frugal: Option<&Arc<SessionState>>,
    plan: &LogicalPlan,
) -> Result<SendableRecordBatchStream> {
    // Optimized once: now() is the same in both runs.
    let plan = state.optimize(plan)?;
    let first = start(state, &plan).await?;
    let schema = first.schema();
    let run = Run { stream: Some(first), reserve: frugal.map(|frugal| (frugal.clone(), plan)) };
    let batches = futures::stream::unfold(run, |mut run| async move {
        let batch = run.next().await?;
        Some((batch, run))
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
}

async fn start(state: &SessionState, plan: &LogicalPlan) -> Result<SendableRecordBatchStream, DataFusionError> {
    let physical = state.query_planner().create_physical_plan(plan, state).await?;
    running::start(state, physical)
}

struct Run {
    stream: Option<SendableRecordBatchStream>,
    /// What a second start needs, until the first batch is there.
    reserve: Option<(Arc<SessionState>, LogicalPlan)>,
}

impl Run {
    async fn next(&mut self) -> Option<Result<datafusion::arrow::array::RecordBatch, DataFusionError>> {
        let batch = self.stream.as_mut()?.next().await;
        match (batch, self.reserve.take()) {
            (Some(Err(error)), Some((state, plan))) if is_exhausted(&error) => {
                // What the first run holds is free before the second begins.
                self.stream = None;
                match start(&state, &plan).await {
                    Ok(stream) => self.stream.insert(stream).next().await,
                    Err(error) => Some(Err(error)),
                }
            }
            (batch, _) => batch,
        }
    }
}

fn is_exhausted(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}
