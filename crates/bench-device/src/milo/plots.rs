//! The figures of the MILo-DB paper, ours beside those of its design rebuilt.

use std::path::Path;

use plotters::style::RGBColor;

use super::figure8::{self, Point, WAYS};
use crate::Failure;
use crate::figure::{Curve, Figure, Look, Panel};

const OWN: RGBColor = RGBColor(20, 90, 170);
/// Of the paper's schemes, in their order.
const THEIRS: [RGBColor; 4] =
    [RGBColor(120, 120, 120), RGBColor(225, 150, 30), RGBColor(120, 60, 150), RGBColor(190, 60, 40)];

/// Writes all figures of the paper's section 7 into a folder.
pub fn draw(folder: &Path) -> Result<(), Failure> {
    indexes(figure8::ROWS_IN_FULL)?.draw(&folder.join("milo-indexes.svg"))
}

/// Figure 8.
fn indexes(rows: u64) -> Result<Figure, Failure> {
    let points = figure8::measured(rows)?;
    let panel = |title: &str, value: fn(&Point) -> f64| {
        let curve = |(place, way): (usize, &figure8::Way)| {
            let points = points.iter().map(|(distinct, points)| (*distinct as f64, value(&points[place])));
            let look = Look::Line(THEIRS.get(place).copied().unwrap_or(OWN));
            Curve { name: way.name, look, points: points.collect(), end: None }
        };
        Panel { title: title.into(), curves: WAYS.iter().enumerate().map(curve).collect() }
    };
    Ok(Figure {
        x: ("distinct values of 300,000 rows", 3.0..300_000.0),
        y: ("milliseconds, counted", 0.1..10_000.0),
        is_logarithmic: true,
        is_logarithmic_x: true,
        panels: vec![
            panel("8a: lookup, rows with one value", |point| point.lookup),
            panel("8b: insert and commit", |point| point.insert),
        ],
    })
}
