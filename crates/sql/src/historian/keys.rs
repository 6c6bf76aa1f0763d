//! Which series a row belongs to.
//!
//! Rows come in order of their keys, so that the rows of a series stand together, in one batch or in several that
//! follow each other.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::partition;
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::DataFusionError;

/// The values of a series' key columns; nothing where there are none.
pub(crate) type Key = Option<Arc<OwnedRow>>;

/// Rows of one batch that belong to one series.
pub(crate) struct Run {
    /// Which rows.
    pub rows: Range<usize>,
    /// Whether the series begins here.
    pub begins: bool,
    /// The series.
    pub key: Key,
}

/// Tells series apart; the key columns are the first of a batch.
pub(crate) struct Keys {
    count: usize,
    converter: RowConverter,
    current: Option<Key>,
}

impl Keys {
    /// Keys of batches that look like this one, in so many first columns.
    pub(crate) fn new(schema: &datafusion::arrow::datatypes::Schema, count: usize) -> Result<Self, DataFusionError> {
        let fields = schema.fields()[..count].iter().map(|field| SortField::new(field.data_type().clone()));
        Ok(Keys { count, converter: RowConverter::new(fields.collect())?, current: None })
    }

    /// The runs of a batch, in order.
    pub(crate) fn runs(&mut self, batch: &RecordBatch) -> Result<Vec<Run>, DataFusionError> {
        if batch.num_rows() == 0 {
            return Ok(Vec::new());
        }
        let columns = &batch.columns()[..self.count];
        let ranges: Vec<_> = match columns {
            [] => std::iter::once(0..batch.num_rows()).collect(),
            columns => partition(columns)?.ranges(),
        };
        let mut runs = Vec::with_capacity(ranges.len());
        for rows in ranges {
            let first: Vec<ArrayRef> = columns.iter().map(|column| column.slice(rows.start, 1)).collect();
            let key = match first.as_slice() {
                [] => None,
                first => Some(Arc::new(self.converter.convert_columns(first)?.row(0).owned())),
            };
            let begins = self.current.as_ref() != Some(&key);
            self.current = Some(key.clone());
            runs.push(Run { rows, begins, key });
        }
        Ok(runs)
    }

    /// The key columns of rows of which each belongs to a series.
    pub(crate) fn columns(&self, keys: &[Key]) -> Result<Vec<ArrayRef>, DataFusionError> {
        if self.count == 0 {
            return Ok(Vec::new());
        }
        Ok(self.converter.convert_rows(keys.iter().flatten().map(|key| key.row()))?)
    }
}
