//! Scans that begin, of each series, with the last sample before a range, and end with the first one behind it: what came before
//! or comes after these says nothing about the range.
//!
//! ```text
//! samples   *  *   x  *  -      *   *    *        -       *   x   *     x: no sample, as a NULL
//! range                  |from            to|
//! given               *  -      *   *    *        -       *
//!                     <- searched            searched ->
//! ```

use std::sync::Arc;

use counterfoil_series::{Backward, Block, Scan, Span};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;

use super::block::Blocks;
use super::told;
use super::{Form, SeriesTarget};
use crate::error::Result;
use crate::steps::Step;
use counterfoil_log::Snapshot;

/// Rows that make a batch; and so many blocks are read for one, whether rows of them are wanted or not.
const BATCH_ROWS: usize = 8192;
const BATCH_BLOCKS: usize = 256;

/// The times of the first and of the last sample among rows; none if there is no sample among them.
pub(crate) type Sampled = Arc<dyn Fn(&RecordBatch) -> Result<Option<Span>> + Send + Sync>;

/// Which part of the series in a scan is wanted.
#[derive(Clone)]
pub(crate) struct Around {
    /// All samples of this range.
    pub(crate) range: Span,
    /// Whether the first sample behind it, too.
    pub(crate) beyond: bool,
    /// What a sample is.
    pub(crate) sampled: Sampled,
}

/// The series of a part, one after another.
pub(super) struct Walk {
    pub(super) target: SeriesTarget,
    pub(super) form: Arc<Form>,
    pub(super) blocks: Blocks,
    /// The engine's columns that are read.
    pub(super) slots: Vec<usize>,
    pub(super) span: Span,
    pub(super) around: Arc<Around>,
    pub(super) ahead: std::vec::IntoIter<u32>,
    pub(super) at: At,
}

/// Where the way through a series has come to.
pub(super) enum At {
    /// Its end, or before the first.
    End,
    Before(u32, Backward<Snapshot>),
    Behind(Scan<Snapshot>),
}

impl Walk {
    /// Reads the next block. There are rows of it or not; false at the end of the last series.
    fn next(&mut self, batches: &mut Vec<RecordBatch>) -> Result<bool> {
        match &mut self.at {
            At::End => {
                let Some(series) = self.ahead.next() else { return Ok(false) };
                self.at = At::Before(series, self.before(series)?);
            }
            At::Before(series, before) => {
                let series = *series;
                let block = before.next().map_err(told(&self.target.table))?;
                let found = block.as_ref().map(|block| self.last_of(block)).transpose()?.flatten();
                if block.is_none() || found.is_some() {
                    self.at = At::Behind(self.behind(series)?);
                }
                batches.extend(found);
            }
            At::Behind(behind) => {
                let block = behind.next().map_err(told(&self.target.table))?;
                let (rows, ends) = block.as_ref().map_or(Ok((None, true)), |block| self.up_to_first_of(block))?;
                if ends {
                    self.at = At::End;
                }
                batches.extend(rows);
            }
        }
        Ok(true)
    }

    fn before(&self, series: u32) -> Result<Backward<Snapshot>> {
        let SeriesTarget { tables, snapshot, table } = &self.target;
        let span = self.span.within(&Span { first: i64::MIN, last: self.around.range.first });
        let backward = tables.backward(snapshot.clone(), self.form.number, series, span).map_err(told(table))?;
        Ok(backward.columns(&self.slots))
    }

    fn behind(&self, series: u32) -> Result<Scan<Snapshot>> {
        let SeriesTarget { tables, snapshot, table } = &self.target;
        let last = if self.around.beyond { i64::MAX } else { self.around.range.last };
        let span = match self.around.range.first.checked_add(1) {
            Some(first) => self.span.within(&Span { first, last }),
            None => Span { first: 0, last: -1 },
        };
        let scan = tables.scan(snapshot.clone(), self.form.number, Some(vec![series]), span).map_err(told(table))?;
        Ok(scan.columns(&self.slots))
    }

    /// The rows of a block from its last sample on, if it has one.
    fn last_of(&self, block: &Block) -> Result<Option<RecordBatch>> {
        let batch = self.blocks.batch(block)?;
        let Some(samples) = (self.around.sampled)(&batch)? else { return Ok(None) };
        let from = block.points.times.partition_point(|time| *time < samples.last);
        Ok(Some(batch.slice(from, batch.num_rows() - from)))
    }

    /// The rows of a block up to the first sample behind the range; whether there is one.
    fn up_to_first_of(&self, block: &Block) -> Result<(Option<RecordBatch>, bool)> {
        let batch = self.blocks.batch(block)?;
        let times = &block.points.times;
        let within = times.partition_point(|time| *time <= self.around.range.last);
        if within == batch.num_rows() {
            return Ok((Some(batch), false));
        }
        let samples = (self.around.sampled)(&batch.slice(within, batch.num_rows() - within))?;
        let until = samples.map_or(within, |samples| times.partition_point(|time| *time <= samples.first));
        Ok(((until > 0).then(|| batch.slice(0, until)), samples.is_some()))
    }
}

impl Step for Walk {
    fn step(&mut self) -> Result<Option<RecordBatch>> {
        let mut batches: Vec<RecordBatch> = Vec::new();
        for _ in 0..BATCH_BLOCKS {
            let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
            if rows >= BATCH_ROWS || !self.next(&mut batches)? {
                break;
            }
        }
        match (batches.len(), &self.at) {
            (0, At::End) if self.ahead.as_slice().is_empty() => Ok(None),
            (1, _) => Ok(batches.pop()),
            _ => Ok(Some(concat_batches(self.blocks.schema(), &batches)?)),
        }
    }
}
