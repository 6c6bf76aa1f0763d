//! Figure 10: response time over the size of the cache of sums, for a tenth and for four tenths of updates; eager, lazy, and
//! one that learns. The server's sum alone: rows and bytes around it cost the same with and without a cache.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use counterfoil_bench_figures::{Axis, Curve, Figure, Legend, Look, Panel, RGBColor};
use counterfoil_proof::{Signature, SignatureSum};

use crate::Failure;
use crate::figure6::signatures;
use crate::load::{Job, Load, Outcome, run};
use crate::sigcache::Node;
use crate::sigcache::adaptive::Adaptive;
use crate::sigcache::cache::{SigCache, Updates};
use crate::sigcache::choice::{Cardinalities, Counting, choose, mirror};
use crate::sigcache::tree::SumTree;

/// A thousandth of the records, half as many or half as many more.
const WANTED: std::ops::RangeInclusive<u32> = 500..=1500;
/// Levels below the root among which sums are chosen.
const DEPTH: u32 = 13;
const PAIRS: [usize; 6] = [0, 128, 256, 512, 1024, 2048];
const SECONDS: f64 = 1.5;
/// Of the rate at which a server without a cache is saturated.
const LOADED: f64 = 0.8;
/// Queries after which the cache that learns is gone through.
const EVERY: u64 = 250;
/// Bytes of a sum as it would be sent or stored, as the paper counts.
const SUM: usize = 48;

/// A cache of some kind, behind one lock.
trait Served: Send {
    fn query(&mut self, from: usize, to: usize);
    fn update(&mut self, record: usize, leaf: Signature);
    fn additions(&self) -> u64;
}

impl Served for SigCache<SignatureSum> {
    fn query(&mut self, from: usize, to: usize) {
        std::hint::black_box(self.answer(from..to));
    }

    fn update(&mut self, record: usize, leaf: Signature) {
        SigCache::update(self, record, leaf);
    }

    fn additions(&self) -> u64 {
        self.additions
    }
}

impl Served for Adaptive<SignatureSum> {
    fn query(&mut self, from: usize, to: usize) {
        std::hint::black_box(self.answer(from..to));
    }

    fn update(&mut self, record: usize, leaf: Signature) {
        self.cache.update(record, leaf);
    }

    fn additions(&self) -> u64 {
        self.cache.additions
    }
}

impl Served for SumTree<SignatureSum> {
    fn query(&mut self, from: usize, to: usize) {
        std::hint::black_box(self.answer(from..to));
    }

    fn update(&mut self, record: usize, leaf: Signature) {
        SumTree::update(self, record, leaf);
    }

    fn additions(&self) -> u64 {
        self.additions
    }
}

/// Jobs through a cache; additions a job.
fn through(served: impl Served, leaves: &[Signature], jobs: &[(f64, Job)]) -> (Outcome, f64) {
    let before = served.additions();
    let served = Mutex::new(served);
    let outcome = run(jobs, &|job| {
        let mut served = served.lock().unwrap_or_else(PoisonError::into_inner);
        match job {
            Job::Query(from, count) => served.query(*from as usize, (*from + *count) as usize),
            Job::Update(number) => served.update(*number as usize, leaves[(*number as usize * 7 + 1) % leaves.len()]),
        }
        true
    });
    let additions = served.into_inner().unwrap_or_else(PoisonError::into_inner).additions() - before;
    (outcome, additions as f64 / jobs.len() as f64)
}

fn chosen(levels: u32) -> Vec<Node> {
    let (first, last) = (*WANTED.start() as usize, *WANTED.end() as usize);
    let chance = 1.0 / (last - first + 1) as f64;
    let cardinalities = Cardinalities((1..=last).map(|q| if q < first { 0.0 } else { chance }).collect());
    choose(levels, DEPTH, &cardinalities, PAIRS[PAIRS.len() - 1], Counting::KeptStay)
}

pub fn print(levels: u32, folder: Option<&Path>) -> Result<(), Failure> {
    let leaves = signatures(1 << levels)?;
    let chosen = chosen(levels);
    let with_mirrors = |pairs: usize| -> Vec<Node> {
        let mut nodes: Vec<Node> = chosen.iter().take(pairs).flat_map(|node| [*node, mirror(levels, *node)]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    };
    let cache = |pairs, updates| SigCache::<SignatureSum>::new(levels, leaves.clone(), &with_mirrors(pairs), updates);
    let mut panels = Vec::new();
    for updates in [0.1, 0.4] {
        let load = Load { records: 1 << levels, wanted: WANTED, updates };
        let (bare, _) = through(cache(0, Updates::Lazy), &leaves, &load.jobs(2000, None));
        let rate = bare.rate * LOADED;
        let jobs = load.jobs((rate * SECONDS) as usize, Some(rate));
        println!(
            "\n{} records, {:.0} % updates: saturated at {:.0} jobs/s without a cache; these are {rate:.0} jobs/s",
            1 << levels,
            updates * 100.0,
            bare.rate
        );
        println!("{:<16} {:>8} {:>8} {:>14} {:>12} {:>12}", "", "sums", "KB", "additions", "query ms", "update ms");
        let line = |name: &str, sums: usize, (outcome, additions): &(Outcome, f64)| {
            let kilobytes = (sums * SUM) as f64 / 1024.0;
            println!(
                "{name:<16} {sums:>8} {kilobytes:>8.1} {additions:>14.1} {:>12.3} {:>12.3}",
                outcome.query.response, outcome.update.response
            );
            (kilobytes, outcome.query.response)
        };
        let mut curves = Vec::new();
        for (name, how, colour) in
            [("eager", Updates::Eager, RGBColor(190, 60, 40)), ("lazy", Updates::Lazy, RGBColor(20, 90, 170))]
        {
            let point =
                |pairs: usize| line(name, with_mirrors(pairs).len(), &through(cache(pairs, how), &leaves, &jobs));
            let points = PAIRS.into_iter().filter(|pairs| *pairs <= chosen.len()).map(point).collect();
            curves.push(Curve::new(name, Look::Line(colour), points));
        }
        let learning = |pairs: usize| {
            let adaptive = Adaptive::new(cache(0, Updates::Lazy), 2 * pairs, EVERY);
            line("adaptive, lazy", 2 * pairs, &through(adaptive, &leaves, &jobs))
        };
        let points = PAIRS[1..].iter().copied().map(learning).collect();
        curves.push(Curve::new("adaptive, lazy", Look::Dashed(RGBColor(40, 130, 60)), points));
        line("all sums", (1 << levels) - 1, &through(SumTree::new(leaves.clone()), &leaves, &jobs));
        panels.push(Panel { title: format!("{:.0} % updates", updates * 100.0), curves });
    }
    let Some(folder) = folder else { return Ok(()) };
    let points = panels.iter().flat_map(|panel| &panel.curves).flat_map(|curve| &curve.points);
    let most = points.fold((1.0f64, 1.0f64), |most, point| (most.0.max(point.0), most.1.max(point.1)));
    let figure = Figure {
        x: Axis::plain("KB of sums kept", 0.0..most.0),
        y: Axis::plain("response time of a sum, ms", 0.0..most.1 * 1.05),
        legend: Legend::UpperLeft,
        panels,
    };
    Ok(figure.draw(&folder.join("publish-sigcache-response.svg"))?)
}
