//! A crowd of readers at real mirrors, while the owner changes rows, ends periods, renews, and changes keys, while clocks drift
//! and mirrors are killed in the middle of an update: every honest answer is accepted, and is what the owner had at a moment
//! that is not before the end of the period which the verdict tells.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::Duration;

use counterfoil_proof::{Column, Definition, FIRST_RID, GROUP_ROWS, NodesOf, Refusal, Scheme, Type, Value};
use counterfoil_publish::{Edit, MemoryLedger, NewKey, Plan, Publication, Secrets};
use counterfoil_reader::{Error, Memory, Terms, read, read_join};

use crate::between::Web;
use crate::court::{SCHEMES, is_full};
use crate::mirrors::{InDatabase, InFolder, Mirror, OnDisk};
use crate::model::{Asked, FIRMS, Price};
use crate::world::{Dice, World};

/// Milliseconds by which each clock is wrong at most.
const DRIFT: u64 = 60;
/// Milliseconds that an owner's step takes at most, and steps during a question at most.
const STEP: u64 = 300;
const STEPS_MEANWHILE: u64 = 3;

/// What readers may know of the owner to judge what they were told.
struct Known {
    time: u64,
    /// The owner's rows behind each step.
    rows: Vec<Arc<Vec<Price>>>,
    /// Step and time at which a period of the table of prices ended.
    ended: HashMap<u64, (usize, u64)>,
}

struct Shared {
    known: RwLock<Known>,
    addresses: Mutex<Vec<SocketAddr>>,
    /// Of each reader the step in which it began what it asks; `u64::MAX`: it asks nothing.
    begun: Vec<AtomicU64>,
    /// Answers that were accepted, by mirror and kind of question.
    accepted: Mutex<BTreeMap<(usize, &'static str), u64>>,
    is_over: AtomicBool,
    /// The folder's manifest may be of another key than its rows: it is sent file by file.
    is_revoking: AtomicBool,
}

/// What readers were told that was no answer.
#[derive(Debug, Default)]
struct Told {
    out_of_reach: [u64; 3],
    revoked: u64,
}

struct Reader {
    dice: Dice,
    number: usize,
    skew: i64,
    owner: counterfoil_proof::Owner,
    memory: [[Option<Memory>; 2]; 3],
    told: Told,
}

impl Reader {
    fn run(mut self, shared: &Shared) -> Told {
        while !shared.is_over.load(Ordering::SeqCst) {
            self.ask(shared);
        }
        self.told
    }

    fn ask(&mut self, shared: &Shared) {
        let asked = Asked::random(&mut self.dice);
        let (mirrors, chance) = (shared.addresses.lock().expect("addresses").clone(), self.dice.below(6));
        // A walk through files takes many of them, so it is done less often.
        let at = if chance == 0 { mirrors.len() - 1 } else { chance as usize % (mirrors.len() - 1) };
        let time = {
            let known = shared.known.read().expect("what is known");
            shared.begun[self.number].store(known.rows.len() as u64, Ordering::SeqCst);
            known.time
        };
        let was_revoking = shared.is_revoking.load(Ordering::SeqCst);
        let terms = Terms {
            owner: self.owner,
            now: time.saturating_add_signed(self.skew),
            clock_error: 2 * DRIFT + STEPS_MEANWHILE * STEP,
            max_age: u64::MAX,
            hints: self.dice.below(8) > 0,
        };
        let told = told(mirrors[at], &asked, &terms, &mut self.memory[at]);
        let is_revoking = was_revoking || shared.is_revoking.load(Ordering::SeqCst);
        match told {
            Ok((rows, period, age)) => {
                self.judge(shared, &asked, (&rows, period, age), time);
                *shared.accepted.lock().expect("answers").entry((at, asked.kind)).or_default() += 1;
            }
            Err(Error::Unreachable(_)) => self.told.out_of_reach[at] += 1,
            Err(Error::Refused(Refusal::Stale(_))) if at + 1 == mirrors.len() && is_revoking => self.told.revoked += 1,
            Err(error) => panic!("mirror {at}, {}, {}: {error}", asked.kind, asked.sql),
        }
        shared.begun[self.number].store(u64::MAX, Ordering::SeqCst);
    }

    fn judge(&self, shared: &Shared, asked: &Asked, (rows, period, age): (&[Vec<Value>], Option<u64>, u64), time: u64) {
        let known = shared.known.read().expect("what is known");
        let (first, ended) = period.map_or((0, 0), |period| known.ended[&period]);
        let is_one = known.rows[first..].iter().any(|prices| asked.is(rows, prices));
        assert!(is_one, "{}: rows that the owner had at no moment since step {first}", asked.sql);
        assert!(period.is_none() || age >= time.saturating_sub(ended), "{}: older than it says", asked.sql);
    }
}

type Answer = (Vec<Vec<Value>>, Option<u64>, u64);

/// Rows, the period of the table of prices, and how old they say to be.
fn told(
    address: SocketAddr,
    asked: &Asked,
    terms: &Terms,
    [first, second]: &mut [Option<Memory>; 2],
) -> Result<Answer, Error> {
    if asked.sql.contains(" JOIN ") {
        let mut firms = None;
        let read = read_join(&mut Web(address), &mut Web(address), &asked.sql, terms, [&mut firms, first])?;
        return Ok((read.table.rows, Some(read.verdicts[1].period), read.verdicts[1].age));
    }
    let is_of_prices = asked.sql.contains("FROM prices");
    let memory = if is_of_prices { first } else { second };
    let read = read(&mut Web(address), &asked.sql, terms, memory)?;
    Ok((read.table.rows, is_of_prices.then_some(read.verdict.period), read.verdict.age))
}

fn column(name: &str, kind: Type) -> Column {
    Column { name: name.into(), kind }
}

fn prices(scheme: Scheme, table: u8, name: &str) -> Definition {
    let columns = ["symbol", "day", "price", "note"].map(|name| {
        let kind = match name {
            "day" => Type::Integer,
            "price" => Type::BigInt,
            _ => Type::Text,
        };
        column(name, kind)
    });
    Definition {
        table: [table; 16],
        name: name.into(),
        columns: columns.into(),
        orders: vec![vec![0, 1], vec![2]],
        scheme,
        nodes: vec![NodesOf { order: 0, columns: vec![1, 2] }],
        filters: vec![0],
    }
}

/// A table of the one owner.
fn world(definition: Definition) -> World {
    let mut entropy = [7; 96];
    entropy[32..].fill(definition.table[0]);
    let plan = Plan { definition, now: 1_000_000, every: 1000, renew: 10_000, max_age: 400_000, expires: 1 << 50 };
    let secrets = Secrets::from_entropy(&entropy).expect("keys");
    let publication = Publication::create(MemoryLedger::default(), plan, secrets, &[]).expect("a publication");
    let owner = publication.owner();
    World { publication, owner, now: 1_000_000 }
}

/// The owner, what it has, and its mirrors.
struct Owner {
    dice: Dice,
    /// Prices, firms, and nothing.
    worlds: [World; 3],
    mirrors: Vec<Box<dyn Mirror>>,
    time: u64,
    skew: i64,
    keys: u8,
    /// Steps in which two keys are changed and one is revoked. Where it is seldom, questions are cheaper: rows are of fewer keys.
    keys_every: u64,
    next_price: i64,
    /// What happened.
    did: BTreeMap<&'static str, u64>,
}

impl Owner {
    fn new(scheme: Scheme, seed: u64, keys_every: u64) -> Self {
        let firms = Definition {
            columns: vec![column("symbol", Type::Text), column("rank", Type::BigInt)],
            orders: vec![vec![0]],
            nodes: Vec::new(),
            filters: Vec::new(),
            ..prices(scheme, 4, "firms")
        };
        let worlds = [world(prices(scheme, 3, "prices")), world(firms), world(prices(scheme, 5, "nothing"))];
        let mut owner = Self {
            dice: Dice(seed),
            worlds,
            mirrors: Vec::new(),
            time: 1_000_000,
            skew: 0,
            keys: 0,
            keys_every,
            next_price: 0,
            did: BTreeMap::new(),
        };
        let firm = |symbol: u64| vec![Value::Text(format!("S{symbol:02}")), Value::Integer(symbol as i64)];
        owner.worlds[1].insert(FIRMS.map(firm).collect());
        let rows = (0..40).map(|_| owner.price()).collect();
        owner.worlds[0].insert(rows);
        owner
    }

    fn price(&mut self) -> Vec<Value> {
        self.next_price += 1;
        Price::random(&mut self.dice, self.next_price).values()
    }

    fn now(&self) -> u64 {
        self.time.saturating_add_signed(self.skew)
    }

    fn rows(&self) -> Arc<Vec<Price>> {
        let shelf = self.worlds[0].publication.shelf();
        let records = shelf.rids(0).filter_map(|rid| shelf.entry(rid)?.record.as_ref());
        Arc::new(records.map(|record| Price::of(&record.values)).collect())
    }

    /// All tables' periods end; the one of the prices is told to those who judge.
    fn close(&mut self, known: &mut Known) {
        let now = self.now();
        let period = self.worlds[0].publication.status().open_period;
        let ended = (known.rows.len(), self.time);
        known.ended.insert(period, ended);
        self.worlds.iter_mut().for_each(|world| {
            world.publication.close_period(now).expect("a summary");
        });
    }

    fn edit(&mut self) {
        let mut edit = Edit::default();
        let shelf = self.worlds[0].publication.shelf();
        let rids: Vec<u64> = shelf.rids(0).filter(|rid| *rid >= FIRST_RID).collect();
        for rid in &rids {
            match self.dice.below(2 * rids.len() as u64) {
                0 if rids.len() > 30 => edit.delete.push(*rid),
                1 | 2 => edit.update.push((*rid, self.price())),
                _ => {}
            }
        }
        let most = if rids.len() > 60 { 1 } else { 3 };
        edit.insert = (0..self.dice.below(most)).map(|_| self.price()).collect();
        self.worlds[0].publication.edit(edit).expect("an edit");
    }

    /// One thing that the owner does, told before any mirror knows of it. Keys change at certain steps, all else by chance.
    fn act(&mut self, shared: &Shared, step: u64) {
        let mut known = shared.known.write().expect("what is known");
        self.time += 1 + self.dice.below(STEP);
        if self.dice.below(5) == 0 {
            self.skew = self.dice.below(2 * DRIFT) as i64 - DRIFT as i64;
        }
        let now = self.now();
        let chance = match step % self.keys_every {
            11 | 31 => 985,
            21 => 999,
            _ => self.dice.below(980),
        };
        let did = match chance {
            0..500 => {
                self.edit();
                "edits"
            }
            500..800 => {
                self.close(&mut known);
                "periods"
            }
            800..980 => {
                let count = self.dice.below(60) as usize + 30;
                self.worlds.iter_mut().for_each(|world| _ = world.publication.renew(now, count).expect("signatures"));
                "renewals"
            }
            at if self.worlds[0].publication.status().keys.len() < 10 => {
                self.keys += 1;
                let key = |number: u8| NewKey::from_entropy(&[number; 32], 1 << 50).expect("a key");
                let publication = &mut self.worlds[0].publication;
                if at < 996 {
                    publication.rotate(now, key(self.keys), &[]).expect("a key");
                    "rotations"
                } else {
                    shared.is_revoking.store(true, Ordering::SeqCst);
                    let stolen = publication.status().keys[0].0.key;
                    let open = publication.status().open_period;
                    publication.revoke(now, &stolen, key(self.keys), &[]).expect("a key");
                    // It ends the period that was open, if it has to.
                    for period in open..self.worlds[0].publication.status().open_period {
                        let ended = (known.rows.len(), self.time);
                        known.ended.insert(period, ended);
                    }
                    "revocations"
                }
            }
            _ => "rests",
        };
        *self.did.entry(did).or_default() += 1;
        known.rows.push(self.rows());
        known.time = self.time;
    }

    /// Mirrors are told, late or in part.
    fn tell(&mut self, shared: &Shared, deaths: u64) {
        let is_revoking = shared.is_revoking.load(Ordering::SeqCst);
        for (at, mirror) in self.mirrors.iter_mut().enumerate() {
            if self.dice.below(1000) < deaths && !is_revoking {
                let how = mirror.die(&mut self.worlds[0], &mut self.dice);
                *self.did.entry(how).or_default() += 1;
                shared.addresses.lock().expect("addresses")[at] = mirror.address();
            }
            if self.dice.below(3) == 0 || is_revoking {
                mirror.follow(&mut self.worlds);
            }
        }
        shared.is_revoking.store(false, Ordering::SeqCst);
    }
}

/// Nobody who asks is left behind by more than so many steps, or its clock would be wrong by more than it says.
fn wait_for_readers(shared: &Shared, step: u64, is_over: impl Fn() -> bool) {
    while shared.begun.iter().any(|begun| begun.load(Ordering::SeqCst).saturating_add(STEPS_MEANWHILE) <= step)
        && !is_over()
    {
        thread::sleep(Duration::from_millis(1));
    }
}

/// What must have happened before it is enough, whatever the machine is busy with.
const LEAST: [(&str, u64); 5] = [("deaths", 10), ("rotations", 2), ("revocations", 1), ("renewals", 4), ("kills", 1)];
/// Each of ten kinds of questions at each of three mirrors.
const KINDS: usize = 30;

impl Shared {
    fn asked(&self) -> u64 {
        self.accepted.lock().expect("answers").values().sum()
    }

    fn is_enough(&self, questions: u64, did: &BTreeMap<&'static str, u64>) -> bool {
        let happened = |(what, least)| did.get(what).is_some_and(|count| *count >= least);
        self.asked() >= questions
            && self.accepted.lock().expect("answers").len() == KINDS
            && LEAST.into_iter().all(happened)
    }
}

/// Readers end with it, also where the owner fails: they would ask for ever, and the test would never end.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn with_readers(owner: &mut Owner, questions: u64, each_step: u64, deaths: u64) -> Vec<Told> {
    let mut known = Known { time: owner.time, rows: Vec::new(), ended: HashMap::new() };
    owner.close(&mut known);
    known.rows.push(owner.rows());
    owner.mirrors.iter_mut().for_each(|mirror| mirror.follow(&mut owner.worlds));
    let shared = Shared {
        known: RwLock::new(known),
        addresses: Mutex::new(owner.mirrors.iter().map(|mirror| mirror.address()).collect()),
        begun: (0..3).map(|_| AtomicU64::new(u64::MAX)).collect(),
        accepted: Mutex::default(),
        is_over: AtomicBool::new(false),
        is_revoking: AtomicBool::new(false),
    };
    let name = owner.worlds[0].owner;
    thread::scope(|scope| {
        let shared = &shared;
        let readers: Vec<_> = (0..3)
            .map(|number| {
                let (dice, skew) = (Dice(100 + number as u64), [0, DRIFT as i64, -(DRIFT as i64)][number]);
                let (memory, told) = (Default::default(), Told::default());
                let reader = Reader { dice, number, skew, owner: name, memory, told };
                scope.spawn(move || reader.run(shared))
            })
            .collect();
        let ends = Ends(&shared.is_over);
        // A reader ends by itself only where it was told something wrong.
        let is_over = || readers.iter().any(|reader| reader.is_finished());
        for step in 1.. {
            if shared.is_enough(questions, &owner.did) || is_over() {
                break;
            }
            assert!(step < 10 * questions, "something never happens: {:?}", owner.did);
            wait_for_readers(shared, step, is_over);
            owner.act(shared, step);
            owner.tell(shared, deaths);
            // Some questions between two changes.
            let before = shared.asked();
            while shared.asked() < before + each_step && !is_over() {
                thread::sleep(Duration::from_millis(1));
            }
            if before / 10_000 < shared.asked() / 10_000 {
                println!("{} questions, {step} steps", shared.asked());
            }
        }
        drop(ends);
        readers.into_iter().map(|reader| reader.join().expect("a reader that was told nothing wrong")).collect()
    })
}

/// A hundred thousand questions at full size, to tables of every scheme; some to two of them otherwise.
#[test]
fn honest_answers_of_real_mirrors_are_accepted_while_everything_changes() {
    let full = is_full();
    if full {
        SCHEMES.into_iter().for_each(|scheme| crowded(scheme, 25_000, full));
    } else {
        [Scheme::PerRecord, Scheme::Group(GROUP_ROWS)].into_iter().for_each(|scheme| crowded(scheme, 300, full));
    }
}

fn crowded(scheme: Scheme, questions: u64, full: bool) {
    let mut owner = Owner::new(scheme, 31, if full { 200 } else { 40 });
    let name = owner.worlds[0].owner;
    assert!(owner.worlds.iter().all(|world| world.owner == name));
    owner.mirrors.push(Box::new(OnDisk::new(name)));
    match InDatabase::new(name) {
        Some(database) => owner.mirrors.push(Box::new(database)),
        None => owner.mirrors.push(Box::new(OnDisk::new(name))),
    }
    owner.mirrors.push(Box::new(InFolder::new(name)));
    let told = with_readers(&mut owner, questions, if full { 40 } else { 4 }, if full { 30 } else { 120 });
    println!("{scheme:?}: {:?}", owner.did);
    told.iter().for_each(|told| println!("{told:?}"));
    // In the end everybody has all of it.
    owner.worlds.iter_mut().for_each(|world| _ = world.publication.close_period(owner.time).expect("a summary"));
    let rows = owner.rows();
    let terms = Terms { owner: name, now: owner.time, clock_error: 2 * DRIFT, max_age: u64::MAX, hints: true };
    for mirror in &mut owner.mirrors {
        mirror.follow(&mut owner.worlds);
        let mut dice = Dice(5);
        for _ in 0..30 {
            let asked = Asked::random(&mut dice);
            let (told, ..) = told_now(mirror.address(), &asked, &terms);
            assert!(asked.is(&told, &rows), "{}", asked.sql);
        }
    }
}

fn told_now(address: SocketAddr, asked: &Asked, terms: &Terms) -> Answer {
    told(address, asked, terms, &mut [None, None]).unwrap_or_else(|error| panic!("{}: {error}", asked.sql))
}
