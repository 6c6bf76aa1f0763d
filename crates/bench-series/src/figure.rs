//! Drawing: what several systems do, on a scale of powers of ten, beside what the paper says.

use std::ops::Range;
use std::path::Path;

use plotters::element::DashedPathElement;
use plotters::prelude::*;

use crate::Failure;

const SIZE: (u32, u32) = (1080, 470);
/// Width of what the curves are called.
const LEGEND: u32 = 170;
const FONT: &str = "sans-serif";

/// How a curve looks.
#[derive(Clone, Copy)]
pub enum Look {
    Line(RGBColor),
    Dashed(RGBColor),
    Crosses(RGBColor),
    Discs(RGBColor),
}

pub struct Curve {
    pub name: String,
    pub look: Look,
    pub points: Vec<(f64, f64)>,
}

/// A figure of one panel.
pub struct Figure {
    pub title: &'static str,
    pub x: (&'static str, Range<f64>),
    pub y: (&'static str, Range<f64>),
    /// What stands at 0, 1, 2 ... of the first axis, where those are no numbers.
    pub names: Vec<&'static str>,
    pub is_logarithmic: bool,
    pub curves: Vec<Curve>,
}

impl Figure {
    /// Writes it as SVG.
    pub fn draw(&self, path: &Path) -> Result<(), Failure> {
        let area = SVGBackend::new(path, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let (left, right) = area.split_horizontally(SIZE.0 - LEGEND);
        match self.is_logarithmic {
            true => self.panel(&left, self.y.1.clone().log_scale())?,
            false => self.panel(&left, self.y.1.clone())?,
        }
        self.legend(&right)?;
        area.present()?;
        Ok(())
    }

    fn panel<'a, Y>(
        &self,
        area: &DrawingArea<SVGBackend<'a>, plotters::coord::Shift>,
        y: impl plotters::coord::ranged1d::AsRangedCoord<Value = f64, CoordDescType = Y>,
    ) -> Result<(), Failure>
    where
        Y: plotters::coord::ranged1d::ValueFormatter<f64> + Ranged<ValueType = f64>,
    {
        let mut chart = ChartBuilder::on(area)
            .caption(self.title, (FONT, 17))
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(72)
            .build_cartesian_2d(self.x.1.clone(), y)?;
        chart
            .configure_mesh()
            .x_desc(self.x.0)
            .y_desc(self.y.0)
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 14))
            .light_line_style(WHITE)
            .bold_line_style(RGBColor(225, 225, 225))
            .x_labels(if self.names.is_empty() { 12 } else { self.names.len() + 1 })
            .y_label_formatter(&|value| number(*value))
            .x_label_formatter(&|value| self.x_label(*value))
            .draw()?;
        for curve in &self.curves {
            let points = curve.points.iter().copied();
            match curve.look {
                Look::Line(colour) => chart.draw_series(LineSeries::new(points, colour.stroke_width(2))).map(drop)?,
                Look::Dashed(colour) => {
                    chart.draw_series(DashedLineSeries::new(points, 5, 4, colour.stroke_width(1))).map(drop)?;
                }
                Look::Crosses(colour) => {
                    chart.draw_series(points.map(|point| Cross::new(point, 4, colour.stroke_width(2)))).map(drop)?
                }
                Look::Discs(colour) => {
                    chart.draw_series(points.map(|point| Circle::new(point, 4, colour.filled()))).map(drop)?;
                }
            }
        }
        Ok(())
    }

    /// What the curves are, beside them.
    fn legend(&self, area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) -> Result<(), Failure> {
        for (curve, y) in self.curves.iter().zip((48..).step_by(21)) {
            match curve.look {
                Look::Line(colour) => area.draw(&PathElement::new([(4, y), (26, y)], colour.stroke_width(2)))?,
                Look::Dashed(colour) => {
                    area.draw(&DashedPathElement::new([(4, y), (26, y)], 5, 4, colour.stroke_width(1)))?;
                }
                Look::Crosses(colour) => area.draw(&Cross::new((15, y), 4, colour.stroke_width(2)))?,
                Look::Discs(colour) => area.draw(&Circle::new((15, y), 4, colour.filled()))?,
            }
            area.draw(&Text::new(curve.name.clone(), (34, y - 7), (FONT, 13)))?;
        }
        Ok(())
    }

    fn x_label(&self, value: f64) -> String {
        if self.names.is_empty() {
            return number(value);
        }
        let is_whole = (value - value.round()).abs() < 1e-6 && value >= -0.5;
        let name = if is_whole { self.names.get(value.round() as usize) } else { None };
        name.map_or(String::new(), |name| (*name).to_owned())
    }
}

/// A number of an axis.
fn number(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{:.0} M", v / 1e6),
        v if v >= 1e4 => format!("{:.0} K", v / 1e3),
        v if v.abs() >= 1.0 || v == 0.0 => format!("{v:.0}"),
        v => format!("{v}"),
    }
}
