//! Columns of points in memory: values of one type, some of which may be NULL.

use alloc::vec::Vec;

use crate::codec::{Nonsense, doubles, integers};

/// What a column can hold. Types of SQL are the caller's: whatever is an integer there is one here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Integers of up to 64 bits, times, states.
    Integer,
    /// Doubles, NaN and infinities among them.
    Double,
}

/// The values of a column; what stands where a value is NULL means nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Of [`Kind::Integer`].
    Integers(Vec<i64>),
    /// Of [`Kind::Double`].
    Doubles(Vec<f64>),
}

impl Values {
    /// None yet.
    pub fn new(kind: Kind) -> Self {
        match kind {
            Kind::Integer => Values::Integers(Vec::new()),
            Kind::Double => Values::Doubles(Vec::new()),
        }
    }

    /// How many, NULLs included.
    pub fn len(&self) -> usize {
        match self {
            Values::Integers(values) => values.len(),
            Values::Doubles(values) => values.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those of these values for which `is_kept` says so.
    fn kept(&self, range: core::ops::Range<usize>, is_kept: &[bool]) -> Values {
        fn of<T: Copy>(values: &[T], is_kept: &[bool]) -> Vec<T> {
            values.iter().zip(is_kept).filter(|(_, is_kept)| **is_kept).map(|(value, _)| *value).collect()
        }
        match self {
            Values::Integers(values) => Values::Integers(of(&values[range], is_kept)),
            Values::Doubles(values) => Values::Doubles(of(&values[range], is_kept)),
        }
    }
}

/// A column: its values, and which of them are there, if not all are.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// One for each point.
    pub values: Values,
    /// One for each point: whether the value is there, and not NULL.
    pub present: Option<Vec<bool>>,
}

/// How a column tells which values are there.
const ALL: u8 = 0;
const SOME: u8 = 1;

impl Column {
    /// Without values.
    pub fn new(kind: Kind) -> Self {
        Column { values: Values::new(kind), present: None }
    }

    /// Appends the bytes of these values: a byte, 0 if all are there, else 1 and which are, as integers; then those.
    pub(crate) fn encode(&self, range: core::ops::Range<usize>, out: &mut Vec<u8>) {
        let present = self.present.as_ref().map(|present| &present[range.clone()]);
        match present.filter(|present| present.contains(&false)) {
            None => {
                out.push(ALL);
                match &self.values {
                    Values::Integers(values) => integers::encode(&values[range], out),
                    Values::Doubles(values) => doubles::encode(&values[range], out),
                }
            }
            Some(present) => {
                out.push(SOME);
                integers::encode(&present.iter().map(|is_there| i64::from(*is_there)).collect::<Vec<_>>(), out);
                match self.values.kept(range, present) {
                    Values::Integers(values) => integers::encode(&values, out),
                    Values::Doubles(values) => doubles::encode(&values, out),
                }
            }
        }
    }

    /// Appends so many values, and takes their bytes off the front.
    pub(crate) fn decode(&mut self, bytes: &mut &[u8], count: usize) -> Result<(), Nonsense> {
        let (how, rest) = bytes.split_first().ok_or(Nonsense)?;
        *bytes = rest;
        let begun = self.values.len();
        let present = match *how {
            ALL => None,
            SOME => Some(decode_present(bytes, count)?),
            _ => return Err(Nonsense),
        };
        let there = present.as_ref().map_or(count, |present| present.iter().filter(|is_there| **is_there).count());
        match &mut self.values {
            Values::Integers(values) => {
                integers::decode(bytes, there, values)?;
                spread(values, begun, present.as_deref(), 0);
            }
            Values::Doubles(values) => {
                doubles::decode(bytes, there, values)?;
                spread(values, begun, present.as_deref(), 0.0);
            }
        }
        if let Some(all) = &mut self.present {
            all.extend(present.unwrap_or_else(|| alloc::vec![true; count]));
        } else if let Some(present) = present {
            let mut all = alloc::vec![true; begun];
            all.extend(present);
            self.present = Some(all);
        }
        Ok(())
    }

    /// Appends so many NULLs.
    pub(crate) fn append_nothing(&mut self, count: usize) {
        let begun = self.values.len();
        match &mut self.values {
            Values::Integers(values) => values.resize(begun + count, 0),
            Values::Doubles(values) => values.resize(begun + count, 0.0),
        }
        let present = self.present.get_or_insert_with(|| alloc::vec![true; begun]);
        present.resize(begun + count, false);
    }
}

fn decode_present(bytes: &mut &[u8], count: usize) -> Result<Vec<bool>, Nonsense> {
    let mut present = Vec::new();
    integers::decode(bytes, count, &mut present)?;
    let is_there = |value: i64| if (0..=1).contains(&value) { Ok(value == 1) } else { Err(Nonsense) };
    present.into_iter().map(is_there).collect()
}

/// Moves the values from `begun` on to the places of those that are there.
fn spread<T: Copy>(values: &mut Vec<T>, begun: usize, present: Option<&[bool]>, nothing: T) {
    let Some(present) = present else { return };
    let mut next = values.len();
    values.resize(begun + present.len(), nothing);
    for (at, is_there) in present.iter().enumerate().rev() {
        values[begun + at] = if *is_there {
            next -= 1;
            values[next]
        } else {
            nothing
        };
    }
}
