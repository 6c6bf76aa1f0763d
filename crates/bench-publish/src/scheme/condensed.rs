//! Condensed RSA with 3072 bits over the same chain: each record is signed with the keys on both sides.
//!
//! ```text
//! message  SHA-256(number, version, whether there is a key on the left, it, the same on the right, SHA-256 of the record)
//! answer   number of the first record (8) | count (8) | key on the left (5), on the right (5) | version (8), record of each
//!          | product of signatures (384)
//! ```
//! An answer without a record has the one before the keys instead, and says so in its count. At the end of a period the owner
//! tells the versions of what changed. Each record is guarded by a lock of its own: a query shares those of its records.

pub mod rsa;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError, RwLock};

use counterfoil_proof::bytes::Reader as Bytes;
use counterfoil_proof::{Malformed, Message};
use sha2::{Digest, Sha256};

use super::{Journal, Keys, Reader, Record, Scheme, key_of, record};
use crate::Failure;
use rsa::{BYTES, Condensed, PublicKey, SecretKey};

struct Row {
    record: Record,
    version: u64,
    signature: Condensed,
}

/// A record as the owner sends it.
pub struct Signed {
    number: usize,
    row: Row,
}

/// What is to be signed: the record's number, its version, itself.
type Wanted = (usize, u64, Record);

pub struct Chained {
    key: SecretKey,
    rows: Vec<RwLock<Row>>,
    /// The owner's: the versions of records that changed, in the open period and before.
    versions: Mutex<[HashMap<u64, u64>; 2]>,
    journal: Journal,
}

fn key_at(number: usize, count: usize) -> Option<u32> {
    (number < count).then_some(number as u32 * 2)
}

fn side(key: Option<u32>) -> [u8; 5] {
    let mut bytes = [0; 5];
    bytes[0] = u8::from(key.is_some());
    bytes[1..].copy_from_slice(&key.unwrap_or(0).to_be_bytes());
    bytes
}

fn message(number: u64, version: u64, sides: [Option<u32>; 2], record: &Record) -> Message {
    let hash = Sha256::new().chain_update(number.to_be_bytes()).chain_update(version.to_be_bytes());
    let hash = hash.chain_update(side(sides[0])).chain_update(side(sides[1]));
    Message(hash.chain_update(Sha256::digest(record)).finalize().into())
}

impl Chained {
    pub fn load(records: u32) -> Result<Self, Failure> {
        let key = SecretKey::of_tables().ok_or("these are no primes")?;
        let wanted: Vec<Wanted> = (0..records).map(|number| (number as usize, 1, record(number, 0))).collect();
        let signed = signed_all(&key, records as usize, &wanted)?;
        let rows = signed.into_iter().map(|signed| RwLock::new(signed.row)).collect();
        Ok(Self { key, rows, versions: Mutex::default(), journal: Journal::new()? })
    }

    fn sides(&self, number: usize) -> [Option<u32>; 2] {
        sides(number, self.rows.len())
    }
}

fn sides(number: usize, count: usize) -> [Option<u32>; 2] {
    [number.checked_sub(1).and_then(|left| key_at(left, count)), key_at(number + 1, count)]
}

fn signed(key: &SecretKey, count: usize, (number, version, record): Wanted) -> Signed {
    let signature = key.sign(&message(number as u64, version, sides(number, count), &record));
    Signed { number, row: Row { record, version, signature } }
}

/// Signs on all cores, as the owner of signatures that add up does.
fn signed_all(key: &SecretKey, count: usize, wanted: &[Wanted]) -> Result<Vec<Signed>, Failure> {
    if let [one] = wanted {
        return Ok(vec![signed(key, count, *one)]);
    }
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let parts = std::thread::scope(|scope| {
        let begin = |part| scope.spawn(move || sign_part(key, count, part));
        let parts: Vec<_> = wanted.chunks(wanted.len().div_ceil(workers).max(1)).map(begin).collect();
        parts.into_iter().map(|part| part.join().map_err(|_| "a thread died")).collect::<Result<Vec<_>, _>>()
    })?;
    Ok(parts.into_iter().flatten().collect())
}

fn sign_part(key: &SecretKey, count: usize, part: &[Wanted]) -> Vec<Signed> {
    part.iter().map(|one| signed(key, count, *one)).collect()
}

impl Scheme for Chained {
    type Signed = Vec<Signed>;
    type Reader = ChainedReader;

    fn answer(&self, keys: Keys) -> Result<Vec<u8>, Failure> {
        let end = (*keys.end() as usize / 2 + 1).min(self.rows.len());
        let start = (*keys.start() as usize).div_ceil(2).min(self.rows.len());
        // Without a record, the one before the keys stands for them: it knows its right neighbour.
        let numbers = if start < end { start..end } else { start.saturating_sub(1)..start.max(1) };
        let held: Vec<_> =
            self.rows[numbers.clone()].iter().map(|row| row.read().unwrap_or_else(PoisonError::into_inner)).collect();
        let mut bytes = Vec::with_capacity(held.len() * 520 + 420);
        bytes.extend_from_slice(&(numbers.start as u64).to_be_bytes());
        bytes.extend_from_slice(&(held.len() as u64).to_be_bytes());
        bytes.extend_from_slice(&side(self.sides(numbers.start)[0]));
        bytes.extend_from_slice(&side(self.sides(numbers.end - 1)[1]));
        for row in &held {
            bytes.extend_from_slice(&row.version.to_be_bytes());
            bytes.extend_from_slice(&row.record);
        }
        let product = self.key.public().condense(held.iter().map(|row| &row.signature)).ok_or("an empty table")?;
        bytes.extend_from_slice(&product.to_bytes());
        Ok(bytes)
    }

    fn sign(&self, records: &[Record]) -> Result<Vec<Signed>, Failure> {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let next = |record: &Record| {
            let number = key_of(record) as usize / 2;
            let before = versions.iter().find_map(|known| known.get(&(number as u64))).copied().unwrap_or(1);
            versions[0].insert(number as u64, before + 1);
            (number, before + 1, *record)
        };
        let wanted: Vec<Wanted> = records.iter().map(next).collect();
        drop(versions);
        signed_all(&self.key, self.rows.len(), &wanted)
    }

    fn take(&self, signed: Vec<Signed>) -> Result<(), Failure> {
        // All locks in the order of the records, as queries take theirs, so that nobody waits in a circle.
        let lock = |signed: &Signed| self.rows[signed.number].write().unwrap_or_else(PoisonError::into_inner);
        let held: Vec<_> = signed.iter().map(lock).collect();
        self.journal.append(signed.iter().map(|signed| &signed.row.record[..]))?;
        for (mut row, signed) in held.into_iter().zip(signed) {
            // Two updates of a record may come in any order; the later one stays.
            if signed.row.version > row.version {
                *row = signed.row;
            }
        }
        Ok(())
    }

    fn end_period(&self) -> Result<(), Failure> {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let open = std::mem::take(&mut versions[0]);
        versions[1].extend(open);
        Ok(())
    }

    fn journal(&self) -> &Journal {
        &self.journal
    }

    fn reader(&self) -> Result<ChainedReader, Failure> {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner)[1].clone();
        Ok(ChainedReader { public: self.key.public().clone(), versions })
    }
}

pub struct ChainedReader {
    public: PublicKey,
    versions: HashMap<u64, u64>,
}

/// What an answer says, not checked yet.
struct Said {
    first: u64,
    sides: [Option<u32>; 2],
    rows: Vec<(u64, Record)>,
    signature: Condensed,
}

impl Said {
    fn read(answer: &[u8]) -> Result<Self, Malformed> {
        let mut bytes = Bytes::new(answer, "an answer under condensed RSA");
        let (first, count) = (u64::from_be_bytes(bytes.array()?), u64::from_be_bytes(bytes.array()?));
        let sides = [read_side(&mut bytes)?, read_side(&mut bytes)?];
        if count == 0 || count > (bytes.left() / 520) as u64 || first.checked_add(count).is_none() {
            return Err(bytes.malformed());
        }
        let row = |_| Ok::<_, Malformed>((u64::from_be_bytes(bytes.array()?), bytes.array()?));
        let rows = (0..count).map(row).collect::<Result<Vec<_>, _>>()?;
        let signature = Condensed::from_bytes(&bytes.array::<BYTES>()?);
        bytes.end()?;
        Ok(Self { first, sides, rows, signature })
    }
}

fn read_side(bytes: &mut Bytes<'_>) -> Result<Option<u32>, Malformed> {
    let (is_there, key) = (bytes.byte()?, u32::from_be_bytes(bytes.array()?));
    match is_there {
        0 if key == 0 => Ok(None),
        1 => Ok(Some(key)),
        _ => Err(bytes.malformed()),
    }
}

impl Reader for ChainedReader {
    fn check(&self, keys: Keys, answer: &[u8]) -> Option<Vec<Record>> {
        let said = Said::read(answer).ok()?;
        let chained: Vec<u32> = said.rows.iter().map(|(_, record)| key_of(record)).collect();
        if !chained.is_sorted_by(|before, after| before < after) {
            return None;
        }
        // Nothing of the keys is outside: on the left everything is below them, on the right above.
        let is_below = |key: &Option<u32>| key.is_none_or(|key| key < *keys.start());
        let starts = is_below(&said.sides[0]) || chained.first()? < keys.start();
        let ends = said.sides[1].is_none_or(|key| key > *keys.end()) || chained.last()? > keys.end();
        let mut messages = Vec::with_capacity(said.rows.len());
        for (at, (version, record)) in said.rows.iter().enumerate() {
            let number = said.first + at as u64;
            let left = if at == 0 { said.sides[0] } else { Some(chained[at - 1]) };
            let right = chained.get(at + 1).copied().or(said.sides[1]);
            if self.versions.get(&number).is_some_and(|newest| version < newest) {
                return None;
            }
            messages.push(message(number, *version, [left, right], record));
        }
        messages.sort_unstable();
        if !starts || !ends || !self.public.verify(&messages, &said.signature) {
            return None;
        }
        Some(said.rows.into_iter().map(|(_, record)| record).filter(|record| keys.contains(&key_of(record))).collect())
    }
}
