//! ON CONFLICT: which rows of an INSERT meet others, and what becomes of them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use counterfoil_relation::{IndexDef, IndexId, RowBatch, Table};
use datafusion::arrow::array::{Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::TableProvider;
use datafusion::sql::sqlparser::ast::{Assignment, ConflictTarget, Expr, Insert, OnConflictAction, OnInsert, Query};

use crate::change::{self, Changed, Seen};
use crate::dispersed;
use crate::error::{Error, Result};
use crate::evaluate;
use crate::met;
use crate::planner;
use crate::series;
use crate::session::Session;
use crate::statement::{self, fold};
use crate::transaction::Change;

/// Tables that a query names beside those that there are.
type Beside = Vec<(String, Arc<dyn TableProvider>)>;

/// ON CONFLICT.
pub(crate) struct Conflict<'a> {
    indexes: Vec<IndexId>,
    update: Option<(&'a [Assignment], Option<&'a Expr>)>,
    alias: String,
}

impl Conflict<'_> {
    /// Whether rows that are met are changed.
    pub(crate) fn updates(&self) -> bool {
        self.update.is_some()
    }

    /// What it says of rows that are met.
    fn text(&self) -> Option<String> {
        let (assignments, selection) = self.update?;
        let mut text = format!("{} SET", self.alias);
        assignments.iter().for_each(|assignment| text.push_str(&format!(" {assignment},")));
        selection.iter().for_each(|selection| text.push_str(&format!(" WHERE {selection}")));
        Some(text)
    }
}

/// What was found to be in order, and of which table: a session says the same again and again, and planning it takes a hundred times as long
/// as storing a row.
#[derive(Default)]
pub(crate) struct Checked(HashMap<String, Arc<Table>>);

/// So many at most are known.
const CHECKED_MAX: usize = 64;

impl Checked {
    fn knows(&self, text: &str, table: &Arc<Table>) -> bool {
        self.0.get(text).is_some_and(|of| Arc::ptr_eq(of, table))
    }

    fn note(&mut self, text: String, table: &Arc<Table>) {
        if self.0.len() >= CHECKED_MAX {
            self.0.clear();
        }
        self.0.insert(text, table.clone());
    }
}

impl Session {
    /// Does what ON CONFLICT says with rows that meet others in a table, and answers the rest.
    pub(crate) fn resolve(
        &mut self,
        change: &mut Change,
        table: &Arc<Table>,
        conflict: &Conflict<'_>,
        batch: RowBatch,
        seen: &Seen<'_>,
        changed: &mut Changed,
    ) -> Result<RowBatch> {
        match conflict {
            Conflict { indexes, update: None, .. } => self.without_conflicts(change, table, indexes, batch),
            conflict => self.merge(change, table, conflict, batch, seen, changed),
        }
    }

    /// Refuses what is wrong with an update of rows that are met, whether there are any or not. Once for a table as it is; what other
    /// tables have become since shows where a row is met.
    pub(crate) fn check_update(
        &mut self,
        change: &mut Change,
        table: &Arc<Table>,
        conflict: &Conflict<'_>,
        seen: &Seen<'_>,
    ) -> Result<()> {
        let Some(text) = conflict.text() else { return Ok(()) };
        if self.checked.knows(&text, table) {
            return Ok(());
        }
        let nothing = RowBatch::new(table.layout(), 0);
        let (query, extra) = self.question_of_met(change, table, conflict, (&[], &nothing))?;
        let plan = self.plan_query(change, query, extra, seen)?;
        let schema = Arc::new(self.planner.schema_of(&plan)?);
        let asks_others = conflict.update.is_some_and(|(assignments, selection)| {
            change::asks_others(&assignments.to_vec()) || selection.is_some_and(change::asks_others)
        });
        if !asks_others {
            // Subqueries are asked where a row is met, and nothing else has rows here.
            self.planner.collect(&plan)?;
        }
        change::Images::of(table, &[RecordBatch::new_empty(schema)])?;
        self.checked.note(text, table);
        Ok(())
    }

    /// The same with rows that will be kept apart from a series table: there they may meet others, too.
    pub(crate) fn resolve_apart(
        &mut self,
        change: &mut Change,
        table: &Arc<Table>,
        conflict: &Conflict<'_>,
        batch: RowBatch,
        seen: &Seen<'_>,
        changed: &mut Changed,
    ) -> Result<RowBatch> {
        if self.settings.as_given || !series::is_series(table) {
            return Ok(batch);
        }
        let (Some((mut taken, ahead)), Some(apart)) =
            (series::divide(self.engine(), table, &batch)?, series::kept_apart(table))
        else {
            return Ok(batch);
        };
        let ahead = self.resolve(change, &apart, conflict, ahead, seen, changed)?;
        (0..ahead.count()).try_for_each(|row| taken.push_from(&ahead, row)).map_err(Error::Relation)?;
        Ok(taken)
    }

    /// For each row of a batch the number of the row that is there with the same key.
    fn conflicts(
        &mut self,
        change: &Change,
        table: &Arc<Table>,
        index: IndexId,
        batch: &RowBatch,
    ) -> Result<Vec<Option<i128>>> {
        if dispersed::is_dispersed(table) {
            return dispersed::conflicts(self, change, table, index, batch);
        }
        let engine = self.engine();
        if series::is_series(table) {
            return series::conflicts(&engine.series, &*change.lease, table, batch);
        }
        let met = engine.relations.conflicts(&*change.lease, table, index, batch).map_err(Error::Relation)?;
        Ok(met.into_iter().map(|row| row.map(|row| i128::from(row.0))).collect())
    }

    /// ON CONFLICT DO NOTHING: the rows that meet no other row with their key, in the table or before them.
    fn without_conflicts(
        &mut self,
        change: &mut Change,
        table: &Arc<Table>,
        indexes: &[IndexId],
        batch: RowBatch,
    ) -> Result<RowBatch> {
        let relations = self.engine().relations.clone();
        let mut met = Vec::new();
        let mut repeated = Vec::new();
        for index in indexes {
            met.push(self.conflicts(change, table, *index, &batch)?);
            repeated.push(relations.repeats(table, *index, &batch).map_err(Error::Relation)?);
        }
        let mut taken: Vec<HashSet<usize>> = vec![HashSet::new(); indexes.len()];
        let mut kept = RowBatch::new(batch.layout().clone(), 0);
        for row in 0..batch.count() {
            let key = |index: usize| repeated[index][row].unwrap_or(row);
            let free = (0..indexes.len()).all(|index| met[index][row].is_none() && !taken[index].contains(&key(index)));
            if free {
                (0..indexes.len()).for_each(|index| {
                    taken[index].insert(key(index));
                });
                kept.push_from(&batch, row).map_err(Error::Relation)?;
            }
        }
        Ok(kept)
    }

    /// ON CONFLICT DO UPDATE: updates the rows met, and answers those that are new.
    fn merge(
        &mut self,
        change: &mut Change,
        table: &Arc<Table>,
        conflict: &Conflict<'_>,
        batch: RowBatch,
        seen: &Seen<'_>,
        changed: &mut Changed,
    ) -> Result<RowBatch> {
        let relations = self.engine().relations.clone();
        let [index] = conflict.indexes.as_slice() else { return Err(Error::Bug("one index to conflict with".into())) };
        if relations.repeats(table, *index, &batch).map_err(Error::Relation)?.iter().any(Option::is_some) {
            return Err(met::twice());
        }
        let met = self.conflicts(change, table, *index, &batch)?;
        let mut new = RowBatch::new(batch.layout().clone(), 0);
        let mut proposed = RowBatch::new(batch.layout().clone(), 0);
        let mut ids: Vec<i128> = Vec::new();
        for (row, met) in met.iter().enumerate() {
            let into = match met {
                Some(id) => {
                    ids.push(*id);
                    &mut proposed
                }
                None => &mut new,
            };
            into.push_from(&batch, row).map_err(Error::Relation)?;
        }
        if may_be_in_parts(table) {
            changed.met.take(&ids, self.planner.pool())?;
        }
        if !ids.is_empty() {
            let (rows, images) = self.images_of_met(change, table, conflict, (&ids, proposed), seen)?;
            change::apply_update(self, change, table, &rows, images, changed)?;
        }
        Ok(new)
    }

    /// Which rows of those that were met are updated, and their new images: worked out in halves where there is no memory for all of them.
    fn images_of_met(
        &mut self,
        change: &mut Change,
        table: &Arc<Table>,
        conflict: &Conflict<'_>,
        (ids, proposed): (&[i128], RowBatch),
        seen: &Seen<'_>,
    ) -> Result<(Vec<i128>, RowBatch)> {
        match self.images_of_some(change, table, conflict, (ids, &proposed), seen) {
            Err(Error::Memory(_)) if ids.len() > 1 => {}
            images => return images,
        }
        let half = ids.len() / 2;
        let part = |from: usize, to: usize| {
            let mut some = RowBatch::new(proposed.layout().clone(), 0);
            (from..to).try_for_each(|row| some.push_from(&proposed, row)).map_err(Error::Relation)?;
            Ok::<_, Error>(some)
        };
        let (first, second) = (part(0, half)?, part(half, ids.len())?);
        drop(proposed);
        let (mut rows, mut images) = self.images_of_met(change, table, conflict, (&ids[..half], first), seen)?;
        let (more, others) = self.images_of_met(change, table, conflict, (&ids[half..], second), seen)?;
        rows.extend(more);
        (0..others.count()).try_for_each(|row| images.push_from(&others, row)).map_err(Error::Relation)?;
        Ok((rows, images))
    }

    fn images_of_some(
        &mut self,
        change: &mut Change,
        table: &Arc<Table>,
        conflict: &Conflict<'_>,
        (ids, proposed): (&[i128], &RowBatch),
        seen: &Seen<'_>,
    ) -> Result<(Vec<i128>, RowBatch)> {
        let (query, extra) = self.question_of_met(change, table, conflict, (ids, proposed))?;
        let batches = self.collect_query(change, query, extra, seen)?;
        let (orders, images) = change::Images::of(table, &batches)?;
        let rows = orders.iter().map(|order| usize::try_from(*order).ok().and_then(|order| ids.get(order).copied()));
        let rows: Vec<i128> = rows.collect::<Option<_>>().ok_or_else(|| Error::Bug("an order out of bounds".into()))?;
        Ok((rows, images))
    }

    /// What asks for the new images of rows that were met, and the tables that it asks.
    fn question_of_met(
        &mut self,
        change: &mut Change,
        table: &Arc<Table>,
        conflict: &Conflict<'_>,
        (ids, proposed): (&[i128], &RowBatch),
    ) -> Result<(Query, Beside)> {
        let (assignments, selection) = conflict.update.unwrap_or_default();
        let present = change::fetch(self, change, table, ids)?;
        let extra = vec![
            (change::TARGET.to_owned(), planner::batch_table(ordered(present)?)?),
            (EXCLUDED.to_owned(), planner::batch_table(ordered(evaluate::record_batch(table, proposed)?)?)?),
        ];
        let mut items = vec![change::column_item(&conflict.alias, ORDER, ORDER)];
        items.extend(self.assigned_items(table, &conflict.alias, assignments)?);
        let from =
            vec![planner::select_from(change::TARGET, &conflict.alias), planner::select_from(EXCLUDED, "excluded")];
        let paired = change::equal(change::column_expr(&conflict.alias, ORDER), change::column_expr("excluded", ORDER));
        let selection = change::and(paired, selection.cloned());
        Ok((change::select(None, items, from, Some(selection)), extra))
    }
}

/// What ON CONFLICT says.
pub(crate) fn conflict<'a>(on: &'a OnInsert, table: &Table, insert: &Insert) -> Result<Conflict<'a>> {
    let OnInsert::OnConflict(on) = on else {
        return Err(Error::NotSupported("ON DUPLICATE KEY UPDATE: write ON CONFLICT ... DO UPDATE".into()));
    };
    let indexes: Vec<IndexId> = match &on.conflict_target {
        None => table.unique_indexes().map(|index| index.id).collect(),
        Some(ConflictTarget::OnConstraint(name)) => {
            let name = statement::parts(name)?.pop().unwrap_or_default();
            let found = table.unique_indexes().find(|index| index.name == name);
            vec![
                found
                    .ok_or_else(|| Error::NotFound(format!("no unique constraint {name} of table {}", table.name)))?
                    .id,
            ]
        }
        Some(ConflictTarget::Columns(columns)) => {
            let wanted: HashSet<_> = columns
                .iter()
                .map(|column| Ok(table.columns[change::place(table, &fold(column))?].id))
                .collect::<Result<_>>()?;
            let same = |index: &&IndexDef| {
                index.columns.len() == wanted.len() && index.columns.iter().all(|column| wanted.contains(column))
            };
            let found = table.unique_indexes().find(same);
            vec![
                found
                    .ok_or_else(|| {
                        Error::Sql(format!("no unique constraint over these columns of table {}", table.name))
                    })?
                    .id,
            ]
        }
    };
    let alias = insert.table_alias.as_ref().map_or_else(|| table.name.clone(), |alias| fold(&alias.alias));
    match &on.action {
        OnConflictAction::DoNothing => Ok(Conflict { indexes, update: None, alias }),
        OnConflictAction::DoUpdate(_) if on.conflict_target.is_none() => {
            Err(Error::Sql("ON CONFLICT DO UPDATE needs the columns or the constraint that may conflict".into()))
        }
        OnConflictAction::DoUpdate(update) => {
            Ok(Conflict { indexes, update: Some((&update.assignments, update.selection.as_ref())), alias })
        }
    }
}

const EXCLUDED: &str = "__counterfoil_excluded";
const ORDER: &str = "__counterfoil_order";

/// A batch with a column that numbers its rows.
fn ordered(rows: RecordBatch) -> Result<RecordBatch> {
    let mut fields: Vec<_> = rows.schema().fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new(ORDER, DataType::Int64, false)));
    let mut columns = rows.columns().to_vec();
    columns.push(Arc::new(Int64Array::from_iter_values(0..rows.num_rows() as i64)));
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// Whether ON CONFLICT may be decided part by part: rows of parts before are there for those that follow. Clouds and series are asked once.
pub(crate) fn may_be_in_parts(table: &Table) -> bool {
    !dispersed::is_dispersed(table) && !series::is_series(table)
}
