//! A question bound to tables: names become places, values what cells compare with.

use std::sync::Arc;

use counterfoil_log::Snapshot;
use counterfoil_relation::{self as relation, Table};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;

use super::question::{Asked, ColumnName, Condition, Joined, Question, Shown};
use crate::change::TARGET;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::filter::{self, Comparison, Test};
use crate::joined::{JoinedScan, Place};
use crate::joining::{self, Joins, Optional};
use crate::provider::ROW_ID;
use crate::running::Hold;
use crate::scan::{Output, TableScan, Target};
use crate::series;
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
}

impl Near {
    /// Begins to read, so many rows at a time.
    pub(super) fn stream(&self, step_rows: usize, hold: Hold) -> Result<SendableRecordBatchStream> {
        match self {
            Near::Table(scan) => scan.stream(0, step_rows, hold),
            Near::Joined(scan) => Ok(scan.stream(step_rows, hold)),
        }
    }

    /// The scan as a plan has it.
    pub(crate) fn node(self) -> Arc<dyn ExecutionPlan> {
        match self {
            Near::Table(scan) => Arc::new(scan),
            Near::Joined(scan) => Arc::new(scan),
        }
    }
}

/// A question bound to tables.
pub(super) struct Bound {
    leaves: Vec<Leaf>,
    targets: Vec<Target>,
    joins: Joins,
    shown: Vec<Place>,
    schema: SchemaRef,
    limit: Option<usize>,
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
            if is_twice || series::is_series(&table) {
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
        let mut binding = Binding { leaves, joins: Joins::default(), is_change };
        Ok(binding.bind(question).map(|(shown, schema)| Bound {
            leaves: binding.leaves,
            targets,
            joins: binding.joins,
            shown,
            schema,
            limit: question.limit,
        }))
    }

    /// The scan that reads the answer; none where no index names few rows.
    pub(super) fn scan(self, joins_along: bool) -> Result<Option<Near>> {
        let Bound { leaves, targets, joins, shown, schema, limit } = self;
        let is_alone = leaves.len() == 1;
        let mut scans = Vec::with_capacity(leaves.len());
        for (leaf, target) in leaves.into_iter().zip(targets) {
            let output = match is_alone {
                true => shown.iter().map(|place| output_of(&leaf.table, place.column)).collect(),
                false => Vec::new(),
            };
            let limit = limit.filter(|_| is_alone);
            scans.push(TableScan::plan(target, output, schema.clone(), leaf.tests, limit, 1)?);
        }
        if is_alone {
            return Ok(scans.pop().filter(TableScan::is_of_few).map(Near::Table));
        }
        if !joins_along {
            return Ok(None);
        }
        let scan = joining::along_foreign_keys(&scans, joins, shown, schema)?;
        Ok(scan.map(|scan| Near::Joined(scan.with_limit(limit))))
    }
}

/// A question being bound.
struct Binding {
    leaves: Vec<Leaf>,
    joins: Joins,
    /// Whether rows are to be changed: then they have numbers.
    is_change: bool,
}

/// What a column is to a scan: those behind the last is the row's number.
fn output_of(table: &Table, column: usize) -> Output {
    if column < table.columns.len() { Output::Column(column) } else { Output::RowId }
}

impl Binding {
    fn bind(&mut self, question: &Question) -> Option<(Vec<Place>, SchemaRef)> {
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
        self.show(question)
    }

    /// What the answer shows.
    fn show(&self, question: &Question) -> Option<(Vec<Place>, SchemaRef)> {
        let mut shown = Vec::new();
        let all = (0, self.leaves.len() - 1);
        let everything = [Shown::All];
        let asked = if question.shown.is_empty() { &everything[..] } else { &question.shown };
        let columns =
            |leaf: usize| (0..self.leaves[leaf].table.columns.len()).map(move |column| Place { leaf, column });
        for item in asked {
            match item {
                Shown::All => shown.extend((0..self.leaves.len()).flat_map(columns).map(|place| (place, None))),
                Shown::AllOf(alias) => {
                    let leaf = self.leaves.iter().position(|leaf| leaf.alias == *alias)?;
                    shown.extend(columns(leaf).map(|place| (place, None)));
                }
                // The number of a row is shown to those who change it, and nothing is asked of it.
                Shown::Column(name, _) if self.is_change && name.column == ROW_ID => {
                    shown.push((Place { leaf: 0, column: self.leaves[0].table.columns.len() }, None));
                }
                Shown::Column(name, alias) => shown.push((self.place(name, all)?, alias.as_ref())),
            }
        }
        let field = |(place, alias): &(Place, Option<&String>)| -> Field {
            let leaf = &self.leaves[place.leaf];
            let Some(column) = leaf.table.columns.get(place.column) else {
                return Field::new(ROW_ID, DataType::Int64, false);
            };
            let name = alias.unwrap_or(&column.name);
            types::field(name, &column.kind, leaf.is_optional || !column.not_null)
        };
        let schema = Schema::new(shown.iter().map(field).collect::<Vec<_>>());
        Some((shown.into_iter().map(|(place, _)| place).collect(), Arc::new(schema)))
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
            _ => {
                let (leaf, test) = self.test(condition, scope)?;
                // Of a row without it the library knows what is true.
                if self.leaves[leaf].is_optional {
                    return None;
                }
                self.leaves[leaf].tests.push(test);
            }
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
                    let (leaf, test) = self.test(condition, scope)?;
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

    /// The test of one table's rows that a condition is.
    fn test(&self, condition: &Condition, scope: (usize, usize)) -> Option<(usize, Test)> {
        let of_column = |name: &ColumnName, test: &dyn Fn(&Table, usize) -> Option<Test>| {
            let place = self.place(name, scope)?;
            Some((place.leaf, test(&self.leaves[place.leaf].table, place.column)?))
        };
        match &condition.0 {
            Asked::Same(..) => None,
            Asked::Null { column, wanted } => {
                of_column(column, &|_, column| Some(Test::Null { column, wanted: *wanted }))
            }
            Asked::Compare { column, comparison, value } => {
                of_column(column, &|table, column| filter::compared(table, column, *comparison, value))
            }
            Asked::In { column, values } => {
                of_column(column, &|table, column| filter::listed_in(table, column, values))
            }
            Asked::Is { column, truth } => of_column(column, &|table, column| {
                let value = crate::value::Value::Boolean(*truth);
                filter::compared(table, column, Comparison::Equal, &value)
            }),
            Asked::All(conditions) => self.together(conditions, scope).map(|(leaf, tests)| (leaf, Test::All(tests))),
            Asked::Any(conditions) => {
                let (leaf, tests) = self.together(conditions, scope)?;
                tests.into_iter().reduce(Test::or).map(|test| (leaf, test))
            }
        }
    }

    /// Tests of one and the same table.
    fn together(&self, conditions: &[Condition], scope: (usize, usize)) -> Option<(usize, Vec<Test>)> {
        let tests: Vec<(usize, Test)> =
            conditions.iter().map(|condition| self.test(condition, scope)).collect::<Option<_>>()?;
        let leaf = tests.first()?.0;
        tests.iter().all(|(other, _)| *other == leaf).then(|| (leaf, tests.into_iter().map(|(_, test)| test).collect()))
    }
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
