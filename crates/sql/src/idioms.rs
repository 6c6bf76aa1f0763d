//! Expressions of PostgreSQL in terms that the query library has.
//!
//! | PostgreSQL | here |
//! |---|---|
//! | `(a, b) < (c, d)`, `(a, b) IN ((1, 2))`, `ROW(a, b) IS NULL` | comparisons of their parts |
//! | `LIKE 'a#_' ESCAPE '#'` | `LIKE 'a\_'` |
//! | `SIMILAR TO 'a(b|c)%'` | a regular expression |
//! | `INTERVAL '1 day 04:05'`, `INTERVAL '1-2'` | hours and minutes, years and months |
//! | `'1.25'::NUMERIC` | with the digits that are written |
//! | `x AT TIME ZONE z`, `EXTRACT(part FROM x)` | functions that know instants and fractions |

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType as SqlType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Interval, ObjectNamePart, UnaryOperator, Value as Literal, ValueWithSpan,
};

use crate::date_parts;
use crate::dialect::call;
use crate::functions;
use crate::statement::quoted;
use crate::value::parse;

/// Digits of a number that is a NUMERIC; one with more is a DOUBLE PRECISION.
const DIGITS_MAX: i64 = 38;

/// What an expression is here, if that is another one.
pub(crate) fn rewritten(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::BinaryOp { left, op, right } => match (left.as_ref(), right.as_ref()) {
            (Expr::Tuple(left), Expr::Tuple(right)) => compare_rows(left, op, right),
            _ => None,
        },
        Expr::InList { expr, list, negated } => match expr.as_ref() {
            Expr::Tuple(row) => row_in(row, list, *negated),
            _ => None,
        },
        // The library takes the sign for that of the first part alone.
        Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } if matches!(**inner, Expr::Interval(_)) => {
            let (op, expr) = (UnaryOperator::Minus, Box::new(nested((**inner).clone())));
            Some(Expr::UnaryOp { op, expr })
        }
        Expr::IsNull(inner) => match inner.as_ref() {
            Expr::Tuple(row) => Some(each(row, Expr::IsNull)),
            _ => None,
        },
        Expr::IsNotNull(inner) => match inner.as_ref() {
            Expr::Tuple(row) => Some(each(row, Expr::IsNotNull)),
            _ => None,
        },
        Expr::Function(function) => row(function).map(Expr::Tuple),
        Expr::Between { expr, negated, low, high } if is_column(expr) => Some(between(expr, low, high, *negated)),
        Expr::Value(ValueWithSpan { value, .. }) => literal(value),
        Expr::Interval(interval) => whole_interval(interval),
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, .. } => cast(expr, data_type),
        Expr::Like { negated, any: false, expr, pattern, escape_char: Some(escape) } => {
            let pattern = escaped_pattern(text_of(pattern)?, text_in(escape)?)?;
            let (expr, pattern) = (expr.clone(), Box::new(quoted(pattern)));
            Some(Expr::Like { negated: *negated, any: false, expr, pattern, escape_char: None })
        }
        Expr::ILike { negated, any: false, expr, pattern, escape_char: Some(escape) } => {
            let pattern = escaped_pattern(text_of(pattern)?, text_in(escape)?)?;
            let (expr, pattern) = (expr.clone(), Box::new(quoted(pattern)));
            Some(Expr::ILike { negated: *negated, any: false, expr, pattern, escape_char: None })
        }
        Expr::SimilarTo { negated, expr, pattern, escape_char: None } => {
            let pattern = regular_expression(text_of(pattern)?)?;
            let op = if *negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
            Some(nested(binary((**expr).clone(), op, quoted(pattern))))
        }
        Expr::AtTimeZone { timestamp, time_zone } => {
            Some(call(functions::AT_ZONE, vec![(**timestamp).clone(), (**time_zone).clone()]))
        }
        Expr::Extract { field, expr, .. } => Some(date_parts::extract(&field.to_string(), expr)),
        Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("current_schema") => {
            Some(call("current_schema", Vec::new()))
        }
        _ => None,
    }
}

/// The text of a quoted literal.
pub(crate) fn text_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => text_in(value),
        _ => None,
    }
}

/// The text of a quoted value.
pub(crate) fn text_in(value: &ValueWithSpan) -> Option<&str> {
    match &value.value {
        Literal::SingleQuotedString(text) | Literal::EscapedStringLiteral(text) => Some(text),
        _ => None,
    }
}

fn is_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn cast_to(expr: Expr, data_type: SqlType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

fn between(expr: &Expr, low: &Expr, high: &Expr, negated: bool) -> Expr {
    let side = |op, limit: &Expr| binary(expr.clone(), op, nested(limit.clone()));
    nested(match negated {
        false => binary(side(BinaryOperator::GtEq, low), BinaryOperator::And, side(BinaryOperator::LtEq, high)),
        true => binary(side(BinaryOperator::Lt, low), BinaryOperator::Or, side(BinaryOperator::Gt, high)),
    })
}

/// The parts of a row that is written with its word.
fn row(function: &Function) -> Option<Vec<Expr>> {
    let [ObjectNamePart::Identifier(name)] = &function.name.0[..] else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let part = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    let is_row = name.quote_style.is_none() && name.value.eq_ignore_ascii_case("row") && !list.args.is_empty();
    is_row.then(|| list.args.iter().map(part).collect())?
}

/// A row is NULL where all parts are, and is not where none is. A row in it is a part that is there, whatever it holds.
fn each(row: &[Expr], test: fn(Box<Expr>) -> Expr) -> Expr {
    let part = |part: &Expr| match part {
        Expr::Tuple(_) => test(Box::new(quoted(""))),
        part => test(Box::new(part.clone())),
    };
    nested(
        row.iter().map(part).reduce(|all, part| binary(all, BinaryOperator::And, part)).unwrap_or_else(|| quoted("")),
    )
}

/// A comparison of two parts, which may be rows.
fn compare(left: &Expr, op: BinaryOperator, right: &Expr) -> Expr {
    let rows = match (left, right) {
        (Expr::Tuple(left), Expr::Tuple(right)) => compare_rows(left, &op, right),
        _ => None,
    };
    rows.unwrap_or_else(|| binary(left.clone(), op, right.clone()))
}

/// Rows are equal where all parts are, and in the order of the first part that differs.
fn compare_rows(left: &[Expr], op: &BinaryOperator, right: &[Expr]) -> Option<Expr> {
    if left.len() != right.len() || left.is_empty() {
        return None;
    }
    let (strict, least) = match op {
        BinaryOperator::Eq => return Some(rows_equal(left, right)),
        BinaryOperator::NotEq => {
            return Some(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(rows_equal(left, right)) });
        }
        BinaryOperator::Lt | BinaryOperator::LtEq => (BinaryOperator::Lt, BinaryOperator::LtEq),
        BinaryOperator::Gt | BinaryOperator::GtEq => (BinaryOperator::Gt, BinaryOperator::GtEq),
        _ => return None,
    };
    let last = left.len() - 1;
    let mut order = compare(&left[last], op.clone(), &right[last]);
    for part in (0..last).rev() {
        // `a >= x AND (a > x OR ...)` is `a > x OR (a = x AND ...)`, also of NULLs, and says at once from where on an index is read.
        let within = compare(&left[part], least.clone(), &right[part]);
        let before = compare(&left[part], strict.clone(), &right[part]);
        let rest = nested(binary(before, BinaryOperator::Or, nested(order)));
        order = binary(within, BinaryOperator::And, rest);
    }
    Some(nested(order))
}

fn rows_equal(left: &[Expr], right: &[Expr]) -> Expr {
    let parts = left.iter().zip(right).map(|(left, right)| compare(left, BinaryOperator::Eq, right));
    nested(parts.reduce(|all, part| binary(all, BinaryOperator::And, part)).unwrap_or_else(|| quoted("")))
}

fn row_in(row: &[Expr], list: &[Expr], negated: bool) -> Option<Expr> {
    let mut any: Option<Expr> = None;
    for item in list {
        let Expr::Tuple(item) = item else { return None };
        if item.len() != row.len() {
            return None;
        }
        let equal = rows_equal(row, item);
        any = Some(any.map_or(equal.clone(), |any| binary(any, BinaryOperator::Or, equal)));
    }
    let any = nested(any?);
    Some(if negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(any) } } else { any })
}

fn literal(value: &Literal) -> Option<Expr> {
    match value {
        Literal::UnicodeStringLiteral(text) => Some(quoted(text.clone())),
        Literal::Number(text, _) => {
            let (digits, exponent) = text.split_once(['e', 'E'])?;
            let written = exponent.parse().ok().and_then(|exponent| written_out(digits, exponent));
            // Less than any double is nothing; more than any has no value, and is refused where it is asked for.
            let is_nothing = text.parse::<f64>().is_ok_and(|number| number == 0.0);
            let text = if is_nothing { "0" } else { text.as_str() };
            Some(written.unwrap_or_else(|| cast_to(quoted(text), SqlType::Double(ExactNumberInfo::None))))
        }
        _ => None,
    }
}

/// A number without its exponent, which the library takes for digits behind the point, fewer than none; none: it is no NUMERIC.
fn written_out(digits: &str, exponent: i32) -> Option<Expr> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let point = i64::from(u32::try_from(whole.len()).ok()?) + i64::from(exponent);
    let digits = [whole, fraction].concat();
    let count = i64::from(u32::try_from(digits.len()).ok()?);
    if point.max(0).max(count) - point.min(0) > DIGITS_MAX {
        return None;
    }
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
    let number = |text: String| Expr::Value(Literal::Number(text, false).into());
    if point >= count {
        // It would be an integer.
        let text = [digits, zeros(point - count)].concat();
        let precision = ExactNumberInfo::PrecisionAndScale(text.len() as u64, 0);
        return Some(cast_to(number(text), SqlType::Numeric(precision)));
    }
    let at = usize::try_from(point.max(0)).ok()?;
    Some(number(format!("{}.{}{}", if at == 0 { "0" } else { &digits[..at] }, zeros(-point), &digits[at..])))
}

fn cast(expr: &Expr, kind: &SqlType) -> Option<Expr> {
    match kind {
        SqlType::Interval { .. } => {
            let text = text_of(expr)?;
            // As many seconds, if it says no unit.
            let is_number = scale_of(text.trim()).is_some();
            let text = if is_number { format!("{} seconds", text.trim()) } else { interval_text(text)? };
            Some(cast_to(quoted(text), kind.clone()))
        }
        SqlType::Numeric(ExactNumberInfo::None) | SqlType::Decimal(ExactNumberInfo::None) => {
            let scale = match expr {
                Expr::Value(ValueWithSpan { value: Literal::Number(text, _), .. }) => scale_of(text)?,
                _ => scale_of(text_of(expr)?.trim()).or_else(|| scale_of_exponent(text_of(expr)?))?,
            };
            Some(cast_to(expr.clone(), SqlType::Numeric(ExactNumberInfo::PrecisionAndScale(38, scale))))
        }
        _ => None,
    }
}

/// How many digits a number has behind its point, if it is written plainly and fits.
fn scale_of(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let fits = !digits.is_empty() && plain(whole) && plain(fraction) && whole.len() + fraction.len() <= 38;
    fits.then_some(fraction.len() as i64)
}

/// The same of a number with an exponent.
fn scale_of_exponent(text: &str) -> Option<i64> {
    let (unscaled, scale) = parse::decimal(text)?;
    let whole = i64::from(unscaled.unsigned_abs().checked_ilog10().unwrap_or(0)) + 1 - i64::from(scale);
    let scale = i64::from(scale.max(0));
    (whole.max(0) + scale <= 38).then_some(scale)
}

fn whole_interval(interval: &Interval) -> Option<Expr> {
    if interval.leading_field.is_some() {
        return None;
    }
    let text = interval_text(text_of(&interval.value)?)?;
    Some(Expr::Interval(Interval { value: Box::new(quoted(text)), ..interval.clone() }))
}

/// An interval with times (`04:05:06`) and years with months (`1-2`) written out; `None` if there are none.
pub(crate) fn interval_text(text: &str) -> Option<String> {
    let mut changed = false;
    let parts = text.split_whitespace().map(|part| {
        let (sign, digits) = match part.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", part.strip_prefix('+').unwrap_or(part)),
        };
        let written = clock(sign, digits).or_else(|| years(sign, digits));
        changed |= written.is_some();
        written.unwrap_or_else(|| part.to_owned())
    });
    let text = parts.collect::<Vec<_>>().join(" ");
    changed.then_some(text)
}

fn clock(sign: &str, digits: &str) -> Option<String> {
    let mut parts = digits.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let sound = parts.next().is_none() && [hours, minutes, seconds].into_iter().all(plain);
    sound.then(|| format!("{sign}{hours} hours {sign}{minutes} minutes {sign}{seconds} seconds"))
}

fn years(sign: &str, digits: &str) -> Option<String> {
    let (years, months) = digits.split_once('-')?;
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (plain(years) && plain(months)).then(|| format!("{sign}{years} years {sign}{months} months"))
}

/// A LIKE pattern whose escape letter is another than the backslash, with the backslash.
fn escaped_pattern(pattern: &str, escape: &str) -> Option<String> {
    let mut letters = escape.chars();
    let escape = letters.next();
    if letters.next().is_some() {
        return None;
    }
    let mut out = String::new();
    let mut rest = pattern.chars();
    while let Some(letter) = rest.next() {
        if Some(letter) == escape {
            out.push('\\');
            out.push(rest.next()?);
        } else {
            if letter == '\\' {
                out.push('\\');
            }
            out.push(letter);
        }
    }
    Some(out)
}

/// The regular expression that means what a pattern of SIMILAR TO means.
fn regular_expression(pattern: &str) -> Option<String> {
    let mut out = String::from("^(?:");
    let mut letters = pattern.chars();
    let mut set = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                let escaped = letters.next()?;
                if !escaped.is_alphanumeric() {
                    out.push('\\');
                }
                out.push(escaped);
            }
            '[' => {
                set = true;
                out.push(letter);
            }
            ']' => {
                set = false;
                out.push(letter);
            }
            _ if set => out.push(letter),
            '%' => out.push_str("(?s:.*)"),
            '_' => out.push_str("(?s:.)"),
            '.' | '^' | '$' => {
                out.push('\\');
                out.push(letter);
            }
            letter => out.push(letter),
        }
    }
    out.push_str(")$");
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_become_what_they_mean() {
        assert_eq!(escaped_pattern("a#_b\\%", "#").as_deref(), Some("a\\_b\\\\%"));
        assert_eq!(escaped_pattern("a#", "#"), None);
        assert_eq!(regular_expression("a.(b|c)%").as_deref(), Some("^(?:a\\.(b|c)(?s:.*))$"));
        assert_eq!(interval_text("1 day 04:05:06").as_deref(), Some("1 day 04 hours 05 minutes 06 seconds"));
        assert_eq!(interval_text("-1-2").as_deref(), Some("-1 years -2 months"));
        assert_eq!(interval_text("1 day"), None);
        assert_eq!(scale_of("-1.250"), Some(3));
        assert_eq!(scale_of("1e5"), None);
    }
}
