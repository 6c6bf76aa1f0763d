//! Any `may_fail` clouds fail, in any way, at any moment of a statement: nothing is lost, and no answer is wrong.
//!
//! `COUNTERFOIL_PROOF=full` tries every call until they have run out; otherwise a sample.

use std::sync::Arc;

use crate::catalogue::{Owning, SECRET};
use crate::database::{Database, is_full};
use crate::fickle::{FAULTS, Fault, Fickle, Reached, fickle};

const CREATE: &str = "CREATE TABLE t (id INT PRIMARY KEY, n INT FOR (sum, equality), word TEXT FOR (equality, prefix), day DATE FOR (range)) \
                      WITH (engine = 'dispersed', clouds = 'f0, f1, f2, f3, f4', may_fail = 2, may_collude = 1)";
const INSERT: &str = "INSERT INTO t VALUES (1, 10, 'ant', '2024-01-01'), (2, 20, 'bee', '2024-01-02'), \
                      (3, 30, 'cow', '2024-01-03'), (4, 20, 'bee', '2024-01-04'), (5, NULL, NULL, NULL)";
const QUESTIONS: [&str; 5] = [
    "SELECT * FROM t ORDER BY id",
    "SELECT sum(n), count(n), count(*) FROM t",
    "SELECT id FROM t WHERE word = 'bee' ORDER BY id",
    "SELECT id, n FROM t WHERE n = 20 OR day < '2024-01-02' ORDER BY id",
    "SELECT sum(n) FROM t WHERE word LIKE 'be%'",
];
/// Each of several is one by itself.
const STATEMENTS: [&str; 16] = [
    "INSERT INTO t VALUES (6, 60, 'emu', '2024-02-01'), (7, 70, 'bee', '2024-02-02')",
    "UPDATE t SET n = n + 1, word = 'bee' WHERE id IN (1, 3)",
    "DELETE FROM t WHERE word = 'bee'",
    "SELECT * FROM t ORDER BY id",
    "SELECT id FROM t WHERE word = 'bee' ORDER BY id",
    "SELECT sum(n), count(n), count(*) FROM t",
    "SELECT sum(n) FROM t WHERE word LIKE 'be%'",
    "SELECT id FROM t WHERE day BETWEEN '2024-01-02' AND '2024-01-03' ORDER BY id",
    "REFRESH TABLE t",
    "ALTER TABLE t SET (clouds = 'f1, f2, f3, f4, f5')",
    "ALTER TABLE t ALTER COLUMN word FOR (fetching)",
    "REPAIR TABLE t",
    "REPAIR TABLE t EXTENDED",
    "TRUNCATE t",
    "INSERT INTO t SELECT 100 + g, g % 7, 'w' || g % 5, DATE '2024-01-01' FROM generate_series(1, 300) AS s(g)",
    "CREATE TABLE u (id INT PRIMARY KEY, n INT) AT CLOUDS; INSERT INTO u VALUES (1, 10), (2, 20); SELECT sum(n) FROM u",
];
const AT_CLOUDS: &str = "WITH (engine = 'dispersed', clouds = 'f0, f1, f2, f3, f4', may_fail = 2)";
/// Which clouds fail: each of them, and any two, which are as many as may.
const FAILING: [&[usize]; 15] = [
    &[0],
    &[1],
    &[2],
    &[3],
    &[4],
    &[0, 1],
    &[0, 2],
    &[0, 3],
    &[0, 4],
    &[1, 2],
    &[1, 3],
    &[1, 4],
    &[2, 3],
    &[2, 4],
    &[3, 4],
];
/// No statement asks one cloud so often.
const CALLS_MAX: u64 = 400;

/// A database whose key was split, its table filled, and what its clouds have remembered by them.
fn filled() -> (Database, Arc<Reached>) {
    let (mut database, clouds) = fickle();
    database.engine.belong_to(Arc::new(Owning));
    database.session.note_split(&SECRET).expect("noted");
    assert_eq!(database.ask(CREATE), "CREATE TABLE");
    assert_eq!(database.ask("INSERT INTO t VALUES (2, 2, 'old', '2000-01-01'), (9, 90, 'gone', NULL)"), "INSERT 2");
    clouds.0.iter().for_each(|cloud| cloud.remember());
    assert_eq!(database.ask("DELETE FROM t"), "DELETE 2");
    assert_eq!(database.ask(INSERT), "INSERT 5");
    (database, clouds)
}

/// What a relation says to the statement, and to the questions after it.
fn expected(statement: &str) -> (String, Vec<String>) {
    let mut database = Database::new();
    database.ask("CREATE TABLE t (id INT PRIMARY KEY, n INT, word TEXT, day DATE)");
    database.ask(INSERT);
    let is_of_clouds = ["REFRESH", "ALTER", "REPAIR"].iter().any(|word| statement.starts_with(word));
    let answer =
        if is_of_clouds { String::new() } else { ask_each(&mut database, &statement.replace("AT CLOUDS", "")) };
    (answer, QUESTIONS.map(|question| database.ask(question)).to_vec())
}

fn ask_each(database: &mut Database, statements: &str) -> String {
    statements.split("; ").map(|statement| database.ask(statement)).collect::<Vec<_>>().join("\n")
}

struct Case {
    statement: &'static str,
    /// How the first of them fails, and how another one does.
    faults: [Fault; 2],
    failing: &'static [usize],
    after: u64,
}

impl Case {
    fn name(&self) -> String {
        format!("{}: {:?} of {:?} after {} calls", self.statement, self.faults, self.failing, self.after)
    }

    fn ask_all(&self, database: &mut Database, expected: &[String], when: &str) {
        for (question, expected) in QUESTIONS.iter().zip(expected) {
            assert_eq!(database.ask(question), *expected, "{}, {when}: {question}", self.name());
        }
    }

    /// Runs it; whether the clouds came to fail.
    fn run(&self) -> bool {
        let (mut database, clouds) = filled();
        let (answered, expected) = expected(self.statement);
        let failing: Vec<&Arc<Fickle>> = self.failing.iter().map(|cloud| &clouds.0[*cloud]).collect();
        failing.iter().zip(self.faults).for_each(|(cloud, fault)| cloud.fail(fault, self.after));
        let answer = ask_each(&mut database, &self.statement.replace("AT CLOUDS", AT_CLOUDS));
        if !answered.is_empty() {
            assert_eq!(answer, answered, "{}", self.name());
        }
        let has_failed = failing.iter().any(|cloud| cloud.has_failed());
        self.ask_all(&mut database, &expected, "while they fail");
        failing.iter().for_each(|cloud| cloud.heal());
        if self.statement.starts_with("CREATE TABLE u") {
            database.ask("REPAIR TABLE u");
        }
        let repaired = database.ask("REPAIR TABLE t");
        assert!(repaired.lines().all(|line| line.ends_with("|complete")), "{}: {repaired}", self.name());
        let shown = database.ask("SHOW CLOUDS");
        assert!(shown.lines().all(|line| line.ends_with("|0|0|0|0")), "{}: {shown}", self.name());
        // Whoever failed is needed now.
        let others = (0..5).filter(|cloud| !self.failing.contains(cloud)).take(2);
        others.for_each(|cloud| clouds.0[cloud].fail(Fault::Unreachable, 0));
        self.ask_all(&mut database, &expected, "others down after REPAIR");
        has_failed
    }
}

/// One after another of the clouds and of how they fail.
fn case((statement, fault): (&'static str, Fault), after: u64, number: usize) -> Case {
    let other = if number.is_multiple_of(2) { fault } else { FAULTS[number / 2 % FAULTS.len()] };
    Case { statement, faults: [fault, other], failing: FAILING[number % FAILING.len()], after }
}

#[test]
fn no_fault_at_any_moment_loses_rows_or_answers_wrong() {
    let pairs = STATEMENTS.iter().flat_map(|statement| FAULTS.map(|fault| (*statement, fault)));
    let (mut number, mut failed) = (0, 0);
    let mut run = |pair, after| {
        number += 1;
        let has_failed = case(pair, after, number).run();
        failed += usize::from(has_failed);
        has_failed
    };
    for (at, pair) in (0..).zip(pairs) {
        if !is_full() {
            // A moment near the beginning, and one that may lie behind the end.
            for after in [at * 7 % 11, 11 + at * 13 % 29] {
                run(pair, after);
            }
            continue;
        }
        // All of them, of other clouds each time, until none comes to fail any more.
        let is_over = |after: &u64| (0..4).filter(|_| run(pair, *after)).count() == 0;
        let end = (0..CALLS_MAX).find(is_over);
        assert!(end.is_some_and(|end| end > 0), "{}: {end:?} calls", pair.0);
    }
    assert!(failed > 50, "{failed} faults came");
}
