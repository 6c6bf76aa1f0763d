//! The catalogue at clouds: what a table is, its keys and its rows' numbers, so that one cloud and the shares of the key bring it back
//! (brought_back.rs).
//!
//! ```text
//! t                  what the table is: Definition (postcard)
//! s                  the header of the database, with its key slots
//! b                  secrets of catalogues of keys from before that clouds may show still (before.rs)
//! h, l, a, k ...     what the owner keeps of the table (`disperse::Kept`)
//! record of space SETTING: "key-split"     01 | the mark of the key of which shares were made
//! ```
//! A cloud is told behind the rows that it is told of, and what has changed alone. Rows that no cloud had been told of when a database is
//! lost are lost with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use counterfoil_disperse::fragments::Fragments;
use counterfoil_disperse::{self as disperse, Catalogue, Failure, Kept, Patient, Provider, Records, Secret, Told};
use counterfoil_log::{View, record_space};
use counterfoil_relation::Table;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::before;
use super::clouds::{self, Cloud};
use super::lease::both;
use super::leases::Leases;
use super::push::{Arrived, each};
use super::{Dispersed, define, is_put_back, keep, kept, shared};
use crate::error::{Error, Result};
use crate::session::Session;

pub(super) const DEFINITION: &[u8] = b"t";
pub(super) const HEADER: &[u8] = b"s";
const SPLIT: &[u8] = b"key-split";
/// Why a database is never as it was when its clouds were last compared with it: it was brought back from them.
pub(super) const BROUGHT_BACK: u64 = u64::MAX;

/// The same, where nobody had compared what was told with what clouds have.
pub(super) const UNCOMPARED: u64 = u64::MAX - 1;

/// Whether a table is as clouds show it, and not as a database was that was put back.
pub(super) fn is_learned(kept: &Kept) -> bool {
    matches!(kept.incidents, BROUGHT_BACK | UNCOMPARED)
}

/// Whether a part is one of what the owner keeps of a table's rows.
pub(super) fn is_of_rows(part: &[u8]) -> bool {
    ![DEFINITION, HEADER, before::PART].contains(&part)
}

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
    if has_shares(dispersed, view, table) {
        return Ok(());
    }
    if before::is_any(view) {
        return Err(Error::Misuse(format!(
            "table {}: the key was changed (`rekey --data`), and clouds are told nothing until there are shares of the new one: \
             `counterfoil key split DB --need 2 --of 3 DIR` first",
            table.name
        )));
    }
    Err(Error::Misuse(format!(
        "table {}: if this database is lost, nobody can read what lies at its clouds, for no shares of its key were made: \
         `counterfoil key split DB --need 2 --of 3 DIR` first, or CREATE TABLE ... WITH (..., key_backup = 'none')",
        table.name
    )))
}

/// Whether shares were made of the key that a table is to be brought back with, or it is not to be.
fn has_shares(dispersed: &Dispersed, view: &dyn View, table: &Table) -> bool {
    let secret = dispersed.owner.get().and_then(|owner| owner.catalogue_secret());
    let Some(secret) = secret.filter(|_| define::has_key_backup(table)) else { return true };
    has_shares_of(view, &secret)
}

/// Whether shares were made of a key, given what seals its catalogue.
pub(super) fn has_shares_of(view: &dyn View, catalogue_secret: &[u8; 32]) -> bool {
    let (name, mark) = split_record(catalogue_secret);
    view.record(record_space::SETTING, name).is_some_and(|known| known[..] == mark[..])
}

/// Whether clouds are told nothing of a table until there are shares of a key that was changed: what they show would be what nobody can open,
/// and they would let go of what the shares of the key before bring back.
pub(super) fn waits_for_shares(dispersed: &Dispersed, view: &dyn View, table: &Table) -> bool {
    before::is_any(view) && !has_shares(dispersed, view, table)
}

/// The catalogue at a cloud.
pub(super) fn opened(dispersed: &Dispersed, catalogue: &Catalogue, cloud: &Cloud) -> Result<Arc<dyn Provider>> {
    clouds::open_or_closed(dispersed, cloud, catalogue.files_key())
}

pub(super) fn of_view<'a>(view: &dyn View, names: impl IntoIterator<Item = &'a String>) -> Result<Vec<Cloud>> {
    let gone = |name: &String| Error::NotFound(format!("no cloud {name}: CREATE CLOUD {name} again"));
    names.into_iter().map(|name| clouds::named(view, name)?.ok_or_else(|| gone(name))).collect()
}

/// What each cloud of a table was told, in the order of its clouds.
pub(super) fn told_of(kept: &Kept) -> Vec<Told> {
    let told = |name: &String| kept.told.get(name).cloned().unwrap_or_default();
    kept.declaration().clouds.iter().map(told).collect()
}

pub(super) fn own(dispersed: &Dispersed, table: &Table) -> Option<(Arc<dyn Owner>, Catalogue)> {
    of_database(dispersed).filter(|_| define::has_key_backup(table))
}

/// The owner, and the catalogue of the database.
pub(super) fn of_database(dispersed: &Dispersed) -> Option<(Arc<dyn Owner>, Catalogue)> {
    let owner = dispersed.owner.get()?;
    let catalogue = Catalogue::new(secret(&*owner.catalogue_secret()?));
    Some((owner.clone(), catalogue))
}

/// Has a cloud let go of all that catalogues show of a table: that of now, and those of keys from before in which it may be still.
pub(super) fn let_go_at(
    dispersed: &Dispersed,
    catalogues: &[Arc<Catalogue>],
    (cloud, table): (&Cloud, &disperse::TableNumber),
) -> Result<(), Failure> {
    catalogues.iter().try_for_each(|catalogue| {
        let opened = opened(dispersed, catalogue, cloud).map_err(|error| Failure::Refused(error.to_string()))?;
        let_go(catalogue, &*opened, table)
    })
}

/// Has a cloud let go of all that a catalogue shows of a table, whoever told it. The catalogue itself stays, empty as it may be: it is
/// that of all tables and clients, and another one may be telling it of his table at this moment.
pub(super) fn let_go(
    catalogue: &Catalogue,
    cloud: &dyn Provider,
    table: &disperse::TableNumber,
) -> Result<(), Failure> {
    let own: Vec<u64> = catalogue.contents(cloud, &Patient)?.places_of(table).into_iter().collect();
    if own.is_empty() { Ok(()) } else { cloud.remove(&catalogue.name(), &own) }
}

/// Whether a catalogue that a cloud did not let go of for this reason brings nothing back from there: it cannot be read. What it leads to may
/// go, and it is asked again until somebody has had it told anew (REPAIR TABLE ... EXTENDED of a table that lies there), or drops the cloud.
pub(super) fn leads_nowhere(failure: &Failure) -> bool {
    matches!(failure, Failure::Malformed(_))
}

/// What clouds are about to be told of a table.
struct Telling {
    catalogue: Catalogue,
    table: disperse::TableNumber,
    clouds: Vec<Cloud>,
    providers: Vec<Arc<dyn Provider>>,
    /// What each was told before.
    told: Vec<Told>,
    /// What each is told now: none that has heard of it.
    coded: Vec<Option<(Fragments, Told)>>,
    /// What each was told under a key of before, which says nothing of what is told now.
    stale: before::Stale<Arc<dyn Provider>>,
}

impl Telling {
    /// Puts it at clouds against which nothing speaks: behind that a catalogue of before says so.
    fn put(&self, before: &[Result<(), Failure>]) -> Result<Vec<Result<(), Failure>>> {
        let salts = (0..self.providers.len()).map(|_| define::random()).collect::<Result<Vec<_>>>()?;
        let name = self.catalogue.name();
        Ok(each(self.providers.len(), |cloud| {
            before[cloud].clone()?;
            self.coded[cloud].as_ref().map_or(Ok(()), |(entries, _)| self.providers[cloud].put(&name, entries))?;
            let Some((stale, provider)) = &self.stale[cloud] else { return Ok(()) };
            before::mark_gone(stale, &**provider, (self.table, name.clone()), salts[cloud])
        }))
    }

    /// Has clouds let go of what is replaced, and of claims that are over: where nothing was told, of those alone.
    fn let_go(
        &self,
        leases: &Leases,
        put: &[Result<(), Failure>],
        claims: &[BTreeSet<u64>],
    ) -> Vec<Result<(), Failure>> {
        let name = self.catalogue.name();
        each(self.providers.len(), |cloud| {
            let claims = claims[cloud].iter().copied();
            if put[cloud].is_err() {
                _ = self.providers[cloud].remove(&name, &claims.collect::<Vec<_>>());
                return put[cloud].clone();
            }
            if let Some((catalogue, provider)) = &self.stale[cloud] {
                let_go(catalogue, &**provider, &self.table)?;
            }
            let Some((entries, newer)) = &self.coded[cloud] else {
                return self.providers[cloud].remove(&name, &claims.collect::<Vec<_>>());
            };
            // What stays behind is older than what is there, and goes with the next REPAIR.
            let over: BTreeSet<u64> = self.told[cloud].replaced_by(newer).into_iter().chain(claims).collect();
            let over: Vec<u64> = over.into_iter().collect();
            leases.note_own(&self.clouds[cloud].url, &entries.places, &over);
            self.providers[cloud].remove(&name, &over)
        })
    }
}

impl Session {
    /// Tells clouds what brings a table back, those that answered before: for each what speaks against it.
    pub(super) fn tell_catalogue(
        &mut self,
        table: &Arc<Table>,
        before: &[Result<(), Failure>],
        arrived: &[Arrived],
    ) -> Result<Vec<Result<(), Failure>>> {
        let dispersed = shared(self.engine()).clone();
        if own(&dispersed, table).is_none() {
            self.let_go_of(table, arrived)?;
            return Ok(before.to_vec());
        }
        let mut before = both(before.to_vec(), self.lease_at_once(table, 0)?);
        let view = self.guard.engine.store.snapshot()?;
        if is_put_back(&view, &kept(&view, table)?)? {
            // Clouds may have let go of what it remembers of them, and know of later versions.
            let tidied = self.tidy_catalogue(table, false)?;
            before.iter_mut().zip(tidied.told).for_each(|(before, tidied)| *before = before.clone().and(tidied));
        }
        drop(view);
        let Some(telling) = self.telling(table, arrived)? else {
            self.let_go_of(table, arrived)?;
            return Ok(before);
        };
        let put = telling.put(&before)?;
        let may_fail = kept(&self.guard.engine.store.snapshot()?, table)?.declaration().may_fail;
        let is_enough = put.iter().filter(|put| put.is_ok()).count() > may_fail;
        let arrived = if is_enough { arrived } else { &[] };
        self.note_catalogue(table, &telling, arrived, &put)?;
        self.let_go_of(table, arrived)?;
        let name = telling.catalogue.name();
        let claims = dispersed.leases.over(table.id, &name, &telling.clouds);
        let told = telling.let_go(&dispersed.leases, &put, &claims);
        self.forget_keys_of_before(&name)?;
        Ok(told)
    }

    /// What clouds are to be told, once rows that have arrived are live; none: they have heard of it.
    fn telling(&mut self, table: &Arc<Table>, arrived: &[Arrived]) -> Result<Option<Telling>> {
        let dispersed = shared(self.engine()).clone();
        let Some((owner, catalogue)) = own(&dispersed, table) else { return Ok(None) };
        let view = self.guard.engine.store.snapshot()?;
        let mut kept = kept(&view, table)?;
        Arrived::settle(arrived, &mut kept);
        let mut parts = self.parts(&view, table, &kept, &*owner)?;
        let mut told = told_of(&kept);
        let stale = before::take_stale(&before::as_told(&view, &catalogue, &kept), &mut told, &catalogue);
        if told.iter().all(|told| told.is(&parts)) && !before::is_over(&view, self.engine(), &catalogue.name())? {
            return Ok(None);
        }
        let clouds = of_view(&view, &kept.declaration().clouds)?;
        drop(view);
        let stale = before::opened(&dispersed, &clouds, stale)?;
        let providers = clouds.iter().map(|cloud| opened(&dispersed, &catalogue, cloud)).collect::<Result<_>>()?;
        // Others may have been told this already.
        let is_known = told.iter().any(|told| told.is(&parts) && told.version == kept.version);
        if !is_known {
            kept = self.take_version(table)?;
            Arrived::settle(arrived, &mut kept);
            let view = self.guard.engine.store.snapshot()?;
            parts = self.parts(&view, table, &kept, &*owner)?;
        }
        let (table, version) = (kept.declaration().table, kept.version);
        let code = |told: &Told| match told.is(&parts) {
            true => Ok(None),
            false => catalogue.code(table, version, &parts, told, define::random::<16>).map(Some),
        };
        let coded = told.iter().map(code).collect::<Result<_>>()?;
        Ok(Some(Telling { catalogue, table, clouds, providers, told, coded, stale }))
    }

    /// Whether clouds were told of all that brings a table back.
    pub(super) fn catalogue_is_told(&mut self, view: &dyn View, table: &Arc<Table>, kept: &Kept) -> Result<bool> {
        let dispersed = shared(self.engine()).clone();
        let Some((owner, catalogue)) = own(&dispersed, table) else { return Ok(true) };
        let (parts, name) = (self.parts(view, table, kept, &*owner)?, catalogue.name());
        let is_told = |told: &Told| told.is(&parts) && told.called == name.as_str();
        Ok(told_of(kept).iter().all(is_told) && !before::is_over(view, self.engine(), &name)?)
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

    fn note_catalogue(
        &mut self,
        table: &Arc<Table>,
        telling: &Telling,
        arrived: &[Arrived],
        put: &[Result<(), Failure>],
    ) -> Result<()> {
        self.change(|session, change| {
            // What is replaced goes after this: parts that are gone must not be counted on.
            session.guard.transaction.be_durable();
            let mut kept = super::kept(&*change.lease, table)?;
            for (cloud, newer) in telling.coded.iter().enumerate() {
                if let (Some((_, newer)), Ok(())) = (newer, &put[cloud]) {
                    kept.told.insert(telling.clouds[cloud].name.clone(), newer.clone());
                }
            }
            keep(&mut change.lease, table.id, &kept)?;
            Arrived::let_go(Arrived::few(arrived), session, change, table)
        })
    }

    /// Rows that every cloud has, of which clouds were told: those that are here still.
    fn let_go_of(&mut self, table: &Arc<Table>, arrived: &[Arrived]) -> Result<()> {
        let view = self.guard.engine.store.snapshot()?;
        let on_their_way = kept(&view, table)?.current().on_their_way();
        drop(view);
        arrived.iter().filter(|arrived| arrived.is_among(&on_their_way)).try_for_each(|arrived| {
            self.change(|session, change| {
                session.guard.transaction.be_durable();
                Arrived::let_go(std::slice::from_ref(arrived), session, change, table)
            })
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
        let mut told = kept.clone();
        // Of a database that was put back whoever learns it is to know that it was not compared with its clouds.
        told.incidents = match (kept.incidents, is_put_back(view, kept)?) {
            (BROUGHT_BACK, _) => 0,
            (UNCOMPARED, _) | (_, true) => BROUGHT_BACK,
            (incidents, false) => incidents,
        };
        let mut parts = told.to_parts();
        parts.insert(DEFINITION.to_vec(), Zeroizing::new(definition));
        parts.insert(HEADER.to_vec(), Zeroizing::new(owner.header()));
        before::add(view, &mut parts);
        Ok(parts)
    }

    /// Remembers that shares of the key were made: rows of dispersed tables are taken from then on. Clouds are told what these shares bring
    /// back: under a key that was changed they have not heard of it.
    ///
    /// # Errors
    /// What every change answers.
    pub fn note_split(&mut self, catalogue_secret: &[u8; 32]) -> Result<()> {
        let (name, mark) = split_record(catalogue_secret);
        self.change(|_, change| Ok(change.lease.put_record(record_space::SETTING, name, &mark)?))?;
        let view = self.guard.engine.store.snapshot()?;
        let tables = define::tables(self.engine(), &view)?;
        drop(view);
        tables.iter().for_each(|table| shared(self.engine()).note_untold(table.id));
        self.tell_clouds();
        Ok(())
    }
}

/// It may say that rows lie elsewhere by now: whoever put this version's in its place would lose the way to them.
pub(super) fn of_another_version(table: &Table, cloud: &Cloud) -> Error {
    Error::NotSupported(format!(
        "table {}: what cloud {} has to bring it back is of another version of this program: use the newer program for all copies of the database",
        table.name, cloud.name
    ))
}

/// Whoever has something of his own goes on with one of the two.
pub(super) fn moved_since(table: &Table, cloud: &Cloud) -> Error {
    Error::Misuse(format!(
        "table {0}: it was altered or refreshed after this copy of the database was made, and lies otherwise at its clouds: cloud {1} knows \
         how: REPAIR TABLE {0} GIVE WAY takes what it has and lets go of what is here alone, and `counterfoil restore --from {2} NEW \
         --key-file SHARES` brings it back beside this copy",
        table.name, cloud.name, cloud.url
    ))
}

/// A table that is another one by now in more than how it lies is not followed.
pub(super) fn altered_since(table: &Table, cloud: &Cloud) -> Error {
    Error::Misuse(format!(
        "table {}: it was altered after this copy of the database was made, and its columns or rules are others by now, or it has another \
         name: cloud {} knows it, and `counterfoil restore --from {} NEW --key-file SHARES` brings it back",
        table.name, cloud.name, cloud.url
    ))
}
