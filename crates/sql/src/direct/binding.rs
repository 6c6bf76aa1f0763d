//! A question bound to tables: names become places, values what cells compare with.

use std::sync::Arc;

use counterfoil_log::Snapshot;
use counterfoil_relation::{self as relation, Plan, Source, Table};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;

use super::question::{Asked, ColumnName, Condition, Joined, Made, Question, Shown};
use super::refine;
use crate::answered::AnsweredScan;
use crate::aside::Means;
use crate::change::TARGET;
use crate::engine::{Engine, EngineOptions};
use crate::error::{Error, Result};
use crate::filter::{self, Test};
use crate::joined::{JoinedScan, Place};
use crate::joining::{self, Joins, Optional};
use crate::memory;
use crate::provider::ROW_ID;
use crate::running::Hold;
use crate::scan::{Output, Reach, TableScan, Target};
use crate::types;

/// A table of a question.
struct Leaf {
    alias: String,
    table: Arc<Table>,
    tests: Vec<Test>,
    is_optional: bool,
}

/// A scan whose rows are near at hand.
pub(crate) enum Near {
    /// Of one table.
    Table(TableScan),
    /// Of one and of what its rows join.
    Joined(JoinedScan),
    /// Of what becomes of such rows.
    Answered(AnsweredScan),
}

impl Near {
    /// Begins to read, so many rows at a time, on so many threads.
    pub(super) fn stream(&self, pace: (usize, usize), hold: Hold) -> Result<SendableRecordBatchStream> {
        match self {
            Near::Table(scan) => scan.stream(0, pace.0, hold),
            Near::Joined(scan) => Ok(scan.stream(pace, hold, None)),
            Near::Answered(scan) => scan.stream(hold),
        }
    }

    /// The scan as a plan has it.
    pub(crate) fn node(self) -> Arc<dyn ExecutionPlan> {
        match self {
            Near::Table(scan) => Arc::new(scan),
            Near::Joined(scan) => Arc::new(scan),
            Near::Answered(scan) => Arc::new(scan),
        }
    }
}

/// A question bound to tables.
pub(super) struct Bound {
    leaves: Vec<Leaf>,
    targets: Vec<Target>,
    joins: Joins,
    /// What is asked of them; its sources are the leaves, of which no path is known yet.
    plan: Plan,
    schema: SchemaRef,
}

impl Bound {
    /// Binds a question; none where it names what is not there, or says what only the query library understands.
    /// `target`: the table that is called [`TARGET`].
    pub(super) fn to_tables(
        question: &Question,
        engine: &Arc<Engine>,
        snapshot: &Snapshot,
        target: Option<&Arc<Table>>,
    ) -> Result<Option<Self>> {
        let mut leaves = Vec::with_capacity(question.sources.len());
        for source in &question.sources {
            let table = match target.filter(|_| source.table == TARGET) {
                Some(target) => target.clone(),
                None => match engine.relations.named(snapshot, &source.table).map_err(Error::Relation)? {
                    Some(relation::Named::Table(table)) => table,
                    _ => return Ok(None),
                },
            };
            let is_twice = leaves.iter().any(|leaf: &Leaf| leaf.alias == source.alias);
            if is_twice || table.engine.is_some() {
                return Ok(None);
            }
            let is_optional = matches!(source.joined, Joined::OrNone { .. });
            leaves.push(Leaf { alias: source.alias.clone(), table, tests: Vec::new(), is_optional });
        }
        let target_of = |leaf: &Leaf| Target {
            relations: engine.relations.clone(),
            snapshot: snapshot.clone(),
            table: leaf.table.clone(),
        };
        let targets = leaves.iter().map(target_of).collect();
        // The numbers of rows that are joined are not read.
        let is_change = target.is_some() && leaves.len() == 1;
        let mut binding = Binding { leaves, joins: Joins::default(), conditions: Vec::new(), is_change };
        let bound = binding.bind(question);
        Ok(bound.map(|(plan, schema)| Bound { leaves: binding.leaves, targets, joins: binding.joins, plan, schema }))
    }

    /// The scan that reads the answer; none where that is not soon done. `joins_along`: whether joins may be read off the rows.
    pub(super) fn scan(self, options: &EngineOptions, means: &Means, joins_along: bool) -> Result<Option<Near>> {
        if self.leaves.len() > 1 && !joins_along {
            return Ok(None);
        }
        let shows_numbers = self.plan.outputs.iter().any(|output| self.is_number(output));
        if self.is_refined() || (options.is_little && !shows_numbers) {
            return self.answered(options.is_little, means);
        }
        let reach = Reach { parts: 1, ..memory::reach(options) };
        let (is_alone, limit) = (self.leaves.len() == 1, self.plan.limit.map(|rows| rows as usize));
        let Bound { leaves, targets, joins, plan, schema } = self;
        let shown: Vec<Place> = plan.outputs.iter().filter_map(place_of).collect();
        let mut scans = Vec::with_capacity(leaves.len());
        for (leaf, target) in leaves.into_iter().zip(targets) {
            let output = match is_alone {
                true => shown.iter().map(|place| output_of(&leaf.table, place.column)).collect(),
                false => Vec::new(),
            };
            let limit = limit.filter(|_| is_alone);
            scans.push(TableScan::plan(target, output, schema.clone(), leaf.tests, limit, reach)?);
        }
        if is_alone {
            return Ok(scans.pop().filter(TableScan::is_of_few).map(Near::Table));
        }
        let scan = joining::along_foreign_keys(&scans, joins, plan.conditions, shown, schema)?;
        Ok(scan.map(|scan| Near::Joined(scan.with_limit(limit))))
    }

    /// Whether rows are more than read.
    fn is_refined(&self) -> bool {
        let Plan { outputs, groups, is_distinct, order, offset, .. } = &self.plan;
        let is_made = outputs.iter().any(|output| !matches!(output, relation::Output::Column(_)));
        is_made || !groups.is_empty() || *is_distinct || !order.is_empty() || *offset > 0
    }

    /// Whether an output is the number of a row, which only those see who change it.
    fn is_number(&self, output: &relation::Output) -> bool {
        place_of(output).is_some_and(|place| place.column >= self.leaves[place.leaf].table.columns.len())
    }

    /// The scan that works the answer out; none where many rows would have to be read for it, unless there is no other way.
    fn answered(self, is_little: bool, means: &Means) -> Result<Option<Near>> {
        let Bound { leaves, targets, joins, mut plan, schema } = self;
        let only_counts = plan.outputs.iter().all(|output| *output == relation::Output::CountRows);
        if only_counts && leaves.len() == 1 && leaves[0].tests.is_empty() {
            // The library knows without reading.
            return Ok(None);
        }
        let scans: Vec<TableScan> =
            leaves.into_iter().zip(targets).map(|(leaf, target)| TableScan::of_all(target, leaf.tests)).collect();
        let Some((root, sources)) = joining::sources_of(&scans, joins) else { return Ok(None) };
        plan.sources = sources;
        let scan = AnsweredScan::begin(scans[root].target().clone(), plan, schema, means.clone())?;
        Ok(if is_little || scan.is_of_few()? { Some(Near::Answered(scan)) } else { None })
    }
}

/// The column of a leaf that an output is.
fn place_of(output: &relation::Output) -> Option<Place> {
    match output {
        relation::Output::Column(place) => Some(Place { leaf: place.source, column: place.column }),
        _ => None,
    }
}

/// A question being bound.
pub(super) struct Binding {
    leaves: Vec<Leaf>,
    joins: Joins,
    /// What is said of several of them, or of one that may lack a row.
    conditions: Vec<relation::Condition>,
    /// Whether rows are to be changed: then they have numbers.
    is_change: bool,
}

/// What a column is to a scan: those behind the last is the row's number.
fn output_of(table: &Table, column: usize) -> Output {
    if column < table.columns.len() { Output::Column(column) } else { Output::RowId }
}

impl Binding {
    fn bind(&mut self, question: &Question) -> Option<(Plan, SchemaRef)> {
        for (number, source) in question.sources.iter().enumerate() {
            match &source.joined {
                Joined::Beside => {}
                Joined::Where { from, on } => {
                    on.iter().try_for_each(|condition| self.hold(condition, (*from, number)))?
                }
                Joined::OrNone { from, on } => self.join_or_none(on, (*from, number))?,
            }
        }
        let all = (0, self.leaves.len().checked_sub(1)?);
        question.conditions.iter().try_for_each(|condition| self.hold(condition, all))?;
        let mut plan = Plan { limit: question.limit.map(|rows| rows as u64), ..Plan::default() };
        let source = |leaf: &Leaf| Source {
            table: leaf.table.clone(),
            path: None,
            tests: Vec::new(),
            is_optional: leaf.is_optional,
        };
        plan.sources = self.leaves.iter().map(source).collect();
        plan.conditions = core::mem::take(&mut self.conditions);
        let fields = self.show(question, &mut plan)?;
        refine::refine(self, &question.refined, &mut plan, &fields)?;
        Some((plan, Arc::new(Schema::new(fields))))
    }

    /// What the answer shows.
    fn show(&self, question: &Question, plan: &mut Plan) -> Option<Vec<Field>> {
        let mut shown: Vec<(relation::Output, Option<&String>)> = Vec::new();
        let everything = [Shown::All];
        let asked = if question.shown.is_empty() { &everything[..] } else { &question.shown };
        let columns = |source: usize| {
            let count = self.leaves[source].table.columns.len();
            (0..count).map(move |column| (relation::Output::Column(relation::Place { source, column }), None))
        };
        for item in asked {
            match item {
                Shown::All => shown.extend((0..self.leaves.len()).flat_map(columns)),
                Shown::AllOf(alias) => {
                    shown.extend(columns(self.leaves.iter().position(|leaf| leaf.alias == *alias)?));
                }
                // The number of a row is shown to those who change it, and nothing is asked of it.
                Shown::Column(name, _) if self.is_change && name.column == ROW_ID => {
                    let place = relation::Place { source: 0, column: self.leaves[0].table.columns.len() };
                    shown.push((relation::Output::Column(place), None));
                }
                Shown::Column(name, alias) => {
                    shown.push((self.output(&Made::Column(name.clone()))?, alias.as_ref()));
                }
                Shown::Made(made, name) => shown.push((self.output(made)?, Some(name))),
            }
        }
        plan.outputs = shown.iter().map(|(output, _)| *output).collect();
        plan.shown = shown.len();
        shown.into_iter().map(|(output, name)| self.field(plan, output, name)).collect()
    }

    /// The field of an output.
    fn field(&self, plan: &Plan, output: relation::Output, name: Option<&String>) -> Option<Field> {
        let Some(place) = place_of(&output) else {
            let is_count = matches!(
                output,
                relation::Output::CountRows | relation::Output::Aggregate(relation::Function::Count, _)
            );
            return Some(types::field(name?, &plan.kind_of(output).ok()?, !is_count));
        };
        let leaf = &self.leaves[place.leaf];
        let Some(column) = leaf.table.columns.get(place.column) else {
            return Some(Field::new(ROW_ID, DataType::Int64, false));
        };
        Some(types::field(name.unwrap_or(&column.name), &column.kind, leaf.is_optional || !column.not_null))
    }

    /// The output that a column of an answer is.
    pub(super) fn output(&self, made: &Made) -> Option<relation::Output> {
        let place = |name| {
            let Place { leaf: source, column } = self.place(name, (0, self.leaves.len() - 1))?;
            Some(relation::Place { source, column })
        };
        Some(match made {
            Made::Column(name) => relation::Output::Column(place(name)?),
            Made::Rows => relation::Output::CountRows,
            Made::Of(function, name) => relation::Output::Aggregate(*function, place(name)?),
        })
    }

    /// The column of a name among the tables `from..=to`.
    fn place(&self, name: &ColumnName, (from, to): (usize, usize)) -> Option<Place> {
        let mut found = None;
        for leaf in from..=to {
            let Leaf { alias, table, .. } = &self.leaves[leaf];
            if name.table.as_ref().is_some_and(|wanted| wanted != alias) {
                continue;
            }
            let Some((column, _)) = table.column(&name.column) else { continue };
            if found.replace(Place { leaf, column }).is_some() {
                return None;
            }
        }
        found
    }

    /// Takes a condition of which rows stay when it is true.
    fn hold(&mut self, condition: &Condition, scope: (usize, usize)) -> Option<()> {
        match &condition.0 {
            Asked::All(conditions) => return conditions.iter().try_for_each(|condition| self.hold(condition, scope)),
            Asked::Same(one, other) => {
                let (one, other) = (self.place(one, scope)?, self.place(other, scope)?);
                if one.leaf == other.leaf {
                    return None;
                }
                self.joins.equal.push((one, other));
            }
            _ => match self.condition(condition, scope, true)? {
                // Of a table that may lack a row its tests say which row it has, and conditions what of all rows stays.
                relation::Condition::Of(leaf, test) if !self.leaves[leaf].is_optional => {
                    self.leaves[leaf].tests.push(test);
                }
                condition => self.conditions.push(condition),
            },
        }
        Some(())
    }

    /// Takes what joins the last table of a scope, where it has a row for it.
    fn join_or_none(&mut self, on: &[Condition], scope: (usize, usize)) -> Option<()> {
        let last = scope.1;
        let mut pairs = Vec::new();
        for condition in flat(on) {
            match &condition.0 {
                Asked::Same(one, other) => {
                    let (one, other) = (self.place(one, scope)?, self.place(other, scope)?);
                    if (one.leaf == last) == (other.leaf == last) {
                        return None;
                    }
                    pairs.push((one, other));
                }
                _ => {
                    let relation::Condition::Of(leaf, test) = self.condition(condition, scope, true)? else {
                        return None;
                    };
                    if leaf != last {
                        return None;
                    }
                    self.leaves[leaf].tests.push(test);
                }
            }
        }
        self.joins.optional.push(Optional { leaf: last, on: pairs });
        Some(())
    }

    /// The condition on rows of the tables that is true where this one is, or, where `wanted` is false, where this one is false: where it
    /// is NULL neither is.
    fn condition(&self, condition: &Condition, scope: (usize, usize), wanted: bool) -> Option<relation::Condition> {
        let all = |conditions: &[Condition]| {
            let conditions = conditions.iter().map(|condition| self.condition(condition, scope, wanted));
            conditions.collect::<Option<Vec<_>>>()
        };
        let (name, asked) = match &condition.0 {
            Asked::Same(..) => return None,
            Asked::Not(condition) => return self.condition(condition, scope, !wanted),
            Asked::All(conditions) | Asked::Any(conditions) => {
                // One of them is false where not all are true, and the other way round.
                let is_all = matches!(condition.0, Asked::All(_)) == wanted;
                let conditions = all(conditions)?;
                return match is_all {
                    true => together(conditions),
                    false => conditions.into_iter().reduce(relation::Condition::or),
                };
            }
            Asked::Null { column, .. }
            | Asked::Compare { column, .. }
            | Asked::In { column, .. }
            | Asked::Like { column, .. }
            | Asked::Is { column, .. } => (column, &condition.0),
        };
        let Place { leaf, column } = self.place(name, scope)?;
        Some(relation::Condition::Of(leaf, test(&self.leaves[leaf].table, column, asked, wanted)?))
    }
}

/// What is asked of a column, as a test of it.
fn test(table: &Table, column: usize, asked: &Asked, wanted: bool) -> Option<Test> {
    match asked {
        Asked::Null { wanted: null, .. } => Some(Test::Null { column, wanted: *null == wanted }),
        Asked::Compare { comparison, value, .. } => {
            filter::compared(table, column, if wanted { *comparison } else { comparison.opposite() }, value)
        }
        Asked::In { values, .. } => filter::listed_in(table, column, values, wanted),
        Asked::Like { pattern, .. } => {
            let like = filter::like(table, column, pattern)?;
            Some(if wanted { like } else { filter::unlike(like) })
        }
        Asked::Is { truth, .. } => filter::truth(table, column, *truth == wanted),
        Asked::Same(..) | Asked::All(_) | Asked::Any(_) | Asked::Not(_) => None,
    }
}

/// All of these; of one table alone they are a test of its rows.
fn together(conditions: Vec<relation::Condition>) -> Option<relation::Condition> {
    let mut tests = Vec::with_capacity(conditions.len());
    let mut of = None;
    for condition in &conditions {
        match condition {
            relation::Condition::Of(leaf, test) if of.is_none_or(|of| of == *leaf) => {
                of = Some(*leaf);
                tests.push(test.clone());
            }
            _ => return Some(relation::Condition::All(conditions)),
        }
    }
    of.map(|leaf| relation::Condition::Of(leaf, Test::All(tests)))
}

/// Conditions that are all to be true, without those that say so of several.
fn flat(conditions: &[Condition]) -> Vec<&Condition> {
    let mut flat = Vec::new();
    let mut due: Vec<&Condition> = conditions.iter().rev().collect();
    while let Some(condition) = due.pop() {
        match &condition.0 {
            Asked::All(inner) => due.extend(inner.iter().rev()),
            _ => flat.push(condition),
        }
    }
    flat
}
