//! INSERT, UPDATE, DELETE and TRUNCATE of a dispersed table, as part of a transaction: clouds are told when it has been committed.

use std::collections::HashMap;
use std::sync::Arc;

use counterfoil_disperse::{self as disperse, Asking, Condition, Found, Kept, Plain, Report, Rows, Value};
use counterfoil_log::View;
use counterfoil_relation::{self as relation, IndexDef, IndexId, RowBatch, RowId, Rule, Selection, Table, Violation};
use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use datafusion::arrow::compute::{concat_batches, take_record_batch};

use super::reading::Reading;
use super::waiting::Waiting;
use super::{catalogue, columns, is_put_back, keep, kept, shared};
use crate::change::Changed;
use crate::error::{Error, Result};
use crate::evaluate;
use crate::rows;
use crate::session::Session;
use crate::transaction::Change;

/// Refuses what is not done with a dispersed table.
pub(crate) fn refuse(table: &Table, what: &str) -> Result<()> {
    match super::is_dispersed(table) {
        false => Ok(()),
        true => Err(Error::NotSupported(format!("{what} of table {}, which is dispersed", table.name))),
    }
}

/// No other client has changed a table since this statement began to; and it is noted who this one is.
fn stay_alone(session: &mut Session, change: &mut Change, table: &Arc<Table>) -> Result<()> {
    session.is_leased_still(change, table)?;
    let dispersed = shared(session.engine()).clone();
    match catalogue::own(&dispersed, table) {
        Some(_) => dispersed.leases.note_client(&mut change.lease).map(drop),
        None => Ok(()),
    }
}

/// The places of an index's columns.
fn places(table: &Table, index: &IndexDef) -> Vec<usize> {
    index.columns.iter().filter_map(|id| table.position(*id)).collect()
}

/// Stores rows that are complete: here, until clouds have them.
pub(crate) fn insert(
    session: &mut Session,
    change: &mut Change,
    table: &Arc<Table>,
    batch: &RowBatch,
    changed: &mut Changed,
) -> Result<()> {
    let engine = session.engine().clone();
    catalogue::require_backup(shared(&engine), &*change.lease, table)?;
    stay_alone(session, change, table)?;
    check_room(session, change, table, batch)?;
    for index in table.unique_indexes() {
        if away(session, change, table, index, batch)?.iter().any(Option::is_some) {
            let names = places(table, index).iter().map(|at| table.columns[*at].name.clone()).collect();
            let (constraint, table) = (index.name.clone(), table.name.clone());
            let violation = Violation { rule: Rule::Unique, constraint, table, columns: names };
            return Err(Error::Relation(relation::Error::from(violation)));
        }
    }
    engine.relations.insert_in(&mut changed.statement, &mut *change.lease, table, batch).map_err(Error::Relation)?;
    session.guard.transaction.be_durable();
    session.note_untold(table.id);
    Ok(())
}

/// Sums of more rows than were declared have no room.
fn check_room(session: &Session, change: &Change, table: &Table, batch: &RowBatch) -> Result<()> {
    let kept = kept(&*change.lease, table)?;
    let here = session.engine().relations.count(&*change.lease, table).map_err(Error::Relation)?;
    let most = kept.declaration().rows_max;
    match kept.live().len() + here + batch.count() as u64 > most {
        false => Ok(()),
        true => Err(Error::TooLarge(format!(
            "table {0} was declared to have at most {most} rows: ALTER TABLE {0} SET (max_rows = ...) has it moved to where there is \
                 room for more",
            table.name
        ))),
    }
}

/// For each row of a batch the row that is there with the same key, here or at clouds.
pub(crate) fn conflicts(
    session: &mut Session,
    change: &Change,
    table: &Arc<Table>,
    index: IndexId,
    batch: &RowBatch,
) -> Result<Vec<Option<i128>>> {
    let here = session.engine().relations.conflicts(&*change.lease, table, index, batch).map_err(Error::Relation)?;
    let index = table.index(index).ok_or_else(|| Error::Bug("an index that is not there".into()))?;
    let away = away(session, change, table, index, batch)?;
    let number = |(here, away): (Option<RowId>, Option<u64>)| here.map(|row| row.0).or(away).map(i128::from);
    Ok(here.into_iter().zip(away).map(number).collect())
}

/// For each row of a batch the row of clouds with the same key; a key with a NULL is like no other.
fn away(
    session: &mut Session,
    change: &Change,
    table: &Arc<Table>,
    index: &IndexDef,
    batch: &RowBatch,
) -> Result<Vec<Option<u64>>> {
    let kept = kept(&*change.lease, table)?;
    let places = places(table, index);
    let plains = plains(table, &places, batch)?;
    let keys: Vec<Option<Vec<Value>>> =
        (0..batch.count()).map(|row| plains.iter().map(|plain| plain.value(row)).collect()).collect();
    let live = kept.live();
    if live.is_empty() || keys.iter().all(Option::is_none) {
        return Ok(vec![None; batch.count()]);
    }
    let ids = ids(table, &places);
    let values = |at: usize| keys.iter().flatten().map(|key| key[at].clone()).collect();
    let condition = |(at, column): (usize, &u16)| Condition::Equal { column: *column, values: values(at) };
    let conditions: Vec<Condition> = match is_put_back(&*change.lease, &kept)? {
        true => Vec::new(),
        false => ids.iter().enumerate().map(condition).collect(),
    };
    let dispersed = shared(session.engine()).clone();
    let reading = Reading::of((&dispersed, &*change.lease), table, &kept, None, None)?;
    let interrupt = session.interrupt();
    let waiting = Waiting::statement(&interrupt);
    let ask = |opened: &disperse::Table, asked: Asking<'_>, report: &mut Report| {
        opened.read(asked, &ids, &conditions, report)
    };
    let found = reading.each(&waiting, &mut session.notices, ask)?;
    let mut there: HashMap<Vec<Value>, u64> = HashMap::new();
    for (found, at, row) in found.iter().flat_map(|of| of.rows.iter().enumerate().map(move |(at, row)| (of, at, row))) {
        if let Some(key) = found.columns.iter().map(|plain| plain.value(at)).collect() {
            there.insert(key, *row);
        }
    }
    Ok(keys.iter().map(|key| key.as_ref().and_then(|key| there.get(key).copied())).collect())
}

fn ids(table: &Table, places: &[usize]) -> Vec<u16> {
    places.iter().map(|place| table.columns[*place].id.0 as u16).collect()
}

/// Columns of a batch as codings take them.
pub(super) fn plains(table: &Table, places: &[usize], batch: &RowBatch) -> Result<Vec<Plain>> {
    let all = Selection::All(batch.count());
    places.iter().map(|at| columns::plain(&table.columns[*at].kind, &rows::decode(batch, *at, &all)?)).collect()
}

/// Lets go of rows, wherever they are; how many there are.
pub(crate) fn delete(session: &mut Session, change: &mut Change, table: &Arc<Table>, numbers: &[i128]) -> Result<u64> {
    let engine = session.engine().clone();
    stay_alone(session, change, table)?;
    let mut kept = kept(&*change.lease, table)?;
    let all: Rows = numbers.iter().map(|number| *number as u64).collect();
    let here: Vec<RowId> = (&all - &kept.live()).iter().map(RowId).collect();
    engine.relations.delete(&mut *change.lease, table, &here).map_err(Error::Relation)?;
    kept.gone(&all);
    keep(&mut change.lease, table.id, &kept)?;
    session.guard.transaction.be_durable();
    session.note_untold(table.id);
    Ok(all.len())
}

/// Gives rows new images: as new rows, since a number belongs to its values for ever.
pub(crate) fn update(
    session: &mut Session,
    change: &mut Change,
    table: &Arc<Table>,
    numbers: &[i128],
    images: &RowBatch,
    changed: &mut Changed,
) -> Result<()> {
    delete(session, change, table, numbers)?;
    insert(session, change, table, images, changed)
}

/// Lets go of all rows.
pub(crate) fn truncate(session: &mut Session, change: &mut Change, table: &Arc<Table>, restart: bool) -> Result<()> {
    let engine = session.engine().clone();
    stay_alone(session, change, table)?;
    let mut kept = kept(&*change.lease, table)?;
    let out = kept.layouts().iter().fold(kept.live(), |all, layout| all | layout.on_their_way());
    kept.gone(&out);
    keep(&mut change.lease, table.id, &kept)?;
    engine.relations.truncate(&mut *change.lease, table, restart).map_err(Error::Relation)?;
    session.guard.transaction.be_durable();
    session.note_untold(table.id);
    Ok(())
}

/// The rows with these numbers as they are, in this order.
pub(crate) fn fetch(session: &Session, view: &dyn View, table: &Arc<Table>, numbers: &[i128]) -> Result<RecordBatch> {
    let kept = kept(view, table)?;
    let wanted: Rows = numbers.iter().map(|number| *number as u64).collect();
    let away = &wanted & &kept.live();
    let here: Vec<u64> = (&wanted - &away).iter().collect();
    let row_ids: Vec<RowId> = here.iter().copied().map(RowId).collect();
    let block = session.engine().relations.fetch(view, table, &row_ids, None).map_err(Error::Relation)?;
    let (mut batches, mut order) = (vec![evaluate::record_batch(table, &block.rows)?], here);
    for found in found_away(session, view, table, &kept, &away)? {
        let arrays = table
            .columns
            .iter()
            .zip(&found.columns)
            .map(|(column, plain)| columns::array(&column.kind, plain, 0..plain.len()));
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_>>()?;
        batches.push(RecordBatch::try_new(batches[0].schema(), arrays)?);
        order.extend(found.rows);
    }
    let all = concat_batches(&batches[0].schema(), &batches)?;
    let places: HashMap<u64, u64> = order.into_iter().zip(0..).collect();
    let order = numbers.iter().map(|number| places[&(*number as u64)]);
    Ok(take_record_batch(&all, &UInt64Array::from_iter_values(order))?)
}

fn found_away(session: &Session, view: &dyn View, table: &Arc<Table>, kept: &Kept, away: &Rows) -> Result<Vec<Found>> {
    let all: Vec<usize> = (0..table.columns.len()).collect();
    let ids = ids(table, &all);
    let reading = Reading::of((&session.engine().dispersed, view), table, kept, Some(away), None)?;
    let waiting = Waiting::statement(&session.planner.interrupt);
    reading.each(&waiting, &mut Vec::new(), |opened, asked, report| {
        opened.read_rows(asked, &ids, &asked.state.live, report)
    })
}
