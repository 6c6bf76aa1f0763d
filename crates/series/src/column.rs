//! Columns of points in memory: values of one type, some of which may be NULL.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::size_of;
use core::ops::Range;

use serde::{Deserialize, Serialize};

use crate::batch::keep;
use crate::codec::{Nonsense, doubles, integers, texts};

/// What a column can hold. Types of SQL are the caller's: whatever is an integer there is one here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Integers of up to 64 bits, times, states, truths.
    Integer,
    /// Doubles, NaN and infinities among them.
    Double,
    /// Texts and bytes.
    Text,
}

/// Bytes of a text, shared by whoever has the same.
pub type Text = Arc<[u8]>;

/// Bytes that the counts of a shared text take.
const SHARED_BYTES: usize = 16;

/// The values of a column; what stands where a value is NULL means nothing.
#[derive(Clone, PartialEq)]
pub enum Values {
    /// Of [`Kind::Integer`].
    Integers(Vec<i64>),
    /// Of [`Kind::Double`].
    Doubles(Vec<f64>),
    /// Of [`Kind::Text`].
    Texts(Vec<Text>),
}

/// Does the same to the vector of whichever kind.
macro_rules! each {
    ($values:expr, $vector:ident => $do:expr) => {
        match $values {
            Values::Integers($vector) => $do,
            Values::Doubles($vector) => $do,
            Values::Texts($vector) => $do,
        }
    };
}

/// Does the same to the vectors of two columns of one kind.
macro_rules! both {
    ($values:expr, $others:expr, $vector:ident, $other:ident => $do:expr) => {
        match ($values, $others) {
            (Values::Integers($vector), Values::Integers($other)) => $do,
            (Values::Doubles($vector), Values::Doubles($other)) => $do,
            (Values::Texts($vector), Values::Texts($other)) => $do,
            _ => unreachable!("columns of one table are of one kind"),
        }
    };
}

impl core::fmt::Debug for Values {
    /// What the values are stays where it is.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} values", self.len())
    }
}

impl Values {
    /// None yet.
    pub fn new(kind: Kind) -> Self {
        match kind {
            Kind::Integer => Values::Integers(Vec::new()),
            Kind::Double => Values::Doubles(Vec::new()),
            Kind::Text => Values::Texts(Vec::new()),
        }
    }

    /// What they are.
    pub fn kind(&self) -> Kind {
        match self {
            Values::Integers(_) => Kind::Integer,
            Values::Doubles(_) => Kind::Double,
            Values::Texts(_) => Kind::Text,
        }
    }

    /// How many, NULLs included.
    pub fn len(&self) -> usize {
        each!(self, values => values.len())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn texts(&self) -> Option<&[Text]> {
        match self {
            Values::Texts(values) => Some(values),
            _ => None,
        }
    }

    /// Bytes of memory that they take. A text that several share counts for each of them.
    fn bytes(&self) -> usize {
        match self {
            Values::Integers(values) => values.capacity() * size_of::<i64>(),
            Values::Doubles(values) => values.capacity() * size_of::<f64>(),
            Values::Texts(values) => {
                let texts = values.iter().map(|text| text.len() + SHARED_BYTES).sum::<usize>();
                values.capacity() * size_of::<Text>() + texts
            }
        }
    }

    /// Those of these values for which `is_kept` says so.
    fn kept(&self, range: Range<usize>, is_kept: &[bool]) -> Values {
        fn of<T: Clone>(values: &[T], is_kept: &[bool]) -> Vec<T> {
            values.iter().zip(is_kept).filter(|(_, is_kept)| **is_kept).map(|(value, _)| value.clone()).collect()
        }
        match self {
            Values::Integers(values) => Values::Integers(of(&values[range], is_kept)),
            Values::Doubles(values) => Values::Doubles(of(&values[range], is_kept)),
            Values::Texts(values) => Values::Texts(of(&values[range], is_kept)),
        }
    }

    fn encode(&self, range: Range<usize>, out: &mut Vec<u8>) {
        match self {
            Values::Integers(values) => integers::encode(&values[range], out),
            Values::Doubles(values) => doubles::encode(&values[range], out),
            Values::Texts(values) => texts::encode(&values[range], out),
        }
    }

    /// Appends so many values from the front of some bytes, in the places that are there.
    fn decode(&mut self, bytes: &mut &[u8], there: usize, present: Option<&[bool]>) -> Result<(), Nonsense> {
        let begun = self.len();
        match self {
            Values::Integers(values) => {
                integers::decode(bytes, there, values)?;
                spread(values, begun, present, 0);
            }
            Values::Doubles(values) => {
                doubles::decode(bytes, there, values)?;
                spread(values, begun, present, 0.0);
            }
            Values::Texts(values) => {
                texts::decode(bytes, there, values)?;
                spread(values, begun, present, Arc::default());
            }
        }
        Ok(())
    }

    /// Makes room for so many values more.
    pub(crate) fn reserve(&mut self, count: usize) {
        match self {
            Values::Integers(values) => values.reserve(count),
            Values::Doubles(values) => values.reserve(count),
            Values::Texts(values) => values.reserve(count),
        }
    }

    /// Appends what stands for NULL.
    fn extend_with_nothing(&mut self, count: usize) {
        match self {
            Values::Integers(values) => values.resize(values.len() + count, 0),
            Values::Doubles(values) => values.resize(values.len() + count, 0.0),
            Values::Texts(values) => values.resize(values.len() + count, Arc::default()),
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

    /// Another one of the same kind, without values.
    pub(crate) fn none(&self) -> Column {
        Column::new(self.values.kind())
    }

    /// Bytes of memory that the values take.
    pub(crate) fn bytes(&self) -> usize {
        self.values.bytes() + self.present.as_ref().map_or(0, Vec::capacity)
    }

    /// Whether a value is there.
    pub fn is_present(&self, at: usize) -> bool {
        self.present.as_ref().is_none_or(|present| present[at])
    }

    /// Appends one value, or NULL if it is of another kind or none.
    ///
    /// # Panics
    /// If the value is of another kind than the column.
    #[inline]
    pub fn push(&mut self, value: Option<Value>) {
        match (&mut self.values, &value, &self.present) {
            (Values::Integers(values), Some(Value::Integer(value)), None) => values.push(*value),
            (Values::Doubles(values), Some(Value::Double(value)), None) => values.push(*value),
            _ => self.push_other(value),
        }
    }

    /// The same where it is no number, or NULL may be in the column.
    fn push_other(&mut self, value: Option<Value>) {
        match (&mut self.values, value) {
            (Values::Integers(values), Some(Value::Integer(value))) => values.push(value),
            (Values::Doubles(values), Some(Value::Double(value))) => values.push(value),
            (Values::Texts(values), Some(Value::Text(value))) => values.push(value),
            (_, None) => return self.append_nothing(1),
            _ => panic!("a value of another kind than its column"),
        }
        if let Some(present) = &mut self.present {
            present.push(true);
        }
    }

    /// The value at a place.
    pub fn value(&self, at: usize) -> Option<Value> {
        self.is_present(at).then(|| match &self.values {
            Values::Integers(values) => Value::Integer(values[at]),
            Values::Doubles(values) => Value::Double(values[at]),
            Values::Texts(values) => Value::Text(values[at].clone()),
        })
    }

    /// Leaves the values for which `is_kept` says so.
    pub(crate) fn retain(&mut self, is_kept: &[bool]) {
        each!(&mut self.values, values => keep(values, is_kept));
        self.present.iter_mut().for_each(|present| keep(present, is_kept));
    }

    /// Appends values of another column.
    pub(crate) fn append(&mut self, other: &Column, range: Range<usize>) {
        self.note_present(other.present.as_ref().map(|present| &present[range.clone()]), range.len());
        both!(&mut self.values, &other.values, values, others => values.extend_from_slice(&others[range]));
    }

    /// Appends the values of another column at these places.
    pub(crate) fn append_at(&mut self, other: &Column, rows: &[u32]) {
        if self.present.is_some() || other.present.is_some() {
            let present: Vec<bool> = rows.iter().map(|row| other.is_present(*row as usize)).collect();
            self.note_present(Some(&present), present.len());
        }
        both!(&mut self.values, &other.values, values, others => {
            values.extend(rows.iter().map(|row| copy(others, *row as usize)));
        });
    }

    /// Appends one value of another column.
    pub(crate) fn append_one(&mut self, other: &Column, at: usize) {
        if self.present.is_some() || !other.is_present(at) {
            self.note_present(other.present.as_ref().map(|present| &present[at..=at]), 1);
        }
        both!(&mut self.values, &other.values, values, others => values.push(copy(others, at)));
    }

    /// Notes which of the values that come next are there.
    fn note_present(&mut self, present: Option<&[bool]>, count: usize) {
        if self.present.is_none() && present.is_none_or(|present| !present.contains(&false)) {
            return;
        }
        let begun = self.values.len();
        let all = self.present.get_or_insert_with(|| alloc::vec![true; begun]);
        match present {
            Some(present) => all.extend_from_slice(present),
            None => all.resize(begun + count, true),
        }
    }

    /// Puts a value of another column before the value at a place.
    pub(crate) fn insert(&mut self, place: usize, other: &Column, at: usize) {
        if self.present.is_some() || !other.is_present(at) {
            let count = self.values.len();
            let present = self.present.get_or_insert_with(|| alloc::vec![true; count]);
            present.insert(place, other.is_present(at));
        }
        both!(&mut self.values, &other.values, values, others => values.insert(place, copy(others, at)));
    }

    /// Replaces the value at a place by one of another column.
    pub(crate) fn set(&mut self, place: usize, other: &Column, at: usize) {
        if self.present.is_some() || !other.is_present(at) {
            let count = self.values.len();
            let present = self.present.get_or_insert_with(|| alloc::vec![true; count]);
            present[place] = other.is_present(at);
        }
        both!(&mut self.values, &other.values, values, others => values[place] = copy(others, at));
    }

    /// Takes values away.
    pub(crate) fn remove(&mut self, range: Range<usize>) {
        if let Some(present) = &mut self.present {
            present.drain(range.clone());
        }
        each!(&mut self.values, values => drop(values.drain(range)));
    }

    /// Appends the bytes of these values: a byte, 0 if all are there, else 1 and which are, as integers; then those.
    pub(crate) fn encode(&self, range: Range<usize>, out: &mut Vec<u8>) {
        let present = self.present.as_ref().map(|present| &present[range.clone()]);
        match present.filter(|present| present.contains(&false)) {
            None => {
                out.push(ALL);
                self.values.encode(range, out);
            }
            Some(present) => {
                out.push(SOME);
                integers::encode(&present.iter().map(|is_there| i64::from(*is_there)).collect::<Vec<_>>(), out);
                let kept = self.values.kept(range, present);
                kept.encode(0..kept.len(), out);
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
        self.values.decode(bytes, there, present.as_deref())?;
        if let Some(all) = &mut self.present {
            all.extend(present.unwrap_or_else(|| alloc::vec![true; count]));
        } else if let Some(present) = present {
            let mut all = alloc::vec![true; begun];
            all.extend(present);
            self.present = Some(all);
        }
        Ok(())
    }

    /// Takes the bytes of so many values off the front, and none of them in.
    pub(crate) fn skip(kind: Kind, bytes: &mut &[u8], count: usize) -> Result<(), Nonsense> {
        let (how, rest) = bytes.split_first().ok_or(Nonsense)?;
        *bytes = rest;
        let there = match *how {
            ALL => count,
            SOME => decode_present(bytes, count)?.into_iter().filter(|is_there| *is_there).count(),
            _ => return Err(Nonsense),
        };
        match kind {
            Kind::Integer => integers::skip(bytes, there),
            Kind::Double => doubles::skip(bytes, there),
            Kind::Text => texts::skip(bytes, there),
        }
    }

    /// Appends so many NULLs.
    pub fn append_nothing(&mut self, count: usize) {
        let begun = self.values.len();
        self.values.extend_with_nothing(count);
        let present = self.present.get_or_insert_with(|| alloc::vec![true; begun]);
        present.resize(begun + count, false);
    }
}

/// One value.
#[derive(Clone, PartialEq)]
pub enum Value {
    /// Of [`Kind::Integer`].
    Integer(i64),
    /// Of [`Kind::Double`].
    Double(f64),
    /// Of [`Kind::Text`].
    Text(Text),
}

impl core::fmt::Debug for Value {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a value")
    }
}

fn decode_present(bytes: &mut &[u8], count: usize) -> Result<Vec<bool>, Nonsense> {
    let mut present = Vec::new();
    integers::decode(bytes, count, &mut present)?;
    let is_there = |value: i64| if (0..=1).contains(&value) { Ok(value == 1) } else { Err(Nonsense) };
    present.into_iter().map(is_there).collect()
}

fn copy<T: Clone>(values: &[T], at: usize) -> T {
    values[at].clone()
}

/// Moves the values from `begun` on to the places of those that are there.
fn spread<T: Clone>(values: &mut Vec<T>, begun: usize, present: Option<&[bool]>, nothing: T) {
    let Some(present) = present else { return };
    let mut next = values.len();
    values.resize(begun + present.len(), nothing.clone());
    for (at, is_there) in present.iter().enumerate().rev() {
        values[begun + at] = if *is_there {
            next -= 1;
            values[next].clone()
        } else {
            nothing.clone()
        };
    }
}
