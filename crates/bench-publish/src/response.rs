//! Figures 7 and 9: response time over arrival rate, a tenth of the transactions updates; two-phase locking on the EMB-
//! tree's root beside signatures that add up.
//!
//! The server's part is measured as it is on this machine, owner's signatures included. The user's part (checking) is
//! measured one at a time and stands beside it, as does the time that the answer takes on a line of 14.4 Mbit/s: users have
//! machines and lines of their own.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use counterfoil_bench_figures::{Axis, Curve, Figure, Legend, Look, Panel, RGBColor};

use crate::Failure;
use crate::load::{Job, Load, Outcome, run};
use crate::primitives::time;
use crate::scheme::{Keys, Reader as _, Scheme, record};
use crate::table4::{All, CONDENSED_MAX};

const RATES: [f64; 10] = [20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 4000.0, 8000.0, 16_000.0];
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
        Job::Update(number) => scheme.update(record(*number, updates.fetch_add(1, Ordering::Relaxed))).is_ok(),
    }
}

/// Jobs a second where all come at once.
pub fn saturation(scheme: &impl Scheme, load: &Load) -> Result<f64, Failure> {
    let first = run(&load.jobs(200, None), &work(scheme)).rate;
    let outcome = run(&load.jobs((first * SECONDS) as usize + 1, None), &work(scheme));
    if outcome.has_failed { Err("a transaction failed".into()) } else { Ok(outcome.rate) }
}

/// The points of a scheme up to saturation.
fn curve(name: &str, scheme: &impl Scheme, load: &Load) -> Result<Vec<(f64, Outcome)>, Failure> {
    let most = saturation(scheme, load)?;
    let count = *load.wanted.end();
    let (answer, reader) = (scheme.answer(keys(0, count))?, scheme.reader()?);
    let verify = time(20, || reader.check(keys(0, count), &answer).is_some());
    let line = answer.len() as f64 * 8.0 / LINE * 1e3;
    println!(
        "{name}: saturated at {most:.0} jobs/s; beside the server, checking takes {verify:.2} ms and the line {line:.1} ms"
    );
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

/// What the paper states of saturation, jobs a second: EMB-, BAS.
const STATED: [[u32; 2]; 2] = [[50, 120], [10, 45]];

pub fn print(schemes: &All, records: u32, folder: Option<&Path>) -> Result<(), Failure> {
    let mut panels = Vec::new();
    for is_durable in [true, false] {
        let journals = [schemes.embedded.journal(), schemes.bas.journal(), schemes.condensed.journal()];
        journals.iter().for_each(|journal| journal.switch(is_durable));
        let how = if is_durable { "updates durable" } else { "updates in memory" };
        for ((figure, kind, wanted), stated) in
            [(7, "1 record", 1..=1), (9, "500 to 1500 records", 500..=1500)].into_iter().zip(STATED)
        {
            println!(
                "\nFigure {figure}: queries of {kind}, {how}, {records} records; the paper's saturation: EMB- {} jobs/s, BAS {}",
                stated[0], stated[1]
            );
            println!(
                "{:>10} {:>10} {:>12} {:>12} {:>12} {:>12}",
                "jobs/s", "done/s", "query ms", "of it queue", "update ms", "of it queue"
            );
            let load = |records| Load { records, wanted: wanted.clone(), updates: UPDATES };
            let fewer = records.min(CONDENSED_MAX);
            let embedded = curve("EMB-", &schemes.embedded, &load(records))?;
            let bas = curve("BAS", &schemes.bas, &load(records))?;
            println!(
                "RSA-3072 ({fewer} records): saturated at {:.0} jobs/s",
                saturation(&schemes.condensed, &load(fewer))?
            );
            panels.push((figure, is_durable, panel(&format!("{kind}, {how}"), &embedded, &bas)));
        }
    }
    let Some(folder) = folder else { return Ok(()) };
    for wanted in [7, 9] {
        let (of, others): (Vec<_>, Vec<_>) = panels.into_iter().partition(|(figure, ..)| *figure == wanted);
        panels = others;
        let panels = of.into_iter().map(|(_, _, panel)| panel).collect();
        let figure = Figure {
            x: Axis::logarithmic("transactions a second", 20.0..20_000.0),
            y: Axis::logarithmic("response time at the server, ms", 0.01..10_000.0),
            legend: Legend::UpperLeft,
            panels,
        };
        figure.draw(&folder.join(format!("publish-response-{}.svg", if wanted == 7 { "point" } else { "range" })))?;
    }
    Ok(())
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
