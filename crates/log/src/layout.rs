//! Where things lie on a volume.
//!
//! ```text
//! extent 0      extent 1      2 .. 2 + window     2 + window .. 2 + 2 window    from there on
//! | header A |  | header B |  | record store:    | its second copy,           | extents owned by `space`:
//! | page 0   |  | page 0   |  | the checkpoints  | page by page               | spine, reclaim groups
//! ```
//! Without the checkpoint nothing else is found, so no single page that is lost may lose it: like the header it stands
//! twice.

use core::ops::Range;

use counterfoil_flash::{Geometry, PageNumber};
use counterfoil_vault::TAG_BYTES;

use crate::{Error, Snapshot};

/// The shape of a volume; it stands in the header and never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Pages in an extent; a whole number of blocks.
    pub extent_pages: u32,
    /// The first extent of the record store's window.
    pub window_first: u32,
    /// Extents in the record store's window; as many behind them hold its second copy.
    pub window_extents: u32,
    /// Extents the volume may have in all.
    pub extents_max: u32,
}

/// Extents that hold the two copies of the header.
pub const HEADER_EXTENTS: u32 = 2;

/// The most extents that are kept for the spine, where the volume cannot grow.
const RESERVE_EXTENTS_MAX: u32 = 8;

/// Bytes of a chunk of a record that are neither name nor value.
pub(crate) const CHUNK_HEAD_BYTES: u64 = 10;
/// What the record store spends on a chunk beside its bytes.
const DIRECTORY_BYTES: u64 = 6;

/// Bytes of an extent of a pool in a checkpoint, beside a bit for each page.
const SLOT_BYTES: u64 = 20;

/// Of the window's bytes, what records may fill: the rest is index, page heads and room to move survivors in.
const USABLE_PERCENT: u64 = 35;

impl Layout {
    /// The usual layout on a medium of this geometry: extents of `extent_pages`, a window of `window_extents`.
    ///
    /// # Errors
    /// [`Error::misuse`] if the medium is too small or the extents are no whole blocks.
    pub fn new(geometry: &Geometry, extent_pages: u32, window_extents: u32) -> Result<Self, Error> {
        let extents = geometry.page_count() / u64::from(extent_pages.max(1));
        let layout = Layout {
            page_bytes: geometry.page_bytes,
            extent_pages,
            window_first: HEADER_EXTENTS,
            window_extents,
            extents_max: u32::try_from(extents).unwrap_or(u32::MAX),
        };
        layout.validate(geometry)?;
        Ok(layout)
    }

    /// Holds a layout, for instance one read from a header, against the medium it is meant for.
    ///
    /// # Errors
    /// [`Error::corrupt`] if it cannot be one.
    pub fn validate(&self, geometry: &Geometry) -> Result<(), Error> {
        let pages = u64::from(self.extents_max) * u64::from(self.extent_pages);
        let sound = self.page_bytes == geometry.page_bytes
            && self.page_bytes >= 256
            && self.extent_pages >= 2
            && self.extent_pages.is_multiple_of(geometry.block_pages)
            && self.window_first >= HEADER_EXTENTS
            && self.window_extents >= 1
            && self.fixed_extents().is_some_and(|fixed| fixed.saturating_add(3) <= self.extents_max)
            && (geometry.grows || pages <= geometry.page_count());
        if sound { Ok(()) } else { Err(Error::corrupt("layout of the volume")) }
    }

    /// Extents before those that `space` grants.
    pub(crate) fn fixed_extents(&self) -> Option<u32> {
        self.window_first.checked_add(self.window_extents.checked_mul(2)?)
    }

    /// The extents of the record store's window and of its second copy.
    pub(crate) fn window(&self) -> Range<u32> {
        self.window_first..self.window_first + 2 * self.window_extents
    }

    /// Extents that only the spine is granted when no others are left, and as many again for commits that are to free
    /// some.
    pub(crate) fn reserve_extents(&self) -> u32 {
        self.reserve_of(self.extents_max)
    }

    /// As [`Layout::reserve_extents`], for a volume that ends after so many extents.
    pub(crate) fn reserve_of(&self, extents: u32) -> u32 {
        (extents.saturating_sub(self.window().len() as u32) / 8).min(RESERVE_EXTENTS_MAX)
    }

    /// Whether an extent belongs to the headers or the record store's window.
    pub(crate) fn is_fixed(&self, extent: u32) -> bool {
        extent < HEADER_EXTENTS || self.window().contains(&extent)
    }

    /// Bytes that records may fill in the window.
    pub(crate) fn record_bytes_max(&self) -> u64 {
        let pages = u64::from(self.window_extents) * u64::from(self.extent_pages);
        pages * u64::from(self.page_bytes) / 100 * USABLE_PERCENT
    }

    /// Extents of a window in which records of so many bytes have room to grow.
    pub(crate) fn window_extents_for(&self, bytes: u64) -> u32 {
        let mut layout = *self;
        while layout.record_bytes_max() / 2 < bytes && layout.window_extents < u32::MAX / 2 {
            layout.window_extents *= 2;
        }
        layout.window_extents
    }

    /// Extents of a window that has room for everything a snapshot holds, this one's at least.
    pub fn window_extents_to_hold(&self, snapshot: &Snapshot) -> u32 {
        let root = &snapshot.root;
        let records = root.records.iter().map(|(key, value)| self.record_bytes(key.len(), value.len())).sum::<u64>();
        let pools = root.pools.values().map(|pool| pool.pages() / 8 + u64::from(pool.extents()) * SLOT_BYTES);
        self.window_extents_for(records + 2 * pools.sum::<u64>()).max(self.window_extents)
    }

    /// Bytes that a record of this size takes in the window.
    pub(crate) fn record_bytes(&self, key_bytes: usize, value_bytes: usize) -> u64 {
        let head = key_bytes as u64 + CHUNK_HEAD_BYTES + DIRECTORY_BYTES;
        let room = (u64::from(self.page_bytes) / 2).saturating_sub(head).max(1);
        value_bytes as u64 + head * (value_bytes as u64).div_ceil(room).max(1)
    }

    /// Bytes that a sealed page holds.
    pub(crate) fn payload(&self) -> usize {
        self.page_bytes as usize - TAG_BYTES
    }

    /// The page at `position` of extent `extent`.
    pub(crate) fn page(&self, extent: u32, position: u32) -> PageNumber {
        PageNumber(u64::from(extent) * u64::from(self.extent_pages) + u64::from(position))
    }
}
