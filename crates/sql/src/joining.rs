//! A rule that reads a tree of joins along foreign keys as one scan: where indexes name few rows of the table that
//! references the others, each of its rows says by itself what it joins (MILo-DB, sections 3.1 and 4.2).
//!
//! ```text
//! HashJoin                            Join along foreign keys: flights to planes, airports
//!   HashJoin                   ->       rows of flights that an index of planes names, read back along tailnum,
//!     Scan: planes (tests)              each with the row of planes and of airports that it holds
//!     Scan: flights
//!   Scan: airports
//! ```
//!
//! What a test of any table says is asked again of each row, so indexes decide how much is read and never what is answered.

mod said;
mod tree;

use std::collections::BTreeSet;
use std::sync::Arc;

use counterfoil_relation::{self as relation, Source};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::DataFusionError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use crate::error::{Error, Result};
use crate::joined::{JoinedScan, Place};
use crate::scan::TableScan;
use crate::shortcut::Switch;
use crate::types;
use tree::{Condition, Shown, Tree};
pub(crate) use tree::{Joins, Optional};

/// The rule.
#[derive(Debug)]
pub(crate) struct JoinAlong {
    pub(crate) switch: Switch,
}

impl PhysicalOptimizerRule for JoinAlong {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        if !self.switch.is_on() {
            return Ok(plan);
        }
        // From the top, so that the largest tree is taken whole.
        let joined = plan.transform_down(|plan| match cheaper(&plan)? {
            Some(joined) => Ok(Transformed::new(joined, true, TreeNodeRecursion::Jump)),
            None => Ok(Transformed::no(plan)),
        });
        joined.map(|joined| joined.data)
    }

    fn name(&self) -> &str {
        "join_along_foreign_keys"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The scan that answers what a join answers, if there is one and indexes make it cheap.
fn cheaper(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if !plan.is::<HashJoinExec>() {
        return Ok(None);
    }
    let Some((mut tree, output)) = Tree::read(plan) else { return Ok(None) };
    let said = tree.conditions.iter().filter_map(|condition| Some(condition.said.as_ref()?.condition.clone()));
    let Some(scan) = scan_of(&tree, said.collect())? else { return Ok(None) };
    // What the scan decides in full is not asked again above it.
    tree.conditions.retain(|condition| condition.said.as_ref().is_none_or(|said| !said.is_all));
    if tree.conditions.is_empty() && output.iter().all(|shown| shown.wider.is_none()) {
        let output = output.iter().map(|shown| shown.place).collect();
        return Ok(Some(Arc::new(scan(output, plan.schema()))));
    }
    above(&tree, &output, &plan.schema(), scan)
}

/// The scan that answers what tables that are joined so answer, if they are along foreign keys and indexes make it cheap.
pub(crate) fn along_foreign_keys(
    scans: &[TableScan],
    joins: Joins,
    conditions: Vec<relation::Condition>,
    output: Vec<Place>,
    schema: SchemaRef,
) -> Result<Option<JoinedScan>> {
    let tree = Tree { leaves: scans.iter().collect(), joins, conditions: Vec::new() };
    Ok(scan_of(&tree, conditions)?.map(|scan| scan(output, schema)))
}

/// The root of tables that are joined so, and all of them as sources of a question to it: if they are joined along foreign keys.
pub(crate) fn sources_of(scans: &[TableScan], joins: Joins) -> Option<(usize, Vec<Source>)> {
    Tree { leaves: scans.iter().collect(), joins, conditions: Vec::new() }.sources()
}

/// The scan of a tree, if it is one along foreign keys and indexes make it cheap, still to be told what it shows.
fn scan_of(
    tree: &Tree<'_>,
    conditions: Vec<relation::Condition>,
) -> Result<Option<impl FnOnce(Vec<Place>, SchemaRef) -> JoinedScan + use<>>> {
    let Some((root, sources)) = tree.sources() else { return Ok(None) };
    let named: Vec<_> = tree.leaves.iter().map(|scan| scan.named_rows()).collect();
    let target = tree.leaves[root].target().clone();
    let room = tree.leaves[root].room();
    let candidates = target.relations.candidates_where(&target.snapshot, &sources, &conditions, &named, room);
    let Some(candidates) = candidates.map_err(Error::Relation)? else { return Ok(None) };
    Ok(Some(move |output, schema| JoinedScan::new(target, (sources, conditions), output, schema, candidates)))
}

/// The scan, and above it what it does not do itself: conditions that only whole rows decide, and wider integers.
fn above(
    tree: &Tree<'_>,
    output: &[Shown],
    schema: &Schema,
    scan: impl FnOnce(Vec<Place>, SchemaRef) -> JoinedScan,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    // The library finds columns below a projection by their names: two of one name would be taken for one another.
    let names: BTreeSet<&String> = schema.fields().iter().map(|field| field.name()).collect();
    if names.len() < output.len() {
        return Ok(None);
    }
    let mut places: Vec<Place> = output.iter().map(|shown| shown.place).collect();
    places.extend(tree.conditions.iter().flat_map(Condition::places));
    places.sort_unstable();
    places.dedup();
    let number = |place: Place| places.binary_search(&place).ok();
    let conditions: Option<Vec<_>> = tree.conditions.iter().map(|condition| condition.over(&number)).collect();
    let Some(conditions) = conditions else { return Ok(None) };
    let field = |place: &Place| {
        let column = &tree.leaves[place.leaf].target().table.columns[place.column];
        types::field(&column.name, &column.kind, tree.is_optional(place.leaf) || !column.not_null)
    };
    let fields: Vec<Field> = places.iter().map(field).collect();
    let shown = |(shown, field): (&Shown, &Arc<Field>)| {
        let column = number(shown.place).ok_or_else(|| Error::Bug("a column that is not read".into()))?;
        let expr: Arc<dyn PhysicalExpr> = Arc::new(Column::new(fields[column].name(), column));
        let expr = match &shown.wider {
            Some(wider) => Arc::new(CastExpr::new(expr, wider.clone(), None)),
            None => expr,
        };
        Ok(ProjectionExpr { expr, alias: field.name().clone() })
    };
    let shown = output.iter().zip(schema.fields()).map(shown).collect::<Result<Vec<_>>>()?;
    let mut below: Arc<dyn ExecutionPlan> = Arc::new(scan(places.clone(), Arc::new(Schema::new(fields.clone()))));
    // One above the other: a condition may rely on what one below it has left out.
    for condition in conditions {
        below = Arc::new(FilterExec::try_new(condition, below)?);
    }
    Ok(Some(Arc::new(ProjectionExec::try_new(shown, below)?)))
}
