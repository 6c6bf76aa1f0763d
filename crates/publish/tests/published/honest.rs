//! Honest mirrors are believed: whatever was asked, between whatever changes.

use counterfoil_mirror::{MemoryShelf, Shelf as _, SignedGroup};
use counterfoil_proof::{Direction, Edge, FIRST_RID, Interval, Question, Scheme, Type, Value};
use counterfoil_publish::{Change, Edit, Error, Ledger, MemoryLedger, Pair, Publication};

use crate::world::{Dice, SCHEMES, World, expected, row};

fn random_row(dice: &mut Dice) -> Vec<Value> {
    let symbol = ["A", "B", "BB", "C", ""][dice.below(5) as usize];
    let price = (dice.below(6) > 0).then(|| i128::from(dice.below(500)) - 200);
    row(symbol, dice.below(6) as i64 - 3, price, &format!("note {}", dice.below(9)))
}

/// The encodings of the first values of a random key of an order.
fn random_prefix(dice: &mut Dice, order: u8) -> Vec<u8> {
    let mut prefix = Vec::new();
    let values = random_row(dice);
    if order == 1 {
        Type::Numeric(10, 2).encode(&values[2], &mut prefix).expect("a price");
        return prefix;
    }
    Type::Text.encode(&values[0], &mut prefix).expect("a symbol");
    if dice.below(2) == 0 {
        Type::Date.encode(&values[1], &mut prefix).expect("a day");
    }
    prefix
}

pub fn random_question(dice: &mut Dice, world: &World) -> Question {
    let order = dice.below(2) as u8;
    let mut edges = vec![Edge::first(), Edge::last()];
    for _ in 0..dice.below(5) {
        let prefix = random_prefix(dice, order);
        edges.push(if dice.below(2) == 0 { Edge::before(&prefix) } else { Edge::behind(&prefix) });
    }
    edges.sort();
    edges.dedup();
    let chosen: Vec<Interval> = edges
        .windows(2)
        .filter(|_| dice.below(2) == 0)
        .filter_map(|pair| Interval::new(pair[0].clone()..pair[1].clone()))
        .collect();
    let intervals = if chosen.is_empty() { vec![Interval::all()] } else { chosen };
    let columns: Vec<u16> = (0..4).filter(|_| dice.below(2) == 0).collect();
    let mut question = Question::new(world.publication.definition(), order, intervals, &columns).expect("a question");
    if dice.below(2) == 0 {
        let direction = if dice.below(2) == 0 { Direction::Ascending } else { Direction::Descending };
        question = question.limited(dice.below(8) + 1, direction).expect("a limit");
    }
    if dice.below(2) == 0 { question.hinted() } else { question }
}

pub fn random_edit(dice: &mut Dice, world: &World) -> Edit {
    let mut edit = Edit::default();
    for rid in world.publication.shelf().rids(0).filter(|rid| *rid >= FIRST_RID) {
        match dice.below(12) {
            0 => edit.delete.push(rid),
            1 => edit.update.push((rid, random_row(dice))),
            _ => {}
        }
    }
    edit.insert = (0..dice.below(4)).map(|_| random_row(dice)).collect();
    edit
}

#[test]
fn every_honest_answer_is_accepted_and_equals_the_table() {
    SCHEMES.into_iter().for_each(honest_answers);
}

/// What `publish::groups` promises: each record in one group, all in their order, and no group too large or too small.
pub fn groups_are_whole(shelf: &MemoryShelf) {
    let Scheme::Group(rows_max) = shelf.definition().scheme else {
        assert!(shelf.groups.from(&[]).next().is_none());
        return;
    };
    let groups: Vec<&SignedGroup> = shelf.groups.from(&[]).collect();
    assert_eq!(groups[0].low, [1]);
    let members: Vec<u64> = groups.iter().flat_map(|group| group.members.iter().map(|(rid, _)| *rid)).collect();
    assert_eq!(members, shelf.rids(0).filter(|rid| *rid >= FIRST_RID).collect::<Vec<_>>());
    for (at, group) in groups.iter().enumerate() {
        let end = groups.get(at + 1).map_or(&[2][..], |next| &next.low[..]);
        assert_eq!(shelf.within(0, &group.low, end).count(), group.members.len(), "records of its own part");
        let rows = group.members.len();
        assert!(rows <= usize::from(rows_max) && (rows >= usize::from(3 * rows_max / 8).max(1) || groups.len() == 1));
    }
}

fn honest_answers(scheme: Scheme) {
    let rounds = if std::env::var("COUNTERFOIL_PROOF").is_ok_and(|size| size == "full") { 1500 } else { 60 };
    let mut dice = Dice(7);
    let mut world = World::signing(scheme);
    world.close();
    let mut answers = 0;
    for round in 0..rounds {
        let edit = random_edit(&mut dice, &world);
        world.publication.edit(edit).expect("an edit");
        groups_are_whole(world.publication.shelf());
        if dice.below(3) == 0 {
            world.close();
        }
        for _ in 0..3 {
            let question = random_question(&mut dice, &world);
            let answer = world.answer(&question);
            let verified = world
                .check(&question, &answer)
                .unwrap_or_else(|refusal| panic!("{scheme:?}, round {round}: {refusal}"));
            assert!(verified.rows == expected(world.publication.shelf(), &question), "round {round}");
            answers += 1;
        }
    }
    println!("{scheme:?}: {answers} honest answers accepted");
}

#[test]
fn an_owner_that_is_cut_goes_on_from_its_ledger() {
    let mut world = World::new();
    world.insert(vec![row("A", 1, Some(5), "x"), row("B", 1, None, "y")]);
    world.close();
    world.insert(vec![row("A", 2, Some(6), "z")]);
    let ledger = world.publication.into_ledger();
    world.publication = Publication::open(ledger).expect("the same publication");
    let rid = world.publication.shelf().rids(0).find(|rid| *rid >= FIRST_RID).expect("a record");
    let update = vec![(rid, row("A", 1, Some(7), "x"))];
    world.publication.edit(Edit { update, ..Edit::default() }).expect("an edit");
    world.close();
    let question = world.all();
    let answer = world.answer(&question);
    let verified = world.check(&question, &answer).expect("an honest answer");
    assert_eq!(verified.rows.len(), 3);
    assert_eq!((verified.as_of, verified.age), (world.now, 15));
}

#[test]
fn rows_that_are_there_already_are_not_signed_again() {
    let mut world = World::new();
    let rows = |price| {
        vec![
            row("A", 1, Some(5), "x"),
            row("B", 1, Some(price), "y"),
            row("B", 1, Some(9), "y"),
            row("C", 3, None, "z"),
        ]
    };
    let edit = world.publication.difference(rows(8)).expect("rows");
    assert_eq!(world.publication.edit(edit).expect("an edit").inserted, 4);
    world.close();
    let edit = world.publication.difference(rows(8)).expect("rows");
    assert_eq!(world.publication.edit(edit).expect("an edit").signed, 0);
    let edit = world.publication.difference(rows(7)).expect("rows");
    let edited = world.publication.edit(edit).expect("an edit");
    assert_eq!((edited.inserted, edited.updated, edited.deleted), (0, 1, 0));
    let mut fewer = rows(7);
    fewer.remove(3);
    let edit = world.publication.difference(fewer).expect("rows");
    assert_eq!(world.publication.edit(edit).expect("an edit").deleted, 1);
}

#[test]
fn what_cannot_be_published_is_refused_and_changes_nothing() {
    let mut world = World::new();
    let long = "x".repeat(2000);
    for rows in [vec![row(&long, 1, None, "a key that is too long")], vec![vec![Value::Null]]] {
        assert!(world.publication.edit(Edit { insert: rows, ..Edit::default() }).is_err());
    }
    assert!(world.publication.edit(Edit { delete: vec![3], ..Edit::default() }).is_err());
    assert_eq!(world.publication.shelf().rids(0).count(), 2);
}

/// A ledger whose commits fail from a number of them on, as a full disk or a cut makes them.
struct Failing {
    inner: MemoryLedger,
    commits: usize,
}

impl Ledger for Failing {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.inner.get(key)
    }

    fn scan(&mut self, prefix: &[u8]) -> Result<Vec<Pair>, Error> {
        self.inner.scan(prefix)
    }

    fn commit(&mut self, changes: Vec<Change>) -> Result<(), Error> {
        self.commits = self.commits.checked_sub(1).ok_or_else(|| Error::Ledger("no room left".into()))?;
        self.inner.commit(changes)
    }
}

#[test]
fn what_is_called_off_has_not_happened() {
    let mut world = World::new();
    world.insert(vec![row("A", 1, Some(5), "x")]);
    world.close();
    let pairs = |ledger: &mut MemoryLedger| ledger.scan(b"").expect("pairs");
    let many = |note: &str| Edit { insert: (0..2000).map(|at| row("B", at, None, note)).collect(), ..Edit::default() };
    let mut ledger = world.publication.into_ledger();
    let before = pairs(&mut ledger);
    for looks in 0..3 {
        let mut publication = Publication::open(ledger).expect("a publication");
        let (mut left, mut seen) = (looks, 0);
        publication.watch(Box::new(move |signed| {
            assert!(signed >= std::mem::replace(&mut seen, signed) && signed < 2000);
            left -= 1;
            left >= 0
        }));
        assert!(matches!(publication.edit(many("called off")), Err(Error::CalledOff)), "{looks}");
        assert_eq!(publication.signed(), 512 * looks as u64);
        assert!(matches!(publication.edit(Edit::default()), Err(Error::Latched)), "memory is ahead of the ledger");
        ledger = publication.into_ledger();
        assert!(pairs(&mut ledger) == before, "{looks}");
    }
    let mut publication = Publication::open(ledger).expect("a publication");
    publication.edit(many("done")).expect("an edit");
    assert!(publication.signed() >= 2000);
}

#[test]
fn whatever_commit_fails_nothing_is_signed_until_the_ledger_is_read_again() {
    for commits in 0..4 {
        let mut world = World::new();
        world.insert(vec![row("A", 1, Some(5), "x")]);
        world.close();
        let inner = world.publication.into_ledger();
        let mut publication = Publication::open(Failing { inner, commits }).expect("a publication");
        let mut done = 0;
        let failed = loop {
            let insert = vec![row("B", done, None, "y")];
            let edited = publication.edit(Edit { insert, ..Edit::default() }).map(drop);
            let closed = edited.and_then(|()| {
                done += 1;
                publication.close_period(5000).map(drop)
            });
            if let Err(failed) = closed {
                break failed;
            }
        };
        assert!(matches!(failed, Error::Ledger(_)), "{failed}");
        assert!(matches!(publication.close_period(6000), Err(Error::Latched)));
        assert!(matches!(publication.edit(Edit::default()), Err(Error::Latched)));
        world.publication = Publication::open(publication.into_ledger().inner).expect("what the ledger holds");
        world.now = 5000;
        world.insert(vec![row("C", 1, None, "z")]);
        world.close();
        let question = world.all();
        let answer = world.answer(&question);
        let verified = world.check(&question, &answer).expect("an honest answer");
        assert_eq!(verified.rows.len(), 2 + done as usize);
    }
}
