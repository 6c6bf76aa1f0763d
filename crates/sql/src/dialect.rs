//! Where the query library and PostgreSQL differ, and what is done about it.
//!
//! | PostgreSQL | the library | here |
//! |---|---|---|
//! | `CAST(x AS TEXT)` writes values as psql shows them | as ISO 8601 with a T, floats as `1.0` | [`functions`] |
//! | `x::UUID`, `x::VARCHAR(n)`, `x::BYTEA` | no UUID; the length is ignored; the bytes of the text | [`rewrite`], [`functions`] |
//! | numbers are rounded when cast to integers | cut | [`Arithmetic`] |
//! | integers that overflow are an error | wrap around | [`Arithmetic`] |
//! | `2 / 3.0` has 16 digits behind the point, and is rounded | 4, and is cut | [`Operators`], [`quotient`] |
//! | `n * INTERVAL '1 hour'` | refused | [`crate::interval_times`] |
//! | `avg` of NUMERIC has 16 digits behind the point, and is rounded | four more than its values, and cut | [`means`] |
//! | `extract(month FROM d) / 2` has a fraction | integers | [`date_parts`] |
//! | `FETCH FIRST n ROWS ONLY`, `mod(a, b)`, `every(x)` | not read | [`rewrite`] |
//! | `to_char(x, 'YYYY-MM-DD')` | another language of patterns, answered wrongly | [`rewrite`] |
//! | `SIMILAR TO`, `LIKE ... ESCAPE`, rows in parentheses, `INTERVAL '04:05'` | refused or answered wrongly | [`idioms`] |
//! | `bytes = '\x01'`, `truth = 't'`, `'5' + 1`, `double = 0.1` | refused or answered wrongly | [`crate::coerce`] |
//! | `1::DOUBLE PRECISION / 0`, `'1e309'::DOUBLE PRECISION` are errors | infinity | [`Arithmetic`] |
//! | `x NOT IN (1) OR x NOT IN (2)` is NULL where x is | TRUE | [`lists`] |
//! | `5 NOT IN (SELECT x ...)`, `c IN (SELECT c FROM t ...)` of `t` | NULLs and conditions are lost | [`crate::nulls`] |
//! | a subquery without a row is NULL | of a key, a literal: never NULL | [`crate::no_row`] |
//! | `(SELECT x FROM t WHERE t.a = outer.a)`, `... < outer.a` | refused | [`crate::one_row`], [`crate::outer_values`] |
//! | `o.id` inside, where a column is called `o` as the table outside | a part of the column | [`crate::outer_names`] |
//! | `EXCEPT ALL`, `INTERSECT ALL` count | do not | [`crate::multisets`] |
//! | `ON a IS NOT DISTINCT FROM b` beside `ON c = d` | NULL is equal to NULL for both, or for none | [`null_equal`] |

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DataFusionError};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::expr::{Case, Cast, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::AnalyzerRule;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, CastKind, CharacterLength, DataType as SqlType, ExactNumberInfo, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentList, FunctionArguments, GroupByExpr, LimitClause, ObjectName, ObjectNamePart,
    Query, SelectItem, SetExpr, Statement, TableAlias, TableFactor, TableWithJoins, TypedString, Visit, VisitMut,
    Visitor, VisitorMut, visit_expressions,
};

use crate::aggregates;
use crate::catalog;
use crate::change;
use crate::date_parts;
use crate::error::Error;
use crate::evaluate;
use crate::extremes;
use crate::functions::{self, Checked};
use crate::growing;
use crate::historian;
use crate::idioms;
use crate::lists;
use crate::means;
use crate::naming;
use crate::no_row;
use crate::null_equal;
use crate::operators::Operators;
use crate::parameters;
use crate::planner;
use crate::quotient;
use crate::statement::{ident, quoted};
use crate::time_patterns;
use crate::times;
use crate::using;
use crate::value::Value;
use crate::windows;

/// Adds our functions and rules to a session of the query library.
pub(crate) fn register(mut state: SessionStateBuilder) -> SessionStateBuilder {
    let scalars = state.scalar_functions().get_or_insert_with(Vec::new);
    scalars.extend(functions::all());
    scalars.extend(date_parts::functions());
    scalars.extend(growing::all());
    scalars.extend(historian::scalars());
    scalars.extend(catalog::functions(&Arc::default()));
    let aggregating = state.aggregate_functions().get_or_insert_with(Vec::new);
    aggregating.push(aggregates::sum());
    aggregating.push(means::mean());
    aggregating.extend(extremes::all());
    aggregating.extend(historian::aggregates());
    state.expr_planners().get_or_insert_with(Vec::new).insert(0, Arc::new(Operators));
    state.with_optimizer_rules(null_equal::rules()).with_analyzer_rule(Arc::new(Arithmetic))
}

/// Rewrites what PostgreSQL writes and the query library does not read.
pub(crate) fn rewrite(statement: &mut Statement) {
    let _ = statement.visit(&mut Rewriter);
}

/// As [`rewrite`], for one expression.
pub(crate) fn rewrite_expr(expr: &mut ast::Expr) {
    let _ = expr.visit(&mut Rewriter);
}

/// Makes a number of a text that says how many rows: a parameter of which a client left the type open is one.
fn number_of_rows(expr: &mut ast::Expr) {
    while let ast::Expr::Nested(inner) = expr {
        *expr = std::mem::replace(inner, ast::Expr::Value(ast::Value::Null.into()));
    }
    let rows = idioms::text_of(expr).and_then(|text| text.trim().parse::<i64>().ok());
    match rows {
        Some(rows) => *expr = parameters::literal(&Value::Integer(rows)),
        None => whole_number(expr),
    }
}

/// Makes an integer of a NUMERIC that is a whole number, as parameters come.
fn whole_number(expr: &mut ast::Expr) {
    let ast::Expr::Cast { expr: number, data_type, .. } = expr else { return };
    let is_whole = matches!(data_type, ast::DataType::Numeric(ast::ExactNumberInfo::PrecisionAndScale(_, 0)));
    if is_whole && number.to_string().trim_matches(['(', '-', ')']).bytes().all(|byte| byte.is_ascii_digit()) {
        *expr = std::mem::replace(number, ast::Expr::Value(ast::Value::Null.into()));
    }
}

struct Rewriter;

impl VisitorMut for Rewriter {
    type Break = ();

    /// One of several that a set is of: others were seen with their query.
    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        windows::name_nothing(select, &mut None);
        using::written_out(select, &mut None);
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let (name, arguments, alias) = match factor {
            TableFactor::Table { name, args: Some(arguments), alias, .. } => (name, &mut arguments.args, alias),
            TableFactor::Function { name, args, alias, .. } => (name, args, alias),
            TableFactor::UNNEST { array_exprs, alias, .. } if array_exprs.len() == 1 => {
                naming::name_function(alias, "unnest");
                return ControlFlow::Continue(());
            }
            _ => return ControlFlow::Continue(()),
        };
        if name.to_string().eq_ignore_ascii_case("generate_series") {
            naming::name_function(alias, "generate_series");
            for argument in arguments.iter_mut() {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument {
                    whole_number(expr);
                }
            }
            days_of_series(arguments);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        naming::tell_casts_apart(query);
        let plain = |fetch: &ast::Fetch| !fetch.with_ties && !fetch.percent;
        if query.fetch.as_ref().is_some_and(plain)
            && let Some(fetch) = query.fetch.take()
        {
            let one = || ast::Expr::Value(ast::Value::Number("1".into(), false).into());
            let limit = Some(fetch.quantity.unwrap_or_else(one));
            let offset = match query.limit_clause.take() {
                Some(LimitClause::LimitOffset { offset, .. }) => offset,
                _ => None,
            };
            query.limit_clause = Some(LimitClause::LimitOffset { limit, offset, limit_by: Vec::new() });
        }
        if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &mut query.limit_clause {
            limit.iter_mut().chain(offset.iter_mut().map(|offset| &mut offset.value)).for_each(number_of_rows);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let SetExpr::Table(table) = query.body.as_ref()
            && let Some(name) = &table.table_name
        {
            let star = vec![SelectItem::Wildcard(Default::default())];
            let from = planner::select_from(&name.to_lowercase(), &name.to_lowercase());
            *query.body = *change::select(None, star, vec![from], None).body;
        }
        if let SetExpr::Select(select) = query.body.as_mut() {
            windows::name_nothing(select, &mut query.order_by);
            using::written_out(select, &mut query.order_by);
        }
        // EXISTS is planned in conditions only: among the columns it becomes a question of how many there are.
        if let SetExpr::Select(select) = query.body.as_mut() {
            for item in &mut select.projection {
                if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item
                    && let ast::Expr::Exists { subquery, negated } = expr
                {
                    forget_which(subquery);
                    *expr = counted(subquery, *negated);
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Exists { subquery, .. } = expr {
            forget_which(subquery);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let Some(other) = idioms::rewritten(expr) {
            *expr = other;
        }
        if let ast::Expr::Function(function) = expr {
            if let Some(other) = other_function(function) {
                *expr = other;
            }
            return ControlFlow::Continue(());
        }
        let (inner, kind) = match expr {
            ast::Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, format: None, .. } => {
                ((**expr).clone(), data_type.clone())
            }
            ast::Expr::TypedString(TypedString {
                data_type: kind @ (SqlType::Uuid | SqlType::Bytea), value, ..
            }) => (ast::Expr::Value(value.clone()), kind.clone()),
            _ => return ControlFlow::Continue(()),
        };
        let text = |inner| call(functions::TO_TEXT, vec![inner]);
        let cut = |inner, letters: u64| {
            let letters = ast::Expr::Value(ast::Value::Number(letters.to_string(), false).into());
            call("left", vec![text(inner), letters])
        };
        match kind {
            SqlType::Uuid => *expr = call(functions::TO_UUID, vec![inner]),
            SqlType::Bytea => *expr = call(functions::TO_BYTEA, vec![inner]),
            SqlType::Text => *expr = text(inner),
            SqlType::Numeric(ExactNumberInfo::None)
            | SqlType::Decimal(ExactNumberInfo::None)
            | SqlType::Dec(ExactNumberInfo::None)
                if !is_parameter(&inner) =>
            {
                *expr = call(functions::TO_NUMERIC, vec![inner]);
            }
            SqlType::Varchar(length) | SqlType::CharacterVarying(length) | SqlType::CharVarying(length) => {
                *expr = match length {
                    Some(CharacterLength::IntegerLength { length, .. }) => cut(inner, length),
                    _ => text(inner),
                };
            }
            SqlType::Char(length) | SqlType::Character(length) => {
                let letters = match length {
                    Some(CharacterLength::IntegerLength { length, .. }) => length,
                    _ => 1,
                };
                // Blanks behind it are not of its value.
                *expr = call("rtrim", vec![cut(inner, letters)]);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Whether there is a row hangs neither on which comes first nor on how many are wanted, where one is: as some write it who mean to help.
fn forget_which(subquery: &mut Query) {
    let wants_one = |number: &ast::Expr| match number {
        ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(digits, _), .. }) => {
            digits.parse::<u64>().is_ok_and(|rows| rows > 0)
        }
        _ => false,
    };
    let is_limit = match &subquery.limit_clause {
        None => true,
        Some(LimitClause::LimitOffset { limit: Some(limit), offset: None, limit_by }) => {
            limit_by.is_empty() && wants_one(limit)
        }
        Some(_) => false,
    };
    let is_fetch =
        subquery.fetch.as_ref().is_none_or(|fetch| !fetch.percent && fetch.quantity.as_ref().is_none_or(wants_one));
    if is_limit && is_fetch {
        (subquery.limit_clause, subquery.fetch, subquery.order_by) = (None, None, None);
    }
}

/// Whether a value is still to come, whose type its cast says.
fn is_parameter(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Placeholder(_), .. }))
}

/// A series from a day to a day is one of days, also where an interval says to which: the library has none from a day to a time.
fn days_of_series(arguments: &mut [FunctionArg]) {
    let bounds = arguments.iter_mut().take(2).filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    for bound in bounds {
        if matches!(bound, ast::Expr::BinaryOp { .. }) && is_of_a_day(bound) {
            let expr = Box::new(ast::Expr::Nested(Box::new(bound.clone())));
            *bound =
                ast::Expr::Cast { kind: CastKind::Cast, expr, data_type: SqlType::Date, array: false, format: None };
        }
    }
}

/// Whether what stands first is a date by its looks.
fn is_of_a_day(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::BinaryOp { left, op: BinaryOperator::Plus | BinaryOperator::Minus, .. } => is_of_a_day(left),
        ast::Expr::Nested(inner) => is_of_a_day(inner),
        ast::Expr::TypedString(TypedString { data_type, .. }) | ast::Expr::Cast { data_type, .. } => {
            *data_type == SqlType::Date
        }
        ast::Expr::Function(function) => function.name.to_string().eq_ignore_ascii_case("current_date"),
        _ => false,
    }
}

/// `(SELECT count(*) > 0 FROM (subquery))`, or `= 0`.
fn counted(subquery: &Query, negated: bool) -> ast::Expr {
    let mut subquery = subquery.clone();
    let star = FunctionArg::Unnamed(FunctionArgExpr::Wildcard);
    let mut count = call("count", Vec::new());
    if let ast::Expr::Function(Function { args: FunctionArguments::List(list), .. }) = &mut count {
        list.args.push(star);
    }
    let zero = ast::Expr::Value(ast::Value::Number("0".into(), false).into());
    let op = if negated { BinaryOperator::Eq } else { BinaryOperator::Gt };
    let answer = ast::Expr::BinaryOp { left: Box::new(count), op, right: Box::new(zero) };
    // A plain subquery may name columns of the query around it, which only its own WHERE can see.
    if let Query { body, limit_clause: None, fetch: None, .. } = &mut subquery
        && let SetExpr::Select(select) = body.as_mut()
        && select.having.is_none()
        && matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty())
        && !select.projection.iter().any(|item| item.to_string().contains('('))
    {
        select.projection = vec![SelectItem::UnnamedExpr(answer)];
        select.distinct = None;
        subquery.order_by = None;
        return ast::Expr::Subquery(Box::new(subquery));
    }
    let alias = TableAlias { explicit: true, name: ident("__counterfoil_exists"), columns: Vec::new(), at: None };
    let relation =
        TableFactor::Derived { lateral: false, subquery: Box::new(subquery.clone()), alias: Some(alias), sample: None };
    let from = vec![TableWithJoins { relation, joins: Vec::new() }];
    ast::Expr::Subquery(Box::new(change::select(None, vec![SelectItem::UnnamedExpr(answer)], from, None)))
}

/// What a function of PostgreSQL is in the library.
fn other_function(function: &mut Function) -> Option<ast::Expr> {
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_mut_slice() else { return None };
    let FunctionArguments::List(list) = &mut function.args else { return local_time(name) };
    let mut arguments = list.args.iter_mut().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    match name.value.to_ascii_lowercase().as_str() {
        "mod" => {
            let (left, right) = (arguments.next()?, arguments.next()?);
            let part = |expr: &ast::Expr| Box::new(ast::Expr::Nested(Box::new(expr.clone())));
            let remainder = ast::Expr::BinaryOp { left: part(left), op: BinaryOperator::Modulo, right: part(right) };
            Some(ast::Expr::Nested(Box::new(remainder)))
        }
        "every" => renamed(name, "bool_and"),
        // The library's answers a text.
        "gen_random_uuid" => Some(call(functions::TO_UUID, vec![call("uuid", Vec::new())])),
        // Among columns PostgreSQL makes rows of it, the library one list. What stands in FROM does not come here.
        "generate_series" => {
            if let FunctionArguments::List(list) = &mut function.args {
                days_of_series(&mut list.args);
            }
            let series = ast::Expr::Function(function.clone());
            Some(call("unnest", vec![series]))
        }
        "unnest" => {
            // As it was written, or as it becomes when a statement is rewritten twice.
            let inner = arguments.next()?;
            matches!(inner, ast::Expr::Function(inner) if inner.name.to_string().contains("unnest"))
                .then(|| inner.clone())
        }
        "variance" => renamed(name, "var_samp"),
        // The library's own take the first one alone.
        "array_remove" => renamed(name, "array_remove_all"),
        "array_replace" => renamed(name, "array_replace_all"),
        "ceiling" => renamed(name, "ceil"),
        "sign" => renamed(name, "signum"),
        "clock_timestamp" | "statement_timestamp" | "transaction_timestamp" => renamed(name, "now"),
        "to_date" | "to_timestamp" => {
            let pattern = arguments.nth(1)?;
            let text = time_patterns::of_strftime(idioms::text_of(pattern)?)?;
            *pattern = quoted(text);
            None
        }
        // The library writes base64 without its padding under this name.
        "encode" | "decode" => {
            let coding = arguments.nth(1)?;
            if idioms::text_of(coding)?.eq_ignore_ascii_case("base64") {
                *coding = quoted("base64pad");
            }
            None
        }
        "date_part" => {
            let (part, of) = (arguments.next()?, arguments.next()?);
            idioms::text_of(part).map(|part| date_parts::date_part(part, of))
        }
        "to_char" => {
            if let Some(ast::Expr::Value(pattern)) = arguments.nth(1)
                && let ast::Value::SingleQuotedString(text) = &mut pattern.value
                && !text.contains('%')
                && let Some(other) = time_patterns::of_strftime(text)
            {
                *text = other;
            }
            None
        }
        _ => None,
    }
}

/// `localtimestamp` and `localtime`, which are written without parentheses.
fn local_time(name: &ast::Ident) -> Option<ast::Expr> {
    let text = match name.value.to_ascii_lowercase().as_str() {
        "localtimestamp" => "CAST(now() AS TIMESTAMP)",
        "localtime" => "CAST(CAST(now() AS TIMESTAMP) AS TIME)",
        _ => return None,
    };
    evaluate::parse(text).ok()
}

fn renamed(name: &mut ast::Ident, to: &str) -> Option<ast::Expr> {
    *name = ident(to);
    None
}

/// Refuses what the library would answer wrongly.
///
/// # Errors
/// [`Error::NotSupported`].
pub(crate) fn refuse(statement: &Statement) -> Result<(), Error> {
    let found = visit_expressions(statement, |expr: &ast::Expr| match expr {
        ast::Expr::SimilarTo { pattern, escape_char, .. }
            if escape_char.is_some() || idioms::text_of(pattern).is_none() =>
        {
            ControlFlow::Break(
                "SIMILAR TO with ESCAPE, or a pattern that is computed: write ~ with a regular expression",
            )
        }
        ast::Expr::Like { escape_char: Some(escape), pattern, .. }
        | ast::Expr::ILike { escape_char: Some(escape), pattern, .. }
            if idioms::text_of(pattern).is_none() || idioms::text_in(escape).is_none() =>
        {
            ControlFlow::Break("LIKE with ESCAPE and a pattern that is computed")
        }
        ast::Expr::Function(function) if has_unknown_pattern(function) => ControlFlow::Break(
            "to_char, to_date or to_timestamp with parts other than YYYY, YY, MM, Mon, Month, DD, DDD, Dy, Day, HH24, HH12, MI, SS, MS, US, AM, IYYY, IW, TZ",
        ),
        ast::Expr::Cast { data_type: SqlType::Array(_), .. } => ControlFlow::Break("casts to arrays"),
        ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::SingleQuotedByteStringLiteral(_), .. }) => {
            ControlFlow::Break("bit strings")
        }
        ast::Expr::Collate { .. } => ControlFlow::Break("COLLATE: texts compare byte by byte"),
        _ => ControlFlow::Continue(()),
    });
    let sampled = statement.visit(&mut Samples);
    match (found, sampled) {
        (ControlFlow::Break(what), _) | (_, ControlFlow::Break(what)) => Err(Error::NotSupported(what.into())),
        _ => Ok(()),
    }
}

/// Whether a time is to be written or read by a pattern with parts that are not known here.
fn has_unknown_pattern(function: &Function) -> bool {
    let [ObjectNamePart::Identifier(name)] = &function.name.0[..] else { return false };
    let FunctionArguments::List(list) = &function.args else { return false };
    let [_, FunctionArg::Unnamed(FunctionArgExpr::Expr(pattern))] = &list.args[..] else { return false };
    let is_of_times = ["to_char", "to_date", "to_timestamp"].iter().any(|known| name.value.eq_ignore_ascii_case(known));
    let is_unknown = |text: &str| !text.contains('%') && time_patterns::of_strftime(text).is_none();
    is_of_times && idioms::text_of(pattern).is_some_and(is_unknown)
}

/// The library reads TABLESAMPLE and WITH ORDINALITY, and takes all rows, without their numbers.
struct Samples;

impl Visitor for Samples {
    type Break = &'static str;

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<&'static str> {
        match factor {
            TableFactor::Table { sample: Some(_), .. } | TableFactor::Derived { sample: Some(_), .. } => {
                ControlFlow::Break("TABLESAMPLE")
            }
            TableFactor::Table { with_ordinality: true, .. }
            | TableFactor::Function { with_ordinality: true, .. }
            | TableFactor::UNNEST { with_ordinality: true, .. } => ControlFlow::Break("WITH ORDINALITY"),
            _ => ControlFlow::Continue(()),
        }
    }
}

pub(crate) fn call(name: &str, arguments: Vec<ast::Expr>) -> ast::Expr {
    let args = arguments.into_iter().map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))).collect();
    ast::Expr::Function(Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(ident(name))]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// Integer arithmetic that overflows is an error, and casts to integers round: after types are settled.
#[derive(Debug)]
struct Arithmetic;

/// As the rule does, for an expression by itself.
pub(crate) fn settled(expr: Expr, schema: &DFSchema) -> Result<Expr, DataFusionError> {
    lists::put_together(expr.transform_up(|expr| Ok(settle(expr, schema)))?.data)
}

impl AnalyzerRule for Arithmetic {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan, DataFusionError> {
        plan.transform_up_with_subqueries(|plan| {
            let mut schema = DFSchema::empty();
            for input in plan.inputs() {
                schema.merge(input.schema());
            }
            if let LogicalPlan::TableScan(scan) = &plan {
                schema.merge(&scan.projected_schema);
            }
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                Ok(Transformed::yes(name.restore(settled(expr, &schema)?)))
            })
        })
        .map(|transformed| transformed.data)
    }

    fn name(&self) -> &'static str {
        "counterfoil_arithmetic"
    }
}

fn settle(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::BinaryExpr(calculation) => settle_operator(calculation, schema),
        Expr::ScalarFunction(call) if call.args.len() == 1 => settle_call(call, schema),
        Expr::Case(case) if may_fail_behind_a_guard(&case, schema) => Transformed::yes(guarded(case)),
        // The least integer has no opposite.
        Expr::Negative(inner) if !matches!(*inner, Expr::Literal(..)) && is_whole(&inner, schema) => {
            match inner.get_type(schema).and_then(|kind| ScalarValue::new_zero(&kind)) {
                Ok(zero) => Transformed::yes(functions::checked(Checked::Subtract, Expr::Literal(zero, None), *inner)),
                Err(_) => Transformed::no(Expr::Negative(inner)),
            }
        }
        Expr::Cast(cast) => settle_cast(cast, schema),
        other => Transformed::no(other),
    }
}

/// A calculation that says what is out of range, or divided by zero. Types are settled: both sides have the same. The right one is short where
/// the left one is a chain.
fn settle_operator(BinaryExpr { left, op, right }: BinaryExpr, schema: &DFSchema) -> Transformed<Expr> {
    let checked = match op {
        Operator::Plus => Some(Checked::Add),
        Operator::Minus => Some(Checked::Subtract),
        Operator::Multiply => Some(Checked::Multiply),
        _ => None,
    };
    let whole = |kind: DataType| matches!(kind, DataType::Int64 | DataType::Int32 | DataType::Int16);
    let floating = |kind: DataType| kind.is_floating();
    match checked {
        None if op == Operator::Divide && right.get_type(schema).is_ok_and(floating) => {
            Transformed::yes(functions::checked(Checked::Divide, *left, *right))
        }
        None if op == Operator::Divide && is_numeric(&left, schema) && is_numeric(&right, schema) => {
            Transformed::yes(quotient::quotient(*left, *right))
        }
        Some(checked) if right.get_type(schema).is_ok_and(whole) && is_whole(&left, schema) => {
            Transformed::yes(functions::checked(checked, *left, *right))
        }
        _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
    }
}

/// A function of one argument, whose type is known by now.
fn settle_call(mut call: ScalarFunction, schema: &DFSchema) -> Transformed<Expr> {
    match call.func.name() {
        // Casts are looked through where functions are not.
        functions::TO_NUMERIC => match call.args[0].get_type(schema).map(|kind| (functions::numeric_of(&kind), kind)) {
            Ok((wanted, kind)) if wanted == kind => Transformed::yes(call.args.swap_remove(0)),
            Ok((wanted, _)) => {
                Transformed::yes(settle_cast(Cast::new(Box::new(call.args.swap_remove(0)), wanted), schema).data)
            }
            Err(_) => Transformed::no(Expr::ScalarFunction(call)),
        },
        // What has no fraction any more shows none.
        "floor" | "ceil" | "trunc" => {
            let whole = Expr::ScalarFunction(with_a_digit_more(call, schema));
            match whole.get_type(schema) {
                Ok(DataType::Decimal128(precision, scale)) if scale > 0 => {
                    Transformed::yes(Expr::Cast(Cast::new(Box::new(whole), DataType::Decimal128(precision, 0))))
                }
                _ => Transformed::no(whole),
            }
        }
        // Halves go to the even side, as for casts.
        "round" if call.args[0].get_type(schema).is_ok_and(|kind| kind == DataType::Float64) => {
            Transformed::yes(functions::round_even(call.args.swap_remove(0)))
        }
        _ => Transformed::no(Expr::ScalarFunction(call)),
    }
}

/// A cast as PostgreSQL does it.
fn settle_cast(cast: Cast, schema: &DFSchema) -> Transformed<Expr> {
    // The library cuts what is finer than the type that is wanted.
    if is_coarser(&cast, schema) {
        let rounded = functions::as_microseconds(*cast.expr);
        return match rounded.get_type(schema) {
            Ok(kind) if kind == *cast.field.data_type() => Transformed::yes(rounded),
            _ => Transformed::yes(Expr::Cast(Cast::new_from_field(Box::new(rounded), cast.field))),
        };
    }
    let wanted = cast.field.data_type();
    // A quoted literal is read as the type that is wanted of it, in all the forms that PostgreSQL knows.
    if matches!(cast.expr.as_ref(), Expr::Literal(..)) && wanted.is_temporal() {
        return match times::read_literal(&cast.expr, wanted) {
            Some(literal) => Transformed::yes(Expr::Literal(literal, None)),
            None => Transformed::no(Expr::Cast(cast)),
        };
    }
    match cast.expr.get_type(schema) {
        Ok(from) if wanted.is_decimal() => match functions::as_numeric(&cast.expr, &from, wanted) {
            Some(read) => Transformed::yes(read),
            None => Transformed::no(Expr::Cast(cast)),
        },
        // What is too large for a floating-point number is infinite for the library.
        Ok(from) if wanted.is_floating() => match functions::as_floating(&cast.expr, &from, wanted) {
            Some(checked) => Transformed::yes(checked),
            None => Transformed::no(Expr::Cast(cast)),
        },
        Ok(DataType::Float32 | DataType::Float64) if wanted.is_integer() => {
            let rounded = functions::round_even(*cast.expr);
            Transformed::yes(Expr::Cast(Cast::new_from_field(Box::new(rounded), cast.field)))
        }
        Ok(DataType::Decimal128(_, scale)) if scale > 0 && wanted.is_integer() => {
            let rounded = Expr::Cast(Cast::new(cast.expr, DataType::Decimal128(38, 0)));
            Transformed::yes(Expr::Cast(Cast::new_from_field(Box::new(rounded), cast.field)))
        }
        _ => Transformed::no(Expr::Cast(cast)),
    }
}

/// Whether a cast makes microseconds of nanoseconds.
fn is_coarser(cast: &Cast, schema: &DFSchema) -> bool {
    matches!(cast.field.data_type(), DataType::Timestamp(TimeUnit::Microsecond, _))
        && cast.expr.get_type(schema).is_ok_and(|kind| matches!(kind, DataType::Timestamp(TimeUnit::Nanosecond, _)))
}

fn is_numeric(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|kind| matches!(kind, DataType::Decimal128(..)))
}

/// Whether a CASE is a condition of which a part that is not asked may be an error: `CASE WHEN v = 0 THEN false ELSE 10 / v > 1 END`.
fn may_fail_behind_a_guard(case: &Case, schema: &DFSchema) -> bool {
    let is_truth = |expr: &Expr| expr.get_type(schema).is_ok_and(|kind| kind == DataType::Boolean);
    let may_fail = |expr: &Expr| match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => matches!(op, Operator::Divide | Operator::Modulo),
        Expr::Cast(_) | Expr::ScalarFunction(_) => true,
        _ => false,
    };
    let results = || case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
    let all = || case.when_then_expr.iter().map(|(when, _)| when).chain(results());
    results().all(|result| is_truth(result)) && all().any(|part| part.exists(|expr| Ok(may_fail(expr))).unwrap_or(true))
}

/// The same as a number that is compared: of a condition the library makes ANDs and ORs, which ask all of it.
fn guarded(mut case: Case) -> Expr {
    let number = |truth: Expr| Box::new(Expr::Cast(Cast::new(Box::new(truth), DataType::Int8)));
    case.when_then_expr = case.when_then_expr.into_iter().map(|(when, then)| (when, number(*then))).collect();
    case.else_expr = case.else_expr.map(|otherwise| number(*otherwise));
    no_row::as_it_is(Expr::Case(case)).eq(Expr::Literal(ScalarValue::Int8(Some(1)), None))
}

/// What rounds a NUMERIC to whole numbers, with room for the one that has a digit more.
fn with_a_digit_more(mut call: ScalarFunction, schema: &DFSchema) -> ScalarFunction {
    if let Ok(DataType::Decimal128(precision @ ..DECIMAL128_MAX_PRECISION, scale)) = call.args[0].get_type(schema) {
        let wider = DataType::Decimal128(precision + 1, scale);
        let argument = call.args.swap_remove(0);
        call.args.push(Expr::Cast(Cast::new(Box::new(argument), wider)));
    }
    call
}

/// Whether the left side of arithmetic with an integer is one too. What is checked already is.
fn is_whole(expr: &Expr, schema: &DFSchema) -> bool {
    functions::is_checked(expr)
        || expr.get_type(schema).is_ok_and(|kind| matches!(kind, DataType::Int64 | DataType::Int32 | DataType::Int16))
}
