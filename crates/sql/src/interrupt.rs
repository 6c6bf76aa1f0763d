//! What ends a statement before its time: somebody else, whoever asks for it, or the time that it was given.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::error::{Error, Result};

/// How often a waiting thread is asked whether its query is called off.
const PATIENCE: Duration = Duration::from_millis(100);

/// Interrupts the statements of one session from another thread.
#[derive(Clone)]
pub struct Interrupt {
    sender: Arc<watch::Sender<bool>>,
    pub(crate) is_called_off: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    /// When the statement that runs has had its time.
    deadline: Option<Instant>,
}

impl Interrupt {
    pub(crate) fn new() -> Self {
        Interrupt { sender: Arc::new(watch::Sender::new(false)), is_called_off: None, deadline: None }
    }

    /// Ends the statement that is running, or the result that is being read, with [`Error::Interrupted`].
    pub fn raise(&self) {
        self.sender.send_replace(true);
    }

    /// The statement that begins now ends after so much time, if it has not.
    pub(crate) fn end_after(&mut self, time: Option<Duration>) {
        self.deadline = time.and_then(|time| Instant::now().checked_add(time));
    }

    pub(crate) fn clear(&self) {
        self.sender.send_replace(false);
    }

    /// Hears of the next [`raise`](Self::raise), or of one before that nothing has cleared.
    pub(crate) fn listen(&self) -> watch::Receiver<bool> {
        self.sender.subscribe()
    }

    /// How long is waited until somebody is asked; without end where nobody is to be.
    pub(crate) fn patience(&self) -> Option<Duration> {
        let asked = self.is_called_off.as_ref().map(|_| PATIENCE);
        let left = self.deadline.map(|deadline| PATIENCE.min(deadline.saturating_duration_since(Instant::now())));
        asked.into_iter().chain(left).min()
    }

    /// Asks between the steps of what no query runs.
    ///
    /// # Errors
    /// [`Error::Interrupted`], [`Error::TimedOut`].
    pub fn check(&self) -> Result<()> {
        match self.called_off() {
            _ if *self.sender.borrow() => Err(Error::Interrupted),
            Some(why) => Err(why),
            None => Ok(()),
        }
    }

    /// Why whoever asks wants it no more, or has no time left for it.
    pub(crate) fn called_off(&self) -> Option<Error> {
        let is_called_off = self.is_called_off.as_ref().is_some_and(|is_called_off| is_called_off());
        match self.deadline {
            _ if is_called_off => Some(Error::Interrupted),
            Some(deadline) if Instant::now() >= deadline => Some(Error::TimedOut),
            _ => None,
        }
    }
}
