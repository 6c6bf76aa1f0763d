//! Rows on their way into a table, gathered until there are many of them.
//!
//! A series table tells its journal what no leaf has taken by the end of a call, and writes it once more when a leaf takes it. A
//! relation makes a run of the index entries of many rows, where those of few wait in a tree first. So a statement of many batches
//! writes least, and works least, in few large calls.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Field};

use crate::error::Result;

/// From where on what was gathered is stored.
#[derive(Clone, Copy)]
pub(crate) struct Enough {
    rows: usize,
    /// Of memory.
    bytes: usize,
}

impl Enough {
    /// For a table of series.
    pub(crate) const OF_SERIES: Enough = Enough { rows: 1 << 18, bytes: 16 << 20 };
    /// For a relation: eight times the rows that become a run.
    pub(crate) const OF_RELATIONS: Enough = Enough { rows: 1 << 17, bytes: 32 << 20 };
}

/// Batches of one statement.
#[derive(Default)]
pub(crate) struct Gathering {
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
}

impl Gathering {
    /// Takes a batch, and gives what is to be stored now.
    pub(crate) fn add(&mut self, batch: RecordBatch, enough: Enough) -> Result<Option<RecordBatch>> {
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
        let is_full = self.rows >= enough.rows || self.bytes >= enough.bytes;
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
            given.extend(gathering.add(batch(array), Enough::OF_SERIES).unwrap());
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
