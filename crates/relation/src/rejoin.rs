//! Rows whose joins have to be found anew, because something further along a path has come, gone or changed.
//!
//! They are noted while a statement works and worked off at its end, tables that are joined before those that join them, so
//! that a row is written once however much has changed along its paths. All of it is of the statement's transaction: a
//! power cut leaves neither the change nor the new joins.

use alloc::vec::Vec;

use crate::access::{Access, Shared};
use crate::change::store_images;
use crate::join::Joined;
use crate::key::Keys;
use crate::read::Wanted;
use crate::reference::{child_reader, children_range, parent_index};
use crate::{Error, ForeignKey, ForeignKeyId, RowBatch, RowId, Storage, Table, TableId, few_or_many, path, settle};
use counterfoil_log::Order as _;
use counterfoil_log::{Map, Set};

/// Keys followed together, and rows.
const PIECE: usize = few_or_many(16, 4096);
/// What is noted before it is worked off in the middle of a statement: a bound of memory.
const NOTED_MAX: usize = few_or_many(16, 1 << 16);

/// What is noted.
#[derive(Default)]
pub(crate) struct Rejoin {
    /// Rows by table.
    rows: Map<TableId, Set<RowId>>,
    /// Keys: the rows that reference them along a foreign key of a table.
    keys: Map<(TableId, ForeignKeyId), Set<Vec<u8>>>,
    noted: usize,
}

impl Rejoin {
    /// Notes a row.
    pub(crate) fn note_row(&mut self, table: TableId, row: RowId) {
        self.noted += usize::from(self.rows.entry(table).or_default().insert(row));
    }

    /// Notes the rows that reference some keys.
    fn note_keys(&mut self, child: TableId, key: ForeignKeyId, keys: &Keys, which: &[usize]) {
        let which = which.iter().filter(|row| !keys.has_null(**row));
        for row in which {
            let noted = self.keys.entry((child, key)).or_default();
            self.noted += usize::from(noted.insert(keys.key(*row).to_vec()));
        }
    }

    /// Notes the rows that reference some rows along foreign keys that are asked for.
    pub(crate) fn note_children(
        &mut self,
        shared: &Shared,
        writer: &dyn Storage,
        parent: &Access,
        (rows, which): (&RowBatch, &[usize]),
        asked: &dyn Fn(&Table, &ForeignKey) -> bool,
    ) -> Result<(), Error> {
        if which.is_empty() {
            return Ok(());
        }
        for child in parent.table.children.iter().copied().collect::<Set<_>>() {
            let child = crate::define::reread(shared, writer, child)?;
            let own = child.foreign_keys.iter().filter(|key| key.parent == parent.table.id);
            for key in own.filter(|key| asked(&child, key)) {
                let places = parent.places(&parent_index(&parent.table, key)?.columns)?;
                let keys = Keys::of(rows, &places).map_err(parent.named())?;
                self.note_keys(child.id, key.id, &keys, which);
            }
        }
        Ok(())
    }

    /// Works off what is noted if it has become much.
    pub(crate) fn relieve(&mut self, shared: &Shared, writer: &mut dyn Storage) -> Result<(), Error> {
        if self.noted > NOTED_MAX { self.work_off(shared, writer) } else { Ok(()) }
    }

    /// Finds anew what all the rows noted join.
    pub(crate) fn work_off(&mut self, shared: &Shared, writer: &mut dyn Storage) -> Result<(), Error> {
        loop {
            let tables = self.rows.keys().copied().chain(self.keys.keys().map(|(table, _)| *table)).collect();
            let Some(table) = path::innermost(shared, writer, &tables)? else { break };
            let rows: Vec<RowId> = self.rows.remove(&table).unwrap_or_default().into_iter().collect();
            self.rejoin(shared, writer, table, &rows)?;
            while let Some((key, piece)) = self.take_keys(table) {
                let rows = referencing(shared, writer, table, key, &piece)?;
                self.rejoin(shared, writer, table, &rows)?;
            }
        }
        self.noted = 0;
        Ok(())
    }

    /// Some of the keys noted for a table, of one foreign key.
    fn take_keys(&mut self, table: TableId) -> Option<(ForeignKeyId, Set<Vec<u8>>)> {
        let (place, keys) = self.keys.range_mut((table, ForeignKeyId(0))..=(table, ForeignKeyId(u32::MAX))).next()?;
        let (_, key) = *place;
        let rest = keys.iter().nth(PIECE).cloned().map(|from| keys.split_off(&from));
        let taken = core::mem::replace(keys, rest.unwrap_or_default());
        if keys.is_empty() {
            self.keys.remove(&(table, key));
        }
        Some((key, taken))
    }

    /// Finds anew what some rows join, writes those that join something else now, and notes those that join them.
    fn rejoin(
        &mut self,
        shared: &Shared,
        writer: &mut dyn Storage,
        table: TableId,
        rows: &[RowId],
    ) -> Result<(), Error> {
        for piece in rows.chunks(PIECE) {
            let access = shared.access_to_write(writer, table)?;
            let block = access.fetch(writer, piece, &Wanted::all())?;
            let joined = Joined::find(shared, writer, &access, &block.rows, true)?;
            let changed = joined.differing(&block.rows).into_iter().filter(|row| block.is_visible(*row));
            let changed: Vec<usize> = changed.collect();
            if changed.is_empty() {
                continue;
            }
            let mut before = RowBatch::new(access.shape.newest.clone(), 0);
            let mut all = block.rows.clone();
            joined.write_into(&mut all);
            let mut images = before.clone();
            for row in &changed {
                before.push_from(&block.rows, *row)?;
                images.push_from(&all, *row)?;
            }
            let changed: Vec<RowId> = changed.iter().map(|row| piece[*row]).collect();
            store_images(shared, writer, &access, &changed, &before, &images)?;
            let access = shared.access_to_write(writer, table)?;
            let every: Vec<usize> = (0..images.count()).collect();
            let others = |child: &Table, _: &ForeignKey| child.id != table;
            self.note_children(shared, writer, &access, (&images, &every), &others)?;
            settle::after_statement(shared, writer, access)?;
        }
        Ok(())
    }
}

/// The rows that reference some keys along a foreign key, in the order of their numbers.
fn referencing(
    shared: &Shared,
    writer: &dyn Storage,
    table: TableId,
    key: ForeignKeyId,
    keys: &Set<Vec<u8>>,
) -> Result<Vec<RowId>, Error> {
    let access = shared.access_to_write(writer, table)?;
    let key = access.table.foreign_key(key).ok_or_else(|| Error::misuse("a table that changed during a statement"))?;
    let reader = child_reader(shared, writer, &access, key, true)?;
    let mut rows = Vec::new();
    for value in keys {
        rows.append(&mut reader.rows(&children_range(reader.definition(), key, value))?);
    }
    rows.order();
    rows.dedup();
    Ok(rows)
}
