//! What rows join: for each path of foreign keys the row at its end (MILo-DB's TJoin, section 3.1).
//!
//! A join lies in the row's own image, so it is read with the row and is as new as the row. The law, which `verify` checks:
//!
//! - the join of a path of one step is the row that the key names, and none if there is no such row or the key has a NULL;
//! - the join of a longer path is that of its rest in the row to which its first step leads.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use counterfoil_log::Order as _;
use counterfoil_log::View;

use crate::access::{Access, Shared};
use crate::found::Found;
use crate::key::{ByteRange, Keys, join_key};
use crate::read::Wanted;
use crate::reference::{self, child_reader, children_range};
use crate::{Error, ForeignKey, IndexOrigin, Join, Layout, RowBatch, RowId, TableId, few_or_many};

/// Rows looked at together.
const PIECE_ROWS: usize = few_or_many(16, 4096);

/// What the rows of a batch join.
pub(crate) struct Joined {
    /// For each path of the table, for each row the row at the path's end.
    ends: Vec<Vec<Option<RowId>>>,
    /// For each foreign key of the table, what became of the references.
    pub(crate) references: Vec<References>,
}

/// The references of a batch along one foreign key.
#[derive(Default)]
pub(crate) struct References {
    /// How many there are: rows whose key has no NULL.
    pub(crate) count: u64,
    /// The rows whose reference leads nowhere.
    pub(crate) dangling: Vec<usize>,
}

impl Shared {
    /// Opens a table as the writer or as a reader.
    pub(crate) fn access_as(&self, view: &dyn View, id: TableId, writing: bool) -> Result<Access, Error> {
        if writing { self.access_to_write(view, id) } else { self.access(view, id) }
    }
}

impl Joined {
    /// Finds what rows join. The rows themselves need not be stored yet.
    pub(crate) fn find(
        shared: &Shared,
        view: &dyn View,
        child: &Access,
        batch: &RowBatch,
        writing: bool,
    ) -> Result<Self, Error> {
        let nowhere = vec![None; batch.count()];
        let mut joined = Joined { ends: vec![nowhere; child.table.joins.len()], references: Vec::new() };
        for key in &child.table.foreign_keys {
            let parent = shared.access_as(view, key.parent, writing)?;
            let (parents, references) = parents_of(shared, view, (child, key), &parent, batch, writing)?;
            joined.references.push(references);
            joined.follow(view, (child, key), &parent, &parents)?;
        }
        Ok(joined)
    }

    /// Fills in the paths that begin with a foreign key.
    fn follow(
        &mut self,
        view: &dyn View,
        (child, key): (&Access, &ForeignKey),
        parent: &Access,
        parents: &[Option<RowId>],
    ) -> Result<(), Error> {
        let mut deeper = Vec::new();
        for (place, join) in child.table.joins.iter().enumerate() {
            match join.steps.as_slice() {
                [first] if first.key == key.id => self.ends[place] = parents.to_vec(),
                [first, rest @ ..] if first.key == key.id => {
                    let rest = parent.table.join_along(rest);
                    deeper.push((place, rest.ok_or_else(|| Error::corrupt(&child.table.name, "list of paths"))?));
                }
                _ => {}
            }
        }
        if deeper.is_empty() {
            return Ok(());
        }
        let mut distinct: Vec<RowId> = parents.iter().copied().flatten().collect();
        distinct.order();
        distinct.dedup();
        let block = parent.fetch(view, &distinct, &Wanted::only(&[]).apart(true))?;
        for (row, found) in parents.iter().enumerate() {
            let Some(at) = found.and_then(|found| distinct.binary_search(&found).ok()) else { continue };
            deeper.iter().for_each(|(place, rest)| self.ends[*place][row] = block.rows.join(at, *rest));
        }
        Ok(())
    }

    /// The rows as they are stored: with their joins.
    pub(crate) fn stored<'b>(&self, batch: &'b RowBatch, newest: &Arc<Layout>) -> Cow<'b, RowBatch> {
        if self.ends.is_empty() && batch.layout() == newest {
            return Cow::Borrowed(batch);
        }
        let mut stored = batch.with_layout(newest);
        self.write_into(&mut stored);
        Cow::Owned(stored)
    }

    /// Writes the joins of all rows.
    pub(crate) fn write_into(&self, stored: &mut RowBatch) {
        for (place, ends) in self.ends.iter().enumerate() {
            ends.iter().enumerate().for_each(|(row, end)| stored.set_join(row, place, *end));
        }
    }

    /// The rows that hold other joins than these.
    pub(crate) fn differing(&self, stored: &RowBatch) -> Vec<usize> {
        let differs =
            |row: &usize| (0..self.ends.len()).any(|place| self.ends[place][*row] != stored.join(*row, place));
        (0..stored.count()).filter(differs).collect()
    }

    /// For one path, how many rows hold another join than this, and the first of them.
    pub(crate) fn wrong(&self, stored: &RowBatch, place: usize) -> Option<(usize, usize)> {
        let mut wrong = (0..stored.count()).filter(|row| self.ends[place][*row] != stored.join(*row, place));
        wrong.next().map(|first| (first, 1 + wrong.count()))
    }
}

/// For each row of a batch the row that it references along a foreign key.
fn parents_of(
    shared: &Shared,
    view: &dyn View,
    (child, key): (&Access, &ForeignKey),
    parent: &Access,
    batch: &RowBatch,
    writing: bool,
) -> Result<(Vec<Option<RowId>>, References), Error> {
    let keys = reference::keys_of(child, key, &parent.table, batch)?;
    let sorted = keys.sorted();
    let groups: Vec<&[usize]> = sorted.chunk_by(|one, two| keys.key(*one) == keys.key(*two)).collect();
    let which: Vec<usize> = groups.iter().map(|group| group[0]).collect();
    let reader = shared.index(view, parent, reference::parent_index(&parent.table, key)?, writing)?;
    let mut parents = vec![None; batch.count()];
    // Who verifies asks the index, whatever the rows say.
    let found = if writing { reader.owners(&keys, &which) } else { reader.matches(&keys, &which) };
    for (place, row) in found? {
        groups[place].iter().for_each(|child| parents[*child] = Some(row));
    }
    let mut dangling: Vec<usize> = sorted.iter().copied().filter(|row| parents[*row].is_none()).collect();
    dangling.order();
    Ok((parents, References { count: sorted.len() as u64, dangling }))
}

/// Finds rows of a table from which a path may lead to one of some rows of the table at its end; whether there are not too many.
pub(crate) fn find_joined_to(
    shared: &Shared,
    view: &dyn View,
    table: &Access,
    join: &Join,
    rows: &[RowId],
    found: &mut Found,
) -> Result<bool, Error> {
    let lost = || Error::corrupt(&table.table.name, "list of paths");
    if let [step] = join.steps.as_slice() {
        let key = table.table.foreign_key(step.key).ok_or_else(lost)?;
        let parent = shared.access(view, step.to)?;
        return find_children(shared, view, (table, key), &parent, rows, found);
    }
    let index = table.table.indexes.iter().find(|index| index.origin == IndexOrigin::Path(join.id));
    let reader = shared.index(view, table, index.ok_or_else(lost)?, false)?;
    for piece in rows.chunks(found.piece_rows().clamp(1, PIECE_ROWS)) {
        let ranges: Vec<_> = piece.iter().map(|row| ByteRange::exactly(&join_key(Some(*row)))).collect();
        if !found.add_each(&reader, &ranges)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Finds the rows that may reference one of some rows along a foreign key; whether there are not too many.
fn find_children(
    shared: &Shared,
    view: &dyn View,
    (child, key): (&Access, &ForeignKey),
    parent: &Access,
    parents: &[RowId],
    found: &mut Found,
) -> Result<bool, Error> {
    let places = parent.places(&reference::parent_index(&parent.table, key)?.columns)?;
    let reader = child_reader(shared, view, child, key, false)?;
    // Where there is little room for the rows found, there is little for those that find them.
    for piece in parents.chunks(found.piece_rows().clamp(1, PIECE_ROWS)) {
        let block = parent.fetch(view, piece, &Wanted::only(&places).apart(false))?;
        let keys = Keys::of(&block.rows, &places).map_err(parent.named())?;
        let rows = block.visible_rows().filter(|row| !keys.has_null(*row));
        let mut ranges: Vec<_> = rows.map(|row| children_range(reader.definition(), key, keys.key(row))).collect();
        ranges.order_by(|one, other| one.low.cmp(&other.low));
        if !found.add_each(&reader, &ranges)? {
            return Ok(false);
        }
    }
    Ok(true)
}
