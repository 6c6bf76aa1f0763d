//! How far the rows can lie that an answer wants, where it wants the first of an order, or the least or greatest of values: what an
//! index in that order says of its ends.
//!
//! ```text
//! entries at an end of an index --> their rows, with what they join, tested --> the value of the last that is wanted
//!                                                                                     |
//!        rows of the answer <-- one more test: no value beyond that one --------------+
//! ```
//!
//! So many rows have no value beyond the bound as are wanted: whatever else there is comes behind them. Entries of rows that have
//! another key by now make the bound wider, and never wrong.

use alloc::vec;
use alloc::vec::Vec;

use counterfoil_log::View;

use super::named::FEW_ROWS;
use super::plan::{Access, Function, Order, Output, Place, Plan};
use super::ranges::{flatten, in_order_of};
use super::rows::value;
use super::test::{Comparison, Constant, Test};
use super::{JoinedRows, KeptRows, Source};
use crate::key::push_value;
use crate::{Error, Relations, RowId, ValueRef};

/// Entries that are looked at beyond twice as many as rows are wanted.
const SPARE_ENTRIES: usize = 16;
/// Where none of the rows there is wanted, so many times as many entries are looked at.
const GROWTH: usize = 4;
/// One in so many of a table's rows may be looked at to know a bound: reading all of them costs little more for it.
const SHARE: u64 = 64;

/// The rows at the ends of orders that a question wants.
pub(super) struct Outermost<'o> {
    pub(super) relations: &'o Relations,
    pub(super) view: &'o dyn View,
    pub(super) plan: &'o Plan,
    /// The root, by its place among the sources.
    pub(super) root: usize,
    /// For each source the columns whose values are needed.
    pub(super) columns: &'o [Vec<usize>],
    /// Rows that there is room for.
    pub(super) room: usize,
    /// Rows that are read at a time, with so many bytes of long values of each source.
    pub(super) step_rows: usize,
    pub(super) heap_bytes: u64,
}

/// An end of an order.
struct End {
    /// The column of the root that is in order.
    column: usize,
    /// Whether the greatest are wanted.
    at_end: bool,
    /// Whether NULLs come before all others.
    keeps_nulls: bool,
    /// Rows wanted.
    count: usize,
}

impl Outermost<'_> {
    /// What is true of the rows that are wanted, and of few others; none where nothing is known or too much would have to be read.
    #[inline(never)]
    pub(super) fn test(&self) -> Result<Option<Test>, Error> {
        let mut any: Option<Test> = None;
        for end in self.ends() {
            let Some(test) = self.bound(&end)? else { return Ok(None) };
            any = Some(any.map_or_else(|| test.clone(), |any| any.or(test.clone())));
        }
        Ok(any)
    }

    /// Bytes that entries may take, and as many the values of their rows: beside a list of candidates there is as much room as it takes.
    fn bytes_max(&self) -> usize {
        self.room.saturating_mul(size_of::<RowId>() / 2)
    }

    fn source(&self) -> &Source {
        &self.plan.sources[self.root]
    }

    /// The ends that the rows of the answer lie at; none where others may be wanted.
    fn ends(&self) -> Vec<End> {
        let Plan { outputs, groups, order, offset, limit, is_distinct, access, .. } = self.plan;
        if *access == Access::Scan {
            return Vec::new();
        }
        if self.plan.is_grouped() {
            let ends = outputs.iter().map(|output| match output {
                Output::Aggregate(function, place) => self.end_of_values(*function, *place),
                _ => None,
            });
            let ends: Option<Vec<End>> = ends.collect();
            return ends.filter(|_| groups.is_empty()).unwrap_or_default();
        }
        let count = limit.and_then(|limit| usize::try_from(limit.checked_add(*offset)?).ok());
        let (Some(Order { output, is_descending, nulls_first }), Some(count @ 1..)) = (order.first(), count) else {
            return Vec::new();
        };
        match outputs[*output] {
            Output::Column(Place { source, column }) if source == self.root && !is_distinct => {
                let keeps_nulls = *nulls_first && self.may_be_null(column);
                vec![End { column, at_end: *is_descending, keeps_nulls, count }]
            }
            _ => Vec::new(),
        }
    }

    /// Whether a row that is wanted may have NULL in a column of the root.
    fn may_be_null(&self, column: usize) -> bool {
        let mut flat = Vec::new();
        self.source().tests.iter().for_each(|test| flatten(test, &mut flat));
        let is_there = |test: &&Test| test.is_of(column) && !test.is_true_of_none();
        !self.source().table.columns[column].not_null && !flat.iter().any(is_there)
    }

    /// The end at which the value lies that an aggregate is.
    fn end_of_values(&self, function: Function, place: Place) -> Option<End> {
        let at_end = match function {
            Function::Least => false,
            Function::Greatest => true,
            Function::Count | Function::Sum | Function::Mean => return None,
        };
        (place.source == self.root).then_some(End { column: place.column, at_end, keeps_nulls: false, count: 1 })
    }

    /// The test that bounds the rows of an end.
    fn bound(&self, end: &End) -> Result<Option<Test>, Error> {
        let (source, mut flat) = (self.source(), Vec::new());
        source.tests.iter().for_each(|test| flatten(test, &mut flat));
        let Some((index, range)) = in_order_of(&flat, &source.table, end.column) else { return Ok(None) };
        let total = usize::try_from(self.relations.count(self.view, &source.table)? / SHARE).unwrap_or(usize::MAX);
        let most = total.max(FEW_ROWS).min(self.room);
        let mut count = end.count.saturating_mul(2).saturating_add(SPARE_ENTRIES);
        let mut seen = 0;
        while count <= most {
            let (within, asked) = ((index, &range), (end.at_end, count));
            let outermost = self.relations.outermost(self.view, &source.table, within, asked, self.bytes_max())?;
            let Some(rows) = outermost.filter(|rows| rows.len() > seen) else { return Ok(None) };
            if let Some(constant) = self.last_wanted(&rows, end)? {
                return Ok(Some(self.within(end, constant)));
            }
            seen = rows.len();
            count = count.saturating_mul(GROWTH);
        }
        Ok(None)
    }

    /// The value of the last row that is wanted, if so many of these rows belong to the answer.
    fn last_wanted(&self, rows: &[RowId], end: &End) -> Result<Option<Constant>, Error> {
        let place = Place { source: self.root, column: end.column };
        let mut wanted: Vec<(Vec<u8>, Constant)> = Vec::new();
        let mut bytes = 0;
        for rows in rows.chunks(self.step_rows) {
            let Some(joined) = self.read(rows)? else { return Ok(None) };
            for row in 0..joined.count {
                let value = value(&joined, place, row)?;
                if value == ValueRef::Null {
                    continue;
                }
                let Some(constant) = constant(value, end.at_end) else { return Ok(None) };
                let mut key = Vec::new();
                push_value(value, &mut key);
                bytes += 2 * key.len();
                if bytes > self.bytes_max() {
                    return Ok(None);
                }
                let comes_before =
                    |(known, _): &(Vec<u8>, Constant)| if end.at_end { *known > key } else { *known < key };
                wanted.insert(wanted.partition_point(comes_before), (key, constant));
                wanted.truncate(end.count);
            }
        }
        Ok(wanted.into_iter().nth(end.count - 1).map(|(_, constant)| constant))
    }

    /// Some rows with what they join, those that belong to the answer; none where there is too little memory.
    fn read(&self, rows: &[RowId]) -> Result<Option<JoinedRows>, Error> {
        let Plan { sources, conditions, .. } = self.plan;
        let (table, columns) = (&self.source().table, &self.columns[self.root]);
        let wanted = (sources.len() > 1, self.heap_bytes);
        let joined = self.relations.fetch_apart(self.view, table, rows, columns, wanted).and_then(|block| {
            let heap = (self.heap_bytes, &mut KeptRows::default());
            self.relations.join_block(self.view, (sources, conditions), self.columns, block, heap)
        });
        match joined {
            Err(error) if error.is_memory() => Ok(None),
            joined => joined.map(Some),
        }
    }

    /// The test of rows that lie no further than a value.
    fn within(&self, end: &End, constant: Constant) -> Test {
        let column = end.column;
        let comparison = if end.at_end { Comparison::AtLeast } else { Comparison::AtMost };
        let within = Test::Compare { column, comparison, constant };
        if !end.keeps_nulls {
            return within;
        }
        // Each alternative says all that there is to say, so that an index of several columns serves it.
        let with = |test| {
            let mut tests = self.source().tests.clone();
            tests.push(test);
            Test::All(tests)
        };
        Test::Any(vec![with(Test::Null { column, wanted: true }), with(within)])
    }
}

/// A value as that which others compare with. Of zeros the one that both compare with alike, seen from an end; none of what is not a
/// number, which comparisons order otherwise than keys do.
fn constant(value: ValueRef<'_>, at_end: bool) -> Option<Constant> {
    Some(match value {
        ValueRef::Null => return None,
        ValueRef::Boolean(value) => Constant::Whole(value.into()),
        ValueRef::SmallInt(value) => Constant::Whole(value.into()),
        ValueRef::Integer(value) | ValueRef::Date(value) => Constant::Whole(value.into()),
        ValueRef::BigInt(value) | ValueRef::Time(value) | ValueRef::Timestamp(value) | ValueRef::TimestampTz(value) => {
            Constant::Whole(value)
        }
        ValueRef::Real(value) => float(value.into(), at_end)?,
        ValueRef::Double(value) => float(value, at_end)?,
        ValueRef::Numeric(value) => Constant::Decimal(value),
        ValueRef::Uuid(value) => Constant::Bytes(value.to_vec()),
        ValueRef::Text(value) => Constant::Bytes(value.as_bytes().to_vec()),
        ValueRef::Bytea(value) => Constant::Bytes(value.to_vec()),
    })
}

fn float(value: f64, at_end: bool) -> Option<Constant> {
    let zero = if at_end { -0.0 } else { 0.0 };
    (!value.is_nan()).then_some(Constant::Float(if value == 0.0 { zero } else { value }))
}
