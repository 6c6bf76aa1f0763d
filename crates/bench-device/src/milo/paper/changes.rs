//! UPD and DEL (section 3.1): what was updated and deleted since the last reorganization, with an index over old and new values.
//!
//! What is in memory of them says of any row whether there is an entry, so that only entries that matter are read. The paper has
//! summaries there; 3,000 identifiers of each are 24 KB.

use std::collections::{BTreeMap, BTreeSet};

use super::bloom::Key;
use super::container::Container;
use super::fresh::{Fresh, Scheme};
use super::nand::Nand;
use super::records::Records;
use crate::milo::data::{self, Attribute, Change, Data, Selection};
use crate::milo::figure8::BOUND;

/// table 1 | attribute 1 | row 4 | old value 10 | new value 10
const ENTRY_BYTES: usize = 26;
/// row 4 | A1
const FILLING_BYTES: usize = 4 + super::database::FILLING_BYTES;
const DELETED_BYTES: usize = 5;

pub struct Changes {
    updates: Records,
    /// Twice as many rows as there are updates: of the old and of the new value.
    values: Fresh,
    fillings: Records,
    deletes: Records,
    journal: Container,
    /// In memory: rows with an entry.
    filled: BTreeMap<(usize, u64), u64>,
    pub deleted: BTreeSet<(usize, u64)>,
}

/// Rows of the table asked about whose index entries say something that is no longer, or not yet, so.
#[derive(Default)]
pub struct Compensation {
    pub gone: BTreeSet<u64>,
    pub come: BTreeSet<u64>,
}

impl Default for Changes {
    fn default() -> Self {
        Self {
            updates: Records::new(ENTRY_BYTES),
            values: Fresh::new(1, Scheme::BoundedSkip(BOUND)),
            fillings: Records::new(FILLING_BYTES),
            deletes: Records::new(DELETED_BYTES),
            journal: Container::default(),
            filled: BTreeMap::new(),
            deleted: BTreeSet::new(),
        }
    }
}

/// A value of an attribute of a table as a key.
fn value_key(table: usize, attribute: usize, number: u64) -> Key {
    let mut key = [0; 10];
    (key[0], key[1]) = (table as u8, attribute as u8);
    key[2..].copy_from_slice(&number.to_be_bytes());
    key
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.deleted.is_empty() && self.filled.is_empty() && self.updates.count() == 0
    }

    /// Logs a change and commits it; `before` knows the old value.
    pub fn note(&mut self, nand: &mut Nand, change: &Change, before: &Data) {
        let bytes = match *change {
            Change::Delete { table, row } => {
                let mut record = [0; DELETED_BYTES];
                record[0] = table as u8;
                record[1..].copy_from_slice(&(row as u32).to_le_bytes());
                self.deletes.push(nand, &record);
                self.deleted.insert((table, row));
                DELETED_BYTES
            }
            Change::Value { table, row, value, number } => {
                let selection = Selection { table, attribute: Attribute::Value(value) };
                let old = before.number_of(table, row, selection);
                let mut record = [0; ENTRY_BYTES];
                (record[0], record[1]) = (table as u8, value as u8);
                record[2..6].copy_from_slice(&(row as u32).to_le_bytes());
                record[6..16].copy_from_slice(&data::key(selection.attribute, old));
                record[16..].copy_from_slice(&data::key(selection.attribute, number));
                self.updates.push(nand, &record);
                for number in [old, number] {
                    self.values.insert(nand, &[value_key(table, value, number)]);
                }
                ENTRY_BYTES + 2 * self.values.row_bytes()
            }
            Change::Filling { table, row } => {
                let mut record = [b'u'; FILLING_BYTES];
                record[..4].copy_from_slice(&(row as u32).to_le_bytes());
                self.filled.insert((table, row), self.fillings.count());
                self.fillings.push(nand, &record);
                FILLING_BYTES
            }
        };
        self.journal.append(nand, &vec![b'j'; bytes]);
        let pages = self.journal.pages();
        self.journal.forget_before(nand, pages);
    }

    /// Reads the A1 of a row that was updated; whether it was.
    pub fn read_filling(&self, nand: &Nand, table: usize, row: u64) -> bool {
        let Some(place) = self.filled.get(&(table, row)) else { return false };
        let mut record = [0; FILLING_BYTES];
        self.fillings.read(nand, *place, 0, &mut record);
        assert_eq!(record[..4], (row as u32).to_le_bytes(), "an entry of the row");
        true
    }

    /// What a value of an attribute says no longer, and not yet. A row is updated once between two reorganizations here.
    pub fn of_value(&self, nand: &Nand, Selection { table, attribute }: Selection, number: u64) -> Compensation {
        let mut found = Compensation::default();
        let Attribute::Value(value) = attribute else { return found };
        for entry in self.values.lookup(nand, 0, &value_key(table, value, number)) {
            let row = self.entry(nand, entry / 2).1;
            if entry % 2 == 0 {
                found.gone.insert(row)
            } else {
                found.come.insert(row)
            };
        }
        let both: Vec<u64> = found.gone.intersection(&found.come).copied().collect();
        for row in both {
            found.gone.remove(&row);
            found.come.remove(&row);
        }
        found
    }

    /// The same for values above one: by reading all updates.
    pub fn above(&self, nand: &Nand, Selection { table, attribute }: Selection, number: u64) -> Compensation {
        let mut found = Compensation::default();
        for entry in 0..self.updates.count() {
            let (record, row) = self.entry(nand, entry);
            if usize::from(record[0]) == table && Attribute::Value(usize::from(record[1])) == attribute {
                let limit = data::key(attribute, number);
                match (record[6..16] > limit[..], record[16..] > limit[..]) {
                    (true, false) => _ = found.gone.insert(row),
                    (false, true) => _ = found.come.insert(row),
                    _ => (),
                }
            }
        }
        found
    }

    fn entry(&self, nand: &Nand, entry: u64) -> ([u8; ENTRY_BYTES], u64) {
        let mut record = [0; ENTRY_BYTES];
        self.updates.read(nand, entry, 0, &mut record);
        let row = u32::from_le_bytes([record[2], record[3], record[4], record[5]]);
        (record, u64::from(row))
    }

    pub fn reclaim(mut self, nand: &mut Nand) {
        [&mut self.updates, &mut self.fillings, &mut self.deletes]
            .into_iter()
            .for_each(|records| records.reclaim(nand));
        self.values.reclaim(nand);
        self.journal.reclaim(nand);
    }
}
