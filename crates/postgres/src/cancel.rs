//! Ending what a client runs, for another client that knows the key.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use counterfoil::Interrupt;

/// Ends what a client runs.
#[derive(Clone)]
pub struct Cancel {
    interrupt: Interrupt,
    /// Whether it was asked for since the client's last text: between two statements there is none that could be ended.
    is_asked: Arc<AtomicBool>,
}

impl Cancel {
    /// Of the client whose statements this ends.
    pub fn of(interrupt: Interrupt) -> Self {
        Cancel { interrupt, is_asked: Arc::default() }
    }

    /// Ends the statement that runs and those that stand behind it in the same text.
    pub fn raise(&self) {
        self.is_asked.store(true, Ordering::SeqCst);
        self.interrupt.raise();
    }

    /// Forgets what was asked before a text came.
    pub fn begin(&self) {
        self.is_asked.store(false, Ordering::SeqCst);
    }

    /// Whether what stands behind is to be left out.
    pub fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::SeqCst)
    }
}
