//! Tables that are made again from what their clouds show, when their database is lost (catalogue.rs).

use std::collections::{BTreeMap, BTreeSet};

use counterfoil_disperse::{self as disperse, Catalogue, Failure, Kept, Patient, Provider, Records, Told};
use counterfoil_relation::{ColumnId, RowId};

use super::catalogue::{BROUGHT_BACK, DEFINITION, Definition, HEADER, UNCOMPARED, is_of_rows, opened, secret};
use super::clouds::{self, Cloud};
use super::{before, damaged, keep, kept};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::planner;
use crate::session::Session;

/// A table as a cloud shows it.
pub struct Lost {
    definition: Definition,
    table: disperse::TableNumber,
    version: u64,
    parts: Records,
    /// Of each cloud that shows this version, by its name, the places of its entries.
    shown: BTreeMap<String, BTreeSet<u64>>,
}

/// A table that was brought back.
pub struct BroughtBack {
    /// Its name.
    pub name: String,
    /// How many rows it has.
    pub rows: u64,
}

impl Session {
    /// Makes tables again that are lost, in a database without them, and says how many rows they have.
    ///
    /// # Errors
    /// [`Error::NotSupported`] for a table of another version's making; those of making tables.
    pub fn bring_back(&mut self, lost: Vec<Lost>, catalogue_secret: &[u8; 32]) -> Result<Vec<BroughtBack>> {
        self.note_split(catalogue_secret)?;
        let catalogue = Catalogue::new(secret(catalogue_secret));
        lost.into_iter().map(|lost| self.bring_one_back(lost, &catalogue)).collect()
    }

    fn bring_one_back(&mut self, lost: Lost, catalogue: &Catalogue) -> Result<BroughtBack> {
        let Lost { definition, parts, version, shown, .. } = lost;
        let own = parts.iter().filter(|(name, _)| is_of_rows(name));
        let there = Kept::from_records(own.map(|(name, bytes)| (&name[..], &bytes[..])))
            .map_err(|what| damaged(&definition.name, what))?
            .ok_or_else(|| damaged(&definition.name, disperse::Damaged("no rows")))?;
        self.change(|_, change| {
            for (name, url, secret_file) in definition.clouds {
                clouds::put(&mut change.lease, &Cloud { name, url, secret_file })?;
            }
            before::note(&mut change.lease, &parts)
        })?;
        self.run_one(&definition.sql, &[])?;
        let view = self.view()?;
        let table = planner::table(self.engine(), &view, &definition.name)?;
        drop(view);
        let was_compared = there.incidents != BROUGHT_BACK;
        let (mut there, next_row) = as_there(there);
        there.incidents = if was_compared { BROUGHT_BACK } else { UNCOMPARED };
        there.version = version;
        let nothing = BTreeSet::new();
        let told = |name: &String| Told::anew(&catalogue.name(), version, shown.get(name).unwrap_or(&nothing));
        there.told = there.declaration().clouds.iter().map(|name| (name.clone(), told(name))).collect();
        there.note_learned();
        let identities: Vec<_> = definition.identities.into_iter().map(|(id, next)| (ColumnId(id), next)).collect();
        let rows = there.live().len();
        self.change(|session, change| {
            if kept(&*change.lease, &table)?.declaration().columns != there.declaration().columns {
                let text = format!("table {}, whose columns another version has coded otherwise", table.name);
                return Err(Error::NotSupported(text));
            }
            let relations = session.engine().relations.clone();
            let going_on = relations.go_on_at(&mut *change.lease, &table, RowId(next_row), &identities);
            going_on.map_err(Error::Relation)?;
            keep(&mut change.lease, table.id, &there)
        })?;
        Ok(BroughtBack { name: definition.name, rows })
    }
}

/// What another client has told, for one who has none of its rows; and the number that the next row has. Rows that some clouds lack lie with
/// the others, and are owed to those.
pub(super) fn as_there(mut there: Kept) -> (Kept, u64) {
    let next_row = there.after_all();
    let lie_elsewhere = there.live();
    let current = there.current_mut();
    let on_their_way = current.on_their_way();
    // Those that were about to move lie where they did: what the next clouds have of them goes.
    current.state.gone(&(&on_their_way & &lie_elsewhere));
    current.state.owe(&(on_their_way - lie_elsewhere));
    (there, next_row)
}

impl Lost {
    /// The header of the database that is lost.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        self.parts.get(HEADER).map_or(&[], |bytes| bytes)
    }
}

/// The tables that a cloud shows, each with the places of its entries.
fn read(catalogue: &Catalogue, cloud: &dyn Provider) -> Result<Vec<(Lost, BTreeSet<u64>)>, Failure> {
    let shown = catalogue.read(cloud, &Patient)?;
    let lost = shown.into_iter().filter_map(|(shown, places)| {
        // What was sealed by the owner is one, unless a later version has told it.
        let definition = postcard::from_bytes(shown.parts.get(DEFINITION)?).ok()?;
        let (table, version, parts, shown) = (shown.table, shown.version, shown.parts, BTreeMap::new());
        Some((Lost { definition, table, version, parts, shown }, places))
    });
    Ok(lost.collect())
}

/// The tables of a lost database that a cloud shows, each as new as any of its clouds has it; notes are said of clouds that have older
/// ones, or none, or do not answer.
///
/// # Errors
/// [`Error::Network`] and others if the first cloud does not answer; [`Error::NotFound`] if it shows no table.
pub fn lost_tables(
    engine: &Engine,
    catalogue_secret: &[u8; 32],
    (url, secret_file): (&str, Option<String>),
    note: &mut dyn FnMut(String),
) -> Result<Vec<Lost>> {
    let (dispersed, catalogue) = (&*engine.dispersed, Catalogue::new(secret(catalogue_secret)));
    let url = clouds::whole_url(dispersed, url)?;
    let first = Cloud { name: "there".into(), url: url.clone(), secret_file };
    let first = opened(dispersed, &catalogue, &first)?;
    let lost = read(&catalogue, &*first);
    let lost = lost.map_err(|failure| Error::Network(format!("cloud at {url}: {failure}")))?;
    // Under its own name it is asked as the others are.
    let mut lost: Vec<Lost> = lost.into_iter().map(|(lost, _)| lost).collect();
    if lost.is_empty() {
        let gone = catalogue.contents(&*first, &Patient).is_ok_and(|contents| !contents.gone.is_empty());
        return Err(no_table(&url, gone));
    }
    let mut clouds: Vec<Cloud> = Vec::new();
    for (name, url, secret_file) in lost.iter().flat_map(|lost| lost.definition.clouds.clone()) {
        let cloud = Cloud { name, url, secret_file };
        if !clouds.contains(&cloud) {
            clouds.push(cloud);
        }
    }
    for cloud in clouds {
        let shown = opened(dispersed, &catalogue, &cloud).map_err(|error| error.to_string());
        match shown.and_then(|opened| read(&catalogue, &*opened).map_err(|failure| failure.to_string())) {
            Ok(shown) => compare(&mut lost, shown, &cloud.name, note),
            Err(failure) => {
                note(format!("cloud {} could not be asked whether it has newer ones: {failure}", cloud.name))
            }
        }
    }
    Ok(lost)
}

/// `gone`: whether the cloud was told under another key of tables that it showed under this one.
fn no_table(url: &str, gone: bool) -> Error {
    let text = match gone {
        true => {
            "shows no table under the key that these shares are of any more: it was changed since (`rekey --data`): take shares \
                 that `key split` made behind that"
        }
        false => "shows no table of the database that these shares are of: is it the right cloud?",
    };
    Error::NotFound(format!("cloud at {url} {text}"))
}

/// Takes what another cloud has newer.
fn compare(lost: &mut [Lost], mut shown: Vec<(Lost, BTreeSet<u64>)>, cloud: &str, note: &mut dyn FnMut(String)) {
    for known in lost.iter_mut().filter(|known| known.definition.clouds.iter().any(|(name, ..)| name == cloud)) {
        let name = known.definition.name.clone();
        let Some(at) = shown.iter().position(|(other, _)| other.table == known.table) else {
            note(format!(
                "table {name}: cloud {cloud} shows nothing of it: it was dropped, and others were away, or that cloud has lost it"
            ));
            continue;
        };
        let (other, places) = shown.swap_remove(at);
        let (version, newest) = (other.version, known.version.max(other.version));
        if version > known.version {
            note(format!(
                "table {name}: the cloud that was named shows version {}, cloud {cloud} {version}",
                known.version
            ));
            *known = other;
        } else if version < newest {
            note(format!("table {name}: cloud {cloud} shows version {version}, others {newest}"));
            continue;
        }
        known.shown.insert(cloud.to_owned(), places);
    }
}
