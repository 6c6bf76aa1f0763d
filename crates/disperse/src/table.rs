//! A dispersed table as its owner asks for it: questions go to clouds, and what comes back is checked.
//!
//! What may be believed (DESIGN.md, "Dispersed tables"), if no more than `may_fail` clouds are silent or lie:
//! 1. A cell opens for the row that it was sealed for, or not at all: one honest answer is enough, and a cloud that lacks a row, or
//!    shows another cell, is named. Of cells in pieces it takes as many answers as give them back (pieced.rs).
//! 2. Which rows an index code matches is asked of every cloud that has the code, `may_fail + 1` of them. One of those that answer is
//!    honest, and names all rows that match: so all answers together miss none. What they name too much shows when the cells are
//!    open. Where they differ, some of what they differ in is opened at once, and who is wrong is named (disputed.rs). Once more than
//!    `may_fail` clouds have been found at fault nobody's word on that counts, and the rows that it left out are read, too.
//! 3. Sums: sums.rs.
//! 4. Who wants less, or more, says so (goal.rs).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::asked::{self, Progress, Wait};
use crate::coder::{Coder, Common, Unfit};
use crate::coding::erasure::Pieces;
use crate::disputed::Named;
use crate::fragments::{Fragments, Question, Test};
use crate::gathered::Wanted;
use crate::goal::Goal;
use crate::lateness::Lateness;
use crate::placement::Coding;
use crate::plain::{Plain, Value};
use crate::provider::{Failure, MemoryProvider, Provider};
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
    /// It does not name rows of which a condition is true that it has a code of.
    LeavesOut,
    /// It names rows of which a condition is not true that it has a code of.
    NamesOthers,
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
            Self::LeavesOut => f.write_str("it leaves out rows of which a condition is true"),
            Self::NamesOthers => f.write_str("it names rows of which a condition is not true"),
            Self::WrongSum => f.write_str("its sum is not that of its shares"),
            Self::Slow => f.write_str("it is slow: another one was asked and has answered"),
        }
    }
}

impl Fault {
    /// Whether the cloud may give later what it does not give now.
    fn is_silence(&self) -> bool {
        match self {
            Self::Failed(failure) => !matches!(failure, Failure::Malformed(_) | Failure::NoTable),
            fault => *fault == Self::Slow,
        }
    }
}

impl Report {
    pub(crate) fn note(&mut self, cloud: usize, fault: Fault) {
        if !self.faults.contains(&(cloud, fault.clone())) {
            self.faults.push((cloud, fault));
        }
    }

    /// What another answer says of clouds, too.
    pub fn add(&mut self, other: Self) {
        other.faults.into_iter().for_each(|(cloud, fault)| self.note(cloud, fault));
        self.is_unverified |= other.is_unverified;
    }

    /// Whether a cloud did not answer, or was slow to.
    pub(crate) fn is_silent(&self, cloud: usize) -> bool {
        self.faults.iter().any(|(own, fault)| *own == cloud && fault.is_silence())
    }

    /// Whether a cloud did not answer at all.
    pub(crate) fn has_failed(&self, cloud: usize) -> bool {
        self.faults.iter().any(|(own, fault)| *own == cloud && fault.is_silence() && *fault != Fault::Slow)
    }

    /// The clouds that gave not all of what they were asked for, or something else.
    fn at_fault(&self) -> BTreeSet<usize> {
        self.faults.iter().filter(|(_, fault)| *fault != Fault::Slow).map(|(cloud, _)| *cloud).collect()
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

impl Unanswered {
    /// Whether clouds may give it that do not answer now.
    #[must_use]
    pub fn may_come(&self) -> bool {
        let is_silent = |(_, fault): &(usize, Fault)| fault.is_silence();
        match self {
            Self::CalledOff => true,
            Self::Column { report, .. } | Self::Pieces { report, .. } | Self::Quorum { report, .. } => {
                report.faults.iter().any(is_silent)
            }
        }
    }
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

    /// The same table, of which one cloud has nothing; its coder is made anew.
    #[must_use]
    pub fn without(&self, coder: Coder, cloud: usize) -> Self {
        let mut clouds = self.clouds.clone();
        clouds[cloud] = Arc::new(MemoryProvider::default());
        Self::new(coder, clouds)
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
        self.clouds[cloud].put(&self.coder.table_name(cloud), &self.fragments(state, cloud, coded)?)
    }

    /// What a cloud is given of coded rows.
    pub(crate) fn fragments(&self, state: &State, cloud: usize, coded: &Coded<'_>) -> Result<Fragments, Failure> {
        let own = (coded.columns, &coded.common);
        self.coder.fragments(&state.epochs, cloud, coded.rows, own).map_err(refused)
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
        match self.take_rows(asking, cloud, (&mut rows, &mut others))? {
            Some(damage) => Err(damage),
            None => {
                others.sort_unstable();
                Ok((rows, others))
            }
        }
    }

    /// Which other cloud was given what lies where a cloud is looked for, if anything of any does: then whoever answers is that one, and
    /// together with what this one is to have it would know too much.
    ///
    /// # Errors
    /// [`Failure`]: it does not say.
    pub fn is_at_the_place_of(&self, asking: Asking<'_>, cloud: usize) -> Result<Option<usize>, Failure> {
        for other in (0..self.clouds.len()).filter(|other| *other != cloud) {
            let (is_enough, progress, mut is_there) = (AtomicBool::new(false), Progress::default(), false);
            let wait = self.wait(asking.watch, &is_enough, &progress);
            let asked = (self.coder.table_name(other), Question::default());
            let done = asked::ask_for_rows(&self.clouds[cloud], asked, wait, &mut |answer| {
                is_there |= !answer.rows.places.is_empty();
                // The first of them tells enough.
                if is_there { Err(Failure::NoTable) } else { Ok(()) }
            });
            match done {
                _ if is_there => return Ok(Some(other)),
                // Files are written for their cloud, and are no others' as they were written.
                Ok((_, Some(_))) => return Ok(Some(other)),
                Ok((_, None)) | Err(Failure::NoTable) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(None)
    }

    /// The rows that a cloud shows, and whether it says that it has no others: one that fails, or has files that are not as they were written,
    /// may have any. One that is silent, as is known of it, is not asked.
    ///
    /// # Errors
    /// [`Unanswered::CalledOff`].
    pub fn rows_shown(&self, asking: Asking<'_>, cloud: usize, report: &Report) -> Result<(Rows, bool), Unanswered> {
        let (mut rows, mut others) = (Rows::new(), Vec::new());
        if report.is_silent(cloud) || self.is_late(cloud) {
            return Ok((rows, false));
        }
        match self.take_rows(asking, cloud, (&mut rows, &mut others)) {
            Ok(damage) => Ok((rows, damage.is_none())),
            Err(Failure::CalledOff) => Err(Unanswered::CalledOff),
            Err(failure) => Ok((Rows::new(), failure == Failure::NoTable)),
        }
    }

    /// Takes the rows that a cloud shows, and places of others; what is wrong with the rest.
    fn take_rows(
        &self,
        asking: Asking<'_>,
        cloud: usize,
        (rows, others): (&mut Rows, &mut Vec<u64>),
    ) -> Result<Option<Failure>, Failure> {
        let (is_enough, progress) = (AtomicBool::new(false), Progress::default());
        let asked = (self.coder.table_name(cloud), Question::default());
        let wait = self.wait(asking.watch, &is_enough, &progress);
        let done = asked::ask_for_rows(&self.clouds[cloud], asked, wait, &mut |answer| {
            asking.watch.part(answer.rows.places.len() * size_of::<u64>())?;
            let found = self.coder.rows(&asking.state.epochs, cloud, answer.rows.places.clone());
            for (place, row) in answer.rows.places.into_iter().zip(found) {
                match row {
                    Some(row) => drop(rows.insert(row)),
                    // What is more than fits here is seen when these are gone.
                    None if others.len() < OTHERS_MAX => others.push(place),
                    None => {}
                }
            }
            Ok(())
        })?;
        Ok(done.1)
    }

    /// Whether a cloud was waited for in vain a moment ago.
    pub(crate) fn is_late(&self, cloud: usize) -> bool {
        self.clouds[cloud].lateness().is_some_and(Lateness::is_late)
    }

    /// The places in a list of clouds, those last of which the cloud was waited for in vain a moment ago.
    pub(crate) fn late_last(&self, clouds: &[usize]) -> Vec<usize> {
        let (late, mut others): (Vec<usize>, Vec<usize>) =
            (0..clouds.len()).partition(|place| self.is_late(clouds[*place]));
        others.extend(late);
        others
    }

    /// A cloud is waited for in vain.
    pub(crate) fn note_slow(&self, cloud: usize, report: &mut Report) {
        report.note(cloud, Fault::Slow);
        self.note_late(cloud);
    }

    /// The next question does not wait for it as long.
    pub(crate) fn note_late(&self, cloud: usize) {
        self.clouds[cloud].lateness().into_iter().for_each(Lateness::note);
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
            if self.is_beyond_belief(asking.goal, report) {
                break;
            }
            if let Some(matching) = self.matching(asking, condition, report)? {
                rows &= matching;
            }
        }
        let found = self.read_rows(asking, wanted, &rows, report)?;
        let left_out = &asking.state.live - &rows;
        if left_out.is_empty() || !self.is_beyond_belief(asking.goal, report) {
            return Ok(found);
        }
        let others = self.read_rows(asking, wanted, &left_out, report)?;
        Ok(self.joined(wanted, &[found, others]))
    }

    /// Whether so many clouds have been found at fault that those that say which rows match may all be wrong.
    #[must_use]
    pub fn is_beyond_belief(&self, goal: Goal, report: &Report) -> bool {
        goal != Goal::Performance && report.at_fault().len() > self.coder.declaration().may_fail
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
        let parts = asking.state.parts(&set);
        if parts.len() <= 1 {
            return self.read_part(asking, wanted, set, report);
        }
        let read = |part| self.read_part(asking, wanted, part, report);
        let parts: Vec<Found> = parts.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(self.joined(wanted, &parts))
    }

    /// Parts of what was wanted, in order.
    pub(crate) fn joined(&self, wanted: &[u16], parts: &[Found]) -> Found {
        let of = |(part, found): (u32, &Found)| {
            found.rows.iter().zip(0..).map(move |(row, at)| (*row, (part, at))).collect::<Vec<_>>()
        };
        let mut places: Vec<(u64, (u32, u32))> = (0..).zip(parts).flat_map(of).collect();
        places.sort_unstable();
        let (rows, places): (Vec<u64>, Vec<(u32, u32)>) = places.into_iter().unzip();
        let kinds = wanted.iter().filter_map(|id| self.coder.declaration().column(*id)).map(|column| column.kind);
        let column = |(at, kind)| {
            let parts: Vec<&Plain> = parts.iter().map(|found| &found.columns[at]).collect();
            Plain::picked(kind, &parts, &places)
        };
        let columns = kinds.enumerate().map(column).collect();
        Found { rows, columns }
    }

    /// The same of live rows that the same clouds are owed.
    fn read_part(
        &self,
        asking: Asking<'_>,
        wanted: &[u16],
        set: Rows,
        report: &mut Report,
    ) -> Result<Found, Unanswered> {
        let rows: Vec<u64> = set.iter().collect();
        if rows.is_empty() {
            let empty = |id: &u16| self.coder.declaration().column(*id).map(|column| Plain::empty(column.kind));
            return Ok(Found { rows, columns: wanted.iter().filter_map(empty).collect() });
        }
        let wanted_rows = Wanted { rows: &rows, set: &set };
        let mut columns: Vec<Option<Plain>> = wanted.iter().map(|_| None).collect();
        for group in self.together(wanted) {
            let ids: Vec<u16> = group.iter().map(|at| wanted[*at]).collect();
            let found = match self.fetch_together(asking, &ids, wanted_rows, report) {
                Err(why) => self.fetch_what_each_shows(asking, &ids, wanted_rows, (report, why))?,
                Ok(found) => found,
            };
            group.iter().zip(found).for_each(|(at, column)| columns[*at] = Some(column));
        }
        // Each column is of one group.
        Ok(Found { rows, columns: columns.into_iter().flatten().collect() })
    }

    /// Columns that are fetched together, each from clouds that show all of these rows.
    pub(crate) fn fetch_together(
        &self,
        asking: Asking<'_>,
        ids: &[u16],
        wanted: Wanted<'_>,
        report: &mut Report,
    ) -> Result<Vec<Plain>, Unanswered> {
        match (self.pieces_of(ids), asking.goal) {
            (Some(cut), _) => self.fetch_pieces(asking, (ids, cut), wanted, report),
            (None, Goal::Reliability(_)) => self.fetch_confirmed(asking, ids, wanted, report),
            (None, _) => self.fetch_all(asking, ids, wanted, report),
        }
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

    pub(crate) fn pieces_of(&self, ids: &[u16]) -> Option<Pieces> {
        let declaration = self.coder.declaration();
        declaration.pieces(declaration.column(*ids.first()?)?)
    }

    pub(crate) fn unanswered(&self, state: &State, (wanted, rows): (&[u16], &Rows), report: &Report) -> Unanswered {
        let is_in_vain = |cloud: &usize| report.blames(*cloud) || !state.has(*cloud, rows);
        let name = wanted
            .iter()
            .filter_map(|id| self.coder.declaration().column(*id))
            .find(|column| self.coder.placement().cell_holders(column.id).iter().all(is_in_vain));
        let column = name.map_or_else(String::new, |column| column.name.clone());
        Unanswered::Column { column, report: report.clone() }
    }

    /// The rows that clouds name for a condition, any of them; none: no cloud can be asked for it.
    pub(crate) fn matching(
        &self,
        asking: Asking<'_>,
        condition: &Condition,
        report: &mut Report,
    ) -> Result<Option<Rows>, Unanswered> {
        let named = self.named_by_each(asking, condition, report)?;
        // What some cloud is owed it cannot name: its values decide.
        Ok(named.into_iter().reduce(|all, named| all | named).map(|matching| matching | asking.state.owed()))
    }

    /// The rows of which all clouds that are asked for a condition say that it is true; none: no cloud can be asked for it.
    pub(crate) fn surely(
        &self,
        asking: Asking<'_>,
        condition: &Condition,
        report: &mut Report,
    ) -> Result<Option<Rows>, Unanswered> {
        let named = self.named_by_each(asking, condition, report)?;
        Ok(named.into_iter().reduce(|all, named| all & named))
    }

    /// The rows that each cloud names for a condition that answers, of those that all of them have; who names others than the rest is looked at.
    fn named_by_each(
        &self,
        asking: Asking<'_>,
        condition: &Condition,
        report: &mut Report,
    ) -> Result<Vec<Rows>, Unanswered> {
        if asking.goal == Goal::Performance {
            return Ok(self.named_first(asking, condition, report)?.into_iter().collect());
        }
        let (owed, mut answers) = (asking.state.owed(), Vec::new());
        for (cloud, named) in self.named(asking, condition) {
            match named {
                Ok(named) => answers.push((cloud, named - &owed)),
                Err(Failure::CalledOff) => return Err(Unanswered::CalledOff),
                Err(failure) => report.note(cloud, Fault::Failed(failure)),
            }
        }
        report.is_unverified |= !answers.is_empty() && self.is_said_by_one(condition);
        let named = answers.iter().map(|(_, named)| named.clone()).collect();
        self.blame(asking, &Named::new(condition, answers), report)?;
        Ok(named)
    }

    /// What a cloud is asked for a condition; none if it has no code for it.
    pub(crate) fn tests(&self, cloud: usize, condition: &Condition) -> Option<Vec<Test>> {
        let column = |id: &u16| self.coder.declaration().column(*id);
        match condition {
            Condition::Equal { column: id, values } => {
                let column = column(id)?;
                let has = |coding| self.coder.placement().fragment(column.id, coding).is_some();
                let tagged = has(Coding::Tag);
                match &values[..] {
                    [value] if !tagged && has(Coding::DangerOrder) => {
                        Some(vec![self.coder.between(cloud, column, Some((value, true)), Some((value, true)))?])
                    }
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
                if self.coder.placement().fragment(column.id, Coding::DangerOrder).is_some() {
                    let [low, high] = [low, high].map(|bound| bound.as_ref().map(|(value, counts)| (value, *counts)));
                    return Some(vec![self.coder.between(cloud, column, low, high)?]);
                }
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
