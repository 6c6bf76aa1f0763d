//! What a reader takes of memory, counted by the allocator, whatever a mirror sends it: answers that are too large, that claim what
//! is not there, and that hold as much as their bytes can say. Alone in its process, since what others take would be counted too.

use counterfoil_mirror::site::Fetch;
use counterfoil_mirror::wire::Standing;
use counterfoil_proof::bytes::Writer;
use counterfoil_proof::{Column, Definition, Message, NodesOf, Scheme, SecretKey, Type, Value};
use counterfoil_publish::{Edit, MemoryLedger, Plan, Publication, Secrets};
use counterfoil_reader::{Error, Terms, read};
use peak_alloc::PeakAlloc;
use sha2::{Digest as _, Sha256};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const MEGABYTE: usize = 1 << 20;

/// What an answer may be at most, as files may.
const ANSWER_BYTES_MAX: usize = 64 * MEGABYTE;

fn is_full() -> bool {
    std::env::var("COUNTERFOIL_PROOF").is_ok_and(|size| size == "full")
}

/// What is answered to the bytes of a question.
type Lie = dyn Fn(&[u8]) -> Vec<u8>;

/// A mirror whose manifest and summaries are the owner's, and whose answers are made by a liar, who is told the question.
struct Lying {
    manifest: Vec<u8>,
    summaries: Vec<u8>,
    head: Vec<u8>,
    answer: Box<Lie>,
}

impl Fetch for Lying {
    fn fetch(&mut self, path: &str, _most: usize) -> Result<Option<Vec<u8>>, String> {
        Ok(match path {
            "manifest" => Some(self.manifest.clone()),
            "head" => Some(self.head.clone()),
            "summaries/0" => Some(self.summaries.clone()),
            _ => None,
        })
    }

    fn ask(&mut self, _path: &str, question: &[u8], most: usize) -> Result<Option<Vec<u8>>, String> {
        let answer = (self.answer)(question);
        if answer.len() > most { Err(format!("more than {most} bytes")) } else { Ok(Some(answer)) }
    }
}

struct Owner {
    publication: Publication<MemoryLedger>,
    terms: Terms,
}

impl Owner {
    /// Of a table of so many columns, all of them NULL in all but a few rows.
    fn new(columns: usize, scheme: Scheme) -> Self {
        let column = |at: usize| Column { name: format!("level{at}"), kind: Type::Integer };
        let definition = Definition {
            table: [4; 16],
            name: "levels".into(),
            columns: (0..columns).map(column).collect(),
            orders: vec![vec![0]],
            scheme,
            nodes: vec![NodesOf { order: 0, columns: vec![0] }],
            filters: vec![0],
        };
        let plan = Plan { definition, now: 1000, every: 0, renew: 0, max_age: u64::MAX, expires: 1 << 50 };
        let secrets = Secrets::from_entropy(&[7; 96]).expect("keys");
        let mut publication = Publication::create(MemoryLedger::default(), plan, secrets, &[]).expect("a publication");
        let insert = (0..20).map(|level| vec![Value::Integer(level); columns]).collect();
        publication.edit(Edit { insert, ..Edit::default() }).expect("rows");
        publication.close_period(2000).expect("a summary");
        let owner = publication.owner();
        Self { publication, terms: Terms { owner, now: 2010, clock_error: 5, max_age: u64::MAX, hints: false } }
    }

    fn lying(&mut self, answer: impl Fn(&[u8]) -> Vec<u8> + 'static) -> Lying {
        let summaries = self.publication.summaries().expect("summaries");
        let mut served = Writer::default();
        summaries.iter().for_each(|summary| _ = served.string(summary));
        let last = summaries.len() as u64 - 1;
        let head = Standing { last, first: 0 }.to_bytes();
        Lying { manifest: self.publication.manifest().to_vec(), summaries: served.0, head, answer: Box::new(answer) }
    }

    /// What a question comes to, and how much more memory than before it took at most, answer included.
    fn asked(&mut self, sql: &str, answer: impl Fn(&[u8]) -> Vec<u8> + 'static) -> (Result<(), Error>, usize) {
        let mut mirror = self.lying(answer);
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let told = read(&mut mirror, sql, &self.terms, &mut None).map(drop);
        (told, MEMORY.peak_usage().saturating_sub(before))
    }
}

/// How an answer begins: its version, and which question it says that it answers.
fn begun(version: u8, question: &[u8]) -> Writer {
    let domain = if version == 2 { "counterfoil/points/1" } else { "counterfoil/question/1" };
    let digest =
        Sha256::new().chain_update([domain.len() as u8]).chain_update(domain).chain_update(question).finalize();
    let mut writer = Writer::default();
    writer.byte(version).raw(&digest);
    writer
}

/// Appends a count and so many things, each made of its number.
fn many(answer: &mut Writer, count: u64, mut thing: impl FnMut(&mut Writer, u64)) {
    answer.number(count);
    (0..count).for_each(|at| thing(answer, at));
}

/// Ends an answer: no group, a signature of somebody, no hints.
fn ended(mut answer: Writer, in_groups: bool) -> Vec<u8> {
    if in_groups {
        answer.number(0);
    }
    let signature = SecretKey::from_entropy(&[9; 32]).expect("a key").sign(&Message([1; 32]));
    answer.raw(&signature.to_bytes()).byte(0);
    answer.0
}

const ALL: &str = "SELECT * FROM levels";
const COUNT: &str = "SELECT count(*), sum(level0) FROM levels";

/// Head and tail of the first order, in a period that has not begun: so nothing is hashed once all of it has been looked at.
const HEAD: &[u8] = &[1, 1, 0, 0, 1, 9];
const TAIL: &[u8] = &[1, 1, 2, 1, 1, 9];
const NULL: u8 = 2;

fn too_large(_: &[u8], _: usize) -> Vec<u8> {
    vec![1; ANSWER_BYTES_MAX + 1]
}

fn claimed_ranges(question: &[u8], bytes: usize) -> Vec<u8> {
    let mut answer = begun(1, question);
    answer.number(1_000_000).raw(&vec![0; bytes]);
    answer.0
}

/// Each from the head to the head, and nothing in it.
fn real_ranges(question: &[u8], _: usize) -> Vec<u8> {
    let mut answer = begun(1, question);
    many(&mut answer, 1_000_000, |answer, _| _ = answer.raw(&[0, 1, 0, 0, 0, 1, 0]));
    ended(answer, false)
}

/// Rows of so many columns, as short as rows can be: numbers that rise, and NULLs.
fn rows(question: &[u8], bytes: usize, columns: usize) -> Vec<u8> {
    let mut answer = begun(1, question);
    answer.number(1).raw(HEAD);
    let nulls = vec![NULL; columns];
    let row = |answer: &mut Writer, at| _ = answer.number(32 + at).number(1).number(9).raw(&nulls);
    many(&mut answer, (bytes / (columns + 6)) as u64, row);
    answer.raw(TAIL);
    ended(answer, false)
}

fn short_rows(question: &[u8], bytes: usize) -> Vec<u8> {
    rows(question, bytes, 1)
}

fn wide_rows(question: &[u8], bytes: usize) -> Vec<u8> {
    rows(question, bytes, 1000)
}

/// Nodes of no row.
fn nodes(question: &[u8], bytes: usize) -> Vec<u8> {
    let mut answer = begun(4, question);
    let node = |answer: &mut Writer, at| _ = answer.byte(1).number(at).number(1).number(1).byte(1).raw(&[1, 2, 0, 0]);
    many(&mut answer, bytes as u64 / 12, node);
    ended(answer, false)
}

/// Groups of as many records as groups have, which are in the answer, they say.
fn groups(question: &[u8], bytes: usize) -> Vec<u8> {
    let mut answer = begun(1, question);
    answer.number(1).raw(HEAD).number(0).raw(TAIL);
    let group = |answer: &mut Writer, at| _ = answer.number(at).number(1).number(9).number(64).raw(&[32; 64]);
    many(&mut answer, bytes as u64 / 71, group);
    ended(answer, false)
}

/// What an answer takes at most, with what there is beside it: that of the reader's count, and half as much again where lists of it grow.
const MEMORY_MAX: usize = 3 << 30;

/// A way to fill an answer, up to so many bytes.
type Answer = fn(&[u8], usize) -> Vec<u8>;

#[test]
fn what_a_mirror_sends_takes_no_more_memory_than_there_is_a_bound_for() {
    let [short, wide, grouped] = [0, 1, 2];
    let mut owners = [(1, Scheme::PerAttribute), (1000, Scheme::PerAttribute), (1, Scheme::Group(64))]
        .map(|(columns, scheme)| Owner::new(columns, scheme));
    let sizes: &[usize] = if is_full() { &[2, 13, 27, 31, 63] } else { &[2] };
    for (name, times, owner, sql, answer) in [
        ("an answer that is too large", 2, short, ALL, too_large as Answer),
        ("a million ranges, claimed", 3, short, ALL, claimed_ranges),
        ("a million ranges, real", 3, short, ALL, real_ranges),
        ("short rows", 180, short, ALL, short_rows),
        ("wide rows", 240, wide, ALL, wide_rows),
        ("nodes", 80, short, COUNT, nodes),
        ("groups", 60, grouped, ALL, groups),
    ] {
        for megabytes in sizes {
            let bytes = megabytes * MEGABYTE;
            let sent = answer(&[], bytes).len();
            let (told, took) = owners[owner].asked(sql, move |question| answer(question, bytes));
            println!("{name}: {} KB for {} KB: {told:?}", took >> 10, sent >> 10);
            assert!(told.is_err());
            assert!(took <= times * sent && took <= MEMORY_MAX, "{name}: {took} bytes for {sent}");
        }
    }
    // What the reader asks itself.
    let values: Vec<String> = (0..1_000_000).map(|level| (2 * level).to_string()).collect();
    let sql = format!("SELECT * FROM levels WHERE level0 IN ({})", values.join(","));
    let (told, took) = owners[short].asked(&sql, |_| panic!("it was asked"));
    println!("a million ranges that are asked for: {} KB for {} KB: {told:?}", took >> 10, sql.len() >> 10);
    assert!(matches!(told, Err(Error::Sql(_))), "{told:?}");
}
