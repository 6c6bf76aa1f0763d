//! Random scripts of INSERT, UPDATE, DELETE, UPSERT and transactions. After every statement both sides must have
//! succeeded or failed alike; after every transaction the tables must be the same.

use super::cell::{Ours, Peer, Sqlite, difference};

/// Random numbers that a seed repeats.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }

    pub fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }

    fn number(&mut self) -> String {
        if self.below(8) == 0 { "NULL".into() } else { (self.below(200) as i64 - 50).to_string() }
    }

    fn text(&mut self) -> String {
        match self.below(10) {
            0 => "NULL".into(),
            1 => "''".into(),
            2 => "'it''s'".into(),
            3 => format!("'{}'", "long ".repeat(1 + self.below(40) as usize)),
            _ => format!("'{}{}'", self.pick(&["red", "green", "blue", "ünïcödé"]), self.below(20)),
        }
    }

    fn key(&mut self) -> u64 {
        self.below(40)
    }
}

const SCHEMAS: [&str; 3] = [
    "CREATE TABLE parent (id INTEGER PRIMARY KEY, name TEXT UNIQUE, size INTEGER NOT NULL DEFAULT 7)",
    "CREATE TABLE item (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parent (id) ON DELETE CASCADE, \
     a INTEGER CHECK (a < 140), b TEXT, c INTEGER, UNIQUE (b, c))",
    "CREATE TABLE plain (a INTEGER, b TEXT)",
];

const DUMPS: [&str; 3] = [
    "SELECT id, name, size FROM parent ORDER BY id",
    "SELECT id, parent, a, b, c FROM item ORDER BY id",
    "SELECT a, b, count(*) FROM plain GROUP BY a, b ORDER BY a NULLS FIRST, b NULLS FIRST",
];

fn condition(dice: &mut Dice, table: &str) -> String {
    let number = dice.below(150) as i64 - 30;
    let keys: Vec<String> = (0..1 + dice.below(4)).map(|_| dice.key().to_string()).collect();
    match (table, dice.below(8)) {
        ("plain", 0) => "b IS NULL".into(),
        ("plain", 1..4) => format!("a > {number}"),
        ("plain", _) => format!("b = {}", dice.text()),
        ("parent", 0) => format!("size < {number}"),
        ("parent", 1) => format!("id IN (SELECT parent FROM item WHERE a > {number})"),
        ("item", 0) => format!("a < {number} AND c IS NOT NULL"),
        ("item", 1) => format!("parent IN (SELECT id FROM parent WHERE size > {number})"),
        ("item", 2) => "EXISTS (SELECT 1 FROM parent p WHERE p.id = item.parent AND p.name IS NULL)".into(),
        (_, 3) => format!("id BETWEEN {} AND {}", dice.key(), dice.key()),
        (_, 4) => "1 = 0".into(),
        _ => format!("id IN ({})", keys.join(", ")),
    }
}

fn insert(dice: &mut Dice, table: &str) -> String {
    let rows: Vec<String> = (0..1 + dice.below(3)).map(|_| row(dice, table)).collect();
    let rows = rows.join(", ");
    match (table, dice.below(6)) {
        ("parent", 0) => format!("INSERT INTO parent (id, name) VALUES ({}, {})", dice.key(), dice.text()),
        ("parent", 1) => format!("INSERT INTO parent VALUES {rows} ON CONFLICT DO NOTHING"),
        ("parent", 2) => {
            format!(
                "INSERT INTO parent VALUES {} ON CONFLICT (id) DO UPDATE SET size = excluded.size + 1",
                row(dice, table)
            )
        }
        ("item", 0) => format!("INSERT INTO item VALUES {rows} ON CONFLICT DO NOTHING"),
        ("item", 1) => format!(
            "INSERT INTO item VALUES {} ON CONFLICT (id) DO UPDATE SET a = excluded.a, c = item.c",
            row(dice, table)
        ),
        ("item", 2) => "INSERT INTO item (id, parent, a) SELECT id + 50, id, size FROM parent WHERE id < 12".into(),
        ("plain", 0) => "INSERT INTO plain SELECT a, b FROM item".into(),
        _ => format!("INSERT INTO {table} VALUES {rows}"),
    }
}

fn row(dice: &mut Dice, table: &str) -> String {
    match table {
        "parent" => format!("({}, {}, {})", dice.key(), dice.text(), dice.number()),
        "item" => {
            let parent = if dice.below(5) == 0 { "NULL".into() } else { dice.key().to_string() };
            format!("({}, {parent}, {}, {}, {})", dice.key(), dice.number(), dice.text(), dice.number())
        }
        _ => format!("({}, {})", dice.number(), dice.text()),
    }
}

fn update(dice: &mut Dice, table: &str) -> String {
    let condition = condition(dice, table);
    let change = match (table, dice.below(5)) {
        ("parent", 0) => format!("name = {}", dice.text()),
        ("parent", _) => format!("size = size + {}", dice.below(9)),
        ("item", 0) => format!("parent = {}", dice.key()),
        ("item", 1) => format!("b = {}, c = {}", dice.text(), dice.number()),
        ("item", 2) => "a = (SELECT max(size) FROM parent)".into(),
        ("item", 3) => "a = CASE WHEN a > 50 THEN a - 10 ELSE c END".into(),
        ("plain", 0) => format!("b = {}", dice.text()),
        // Not upper(b): SQLite's knows ASCII only.
        ("plain", 1) => "b = substr(b, 2) || 'ö'".into(),
        _ => "a = a + 1".into(),
    };
    format!("UPDATE {table} SET {change} WHERE {condition}")
}

fn statement(dice: &mut Dice) -> String {
    let table = dice.pick(&["parent", "item", "item", "plain"]);
    match dice.below(10) {
        0..6 => insert(dice, table),
        6..9 => update(dice, table),
        _ => format!("DELETE FROM {table} WHERE {}", condition(dice, table)),
    }
}

struct Pair {
    ours: Ours,
    sqlite: Sqlite,
    log: Vec<String>,
}

impl Pair {
    /// Runs a statement on both sides; whether it succeeded.
    fn both(&mut self, sql: &str) -> bool {
        self.log.push(sql.to_owned());
        let (ours, theirs) = (self.ours.run(sql), self.sqlite.run(sql));
        assert_eq!(ours.is_ok(), theirs.is_ok(), "ours {ours:?}, SQLite's {theirs:?}\n{}", self.log.join(";\n"));
        ours.is_ok()
    }

    fn compare(&mut self) {
        for dump in DUMPS {
            let (ours, theirs) = (self.ours.run(dump).unwrap(), self.sqlite.run(dump).unwrap());
            if let Some(what) = difference(&ours, &theirs) {
                panic!("{dump}: {what}\n{}", self.log.join(";\n"));
            }
        }
    }

    /// A transaction of a few statements. A failed one ends it, as PostgreSQL would have it.
    fn transaction(&mut self, dice: &mut Dice) {
        self.both("BEGIN");
        let mut saved = false;
        for _ in 0..1 + dice.below(5) {
            if dice.below(4) == 0 {
                saved = self.both("SAVEPOINT here");
            }
            if !self.both(&statement(dice)) {
                if saved {
                    self.both("ROLLBACK TO SAVEPOINT here");
                } else {
                    self.both("ROLLBACK");
                    return;
                }
            } else if saved && dice.below(4) == 0 {
                self.both("ROLLBACK TO SAVEPOINT here");
            }
        }
        self.both(if dice.below(4) == 0 { "ROLLBACK" } else { "COMMIT" });
    }
}

#[test]
fn random_scripts_leave_the_same_tables_as_in_sqlite() {
    let full = std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full");
    for seed in 0..if full { 300 } else { 60 } {
        let mut dice = Dice(seed);
        let mut pair = Pair { ours: Ours::new(), sqlite: Sqlite::new(), log: vec![format!("-- seed {seed}")] };
        SCHEMAS.iter().for_each(|schema| assert!(pair.both(schema)));
        for _ in 0..25 {
            if dice.below(3) == 0 {
                pair.transaction(&mut dice);
            } else {
                pair.both(&statement(&mut dice));
            }
            pair.compare();
        }
    }
}
