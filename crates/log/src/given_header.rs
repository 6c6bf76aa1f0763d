//! A header that was made elsewhere, for a volume that is opened without one: a device has its key, and hosts get secrets of their own.
//!
//! ```text
//! root names old and new -> copy A -> copy B -> root names the new one      a cut between: one that the root names is there
//! ```

use alloc::vec::Vec;

use counterfoil_vault::{DatabaseId, HeaderShape, MadeHeader, RootDigests, SlotsDigest, Suite};

use crate::layout::HEADER_EXTENTS;
use crate::view::View as _;
use crate::writer::Writer;
use crate::{Error, record_space};

/// The record in which a root says what of the header counts (SPEC.md, "header").
pub const HEADER_RECORD: &[u8] = b"header";

impl Writer {
    /// What a header must say that is put here. The name and the cipher are those under which the volume was opened.
    #[must_use]
    pub fn header_shape(&self, id: DatabaseId, suite: Suite) -> HeaderShape {
        let layout = self.pages.layout;
        HeaderShape {
            id,
            suite,
            page_bytes: layout.page_bytes,
            extent_pages: layout.extent_pages,
            record_extents: (layout.window_first.into(), layout.window_extents.into()),
            size_limit: self.device.geometry().page_count() * u64::from(layout.page_bytes),
        }
    }

    /// Puts a header that is for this volume in the place of the one before, if there is one, between transactions.
    ///
    /// # Errors
    /// Those of [`Writer::begin`], [`Writer::commit`] and [`Writer::write_header`]; after any of them the same may be put again.
    pub fn put_header(&mut self, header: &MadeHeader<'_>) -> Result<(), Error> {
        let new = header.slots_digest();
        let change = self.current_header().map_or(RootDigests::settled(new), |current| RootDigests {
            current,
            next: (current != new).then_some(new),
        });
        self.note_header(&change)?;
        let layout = self.pages.layout;
        let mut copy = Vec::from(header.bytes());
        copy.resize(copy.len().next_multiple_of(layout.page_bytes as usize), 0);
        for extent in 0..HEADER_EXTENTS {
            self.write_header(layout.page(extent, 0), &copy)?;
        }
        self.note_header(&RootDigests::settled(new))
    }

    fn current_header(&self) -> Option<SlotsDigest> {
        let noted = self.record(record_space::SETTING, HEADER_RECORD)?;
        Some(RootDigests::decode(noted[..].try_into().ok()?).current)
    }

    fn note_header(&mut self, digests: &RootDigests) -> Result<(), Error> {
        self.begin()?;
        let put = self.put_record(record_space::SETTING, HEADER_RECORD, &digests.encode());
        if put.is_err() {
            self.rollback();
        }
        put.and_then(|()| self.commit().map(drop))
    }
}
