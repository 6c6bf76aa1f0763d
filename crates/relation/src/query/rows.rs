//! Rows of the root and what they join, a few at a time: as many as memory has room for.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use counterfoil_log::View;

use super::candidates::Candidates;
use super::joined::root_of;
use super::named::FEW_ROWS;
use super::outermost::Outermost;
use super::plan::{Place, Plan};
use super::scratch::Scratch;
use super::windows::Windows;
use super::{JoinedRows, KeptRows, NO_ROW, Side};
use crate::found::FoundRows;
use crate::grain::Grain;
use crate::read::ONE_ROW_TIMES;
use crate::{Cause, Error, NamedRows, Relations, RowId, Scan, ValueRef};

/// Rows read at a time where memory has room for more.
const STEP_ROWS_MAX: usize = 4096;
/// About how often a row is there while it is read: as it came, among others, with what it joins, and its number.
const ROW_COPIES: usize = 4;
/// The long values of the rows of one table may take this part of the memory for rows; those of one row alone half of it.
const HEAP_PART: usize = 8;
/// Joined rows that are kept for those that come next take this part of it.
const KEPT_PART: usize = 4;
/// About what a candidate takes: a list that has grown may have as much to spare.
const CANDIDATE_BYTES: usize = 2 * size_of::<RowId>();

/// Rows of the root and what they join, a few at a time.
pub(super) struct Rows<V> {
    view: V,
    plan: Arc<Plan>,
    columns: Vec<Vec<usize>>,
    from: From<V>,
    /// Rows that are read next.
    due: Vec<RowId>,
    /// Rows read at a time.
    step_rows: usize,
    /// Bytes of the long values of those of one table.
    heap_bytes: u64,
    /// Joined rows that were read for those before.
    kept: KeptRows,
    /// What named them.
    pub(super) by: Vec<String>,
}

enum From<V> {
    /// Those that indexes name; and where there was no room for all of them, those that follow.
    Named(FoundRows, Option<Windows>),
    All(Scan<V>),
    /// So many, of which nothing but their number is known; none once they were handed over.
    #[cfg(not(feature = "small"))]
    Counted(Option<u64>),
}

impl<V: View + Clone> Rows<V> {
    /// Takes so many bytes for candidates at most, and as many for rows; and some to spare for more of what is named, and kept.
    #[inline(never)]
    pub(super) fn open(
        relations: &Relations,
        view: V,
        plan: &Arc<Plan>,
        (share, spare): (usize, usize),
    ) -> Result<Box<Self>, Error> {
        let columns = plan.columns();
        let row_bytes: usize =
            plan.sources.iter().map(|source| source.table.layout().width() + size_of::<RowId>()).sum();
        // Rows in pages are kept with their pages.
        let is_in_cells = relations.shared.grain == Grain::Cells;
        let kept_bytes = if is_in_cells { share / KEPT_PART } else { 0 };
        let step_rows = ((share - kept_bytes) / (row_bytes * ROW_COPIES)).min(STEP_ROWS_MAX);
        if step_rows == 0 {
            return Err(Error::memory(Some(row_bytes * ROW_COPIES)));
        }
        let (kept_bytes, spare) = if is_in_cells { (kept_bytes + spare / 2, spare / 2) } else { (0, spare) };
        let (rows_max, heap_bytes) = ((share + spare) / CANDIDATE_BYTES, (share / HEAP_PART) as u64);
        #[cfg(not(feature = "small"))]
        if let Some(count) = relations.counted(&view, plan, share)? {
            return Ok(Box::new(Rows {
                view,
                plan: plan.clone(),
                columns,
                from: From::Counted(Some(count.rows)),
                due: Vec::new(),
                step_rows,
                heap_bytes: 0,
                kept: KeptRows::within(0),
                by: Vec::from([count.by]),
            }));
        }
        let mut plan = plan.clone();
        let (mut named, mut candidates) = sought(relations, &view, &plan, rows_max)?;
        if candidates.as_ref().is_none_or(|candidates| candidates.rows.len() > FEW_ROWS) {
            let root = root_of(&plan.sources)?;
            let (plan_now, columns) = (&*plan, &columns[..]);
            let outermost = Outermost {
                relations,
                view: &view,
                plan: plan_now,
                root,
                columns,
                room: rows_max,
                step_rows,
                heap_bytes,
            };
            if let Some(test) = outermost.test()? {
                Arc::make_mut(&mut plan).sources[root].tests.push(test);
                let within = sought(relations, &view, &plan, rows_max)?;
                (named, candidates) = (within.0, within.1.or(candidates));
            }
        }
        let (from, by) = match candidates {
            Some(Candidates { rows, by, .. }) => (From::Named(FoundRows::List(rows.into_iter()), None), by),
            None => match Windows::open(
                relations,
                &view,
                (&plan.sources, &plan.conditions),
                named,
                (rows_max, plan.access, plan.is_read_in_any_order()),
            )? {
                Some((windows, rows, by)) => (From::Named(rows, Some(windows)), Vec::from([by])),
                None => {
                    let root = root_of(&plan.sources)?;
                    let scan = relations.scan(view.clone(), &plan.sources[root].table)?;
                    (From::All(scan.with_columns(&columns[root]).with_heap_bytes(heap_bytes)), Vec::new())
                }
            },
        };
        let kept = KeptRows::within(kept_bytes);
        Ok(Box::new(Rows { view, plan, columns, from, due: Vec::new(), step_rows, heap_bytes, kept, by }))
    }
}

impl<V: View> Rows<V> {
    /// How many rows indexes have named that are still to be read, as far as there was room for them.
    pub(super) fn named(&self) -> Option<usize> {
        match &self.from {
            From::Named(rows, windows) => {
                let expected = windows.as_ref().map_or(0, Windows::expected);
                Some(rows.count_left() + self.due.len() + expected)
            }
            From::All(_) => None,
            #[cfg(not(feature = "small"))]
            From::Counted(_) => Some(0),
        }
    }

    /// The next rows, perhaps none of them; none at the end.
    pub(super) fn next(
        &mut self,
        relations: &Relations,
        scratch: &mut dyn Scratch,
    ) -> Result<Option<JoinedRows>, Error> {
        let (view, sources, conditions) = (&self.view, &self.plan.sources, &self.plan.conditions);
        if self.due.is_empty() {
            match &mut self.from {
                From::Named(rows, windows) => {
                    self.due.extend(rows.by_ref().take(self.step_rows));
                    while let (true, Some(some)) = (self.due.is_empty(), windows.as_mut()) {
                        let root = &sources[root_of(sources)?];
                        let Some(window) = some.next(relations, view, root, scratch)? else { break };
                        *rows = window;
                        self.due.extend(rows.by_ref().take(self.step_rows));
                    }
                }
                #[cfg(not(feature = "small"))]
                From::Counted(rows) => {
                    let count = rows.take().map(|rows| usize::try_from(rows).unwrap_or(usize::MAX));
                    return Ok(count.map(|count| JoinedRows { sides: Vec::from([None]), count }));
                }
                From::All(scan) => {
                    let Some(block) = scan.next(self.step_rows).map_err(of_share)? else { return Ok(None) };
                    let ids = block.visible_rows().map(|row| block.id(row));
                    self.due.extend(ids);
                    let heap = (self.heap_bytes, &mut self.kept);
                    match relations.join_block(view, (sources, conditions), &self.columns, block, heap) {
                        Err(error) if error.is_memory() && self.due.len() > 1 => {}
                        joined => {
                            self.due.clear();
                            return joined.map(Some).map_err(of_share);
                        }
                    }
                }
            }
        }
        if self.due.is_empty() {
            return Ok(None);
        }
        let root = root_of(sources)?;
        let (table, columns) = (&sources[root].table, &self.columns[root]);
        // Fewer at a time where their long values are many.
        let mut count = self.due.len();
        loop {
            let wanted = (sources.len() > 1, self.heap_bytes);
            let block = relations.fetch_apart(view, table, &self.due[..count], columns, wanted);
            match block.and_then(|block| {
                let heap = (self.heap_bytes, &mut self.kept);
                relations.join_block(view, (sources, conditions), &self.columns, block, heap)
            }) {
                Err(error) if error.is_memory() && count > 1 => count = count.div_ceil(2),
                joined => {
                    self.due.drain(..count);
                    return joined.map(Some).map_err(of_share);
                }
            }
        }
    }
}

/// What indexes say of each source.
type Named = Vec<Option<NamedRows>>;

/// What indexes say of each source, and the rows of the root that come into question, if they are few.
#[inline(never)]
fn sought(
    relations: &Relations,
    view: &dyn View,
    plan: &Plan,
    rows_max: usize,
) -> Result<(Named, Option<Candidates>), Error> {
    let Plan { sources, conditions, access, .. } = plan;
    let mut named = Vec::with_capacity(sources.len());
    for source in sources {
        let bounds = (rows_max / sources.len(), *access);
        named.push(relations.named_by(view, &source.table, &source.tests, bounds)?);
    }
    let lists: Vec<_> = named.iter().map(Option::as_ref).collect();
    let candidates = relations.candidates_within(view, (sources, conditions), &lists, (rows_max, *access))?;
    Ok((named, candidates))
}

/// What long values need, as what the whole share needs.
fn of_share(error: Error) -> Error {
    match error.cause() {
        Cause::Memory { needed: Some(bytes) } => {
            let part = HEAP_PART / ONE_ROW_TIMES as usize;
            Error::memory(Some(bytes.next_multiple_of(ONE_ROW_TIMES as usize).saturating_mul(part)))
        }
        _ => error,
    }
}

/// The value of a column of one of some rows.
pub(super) fn value(rows: &JoinedRows, place: Place, row: usize) -> Result<ValueRef<'_>, Error> {
    let Some(Side { block, places }) = &rows.sides[place.source] else {
        return Err(Error::misuse("a column of a table that was not read"));
    };
    match places[row] {
        NO_ROW => Ok(ValueRef::Null),
        at => block.rows.value(at as usize, place.column),
    }
}
