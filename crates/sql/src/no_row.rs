//! A subquery in an expression is NULL where it has no row.
//!
//! The query library takes it for what its column is: one of a primary key, or a literal, counts as never NULL (DataFusion 55,
//! `expr_schema.rs`). Then `(SELECT id ...) IS NULL` is false before anything has been looked at, `coalesce` has its answer, and a NULL that
//! comes all the same is an error.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::DataFusionError;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Subquery, Volatility,
};

use crate::rewriting;

/// Makes the column of every subquery in an expression one that may be NULL, if there may be no row.
pub(crate) fn may_be(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    rewriting::of_plan(plan, nullable)
}

fn nullable(expr: Expr) -> Result<Transformed<Expr>, DataFusionError> {
    let Expr::ScalarSubquery(subquery) = expr else { return Ok(Transformed::no(expr)) };
    let (qualifier, field) = subquery.subquery.schema().qualified_field(0);
    if field.is_nullable() || has_one_row(&subquery.subquery) {
        return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
    }
    let name = field.name().clone();
    let column = Expr::Column((qualifier, field).into());
    let column = Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&OR_NULL), vec![column])).alias(name);
    let plan = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone()).project([column])?.build()?;
    Ok(Transformed::yes(Expr::ScalarSubquery(Subquery { subquery: plan.into(), ..subquery })))
}

/// Whether a plan answers one row, whatever there is.
pub(crate) fn has_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => has_one_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_one_row(&alias.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        _ => false,
    }
}

static OR_NULL: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    // Of a literal it must stay what it is until the rows are there: nothing that is volatile is worked out before.
    Arc::new(ScalarUDF::new_from_impl(OrNull { signature: Signature::any(1, Volatility::Volatile) }))
});

static AS_IT_IS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(OrNull { signature: Signature::any(1, Volatility::Immutable) }))
});

/// The same value, of which the library sees nothing but its type.
pub(crate) fn as_it_is(expr: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&AS_IT_IS), vec![expr]))
}

/// Its argument, of which nobody may say that it is never NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OrNull {
    signature: Signature,
}

impl ScalarUDFImpl for OrNull {
    fn name(&self) -> &str {
        "or_null"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType, DataFusionError> {
        Ok(arguments[0].clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef, DataFusionError> {
        let field: Field = arguments.arg_fields[0].as_ref().clone();
        Ok(Arc::new(field.with_name(self.name()).with_nullable(true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        let mut arguments = arguments.args;
        Ok(arguments.swap_remove(0))
    }
}
