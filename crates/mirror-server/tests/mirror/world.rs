//! An owner, its mirror, and a reader that believes neither.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use counterfoil_mirror::wire::{Standing, State};
use counterfoil_mirror_server::{Allowed, Limits, Listener, Store};
use counterfoil_proof::bytes::Reader;
use counterfoil_proof::{
    Chain, Column, Definition, Edge, FIRST_RID, Interval, NodesOf, Owner, Points, Question, Refusal, Scheme,
    TotalsQuestion, Trust, TrustedManifest, Type, Value, Verified, check, check_points, check_totals,
};
use counterfoil_publish::{Edit, MemoryLedger, Plan, Publication, Secrets};

use crate::client::{Reply, once};

/// A generator of numbers that is the same everywhere.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

pub fn definition(table: u8, name: &str) -> Definition {
    let column = |name: &str, kind| Column { name: name.into(), kind };
    Definition {
        table: [table; 16],
        name: name.into(),
        columns: vec![column("symbol", Type::Text), column("day", Type::Date), column("price", Type::BigInt)],
        orders: vec![vec![0, 1], vec![2]],
        scheme: Scheme::PerRecord,
        nodes: vec![NodesOf { order: 0, columns: vec![1, 2] }, NodesOf { order: 1, columns: Vec::new() }],
        filters: vec![0, 1],
    }
}

pub fn row(symbol: &str, day: i64, price: i64) -> Vec<Value> {
    vec![Value::Text(symbol.into()), Value::Integer(day), Value::Integer(price)]
}

pub struct World {
    pub publication: Publication<MemoryLedger>,
    pub owner: Owner,
    pub now: u64,
}

impl World {
    pub fn new() -> Self {
        Self::of(definition(3, "prices"), 5)
    }

    pub fn of(definition: Definition, entropy: u8) -> Self {
        let plan = Plan { definition, now: 1000, every: 0, renew: 0, max_age: u64::MAX, expires: 1 << 50 };
        let entropy: [u8; 96] = std::array::from_fn(|at| entropy.wrapping_add(at as u8 / 32));
        let secrets = Secrets::from_entropy(&entropy).expect("keys");
        let publication = Publication::create(MemoryLedger::default(), plan, secrets, &[]).expect("a publication");
        let owner = publication.owner();
        Self { publication, owner, now: 1000 }
    }

    /// The same owner with another ledger: its own of before, say.
    pub fn with_ledger(&self, ledger: MemoryLedger) -> Self {
        let publication = Publication::open(ledger).expect("a publication");
        Self { publication, owner: self.owner, now: self.now }
    }

    /// What a cut, or a backup, would leave.
    pub fn ledger(&mut self) -> MemoryLedger {
        let spare = World::of(definition(9, "spare"), 77).publication;
        let ledger = std::mem::replace(&mut self.publication, spare).into_ledger();
        self.publication = Publication::open(ledger.clone()).expect("a publication");
        ledger
    }

    pub fn insert(&mut self, rows: Vec<Vec<Value>>) {
        self.publication.edit(Edit { insert: rows, ..Edit::default() }).expect("rows");
    }

    pub fn close(&mut self) {
        self.now += 1000;
        self.publication.close_period(self.now).expect("a summary");
    }

    /// Some rows that come, go and change.
    pub fn change(&mut self, dice: &mut Dice) {
        let mut edit = Edit::default();
        let random = |dice: &mut Dice| row(["A", "B", "BB", ""][dice.below(4) as usize], 0, dice.below(90) as i64);
        for rid in self.publication.shelf().rids(0).filter(|rid| *rid >= FIRST_RID) {
            match dice.below(6) {
                0 => edit.delete.push(rid),
                1 => edit.update.push((rid, random(dice))),
                _ => {}
            }
        }
        edit.insert = (0..dice.below(5)).map(|_| random(dice)).collect();
        self.publication.edit(edit).expect("an edit");
        if dice.below(2) == 0 {
            self.close();
        }
    }

    pub fn path(&self, what: &str) -> String {
        format!("/{}/{}/{what}", self.owner, self.publication.definition().name)
    }

    pub fn get(&self, address: SocketAddr, what: &str) -> Reply {
        once(address, &format!("GET {}", self.path(what)), b"")
    }

    pub fn post(&self, address: SocketAddr, what: &str, body: &[u8]) -> Reply {
        once(address, &format!("POST {}", self.path(what)), body)
    }

    pub fn state(&self, address: SocketAddr) -> State {
        let reply = self.get(address, "state");
        assert_eq!(reply.status, 200);
        State::from_bytes(&reply.body).expect("a state")
    }

    /// Brings the mirror up to date, in updates of about so many bytes; gives how many it took.
    pub fn push(&mut self, address: SocketAddr, bytes_most: usize) -> usize {
        let mut pushed = 0;
        loop {
            let state = self.state(address);
            let Some(update) = self.publication.update_for(&state, bytes_most).expect("an update") else {
                return pushed;
            };
            let reply = self.post(address, "update", &update);
            assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
            pushed += 1;
        }
    }

    pub fn all(&self, order: u8) -> Question {
        Question::new(self.publication.definition(), order, vec![Interval::all()], &[0, 1, 2]).expect("a question")
    }

    /// What a reader finds: the verdict on what the mirror says, by nothing but the owner's name.
    pub fn ask(&self, address: SocketAddr, question: &Question) -> Result<Verified, Unread> {
        self.answered(address, &question.to_bytes(), |trust, answer| check(trust, question, answer))
    }

    /// The same of values, as a join asks for them.
    pub fn ask_for(&self, address: SocketAddr, points: &Points) -> Result<Verified, Unread> {
        self.answered(address, &points.to_bytes(), |trust, answer| check_points(trust, points, answer))
    }

    fn answered<T>(
        &self,
        address: SocketAddr,
        question: &[u8],
        check: impl FnOnce(&Trust<'_>, &[u8]) -> Result<T, Refusal>,
    ) -> Result<T, Unread> {
        let need = |reply: Reply| if reply.status == 200 { Ok(reply.body) } else { Err(Unread::Status) };
        let manifest = need(self.get(address, "manifest"))?;
        let manifest = TrustedManifest::check(&manifest, &self.owner, 0)?;
        let head = Standing::from_bytes(&need(self.get(address, "head"))?).map_err(Refusal::from)?;
        let mut summaries = Vec::new();
        for file in 0..=head.last / 64 {
            let bytes = need(self.get(address, &format!("summaries/{file}")))?;
            let mut reader = Reader::new(&bytes, "summaries");
            while reader.left() > 0 {
                summaries.push(reader.string().map_err(Refusal::from)?.to_vec());
            }
        }
        let chain = Chain::check(&manifest, summaries.iter().map(Vec::as_slice))?;
        let answer = need(self.post(address, "answer", question))?;
        let trust = Trust { manifest: &manifest, chain: &chain, now: self.now + 10, clock_error: 5, max_age: u64::MAX };
        Ok(check(&trust, &answer)?)
    }

    /// The rows that the owner has.
    pub fn rows(&self, order: u8) -> Vec<Vec<Value>> {
        let shelf = self.publication.shelf();
        let records = shelf.rids(order).filter_map(|rid| shelf.entry(rid)?.record.as_ref());
        records.map(|record| record.values.clone()).collect()
    }

    /// Whether a reader is told what the owner has.
    pub fn holds(&self, address: SocketAddr) {
        for order in 0..2 {
            let verified = self.ask(address, &self.all(order)).expect("an honest answer");
            assert!(verified.rows == self.rows(order), "order {order}");
            assert_eq!(verified.as_of, self.now);
            if !self.publication.has_news() {
                self.counts(address, order, Interval::all());
                let first = Edge::before(&[1, b'B']);
                Interval::new(first..Edge::last()).into_iter().for_each(|part| self.counts(address, order, part));
            }
        }
        self.holds_values(address);
    }

    /// Whether totals of a part of an order are those of its rows.
    fn counts(&self, address: SocketAddr, order: u8, part: Interval) {
        let definition = self.publication.definition();
        let question = Question::new(definition, order, vec![part.clone()], &[2]).expect("a question");
        let rows = self.ask(address, &question).expect("an honest answer").rows;
        let question = TotalsQuestion::new(definition, order, vec![part], 0).expect("a question");
        let check = |trust: &Trust<'_>, answer: &[u8]| check_totals(trust, &question, answer);
        let totals =
            self.answered(address, &question.to_bytes(), check).expect("an honest answer").groups[0].totals.clone();
        assert_eq!(totals.rows, rows.len() as u64, "order {order}");
        if order == 0 {
            let price = |row: &Vec<Value>| match row[2] {
                Value::Integer(price) => i128::from(price),
                _ => panic!("a price"),
            };
            assert_eq!(totals.columns[1].sum.to_i128(), Some(rows.iter().map(price).sum()));
        }
    }

    /// Whether it is told of values that are there and of some that are not.
    fn holds_values(&self, address: SocketAddr) {
        let symbols = ["", "A", "AB", "B", "BB", "BC", "C"].map(|symbol| Value::Text(symbol.into())).to_vec();
        let prices = [-7, 0, 1, 5, 30, 31, 60, 89, 5000].map(Value::Integer).to_vec();
        for (order, column, kind, values) in [(0, 0, Type::Text, symbols), (1, 2, Type::BigInt, prices)] {
            let encoded = |value: &Value| {
                let mut bytes = Vec::new();
                kind.encode(value, &mut bytes).expect("a value");
                bytes
            };
            let asked = values.iter().map(encoded).collect();
            let points = Points::new(self.publication.definition(), order, asked, &[0, 1, 2]).expect("a question");
            let verified = self.ask_for(address, &points.hinted()).expect("an honest answer");
            let expected = self.rows(order).into_iter().filter(|row| values.contains(&row[column]));
            assert!(verified.rows == expected.collect::<Vec<_>>(), "values of order {order}");
        }
    }
}

#[derive(Debug)]
pub enum Unread {
    Status,
    Refused(Refusal),
}

impl From<Refusal> for Unread {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

pub fn listen(store: Arc<dyn Store>, owner: Owner, change: impl FnOnce(&mut Limits)) -> Listener {
    let mut limits = Limits::default();
    change(&mut limits);
    let allowed = Allowed::Owners(BTreeSet::from([owner]));
    Listener::bind("127.0.0.1:0".parse().expect("an address"), store, allowed, limits, None).expect("a listener")
}
