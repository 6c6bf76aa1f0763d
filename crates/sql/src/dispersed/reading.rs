//! Asking all layouts of a table for what they have, each its own clouds.
//!
//! A snapshot says which rows there are; where they lie now is another matter, for they move. A row's values belong to its number for
//! ever, so whoever holds an older snapshot asks where its rows lie today. Of an answer that must miss no row it is looked at
//! afterwards whether some were deleted, or a layout began to be dropped, while clouds were asked: then they may have been gone there.

use counterfoil_disperse::{self as disperse, Asking, Goal, Kept, Report, Rows, State, Unanswered};
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

/// Whether rows are at clouds still.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum There {
    All,
    /// More clouds than may fail lack some of them, or do not say what they have.
    Unknown,
    /// More clouds than may fail say that they have not some of them.
    Gone,
}

/// Whether some row is in more sets than so many.
fn is_in_too_many<'a>(sets: impl Iterator<Item = &'a Rows> + Clone, most: usize) -> bool {
    let all = sets.clone().fold(Rows::new(), |all, set| all | set);
    all.iter().any(|row| sets.clone().filter(|set| set.contains(row)).count() > most)
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
    pub(super) fn are_there(&self, waiting: &Waiting<'_>) -> Result<There> {
        let there = self.parts.iter().map(|part| self.is_there(part, waiting, &Report::default()));
        there.collect::<Result<Vec<There>>>().map(|all| all.into_iter().max().unwrap_or(There::All))
    }

    /// The same of one layout, of whose clouds something is known.
    fn is_there(&self, part: &Part, waiting: &Waiting<'_>, report: &Report) -> Result<There> {
        let Part { state, opened, .. } = part;
        let declaration = opened.coder().declaration();
        let asking = Asking { state, watch: waiting, goal: self.goal };
        let (mut lacked, mut hidden) = (Vec::new(), Vec::new());
        for (cloud, untold) in state.untold.iter().enumerate() {
            let shown = opened.rows_shown(asking, cloud, report);
            let (there, is_all) = shown.map_err(|_| waiting.called_off())?;
            // That it lacks what it is owed says nothing.
            let missing = (&state.live - &there) - &untold.owed;
            if is_all { lacked.push(missing) } else { hidden.push(missing) }
        }
        Ok(if is_in_too_many(lacked.iter(), declaration.may_fail) {
            There::Gone
        } else if is_in_too_many(lacked.iter().chain(&hidden), declaration.may_fail) {
            There::Unknown
        } else {
            There::All
        })
    }

    /// Asks each layout; what is to be said of clouds is noted. Where more of them than may fail say that they have not the same rows, nothing
    /// is said of them, and why it is so where there is no answer.
    pub(super) fn each<T>(
        &self,
        waiting: &Waiting<'_>,
        noted: &mut Vec<String>,
        mut ask: impl FnMut(&disperse::Table, Asking<'_>, &mut Report) -> Result<T, Unanswered>,
    ) -> Result<Vec<T>> {
        let mut answers = Vec::new();
        for part in &self.parts {
            let (Part { state, opened, .. }, mut report) = (part, Report::default());
            let answer = ask(opened, Asking { state, watch: waiting, goal: self.goal }, &mut report);
            let clouds = &opened.coder().declaration().clouds;
            let why = match answer {
                Err(Unanswered::CalledOff) => None,
                _ => why_they_lack_rows(self.at, self.table, &mut report, |report| {
                    Ok(self.is_there(part, waiting, report)? == There::Gone)
                })?,
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
        "rows of table {0} were deleted at its clouds while they were read: ask again, in a new transaction; if it stays so, another \
         client has taken the table over (REPAIR TABLE {0})",
        table.name
    ))
}
