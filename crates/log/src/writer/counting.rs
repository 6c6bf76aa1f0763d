//! When the counter takes its step: with every commit, or once for all commits of a while.
//!
//! A cut before the step leaves durable commits one ahead of the counter, which the next opening completes.

use alloc::boxed::Box;

use counterfoil_vault::Counter;

use super::{Counting, Writer};
use crate::{Error, opening};

impl Writer {
    /// After a commit: lets the counter take its step where it is due.
    pub(super) fn count_if_due(&mut self) -> Result<(), Error> {
        match &self.settings.counting {
            Counting::EveryCommit => self.count(),
            Counting::Every { clock, .. } => {
                let now = clock();
                self.group_opened.get_or_insert(now);
                self.close_group_if_due()
            }
        }
    }

    /// Closes the group of commits if it has been open for as long as it may. Whoever has nothing to commit for a while
    /// calls this, so that the last commits do not stay uncounted.
    ///
    /// # Errors
    /// As [`Writer::count`].
    pub fn close_group_if_due(&mut self) -> Result<(), Error> {
        let (Counting::Every { milliseconds, clock }, Some(opened)) = (&self.settings.counting, self.group_opened)
        else {
            return Ok(());
        };
        if clock().saturating_sub(opened) >= *milliseconds { self.count() } else { Ok(()) }
    }

    /// Milliseconds until the open group of commits is due to be closed; none if no group is open.
    pub fn group_closes_in(&self) -> Option<u64> {
        let (Counting::Every { milliseconds, clock }, Some(opened)) = (&self.settings.counting, self.group_opened)
        else {
            return None;
        };
        Some(milliseconds.saturating_sub(clock().saturating_sub(opened)))
    }

    /// Whether commits stand that are not counted yet: what they freed cannot be granted before.
    pub(super) fn waits_for_the_counter(&self) -> bool {
        self.counted != self.end.version
    }

    /// Closes the group of commits: from now on an image without them is refused.
    ///
    /// # Errors
    /// [`crate::Cause::CounterLost`] and [`crate::Cause::CounterFailed`], which latch.
    pub fn count(&mut self) -> Result<(), Error> {
        self.require_sound()?;
        self.group_opened = None;
        if self.counted == self.end.version {
            return Ok(());
        }
        self.flush_frames()?;
        if let Some(counter) = &mut self.settings.counter
            && let Err(error) = counter.step(self.end.version, &self.end.tag)
        {
            let lost = opening::lost(&self.end, &error);
            (self.failed, self.lost) = (true, Some(lost.clone()));
            return Err(lost);
        }
        self.counted = self.end.version;
        Ok(())
    }

    /// Takes a counter that was kept back until now, and binds it to the last commit, wherever it stood.
    pub(crate) fn bind(&mut self, mut counter: Box<dyn Counter + Send>) -> Result<(), Error> {
        self.flush_frames()?;
        self.group_opened = None;
        let end = &self.end;
        let adopted = counter.adopt(end.version, &end.tag).and_then(|()| opening::wants_every_commit(&mut *counter));
        let every_commit = adopted.map_err(|error| opening::lost(end, &error)).inspect_err(|_| self.failed = true)?;
        if every_commit {
            self.settings.counting = Counting::EveryCommit;
        }
        self.settings.counter = Some(counter);
        self.counted = self.end.version;
        Ok(())
    }
}
