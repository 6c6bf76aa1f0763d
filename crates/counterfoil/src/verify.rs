//! Checking everything: every live page against its seal, every table against its indexes both ways.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_flash::PageNumber;
use counterfoil_log::Snapshot;
use counterfoil_relation::{Problem, Table};
use counterfoil_sql::{AtClouds, SeriesReader};
use counterfoil_vault::CounterKind;

use crate::database::Database;
use crate::error::{Error, Kind, Result};
use crate::inspect::at_clouds;
use crate::options::Place;
use crate::rollback::Rollbacks;
use crate::volume::Freshness;

/// How often a damaged page of the checkpoint is looked at again, and when.
const DAMAGE_LOOKS_MAX: u32 = 4;
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// What a table's check read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableCheck {
    /// The table.
    pub table: String,
    /// Rows read.
    pub rows: u64,
    /// Index entries checked, those of rows in no run yet among them.
    pub entries: u64,
    /// References followed.
    pub references: u64,
}

/// What a verification found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Verification {
    /// Pages that authenticate.
    pub pages: u64,
    /// What was read of each table.
    pub tables: Vec<TableCheck>,
    /// Tables of which no row is here, and what is known of their rows: clouds are not asked.
    pub dispersed: Vec<(String, AtClouds)>,
    /// Records by name.
    pub records: usize,
    /// Whether a counter says that this is the newest image: `compared`, `not checked`, `no counter`,
    /// `behind the counter`.
    pub freshness: &'static str,
    /// What is wrong; empty when all is well.
    pub problems: Vec<Error>,
}

impl Database {
    /// Checks everything. What is wrong is in the answer; the check goes on past it.
    ///
    /// # Errors
    /// What kept the check from being made.
    pub fn verify(&self, progress: &mut dyn FnMut(&str, u64, u64)) -> Result<Verification> {
        self.require_process()?;
        let snapshot = self.snapshot()?;
        let mut verification = Verification {
            pages: 0,
            tables: Vec::new(),
            dispersed: Vec::new(),
            records: self.records().list("")?.len(),
            freshness: "compared",
            problems: Vec::new(),
        };
        self.verify_freshness(&snapshot, &mut verification)?;
        self.verify_headers(&snapshot, &mut verification)?;
        verification.problems.extend(self.verify_checkpoint()?);
        verify_pages(&snapshot, &mut verification, progress);
        self.verify_tables(&snapshot, &mut verification, progress);
        Ok(verification)
    }

    fn verify_freshness(&self, snapshot: &Snapshot, verification: &mut Verification) -> Result<()> {
        verification.problems.extend(Rollbacks::of(snapshot)?.unaccepted());
        let volume = self.volume();
        // A writer of ours has judged the image when it was opened, and has moved both since.
        let freshness = match volume.counter_kind() {
            CounterKind::None => Freshness::NoCounter,
            _ if self.inner.store.has_written() => Freshness::Compared,
            _ => volume.recover_and_judge()?.1,
        };
        verification.freshness = match freshness {
            Freshness::Compared => "compared",
            Freshness::Absent => "not checked",
            Freshness::NoCounter => "no counter",
            Freshness::Behind(permitted) => {
                verification.problems.push(permitted.refusal);
                "behind the counter"
            }
        };
        Ok(())
    }

    fn verify_headers(&self, snapshot: &Snapshot, verification: &mut Verification) -> Result<()> {
        let volume = self.volume();
        // Nobody else changes the header of a database in memory, and its key is kept by nobody.
        if *self.place() != Place::Memory {
            volume.refresh()?;
        }
        match volume.settle(snapshot) {
            Ok(settled) => {
                if let Some((copy, fault)) = settled.fault {
                    let fault = if fault == counterfoil_vault::CopyFault::Old { "old" } else { "damaged" };
                    let text = format!("header copy {copy:?} is {fault}");
                    verification.problems.push(
                        Error::new(Kind::Tampered, text)
                            .advise("the other copy is good; the next change of a key repairs this one"),
                    );
                }
            }
            Err(error) => verification.problems.push(error),
        }
        Ok(())
    }

    /// Both copies of the checkpoint. A writer beside us may be writing one right now, so only what is damaged whenever it
    /// is looked at is.
    fn verify_checkpoint(&self) -> Result<Vec<Error>> {
        let mut damaged: Option<Vec<(PageNumber, bool)>> = None;
        for look in 1..=DAMAGE_LOOKS_MAX {
            match self.volume().recover().and_then(|mut recovered| Ok(recovered.damaged_checkpoint_pages()?)) {
                Ok(now) => damaged.get_or_insert_with(|| now.clone()).retain(|page| now.contains(page)),
                Err(error) if look == DAMAGE_LOOKS_MAX => return Err(error),
                Err(_) => {}
            }
            if damaged.as_ref().is_some_and(Vec::is_empty) {
                break;
            }
            std::thread::sleep(LOOK_AGAIN_AFTER);
        }
        Ok(damaged.unwrap_or_default().into_iter().map(|(page, is_there)| damaged_copy(page, is_there)).collect())
    }

    fn verify_tables(
        &self,
        snapshot: &Snapshot,
        verification: &mut Verification,
        progress: &mut dyn FnMut(&str, u64, u64),
    ) {
        let relations = self.inner.engine.relations();
        let report = relations.verify(snapshot, &mut |at| progress(at.table, at.done, at.total));
        let report = match report {
            Ok(report) => report,
            Err(error) => return verification.problems.push(error.into()),
        };
        // A page that a table has told of is not told of again by itself.
        verification.problems.retain(|page| !report.problems.iter().any(|problem| problem.what.contains(page.what())));
        verification.problems.extend(report.problems.iter().map(problem));
        self.verify_series(snapshot, verification, progress);
        match at_clouds(snapshot, &self.tables(snapshot).unwrap_or_default()) {
            Ok(dispersed) => verification.dispersed = dispersed,
            Err(error) => verification.problems.push(error),
        }
        let is_told = |name: &String| {
            verification.tables.iter().any(|done| done.table == *name)
                || verification.dispersed.iter().any(|(dispersed, _)| dispersed == name)
        };
        let of_relation = report.tables.into_iter().filter(|table| !is_told(&table.table));
        let of_relation: Vec<_> = of_relation.collect();
        verification.tables.extend(of_relation.into_iter().map(|table| TableCheck {
            table: table.table,
            rows: table.rows,
            entries: table.entries,
            references: table.references,
        }));
    }
}

impl Database {
    /// Reads every point of every series table.
    fn verify_series(
        &self,
        snapshot: &Snapshot,
        verification: &mut Verification,
        progress: &mut dyn FnMut(&str, u64, u64),
    ) {
        let tables = self.tables(snapshot).unwrap_or_default();
        let apart = |table: &Arc<Table>| {
            let mut apart = Arc::unwrap_or_clone(counterfoil_sql::kept_apart(table)?);
            apart.name = format!("future.{}", table.name);
            Some(Arc::new(apart))
        };
        let apart: Vec<_> = tables.iter().filter_map(apart).collect();
        for table in tables.into_iter().chain(apart) {
            let mut damaged = |error: counterfoil_sql::Error| {
                let error = Error::from(error).at(format!("table {}", table.name));
                verification
                    .problems
                    .push(error.advise("restore a backup, or save what is good with `counterfoil salvage`"));
            };
            let mut reader = match SeriesReader::open(self.inner.engine.series(), snapshot.clone(), &table) {
                Ok(None) => continue,
                Ok(Some(reader)) => reader,
                Err(error) => {
                    damaged(error);
                    continue;
                }
            };
            let (mut rows, total) = (0, reader.series_left() as u64);
            loop {
                match reader.next() {
                    Ok(None) => break,
                    Ok(Some(batch)) => rows += batch.num_rows() as u64,
                    Err(error) => damaged(error),
                }
                progress(&table.name, total - reader.series_left() as u64, total);
            }
            verification.tables.push(TableCheck { table: table.name.clone(), rows, entries: 0, references: 0 });
        }
    }
}

fn verify_pages(snapshot: &Snapshot, verification: &mut Verification, progress: &mut dyn FnMut(&str, u64, u64)) {
    let total = snapshot.containers().len() as u64;
    let mut done = 0;
    let mut pages = 0;
    let damaged = snapshot.verify_pages(&mut |_, good| {
        pages += good;
        done += 1;
        progress("pages", done, total);
    });
    verification.pages = pages;
    verification.problems.extend(damaged.into_iter().map(|(_, error)| Error::from(error)));
}

fn damaged_copy(page: PageNumber, is_there: bool) -> Error {
    let error = Error::new(Kind::Tampered, format!("page {} of the checkpoint does not authenticate", page.0));
    error.advise(match is_there {
        true => "its other copy is good; the next opening for writing restores this one",
        // The database is open: nothing that it needs stood there.
        false => "its other copy does not either, and nothing depends on it; make a backup, and restore that",
    })
}

fn problem(problem: &Problem) -> Error {
    let error = Error::new(Kind::Tampered, problem.to_string())
        .advise("restore a backup, or save what is good with `counterfoil salvage`");
    if problem.table.is_empty() { error } else { error.at(format!("table {}", problem.table)) }
}
