//! An interval times a number, and by a number: `n * INTERVAL '1 hour'`, which the query library does not have.
//!
//! As in PostgreSQL (`interval_mul`) months and days stay whole: what is left of a month counts as days, 30 a month, and what is left of a
//! day as time.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::error::Error;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const DAYS_A_MONTH: f64 = 30.0;
const NANOSECONDS_A_DAY: f64 = 86_400e9;

/// An interval and what it is multiplied by, or divided by.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Times {
    signature: Signature,
    divides: bool,
}

static TIMES: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function(false));
static DIVIDED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function(true));

fn function(divides: bool) -> Arc<ScalarUDF> {
    let signature = Signature::any(2, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Times { signature, divides }))
}

/// What such an operator means; `None` where no side is an interval by its looks: no column is one.
pub(crate) fn planned(left: &Expr, op: &BinaryOperator, right: &Expr) -> Option<Expr> {
    let (interval, number, function) = match op {
        BinaryOperator::Multiply if is_interval(left) => (left, right, &TIMES),
        BinaryOperator::Multiply if is_interval(right) => (right, left, &TIMES),
        BinaryOperator::Divide if is_interval(left) => (left, right, &DIVIDED),
        _ => return None,
    };
    if is_interval(number) {
        return None;
    }
    Some(Expr::ScalarFunction(ScalarFunction::new_udf((*function).clone(), vec![interval.clone(), number.clone()])))
}

fn is_interval(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => matches!(value.data_type(), DataType::Interval(_)),
        Expr::Cast(Cast { field, .. }) => matches!(field.data_type(), DataType::Interval(_)),
        Expr::Negative(inner) => is_interval(inner),
        Expr::ScalarFunction(ScalarFunction { func, .. }) => Arc::ptr_eq(func, &TIMES) || Arc::ptr_eq(func, &DIVIDED),
        _ => false,
    }
}

impl ScalarUDFImpl for Times {
    fn name(&self) -> &str {
        if self.divides { "interval_divided" } else { "interval_times" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType, DataFusionError> {
        match arguments {
            [_, number] if number.is_numeric() || number.is_null() => Ok(INTERVAL),
            _ => Err(Error::Sql("an interval is multiplied and divided by numbers".into()).into()),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        let is_constant = arguments.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let [intervals, numbers] = &arrays[..] else {
            return Err(Error::Bug("an interval and a number".into()).into());
        };
        let result = self.rows(&cast(intervals, &INTERVAL)?, &cast(numbers, &DataType::Float64)?)?;
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?),
            false => ColumnarValue::Array(result),
        })
    }
}

impl Times {
    fn rows(&self, intervals: &ArrayRef, numbers: &ArrayRef) -> Result<ArrayRef, DataFusionError> {
        let (intervals, numbers) =
            (intervals.as_primitive::<IntervalMonthDayNanoType>(), numbers.as_primitive::<Float64Type>());
        let rows = intervals.iter().zip(numbers).map(|(interval, number)| {
            let (Some(interval), Some(number)) = (interval, number) else { return Ok(None) };
            if self.divides && number == 0.0 {
                return Err(Error::DivisionByZero);
            }
            self.one(interval, number).map(Some).ok_or_else(|| Error::Overflow("an interval is out of range".into()))
        });
        Ok(Arc::new(rows.collect::<Result<IntervalMonthDayNanoArray, Error>>()?))
    }

    /// None out of range.
    fn one(&self, interval: IntervalMonthDayNano, number: f64) -> Option<IntervalMonthDayNano> {
        let by = |of: f64| if self.divides { of / number } else { of * number };
        let (months, days) = (by(interval.months.into()), by(interval.days.into()));
        // To the microsecond, so that a third of a month three times is one.
        let over = settled((months - months.trunc()) * DAYS_A_MONTH);
        let rest = settled((days - days.trunc() + over - over.trunc()) * NANOSECONDS_A_DAY / 1e9) * 1e9;
        let more = (rest / NANOSECONDS_A_DAY).trunc();
        let nanoseconds = by(interval.nanoseconds as f64) + rest - more * NANOSECONDS_A_DAY;
        Some(IntervalMonthDayNano::new(
            whole(months.trunc(), i32::MIN.into(), i32::MAX.into())? as i32,
            whole(days.trunc() + over.trunc() + more, i32::MIN.into(), i32::MAX.into())? as i32,
            whole((nanoseconds / 1000.0).round_ties_even() * 1000.0, i64::MIN as f64, i64::MAX as f64)?,
        ))
    }
}

/// To six digits behind the point.
fn settled(number: f64) -> f64 {
    (number * 1e6).round_ties_even() / 1e6
}

fn whole(number: f64, least: f64, greatest: f64) -> Option<i64> {
    (number >= least && number <= greatest).then_some(number as i64)
}
