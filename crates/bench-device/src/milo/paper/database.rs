//! The database of section 7 as the paper keeps it: six tables, 64 indexes for selection, joins precomputed (4.1, 4.2).
//!
//! ```text
//! row    id 8 | references 16 | DUP10 DUP100 MS1 MS10, 10 each | A1 96        160 bytes, 12 a page
//! joins  for each table that is joined  its row's number 4
//! ```

use super::bloom::Key;
use super::changes::Changes;
use super::container::Container;
use super::fresh::{Fresh, Scheme};
use super::nand::Nand;
use super::ranges::Ranges;
use super::records::Records;
use super::sorted::Sorted;
use crate::milo::cost::Cost;
use crate::milo::data::{self, Attribute, Change, Data, Selection, T0};
use crate::milo::figure7::{INDEXED, TABLES};
use crate::milo::figure8::BOUND;

pub const ROW_BYTES: usize = 160;
const VALUES_AT: usize = 24;
const VALUE_BYTES: usize = size_of::<Key>();
pub const FILLING_AT: usize = VALUES_AT + 4 * VALUE_BYTES;
pub const FILLING_BYTES: usize = ROW_BYTES - FILLING_AT;
const ID_BYTES: usize = 4;

/// A table.
pub struct Stored {
    pub selections: Vec<Selection>,
    pub rows: Records,
    pub joins: Option<Records>,
    /// Of the rows before those that are fresh.
    pub sorted: Vec<Sorted>,
    pub sorted_rows: u64,
    pub fresh: Fresh,
    /// The attribute that is asked for by ranges (7.4).
    pub ranges: Ranges,
}

pub struct Database {
    pub nand: Nand,
    pub tables: Vec<Stored>,
    pub changes: Changes,
    journal: Container,
}

/// The attribute of T5 that is asked for by ranges, in T0.
pub fn ranged() -> Selection {
    let value = INDEXED.iter().position(|name| *name == "dup100").expect("an indexed attribute");
    Selection { table: data::number("t5"), attribute: Attribute::Value(value) }
}

impl Stored {
    fn empty(table: usize) -> Self {
        let selections = data::selections(table);
        let joins = data::joined(table).len() - 1;
        Self {
            rows: Records::new(ROW_BYTES),
            joins: (joins > 0).then(|| Records::new(joins * ID_BYTES)),
            sorted: Vec::new(),
            sorted_rows: 0,
            fresh: Fresh::new(selections.len(), Scheme::BoundedSkip(BOUND)),
            ranges: Ranges::default(),
            selections,
        }
    }

    /// The place of an index.
    pub fn index(&self, selection: Selection) -> usize {
        self.selections.iter().position(|known| *known == selection).expect("an attribute that is indexed")
    }
}

impl Database {
    /// All rows of `data`, reorganized.
    pub fn reorganized(data: &Data) -> Self {
        let bytes: u64 = (0..TABLES.len()).map(|table| data.rows(table) * 700).sum();
        let mut nand = Nand::new(3 * bytes / (64 * 2048) + 4000);
        let tables = (0..TABLES.len()).map(|table| written(&mut nand, data, table)).collect();
        Self { nand, tables, changes: Changes::default(), journal: Container::default() }
    }

    pub fn cost(&self) -> Cost {
        self.nand.cost()
    }

    /// Inserts the next row of a table and commits.
    pub fn insert(&mut self, data: &Data, table: usize) {
        let (row, joined) = (self.tables[table].rows.count(), self.joined_by(data, table));
        let keys: Vec<Key> = self.keys_of(data, table, row, &joined);
        let stored = &mut self.tables[table];
        stored.fresh.insert(&mut self.nand, &keys);
        let bytes = stored.fresh.row_bytes() + ROW_BYTES + stored.joins.as_ref().map_or(0, Records::record_bytes);
        push(&mut self.nand, data, table, row, stored);
        if table == T0 {
            stored.ranges.push(&mut self.nand, data.number_of(T0, row, ranged()));
        }
        self.journal.append(&mut self.nand, &vec![b'j'; bytes]);
        let pages = self.journal.pages();
        self.journal.forget_before(&mut self.nand, pages);
    }

    /// The rows that the next row of a table joins: its references are its own, what those join is read.
    fn joined_by(&self, data: &Data, table: usize) -> Vec<(usize, u64)> {
        let row = self.tables[table].rows.count();
        let mut joined = Vec::new();
        for parent in data::references(table) {
            let parent_row = data.row_of(table, row, parent);
            joined.push((parent, parent_row));
            joined.extend(self.joins(parent, parent_row));
        }
        joined
    }

    /// The rows of other tables that a row joins.
    pub fn joins(&self, table: usize, row: u64) -> Vec<(usize, u64)> {
        let Some(joins) = &self.tables[table].joins else { return Vec::new() };
        let mut record = vec![0; joins.record_bytes()];
        joins.read(&self.nand, row, 0, &mut record);
        let ids = record.chunks_exact(ID_BYTES).map(|id| u64::from(u32::from_le_bytes([id[0], id[1], id[2], id[3]])));
        data::joined(table).into_iter().skip(1).zip(ids).collect()
    }

    /// The keys of a new row in all indexes of its table: those of other tables are read.
    fn keys_of(&self, data: &Data, table: usize, row: u64, joined: &[(usize, u64)]) -> Vec<Key> {
        let mut read = std::collections::BTreeMap::new();
        let selections = &self.tables[table].selections;
        let key = |selection: &Selection| {
            let Some((other, other_row)) = joined.iter().find(|(other, _)| *other == selection.table) else {
                return data::key(selection.attribute, data.number_of(table, row, *selection));
            };
            let Attribute::Value(value) = selection.attribute else { return data::key(Attribute::Id, *other_row) };
            let values = read.entry(*other).or_insert_with(|| self.values(*other, *other_row));
            values[value]
        };
        selections.iter().map(key).collect()
    }

    /// The indexed attributes of a row.
    pub fn values(&self, table: usize, row: u64) -> [Key; 4] {
        let mut bytes = [0; 4 * VALUE_BYTES];
        self.tables[table].rows.read(&self.nand, row, VALUES_AT, &mut bytes);
        std::array::from_fn(|value| bytes[value * VALUE_BYTES..][..VALUE_BYTES].try_into().expect("ten bytes"))
    }

    /// Logs a change; `before` is all rows as they were before it.
    pub fn change(&mut self, change: &Change, before: &Data) {
        self.changes.note(&mut self.nand, change, before);
    }
}

/// Appends a row and what it joins.
fn push(nand: &mut Nand, data: &Data, table: usize, row: u64, stored: &mut Stored) {
    let mut bytes = [b'a'; ROW_BYTES];
    bytes[..8].copy_from_slice(&row.to_le_bytes());
    for value in 0..INDEXED.len() {
        let attribute = Attribute::Value(value);
        let number = data.number_of(table, row, Selection { table, attribute });
        bytes[VALUES_AT + value * VALUE_BYTES..][..VALUE_BYTES].copy_from_slice(&data::key(attribute, number));
    }
    bytes[FILLING_AT..FILLING_AT + 8].copy_from_slice(&row.to_le_bytes());
    stored.rows.push(nand, &bytes);
    if let Some(joins) = &mut stored.joins {
        let joined = data::joined(table).into_iter().skip(1);
        let ids = joined.flat_map(|other| (data.row_of(table, row, other) as u32).to_le_bytes());
        joins.push(nand, &ids.collect::<Vec<u8>>());
    }
}

/// A table as a reorganization writes it: all rows under their numbers, and indexes of those that are there.
pub fn written(nand: &mut Nand, data: &Data, table: usize) -> Stored {
    let mut stored = Stored::empty(table);
    let rows = data.rows(table);
    (0..rows).for_each(|row| push(nand, data, table, row, &mut stored));
    let there: Vec<u32> = (0..rows).filter(|row| data.is_there(table, *row)).map(|row| row as u32).collect();
    for selection in &stored.selections {
        let number = |row: &u32| data.number_of(table, u64::from(*row), *selection) as u32;
        let mut entries: Vec<(u32, u32)> = there.iter().map(|row| (number(row), *row)).collect();
        entries.sort_unstable();
        let entries = entries.into_iter().map(|(number, row)| (data::key(selection.attribute, u64::from(number)), row));
        stored.sorted.push(Sorted::build(nand, entries));
    }
    stored.sorted_rows = rows;
    stored
}
