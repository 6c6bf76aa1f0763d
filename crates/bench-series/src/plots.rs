//! The paper's Figures 8 to 12 from measured results, with the paper's numbers on flash.

use std::path::Path;

use counterfoil_bench_figures::{Axis, Curve, Figure, Legend, Look, Panel, RGBColor};

use crate::Failure;
use crate::paper::{self, mean};
use crate::query::{Category, Query};
use crate::results::Results;
use crate::tables::{extraction, of_category, range_queries};

const OWN: RGBColor = RGBColor(20, 90, 170);
const CHRONOS: RGBColor = RGBColor(190, 60, 40);
/// What is not told apart by its colour alone stands in a table beside the figure.
const COLOURS: [RGBColor; 8] = [
    RGBColor(230, 150, 20),
    RGBColor(60, 150, 60),
    RGBColor(150, 80, 170),
    RGBColor(20, 160, 160),
    RGBColor(220, 110, 150),
    RGBColor(130, 100, 60),
    RGBColor(150, 150, 30),
    RGBColor(100, 100, 200),
];
const GREYS: [RGBColor; 3] = [RGBColor(90, 90, 90), RGBColor(140, 140, 140), RGBColor(180, 180, 180)];

/// Draws them into a folder.
pub fn draw(results: &Results, folder: &Path) -> Result<(), Failure> {
    let whole: Vec<&str> =
        results.systems().into_iter().filter(|system| extraction(results, system).is_some()).collect();
    by_query(results, &whole).draw(&folder.join("series-queries.svg"))?;
    by_category(results, &whole).draw(&folder.join("series-categories.svg"))?;
    Ok(sustainable(results, &whole).draw(&folder.join("series-sustainable.svg"))?)
}

fn colour(at: usize) -> RGBColor {
    if at == 0 { OWN } else { COLOURS[(at - 1) % COLOURS.len()] }
}

fn paper_colour(system: usize) -> RGBColor {
    GREYS.get(system).copied().unwrap_or(CHRONOS)
}

fn points(numbers: impl Iterator<Item = Option<f64>>) -> Vec<(f64, f64)> {
    (1..).map(f64::from).zip(numbers).filter_map(|(at, number)| Some((at, number?))).collect()
}

/// Discs or crosses of a system beside those of the others.
fn beside(name: String, look: Look, points: Vec<(f64, f64)>, place: usize) -> Curve {
    Curve::new(name, look, points).moved(place as f64 * 0.05 - 0.32)
}

/// A figure of one panel, with the names of its curves beside it.
pub fn figure(title: &str, x: Axis, y: Axis, curves: Vec<Curve>) -> Figure {
    Figure { x, y, legend: Legend::Beside, panels: vec![Panel { title: title.into(), curves }] }
}

fn curves(
    systems: &[&str],
    own: impl Fn(&str) -> Vec<(f64, f64)>,
    paper: impl Fn(usize) -> Vec<(f64, f64)>,
) -> Vec<Curve> {
    let theirs = paper::SYSTEMS
        .iter()
        .enumerate()
        .map(|(at, name)| beside(format!("paper: {name}"), Look::Crosses(paper_colour(at)), paper(at), at));
    let here = systems
        .iter()
        .enumerate()
        .map(|(at, name)| beside((*name).to_owned(), Look::Discs(colour(at)), own(name), at + paper::SYSTEMS.len()));
    theirs.chain(here).collect()
}

/// Figures 8 and 10.
fn by_query(results: &Results, systems: &[&str]) -> Figure {
    figure(
        "Processing capacity by query: here, and of the paper on flash (Figure 10)",
        Axis::named("query", Query::ALL.iter().map(|query| query.name()).collect()),
        Axis::logarithmic("tuples a second", 1.0..1e9).abbreviated(),
        curves(
            systems,
            |system| points(Query::ALL.iter().map(|query| results.capacity(system, *query))),
            |system| points(Query::ALL.iter().map(|query| Some(paper::FLASH.capacity(*query, system)))),
        ),
    )
}

/// Figures 9 and 11.
fn by_category(results: &Results, systems: &[&str]) -> Figure {
    figure(
        "Processing capacity by category: here, and of the paper on flash (Figure 11)",
        Axis::named("", Category::ALL.iter().map(|category| category.name()).collect()),
        Axis::logarithmic("tuples a second", 1.0..1e9).abbreviated(),
        curves(
            systems,
            |system| points(Category::ALL.iter().map(|category| of_category(results, system, *category))),
            |system| points(Category::ALL.iter().map(|category| Some(paper::FLASH.of_category(*category, system)))),
        ),
    )
}

/// Tuples a second that can be inserted while each is extracted so many times.
fn sustained(insertion: f64, extraction: f64, ratio: f64) -> f64 {
    1.0 / (1.0 / insertion + ratio / extraction)
}

/// Figure 12.
fn sustainable(results: &Results, systems: &[&str]) -> Figure {
    let ratios = || (0..=80).map(|ratio| f64::from(ratio) / 4.0);
    let curve = |insertion: f64, extraction: f64| {
        ratios().map(|ratio| (ratio, sustained(insertion, extraction, ratio))).collect::<Vec<_>>()
    };
    let theirs = paper::SYSTEMS.iter().enumerate().map(|(at, name)| {
        let extraction = mean(range_queries().map(|query| paper::FLASH.capacity(query, at)));
        let insertion = paper::FLASH.of_category(Category::Insertions, at);
        Curve::new(format!("paper: {name}"), Look::Dashed(paper_colour(at)), curve(insertion, extraction))
    });
    let here = systems.iter().enumerate().filter_map(|(at, name)| {
        let insertion = of_category(results, name, Category::Insertions)?;
        let extraction = extraction(results, name)?;
        Some(Curve::new(*name, Look::Line(colour(at)), curve(insertion, extraction)))
    });
    figure(
        "Sustainable workload (Figure 12)",
        Axis::plain("tuples extracted for each tuple inserted", 0.0..20.0),
        Axis::logarithmic("tuples inserted a second", 1e4..1e8).abbreviated(),
        theirs.chain(here).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 4.3.3: with 1.5 extractions a tuple Chronos sustains 220 K, Berkeley DB 42 K, MySQL 18 K, InfoPlus.21 16 K.
    #[test]
    fn the_papers_sustainable_workload() {
        for (system, stated) in [(0, 16e3), (1, 18e3), (2, 42e3), (3, 220e3)] {
            let extraction = mean(range_queries().map(|query| paper::FLASH.capacity(query, system)));
            let found = sustained(paper::FLASH.of_category(Category::Insertions, system), extraction, 1.5);
            assert!((found / stated - 1.0).abs() < 0.1, "{}: {found}", paper::SYSTEMS[system]);
        }
    }
}
