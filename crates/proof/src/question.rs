//! What a reader asks of a mirror: records of some intervals of one order, and which of their values.

use alloc::vec::Vec;

use crate::bytes::{Reader, Writer};
use crate::definition::Definition;
use crate::digest::{Digest, digest};
use crate::error::Malformed;
use crate::position::Interval;

/// Intervals of a question at most.
pub const INTERVALS_MAX: usize = 4096;

/// From which side records are counted when there is a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the first on.
    Ascending,
    /// From the last on.
    Descending,
}

/// A question, made by the reader itself: nothing in an answer says what was asked.
///
/// Invariants: at least one interval; they are sorted and do not overlap; columns are sorted and hold those of the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    definition: Digest,
    order: u8,
    intervals: Vec<Interval>,
    columns: Vec<u16>,
    direction: Direction,
    limit: Option<u64>,
    hinted: bool,
}

impl Question {
    /// Records of `intervals` in the order `order` of a table, with the values of `columns` and of the order's own.
    ///
    /// # Errors
    /// [`Malformed`]: no such order or column, no interval, too many, or such as overlap.
    pub fn new(
        definition: &Definition,
        order: u8,
        intervals: Vec<Interval>,
        columns: &[u16],
    ) -> Result<Self, Malformed> {
        let own = definition
            .orders
            .get(usize::from(order))
            .ok_or(Malformed("a question about an order that is not there"))?;
        let mut columns: Vec<u16> = columns.iter().chain(own).copied().collect();
        columns.sort_unstable();
        columns.dedup();
        let question = Self {
            definition: definition.digest(),
            order,
            intervals,
            columns,
            direction: Direction::Ascending,
            limit: None,
            hinted: false,
        };
        question.check(definition)?;
        Ok(question)
    }

    /// At most `limit` records, counted from one side.
    ///
    /// # Errors
    /// [`Malformed`]: no record at all.
    pub fn limited(self, limit: u64, direction: Direction) -> Result<Self, Malformed> {
        if limit == 0 {
            Err(Malformed("a question for no record"))
        } else {
            Ok(Self { limit: Some(limit), direction, ..self })
        }
    }

    /// With hints: 96 bytes more for each record, and checked some fifteen times faster.
    #[must_use]
    pub fn hinted(self) -> Self {
        Self { hinted: true, ..self }
    }

    fn check(&self, definition: &Definition) -> Result<(), Malformed> {
        let own = definition.orders.get(usize::from(self.order));
        let holds_own = own.is_some_and(|own| own.iter().all(|column| self.columns.binary_search(column).is_ok()));
        let sorted = self.columns.windows(2).all(|pair| pair[0] < pair[1]);
        let there = self.columns.last().is_none_or(|last| usize::from(*last) < definition.columns.len());
        if !holds_own || !sorted || !there {
            return Err(Malformed("a question about columns that are not there"));
        }
        let apart = self.intervals.windows(2).all(|pair| pair[0].end() <= pair[1].start());
        if self.intervals.is_empty() || self.intervals.len() > INTERVALS_MAX || !apart {
            return Err(Malformed("a question has 1 to 4096 intervals that do not overlap"));
        }
        Ok(())
    }

    /// Its one encoding, which is sent to mirrors.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.byte(1).raw(&self.definition).byte(self.order);
        writer.byte(u8::from(self.direction == Direction::Descending)).byte(u8::from(self.hinted));
        writer.number(self.limit.unwrap_or(0)).number(self.columns.len() as u64);
        for column in &self.columns {
            writer.number(u64::from(*column));
        }
        writer.number(self.intervals.len() as u64);
        for interval in &self.intervals {
            writer.string(interval.start()).string(interval.end());
        }
        writer.0
    }

    /// Reads a question about the table `definition`, as mirrors do.
    ///
    /// # Errors
    /// [`Malformed`]: no question, or one about another table.
    pub fn from_bytes(bytes: &[u8], definition: &Definition) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, "a question");
        if reader.byte()? != 1 {
            return Err(Malformed("a question of a version that is not known"));
        }
        if reader.array()? != definition.digest() {
            return Err(Malformed("a question about another table"));
        }
        let order = reader.byte()?;
        let direction = if flag(&mut reader)? { Direction::Descending } else { Direction::Ascending };
        let hinted = flag(&mut reader)?;
        let limit = Some(reader.number()?).filter(|limit| *limit > 0);
        if limit.is_none() && direction == Direction::Descending {
            return Err(reader.malformed());
        }
        let mut columns = Vec::new();
        for _ in 0..reader.count()? {
            columns.push(u16::try_from(reader.number()?).map_err(|_| reader.malformed())?);
        }
        let mut intervals = Vec::new();
        for _ in 0..reader.count()?.min(INTERVALS_MAX + 1) {
            intervals.push(Interval::from_bytes(reader.string()?, reader.string()?)?);
        }
        let definition_digest = definition.digest();
        let question = Self { definition: definition_digest, order, intervals, columns, direction, limit, hinted };
        question.check(definition)?;
        reader.end()?;
        Ok(question)
    }

    /// What an answer repeats, so that one to another question is told from a forged one.
    #[must_use]
    pub fn digest(&self) -> Digest {
        digest("counterfoil/question/1", &[&self.to_bytes()])
    }

    /// The digest of the table's definition.
    #[must_use]
    pub fn definition(&self) -> &Digest {
        &self.definition
    }

    /// The number of the order.
    #[must_use]
    pub fn order(&self) -> u8 {
        self.order
    }

    /// The intervals, sorted.
    #[must_use]
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// The columns whose values are shown, sorted.
    #[must_use]
    pub fn columns(&self) -> &[u16] {
        &self.columns
    }

    /// From which side a limit counts.
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Records at most.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Whether hints are wanted.
    #[must_use]
    pub fn is_hinted(&self) -> bool {
        self.hinted
    }
}

pub(crate) fn flag(reader: &mut Reader<'_>) -> Result<bool, Malformed> {
    match reader.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(reader.malformed()),
    }
}
