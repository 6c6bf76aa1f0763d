//! Sorting the rows of a part in little memory.
//!
//! ```text
//! batch -> each row: | key, so that its bytes compare as rows do | number of the row | and the row -> sorter -> aside, sealed
//! sorter -> a few rows at a time -> batch
//! ```
//! While rows come it has half of what is free; from then on little of that, since whoever takes its rows may sort them anew.

use std::sync::Arc;

use counterfoil_relation::{self as relation, RecordSorter, SortedRecords};
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::physical_expr::LexOrdering;

use super::merge_key::without_negative_zero;
use crate::aside::Aside;
use crate::error::{Error, Result};
use crate::row_bytes::RowBytes;
use crate::spill::SealedFiles;

/// The least that a sort may have.
const SORT_BYTES_MIN: usize = 4 << 10;
/// Sorted rows are read in this part of the memory of all queries.
const READ_PART: usize = 12;
/// A batch of sorted rows has this part of it at most.
const BATCH_PART: usize = 16;

/// Whether rows of such columns can be.
pub(super) fn may_be_put_aside(schema: &Schema, ordering: &LexOrdering) -> bool {
    let keys = key_fields(schema, ordering).is_ok_and(|fields| RowConverter::supports_fields(&fields));
    keys && RowBytes::supports(schema)
}

fn key_fields(schema: &Schema, ordering: &LexOrdering) -> Result<Vec<SortField>, DataFusionError> {
    ordering.iter().map(|key| Ok(SortField::new_with_options(key.expr.data_type(schema)?, key.options))).collect()
}

/// Rows on their way to being sorted.
pub(super) struct Sorting {
    ordering: LexOrdering,
    keys: RowConverter,
    rows: RowBytes,
    sorter: Option<RecordSorter>,
    fetch: u64,
    memory: Memory,
    aside: Aside,
    /// Rows that came.
    count: u64,
    batch_rows: usize,
    /// Where a key is made.
    key: Vec<u8>,
    /// Whether -0 is 0 among keys, as in groups.
    folds_zero: bool,
}

impl Sorting {
    pub(super) fn new(
        schema: &SchemaRef,
        (ordering, folds_zero): (&LexOrdering, bool),
        fetch: Option<usize>,
        spill: Option<&Arc<SealedFiles>>,
        context: &TaskContext,
    ) -> Result<Self, DataFusionError> {
        let memory = Memory::of(context.memory_pool());
        Ok(Sorting {
            ordering: ordering.clone(),
            keys: RowConverter::new(key_fields(schema, ordering)?)?,
            rows: RowBytes::new(schema.clone())?,
            sorter: None,
            fetch: fetch.map_or(u64::MAX, |rows| rows as u64),
            aside: Aside::sealed(context.memory_pool(), spill, memory.all / 2),
            memory,
            count: 0,
            batch_rows: context.session_config().batch_size().max(1),
            key: Vec::new(),
            folds_zero,
        })
    }

    /// Takes the rows of a batch.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let values = self.ordering.iter().map(|key| key.expr.evaluate(batch)?.into_array(batch.num_rows()));
        let mut values = values.collect::<Result<Vec<ArrayRef>, _>>()?;
        if self.folds_zero {
            values = values.into_iter().map(without_negative_zero).collect();
        }
        let (keys, rows) = (self.keys.convert_columns(&values)?, self.rows.of(batch)?);
        for (key, row) in keys.iter().zip(rows.iter()) {
            self.key.clear();
            self.key.extend_from_slice(key.as_ref());
            self.key.extend_from_slice(&self.count.to_be_bytes());
            self.count += 1;
            self.push(row.as_ref())?;
        }
        Ok(())
    }

    fn push(&mut self, row: &[u8]) -> Result<()> {
        let (memory, fetch) = (&mut self.memory, self.fetch);
        let mut sorter = match self.sorter.take() {
            Some(sorter) => sorter,
            // Only now: until its first row comes, others below it sort, and may have the memory.
            None => RecordSorter::new(memory.begin()?, fetch),
        };
        let pushed = match sorter.push(&mut self.aside, &self.key, row) {
            Err(error) => match error.memory_needed() {
                Some(needed) => {
                    sorter.set_bytes(self.memory.grow(needed)?);
                    sorter.push(&mut self.aside, &self.key, row)
                }
                None => Err(error),
            },
            pushed => pushed,
        };
        self.sorter = Some(sorter);
        pushed.map_err(|error| self.aside.error(error))
    }

    /// Takes a step towards their order, of those that take long; false if none is left.
    pub(super) fn step(&mut self) -> Result<bool> {
        let bytes = self.read_bytes();
        let stepped = match &mut self.sorter {
            Some(sorter) => sorter.step(&mut self.aside, bytes),
            None => Ok(false),
        };
        stepped.map_err(|error| self.aside.error(error))
    }

    /// All of them, in order.
    pub(super) fn finish(mut self) -> Result<Sorted> {
        let bytes = self.read_bytes();
        let sorter = self.sorter.take().unwrap_or_else(|| RecordSorter::new(SORT_BYTES_MIN, self.fetch));
        let finished = sorter.finish(&mut self.aside, bytes);
        let records = finished.map_err(|error| self.aside.error(error))?;
        self.memory.shrink(records.bytes().max(bytes / 2));
        let batch_bytes = self.memory.all / BATCH_PART;
        let Sorting { rows, memory, aside, batch_rows, .. } = self;
        Ok(Sorted { rows, records, aside, batch_rows, batch_bytes, _memory: memory })
    }

    fn read_bytes(&self) -> usize {
        (self.memory.all / READ_PART).max(SORT_BYTES_MIN)
    }
}

/// Sorted rows.
pub(super) struct Sorted {
    rows: RowBytes,
    records: SortedRecords,
    aside: Aside,
    batch_rows: usize,
    batch_bytes: usize,
    _memory: Memory,
}

impl Sorted {
    /// The next of them.
    pub(super) fn batch(&mut self) -> Result<Option<RecordBatch>> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        while ends.len() < self.batch_rows && bytes.len() < self.batch_bytes {
            match self.records.next(&mut self.aside) {
                Ok(Some(row)) => bytes.extend_from_slice(row),
                Ok(None) => break,
                Err(error) => return Err(self.aside.error(error)),
            }
            ends.push(bytes.len());
        }
        if ends.is_empty() {
            return Ok(None);
        }
        self.rows.batch(&bytes, &ends).map(Some)
    }
}

/// What a sort has of the memory of all queries.
struct Memory {
    reservation: MemoryReservation,
    pool: Arc<dyn MemoryPool>,
    /// Bytes of all queries.
    all: usize,
}

impl Memory {
    fn of(pool: &Arc<dyn MemoryPool>) -> Self {
        let all = match pool.memory_limit() {
            MemoryLimit::Finite(bytes) => bytes,
            _ => usize::MAX / 2,
        };
        Memory { reservation: MemoryConsumer::new("SortedAside").register(pool), pool: pool.clone(), all }
    }

    /// Takes half of what is free.
    fn begin(&mut self) -> Result<usize> {
        let mut bytes = (self.all.saturating_sub(self.pool.reserved()) / 2).max(SORT_BYTES_MIN);
        while self.reservation.try_resize(bytes).is_err() {
            if bytes == SORT_BYTES_MIN {
                return Err(self.needs(bytes));
            }
            bytes = (bytes / 2).max(SORT_BYTES_MIN);
        }
        Ok(bytes)
    }

    /// Takes as many as are needed.
    fn grow(&mut self, needed: usize) -> Result<usize> {
        let before = self.reservation.size();
        self.reservation.try_resize(needed).map_err(|_| self.needs(needed.saturating_sub(before)))?;
        Ok(needed)
    }

    /// Gives back what is more than this.
    fn shrink(&mut self, bytes: usize) {
        let more = self.reservation.size().saturating_sub(bytes);
        self.reservation.shrink(more);
    }

    /// So many bytes more than all have were wanted.
    fn needs(&self, more: usize) -> Error {
        Error::of_tables(relation::Error::memory(Some(self.pool.reserved().saturating_add(more))))
    }
}
