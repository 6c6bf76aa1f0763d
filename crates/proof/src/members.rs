//! A group: records that stand beside each other in the first order, under one signature.
//!
//! ```text
//! member  = H(definition, 1, rid, 0, 0, links, values' root)     a record's message, without a version and a period of its own
//! message = H(definition, kind (7), number, version, period, count, members)   32 bytes, which are signed
//! ```
//! 1. A group's version grows when one of its records comes, goes or moves, or has other values or neighbours: it stands for
//!    that of each of its records, and its number is what summaries of changes tell of.
//! 2. An answer names the members that it shows and holds the digests of the others, as a plain list in the group's order.
//! 3. Which records make a group is the owner's affair. What shows that none was left out are the links, as in other schemes.

use alloc::vec::Vec;

use crate::answer::THING_BYTES;
use crate::bytes::{Reader, Writer};
use crate::definition::{Definition, Scheme};
use crate::digest::{Digest, digest};
use crate::error::Malformed;
use crate::node::FIRST_NODE;
use crate::record::{Kind, Stamp, message};
use crate::signature::Message;

/// Numbers from this one on belong to groups, up to those of nodes. Records have lower ones.
pub const FIRST_GROUP: u64 = 1 << 61;

/// Memory that a record of a group takes in a list, with its digest.
const MEMBER_BYTES: usize = 96;

/// What is signed is of this kind.
const KIND: u8 = 7;

/// Whether a number is that of a group.
#[must_use]
pub fn is_group(rid: u64) -> bool {
    (FIRST_GROUP..FIRST_NODE).contains(&rid)
}

/// A record's stamp where its group has version and period for it.
#[must_use]
pub fn member_stamp(rid: u64) -> Stamp {
    Stamp { rid, version: 0, period: 0 }
}

/// What stands for a record in its group.
#[must_use]
pub fn member(definition: &Digest, rid: u64, links: &[Digest], root: &Digest) -> Digest {
    message(definition, Kind::Record, &member_stamp(rid), links, root).0
}

/// What is signed of a group.
#[must_use]
pub fn group_message(definition: &Digest, stamp: &Stamp, members: &[Digest]) -> Message {
    let [rid, version, period] = [stamp.rid, stamp.version, stamp.period].map(u64::to_be_bytes);
    let count = [members.len() as u8];
    Message(digest(
        "counterfoil/group/1",
        &[definition, &[KIND], &rid, &version, &period, &count, members.as_flattened()],
    ))
}

/// A record of a group in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// It is in the answer under this number.
    Shown(u64),
    /// It is not.
    Hidden(Digest),
}

/// A group in an answer, not checked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// Its number, and when it was signed.
    pub stamp: Stamp,
    /// Its records, as they stand in the first order.
    pub list: Vec<Member>,
}

impl Members {
    fn write(&self, writer: &mut Writer) -> Result<(), Malformed> {
        let number = self.stamp.rid.checked_sub(FIRST_GROUP).ok_or(Malformed("the number of a group"))?;
        writer.number(number).number(self.stamp.version).number(self.stamp.period).number(self.list.len() as u64);
        for member in &self.list {
            match member {
                Member::Shown(rid) => writer.number(*rid),
                // No record has the number 0.
                Member::Hidden(digest) => writer.number(0).raw(digest),
            };
        }
        Ok(())
    }

    fn read(reader: &mut Reader<'_>, rows_max: u8) -> Result<Self, Malformed> {
        reader.hold(THING_BYTES)?;
        let rid = reader.number()?.checked_add(FIRST_GROUP).filter(|rid| is_group(*rid));
        let rid = rid.ok_or(Malformed("a group with a number that is no group's"))?;
        let stamp = Stamp { rid, version: reader.number()?, period: reader.number()? };
        let count = reader.count()?;
        if count > usize::from(rows_max) {
            return Err(Malformed("a group of more records than its table's have"));
        }
        reader.hold(count * MEMBER_BYTES)?;
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            list.push(match reader.number()? {
                0 => Member::Hidden(reader.array()?),
                rid => Member::Shown(rid),
            });
        }
        Ok(Self { stamp, list })
    }
}

/// Appends the groups of an answer; there are some in tables of groups alone, where the list stands behind all rows.
pub(crate) fn write_groups(writer: &mut Writer, definition: &Definition, groups: &[Members]) -> Result<(), Malformed> {
    match definition.scheme {
        Scheme::Group(_) => {
            writer.number(groups.len() as u64);
            groups.iter().try_for_each(|group| group.write(writer))
        }
        _ if groups.is_empty() => Ok(()),
        _ => Err(Malformed("groups of a table that has none")),
    }
}

/// Reads them: by ascending numbers, so that none is there twice.
pub(crate) fn read_groups(reader: &mut Reader<'_>, definition: &Definition) -> Result<Vec<Members>, Malformed> {
    let Scheme::Group(rows_max) = definition.scheme else { return Ok(Vec::new()) };
    let mut groups: Vec<Members> = Vec::new();
    for _ in 0..reader.count()? {
        let group = Members::read(reader, rows_max)?;
        if groups.last().is_some_and(|last| last.stamp.rid >= group.stamp.rid) {
            return Err(Malformed("groups that are not in their order, or one of them twice"));
        }
        groups.push(group);
    }
    Ok(groups)
}
