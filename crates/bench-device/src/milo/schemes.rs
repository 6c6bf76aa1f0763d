//! Section 7.3: one table of 11 attributes, one index, and the five ways to keep it, behind one face.

use std::sync::Arc;

use counterfoil_flash_sim::{Part, Scenario, SimulatedDevice};
use counterfoil_log::Writer;
use counterfoil_relation::{
    IndexId, IndexOrigin, KeyRange, NewColumn, NewIndex, NewTable, Relations, RowBuilder, Table, Type, Value, ValueRef,
};

use super::cost::Cost;
use super::paper::{Container, Fresh, Key, Nand, Scheme};
use super::token;
use crate::Failure;

/// Bytes of a row.
const ROW_BYTES: usize = 160;
/// Attributes that are not indexed: of 11.
const OTHERS: usize = 10;
/// Rows that are loaded with a commit.
const LOAD_ROWS: usize = 4096;

/// A table with an index. Rows are numbered as they come.
pub trait Subject {
    /// Adds many rows.
    fn load(&mut self, keys: &[u64]) -> Result<(), Failure>;
    /// Adds a row and commits.
    fn insert(&mut self, key: u64) -> Result<(), Failure>;
    /// The numbers of the rows with a key, the newest first.
    fn lookup(&mut self, key: u64) -> Result<Vec<u64>, Failure>;
    /// What was done so far.
    fn cost(&self) -> Cost;
}

/// A key as text of ten bytes.
fn text(key: u64) -> String {
    format!("VAL_{key:06}")
}

/// One of the paper's.
pub struct Chained {
    nand: Nand,
    fresh: Fresh,
    rows: Container,
    journal: Container,
    /// Rows that fill no page yet.
    waiting: usize,
}

impl Chained {
    pub fn new(scheme: Scheme, rows: u64) -> Self {
        let (rows_container, journal) = (Container::default(), Container::default());
        let nand = Nand::new(rows / 500 + 300);
        Self { nand, fresh: Fresh::new(1, scheme), rows: rows_container, journal, waiting: 0 }
    }

    fn key(key: u64) -> [Key; 1] {
        [text(key).into_bytes().try_into().expect("text of ten bytes")]
    }

    fn add_row(&mut self) {
        self.waiting += 1;
        if self.waiting * ROW_BYTES + ROW_BYTES > super::paper::PAGE_BYTES {
            self.rows.append(&mut self.nand, &vec![b'r'; self.waiting * ROW_BYTES]);
            self.waiting = 0;
        }
    }
}

impl Subject for Chained {
    fn load(&mut self, keys: &[u64]) -> Result<(), Failure> {
        for key in keys {
            self.fresh.load(&mut self.nand, &Self::key(*key));
            self.add_row();
        }
        Ok(())
    }

    fn insert(&mut self, key: u64) -> Result<(), Failure> {
        self.fresh.insert(&mut self.nand, &Self::key(key));
        self.add_row();
        self.journal.append(&mut self.nand, &vec![b'j'; ROW_BYTES + self.fresh.row_bytes()]);
        let pages = self.journal.pages();
        self.journal.forget_before(&mut self.nand, pages);
        Ok(())
    }

    fn lookup(&mut self, key: u64) -> Result<Vec<u64>, Failure> {
        let [key] = Self::key(key);
        Ok(self.fresh.lookup(&self.nand, 0, &key))
    }

    fn cost(&self) -> Cost {
        self.nand.cost()
    }
}

/// Ours: sorted runs, merged in tiers as they come.
pub struct Runs {
    device: SimulatedDevice,
    writer: Writer,
    relations: Relations,
    table: Arc<Table>,
    index: IndexId,
}

impl Runs {
    pub fn new(rows: u64) -> Result<Self, Failure> {
        let device = SimulatedDevice::new(Part::milo_token(rows / 200 + 1500), Scenario::calm(1));
        let (mut writer, relations) = token::created(&device)?;
        let others = (0..OTHERS).map(|number| NewColumn::new(format!("a{number}"), Type::Text));
        let columns = [NewColumn::new("key", Type::Char(10))].into_iter().chain(others).collect();
        let new = NewTable { name: "rows".into(), columns, ..NewTable::default() };
        let table = token::change(&relations, &mut writer, |relations, writer| {
            let table = relations.create_table(writer, &new)?;
            relations.create_index(writer, &table, &NewIndex { columns: vec!["key".into()], ..NewIndex::default() })
        })?;
        let index = table.indexes.iter().find(|index| index.origin == IndexOrigin::Created).ok_or("no index")?.id;
        Ok(Self { device, writer, relations, table, index })
    }

    fn add(&mut self, keys: &[u64]) -> Result<(), Failure> {
        let filling = "f".repeat((ROW_BYTES - size_of::<Key>()) / OTHERS);
        let mut builder = RowBuilder::new(self.table.layout());
        for key in keys {
            let key = text(*key);
            let mut values = vec![ValueRef::Text(&key)];
            values.extend(std::iter::repeat_n(ValueRef::Text(&filling), OTHERS));
            builder.push(&values)?;
        }
        let (batch, table) = (builder.finish(), &self.table);
        token::change(&self.relations, &mut self.writer, |relations, writer| relations.insert(writer, table, &batch))?;
        Ok(())
    }
}

impl Subject for Runs {
    fn load(&mut self, keys: &[u64]) -> Result<(), Failure> {
        keys.chunks(LOAD_ROWS).try_for_each(|keys| self.add(keys))
    }

    fn insert(&mut self, key: u64) -> Result<(), Failure> {
        self.add(&[key])
    }

    fn lookup(&mut self, key: u64) -> Result<Vec<u64>, Failure> {
        let range = KeyRange::equal(vec![Value::Text(text(key))]);
        let view = self.writer.snapshot();
        let found = self.relations.candidates(&view, &self.table, self.index, &range, usize::MAX)?;
        Ok(found.unwrap_or_default().iter().rev().map(|row| row.0).collect())
    }

    fn cost(&self) -> Cost {
        Cost::counted(self.device.meters())
    }
}

#[cfg(test)]
mod tests {
    use counterfoil_flash_sim::Dice;

    use super::*;

    /// All five against a list, by rows that are loaded and rows that are inserted.
    #[test]
    fn all_five_find_the_same_rows() {
        for distinct in [3, 300, 6000] {
            let mut dice = Dice::new(distinct);
            let keys: Vec<u64> = (0..6000).map(|_| dice.below(distinct)).collect();
            let chained = [Scheme::FullScan, Scheme::BloomScan, Scheme::Skip, Scheme::BoundedSkip(2)]
                .map(|scheme| Box::new(Chained::new(scheme, 6000)) as Box<dyn Subject>);
            let runs: Box<dyn Subject> = Box::new(Runs::new(6000).expect("room for a table"));
            for mut subject in chained.into_iter().chain([runs]) {
                subject.load(&keys[..5500]).expect("room for rows");
                keys[5500..].iter().for_each(|key| subject.insert(*key).expect("room for a row"));
                for sought in [0, 1, distinct / 2, distinct] {
                    let expected: Vec<u64> = (0..6000).rev().filter(|row| keys[*row as usize] == sought).collect();
                    assert_eq!(subject.lookup(sought).expect("an answer"), expected, "{sought} of {distinct}");
                }
            }
        }
    }
}
