//! How evenly blocks wear over many commits of the benchmark.

use crate::board::Board;
use crate::drm::Run;
use crate::ours::{self, Layout};
use crate::subject::Refusal;

/// Percentages of what the data ring holds, as each board's split in the advised layout has it.
const FILLS: [u32; 3] = [1, 43, 75];

/// Prints erases of the least and the most erased block, for some splits of the part.
pub fn print(commits: u64) {
    println!("\n### Erases of a block, after {commits} commits\n");
    println!("| part | index blocks | fill | least | most | most/least |");
    println!("|{}", "---|".repeat(6));
    for board in Board::ALL {
        let advised = Layout::advised(&board);
        for fill in FILLS {
            row(&board, &advised, fill, commits);
            row(&board, &Layout { index_blocks: 2 * advised.index_blocks, ..advised }, fill, commits);
        }
    }
}

fn row(board: &Board, layout: &Layout, fill: u32, commits: u64) {
    let start = format!("| {board} | {} | {fill} %", layout.index_blocks);
    match erases(board, layout, layout.counters(board, f64::from(fill) / 100.0), commits) {
        Ok(erases) => {
            let least = erases.iter().copied().min().unwrap_or(0);
            let most = erases.iter().copied().max().unwrap_or(0);
            println!("{start} | {least} | {most} | {:.3} |", most as f64 / least.max(1) as f64);
        }
        Err(refusal) => println!("{start} | {refusal} | | |"),
    }
}

/// How often each block was erased.
fn erases(board: &Board, layout: &Layout, counters: u32, commits: u64) -> Result<Vec<u64>, Refusal> {
    ours::with(board, layout, counters, |store, seen| {
        let mut run = Run::new(counters);
        run.load(store).map_err(|(_, refusal)| refusal)?;
        for _ in 0..commits {
            run.transaction(store)?;
        }
        Ok(seen.erases())
    })?
}
