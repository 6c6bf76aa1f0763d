//! REPAIR TABLE ... EXTENDED: what lies at clouds is compared with what they were given, and put there anew where it is not that.
//!
//! ```text
//! 1  each cloud: what it shows otherwise goes and is put there again       cut: it lacks rows, which the next REPAIR gives back
//!                what it does not show any more is put there as well       cut: it has some of it
//! 2  a cloud with files that are not as they were written lets go of the whole table and gets it anew, if the others have all of it
//!    without that one: nothing goes before it is known that all of it can be given back
//! ```
//! All fragments of a row follow from its values: those are read from clouds that show them as they were sealed. Behind 1 all clouds have
//! what any of them could show, so that 2 is done at one after the other, and no row goes that is nowhere else.

use std::sync::Arc;

use counterfoil_disperse::{Asking, Compared, Failure, Found, Goal, Layout, Report, Rows, State, Table as Away};
use counterfoil_relation::Table;

use super::readable::{Place, UNREAD_MOST, Unread};
use super::repair::{Done, ROWS, Repaired, There};
use super::waiting::Waiting;
use super::{shared, unanswered};
use crate::error::{Error, Result};
use crate::session::Session;

impl Session {
    /// Compares what clouds that have all rows show of them with what they were given, and mends it.
    pub(super) fn compare_contents(&mut self, table: &Arc<Table>, done: &mut Done) -> Result<()> {
        let engine = self.engine().clone();
        let _one_at_a_time = shared(&engine).telling.lock();
        let (kept, seen, _) = self.look(table)?;
        for (layout, seen) in kept.layouts().iter().zip(seen) {
            let is_current = layout.number == kept.current().number;
            let has = |cloud: &usize| !layout.dropped.contains(&(*cloud as u16));
            for cloud in (0..layout.declaration.clouds.len()).filter(has) {
                let own = done.entry((layout.number, layout.declaration.clouds[cloud].clone())).or_default();
                // One that does not answer is not asked again.
                if own.failure.is_none() || own.is_damaged {
                    let place = Place { layout, state: &layout.state, away: &seen.away };
                    // What is found now says more than that something is damaged.
                    let before = own.failure.take();
                    own.add(self.compare_at(table, place, cloud)?);
                    own.failure = own.failure.take().or(before);
                }
            }
            for cloud in (0..layout.declaration.clouds.len()).filter(has) {
                let own = done.entry((layout.number, layout.declaration.clouds[cloud].clone())).or_default();
                if own.is_damaged && self.forgets(table, layout, &seen.away, cloud)? {
                    let state = without(layout, cloud);
                    let place = Place { layout, state: &state, away: &seen.away };
                    let anew = self.repair_at(table, (place, is_current), (cloud, There::default()))?;
                    *own = Repaired { removed: own.removed, ..anew };
                }
            }
        }
        Ok(())
    }

    fn compare_at(&mut self, table: &Arc<Table>, place: Place<'_>, cloud: usize) -> Result<Repaired> {
        let (mut repaired, mut unread, Place { layout, away, .. }) = (Repaired::default(), Unread::default(), place);
        for rows in away.neighbours(&layout.state, cloud, ROWS) {
            self.goes_on(table)?;
            let mended = self.mend(table, place, (cloud, &rows))?;
            repaired.put += mended.put;
            unread.add(mended.unread);
            match mended.failure {
                None => {}
                // What it can show of the others is compared nevertheless.
                Some(damage @ Failure::Malformed(_)) => repaired.fail(&damage),
                Some(failure) => {
                    repaired.fail(&failure);
                    break;
                }
            }
        }
        if repaired.put > 0 {
            let (name, cloud, count) = (&table.name, &layout.declaration.clouds[cloud], repaired.put);
            let text = format!(
                "table {name}: cloud {cloud} showed {count} rows otherwise than it was given them, or not any more"
            );
            self.notices.push(text);
        }
        let texts = repaired.failure.into_iter().chain(unread.text(&table.name));
        repaired.failure = texts.reduce(|damage, unread| format!("{damage}; {unread}"));
        Ok(repaired)
    }

    /// Of some rows, those that a cloud shows otherwise, or cannot show any more: they are put there anew.
    fn mend(&mut self, table: &Table, place: Place<'_>, (cloud, rows): (usize, &Rows)) -> Result<Mended> {
        let Place { state, away, .. } = place;
        let readable = self.read_what_can_be(table, place, (rows, UNREAD_MOST))?;
        let mut mended = Mended { put: 0, unread: readable.unread, failure: None };
        for found in &readable.found {
            let Compared { changed, hidden, damage } = match self.compared_at(place, cloud, found)? {
                Ok(compared) => compared,
                Err(failure) => return Ok(Mended { failure: Some(failure), ..mended }),
            };
            // What it does not show and says nothing of it has been given back, or waits to be told.
            let anew = if damage.is_some() { &changed | &hidden } else { changed.clone() };
            mended.failure = mended.failure.or(damage);
            if anew.is_empty() {
                continue;
            }
            let found = found.chosen(&anew);
            // Where it cannot let go of all, what it has let go of is put there all the same.
            let removed = if changed.is_empty() { Ok(()) } else { away.remove(state, cloud, &changed) };
            let coded = away.code(state, &found.rows, &found.columns);
            match coded.and_then(|coded| away.put(state, cloud, &coded)).and(removed) {
                Ok(()) => mended.put += anew.len(),
                Err(failure) => mended.failure = mended.failure.or(Some(failure)),
            }
        }
        Ok(mended)
    }

    /// Rows that were read, beside what a cloud shows of them.
    fn compared_at(&self, place: Place<'_>, cloud: usize, found: &Found) -> Result<Result<Compared, Failure>> {
        let interrupt = self.interrupt();
        let waiting = Waiting::statement(&interrupt);
        let asking = Asking { state: place.state, watch: &waiting, goal: Goal::Ordinary };
        let coded = place.away.code(place.state, &found.rows, &found.columns);
        match coded.and_then(|coded| place.away.compared_at(asking, cloud, &coded)) {
            Err(Failure::CalledOff) => Err(waiting.called_off()),
            compared => Ok(compared),
        }
    }

    /// Has a cloud let go of a table of which it cannot show all, if the others have all of it without that one; whether it is to be given all anew.
    fn forgets(&mut self, table: &Arc<Table>, layout: &Layout, away: &Away, cloud: usize) -> Result<bool> {
        let interrupt = self.interrupt();
        let (waiting, clouds) = (Waiting::statement(&interrupt), &layout.declaration.clouds);
        let asking = Asking { state: &layout.state, watch: &waiting, goal: Goal::Ordinary };
        let others = away.without(layout.coder().map_err(|refusal| Error::Sql(refusal.to_string()))?, cloud);
        for rows in away.neighbours(&layout.state, cloud, ROWS) {
            self.goes_on(table)?;
            let found = others.read_rows(asking, &ids(layout), &rows, &mut Report::default());
            match found.map_err(|error| unanswered(&table.name, clouds, &waiting, error)) {
                Ok(found) if found.rows.len() as u64 == rows.len() => {}
                Err(error @ (Error::Interrupted | Error::TimedOut)) => return Err(error),
                Ok(_) | Err(_) => return Ok(false),
            }
        }
        // What another client has told it meanwhile would go, too.
        self.goes_on(table)?;
        // If it does not let go of all, it is given all anew nevertheless, which is there already or is not.
        _ = away.drop_at(cloud);
        Ok(true)
    }
}

/// What came of comparing rows.
struct Mended {
    /// How many were put anew.
    put: u64,
    /// What could not be compared.
    unread: Unread,
    /// What speaks against the others, or says that something is not as it was written.
    failure: Option<Failure>,
}

/// What is known of a layout where a cloud has let go of all that it had: it is not asked for rows, nor named for having none.
fn without(layout: &Layout, cloud: usize) -> State {
    let nothing = Rows::new();
    let there = (0..layout.declaration.clouds.len()).map(|other| (other == cloud).then_some(&nothing));
    layout.state.as_shown(there)
}

/// All columns.
fn ids(layout: &Layout) -> Vec<u16> {
    layout.declaration.columns.iter().map(|column| column.id).collect()
}
