//! What was done, told apart by ring, and what it costs on the counted clock.

use std::ops::{AddAssign, Sub};

use counterfoil_flash_sim::Prices;

/// Which of the two rings of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    Data,
    Index,
}

/// Operations on one ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingWork {
    pub reads: u64,
    pub programs: u64,
    pub erases: u64,
}

/// Operations of a store. Every page that is read is opened, and every page that is programmed was sealed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub data: RingWork,
    pub index: RingWork,
    pub counter_steps: u64,
}

/// What operations cost, in nanoseconds, with the cipher of a store.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    pub prices: Prices,
    pub cipher: CipherPrices,
}

/// What the cipher costs for a page, in nanoseconds, and how many calls of the block cipher that is.
#[derive(Clone, Copy, Debug)]
pub struct CipherPrices {
    pub seal: u64,
    pub open: u64,
    pub block_calls: u64,
}

/// GnatDb, Figure 6: one pass over the 32 cipher blocks of a page of 512 bytes.
const ENCRYPT: u64 = 1_144_000;
const DECRYPT: u64 = 1_241_000;
const MAC: u64 = 1_267_000;
const PASS_BLOCKS: u64 = 32;

impl CipherPrices {
    /// The paper: CBC and CBC-MAC, a pass each.
    pub const TWO_PASSES: Self = Self { seal: ENCRYPT + MAC, open: DECRYPT + MAC, block_calls: 2 * PASS_BLOCKS };

    /// AES-128-OCB3 over a page whose first 8 bytes are clear and whose last 16 are the tag: 30 whole blocks, one more for
    /// the rest, two for the place (associated data), and one each for nonce, tag, and setting up the key.
    pub const OCB3: Self = {
        let (whole, others) = (30, 6);
        Self {
            seal: (whole + others) * ENCRYPT / PASS_BLOCKS,
            open: (whole * DECRYPT + others * ENCRYPT) / PASS_BLOCKS,
            block_calls: whole + others,
        }
    };
}

impl Clock {
    /// Nanoseconds of pages read and opened, pages sealed and programmed, blocks erased, counter steps.
    pub fn parts(&self, work: &Work) -> [u64; 4] {
        let (data, index) = (&work.data, &work.index);
        [
            (data.reads + index.reads) * self.read(),
            (data.programs + index.programs) * self.program(),
            (data.erases + index.erases) * self.prices.erase_block,
            work.counter_steps * self.prices.counter_step,
        ]
    }

    /// Nanoseconds of all of it.
    pub fn nanoseconds(&self, work: &Work) -> u64 {
        self.parts(work).iter().sum()
    }

    /// Nanoseconds of reading and opening a page.
    pub fn read(&self) -> u64 {
        self.prices.read_page + self.cipher.open
    }

    /// Nanoseconds of sealing and programming a page.
    pub fn program(&self) -> u64 {
        self.prices.program_page + self.cipher.seal
    }

    /// Nanoseconds that the cipher alone takes.
    pub fn cipher(&self, work: &Work) -> u64 {
        work.reads() * self.cipher.open + work.programs() * self.cipher.seal
    }
}

impl Work {
    pub fn ring_mut(&mut self, ring: Ring) -> &mut RingWork {
        match ring {
            Ring::Data => &mut self.data,
            Ring::Index => &mut self.index,
        }
    }

    pub fn reads(&self) -> u64 {
        self.data.reads + self.index.reads
    }

    pub fn programs(&self) -> u64 {
        self.data.programs + self.index.programs
    }

    pub fn erases(&self) -> u64 {
        self.data.erases + self.index.erases
    }
}

impl Sub for RingWork {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            programs: self.programs - earlier.programs,
            erases: self.erases - earlier.erases,
        }
    }
}

impl AddAssign for RingWork {
    fn add_assign(&mut self, other: Self) {
        self.reads += other.reads;
        self.programs += other.programs;
        self.erases += other.erases;
    }
}

impl Sub for Work {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            data: self.data - earlier.data,
            index: self.index - earlier.index,
            counter_steps: self.counter_steps - earlier.counter_steps,
        }
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.data += other.data;
        self.index += other.index;
        self.counter_steps += other.counter_steps;
    }
}
