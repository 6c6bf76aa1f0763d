//! Parameters of statements (`$1`, `$2`): counted, bound, and left open.

use std::ops::ControlFlow;

use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType as SqlType, ExactNumberInfo, Expr, Statement, TimezoneInfo, UnaryOperator, Value as Literal,
    ValueWithSpan, visit_expressions, visit_expressions_mut,
};

use crate::error::{Error, Result};
use crate::statement::quoted;
use crate::value::Value;

/// Parameters of a statement, at most: as many as PostgreSQL's protocol counts.
const PARAMETERS_MAX: usize = 65_535;

/// Digits that a DECIMAL may have behind its point.
const SCALE_MAX: u8 = 38;

/// The place of a parameter among those given: `$1` is the first.
pub(crate) fn index(placeholder: &str) -> Result<usize> {
    let number = placeholder.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
    match number {
        Some(number) if (1..=PARAMETERS_MAX).contains(&number) => Ok(number - 1),
        _ => {
            Err(Error::Sql(format!("parameter {placeholder}: parameters are written $1, $2, up to ${PARAMETERS_MAX}")))
        }
    }
}

/// The value of a parameter.
pub(crate) fn value<'a>(placeholder: &str, parameters: &'a [Value]) -> Result<&'a Value> {
    let given = parameters.get(index(placeholder)?).ok_or_else(|| {
        Error::Misuse(format!("the statement wants parameter {placeholder}, and {} were given", parameters.len()))
    })?;
    match given {
        Value::Decimal { scale, .. } if *scale > SCALE_MAX => Err(Error::Input(format!(
            "parameter {placeholder} has {scale} digits behind the point: {SCALE_MAX} at most"
        ))),
        Value::Text(text) if text.as_bytes().contains(&0) => Err(Error::ZeroInText),
        _ => Ok(given),
    }
}

/// How many parameters a statement wants.
pub fn count(statement: &Statement) -> usize {
    let mut most = 0;
    let _ = visit_expressions(statement, |expr: &Expr| {
        if let Expr::Value(ValueWithSpan { value: Literal::Placeholder(name), .. }) = expr {
            most = most.max(index(name).map_or(0, |place| place + 1));
        }
        ControlFlow::<()>::Continue(())
    });
    most
}

/// Puts the values of parameters into their places, as literals.
///
/// # Errors
/// [`Error::Misuse`] if there are too few.
pub(crate) fn bind(statement: &mut Statement, parameters: &[Value]) -> Result<()> {
    let failed = visit_expressions_mut(statement, |expr: &mut Expr| {
        if let Expr::Value(ValueWithSpan { value: Literal::Placeholder(name), .. }) = expr {
            match value(name, parameters) {
                Ok(value) => *expr = literal(value),
                Err(error) => return ControlFlow::Break(error),
            }
        }
        ControlFlow::Continue(())
    });
    match failed {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// Gives parameters the types that a statement was prepared with.
///
/// # Errors
/// [`Error::Sql`] for parameters that are not written as such.
pub(crate) fn declare(statement: &mut Statement, types: &[SqlType]) -> Result<()> {
    let failed = visit_expressions_mut(statement, |expr: &mut Expr| {
        if let Expr::Value(ValueWithSpan { value: Literal::Placeholder(name), .. }) = expr {
            match index(name) {
                Ok(place) => {
                    if let Some(data_type) = types.get(place).cloned() {
                        let inner = Box::new(expr.clone());
                        *expr = Expr::Cast { kind: CastKind::Cast, expr: inner, data_type, array: false, format: None };
                    }
                }
                Err(error) => return ControlFlow::Break(error),
            }
        }
        ControlFlow::Continue(())
    });
    match failed {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// What becomes of parameters of which nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unbound {
    /// They stay.
    Open,
    /// They are NULL.
    Null,
}

/// Puts NULLs of these types where parameters of known types stand, to plan a statement that is not to run.
///
/// # Errors
/// [`Error::Sql`] for parameters that are not written as such.
pub(crate) fn open(statement: &mut Statement, given: &[Option<DataType>], unbound: Unbound) -> Result<()> {
    let failed = visit_expressions_mut(statement, |expr: &mut Expr| {
        if let Expr::Value(ValueWithSpan { value: Literal::Placeholder(name), .. }) = expr {
            let place = match index(name) {
                Ok(place) => place,
                Err(error) => return ControlFlow::Break(error),
            };
            let kind = given.get(place).and_then(Option::as_ref);
            if let Some(null) =
                kind.map(null_of).or((unbound == Unbound::Null).then(|| Expr::Value(Literal::Null.into())))
            {
                *expr = null;
            }
        }
        ControlFlow::Continue(())
    });
    match failed {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// A NULL of a type.
fn null_of(kind: &DataType) -> Expr {
    let null = || Expr::Value(Literal::Null.into());
    let data_type = match kind {
        DataType::Boolean => SqlType::Boolean,
        DataType::Int16 => SqlType::SmallInt(None),
        DataType::Int32 => SqlType::Integer(None),
        DataType::Int64 => SqlType::BigInt(None),
        DataType::Float32 => SqlType::Real,
        DataType::Float64 => SqlType::Double(ExactNumberInfo::None),
        DataType::Decimal128(..) => SqlType::Numeric(ExactNumberInfo::None),
        DataType::Utf8 | DataType::Utf8View => SqlType::Text,
        DataType::Binary | DataType::BinaryView => SqlType::Bytea,
        DataType::Date32 => SqlType::Date,
        DataType::Time64(_) => SqlType::Time(None, TimezoneInfo::None),
        DataType::Timestamp(_, None) => SqlType::Timestamp(None, TimezoneInfo::None),
        DataType::Timestamp(_, Some(_)) => SqlType::Timestamp(None, TimezoneInfo::WithTimeZone),
        DataType::Interval(_) => SqlType::Interval { fields: None, precision: None },
        _ => return null(),
    };
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(null()), data_type, array: false, format: None }
}

/// The places of parameters that are looked for values in (`id = ANY ($1)`) without a word of what they are; in their stead, one of
/// these values: what it is can be concluded.
pub(crate) fn one_of_each(statement: &mut Statement) -> Vec<usize> {
    let mut places = Vec::new();
    let _ = visit_expressions_mut(statement, |expr: &mut Expr| {
        if let Expr::AnyOp { left, compare_op, right, .. } | Expr::AllOp { left, compare_op, right } = expr
            && let Some(place) = place_of(right)
        {
            places.push(place);
            let (left, right) = (left.clone(), right.clone());
            *expr = Expr::BinaryOp { left, op: compare_op.clone(), right };
        }
        ControlFlow::<()>::Continue(())
    });
    places
}

/// The place of a parameter that stands alone.
fn place_of(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Nested(inner) => place_of(inner),
        Expr::Value(ValueWithSpan { value: Literal::Placeholder(name), .. }) => index(name).ok(),
        _ => None,
    }
}

/// Whether a parameter stands in an expression.
pub(crate) fn stands_in(expr: &Expr) -> bool {
    let is_parameter = |expr: &Expr| matches!(expr, Expr::Value(ValueWithSpan { value: Literal::Placeholder(_), .. }));
    visit_expressions(expr, |expr: &Expr| match is_parameter(expr) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    })
    .is_break()
}

/// The literal of a value. A text stays a plain quoted literal, which becomes whatever is wanted where it stands.
pub(crate) fn literal(value: &Value) -> Expr {
    let cast = |text: String, data_type: SqlType| cast_of(quoted(text), data_type);
    let shown = |write: &dyn Fn(&mut String)| {
        let mut text = String::new();
        write(&mut text);
        text
    };
    match value {
        Value::Null => Expr::Value(Literal::Null.into()),
        Value::Boolean(truth) => Expr::Value(Literal::Boolean(*truth).into()),
        Value::Integer(number) => signed(*number < 0, number.unsigned_abs().to_string()),
        Value::Double(number) => cast(number.to_string(), SqlType::Double(ExactNumberInfo::None)),
        Value::Decimal { unscaled, scale } => {
            let digits = shown(&|text| crate::text::decimal(text, *unscaled, *scale as i8));
            let number = signed(*unscaled < 0, digits.trim_start_matches('-').to_owned());
            // Without a point it would be an integer, and be divided as one.
            let length = digits.trim_start_matches('-').len();
            let whole = ExactNumberInfo::PrecisionAndScale(length as u64, 0);
            let is_whole = *scale == 0 && length <= usize::from(SCALE_MAX);
            if is_whole { cast_of(number, SqlType::Numeric(whole)) } else { number }
        }
        Value::Text(text) => quoted(text.clone()),
        Value::Bytes(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            Expr::Value(Literal::HexStringLiteral(digits).into())
        }
        Value::Date(days) => cast(shown(&|text| crate::text::date(text, i64::from(*days))), SqlType::Date),
        Value::Time(microseconds) => cast(
            shown(&|text| crate::text::time(text, i128::from(*microseconds) * 1000)),
            SqlType::Time(None, TimezoneInfo::None),
        ),
        Value::Timestamp(nanoseconds) => {
            let digits = if nanoseconds % 1000 == 0 { None } else { Some(9) };
            let text = shown(&|text| crate::text::timestamp(text, *nanoseconds, false));
            cast(text, SqlType::Timestamp(digits, TimezoneInfo::None))
        }
        Value::TimestampTz(nanoseconds) => {
            let text = shown(&|text| crate::text::timestamp(text, *nanoseconds, true));
            cast(text, SqlType::Timestamp(None, TimezoneInfo::WithTimeZone))
        }
        Value::Interval { .. } => {
            cast(value.text().unwrap_or_default(), SqlType::Interval { fields: None, precision: None })
        }
        Value::Uuid(bytes) => quoted(shown(&|text| crate::text::uuid(text, bytes))),
    }
}

fn cast_of(expr: Expr, data_type: SqlType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

/// A number in parentheses of its own where it is negative: `-$1` is the negative of it.
fn signed(negative: bool, digits: String) -> Expr {
    let number = Expr::Value(Literal::Number(digits, false).into());
    if !negative {
        return number;
    }
    Expr::Nested(Box::new(Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::parse;

    #[test]
    fn parameters_are_bound_and_counted() {
        let mut statement = parse("SELECT $1, a FROM t WHERE b = $2 LIMIT $3").unwrap().remove(0);
        assert_eq!(count(&statement), 3);
        assert!(bind(&mut statement.clone(), &[Value::Null]).is_err());
        let fine = Value::Decimal { unscaled: 1, scale: 39 };
        assert!(matches!(bind(&mut statement.clone(), &[fine.clone(), fine.clone(), fine]), Err(Error::Input(_))));
        bind(&mut statement, &[Value::from("x"), Value::Integer(-2), Value::Integer(5)]).unwrap();
        assert_eq!(statement.to_string(), "SELECT 'x', a FROM t WHERE b = (-2) LIMIT 5");
    }
}
