//! Columns of whole cells: from as few clouds as have them all, and from another one if one is silent, slow, or shows what it should not.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::asked::{self, Progress, Running};
use crate::declaration::Column;
use crate::gathered::Wanted;
use crate::goal::Goal;
use crate::opened::Opening;
use crate::placement::Coding;
use crate::plain::Plain;
use crate::provider::Failure;
use crate::table::{Asking, Fault, Report, Table, Unanswered};

impl Table {
    /// Who is asked next for columns that are missing, by their places, and for which; none if nobody is left.
    fn next_questions(
        &self,
        wanted: &[u16],
        mut missing: Vec<usize>,
        asked: &mut [Vec<usize>],
        can_be_asked: impl Fn(usize) -> bool,
    ) -> Option<Vec<(usize, Vec<usize>)>> {
        let mut questions = Vec::new();
        while !missing.is_empty() {
            let gives = |cloud: usize, at: usize| {
                let cells = self.coder().placement().fragment(wanted[at], Coding::Cell);
                can_be_asked(cloud)
                    && !asked[cloud].contains(&at)
                    && cells.is_some_and(|cells| cells.holders.contains(&cloud))
            };
            // Whoever can give the most of them: as few questions as there may be. Only those who keep others waiting come later.
            let gives_most = |cloud: &usize| {
                let count = missing.iter().filter(|at| gives(*cloud, **at)).count();
                (count > 0 && !self.is_late(*cloud), count)
            };
            let cloud = (0..self.clouds().len()).rev().max_by_key(gives_most)?;
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
    pub(crate) fn fetch_all(
        &self,
        asking: Asking<'_>,
        wanted: &[u16],
        rows: Wanted<'_>,
        report: &mut Report,
    ) -> Result<Vec<Plain>, Unanswered> {
        let mut columns: Vec<Option<Plain>> = wanted.iter().map(|_| None).collect();
        let is_enough = AtomicBool::new(false);
        let fetch = |cloud: usize, places_of: &[usize], progress: &Progress| {
            let ids: Vec<u16> = places_of.iter().map(|at| wanted[*at]).collect();
            self.fetch(asking, cloud, &ids, rows, (&is_enough, progress))
        };
        let fetch = &fetch;
        std::thread::scope(|scope| {
            let (mut asked, mut questions) = (vec![Vec::new(); self.clouds().len()], Vec::<(usize, Vec<usize>)>::new());
            let mut running = Running::new(scope);
            let done = loop {
                // What is on its way is not asked for twice, unless it is slow.
                let coming: Vec<usize> =
                    running.coming().flat_map(|number| questions[number].1.iter().copied()).collect();
                let is_missing = |at: &usize| columns[*at].is_none() && !coming.contains(at);
                let missing = (0..wanted.len()).filter(is_missing).collect();
                let can_be_asked = |cloud: usize| asking.state.has(cloud, rows.set);
                for (cloud, of) in self.next_questions(wanted, missing, &mut asked, can_be_asked).unwrap_or_default() {
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
            running.slow().for_each(|number| self.note_slow(questions[number].0, report));
            done
        })?;
        let is_whole = columns.iter().all(Option::is_some);
        if is_whole {
            Ok(columns.into_iter().flatten().collect())
        } else {
            Err(self.unanswered(asking.state, (wanted, rows.set), report))
        }
    }

    /// The same from every cloud that has them, as many of which as are wanted must show each column whole. Those that are slow are waited
    /// for as long as they are needed.
    pub(crate) fn fetch_confirmed(
        &self,
        asking: Asking<'_>,
        wanted: &[u16],
        rows: Wanted<'_>,
        report: &mut Report,
    ) -> Result<Vec<Plain>, Unanswered> {
        let (is_enough, mut gathered) = (AtomicBool::new(false), Confirmed::new(self, asking.goal, wanted));
        let fetch = |cloud: usize, ids: &[u16], progress: &Progress| {
            self.fetch(asking, cloud, ids, rows, (&is_enough, progress))
        };
        let fetch = &fetch;
        let held = |cloud: usize| match asking.state.has(cloud, rows.set) {
            true => gathered.held_by(cloud),
            false => Vec::new(),
        };
        let asked: Vec<Vec<usize>> = (0..self.clouds().len()).map(held).collect();
        std::thread::scope(|scope| {
            let mut running = Running::new(scope);
            for (cloud, of) in asked.iter().enumerate().filter(|(_, of)| !of.is_empty()) {
                let ids: Vec<u16> = of.iter().map(|at| wanted[*at]).collect();
                running.start(cloud, move |progress| fetch(cloud, &ids, progress));
                if self.is_late(cloud) {
                    running.expect_little(cloud);
                }
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
            running.slow().for_each(|cloud| self.note_slow(cloud, report));
            done
        })?;
        gathered.columns(self, wanted, report)
    }

    /// Columns of rows from one cloud; none for those that it does not give as they were sealed.
    fn fetch(
        &self,
        asking: Asking<'_>,
        cloud: usize,
        ids: &[u16],
        wanted: Wanted<'_>,
        (is_enough, progress): (&AtomicBool, &Progress),
    ) -> Result<Fetched, Unanswered> {
        let names: Vec<_> = ids.iter().map(|id| self.coder().column_name(cloud, *id, Coding::Cell)).collect();
        let columns: Vec<&Column> = ids.iter().filter_map(|id| self.coder().declaration().column(*id)).collect();
        let asked = self.question(asking, cloud, names.clone(), wanted);
        progress.expects(wanted.rows.len());
        let wait = self.wait(asking.watch, is_enough, progress);
        let opening = Opening { table: self, asking, cloud, columns, names, wanted, progress };
        let mut damage = None;
        let opened = opening.open(|take| {
            let (is_done, found) = asked::ask_for_rows(&self.clouds()[cloud], asked, wait, take)?;
            damage = found.map(Fault::Failed);
            Ok(is_done)
        });
        let nothing = |fault: Option<Fault>| Fetched::of(cloud, ids.iter().map(|_| None).collect(), [fault, None]);
        match opened {
            Ok(Some(opened)) => match opened.in_order(&opening.columns, wanted.rows.len()) {
                Some(columns) => {
                    let forged = columns.iter().any(Option::is_none).then_some(Fault::Forged);
                    Ok(Fetched::of(cloud, columns, [forged, damage]))
                }
                None => Ok(nothing(Some(damage.unwrap_or(Fault::Lacks)))),
            },
            Ok(None) => Ok(nothing(None)),
            Err(Failure::CalledOff) => Err(Unanswered::CalledOff),
            Err(failure) => Ok(nothing(Some(Fault::Failed(failure)))),
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
            let cells = table.coder().placement().fragment(*id, Coding::Cell);
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
                    let column = table.coder().declaration().column(*id).map_or_else(String::new, |of| of.name.clone());
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

impl Fetched {
    fn of(cloud: usize, columns: Vec<Option<Plain>>, faults: [Option<Fault>; 2]) -> Self {
        Self { columns, faults: faults.into_iter().flatten().map(|fault| (cloud, fault)).collect() }
    }
}
