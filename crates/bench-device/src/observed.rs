//! A simulated part whose operations are told apart by ring, and whose erases are counted block by block.

use std::cell::RefCell;
use std::rc::Rc;

use counterfoil_flash::{BlockNumber, Device, Error, Geometry, PageNumber, Read};
use counterfoil_flash_sim::{Part, Scenario, SimulatedDevice};

use crate::work::{Ring, Work};

/// A part under observation. Clones are the same part.
#[derive(Clone)]
pub struct Observed {
    device: SimulatedDevice,
    geometry: Geometry,
    seen: Rc<RefCell<Seen>>,
}

/// Says of a page that is going to be programmed which ring it belongs to.
pub type RingOf = Box<dyn Fn(&[u8], PageNumber) -> Ring>;

struct Seen {
    work: Work,
    blocks: Vec<Block>,
    ring_of: RingOf,
}

#[derive(Clone, Copy)]
struct Block {
    erases: u64,
    /// The ring of what was programmed last in it; none since it was erased.
    ring: Option<Ring>,
}

impl Observed {
    /// A blank part.
    pub fn new(part: Part, ring_of: RingOf) -> Self {
        let geometry = part.geometry;
        let blocks = vec![Block { erases: 0, ring: Some(Ring::Data) }; geometry.block_count as usize];
        let seen = Rc::new(RefCell::new(Seen { work: Work::default(), blocks, ring_of }));
        Self { device: SimulatedDevice::new(part, Scenario::calm(1)), geometry, seen }
    }

    /// What was done so far; counter steps are not seen here.
    pub fn work(&self) -> Work {
        self.seen.borrow().work
    }

    /// How often each block was erased so far.
    pub fn erases(&self) -> Vec<u64> {
        self.seen.borrow().blocks.iter().map(|block| block.erases).collect()
    }
}

impl Read for Observed {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        let mut seen = self.seen.borrow_mut();
        let ring = seen.blocks[self.geometry.block_of(page).0 as usize].ring.unwrap_or(Ring::Data);
        seen.work.ring_mut(ring).reads += 1;
        self.device.read(page, offset, buffer)
    }
}

impl Device for Observed {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), Error> {
        let mut seen = self.seen.borrow_mut();
        let ring = (seen.ring_of)(data, page);
        // A block is erased for the ring that programs its first page.
        let before = seen.blocks[self.geometry.block_of(page).0 as usize].ring.replace(ring);
        let work = seen.work.ring_mut(ring);
        work.programs += 1;
        work.erases += u64::from(before.is_none());
        self.device.program(page, data)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Error> {
        let block_seen = &mut self.seen.borrow_mut().blocks[block.0 as usize];
        (block_seen.erases, block_seen.ring) = (block_seen.erases + 1, None);
        self.device.erase(block)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.device.flush()
    }
}
