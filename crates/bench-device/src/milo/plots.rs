//! The figures of the MILo-DB paper, ours beside those of its design rebuilt.

use std::path::Path;

use counterfoil_bench_figures::{Axis, Curve, Figure, Legend, Look, Panel, RGBColor};

use super::cost::{CALIBRATION, Cost};
use super::figure7::ROWS;
use super::figure8::{Measured, Point, WAYS, Way};
use super::section7::{FEW, Setting};
use crate::Failure;

const OWN: RGBColor = RGBColor(20, 90, 170);
const STATED: RGBColor = RGBColor(60, 60, 60);
/// Of the paper's schemes, in their order.
const SCHEMES: [RGBColor; 4] =
    [RGBColor(120, 120, 120), RGBColor(225, 150, 30), RGBColor(120, 60, 150), RGBColor(190, 60, 40)];
const THEIRS: RGBColor = SCHEMES[3];
/// What the paper says of reorganizations (7.5): thousands of fresh rows of a million, minutes, GB written.
const REORGANIZED: [(f64, f64, f64); 2] = [(10.0, 6.2, 0.5), (100.0, 7.7, 0.9)];

/// Figure 8.
pub fn indexes(rows: u64, points: &[Measured], folder: &Path) -> Result<(), Failure> {
    let panel = |title: &str, value: fn(&Point) -> f64| {
        let curve = |(place, way): (usize, &Way)| {
            let points = points.iter().map(|(distinct, points)| (*distinct as f64, value(&points[place])));
            let look = Look::Line(SCHEMES.get(place).copied().unwrap_or(OWN));
            Curve::new(way.name, look, points.collect())
        };
        Panel { title: title.into(), curves: WAYS.iter().enumerate().map(curve).collect() }
    };
    let figure = Figure {
        x: Axis::logarithmic("distinct values, evenly spread", 3.0..rows as f64),
        y: Axis::logarithmic("milliseconds, counted", 0.1..100_000.0),
        legend: Legend::UpperLeft,
        panels: vec![
            panel(&format!("8a: lookup in {rows} rows"), |point| point.lookup),
            panel("8b: insert and commit", |point| point.insert),
        ],
    };
    Ok(figure.draw(&folder.join("milo-indexes.svg"))?)
}

/// Figures 9 and 10.
pub fn section7(settings: &[Setting], folder: &Path) -> Result<(), Failure> {
    queries(settings, true).draw(&folder.join("milo-queries-few.svg"))?;
    queries(settings, false).draw(&folder.join("milo-queries-many.svg"))?;
    let minutes = |cost: &Cost| cost.milliseconds() * CALIBRATION / 60_000.0;
    let written = |cost: &Cost| cost.meters.program_bytes as f64 / 1e9;
    let time = ("10a: a reorganization", "minutes, counted, times 1.4", minutes as fn(&Cost) -> f64);
    let space = ("10b: what a reorganization writes", "GB written", written as fn(&Cost) -> f64);
    reorganizations(settings, time, REORGANIZED.map(|(fresh, minutes, _)| (fresh, minutes)))
        .draw(&folder.join("milo-reorganization-time.svg"))?;
    reorganizations(settings, space, REORGANIZED.map(|(fresh, _, written)| (fresh, written)))
        .draw(&folder.join("milo-reorganization-written.svg"))?;
    Ok(())
}

/// Figure 9: the queries with few rows, or the others.
fn queries(settings: &[Setting], few: bool) -> Figure {
    let chosen = |setting: &Setting| -> Vec<(f64, f64)> {
        let queries = setting.queries.iter().filter(|query| (query.paper_rows <= FEW.0) == few);
        queries.map(|query| (query.theirs.milliseconds(), query.ours.milliseconds())).collect()
    };
    let numbered = |values: Vec<f64>| (1..).map(f64::from).zip(values).collect::<Vec<(f64, f64)>>();
    let most = settings.iter().flat_map(chosen).map(|(theirs, ours)| theirs.max(ours)).fold(0.0, f64::max);
    let panel = |setting: &Setting| {
        let (theirs, ours) = chosen(setting).into_iter().unzip();
        let curve = |name: &str, colour, values| Curve::new(name, Look::Line(colour), numbered(values));
        Panel {
            title: format!("9: {} fresh rows in T0", setting.fresh),
            curves: vec![curve("paper's design rebuilt", THEIRS, theirs), curve("ours", OWN, ours)],
        }
    };
    let named = settings.first().map_or(&[][..], |setting| &setting.queries);
    let names = named.iter().filter(|query| (query.paper_rows <= FEW.0) == few).map(|query| query.name).collect();
    Figure {
        x: Axis::named("query, by rows of its answer", names),
        y: Axis::plain("milliseconds, counted", 0.0..most * 1.25),
        legend: Legend::UpperLeft,
        panels: settings.iter().map(panel).collect(),
    }
}

/// One half of Figure 10.
fn reorganizations(
    settings: &[Setting],
    (title, unit, value): (&str, &'static str, fn(&Cost) -> f64),
    stated: [(f64, f64); 2],
) -> Figure {
    let with_fresh = || settings.iter().filter(|setting| setting.fresh > 0);
    let at = |setting: &Setting, cost: &Cost| (setting.fresh as f64 / 1e3, value(cost));
    let theirs: Vec<(f64, f64)> = with_fresh().map(|setting| at(setting, &setting.reorganized.theirs)).collect();
    let ours: Vec<(f64, f64)> = with_fresh().map(|setting| at(setting, &setting.reorganized.ours)).collect();
    // What the paper says is of its own size.
    let is_in_full = settings.iter().all(|setting| setting.rows > ROWS);
    let stated = if is_in_full { stated.to_vec() } else { Vec::new() };
    let widest = with_fresh().map(|setting| setting.fresh as f64 / 1e3).fold(0.0, f64::max);
    let most = stated.iter().chain(&theirs).chain(&ours).map(|(_, value)| *value).fold(0.0, f64::max);
    let says = Curve::new("the paper", Look::Crosses(STATED), stated);
    let mut curves = vec![
        Curve::new("paper's design rebuilt", Look::Line(THEIRS), theirs),
        Curve::new("ours, VACUUM", Look::Line(OWN), ours),
    ];
    curves.extend(is_in_full.then_some(says));
    Figure {
        x: Axis::plain("fresh rows in T0, thousands", 0.0..widest * 1.1),
        y: Axis::plain(unit, 0.0..most * 1.5),
        legend: Legend::UpperLeft,
        panels: vec![Panel { title: title.into(), curves }],
    }
}
