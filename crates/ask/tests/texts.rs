//! Values as text and back, and texts that are no values.

use counterfoil_ask::{Error, parse_value, text};
use counterfoil_proof::{Type, Value};
use proptest::prelude::*;

fn comes_back(kind: Type, value: &Value) {
    let written = text(kind, value).expect("not NULL");
    let read = parse_value(kind, &written).unwrap_or_else(|error| panic!("{kind:?} {written}: {error}"));
    let is_nan = |value: &Value| matches!(value, Value::Double(value) if value.is_nan());
    assert!(read == *value || (is_nan(&read) && is_nan(value)), "{kind:?} {written}");
}

proptest! {
    #[test]
    fn values_come_back(
        small: i16, int: i32, big: i64, numeric in -99_999_999_999_999_999_999_999_999_999_999_999_999i128..=99_999_999_999_999_999_999_999_999_999_999_999_999,
        scale in 0u8..=38, real: f32, double: f64, string: String, bytes: Vec<u8>, uuid: [u8; 16], flag: bool,
        time in 0..=86_400_000_000i64,
    ) {
        comes_back(Type::Boolean, &Value::Boolean(flag));
        comes_back(Type::SmallInt, &Value::Integer(small.into()));
        for kind in [Type::Integer, Type::Date] {
            comes_back(kind, &Value::Integer(int.into()));
        }
        for kind in [Type::BigInt, Type::Timestamp, Type::TimestampNanos, Type::TimestampTz] {
            comes_back(kind, &Value::Integer(big));
        }
        comes_back(Type::Time, &Value::Integer(time));
        comes_back(Type::Numeric(38, scale), &Value::Numeric(numeric));
        comes_back(Type::Real, &Value::Double(real.into()));
        comes_back(Type::Double, &Value::Double(double));
        comes_back(Type::Text, &Value::Text(string));
        comes_back(Type::Bytea, &Value::Bytes(bytes));
        comes_back(Type::Uuid, &Value::Uuid(uuid));
    }

    #[test]
    fn no_text_and_no_value_panics(noise in "[-+0-9a-fA-F:. TZ\\\\xéE\u{0}]{0,40}", number: i64, wide: i128) {
        let kinds = [
            Type::Boolean, Type::SmallInt, Type::Integer, Type::BigInt, Type::Real, Type::Double, Type::Numeric(38, 38),
            Type::Numeric(5, 2), Type::Text, Type::Bytea, Type::Date, Type::Time, Type::Timestamp, Type::TimestampNanos,
            Type::TimestampTz, Type::Uuid,
        ];
        for kind in kinds {
            if let Ok(value) = parse_value(kind, &noise) {
                comes_back(kind, &value);
            }
            for value in [Value::Integer(number), Value::Numeric(wide), Value::Integer(i64::MIN), Value::Numeric(i128::MIN)] {
                prop_assert!(text(kind, &value).is_some());
            }
        }
    }
}

#[test]
fn values_are_written_as_psql_writes_them() {
    let shown = |kind, value| text(kind, &value);
    assert_eq!(shown(Type::Integer, Value::Null), None);
    for (kind, value, written) in [
        (Type::Boolean, Value::Boolean(true), "t"),
        (Type::Numeric(10, 2), Value::Numeric(-5), "-0.05"),
        (Type::Numeric(10, 0), Value::Numeric(120), "120"),
        (Type::Double, Value::Double(0.1), "0.1"),
        (Type::Double, Value::Double(100.0), "100"),
        (Type::Double, Value::Double(1e15), "1e+15"),
        (Type::Double, Value::Double(1.5e-7), "1.5e-07"),
        (Type::Double, Value::Double(f64::NEG_INFINITY), "-Infinity"),
        (Type::Double, Value::Double(f64::NAN), "NaN"),
        (Type::Real, Value::Double(f64::from(0.1f32)), "0.1"),
        (Type::Real, Value::Double(1_234_567.0), "1.234567e+06"),
        (Type::Bytea, Value::Bytes(vec![0, 255]), "\\x00ff"),
        (Type::Date, Value::Integer(19_782), "2024-02-29"),
        (Type::Time, Value::Integer(37_230_500_000), "10:20:30.5"),
        (Type::Timestamp, Value::Integer(-1), "1969-12-31 23:59:59.999999"),
        (Type::TimestampTz, Value::Integer(0), "1970-01-01 00:00:00+00"),
        (Type::TimestampNanos, Value::Integer(1), "1970-01-01 00:00:00.000000001"),
        (Type::Uuid, Value::Uuid([0xab; 16]), "abababab-abab-abab-abab-abababababab"),
    ] {
        assert_eq!(shown(kind, value).as_deref(), Some(written));
    }
}

#[test]
fn what_is_no_value_is_refused_and_nothing_is_rounded() {
    for (kind, written) in [
        (Type::Integer, ""),
        (Type::Integer, "2.5"),
        (Type::SmallInt, "40000"),
        (Type::Numeric(4, 2), "10.005"),
        (Type::Numeric(4, 2), "100"),
        (Type::Double, "1e999"),
        (Type::Date, "2023-02-29"),
        (Type::Timestamp, "2024-01-01 10:00:00.1234567"),
        (Type::Timestamp, "2024-01-01 10:00:00+02"),
        (Type::Uuid, "abababab-abab-abab-abab-ababababab"),
        (Type::Bytea, "\\x0"),
        (Type::Boolean, "maybe"),
    ] {
        assert!(parse_value(kind, written) == Err(Error::NoValue(kind)), "{written}");
    }
    assert!(parse_value(Type::TimestampTz, "1970-01-01 02:00:00+02") == Ok(Value::Integer(0)));
    assert!(parse_value(Type::Numeric(4, 2), " 1.500 ") == Ok(Value::Numeric(150)));
}
