//! Reads what becomes of the rows of a question: aggregates, GROUP BY, HAVING, DISTINCT, ORDER BY.
//!
//! As everywhere in reading nothing is guessed: what the query library might take otherwise, or refuse, is none of ours.

use counterfoil_relation::Function as Aggregate;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Distinct, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    GroupByExpr, Ident, ObjectNamePart, OrderBy, OrderByExpr, OrderByKind, Select, Value as Literal,
};

use super::question::{By, ColumnName, Made, Order, Refined, Shown};
use super::reading::{Reading, column, comparison};

/// The column of an answer that an expression is: one of a table, or an aggregate of one.
pub(super) fn made(expr: &Expr) -> Option<Made> {
    match expr {
        Expr::Function(function) => aggregate(function),
        _ => column(expr).map(Made::Column),
    }
}

fn aggregate(function: &Function) -> Option<Made> {
    let Function {
        name,
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(list),
        filter: None,
        null_treatment: None,
        over: None,
        within_group,
    } = function
    else {
        return None;
    };
    let [ObjectNamePart::Identifier(Ident { value: name, quote_style: None, .. })] = name.0.as_slice() else {
        return None;
    };
    let is_plain = matches!(list.duplicate_treatment, None | Some(DuplicateTreatment::All));
    if !within_group.is_empty() || !list.clauses.is_empty() || !is_plain {
        return None;
    }
    let [FunctionArg::Unnamed(argument)] = list.args.as_slice() else { return None };
    let function = match name.to_ascii_lowercase().as_str() {
        "count" => Aggregate::Count,
        "sum" => Aggregate::Sum,
        "avg" => Aggregate::Mean,
        "min" => Aggregate::Least,
        "max" => Aggregate::Greatest,
        _ => return None,
    };
    match argument {
        FunctionArgExpr::Wildcard if function == Aggregate::Count => Some(Made::Rows),
        FunctionArgExpr::Expr(expr) => Some(Made::Of(function, column(expr)?)),
        _ => None,
    }
}

impl Reading<'_> {
    /// What becomes of the rows of a SELECT that shows these columns.
    pub(super) fn refined(&self, select: &Select, order_by: Option<&OrderBy>, shown: &[Shown]) -> Option<Refined> {
        let is_distinct = match &select.distinct {
            None | Some(Distinct::All) => false,
            Some(Distinct::Distinct) => true,
            Some(Distinct::On(_)) => return None,
        };
        let mut refined = Refined { is_distinct, ..Refined::default() };
        let GroupByExpr::Expressions(groups, _) = &select.group_by else { return None };
        for group in groups {
            refined.groups.push(match place(group, shown)? {
                Some(place) => match &shown[place] {
                    Shown::Column(column, _) => column.clone(),
                    _ => return None,
                },
                None => column(group).filter(|column| !is_alias(column, shown))?,
            });
        }
        if let Some(having) = &select.having {
            self.having(having, &mut refined)?;
        }
        let order = order_by.map_or(Some(&[][..]), expressions)?;
        refined.order = order.iter().map(|order| self.order(order, shown)).collect::<Option<_>>()?;
        Some(refined)
    }

    /// Adds what is said of groups, piece by piece.
    fn having(&self, expr: &Expr, refined: &mut Refined) -> Option<()> {
        match expr {
            Expr::Nested(inner) => self.having(inner, refined),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                self.having(left, refined)?;
                self.having(right, refined)
            }
            Expr::BinaryOp { left, op, right } => {
                let comparison = comparison(op)?;
                let said = match (made(left), made(right)) {
                    (Some(made), None) => (made, comparison, self.value(right)?),
                    (None, Some(made)) => (made, comparison.turned(), self.value(left)?),
                    _ => return None,
                };
                refined.having.push(said);
                Some(())
            }
            _ => None,
        }
    }

    fn order(&self, order: &OrderByExpr, shown: &[Shown]) -> Option<Order> {
        let OrderByExpr { expr, options, with_fill: None } = order else { return None };
        let by = match place(expr, shown)? {
            Some(place) => By::Place(place),
            None => By::Made(made(expr)?),
        };
        let is_descending = options.asc == Some(false);
        // As in PostgreSQL, NULL is greater than all others.
        Some(Order { by, is_descending, nulls_first: options.nulls_first.unwrap_or(is_descending) })
    }
}

fn expressions(order_by: &OrderBy) -> Option<&[OrderByExpr]> {
    match order_by {
        OrderBy { kind: OrderByKind::Expressions(all), interpolate: None } => Some(all),
        _ => None,
    }
}

/// The place among the columns that a number is; none within where the expression is no number.
fn place(expr: &Expr, shown: &[Shown]) -> Option<Option<usize>> {
    let Expr::Value(literal) = expr else { return Some(None) };
    let Literal::Number(digits, false) = &literal.value else { return None };
    let place = digits.parse::<usize>().ok()?.checked_sub(1)?;
    // A star is many columns.
    let is_star = shown.iter().any(|shown| matches!(shown, Shown::All | Shown::AllOf(_)));
    (place < shown.len() && !is_star).then_some(Some(place))
}

/// Whether a column of the answer has this name, and is another column.
fn is_alias(name: &ColumnName, shown: &[Shown]) -> bool {
    let is_other = |shown: &Shown| match shown {
        Shown::Column(_, alias) => alias.as_ref() == Some(&name.column),
        Shown::Made(_, alias) => *alias == name.column,
        Shown::All | Shown::AllOf(_) => false,
    };
    name.table.is_none() && shown.iter().any(is_other)
}
