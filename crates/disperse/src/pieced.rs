//! Columns of which each cloud has pieces: cells are put together from as many clouds as it takes.
//!
//! A cell is right if it opens (coding/erasure.rs), so pieces are believed as little as cells. As many clouds are asked as give cells
//! back; for one that is silent or slow another one is asked. If what they give does not open, one of them lies, and another one more is
//! asked until it does: then whoever lied is named.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::asked::{Progress, Running};
use crate::coding::erasure::Pieces;
use crate::fragments::Name;
use crate::gathered::{Came, Gathered, Wanted};
use crate::placement::Coding;
use crate::plain::Plain;
use crate::provider::Failure;
use crate::table::{Asking, Fault, Report, Table, Unanswered};

/// Columns of which pieces lie at the same clouds, and what has come of them.
struct Pieced<'a> {
    ids: &'a [u16],
    /// The clouds, in the order of their pieces.
    holders: Vec<usize>,
    /// How many of them are asked at the same time.
    needed: usize,
    /// How many are enough where all others are slow.
    enough: usize,
    /// How many had come when they did not open.
    tried: usize,
    /// What came, by the numbers of pieces.
    there: Vec<Option<Gathered>>,
    /// Numbers of pieces that were wrong.
    wrong: BTreeSet<usize>,
    /// The first of the columns that did not open when they were tried last.
    failed: Option<usize>,
}

impl Pieced<'_> {
    fn count(&self) -> usize {
        self.there.iter().flatten().count()
    }

    /// How many of them are not wrong.
    fn right(&self) -> usize {
        self.count() - self.wrong.len()
    }

    /// Takes what a cloud gave; nothing: whoever asked it broke off.
    fn take(
        &mut self,
        number: usize,
        came: Option<Result<Came, Unanswered>>,
        report: &mut Report,
    ) -> Result<(), Unanswered> {
        let broken = || Fault::Failed(Failure::Malformed("what asks it broke off".into()));
        let fault = match came.transpose()? {
            Some(Came::Late) => None,
            Some(Came::Whole(gathered, fault)) => {
                self.there[number] = Some(gathered);
                fault
            }
            Some(Came::Not(fault)) => Some(fault),
            None => Some(broken()),
        };
        fault.into_iter().for_each(|fault| report.note(self.holders[number], fault));
        Ok(())
    }

    /// Whether there is something to open that has not been tried: all that is needed, or enough where no more comes.
    fn is_worth_a_try(&self, cut: Pieces, is_waiting: bool, is_all: bool) -> bool {
        let count = self.count();
        let is_over = count >= self.needed || !is_waiting && count >= self.enough || is_all;
        is_over && count >= cut.needed() && count > self.tried
    }

    /// The values, if they open. If they do not one of them lies, and one more is needed; or more are to show the same.
    fn join(&mut self, table: &Table, asking: Asking<'_>, rows: &[u64]) -> Result<Option<Vec<Plain>>, Unanswered> {
        let count = self.count();
        (self.tried, self.needed) = (count, self.needed.max(count + 1));
        let (ids, there) = (self.ids, &self.there);
        let is_called_off = AtomicBool::new(false);
        let goes_on = || {
            let goes_on = asking.watch.part(0).is_ok();
            is_called_off.fetch_or(!goes_on, Ordering::Relaxed);
            goes_on
        };
        let join = |at: usize| {
            let column = table.coder().declaration().column(ids[at])?;
            let piece = |nth: usize, number: usize| Some(there[number].as_ref()?.string(at, nth));
            let (mut wrong, mut values) = (BTreeSet::new(), Plain::empty(column.kind));
            let into = (&mut wrong, &mut values);
            let joined = table.coder().join(&asking.state.epochs, column, rows, piece, into, goes_on);
            Some((joined.is_ok().then_some(values), wrong))
        };
        let join = &join;
        let joined: Vec<_> = std::thread::scope(|scope| {
            let columns: Vec<_> = (0..ids.len()).map(|at| scope.spawn(move || join(at))).collect();
            columns.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });
        if is_called_off.into_inner() {
            return Err(Unanswered::CalledOff);
        }
        self.failed = joined.iter().position(|column| !matches!(column, Some((Some(_), _))));
        let mut columns = Vec::new();
        for (values, wrong) in joined.into_iter().flatten() {
            self.wrong.extend(wrong);
            columns.extend(values);
        }
        Ok(Some(columns).filter(|_| self.failed.is_none()))
    }
}

impl Table {
    /// Columns of which pieces lie at the same clouds.
    pub(crate) fn fetch_pieces(
        &self,
        asking: Asking<'_>,
        (ids, cut): (&[u16], Pieces),
        wanted: Wanted<'_>,
        report: &mut Report,
    ) -> Result<Vec<Plain>, Unanswered> {
        let holders = ids.first().map_or_else(Vec::new, |id| self.coder().placement().cell_holders(*id));
        // Whoever wants it certain asks them all.
        let quorum = asking.goal.quorum(holders.len());
        let (needed, enough) = match quorum {
            Some(quorum) => (holders.len(), quorum.max(cut.needed())),
            None => (cut.needed(), usize::MAX),
        };
        let there = holders.iter().map(|_| None).collect();
        let mut pieced = Pieced { ids, holders, needed, enough, tried: 0, there, wrong: BTreeSet::new(), failed: None };
        let joined = self.ask_for_pieces(asking, (&mut pieced, cut), wanted, report);
        for number in &pieced.wrong {
            report.note(pieced.holders[*number], Fault::Forged);
        }
        let name =
            |at: usize| self.coder().declaration().column(ids[at]).map_or_else(String::new, |of| of.name.clone());
        let Some(columns) = joined? else {
            return Err(match pieced.failed {
                Some(at) => Unanswered::Pieces { column: name(at), report: report.clone() },
                None => Unanswered::Column { column: name(0), report: report.clone() },
            });
        };
        match quorum {
            Some(wanted) if pieced.right() < wanted => {
                Err(Unanswered::Quorum { column: name(0), wanted, there: pieced.right(), report: report.clone() })
            }
            _ => Ok(columns),
        }
    }

    /// The cloud that has pieces of this number, and what it calls them.
    fn pieces_at(&self, pieced: &Pieced<'_>, number: usize) -> (usize, Vec<Name>) {
        let (cloud, coding) = (pieced.holders[number], Coding::Piece(number as u8));
        (cloud, pieced.ids.iter().map(|id| self.coder().column_name(cloud, *id, coding)).collect())
    }

    /// Asks as many clouds as it takes; what opens then, if anything does.
    fn ask_for_pieces(
        &self,
        asking: Asking<'_>,
        (pieced, cut): (&mut Pieced<'_>, Pieces),
        wanted: Wanted<'_>,
        report: &mut Report,
    ) -> Result<Option<Vec<Plain>>, Unanswered> {
        let quorum = asking.goal.quorum(pieced.holders.len()).unwrap_or(0);
        let is_enough = AtomicBool::new(false);
        let gather = |cloud: usize, names: Vec<Name>, progress: &Progress| {
            self.gather(asking, cloud, names, wanted, (&is_enough, progress))
        };
        let gather = &gather;
        std::thread::scope(|scope| {
            let (mut running, mut opened) = (Running::new(scope), None);
            let can_be_asked = |number: &usize| asking.state.has(pieced.holders[*number], wanted.set);
            let numbers = self.late_last(&pieced.holders).into_iter().filter(can_be_asked);
            let mut left = numbers.collect::<Vec<_>>().into_iter();
            let done = loop {
                while running.coming().count() + pieced.count() < pieced.needed {
                    let Some(number) = left.next() else { break };
                    let (cloud, names) = self.pieces_at(pieced, number);
                    running.start(number, move |progress| gather(cloud, names, progress));
                }
                if pieced.is_worth_a_try(cut, running.coming().next().is_some(), running.is_empty()) {
                    opened = match pieced.join(self, asking, wanted.rows) {
                        Ok(columns) => columns,
                        Err(unanswered) => break Err(unanswered),
                    };
                    if opened.is_none() {
                        continue;
                    }
                }
                if running.is_empty() || opened.is_some() && pieced.right() >= quorum {
                    break Ok(opened);
                }
                let Some((number, came)) = running.next() else { continue };
                if let Err(unanswered) = pieced.take(number, came, report) {
                    break Err(unanswered);
                }
            };
            is_enough.store(true, Ordering::Relaxed);
            running.slow().for_each(|number| self.note_slow(pieced.holders[number], report));
            done
        })
    }
}
