//! Dates and times beside what they are compared with.
//!
//! The query library compares a time with a text or a date in nanoseconds, which begin in 1677 and end in 2262; the times of a
//! table may be older and later.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::Cast;
use datafusion::scalar::ScalarValue;

use crate::value::{parse, to_microseconds};

/// The value of a quoted date or time; none where the text is none, or is not in the range of the type.
pub(crate) fn read_literal(expr: &Expr, kind: &DataType) -> Option<ScalarValue> {
    let Expr::Literal(literal, _) = expr else { return None };
    let text = literal.try_as_str()??;
    match kind {
        DataType::Date32 => parse::date(text).map(|days| ScalarValue::Date32(Some(days))),
        DataType::Time64(TimeUnit::Microsecond) => {
            let microseconds = |nanoseconds| to_microseconds(i128::from(nanoseconds)) as i64;
            parse::time(text).map(|nanoseconds| ScalarValue::Time64Microsecond(Some(microseconds(nanoseconds))))
        }
        DataType::Time64(TimeUnit::Nanosecond) => {
            parse::time(text).map(|nanoseconds| ScalarValue::Time64Nanosecond(Some(nanoseconds)))
        }
        DataType::Timestamp(..) => instant(parse::timestamp(text)?.0, kind),
        _ => None,
    }
}

/// Nanoseconds since 1970 as a value of a timestamp's type.
fn instant(nanoseconds: i128, kind: &DataType) -> Option<ScalarValue> {
    let DataType::Timestamp(unit, zone) = kind else { return None };
    let ticks = |nanoseconds_of_one| i64::try_from(nanoseconds.div_euclid(nanoseconds_of_one)).ok().map(Some);
    let zone = zone.clone();
    Some(match unit {
        TimeUnit::Second => ScalarValue::TimestampSecond(ticks(1_000_000_000)?, zone),
        TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(ticks(1_000_000)?, zone),
        TimeUnit::Microsecond => {
            ScalarValue::TimestampMicrosecond(Some(i64::try_from(to_microseconds(nanoseconds)).ok()?), zone)
        }
        TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(ticks(1)?, zone),
    })
}

/// A side of a comparison and its type.
pub(crate) type Side = (Expr, DataType);

/// The two sides of a comparison, each given what the other one is.
pub(crate) fn sides(left: Side, right: Side) -> (Side, Side) {
    if !left.1.is_temporal() && !right.1.is_temporal() {
        return (left, right);
    }
    let (right, left) = beside(right, left);
    beside(left, right)
}

/// A side beside a time: a text that is read as one, a date that becomes one. The time itself changes where nanoseconds do not
/// reach what it is compared with: in microseconds it compares the same with whatever is outside of their range.
fn beside(side: Side, time: Side) -> (Side, Side) {
    if let Some(value) = read_literal(&side.0, &time.1) {
        return ((Expr::Literal(value, None), time.1.clone()), time);
    }
    match (&side.1, &time.1) {
        (DataType::Date32, DataType::Timestamp(TimeUnit::Microsecond, _)) => (cast(side, time.1.clone()), time),
        (_, DataType::Timestamp(TimeUnit::Nanosecond, zone)) => {
            let wider = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
            match literal_outside(&side.0, &wider) {
                Some(value) => ((Expr::Literal(value, None), wider.clone()), cast(time, wider)),
                None => (side, time),
            }
        }
        _ => (side, time),
    }
}

/// A quoted date or time, whether or not it says its type, that microseconds reach and nanoseconds do not.
fn literal_outside(expr: &Expr, wider: &DataType) -> Option<ScalarValue> {
    let text = match expr {
        Expr::Cast(cast) if cast.field.data_type().is_temporal() => cast.expr.as_ref(),
        other => other,
    };
    let narrow = DataType::Timestamp(TimeUnit::Nanosecond, None);
    match read_literal(text, &narrow) {
        Some(_) => None,
        None => read_literal(text, wider),
    }
}

fn cast((expr, _): Side, kind: DataType) -> Side {
    (Expr::Cast(Cast::new(Box::new(expr), kind.clone())), kind)
}
