//! A table that its owner publishes.
//!
//! Keys of the ledger, whose values are told beside them:
//! ```text
//! m                    manifest as served        s            secrets
//! n                    next record number, open period, digest of the last summary, end of the last period (ms), next filter,
//!                      nodes so far, groups so far
//! e rid                an entry, node, group or filter        c rid        what became of it in the open period
//! g digest             a message signed in it    y period     a summary as served
//! t period             when it ended (ms), of periods whose signatures stand
//! d order low          nodes of level 1 whose rows changed in the open period (settle.rs)
//! x ...                what mirrors have not been told (outbox.rs)
//! ```
//! Each edit is one commit: entries, what is noted of them, and what was signed. A cut before it leaves nothing, and none of
//! its signatures has left; a cut behind it leaves all, and pushing goes on from the ledger.

use std::collections::{BTreeMap, BTreeSet};

use counterfoil_mirror::wire::Update;
use counterfoil_mirror::{Entry, MemoryShelf, NodeEntry, Record, SignedFilter, SignedGroup};
use counterfoil_proof::bytes::{Reader, Writer};
use counterfoil_proof::record::{Kind, Stamp, head_rid, link, message, tail_rid, value_message};
use counterfoil_proof::{
    CHANGES_MAX, Definition, Digest, FIRST_FILTER, FIRST_GROUP, FIRST_NODE, FIRST_RID, Manifest, Message, Owner,
    Position, Scheme, SecretKey, SigningKey, TrustedManifest, Value, attributes,
};

use crate::ages::Ages;
use crate::edit::Edit;
use crate::error::Error;
use crate::keys::Terms;
use crate::ledger::{Change, Ledger};
use crate::outbox::Outbox;
use crate::period::{Noted, Period};
use crate::secrets::Secrets;
use crate::settle::Unsettled;
use crate::watch::Signed;

/// How a table is to be published.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the table is.
    pub definition: Definition,
    /// Milliseconds since 1970 (UTC) by the owner's clock.
    pub now: u64,
    /// Milliseconds between the ends of periods; 0: a period ends when the owner says so.
    pub every: u64,
    /// Milliseconds after which signatures are renewed; 0: never.
    pub renew: u64,
    /// Milliseconds after which signatures do not count any more; `u64::MAX`: they always do.
    pub max_age: u64,
    /// Milliseconds since 1970 (UTC) at which the signing key expires.
    pub expires: u64,
}

/// What an edit did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edited {
    /// Rows that came.
    pub inserted: u64,
    /// Rows with other values.
    pub updated: u64,
    /// Rows that went.
    pub deleted: u64,
    /// Signatures made.
    pub signed: u64,
}

/// Places that records were taken from or put into, by order, and whether what stands beside them differs since.
type Touched = BTreeMap<(u8, Position), bool>;

/// A table and all that its owner knows of it.
pub struct Publication<L> {
    pub(crate) ledger: L,
    pub(crate) secrets: Secrets,
    pub(crate) definition: Definition,
    pub(crate) digest: Digest,
    pub(crate) manifest: Manifest,
    /// The manifest as mirrors serve it: not before it is durable.
    pub(crate) served: Vec<u8>,
    pub(crate) shelf: MemoryShelf,
    pub(crate) ages: Ages,
    next_rid: u64,
    /// Numbers given to nodes so far.
    pub(crate) next_node: u64,
    /// Numbers given to groups so far.
    pub(crate) next_group: u64,
    pub(crate) unsettled: Unsettled,
    /// The number of the filter that is made next.
    pub(crate) next_filter: u64,
    pub(crate) period: Period,
    last_summary: Digest,
    pub(crate) last_ended: u64,
    /// When periods ended of which signatures stand, and the last one.
    pub(crate) ended: BTreeMap<u64, u64>,
    pub(crate) outbox: Outbox,
    pub(crate) signed: Signed,
    /// Whether a change began and did not become durable: memory is ahead of the ledger then.
    is_latched: bool,
}

impl<L: Ledger> Publication<L> {
    /// Begins to publish an empty table. `roots` are the root keys that are not in the secrets.
    ///
    /// # Errors
    /// [`Error::Misuse`]: the ledger has one already, or the definition is none that readers accept;
    /// [`Error::RootNeeded`].
    pub fn create(mut ledger: L, plan: Plan, secrets: Secrets, roots: &[SecretKey]) -> Result<Self, Error> {
        if ledger.get(b"m")?.is_some() {
            return Err(Error::Misuse("a table is published from here already".into()));
        }
        Terms { every: plan.every, renew: plan.renew, max_age: plan.max_age }.check()?;
        let Some((root, signing)) = secrets.publics() else {
            return Err(Error::Misuse("secrets with other keys than a root and one that signs".into()));
        };
        let signing = SigningKey { key: signing, from_period: 0, until_period: u64::MAX, expires: plan.expires };
        let manifest = Manifest {
            definition: plan.definition.clone(),
            serial: 1,
            issued: plan.now,
            every: plan.every,
            renew: plan.renew,
            max_age: plan.max_age,
            roots: vec![root],
            keys: vec![signing],
        };
        let served = secrets.sign(&manifest, roots)?;
        let mut publication = Self {
            ledger,
            secrets,
            digest: plan.definition.digest(),
            shelf: MemoryShelf::new(plan.definition.clone()),
            definition: plan.definition,
            manifest,
            served,
            ages: Ages::default(),
            next_rid: FIRST_RID,
            next_filter: FIRST_FILTER,
            next_node: 0,
            next_group: 0,
            unsettled: Unsettled::new(),
            period: Period::default(),
            last_summary: [0; 32],
            last_ended: 0,
            ended: BTreeMap::new(),
            outbox: Outbox::default(),
            signed: Signed::default(),
            is_latched: false,
        };
        publication.begin()?;
        Ok(publication)
    }

    /// Heads and tails: a table without rows can be proved to have none.
    fn begin(&mut self) -> Result<(), Error> {
        let mut changes =
            vec![(b"m".to_vec(), Some(self.served.clone())), (b"s".to_vec(), Some(self.secrets.to_bytes().to_vec()))];
        let orders = 0..self.definition.orders.len() as u8;
        let ends: BTreeSet<u64> = orders.flat_map(|order| [head_rid(order), tail_rid(order)]).collect();
        // They stand in their orders before they are signed, since each is the other's neighbour.
        for rid in &ends {
            let stamp = Stamp { rid: *rid, version: 0, period: 0 };
            let signed = self.signing()?.sign_all(&[Message([0; 32])]);
            self.shelf.put(Entry { stamp, record: None, links: vec![[0; 32]], signed })?;
        }
        let mut begun = self.begin_filters()?;
        begun.extend(self.begin_groups()?);
        begun.extend(ends);
        self.sign(&begun, true, &mut changes)?;
        changes.push(self.state());
        self.commit(changes)
    }

    /// Goes on with a table whose state the ledger holds.
    ///
    /// # Errors
    /// [`Error::Corrupt`]: it does not; and those of the ledger.
    pub fn open(mut ledger: L) -> Result<Self, Error> {
        let served = ledger.get(b"m")?.ok_or(Error::Corrupt("a manifest"))?;
        let secrets = Secrets::from_bytes(&ledger.get(b"s")?.ok_or(Error::Corrupt("its keys"))?)?;
        let owner = secrets.roots.first().map(|(root, _)| Owner::of(root)).ok_or(Error::Corrupt("its keys"))?;
        let trusted = TrustedManifest::check(&served, &owner, 0).map_err(|_| Error::Corrupt("its own manifest"))?;
        let manifest = trusted.manifest().clone();
        if manifest.keys.iter().any(|key| secrets.signing(&key.key).is_none()) {
            return Err(Error::Corrupt("a signing key"));
        }
        let definition = manifest.definition.clone();
        let state = ledger.get(b"n")?.ok_or(Error::Corrupt("its counters"))?;
        let corrupt = |_| Error::Corrupt("its counters");
        let mut reader = Reader::new(&state, "");
        let (next_rid, number) = (reader.number().map_err(corrupt)?, reader.number().map_err(corrupt)?);
        let (last_summary, last_ended) = (reader.array().map_err(corrupt)?, reader.number().map_err(corrupt)?);
        // Ledgers of before there were filters end here, those of before there were nodes or groups behind what came before.
        let next_filter = if reader.left() > 0 { reader.number().map_err(corrupt)? } else { FIRST_FILTER };
        let next_node = if reader.left() > 0 { reader.number().map_err(corrupt)? } else { 0 };
        let next_group = if reader.left() > 0 { reader.number().map_err(corrupt)? } else { 0 };
        let (shelf, ages) = shelved(&mut ledger, &definition)?;
        let mut period = Period { number, ..Period::default() };
        for (key, bytes) in ledger.scan(b"c")? {
            let rid = key[1..].try_into().map_err(|_| Error::Corrupt("a change of the open period"))?;
            period.note(u64::from_be_bytes(rid), Noted::from_bytes(&bytes)?);
        }
        for (key, _) in ledger.scan(b"g")? {
            period.messages.insert(key[1..].try_into().map_err(|_| Error::Corrupt("what it signed"))?);
        }
        let mut ended = BTreeMap::new();
        for (key, bytes) in ledger.scan(b"t")? {
            let number = |bytes: &[u8]| bytes.try_into().map(u64::from_be_bytes);
            let corrupt = |_| Error::Corrupt("when a period ended");
            ended.insert(number(&key[1..]).map_err(corrupt)?, number(&bytes).map_err(corrupt)?);
        }
        let mut unsettled = Unsettled::new();
        for (key, _) in ledger.scan(b"d")? {
            let (order, low) = key[1..].split_first().ok_or(Error::Corrupt("a node that was there"))?;
            unsettled.insert((*order, low.to_vec()));
        }
        let outbox = Outbox::open(&mut ledger)?;
        let digest = definition.digest();
        Ok(Self {
            ledger,
            secrets,
            definition,
            digest,
            manifest,
            served,
            shelf,
            ages,
            next_rid,
            next_node,
            next_group,
            unsettled,
            next_filter,
            period,
            last_summary,
            last_ended,
            ended,
            outbox,
            signed: Signed::default(),
            is_latched: false,
        })
    }

    /// Changes rows, as one transaction of one period: each record whose values or neighbours change is signed again.
    ///
    /// # Errors
    /// [`Error::Misuse`]: a row that is not there, or one that cannot be published; then nothing has changed. After any other
    /// one the publication is to be opened anew: [`Error::Latched`] until then.
    pub fn edit(&mut self, edit: Edit) -> Result<Edited, Error> {
        self.check(&edit)?;
        self.begin_change()?;
        let mut edited = Edited {
            inserted: edit.insert.len() as u64,
            updated: edit.update.len() as u64,
            deleted: edit.delete.len() as u64,
            signed: 0,
        };
        let values_before = self.touched_values(&edit)?;
        let (mut changes, mut touched, mut affected) = (Vec::new(), Touched::new(), BTreeSet::new());
        for rid in edit.delete {
            self.take(rid, &mut touched)?;
            changes.push((entry_key(rid), None));
            // What has no signature of its own is told of by its group.
            if self.definition.signatures_of_record() > 0 {
                changes.push((noted_key(rid), Some(self.period.delete(rid).to_bytes())));
            }
        }
        for (rid, values) in edit.update {
            let version = self.take(rid, &mut touched)?;
            self.place(rid, version, values, &mut touched)?;
            affected.insert(rid);
        }
        for values in edit.insert {
            let rid = self.next_rid;
            self.next_rid += 1;
            self.place(rid, 0, values, &mut touched)?;
            affected.insert(rid);
        }
        let mut places = Vec::new();
        for ((order, position), has_other_neighbours) in touched {
            if self.definition.node_columns(order).is_some() {
                self.unsettle(order, position.bytes(), &mut changes);
            }
            if has_other_neighbours {
                affected.extend(self.shelf.neighbours(order, &position).into_iter().flatten());
            }
            if order == 0 {
                places.push(position);
            }
        }
        affected.extend(self.refilter(values_before, &mut changes)?);
        edited.signed = self.sign_changed(affected, &places, &mut changes)? as u64;
        changes.push(self.state());
        self.commit(changes)?;
        Ok(edited)
    }

    /// Makes changes durable. Until they are, nothing more is signed: memory is ahead of the ledger, and a number given
    /// there could be given again.
    pub(crate) fn commit(&mut self, mut changes: Vec<Change>) -> Result<(), Error> {
        self.outbox.note(&mut changes);
        self.ledger.commit(changes)?;
        self.is_latched = false;
        Ok(())
    }

    /// Begins a change; whoever does not come to its commit leaves the publication latched.
    pub(crate) fn begin_change(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.is_latched, true) {
            return Err(Error::Latched);
        }
        Ok(())
    }

    /// Refuses where an earlier change did not become durable.
    pub(crate) fn is_whole(&self) -> Result<(), Error> {
        if self.is_latched { Err(Error::Latched) } else { Ok(()) }
    }

    /// Everything that could refuse an edit, before anything changes.
    fn check(&self, edit: &Edit) -> Result<(), Error> {
        self.check_room(edit)?;
        let mut seen = BTreeSet::new();
        for rid in edit.delete.iter().chain(edit.update.iter().map(|(rid, _)| rid)) {
            if *rid < FIRST_RID || self.shelf.entry(*rid).is_none() || !seen.insert(*rid) {
                return Err(Error::Misuse(format!("record {rid} is not there, or named twice")));
            }
        }
        for values in edit.update.iter().map(|(_, values)| values).chain(&edit.insert) {
            if values.len() != self.definition.columns.len() {
                let (there, given) = (self.definition.columns.len(), values.len());
                return Err(Error::Misuse(format!("a row of {given} values for a table of {there} columns")));
            }
            for (column, value) in self.definition.columns.iter().zip(values) {
                if column.kind.encode(value, &mut Vec::new()).is_err() {
                    return Err(Error::Misuse(format!("a value that column {} cannot hold", column.name)));
                }
            }
            for order in 0..self.definition.orders.len() {
                self.definition.key(order, |at| &values[usize::from(at)])?;
            }
        }
        Ok(())
    }

    /// Whether the open period can still tell of all that would change. The first load tells of nothing.
    fn check_room(&self, edit: &Edit) -> Result<(), Error> {
        let changes = self.changes_with(edit);
        if self.period.number > 0 && changes > CHANGES_MAX {
            let text = format!(
                "{changes} changes in one period, of which {CHANGES_MAX} are possible: end the period in between"
            );
            return Err(Error::Misuse(text));
        }
        Ok(())
    }

    /// Changes rows in as many transactions, and periods, as it takes to tell of them: what does not fit into the open period
    /// comes into the next one. A cut leaves some of it changed; `now` is when the periods in between end.
    ///
    /// # Errors
    /// Those of [`Publication::edit`] and [`Publication::close_period`].
    pub fn edit_in_parts(&mut self, edit: Edit, now: u64) -> Result<Edited, Error> {
        if self.period.number == 0 || self.changes_with(&edit) <= CHANGES_MAX {
            return self.edit(edit);
        }
        let mut edited = Edited::default();
        for part in edit.parts(CHANGES_MAX, self.orders_told()) {
            if self.period.told > 0 {
                self.close_period(now)?;
            }
            let Edited { inserted, updated, deleted, signed } = self.edit(part)?;
            edited.inserted += inserted;
            edited.updated += updated;
            edited.deleted += deleted;
            edited.signed += signed;
        }
        Ok(edited)
    }

    /// Takes a record from its places; gives its version.
    fn take(&mut self, rid: u64, touched: &mut Touched) -> Result<u64, Error> {
        let entry = self.shelf.remove(rid).ok_or(Error::Corrupt("a record that was there"))?;
        self.ages.remove(&entry.stamp);
        for order in 0..self.definition.orders.len() as u8 {
            toggle(touched, (order, entry.position(&self.definition, order)?));
        }
        Ok(entry.stamp.version)
    }

    /// Puts a record in its places, to be signed.
    fn place(&mut self, rid: u64, version: u64, values: Vec<Value>, touched: &mut Touched) -> Result<(), Error> {
        let seed = self.secrets.seed(&self.definition.table, rid, version + 1);
        let is_salted = self.definition.scheme != Scheme::PerAttribute;
        let seed = if is_salted { seed } else { attributes::Salt::default() };
        let signed = vec![self.any_signature()?; self.definition.signatures_of_record()];
        let stamp = Stamp { rid, version, period: self.period.number };
        let links = vec![[0; 32]; self.definition.orders.len()];
        let entry = Entry { stamp, record: Some(Record { values, seed }), links, signed };
        for order in 0..self.definition.orders.len() as u8 {
            toggle(touched, (order, entry.position(&self.definition, order)?));
        }
        self.shelf.put(entry)?;
        Ok(())
    }

    /// Signs what an edit changed, and the groups of records among it, which have no signatures of their own; how many
    /// signatures that takes. `places` are those of the first order that were touched.
    fn sign_changed(
        &mut self,
        mut changed: BTreeSet<u64>,
        places: &[Position],
        changes: &mut Vec<Change>,
    ) -> Result<usize, Error> {
        if matches!(self.definition.scheme, Scheme::Group(_)) {
            let signed = changed.split_off(&FIRST_GROUP);
            let records = changed.split_off(&FIRST_RID);
            self.link_records(&records, changes)?;
            changed.extend(signed);
            changed.extend(self.regroup(&records, places, changes)?);
        }
        self.sign(&changed, true, changes)
    }

    /// Gives records whose groups have signatures for them their next version and the links of where they stand now.
    fn link_records(&mut self, rids: &BTreeSet<u64>, changes: &mut Vec<Change>) -> Result<(), Error> {
        for rid in rids {
            let mut entry = self.shelf.entry(*rid).ok_or(Error::Corrupt("a record that was there"))?.clone();
            entry.stamp.version += 1;
            entry.stamp.period = self.period.number;
            entry.links = self.links(&entry)?;
            changes.push((entry_key(*rid), Some(entry.to_bytes(&self.definition)?)));
            self.shelf.put(entry)?;
        }
        Ok(())
    }

    /// Signs what has signatures of its own as it stands now: each as its next version if it changed, as the same one if it
    /// did not; how many signatures that takes.
    pub(crate) fn sign(
        &mut self,
        rids: &BTreeSet<u64>,
        is_change: bool,
        changes: &mut Vec<Change>,
    ) -> Result<usize, Error> {
        let nodes = self.sign_nodes(rids.range(FIRST_NODE..FIRST_FILTER).copied(), is_change, changes)?;
        let entries = self.sign_entries(rids, is_change, changes)?;
        let groups = self.sign_groups(rids, is_change, changes)?;
        Ok(nodes + entries + groups + self.sign_filters(rids, is_change, changes)?)
    }

    fn sign_entries(
        &mut self,
        rids: &BTreeSet<u64>,
        is_change: bool,
        changes: &mut Vec<Change>,
    ) -> Result<usize, Error> {
        let (mut entries, mut messages) = (Vec::with_capacity(rids.len()), Vec::with_capacity(rids.len()));
        for rid in rids.range(..FIRST_GROUP) {
            let mut entry = self.shelf.entry(*rid).ok_or(Error::Corrupt("a record that was there"))?.clone();
            self.ages.remove(&entry.stamp);
            entry.stamp.version += u64::from(is_change);
            entry.stamp.period = self.period.number;
            if is_change {
                entry.links = self.links(&entry)?;
            }
            self.messages(&entry, &mut messages)?;
            entries.push(entry);
        }
        let mut signed = messages.iter().zip(self.sign_all(&messages)?);
        for mut entry in entries {
            let own: Vec<_> = signed.by_ref().take(entry.signed.len()).collect();
            entry.signed = own.iter().map(|(_, signed)| *signed).collect();
            let own: Vec<Message> = own.into_iter().map(|(message, _)| *message).collect();
            self.note_signed(&entry.stamp, is_change, &own, changes);
            changes.push((entry_key(entry.stamp.rid), Some(entry.to_bytes(&self.definition)?)));
            self.shelf.put(entry)?;
        }
        Ok(messages.len())
    }

    /// Notes what was signed, in the commit in which the signatures become durable.
    pub(crate) fn note_signed(
        &mut self,
        stamp: &Stamp,
        is_change: bool,
        messages: &[Message],
        changes: &mut Vec<Change>,
    ) {
        let noted = self.period.sign(stamp.rid, stamp.version, is_change, messages);
        changes.push((noted_key(stamp.rid), Some(noted.to_bytes())));
        changes.extend(messages.iter().map(|message| (message_key(&message.0), Some(Vec::new()))));
        self.ages.put(stamp);
    }

    /// The key that signs in the open period.
    pub(crate) fn signing(&self) -> Result<&SecretKey, Error> {
        let key = self.manifest.key_of(self.period.number);
        key.and_then(|key| self.secrets.signing(&key.key)).ok_or(Error::Corrupt("the key of the open period"))
    }

    fn links(&self, entry: &Entry) -> Result<Vec<Digest>, Error> {
        let rid = entry.stamp.rid;
        let orders = if entry.record.is_some() {
            0..self.definition.orders.len() as u8
        } else {
            (rid / 2) as u8..(rid / 2) as u8 + 1
        };
        let mut links = Vec::new();
        for order in orders {
            let own = entry.position(&self.definition, order)?;
            let mut around = [None, None];
            for (side, found) in around.iter_mut().zip(self.shelf.neighbours(order, &own)) {
                let entry = found.and_then(|rid| self.shelf.entry(rid));
                *side = entry.map(|entry| entry.position(&self.definition, order)).transpose()?;
            }
            links.push(link(order, &own, around[0].as_ref(), around[1].as_ref()));
        }
        Ok(links)
    }

    /// Appends what is signed of an entry, as many messages as it has signatures.
    fn messages(&self, entry: &Entry, messages: &mut Vec<Message>) -> Result<(), Error> {
        let Entry { stamp, links, .. } = entry;
        let Some(record) = &entry.record else {
            let kind = if stamp.rid.is_multiple_of(2) { Kind::Head } else { Kind::Tail };
            messages.push(message(&self.digest, kind, stamp, links, &[0; 32]));
            return Ok(());
        };
        if self.definition.scheme != Scheme::PerAttribute {
            let root = attributes::root(&record.leaves(&self.definition)?);
            messages.push(message(&self.digest, Kind::Record, stamp, links, &root));
            return Ok(());
        }
        messages.push(message(&self.digest, Kind::Record, stamp, links, &[0; 32]));
        for (at, (column, value)) in self.definition.columns.iter().zip(&record.values).enumerate() {
            let mut encoded = Vec::new();
            let wrong = |_| Error::Corrupt("a value of a type that its column has not");
            column.kind.encode(value, &mut encoded).map_err(wrong)?;
            messages.push(value_message(&self.digest, stamp, at as u16, &encoded));
        }
        Ok(())
    }

    /// Ends the open period, at `now` by the owner's clock or when the last one ended, whatever is later. Its summary is in
    /// the ledger before anybody gets it, and is never made again.
    ///
    /// # Errors
    /// Those of the ledger.
    pub fn close_period(&mut self, now: u64) -> Result<Vec<u8>, Error> {
        self.begin_change()?;
        let mut changes = Vec::new();
        let served = self.end_period(now, &mut changes)?;
        changes.push(self.state());
        self.commit(changes)?;
        Ok(served)
    }

    /// The summary of the open period, and what it changes in the ledger.
    pub(crate) fn end_period(&mut self, now: u64, changes: &mut Vec<Change>) -> Result<Vec<u8>, Error> {
        self.settle(changes)?;
        let (number, ended) = (self.period.number, now.max(self.last_ended));
        let summary = self.period.summary(self.digest, self.last_summary, ended);
        let served = summary.sign(self.signing()?);
        changes.push((summary_key(number), Some(served.clone())));
        changes.extend(self.period.noted.keys().map(|rid| (noted_key(*rid), None)));
        changes.extend(self.period.messages.iter().map(|message| (message_key(message), None)));
        self.period = Period { number: number + 1, ..Period::default() };
        (self.last_summary, self.last_ended) = (summary.digest(), ended);
        self.ended.insert(number, ended);
        changes.push((ended_key(number), Some(ended.to_be_bytes().to_vec())));
        // Nobody asks any more when a period ended of which no signature stands.
        let needed = self.ended.split_off(&self.oldest_period());
        changes.extend(std::mem::replace(&mut self.ended, needed).into_keys().map(|period| (ended_key(period), None)));
        Ok(served)
    }

    pub(crate) fn state(&self) -> Change {
        let mut writer = Writer::default();
        writer.number(self.next_rid).number(self.period.number).raw(&self.last_summary).number(self.last_ended);
        writer.number(self.next_filter).number(self.next_node).number(self.next_group);
        (b"n".to_vec(), Some(writer.0))
    }

    /// The manifest, as mirrors serve it. They are to have it before anything that its newest key signed.
    #[must_use]
    pub fn manifest(&self) -> &[u8] {
        &self.served
    }

    /// All summaries, as mirrors serve them, from period 0 on.
    ///
    /// # Errors
    /// Those of the ledger.
    pub fn summaries(&mut self) -> Result<Vec<Vec<u8>>, Error> {
        Ok(self.ledger.scan(b"y")?.into_iter().map(|(_, summary)| summary).collect())
    }

    /// All that is published, as it is now.
    #[must_use]
    pub fn shelf(&self) -> &MemoryShelf {
        &self.shelf
    }

    pub(crate) fn shelf_mut(&mut self) -> &mut MemoryShelf {
        &mut self.shelf
    }

    pub(crate) fn digest(&self) -> &Digest {
        &self.digest
    }

    /// What the table is.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Whether something was signed in the open period.
    #[must_use]
    pub fn has_news(&self) -> bool {
        !self.period.noted.is_empty()
    }

    /// An update carries the signature of the open period's key.
    pub(crate) fn sign_update(&self, update: &Update) -> Result<Vec<u8>, Error> {
        Ok(update.sign(self.signing()?))
    }

    /// What the ledger holds, for whoever wants to keep it elsewhere.
    pub fn into_ledger(self) -> L {
        self.ledger
    }
}

/// All that is signed, as the ledger holds it, and when it was.
fn shelved(ledger: &mut impl Ledger, definition: &Definition) -> Result<(MemoryShelf, Ages), Error> {
    let (mut shelf, mut ages) = (MemoryShelf::new(definition.clone()), Ages::default());
    for (_, bytes) in ledger.scan(b"e")? {
        if SignedFilter::are(&bytes) {
            let signed = SignedFilter::from_bytes(&bytes, definition).map_err(|_| Error::Corrupt("a filter"))?;
            ages.put(&signed.stamp);
            shelf.put_filter(signed);
        } else if NodeEntry::is_one(&bytes) {
            let node = NodeEntry::from_bytes(&bytes, definition).map_err(|_| Error::Corrupt("a signed node"))?;
            ages.put(&node.stamp);
            shelf.nodes.put(node);
        } else if SignedGroup::are(&bytes) {
            let group = SignedGroup::from_bytes(&bytes, definition).map_err(|_| Error::Corrupt("a group"))?;
            ages.put(&group.stamp);
            shelf.groups.put(group);
        } else {
            let entry = Entry::from_bytes(&bytes, definition).map_err(|_| Error::Corrupt("a signed record"))?;
            // A record in a group has no signature that could be old.
            if !entry.signed.is_empty() {
                ages.put(&entry.stamp);
            }
            shelf.put(entry)?;
        }
    }
    Ok((shelf, ages))
}

/// A place from which a record was taken and into which it was put again has the neighbours it had: nothing beside it is to
/// be signed again. Its values may differ all the same, and so the totals over it.
fn toggle(touched: &mut Touched, place: (u8, Position)) {
    *touched.entry(place).or_default() ^= true;
}

pub(crate) fn entry_key(rid: u64) -> Vec<u8> {
    [&b"e"[..], &rid.to_be_bytes()].concat()
}

pub(crate) fn noted_key(rid: u64) -> Vec<u8> {
    [&b"c"[..], &rid.to_be_bytes()].concat()
}

pub(crate) fn message_key(message: &Digest) -> Vec<u8> {
    [&b"g"[..], message].concat()
}

pub(crate) fn summary_key(period: u64) -> Vec<u8> {
    [&b"y"[..], &period.to_be_bytes()].concat()
}

fn ended_key(period: u64) -> Vec<u8> {
    [&b"t"[..], &period.to_be_bytes()].concat()
}
