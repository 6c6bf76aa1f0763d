//! For benchmarks alone: their figures, and what all of them say of where and when they measured.
//!
//! A [`Figure`] is curves in panels side by side, written as SVG. It draws what our benchmarks show, all of them alike, and can
//! nothing else.
//!
//! ```
//! use counterfoil_bench_figures::{Axis, Curve, Figure, Legend, Look, Panel, RGBColor};
//!
//! let measured = vec![(1e3, 0.4), (1e4, 3.7), (1e5, 41.0)];
//! let curve = Curve::new("ours", Look::Line(RGBColor(20, 90, 170)), measured);
//! let figure = Figure {
//!     x: Axis::logarithmic("rows", 1e3..1e5),
//!     y: Axis::logarithmic("milliseconds", 0.1..100.0),
//!     legend: Legend::UpperLeft,
//!     panels: vec![Panel { title: "A sum of all rows".into(), curves: vec![curve] }],
//! };
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("sum.svg");
//! figure.draw(&file)?;
//! assert!(std::fs::read_to_string(file)?.contains("A sum of all rows"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod axis;
mod figure;
pub mod machine;

pub use axis::Axis;
pub use figure::{Curve, Figure, Legend, Look, Panel};
pub use plotters::style::RGBColor;

/// Why a figure was not written.
pub type Failure = plotters::drawing::DrawingAreaErrorKind<std::io::Error>;
