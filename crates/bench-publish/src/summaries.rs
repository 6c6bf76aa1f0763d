//! Figure 8: bytes of the summaries of changes, over the age at which signatures are renewed; and the sets in them beside the
//! bound of Elias and Fano.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use counterfoil_bench_figures::{Axis, Curve, Figure, Legend, Look, Panel, RGBColor};
use counterfoil_proof::{SecretKey, SparseSet, Summary, contents_root};

use crate::Failure;
use crate::random::Random;

pub const RECORDS: usize = 1_000_000;
/// Changed in a period of a second: a tenth of the paper's 50 transactions.
const CHANGED: usize = 5;
const RENEWAL_AGES: [u64; 8] = [100, 200, 400, 600, 900, 1200, 1800, 3600];

/// Numbers of records, drawn at random.
pub fn drawn(random: &mut Random, count: usize) -> Vec<u64> {
    let mut drawn = BTreeSet::new();
    while drawn.len() < count {
        drawn.insert(random.below(RECORDS) as u64);
    }
    drawn.into_iter().collect()
}

/// Bytes of `count` of the records in the code of Elias and Fano: for each two bits, and those by which there are more records.
pub fn elias_fano(count: usize) -> usize {
    (count as f64 * (2.0 + (RECORDS as f64 / count as f64).log2()) / 8.0).ceil() as usize
}

/// Bytes of a signed summary in which these changed, each once.
fn bytes(key: &SecretKey, changed: Vec<u64>) -> usize {
    let messages = changed.iter().map(|rid| {
        let mut message = [1; 32];
        message[..8].copy_from_slice(&rid.to_be_bytes());
        message
    });
    let contents = contents_root(messages.collect());
    let summary = Summary {
        definition: [7; 32],
        period: 1_000,
        before: [9; 32],
        ended: 1_700_000_000_000,
        contents,
        changed,
        finals: BTreeMap::new(),
    };
    summary.sign(key).len()
}

pub fn print(folder: Option<&Path>) -> Result<(), Failure> {
    let key = SecretKey::from_entropy(&[9; 32])?;
    let mut random = Random(29);
    println!(
        "\nsets of {RECORDS} records\n{:>10} {:>12} {:>12} {:>12}",
        "changed", "bytes", "Elias-Fano", "difference"
    );
    for count in [1, 5, 10, 100, 1000, 10_000, 50_000] {
        let set = SparseSet::encode(&drawn(&mut random, count)).len();
        println!("{count:>10} {set:>12} {:>12} {:>12}", elias_fano(count), set as i64 - elias_fano(count) as i64);
    }
    println!(
        "\nFigure 8: {CHANGED} records change a second; a period is a second. The paper: 375 bytes a summary, 171 KB from the average signature on (renewal at 900 s)"
    );
    println!(
        "{:>10} {:>10} {:>14} {:>14} {:>14} {:>14}",
        "renewed", "mean age", "marked bytes", "sum KB", "ours bytes", "sum KB"
    );
    let (mut marked_points, mut our_points) = (Vec::new(), Vec::new());
    for age in RENEWAL_AGES {
        // A signature is as old as half of the age on average: so many summaries are between it and now.
        let mean = age / 2;
        let renewed = RECORDS / age as usize;
        let marked = bytes(&key, drawn(&mut random, CHANGED + renewed));
        let ours = bytes(&key, drawn(&mut random, CHANGED));
        let [marked_sum, our_sum] = [marked, ours].map(|bytes| bytes as f64 * mean as f64 / 1024.0);
        println!("{age:>10} {mean:>10} {marked:>14} {marked_sum:>14.1} {ours:>14} {our_sum:>14.1}");
        marked_points.push((age as f64, marked_sum));
        our_points.push((age as f64, our_sum));
    }
    let Some(folder) = folder else { return Ok(()) };
    let curves = vec![
        Curve::new("renewal marks (the paper's rule)", Look::Dashed(RGBColor(190, 60, 40)), marked_points),
        Curve::new("renewal leaves no mark (ours)", Look::Line(RGBColor(20, 90, 170)), our_points),
        Curve::new("the paper", Look::Crosses(RGBColor(60, 60, 60)), vec![(900.0, 171.0)]),
    ];
    let figure = Figure {
        x: Axis::plain("seconds until a signature is renewed", 0.0..3600.0),
        y: Axis::plain("KB of summaries for a signature of average age", 0.0..1500.0),
        legend: Legend::UpperLeft,
        panels: vec![Panel { title: "Summaries that a reader needs".into(), curves }],
    };
    Ok(figure.draw(&folder.join("publish-summaries.svg"))?)
}

#[cfg(test)]
mod tests {
    use counterfoil_proof::SparseSet;

    use super::{RECORDS, drawn, elias_fano};
    use crate::random::Random;

    #[test]
    fn sets_take_what_elias_and_fano_allow_and_64_bytes_more_at_most() {
        let mut random = Random(31);
        for count in [1, 2, 5, 30, 100, 1000, 10_000, 50_000] {
            let numbers = drawn(&mut random, count);
            let bytes = SparseSet::encode(&numbers);
            assert!(bytes.len() <= elias_fano(count) + 64, "{} bytes for {count} of {RECORDS}", bytes.len());
            assert!(SparseSet::parse(&bytes).expect("a set").iter().eq(numbers));
        }
    }
}
