//! Random tables that reference each other, random changes, and random queries along their foreign keys: the same rows as in SQLite.

mod change;
mod condition;
mod joined;
mod pair;
mod query;
mod table;
mod value;
mod window;
mod with;

use counterfoil::Options;

use super::cell::{Ours, Sqlite};
use super::scripts::Dice;
use change::insert;
use pair::{Asked, Pair};
use query::query;
use table::Table;

/// Makes tables up, the same on both sides but for indexes, of which SQLite needs none.
fn made_up(dice: &mut Dice, pair: &mut Pair) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for number in 0..4 + dice.below(3) as usize {
        let table = Table::new(dice, number, &tables);
        assert!(pair.both(&table.create(&tables, true), &table.create(&tables, false)));
        for column in table.columns() {
            if dice.below(2) == 0 {
                pair.ours(&format!("CREATE INDEX ON {} ({column})", table.name)).unwrap();
            }
        }
        tables.push(table);
    }
    tables
}

#[test]
fn random_queries_along_foreign_keys_answer_as_sqlite_does() {
    let full = std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full");
    let mut all = Asked::default();
    for seed in 0..if full { 125 } else { 8 } {
        // One that has no more from the beginning: its rows go to runs of indexes soon, and its pages are read again and again.
        for bytes in [64 << 10, 64 << 20] {
            ask_of_one(seed, bytes, &mut all);
        }
    }
    let Asked { answered, refused, along, merged } = all;
    println!(
        "{answered} answers, {refused} refused; {along} along foreign keys, {merged} by alternatives that indexes named"
    );
    assert!(refused * 50 < answered, "{refused} questions and changes were refused beside {answered} answers");
    // With little memory alternatives are merged less often: a table is not read for them of which an index has named too many rows.
    assert!(merged * 300 > answered, "{merged} of {answered} answers were of alternatives that indexes named");
    assert!(along * 6 > answered, "{along} of {answered} answers were read along foreign keys");
}

/// Makes a database up that is opened with so much memory, changes it, and asks.
fn ask_of_one(seed: u64, ram_bytes: u64, all: &mut Asked) {
    let mut dice = Dice(seed);
    let ours = Ours::with(Options::memory().ram(ram_bytes));
    let log = vec![format!("-- seed {seed}, {ram_bytes} bytes")];
    let mut pair = Pair { ours, sqlite: Sqlite::new(), log, refused: 0 };
    let mut tables = made_up(&mut dice, &mut pair);
    for number in 0..tables.len() {
        for _ in 0..3 {
            let text = insert(&mut dice, &mut tables, number);
            pair.both(&text, &text);
        }
    }
    for _ in 0..10 {
        pair.change(&mut dice, &mut tables);
        for _ in 0..4 {
            let asked = pair.ask(&query(&mut dice, &tables));
            all.answered += asked.answered;
            all.refused += asked.refused;
            all.along += asked.along;
            all.merged += asked.merged;
        }
    }
    assert!(pair.refused == 0 || ram_bytes == 64 << 10, "{} statements had no room in 64 MB", pair.refused);
    all.refused += pair.refused;
}
