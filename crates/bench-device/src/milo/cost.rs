//! What is done on the token, and what it costs there.

use counterfoil_flash_sim::{Meters, Prices};
use counterfoil_vault::blocks;

/// Bytes that the co-processor takes at a time, and its nanoseconds for them.
pub const CIPHER: (u64, u64) = (16, 1000);
/// What the paper multiplies its own results with, for effects that its simulator misses.
pub const CALIBRATION: f64 = 1.4;

/// Operations of the part and of the co-processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    pub meters: Meters,
    /// Blocks of 16 bytes that the co-processor took.
    pub cipher: u64,
}

impl Cost {
    /// Of an engine that seals and opens every byte it moves, once.
    pub fn sealed(meters: Meters) -> Self {
        Self { meters, cipher: (meters.read_bytes + meters.program_bytes).div_ceil(CIPHER.0) }
    }

    /// Of our engine, with every block that it had ciphered in this thread.
    pub fn counted(meters: Meters) -> Self {
        Self { meters, cipher: blocks::counted() }
    }

    /// On the counted clock.
    pub fn milliseconds(&self) -> f64 {
        (self.meters.nanoseconds(&Prices::MILO_TOKEN) + self.cipher * CIPHER.1) as f64 / 1e6
    }

    /// What was done since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self { meters: self.meters.since(&earlier.meters), cipher: self.cipher - earlier.cipher }
    }
}
