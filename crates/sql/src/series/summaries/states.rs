//! Buckets as the states that the query library's aggregations pass from their first half to their second.
//!
//! | aggregation | states |
//! |---|---|
//! | count | how many, BIGINT |
//! | sum | the sum, NULL of no values |
//! | avg | how many values, their sum; both NULL of no values |
//! | min, max | the value |
//! | first_value, last_value | the value, what it is ordered by, true |

use std::sync::Arc;

use counterfoil_relation::{Table, Type};
use counterfoil_series::{Bucket, Column, Kind, Summary, Value};
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, Decimal256Array, Float64Array, Int64Array, UInt32Array, UInt64Array,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, FieldRef, SchemaRef, i256};

use super::question::{Place, Wanted};
use crate::aggregates::overflow;
use crate::date_bin;
use crate::error::{Error, Result};
use crate::series::{self, Form, rows};

/// Buckets on their way into columns.
pub(super) struct From<'a> {
    pub(super) table: &'a Table,
    pub(super) form: &'a Form,
    /// The columns that name series.
    pub(super) keys: &'a [Option<ArrayRef>],
    pub(super) buckets: &'a [Bucket],
}

fn broken() -> Error {
    Error::Bug("a state that summaries do not have".into())
}

impl From<'_> {
    /// A column that names series.
    pub(super) fn key(&self, place: usize) -> Result<ArrayRef> {
        let series: UInt32Array = self.buckets.iter().map(|bucket| Some(bucket.series)).collect();
        let key = self.keys.get(place).and_then(Option::as_ref).ok_or_else(broken)?;
        Ok(take(key.as_ref(), &series, None)?)
    }

    /// The beginnings of the buckets, as integers.
    pub(super) fn names(&self) -> Result<ArrayRef> {
        let names = self.buckets.iter().map(|bucket| bucket.name.ok_or_else(date_bin::out_of_range));
        Ok(Arc::new(names.collect::<Result<Int64Array>>()?))
    }

    fn times(&self, time: impl Fn(&Bucket) -> Option<i64>) -> Result<ArrayRef> {
        let times: Vec<Option<i64>> = self.buckets.iter().map(time).collect();
        let nulls = times.contains(&None).then(|| NullBuffer::from_iter(times.iter().map(Option::is_some)));
        let times: Vec<i64> = times.into_iter().map(Option::unwrap_or_default).collect();
        rows::integers(&self.table.columns[self.form.time].kind, &times, nulls)
    }

    fn counts(&self, count: impl Fn(&Bucket) -> u64) -> impl Iterator<Item = u64> {
        self.buckets.iter().map(count)
    }

    /// The states of one aggregation; `fields` are those that come next.
    pub(super) fn states(&self, wanted: &Wanted, fields: &[FieldRef]) -> Result<Vec<ArrayRef>> {
        let field = |at: usize| fields.get(at).ok_or_else(broken);
        Ok(match wanted {
            Wanted::Rows => vec![whole(self.counts(|bucket| bucket.points))],
            Wanted::Count(at) => vec![whole(self.counts(|bucket| bucket.columns[*at].count))],
            Wanted::Sum(at) => vec![self.sums(*at, field(0)?)?],
            Wanted::Mean(at) => {
                let counts = self.counts(|bucket| bucket.columns[*at].count);
                let counts: UInt64Array = counts.map(|count| Some(count).filter(|count| *count > 0)).collect();
                vec![Arc::new(counts), self.sums(*at, field(1)?)?]
            }
            Wanted::Least(at, kind) => vec![self.values(kind, |bucket| bucket.columns[*at].least())?],
            Wanted::Greatest(at, kind) => vec![self.values(kind, |bucket| bucket.columns[*at].greatest())?],
            Wanted::Time { latest } => vec![self.end(&Place::Time, *latest)?],
            Wanted::End { of, latest, ordered } => {
                let mut states = vec![self.end(of, *latest)?];
                for place in ordered {
                    states.push(self.end(place, *latest)?);
                }
                states.push(Arc::new(BooleanArray::from(vec![true; self.buckets.len()])));
                states
            }
        })
    }

    /// A column of the last points, or of the first ones.
    fn end(&self, place: &Place, latest: bool) -> Result<ArrayRef> {
        let at = usize::from(latest);
        match place {
            Place::Key(place) => self.key(*place),
            Place::Time => self.times(|bucket| Some(if latest { bucket.span.last } else { bucket.span.first })),
            Place::Summary(column, kind) => self.values(kind, |bucket| {
                let summary = &bucket.columns[*column];
                if latest { summary.last() } else { summary.first() }
            }),
            Place::Point(slot, kind) => {
                self.values(kind, |bucket| bucket.ends.as_ref()?[at].columns.get(*slot)?.value(0))
            }
        }
    }

    /// Values of a column of the table.
    fn values(&self, kind: &Type, value: impl Fn(&Bucket) -> Option<Value>) -> Result<ArrayRef> {
        let of: Kind = series::kind(kind).ok_or_else(broken)?;
        let mut column = Column::new(of);
        self.buckets.iter().for_each(|bucket| column.push(value(bucket)));
        rows::values(kind, &column)
    }

    fn sums(&self, at: usize, field: &FieldRef) -> Result<ArrayRef> {
        let summaries = self.buckets.iter().map(|bucket| Some(&bucket.columns[at]).filter(|summary| summary.count > 0));
        let integer = |summary: &Summary| summary.sum.integer().ok_or_else(|| Error::from(overflow()));
        Ok(match field.data_type() {
            DataType::Float64 => {
                let sums: Float64Array = summaries.map(|summary| summary.map(|summary| summary.sum.double())).collect();
                Arc::new(sums)
            }
            DataType::Decimal128(precision, scale) => {
                let sums = summaries.map(|summary| summary.map(integer).transpose());
                let sums = sums.collect::<Result<Decimal128Array>>()?;
                Arc::new(sums.with_precision_and_scale(*precision, *scale)?)
            }
            // That of NUMERIC has room to leave the range of its type on its way.
            DataType::Decimal256(precision, scale) => {
                let sums =
                    summaries.map(|summary| summary.map(|summary| integer(summary).map(i256::from_i128)).transpose());
                let sums = sums.collect::<Result<Decimal256Array>>()?;
                Arc::new(sums.with_precision_and_scale(*precision, *scale)?)
            }
            _ => return Err(broken()),
        })
    }
}

fn whole(counts: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(counts.map(|count| Some(count as i64)).collect::<Int64Array>())
}

/// The columns as the library has them: some have another word for the same zone of time, and integers are times.
pub(super) fn cast(columns: Vec<ArrayRef>, schema: &SchemaRef) -> Result<Vec<ArrayRef>> {
    if columns.len() != schema.fields().len() {
        return Err(broken());
    }
    let fields = columns.into_iter().zip(schema.fields());
    let cast = |(column, field): (ArrayRef, &FieldRef)| match column.data_type() == field.data_type() {
        true => Ok(column),
        false => Ok(datafusion::arrow::compute::cast(&column, field.data_type())?),
    };
    fields.map(cast).collect()
}
