//! Makes answers that are kept, of a table of every scheme and a question of every kind: those in `tests/kept` were made so, and stay
//! as they are, since whatever was kept has to be readable. `cargo run -p counterfoil-reader --example keep_answers FOLDER` makes those of
//! a later layout.
#![forbid(unsafe_code)]

use std::error::Error;
use std::path::Path;

use counterfoil_mirror::site::{Folder, write};
use counterfoil_proof::{Column, Definition, FIRST_RID, NodesOf, Scheme, Type, Value};
use counterfoil_publish::{Edit, MemoryLedger, NewKey, Plan, Publication, Secrets};
use counterfoil_reader::{Terms, read, read_join};

type Failure = Box<dyn Error + Send + Sync>;

const MIDNIGHT: u64 = 1_767_225_600_000;
const HOUR: u64 = 3_600_000;

/// Prices of three days, one of which changed on the second, when the key was changed as well.
fn published(scheme: Scheme, folder: &Path) -> Result<Publication<MemoryLedger>, Failure> {
    let column = |name: &str, kind| Column { name: name.into(), kind };
    let definition = Definition {
        table: [7; 16],
        name: "prices".into(),
        columns: vec![
            column("symbol", Type::Text),
            column("day", Type::Date),
            column("price", Type::Numeric(10, 2)),
            column("pieces", Type::BigInt),
        ],
        orders: vec![vec![0, 1], vec![2]],
        scheme,
        nodes: vec![NodesOf { order: 0, columns: vec![2, 3] }],
        filters: vec![0],
    };
    let plan = Plan { definition, now: MIDNIGHT, every: 0, renew: 0, max_age: u64::MAX, expires: u64::MAX >> 1 };
    let secrets = Secrets::from_entropy(&[31; 96])?;
    let mut owner = Publication::create(MemoryLedger::default(), plan, secrets, &[])?;
    let row = |at: i64| {
        let price = if at % 7 == 3 { Value::Null } else { Value::Numeric(i128::from(1000 + 37 * at)) };
        vec![Value::Text(format!("S{}", at / 3)), Value::Integer(20_454 + at % 3), price, Value::Integer(at * at)]
    };
    owner.edit(Edit { insert: (0..30).map(row).collect(), ..Edit::default() })?;
    owner.close_period(MIDNIGHT + HOUR)?;
    owner.rotate(MIDNIGHT + HOUR, NewKey::from_entropy(&[32; 32], u64::MAX >> 1)?, &[])?;
    owner.close_period(MIDNIGHT + 2 * HOUR)?;
    let changed = vec![(
        FIRST_RID + 4,
        vec![Value::Text("S1".into()), Value::Integer(20_455), Value::Numeric(99_999), Value::Integer(-5)],
    )];
    owner.edit(Edit { update: changed, ..Edit::default() })?;
    owner.close_period(MIDNIGHT + 3 * HOUR)?;
    let summaries = owner.summaries()?;
    write(owner.shelf(), owner.manifest(), &summaries, folder)?;
    Ok(owner)
}

fn main() -> Result<(), Failure> {
    let into = std::env::args().nth(1).ok_or("a folder is wanted")?;
    let schemes = [("record", Scheme::PerRecord), ("attribute", Scheme::PerAttribute), ("group", Scheme::Group(4))];
    for (name, scheme) in schemes {
        let folder = tempfile::tempdir()?;
        let owner = published(scheme, folder.path())?;
        println!("{name}: {}", owner.owner());
        let terms = |hints| Terms {
            owner: owner.owner(),
            now: MIDNIGHT + 4 * HOUR,
            clock_error: 10_000,
            max_age: u64::MAX,
            hints,
        };
        let mut site = Folder(folder.path().into());
        for (kind, sql, hints) in [
            ("rows", "SELECT day, price FROM prices WHERE symbol IN ('S1', 'S4', 'T') ORDER BY symbol, day", true),
            ("last", "SELECT * FROM prices ORDER BY price DESC LIMIT 3 OFFSET 1", false),
            ("totals", "SELECT count(*), sum(price), max(pieces) FROM prices WHERE symbol < 'S8'", true),
        ] {
            let kept = read(&mut site, sql, &terms(hints), &mut None)?.kept.to_bytes();
            std::fs::write(Path::new(&into).join(format!("{name}-{kind}.answer")), kept)?;
        }
        let sql = "SELECT a.day, b.pieces FROM prices a LEFT JOIN prices b ON a.symbol = b.symbol WHERE a.symbol = 'S2' AND a.day = '2026-01-01'";
        let mut other = site.clone();
        let kept = read_join(&mut site, &mut other, sql, &terms(true), [&mut None, &mut None])?.kept.to_bytes();
        std::fs::write(Path::new(&into).join(format!("{name}-join.answer")), kept)?;
    }
    Ok(())
}
