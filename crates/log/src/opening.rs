//! Opening for writing is a commit: the opening root.
//!
//! ```text
//!   1. opening root at page 0 of the spine's next extent, version at least two above the root it continues; flush
//!      a cut here: it is found again, or written again at the same place by the next opening
//!   2. two steps of the counter
//!      a cut here: the opening root is one or two ahead of the counter, and is completed
//!   3. only now anything is shown, programmed, acknowledged
//! ```
//! Where an image is bound to its counter anew the steps come last: the incident is committed in between, and a cut before
//! the counter is bound leaves an image that it does not accept.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec;

use counterfoil_flash::{BlockNumber, Device};
use counterfoil_vault::{Counter, CounterError, Epoch, OPENING_BYTES, Opened, Plain, Sealed, Tag, Vault};

use crate::frame::{HEAD_BYTES, Head};
use crate::layout::Layout;
use crate::pages::Pages;
use crate::reach::{Reach, reach};
use crate::space::{Extent, Needs, Owner, Space};
use crate::spine::SpineEnd;
use crate::state::State;
use crate::writer::Settings;
use crate::{Cause, Error};

/// The key of an opening root depends on its extent and contents alone: whoever looks for it does not know its
/// version yet.
const OPENING_VERSION: u64 = 0;

/// The number of the epoch that an opening after `end` begins, above `counter_value` too.
pub(crate) fn next_epoch_number(end: &SpineEnd, counter_value: u64) -> Result<u64, Error> {
    end.version.max(counter_value).checked_add(2).ok_or_else(|| Error::corrupt("version"))
}

/// Opens a page as an opening root of an extent.
pub(crate) fn open_root<'a>(vault: &Vault, allocation: u64, page: Sealed<'a>) -> Option<Opened<'a>> {
    vault.open_opening(allocation, 0, OPENING_VERSION, page).ok()
}

/// Grants an extent, the next one behind `behind` if that can be, and makes it writable; the volume's room is what it was
/// if that cannot be. So many times the layout's reserve is left, on the medium and before the limit.
pub(crate) fn grant(
    device: &mut dyn Device,
    pages: &Pages,
    space: &mut Space,
    (owner, behind): (Owner, Option<u32>),
    (needs, reserves): (Needs, u32),
) -> Result<Extent, Error> {
    let layout = &pages.layout;
    loop {
        reach(device, layout, space, needs, |extents| reserves * layout.reserve_of(extents) + 1)?;
        let number = space.choose(behind, needs, reserves * layout.reserve_of(space.end()))?;
        match prepare(device, layout, number) {
            // The file is shorter than the map says, as that of a backup may be. What lies before can still be had.
            Err(counterfoil_flash::Error::Full { .. }) => space.set_reach(Reach { extents: number, is_end: true }),
            other => {
                other?;
                if owner == Owner::Spine {
                    clear_opening(device, pages, Extent { number, allocation: space.next_allocation() })?;
                }
                return space.grant_chosen(number, owner);
            }
        }
    }
}

/// Clears the opening root of an earlier life from the extent in which the spine will go on. A volume that was made of an
/// older image, on a medium that still has what came after that image, grants its extents under the same allocation
/// numbers again. Every other page of that life was sealed in an epoch that nothing names any more; an opening root's key
/// knows of none, and one that continues another frame says that frames were taken away.
///
/// It is gone from the medium before any page names the extent: a cut in between leaves an extent that nobody refers to.
fn clear_opening(device: &mut dyn Device, pages: &Pages, extent: Extent) -> Result<(), counterfoil_flash::Error> {
    if device.geometry().erase_before_program {
        return Ok(());
    }
    let first = pages.layout.page(extent.number, 0);
    let mut page = vec![0; pages.layout.page_bytes as usize];
    let is_there = match device.read(first, 0, &mut page) {
        Ok(()) => open_root(&pages.vault, extent.allocation, Sealed::from_medium(&mut page)).is_some(),
        // Past the end of a medium that has not grown so far.
        Err(counterfoil_flash::Error::OutOfRange { .. }) => false,
        Err(counterfoil_flash::Error::Latched) => return Err(counterfoil_flash::Error::Latched),
        // Whoever opens next would have to wait for what it might be.
        Err(_) => true,
    };
    if !is_there {
        return Ok(());
    }
    page.fill(0);
    device.program(first, &page)?;
    device.flush()
}

/// Writes and counts an opening root of `epoch`, naming `checkpoint`; state and end go on from it. `next` is granted
/// to the spine and writable.
#[inline(never)]
pub(crate) fn write_root(
    pages: &Pages,
    device: &mut dyn Device,
    settings: &mut Settings,
    (state, end): (&mut State, &mut SpineEnd),
    epoch: Epoch,
    (checkpoint, next): (u64, Extent),
) -> Result<(), Error> {
    let layout = pages.layout;
    let extent = end.next;
    prepare(device, &layout, extent.number)?;
    let head = Head {
        commit: end.commit + 1,
        version: epoch.number,
        previous: end.tag,
        closed: end.tag,
        checkpoint,
        next,
        last: true,
        opening: true,
        used: epoch.salt.len() as u32,
        index: 0,
    };
    let mut page = vec![0; layout.page_bytes as usize];
    assert!(HEAD_BYTES + epoch.salt.len() + OPENING_BYTES <= page.len(), "an opening root fits a page");
    page[..HEAD_BYTES].copy_from_slice(&head.encode());
    page[HEAD_BYTES..HEAD_BYTES + epoch.salt.len()].copy_from_slice(&epoch.salt);
    let sealed = pages.vault.seal_opening(extent.allocation, 0, OPENING_VERSION, Plain::new(&mut page));
    let tag = sealed.tag();
    device.program(layout.page(extent.number, 0), sealed.bytes())?;
    device.flush()?;
    if let Some(counter) = &mut settings.counter {
        step_twice(&mut **counter, end, epoch.number, &tag).map_err(|error| lost(end, &error))?;
    }
    Arc::make_mut(&mut state.root.epochs).insert(epoch.number, epoch.salt);
    (state.root.commit, state.root.version) = (head.commit, head.version);
    *end = end.after(&head, extent, 1, epoch, tag);
    Ok(())
}

/// Two steps, so that a root that a cut left one ahead of the old value is never taken for this one.
fn step_twice(counter: &mut dyn Counter, end: &SpineEnd, version: u64, tag: &Tag) -> Result<(), CounterError> {
    counter.step(version - 1, &end.tag)?;
    counter.step(version, tag)
}

/// Two commits of one version cannot be told apart by a counter that holds no tag: it counts every commit.
pub(crate) fn wants_every_commit(counter: &mut dyn Counter) -> Result<bool, CounterError> {
    Ok(counter.value()?.tag.is_none())
}

/// Steps the counter up to a root that a cut left ahead of it.
pub(crate) fn complete(counter: &mut dyn Counter, end: &SpineEnd, value: u64) -> Result<(), CounterError> {
    if end.version == value + 2 {
        counter.step(value + 1, &end.closed)?;
    }
    counter.step(end.version, &end.tag)
}

pub(crate) fn lost(end: &SpineEnd, error: &CounterError) -> Error {
    match error {
        CounterError::Held { process } => Error::from(Cause::CounterHeld { process: *process }),
        CounterError::Device { operation, code } => Error::from(Cause::CounterFailed { operation, code: *code }),
        _ => Error::from(Cause::CounterLost { image: end.version, reason: format!("{error}") }),
    }
}

/// Makes an extent writable whose contents nobody needs.
pub(crate) fn prepare(device: &mut dyn Device, layout: &Layout, extent: u32) -> Result<(), counterfoil_flash::Error> {
    let geometry = device.geometry();
    let first = layout.page(extent, 0);
    if !geometry.erase_before_program {
        return device.reserve(first, u64::from(layout.extent_pages));
    }
    let blocks = u64::from(layout.extent_pages / geometry.block_pages);
    let block = geometry.block_of(first).0;
    (block..block + blocks).try_for_each(|block| device.erase(BlockNumber(block)))
}
