//! Who leaves out rows that a condition is true of, or names others: where clouds with a code of a condition name different rows, some of
//! these are opened, and their values say who is right.

use crate::declaration::Kind;
use crate::goal::Goal;
use crate::state::Rows;
use crate::table::{Asking, Condition, Fault, Report, Table, Unanswered};

/// Rows that are opened to know who is right, of those that clouds do not agree on.
const OPENED: usize = 64;

/// What clouds name for a condition, each of them.
pub(crate) struct Named<'a> {
    condition: &'a Condition,
    answers: Vec<(usize, Rows)>,
}

impl<'a> Named<'a> {
    /// By the clouds' places.
    pub fn new(condition: &'a Condition, answers: Vec<(usize, Rows)>) -> Self {
        Self { condition, answers }
    }

    /// Some of the live rows that some of them name and others do not.
    fn disputed(&self, live: &Rows) -> Rows {
        let Some((_, first)) = self.answers.first() else { return Rows::new() };
        let (mut any, mut all) = (first.clone(), first.clone());
        for (_, rows) in &self.answers[1..] {
            any |= rows;
            all &= rows;
        }
        ((any - all) & live).iter().take(OPENED).collect()
    }
}

impl Table {
    /// Notes who does not name what it should, or names what it should not.
    ///
    /// # Errors
    /// [`Unanswered::CalledOff`]. That the rows cannot be opened is none: then nobody is at fault, as far as can be said.
    pub(crate) fn blame(&self, asking: Asking<'_>, named: &Named<'_>, report: &mut Report) -> Result<(), Unanswered> {
        let (disputed, id) = (named.disputed(&asking.state.live), named.condition.column());
        let kind = self.coder().declaration().column(id).map(|column| column.kind);
        // What is true of floating-point numbers is known to whoever opens them with their sign and order.
        if disputed.is_empty() || kind.is_none_or(|kind| kind == Kind::Float) {
            return Ok(());
        }
        let asking = Asking { goal: Goal::Ordinary, ..asking };
        let found = match self.read_rows(asking, &[id], &disputed, report) {
            Err(Unanswered::CalledOff) => return Err(Unanswered::CalledOff),
            Err(_) => return Ok(()),
            Ok(found) => found,
        };
        let is_known = self.knows(named.condition);
        let matching: Rows =
            found.matching(&[id], std::slice::from_ref(named.condition)).into_iter().map(|at| found.rows[at]).collect();
        let others = disputed - &matching;
        for (cloud, rows) in &named.answers {
            if !matching.is_subset(rows) {
                report.note(*cloud, Fault::LeavesOut);
            }
            if is_known && !others.is_disjoint(rows) {
                report.note(*cloud, Fault::NamesOthers);
            }
        }
        Ok(())
    }
}
