//! How a mirror takes an owner's update. All of it may block.

use std::sync::Arc;

use counterfoil_mirror::wire::Update;
use counterfoil_proof::{Definition, Owner, TrustedManifest};

use crate::answering::{Answering, Asked};
use crate::options::Allowed;
use crate::places::places;
use crate::reply::Problem;
use crate::store::{Kept, Refused, StoreChange, TableName};
use crate::sums::Moment;

impl Answering {
    /// Takes an update: checks that an allowed owner signed it, then applies it where the store stands at its beginning.
    pub(crate) fn take(&self, asked: &Asked, bytes: &[u8], allowed: &Allowed) -> Result<Vec<u8>, Problem> {
        // Whose it is comes first: strangers get no work done beyond that.
        let (update, manifest) =
            Update::check(bytes, &asked.owner, 0).map_err(|refusal| Problem::Forbidden(refusal.to_string()))?;
        let names = names(asked, &manifest, allowed)?;
        let definition = Arc::new(manifest.manifest().definition.clone());
        let (before, after) = (Moment { table: definition.digest(), state: update.before }, update.after);
        let offered = change(update, &manifest, definition)?;
        let taken = self.store.update(&names, self.limits.tables_max, &|kept| offered.decide(kept))?;
        let touched = taken.map_err(Problem::from)?;
        self.sums.moved(&before, after, &touched);
        Ok(after.to_bytes())
    }
}

/// The table's names: one for each of the owner's roots.
fn names(asked: &Asked, manifest: &TrustedManifest, allowed: &Allowed) -> Result<Vec<TableName>, Problem> {
    let manifest = manifest.manifest();
    let owners: Vec<Owner> = manifest.roots.iter().map(Owner::of).collect();
    if !allowed.contains(&owners) {
        return Err(Problem::Forbidden("this mirror does not keep tables of this owner".into()));
    }
    if manifest.definition.name != asked.name {
        return Err(Problem::Forbidden("the update is of a table of another name".into()));
    }
    // The one it is sent by first: a mirror that does not know another one yet finds the table by it.
    let others = owners.into_iter().filter(|owner| *owner != asked.owner);
    let names = [asked.owner].into_iter().chain(others);
    Ok(names.map(|owner| TableName { owner: *owner.bytes(), name: asked.name.clone() }).collect())
}

/// What a store is to do for an update. Its entries are read here, so that no transaction waits for that.
fn change(update: Update, manifest: &TrustedManifest, definition: Arc<Definition>) -> Result<Offered, Problem> {
    let first = if update.is_anew { 0 } else { update.before.progress.periods };
    let (mut put, mut gone) = (Vec::new(), Vec::new());
    for (rid, entry) in update.changes {
        let Some(entry) = entry else {
            gone.push(rid);
            continue;
        };
        let (own, places) = places(&entry, &definition).map_err(|what| Problem::Malformed(what.0.into()))?;
        if own != rid {
            return Err(Problem::Malformed("an entry with another number than it is sent by".into()));
        }
        put.push((rid, entry, places));
    }
    let kept = Kept {
        state: update.after,
        open: update.open,
        oldest: update.oldest,
        serial: manifest.manifest().serial,
        definition: definition.digest(),
        manifest: update.manifest,
    };
    let summaries = (first..).zip(update.summaries).collect();
    let change = StoreChange { is_anew: update.is_anew, kept, summaries, put, gone, definition };
    Ok(Offered { before: update.before, change })
}

struct Offered {
    before: counterfoil_mirror::wire::State,
    change: StoreChange,
}

impl Offered {
    /// Whether the update begins where the mirror stands. The last one sent again is done already.
    fn decide(&self, kept: Option<&Kept>) -> Result<Option<&StoreChange>, Refused> {
        let Offered { before, change } = self;
        let state = kept.map(|kept| kept.state).unwrap_or_default();
        if state == change.kept.state {
            return Ok(None);
        }
        if state != *before {
            return Err(Refused::Conflict);
        }
        let Some(kept) = kept else {
            let is_first = change.is_anew;
            return if is_first { Ok(Some(change)) } else { Err(Refused::Conflict) };
        };
        let is_same = kept.definition == change.kept.definition;
        if !is_same && !change.is_anew {
            return Err(Refused::Forbidden("the update is of another table of this name".into()));
        }
        if is_same && change.kept.serial < kept.serial {
            return Err(Refused::Forbidden("the update has an older manifest than this mirror".into()));
        }
        if !change.is_anew && change.kept.open < kept.open {
            return Err(Refused::Forbidden("the update is signed for an older period than the last one".into()));
        }
        Ok(Some(change))
    }
}
