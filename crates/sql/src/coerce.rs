//! Literals become what they are compared with, as in PostgreSQL: `bytes = '\x01'`, `truth = 't'`, `'5' + 1`.
//!
//! The query library instead looks for a type that both sides have. It finds texts for bytes, which compare differently,
//! and exact numbers for floating-point ones, which those do not fit into.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, DataFusionError};
use datafusion::functions::unicode;
use datafusion::logical_expr::expr::{Between, BinaryExpr, Case, Cast, InList};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Union, lit};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::error::Error;
use crate::functions;
use crate::interval_order;
use crate::rewriting;
use crate::times::{self, Side};
use crate::types::result_name;
use crate::uuids;
use crate::value::parse;

/// Functions that answer one of their arguments.
pub(crate) const CHOOSING: [&str; 5] = ["coalesce", "greatest", "least", "make_array", "nullif"];

/// What texts beside NUMERIC have to be.
const NUMERIC: &str = "numeric, of 76 digits at most";

/// The two sides of an operator.
///
/// # Errors
/// [`Error::Sql`] for sides that do not compare, and texts that are not what they would have to be.
pub(crate) fn operands(
    left: Expr,
    op: &BinaryOperator,
    right: Expr,
    schema: &DFSchema,
) -> Result<(Expr, Expr), DataFusionError> {
    use BinaryOperator::{Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Modulo, Multiply, NotEq, Plus};
    let (left_is_text, right_is_text) = (is_text(&left), is_text(&right));
    match op {
        Eq | NotEq | Lt | LtEq | Gt | GtEq => {
            let (left, right) = both_beside(left, right, schema);
            let (Ok(left_kind), Ok(right_kind)) = (left.get_type(schema), right.get_type(schema)) else {
                return Ok((left, right));
            };
            comparable(&left_kind, op, &right_kind)?;
            days((left, left_kind), op, (right, right_kind))
        }
        // Long chains are not asked for their types at every link: a literal that stands here is cheap to see.
        Plus | Minus | Multiply | Divide | Modulo if left_is_text != right_is_text => {
            let kind = if left_is_text { right.get_type(schema) } else { left.get_type(schema) };
            let Some(kind) = kind.ok().filter(DataType::is_numeric) else { return Ok((left, right)) };
            let number = |expr: Expr| match numeral(&expr, &kind)? {
                Some(number) => Ok::<_, DataFusionError>(number),
                None => Ok(Expr::Cast(Cast::new(Box::new(expr), kind.clone()))),
            };
            Ok(if left_is_text { (number(left)?, right) } else { (left, number(right)?) })
        }
        _ => Ok((left, right)),
    }
}

/// Two sides, each in the form that ours have if the other one is a UUID.
fn both_beside(left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    let own = uuids::beside(left, &right, schema);
    let right = uuids::beside(right, &own, schema);
    (own, right)
}

fn is_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if value.try_as_str().is_some_and(|text| text.is_some()))
}

fn comparable(left: &DataType, op: &BinaryOperator, right: &DataType) -> Result<(), DataFusionError> {
    let number = |kind: &DataType| kind.is_numeric() || *kind == DataType::Boolean;
    let time = |kind: &DataType| kind.is_temporal();
    if (time(left) && number(right)) || (number(left) && time(right)) {
        let (left, right) = (result_name(left), result_name(right));
        return Err(Error::Sql(format!("there is no {left} {op} {right}: cast one side")).into());
    }
    Ok(())
}

/// The two sides of a comparison, of which a day beside a time that is in no row compares with a day: an index of days serves it.
fn days(left: Side, op: &BinaryOperator, right: Side) -> Result<(Expr, Expr), DataFusionError> {
    use BinaryOperator::{Gt, GtEq, Lt, LtEq};
    let microseconds = DataType::Timestamp(TimeUnit::Microsecond, None);
    let is_fixed = |side: &Side| side.1 == microseconds && !side.0.any_column_refs() && !is_text(&side.0);
    let day = |expr: Expr| Expr::Cast(Cast::new(Box::new(expr), DataType::Date32));
    // The first day that does not begin before it.
    let next = |expr: Expr| {
        let almost_a_day = ScalarValue::new_interval_mdn(0, 0, 86_399_999_999_000);
        day(Expr::BinaryExpr(BinaryExpr::new(
            Box::new(expr),
            Operator::Plus,
            Box::new(Expr::Literal(almost_a_day, None)),
        )))
    };
    match op {
        GtEq | Lt if left.1 == DataType::Date32 && is_fixed(&right) => Ok((left.0, next(right.0))),
        Gt | LtEq if left.1 == DataType::Date32 && is_fixed(&right) => Ok((left.0, day(right.0))),
        LtEq | Gt if right.1 == DataType::Date32 && is_fixed(&left) => Ok((next(left.0), right.0)),
        Lt | GtEq if right.1 == DataType::Date32 && is_fixed(&left) => Ok((day(left.0), right.0)),
        _ => compared(left, right),
    }
}

/// The two sides of a comparison, each made what the other one compares with.
fn compared(left: Side, right: Side) -> Result<(Expr, Expr), DataFusionError> {
    let (left_kind, right_kind) = (left.1.clone(), right.1.clone());
    let (left, right) = (numbered(left, &right_kind)?, numbered(right, &left_kind)?);
    if let Some(wide) = wide_enough(&left.1, &right.1) {
        let cast = |expr: Expr| Expr::Cast(Cast::new(Box::new(expr), wide.clone()));
        return Ok((cast(left.0), cast(right.0)));
    }
    if interval_order::is_interval(&left.1) && interval_order::is_interval(&right.1) {
        return Ok((interval_order::length(left.0), interval_order::length(right.0)));
    }
    let (left, right) = times::sides(left, right);
    Ok((fitting(left.0, &left.1, &right.1)?, fitting(right.0, &right.1, &left.1)?))
}

/// What a text says beside a NUMERIC: all its digits, whatever room a column has for them. None for everything else.
fn numeral(expr: &Expr, other: &DataType) -> Result<Option<Expr>, DataFusionError> {
    let Expr::Literal(value, _) = expr else { return Ok(None) };
    let (Some(Some(text)), true) = (value.try_as_str(), other.is_decimal()) else { return Ok(None) };
    let number = parse::numeric(text).ok_or_else(|| Error::NotValid(format!("a text is not a valid {NUMERIC}")))?;
    Ok(Some(Expr::Literal(number, None)))
}

/// A side that is a text beside a NUMERIC, as a number.
fn numbered(side: Side, other: &DataType) -> Result<Side, DataFusionError> {
    match numeral(&side.0, other)? {
        Some(Expr::Literal(value, metadata)) => {
            let kind = value.data_type();
            Ok((Expr::Literal(value, metadata), kind))
        }
        _ => Ok(side),
    }
}

/// Results or arguments of which one is a NUMERIC: texts among them are numbers, unless one is a floating-point number, which all become.
fn all_numbered(results: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>, DataFusionError> {
    let kinds: Vec<_> = results.iter().filter_map(|result| result.get_type(schema).ok()).collect();
    let numeric = kinds.iter().find(|kind| kind.is_decimal());
    let Some(numeric) = numeric.filter(|_| !kinds.iter().any(DataType::is_floating)) else { return Ok(results) };
    let number = |result: Expr| Ok(numeral(&result, numeric)?.unwrap_or(result));
    results.into_iter().map(number).collect()
}

/// The type in which two exact numbers compare, if it is one that the library does not come to: its own has the digits behind the point of one
/// side and those before it of the other only as far as there is room, and then a number of the column is out of range.
fn wide_enough(left: &DataType, right: &DataType) -> Option<DataType> {
    let ((left_whole, left_scale), (right_whole, right_scale)) = (digits(left)?, digits(right)?);
    let (whole, scale) = (left_whole.max(right_whole), left_scale.max(right_scale));
    let is_wide = whole + scale > i16::from(DECIMAL128_MAX_PRECISION);
    let scale = scale.min(i16::from(DECIMAL256_MAX_PRECISION) - whole);
    is_wide.then_some(DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale as i8))
}

/// Digits of an exact number before its point, and behind it.
fn digits(kind: &DataType) -> Option<(i16, i16)> {
    match kind {
        DataType::Int16 => Some((5, 0)),
        DataType::Int32 => Some((10, 0)),
        DataType::Int64 => Some((19, 0)),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            Some((i16::from(*precision) - i16::from(*scale), i16::from(*scale)))
        }
        _ => None,
    }
}

/// A side of a comparison, given the type of the other one.
fn fitting(expr: Expr, own: &DataType, other: &DataType) -> Result<Expr, DataFusionError> {
    // Both become double, as in PostgreSQL: an integer made REAL would be rounded to another one.
    let is_number = matches!(own, DataType::Decimal128(..) | DataType::Decimal256(..))
        || (own.is_integer() && *other == DataType::Float32);
    if is_number && other.is_floating() {
        return Ok(match &expr {
            Expr::Literal(value, metadata) => Expr::Literal(value.cast_to(&DataType::Float64)?, metadata.clone()),
            _ => Expr::Cast(Cast::new(Box::new(expr), DataType::Float64)),
        });
    }
    let Expr::Literal(value, _) = &expr else { return Ok(expr) };
    let Some(Some(text)) = value.try_as_str() else { return Ok(expr) };
    let wrong = |kind: &str| Error::NotValid(format!("a text is not a valid {kind}"));
    let read = match other {
        DataType::BinaryView | DataType::Binary | DataType::LargeBinary => {
            let bytes = parse::bytea(text).ok_or_else(|| wrong("bytea"))?;
            ScalarValue::BinaryView(Some(bytes)).cast_to(other)?
        }
        DataType::Boolean => ScalarValue::Boolean(Some(parse::boolean(text).ok_or_else(|| wrong("boolean"))?)),
        kind if kind.is_decimal() => parse::numeric(text).ok_or_else(|| wrong(NUMERIC))?,
        _ => return Ok(expr),
    };
    Ok(Expr::Literal(read, None))
}

/// The comparisons that the library plans without asking for operators: IN, BETWEEN, CASE, IS DISTINCT FROM.
pub(crate) fn unasked(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    let coerced = plan.transform_up_with_subqueries(|plan| {
        let plan = floating_columns(plan)?;
        let mut schema = DFSchema::empty();
        for input in plan.inputs() {
            schema.merge(input.schema());
        }
        rewriting::of_node(plan, |expr| unasked_in(expr, &schema))
    })?;
    Ok(coerced.data)
}

/// As [`unasked`], for one expression.
pub(crate) fn unasked_in(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>, DataFusionError> {
    let side = |expr: &Expr| Some((expr.clone(), expr.get_type(schema).ok()?));
    let expr = floating_results(numbered_results(beside_uuid(expr, schema), schema)?, schema);
    if uuids::is_one_of(&expr, schema) {
        return Ok(Transformed::yes(functions::as_uuid(uuids::all_ours(expr))));
    }
    match &expr {
        Expr::InList(InList { expr: one, list, negated }) => {
            let Some(one) = side(one) else { return Ok(Transformed::no(expr)) };
            let number = |item: &Expr| Ok(numeral(item, &one.1)?.unwrap_or_else(|| item.clone()));
            let list = &list.iter().map(number).collect::<Result<Vec<_>, DataFusionError>>()?;
            if let Some(any) = any_of_wide(&one, list, schema)? {
                return Ok(Transformed::yes(if *negated { Expr::Not(Box::new(any)) } else { any }));
            }
            let fit = |item: &Expr| beside(item, &one, schema);
            let list = list.iter().map(fit).collect::<Result<_, _>>()?;
            Ok(Transformed::yes(Expr::InList(InList { expr: Box::new(one.0), list, negated: *negated })))
        }
        Expr::Case(Case { expr: Some(one), when_then_expr, else_expr }) => {
            let Some(one) = side(one) else { return Ok(Transformed::no(expr)) };
            let fit = |(when, then): &(Box<Expr>, Box<Expr>)| Ok((Box::new(beside(when, &one, schema)?), then.clone()));
            let cases = when_then_expr.iter().map(fit).collect::<Result<_, DataFusionError>>()?;
            Ok(Transformed::yes(Expr::Case(Case::new(Some(Box::new(one.0)), cases, else_expr.clone()))))
        }
        Expr::Between(Between { expr: one, negated, low, high }) if !one.is_volatile() => {
            let (Some(one), Some(low), Some(high)) = (side(one), side(low), side(high)) else {
                return Ok(Transformed::no(expr));
            };
            let has_text = [&one, &low, &high].iter().any(|(side, _)| is_text(side));
            let (low, high) = (numbered(low, &one.1)?, numbered(high, &one.1)?);
            let one = numbered(one, if low.1.is_decimal() { &low.1 } else { &high.1 })?;
            let is_wide = |kind: &DataType| wide_enough(&one.1, kind).is_some();
            let is_ours = |kind: &DataType| {
                let is_numeral = has_text && kind.is_decimal();
                kind.is_temporal() || kind.is_binary() || kind.is_floating() || is_numeral || is_wide(kind)
            };
            if ![&one, &low, &high].iter().any(|(_, kind)| is_ours(kind)) {
                return Ok(Transformed::no(expr));
            }
            let (above, low) = days(one.clone(), &BinaryOperator::GtEq, low)?;
            let (below, high) = days(one, &BinaryOperator::LtEq, high)?;
            let within = above.gt_eq(low).and(below.lt_eq(high));
            Ok(Transformed::yes(if *negated { Expr::Not(Box::new(within)) } else { within }))
        }
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::IsDistinctFrom | Operator::IsNotDistinctFrom),
            right,
        }) => {
            let (Some(left), Some(right)) = (side(left), side(right)) else { return Ok(Transformed::no(expr)) };
            let (left, right) = compared(left, right)?;
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), *op, Box::new(right)))))
        }
        _ => Ok(Transformed::no(expr)),
    }
}

/// What is put together with texts, as a cast shows it, where the library would write it in its own way.
pub(crate) fn shown(expr: Expr, schema: &DFSchema) -> Expr {
    let is_shown_otherwise = |kind: DataType| {
        kind == DataType::Boolean || kind.is_floating() || kind.is_temporal() || interval_order::is_interval(&kind)
    };
    if expr.get_type(schema).is_ok_and(is_shown_otherwise) { functions::as_text(expr) } else { expr }
}

/// Where one of several results is a NUMERIC, texts among them are, too.
fn numbered_results(expr: Expr, schema: &DFSchema) -> Result<Expr, DataFusionError> {
    match expr {
        Expr::Case(case) => {
            let (whens, mut results): (Vec<_>, Vec<_>) =
                case.when_then_expr.into_iter().map(|(when, then)| (when, *then)).unzip();
            let has_else = case.else_expr.is_some();
            results.extend(case.else_expr.map(|otherwise| *otherwise));
            let mut results = all_numbered(results, schema)?.into_iter().map(Box::new);
            let cases = whens.into_iter().zip(results.by_ref()).collect();
            let otherwise = results.next().filter(|_| has_else);
            Ok(Expr::Case(Case::new(case.expr, cases, otherwise)))
        }
        Expr::ScalarFunction(mut call) if CHOOSING.contains(&call.func.name()) => {
            call.args = all_numbered(call.args, schema)?;
            Ok(Expr::ScalarFunction(call))
        }
        other => Ok(other),
    }
}

/// Where one of several results is a floating-point number, NUMERICs among them are, too: the library makes NUMERICs of 30 digits of both.
fn floating_results(expr: Expr, schema: &DFSchema) -> Expr {
    let is_numeric = |expr: &Expr| expr.get_type(schema).is_ok_and(|kind| kind.is_decimal());
    let is_floating = |expr: &Expr| expr.get_type(schema).is_ok_and(|kind| kind.is_floating());
    let double = |expr: Expr| match is_numeric(&expr) {
        true => Expr::Cast(Cast::new(Box::new(expr), DataType::Float64)),
        false => expr,
    };
    match expr {
        Expr::Case(case) => {
            let results = || case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
            if !results().any(|result| is_floating(result)) || !results().any(|result| is_numeric(result)) {
                return Expr::Case(case);
            }
            let cases = case.when_then_expr.into_iter().map(|(when, then)| (when, Box::new(double(*then)))).collect();
            let otherwise = case.else_expr.map(|otherwise| Box::new(double(*otherwise)));
            Expr::Case(Case::new(case.expr, cases, otherwise))
        }
        Expr::ScalarFunction(mut call)
            if CHOOSING.contains(&call.func.name())
                && call.args.iter().any(is_floating)
                && call.args.iter().any(is_numeric) =>
        {
            call.args = call.args.into_iter().map(double).collect();
            Expr::ScalarFunction(call)
        }
        Expr::ScalarFunction(mut call) if matches!(call.func.name(), "concat" | "concat_ws") => {
            // These write the first letter of a truth.
            let written = |argument: Expr| match argument.get_type(schema) {
                Ok(DataType::Boolean) => unicode::left().call(vec![functions::as_text(argument), lit(1_i64)]),
                _ => shown(argument, schema),
            };
            call.args = call.args.into_iter().map(written).collect();
            Expr::ScalarFunction(call)
        }
        other => other,
    }
}

/// The same of what several queries answer in one column.
fn floating_columns(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    let LogicalPlan::Union(union) = &plan else { return Ok(plan) };
    let kinds =
        |at: usize| union.inputs.iter().filter_map(move |input| Some(input.schema().fields().get(at)?.data_type()));
    let mixed = |at: usize| kinds(at).any(DataType::is_floating) && kinds(at).any(DataType::is_decimal);
    let mixed: Vec<bool> = (0..union.schema.fields().len()).map(mixed).collect();
    if !mixed.contains(&true) {
        return Ok(plan);
    }
    let double = |input: &LogicalPlan| {
        let columns = input.schema().iter().zip(&mixed).map(|((qualifier, field), mixed)| {
            let column = Expr::Column(Column::from((qualifier, field)));
            match *mixed && field.data_type().is_decimal() {
                true => {
                    let double = Expr::Cast(Cast::new(Box::new(column), DataType::Float64));
                    double.alias_qualified(qualifier.cloned(), field.name())
                }
                false => column,
            }
        });
        LogicalPlanBuilder::from(input.clone()).project(columns.collect::<Vec<_>>())?.build().map(Arc::new)
    };
    let inputs = union.inputs.iter().map(|input| double(input)).collect::<Result<_, DataFusionError>>()?;
    Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
}

/// A list as comparisons, if one of its numbers has no room beside what they are compared with.
fn any_of_wide(one: &Side, list: &[Expr], schema: &DFSchema) -> Result<Option<Expr>, DataFusionError> {
    let kinds = list.iter().map(|item| Ok((item.clone(), item.get_type(schema)?)));
    let Ok(items) = kinds.collect::<Result<Vec<Side>, DataFusionError>>() else { return Ok(None) };
    let is_told = |kind: &DataType| {
        wide_enough(&one.1, kind).is_some()
            || (interval_order::is_interval(&one.1) && interval_order::is_interval(kind))
    };
    if one.0.is_volatile() || !items.iter().any(|(_, kind)| is_told(kind)) {
        return Ok(None);
    }
    let equal = |item| compared(one.clone(), item).map(|(left, right)| left.eq(right));
    let all = items.into_iter().map(equal).collect::<Result<Vec<Expr>, _>>()?;
    Ok(all.into_iter().reduce(Expr::or))
}

/// A comparison in which what is compared with a UUID has the form that ours have.
fn beside_uuid(expr: Expr, schema: &DFSchema) -> Expr {
    match expr {
        Expr::InList(InList { expr: one, list, negated }) => {
            let list = list.into_iter().map(|item| uuids::beside(item, &one, schema)).collect();
            Expr::InList(InList { expr: one, list, negated })
        }
        Expr::Between(Between { expr: one, negated, low, high }) => {
            let [low, high] = [low, high].map(|bound| Box::new(uuids::beside(*bound, &one, schema)));
            Expr::Between(Between { expr: one, negated, low, high })
        }
        Expr::Case(Case { expr: Some(one), when_then_expr, else_expr }) => {
            let cases = when_then_expr.into_iter();
            let cases = cases.map(|(when, then)| (Box::new(uuids::beside(*when, &one, schema)), then)).collect();
            Expr::Case(Case { expr: Some(one), when_then_expr: cases, else_expr })
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() || is_distinct(op) => {
            let (left, right) = both_beside(*left, *right, schema);
            Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
        }
        other => other,
    }
}

fn is_distinct(op: Operator) -> bool {
    matches!(op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom)
}

/// One of many that a side is compared with: the side stays what it is.
fn beside(item: &Expr, side: &Side, schema: &DFSchema) -> Result<Expr, DataFusionError> {
    let Ok(kind) = item.get_type(schema) else { return Ok(item.clone()) };
    match times::read_literal(item, &side.1) {
        Some(value) => Ok(Expr::Literal(value, None)),
        None => fitting(item.clone(), &kind, &side.1),
    }
}
