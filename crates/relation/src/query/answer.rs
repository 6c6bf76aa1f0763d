//! Answering a question within a budget of memory.
//!
//! ```text
//! indexes --> candidates, or all rows of the root    a quarter of the budget
//!    --> a few rows at a time, with what they join   a quarter
//!    --> groups --> no row twice --> in order        a half, for two of them at a time; what does not fit goes to the scratch
//!    --> offset and limit
//! ```
//!
//! Less memory makes more steps, more runs and fewer candidates, and never another answer: rows that are not sorted come in the order
//! of the root's numbers, and those that are sorted alike in the order of their values.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use counterfoil_log::View;

use super::plan::Plan;
use super::rows::Rows;
use super::scratch::Scratch;
use super::sorter::{Sorted, Sorter};
use super::stage::{Filter, Stage};
use crate::layout::Layout;
use crate::{Error, Relations, RowBatch, RowBuilder, ValueRef};

/// Rows of an answer that are handed out at a time, at most.
const BATCH_ROWS: usize = 4096;
/// Of the budget a share is for candidates, one for rows being read, and one each for two stages.
const SHARES: usize = 4;
/// Rows of an answer may take this part of a share before they are handed out.
const BATCH_PART: usize = 8;
/// The least that a question can be answered with.
pub const BUDGET_BYTES_MIN: usize = 64 << 10;

/// An answer, some rows at a time.
pub struct Answer<V> {
    plan: Plan,
    rows: Rows<V>,
    filter: Filter,
    /// Rows of the answer in order, once they are known; none where they need not be known before.
    sorted: Option<Sorted<Stage>>,
    layout: Arc<Layout>,
    /// Bytes that one stage may have.
    share: usize,
    to_skip: u64,
    left: u64,
}

impl Relations {
    /// Begins to answer a question with so many bytes of memory.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a question that makes no sense, [`Error::Memory`] where it needs more, [`Error::NotSupported`] for an
    /// aggregate of values that it cannot be of, [`Error::Log`], [`Error::Corrupt`].
    pub fn answer<V: View + Clone>(&self, view: V, plan: Plan, budget_bytes: usize) -> Result<Answer<V>, Error> {
        plan.check()?;
        if budget_bytes < BUDGET_BYTES_MIN {
            return Err(Error::Memory { needed: Some(BUDGET_BYTES_MIN) });
        }
        let share = budget_bytes / SHARES;
        let rows = Rows::open(self, view, &plan, share).map_err(of_all_shares)?;
        let (layout, filter) = (plan.layout(plan.shown)?, Filter::of(&plan)?);
        let (to_skip, left) = (plan.offset, plan.limit.unwrap_or(u64::MAX));
        Ok(Answer { plan, rows, filter, sorted: None, layout, share, to_skip, left })
    }
}

impl<V: View> Answer<V> {
    /// The layout of its rows.
    #[must_use]
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// What named the rows that come into question: indexes, and small tables that were read. Without any, all rows are read.
    #[must_use]
    pub fn by(&self) -> &[String] {
        &self.rows.by
    }

    /// The next rows; none at the end.
    ///
    /// # Errors
    /// [`Error::Memory`] where it needs more than it has, [`Error::Sql`] for a sum out of range, [`Error::Log`], [`Error::Corrupt`].
    pub fn next(&mut self, relations: &Relations, scratch: &mut dyn Scratch) -> Result<Option<RowBatch>, Error> {
        let mut batch = RowBuilder::new(self.layout.clone());
        let read = match self.plan.is_in_stages() {
            true => self.next_sorted(relations, scratch, &mut batch),
            false => self.next_plain(relations, &mut batch),
        };
        read.map_err(of_all_shares)?;
        Ok(Some(batch.finish()).filter(|rows| rows.count() > 0))
    }

    fn next_plain(&mut self, relations: &Relations, batch: &mut RowBuilder) -> Result<(), Error> {
        while batch.count() == 0 && self.left > 0 {
            let Some(rows) = self.rows.next(relations)? else { break };
            let skipped = (rows.count as u64).min(self.to_skip);
            self.to_skip -= skipped;
            let count = (rows.count as u64 - skipped).min(self.left);
            self.left -= count;
            for row in skipped..skipped + count {
                batch.push(&self.plan.values(&rows, row as usize)?[..self.plan.shown])?;
            }
        }
        Ok(())
    }

    fn next_sorted(
        &mut self,
        relations: &Relations,
        scratch: &mut dyn Scratch,
        batch: &mut RowBuilder,
    ) -> Result<(), Error> {
        if self.sorted.is_none() {
            self.sorted = Some(self.gathered(relations, scratch)?);
        }
        let Some(sorted) = &mut self.sorted else { return Ok(()) };
        while self.left > 0 && batch.count() < BATCH_ROWS && batch.bytes() < self.share / BATCH_PART {
            let Some((stage, load)) = sorted.next(scratch)? else { break };
            let values = stage.values(load)?;
            if !self.filter.holds(stage, &values)? {
                continue;
            }
            if self.to_skip > 0 {
                self.to_skip -= 1;
                continue;
            }
            self.left -= 1;
            batch.push(&values[..self.plan.shown])?;
        }
        Ok(())
    }

    /// Reads all rows and takes them through the stages.
    fn gathered(&mut self, relations: &Relations, scratch: &mut dyn Scratch) -> Result<Sorted<Stage>, Error> {
        let mut stages = Stage::all(&self.plan)?.into_iter();
        let first = stages.next().ok_or(Error::Misuse("nothing to be gathered for"))?;
        let mut sorter = Sorter::new(self.share, first, self.wanted(stages.len() == 0));
        let (mut key, mut load) = (Vec::new(), Vec::new());
        if sorter.stage().begins_empty(&mut load) {
            sorter.push(scratch, &key, &load)?;
        }
        while let Some(rows) = self.rows.next(relations)? {
            for row in 0..rows.count {
                sorter.stage().record(&self.plan, &rows, row, (&mut key, &mut load))?;
                sorter.push(scratch, &key, &load)?;
            }
        }
        let mut sorted = sorter.finish(scratch)?;
        while let Some(stage) = stages.next() {
            let mut sorter = Sorter::new(self.share, stage, self.wanted(stages.len() == 0));
            while let Some((before, of_before)) = sorted.next(scratch)? {
                let values: Vec<ValueRef<'_>> = before.values(of_before)?;
                if self.filter.holds(before, &values)? {
                    sorter.stage().record_values(&values, (&mut key, &mut load));
                    sorter.push(scratch, &key, &load)?;
                }
            }
            sorted = sorter.finish(scratch)?;
        }
        Ok(sorted)
    }

    /// Records wanted of a stage. What a filter may leave out is not counted.
    fn wanted(&self, is_last: bool) -> u64 {
        let is_filtered = self.filter.says_something() && !self.plan.is_distinct && self.plan.order.is_empty();
        if is_last && !is_filtered { self.left.saturating_add(self.to_skip) } else { u64::MAX }
    }
}

/// What one share needs, as what all of them need.
fn of_all_shares(error: Error) -> Error {
    match error {
        Error::Memory { needed: Some(bytes) } => Error::Memory { needed: Some(bytes.saturating_mul(SHARES)) },
        error => error,
    }
}
