//! Rows that clouds are owed: another client told them when some of its clouds did not answer, and they lie with the others. Whoever tells
//! clouds next puts them there, from what the others have, so that as many clouds may fail as were declared.
//!
//! ```text
//! 1  they are read where they are, and put where they are not      cut: some are there, and are put again, the same
//! 2  commit: the cloud is owed nothing any more                    cut before: likewise
//! 3  the catalogue says so (push.rs, step 4)
//! ```
//! Nobody changes the table meanwhile: who tells has its lease.

use std::sync::Arc;

use counterfoil_disperse::{Layout, Rows};
use counterfoil_relation::Table;

use super::push::Told;
use super::readable::Place;
use super::{keep, kept, opened};
use crate::error::Result;
use crate::session::Session;

impl Session {
    /// Puts at clouds against which nothing speaks what they are owed.
    pub(super) fn put_what_is_owed(&mut self, table: &Arc<Table>, told: &mut Told) -> Result<()> {
        let view = self.guard.engine.store.snapshot()?;
        let kept = kept(&view, table)?;
        let layout = kept.current();
        if layout.state.owed().is_empty() {
            return Ok(());
        }
        let away = opened(&self.engine().dispersed, &view, table, layout)?;
        drop(view);
        for (cloud, told) in told.iter_mut().enumerate() {
            let owed = &layout.state.untold[cloud].owed;
            if owed.is_empty() || told.is_err() {
                continue;
            }
            let name = &layout.declaration.clouds[cloud];
            let place = Place { layout, state: &layout.state, away: &away };
            let given = self.give(table, place, (cloud, owed))?;
            self.note_arrived(table, layout, (cloud, &given.put))?;
            let unread = given.unread.text(&table.name);
            self.notices.extend(unread.map(|what| format!("table {}: cloud {name} is owed rows: {what}", table.name)));
            *told = given.failure.map_or(Ok(()), Err);
        }
        Ok(())
    }

    /// Notes that a cloud has rows that it was owed.
    pub(super) fn note_arrived(&mut self, table: &Table, layout: &Layout, (cloud, rows): (usize, &Rows)) -> Result<()> {
        if layout.state.untold[cloud].owed.is_disjoint(rows) {
            return Ok(());
        }
        self.change(|session, change| {
            session.guard.transaction.be_durable();
            let mut kept = kept(&*change.lease, table)?;
            if let Some(now) = kept.layout_mut(layout.number) {
                let there = rows & &now.state.untold[cloud].owed;
                now.state.arrived(cloud, &there);
            }
            keep(&mut change.lease, table.id, &kept)
        })
    }
}
