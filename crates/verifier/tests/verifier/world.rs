//! An owner, a folder and a mirror that answers; a page that fetches from either.

use std::collections::HashMap;

use counterfoil_mirror::reply;
use counterfoil_mirror::site::{Fetch, Folder, SUMMARIES_PER_FILE, write};
use counterfoil_mirror::wire::Standing;
use counterfoil_proof::bytes::Writer;
use counterfoil_proof::{Column, Definition, NodesOf, Scheme, Type, Value};
use counterfoil_publish::{Edit, MemoryLedger, Plan, Publication, Secrets};
use counterfoil_reader::{Error, Memory, Reading, Terms};
use counterfoil_verifier::{Brought, Session, Step, Wanted};

pub struct World {
    pub publication: Publication<MemoryLedger>,
    pub folder: tempfile::TempDir,
    pub summaries: Vec<Vec<u8>>,
    pub now: u64,
}

/// What brings files: a folder, or what a test makes of one.
pub type Bring<'a> = &'a mut dyn FnMut(&Wanted) -> Brought;

impl World {
    pub fn new() -> Self {
        Self::signing(Scheme::PerRecord)
    }

    pub fn signing(scheme: Scheme) -> Self {
        let column = |name: &str, kind| Column { name: name.into(), kind };
        let definition = Definition {
            table: [5; 16],
            name: "prices".into(),
            columns: vec![
                column("symbol", Type::Text),
                column("day", Type::Date),
                column("price", Type::Numeric(10, 2)),
                column("note", Type::Text),
            ],
            orders: vec![vec![0, 1], vec![2]],
            scheme,
            nodes: vec![NodesOf { order: 0, columns: vec![1, 2] }],
            filters: Vec::new(),
        };
        let now = 5_000_000;
        let plan = Plan { definition, now, every: 0, renew: 0, max_age: u64::MAX, expires: 1 << 50 };
        let secrets = Secrets::from_entropy(&[7; 96]).expect("keys");
        let publication = Publication::create(MemoryLedger::default(), plan, secrets, &[]).expect("a publication");
        Self { publication, folder: tempfile::tempdir().expect("a folder"), summaries: Vec::new(), now }
    }

    /// With so many rows, in two periods.
    pub fn of(rows: i64) -> Self {
        Self::signed(Scheme::PerRecord, rows)
    }

    pub fn signed(scheme: Scheme, rows: i64) -> Self {
        let mut world = Self::signing(scheme);
        world.publish((0..rows / 2).map(row).collect());
        world.publish((rows / 2..rows).map(row).collect());
        world
    }

    pub fn publish(&mut self, insert: Vec<Vec<Value>>) {
        self.publication.edit(Edit { insert, ..Edit::default() }).expect("rows");
        self.now += 1000;
        self.publication.close_period(self.now).expect("a summary");
        self.summaries = self.publication.summaries().expect("summaries");
        let (shelf, manifest) = (self.publication.shelf(), self.publication.manifest());
        write(shelf, manifest, &self.summaries, self.folder.path()).expect("a site");
    }

    pub fn terms(&self) -> Terms {
        Terms { owner: self.publication.owner(), now: self.now + 10, clock_error: 5, max_age: u64::MAX, hints: true }
    }

    pub fn session(&self, sql: &str, memory: Option<Memory>) -> Session {
        Session::begin(sql, self.terms(), memory).expect("a question")
    }

    /// What a web server in front of the folder sends.
    pub fn folder_sends(&self, wanted: &Wanted) -> Brought {
        match (&wanted.question, Folder(self.folder.path().into()).fetch(&wanted.path, wanted.most)) {
            (None, Ok(Some(bytes))) => Brought::Bytes(bytes),
            (None, Err(what)) => Brought::Failed(what),
            _ => Brought::Nothing,
        }
    }

    /// What a mirror sends that answers itself.
    pub fn mirror_sends(&self, wanted: &Wanted) -> Brought {
        let summaries = &self.summaries;
        match (&wanted.path[..], &wanted.question) {
            ("manifest", None) => self.folder_sends(wanted),
            ("head", None) => {
                let first = self.publication.shelf().oldest();
                Brought::Bytes(Standing { last: summaries.len() as u64 - 1, first }.to_bytes())
            }
            ("answer", Some(question)) => {
                Brought::Bytes(reply(&mut self.publication.shelf().clone(), question).expect("an answer"))
            }
            (path, None) if path.starts_with("summaries/") => {
                let file: usize = path["summaries/".len()..].parse().expect("a number");
                let each = SUMMARIES_PER_FILE as usize;
                let mut writer = Writer::default();
                for summary in summaries.iter().skip(file * each).take(each) {
                    writer.string(summary);
                }
                Brought::Bytes(writer.0)
            }
            _ => Brought::Nothing,
        }
    }

    /// Asks the folder to the end.
    pub fn ask(&self, sql: &str) -> Session {
        let mut session = self.session(sql, None);
        run(&mut session, &mut |wanted| self.folder_sends(wanted)).expect("rows");
        session
    }

    /// Asks the mirror to the end.
    pub fn ask_mirror(&self, sql: &str) -> Session {
        let mut session = self.session(sql, None);
        run(&mut session, &mut |wanted| self.mirror_sends(wanted)).expect("rows");
        session
    }
}

pub fn row(number: i64) -> Vec<Value> {
    let symbol = ["ABB", "NES", "ROG"][(number % 3) as usize];
    let note = if number % 5 == 0 { Value::Null } else { Value::Text(format!("<img src=x onerror=alert({number})>")) };
    vec![Value::Text(symbol.into()), Value::Integer(number), Value::Numeric(i128::from(number * 7)), note]
}

/// Fetches and goes on until there are rows or a refusal.
pub fn run(session: &mut Session, bring: Bring<'_>) -> Result<Reading, Error> {
    loop {
        let wanted = match session.step() {
            Step::Read(reading) => return Ok(reading.clone()),
            Step::Refused(error) => return Err(error),
            Step::Wanted(wanted) => wanted.to_vec(),
        };
        assert!(!wanted.is_empty(), "neither an end nor anything to do");
        for wanted in wanted {
            session.bring(&wanted.path, bring(&wanted))?;
        }
    }
}

/// A generator of numbers that is the same everywhere.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 20
    }
}

/// How often each file was fetched.
#[derive(Default)]
pub struct Counted(pub HashMap<String, usize>);

impl Counted {
    pub fn note(&mut self, wanted: &Wanted) {
        *self.0.entry(wanted.path.clone()).or_default() += 1;
    }
}
