//! The lease of a table that lies with clouds: who of several clients changes it (`counterfoil_disperse::claims` has the protocol).
//!
//! ```text
//! INSERT, UPDATE, DELETE, COPY, TRUNCATE: a lease -> what others have told is learned (learning.rs) -> the change -> COMMIT
//!                                         -> clouds are told (push.rs) -> the lease is given back
//! ```
//! 1. A client is a database, in the one process that writes to it: of one that was brought back from its clouds there are two then.
//!    A copy of a file is the same client, until it is noted that it was put back (`counterfoil.incidents`).
//! 2. The lease is kept while a transaction is open. What it rests on is looked at again behind half of the time that it may stand still,
//!    and before COMMIT: a transaction that took longer and was overtaken is refused.
//! 3. Clouds that do not answer are told nothing; with none that does a change waits here, and may find later that it was overtaken.
//! 4. Nobody who tells clouds waits for other clients: what is not told now is told later.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use counterfoil_disperse::{Claim, Client, Kept, above};
use counterfoil_log::{Snapshot, View, record_space};
use counterfoil_relation::{Named, Table, TableId};

use super::before;
use super::catalogue::{self, is_learned};
use super::claiming::{Claimed, Claiming, Look, still};
use super::clouds::Cloud;
use super::learning::{Later, Learns, later};
use super::leases::{Leases, Wanted};
use super::push::Told;
use super::{Dispersed, define, dropped, foreign, is_dispersed, is_put_back, keep, kept, prefix, shared};
use crate::error::{Error, Result};
use crate::session::Session;
use crate::statement;
use crate::transaction::Change;

/// Between two looks at somebody else's claim, at first and at most.
const LOOK_FIRST: Duration = Duration::from_millis(20);
const LOOK_MOST: Duration = Duration::from_secs(1);

/// What came of a claim.
enum Came {
    Leased(Told),
    Behind(Box<Later>),
    /// Claims of others; none: it took too long to count on it.
    Waits(BTreeMap<u64, Claim>),
}

impl Session {
    /// Before a statement changes a table: if it lies with clouds, this client is the one who does.
    pub(crate) fn lease_named(&mut self, name: &str) -> Result<()> {
        if self.to_write().is_err() {
            // Refused anyway.
            return Ok(());
        }
        let view = self.view()?;
        let table = match self.engine().relations.named(&view, statement::plain(name)).map_err(Error::Relation)? {
            Some(Named::Table(table)) if is_dispersed(&table) => table,
            _ => return Ok(()),
        };
        self.undoes_nothing(&view, &table)?;
        drop(view);
        self.lease(&table).map(drop)
    }

    /// Before a table is dropped. Whoever has gone apart from others may let go of what he has: clouds keep it, for it is theirs.
    pub(crate) fn lease_to_drop(&mut self, name: &str) -> Result<()> {
        match self.lease_named(name) {
            Err(error @ (Error::Locked(_) | Error::Interrupted | Error::TimedOut)) => Err(error),
            Err(error) => {
                self.notices.push(format!("its clouds keep what they have, and it goes here alone: {error}"));
                let view = self.view()?;
                let named = self.engine().relations.named(&view, statement::plain(name)).map_err(Error::Relation)?;
                self.leased.apart.extend(
                    named.and_then(|named| if let Named::Table(table) = named { Some(table.id) } else { None }),
                );
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Has the lease of a table, and waits for it; for each cloud what speaks against telling it something.
    ///
    /// # Errors
    /// [`Error::Conflict`]: others have told clouds what this database cannot learn; [`Error::Locked`]: somebody else has it for long.
    pub(super) fn lease(&mut self, table: &Arc<Table>) -> Result<Told> {
        self.lease_as(table, Learns::WhatFollows)
    }

    /// The same, and it is said what is learned on the way.
    pub(super) fn lease_as(&mut self, table: &Arc<Table>, learns: Learns) -> Result<Told> {
        self.be_the_writer(self.settings.lock_timeout)?;
        let mut waits = Waits::default();
        loop {
            match self.lease_once(table, 0, learns)? {
                Ok(answered) => return Ok(answered),
                Err(rivals) => self.wait_for(table, rivals, &mut waits)?,
            }
        }
    }

    /// The same without waiting, for clouds that are to take in so many bytes at once.
    pub(super) fn lease_at_once(&mut self, table: &Arc<Table>, bytes: usize) -> Result<Told> {
        self.be_the_writer(Duration::ZERO)?;
        self.lease_once(table, bytes, Learns::WhatFollows)?
            .map_err(|_| Error::Locked(format!("another client changes table {}", table.name)))
    }

    /// Whether it has the lease of a table, or has it at once, for what can wait.
    pub(super) fn has_lease(&mut self, table: &Arc<Table>) -> Result<bool> {
        match self.lease_at_once(table, 0) {
            Err(Error::Locked(_)) => Ok(false),
            leased => leased.map(|_| true),
        }
    }

    /// Claims of a database are told apart by nothing, and what stands from before goes with the next one: so only the process that
    /// writes to it claims, which is one.
    fn be_the_writer(&mut self, time: Duration) -> Result<()> {
        if !self.guard.transaction.is_writing() && !self.guard.engine.store.is_writer() {
            drop(self.engine().writer(time, &self.planner.interrupt)?);
        }
        Ok(())
    }

    /// Learns what others have told, if it is that; else the claims of others.
    fn lease_once(
        &mut self,
        table: &Arc<Table>,
        bytes: usize,
        learns: Learns,
    ) -> Result<std::result::Result<Told, BTreeMap<u64, Claim>>> {
        loop {
            self.planner.interrupt.check()?;
            let view = self.newest_view()?;
            let came = self.claim(&view, table, (self.still(bytes), learns))?;
            drop(view);
            match came {
                Came::Leased(answered) => return Ok(Ok(answered)),
                Came::Behind(later) => self.learn_aside(table, &later, (learns, self.settings.lock_timeout))?,
                Came::Waits(rivals) => return Ok(Err(rivals)),
            }
        }
    }

    /// Whether a transaction under way may go on: it has the lease of a table still, or has it again.
    pub(crate) fn is_leased_still(&mut self, change: &Change, table: &Arc<Table>) -> Result<()> {
        self.is_leased_as_of(&*change.lease, table).map(drop)
    }

    /// The same as of a view; what clouds answered.
    pub(super) fn is_leased_as_of(&mut self, view: &dyn View, table: &Arc<Table>) -> Result<Told> {
        match self.claim(view, table, (self.still(0), Learns::WhatFollows))? {
            Came::Leased(answered) => Ok(answered),
            Came::Behind(_) | Came::Waits(_) => Err(self.overtaken(table)),
        }
    }

    /// Between steps of what takes long: it counts on its lease still, if it does on one.
    pub(super) fn goes_on(&mut self, table: &Arc<Table>) -> Result<()> {
        self.planner.interrupt.check()?;
        if !self.leased.tables.contains(&table.id) {
            return Ok(());
        }
        let view = self.newest_view()?;
        self.is_leased_as_of(&view, table).map(drop)
    }

    /// Whoever has the writer cannot wait for a commit of somebody else: it learns when its transaction is over.
    fn overtaken(&mut self, table: &Arc<Table>) -> Error {
        self.leased.behind = Some(table.clone());
        Error::Conflict(format!(
            "table {}: another client has changed it since this transaction began: ROLLBACK and try again",
            table.name
        ))
    }

    /// Before COMMIT.
    pub(crate) fn are_leased_still(&mut self) -> Result<()> {
        if self.guard.transaction.has_failed() || !self.guard.transaction.is_writing() {
            return Ok(());
        }
        for id in self.leased.tables.clone() {
            let view = self.newest_view()?;
            let table = self.engine().relations.table_by_id(&view, id).map_err(Error::Relation)?;
            drop(view);
            match table {
                Some(table) => self.change(|session, change| session.is_leased_still(change, &table))?,
                None => self.is_dropped_by_right(id)?,
            }
        }
        Ok(())
    }

    /// Of a table that the transaction drops: clouds let go of it right behind COMMIT, and what another client has told them is not its own.
    fn is_dropped_by_right(&mut self, id: TableId) -> Result<()> {
        let before = self.guard.engine.store.snapshot()?;
        let table = self.engine().relations.table_by_id(&before, id).map_err(Error::Relation)?;
        let Some(table) = table else { return Ok(()) };
        let (answered, kept) = (self.is_leased_as_of(&before, &table)?, kept(&before, &table)?);
        self.dropped.insert(kept.declaration().table, dropped::is_heard(&answered, &kept));
        Ok(())
    }

    /// Outside of a transaction nobody counts on leases.
    pub(crate) fn give_back_leases(&mut self) {
        if self.guard.transaction.in_block() {
            return;
        }
        let behind = self.leased.behind.take();
        drop(std::mem::take(&mut self.leased));
        if let Some(table) = behind {
            // If it cannot be learned, whoever changes it next is told.
            _ = self.follow_table(&table, true);
        }
    }

    /// What is committed, or what this session is about to commit: others cannot meanwhile.
    fn newest_view(&mut self) -> Result<Snapshot> {
        match self.guard.transaction.is_writing() {
            true => self.view(),
            false => self.guard.engine.store.snapshot(),
        }
    }

    fn still(&self, bytes: usize) -> u32 {
        still(self.engine().options.lease_seconds, bytes)
    }

    /// Claims a table once, unless it has it.
    fn claim(&mut self, view: &dyn View, table: &Arc<Table>, (still, learns): (u32, Learns)) -> Result<Came> {
        if foreign::is_noted(view, table.id) {
            return Err(foreign::refused(table));
        }
        let dispersed = shared(self.engine()).clone();
        let wanted = Wanted { version: version(view, table.id), layout: layout(view, table.id), still };
        let held = dispersed.leases.answered(&dispersed, &mut self.leased, table.id, &wanted);
        if let Some(answered) = held.filter(|_| learns == Learns::WhatFollows) {
            return Ok(Came::Leased(answered));
        }
        let kept = kept(view, table)?;
        let Some((claiming, past)) = claiming(&dispersed, view, table, &kept)? else {
            return Ok(Came::Leased(vec![Ok(()); kept.declaration().clouds.len()]));
        };
        // What is claimed in vain is taken back as it goes.
        let mut claimed = claiming.claim(&dispersed, still)?;
        if let Some(displaced) = claiming.displaced(&table.name, &kept, &claimed.looks) {
            return Err(displaced);
        }
        // Whoever lets go of all that is here takes what he told himself before he was put back, too.
        let but = past.as_ref().filter(|_| learns == Learns::WhatFollows);
        if let Some(later) = what_is_later(table, &claiming, (&kept, but), &claimed.looks)? {
            return Ok(Came::Behind(Box::new(later)));
        }
        let stands = dispersed.leases.stands(table.id, wanted.version);
        let rivals = dispersed.leases.not_over(claiming.rivals(&claimed.looks, &stands));
        if !rivals.is_empty() || claimed.until <= Instant::now() {
            return Ok(Came::Waits(rivals));
        }
        self.note_put_back(table, &claiming, &claimed, &kept);
        claiming.sweep(&mut claimed);
        note_seen(&dispersed.leases, table, &claiming, &claimed.looks);
        let answered = claimed.answered.clone();
        dispersed.leases.hold(&dispersed, &mut self.leased, table.id, wanted, claimed);
        Ok(Came::Leased(answered))
    }

    /// Says which clouds show less than they were told.
    fn note_put_back(&mut self, table: &Table, claiming: &Claiming, claimed: &Claimed, kept: &Kept) {
        for (at, (cloud, look)) in claiming.clouds.iter().zip(&claimed.looks).enumerate() {
            let Some(contents) = look.contents() else { continue };
            let own = contents.tables.iter().find(|(shown, _)| shown.table == kept.declaration().table);
            let shown = own.map_or(0, |(shown, _)| shown.version);
            let told = kept.told.get(&cloud.name).filter(|told| told.called == claiming.called(at).as_str());
            let known = told.map_or(0, |told| told.version);
            if shown < known && shared(self.engine()).leases.says(table.id, &cloud.name) {
                let text = format!(
                    "was told version {known} of what brings the table back, and shows {shown}: it was put back"
                );
                self.notices.push(format!("table {0}: cloud {1} {text}; REPAIR TABLE {0}", table.name, cloud.name));
            }
        }
    }

    /// Waits until others have given back their leases, or stood still for too long.
    fn wait_for(&mut self, table: &Arc<Table>, mut rivals: BTreeMap<u64, Claim>, waits: &mut Waits) -> Result<()> {
        let dispersed = shared(self.engine()).clone();
        let view = self.newest_view()?;
        let claiming = claiming(&dispersed, &view, table, &kept(&view, table)?)?;
        let Some((claiming, _)) = claiming else { return Ok(()) };
        drop(view);
        let longest = rivals.values().map(Claim::outlives).max().unwrap_or_default();
        loop {
            if !rivals.is_empty() && dispersed.leases.have_stood_still(&rivals) {
                return self.take_over(table, &rivals);
            }
            if waits.since.elapsed() > self.settings.lock_timeout + longest {
                let text =
                    "another client changes it, and has not ended in time: try again (SET lock_timeout waits longer)";
                return Err(Error::Locked(format!("table {}: {text}", table.name)));
            }
            waits.pause()?;
            self.planner.interrupt.check()?;
            if rivals.is_empty() {
                return Ok(());
            }
            rivals = dispersed.leases.not_over(claiming.rivals(&claiming.look(), &BTreeSet::new()));
        }
    }

    /// Goes on above whatever a client may still tell whose claim stood still.
    fn take_over(&mut self, table: &Arc<Table>, rivals: &BTreeMap<u64, Claim>) -> Result<()> {
        self.may_commit_aside(table)?;
        Session::own(self.engine().clone())?.change(|session, change| {
            session.guard.transaction.be_durable();
            let mut kept = kept(&*change.lease, table)?;
            kept.version = above(rivals, kept.version);
            keep(&mut change.lease, table.id, &kept)
        })?;
        shared(self.engine()).leases.note_over(rivals);
        let text = "another client has not gone on with what it was doing: what clouds were not told of by it they are not told";
        self.notices.push(format!("table {}: {text}", table.name));
        Ok(())
    }

    /// Learns what others have told, in a commit of its own for which the writer is waited for so long.
    pub(super) fn learn_aside(
        &mut self,
        table: &Arc<Table>,
        later: &Later,
        (learns, patience): (Learns, Duration),
    ) -> Result<()> {
        self.may_commit_aside(table)?;
        self.refuse_displaced(table, later)?;
        let mut aside = Session::own(self.engine().clone())?;
        aside.settings.lock_timeout = patience;
        aside.learn(table, later, learns)?;
        self.notices.append(&mut aside.notices);
        shared(self.engine()).leases.note_learned(table.id);
        Ok(())
    }

    fn may_commit_aside(&mut self, table: &Arc<Table>) -> Result<()> {
        match self.guard.transaction.is_writing() {
            false => Ok(()),
            true => Err(self.overtaken(table)),
        }
    }
}

/// How a table is claimed, and of a database that was put back who it was before; none: it has no catalogue, and so no other clients.
///
/// What such a database was is behind its clouds, as whoever put it back wanted it: REPAIR TABLE compares it. One that was brought back
/// from a cloud is to be the newest that there is.
pub(super) fn claiming(
    dispersed: &Dispersed,
    view: &dyn View,
    table: &Table,
    kept: &Kept,
) -> Result<Option<(Claiming, Option<Client>)>> {
    let Some((_, own)) = catalogue::own(dispersed, table) else { return Ok(None) };
    let is_behind = is_put_back(view, kept)? && !is_learned(kept);
    let past = is_behind.then(|| Leases::past(view)).transpose()?;
    let clouds = catalogue::of_view(view, &kept.declaration().clouds)?;
    let (client, catalogues) = (dispersed.leases.client(view)?, before::as_told(view, &own, kept));
    let at = (clouds, catalogues, before::names(view, &own));
    Ok(Some((Claiming::new(dispersed, client, (table.id, kept), at)?, past)))
}

/// What others have told that is not known here, where clouds show nothing that keeps this client from changing the table.
fn what_is_later(
    table: &Table,
    claiming: &Claiming,
    (kept, past): (&Kept, Option<&Client>),
    looks: &[Look],
) -> Result<Option<Later>> {
    if foreign::is_told_by_another(kept, claiming.mine()) {
        return Err(foreign::refused(table));
    }
    if let Some(cloud) = claiming.gone(looks) {
        return Err(before::gone(table, cloud));
    }
    let later = later(table, claiming, (kept, past), looks)?;
    if later.is_none() && past.is_none() && claiming.are_emptied(looks, kept.declaration().may_fail) {
        return Err(emptied(table, &claiming.clouds[0]));
    }
    Ok(later)
}

/// What was read needs not be read again.
fn note_seen(leases: &Leases, table: &Table, claiming: &Claiming, looks: &[Look]) {
    for (cloud, contents) in claiming.clouds.iter().zip(looks.iter().map(Look::contents)) {
        contents.into_iter().for_each(|contents| leases.note_seen(table.id, &cloud.url, contents.places.iter()));
    }
}

/// The version of a table's catalogue, alone of what is kept of it.
fn version(view: &dyn View, table: TableId) -> u64 {
    let record = view.record(record_space::SETTING, &[&prefix(table)[..], b"v"].concat());
    record.and_then(|bytes| bytes.as_ref().try_into().ok()).map_or(0, u64::from_be_bytes)
}

/// The layout that rows come to: other clouds may have it than had the one before.
fn layout(view: &dyn View, table: TableId) -> Vec<u8> {
    let heads = view.records(record_space::SETTING, &[&prefix(table)[..], b"h"].concat());
    heads.into_iter().next_back().map(|(name, _)| name).unwrap_or_default()
}

/// Under another key there is another catalogue: whoever goes on with this one would take the rows of others for strays.
pub(super) fn emptied(table: &Table, cloud: &Cloud) -> Error {
    Error::Conflict(format!(
        "table {0}: more of its clouds than may fail show nothing of what they were told of it: if another client has dropped it, DROP TABLE \
         {0} drops it here, too; if one has changed the key (`counterfoil rekey --data`), `counterfoil restore --from {1} NEW --key-file SHARES` brings it back; if they were emptied, or put back to before it was there, \
         REPAIR TABLE {0} TAKE OVER tells them anew",
        table.name, cloud.url
    ))
}

/// How long somebody has waited for others.
struct Waits {
    since: Instant,
    pause: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Self { since: Instant::now(), pause: LOOK_FIRST }
    }
}

impl Waits {
    /// A time of chance, longer from one to the next: of two who wait for each other one goes first.
    fn pause(&mut self) -> Result<()> {
        let [chance] = define::random::<1>()?;
        std::thread::sleep(self.pause.mul_f64(0.5 + f64::from(chance) / 255.0));
        self.pause = (self.pause * 2).min(LOOK_MOST);
        Ok(())
    }
}

/// What speaks against telling clouds something, of one thing and of another.
pub(super) fn both(one: Told, other: Told) -> Told {
    one.into_iter().zip(other).map(|(one, other)| one.and(other)).collect()
}
