//! Rows of which it is known, before one of them is opened, that conditions are true of them: so that clouds can add them up.
//!
//! Every cloud that has a code of a condition is asked. If all of them name the same rows it is those: one of them is honest, unless more
//! have failed than were declared to. Where a code knows a value as a whole (a tag, an order of 64 bits, a beginning of few characters), the
//! condition is true of just these rows; of others it may be.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::asked::{self, HEDGE, Progress, Running, Wait};
use crate::coder::PREFIX_CHARACTERS_MAX;
use crate::declaration::{Column, Kind};
use crate::fragments::{Answer, Question};
use crate::goal::Goal;
use crate::placement::Coding;
use crate::plain::{Plain, Value};
use crate::provider::Failure;
use crate::state::{Rows, State};
use crate::sums::Sum;
use crate::table::{Asking, Condition, Fault, Found, Report, Table, Unanswered};

/// A cloud of which nothing has come for so long is one that fails: of those that have answered one is honest then, as far as no more fail than
/// were declared to.
const SILENCE: Duration = Duration::from_secs(8);
/// The same of one that was waited for in vain a moment ago: a statement asks several questions, and would wait so long for each.
const SILENCE_OF_THE_LATE: Duration = Duration::from_millis(500);

impl Condition {
    /// The column that it is about.
    #[must_use]
    pub fn column(&self) -> u16 {
        match self {
            Self::Equal { column, .. } | Self::Range { column, .. } | Self::Prefix { column, .. } => *column,
        }
    }

    /// Whether it is true of a value, which is of the column's kind; of NULL it is not. Not for floating-point numbers.
    #[must_use]
    pub fn is_true(&self, value: Option<&Value>) -> bool {
        let Some(value) = value else { return false };
        match self {
            Self::Equal { values, .. } => values.contains(value),
            Self::Prefix { text, .. } => {
                matches!(value, Value::String(bytes) if bytes.starts_with(text.as_bytes()))
            }
            Self::Range { low, high, .. } => {
                let is_in = |bound: &Option<(Value, bool)>, inside: std::cmp::Ordering| {
                    bound.as_ref().is_none_or(|(bound, counts)| match value.in_order(bound) {
                        std::cmp::Ordering::Equal => *counts,
                        other => other == inside,
                    })
                };
                is_in(low, std::cmp::Ordering::Greater) && is_in(high, std::cmp::Ordering::Less)
            }
        }
    }
}

impl Table {
    /// Whether codes know of each value whether a condition is true of it.
    #[must_use]
    pub fn knows(&self, condition: &Condition) -> bool {
        let Some(column) = self.coder().declaration().column(condition.column()) else { return false };
        let has = |coding: Coding| self.coder().placement().fragment(column.id, coding).is_some();
        let has_order = has(Coding::Order) || has(Coding::DangerOrder);
        match condition {
            Condition::Equal { values, .. } if has(Coding::Tag) => !values.is_empty() && column.kind != Kind::Float,
            Condition::Equal { values, .. } => values.len() == 1 && has_order && knows_order(column, values.iter()),
            Condition::Range { low, high, .. } => {
                let bounds = low.iter().chain(high).map(|(value, _)| value);
                has_order && (low.is_some() || high.is_some()) && knows_order(column, bounds)
            }
            Condition::Prefix { text, .. } => {
                has(Coding::Prefix) && (1..=PREFIX_CHARACTERS_MAX).contains(&text.chars().count())
            }
        }
    }

    /// The live rows of which all conditions are true; none: it takes their values to know.
    ///
    /// # Errors
    /// [`Unanswered::CalledOff`].
    pub fn exactly(
        &self,
        asking: Asking<'_>,
        conditions: &[Condition],
        report: &mut Report,
    ) -> Result<Option<Rows>, Unanswered> {
        if !conditions.iter().all(|condition| self.knows(condition)) {
            return Ok(None);
        }
        let mut rows = asking.state.live.clone();
        if !conditions.is_empty() && !asking.state.owed().is_disjoint(&rows) {
            // Some cloud cannot name all of them.
            return Ok(None);
        }
        for condition in conditions {
            let Some(named) = self.named_by_all(asking, condition, report)? else { return Ok(None) };
            rows &= named;
        }
        Ok(Some(rows))
    }

    /// The live rows that all clouds with a code of a condition name; none: they do not agree, or not all of them answer.
    fn named_by_all(
        &self,
        asking: Asking<'_>,
        condition: &Condition,
        report: &mut Report,
    ) -> Result<Option<Rows>, Unanswered> {
        if asking.goal == Goal::Performance {
            let named = self.named_first(asking, condition, report)?;
            return Ok(named.map(|named| named & &asking.state.live));
        }
        let answers = self.named(asking, condition);
        let (mut agreed, mut is_one) = (None, true);
        for (cloud, named) in answers {
            match named {
                Ok(named) => {
                    let named = named & &asking.state.live;
                    is_one &= agreed.as_ref().is_none_or(|agreed| *agreed == named);
                    agreed = Some(named);
                }
                Err(Failure::CalledOff) => return Err(Unanswered::CalledOff),
                Err(failure) => {
                    report.note(cloud, Fault::Failed(failure));
                    is_one = false;
                }
            }
        }
        let agreed = agreed.filter(|_| is_one);
        report.is_unverified |= agreed.is_some() && self.is_said_by_one(condition);
        Ok(agreed)
    }

    /// Whether nobody contradicts the cloud that says of which rows a condition is true: none may fail, and no other has a code of it.
    pub(crate) fn is_said_by_one(&self, condition: &Condition) -> bool {
        self.questions(condition).count() == 1
    }

    /// What the first cloud with a code of a condition names that answers: it may leave rows out. None: no cloud has one, or answers.
    pub(crate) fn named_first(
        &self,
        asking: Asking<'_>,
        condition: &Condition,
        report: &mut Report,
    ) -> Result<Option<Rows>, Unanswered> {
        let is_enough = AtomicBool::new(false);
        let ask = |cloud: usize, question: Question, progress: &Progress| {
            self.named_at(asking.state, self.wait(asking.watch, &is_enough, progress), cloud, question)
        };
        let ask = &ask;
        std::thread::scope(|scope| {
            let mut running = Running::new(scope);
            for (cloud, question) in self.questions(condition) {
                running.start(cloud, move |progress| ask(cloud, question, progress));
            }
            let mut named = Ok(None);
            while !running.is_empty() {
                match running.next() {
                    None => {}
                    Some((_, Some(Ok(rows)))) => {
                        report.is_unverified = true;
                        named = Ok(Some(rows));
                        break;
                    }
                    Some((_, Some(Err(Failure::CalledOff)))) => {
                        named = Err(Unanswered::CalledOff);
                        break;
                    }
                    Some((cloud, Some(Err(failure)))) => report.note(cloud, Fault::Failed(failure)),
                    Some((cloud, None)) => {
                        report.note(cloud, Fault::Failed(Failure::Malformed("what asks it broke off".into())));
                    }
                }
            }
            is_enough.store(true, Ordering::Relaxed);
            named
        })
    }

    /// What each cloud with a code of a condition is asked.
    fn questions(&self, condition: &Condition) -> impl Iterator<Item = (usize, Question)> {
        (0..self.clouds().len())
            .filter_map(|cloud| Some((cloud, Question { tests: self.tests(cloud, condition)?, ..Question::default() })))
    }

    /// The rows that a cloud names.
    fn named_at(&self, state: &State, wait: Wait<'_>, cloud: usize, question: Question) -> Result<Rows, Failure> {
        let mut named = Rows::new();
        let mut take = |answer: Answer| {
            // Rows are a few bits each, however often a cloud names them.
            wait.watch.part(0)?;
            named.extend(self.coder().rows(&state.epochs, cloud, answer.rows.places).flatten());
            Ok(())
        };
        let asked = (self.coder().table_name(cloud), question);
        match asked::ask(&self.clouds()[cloud], asked, wait, &mut take) {
            Err(Failure::NoTable) if state.may_have_nothing(cloud) => Ok(named),
            Ok(true) => Ok(named),
            // Nobody wants it any more.
            Ok(false) => Err(Failure::CalledOff),
            Err(failure) => Err(failure),
        }
    }

    /// What each cloud with a code of a condition names. They answer at the same time; one that is silent is not waited for without end.
    pub(crate) fn named(&self, asking: Asking<'_>, condition: &Condition) -> Vec<(usize, Result<Rows, Failure>)> {
        let is_enough = AtomicBool::new(false);
        let ask = |cloud: usize, question: Question, progress: &Progress| {
            self.named_at(asking.state, self.wait(asking.watch, &is_enough, progress), cloud, question)
        };
        let ask = &ask;
        std::thread::scope(|scope| {
            let (mut running, mut named) = (Running::new(scope), Vec::new());
            for (cloud, question) in self.questions(condition) {
                running.start(cloud, move |progress| ask(cloud, question, progress));
                if self.is_late(cloud) {
                    running.expect_little(cloud);
                }
            }
            // Since when nothing has come of any that is left.
            let mut silent: Option<Instant> = None;
            while !running.is_empty() {
                let are_late = running.numbers().all(|cloud| self.is_late(cloud));
                let (patience, wait) =
                    if are_late { (SILENCE_OF_THE_LATE, SILENCE_OF_THE_LATE / 2) } else { (SILENCE, HEDGE) };
                let broken = || Err(Failure::Malformed("what asks it broke off".into()));
                if let Some((cloud, answer)) = running.next_within(wait) {
                    named.push((cloud, answer.unwrap_or_else(broken)));
                }
                // One must have answered: it is he who is believed.
                if running.coming().next().is_some() || !named.iter().any(|(_, answer)| answer.is_ok()) {
                    silent = None;
                } else if silent.get_or_insert_with(Instant::now).elapsed() >= patience {
                    let late = || Err(Failure::Unreachable("it does not answer".into()));
                    running.slow().for_each(|cloud| self.note_late(cloud));
                    named.extend(running.slow().map(|cloud| (cloud, late())));
                    break;
                }
            }
            is_enough.store(true, Ordering::Relaxed);
            named
        })
    }
}

/// Whether an order's code is all of a value, and no bound lies beyond what it reaches.
fn knows_order<'a>(column: &Column, mut bounds: impl Iterator<Item = &'a Value>) -> bool {
    matches!(column.kind, Kind::Number { wide: false, .. })
        && bounds.all(|bound| matches!(bound, Value::Number(number) if i64::try_from(*number).is_ok()))
}

impl Found {
    /// Some of its rows.
    #[must_use]
    pub fn chosen(&self, rows: &Rows) -> Self {
        let places: Vec<usize> = (0..self.rows.len()).filter(|at| rows.contains(self.rows[*at])).collect();
        let rows = places.iter().map(|at| self.rows[*at]).collect();
        Self { rows, columns: self.columns.iter().map(|column| column.chosen(&places)).collect() }
    }

    /// The rows of which all conditions are true, of those that were found: `columns` says which columns these are.
    #[must_use]
    pub fn matching(&self, columns: &[u16], conditions: &[Condition]) -> Vec<usize> {
        let column = |id: u16| columns.iter().position(|own| *own == id).map(|at| &self.columns[at]);
        let is_true = |row: usize, condition: &Condition| {
            column(condition.column()).is_some_and(|plain| condition.is_true(plain.value(row).as_ref()))
        };
        (0..self.rows.len()).filter(|row| conditions.iter().all(|condition| is_true(*row, condition))).collect()
    }
}

/// The sum of some rows of a column of numbers, for whoever has them open.
#[must_use]
pub fn sum_of(plain: &Plain, rows: &[usize]) -> Sum {
    let numbers = rows.iter().filter_map(|row| plain.number(*row));
    let (total, values) = numbers.fold((Some(0_i128), 0), |(total, values), number| {
        (total.and_then(|total| total.checked_add(number)), values + 1)
    });
    Sum { total, values }
}
