//! The fresh part of an index: entries of the rows that no run knows yet, in memory.
//!
//! It is worked out from the rows, so nothing of it is stored: after an open the first lookup reads the rows and update
//! log entries past the index's coverage, of which there are about [`FRESH_ROWS`] at most.
//!
//! Invariants:
//! 1. every row numbered `coverage.rows..rows`, as inserted, and every update between the coverage and `updates` has its
//!    entry in the set;
//! 2. there may be more entries than that (of rows rolled back): whoever finds an entry looks at the row.

use alloc::boxed::Box;
use alloc::vec::Vec;

use counterfoil_log::View;

use crate::access::{Access, Part};
use crate::entries::Entries;
use crate::files::Coverage;
use crate::key::{ByteRange, KeyParts, Keys, entry, stored};
use crate::read::Wanted;
use crate::state::SharedFresh;
use crate::{Error, IndexDef, IndexId, RowId, few_or_many};
use counterfoil_log::Lock;
use counterfoil_log::Map;

/// Rows after which the fresh part becomes a run, unless [`crate::Relations::with_fresh_rows`] says otherwise.
pub const FRESH_ROWS: usize = 16384;
/// Rows read at a time.
const PIECE_ROWS: usize = few_or_many(16, 4096);
/// Generations kept of the fresh part of one index: the newest, and what readers of older views may still use.
const GENERATIONS: usize = 2;

/// One generation of a fresh part: what is not in the runs of one state of the catalog.
pub(crate) struct Fresh {
    pub(crate) index: IndexId,
    pub(crate) coverage: Coverage,
    inner: Lock<Inner>,
}

#[derive(Default)]
struct Inner {
    entries: Entries,
    /// Rows below this number are in.
    rows: u64,
    /// So many bytes of each segment's update log are in; none of one that is not named.
    updates: Map<u64, u64>,
    /// Whether the writer of this process tends it, and nobody else may.
    written: bool,
    /// Whether something was rolled back since it began, so that entries may be of rows that never came to be.
    doubtful: bool,
}

/// The generation that fits a view, brought up to it.
pub(crate) fn of(
    generations: &Lock<Map<crate::TableId, Vec<SharedFresh>>>,
    view: &dyn View,
    access: &Access,
    (index, coverage): (&IndexDef, &Coverage),
    writing: bool,
) -> Result<SharedFresh, Error> {
    let fits = |fresh: &&SharedFresh| fresh.index == index.id && fresh.coverage == *coverage;
    let known = generations.read(|all| all.get(&access.table.id).and_then(|list| list.iter().find(fits).cloned()));
    let fresh = match known {
        Some(fresh) => fresh,
        None => generations.write(|all| {
            let list = all.entry(access.table.id).or_default();
            let fresh = SharedFresh::new(Fresh::new(index.id, coverage.clone()));
            while list.iter().filter(|fresh| fresh.index == index.id).count() >= GENERATIONS {
                let oldest = list.iter().position(|fresh| fresh.index == index.id);
                oldest.map(|oldest| list.remove(oldest));
            }
            list.push(fresh.clone());
            fresh
        }),
    };
    if !fresh.inner.read(|inner| inner.covers(access, &fresh.coverage, writing)) {
        fresh.inner.write(|inner| inner.extend(view, access, index, &fresh.coverage, writing))?;
    }
    Ok(fresh)
}

impl Fresh {
    pub(crate) fn new(index: IndexId, coverage: Coverage) -> Self {
        let inner = Inner { rows: coverage.rows, ..Inner::default() };
        Fresh { index, coverage, inner: Lock::new(inner) }
    }

    /// Entries in it.
    pub(crate) fn count(&self) -> usize {
        self.inner.read(|inner| inner.entries.len())
    }

    /// About what they take of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.inner.read(|inner| inner.entries.bytes())
    }

    /// Whether the writer tends it.
    pub(crate) fn is_written(&self) -> bool {
        self.inner.read(|inner| inner.written)
    }

    /// Whether there may be entries of rows that were rolled back.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.inner.read(|inner| inner.doubtful)
    }

    /// So many entries, in order, behind the first `from` of them.
    pub(crate) fn piece(&self, from: usize, count: usize) -> Vec<Box<[u8]>> {
        self.inner.read(|inner| inner.entries.piece(from, count))
    }

    /// Whether an entry is in it.
    pub(crate) fn holds(&self, entry: &[u8]) -> bool {
        self.inner.read(|inner| inner.entries.contains(entry))
    }

    /// The rows of the entries in a range, at most `rows_max`.
    pub(crate) fn rows_in(&self, range: &ByteRange, rows_max: usize, rows: &mut Vec<RowId>) {
        self.inner.read(|inner| {
            rows.extend(inner.entries.rows_between(&range.low, range.high.as_deref()).take(rows_max));
        });
    }

    /// So many entries at the beginning of a range, or at its end.
    pub(crate) fn outermost(&self, range: &ByteRange, at_end: bool, count: usize) -> Vec<Box<[u8]>> {
        self.inner.read(|inner| inner.entries.outermost((&range.low, range.high.as_deref()), at_end, count))
    }

    /// The rows of entries under exactly these keys, each with the place of its key.
    pub(crate) fn rows_under<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
        places: &mut Vec<usize>,
        rows: &mut Vec<RowId>,
    ) {
        self.inner.read(|inner| {
            for (place, key) in keys.enumerate() {
                // No key begins another, so what begins with this one has it.
                for row in inner.entries.rows_under(stored(key)) {
                    places.push(place);
                    rows.push(row);
                }
            }
        });
    }

    /// Adds rows that the writer has just stored: `rows` below the number `end`.
    pub(crate) fn add_inserted(&self, keys: &Keys, first: RowId) {
        self.inner.write(|inner| {
            for row in 0..keys.count() {
                inner.add(entry(keys.key(row), RowId(first.0 + row as u64)));
            }
            inner.rows = first.0 + keys.count() as u64;
        });
    }

    /// Adds new keys of rows that the writer has just updated, and notes how far the update logs, as opened since, are in.
    pub(crate) fn add_updated(&self, entries: Vec<Vec<u8>>, access: &Access) {
        self.inner.write(|inner| {
            entries.into_iter().for_each(|entry| inner.add(entry));
            access.parts.iter().for_each(|part| inner.note_updates(part, part.lengths.updates));
        });
    }
}

impl Inner {
    fn add(&mut self, entry: Vec<u8>) {
        self.entries.add(entry);
    }

    fn updates_in(&self, part: &Part, coverage: &Coverage) -> u64 {
        let known = self.updates.get(&part.segment.group).copied();
        known.unwrap_or(0).max(coverage.of_updates(&part.segment))
    }

    /// Notes that so many bytes of a segment's update log are in.
    fn note_updates(&mut self, part: &Part, bytes: u64) {
        match bytes {
            0 => self.updates.remove(&part.segment.group),
            _ => self.updates.insert(part.segment.group, bytes),
        };
    }

    fn covers(&self, access: &Access, coverage: &Coverage, writing: bool) -> bool {
        let fits = |known: u64, there: u64| if writing { known == there } else { known >= there };
        fits(self.rows, access.next_row().max(coverage.rows))
            && access.parts.iter().all(|part| fits(self.updates_in(part, coverage), part.lengths.updates))
            && (self.written || !writing)
    }

    /// Reads what is missing. The writer, whose view is the truth, also steps back from what was rolled back.
    fn extend(
        &mut self,
        view: &dyn View,
        access: &Access,
        index: &IndexDef,
        coverage: &Coverage,
        writing: bool,
    ) -> Result<(), Error> {
        if self.written && !writing {
            return Err(Error::misuse("a view of a transaction that was rolled back"));
        }
        if writing {
            self.step_back(access, coverage);
            self.written = true;
        }
        let parts = access.key_parts(index)?;
        for number in 0..access.parts.len() {
            self.extend_rows(view, access, number, &parts)?;
            self.extend_updates(view, access, number, coverage, &parts)?;
        }
        self.rows = self.rows.max(access.next_row());
        Ok(())
    }

    /// Forgets what was rolled back. Its entries stay: they do no harm.
    fn step_back(&mut self, access: &Access, coverage: &Coverage) {
        let rows = access.next_row().max(coverage.rows);
        self.doubtful |= self.rows > rows;
        self.rows = self.rows.min(rows);
        for part in &access.parts {
            let known = self.updates_in(part, coverage);
            self.doubtful |= known > part.lengths.updates;
            self.note_updates(part, known.min(part.lengths.updates));
        }
    }

    fn extend_rows(&mut self, view: &dyn View, access: &Access, number: usize, parts: &KeyParts) -> Result<(), Error> {
        let (part, wanted) = (&access.parts[number], Wanted::only(parts.columns()));
        let from = self.rows.saturating_sub(part.segment.first);
        let mut position = match &part.presence {
            Some(presence) => presence.rank(view, from).map_err(access.named())?,
            None => from,
        };
        while position < part.count {
            let count = (part.count - position).min(PIECE_ROWS as u64) as usize;
            let batch = access.read_inserted(view, number, position, count, &wanted)?;
            let keys = Keys::of_parts(&batch, parts).map_err(access.named())?;
            for row in 0..keys.count() {
                if let Some(id) = part.row_at(view, position + row as u64).map_err(access.named())? {
                    self.add(entry(keys.key(row), id));
                }
            }
            position += count as u64;
        }
        Ok(())
    }

    fn extend_updates(
        &mut self,
        view: &dyn View,
        access: &Access,
        number: usize,
        coverage: &Coverage,
        parts: &KeyParts,
    ) -> Result<(), Error> {
        let (part, wanted) = (&access.parts[number], Wanted::only(parts.columns()));
        let from = self.updates_in(part, coverage);
        if from < part.lengths.updates {
            let updates = part.state.read(|state| state.updates_between(from, part.lengths.updates));
            for piece in updates.chunks(PIECE_ROWS) {
                let batch = access.read_updates(view, number, piece, &wanted)?;
                let keys = Keys::of_parts(&batch, parts).map_err(access.named())?;
                let entries = piece.iter().enumerate().map(|(row, update)| entry(keys.key(row), RowId(update.row)));
                entries.for_each(|entry| self.add(entry));
            }
            self.note_updates(part, part.lengths.updates);
        }
        Ok(())
    }
}
