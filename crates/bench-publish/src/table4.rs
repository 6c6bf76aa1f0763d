//! Table 4: queries and updates one at a time, under each scheme.

use std::hint::black_box;
use std::time::Instant;

use crate::Failure;
use crate::primitives::time;
use crate::random::Random;
use crate::scheme::bas::Bas;
use crate::scheme::condensed::Chained;
use crate::scheme::embedded::Embedded;
use crate::scheme::{Keys, RECORD, Reader as _, Record, Scheme, record};

/// Signing a record with RSA takes milliseconds; what its table measures does not grow with it.
pub const CONDENSED_MAX: u32 = 2_000;
const ROUNDS: usize = 50;
/// Updates have as many rounds as fit in here, since a thousand RSA signatures take seconds; at least a few, at most `ROUNDS`.
const UPDATE_SECONDS: f64 = 10.0;
const UPDATE_ROUNDS_LEAST: f64 = 3.0;

/// What the paper states: milliseconds of a query, bytes of its proof, milliseconds of its check and of an update.
struct Stated {
    query: f64,
    bytes: u32,
    verify: f64,
    update: f64,
}

/// Of 1 and of 1000 records.
type Table = [Stated; 2];

const EMBEDDED: Table = [
    Stated { query: 35.316, bytes: 440, verify: 139.0, update: 60.206 },
    Stated { query: 129.782, bytes: 720, verify: 171.0, update: 248.89 },
];
const BAS: Table = [
    Stated { query: 31.433, bytes: 20, verify: 42.92, update: 40.246 },
    Stated { query: 61.502, bytes: 20, verify: 375.0, update: 237.4 },
];

/// A table of so many records, three times.
pub struct All {
    pub embedded: Embedded,
    pub bas: Bas,
    pub condensed: Chained,
}

impl All {
    pub fn load(records: u32) -> Result<Self, Failure> {
        Ok(Self {
            embedded: Embedded::load(records)?,
            bas: Bas::load(records, true)?,
            condensed: Chained::load(records.min(CONDENSED_MAX))?,
        })
    }
}

pub fn keys(random: &mut Random, records: u32, count: u32) -> Keys {
    let from = 2 * random.below((records - count + 1) as usize) as u32;
    from..=from + 2 * (count - 1)
}

fn told(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| value.to_string())
}

fn measure(name: &str, scheme: &impl Scheme, records: u32, stated: Option<&Table>) -> Result<(), Failure> {
    let mut random = Random(17);
    let counts = [1, records.min(1000)];
    for (at, count) in counts.into_iter().enumerate() {
        let keys = keys(&mut random, records, count);
        print_query(&format!("{name}, {count}"), scheme, &keys, count, stated.map(|stated| &stated[at]))?;
    }
    for (at, count) in counts.into_iter().enumerate() {
        let update = time_of_update(scheme, &keys(&mut random, records, count))?;
        let what = format!("{name}, update of {count}");
        println!("{what:<30} {update:>10.4} {:>10}", told(stated.map(|stated| stated[at].update)));
    }
    Ok(())
}

fn print_query(
    what: &str,
    scheme: &impl Scheme,
    keys: &Keys,
    count: u32,
    stated: Option<&Stated>,
) -> Result<(), Failure> {
    let query = time(ROUNDS, || scheme.answer(keys.clone()).map(black_box).is_ok());
    let (answer, reader) = (scheme.answer(keys.clone())?, scheme.reader()?);
    let verify = time(ROUNDS, || reader.check(keys.clone(), &answer).map(|found| found.len()));
    let found = reader.check(keys.clone(), &answer).ok_or("an answer is refused")?;
    let beside = answer.len() - found.len() * RECORD;
    println!(
        "{what:<30} {query:>10.4} {:>10} {:>10.1} {:>8} {verify:>10.4} {:>9}",
        told(stated.map(|stated| stated.query)),
        beside as f64 / f64::from(count),
        told(stated.map(|stated| f64::from(stated.bytes) / f64::from(count))),
        told(stated.map(|stated| stated.verify)),
    );
    Ok(())
}

/// Milliseconds of one transaction that changes the records of these keys: signed, sent and taken.
fn time_of_update(scheme: &impl Scheme, keys: &Keys) -> Result<f64, Failure> {
    let changed = |round| (keys.start() / 2..=keys.end() / 2).map(|number| record(number, round)).collect();
    let (first, start): (Vec<Record>, _) = (changed(1), Instant::now());
    scheme.update(&first)?;
    let fitting = UPDATE_SECONDS / start.elapsed().as_secs_f64();
    let rounds = fitting.clamp(UPDATE_ROUNDS_LEAST, ROUNDS as f64) as usize;
    // `time` works once more than it counts.
    let all: Vec<Vec<Record>> = (2..).map(changed).take(rounds + 1).collect();
    let (mut left, mut outcome) = (all.iter(), Ok(()));
    let least = time(rounds, || {
        if let (Some(records), true) = (left.next(), outcome.is_ok()) {
            outcome = scheme.update(records);
        }
    });
    outcome.map(|()| least)
}

pub fn print(all: &mut All, records: u32) -> Result<(), Failure> {
    println!("\n{records} records of {RECORD} bytes, one transaction at a time; nothing is flushed");
    println!(
        "{:<30} {:>10} {:>10} {:>10} {:>8} {:>10} {:>9}",
        "", "query ms", "paper", "bytes/row", "paper", "verify ms", "paper"
    );
    measure("EMB-", &all.embedded, records, Some(&EMBEDDED))?;
    for (name, is_hinted) in [("BAS", false), ("BAS with hints", true)] {
        all.bas.is_hinted = is_hinted;
        measure(name, &all.bas, records, Some(&BAS))?;
    }
    let fewer = records.min(CONDENSED_MAX);
    measure(&format!("RSA-3072 ({fewer})"), &all.condensed, fewer, None)
}
