//! Figure 11 with the paper's tables loaded: every holding signed, and whole answers in bytes and milliseconds.

use std::time::Instant;

use counterfoil_mirror::{AnswerError, MemoryShelf, find, find_without_filters};
use counterfoil_proof::{
    Chain, Column, Definition, Found, Points, Scheme, Trust, TrustedManifest, Type, Value, check_points,
};
use counterfoil_publish::{Edit, MemoryLedger, Plan, Publication, Secrets};

use crate::Failure;
use crate::primitives::time;
use crate::random::Random;

/// Of TPC-E, section 5.5: records of 'Security', and symbols of which there are records of 'Holding'.
const SECURITIES: usize = 6850;
const HELD: usize = 3425;
/// Part of 'Security' that a query selects.
const SELECTIVITY: f64 = 0.2;
/// Rows of one transaction of the load.
const PART: usize = 50_000;

/// 'Holding', of 63 bytes a record: a symbol of 15, four numbers of 8, a price of 16.
fn definition() -> Definition {
    let column = |name: &str, kind| Column { name: name.into(), kind };
    Definition {
        table: [3; 16],
        name: "holding".into(),
        columns: vec![
            column("symbol", Type::Text),
            column("trade", Type::BigInt),
            column("account", Type::BigInt),
            column("at", Type::Timestamp),
            column("price", Type::Numeric(8, 2)),
            column("quantity", Type::BigInt),
        ],
        orders: vec![vec![0]],
        scheme: Scheme::PerRecord,
        nodes: Vec::new(),
        filters: vec![0],
    }
}

fn holding(symbol: &str, trade: usize, random: &mut Random) -> Vec<Value> {
    let trade = trade as i64;
    let (account, price) = (43_000_000_000 + random.below(50_000) as i64, 20_00 + random.below(10_00) as i128);
    vec![
        Value::Text(symbol.into()),
        Value::Integer(200_000_000_000_000 + trade),
        Value::Integer(account),
        Value::Integer(1_100_000_000_000_000 + trade * 1_000_003),
        Value::Numeric(price),
        Value::Integer(100 + random.below(700) as i64),
    ]
}

/// Symbols as they are asked for, and the owner of the holdings.
struct Tables {
    held: Vec<String>,
    others: Vec<String>,
    owner: Publication<MemoryLedger>,
}

/// Loads `holdings` rows of 'Holding', asks in both ways, and prints what it takes.
pub fn print(holdings: usize) -> Result<(), Failure> {
    let mut tables = Tables::load(holdings)?;
    println!(
        "\n{:>6} {:>6} {:>8} {:>8} {:>11} {:>11} {:>8} {:>10} {:>10} {:>10} {:>10}",
        "alpha",
        "open",
        "rows",
        "filters",
        "BV, bytes",
        "BF, bytes",
        "smaller",
        "mirror, BV",
        "mirror, BF",
        "reader, BV",
        "reader, BF"
    );
    for tenth in 0..=9 {
        tables.ask(f64::from(tenth) / 10.0, false)?;
    }
    println!("\nthe whole join, rows with their own proof among it");
    tables.ask(0.5, true)
}

impl Tables {
    fn load(holdings: usize) -> Result<Self, Failure> {
        let plan = Plan { definition: definition(), now: 0, every: 0, renew: 0, max_age: u64::MAX, expires: u64::MAX };
        let secrets = Secrets::from_entropy(&std::array::from_fn(|at| at as u8))?;
        let mut owner = Publication::create(MemoryLedger::default(), plan, secrets, &[])?;
        let mut random = Random(11);
        // None twice, and those that are held are anywhere among them.
        let mut numbers: Vec<usize> = (0..SECURITIES).collect();
        random.shuffle(&mut numbers);
        let mut held: Vec<String> = numbers.iter().map(|number| format!("SYMBOL{:09}", number * 137_137)).collect();
        let others = held.split_off(HELD);
        let begun = Instant::now();
        for first in (0..holdings).step_by(PART) {
            let rows = (first..holdings.min(first + PART)).map(|trade| {
                // Each symbol at least once.
                let symbol = if trade < HELD { trade } else { random.below(HELD) };
                holding(&held[symbol], trade, &mut random)
            });
            owner.edit(Edit { insert: rows.collect(), ..Edit::default() })?;
        }
        let took = begun.elapsed().as_secs_f64();
        owner.close_period(1000)?;
        let filters = owner.shelf().filters(0).count();
        println!(
            "\n{holdings} holdings of {HELD} symbols, signed in {took:.1} s; {filters} filters of at most 128 values"
        );
        Ok(Self { held, others, owner })
    }

    /// The join of a selection of 'Security', of which a part `alpha` is held; only its other part unless `whole`.
    fn ask(&mut self, alpha: f64, whole: bool) -> Result<(), Failure> {
        let selected = (SECURITIES as f64 * SELECTIVITY).round() as usize;
        let with = (selected as f64 * alpha).round() as usize;
        let open = selected - with;
        let held = if whole { &self.held[..with] } else { &[] };
        let points = points(self.others[..open].iter().chain(held))?;
        let manifest = TrustedManifest::check(self.owner.manifest(), &self.owner.owner(), 0)?;
        let summaries = self.owner.summaries()?;
        let chain = Chain::check(&manifest, summaries.iter().map(Vec::as_slice))?;
        let trust = Trust { manifest: &manifest, chain: &chain, now: 2000, clock_error: 0, max_age: u64::MAX };
        let shelf = self.owner.shelf();
        let [by_values, by_filters] =
            [Asked::of(shelf, &trust, &points, find_without_filters)?, Asked::of(shelf, &trust, &points, find)?];
        if by_values.rows != by_filters.rows || (whole && by_filters.rows == 0) {
            return Err("two ways have other rows".into());
        }
        println!(
            "{alpha:>6} {open:>6} {:>8} {:>8} {:>11} {:>11} {:>6.1} % {:>10.2} {:>10.2} {:>10.2} {:>10.2}",
            by_filters.rows,
            by_filters.filters,
            by_values.bytes,
            by_filters.bytes,
            100.0 * (1.0 - by_filters.bytes as f64 / by_values.bytes as f64),
            by_values.mirror,
            by_filters.mirror,
            by_values.reader,
            by_filters.reader
        );
        Ok(())
    }
}

/// One question that was answered and checked; milliseconds.
struct Asked {
    rows: usize,
    filters: usize,
    bytes: usize,
    mirror: f64,
    reader: f64,
}

type Find<'s> = fn(&mut &'s MemoryShelf, &Points) -> Result<Found, AnswerError<std::convert::Infallible>>;

impl Asked {
    fn of<'s>(shelf: &'s MemoryShelf, trust: &Trust<'_>, points: &Points, find: Find<'s>) -> Result<Self, Failure> {
        let definition = definition();
        let answer = || find(&mut &*shelf, points).map_err(|_| "no answer");
        let found = answer()?;
        let (filters, bytes) = (found.filters.len(), found.to_bytes(&definition, points)?);
        let rows = check_points(trust, points, &bytes)?.rows.len();
        let mirror = time(3, || answer().map(|found| found.to_bytes(&definition, points)));
        let reader = time(3, || check_points(trust, points, &bytes));
        Ok(Self { rows, filters, bytes: bytes.len(), mirror, reader })
    }
}

/// Hinted points of symbols.
fn points<'s>(symbols: impl Iterator<Item = &'s String>) -> Result<Points, Failure> {
    let encoded = symbols.map(|symbol| -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        Type::Text.encode(&Value::Text(symbol.clone()), &mut bytes).map_err(|_| "a symbol")?;
        Ok(bytes)
    });
    let mut values = encoded.collect::<Result<Vec<_>, _>>()?;
    values.sort_unstable();
    Ok(Points::new(&definition(), 0, values, &[0, 1, 2, 3, 4, 5])?.hinted())
}
