//! How intervals compare: by how long they are, a month for 30 days and a day for 24 hours, as in PostgreSQL (`interval_cmp`).
//!
//! The query library compares months, then days, then what is left; and a difference of two times is hours alone to it, so that 60 days were
//! no more than `INTERVAL '30 days'`.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, AsArray, Decimal128Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
/// Nanoseconds: 2^31 months have 25 digits.
const LENGTH: DataType = DataType::Decimal128(38, 0);
const DAYS_A_MONTH: i128 = 30;
const NANOSECONDS_A_DAY: i128 = 86_400_000_000_000;

/// Whether values of a type are stretches of time.
pub(crate) fn is_interval(kind: &DataType) -> bool {
    matches!(kind, DataType::Interval(_) | DataType::Duration(_))
}

/// How long an interval is.
pub(crate) fn length(interval: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&FUNCTION), vec![interval]))
}

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(Length { signature: Signature::any(1, Volatility::Immutable) }))
});

#[derive(Debug, PartialEq, Eq, Hash)]
struct Length {
    signature: Signature,
}

impl ScalarUDFImpl for Length {
    fn name(&self) -> &str {
        "interval_length"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType, DataFusionError> {
        Ok(LENGTH)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let intervals = cast(&arrays[0], &INTERVAL)?;
        let lengths = intervals.as_primitive::<IntervalMonthDayNanoType>().iter().map(|interval| {
            interval.map(|interval| {
                let days = i128::from(interval.months) * DAYS_A_MONTH + i128::from(interval.days);
                days * NANOSECONDS_A_DAY + i128::from(interval.nanoseconds)
            })
        });
        let lengths: ArrayRef = Arc::new(lengths.collect::<Decimal128Array>().with_data_type(LENGTH));
        Ok(ColumnarValue::Array(lengths))
    }
}
