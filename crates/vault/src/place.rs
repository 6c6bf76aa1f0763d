//! Where a page belongs: what the caller predicts, never what the page says of itself.

/// Bytes of the random value of one opening.
pub const SALT_BYTES: usize = 16;

/// One opening for writing: the value of the counter after it, and its random bytes.
///
/// The bytes are all zero where there is no generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch {
    /// The counter after the opening.
    pub number: u64,
    /// The random bytes of the opening; no secret, but never the same twice.
    pub salt: [u8; SALT_BYTES],
}

/// What a page is for. Each kind has page keys of its own. The number is what is sealed (SPEC, "vault: kinds").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// A commit frame of the spine.
    Frame = 1,
    /// An opening root; sealed by [`crate::Vault::seal_opening`] only.
    Opening = 2,
    /// A page of a container.
    Container = 3,
    /// A page of the record store's data ring.
    RecordData = 4,
    /// A page of the record store's index ring.
    RecordIndex = 5,
    /// Reserved for spilled working data that stands on the volume itself.
    Spill = 6,
    /// A page of small sealed cells that is also sealed as a whole.
    Cells = 7,
    /// A page of a nameless pool; sealed by [`crate::PageKey::seal_nameless`] only.
    Nameless = 8,
    /// A sector of a page of a container; its position is that of the page times the sectors of a page, and its place among them.
    Sector = 9,
}

impl Kind {
    /// The number that is sealed.
    pub fn number(self) -> u8 {
        self as u8
    }
}

/// The place of a page: what it must be to be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// What the page is for.
    pub kind: Kind,
    /// The number of the allocation that holds it; never used again for another.
    pub allocation: u64,
    /// The page within the allocation; the nonce.
    pub position: u32,
    /// The opening under which it was written.
    pub epoch: Epoch,
}

/// Bytes of the associated data of a page.
pub(crate) const ASSOCIATED_BYTES: usize = 24;

/// `kind u8, zero [3], position u32, allocation u64, epoch number u64`.
pub(crate) fn associated_data(kind: Kind, allocation: u64, position: u32, epoch: u64) -> [u8; ASSOCIATED_BYTES] {
    let mut bytes = [0; ASSOCIATED_BYTES];
    bytes[0] = kind.number();
    bytes[4..8].copy_from_slice(&position.to_le_bytes());
    bytes[8..16].copy_from_slice(&allocation.to_le_bytes());
    bytes[16..24].copy_from_slice(&epoch.to_le_bytes());
    bytes
}
