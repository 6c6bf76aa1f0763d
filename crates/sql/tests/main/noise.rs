//! Nonsense ends in errors.

use crate::database::Database;

/// A small generator of numbers, the same ones every time.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

#[test]
fn shuffled_words_of_statements_never_panic() {
    const WORDS: &str = "SELECT FROM WHERE t u a b , ( ) * = < > + - / 1 0 2.5 'x' '' NULL AND OR NOT IN EXISTS BETWEEN \
        INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE INDEX VIEW ON DROP ALTER ADD COLUMN INTEGER TEXT PRIMARY KEY \
        DEFAULT CHECK REFERENCES ORDER BY GROUP HAVING LIMIT OFFSET AS JOIN LEFT USING DISTINCT count(*) sum(a) now() \
        BEGIN COMMIT ROLLBACK SAVEPOINT s CASE WHEN THEN ELSE END CAST ::int ::date RETURNING CONFLICT DO NOTHING $1 ; . \
        UNION ALL WITH RECURSIVE EXPLAIN COPY TO STDOUT SHOW VACUUM TRUNCATE interval '1 day' date '2024-01-01' -1 e'\\'";
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let mut numbers = Numbers(20_241_121);
    let mut database = Database::after("CREATE TABLE t (a INTEGER, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, NULL)");
    for _ in 0..3000 {
        let start =
            ["SELECT", "INSERT INTO t", "UPDATE t SET", "DELETE FROM t WHERE", "CREATE TABLE", ""][numbers.below(6)];
        let rest: Vec<&str> = (0..numbers.below(12)).map(|_| words[numbers.below(words.len())]).collect();
        database.ask(&format!("{start} {}", rest.join(" ")));
    }
    database.ask("ROLLBACK");
    assert_eq!(database.ask("SELECT 1"), "1");
}

#[test]
fn deep_nesting_is_refused() {
    let mut database = Database::new();
    for (open, close) in [("(", ")"), ("NOT ", ""), ("-", ""), ("CASE WHEN 1=1 THEN ", " END"), ("(SELECT ", ")")] {
        let sql = format!("SELECT {}1{}", open.repeat(5000), close.repeat(5000));
        assert!(database.ask(&sql).starts_with("error: "), "{open}");
    }
    let chain = |count: usize| format!("SELECT 1{}", " + 1".repeat(count));
    assert_eq!(database.ask(&chain(900)), "901");
    assert!(database.ask(&chain(20_000)).starts_with("error: more than 1000 operators"));
    let list = format!("SELECT 1 WHERE 1 IN ({}-1)", "-1, ".repeat(20_000));
    assert_eq!(database.ask(&list), "");
    assert_eq!(database.ask("SELECT 1"), "1");
}
