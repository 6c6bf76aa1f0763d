//! Whole pages of small cells, and stretches of them.
//!
//! ```text
//!  0         16        32                        n - 16
//!  | cell 0  | cell 1  | ... one cell after another | MAC |
//! ```
//! Each cell has `payload_bytes` bytes, so a page of n bytes has `(n / 16 - 1) * payload_bytes`. What is opened stands at the
//! beginning of the buffer afterwards, without gaps.
//!
//! 1. A whole page is believed only if its MAC holds; a stretch of cells if each of them opens.

use crate::cells::{CELL_BYTES, CELL_PAYLOAD_MAX, CellPage};
use crate::{TAG_BYTES, Tag, Tampered};

/// Bytes that a page of cells holds whose cells have so many bytes each.
pub const fn cells_payload(page_bytes: usize, payload_bytes: usize) -> usize {
    (page_bytes / CELL_BYTES).saturating_sub(1) * payload_bytes
}

impl CellPage<'_> {
    /// Seals a page in place: its payload stands at its beginning, in as many bytes as [`cells_payload`] says. Tells its MAC.
    ///
    /// # Panics
    /// On a page that is not a whole number of cells with at least one beside the MAC, and on cells of no bytes or of more
    /// than [`CELL_PAYLOAD_MAX`].
    pub fn seal_page(&self, page: &mut [u8], payload_bytes: usize) -> Tag {
        assert!(
            page.len() >= CELL_BYTES + TAG_BYTES && page.len().is_multiple_of(CELL_BYTES),
            "a page is cells and a MAC"
        );
        assert!((1..=CELL_PAYLOAD_MAX).contains(&payload_bytes), "a cell has 1 to 10 bytes of payload");
        let (cells, mac) = page.split_at_mut(page.len() - TAG_BYTES);
        // From the last one on: a cell is wider than its payload, so what it covers was taken before.
        for slot in (0..cells.len() / CELL_BYTES).rev() {
            let payload = slot * payload_bytes;
            let cell = self.seal(slot as u16, &cells[payload..payload + payload_bytes]);
            cells[slot * CELL_BYTES..(slot + 1) * CELL_BYTES].copy_from_slice(&cell);
        }
        let tag = self.mac(cells);
        mac.copy_from_slice(&tag);
        tag
    }

    /// Checks the MAC of a whole page as it was read, and tells it.
    ///
    /// # Errors
    /// [`Tampered`].
    pub fn check_page(&self, page: &[u8]) -> Result<Tag, Tampered> {
        let (cells, tag) = page.split_last_chunk::<TAG_BYTES>().ok_or_else(|| self.tampered())?;
        self.verify(cells, tag)?;
        Ok(*tag)
    }

    /// Opens a whole page in place, its MAC first.
    ///
    /// # Errors
    /// [`Tampered`].
    pub fn open_page(&self, page: &mut [u8], payload_bytes: usize) -> Result<(), Tampered> {
        self.check_page(page)?;
        let cells = page.len() - TAG_BYTES;
        self.open_cells(0, &mut page[..cells], payload_bytes)
    }

    /// Opens neighbouring cells in place, from slot `first` on. Nobody asks for the MAC of their page, so the caller trips its
    /// [`crate::CellLatch`] where this fails.
    ///
    /// # Errors
    /// [`Tampered`], also for what is not a whole number of cells.
    pub fn open_cells(&self, first: u16, cells: &mut [u8], payload_bytes: usize) -> Result<(), Tampered> {
        let payload_bytes = payload_bytes.min(CELL_PAYLOAD_MAX);
        if !cells.len().is_multiple_of(CELL_BYTES) {
            return Err(self.tampered());
        }
        for place in 0..cells.len() / CELL_BYTES {
            let slot = u16::try_from(usize::from(first) + place).map_err(|_| self.tampered())?;
            let mut cell = [0; CELL_BYTES];
            cell.copy_from_slice(&cells[place * CELL_BYTES..(place + 1) * CELL_BYTES]);
            let opened = self.open(slot, &cell, payload_bytes)?;
            let payload: [u8; CELL_PAYLOAD_MAX] = opened.payload();
            cells[place * payload_bytes..(place + 1) * payload_bytes].copy_from_slice(&payload[..payload_bytes]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CELL_POINTER_MAX, DatabaseId, Epoch, Suite, Vault, VolumeKey};
    use std::vec::Vec;

    fn vault() -> Vault {
        Vault::new(&VolumeKey::from_bytes(&[1; 32]), DatabaseId([2; 32]), Suite::Aes256GcmSiv)
    }

    fn filled(page_bytes: usize) -> Vec<u8> {
        (0..page_bytes).map(|place| (place % 251) as u8).collect()
    }

    #[test]
    fn a_page_opens_as_a_whole_and_in_pieces() {
        let (vault, epoch) = (vault(), Epoch { number: 7, salt: [3; 16] });
        let key = vault.cell_key(&epoch);
        for (page_bytes, payload_bytes) in [(128, 10), (256, 8), (2048, 10), (65_536, 8)] {
            let plain = filled(page_bytes);
            let (page, mut bytes) = (key.page(9, 4), plain.clone());
            let tag = page.seal_page(&mut bytes, payload_bytes);
            assert_eq!(page.check_page(&bytes).ok(), Some(tag));
            let (slots, held) = (page_bytes / 16 - 1, cells_payload(page_bytes, payload_bytes));
            for slots in [0..1, 0..slots, slots - 1..slots, slots / 2..slots] {
                let mut cells = bytes[slots.start * 16..slots.end * 16].to_vec();
                page.open_cells(slots.start as u16, &mut cells, payload_bytes).unwrap();
                let payload = slots.start * payload_bytes..slots.end * payload_bytes;
                assert_eq!(cells[..payload.len()], plain[payload]);
            }
            page.open_page(&mut bytes, payload_bytes).unwrap();
            assert_eq!(bytes[..held], plain[..held]);
        }
    }

    #[test]
    fn a_page_whose_mac_does_not_hold_is_not_opened_as_a_whole() {
        let (vault, epoch) = (vault(), Epoch { number: 7, salt: [3; 16] });
        let key = vault.cell_key(&epoch);
        let mut sealed = filled(256);
        key.page(9, 4).seal_page(&mut sealed, CELL_POINTER_MAX);
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(key.page(9, 4).check_page(&changed).is_err(), "bit {bit}");
            assert!(key.page(9, 4).open_page(&mut changed, CELL_POINTER_MAX).is_err(), "bit {bit}");
        }
        assert!(key.page(9, 5).open_page(&mut sealed.clone(), CELL_POINTER_MAX).is_err());
        assert!(key.page(9, 4).check_page(&sealed[..8]).is_err());
        assert!(key.page(9, 4).open_cells(0, &mut sealed[..24], CELL_POINTER_MAX).is_err(), "half a cell");
        assert!(key.page(9, 4).open_cells(u16::MAX, &mut sealed[..32], CELL_POINTER_MAX).is_err(), "no such slot");
    }
}
