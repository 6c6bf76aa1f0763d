//! Casts to types that the catalogue alone has a use for.
//!
//! | PostgreSQL | here |
//! |---|---|
//! | `x::regclass`, `::regtype`, `::regnamespace`, `::regrole` | the number; with `::text` behind it the name |
//! | `x::regproc`, `::name`, `::"char"` | texts |
//! | `x::oid` | an unsigned number |
//! | `x::text[]`, `::name[]`, `::int2[]`, `::oid[]` | a list; one that is written out, its parts |
//! | `'{1,2}'::int[]` and lists of other types | its parts; of a parameter that is not given, NULL |

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    Array, ArrayElemTypeDef, CaseWhen, CastKind, DataType as SqlType, ExactNumberInfo, Expr, ObjectName,
    ObjectNamePart, Value as Literal, ValueWithSpan,
};

use super::SCHEMA;
use super::functions_list::{INTEGERS, OBJECTS, REGCLASS, REGNAMESPACE, REGPROC, REGROLE, REGTYPE, TEXTS};
use super::texts::parts;
use super::words::as_text;
use crate::dialect::call;
use crate::idioms::text_of;
use crate::statement::{fold, object, quoted};
use crate::value::parse;

/// What a cast is here, if that is another one.
pub(super) fn rewritten(expr: &Expr) -> Option<Expr> {
    let Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr: inner, data_type, format: None, .. } = expr
    else {
        return None;
    };
    if let Some(function) = function(data_type) {
        return Some(call(function, vec![inner.as_ref().clone()]));
    }
    if let SqlType::Array(of) = data_type {
        return list(inner, of);
    }
    let kind = plain(data_type);
    // A number of an object that is made text is its name.
    let is_text = matches!(kind.as_ref().unwrap_or(data_type), SqlType::Text | SqlType::Varchar(None));
    if is_text
        && let Expr::Function(function) = inner.as_ref()
        && let Some(name) = as_text(function)
    {
        let mut function = function.clone();
        function.name = object(&name);
        return Some(Expr::Function(function));
    }
    let data_type = kind?;
    Some(Expr::Cast { kind: CastKind::Cast, expr: inner.clone(), data_type, array: false, format: None })
}

/// The name of a type, without the schema of the catalogue, and whether it is in quotes.
fn name(kind: &SqlType) -> Option<(String, bool)> {
    let SqlType::Custom(ObjectName(parts), _) = kind else { return None };
    let name = match parts.as_slice() {
        [ObjectNamePart::Identifier(name)] => name,
        [ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(name)] if fold(schema) == SCHEMA => name,
        _ => return None,
    };
    Some((fold(name), name.quote_style.is_some()))
}

fn function(kind: &SqlType) -> Option<&'static str> {
    if matches!(kind, SqlType::Regclass) {
        return Some(REGCLASS);
    }
    Some(match name(kind)?.0.as_str() {
        "regclass" => REGCLASS,
        "regtype" => REGTYPE,
        "regnamespace" => REGNAMESPACE,
        "regrole" => REGROLE,
        "regproc" | "regprocedure" => REGPROC,
        _ => return None,
    })
}

/// A type with its schema, or one that the query library does not know by this name.
fn plain(kind: &SqlType) -> Option<SqlType> {
    let (name, is_quoted) = name(kind)?;
    Some(match name.as_str() {
        "oid" | "xid" => SqlType::IntegerUnsigned(None),
        "char" if is_quoted => SqlType::Char(None),
        "name" | "text" | "cstring" => SqlType::Text,
        "bpchar" | "varchar" => SqlType::Varchar(None),
        "bool" => SqlType::Bool,
        "int2" => SqlType::SmallInt(None),
        "int4" => SqlType::Integer(None),
        "int8" => SqlType::BigInt(None),
        "float4" => SqlType::Real,
        "float8" => SqlType::DoublePrecision,
        "uuid" => SqlType::Uuid,
        "date" => SqlType::Date,
        _ => return None,
    })
}

fn list(inner: &Expr, of: &ArrayElemTypeDef) -> Option<Expr> {
    let (ArrayElemTypeDef::SquareBracket(element, _) | ArrayElemTypeDef::AngleBracket(element)) = of else {
        return None;
    };
    let named = name(element).map(|(name, _)| name);
    let function = match (element.as_ref(), named.as_deref()) {
        (SqlType::Text, _) | (_, Some("text" | "name" | "char" | "regproc")) => TEXTS,
        (SqlType::Regclass, _) | (_, Some("oid" | "regclass" | "regtype" | "regnamespace" | "regrole" | "xid")) => {
            OBJECTS
        }
        (SqlType::Int2(_), _) | (_, Some("int2")) => INTEGERS,
        _ => return parts_of(inner, element),
    };
    match texts_in(inner) {
        Some(elements) => {
            let elem: Vec<Expr> = elements.into_iter().map(|part| cast_to(part, element)).collect();
            match elem.is_empty() {
                true => Some(call(function, vec![inner.clone()])),
                false => Some(Expr::Array(Array { elem, named: true })),
            }
        }
        None => Some(call(function, vec![inner.clone()])),
    }
}

/// A list whose parts are known, each of them as this type.
fn parts_of(list: &Expr, element: &SqlType) -> Option<Expr> {
    let written = |elem: Vec<Expr>| Expr::Array(Array { elem, named: true });
    if let Some(parts) = texts_in(list) {
        let element = &with_digits(element, &parts);
        return Some(written(parts.into_iter().map(|part| cast_to(part, element)).collect()));
    }
    match list {
        Expr::Nested(inner) => parts_of(inner, element),
        Expr::Array(Array { elem, .. }) => {
            Some(written(elem.iter().map(|part| cast_to(part.clone(), element)).collect()))
        }
        Expr::Value(ValueWithSpan { value: Literal::Null | Literal::Placeholder(_), .. }) => {
            // A list of this type that is NULL.
            let null = || Expr::Value(Literal::Null.into());
            let never = CaseWhen {
                condition: Expr::Value(Literal::Boolean(false).into()),
                result: written(vec![cast_to(null(), element)]),
            };
            let (case_token, end_token) = (AttachedToken::empty(), AttachedToken::empty());
            Some(Expr::Case { case_token, end_token, operand: None, conditions: vec![never], else_result: None })
        }
        _ => None,
    }
}

/// NUMERIC with as many digits behind the point as the longest of these parts has: in a list all have as many.
fn with_digits(element: &SqlType, parts: &[Expr]) -> SqlType {
    let (SqlType::Numeric(ExactNumberInfo::None) | SqlType::Decimal(ExactNumberInfo::None)) = element else {
        return element.clone();
    };
    let digits = |part: &Expr| Some(i64::from(parse::decimal(text_of(part)?.trim())?.1.max(0)));
    let scale = parts.iter().filter_map(digits).max().unwrap_or(0);
    SqlType::Numeric(ExactNumberInfo::PrecisionAndScale(38, scale.min(38)))
}

fn cast_to(expr: Expr, data_type: &SqlType) -> Expr {
    let (kind, data_type) = (CastKind::Cast, data_type.clone());
    let cast = Expr::Cast { kind, expr: Box::new(expr), data_type, array: false, format: None };
    rewritten(&cast).unwrap_or(cast)
}

/// The parts of an array that is written as a text.
pub(super) fn texts_in(expr: &Expr) -> Option<Vec<Expr>> {
    let null = || Expr::Value(ValueWithSpan::from(Literal::Null));
    let parts = parts(text_of(expr)?)?;
    Some(parts.into_iter().map(|part| part.map_or_else(null, quoted)).collect())
}
