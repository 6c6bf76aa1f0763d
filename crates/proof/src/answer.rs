//! What a mirror sends: rows, what stands around them, and one signature for all of it.
//!
//! ```text
//! 01, digest of the question
//! for each interval: end on the left, rows, end on the right
//! in tables of groups: count and groups, ascending: number, version, period, count and members (`members.rs`)
//! signature (48): the sum of those of all records, heads, tails and groups in here, each once
//! 00, or 01 and a hint (96) for each of them, in the order in which they come first
//! ```
//! Positions of rows are not sent: their values and numbers say them. Neighbours are not sent either: the rows stand beside
//! each other. What was left out or moved is not what was signed. PER ATTRIBUTE a record has a signature for its place and
//! one for each value shown, in this order; in groups it has none, and no version or period of its own.

use alloc::vec::Vec;

use crate::attributes::{Salt, hidden_count};
use crate::bytes::{Reader, Writer};
use crate::definition::{Definition, Scheme};
use crate::digest::Digest;
use crate::error::Malformed;
use crate::members::{Members, member_stamp, read_groups, write_groups};
use crate::position::Position;
use crate::question::Question;
use crate::record::Stamp;
use crate::signature::{Hint, Signature};
use crate::value::Value;

/// What shows that values belong to a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Salts {
    /// All columns are shown: the seed of all salts.
    Seed(Salt),
    /// Some are: the salt of each, in their order.
    Each(Vec<Salt>),
    /// Their own signatures do, PER ATTRIBUTE.
    None,
}

/// A row in an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its number, and when it was signed.
    pub stamp: Stamp,
    /// The values of the question's columns.
    pub values: Vec<Value>,
    /// Their salts.
    pub salts: Salts,
    /// [`crate::attributes::hidden`] of the other columns.
    pub hidden: Vec<Digest>,
    /// [`crate::record::link`]s of the other orders.
    pub links: Vec<Digest>,
}

/// A record, head or tail just outside of an interval: it shows that nothing lies between it and the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary {
    /// Where it stands.
    pub position: Position,
    /// Its neighbour on the other side than the rows; heads and tails have none.
    pub outer: Option<Position>,
    /// Its number, and when it was signed.
    pub stamp: Stamp,
    /// The root of its values; none for heads and tails, nor PER ATTRIBUTE.
    pub root: Option<Digest>,
    /// [`crate::record::link`]s of the other orders; none for heads and tails.
    pub links: Vec<Digest>,
}

/// Where the rows of an interval end on one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Before something outside of the interval.
    Boundary(Boundary),
    /// At the limit: where the next row stands.
    Cut(Position),
}

/// The rows of an interval, ascending, and what stands on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Before the first row.
    pub left: End,
    /// The rows.
    pub rows: Vec<Row>,
    /// Behind the last row.
    pub right: End,
}

/// An answer, not checked yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// [`Question::digest`] of what it says it answers.
    pub question: Digest,
    /// For each interval, in the question's order; fewer if the limit was reached before.
    pub runs: Vec<Run>,
    /// The groups of the records in it, in tables of groups.
    pub groups: Vec<Members>,
    /// The sum of all signatures.
    pub signature: Signature,
    /// A hint for each thing signed, in the order in which they come first.
    pub hints: Option<Vec<Hint>>,
}

/// Memory that a row, a boundary, a mark, a stretch, a node or a group takes at most beside what its own bytes say, with all that checking it
/// takes.
pub(crate) const THING_BYTES: usize = 768;

/// The same of a value, which may be a NULL of one byte.
const VALUE_BYTES: usize = 64;

/// The same of a value that is signed by itself.
const SIGNED_VALUE_BYTES: usize = 256;

/// Appends a stamp as answers have it: in groups a record's version and period are those of its group.
pub(crate) fn write_stamp(writer: &mut Writer, definition: &Definition, stamp: &Stamp, is_record: bool) {
    match definition.scheme {
        Scheme::Group(_) if is_record => _ = writer.number(stamp.rid),
        _ => stamp.write(writer),
    }
}

pub(crate) fn read_stamp(
    reader: &mut Reader<'_>,
    definition: &Definition,
    is_record: bool,
) -> Result<Stamp, Malformed> {
    match definition.scheme {
        Scheme::Group(_) if is_record => Ok(member_stamp(reader.number()?)),
        _ => Stamp::read(reader),
    }
}

/// The root of a record's values, where signatures hold one.
pub(crate) fn read_root(reader: &mut Reader<'_>, definition: &Definition) -> Result<Option<Digest>, Malformed> {
    if definition.scheme == Scheme::PerAttribute { Ok(None) } else { reader.array().map(Some) }
}

impl Boundary {
    fn write(&self, writer: &mut Writer, definition: &Definition) {
        writer.string(self.position.bytes());
        write_stamp(writer, definition, &self.stamp, self.position.key().is_some());
        if let Some(outer) = &self.outer {
            writer.string(outer.bytes()).raw(self.root.as_ref().map_or(&[][..], |root| &root[..]));
            writer.raw(self.links.as_flattened());
        }
    }

    fn read(reader: &mut Reader<'_>, definition: &Definition) -> Result<Self, Malformed> {
        let position = Position::from_bytes(reader.string()?)?;
        let stamp = read_stamp(reader, definition, position.key().is_some())?;
        if position.key().is_none() {
            return Ok(Self { position, outer: None, stamp, root: None, links: Vec::new() });
        }
        let outer = Some(Position::from_bytes(reader.string()?)?);
        let root = read_root(reader, definition)?;
        Ok(Self { position, outer, stamp, root, links: digests(reader, definition.orders.len() - 1)? })
    }
}

impl End {
    /// Appends it, as it stands in an answer.
    pub fn write(&self, writer: &mut Writer, definition: &Definition) {
        match self {
            Self::Cut(position) => {
                writer.byte(0).string(position.bytes());
            }
            Self::Boundary(boundary) => boundary.write(writer.byte(1), definition),
        }
    }

    fn read(reader: &mut Reader<'_>, definition: &Definition) -> Result<Self, Malformed> {
        match reader.byte()? {
            0 => Ok(Self::Cut(Position::from_bytes(reader.string()?)?)),
            1 => Ok(Self::Boundary(Boundary::read(reader, definition)?)),
            _ => Err(reader.malformed()),
        }
    }
}

impl Row {
    pub(crate) fn write(&self, writer: &mut Writer, definition: &Definition, columns: &[u16]) -> Result<(), Malformed> {
        write_stamp(writer, definition, &self.stamp, true);
        for (column, value) in columns.iter().zip(&self.values) {
            let kind = definition.columns[usize::from(*column)].kind;
            kind.encode(value, &mut writer.0).map_err(|_| Malformed("a value of a type that its column has not"))?;
        }
        match &self.salts {
            Salts::Seed(seed) => writer.raw(seed),
            Salts::Each(salts) => writer.raw(salts.as_flattened()),
            Salts::None => &mut *writer,
        };
        writer.raw(self.hidden.as_flattened()).raw(self.links.as_flattened());
        Ok(())
    }

    pub(crate) fn read(reader: &mut Reader<'_>, definition: &Definition, columns: &[u16]) -> Result<Self, Malformed> {
        let stamp = read_stamp(reader, definition, true)?;
        let kinds = columns.iter().map(|column| definition.columns[usize::from(*column)].kind);
        let is_signed = definition.scheme == Scheme::PerAttribute;
        reader.hold(THING_BYTES + columns.len() * if is_signed { SIGNED_VALUE_BYTES } else { VALUE_BYTES })?;
        let values = kinds.map(|kind| kind.decode(reader)).collect::<Result<Vec<_>, _>>()?;
        let other_orders = definition.orders.len() - 1;
        if is_signed {
            let (salts, hidden) = (Salts::None, Vec::new());
            return Ok(Self { stamp, values, salts, hidden, links: digests(reader, other_orders)? });
        }
        let salts = if values.len() == definition.columns.len() {
            Salts::Seed(reader.array()?)
        } else {
            Salts::Each((0..values.len()).map(|_| reader.array()).collect::<Result<_, _>>()?)
        };
        let hidden = digests(reader, hidden_count(definition.columns.len(), columns))?;
        Ok(Self { stamp, values, salts, hidden, links: digests(reader, other_orders)? })
    }
}

pub(crate) fn digests(reader: &mut Reader<'_>, count: usize) -> Result<Vec<Digest>, Malformed> {
    (0..count).map(|_| reader.array()).collect()
}

/// How each answer ends.
pub(crate) fn write_signature(writer: &mut Writer, signature: &Signature, hints: Option<&[Hint]>) {
    writer.raw(&signature.to_bytes()).byte(u8::from(hints.is_some()));
    if let Some(hints) = hints {
        writer.number(hints.len() as u64);
        hints.iter().for_each(|hint| {
            writer.raw(&hint.0);
        });
    }
}

pub(crate) fn read_signature(reader: &mut Reader<'_>) -> Result<(Signature, Option<Vec<Hint>>), Malformed> {
    let signature = Signature::from_bytes(reader.raw(48)?).map_err(|_| Malformed("the signature of an answer"))?;
    let hints = match reader.byte()? {
        0 => None,
        1 => Some((0..reader.count()?).map(|_| reader.array().map(Hint)).collect::<Result<Vec<_>, _>>()?),
        _ => return Err(reader.malformed()),
    };
    Ok((signature, hints))
}

impl Run {
    pub(crate) fn write(&self, writer: &mut Writer, definition: &Definition, columns: &[u16]) -> Result<(), Malformed> {
        self.left.write(writer, definition);
        writer.number(self.rows.len() as u64);
        for row in &self.rows {
            row.write(writer, definition, columns)?;
        }
        self.right.write(writer, definition);
        Ok(())
    }

    pub(crate) fn read(reader: &mut Reader<'_>, definition: &Definition, columns: &[u16]) -> Result<Self, Malformed> {
        reader.hold(2 * THING_BYTES)?;
        let left = End::read(reader, definition)?;
        let mut rows = Vec::new();
        for _ in 0..reader.count()? {
            rows.push(Row::read(reader, definition, columns)?);
        }
        Ok(Self { left, rows, right: End::read(reader, definition)? })
    }
}

impl Answer {
    /// As bytes, to be sent.
    ///
    /// # Errors
    /// [`Malformed`]: a value that is none of its column.
    pub fn to_bytes(&self, definition: &Definition, question: &Question) -> Result<Vec<u8>, Malformed> {
        let mut writer = Writer::default();
        writer.byte(1).raw(&self.question).number(self.runs.len() as u64);
        for run in &self.runs {
            run.write(&mut writer, definition, question.columns())?;
        }
        write_groups(&mut writer, definition, &self.groups)?;
        write_signature(&mut writer, &self.signature, self.hints.as_deref());
        Ok(writer.0)
    }

    /// Reads what a mirror sent as an answer to `question` about the table `definition`.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn from_bytes(bytes: &[u8], definition: &Definition, question: &Question) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, "an answer");
        if reader.byte()? != 1 {
            return Err(Malformed("an answer of a version that is not known"));
        }
        let digest = reader.array()?;
        let mut runs = Vec::new();
        let count = reader.count()?;
        if count > question.intervals().len() {
            return Err(Malformed("rows of intervals that were not asked for"));
        }
        for _ in 0..count {
            runs.push(Run::read(&mut reader, definition, question.columns())?);
        }
        let groups = read_groups(&mut reader, definition)?;
        let (signature, hints) = read_signature(&mut reader)?;
        reader.end()?;
        Ok(Self { question: digest, runs, groups, signature, hints })
    }
}
