//! What memory knows of a table beyond its containers: which rows are deleted or updated, and the fresh parts of its
//! indexes. All of it is read from the containers and can be read again at any time.
//!
//! One state serves every view. A delete or update is known with the offset of its log entry, and a view sees those
//! below the length its log has there. The writer adds what it appends, a rollback cuts back to the lengths left.
//!
//! Invariants:
//! 1. `deletes` and `updates` hold exactly the entries of the first `deletes_bytes` and `updates_bytes` of the logs;
//! 2. once the writer of this process has touched a segment, only the writer adds to its state: a view that wants more
//!    belongs to a transaction that was rolled back.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use counterfoil_log::Order as _;
use counterfoil_log::{ContainerId, View};

use crate::files::Segment;
use crate::fresh::Fresh;
use crate::presence::{Presence, Recent};
use crate::shape::Shape;
use crate::sorted::Sorted;
use crate::{Error, IndexId, TableId, few_or_many};
use counterfoil_log::Lock;
use counterfoil_log::Map;

/// Bytes of the head of an update: row u64, layout u32.
pub(crate) const UPDATE_HEAD_BYTES: usize = 12;
/// Bytes of a delete: row u64.
pub(crate) const DELETE_BYTES: usize = 8;
/// Bytes of a log read at a time.
const PIECE_BYTES: usize = few_or_many(512, 1 << 18);
/// What a delete and an update take of memory, with what looking at many of them takes beside that: an [`UpdateAt`] for each.
const DELETE_MEMORY: usize = 32;
const UPDATE_MEMORY: usize = 40;
/// Numbers of rows, and offsets in the logs of a segment, are below this: a join has 48 bits for the number after a row's.
const NUMBERS_END: u64 = (1 << 48) - 1;

/// Where a row's newer image lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UpdateAt {
    pub(crate) row: u64,
    pub(crate) offset: u64,
    pub(crate) layout: u32,
}

/// A deleted row and the offset of its entry, as 48 bits each: the highest first, so that they are in order by their words.
type DeleteMark = [u32; 3];

/// The same of a newer image, and its layout.
type UpdateMark = [u32; 4];

fn delete_mark(row: u64, offset: u64) -> DeleteMark {
    debug_assert!(row <= NUMBERS_END && offset <= NUMBERS_END, "48 bits");
    [(row >> 16) as u32, (row << 16) as u32 | (offset >> 32) as u32, offset as u32]
}

fn deleted_at([high, middle, low]: DeleteMark) -> (u64, u64) {
    (u64::from(high) << 16 | u64::from(middle >> 16), u64::from(middle & 0xffff) << 32 | u64::from(low))
}

fn update_mark(row: u64, offset: u64, layout: u32) -> UpdateMark {
    let [high, middle, low] = delete_mark(row, offset);
    [high, middle, low, layout]
}

fn updated_at([high, middle, low, layout]: UpdateMark) -> UpdateAt {
    let (row, offset) = deleted_at([high, middle, low]);
    UpdateAt { row, offset, layout }
}

/// Deletes and updates of one segment.
#[derive(Debug, Default)]
pub(crate) struct SegmentState {
    deletes: Sorted<DeleteMark>,
    deletes_bytes: u64,
    updates: Sorted<UpdateMark>,
    updates_bytes: u64,
    presence: Option<Arc<Presence>>,
    /// Rows that had been updated when the segment was renewed.
    renewed: Option<Arc<Presence>>,
    written: bool,
}

/// How much of a segment's logs a view sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lengths {
    pub(crate) deletes: u64,
    pub(crate) updates: u64,
}

/// A segment's state, shared by everybody who reads or writes it.
pub(crate) type SharedState = Arc<Lock<SegmentState>>;

/// State of all tables.
#[derive(Default)]
pub(crate) struct States {
    /// By the containers of deletes and updates.
    segments: Lock<Map<(ContainerId, ContainerId), SharedState>>,
    /// The fresh parts of indexes, by table; a few generations of each.
    pub(crate) fresh: Lock<Map<TableId, Vec<SharedFresh>>>,
    /// Bytes of maps of row numbers that are kept; none: all of them.
    pub(crate) map_bytes_max: Option<usize>,
    /// Of the others the chunks that were read last.
    recent: Arc<Recent>,
}

/// A generation of a fresh part, shared like the rest.
pub(crate) type SharedFresh = Arc<Fresh>;

impl States {
    /// The state of a segment, holding at least what a view with these lengths sees.
    pub(crate) fn segment(
        &self,
        view: &dyn View,
        segment: &Segment,
        shape: &Shape,
        lengths: Lengths,
        writing: bool,
    ) -> Result<SharedState, Error> {
        let key = (segment.deletes(), segment.updates());
        let known = self.segments.read(|segments| segments.get(&key).cloned());
        let state = match known {
            Some(state) => state,
            None => self.segments.write(|segments| segments.entry(key).or_default().clone()),
        };
        if !state.read(|state| state.covers(segment, lengths, writing)) {
            let maps = (self.room_for_maps(), &self.recent);
            state.write(|state| state.extend(view, segment, shape, (lengths, writing), maps))?;
        }
        Ok(state)
    }

    /// About what the deletes and updates of all segments take of memory.
    pub(crate) fn change_bytes(&self) -> usize {
        self.segments.read(|segments| segments.values().map(|state| state.read(SegmentState::bytes)).sum())
    }

    /// Bytes that maps of row numbers may take beside those that are kept.
    fn room_for_maps(&self) -> usize {
        self.map_bytes_max.map_or(usize::MAX, |most| most.saturating_sub(self.map_bytes()))
    }

    /// What maps of row numbers take of memory.
    pub(crate) fn map_bytes(&self) -> usize {
        self.segments.read(|segments| segments.values().map(|state| state.read(SegmentState::map_bytes)).sum())
    }

    /// About what fresh parts take of memory.
    pub(crate) fn fresh_bytes(&self) -> usize {
        self.fresh.read(|all| all.values().flatten().map(|fresh| fresh.bytes()).sum())
    }

    /// The fresh part that takes the most of those that the writer tends.
    pub(crate) fn fullest_fresh(&self) -> Option<(TableId, IndexId)> {
        self.fresh.read(|all| {
            let all = all.iter().flat_map(|(table, list)| list.iter().map(|fresh| (*table, fresh)));
            let fullest = all.filter(|(_, fresh)| fresh.is_written()).max_by_key(|(_, fresh)| fresh.bytes());
            fullest.filter(|(_, fresh)| fresh.bytes() > 0).map(|(table, fresh)| (table, fresh.index))
        })
    }

    /// Forgets the fresh parts of an index, or those that the writer does not tend: whoever reads builds them anew.
    pub(crate) fn forget_fresh(&self, is_meant: impl Fn(TableId, &Fresh) -> bool) {
        self.fresh.write(|all| {
            all.iter_mut().for_each(|(table, list)| list.retain(|fresh| !is_meant(*table, fresh)));
            all.retain(|_, list| !list.is_empty());
        });
    }

    /// How much of a segment's logs is known, after reading them went wrong.
    pub(crate) fn known(&self, segment: &Segment) -> Lengths {
        let key = (segment.deletes(), segment.updates());
        let state = self.segments.read(|segments| segments.get(&key).cloned()).unwrap_or_default();
        state.read(|state| Lengths { deletes: state.deletes_bytes, updates: state.updates_bytes })
    }

    /// Follows a rollback: cuts every state back to what is there, and drops those of containers that are gone. Fresh
    /// parts are dropped unless they are the ones that count now; the next change steps those back.
    pub(crate) fn cut_back(&self, view: &dyn View, counts: impl Fn(TableId, &Fresh) -> bool) {
        self.recent.clear();
        self.fresh.write(|all| {
            all.iter_mut().for_each(|(table, list)| list.retain(|fresh| counts(*table, fresh)));
            all.retain(|_, list| !list.is_empty());
        });
        self.segments.write(|segments| {
            segments.retain(|(deletes, updates), state| match (view.length(*deletes), view.length(*updates)) {
                (Ok(deletes), Ok(updates)) => {
                    state.write(|state| state.cut(Lengths { deletes, updates }));
                    true
                }
                _ => false,
            });
        });
    }

    /// Drops the states of segments and indexes that are gone; readers of older views build theirs anew.
    pub(crate) fn prune(&self, view: &dyn View, there: impl Fn(TableId, IndexId) -> bool) {
        self.recent.clear();
        self.segments.write(|segments| segments.retain(|(deletes, _), _| view.length(*deletes).is_ok()));
        self.fresh.write(|all| {
            all.iter_mut().for_each(|(table, list)| list.retain(|fresh| there(*table, fresh.index)));
            all.retain(|_, list| !list.is_empty());
        });
    }
}

impl SegmentState {
    fn covers(&self, segment: &Segment, lengths: Lengths, writing: bool) -> bool {
        self.deletes_bytes >= lengths.deletes
            && self.updates_bytes >= lengths.updates
            && (segment.presence.is_none() || self.presence.is_some())
            && (segment.renewed.is_none() || self.renewed.is_some())
            && (self.written || !writing)
            && !(writing && (self.deletes_bytes > lengths.deletes || self.updates_bytes > lengths.updates))
    }

    /// Reads what is missing. The writer, whose lengths are the truth, also cuts what is too much.
    fn extend(
        &mut self,
        view: &dyn View,
        segment: &Segment,
        shape: &Shape,
        (lengths, writing): (Lengths, bool),
        (room, recent): (usize, &Arc<Recent>),
    ) -> Result<(), Error> {
        if writing {
            self.cut(lengths);
            self.written = true;
        } else if self.written && (self.deletes_bytes < lengths.deletes || self.updates_bytes < lengths.updates) {
            return Err(Error::misuse("a view of a transaction that was rolled back"));
        }
        let (span, before) = (segment.span.unwrap_or(0), self.map_bytes());
        if let Some(container) = segment.presence().filter(|_| self.presence.is_none()) {
            self.presence = Some(Arc::new(Presence::open(view, container, span, room, recent)?));
        }
        if let Some(container) = segment.renewed_rows().filter(|_| self.renewed.is_none()) {
            let room = room.saturating_sub(self.map_bytes() - before);
            self.renewed = Some(Arc::new(Presence::open(view, container, span, room, recent)?));
        }
        self.read_deletes(view, segment, lengths.deletes)?;
        self.read_updates(view, segment, shape, lengths.updates)
    }

    fn cut(&mut self, lengths: Lengths) {
        if self.deletes_bytes > lengths.deletes {
            self.deletes.retain(|mark| deleted_at(*mark).1 < lengths.deletes);
            self.deletes_bytes = lengths.deletes;
        }
        if self.updates_bytes > lengths.updates {
            self.updates.retain(|mark| updated_at(*mark).offset < lengths.updates);
            self.updates_bytes = lengths.updates;
        }
    }

    fn read_deletes(&mut self, view: &dyn View, segment: &Segment, until: u64) -> Result<(), Error> {
        let wrong = || Error::corrupt("", "delete log");
        if !until.is_multiple_of(DELETE_BYTES as u64) {
            return Err(wrong());
        }
        while self.deletes_bytes < until {
            let count = (until - self.deletes_bytes).min(PIECE_BYTES as u64);
            let mut piece = vec![0; count as usize];
            view.read(segment.deletes(), self.deletes_bytes, &mut piece).map_err(Error::log(""))?;
            for row in piece.as_chunks::<DELETE_BYTES>().0 {
                let row = u64::from_le_bytes(*row);
                if !(segment.first..NUMBERS_END).contains(&row) {
                    return Err(wrong());
                }
                self.add_delete(row);
            }
        }
        Ok(())
    }

    fn read_updates(&mut self, view: &dyn View, segment: &Segment, shape: &Shape, until: u64) -> Result<(), Error> {
        let mut rest: Vec<u8> = Vec::new();
        let mut from = self.updates_bytes;
        while from < until || !rest.is_empty() {
            let count = (until - from).min(PIECE_BYTES as u64);
            let held = rest.len();
            rest.resize(held + count as usize, 0);
            view.read(segment.updates(), from, &mut rest[held..]).map_err(Error::log(""))?;
            from += count;
            let used = self.take_updates(&rest, segment, shape)?;
            rest.drain(..used);
            if from == until && !rest.is_empty() {
                return Err(Error::corrupt("", "update log"));
            }
        }
        Ok(())
    }

    /// Takes the whole entries at the beginning of `bytes`; returns how many bytes they are.
    fn take_updates(&mut self, bytes: &[u8], segment: &Segment, shape: &Shape) -> Result<usize, Error> {
        let mut used = 0;
        while let Some((head, rest)) = bytes[used..].split_first_chunk::<UPDATE_HEAD_BYTES>() {
            let (row, layout) = split_update_head(head);
            let width = shape.layouts.get(layout as usize).map(|layout| layout.width());
            let width = width
                .filter(|_| (segment.first..NUMBERS_END).contains(&row))
                .ok_or_else(|| Error::corrupt("", "update log"))?;
            if rest.len() < width {
                break;
            }
            self.add_update(row, layout, width);
            used += UPDATE_HEAD_BYTES + width;
        }
        Ok(used)
    }

    /// Notes a delete that was appended to the log.
    pub(crate) fn add_delete(&mut self, row: u64) {
        if self.deletes.range(delete_mark(row, 0), delete_mark(row, NUMBERS_END)).next().is_none() {
            self.deletes.insert(delete_mark(row, self.deletes_bytes));
        }
        self.deletes_bytes += DELETE_BYTES as u64;
    }

    /// Notes an update that was appended to the log.
    pub(crate) fn add_update(&mut self, row: u64, layout: u32, width: usize) {
        self.updates.insert(update_mark(row, self.updates_bytes, layout));
        self.updates_bytes += (UPDATE_HEAD_BYTES + width) as u64;
    }

    /// About what its deletes and updates take of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.deletes.len() * DELETE_MEMORY + self.updates.len() * UPDATE_MEMORY
    }

    fn map_bytes(&self) -> usize {
        [&self.presence, &self.renewed].into_iter().flatten().map(|map| map.bytes()).sum()
    }

    pub(crate) fn presence(&self) -> Option<Arc<Presence>> {
        self.presence.clone()
    }

    /// The rows, by their numbers in the segment, that had been updated when it was renewed.
    pub(crate) fn renewed(&self) -> Option<Arc<Presence>> {
        self.renewed.clone()
    }

    /// Whether a row is deleted, for a view of these lengths.
    pub(crate) fn is_deleted(&self, row: u64, lengths: Lengths) -> bool {
        self.deletes.range(delete_mark(row, 0), delete_mark(row, lengths.deletes)).next().is_some()
    }

    /// Deleted rows among `first..end`, in order.
    pub(crate) fn deleted(&self, first: u64, end: u64, lengths: Lengths) -> impl Iterator<Item = u64> + '_ {
        let range = self.deletes.range(delete_mark(first, 0), delete_mark(end.min(NUMBERS_END), 0));
        range.map(deleted_at).filter(move |(_, offset)| *offset < lengths.deletes).map(|(row, _)| row)
    }

    /// The newest image of a row, if it was ever updated.
    pub(crate) fn update_of(&self, row: u64, lengths: Lengths) -> Option<UpdateAt> {
        if lengths.updates == 0 {
            return None;
        }
        self.updates.range(update_mark(row, 0, 0), update_mark(row, lengths.updates, 0)).greatest().map(updated_at)
    }

    /// The newest images of the rows among `first..end` that were ever updated, in the order of rows.
    pub(crate) fn updated(&self, first: u64, end: u64, lengths: Lengths) -> Vec<UpdateAt> {
        let mut newest: Vec<UpdateAt> = Vec::new();
        let range = self.updates.range(update_mark(first, 0, 0), update_mark(end.min(NUMBERS_END), 0, 0));
        for update in range.map(updated_at).filter(|update| update.offset < lengths.updates) {
            match newest.last_mut().filter(|last| last.row == update.row) {
                Some(last) => *last = update,
                None => newest.push(update),
            }
        }
        newest
    }

    /// All images in a piece of the update log, in the order of the log.
    pub(crate) fn updates_between(&self, from: u64, until: u64) -> Vec<UpdateAt> {
        let all = self.updates.iter().map(|mark| updated_at(*mark));
        let mut updates: Vec<_> = all.filter(|update| (from..until).contains(&update.offset)).collect();
        updates.order_stably_by_key(|update| update.offset);
        updates
    }

    /// Newer images that a view of these lengths sees.
    pub(crate) fn update_count(&self, lengths: Lengths) -> u64 {
        self.updates.iter().filter(|mark| updated_at(**mark).offset < lengths.updates).count() as u64
    }
}

/// The head of an update.
pub(crate) fn update_head(row: u64, layout: u32) -> [u8; UPDATE_HEAD_BYTES] {
    let mut head = [0; UPDATE_HEAD_BYTES];
    head[..8].copy_from_slice(&row.to_le_bytes());
    head[8..].copy_from_slice(&layout.to_le_bytes());
    head
}

pub(crate) fn split_update_head(head: &[u8; UPDATE_HEAD_BYTES]) -> (u64, u32) {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *head;
    (u64::from_le_bytes([a, b, c, d, e, f, g, h]), u32::from_le_bytes([i, j, k, l]))
}
