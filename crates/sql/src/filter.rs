//! Conditions of queries as tests that are decided on row images, before any column is decoded. Only those are compiled that mean
//! exactly the same here and in the query library, so the plan need not ask again.

pub use counterfoil_relation::{Comparison, Constant, Test};
use counterfoil_relation::{Table, Type};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use datafusion::scalar::ScalarValue;

use crate::value::{Value, parse};

/// The comparison that an operator is.
pub(crate) fn comparison_of(operator: Operator) -> Option<Comparison> {
    Some(match operator {
        Operator::Eq => Comparison::Equal,
        Operator::NotEq => Comparison::Unequal,
        Operator::Lt => Comparison::Less,
        Operator::LtEq => Comparison::AtMost,
        Operator::Gt => Comparison::Greater,
        Operator::GtEq => Comparison::AtLeast,
        _ => return None,
    })
}

/// The test that means exactly what `expr` means as a condition, if there is one.
pub fn compile(expr: &Expr, table: &Table) -> Option<Test> {
    Compiling { table }.said(expr, true)
}

struct Compiling<'t> {
    table: &'t Table,
}

impl Compiling<'_> {
    /// The test that is true where `expr` is, or, where `wanted` is false, the one that is true where `expr` is false: where it is NULL
    /// neither is.
    fn said(&self, expr: &Expr, wanted: bool) -> Option<Test> {
        match expr {
            Expr::Column(_) => truth(self.table, self.column(expr)?, wanted),
            Expr::Not(inner) => self.said(inner, !wanted),
            Expr::IsNull(inner) => Some(Test::Null { column: self.column(inner)?, wanted }),
            Expr::IsNotNull(inner) => Some(Test::Null { column: self.column(inner)?, wanted: !wanted }),
            Expr::Literal(ScalarValue::Boolean(Some(truth)), _) if *truth == wanted => Some(Test::All(Vec::new())),
            Expr::Literal(ScalarValue::Boolean(_), _) => Some(Test::Never),
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                let (left, right) = (self.said(left, wanted)?, self.said(right, wanted)?);
                // One of two is false where not both are true, and the other way round.
                Some(if (*op == Operator::And) == wanted { Test::All(vec![left, right]) } else { left.or(right) })
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let comparison = comparison_of(*op)?;
                let (column, comparison, value) = match (left.as_ref(), right.as_ref()) {
                    (left, Expr::Literal(value, _)) => (self.column(left)?, comparison, value),
                    (Expr::Literal(value, _), right) => (self.column(right)?, comparison.turned(), value),
                    _ => return None,
                };
                compare(self.table, column, if wanted { comparison } else { comparison.opposite() }, value)
            }
            Expr::Between(between) => self.between(between, wanted != between.negated),
            Expr::InList(list) => {
                let values = list.list.iter().map(|item| match item {
                    Expr::Literal(value, _) => Some(value),
                    _ => None,
                });
                let column = self.column(&list.expr)?;
                listed(self.table, column, &values.collect::<Option<Vec<_>>>()?, wanted != list.negated)
            }
            Expr::Like(of) if !of.case_insensitive && of.escape_char.is_none() => {
                let Expr::Literal(pattern, _) = of.pattern.as_ref() else { return None };
                let column = self.column(&of.expr)?;
                let like = like(self.table, column, pattern.try_as_str()??)?;
                Some(if wanted != of.negated { like } else { unlike(like) })
            }
            _ => None,
        }
    }

    fn column(&self, expr: &Expr) -> Option<usize> {
        match expr {
            Expr::Column(column) => self.table.column(&column.name).map(|(position, _)| position),
            _ => None,
        }
    }

    fn between(&self, between: &Between, wanted: bool) -> Option<Test> {
        let column = self.column(&between.expr)?;
        let (Expr::Literal(low, _), Expr::Literal(high, _)) = (between.low.as_ref(), between.high.as_ref()) else {
            return None;
        };
        let bound = |comparison: Comparison, value| {
            compare(self.table, column, if wanted { comparison } else { comparison.opposite() }, value)
        };
        let (low, high) = (bound(Comparison::AtLeast, low)?, bound(Comparison::AtMost, high)?);
        Some(if wanted { Test::All(vec![low, high]) } else { low.or(high) })
    }
}

/// The test that a column has one of these values, or, where `wanted` is false, none of them.
pub(crate) fn listed(table: &Table, column: usize, values: &[&ScalarValue], wanted: bool) -> Option<Test> {
    let kind = &table.columns[column].kind;
    let there = values.iter().filter(|value| !value.is_null());
    let constants: Vec<Constant> = there.map(|value| constant(kind, value)).collect::<Option<_>>()?;
    // NULL in the list makes the condition NULL where nothing else matches: not true either way.
    Some(match wanted {
        true => Test::In { column, constants },
        false if constants.len() < values.len() => Test::Never,
        false => none_of(column, constants),
    })
}

/// The test that a column has none of these values.
fn none_of(column: usize, constants: Vec<Constant>) -> Test {
    let differs = |constant| Test::Compare { column, comparison: Comparison::Unequal, constant };
    Test::All(constants.into_iter().map(differs).collect())
}

/// The test that is true where one of [`like`] is false.
pub(crate) fn unlike(like: Test) -> Test {
    match like {
        Test::Compare { column, comparison, constant } => {
            Test::Compare { column, comparison: comparison.opposite(), constant }
        }
        Test::All(tests) => Test::Any(tests.into_iter().map(unlike).collect()),
        // Any text is like it.
        _ => Test::Never,
    }
}

/// The test that a text is like a pattern, if that says how it begins and nothing more, or what it is.
pub fn like(table: &Table, column: usize, pattern: &str) -> Option<Test> {
    if !matches!(table.columns[column].kind, Type::Text | Type::VarChar(_)) || pattern.contains(['_', '\\']) {
        return None;
    }
    let compare = |comparison, text: &str| {
        let constant = Constant::Bytes(text.as_bytes().to_vec());
        Test::Compare { column, comparison, constant }
    };
    let prefix = pattern.trim_end_matches('%');
    match prefix {
        _ if prefix.contains('%') => None,
        "" if !pattern.is_empty() => Some(Test::Null { column, wanted: false }),
        _ if prefix.len() == pattern.len() => Some(compare(Comparison::Equal, prefix)),
        _ => {
            let mut all = vec![compare(Comparison::AtLeast, prefix)];
            all.extend(beyond(prefix).map(|end| compare(Comparison::Less, &end)));
            Some(Test::All(all))
        }
    }
}

/// The least text that is greater than all that begin so.
fn beyond(prefix: &str) -> Option<String> {
    let mut letters: Vec<char> = prefix.chars().collect();
    while let Some(last) = letters.pop() {
        // Behind the last letter before the surrogates comes the first one after them.
        let next = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32);
        if let Some(next) = next {
            letters.push(next);
            return Some(letters.into_iter().collect());
        }
    }
    None
}

/// The test that a truth value is this one.
pub(crate) fn truth(table: &Table, column: usize, wanted: bool) -> Option<Test> {
    let constant = Constant::Whole(i64::from(wanted));
    let is_truth = table.columns[column].kind == Type::Boolean;
    is_truth.then_some(Test::Compare { column, comparison: Comparison::Equal, constant })
}

/// The test that a column compares so with a literal of the library.
pub(crate) fn compare(table: &Table, column: usize, comparison: Comparison, value: &ScalarValue) -> Option<Test> {
    if value.is_null() {
        return Some(Test::Never);
    }
    Some(Test::Compare { column, comparison, constant: constant(&table.columns[column].kind, value)? })
}

fn constant(kind: &Type, value: &ScalarValue) -> Option<Constant> {
    Some(match (kind, value) {
        (Type::Boolean, ScalarValue::Boolean(Some(truth))) => Constant::Whole(i64::from(*truth)),
        (Type::SmallInt, ScalarValue::Int16(Some(number))) => Constant::Whole(i64::from(*number)),
        (Type::Integer, ScalarValue::Int32(Some(number))) => Constant::Whole(i64::from(*number)),
        (Type::BigInt, ScalarValue::Int64(Some(number))) => Constant::Whole(*number),
        (Type::Real, ScalarValue::Float32(Some(number))) => Constant::Float(f64::from(*number) + 0.0),
        (Type::Double, ScalarValue::Float64(Some(number))) => Constant::Float(*number + 0.0),
        (Type::Numeric { scale, .. }, ScalarValue::Decimal128(Some(number), _, given)) if *given == *scale as i8 => {
            Constant::Decimal(*number)
        }
        (Type::Date, ScalarValue::Date32(Some(days))) => Constant::Whole(i64::from(*days)),
        (Type::Time, ScalarValue::Time64Microsecond(Some(ticks)))
        | (Type::Timestamp { nanoseconds: false }, ScalarValue::TimestampMicrosecond(Some(ticks), None))
        | (Type::Timestamp { nanoseconds: true }, ScalarValue::TimestampNanosecond(Some(ticks), None))
        | (Type::TimestampTz, ScalarValue::TimestampMicrosecond(Some(ticks), Some(_))) => Constant::Whole(*ticks),
        (Type::Uuid, value) => Constant::Bytes(parse::uuid(value.try_as_str()??)?.to_vec()),
        (Type::Text | Type::VarChar(_) | Type::Char(_), value) => {
            Constant::Bytes(value.try_as_str()??.as_bytes().to_vec())
        }
        (Type::Bytea, ScalarValue::BinaryView(Some(bytes)) | ScalarValue::Binary(Some(bytes))) => {
            Constant::Bytes(bytes.clone())
        }
        _ => return None,
    })
}

/// The test that a column compares so with a value, if that is a value of the column's type.
pub fn compared(table: &Table, column: usize, comparison: Comparison, value: &Value) -> Option<Test> {
    if *value == Value::Null {
        return Some(Test::Never);
    }
    if let Some(is_above) = beyond_all(&table.columns[column].kind, value) {
        return Some(compared_beyond(column, comparison, is_above));
    }
    Some(Test::Compare { column, comparison, constant: given(&table.columns[column].kind, value)? })
}

/// The test that a column has one of these values, or, where `wanted` is false, none of them.
pub fn listed_in(table: &Table, column: usize, values: &[Value], wanted: bool) -> Option<Test> {
    let kind = &table.columns[column].kind;
    let there = values.iter().filter(|value| **value != Value::Null);
    let constants: Vec<Constant> = there.map(|value| given(kind, value)).collect::<Option<_>>()?;
    Some(match wanted {
        true => Test::In { column, constants },
        // It may be the one that is NULL.
        false if constants.len() < values.len() => Test::Never,
        false => none_of(column, constants),
    })
}

/// Whether an integer is above all that a column can have, or below; none: it is neither.
fn beyond_all(kind: &Type, value: &Value) -> Option<bool> {
    let Value::Integer(number) = value else { return None };
    let (least, most) = match kind {
        Type::SmallInt => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Type::Integer => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => return None,
    };
    (!(least..=most).contains(number)).then_some(*number > most)
}

/// How a column compares with what is above all its values, or below them: alike wherever it has one.
fn compared_beyond(column: usize, comparison: Comparison, is_above: bool) -> Test {
    let is_true = match comparison {
        Comparison::Equal => false,
        Comparison::Unequal => true,
        Comparison::Less | Comparison::AtMost => is_above,
        Comparison::Greater | Comparison::AtLeast => !is_above,
    };
    if is_true { Test::Null { column, wanted: false } } else { Test::Never }
}

/// The days from 0001-01-01 to 9999-12-31: others the library does not read.
const WRITTEN_DAYS: std::ops::RangeInclusive<i32> = -719_162..=2_932_896;
const DAY_MICROSECONDS: i64 = 86_400_000_000;

/// Whether the library reads a time when it is written.
fn is_written(nanoseconds: i128) -> bool {
    i32::try_from(nanoseconds.div_euclid(i128::from(DAY_MICROSECONDS) * 1000))
        .is_ok_and(|days| WRITTEN_DAYS.contains(&days))
}

/// What cells of this type compare with, for a value that is of this type: none where the query library would first make another
/// type of one of them.
pub fn given(kind: &Type, value: &Value) -> Option<Constant> {
    Some(match (kind, value) {
        (Type::Boolean, Value::Boolean(truth)) => Constant::Whole(i64::from(*truth)),
        (Type::SmallInt, Value::Integer(number)) => Constant::Whole(i64::from(i16::try_from(*number).ok()?)),
        (Type::Integer, Value::Integer(number)) => Constant::Whole(i64::from(i32::try_from(*number).ok()?)),
        (Type::BigInt, Value::Integer(number)) => Constant::Whole(*number),
        // A NaN is written as one, whatever its sign.
        (Type::Double, Value::Double(number)) if number.is_nan() => Constant::Float(f64::NAN),
        (Type::Double, Value::Double(number)) => Constant::Float(*number + 0.0),
        // Cells of both are compared as doubles.
        (Type::Real | Type::Double, Value::Integer(number)) => Constant::Float(exact(i128::from(*number), 0)?),
        (Type::Real | Type::Double, Value::Decimal { unscaled, scale }) => Constant::Float(exact(*unscaled, *scale)?),
        (Type::Numeric { precision, scale }, Value::Integer(number)) => {
            Constant::Decimal(scaled(i128::from(*number), 0, (*precision, *scale))?)
        }
        (Type::Numeric { precision, scale }, Value::Decimal { unscaled, scale: given }) => {
            Constant::Decimal(scaled(*unscaled, *given, (*precision, *scale))?)
        }
        (Type::Date | Type::Timestamp { .. } | Type::TimestampTz, Value::Text(text)) => {
            given(kind, &written(kind, text)?)?
        }
        (Type::Date, Value::Date(days)) if WRITTEN_DAYS.contains(days) => Constant::Whole(i64::from(*days)),
        (Type::Time, Value::Time(ticks)) if (0..DAY_MICROSECONDS).contains(ticks) => Constant::Whole(*ticks),
        (Type::Timestamp { nanoseconds: false }, Value::Timestamp(nanoseconds))
        | (Type::TimestampTz, Value::TimestampTz(nanoseconds))
            if nanoseconds % 1000 == 0 && is_written(*nanoseconds) =>
        {
            Constant::Whole(i64::try_from(nanoseconds / 1000).ok()?)
        }
        (Type::Timestamp { nanoseconds: true }, Value::Timestamp(nanoseconds)) if is_written(*nanoseconds) => {
            Constant::Whole(i64::try_from(*nanoseconds).ok()?)
        }
        (Type::Uuid, Value::Uuid(bytes)) => Constant::Bytes(bytes.to_vec()),
        // The library compares several of them as texts.
        (Type::Uuid, Value::Text(text)) => {
            let bytes = parse::uuid(text)?;
            let mut usual = String::new();
            crate::text::uuid(&mut usual, &bytes);
            (usual == *text).then(|| Constant::Bytes(bytes.to_vec()))?
        }
        (Type::Text | Type::VarChar(_) | Type::Char(_), Value::Text(text)) => {
            Constant::Bytes(text.clone().into_bytes())
        }
        (Type::Bytea, Value::Bytes(bytes)) => Constant::Bytes(bytes.clone()),
        _ => return None,
    })
}

/// The value of a type that a text is in the usual way of writing it, which everybody reads alike.
pub(crate) fn written(kind: &Type, text: &str) -> Option<Value> {
    let mut usual = String::new();
    let value = match kind {
        Type::Date => Value::Date(parse::date(text)?),
        _ => match parse::timestamp(text)? {
            (nanoseconds, true) => Value::TimestampTz(nanoseconds),
            (nanoseconds, false) => Value::Timestamp(nanoseconds),
        },
    };
    match &value {
        Value::Date(days) => crate::text::date(&mut usual, i64::from(*days)),
        Value::Timestamp(nanoseconds) => crate::text::timestamp(&mut usual, *nanoseconds, false),
        Value::TimestampTz(nanoseconds) => crate::text::timestamp(&mut usual, *nanoseconds, true),
        _ => return None,
    }
    // A day alone is its first moment.
    let is_usual =
        usual == text || matches!(value, Value::Timestamp(_)) && usual.strip_suffix(" 00:00:00") == Some(text);
    is_usual.then_some(value)
}

/// A number as a column with so many digits has it; none: it has more behind the point, or is larger than any there.
fn scaled(unscaled: i128, given: u8, (precision, scale): (u8, u8)) -> Option<i128> {
    let number = unscaled.checked_mul(10_i128.checked_pow(u32::from(scale.checked_sub(given)?))?)?;
    let bound = 10_i128.checked_pow(u32::from(precision)).unwrap_or(i128::MAX);
    (number.unsigned_abs() < bound.unsigned_abs()).then_some(number)
}

/// Integers up to this one, and powers of ten up to this one, are doubles without a rest: so a quotient of them is rounded once, by
/// whoever works it out.
const EXACT: (u128, u8) = (1 << f64::MANTISSA_DIGITS, 22);

/// The double that a number with digits behind the point becomes, where all ways to it end alike.
fn exact(unscaled: i128, scale: u8) -> Option<f64> {
    let is_exact = unscaled.unsigned_abs() <= EXACT.0 && scale <= EXACT.1;
    is_exact.then(|| unscaled as f64 / 10_f64.powi(i32::from(scale)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_doubles_where_that_is_beyond_doubt() {
        for (unscaled, scale, text) in
            [(115, 1, "11.5"), (-25, 2, "-0.25"), (1 << 53, 22, "9.007199254740992e-7"), (3, 0, "3")]
        {
            assert_eq!(exact(unscaled, scale), Some(text.parse().unwrap()));
        }
        for (unscaled, scale) in [((1 << 53) + 1, 0), (1, 23), (i128::MIN, 2)] {
            assert_eq!(exact(unscaled, scale), None);
        }
    }

    #[test]
    fn what_is_beyond_a_prefix_is_the_least_such_text() {
        for (prefix, end) in [
            ("ab", Some("ac")),
            ("a\u{7f}", Some("a\u{80}")),
            ("\u{d7ff}", Some("\u{e000}")),
            ("a\u{10ffff}", Some("b")),
            ("\u{10ffff}", None),
        ] {
            assert_eq!(beyond(prefix).as_deref(), end);
            if let Some(end) = end {
                assert!(format!("{prefix}\u{10ffff}").as_str() < end);
            }
        }
    }
}
