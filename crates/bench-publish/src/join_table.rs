//! Figure 11: bytes that prove values without a match.

use std::path::Path;
use std::time::Instant;

use counterfoil_bench_figures::{Axis, Curve, Figure, Legend, Look, Panel, RGBColor};

use crate::Failure;
use crate::join::{Columns, Filters, ROW, VALUE, expected_boundary_bytes, expected_filter_bytes, filter};

/// The paper's tables: securities, and distinct ones among 894,000 holdings.
const DISTINCT_A: usize = 6850;
const DISTINCT_B: usize = 3425;

#[derive(Clone, Copy)]
struct Case {
    alpha: f64,
    bits: u32,
    partition: usize,
    selectivity: f64,
}

/// Section 5.5.
const DEFAULT: Case = Case { alpha: 0.5, bits: 8, partition: 4, selectivity: 0.2 };

impl Case {
    /// Prints a line; bytes of boundary values, and of filters.
    fn measure(self, columns: &Columns, x: f64) -> [f64; 2] {
        let unmatched = columns.unmatched((DISTINCT_A as f64 * self.selectivity).round() as usize, self.alpha);
        let boundary = columns.boundary_bytes(unmatched);
        let proof = Filters::new(columns, self.partition, self.bits).prove(unmatched);
        let (a, b) = (DISTINCT_A as f64 * self.selectivity, DISTINCT_B as f64);
        let formulas = (
            expected_boundary_bytes(self.alpha, a, b),
            expected_filter_bytes(self.alpha, a, b, self.partition as f64, f64::from(self.bits)),
        );
        let rows = boundary / VALUE * ROW;
        let smaller = 100.0 * (1.0 - proof.bytes() as f64 / boundary as f64);
        println!(
            "{x:>8} {:>8} {boundary:>8} {:>8} {smaller:>7.1} % {:>8} {:>8} {:>8} {:>6} {:>9.0} {:>9.0} {:>9} {:>9} {:>7.1} %",
            unmatched.len(),
            proof.bytes(),
            proof.filters,
            proof.partition_bounds,
            proof.boundaries,
            proof.false_positives,
            formulas.0,
            formulas.1,
            rows,
            proof.signed_bytes(),
            100.0 * (1.0 - proof.signed_bytes() as f64 / rows as f64)
        );
        [boundary as f64, proof.bytes() as f64]
    }
}

fn panel(title: &str, columns: &Columns, cases: impl Iterator<Item = (f64, Case)>) -> Panel {
    println!("\n{title}");
    println!(
        "{:>8} {:>8} {:>8} {:>8} {:>9} {:>8} {:>8} {:>8} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "x",
        "open",
        "BV",
        "BF",
        "smaller",
        "filters",
        "bounds",
        "values",
        "false",
        "formula 2",
        "formula 3",
        "BV rows",
        "BF rows",
        "smaller"
    );
    let measured: Vec<(f64, [f64; 2])> = cases.map(|(x, case)| (x, case.measure(columns, x))).collect();
    let curve = |name: &str, colour, which: usize| {
        let points = measured.iter().map(|(x, bytes)| (*x, bytes[which] / 1024.0)).collect();
        Curve::new(name, Look::Line(colour), points)
    };
    let curves = vec![curve("boundary values", RGBColor(190, 60, 40), 0), curve("filters", RGBColor(20, 90, 170), 1)];
    Panel { title: title.into(), curves }
}

pub fn print(folder: Option<&Path>) -> Result<(), Failure> {
    let columns = Columns::new(DISTINCT_A, DISTINCT_B);
    let alphas = (0..=9).map(|tenth| f64::from(tenth) / 10.0).map(|alpha| (alpha, Case { alpha, ..DEFAULT }));
    let bits = [2, 4, 6, 8, 10, 12, 14, 16].map(|bits| (f64::from(bits), Case { bits, ..DEFAULT })).into_iter();
    let partitions =
        (1..=11).map(|power| 1 << power).map(|partition| (partition as f64, Case { partition, ..DEFAULT }));
    let selectivities = [0.5, 1.0, 5.0, 10.0, 20.0, 40.0, 60.0, 80.0, 95.0]
        .map(|percent| (percent, Case { selectivity: percent / 100.0, ..DEFAULT }))
        .into_iter();
    let figures = [
        ("alpha", 1.0, false, panel("(a) part of R that has a match", &columns, alphas)),
        ("bits", 16.0, false, panel("(b) bits of a filter for each value", &columns, bits)),
        ("partition", 2048.0, true, panel("(c) values in a partition", &columns, partitions)),
        ("selectivity", 95.0, false, panel("(d) selectivity on R, %", &columns, selectivities)),
    ];
    rebuilds();
    let Some(folder) = folder else { return Ok(()) };
    for (name, end, is_logarithmic, panel) in figures {
        let x = if is_logarithmic { Axis::logarithmic(name, 2.0..end) } else { Axis::plain(name, 0.0..end) };
        let y = Axis::plain("KB of proof", 0.0..16.0);
        Figure { x, y, legend: Legend::UpperLeft, panels: vec![panel] }
            .draw(&folder.join(format!("publish-join-{name}.svg")))?;
    }
    Ok(())
}

/// What building one partition's filter takes: the dashed line of (c).
fn rebuilds() {
    println!("\n{:>10} {:>22}", "values", "microseconds a filter");
    for power in 1..=11 {
        let values: Vec<u32> = (0..1 << power).collect();
        let rounds = (1 << 15 >> power).max(8);
        let start = Instant::now();
        (0..rounds).for_each(|at| drop(std::hint::black_box(filter(at, &values, DEFAULT.bits))));
        println!("{:>10} {:>22.2}", values.len(), start.elapsed().as_secs_f64() * 1e6 / rounds as f64);
    }
}
