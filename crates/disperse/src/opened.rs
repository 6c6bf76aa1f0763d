//! Cells that are opened as they come: whoever has time takes the next part of an answer, while the cloud sends another one.
//!
//! ```text
//! cloud --> parts, a few at a time --> a worker for each core: places to rows, cells to values --> put in order
//! ```
//! A cell opens for the row that it was sealed for, or not at all; so parts need not wait for each other.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

use crate::asked::Progress;
use crate::declaration::Column;
use crate::fragments::{Answer, Name, Strings};
use crate::gathered::{Wanted, malformed, strings};
use crate::plain::Plain;
use crate::provider::Failure;
use crate::table::{Asking, Table};

/// Workers of one answer at most: a cloud sends no faster.
const WORKERS_MAX: usize = 4;
/// Parts that wait for one.
const WAITING: usize = 1;

/// What is opened of one cloud's answer.
pub(crate) struct Opening<'a> {
    pub table: &'a Table,
    pub asking: Asking<'a>,
    pub cloud: usize,
    pub columns: Vec<&'a Column>,
    /// What the cloud calls their cells.
    pub names: Vec<Name>,
    pub wanted: Wanted<'a>,
    /// Who is told that something goes on.
    pub progress: &'a Progress,
}

/// What was opened of a part of an answer.
struct Part {
    /// Where its rows are among those that are wanted.
    ranks: Vec<usize>,
    /// The values; none of a column of which a cell did not open.
    columns: Vec<Option<Plain>>,
}

/// What was opened of an answer.
pub(crate) struct Opened {
    parts: Vec<Part>,
}

/// What workers tell each other.
struct Shared {
    parts: Mutex<Receiver<Answer>>,
    /// Why nothing is opened any more.
    failure: Mutex<Option<Failure>>,
    /// Rows that were taken.
    taken: AtomicUsize,
    /// Whether nobody wants what is left.
    is_over: AtomicBool,
}

impl Shared {
    fn next(&self) -> Option<Answer> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
    }

    fn failure(&self) -> Option<Failure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fail(&self, failure: Failure) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    }
}

impl Opening<'_> {
    /// Opens what `ask` takes; none if it did not come to its end.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn open(
        &self,
        ask: impl FnOnce(&mut dyn FnMut(Answer) -> Result<(), Failure>) -> Result<bool, Failure>,
    ) -> Result<Option<Opened>, Failure> {
        let workers = available_parallelism().map_or(1, usize::from).min(WORKERS_MAX);
        let (give, parts) = sync_channel(WAITING);
        let shared = Shared {
            parts: Mutex::new(parts),
            failure: Mutex::default(),
            taken: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        };
        let shared = &shared;
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(move || self.work(shared))).collect();
            let asked = ask(&mut |answer| match shared.failure() {
                Some(failure) => Err(failure),
                None => give.send(answer).map_err(|_| Failure::CalledOff),
            });
            // Others were faster, or it failed: what waits is dropped.
            shared.is_over.fetch_or(!matches!(asked, Ok(true)), Ordering::Relaxed);
            drop(give);
            let opened = workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
            let parts = opened.flatten().collect();
            match shared.failure() {
                Some(failure) => Err(failure),
                None => Ok(asked?.then_some(Opened { parts })),
            }
        })
    }

    /// Opens parts until there are no more. After a failure they are taken and dropped, so that nobody waits to give one.
    fn work(&self, shared: &Shared) -> Vec<Part> {
        let mut opened = Vec::new();
        while let Some(answer) = shared.next() {
            if shared.is_over.load(Ordering::Relaxed) || shared.failure().is_some() {
                continue;
            }
            let part = catch_unwind(AssertUnwindSafe(|| self.part(&answer, &shared.taken)));
            match part.unwrap_or_else(|_| Err(malformed("what opens it broke off"))) {
                // A cloud may go on with parts of which nothing is kept.
                Ok(part) if part.ranks.is_empty() => {}
                Ok(part) => opened.push(part),
                Err(failure) => shared.fail(failure),
            }
            // A cloud that waits until there is time for it is not slow.
            self.progress.step(0);
        }
        opened
    }

    fn part(&self, answer: &Answer, taken: &AtomicUsize) -> Result<Part, Failure> {
        let strings = strings(&self.names, answer)?;
        let (mut at, mut rows, mut ranks) = (Vec::new(), Vec::new(), Vec::new());
        let (coder, epochs) = (self.table.coder(), &self.asking.state.epochs);
        for (place, row) in coder.rows(epochs, self.cloud, answer.rows.places.clone()).enumerate() {
            // What is not wanted is passed over: rows that are on their way, that are gone, or that are of before.
            let Some((row, rank)) = row.and_then(|row| Some((row, self.wanted.rank(row)?))) else { continue };
            // A cloud cannot have more kept than was asked for.
            if rows.len() == self.wanted.rows.len() {
                return Err(malformed("a row twice"));
            }
            at.push(place);
            rows.push(row);
            ranks.push(rank);
        }
        let before = taken.fetch_add(rows.len(), Ordering::Relaxed);
        if before.saturating_add(rows.len()) > self.wanted.rows.len() {
            return Err(malformed("a row twice"));
        }
        let bytes = |at: &usize| strings.iter().map(|of| of.get(*at).len()).sum::<usize>();
        let of_part = size_of::<Part>() + self.columns.len() * size_of::<Option<Plain>>();
        let of_rows = at.iter().map(bytes).sum::<usize>() + rows.len() * size_of::<(u64, usize)>();
        self.asking.watch.part(if rows.is_empty() { 0 } else { of_part + of_rows })?;
        let open = |(column, strings): (&&Column, &&Strings)| {
            let mut values = Plain::empty(column.kind);
            let cells = at.iter().map(|at| strings.get(*at));
            coder.open(epochs, column, &rows, cells, &mut values).is_ok().then_some(values)
        };
        let columns = self.columns.iter().zip(&strings).map(open).collect();
        Ok(Part { ranks, columns })
    }
}

impl Opened {
    /// The columns, with the values of `count` wanted rows in order, or none of those that are not whole; none at all if rows are missing.
    pub fn in_order(&self, columns: &[&Column], count: usize) -> Option<Vec<Option<Plain>>> {
        // Of each row, the part that has it and where.
        let mut found = vec![(u32::MAX, 0_u32); count];
        for (number, part) in (0..).zip(&self.parts) {
            part.ranks.iter().zip(0..).for_each(|(rank, at)| found[*rank] = (number, at));
        }
        if found.iter().any(|(part, _)| *part == u32::MAX) {
            return None;
        }
        let found = &found;
        Some(std::thread::scope(|scope| {
            let columns: Vec<_> =
                (0..).zip(columns).map(|(at, column)| scope.spawn(move || self.column(at, column, found))).collect();
            columns.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        }))
    }

    fn column(&self, at: usize, column: &Column, found: &[(u32, u32)]) -> Option<Plain> {
        let parts: Vec<&Plain> = self.parts.iter().map(|part| part.columns[at].as_ref()).collect::<Option<_>>()?;
        Some(Plain::picked(column.kind, &parts, found))
    }
}
