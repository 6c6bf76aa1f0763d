//! Settings in transactions: what SET LOCAL said ends with them, and what SET said is undone with them.
//!
//! | | COMMIT | ROLLBACK | ROLLBACK TO |
//! |---|---|---|---|
//! | SET | stays | as before BEGIN | as at the savepoint |
//! | SET LOCAL | as SET left it | as before BEGIN | as at the savepoint |

use crate::error::Result;
use crate::modes::Modes;
use crate::session::Session;
use crate::settings::Settings;

/// What settings are to be when a transaction ends, or a part of it is undone.
pub(crate) struct Kept {
    /// Before BEGIN.
    before: Settings,
    /// Where it is committed: without what SET LOCAL said.
    lasting: Settings,
    /// At each savepoint, what was and what was to last, and what the transaction was.
    marks: Vec<(Settings, Settings, Modes)>,
    /// Whether anything was said in the transaction, its modes among it.
    is_changed: bool,
}

impl Session {
    /// BEGIN; `differs`: whether the transaction is another one than those of the session are.
    pub(crate) fn keep_settings(&mut self, differs: bool) {
        let (before, lasting) = (self.settings.clone(), self.settings.clone());
        self.kept = Some(Kept { before, lasting, marks: Vec::new(), is_changed: differs });
        if differs {
            self.tell_planner();
        }
    }

    /// SAVEPOINT.
    pub(crate) fn mark_settings(&mut self) {
        let modes = self.modes();
        if let Some(kept) = &mut self.kept {
            kept.marks.push((self.settings.clone(), kept.lasting.clone(), modes));
        }
    }

    /// RELEASE.
    pub(crate) fn release_settings(&mut self) {
        let savepoints = self.guard.transaction.savepoints();
        self.kept.iter_mut().for_each(|kept| kept.marks.truncate(savepoints));
    }

    /// ROLLBACK TO a savepoint, which stays.
    pub(crate) fn undo_settings(&mut self) -> Result<()> {
        self.release_settings();
        let Some(kept) = self.kept.as_mut().filter(|kept| kept.is_changed) else { return Ok(()) };
        if let Some((settings, lasting, modes)) = kept.marks.last() {
            (self.settings, kept.lasting) = (settings.clone(), lasting.clone());
            self.guard.transaction.block().into_iter().for_each(|block| block.modes = *modes);
        }
        self.follow_settings()
    }

    /// The end of the transaction.
    pub(crate) fn end_settings(&mut self, is_committed: bool) -> Result<()> {
        let Some(kept) = self.kept.take().filter(|kept| kept.is_changed) else { return Ok(()) };
        self.settings = if is_committed { kept.lasting } else { kept.before };
        self.follow_settings()
    }

    /// SET and its like: for the session, or to the end of the transaction.
    pub(crate) fn change_settings(
        &mut self,
        is_local: bool,
        change: impl Fn(&mut Settings) -> Result<()>,
    ) -> Result<()> {
        match (&mut self.kept, is_local) {
            (None, true) => {
                // It would end with the statement.
                change(&mut self.settings.clone())?;
                self.notices.push("SET LOCAL is for a transaction, and there is none".into());
                return Ok(());
            }
            (None, false) => change(&mut self.settings)?,
            (Some(kept), is_local) => {
                kept.is_changed = true;
                change(&mut self.settings)?;
                if !is_local {
                    change(&mut kept.lasting)?;
                }
            }
        }
        self.follow_settings()
    }

    /// What the transaction itself is was changed.
    pub(crate) fn change_transaction(&mut self) {
        self.kept.iter_mut().for_each(|kept| kept.is_changed = true);
        self.tell_planner();
    }
}
