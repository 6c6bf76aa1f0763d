//! A tree of joins as a plan has it, and whether it runs along foreign keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use counterfoil_relation::{ForeignKey, Source, Step, Table, Type};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinSide, JoinType, NullEquality};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::projection::ProjectionExec;

use super::said::{Reader, Said};
use crate::joined::Place;
use crate::scan::{Output, TableScan};

/// What a column of a plan is.
#[derive(Clone)]
pub(super) struct Shown {
    pub(super) place: Place,
    /// The wider type as which an integer is shown: it compares alike.
    pub(super) wider: Option<DataType>,
}

/// Columns of a plan: those that are columns of tables.
type Columns = Vec<Option<Shown>>;

/// A condition that only whole rows of the tree decide.
pub(super) struct Condition {
    expr: Arc<dyn PhysicalExpr>,
    /// What its columns are, by their numbers in it.
    columns: BTreeMap<usize, Place>,
    /// What it says of the tables, as far as the floor of tables understands.
    pub(super) said: Option<Said>,
}

impl Condition {
    /// The columns it looks at.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.columns.values().copied()
    }

    /// The same condition over other columns: `number` says where each stands there.
    pub(super) fn over(&self, number: &dyn Fn(Place) -> Option<usize>) -> Option<Arc<dyn PhysicalExpr>> {
        let mut is_whole = true;
        let moved = self.expr.clone().transform_up(|expr| {
            let Some(column) = expr.downcast_ref::<Column>() else { return Ok(Transformed::no(expr)) };
            let there = self.columns.get(&column.index()).and_then(|place| number(*place));
            is_whole &= there.is_some();
            let moved = Column::new(column.name(), there.unwrap_or_default());
            Ok(Transformed::yes(Arc::new(moved) as Arc<dyn PhysicalExpr>))
        });
        moved.ok().filter(|_| is_whole).map(|moved| moved.data)
    }
}

/// A table that is joined where it has a row, and is NULL where not.
pub(crate) struct Optional {
    pub(crate) leaf: usize,
    pub(crate) on: Vec<(Place, Place)>,
}

/// How the tables of a tree are joined.
#[derive(Default)]
pub(crate) struct Joins {
    /// Columns that are equal in every row.
    pub(crate) equal: Vec<(Place, Place)>,
    pub(crate) optional: Vec<Optional>,
}

/// A tree of joins.
#[derive(Default)]
pub(super) struct Tree<'p> {
    pub(super) leaves: Vec<&'p TableScan>,
    pub(super) joins: Joins,
    pub(super) conditions: Vec<Condition>,
}

impl<'p> Tree<'p> {
    /// Reads a plan that is one, and what its columns are.
    pub(super) fn read(plan: &'p Arc<dyn ExecutionPlan>) -> Option<(Self, Vec<Shown>)> {
        let mut tree = Tree::default();
        let output = tree.add(plan)?.into_iter().collect::<Option<_>>()?;
        Some((tree, output))
    }

    /// Whether rows stay that have none of this leaf.
    pub(super) fn is_optional(&self, leaf: usize) -> bool {
        self.joins.optional.iter().any(|optional| optional.leaf == leaf)
    }

    /// Adds what a node reads; what the node's columns are.
    fn add(&mut self, plan: &'p Arc<dyn ExecutionPlan>) -> Option<Columns> {
        if let Some(scan) = plan.downcast_ref::<TableScan>() {
            return self.add_scan(scan);
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            return self.add_join(join);
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            return self.add_filter(filter);
        }
        let projection = plan.downcast_ref::<ProjectionExec>()?;
        let below = self.add(projection.input())?;
        Some(projection.expr().iter().map(|shown| self.shown(&shown.expr, &below)).collect())
    }

    fn add_scan(&mut self, scan: &'p TableScan) -> Option<Columns> {
        if scan.fetch().is_some() {
            return None;
        }
        let leaf = self.leaves.len();
        self.leaves.push(scan);
        let place = |output: &Output| match output {
            Output::Column(column) => Some(Shown { place: Place { leaf, column: *column }, wider: None }),
            Output::RowId => None,
        };
        Some(scan.output().iter().map(place).collect())
    }

    fn add_filter(&mut self, filter: &'p FilterExec) -> Option<Columns> {
        if filter.fetch().is_some() {
            return None;
        }
        let below = self.add(filter.input())?;
        self.add_condition(filter.predicate(), &|number| below.get(number)?.clone())?;
        match filter.projection() {
            Some(shown) => shown.iter().map(|place| below.get(*place).cloned()).collect(),
            None => Some(below),
        }
    }

    fn add_condition(&mut self, expr: &Arc<dyn PhysicalExpr>, shown: &dyn Fn(usize) -> Option<Shown>) -> Option<()> {
        let place = |column: Column| {
            let shown = shown(column.index()).filter(|shown| shown.wider.is_none())?;
            Some((column.index(), shown.place))
        };
        let columns: BTreeMap<usize, Place> = collect_columns(expr).into_iter().map(place).collect::<Option<_>>()?;
        let reader = Reader { place: &|number| columns.get(&number).copied(), table: &|leaf| self.table(leaf) };
        let said = reader.read(expr, true);
        self.conditions.push(Condition { expr: expr.clone(), columns, said });
        Some(())
    }

    fn add_join(&mut self, join: &'p HashJoinExec) -> Option<Columns> {
        if join.null_equality != NullEquality::NullEqualsNothing || join.fetch().is_some() {
            return None;
        }
        let left = self.add(&join.left)?;
        let middle = (self.leaves.len(), self.conditions.len());
        let right = self.add(&join.right)?;
        let equal = |(one, other)| Some((self.shown(one, &left)?.place, self.shown(other, &right)?.place));
        let on: Vec<(Place, Place)> = join.on.iter().map(|(one, other)| equal((one, other))).collect::<Option<_>>()?;
        match join.join_type {
            JoinType::Inner => self.joins.equal.extend(on),
            // One table, of whose rows nothing is asked but by tests of its own.
            JoinType::Left if middle == (self.leaves.len() - 1, self.conditions.len()) && join.filter.is_none() => {
                self.joins.optional.push(Optional { leaf: middle.0, on });
            }
            _ => return None,
        }
        if let Some(filter) = &join.filter {
            self.add_join_filter(filter, &left, &right)?;
        }
        let all: Columns = left.into_iter().chain(right).collect();
        match &join.projection {
            Some(shown) => shown.iter().map(|place| all.get(*place).cloned()).collect(),
            None => Some(all),
        }
    }

    fn add_join_filter(&mut self, filter: &JoinFilter, left: &Columns, right: &Columns) -> Option<()> {
        let shown = |number: usize| {
            let column = filter.column_indices().get(number)?;
            let side = match column.side {
                JoinSide::Left => left,
                JoinSide::Right => right,
                JoinSide::None => return None,
            };
            side.get(column.index)?.clone()
        };
        self.add_condition(filter.expression(), &shown)
    }

    /// The column that an expression is: as it is, or as a wider integer.
    fn shown(&self, expr: &Arc<dyn PhysicalExpr>, below: &Columns) -> Option<Shown> {
        let Some(cast) = expr.downcast_ref::<CastExpr>() else {
            return below.get(expr.downcast_ref::<Column>()?.index())?.clone();
        };
        let shown = self.shown(cast.expr(), below)?;
        let kind = self.table(shown.place.leaf).columns[shown.place.column].kind;
        let is_wider = match cast.cast_type() {
            DataType::Int32 => kind == Type::SmallInt,
            DataType::Int64 => matches!(kind, Type::SmallInt | Type::Integer),
            _ => false,
        };
        is_wider.then(|| Shown { wider: Some(cast.cast_type().clone()), ..shown })
    }

    /// The root of the tree and the leaves as sources of a question to it, if the others are joined to it along foreign keys, and by
    /// nothing else.
    pub(super) fn sources(&self) -> Option<(usize, Vec<Source>)> {
        let (root, paths) = (0..self.leaves.len()).find_map(|root| Some((root, self.paths(root)?)))?;
        let source = |(number, (scan, path)): (usize, (&&TableScan, Option<usize>))| Source {
            table: scan.target().table.clone(),
            path,
            tests: scan.tests().to_vec(),
            is_optional: self.is_optional(number),
        };
        Some((root, self.leaves.iter().zip(paths).enumerate().map(source).collect()))
    }

    /// If the others are joined to `root` along foreign keys, and by nothing else: for each leaf the path from the root,
    /// by its place among the root's joins; none for the root itself.
    fn paths(&self, root: usize) -> Option<Vec<Option<usize>>> {
        let mut steps: Vec<Option<Vec<Step>>> = vec![None; self.leaves.len()];
        let is_inner = |leaf: usize| !self.is_optional(leaf);
        // A row without an optional leaf has nothing there that could be equal.
        let touches = |place: &Place| !is_inner(place.leaf);
        if !is_inner(root) || self.joins.equal.iter().any(|(one, other)| touches(one) || touches(other)) {
            return None;
        }
        let all = Classes::of(&self.joins.equal);
        let mut along = Vec::new();
        steps[root] = Some(Vec::new());
        let mut due = vec![root];
        while let Some(from) = due.pop() {
            for to in (0..self.leaves.len()).filter(|to| is_inner(*to)) {
                if steps[to].is_some() {
                    continue;
                }
                let Some((key, pairs)) = self.key_between(from, to, &all) else { continue };
                along.extend(pairs);
                steps[to] = Some(steps[from].iter().flatten().copied().chain([key.step()]).collect());
                due.push(to);
            }
        }
        if !Classes::of(&along).hold(&self.joins.equal) {
            return None;
        }
        for optional in &self.joins.optional {
            steps[optional.leaf] = Some(self.optional_steps(optional, &steps, &along)?);
        }
        let place = |steps: Option<Vec<Step>>| match steps?.as_slice() {
            [] => Some(None),
            steps => self.table(root).join_along(steps).map(Some),
        };
        steps.into_iter().map(place).collect()
    }

    /// The steps to an optional leaf, from one that is none.
    fn optional_steps(
        &self,
        optional: &Optional,
        steps: &[Option<Vec<Step>>],
        along: &[(Place, Place)],
    ) -> Option<Vec<Step>> {
        let with = |more: &[(Place, Place)]| Classes::of(&[&self.joins.equal, along, more].concat());
        let all = with(&optional.on);
        for from in (0..self.leaves.len()).filter(|leaf| !self.is_optional(*leaf)) {
            let Some((key, pairs)) = self.key_between(from, optional.leaf, &all) else { continue };
            if with(&pairs).hold(&optional.on) {
                return Some(steps[from].iter().flatten().copied().chain([key.step()]).collect());
            }
        }
        None
    }

    /// A foreign key of one leaf's table to another's that equalities imply, and the columns that it pairs.
    fn key_between(&self, from: usize, to: usize, all: &Classes) -> Option<(&ForeignKey, Vec<(Place, Place)>)> {
        let keys = self.table(from).foreign_keys.iter().filter(|key| key.parent == self.table(to).id);
        keys.filter_map(|key| Some((key, self.pairs(from, to, key)?))).find(|(_, pairs)| all.hold(pairs))
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
