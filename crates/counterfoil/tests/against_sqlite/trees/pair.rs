//! A database of ours and one of SQLite that hold the same rows.

use counterfoil::TableUse;

use super::super::cell::{Ours, Peer, Rows, Sqlite, difference, sorted, steps};
use super::super::scripts::Dice;
use super::change::change;
use super::flood::flood;
use super::table::Table;

/// Whether an answer has an order, beyond those of windows and of what is asked within.
fn has_order(query: &str) -> bool {
    query.rsplit(')').next().is_some_and(|end| end.contains("ORDER BY"))
}

/// How queries were answered.
#[derive(Default)]
pub struct Asked {
    pub answered: usize,
    /// Not with so little memory.
    pub refused: usize,
    /// Along foreign keys.
    pub along: usize,
    /// By alternatives that indexes named.
    pub merged: usize,
}

pub struct Pair {
    pub ours: Ours,
    pub sqlite: Sqlite,
    pub log: Vec<String>,
    /// Statements that did nothing for want of memory: rows that are changed together are counted.
    pub refused: usize,
    pub reorganized: Reorganized,
    /// For what is done to ours beside what is asked: questions stay those of their seed, however that is done.
    pub aside: Dice,
}

/// How far reorganizations came.
#[derive(Debug, Default)]
pub struct Reorganized {
    /// Those that were stopped half way: some steps were taken, and some are left.
    pub stopped: usize,
    /// Those of them that stopped among sorted runs, with work left for indexes.
    pub among_runs: usize,
    /// Those that went on with what another one had left.
    pub resumed: usize,
    /// Rounds of questions, and those in which indexes had sorted runs.
    pub rounds: usize,
    pub of_runs: usize,
    /// Whether the last one was stopped half way.
    is_half_way: bool,
}

impl Reorganized {
    /// Counts those of another database, too.
    pub fn add(&mut self, other: &Reorganized) {
        self.stopped += other.stopped;
        self.among_runs += other.among_runs;
        self.resumed += other.resumed;
        self.rounds += other.rounds;
        self.of_runs += other.of_runs;
    }
}

impl Pair {
    /// Runs a statement on both sides, which return the same rows; whether it succeeded. One that has no room here is none there.
    pub fn both(&mut self, ours: &str, theirs: &str) -> bool {
        self.log.push(ours.to_owned());
        let ours = self.ours.run(ours);
        if ours.as_ref().is_err_and(|said| said.contains("bytes of working memory at least")) {
            self.refused += 1;
            return false;
        }
        let theirs = self.sqlite.run(theirs);
        let (Ok(ours), Ok(theirs)) = (&ours, &theirs) else {
            assert_eq!(ours.is_ok(), theirs.is_ok(), "ours {ours:?}, SQLite's {theirs:?}\n{}", self.log.join(";\n"));
            return false;
        };
        if let Some(what) = difference(&sorted(ours.clone()), &sorted(theirs.clone())) {
            panic!("returned {what}\n{}", self.log.join(";\n"));
        }
        true
    }

    /// Asks both, ours with little memory and with more; how it was answered.
    pub fn ask(&mut self, query: &str) -> Asked {
        let in_order = |rows: Rows| if has_order(query) { rows } else { sorted(rows) };
        let theirs = self.sqlite.run(query).unwrap_or_else(|said| panic!("{query}: SQLite says {said}"));
        let theirs = in_order(theirs);
        let mut asked = Asked::default();
        for ram in ["64K", "64M"] {
            if self.ours.run(&format!("SET ram = '{ram}'")).is_err() {
                // The database was opened with no more than 64 KB.
                assert_eq!(ram, "64M");
                continue;
            }
            match self.ours.run(query) {
                Ok(ours) => {
                    if let Some(what) = difference(&in_order(ours), &theirs) {
                        panic!("{query} in {ram}: {what}\n{}", self.log.join(";\n"));
                    }
                    asked.answered += 1;
                    let plan = self.ours.run(&format!("EXPLAIN {query}")).unwrap();
                    let plan: Vec<String> = plan.iter().flatten().map(ToString::to_string).collect();
                    asked.along += usize::from(plan.iter().any(|line| line.contains("along foreign keys")));
                    let named = plan.iter().filter_map(|line| line.split("indexes: [").nth(1)?.split(']').next());
                    asked.merged += usize::from(named.into_iter().any(|by| by.contains(" or ")));
                }
                // Windows keep their rows, and so does a FULL JOIN by more than keys.
                Err(said) if ram == "64K" && said.contains("--ram") => asked.refused += 1,
                Err(said) => panic!("{query} in {ram}: {said}\n{}", self.log.join(";\n")),
            }
        }
        self.ours.run("RESET ram").unwrap();
        asked
    }

    /// Some changes; one in three in a transaction that may be rolled back.
    pub fn change(&mut self, dice: &mut Dice, tables: &mut [Table]) {
        let is_whole = dice.below(3) > 0;
        if !is_whole {
            self.both("BEGIN", "BEGIN");
        }
        for _ in 0..1 + dice.below(3) {
            let text = change(dice, tables);
            if !self.both(&text, &text) && !is_whole {
                self.both("ROLLBACK", "ROLLBACK");
                return;
            }
        }
        if !is_whole {
            let end = if dice.below(3) == 0 { "ROLLBACK" } else { "COMMIT" };
            self.both(end, end);
        }
        if dice.below(6) == 0 {
            self.vacuum(dice.below(2) == 0);
        }
    }

    /// One of ours alone.
    pub fn ours(&mut self, text: &str) -> Result<Rows, String> {
        self.log.push(text.to_owned());
        self.ours.run(text)
    }

    /// More rows than are kept fresh, most of which go again, and a reorganization that may be stopped.
    pub fn flood(&mut self, tables: &mut [Table]) {
        let [ours, theirs] = flood(&mut self.aside, tables);
        assert!(self.both(&ours, &theirs), "{}", self.log.join(";\n"));
        let is_whole = self.aside.below(2) == 0;
        self.vacuum(is_whole);
    }

    /// A reorganization, or as much of one as a few steps are: the next one goes on.
    fn vacuum(&mut self, is_whole: bool) {
        let asks = if is_whole { usize::MAX } else { self.aside.below(20) as usize };
        self.log.push(format!("VACUUM /* called off when it has asked {asks} times */"));
        let before = steps(&self.ours.kept());
        let has_ended = self.ours.vacuum(asks);
        let kept = self.ours.kept();
        let left = steps(&kept);
        assert!(has_ended || !is_whole, "{}", self.log.join(";\n"));
        assert!(left == 0 || !has_ended, "{left} steps are left: {kept:?}\n{}", self.log.join(";\n"));
        let reorganized = &mut self.reorganized;
        let is_further = left < before;
        reorganized.resumed += usize::from(reorganized.is_half_way && is_further);
        reorganized.is_half_way = !has_ended && left > 0 && (is_further || reorganized.is_half_way);
        reorganized.stopped += usize::from(reorganized.is_half_way && is_further);
        let among_runs = has_runs(&kept, |table| !table.steps.is_empty());
        reorganized.among_runs += usize::from(reorganized.is_half_way && is_further && among_runs);
    }

    /// Notes whether indexes have sorted runs when they are asked.
    pub fn look(&mut self) {
        self.reorganized.rounds += 1;
        self.reorganized.of_runs += usize::from(has_runs(&self.ours.kept(), |_| true));
    }
}

/// Whether an index has sorted runs, of some of the tables.
fn has_runs(kept: &[(String, TableUse)], of: impl Fn(&TableUse) -> bool) -> bool {
    let mut indexes = kept.iter().filter(|(_, table)| of(table)).flat_map(|(_, table)| &table.indexes);
    indexes.any(|index| !index.runs.is_empty())
}
