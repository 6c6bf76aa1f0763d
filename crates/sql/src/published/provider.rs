//! A published table as the query library sees it while one statement is planned.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use counterfoil_relation::Table;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::scan::PublishedScan;
use super::{Source, Verdicts, VerifiedTable, Wanted};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::filter;
use crate::provider;

/// What a statement has to do with all its published tables.
#[derive(Clone)]
pub(crate) struct Statement {
    /// Where it is told what is known of rows.
    pub(crate) verdicts: Arc<Verdicts>,
    /// Whether what was seen may be written while it runs: not where it has the writer itself.
    pub(crate) may_write: bool,
}

/// A published table, for one statement.
pub(crate) struct PublishedProvider {
    table: Arc<Table>,
    /// Or why it cannot be asked, which is told as soon as it is to be.
    verified: Result<Arc<dyn VerifiedTable>>,
    schema: SchemaRef,
    statement: Statement,
}

impl PublishedProvider {
    pub(crate) fn new(engine: &Engine, table: Arc<Table>, statement: Statement) -> Self {
        let verified = || {
            let source = Source::of_table(&table)?.ok_or_else(|| Error::Bug("a table that is not published".into()))?;
            engine.verifier()?.table(&source, &table)
        };
        PublishedProvider { verified: verified(), schema: Arc::new(provider::schema(&table)), table, statement }
    }
}

impl fmt::Debug for PublishedProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishedProvider").field("table", &self.table.name).finish()
    }
}

#[async_trait]
impl TableProvider for PublishedProvider {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let verified = self.verified.clone()?;
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let columns = projection.unwrap_or(&all).clone();
        let schema = Arc::new(self.schema.project(&columns)?);
        let tests: Vec<_> = filters.iter().filter_map(|expr| filter::compile(expr, &self.table)).collect();
        // A limit may only be taken over if nothing is filtered out above this scan.
        let limit = limit.filter(|_| tests.len() == filters.len());
        let batch_rows = state.config().batch_size().max(1);
        let wanted = Wanted { columns, tests, sort: Vec::new(), limit, batch_rows, schema };
        Ok(Arc::new(PublishedScan::plan(self.table.clone(), verified, wanted, self.statement.clone())?))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>, DataFusionError> {
        let answer = |expr: &&Expr| match filter::compile(expr, &self.table) {
            Some(_) => TableProviderFilterPushDown::Exact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(answer).collect())
    }
}
