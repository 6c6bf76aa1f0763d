//! Figures 7 and 9: response time over arrival rate, a tenth of the transactions updates; two-phase locking on the EMB-
//! tree's root beside signatures that add up.
//!
//! The server's part is measured as it is on this machine, owner's signatures included. The user's part (checking) is
//! measured one at a time and stands beside it, as does the time that the answer takes on a line of 14.4 Mbit/s: users have
//! machines and lines of their own.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use counterfoil_bench_figures::{Axis, Curve, Figure, Legend, Look, Panel, RGBColor};

use crate::Failure;
use crate::breakdown;
use crate::load::{Job, Load, Outcome, run};
use crate::primitives::time;
use crate::scheme::{Keys, Reader as _, Scheme, record};
use crate::table4::{All, CONDENSED_MAX};

const RATES: [f64; 10] = [20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 4000.0, 8000.0, 16_000.0];
/// The same as they stand along an axis.
pub const RATE_NAMES: [&str; RATES.len()] = ["20", "50", "100", "200", "500", "1000", "2000", "4000", "8000", "16000"];
/// Seconds of arrivals of a point.
const SECONDS: f64 = 2.0;
/// A point whose jobs are done at less than this part of the rate at which they come is beyond saturation.
const KEPT_UP: f64 = 0.9;
pub const UPDATES: f64 = 0.1;
/// Bits a second of the paper's local network.
const LINE: f64 = 14.4e6;

fn keys(from: u32, count: u32) -> Keys {
    from * 2..=(from + count - 1) * 2
}

/// Does jobs; each update gives its record other contents than any before.
pub fn work(scheme: &impl Scheme) -> impl Fn(&Job) -> bool + Sync {
    let updates = AtomicU64::new(1);
    move |job| match job {
        Job::Query(from, count) => scheme.answer(keys(*from, *count)).map(std::hint::black_box).is_ok(),
        Job::Update(number) => scheme.update(&[record(*number, updates.fetch_add(1, Ordering::Relaxed))]).is_ok(),
    }
}

/// Jobs a second where all come at once.
pub fn saturation(scheme: &impl Scheme, load: &Load) -> Result<f64, Failure> {
    let first = run(&load.jobs(200, None), &work(scheme)).rate;
    let outcome = run(&load.jobs((first * SECONDS) as usize + 1, None), &work(scheme));
    if outcome.has_failed { Err("a transaction failed".into()) } else { Ok(outcome.rate) }
}

/// A scheme under load.
pub struct Measured {
    /// Milliseconds of the reader's check, of an answer of the mean size.
    pub verify: f64,
    /// Milliseconds of that answer on the line.
    pub line: f64,
    /// Rates and what was measured under them, up to saturation.
    pub points: Vec<(f64, Outcome)>,
}

impl Measured {
    /// Measures, and prints what is found on the way.
    fn print(name: &str, scheme: &impl Scheme, load: &Load) -> Result<Self, Failure> {
        let most = saturation(scheme, load)?;
        let count = (load.wanted.start() + load.wanted.end()) / 2;
        let (answer, reader) = (scheme.answer(keys(0, count))?, scheme.reader()?);
        let verify = time(20, || reader.check(keys(0, count), &answer).is_some());
        let line = answer.len() as f64 * 8.0 / LINE * 1e3;
        println!(
            "{name}: saturated at {most:.0} jobs/s; beside the server, checking {count} takes {verify:.2} ms and the line {line:.1} ms"
        );
        Ok(Self { verify, line, points: print_points(scheme, load)? })
    }
}

/// The points of a scheme up to saturation.
fn print_points(scheme: &impl Scheme, load: &Load) -> Result<Vec<(f64, Outcome)>, Failure> {
    let mut points = Vec::new();
    for rate in RATES {
        let outcome = run(&load.jobs((rate * SECONDS) as usize, Some(rate)), &work(scheme));
        if outcome.has_failed {
            return Err("a transaction failed".into());
        }
        let has_kept_up = outcome.rate > rate * KEPT_UP;
        println!(
            "{rate:>10} {:>10.0} {:>12.3} {:>12.3} {:>12.3} {:>12.3}{}",
            outcome.rate,
            outcome.query.response,
            outcome.query.waited,
            outcome.update.response,
            outcome.update.waited,
            if has_kept_up { "" } else { "   saturated" }
        );
        points.push((rate, outcome));
        if !has_kept_up {
            break;
        }
    }
    Ok(points)
}

/// A figure of the paper.
struct Kind {
    figure: u32,
    /// What its files are called.
    file: &'static str,
    what: &'static str,
    /// Records of a query.
    wanted: RangeInclusive<u32>,
    /// The paper's saturation, jobs a second: EMB-, BAS.
    stated: [u32; 2],
}

const KINDS: [Kind; 2] = [
    Kind { figure: 7, file: "point", what: "1 record", wanted: 1..=1, stated: [50, 120] },
    Kind { figure: 9, file: "range", what: "500 to 1500 records", wanted: 500..=1500, stated: [10, 45] },
];

/// The EMB- tree and BAS.
fn print_schemes(schemes: &All, records: u32, kind: &Kind, how: &str) -> Result<[Measured; 2], Failure> {
    let Kind { figure, what, stated: [embedded, bas], .. } = kind;
    println!(
        "\nFigure {figure}: queries of {what}, {how}, {records} records; the paper's saturation: EMB- {embedded} jobs/s, BAS {bas}"
    );
    println!(
        "{:>10} {:>10} {:>12} {:>12} {:>12} {:>12}",
        "jobs/s", "done/s", "query ms", "of it queue", "update ms", "of it queue"
    );
    let load = |records| Load { records, wanted: kind.wanted.clone(), updates: UPDATES };
    let fewer = records.min(CONDENSED_MAX);
    let embedded = Measured::print("EMB-", &schemes.embedded, &load(records))?;
    let bas = Measured::print("BAS", &schemes.bas, &load(records))?;
    let condensed = saturation(&schemes.condensed, &load(fewer))?;
    println!("RSA-3072 ({fewer} records): saturated at {condensed:.0} jobs/s");
    Ok([embedded, bas])
}

pub fn print(schemes: &All, records: u32, folder: Option<&Path>) -> Result<(), Failure> {
    let journals = [schemes.embedded.journal(), schemes.bas.journal(), schemes.condensed.journal()];
    for kind in KINDS {
        let mut panels = Vec::new();
        for (is_durable, how) in [(true, "updates durable"), (false, "updates in memory")] {
            journals.iter().for_each(|journal| journal.switch(is_durable));
            let both = print_schemes(schemes, records, &kind, how)?;
            let [embedded, bas] = &both;
            panels.push(panel(&format!("{}, {how}", kind.what), &embedded.points, &bas.points));
            if let (Some(folder), true) = (folder, is_durable) {
                let path = folder.join(format!("publish-breakdown-{}.svg", kind.file));
                breakdown::figure(&format!("{}, {how}", kind.what), &both).draw(&path)?;
            }
        }
        if let Some(folder) = folder {
            figure(panels).draw(&folder.join(format!("publish-response-{}.svg", kind.file)))?;
        }
    }
    Ok(())
}

fn figure(panels: Vec<Panel>) -> Figure {
    Figure {
        x: Axis::logarithmic("transactions a second", 20.0..20_000.0),
        y: Axis::logarithmic("response time at the server, ms", 0.01..10_000.0),
        legend: Legend::UpperLeft,
        panels,
    }
}

fn panel(title: &str, embedded: &[(f64, Outcome)], bas: &[(f64, Outcome)]) -> Panel {
    let curve = |name: &str, look, points: &[(f64, Outcome)], of: fn(&Outcome) -> f64| {
        let points = points.iter().map(|(rate, outcome)| (*rate, of(outcome))).collect();
        Curve::new(name, look, points)
    };
    let (red, blue) = (RGBColor(190, 60, 40), RGBColor(20, 90, 170));
    let query = |one: &Outcome| one.query.response;
    let update = |one: &Outcome| one.update.response;
    let curves = vec![
        curve("EMB-, queries", Look::Line(red), embedded, query),
        curve("EMB-, updates", Look::Dashed(red), embedded, update),
        curve("BAS, queries", Look::Line(blue), bas, query),
        curve("BAS, updates", Look::Dashed(blue), bas, update),
    ];
    Panel { title: title.into(), curves }
}
