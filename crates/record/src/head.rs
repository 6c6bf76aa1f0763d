//! The clear head of every ring page: enough to find the newest commit and to derive a key, and never believed.
//!
//! ```text
//! 0 sequence u64 | 8 epoch number u64 | 16 epoch salt [16] | 32 sealed part ... tag [16]
//! ```
//! The head is bound by what the page is sealed at: sequence and epoch make its place.

use counterfoil_vault::Epoch;

use crate::bytes::{array_at, put, u64_at};

pub(crate) const HEAD_BYTES: usize = 32;

/// What a page claims to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) sequence: u64,
    pub(crate) epoch: Epoch,
}

impl Head {
    pub(crate) fn decode(bytes: &[u8]) -> Head {
        let epoch = Epoch { number: u64_at(bytes, 8), salt: array_at(bytes, 16) };
        Head { sequence: u64_at(bytes, 0), epoch }
    }

    pub(crate) fn encode(&self, bytes: &mut [u8]) {
        put(bytes, 0, &self.sequence.to_le_bytes());
        put(bytes, 8, &self.epoch.number.to_le_bytes());
        put(bytes, 16, &self.epoch.salt);
    }
}
