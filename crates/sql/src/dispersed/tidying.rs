//! What clouds show of the catalogue of a table beside what they were told: after cuts, and after the database was put back.
//!
//! ```text
//! it is what it was told              what else it shows of the table nothing names any more, and it lets go of that
//! it is something of a later day      an error: others have told it, or the table lies elsewhere by now
//! it is less, or of an earlier day    it is told all of it anew, above the version that it shows
//! it cannot show it                   it is told nothing
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use counterfoil_disperse::fragments::Name;
use counterfoil_disperse::{Catalogue, Client, Contents, Failure, Kept, Provider, Shown, Told};
use counterfoil_relation::Table;

use super::catalogue::{is_learned, moved_since, of_another_version, of_view, opened, own, told_of};
use super::clouds::Cloud;
use super::learning::{self, is_later, told_by_another};
use super::leases::Leases;
use super::waiting::Waiting;
use super::{before, foreign, is_put_back, keep, kept, shared};
use crate::error::Result;
use crate::session::Session;

/// What clouds show of the catalogue of a table.
pub(super) struct Tidied {
    /// For each what speaks against telling it something.
    pub told: Vec<Result<(), Failure>>,
    /// Which of them show what this database knows, if they were told of it.
    pub is_shown: Vec<bool>,
}

impl Tidied {
    /// Whether what a cloud has, and nobody here knows, is of nobody: it shows what leads to it, and so many others do that one of them would
    /// show what others have told.
    pub(super) fn knows_strays(&self, cloud: usize, may_fail: usize) -> bool {
        let showing = self.is_shown.iter().filter(|shown| **shown).count();
        // Of a cloud to which the table moved meanwhile nothing is known.
        self.is_shown.get(cloud).is_some_and(|shown| *shown) && showing + may_fail >= self.is_shown.len()
    }
}

/// A table of which catalogues are tidied, and what this database knows.
struct Tidying<'a> {
    table: &'a Table,
    kept: &'a Kept,
    /// Of a database that was put back, who it was before.
    past: Option<Client>,
    /// What catalogues of this database are called.
    mine: BTreeSet<Name>,
    takes_over: bool,
}

/// What a cloud shows of a table, with its places, and who told it.
type There = (Option<(Shown, BTreeSet<u64>)>, BTreeMap<Client, u64>);

impl Tidying<'_> {
    /// What a cloud shows, if that is nothing that this database would destroy.
    fn there(&self, cloud: &Cloud, contents: Contents) -> Result<There> {
        let (table, number) = (self.table, self.kept.declaration().table);
        if before::is_gone(&contents, &number, &self.mine) {
            return Err(before::gone(table, cloud));
        }
        let shown = contents.tables.into_iter().find(|(shown, _)| shown.table == number);
        // It may say that rows lie elsewhere by now, also where nobody here knows how to read it.
        let there = shown.as_ref().map(|(told, _)| learning::shown(&told.parts)).transpose();
        let there = there.map_err(|_| of_another_version(table, cloud))?.flatten();
        let Some((version, there)) = shown.as_ref().map(|(told, _)| told.version).zip(there) else {
            return Ok((shown, BTreeMap::new()));
        };
        if !there.lies_as(self.kept) && there.current().number >= self.kept.current().number {
            return Err(moved_since(table, cloud));
        }
        if !self.takes_over && is_later(self.kept, (version, &there), self.past.as_ref()) {
            // It did not answer when that was looked at before.
            return Err(told_by_another(table, cloud, (version, self.kept.version)));
        }
        Ok((shown, there.writers))
    }
}

/// What a cloud is told anew, by its name: it has lost some of it, or knows of a later day than this database.
type Anew = (String, Told, BTreeMap<Client, u64>);

impl Session {
    /// Has clouds let go of entries of a table that nothing names any more, and goes on above what they have been told. For each cloud what
    /// speaks against it.
    pub(super) fn tidy_catalogue(&mut self, table: &Arc<Table>, takes_over: bool) -> Result<Tidied> {
        let dispersed = shared(self.engine()).clone();
        let view = self.guard.engine.store.snapshot()?;
        let kept = kept(&view, table)?;
        let told = told_of(&kept);
        let mut done = Tidied { told: vec![Ok(()); told.len()], is_shown: vec![true; told.len()] };
        let Some((_, own)) = own(&dispersed, table) else { return Ok(done) };
        let (catalogues, mine) = (before::as_told(&view, &own, &kept), before::names(&view, &own));
        if foreign::is_noted(&view, table.id) || foreign::is_told_by_another(&kept, &mine) {
            return Err(foreign::refused(table));
        }
        let is_behind = is_put_back(&view, &kept)? && !is_learned(&kept);
        let past = is_behind.then(|| Leases::past(&view)).transpose()?;
        let clouds = of_view(&view, &kept.declaration().clouds)?;
        drop(view);
        let tidying = Tidying { table, kept: &kept, past, mine, takes_over };
        let (interrupt, mut anew) = (self.interrupt(), Vec::new());
        let waiting = Waiting::statement(&interrupt);
        for (at, (named, told)) in clouds.into_iter().zip(&told).enumerate() {
            let cloud = opened(&dispersed, &catalogues[at], &named)?;
            let contents = match catalogues[at].contents(&*cloud, &waiting) {
                Ok(contents) => contents,
                Err(Failure::CalledOff) => return Err(waiting.called_off()),
                Err(failure) => {
                    (done.told[at], done.is_shown[at]) = (Err(failure), false);
                    continue;
                }
            };
            let (shown, writers) = tidying.there(&named, contents)?;
            done.is_shown[at] = shown.is_some() || told.version == 0;
            match shown {
                Some((shown, places)) if told.is_shown(&shown, &places) => {
                    let_go_of_strays((&catalogues[at], &*cloud), told, &places);
                }
                shown => anew.push((named.name, told_anew(&catalogues[at], shown), writers)),
            }
        }
        self.note_anew(table, anew)?;
        Ok(done)
    }

    /// What they told is let go of, and known to be.
    fn note_anew(&mut self, table: &Table, anew: Vec<Anew>) -> Result<()> {
        if anew.is_empty() {
            return Ok(());
        }
        self.change(|_, change| {
            let mut kept = kept(&*change.lease, table)?;
            for (cloud, told, writers) in &anew {
                kept.version = kept.version.max(told.version);
                kept.note_writers(writers);
                kept.told.insert(cloud.clone(), told.clone());
            }
            keep(&mut change.lease, table.id, &kept)
        })
    }
}

/// What stays behind is older than what is there.
fn let_go_of_strays((catalogue, cloud): (&Catalogue, &dyn Provider), told: &Told, places: &BTreeSet<u64>) {
    let stray: Vec<u64> = places.difference(&told.places()).copied().collect();
    if !stray.is_empty() {
        drop(cloud.remove(&catalogue.name(), &stray));
    }
}

fn told_anew(catalogue: &Catalogue, shown: Option<(Shown, BTreeSet<u64>)>) -> Told {
    shown.map(|(shown, places)| Told::anew(&catalogue.name(), shown.version, &places)).unwrap_or_default()
}
