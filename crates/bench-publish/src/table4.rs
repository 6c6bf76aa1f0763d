//! Table 4: queries and updates one at a time, under each scheme.

use std::hint::black_box;

use crate::Failure;
use crate::primitives::time;
use crate::random::Random;
use crate::scheme::bas::Bas;
use crate::scheme::condensed::Chained;
use crate::scheme::embedded::Embedded;
use crate::scheme::{Keys, RECORD, Reader as _, Scheme, record};

/// Signing a record with RSA takes milliseconds; what its table measures does not grow with it.
pub const CONDENSED_MAX: u32 = 2_000;
const ROUNDS: usize = 50;

/// What the paper states: milliseconds of a query, bytes of its proof, milliseconds of its check; for 1 and for 1000 records.
struct Stated {
    query: [f64; 2],
    bytes: [usize; 2],
    verify: [f64; 2],
    update: f64,
}

const EMBEDDED: Stated = Stated { query: [35.316, 129.782], bytes: [440, 720], verify: [139.0, 171.0], update: 60.206 };
const BAS: Stated = Stated { query: [31.433, 61.502], bytes: [20, 20], verify: [42.92, 375.0], update: 40.246 };

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

fn measure(name: &str, scheme: &impl Scheme, records: u32, stated: Option<&Stated>) -> Result<(), Failure> {
    let mut random = Random(17);
    let told = |value: Option<f64>| value.map_or("-".into(), |value| value.to_string());
    for (at, count) in [1, records.min(1000)].into_iter().enumerate() {
        let keys = keys(&mut random, records, count);
        let query = time(ROUNDS, || scheme.answer(keys.clone()).map(black_box).is_ok());
        let (answer, reader) = (scheme.answer(keys.clone())?, scheme.reader()?);
        let verify = time(ROUNDS, || reader.check(keys.clone(), &answer).map(|found| found.len()));
        let found = reader.check(keys.clone(), &answer).ok_or("an answer is refused")?;
        let beside = answer.len() - found.len() * RECORD;
        println!(
            "{:<30} {query:>10.4} {:>10} {:>10.1} {:>8} {verify:>10.4} {:>9}",
            format!("{name}, {count}"),
            told(stated.map(|stated| stated.query[at])),
            beside as f64 / f64::from(count),
            told(stated.map(|stated| stated.bytes[at] as f64 / f64::from(count))),
            told(stated.map(|stated| stated.verify[at])),
        );
    }
    let number = random.below(records as usize) as u32;
    let mut updates = 0;
    let mut next = || {
        updates += 1;
        record(number, updates)
    };
    let sign = time(ROUNDS, || scheme.sign(next()).map(|signed| scheme.take(signed).is_ok()).is_ok());
    println!("{:<30} {sign:>10.4} {:>10}", format!("{name}, update"), told(stated.map(|stated| stated.update)));
    Ok(())
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
