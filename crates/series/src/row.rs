//! Values of one point by their types, for callers that know them: nothing is boxed or asked twice on the way into a batch.

use crate::column::{Column, Text, Value, Values};

/// A value of a column; NULL where it is an `Option` without one.
pub trait Field {
    /// Appends it.
    ///
    /// # Panics
    /// If it is of another kind than the column.
    fn put(self, column: &mut Column);
}

/// The values of a point in the order of its columns: tuples of up to eight fields.
pub trait Row {
    /// Appends them, and NULL to columns behind the last one.
    ///
    /// # Panics
    /// If one is of another kind than its column, or there are more than columns.
    fn put(self, columns: &mut [Column]);
}

impl Field for f64 {
    #[inline(always)]
    fn put(self, column: &mut Column) {
        match (&mut column.values, &column.present) {
            (Values::Doubles(values), None) => values.push(self),
            _ => column.push(Some(Value::Double(self))),
        }
    }
}

impl Field for i64 {
    #[inline(always)]
    fn put(self, column: &mut Column) {
        match (&mut column.values, &column.present) {
            (Values::Integers(values), None) => values.push(self),
            _ => column.push(Some(Value::Integer(self))),
        }
    }
}

impl Field for Text {
    #[inline]
    fn put(self, column: &mut Column) {
        column.push(Some(Value::Text(self)));
    }
}

impl<F: Field> Field for Option<F> {
    #[inline(always)]
    fn put(self, column: &mut Column) {
        match self {
            Some(field) => field.put(column),
            None => column.push(None),
        }
    }
}

macro_rules! row {
    ($($field:ident $place:tt),*) => {
        impl<$($field: Field),*> Row for ($($field,)*) {
            #[inline(always)]
            fn put(self, columns: &mut [Column]) {
                $(self.$place.put(&mut columns[$place]);)*
                columns[[$(stringify!($place)),*].len()..].iter_mut().for_each(|column| column.push(None));
            }
        }
    };
}

row!(A 0);
row!(A 0, B 1);
row!(A 0, B 1, C 2);
row!(A 0, B 1, C 2, D 3);
row!(A 0, B 1, C 2, D 3, E 4);
row!(A 0, B 1, C 2, D 3, E 4, F 5);
row!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
row!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, Kind};

    #[test]
    fn typed_values_are_what_values_are() {
        let kinds = [Kind::Double, Kind::Integer, Kind::Text, Kind::Integer];
        let (mut typed, mut plain) = (Batch::new(&kinds), Batch::new(&kinds));
        for at in 0..50_i64 {
            let number = (at % 7 > 0).then_some(at as f64 / 3.0);
            let text = Text::from([at as u8]);
            typed.push_row(3, at, (number, at * 5, text.clone()));
            plain.push(3, at, [number.map(Value::Double), Some(Value::Integer(at * 5)), Some(Value::Text(text)), None]);
        }
        assert_eq!((typed.series, typed.rows), (plain.series, plain.rows));
    }

    #[test]
    #[should_panic(expected = "another kind")]
    fn another_kind_is_refused() {
        Batch::new(&[Kind::Integer]).push_row(0, 0, (1.5,));
    }
}
