//! Columns of which no cloud shows all rows that are wanted: files of it are damaged, or it has lost some. What one hides others may show, so
//! each says first which rows it can show, and then gives those that others hide.
//!
//! A cloud that says that it shows a row and does not give it is one that lacks it, as everywhere: nobody is asked a third time.

use std::sync::atomic::AtomicBool;

use crate::asked::{self, Progress};
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

    /// What is known of some rows, where clouds that have a column are owed those that they do not show of it.
    fn as_shown(&self, asking: Asking<'_>, id: u16, wanted: Wanted<'_>, report: &Report) -> Result<State, Unanswered> {
        let placement = self.coder().placement();
        let (holders, is_whole) = (placement.cell_holders(id), placement.fragment(id, Coding::Cell).is_some());
        let mut there: Vec<Option<Rows>> = vec![None; self.clouds().len()];
        for (number, cloud) in holders.into_iter().enumerate() {
            let coding = if is_whole { Coding::Cell } else { Coding::Piece(number as u8) };
            let name = self.coder().column_name(cloud, id, coding);
            there[cloud] = Some(match report.is_silent(cloud) {
                // It would be waited for again.
                true => Rows::new(),
                false => self.shown_at(asking, cloud, name, wanted)?,
            });
        }
        Ok(asking.state.of_some(wanted.set).as_shown(there.iter().map(Option::as_ref)))
    }

    /// The rows of which a cloud shows a column, whatever else it says: of one that fails it is none.
    fn shown_at(&self, asking: Asking<'_>, cloud: usize, name: Name, wanted: Wanted<'_>) -> Result<Rows, Unanswered> {
        let (is_enough, progress, mut shown) = (AtomicBool::new(false), Progress::default(), Rows::new());
        let wait = self.wait(asking.watch, &is_enough, &progress);
        let asked = self.question(asking, cloud, vec![name.clone()], wanted);
        let done = asked::ask_for_rows(&self.clouds()[cloud], asked, wait, &mut |answer| {
            asking.watch.part(0)?;
            strings(std::slice::from_ref(&name), &answer)?;
            shown.extend(self.coder().rows(&asking.state.epochs, cloud, answer.rows.places).flatten());
            Ok(())
        });
        match done {
            Ok(_) => Ok(shown),
            Err(Failure::CalledOff) => Err(Unanswered::CalledOff),
            Err(_) => Ok(Rows::new()),
        }
    }
}
