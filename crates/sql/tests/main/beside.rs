//! Sessions that write beside one that moves a table: each row is there once, and nothing of it is left where it lay.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use counterfoil_sql::Session;

use crate::database::{ask, is_full};
use crate::fickle::fickle;
use crate::noise::Numbers;

const CREATE: &str =
    "CREATE TABLE t (id INT PRIMARY KEY, n INT FOR (sum, equality)) WITH (engine = 'dispersed', clouds = 'f0, f1, f2')";
/// More than move in one turn.
const ROWS: usize = 2500;

/// One who writes, and knows what has to be there.
struct Writer {
    session: Session,
    model: BTreeMap<usize, i64>,
    numbers: Numbers,
    next: usize,
}

impl Writer {
    fn step(&mut self) {
        let at = self.numbers.below(self.next + 1);
        match self.numbers.below(4) {
            0 => {
                let (id, n) = (self.next, self.numbers.below(1000) as i64);
                self.next += 1;
                self.run(&format!("INSERT INTO t VALUES ({id}, {n})"), "INSERT 1");
                self.model.insert(id, n);
            }
            1 => {
                let changed = self.model.range_mut(at..at + 3).map(|(_, n)| *n += 1).count();
                self.run(
                    &format!("UPDATE t SET n = n + 1 WHERE id >= {at} AND id < {}", at + 3),
                    &format!("UPDATE {changed}"),
                );
            }
            2 => {
                let deleted = usize::from(self.model.remove(&at).is_some());
                self.run(&format!("DELETE FROM t WHERE id = {at}"), &format!("DELETE {deleted}"));
            }
            _ => {
                let (sum, count) = (self.model.values().sum::<i64>(), self.model.len());
                self.run("SELECT sum(n), count(*) FROM t", &format!("{sum}|{count}"));
                let found = self.model.get(&at).map_or(String::new(), i64::to_string);
                self.run(&format!("SELECT n FROM t WHERE id = {at}"), &found);
            }
        }
    }

    #[track_caller]
    fn run(&mut self, sql: &str, expected: &str) {
        let answer = ask(&mut self.session, sql, &[]);
        assert_eq!(answer, expected, "{sql}");
    }
}

#[test]
fn who_writes_while_rows_move_in_turns_loses_nothing_and_leaves_nothing_behind() {
    for seed in 0..if is_full() { 8 } else { 1 } {
        let (mut database, clouds) = fickle();
        database.ask(CREATE);
        let filled = database
            .ask(&format!("INSERT INTO t SELECT value, value FROM generate_series(0, {}) AS s(value)", ROWS - 1));
        assert_eq!(filled, format!("INSERT {ROWS}"));
        let model = (0..ROWS).map(|id| (id, id as i64)).collect();
        let mut writer = Writer { session: database.connect(), model, numbers: Numbers(seed), next: ROWS };
        let (is_over, mut moves) = (AtomicBool::new(false), 0);
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                (0..120).for_each(|_| writer.step());
                is_over.store(true, Ordering::Relaxed);
            });
            while !is_over.load(Ordering::Relaxed) && !writing.is_finished() {
                let (sql, said) = match moves % 3 {
                    0 => ("REFRESH TABLE t", "REFRESH TABLE"),
                    1 => ("ALTER TABLE t SET (clouds = 'f2, f3, f4')", "ALTER TABLE"),
                    _ => ("ALTER TABLE t SET (clouds = 'f0, f1, f2')", "ALTER TABLE"),
                };
                assert_eq!(database.ask(sql), said);
                moves += 1;
            }
        });
        assert!(moves > 1, "it moved while somebody wrote");
        let lines: Vec<String> = writer.model.iter().map(|(id, n)| format!("{id}|{n}")).collect();
        assert_eq!(database.ask("SELECT id, n FROM t ORDER BY id"), lines.join("\n"));
        // Nothing was lost, and nothing lies there of rows that went while they moved.
        let repaired = database.ask("REPAIR TABLE t");
        assert!(repaired.lines().all(|line| line.ends_with("|0|0|complete")), "{repaired}");
        assert_eq!(database.session.take_notices(), Vec::<String>::new());
        assert_eq!(database.ask("DROP TABLE t"), "DROP TABLE");
        assert!(clouds.0.iter().all(|cloud| cloud.tables.lock().is_empty()), "clouds keep nothing");
    }
}
