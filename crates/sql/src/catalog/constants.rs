//! What is the same for the whole statement, worked out before it is planned: the query library wants arguments in FROM to be plain.

use datafusion::sql::sqlparser::ast::{
    Array, BinaryOperator, CastKind, DataType as SqlType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, ObjectNamePart, Value as Literal, ValueWithSpan,
};

use super::texts::parse_ident;
use super::words::Said;
use crate::error::{Error, Result};
use crate::idioms::text_of;
use crate::statement::{fold, quoted};

/// The value of an expression that the session alone decides.
///
/// # Errors
/// [`Error::NotFound`] for settings that are not there.
pub(super) fn folded(expr: &Expr, said: &Said) -> Result<Option<Expr>> {
    match expr {
        Expr::Function(function) => called(function, said),
        Expr::Like { negated, any: false, expr, pattern, escape_char } => Ok(text(pattern).map(|pattern| Expr::Like {
            negated: *negated,
            any: false,
            expr: expr.clone(),
            pattern: Box::new(quoted(pattern)),
            escape_char: escape_char.clone(),
        })),
        _ => Ok(None),
    }
}

fn called(function: &Function, said: &Said) -> Result<Option<Expr>> {
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return Ok(None) };
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let plain = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    let Some(arguments) = list.args.iter().map(plain).collect::<Option<Vec<Expr>>>() else { return Ok(None) };
    Ok(match (fold(name).as_str(), arguments.as_slice()) {
        ("current_setting", [name]) => Some(setting(name, false, said)?).flatten(),
        ("current_setting", [name, missing]) => setting(name, truth(missing) == Some(true), said)?,
        ("current_schemas", [implicit]) => truth(implicit).map(|implicit| match implicit {
            true => texts([super::SCHEMA, crate::SCHEMA]),
            false => texts([crate::SCHEMA]),
        }),
        ("string_to_array", [of, between]) => split(of, between),
        ("parse_ident", [name]) => text_of(name).and_then(parse_ident).map(texts),
        ("array_lower", [list, one]) if is_one(one) => size(list).filter(|size| *size > 0).map(|_| number(1)),
        ("array_upper" | "array_length", [list, one]) if is_one(one) => size(list).filter(|size| *size > 0).map(number),
        _ => None,
    })
}

fn setting(name: &Expr, may_miss: bool, said: &Said) -> Result<Option<Expr>> {
    let Some(name) = part(name) else { return Ok(None) };
    match said.setting(&name) {
        Some(value) => Ok(Some(quoted(value))),
        None if may_miss => Ok(Some(Expr::Value(Literal::Null.into()))),
        None => Err(Error::NotFound(format!("no setting {name}: SHOW ALL lists them"))),
    }
}

fn truth(expr: &Expr) -> Option<bool> {
    match expr {
        Expr::Value(ValueWithSpan { value: Literal::Boolean(truth), .. }) => Some(*truth),
        other => crate::value::parse::boolean(text_of(other)?),
    }
}

fn split(of: &Expr, between: &Expr) -> Option<Expr> {
    let (of, between) = (text_of(of)?, text_of(between)?);
    if between.is_empty() || of.is_empty() {
        return None;
    }
    Some(texts(of.split(between)))
}

fn texts<T: Into<String>>(parts: impl IntoIterator<Item = T>) -> Expr {
    Expr::Array(Array { elem: parts.into_iter().map(quoted).collect(), named: true })
}

fn size(list: &Expr) -> Option<usize> {
    match list {
        Expr::Array(Array { elem, .. }) => Some(elem.len()),
        Expr::Nested(inner) => size(inner),
        _ => None,
    }
}

fn is_one(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(ValueWithSpan { value: Literal::Number(number, _), .. }) if number == "1")
}

fn number(number: usize) -> Expr {
    Expr::Value(Literal::Number(number.to_string(), false).into())
}

/// A text that is put together of texts.
fn text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) => text(inner),
        Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right } => Some(part(left)? + &part(right)?),
        _ => None,
    }
}

fn part(expr: &Expr) -> Option<String> {
    let is_text =
        |kind: &SqlType| matches!(kind, SqlType::Text | SqlType::Varchar(None) | SqlType::CharacterVarying(None));
    match expr {
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, format: None, .. }
            if is_text(data_type) =>
        {
            part(expr)
        }
        other => text_of(other).map(str::to_owned).or_else(|| text(other)),
    }
}
