//! REPAIR TABLE ... EXTENDED: a catalogue that a cloud cannot show, since a file of it is not as it was written, goes as a whole and is told
//! anew. Until then that cloud is told nothing more: what it could not show may be of a later day than this database.
//!
//! ```text
//! 1  commit: that cloud was told nothing of any table              cut before: nothing has changed; behind: it is told all of it anew
//! 2  it lets go of the catalogue                                   cut: likewise
//! 3  it is told of all tables that lie there, behind the statement (push.rs)
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use counterfoil_disperse::Failure;
use counterfoil_relation::Table;

use super::catalogue::{of_view, opened, own, told_of};
use super::clouds::{self, Cloud};
use super::push::Told;
use super::repair::How;
use super::waiting::Waiting;
use super::{define, keep, kept, shared};
use crate::error::{Error, Result};
use crate::session::Session;

impl Session {
    /// Has clouds let go of catalogues that they cannot show, if so many others show theirs that one of them has not failed; of `told`, for
    /// each cloud what speaks against its catalogue, what is left.
    pub(super) fn renew_catalogues(&mut self, table: &Arc<Table>, told: Told, how: How) -> Result<Told> {
        let dispersed = shared(self.engine()).clone();
        let view = self.guard.engine.store.snapshot()?;
        let declaration = kept(&view, table)?.declaration().clone();
        let is_unreadable = |told: &Result<(), Failure>| matches!(told, Err(Failure::Malformed(_)));
        let showing = told.iter().filter(|told| told.is_ok()).count();
        let is_known = showing > 0 && showing + declaration.may_fail.max(1) >= told.len();
        let renews = how == How::TakeOver || (how == How::Contents && is_known);
        let Some((_, catalogue)) = own(&dispersed, table).filter(|_| renews && told.iter().any(is_unreadable)) else {
            return Ok(told);
        };
        let mut renewed = Vec::with_capacity(told.len());
        for (name, told) in declaration.clouds.iter().zip(told) {
            if !is_unreadable(&told) {
                renewed.push(told);
                continue;
            }
            let gone = || Error::NotFound(format!("no cloud {name}: CREATE CLOUD {name} again"));
            let cloud = clouds::named(&view, name)?.ok_or_else(gone)?;
            self.forget_what_was_told(&cloud)?;
            renewed.push(opened(&dispersed, &catalogue, &cloud)?.drop_table(&catalogue.name()));
            dispersed.leases.look_again();
            self.notices.push(format!("cloud {name} could not show what brings tables back, and is told it anew"));
        }
        Ok(renewed)
    }

    /// At the end of a repair: for each cloud what speaks against counting on it to bring the table back. What it was told may not have
    /// come there, or be damaged since.
    pub(super) fn catalogues_in_the_end(&mut self, table: &Arc<Table>) -> Result<Vec<Option<String>>> {
        let dispersed = shared(self.engine()).clone();
        let view = self.guard.engine.store.snapshot()?;
        let kept = kept(&view, table)?;
        let Some((_, catalogue)) = own(&dispersed, table) else {
            return Ok(vec![None; kept.declaration().clouds.len()]);
        };
        let (name, waiting) = (catalogue.name(), Waiting::statement(&self.planner.interrupt));
        let ends = of_view(&view, &kept.declaration().clouds)?.into_iter().zip(told_of(&kept)).map(|(cloud, told)| {
            match catalogue.contents(&*opened(&dispersed, &catalogue, &cloud)?, &waiting) {
                Err(Failure::CalledOff) => Err(waiting.called_off()),
                Err(failure @ Failure::Malformed(_)) => Ok(Some(format!(
                    "what brings the table back is not shown: {failure}: REPAIR TABLE {} EXTENDED when the others answer",
                    table.name
                ))),
                Err(failure) => Ok(Some(format!("what brings the table back is not shown: {failure}"))),
                Ok(contents) => {
                    let own = contents.tables.iter().find(|(shown, _)| shown.table == kept.declaration().table);
                    let is_there = own.is_some_and(|(shown, places)| told.is_shown(shown, places));
                    let is_there = is_there && told.called == name.as_str();
                    let text = "what brings the table back is not there: it is told with the next change: the notes say why";
                    Ok((!is_there).then(|| text.to_owned()))
                }
            }
        });
        ends.collect()
    }

    /// Whatever a cloud was told of any table was in vain.
    fn forget_what_was_told(&mut self, cloud: &Cloud) -> Result<()> {
        self.change(|session, change| {
            session.guard.transaction.be_durable();
            let engine = session.engine().clone();
            // One place may have several names.
            let all = clouds::all(&*change.lease)?.into_iter();
            let names: BTreeSet<String> = all.filter(|other| other.url == cloud.url).map(|other| other.name).collect();
            for table in define::tables(&engine, &*change.lease)? {
                let mut kept = kept(&*change.lease, &table)?;
                let before = kept.told.len();
                kept.told.retain(|name, _| !names.contains(name));
                if kept.told.len() < before {
                    keep(&mut change.lease, table.id, &kept)?;
                    shared(&engine).note_untold(table.id);
                }
            }
            Ok(())
        })
    }
}
