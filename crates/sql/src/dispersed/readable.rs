//! Rows that are read from clouds as far as they can be: one that no cloud can give back must not stand in the way of the others.
//!
//! Rows of which the same clouds are owed some are read together; if they cannot be, in halves, down to each alone. Where a cloud does not
//! answer that may give them nothing is known of them, and halves would wait for it again: then it is left at that.

use std::sync::Arc;

use counterfoil_disperse::{Asking, Failure, Found, Goal, Layout, Report, Rows, State, Table as Away, Unanswered};
use counterfoil_relation::Table;

use super::repair::{ROWS, Seen, are_all};
use super::waiting::Waiting;
use super::{is_put_back, keep, kept, notes, shared, unanswered};
use crate::error::{Error, Result};
use crate::session::Session;

/// So many rows of a piece are found to be unreadable one by one; of more the rest is taken for it.
pub(super) const UNREAD_MOST: u64 = 64;

/// Where rows are read: a layout, what is known of it, and its clouds.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub layout: &'a Layout,
    /// What clouds are asked for: of what is live, not what they are owed.
    pub state: &'a State,
    pub away: &'a Away,
}

impl Place<'_> {
    /// All columns.
    fn columns(&self) -> Vec<u16> {
        self.layout.declaration.columns.iter().map(|column| column.id).collect()
    }
}

/// What came of reading rows.
#[derive(Default)]
pub(super) struct Readable {
    pub found: Vec<Found>,
    /// Rows that no clouds give back.
    pub unread: Unread,
    /// Those of them that were read alone, when all clouds that may have them answered.
    alone: Rows,
}

/// Rows that could not be read.
#[derive(Default)]
pub(super) struct Unread {
    pub rows: u64,
    /// Why clouds may give some of them later.
    silence: Option<Error>,
}

impl Unread {
    pub fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.silence = self.silence.take().or(other.silence);
    }

    /// What is said of them; nothing if there are none.
    pub fn text(&self, table: &str) -> Option<String> {
        let rows = self.rows;
        match &self.silence {
            None if rows == 0 => None,
            None => Some(format!(
                "{rows} rows cannot be read from any of its clouds: when all of them answer, and what is damaged there cannot be put back \
                 from a copy, REPAIR TABLE {table} LET GO lets go of those"
            )),
            Some(error) => Some(format!("{rows} rows cannot be read now: {error}")),
        }
    }
}

/// What came of giving a cloud rows.
#[derive(Default)]
pub(super) struct Given {
    pub put: Rows,
    pub unread: Unread,
    /// Why it has not got the others.
    pub failure: Option<Failure>,
}

impl Session {
    /// Rows that are read at once, `most` of those that cannot be one by one.
    ///
    /// # Errors
    /// It was called off.
    pub(super) fn read_what_can_be(
        &mut self,
        table: &Table,
        place: Place<'_>,
        (rows, most): (&Rows, u64),
    ) -> Result<Readable> {
        let (interrupt, mut readable) = (self.interrupt(), Readable::default());
        let (waiting, clouds) = (Waiting::statement(&interrupt), &place.layout.declaration.clouds);
        let asking = Asking { state: place.state, watch: &waiting, goal: Goal::Ordinary };
        let (columns, mut left, mut report) = (place.columns(), place.state.parts(rows), Report::default());
        while let Some(some) = left.pop() {
            interrupt.check()?;
            let mut own = Report::default();
            let found = place.away.read_rows(asking, &columns, &some, &mut own);
            report.add(own);
            let error = match found {
                Ok(found) => {
                    readable.found.push(found);
                    continue;
                }
                Err(Unanswered::CalledOff) => return Err(waiting.called_off()),
                Err(error) => error,
            };
            if error.may_come() {
                let silence = Some(unanswered(&table.name, clouds, &waiting, error));
                readable.unread.add(Unread { rows: some.len(), silence });
            } else if some.len() > 1 && readable.alone.len() < most {
                left.extend(halves(&some));
            } else {
                readable.unread.add(Unread { rows: some.len(), silence: None });
                readable.alone |= some.iter().filter(|_| some.len() == 1).collect::<Rows>();
            }
        }
        self.notices.extend(notes(&table.name, clouds, &report));
        Ok(readable)
    }

    /// Gives a cloud rows, from what the others have.
    ///
    /// # Errors
    /// It was called off, or another client has gone on with the table meanwhile.
    pub(super) fn give(
        &mut self,
        table: &Arc<Table>,
        place: Place<'_>,
        (cloud, rows): (usize, &Rows),
    ) -> Result<Given> {
        let (mut given, mut left) = (Given::default(), rows.clone());
        while !left.is_empty() {
            self.goes_on(table)?;
            let some: Rows = left.iter().take(ROWS).collect();
            let readable = self.read_what_can_be(table, place, (&some, UNREAD_MOST))?;
            for found in &readable.found {
                let coded = place.away.code(place.state, &found.rows, &found.columns);
                if let Err(failure) = coded.and_then(|coded| place.away.put(place.state, cloud, &coded)) {
                    given.failure = Some(failure);
                    return Ok(given);
                }
                given.put.extend(found.rows.iter().copied());
            }
            given.unread.add(readable.unread);
            left -= some;
        }
        Ok(given)
    }

    /// Lets go of rows that no clouds give back, when all of them answer, be it that files are damaged. They are asked twice: one that stumbles
    /// once has lost nothing.
    pub(super) fn let_go_of_the_unreadable(&mut self, table: &Arc<Table>) -> Result<()> {
        let dispersed = shared(self.engine()).clone();
        let _one_at_a_time = dispersed.telling.lock();
        let (there, seen, _) = self.look(table)?;
        let mut all = Rows::new();
        for (layout, seen) in there.layouts().iter().zip(&seen) {
            self.all_answer(table, layout, seen)?;
            let state = seen.state(layout);
            let place = Place { layout, state: &state, away: &seen.away };
            for rows in seen.away.neighbours(&state, 0, ROWS) {
                let once = self.read_what_can_be(table, place, (&rows, u64::MAX))?.alone;
                if !once.is_empty() {
                    all |= self.read_what_can_be(table, place, (&once, u64::MAX))?.alone;
                }
            }
        }
        if all.is_empty() {
            return Ok(());
        }
        if are_all(&all, &there) {
            return Err(not_now(
                table,
                "it is all of its rows, so clouds or keys are others than they were: DROP TABLE lets go of all",
            ));
        }
        self.change(|session, change| {
            session.is_leased_still(change, table)?;
            session.guard.transaction.be_durable();
            let mut kept = kept(&*change.lease, table)?;
            if is_put_back(&*change.lease, &kept)? {
                return Err(not_now(table, "this database was put back: REPAIR TABLE without more words comes first"));
            }
            kept.gone(&all);
            keep(&mut change.lease, table.id, &kept)
        })?;
        let text = "rows that no cloud could give back are gone";
        self.notices.push(format!("table {}: {text}: {}", table.name, all.len()));
        Ok(())
    }

    /// Refuses where a cloud does not say what it has. One whose files are not as they were written has answered, if it shows other rows:
    /// their places are known to nobody else, so it is neither another server at its address nor somebody in between. What it cannot
    /// show it will not show later either.
    fn all_answer(&self, table: &Table, layout: &Layout, seen: &Seen) -> Result<()> {
        let interrupt = self.interrupt();
        let waiting = Waiting::statement(&interrupt);
        let asking = Asking { state: &layout.state, watch: &waiting, goal: Goal::Ordinary };
        for (cloud, failure) in seen.silent() {
            let (shown, _) =
                seen.away.rows_shown(asking, cloud, &Report::default()).map_err(|_| waiting.called_off())?;
            let is_itself = !(&shown & &layout.state.live).is_empty();
            if !is_itself || !matches!(failure, Failure::Malformed(_)) {
                let name = &layout.declaration.clouds[cloud];
                return Err(not_now(table, &format!("cloud {name} does not say what it has: {failure}")));
            }
        }
        Ok(())
    }
}

fn halves(rows: &Rows) -> [Rows; 2] {
    let first: Rows = rows.iter().take(rows.len() as usize / 2).collect();
    [rows - &first, first]
}

fn not_now(table: &Table, what: &str) -> Error {
    Error::Misuse(format!("table {}: what cannot be read is not known to be lost: {what}", table.name))
}
