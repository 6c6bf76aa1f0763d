//! Qualities as OPC Data Access writes them, and the functions over them.
//!
//! ```text
//! bit 15 ... 8 | 7 6       | 5 ... 0
//! the vendor's | band      | why
//!              | 11 good   |            192 to 255
//!              | 01 uncertain            64 to 127
//!              | 00 bad                   0 to 63
//!              | 10 not defined: counts as bad
//! ```
//!
//! NULL says nothing against a sample: it is good.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;

use crate::error::Error;
use crate::types;

/// How much a value can be trusted; the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Band {
    Bad,
    Uncertain,
    Good,
}

/// The band of a quality.
pub(crate) fn band(quality: i64) -> Band {
    match quality & 0xC0 {
        0xC0 => Band::Good,
        0x40 => Band::Uncertain,
        _ => Band::Bad,
    }
}

/// Whether a quality, or none, is good.
pub(crate) fn is_good(quality: Option<i64>) -> bool {
    quality.is_none_or(|quality| band(quality) == Band::Good)
}

/// Qualities in order, the worst first: by band, then by what OPC says why, then by what the vendor says.
pub(crate) fn rank(quality: i64) -> (Band, i64, i64) {
    (band(quality), quality & 0xFF, quality)
}

/// The worse of two qualities of which either may be missing.
pub(crate) fn worse(left: Option<i64>, right: Option<i64>) -> Option<i64> {
    left.into_iter().chain(right).min_by_key(|quality| rank(*quality))
}

/// The functions of one row.
pub(crate) fn scalars() -> Vec<Arc<ScalarUDF>> {
    vec![Arc::new(ScalarUDF::new_from_impl(IsGood { signature: Signature::any(1, Volatility::Immutable) }))]
}

/// The aggregates.
pub(crate) fn aggregates() -> Vec<Arc<AggregateUDF>> {
    let aggregate = |which| Aggregate { which, signature: Signature::any(1, Volatility::Immutable) };
    [Which::PercentGood, Which::Worst]
        .map(|which| Arc::new(AggregateUDF::new_from_impl(aggregate(which))))
        .into_iter()
        .collect()
}

/// Refuses what is no quality.
fn checked(name: &str, arguments: &[DataType]) -> Result<(), DataFusionError> {
    match arguments {
        [kind] if kind.is_integer() || kind.is_null() => Ok(()),
        [kind] => {
            let kind = types::result_name(kind);
            Err(Error::Sql(format!("{name} takes a quality, a SMALLINT from 0 to 255, and this is {kind}")).into())
        }
        _ => Err(Error::Sql(format!("{name} takes one quality")).into()),
    }
}

fn integers(array: &ArrayRef) -> Result<Int64Array, DataFusionError> {
    Ok(cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

/// `is_good(quality)`: never NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
struct IsGood {
    signature: Signature,
}

impl ScalarUDFImpl for IsGood {
    fn name(&self) -> &str {
        "is_good"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType, DataFusionError> {
        checked(self.name(), arguments)?;
        Ok(DataType::Boolean)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef, DataFusionError> {
        let kinds: Vec<DataType> = arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        Ok(Arc::new(Field::new(self.name(), self.return_type(&kinds)?, false)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let qualities = arrays.first().ok_or_else(|| Error::Bug("is_good".into()))?;
        let good: BooleanArray = integers(qualities)?.iter().map(|quality| Some(is_good(quality))).collect();
        match arguments.args.first() {
            Some(ColumnarValue::Scalar(_)) => Ok(ColumnarValue::Scalar(ScalarValue::Boolean(Some(good.value(0))))),
            _ => Ok(ColumnarValue::Array(Arc::new(good))),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Which {
    PercentGood,
    Worst,
}

/// `percent_good(quality)`: of all rows, NULL among them. `worst_quality(quality)`: of those that are not NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Aggregate {
    which: Which,
    signature: Signature,
}

impl AggregateUDFImpl for Aggregate {
    fn name(&self) -> &str {
        match self.which {
            Which::PercentGood => "percent_good",
            Which::Worst => "worst_quality",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType, DataFusionError> {
        checked(self.name(), arguments)?;
        Ok(match self.which {
            Which::PercentGood => DataType::Float64,
            Which::Worst => DataType::Int16,
        })
    }

    fn accumulator(&self, _arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>, DataFusionError> {
        Ok(Box::new(Qualities { which: self.which, good: 0, rows: 0, worst: None }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>, DataFusionError> {
        let field = |name: &str| Arc::new(Field::new(format!("{}[{name}]", arguments.name), DataType::Int64, true));
        Ok(vec![field("good"), field("rows"), field("worst")])
    }
}

#[derive(Debug)]
struct Qualities {
    which: Which,
    good: i64,
    rows: i64,
    worst: Option<i64>,
}

impl Qualities {
    fn see(&mut self, quality: i64) {
        self.worst = worse(self.worst, Some(quality));
    }
}

impl Accumulator for Qualities {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<(), DataFusionError> {
        let qualities = integers(values.first().ok_or_else(|| Error::Bug("a quality".into()))?)?;
        self.rows += qualities.len() as i64;
        for quality in &qualities {
            self.good += i64::from(is_good(quality));
            quality.into_iter().for_each(|quality| self.see(quality));
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<(), DataFusionError> {
        let [good, rows, worst] = states else { return Err(Error::Bug("states of qualities".into()).into()) };
        self.good += integers(good)?.iter().flatten().sum::<i64>();
        self.rows += integers(rows)?.iter().flatten().sum::<i64>();
        integers(worst)?.iter().flatten().for_each(|quality| self.see(quality));
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>, DataFusionError> {
        Ok([Some(self.good), Some(self.rows), self.worst].map(ScalarValue::Int64).into())
    }

    fn evaluate(&mut self) -> Result<ScalarValue, DataFusionError> {
        Ok(match self.which {
            Which::PercentGood => {
                let percent = (self.rows > 0).then(|| 100.0 * self.good as f64 / self.rows as f64);
                ScalarValue::Float64(percent)
            }
            Which::Worst => ScalarValue::Int16(self.worst.map(stored)),
        })
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// A quality as SMALLINT; the low byte of what is no SMALLINT.
pub(crate) fn stored(quality: i64) -> i16 {
    i16::try_from(quality).unwrap_or((quality & 0xFF) as i16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_opcs() {
        for quality in 0..256 {
            let expected = match quality {
                192..=255 => Band::Good,
                64..=127 => Band::Uncertain,
                _ => Band::Bad,
            };
            assert_eq!(band(quality), expected, "{quality}");
            assert_eq!(band(quality + 0x1200), expected, "the vendor's byte says nothing");
            assert_eq!(band(quality - 0x8000), expected);
        }
        assert!(is_good(None));
    }

    #[test]
    fn a_quality_that_is_not_defined_is_worse_than_uncertain() {
        assert_eq!(worse(Some(130), Some(64)), Some(130));
        assert_eq!(worse(Some(0), Some(130)), Some(0));
        assert_eq!(worse(None, Some(200)), Some(200));
        assert_eq!(worse(None, None), None);
    }
}
