//! A database in memory, and small words for writing tests.

use std::sync::Arc;

use counterfoil_flash::{Geometry, MemoryDevice};
use counterfoil_log::{Counting, Layout, Media, NoPins, Recovered, Settings, Snapshot, Writer, create};
use counterfoil_relation::{
    Cause, Error, NewTable, Relations, RowBatch, RowBuilder, RowId, Rule, Table, Value, ValueRef,
};
use counterfoil_vault::{Counter, DangerFixedEntropy, DatabaseId, Entropy, MemoryCounter, Suite, Vault, VolumeKey};

/// What is kept of pages; a device keeps none.
const CACHE: usize = 1 << 20;
const EXTENT_PAGES: u64 = 8;
const RECORD_EXTENTS: u64 = 256;

/// How often to try: a few times, or with COUNTERFOIL_PROOF=full many.
pub fn rounds(few: u64, many: u64) -> u64 {
    if std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full") { many } else { few }
}

pub struct Bench {
    pub device: MemoryDevice,
    vault: Arc<Vault>,
    layout: Layout,
    counter: MemoryCounter,
    entropy: DangerFixedEntropy,
    dice: DangerFixedEntropy,
    pub writer: Writer,
    pub relations: Relations,
    fresh_rows: usize,
    segment_bytes: u64,
    /// Whether this process seals rows in cells and keeps no pages, as a device does.
    cells: bool,
    /// Whether the first process did, which is so of every other seed. Then devices and hosts take turns.
    was_device: bool,
}

/// Where few rows are fresh, segments are small as well: of a few rows, or of some dozens.
pub fn tables(fresh_rows: usize) -> Relations {
    Relations::with_fresh_rows(fresh_rows).with_segment_bytes(segment_bytes(fresh_rows))
}

fn segment_bytes(fresh_rows: usize) -> u64 {
    match fresh_rows {
        0..=2 => 100,
        3..=32 => 3000,
        _ => 64 << 20,
    }
}

fn relations(fresh_rows: usize, segment_bytes: u64, cells: bool) -> Relations {
    let relations = Relations::with_fresh_rows(fresh_rows).with_segment_bytes(segment_bytes);
    // A device has no room for maps of rows, either.
    if cells { relations.with_cells().with_tier_growth(12).with_new_bytes(2 << 10) } else { relations }
}

fn cache(cells: bool) -> usize {
    if cells { 0 } else { CACHE }
}

impl Bench {
    pub fn new(seed: u64) -> Bench {
        Bench::with_fresh_rows(seed, counterfoil_relation::FRESH_ROWS)
    }

    pub fn with_fresh_rows(seed: u64, fresh_rows: usize) -> Bench {
        Bench::with_segments(seed, fresh_rows, segment_bytes(fresh_rows))
    }

    pub fn with_segments(seed: u64, fresh_rows: usize, segment_bytes: u64) -> Bench {
        Bench::with_blocks(seed, fresh_rows, segment_bytes, 1 << 16)
    }

    /// With extents of so many pages.
    pub fn with_extents(fresh_rows: usize, extent_pages: u64) -> Bench {
        Bench::with_all(0, fresh_rows, segment_bytes(fresh_rows), (1 << 18, extent_pages))
    }

    /// On a medium of so many blocks of four pages, of which the records take a thousand.
    pub fn with_blocks(seed: u64, fresh_rows: usize, segment_bytes: u64, block_count: u64) -> Bench {
        Bench::with_all(seed, fresh_rows, segment_bytes, (block_count, EXTENT_PAGES))
    }

    fn with_all(seed: u64, fresh_rows: usize, segment_bytes: u64, (block_count, extent_pages): (u64, u64)) -> Bench {
        let geometry =
            Geometry { page_bytes: 512, block_pages: 4, block_count, erase_before_program: false, grows: true };
        let device = MemoryDevice::new(geometry).unwrap();
        let mut entropy = DangerFixedEntropy::seeded(seed);
        let key = VolumeKey::generate(&mut entropy).unwrap();
        let id = DatabaseId::generate(&mut entropy).unwrap();
        let vault = Arc::new(Vault::new(&key, id, Suite::Aes256GcmSiv));
        let layout = Layout::new(&geometry, extent_pages as u32, RECORD_EXTENTS as u32).unwrap();
        let counter = MemoryCounter::at(0, None);
        let media = Media { reader: Arc::new(device.clone()), writer: Box::new(device.clone()) };
        let settings = settings(&counter);
        let cells = seed % 2 == 1;
        let writer = create(media, vault.clone(), layout, settings, &mut entropy, 0, cache(cells)).unwrap();
        let relations = relations(fresh_rows, segment_bytes, cells);
        let dice = DangerFixedEntropy::seeded(seed);
        Bench {
            device,
            vault,
            layout,
            counter,
            entropy,
            dice,
            writer,
            relations,
            fresh_rows,
            segment_bytes,
            cells,
            was_device: cells,
        }
    }

    /// A number below `sides`. The dice are the tests' own, so that a run stays the same when the log below changes.
    pub fn dice(&mut self, sides: u64) -> u64 {
        let mut bytes = [0; 8];
        self.dice.fill(&mut bytes).unwrap();
        u64::from_le_bytes(bytes) % sides
    }

    /// Ends the process without a farewell, and begins another.
    pub fn reopen(&mut self) {
        self.cells = !self.cells && self.was_device;
        let reader = Arc::new(self.device.clone());
        let recovered = Recovered::recover(reader, self.vault.clone(), self.layout, cache(self.cells)).unwrap();
        let device = Box::new(self.device.clone());
        self.writer = recovered.open(device, settings(&self.counter), &mut self.entropy).unwrap();
        self.relations = relations(self.fresh_rows, self.segment_bytes, self.cells);
    }

    /// The pages in which containers may lie.
    pub fn pages(&self) -> std::ops::Range<u64> {
        let extents = u64::from(self.writer.extents());
        (2 + RECORD_EXTENTS) * EXTENT_PAGES..extents * EXTENT_PAGES
    }

    /// A snapshot as another process sees it, without the writer.
    pub fn recovered(&self) -> Snapshot {
        let device = Arc::new(self.device.clone());
        Recovered::recover(device, self.vault.clone(), self.layout, cache(self.was_device)).unwrap().snapshot()
    }

    /// What one who only reads is shown of the medium as it is, held against the counter.
    pub fn shown(&self) -> Result<Snapshot, counterfoil_log::Error> {
        let recovered = Recovered::recover(Arc::new(self.device.clone()), self.vault.clone(), self.layout, CACHE)?;
        recovered.judge(&self.counter.clone().value().unwrap())?;
        Ok(recovered.snapshot())
    }

    pub fn begin(&mut self) {
        self.writer.begin().unwrap();
    }

    pub fn commit(&mut self) {
        self.writer.commit().unwrap();
        self.relations.committed(&self.writer);
    }

    pub fn rollback(&mut self) {
        self.writer.rollback();
        self.relations.rolled_back(&self.writer);
    }

    /// One statement, undone if it fails.
    pub fn statement<T>(&mut self, run: impl FnOnce(&Relations, &mut Writer) -> Result<T, Error>) -> Result<T, Error> {
        let own = !self.writer.is_active();
        if own {
            self.begin();
        }
        let savepoint = self.writer.savepoint().unwrap();
        let result = run(&self.relations, &mut self.writer);
        if result.is_err() {
            self.writer.rollback_to(&savepoint).unwrap();
            self.relations.rolled_back(&self.writer);
        }
        if own {
            self.commit();
        }
        result
    }

    pub fn create(&mut self, table: &NewTable) -> Arc<Table> {
        self.statement(|relations, writer| relations.create_table(writer, table)).unwrap()
    }

    pub fn table(&self, name: &str) -> Arc<Table> {
        self.relations.table(&self.writer, name).unwrap().unwrap()
    }

    pub fn insert(&mut self, table: &str, rows: &[Vec<Value>]) -> Result<RowId, Error> {
        let table = self.table(table);
        let rows = batch(&table, rows);
        self.statement(|relations, writer| relations.insert(writer, &table, &rows))
    }

    pub fn update(&mut self, table: &str, ids: &[RowId], rows: &[Vec<Value>]) -> Result<u64, Error> {
        let table = self.table(table);
        let rows = batch(&table, rows);
        self.statement(|relations, writer| relations.update(writer, &table, ids, &rows))
    }

    pub fn delete(&mut self, table: &str, ids: &[RowId]) -> Result<u64, Error> {
        let table = self.table(table);
        self.statement(|relations, writer| relations.delete(writer, &table, ids))
    }

    /// All rows that a snapshot of now sees.
    pub fn rows(&mut self, table: &str) -> Vec<(RowId, Vec<Value>)> {
        let table = self.table(table);
        let view = self.writer.pending();
        rows_of(&self.relations, view, &table)
    }

    pub fn values(&mut self, table: &str) -> Vec<Vec<Value>> {
        self.rows(table).into_iter().map(|(_, values)| values).collect()
    }

    /// Verifies everything; nothing may be wrong.
    pub fn verify(&mut self) {
        let view = self.writer.pending();
        let report = self.relations.verify(&view, &mut |_| {}).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    }
}

fn settings(counter: &MemoryCounter) -> Settings {
    let counter: Box<dyn Counter + Send> = Box::new(counter.clone());
    Settings { counter: Some(counter), counting: Counting::EveryCommit, pins: Box::new(NoPins), headers: None }
}

pub fn batch(table: &Table, rows: &[Vec<Value>]) -> RowBatch {
    let mut builder = RowBuilder::new(table.layout());
    for row in rows {
        builder.push(&row.iter().map(Value::borrow).collect::<Vec<ValueRef<'_>>>()).unwrap();
    }
    builder.finish()
}

pub fn rows_of(relations: &Relations, view: Snapshot, table: &Table) -> Vec<(RowId, Vec<Value>)> {
    let mut rows = Vec::new();
    let mut scan = relations.scan(view, table).unwrap();
    while let Some(block) = scan.next(100).unwrap() {
        for row in block.visible_rows() {
            rows.push((block.id(row), block.rows.row(row).unwrap()));
        }
    }
    rows
}

/// The rule that a refused statement would have broken.
pub fn rule<T: std::fmt::Debug>(result: Result<T, Error>) -> Rule {
    match result.map_err(Error::into_cause) {
        Err(Cause::Constraint(violation)) => violation.rule,
        other => panic!("not a broken rule: {other:?}"),
    }
}

pub fn int(value: i32) -> Value {
    Value::Integer(value)
}

pub fn text(value: &str) -> Value {
    Value::Text(value.into())
}
