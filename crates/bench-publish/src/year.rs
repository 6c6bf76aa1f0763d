//! A year of a published series: a day's readings come each day, its period ends, and somebody asks for the year.

use std::time::Instant;

use counterfoil_mirror::{MemoryShelf, totals};
use counterfoil_proof::{Chain, Interval, TotalsQuestion, Trust, TrustedManifest, check_totals};
use counterfoil_publish::{Edit, MemoryLedger, Plan, Publication, Secrets};

use crate::Failure;
use crate::primitives::time;
use crate::totals::{DAY, definition, interval, row};

const DAYS: i64 = 365;
/// Milliseconds.
const DAY_LONG: u64 = 86_400_000;
/// Days after which signatures are made again, as for every table unless its owner says otherwise.
const RENEW_DAYS: u64 = 90;

/// So many readings a day, evenly spread over its minutes.
pub fn print(readings: i64) -> Result<(), Failure> {
    let every = (DAY / readings).max(1);
    let plan = Plan {
        definition: definition(),
        now: 0,
        every: DAY_LONG,
        renew: RENEW_DAYS * DAY_LONG,
        max_age: u64::MAX,
        expires: u64::MAX,
    };
    let secrets = Secrets::from_entropy(&std::array::from_fn(|at| at as u8))?;
    let mut owner = Publication::create(MemoryLedger::default(), plan, secrets, &[])?;
    let begun = Instant::now();
    let (mut longest, mut renewed) = (0.0, 0);
    for day in 0..DAYS {
        let begun = Instant::now();
        let insert = (0..readings).map(|at| row(day * DAY + at * every)).collect();
        owner.edit(Edit { insert, ..Edit::default() })?;
        let now = (day as u64 + 1) * DAY_LONG;
        renewed += owner.renew(now, usize::MAX)?.signed;
        owner.close_period(now)?;
        longest = f64::max(longest, begun.elapsed().as_secs_f64() * 1e3);
    }
    let nodes = owner.shelf().nodes.all().count();
    println!(
        "\n{DAYS} days of {readings} readings, a period each: {:.1} s, a day {longest:.0} ms at most",
        begun.elapsed().as_secs_f64()
    );
    println!("{} rows, {nodes} nodes, {renewed} signatures made again after {RENEW_DAYS} days", readings * DAYS);
    ask(&mut owner)
}

/// What the year's totals take: of a mirror, and of a reader who comes for the first time.
fn ask(owner: &mut Publication<MemoryLedger>) -> Result<(), Failure> {
    let (definition, name) = (definition(), owner.owner());
    let summaries = owner.summaries_from(owner.oldest_period())?;
    let bytes: usize = summaries.iter().map(Vec::len).sum();
    let manifest = TrustedManifest::check(owner.manifest(), &name, 0)?;
    let chain = || Chain::check(&manifest, summaries.iter().map(Vec::as_slice));
    println!(
        "lists of changes that it takes: {} of {bytes} bytes, checked in {:.2} ms",
        summaries.len(),
        time(21, chain)
    );
    let chain = chain()?;
    let now = DAYS as u64 * DAY_LONG + 1000;
    let trust = Trust { manifest: &manifest, chain: &chain, now, clock_error: 0, max_age: u64::MAX };
    let mut shelf: MemoryShelf = owner.shelf().clone();
    println!(
        "\n{:>10} {:>9} {:>11} {:>9} {:>11} {:>11}",
        "asked for", "rows", "signatures", "bytes", "mirror, ms", "reader, ms"
    );
    // Not from where a node begins.
    for (what, minutes) in [("a day", 3..DAY + 3), ("a month", 3..30 * DAY + 3), ("the year", 3..DAYS * DAY)] {
        line(what, interval(minutes)?, &mut shelf, &trust, &definition)?;
    }
    Ok(())
}

fn line(
    what: &str,
    part: Interval,
    shelf: &mut MemoryShelf,
    trust: &Trust<'_>,
    definition: &counterfoil_proof::Definition,
) -> Result<(), Failure> {
    let question = TotalsQuestion::new(definition, 0, vec![part], 0)?.hinted();
    let proof = totals(shelf, &question).map_err(|_| "no totals")?.to_bytes(definition, &question)?;
    let verified = check_totals(trust, &question, &proof)?;
    let mirror = time(21, || totals(shelf, &question).map(|answer| answer.to_bytes(definition, &question)));
    let reader = time(21, || check_totals(trust, &question, &proof));
    let (rows, signatures) = (verified.groups[0].totals.rows, verified.signatures);
    println!("{what:>10} {rows:>9} {signatures:>11} {:>9} {mirror:>11.2} {reader:>11.2}", proof.len());
    Ok(())
}
