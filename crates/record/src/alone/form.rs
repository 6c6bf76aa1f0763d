//! The form of a store that stands alone: its rings, and how its pages go out sealed and come back opened, or not at all.
//!
//! ```text
//! page: 0 sequence u40 | 5 epoch number u40, its top bit set in an opening root | 10 epoch salt [16], in salted stores
//!       | body | tag [16]; in an opening root: synthetic value [32] before the tag
//! ```
//! 1. The clear head is enough to find the newest commit and to derive a key, and is believed in nothing: sequence and
//!    epoch make the place that the page is sealed at.
//! 2. Opening roots are sealed under keys made from their contents, because a cut can let one be written twice with other
//!    contents before anything tells the two apart.

use counterfoil_flash::{Device, Error as FlashError, Read};
use counterfoil_vault::{Epoch, OPENING_BYTES, Plain, SALT_BYTES, Sealed, TAG_BYTES, Tag, Vault};

use crate::bytes::{array_at, put};
use crate::error::Error;
use crate::head::Head;
use crate::ring_io::{self, Page};
use crate::window::{Layout, Ring};

/// Bytes of a sequence, and of the number of an epoch: a page a millisecond takes 34 years to use them up.
pub(crate) const SEQUENCE_BYTES: usize = 5;
const CLEAR_BYTES: usize = 2 * SEQUENCE_BYTES;
/// In the number of an epoch, as the head has it.
const OPENING: u64 = 1 << 39;

/// A sequence that stands at `offset`.
pub(crate) fn sequence_at(bytes: &[u8], offset: usize) -> u64 {
    let [a, b, c, d, e] = array_at::<SEQUENCE_BYTES>(bytes, offset);
    u64::from_le_bytes([a, b, c, d, e, 0, 0, 0])
}

/// Puts a sequence at `offset`.
pub(crate) fn put_sequence(bytes: &mut [u8], offset: usize, sequence: u64) {
    let [a, b, c, d, e, ..] = sequence.to_le_bytes();
    put(bytes, offset, &[a, b, c, d, e]);
}

/// The rings, and what every page has beside its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) data: Ring,
    pub(crate) index: Ring,
    pub(crate) page_bytes: usize,
    pub(crate) is_salted: bool,
}

impl Form {
    pub(crate) fn new(layout: &Layout, is_salted: bool) -> Self {
        Form { data: layout.data, index: layout.index, page_bytes: layout.page_bytes, is_salted }
    }

    fn head_bytes(&self) -> usize {
        if self.is_salted { CLEAR_BYTES + SALT_BYTES } else { CLEAR_BYTES }
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

    fn decode(&self, bytes: &[u8]) -> (Head, bool) {
        let number = sequence_at(bytes, SEQUENCE_BYTES);
        let salt = if self.is_salted { array_at(bytes, CLEAR_BYTES) } else { [0; SALT_BYTES] };
        let epoch = Epoch { number: number & !OPENING, salt };
        (Head { sequence: sequence_at(bytes, 0), epoch }, number & OPENING != 0)
    }

    fn encode(&self, head: &Head, is_opening: bool, bytes: &mut [u8]) {
        let number = head.epoch.number | if is_opening { OPENING } else { 0 };
        put_sequence(bytes, 0, head.sequence);
        put_sequence(bytes, SEQUENCE_BYTES, number);
        if self.is_salted {
            put(bytes, CLEAR_BYTES, &head.epoch.salt);
        }
    }

    /// What the page in a slot of the data ring claims to be, where the claim can be true, and whether it claims to be an
    /// opening root. A page that cannot be read claims nothing: torn words of some media read as errors for ever.
    pub(crate) fn claim<R: Read + ?Sized>(&self, device: &R, slot: u64) -> Result<Option<(Head, bool)>, Error> {
        let mut bytes = [0; CLEAR_BYTES + SALT_BYTES];
        let bytes = &mut bytes[..self.head_bytes()];
        match device.read(self.data.slot_page(slot), 0, bytes) {
            Ok(()) => Ok(Some(self.decode(bytes)).filter(|(head, _)| self.data.plausible(slot, head.sequence))),
            Err(FlashError::Latched) => Err(Error::Latched),
            Err(_) => Ok(None),
        }
    }

    /// Reads the page of this ring that must have this head.
    pub(crate) fn open<'b, R: Read + ?Sized>(
        &self,
        device: &R,
        vault: &Vault,
        ring: &Ring,
        (head, is_opening): (&Head, bool),
        buffer: &'b mut [u8],
    ) -> Result<Page<'b>, Error> {
        let page = ring.page(head.sequence);
        let tampered = Error::Tampered { page };
        device.read(page, 0, buffer)?;
        let (clear, sealed) = buffer.split_at_mut_checked(self.head_bytes()).ok_or(tampered)?;
        if self.decode(clear) != (*head, is_opening) {
            return Err(tampered);
        }
        let (place, sealed) = (ring.place(head.sequence, head.epoch), Sealed::from_medium(sealed));
        let opened = match is_opening {
            true => vault.open_opening(place.allocation, place.position, head.epoch.number, sealed),
            false => vault.open(&place, sealed),
        };
        let opened = opened.map_err(|_| tampered)?;
        Ok(Page { tag: opened.tag(), body: opened.into_payload() })
    }

    /// Seals the body that stands in `buffer` and programs it at its place.
    pub(crate) fn write<D: Device + ?Sized>(
        &self,
        device: &mut D,
        vault: &Vault,
        ring: &Ring,
        (head, is_opening): (&Head, bool),
        buffer: &mut [u8],
    ) -> Result<Tag, Error> {
        let (clear, body) = buffer.split_at_mut(self.head_bytes());
        self.encode(head, is_opening, clear);
        let place = ring.place(head.sequence, head.epoch);
        let sealed = match is_opening {
            true => vault.seal_opening(place.allocation, place.position, head.epoch.number, Plain::new(body)),
            false => vault.seal(&place, Plain::new(body)),
        };
        let tag = sealed.tag();
        ring_io::erase_if_first(device, ring, head.sequence)?;
        device.program(ring.page(head.sequence), buffer)?;
        Ok(tag)
    }
}
