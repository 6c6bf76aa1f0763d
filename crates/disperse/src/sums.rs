//! Sums where the shares lie.
//!
//! Each cloud adds its own shares up; the owner takes away what hides their sum, which it adds up alone (coding/shares.rs), and
//! has as many values for the sum as there were answers. Honest clouds agree. If no more than `may_fail` clouds are silent or
//! lie, what `may_fail + 1` of them say at least one honest cloud says, and so it is right. Where so many do not agree all are asked,
//! and if they are still not so many, the values are opened and added up here: they are right or do not open, and say who lied. (That who
//! is silent has failed, and so many fewer can lie, is true, and would have one liar believed where more have failed than were declared to.)
//! Where none may fail two are asked all the same, if there are two; what one cloud alone says is marked as unverified.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::asked::{self, Progress, Running, Wait};
use crate::coding::field::Element;
use crate::declaration::Column;
use crate::exact::sum_of;
use crate::fragments::{Answer, Name, Question};
use crate::goal::Goal;
use crate::placement::Coding;
use crate::provider::Failure;
use crate::state::State;
use crate::table::{Asking, Fault, Report, Table, Unanswered};

/// Rows of which values are opened at a time, where clouds do not agree on their sum.
const OPENED_ROWS: usize = 1 << 14;

/// A sum over rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The sum of what is not NULL; none: it has more than 127 bits.
    pub total: Option<i128>,
    /// How many are not NULL.
    pub values: u64,
}

impl Sum {
    /// The sum of these values and of others.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let total = self.total.zip(other.total).and_then(|(own, other)| own.checked_add(other));
        Self { total, values: self.values + other.values }
    }
}

/// What a cloud's answer says: the limbs of the sum, and how many values there are.
type Said = Vec<Element>;

impl Table {
    /// The sum of a column over rows, ascending, that are live; none: it has no shares.
    ///
    /// # Errors
    /// [`Unanswered`]: not enough clouds agree, and the values cannot be had either.
    pub fn sum(
        &self,
        asking: Asking<'_>,
        column: u16,
        rows: &[u64],
        report: &mut Report,
    ) -> Result<Option<Sum>, Unanswered> {
        let Some((column, codings, holders)) = self.summed(column) else { return Ok(None) };
        let owed = asking.state.owed();
        if owed.is_empty() {
            return self.sum_at(asking, (column, &codings, holders), rows, report).map(Some);
        }
        // What some cloud is owed it cannot add up.
        let (here, there): (Vec<u64>, Vec<u64>) = rows.iter().partition(|row| owed.contains(**row));
        let sum = self.sum_at(asking, (column, &codings, holders), &there, report)?;
        Ok(Some(sum.with(self.sum_here(asking, (column, &codings), &here, &[], report)?)))
    }

    /// The same where the shares lie.
    fn sum_at(
        &self,
        asking: Asking<'_>,
        (column, codings, holders): (&Column, &[Coding], &[usize]),
        rows: &[u64],
        report: &mut Report,
    ) -> Result<Sum, Unanswered> {
        let state = asking.state;
        let hidden: Vec<Vec<Element>> =
            codings.iter().map(|coding| self.coder().hidden(&state.epochs, column.id, *coding, rows)).collect();
        let declared = self.coder().declaration().may_fail;
        let agreeing = match asking.goal {
            // One cloud's word.
            Goal::Performance => 1,
            // Of whom none is to fail two do not contradict each other, where there are two.
            _ => (declared + 1).max(2).min(holders.len()),
        };
        // What is right takes so many anyway.
        let quorum = asking.goal.quorum(holders.len()).map(|quorum| quorum.max(agreeing));
        let (needed, mut said) = (quorum.unwrap_or(agreeing), Vec::<(usize, Said)>::new());
        let is_enough = AtomicBool::new(false);
        let add = |cloud: usize, progress: &Progress| {
            let wait = self.wait(asking.watch, &is_enough, progress);
            self.added((state, wait), cloud, (column, codings), rows)
        };
        let add = &add;
        std::thread::scope(|scope| {
            let (mut running, mut left) =
                (Running::new(scope), self.late_last(holders).into_iter().map(|place| holders[place]));
            // Those whose word is enough, if they agree; then, or if they are slow, all others.
            let mut next = if quorum.is_some() { usize::MAX } else { agreeing };
            let done = loop {
                for cloud in left.by_ref().take(next) {
                    running.start(cloud, move |progress| add(cloud, progress));
                    if quorum.is_some() && self.is_late(cloud) {
                        running.expect_little(cloud);
                    }
                }
                next = 0;
                if running.is_empty() {
                    break Ok(());
                }
                match running.next() {
                    // Nobody else is there to ask: the values are.
                    None if quorum.is_none() && left.len() == 0 && running.coming().next().is_none() => break Ok(()),
                    None => next = usize::MAX,
                    Some((cloud, Some(Ok(shares)))) => match self.shown(cloud, &hidden, &shares) {
                        own if self.can_be((column, codings), &own, rows.len() as u64) => said.push((cloud, own)),
                        _ => report.note(cloud, Fault::WrongSum),
                    },
                    Some((_, Some(Err(Fault::Failed(Failure::CalledOff))))) => break Err(Unanswered::CalledOff),
                    Some((cloud, fault)) => {
                        let broken = || Fault::Failed(Failure::Malformed("what asks it broke off".into()));
                        report.note(cloud, fault.and_then(Result::err).unwrap_or_else(broken));
                    }
                }
                let is_enough = agreed(&said, needed).is_some();
                // Who wants to hear all of them waits for those that still answer.
                if is_enough && (quorum.is_none() || running.coming().next().is_none()) {
                    break Ok(());
                }
                if running.is_empty() {
                    next = usize::MAX;
                }
            };
            is_enough.store(true, Ordering::Relaxed);
            running.slow().for_each(|cloud| self.note_slow(cloud, report));
            done
        })?;
        let Some(agreed) = agreed(&said, needed) else {
            return self.disputed_sum(asking, (column, codings), rows, (&said, quorum), report);
        };
        report.is_unverified |= needed == 1;
        said.iter().filter(|(_, own)| *own != agreed).for_each(|(cloud, _)| report.note(*cloud, Fault::WrongSum));
        Ok(self.told(column, codings, &agreed, rows.len() as u64))
    }

    /// The sum where not so many clouds say the same as are needed.
    fn disputed_sum(
        &self,
        asking: Asking<'_>,
        (column, codings): (&Column, &[Coding]),
        rows: &[u64],
        (said, quorum): (&[(usize, Said)], Option<usize>),
        report: &mut Report,
    ) -> Result<Sum, Unanswered> {
        if let Some(wanted) = quorum {
            let alike = |own: &Said| said.iter().filter(|(_, of)| of == own).count();
            let there = said.iter().map(|(_, own)| alike(own)).max().unwrap_or(0);
            return Err(Unanswered::Quorum { column: column.name.clone(), wanted, there, report: report.clone() });
        }
        let may_fail = self.coder().declaration().may_fail;
        match (self.sum_here(asking, (column, codings), rows, said, report), said) {
            // Nobody was to fail, and somebody has, who has the values, too: there is the word of one.
            (Err(Unanswered::Column { .. }), [(_, alone)]) if may_fail == 0 => {
                report.is_unverified = true;
                Ok(self.told(column, codings, alone, rows.len() as u64))
            }
            (sum, _) => sum,
        }
    }

    /// The sum of values that are opened here, some at a time; clouds that said something else are named.
    fn sum_here(
        &self,
        asking: Asking<'_>,
        (column, codings): (&Column, &[Coding]),
        rows: &[u64],
        said: &[(usize, Said)],
        report: &mut Report,
    ) -> Result<Sum, Unanswered> {
        let mut sum = Sum { total: Some(0), values: 0 };
        for some in rows.chunks(OPENED_ROWS) {
            let found = self.read_rows(asking, &[column.id], &some.iter().copied().collect(), report)?;
            let all: Vec<usize> = (0..found.rows.len()).collect();
            sum = found.columns.iter().map(|plain| sum_of(plain, &all)).fold(sum, Sum::with);
        }
        let is_wrong = |own: &Said| self.told(column, codings, own, rows.len() as u64) != sum;
        said.iter().filter(|(_, own)| is_wrong(own)).for_each(|(cloud, _)| report.note(*cloud, Fault::WrongSum));
        Ok(sum)
    }

    /// What is added up of a column, and the clouds that have it.
    fn summed(&self, column: u16) -> Option<(&Column, Vec<Coding>, &[usize])> {
        let column = self.coder().declaration().column(column)?;
        let limbs = self.coder().limbs(column)?.count() as u8;
        let mut codings: Vec<Coding> = (0..limbs).map(Coding::Share).collect();
        codings.extend(column.nullable.then_some(Coding::Present));
        let holders = &self.coder().placement().fragment(column.id, Coding::Share(0))?.holders;
        Some((column, codings, holders))
    }

    /// A cloud's sums of its shares of exactly these rows.
    fn added(
        &self,
        (state, wait): (&State, Wait<'_>),
        cloud: usize,
        summed: (&Column, &[Coding]),
        rows: &[u64],
    ) -> Result<Vec<Element>, Fault> {
        if state.is_told(cloud) && state.others == 0 && state.live.len() == rows.len() as u64 {
            // Of all that it has, which is these rows unless it has some from before the database was put back.
            let (shares, added) = self.added_of(wait, cloud, summed, None)?;
            if added == rows.len() as u64 {
                return Ok(shares);
            }
        }
        let places = self.coder().sorted_places(&state.epochs, cloud, rows.iter().copied());
        let (shares, added) = self.added_of(wait, cloud, summed, Some(places))?;
        if added == rows.len() as u64 { Ok(shares) } else { Err(Fault::Lacks) }
    }

    /// A cloud's sums of its shares, and of how many rows they are.
    fn added_of(
        &self,
        wait: Wait<'_>,
        cloud: usize,
        (column, codings): (&Column, &[Coding]),
        places: Option<Vec<u64>>,
    ) -> Result<(Vec<Element>, u64), Fault> {
        let coder = self.coder();
        let sums: Vec<Name> = codings.iter().map(|coding| coder.column_name(cloud, column.id, *coding)).collect();
        let question = Question { sums, places, ..Question::default() };
        let (mut shares, mut added) = (vec![Element::ZERO; codings.len()], 0_u64);
        let mut take = |answer: Answer| {
            wait.watch.part(0)?;
            let malformed = || Failure::Malformed("other sums than were asked for".into());
            added = added.checked_add(answer.added).ok_or_else(malformed)?;
            if answer.sums.len() != shares.len() {
                return Err(malformed());
            }
            for (share, own) in shares.iter_mut().zip(answer.sums) {
                *share += Element::from_canonical(own).ok_or_else(malformed)?;
            }
            Ok(())
        };
        let asked = (coder.table_name(cloud), question);
        match asked::ask(&self.clouds()[cloud], asked, wait, &mut take) {
            // Of one that has no such table nothing was added up, which may be what was asked for.
            Ok(true) | Err(Failure::NoTable) => Ok((shares, added)),
            // Others agree meanwhile: nobody hears of it.
            Ok(false) => Err(Fault::Slow),
            Err(failure) => Err(Fault::Failed(failure)),
        }
    }

    /// What a cloud's sums say, without what hides them.
    fn shown(&self, cloud: usize, hidden: &[Vec<Element>], shares: &[Element]) -> Said {
        hidden.iter().zip(shares).map(|(hidden, share)| self.coder().shown(hidden, cloud, *share)).collect()
    }

    /// Whether values of a column can add up to what is said. What a cloud adds up of other rows than are meant has hardly ever a chance to
    /// look like that, which matters where one cloud's word is enough.
    fn can_be(&self, (column, codings): (&Column, &[Coding]), said: &[Element], rows: u64) -> bool {
        let Some(limbs) = self.coder().limbs(column) else { return false };
        let (own, present) = said.split_at(limbs_of(codings));
        let values = present.first().map_or(rows, |values| values.number());
        values <= rows && own.iter().all(|limb| limbs.can_be_sum(*limb, values))
    }

    fn told(&self, column: &Column, codings: &[Coding], said: &[Element], rows: u64) -> Sum {
        let limbs = limbs_of(codings);
        let values = said.get(limbs).map_or(rows, |values| values.number());
        Sum { total: self.coder().limbs(column).and_then(|own| own.join(&said[..limbs])), values }
    }
}

/// How many of what is added up are limbs of values.
fn limbs_of(codings: &[Coding]) -> usize {
    codings.iter().filter(|coding| matches!(coding, Coding::Share(_))).count()
}

/// What so many say, and nobody else.
fn agreed(said: &[(usize, Said)], needed: usize) -> Option<Said> {
    let count = |own: &Said| said.iter().filter(|(_, other)| other == own).count();
    let mut agreed = said.iter().map(|(_, own)| own).filter(|own| count(own) >= needed);
    let first = agreed.next()?;
    agreed.all(|other| other == first).then(|| first.clone())
}
