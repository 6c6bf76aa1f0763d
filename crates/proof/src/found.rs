//! What a mirror sends for values: filters that deny some, and stretches of the order with the rest.
//!
//! ```text
//! 02, digest of the question
//! count and filters: rid, version, period, lower bound (empty: the upper one before), upper bound, salt, bits
//! count and stretches: position before it (empty: none), count and items, position behind it (empty: none)
//!   item: 00, position, rid, version, period, and of a record its root and links of the other orders      a mark
//!         01 and a row as in other answers                                                                a row
//! in tables of groups: count and groups, as in other answers
//! signature (48), 00, or 01 and a hint (96) for all that is signed: filters, items, groups, in this order
//! ```
//! Items of a stretch stand beside each other in the order, heads and tails included: what is not among them is not there.
//! A mark that is the neighbour of two values is sent once.

use alloc::vec::Vec;

use crate::answer::{Row, THING_BYTES, digests, read_root, read_signature, read_stamp, write_signature, write_stamp};
use crate::bytes::{Reader, Writer};
use crate::definition::Definition;
use crate::digest::Digest;
use crate::error::Malformed;
use crate::members::{Members, read_groups, write_groups};
use crate::partition::Filter;
use crate::points::Points;
use crate::position::Position;
use crate::record::Stamp;
use crate::signature::{Hint, Signature};

/// A record whose values nobody asked for, a head or a tail: it shows that nothing lies beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Where it stands.
    pub position: Position,
    /// Its number, and when it was signed.
    pub stamp: Stamp,
    /// The root of its values; none for heads and tails, nor PER ATTRIBUTE.
    pub root: Option<Digest>,
    /// [`crate::record::link`]s of the other orders; none for heads and tails.
    pub links: Vec<Digest>,
}

/// Something in a stretch.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Nobody asked for its values.
    Mark(Mark),
    /// A row with one of the question's values.
    Row(Row),
}

/// A part of an order without a gap.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// What stands before the first item; nothing does before a head.
    pub before: Option<Position>,
    /// The items, ascending.
    pub items: Vec<Item>,
    /// What stands behind the last item; nothing does behind a tail.
    pub behind: Option<Position>,
}

/// An answer to [`Points`], not checked yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// [`Points::digest`] of what it says it answers.
    pub question: Digest,
    /// Filters that deny values, ascending.
    pub filters: Vec<(Stamp, Filter)>,
    /// Where the other values are, or would be, ascending.
    pub stretches: Vec<Stretch>,
    /// The groups of the records in it, in tables of groups.
    pub groups: Vec<Members>,
    /// The sum of all signatures.
    pub signature: Signature,
    /// A hint for each thing signed: filters, items, groups.
    pub hints: Option<Vec<Hint>>,
}

impl Mark {
    fn write(&self, writer: &mut Writer, definition: &Definition) {
        let is_record = self.position.key().is_some();
        write_stamp(writer.string(self.position.bytes()), definition, &self.stamp, is_record);
        if is_record {
            writer.raw(self.root.as_ref().map_or(&[][..], |root| &root[..])).raw(self.links.as_flattened());
        }
    }

    fn read(reader: &mut Reader<'_>, definition: &Definition) -> Result<Self, Malformed> {
        reader.hold(THING_BYTES)?;
        let position = Position::from_bytes(reader.string()?)?;
        let stamp = read_stamp(reader, definition, position.key().is_some())?;
        if position.key().is_none() {
            return Ok(Self { position, stamp, root: None, links: Vec::new() });
        }
        let root = read_root(reader, definition)?;
        Ok(Self { position, stamp, root, links: digests(reader, definition.orders.len() - 1)? })
    }
}

impl Stretch {
    fn write(&self, writer: &mut Writer, definition: &Definition, points: &Points) -> Result<(), Malformed> {
        let outer = |position: &Option<Position>| position.as_ref().map_or(Vec::new(), |at| at.bytes().to_vec());
        writer.string(&outer(&self.before)).number(self.items.len() as u64);
        for item in &self.items {
            match item {
                Item::Mark(mark) => mark.write(writer.byte(0), definition),
                Item::Row(row) => row.write(writer.byte(1), definition, points.columns())?,
            }
        }
        writer.string(&outer(&self.behind));
        Ok(())
    }

    fn read(reader: &mut Reader<'_>, definition: &Definition, points: &Points) -> Result<Self, Malformed> {
        reader.hold(THING_BYTES)?;
        let before = outer(reader)?;
        let mut items = Vec::new();
        for _ in 0..reader.count()? {
            items.push(match reader.byte()? {
                0 => Item::Mark(Mark::read(reader, definition)?),
                1 => Item::Row(Row::read(reader, definition, points.columns())?),
                _ => return Err(reader.malformed()),
            });
        }
        Ok(Self { before, items, behind: outer(reader)? })
    }
}

fn outer(reader: &mut Reader<'_>) -> Result<Option<Position>, Malformed> {
    match reader.string()? {
        [] => Ok(None),
        bytes => Position::from_bytes(bytes).map(Some),
    }
}

impl Found {
    /// As bytes, to be sent.
    ///
    /// # Errors
    /// [`Malformed`]: a value that is none of its column.
    pub fn to_bytes(&self, definition: &Definition, points: &Points) -> Result<Vec<u8>, Malformed> {
        let mut writer = Writer::default();
        writer.byte(2).raw(&self.question).number(self.filters.len() as u64);
        let mut before = &[][..];
        for (stamp, filter) in &self.filters {
            stamp.write(&mut writer);
            filter.write(&mut writer, before);
            before = filter.high();
        }
        writer.number(self.stretches.len() as u64);
        for stretch in &self.stretches {
            stretch.write(&mut writer, definition, points)?;
        }
        write_groups(&mut writer, definition, &self.groups)?;
        write_signature(&mut writer, &self.signature, self.hints.as_deref());
        Ok(writer.0)
    }

    /// Reads what a mirror sent as an answer to `points` about the table `definition`.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn from_bytes(bytes: &[u8], definition: &Definition, points: &Points) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, "an answer");
        if reader.byte()? != 2 {
            return Err(Malformed("an answer of a version that is not known"));
        }
        let question = reader.array()?;
        let mut filters: Vec<(Stamp, Filter)> = Vec::new();
        for _ in 0..reader.count()? {
            reader.hold(THING_BYTES)?;
            let stamp = Stamp::read(&mut reader)?;
            let before = filters.last().map_or(&[][..], |(_, filter)| filter.high()).to_vec();
            filters.push((stamp, Filter::read(&mut reader, points.order(), &before)?));
        }
        let mut stretches = Vec::new();
        for _ in 0..reader.count()? {
            stretches.push(Stretch::read(&mut reader, definition, points)?);
        }
        let groups = read_groups(&mut reader, definition)?;
        let (signature, hints) = read_signature(&mut reader)?;
        reader.end()?;
        Ok(Self { question, filters, stretches, groups, signature, hints })
    }
}
