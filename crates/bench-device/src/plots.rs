//! The curves of the GnatDb paper's Figures 5, 7 and 8, ours beside those of its design rebuilt.

use std::path::Path;

use counterfoil_bench_figures::{Axis, Curve, Figure, Legend, Look, Panel, RGBColor};

use crate::Failure;
use crate::board::{Board, Flash};
use crate::case::{Case, Design, Measured};
use crate::milo;
use crate::ours::{self, Layout};

const THEIRS: RGBColor = RGBColor(190, 60, 40);
const OWN: RGBColor = RGBColor(20, 90, 170);
const STATED: RGBColor = RGBColor(60, 60, 60);
const FILLS: [u32; 18] = [1, 5, 10, 20, 30, 40, 50, 55, 60, 65, 70, 75, 78, 80, 82, 85, 90, 95];

/// A fill, and what was measured there.
type Curves = Vec<(f64, Measured)>;

/// Writes all figures into a folder.
pub fn draw(folder: &Path) -> Result<(), Failure> {
    let [small, large] = [128, 1024].map(|kilobytes| {
        let boards = Board::ALL.into_iter().filter(move |board| board.kilobytes == kilobytes);
        boards.map(|board| (board, Design::BOTH.map(|design| measure(board, design)))).collect::<Vec<_>>()
    });
    response(&small, 5.0..200_000.0).draw(&folder.join("response.svg"))?;
    response(&large, 5.0..2_000_000.0).draw(&folder.join("response-1mb.svg"))?;
    cleaning(&small).draw(&folder.join("cleaning.svg"))?;
    memory().draw(&folder.join("memory.svg"))?;
    milo::draw(folder)
}

fn measure(board: Board, design: Design) -> Curves {
    let at = |percent: u32| {
        let case = Case { design, board, counters: design.counters(&board, percent) };
        case.run().ok().map(|found| (f64::from(percent), found))
    };
    // Where a store is full once, it is full beyond.
    FILLS.into_iter().map_while(at).collect()
}

fn curve(name: &'static str, look: Look, curves: &Curves, value: impl Fn(&Measured) -> f64) -> Curve {
    let points = curves.iter().map(|(fill, found)| (*fill, value(found))).collect();
    let is_whole = curves.len() == FILLS.len();
    Curve { end: (!is_whole).then_some("full beyond"), ..Curve::new(name, look, points) }
}

/// Figure 7.
fn response(boards: &[(Board, [Curves; 2])], y: std::ops::Range<f64>) -> Figure {
    let panel = |(board, [theirs, own]): &(Board, [Curves; 2])| {
        let mut curves = vec![
            curve("paper's design rebuilt, mean", Look::Line(THEIRS), theirs, Measured::mean),
            curve("paper's design rebuilt, maximum", Look::Dashed(THEIRS), theirs, Measured::most),
            curve("ours, mean", Look::Line(OWN), own, Measured::mean),
            curve("ours, maximum", Look::Dashed(OWN), own, Measured::most),
        ];
        if board.kilobytes == 128 {
            // Section 6.4: at 1 %, and from 75 to 90 %.
            let (least, most) = if board.flash == Flash::Nand { (59.0, 3000.0) } else { (89.0, 6000.0) };
            let points = vec![(1.0, least), (75.0, most), (90.0, most)];
            curves.push(Curve::new("the paper, measured", Look::Crosses(STATED), points));
        }
        Panel { title: format!("Transaction response time, {board}"), curves }
    };
    Figure {
        x: Axis::plain("fill of the data ring, %", 0.0..100.0),
        y: Axis::logarithmic("milliseconds, counted", y),
        legend: Legend::UpperLeft,
        panels: boards.iter().map(panel).collect(),
    }
}

/// Figure 8.
fn cleaning(boards: &[(Board, [Curves; 2])]) -> Figure {
    let cleaned = |found: &Measured| found.each(found.committing.data.reads).max(0.1);
    let panel = |(board, [theirs, own]): &(Board, [Curves; 2])| Panel {
        title: format!("Cleaning overhead, {board}"),
        curves: vec![
            curve("paper's design rebuilt", Look::Line(THEIRS), theirs, cleaned),
            curve("ours", Look::Line(OWN), own, cleaned),
        ],
    };
    Figure {
        x: Axis::plain("fill of the data ring, %", 0.0..100.0),
        y: Axis::logarithmic("pages cleaned per transaction", 0.1..100.0),
        legend: Legend::UpperLeft,
        panels: boards.iter().map(panel).collect(),
    }
}

/// Figure 5, without the stack, which no run on a host can tell.
fn memory() -> Figure {
    let board = Board::ALL[0];
    let counters = (100..=3000).step_by(100);
    let bytes = |counters: u32| ours::memory_bytes(&board, &Layout::advised(&board), counters) as f64;
    let own = counters.clone().map(|counters| (f64::from(counters), bytes(counters))).collect();
    let level = |bytes: f64| vec![(100.0, bytes), (3000.0, bytes)];
    let curves = vec![
        Curve::new("paper: stack and heap at most", Look::Line(THEIRS), level(3500.0)),
        Curve::new("paper: heap at most", Look::Dashed(THEIRS), level(1300.0)),
        Curve::new("ours: all buffers, without stack", Look::Line(OWN), own),
    ];
    Figure {
        x: Axis::plain("counters", 0.0..3000.0),
        y: Axis::plain("bytes of memory", 0.0..5000.0),
        legend: Legend::UpperLeft,
        panels: vec![Panel { title: format!("Memory, {board}"), curves }],
    }
}
