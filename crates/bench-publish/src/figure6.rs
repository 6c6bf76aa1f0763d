//! Figure 6: what the cache of signatures spares, counted and timed, and the tree of all sums beside it.

use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use counterfoil_bench_figures::{Axis, Curve, Figure, Legend, Look, Panel, RGBColor};
use counterfoil_proof::{Message, SecretKey, Signature, SignatureSum};

use crate::Failure;
use crate::random::Random;
use crate::sigcache::cache::{SigCache, Updates};
use crate::sigcache::choice::{Cardinalities, Counting, choose, mirror};
use crate::sigcache::tree::SumTree;
use crate::sigcache::{Node, Sum};

/// Levels below the root that the choice looks at.
const DEPTH: u32 = 10;
const PAIRS: [usize; 8] = [0, 1, 2, 4, 8, 16, 32, 64];
const COUNTED: usize = 20_000;
const TIMED: usize = 30;
/// Signatures that differ; a larger tree has each of them several times, which additions do not notice.
const DISTINCT: usize = 1 << 15;
/// What section 4.1 states of eight pairs: milliseconds without a cache, percent spared with one.
const STATED: [(&str, f64, f64); 2] = [("skewed", 9.85, 57.0), ("uniform", 5080.0, 75.0)];

pub fn print(levels: u32, folder: Option<&Path>) -> Result<(), Failure> {
    let records = 1usize << levels;
    let signatures = signatures(records)?;
    let mut panels = Vec::new();
    for (name, without, spared) in STATED {
        let cardinalities =
            if name == "skewed" { Cardinalities::skewed(records) } else { Cardinalities::uniform(records) };
        println!(
            "\n{name} cardinalities, {records} records; the paper: {without} ms without a cache, {spared} % less with 8 pairs"
        );
        let [written, stay] = [Counting::AsWritten, Counting::KeptStay]
            .map(|counting| distribution(levels, &cardinalities, &signatures, counting));
        let stated = Curve::new("the paper, 8 pairs", Look::Crosses(RGBColor(60, 60, 60)), vec![(8.0, spared)]);
        let written = Curve::new("Algorithm 1 as written", Look::Dashed(RGBColor(190, 60, 40)), written);
        let stay = Curve::new("kept sums go on saving", Look::Line(RGBColor(20, 90, 170)), stay);
        panels.push(Panel { title: format!("SigCache, {name}"), curves: vec![written, stay, stated] });
    }
    let figure = Figure {
        x: Axis::plain("pairs of sums kept", 0.0..64.0),
        y: Axis::plain("additions spared, %", 0.0..100.0),
        legend: Legend::UpperLeft,
        panels,
    };
    folder.map_or(Ok(()), |folder| Ok(figure.draw(&folder.join("publish-sigcache.svg"))?))
}

pub fn signatures(records: usize) -> Result<Vec<Signature>, Failure> {
    let key = SecretKey::from_entropy(&[7; 32])?;
    let messages: Vec<Message> = (0..records.min(DISTINCT) as u64)
        .map(|number| {
            let mut bytes = [0; 32];
            bytes[24..].copy_from_slice(&number.to_be_bytes());
            Message(bytes)
        })
        .collect();
    let signed: Vec<Signature> = key.sign_all(&messages).into_iter().map(|(signature, _)| signature).collect();
    Ok(signed.into_iter().cycle().take(records).collect())
}

/// Prints a line for each size of the cache, and the tree's; the percents spared.
fn distribution(
    levels: u32,
    cardinalities: &Cardinalities,
    signatures: &[Signature],
    counting: Counting,
) -> Vec<(f64, f64)> {
    let queries = queries(cardinalities);
    let chosen = choose(levels, DEPTH, cardinalities, PAIRS[PAIRS.len() - 1], counting);
    let with_mirrors = |pairs: usize| -> Vec<Node> {
        let mut nodes: Vec<Node> = chosen.iter().take(pairs).flat_map(|node| [*node, mirror(levels, *node)]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    };
    println!("{counting:?}, the first pairs: {:?}", &chosen[..chosen.len().min(8)]);
    println!("{:>8} {:>16} {:>10} {:>14}", "pairs", "additions", "spared", "ms a query");
    let numbers: Vec<u64> = vec![1; 1 << levels];
    let plain = counted(&mut SigCache::<u64>::new(levels, numbers.clone(), &[], Updates::Eager), &queries);
    let mut points = Vec::new();
    for pairs in PAIRS.into_iter().filter(|pairs| *pairs <= chosen.len()) {
        let nodes = with_mirrors(pairs);
        let additions = counted(&mut SigCache::<u64>::new(levels, numbers.clone(), &nodes, Updates::Eager), &queries);
        let mut cache = SigCache::<SignatureSum>::new(levels, signatures.to_vec(), &nodes, Updates::Eager);
        let spared = 100.0 * (1.0 - additions / plain);
        println!(
            "{pairs:>8} {additions:>16.1} {spared:>8.1} % {:>14.3}",
            timed(&queries, |range| _ = std::hint::black_box(cache.answer(range)))
        );
        points.push((pairs as f64, spared));
    }
    let mut tree = SumTree::<SignatureSum>::new(signatures.to_vec());
    let time = timed(&queries, |range| _ = std::hint::black_box(tree.answer(range)));
    let additions = tree.additions as f64 / TIMED as f64;
    println!("{:>8} {additions:>16.1} {:>8.3} % {time:>14.4}", "all sums", 100.0 * (1.0 - additions / plain));
    let nodes = with_mirrors(8);
    for updates in [Updates::Eager, Updates::Lazy] {
        let cache = SigCache::<u64>::new(levels, numbers.clone(), &nodes, updates);
        println!(
            "{updates:?}: {:.1} additions a transaction, a tenth of them updates, 8 pairs",
            mixed(cache, &queries)
        );
    }
    points
}

/// Additions a transaction where every tenth is an update.
fn mixed(mut cache: SigCache<u64>, queries: &[Range<usize>]) -> f64 {
    let mut random = Random(13);
    let some = &queries[..queries.len() / 10];
    for (at, range) in some.iter().enumerate() {
        match at % 10 {
            9 => cache.update(random.below(cache.len()), 1),
            _ => _ = cache.answer(range.clone()),
        }
    }
    cache.additions as f64 / some.len() as f64
}

fn queries(cardinalities: &Cardinalities) -> Vec<Range<usize>> {
    let (mut random, records) = (Random(11), cardinalities.0.len());
    let sums: Vec<f64> = cardinalities.0.iter().scan(0.0, |sum, chance| (*sum += chance, Some(*sum)).1).collect();
    let query = |_| {
        let part = random.part();
        let cardinality = (sums.partition_point(|sum| *sum <= part) + 1).min(records);
        let from = random.below(records - cardinality + 1);
        from..from + cardinality
    };
    (0..COUNTED).map(query).collect()
}

/// Additions a query; numbers stand for signatures. Every answer is looked at: all leaves are one.
fn counted<S: Sum<Leaf = u64> + PartialEq<u64>>(cache: &mut SigCache<S>, queries: &[Range<usize>]) -> f64 {
    // Long answers without a cache are plain loops over their leaves; a part of the queries is enough.
    let some = &queries[..queries.len() / 10];
    for range in some {
        assert!(cache.answer(range.clone()) == range.len() as u64, "a cached sum is not what it stands for");
    }
    cache.additions as f64 / some.len() as f64
}

/// Milliseconds a query.
fn timed(queries: &[Range<usize>], mut answer: impl FnMut(Range<usize>)) -> f64 {
    let start = Instant::now();
    queries.iter().take(TIMED).cloned().for_each(&mut answer);
    start.elapsed().as_secs_f64() * 1000.0 / TIMED as f64
}
