//! The face of the crate: every series table of one database.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use counterfoil_log::{self as log, PoolId, PoolOwner, Snapshot, View, Visit};

use crate::aggregate::{Aggregation, Question};
use crate::backward::Backward;
use crate::batch::Batch;
use crate::column::Kind;
use crate::digest::Summarized;
use crate::edge::Entry;
use crate::files::{Files, Options};
use crate::find::{Finder, Found};
use crate::leaf;
use crate::node;
use crate::points::Span;
use crate::relocate;
use crate::scan::Scan;
use crate::series::Series;
use crate::state::State;
use crate::write::Change;
use crate::{Error, Storage};
use counterfoil_log::Lock;

/// Bytes of payload below which a node would hold too few entries for a tree.
const PAGE_BYTES_MIN: usize = 256;

/// When work is done that could be done later. It may differ from open to open.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Points late in one series from which on they are merged into its leaves.
    pub late_points: usize,
    /// Bytes from which on a journal is begun anew, beside twice those of what is open.
    pub journal_bytes: u64,
    /// Bytes of memory that the points in no leaf may take, over all tables: beyond, they are packed, and then written as leaves
    /// that are not full. What of a series takes less than an eighth of a page stays whatever all of it takes.
    pub open_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { late_points: 4096, journal_bytes: 1 << 20, open_bytes: 64 << 20 }
    }
}

/// The number of a table: the caller's, never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableNumber(pub u64);

/// What is known of a table.
#[derive(Clone, Default)]
pub(crate) struct Known {
    /// As of a commit.
    pub(crate) settled: Option<Arc<State>>,
    /// As of the commit in the making.
    pub(crate) pending: Option<Arc<State>>,
}

/// The series tables of one open database: shared by all readers and the writer.
///
/// It holds no truth, only what it has read: dropping it and making a new one loses nothing. Methods that change something take
/// the writer with a transaction begun; after an error, and after a rollback, [`SeriesTables::rolled_back`] is called.
#[derive(Default)]
pub struct SeriesTables {
    pub(crate) limits: Limits,
    pub(crate) known: Lock<BTreeMap<TableNumber, Known>>,
}

impl SeriesTables {
    /// For a database just opened.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with other limits.
    #[must_use]
    pub fn with_limits(limits: Limits) -> Self {
        SeriesTables { limits, ..Self::default() }
    }

    /// Makes a table with columns of these kinds.
    ///
    /// # Errors
    /// [`Error::Log`]; [`Error::Misuse`] if it is there already.
    pub fn create(
        &self,
        writer: &mut dyn Storage,
        table: TableNumber,
        kinds: &[Kind],
        options: Options,
    ) -> Result<(), Error> {
        fits(writer, kinds.len())?;
        if !options.summarized.fits(kinds) {
            return Err(Error::Misuse("summaries are of columns of numbers, with one of qualities that are integers"));
        }
        let columns_max = Summarized::columns_max(writer.page_bytes());
        if options.summarized.columns.len() > columns_max {
            return Err(Error::TooManySummaries { columns_max });
        }
        if Files::of(writer, table)?.is_some() {
            return Err(Error::Misuse("a series table of this number is there already"));
        }
        Files::create(writer, kinds, options)?.put(writer, table)
    }

    /// Whether there is a table of this number.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn is_there(&self, view: &dyn View, table: TableNumber) -> Result<bool, Error> {
        Ok(Files::of(view, table)?.is_some())
    }

    /// Adds a column: NULL wherever a point is there already.
    ///
    /// # Errors
    /// [`Error::Log`], [`Error::Misuse`] for a table that is not there.
    pub fn add_column(&self, writer: &mut dyn Storage, table: TableNumber, kind: Kind) -> Result<(), Error> {
        let (mut files, _) = self.open(writer, table)?;
        files.kinds.push(kind);
        fits(writer, files.kinds.len())?;
        files.put(writer, table)
    }

    /// Drops a table.
    ///
    /// # Errors
    /// As [`SeriesTables::add_column`].
    pub fn drop(&self, writer: &mut dyn Storage, table: TableNumber) -> Result<(), Error> {
        let (files, _) = self.open(writer, table)?;
        files.drop(writer, table)
    }

    /// Takes all points out of a table.
    ///
    /// # Errors
    /// As [`SeriesTables::add_column`].
    pub fn truncate(&self, writer: &mut dyn Storage, table: TableNumber) -> Result<(), Error> {
        let (files, _) = self.open(writer, table)?;
        let (kinds, options) = (files.kinds.clone(), files.options.clone());
        files.drop(writer, table)?;
        Files::create(writer, &kinds, options)?.put(writer, table)
    }

    /// The numbers of series by their keys; those that are new get one.
    ///
    /// # Errors
    /// As [`SeriesTables::add_column`]; [`Error::TooLong`].
    pub fn number<'k>(
        &self,
        writer: &mut dyn Storage,
        table: TableNumber,
        keys: impl IntoIterator<Item = &'k [u8]>,
    ) -> Result<Vec<u32>, Error> {
        let (files, state) = self.open(writer, table)?;
        let mut names = state.names.clone();
        let mut numbers = Vec::new();
        for key in keys {
            numbers.push(match names.number(key) {
                Some(number) => number,
                None => Arc::make_mut(&mut names).add(writer, files.names(), key)?,
            });
        }
        if names.len() > state.names.len() {
            self.keep_pending(table, Arc::new(State { names, ..State::clone(&state) }));
        }
        Ok(numbers)
    }

    /// The numbers of series by their keys, those that are there.
    ///
    /// # Errors
    /// As [`SeriesTables::find`].
    pub fn numbers<'k>(
        &self,
        view: &dyn View,
        table: TableNumber,
        keys: impl IntoIterator<Item = &'k [u8]>,
    ) -> Result<Vec<Option<u32>>, Error> {
        let (_, state) = self.open(view, table)?;
        Ok(keys.into_iter().map(|key| state.names.number(key)).collect())
    }

    /// Stores points; those with the series and time of one that is there take its place. Points before the time from which on
    /// everything is kept ([`SeriesTables::retain_from`]) are not stored: answers how many these are.
    ///
    /// Each call tells the journal of the points that no leaf took, so what is committed together costs least in one call.
    ///
    /// # Errors
    /// As [`SeriesTables::add_column`]; [`Error::TooLong`].
    pub fn insert(&self, writer: &mut dyn Storage, table: TableNumber, batch: &Batch) -> Result<u64, Error> {
        let mut expired = 0;
        self.change(writer, table, |change| {
            expired = change.insert(batch)?;
            Ok(())
        })?;
        Ok(expired)
    }

    /// Deletes the points with these series and times.
    ///
    /// # Errors
    /// As [`SeriesTables::add_column`].
    pub fn delete(&self, writer: &mut dyn Storage, table: TableNumber, batch: &Batch) -> Result<(), Error> {
        self.change(writer, table, |change| change.delete(batch))
    }

    pub(crate) fn change(
        &self,
        writer: &mut dyn Storage,
        table: TableNumber,
        work: impl FnOnce(&mut Change<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (files, state) = self.open(writer, table)?;
        self.known.write(|known| drop(known.get_mut(&table).and_then(|known| known.pending.take())));
        let mut state = Arc::unwrap_or_clone(state);
        let mut change = Change {
            storage: writer,
            files: &files,
            state: &mut state,
            reorder: files.options.reorder,
            late_points: self.limits.late_points.max(1),
            open_bytes: self.bytes_left(table),
            splices: Vec::new(),
            settled: Vec::new(),
            untold: Vec::new(),
        };
        work(&mut change)?;
        self.keep_within(table, &mut change)?;
        self.keep_pending(table, Arc::new(state));
        Ok(())
    }

    fn keep_pending(&self, table: TableNumber, state: Arc<State>) {
        self.known.write(|known| known.entry(table).or_default().pending = Some(state));
    }

    /// Looks points up by series and time.
    ///
    /// # Errors
    /// [`Error::Log`], [`Error::Corrupt`], [`Error::Misuse`] for a table that is not there.
    pub fn find(&self, view: &dyn View, table: TableNumber, keys: &[(u32, i64)]) -> Result<Found, Error> {
        let (files, state) = self.open(view, table)?;
        Finder::new(view, &files, &state).find(keys)
    }

    /// The time of the newest point of each series that was ever in it and is not known to be gone; no page is read for it.
    ///
    /// # Errors
    /// As [`SeriesTables::find`].
    pub fn newest(&self, view: &dyn View, table: TableNumber, series: &[u32]) -> Result<Vec<Option<i64>>, Error> {
        let (_, state) = self.open(view, table)?;
        let newest = |series: &Arc<Series>| series.tail.newest().or(series.edge.end());
        Ok(series.iter().map(|number| state.series.get(*number as usize).and_then(newest)).collect())
    }

    /// The newest of these times over all series; none in a table without points.
    ///
    /// # Errors
    /// As [`SeriesTables::find`].
    pub fn newest_of_all(&self, view: &dyn View, table: TableNumber) -> Result<Option<i64>, Error> {
        let (_, state) = self.open(view, table)?;
        Ok(state.series.iter().filter_map(|series| series.tail.newest().or(series.edge.end())).max())
    }

    /// Bytes that the texts of a point may have together.
    ///
    /// # Errors
    /// As [`SeriesTables::find`].
    pub fn text_bytes_max(&self, view: &dyn View, table: TableNumber) -> Result<usize, Error> {
        Ok(leaf::text_bytes_max(self.open(view, table)?.0.pages.bytes as usize))
    }

    /// The pool that a table's pages are in.
    ///
    /// # Errors
    /// As [`SeriesTables::find`].
    pub fn pool(&self, view: &dyn View, table: TableNumber) -> Result<PoolId, Error> {
        Ok(self.open(view, table)?.0.pages.pool())
    }

    /// Has a table kept in another way from now on; which columns have summaries stays as it is.
    ///
    /// # Errors
    /// As [`SeriesTables::add_column`].
    pub fn set_options(&self, writer: &mut dyn Storage, table: TableNumber, options: Options) -> Result<(), Error> {
        let (mut files, _) = self.open(writer, table)?;
        files.options = Options { summarized: files.options.summarized, ..options };
        files.put(writer, table)
    }

    /// What the columns of a table hold.
    ///
    /// # Errors
    /// As [`SeriesTables::find`].
    pub fn kinds(&self, view: &dyn View, table: TableNumber) -> Result<Arc<[Kind]>, Error> {
        Ok(self.open(view, table)?.1.kinds.clone())
    }

    /// How many series a table has.
    ///
    /// # Errors
    /// As [`SeriesTables::find`].
    pub fn series(&self, view: &dyn View, table: TableNumber) -> Result<usize, Error> {
        Ok(self.open(view, table)?.1.names.len())
    }

    /// The keys of all series, by number.
    ///
    /// # Errors
    /// As [`SeriesTables::find`].
    pub fn keys(&self, view: &dyn View, table: TableNumber) -> Result<Vec<Arc<[u8]>>, Error> {
        let (_, state) = self.open(view, table)?;
        Ok((0..state.names.len() as u32).filter_map(|number| state.names.key(number).cloned()).collect())
    }

    /// Points there are, and whether that is exact: changes to what leaves cover are not looked up.
    ///
    /// # Errors
    /// As [`SeriesTables::find`].
    pub fn count(&self, view: &dyn View, table: TableNumber) -> Result<(u64, bool), Error> {
        Ok(self.open(view, table)?.1.points())
    }

    /// Reads the points of some series, or of all, that lie within a span.
    ///
    /// # Errors
    /// As [`SeriesTables::find`].
    pub fn scan<V: View>(
        &self,
        view: V,
        table: TableNumber,
        series: Option<Vec<u32>>,
        span: Span,
    ) -> Result<Scan<V>, Error> {
        let (files, state) = self.open(&view, table)?;
        Ok(Scan::new(view, Arc::new(files), state, series, span))
    }

    /// Reads a series from the end of a span backwards.
    ///
    /// # Errors
    /// As [`SeriesTables::find`].
    pub fn backward<V: View>(
        &self,
        view: V,
        table: TableNumber,
        series: u32,
        span: Span,
    ) -> Result<Backward<V>, Error> {
        let (files, state) = self.open(&view, table)?;
        Ok(Backward::new(view, files, state, series, span))
    }

    /// What the points of some series, or of all, are together, bucket by bucket.
    ///
    /// # Errors
    /// As [`SeriesTables::find`]; [`Error::Misuse`] for columns without numbers.
    pub fn aggregate<V: View>(
        &self,
        view: V,
        table: TableNumber,
        series: Option<Vec<u32>>,
        question: Question,
    ) -> Result<Aggregation<V>, Error> {
        let (files, state) = self.open(&view, table)?;
        Aggregation::new(view, Arc::new(files), state, series, question)
    }

    /// Which columns of a table have summaries.
    ///
    /// # Errors
    /// As [`SeriesTables::find`].
    pub fn summarized(&self, view: &dyn View, table: TableNumber) -> Result<Arc<Summarized>, Error> {
        Ok(self.open(view, table)?.1.summarized.clone())
    }

    /// Pages of each level of the trees of all series, leaves first. Reads all nodes.
    ///
    /// # Errors
    /// As [`SeriesTables::find`].
    pub fn pages(&self, view: &dyn View, table: TableNumber) -> Result<Vec<u64>, Error> {
        Ok(self.survey(view, table)?.pages)
    }

    /// Entries of each level of the edge of a series, leaves first: how tall its tree is.
    ///
    /// # Errors
    /// As [`SeriesTables::find`].
    pub fn levels(&self, view: &dyn View, table: TableNumber, series: u32) -> Result<Vec<usize>, Error> {
        let (_, state) = self.open(view, table)?;
        let levels = |series: &Arc<Series>| series.edge.levels.iter().map(|level| level.len()).collect();
        Ok(state.series.get(series as usize).map(levels).unwrap_or_default())
    }

    /// To be called after every commit, with the writer.
    pub fn committed(&self, view: &dyn View) {
        self.known.write(|known| {
            for known in known.values_mut() {
                known.settled = known.pending.take().or(known.settled.take());
            }
            known.retain(|table, _| Files::of(view, *table).is_ok_and(|files| files.is_some()));
        });
    }

    /// To be called after a rollback, whole or to a savepoint, with the writer as it now is.
    pub fn rolled_back(&self, view: &dyn View) {
        let stands = |state: &Arc<State>, files: &Files| {
            let within = |container, bytes| view.length(container).is_ok_and(|length| bytes <= length);
            within(state.journal, state.bytes) && within(files.names(), state.names.bytes())
        };
        self.known.write(|known| {
            for (table, known) in known.iter_mut() {
                let files = Files::of(view, *table).ok().flatten();
                known.pending = None;
                known.settled =
                    known.settled.take().filter(|state| files.as_ref().is_some_and(|files| stands(state, files)));
            }
        });
    }

    /// Work that is due, inside a transaction of its own after a commit: begins journals anew that have grown long, and writes pages
    /// anew that keep extents of a medium from being erased. Whether there is anything to commit.
    ///
    /// # Errors
    /// [`Error::Log`], [`Error::Corrupt`].
    pub fn maintain(&self, writer: &mut dyn Storage) -> Result<bool, Error> {
        let due = self.known.read(|known| {
            let is_due = |known: &Known| {
                let has_grown = |state: &Arc<State>| state.bytes > self.limits.journal_bytes + 2 * state.begun;
                known.settled.as_ref().is_some_and(has_grown)
            };
            known.iter().find(|(_, known)| is_due(known)).map(|(table, _)| *table)
        });
        let Some(table) = due else { return self.relocate(writer) };
        let (mut files, state) = self.open(writer, table)?;
        let mut state = Arc::unwrap_or_clone(state);
        Change::turn_journal(writer, &mut files, &mut state)?;
        files.put(writer, table)?;
        self.keep_pending(table, Arc::new(state));
        Ok(true)
    }

    /// Moves pages of the tables that were used: 64 of one of them.
    fn relocate(&self, writer: &mut dyn Storage) -> Result<bool, Error> {
        let tables: Vec<TableNumber> = self.known.read(|known| known.keys().copied().collect());
        for table in tables {
            let Some(files) = Files::of(writer, table)? else { continue };
            let pages = relocate::wanted(writer, &files.pages)?;
            if !pages.is_empty() {
                self.change(writer, table, |change| change.relocate(&pages))?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A table as a view sees it.
    pub(crate) fn open(&self, view: &dyn View, table: TableNumber) -> Result<(Files, Arc<State>), Error> {
        let files = Files::of(view, table)?.ok_or(Error::Misuse("this series table is not there"))?;
        let (names, bytes) = (view.length(files.names())?, view.length(files.journal())?);
        let fits = |state: &Arc<State>| {
            state.journal == files.journal()
                && (state.bytes, state.names.bytes()) == (bytes, names)
                && *state.kinds == *files.kinds
        };
        let known = self.known.read(|known| known.get(&table).cloned()).unwrap_or_default();
        if let Some(state) = [&known.pending, &known.settled].into_iter().flatten().find(|state| fits(state)) {
            return Ok((files, state.clone()));
        }
        // What is known already is read on from there.
        let begun = known.settled.filter(|state| {
            state.journal == files.journal()
                && state.bytes <= bytes
                && state.names.bytes() <= names
                && *state.kinds == *files.kinds
        });
        let mut state = begun.map_or_else(|| State::new(&files), Arc::unwrap_or_clone);
        state.read_on(view, &files, self.bytes_left(table))?;
        let state = Arc::new(state);
        self.keep_settled(table, &state);
        Ok((files, state))
    }

    /// Keeps what was read, if it is newer than what is known. It may be of a commit in the making: a rollback sorts that out.
    fn keep_settled(&self, table: TableNumber, state: &Arc<State>) {
        self.known.write(|known| {
            let known = known.entry(table).or_default();
            let is_newer = |before: &Arc<State>| {
                (state.journal, state.bytes, state.names.bytes()) > (before.journal, before.bytes, before.names.bytes())
            };
            if known.settled.as_ref().is_none_or(is_newer) {
                known.settled = Some(state.clone());
            }
        });
    }
}

/// Refuses more columns than a point in a page can have.
fn fits(writer: &dyn Storage, columns: usize) -> Result<(), Error> {
    if writer.page_bytes() < PAGE_BYTES_MIN {
        return Err(Error::Misuse("a series table needs pages of 512 bytes at least"));
    }
    let columns_max = leaf::columns_max(writer.page_bytes());
    if columns <= columns_max { Ok(()) } else { Err(Error::TooMany { columns_max }) }
}

/// Whoever copies a volume asks who the pages of its pools belong to.
impl PoolOwner for SeriesTables {
    fn visit_pages(&self, source: &Snapshot, pool: PoolId, visit: Visit<'_>) -> Result<(), log::Error> {
        let plain = |error| match error {
            Error::Log(error) => error,
            _ => log::Error::corrupt("series table"),
        };
        for table in Files::tables(source) {
            let (files, state) = self.open(source, table).map_err(plain)?;
            if files.pages.pool() == pool {
                let mut visit = |_, entry: &Entry| Ok(visit(entry.at.into())?);
                return node::visit(source, &files, &state, &mut visit).map_err(plain);
            }
        }
        Ok(())
    }
}
