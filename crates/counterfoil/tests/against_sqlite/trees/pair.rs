//! A database of ours and one of SQLite that hold the same rows.

use super::super::cell::{Ours, Peer, Rows, Sqlite, difference, sorted};
use super::super::scripts::Dice;
use super::change::change;
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
            self.vacuum(dice);
        }
    }

    /// One of ours alone.
    pub fn ours(&mut self, text: &str) -> Result<Rows, String> {
        self.log.push(text.to_owned());
        self.ours.run(text)
    }

    /// A reorganization, or as much of one as a moment allows: the next one goes on.
    fn vacuum(&mut self, dice: &mut Dice) {
        let is_whole = dice.below(2) == 0;
        if !is_whole {
            self.ours("SET statement_timeout = '1ms'").unwrap();
        }
        let done = self.ours("VACUUM");
        assert!(!is_whole || done.is_ok(), "{done:?}\n{}", self.log.join(";\n"));
        self.ours("RESET statement_timeout").unwrap();
    }
}
