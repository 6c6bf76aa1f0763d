//! Operators that mean something else in PostgreSQL: `||`, and `+`, `-` and `/` of numbers, dates and intervals.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DFSchema, DataFusionError};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::coerce;
use crate::functions;
use crate::interval_order;
use crate::interval_times;

/// Digits behind the point that a quotient of NUMERICs has at least, as in PostgreSQL.
const QUOTIENT_SCALE: i8 = 12;

/// What plans them.
#[derive(Debug)]
pub(crate) struct Operators;

impl ExprPlanner for Operators {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>, DataFusionError> {
        if let Some(planned) = interval_times::planned(&expr.left, &expr.op, &expr.right) {
            return Ok(PlannerResult::Planned(planned));
        }
        if expr.op == BinaryOperator::StringConcat {
            return Ok(PlannerResult::Original(together(expr, schema)));
        }
        let (left, right) = coerce::operands(expr.left, &expr.op, expr.right, schema)?;
        let expr = RawBinaryExpr { op: expr.op, left, right };
        // Asking a long chain for its type takes as long as it is, at every link: most links need not be asked.
        let plain = matches!(expr.op, BinaryOperator::Divide | BinaryOperator::Plus | BinaryOperator::Minus);
        let Ok(right) = (if plain { expr.right.get_type(schema) } else { return Ok(PlannerResult::Original(expr)) })
        else {
            return Ok(PlannerResult::Original(expr));
        };
        if !matches!(expr.op, BinaryOperator::Divide) && right.is_numeric() && is_number_chain(&expr.left, schema) {
            return Ok(PlannerResult::Original(expr));
        }
        let Ok(left) = expr.left.get_type(schema) else { return Ok(PlannerResult::Original(expr)) };
        Ok(match expr.op {
            BinaryOperator::Divide => quotient(expr, &left, &right),
            _ => with_days(expr, &left, &right),
        })
    }
}

/// What stands beside a text, as a cast shows it.
fn together(expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    let RawBinaryExpr { op, left, right } = expr;
    // A chain is a text, and is not asked.
    let is_chain = |expr: &Expr| matches!(expr, Expr::BinaryExpr(BinaryExpr { op: Operator::StringConcat, .. }));
    let is_text =
        |expr: &Expr| is_chain(expr) || expr.get_type(schema).is_ok_and(|kind| kind.is_string() || kind.is_null());
    let is_null = |expr: &Expr| !is_chain(expr) && expr.get_type(schema).is_ok_and(|kind| kind.is_null());
    // Of two that say nothing of their types both are texts.
    let text = |expr: Expr| Expr::Cast(Cast::new(Box::new(expr), DataType::Utf8View));
    let left = if is_null(&left) && is_null(&right) { text(left) } else { left };
    let (left, right) = match (is_text(&left), is_text(&right)) {
        (true, false) => (left, coerce::shown(right, schema)),
        (false, true) => (coerce::shown(left, schema), right),
        // Two texts, or an array and an element.
        _ => (left, right),
    };
    RawBinaryExpr { op, left, right }
}

fn quotient(expr: RawBinaryExpr, left: &DataType, right: &DataType) -> PlannerResult<RawBinaryExpr> {
    let exact = |kind: &DataType| kind.is_integer() || matches!(kind, DataType::Decimal128(..));
    let decimal = |kind: &DataType| matches!(kind, DataType::Decimal128(..));
    if !exact(left) || !exact(right) || !(decimal(left) || decimal(right)) {
        return PlannerResult::Original(expr);
    }
    let scale = match left {
        DataType::Decimal128(_, scale) => *scale.max(&QUOTIENT_SCALE),
        _ => QUOTIENT_SCALE,
    };
    // The library adds four digits to the scale of the dividend.
    let dividend = Expr::Cast(Cast::new(Box::new(expr.left), DataType::Decimal128(38, scale)));
    let quotient = BinaryExpr::new(Box::new(dividend), Operator::Divide, Box::new(expr.right));
    PlannerResult::Planned(Expr::BinaryExpr(quotient))
}

/// A date and days, an interval or another date.
fn with_days(expr: RawBinaryExpr, left: &DataType, right: &DataType) -> PlannerResult<RawBinaryExpr> {
    const DAY: DataType = DataType::Date32;
    let minus = matches!(expr.op, BinaryOperator::Minus);
    PlannerResult::Planned(match (left, right) {
        (&DAY, number) if number.is_integer() => functions::add_days(expr.left, expr.right, minus),
        (number, &DAY) if number.is_integer() && !minus => functions::add_days(expr.right, expr.left, false),
        (&DAY, interval) if interval_order::is_interval(interval) => moved(expr.left, expr.right, minus),
        (interval, &DAY) if interval_order::is_interval(interval) && !minus => moved(expr.right, expr.left, false),
        (&DAY, &DAY) if minus => {
            let days = |expr: Expr| {
                let days = Expr::Cast(Cast::new(Box::new(expr), DataType::Int32));
                Expr::Cast(Cast::new(Box::new(days), DataType::Int64))
            };
            let difference = BinaryExpr::new(Box::new(days(expr.left)), Operator::Minus, Box::new(days(expr.right)));
            Expr::BinaryExpr(difference)
        }
        _ => return PlannerResult::Original(expr),
    })
}

/// A date and an interval: the beginning of the day and that, which is a time. The library keeps the day alone.
fn moved(date: Expr, interval: Expr, back: bool) -> Expr {
    let start = Expr::Cast(Cast::new(Box::new(date), DataType::Timestamp(TimeUnit::Microsecond, None)));
    let op = if back { Operator::Minus } else { Operator::Plus };
    Expr::BinaryExpr(BinaryExpr::new(Box::new(start), op, Box::new(interval)))
}

/// Whether an expression is arithmetic with a number: a sum of a date and a number is no longer written this way.
fn is_number_chain(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op: Operator::Plus | Operator::Minus | Operator::Multiply, right, .. }) => {
            right.get_type(schema).is_ok_and(|kind| kind.is_numeric())
        }
        _ => false,
    }
}
