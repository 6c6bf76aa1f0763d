//! The shape of a medium and the addresses on it.

use crate::Error;

/// The smallest page.
pub const PAGE_BYTES_MIN: u32 = 128;
/// The largest page.
pub const PAGE_BYTES_MAX: u32 = 65536;
/// The largest medium. Addresses in bytes stay below it, so they fit every system's signed file offsets, and the
/// locks of [`crate::lock`] lie above all data.
pub const MEDIUM_BYTES_MAX: u64 = 1 << 61;

/// The number of a page on the medium, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageNumber(pub u64);

/// The number of a block on the medium, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockNumber(pub u64);

/// The shape of a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes in a page, a power of two from 128 to 65536.
    pub page_bytes: u32,
    /// Pages in a block (the unit of erase).
    pub block_pages: u32,
    /// Blocks that may be used; for a growing medium the limit.
    pub block_count: u64,
    /// Whether a page must be erased before it is programmed again.
    pub erase_before_program: bool,
    /// Whether the medium becomes longer as pages are programmed.
    pub grows: bool,
}

impl Geometry {
    /// Pages that may be used.
    pub fn page_count(&self) -> u64 {
        self.block_count.saturating_mul(u64::from(self.block_pages))
    }

    /// The block that holds `page`.
    pub fn block_of(&self, page: PageNumber) -> BlockNumber {
        BlockNumber(page.0 / u64::from(self.block_pages))
    }

    /// The first page of `block`.
    pub fn first_page(&self, block: BlockNumber) -> PageNumber {
        PageNumber(block.0.saturating_mul(u64::from(self.block_pages)))
    }

    /// The whole medium in bytes.
    pub fn medium_bytes(&self) -> u64 {
        self.page_count().saturating_mul(u64::from(self.page_bytes))
    }

    /// Whether a medium can have this shape. Shapes are read off headers, so nothing is believed before this.
    ///
    /// # Errors
    /// [`Error::Shape`], saying what is wrong.
    pub fn validate(&self) -> Result<(), Error> {
        let reason = if !self.page_bytes.is_power_of_two() {
            "the page size is not a power of two"
        } else if !(PAGE_BYTES_MIN..=PAGE_BYTES_MAX).contains(&self.page_bytes) {
            "the page size is not between 128 and 65536 bytes"
        } else if self.block_pages == 0 || self.block_count == 0 {
            "it has no pages"
        } else if self.medium_bytes() > MEDIUM_BYTES_MAX {
            "it is larger than any medium"
        } else {
            return Ok(());
        };
        Err(Error::Shape { reason })
    }

    /// Where in bytes a range begins, after checking that all of it lies on the medium.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], naming the first page that is not there.
    pub fn locate(&self, page: PageNumber, offset: u32, bytes: usize) -> Result<u64, Error> {
        let page_bytes = u64::from(self.page_bytes);
        let start = page.0.checked_mul(page_bytes).and_then(|at| at.checked_add(u64::from(offset)));
        let end = start.and_then(|at| at.checked_add(bytes as u64));
        match (start, end) {
            (Some(start), Some(end)) if end <= self.medium_bytes() => Ok(start),
            _ => Err(Error::OutOfRange {
                page: PageNumber(page.0.max(self.page_count())),
                page_count: self.page_count(),
            }),
        }
    }

    /// Where in bytes a run of whole pages begins that is to be programmed; on growing media a run past the end found
    /// no room, on others it is no address.
    ///
    /// # Errors
    /// [`Error::Full`] or [`Error::OutOfRange`].
    #[cfg(feature = "alloc")]
    pub(crate) fn locate_program(&self, page: PageNumber, data: &[u8]) -> Result<u64, Error> {
        assert!(data.len().is_multiple_of(self.page_bytes as usize), "pages are programmed whole");
        self.locate(page, 0, data.len()).map_err(|error| match error {
            Error::OutOfRange { page, .. } if self.grows => Error::Full { page },
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Geometry =
        Geometry { page_bytes: 512, block_pages: 4, block_count: 8, erase_before_program: false, grows: true };

    #[test]
    fn a_range_is_on_the_medium_or_refused() {
        assert_eq!(SHAPE.locate(PageNumber(3), 5, 100), Ok(3 * 512 + 5));
        assert_eq!(SHAPE.locate(PageNumber(31), 0, 512), Ok(31 * 512));
        let past = Error::OutOfRange { page: PageNumber(32), page_count: 32 };
        assert_eq!(SHAPE.locate(PageNumber(31), 1, 512), Err(past));
        assert_eq!(SHAPE.locate(PageNumber(u64::MAX), u32::MAX, usize::MAX), {
            Err(Error::OutOfRange { page: PageNumber(u64::MAX), page_count: 32 })
        });
        assert_eq!(SHAPE.locate_program(PageNumber(31), &[0; 1024]), Err(Error::Full { page: PageNumber(32) }));
        let fixed = Geometry { grows: false, ..SHAPE };
        assert_eq!(fixed.locate_program(PageNumber(31), &[0; 1024]), Err(past));
    }

    #[test]
    fn impossible_shapes_are_refused() {
        assert_eq!(SHAPE.validate(), Ok(()));
        for shape in [
            Geometry { page_bytes: 0, ..SHAPE },
            Geometry { page_bytes: 500, ..SHAPE },
            Geometry { page_bytes: 64, ..SHAPE },
            Geometry { page_bytes: 1 << 17, ..SHAPE },
            Geometry { block_pages: 0, ..SHAPE },
            Geometry { block_count: 0, ..SHAPE },
            Geometry { block_count: u64::MAX, ..SHAPE },
        ] {
            assert!(matches!(shape.validate(), Err(Error::Shape { .. })), "{shape:?}");
        }
    }
}
