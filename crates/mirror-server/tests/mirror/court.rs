//! Tables of one owner on a mirror, at two moments, and questions of every kind about them.

use std::collections::BTreeMap;
use std::sync::Arc;

use counterfoil_mirror::MemoryShelf;
use counterfoil_mirror::wire::Standing;
use counterfoil_mirror_server::{Embedded, Listener};
use counterfoil_proof::{Column, Definition, FIRST_RID, NodesOf, Owner, Scheme, Type, Value};
use counterfoil_publish::{Edit, MemoryLedger, NewKey, Plan, Publication, Secrets};
use counterfoil_reader::{Error, Memory, Terms, Verdict};

use crate::between::{Between, ask};
use crate::told::Stock;
use crate::world::{World, listen};

/// A kind of question: its name, an example, and the table about which lies are told.
pub const KINDS: &[(&str, &str, &str)] = &[
    ("one record", "SELECT * FROM prices WHERE symbol = 'S14' AND day = 3", "prices"),
    ("a range", "SELECT * FROM prices WHERE symbol BETWEEN 'S14' AND 'S18' AND day >= 0", "prices"),
    ("many intervals", "SELECT * FROM prices WHERE symbol IN ('S10', 'S13', 'S16', 'S99')", "prices"),
    ("a limit from behind", "SELECT * FROM prices ORDER BY price DESC LIMIT 5", "prices"),
    ("a limit", "SELECT * FROM prices WHERE symbol > 'S10' ORDER BY symbol, day LIMIT 5", "prices"),
    (
        "a join by filters",
        "SELECT f.symbol, p.price FROM firms f LEFT JOIN prices p ON f.symbol = p.symbol WHERE f.city = 'absent'",
        "prices",
    ),
    (
        "a join by filters and rows",
        "SELECT f.symbol, p.note FROM firms f LEFT JOIN prices p ON f.symbol = p.symbol WHERE f.city IN ('absent', 'here')",
        "prices",
    ),
    (
        "a join by boundaries",
        "SELECT f.symbol, p.note FROM firms f JOIN prices p ON f.rank = p.price WHERE f.city = 'here'",
        "prices",
    ),
    ("totals", "SELECT count(*), sum(price), max(day) FROM prices WHERE symbol BETWEEN 'S14' AND 'S26'", "prices"),
    ("groups", "SELECT symbol, count(*), sum(price) FROM prices GROUP BY symbol", "prices"),
    ("no rows", "SELECT * FROM prices WHERE symbol = 'S15'", "prices"),
    ("no rows yet", "SELECT * FROM soon", "soon"),
    ("an empty table", "SELECT * FROM nothing", "nothing"),
    ("totals of an empty table", "SELECT count(*), sum(price) FROM nothing", "nothing"),
];

/// A table as its owner served it at a moment.
#[derive(Clone)]
pub struct Moment {
    pub manifest: Vec<u8>,
    pub summaries: Vec<Vec<u8>>,
    pub standing: Standing,
    pub shelf: MemoryShelf,
}

/// What the mirror of a court has.
pub struct Court {
    _folder: tempfile::TempDir,
    _listener: Listener,
    pub between: Between,
    pub owner: Owner,
    pub now: u64,
    pub stocks: BTreeMap<&'static str, Arc<Stock>>,
    pub then: BTreeMap<&'static str, Moment>,
    pub today: BTreeMap<&'static str, Moment>,
    /// An owner that was put back to that moment and was told nothing.
    pub fork: BTreeMap<&'static str, Moment>,
}

fn column(name: &str, kind: Type) -> Column {
    Column { name: name.into(), kind }
}

fn prices(table: u8, name: &str) -> Definition {
    Definition {
        table: [table; 16],
        name: name.into(),
        columns: vec![
            column("symbol", Type::Text),
            column("day", Type::Integer),
            column("price", Type::BigInt),
            column("note", Type::Text),
        ],
        orders: vec![vec![0, 1], vec![2]],
        scheme: Scheme::PerRecord,
        nodes: vec![NodesOf { order: 0, columns: vec![1, 2] }],
        filters: vec![0],
    }
}

fn firms() -> Definition {
    let columns = vec![column("symbol", Type::Text), column("city", Type::Text), column("rank", Type::BigInt)];
    let (orders, nodes, filters) = (vec![vec![1, 0], vec![0]], Vec::new(), Vec::new());
    Definition { table: [9; 16], name: "firms".into(), columns, orders, scheme: Scheme::PerRecord, nodes, filters }
}

/// A table of the one owner: one root, and another key of each.
fn world(definition: Definition) -> World {
    let mut entropy = [7; 96];
    entropy[32..].fill(definition.table[0]);
    let plan = Plan { definition, now: 1000, every: 0, renew: 0, max_age: u64::MAX, expires: 1 << 50 };
    let secrets = Secrets::from_entropy(&entropy).expect("keys");
    let publication = Publication::create(MemoryLedger::default(), plan, secrets, &[]).expect("a publication");
    let owner = publication.owner();
    World { publication, owner, now: 1000 }
}

fn price(symbol: i64, day: i64, more: i64) -> Vec<Value> {
    let note = Value::Text(format!("note {symbol} {day} {more}"));
    vec![
        Value::Text(format!("S{symbol}")),
        Value::Integer(day),
        Value::Integer((symbol * 31 + day * 17 + more) % 500),
        note,
    ]
}

fn firm(symbol: i64, city: &str, rank: i64) -> Vec<Value> {
    vec![Value::Text(format!("S{symbol}")), Value::Text(city.into()), Value::Integer(rank)]
}

fn moment(world: &mut World) -> Moment {
    let summaries = world.publication.summaries().expect("summaries");
    let (manifest, shelf) = (world.publication.manifest().to_vec(), world.publication.shelf().clone());
    let last = summaries.len() as u64 - 1;
    Moment { manifest, summaries, standing: Standing { last, first: shelf.oldest().min(last) }, shelf }
}

/// Something of every answer changes: a row of each part, the first and the last ones, a value that was not there.
fn change(world: &mut World, more: i64) {
    let shelf = world.publication.shelf();
    let mut edit = Edit::default();
    for rid in shelf.rids(0).filter(|rid| *rid >= FIRST_RID) {
        let record = shelf.entry(rid).and_then(|entry| entry.record.as_ref()).expect("a record");
        let Value::Integer(day) = record.values[1] else { continue };
        if day % 5 == 3 {
            let mut values = record.values.clone();
            values[3] = Value::Text(format!("changed {more}"));
            if let Value::Integer(price) = &mut values[2] {
                *price += 1;
            }
            edit.update.push((rid, values));
        }
    }
    if world.publication.definition().name != "nothing" {
        edit.insert = vec![price(15, 1, more), price(13, 2, more), price(99, 9, more + 3000)];
    }
    world.publication.edit(edit).expect("an edit");
}

fn fill(world: &mut World) {
    let name = world.publication.definition().name.clone();
    match &name[..] {
        "firms" => {
            let absent = (11..33).step_by(2).chain(40..60).map(|symbol| firm(symbol, "absent", 9));
            let here = [12, 20, 26].map(|symbol| firm(symbol, "here", (symbol * 31 + 4 * 17) % 500));
            world.insert(absent.chain(here).collect());
        }
        "nothing" | "soon" => {}
        _ => {
            world.insert((10..34).step_by(2).flat_map(|symbol| (0..25).map(move |day| price(symbol, day, 0))).collect())
        }
    }
    world.close();
    world.close();
}

impl Court {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Arc::new(Embedded::open(&folder.path().join("store")).expect("a store"));
        let mut twin = world(prices(8, "twin"));
        fill(&mut twin);
        let copy = twin.ledger();
        let twin = later(&twin, copy, 1);
        let mut worlds = [prices(3, "prices"), prices(4, "nothing"), prices(5, "soon"), firms()].map(world);
        let owner = twin.owner;
        let listener = listen(store, owner, |_| ());
        let (mut stocks, mut then, mut today, mut fork) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (world, name) in worlds.iter_mut().zip(["prices", "nothing", "soon", "firms"]) {
            assert_eq!(world.owner, owner);
            fill(world);
            then.insert(name, moment(world));
            let copy = world.ledger();
            fork.insert(name, moment(&mut later(world, copy, 2)));
            let ledger = world.ledger();
            *world = later(world, ledger, 1);
            today.insert(name, moment(world));
            world.push(listener.address(), 1 << 20);
            let (definition, now) = (world.publication.definition().clone(), world.publication.shelf().clone());
            let stock =
                Stock { definition, then: then[name].shelf.clone(), now, twin: twin.publication.shelf().clone() };
            stocks.insert(name, Arc::new(stock));
        }
        let between = Between::readers_and(listener.address());
        let now = worlds[0].now;
        Self { _folder: folder, _listener: listener, between, owner, now, stocks, then, today, fork }
    }

    pub fn terms(&self) -> Terms {
        Terms { owner: self.owner, now: self.now + 10, clock_error: 5, max_age: u64::MAX, hints: true }
    }

    /// What a reader is told, with what it remembers.
    pub fn asked(
        &self,
        sql: &str,
        terms: &Terms,
        memory: &mut [Option<Memory>; 2],
    ) -> Result<(Vec<Vec<Value>>, Verdict), Error> {
        ask(self.between.address, sql, terms, memory)
    }

    /// The same of a reader that knows the owner's name and nothing else.
    pub fn ask(&self, sql: &str) -> Result<(Vec<Vec<Value>>, Verdict), Error> {
        self.asked(sql, &self.terms(), &mut [None, None])
    }
}

/// Changed, under another key, and some periods later: what changed is of none that a reader of that moment would wait for.
fn later(world: &World, ledger: MemoryLedger, more: i64) -> World {
    let mut world = world.with_ledger(ledger);
    world.close();
    if world.publication.definition().name != "firms" {
        change(&mut world, more);
    }
    let key = NewKey::from_entropy(&[more as u8 + 40; 32], 1 << 50).expect("a key");
    world.close();
    world.publication.rotate(world.now, key, &[]).expect("a key");
    world.close();
    world.close();
    world
}
