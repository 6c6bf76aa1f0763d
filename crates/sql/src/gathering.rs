//! Rows on their way into a series table, gathered until there are many of them.
//!
//! What no leaf has taken by the end of a call is told to the table's journal, and written once more when a leaf takes it. So a
//! statement of many batches writes least in few large calls.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Field};

use crate::error::Result;

/// Rows, and bytes of memory, from which on what was gathered is stored.
const ROWS: usize = 1 << 18;
const BYTES: usize = 16 << 20;

/// Batches of one statement.
#[derive(Default)]
pub(crate) struct Gathering {
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
}

impl Gathering {
    /// Takes a batch, and gives what is to be stored now.
    pub(crate) fn add(&mut self, batch: RecordBatch) -> Result<Option<RecordBatch>> {
        let is_dictionary = |field: &Arc<Field>| matches!(field.data_type(), DataType::Dictionary(..));
        if self.batches.is_empty() && batch.schema().fields().iter().any(is_dictionary) {
            // Dictionaries of several batches may have more values together than their keys can tell apart.
            return Ok(Some(batch));
        }
        let is_other = self.batches.first().is_some_and(|first| first.schema() != batch.schema());
        let full = if is_other { self.take()? } else { None };
        self.rows += batch.num_rows();
        self.bytes += batch.get_array_memory_size();
        self.batches.push(batch);
        let is_full = self.rows >= ROWS || self.bytes >= BYTES;
        if full.is_none() && is_full { self.take() } else { Ok(full) }
    }

    /// Gives what is left to be stored.
    pub(crate) fn take(&mut self) -> Result<Option<RecordBatch>> {
        let Gathering { batches, .. } = std::mem::take(self);
        let Some(first) = batches.first() else { return Ok(None) };
        if batches.len() == 1 {
            return Ok(batches.into_iter().next());
        }
        Ok(Some(concat_batches(&first.schema(), &batches)?))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Array};

    use super::*;

    fn batch(array: ArrayRef) -> RecordBatch {
        RecordBatch::try_from_iter([("a", array)]).unwrap()
    }

    #[test]
    fn batches_are_given_in_order_and_none_is_lost() {
        let mut gathering = Gathering::default();
        let mut given = Vec::new();
        for part in 0..3000_i64 {
            let rows = 1 + (part as usize * 37) % 300;
            // Every now and then the columns are of another type.
            let array: ArrayRef = match part % 1000 {
                0 => Arc::new(Int32Array::from(vec![part as i32; rows])),
                _ => Arc::new(Int64Array::from(vec![part; rows])),
            };
            given.extend(gathering.add(batch(array)).unwrap());
        }
        given.extend(gathering.take().unwrap());
        assert!(gathering.take().unwrap().is_none());
        assert!(given.len() < 20, "{} calls", given.len());
        let rows = |batch: &RecordBatch| -> Vec<i64> {
            match batch.column(0).as_any().downcast_ref::<Int64Array>() {
                Some(array) => array.values().to_vec(),
                None => batch
                    .column(0)
                    .as_any()
                    .downcast_ref::<Int32Array>()
                    .unwrap()
                    .values()
                    .iter()
                    .map(|v| i64::from(*v))
                    .collect(),
            }
        };
        let found: Vec<i64> = given.iter().flat_map(rows).collect();
        let wanted = (0..3000_i64).flat_map(|part| vec![part; 1 + (part as usize * 37) % 300]);
        assert!(found.into_iter().eq(wanted));
    }
}
