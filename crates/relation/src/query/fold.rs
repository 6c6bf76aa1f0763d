//! Groups of rows on their way to being one row each.
//!
//! ```text
//! the load of a group: its values, packed, one behind the other | the state of each aggregate
//! a count: u64    a sum, a mean: i128 and how many u64    the least, the greatest: the value, packed
//! ```

use alloc::vec::Vec;
use core::cmp::Ordering;

use super::JoinedRows;
use super::packed::{self, wrong};
use super::plan::{Function, Output, Place, Plan};
use super::rows::value;
use crate::key::push_value;
use crate::mean::mean;
use crate::wide::power_of_ten;
use crate::{Error, Type, ValueRef};

/// Bytes of the states that are no values.
const COUNT_BYTES: usize = 8;
const SUM_BYTES: usize = 16 + COUNT_BYTES;

/// How rows become groups.
pub(super) struct Groups {
    /// What makes a group.
    places: Vec<Place>,
    kinds: Vec<Type>,
    aggregates: Vec<Aggregate>,
    /// For each output its value in the group, or its aggregate.
    outputs: Vec<Shown>,
}

/// An aggregate of one column.
#[derive(Clone, Copy)]
struct Aggregate {
    /// The column; none where rows are counted.
    place: Option<Place>,
    function: Function,
    /// The type of its column.
    of: Type,
    /// The type of what it comes to.
    kind: Type,
}

enum Shown {
    Group(usize),
    Aggregate(usize),
}

impl Groups {
    pub(super) fn of(plan: &Plan) -> Result<Self, Error> {
        let places = plan.group_places();
        let kinds = places.iter().map(|place| plan.kind_at(*place)).collect::<Result<_, _>>()?;
        let mut groups = Groups { places, kinds, aggregates: Vec::new(), outputs: Vec::new() };
        for output in &plan.outputs {
            let shown = match output {
                Output::Column(place) => Shown::Group(groups.places.binary_search(place).map_err(|_| wrong())?),
                Output::CountRows => groups.aggregated(Function::Count, None, Type::BigInt, Type::BigInt),
                Output::Aggregate(function, place) => {
                    groups.aggregated(*function, Some(*place), plan.kind_at(*place)?, plan.kind_of(*output)?)
                }
            };
            groups.outputs.push(shown);
        }
        Ok(groups)
    }

    fn aggregated(&mut self, function: Function, place: Option<Place>, of: Type, kind: Type) -> Shown {
        self.aggregates.push(Aggregate { place, function, of, kind });
        Shown::Aggregate(self.aggregates.len() - 1)
    }

    /// Where all rows are one group, there is one without rows as well: its load.
    pub(super) fn begin_empty(&self, load: &mut Vec<u8>) -> bool {
        load.clear();
        self.aggregates.iter().for_each(|aggregate| aggregate.begin_empty(load));
        self.places.is_empty()
    }

    /// The load of so many rows, where all rows are one group and are counted.
    #[cfg(not(feature = "small"))]
    pub(super) fn record_all(&self, count: usize, load: &mut Vec<u8>) -> bool {
        load.clear();
        self.aggregates.iter().for_each(|_| load.extend_from_slice(&(count as u64).to_le_bytes()));
        self.places.is_empty() && self.aggregates.iter().all(|aggregate| aggregate.place.is_none())
    }

    /// The record of one row.
    pub(super) fn record(
        &self,
        rows: &JoinedRows,
        row: usize,
        (key, load): (&mut Vec<u8>, &mut Vec<u8>),
    ) -> Result<(), Error> {
        key.clear();
        load.clear();
        for place in &self.places {
            let value = value(rows, *place, row)?;
            push_value(value, key);
            packed::push(value, load);
        }
        for aggregate in &self.aggregates {
            let value = aggregate.place.map_or(Ok(ValueRef::Null), |place| value(rows, place, row))?;
            aggregate.begin(value, load);
        }
        Ok(())
    }

    /// Takes a group into another of the same values.
    pub(super) fn fold(&self, into: &mut Vec<u8>, other: &[u8]) -> Result<(), Error> {
        let mut theirs = other;
        for kind in &self.kinds {
            packed::split(*kind, &mut theirs)?;
        }
        // The values of a group are the same, but for a zero's sign: those of the first row stay.
        let mut at = {
            let mut ours = into.as_slice();
            for kind in &self.kinds {
                packed::split(*kind, &mut ours)?;
            }
            into.len() - ours.len()
        };
        for aggregate in &self.aggregates {
            at += aggregate.fold(into, at, &mut theirs)?;
        }
        Ok(())
    }

    /// Reads the outputs of a group.
    pub(super) fn outputs<'l>(&self, load: &'l [u8]) -> Result<Vec<ValueRef<'l>>, Error> {
        let mut rest = load;
        let values = self.kinds.iter().map(|kind| packed::read(*kind, &mut rest)).collect::<Result<Vec<_>, _>>()?;
        let states =
            self.aggregates.iter().map(|aggregate| aggregate.value(&mut rest)).collect::<Result<Vec<_>, _>>()?;
        let value = |shown: &Shown| match shown {
            Shown::Group(place) => values[*place],
            Shown::Aggregate(place) => states[*place],
        };
        Ok(self.outputs.iter().map(value).collect())
    }
}

impl Aggregate {
    /// Appends the state of one row.
    fn begin(&self, value: ValueRef<'_>, out: &mut Vec<u8>) {
        let is_there = u64::from(self.place.is_none() || value != ValueRef::Null);
        match self.function {
            Function::Count => out.extend_from_slice(&is_there.to_le_bytes()),
            Function::Sum | Function::Mean => {
                out.extend_from_slice(&whole(value).to_le_bytes());
                out.extend_from_slice(&is_there.to_le_bytes());
            }
            Function::Least | Function::Greatest => packed::push(value, out),
        }
    }

    /// Appends the state of no row.
    fn begin_empty(&self, out: &mut Vec<u8>) {
        match self.function {
            Function::Count => out.extend_from_slice(&[0; COUNT_BYTES]),
            Function::Sum | Function::Mean => out.extend_from_slice(&[0; SUM_BYTES]),
            Function::Least | Function::Greatest => packed::push(ValueRef::Null, out),
        }
    }

    /// Takes another state into the one that begins at a place; how many bytes it then has.
    fn fold(&self, into: &mut Vec<u8>, at: usize, theirs: &mut &[u8]) -> Result<usize, Error> {
        match self.function {
            Function::Count => {
                let sum = take_count(theirs)?.saturating_add(count_at(into, at)?);
                into[at..at + COUNT_BYTES].copy_from_slice(&sum.to_le_bytes());
                Ok(COUNT_BYTES)
            }
            Function::Sum | Function::Mean => {
                let sum = take_sum(theirs)?.checked_add(sum_at(into, at)?).ok_or_else(out_of_range)?;
                let count = take_count(theirs)?.saturating_add(count_at(into, at + 16)?);
                into[at..at + 16].copy_from_slice(&sum.to_le_bytes());
                into[at + 16..at + SUM_BYTES].copy_from_slice(&count.to_le_bytes());
                Ok(SUM_BYTES)
            }
            Function::Least | Function::Greatest => {
                let their = packed::split(self.of, theirs)?;
                let mut ours = into.get(at..).ok_or_else(wrong)?;
                let our = packed::split(self.of, &mut ours)?;
                let (one, other) = (packed::read(self.of, &mut &*our)?, packed::read(self.of, &mut &*their)?);
                let takes = match (one, other) {
                    (_, ValueRef::Null) => false,
                    (ValueRef::Null, _) => true,
                    (one, other) if self.function == Function::Least => compare(other, one).is_lt(),
                    (one, other) => compare(other, one).is_gt(),
                };
                let bytes = our.len();
                if !takes {
                    return Ok(bytes);
                }
                into.splice(at..at + bytes, their.iter().copied());
                Ok(their.len())
            }
        }
    }

    /// What it comes to.
    fn value<'l>(&self, state: &mut &'l [u8]) -> Result<ValueRef<'l>, Error> {
        if matches!(self.function, Function::Least | Function::Greatest) {
            return packed::read(self.of, state);
        }
        if self.function == Function::Count {
            return Ok(ValueRef::BigInt(i64::try_from(take_count(state)?).map_err(|_| out_of_range())?));
        }
        let (sum, count) = (take_sum(state)?, take_count(state)?);
        if count == 0 {
            return Ok(ValueRef::Null);
        }
        Ok(match (self.function, self.kind) {
            (Function::Sum, Type::Numeric { precision, .. }) => ValueRef::Numeric(within(sum, precision)?),
            (Function::Sum, _) => ValueRef::BigInt(i64::try_from(sum).map_err(|_| out_of_range())?),
            (_, Type::Numeric { precision, scale }) => {
                let own = if let Type::Numeric { scale, .. } = self.of { scale } else { 0 };
                let more = scale.saturating_sub(own);
                ValueRef::Numeric(within(mean(sum, count, more).ok_or_else(out_of_range)?, precision)?)
            }
            _ => ValueRef::Double(sum as f64 / count as f64),
        })
    }
}

fn within(number: i128, precision: u8) -> Result<i128, Error> {
    let bound = power_of_ten(precision).ok_or_else(out_of_range)?;
    if number.unsigned_abs() < bound.unsigned_abs() { Ok(number) } else { Err(out_of_range()) }
}

fn out_of_range() -> Error {
    Error::sql("a sum is out of the range of its type: cast to NUMERIC first")
}

fn whole(value: ValueRef<'_>) -> i128 {
    match value {
        ValueRef::SmallInt(value) => value.into(),
        ValueRef::Integer(value) => value.into(),
        ValueRef::BigInt(value) => value.into(),
        ValueRef::Numeric(value) => value,
        _ => 0,
    }
}

fn take_count(bytes: &mut &[u8]) -> Result<u64, Error> {
    let (count, rest) = bytes.split_first_chunk().ok_or_else(wrong)?;
    *bytes = rest;
    Ok(u64::from_le_bytes(*count))
}

fn take_sum(bytes: &mut &[u8]) -> Result<i128, Error> {
    let (sum, rest) = bytes.split_first_chunk().ok_or_else(wrong)?;
    *bytes = rest;
    Ok(i128::from_le_bytes(*sum))
}

fn count_at(bytes: &[u8], at: usize) -> Result<u64, Error> {
    take_count(&mut bytes.get(at..).ok_or_else(wrong)?)
}

fn sum_at(bytes: &[u8], at: usize) -> Result<i128, Error> {
    take_sum(&mut bytes.get(at..).ok_or_else(wrong)?)
}

/// How two values of one type that are not NULL compare: as in an index.
fn compare(one: ValueRef<'_>, other: ValueRef<'_>) -> Ordering {
    match (one, other) {
        (ValueRef::Integer(one), ValueRef::Integer(other)) | (ValueRef::Date(one), ValueRef::Date(other)) => {
            one.cmp(&other)
        }
        (ValueRef::BigInt(one), ValueRef::BigInt(other)) => one.cmp(&other),
        (ValueRef::Text(one), ValueRef::Text(other)) => one.as_bytes().cmp(other.as_bytes()),
        (one, other) => {
            let (mut left, mut right) = (Vec::new(), Vec::new());
            push_value(one, &mut left);
            push_value(other, &mut right);
            left.cmp(&right)
        }
    }
}
