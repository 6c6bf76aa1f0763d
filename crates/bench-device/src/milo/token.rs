//! The database of section 7 on a simulated token.

use std::collections::BTreeMap;
use std::sync::Arc;

use counterfoil_flash_sim::{Part, Scenario, SimulatedDevice};
use counterfoil_log::{Counting, Layout, Media, NoPins, Settings, Writer, create};
use counterfoil_relation::{
    Action, Comparison, Constant, ContainerScratch, Error, IndexUse, NewColumn, NewForeignKey, NewIndex, NewKey,
    NewTable, Output, Place, Plan, Relations, RowBatch, RowBuilder, RowId, Source, Table, Test, Type, Vacuum, ValueRef,
};
use counterfoil_vault::{DangerFixedEntropy, DatabaseId, MemoryCounter, Suite, Vault, VolumeKey};

use super::cost::Cost;
use super::data::{self, Change, Shown};
use super::figure7::{self, INDEXED, TABLES};
use super::table1::{Asked, Is, Query};
use crate::Failure;

/// Pages in an extent: a block.
const EXTENT_PAGES: u32 = 64;
/// Extents of the record store.
const WINDOW_EXTENTS: u32 = 16;
/// Bytes on the medium for a row of T0, what it joins and all that is in the making among them: a VACUUM in one commit gives nothing
/// back before its end.
const BYTES_A_ROW: u64 = 4000;
/// Rows that are loaded with a commit.
const LOAD_ROWS: u64 = 4096;
/// Bytes of pages that are kept.
const CACHE_BYTES: usize = 8 << 10;
/// What 64 KB are for, beside the pages that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Answers: entries of new rows, deletes and updates are in memory beside them.
    Answers,
    /// Everything: so much of it is for those entries, and answers have the rest.
    Everything,
}

/// Memory for entries of new rows, deletes and updates where everything is held to 64 KB.
const NEW_BYTES: usize = 16 << 10;

impl Held {
    fn new_bytes(self) -> usize {
        if self == Held::Everything { NEW_BYTES } else { usize::MAX }
    }

    /// Memory that a query is answered in.
    fn query_bytes(self) -> usize {
        (64 << 10) - CACHE_BYTES - if self == Held::Everything { NEW_BYTES } else { 0 }
    }
}

/// Rows whose entries are fresh at most.
const FRESH_ROWS: usize = 1024;

/// What a query came to.
pub struct Answer {
    /// The values of A1 that are shown, row by row.
    pub rows: Vec<Shown>,
    /// What named rows of T0 that came into question.
    pub by: Vec<String>,
}

/// What steps of maintenance came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Steps {
    pub count: u64,
    pub milliseconds: f64,
    pub longest: f64,
    pub read_bytes: u64,
    pub program_bytes: u64,
}

impl Steps {
    fn add(&mut self, is_one: bool, cost: &Cost) {
        self.count += u64::from(is_one);
        self.milliseconds += cost.milliseconds();
        self.longest = self.longest.max(cost.milliseconds());
        self.read_bytes += cost.meters.read_bytes;
        self.program_bytes += cost.meters.program_bytes;
    }
}

/// What is left beside rows and one run for each index, of all tables.
#[derive(Clone, Copy, Debug, Default)]
pub struct Left {
    pub deleted: u64,
    pub updates: u64,
    pub log_bytes: u64,
    pub indexes: usize,
    pub runs: usize,
    pub run_bytes: u64,
    /// Entries that no run has yet.
    pub fresh_entries: u64,
}

/// A token.
pub struct Token {
    device: SimulatedDevice,
    writer: Writer,
    relations: Relations,
    held: Held,
    tables: BTreeMap<&'static str, Arc<Table>>,
    /// Rows that T0 had when the values of all tables were chosen.
    scale: u64,
    /// The next row of each table.
    next: BTreeMap<&'static str, u64>,
    /// Maintenance since it was asked for last.
    steps: Steps,
}

impl Token {
    /// The tables, loaded, indexed and reorganized.
    pub fn loaded(rows: u64, held: Held) -> Result<Self, Failure> {
        let mut token = Self::empty(rows, held)?;
        for table in &TABLES {
            token.load(table, table.rows(rows))?;
        }
        token.reorganize()?;
        Ok(token)
    }

    /// The tables, to which all rows are added one by one, those that are referenced first.
    pub fn grown(rows: u64, held: Held) -> Result<Self, Failure> {
        let mut token = Self::empty(rows, held)?;
        for table in &TABLES {
            (0..table.rows(rows)).try_for_each(|_| token.insert(table.name))?;
        }
        Ok(token)
    }

    /// The tables, empty.
    fn empty(rows: u64, held: Held) -> Result<Self, Failure> {
        let blocks = (rows * BYTES_A_ROW).div_ceil(u64::from(EXTENT_PAGES) * 2048) + 1024;
        let device = SimulatedDevice::new(Part::milo_token(blocks), Scenario::calm(1));
        let (writer, relations) = created(&device)?;
        let relations = relations.with_new_bytes(held.new_bytes());
        let next = TABLES.iter().map(|table| (table.name, 0)).collect();
        let (tables, steps) = (BTreeMap::new(), Steps::default());
        let mut token = Token { device, writer, relations, held, tables, scale: rows, next, steps };
        for table in &TABLES {
            token.create(table)?;
        }
        Ok(token)
    }

    fn change<T>(&mut self, body: impl FnOnce(&Relations, &mut Writer) -> Result<T, Error>) -> Result<T, Failure> {
        let done = commit(&self.relations, &mut self.writer, body)?;
        self.maintain()?;
        Ok(done)
    }

    /// A step of what is due; whether there was one.
    fn maintain(&mut self) -> Result<bool, Failure> {
        let before = self.cost();
        let is_one = maintain(&self.relations, &mut self.writer)?;
        self.steps.add(is_one, &self.cost().since(&before));
        Ok(is_one)
    }

    /// Steps until nothing is due any more; all that there were since this was called last.
    pub fn maintained(&mut self) -> Result<Steps, Failure> {
        while self.maintain()? {}
        Ok(std::mem::take(&mut self.steps))
    }

    /// A VACUUM of all tables, a step and a commit at a time.
    pub fn merged(&mut self) -> Result<Steps, Failure> {
        let mut steps = Steps::default();
        for id in self.tables.values().map(|table| table.id) {
            let mut vacuum = Vacuum::of(id);
            loop {
                let before = self.cost();
                let step = |relations: &Relations, writer: &mut Writer| relations.vacuum_step(writer, &mut vacuum);
                let is_one = commit(&self.relations, &mut self.writer, step)?;
                steps.add(is_one, &self.cost().since(&before));
                if !is_one {
                    break;
                }
            }
        }
        Ok(steps)
    }

    /// What the steps leave.
    pub fn left(&self) -> Result<Left, Failure> {
        let mut left = Left::default();
        for table in self.tables.values() {
            let used = self.relations.figures(&self.writer, table)?;
            left.deleted += used.deleted;
            left.updates += used.updates;
            left.log_bytes += used.log_bytes;
            left.indexes += used.indexes.len();
            left.run_bytes += used.indexes.iter().map(IndexUse::bytes).sum::<u64>();
            left.runs += used.indexes.iter().map(|index| index.runs.len()).sum::<usize>();
            left.fresh_entries += used.indexes.iter().map(|index| index.fresh_rows).sum::<u64>();
        }
        Ok(left)
    }

    fn create(&mut self, table: &figure7::Table) -> Result<(), Failure> {
        let references = table.references.iter().map(|other| NewForeignKey {
            columns: vec![(*other).into()],
            parent: (*other).into(),
            on_delete: Action::Cascade,
            ..NewForeignKey::default()
        });
        let kind = |name: &str| match name {
            "a1" => Type::Char(table.a1_bytes() as u32),
            name if INDEXED.contains(&name) => Type::Char(10),
            _ => Type::BigInt,
        };
        let new = NewTable {
            name: table.name.into(),
            columns: table.columns().iter().map(|name| NewColumn::new(name.as_str(), kind(name)).not_null()).collect(),
            primary_key: Some(NewKey { name: None, columns: vec!["id".into()] }),
            foreign_keys: references.collect(),
            ..NewTable::default()
        };
        let made = self.change(|relations, writer| {
            let mut made = relations.create_table(writer, &new)?;
            for column in INDEXED {
                let index = NewIndex { columns: vec![column.into()], ..NewIndex::default() };
                made = relations.create_index(writer, &made, &index)?;
            }
            Ok(made)
        })?;
        self.tables.insert(table.name, made);
        Ok(())
    }

    fn load(&mut self, table: &figure7::Table, count: u64) -> Result<(), Failure> {
        let from = self.next[table.name];
        for first in (from..from + count).step_by(LOAD_ROWS as usize) {
            let rows = first..(first + LOAD_ROWS).min(from + count);
            self.add(table, rows)?;
        }
        Ok(())
    }

    /// Adds rows of a table with one commit.
    fn add(&mut self, table: &figure7::Table, rows: std::ops::Range<u64>) -> Result<(), Failure> {
        let stored = self.tables[table.name].clone();
        let mut builder = RowBuilder::new(stored.layout());
        for id in rows.clone() {
            push(&mut builder, table, id, self.scale)?;
        }
        let batch = builder.finish();
        self.change(|relations, writer| relations.insert(writer, &stored, &batch))?;
        self.next.insert(table.name, rows.end);
        Ok(())
    }

    /// Adds one row to a table, with a commit of its own.
    pub fn insert(&mut self, name: &str) -> Result<(), Failure> {
        let table = TABLES.iter().find(|table| table.name == name).ok_or("no such table")?;
        let next = self.next[table.name];
        self.add(table, next..next + 1)
    }

    /// Deletes or updates a row, and commits.
    pub fn wear(&mut self, change: &Change) -> Result<(), Failure> {
        let (number, row) = match *change {
            Change::Delete { table, row } => {
                let table = self.tables[TABLES[table].name].clone();
                self.change(|relations, writer| relations.delete(writer, &table, &[RowId(row)]))?;
                return Ok(());
            }
            Change::Value { table, row, .. } | Change::Filling { table, row } => (table, row),
        };
        let table = self.tables[TABLES[number].name].clone();
        let mut builder = RowBuilder::new(table.layout());
        push(&mut builder, &TABLES[number], row, self.scale)?;
        let mut batch = builder.finish();
        match *change {
            Change::Value { value, number, .. } => {
                let column = table.column(INDEXED[value]).map_or(0, |(place, _)| place);
                batch.set(0, column, ValueRef::Text(&figure7::value(number)))?;
            }
            _ => batch.set(0, table.columns.len() - 1, ValueRef::Text(&data::filling(number, row)))?,
        }
        self.change(|relations, writer| relations.update(writer, &table, &[RowId(row)], &batch))?;
        Ok(())
    }

    /// All tables and indexes in one piece each.
    pub fn reorganize(&mut self) -> Result<(), Failure> {
        self.change(|relations, writer| relations.vacuum(writer, None))
    }

    pub fn cost(&self) -> Cost {
        Cost::counted(self.device.meters())
    }

    /// Asks a query: the executor answers it, in its budget.
    pub fn ask(&mut self, query: &Query) -> Result<Answer, Failure> {
        let plan = self.plan(query)?;
        let mut answer = self.relations.answer(self.writer.snapshot(), plan, self.held.query_bytes())?;
        self.writer.begin()?;
        let mut scratch = ContainerScratch::create(&mut self.writer)?;
        let mut rows = Vec::new();
        while let Some(batch) = answer.next(&self.relations, &mut scratch)? {
            for row in 0..batch.count() {
                rows.push(shown(&batch, row)?);
            }
        }
        self.writer.rollback();
        Ok(Answer { rows, by: answer.by().to_vec() })
    }

    fn plan(&self, query: &Query) -> Result<Plan, Failure> {
        let sources = self.sources(query);
        let place = |name: &&str| {
            let source = sources.iter().position(|source| source.table.name == *name);
            source.map(|source| Place { source, column: sources[source].table.columns.len() - 1 })
        };
        let places: Option<Vec<Place>> = query.shown.iter().map(place).collect();
        let outputs = places.ok_or("a table is shown that is not read")?.into_iter().map(Output::Column).collect();
        Ok(Plan { sources, outputs, shown: query.shown.len(), in_any_order: true, ..Plan::default() })
    }

    fn sources(&self, query: &Query) -> Vec<Source> {
        let root = &self.tables["t0"];
        let source = |name: &&str| {
            let table = self.tables[name].clone();
            let path = root.joins.iter().position(|join| join.steps.last().is_some_and(|step| step.to == table.id));
            let asked = query.asked.iter().filter(|asked| asked.table == *name);
            let tests = asked.map(|asked| test(&table, asked)).collect();
            Source { table, path, tests, is_optional: false }
        };
        query.tables().iter().map(source).collect()
    }
}

/// An empty database on a part.
pub fn created(device: &SimulatedDevice) -> Result<(Writer, Relations), Failure> {
    let mut entropy = DangerFixedEntropy::seeded(1);
    let key = VolumeKey::generate(&mut entropy)?;
    let id = DatabaseId::generate(&mut entropy)?;
    let vault = Arc::new(Vault::new(&key, id, Suite::Aes256GcmSiv));
    let layout = Layout::new(&device.part().geometry, EXTENT_PAGES, WINDOW_EXTENTS)?;
    let media = Media { reader: Arc::new(device.clone()), writer: Box::new(device.clone()) };
    let settings = Settings {
        counter: Some(Box::new(MemoryCounter::at(0, None))),
        counting: Counting::EveryCommit,
        pins: Box::new(NoPins),
        headers: None,
    };
    let writer = create(media, vault, layout, settings, &mut entropy, 0, CACHE_BYTES)?;
    Ok((writer, Relations::with_fresh_rows(FRESH_ROWS).with_head_bytes(0).with_cells()))
}

/// A change, committed, and what is then due.
pub fn change<T>(
    relations: &Relations,
    writer: &mut Writer,
    body: impl FnOnce(&Relations, &mut Writer) -> Result<T, Error>,
) -> Result<T, Failure> {
    let done = commit(relations, writer, body)?;
    maintain(relations, writer)?;
    Ok(done)
}

fn commit<T>(
    relations: &Relations,
    writer: &mut Writer,
    body: impl FnOnce(&Relations, &mut Writer) -> Result<T, Error>,
) -> Result<T, Failure> {
    writer.begin()?;
    let done = body(relations, writer)?;
    writer.commit()?;
    relations.committed(writer);
    Ok(done)
}

/// A step of what is due, in a commit of its own; whether there was one.
fn maintain(relations: &Relations, writer: &mut Writer) -> Result<bool, Failure> {
    writer.begin()?;
    let is_one = relations.maintain(writer)?;
    match is_one {
        true => drop(writer.commit()?),
        false => writer.rollback(),
    }
    relations.committed(writer);
    Ok(is_one)
}

/// What is shown of a row of an answer.
fn shown(batch: &RowBatch, row: usize) -> Result<Shown, Error> {
    let value = |column| match batch.value(row, column)? {
        ValueRef::Text(text) => Ok(text.into()),
        _ => Err(Error::misuse("A1 is a text")),
    };
    (0..batch.layout().columns().len()).map(value).collect()
}

fn test(table: &Table, Asked { column, is, .. }: &Asked) -> Test {
    let column = table.column(column).map_or(0, |(place, _)| place);
    let (comparison, constant) = match is {
        Is::Id(id) => (Comparison::Equal, Constant::Whole(*id as i64)),
        Is::Equal(value) => (Comparison::Equal, Constant::Bytes(value.clone().into_bytes())),
        Is::Above(value) => (Comparison::Greater, Constant::Bytes(value.clone().into_bytes())),
    };
    Test::Compare { column, comparison, constant }
}

fn push(builder: &mut RowBuilder, table: &figure7::Table, id: u64, scale: u64) -> Result<(), Error> {
    let row = table.row(id, scale);
    let mut values = vec![ValueRef::BigInt(row.id)];
    values.extend(row.references.iter().map(|reference| ValueRef::BigInt(*reference)));
    values.extend(row.values.iter().map(|value| ValueRef::Text(value)));
    values.push(ValueRef::Text(&row.a1));
    builder.push(&values)
}
