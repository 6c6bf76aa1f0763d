//! How the pages of a container are sealed: as a whole, or as cells that are opened one by one.
//!
//! ```text
//! whole     one opening for all of a page        what is read from end to end
//! cells     ten bytes each, and a MAC            what is read in pieces: a few cells are deciphered and not a page
//! pointers  eight bytes each, and a MAC          the same, where some of the bytes say where others are
//! sectors   one opening for each of 512 bytes    what is read in blocks that are smaller than a page
//! ```
//! It is chosen when a container is made, and stands in the root beside what else is known of the container.

use counterfoil_vault::{CELL_PAYLOAD_MAX, CELL_POINTER_MAX, TAG_BYTES, cells_payload};

use crate::Error;

/// Bytes of a sector, its tag among them.
pub(crate) const SECTOR_BYTES: usize = 512;
/// Bytes of a container that a sector holds.
pub const SECTOR_PAYLOAD_BYTES: usize = SECTOR_BYTES - TAG_BYTES;
/// What stands in the place of a cell's payload where there are sectors.
const SECTORS: u8 = 0;

/// How the pages of a container are sealed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sealing {
    /// Each as a whole.
    #[default]
    Whole,
    /// In cells of ten bytes. A forged cell passes once in 2^48.
    Cells,
    /// In cells of eight bytes, for what points somewhere. A forged cell passes once in 2^64.
    Pointers,
    /// Sector by sector, each as a whole; a page that is not some sectors is one. Reads that begin at multiples of
    /// [`SECTOR_PAYLOAD_BYTES`] touch the fewest.
    Sectors,
}

impl Sealing {
    /// Bytes of payload in a cell; none where there are no cells.
    pub(crate) fn cell_payload(self) -> Option<usize> {
        match self {
            Sealing::Whole | Sealing::Sectors => None,
            Sealing::Cells => Some(CELL_PAYLOAD_MAX),
            Sealing::Pointers => Some(CELL_POINTER_MAX),
        }
    }

    /// Bytes of a container that a page holds.
    pub(crate) fn payload(self, page_bytes: u32) -> usize {
        let page_bytes = page_bytes as usize;
        match self {
            Sealing::Sectors => page_bytes - TAG_BYTES * sectors(page_bytes),
            _ => self.cell_payload().map_or(page_bytes - TAG_BYTES, |bytes| cells_payload(page_bytes, bytes)),
        }
    }

    /// Bytes of a container that a page holds, where one that is sealed as a whole holds so many.
    #[must_use]
    pub fn page_payload(self, whole: usize) -> usize {
        u32::try_from(whole + TAG_BYTES).map_or(whole, |page_bytes| self.payload(page_bytes))
    }

    /// What a frame or a checkpoint tells of it; nothing of a container of whole pages.
    pub(crate) fn code(self) -> Option<u8> {
        match self {
            Sealing::Sectors => Some(SECTORS),
            _ => self.cell_payload().map(|payload| payload as u8),
        }
    }

    /// The sealing of which a frame or a checkpoint tells this.
    pub(crate) fn of_code(code: u8) -> Result<Sealing, Error> {
        let is_it = |sealing: &Sealing| sealing.code() == Some(code);
        let found = [Sealing::Cells, Sealing::Pointers, Sealing::Sectors].into_iter().find(is_it);
        found.ok_or_else(|| Error::corrupt("sealing of a container"))
    }
}

/// Sectors of a page.
pub(crate) fn sectors(page_bytes: usize) -> usize {
    if page_bytes.is_multiple_of(SECTOR_BYTES) { page_bytes / SECTOR_BYTES } else { 1 }
}
