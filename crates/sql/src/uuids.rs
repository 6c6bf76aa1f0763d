//! Texts beside UUIDs: these are texts to the query library, which would tell capitals from small letters.

use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{Expr, ExprSchemable};

use crate::coerce::CHOOSING;
use crate::text;
use crate::types::is_uuid;
use crate::value::parse;

/// The text of a UUID as we write it; anything else as it is.
pub(crate) fn as_ours(expr: Expr) -> Expr {
    let Expr::Literal(value, metadata) = expr else { return expr };
    let bytes = value.try_as_str().flatten().and_then(parse::uuid);
    let ours = bytes.and_then(|bytes| {
        let mut written = String::new();
        text::uuid(&mut written, &bytes);
        ScalarValue::Utf8(Some(written)).cast_to(&value.data_type()).ok()
    });
    Expr::Literal(ours.unwrap_or(value), metadata)
}

/// What is compared with an expression, in the form that ours have if that is a UUID.
pub(crate) fn beside(expr: Expr, other: &Expr, schema: &DFSchema) -> Expr {
    // Long chains are not asked for their types at every link: a text is cheap to see.
    let is_text = matches!(&expr, Expr::Literal(value, _) if value.try_as_str().flatten().is_some());
    let is_beside_uuid = is_text && other.to_field(schema).is_ok_and(|(_, field)| is_uuid(&field));
    if is_beside_uuid { as_ours(expr) } else { expr }
}

/// What chooses among UUIDs, with the quoted ones in the form that ours have: some compare them.
pub(crate) fn all_ours(mut expr: Expr) -> Expr {
    if let Expr::ScalarFunction(call) = &mut expr {
        call.args = std::mem::take(&mut call.args).into_iter().map(as_ours).collect();
    }
    expr
}

/// Whether an expression answers one of several UUIDs: to the library that is a text like any other. A quoted text among them is meant as one.
pub(crate) fn is_one_of(expr: &Expr, schema: &DFSchema) -> bool {
    let results: Vec<&Expr> = match expr {
        Expr::Case(case) => {
            let results = case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
            results.map(AsRef::as_ref).collect()
        }
        Expr::ScalarFunction(call) if call.func.name() != "make_array" && CHOOSING.contains(&call.func.name()) => {
            call.args.iter().collect()
        }
        _ => return false,
    };
    let is_literal =
        |expr: &Expr| matches!(expr, Expr::Literal(value, _) if value.is_null() || value.try_as_str().is_some());
    let of_uuids = |expr: &Expr| expr.to_field(schema).is_ok_and(|(_, field)| is_uuid(&field));
    results.iter().any(|result| of_uuids(result)) && results.iter().all(|result| is_literal(result) || of_uuids(result))
}
