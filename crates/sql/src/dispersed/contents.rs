//! REPAIR TABLE ... EXTENDED: what lies at clouds is compared with what they were given, and put there anew where it is not that.
//!
//! All fragments of a row follow from its values: those are read from clouds that show them as they were sealed. What a cloud shows
//! otherwise is taken from it and put there again; a cut in between leaves rows that it lacks, which the next REPAIR gives back. A cloud
//! that can neither show rows nor let go of them, since a file of it is not as it was written, lets go of the whole table, if the others
//! have all of it without that one, and gets it anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use counterfoil_disperse::{Asking, Failure, Goal, Layout, Report, Rows, Table as Away};
use counterfoil_relation::Table;

use super::repair::{ROWS, Repaired, There};
use super::waiting::Waiting;
use super::{notes, shared, unanswered};
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
                    own.add(self.compare_at(table, (layout, is_current), &seen.away, cloud)?);
                }
            }
        }
        Ok(())
    }

    fn compare_at(
        &mut self,
        table: &Arc<Table>,
        (layout, is_current): (&Layout, bool),
        away: &Away,
        cloud: usize,
    ) -> Result<Repaired> {
        let mut repaired = Repaired::default();
        for rows in away.neighbours(&layout.state, cloud, ROWS) {
            match self.mend(table, layout, away, (cloud, &rows))? {
                Ok(count) => repaired.put += count,
                // It can neither show these nor let go of them.
                Err(Failure::Malformed(_)) if self.forgets(table, layout, away, cloud)? => {
                    return self.repair_at(table, (layout, is_current), away, (cloud, There::default()));
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
        Ok(repaired)
    }

    /// Of some rows, how many a cloud showed otherwise: they are put there anew.
    fn mend(
        &mut self,
        table: &Table,
        layout: &Layout,
        away: &Away,
        (cloud, rows): (usize, &Rows),
    ) -> Result<Result<u64, Failure>> {
        let interrupt = self.interrupt();
        interrupt.check()?;
        let (waiting, clouds) = (Waiting::statement(&interrupt), &layout.declaration.clouds);
        let asking = Asking { state: &layout.state, watch: &waiting, goal: Goal::Ordinary };
        let (ids, mut report) = (ids(layout), Report::default());
        let mut read = |rows: &Rows| {
            let found = away.read_rows(asking, &ids, rows, &mut report);
            found.map_err(|error| unanswered(&table.name, clouds, &waiting, error))
        };
        let found = read(rows)?;
        let coded = away.code(&layout.state, &found.rows, &found.columns);
        let changed = match coded.and_then(|coded| away.changed_at(asking, cloud, &coded)) {
            Ok(changed) => changed,
            // What it cannot show is no better than what is changed.
            Err(Failure::Malformed(_)) => rows.clone(),
            Err(Failure::CalledOff) => return Err(waiting.called_off()),
            Err(failure) => return Ok(Err(failure)),
        };
        let mut mended = Ok(changed.len());
        if !changed.is_empty() {
            let found = read(&changed)?;
            let removed = away.remove(&layout.state, cloud, &changed);
            let coded = removed.and_then(|()| away.code(&layout.state, &found.rows, &found.columns));
            let put = coded.and_then(|coded| away.put(&layout.state, cloud, &coded));
            mended = put.and(mended);
        }
        self.notices.extend(notes(&table.name, clouds, &report));
        Ok(mended)
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
            let found = found.map_err(|error| unanswered(&table.name, clouds, &waiting, error))?;
            if found.rows.len() as u64 != rows.len() {
                return Ok(false);
            }
        }
        Ok(away.drop_at(cloud).is_ok())
    }
}

/// All columns.
fn ids(layout: &Layout) -> Vec<u16> {
    layout.declaration.columns.iter().map(|column| column.id).collect()
}
