//! Rows that are read to their end before anybody asks for them: those of a transaction that has written, since what comes next may
//! undo what they were read from.
//!
//! ```text
//! batch ... batch -> kept, until queries have taken half of their memory -> aside, sealed
//! ```

use std::collections::VecDeque;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::TryStreamExt;

use counterfoil_relation::Scratch as _;

use crate::aside::{Aside, Means};
use crate::error::{Error, Result};
use crate::row_bytes::RowBytes;

/// Bytes of the length of a row.
const LENGTH_BYTES: usize = 4;
/// A batch that comes back has so many rows at most,
const BATCH_ROWS: usize = 512;
/// and about this part of the memory of all queries.
const BATCH_PART: usize = 16;

/// Rows that were read.
struct ReadAhead {
    means: Means,
    kept: VecDeque<RecordBatch>,
    reservation: MemoryReservation,
    /// Those behind them.
    aside: Option<PutAside>,
}

struct PutAside {
    rows: RowBytes,
    aside: Aside,
    /// How far they are read again, and how far they go.
    at: u64,
    end: u64,
}

/// Reads all rows of a stream; answers with a stream of them that reads nothing of the database any more.
pub(crate) async fn read_ahead(
    mut rows: SendableRecordBatchStream,
    means: &Means,
) -> Result<SendableRecordBatchStream> {
    let schema = rows.schema();
    let reservation = MemoryConsumer::new("Rows read ahead").register(&means.pool);
    let mut ahead = ReadAhead { means: means.clone(), kept: VecDeque::new(), reservation, aside: None };
    while let Some(batch) = rows.try_next().await? {
        ahead.add(batch, &schema)?;
    }
    drop(rows);
    let batches = futures::stream::try_unfold(ahead, |mut ahead| async move {
        let batch = ahead.next().map_err(DataFusionError::from)?;
        Ok(batch.map(|batch| (batch, ahead)))
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
}

impl ReadAhead {
    fn add(&mut self, batch: RecordBatch, schema: &SchemaRef) -> Result<()> {
        let bytes = batch.get_array_memory_size();
        let may_be_put_aside = RowBytes::supports(schema);
        let has_room = self.means.pool.reserved().saturating_add(bytes) <= self.means.bytes / 2;
        if self.aside.is_none() && (has_room || !may_be_put_aside) {
            self.reservation.try_grow(bytes)?;
            self.kept.push_back(batch);
            return Ok(());
        }
        if self.aside.is_none() {
            let aside = Aside::sealed(&self.means.pool, self.means.spill.as_ref(), self.means.bytes / 2);
            self.aside = Some(PutAside { rows: RowBytes::new(schema.clone())?, aside, at: 0, end: 0 });
        }
        self.aside.as_mut().map_or(Ok(()), |aside| aside.add(&batch))
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(batch) = self.kept.pop_front() {
            self.reservation.shrink(batch.get_array_memory_size().min(self.reservation.size()));
            return Ok(Some(batch));
        }
        let bytes = self.means.bytes / BATCH_PART;
        self.aside.as_mut().map_or(Ok(None), |aside| aside.next(bytes))
    }
}

impl PutAside {
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        for row in &self.rows.of(batch)? {
            let length = u32::try_from(row.as_ref().len()).map_err(|_| Error::Memory("a row is too long".into()))?;
            for bytes in [&length.to_le_bytes()[..], row.as_ref()] {
                self.aside.append(bytes).map_err(|error| self.aside.error(error))?;
                self.end += bytes.len() as u64;
            }
        }
        Ok(())
    }

    fn next(&mut self, bytes_max: usize) -> Result<Option<RecordBatch>> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        while self.at < self.end && ends.len() < BATCH_ROWS && bytes.len() < bytes_max {
            let mut length = [0; LENGTH_BYTES];
            self.read(&mut length)?;
            let start = bytes.len();
            bytes.resize(start + u32::from_le_bytes(length) as usize, 0);
            self.read(&mut bytes[start..])?;
            ends.push(bytes.len());
        }
        self.aside.forget_before(self.at);
        if ends.is_empty() { Ok(None) } else { self.rows.batch(&bytes, &ends).map(Some) }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.aside.read(self.at, buffer).map_err(|error| self.aside.error(error))?;
        self.at += buffer.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array};
    use datafusion::execution::memory_pool::GreedyMemoryPool;
    use futures::executor::block_on;

    use super::*;
    use crate::spill::{SealedFiles, Spill};

    #[test]
    fn rows_come_in_order_from_memory_and_from_aside() {
        let spill = Spill { folder: std::env::temp_dir(), bytes_max: 1 << 20 };
        let spill = Some(Arc::new(SealedFiles::new(spill).unwrap()));
        let means = Means { pool: Arc::new(GreedyMemoryPool::new(20_000)), bytes: 20_000, spill };
        let batch = |part: i64| {
            let column: ArrayRef = Arc::new(Int64Array::from_iter_values(part * 10..part * 10 + 10));
            RecordBatch::try_from_iter([("n", column)]).unwrap()
        };
        let batches: Vec<_> = (0..1000).map(|part| Ok(batch(part))).collect();
        let rows = RecordBatchStreamAdapter::new(batch(0).schema(), futures::stream::iter(batches));
        let ahead = block_on(read_ahead(Box::pin(rows), &means)).unwrap();
        assert!((1000..=10_000).contains(&means.pool.reserved()), "{}", means.pool.reserved());
        let batches: Vec<RecordBatch> = block_on(ahead.try_collect()).unwrap();
        let numbers = batches.iter().flat_map(|batch| {
            let column = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
            column.values().to_vec()
        });
        assert!(numbers.eq(0..10_000));
        assert_eq!(means.pool.reserved(), 0);
    }
}
