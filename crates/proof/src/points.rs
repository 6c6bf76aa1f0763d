//! What a reader asks of a mirror for a join: the records with each of many values in an order's first column.

use alloc::vec::Vec;

use crate::bytes::{Reader, Writer};
use crate::definition::Definition;
use crate::digest::{Digest, digest};
use crate::error::Malformed;
use crate::position::{Edge, Interval, KEY_BYTES_MAX};
use crate::question::flag;

/// Values of a question at most.
pub const POINTS_MAX: usize = 1 << 16;

/// Bytes of a question's values together at most.
pub const POINTS_BYTES_MAX: usize = 8 << 20;

/// A question about values, made by the reader itself from rows that it has checked.
///
/// Invariants: at least one value; they are encodings of values of the order's first column, not NULL, strictly increasing;
/// columns are sorted and hold those of the order.
#[derive(Clone, PartialEq, Eq)]
pub struct Points {
    definition: Digest,
    order: u8,
    values: Vec<Vec<u8>>,
    columns: Vec<u16>,
    hinted: bool,
}

/// Values reach no log.
impl core::fmt::Debug for Points {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Points({} values of order {})", self.values.len(), self.order)
    }
}

impl Points {
    /// Records that have one of `values` in the first column of the order `order`, with the values of `columns` and of the
    /// order's own.
    ///
    /// # Errors
    /// [`Malformed`]: no such order or column, an order by no column, no value, too many, one that is none of the column.
    pub fn new(definition: &Definition, order: u8, values: Vec<Vec<u8>>, columns: &[u16]) -> Result<Self, Malformed> {
        let own = definition.orders.get(usize::from(order));
        let own = own.ok_or(Malformed("a question about an order that is not there"))?;
        let mut columns: Vec<u16> = columns.iter().chain(own).copied().collect();
        columns.sort_unstable();
        columns.dedup();
        let points = Self { definition: definition.digest(), order, values, columns, hinted: false };
        points.check(definition)?;
        Ok(points)
    }

    /// With hints: 96 bytes more for each thing signed, and checked some fifteen times faster.
    #[must_use]
    pub fn hinted(self) -> Self {
        Self { hinted: true, ..self }
    }

    fn check(&self, definition: &Definition) -> Result<(), Malformed> {
        let own = definition.orders.get(usize::from(self.order)).map_or(&[][..], Vec::as_slice);
        let Some(first) = own.first() else {
            return Err(Malformed("a question about values of an order by no column"));
        };
        let holds_own = own.iter().all(|column| self.columns.binary_search(column).is_ok());
        let sorted = self.columns.windows(2).all(|pair| pair[0] < pair[1]);
        let there = self.columns.last().is_none_or(|last| usize::from(*last) < definition.columns.len());
        if !holds_own || !sorted || !there {
            return Err(Malformed("a question about columns that are not there"));
        }
        let bytes: usize = self.values.iter().map(Vec::len).sum();
        if self.values.is_empty() || self.values.len() > POINTS_MAX || bytes > POINTS_BYTES_MAX {
            return Err(Malformed("a question has 1 to 65536 values, of eight megabytes together"));
        }
        let kind = definition.columns[usize::from(*first)].kind;
        let is_value = |value: &Vec<u8>| {
            let mut reader = Reader::new(value, "");
            // The first byte says that it is not NULL, which equals nothing.
            let is_read = value.first() == Some(&1) && kind.decode(&mut reader).is_ok();
            is_read && reader.left() == 0 && value.len() <= KEY_BYTES_MAX
        };
        if !self.values.iter().all(is_value) || !self.values.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err(Malformed("a question about values that are not in order, or none of the column"));
        }
        Ok(())
    }

    /// Its one encoding, which is sent to mirrors.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.byte(2).raw(&self.definition).byte(self.order).byte(u8::from(self.hinted));
        writer.number(self.columns.len() as u64);
        for column in &self.columns {
            writer.number(u64::from(*column));
        }
        writer.number(self.values.len() as u64);
        for value in &self.values {
            writer.string(value);
        }
        writer.0
    }

    /// Whether bytes that a mirror was sent are such a question: the first one says so.
    #[must_use]
    pub fn are(bytes: &[u8]) -> bool {
        bytes.first() == Some(&2)
    }

    /// Reads a question about the table `definition`, as mirrors do.
    ///
    /// # Errors
    /// [`Malformed`]: no question, or one about another table.
    pub fn from_bytes(bytes: &[u8], definition: &Definition) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, "a question");
        if reader.byte()? != 2 {
            return Err(Malformed("a question of a version that is not known"));
        }
        if reader.array()? != definition.digest() {
            return Err(Malformed("a question about another table"));
        }
        let (order, hinted) = (reader.byte()?, flag(&mut reader)?);
        let mut columns = Vec::new();
        for _ in 0..reader.count()? {
            columns.push(u16::try_from(reader.number()?).map_err(|_| reader.malformed())?);
        }
        let mut values = Vec::new();
        for _ in 0..reader.count()?.min(POINTS_MAX + 1) {
            values.push(reader.string()?.to_vec());
        }
        let points = Self { definition: definition.digest(), order, values, columns, hinted };
        points.check(definition)?;
        reader.end()?;
        Ok(points)
    }

    /// What an answer repeats, so that one to another question is told from a forged one.
    #[must_use]
    pub fn digest(&self) -> Digest {
        digest("counterfoil/points/1", &[&self.to_bytes()])
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

    /// The encoded values, increasing.
    #[must_use]
    pub fn values(&self) -> &[Vec<u8>] {
        &self.values
    }

    /// The columns whose values are shown, sorted.
    #[must_use]
    pub fn columns(&self) -> &[u16] {
        &self.columns
    }

    /// Whether hints are wanted.
    #[must_use]
    pub fn is_hinted(&self) -> bool {
        self.hinted
    }

    /// Where the records with a value stand.
    #[must_use]
    pub fn interval(value: &[u8]) -> Interval {
        // Values begin with 01, so that something always lies behind.
        Interval::new(Edge::before(value)..Edge::behind(value)).unwrap_or_else(Interval::all)
    }
}
