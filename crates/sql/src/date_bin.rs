//! The function `date_bin(width, time [, origin])`.
//!
//! The query library's own counts in nanoseconds and answers NULL where they do not reach, before 1677 and after 2262, and
//! tells plans all the same that its answers are in the order of the times: what was sorted by them was not. This one counts
//! in the unit of the times, and what no timestamp says is an error. So its answers are in the order of the times.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{
    ArrowTimestampType, DataType, Field, FieldRef, Int64Type, IntervalMonthDayNano, IntervalUnit, TimeUnit,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;

use crate::bin::Bin;
use crate::error::Error;
use crate::historian::Tick;

/// The function's name.
pub(crate) const NAME: &str = "date_bin";

#[derive(Debug, PartialEq, Eq, Hash)]
struct DateBin {
    signature: Signature,
}

/// The function.
pub(crate) fn function() -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(DateBin { signature }))
}

/// What a time that no timestamp says is answered with.
pub(crate) fn out_of_range() -> Error {
    Error::Sql("date_bin: a bucket begins before all timestamps, or a month of it is none of the calendar".into())
}

fn wrong() -> DataFusionError {
    Error::Sql("date_bin takes an interval, a timestamp, and perhaps another one at which a bucket begins".into())
        .into()
}

/// The type in which times are taken, if they are any.
fn taken(kind: &DataType) -> Option<DataType> {
    Some(match kind {
        DataType::Timestamp(TimeUnit::Nanosecond, _) | DataType::Time32(_) | DataType::Time64(_) => kind.clone(),
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::Date32 | DataType::Date64 | DataType::Null => DataType::Timestamp(TimeUnit::Microsecond, None),
        kind if is_text(kind) => DataType::Timestamp(TimeUnit::Microsecond, None),
        _ => return None,
    })
}

fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

impl ScalarUDFImpl for DateBin {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>, DataFusionError> {
        let [width, time, origin @ ..] = kinds else { return Err(wrong()) };
        let is_width = is_text(width) || matches!(width, DataType::Interval(_) | DataType::Null);
        let time = taken(time).filter(|_| is_width).ok_or_else(wrong)?;
        let fits = |origin: &DataType| match &time {
            DataType::Timestamp(..) => taken(origin).is_some_and(|kind| matches!(kind, DataType::Timestamp(..))),
            time => origin == time || is_text(origin) || origin.is_null(),
        };
        if origin.len() > 1 || !origin.iter().all(fits) {
            return Err(wrong());
        }
        let mut coerced = vec![DataType::Interval(IntervalUnit::MonthDayNano), time.clone()];
        coerced.extend(origin.iter().map(|_| time.clone()));
        Ok(coerced)
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType, DataFusionError> {
        kinds.get(1).cloned().ok_or_else(wrong)
    }

    /// NULL comes of NULL alone.
    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef, DataFusionError> {
        let kinds: Vec<DataType> = arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = arguments.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(NAME, self.return_type(&kinds)?, nullable)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        let [width, time, origin @ ..] = arguments.args.as_slice() else { return Err(wrong()) };
        let kind = time.data_type();
        if !matches!(kind, DataType::Timestamp(..)) {
            // Times of a day have no ends that nanoseconds do not reach.
            return datafusion::functions::datetime::date_bin().invoke_with_args(arguments);
        }
        let (Some(width), Some(origin)) = (width_of(width)?, origin_of(origin.first())?) else {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from(kind)?));
        };
        let tick = Tick::of(&kind).ok_or_else(wrong)?;
        let bin = Bin::new(width, origin, tick)?;
        let binned = |times: &ArrayRef| match tick.unit {
            TimeUnit::Nanosecond => each::<TimestampNanosecondType>(times, &bin),
            _ => each::<TimestampMicrosecondType>(times, &bin),
        };
        Ok(match time {
            ColumnarValue::Array(times) => ColumnarValue::Array(binned(times)?),
            ColumnarValue::Scalar(time) => {
                ColumnarValue::Scalar(ScalarValue::try_from_array(&binned(&time.to_array()?)?, 0)?)
            }
        })
    }

    /// Of a constant width and origin, in the order of the times.
    fn output_ordering(&self, arguments: &[ExprProperties]) -> Result<SortProperties, DataFusionError> {
        let [width, time, origin @ ..] = arguments else { return Err(wrong()) };
        let constant = |argument: &ExprProperties| argument.sort_properties == SortProperties::Singleton;
        let ordered = constant(width) && origin.iter().all(constant);
        Ok(if ordered { time.sort_properties } else { SortProperties::Unordered })
    }
}

fn each<T: ArrowTimestampType>(times: &ArrayRef, bin: &Bin) -> Result<ArrayRef, DataFusionError> {
    let times = times.as_primitive::<T>();
    let begin = |time| bin.of(time).ok_or_else(|| ArrowError::from_external_error(Box::new(out_of_range())));
    let binned = times.try_unary::<_, T, ArrowError>(begin).map_err(|_| DataFusionError::from(out_of_range()))?;
    Ok(Arc::new(binned.with_timezone_opt(times.timezone())))
}

fn constant<'a>(argument: &'a ColumnarValue, what: &str) -> Result<&'a ScalarValue, DataFusionError> {
    match argument {
        ColumnarValue::Scalar(value) => Ok(value),
        ColumnarValue::Array(_) => {
            Err(Error::NotSupported(format!("date_bin with {what} that differs from row to row")).into())
        }
    }
}

fn width_of(argument: &ColumnarValue) -> Result<Option<IntervalMonthDayNano>, DataFusionError> {
    match constant(argument, "a width")? {
        ScalarValue::IntervalMonthDayNano(width) => Ok(*width),
        _ => Err(wrong()),
    }
}

/// The origin in the unit of the times: the epoch, where none is said.
fn origin_of(argument: Option<&ColumnarValue>) -> Result<Option<i64>, DataFusionError> {
    let Some(argument) = argument else { return Ok(Some(0)) };
    let ticks = constant(argument, "an origin")?.cast_to(&DataType::Int64)?.to_array()?;
    Ok(ticks.as_primitive::<Int64Type>().iter().next().flatten())
}
