//! The paper's Figures 8 and 9 with our numbers beside them.

use std::path::Path;

use counterfoil_bench_figures::{Axis, Curve, Figure, Legend, Look, Panel, RGBColor};

use super::SEALED;
use super::paper::OVERHEADS;
use super::sweet_spot::{LINES, Spot, over};
use crate::Failure;

const STEPS: [&str; 4] = ["INSERT", "SELECT", "ORDER BY", "SUM"];
const OURS: [&str; 4] =
    [SEALED, "dispersed over memory", "dispersed over three folders", "dispersed over three providers"];
const COLOURS: [RGBColor; 4] =
    [RGBColor(150, 150, 150), RGBColor(120, 170, 220), RGBColor(20, 90, 170), RGBColor(10, 40, 90)];
const FETCHED: RGBColor = RGBColor(190, 60, 40);

/// What was measured: what it is, and seconds for each step.
type Measured = [(&'static str, Vec<f64>)];

/// Draws both figures into a folder.
pub fn draw(measured: &Measured, spots: &[Spot], folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)?;
    figure8(measured).draw(&folder.join("disperse-overheads.svg"))?;
    Ok(figure9(spots).draw(&folder.join("disperse-sweet-spot.svg"))?)
}

/// How many times longer each way takes than rows in memory that are asked for here.
fn ours(measured: &Measured) -> Vec<(&'static str, Vec<f64>)> {
    let numbers = |what: &str| measured.iter().find(|(own, _)| *own == what).map(|(_, numbers)| numbers);
    let Some(base) = numbers(SEALED) else { return Vec::new() };
    let factors =
        |numbers: &Vec<f64>| numbers.iter().zip(base).take(STEPS.len()).map(|(own, base)| own / base).collect();
    OURS.into_iter().filter_map(|what| Some((what, factors(numbers(what)?)))).collect()
}

/// How many times longer each step takes: four bars of each, the paper's and ours.
fn figure8(measured: &Measured) -> Figure {
    let bars = |(nth, ((what, factors), colour)): (usize, ((&str, Vec<f64>), RGBColor))| {
        let points = (1..).map(f64::from).zip(factors).collect();
        Curve::new(what, Look::Bars(colour), points).moved(0.2 * nth as f64 - 0.3)
    };
    let panel = |title: &str, ways: Vec<(&str, Vec<f64>)>| Panel {
        title: title.into(),
        curves: ways.into_iter().zip(COLOURS).enumerate().map(bars).collect(),
    };
    let paper = OVERHEADS.iter().map(|(what, factors)| (*what, factors.to_vec())).collect();
    Figure {
        x: Axis::named("", STEPS.to_vec()),
        y: Axis::logarithmic("", 0.5..10_000.0),
        legend: Legend::UpperRight,
        panels: vec![
            panel("the paper: times longer than plain memory", paper),
            panel("here: times longer than sealed memory", ours(measured)),
        ],
    }
}

/// What an average takes over each line, by the number of rows.
fn figure9(spots: &[Spot]) -> Figure {
    let panel = |(name, line): (&str, f64)| Panel {
        title: format!("SELECT avg(id) over {name}"),
        curves: vec![
            Curve::new("added up by clouds", Look::Line(COLOURS[2]), points(spots, line, |spot| spot.added)),
            Curve::new("fetched and added up here", Look::Line(FETCHED), points(spots, line, |spot| spot.fetched)),
        ],
    };
    Figure {
        x: Axis::logarithmic("rows", 1e3..1e6),
        y: Axis::logarithmic("milliseconds", 1.0..100_000.0),
        legend: Legend::UpperLeft,
        panels: LINES.into_iter().map(panel).collect(),
    }
}

fn points(spots: &[Spot], line: f64, of: impl Fn(&Spot) -> (f64, f64)) -> Vec<(f64, f64)> {
    spots.iter().map(|spot| (spot.rows as f64, 1e3 * over(line, of(spot)))).collect()
}

#[cfg(test)]
mod tests {
    use super::{OURS, draw};
    use crate::movies::sweet_spot::Spot;

    #[test]
    fn both_figures_are_drawn() {
        let measured: Vec<_> = OURS
            .into_iter()
            .enumerate()
            .map(|(nth, what)| (what, vec![1.0 + nth as f64, 2.0, 3.0, 0.1, 1.0]))
            .collect();
        let spot = |rows: usize| Spot { rows, added: (0.01, 100.0), fetched: (rows as f64 / 1e6, 80.0 * rows as f64) };
        let folder = tempfile::tempdir().expect("a folder");
        draw(&measured, &[1_000, 30_000, 1_000_000].map(spot), folder.path()).expect("figures");
        for (file, said) in [
            ("disperse-overheads.svg", &["ORDER BY", "dispersed over three providers", "the paper"][..]),
            ("disperse-sweet-spot.svg", &["added up by clouds", "1 GBit/s", "milliseconds"][..]),
        ] {
            let drawn = std::fs::read_to_string(folder.path().join(file)).expect("a figure");
            assert!(said.iter().all(|text| drawn.contains(text)), "{file}");
        }
    }
}
