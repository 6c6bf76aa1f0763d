//! Quotients of NUMERICs, rounded half away from zero as in PostgreSQL. The library cuts them, and gives up where the dividend
//! has no room for the digits of the answer.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Decimal128Builder};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, DecimalType, Field, FieldRef, i256,
};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;

use crate::error::Error;

static QUOTIENT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(2, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Quotient { signature }))
});

/// `left / right` of two NUMERICs; of the type that the library has for it.
pub(crate) fn quotient(left: Expr, right: Expr) -> Expr {
    QUOTIENT.call(vec![left, right])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Quotient {
    signature: Signature,
}

impl ScalarUDFImpl for Quotient {
    fn name(&self) -> &str {
        "quotient"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Four digits behind the point more than the dividend has.
    fn return_type(&self, arguments: &[DataType]) -> Result<DataType, DataFusionError> {
        let [DataType::Decimal128(precision, scale), DataType::Decimal128(_, divisor_scale)] = arguments else {
            return Err(Error::Bug("a quotient of what is no NUMERIC".into()).into());
        };
        let answer_scale = (scale + 4).min(DECIMAL128_MAX_PRECISION as i8);
        let digits = i16::from(*precision) - i16::from(*scale) + i16::from(*divisor_scale) + i16::from(answer_scale);
        let digits = digits.clamp(1, i16::from(DECIMAL128_MAX_PRECISION));
        Ok(DataType::Decimal128(digits as u8, answer_scale))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef, DataFusionError> {
        let kinds: Vec<DataType> = arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = arguments.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&kinds)?, nullable)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        let constant = arguments.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let [left, right] = arrays.as_slice() else {
            return Err(Error::Bug("a quotient of other than two numbers".into()).into());
        };
        let kind = self.return_type(&[left.data_type().clone(), right.data_type().clone()])?;
        let quotients: ArrayRef = Arc::new(quotients(left.as_primitive(), right.as_primitive(), &kind)?);
        Ok(match constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&quotients, 0)?),
            false => ColumnarValue::Array(quotients),
        })
    }
}

fn quotients(
    left: &Decimal128Array,
    right: &Decimal128Array,
    kind: &DataType,
) -> Result<Decimal128Array, DataFusionError> {
    let DataType::Decimal128(precision, scale) = *kind else {
        return Err(Error::Bug("a quotient that is no NUMERIC".into()).into());
    };
    let zeros = i16::from(scale) - i16::from(left.scale()) + i16::from(right.scale());
    let power = i256::from_i128(10).checked_pow(u32::try_from(zeros).unwrap_or(0)).ok_or(Error::OutOfRange)?;
    let mut quotients = Decimal128Builder::with_capacity(left.len());
    for row in 0..left.len() {
        if left.is_null(row) || right.is_null(row) {
            quotients.append_null();
            continue;
        }
        let answer = rounded(left.value(row), power, right.value(row))?;
        Decimal128Type::validate_decimal_precision(answer, precision, scale).map_err(|_| Error::OutOfRange)?;
        quotients.append_value(answer);
    }
    Ok(quotients.finish().with_data_type(kind.clone()))
}

/// `left * power / right` to the nearest whole number.
fn rounded(left: i128, power: i256, right: i128) -> Result<i128, Error> {
    if right == 0 {
        return Err(Error::DivisionByZero);
    }
    // Most numbers have room for their zeros in a machine's own integers, which divide in a fraction of the time.
    if let Some(dividend) = power.to_i128().and_then(|power| left.checked_mul(power)) {
        let (answer, rest) = (dividend.checked_div(right).ok_or(Error::OutOfRange)?, dividend % right);
        let is_half = rest.unsigned_abs() >= right.unsigned_abs() - rest.unsigned_abs();
        let away = if (dividend < 0) == (right < 0) { 1 } else { -1 };
        return answer.checked_add(if is_half { away } else { 0 }).ok_or(Error::OutOfRange);
    }
    let dividend = i256::from_i128(left).checked_mul(power).ok_or(Error::OutOfRange)?;
    let divisor = i256::from_i128(right);
    let (answer, rest) = (dividend.wrapping_div(divisor), dividend.wrapping_rem(divisor).wrapping_abs());
    let is_half = rest >= divisor.wrapping_abs().wrapping_sub(rest);
    let away = if dividend.is_negative() == divisor.is_negative() { i256::ONE } else { i256::MINUS_ONE };
    let answer = if is_half { answer.wrapping_add(away) } else { answer };
    answer.to_i128().ok_or(Error::OutOfRange)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_away_from_zero_however_many_digits_there_are() {
        let power = |zeros: u32| i256::from_i128(10).checked_pow(zeros).expect("fits");
        for (left, zeros, right, answer) in [
            (2, 1, 3, 7),
            (-2, 1, 3, -7),
            (1, 0, 2, 1),
            (-1, 0, 2, -1),
            (1, 0, -2, -1),
            (1, 0, 3, 0),
            (10_i128.pow(37), 20, 2 * 10_i128.pow(20), 5 * 10_i128.pow(36)),
            (-(10_i128.pow(37)), 20, 3 * 10_i128.pow(37), -33_333_333_333_333_333_333),
        ] {
            assert_eq!(rounded(left, power(zeros), right).ok(), Some(answer), "{left}e{zeros} / {right}");
        }
        assert!(matches!(rounded(1, power(0), 0), Err(Error::DivisionByZero)));
        assert!(matches!(rounded(10_i128.pow(38), power(38), 1), Err(Error::OutOfRange)));
        assert!(matches!(rounded(i128::MIN, power(0), -1), Err(Error::OutOfRange)));
    }
}
