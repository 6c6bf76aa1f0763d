//! A dispersed table as its owner asks for it: questions go to clouds, and what comes back is checked.
//!
//! What may be believed (DESIGN.md, "Dispersed tables"), if no more than `may_fail` clouds are silent or lie:
//! 1. A cell opens for the row that it was sealed for, or not at all: one honest answer is enough, and a cloud that lacks a row, or
//!    shows another cell, is named. Of cells in pieces it takes as many answers as give them back (pieced.rs).
//! 2. Which rows an index code matches is asked of every cloud that has the code, `may_fail + 1` of them. One of those that answer is
//!    honest, and names all rows that match: so all answers together miss none. What they name too much shows when the cells are
//!    open.
//! 3. Sums: sums.rs.
//! 4. Who wants less, or more, says so (goal.rs).

use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::asked::{self, Progress, Running, Wait};
use crate::coder::{Coder, Common, Unfit};
use crate::coding::erasure::Pieces;
use crate::fragments::{Answer, Data, Name, Question, Strings, Test};
use crate::goal::Goal;
use crate::placement::Coding;
use crate::plain::{Plain, Value};
use crate::provider::{Failure, Provider};
use crate::state::{Rows, State};
use crate::watch::Watch;

/// What must be true of a row's value.
#[derive(Clone)]
pub enum Condition {
    /// It is one of these.
    Equal {
        /// The column's number.
        column: u16,
        /// The values.
        values: Vec<Value>,
    },
    /// It lies between these.
    Range {
        /// The column's number.
        column: u16,
        /// The least value, and whether it counts.
        low: Option<(Value, bool)>,
        /// The greatest value, and whether it counts.
        high: Option<(Value, bool)>,
    },
    /// It begins so.
    Prefix {
        /// The column's number.
        column: u16,
        /// The beginning.
        text: String,
    },
}

/// What a cloud did that it should not have done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It did not answer.
    Failed(Failure),
    /// It does not show a row that it said it has.
    Lacks,
    /// A cell that was not sealed for where it was shown.
    Forged,
    /// A sum that is not that of its shares.
    WrongSum,
    /// It has not answered yet; another one has.
    Slow,
}

/// What is to be said of clouds beside an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Clouds and their faults, in the order in which they were found.
    pub faults: Vec<(usize, Fault)>,
    /// Whether one cloud alone was believed about which rows match, or about a sum.
    pub is_unverified: bool,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(failure) => failure.fmt(f),
            Self::Lacks => f.write_str("it does not show rows that it said it has"),
            Self::Forged => f.write_str("it shows what was not sealed for where it is"),
            Self::WrongSum => f.write_str("its sum is not that of its shares"),
            Self::Slow => f.write_str("it is slow: another one was asked and has answered"),
        }
    }
}

impl Report {
    pub(crate) fn note(&mut self, cloud: usize, fault: Fault) {
        if !self.faults.contains(&(cloud, fault.clone())) {
            self.faults.push((cloud, fault));
        }
    }

    /// Whether a cloud has been found at fault.
    #[must_use]
    pub fn blames(&self, cloud: usize) -> bool {
        self.faults.iter().any(|(own, _)| *own == cloud)
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Of a column, no cloud that has it gave all rows, or of those that have pieces of it not enough: what is known of them.
    Column {
        /// The column's name.
        column: String,
        /// What its clouds did.
        report: Report,
    },
    /// Of a column, what clouds gave is of no cell, and they do not say who of them lies: more than may.
    Pieces {
        /// The column's name.
        column: String,
        /// What is known of its clouds.
        report: Report,
    },
    /// Of a column, not enough clouds agree on the sum: what is known of them.
    Sum {
        /// The column's name.
        column: String,
        /// What the clouds did.
        report: Report,
    },
    /// Of a column or its sum, fewer clouds showed the same than the question wanted.
    Quorum {
        /// The column's name.
        column: String,
        /// How many were to.
        wanted: usize,
        /// How many did.
        there: usize,
        /// What is known of clouds.
        report: Report,
    },
    /// Whoever waits has called it off.
    CalledOff,
}

/// Rows, ascending, and the columns that were wanted of them.
pub struct Found {
    /// The rows' numbers.
    pub rows: Vec<u64>,
    /// The columns, in the order in which they were wanted.
    pub columns: Vec<Plain>,
}

/// Rows that are about to be put.
pub struct Coded<'a> {
    rows: &'a [u64],
    columns: &'a [Plain],
    common: Common,
}

/// Rows, and parts of answers, that a cloud may show beyond four times as many as were declared.
const ROWS_SPARE: u64 = 1 << 20;
/// Places of rows from before the database was put back that are looked at at once.
const OTHERS_MAX: usize = 1 << 20;

fn refused(unfit: Unfit) -> Failure {
    Failure::Refused(format!("rows that were not checked: {unfit:?}"))
}

/// What an answer is about, and who waits for it.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    /// Which rows there are.
    pub state: &'a State,
    /// Who waits.
    pub watch: &'a dyn Watch,
    /// What the answer is to be above all.
    pub goal: Goal,
}

/// A dispersed table and its clouds.
pub struct Table {
    coder: Coder,
    clouds: Vec<Arc<dyn Provider>>,
}

impl Table {
    /// A table at its clouds, in the order in which they were declared.
    #[must_use]
    pub fn new(coder: Coder, clouds: Vec<Arc<dyn Provider>>) -> Self {
        assert_eq!(coder.declaration().clouds.len(), clouds.len(), "a provider for each cloud");
        Self { coder, clouds }
    }

    /// What codes it.
    #[must_use]
    pub fn coder(&self) -> &Coder {
        &self.coder
    }

    pub(crate) fn clouds(&self) -> &[Arc<dyn Provider>] {
        &self.clouds
    }

    /// Codes rows, ascending, with the values of all columns: what is the same at all clouds.
    ///
    /// # Errors
    /// [`Failure::Refused`]: rows that were not checked.
    pub fn code<'a>(&self, state: &State, rows: &'a [u64], columns: &'a [Plain]) -> Result<Coded<'a>, Failure> {
        let common = self.coder.common(&state.epochs, rows, columns).map_err(refused)?;
        Ok(Coded { rows, columns, common })
    }

    /// Tells a cloud of coded rows.
    ///
    /// # Errors
    /// [`Failure`]: it may have some of them.
    pub fn put(&self, state: &State, cloud: usize, coded: &Coded<'_>) -> Result<(), Failure> {
        let own = (coded.columns, &coded.common);
        let fragments = self.coder.fragments(&state.epochs, cloud, coded.rows, own).map_err(refused)?;
        self.clouds[cloud].put(&self.coder.table_name(cloud), &fragments)
    }

    /// Tells a cloud of rows that are gone.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn remove(&self, state: &State, cloud: usize, rows: &Rows) -> Result<(), Failure> {
        self.remove_places(cloud, &self.coder.sorted_places(&state.epochs, cloud, rows))
    }

    /// Tells a cloud to let go of what it has at places, ascending, of which no row is known.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn remove_places(&self, cloud: usize, places: &[u64]) -> Result<(), Failure> {
        self.clouds[cloud].remove(&self.coder.table_name(cloud), places)
    }

    /// The rows that a cloud says it has, dispersed or not, and places, ascending, of what it has from before the database was put back.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn rows_at(&self, asking: Asking<'_>, cloud: usize) -> Result<(Rows, Vec<u64>), Failure> {
        let (mut rows, mut others) = (Rows::new(), Vec::new());
        let (is_enough, progress) = (AtomicBool::new(false), Progress::default());
        let asked = (self.coder.table_name(cloud), Question::default());
        let wait = self.wait(asking.watch, &is_enough, &progress);
        asked::ask(&self.clouds[cloud], asked, wait, &mut |answer| {
            asking.watch.part(answer.rows.places.len() * size_of::<u64>())?;
            for place in answer.rows.places {
                match self.coder.row(&asking.state.epochs, cloud, place) {
                    Some(row) => drop(rows.insert(row)),
                    // What is more than fits here is seen when these are gone.
                    None if others.len() < OTHERS_MAX => others.push(place),
                    None => {}
                }
            }
            Ok(())
        })?;
        others.sort_unstable();
        Ok((rows, others))
    }

    /// Who waits, for as many rows as an honest cloud may show: rows may lie there twice after a cut, and others from before the database
    /// was put back.
    pub(crate) fn wait<'a>(&self, watch: &'a dyn Watch, is_enough: &'a AtomicBool, progress: &'a Progress) -> Wait<'a> {
        let rows_max = self.coder.declaration().rows_max.saturating_mul(4).saturating_add(ROWS_SPARE);
        Wait { watch, is_enough, progress, rows_max }
    }

    /// Has a cloud let go of the table.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn drop_at(&self, cloud: usize) -> Result<(), Failure> {
        self.clouds[cloud].drop_table(&self.coder.table_name(cloud))
    }

    /// The rows of which all conditions may be true, with the columns that are wanted; conditions are to be asked again of what
    /// comes back.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub fn read(
        &self,
        asking: Asking<'_>,
        wanted: &[u16],
        conditions: &[Condition],
        report: &mut Report,
    ) -> Result<Found, Unanswered> {
        let mut rows = asking.state.live.clone();
        for condition in conditions {
            if let Some(matching) = self.matching(asking, condition, report)? {
                rows &= matching;
            }
        }
        self.read_rows(asking, wanted, &rows, report)
    }

    /// The rows of these that are live, with the columns that are wanted.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub fn read_rows(
        &self,
        asking: Asking<'_>,
        wanted: &[u16],
        rows: &Rows,
        report: &mut Report,
    ) -> Result<Found, Unanswered> {
        let set = rows & &asking.state.live;
        let rows: Vec<u64> = set.iter().collect();
        if rows.is_empty() {
            let empty = |id: &u16| self.coder.declaration().column(*id).map(|column| Plain::empty(column.kind));
            return Ok(Found { rows, columns: wanted.iter().filter_map(empty).collect() });
        }
        let mut columns: Vec<Option<Plain>> = wanted.iter().map(|_| None).collect();
        for group in self.together(wanted) {
            let ids: Vec<u16> = group.iter().map(|at| wanted[*at]).collect();
            let found = match (self.pieces_of(&ids), asking.goal) {
                (Some(cut), _) => self.fetch_pieces(asking, (&ids, cut), (&rows, &set), report)?,
                (None, Goal::Reliability(_)) => self.fetch_confirmed(asking, &ids, (&rows, &set), report)?,
                (None, _) => self.fetch_all(asking, &ids, (&rows, &set), report)?,
            };
            group.iter().zip(found).for_each(|(at, column)| columns[*at] = Some(column));
        }
        // Each column is of one group.
        Ok(Found { rows, columns: columns.into_iter().flatten().collect() })
    }

    /// Columns, by their places, that are fetched together: whole ones, and those in pieces at the same clouds.
    fn together(&self, wanted: &[u16]) -> Vec<Vec<usize>> {
        let placement = self.coder.placement();
        let is_whole = |id: u16| placement.fragment(id, Coding::Cell).is_some();
        let mut groups: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
        for (at, id) in wanted.iter().enumerate() {
            let clouds = if is_whole(*id) { Vec::new() } else { placement.cell_holders(*id) };
            match groups.iter_mut().find(|(own, _)| *own == clouds) {
                Some((_, group)) => group.push(at),
                None => groups.push((clouds, vec![at])),
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }

    fn pieces_of(&self, ids: &[u16]) -> Option<Pieces> {
        let declaration = self.coder.declaration();
        declaration.pieces(declaration.column(*ids.first()?)?)
    }

    fn unanswered(&self, wanted: &[u16], report: &Report) -> Unanswered {
        let name = wanted
            .iter()
            .filter_map(|id| self.coder.declaration().column(*id))
            .find(|column| self.coder.placement().cell_holders(column.id).iter().all(|cloud| report.blames(*cloud)));
        let column = name.map_or_else(String::new, |column| column.name.clone());
        Unanswered::Column { column, report: report.clone() }
    }

    /// Who is asked next for columns that are missing, by their places, and for which; none if nobody is left.
    fn next_questions(
        &self,
        wanted: &[u16],
        mut missing: Vec<usize>,
        asked: &mut [Vec<usize>],
    ) -> Option<Vec<(usize, Vec<usize>)>> {
        let mut questions = Vec::new();
        while !missing.is_empty() {
            let gives = |cloud: usize, at: usize| {
                let cells = self.coder.placement().fragment(wanted[at], Coding::Cell);
                !asked[cloud].contains(&at) && cells.is_some_and(|cells| cells.holders.contains(&cloud))
            };
            // Whoever can give the most of them: as few questions as there may be.
            let cloud = (0..self.clouds.len())
                .rev()
                .max_by_key(|cloud| missing.iter().filter(|at| gives(*cloud, **at)).count())?;
            let own: Vec<usize> = missing.iter().copied().filter(|at| gives(cloud, *at)).collect();
            if own.is_empty() {
                break;
            }
            missing.retain(|at| !own.contains(at));
            asked[cloud].extend(&own);
            questions.push((cloud, own));
        }
        (!questions.is_empty()).then_some(questions)
    }

    /// Fetches columns from clouds, which answer at the same time. What one does not give another one is asked for; and what one has not
    /// given after a while, too.
    fn fetch_all(
        &self,
        asking: Asking<'_>,
        wanted: &[u16],
        rows: (&[u64], &Rows),
        report: &mut Report,
    ) -> Result<Vec<Plain>, Unanswered> {
        let mut columns: Vec<Option<Plain>> = wanted.iter().map(|_| None).collect();
        let is_enough = AtomicBool::new(false);
        let fetch = |cloud: usize, places_of: &[usize], progress: &Progress| {
            let ids: Vec<u16> = places_of.iter().map(|at| wanted[*at]).collect();
            let wait = self.wait(asking.watch, &is_enough, progress);
            self.fetch((asking.state, wait), cloud, &ids, rows)
        };
        let fetch = &fetch;
        std::thread::scope(|scope| {
            let (mut asked, mut questions) = (vec![Vec::new(); self.clouds.len()], Vec::<(usize, Vec<usize>)>::new());
            let mut running = Running::new(scope);
            let done = loop {
                // What is on its way is not asked for twice, unless it is slow.
                let coming: Vec<usize> =
                    running.coming().flat_map(|number| questions[number].1.iter().copied()).collect();
                let is_missing = |at: &usize| columns[*at].is_none() && !coming.contains(at);
                let missing = (0..wanted.len()).filter(is_missing).collect();
                for (cloud, of) in self.next_questions(wanted, missing, &mut asked).unwrap_or_default() {
                    questions.push((cloud, of.clone()));
                    running.start(questions.len() - 1, move |progress| fetch(cloud, &of, progress));
                }
                if running.is_empty() || columns.iter().all(Option::is_some) {
                    break Ok(());
                }
                let Some((number, fetched)) = running.next() else { continue };
                let (cloud, of) = &questions[number];
                match fetched {
                    Some(Ok(Fetched { columns: found, faults })) => {
                        faults.into_iter().for_each(|(cloud, fault)| report.note(cloud, fault));
                        for (at, column) in of.iter().zip(found) {
                            columns[*at] = columns[*at].take().or(column);
                        }
                    }
                    Some(Err(unanswered)) => break Err(unanswered),
                    None => report.note(*cloud, Fault::Failed(Failure::Malformed("what asks it broke off".into()))),
                }
            };
            is_enough.store(true, Ordering::Relaxed);
            running.slow().for_each(|number| report.note(questions[number].0, Fault::Slow));
            done
        })?;
        let is_whole = columns.iter().all(Option::is_some);
        if is_whole { Ok(columns.into_iter().flatten().collect()) } else { Err(self.unanswered(wanted, report)) }
    }

    /// The same from every cloud that has them, as many of which as are wanted must show each column whole. Those that are slow are waited
    /// for as long as they are needed.
    fn fetch_confirmed(
        &self,
        asking: Asking<'_>,
        wanted: &[u16],
        rows: (&[u64], &Rows),
        report: &mut Report,
    ) -> Result<Vec<Plain>, Unanswered> {
        let (is_enough, mut gathered) = (AtomicBool::new(false), Confirmed::new(self, asking.goal, wanted));
        let fetch = |cloud: usize, ids: &[u16], progress: &Progress| {
            self.fetch((asking.state, self.wait(asking.watch, &is_enough, progress)), cloud, ids, rows)
        };
        let fetch = &fetch;
        let asked: Vec<Vec<usize>> = (0..self.clouds.len()).map(|cloud| gathered.held_by(cloud)).collect();
        std::thread::scope(|scope| {
            let mut running = Running::new(scope);
            for (cloud, of) in asked.iter().enumerate().filter(|(_, of)| !of.is_empty()) {
                let ids: Vec<u16> = of.iter().map(|at| wanted[*at]).collect();
                running.start(cloud, move |progress| fetch(cloud, &ids, progress));
            }
            let done = loop {
                let is_waiting = running.coming().next().is_some() || !gathered.is_confirmed();
                if running.is_empty() || !is_waiting {
                    break Ok(());
                }
                let Some((cloud, fetched)) = running.next() else { continue };
                match fetched {
                    Some(Ok(Fetched { columns, faults })) => {
                        faults.into_iter().for_each(|(cloud, fault)| report.note(cloud, fault));
                        gathered.add(&asked[cloud], columns);
                    }
                    Some(Err(unanswered)) => break Err(unanswered),
                    None => report.note(cloud, Fault::Failed(Failure::Malformed("what asks it broke off".into()))),
                }
            };
            is_enough.store(true, Ordering::Relaxed);
            running.slow().for_each(|cloud| report.note(cloud, Fault::Slow));
            done
        })?;
        gathered.columns(self, wanted, report)
    }

    /// Columns of rows from one cloud; none for those that it does not give as they were sealed.
    fn fetch(
        &self,
        (state, wait): (&State, Wait<'_>),
        cloud: usize,
        ids: &[u16],
        (rows, set): (&[u64], &Rows),
    ) -> Result<Fetched, Unanswered> {
        let names: Vec<Name> = ids.iter().map(|id| self.coder.column_name(cloud, *id, Coding::Cell)).collect();
        let nothing = |faults| Ok(Fetched { columns: ids.iter().map(|_| None).collect(), faults });
        match self.gather((state, wait), cloud, names, (rows, set))? {
            Came::Whole(gathered) => {
                let columns = self.open(state, ids, rows, &gathered);
                let is_forged = columns.iter().any(Option::is_none);
                Ok(Fetched { columns, faults: is_forged.then_some((cloud, Fault::Forged)).into_iter().collect() })
            }
            Came::Late => nothing(Vec::new()),
            Came::Not(fault) => nothing(vec![(cloud, fault)]),
        }
    }

    /// What one cloud has of rows in columns of strings.
    pub(crate) fn gather(
        &self,
        (state, wait): (&State, Wait<'_>),
        cloud: usize,
        names: Vec<Name>,
        (rows, set): (&[u64], &Rows),
    ) -> Result<Came, Unanswered> {
        let is_all = *set == state.live;
        let places = (!is_all).then(|| self.coder.sorted_places(&state.epochs, cloud, rows.iter().copied()));
        let question = Question { columns: names.clone(), places, ..Question::default() };
        let mut gathered = Gathered::new(names.len());
        // What is not wanted is passed over: rows that are on their way, that are gone, or that are of before.
        let wanted = |place| self.coder.row(&state.epochs, cloud, place).filter(|row| set.contains(*row));
        let mut take = |answer: Answer| gathered.add(&names, answer, rows.len(), wanted, wait.watch);
        let asked = (self.coder.table_name(cloud), question);
        match asked::ask(&self.clouds[cloud], asked, wait, &mut take) {
            Ok(true) => Ok(if gathered.order(rows) { Came::Whole(gathered) } else { Came::Not(Fault::Lacks) }),
            Ok(false) => Ok(Came::Late),
            Err(Failure::CalledOff) => Err(Unanswered::CalledOff),
            Err(failure) => Ok(Came::Not(Fault::Failed(failure))),
        }
    }

    /// Opens columns of cells, at the same time; none for those of which one does not open.
    fn open(&self, state: &State, ids: &[u16], rows: &[u64], gathered: &Gathered) -> Vec<Option<Plain>> {
        let open = |at: usize, id: u16| {
            let column = self.coder.declaration().column(id)?;
            let mut values = Plain::empty(column.kind);
            self.coder.open(&state.epochs, column, rows, gathered.strings(at), &mut values).is_ok().then_some(values)
        };
        let open = &open;
        std::thread::scope(|scope| {
            let columns: Vec<_> = ids.iter().enumerate().map(|(at, id)| scope.spawn(move || open(at, *id))).collect();
            columns.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        })
    }

    /// The rows that clouds name for a condition; none: no cloud can be asked for it.
    fn matching(
        &self,
        asking: Asking<'_>,
        condition: &Condition,
        report: &mut Report,
    ) -> Result<Option<Rows>, Unanswered> {
        if asking.goal == Goal::Performance {
            return self.named_first(asking, condition, report);
        }
        let mut matching = None;
        for (cloud, named) in self.named(asking, condition) {
            match named {
                Ok(named) => *matching.get_or_insert_with(Rows::new) |= named,
                Err(Failure::CalledOff) => return Err(Unanswered::CalledOff),
                Err(failure) => report.note(cloud, Fault::Failed(failure)),
            }
        }
        Ok(matching)
    }

    /// What a cloud is asked for a condition; none if it has no code for it.
    pub(crate) fn tests(&self, cloud: usize, condition: &Condition) -> Option<Vec<Test>> {
        let column = |id: &u16| self.coder.declaration().column(*id);
        match condition {
            Condition::Equal { column: id, values } => {
                let column = column(id)?;
                let tagged = self.coder.placement().fragment(column.id, Coding::Tag).is_some();
                match &values[..] {
                    // Ordered codes know what is equal, too, as far as they go.
                    [value] if !tagged => {
                        Some(vec![self.coder.compared(cloud, column, value, [false, true, false])?])
                    }
                    _ => Some(vec![self.coder.tagged(cloud, column, values)?]),
                }
            }
            Condition::Prefix { column: id, text } => Some(vec![self.coder.begun(cloud, column(id)?, text)?]),
            Condition::Range { column: id, low, high } => {
                let column = column(id)?;
                let mut tests = Vec::new();
                for (bound, side) in [(low, 0), (high, 2)] {
                    let Some((value, counts)) = bound else { continue };
                    let mut allowed = [false, *counts, false];
                    allowed[side] = true;
                    tests.push(self.coder.compared(cloud, column, value, allowed)?);
                }
                (!tests.is_empty()).then_some(tests)
            }
        }
    }
}

/// Columns that several clouds are to show alike.
struct Confirmed {
    /// For each column, the clouds that have it, how many are to show it, and how many have.
    counts: Vec<(Vec<usize>, usize, usize)>,
    columns: Vec<Option<Plain>>,
}

impl Confirmed {
    fn new(table: &Table, goal: Goal, wanted: &[u16]) -> Self {
        let holders = |id: &u16| {
            let cells = table.coder.placement().fragment(*id, Coding::Cell);
            let holders = cells.map_or_else(Vec::new, |cells| cells.holders.clone());
            let quorum = goal.quorum(holders.len()).unwrap_or(1);
            (holders, quorum, 0)
        };
        Self { counts: wanted.iter().map(holders).collect(), columns: wanted.iter().map(|_| None).collect() }
    }

    /// The places of columns that a cloud has.
    fn held_by(&self, cloud: usize) -> Vec<usize> {
        (0..self.counts.len()).filter(|at| self.counts[*at].0.contains(&cloud)).collect()
    }

    fn add(&mut self, of: &[usize], columns: Vec<Option<Plain>>) {
        for (at, column) in of.iter().zip(columns) {
            // Cells open for what was sealed for their rows alone: two that open show the same.
            self.counts[*at].2 += usize::from(column.is_some());
            self.columns[*at] = self.columns[*at].take().or(column);
        }
    }

    fn is_confirmed(&self) -> bool {
        self.counts.iter().all(|(_, quorum, there)| there >= quorum)
    }

    fn columns(self, table: &Table, wanted: &[u16], report: &Report) -> Result<Vec<Plain>, Unanswered> {
        let mut columns = Vec::new();
        for ((id, (_, quorum, there)), column) in wanted.iter().zip(self.counts).zip(self.columns) {
            match column.filter(|_| there >= quorum) {
                Some(column) => columns.push(column),
                None => {
                    let column = table.coder.declaration().column(*id).map_or_else(String::new, |of| of.name.clone());
                    return Err(Unanswered::Quorum { column, wanted: quorum, there, report: report.clone() });
                }
            }
        }
        Ok(columns)
    }
}

/// What a cloud gave.
struct Fetched {
    /// The columns, or none where they are not as they were sealed.
    columns: Vec<Option<Plain>>,
    /// What is to be said of it.
    faults: Vec<(usize, Fault)>,
}

/// What came of a question for rows.
pub(crate) enum Came {
    /// All of them.
    Whole(Gathered),
    /// Nothing, for others were faster.
    Late,
    /// Not what was asked for.
    Not(Fault),
}

/// Parts of an answer put together: of wanted rows alone, and each once, so that a cloud cannot have more kept than was asked for.
pub(crate) struct Gathered {
    /// The rows, each with its place here.
    rows: Vec<(u64, usize)>,
    cells: Vec<Strings>,
}

impl Gathered {
    fn new(columns: usize) -> Self {
        Self { rows: Vec::new(), cells: vec![Strings::default(); columns] }
    }

    fn add(
        &mut self,
        names: &[Name],
        answer: Answer,
        rows_max: usize,
        wanted: impl Fn(u64) -> Option<u64>,
        watch: &dyn Watch,
    ) -> Result<(), Failure> {
        let malformed = |what: &str| Failure::Malformed(what.into());
        if !answer.rows.is_even() {
            return Err(malformed("columns of different lengths"));
        }
        let strings = names.iter().map(|name| match answer.rows.column(name) {
            Some(Data::Strings(strings)) => Ok(strings),
            Some(Data::Shares(_)) => Err(malformed("numbers for cells")),
            None => Err(malformed("a column is missing")),
        });
        let strings: Vec<&Strings> = strings.collect::<Result<_, Failure>>()?;
        // Somebody may have called it off while nothing came that is wanted.
        watch.part(0)?;
        for (at, place) in answer.rows.places.iter().enumerate() {
            let Some(row) = wanted(*place) else { continue };
            if self.rows.len() == rows_max {
                return Err(malformed("a row twice"));
            }
            watch.part(size_of::<(u64, usize)>() + strings.iter().map(|of| of.get(at).len()).sum::<usize>())?;
            self.rows.push((row, self.rows.len()));
            self.cells.iter_mut().zip(&strings).for_each(|(cells, of)| cells.push(of.get(at)));
        }
        Ok(())
    }

    /// Puts the rows in order; whether they are those that were wanted, which are ascending.
    fn order(&mut self, wanted: &[u64]) -> bool {
        self.rows.sort_unstable();
        self.rows.len() == wanted.len() && self.rows.iter().zip(wanted).all(|((own, _), row)| own == row)
    }

    /// The string of a column for the nth row.
    pub fn string(&self, column: usize, nth: usize) -> &[u8] {
        self.cells[column].get(self.rows[nth].1)
    }

    /// Those of all rows.
    fn strings(&self, column: usize) -> impl ExactSizeIterator<Item = &[u8]> {
        self.rows.iter().map(move |(_, at)| self.cells[column].get(*at))
    }
}
