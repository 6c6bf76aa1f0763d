//! Figures 7(b) and 9(b): what the time of a query is made of, from its arrival to the end of the reader's check.
//!
//! The parts stand beside each other, on an axis of equal factors: in one stack the line of 14.4 Mbit/s would hide the others.

use counterfoil_bench_figures::{Axis, Curve, Figure, Legend, Look, Panel, RGBColor};

use crate::load::Outcome;
use crate::response::{Measured, RATE_NAMES};

/// How far the bars of a rate are from each other, of what is between two rates.
const STEP: f64 = 0.2;

/// The EMB- tree and BAS, what both do in the title.
pub fn figure(what: &str, [embedded, bas]: &[Measured; 2]) -> Figure {
    Figure {
        x: Axis::named("transactions a second", RATE_NAMES.to_vec()),
        y: Axis::logarithmic("part of a query's time, ms", 0.01..100_000.0),
        legend: Legend::UpperLeft,
        panels: vec![panel(format!("EMB-, {what}"), embedded), panel(format!("BAS, {what}"), bas)],
    }
}

fn panel(title: String, measured: &Measured) -> Panel {
    let bars = |name: &str, colour, part: &dyn Fn(&Outcome) -> f64| {
        let points = (1..).map(f64::from).zip(measured.points.iter().map(|(_, outcome)| part(outcome)));
        Curve::new(name, Look::Bars(colour), points.collect())
    };
    let parts = [
        bars("waits for a thread", RGBColor(190, 60, 40), &|outcome| outcome.query.waited),
        bars("server, its locks included", RGBColor(20, 90, 170), &|outcome| {
            outcome.query.response - outcome.query.waited
        }),
        bars("line of 14.4 Mbit/s", RGBColor(150, 150, 150), &|_| measured.line),
        bars("reader's check", RGBColor(40, 130, 60), &|_| measured.verify),
    ];
    let beside = |(nth, curve): (usize, Curve)| curve.moved(STEP * nth as f64 - STEP * 1.5);
    Panel { title, curves: parts.into_iter().enumerate().map(beside).collect() }
}
