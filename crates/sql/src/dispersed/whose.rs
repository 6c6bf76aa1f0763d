//! Whose a table is by now that was dropped here: another client may not have heard of it, and have gone on.
//!
//! ```text
//! all of its clouds that have a name answer, and show nothing that was not known when it was dropped     nobody's: they let go of it
//! one shows a later version, or that it was told under another key since, or what a newer program wrote  somebody else's: they keep it
//! one does not answer, or shows somebody's claim                                                         that is seen later
//! ```
//! Right behind the commit nobody else has it, which was leased to be dropped: then a cloud that answers is enough, for itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use counterfoil_disperse::fragments::Name;
use counterfoil_disperse::{Catalogue, Client, Contents, Damaged, Failure, Patient, TableNumber};
use parking_lot::Mutex;

use super::clouds::{self, Cloud};
use super::push::each;
use super::{Dispersed, catalogue, learning};
use crate::error::Result;

/// So long a cloud is waited for: one that hangs lets go of nothing either.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whose a table is.
pub(super) enum Whose {
    Nobodys,
    SomebodyElses,
    /// It is seen later; what a cloud says that does not answer.
    Unknown(Option<Failure>),
}

/// What was known of a table when it was dropped.
pub(super) struct Known<'a> {
    pub number: Option<TableNumber>,
    pub writers: &'a BTreeMap<Client, u64>,
    /// Its clouds, and that which is to let go of it.
    pub clouds: &'a [String],
    pub cloud: &'a str,
}

/// What clouds show, by what people call them.
pub(super) struct Looks {
    own: Client,
    /// What catalogues of this database are called.
    mine: BTreeSet<Name>,
    shown: BTreeMap<String, Result<Vec<Contents>, Failure>>,
}

impl Looks {
    /// Looks at catalogues at clouds, all at once.
    pub fn at(dispersed: &Dispersed, own: Client, catalogues: &[Arc<Catalogue>], all: Vec<Cloud>) -> Result<Self> {
        let reach = |cloud: &Cloud| {
            let reach = |own: &Arc<Catalogue>| clouds::reach_or_closed(dispersed, cloud, own.files_key());
            let reached = catalogues.iter().map(reach).collect::<Result<Vec<_>>>()?;
            Ok((reached, dispersed.errands(&cloud.url), Arc::new(Mutex::new(Vec::new()))))
        };
        let at = all.iter().map(reach).collect::<Result<Vec<_>>>()?;
        let looked = each(at.len(), |cloud| {
            let (reached, errands, shown) = &at[cloud];
            let (reached, shown, catalogues) = (reached.clone(), shown.clone(), catalogues.to_vec());
            errands.aside(PATIENCE, move || {
                let look = catalogues.iter().zip(&reached).map(|(own, cloud)| own.contents(&**cloud, &Patient));
                *shown.lock() = look.collect::<Result<Vec<_>, _>>()?;
                Ok(())
            })
        });
        let shown = all.into_iter().zip(at).zip(looked);
        let shown = shown.map(|((cloud, (.., shown)), looked)| {
            // One that nobody waits for any more has its own hold of where its answer goes.
            (cloud.name, looked.map(|()| std::mem::take(&mut *shown.lock())))
        });
        let mine = catalogues.iter().map(|own| own.name()).collect();
        Ok(Self { own, mine, shown: shown.collect() })
    }

    /// Whose a table is, which was leased to be dropped a moment ago or was not.
    pub fn whose(&self, known: &Known<'_>, is_leased: bool) -> Whose {
        // Under a lease it says nothing that it cannot show what it was told.
        if let Some(Err(failure)) = self.shown.get(known.cloud)
            && !(is_leased && catalogue::leads_nowhere(failure))
        {
            return Whose::Unknown(Some(failure.clone()));
        }
        let Some(number) = known.number.filter(|_| !is_leased) else { return Whose::Nobodys };
        let mut whose = Whose::Nobodys;
        // Clouds that have no name any more are no longer asked.
        for shown in known.clouds.iter().filter_map(|cloud| self.shown.get(cloud)) {
            match shown {
                Err(failure) => whose = Whose::Unknown(Some(failure.clone())),
                Ok(all) if all.iter().any(|contents| self.is_later(contents, &number, known.writers)) => {
                    return Whose::SomebodyElses;
                }
                Ok(all) if all.iter().any(|contents| self.is_claimed(contents, &number)) => {
                    whose = Whose::Unknown(None);
                }
                Ok(_) => {}
            }
        }
        whose
    }

    fn is_later(&self, contents: &Contents, number: &TableNumber, writers: &BTreeMap<Client, u64>) -> bool {
        let has = |(client, version): (&Client, &u64)| writers.get(client).is_some_and(|own| own >= version);
        let shown = contents.tables.iter().find(|(shown, _)| shown.table == *number);
        let is_later = shown.is_some_and(|(shown, _)| match learning::shown(&shown.parts) {
            Ok(there) => there.is_some_and(|there| !there.writers.iter().all(has)),
            Err(what) => what == Damaged::OTHER_VERSION,
        });
        is_later || contents.gone.get(number).is_some_and(|next| !self.mine.contains(next))
    }

    fn is_claimed(&self, contents: &Contents, number: &TableNumber) -> bool {
        contents.claims_of(number).values().any(|claim| claim.client != self.own)
    }
}
