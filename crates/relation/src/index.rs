//! Looking rows up by key: the fresh part, then the runs, then the rows themselves.
//!
//! An index may hold entries of rows that are deleted, were never committed or have another key by now; it never lacks
//! the entry of a row that is there. So what it finds are candidates, and each is confirmed by the row as the view sees
//! it.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use counterfoil_log::Order as _;
use counterfoil_log::View;

use crate::access::{Access, Shared};
use crate::files::IndexFiles;
use crate::fresh;
use crate::key::{ByteRange, KeyParts, Keys, entry, split_entry, stored};
use crate::read::Wanted;
use crate::run::{Cursor, Head, Run};
use crate::state::SharedFresh;
use crate::{Error, IndexDef, RowId, few_or_many};

/// Candidates confirmed at a time.
const PIECE_ROWS: usize = few_or_many(16, 4096);
/// Candidates confirmed at a time where one is enough.
const FEW_ROWS: usize = 64;

/// Where an entry is.
pub(crate) enum Place {
    /// In memory, worked out from a row that no run knows yet.
    Fresh,
    /// In a run.
    Run,
}

/// An index opened for one view.
pub(crate) struct IndexReader<'a> {
    shared: &'a Shared,
    view: &'a dyn View,
    access: &'a Access,
    index: &'a IndexDef,
    parts: KeyParts,
    pub(crate) fresh: SharedFresh,
    files: Arc<IndexFiles>,
}

impl Shared {
    /// Opens an index of a table.
    pub(crate) fn index<'a>(
        &'a self,
        view: &'a dyn View,
        access: &'a Access,
        index: &'a IndexDef,
        writing: bool,
    ) -> Result<IndexReader<'a>, Error> {
        let files = self.index_files(view, access, index.id)?;
        let fresh = fresh::of(&self.states.fresh, view, access, (index, &files.coverage), writing)?;
        Ok(IndexReader { shared: self, view, access, index, parts: access.key_parts(index)?, fresh, files })
    }
}

impl IndexReader<'_> {
    /// Shows the rows of all entries in a range to `visit`, until it returns false; whether it never did.
    pub(crate) fn visit(
        &self,
        range: &ByteRange,
        visit: &mut dyn FnMut(RowId) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        self.visit_each(core::slice::from_ref(range), &mut |_, row, _| visit(row))
    }

    /// As [`IndexReader::visit`] for several ranges, fastest where they ascend, with the place of each, and how many renewals of rows the run
    /// has seen that has the entry. What is new may be of a later view, or of what was rolled back: it has no run. It goes run by run,
    /// and a page of a run that has several of them is opened once.
    pub(crate) fn visit_each(
        &self,
        ranges: &[ByteRange],
        visit: &mut dyn FnMut(usize, RowId, Option<u64>) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let ranges: Vec<ByteRange> = ranges.iter().map(ByteRange::of_entries).collect();
        let mut rows = Vec::new();
        for (place, range) in ranges.iter().enumerate() {
            self.fresh.rows_in(range, usize::MAX, &mut rows);
            for row in rows.drain(..) {
                if !visit(place, row, None)? {
                    return Ok(false);
                }
            }
        }
        let ascends = ranges.array_windows().all(|[one, next]| one.high.as_ref().is_some_and(|high| *high <= next.low));
        for run in &self.files.runs {
            let (mut cursor, is_alone) = (None, ranges.len() == 1);
            for (place, range) in ranges.iter().enumerate() {
                let asked = (run, &mut cursor, ascends, is_alone);
                if !self.visit_run(asked, range, &mut |row| visit(place, row, Some(run.renewals)))? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether no entry in a range may be there twice: nothing in it is new, and no two runs of which each may have some overlap.
    #[cfg(not(feature = "small"))]
    pub(crate) fn has_each_once(&self, range: &ByteRange) -> bool {
        let mut rows = Vec::new();
        self.fresh.rows_in(range, 1, &mut rows);
        let is_within = |run: &&Run| {
            run.last.as_slice() >= range.low.as_slice()
                && range.high.as_ref().is_none_or(|high| run.first.as_slice() < high.as_slice())
        };
        let mut runs: Vec<&Run> = self.files.runs.iter().filter(is_within).collect();
        runs.sort_unstable_by(|one, other| one.first.cmp(&other.first));
        rows.is_empty() && runs.array_windows().all(|[one, next]| one.last < next.first)
    }

    /// The head of a run, for so many lookups.
    fn head(&self, run: &Run, lookups: usize) -> Result<Head, Error> {
        self.shared.heads.of(self.view, run, lookups).map_err(self.access.named())
    }

    /// Shows the rows of a run's entries in a range; `known`: where a range before it ended, all of them behind it if they ascend.
    fn visit_run(
        &self,
        (run, known, ascends, is_alone): (&Run, &mut Option<Cursor>, bool, bool),
        range: &ByteRange,
        visit: &mut dyn FnMut(RowId) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let low = range.low.as_slice();
        let after = |entry: &[u8]| range.high.as_deref().is_some_and(|high| entry >= high);
        if run.last.as_slice() < low || after(&run.first) {
            return Ok(true);
        }
        let (named, head) = (self.access.named(), self.head(run, 1)?);
        // Of several keys each page of a filter would be one more, where those of the entries are one behind the other.
        if range.exact && (is_alone || head.is_kept()) && !self.may_hold(run, &head, stored(low))? {
            return Ok(true);
        }
        let goes_on = known.as_mut().map_or(Ok(false), |cursor| cursor.goes_on_to(low, ascends)).map_err(&named)?;
        if !goes_on {
            // Its block is not there beside those on the way to the next one.
            *known = None;
            *known = Some(head.seek(self.view, run, low).map_err(&named)?);
        }
        let Some(cursor) = known else { return Ok(true) };
        while let Some(entry) = cursor.current().filter(|entry| !after(entry)) {
            let row = split_entry(entry).map(|(_, row)| row);
            let row = row.ok_or_else(|| Error::corrupt(&self.access.table.name, "entry of an index run"))?;
            if !visit(row)? {
                return Ok(false);
            }
            cursor.advance(self.view).map_err(&named)?;
        }
        Ok(true)
    }

    /// Whether a run may hold a key, as entries store it. A filter that is not kept is a page like those that it spares: it is asked
    /// where it spares several, and where the key may be in one of several runs.
    fn may_hold(&self, run: &Run, head: &Head, key: &[u8]) -> Result<bool, Error> {
        let is_dear = !head.is_kept()
            && (run.levels.len() == 1 || self.files.runs.iter().filter(|run| run.may_have(key)).nth(1).is_none());
        if is_dear {
            return Ok(true);
        }
        head.may_hold(self.view, run, key).map_err(self.access.named())
    }

    /// Shows the rows of all entries of a run under a key, as entries store it.
    fn visit_key(
        &self,
        run: &Run,
        head: &Head,
        key: &[u8],
        visit: &mut dyn FnMut(RowId) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let named = self.access.named();
        if !self.may_hold(run, head, key)? {
            return Ok(true);
        }
        let mut cursor = head.seek(self.view, run, key).map_err(&named)?;
        // No key begins another, so what begins with this one has it.
        while let Some(entry) = cursor.current().filter(|entry| entry.starts_with(key)) {
            let row = split_entry(entry).map(|(_, row)| row);
            let row = row.ok_or_else(|| Error::corrupt(&self.access.table.name, "entry of an index run"))?;
            if !visit(row)? {
                return Ok(false);
            }
            cursor.advance(self.view).map_err(&named)?;
        }
        Ok(true)
    }

    /// The rows of all entries in a range, each once, in the order of their numbers; `None` if there are more than
    /// `rows_max` entries.
    pub(crate) fn candidates(&self, range: &ByteRange, rows_max: usize) -> Result<Option<Vec<RowId>>, Error> {
        let mut rows = Vec::new();
        let all = self.visit(range, &mut |row| {
            rows.push(row);
            Ok(rows.len() <= rows_max)
        })?;
        rows.order();
        rows.dedup();
        Ok(all.then_some(rows))
    }

    /// Of some rows, those that the view sees with a key in the range, and their keys.
    pub(crate) fn confirm(&self, rows: &[RowId], range: &ByteRange) -> Result<Vec<(Vec<u8>, RowId)>, Error> {
        let mut confirmed = Vec::new();
        self.confirm_each(rows, &mut |_, key, row| {
            if range.contains(key) {
                confirmed.push((key.to_vec(), row));
            }
        })?;
        Ok(confirmed)
    }

    /// Shows place, key and number of those rows that the view sees.
    fn confirm_each(&self, rows: &[RowId], visit: &mut dyn FnMut(usize, &[u8], RowId)) -> Result<(), Error> {
        let wanted = Wanted::only(self.parts.columns()).apart(matches!(self.parts, KeyParts::Join(_)));
        for (piece, some) in rows.chunks(PIECE_ROWS).enumerate() {
            let block = self.access.fetch(self.view, some, &wanted)?;
            let keys = Keys::of_parts(&block.rows, &self.parts).map_err(self.access.named())?;
            for row in block.visible_rows() {
                visit(piece * PIECE_ROWS + row, keys.key(row), some[row]);
            }
        }
        Ok(())
    }

    /// The rows of so many entries at the beginning of a range, or at its end; `None` if they take more than so many bytes.
    pub(crate) fn outermost(
        &self,
        range: &ByteRange,
        (at_end, count): (bool, usize),
        bytes_max: usize,
    ) -> Result<Option<Vec<RowId>>, Error> {
        let range = range.of_entries();
        let mut entries = self.fresh.outermost(&range, at_end, count);
        for run in &self.files.runs {
            match at_end {
                true => self.last_of_run(run, &range, count, &mut entries)?,
                false => self.first_of_run(run, &range, count, &mut entries)?,
            }
            entries.order();
            match at_end {
                true => drop(entries.drain(..entries.len().saturating_sub(count))),
                false => entries.truncate(count),
            }
            if entries.iter().map(|entry| entry.len() + size_of::<Box<[u8]>>()).sum::<usize>() > bytes_max {
                return Ok(None);
            }
        }
        let row = |entry: &[u8]| {
            let row = split_entry(entry).map(|(_, row)| row);
            row.ok_or_else(|| Error::corrupt(&self.access.table.name, "entry of an index run"))
        };
        let mut rows = entries.iter().map(|entry| row(entry)).collect::<Result<Vec<RowId>, Error>>()?;
        rows.order();
        rows.dedup();
        Ok(Some(rows))
    }

    /// Adds the first entries of a run in a range.
    fn first_of_run(
        &self,
        run: &Run,
        range: &ByteRange,
        count: usize,
        entries: &mut Vec<Box<[u8]>>,
    ) -> Result<(), Error> {
        let after = |entry: &[u8]| range.high.as_deref().is_some_and(|high| entry >= high);
        if run.last.as_slice() < range.low.as_slice() || after(&run.first) {
            return Ok(());
        }
        let named = self.access.named();
        let mut cursor = self.head(run, 1)?.seek(self.view, run, &range.low).map_err(&named)?;
        for _ in 0..count {
            let Some(entry) = cursor.current().filter(|entry| !after(entry)) else { break };
            entries.push(entry.into());
            cursor.advance(self.view).map_err(&named)?;
        }
        Ok(())
    }

    /// Adds the last entries of a run in a range: from some blocks before its end on, and from more where those are too few.
    fn last_of_run(
        &self,
        run: &Run,
        range: &ByteRange,
        count: usize,
        entries: &mut Vec<Box<[u8]>>,
    ) -> Result<(), Error> {
        // No key begins with so large a byte.
        let high = range.high.as_deref().unwrap_or(&[u8::MAX]);
        if run.last.as_slice() < range.low.as_slice() || run.first.as_slice() >= high {
            return Ok(());
        }
        let (named, head) = (self.access.named(), self.head(run, 1)?);
        let mut blocks = 0;
        loop {
            let (mut cursor, mut is_all) = head.seek_before(self.view, run, high, blocks).map_err(&named)?;
            let mut last = VecDeque::new();
            while let Some(entry) = cursor.current().filter(|entry| *entry < high) {
                let is_before = entry < range.low.as_slice();
                is_all |= is_before;
                if !is_before {
                    last.push_back(Box::from(entry));
                }
                if last.len() > count {
                    last.pop_front();
                }
                cursor.advance(self.view).map_err(&named)?;
            }
            if is_all || last.len() == count {
                entries.extend(last);
                return Ok(());
            }
            blocks = 4 * blocks + 1;
        }
    }

    /// All rows that the view sees with a key in the range, in the order of their numbers.
    pub(crate) fn rows(&self, range: &ByteRange) -> Result<Vec<RowId>, Error> {
        let candidates = self.candidates(range, usize::MAX)?.unwrap_or_default();
        Ok(self.confirm(&candidates, range)?.into_iter().map(|(_, row)| row).collect())
    }

    /// Some row that the view sees with a key in the range.
    pub(crate) fn any(&self, range: &ByteRange) -> Result<Option<RowId>, Error> {
        let mut waiting = Vec::new();
        let mut found = None;
        self.visit(range, &mut |row| {
            waiting.push(row);
            if waiting.len() == FEW_ROWS {
                found = self.confirm(&waiting, range)?.first().map(|(_, row)| *row);
                waiting.clear();
            }
            Ok(found.is_none())
        })?;
        if found.is_none() {
            found = self.confirm(&waiting, range)?.first().map(|(_, row)| *row);
        }
        Ok(found)
    }

    /// For some keys, the rows that the view sees with exactly these keys: (place in `which`, row).
    pub(crate) fn matches(&self, keys: &Keys, which: &[usize]) -> Result<Vec<(usize, RowId)>, Error> {
        let mut places = Vec::new();
        let mut rows = Vec::new();
        self.fresh.rows_under(which.iter().map(|row| keys.key(*row)), &mut places, &mut rows);
        for run in &self.files.runs {
            let within: Vec<usize> =
                (0..which.len()).filter(|place| run.may_have(stored(keys.key(which[*place])))).collect();
            if within.is_empty() {
                continue;
            }
            let head = self.head(run, within.len())?;
            for place in within {
                let visit = &mut |row| {
                    places.push(place);
                    rows.push(row);
                    Ok(true)
                };
                self.visit_key(run, &head, stored(keys.key(which[place])), visit)?;
            }
        }
        let mut matches = Vec::new();
        self.confirm_each(&rows, &mut |at, key, row| {
            if keys.key(which[places[at]]) == key {
                matches.push((places[at], row));
            }
        })?;
        matches.order();
        matches.dedup();
        Ok(matches)
    }

    /// As [`IndexReader::matches`] for a unique index, where one row for each key is enough: where rows came in the order of
    /// their keys, the row that must be it is looked at first, and the index need not be read.
    pub(crate) fn owners(&self, keys: &Keys, which: &[usize]) -> Result<Vec<(usize, RowId)>, Error> {
        let guess = |row: &usize| {
            let key = stored(keys.key(*row));
            self.files.runs.iter().find_map(|run| run.guess(key))
        };
        let guessed: Vec<(usize, RowId)> =
            which.iter().enumerate().filter_map(|(place, row)| Some((place, guess(row)?))).collect();
        let rows: Vec<RowId> = guessed.iter().map(|(_, row)| *row).collect();
        let mut owners = Vec::new();
        self.confirm_each(&rows, &mut |at, key, row| {
            let place = guessed[at].0;
            if keys.key(which[place]) == key {
                owners.push((place, row));
            }
        })?;
        let known: Vec<usize> = owners.iter().map(|(place, _)| *place).collect();
        let left: Vec<usize> = (0..which.len()).filter(|place| known.binary_search(place).is_err()).collect();
        let others = self.matches(keys, &left.iter().map(|place| which[*place]).collect::<Vec<_>>())?;
        owners.extend(others.into_iter().map(|(place, row)| (left[place], row)));
        owners.order();
        Ok(owners)
    }

    /// The row that has the key of which a range of a unique index is, where rows came in the order of their keys: it is looked at, and
    /// the index need not be read. There may be one where none is told.
    pub(crate) fn owner(&self, range: &ByteRange) -> Result<Option<RowId>, Error> {
        let key = stored(&range.low);
        let row = self.files.runs.iter().filter(|_| range.exact && self.index.unique).find_map(|run| run.guess(key));
        let Some(row) = row else { return Ok(None) };
        Ok(self.confirm(&[row], range)?.first().map(|(_, row)| *row))
    }

    /// Where the index has the entry of a row under a key, if it has it.
    pub(crate) fn place_of(&self, key: &[u8], row: RowId) -> Result<Option<Place>, Error> {
        let entry = entry(key, row);
        if self.fresh.holds(&entry) {
            return Ok(Some(Place::Fresh));
        }
        let named = self.access.named();
        for run in self.files.runs.iter().filter(|run| run.first <= entry && entry <= run.last) {
            let head = self.head(run, 1)?;
            if head.may_hold(self.view, run, stored(key)).map_err(&named)? {
                let cursor = head.seek(self.view, run, &entry).map_err(&named)?;
                if cursor.current() == Some(&entry) {
                    return Ok(Some(Place::Run));
                }
            }
        }
        Ok(None)
    }

    /// The runs of the index.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.files.runs.iter()
    }

    /// The index.
    pub(crate) fn definition(&self) -> &IndexDef {
        self.index
    }
}
