//! The way of a batch to the one thread that writes.
//!
//! 1. A batch is answered when the sink has said that it is durable, or not at all.
//! 2. A batch that waited too long is never written: the thread asks whether anybody still waits before it begins.
//! 3. What the thread finds in the queue goes to the sink together, so that one commit covers it.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::listener::sink::{Sink, SinkError, Write, Written};

type Outcome = Result<Written, SinkError>;

struct Job {
    write: Write,
    started: oneshot::Sender<()>,
    done: oneshot::Sender<Outcome>,
}

/// Why a batch was not written.
#[derive(Debug)]
pub(crate) enum NotWritten {
    /// It waited too long.
    Busy,
    /// The queue is closed, or the thread is gone.
    Closed,
    Sink(SinkError),
}

/// The queue's end for requests.
#[derive(Clone)]
pub(crate) struct Queue(Arc<Mutex<Option<mpsc::Sender<Job>>>>);

impl Queue {
    /// A queue, and the thread that empties it into `sink`: it ends when the queue is closed and empty.
    pub(crate) fn start(sink: Arc<dyn Sink>, batches_max: usize) -> std::io::Result<(Queue, thread::JoinHandle<()>)> {
        let (sender, receiver) = mpsc::channel(batches_max);
        let thread = thread::Builder::new().name("influx-ingest".to_owned());
        let thread = thread.spawn(move || ingest(&*sink, receiver))?;
        Ok((Queue(Arc::new(Mutex::new(Some(sender)))), thread))
    }

    /// Takes no more batches; those that are in it are still written.
    pub(crate) fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// True while there is a thread that writes.
    pub(crate) fn is_open(&self) -> bool {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sender.as_ref().is_some_and(|sender| !sender.is_closed())
    }

    /// Writes a batch whose turn comes within `wait`. Once its turn has come it is waited for, however long it takes.
    pub(crate) async fn write(&self, write: Write, wait: Duration) -> Result<Written, NotWritten> {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or(NotWritten::Closed)?;
        let deadline = Instant::now() + wait;
        let place = timeout_at(deadline, sender.reserve()).await.map_err(|_| NotWritten::Busy)?;
        let (started, mut turn) = oneshot::channel();
        let (done, outcome) = oneshot::channel();
        place.map_err(|_| NotWritten::Closed)?.send(Job { write, started, done });
        drop(sender); // so that the thread ends when the queue is closed, whoever still waits for an answer
        if timeout_at(deadline, &mut turn).await.is_err() {
            turn.close();
            if turn.try_recv().is_err() {
                return Err(NotWritten::Busy);
            }
        }
        outcome.await.map_err(|_| NotWritten::Closed)?.map_err(NotWritten::Sink)
    }
}

fn ingest(sink: &dyn Sink, mut receiver: mpsc::Receiver<Job>) {
    while let Some(job) = receiver.blocking_recv() {
        let mut group = Vec::new();
        let mut waiting = Vec::new();
        let mut next = Some(job);
        while let Some(Job { write, started, done }) = next {
            if started.send(()).is_ok() {
                group.push(write);
                waiting.push(done);
            }
            // Not more than the queue holds: who comes while these are taken waits for the next group.
            next = if group.len() < receiver.max_capacity() { receiver.try_recv().ok() } else { None };
        }
        if group.is_empty() {
            continue;
        }
        let mut outcomes = sink.write(group).into_iter();
        for done in waiting {
            let outcome =
                outcomes.next().unwrap_or_else(|| Err(SinkError::Failed("the sink gave no answer".to_owned())));
            // Whoever asked may have gone: the rows are there all the same.
            let _ = done.send(outcome);
        }
    }
}
