//! A database of ours and one of SQLite that hold the same rows.

use super::super::cell::{Ours, Peer, Rows, Sqlite, difference};
use super::super::scripts::Dice;
use super::change::change;
use super::table::Table;

/// In an order that both sides have.
fn sorted(mut rows: Rows) -> Rows {
    rows.sort_by_key(|row| row.iter().map(|cell| format!("{cell}|")).collect::<String>());
    rows
}

/// How queries were answered.
#[derive(Default)]
pub struct Asked {
    pub answered: usize,
    /// Along foreign keys.
    pub along: usize,
    /// By alternatives that indexes named.
    pub merged: usize,
}

pub struct Pair {
    pub ours: Ours,
    pub sqlite: Sqlite,
    pub log: Vec<String>,
}

impl Pair {
    pub fn both(&mut self, ours: &str, theirs: &str) -> bool {
        self.log.push(ours.to_owned());
        let (ours, theirs) = (self.ours.run(ours), self.sqlite.run(theirs));
        assert_eq!(ours.is_ok(), theirs.is_ok(), "ours {ours:?}, SQLite's {theirs:?}\n{}", self.log.join(";\n"));
        ours.is_ok()
    }

    /// Asks both, ours with little memory and with more; how it was answered.
    pub fn ask(&mut self, query: &str) -> Asked {
        let in_order = |rows: Rows| if query.contains("ORDER BY") { rows } else { sorted(rows) };
        let theirs = in_order(self.sqlite.run(query).unwrap());
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

    /// A reorganization, or as much of one as a moment allows: the next one goes on.
    fn vacuum(&mut self, dice: &mut Dice) {
        let is_whole = dice.below(2) == 0;
        if !is_whole {
            self.ours.run("SET statement_timeout = '1ms'").unwrap();
        }
        let done = self.ours.run("VACUUM");
        assert!(!is_whole || done.is_ok(), "{done:?}\n{}", self.log.join(";\n"));
        self.ours.run("RESET statement_timeout").unwrap();
    }
}
