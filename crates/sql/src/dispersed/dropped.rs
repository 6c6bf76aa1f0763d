//! Tables that were dropped, until all of their clouds have let go of them.
//!
//! ```text
//! 1  commit: a table is gone; how each cloud lets go of it is noted     cut before: it is there; behind: 2 is done after the next opening
//! 2  a cloud lets go of what brings it back, and of its rows            cut: it is done again, which does nothing where it was done
//! 3  commit: that cloud has                                             cut before: likewise
//! record of space SETTING: "dropped/" table [16] | layout u32 | cloud u16     01 | Dropped (postcard)
//!     of a layout that was let go of for another client's: "dropped/" what the cloud calls its rows
//! ```
//! Somebody who has not heard of it may have gone on with it meanwhile: then it is his, and clouds keep it (whose.rs). So they do where this
//! database was made of another one (`restore --as-new`), which has dropped it.
//! A cloud that does not answer is asked again later, and as long as that is noted the secrets of catalogues of before are kept, in which it
//! may show the table (before.rs). DROP CLOUD ends it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use counterfoil_disperse::fragments::Name;
use counterfoil_disperse::{self as disperse, Catalogue, Client, Failure, Kept, Layout, Secret, TableNumber};
use counterfoil_log::{View, record_space};
use counterfoil_relation::Table;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize as _, Zeroizing};

use super::clouds::{self, Cloud};
use super::push::{PAUSE, each};
use super::whose::{Known, Looks, Whose};
use super::{Dispersed, before, catalogue, define, shared};
use crate::error::{Error, Result};
use crate::session::Session;
use crate::transaction::Change;

const RECORDS: &[u8] = b"dropped/";
const VERSION: u8 = 1;
const LATER: &str = "keeps what it has, and lets go of it later";

/// What a cloud is to let go of.
#[derive(Serialize, Deserialize)]
struct Dropped {
    /// What people called the table.
    table: String,
    /// Its number in catalogues; none: it is in none.
    number: Option<TableNumber>,
    /// What people called the cloud, where it is, and the file with its secret.
    cloud: (String, String, Option<String>),
    /// What it calls the rows.
    rows: String,
    /// What tells its files from others.
    files_key: [u8; 32],
    /// For each client the last version that he told, as far as they were known when the table was dropped.
    writers: BTreeMap<Client, u64>,
    /// All clouds of that layout, by what people call them.
    clouds: Vec<String>,
    /// What the catalogue of the database was called then; none: it had none.
    catalogue: Option<String>,
}

impl Drop for Dropped {
    fn drop(&mut self) {
        self.files_key.zeroize();
    }
}

/// When clouds are told next of tables that were dropped.
#[derive(Default)]
pub(super) struct Due(Mutex<When>);

#[derive(Default)]
enum When {
    /// Nobody has looked since the database was opened.
    #[default]
    Unknown,
    Never,
    At(Instant),
}

impl Due {
    fn take(&self) -> bool {
        let mut when = self.0.lock();
        let is_due = match *when {
            When::Unknown => true,
            When::Never => false,
            When::At(at) => at <= Instant::now(),
        };
        if is_due {
            *when = When::Never;
        }
        is_due
    }

    pub(super) fn set(&self, at: Instant) {
        *self.0.lock() = When::At(at);
    }

    /// Something else is told now: clouds may answer by now.
    pub(super) fn hasten(&self) {
        if let When::At(at) = &mut *self.0.lock() {
            *at = Instant::now();
        }
    }
}

impl Dropped {
    /// What the cloud of this number is to let go of, of a layout of a table that is dropped.
    fn at(
        (number, cloud): (u16, Cloud),
        table: &Table,
        (kept, layout): (&Kept, &Layout),
        (rows, catalogue): (&Name, Option<String>),
    ) -> Self {
        let files_key = layout.secret.derive(disperse::Purpose::Files, &disperse::Scope::provider(number));
        Self {
            table: table.name.clone(),
            number: define::has_key_backup(table).then_some(layout.declaration.table),
            cloud: (cloud.name, cloud.url, cloud.secret_file),
            rows: rows.as_str().to_owned(),
            files_key: *files_key.expose(),
            writers: kept.writers.clone(),
            clouds: layout.declaration.clouds.clone(),
            catalogue,
        }
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let (_, told) = bytes.split_first().filter(|(version, _)| **version == VERSION)?;
        postcard::from_bytes(told).ok()
    }

    fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let told = Zeroizing::new(postcard::to_allocvec(self).expect("memory takes what it is given"));
        Zeroizing::new([&[VERSION][..], &told].concat())
    }

    fn known(&self) -> Known<'_> {
        let Self { number, writers, clouds, cloud, .. } = self;
        Known { number: *number, writers, clouds, cloud: &cloud.0 }
    }

    fn cloud(&self) -> Cloud {
        let (name, url, secret_file) = self.cloud.clone();
        Cloud { name, url, secret_file }
    }

    /// What is to be said of whose it is.
    fn notice(&self, whose: &Whose) -> Option<String> {
        let (table, cloud) = (&self.table, &self.cloud.0);
        let why = match whose {
            Whose::Nobodys => return None,
            Whose::SomebodyElses => {
                let text = "another client has gone on with it since it was dropped here: clouds keep it";
                return Some(format!("table {table}: {text}"));
            }
            Whose::Unknown(None) => "somebody is about to change it".to_owned(),
            Whose::Unknown(Some(failure)) => format!("not all of its clouds say whose it is now: {failure}"),
        };
        Some(format!("table {table}: cloud {cloud} {LATER}: {why}"))
    }

    /// Has the cloud let go of it.
    fn let_go(&self, dispersed: &Dispersed, catalogues: &[Arc<Catalogue>]) -> Result<(), Failure> {
        let (cloud, refused) = (self.cloud(), |error: Error| Failure::Refused(error.to_string()));
        // What brings it back goes first.
        let shown = match &self.number {
            Some(number) => catalogue::let_go_at(dispersed, catalogues, (&cloud, number)),
            None => Ok(()),
        };
        if shown.as_ref().is_err_and(|failure| !catalogue::leads_nowhere(failure)) {
            return shown;
        }
        let rows = Name::parse(&self.rows).ok_or_else(|| Failure::Refused("no name of a table".into()))?;
        let opened = clouds::open_or_closed(dispersed, &cloud, Secret::new(self.files_key)).map_err(refused)?;
        opened.drop_table(&rows).and(shown)
    }
}

/// Whether so many clouds have heard of a claim that whoever goes on meanwhile has met one of them: of others it is seen by what clouds show
/// whose a table is.
pub(super) fn is_heard(answered: &[std::result::Result<(), Failure>], kept: &Kept) -> bool {
    answered.iter().filter(|answered| answered.is_ok()).count() > kept.declaration().may_fail
}

/// Notes what clouds are to let go of, in the transaction that drops a table: of clouds that are gone nothing is known. `answered`: what they
/// said to the claim of whoever drops it.
pub(super) fn note(
    session: &mut Session,
    change: &mut Change,
    table: &Table,
    (kept, answered): (&Kept, &[std::result::Result<(), Failure>]),
) -> Result<()> {
    let own = catalogue::of_database(shared(session.engine())).map(|(_, own)| own.name().as_str().to_owned());
    for layout in kept.layouts() {
        let coder = layout.coder().map_err(|refusal| Error::Sql(refusal.to_string()))?;
        for (at, name) in (0_u16..).zip(&layout.declaration.clouds) {
            let cloud = clouds::named(&*change.lease, name)?.filter(|_| !layout.dropped.contains(&at));
            let Some(cloud) = cloud else { continue };
            let rows = coder.table_name(at.into());
            let dropped = Dropped::at((at, cloud), table, (kept, layout), (&rows, own.clone()));
            let number = layout.declaration.table;
            let name = [RECORDS, &number, &layout.number.to_be_bytes(), &at.to_be_bytes()].concat();
            change.lease.put_record(record_space::SETTING, &name, &dropped.to_bytes())?;
        }
    }
    session.dropped.insert(kept.declaration().table, is_heard(answered, kept));
    Ok(())
}

/// Notes the same of layouts that are let go of for another client's, and that lead nowhere: no row lies in one alone.
pub(super) fn note_abandoned(
    session: &Session,
    change: &mut Change,
    table: &Table,
    (before, learned): (&Kept, &Kept),
) -> Result<()> {
    let goes_on = |layout: &Layout| learned.layouts().iter().any(|other| other.is(layout));
    let lies_before =
        |of: &Layout| before.layouts().iter().any(|layout| layout.number < of.number && !layout.state.live.is_empty());
    for layout in before.layouts().iter().filter(|layout| !goes_on(layout)) {
        if !layout.state.live.is_empty() && !lies_before(layout) {
            continue;
        }
        let coder = layout.coder().map_err(|refusal| Error::Sql(refusal.to_string()))?;
        for (at, name) in (0_u16..).zip(&layout.declaration.clouds) {
            let Some(cloud) = clouds::named(&*change.lease, name)? else { continue };
            let rows = coder.table_name(at.into());
            // What brings the table back stays: it leads to the other one.
            let mut dropped = Dropped::at((at, cloud), table, (before, layout), (&rows, None));
            dropped.number = None;
            let name = [RECORDS, rows.as_str().as_bytes()].concat();
            change.lease.put_record(record_space::SETTING, &name, &dropped.to_bytes())?;
            shared(session.engine()).dropped.set(Instant::now());
        }
    }
    Ok(())
}

/// Nobody asks a cloud any more; how many tables, or layouts of one, it keeps.
pub(super) fn forget_cloud(change: &mut Change, cloud: &str) -> Result<u64> {
    let all = all(&*change.lease)?;
    let own: Vec<_> = all.into_iter().filter(|(_, dropped)| dropped.cloud.0 == cloud).collect();
    for (name, _) in &own {
        change.lease.delete_record(record_space::SETTING, name)?;
    }
    Ok(own.len() as u64)
}

/// A cloud is reached otherwise from here on.
pub(super) fn readdress(change: &mut Change, cloud: &Cloud) -> Result<()> {
    for (name, mut dropped) in all(&*change.lease)?.into_iter().filter(|(_, dropped)| dropped.cloud.0 == cloud.name) {
        dropped.cloud = (cloud.name.clone(), cloud.url.clone(), cloud.secret_file.clone());
        change.lease.put_record(record_space::SETTING, &name, &dropped.to_bytes())?;
    }
    Ok(())
}

/// For each cloud, by its name, what it is to let go of.
pub(super) fn waiting(view: &dyn View) -> Result<BTreeMap<String, u64>> {
    let mut waiting = BTreeMap::new();
    all(view)?.into_iter().for_each(|(_, dropped)| *waiting.entry(dropped.cloud.0.clone()).or_default() += 1);
    Ok(waiting)
}

/// Whether a cloud may show something of a table that is gone.
pub(super) fn is_any(view: &dyn View) -> bool {
    !view.records(record_space::SETTING, RECORDS).is_empty()
}

fn all(view: &dyn View) -> Result<Vec<(Vec<u8>, Dropped)>> {
    let damaged = || Error::Relation(counterfoil_relation::Error::corrupt("dropped tables", "what clouds let go of"));
    let read = |(name, bytes): (Vec<u8>, Arc<[u8]>)| Ok((name, Dropped::of(&bytes).ok_or_else(damaged)?));
    view.records(record_space::SETTING, RECORDS).into_iter().map(read).collect()
}

/// A record, its name and what it says.
type Noted = (Vec<u8>, Dropped);

impl Session {
    /// Has clouds let go of tables that are gone, those that may not have yet.
    pub(super) fn tell_dropped(&mut self) -> Result<()> {
        let dispersed = shared(self.engine()).clone();
        let dropped = std::mem::take(&mut self.dropped).into_iter();
        let leased: Vec<TableNumber> = dropped.filter_map(|(table, is_leased)| is_leased.then_some(table)).collect();
        if !self.rights.writes || !dispersed.dropped.take() {
            return Ok(());
        }
        // The catalogue is of all tables: another one's must not come in between.
        let _one_at_a_time = dispersed.telling.lock();
        let view = self.guard.engine.store.snapshot()?;
        let (all, catalogues) = (all(&view)?, before::all(&dispersed, &view));
        if all.is_empty() {
            return Ok(());
        }
        let (goes, stays) = self.told_now(&view, all, (&catalogues, &leased))?;
        drop(view);
        let gone = self.have_let_go(&goes, &catalogues);
        if gone.is_empty() && stays.is_empty() {
            return Ok(());
        }
        self.change(|_, change| {
            let names = gone.iter().map(|at| &goes[*at].0).chain(&stays);
            names.into_iter().try_for_each(|name| Ok(change.lease.delete_record(record_space::SETTING, name)?))
        })?;
        catalogues.last().map_or(Ok(()), |own| self.forget_keys_of_before(&own.name()))
    }

    /// What clouds are told of now, and the names of what they are never told: that of a database of which this one was made, and tables
    /// with which others have gone on. The rest is told later.
    fn told_now(
        &mut self,
        view: &dyn View,
        all: Vec<Noted>,
        (catalogues, leased): (&[Arc<Catalogue>], &[TableNumber]),
    ) -> Result<(Vec<Noted>, Vec<Vec<u8>>)> {
        let dispersed = shared(self.engine()).clone();
        let mut clouds = clouds::all(view)?;
        clouds.retain(|cloud| all.iter().any(|(_, dropped)| dropped.clouds.contains(&cloud.name)));
        let looks = Looks::at(&dispersed, dispersed.leases.client(view)?, catalogues, clouds)?;
        let is_own = |called: &String| catalogues.iter().any(|own| own.name().as_str() == called);
        let (mut goes, mut stays, mut notices) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (name, dropped) in all {
            if !dropped.catalogue.iter().all(is_own) {
                stays.push(name);
                continue;
            }
            let is_leased = dropped.number.is_some_and(|number| leased.contains(&number));
            let whose = looks.whose(&dropped.known(), is_leased);
            notices.extend(dropped.notice(&whose));
            match whose {
                Whose::Nobodys => goes.push((name, dropped)),
                Whose::SomebodyElses => stays.push(name),
                Whose::Unknown(_) => dispersed.dropped.set(Instant::now() + PAUSE),
            }
        }
        self.notices.extend(notices);
        Ok((goes, stays))
    }

    /// Has each cloud let go of what it is to; which have.
    fn have_let_go(&mut self, goes: &[Noted], catalogues: &[Arc<Catalogue>]) -> Vec<usize> {
        let dispersed = shared(self.engine()).clone();
        let mut clouds: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        goes.iter().enumerate().for_each(|(at, (_, of))| clouds.entry(&of.cloud.1).or_default().push(at));
        let clouds: Vec<Vec<usize>> = clouds.into_values().collect();
        let gone = Mutex::new(Vec::new());
        // The newest layout first: it is that which brings the table back.
        let told = each(clouds.len(), |cloud| {
            let told = clouds[cloud].iter().rev().map(|at| {
                let told = goes[*at].1.let_go(&dispersed, catalogues);
                gone.lock().extend(told.is_ok().then_some(*at));
                told
            });
            told.fold(Ok(()), Result::and)
        });
        for (cloud, told) in clouds.iter().zip(&told) {
            let (Some(at), Err(failure)) = (cloud.first(), told) else { continue };
            let Dropped { table, cloud, .. } = &goes[*at].1;
            self.notices.push(format!("table {table}: cloud {} {LATER}: {failure}", cloud.0));
            dispersed.dropped.set(Instant::now() + PAUSE);
        }
        gone.into_inner()
    }
}
