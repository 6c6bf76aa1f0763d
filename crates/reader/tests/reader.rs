//! A reader over a folder: asked, refused, remembered, kept.

use std::path::Path;

use counterfoil_mirror::site::{Fetch, Folder, write};
use counterfoil_proof::{Column, Definition, Owner, Refusal, Scheme, Type, Value};
use counterfoil_publish::{Edit, MemoryLedger, Plan, Publication, Secrets};
use counterfoil_reader::{Error, Kept, Memory, Reading, Terms, read};

struct World {
    publication: Publication<MemoryLedger>,
    folder: tempfile::TempDir,
    now: u64,
}

impl World {
    fn new(table: u8, now: u64) -> Self {
        let column = |name: &str, kind| Column { name: name.into(), kind };
        let definition = Definition {
            table: [table; 16],
            name: "prices".into(),
            columns: vec![column("symbol", Type::Text), column("price", Type::Integer)],
            orders: vec![vec![0]],
            scheme: Scheme::PerRecord,
            nodes: Vec::new(),
        };
        let plan = Plan { definition, now, every: 0, renew: 0, max_age: u64::MAX, expires: 1 << 50 };
        let secrets = Secrets::from_entropy(&[7; 96]).expect("keys");
        let publication = Publication::create(MemoryLedger::default(), plan, secrets, &[]).expect("a publication");
        Self { publication, folder: tempfile::tempdir().expect("a folder"), now }
    }

    fn publish(&mut self, rows: &[(&str, i64)]) {
        let insert =
            rows.iter().map(|(symbol, price)| vec![Value::Text((*symbol).into()), Value::Integer(*price)]).collect();
        self.publication.edit(Edit { insert, ..Edit::default() }).expect("rows");
        self.now += 1000;
        self.publication.close_period(self.now).expect("a summary");
        let summaries = self.publication.summaries().expect("summaries");
        let (shelf, manifest) = (self.publication.shelf(), self.publication.manifest());
        write(shelf, manifest, &summaries, self.folder.path()).expect("a site");
    }

    fn terms(&self) -> Terms {
        Terms { owner: self.publication.owner(), now: self.now + 10, clock_error: 5, max_age: u64::MAX, hints: false }
    }

    fn ask(&self, sql: &str, memory: &mut Option<Memory>) -> Result<Reading, Error> {
        read(&mut Folder(self.folder.path().into()), sql, &self.terms(), memory)
    }
}

/// A folder that notes what is fetched of it.
struct Noting(Folder, Vec<String>);

impl Fetch for Noting {
    fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        self.1.push(path.into());
        self.0.fetch(path, most)
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let target = to.join(entry.file_name().expect("a name"));
        if entry.is_dir() {
            copy(&entry, &target);
        } else {
            std::fs::copy(&entry, &target).expect("a copy");
        }
    }
}

#[test]
fn rows_come_with_a_verdict_and_can_be_checked_again() {
    let mut world = World::new(1, 5_000_000);
    world.publish(&[("A", 1), ("B", 2), ("B", 3)]);
    let mut memory = None;
    let reading = world.ask("SELECT sum(price) FROM prices WHERE symbol = 'B'", &mut memory).expect("an answer");
    assert_eq!(reading.table.rows, [[Value::Integer(5)]]);
    assert_eq!((reading.verdict.as_of, reading.verdict.age), (5_001_000, 15));
    let bytes = reading.kept.to_bytes();
    let kept = Kept::from_bytes(&bytes).expect("what was kept");
    let (table, verdict) = kept.check(kept.owner(), 5).expect("still right");
    assert_eq!((table, verdict), (reading.table, reading.verdict));
    // Another owner, and every byte changed in turn: refused, or the same rows.
    assert!(matches!(kept.check(&Owner::from_bytes([0; 32]), 5), Err(Error::Refused(Refusal::Forged(_)))));
    let owner = world.publication.owner();
    let mut accepted = 0;
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        if let Ok(kept) = Kept::from_bytes(&changed)
            && let Ok((table, _)) = kept.check(&owner, 5)
        {
            accepted += 1;
            assert!(
                table == kept_rows(&bytes, &owner) || kept.sql() != "SELECT sum(price) FROM prices WHERE symbol = 'B'"
            );
        }
    }
    // What nobody signed: the owner's name in the file, letters of the text that mean the same, and when it was asked.
    println!(
        "{accepted} of {} changed files accepted, with the same rows or as an answer to what they ask",
        bytes.len()
    );
    assert!(accepted < 100);
}

fn kept_rows(bytes: &[u8], owner: &Owner) -> counterfoil_ask::Table {
    Kept::from_bytes(bytes).expect("what was kept").check(owner, 5).expect("rows").0
}

#[test]
fn what_was_seen_is_not_taken_back() {
    let mut world = World::new(1, 5_000_000);
    world.publish(&[("A", 1)]);
    let yesterday = tempfile::tempdir().expect("a folder");
    copy(world.folder.path(), yesterday.path());
    world.publish(&[("B", 2)]);
    let mut memory = None;
    let all = "SELECT * FROM prices";
    assert_eq!(world.ask(all, &mut memory).expect("an answer").table.rows.len(), 2);
    // It lasts.
    let bytes = memory.as_ref().expect("something was seen").to_bytes();
    assert_eq!(Some(Memory::from_bytes(&bytes).expect("what was kept")), memory);
    for at in 0..bytes.len() {
        assert!(Memory::from_bytes(&bytes[..at]).is_err(), "{at}");
    }
    // Yesterday's folder is whole and signed; a reader who has seen today's refuses it, one who has not takes it.
    let old = |memory: &mut Option<Memory>| read(&mut Folder(yesterday.path().into()), all, &world.terms(), memory);
    assert!(matches!(old(&mut memory), Err(Error::Refused(Refusal::Stale(_)))));
    assert_eq!(old(&mut None).expect("an answer").table.rows.len(), 1);
    // What was seen of yesterday's alone does not take its place.
    let mut less = None;
    old(&mut less).expect("an answer");
    let (less, more) = (less.expect("something was seen"), memory.clone().expect("something was seen"));
    assert!(more.is_as_new_as(&less) && more.is_as_new_as(&more) && !less.is_as_new_as(&more));
    // Refused, it changes nothing.
    assert_eq!(memory.as_ref().expect("something was seen").to_bytes(), bytes);
}

#[test]
fn summaries_are_fetched_from_the_oldest_signature_on_or_from_what_was_seen() {
    let mut world = World::new(1, 5_000_000);
    world.publish(&[("A", 1)]);
    let mut seen = None;
    world.ask("SELECT * FROM prices", &mut seen).expect("an answer");
    for _ in 0..70 {
        world.now += 1000;
        world.publication.close_period(world.now).expect("a summary");
    }
    world.publication.renew_before(u64::MAX, usize::MAX).expect("signed again");
    world.publish(&[("B", 2)]);
    let ask = |memory: &mut Option<Memory>| {
        let mut noting = Noting(Folder(world.folder.path().into()), Vec::new());
        let reading = read(&mut noting, "SELECT price FROM prices", &world.terms(), memory).expect("an answer");
        assert_eq!(reading.table.rows.len(), 2);
        // What is kept is checked without those of before, as it was.
        assert!(reading.kept.check(&world.terms().owner, 5).is_ok());
        noting.1.into_iter().filter(|path| path.starts_with("summaries/")).collect::<Vec<_>>()
    };
    assert_eq!(ask(&mut None), ["summaries/1"]);
    // Who was here in the first period follows the chain from there.
    assert_eq!(ask(&mut seen), ["summaries/0", "summaries/1"]);
    assert_eq!(ask(&mut seen), ["summaries/1"]);
}

#[test]
fn hints_change_the_proof_and_not_the_answer() {
    let mut world = World::new(1, 5_000_000);
    world.publish(&[("A", 1), ("B", 2)]);
    let read = |hints| {
        let terms = Terms { hints, ..world.terms() };
        read(&mut Folder(world.folder.path().into()), "SELECT * FROM prices", &terms, &mut None).expect("an answer")
    };
    let (compact, hinted) = (read(false), read(true));
    assert_eq!((&compact.table, &compact.verdict), (&hinted.table, &hinted.verdict));
    let (compact, hinted) = (compact.kept.to_bytes(), hinted.kept.to_bytes());
    // Two rows, head and tail; and how many there are.
    assert_eq!(hinted.len(), compact.len() + 4 * 96 + 1);
    let owner = world.terms().owner;
    let kept = Kept::from_bytes(&hinted).expect("what was kept");
    assert_eq!(kept.check(&owner, 5).expect("still right").0.rows.len(), 2);
    // A proof of the one sort is none of the other.
    let digit = compact.iter().zip(&hinted).position(|(one, other)| one != other).expect("the digit before the answer");
    let mut changed = hinted.clone();
    assert_eq!((compact[digit], std::mem::replace(&mut changed[digit], 1)), (1, 2));
    assert!(Kept::from_bytes(&changed).expect("what was kept").check(&owner, 5).is_err());
}

#[test]
fn a_table_published_anew_is_taken_and_the_one_before_is_not() {
    let mut before = World::new(1, 5_000_000);
    before.publish(&[("A", 1)]);
    let mut anew = World::new(2, 6_000_000);
    anew.publish(&[("A", 2)]);
    let mut memory = None;
    let all = "SELECT * FROM prices";
    before.ask(all, &mut memory).expect("an answer");
    anew.ask(all, &mut memory).expect("an answer");
    let terms = anew.terms();
    let refused = read(&mut Folder(before.folder.path().into()), all, &terms, &mut memory);
    assert!(matches!(refused, Err(Error::Refused(Refusal::Stale(_)))));
}

#[test]
fn errors_say_what_is_wrong() {
    let mut world = World::new(1, 5_000_000);
    let empty = tempfile::tempdir().expect("a folder");
    let nowhere = read(&mut Folder(empty.path().into()), "SELECT * FROM prices", &world.terms(), &mut None);
    assert!(matches!(nowhere, Err(Error::NoTable(path)) if path == "manifest"));
    world.publish(&[("A", 1)]);
    assert!(matches!(world.ask("SELEC", &mut None), Err(Error::Sql(_))));
    assert!(matches!(world.ask("SELECT * FROM others", &mut None), Err(Error::Sql(_))));
    let terms = Terms { owner: Owner::from_bytes([1; 32]), ..world.terms() };
    let refused = read(&mut Folder(world.folder.path().into()), "SELECT * FROM prices", &terms, &mut None);
    assert!(matches!(refused, Err(Error::Refused(Refusal::Forged(_)))));
    let terms = Terms { max_age: 9, ..world.terms() };
    let refused = read(&mut Folder(world.folder.path().into()), "SELECT * FROM prices", &terms, &mut None);
    assert!(matches!(refused, Err(Error::Refused(Refusal::Stale(_)))));
    std::fs::remove_dir_all(world.folder.path().join("pages")).expect("pages");
    assert!(matches!(world.ask("SELECT * FROM prices", &mut None), Err(Error::Withheld(_))));
    // Nothing can match, so nobody is asked for pages.
    assert!(
        world
            .ask("SELECT * FROM prices WHERE symbol < 'A' AND symbol > 'B'", &mut None)
            .expect("no rows")
            .table
            .rows
            .is_empty()
    );
}
