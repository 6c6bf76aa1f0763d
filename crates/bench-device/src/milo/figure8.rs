//! Figure 8: what a lookup (8a) and an insert with its commit (8b) cost by the number of distinct values, for the four schemes of the
//! paper and for our runs.

use counterfoil_flash_sim::Dice;

use super::cost::CALIBRATION;
use super::paper::Scheme;
use super::schemes::{Chained, Runs, Subject};
use crate::Failure;

/// Rows of the paper's table.
pub const ROWS_IN_FULL: u64 = 300_000;
/// Lookups and inserts of each point.
const LOOKUPS: u64 = 20;
const INSERTS: u64 = 2040;
/// Our merges come more seldom than the paper's pages fill, so their share wants more inserts.
const OUR_INSERTS: u64 = 16_384;
/// Pages of BF, beside its own, over which a chain is looked for: the paper names no number, and has chains broken where a value
/// has less than 0.1 % of the rows.
pub const BOUND: u64 = 1;

/// Ways to keep an index.
pub const WAYS: [Way; 5] = [
    Way { name: "Full Index Scan", scheme: Some(Scheme::FullScan) },
    Way { name: "Bloom Scan", scheme: Some(Scheme::BloomScan) },
    Way { name: "Bloom Skip", scheme: Some(Scheme::Skip) },
    Way { name: "Bloom Bounded Skip", scheme: Some(Scheme::BoundedSkip(BOUND)) },
    Way { name: "ours: sorted runs", scheme: None },
];

#[derive(Clone, Copy)]
pub struct Way {
    pub name: &'static str,
    scheme: Option<Scheme>,
}

/// Means of a way at a number of distinct values, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub lookup: f64,
    pub insert: f64,
}

/// Distinct values at which the figure is drawn.
pub fn distinct(rows: u64) -> Vec<u64> {
    [3, 15, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000]
        .into_iter()
        .filter(|count| *count <= rows)
        .collect()
}

impl Way {
    /// Measures a table of `rows`, evenly of `distinct` values.
    pub fn measure(&self, rows: u64, distinct: u64) -> Result<Point, Failure> {
        let (mut subject, inserts): (Box<dyn Subject>, u64) = match self.scheme {
            Some(scheme) => (Box::new(Chained::new(scheme, rows + INSERTS)), INSERTS),
            None => (Box::new(Runs::new(rows + OUR_INSERTS)?), OUR_INSERTS),
        };
        let mut dice = Dice::new(distinct);
        let keys: Vec<u64> = (0..rows).map(|_| dice.below(distinct)).collect();
        subject.load(&keys)?;
        let before = subject.cost();
        for _ in 0..inserts {
            subject.insert(dice.below(distinct))?;
        }
        let inserted = subject.cost();
        let mut found = 0;
        for _ in 0..LOOKUPS {
            found += subject.lookup(dice.below(distinct))?.len() as u64;
        }
        let share = (rows + inserts) * LOOKUPS / distinct;
        assert!((share / 3..3 * share + 60).contains(&(found + 20)), "{found} rows found where {share} were to be");
        Ok(Point {
            lookup: subject.cost().since(&inserted).milliseconds() / LOOKUPS as f64,
            insert: inserted.since(&before).milliseconds() / inserts as f64,
        })
    }
}

/// A number of distinct values, and what was measured there, in the order of the ways.
pub type Measured = (u64, Vec<Point>);

/// All points.
pub fn measured(rows: u64) -> Result<Vec<Measured>, Failure> {
    let at = |distinct: u64| {
        let points: Result<Vec<Point>, Failure> = WAYS.iter().map(|way| way.measure(rows, distinct)).collect();
        Ok((distinct, points?))
    };
    distinct(rows).into_iter().map(at).collect()
}

/// Prints both halves as tables, and what other bounds would do.
pub fn print(rows: u64, points: &[Measured]) -> Result<(), Failure> {
    println!("\nNot calibrated: the paper multiplies by {CALIBRATION}, its schemes and ours alike.");
    let halves = [
        ("8a: a lookup, ms", (|point| point.lookup) as fn(&Point) -> f64),
        ("8b: an insert and its commit, ms", |point| point.insert),
    ];
    for (title, value) in halves {
        println!(
            "\n| {title}; {rows} rows of distinct values |{} least |",
            WAYS.map(|way| format!(" {} |", way.name)).concat()
        );
        println!("|{}", "---|".repeat(WAYS.len() + 2));
        for (distinct, points) in points {
            let least = (0..WAYS.len()).min_by(|a, b| value(&points[*a]).total_cmp(&value(&points[*b]))).unwrap_or(0);
            let cells: String = points.iter().map(|point| format!(" {:.2} |", value(point))).collect();
            println!("| {distinct} |{cells} {} |", WAYS[least].name);
        }
    }
    bounds(rows)
}

/// Bounds of the chain.
fn bounds(rows: u64) -> Result<(), Failure> {
    println!("\n| pages of BF that an insert reads at most beside its own |{}", " a lookup, an insert: |".repeat(3));
    println!("|---|---|---|---|");
    let counts = [rows / 1000, rows / 100, rows].map(|count| count.max(1));
    println!("| distinct values | {} | {} | {} |", counts[0], counts[1], counts[2]);
    for bound in [0, 1, 2, 4, 8, 16, 62] {
        let way = Way { name: "", scheme: Some(Scheme::BoundedSkip(bound)) };
        let cell = |count: &u64| {
            let point = way.measure(rows, *count)?;
            Ok(format!(" {:.2}, {:.2} |", point.lookup, point.insert))
        };
        let cells: Result<String, Failure> = counts.iter().map(cell).collect();
        println!("| {bound} |{}", cells?);
    }
    Ok(())
}
