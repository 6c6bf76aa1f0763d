//! A device: a part in memory, a counter that keeps no tag, and memory for a store.

use counterfoil_flash::{BlockNumber, Device, Geometry, MemoryDevice, PageNumber, Read};
use counterfoil_record::alone::{Error, Memory, Moved, Opening, Shape, Standalone, Surroundings, Word};
use counterfoil_vault::{
    Counter, CounterError, CounterKind, CounterValue, DatabaseId, Suite, SystemEntropy, Tag, Vault, VolumeKey,
};

/// The part of the examples: 128 KB.
pub const NAND: Geometry =
    Geometry { page_bytes: 512, block_pages: 16, block_count: 16, erase_before_program: true, grows: false };
pub const SHAPE: Shape =
    Shape { first_block: 0, block_count: 16, index_blocks: 3, page_entries: 17, names: 100, is_salted: false };
/// Changes that may wait for their leaves.
const PENDING: usize = 120;

pub struct Chip {
    device: MemoryDevice,
    counter: Cells,
    suite: Suite,
    pub vault: Vault,
    pub shape: Shape,
}

/// A counter that holds a number and nothing else.
struct Cells(u64);

impl Counter for Cells {
    fn kind(&self) -> CounterKind {
        CounterKind::Nor
    }

    fn value(&mut self) -> Result<CounterValue, CounterError> {
        Ok(CounterValue { value: self.0, tag: None })
    }

    fn step(&mut self, to: u64, _: &Tag) -> Result<(), CounterError> {
        assert!(to == self.0 || to == self.0 + 1, "one step at a time");
        self.0 = to;
        Ok(())
    }

    fn adopt(&mut self, _: u64, _: &Tag) -> Result<(), CounterError> {
        Err(CounterError::Absent)
    }
}

/// The key that every stage has in its key file.
fn key() -> VolumeKey {
    let mut key = [0; 32];
    key.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&0x0123_4567_89AB_CDEF_u64.to_be_bytes()));
    VolumeKey::from_bytes(&key)
}

impl Chip {
    /// A part with nothing on it.
    pub fn new(geometry: Geometry, shape: Shape, suite: Suite) -> Self {
        let device = MemoryDevice::new(geometry).expect("a part");
        Self { device, counter: Cells(0), suite, vault: Vault::new(&key(), DatabaseId([4; 32]), suite), shape }
    }

    /// The same under another identity, in hex.
    pub fn named(self, identity: &str) -> Self {
        let mut id = [0; 32];
        for (byte, at) in id.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&identity[at..at + 2], 16).expect("hex");
        }
        Self { vault: Vault::new(&key(), DatabaseId(id), self.suite), ..self }
    }

    pub fn counted(&self) -> u64 {
        self.counter.0
    }

    /// All that is on the part.
    pub fn dump(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.device.geometry().medium_bytes() as usize];
        self.device.read(PageNumber(0), 0, &mut bytes).expect("read");
        bytes
    }

    /// Puts an image on the part, and the counter where it is said to stand.
    pub fn load(&mut self, image: &[u8], counter: u64) {
        let geometry = self.device.geometry();
        assert_eq!(image.len() as u64, geometry.medium_bytes());
        (0..geometry.block_count).for_each(|block| self.device.erase(BlockNumber(block)).expect("erased"));
        for (number, page) in image.chunks(geometry.page_bytes as usize).enumerate() {
            if page.iter().any(|byte| *byte != 0xFF) {
                self.device.program(PageNumber(number as u64), page).expect("programmed");
            }
        }
        self.counter = Cells(counter);
    }

    pub fn make<W: Word + 'static, T>(
        &mut self,
        user: impl FnOnce(&mut Standalone<'_, MemoryDevice, W>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.with(true, user)
    }

    pub fn open<W: Word + 'static, T>(
        &mut self,
        user: impl FnOnce(&mut Standalone<'_, MemoryDevice, W>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.with(false, user)
    }

    fn with<W: Word + 'static, T>(
        &mut self,
        is_new: bool,
        user: impl FnOnce(&mut Standalone<'_, MemoryDevice, W>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let sizes = self.shape.sizes::<W>(&self.device.geometry())?;
        let (mut pending, mut leaves) = (vec![Moved::EMPTY; PENDING], vec![W::NONE; 16]);
        let mut blocks = vec![W::NONE; self.shape.block_count as usize];
        let (mut live, mut openings) = (vec![0; sizes.live_bytes], vec![Opening::EMPTY; 8]);
        let (mut page, mut scratch) = (vec![0; sizes.page_bytes], vec![0; sizes.page_bytes]);
        let memory = Memory {
            pending: &mut pending,
            leaves: &mut leaves,
            blocks: &mut blocks,
            live: &mut live,
            openings: &mut openings,
            page: &mut page,
            scratch: &mut scratch,
        };
        let mut entropy = SystemEntropy;
        let around = Surroundings {
            device: &mut self.device,
            vault: &self.vault,
            counter: Some(&mut self.counter),
            entropy: Some(&mut entropy),
        };
        let mut store = match is_new {
            true => Standalone::format(around, self.shape, memory)?,
            false => Standalone::open(around, self.shape, memory)?,
        };
        user(&mut store)
    }
}
