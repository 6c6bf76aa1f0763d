//! What a parameter is by where it stands in the text: the argument of a function that takes one type alone there, or a
//! condition.
//!
//! The query library concludes a parameter's type from what it is compared with. Of `substr(name, $1)` or `WHERE $1` it
//! concludes nothing; PostgreSQL does, and clients that send parameters as bytes want to know. Where several functions of
//! a name would do, PostgreSQL takes the one of the preferred type, and so does this.

use std::ops::ControlFlow;

use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, Select, Statement,
    TableFactor, UnaryOperator, Value as Literal, ValueWithSpan, Visit, Visitor,
};

use crate::parameters;
use crate::statement;

/// A number of characters, of digits, of rows.
const COUNT: DataType = DataType::Int32;
/// NUMERIC of any digits, as `types` has it where nothing says how many.
const NUMERIC: DataType = DataType::Decimal128(38, 10);

/// Functions with their arguments' types: none where several will do, or a text, which an open parameter is anyway.
const FUNCTIONS: &[(&str, &[Option<DataType>])] = {
    use DataType::{Float64, Int64};
    const DOUBLE: &[Option<DataType>] = &[Some(Float64)];
    const TEXT_COUNT: &[Option<DataType>] = &[None, Some(COUNT)];
    const TEXT_TWO_COUNTS: &[Option<DataType>] = &[None, Some(COUNT), Some(COUNT)];
    const DIGITS: &[Option<DataType>] = &[Some(NUMERIC), Some(COUNT)];
    &[
        ("abs", DOUBLE),
        ("acos", DOUBLE),
        ("asin", DOUBLE),
        ("atan", DOUBLE),
        ("cbrt", DOUBLE),
        ("ceil", DOUBLE),
        ("ceiling", DOUBLE),
        ("cos", DOUBLE),
        ("degrees", DOUBLE),
        ("exp", DOUBLE),
        ("floor", DOUBLE),
        ("ln", DOUBLE),
        ("radians", DOUBLE),
        ("sign", DOUBLE),
        ("sin", DOUBLE),
        ("sqrt", DOUBLE),
        ("tan", DOUBLE),
        ("power", &[Some(Float64), Some(Float64)]),
        ("chr", &[Some(COUNT)]),
        ("ntile", &[Some(COUNT)]),
        ("lag", TEXT_COUNT),
        ("lead", TEXT_COUNT),
        ("nth_value", TEXT_COUNT),
        ("left", TEXT_COUNT),
        ("lpad", TEXT_COUNT),
        ("repeat", TEXT_COUNT),
        ("right", TEXT_COUNT),
        ("rpad", TEXT_COUNT),
        ("split_part", &[None, None, Some(COUNT)]),
        ("substr", TEXT_TWO_COUNTS),
        ("generate_series", &[Some(Int64), Some(Int64), Some(Int64)]),
        ("make_date", &[Some(COUNT), Some(COUNT), Some(COUNT)]),
        ("round", DIGITS),
        ("trunc", DIGITS),
    ]
};

/// Fills in what the text says of parameters of which nothing is known.
pub(crate) fn fill(statement: &Statement, known: &mut [Option<DataType>]) {
    let _ = statement.visit(&mut Places { known });
}

struct Places<'a> {
    known: &'a mut [Option<DataType>],
}

impl Places<'_> {
    /// If this is a parameter that is open, it is of this type.
    fn is(&mut self, expr: &Expr, kind: &DataType) {
        let mut inner = expr;
        while let Expr::Nested(deeper) = inner {
            inner = deeper;
        }
        let Expr::Value(ValueWithSpan { value: Literal::Placeholder(name), .. }) = inner else { return };
        let place = parameters::index(name).ok().and_then(|place| self.known.get_mut(place));
        place.into_iter().for_each(|known| *known = known.take().or(Some(kind.clone())));
    }

    fn is_condition<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>) {
        exprs.into_iter().for_each(|expr| self.is(expr, &DataType::Boolean));
    }

    fn are_arguments(&mut self, name: &ObjectName, arguments: &[FunctionArg]) {
        let Some(name) = statement::parts(name).ok().and_then(|mut parts| parts.pop()) else { return };
        let Some((_, kinds)) = FUNCTIONS.iter().find(|(known, _)| *known == name) else { return };
        // `round($1)` and `trunc($1)` are there for doubles too, which PostgreSQL prefers.
        // A series may be of times.
        if name == "generate_series" && !arguments.iter().all(is_open_or_whole) {
            return;
        }
        let is_alone = arguments.len() == 1 && matches!(name.as_str(), "round" | "trunc");
        for (argument, kind) in arguments.iter().zip(*kinds) {
            if let (FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)), Some(kind)) = (argument, kind) {
                self.is(expr, if is_alone { &DataType::Float64 } else { kind });
            }
        }
    }
}

/// Whether an argument is a parameter, or a whole number as it is written.
fn is_open_or_whole(argument: &FunctionArg) -> bool {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else { return false };
    match expr {
        Expr::Value(ValueWithSpan { value: Literal::Placeholder(_), .. }) => true,
        Expr::Value(ValueWithSpan { value: Literal::Number(digits, _), .. }) => digits.parse::<i64>().is_ok(),
        _ => false,
    }
}

impl Visitor for Places<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.is_condition(select.selection.iter().chain(&select.having));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args: Some(args), .. } = factor {
            self.are_arguments(name, &args.args);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
                self.is_condition([&**left, &**right]);
            }
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => self.is_condition([&**expr]),
            Expr::Case { operand: None, conditions, .. } => {
                self.is_condition(conditions.iter().map(|when| &when.condition));
            }
            // `substring(x, pattern)` is another function.
            Expr::Substring { substring_from, substring_for, shorthand, .. }
                if *shorthand || substring_for.is_some() =>
            {
                substring_from.iter().chain(substring_for).for_each(|expr| self.is(expr, &COUNT));
            }
            Expr::Ceil { expr, .. } | Expr::Floor { expr, .. } => self.is(expr, &DataType::Float64),
            Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) => {
                self.are_arguments(name, &list.args);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
