//! A node: the owner's word on the totals of all rows in a part of an order.
//!
//! ```text
//! message = H(definition, kind (4), number, version, period, order, level, low string, high string, totals)
//! ```
//! Nodes are numbered from [`FIRST_NODE`] on, where no record, head or tail is, so that summaries of changes tell of each. One
//! is signed at the end of a period in which its totals or its part changed; its version grows then.

use alloc::vec::Vec;

use crate::bytes::{Reader, Writer};
use crate::definition::Definition;
use crate::digest::{Digest, digest};
use crate::error::Malformed;
use crate::position::Interval;
use crate::record::Stamp;
use crate::signature::Message;
use crate::totals::Totals;
use crate::value::Type;

/// Numbers from this one on, and below twice as much, belong to nodes.
pub const FIRST_NODE: u64 = 1 << 62;

/// Columns of an order's nodes at most.
pub const NODE_COLUMNS_MAX: usize = 64;

const KIND: u8 = 4;

/// Which totals are signed for an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodesOf {
    /// The order's number.
    pub order: u8,
    /// The columns of which there are totals, sorted. Without any, rows are counted alone.
    pub columns: Vec<u16>,
}

/// The totals of the rows in a part of an order.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The order's number.
    pub order: u8,
    /// 1 for nodes over rows; others are over nodes of the level below.
    pub level: u8,
    /// The part of the order.
    pub part: Interval,
    /// The totals of all rows there.
    pub totals: Totals,
}

impl Node {
    /// What is signed.
    ///
    /// # Errors
    /// [`Malformed`]: values that are none of their columns, or an order without nodes.
    pub fn message(&self, definition: &Definition, digest: &Digest, stamp: &Stamp) -> Result<Message, Malformed> {
        let kinds = definition.node_kinds(self.order).ok_or(NO_NODES)?;
        self.message_of(&kinds, digest, stamp)
    }

    pub(crate) fn message_of(&self, kinds: &[Type], definition: &Digest, stamp: &Stamp) -> Result<Message, Malformed> {
        let mut body = Writer::default();
        body.string(self.part.start()).string(self.part.end());
        self.totals.write(kinds, &mut body)?;
        let [rid, version, period] = [stamp.rid, stamp.version, stamp.period].map(u64::to_be_bytes);
        Ok(Message(digest(
            "counterfoil/aggregate/1",
            &[definition, &[KIND], &rid, &version, &period, &[self.order, self.level], &body.0],
        )))
    }

    /// Appends all of it but its number.
    ///
    /// # Errors
    /// [`Malformed`]: values that are none of their columns, or an order without nodes.
    pub fn write(&self, definition: &Definition, writer: &mut Writer) -> Result<(), Malformed> {
        let kinds = definition.node_kinds(self.order).ok_or(NO_NODES)?;
        writer.byte(self.order).byte(self.level).string(self.part.start()).string(self.part.end());
        self.totals.write(&kinds, writer)
    }

    /// Reads it.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(definition: &Definition, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (order, level) = (reader.byte()?, reader.byte()?);
        let kinds = definition.node_kinds(order).ok_or(NO_NODES)?;
        if level == 0 {
            return Err(reader.malformed());
        }
        let part = Interval::from_bytes(reader.string()?, reader.string()?)?;
        Ok(Self { order, level, part, totals: Totals::read(&kinds, reader)? })
    }
}

/// The number of a node, if there can be so many.
pub(crate) fn node_rid(count: u64) -> Option<u64> {
    (count < FIRST_NODE).then(|| FIRST_NODE + count)
}

/// Whether a number is that of a node.
#[must_use]
pub fn is_node(rid: u64) -> bool {
    (FIRST_NODE..2 * FIRST_NODE).contains(&rid)
}

pub(crate) const NO_NODES: Malformed = Malformed("an order without nodes");

/// What a definition says of its nodes, behind all the rest: nothing where there are none.
pub(crate) fn write_list(nodes: &[NodesOf]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.number(nodes.len() as u64);
    for of in nodes {
        writer.byte(of.order).number(of.columns.len() as u64);
        of.columns.iter().for_each(|column| {
            writer.number(u64::from(*column));
        });
    }
    writer.0
}

pub(crate) fn read_list(bytes: &[u8]) -> Result<Vec<NodesOf>, Malformed> {
    let mut reader = Reader::new(bytes, "the nodes of a published table");
    let mut nodes = Vec::new();
    for _ in 0..reader.count()? {
        let order = reader.byte()?;
        let mut columns = Vec::new();
        for _ in 0..reader.count()? {
            columns.push(u16::try_from(reader.number()?).map_err(|_| reader.malformed())?);
        }
        nodes.push(NodesOf { order, columns });
    }
    let malformed = reader.malformed();
    reader.end()?;
    if nodes.is_empty() { Err(malformed) } else { Ok(nodes) }
}

/// Refuses what no reader would accept.
pub(crate) fn check_list(definition: &Definition) -> Result<(), Malformed> {
    let nodes = &definition.nodes;
    let is_sorted = nodes.is_sorted_by(|a, b| a.order < b.order);
    if !is_sorted || nodes.iter().any(|of| usize::from(of.order) >= definition.orders.len()) {
        return Err(Malformed("nodes of an order that is not there, or of one twice"));
    }
    for of in nodes {
        let kind = |column: &u16| definition.columns.get(usize::from(*column)).map(|column| column.kind);
        if of.columns.len() > NODE_COLUMNS_MAX || !of.columns.is_sorted_by(|a, b| a < b) {
            return Err(Malformed("nodes of more than 64 columns, or of one twice"));
        }
        if !of.columns.iter().all(|column| kind(column).is_some_and(Type::has_totals)) {
            return Err(Malformed(
                "nodes of a column that is not there, or has no totals: numbers, dates and times have",
            ));
        }
    }
    Ok(())
}

impl Definition {
    /// The columns of which nodes of an order have totals; none if the order has no nodes.
    #[must_use]
    pub fn node_columns(&self, order: u8) -> Option<&[u16]> {
        self.nodes.iter().find(|of| of.order == order).map(|of| &of.columns[..])
    }

    /// The types of these columns.
    #[must_use]
    pub fn node_kinds(&self, order: u8) -> Option<Vec<Type>> {
        let kind = |column: &u16| self.columns.get(usize::from(*column)).map(|column| column.kind);
        self.node_columns(order)?.iter().map(kind).collect()
    }
}
