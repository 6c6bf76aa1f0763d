//! Signatures that add up (the paper's BAS): the owner is `counterfoil-publish`, the server `counterfoil-mirror`, the reader
//! `counterfoil-proof`.
//!
//! The lock around the server's shelf guards a map in memory and is no lock of a transaction: it is held while a record is
//! exchanged, and neither while something is signed nor while it is made durable.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use counterfoil_mirror::{PackedShelf, Shelf as _, answer_bytes};
use counterfoil_proof::{
    Chain, Column, Definition, Edge, FIRST_RID, Interval, Owner, Question, Scheme as Covers, SignatureSum, Trust,
    TrustedManifest, Type, Value, check,
};
use counterfoil_publish::{Change, Edit, Error, Ledger, Pair, Plan, Publication, Secrets};

use super::{Journal, Keys, Reader, Record, Scheme, key_of, record};
use crate::Failure;

/// Milliseconds of a period.
const PERIOD: u64 = 1000;
/// Rows that are loaded at once.
const LOADED_AT_ONCE: u32 = 50_000;

/// Entries as the owner sends them, by record number.
type Told = Vec<(u64, Vec<u8>)>;

/// A ledger that keeps what is asked for again, and hands on what a server is to be told.
#[derive(Default)]
struct Brief {
    kept: std::collections::BTreeMap<Vec<u8>, Vec<u8>>,
    told: Arc<Mutex<Told>>,
}

impl Ledger for Brief {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.kept.get(key).cloned())
    }

    fn scan(&mut self, prefix: &[u8]) -> Result<Vec<Pair>, Error> {
        let from = self.kept.range(prefix.to_vec()..).take_while(|(key, _)| key.starts_with(prefix));
        Ok(from.map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn commit(&mut self, changes: Vec<Change>) -> Result<(), Error> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in changes {
            match (&key[..], value) {
                ([b'e', rid @ ..], Some(entry)) => told.push((number_of(rid), entry)),
                ([b'm' | b'y', ..], Some(value)) => _ = self.kept.insert(key, value),
                _ => {}
            }
        }
        Ok(())
    }
}

fn number_of(rid: &[u8]) -> u64 {
    rid.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

struct Signing {
    publication: Publication<Brief>,
    told: Arc<Mutex<Told>>,
    now: u64,
}

impl Signing {
    fn told(&self) -> Told {
        std::mem::take(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub struct Bas {
    definition: Definition,
    owner: Owner,
    signing: Mutex<Signing>,
    shelf: RwLock<PackedShelf>,
    journal: Journal,
    pub is_hinted: bool,
}

fn definition() -> Definition {
    let column = |name: &str, kind| Column { name: name.into(), kind };
    Definition {
        table: [7; 16],
        name: "records".into(),
        columns: vec![column("key", Type::Integer), column("rest", Type::Bytea)],
        orders: vec![vec![0]],
        scheme: Covers::PerRecord,
        nodes: Vec::new(),
        filters: Vec::new(),
    }
}

fn values(record: &Record) -> Vec<Value> {
    vec![Value::Integer(i64::from(key_of(record))), Value::Bytes(record[4..].to_vec())]
}

impl Bas {
    /// Signs and serves so many records; answers carry hints if they are to.
    pub fn load(records: u32, is_hinted: bool) -> Result<Self, Failure> {
        let plan =
            Plan { definition: definition(), now: 0, every: PERIOD, renew: 0, max_age: u64::MAX, expires: u64::MAX };
        let ledger = Brief::default();
        let told = ledger.told.clone();
        let publication = Publication::create(ledger, plan, Secrets::from_entropy(&[11; 96])?, &[])?;
        let owner = publication.owner();
        let signing = Signing { publication, told, now: 0 };
        let shelf = RwLock::new(PackedShelf::new(definition()));
        let bas = Self {
            definition: definition(),
            owner,
            signing: Mutex::new(signing),
            shelf,
            journal: Journal::new()?,
            is_hinted,
        };
        for first in (0..records).step_by(LOADED_AT_ONCE as usize) {
            let numbers = first..records.min(first + LOADED_AT_ONCE);
            let insert = numbers.map(|number| values(&record(number, 0))).collect();
            let mut signing = bas.signing.lock().unwrap_or_else(PoisonError::into_inner);
            signing.publication.edit(Edit { insert, ..Edit::default() })?;
            bas.take(signing.told())?;
        }
        bas.end_period()?;
        Ok(bas)
    }

    /// The sum of the signatures of these keys, as an answer holds it beside those of its ends.
    pub fn sum(&self, keys: &Keys) -> Result<SignatureSum, Failure> {
        let question = self.question(keys)?;
        let interval = question.intervals().first().ok_or("no keys")?;
        let shelf = self.shelf.read().unwrap_or_else(PoisonError::into_inner);
        let Ok(sum) = (&mut &*shelf).sum(0, interval.start(), interval.end());
        Ok(sum.ok_or("a shelf without sums")?)
    }

    fn question(&self, keys: &Keys) -> Result<Question, Failure> {
        question(&self.definition, keys, self.is_hinted)
    }
}

fn question(definition: &Definition, keys: &Keys, is_hinted: bool) -> Result<Question, Failure> {
    let mut ends = [Vec::new(), Vec::new()];
    for (key, end) in [keys.start(), keys.end()].into_iter().zip(&mut ends) {
        Type::Integer.encode(&Value::Integer(i64::from(*key)), end).map_err(|_| "a key beyond an INTEGER")?;
    }
    let interval = Interval::new(Edge::before(&ends[0])..Edge::behind(&ends[1])).ok_or("no keys")?;
    let question = Question::new(definition, 0, vec![interval], &[0, 1])?;
    Ok(if is_hinted { question.hinted() } else { question })
}

impl Scheme for Bas {
    type Signed = Told;
    type Reader = BasReader;

    fn answer(&self, keys: Keys) -> Result<Vec<u8>, Failure> {
        let question = self.question(&keys)?;
        let shelf = self.shelf.read().unwrap_or_else(PoisonError::into_inner);
        Ok(answer_bytes(&mut &*shelf, &question).map_err(|_| "the shelf holds no whole table")?)
    }

    fn sign(&self, records: &[Record]) -> Result<Told, Failure> {
        let row = |record: &Record| (FIRST_RID + u64::from(key_of(record) / 2), values(record));
        let update = records.iter().map(row).collect();
        let mut signing = self.signing.lock().unwrap_or_else(PoisonError::into_inner);
        signing.publication.edit(Edit { update, ..Edit::default() })?;
        Ok(signing.told())
    }

    fn take(&self, told: Told) -> Result<(), Failure> {
        self.journal.append(told.iter().map(|(_, entry)| &entry[..]))?;
        let mut shelf = self.shelf.write().unwrap_or_else(PoisonError::into_inner);
        Ok(told.iter().try_for_each(|(_, entry)| shelf.put(entry))?)
    }

    fn end_period(&self) -> Result<(), Failure> {
        let mut signing = self.signing.lock().unwrap_or_else(PoisonError::into_inner);
        signing.now += PERIOD;
        let now = signing.now;
        signing.publication.close_period(now)?;
        let told = signing.told();
        drop(signing);
        self.take(told)
    }

    fn journal(&self) -> &Journal {
        &self.journal
    }

    fn reader(&self) -> Result<BasReader, Failure> {
        let mut signing = self.signing.lock().unwrap_or_else(PoisonError::into_inner);
        let manifest = TrustedManifest::check(signing.publication.manifest(), &self.owner, 0)?;
        let summaries = signing.publication.summaries()?;
        let chain = Chain::check(&manifest, summaries.iter().map(Vec::as_slice))?;
        Ok(BasReader { manifest, chain, now: signing.now, is_hinted: self.is_hinted })
    }
}

pub struct BasReader {
    manifest: TrustedManifest,
    chain: Chain,
    now: u64,
    is_hinted: bool,
}

impl Reader for BasReader {
    fn check(&self, keys: Keys, answer: &[u8]) -> Option<Vec<Record>> {
        let trust =
            Trust { manifest: &self.manifest, chain: &self.chain, now: self.now, clock_error: 0, max_age: PERIOD };
        let question = question(&self.manifest.manifest().definition, &keys, self.is_hinted).ok()?;
        let verified = check(&trust, &question, answer).ok()?;
        verified.rows.iter().map(|row| whole(row)).collect()
    }
}

fn whole(row: &[Value]) -> Option<Record> {
    let [Value::Integer(key), Value::Bytes(rest)] = row else { return None };
    let mut record = [0; super::RECORD];
    record[..4].copy_from_slice(&u32::try_from(*key).ok()?.to_be_bytes());
    record[4..].copy_from_slice(rest.get(..super::RECORD - 4)?);
    Some(record)
}
