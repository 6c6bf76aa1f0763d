//! REPAIR TABLE: clouds get back what they have lost, from the others, and are told what they have not been told.
//!
//! In a database that was put back there may be rows that were deleted since its copy was made. All clouds had each of them once; if more
//! than may fail lack it now, one that has not failed was told to let go of it, and so it goes here, too.

use std::sync::Arc;

use counterfoil_disperse::{Asking, Failure, Kept, Report, Rows, Table as Away};
use counterfoil_relation::Table;

use super::waiting::Waiting;
use super::{is_put_back, keep, kept, notes, opened, shared, unanswered};
use crate::error::{Error, Result};
use crate::incidents::incidents;
use crate::planner;
use crate::session::{Outcome, Session};
use crate::show;

/// Rows that are put back at once.
const ROWS: usize = 1 << 12;

/// The rows that a cloud has, and places of what it has from before.
type There = (Rows, Vec<u64>);

/// What was done at a cloud.
#[derive(Default)]
struct Repaired {
    put: u64,
    removed: u64,
    failure: Option<String>,
}

impl Session {
    /// Compares what each cloud says it has with what it is to have, and mends it.
    pub(crate) fn repair(&mut self, name: &str) -> Result<Outcome> {
        if self.guard.transaction.in_block() {
            return Err(Error::Misuse("REPAIR TABLE is no part of a transaction: COMMIT first".into()));
        }
        let view = self.view()?;
        let table = planner::table(self.engine(), &view, name)?;
        if !super::is_dispersed(&table) {
            return Err(Error::Misuse(format!("table {name} is not dispersed: there is nothing to repair at clouds")));
        }
        drop(view);
        let engine = self.engine().clone();
        self.tidy_catalogue(&table)?;
        shared(&engine).note_untold(table.id);
        self.tell_clouds();
        let dispersed = shared(&engine).clone();
        let _one_at_a_time = dispersed.telling.lock();
        let view = self.view()?;
        let mut kept = kept(&view, &table)?;
        let away = opened(&engine.dispersed, &view, &table, &kept)?;
        let there = self.there(&kept, &away)?;
        if is_put_back(&view, &kept)? {
            kept = self.let_go(&table, &there)?;
        }
        drop(view);
        let mut done = Vec::new();
        for (cloud, there) in there.into_iter().enumerate() {
            done.push(match there {
                Ok(there) => self.repair_at(&table, &kept, &away, (cloud, there))?,
                Err(failure) => Repaired { failure: Some(failure), ..Repaired::default() },
            });
        }
        let texts = |text: &dyn Fn(&Repaired) -> String| done.iter().map(|of| Some(text(of))).collect::<Vec<_>>();
        show::table(vec![
            ("cloud", kept.declaration.clouds.iter().cloned().map(Some).collect()),
            ("rows_put", texts(&|of| of.put.to_string())),
            ("rows_removed", texts(&|of| of.removed.to_string())),
            ("state", texts(&|of| of.failure.clone().unwrap_or_else(|| "complete".into()))),
        ])
    }

    /// What each cloud says it has, or why it does not say it.
    fn there(&self, kept: &Kept, away: &Away) -> Result<Vec<Result<There, String>>> {
        let waiting = Waiting::statement(&self.planner.interrupt);
        let asking = Asking { state: &kept.state, watch: &waiting };
        let clouds = (0..kept.declaration.clouds.len()).map(|cloud| match away.rows_at(asking, cloud) {
            Ok(there) => Ok(Ok(there)),
            Err(Failure::CalledOff) => Err(waiting.called_off()),
            // A table of which a cloud has nothing is none for it.
            Err(Failure::Refused(_)) => Ok(Ok(There::default())),
            Err(failure) => Ok(Err(failure.to_string())),
        });
        clouds.collect()
    }

    /// Lets go of rows that were deleted after the copy was made that this database was put back from; what is kept then.
    fn let_go(&mut self, table: &Arc<Table>, there: &[Result<There, String>]) -> Result<Kept> {
        let (kept, gone) = self.change(|_, change| {
            let mut kept = kept(&*change.lease, table)?;
            let lacks = |row: &u64| there.iter().flatten().filter(|(rows, _)| !rows.contains(*row)).count();
            let may_fail = kept.declaration.may_fail;
            let gone: Rows = kept.state.live.iter().filter(|row| lacks(row) > may_fail).collect();
            kept.state.gone(&gone);
            if there.iter().all(Result::is_ok) {
                kept.incidents = incidents(&*change.lease)?.len() as u64;
            }
            keep(&mut change.lease, table.id, &kept)?;
            Ok((kept, gone.len()))
        })?;
        if gone > 0 {
            let text = "rows that were deleted after this copy of the database was made are gone here, too";
            self.notices.push(format!("table {}: {text}: {gone}", table.name));
        }
        Ok(kept)
    }

    fn repair_at(
        &mut self,
        table: &Arc<Table>,
        kept: &Kept,
        away: &Away,
        (cloud, (there, others)): (usize, There),
    ) -> Result<Repaired> {
        let interrupt = self.interrupt();
        let waiting = Waiting::statement(&interrupt);
        let asking = Asking { state: &kept.state, watch: &waiting };
        let mut repaired = Repaired::default();
        let mut lost = &kept.state.live - &there;
        let ids: Vec<u16> = kept.declaration.columns.iter().map(|column| column.id).collect();
        while !lost.is_empty() {
            interrupt.check()?;
            let some: Rows = lost.iter().take(ROWS).collect();
            let mut report = Report::default();
            let found = away.read_rows(asking, &ids, &some, &mut report);
            self.notices.extend(notes(&table.name, &kept.declaration.clouds, &report));
            let found = found.map_err(|error| unanswered(&table.name, &kept.declaration.clouds, &waiting, error))?;
            let coded = away.code(&kept.state, &found.rows, &found.columns);
            if let Err(failure) = coded.and_then(|coded| away.put(&kept.state, cloud, &coded)) {
                return Ok(Repaired { failure: Some(failure.to_string()), ..repaired });
            }
            repaired.put += some.len();
            lost -= &some;
        }
        // What has left and is not live yet is told in its own time.
        let over = (there - &kept.state.live) - &kept.state.untold[cloud].lacks;
        let removed = away.remove(&kept.state, cloud, &over).and_then(|()| away.remove_places(cloud, &others));
        match removed {
            Ok(()) => repaired.removed = over.len() + others.len() as u64,
            Err(failure) => repaired.failure = Some(failure.to_string()),
        }
        Ok(repaired)
    }
}
