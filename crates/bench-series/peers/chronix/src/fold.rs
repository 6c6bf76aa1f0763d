//! What is made of the tuples of a span: by Chronix where it has the function, else here, of the columns that it hands over.

use arrow::array::{AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use chronix::chronix_core::TIME_COLUMN;
use chronix::prelude::{AggFn, QueryBuilder};

use crate::Failure;
use crate::engine::{Engine, NANOSECONDS, TAG};

/// Of how many tuples, and what came out.
pub type Answer = (u64, f64);

/// What is asked for, by the numbers of the pipe: 0 all, 1 count, 2 sum, 3 average, 4 least and greatest, 5 how many values are
/// greater than the parameter, 6 how often more milliseconds passed to the next one.
#[derive(Clone, Copy)]
pub struct Fold {
    pub kind: u8,
    pub parameter: f64,
}

/// The answer to a fold of a series within a span.
pub fn fold(engine: &Engine, sort: usize, series: u32, span: (i64, i64), fold: Fold) -> Result<Answer, Failure> {
    let query = engine.within(sort, series, span)?;
    match fold.kind {
        0 => columns(engine, query.fields(&["value", "quality"]), raw),
        1 => aggregate(engine, query.field("quality"), &[AggFn::Count]).map(|(tuples, _)| (tuples, tuples as f64)),
        2 => aggregate(engine, query.field("value"), &[AggFn::Count, AggFn::Sum]),
        3 => aggregate(engine, query.field("value"), &[AggFn::Count, AggFn::Avg]),
        4 => aggregate(engine, query.field("value"), &[AggFn::Count, AggFn::Min, AggFn::Max]),
        5 => columns(engine, query.field("value"), |batch| {
            Ok(values(batch)?.iter().filter(|value| **value > fold.parameter).count() as f64)
        }),
        6 => {
            let (mut last, most) = (i64::MAX, fold.parameter as i64 * NANOSECONDS);
            columns(engine, query.field("quality"), |batch| {
                let passed = times(batch)?.iter().map(|time| time.saturating_sub(std::mem::replace(&mut last, *time)));
                Ok(passed.filter(|passed| *passed > most).count() as f64)
            })
        }
        _ => Err("a fold that nobody knows".into()),
    }
}

/// The sum of the answers to folds of all series within a span. Filters and gaps go once through what all of them have there,
/// since what holds one series holds all of them; the others are asked one by one.
pub fn fold_all(engine: &Engine, sort: usize, span: (i64, i64), folds: &[Fold]) -> Result<Answer, Failure> {
    if !folds.iter().all(|fold| (5..=6).contains(&fold.kind)) {
        return (0..).zip(folds).try_fold((0, 0.0), |all: Answer, (series, of)| {
            let one = fold(engine, sort, series, span, *of)?;
            Ok((all.0 + one.0, all.1 + one.1))
        });
    }
    let mut last = vec![i64::MAX; folds.len()];
    columns(engine, engine.all_within(sort, span)?.fields(&["value", TAG]), |batch| {
        let (times, values, series) = (times(batch)?, values(batch)?, series(batch)?);
        let mut found = 0.0;
        for ((time, value), series) in times.iter().zip(values).zip(series) {
            let series: usize = series.ok_or("a tuple of no series")?.parse()?;
            let Fold { kind, parameter } = *folds.get(series).ok_or("a series too many")?;
            let passed = time.saturating_sub(std::mem::replace(&mut last[series], *time));
            let is_one = if kind == 5 { *value > parameter } else { passed > parameter as i64 * NANOSECONDS };
            found += f64::from(u8::from(is_one));
        }
        Ok(found)
    })
}

/// A count and other functions of one field: the count, and the sum of the others.
fn aggregate(engine: &Engine, query: QueryBuilder, functions: &[AggFn]) -> Result<Answer, Failure> {
    let query = functions.iter().fold(query, |query, function| query.aggregate(*function));
    let batch = engine.database.execute(&query.build()?)?;
    let numbers = batch.columns().iter().filter_map(|column| column.as_primitive_opt::<Float64Type>());
    let numbers: Vec<f64> = numbers.filter(|column| !column.is_empty()).map(|column| column.value(0)).collect();
    match numbers.split_first() {
        Some((count, rest)) if functions.len() == numbers.len() => Ok((*count as u64, rest.iter().sum())),
        _ if batch.num_rows() == 0 => Ok((0, 0.0)),
        _ => Err(format!("an aggregate of other columns: {}", batch.schema()).into()),
    }
}

/// The tuples of a span batch by batch, and the sum of what is made of each.
fn columns(
    engine: &Engine,
    query: QueryBuilder,
    mut number: impl FnMut(&RecordBatch) -> Result<f64, Failure>,
) -> Result<Answer, Failure> {
    let (mut tuples, mut sum) = (0, 0.0);
    for batch in engine.database.execute_iter(&query.build()?)? {
        let batch = batch?;
        tuples += batch.num_rows() as u64;
        sum += number(&batch)?;
    }
    Ok((tuples, sum))
}

fn raw(batch: &RecordBatch) -> Result<f64, Failure> {
    let quality = batch.column_by_name("quality").and_then(|column| column.as_primitive_opt::<UInt64Type>());
    let quality: u64 = quality.ok_or("no quality")?.values().iter().sum();
    let times: i64 = times(batch)?.iter().map(|time| time / NANOSECONDS % 1000).sum();
    let value = batch.column_by_name("value").ok_or("no value")?;
    let values = match value.data_type() {
        DataType::Boolean => value.as_boolean().true_count() as f64,
        _ => values(batch)?.iter().sum(),
    };
    Ok((times + quality as i64) as f64 + values)
}

fn times(batch: &RecordBatch) -> Result<&[i64], Failure> {
    let times = batch.column_by_name(TIME_COLUMN);
    Ok(times.and_then(|column| column.as_primitive_opt::<Int64Type>()).ok_or("no times")?.values())
}

fn values(batch: &RecordBatch) -> Result<&[f64], Failure> {
    let values = batch.column_by_name("value").and_then(|column| column.as_primitive_opt::<Float64Type>());
    Ok(values.ok_or("no values")?.values())
}

fn series(batch: &RecordBatch) -> Result<&StringArray, Failure> {
    let series = batch.column_by_name(TAG).and_then(|column| column.as_string_opt::<i32>());
    series.ok_or_else(|| format!("no series: {}", batch.schema()).into())
}
