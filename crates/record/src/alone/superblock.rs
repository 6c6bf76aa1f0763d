//! What tells a host how an image is cut up. A copy stands in the first page of every block of the index ring, outside of
//! the ring, and is written anew whenever that block is erased, so there is always one.
//!
//! ```text
//!  0 magic [8] | 8 format u16 | 10 cipher u8 | 11 flags u8: 1 salted, 2 words of 4 bytes, 4 erased before programmed
//! 12 page bytes u32 | 16 pages of a block u16 | 18 entries of a page u8 | 19 zero u8 | 20 blocks u32
//! 24 blocks of the index ring u32 | 28 ids of names u32 | 32 database id [32]
//! 64 block u32: which block of the store this copy stands in
//! 68 sealed as an opening root is: the same 68 bytes, zeros | synthetic value [32] | tag [16]
//! ```
//! 1. A device believes what it was told and does not read this. A host believes it once it was opened: else somebody could
//!    have authentic pages taken for what they are not.
//! 2. Bytes 11 to 31 go into the place of every page ([`mark`]), so that an older store of another shape, made with the same
//!    keys on the same part, is not taken for this one.

use counterfoil_flash::{Device, Geometry, PageNumber, Read};
use counterfoil_vault::{DatabaseId, Plain, Sealed, Suite, Vault};

use crate::bytes::{array_at, fnv, put, u16_at, u32_at};

use super::error::Error;
use super::memory::Shape;
use super::pages::{Pages, Spot};
use super::word::Word;

const MAGIC: [u8; 8] = *b"foilchip";
const FORMAT: u16 = 1;
const CLEAR_BYTES: usize = 68;
const SALTED: u8 = 1;
const WIDE: u8 = 2;
const ERASED: u8 = 4;
/// Where among the sealed places these stand: no opening root is in lap 0.
const ALLOCATION: u64 = 0;

/// What a superblock says, before and after it was believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The geometry of the part. It is said to have as many blocks as the store.
    pub geometry: Geometry,
    /// The shape of the store, as if it began at the first block.
    pub shape: Shape,
    /// The cipher.
    pub suite: Suite,
    /// The name of the store.
    pub database: DatabaseId,
    /// Bytes of a word: 2 or 4.
    pub word_bytes: usize,
    /// Which block of the store this copy stands in, counted from its first.
    pub block: u32,
}

impl Superblock {
    /// Bytes that [`Superblock::decode`] looks at.
    pub const BYTES: usize = CLEAR_BYTES;

    /// What these bytes, the first of a block, claim to be; none if that is no store.
    pub fn decode(bytes: &[u8]) -> Option<Superblock> {
        let clear = bytes.first_chunk::<CLEAR_BYTES>()?;
        let flags = clear[11];
        if !clear.starts_with(&MAGIC) || u16_at(clear, 8) != FORMAT || flags > SALTED | WIDE | ERASED {
            return None;
        }
        let (block_count, number) = (u32_at(clear, 20), u32_at(clear, 64));
        let geometry = Geometry {
            page_bytes: u32_at(clear, 12),
            block_pages: u32::from(u16_at(clear, 16)),
            block_count: u64::from(block_count),
            erase_before_program: flags & ERASED != 0,
            grows: false,
        };
        let shape = Shape {
            first_block: 0,
            block_count,
            index_blocks: u32_at(clear, 24),
            page_entries: u32::from(clear[18]),
            names: u32_at(clear, 28),
            is_salted: flags & SALTED != 0,
        };
        geometry.validate().ok()?;
        Some(Superblock {
            geometry,
            shape,
            suite: Suite::from_number(clear[10])?,
            database: DatabaseId(array_at(clear, 32)),
            word_bytes: if flags & WIDE != 0 { 4 } else { 2 },
            block: Some(number).filter(|block| *block < block_count)?,
        })
    }

    /// Whether this copy, which stands in this page, was written under these keys.
    ///
    /// # Errors
    /// [`Error::Tampered`] if not; [`Error::BufferTooSmall`], [`Error::Device`].
    pub fn check<R: Read + ?Sized>(
        &self,
        device: &R,
        page: PageNumber,
        vault: &Vault,
        buffer: &mut [u8],
    ) -> Result<(), Error> {
        let buffer = buffer.get_mut(..self.geometry.page_bytes as usize).ok_or(Error::BufferTooSmall)?;
        device.read(page, 0, buffer)?;
        let (clear, sealed) = buffer.split_at_mut_checked(CLEAR_BYTES).ok_or(Error::Tampered)?;
        let number = u32_at(clear, 64);
        let opened = vault.open_opening(ALLOCATION, number, 0, Sealed::from_medium(sealed));
        let is_same = opened.is_ok_and(|opened| opened.payload().starts_with(clear));
        if is_same && Superblock::decode(clear) == Some(*self) { Ok(()) } else { Err(Error::Tampered) }
    }
}

/// The clear bytes but magic, cipher, database id and number, which are zero.
fn described<W: Word>(geometry: &Geometry, shape: &Shape) -> [u8; CLEAR_BYTES] {
    let mut bytes = [0; CLEAR_BYTES];
    let flags = [(shape.is_salted, SALTED), (W::BYTES == 4, WIDE), (geometry.erase_before_program, ERASED)];
    put(&mut bytes, 8, &FORMAT.to_le_bytes());
    bytes[11] = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum();
    put(&mut bytes, 12, &geometry.page_bytes.to_le_bytes());
    put(&mut bytes, 16, &(geometry.block_pages as u16).to_le_bytes());
    bytes[18] = shape.page_entries as u8;
    put(&mut bytes, 20, &shape.block_count.to_le_bytes());
    put(&mut bytes, 24, &shape.index_blocks.to_le_bytes());
    put(&mut bytes, 28, &shape.names.to_le_bytes());
    bytes
}

/// Different for different shapes.
pub(crate) fn mark<W: Word>(geometry: &Geometry, shape: &Shape) -> u32 {
    fnv(&described::<W>(geometry, shape))
}

/// Whether a page begins as a superblock does.
pub(crate) fn begins(page: &[u8]) -> bool {
    page.starts_with(&MAGIC)
}

/// Programs the copy of a block of the index ring that was just erased. `buffer` is one page.
pub(crate) fn write<D: Device + ?Sized, W: Word>(
    pages: &mut Pages<'_, D, W>,
    shape: &Shape,
    block: u32,
    buffer: &mut [u8],
) -> Result<(), Error> {
    let (mut clear, vault, place) = (described::<W>(pages.geometry(), shape), pages.vault, pages.place(block));
    put(&mut clear, 0, &MAGIC);
    clear[10] = vault.suite().number();
    put(&mut clear, 32, &vault.id().0);
    put(&mut clear, 64, &place.to_le_bytes());
    buffer.fill(0);
    put(buffer, 0, &clear);
    put(buffer, CLEAR_BYTES, &clear);
    if let Some((_, sealed)) = buffer.split_at_mut_checked(CLEAR_BYTES) {
        vault.seal_opening(ALLOCATION, place, 0, Plain::new(sealed));
    }
    pages.program(Spot { block, page: 0 }, buffer)
}
