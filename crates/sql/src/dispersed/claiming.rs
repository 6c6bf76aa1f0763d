//! A claim at the clouds of a table, and what they show beside it (`counterfoil_disperse::rivals`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use counterfoil_disperse::fragments::{Fragments, Name};
use counterfoil_disperse::{
    Catalogue, Claim, Client, Contents, Errands, Failure, Kept, Operations, Patient, Provider, TableNumber, Told,
    beside_standing, rivals,
};
use counterfoil_relation::TableId;
use parking_lot::Mutex;

use super::apart::{self, Given};
use super::before;
use super::clouds::{self, Cloud};
use super::push::each;
use super::{Dispersed, define};
use crate::error::{Error, Result};

/// So long a cloud is waited for: one that hangs is told nothing either.
const PATIENCE: Duration = Duration::from_secs(5);
/// So long by whoever reads.
const PEEK: Duration = Duration::from_millis(1500);
/// For each so many bytes that a cloud is to take in at once a claim may stand still for a second more.
const BYTES_A_SECOND: usize = 64 << 10;
const STILL_MOST: u32 = 1200;

/// What is claimed of a table.
pub(super) struct Claiming {
    client: Client,
    pub(super) clouds: Vec<Cloud>,
    /// For each of them in which catalogue it is claimed.
    catalogues: Vec<Arc<Catalogue>>,
    /// What those of this database are called, of this key and of keys from before.
    mine: BTreeSet<Name>,
    /// How each is reached, past the errands to it.
    reached: Vec<Arc<dyn Provider>>,
    errands: Vec<Arc<Errands>>,
    table: TableId,
    number: TableNumber,
    version: u64,
    told: Vec<Told>,
}

/// A claim that stands.
pub(super) struct Claimed {
    /// Until when its client counts on it.
    pub(super) until: Instant,
    /// For each cloud what speaks against telling it something.
    pub(super) answered: Vec<Result<(), Failure>>,
    pub(super) standing: Standing,
    pub(super) looks: Vec<Look>,
}

/// What is to be taken back at each cloud: as it goes, as far as clouds answer. What stays is over soon.
pub(super) struct Standing {
    /// Where the clouds are.
    urls: Vec<String>,
    catalogues: Vec<Arc<Catalogue>>,
    reached: Vec<Arc<dyn Provider>>,
    errands: Vec<Arc<Errands>>,
    pub(super) places: Vec<BTreeSet<u64>>,
}

impl Standing {
    /// Where it stands, of the clouds that answered.
    pub(super) fn at<'a>(&'a self, answered: &'a [Result<(), Failure>]) -> impl Iterator<Item = &'a String> {
        self.urls.iter().zip(answered).filter(|(_, answered)| answered.is_ok()).map(|(url, _)| url)
    }

    /// The places of what stands at a cloud in the catalogue of this name, which others take back.
    pub(super) fn take(&mut self, name: &Name, cloud: &Cloud) -> BTreeSet<u64> {
        let own = |(at, catalogue): (usize, &Arc<Catalogue>)| catalogue.name() == *name && self.urls[at] == cloud.url;
        let at = self.catalogues.iter().enumerate().position(own);
        at.map_or_else(BTreeSet::new, |at| std::mem::take(&mut self.places[at]))
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        let places = std::mem::take(&mut self.places);
        if places.iter().all(BTreeSet::is_empty) {
            return;
        }
        drop(each(self.reached.len(), |cloud| {
            let (own, name): (Vec<u64>, _) = (places[cloud].iter().copied().collect(), self.catalogues[cloud].name());
            let provider = self.reached[cloud].clone();
            match own.is_empty() {
                true => Ok(()),
                false => self.errands[cloud].aside(PATIENCE, move || provider.remove(&name, &own)),
            }
        }));
    }
}

/// What a cloud shows.
pub(super) enum Look {
    /// It did not answer.
    Nothing,
    /// What is known of it.
    Known,
    /// Something else, which was read.
    Read(Contents),
}

/// How many seconds a claim may stand still while a cloud takes in so many bytes.
pub(super) fn still(lease_seconds: u32, bytes: usize) -> u32 {
    let more = u32::try_from(bytes / BYTES_A_SECOND).unwrap_or(STILL_MOST).min(STILL_MOST);
    lease_seconds.max(1).saturating_add(more)
}

impl Claiming {
    pub(super) fn new(
        dispersed: &Dispersed,
        client: Client,
        (table, kept): (TableId, &Kept),
        (clouds, catalogues, mine): (Vec<Cloud>, Vec<Arc<Catalogue>>, BTreeSet<Name>),
    ) -> Result<Self> {
        let reach = |(cloud, catalogue): (&Cloud, &Arc<Catalogue>)| {
            clouds::reach_or_closed(dispersed, cloud, catalogue.files_key())
        };
        let reached = clouds.iter().zip(&catalogues).map(reach).collect::<Result<_>>()?;
        let errands = clouds.iter().map(|cloud| dispersed.errands(&cloud.url)).collect();
        let told = clouds.iter().map(|cloud| kept.told.get(&cloud.name).cloned().unwrap_or_default()).collect();
        let (number, version) = (kept.declaration().table, kept.version);
        Ok(Self { client, clouds, catalogues, mine, reached, errands, table, number, version, told })
    }

    /// What the catalogue of a cloud is called in which it is claimed.
    pub(super) fn called(&self, cloud: usize) -> Name {
        self.catalogues[cloud].name()
    }

    /// Puts a claim at every cloud that answers, and looks at all of them then.
    pub(super) fn claim(&self, dispersed: &Dispersed, still: u32) -> Result<Claimed> {
        let claim = Claim { client: self.client, version: self.version, still };
        let until = Instant::now() + claim.holds();
        let code = |catalogue: &Arc<Catalogue>| {
            let salt = define::random()?;
            Ok(Arc::new(catalogue.code_claim(self.number, claim, salt)))
        };
        let coded = self.catalogues.iter().map(code).collect::<Result<Vec<_>>>()?;
        let (looks, mut answered) = self.at_each(PATIENCE.min(claim.holds() / 3), |cloud| {
            let (catalogue, coded) = (self.catalogues[cloud].clone(), coded[cloud].clone());
            let own = self.known(dispersed, cloud);
            let (provider, told) = (self.reached[cloud].clone(), self.told[cloud].clone());
            move || {
                match provider.put(&catalogue.name(), &coded) {
                    // One that is full may be told to let go of something. (Where all are, nobody's claim stands anywhere: what two clients
                    // tell then goes apart, and is seen to have.)
                    Ok(()) | Err(Failure::Refused(_)) => {}
                    Err(failure) => return Err(failure),
                }
                look(&catalogue, &*provider, (&own, &told), Some(coded.places[0]))
            }
        });
        self.refuse_others(&coded, &looks, &mut answered);
        let standing = Standing {
            urls: self.clouds.iter().map(|cloud| cloud.url.clone()).collect(),
            catalogues: self.catalogues.clone(),
            reached: self.reached.clone(),
            errands: self.errands.clone(),
            places: coded.iter().map(|coded| coded.places.iter().copied().collect()).collect(),
        };
        Ok(Claimed { until, answered, standing, looks })
    }

    /// For each address the cloud that answers there, as far as looks show it.
    pub(super) fn who_answers(&self, looks: &[Look]) -> Vec<usize> {
        let shown = looks.iter().map(|look| look.contents().map(|contents| &contents.places));
        let given = self.told.iter().zip(shown).map(|(told, shown)| Given { now: 0, before: told.places(), shown });
        apart::who_answers(&given.collect::<Vec<_>>())
    }

    /// What is to be said where more clouds than may fail stand at others' addresses, of a table of which they are asked conditions.
    pub(super) fn displaced(&self, table: &str, kept: &Kept, looks: &[Look]) -> Option<Error> {
        let declaration = kept.declaration();
        let asks = |of: &Operations| of.equality || of.range || of.prefix || of.danger_order;
        if !declaration.columns.iter().any(|column| asks(&column.operations)) {
            return None;
        }
        let names: Vec<_> = self.clouds.iter().map(|cloud| cloud.name.as_str()).collect();
        apart::displaced(table, &names, &self.who_answers(looks), declaration.may_fail)
    }

    /// A cloud that is another one is told nothing. Whoever of two was given its entry last looks behind both.
    fn refuse_others(&self, coded: &[Arc<Fragments>], looks: &[Look], answered: &mut [Result<(), Failure>]) {
        let shown = looks.iter().map(|look| look.contents().map(|contents| &contents.places));
        let given: Vec<_> = (coded.iter().zip(&self.told).zip(shown))
            .map(|((coded, told), shown)| Given { now: coded.places[0], before: told.places(), shown })
            .collect();
        let names: Vec<_> = self.clouds.iter().map(|cloud| cloud.name.as_str()).collect();
        for (answered, fault) in answered.iter_mut().zip(apart::at_fault(&given, &names)) {
            fault.into_iter().for_each(|fault| *answered = Err(fault));
        }
    }

    /// Looks whether clouds that answer at once show anything new.
    pub(super) fn peek(&self, dispersed: &Dispersed) -> Vec<Look> {
        let looked = self.at_each(PEEK, |cloud| {
            let (catalogue, own) = (self.catalogues[cloud].clone(), self.known(dispersed, cloud));
            let (provider, told) = (self.reached[cloud].clone(), self.told[cloud].clone());
            let is_late = self.errands[cloud].is_late();
            move || match is_late {
                true => Ok(Look::Nothing),
                false => look(&catalogue, &*provider, (&own, &told), None),
            }
        });
        looked.0
    }

    /// Looks at all clouds that answer.
    pub(super) fn look(&self) -> Vec<Look> {
        let looked = self.at_each(PATIENCE, |cloud| {
            let (catalogue, provider) = (self.catalogues[cloud].clone(), self.reached[cloud].clone());
            move || catalogue.contents(&*provider, &Patient).map(Look::Read)
        });
        looked.0
    }

    /// Does something at each cloud, past what it is told, and waits no longer than this.
    fn at_each<F>(
        &self,
        patience: Duration,
        errand: impl Fn(usize) -> F + Sync,
    ) -> (Vec<Look>, Vec<Result<(), Failure>>)
    where
        F: FnOnce() -> Result<Look, Failure> + Send + 'static,
    {
        let looks: Vec<_> = self.clouds.iter().map(|_| Arc::new(Mutex::new(Look::Nothing))).collect();
        let answered = each(self.clouds.len(), |cloud| {
            let (errand, look) = (errand(cloud), looks[cloud].clone());
            self.errands[cloud].aside(patience, move || {
                *look.lock() = errand()?;
                Ok(())
            })
        });
        // One that nobody waits for any more has its own hold of where its answer goes.
        let taken = looks.iter().zip(&answered).map(|(look, answered)| match answered {
            Ok(()) => std::mem::replace(&mut *look.lock(), Look::Nothing),
            Err(_) => Look::Nothing,
        });
        (taken.collect(), answered)
    }

    fn known(&self, dispersed: &Dispersed, cloud: usize) -> BTreeSet<u64> {
        dispersed.leases.known(self.table, &self.clouds[cloud].url)
    }

    /// Claims that keep this client waiting: of others, and not over with the latest version that clouds show, or as is known of them, nor
    /// in vain where a claim of this client stands.
    pub(super) fn rivals(&self, looks: &[Look], stands: &BTreeSet<String>) -> BTreeMap<u64, Claim> {
        let shown = |(cloud, look): (usize, &Look)| match look {
            Look::Nothing => 0,
            Look::Known => self.told[cloud].version,
            Look::Read(contents) => {
                let own = contents.tables.iter().find(|(shown, _)| shown.table == self.number);
                own.map_or(0, |(shown, _)| shown.version)
            }
        };
        let latest = looks.iter().enumerate().map(shown).max().unwrap_or(0);
        let at = |(cloud, look): (&Cloud, &Look)| {
            let claims = look.contents().map_or_else(BTreeMap::new, |contents| contents.claims_of(&self.number));
            let rivals = rivals(&claims, &self.client, latest);
            if stands.contains(&cloud.url) { beside_standing(rivals, self.version) } else { rivals }
        };
        self.clouds.iter().zip(looks).flat_map(at).collect()
    }

    /// Whether so many clouds that one of them has not failed show nothing of a table that they were told of.
    pub(super) fn are_emptied(&self, looks: &[Look], may_fail: usize) -> bool {
        let shows_it = |contents: &Contents| contents.tables.iter().any(|(shown, _)| shown.table == self.number);
        // What went under a key of this database's own is there.
        let is_emptied = |(cloud, look): &(usize, &Look)| match look {
            Look::Read(contents) => {
                let was_told = self.told[*cloud].called == self.called(*cloud).as_str();
                was_told && !shows_it(contents) && !contents.gone.contains_key(&self.number)
            }
            Look::Nothing | Look::Known => false,
        };
        looks.iter().enumerate().filter(is_emptied).count() > may_fail
    }

    /// The latest version of the table that clouds show, of what was read.
    pub(super) fn newest(&self, looks: &[Look]) -> Option<u64> {
        let all = looks.iter().filter_map(Look::contents).flat_map(|contents| &contents.tables);
        all.filter(|(shown, _)| shown.table == self.number).map(|(shown, _)| shown.version).max()
    }

    /// What catalogues of this database are called.
    pub(super) fn mine(&self) -> &BTreeSet<Name> {
        &self.mine
    }

    /// A cloud that shows that another client has told the table under another key.
    pub(super) fn gone(&self, looks: &[Look]) -> Option<&Cloud> {
        let is_gone = |look: &Look| look.contents().is_some_and(|all| before::is_gone(all, &self.number, &self.mine));
        self.clouds.iter().zip(looks).find(|(_, look)| is_gone(look)).map(|(cloud, _)| cloud)
    }

    /// Claims of this table that are over, or this client's own from before, go with the one that stands.
    pub(super) fn sweep(&self, claimed: &mut Claimed) {
        for (contents, places) in claimed.looks.iter().map(Look::contents).zip(&mut claimed.standing.places) {
            places.extend(contents.iter().flat_map(|contents| contents.claims_of(&self.number).into_keys()));
        }
    }
}

impl Look {
    /// What was read.
    pub(super) fn contents(&self) -> Option<&Contents> {
        match self {
            Self::Read(contents) => Some(contents),
            Self::Nothing | Self::Known => None,
        }
    }
}

/// Reads what a cloud shows, unless it is what is known of it: little is asked for then.
fn look(
    catalogue: &Catalogue,
    provider: &dyn Provider,
    (known, told): (&BTreeSet<u64>, &Told),
    own: Option<u64>,
) -> Result<Look, Failure> {
    let (places, version) = (catalogue.places(provider, &Patient)?, told.version);
    let told = told.places();
    // Where its entries are not known it may show them, or none.
    let is_there = told.is_subset(&places) && (version == 0 || !told.is_empty());
    let is_known = |place: &u64| Some(*place) == own || known.contains(place) || told.contains(place);
    match is_there && places.iter().all(is_known) {
        true => Ok(Look::Known),
        false => catalogue.contents(provider, &Patient).map(Look::Read),
    }
}
