//! Rows in the order of their keys, those of one key made one, and completed from what is there.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use counterfoil_series::{Batch, Column, Points, SeriesTables, TableNumber, Text, Values};

use super::target::Target;
use super::{Appended, NewPoints, Reason};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::series::{apart, change, told};
use crate::store::Lease;

/// Stores a stretch of rows but those that are refused.
pub(super) fn store(
    engine: &Engine,
    lease: &mut Lease,
    target: &Target,
    points: &NewPoints<'_>,
    range: Range<usize>,
    appended: &mut Appended,
) -> Result<()> {
    let mut sorted = Sorted::of(target, points, range, appended)?;
    sorted.make_one_of_each_key(appended);
    let tables = engine.series();
    let asking = sorted.asking();
    let keys = asking.iter().map(|at| sorted.key(*at)).collect();
    sorted.complete((tables, target.form.number), lease, (asking, keys), appended)?;
    // Those that lie ahead of the clock are to be where others of their keys were kept apart.
    let asking = sorted.asking();
    if let Some((number, (asking, keys))) =
        apart::where_kept(engine, lease, (&target.table, &target.form), &asking, |at| sorted.key(at))?
    {
        sorted.complete((tables, number), lease, (asking, keys), appended)?;
    }
    change::store(engine, lease, (&target.table, &target.form), Cow::Owned(sorted.into_batch()), false).map(drop)
}

/// Rows in the order of their series, times, and places among those given.
struct Sorted<'a> {
    target: &'a Target,
    rows: Vec<usize>,
    series: Vec<u32>,
    times: Vec<i64>,
    columns: Vec<Column>,
    /// Columns of the engine that a row may have a value in: not those that were dropped.
    live: Vec<usize>,
    /// The row that a row was made part of, so that it is not stored itself.
    is_kept: Vec<bool>,
}

impl<'a> Sorted<'a> {
    fn of(target: &'a Target, points: &NewPoints<'_>, range: Range<usize>, appended: &mut Appended) -> Result<Self> {
        let begin = range.start;
        let mut keys = Vec::with_capacity(range.len());
        let is_expired = |row: &usize| points.times[*row] < target.oldest;
        appended.refuse(range.clone().filter(is_expired), Reason::Expired);
        for row in range.clone().filter(|row| !appended.is_refused(*row)) {
            let series = target.series_of[points.set_of[row] as usize];
            let series = series.ok_or_else(|| Error::Bug("a row without a series".into()))?;
            keys.push((series, points.times[row], row));
        }
        if !keys.is_sorted() {
            keys.sort_unstable();
        }
        let mut place_of = vec![None; range.len()];
        keys.iter().enumerate().for_each(|(place, (_, _, row))| place_of[row - begin] = Some(place));
        let nothing = |kind| {
            let mut column = Column::new(kind);
            column.append_nothing(keys.len());
            column
        };
        let mut columns: Vec<Column> = target.kinds.iter().copied().map(nothing).collect();
        for (field, slot) in points.fields.iter().zip(&target.slot_of) {
            let Some(column) = slot.and_then(|slot| columns.get_mut(slot)) else { continue };
            let there = field.places(range.start, range.end);
            scatter(column, &field.values, there.filter_map(|(row, at)| Some((place_of[row - begin]?, at))))?;
        }
        Ok(Sorted {
            target,
            rows: keys.iter().map(|(_, _, row)| *row).collect(),
            series: keys.iter().map(|(series, _, _)| *series).collect(),
            times: keys.iter().map(|(_, time, _)| *time).collect(),
            live: target.form.values.iter().map(|(_, slot)| *slot).collect(),
            is_kept: vec![true; keys.len()],
            columns,
        })
    }

    fn is_same_key(&self, one: usize, other: usize) -> bool {
        (self.series[one], self.times[one]) == (self.series[other], self.times[other])
    }

    /// Gives the last row of each key what it leaves out and an earlier one has.
    fn make_one_of_each_key(&mut self, appended: &mut Appended) {
        let mut before = None;
        for at in 0..self.rows.len() {
            let Some(earlier) = before.filter(|before| self.is_same_key(*before, at)) else {
                before = Some(at);
                continue;
            };
            if self.target.refuses_duplicates {
                appended.refuse([self.rows[at]], Reason::Duplicate);
                self.is_kept[at] = false;
                continue;
            }
            let taken: Vec<usize> = self.missing(at).filter(|slot| self.columns[*slot].is_present(earlier)).collect();
            taken.iter().for_each(|slot| copy_within(&mut self.columns[*slot], earlier, at));
            if self.texts_fit(at) {
                self.is_kept[earlier] = false;
                before = Some(at);
            } else {
                appended.refuse([self.rows[at]], Reason::Texts(self.target.text_bytes_max));
                self.is_kept[at] = false;
            }
        }
    }

    fn missing(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        self.live.iter().copied().filter(move |slot| !self.columns[*slot].is_present(at))
    }

    fn texts_fit(&self, at: usize) -> bool {
        let bytes = |column: &Column| match &column.values {
            Values::Texts(texts) if column.is_present(at) => texts[at].len(),
            _ => 0,
        };
        self.columns.iter().map(bytes).sum::<usize>() <= self.target.text_bytes_max
    }

    /// Rows to which it matters whether one of their key is there.
    fn asking(&self) -> Vec<usize> {
        let refuses = self.target.refuses_duplicates;
        let asks = |at: &usize| self.is_kept[*at] && (refuses || self.missing(*at).next().is_some());
        (0..self.rows.len()).filter(asks).collect()
    }

    fn key(&self, at: usize) -> (u32, i64) {
        (self.series[at], self.times[at])
    }

    /// Gives rows what they leave out and the row of their key has that is there: series have other numbers there.
    fn complete(
        &mut self,
        (tables, number): (&SeriesTables, TableNumber),
        lease: &Lease,
        (asking, keys): (Vec<usize>, Vec<(u32, i64)>),
        appended: &mut Appended,
    ) -> Result<()> {
        if asking.is_empty() {
            return Ok(());
        }
        let refuses = self.target.refuses_duplicates;
        let found = tables.find(&**lease, number, &keys).map_err(told(&self.target.table))?;
        for (from, at) in asking.into_iter().enumerate().filter(|(from, _)| found.there[*from]) {
            if refuses {
                appended.refuse([self.rows[at]], Reason::Duplicate);
                self.is_kept[at] = false;
                continue;
            }
            let known = |slot: &usize| found.points.columns[*slot].is_present(from);
            let taken: Vec<usize> = self.missing(at).filter(known).collect();
            for slot in taken {
                let (column, other) = (&mut self.columns[slot], &found.points.columns[slot]);
                scatter(column, &other.values, [(at, from)].into_iter())?;
            }
            if !self.texts_fit(at) {
                // Those that it was made of are refused with it: nobody is told that a part of a row is stored.
                let first = (0..=at).rev().take_while(|other| self.is_same_key(*other, at)).last().unwrap_or(at);
                appended.refuse(self.rows[first..=at].iter().copied(), Reason::Texts(self.target.text_bytes_max));
                self.is_kept[at] = false;
            }
        }
        Ok(())
    }

    fn into_batch(self) -> Batch {
        let Sorted { series, times, columns, is_kept, .. } = self;
        let mut batch = Batch { series, rows: Points { times, columns } };
        batch.retain(&is_kept);
        for column in &mut batch.rows.columns {
            column.present = column.present.take().filter(|present| present.contains(&false));
            if let Values::Doubles(values) = &mut column.values {
                // Turns -0.0 into 0.0, as everywhere, and leaves every other number alone.
                values.iter_mut().for_each(|value| *value += 0.0);
            }
        }
        batch
    }
}

/// Copies values to places of a column: pairs of a place there and a place here.
fn scatter(column: &mut Column, from: &Values, places: impl Iterator<Item = (usize, usize)>) -> Result<()> {
    fn each<T: Clone>(
        values: &mut [T],
        from: &[T],
        present: &mut Option<Vec<bool>>,
        places: impl Iterator<Item = (usize, usize)>,
    ) {
        for (to, at) in places {
            values[to] = from[at].clone();
            if let Some(present) = present {
                present[to] = true;
            }
        }
    }
    match (&mut column.values, from) {
        (Values::Integers(values), Values::Integers(from)) => each(values, from, &mut column.present, places),
        (Values::Doubles(values), Values::Doubles(from)) => each(values, from, &mut column.present, places),
        (Values::Texts(values), Values::Texts(from)) => each::<Text>(values, from, &mut column.present, places),
        _ => return Err(Error::Bug("values of another kind than their column".into())),
    }
    Ok(())
}

fn copy_within(column: &mut Column, from: usize, to: usize) {
    match &mut column.values {
        Values::Integers(values) => values[to] = values[from],
        Values::Doubles(values) => values[to] = values[from],
        Values::Texts(values) => values[to] = Arc::clone(&values[from]),
    }
    if let Some(present) = &mut column.present {
        present[to] = true;
    }
}
