//! What a mirror sends as totals: for each interval nodes that tile it, and rows where no node fits.
//!
//! ```text
//! 04, digest of the question
//! for each interval: count and spans, from its start to its end without a gap
//!     00, end string, a run of rows as in an answer of rows
//!     01, node's number less the first one, version, period, level, high string, totals
//! in tables of groups: count and groups, as in an answer of rows
//! signature (48), 00 or 01 with count and hints, as in an answer of rows
//! ```
//! A span begins where the one before ended: parts that overlap, or leave a gap, cannot be written down.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::answer::{Run, THING_BYTES, read_signature, write_signature};
use crate::bytes::{Reader, Writer};
use crate::definition::Definition;
use crate::digest::Digest;
use crate::error::Malformed;
use crate::members::{Members, read_groups, write_groups};
use crate::node::{FIRST_NODE, NO_NODES, node_rid};
use crate::record::Stamp;
use crate::signature::{Hint, Signature};
use crate::totals::Totals;
use crate::totals_question::{TotalsQuestion, VERSION};
use crate::value::Type;

/// A node in an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    /// Its number, and when it was signed.
    pub stamp: Stamp,
    /// Its level.
    pub level: u8,
    /// Where its part ends.
    pub end: Vec<u8>,
    /// Its totals.
    pub totals: Totals,
}

/// A part of an interval, and what is there.
#[derive(Clone, Debug, PartialEq)]
pub enum Span {
    /// Rows up to an end, the next node's beginning or that of the interval.
    Rows(Vec<u8>, Box<Run>),
    /// A node.
    Tile(Tile),
}

/// Totals, not checked yet.
#[derive(Clone, Debug, PartialEq)]
pub struct TotalsAnswer {
    /// [`TotalsQuestion::digest`] of what it says it answers.
    pub question: Digest,
    /// For each interval, in the question's order.
    pub intervals: Vec<Vec<Span>>,
    /// The groups of the records in it, in tables of groups.
    pub groups: Vec<Members>,
    /// The sum of all signatures.
    pub signature: Signature,
    /// A hint for each thing signed, in the order in which they come first.
    pub hints: Option<Vec<Hint>>,
}

impl Span {
    fn write(
        &self,
        writer: &mut Writer,
        kinds: &[Type],
        definition: &Definition,
        question: &TotalsQuestion,
    ) -> Result<(), Malformed> {
        match self {
            Self::Rows(end, run) => run.write(writer.byte(0).string(end), definition, question.rows().columns()),
            Self::Tile(Tile { stamp, level, end, totals }) => {
                let number = stamp.rid.checked_sub(FIRST_NODE).ok_or(Malformed("the number of a node"))?;
                writer.byte(1).number(number).number(stamp.version).number(stamp.period);
                totals.write(kinds, writer.byte(*level).string(end))
            }
        }
    }

    fn read(
        reader: &mut Reader<'_>,
        kinds: &[Type],
        definition: &Definition,
        question: &TotalsQuestion,
    ) -> Result<Self, Malformed> {
        reader.hold(THING_BYTES)?;
        match reader.byte()? {
            0 => {
                let end = reader.string()?.to_vec();
                let run = Run::read(reader, definition, question.rows().columns())?;
                Ok(Self::Rows(end, Box::new(run)))
            }
            1 => {
                let rid = node_rid(reader.number()?).ok_or(reader.malformed())?;
                let stamp = Stamp { rid, version: reader.number()?, period: reader.number()? };
                let (level, end) = (reader.byte()?, reader.string()?.to_vec());
                Ok(Self::Tile(Tile { stamp, level, end, totals: Totals::read(kinds, reader)? }))
            }
            _ => Err(reader.malformed()),
        }
    }
}

impl TotalsAnswer {
    /// As bytes, to be sent.
    ///
    /// # Errors
    /// [`Malformed`]: a value that is none of its column.
    pub fn to_bytes(&self, definition: &Definition, question: &TotalsQuestion) -> Result<Vec<u8>, Malformed> {
        let kinds = definition.node_kinds(question.order()).ok_or(NO_NODES)?;
        let mut writer = Writer::default();
        writer.byte(VERSION).raw(&self.question);
        for spans in &self.intervals {
            writer.number(spans.len() as u64);
            for span in spans {
                span.write(&mut writer, &kinds, definition, question)?;
            }
        }
        write_groups(&mut writer, definition, &self.groups)?;
        write_signature(&mut writer, &self.signature, self.hints.as_deref());
        Ok(writer.0)
    }

    /// Reads what a mirror sent as an answer to `question` about the table `definition`.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn from_bytes(bytes: &[u8], definition: &Definition, question: &TotalsQuestion) -> Result<Self, Malformed> {
        let kinds = definition.node_kinds(question.order()).ok_or(NO_NODES)?;
        let mut reader = Reader::new(bytes, "an answer of totals");
        if reader.byte()? != VERSION {
            return Err(Malformed("an answer of a version that is not known"));
        }
        let digest = reader.array()?;
        let mut intervals = Vec::new();
        for _ in question.intervals() {
            let mut spans = Vec::new();
            for _ in 0..reader.count()? {
                spans.push(Span::read(&mut reader, &kinds, definition, question)?);
            }
            intervals.push(spans);
        }
        let groups = read_groups(&mut reader, definition)?;
        let (signature, hints) = read_signature(&mut reader)?;
        reader.end()?;
        Ok(Self { question: digest, intervals, groups, signature, hints })
    }
}
