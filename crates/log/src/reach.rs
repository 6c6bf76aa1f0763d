//! How far the medium reaches: its limit may lie beyond what a disk that others fill still has.
//!
//! ```text
//!   0            map of extents            reach                                 limit of the layout
//!   | owned, free, owned, free, owned | kept |   there, unless others are faster  |
//! ```
//! Extents are granted below the reach only, and what is kept for the spine and for commits that free space lies below it,
//! too: room that is merely expected keeps no promise when others take it first. So whoever is granted an extent first has
//! the medium make good what will be kept after it. Where the medium refuses, the volume ends there, as it would at its
//! limit, until more is had again: as many extents are kept as a volume of that size keeps.
//!
//! A cut leaves a file that is longer than the map of extents, by zeros that nobody refers to.

use counterfoil_flash::{Device, Error};

use crate::layout::Layout;
use crate::space::{Needs, Space};

/// The extents that the medium is known to have, and whether it refused the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    /// All extents before this one are there.
    pub(crate) extents: u32,
    /// Whether the medium had no room for more when it was asked last.
    pub(crate) is_end: bool,
}

/// Has the medium make room until so many extents are there that can be granted, by how many are there in all; whether it
/// did.
pub(crate) fn reach(
    device: &mut dyn Device,
    layout: &Layout,
    space: &mut Space,
    needs: Needs,
    wanted: impl Fn(u32) -> u32,
) -> Result<bool, Error> {
    while !space.has_there(needs, wanted(space.reach().extents)) {
        if !lengthen(device, layout, space)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Has the medium make room for all extents before `end`; whether it did.
pub(crate) fn reach_to(device: &mut dyn Device, layout: &Layout, space: &mut Space, end: u32) -> Result<bool, Error> {
    while space.reach().extents < end {
        if !lengthen(device, layout, space)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Has the medium make room for one more extent.
fn lengthen(device: &mut dyn Device, layout: &Layout, space: &mut Space) -> Result<bool, Error> {
    let extents = space.reach().extents;
    if extents >= layout.extents_max {
        return Ok(false);
    }
    let reserved = device.reserve(layout.page(extents, 0), u64::from(layout.extent_pages));
    let is_there = match reserved {
        Err(Error::Full { .. }) => false,
        other => other.map(|()| true)?,
    };
    space.set_reach(Reach { extents: extents + u32::from(is_there), is_end: !is_there });
    Ok(is_there)
}
