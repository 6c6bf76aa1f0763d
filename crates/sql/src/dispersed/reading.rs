//! Asking all layouts of a table for what they have, each its own clouds.
//!
//! A snapshot says which rows there are; where they lie now is another matter, for they move. A row's values belong to its number for
//! ever, so whoever holds an older snapshot asks where its rows lie today. Of an answer that must miss no row it is looked at
//! afterwards whether some were deleted, or a layout began to be dropped, while clouds were asked: then they may have been gone there.

use counterfoil_disperse::{self as disperse, Asking, Failure, Goal, Kept, Report, Rows, State, Unanswered};
use counterfoil_log::View;
use counterfoil_relation::Table;

use super::gone_on::why_they_lack_rows;
use super::metering::Metering;
use super::waiting::Waiting;
use super::{Dispersed, kept, metered, notes, unanswered};
use crate::error::{Error, Result};

/// Rows of one layout, with its clouds.
struct Part {
    number: u32,
    /// As it is kept, of the rows that are meant alone.
    state: State,
    opened: disperse::Table,
}

/// Rows where they lie.
pub(super) struct Reading<'a> {
    /// As of when they lie there.
    at: (&'a Dispersed, &'a dyn View),
    table: &'a Table,
    parts: Vec<Part>,
    goal: Goal,
}

/// What has become of rows since they were asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    Nothing,
    /// Some lie elsewhere, and are to be asked for there.
    Moved,
    /// Some are not there any more.
    Deleted,
}

impl<'a> Reading<'a> {
    /// All rows of a table that lie at clouds, or some of them, as `kept` says.
    pub(super) fn of(
        (dispersed, view): (&'a Dispersed, &'a dyn View),
        table: &'a Table,
        kept: &Kept,
        rows: Option<&Rows>,
        metering: Option<&Metering>,
    ) -> Result<Self> {
        let mut parts = Vec::new();
        for layout in kept.layouts() {
            let state = rows.map_or_else(|| layout.state.clone(), |rows| layout.state.of_some(rows));
            if !state.live.is_empty() {
                let opened = metered(dispersed, view, table, layout, metering)?;
                parts.push(Part { number: layout.number, state, opened });
            }
        }
        Ok(Self { at: (dispersed, view), table, parts, goal: Goal::Ordinary })
    }

    /// The same of rows of a snapshot, wherever they lie now.
    ///
    /// # Errors
    /// [`Error::Conflict`]: some were deleted meanwhile.
    pub(super) fn now(
        (dispersed, now): (&'a Dispersed, &'a dyn View),
        table: &'a Table,
        rows: &Rows,
        metering: &Metering,
    ) -> Result<Self> {
        let kept = kept(now, table)?;
        match rows.is_subset(&kept.live()) {
            true => Self::of((dispersed, now), table, &kept, Some(rows), Some(metering)),
            false => Err(deleted(table)),
        }
    }

    /// What its answers are to be above all.
    pub(super) fn with_goal(self, goal: Goal) -> Self {
        Self { goal, ..self }
    }

    /// What has become of its rows as of a later view.
    pub(super) fn since(&self, now: &dyn View) -> Result<Since> {
        let kept = kept(now, self.table).map_err(|_| deleted(self.table))?;
        let live = kept.live();
        if !self.parts.iter().all(|part| part.state.live.is_subset(&live)) {
            return Ok(Since::Deleted);
        }
        // A layout keeps its rows at clouds until the last of them has moved.
        let stays = |part: &Part| {
            kept.layouts().iter().any(|layout| layout.number == part.number && !layout.state.live.is_empty())
        };
        Ok(if self.parts.iter().all(stays) { Since::Nothing } else { Since::Moved })
    }

    /// Whether clouds have all of its rows still: of so many that are asked about a condition one has each, and has not failed.
    pub(super) fn are_there(&self, waiting: &Waiting<'_>) -> Result<bool> {
        for Part { state, opened, .. } in &self.parts {
            let (declaration, asking) =
                (opened.coder().declaration(), Asking { state, watch: waiting, goal: self.goal });
            let missing = (0..declaration.clouds.len()).map(|cloud| match opened.rows_at(asking, cloud) {
                // That it lacks what it is owed says nothing.
                Ok((there, _)) => Ok((&state.live - &there) - &state.untold[cloud].owed),
                Err(Failure::CalledOff) => Err(waiting.called_off()),
                Err(_) => Ok(&state.live - &state.untold[cloud].owed),
            });
            let missing = missing.collect::<Result<Vec<Rows>>>()?;
            let all = missing.iter().fold(Rows::new(), |all, missing| all | missing);
            let lack = |row: u64| missing.iter().filter(|missing| missing.contains(row)).count();
            if all.iter().any(|row| lack(row) > declaration.may_fail) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Asks each layout; what is to be said of clouds is noted. Where they are right that rows are not there it is said why, and nothing of
    /// them.
    pub(super) fn each<T>(
        &self,
        waiting: &Waiting<'_>,
        noted: &mut Vec<String>,
        mut ask: impl FnMut(&disperse::Table, Asking<'_>, &mut Report) -> Result<T, Unanswered>,
    ) -> Result<Vec<T>> {
        let mut answers = Vec::new();
        for Part { state, opened, .. } in &self.parts {
            let mut report = Report::default();
            let answer = ask(opened, Asking { state, watch: waiting, goal: self.goal }, &mut report);
            let clouds = &opened.coder().declaration().clouds;
            let why = match answer {
                Err(Unanswered::CalledOff) => None,
                _ => why_they_lack_rows(self.at, self.table, &mut report)?,
            };
            noted.extend(notes(&self.table.name, clouds, &report));
            let answer = answer.map_err(|error| unanswered(&self.table.name, clouds, waiting, error));
            answers.push(answer.map_err(|error| why.unwrap_or(error))?);
        }
        Ok(answers)
    }
}

/// Rows that were to be read are gone.
pub(super) fn deleted(table: &Table) -> Error {
    Error::Conflict(format!(
        "rows of table {} were deleted at its clouds while they were read: ask again, in a new transaction",
        table.name
    ))
}
