//! The columns of a result, and how its rows are sorted.

use std::ops::Range;

use counterfoil_proof::Type;
use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, OrderByExpr, SelectItem,
    SelectItemQualifiedWildcardKind, Value as Written, WildcardAdditionalOptions,
};

use crate::error::{Error, not_supported};
use crate::names::{Names, kind_of};
use crate::statement::{folded, single_name};

/// What is computed over all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregate {
    Rows,
    Count(u16),
    Sum(u16),
    Min(u16),
    Max(u16),
    Mean(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Column(u16),
    Aggregate(Aggregate),
}

/// A column of the result.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) kind: Type,
    pub(crate) shown: Shown,
}

/// By what rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// The number of the column.
    pub column: u16,
    /// Whether the greatest value comes first.
    pub is_descending: bool,
    /// Whether NULLs come before all values.
    pub nulls_first: bool,
}

impl Shown {
    /// The column whose values it takes.
    pub(crate) fn column(self) -> Option<u16> {
        match self {
            Self::Column(column) => Some(column),
            Self::Aggregate(Aggregate::Rows) => None,
            Self::Aggregate(
                Aggregate::Count(column)
                | Aggregate::Sum(column)
                | Aggregate::Min(column)
                | Aggregate::Max(column)
                | Aggregate::Mean(column),
            ) => Some(column),
        }
    }
}

/// The columns of the result that a select list names.
pub(crate) fn outputs(names: &Names<'_>, items: &[SelectItem]) -> Result<Vec<Output>, Error> {
    let mut outputs = Vec::new();
    for item in items {
        match item {
            SelectItem::UnnamedExpr(expression) => outputs.push(output(names, expression, None)?),
            SelectItem::ExprWithAlias { expr, alias } => outputs.push(output(names, expr, Some(folded(alias)))?),
            SelectItem::Wildcard(options) => all_columns(names, names.all_columns(), options, &mut outputs)?,
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                let columns = names.columns_of(&single_name(name)?)?;
                all_columns(names, columns, options, &mut outputs)?;
            }
            _ => return not_supported("select lists of this form"),
        }
    }
    Ok(outputs)
}

/// Refuses columns beside aggregates, and columns by which groups are not made.
pub(crate) fn check_outputs(outputs: &[Output], groups: &[u16]) -> Result<(), Error> {
    let is_column = |output: &&Output| matches!(output.shown, Shown::Column(_));
    let others = outputs.iter().filter(is_column).filter_map(|output| output.shown.column());
    let others = others.filter(|column| !groups.contains(column)).count();
    let has_aggregates = outputs.iter().any(|output| !is_column(&output));
    if others > 0 && groups.is_empty() && has_aggregates {
        return not_supported("columns beside aggregates, which takes GROUP BY");
    }
    if others > 0 && !groups.is_empty() {
        return not_supported("columns that GROUP BY does not name");
    }
    Ok(())
}

fn all_columns(
    names: &Names<'_>,
    columns: Range<u16>,
    options: &WildcardAdditionalOptions,
    into: &mut Vec<Output>,
) -> Result<(), Error> {
    let plain = WildcardAdditionalOptions { wildcard_token: options.wildcard_token.clone(), ..Default::default() };
    if *options != plain {
        return not_supported("* with anything behind it");
    }
    for at in columns {
        let column = &names.definition.columns[usize::from(at)];
        into.push(Output { name: column.name.clone(), kind: column.kind, shown: Shown::Column(at) });
    }
    Ok(())
}

fn output(names: &Names<'_>, expression: &Expr, alias: Option<String>) -> Result<Output, Error> {
    if let Some(column) = names.column(expression)? {
        let own = &names.definition.columns[usize::from(column)];
        let name = alias.unwrap_or_else(|| own.name.clone());
        return Ok(Output { name, kind: own.kind, shown: Shown::Column(column) });
    }
    let Expr::Function(function) = expression else { return not_supported(kind_of(expression)) };
    let name = single_name(&function.name)?;
    let aggregate = aggregate(names, &name, argument(function)?)?;
    let kind = aggregate_kind(names, aggregate)?;
    Ok(Output { name: alias.unwrap_or(name), kind, shown: Shown::Aggregate(aggregate) })
}

/// The one argument of a function, as it stands between plain parentheses.
fn argument(function: &Function) -> Result<&FunctionArgExpr, Error> {
    let is_plain = matches!(function.parameters, FunctionArguments::None)
        && !function.uses_odbc_syntax
        && function.filter.is_none()
        && function.over.is_none()
        && function.null_treatment.is_none()
        && function.within_group.is_empty();
    match &function.args {
        FunctionArguments::List(list)
            if is_plain
                && list.clauses.is_empty()
                && list.duplicate_treatment.is_none_or(|treatment| treatment == DuplicateTreatment::All) =>
        {
            match &list.args[..] {
                [FunctionArg::Unnamed(argument)] => Ok(argument),
                _ => not_supported("functions of anything but one argument"),
            }
        }
        _ => not_supported("functions with DISTINCT, FILTER, OVER or ORDER BY"),
    }
}

fn aggregate(names: &Names<'_>, name: &str, argument: &FunctionArgExpr) -> Result<Aggregate, Error> {
    let column = match argument {
        FunctionArgExpr::Wildcard if name == "count" => return Ok(Aggregate::Rows),
        FunctionArgExpr::Expr(expression) => names.column(expression)?,
        _ => None,
    };
    let of: fn(u16) -> Aggregate = match name {
        "count" => Aggregate::Count,
        "sum" => Aggregate::Sum,
        "min" => Aggregate::Min,
        "max" => Aggregate::Max,
        "avg" => Aggregate::Mean,
        _ => return not_supported(format!("the function {name}")),
    };
    column.map(of).map_or_else(|| not_supported(format!("{name} of anything but a column")), Ok)
}

/// The type of an aggregate, as PostgreSQL has it; the mean of whole numbers and decimals has at least 16 digits behind
/// the point, and floating numbers are summed as doubles.
fn aggregate_kind(names: &Names<'_>, aggregate: Aggregate) -> Result<Type, Error> {
    match aggregate {
        Aggregate::Rows | Aggregate::Count(_) => Ok(Type::BigInt),
        Aggregate::Min(column) | Aggregate::Max(column) => match names.kind(column) {
            Type::Boolean => names.mismatch(column, "MIN and MAX are not for truth values"),
            kind => Ok(kind),
        },
        Aggregate::Sum(column) => match names.kind(column) {
            Type::SmallInt | Type::Integer => Ok(Type::BigInt),
            Type::BigInt => Ok(Type::Numeric(38, 0)),
            Type::Numeric(_, scale) => Ok(Type::Numeric(38, scale)),
            Type::Real | Type::Double => Ok(Type::Double),
            _ => names.mismatch(column, "SUM is for numbers"),
        },
        Aggregate::Mean(column) => match names.kind(column) {
            Type::SmallInt | Type::Integer | Type::BigInt => Ok(Type::Numeric(38, 16)),
            Type::Numeric(_, scale) => Ok(Type::Numeric(38, scale.max(16))),
            Type::Real | Type::Double => Ok(Type::Double),
            _ => names.mismatch(column, "AVG is for numbers"),
        },
    }
}

/// By what ORDER BY sorts: names of the result come before names of the table.
pub(crate) fn sort_keys(
    names: &Names<'_>,
    outputs: &[Output],
    is_distinct: bool,
    keys: &[OrderByExpr],
) -> Result<Vec<SortKey>, Error> {
    let mut sorted = Vec::new();
    for key in keys {
        if key.with_fill.is_some() {
            return not_supported("WITH FILL");
        }
        let shown = sorted_by(names, outputs, &key.expr)?;
        if is_distinct && !outputs.iter().any(|output| output.shown == shown) {
            return not_supported("SELECT DISTINCT with ORDER BY something that is not selected");
        }
        let is_descending = key.options.asc == Some(false);
        match shown {
            Shown::Column(column) => sorted.push(SortKey {
                column,
                is_descending,
                nulls_first: key.options.nulls_first.unwrap_or(is_descending),
            }),
            // There is one row.
            Shown::Aggregate(_) => {}
        }
    }
    let is_aggregate = outputs.iter().any(|output| matches!(output.shown, Shown::Aggregate(_)));
    if is_aggregate && !sorted.is_empty() {
        return not_supported("ORDER BY a column beside aggregates");
    }
    Ok(sorted)
}

pub(crate) fn sorted_by(names: &Names<'_>, outputs: &[Output], expression: &Expr) -> Result<Shown, Error> {
    match expression {
        Expr::Identifier(name) => {
            let name = folded(name);
            let mut named = outputs.iter().filter(|output| output.name == name).map(|output| output.shown);
            if let Some(shown) = named.next() {
                return if named.all(|other| other == shown) {
                    Ok(shown)
                } else {
                    not_supported("ORDER BY a name that two columns of the result have")
                };
            }
        }
        Expr::Value(value) => {
            let Written::Number(text, false) = &value.value else { return not_supported("ORDER BY a literal") };
            let at = text.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            return at
                .and_then(|at| outputs.get(at))
                .map_or_else(|| not_supported("ORDER BY a number that no column has"), |output| Ok(output.shown));
        }
        _ => {}
    }
    match names.column(expression)? {
        Some(column) => Ok(Shown::Column(column)),
        None => not_supported("ORDER BY anything but columns"),
    }
}
