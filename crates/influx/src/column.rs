//! One field of a batch, as a column.

use crate::value::FieldType;

/// Texts one behind the other, so that a column of them is two allocations and goes into Arrow as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Texts {
    bytes: String,
    ends: Vec<u32>,
}

impl Texts {
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut String)) {
        write(&mut self.bytes);
        self.ends.push(u32::try_from(self.bytes.len()).expect("a batch is far smaller than 4 GB"));
    }

    /// Texts in it.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// One text.
    pub fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)? as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        Some(&self.bytes[start..end])
    }

    /// All bytes, and where each text ends among them.
    pub fn into_parts(self) -> (String, Vec<u32>) {
        (self.bytes, self.ends)
    }
}

/// The values of a column, of those rows alone that have one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "as in FieldType")]
pub enum Values {
    Float(Vec<f64>),
    Integer(Vec<i64>),
    Unsigned(Vec<u64>),
    Boolean(Vec<bool>),
    Text(Texts),
    Quality(Vec<i16>),
}

impl Values {
    pub(crate) fn new(field_type: FieldType) -> Values {
        match field_type {
            FieldType::Float => Values::Float(Vec::new()),
            FieldType::Integer => Values::Integer(Vec::new()),
            FieldType::Unsigned => Values::Unsigned(Vec::new()),
            FieldType::Boolean => Values::Boolean(Vec::new()),
            FieldType::Text => Values::Text(Texts::default()),
            FieldType::Quality => Values::Quality(Vec::new()),
        }
    }

    /// The type of the column.
    pub fn field_type(&self) -> FieldType {
        match self {
            Values::Float(_) => FieldType::Float,
            Values::Integer(_) => FieldType::Integer,
            Values::Unsigned(_) => FieldType::Unsigned,
            Values::Boolean(_) => FieldType::Boolean,
            Values::Text(_) => FieldType::Text,
            Values::Quality(_) => FieldType::Quality,
        }
    }

    /// Values in it.
    pub fn len(&self) -> usize {
        match self {
            Values::Float(values) => values.len(),
            Values::Integer(values) => values.len(),
            Values::Unsigned(values) => values.len(),
            Values::Boolean(values) => values.len(),
            Values::Text(values) => values.len(),
            Values::Quality(values) => values.len(),
        }
    }

    /// True where no row has a value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A field of a table: its values and which rows have one.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The field's name.
    pub name: String,
    /// The values, in the order of the rows that have one.
    pub values: Values,
    /// Those rows in ascending order; none where every row of the table has a value. A column that few rows have takes
    /// space for those alone, so that a batch is never larger than a multiple of its lines.
    pub rows: Option<Vec<u32>>,
}

impl Column {
    pub(crate) fn new(name: String, field_type: FieldType) -> Column {
        Column { name, values: Values::new(field_type), rows: None }
    }

    /// Says that the next value belongs to `row`, the table's newest: called before the value is pushed.
    pub(crate) fn mark(&mut self, row: u32) {
        let values = self.values.len() as u32;
        match &mut self.rows {
            Some(rows) => rows.push(row),
            None if values == row => (),
            None => self.rows = Some((0..values).chain([row]).collect()),
        }
    }

    /// Says that the table has `rows` rows and no more.
    pub(crate) fn finish(&mut self, rows: u32) {
        let values = self.values.len() as u32;
        if self.rows.is_none() && values < rows {
            self.rows = Some((0..values).collect());
        }
    }

    /// The place among [`values`](Column::values) of what `row` has.
    pub fn place(&self, row: u32) -> Option<usize> {
        match &self.rows {
            Some(rows) => rows.binary_search(&row).ok(),
            None => Some(row as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_says_which_rows_it_has() {
        let mut column = Column::new("a".to_owned(), FieldType::Integer);
        for row in [0, 1, 4] {
            column.mark(row);
            let Values::Integer(values) = &mut column.values else { unreachable!() };
            values.push(i64::from(row));
        }
        column.finish(6);
        assert_eq!(column.rows.as_deref(), Some(&[0, 1, 4][..]));
        assert_eq!((column.place(4), column.place(2)), (Some(2), None));

        let mut full = Column::new("b".to_owned(), FieldType::Integer);
        full.finish(0);
        assert_eq!(full.rows, None);
        full.finish(1);
        assert_eq!(full.rows, Some(vec![]));
    }
}
