//! Single operations and memory, beside the paper's Figures 5 and 6.

use crate::board::{Board, Flash};
use crate::case::Design;
use crate::drm_table::COUNTERS;
use crate::ours::{self, Layout};

/// What the paper measured (Figure 6), in microseconds: reading and writing through its Secure Device, reading a record.
fn in_the_paper(flash: Flash) -> [u32; 3] {
    match flash {
        Flash::Nand => [3063, 3133, 6277],
        Flash::Nor => [2743, 6122, 5642],
    }
}

/// Prints both tables.
pub fn print() {
    println!("\n### Single operations, microseconds (Figure 6)\n");
    println!("| flash | operation | the paper, measured | its design, counted | ours, counted |");
    println!("|---|---|---|---|---|");
    for board in &Board::ALL[..2] {
        let [theirs, own] = Design::BOTH.map(|design| design.clock(board));
        let [read, write, record] = in_the_paper(board.flash);
        let row = |operation: &str, paper: u32, theirs: u64, own: u64| {
            println!("| {} | {operation} | {paper} | {} | {} |", board.flash, theirs / 1000, own / 1000);
        };
        row("page read and opened", read, theirs.read(), own.read());
        row("page sealed and written", write, theirs.program(), own.program());
        row("record read, two pages", record, 2 * theirs.read(), 2 * own.read());
    }
    println!("\n### Memory, bytes (Figure 5)\n");
    println!("| counters | the paper: heap and stack, at most | ours: all buffers, without stack |");
    println!("|---|---|---|");
    let board = Board::ALL[0];
    for counters in COUNTERS {
        println!("| {counters} | 3500 | {} |", ours::memory_bytes(&board, &Layout::advised(&board), counters));
    }
}
