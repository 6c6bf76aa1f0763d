//! Drawing: curves in panels side by side.
//!
//! 1. All panels of a figure share its axes.
//! 2. A curve stands in the legend as it was drawn, in the order of the panel's curves.

use std::path::Path;

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;

use crate::Failure;
use crate::axis::{Axis, Scale};

const FONT: &str = "sans-serif";
/// How long the piece of a line is that stands in a legend.
const SAMPLE_WIDTH: i32 = 22;
/// Of a name on the x axis, so that four bars have room there.
const BAR_WIDTH: f64 = 0.18;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Scale, Scale>>;

/// How a curve looks.
#[derive(Clone, Copy)]
pub enum Look {
    /// What was measured.
    Line(RGBColor),
    /// What belongs to a line of the same colour, or is computed.
    Dashed(RGBColor),
    /// Points alone: mostly what somebody states and we do not measure.
    Crosses(RGBColor),
    /// Points alone.
    Discs(RGBColor),
    /// Bars from the lower end of the y axis up to the points.
    Bars(RGBColor),
}

impl Look {
    /// What stands in a legend, from this pixel to the right.
    fn sample<'a>(self, (x, y): (i32, i32)) -> DynElement<'static, SVGBackend<'a>, (i32, i32)> {
        let (ends, middle) = ([(x, y), (x + SAMPLE_WIDTH, y)], (x + SAMPLE_WIDTH / 2, y));
        match self {
            Self::Line(colour) => PathElement::new(ends, colour.stroke_width(2)).into_dyn(),
            Self::Dashed(colour) => DashedPathElement::new(ends, 5, 4, colour.stroke_width(1)).into_dyn(),
            Self::Crosses(colour) => Cross::new(middle, 4, colour.stroke_width(2)).into_dyn(),
            Self::Discs(colour) => Circle::new(middle, 4, colour.filled()).into_dyn(),
            Self::Bars(colour) => Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled()).into_dyn(),
        }
    }
}

/// Points that belong together.
pub struct Curve {
    /// What the legend calls it.
    pub name: String,
    /// How it looks.
    pub look: Look,
    /// Where it is, from left to right.
    pub points: Vec<(f64, f64)>,
    /// Why a line ends where it does.
    pub end: Option<&'static str>,
}

impl Curve {
    /// One that ends where its points do, without a word.
    pub fn new(name: impl Into<String>, look: Look, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), look, points, end: None }
    }

    /// Moved to the right, so that curves with points at the same places do not cover each other.
    pub fn moved(mut self, by: f64) -> Self {
        self.points.iter_mut().for_each(|(x, _)| *x += by);
        self
    }

    fn draw(&self, chart: &mut Chart<'_>, bottom: f64) -> Result<(), Failure> {
        let (look, points) = (self.look, self.points.iter().copied());
        let bar = |(x, y)| [(x - BAR_WIDTH / 2.0, bottom), (x + BAR_WIDTH / 2.0, y)];
        let drawn = match look {
            Look::Line(colour) => chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?,
            Look::Dashed(colour) => chart.draw_series(DashedLineSeries::new(points, 5, 4, colour.stroke_width(1)))?,
            Look::Crosses(colour) => {
                chart.draw_series(points.map(|point| Cross::new(point, 4, colour.stroke_width(2))))?
            }
            Look::Discs(colour) => chart.draw_series(points.map(|point| Circle::new(point, 4, colour.filled())))?,
            Look::Bars(colour) => chart.draw_series(points.map(|point| Rectangle::new(bar(point), colour.filled())))?,
        };
        drawn.label(self.name.as_str()).legend(move |at| look.sample(at));
        self.draw_end(chart)
    }

    fn draw_end(&self, chart: &mut Chart<'_>) -> Result<(), Failure> {
        if let (Some(word), Some(last), Look::Line(colour)) = (self.end, self.points.last(), self.look) {
            chart.draw_series([Circle::new(*last, 3, colour.filled())])?;
            let style = (FONT, 13).into_font().color(&colour);
            chart.draw_series([EmptyElement::at(*last) + Text::new(word, (7, -5), style)])?;
        }
        Ok(())
    }
}

/// A part of a figure, with a title of its own.
pub struct Panel {
    /// What stands above it.
    pub title: String,
    /// The first is drawn first, so that later ones cover it.
    pub curves: Vec<Curve>,
}

/// Where a panel says what its curves are.
#[derive(Clone, Copy)]
pub enum Legend {
    /// Within the panel, where curves go up.
    UpperLeft,
    /// Within the panel, where they go down.
    UpperRight,
    /// Beside the panel, which is wider, too: for many curves.
    Beside,
}

/// How large a panel is and what is in it, in pixels.
struct Measures {
    panel: (u32, u32),
    /// What stands beside the axes.
    beside: u32,
    /// Left of the y axis.
    y_labels: u32,
    /// How many numbers the x axis has room for.
    x_numbers_max: usize,
}

impl Legend {
    fn measures(self) -> Measures {
        match self {
            Self::UpperLeft | Self::UpperRight => {
                Measures { panel: (520, 410), beside: 0, y_labels: 62, x_numbers_max: 10 }
            }
            Self::Beside => Measures { panel: (1080, 470), beside: 170, y_labels: 72, x_numbers_max: 12 },
        }
    }
}

/// Panels side by side.
pub struct Figure {
    /// From left to right.
    pub x: Axis,
    /// From the bottom up; it has no names.
    pub y: Axis,
    /// The same for all panels.
    pub legend: Legend,
    /// From left to right.
    pub panels: Vec<Panel>,
}

impl Figure {
    /// Writes it as SVG.
    pub fn draw(&self, path: &Path) -> Result<(), Failure> {
        let (width, height) = self.legend.measures().panel;
        let area = SVGBackend::new(path, (width * self.panels.len() as u32, height)).into_drawing_area();
        area.fill(&WHITE)?;
        for (panel, part) in self.panels.iter().zip(area.split_evenly((1, self.panels.len()))) {
            self.draw_panel(panel, &part)?;
        }
        area.present()
    }

    fn draw_panel(&self, panel: &Panel, area: &Area<'_>) -> Result<(), Failure> {
        let Measures { panel: (width, _), beside, .. } = self.legend.measures();
        match self.legend {
            Legend::UpperLeft => draw_within(&mut self.draw_chart(panel, area)?, SeriesLabelPosition::UpperLeft),
            Legend::UpperRight => draw_within(&mut self.draw_chart(panel, area)?, SeriesLabelPosition::UpperRight),
            Legend::Beside => {
                let (left, right) = area.split_horizontally(width - beside);
                self.draw_chart(panel, &left)?;
                draw_beside(&panel.curves, &right)
            }
        }
    }

    /// Draws axes and curves.
    fn draw_chart<'a>(&self, panel: &Panel, area: &Area<'a>) -> Result<Chart<'a>, Failure> {
        let measures = self.legend.measures();
        let mut chart = ChartBuilder::on(area)
            .caption(&panel.title, (FONT, 17))
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(measures.y_labels)
            .build_cartesian_2d(self.x.scale(), self.y.scale())?;
        chart
            .configure_mesh()
            .x_desc(self.x.title)
            .y_desc(self.y.title)
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 14))
            .light_line_style(WHITE)
            .bold_line_style(RGBColor(225, 225, 225))
            .x_labels(self.x.labels_max(measures.x_numbers_max))
            .x_label_formatter(&|value| self.x.label(*value))
            .y_label_formatter(&|value| self.y.label(*value))
            .draw()?;
        panel.curves.iter().try_for_each(|curve| curve.draw(&mut chart, self.y.start()))?;
        Ok(chart)
    }
}

fn draw_within(chart: &mut Chart<'_>, position: SeriesLabelPosition) -> Result<(), Failure> {
    chart
        .configure_series_labels()
        .position(position)
        .label_font((FONT, 13))
        .background_style(WHITE.mix(0.85))
        .border_style(RGBColor(200, 200, 200))
        .draw()
}

fn draw_beside(curves: &[Curve], area: &Area<'_>) -> Result<(), Failure> {
    for (curve, y) in curves.iter().zip((48..).step_by(21)) {
        area.draw(&curve.look.sample((4, y)))?;
        area.draw(&Text::new(curve.name.as_str(), (34, y - 7), (FONT, 13)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Curve, Figure, Legend, Look, Panel};
    use crate::{Axis, RGBColor};

    const BLUE: RGBColor = RGBColor(20, 90, 170);

    fn drawn(figure: &Figure) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("figure.svg");
        figure.draw(&file).expect("a figure");
        std::fs::read_to_string(file).expect("text")
    }

    /// Two panels, with a curve of each look in the first.
    fn figure(legend: Legend) -> Figure {
        let looks = [Look::Line, Look::Dashed, Look::Crosses, Look::Discs, Look::Bars];
        let names = ["a line", "dashes", "crosses", "discs", "bars"];
        let curve = |(look, name): (fn(RGBColor) -> Look, &str)| {
            Curve::new(name, look(BLUE), vec![(1.0, 20_000.0), (2.0, 100.0)])
        };
        let mut curves: Vec<Curve> = looks.into_iter().zip(names).map(curve).collect();
        curves[0].end = Some("full beyond");
        Figure {
            x: Axis::named("query", vec!["scan", "lookup"]),
            y: Axis::logarithmic("rows a second", 1.0..1e7).abbreviated(),
            legend,
            panels: vec![Panel { title: "here".into(), curves }, Panel { title: "there".into(), curves: Vec::new() }],
        }
    }

    #[test]
    fn a_figure_is_drawn_with_its_labels() {
        for legend in [Legend::UpperLeft, Legend::UpperRight, Legend::Beside] {
            let drawn = drawn(&figure(legend));
            for text in
                ["query", "scan", "lookup", "rows a second", "100", "10 K", "1 M", "full beyond", "here", "there"]
            {
                assert!(drawn.lines().any(|line| line == text), "{text}");
            }
            for text in ["a line", "dashes", "crosses", "discs", "bars"] {
                assert_eq!(drawn.lines().filter(|line| *line == text).count(), 1, "{text}");
            }
        }
    }

    /// Three discs of four pixels: two points and the one in the legend.
    #[test]
    fn a_curve_stands_in_the_legend_as_it_was_drawn() {
        for legend in [Legend::UpperLeft, Legend::UpperRight, Legend::Beside] {
            assert_eq!(drawn(&figure(legend)).matches("r=\"4\"").count(), 3);
        }
    }

    #[test]
    fn a_curve_is_moved_as_a_whole() {
        let curve = Curve::new("moved", Look::Discs(BLUE), vec![(1.0, 5.0), (2.0, 6.0)]).moved(0.25);
        assert_eq!(curve.points, [(1.25, 5.0), (2.25, 6.0)]);
    }

    #[test]
    fn a_figure_that_cannot_be_written_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(figure(Legend::Beside).draw(&folder.path().join("missing/figure.svg")).is_err());
    }
}
