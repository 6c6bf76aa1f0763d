//! Rows as bytes: how they are put aside, and come back.

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::row::{RowConverter, Rows, SortField};

use crate::error::Result;

/// Rows of one schema.
pub(crate) struct RowBytes {
    schema: SchemaRef,
    converter: RowConverter,
}

impl RowBytes {
    /// Whether rows of such columns can be bytes.
    pub(crate) fn supports(schema: &Schema) -> bool {
        !schema.fields().is_empty() && RowConverter::supports_fields(&fields(schema))
    }

    pub(crate) fn new(schema: SchemaRef) -> Result<Self> {
        let converter = RowConverter::new(fields(&schema))?;
        Ok(RowBytes { schema, converter })
    }

    /// The rows of a batch.
    pub(crate) fn of(&self, batch: &RecordBatch) -> Result<Rows> {
        Ok(self.converter.convert_columns(batch.columns())?)
    }

    /// The rows that lie one behind the other in some bytes, each to one of `ends`.
    pub(crate) fn batch(&self, bytes: &[u8], ends: &[usize]) -> Result<RecordBatch> {
        let parser = self.converter.parser();
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let rows = starts.zip(ends).map(|(start, end)| parser.parse(&bytes[start..*end]));
        let columns = self.converter.convert_rows(rows)?;
        // Dictionaries come back as what they stand for.
        let columns = columns.iter().zip(self.schema.fields()).map(|(column, field)| cast(column, field.data_type()));
        let columns: Vec<ArrayRef> = columns.collect::<Result<_, _>>()?;
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }
}

fn fields(schema: &Schema) -> Vec<SortField> {
    schema.fields().iter().map(|field| SortField::new(field.data_type().clone())).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{DictionaryArray, Int32Array, StringViewArray};
    use datafusion::arrow::datatypes::Int32Type;

    use super::*;

    #[test]
    fn rows_come_back_as_they_were() {
        let dictionary: DictionaryArray<Int32Type> = [Some("a"), None, Some("b"), Some("a")].into_iter().collect();
        let columns: [(&str, ArrayRef); 3] = [
            ("n", Arc::new(Int32Array::from(vec![Some(7), None, Some(-1), Some(0)]))),
            ("t", Arc::new(StringViewArray::from(vec![Some(""), Some("a longer text than fits"), None, Some("x")]))),
            ("d", Arc::new(dictionary)),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        assert!(RowBytes::supports(&batch.schema()));
        let rows = RowBytes::new(batch.schema()).unwrap();
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for row in &rows.of(&batch).unwrap() {
            bytes.extend_from_slice(row.as_ref());
            ends.push(bytes.len());
        }
        assert_eq!(rows.batch(&bytes, &ends).unwrap(), batch);
        assert!(!RowBytes::supports(&Schema::empty()));
    }
}
