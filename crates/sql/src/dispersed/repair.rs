//! REPAIR TABLE: clouds get back what they have lost, from the others, and are told what they have not been told.

use std::sync::Arc;

use counterfoil_disperse::{Asking, Failure, Kept, Report, Rows, Table as Away};
use counterfoil_relation::Table;

use super::waiting::Waiting;
use super::{kept, notes, opened, shared, unanswered};
use crate::error::{Error, Result};
use crate::planner;
use crate::session::{Outcome, Session};
use crate::show;

/// Rows that are put back at once.
const ROWS: usize = 1 << 12;

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
        shared(&engine).note_untold(table.id);
        self.tell_clouds();
        let _one_at_a_time = shared(&engine).telling.lock();
        let view = self.view()?;
        let kept = kept(&view, &table)?;
        let away = opened(&engine.dispersed, &view, &table, &kept)?;
        let mut done = Vec::new();
        for cloud in 0..kept.declaration.clouds.len() {
            done.push(self.repair_at(&table, &kept, &away, cloud)?);
        }
        let texts = |text: &dyn Fn(&Repaired) -> String| done.iter().map(|of| Some(text(of))).collect::<Vec<_>>();
        show::table(vec![
            ("cloud", kept.declaration.clouds.iter().cloned().map(Some).collect()),
            ("rows_put", texts(&|of| of.put.to_string())),
            ("rows_removed", texts(&|of| of.removed.to_string())),
            ("state", texts(&|of| of.failure.clone().unwrap_or_else(|| "complete".into()))),
        ])
    }

    fn repair_at(&mut self, table: &Arc<Table>, kept: &Kept, away: &Away, cloud: usize) -> Result<Repaired> {
        let interrupt = self.interrupt();
        let waiting = Waiting::statement(&interrupt);
        let asking = Asking { state: &kept.state, watch: &waiting };
        let (there, others) = match away.rows_at(asking, cloud) {
            Ok(there) => there,
            Err(Failure::CalledOff) => return Err(waiting.called_off()),
            // A table of which a cloud has nothing is none for it.
            Err(Failure::Refused(_)) => Default::default(),
            Err(failure) => return Ok(Repaired { failure: Some(failure.to_string()), ..Repaired::default() }),
        };
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
