//! What all requests of a listener share.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::listener::answer::Refusal;
use crate::listener::limits::Limits;
use crate::listener::queue::Queue;
use crate::listener::sink::{Sink, SinkError};

/// Questions to the sink at once: checking a password takes a processor some milliseconds.
pub(crate) const QUESTIONS_MAX: usize = 4;

pub(crate) struct Shared {
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) limits: Limits,
    pub(crate) quality_fields: Arc<[String]>,
    pub(crate) queue: Queue,
    /// Places for requests whose body is read.
    pub(crate) writes: Arc<Semaphore>,
    /// Places for questions to the sink.
    pub(crate) questions: Arc<Semaphore>,
}

impl Shared {
    pub(crate) fn stopping(&self) -> Refusal {
        Refusal::Stopping(self.limits.retry_after)
    }

    /// Asks the sink something, which may block, on a thread of its own.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn Sink) -> Result<T, SinkError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let place = timeout(self.limits.queue_wait, self.questions.clone().acquire_owned()).await;
        let place = place.map_err(|_| Refusal::Busy(self.limits.retry_after))?.map_err(|_| self.stopping())?;
        let sink = self.sink.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let answer = question(&*sink);
            drop(place);
            answer
        });
        asked.await.map_err(|_| self.stopping())?.map_err(|error| Refusal::Sink(error, self.limits.retry_after))
    }
}
