//! Single expressions outside queries: defaults, CHECK constraints, constants.

use std::sync::Arc;

use counterfoil_relation::{self as relation, RowBatch, Rule, Selection, Table, TableId, Violation};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::optimizer::simplify_expressions::{ExprSimplifier, SimplifyContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::sql::sqlparser::ast::{Expr, ExprWithAlias};
use datafusion::sql::sqlparser::parser::Parser;
use parking_lot::Mutex;

use crate::coerce;
use crate::dialect;
use crate::error::{Error, Result};
use crate::grammar::Grammar;
use crate::planner::Planner;
use crate::provider;
use crate::rows;

/// CHECK constraints ready to run, by table. Dropped when the table's columns or checks are others.
#[derive(Default)]
pub(crate) struct Checks {
    ready: Mutex<Option<Ready>>,
}

struct Ready {
    table: TableId,
    schema: SchemaRef,
    checks: Vec<relation::Check>,
    conditions: Arc<Vec<Arc<dyn PhysicalExpr>>>,
}

/// Parses one expression.
///
/// # Errors
/// [`Error::Sql`].
pub(crate) fn parse(sql: &str) -> Result<Expr> {
    Ok(Parser::new(&Grammar).try_with_sql(sql)?.parse_expr()?)
}

/// All rows of a batch as a record batch with the table's column names.
pub(crate) fn record_batch(table: &Table, batch: &RowBatch) -> Result<RecordBatch> {
    let all = Selection::All(batch.count());
    let columns = (0..table.columns.len()).map(|column| rows::decode(batch, column, &all));
    let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.count()));
    // Rows on their way in may still have NULLs where the table allows none: that is looked at later.
    let fields = provider::schema(table)
        .fields()
        .iter()
        .map(|field| field.as_ref().clone().with_nullable(true))
        .collect::<Vec<_>>();
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
}

impl Planner {
    /// An expression over the columns of a schema, ready to run. Subqueries and aggregates are not possible here.
    pub(crate) fn expression(&self, expr: &Expr, schema: &DFSchema) -> Result<Arc<dyn PhysicalExpr>> {
        let mut expr = expr.clone();
        dialect::rewrite_expr(&mut expr);
        let expr = ExprWithAlias { expr, alias: None };
        let logical = self.state.create_logical_expr_from_sql_expr(expr, schema)?;
        let logical = logical.transform_up(|expr| coerce::unasked_in(expr, schema))?.data;
        let props: &ExecutionProps = self.state.execution_props();
        let context = SimplifyContext::builder()
            .with_schema(Arc::new(schema.clone()))
            .with_config_options(self.state.config_options().clone())
            .with_query_execution_start_time(props.query_execution_start_time)
            .build();
        let simplifier = ExprSimplifier::new(context);
        let logical = dialect::settled(simplifier.coerce(logical, schema)?, schema)?;
        let logical = simplifier.simplify(logical)?;
        Ok(self.state.create_physical_expr(logical, schema)?)
    }

    /// The values of an expression without columns, once for each of `count` rows.
    pub(crate) fn constants(&self, expr: &Expr, count: usize) -> Result<ArrayRef> {
        let physical = self.expression(expr, &DFSchema::empty())?;
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?;
        Ok(physical.evaluate(&batch)?.into_array(count)?)
    }

    /// Evaluates the CHECK constraints of a table on rows that are about to be stored. NULL passes.
    ///
    /// # Errors
    /// [`Error::Relation`] with a violation that names the check.
    pub(crate) fn check(&self, table: &Table, batch: &RowBatch) -> Result<()> {
        if table.checks.is_empty() {
            return Ok(());
        }
        let rows = record_batch(table, batch)?;
        let conditions = self.conditions(table, rows.schema())?;
        for (check, condition) in table.checks.iter().zip(conditions.iter()) {
            let answers = condition.evaluate(&rows)?.into_array(rows.num_rows())?;
            let answers = cast(&answers, &DataType::Boolean)?;
            let answers = answers.as_boolean();
            if (0..answers.len()).any(|row| answers.is_valid(row) && !answers.value(row)) {
                return Err(Error::Relation(relation::Error::from(Violation {
                    rule: Rule::Check,
                    constraint: check.name.clone(),
                    table: table.name.clone(),
                    columns: Vec::new(),
                })));
            }
        }
        Ok(())
    }

    fn conditions(&self, table: &Table, schema: SchemaRef) -> Result<Arc<Vec<Arc<dyn PhysicalExpr>>>> {
        let mut ready = self.checks.ready.lock();
        if let Some(ready) = ready.as_ref()
            && ready.table == table.id
            && ready.schema == schema
            && ready.checks == table.checks
        {
            return Ok(ready.conditions.clone());
        }
        let df_schema = DFSchema::try_from_qualified_schema(table.name.as_str(), &schema)?;
        let conditions = table.checks.iter().map(|check| self.expression(&parse(&check.sql)?, &df_schema));
        let conditions = Arc::new(conditions.collect::<Result<Vec<_>>>()?);
        let checks = table.checks.clone();
        *ready = Some(Ready { table: table.id, schema, checks, conditions: conditions.clone() });
        Ok(conditions)
    }
}
