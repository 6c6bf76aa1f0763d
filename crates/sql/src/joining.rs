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

mod tree;

use std::sync::Arc;

use counterfoil_relation::RowId;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::DataFusionError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_expr::{PhysicalExpr, conjunction};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use crate::error::{Error, Result};
use crate::joined::{JoinedScan, Leaf, Place};
use crate::scan::{TableScan, Target};
use crate::shortcut::Switch;
use crate::types;
use tree::{Condition, Shown, Tree};

/// With so few rows named, reading them is less work than asking another index.
const FEW_ROWS: usize = 256;

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
    let Some((tree, output)) = Tree::read(plan) else { return Ok(None) };
    let Some((root, paths)) = (0..tree.leaves.len()).find_map(|root| Some((root, tree.paths(root)?))) else {
        return Ok(None);
    };
    let Some((ids, indexes)) = candidates(&tree, root, &paths)? else { return Ok(None) };
    let leaf = |(number, (scan, path)): (usize, (&&TableScan, &Option<usize>))| Leaf {
        table: scan.target().table.clone(),
        path: *path,
        tests: scan.tests().to_vec(),
        is_optional: tree.is_optional(number),
    };
    let leaves = tree.leaves.iter().zip(&paths).enumerate().map(leaf).collect();
    let target = tree.leaves[root].target().clone();
    let scan = |output, schema| JoinedScan::new(target, leaves, output, schema, ids, indexes);
    if tree.conditions.is_empty() && output.iter().all(|shown| shown.wider.is_none()) {
        let output = output.iter().map(|shown| shown.place).collect();
        return Ok(Some(Arc::new(scan(output, plan.schema()))));
    }
    above(&tree, &output, &plan.schema(), scan)
}

/// The scan, and above it what it does not do itself: conditions that only whole rows decide, and wider integers.
fn above(
    tree: &Tree<'_>,
    output: &[Shown],
    schema: &Schema,
    scan: impl FnOnce(Vec<Place>, SchemaRef) -> JoinedScan,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
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
    if !conditions.is_empty() {
        below = Arc::new(FilterExec::try_new(conjunction(conditions), below)?);
    }
    Ok(Some(Arc::new(ProjectionExec::try_new(shown, below)?)))
}

/// The rows of the root that indexes name, if one of them names few; and which indexes do.
fn candidates(tree: &Tree<'_>, root: usize, paths: &[Option<usize>]) -> Result<Option<(Vec<RowId>, Vec<String>)>> {
    let Target { relations, snapshot, table } = tree.leaves[root].target();
    let total = relations.count(snapshot, table).map_err(Error::Relation)?;
    let rows_max = crate::scan::named_rows_max(total);
    let mut named: Vec<(&[RowId], &TableScan, Option<usize>)> = Vec::new();
    for (number, (scan, path)) in tree.leaves.iter().zip(paths).enumerate() {
        // Rows without an optional leaf stay.
        let rows = scan.named_rows().filter(|_| !tree.is_optional(number));
        named.extend(rows.map(|rows| (rows, *scan, *path)));
    }
    named.sort_by_key(|(rows, ..)| rows.len());
    let mut all: Option<Vec<RowId>> = None;
    let mut indexes = Vec::new();
    for (rows, scan, path) in named {
        if all.as_ref().is_some_and(|all| all.len() <= FEW_ROWS) {
            break;
        }
        let mut rows = match path {
            None => rows.to_vec(),
            Some(path) => {
                let back = relations.joined_to(snapshot, table, path, rows, rows_max).map_err(Error::Relation)?;
                let Some(back) = back else { continue };
                back
            }
        };
        rows.sort_unstable();
        if let Some(all) = &all {
            rows.retain(|row| all.binary_search(row).is_ok());
        }
        all = Some(rows);
        indexes.extend(scan.index_name());
    }
    Ok(all.filter(|rows| rows.len() <= rows_max).map(|rows| (rows, indexes)))
}
