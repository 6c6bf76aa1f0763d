//! Updating and deleting rows, with all that follows from it in tables that reference them.
//!
//! Changes are worked off one after another rather than by recursion: a chain of a million rows that reference each
//! other is no deeper than one. What NO ACTION forbids is looked at when all is done.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::access::{Access, Shared};
use crate::insert::{moved_images, not_unique};
use crate::join::Joined;
use crate::key::Keys;
use crate::read::Wanted;
use crate::reference::{self, children_range, missing_parent, still_referenced};
use crate::state::{UPDATE_HEAD_BYTES, update_head};
use crate::{
    Action, Error, ForeignKey, RowBatch, RowId, Statement, Storage, Table, TableId, Type, Value, ValueRef, settle,
};
use counterfoil_log::Order as _;
use counterfoil_log::View;

/// A change still to be made.
enum Work {
    Delete { table: TableId, rows: Vec<RowId> },
    Update { table: TableId, rows: Vec<RowId>, batch: RowBatch },
    Rewrite(Rewrite),
}

/// New values for the referencing columns of rows.
struct Rewrite {
    child: TableId,
    /// The foreign key, by its place in the child.
    place: usize,
    /// Rows, and for each the changed row of the parent.
    rows: Vec<(RowId, usize)>,
    /// The keys that the parents had.
    before: Arc<Keys>,
    to: To,
}

/// What referencing columns become.
#[derive(Clone)]
enum To {
    Null,
    Default,
    /// What the parents became.
    Parent(Arc<RowBatch>),
}

/// References that must not dangle when all is done.
struct Unresolved {
    child: TableId,
    place: usize,
    before: Arc<Keys>,
    which: Vec<usize>,
}

/// A statement's changes.
pub(crate) struct Changes<'c, 's> {
    shared: &'c Shared,
    statement: &'c mut Statement<'s>,
    work: VecDeque<Work>,
    unresolved: Vec<Unresolved>,
}

impl<'c, 's> Changes<'c, 's> {
    pub(crate) fn new(shared: &'c Shared, statement: &'c mut Statement<'s>) -> Self {
        Changes { shared, statement, work: VecDeque::new(), unresolved: Vec::new() }
    }

    /// Deletes rows; how many were there.
    pub(crate) fn delete(mut self, writer: &mut dyn Storage, table: TableId, rows: &[RowId]) -> Result<u64, Error> {
        let count = self.delete_rows(writer, table, rows.to_vec())?;
        self.work_off(writer)?;
        Ok(count)
    }

    /// Gives rows new images; how many.
    pub(crate) fn update(
        mut self,
        writer: &mut dyn Storage,
        table: TableId,
        rows: &[RowId],
        batch: &RowBatch,
    ) -> Result<u64, Error> {
        self.update_rows(writer, table, rows, batch)?;
        self.work_off(writer)?;
        Ok(rows.len() as u64)
    }

    fn work_off(&mut self, writer: &mut dyn Storage) -> Result<(), Error> {
        while let Some(work) = self.work.pop_front() {
            match work {
                Work::Delete { table, rows } => drop(self.delete_rows(writer, table, rows)?),
                Work::Update { table, rows, batch } => self.update_rows(writer, table, &rows, &batch)?,
                Work::Rewrite(rewrite) => self.rewrite(writer, &rewrite)?,
            }
        }
        let unresolved = core::mem::take(&mut self.unresolved);
        unresolved.iter().try_for_each(|unresolved| self.check_unresolved(writer, unresolved))?;
        self.statement.rejoin.work_off(self.shared, writer)
    }

    fn delete_rows(&mut self, writer: &mut dyn Storage, table: TableId, mut rows: Vec<RowId>) -> Result<u64, Error> {
        let access = self.shared.access_to_write(writer, table)?;
        rows.order();
        rows.dedup();
        let visible = rows.iter().map(|row| access.is_visible(writer, *row)).collect::<Result<Vec<_>, Error>>()?;
        let mut visible = visible.into_iter();
        rows.retain(|_| visible.next() == Some(true));
        if rows.is_empty() {
            return Ok(0);
        }
        let before = match access.table.children.is_empty() {
            true => None,
            false => Some(Arc::new(access.fetch(writer, &rows, &Wanted::all())?.rows)),
        };
        append_deletes(writer, &access, &rows)?;
        if let Some(before) = before {
            self.note_children(writer, &access, &before, &|_, key| !key.enforced)?;
            self.act_on_children(writer, &access, &before, None)?;
            self.statement.rejoin.relieve(self.shared, writer)?;
        }
        settle::note(self.shared, table);
        Ok(rows.len() as u64)
    }

    fn update_rows(
        &mut self,
        writer: &mut dyn Storage,
        table: TableId,
        rows: &[RowId],
        batch: &RowBatch,
    ) -> Result<(), Error> {
        let access = self.shared.access_to_write(writer, table)?;
        if rows.len() != batch.count() {
            return Err(Error::misuse("as many rows as images"));
        }
        access.table.check(batch)?;
        let mut distinct = rows.to_vec();
        distinct.order();
        distinct.dedup();
        if distinct.len() != rows.len() {
            return Err(Error::misuse("a row that is to become two"));
        }
        let before = access.fetch(writer, rows, &Wanted::all())?;
        if before.visible_count() != rows.len() {
            return Err(Error::misuse("an update of a row that is not there"));
        }
        let before = Arc::new(before.rows);
        let after = Arc::new(self.with_joins(writer, &access, &before, batch)?);
        store_images(self.shared, writer, &access, rows, &before, &after)?;
        let access = self.shared.access_to_write(writer, table)?;
        self.check_own_references(writer, &access, rows, &before, &after)?;
        if !access.table.children.is_empty() {
            self.note_children_of_changed(writer, &access, &before, &after)?;
            self.act_on_children(writer, &access, &before, Some(&after))?;
            self.statement.rejoin.relieve(self.shared, writer)?;
        }
        let access = self.shared.access_to_write(writer, table)?;
        settle::after_statement(self.shared, writer, access)
    }

    /// New images as they are stored: with what they join. Where no reference changes they join what they joined; one
    /// that changes must lead to a row, unless to one of the same table, which may change, too.
    fn with_joins(
        &self,
        writer: &dyn Storage,
        access: &Access,
        before: &RowBatch,
        batch: &RowBatch,
    ) -> Result<RowBatch, Error> {
        let mut after = batch.with_layout(&access.shape.newest);
        let mut changes = Vec::with_capacity(access.table.foreign_keys.len());
        for key in &access.table.foreign_keys {
            let places = access.places(&key.columns)?;
            changes.push(changed(access, before, batch, &places)?);
        }
        if changes.iter().all(Vec::is_empty) {
            after.take_joins(before);
            return Ok(after);
        }
        let joined = Joined::find(self.shared, writer, access, batch, true)?;
        for ((key, changed), references) in access.table.foreign_keys.iter().zip(&changes).zip(&joined.references) {
            let must_lead = key.enforced && key.parent != access.table.id;
            if must_lead && references.dangling.iter().any(|row| changed.binary_search(row).is_ok()) {
                return Err(missing_parent(&access.table, key));
            }
        }
        joined.write_into(&mut after);
        Ok(after)
    }

    /// References of a table to itself that have changed lead somewhere now that all its rows have; and what they join is
    /// found at the end.
    fn check_own_references(
        &mut self,
        writer: &dyn Storage,
        access: &Access,
        rows: &[RowId],
        before: &RowBatch,
        after: &RowBatch,
    ) -> Result<(), Error> {
        for key in access.table.foreign_keys.iter().filter(|key| key.parent == access.table.id) {
            let changed = changed(access, before, after, &access.places(&key.columns)?)?;
            changed.iter().for_each(|row| self.statement.rejoin.note_row(access.table.id, rows[*row]));
            if !key.enforced || changed.is_empty() {
                continue;
            }
            let keys = reference::keys_of(access, key, &access.table, after)?;
            let which = keys.distinct(changed.iter().copied());
            let parents = self.shared.index(writer, access, reference::parent_index(&access.table, key)?, true)?;
            let mut found: Vec<usize> = parents.matches(&keys, &which)?.into_iter().map(|(place, _)| place).collect();
            found.dedup();
            if found.len() < which.len() {
                return Err(missing_parent(&access.table, key));
            }
        }
        Ok(())
    }

    /// Notes the rows that reference some rows along foreign keys that are asked for.
    fn note_children(
        &mut self,
        writer: &dyn Storage,
        access: &Access,
        rows: &RowBatch,
        asked: &dyn Fn(&Table, &ForeignKey) -> bool,
    ) -> Result<(), Error> {
        let every: Vec<usize> = (0..rows.count()).collect();
        self.statement.rejoin.note_children(self.shared, writer, access, (rows, &every), asked)
    }

    /// Notes the rows that join something else because keys of rows have changed, or what these join.
    fn note_children_of_changed(
        &mut self,
        writer: &dyn Storage,
        access: &Access,
        before: &RowBatch,
        after: &RowBatch,
    ) -> Result<(), Error> {
        let joins: Vec<usize> = (0..after.count()).filter(|row| !after.joins_alike(before, *row)).collect();
        let rejoin = &mut self.statement.rejoin;
        let others = |child: &Table, _: &ForeignKey| child.id != access.table.id;
        rejoin.note_children(self.shared, writer, access, (after, &joins), &others)?;
        for index in access.table.unique_indexes() {
            let keys = changed(access, before, after, &access.places(&index.columns)?)?;
            let by_it = |_: &Table, key: &ForeignKey| key.parent_index == index.id;
            rejoin.note_children(self.shared, writer, access, (before, &keys), &by_it)?;
            rejoin.note_children(self.shared, writer, access, (after, &keys), &by_it)?;
        }
        Ok(())
    }

    /// Does what foreign keys say about rows that were deleted or (with `after`) have changed.
    fn act_on_children(
        &mut self,
        writer: &mut dyn Storage,
        parent: &Access,
        before: &Arc<RowBatch>,
        after: Option<&Arc<RowBatch>>,
    ) -> Result<(), Error> {
        let mut children = parent.table.children.clone();
        children.order();
        children.dedup();
        for child in children {
            let child = self.shared.access_to_write(writer, child)?;
            for (place, foreign_key) in child.table.foreign_keys.iter().enumerate() {
                if foreign_key.enforced && foreign_key.parent == parent.table.id {
                    self.act_on(writer, parent, &child, (place, foreign_key), before, after)?;
                }
            }
        }
        Ok(())
    }

    fn act_on(
        &mut self,
        writer: &mut dyn Storage,
        parent: &Access,
        child: &Access,
        (place, foreign_key): (usize, &ForeignKey),
        before: &Arc<RowBatch>,
        after: Option<&Arc<RowBatch>>,
    ) -> Result<(), Error> {
        let index = reference::parent_index(&parent.table, foreign_key)?;
        let places = parent.places(&index.columns)?;
        let old = Arc::new(Keys::of(before, &places).map_err(parent.named())?);
        let new = after.map(|after| Keys::of(after, &places)).transpose()?;
        let mut which = old.sorted();
        which.retain(|row| new.as_ref().is_none_or(|new| new.key(*row) != old.key(*row)));
        if which.is_empty() {
            return Ok(());
        }
        let action = if after.is_some() { foreign_key.on_update } else { foreign_key.on_delete };
        let to = match (action, after) {
            (Action::NoAction, _) => {
                let child = child.table.id;
                self.unresolved.push(Unresolved { child, place, before: old, which });
                return Ok(());
            }
            (Action::Restrict, _) => return self.forbid(writer, child, foreign_key, &old, &which),
            (Action::Cascade, None) => None,
            (Action::Cascade, Some(after)) => Some(To::Parent(after.clone())),
            (Action::SetNull, _) => Some(To::Null),
            (Action::SetDefault, _) => Some(To::Default),
        };
        let rows = self.referencing(writer, child, foreign_key, &old, &which)?;
        if rows.is_empty() {
            return Ok(());
        }
        let table = child.table.id;
        if action == Action::SetDefault {
            // The default may be the very key that is gone, and then nothing changes.
            self.unresolved.push(Unresolved { child: table, place, before: old.clone(), which });
        }
        self.work.push_back(match to {
            None => Work::Delete { table, rows: rows.into_iter().map(|(row, _)| row).collect() },
            Some(to) => Work::Rewrite(Rewrite { child: table, place, rows, before: old, to }),
        });
        Ok(())
    }

    /// Rows that reference some keys, each with the place of the key.
    fn referencing(
        &self,
        writer: &dyn Storage,
        child: &Access,
        foreign_key: &ForeignKey,
        keys: &Keys,
        which: &[usize],
    ) -> Result<Vec<(RowId, usize)>, Error> {
        let reader = reference::child_reader(self.shared, writer, child, foreign_key, true)?;
        let mut rows = Vec::new();
        for key in which {
            let found = reader.rows(&children_range(reader.definition(), foreign_key, keys.key(*key)))?;
            rows.extend(found.into_iter().map(|row| (row, *key)));
        }
        Ok(rows)
    }

    fn forbid(
        &self,
        writer: &dyn Storage,
        child: &Access,
        foreign_key: &ForeignKey,
        keys: &Keys,
        which: &[usize],
    ) -> Result<(), Error> {
        let reader = reference::child_reader(self.shared, writer, child, foreign_key, true)?;
        for key in which {
            if reader.any(&children_range(reader.definition(), foreign_key, keys.key(*key)))?.is_some() {
                return Err(still_referenced(&child.table, foreign_key));
            }
        }
        Ok(())
    }

    /// NO ACTION: a key that is gone must not be referenced; another row may have taken it meanwhile.
    fn check_unresolved(&self, writer: &dyn Storage, unresolved: &Unresolved) -> Result<(), Error> {
        let child = self.shared.access_to_write(writer, unresolved.child)?;
        let foreign_key = child.table.foreign_keys.get(unresolved.place);
        let foreign_key = foreign_key.ok_or_else(|| Error::misuse("a table that changed during a statement"))?;
        let parent = self.shared.access_to_write(writer, foreign_key.parent)?;
        let parents = self.shared.index(writer, &parent, reference::parent_index(&parent.table, foreign_key)?, true)?;
        let there = parents.matches(&unresolved.before, &unresolved.which)?;
        let gone = unresolved.which.iter().enumerate();
        let gone = gone.filter(|(place, _)| there.binary_search_by_key(place, |(place, _)| *place).is_err());
        let gone: Vec<_> = gone.map(|(_, row)| *row).collect();
        self.forbid(writer, &child, foreign_key, &unresolved.before, &gone)
    }

    /// Gives referencing rows new references, as an update of their own.
    fn rewrite(&mut self, writer: &mut dyn Storage, rewrite: &Rewrite) -> Result<(), Error> {
        let child = self.shared.access_to_write(writer, rewrite.child)?;
        let foreign_key = child.table.foreign_keys.get(rewrite.place);
        let foreign_key = foreign_key.ok_or_else(|| Error::misuse("a table that changed during a statement"))?;
        let parent = self.shared.access_to_write(writer, foreign_key.parent)?;
        let rows: Vec<_> = rewrite.rows.iter().map(|(row, _)| *row).collect();
        let block = child.fetch(writer, &rows, &Wanted::all())?;
        let keys = reference::keys_of(&child, foreign_key, &parent.table, &block.rows)?;
        let mut batch = RowBatch::new(child.shape.newest.clone(), 0);
        let mut still = Vec::new();
        // Something else may have happened to a row since it was found: then this reference is no longer its own.
        let own = |row: &usize| keys.key(*row) == rewrite.before.key(rewrite.rows[*row].1);
        for row in block.visible_rows().filter(own) {
            batch.push_from(&block.rows, row)?;
            still.push(rows[row]);
            let (place, parent_row) = (batch.count() - 1, rewrite.rows[row].1);
            set_reference(&mut batch, place, &child, foreign_key, &parent, parent_row, &rewrite.to)?;
        }
        if let Some(observer) = &mut self.statement.observer {
            observer(&child.table, &batch)?;
        }
        if !still.is_empty() {
            self.work.push_front(Work::Update { table: rewrite.child, rows: still, batch });
        }
        Ok(())
    }
}

/// The rows in which the key over some columns has changed, in order.
fn changed(access: &Access, before: &RowBatch, after: &RowBatch, places: &[usize]) -> Result<Vec<usize>, Error> {
    let (old, new) = (Keys::of(before, places).map_err(access.named())?, Keys::of(after, places)?);
    Ok((0..new.count()).filter(|row| old.key(*row) != new.key(*row)).collect())
}

/// Writes the new reference into the last row of a batch.
fn set_reference(
    batch: &mut RowBatch,
    row: usize,
    child: &Access,
    foreign_key: &ForeignKey,
    parent: &Access,
    parent_row: usize,
    to: &To,
) -> Result<(), Error> {
    for (column, parent_column) in foreign_key.columns.iter().zip(&foreign_key.parent_columns) {
        let gone = || Error::corrupt(&child.table.name, "columns of a foreign key");
        let place = child.table.position(*column).ok_or_else(gone)?;
        let target = &child.table.columns[place];
        let value = match to {
            To::Null => Value::Null,
            To::Default => target.default_value.clone().unwrap_or(Value::Null),
            To::Parent(after) => {
                let value = after.value(parent_row, parent.table.position(*parent_column).ok_or_else(gone)?)?;
                let fitted = fit(value, target.kind);
                fitted
                    .ok_or_else(|| Error::not_supported("a key too large for the column that references it".into()))?
            }
        };
        batch.set(row, place, value.borrow())?;
    }
    Ok(())
}

/// A value as another type whose keys are written alike; none if it is too large.
fn fit(value: ValueRef<'_>, kind: Type) -> Option<Value> {
    let integer = match value {
        ValueRef::SmallInt(value) => i64::from(value),
        ValueRef::Integer(value) => i64::from(value),
        ValueRef::BigInt(value) => value,
        ValueRef::Real(value) if kind == Type::Double => return Some(Value::Double(value.into())),
        ValueRef::Double(value) if kind == Type::Real => return Some(Value::Real(value as f32)),
        value => return Some(value.to_owned()),
    };
    match kind {
        Type::SmallInt => integer.try_into().ok().map(Value::SmallInt),
        Type::Integer => integer.try_into().ok().map(Value::Integer),
        _ => Some(Value::BigInt(integer)),
    }
}

/// Splits rows by the segments they lie in: for each segment, places in `rows`.
fn by_part(view: &dyn View, access: &Access, rows: &[RowId]) -> Result<Vec<Vec<usize>>, Error> {
    let mut parts = alloc::vec![Vec::new(); access.parts.len()];
    for (place, row) in rows.iter().enumerate() {
        if let Some((part, _)) = access.locate(view, *row)? {
            parts[part].push(place);
        }
    }
    Ok(parts)
}

fn append_deletes(writer: &mut dyn Storage, access: &Access, rows: &[RowId]) -> Result<(), Error> {
    for (part, places) in access.parts.iter().zip(by_part(writer, access, rows)?) {
        if places.is_empty() {
            continue;
        }
        let bytes: Vec<u8> = places.iter().flat_map(|place| rows[*place].0.to_le_bytes()).collect();
        writer.append(part.segment.deletes(), &bytes).map_err(Error::log(&access.table.name))?;
        part.state.write(|state| places.iter().for_each(|place| state.add_delete(rows[*place].0)));
    }
    Ok(())
}

/// Appends new images, tells the indexes, and checks that keys are still unique.
pub(crate) fn store_images(
    shared: &Shared,
    writer: &mut dyn Storage,
    access: &Access,
    rows: &[RowId],
    before: &RowBatch,
    batch: &RowBatch,
) -> Result<(), Error> {
    let mut changed = Vec::with_capacity(access.table.indexes.len());
    for index in &access.table.indexes {
        let parts = access.key_parts(index)?;
        let (old, new) = (Keys::of_parts(before, &parts).map_err(access.named())?, Keys::of_parts(batch, &parts)?);
        let fresh = shared.index(&*writer, access, index, true)?.fresh;
        let which: Vec<_> = (0..new.count()).filter(|row| old.key(*row) != new.key(*row)).collect();
        changed.push((index, new, which, fresh));
    }
    append_updates(writer, access, rows, batch)?;
    let access = shared.access_to_write(writer, access.table.id)?;
    for (_, new, which, fresh) in &changed {
        let entries = which.iter().map(|row| crate::key::entry(new.key(*row), rows[*row])).collect();
        fresh.add_updated(entries, &access);
    }
    for (index, new, which, _) in changed.iter().filter(|(index, ..)| index.unique) {
        let mut sorted = which.clone();
        sorted.retain(|row| !new.has_null(*row));
        sorted.order_stably_by(|one, two| new.key(*one).cmp(new.key(*two)));
        let twice = sorted.windows(2).any(|pair| new.key(pair[0]) == new.key(pair[1]));
        let found = shared.index(&*writer, &access, index, true)?.matches(new, &sorted)?;
        if twice || found.iter().any(|(place, row)| rows[sorted[*place]] != *row) {
            return Err(not_unique(&access.table, index));
        }
    }
    Ok(())
}

/// Appends new images to the update logs, long values to the heaps first.
pub(crate) fn append_updates(
    writer: &mut dyn Storage,
    access: &Access,
    rows: &[RowId],
    batch: &RowBatch,
) -> Result<(), Error> {
    let log = Error::log(&access.table.name);
    let width = batch.width();
    let layout = (access.table.layouts.len() - 1) as u32;
    for (part, places) in access.parts.iter().zip(by_part(writer, access, rows)?) {
        if places.is_empty() {
            continue;
        }
        let mut own = RowBatch::new(batch.layout().clone(), 0);
        places.iter().try_for_each(|place| own.push_from(batch, *place))?;
        let base = match own.heap().is_empty() {
            true => 0,
            false => writer.append(part.segment.heap(), own.heap()).map_err(log)?,
        };
        let images = moved_images(&own, 0..own.count(), base, own.width());
        let mut bytes = Vec::with_capacity(places.len() * (UPDATE_HEAD_BYTES + width));
        for (place, image) in places.iter().zip(images.chunks_exact(width)) {
            bytes.extend_from_slice(&update_head(rows[*place].0, layout));
            bytes.extend_from_slice(image);
        }
        writer.append(part.segment.updates(), &bytes).map_err(log)?;
        part.state.write(|state| places.iter().for_each(|place| state.add_update(rows[*place].0, layout, width)));
    }
    Ok(())
}
