//! A database on a simulated part, which is created, lost and opened again.

use std::sync::Arc;

use counterfoil_flash_sim::{Part, Scenario, SimulatedDevice};
use counterfoil_log::{Counting, Layout, Media, NoPins, Recovered, Settings, Writer, create};
use counterfoil_relation::{Error, Relations, RowBatch, RowBuilder, RowId, Table, Value, ValueRef};
use counterfoil_vault::{DangerFixedEntropy, DatabaseId, MemoryCounter, Suite, Vault, VolumeKey};

const CACHE: usize = 1 << 18;
/// So few that runs are merged and segments renewed all the time.
const FRESH_ROWS: usize = 6;
const SEGMENT_BYTES: u64 = 1500;

pub struct Rig {
    pub device: SimulatedDevice,
    vault: Arc<Vault>,
    layout: Layout,
    counter: MemoryCounter,
    entropy: DangerFixedEntropy,
    /// A device's history: rows in cells, and no pages kept.
    cells: bool,
}

impl Rig {
    pub fn new(part: Part, cells: bool, scenario: Scenario) -> Rig {
        let mut entropy = DangerFixedEntropy::seeded(scenario.seed);
        let key = VolumeKey::generate(&mut entropy).unwrap();
        let id = DatabaseId::generate(&mut entropy).unwrap();
        let layout = Layout::new(&part.geometry, 8, 16).unwrap();
        let vault = Arc::new(Vault::new(&key, id, Suite::Aes256GcmSiv));
        let counter = MemoryCounter::at(0, None);
        Rig { device: SimulatedDevice::new(part, scenario), vault, layout, counter, entropy, cells }
    }

    pub fn relations(&self) -> Relations {
        let relations = Relations::with_fresh_rows(FRESH_ROWS).with_segment_bytes(SEGMENT_BYTES);
        // In cells as where memory is little: merges of few runs at a time.
        if self.cells { relations.with_cells().with_tier_runs(3).with_merge_bytes(1) } else { relations }
    }

    fn cache(&self) -> usize {
        if self.cells { 0 } else { CACHE }
    }

    fn settings(&self) -> Settings {
        Settings {
            counter: Some(Box::new(self.counter.clone())),
            counting: Counting::EveryCommit,
            pins: Box::new(NoPins),
            headers: None,
        }
    }

    pub fn create(&mut self) -> Option<Writer> {
        let media = Media { reader: Arc::new(self.device.clone()), writer: Box::new(self.device.clone()) };
        let (settings, cache) = (self.settings(), self.cache());
        create(media, self.vault.clone(), self.layout, settings, &mut self.entropy, 0, cache).ok()
    }

    pub fn recover(&self) -> Result<Recovered, counterfoil_log::Error> {
        Recovered::recover(Arc::new(self.device.clone()), self.vault.clone(), self.layout, self.cache())
    }

    pub fn open(&mut self) -> Result<Writer, counterfoil_log::Error> {
        let settings = self.settings();
        self.recover()?.open(Box::new(self.device.clone()), settings, &mut self.entropy)
    }
}

pub fn insert(relations: &Relations, writer: &mut Writer, table: &str, rows: &[Vec<Value>]) -> Result<RowId, Error> {
    let table = relations.table(&*writer, table)?.unwrap();
    relations.insert(writer, &table, &batch(&table, rows))
}

pub fn batch(table: &Table, rows: &[Vec<Value>]) -> RowBatch {
    let mut builder = RowBuilder::new(table.layout());
    for row in rows {
        builder.push(&row.iter().map(Value::borrow).collect::<Vec<ValueRef<'_>>>()).unwrap();
    }
    builder.finish()
}
