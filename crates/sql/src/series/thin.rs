//! Compression as points come in, by swinging door or dead band: what a door lets go is not stored, or goes again.
//!
//! ```text
//! rows, by series -> late: stored as they are, and the door is forgotten
//!                 -> newer than all: through the door -> stored; the point held before, if it goes: deleted in the same transaction
//!                                    by dead band     -> stored, unless the newest stored point stands for it
//! ```
//! An acknowledged point is durable, or a line between durable points passes it within the bound: the newest point of a series is
//! always stored, and replaced by the next one that lies within the door in one transaction.
//!
//! Doors are in memory only. One begins anew at the newest point stored, which then stays, whenever what is remembered may not be what
//! is stored: after a restart, a rollback, any change but an insertion at the end, and commits of others. So nothing that a door
//! remembers is ever asked of a table; at most a point stays that could have gone.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use counterfoil_log::{CommitNumber, View};
use counterfoil_relation::{Table, Type};
use counterfoil_series::{Batch, Column, Points, SeriesTables, TableNumber, Values};
use parking_lot::Mutex;

use super::bounds::{DEAD_BAND, LeftOut};
use super::door::{Door, Point, Rule};
use super::options::{self, Told};
use super::{Form, told};
use crate::error::{Error, Result};

/// Doors that are kept in mind: beyond, all are forgotten.
const DOORS_MAX: usize = 1 << 18;

/// The doors of all series tables of an engine.
#[derive(Default)]
pub(crate) struct Doors(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The commit as of which they are right, with what the writer has done since.
    commit: Option<CommitNumber>,
    doors: HashMap<(TableNumber, u32), Door>,
}

impl Known {
    /// Forgets what may not be so as of this commit.
    fn as_of(&mut self, commit: CommitNumber) {
        if self.commit != Some(commit) || self.doors.len() > DOORS_MAX {
            self.doors.clear();
            self.commit = Some(commit);
        }
    }
}

impl Doors {
    /// Something was committed that these doors know of.
    pub(crate) fn committed(&self, view: &dyn View) {
        self.0.lock().commit = Some(view.commit_number());
    }

    /// Something was changed or undone that they may not know of.
    pub(crate) fn forget(&self) {
        self.0.lock().doors.clear();
    }

    /// Rows of a table were changed in another way than by adding newer ones.
    pub(crate) fn forget_table(&self, number: TableNumber) {
        self.0.lock().doors.retain(|(table, _), _| *table != number);
    }
}

/// What a table's definition says of its door.
struct Thinning {
    rule: Rule,
    /// Whether a stored point stands for those behind it, and not a line between two.
    is_band: bool,
    /// The columns of the engine that are there, in the order of the table's.
    slots: Vec<usize>,
    /// Those of them that have a bound, and their types.
    bounded: Vec<(usize, Type)>,
}

impl Thinning {
    fn of(table: &Table, form: &Form) -> Result<Option<Thinning>> {
        let Some(door) = LeftOut::of(&Told::table(table))? else { return Ok(None) };
        let bounded = |(name, _): &(String, f64)| {
            let place = table.column(name).map(|(place, _)| place);
            let value = form.values.iter().find(|(other, _)| Some(*other) == place);
            let value = value.map(|(place, slot)| (*slot, table.columns[*place].kind));
            value.ok_or_else(|| Error::Bug(format!("{} names column {name}, which is not there", door.way.name)))
        };
        let gap = door.gap.map(|gap| options::ticks(&table.columns[form.time].kind, gap));
        Ok(Some(Thinning {
            is_band: *door.way == DEAD_BAND,
            bounded: door.bounds.iter().map(bounded).collect::<Result<_>>()?,
            slots: form.values.iter().map(|(_, slot)| *slot).collect(),
            rule: Rule { bounds: door.bounds.iter().map(|(_, bound)| *bound).collect(), gap },
        }))
    }

    /// A row as a door sees it.
    fn point(&self, rows: &Points, row: usize) -> Result<Point> {
        let mut measured = vec![f64::NAN; self.bounded.len()];
        let mut rest = Vec::new();
        for slot in &self.slots {
            let column = rows.columns.get(*slot).filter(|column| column.is_present(row));
            let Some(column) = column else {
                rest.push(0);
                continue;
            };
            if let Some(at) = self.bounded.iter().position(|(bounded, _)| bounded == slot)
                && let Some(number) = number(&self.bounded[at].1, column, row).filter(|number| number.is_finite())
            {
                rest.push(1);
                measured[at] = number;
                continue;
            }
            rest.push(2);
            match &column.values {
                Values::Integers(values) => rest.extend_from_slice(&values[row].to_le_bytes()),
                Values::Doubles(values) => rest.extend_from_slice(&values[row].to_bits().to_le_bytes()),
                Values::Texts(values) => {
                    rest.extend_from_slice(&values[row].len().to_le_bytes());
                    rest.extend_from_slice(&values[row]);
                }
            }
        }
        Ok(Point { time: rows.times[row], measured: measured.into(), rest: rest.into() })
    }
}

/// A measured value as the line between two of them has it.
fn number(kind: &Type, column: &Column, row: usize) -> Option<f64> {
    match (&column.values, kind) {
        (Values::Doubles(values), _) => Some(values[row]),
        (Values::Integers(values), Type::Numeric { scale, .. }) => {
            Some(values[row] as f64 / 10_f64.powi(i32::from(*scale)))
        }
        (Values::Integers(values), _) => Some(values[row] as f64),
        (Values::Texts(_), _) => None,
    }
}

/// What is left to be done of an insertion.
pub(super) struct Thinned {
    /// The points that are stored.
    pub(super) batch: Batch,
    /// Points that go.
    pub(super) gone: Batch,
}

/// Sends points through the doors of their series; none if the table has none.
pub(super) fn thin(
    (tables, doors): (&SeriesTables, &Doors),
    view: &dyn View,
    table: &Arc<Table>,
    form: &Form,
    batch: &Batch,
) -> Result<Option<Thinned>> {
    let Some(thinning) = Thinning::of(table, form)? else { return Ok(None) };
    let passing = Passing { tables, view, table, form, rows: &batch.rows, thinning };
    let mut by_series = BTreeMap::<u32, Vec<usize>>::new();
    for (row, of) in batch.series.iter().enumerate() {
        by_series.entry(*of).or_default().push(row);
    }
    let numbers: Vec<u32> = by_series.keys().copied().collect();
    let newest = tables.newest(view, form.number, &numbers).map_err(told(table))?;
    let mut passed = Passed { stays: vec![true; batch.len()], gone: Batch::new(&[]) };
    let mut known = doors.0.lock();
    known.as_of(view.commit_number());
    for ((number, rows), newest) in by_series.into_iter().zip(newest) {
        let key = (form.number, number);
        let door = known.doors.remove(&key);
        if let Some(door) = passing.series(number, rows, newest, door, &mut passed)? {
            known.doors.insert(key, door);
        }
    }
    let mut left = batch.clone();
    left.retain(&passed.stays);
    Ok(Some(Thinned { batch: left, gone: passed.gone }))
}

/// Points on their way through doors.
struct Passing<'a> {
    tables: &'a SeriesTables,
    view: &'a dyn View,
    table: &'a Arc<Table>,
    form: &'a Form,
    rows: &'a Points,
    thinning: Thinning,
}

/// What became of them.
struct Passed {
    /// Which of them are stored.
    stays: Vec<bool>,
    gone: Batch,
}

impl Passing<'_> {
    /// Sends the rows of one series through its door; the door afterwards, if it is to be remembered.
    fn series(
        &self,
        number: u32,
        mut rows: Vec<usize>,
        newest: Option<i64>,
        door: Option<Door>,
        passed: &mut Passed,
    ) -> Result<Option<Door>> {
        let times = &self.rows.times;
        rows.sort_by_key(|row| times[*row]);
        // Of rows with one key the last one counts: the others are not there for any door.
        let repeats = rows.windows(2).filter(|pair| times[pair[0]] == times[pair[1]]);
        repeats.for_each(|pair| passed.stays[pair[0]] = false);
        rows.retain(|row| passed.stays[*row]);
        if newest.is_some_and(|newest| rows.first().is_some_and(|row| times[*row] <= newest)) {
            return Ok(None);
        }
        let mut ahead = rows.into_iter();
        let door = match (door.filter(|door| Some(door.newest()) == newest), newest) {
            (Some(door), _) => Some(door),
            (None, Some(newest)) => self.stored(number, newest)?.map(Door::at),
            (None, None) => ahead.next().map(|first| self.point(first)).transpose()?.map(Door::at),
        };
        let Some(mut door) = door else { return Ok(None) };
        if self.thinning.is_band {
            for row in ahead {
                let next = self.point(row)?;
                match door.stands_for(&next, &self.thinning.rule) {
                    true => passed.stays[row] = false,
                    false => door = Door::at(next),
                }
            }
            return Ok(Some(door));
        }
        // The newest point: a row of these, or one that is stored.
        let mut held: Option<usize> = None;
        for row in ahead {
            let before = door.newest();
            if door.push(self.point(row)?, &self.thinning.rule) {
                match held {
                    Some(row) => passed.stays[row] = false,
                    None => passed.gone.push(number, before, []),
                }
            }
            held = Some(row);
        }
        Ok(Some(door))
    }

    fn point(&self, row: usize) -> Result<Point> {
        self.thinning.point(self.rows, row)
    }

    /// The point of a series and a time, if it is stored.
    fn stored(&self, series: u32, time: i64) -> Result<Option<Point>> {
        let found = self.tables.find(self.view, self.form.number, &[(series, time)]).map_err(told(self.table))?;
        let is_there = found.there.first().is_some_and(|is_there| *is_there);
        is_there.then(|| self.thinning.point(&found.points, 0)).transpose()
    }
}
