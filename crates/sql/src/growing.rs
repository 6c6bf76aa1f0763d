//! Functions whose answers may be far longer than what they are given: `repeat`, `lpad`, `rpad`, `replace`.
//!
//! The query library makes room for an answer without asking anybody, and where there is none the process ends: one short
//! statement, `repeat('x', 2000000000)`, is enough. So what an answer will take is counted before.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::DataFusionError;
use datafusion::functions::{string, unicode};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::scalar::ScalarValue;

use crate::error::Error;

/// Bytes that the answers of one call for all rows of a batch may have together.
const BYTES_MAX: u64 = 256 << 20;

/// All of them.
pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    let functions = [
        (string::repeat(), Growth::Times),
        (unicode::lpad(), Growth::UpTo),
        (unicode::rpad(), Growth::UpTo),
        (string::replace(), Growth::Instead),
    ];
    functions.map(|(inner, growth)| Arc::new(ScalarUDF::new_from_impl(Growing { inner, growth }))).to_vec()
}

/// How an answer grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Growth {
    /// A text so many times.
    Times,
    /// A text, filled up to so many letters.
    UpTo,
    /// A text with another in place of a third wherever that stands.
    Instead,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Growing {
    inner: Arc<ScalarUDF>,
    growth: Growth,
}

impl ScalarUDFImpl for Growing {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType, DataFusionError> {
        self.inner.return_type(arguments)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef, DataFusionError> {
        self.inner.return_field_from_args(arguments)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        let constant = arguments.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { arguments.number_rows };
        if bytes(self.growth, &arguments.args, rows) > BYTES_MAX {
            let text = format!("{} would answer more than {} MiB at once", self.name(), BYTES_MAX >> 20);
            return Err(Error::Memory(text).into());
        }
        self.inner
            .invoke_with_args(ScalarFunctionArgs { args: up_to_something(self.growth, arguments.args)?, ..arguments })
    }
}

/// Fewer letters than none are none: the library takes them for very many.
fn up_to_something(growth: Growth, mut arguments: Vec<ColumnarValue>) -> Result<Vec<ColumnarValue>, DataFusionError> {
    let [_, letters, ..] = &mut arguments[..] else { return Ok(arguments) };
    if growth == Growth::UpTo {
        *letters = match letters.cast_to(&DataType::Int64, None)? {
            ColumnarValue::Scalar(ScalarValue::Int64(letters)) => {
                ColumnarValue::Scalar(ScalarValue::Int64(letters.map(|letters| letters.max(0))))
            }
            ColumnarValue::Array(letters) => {
                let letters = letters.as_primitive::<Int64Type>().unary::<_, Int64Type>(|letters| letters.max(0));
                ColumnarValue::Array(Arc::new(letters))
            }
            other => other,
        };
    }
    Ok(arguments)
}

/// Bytes of all answers, or more.
fn bytes(growth: Growth, arguments: &[ColumnarValue], rows: usize) -> u64 {
    let length = |text: &str| text.len() as u64;
    let total = |each: &dyn Fn(usize) -> u64| (0..rows).fold(0_u64, |sum, row| sum.saturating_add(each(row)));
    match (growth, arguments) {
        (Growth::Times, [text, times]) => {
            let (text, times) = (texts(text), numbers(times));
            total(&|row| length(text(row)).saturating_mul(times(row)))
        }
        (Growth::UpTo, [text, letters, filling @ ..]) => {
            let (text, letters, filling) = (texts(text), numbers(letters), filling.first().map(texts));
            let wide = |row| filling.as_ref().is_some_and(|filling| !filling(row).is_ascii());
            total(&|row| letters(row).saturating_mul(if wide(row) { 4 } else { 1 }).saturating_add(length(text(row))))
        }
        (Growth::Instead, [text, from, to]) => {
            let (text, from, to) = (texts(text), texts(from), texts(to));
            let most = |row| length(text(row)).checked_div(length(from(row))).unwrap_or(0);
            let with = |row, times: u64| length(text(row)).saturating_add(times.saturating_mul(length(to(row))));
            // Only what could be too much is looked through.
            match total(&|row| with(row, most(row))) {
                0..=BYTES_MAX => 0,
                _ => total(&|row| {
                    with(row, if most(row) == 0 { 0 } else { text(row).matches(from(row)).count() as u64 })
                }),
            }
        }
        _ => 0,
    }
}

/// The texts of an argument by row; NULL is an empty one.
fn texts<'a>(argument: &'a ColumnarValue) -> Box<dyn Fn(usize) -> &'a str + 'a> {
    match argument {
        ColumnarValue::Scalar(value) => {
            let text = value.try_as_str().flatten().unwrap_or_default();
            Box::new(move |_| text)
        }
        ColumnarValue::Array(array) => match array.data_type() {
            DataType::Utf8 => {
                let array = array.as_string::<i32>();
                Box::new(|row| if array.is_null(row) { "" } else { array.value(row) })
            }
            DataType::LargeUtf8 => {
                let array = array.as_string::<i64>();
                Box::new(|row| if array.is_null(row) { "" } else { array.value(row) })
            }
            DataType::Utf8View => {
                let array = array.as_string_view();
                Box::new(|row| if array.is_null(row) { "" } else { array.value(row) })
            }
            _ => Box::new(|_| ""),
        },
    }
}

/// The numbers of an argument by row; NULL and negative ones are 0.
fn numbers<'a>(argument: &'a ColumnarValue) -> Box<dyn Fn(usize) -> u64 + 'a> {
    match argument {
        ColumnarValue::Scalar(value) => {
            let number = match value {
                ScalarValue::Int64(Some(number)) => u64::try_from(*number).unwrap_or(0),
                _ => 0,
            };
            Box::new(move |_| number)
        }
        ColumnarValue::Array(array) => match array.as_primitive_opt::<Int64Type>() {
            Some(array) => {
                Box::new(|row| if array.is_null(row) { 0 } else { u64::try_from(array.value(row)).unwrap_or(0) })
            }
            None => Box::new(|_| 0),
        },
    }
}
