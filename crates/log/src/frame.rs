//! Commit frames: what one commit changed, as bytes.
//!
//! A frame is one or more consecutive pages of the spine. Every page begins with a head, the rest holds *elements*,
//! which run on from page to page:
//!
//! ```text
//!  0       8        16        32          48           56     60  61   64           72     76    80
//!  | commit | version | previous | closed    | checkpoint | next | flags | next alloc. | used | index | elements ...
//!  | u64    | u64     | tag      | tag       | u64        | u32  | u8 +3 | u64         | u32  | u32   |
//! ```
//!
//! *previous* is the tag of the spine page before, *closed* that of the last page with the version before (the one a
//! counter can vouch for), *checkpoint* the record store's version to start from, *next* the extent in which the spine
//! goes on, *used* the bytes of elements in this page, *index* the page's number within its frame.

use alloc::vec::Vec;

use counterfoil_vault::Tag;

use crate::bytes::{Cursor, Put};
use crate::pool_element::{PoolElement, TYPES as POOL_TYPES};
use crate::space::{Extent, Owner};
use crate::{ContainerId, Error, GroupId, Sealing};

pub(crate) const HEAD_BYTES: usize = 80;
/// Types of the two elements that tell of a new container.
const CONTAINER_CREATED: u8 = 5;
const CELLS_CREATED: u8 = 19;
const LAST: u8 = 1;
const OPENING: u8 = 2;

/// The head of a spine page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) commit: u64,
    pub(crate) version: u64,
    pub(crate) previous: Tag,
    pub(crate) closed: Tag,
    pub(crate) checkpoint: u64,
    pub(crate) next: Extent,
    /// Whether this is the last page of its frame.
    pub(crate) last: bool,
    /// Whether this is an opening root.
    pub(crate) opening: bool,
    pub(crate) used: u32,
    pub(crate) index: u32,
}

impl Head {
    pub(crate) fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = Vec::with_capacity(HEAD_BYTES);
        bytes.put_u64(self.commit);
        bytes.put_u64(self.version);
        bytes.extend_from_slice(&self.previous);
        bytes.extend_from_slice(&self.closed);
        bytes.put_u64(self.checkpoint);
        bytes.put_u32(self.next.number);
        let flags = if self.last { LAST } else { 0 } | if self.opening { OPENING } else { 0 };
        bytes.extend_from_slice(&[flags, 0, 0, 0]);
        bytes.put_u64(self.next.allocation);
        bytes.put_u32(self.used);
        bytes.put_u32(self.index);
        bytes.try_into().expect("a head has its size")
    }

    /// Reads a page's head; the elements are what follows, `used` bytes of them.
    pub(crate) fn decode(payload: &[u8]) -> Result<(Head, &[u8]), Error> {
        let mut cursor = Cursor::new(payload, "head of a spine page");
        let head = Head {
            commit: cursor.u64()?,
            version: cursor.u64()?,
            previous: cursor.array()?,
            closed: cursor.array()?,
            checkpoint: cursor.u64()?,
            next: Extent { number: cursor.u32()?, allocation: 0 },
            last: false,
            opening: false,
            used: 0,
            index: 0,
        };
        let [flags, 0, 0, 0] = cursor.array()? else { return Err(cursor.corrupt()) };
        if flags & !(LAST | OPENING) != 0 {
            return Err(cursor.corrupt());
        }
        let next = Extent { number: head.next.number, allocation: cursor.u64()? };
        let (used, index) = (cursor.u32()?, cursor.u32()?);
        let elements = cursor.take(used as usize)?;
        let (last, opening) = (flags & LAST != 0, flags & OPENING != 0);
        Ok((Head { next, last, opening, used, index, ..head }, elements))
    }
}

/// One change of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Element<'a> {
    RecordPut {
        key: &'a [u8],
        value: &'a [u8],
    },
    RecordDeleted {
        key: &'a [u8],
    },
    GroupCreated(GroupId),
    GroupDropped(GroupId),
    ContainerCreated {
        id: ContainerId,
        group: GroupId,
        sealing: Sealing,
    },
    /// Full pages of a container, sealed in the epoch of the frame.
    Pages {
        id: ContainerId,
        extent: u32,
        position: u32,
        pages: u32,
    },
    /// Bytes that follow a container's tail.
    TailAppended {
        id: ContainerId,
        /// The byte of the container at which they begin.
        offset: u64,
        bytes: &'a [u8],
    },
    /// A container's tail as a whole, because the one before went into a page.
    TailReplaced {
        id: ContainerId,
        /// The byte of the container at which it begins.
        offset: u64,
        bytes: &'a [u8],
    },
    ExtentGranted {
        extent: Extent,
        owner: Owner,
    },
    /// A spine extent that no recovery needs any more.
    ExtentFreed(u32),
    /// A page that this commit programmed and did not flush: the frame counts only if it opens with this tag.
    Unflushed {
        id: ContainerId,
        page: u64,
        tag: Tag,
    },
    /// A change of a nameless pool.
    Pool(PoolElement),
}

/// Takes one element of a frame.
pub(crate) type Each<'e> = dyn FnMut(Element<'_>) -> Result<(), Error> + 'e;
/// Tells the elements of a frame one after another, the same each time: no two of them need to be in memory together.
pub(crate) type Told<'t> = dyn Fn(&mut Each<'_>) -> Result<(), Error> + 't;

impl Element<'_> {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Element::RecordPut { key, value } => {
                out.put_u8(1);
                out.put_sized(key);
                out.put_sized(value);
            }
            Element::RecordDeleted { key } => {
                out.put_u8(2);
                out.put_sized(key);
            }
            Element::GroupCreated(id) => {
                out.put_u8(3);
                out.put_u64(id.0);
            }
            Element::GroupDropped(id) => {
                out.put_u8(4);
                out.put_u64(id.0);
            }
            Element::ContainerCreated { id, group, sealing } => {
                let code = sealing.code();
                out.put_u8(if code.is_some() { CELLS_CREATED } else { CONTAINER_CREATED });
                out.put_u64(id.0);
                out.put_u64(group.0);
                code.into_iter().for_each(|code| out.put_u8(code));
            }
            Element::Pages { id, extent, position, pages } => {
                out.put_u8(6);
                out.put_u64(id.0);
                out.put_u32(*extent);
                out.put_u32(*position);
                out.put_u32(*pages);
            }
            Element::TailAppended { id, offset, bytes } => {
                out.put_u8(7);
                out.put_u64(id.0);
                out.put_u64(*offset);
                out.put_sized(bytes);
            }
            Element::TailReplaced { id, offset, bytes } => {
                out.put_u8(8);
                out.put_u64(id.0);
                out.put_u64(*offset);
                out.put_sized(bytes);
            }
            Element::ExtentGranted { extent, owner } => {
                out.put_u8(9);
                out.put_u32(extent.number);
                out.put_u64(extent.allocation);
                out.put_u64(owner.code());
            }
            Element::ExtentFreed(number) => {
                out.put_u8(10);
                out.put_u32(*number);
            }
            Element::Unflushed { id, page, tag } => {
                out.put_u8(11);
                out.put_u64(id.0);
                out.put_u64(*page);
                out.extend_from_slice(tag);
            }
            Element::Pool(element) => element.encode(out),
        }
    }
}

/// Reads the next element, or none at the end.
pub(crate) fn next_element<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Element<'a>>, Error> {
    if cursor.is_empty() {
        return Ok(None);
    }
    Ok(Some(match cursor.u8()? {
        1 => Element::RecordPut { key: cursor.sized()?, value: cursor.sized()? },
        2 => Element::RecordDeleted { key: cursor.sized()? },
        3 => Element::GroupCreated(GroupId(cursor.u64()?)),
        4 => Element::GroupDropped(GroupId(cursor.u64()?)),
        kind @ (CONTAINER_CREATED | CELLS_CREATED) => {
            let (id, group) = (ContainerId(cursor.u64()?), GroupId(cursor.u64()?));
            let sealing = if kind == CELLS_CREATED { Sealing::of_code(cursor.u8()?)? } else { Sealing::Whole };
            Element::ContainerCreated { id, group, sealing }
        }
        6 => Element::Pages {
            id: ContainerId(cursor.u64()?),
            extent: cursor.u32()?,
            position: cursor.u32()?,
            pages: cursor.u32()?,
        },
        7 => Element::TailAppended { id: ContainerId(cursor.u64()?), offset: cursor.u64()?, bytes: cursor.sized()? },
        8 => Element::TailReplaced { id: ContainerId(cursor.u64()?), offset: cursor.u64()?, bytes: cursor.sized()? },
        9 => Element::ExtentGranted {
            extent: Extent { number: cursor.u32()?, allocation: cursor.u64()? },
            owner: Owner::from_code(cursor.u64()?)?,
        },
        10 => Element::ExtentFreed(cursor.u32()?),
        11 => Element::Unflushed { id: ContainerId(cursor.u64()?), page: cursor.u64()?, tag: cursor.array()? },
        kind if POOL_TYPES.contains(&kind) => Element::Pool(PoolElement::decode(kind, cursor)?),
        _ => return Err(cursor.corrupt()),
    }))
}
