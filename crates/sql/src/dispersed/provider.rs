//! A dispersed table as the query library sees it while one statement is planned: rows that are still here, and those of clouds.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use counterfoil_disperse::Goal;
use counterfoil_log::Snapshot;
use counterfoil_relation::Table;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::union::UnionExec;

use super::scan::{Begins, DispersedScan, Wanted};
use super::{Dispersed, conditions};
use crate::engine::Engine;
use crate::filter;
use crate::provider::Provider;
use crate::published::Verdicts;
use crate::store::Store;

/// A dispersed table, for one statement.
pub(crate) struct DispersedProvider {
    table: Arc<Table>,
    snapshot: Snapshot,
    /// What is still here.
    here: Provider,
    verdicts: Arc<Verdicts>,
    dispersed: Arc<Dispersed>,
    store: Arc<dyn Store>,
    goal: Goal,
}

impl DispersedProvider {
    /// The table as of a snapshot; `here` shows the rows that are still here.
    pub(crate) fn new(
        engine: &Engine,
        (table, snapshot): (Arc<Table>, Snapshot),
        here: Provider,
        (verdicts, goal): (Arc<Verdicts>, Goal),
    ) -> Self {
        let (dispersed, store) = (engine.dispersed.clone(), engine.store.clone());
        DispersedProvider { table, snapshot, here, verdicts, dispersed, store, goal }
    }
}

impl fmt::Debug for DispersedProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DispersedProvider").field("table", &self.table.name).finish()
    }
}

#[async_trait]
impl TableProvider for DispersedProvider {
    fn schema(&self) -> SchemaRef {
        self.here.schema()
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
        let here = self.here.scan(state, projection, filters, None).await?;
        let all: Vec<usize> = (0..self.schema().fields().len()).collect();
        let begins = |expr: &Expr| {
            let (column, text) = conditions::begins(expr, &self.table)?;
            Some(Begins { column, text, bounds: filter::compile(expr, &self.table) })
        };
        let others = filters.iter().filter(|expr| conditions::begins(expr, &self.table).is_none());
        let wanted = Wanted {
            columns: projection.unwrap_or(&all).clone(),
            tests: others.filter_map(|expr| filter::compile(expr, &self.table)).collect(),
            begins: filters.iter().filter_map(begins).collect(),
            // Whoever wants so many of all rows is served by any of them.
            rows_most: limit.filter(|_| filters.is_empty()),
            goal: self.goal,
            batch_rows: state.config().batch_size().max(1),
            schema: here.schema(),
        };
        let away = DispersedScan::new(
            (self.table.clone(), self.snapshot.clone()),
            wanted,
            (self.verdicts.clone(), self.dispersed.clone(), self.store.clone()),
        );
        UnionExec::try_new(vec![here, Arc::new(away)])
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>, DataFusionError> {
        // What clouds match is asked again of the values: of texts a code knows the beginning alone, and a cloud may lie.
        let is_asked = |expr: &Expr| {
            filter::compile(expr, &self.table).is_some() || conditions::begins(expr, &self.table).is_some()
        };
        let answer = |expr: &&Expr| match is_asked(expr) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(answer).collect())
    }
}
