//! Section 7.1: a row and its commit, by the paper's design, by B+-trees over a translation layer, and by ours.

use counterfoil_flash_sim::{Meters, Prices};

use super::cost::{CALIBRATION, Cost};
use super::data::{self, Data};
use super::ftl::Ftl;
use super::paper::Database;
use super::token::{Held, Token};
use super::tree::{Pages, Tree};
use crate::Failure;

/// Rows that are inserted one by one, of each table.
const SINGLE: u64 = 20_000;
/// Rows that are inserted into trees: before what is measured, so that log blocks are full, and measured.
const INTO_TREES: (u64, u64) = (200, 300);
/// Rows of T0 whose trees are built at most: a leaf's page is as far from the next one's with fewer.
const TREE_ROWS_MAX: u64 = 200_000;
/// Rows of 160 bytes, and joins of 20, of a page.
const PAGE_ROWS: u64 = 12;
const PAGE_JOINS: u64 = 102;
/// How many sequential writes one write elsewhere costs on 20 SD cards (section 2): the best, the average, the worst.
const CARD_RATIOS: [u64; 3] = [130, 1300, 5350];

/// A table whose rows are inserted: its name, what the paper says of an insert, of one into trees on cards, and the goal.
const INSERTED: [(&str, f64, &str, f64); 2] =
    [("t2", 1.5, "0.8 s (42 ms at best)", 0.5), ("t0", 8.0, "4.2 s (15 s at worst)", 1.5)];

/// Mean of an insert.
struct Mean {
    cost: Cost,
    count: u64,
}

impl Mean {
    fn each(&self, count: u64) -> f64 {
        count as f64 / self.count as f64
    }

    fn milliseconds(&self) -> f64 {
        self.cost.milliseconds() / self.count as f64
    }

    fn row(&self, name: &str, by: &str, beside: &str) {
        let Meters { reads, programs, erases, .. } = self.cost.meters;
        println!(
            "| {name} | {by} | {:.2} | {:.2} | {:.1} | {:.2} | {:.3} | {beside} |",
            self.milliseconds(),
            self.milliseconds() * CALIBRATION,
            self.each(reads),
            self.each(programs),
            self.each(erases)
        );
    }
}

/// Prints the table of section 7.1.
pub fn print(rows: u64, held: Held) -> Result<(), Failure> {
    println!("\n#### 7.1: a row and its commit\n");
    println!(
        "| table | by | ms | times {CALIBRATION} | pages read | pages written | blocks erased | the paper says; goal |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut data = Data::loaded(rows);
    let mut database = Database::reorganized(&data);
    let mut token = Token::loaded(rows, held)?;
    for (name, stated, stated_trees, goal) in INSERTED {
        let table = data::number(name);
        data.add(table, SINGLE);
        let before = database.cost();
        (0..SINGLE).for_each(|_| database.insert(&data, table));
        let cost = database.cost().since(&before);
        Mean { cost, count: SINGLE }.row(name, "the paper's design, rebuilt", &format!("{stated} ms, calibrated"));
        let before = token.cost();
        (0..SINGLE).try_for_each(|_| token.insert(name))?;
        let ours = Mean { cost: token.cost().since(&before), count: SINGLE };
        let reached = if ours.milliseconds() <= goal { "reached" } else { "missed" };
        ours.row(name, "ours, ID declared a primary key", &format!("goal {goal} ms: {reached}"));
        trees(name, rows.min(TREE_ROWS_MAX), stated_trees);
    }
    Ok(())
}

/// Inserts into a B+-tree for each index of a table, a page of rows and one of joins, all written through.
fn trees(name: &str, rows: u64, stated: &str) {
    let (table, count) = (data::number(name), INTO_TREES.0 + INTO_TREES.1);
    let mut data = Data::loaded(rows);
    let first = data.rows(table);
    data.add(table, count);
    let selections = data::selections(table);
    let key =
        |row: u64, selection: data::Selection| data::key(selection.attribute, data.number_of(table, row, selection));
    let blocks = (first * selections.len() as u64 / 80 + first / 10) / 64 * 2 + 200;
    let mut pages = Pages::new(Ftl::new(blocks));
    let mut trees: Vec<Tree> = Vec::new();
    for selection in &selections {
        let mut entries: Vec<_> = (0..first).map(|row| (key(row, *selection), row as u32)).collect();
        entries.sort_unstable();
        trees.push(Tree::build(&mut pages, entries));
    }
    let has_joins = data::joined(table).len() > 1;
    let (mut of_rows, mut of_joins) = (pages.take(), pages.take());
    let mut before = (Cost::default(), 0);
    for row in first..first + count {
        if row == first + INTO_TREES.0 {
            before = (Cost::sealed(pages.ftl.meters()), pages.ftl.writes());
        }
        for (tree, selection) in trees.iter_mut().zip(&selections) {
            tree.insert(&mut pages, (key(row, *selection), row as u32));
        }
        pages.write(of_rows, &[b'r'; 2048]);
        of_rows = if row % PAGE_ROWS == 0 { pages.take() } else { of_rows };
        if has_joins {
            pages.write(of_joins, &[b'j'; 2048]);
            of_joins = if row % PAGE_JOINS == 0 { pages.take() } else { of_joins };
        }
    }
    let mean = Mean { cost: Cost::sealed(pages.ftl.meters()).since(&before.0), count: INTO_TREES.1 };
    let written = mean.each(pages.ftl.writes() - before.1);
    let amplified = mean.each(mean.cost.meters.programs) / written;
    mean.row(
        name,
        "B+-trees over a translation layer, same part",
        &format!("{written:.1} pages asked for, {amplified:.0} written for each"),
    );
    let on_card = |ratio: u64| written * (Prices::AVERAGE_CARD.program_page * ratio) as f64 / 1e9;
    let [best, average, worst] = CARD_RATIOS.map(on_card);
    println!(
        "| {name} | the same on SD cards: {best:.2}, {average:.1}, {worst:.1} s, where a write elsewhere costs {} sequential ones | | | | | | {stated} |",
        CARD_RATIOS.map(|ratio| ratio.to_string()).join(", ")
    );
}
