//! The map: which openings wrote the pages, and where in the index ring each leaf stands. In memory it is the caller's;
//! a copy of it stands in the index ring, and what changed since is told by the directories of the data pages.
//!
//! ```text
//! page:   head (form.rs) | pieces ... | zeros | tag [16]
//! pieces: openings u16, zero u16, leaves u32, ids u32: ids below may have records | openings x 48 bytes (opening.rs) | leaves x slot word
//! ```
//! 1. No piece stands on two pages: what does not fit begins the next one.

use counterfoil_flash::{Device, Read};
use counterfoil_vault::{Epoch, Vault};

use crate::bytes::{put, u16_at, u32_at};

use super::error::Error;
use super::form::{Form, Head};
use super::opening::{OPENING_BYTES, Opening};
use super::sequence::Sequence;
use super::word::{NONE, Word};

const COUNTS_BYTES: usize = 12;

/// Pages of a map.
pub(crate) fn pages<W: Word>(form: &Form, openings: usize, leaves: usize) -> u32 {
    let room = form.body_bytes();
    let (mut pages, mut at) = (1, COUNTS_BYTES);
    let openings = core::iter::repeat_n(OPENING_BYTES, openings);
    for bytes in openings.chain(core::iter::repeat_n(W::BYTES, leaves)) {
        if at + bytes > room {
            (pages, at) = (pages + 1, 0);
        }
        at += bytes;
    }
    pages
}

/// Writes a map of the index ring from `first` on; the sequence after it. `buffer` is one page.
#[allow(clippy::too_many_arguments)]
pub(crate) fn write<D: Device + ?Sized, W: Word>(
    device: &mut D,
    vault: &Vault,
    form: &Form,
    first: Sequence,
    epoch: &Epoch,
    (openings, leaves, ids): (&[Opening], &[W], u32),
    buffer: &mut [u8],
) -> Result<Sequence, Error> {
    buffer.fill(0);
    let (mut sequence, mut at) = (first, COUNTS_BYTES);
    put(form.body_mut(buffer), 0, &(openings.len() as u16).to_le_bytes());
    put(form.body_mut(buffer), 4, &(leaves.len() as u32).to_le_bytes());
    put(form.body_mut(buffer), 8, &ids.to_le_bytes());
    let mut piece = |bytes: &[u8], buffer: &mut [u8]| -> Result<(), Error> {
        if at + bytes.len() > form.body_bytes() {
            form.write(device, vault, &form.index, Head::new(sequence, epoch), buffer)?;
            buffer.fill(0);
            (sequence, at) = (form.index.after(sequence, 1), 0);
        }
        put(form.body_mut(buffer), at, bytes);
        at += bytes.len();
        Ok(())
    };
    for opening in openings {
        piece(&opening.encode(), buffer)?;
    }
    for leaf in leaves {
        let mut word = [0; 4];
        leaf.encode(&mut word);
        piece(word.get(..W::BYTES).unwrap_or_default(), buffer)?;
    }
    form.write(device, vault, &form.index, Head::new(sequence, epoch), buffer)?;
    Ok(form.index.after(sequence, 1))
}

/// Reads the map that begins at `first`; how many openings it has, and below which number ids may have records.
#[allow(clippy::too_many_arguments)]
pub(crate) fn read<R: Read + ?Sized, W: Word>(
    device: &R,
    vault: &Vault,
    form: &Form,
    first: Sequence,
    epoch: &Epoch,
    openings: &mut [Opening],
    leaves: &mut [W],
    buffer: &mut [u8],
) -> Result<(usize, u32), Error> {
    let open = |sequence, buffer: &mut [u8]| {
        form.open(device, vault, &form.index, Head::new(sequence, epoch), buffer).map(drop)
    };
    open(first, buffer)?;
    let body = form.body(buffer);
    let (count, leaf_count, ids) = (usize::from(u16_at(body, 0)), u32_at(body, 4) as usize, u32_at(body, 8));
    let openings = openings.get_mut(..count).ok_or(Error::BufferTooSmall)?;
    let leaves = leaves.get_mut(..leaf_count).ok_or(Error::BufferTooSmall)?;
    let (mut sequence, mut at) = (first, COUNTS_BYTES);
    let mut piece = |bytes: usize, buffer: &mut [u8]| -> Result<usize, Error> {
        if at + bytes > form.body_bytes() {
            (sequence, at) = (form.index.after(sequence, 1), 0);
            open(sequence, buffer)?;
        }
        at += bytes;
        Ok(at - bytes)
    };
    let mut before: Option<Opening> = None;
    for opening in openings {
        let at = piece(OPENING_BYTES, buffer)?;
        *opening = Opening::decode(form.body(buffer).get(at..).unwrap_or_default());
        if before.is_some_and(|before| !opening.follows(&before)) {
            return Err(Error::Corrupt);
        }
        before = Some(*opening);
    }
    for leaf in leaves {
        let at = piece(W::BYTES, buffer)?;
        *leaf = W::decode(form.body(buffer).get(at..).unwrap_or_default());
        if leaf.number() != NONE && leaf.number() >= form.index.pages {
            return Err(Error::Corrupt);
        }
    }
    Ok((count, ids))
}
