//! Columns of which no cloud shows all rows that are wanted: files of it are damaged, or it has lost some. What one hides others may show, so
//! each says first which rows it can show, and then gives those that others hide.
//!
//! A cloud that says that it shows a row and does not give it is one that lacks it, as everywhere: nobody is asked a third time.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::asked::{self, Progress, Running};
use crate::coding::erasure::Pieces;
use crate::fragments::Name;
use crate::gathered::{Wanted, strings};
use crate::goal::Goal;
use crate::placement::Coding;
use crate::plain::Plain;
use crate::provider::Failure;
use crate::state::{Rows, State};
use crate::table::{Asking, Fault, Found, Report, Table, Unanswered};

impl Table {
    /// Columns that were fetched together in vain, each from whoever shows rows of it.
    ///
    /// # Errors
    /// [`Unanswered`]: `why`, where no cloud is known to hide rows that others may show.
    pub(crate) fn fetch_what_each_shows(
        &self,
        asking: Asking<'_>,
        ids: &[u16],
        wanted: Wanted<'_>,
        (report, why): (&mut Report, Unanswered),
    ) -> Result<Vec<Plain>, Unanswered> {
        let hides = |(_, fault): &(usize, Fault)| matches!(fault, Fault::Lacks | Fault::Failed(Failure::Malformed(_)));
        let is_hidden = matches!(why, Unanswered::Column { .. }) && report.faults.iter().any(hides);
        // Whoever wants several to show the same wants each to show all of it.
        if !is_hidden || matches!(asking.goal, Goal::Reliability(_)) {
            return Err(why);
        }
        ids.iter().map(|id| self.fetch_shown(asking, *id, wanted, report)).collect()
    }

    /// A column, row by row from whoever shows it.
    fn fetch_shown(
        &self,
        asking: Asking<'_>,
        id: u16,
        wanted: Wanted<'_>,
        report: &mut Report,
    ) -> Result<Plain, Unanswered> {
        let state = self.as_shown(asking, id, wanted, report)?;
        let asking = Asking { state: &state, ..asking };
        let mut parts = Vec::new();
        for set in state.parts(wanted.set) {
            let rows: Vec<u64> = set.iter().collect();
            let columns = self.fetch_together(asking, &[id], Wanted { rows: &rows, set: &set }, report)?;
            parts.push(Found { rows, columns });
        }
        let column = self.joined(&[id], &parts).columns.pop();
        column.ok_or_else(|| self.unanswered(&state, (&[id], wanted.set), report))
    }

    /// What is known of some rows, where clouds that have a column are owed those that they do not show of it. All are asked at the same
    /// time; one that keeps the others waiting is waited for as long as they do not show enough without it.
    fn as_shown(
        &self,
        asking: Asking<'_>,
        id: u16,
        wanted: Wanted<'_>,
        report: &mut Report,
    ) -> Result<State, Unanswered> {
        let (mut shown, is_enough) = (Shown::new(self, id), AtomicBool::new(false));
        let ask = |cloud: usize, name: Name, progress: &Progress| {
            self.shown_at(asking, (cloud, name), wanted, (&is_enough, progress))
        };
        let ask = &ask;
        std::thread::scope(|scope| {
            let mut running = Running::new(scope);
            for (cloud, name) in self.names_of(id).into_iter().filter(|(cloud, _)| !report.has_failed(*cloud)) {
                running.start(cloud, move |progress| ask(cloud, name, progress));
                if report.is_silent(cloud) || self.is_late(cloud) {
                    running.expect_little(cloud);
                }
            }
            let done = loop {
                if running.is_empty() || running.coming().next().is_none() && shown.is_enough(wanted.set) {
                    break Ok(());
                }
                let Some((cloud, came)) = running.next() else { continue };
                if let Err(unanswered) = shown.take(cloud, came, report) {
                    break Err(unanswered);
                }
            };
            is_enough.store(true, Ordering::Relaxed);
            running.slow().for_each(|cloud| self.note_slow(cloud, report));
            done
        })?;
        Ok(asking.state.of_some(wanted.set).as_shown(shown.there.iter().map(Option::as_ref)))
    }

    /// The clouds that have a column, and what it is called there.
    fn names_of(&self, id: u16) -> Vec<(usize, Name)> {
        let placement = self.coder().placement();
        let is_whole = placement.fragment(id, Coding::Cell).is_some();
        let named = placement.cell_holders(id).into_iter().enumerate().map(|(number, cloud)| {
            let coding = if is_whole { Coding::Cell } else { Coding::Piece(number as u8) };
            (cloud, self.coder().column_name(cloud, id, coding))
        });
        named.collect()
    }

    /// The rows of which a cloud shows a column, whatever else it says: of one that fails it is none. None at all: nobody waited for it.
    fn shown_at(
        &self,
        asking: Asking<'_>,
        (cloud, name): (usize, Name),
        wanted: Wanted<'_>,
        (is_enough, progress): (&AtomicBool, &Progress),
    ) -> Came {
        let mut shown = Rows::new();
        progress.expects(wanted.rows.len());
        let wait = self.wait(asking.watch, is_enough, progress);
        let asked = self.question(asking, cloud, vec![name.clone()], wanted);
        let done = asked::ask_for_rows(&self.clouds()[cloud], asked, wait, &mut |answer| {
            asking.watch.part(0)?;
            strings(std::slice::from_ref(&name), &answer)?;
            shown.extend(self.coder().rows(&asking.state.epochs, cloud, answer.rows.places).flatten());
            Ok(())
        });
        match done {
            Ok((true, damage)) => Ok(Some((shown, damage))),
            Ok((false, _)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

/// What came of asking a cloud: the rows that it shows, and what is wrong with the rest; nothing if nobody waited for it.
type Came = Result<Option<(Rows, Option<Failure>)>, Failure>;

/// Which rows clouds show of a column.
struct Shown {
    /// Of those that have it, what they have shown so far.
    there: Vec<Option<Rows>>,
    /// So many give a value back.
    needed: usize,
}

impl Shown {
    fn new(table: &Table, id: u16) -> Self {
        let placement = table.coder().placement();
        let mut there = vec![None; table.clouds().len()];
        placement.cell_holders(id).into_iter().for_each(|cloud| there[cloud] = Some(Rows::new()));
        Self { there, needed: table.pieces_of(&[id]).map_or(1, Pieces::needed) }
    }

    /// Takes what a cloud shows; nothing: whoever asked it broke off.
    fn take(&mut self, cloud: usize, came: Option<Came>, report: &mut Report) -> Result<(), Unanswered> {
        let broken = || Failure::Malformed("what asks it broke off".into());
        let fault = match came.unwrap_or_else(|| Err(broken())) {
            Ok(Some((rows, damage))) => {
                self.there[cloud] = Some(rows);
                damage
            }
            Ok(None) => None,
            Err(Failure::CalledOff) => return Err(Unanswered::CalledOff),
            Err(failure) => Some(failure),
        };
        fault.into_iter().for_each(|fault| report.note(cloud, Fault::Failed(fault)));
        Ok(())
    }

    /// Whether they give back all of these rows.
    fn is_enough(&self, rows: &Rows) -> bool {
        let shows = |row: u64| self.there.iter().flatten().filter(|shown| shown.contains(row)).count();
        rows.iter().all(|row| shows(row) >= self.needed)
    }
}
