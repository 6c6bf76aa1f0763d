//! What is known of many rows at once: how many there are, and of some columns how many values, their sum, least and largest.

use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::bytes::{Reader, Writer};
use crate::error::Malformed;
use crate::value::{Type, Value};
use crate::wide::Wide;

const WHAT: &str = "totals of rows";

/// Memory that the totals of a column take.
const COLUMN_BYTES: usize = 128;

/// The totals of one column's values; NULLs are none of them.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnTotals {
    /// How many values there are.
    pub count: u64,
    /// Their sum, of a NUMERIC's digits without the point; 0 for types that are not summed.
    pub sum: Wide,
    /// The least; NULL if there is none.
    pub least: Value,
    /// The largest; NULL if there is none.
    pub largest: Value,
}

/// The totals of rows, and of the values of some columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Totals {
    /// How many rows there are.
    pub rows: u64,
    /// For each column.
    pub columns: Vec<ColumnTotals>,
}

impl Type {
    /// Whether totals of such a column can be signed: values of one size, so that no row makes them large.
    #[must_use]
    pub fn has_totals(self) -> bool {
        self.holds_integers() || matches!(self, Self::Numeric(..) | Self::Real | Self::Double)
    }

    /// Whether such values have an exact sum that means something.
    #[must_use]
    pub fn is_summed(self) -> bool {
        matches!(self, Self::SmallInt | Self::Integer | Self::BigInt | Self::Numeric(..))
    }

    /// How two values of this type sort.
    fn compare(self, a: &Value, b: &Value) -> Result<Ordering, Malformed> {
        let encoded = |value| {
            let mut bytes = Vec::new();
            self.encode(value, &mut bytes).map_err(|_| Malformed(WHAT)).map(|()| bytes)
        };
        Ok(encoded(a)?.cmp(&encoded(b)?))
    }
}

impl ColumnTotals {
    fn none() -> Self {
        Self { count: 0, sum: Wide::default(), least: Value::Null, largest: Value::Null }
    }

    fn of(kind: Type, value: &Value) -> Result<Self, Malformed> {
        let sum = match value {
            Value::Null => return Ok(Self::none()),
            Value::Integer(value) if kind.is_summed() => i128::from(*value).into(),
            Value::Numeric(value) if kind.is_summed() => (*value).into(),
            _ => Wide::default(),
        };
        // A value of another type is found here.
        kind.compare(value, value)?;
        Ok(Self { count: 1, sum, least: value.clone(), largest: value.clone() })
    }

    fn add(&mut self, kind: Type, other: &Self) -> Result<(), Malformed> {
        if other.count == 0 {
            return Ok(());
        }
        if self.count == 0 || kind.compare(&other.least, &self.least)? == Ordering::Less {
            self.least = other.least.clone();
        }
        if self.count == 0 || kind.compare(&other.largest, &self.largest)? == Ordering::Greater {
            self.largest = other.largest.clone();
        }
        self.count = self.count.checked_add(other.count).ok_or(Malformed(WHAT))?;
        self.sum = self.sum.checked_add(other.sum).ok_or(Malformed(WHAT))?;
        Ok(())
    }

    fn write(&self, kind: Type, writer: &mut Writer) -> Result<(), Malformed> {
        writer.number(self.count);
        if self.count > 0 {
            if kind.is_summed() {
                self.sum.write(writer);
            }
            for value in [&self.least, &self.largest] {
                kind.encode(value, &mut writer.0).map_err(|_| Malformed(WHAT))?;
            }
        }
        Ok(())
    }

    fn read(kind: Type, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let count = reader.number()?;
        if count == 0 {
            return Ok(Self::none());
        }
        let sum = if kind.is_summed() { Wide::read(reader)? } else { Wide::default() };
        let (least, largest) = (kind.decode(reader)?, kind.decode(reader)?);
        // NULL is after all values.
        if largest == Value::Null || kind.compare(&least, &largest)? == Ordering::Greater {
            return Err(Malformed(WHAT));
        }
        Ok(Self { count, sum, least, largest })
    }
}

impl Totals {
    /// Of no row; `kinds` are the columns' types.
    #[must_use]
    pub fn none(kinds: &[Type]) -> Self {
        Self { rows: 0, columns: kinds.iter().map(|_| ColumnTotals::none()).collect() }
    }

    /// Adds a row with these values of the columns.
    ///
    /// # Errors
    /// [`Malformed`]: values of other types.
    pub fn add_row<'a>(
        &mut self,
        kinds: &[Type],
        values: impl IntoIterator<Item = &'a Value>,
    ) -> Result<(), Malformed> {
        self.rows = self.rows.checked_add(1).ok_or(Malformed(WHAT))?;
        for ((column, kind), value) in self.columns.iter_mut().zip(kinds).zip(values) {
            column.add(*kind, &ColumnTotals::of(*kind, value)?)?;
        }
        Ok(())
    }

    /// Adds the totals of other rows.
    ///
    /// # Errors
    /// [`Malformed`]: of more rows than there can be.
    pub fn add(&mut self, kinds: &[Type], other: &Self) -> Result<(), Malformed> {
        self.rows = self.rows.checked_add(other.rows).ok_or(Malformed(WHAT))?;
        for ((column, kind), other) in self.columns.iter_mut().zip(kinds).zip(&other.columns) {
            column.add(*kind, other)?;
        }
        Ok(())
    }

    /// Appends them.
    pub(crate) fn write(&self, kinds: &[Type], writer: &mut Writer) -> Result<(), Malformed> {
        writer.number(self.rows);
        self.columns.iter().zip(kinds).try_for_each(|(column, kind)| column.write(*kind, writer))
    }

    /// Reads them.
    pub(crate) fn read(kinds: &[Type], reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        reader.hold(kinds.len() * COLUMN_BYTES)?;
        let rows = reader.number()?;
        let columns = kinds.iter().map(|kind| ColumnTotals::read(*kind, reader)).collect::<Result<Vec<_>, _>>()?;
        if columns.iter().any(|column| column.count > rows) {
            return Err(Malformed(WHAT));
        }
        Ok(Self { rows, columns })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::Totals;
    use crate::bytes::{Reader, Writer};
    use crate::value::{Type, Value};

    const KINDS: [Type; 3] = [Type::Numeric(38, 2), Type::Double, Type::SmallInt];

    fn written(totals: &Totals) -> Vec<u8> {
        let mut writer = Writer::default();
        totals.write(&KINDS, &mut writer).expect("totals");
        writer.0
    }

    type Numbers = (Option<i64>, Option<f64>, Option<i16>);

    fn row((a, b, c): &Numbers) -> [Value; 3] {
        [
            a.map_or(Value::Null, |value| Value::Numeric(value.into())),
            b.map_or(Value::Null, Value::Double),
            c.map_or(Value::Null, |value| Value::Integer(value.into())),
        ]
    }

    fn of(rows: &[Numbers]) -> Totals {
        let mut totals = Totals::none(&KINDS);
        rows.iter().for_each(|numbers| totals.add_row(&KINDS, &row(numbers)).expect("a row"));
        totals
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_whole(rows: Vec<Numbers>, cut in 0usize..20) {
            let whole = of(&rows);
            let (left, right) = rows.split_at(cut.min(rows.len()));
            let mut sum = of(left);
            sum.add(&KINDS, &of(right)).expect("totals");
            prop_assert_eq!(written(&sum), written(&whole));
            let numbers: Vec<i16> = rows.iter().filter_map(|row| row.2).collect();
            let column = &whole.columns[2];
            prop_assert_eq!(column.count, numbers.len() as u64);
            prop_assert_eq!(column.sum.to_i128(), Some(numbers.iter().map(|number| i128::from(*number)).sum()));
            let value = |number: Option<&i16>| number.map_or(Value::Null, |number| Value::Integer((*number).into()));
            prop_assert!(column.least == value(numbers.iter().min()) && column.largest == value(numbers.iter().max()));
            let bytes = written(&whole);
            let mut reader = Reader::new(&bytes, "test");
            let read = Totals::read(&KINDS, &mut reader).expect("totals");
            prop_assert!(reader.end().is_ok() && written(&read) == bytes);
        }

        #[test]
        fn what_parses_is_written_in_the_same_way(bytes in prop::collection::vec(0u8..4, 0..60)) {
            let mut reader = Reader::new(&bytes, "test");
            if let Ok(totals) = Totals::read(&KINDS, &mut reader) {
                prop_assert_eq!(&written(&totals)[..], &bytes[..bytes.len() - reader.left()]);
            }
        }
    }

    #[test]
    fn totals_that_cannot_be_are_refused() {
        let small = |value: i64| {
            let mut bytes = Vec::new();
            Type::SmallInt.encode(&Value::Integer(value), &mut bytes).expect("a value");
            bytes
        };
        let read = |rows: u8, count: u8, least: i64, largest: &[u8]| {
            let bytes = [&[rows, count, 1, 5][..], &small(least), largest].concat();
            Totals::read(&[Type::SmallInt], &mut Reader::new(&bytes, "test")).is_ok()
        };
        assert!(read(2, 1, 5, &small(5)));
        assert!(!read(1, 2, 5, &small(5)), "more values than rows");
        assert!(!read(2, 1, 6, &small(5)), "the least is larger than the largest");
        assert!(!read(2, 1, 5, &[2]), "a largest of NULL");
        assert!(Totals::none(&KINDS).add_row(&KINDS, &[Value::Integer(1), Value::Null, Value::Null]).is_err());
    }
}
