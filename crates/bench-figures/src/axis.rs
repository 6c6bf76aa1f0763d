//! An axis: where a number lies on it, and what is written there.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

/// One of the two axes of a figure.
pub struct Axis {
    pub(crate) title: &'static str,
    range: Range<f64>,
    is_logarithmic: bool,
    labels: Labels,
}

/// What stands along an axis.
enum Labels {
    Numbers,
    /// Numbers, the large ones in thousands and millions.
    Abbreviated,
    /// These instead of the numbers 1, 2, 3 ...
    Names(Vec<&'static str>),
}

impl Axis {
    /// One on which equal differences are equally long.
    pub fn plain(title: &'static str, range: Range<f64>) -> Self {
        Self { title, range, is_logarithmic: false, labels: Labels::Numbers }
    }

    /// One on which equal factors are equally long.
    pub fn logarithmic(title: &'static str, range: Range<f64>) -> Self {
        Self { is_logarithmic: true, ..Self::plain(title, range) }
    }

    /// One with names at 1, 2, 3 ..., and half as much before the first and behind the last as between two.
    pub fn named(title: &'static str, names: Vec<&'static str>) -> Self {
        let range = 0.5..names.len() as f64 + 0.5;
        Self { labels: Labels::Names(names), ..Self::plain(title, range) }
    }

    /// With 10 K for 10,000, and 1 M for a million.
    pub fn abbreviated(self) -> Self {
        Self { labels: Labels::Abbreviated, ..self }
    }

    pub(crate) fn start(&self) -> f64 {
        self.range.start
    }

    /// How many labels have room where so many numbers have; names all have.
    pub(crate) fn labels_max(&self, numbers_max: usize) -> usize {
        match &self.labels {
            Labels::Names(names) => names.len() + 1,
            _ => numbers_max,
        }
    }

    /// What is written at a number.
    pub(crate) fn label(&self, value: f64) -> String {
        match &self.labels {
            Labels::Abbreviated if value >= 1e6 => format!("{} M", number(value / 1e6)),
            Labels::Abbreviated if value >= 1e4 => format!("{} K", number(value / 1e3)),
            Labels::Numbers | Labels::Abbreviated => number(value),
            Labels::Names(names) => {
                // Between two names there are lines that have none, and lines are computed, so not quite whole.
                let is_whole = (value - value.round()).abs() < 1e-6 && value > 0.5;
                let name = if is_whole { names.get(value.round() as usize - 1) } else { None };
                name.map_or(String::new(), |name| (*name).into())
            }
        }
    }

    pub(crate) fn scale(&self) -> Scale {
        let range = self.range.clone();
        if self.is_logarithmic { Scale::Logarithmic(range.log_scale().into()) } else { Scale::Plain(range.into()) }
    }
}

/// A number with as many decimals as it has, up to four.
fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// Both kinds of axes as one type, so that what draws on them need not be written for each pair.
pub(crate) enum Scale {
    Plain(RangedCoordf64),
    Logarithmic(LogCoord<f64>),
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        match self {
            Self::Plain(scale) => scale.map(value, limit),
            Self::Logarithmic(scale) => scale.map(value, limit),
        }
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match self {
            Self::Plain(scale) => scale.key_points(hint),
            Self::Logarithmic(scale) => scale.key_points(hint),
        }
    }

    fn range(&self) -> Range<f64> {
        match self {
            Self::Plain(scale) => scale.range(),
            Self::Logarithmic(scale) => scale.range(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Axis;

    #[test]
    fn numbers_have_the_decimals_that_they_need() {
        let axis = Axis::plain("", 0.0..1.0);
        for (value, label) in [(0.0, "0"), (0.25, "0.25"), (-8.0, "-8"), (100.0, "100"), (200_000.0, "200000")] {
            assert_eq!(axis.label(value), label);
        }
        let axis = Axis::logarithmic("", 0.1..1e9).abbreviated();
        for (value, label) in
            [(0.1, "0.1"), (2.5, "2.5"), (1e3, "1000"), (1e4, "10 K"), (2.5e6, "2.5 M"), (1e9, "1000 M")]
        {
            assert_eq!(axis.label(value), label);
        }
    }

    #[test]
    fn names_stand_at_whole_numbers_from_one_on() {
        let axis = Axis::named("", vec!["first", "second"]);
        for (value, label) in [(0.0, ""), (0.5, ""), (1.0, "first"), (1.5, ""), (1.999_999_999, "second"), (3.0, "")] {
            assert_eq!(axis.label(value), label, "{value}");
        }
    }
}
