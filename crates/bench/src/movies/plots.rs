//! The paper's Figures 8 and 9 with our numbers beside them.

use std::path::Path;

use plotters::prelude::*;

use super::SEALED;
use super::paper::OVERHEADS;
use super::sweet_spot::{LINES, Spot, over};
use crate::Failure;

const FONT: &str = "sans-serif";
const STEPS: [&str; 4] = ["INSERT", "SELECT", "ORDER BY", "SUM"];
const OURS: [&str; 4] =
    [SEALED, "dispersed over memory", "dispersed over three folders", "dispersed over three providers"];
const COLOURS: [RGBColor; 4] =
    [RGBColor(150, 150, 150), RGBColor(120, 170, 220), RGBColor(20, 90, 170), RGBColor(10, 40, 90)];

/// What was measured: what it is, and seconds for each step.
type Measured = [(&'static str, Vec<f64>)];

/// Draws both figures into a folder.
pub fn draw(measured: &Measured, spots: &[Spot], folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)?;
    figure8(measured, &folder.join("disperse-overheads.svg"))?;
    figure9(spots, &folder.join("disperse-sweet-spot.svg"))
}

/// How many times longer each way takes than rows in memory that are asked for here.
fn ours(measured: &Measured) -> Vec<(&'static str, Vec<f64>)> {
    let numbers = |what: &str| measured.iter().find(|(own, _)| *own == what).map(|(_, numbers)| numbers);
    let Some(base) = numbers(SEALED) else { return Vec::new() };
    let factors =
        |numbers: &Vec<f64>| numbers.iter().zip(base).take(STEPS.len()).map(|(own, base)| own / base).collect();
    OURS.into_iter().filter_map(|what| Some((what, factors(numbers(what)?)))).collect()
}

fn figure8(measured: &Measured, path: &Path) -> Result<(), Failure> {
    let area = SVGBackend::new(path, (1080, 430)).into_drawing_area();
    area.fill(&WHITE)?;
    let paper: Vec<(&str, Vec<f64>)> = OVERHEADS.iter().map(|(what, factors)| (*what, factors.to_vec())).collect();
    let panels = [
        ("the paper: times longer than plain memory", paper),
        ("here: times longer than sealed memory", ours(measured)),
    ];
    for ((title, ways), part) in panels.into_iter().zip(area.split_evenly((1, 2))) {
        let mut chart = ChartBuilder::on(&part)
            .caption(title, (FONT, 17))
            .margin(12)
            .x_label_area_size(30)
            .y_label_area_size(62)
            .build_cartesian_2d(0.0..STEPS.len() as f64, (0.5..10_000.0).log_scale())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(2 * STEPS.len() + 1)
            .x_label_formatter(&|at| if at.fract() == 0.5 { STEPS[*at as usize].into() } else { String::new() })
            .y_label_formatter(&|value| format!("{value}"))
            .label_style((FONT, 13))
            .light_line_style(WHITE)
            .bold_line_style(RGBColor(225, 225, 225))
            .draw()?;
        for (nth, ((what, factors), colour)) in ways.into_iter().zip(COLOURS).enumerate() {
            let bar = |(step, factor): (usize, f64)| {
                let left = step as f64 + 0.1 + 0.2 * nth as f64;
                Rectangle::new([(left, 0.5), (left + 0.18, factor)], colour.filled())
            };
            chart
                .draw_series(factors.into_iter().enumerate().map(bar))?
                .label(what)
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled()));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .label_font((FONT, 13))
            .background_style(WHITE.mix(0.85))
            .draw()?;
    }
    area.present()?;
    Ok(())
}

fn figure9(spots: &[Spot], path: &Path) -> Result<(), Failure> {
    let area = SVGBackend::new(path, (1080, 430)).into_drawing_area();
    area.fill(&WHITE)?;
    for ((name, line), part) in LINES.into_iter().zip(area.split_evenly((1, 2))) {
        let curves = [
            ("added up by clouds", COLOURS[2], curve(spots, line, |spot| spot.added)),
            ("fetched and added up here", RGBColor(190, 60, 40), curve(spots, line, |spot| spot.fetched)),
        ];
        let mut chart = ChartBuilder::on(&part)
            .caption(format!("SELECT avg(id) over {name}"), (FONT, 17))
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(62)
            .build_cartesian_2d((1e3..1e6).log_scale(), (1.0..100_000.0).log_scale())?;
        chart
            .configure_mesh()
            .x_desc("rows")
            .y_desc("milliseconds")
            .x_label_formatter(&|value| format!("{value}"))
            .y_label_formatter(&|value| format!("{value}"))
            .label_style((FONT, 13))
            .light_line_style(WHITE)
            .bold_line_style(RGBColor(225, 225, 225))
            .draw()?;
        for (what, colour, points) in curves {
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(2)))?
                .label(what)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], colour.stroke_width(2)));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .label_font((FONT, 13))
            .background_style(WHITE.mix(0.85))
            .draw()?;
    }
    area.present()?;
    Ok(())
}

fn curve(spots: &[Spot], line: f64, of: impl Fn(&Spot) -> (f64, f64)) -> Vec<(f64, f64)> {
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
