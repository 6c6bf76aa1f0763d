//! The tables of the DRM benchmark: the paper's design rebuilt and ours, on each board, by fill and by number of counters.

use crate::board::{Board, Flash};
use crate::case::{Case, Design, Measured};

/// Percentages of what the data ring holds.
pub const FILLS: [u32; 11] = [1, 10, 25, 43, 50, 60, 75, 80, 85, 90, 95];
/// Numbers of counters, from the least to the most that the paper has.
pub const COUNTERS: [u32; 8] = [100, 250, 500, 1000, 1500, 2000, 2500, 3000];

/// What the paper itself says of its transactions (6.4), in its words.
fn in_the_paper(board: &Board, percent: u32) -> &'static str {
    match (board.kilobytes, board.flash, percent) {
        (128, Flash::Nand, 1) => "59 ms",
        (128, Flash::Nor, 1) => "89 ms",
        (128, _, 2..=49) => "< 600 ms",
        (128, Flash::Nand, 75..=90) => "3 s",
        (128, Flash::Nor, 75..=90) => "6 s",
        _ => "",
    }
}

/// Prints the tables of all boards.
pub fn print() {
    for board in Board::ALL {
        println!("\n### {board}, by fill\n");
        head("fill", "the paper | goal");
        for percent in FILLS {
            for design in Design::BOTH {
                let case = Case { design, board, counters: design.counters(&board, percent) };
                let found = case.run();
                let beside = match design {
                    Design::Yardstick => format!("{} | ", in_the_paper(&board, percent)),
                    Design::Ours => format!(" | {}", goal(&case, percent, found.as_ref().ok())),
                };
                row(&format!("{percent} %"), &case, &found, &beside);
            }
        }
        if board.kilobytes == 128 {
            by_counters(board);
        }
    }
}

fn by_counters(board: Board) {
    println!("\n### {board}, by number of counters\n");
    head("counters", "fill");
    for counters in COUNTERS {
        for design in Design::BOTH {
            let case = Case { design, board, counters };
            let fill = format!("{:.0} %", design.percent(&board, counters));
            row(&counters.to_string(), &case, &case.run(), &fill);
        }
    }
}

fn head(first: &str, last: &str) {
    println!(
        "| {first} | store | counters | mean ms | p50 | p99 | max | pages read | written | blocks erased | cipher calls | counter steps | {last} |"
    );
    println!("|{}", "---|".repeat(12 + last.split('|').count()));
}

fn row(first: &str, case: &Case, found: &Result<Measured, String>, last: &str) {
    let start = format!("| {first} | {} | {}", case.design.name(), case.counters);
    let Ok(found) = found.as_ref().map_err(|refusal| println!("{start} | {refusal} |{} {last} |", " |".repeat(8)))
    else {
        return;
    };
    let all = found.all();
    let calls = (all.reads() + all.programs()) * case.design.clock(&case.board).cipher.block_calls;
    println!(
        "{start} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.2} | {:.3} | {:.0} | {:.2} | {last} |",
        found.mean(),
        found.percentile(50),
        found.percentile(99),
        found.most(),
        found.each(all.reads()),
        found.each(all.programs()),
        found.each(all.erases()),
        found.each(calls),
        found.each(all.counter_steps),
    );
}

/// The goal, and whether it is reached.
fn goal(case: &Case, percent: u32, found: Option<&Measured>) -> String {
    let Some((mean, p99)) = case.goal(percent) else { return String::new() };
    let is_reached =
        found.is_some_and(|found| found.mean() <= mean && p99.is_none_or(|p99| found.percentile(99) <= p99));
    let p99 = p99.map_or(String::new(), |p99| format!(", p99 {p99}"));
    format!("{mean}{p99}: {}", if is_reached { "reached" } else { "missed" })
}
