//! Where in a TPM the indices of a database are.

use sha2::{Digest, Sha256};

use super::slot::SLOT_BYTES;
use crate::DatabaseId;
use crate::tpm::Index;

/// The handles that are the owner's to give: four neighbours for each database, of which three are used.
const FIRST_HANDLE: u32 = 0x0180_0000;
const PLACES: u32 = 1 << 20;
/// How many places are looked at, from the one that the database's name gives.
const PLACES_TRIED: u32 = 8;

/// The indices of one database.
pub(super) struct Indices {
    pub(super) counter: Index,
    pub(super) slots: [Index; 2],
}

impl Indices {
    /// Places for the indices, the first choice first.
    pub(super) fn places(id: DatabaseId) -> impl Iterator<Item = Indices> {
        let label: [u8; 32] =
            Sha256::new().chain_update(b"counterfoil/tpm/counter\0").chain_update(id.0).finalize().into();
        let first = u32::from_be_bytes([label[0], label[1], label[2], label[3]]) % PLACES;
        (0..PLACES_TRIED).map(move |further| Indices::at(first + further, label))
    }

    fn at(place: u32, label: [u8; 32]) -> Indices {
        let handle = FIRST_HANDLE + 4 * (place % PLACES);
        let slot = |number| Index::plain(handle + number, SLOT_BYTES as u16, label);
        Indices { counter: Index::counter(handle, label), slots: [slot(1), slot(2)] }
    }

    pub(super) fn slot(&self, count: u64) -> &Index {
        &self.slots[(count % 2) as usize]
    }

    pub(super) fn all(&self) -> [&Index; 3] {
        [&self.counter, &self.slots[0], &self.slots[1]]
    }
}
