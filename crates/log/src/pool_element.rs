//! What a commit changed in nameless pools, as elements of its frame.

use alloc::vec::Vec;

use counterfoil_vault::Tag;

use crate::Error;
use crate::bytes::{Cursor, Put};
use crate::pool::{NamelessPage, PoolId};
use crate::space::Extent;

/// One change of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolElement {
    Created {
        id: PoolId,
        free_percent: u8,
    },
    /// The pool is gone, with its extents and pages.
    Dropped(PoolId),
    /// A slot was given an extent.
    Grown {
        id: PoolId,
        slot: u32,
        extent: Extent,
        first_write: u64,
    },
    /// A slot's extent, in which nothing is live, was given back.
    Shrunk {
        id: PoolId,
        slot: u32,
    },
    /// Neighbouring pages were written one after the other, in the epoch of the frame.
    Written {
        id: PoolId,
        page: NamelessPage,
        pages: u32,
    },
    Freed {
        id: PoolId,
        page: NamelessPage,
    },
    /// A page that this commit programmed and did not flush: the frame counts only if it opens with this tag.
    Unflushed {
        id: PoolId,
        page: NamelessPage,
        tag: Tag,
    },
}

/// The types of the elements of pools.
pub(crate) const TYPES: core::ops::RangeInclusive<u8> = 12..=18;

fn put_page(out: &mut Vec<u8>, kind: u8, id: PoolId, page: NamelessPage) {
    out.put_u8(kind);
    out.put_u64(id.0);
    out.put_u64(page.page);
    out.put_u64(page.write);
}

fn page(cursor: &mut Cursor<'_>) -> Result<NamelessPage, Error> {
    Ok(NamelessPage { page: cursor.u64()?, write: cursor.u64()? })
}

impl PoolElement {
    /// The pool that it is about.
    pub(crate) fn pool(&self) -> PoolId {
        match self {
            PoolElement::Dropped(id)
            | PoolElement::Created { id, .. }
            | PoolElement::Grown { id, .. }
            | PoolElement::Shrunk { id, .. }
            | PoolElement::Written { id, .. }
            | PoolElement::Freed { id, .. }
            | PoolElement::Unflushed { id, .. } => *id,
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            PoolElement::Created { id, free_percent } => {
                out.put_u8(12);
                out.put_u64(id.0);
                out.put_u8(*free_percent);
            }
            PoolElement::Dropped(id) => {
                out.put_u8(13);
                out.put_u64(id.0);
            }
            PoolElement::Grown { id, slot, extent, first_write } => {
                out.put_u8(14);
                out.put_u64(id.0);
                out.put_u32(*slot);
                out.put_u32(extent.number);
                out.put_u64(extent.allocation);
                out.put_u64(*first_write);
            }
            PoolElement::Shrunk { id, slot } => {
                out.put_u8(15);
                out.put_u64(id.0);
                out.put_u32(*slot);
            }
            PoolElement::Written { id, page, pages } => {
                put_page(out, 16, *id, *page);
                out.put_u32(*pages);
            }
            PoolElement::Freed { id, page } => put_page(out, 17, *id, *page),
            PoolElement::Unflushed { id, page, tag } => {
                put_page(out, 18, *id, *page);
                out.extend_from_slice(tag);
            }
        }
    }

    /// Reads what follows a type that is one of [`TYPES`].
    pub(crate) fn decode(kind: u8, cursor: &mut Cursor<'_>) -> Result<PoolElement, Error> {
        let id = PoolId(cursor.u64()?);
        Ok(match kind {
            12 => PoolElement::Created { id, free_percent: cursor.u8()? },
            13 => PoolElement::Dropped(id),
            14 => PoolElement::Grown {
                id,
                slot: cursor.u32()?,
                extent: Extent { number: cursor.u32()?, allocation: cursor.u64()? },
                first_write: cursor.u64()?,
            },
            15 => PoolElement::Shrunk { id, slot: cursor.u32()? },
            16 => PoolElement::Written { id, page: page(cursor)?, pages: cursor.u32()? },
            17 => PoolElement::Freed { id, page: page(cursor)? },
            18 => PoolElement::Unflushed { id, page: page(cursor)?, tag: cursor.array()? },
            _ => return Err(cursor.corrupt()),
        })
    }
}
