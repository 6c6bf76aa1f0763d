//! Tables and views as the query library sees them while one statement is planned.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use counterfoil_relation::Table;
use counterfoil_series::SeriesTables;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{CatalogProvider, SchemaProvider, Session, TableProvider};
use datafusion::common::{Constraint, Constraints, DataFusionError};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use parking_lot::RwLock;

use crate::catalog;
use crate::filter;
use crate::scan::{Output, Reach, TableScan, Target};
use crate::series::{self, SeriesScan, SeriesTarget};
use crate::types;

/// The column that numbers rows, for planning UPDATE and DELETE only.
pub const ROW_ID: &str = "__counterfoil_row";

/// The Arrow schema of a table's visible columns.
pub fn schema(table: &Table) -> Schema {
    let field = |column: &counterfoil_relation::Column| types::field(&column.name, &column.kind, !column.not_null);
    Schema::new(table.columns.iter().map(field).collect::<Vec<_>>())
}

/// A table as of a snapshot.
#[derive(Clone)]
pub struct Provider {
    target: Target,
    series: Arc<SeriesTables>,
    schema: SchemaRef,
    constraints: Constraints,
    reach: Reach,
}

impl Provider {
    /// The table with its visible columns; `numbered`: and the numbers of its rows.
    pub fn new(target: Target, series: Arc<SeriesTables>, numbered: bool, reach: Reach) -> Self {
        let mut fields: Vec<_> = schema(&target.table).fields().iter().cloned().collect();
        if numbered {
            let numbers = match series::is_series(&target.table) {
                true => DataType::Decimal128(38, 0),
                false => DataType::Int64,
            };
            fields.push(Arc::new(Field::new(ROW_ID, numbers, false)));
        }
        let table = &target.table;
        let places = |columns: &[counterfoil_relation::ColumnId]| {
            columns.iter().map(|id| table.position(*id)).collect::<Option<Vec<usize>>>()
        };
        let primary = table.primary_key.iter().filter_map(|key| places(&key.columns)).map(Constraint::PrimaryKey);
        let constraints = Constraints::new_unverified(primary.collect());
        Provider { schema: Arc::new(Schema::new(fields)), constraints, target, series, reach }
    }

    /// The same table without a word about its keys.
    pub fn keyless(&self) -> Self {
        Provider { constraints: Constraints::default(), ..self.clone() }
    }
}

impl Provider {
    fn scan_series(
        &self,
        output: Vec<Output>,
        schema: SchemaRef,
        filters: &[Expr],
        (session, limit): (&dyn Session, Option<usize>),
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let Target { snapshot, table, .. } = &self.target;
        let (snapshot, table) = (snapshot.clone(), table.clone());
        if !series::is_there(&self.series, &snapshot, &table)? {
            return Ok(Arc::new(EmptyExec::new(schema)));
        }
        let limit = limit.filter(|_| filters.iter().all(|expr| series::decides(expr, &table)));
        let target = SeriesTarget { tables: self.series.clone(), snapshot, table };
        Ok(Arc::new(SeriesScan::plan(target, output, schema, filters, limit, (session, self.reach.parts))?))
    }
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider").field("table", &self.target.table.name).finish()
    }
}

#[async_trait]
impl TableProvider for Provider {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
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
        let table = &self.target.table;
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let projection = projection.unwrap_or(&all);
        let output = projection
            .iter()
            .map(|place| if *place < table.columns.len() { Output::Column(*place) } else { Output::RowId })
            .collect();
        let schema = Arc::new(self.schema.project(projection)?);
        if series::is_series(table) {
            return self.scan_series(output, schema, filters, (state, limit));
        }
        let tests: Vec<_> = filters.iter().filter_map(|expr| filter::compile(expr, table)).collect();
        // A limit may only be taken over if nothing is filtered out above this scan.
        let limit = limit.filter(|_| tests.len() == filters.len());
        if projection.is_empty()
            && let Some(scan) =
                TableScan::of_count(self.target.clone(), schema.clone(), tests.clone(), limit, self.reach.room)?
        {
            return Ok(Arc::new(scan));
        }
        Ok(Arc::new(TableScan::plan(self.target.clone(), output, schema, tests, limit, self.reach)?))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>, DataFusionError> {
        let table = &self.target.table;
        let decides = |expr: &Expr| match series::is_series(table) {
            true => series::decides(expr, table),
            false => filter::compile(expr, table).is_some(),
        };
        let answer = |expr: &&Expr| match decides(expr) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(answer).collect())
    }
}

/// The tables one statement may name. Filled before planning, so that planning reads no catalog.
#[derive(Default)]
pub struct Named {
    tables: RwLock<HashMap<String, Arc<dyn TableProvider>>>,
}

impl Named {
    /// Forgets the tables of the statement before.
    pub fn clear(&self) {
        self.tables.write().clear();
    }

    /// Takes all tables out, to put them back later.
    pub fn take(&self) -> HashMap<String, Arc<dyn TableProvider>> {
        std::mem::take(&mut *self.tables.write())
    }

    /// Puts back what was taken out.
    pub fn restore(&self, tables: HashMap<String, Arc<dyn TableProvider>>) {
        *self.tables.write() = tables;
    }

    /// Makes a table known.
    pub fn insert(&self, name: impl Into<String>, table: Arc<dyn TableProvider>) {
        self.tables.write().insert(name.into(), table);
    }

    /// What a name stands for.
    pub fn named(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        self.tables.read().get(name).cloned()
    }

    /// Whether a name is known already.
    pub fn contains(&self, name: &str) -> bool {
        self.tables.read().contains_key(name)
    }
}

impl std::fmt::Debug for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Named").field("tables", &self.tables.read().len()).finish()
    }
}

#[async_trait]
impl SchemaProvider for Named {
    fn table_names(&self) -> Vec<String> {
        self.tables.read().keys().cloned().collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        Ok(self.named(name))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.contains(name)
    }
}

/// The one catalog: the users' schema, `information_schema`, and our own.
#[derive(Debug)]
pub struct Catalog {
    /// What `public` (or no schema) names.
    pub public: Arc<Named>,
    /// What `information_schema` names.
    pub information: Arc<Named>,
    /// What `counterfoil` names.
    pub own: Arc<Named>,
    /// What `future` names.
    pub future: Arc<Named>,
    /// What `pg_catalog` names.
    pub system: Arc<Named>,
}

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        [crate::SCHEMA, crate::INFORMATION, crate::OWN, series::FUTURE, catalog::SCHEMA].map(String::from).into()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        match name {
            crate::SCHEMA => Some(self.public.clone()),
            crate::INFORMATION => Some(self.information.clone()),
            crate::OWN => Some(self.own.clone()),
            series::FUTURE => Some(self.future.clone()),
            catalog::SCHEMA => Some(self.system.clone()),
            _ => None,
        }
    }
}
