//! GnatDb's *secure device*: pages of a ring go out sealed at their sequence and epoch and come back opened, or not
//! at all. Nothing above this file sees a page that did not authenticate, or knows that a page may stand twice.

use counterfoil_flash::{Device, Error as FlashError, PageNumber, Read};
use counterfoil_vault::{Epoch, Plain, Sealed, TAG_BYTES, Tag, Vault};

use crate::Error;
use crate::head::{HEAD_BYTES, Head};
use crate::window::Ring;

/// A page that authenticated: what we sealed, and the tag.
pub(crate) struct Page<'a> {
    pub(crate) body: &'a [u8],
    pub(crate) tag: Tag,
}

/// What the copies of the page in a slot of the ring claim to be, where the claim can be true; a claim made twice is
/// told once. A page that cannot be read claims nothing: torn words of some media read as errors for ever.
pub(crate) fn claims<R: Read + ?Sized>(
    device: &R,
    ring: &Ring,
    slot: u64,
) -> Result<impl Iterator<Item = Head> + use<R>, Error> {
    let mut claims = [None; 2];
    for (claim, page) in claims.iter_mut().zip(ring.copies(slot)) {
        let mut bytes = [0; HEAD_BYTES];
        match device.read(page, 0, &mut bytes) {
            Ok(()) => *claim = Some(Head::decode(&bytes)).filter(|head| ring.plausible(slot, head.sequence)),
            Err(FlashError::Latched) => return Err(Error::Latched),
            Err(_) => {}
        }
    }
    let [first, second] = claims;
    Ok(first.into_iter().chain(second.filter(|_| second != first)))
}

/// Reads the page that must have this sequence and epoch, from the first of its copies that authenticates.
pub(crate) fn open<'b, R: Read + ?Sized>(
    device: &R,
    vault: &Vault,
    ring: &Ring,
    head: &Head,
    buffer: &'b mut [u8],
) -> Result<Page<'b>, Error> {
    let mut failure = None;
    for page in ring.copies(head.sequence) {
        match authenticate(device, vault, ring, head, page, buffer) {
            Ok(tag) => {
                let end = buffer.len() - TAG_BYTES;
                return Ok(Page { tag, body: &buffer[HEAD_BYTES..end] });
            }
            Err(Error::Device(FlashError::Latched)) => return Err(Error::Latched),
            // What could not be read may be read another time: that is worth more than what is lost for good.
            Err(error) if failure.is_none() || matches!(error, Error::Device(_)) => failure = Some(error),
            Err(_) => {}
        }
    }
    Err(failure.unwrap_or(Error::Tampered { page: ring.page(head.sequence) }))
}

/// Reads one copy of a page; its tag, if it is what it must be. The buffer then holds clear head, body and tag.
pub(crate) fn authenticate<R: Read + ?Sized>(
    device: &R,
    vault: &Vault,
    ring: &Ring,
    head: &Head,
    page: PageNumber,
    buffer: &mut [u8],
) -> Result<Tag, Error> {
    device.read(page, 0, buffer)?;
    let tampered = Error::Tampered { page };
    let Some((clear, sealed)) = buffer.split_at_mut_checked(HEAD_BYTES) else { return Err(tampered) };
    if Head::decode(clear) != *head {
        return Err(tampered);
    }
    let place = ring.place(head.sequence, head.epoch);
    let opened = vault.open(&place, Sealed::from_medium(sealed)).map_err(|_| tampered)?;
    Ok(opened.tag())
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
        ring.copies(sequence).try_for_each(|page| device.erase(ring.medium_block(page)))?;
    }
    let (clear, body) = buffer.split_at_mut(HEAD_BYTES);
    Head { sequence, epoch }.encode(clear);
    let tag = vault.seal(&ring.place(sequence, epoch), Plain::new(body)).tag();
    ring.copies(sequence).try_for_each(|page| device.program(page, buffer))?;
    Ok(tag)
}
