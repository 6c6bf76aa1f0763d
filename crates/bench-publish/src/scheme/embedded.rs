//! The EMB- tree rebuilt (sections 2.2 and 3.2): a B+-tree in pages of 4 KB of a file, with the digest of what is below in each
//! entry and the root's digest signed. Loaded at once, pages two thirds full; updates change records and keep keys.
//!
//! ```text
//! level (1) | entries (1) | 6 unused | entries: key (4) | page or record (4) | digest (32)
//! ```
//! A page's digest is that of its level and of a binary tree over its entries, which is made again when it is wanted.
//!
//! One lock for all, as two-phase locking has it: every update changes the root, so that it holds the root's lock until it is
//! durable and the owner has signed, and queries share it from the root down.

pub mod proof;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock};

use counterfoil_proof::{Message, PublicKey, SecretKey, Signature};
use sha2::{Digest, Sha256};

use super::{Journal, Keys, RECORD, Record, Scheme, key_of, record};
use crate::Failure;
use proof::{EmbeddedReader, Node, Part};

pub const PAGE: usize = 4096;
const ENTRY: usize = 40;
const FILL: usize = (PAGE - 8) / ENTRY * 2 / 3;

pub type Hash = [u8; 32];

#[derive(Clone, Copy)]
struct Entry {
    key: u32,
    below: u32,
    hash: Hash,
}

struct Page {
    level: u8,
    entries: Vec<Entry>,
}

pub fn entry_hash(key: u32, hash: &Hash) -> Hash {
    Sha256::new().chain_update([0]).chain_update(key.to_be_bytes()).chain_update(hash).finalize().into()
}

pub fn pair_hash(left: &Hash, right: &Hash) -> Hash {
    Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
}

pub fn page_hash(level: u8, tree: &Hash) -> Hash {
    Sha256::new().chain_update([2, level]).chain_update(tree).finalize().into()
}

/// What the owner signs: the root as it stands in a period.
pub fn root_message(root: &Hash, period: u64) -> Message {
    Message(Sha256::new().chain_update([3]).chain_update(period.to_be_bytes()).chain_update(root).finalize().into())
}

/// A file that nobody else sees, and that is gone with the process.
pub fn unnamed_file() -> Result<File, Failure> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("counterfoil-bench-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Where the tree inside a page has its two halves: a power of two on the left.
fn half(entries: usize) -> usize {
    entries.next_power_of_two() / 2
}

fn tree_hash(entries: &[Entry]) -> Hash {
    match entries {
        [] => [0; 32],
        [entry] => entry_hash(entry.key, &entry.hash),
        _ => {
            let (left, right) = entries.split_at(half(entries.len()));
            pair_hash(&tree_hash(left), &tree_hash(right))
        }
    }
}

impl Page {
    fn hash(&self) -> Hash {
        page_hash(self.level, &tree_hash(&self.entries))
    }
}

/// The parts of a page as a tree in which what is hidden on both sides is hidden as one.
fn join(parts: &mut dyn Iterator<Item = Part>, count: usize) -> Part {
    if count < 2 {
        return parts.next().unwrap_or(Part::Hidden([0; 32]));
    }
    let left = join(parts, half(count));
    match (left, join(parts, count - half(count))) {
        (Part::Hidden(left), Part::Hidden(right)) => Part::Hidden(pair_hash(&left, &right)),
        (left, right) => Part::Pair(Box::new([left, right])),
    }
}

/// The pages, and what is signed of them.
struct Tree {
    pages: File,
    records: File,
    root: u32,
    root_hash: Hash,
    key: SecretKey,
    period: u64,
    signature: Signature,
}

impl Tree {
    /// Over records with increasing keys, in two files that are empty.
    fn load(pages: File, records: File, key: SecretKey, all: impl Iterator<Item = Record>) -> Result<Self, Failure> {
        let mut level = Vec::new();
        for (number, record) in all.enumerate() {
            records.write_all_at(&record, (number * RECORD) as u64)?;
            level.push(Entry { key: key_of(&record), below: number as u32, hash: Sha256::digest(record).into() });
        }
        let signature = key.sign(&Message([0; 32]));
        let mut tree = Self { pages, records, root: 0, root_hash: [0; 32], key, period: 0, signature };
        for height in 0.. {
            let mut above = Vec::new();
            for entries in level.chunks(FILL) {
                let page = Page { level: height, entries: entries.to_vec() };
                tree.write(tree.root, &page)?;
                above.push(Entry { key: entries[0].key, below: tree.root, hash: page.hash() });
                tree.root += 1;
            }
            if above.len() <= 1 {
                break;
            }
            level = above;
        }
        tree.root -= 1;
        tree.root_hash = tree.read(tree.root)?.hash();
        tree.sign();
        Ok(tree)
    }

    fn sign(&mut self) {
        self.signature = self.key.sign(&root_message(&self.root_hash, self.period));
    }

    fn write(&self, number: u32, page: &Page) -> Result<(), Failure> {
        let mut bytes = [0; PAGE];
        bytes[..2].copy_from_slice(&[page.level, page.entries.len() as u8]);
        for (entry, place) in page.entries.iter().zip(bytes[8..].chunks_exact_mut(ENTRY)) {
            place[..4].copy_from_slice(&entry.key.to_be_bytes());
            place[4..8].copy_from_slice(&entry.below.to_be_bytes());
            place[8..].copy_from_slice(&entry.hash);
        }
        Ok(self.pages.write_all_at(&bytes, u64::from(number) * PAGE as u64)?)
    }

    fn read(&self, number: u32) -> Result<Page, Failure> {
        let mut bytes = [0; PAGE];
        self.pages.read_exact_at(&mut bytes, u64::from(number) * PAGE as u64)?;
        let word =
            |place: &[u8], at: usize| u32::from_be_bytes([place[at], place[at + 1], place[at + 2], place[at + 3]]);
        let entry = |place: &[u8]| {
            let mut hash = [0; 32];
            hash.copy_from_slice(&place[8..]);
            Entry { key: word(place, 0), below: word(place, 4), hash }
        };
        Ok(Page {
            level: bytes[0],
            entries: bytes[8..].chunks_exact(ENTRY).take(usize::from(bytes[1])).map(entry).collect(),
        })
    }

    fn record(&self, number: u32) -> Result<Record, Failure> {
        let mut bytes = [0; RECORD];
        self.records.read_exact_at(&mut bytes, u64::from(number) * RECORD as u64)?;
        Ok(bytes)
    }

    /// The records of keys `from..=to` with the one before and the one behind, and what it takes to make the root again.
    fn query(&self, from: u32, to: u32) -> Result<Node, Failure> {
        // A descent to the last key below the range and one to the first above it give the two ends.
        let before = from.checked_sub(1).map_or(Ok(None), |key| self.at_or_below(key))?.unwrap_or(from);
        self.part(self.root, before, to, &mut false)
    }

    fn at_or_below(&self, key: u32) -> Result<Option<u32>, Failure> {
        let mut number = self.root;
        loop {
            let page = self.read(number)?;
            let Some(entry) = page.entries[..page.entries.partition_point(|entry| entry.key <= key)].last() else {
                return Ok(None);
            };
            if page.level == 0 {
                return Ok(Some(entry.key));
            }
            number = entry.below;
        }
    }

    /// `is_over`: whether the record behind the range was given.
    fn part(&self, number: u32, from: u32, to: u32, is_over: &mut bool) -> Result<Node, Failure> {
        let page = self.read(number)?;
        let mut parts = Vec::new();
        for (at, entry) in page.entries.iter().enumerate() {
            let begins_later = page.entries.get(at + 1).is_none_or(|next| next.key > from);
            let is_wanted = !*is_over && if page.level == 0 { entry.key >= from } else { begins_later };
            parts.push(match (is_wanted, page.level) {
                (false, _) => Part::Hidden(entry_hash(entry.key, &entry.hash)),
                (true, 0) => {
                    *is_over = entry.key > to;
                    Part::Record(Box::new(self.record(entry.below)?))
                }
                (true, _) => Part::Below(entry.key, Box::new(self.part(entry.below, from, to, is_over)?)),
            });
        }
        let count = parts.len();
        Ok(Node { level: page.level, tree: join(&mut parts.into_iter(), count) })
    }

    /// Changes records, the pages above them, each once, and the root's signature.
    fn update(&mut self, records: &[Record]) -> Result<(), Failure> {
        self.root_hash = self.change(self.root, records)?;
        self.sign();
        Ok(())
    }

    /// Changes records below a page, in the order of their keys; the page's digest.
    fn change(&self, number: u32, records: &[Record]) -> Result<Hash, Failure> {
        let (mut page, mut left) = (self.read(number)?, records);
        while let Some(record) = left.first() {
            let at = page.entries.partition_point(|entry| entry.key <= key_of(record)).checked_sub(1);
            let at = at.ok_or("no such key")?;
            let next = page.entries.get(at + 1).map(|entry| entry.key);
            let below = left.partition_point(|record| next.is_none_or(|next| key_of(record) < next));
            let entry = &mut page.entries[at];
            entry.hash = match page.level {
                0 if entry.key == key_of(record) && below == 1 => self.write_record(entry.below, record)?,
                0 => return Err("no such key".into()),
                _ => self.change(entry.below, &left[..below])?,
            };
            left = &left[below..];
        }
        self.write(number, &page)?;
        Ok(page.hash())
    }

    /// Its digest.
    fn write_record(&self, number: u32, record: &Record) -> Result<Hash, Failure> {
        self.records.write_all_at(record, u64::from(number) * RECORD as u64)?;
        Ok(Sha256::digest(record).into())
    }
}

pub struct Embedded {
    tree: RwLock<Tree>,
    public: PublicKey,
    journal: Journal,
}

impl Embedded {
    pub fn load(records: u32) -> Result<Self, Failure> {
        let key = SecretKey::from_entropy(&[3; 32])?;
        let public = key.public();
        let all = (0..records).map(|number| record(number, 0));
        let tree = RwLock::new(Tree::load(unnamed_file()?, unnamed_file()?, key, all)?);
        Ok(Self { tree, public, journal: Journal::new()? })
    }
}

impl Scheme for Embedded {
    /// The owner signs when it knows the root, for which the server waits with the lock in its hand.
    type Signed = Vec<Record>;
    type Reader = EmbeddedReader;

    fn answer(&self, keys: Keys) -> Result<Vec<u8>, Failure> {
        let tree = self.tree.read().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = tree.signature.to_bytes().to_vec();
        bytes.extend_from_slice(&tree.period.to_be_bytes());
        tree.query(*keys.start(), *keys.end())?.write(&mut bytes);
        Ok(bytes)
    }

    fn sign(&self, records: &[Record]) -> Result<Vec<Record>, Failure> {
        Ok(records.to_vec())
    }

    fn take(&self, records: Vec<Record>) -> Result<(), Failure> {
        let mut tree = self.tree.write().unwrap_or_else(PoisonError::into_inner);
        tree.update(&records)?;
        self.journal.append(records.iter().map(|record| &record[..]))
    }

    fn end_period(&self) -> Result<(), Failure> {
        let mut tree = self.tree.write().unwrap_or_else(PoisonError::into_inner);
        tree.period += 1;
        tree.sign();
        Ok(())
    }

    fn journal(&self) -> &Journal {
        &self.journal
    }

    fn reader(&self) -> Result<EmbeddedReader, Failure> {
        let tree = self.tree.read().unwrap_or_else(PoisonError::into_inner);
        Ok(EmbeddedReader { public: self.public, period: tree.period })
    }
}
