//! How a table is kept, and what it would cost and gain to rewrite it.

use alloc::string::String;
use alloc::vec::Vec;

use counterfoil_log::{Room, View};

use crate::access::{Access, Shared};
use crate::files::IndexFiles;
use crate::merge::{Due, is_due};
use crate::reorganize::untidy;
use crate::room::{Lack, StepUse, share};
use crate::run::Run;
use crate::state::DELETE_BYTES;
use crate::{Error, TableId};

/// How a table is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableUse {
    /// Rows that are there.
    pub rows: u64,
    /// Rows that are deleted and still take their place.
    pub deleted: u64,
    /// Newer images in the update logs, replaced ones included.
    pub updates: u64,
    /// Segments that the rows lie in: each covers row numbers of its own.
    pub segments: usize,
    /// Bytes of images and long values as they were inserted, of deleted rows too.
    pub row_bytes: u64,
    /// Bytes of the delete and update logs.
    pub log_bytes: u64,
    /// Its indexes.
    pub indexes: Vec<IndexUse>,
    /// What VACUUM would do, step by step; none where there is nothing to gain.
    pub steps: Vec<StepUse>,
}

/// How an index is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexUse {
    /// Its name.
    pub name: String,
    /// Its sorted runs, the newest last.
    pub runs: Vec<RunUse>,
    /// Bytes that a merge under way has made of some of them.
    pub made_bytes: u64,
    /// Rows that no run knows yet: their entries are in memory.
    pub fresh_rows: u64,
}

/// A sorted run of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunUse {
    /// How often its entries were merged.
    pub tier: u8,
    /// Entries in it.
    pub entries: u64,
    /// Bytes of it.
    pub bytes: u64,
}

impl TableUse {
    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.row_bytes + self.log_bytes + self.indexes.iter().map(IndexUse::bytes).sum::<u64>()
    }

    /// Bytes that VACUUM would write.
    #[must_use]
    pub fn rewrite_bytes(&self) -> u64 {
        self.steps.iter().map(|step| step.written_bytes).sum()
    }

    /// Bytes that VACUUM would free beyond those that it would write; none where it has nothing to do.
    #[must_use]
    pub fn freed_bytes(&self) -> u64 {
        let replaced: u64 = self.steps.iter().map(|step| step.replaced_bytes).sum();
        replaced.saturating_sub(self.rewrite_bytes())
    }

    /// The room that VACUUM would lack for one of its steps; none where it comes through. Each makes room for those behind it, which is
    /// reckoned at the least: what is short of a few extents may come through all the same.
    #[must_use]
    pub fn lacks(&self, mut room: Room) -> Option<Lack> {
        self.steps.iter().find_map(|step| {
            let lack = step.lacks(&room);
            room = step.leaves(room);
            lack
        })
    }
}

impl IndexUse {
    /// Bytes of its runs.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.bytes).sum::<u64>() + self.made_bytes
    }
}

/// Looks at a table.
pub(crate) fn of(shared: &Shared, view: &dyn View, id: TableId) -> Result<TableUse, Error> {
    let access = shared.access(view, id)?;
    let mut figures = TableUse { rows: access.count(), segments: access.parts.len(), ..TableUse::default() };
    for part in &access.parts {
        figures.deleted += part.lengths.deletes / DELETE_BYTES as u64;
        figures.updates += part.state.read(|state| state.update_count(part.lengths));
        figures.row_bytes += part.count * part.stride as u64 + part.heap_bytes;
        figures.log_bytes += part.lengths.deletes + part.lengths.updates;
    }
    let places = untidy(shared, &access, &|_| true);
    for places in &places {
        figures.steps.push(StepUse::renewal(shared, view, &access, places.clone())?);
    }
    for index in &access.table.indexes {
        let files = shared.index_files(view, &access, index.id)?;
        let index = index_use(&access, index, &files);
        if !places.is_empty() || is_due(shared, &access, &files, Due::Untidy) {
            let entries = if places.is_empty() { files.entries() } else { figures.rows };
            figures.steps.push(StepUse::merge(files.all_runs(), index_bytes(&index, entries)));
        }
        figures.indexes.push(index);
    }
    Ok(figures)
}

fn index_use(access: &Access, index: &crate::IndexDef, files: &IndexFiles) -> IndexUse {
    let run = |pieces: &[Run]| RunUse {
        tier: pieces[0].tier,
        entries: pieces.iter().map(|run| run.entries).sum(),
        bytes: pieces.iter().map(Run::bytes).sum(),
    };
    let made_bytes = files.merging.iter().flat_map(|merging| &merging.made).map(Run::bytes).sum();
    let fresh_rows = access.next_row().saturating_sub(files.coverage.rows);
    IndexUse { name: index.name.clone(), runs: files.sorted().map(run).collect(), made_bytes, fresh_rows }
}

/// What one run of so many entries would take. Entries of a large run take what entries take; a small one is mostly the room that
/// is left in its blocks.
fn index_bytes(index: &IndexUse, entries: u64) -> u64 {
    let largest = index.runs.iter().max_by_key(|run| run.entries);
    largest.map_or(0, |run| share(run.bytes, entries, run.entries))
}
