//! REPAIR TABLE ... EXTENDED: what lies at clouds is compared with what they were given, and put there anew where it is not that.
//!
//! All fragments of a row follow from its values: those are read from clouds that show them as they were sealed. What a cloud shows
//! otherwise is taken from it and put there again; a cut in between leaves rows that it lacks, which the next REPAIR gives back. A cloud
//! that can neither show rows nor let go of them, since a file of it is not as it was written, lets go of the whole table, if the others
//! have all of it without that one, and gets it anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use counterfoil_disperse::{Asking, Failure, Found, Goal, Layout, Report, Rows, Table as Away};
use counterfoil_relation::Table;

use super::readable::{Place, UNREAD_MOST, Unread};
use super::repair::{ROWS, Repaired, There};
use super::waiting::Waiting;
use super::{shared, unanswered};
use crate::error::{Error, Result};
use crate::session::Session;

impl Session {
    /// Compares what clouds that have all rows show of them with what they were given, and mends it.
    pub(super) fn compare_contents(&mut self, table: &Arc<Table>, done: &mut BTreeMap<String, Repaired>) -> Result<()> {
        let engine = self.engine().clone();
        let _one_at_a_time = shared(&engine).telling.lock();
        let (kept, seen, _) = self.look(table)?;
        for (layout, seen) in kept.layouts().iter().zip(seen) {
            let is_current = layout.number == kept.current().number;
            let has = |cloud: &usize| !layout.dropped.contains(&(*cloud as u16));
            for cloud in (0..layout.declaration.clouds.len()).filter(has) {
                let own = done.entry(layout.declaration.clouds[cloud].clone()).or_default();
                if own.failure.is_none() {
                    let place = Place { layout, state: &layout.state, away: &seen.away };
                    own.add(self.compare_at(table, (place, is_current), cloud)?);
                }
            }
        }
        Ok(())
    }

    fn compare_at(
        &mut self,
        table: &Arc<Table>,
        (place, is_current): (Place<'_>, bool),
        cloud: usize,
    ) -> Result<Repaired> {
        let (mut repaired, mut unread, Place { layout, away, .. }) = (Repaired::default(), Unread::default(), place);
        for rows in away.neighbours(&layout.state, cloud, ROWS) {
            match self.mend(table, place, (cloud, &rows))? {
                Ok(mended) => {
                    repaired.put += mended.changed;
                    unread.add(mended.unread);
                }
                // It can neither show these nor let go of them.
                Err(Failure::Malformed(_)) if self.forgets(table, layout, away, cloud)? => {
                    return self.repair_at(table, (place, is_current), (cloud, There::default()));
                }
                Err(failure) => {
                    repaired.failure = Some(failure.to_string());
                    break;
                }
            }
        }
        if repaired.put > 0 {
            let (name, cloud, count) = (&table.name, &layout.declaration.clouds[cloud], repaired.put);
            let text = format!("table {name}: cloud {cloud} showed {count} rows otherwise than it was given them");
            self.notices.push(text);
        }
        repaired.failure = repaired.failure.or_else(|| unread.text(&table.name));
        Ok(repaired)
    }

    /// Of some rows, how many a cloud showed otherwise: they are put there anew.
    fn mend(
        &mut self,
        table: &Table,
        place: Place<'_>,
        (cloud, rows): (usize, &Rows),
    ) -> Result<Result<Mended, Failure>> {
        let Place { state, away, .. } = place;
        let readable = self.read_what_can_be(table, place, (rows, UNREAD_MOST))?;
        let mut mended = Mended { changed: 0, unread: readable.unread };
        for found in &readable.found {
            let changed = match self.changed_at(place, cloud, found)? {
                Ok(changed) => changed,
                // What it cannot show is no better than what is changed.
                Err(Failure::Malformed(_)) => found.rows.iter().copied().collect(),
                Err(failure) => return Ok(Err(failure)),
            };
            if changed.is_empty() {
                continue;
            }
            let found = found.chosen(&changed);
            let removed = away.remove(state, cloud, &changed);
            let coded = removed.and_then(|()| away.code(state, &found.rows, &found.columns));
            if let Err(failure) = coded.and_then(|coded| away.put(state, cloud, &coded)) {
                return Ok(Err(failure));
            }
            mended.changed += changed.len();
        }
        Ok(Ok(mended))
    }

    /// Of rows that were read, those that a cloud shows otherwise than it was given them.
    fn changed_at(&self, place: Place<'_>, cloud: usize, found: &Found) -> Result<Result<Rows, Failure>> {
        let interrupt = self.interrupt();
        let waiting = Waiting::statement(&interrupt);
        let asking = Asking { state: place.state, watch: &waiting, goal: Goal::Ordinary };
        let coded = place.away.code(place.state, &found.rows, &found.columns);
        match coded.and_then(|coded| place.away.changed_at(asking, cloud, &coded)) {
            Err(Failure::CalledOff) => Err(waiting.called_off()),
            changed => Ok(changed),
        }
    }

    /// As [`Session::forgets`], if a cloud cannot even say which rows it has.
    pub(super) fn forgets_the_unreadable(
        &mut self,
        table: &Table,
        layout: &Layout,
        away: &Away,
        cloud: usize,
    ) -> Result<bool> {
        let interrupt = self.interrupt();
        let waiting = Waiting::statement(&interrupt);
        let asking = Asking { state: &layout.state, watch: &waiting, goal: Goal::Ordinary };
        let is_unreadable = matches!(away.rows_at(asking, cloud), Err(Failure::Malformed(_)));
        Ok(is_unreadable && self.forgets(table, layout, away, cloud)?)
    }

    /// Has a cloud let go of a table of which it cannot show all, if the others have all of it without that one; whether it has.
    fn forgets(&mut self, table: &Table, layout: &Layout, away: &Away, cloud: usize) -> Result<bool> {
        let interrupt = self.interrupt();
        let (waiting, clouds) = (Waiting::statement(&interrupt), &layout.declaration.clouds);
        let asking = Asking { state: &layout.state, watch: &waiting, goal: Goal::Ordinary };
        let others = away.without(layout.coder().map_err(|refusal| Error::Sql(refusal.to_string()))?, cloud);
        for rows in away.neighbours(&layout.state, cloud, ROWS) {
            interrupt.check()?;
            let found = others.read_rows(asking, &ids(layout), &rows, &mut Report::default());
            match found.map_err(|error| unanswered(&table.name, clouds, &waiting, error)) {
                Ok(found) if found.rows.len() as u64 == rows.len() => {}
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Ok(_) | Err(_) => return Ok(false),
            }
        }
        Ok(away.drop_at(cloud).is_ok())
    }
}

/// What came of comparing rows.
struct Mended {
    /// How many a cloud showed otherwise.
    changed: u64,
    /// What could not be compared.
    unread: Unread,
}

/// All columns.
fn ids(layout: &Layout) -> Vec<u16> {
    layout.declaration.columns.iter().map(|column| column.id).collect()
}
