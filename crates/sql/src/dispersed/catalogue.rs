//! The catalogue at clouds: what a table is, its keys and its rows' numbers, so that one cloud and the shares of the key bring it back
//! (brought_back.rs).
//!
//! ```text
//! t                  what the table is: Definition (postcard)
//! s                  the header of the database, with its key slots
//! h, l, a, k ...     what the owner keeps of the table (`disperse::Kept`)
//! record of space SETTING: "key-split"     01 | the mark of the key of which shares were made
//! ```
//! A cloud is told behind the rows that it is told of, and what has changed alone. Rows that no cloud had been told of when a database is
//! lost are lost with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use counterfoil_disperse::fragments::{Fragments, Name};
use counterfoil_disperse::{
    self as disperse, Catalogue, Failure, Kept, Layout, Patient, Provider, Records, Secret, Told,
};
use counterfoil_log::{View, record_space};
use counterfoil_relation::Table;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::clouds::{self, Cloud};
use super::learning::{self, is_later, told_by_another};
use super::lease::both;
use super::leases::Leases;
use super::push::each;
use super::waiting::Waiting;
use super::{Dispersed, define, is_put_back, keep, kept, shared};
use crate::error::{Error, Result};
use crate::session::Session;
use crate::transaction::Change;

pub(super) const DEFINITION: &[u8] = b"t";
pub(super) const HEADER: &[u8] = b"s";
const SPLIT: &[u8] = b"key-split";
/// Why a database is never as it was when its clouds were last compared with it: it was brought back from them.
pub(super) const BROUGHT_BACK: u64 = u64::MAX;

/// What a database is to those who bring it back.
pub trait Owner: Send + Sync {
    /// What seals the catalogue; none: nothing is to be brought back, since the database ends with its process.
    fn catalogue_secret(&self) -> Option<Zeroizing<[u8; 32]>>;

    /// The header, with the key slots.
    fn header(&self) -> Vec<u8>;
}

/// What a table is, for whoever makes it again.
#[derive(Serialize, Deserialize)]
pub(super) struct Definition {
    pub name: String,
    pub sql: String,
    /// Names, addresses, files with secrets.
    pub clouds: Vec<(String, String, Option<String>)>,
    /// Numbers of identity columns, and their next values.
    pub identities: Vec<(u32, Option<i64>)>,
}

pub(super) fn secret(bytes: &[u8; 32]) -> Secret {
    Secret::new(*bytes)
}

/// The record that says that shares of a key were made: its name and its value.
fn split_record(catalogue_secret: &[u8; 32]) -> (&'static [u8], Vec<u8>) {
    let mark = secret(catalogue_secret).derive(disperse::Purpose::Split, &disperse::Scope::table());
    (SPLIT, [&[1], &mark.expose()[..16]].concat())
}

/// Refuses rows of a table that nobody could bring back if this database were lost.
pub(super) fn require_backup(dispersed: &Dispersed, view: &dyn View, table: &Table) -> Result<()> {
    let secret = dispersed.owner.get().and_then(|owner| owner.catalogue_secret());
    let Some(secret) = secret.filter(|_| define::has_key_backup(table)) else { return Ok(()) };
    let (name, mark) = split_record(&secret);
    if view.record(record_space::SETTING, name).is_some_and(|known| known[..] == mark[..]) {
        return Ok(());
    }
    Err(Error::Misuse(format!(
        "table {}: if this database is lost, nobody can read what lies at its clouds, for no shares of its key were made: \
         `counterfoil key split DB --need 2 --of 3 DIR` first, or CREATE TABLE ... WITH (..., key_backup = 'none')",
        table.name
    )))
}

/// The catalogue at a cloud.
pub(super) fn opened(dispersed: &Dispersed, catalogue: &Catalogue, cloud: &Cloud) -> Result<Arc<dyn Provider>> {
    clouds::open_or_closed(dispersed, cloud, catalogue.files_key())
}

pub(super) fn of_view<'a>(view: &dyn View, names: impl IntoIterator<Item = &'a String>) -> Result<Vec<Cloud>> {
    let gone = |name: &String| Error::NotFound(format!("no cloud {name}: CREATE CLOUD {name} again"));
    names.into_iter().map(|name| clouds::named(view, name)?.ok_or_else(|| gone(name))).collect()
}

/// The secrets of catalogues that clouds may show still, each of 32 bytes: of keys from before.
pub const BEFORE: &[u8] = b"catalogue-before";

/// The catalogue that clouds were told of a table, or some of them: that of a key of before, until all have been told another one. Other
/// clients know no other.
pub(super) fn as_told(view: &dyn View, own: Catalogue, kept: &Kept) -> Catalogue {
    let name = own.name();
    let mut stale = kept.told.values().filter(|told| !told.called.is_empty() && told.called != name.as_str());
    let (Some(told), Some(before)) = (stale.next(), view.record(record_space::SETTING, BEFORE)) else { return own };
    let secrets = before.chunks_exact(32).filter_map(|bytes| <&[u8; 32]>::try_from(bytes).ok());
    let before = secrets.map(|bytes| Catalogue::new(secret(bytes)));
    before.into_iter().find(|before| before.name().as_str() == told.called).unwrap_or(own)
}

/// What each cloud of a table was told, in the order of its clouds.
fn told_of(kept: &Kept) -> Vec<Told> {
    let told = |name: &String| kept.told.get(name).cloned().unwrap_or_default();
    kept.declaration().clouds.iter().map(told).collect()
}

pub(super) fn own(dispersed: &Dispersed, table: &Table) -> Option<(Arc<dyn Owner>, Catalogue)> {
    let owner = dispersed.owner.get().filter(|_| define::has_key_backup(table))?;
    let catalogue = Catalogue::new(secret(&*owner.catalogue_secret()?));
    Some((owner.clone(), catalogue))
}

/// The catalogue of a table that goes.
pub(crate) struct Leaving {
    catalogue: Catalogue,
    /// None: one that has let go of it before.
    clouds: Vec<Option<Result<Arc<dyn Provider>, Failure>>>,
    table: disperse::TableNumber,
}

impl Leaving {
    /// That at clouds of a layout; none: there is none.
    pub(super) fn at(dispersed: &Dispersed, view: &dyn View, table: &Table, layout: &Layout) -> Option<Self> {
        let (_, catalogue) = own(dispersed, table)?;
        let open = |(at, name): (usize, &String)| {
            if layout.dropped.contains(&(at as u16)) {
                return None;
            }
            let clouds = of_view(view, [name]);
            let opened = clouds.and_then(|clouds| opened(dispersed, &catalogue, &clouds[0]));
            Some(opened.map_err(|error| Failure::Refused(error.to_string())))
        };
        let clouds = layout.declaration.clouds.iter().enumerate().map(open).collect();
        Some(Self { catalogue, clouds, table: layout.declaration.table })
    }

    /// Has a cloud let go of it.
    pub(super) fn drop_at(&self, cloud: usize) -> Result<(), Failure> {
        let Some(cloud) = &self.clouds[cloud] else { return Ok(()) };
        let (cloud, name) = (cloud.as_ref().map_err(Clone::clone)?, self.catalogue.name());
        // All that it shows of the table, whoever told it.
        let contents = self.catalogue.contents(&**cloud, &Patient)?;
        let mut own: BTreeSet<u64> = contents.claims_of(&self.table).into_keys().collect();
        let (shown, others): (Vec<_>, Vec<_>) =
            contents.tables.into_iter().partition(|(shown, _)| shown.table == self.table);
        own.extend(shown.into_iter().flat_map(|(_, places)| places));
        let is_alone = others.is_empty() && contents.claims.values().all(|(table, _)| *table == self.table);
        match (own.is_empty(), is_alone) {
            (true, _) => Ok(()),
            (false, true) => cloud.drop_table(&name),
            (false, false) => cloud.remove(&name, &own.into_iter().collect::<Vec<_>>()),
        }
    }
}

impl Session {
    /// Tells clouds what brings a table back, those that answered before: for each what speaks against it.
    pub(super) fn tell_catalogue(
        &mut self,
        table: &Arc<Table>,
        before: &[Result<(), Failure>],
    ) -> Result<Vec<Result<(), Failure>>> {
        let dispersed = shared(self.engine()).clone();
        let Some((owner, catalogue)) = own(&dispersed, table) else { return Ok(before.to_vec()) };
        let mut before = both(before.to_vec(), self.lease_at_once(table, 0)?);
        let view = self.guard.engine.store.snapshot()?;
        if is_put_back(&view, &kept(&view, table)?)? {
            // Clouds may have let go of what it remembers of them, and know of later versions.
            let tidied = self.tidy_catalogue(table, false)?;
            before.iter_mut().zip(tidied).for_each(|(before, tidied)| *before = before.clone().and(tidied));
        }
        let view = self.guard.engine.store.snapshot()?;
        let kept = kept(&view, table)?;
        let mut parts = self.parts(&view, table, &kept, &*owner)?;
        let mut told = told_of(&kept);
        let stale = self.stale(&view, table, (&kept, &mut told), catalogue.name().as_str())?;
        if told.iter().all(|told| told.is(&parts)) {
            return Ok(before);
        }
        let providers = of_view(&view, &kept.declaration().clouds)?;
        drop(view);
        let urls: Vec<String> = providers.iter().map(|cloud| cloud.url.clone()).collect();
        let providers: Vec<_> =
            providers.iter().map(|cloud| opened(&dispersed, &catalogue, cloud)).collect::<Result<_>>()?;
        let version = match told.iter().any(|told| told.is(&parts) && told.version == kept.version) {
            // Others have been told this already.
            true => kept.version,
            false => {
                let kept = self.take_version(table)?;
                let view = self.guard.engine.store.snapshot()?;
                parts = self.parts(&view, table, &kept, &*owner)?;
                kept.version
            }
        };
        let number = kept.declaration().table;
        let code = |told: &Told| match told.is(&parts) {
            true => Ok(None),
            false => catalogue.code(number, version, &parts, told, define::random::<16>).map(Some),
        };
        let coded = told.iter().map(code).collect::<Result<Vec<_>>>()?;
        let put = each(providers.len(), |cloud| {
            before[cloud].clone()?;
            coded[cloud].as_ref().map_or(Ok(()), |(entries, _)| providers[cloud].put(&catalogue.name(), entries))
        });
        self.note_catalogue(table, &kept.declaration().clouds, &coded, &put)?;
        let claims = dispersed.leases.over(table.id, catalogue.name().as_str(), providers.len());
        Ok(each(providers.len(), |cloud| {
            let claims = claims[cloud].iter().copied();
            if put[cloud].is_err() {
                _ = providers[cloud].remove(&catalogue.name(), &claims.collect::<Vec<_>>());
                return put[cloud].clone();
            }
            if let Some(name) = &stale[cloud] {
                providers[cloud].drop_table(name)?;
            }
            let Some((entries, newer)) = &coded[cloud] else {
                return providers[cloud].remove(&catalogue.name(), &claims.collect::<Vec<_>>());
            };
            // What stays behind is older than what is there, and goes with the next REPAIR.
            let over: BTreeSet<u64> = told[cloud].replaced_by(newer).into_iter().chain(claims).collect();
            let over: Vec<u64> = over.into_iter().collect();
            dispersed.leases.note_own(&urls[cloud], &entries.places, &over);
            providers[cloud].remove(&catalogue.name(), &over)
        }))
    }

    /// Whether clouds were told of all that brings a table back.
    pub(super) fn catalogue_is_told(&mut self, view: &dyn View, table: &Arc<Table>, kept: &Kept) -> Result<bool> {
        let dispersed = shared(self.engine()).clone();
        let Some((owner, catalogue)) = own(&dispersed, table) else { return Ok(true) };
        let (parts, name) = (self.parts(view, table, kept, &*owner)?, catalogue.name());
        Ok(told_of(kept).iter().all(|told| told.is(&parts) && told.called == name.as_str()))
    }

    /// A version that no cloud has seen, durable before one does: whatever is cut, no two that differ have one number.
    fn take_version(&mut self, table: &Arc<Table>) -> Result<Kept> {
        self.change(|session, change| {
            session.guard.transaction.be_durable();
            let client = shared(session.engine()).clone().leases.note_client(&mut change.lease)?;
            let mut kept = super::kept(&*change.lease, table)?;
            kept.version += 1;
            kept.writers.insert(client, kept.version);
            keep(&mut change.lease, table.id, &kept)?;
            Ok(kept)
        })
    }

    /// Forgets what clouds were told under another key, before the data was sealed anew. For each cloud the catalogue that goes with it, if
    /// this table is the last one of that.
    fn stale(
        &self,
        view: &dyn View,
        table: &Table,
        (kept, told): (&Kept, &mut [Told]),
        name: &str,
    ) -> Result<Vec<Option<Name>>> {
        let is_stale = |told: &Told| !told.called.is_empty() && told.called != name;
        if !told.iter().any(is_stale) {
            return Ok(vec![None; told.len()]);
        }
        let mut others = BTreeSet::new();
        for other in define::tables(self.engine(), view)?.iter().filter(|other| other.id != table.id) {
            others.extend(super::kept(view, other)?.told.into_iter().map(|(cloud, told)| (cloud, told.called)));
        }
        let stale = told.iter_mut().zip(&kept.declaration().clouds).map(|(told, cloud)| {
            let called = if is_stale(told) { std::mem::take(told).called } else { return None };
            Name::parse(&called).filter(|_| !others.contains(&(cloud.clone(), called)))
        });
        Ok(stale.collect())
    }

    fn note_catalogue(
        &mut self,
        table: &Arc<Table>,
        clouds: &[String],
        coded: &[Option<(Fragments, Told)>],
        put: &[Result<(), Failure>],
    ) -> Result<()> {
        self.change(|session, change| {
            // What is replaced goes after this: parts that are gone must not be counted on.
            session.guard.transaction.be_durable();
            let mut kept = super::kept(&*change.lease, table)?;
            for (cloud, newer) in coded.iter().enumerate() {
                if let (Some((_, newer)), Ok(())) = (newer, &put[cloud]) {
                    kept.told.insert(clouds[cloud].clone(), newer.clone());
                }
            }
            keep(&mut change.lease, table.id, &kept)?;
            forget_secrets_of_before(session, change)
        })
    }

    fn parts(&mut self, view: &dyn View, table: &Table, kept: &Kept, owner: &dyn Owner) -> Result<Records> {
        // Those of layouts that rows still lie in, too: whoever brings it back asks them.
        let of_rows =
            kept.layouts().iter().filter(|of| of.number == kept.current().number || !of.state.live.is_empty());
        let names: BTreeSet<&String> = of_rows.flat_map(|layout| &layout.declaration.clouds).collect();
        let clouds =
            of_view(view, names)?.into_iter().map(|cloud| (cloud.name, cloud.url, cloud.secret_file)).collect();
        let identities = self.engine().relations.identities(view, table).map_err(Error::Relation)?;
        let definition = Definition {
            name: table.name.clone(),
            sql: self.create_statement(&table.name)?,
            clouds,
            identities: identities.into_iter().map(|(column, next)| (column.0, next)).collect(),
        };
        let definition = postcard::to_allocvec(&definition).expect("memory takes what it is given");
        let mut parts = kept.to_parts();
        parts.insert(DEFINITION.to_vec(), Zeroizing::new(definition));
        parts.insert(HEADER.to_vec(), Zeroizing::new(owner.header()));
        Ok(parts)
    }

    /// Has clouds let go of entries of a table that nothing names any more, and goes on above what they have been told: after cuts, and
    /// after the database was put back. For each cloud what speaks against it.
    pub(super) fn tidy_catalogue(&mut self, table: &Arc<Table>, takes_over: bool) -> Result<Vec<Result<(), Failure>>> {
        let dispersed = shared(self.engine()).clone();
        let view = self.guard.engine.store.snapshot()?;
        let kept = kept(&view, table)?;
        let told = told_of(&kept);
        let is_behind = is_put_back(&view, &kept)? && kept.incidents != BROUGHT_BACK;
        let past = is_behind.then(|| Leases::past(&view)).transpose()?;
        let mut done = vec![Ok(()); told.len()];
        let Some((_, catalogue)) = own(&dispersed, table) else { return Ok(done) };
        let clouds = of_view(&view, &kept.declaration().clouds)?;
        drop(view);
        let interrupt = self.interrupt();
        let waiting = Waiting::statement(&interrupt);
        let mut anew = Vec::new();
        for (at, (named, told)) in clouds.iter().zip(&told).enumerate() {
            let cloud = opened(&dispersed, &catalogue, named)?;
            let shown = match catalogue.read(&*cloud, &waiting) {
                Ok(shown) => shown,
                Err(Failure::CalledOff) => return Err(waiting.called_off()),
                Err(failure) => {
                    done[at] = Err(failure);
                    continue;
                }
            };
            let shown = shown.into_iter().find(|(shown, _)| shown.table == kept.declaration().table);
            // It may say that rows lie elsewhere by now, also where nobody here knows how to read it.
            let there = shown.as_ref().map(|(told, _)| learning::shown(&told.parts)).transpose();
            let there = there.map_err(|_| of_another_version(table, named))?.flatten();
            if there.as_ref().is_some_and(|there| there.current().number > kept.current().number) {
                return Err(moved_since(table, named));
            }
            if let (Some((shown, _)), Some(there)) = (&shown, &there)
                && !takes_over
                && is_later(&kept, (shown.version, there), past.as_ref())
            {
                // It did not answer when that was looked at before.
                return Err(told_by_another(table, named, (shown.version, kept.version)));
            }
            let writers = there.map(|there| there.writers).unwrap_or_default();
            match shown {
                Some((shown, places)) if told.is_shown(&shown, &places) => {
                    let stray: Vec<u64> = places.difference(&told.places()).copied().collect();
                    if !stray.is_empty() {
                        // What stays behind is older than what is there.
                        drop(cloud.remove(&catalogue.name(), &stray));
                    }
                }
                // It has lost some of it, or knows of a later day than this database.
                Some((shown, places)) => anew.push((at, shown.version, places, writers)),
                None => anew.push((at, 0, BTreeSet::new(), writers)),
            }
        }
        if anew.is_empty() {
            return Ok(done);
        }
        self.change(|_, change| {
            let mut kept = super::kept(&*change.lease, table)?;
            for (at, version, places, writers) in &anew {
                kept.version = kept.version.max(*version);
                // What they told is let go of, and known to be.
                kept.note_writers(writers);
                kept.told.insert(clouds[*at].name.clone(), Told::anew(*version, places));
            }
            keep(&mut change.lease, table.id, &kept)
        })?;
        Ok(done)
    }

    /// Remembers that shares of the key were made: rows of dispersed tables are taken from then on.
    ///
    /// # Errors
    /// What every change answers.
    pub fn note_split(&mut self, catalogue_secret: &[u8; 32]) -> Result<()> {
        let (name, mark) = split_record(catalogue_secret);
        self.change(|_, change| Ok(change.lease.put_record(record_space::SETTING, name, &mark)?))
    }
}

/// What no cloud shows any more opens nothing.
fn forget_secrets_of_before(session: &Session, change: &mut Change) -> Result<()> {
    let owner = session.engine().dispersed.owner.get().and_then(|owner| owner.catalogue_secret());
    let (Some(own), Some(_)) = (owner, change.lease.record(record_space::SETTING, BEFORE)) else { return Ok(()) };
    let name = Catalogue::new(secret(&own)).name();
    for table in define::tables(session.engine(), &*change.lease)? {
        let kept = super::kept(&*change.lease, &table)?;
        if kept.told.values().any(|told| !told.called.is_empty() && told.called != name.as_str()) {
            return Ok(());
        }
    }
    Ok(change.lease.delete_record(record_space::SETTING, BEFORE)?)
}

/// It may say that rows lie elsewhere by now: whoever put this version's in its place would lose the way to them.
pub(super) fn of_another_version(table: &Table, cloud: &Cloud) -> Error {
    Error::NotSupported(format!(
        "table {}: what cloud {} has to bring it back is of another version of this program: use the newer program for all copies of the database",
        table.name, cloud.name
    ))
}

pub(super) fn moved_since(table: &Table, cloud: &Cloud) -> Error {
    Error::Misuse(format!(
        "table {}: it was altered or refreshed after this copy of the database was made, and lies otherwise at its clouds: cloud {} knows \
         how, and `counterfoil restore --from {} NEW --key-file SHARES` brings it back",
        table.name, cloud.name, cloud.url
    ))
}
