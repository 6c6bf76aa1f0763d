//! How the pages of a container are sealed: as a whole, or as cells that are opened one by one.
//!
//! ```text
//! whole     one opening for all of a page        what is read from end to end
//! cells     ten bytes each, and a MAC            what is read in pieces: a few cells are deciphered and not a page
//! pointers  eight bytes each, and a MAC          the same, where some of the bytes say where others are
//! ```
//! It is chosen when a container is made, and stands in the root beside what else is known of the container.

use counterfoil_vault::{CELL_PAYLOAD_MAX, CELL_POINTER_MAX, TAG_BYTES, cells_payload};

use crate::Error;

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
}

impl Sealing {
    /// Bytes of payload in a cell; none where there are no cells.
    pub(crate) fn cell_payload(self) -> Option<usize> {
        match self {
            Sealing::Whole => None,
            Sealing::Cells => Some(CELL_PAYLOAD_MAX),
            Sealing::Pointers => Some(CELL_POINTER_MAX),
        }
    }

    /// Bytes of a container that a page holds.
    pub(crate) fn payload(self, page_bytes: u32) -> usize {
        let page_bytes = page_bytes as usize;
        self.cell_payload().map_or(page_bytes - TAG_BYTES, |bytes| cells_payload(page_bytes, bytes))
    }

    /// The sealing whose cells have so many bytes of payload, as a frame or a checkpoint tells it.
    pub(crate) fn of_cells(payload: u8) -> Result<Sealing, Error> {
        let is_it = |sealing: &Sealing| sealing.cell_payload() == Some(usize::from(payload));
        let found = [Sealing::Cells, Sealing::Pointers].into_iter().find(is_it);
        found.ok_or(Error::Corrupt { what: "sealing of a container" })
    }
}
