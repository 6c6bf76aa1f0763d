//! Tables that were dropped, until all of their clouds have let go of them.
//!
//! ```text
//! 1  commit: a table is gone; how each cloud lets go of it is noted     cut before: it is there; behind: 2 is done after the next opening
//! 2  a cloud lets go of what brings it back, and of its rows            cut: it is done again, which does nothing where it was done
//! 3  commit: that cloud has                                             cut before: likewise
//! record of space SETTING: "dropped/" table [16] | layout u32 | cloud u16     01 | Dropped (postcard)
//! ```
//! Right behind the commit nobody else has the table, which was leased to be dropped. Later somebody may who has not heard of it: so it is
//! looked at first whether a cloud shows a version that was not known when it was dropped, and if one does clouds keep it.
//! A cloud that does not answer is asked again later, and as long as that is noted the secrets of catalogues of before are kept, in which it
//! may show the table (before.rs). DROP CLOUD ends it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use counterfoil_disperse::fragments::Name;
use counterfoil_disperse::{
    self as disperse, Catalogue, Client, Contents, Failure, Kept, Patient, Secret, Shown, TableNumber,
};
use counterfoil_log::{View, record_space};
use counterfoil_relation::Table;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize as _, Zeroizing};

use super::clouds::{self, Cloud};
use super::push::{PAUSE, each};
use super::{Dispersed, before, catalogue, define, learning, shared};
use crate::error::{Error, Result};
use crate::session::Session;
use crate::transaction::Change;

const RECORDS: &[u8] = b"dropped/";
const VERSION: u8 = 1;

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
    fn of(bytes: &[u8]) -> Option<Self> {
        let (_, told) = bytes.split_first().filter(|(version, _)| **version == VERSION)?;
        postcard::from_bytes(told).ok()
    }

    fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let told = Zeroizing::new(postcard::to_allocvec(self).expect("memory takes what it is given"));
        Zeroizing::new([&[VERSION][..], &told].concat())
    }

    fn cloud(&self) -> Cloud {
        let (name, url, secret_file) = self.cloud.clone();
        Cloud { name, url, secret_file }
    }

    /// Has the cloud let go of it.
    fn let_go(&self, dispersed: &Dispersed, catalogues: &[Arc<Catalogue>]) -> Result<(), Failure> {
        let (cloud, refused) = (self.cloud(), |error: Error| Failure::Refused(error.to_string()));
        // What brings it back goes first.
        if let Some(number) = &self.number {
            catalogue::let_go_at(dispersed, catalogues, (&cloud, number))?;
        }
        let rows = Name::parse(&self.rows).ok_or_else(|| Failure::Refused("no name of a table".into()))?;
        let opened = clouds::open_or_closed(dispersed, &cloud, Secret::new(self.files_key)).map_err(refused)?;
        opened.drop_table(&rows)
    }
}

/// Notes what clouds are to let go of, in the transaction that drops a table: of clouds that are gone nothing is known.
pub(super) fn note(session: &mut Session, change: &mut Change, table: &Table, kept: &Kept) -> Result<()> {
    for layout in kept.layouts() {
        let coder = layout.coder().map_err(|refusal| Error::Sql(refusal.to_string()))?;
        for (at, name) in layout.declaration.clouds.iter().enumerate() {
            let Some(cloud) = clouds::named(&*change.lease, name)? else { continue };
            if layout.dropped.contains(&(at as u16)) {
                continue;
            }
            let number = layout.declaration.table;
            let files_key = layout.secret.derive(disperse::Purpose::Files, &disperse::Scope::provider(at as u16));
            let dropped = Dropped {
                table: table.name.clone(),
                number: define::has_key_backup(table).then_some(number),
                cloud: (cloud.name, cloud.url, cloud.secret_file),
                rows: coder.table_name(at).as_str().to_owned(),
                files_key: *files_key.expose(),
                writers: kept.writers.clone(),
                clouds: layout.declaration.clouds.clone(),
            };
            let name = [RECORDS, &number, &layout.number.to_be_bytes(), &(at as u16).to_be_bytes()].concat();
            change.lease.put_record(record_space::SETTING, &name, &dropped.to_bytes())?;
        }
    }
    session.dropped.push(kept.declaration().table);
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

impl Session {
    /// Has clouds let go of tables that are gone, those that may not have yet.
    pub(super) fn tell_dropped(&mut self) -> Result<()> {
        let dispersed = shared(self.engine()).clone();
        let leased = std::mem::take(&mut self.dropped);
        if !self.rights.writes || !dispersed.dropped.take() {
            return Ok(());
        }
        // The catalogue is of all tables: another one's must not come in between.
        let _one_at_a_time = dispersed.telling.lock();
        let view = self.guard.engine.store.snapshot()?;
        let (mut all, catalogues) = (all(&view)?, before::all(&dispersed, &view));
        if all.is_empty() {
            return Ok(());
        }
        self.leave_what_others_use(&view, &mut all, (&catalogues, &leased))?;
        drop(view);
        let mut clouds: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        all.iter().enumerate().for_each(|(at, (_, of))| clouds.entry(&of.cloud.1).or_default().push(at));
        let clouds: Vec<Vec<usize>> = clouds.into_values().collect();
        let gone = Mutex::new(Vec::new());
        // The newest layout first: it is that which brings the table back.
        let told = each(clouds.len(), |cloud| {
            let told = clouds[cloud].iter().rev().map(|at| {
                let told = all[*at].1.let_go(&dispersed, &catalogues);
                gone.lock().extend(told.is_ok().then_some(*at));
                told
            });
            told.fold(Ok(()), Result::and)
        });
        for (cloud, told) in clouds.iter().zip(&told) {
            let (Some(at), Err(failure)) = (cloud.first(), told) else { continue };
            let Dropped { table, cloud, .. } = &all[*at].1;
            let text = "keeps what it has, and lets go of it later";
            self.notices.push(format!("table {table}: cloud {} {text}: {failure}", cloud.0));
            dispersed.dropped.set(Instant::now() + PAUSE);
        }
        let gone = gone.into_inner();
        if gone.is_empty() {
            return Ok(());
        }
        self.change(|_, change| {
            for at in gone {
                change.lease.delete_record(record_space::SETTING, &all[at].0)?;
            }
            Ok(())
        })?;
        catalogues.last().map_or(Ok(()), |own| self.forget_keys_of_before(&own.name()))
    }

    /// Of tables that were dropped some time ago another client may not have heard, and have told a later version: then it stays, and is
    /// his. That is seen where all of a table's clouds answer; before that none of them lets go of it.
    fn leave_what_others_use(
        &mut self,
        view: &dyn View,
        all: &mut Vec<(Vec<u8>, Dropped)>,
        (catalogues, leased): (&[Arc<Catalogue>], &[TableNumber]),
    ) -> Result<()> {
        let dispersed = shared(self.engine()).clone();
        let (client, mut looked) = (dispersed.leases.client(view)?, BTreeMap::new());
        for cloud in clouds::all(view)? {
            let names = |(_, dropped): &(Vec<u8>, Dropped)| {
                dropped.number.is_some_and(|number| !leased.contains(&number)) && dropped.clouds.contains(&cloud.name)
            };
            if all.iter().any(names) {
                let look = |catalogue: &Arc<Catalogue>| -> Result<Contents, Failure> {
                    let opened = catalogue::opened(&dispersed, catalogue, &cloud);
                    let opened = opened.map_err(|error| Failure::Refused(error.to_string()))?;
                    catalogue.contents(&*opened, &Patient)
                };
                looked.insert(cloud.name.clone(), catalogues.iter().map(look).collect::<Result<Vec<_>, _>>());
            }
        }
        let (mut others, mut later) = (Vec::new(), 0);
        let look = |dropped: &Dropped| match dropped.number.is_some_and(|number| leased.contains(&number)) {
            true => Found::Nobodys,
            false => dropped.look(&looked, &client),
        };
        all.retain(|(name, dropped)| match look(dropped) {
            Found::Nobodys => true,
            Found::SomebodyElses => {
                others.push((name.clone(), dropped.table.clone()));
                false
            }
            Found::Unknown => {
                later += 1;
                false
            }
        });
        if later > 0 {
            dispersed.dropped.set(Instant::now() + PAUSE);
        }
        if others.is_empty() {
            return Ok(());
        }
        self.change(|_, change| {
            others.iter().try_for_each(|(name, _)| Ok(change.lease.delete_record(record_space::SETTING, name)?))
        })?;
        let tables: BTreeSet<String> = others.into_iter().map(|(_, table)| table).collect();
        let text = "another client has gone on with it since it was dropped here: clouds keep it";
        self.notices.extend(tables.iter().map(|table| format!("table {table}: {text}")));
        Ok(())
    }
}

/// Whose a table is that was dropped.
enum Found {
    Nobodys,
    SomebodyElses,
    /// Not all of its clouds say it, or somebody is about to change it.
    Unknown,
}

/// What clouds show of catalogues, by their names.
type Looked = BTreeMap<String, Result<Vec<Contents>, Failure>>;

impl Dropped {
    fn look(&self, looked: &Looked, own: &Client) -> Found {
        let Some(number) = &self.number else { return Found::Nobodys };
        let mut found = Found::Nobodys;
        // Clouds that nobody calls by a name any more are no longer asked.
        for look in self.clouds.iter().filter_map(|cloud| looked.get(cloud)) {
            let Ok(contents) = look else {
                found = Found::Unknown;
                continue;
            };
            for contents in contents {
                let shown = contents.tables.iter().filter(|(shown, _)| shown.table == *number);
                let is_later = |shown: &Shown| {
                    let there = learning::shown(&shown.parts).ok().flatten();
                    let has =
                        |(client, version): (&Client, &u64)| self.writers.get(client).is_some_and(|own| own >= version);
                    there.is_some_and(|there| !there.writers.iter().all(has))
                };
                if shown.into_iter().any(|(shown, _)| is_later(shown)) {
                    return Found::SomebodyElses;
                }
                if contents.claims_of(number).values().any(|claim| claim.client != *own) {
                    found = Found::Unknown;
                }
            }
        }
        found
    }
}
