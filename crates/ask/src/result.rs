//! From rows to a result: aggregates, sorting, and what is left of the rest.

use std::collections::BTreeSet;

use counterfoil_proof::{Type, Value, Wide};

use crate::condition::Row;
use crate::error::Error;
use crate::select::{Aggregate, Output, Shown, SortKey};

const SUM: Error = Error::Overflow("a sum");
const MEAN: Error = Error::Overflow("a mean");
const OTHER_TYPE: Error = Error::OtherRows("a value of another type");

/// A result.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The names of its columns.
    pub names: Vec<String>,
    /// Their types.
    pub kinds: Vec<Type>,
    /// Its rows.
    pub rows: Vec<Vec<Value>>,
}

/// Sorts rows; those that are equal stay as they came.
pub(crate) fn sort(rows: &mut [Row<'_>], keys: &[SortKey]) -> Result<(), Error> {
    if keys.is_empty() {
        return Ok(());
    }
    let mut keyed = Vec::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        let encoded: Result<Vec<Vec<u8>>, Error> = keys.iter().map(|key| key.bytes(row)).collect();
        keyed.push((encoded?, at));
    }
    keyed.sort_unstable();
    let sorted: Vec<&[Value]> = keyed.iter().map(|(_, at)| rows[*at].values).collect();
    for (row, values) in rows.iter_mut().zip(sorted) {
        row.values = values;
    }
    Ok(())
}

impl SortKey {
    /// Bytes that sort as a row's values do in the direction of the key.
    fn bytes(&self, row: &Row<'_>) -> Result<Vec<u8>, Error> {
        let mut bytes = row.encoded(self.column)?;
        let is_null = *row.value(self.column)? == Value::Null;
        if self.is_descending {
            // No encoding begins another, so that all turned sorts the other way round.
            bytes.iter_mut().for_each(|byte| *byte = !*byte);
        }
        let rank = if is_null == self.nulls_first { 0 } else { 1 };
        bytes.insert(0, rank);
        Ok(bytes)
    }
}

/// The rows of a result without aggregates: each only once if they are distinct.
pub(crate) fn project(rows: &[Row<'_>], outputs: &[Output], is_distinct: bool) -> Result<Vec<Vec<Value>>, Error> {
    let mut seen = BTreeSet::new();
    let mut projected = Vec::with_capacity(rows.len());
    for row in rows {
        let columns = || outputs.iter().filter_map(|output| output.shown.column());
        if is_distinct {
            let encoded: Result<Vec<Vec<u8>>, Error> = columns().map(|column| row.encoded(column)).collect();
            if !seen.insert(encoded?.concat()) {
                continue;
            }
        }
        let values: Result<Vec<Value>, Error> = columns().map(|column| row.value(column).cloned()).collect();
        projected.push(values?);
    }
    Ok(projected)
}

/// The one row of a result of aggregates.
pub(crate) fn aggregate(rows: &[Row<'_>], outputs: &[Output]) -> Result<Vec<Value>, Error> {
    let value = |output: &Output| match output.shown {
        Shown::Aggregate(aggregate) => aggregate.over(rows, output.kind),
        Shown::Column(_) => Ok(Value::Null),
    };
    outputs.iter().map(value).collect()
}

impl Aggregate {
    fn over(self, rows: &[Row<'_>], kind: Type) -> Result<Value, Error> {
        match self {
            Self::Rows => Ok(Value::Integer(rows.len() as i64)),
            Self::Count(column) => Ok(Value::Integer(values(rows, column)?.len() as i64)),
            Self::Min(column) => extreme(rows, column, false),
            Self::Max(column) => extreme(rows, column, true),
            Self::Sum(column) => sum(&values(rows, column)?, kind),
            Self::Mean(column) => mean(&values(rows, column)?, rows, column, kind),
        }
    }
}

/// The values of a column that are not NULL.
fn values<'a>(rows: &'a [Row<'_>], column: u16) -> Result<Vec<&'a Value>, Error> {
    let all: Result<Vec<&Value>, Error> = rows.iter().map(|row| row.value(column)).collect();
    Ok(all?.into_iter().filter(|value| **value != Value::Null).collect())
}

fn extreme(rows: &[Row<'_>], column: u16, is_last: bool) -> Result<Value, Error> {
    let mut best: Option<(Vec<u8>, &Value)> = None;
    for row in rows {
        let value = row.value(column)?;
        let encoded = row.encoded(column)?;
        let is_better = best.as_ref().is_none_or(|(best, _)| if is_last { encoded > *best } else { encoded < *best });
        if *value != Value::Null && is_better {
            best = Some((encoded, value));
        }
    }
    Ok(best.map_or(Value::Null, |(_, value)| value.clone()))
}

fn whole_sum(values: &[&Value]) -> Result<Wide, Error> {
    values.iter().try_fold(Wide::default(), |sum, value| match value {
        Value::Integer(value) => sum.checked_add(i128::from(*value).into()).ok_or(SUM),
        Value::Numeric(value) => sum.checked_add((*value).into()).ok_or(SUM),
        _ => Err(OTHER_TYPE),
    })
}

fn double_sum(values: &[&Value]) -> Result<f64, Error> {
    values
        .iter()
        .try_fold(0.0, |sum, value| if let Value::Double(value) = value { Ok(sum + value) } else { Err(OTHER_TYPE) })
}

fn sum(values: &[&Value], kind: Type) -> Result<Value, Error> {
    if values.is_empty() {
        return Ok(Value::Null);
    }
    match kind {
        Type::Double => double_sum(values).map(Value::Double),
        _ => shown_sum(whole_sum(values)?, kind),
    }
}

/// An exact sum as a value of its type.
pub(crate) fn shown_sum(sum: Wide, kind: Type) -> Result<Value, Error> {
    let sum = sum.to_i128().ok_or(SUM)?;
    match kind {
        Type::BigInt => i64::try_from(sum).map(Value::Integer).map_err(|_| SUM),
        _ => numeric(sum).ok_or(SUM),
    }
}

fn mean(values: &[&Value], rows: &[Row<'_>], column: u16, kind: Type) -> Result<Value, Error> {
    let Some(first) = rows.first().filter(|_| !values.is_empty()) else { return Ok(Value::Null) };
    let Type::Numeric(..) = kind else { return Ok(Value::Double(double_sum(values)? / values.len() as f64)) };
    let own = first.definition.columns[usize::from(column)].kind;
    shown_mean(whole_sum(values)?, values.len() as u64, own, kind)
}

/// The mean of values of the type `own` with the digits of `kind`, rounded half away from zero; there is at least one.
pub(crate) fn shown_mean(sum: Wide, count: u64, own: Type, kind: Type) -> Result<Value, Error> {
    let scale = |kind| match kind {
        Type::Numeric(_, scale) => scale,
        _ => 0,
    };
    let count = i128::from(count);
    let unit = 10i128.checked_pow(u32::from(scale(kind).saturating_sub(scale(own)))).ok_or(MEAN)?;
    let sum = sum.to_i128().ok_or(SUM)?;
    // The rest is smaller than the number of rows, so that it has room for sixteen digits more.
    let (whole, rest) = ((sum / count).checked_mul(unit).ok_or(MEAN)?, (sum % count).checked_mul(unit).ok_or(MEAN)?);
    let (more, left) = (rest / count, rest % count);
    let rounded = if 2 * left.abs() >= count { more + left.signum() } else { more };
    whole.checked_add(rounded).and_then(numeric).ok_or(MEAN)
}

/// A value that 38 digits hold.
fn numeric(value: i128) -> Option<Value> {
    (value.unsigned_abs() < 10u128.pow(38)).then_some(Value::Numeric(value))
}
