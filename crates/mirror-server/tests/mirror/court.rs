//! Tables of one owner on a mirror, at two moments, and questions of every kind about them.

use std::collections::BTreeMap;
use std::sync::Arc;

use counterfoil_mirror::MemoryShelf;
use counterfoil_mirror::wire::Standing;
use counterfoil_mirror_server::{Embedded, Listener};
use counterfoil_proof::{Column, Definition, FIRST_RID, GROUP_ROWS, NodesOf, Owner, Scheme, Type, Value};
use counterfoil_publish::{Edit, MemoryLedger, NewKey, Plan, Publication, Secrets};
use counterfoil_reader::{Error, Memory, Terms, Verdict};

use crate::between::{Between, ask};
use crate::mixed::Mixed;
use crate::states::Make;
use crate::stock::Stock;
use crate::world::{World, listen};

/// A kind of question: its name, an example, and the table about which lies are told.
pub type Kind = (&'static str, &'static str, &'static str);

pub const KINDS: &[Kind] = &[
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

/// What one signature covers: a record, a value, a group of the smallest size and one of the usual size.
pub const SCHEMES: [Scheme; 4] = [Scheme::PerRecord, Scheme::PerAttribute, Scheme::Group(2), Scheme::Group(GROUP_ROWS)];

/// A scheme, and the kinds of questions that are put to tables of it.
type Played = Vec<(Scheme, Vec<&'static Kind>)>;

pub fn is_full() -> bool {
    std::env::var("COUNTERFOIL_PROOF").is_ok_and(|size| size == "full")
}

/// Every other kind.
fn turns(turn: usize) -> Vec<&'static Kind> {
    KINDS.iter().skip(turn).step_by(2).collect()
}

fn everything() -> Played {
    SCHEMES.map(|scheme| (scheme, KINDS.iter().collect())).into()
}

/// All of it at full size; else each kind twice: PER RECORD, and of values or of groups by turns.
fn twice() -> Played {
    let [record, value, _, group] = SCHEMES;
    vec![(record, KINDS.iter().collect()), (value, turns(0)), (group, turns(1))]
}

/// For what is hardly a question of schemes: each kind once, PER RECORD and of groups by turns.
fn once() -> Played {
    let [record, _, _, group] = SCHEMES;
    vec![(record, turns(0)), (group, turns(1))]
}

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
    /// The kinds of questions that are put.
    pub kinds: Vec<&'static Kind>,
    pub then: BTreeMap<&'static str, Moment>,
    pub today: BTreeMap<&'static str, Moment>,
    /// An owner that was put back to that moment and was told nothing.
    pub fork: BTreeMap<&'static str, Moment>,
    /// A table of the number of each and another schema, which the owner's keys signed as well.
    pub other_schema: BTreeMap<&'static str, Moment>,
}

fn column(name: &str, kind: Type) -> Column {
    Column { name: name.into(), kind }
}

fn prices(scheme: Scheme, table: u8, name: &str) -> Definition {
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
        scheme,
        nodes: vec![NodesOf { order: 0, columns: vec![1, 2] }],
        filters: vec![0],
    }
}

/// The first and the last text are called the other way round: nothing but the definition tells.
fn with_names_exchanged(mut definition: Definition) -> Definition {
    let is_text = |column: &Column| column.kind == Type::Text;
    let first = definition.columns.iter().position(is_text).expect("a text");
    let last = definition.columns.iter().rposition(is_text).expect("a text");
    let name = definition.columns[first].name.clone();
    definition.columns[first].name = std::mem::replace(&mut definition.columns[last].name, name);
    definition
}

fn firms(scheme: Scheme) -> Definition {
    let columns = vec![column("symbol", Type::Text), column("city", Type::Text), column("rank", Type::BigInt)];
    let (orders, nodes, filters) = (vec![vec![1, 0], vec![0]], Vec::new(), Vec::new());
    Definition { table: [9; 16], name: "firms".into(), columns, orders, scheme, nodes, filters }
}

/// A table of the one owner: one root and one key of all, so that nothing but what is signed tells them apart.
fn world(definition: Definition) -> World {
    let mut entropy = [7; 96];
    entropy[64..].fill(definition.table[0]);
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

/// Of some symbols each day's, and rows whose keys are equal: at the beginning and at the end of an order, beside a day that
/// is asked for, and of a price that a firm has.
fn all_prices() -> Vec<Vec<Value>> {
    let each = (10..34).step_by(2).flat_map(|symbol| (0..25).map(move |day| price(symbol, day, 0)));
    let equal = [(12, 0), (12, 0), (14, 3), (14, 3)].into_iter().enumerate();
    let equal = equal.map(|(more, (symbol, day))| price(symbol, day, 1 + more as i64));
    let priced = |symbol: i64, day: i64, price: i64| {
        vec![Value::Text(format!("S{symbol}")), Value::Integer(day), Value::Integer(price), Value::Text("equal".into())]
    };
    let dear = (30..33).map(|day| priced(32, day, 900));
    let of_a_firm = (40..43).map(|day| priced(12, day, rank(12)));
    each.chain(equal).chain(dear).chain(of_a_firm).collect()
}

/// A firm's, which is the price of its symbol on some day.
fn rank(symbol: i64) -> i64 {
    (symbol * 31 + 4 * 17) % 500
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
            let here = [12, 20, 26].map(|symbol| firm(symbol, "here", rank(symbol)));
            world.insert(absent.chain(here).collect());
        }
        "nothing" | "soon" => {}
        _ => world.insert(all_prices()),
    }
    world.close();
    world.close();
}

impl Court {
    /// A court for each scheme that is played, where it matters.
    pub fn all() -> impl Iterator<Item = (Scheme, Self)> {
        Self::of(if is_full() { everything() } else { twice() })
    }

    /// The same where schemes hardly matter.
    pub fn some() -> impl Iterator<Item = (Scheme, Self)> {
        Self::of(if is_full() { everything() } else { once() })
    }

    fn of(played: Played) -> impl Iterator<Item = (Scheme, Self)> {
        played.into_iter().map(|(scheme, kinds)| (scheme, Self::new(scheme, kinds)))
    }

    fn new(scheme: Scheme, kinds: Vec<&'static Kind>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Arc::new(Embedded::open(&folder.path().join("store")).expect("a store"));
        let prices = |table, name| prices(scheme, table, name);
        let twin = lived(world(prices(8, "twin")));
        let owner = twin.owner;
        let listener = listen(store, owner, |_| ());
        let (mut stocks, mut then, mut today) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (mut fork, mut other_schema) = (BTreeMap::new(), BTreeMap::new());
        let mut now = 0;
        let tables = [prices(3, "prices"), prices(4, "nothing"), prices(5, "soon"), firms(scheme)];
        for (definition, name) in tables.into_iter().zip(["prices", "nothing", "soon", "firms"]) {
            let mut other = lived(world(with_names_exchanged(definition.clone())));
            other_schema.insert(name, moment(&mut other));
            let mut world = world(definition.clone());
            assert_eq!(world.owner, owner);
            fill(&mut world);
            then.insert(name, moment(&mut world));
            let copy = world.ledger();
            fork.insert(name, moment(&mut later(&world, copy, 2).0));
            let ledger = world.ledger();
            let (mut world, renewed) = later(&world, ledger, 1);
            today.insert(name, moment(&mut world));
            world.push(listener.address(), 1 << 20);
            let shelf = |world: &World| world.publication.shelf().clone();
            let then = then[name].shelf.clone();
            let stock = Stock {
                definition,
                then,
                renewed,
                now: shelf(&world),
                twin: shelf(&twin),
                other_schema: shelf(&other),
            };
            stocks.insert(name, Arc::new(stock));
            now = world.now;
        }
        let between = Between::readers_and(listener.address());
        Self {
            _folder: folder,
            _listener: listener,
            between,
            owner,
            now,
            stocks,
            kinds,
            then,
            today,
            fork,
            other_schema,
        }
    }

    pub fn terms(&self) -> Terms {
        Terms { owner: self.owner, now: self.now + 10, clock_error: 5, max_age: u64::MAX, hints: true }
    }

    /// Makes of a table what a state says.
    pub fn mix(&self, table: &str, mixed: &mut Mixed, make: Make) {
        make(mixed, &self.today[table], &self.then[table], &self.fork[table], &self.other_schema[table]);
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

/// A table that lived as those do about which lies are told.
fn lived(mut world: World) -> World {
    fill(&mut world);
    let ledger = world.ledger();
    later(&world, ledger, 1).0
}

/// Renewed and changed in one period, under another key, and some periods later: what changed is of none that a reader of that
/// moment would wait for. Beside it what there was when all was renewed and nothing had changed.
fn later(world: &World, ledger: MemoryLedger, more: i64) -> (World, MemoryShelf) {
    let mut world = world.with_ledger(ledger);
    world.close();
    world.publication.renew_before(u64::MAX, usize::MAX).expect("signatures");
    let renewed = world.publication.shelf().clone();
    if world.publication.definition().name != "firms" {
        change(&mut world, more);
    }
    let key = NewKey::from_entropy(&[more as u8 + 40; 32], 1 << 50).expect("a key");
    world.close();
    world.publication.rotate(world.now, key, &[]).expect("a key");
    world.close();
    world.close();
    (world, renewed)
}
