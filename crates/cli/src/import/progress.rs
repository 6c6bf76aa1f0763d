//! A bar on a terminal that shows how much of a file was read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::source::Source;
use crate::terminal;

/// A bar, or nothing where nobody would see one. Gone when dropped.
pub struct Progress {
    bar: ProgressBar,
    read: Arc<AtomicU64>,
}

impl Progress {
    pub fn begin(doing: &str, source: &Source) -> Self {
        let bar = if terminal::shows_progress() { ProgressBar::new(source.bytes()) } else { ProgressBar::hidden() };
        let template = "{msg} {bar:30} {percent:>3} % of {total_bytes} {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(format!("{doing} {}", source.place()));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, read: source.progress() }
    }

    /// Shows how far it has come.
    pub fn tick(&self) {
        self.bar.set_position(self.read.load(Ordering::Relaxed));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
