//! Parts of dates, times and intervals: `EXTRACT(part FROM x)`, which is NUMERIC, and `date_part('part', x)`, which is
//! DOUBLE PRECISION. The library has integers for both, which cut what they are divided by, and seconds without their fraction.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, PrimitiveArray};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, DurationMicrosecondType, Field, FieldRef, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType as SqlType, ExactNumberInfo, Expr, Value as Literal,
};

use crate::dialect::call;
use crate::error::Error;
use crate::statement::quoted;
use crate::types;

/// The library's own function, which is not rewritten a second time under this name.
const PART: &str = "__counterfoil_part";
/// Seconds since 1970, or of an interval.
const EPOCH: &str = "__counterfoil_epoch";
/// Seconds of the minute, in microseconds: the library has no fractions of an interval's.
const MICROSECONDS_OF_MINUTE: &str = "__counterfoil_microseconds";
/// The time between two instants as days and what is left; all else as it is.
const SPAN: &str = "__counterfoil_span";

/// Digits of an epoch, and how many of them are a fraction.
const EPOCH_DIGITS: (u8, i8) = (20, 6);
const SECONDS_PER_DAY: i128 = 86_400;
const MICROSECONDS: i128 = 1_000_000;

/// The functions that these are rewritten to.
pub(crate) fn functions() -> Vec<Arc<ScalarUDF>> {
    let part = datafusion::functions::datetime::date_part();
    let part = Arc::new(part.as_ref().clone().with_aliases([PART]));
    let signature = Signature::any(1, Volatility::Immutable);
    let span = ScalarUDF::new_from_impl(Span { signature: signature.clone() });
    let microseconds = ScalarUDF::new_from_impl(MicrosecondsOfMinute { signature: signature.clone() });
    vec![part, Arc::new(span), Arc::new(microseconds), Arc::new(ScalarUDF::new_from_impl(Epoch { signature }))]
}

/// `EXTRACT(part FROM of)`.
pub(crate) fn extract(part: &str, of: &Expr) -> Expr {
    let part = part.trim_matches(['\'', '"']).to_lowercase();
    let microseconds = || numeric(call(MICROSECONDS_OF_MINUTE, vec![call(SPAN, vec![of.clone()])]), 8);
    let number = |text: &str| Expr::Value(Literal::Number(text.into(), false).into());
    match part.as_str() {
        "second" | "seconds" => binary(microseconds(), BinaryOperator::Multiply, number("0.000001")),
        "millisecond" | "milliseconds" => binary(microseconds(), BinaryOperator::Multiply, number("0.001")),
        "microsecond" | "microseconds" => microseconds(),
        "epoch" => call(EPOCH, vec![of.clone()]),
        // A year has ten digits at most.
        part => numeric(library_part(part, of), 10),
    }
}

/// `date_part('part', of)`.
pub(crate) fn date_part(part: &str, of: &Expr) -> Expr {
    let part = part.to_lowercase();
    let of_microseconds = |divisor: &str| {
        let microseconds = double(call(MICROSECONDS_OF_MINUTE, vec![call(SPAN, vec![of.clone()])]));
        binary(microseconds, BinaryOperator::Divide, double(quoted(divisor)))
    };
    match part.as_str() {
        "second" | "seconds" => of_microseconds("1000000"),
        "millisecond" | "milliseconds" => of_microseconds("1000"),
        "microsecond" | "microseconds" => of_microseconds("1"),
        "epoch" => double(call(EPOCH, vec![of.clone()])),
        part => double(library_part(part, of)),
    }
}

/// What the library says of a part. Of the time between two instants it counts in 32 bits and in whole hours alone.
fn library_part(part: &str, of: &Expr) -> Expr {
    call(PART, vec![quoted(part), call(SPAN, vec![of.clone()])])
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::Nested(Box::new(Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }))
}

fn cast(expr: Expr, data_type: SqlType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

fn numeric(expr: Expr, digits: u64) -> Expr {
    cast(expr, SqlType::Numeric(ExactNumberInfo::PrecisionAndScale(digits, 0)))
}

fn double(expr: Expr) -> Expr {
    cast(expr, SqlType::Double(ExactNumberInfo::None))
}

/// Seconds as a NUMERIC: whole ones of a date, with six digits behind the point of all else.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Epoch {
    signature: Signature,
}

impl ScalarUDFImpl for Epoch {
    fn name(&self) -> &str {
        EPOCH
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType, DataFusionError> {
        let (digits, fraction) = EPOCH_DIGITS;
        match arguments {
            [DataType::Date32] => Ok(DataType::Decimal128(digits, 0)),
            [
                DataType::Timestamp(..)
                | DataType::Time64(_)
                | DataType::Duration(_)
                | DataType::Interval(_)
                | DataType::Null,
            ] => Ok(DataType::Decimal128(digits, fraction)),
            [other] => Err(Error::Sql(format!("extract does not take {}", types::result_name(other))).into()),
            _ => Err(Error::Bug("extract of one value".into()).into()),
        }
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef, DataFusionError> {
        let kinds: Vec<DataType> = arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = arguments.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(EPOCH, self.return_type(&kinds)?, nullable)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        let kind = arguments.return_field.data_type().clone();
        match arguments.args.as_slice() {
            [ColumnarValue::Array(values)] => epoch(values, &kind).map(ColumnarValue::Array),
            [ColumnarValue::Scalar(value)] => {
                let seconds = epoch(&value.to_array()?, &kind)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&seconds, 0)?))
            }
            _ => Err(Error::Bug("extract of one value".into()).into()),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Span {
    signature: Signature,
}

impl ScalarUDFImpl for Span {
    fn name(&self) -> &str {
        SPAN
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType, DataFusionError> {
        match arguments {
            [DataType::Duration(_)] => Ok(DataType::Interval(IntervalUnit::MonthDayNano)),
            [other] => Ok(other.clone()),
            _ => Err(Error::Bug("a part of one value".into()).into()),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        match arguments.args.into_iter().next() {
            Some(ColumnarValue::Array(values)) => span(&values).map(ColumnarValue::Array),
            Some(ColumnarValue::Scalar(value)) => {
                let spans = span(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&spans, 0)?))
            }
            None => Err(Error::Bug("a part of one value".into()).into()),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct MicrosecondsOfMinute {
    signature: Signature,
}

impl ScalarUDFImpl for MicrosecondsOfMinute {
    fn name(&self) -> &str {
        MICROSECONDS_OF_MINUTE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType, DataFusionError> {
        match arguments {
            [DataType::Timestamp(..) | DataType::Time64(_) | DataType::Interval(_) | DataType::Null] => {
                Ok(DataType::Int64)
            }
            [other] => Err(Error::Sql(format!("seconds are no part of {}", types::result_name(other))).into()),
            _ => Err(Error::Bug("a part of one value".into()).into()),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        match arguments.args.into_iter().next() {
            Some(ColumnarValue::Array(values)) => microseconds_of_minute(&values).map(ColumnarValue::Array),
            Some(ColumnarValue::Scalar(value)) => {
                let microseconds = microseconds_of_minute(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&microseconds, 0)?))
            }
            None => Err(Error::Bug("a part of one value".into()).into()),
        }
    }
}

fn microseconds_of_minute(values: &ArrayRef) -> Result<ArrayRef, DataFusionError> {
    let to = |kind: DataType| datafusion::arrow::compute::cast(values, &kind);
    let of_minute = |microseconds: i64| microseconds.rem_euclid(60_000_000);
    let microseconds: PrimitiveArray<Int64Type> = match values.data_type() {
        DataType::Timestamp(_, zone) => to(DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?
            .as_primitive::<TimestampMicrosecondType>()
            .unary(of_minute),
        DataType::Time64(_) => {
            to(DataType::Time64(TimeUnit::Microsecond))?.as_primitive::<Time64MicrosecondType>().unary(of_minute)
        }
        // Of an interval that goes backwards they do.
        DataType::Interval(_) => to(DataType::Interval(IntervalUnit::MonthDayNano))?
            .as_primitive::<IntervalMonthDayNanoType>()
            .unary(|interval| interval.nanoseconds / 1000 % 60_000_000),
        _ => return Ok(datafusion::arrow::array::new_null_array(&DataType::Int64, values.len())),
    };
    Ok(Arc::new(microseconds))
}

fn span(values: &ArrayRef) -> Result<ArrayRef, DataFusionError> {
    if !matches!(values.data_type(), DataType::Duration(_)) {
        return Ok(values.clone());
    }
    let microseconds = datafusion::arrow::compute::cast(values, &DataType::Duration(TimeUnit::Microsecond))?;
    let day = (SECONDS_PER_DAY * MICROSECONDS) as i64;
    let spans: PrimitiveArray<IntervalMonthDayNanoType> =
        microseconds.as_primitive::<DurationMicrosecondType>().unary(|microseconds| {
            // Of both a sign: a day has 86,400 seconds between instants.
            IntervalMonthDayNano::new(0, (microseconds / day) as i32, microseconds % day * 1000)
        });
    Ok(Arc::new(spans))
}

fn epoch(values: &ArrayRef, kind: &DataType) -> Result<ArrayRef, DataFusionError> {
    let to = |kind: DataType| datafusion::arrow::compute::cast(values, &kind);
    let wide = i128::from;
    let seconds: Decimal128Array = match values.data_type() {
        DataType::Date32 => values.as_primitive::<Date32Type>().unary(|days| i128::from(days) * SECONDS_PER_DAY),
        DataType::Timestamp(_, zone) => to(DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?
            .as_primitive::<TimestampMicrosecondType>()
            .unary(wide),
        DataType::Time64(_) => {
            to(DataType::Time64(TimeUnit::Microsecond))?.as_primitive::<Time64MicrosecondType>().unary(wide)
        }
        DataType::Duration(_) => {
            to(DataType::Duration(TimeUnit::Microsecond))?.as_primitive::<DurationMicrosecondType>().unary(wide)
        }
        DataType::Interval(_) => to(DataType::Interval(IntervalUnit::MonthDayNano))?
            .as_primitive::<IntervalMonthDayNanoType>()
            .unary(microseconds_of),
        _ => return Ok(datafusion::arrow::array::new_null_array(kind, values.len())),
    };
    Ok(Arc::new(seconds.with_data_type(kind.clone())))
}

/// A year has 365.25 days, a month outside of a year 30.
fn microseconds_of(interval: IntervalMonthDayNano) -> i128 {
    let (years, months) = (i128::from(interval.months / 12), i128::from(interval.months % 12));
    let days = i128::from(interval.days) + 30 * months;
    let seconds = days * SECONDS_PER_DAY + years * (SECONDS_PER_DAY * 1461 / 4);
    seconds * MICROSECONDS + i128::from(interval.nanoseconds.div_euclid(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_as_many_seconds_as_in_postgresql() {
        let of = |months, days, nanoseconds| microseconds_of(IntervalMonthDayNano::new(months, days, nanoseconds));
        assert_eq!(of(14, 3, 1_500_000_000), (31_557_600 + 2 * 2_592_000 + 259_200) * MICROSECONDS + 1_500_000);
        assert_eq!(of(-12, 0, 0), -31_557_600 * MICROSECONDS);
    }
}
