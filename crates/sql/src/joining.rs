//! A rule that reads a tree of inner joins along foreign keys as one scan: where indexes name few rows of the table that
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

use std::collections::BTreeMap;
use std::sync::Arc;

use counterfoil_relation::{ForeignKey, RowId, Step, Table, Type};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, JoinType, NullEquality, config::ConfigOptions};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;

use crate::error::{Error, Result};
use crate::joined::{JoinedScan, Leaf, Place};
use crate::scan::{Output, TableScan, Target};
use crate::shortcut::Switch;

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
    let leaf = |(scan, path): (&&TableScan, &Option<usize>)| Leaf {
        table: scan.target().table.clone(),
        path: *path,
        tests: scan.tests().to_vec(),
    };
    let leaves = tree.leaves.iter().zip(&paths).map(leaf).collect();
    let target = tree.leaves[root].target().clone();
    Ok(Some(Arc::new(JoinedScan::new(target, leaves, output, plan.schema(), ids, indexes))))
}

/// The rows of the root that indexes name, if one of them names few; and which indexes do.
fn candidates(tree: &Tree<'_>, root: usize, paths: &[Option<usize>]) -> Result<Option<(Vec<RowId>, Vec<String>)>> {
    let Target { relations, snapshot, table } = tree.leaves[root].target();
    let total = relations.count(snapshot, table).map_err(Error::Relation)?;
    let rows_max = crate::scan::named_rows_max(total);
    let mut named: Vec<(&[RowId], &TableScan, Option<usize>)> = Vec::new();
    for (scan, path) in tree.leaves.iter().zip(paths) {
        named.extend(scan.named_rows().map(|rows| (rows, *scan, *path)));
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

/// What a column of a plan is.
#[derive(Clone, Copy)]
struct Shown {
    place: Place,
    /// Whether it is a wider integer than the column at that place, which compares alike and is another value.
    is_wider: bool,
}

/// A tree of inner joins, as a plan has it.
struct Tree<'p> {
    leaves: Vec<&'p TableScan>,
    equal: Vec<(Place, Place)>,
}

impl<'p> Tree<'p> {
    /// Reads a plan that is one, and what its columns are.
    fn read(plan: &'p Arc<dyn ExecutionPlan>) -> Option<(Self, Vec<Place>)> {
        let mut tree = Tree { leaves: Vec::new(), equal: Vec::new() };
        let output = tree.add(plan)?.into_iter().map(|shown| shown.filter(|shown| !shown.is_wider));
        let output = output.map(|shown| Some(shown?.place)).collect::<Option<_>>()?;
        Some((tree, output))
    }

    /// Adds what a node reads; what the node's columns are, those that are columns of tables.
    fn add(&mut self, plan: &'p Arc<dyn ExecutionPlan>) -> Option<Vec<Option<Shown>>> {
        if let Some(scan) = plan.downcast_ref::<TableScan>() {
            return self.add_scan(scan);
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            return self.add_join(join);
        }
        let projection = plan.downcast_ref::<ProjectionExec>()?;
        let below = self.add(projection.input())?;
        Some(projection.expr().iter().map(|shown| self.shown(&shown.expr, &below)).collect())
    }

    fn add_scan(&mut self, scan: &'p TableScan) -> Option<Vec<Option<Shown>>> {
        if scan.fetch().is_some() {
            return None;
        }
        let leaf = self.leaves.len();
        self.leaves.push(scan);
        let place = |output: &Output| match output {
            Output::Column(column) => Some(Shown { place: Place { leaf, column: *column }, is_wider: false }),
            Output::RowId => None,
        };
        Some(scan.output().iter().map(place).collect())
    }

    fn add_join(&mut self, join: &'p HashJoinExec) -> Option<Vec<Option<Shown>>> {
        let plain = join.join_type == JoinType::Inner
            && join.filter.is_none()
            && join.null_equality == NullEquality::NullEqualsNothing
            && join.fetch().is_none();
        if !plain {
            return None;
        }
        let (left, right) = (self.add(&join.left)?, self.add(&join.right)?);
        for (one, other) in &join.on {
            self.equal.push((self.shown(one, &left)?.place, self.shown(other, &right)?.place));
        }
        let all: Vec<Option<Shown>> = left.into_iter().chain(right).collect();
        match &join.projection {
            Some(shown) => shown.iter().map(|place| all.get(*place).copied()).collect(),
            None => Some(all),
        }
    }

    /// The column that an expression is: as it is, or as a wider integer.
    fn shown(&self, expr: &Arc<dyn PhysicalExpr>, below: &[Option<Shown>]) -> Option<Shown> {
        let Some(cast) = expr.downcast_ref::<CastExpr>() else {
            return *below.get(expr.downcast_ref::<Column>()?.index())?;
        };
        let shown = self.shown(cast.expr(), below)?;
        let kind = self.table(shown.place.leaf).columns[shown.place.column].kind;
        let is_wider = match cast.cast_type() {
            DataType::Int32 => kind == Type::SmallInt,
            DataType::Int64 => matches!(kind, Type::SmallInt | Type::Integer),
            _ => false,
        };
        is_wider.then_some(Shown { is_wider, ..shown })
    }

    /// If the others are joined to `root` along foreign keys, and by nothing else: for each leaf the path from the root,
    /// none for the root itself.
    fn paths(&self, root: usize) -> Option<Vec<Option<usize>>> {
        let all = Classes::of(&self.equal);
        let mut along = Vec::new();
        let mut steps: Vec<Option<Vec<Step>>> = vec![None; self.leaves.len()];
        steps[root] = Some(Vec::new());
        let mut due = vec![root];
        while let Some(from) = due.pop() {
            let before = steps[from].clone()?;
            for key in &self.table(from).foreign_keys {
                for (to, way) in steps.iter_mut().enumerate() {
                    if way.is_some() || self.table(to).id != key.parent {
                        continue;
                    }
                    let Some(pairs) = self.pairs(from, to, key).filter(|pairs| all.hold(pairs)) else { continue };
                    along.extend(pairs);
                    *way = Some(before.iter().copied().chain([key.step()]).collect());
                    due.push(to);
                }
            }
        }
        if !Classes::of(&along).hold(&self.equal) {
            return None;
        }
        let place = |steps: Option<Vec<Step>>| match steps?.as_slice() {
            [] => Some(None),
            steps => self.table(root).join_along(steps).map(Some),
        };
        steps.into_iter().map(place).collect()
    }

    fn table(&self, leaf: usize) -> &Table {
        &self.leaves[leaf].target().table
    }

    /// The columns that a foreign key pairs.
    fn pairs(&self, from: usize, to: usize, key: &ForeignKey) -> Option<Vec<(Place, Place)>> {
        let pair = |(own, other): (&_, &_)| {
            let own = Place { leaf: from, column: self.table(from).position(*own)? };
            Some((own, Place { leaf: to, column: self.table(to).position(*other)? }))
        };
        key.columns.iter().zip(&key.parent_columns).map(pair).collect()
    }
}

/// Which columns are equal, through others too.
struct Classes(BTreeMap<Place, usize>);

impl Classes {
    fn of(pairs: &[(Place, Place)]) -> Self {
        let mut classes: BTreeMap<Place, usize> = BTreeMap::new();
        for (number, (one, other)) in pairs.iter().enumerate() {
            let (first, second) = (classes.get(one).copied(), classes.get(other).copied());
            let class = first.or(second).unwrap_or(number);
            classes.insert(*one, class);
            classes.insert(*other, class);
            if let (Some(first), Some(second)) = (first, second) {
                classes.values_mut().filter(|class| **class == second).for_each(|class| *class = first);
            }
        }
        Classes(classes)
    }

    /// Whether all of these are equal.
    fn hold(&self, pairs: &[(Place, Place)]) -> bool {
        let class = |place| self.0.get(place);
        pairs.iter().all(|(one, other)| class(one).is_some() && class(one) == class(other))
    }
}
