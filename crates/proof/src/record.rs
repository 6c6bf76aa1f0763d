//! What is signed of a record, a head and a tail.
//!
//! ```text
//! link    = H(order, own position, left position, right position)          one for each order of the table
//! message = H(definition, kind, rid, version, period, links, values' root)  32 bytes, which are signed
//! ```
//! `version` grows when the record's values or one of its neighbours change; renewing a signature leaves it. Heads and tails
//! have the links of their order alone and no values.
//!
//! PER RECORD that is all. PER ATTRIBUTE the root is of zeros, and each value is signed beside it; in GROUPs the message is no
//! one's signature but a member of its group's ([`crate::Members`]).

use crate::bytes::{Reader, Writer};
use crate::digest::{Digest, digest};
use crate::error::Malformed;
use crate::position::Position;
use crate::signature::Message;

/// Which kind of thing is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A record.
    Record,
    /// The head of an order.
    Head,
    /// The tail of an order.
    Tail,
}

/// When something was signed last, and for how manieth time its contents had changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// The number of the record, never given twice; head and tail of order o have 2o and 2o + 1.
    pub rid: u64,
    /// Grows with each change of its values or neighbours.
    pub version: u64,
    /// The period in which it was signed.
    pub period: u64,
}

impl Stamp {
    /// Appends it.
    pub fn write(&self, writer: &mut Writer) {
        writer.number(self.rid).number(self.version).number(self.period);
    }

    /// Reads it.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { rid: reader.number()?, version: reader.number()?, period: reader.number()? })
    }
}

/// The digest of a record's place in one order; a head has no left neighbour, a tail no right one.
#[must_use]
pub fn link(order: u8, own: &Position, left: Option<&Position>, right: Option<&Position>) -> Digest {
    fn part(position: Option<&Position>) -> ([u8; 2], &[u8]) {
        let bytes = position.map_or(&[][..], Position::bytes);
        ((bytes.len() as u16).to_be_bytes(), bytes)
    }
    let ((a, own), (b, left), (c, right)) = (part(Some(own)), part(left), part(right));
    digest("counterfoil/link/1", &[&[order], &a, own, &b, left, &c, right])
}

/// What is signed; `root` is that of the values, and zeros for heads and tails.
#[must_use]
pub fn message(definition: &Digest, kind: Kind, stamp: &Stamp, links: &[Digest], root: &Digest) -> Message {
    let kind = [match kind {
        Kind::Record => 1,
        Kind::Head => 2,
        Kind::Tail => 3,
    }];
    let [rid, version, period] = [stamp.rid, stamp.version, stamp.period].map(u64::to_be_bytes);
    let count = [links.len() as u8];
    Message(digest(
        "counterfoil/record/1",
        &[definition, &kind, &rid, &version, &period, &count, links.as_flattened(), root],
    ))
}

/// What is signed of a value PER ATTRIBUTE: its column and encoding, for the version and period of its record.
#[must_use]
pub fn value_message(definition: &Digest, stamp: &Stamp, column: u16, value: &[u8]) -> Message {
    const KIND: u8 = 6;
    let [rid, version, period] = [stamp.rid, stamp.version, stamp.period].map(u64::to_be_bytes);
    let parts: &[&[u8]] = &[definition, &[KIND], &rid, &version, &period, &column.to_be_bytes(), value];
    Message(digest("counterfoil/attribute/1", parts))
}

/// The number of an order's head.
#[must_use]
pub fn head_rid(order: u8) -> u64 {
    2 * u64::from(order)
}

/// The number of an order's tail.
#[must_use]
pub fn tail_rid(order: u8) -> u64 {
    2 * u64::from(order) + 1
}
