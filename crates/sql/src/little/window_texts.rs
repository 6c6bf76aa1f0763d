//! Windows over texts, with little memory.
//!
//! A window keeps a few rows between one batch and the next, and the library puts those and the next ones together. Where texts lie apart from
//! their column (`Utf8View`), the blocks of all batches that ever came go along with it, whether or not a row still has something there
//! (DataFusion 55, `PartitionBatchState::extend`): a rank held all of a table's texts. So windows are given texts that lie in their
//! columns (`Utf8`), and what is worked out of them, and what they answer, has the types that it had.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNode as _};
use datafusion::common::{DFSchema, DataFusionError, ExprSchema as _};
use datafusion::logical_expr::expr::{Alias, WindowFunction};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Window, cast};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::text_keys::in_column;

/// The rule.
#[derive(Debug)]
pub(crate) struct WindowTexts;

impl OptimizerRule for WindowTexts {
    fn name(&self) -> &str {
        "window_texts"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>, DataFusionError> {
        match plan {
            LogicalPlan::Window(window) if lies_apart(window.input.schema()) => {
                over_columns(&window).map(Transformed::yes)
            }
            plan => Ok(Transformed::no(plan)),
        }
    }
}

fn lies_apart(schema: &DFSchema) -> bool {
    schema.fields().iter().any(|field| in_column(field.data_type()).is_some())
}

/// The same windows over texts in their columns.
fn over_columns(window: &Window) -> Result<LogicalPlan, DataFusionError> {
    let input = window.input.schema();
    let inside = projected(input, Arc::unwrap_or_clone(window.input.clone()), in_column)?;
    let exprs = window.window_expr.iter().map(|expr| as_it_was(expr.clone(), input)).collect::<Result<Vec<_>, _>>()?;
    let windows = Window::try_new(exprs, Arc::new(inside))?;
    let now = windows.schema.clone();
    let shown = (0..now.fields().len()).map(|place| {
        let (qualifier, field) = window.schema.qualified_field(place);
        let column = Expr::from(now.qualified_field(place));
        let is_same = field.data_type() == now.field(place).data_type();
        let column = if is_same { column } else { cast(column, field.data_type().clone()) };
        column.alias_qualified(qualifier.cloned(), field.name())
    });
    Ok(LogicalPlan::Projection(Projection::try_new(shown.collect(), Arc::new(LogicalPlan::Window(windows)))?))
}

/// All columns of an input, some of them as another type under the same name.
fn projected(
    schema: &DFSchema,
    input: LogicalPlan,
    kind: impl Fn(&DataType) -> Option<DataType>,
) -> Result<LogicalPlan, DataFusionError> {
    let column = |place: usize| {
        let (qualifier, field) = schema.qualified_field(place);
        let column = Expr::from((qualifier, field));
        match kind(field.data_type()) {
            Some(kind) => cast(column, kind).alias_qualified(qualifier.cloned(), field.name()),
            None => column,
        }
    };
    let columns = (0..schema.fields().len()).map(column).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(input))?))
}

/// A window whose arguments have the types that they had. Whole columns by which it parts and orders rows do not need that.
fn as_it_was(expr: Expr, before: &DFSchema) -> Result<Expr, DataFusionError> {
    let retyped = |expr: Expr| typed_as_before(expr, before);
    let unless_whole = |expr: Expr| if matches!(expr, Expr::Column(_)) { Ok(expr) } else { retyped(expr) };
    match expr {
        Expr::Alias(alias) => {
            let inner = as_it_was(*alias.expr.clone(), before)?;
            Ok(Expr::Alias(Alias { expr: Box::new(inner), ..alias }))
        }
        Expr::WindowFunction(window) => {
            let WindowFunction { fun, mut params } = *window;
            params.args = params.args.into_iter().map(retyped).collect::<Result<_, _>>()?;
            params.partition_by = params.partition_by.into_iter().map(unless_whole).collect::<Result<_, _>>()?;
            for order in &mut params.order_by {
                order.expr = unless_whole(order.expr.clone())?;
            }
            params.filter = params.filter.map(|filter| retyped(*filter).map(Box::new)).transpose()?;
            Ok(Expr::WindowFunction(Box::new(WindowFunction { fun, params })))
        }
        other => retyped(other),
    }
}

fn typed_as_before(expr: Expr, before: &DFSchema) -> Result<Expr, DataFusionError> {
    expr.transform(|expr| match &expr {
        Expr::Column(column) => {
            let kind = before.field_from_column(column)?.data_type().clone();
            Ok(if in_column(&kind).is_some() { Transformed::yes(cast(expr, kind)) } else { Transformed::no(expr) })
        }
        _ => Ok(Transformed::no(expr)),
    })
    .data()
}
