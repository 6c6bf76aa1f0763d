//! Answering a question within a budget of memory.
//!
//! ```text
//! indexes --> candidates, or all rows of the root    a quarter of the budget
//!    --> a few rows at a time, with what they join   a quarter
//!    --> groups --> no row twice --> in order        a half, for two of them at a time; what does not fit goes to the scratch; what
//!                                                    no stage takes is the first two's, beyond the least budget
//!    --> offset and limit
//! ```
//!
//! Less memory makes more steps, more runs and fewer candidates, and never another answer: rows that are not sorted come in the order
//! of the root's numbers, unless nobody minds, and those that are sorted alike in the order of their values.

use alloc::boxed::Box;
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
use crate::{Cause, Error, Relations, RowBatch, RowBuilder, ValueRef, few_or_many};

/// Rows of an answer that are handed out at a time, at most.
const BATCH_ROWS: usize = 4096;
/// Of the budget a share is for candidates, one for rows being read, and one each for two stages.
const SHARES: usize = 4;
/// Rows of an answer may take this part of a share before they are handed out.
const BATCH_PART: usize = 8;
/// The least that a question can be answered with.
pub const BUDGET_BYTES_MIN: usize = few_or_many(16 << 10, 32 << 10);

/// An answer, some rows at a time.
pub struct Answer<V> {
    plan: Arc<Plan>,
    rows: Box<Rows<V>>,
    filter: Filter,
    /// How far it has come.
    state: State,
    layout: Arc<Layout>,
    /// Bytes that one stage may have.
    share: usize,
    to_skip: u64,
    left: u64,
}

/// What a step came to.
pub enum Progress {
    /// Nothing yet: there is more to do.
    Working,
    /// Rows of the answer.
    Rows(RowBatch),
    /// All rows have been handed out.
    End,
}

/// How far an answer has come.
enum State {
    /// Rows are read, and are rows of the answer.
    Plain,
    /// Rows are read into the first stage.
    Reading(Box<Sorter<Stage>>, Later),
    /// What one stage came to is read into the next.
    Passing(Box<Sorted<Stage>>, Box<Sorter<Stage>>, Later),
    /// The rows of the answer are known.
    Known(Box<Sorted<Stage>>),
    /// A step has failed: what it was about to do is lost.
    Failed,
}

/// The stages that follow.
type Later = alloc::vec::IntoIter<Stage>;

impl Relations {
    /// Begins to answer a question with so many bytes of memory.
    ///
    /// # Errors
    /// [`Error::misuse`] for a question that makes no sense, [`Error::memory`] where it needs more, [`Error::not_supported`] for an
    /// aggregate of values that it cannot be of, [`crate::Cause::Log`], [`Error::corrupt`].
    pub fn answer<V: View + Clone>(&self, view: V, plan: Plan, budget_bytes: usize) -> Result<Answer<V>, Error> {
        plan.check()?;
        let plan = Arc::new(plan);
        if budget_bytes < BUDGET_BYTES_MIN {
            return Err(Error::memory(Some(BUDGET_BYTES_MIN)));
        }
        let share = budget_bytes / SHARES;
        let mut stages = Stage::all(&plan)?.into_iter();
        // What no stage takes is to spare where there is more than the least.
        let spare = (SHARES - 2).saturating_sub(stages.len()) * share;
        let spare = spare.min(budget_bytes - BUDGET_BYTES_MIN);
        let rows = Rows::open(self, view, &plan, (share, spare)).map_err(of_all_shares)?;
        let (layout, filter) = (plan.layout(plan.shown)?, Filter::of(&plan)?);
        let (to_skip, left) = (plan.offset, plan.limit.unwrap_or(u64::MAX));
        let first = stages.next();
        let mut answer = Answer { plan, rows, filter, state: State::Plain, layout, share, to_skip, left };
        if let Some(first) = first {
            answer.state = State::Reading(answer.sorter(first, &stages), stages);
        }
        Ok(answer)
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

    /// How many rows of the root have been named as those that come into question, and are still to be read.
    #[must_use]
    pub fn candidates(&self) -> Option<usize> {
        self.rows.named()
    }

    /// Goes on: reads some rows, or hands some out. Between two steps a question can be called off.
    ///
    /// # Errors
    /// [`Error::memory`] where it needs more than it has, [`Error::sql`] for a sum out of range, [`crate::Cause::Log`], [`Error::corrupt`];
    /// [`Error::misuse`] after any of them.
    pub fn step(&mut self, relations: &Relations, scratch: &mut dyn Scratch) -> Result<Progress, Error> {
        let step = match core::mem::replace(&mut self.state, State::Failed) {
            State::Plain => self.show_read(relations, scratch),
            State::Reading(sorter, later) => self.read(relations, scratch, sorter, later),
            State::Passing(sorted, sorter, later) => self.pass(scratch, sorted, sorter, later),
            State::Known(sorted) => self.show_sorted(scratch, sorted),
            State::Failed => Err(Error::misuse("a question that has failed")),
        };
        step.map_err(of_all_shares)
    }

    /// The next rows; none at the end.
    ///
    /// # Errors
    /// As [`Answer::step`].
    pub fn next(&mut self, relations: &Relations, scratch: &mut dyn Scratch) -> Result<Option<RowBatch>, Error> {
        loop {
            match self.step(relations, scratch)? {
                Progress::Working => {}
                Progress::Rows(rows) => return Ok(Some(rows)),
                Progress::End => return Ok(None),
            }
        }
    }

    /// Hands out rows as they are read.
    fn show_read(&mut self, relations: &Relations, scratch: &mut dyn Scratch) -> Result<Progress, Error> {
        let rows = if self.left > 0 { self.rows.next(relations, scratch)? } else { None };
        self.state = State::Plain;
        let Some(rows) = rows else { return Ok(Progress::End) };
        let skipped = (rows.count as u64).min(self.to_skip);
        self.to_skip -= skipped;
        let count = (rows.count as u64 - skipped).min(self.left);
        self.left -= count;
        let mut batch = RowBuilder::with_room(self.layout.clone(), count as usize);
        for row in skipped..skipped + count {
            batch.push(&self.plan.values(&rows, row as usize)?[..self.plan.shown])?;
        }
        Ok(if count > 0 { Progress::Rows(batch.finish()) } else { Progress::Working })
    }

    /// Takes some rows into the first stage.
    fn read(
        &mut self,
        relations: &Relations,
        scratch: &mut dyn Scratch,
        mut sorter: Box<Sorter<Stage>>,
        later: Later,
    ) -> Result<Progress, Error> {
        let (mut key, mut load) = (Vec::new(), Vec::new());
        let Some(rows) = self.rows.next(relations, scratch)? else {
            if sorter.stage().begins_empty(&mut load) {
                sorter.push(scratch, &key, &load)?;
            }
            self.state = self.behind(Box::new(sorter.finish(scratch)?), later);
            return Ok(Progress::Working);
        };
        #[cfg(not(feature = "small"))]
        if sorter.stage().record_all(rows.count, &mut load) {
            sorter.push(scratch, &key, &load)?;
            self.state = State::Reading(sorter, later);
            return Ok(Progress::Working);
        }
        for row in 0..rows.count {
            sorter.stage().record(&self.plan, &rows, row, (&mut key, &mut load))?;
            sorter.push(scratch, &key, &load)?;
        }
        sorter.keep_few_runs(scratch)?;
        self.state = State::Reading(sorter, later);
        Ok(Progress::Working)
    }

    /// Takes some of what one stage came to into the next.
    #[inline(never)]
    fn pass(
        &mut self,
        scratch: &mut dyn Scratch,
        mut sorted: Box<Sorted<Stage>>,
        mut sorter: Box<Sorter<Stage>>,
        later: Later,
    ) -> Result<Progress, Error> {
        let (mut key, mut load) = (Vec::new(), Vec::new());
        for _ in 0..BATCH_ROWS {
            let Some((before, of_before)) = sorted.next(scratch)? else {
                drop(sorted);
                self.state = self.behind(Box::new(sorter.finish(scratch)?), later);
                return Ok(Progress::Working);
            };
            let values: Vec<ValueRef<'_>> = before.values(of_before)?;
            if self.filter.holds(before, &values)? {
                sorter.stage().record_values(&values, (&mut key, &mut load));
                sorter.push(scratch, &key, &load)?;
            }
        }
        sorter.keep_few_runs(scratch)?;
        self.state = State::Passing(sorted, sorter, later);
        Ok(Progress::Working)
    }

    /// Hands out rows that are in order.
    #[inline(never)]
    fn show_sorted(&mut self, scratch: &mut dyn Scratch, mut sorted: Box<Sorted<Stage>>) -> Result<Progress, Error> {
        let mut batch = RowBuilder::new(self.layout.clone());
        let (mut seen, mut is_end) = (0, self.left == 0);
        while !is_end && seen < BATCH_ROWS && batch.bytes() < self.share / BATCH_PART {
            let Some((stage, load)) = sorted.next(scratch)? else {
                is_end = true;
                break;
            };
            seen += 1;
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
            is_end = self.left == 0;
        }
        self.state = State::Known(sorted);
        let rows = batch.finish();
        Ok(match rows.count() {
            0 if is_end => Progress::End,
            0 => Progress::Working,
            _ => Progress::Rows(rows),
        })
    }

    /// What comes behind a stage.
    fn behind(&self, sorted: Box<Sorted<Stage>>, mut later: Later) -> State {
        match later.next() {
            Some(stage) => State::Passing(sorted, self.sorter(stage, &later), later),
            None => State::Known(sorted),
        }
    }
}

impl<V> Answer<V> {
    fn sorter(&self, stage: Stage, later: &Later) -> Box<Sorter<Stage>> {
        Box::new(Sorter::new(self.share, stage, self.wanted(later.len() == 0)))
    }

    /// Records wanted of a stage. What a filter may leave out is not counted.
    fn wanted(&self, is_last: bool) -> u64 {
        let is_filtered = self.filter.says_something() && !self.plan.is_distinct && self.plan.order.is_empty();
        if is_last && !is_filtered { self.left.saturating_add(self.to_skip) } else { u64::MAX }
    }
}

/// What one share needs, as what all of them need.
fn of_all_shares(error: Error) -> Error {
    match error.cause() {
        Cause::Memory { needed: Some(bytes) } => Error::memory(Some(bytes.saturating_mul(SHARES))),
        _ => error,
    }
}
