//! Functions that queries can call (or are rewritten to call) beyond those of the query library.

use std::sync::{Arc, LazyLock};

use counterfoil_relation::{Type, Value as Stored};
use datafusion::arrow::array::temporal_conversions::as_datetime_with_timezone;
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewBuilder, Decimal128Array, Float64Array, Int32Array, PrimitiveArray,
    StringViewArray, StringViewBuilder,
};
use datafusion::arrow::compute::CastOptions;
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Field, FieldRef, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType,
    TimestampNanosecondType,
};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;

use crate::assign::{self, Misfit};
use crate::error::Error;
use crate::text;
use crate::types;
use crate::value::{parse, to_microseconds};

/// The function that casts to TEXT are rewritten to.
pub(crate) const TO_TEXT: &str = "__counterfoil_text";
/// The function that casts to UUID are rewritten to.
pub(crate) const TO_UUID: &str = "__counterfoil_uuid";
/// The function that casts to BYTEA are rewritten to.
pub(crate) const TO_BYTEA: &str = "__counterfoil_bytea";

/// The function that casts to NUMERIC without digits are rewritten to.
pub(crate) const TO_NUMERIC: &str = "__counterfoil_numeric";

/// Whom everything belongs to.
pub(crate) const USER: &str = "owner";

/// The function that `AT TIME ZONE` is rewritten to.
pub(crate) const AT_ZONE: &str = "__counterfoil_at_zone";

/// Integer arithmetic that answers an error where it would overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Checked {
    /// +
    Add,
    /// -
    Subtract,
    /// *
    Multiply,
    /// / of floating-point numbers: by zero it is an error.
    Divide,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What {
    Text,
    Uuid,
    Bytea,
    Numeric,
    Letter,
    RoundEven,
    AddDays,
    SubtractDays,
    Checked(Checked),
    Double,
    Real,
    /// NUMERIC of so many digits, and so many of them behind the point.
    Digits(u8, i8),
    Microseconds,
    TypeOf,
    AtZone,
    Length,
    OctetLength,
    Fixed(&'static str),
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Builtin {
    name: &'static str,
    aliases: Vec<String>,
    what: What,
    signature: Signature,
}

impl Builtin {
    fn function(name: &'static str, what: What, arguments: usize) -> Arc<ScalarUDF> {
        let signature = match arguments {
            0 => Signature::nullary(Volatility::Stable),
            count => Signature::any(count, Volatility::Immutable),
        };
        Arc::new(ScalarUDF::new_from_impl(Builtin { name, aliases: Vec::new(), what, signature }))
    }
}

static ROUND_EVEN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Builtin::function("rint", What::RoundEven, 1));
static ADD_DAYS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Builtin::function("add_days", What::AddDays, 2));
static SUBTRACT_DAYS: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Builtin::function("subtract_days", What::SubtractDays, 2));
static TEXT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Builtin::function(TO_TEXT, What::Text, 1));
static UUID: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Builtin::function(TO_UUID, What::Uuid, 1));
static ADD: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Builtin::function("plus", What::Checked(Checked::Add), 2));
static SUBTRACT: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Builtin::function("minus", What::Checked(Checked::Subtract), 2));
static MULTIPLY: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Builtin::function("times", What::Checked(Checked::Multiply), 2));

static DOUBLE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Builtin::function("as_double", What::Double, 1));
static REAL: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Builtin::function("as_real", What::Real, 1));
static MICROSECONDS: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Builtin::function("as_microseconds", What::Microseconds, 1));
static DIVIDE: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Builtin::function("divide", What::Checked(Checked::Divide), 2));

/// All functions that a name can call.
pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    let random = datafusion::functions::string::uuid();
    let random = Arc::new(random.as_ref().clone().with_aliases(["gen_random_uuid"]));
    vec![
        random,
        crate::date_bin::function(),
        Builtin::function(TO_TEXT, What::Text, 1),
        Builtin::function(TO_UUID, What::Uuid, 1),
        Builtin::function(TO_BYTEA, What::Bytea, 1),
        Builtin::function(TO_NUMERIC, What::Numeric, 1),
        Builtin::function(AT_ZONE, What::AtZone, 2),
        Builtin::function("chr", What::Letter, 1),
        Builtin::function("length", What::Length, 1),
        Builtin::function("octet_length", What::OctetLength, 1),
        Builtin::function("pg_typeof", What::TypeOf, 1),
        Builtin::function("version", What::Fixed(crate::VERSION), 0),
        Builtin::function("current_database", What::Fixed(crate::CATALOG), 0),
        Builtin::function("current_catalog", What::Fixed(crate::CATALOG), 0),
        Builtin::function("current_schema", What::Fixed(crate::SCHEMA), 0),
        Builtin::function("current_user", What::Fixed(USER), 0),
        Builtin::function("session_user", What::Fixed(USER), 0),
    ]
}

/// `left op right`, checked.
pub(crate) fn checked(operation: Checked, left: Expr, right: Expr) -> Expr {
    let function = match operation {
        Checked::Add => &ADD,
        Checked::Subtract => &SUBTRACT,
        Checked::Multiply => &MULTIPLY,
        Checked::Divide => &DIVIDE,
    };
    // `call` would make a copy of the function, which `is_checked` would not know again.
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(function), vec![left, right]))
}

/// Whether an expression is integer arithmetic that is checked.
pub(crate) fn is_checked(expr: &Expr) -> bool {
    let Expr::ScalarFunction(call) = expr else { return false };
    [&ADD, &SUBTRACT, &MULTIPLY].into_iter().any(|function| Arc::ptr_eq(&call.func, function))
}

/// A floating-point number rounded to the nearest whole one, ties to even.
pub(crate) fn round_even(expr: Expr) -> Expr {
    ROUND_EVEN.call(vec![expr])
}

/// A text or a number as a floating-point number, which it has to come near; none for other types, which all do.
pub(crate) fn as_floating(value: &Expr, from: &DataType, to: &DataType) -> Option<Expr> {
    match (from, to) {
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, DataType::Float64) => {
            Some(DOUBLE.call(vec![value.clone()]))
        }
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Float64, DataType::Float32) => {
            Some(REAL.call(vec![value.clone()]))
        }
        _ => None,
    }
}

/// A text as a NUMERIC, in all the forms in which PostgreSQL reads one: the library knows no exponents. None for other types.
pub(crate) fn as_numeric(value: &Expr, from: &DataType, to: &DataType) -> Option<Expr> {
    match (from, to) {
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, DataType::Decimal128(precision, scale @ 0..)) => {
            Some(Builtin::function("as_numeric", What::Digits(*precision, *scale), 1).call(vec![value.clone()]))
        }
        _ => None,
    }
}

/// Times in nanoseconds to the nearest microsecond.
pub(crate) fn as_microseconds(times: Expr) -> Expr {
    MICROSECONDS.call(vec![times])
}

/// A value as psql shows it.
pub(crate) fn as_text(value: Expr) -> Expr {
    TEXT.call(vec![value])
}

/// A UUID, of a text that is one.
pub(crate) fn as_uuid(value: Expr) -> Expr {
    UUID.call(vec![value])
}

/// A date some days later or earlier.
pub(crate) fn add_days(date: Expr, days: Expr, minus: bool) -> Expr {
    let function = if minus { &SUBTRACT_DAYS } else { &ADD_DAYS };
    function.call(vec![date, days])
}

impl ScalarUDFImpl for Builtin {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType, DataFusionError> {
        Ok(match self.what {
            What::Letter | What::Text | What::Uuid | What::TypeOf | What::Fixed(_) => DataType::Utf8View,
            What::Bytea => DataType::BinaryView,
            What::Numeric => numeric_of(arguments.first().unwrap_or(&DataType::Null)),
            What::RoundEven | What::Double => DataType::Float64,
            What::Real => DataType::Float32,
            What::Digits(precision, scale) => DataType::Decimal128(precision, scale),
            What::Microseconds => match arguments {
                [DataType::Timestamp(_, zone)] => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
                _ => return Err(Error::Bug("microseconds of what is no time".into()).into()),
            },
            What::AddDays | What::SubtractDays => DataType::Date32,
            What::AtZone => zoned(arguments)?,
            What::Length | What::OctetLength => measured(self.name, arguments)?,
            What::Checked(_) => arguments.first().cloned().unwrap_or(DataType::Int64),
        })
    }

    /// NULL comes of NULL alone: what is planned with operators and runs with functions must agree on that.
    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef, DataFusionError> {
        let kinds: Vec<DataType> = arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = arguments.arg_fields.iter().any(|field| field.is_nullable());
        let field = Field::new(self.name, self.return_type(&kinds)?, nullable);
        Ok(Arc::new(if self.what == What::Uuid { types::with_uuid(field) } else { field }))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        let rows = arguments.number_rows;
        let constant = arguments.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        match self.what {
            What::Fixed(fixed) => return Ok(ColumnarValue::Scalar(ScalarValue::Utf8View(Some(fixed.into())))),
            What::TypeOf => {
                let kind = arguments.arg_fields.first().map(|field| types::field_name(field));
                return Ok(ColumnarValue::Scalar(ScalarValue::Utf8View(kind)));
            }
            What::Checked(operation) => return arithmetic(operation, &arguments.args),
            _ => {}
        }
        let rows = if constant { 1 } else { rows };
        let arrays = arguments.args.into_iter().map(|value| value.into_array(rows)).collect::<Result<Vec<_>, _>>()?;
        let result = match (self.what, arrays.as_slice()) {
            (What::Text, [array]) => to_text(array)?,
            (What::Uuid, [array]) => to_uuid(array)?,
            (What::Bytea, [array]) => to_bytea(array)?,
            (What::Numeric, [array]) => datafusion::arrow::compute::cast(array, &numeric_of(array.data_type()))?,
            (What::Letter, [array]) => letters(array)?,
            (What::RoundEven, [array]) => round(array)?,
            (What::Double, [values]) => floating(values, &DataType::Float64)?,
            (What::Real, [values]) => floating(values, &DataType::Float32)?,
            (What::Digits(precision, scale), [values]) => digits(values, precision, scale)?,
            (What::Microseconds, [times]) => microseconds(times)?,
            (What::AddDays, [dates, days]) => shift(dates, days, 1)?,
            (What::SubtractDays, [dates, days]) => shift(dates, days, -1)?,
            (What::AtZone, [instants, zones]) => at_zone(instants, zones)?,
            (What::Length, [values]) => length(values, true)?,
            (What::OctetLength, [values]) => length(values, false)?,
            _ => return Err(Error::Bug(format!("{} with other arguments", self.name)).into()),
        };
        if constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
        }
        Ok(ColumnarValue::Array(result))
    }
}

fn arithmetic(operation: Checked, arguments: &[ColumnarValue]) -> Result<ColumnarValue, DataFusionError> {
    let [left, right] = arguments else { return Err(Error::Bug("arithmetic on two numbers".into()).into()) };
    let kernel = match operation {
        Checked::Add => numeric::add,
        Checked::Subtract => numeric::sub,
        Checked::Multiply => numeric::mul,
        Checked::Divide => return divide(left, right),
    };
    let apply = |left: &dyn datafusion::arrow::array::Datum, right: &dyn datafusion::arrow::array::Datum| {
        kernel(left, right).map_err(|_| DataFusionError::from(Error::Overflow("an integer is out of range".into())))
    };
    Ok(match (left, right) {
        (ColumnarValue::Array(left), ColumnarValue::Array(right)) => ColumnarValue::Array(apply(left, right)?),
        (ColumnarValue::Array(left), ColumnarValue::Scalar(right)) => {
            ColumnarValue::Array(apply(left, &right.to_scalar()?)?)
        }
        (ColumnarValue::Scalar(left), ColumnarValue::Array(right)) => {
            ColumnarValue::Array(apply(&left.to_scalar()?, right)?)
        }
        (ColumnarValue::Scalar(left), ColumnarValue::Scalar(right)) => {
            let answer = apply(&left.to_scalar()?, &right.to_scalar()?)?;
            ColumnarValue::Scalar(ScalarValue::try_from_array(&answer, 0)?)
        }
    })
}

/// The quotient of floating-point numbers; by zero it is an error, as in PostgreSQL.
fn divide(left: &ColumnarValue, right: &ColumnarValue) -> Result<ColumnarValue, DataFusionError> {
    let arrays = ColumnarValue::values_to_arrays(&[left.clone(), right.clone()])?;
    let quotient = numeric::div(&arrays[0], &arrays[1])?;
    let divisor = datafusion::arrow::compute::cast(&arrays[1], &DataType::Float64)?;
    let divisor = divisor.as_primitive::<Float64Type>();
    if (0..divisor.len()).any(|row| quotient.is_valid(row) && divisor.value(row) == 0.0) {
        return Err(Error::DivisionByZero.into());
    }
    match (left, right) {
        (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)) => {
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&quotient, 0)?))
        }
        _ => Ok(ColumnarValue::Array(quotient)),
    }
}

/// Texts or doubles as floating-point numbers: those that no such number comes near are an error.
fn floating(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, DataFusionError> {
    // What is no number is an error, and not NULL.
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let floating = datafusion::arrow::compute::cast_with_options(values, to, &options)?;
    let wide = datafusion::arrow::compute::cast(&floating, &DataType::Float64)?;
    let wide = wide.as_primitive::<Float64Type>();
    let is_odd = |row: &usize| wide.is_valid(*row) && (wide.value(*row).is_infinite() || wide.value(*row) == 0.0);
    for row in (0..wide.len()).filter(is_odd) {
        let kind = if *to == DataType::Float32 { Type::Real } else { Type::Double };
        let text = text::cell(values.as_ref(), row)?.unwrap_or_default();
        assign::text_as(&text, &kind)
            .map_err(|_| Error::TooLarge(format!("a number is out of range ({})", types::name(&kind))))?;
    }
    Ok(floating)
}

/// Texts as NUMERICs.
fn digits(values: &ArrayRef, precision: u8, scale: i8) -> Result<ArrayRef, DataFusionError> {
    let kind = Type::Numeric { precision, scale: scale.unsigned_abs() };
    let texts = texts(values)?;
    let read = |text: &str| match assign::text_as(text, &kind) {
        Ok(Stored::Numeric(number)) => Ok(number),
        Err(Misfit::Range) => Err(Error::TooLarge(format!("a number is out of range ({})", types::name(&kind)))),
        _ => Err(Error::NotValid("a text is not a valid numeric".into())),
    };
    let numbers = (0..texts.len()).map(|row| texts.is_valid(row).then(|| read(texts.value(row))).transpose());
    let numbers: Decimal128Array = numbers.collect::<Result<Vec<Option<i128>>, Error>>()?.into();
    Ok(Arc::new(numbers.with_precision_and_scale(precision, scale)?))
}

fn microseconds(times: &ArrayRef) -> Result<ArrayRef, DataFusionError> {
    let DataType::Timestamp(TimeUnit::Nanosecond, zone) = times.data_type() else {
        return Err(Error::Bug("microseconds of what has no nanoseconds".into()).into());
    };
    let rounded = |nanoseconds: i64| to_microseconds(i128::from(nanoseconds)) as i64;
    let times = times.as_primitive::<TimestampNanosecondType>();
    let times: PrimitiveArray<TimestampMicrosecondType> = times.unary(rounded);
    Ok(Arc::new(times.with_timezone_opt(zone.clone())))
}

/// The type of an instant in a zone: local times become instants, and instants local times.
fn zoned(arguments: &[DataType]) -> Result<DataType, DataFusionError> {
    let unit = |unit: TimeUnit| if unit == TimeUnit::Nanosecond { unit } else { TimeUnit::Microsecond };
    match arguments {
        [DataType::Timestamp(of, None), _] => Ok(DataType::Timestamp(unit(*of), Some(types::UTC.into()))),
        [DataType::Timestamp(of, Some(_)), _] => Ok(DataType::Timestamp(unit(*of), None)),
        [other, ..] => Err(Error::NotSupported(format!("AT TIME ZONE of {}", types::result_name(other))).into()),
        [] => Err(Error::Bug("AT TIME ZONE".into()).into()),
    }
}

fn at_zone(instants: &ArrayRef, zones: &ArrayRef) -> Result<ArrayRef, DataFusionError> {
    let zones = texts(zones)?;
    let Some(zone) = (0..zones.len()).find(|row| zones.is_valid(*row)).map(|row| zones.value(row).to_owned()) else {
        let kind = zoned(&[instants.data_type().clone(), DataType::Utf8])?;
        return Ok(datafusion::arrow::array::new_null_array(&kind, instants.len()));
    };
    if zones.iter().any(|other| other != Some(zone.as_str())) {
        return Err(Error::NotSupported("AT TIME ZONE with a zone that differs from row to row".into()).into());
    }
    let known = || Error::Sql("there is no such time zone".into());
    let tz: Tz = zone.parse().map_err(|_| known())?;
    let DataType::Timestamp(unit, from) = zoned(&[instants.data_type().clone(), DataType::Utf8])? else {
        return Err(Error::Bug("AT TIME ZONE".into()).into());
    };
    if from.is_some() {
        // Local times of the zone: Arrow knows which instants they are.
        let there = datafusion::arrow::compute::cast(instants, &DataType::Timestamp(unit, Some(zone.into())))?;
        return Ok(datafusion::arrow::compute::cast(&there, &DataType::Timestamp(unit, from))?);
    }
    let instants = datafusion::arrow::compute::cast(instants, &DataType::Timestamp(unit, Some(types::UTC.into())))?;
    Ok(match unit {
        TimeUnit::Nanosecond => {
            let instants = instants.as_primitive::<TimestampNanosecondType>();
            let local = |instant| {
                let there = as_datetime_with_timezone::<TimestampNanosecondType>(instant, tz)?;
                there.naive_local().and_utc().timestamp_nanos_opt()
            };
            Arc::new(instants.unary_opt::<_, TimestampNanosecondType>(local))
        }
        _ => {
            let instants = instants.as_primitive::<TimestampMicrosecondType>();
            let local = |instant| {
                let there = as_datetime_with_timezone::<TimestampMicrosecondType>(instant, tz)?;
                Some(there.naive_local().and_utc().timestamp_micros())
            };
            Arc::new(instants.unary_opt::<_, TimestampMicrosecondType>(local))
        }
    })
}

/// What NUMERIC without digits is: a NUMERIC stays what it is, an integer has none behind the point, all else has ten.
pub(crate) fn numeric_of(kind: &DataType) -> DataType {
    match kind {
        DataType::Decimal128(..) => kind.clone(),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => DataType::Decimal128(19, 0),
        _ => DataType::Decimal128(38, 10),
    }
}

/// The letters that numbers stand for. Zero stands for none.
fn letters(numbers: &ArrayRef) -> Result<ArrayRef, DataFusionError> {
    let numbers = datafusion::arrow::compute::cast(numbers, &DataType::Int64)?;
    let mut letters = StringViewBuilder::with_capacity(numbers.len());
    for number in numbers.as_primitive::<Int64Type>() {
        let Some(number) = number else {
            letters.append_null();
            continue;
        };
        let letter = u32::try_from(number).ok().filter(|number| *number > 0).and_then(char::from_u32);
        let letter = letter.ok_or_else(|| match number {
            0 => Error::ZeroInText,
            _ => Error::Sql("chr: there is no letter of this number".into()),
        })?;
        letters.append_value(letter.encode_utf8(&mut [0; 4]));
    }
    Ok(Arc::new(letters.finish()))
}

fn measured(name: &str, arguments: &[DataType]) -> Result<DataType, DataFusionError> {
    match arguments {
        [kind] if is_bytes(kind) || kind.is_null() => Ok(DataType::Int32),
        [DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View] => Ok(DataType::Int32),
        _ => Err(Error::Sql(format!("function {name} does not take these arguments")).into()),
    }
}

fn is_bytes(kind: &DataType) -> bool {
    matches!(kind, DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_))
}

/// Letters of texts, or bytes; bytes of BYTEA.
fn length(values: &ArrayRef, letters: bool) -> Result<ArrayRef, DataFusionError> {
    let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let lengths: Int32Array = if is_bytes(values.data_type()) {
        let bytes = datafusion::arrow::compute::cast(values, &DataType::BinaryView)?;
        bytes.as_binary_view().iter().map(|value| value.map(|value| count(value.len()))).collect()
    } else {
        let measure = |text: &str| count(if letters { text.chars().count() } else { text.len() });
        texts(values)?.iter().map(|value| value.map(measure)).collect()
    };
    Ok(Arc::new(lengths))
}

fn to_text(array: &ArrayRef) -> Result<ArrayRef, DataFusionError> {
    if matches!(array.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) {
        return Ok(datafusion::arrow::compute::cast(array, &DataType::Utf8View)?);
    }
    let mut builder = StringViewBuilder::with_capacity(array.len());
    for row in 0..array.len() {
        builder.append_option(text::cell(array.as_ref(), row)?);
    }
    Ok(Arc::new(builder.finish()))
}

fn texts(array: &ArrayRef) -> Result<StringViewArray, DataFusionError> {
    let array = datafusion::arrow::compute::cast(array, &DataType::Utf8View)?;
    Ok(array.as_string_view().clone())
}

fn to_uuid(array: &ArrayRef) -> Result<ArrayRef, DataFusionError> {
    let mut builder = StringViewBuilder::with_capacity(array.len());
    for value in &texts(array)? {
        let bytes = match value {
            None => None,
            Some(value) => Some(parse::uuid(value).ok_or_else(|| Error::Sql("a text is not a valid uuid".into()))?),
        };
        builder.append_option(bytes.map(|bytes| {
            let mut text = String::new();
            text::uuid(&mut text, &bytes);
            text
        }));
    }
    Ok(Arc::new(builder.finish()))
}

fn to_bytea(array: &ArrayRef) -> Result<ArrayRef, DataFusionError> {
    if !matches!(array.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null) {
        return Ok(datafusion::arrow::compute::cast(array, &DataType::BinaryView)?);
    }
    let mut builder = BinaryViewBuilder::with_capacity(array.len());
    for value in &texts(array)? {
        match value {
            None => builder.append_null(),
            Some(value) => builder
                .append_value(parse::bytea(value).ok_or_else(|| Error::Sql("a text is not a valid bytea".into()))?),
        }
    }
    Ok(Arc::new(builder.finish()))
}

fn round(array: &ArrayRef) -> Result<ArrayRef, DataFusionError> {
    let array = datafusion::arrow::compute::cast(array, &DataType::Float64)?;
    let rounded: Float64Array = array.as_primitive::<Float64Type>().unary(f64::round_ties_even);
    Ok(Arc::new(rounded))
}

fn shift(dates: &ArrayRef, days: &ArrayRef, sign: i64) -> Result<ArrayRef, DataFusionError> {
    let days = datafusion::arrow::compute::cast(days, &DataType::Int64)?;
    let (dates, days) = (dates.as_primitive::<Date32Type>(), days.as_primitive::<Int64Type>());
    let shifted = datafusion::arrow::compute::try_binary::<_, _, _, Date32Type>(dates, days, |date, days| {
        let date = days.checked_mul(sign).and_then(|days| i64::from(date).checked_add(days));
        date.and_then(|date| i32::try_from(date).ok())
            .ok_or_else(|| datafusion::arrow::error::ArrowError::ArithmeticOverflow("a date is out of range".into()))
    })?;
    Ok(Arc::new(shifted))
}
