//! A small device: a part, its counter, its key, and memory for a store.

use std::collections::BTreeMap;

use counterfoil_flash_sim::{Dice, Part, Scenario, SimulatedBanks, SimulatedDevice};
use counterfoil_record::RecordId;
use counterfoil_record::alone::{Error, Memory, Moved, Opening, Shape, Standalone, Surroundings};
use counterfoil_vault::{
    Counter, CounterKind, DangerFixedEntropy, DatabaseId, EccCounter, Entropy, NorCounter, Suite, Vault, VolumeKey,
};

use crate::counter::CutCounter;

/// Whether proofs run at full size.
pub fn is_full_size() -> bool {
    std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full")
}

/// What a store should hold.
pub type Truth = BTreeMap<u32, Vec<u8>>;

/// What a test does to one record.
pub type Changes = Vec<(u32, Option<Vec<u8>>)>;

pub struct Chip {
    pub device: SimulatedDevice,
    pub counter: CutCounter,
    /// Banks of cells with a counter that is used instead, and its kind.
    pub banks: Option<(SimulatedBanks, CounterKind)>,
    /// Whether the store is told of a counter at all.
    pub has_counter: bool,
    /// The generator of salted stores.
    pub entropy: DangerFixedEntropy,
    pub vault: Vault,
    pub shape: Shape,
    /// How much memory the store gets.
    pub pending: usize,
    pub leaves: usize,
    pub has_live: bool,
    /// Images behind their counter that are opened all the same.
    pub rollbacks_max: u16,
}

/// The buffers of a store.
pub struct Buffers {
    pending: Vec<Moved<u16>>,
    leaves: Vec<u16>,
    blocks: Vec<u16>,
    live: Vec<u8>,
    openings: Vec<Opening>,
    page: Vec<u8>,
    scratch: Vec<u8>,
}

impl Chip {
    /// A part with nothing on it.
    pub fn new(part: Part, index_blocks: u32) -> Self {
        Self::keyed(part, index_blocks, 0)
    }

    /// The same, under a key of its own.
    pub fn keyed(part: Part, index_blocks: u32, key: u64) -> Self {
        let blocks = part.geometry.block_count as u32;
        let shape =
            Shape { first_block: 0, block_count: blocks, index_blocks, page_entries: 17, names: 0, is_salted: false };
        let mut bytes = [3; 32];
        bytes[..8].copy_from_slice(&key.to_le_bytes());
        let vault = Vault::new(&VolumeKey::from_bytes(&bytes), DatabaseId([4; 32]), Suite::AsconAead128);
        let device = SimulatedDevice::new(part, Scenario::calm(1));
        Self {
            device,
            counter: CutCounter::at(0),
            banks: None,
            has_counter: true,
            entropy: DangerFixedEntropy::seeded(key),
            vault,
            shape,
            pending: 120,
            leaves: 16,
            has_live: true,
            rollbacks_max: 0,
        }
    }

    /// What a cut at this moment would leave of the part, in another one, with a counter that stands where this one does.
    pub fn copied(&self) -> Self {
        self.copied_to(self.device.part())
    }

    /// The same in a part with other vices.
    pub fn copied_to(&self, part: Part) -> Self {
        let mut copy = Self::new(part, self.shape.index_blocks);
        copy.device.restore(self.device.image());
        copy.counter = self.counter.copied();
        copy.banks = self.banks.as_ref().map(|(banks, kind)| (banks.copied(), *kind));
        (copy.pending, copy.leaves, copy.has_live) = (self.pending, self.leaves, self.has_live);
        copy
    }

    fn buffers(&self) -> Buffers {
        let sizes = self.shape.sizes::<u16>(&self.device.part().geometry).expect("a shape");
        Buffers {
            pending: vec![Moved::EMPTY; self.pending],
            leaves: vec![0; self.leaves],
            blocks: vec![0; self.shape.block_count as usize],
            live: vec![0; if self.has_live { sizes.live_bytes } else { 0 }],
            openings: vec![Opening::EMPTY; 8],
            page: vec![0; sizes.page_bytes],
            scratch: vec![0; sizes.page_bytes],
        }
    }

    /// Makes a store, or opens the one that is there, and hands it over.
    pub fn with<T>(
        &mut self,
        is_new: bool,
        user: impl FnOnce(&mut Standalone<'_, SimulatedDevice, u16>) -> T,
    ) -> Result<T, Error> {
        let mut buffers = self.buffers();
        let memory = Memory {
            pending: &mut buffers.pending,
            leaves: &mut buffers.leaves,
            blocks: &mut buffers.blocks,
            live: &mut buffers.live,
            openings: &mut buffers.openings,
            page: &mut buffers.page,
            scratch: &mut buffers.scratch,
        };
        let mut on_chip = self.banks.as_ref().map(|(banks, kind)| counter_in(banks, *kind));
        let around = Surroundings {
            device: &mut self.device,
            vault: &self.vault,
            counter: self.has_counter.then_some(match &mut on_chip {
                Some(counter) => &mut **counter,
                None => &mut self.counter as &mut dyn Counter,
            }),
            entropy: self.shape.is_salted.then_some(&mut self.entropy as &mut dyn Entropy),
        };
        let mut store = match (is_new, self.rollbacks_max) {
            (true, _) => Standalone::format(around, self.shape, memory)?,
            (false, 0) => Standalone::open(around, self.shape, memory)?,
            (false, most) => Standalone::open_despite_rollback(around, self.shape, memory, most)?,
        };
        store.check();
        Ok(user(&mut store))
    }
}

/// The counter in these banks, as it is after a power-on.
pub fn counter_in(banks: &SimulatedBanks, kind: CounterKind) -> Box<dyn Counter> {
    match kind {
        CounterKind::Nor => Box::new(NorCounter::new(banks.clone()).expect("a shape")),
        _ => Box::new(EccCounter::new(banks.clone()).expect("a shape")),
    }
}

/// Everything a store holds, by reading each id.
pub fn contents(store: &mut Standalone<'_, SimulatedDevice, u16>, ids: u32) -> Truth {
    try_contents(store, ids).unwrap_or_else(|error| panic!("{error}"))
}

/// The same, where reading may fail.
pub fn try_contents(store: &mut Standalone<'_, SimulatedDevice, u16>, ids: u32) -> Result<Truth, Error> {
    let mut buffer = [0; 4096];
    let mut found = Truth::new();
    for id in 0..ids {
        match store.read(RecordId(id), &mut buffer) {
            Ok(bytes) => drop(found.insert(id, buffer[..bytes].to_vec())),
            Err(Error::NoRecord) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(found)
}

/// Holds what was found against what should be there, and names one record that differs.
pub fn compare(found: &Truth, truth: &Truth, when: &str) {
    let differs = |id: &&u32| found.get(id) != truth.get(id);
    if let Some(id) = found.keys().chain(truth.keys()).find(differs) {
        panic!("{when}: record {id} is {:?} and should be {:?}", found.get(id), truth.get(id));
    }
}

/// Some changes of records below `ids`.
pub fn random_changes(dice: &mut Dice, ids: u32, bytes_max: u64, changes_max: u64) -> Changes {
    let change = |dice: &mut Dice| {
        let id = dice.below(u64::from(ids)) as u32;
        let byte = dice.below(256) as u8;
        let record = (!dice.once_in(5)).then(|| vec![byte; dice.below(bytes_max + 1) as usize]);
        (id, record)
    };
    (0..1 + dice.below(changes_max)).map(|_| change(dice)).collect()
}

pub fn borrowed(changes: &Changes) -> Vec<(RecordId, Option<&[u8]>)> {
    changes.iter().map(|(id, record)| (RecordId(*id), record.as_deref())).collect()
}

pub fn apply(truth: &mut Truth, changes: &Changes) {
    for (id, record) in changes {
        match record {
            Some(record) => drop(truth.insert(*id, record.clone())),
            None => drop(truth.remove(id)),
        }
    }
}
