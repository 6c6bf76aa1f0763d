//! What other clients have told clouds of a table, learned as a whole: rows, their numbers, keys, and where they lie.
//!
//! ```text
//! what a cloud shows is made of what this client knows (Kept::writers), and nothing is here that no cloud was told of
//!     -> commit: it is what is known here; rows go on behind theirs                      cut before: nothing; behind: it is learned
//! otherwise -> an error: the two have gone apart, and a person says which of them counts (REPAIR TABLE)
//! ```
//! How it lies by then is learned with it: another client may have altered or refreshed it.
//! Rows of a later version that not all clouds have yet are taken for rows that lie there, as where a database is brought back, and are owed
//! to the others (owed.rs).

use std::collections::BTreeMap;
use std::sync::Arc;

use counterfoil_disperse::{Asking, Client, Damaged, Failure, Goal, Kept, Records, Told};
use counterfoil_relation::{ColumnId, RowId, Table};

use super::brought_back::as_there;
use super::catalogue::{
    BROUGHT_BACK, DEFINITION, Definition, UNCOMPARED, altered_since, is_of_rows, moved_since, of_another_version,
};
use super::claiming::{Claiming, Look};
use super::clouds::{self, Cloud};
use super::waiting::Waiting;
use super::{apart, define, dropped, keep, kept, opened};
use crate::error::{Error, Result};
use crate::incidents::incidents;
use crate::session::Session;
use crate::transaction::Change;

/// What others have told.
pub(super) struct Later {
    /// By whom it is shown.
    pub(super) cloud: Cloud,
    pub(super) version: u64,
    /// The version that was known here.
    pub(super) known: u64,
    definition: Definition,
    there: Kept,
    /// What each cloud shows of the table, by its name: to be told anew.
    shown: BTreeMap<String, Told>,
    /// Clouds that show nothing of what they were told here: others took turns, or their addresses lead to other clouds by now.
    anew: Vec<String>,
    /// Whether this database was put back: then a person says what counts.
    is_past: bool,
}

/// What is learned of what others have told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Learns {
    /// What is made of what is known here.
    WhatFollows,
    /// All of it: what is here alone is let go of.
    Everything,
}

/// What a catalogue shows of a table; none: it is damaged, and leads nowhere.
///
/// # Errors
/// [`Damaged::OTHER_VERSION`]: nobody here knows where it leads.
pub(super) fn shown(parts: &Records) -> Result<Option<Kept>, Damaged> {
    let own = parts.iter().filter(|(name, _)| is_of_rows(name));
    match Kept::from_records(own.map(|(name, bytes)| (&name[..], &bytes[..]))) {
        Err(Damaged::OTHER_VERSION) => Err(Damaged::OTHER_VERSION),
        shown => Ok(shown.ok().flatten()),
    }
}

/// Whether something of another one is not in what is known here. `past`: of a database that was put back, who it was before: what that told
/// is behind it, as whoever put it back wanted it.
pub(super) fn is_later(kept: &Kept, (version, there): (u64, &Kept), past: Option<&Client>) -> bool {
    match there.writers.is_empty() {
        true => version > kept.version && past.is_none(),
        false => !kept.has_all_of(there, past),
    }
}

/// The latest of what clouds show that is not known here.
pub(super) fn later(
    table: &Table,
    claiming: &Claiming,
    (kept, past): (&Kept, Option<&Client>),
    looks: &[Look],
) -> Result<Option<Later>> {
    let (number, clouds) = (kept.declaration().table, &claiming.clouds);
    let own = |look: &Look| {
        let contents = look.contents()?;
        contents.tables.iter().position(|(shown, _)| shown.table == number)
    };
    let mut latest: Option<Later> = None;
    for (cloud, look) in clouds.iter().zip(looks) {
        let (Some(contents), Some(at)) = (look.contents(), own(look)) else { continue };
        let (told, _) = &contents.tables[at];
        if told.version <= latest.as_ref().map_or(0, |latest| latest.version) {
            continue;
        }
        let there = match shown(&told.parts) {
            Err(_) if told.version > kept.version => return Err(of_another_version(table, cloud)),
            Err(_) | Ok(None) => continue,
            Ok(Some(there)) => there,
        };
        if !is_later(kept, (told.version, &there), past) {
            continue;
        }
        let definition = told.parts.get(DEFINITION).and_then(|bytes| postcard::from_bytes(bytes).ok());
        let definition = definition.ok_or_else(|| of_another_version(table, cloud))?;
        let (version, known, shown, anew) = (told.version, kept.version, BTreeMap::new(), Vec::new());
        let (cloud, is_past) = (cloud.clone(), past.is_some());
        latest = Some(Later { cloud, version, known, definition, there, shown, anew, is_past });
    }
    let Some(mut latest) = latest else { return Ok(None) };
    latest.shown = shown_by_each(claiming, kept, looks);
    let is_anew = |(cloud, look): &(&Cloud, &Look)| {
        let told = kept.told.get(&cloud.name).map(Told::places).unwrap_or_default();
        look.contents().is_some_and(|contents| told.is_disjoint(&contents.places))
    };
    latest.anew = clouds.iter().zip(looks).filter(is_anew).map(|(cloud, _)| cloud.name.clone()).collect();
    Ok(Some(latest))
}

/// What each cloud shows of the table, by its name, to be told anew; as it is known of one that did not say it. An address may lead to another
/// cloud by now: what is shown there that one has, and the cloud whose address it was is taken for no other.
fn shown_by_each(claiming: &Claiming, kept: &Kept, looks: &[Look]) -> BTreeMap<String, Told> {
    let (number, who) = (kept.declaration().table, claiming.who_answers(looks));
    let shown = |look: &Look| {
        let all = look.contents().into_iter().flat_map(|contents| &contents.tables);
        let (shown, places) = all.into_iter().find(|(shown, _)| shown.table == number)?;
        Some((shown.version, places.clone()))
    };
    let one = |(at, cloud): (usize, &Cloud)| {
        let known = kept.told.get(&cloud.name).map(|told| (told.version, told.places()));
        let found = match (who[at] == at, &looks[at]) {
            (true, Look::Read(_)) => shown(&looks[at]),
            (true, _) => known,
            (false, _) => {
                (0..who.len()).filter(|place| who[*place] == at).find_map(|place| shown(&looks[place])).or(known)
            }
        };
        let (version, places) = found?;
        Some((cloud.name.clone(), Told::anew(&claiming.called(at), version, &places)))
    };
    claiming.clouds.iter().enumerate().filter_map(one).collect()
}

impl Session {
    /// Refuses to learn while an address leads to another cloud, which would be given what is another's: by rows that lie there, for of what
    /// their clouds were told nothing need be left when others have taken turns.
    ///
    /// # Errors
    /// [`Error::Network`], which says of which; [`Error::Interrupted`].
    pub(super) fn refuse_displaced(&self, table: &Table, later: &Later) -> Result<()> {
        let (view, layout) = (self.guard.engine.store.snapshot()?, later.there.current());
        // Clouds that are not known here are where whoever declared them said.
        let Ok(away) = opened(&self.engine().dispersed, &view, table, layout) else { return Ok(()) };
        let waiting = Waiting::statement(&self.planner.interrupt);
        let asking = Asking { state: &layout.state, watch: &waiting, goal: Goal::Ordinary };
        let clouds = &layout.declaration.clouds;
        let mut who: Vec<usize> = (0..clouds.len()).collect();
        for (at, _) in clouds.iter().enumerate().filter(|(_, name)| later.anew.contains(name)) {
            match away.is_at_the_place_of(asking, at) {
                Err(Failure::CalledOff) => return Err(waiting.called_off()),
                Err(_) => {}
                Ok(other) => who[at] = other.unwrap_or(at),
            }
        }
        let names: Vec<_> = clouds.iter().map(String::as_str).collect();
        apart::displaced(&table.name, &names, &who, 0).map_or(Ok(()), Err)
    }

    /// Takes what others have told for what is known here.
    pub(super) fn learn(&mut self, table: &Arc<Table>, later: &Later, learns: Learns) -> Result<()> {
        let sql = self.create_statement(&table.name)?;
        self.change(|session, change| {
            session.guard.transaction.be_durable();
            let before = kept(&*change.lease, table)?;
            if before.version != later.known {
                // Somebody else has been faster: it is looked at again.
                return Ok(());
            }
            let follows = later.there.has_all_of(&before, None) && before.is_told() && !later.is_past;
            let left = if follows { left(session, change, table, &before)? } else { None };
            if left.is_none() && learns == Learns::WhatFollows {
                return Err(told_by_another(table, &later.cloud, (later.version, later.known)));
            }
            later.may_be_learned(table, &before, learns)?;
            let redefined = later.redefine(session, change, table, (&sql, &before))?;
            let table = redefined.as_ref().unwrap_or(table);
            let relations = session.engine().relations.clone();
            let cleared = match left {
                Some(left) => relations.delete(&mut *change.lease, table, &left).map(drop),
                None => relations.truncate(&mut *change.lease, table, false),
            };
            cleared.map_err(Error::Relation)?;
            let (learned, next_row) = later.learned(&before, incidents(&*change.lease)?.len() as u64);
            dropped::note_abandoned(session, change, table, (&before, &learned))?;
            let identities: Vec<_> =
                later.definition.identities.iter().map(|(id, next)| (ColumnId(*id), *next)).collect();
            let going_on = relations.go_on_at(&mut *change.lease, table, RowId(next_row), &identities);
            going_on.map_err(Error::Relation)?;
            keep(&mut change.lease, table.id, &learned)
        })
    }
}

impl Later {
    /// Refuses what lies as nobody here knows, and rows that nobody but their client can be sure of.
    fn may_be_learned(&self, table: &Table, before: &Kept, learns: Learns) -> Result<()> {
        let goes_on = self.there.current().number > before.current().number || self.there.lies_as(before);
        // Whoever gives way lets go of a layout of his own, too.
        if !goes_on && learns != Learns::Everything {
            return Err(moved_since(table, &self.cloud));
        }
        match self.there.is_out_of_reach() {
            false => Ok(()),
            true => Err(Error::Locked(format!(
                "table {0}: another client has rows that too few clouds have yet: try again when it has told them (REPAIR TABLE {0} there), \
                 or, if it is gone for good, REPAIR TABLE {0} TAKE OVER lets go of all that was told since version {1}",
                table.name, self.known
            ))),
        }
    }

    /// The table as it is defined there, with clouds that nobody here knows; none: as it is here.
    ///
    /// # Errors
    /// [`Error::Misuse`] where it is another one in more than how it lies.
    fn redefine(
        &self,
        session: &mut Session,
        change: &mut Change,
        table: &Arc<Table>,
        (sql, before): (&str, &Kept),
    ) -> Result<Option<Arc<Table>>> {
        let altered = || altered_since(table, &self.cloud);
        let there = self.there.declaration();
        if self.definition.sql == sql {
            let is_coded_alike = there.columns == before.declaration().columns;
            return if is_coded_alike { Ok(None) } else { Err(altered()) };
        }
        let told = define::laid_by(table, &self.definition.sql).ok_or_else(altered)?;
        let mut new = Vec::new();
        for (name, url, secret_file) in self.definition.clouds.clone() {
            if clouds::named(&*change.lease, &name)?.is_none() {
                new.push(format!("; cloud {name} is at {url}"));
                clouds::put(&mut change.lease, &Cloud { name, url, secret_file })?;
            }
        }
        let relations = session.engine().relations.clone();
        let table = relations.set_engine(&mut *change.lease, table, told).map_err(Error::Relation)?;
        let (declaration, _) = define::declared(&*change.lease, &table, there.table)?;
        if declaration != *there {
            return Err(altered());
        }
        session.notices.push(format!("table {}: another client has altered how it lies{}", table.name, new.concat()));
        session.engine().doors.forget();
        Ok(Some(table))
    }

    /// As it is known here from then on, where the database has had so many incidents; and the number of the next row.
    fn learned(&self, before: &Kept, incidents: u64) -> (Kept, u64) {
        // Who told it may have been put back, and not have compared it with its clouds.
        let is_compared = self.there.incidents != BROUGHT_BACK;
        let (mut there, next_row) = as_there(self.there.clone());
        there.incidents = if is_compared { incidents } else { UNCOMPARED };
        there.version = self.version.max(before.version);
        let anew = |name: &String| Some((name.clone(), self.shown.get(name)?.clone()));
        there.told = there.declaration().clouds.iter().filter_map(anew).collect();
        there.note_learned();
        (there, next_row)
    }
}

/// The rows that are here, which clouds were told of; none: there are others.
fn left(session: &Session, change: &Change, table: &Table, kept: &Kept) -> Result<Option<Vec<RowId>>> {
    let relations = session.engine().relations.clone();
    let here = relations.count(&*change.lease, table).map_err(Error::Relation)?;
    let ids: Vec<RowId> = kept.current().on_their_way().iter().map(RowId).collect();
    if here == 0 || ids.is_empty() {
        return Ok((here == 0).then(Vec::new));
    }
    let block = relations.fetch(&*change.lease, table, &ids, Some(&[])).map_err(Error::Relation)?;
    let left: Vec<RowId> = block.visible_rows().map(|at| ids[at]).collect();
    Ok((left.len() as u64 == here).then_some(left))
}

/// Nobody but a person says which of two counts.
pub(super) fn told_by_another(table: &Table, cloud: &Cloud, (shown, known): (u64, u64)) -> Error {
    Error::Conflict(format!(
        "table {0}: another copy of this database has told cloud {1} of it since (version {shown}, here {known}), and here is what no cloud \
         was told of: REPAIR TABLE {0} GIVE WAY takes what it wrote and lets go of what is here alone, REPAIR TABLE {0} TAKE OVER goes on \
         with this copy and lets go of that; `counterfoil restore --from {2} NEW --key-file SHARES` has what it wrote beside this copy",
        table.name, cloud.name, cloud.url
    ))
}
