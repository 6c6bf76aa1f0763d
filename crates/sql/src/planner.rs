//! The query library, set up for one session: it plans and runs queries over the tables of one snapshot.

use std::collections::HashSet;
use std::sync::Arc;

use counterfoil_disperse::Goal;
use counterfoil_log::{Snapshot, View};
use counterfoil_relation::{self as relation, StoredView, Table};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{FieldRef, Schema};
use datafusion::catalog::{CatalogProviderList, MemoryCatalogProviderList, TableProvider};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Constraint, TableReference};
use datafusion::config::Dialect;
use datafusion::datasource::{MemTable, ViewTable, provider_as_source, source_as_provider};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::config::SessionConfig;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, TableScanBuilder};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::parser::Statement as LibraryStatement;
use datafusion::sql::sqlparser::ast::{Query, Statement};
use futures::TryStreamExt;

use crate::aside::Means;
use crate::asked;
use crate::by_keys::Keyed;
use crate::catalog;
use crate::coerce;
use crate::dialect;
use crate::dispersed::{self, DispersedProvider};
use crate::engine::{Engine, EngineOptions};
use crate::error::{Error, Result};
use crate::evaluate::Checks;
use crate::far_limit::FarLimit;
use crate::frugal;
use crate::historian;
use crate::incidents;
use crate::information;
use crate::interrupt::Interrupt;
use crate::joining::JoinAlong;
use crate::late_scan::Late;
use crate::little::{CountsAsSums, Little, Merging, WindowTexts};
use crate::memory;
use crate::multisets;
use crate::naming;
use crate::nesting::{self, Written};
use crate::no_row;
use crate::nulls;
use crate::one_row;
use crate::outer_keys;
use crate::outer_names;
use crate::outer_values;
use crate::provider::{Catalog, Named, Provider};
use crate::published::{self, PublishedProvider, Verdicts};
use crate::publishing;
use crate::ram::Ram;
use crate::read_ahead;
use crate::running;
use crate::scan::Target;
use crate::series;
use crate::session::with_stack;
use crate::sharing::Part;
use crate::shortcut::{Cheaper, Shortcut, Switch};
use crate::statement::{self, object};
use crate::unordered::OneOrder;

/// How deep views may name views.
const VIEW_DEPTH_MAX: usize = 32;

/// The query library of one session.
pub(crate) struct Planner {
    engine: Arc<Engine>,
    /// How the queries of this session run.
    options: EngineOptions,
    pub(crate) means: Means,
    /// What its queries have of the memory of all.
    pub(crate) part: Arc<Part>,
    catalogs: Arc<dyn CatalogProviderList>,
    pub(crate) state: SessionState,
    frugal: Option<Arc<SessionState>>,
    public: Arc<Named>,
    information: Arc<Named>,
    own: Arc<Named>,
    future: Arc<Named>,
    system: Arc<Named>,
    /// What the session was told, for those who ask the catalogue.
    pub(crate) said: catalog::Said,
    /// Whether a view is being described, whose columns alone matter.
    is_describing: bool,
    /// Whether its queries are the database's own, which find tables that are hidden from others.
    pub(crate) is_own: bool,
    /// Whether the statement that is planned has the writer.
    pub(crate) is_writing: bool,
    /// Whether rows of the query that is planned are read when they are asked for: those of a cursor.
    pub(crate) is_for_later: bool,
    /// What is known of rows of published tables.
    pub(crate) verdicts: Arc<Verdicts>,
    /// What the answer of the statement is to be above all.
    goal: Goal,
    pub(crate) interrupt: Interrupt,
    pub(crate) checks: Checks,
    /// Whether aggregations may be answered from summaries, and other shortcuts be taken.
    pub(crate) summaries: Switch,
    /// Whether joins along foreign keys may be read off the rows.
    pub(crate) foreign_key_joins: Switch,
    /// Calls in FROM that were planned so far, by which their hidden names differ.
    calls: u64,
}

impl Planner {
    pub(crate) fn new(engine: Arc<Engine>) -> Result<Self> {
        let public = Arc::new(Named::default());
        let information = Arc::new(Named::default());
        let catalogs = MemoryCatalogProviderList::new();
        let (summaries, foreign_key_joins) = (Switch::default(), Switch::default());
        let [own, future, system] = std::array::from_fn(|_| Arc::new(Named::default()));
        let catalog = Catalog {
            public: public.clone(),
            information: information.clone(),
            own: own.clone(),
            future: future.clone(),
            system: system.clone(),
        };
        catalogs.register_catalog(crate::CATALOG.into(), Arc::new(catalog));
        let catalogs: Arc<dyn CatalogProviderList> = Arc::new(catalogs);
        let options = engine.options.clone();
        let (part, means) = part(&engine, &options);
        let state = state(&engine, &options, &means, catalogs.clone(), [&summaries, &foreign_key_joins])?;
        let frugal = frugal::state(&state, &options)?;
        let (interrupt, checks) = (Interrupt::new(), Checks::default());
        Ok(Planner {
            engine,
            options,
            means,
            part,
            catalogs,
            state,
            frugal,
            public,
            information,
            own,
            future,
            system,
            said: catalog::Said::default(),
            is_describing: false,
            is_own: false,
            is_writing: false,
            is_for_later: false,
            verdicts: Arc::default(),
            goal: Goal::Ordinary,
            interrupt,
            checks,
            summaries,
            foreign_key_joins,
            calls: 0,
        })
    }

    /// From now on queries of this session have no more memory than this, of what all have; without it as much as there is.
    ///
    /// # Errors
    /// [`Error::Misuse`] for more than all have.
    pub(crate) fn bound(&mut self, ram: Option<Ram>) -> Result<()> {
        let (engine, all) = (&self.engine, &self.engine.options);
        let options = match ram {
            None => all.clone(),
            Some(ram) if ram.queries() > all.memory_bytes => {
                let text = format!("ram = {ram}: that is more than the database was opened with");
                return Err(Error::Misuse(text));
            }
            Some(ram) => ram.bounds(all.clone()),
        };
        let (part, means) = part(engine, &options);
        let switches = [&self.summaries, &self.foreign_key_joins];
        self.state = state(engine, &options, &means, self.catalogs.clone(), switches)?;
        self.frugal = frugal::state(&self.state, &options)?;
        (self.options, self.part, self.means) = (options, part, means);
        Ok(())
    }

    /// How the queries of this session run.
    pub(crate) fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// Makes the tables of a statement known, as of a snapshot.
    pub(crate) fn resolve(&mut self, statement: &LibraryStatement, snapshot: &Snapshot, depth: usize) -> Result<()> {
        if depth > VIEW_DEPTH_MAX {
            return Err(Error::Sql(format!("views are nested more than {VIEW_DEPTH_MAX} deep, or name themselves")));
        }
        for reference in self.state.resolve_table_references(statement)? {
            match reference.schema() {
                None | Some(crate::SCHEMA) => self.resolve_name(&reference, snapshot, depth)?,
                Some(crate::INFORMATION) => self.resolve_information(&reference, snapshot)?,
                Some(crate::OWN) => self.resolve_own(&reference, snapshot)?,
                Some(crate::series::FUTURE) => self.resolve_future(&reference, snapshot)?,
                Some(catalog::SCHEMA) => self.resolve_catalog(&reference, snapshot)?,
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn resolve_name(&mut self, reference: &TableReference, snapshot: &Snapshot, depth: usize) -> Result<()> {
        let name = reference.table();
        // A name may have come here as a text as well, as the input of a function: for others there is no such table.
        if self.public.contains(name) || (publishing::is_hidden(name) && !self.is_own) {
            return Ok(());
        }
        if statement::kept_apart(name).is_some() {
            let table = rows_of(&self.engine, snapshot, name)?;
            let provider = self.provider(table, snapshot, false);
            self.public.insert(name, provider);
            return Ok(());
        }
        match self.engine.relations.named(snapshot, name).map_err(Error::Relation)? {
            Some(relation::Named::Table(table)) => {
                let provider = self.provider(table, snapshot, false);
                self.public.insert(name, provider);
            }
            Some(relation::Named::View(view)) => {
                let provider = self.view(&view, snapshot, depth)?;
                self.public.insert(name, provider);
            }
            // PostgreSQL's catalogue is found without its schema, behind ours.
            None if catalog::is_table(name) => {
                let table = catalog::table(name, self, snapshot)?.map(batch_table).transpose()?;
                table.into_iter().for_each(|table| self.public.insert(name, table));
            }
            // Not a table: the planner says so, unless it is a table function or the like.
            Some(relation::Named::Index(..)) | None => {}
        }
        Ok(())
    }

    /// What is kept apart of a series table.
    fn resolve_future(&mut self, reference: &TableReference, snapshot: &Snapshot) -> Result<()> {
        let name = reference.table();
        if let Some(relation::Named::Table(table)) =
            self.engine.relations.named(snapshot, name).map_err(Error::Relation)?
            && let Some(apart) = series::kept_apart(&table)
        {
            let provider = self.provider(apart, snapshot, false);
            self.future.insert(name, provider);
        }
        Ok(())
    }

    fn resolve_information(&mut self, reference: &TableReference, snapshot: &Snapshot) -> Result<()> {
        let name = reference.table();
        if self.information.contains(name) {
            return Ok(());
        }
        if let Some(batch) = information::table(name, self, snapshot)? {
            let table = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
            self.information.insert(name, Arc::new(table));
        }
        Ok(())
    }

    fn resolve_catalog(&mut self, reference: &TableReference, snapshot: &Snapshot) -> Result<()> {
        let name = reference.table();
        if !self.system.contains(name)
            && let Some(batch) = catalog::table(name, self, snapshot)?
        {
            self.system.insert(name, batch_table(batch)?);
        }
        Ok(())
    }

    /// Puts what asks the catalogue into words that are read here.
    fn adapt(&self, statement: &mut Statement, snapshot: &Snapshot) -> Result<()> {
        let is_ours = |name: &str| matches!(self.engine.relations.named(snapshot, name), Ok(Some(_)));
        catalog::adapt(statement, &self.said, &is_ours)
    }

    /// Makes functions that answer from what the database holds answer as of this snapshot.
    fn know_facts(&mut self, statement: &Statement, snapshot: &Snapshot) -> Result<()> {
        if !self.is_describing && catalog::wants_facts(statement) {
            let facts = Arc::new(catalog::Facts::of(self, snapshot)?);
            catalog::functions(&facts)
                .into_iter()
                .try_for_each(|function| self.state.register_udf(function).map(drop))?;
        }
        Ok(())
    }

    fn resolve_own(&mut self, reference: &TableReference, snapshot: &Snapshot) -> Result<()> {
        let batch = match reference.table() {
            "incidents" => Some(incidents::table(snapshot)?),
            other => series::catalog_table(other, &self.engine, snapshot)?,
        };
        if let Some(batch) = batch {
            let table = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
            self.own.insert(reference.table(), Arc::new(table));
        }
        Ok(())
    }

    fn provider(&self, table: Arc<Table>, snapshot: &Snapshot, numbered: bool) -> Arc<dyn TableProvider> {
        if published::is_published(&table) {
            let statement = published::Statement { verdicts: self.verdicts.clone(), may_write: !self.is_writing };
            return Arc::new(PublishedProvider::new(&self.engine, table, statement));
        }
        let target = Target { relations: self.engine.relations.clone(), snapshot: snapshot.clone(), table };
        let (series, table) = (self.engine.series.clone(), target.table.clone());
        let provider = Provider::new(target, series, numbered, memory::reach(&self.options));
        match dispersed::is_dispersed(&table) {
            true => Arc::new(DispersedProvider::new(
                &self.engine,
                (table, snapshot.clone()),
                provider,
                (self.verdicts.clone(), self.goal),
            )),
            false => Arc::new(provider),
        }
    }

    fn view(&mut self, view: &StoredView, snapshot: &Snapshot, depth: usize) -> Result<Arc<dyn TableProvider>> {
        let plan = self.view_plan(view, snapshot, depth)?;
        Ok(Arc::new(ViewTable::new(plan, Some(view.sql.clone()))))
    }

    /// The plan of a view's query, its columns named as the view names them.
    fn view_plan(&mut self, view: &StoredView, snapshot: &Snapshot, depth: usize) -> Result<LogicalPlan> {
        with_stack(&view.sql, || self.view_plan_here(view, snapshot, depth))
    }

    fn view_plan_here(&mut self, view: &StoredView, snapshot: &Snapshot, depth: usize) -> Result<LogicalPlan> {
        let mut statement = statement::parse(&view.sql)?
            .into_iter()
            .next()
            .ok_or_else(|| Error::Bug(format!("view {} has no query", view.name)))?;
        naming::name_columns(&mut statement, naming::Names::Written);
        self.adapt(&mut statement, snapshot)?;
        dialect::rewrite(&mut statement);
        self.know_facts(&statement, snapshot)?;
        self.expand(&mut statement, snapshot, depth + 1)?;
        outer_names::qualified(&mut statement)?;
        let statement = LibraryStatement::Statement(Box::new(statement));
        self.resolve(&statement, snapshot, depth + 1)?;
        let plan = self.plan_resolved(statement)?;
        if view.columns.is_empty() {
            return Ok(plan);
        }
        let columns = plan.schema().columns();
        let named = columns
            .into_iter()
            .zip(&view.columns)
            .map(|(column, name)| datafusion::logical_expr::Expr::Column(column).alias(name));
        Ok(LogicalPlanBuilder::from(plan).project(named.collect::<Vec<_>>())?.build()?)
    }

    /// The columns of a stored view: what `information_schema` and DESCRIBE show.
    pub(crate) fn view_schema(&mut self, view: &StoredView, snapshot: &Snapshot) -> Result<Schema> {
        // This may happen in the middle of planning something else, and what is known here is known as of this snapshot alone.
        let schemas = [&self.public, &self.information, &self.future, &self.system].map(Arc::clone);
        let known = schemas.each_ref().map(|schema| schema.take());
        let was_describing = std::mem::replace(&mut self.is_describing, true);
        let plan = self.view_plan(view, snapshot, 0);
        self.is_describing = was_describing;
        schemas.iter().zip(known).for_each(|(schema, known)| schema.restore(known));
        self.schema_of(&plan?)
    }

    /// The columns that a plan answers. Its own schema says what the first branch of a UNION or CASE is; what comes of all of them
    /// is known when they have been made alike.
    pub(crate) fn schema_of(&self, plan: &LogicalPlan) -> Result<Schema> {
        let alike = self.state.analyzer().execute_and_check(plan.clone(), self.state.config_options(), |_, _| {})?;
        let fields = plan.schema().fields().iter().zip(alike.schema().fields());
        let field = |(own, alike): (&FieldRef, &FieldRef)| match own.data_type() == alike.data_type() {
            true => own.clone(),
            false => Arc::new(alike.as_ref().clone().with_name(own.name())),
        };
        Ok(Schema::new(fields.map(field).collect::<Vec<_>>()))
    }

    pub(crate) fn plan_resolved(&self, statement: LibraryStatement) -> Result<LogicalPlan> {
        let plan = self.state.statement_to_plan(statement);
        let plan = self.engine.executor.run(&self.interrupt, async { Ok(plan.await?) });
        plan.and_then(|plan| {
            let plan = multisets::counted(coerce::unasked(nesting::bounded(plan)?)?)?;
            let written = Written::of(&plan)?;
            let plan = written.bounded(one_row::aggregated(outer_keys::told_apart(plan)?)?)?;
            let plan = nulls::keep_unknown(plan, written)?;
            let plan = written.bounded(outer_values::brought_in(plan)?)?;
            forget_keys(no_row::may_be(plan)?)
        })
    }

    /// Plans a query (or EXPLAIN of one) over the tables of a snapshot and `extra` ones.
    pub(crate) fn plan(
        &mut self,
        mut statement: Statement,
        snapshot: &Snapshot,
        extra: Vec<(String, Arc<dyn TableProvider>)>,
    ) -> Result<LogicalPlan> {
        self.goal = dispersed::take_goal(&mut statement)?;
        self.adapt(&mut statement, snapshot)?;
        asked::refuse(&statement)?;
        dialect::refuse(&statement)?;
        dialect::rewrite(&mut statement);
        for (name, table) in extra {
            self.public.insert(name, table);
        }
        let plan = self.plan_rewritten(statement, snapshot);
        // The plan has what it needs; nothing else may hold on to the snapshot.
        self.public.clear();
        self.information.clear();
        self.future.clear();
        self.system.clear();
        plan
    }

    fn plan_rewritten(&mut self, mut statement: Statement, snapshot: &Snapshot) -> Result<LogicalPlan> {
        self.know_facts(&statement, snapshot)?;
        self.expand(&mut statement, snapshot, 0)?;
        outer_names::qualified(&mut statement)?;
        let statement = LibraryStatement::Statement(Box::new(statement));
        self.resolve(&statement, snapshot, 0)?;
        self.plan_resolved(statement)
    }

    /// Makes the answer of a call in FROM known, and says under which name.
    pub(crate) fn name_call(&mut self, table: Arc<dyn TableProvider>) -> String {
        self.calls += 1;
        let name = format!("{}_call_{}", crate::HIDDEN, self.calls);
        self.public.insert(name.as_str(), table);
        name
    }

    /// The columns of the primary key of a table that is known.
    pub(crate) fn primary_key(&self, name: &str) -> Option<Vec<String>> {
        let table = self.public.named(name)?;
        let schema = table.schema();
        let key = table.constraints()?.iter().find_map(|constraint| match constraint {
            Constraint::PrimaryKey(columns) => Some(columns.clone()),
            Constraint::Unique(_) => None,
        })?;
        Some(key.into_iter().map(|column| schema.field(column).name().clone()).collect())
    }

    /// Plans a query.
    pub(crate) fn plan_query(
        &mut self,
        query: Query,
        snapshot: &Snapshot,
        extra: Vec<(String, Arc<dyn TableProvider>)>,
    ) -> Result<LogicalPlan> {
        self.plan(Statement::Query(Box::new(query)), snapshot, extra)
    }

    /// A table with the hidden column that numbers its rows.
    pub(crate) fn numbered(&self, table: Arc<Table>, snapshot: &Snapshot) -> Arc<dyn TableProvider> {
        self.provider(table, snapshot, true)
    }

    /// The physical plan of a logical one.
    pub(crate) fn physical(&self, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        self.engine.executor.run(&self.interrupt, async { Ok(self.state.create_physical_plan(plan).await?) })
    }

    /// Starts a query, and reads up to its first row, unless that waits for whoever asks for it.
    pub(crate) fn stream(&self, plan: &LogicalPlan) -> Result<SendableRecordBatchStream> {
        let rows = self
            .engine
            .executor
            .run(&self.interrupt, async { frugal::stream(&self.state, self.frugal.as_ref(), plan).await })?;
        self.begun(rows)
    }

    /// Reads a query that was started up to its first row.
    pub(crate) fn begun(&self, rows: SendableRecordBatchStream) -> Result<SendableRecordBatchStream> {
        match self.is_for_later {
            true => Ok(rows),
            false => self.engine.executor.run(&self.interrupt, running::begun(rows)),
        }
    }

    /// The memory of all queries, as far as this session may have it.
    pub(crate) fn pool(&self) -> &Arc<dyn MemoryPool> {
        &self.means.pool
    }

    /// Runs a query to its end.
    pub(crate) fn collect(&self, plan: &LogicalPlan) -> Result<Vec<RecordBatch>> {
        let mut stream = self.stream(plan)?;
        self.engine.executor.run(&self.interrupt, async {
            let held = MemoryConsumer::new("rows").register(&self.means.pool);
            let mut batches = Vec::new();
            while let Some(batch) = stream.try_next().await? {
                held.try_grow(batch.get_array_memory_size())?;
                batches.push(batch);
            }
            Ok(batches)
        })
    }

    /// Reads what was started to its end, for whoever asks for it later.
    pub(crate) fn read_ahead(&self, stream: SendableRecordBatchStream) -> Result<SendableRecordBatchStream> {
        self.engine.executor.run(&self.interrupt, read_ahead::read_ahead(stream, &self.means))
    }

    /// The rows of a query from a stream that was started.
    pub(crate) fn next(&self, stream: &mut SendableRecordBatchStream) -> Result<Option<RecordBatch>> {
        self.engine.executor.run(&self.interrupt, async { Ok(stream.try_next().await?) })
    }

    pub(crate) fn said(&self) -> &catalog::Said {
        &self.said
    }

    pub(crate) fn is_describing(&self) -> bool {
        self.is_describing
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }
}

/// What queries that run so have of the memory of all.
fn part(engine: &Engine, options: &EngineOptions) -> (Arc<Part>, Means) {
    let own = memory::Shared::new(options.memory_bytes, options.parallelism);
    let part = Part::new(own, engine.means.pool.clone());
    (part.clone(), Means { pool: part, bytes: options.memory_bytes, spill: engine.means.spill.clone() })
}

/// The query library for sessions whose queries run so.
fn state(
    engine: &Engine,
    options: &EngineOptions,
    means: &Means,
    catalogs: Arc<dyn CatalogProviderList>,
    [summaries, foreign_key_joins]: [&Switch; 2],
) -> Result<SessionState> {
    let environment = RuntimeEnv { memory_pool: means.pool.clone(), ..RuntimeEnv::clone(&engine.environment) };
    let state = SessionStateBuilder::new_with_default_features()
        .with_config(config(options)?)
        .with_runtime_env(Arc::new(environment))
        .with_catalog_list(catalogs)
        .with_query_planner(Arc::new(historian::QueryPlanner))
        .with_type_planner(Arc::new(crate::types::Planner))
        .with_physical_optimizer_rules(rules(options, means, summaries, foreign_key_joins));
    let state = dialect::register(state);
    let state = match options.is_little {
        true => state.with_optimizer_rule(Arc::new(CountsAsSums)).with_optimizer_rule(Arc::new(WindowTexts)),
        false => state,
    };
    Ok(state.build())
}

/// The rules by which the library improves physical plans, and ours. Ours comes behind the one that knows some answers from the
/// number of rows alone, and before all that look at how much is read.
fn rules(
    options: &EngineOptions,
    means: &Means,
    switch: &Switch,
    foreign_key_joins: &Switch,
) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    // What moves filters down a physical plan takes a column for another one of its name, of the other side of a join (DataFusion 55): wrong
    // rows. Conditions are where they belong by then, and no scan of ours asks for filters that come while it runs.
    rules.retain(|rule| !rule.name().starts_with("FilterPushdown"));
    let behind = rules.iter().position(|rule| rule.name() == "aggregate_statistics").map_or(0, |place| place + 1);
    rules.insert(behind, Arc::new(Late));
    rules.insert(behind, Arc::new(JoinAlong { switch: foreign_key_joins.clone() }));
    let shortcuts: [(&'static str, Cheaper); 4] = [
        ("from_last_sample", historian::from_last_sample),
        ("from_summaries", series::from_summaries),
        ("from_shares", dispersed::from_shares),
        ("from_orders", dispersed::from_orders),
    ];
    let shortcuts = shortcuts.map(|(name, cheaper)| Shortcut { name, switch: switch.clone(), cheaper });
    rules.splice(behind..behind, shortcuts.map(|rule| Arc::new(rule) as Arc<dyn PhysicalOptimizerRule + Send + Sync>));
    // Behind the one that may exchange the sides of joins, before all that ask for orders.
    let behind = rules.iter().position(|rule| rule.name() == "join_selection").map_or(0, |place| place + 1);
    rules.insert(behind, Arc::new(OneOrder));
    if options.is_little {
        rules.insert(behind, Arc::new(Merging));
    }
    rules.push(Arc::new(FarLimit));
    if options.is_little {
        rules.push(Arc::new(Little { spill: means.spill.clone() }));
    }
    rules.push(Arc::new(Keyed));
    rules
}

/// Takes the tables' keys out of a plan. What `GROUP BY key` may name beside the key is known by now, and the query
/// library goes on to conclude from a key of one side of a join that it determines the other side as well: it leaves
/// out keys of ORDER BY and GROUP BY that are needed (DataFusion 55, `aggregate_functional_dependencies`).
fn forget_keys(plan: LogicalPlan) -> Result<LogicalPlan> {
    let forgotten = plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source)?;
            let Some(table) = provider.downcast_ref::<Provider>() else {
                return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
            };
            let source = provider_as_source(Arc::new(table.keyless()));
            let builder = TableScanBuilder::new(scan.table_name, source).with_projection(scan.projection);
            let scan = builder.with_filters(scan.filters).with_fetch(scan.fetch).build()?;
            Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
        }
        other => Ok(Transformed::yes(other.recompute_schema()?)),
    })?;
    Ok(forgotten.data)
}

/// A batch as a table of its own.
pub(crate) fn batch_table(batch: RecordBatch) -> Result<Arc<dyn TableProvider>> {
    Ok(Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?))
}

fn config(engine: &EngineOptions) -> Result<SessionConfig> {
    let mut config = SessionConfig::new()
        .with_default_catalog_and_schema(crate::CATALOG, crate::SCHEMA)
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(false)
        .with_target_partitions(engine.parallelism)
        .with_batch_size(memory::batch_rows(engine));
    let options = config.options_mut();
    options.sql_parser.dialect = Dialect::PostgreSQL;
    // As in PostgreSQL, 0.1 is a NUMERIC: 0.1 + 0.2 is 0.3, and money times 1.1 stays exact.
    options.sql_parser.parse_float_as_decimal = true;
    options.sql_parser.default_null_ordering = "nulls_max".into();
    // The order of a subquery is that of the query around it, if nothing changes it on the way: who asks for the first rows of one means it.
    options.sql_parser.enable_subquery_sort_elimination = false;
    options.execution.time_zone = Some(crate::types::UTC.into());
    options.explain.show_statistics = false;
    memory::configure(options, engine.memory_bytes, engine.parallelism)?;
    Ok(config)
}

/// The names of the tables and views a query names, whether they exist or not: what is kept apart of a table is the table.
pub(crate) fn names(planner: &Planner, statement: &Statement) -> Result<HashSet<String>> {
    let inputs = historian::inputs(statement);
    let statement = LibraryStatement::Statement(Box::new(statement.clone()));
    let references = planner.state.resolve_table_references(&statement)?;
    let named = references.into_iter().map(|reference| reference.table().to_owned()).chain(inputs);
    Ok(named.map(|name| statement::plain(&name).to_owned()).collect())
}

/// A table by name, or what is kept apart of one: rows that statements change.
pub(crate) fn rows_of(engine: &Engine, view: &dyn View, name: &str) -> Result<Arc<Table>> {
    let Some(of) = statement::kept_apart(name) else {
        let table = table(engine, view, name)?;
        published::refuse_change(&table)?;
        return Ok(table);
    };
    let nothing = || Error::NotSupported(format!("{}.{of}: {of} is no series table", series::FUTURE));
    series::kept_apart(&*table(engine, view, of)?).ok_or_else(nothing)
}

/// A table by name.
pub(crate) fn table(engine: &Engine, view: &dyn View, name: &str) -> Result<Arc<Table>> {
    match engine.relations.named(view, name).map_err(Error::Relation)? {
        Some(relation::Named::Table(table)) => Ok(table),
        Some(relation::Named::View(_)) => Err(Error::Sql(format!("{name} is a view: rows change in its tables"))),
        Some(relation::Named::Index(..)) => Err(Error::Sql(format!("{name} is an index"))),
        None => match statement::kept_apart(name) {
            None => Err(Error::NoTable(format!("no table {name}"))),
            Some(of) => Err(Error::NotSupported(format!("{}.{of} follows {of}: change that", series::FUTURE))),
        },
    }
}

/// `SELECT items FROM name AS alias`, built for our own plans.
pub(crate) fn select_from(table: &str, alias: &str) -> datafusion::sql::sqlparser::ast::TableWithJoins {
    use datafusion::sql::sqlparser::ast::{TableAlias, TableFactor, TableWithJoins};
    let alias = TableAlias { explicit: true, name: statement::ident(alias), columns: Vec::new(), at: None };
    let relation = TableFactor::Table {
        name: object(table),
        alias: Some(alias),
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    };
    TableWithJoins { relation, joins: Vec::new() }
}
