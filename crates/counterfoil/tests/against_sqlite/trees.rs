//! Random tables that reference each other, random changes, and random queries along their foreign keys: the same rows as in SQLite.

mod change;
mod condition;
mod flood;
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
use pair::{Asked, Pair, Reorganized};
use query::query;
use table::Table;

/// Bytes of memory with which databases are opened.
const LITTLE: u64 = 64 << 10;
const MUCH: u64 = 64 << 20;
/// Rounds in which so many rows come that indexes become sorted runs with that much, too.
const FLOODS: [usize; 2] = [1, 5];

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
    let (mut all, mut little, mut much) = (Asked::default(), Reorganized::default(), Reorganized::default());
    for seed in 0..if full { 125 } else { 8 } {
        // One that has no more from the beginning: its rows go to runs of indexes soon, and its pages are read again and again.
        for (bytes, reorganized) in [(LITTLE, &mut little), (MUCH, &mut much)] {
            reorganized.add(&ask_of_one(seed, bytes, &mut all));
        }
    }
    let Asked { answered, refused, along, merged } = all;
    println!(
        "{answered} answers, {refused} refused; {along} along foreign keys, {merged} by alternatives that indexes named"
    );
    println!("with 64 KB {little:?}, with 64 MB {much:?}");
    for Reorganized { stopped, among_runs, resumed, rounds, of_runs, .. } in [little, much] {
        assert!(stopped > 0 && resumed > 0, "{stopped} reorganizations were stopped half way, {resumed} went on");
        assert!(among_runs > 0, "no reorganization was stopped among sorted runs");
        assert!(of_runs * 2 > rounds, "{of_runs} of {rounds} rounds of questions met sorted runs");
    }
    assert!(refused * 50 < answered, "{refused} questions and changes were refused beside {answered} answers");
    // With little memory alternatives are merged less often: a table is not read for them of which an index has named too many rows.
    assert!(merged * 300 > answered, "{merged} of {answered} answers were of alternatives that indexes named");
    assert!(along * 6 > answered, "{along} of {answered} answers were read along foreign keys");
}

/// Makes a database up that is opened with so much memory, changes it, and asks.
fn ask_of_one(seed: u64, ram_bytes: u64, all: &mut Asked) -> Reorganized {
    let mut dice = Dice(seed);
    let ours = Ours::with(Options::memory().ram(ram_bytes));
    let log = vec![format!("-- seed {seed}, {ram_bytes} bytes")];
    let (reorganized, aside) = (Reorganized::default(), Dice(seed + 1000));
    let mut pair = Pair { ours, sqlite: Sqlite::new(), log, refused: 0, reorganized, aside };
    let mut tables = made_up(&mut dice, &mut pair);
    for number in 0..tables.len() {
        for _ in 0..3 {
            let text = insert(&mut dice, &mut tables, number);
            pair.both(&text, &text);
        }
    }
    for round in 0..10 {
        pair.change(&mut dice, &mut tables);
        if ram_bytes == MUCH && FLOODS.contains(&round) {
            pair.flood(&mut tables);
        }
        pair.look();
        for _ in 0..4 {
            let asked = pair.ask(&query(&mut dice, &tables));
            all.answered += asked.answered;
            all.refused += asked.refused;
            all.along += asked.along;
            all.merged += asked.merged;
        }
    }
    assert!(pair.refused == 0 || ram_bytes == LITTLE, "{} statements had no room in 64 MB", pair.refused);
    all.refused += pair.refused;
    pair.reorganized
}
