//! A reader over a folder: asked, refused, remembered, kept.

use std::path::Path;

use counterfoil_ask::{Comparison, Filter, Scan, Wanted};
use counterfoil_mirror::site::{Fetch, Folder, write};
use counterfoil_proof::{Column, Definition, NodesOf, Owner, Refusal, Scheme, Type, Value};
use counterfoil_publish::{Edit, MemoryLedger, Plan, Publication, Secrets};
use counterfoil_reader::{Error, Kept, Memory, Opened, Reading, Terms, Verdict, read};

struct World {
    publication: Publication<MemoryLedger>,
    folder: tempfile::TempDir,
    now: u64,
}

impl World {
    fn new(table: u8, now: u64) -> Self {
        Self::signing(Scheme::PerRecord, table, now)
    }

    fn signing(scheme: Scheme, table: u8, now: u64) -> Self {
        let column = |name: &str, kind| Column { name: name.into(), kind };
        let definition = Definition {
            table: [table; 16],
            name: "prices".into(),
            columns: vec![column("symbol", Type::Text), column("price", Type::Integer)],
            orders: vec![vec![0]],
            scheme,
            nodes: Vec::new(),
            filters: Vec::new(),
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

/// Every way in which tables are signed.
const SCHEMES: [Scheme; 4] = [Scheme::PerRecord, Scheme::PerAttribute, Scheme::Group(2), Scheme::Group(16)];

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
    SCHEMES.into_iter().for_each(rows_come_with_a_verdict);
}

fn rows_come_with_a_verdict(scheme: Scheme) {
    let mut world = World::signing(scheme, 1, 5_000_000);
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
        // With a bit that has flipped an honest mirror would be called a forger.
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            assert!(Memory::from_bytes(&flipped).is_err(), "bit {bit} of byte {at}");
        }
    }
    // An earlier version had no sum.
    let before = [&[1], &bytes[1..bytes.len() - 8]].concat();
    assert_eq!(Some(Memory::from_bytes(&before).expect("what was kept")), memory);
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
    SCHEMES.into_iter().for_each(hints_change_the_proof);
}

fn hints_change_the_proof(scheme: Scheme) {
    let mut world = World::signing(scheme, 1, 5_000_000);
    world.publish(&[("A", 1), ("B", 2)]);
    let read = |hints| {
        let terms = Terms { hints, ..world.terms() };
        read(&mut Folder(world.folder.path().into()), "SELECT * FROM prices", &terms, &mut None).expect("an answer")
    };
    let (compact, hinted) = (read(false), read(true));
    assert_eq!((&compact.table, &compact.verdict), (&hinted.table, &hinted.verdict));
    let signatures = compact.verdict.signatures as usize;
    let (compact, hinted) = (compact.kept.to_bytes(), hinted.kept.to_bytes());
    // Of head and tail, and of two rows, their values, or their groups; and how many there are: a byte, and one more where
    // the length of the answer takes another one.
    let counts = hinted.len() - compact.len() - signatures * 96;
    assert!(counts == 1 || counts == 2, "{scheme:?}: {counts}");
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

/// A table of numbers by day, with nodes over days, and over symbols and days.
fn counted() -> World {
    counted_by(Scheme::PerRecord)
}

fn counted_by(scheme: Scheme) -> World {
    let column = |name: &str, kind| Column { name: name.into(), kind };
    let definition = Definition {
        table: [8; 16],
        name: "prices".into(),
        columns: vec![
            column("day", Type::Integer),
            column("price", Type::Numeric(10, 2)),
            column("weight", Type::Double),
            column("note", Type::Text),
            column("symbol", Type::Text),
        ],
        orders: vec![vec![0], vec![4, 0]],
        scheme,
        nodes: vec![NodesOf { order: 0, columns: vec![1, 2] }, NodesOf { order: 1, columns: vec![1] }],
        filters: Vec::new(),
    };
    let now = 5_000_000;
    let plan = Plan { definition, now, every: 0, renew: 0, max_age: u64::MAX, expires: 1 << 50 };
    let secrets = Secrets::from_entropy(&[7; 96]).expect("keys");
    let publication = Publication::create(MemoryLedger::default(), plan, secrets, &[]).expect("a publication");
    World { publication, folder: tempfile::tempdir().expect("a folder"), now }
}

fn day(day: i64) -> Vec<Value> {
    let price = if day % 10 == 0 { Value::Null } else { Value::Numeric(i128::from(day) - 300) };
    let symbol = ["A", "B", "BB", "", "C"][day as usize / 7 % 5];
    vec![
        Value::Integer(day),
        price,
        Value::Double(day as f64 / 2.0),
        Value::Text("a note".into()),
        Value::Text(symbol.into()),
    ]
}

impl World {
    fn write(&mut self) {
        let summaries = self.publication.summaries().expect("summaries");
        write(self.publication.shelf(), self.publication.manifest(), &summaries, self.folder.path()).expect("a site");
    }
}

#[test]
fn aggregates_come_from_signed_totals_and_are_those_of_the_rows() {
    SCHEMES.into_iter().for_each(aggregates_of);
}

fn aggregates_of(scheme: Scheme) {
    let mut world = counted_by(scheme);
    world.publication.edit(Edit { insert: (0..1000).map(day).collect(), ..Edit::default() }).expect("rows");
    world.now += 1000;
    world.publication.close_period(world.now).expect("a summary");
    world.write();
    let what = "count(*), count(price), sum(price), min(price), max(price), avg(price), min(weight)";
    for condition in ["TRUE", "day >= 17 AND day < 903", "day IN (4, 5, 6) OR day > 400", "day = 12", "day > 5000"] {
        let mut answers = Vec::new();
        // The second says the same in a way that no intervals do, so that it takes rows.
        for (condition, by_rows) in [(condition.to_string(), false), (format!("({condition}) AND note <> 'x'"), true)] {
            let mut noting = Noting(Folder(world.folder.path().into()), Vec::new());
            let sql = format!("SELECT {what} FROM prices WHERE {condition}");
            let reading = read(&mut noting, &sql, &world.terms(), &mut None).expect("an answer");
            assert_eq!(reading.plan.contains("by signed totals"), !by_rows, "{sql}: {}", reading.plan);
            if !by_rows {
                assert!(
                    scheme == Scheme::PerAttribute || reading.verdict.signatures < 90,
                    "{sql}: {}",
                    reading.verdict
                );
            }
            let kept = Kept::from_bytes(&reading.kept.to_bytes()).expect("what was kept");
            assert_eq!(kept.check(kept.owner(), 5).expect("still right"), (reading.table.clone(), reading.verdict));
            answers.push(reading.table);
        }
        assert_eq!(answers[0], answers[1], "{condition}");
    }
    // Sums of floating numbers take rows: they depend on the order of adding.
    let reading = world.ask("SELECT sum(weight) FROM prices", &mut None).expect("an answer");
    assert!(!reading.plan.contains("totals"), "{}", reading.plan);
}

#[test]
fn groups_come_from_signed_totals_and_are_those_of_the_rows() {
    SCHEMES.into_iter().for_each(groups_of);
}

fn groups_of(scheme: Scheme) {
    let mut world = counted_by(scheme);
    world.publication.edit(Edit { insert: (0..700).map(day).collect(), ..Edit::default() }).expect("rows");
    world.now += 1000;
    world.publication.close_period(world.now).expect("a summary");
    world.write();
    let what = "symbol, count(*), count(price) AS prices, sum(price), max(price)";
    for (condition, tail) in [
        ("TRUE", "GROUP BY symbol"),
        ("symbol >= 'A' AND symbol < 'C'", "GROUP BY 1 ORDER BY 4 DESC, symbol LIMIT 2"),
        ("symbol IN ('B', 'C', 'X')", "GROUP BY symbol ORDER BY symbol DESC"),
        ("symbol = 'X'", "GROUP BY symbol"),
    ] {
        let mut answers = Vec::new();
        for (condition, by_rows) in [(condition.to_string(), false), (format!("({condition}) AND note <> 'x'"), true)] {
            let reading = world.ask(&format!("SELECT {what} FROM prices WHERE {condition} {tail}"), &mut None);
            let reading = reading.expect("an answer");
            assert_eq!(reading.plan.contains("by signed totals"), !by_rows, "{condition}: {}", reading.plan);
            assert!(
                by_rows || scheme == Scheme::PerAttribute || reading.verdict.signatures < 160,
                "{condition}: {}",
                reading.verdict
            );
            answers.push(reading.table);
        }
        assert_eq!(answers[0], answers[1], "{condition} {tail}");
    }
    let all = world.ask("SELECT symbol, day FROM prices GROUP BY day, symbol", &mut None).expect("an answer");
    assert_eq!(all.table.rows.len(), 700);
    let first = world.ask("SELECT symbol, count(*) FROM prices GROUP BY symbol", &mut None).expect("an answer");
    assert_eq!(first.table.rows[0], [Value::Text(String::new()), Value::Integer(140)]);
}

#[test]
fn where_rows_have_changed_since_the_last_period_rows_are_shown() {
    let mut world = counted();
    world.publication.edit(Edit { insert: (0..300).map(day).collect(), ..Edit::default() }).expect("rows");
    world.now += 1000;
    world.publication.close_period(world.now).expect("a summary");
    world.publication.edit(Edit { insert: vec![day(299)], ..Edit::default() }).expect("a row");
    world.write();
    let count = |sql: &str| {
        let reading = world.ask(sql, &mut None).expect("an answer");
        let Value::Integer(count) = reading.table.rows[0][0] else { panic!("a count") };
        (count, reading.verdict.signatures)
    };
    // Far from the change; then at it, where all rows are shown as they are by now.
    assert!(matches!(count("SELECT count(*) FROM prices WHERE day < 250"), (250, 0..90)));
    assert!(matches!(count("SELECT count(*) FROM prices WHERE day > 5 AND day < 300"), (295, 295..)));
    // Without an edge there is nothing but a node, which is of the last period.
    assert_eq!(count("SELECT count(*) FROM prices"), (300, 1));
}

#[test]
fn a_folder_whose_nodes_are_of_before_is_refused() {
    let mut world = counted();
    world.publication.edit(Edit { insert: (0..300).map(day).collect(), ..Edit::default() }).expect("rows");
    world.now += 1000;
    world.publication.close_period(world.now).expect("a summary");
    world.write();
    let old = std::fs::read(world.folder.path().join("head")).expect("a head");
    world.publication.edit(Edit { insert: vec![day(150)], ..Edit::default() }).expect("a row");
    world.now += 1000;
    world.publication.close_period(world.now).expect("a summary");
    world.write();
    let sql = "SELECT sum(price), count(*) FROM prices WHERE day BETWEEN 7 AND 290";
    assert_eq!(world.ask(sql, &mut None).expect("an answer").table.rows[0][1], Value::Integer(285));
    // The roots of before behind the periods of now: pages of the head before are kept for readers on their way.
    let new = std::fs::read(world.folder.path().join("head")).expect("a head");
    assert_eq!(old.len(), new.len());
    let root = |at: usize| &new[4 + 16 * at..20 + 16 * at];
    let mixed = [&new[..4], &old[4..]].concat();
    std::fs::write(world.folder.path().join("head"), &mixed).expect("a head");
    assert!(matches!(world.ask(sql, &mut None), Err(Error::Refused(Refusal::Stale(_)))));
    // The root of the rows' pages in the place of that of the nodes'.
    let swapped = [&new[..4], root(0), root(1), root(0), root(3)].concat();
    std::fs::write(world.folder.path().join("head"), &swapped).expect("a head");
    let refused = world.ask(sql, &mut None);
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn an_opened_table_is_asked_question_by_question_as_of_one_period() {
    let mut world = World::new(1, 5_000_000);
    world.publish(&[("A", 1), ("B", 2), ("C", 3)]);
    let yesterday = tempfile::tempdir().expect("a folder");
    copy(world.folder.path(), yesterday.path());
    let mut memory = None;
    let folder = |path: &Path| Box::new(Folder(path.into())) as Box<dyn Fetch + Send>;
    let terms = world.terms();
    let mut opened = Opened::at(folder(world.folder.path()), "prices", &terms, &mut memory).expect("a table");
    let above = |opened: &mut Opened<Box<dyn Fetch + Send>>, price| -> Result<(usize, Verdict), Error> {
        let filter = Filter::Compare { column: 1, comparison: Comparison::Greater, value: Value::Integer(price) };
        let wanted = Wanted { filter, columns: vec![0], sort_keys: Vec::new(), limit: None };
        let scan = Scan::of(opened.definition(), &wanted)?;
        let room = |bytes: usize| if bytes < 1 << 20 { Ok(()) } else { Err(Error::Unreachable("no room".into())) };
        let (rows, verdict) = opened.rows(scan.question().expect("a question"), &terms, room)?;
        Ok((scan.rows(rows)?.len(), verdict))
    };
    let (rows, verdict) = above(&mut opened, 1).expect("rows");
    assert_eq!((rows, verdict.as_of, verdict.signatures), (2, 5_001_000, 5));
    // The folder goes on; whoever has opened it sees what it was.
    world.publish(&[("D", 4)]);
    let (rows, verdict) = above(&mut opened, 0).expect("rows");
    assert_eq!((rows, verdict.as_of), (3, 5_001_000));
    // Whoever has no room for an answer says so, before it is checked.
    let wanted = Wanted { filter: Filter::All(Vec::new()), columns: Vec::new(), sort_keys: Vec::new(), limit: None };
    let scan = Scan::of(opened.definition(), &wanted).expect("a scan");
    let refused = opened.rows(scan.question().expect("a question"), &terms, |_| Err(Error::Withheld("room".into())));
    assert_eq!(refused.map(|(rows, _)| rows.len()), Err(Error::Withheld("room".into())));
    // What was seen counts for the next who opens it.
    let terms = world.terms();
    Opened::at(folder(world.folder.path()), "prices", &terms, &mut memory).map(drop).expect("a newer one");
    let refused = Opened::at(folder(yesterday.path()), "prices", &terms, &mut memory).map(drop);
    assert!(matches!(refused, Err(Error::Refused(Refusal::Stale(_)))));
}
