//! Catalogues of keys from before: `rekey --data` changes what a catalogue is called and sealed with, and clouds hear of it one by one.
//!
//! ```text
//! the key is changed: its catalogue's secret is kept, and clouds are told nothing
//!     -> shares of the new key are made
//!     -> each cloud, for each table: the new one is told -> the old one says so -> noted -> what else it shows of the table goes
//!     -> once all tables of all clouds were told: what is left of old ones goes at all clouds -> the secrets are forgotten
//! record of space SETTING: "catalogue-before"     secrets, each [32], the oldest first; the same as part `b` of the catalogue
//! ```
//! Until there are shares of the new key those of the old one bring tables back, as clouds were told of them last: whatever is changed meanwhile
//! waits here. A cut before something is noted has it told again; one behind it leaves something of an old catalogue, which goes before its secret is
//! forgotten. That a table is gone stays there, so that whoever knows the old key alone, a copy from yesterday or another client, sees it at
//! whichever cloud he meets first, and does not take it for lost. The secrets are in the new catalogue, too, so that whoever brings a
//! database back goes on with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use counterfoil_disperse::fragments::Name;
use counterfoil_disperse::{Catalogue, Contents, Failure, Kept, Patient, Provider, Records, TableNumber, Told};
use counterfoil_log::{View, Writer, record_space};
use counterfoil_relation::Table;
use zeroize::Zeroizing;

use super::catalogue::{self, let_go, of_view, secret, told_of};
use super::clouds::Cloud;
use super::{Dispersed, RECORDS, define, dropped, kept, shared};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::session::Session;

/// The secrets of catalogues that clouds may show still, each of 32 bytes.
const BEFORE: &[u8] = b"catalogue-before";
/// The same in the catalogue.
pub(super) const PART: &[u8] = b"b";
/// So many of them at most: of keys that were changed and split again and again without a word to clouds the last ones are enough.
const BEFORE_MOST: usize = 32;

/// A catalogue of before at a cloud that is to let go of it.
pub(super) type Stale<T> = Vec<Option<(Arc<Catalogue>, T)>>;

/// A record, its name and its value, for a database whose key is changed: with the secret of its catalogue, which clouds show until they
/// are told another one. None: no table of it lies with clouds.
pub fn secrets_of_before(view: &dyn View, catalogue_secret: &[u8; 32]) -> Option<(&'static [u8], Zeroizing<Vec<u8>>)> {
    if view.records(record_space::SETTING, RECORDS).is_empty() && !dropped::is_any(view) {
        return None;
    }
    let known = secrets(view);
    if !known.is_empty() && !catalogue::has_shares_of(view, catalogue_secret) {
        // Clouds were told nothing under a key that nobody has shares of.
        return Some((BEFORE, known));
    }
    let all = Zeroizing::new([&known[..], &catalogue_secret[..]].concat());
    let from = all.len().saturating_sub(BEFORE_MOST * catalogue_secret.len());
    Some((BEFORE, Zeroizing::new(all[from..].to_vec())))
}

fn secrets(view: &dyn View) -> Zeroizing<Vec<u8>> {
    let before = view.record(record_space::SETTING, BEFORE);
    Zeroizing::new(before.map_or_else(Vec::new, |bytes| bytes.to_vec()))
}

/// Whether clouds may show such a catalogue still.
pub(super) fn is_any(view: &dyn View) -> bool {
    !secrets(view).is_empty()
}

/// Adds them to what brings a table back.
pub(super) fn add(view: &dyn View, parts: &mut Records) {
    let secrets = secrets(view);
    if !secrets.is_empty() {
        parts.insert(PART.to_vec(), secrets);
    }
}

/// Those of the database that is brought back: whoever changed its key may not have come to the end with it.
pub(super) fn note(writer: &mut Writer, parts: &Records) -> Result<()> {
    let Some(shown) = parts.get(PART) else { return Ok(()) };
    let known = secrets(&*writer);
    let new = shown.chunks_exact(32).filter(|secret| known.chunks_exact(32).all(|known| known != *secret));
    let all =
        Zeroizing::new(known.chunks_exact(32).chain(new).take(BEFORE_MOST).flatten().copied().collect::<Vec<u8>>());
    Ok(writer.put_record(record_space::SETTING, BEFORE, &all)?)
}

/// Those whose secrets are not forgotten yet.
pub(super) fn catalogues(view: &dyn View) -> Vec<Arc<Catalogue>> {
    let secrets = secrets(view);
    let each = secrets.chunks_exact(32).filter_map(|bytes| <&[u8; 32]>::try_from(bytes).ok());
    each.map(|bytes| Arc::new(Catalogue::new(secret(bytes)))).collect()
}

/// The same, and that of now, which is the last one; nothing: the database ends with its process.
pub(super) fn all(dispersed: &Dispersed, view: &dyn View) -> Vec<Arc<Catalogue>> {
    let own = catalogue::of_database(dispersed).map(|(_, own)| Arc::new(own));
    own.map_or_else(Vec::new, |own| catalogues(view).into_iter().chain([own]).collect())
}

/// For each cloud of a table the catalogue that it was told of: that of a key of before, until it is told another one. Other clients know no
/// other.
pub(super) fn as_told(view: &dyn View, own: &Catalogue, kept: &Kept) -> Vec<Arc<Catalogue>> {
    let (own, before) = (Arc::new(own.clone()), catalogues(view));
    let named = |told: Told| before.iter().find(|before| is_of(&told, &before.name())).unwrap_or(&own).clone();
    told_of(kept).into_iter().map(named).collect()
}

/// What these and that of now are called: what says that it went into one of them was told by this database.
pub(super) fn names(view: &dyn View, own: &Catalogue) -> BTreeSet<Name> {
    catalogues(view).iter().map(|before| before.name()).chain([own.name()]).collect()
}

/// Whether a cloud shows that another client has told a table under another key.
pub(super) fn is_gone(contents: &Contents, table: &TableNumber, mine: &BTreeSet<Name>) -> bool {
    contents.gone.get(table).is_some_and(|next| !mine.contains(next))
}

/// Whoever went on with the old key would take the rows of others for strays.
pub(super) fn gone(table: &Table, cloud: &Cloud) -> Error {
    Error::Conflict(format!(
        "table {}: another client has changed the key (`counterfoil rekey --data`), as cloud {} shows: `counterfoil restore --from {} NEW --key-file SHARES`, with shares of the new key, brings it back",
        table.name, cloud.name, cloud.url
    ))
}

/// Says in an old catalogue where a table is shown from now on.
pub(super) fn mark_gone(
    stale: &Catalogue,
    cloud: &dyn Provider,
    (table, next): (TableNumber, Name),
    salt: [u8; 16],
) -> Result<(), Failure> {
    match stale.contents(cloud, &Patient) {
        Ok(contents) if contents.gone.get(&table) == Some(&next) => return Ok(()),
        Ok(_) => {}
        // Nobody reads it any more.
        Err(Failure::Malformed(_)) => cloud.drop_table(&stale.name())?,
        Err(failure) => return Err(failure),
    }
    cloud.put(&stale.name(), &stale.code_gone(table, next, salt))
}

fn is_of(told: &Told, name: &Name) -> bool {
    told.called == name.as_str()
}

/// Whether a cloud has been told something, under another key.
fn is_stale(told: &Told, own: &Name) -> bool {
    !told.called.is_empty() && !is_of(told, own)
}

/// Takes what clouds were told under keys of before, for each of them the catalogue that it was told of then.
pub(super) fn take_stale(as_told: &[Arc<Catalogue>], told: &mut [Told], own: &Catalogue) -> Stale<()> {
    let own = own.name();
    let stale = as_told.iter().zip(told).map(|(catalogue, told)| {
        let told = if is_stale(told, &own) { std::mem::take(told) } else { return None };
        is_of(&told, &catalogue.name()).then(|| (catalogue.clone(), ()))
    });
    stale.collect()
}

/// The same, at their clouds.
pub(super) fn opened(dispersed: &Dispersed, clouds: &[Cloud], stale: Stale<()>) -> Result<Stale<Arc<dyn Provider>>> {
    let open = |(cloud, stale): (&Cloud, Option<(Arc<Catalogue>, ())>)| {
        let Some((catalogue, ())) = stale else { return Ok(None) };
        let provider = catalogue::opened(dispersed, &catalogue, cloud)?;
        Ok(Some((catalogue, provider)))
    };
    clouds.iter().zip(stale).map(open).collect()
}

/// Whether all clouds of all tables have been told under this key, and something is left of those before.
pub(super) fn is_over(view: &dyn View, engine: &Engine, own: &Name) -> Result<bool> {
    if view.record(record_space::SETTING, BEFORE).is_none() || dropped::is_any(view) {
        return Ok(false);
    }
    for table in define::tables(engine, view)? {
        // One that waits for shares has not been told of its rows.
        let waits = catalogue::waits_for_shares(shared(engine), view, &table);
        if waits || kept(view, &table)?.told.values().any(|told| is_stale(told, own)) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Session {
    /// Forgets the secrets of keys of before, when nothing is left that they open.
    pub(super) fn forget_keys_of_before(&mut self, own: &Name) -> Result<()> {
        let view = self.guard.engine.store.snapshot()?;
        if !is_over(&view, self.engine(), own)? {
            return Ok(());
        }
        let (dispersed, catalogues) = (shared(self.engine()).clone(), catalogues(&view));
        let mut left = Vec::new();
        for table in define::tables(self.engine(), &view)? {
            let kept = kept(&view, &table)?;
            for cloud in of_view(&view, &kept.declaration().clouds)? {
                for catalogue in &catalogues {
                    let provider = catalogue::opened(&dispersed, catalogue, &cloud)?;
                    left.push((catalogue.clone(), provider, kept.declaration().table));
                }
            }
        }
        drop(view);
        let salt = define::random()?;
        let go = |(catalogue, provider, table): &(Arc<Catalogue>, Arc<dyn Provider>, TableNumber)| {
            match catalogue.contents(&**provider, &Patient) {
                Ok(contents) if contents.places_of(table).is_empty() => return Ok(()),
                // One that is damaged goes as a whole.
                Ok(_) | Err(Failure::Malformed(_)) => {}
                Err(failure) => return Err(failure),
            }
            mark_gone(catalogue, &**provider, (*table, own.clone()), salt)?;
            let_go(catalogue, &**provider, table)
        };
        if left.iter().any(|left| go(left).is_err()) {
            // With the next that clouds are told.
            return Ok(());
        }
        self.change(|_, change| Ok(change.lease.delete_record(record_space::SETTING, BEFORE)?))
    }
}
