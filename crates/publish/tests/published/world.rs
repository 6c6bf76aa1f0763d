//! An owner, its table as a plain list, and a reader.

use counterfoil_mirror::{MemoryShelf, answer};
use counterfoil_proof::{
    Answer, Chain, Column, Definition, Direction, Edge, GROUP_ROWS, Interval, Owner, Question, Refusal, Scheme, Trust,
    TrustedManifest, Type, Value, Verified, check,
};
use counterfoil_publish::{Edit, MemoryLedger, Plan, Publication, Secrets};

/// A generator of numbers that is the same everywhere.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Every scheme, with the smallest groups and those that owners get who say nothing.
pub const SCHEMES: [Scheme; 4] = [Scheme::PerRecord, Scheme::PerAttribute, Scheme::Group(2), Scheme::Group(GROUP_ROWS)];

pub fn definition(name: &str) -> Definition {
    let column = |name: &str, kind| Column { name: name.into(), kind };
    Definition {
        table: [3; 16],
        name: name.into(),
        columns: vec![
            column("symbol", Type::Text),
            column("day", Type::Date),
            column("price", Type::Numeric(10, 2)),
            column("note", Type::Text),
        ],
        orders: vec![vec![0, 1], vec![2]],
        scheme: Scheme::PerRecord,
        nodes: Vec::new(),
        filters: Vec::new(),
    }
}

pub struct World {
    pub publication: Publication<MemoryLedger>,
    pub owner: Owner,
    pub now: u64,
}

pub fn row(symbol: &str, day: i64, price: Option<i128>, note: &str) -> Vec<Value> {
    let price = price.map_or(Value::Null, Value::Numeric);
    vec![Value::Text(symbol.into()), Value::Integer(day), price, Value::Text(note.into())]
}

impl World {
    pub fn new() -> Self {
        Self::of(definition("prices"), [5; 96])
    }

    /// The table signed in this way.
    pub fn signing(scheme: Scheme) -> Self {
        Self::of(Definition { scheme, ..definition("prices") }, [5; 96])
    }

    pub fn of(definition: Definition, entropy: [u8; 96]) -> Self {
        Self::planned(Plan { definition, now: 1000, every: 0, renew: 0, max_age: u64::MAX, expires: 1 << 50 }, entropy)
    }

    pub fn planned(plan: Plan, entropy: [u8; 96]) -> Self {
        let secrets = Secrets::from_entropy(&entropy).expect("keys");
        let publication = Publication::create(MemoryLedger::default(), plan, secrets, &[]).expect("a publication");
        let owner = publication.owner();
        Self { publication, owner, now: 1000 }
    }

    pub fn insert(&mut self, rows: Vec<Vec<Value>>) {
        self.publication.edit(Edit { insert: rows, ..Edit::default() }).expect("rows");
    }

    pub fn close(&mut self) {
        self.now += 1000;
        self.publication.close_period(self.now).expect("a summary");
    }

    pub fn manifest(&self) -> TrustedManifest {
        TrustedManifest::check(self.publication.manifest(), &self.owner, 0).expect("the owner's manifest")
    }

    pub fn chain(&mut self) -> Chain {
        let summaries = self.publication.summaries().expect("summaries");
        Chain::check(&self.manifest(), summaries.iter().map(Vec::as_slice)).expect("the owner's summaries")
    }

    pub fn all(&self) -> Question {
        Question::new(self.publication.definition(), 0, vec![Interval::all()], &[0, 1, 2, 3]).expect("a question")
    }

    /// Rows of one symbol.
    pub fn of_symbol(&self, symbol: &str, columns: &[u16]) -> Question {
        let mut prefix = Vec::new();
        Type::Text.encode(&Value::Text(symbol.into()), &mut prefix).expect("a text");
        let interval = Interval::new(Edge::before(&prefix)..Edge::behind(&prefix)).expect("an interval");
        Question::new(self.publication.definition(), 0, vec![interval], columns).expect("a question")
    }

    pub fn answer(&self, question: &Question) -> Answer {
        answer(&mut self.publication.shelf().clone(), question).expect("an answer")
    }

    pub fn check(&mut self, question: &Question, answer: &Answer) -> Result<Verified, Refusal> {
        let bytes = answer.to_bytes(self.publication.definition(), question).expect("an answer");
        self.check_bytes(question, &bytes)
    }

    pub fn check_bytes(&mut self, question: &Question, bytes: &[u8]) -> Result<Verified, Refusal> {
        let (manifest, chain) = (self.manifest(), self.chain());
        let trust = Trust { manifest: &manifest, chain: &chain, now: self.now + 10, clock_error: 5, max_age: u64::MAX };
        check(&trust, question, bytes)
    }
}

/// What is in `shelf` within the intervals of a question: what an honest answer says, by another way.
pub fn expected(shelf: &MemoryShelf, question: &Question) -> Vec<Vec<Value>> {
    let definition = counterfoil_mirror::Shelf::definition(shelf).clone();
    let mut rows = Vec::new();
    for rid in shelf.rids(question.order()) {
        let entry = shelf.entry(rid).expect("an entry");
        let position = entry.position(&definition, question.order()).expect("a position");
        if let Some(record) = &entry.record
            && question.intervals().iter().any(|interval| interval.contains(&position))
        {
            rows.push(question.columns().iter().map(|at| record.values[usize::from(*at)].clone()).collect());
        }
    }
    if question.direction() == Direction::Descending {
        rows.reverse();
    }
    rows.truncate(question.limit().map_or(usize::MAX, |limit| limit as usize));
    rows
}
