//! Drawing: curves in panels side by side, on a scale of powers of ten or a plain one.

use std::ops::Range;
use std::path::Path;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::element::DashedPathElement;
use plotters::prelude::*;

use crate::Failure;

const PANEL: (u32, u32) = (520, 410);
const FONT: &str = "sans-serif";

/// How a curve looks.
#[derive(Clone, Copy)]
pub enum Look {
    Line(RGBColor),
    Dashed(RGBColor),
    /// Points alone: what somebody states and we do not measure.
    Marks(RGBColor),
}

pub struct Curve {
    pub name: &'static str,
    pub look: Look,
    pub points: Vec<(f64, f64)>,
    /// Why the curve ends where it does.
    pub end: Option<&'static str>,
}

pub struct Panel {
    pub title: String,
    pub curves: Vec<Curve>,
}

/// A figure: panels that share their axes.
pub struct Figure {
    pub x: (&'static str, Range<f64>),
    pub y: (&'static str, Range<f64>),
    pub is_logarithmic: bool,
    /// Whether the x axis is one of powers of ten, too.
    pub is_logarithmic_x: bool,
    /// What stands at the numbers 1, 2, ... of the x axis instead of them; nothing where numbers stand.
    pub names: Vec<&'static str>,
    pub panels: Vec<Panel>,
}

impl Figure {
    /// Writes it as SVG.
    pub fn draw(&self, path: &Path) -> Result<(), Failure> {
        let size = (PANEL.0 * self.panels.len() as u32, PANEL.1);
        let area = SVGBackend::new(path, size).into_drawing_area();
        area.fill(&WHITE)?;
        for (panel, part) in self.panels.iter().zip(area.split_evenly((1, self.panels.len()))) {
            let (x, y) = (self.x.1.clone(), self.y.1.clone());
            match (self.is_logarithmic_x, self.is_logarithmic) {
                (true, true) => self.panel(panel, &part, x.log_scale(), y.log_scale())?,
                (true, false) => self.panel(panel, &part, x.log_scale(), y)?,
                (false, true) => self.panel(panel, &part, x, y.log_scale())?,
                (false, false) => self.panel(panel, &part, x, y)?,
            }
        }
        area.present()?;
        Ok(())
    }

    /// A label of the x axis.
    fn label(&self, value: f64) -> String {
        if self.names.is_empty() {
            return number(value);
        }
        let name = (value.fract() == 0.0 && value >= 1.0).then(|| self.names.get(value as usize - 1)).flatten();
        name.map_or(String::new(), |name| (*name).into())
    }

    fn panel<'a, X, Y>(
        &self,
        panel: &Panel,
        area: &DrawingArea<SVGBackend<'a>, Shift>,
        x: X,
        y: Y,
    ) -> Result<(), Failure>
    where
        X: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64> + Ranged<ValueType = f64>,
        Y: AsRangedCoord<Value = f64>,
        Y::CoordDescType: ValueFormatter<f64> + Ranged<ValueType = f64>,
    {
        let mut chart = ChartBuilder::on(area)
            .caption(&panel.title, (FONT, 17))
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(62)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .x_desc(self.x.0)
            .y_desc(self.y.0)
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 14))
            .light_line_style(WHITE)
            .bold_line_style(RGBColor(225, 225, 225))
            .y_label_formatter(&|value| number(*value))
            .x_labels(if self.names.is_empty() { 10 } else { self.names.len() + 2 })
            .x_label_formatter(&|value| self.label(*value))
            .draw()?;
        for curve in &panel.curves {
            let points = curve.points.iter().copied();
            match curve.look {
                Look::Line(colour) => chart
                    .draw_series(LineSeries::new(points, colour.stroke_width(2)))?
                    .label(curve.name)
                    .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], colour.stroke_width(2))),
                Look::Dashed(colour) => chart
                    .draw_series(DashedLineSeries::new(points, 5, 4, colour.stroke_width(1)))?
                    .label(curve.name)
                    .legend(move |(x, y)| DashedPathElement::new([(x, y), (x + 22, y)], 5, 4, colour.stroke_width(1))),
                Look::Marks(colour) => chart
                    .draw_series(points.map(|point| Cross::new(point, 4, colour.stroke_width(2))))?
                    .label(curve.name)
                    .legend(move |(x, y)| Cross::new((x + 11, y), 4, colour.stroke_width(2))),
            };
            if let (Some(word), Some(last), Look::Line(colour)) = (curve.end, curve.points.last(), curve.look) {
                chart.draw_series([Circle::new(*last, 3, colour.filled())])?;
                let style = (FONT, 13).into_font().color(&colour);
                chart.draw_series([EmptyElement::at(*last) + Text::new(word, (7, -5), style)])?;
            }
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .label_font((FONT, 13))
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(200, 200, 200))
            .draw()?;
        Ok(())
    }
}

/// A number of an axis: with as many decimals as it has, up to four.
fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}
