//! The form of a store that stands alone: its rings, and how its pages go out sealed and come back opened, or not at all.
//!
//! ```text
//! page: 0 lap u24 | 3 epoch number u40, its top bit set in an opening root | 8 block word, those of the index ring counted after
//!       those of the data ring | epoch salt [16], in salted stores | body | tag [16]; in an opening root: synthetic value
//!       [32] before the tag
//! ```
//! 1. The clear head is enough to find the newest commit and to derive a key, and is believed in nothing: sequence and
//!    epoch make the place that the page is sealed at.
//! 2. Opening roots are sealed under keys made from their contents, because a cut can let one be written twice with other
//!    contents before anything tells the two apart.

use core::num::NonZeroU32;

use counterfoil_flash::{Device, Error as FlashError, Geometry};
use counterfoil_vault::{Epoch, Kind, OPENING_BYTES, Plain, SALT_BYTES, Sealed, TAG_BYTES, Tag, Vault};

use crate::bytes::{array_at, put};

use super::error::Error;
use super::memory::Shape;
use super::pages::{Pages, Spot};
use super::sequence::{Ring, Sequence};
use super::superblock;
use super::word::Word;

/// Bytes of a lap.
pub(crate) const LAP_BYTES: usize = 3;
const NUMBER_BYTES: usize = 5;
const BLOCK_AT: usize = LAP_BYTES + NUMBER_BYTES;
/// Bytes before the body at most.
const HEAD_BYTES_MAX: usize = BLOCK_AT + 4 + SALT_BYTES;
/// In the number of an epoch, as the head has it.
const OPENING: u64 = 1 << 39;
/// Numbers that are left to whatever an opening or a commit still writes.
const NUMBERS_LEFT: u32 = 64;
/// Pages of a block that may be bad before nobody asks any more which one it is.
const MISSES_MAX: u32 = 2;
/// More laps than any flash stands.
pub(crate) const LAPS_MAX: u32 = 1 << (8 * LAP_BYTES);
/// Pages in a block at most.
const BLOCK_PAGES_MAX: u32 = 1024;

/// What a page claims to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) sequence: Sequence,
    pub(crate) epoch: Epoch,
    pub(crate) is_opening: bool,
}

/// See [`Claim::age`].
pub(crate) type Age = (u64, Sequence);

/// What a page must be, or is going to be.
#[derive(Clone, Copy)]
pub(crate) struct Head<'e> {
    pub(crate) sequence: Sequence,
    pub(crate) epoch: &'e Epoch,
    pub(crate) is_opening: bool,
}

impl<'e> Head<'e> {
    /// Of any page but an opening root.
    pub(crate) fn new(sequence: Sequence, epoch: &'e Epoch) -> Head<'e> {
        Head { sequence, epoch, is_opening: false }
    }
}

impl Claim {
    /// The order in which pages were written: what an older opening left behind the newest commit, on a medium that lost
    /// what came before it, is older than anything that a newer one writes.
    pub(crate) fn age(&self) -> Age {
        (self.epoch.number, self.sequence)
    }

    pub(crate) fn head(&self) -> Head<'_> {
        Head { sequence: self.sequence, epoch: &self.epoch, is_opening: self.is_opening }
    }
}

/// The rings, and what every page has beside its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) data: Ring,
    pub(crate) index: Ring,
    pub(crate) page_bytes: usize,
    pub(crate) word_bytes: usize,
    pub(crate) is_salted: bool,
}

impl Form {
    /// The form of a store of this shape on a medium of this geometry.
    pub(crate) fn new<W: Word>(geometry: &Geometry, shape: &Shape) -> Result<Self, Error> {
        let pages_ok = (256..=65536).contains(&geometry.page_bytes);
        let blocks_ok = (2..=BLOCK_PAGES_MAX).contains(&geometry.block_pages);
        let end = shape.first_block.checked_add(u64::from(shape.block_count));
        let lies_inside = end.is_some_and(|end| end <= geometry.block_count);
        let data_blocks = shape.block_count.saturating_sub(shape.index_blocks);
        if !pages_ok || !blocks_ok || !lies_inside || data_blocks < 2 || shape.index_blocks < 2 {
            return Err(Error::Geometry);
        }
        let mark = superblock::mark::<W>(geometry, shape);
        let ring = |kind, first_block: u32, blocks: u32, lead: u32| {
            let block_pages = NonZeroU32::new(geometry.block_pages - lead).ok_or(Error::Geometry)?;
            let pages =
                blocks.checked_mul(block_pages.get()).filter(|pages| *pages < 1 << 30).ok_or(Error::Geometry)?;
            Ok::<_, Error>(Ring { kind, first_block, pages, block_pages, lead, mark })
        };
        Ok(Form {
            data: ring(Kind::RecordData, 0, data_blocks, 0)?,
            index: ring(Kind::RecordIndex, data_blocks, shape.index_blocks, 1)?,
            page_bytes: geometry.page_bytes as usize,
            word_bytes: W::BYTES,
            is_salted: shape.is_salted,
        })
    }

    /// Whether pages from here on, in the opening of this number and after so many commits, would have numbers for which
    /// heads and roots have no room.
    pub(crate) fn is_worn_out(&self, heads: [Sequence; 2], number: u64, commits: u64) -> bool {
        let laps_left = |head: Sequence| LAPS_MAX.saturating_sub(head.lap) > NUMBERS_LEFT;
        let numbers_left = OPENING.saturating_sub(number) > u64::from(NUMBERS_LEFT);
        !(heads.into_iter().all(laps_left) && numbers_left && commits < u64::from(u32::MAX - NUMBERS_LEFT))
    }

    fn head_bytes(&self) -> usize {
        BLOCK_AT + self.word_bytes + if self.is_salted { SALT_BYTES } else { 0 }
    }

    /// Bytes of a page that are sealed and ours.
    pub(crate) fn body_bytes(&self) -> usize {
        self.page_bytes - self.head_bytes() - TAG_BYTES
    }

    /// The body of a page that was opened or is in the making.
    pub(crate) fn body<'b>(&self, buffer: &'b [u8]) -> &'b [u8] {
        buffer.get(self.head_bytes()..self.page_bytes - TAG_BYTES).unwrap_or_default()
    }

    /// The same, to be filled.
    pub(crate) fn body_mut<'b>(&self, buffer: &'b mut [u8]) -> &'b mut [u8] {
        buffer.get_mut(self.head_bytes()..self.page_bytes - TAG_BYTES).unwrap_or_default()
    }

    /// The body of an opening root, to be filled.
    pub(crate) fn opening_body_mut<'b>(&self, buffer: &'b mut [u8]) -> &'b mut [u8] {
        buffer.get_mut(self.head_bytes()..self.page_bytes - OPENING_BYTES).unwrap_or_default()
    }

    /// Writes the clear head of a page.
    fn encode(&self, ring: &Ring, head: &Head<'_>, bytes: &mut [u8]) {
        let number = head.epoch.number | if head.is_opening { OPENING } else { 0 };
        let ([a, b, c, _], [d, e, f, g, h, ..]) = (head.sequence.lap.to_le_bytes(), number.to_le_bytes());
        put(bytes, 0, &[a, b, c, d, e, f, g, h]);
        let block = ring.block(head.sequence).to_le_bytes();
        put(bytes, BLOCK_AT, block.get(..self.word_bytes).unwrap_or_default());
        if self.is_salted {
            put(bytes, BLOCK_AT + self.word_bytes, &head.epoch.salt);
        }
    }

    /// What the page in a slot of the data ring claims to be, if it can be that. A page that cannot be read claims
    /// nothing: torn words of some media read as errors for ever.
    pub(crate) fn claim<D: Device + ?Sized, W: Word>(
        &self,
        pages: &Pages<'_, D, W>,
        slot: u32,
    ) -> Result<Option<Claim>, Error> {
        let mut bytes = [0; HEAD_BYTES_MAX];
        let bytes = bytes.get_mut(..self.head_bytes()).unwrap_or_default();
        let spot = self.data.spot(Sequence { lap: 0, slot });
        match pages.read(spot, bytes) {
            Ok(()) => {
                Ok(self.decode::<W>(bytes, spot.page).filter(|(block, _)| *block == spot.block).map(|(_, claim)| claim))
            }
            Err(FlashError::Latched) => Err(Error::Latched),
            Err(_) => Ok(None),
        }
    }

    /// What these bytes, at the beginning of the page of this number in its block, claim to be, and in which block.
    fn decode<W: Word>(&self, bytes: &[u8], page: u32) -> Option<(u32, Claim)> {
        let [d, e, f, g, h] = array_at::<NUMBER_BYTES>(bytes, LAP_BYTES);
        let lap = lap_at(bytes, 0);
        let number = u64::from_le_bytes([d, e, f, g, h, 0, 0, 0]);
        let block = W::decode(bytes.get(BLOCK_AT..).unwrap_or_default()).number();
        let salt = if self.is_salted { array_at(bytes, BLOCK_AT + W::BYTES) } else { [0; SALT_BYTES] };
        let spot = Spot { block, page };
        let slot = self.data.slot(spot).or_else(|| self.index.slot(spot))?;
        let claim = Claim {
            sequence: Sequence { lap, slot },
            epoch: Epoch { number: number & !OPENING, salt },
            is_opening: number & OPENING != 0,
        };
        (1..LAPS_MAX - 1).contains(&lap).then_some((block, claim))
    }

    /// Which block of the rings stands at this place of the part, and how old its first good page is; none if that cannot be
    /// told, or nothing does.
    pub(crate) fn identify<D: Device + ?Sized, W: Word>(
        &self,
        pages: &Pages<'_, D, W>,
        place: u32,
        buffer: &mut [u8],
    ) -> Result<Option<(u32, Age)>, Error> {
        let (mut misses, mut blanks) = (0, 0);
        for page in 0..pages.geometry().block_pages {
            match pages.read_at(place, page, buffer) {
                Ok(()) if page == 0 && superblock::begins(buffer) => continue,
                // Pages are written in order, but an opening passes over one.
                Ok(()) if buffer.iter().all(|byte| *byte == 0xFF) && blanks > 0 => break,
                Ok(()) if buffer.iter().all(|byte| *byte == 0xFF) => {
                    blanks += 1;
                    continue;
                }
                Ok(()) => {
                    blanks = 0;
                    if let Some(found) = self.identify_page::<W>(pages.vault, page, buffer) {
                        return Ok(Some(found));
                    }
                }
                Err(FlashError::Latched) => return Err(Error::Latched),
                Err(_) => {}
            }
            misses += 1;
            if misses > MISSES_MAX {
                break;
            }
        }
        Ok(None)
    }

    /// Which block of the rings the page of this number in its block is of, and how old it is, if it authenticates.
    fn identify_page<W: Word>(&self, vault: &Vault, page: u32, buffer: &mut [u8]) -> Option<(u32, Age)> {
        let (block, claim) = self.decode::<W>(buffer, page)?;
        let ring = if block < self.index.first_block { &self.data } else { &self.index };
        self.unseal(vault, ring, claim.head(), buffer).ok()?;
        Some((block, claim.age()))
    }

    /// Reads the page of this ring that must have this head; its tag. Its body then stands in `buffer`.
    pub(crate) fn open<D: Device + ?Sized, W: Word>(
        &self,
        pages: &Pages<'_, D, W>,
        ring: &Ring,
        head: Head<'_>,
        buffer: &mut [u8],
    ) -> Result<Tag, Error> {
        pages.read(ring.spot(head.sequence), buffer)?;
        self.unseal(pages.vault, ring, head, buffer)
    }

    fn unseal(&self, vault: &Vault, ring: &Ring, head: Head<'_>, buffer: &mut [u8]) -> Result<Tag, Error> {
        let (clear, sealed) = buffer.split_at_mut_checked(self.head_bytes()).ok_or(Error::Tampered)?;
        let mut expected = [0; HEAD_BYTES_MAX];
        self.encode(ring, &head, &mut expected);
        if !expected.starts_with(clear) {
            return Err(Error::Tampered);
        }
        let (place, sealed) = (ring.place(head.sequence, *head.epoch), Sealed::from_medium(sealed));
        let opened = match head.is_opening {
            true => vault.open_opening(place.allocation, place.position, head.epoch.number, sealed),
            false => vault.open(&place, sealed),
        };
        opened.map(|opened| opened.tag()).map_err(|_| Error::Tampered)
    }

    /// Seals the body that stands in `buffer` and programs it at its place, which was erased.
    pub(crate) fn write<D: Device + ?Sized, W: Word>(
        &self,
        pages: &mut Pages<'_, D, W>,
        ring: &Ring,
        head: Head<'_>,
        buffer: &mut [u8],
    ) -> Result<Tag, Error> {
        let (clear, body) = buffer.split_at_mut_checked(self.head_bytes()).ok_or(Error::BufferTooSmall)?;
        self.encode(ring, &head, clear);
        let vault = pages.vault;
        let place = ring.place(head.sequence, *head.epoch);
        let sealed = match head.is_opening {
            true => vault.seal_opening(place.allocation, place.position, head.epoch.number, Plain::new(body)),
            false => vault.seal(&place, Plain::new(body)),
        };
        let tag = sealed.tag();
        pages.program(ring.spot(head.sequence), buffer)?;
        Ok(tag)
    }
}

/// The lap that stands there.
pub(crate) fn lap_at(bytes: &[u8], at: usize) -> u32 {
    let [a, b, c] = array_at::<LAP_BYTES>(bytes, at);
    u32::from_le_bytes([a, b, c, 0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_before_they_come_round() {
        let geometry =
            Geometry { page_bytes: 512, block_pages: 8, block_count: 8, erase_before_program: true, grows: false };
        let shape =
            Shape { first_block: 0, block_count: 8, index_blocks: 2, page_entries: 17, names: 0, is_salted: false };
        let form = Form::new::<u16>(&geometry, &shape).expect("a form");
        let (young, old) = (Sequence { lap: 1, slot: 7 }, Sequence { lap: LAPS_MAX - 2, slot: 0 });
        assert!(!form.is_worn_out([young, young], 3, 0));
        assert!(form.is_worn_out([young, old], 3, 0) && form.is_worn_out([old, young], 3, 0));
        assert!(form.is_worn_out([young, young], OPENING - 2, 0) && form.is_worn_out([young, young], u64::MAX, 0));
        assert!(form.is_worn_out([young, young], 3, u64::from(u32::MAX)));
    }
}
