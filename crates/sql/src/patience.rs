//! How long somebody waits for the writer, and who may call that off.

use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::store::Lease;

/// How long a wait goes on before somebody is asked whether to go on.
const LOOK_AFTER: Duration = Duration::from_millis(100);

/// How long somebody waits.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    /// None: for ever.
    until: Option<Instant>,
    look: &'a dyn Fn() -> Result<()>,
}

impl Patience<'static> {
    /// So long, whatever happens.
    pub fn of(time: Duration) -> Self {
        Patience::asking(time, &|| Ok(()))
    }
}

impl<'a> Patience<'a> {
    /// So long, unless `look`, which is asked now and then, answers an error.
    pub fn asking(time: Duration, look: &'a dyn Fn() -> Result<()>) -> Self {
        Patience { until: Instant::now().checked_add(time), look }
    }

    /// What is left of it.
    pub fn left(&self) -> Duration {
        self.until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()))
    }

    /// What is left of it until somebody is to be asked.
    pub fn piece(&self) -> Duration {
        self.left().min(LOOK_AFTER)
    }

    /// Asks whether to go on.
    ///
    /// # Errors
    /// The answer, where it is no.
    pub fn look(&self) -> Result<()> {
        (self.look)()
    }
}

impl Engine {
    /// The writer, for one transaction of a statement that may be called off while it waits.
    ///
    /// # Errors
    /// Those of [`crate::Store::writer`], [`crate::Error::Interrupted`].
    pub(crate) fn writer(&self, time: Duration, interrupt: &Interrupt) -> Result<Lease> {
        self.store.writer(Patience::asking(time, &|| interrupt.check()))
    }
}
