//! The leases that a database holds, and what it has seen at clouds of those of others.
//!
//! ```text
//! record of space SETTING: "dispersed-client"     client [16] | how many incidents the database had then, u64 [| who it was before [16]]
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use counterfoil_disperse::fragments::Name;
use counterfoil_disperse::{Claim, Client};
use counterfoil_log::{View, Writer, record_space};
use counterfoil_relation::{Table, TableId};
use parking_lot::Mutex;

use super::claiming::{Claimed, Standing};
use super::clouds::Cloud;
use super::push::Told;
use super::{Dispersed, define};
use crate::error::Result;
use crate::incidents::incidents;

const CLIENT: &[u8] = b"dispersed-client";
/// So often it is said that a cloud was put back.
const SAID: Duration = Duration::from_secs(600);
/// So long others are active after something was told by them, and so long what was seen is new enough if they are not.
const ACTIVE: Duration = Duration::from_secs(600);
const FOLLOWED: Duration = Duration::from_secs(1);
/// So long a cloud that failed when a claim was made is taken to fail still: behind that it is asked again before anything rests on it.
const FAILS: Duration = Duration::from_secs(2);
/// Claims of one lease that stand at a time.
const STANDING_MOST: usize = 2;
/// So long it is remembered when a claim was seen first: longer than any stands.
const FORGOTTEN: Duration = Duration::from_secs(3600);

/// The leases of a database.
#[derive(Default)]
pub(super) struct Leases {
    /// Who this is, until it is noted: with how many incidents.
    client: Mutex<Option<(u64, Client)>>,
    held: Mutex<HashMap<TableId, Held>>,
    /// Entries of catalogues that say nothing new of a table, by their clouds' addresses; and those that were put there from here.
    known: Mutex<HashMap<(TableId, String), BTreeSet<u64>>>,
    own: Mutex<HashMap<String, BTreeSet<u64>>>,
    /// When others' claims were seen first, by their places: none is ever put anew at one. And those that have stood still.
    seen: Mutex<HashMap<u64, Instant>>,
    over: Mutex<BTreeSet<u64>>,
    /// When it was last looked at what others have told of a table that is read, and when something was learned.
    followed: Mutex<HashMap<TableId, Instant>>,
    learned: Mutex<HashMap<TableId, Instant>>,
    /// When it was said of a cloud that it was put back.
    said: Mutex<HashMap<(TableId, String), Instant>>,
}

/// What a claim is to be of, and how long it may stand still.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub version: u64,
    /// The name of the record of the layout that rows come to: what clouds answered is in the order of its clouds.
    pub layout: Vec<u8>,
    pub still: u32,
}

struct Held {
    /// Sessions that count on it.
    users: usize,
    of: Wanted,
    until: Instant,
    answered: Told,
    /// When they did.
    at: Instant,
    standing: Vec<Standing>,
}

/// The tables of which a session counts on leases; with it they end.
#[derive(Default)]
pub(crate) struct Leased {
    dispersed: Option<Arc<Dispersed>>,
    pub(super) tables: Vec<TableId>,
    /// A table of which a transaction could not learn what others have told: when it is over.
    pub(super) behind: Option<Arc<Table>>,
    /// Tables that are dropped here alone, for others have told clouds what is not known here.
    pub(super) apart: Vec<TableId>,
}

impl Leased {
    fn count(&mut self, dispersed: &Arc<Dispersed>, table: TableId, users: &mut usize) {
        if !self.tables.contains(&table) {
            *users += 1;
            self.tables.push(table);
            self.dispersed = Some(dispersed.clone());
        }
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        let tables = std::mem::take(&mut self.tables);
        self.dispersed.iter().for_each(|dispersed| tables.iter().for_each(|table| dispersed.leases.give_back(*table)));
    }
}

/// Who this database is to its clouds.
impl Leases {
    pub(super) fn client(&self, view: &dyn View) -> Result<Client> {
        let now = incidents(view)?.len() as u64;
        if let Some(noted) = Noted::of(view).filter(|noted| noted.incidents == now) {
            return Ok(noted.client);
        }
        let mut drawn = self.client.lock();
        match *drawn {
            Some((at, client)) if at == now => Ok(client),
            _ => Ok(drawn.insert((now, define::random()?)).1),
        }
    }

    /// Notes it in the commit of what it tells.
    pub(super) fn note_client(&self, writer: &mut Writer) -> Result<Client> {
        let client = self.client(&*writer)?;
        let (noted, now) = (Noted::of(&*writer), incidents(&*writer)?.len() as u64);
        if noted.as_ref().is_none_or(|noted| noted.incidents != now) {
            let before = noted.map(|noted| noted.client.to_vec()).unwrap_or_default();
            writer.put_record(record_space::SETTING, CLIENT, &[&client[..], &now.to_be_bytes(), &before].concat())?;
        }
        Ok(client)
    }

    /// Who this database was before it was put back; nobody, if that is not known.
    pub(super) fn past(view: &dyn View) -> Result<Client> {
        let now = incidents(view)?.len() as u64;
        let past =
            Noted::of(view).and_then(|noted| if noted.incidents == now { noted.before } else { Some(noted.client) });
        Ok(past.unwrap_or_default())
    }
}

/// Who a database is to its clouds, as it is noted.
struct Noted {
    client: Client,
    incidents: u64,
    before: Option<Client>,
}

impl Noted {
    fn of(view: &dyn View) -> Option<Self> {
        let record = view.record(record_space::SETTING, CLIENT)?;
        let (client, rest) = record.split_first_chunk::<16>()?;
        let (incidents, before) = rest.split_first_chunk::<8>()?;
        Some(Self {
            client: *client,
            incidents: u64::from_be_bytes(*incidents),
            before: before.first_chunk::<16>().copied(),
        })
    }
}

/// What is held.
impl Leases {
    /// What clouds answered to the claim that is held of a version, if it may stand still for so long; the session counts on it.
    pub(super) fn answered(
        &self,
        dispersed: &Arc<Dispersed>,
        leased: &mut Leased,
        table: TableId,
        wanted: &Wanted,
    ) -> Option<Told> {
        let mut held = self.held.lock();
        let held = held.get_mut(&table)?;
        let is_of = held.of.version == wanted.version && held.of.layout == wanted.layout;
        let is_good = is_of && held.of.still >= wanted.still && held.until > Instant::now();
        let fails_still = held.at.elapsed() < FAILS || held.answered.iter().all(Result::is_ok);
        (is_good && fails_still).then(|| {
            leased.count(dispersed, table, &mut held.users);
            held.answered.clone()
        })
    }

    /// Holds a claim that stands; the session counts on it.
    pub(super) fn hold(
        &self,
        dispersed: &Arc<Dispersed>,
        leased: &mut Leased,
        table: TableId,
        of: Wanted,
        claimed: Claimed,
    ) {
        let Claimed { until, answered, standing, .. } = claimed;
        let mut all = self.held.lock();
        let at = Instant::now();
        let new = || Held { users: 0, of: of.clone(), until, answered: answered.clone(), at, standing: Vec::new() };
        let held = all.entry(table).or_insert_with(new);
        (held.of, held.until, held.answered, held.at) = (of.clone(), until, answered.clone(), at);
        held.standing.push(standing);
        // The last two are enough: of two that overlap neither is a gap.
        let over: Vec<Standing> = held.standing.drain(..held.standing.len().saturating_sub(STANDING_MOST)).collect();
        leased.count(dispersed, table, &mut held.users);
        drop(all);
        // Claims are taken back as they go.
        drop(over);
    }

    /// The addresses of the clouds where the last claim that is held of a version stands: until it is given back, or told.
    pub(super) fn stands(&self, table: TableId, version: u64) -> BTreeSet<String> {
        let held = self.held.lock();
        let held = held.get(&table).filter(|held| held.of.version == version);
        let last = held.and_then(|held| Some((held.standing.last()?, &held.answered)));
        last.map_or_else(BTreeSet::new, |(standing, answered)| standing.at(answered).cloned().collect())
    }

    /// Whether a claim of a table is held.
    pub(super) fn is_held(&self, table: TableId) -> bool {
        self.held.lock().get(&table).is_some_and(|held| held.until > Instant::now())
    }

    /// What clouds answered may be otherwise by now.
    pub(super) fn look_again(&self) {
        self.held.lock().values_mut().for_each(|held| held.until = Instant::now());
    }

    /// What is to be taken back of a table's claims in a catalogue at each cloud, once nobody else counts on them: nobody does from then on.
    pub(super) fn over(&self, table: TableId, catalogue: &Name, clouds: &[Cloud]) -> Vec<BTreeSet<u64>> {
        let mut over = vec![BTreeSet::new(); clouds.len()];
        if let Some(held) = self.held.lock().get_mut(&table).filter(|held| held.users <= 1) {
            held.until = Instant::now();
            for standing in &mut held.standing {
                let pairs = over.iter_mut().zip(clouds);
                pairs.for_each(|(over, cloud)| over.extend(standing.take(catalogue, cloud)));
            }
        }
        over
    }

    fn give_back(&self, table: TableId) {
        let over = {
            let mut all = self.held.lock();
            let Some(held) = all.get_mut(&table) else { return };
            held.users = held.users.saturating_sub(1);
            if held.users > 0 { None } else { all.remove(&table) }
        };
        // Claims are taken back as they go.
        drop(over);
    }
}

/// What is seen.
impl Leases {
    pub(super) fn known(&self, table: TableId, url: &str) -> BTreeSet<u64> {
        let mut known = self.known.lock().get(&(table, url.to_owned())).cloned().unwrap_or_default();
        known.extend(self.own.lock().get(url).into_iter().flatten());
        known
    }

    /// These entries of a cloud's catalogue were put there from here, and those are gone.
    pub(super) fn note_own(&self, url: &str, places: &[u64], gone: &[u64]) {
        let mut own = self.own.lock();
        let own = own.entry(url.to_owned()).or_default();
        gone.iter().for_each(|place| _ = own.remove(place));
        own.extend(places);
    }

    /// These entries are all that a cloud's catalogue shows which say nothing new of a table.
    pub(super) fn note_seen<'a>(&self, table: TableId, url: &str, places: impl Iterator<Item = &'a u64>) {
        self.known.lock().insert((table, url.to_owned()), places.copied().collect());
    }

    /// Claims that have not stood still yet.
    pub(super) fn not_over(&self, mut claims: BTreeMap<u64, Claim>) -> BTreeMap<u64, Claim> {
        let over = self.over.lock();
        claims.retain(|place, _| !over.contains(place));
        claims
    }

    /// Whether all these claims of others have stood still for as long as they may, since they were seen first.
    pub(super) fn have_stood_still(&self, rivals: &BTreeMap<u64, Claim>) -> bool {
        let mut seen = self.seen.lock();
        seen.retain(|_, at| at.elapsed() < FORGOTTEN);
        rivals.keys().for_each(|place| _ = seen.entry(*place).or_insert_with(Instant::now));
        rivals.iter().all(|(place, claim)| seen[place].elapsed() >= claim.outlives())
    }

    /// Whoever takes over from these looks at them no more.
    pub(super) fn note_over(&self, rivals: &BTreeMap<u64, Claim>) {
        self.over.lock().extend(rivals.keys());
    }

    /// Whether a query looks at what others have told of a table: while they are active each one does.
    pub(super) fn follows(&self, table: TableId) -> bool {
        let is_within =
            |of: &Mutex<HashMap<TableId, Instant>>, time| of.lock().get(&table).is_some_and(|at| at.elapsed() < time);
        is_within(&self.learned, ACTIVE) || !is_within(&self.followed, FOLLOWED)
    }

    pub(super) fn note_followed(&self, table: TableId) {
        self.followed.lock().insert(table, Instant::now());
    }

    /// There is something to be seen: the next query looks.
    pub(super) fn note_overtaken(&self, table: TableId) {
        self.followed.lock().remove(&table);
    }

    pub(super) fn note_learned(&self, table: TableId) {
        self.learned.lock().insert(table, Instant::now());
    }

    /// Whether it is to be said that a cloud was put back: not with each statement.
    pub(super) fn says(&self, table: TableId, cloud: &str) -> bool {
        let (mut said, about) = (self.said.lock(), (table, cloud.to_owned()));
        let says = said.get(&about).is_none_or(|at| at.elapsed() >= SAID);
        if says {
            said.insert(about, Instant::now());
        }
        says
    }
}
