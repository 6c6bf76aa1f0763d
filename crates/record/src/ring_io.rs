//! GnatDb's *secure device*: pages of a ring go out sealed at their sequence and epoch and come back opened, or not
//! at all. Nothing above this file sees a page that did not authenticate.

use counterfoil_flash::{Device, Error as FlashError, Read};
use counterfoil_vault::{Epoch, Plain, Sealed, Tag, Vault};

use crate::Error;
use crate::head::{HEAD_BYTES, Head};
use crate::window::Ring;

/// A page that authenticated: what we sealed, and the tag.
pub(crate) struct Page<'a> {
    pub(crate) body: &'a [u8],
    pub(crate) tag: Tag,
}

/// What the page in a slot of the ring claims to be, if the claim can be true there. A page that cannot be read
/// claims nothing: torn words of some media read as errors for ever.
pub(crate) fn claim<R: Read + ?Sized>(device: &R, ring: &Ring, slot: u64) -> Result<Option<Head>, Error> {
    let mut bytes = [0; HEAD_BYTES];
    match device.read(ring.slot_page(slot), 0, &mut bytes) {
        Ok(()) => {}
        Err(FlashError::Latched) => return Err(Error::Latched),
        Err(_) => return Ok(None),
    }
    let head = Head::decode(&bytes);
    Ok(ring.plausible(slot, head.sequence).then_some(head))
}

/// Reads the page that must have this sequence and epoch.
pub(crate) fn open<'b, R: Read + ?Sized>(
    device: &R,
    vault: &Vault,
    ring: &Ring,
    head: &Head,
    buffer: &'b mut [u8],
) -> Result<Page<'b>, Error> {
    let page = ring.page(head.sequence);
    device.read(page, 0, buffer)?;
    let tampered = Error::Tampered { page };
    let Some((clear, sealed)) = buffer.split_at_mut_checked(HEAD_BYTES) else { return Err(tampered) };
    if Head::decode(clear) != *head {
        return Err(tampered);
    }
    let place = ring.place(head.sequence, head.epoch);
    let opened = vault.open(&place, Sealed::from_medium(sealed)).map_err(|_| tampered)?;
    let tag = opened.tag();
    Ok(Page { tag, body: opened.into_payload() })
}

/// Seals the body that stands in `buffer` and programs it at `sequence`. A block is erased when its first page is
/// written: what a cut leaves behind is a block that nobody needs, half erased or half written, which the next
/// opening passes over or erases again.
pub(crate) fn write<D: Device + ?Sized>(
    device: &mut D,
    vault: &Vault,
    ring: &Ring,
    sequence: u64,
    epoch: Epoch,
    buffer: &mut [u8],
) -> Result<Tag, Error> {
    if sequence.is_multiple_of(ring.block_pages) {
        device.erase(ring.medium_block(sequence))?;
    }
    let (clear, body) = buffer.split_at_mut(HEAD_BYTES);
    Head { sequence, epoch }.encode(clear);
    let tag = vault.seal(&ring.place(sequence, epoch), Plain::new(body)).tag();
    device.program(ring.page(sequence), buffer)?;
    Ok(tag)
}
