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

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use counterfoil_relation::RowId;
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
use crate::filter;
use crate::joined::{JoinedScan, Leaf, Place};
use crate::rows::Rows;
use crate::scan::{TableScan, Target};
use crate::shortcut::Switch;
use crate::types;
use tree::{Condition, Shown, Tree};

/// With so few rows named, reading them is less work than asking for more.
const FEW_ROWS: usize = 256;
/// One in so many of the root's rows is fetched by number: in the order of their numbers they cost less than a scan of all and
/// a hash join of each.
const ROOT_SHARE: u64 = 4;
/// A leaf with at most one in so many of the root's rows is read to its end, to know which of its rows come into question.
const LEAF_SHARE: u64 = 8;
/// Rows read at a time.
const BLOCK_ROWS: usize = 4096;

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

/// Rows of a leaf that come into question: what names them, and the path by which rows of the root join them.
struct Named<'p> {
    rows: Cow<'p, [RowId]>,
    by: String,
    path: Option<usize>,
}

/// The rows of the root that come into question, if they are few enough; and what named them.
fn candidates(tree: &Tree<'_>, root: usize, paths: &[Option<usize>]) -> Result<Option<(Vec<RowId>, Vec<String>)>> {
    let Target { relations, snapshot, table } = tree.leaves[root].target();
    let total = relations.count(snapshot, table).map_err(Error::Relation)?;
    let rows_max = usize::try_from(total / ROOT_SHARE).unwrap_or(usize::MAX).max(FEW_ROWS);
    let mut named = Vec::new();
    for (number, (scan, path)) in tree.leaves.iter().zip(paths).enumerate() {
        // Rows without an optional leaf stay.
        if !tree.is_optional(number) {
            named.extend(rows_of(scan, *path, total)?);
        }
    }
    named.sort_by_key(|named| named.rows.len());
    let mut all: Option<Vec<RowId>> = None;
    let mut by = Vec::new();
    for Named { rows, by: name, path } in named {
        if all.as_ref().is_some_and(|all| all.len() <= FEW_ROWS) {
            break;
        }
        let back = match path {
            // Each of them is looked up, whatever comes of it.
            Some(_) if rows.len() > rows_max => None,
            None => Some(rows.into_owned()),
            Some(path) => relations.joined_to(snapshot, table, path, &rows, rows_max).map_err(Error::Relation)?,
        };
        let Some(mut rows) = back else { continue };
        rows.sort_unstable();
        if let Some(all) = &all {
            rows.retain(|row| all.binary_search(row).is_ok());
        }
        all = Some(rows);
        by.push(name);
    }
    Ok(all.filter(|rows| rows.len() <= rows_max).map(|rows| (rows, by)))
}

/// The rows of a leaf that come into question, if they are few of its rows: those that an index has named, or, of a table
/// that is small beside the root, those of which the tests are true.
fn rows_of<'p>(scan: &'p TableScan, path: Option<usize>, total: u64) -> Result<Option<Named<'p>>> {
    let Target { relations, snapshot, table } = scan.target();
    let count = relations.count(snapshot, table).map_err(Error::Relation)?;
    let named = match (scan.named_rows(), scan.index_name()) {
        (Some(rows), Some(by)) => Named { rows: Cow::Borrowed(rows), by, path },
        _ if path.is_none() || scan.tests().is_empty() || count > total / LEAF_SHARE => return Ok(None),
        _ => Named { rows: Cow::Owned(matching(scan)?), by: format!("{} read", table.name), path },
    };
    // The root's rows join those of the leaf about evenly: many of these are many of the root.
    let is_few = named.rows.len() <= FEW_ROWS || named.rows.len() as u64 <= count / ROOT_SHARE;
    Ok(Some(named).filter(|_| is_few))
}

/// The rows of a table of which a scan's tests are true.
fn matching(scan: &TableScan) -> Result<Vec<RowId>> {
    let Target { relations, snapshot, table } = scan.target();
    let mut columns = Vec::new();
    scan.tests().iter().for_each(|test| test.columns(&mut columns));
    let all = relations.scan(snapshot.clone(), table).map_err(Error::Relation)?;
    let mut all = all.with_columns(&columns);
    let mut rows = Vec::new();
    while let Some(block) = all.next(BLOCK_ROWS).map_err(Error::Relation)? {
        match filter::select(&block, scan.tests())? {
            Rows::All(count) => rows.extend((0..count).map(|row| block.id(row))),
            Rows::At(places) => rows.extend(places.iter().map(|place| block.id(*place as usize))),
        }
    }
    Ok(rows)
}
