//! Where our own costs come from, for each fill.

use crate::board::Board;
use crate::case::{Case, Design, Measured};
use crate::drm_table::FILLS;

/// Prints a table for each board: milliseconds of a transaction, by what they are for.
pub fn print() {
    for board in Board::ALL {
        println!("\n### {board}: where our milliseconds go\n");
        println!(
            "| fill | mean | reading: leaves | records | commit page | more pages | cleaning: pages read | leaves read | leaves and maps written | erases: data | index | cipher's share |"
        );
        println!("|{}", "---|".repeat(12));
        for percent in FILLS {
            let case = Case { design: Design::Ours, board, counters: Design::Ours.counters(&board, percent) };
            match case.run() {
                Ok(found) => row(percent, &case, &found),
                Err(refusal) => println!("| {percent} % | {refusal} |{}", " |".repeat(10)),
            }
        }
    }
}

fn row(percent: u32, case: &Case, found: &Measured) {
    let clock = case.design.clock(&case.board);
    let (reading, committing) = (&found.reading, &found.committing);
    let transactions = found.transactions();
    let parts = [
        reading.index.reads * clock.read(),
        reading.data.reads * clock.read(),
        transactions * clock.program(),
        (committing.data.programs - transactions) * clock.program(),
        committing.data.reads * clock.read(),
        committing.index.reads * clock.read(),
        committing.index.programs * clock.program(),
        committing.data.erases * clock.prices.erase_block,
        committing.index.erases * clock.prices.erase_block,
    ];
    let parts = parts.map(|nanoseconds| format!("{:.1}", found.each(nanoseconds) / 1e6)).join(" | ");
    let cipher = found.each(clock.cipher(&found.all())) / 1e6 / found.mean();
    println!("| {percent} % | {:.1} | {parts} | {:.0} % |", found.mean(), 100.0 * cipher);
}
