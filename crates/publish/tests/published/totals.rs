//! Totals from signed nodes: those of a plain list of rows, whatever changed, and whatever a mirror makes of them.

use counterfoil_mirror::{Entry, MemoryShelf, NodeEntry, Shelf as _, totals};
use counterfoil_proof::{
    Chain, Definition, Edge, FIRST_RID, Interval, NodesOf, Refusal, Scheme, Span, Tile, Totals, TotalsAnswer, TotalsOf,
    TotalsQuestion, Trust, Type, Value, VerifiedTotals, check_totals,
};
use counterfoil_publish::{Edit, MemoryLedger, NewKey, Publication, Restored};

use crate::world::{Dice, SCHEMES, World, definition, row};

pub fn counted() -> Definition {
    let nodes = vec![NodesOf { order: 0, columns: vec![1, 2] }, NodesOf { order: 1, columns: vec![2] }];
    Definition { nodes, filters: vec![0, 1], ..definition("prices") }
}

fn question(world: &World, order: u8, interval: Interval, grouped: usize) -> TotalsQuestion {
    TotalsQuestion::new(world.publication.definition(), order, vec![interval], grouped).expect("a question")
}

fn honest(world: &World, question: &TotalsQuestion) -> TotalsAnswer {
    totals(&mut world.publication.shelf().clone(), question).expect("an answer")
}

fn check(world: &mut World, question: &TotalsQuestion, answer: &TotalsAnswer) -> Result<VerifiedTotals, Refusal> {
    let bytes = answer.to_bytes(world.publication.definition(), question).expect("bytes");
    check_bytes(world, question, &bytes)
}

fn check_bytes(world: &mut World, question: &TotalsQuestion, bytes: &[u8]) -> Result<VerifiedTotals, Refusal> {
    let (manifest, chain) = (world.manifest(), world.chain());
    let trust = Trust { manifest: &manifest, chain: &chain, now: world.now + 10, clock_error: 5, max_age: u64::MAX };
    check_totals(&trust, question, bytes)
}

pub fn verify(world: &mut World, question: &TotalsQuestion) -> Result<VerifiedTotals, Refusal> {
    let answer = honest(world, question);
    check(world, question, &answer)
}

/// The rows of a table as they were at one moment, with their positions in each order.
pub type Rows = Vec<([Vec<u8>; 2], Vec<Value>)>;

fn rows(shelf: &MemoryShelf) -> Rows {
    let position = |rid, order| {
        let entry = shelf.entry(rid).expect("an entry");
        entry.position(shelf.definition(), order).expect("a position").bytes().to_vec()
    };
    let rids = shelf.rids(0).filter(|rid| *rid >= FIRST_RID);
    rids.map(|rid| {
        let record = shelf.entry(rid).and_then(|entry| entry.record.clone()).expect("a record");
        ([position(rid, 0), position(rid, 1)], record.values)
    })
    .collect()
}

/// What a question's totals are, by another way.
pub fn expected(definition: &Definition, rows: &Rows, question: &TotalsQuestion) -> Vec<(Vec<u8>, Totals)> {
    let order = usize::from(question.order());
    let kinds = definition.node_kinds(question.order()).expect("nodes");
    let columns = definition.node_columns(question.order()).expect("nodes");
    let mut groups = std::collections::BTreeMap::new();
    if question.grouped() == 0 {
        groups.insert(Vec::new(), Totals::none(&kinds));
    }
    for (positions, values) in rows {
        let within = |part: &&Interval| positions[order][..] >= *part.start() && positions[order][..] < *part.end();
        if question.intervals().iter().find(within).is_some() {
            let mut key = Vec::new();
            for column in &definition.orders[order][..question.grouped()] {
                let column = usize::from(*column);
                definition.columns[column].kind.encode(&values[column], &mut key).expect("a value");
            }
            let own = columns.iter().map(|column| &values[usize::from(*column)]);
            groups.entry(key).or_insert_with(|| Totals::none(&kinds)).add_row(&kinds, own).expect("a row");
        }
    }
    groups.into_iter().collect()
}

pub fn found(definition: &Definition, question: &TotalsQuestion, groups: &[TotalsOf]) -> Vec<(Vec<u8>, Totals)> {
    let key = |group: &[Value]| {
        let mut key = Vec::new();
        for (column, value) in definition.orders[usize::from(question.order())].iter().zip(group) {
            definition.columns[usize::from(*column)].kind.encode(value, &mut key).expect("a value");
        }
        key
    };
    groups.iter().map(|group| (key(&group.group), group.totals.clone())).collect()
}

/// What `publish::tree` promises of the nodes of an order.
fn is_whole(shelf: &MemoryShelf, order: u8) {
    let mut below: Option<Vec<NodeEntry>> = None;
    for level in 1.. {
        let nodes: Vec<NodeEntry> = shelf.nodes.level(order, level, &[]).cloned().collect();
        let (first, last) = (nodes.first().expect("a node"), nodes.last().expect("a node"));
        assert!(first.node.part.start() == [1] && last.node.part.end() == [2], "level {level} is a whole order");
        assert!(nodes.windows(2).all(|pair| pair[0].node.part.end() == pair[1].node.part.start()), "no gap");
        for entry in &nodes {
            let part = &entry.node.part;
            let parts = match &below {
                None => shelf.within(order, part.start(), part.end()).count(),
                Some(below) => {
                    assert!(
                        below.iter().any(|below| below.node.part.start() == part.start()),
                        "a low of the level below"
                    );
                    below
                        .iter()
                        .filter(|below| part.start() <= below.node.part.start() && below.node.part.end() <= part.end())
                        .count()
                }
            };
            assert!(parts <= 16 && (parts >= 6 || nodes.len() == 1), "{parts} parts on level {level}");
        }
        if nodes.len() == 1 {
            assert!(shelf.nodes.level(order, level + 1, &[]).next().is_none(), "nothing above a single node");
            return;
        }
        below = Some(nodes);
    }
}

fn random_row(dice: &mut Dice) -> Vec<Value> {
    let symbol = ["A", "B", "BB", "C", ""][dice.below(5) as usize];
    let price = (dice.below(6) > 0).then(|| i128::from(dice.below(500)) - 200);
    row(symbol, dice.below(40) as i64 - 20, price, "a note")
}

pub fn random_question(dice: &mut Dice, world: &World) -> TotalsQuestion {
    let order = dice.below(2) as u8;
    let mut edges = vec![Edge::first(), Edge::last()];
    for _ in 0..dice.below(4) {
        let values = random_row(dice);
        let definition = world.publication.definition();
        let mut key = definition.key(usize::from(order), |at| &values[usize::from(at)]).expect("a key");
        key.truncate(key.len() - dice.below(4) as usize % key.len());
        edges.push(if dice.below(2) == 0 { Edge::before(&key) } else { Edge::behind(&key) });
    }
    edges.sort();
    edges.dedup();
    let pairs = edges.windows(2).filter(|_| dice.below(2) == 0);
    let chosen: Vec<Interval> = pairs.filter_map(|pair| Interval::new(pair[0].clone()..pair[1].clone())).collect();
    let intervals = if chosen.is_empty() { vec![Interval::all()] } else { chosen };
    let columns = world.publication.definition().orders[usize::from(order)].len() as u64;
    let grouped = dice.below(columns + 1) as usize;
    let question = TotalsQuestion::new(world.publication.definition(), order, intervals, grouped).expect("a question");
    if dice.below(2) == 0 { question.hinted() } else { question }
}

pub fn random_edit(dice: &mut Dice, world: &World, most: u64) -> Edit {
    let mut edit = Edit::default();
    let (deletes, updates) = (dice.below(4), dice.below(4));
    for rid in world.publication.shelf().rids(0).filter(|rid| *rid >= FIRST_RID) {
        match dice.below(12) {
            at if at < deletes => edit.delete.push(rid),
            at if at < deletes + updates => {
                let mut values = random_row(dice);
                // A row that keeps its place in an order, but not what is added up there.
                if let Some(record) = world.publication.shelf().entry(rid).and_then(|entry| entry.record.as_ref())
                    && dice.below(3) == 0
                {
                    values[..2].clone_from_slice(&record.values[..2]);
                }
                edit.update.push((rid, values));
            }
            _ => {}
        }
    }
    edit.insert = (0..dice.below(most)).map(|_| random_row(dice)).collect();
    edit
}

/// An owner, what its table was when the last period ended, and what it ever sent.
struct Life {
    world: World,
    settled: Rows,
    /// Its ledger of a while ago, and what was settled then.
    copy: Option<(MemoryLedger, Rows)>,
    past: Vec<MemoryShelf>,
}

impl Life {
    fn new(dice: &mut Dice, most: u64, scheme: Scheme) -> Self {
        let mut world = World::of(Definition { scheme, ..counted() }, [5; 96]);
        world.insert((0..most * 2).map(|_| random_row(dice)).collect());
        world.close();
        let settled = rows(world.publication.shelf());
        Self { world, settled, copy: None, past: Vec::new() }
    }

    /// Takes the ledger, as a cut behind the last commit would leave it.
    fn ledger(&mut self) -> MemoryLedger {
        let spare = World::of(definition("spare"), [9; 96]).publication;
        std::mem::replace(&mut self.world.publication, spare).into_ledger()
    }

    fn key(&self) -> NewKey {
        let mut entropy = [7; 32];
        entropy[..8].copy_from_slice(&self.world.now.to_be_bytes());
        NewKey::from_entropy(&entropy, 1 << 50).expect("a key")
    }

    fn settle(&mut self) {
        self.settled = rows(self.world.publication.shelf());
        (0..2).for_each(|order| is_whole(self.world.publication.shelf(), order));
    }

    fn step(&mut self, dice: &mut Dice, most: u64) {
        self.world.now += 1000;
        let now = self.world.now;
        let seen_serial = self.world.manifest().manifest().serial;
        match dice.below(13) {
            0..=3 => {
                let edit = random_edit(dice, &self.world, most);
                self.world.publication.edit(edit).expect("an edit");
            }
            4 => {
                self.world.publication.renew_before(u64::MAX, dice.below(40) as usize).expect("signatures");
            }
            5 => self.world.publication.rotate(now, self.key(), &[]).expect("a key"),
            6 => {
                let old = self.world.manifest().manifest().keys[0].key;
                let key = self.key();
                self.world.publication.revoke(now, &old, key, &[]).expect("a key");
                self.settle();
            }
            7 => {
                // Cut before the commit that ends a period: it ends again.
                let ledger = self.ledger();
                Publication::open(ledger.clone()).expect("a publication").close_period(now - 500).expect("a summary");
                self.copy = Some((ledger.clone(), self.settled.clone()));
                self.world.publication = Publication::open(ledger).expect("a publication");
            }
            8 if self.copy.is_some() => {
                // Put back from a copy; what was sent since then is with the mirror.
                let (ledger, settled) = self.copy.take().expect("a copy");
                let restored = Restored { now, seen_serial, key: self.key(), salts: [dice.below(250) as u8; 32] };
                self.world.publication = Publication::open_restored(ledger, restored, &[]).expect("a publication");
                self.settled = settled;
            }
            _ => {
                self.world.close();
                self.settle();
            }
        }
        self.past.push(self.world.publication.shelf().clone());
        if self.past.len() > 5 {
            self.past.remove(0);
        }
    }

    /// What a mirror can make of all that it was ever sent.
    fn mixed(&self, dice: &mut Dice) -> MemoryShelf {
        let mut shelf = self.world.publication.shelf().clone();
        let Some(then) = self.past.get(dice.below(5) as usize) else { return shelf };
        let (records, nodes) = (dice.below(3), 1 + dice.below(3));
        for rid in then.rids(0).filter(|_| records == 0) {
            shelf.put(then.entry(rid).expect("an entry").clone()).expect("an entry");
        }
        for group in then.groups.from(&[]).filter(|_| records < 2) {
            shelf.groups.put(group.clone());
        }
        let mut old: Vec<&NodeEntry> = then.nodes.all().filter(|entry| entry.stamp.rid % nodes == 0).collect();
        old.sort_by_key(|entry| entry.stamp.rid);
        old.into_iter().for_each(|entry| shelf.nodes.put(entry.clone()));
        shelf
    }

    /// Whether an answer that is accepted says what was settled when the last period ended.
    fn holds(&mut self, question: &TotalsQuestion, answer: &TotalsAnswer) -> Result<VerifiedTotals, Refusal> {
        let definition = self.world.publication.definition().clone();
        let verified = check(&mut self.world, question, answer)?;
        let is = found(&definition, question, &verified.groups);
        assert!(is == expected(&definition, &self.settled, question), "totals of another table");
        Ok(verified)
    }
}

#[test]
fn totals_are_those_of_a_plain_list_as_it_was_when_the_last_period_ended() {
    SCHEMES.into_iter().for_each(totals_of_a_plain_list);
}

fn totals_of_a_plain_list(scheme: Scheme) {
    let full = std::env::var("COUNTERFOIL_PROOF").is_ok_and(|size| size == "full");
    let [mut accepted, mut from_nodes, mut open, mut mixed, mut taken] = [0; 5];
    for seed in 0..if full { 60 } else { 3 } {
        println!("seed {seed}");
        let dice = &mut Dice(seed);
        let most = [4, 20, 120][seed as usize % 3];
        let mut life = Life::new(dice, most, scheme);
        for _ in 0..25 {
            life.step(dice, most);
            for _ in 0..3 {
                let question = random_question(dice, &life.world);
                let answer = honest(&life.world, &question);
                match life.holds(&question, &answer) {
                    Ok(verified) => {
                        accepted += 1;
                        from_nodes += usize::from(verified.nodes > 0);
                    }
                    Err(Refusal::NotProvable(_)) if life.world.publication.has_news() => open += 1,
                    Err(other) => panic!("{other}"),
                }
                if let Ok(answer) = totals(&mut life.mixed(dice), &question) {
                    mixed += 1;
                    taken += usize::from(life.holds(&question, &answer).is_ok());
                }
            }
        }
    }
    println!(
        "{scheme:?}: {accepted} honest answers accepted, {from_nodes} with nodes, {open} kept open; of {mixed} mixed ones {taken}"
    );
    assert!(accepted > 60 && from_nodes * 3 > accepted && open > 10 && taken > 10 && taken * 4 < mixed * 3);
}

fn filled() -> World {
    let mut world = World::of(counted(), [5; 96]);
    world.insert((0..300).map(|at| row("A", at, (at % 7 > 0).then_some(i128::from(at)), "a note")).collect());
    world.close();
    world.close();
    world
}

fn days(world: &World, from: i64, until: i64) -> TotalsQuestion {
    let edge = |day| {
        let mut key = Vec::new();
        Type::Text.encode(&Value::Text("A".into()), &mut key).expect("a text");
        Type::Date.encode(&Value::Integer(day), &mut key).expect("a day");
        Edge::before(&key)
    };
    question(world, 0, Interval::new(edge(from)..edge(until)).expect("an interval"), 0)
}

/// The signature that an attacker can make: the sum of those of what is on a shelf by these numbers.
fn resigned(shelf: &MemoryShelf, mut answer: TotalsAnswer, world: &World) -> TotalsAnswer {
    let mut rids = std::collections::BTreeSet::new();
    for span in answer.intervals.iter().flatten() {
        match span {
            Span::Tile(tile) => drop(rids.insert(tile.stamp.rid)),
            Span::Rows(_, run) => {
                rids.extend(run.rows.iter().map(|row| row.stamp.rid));
                for end in [&run.left, &run.right] {
                    if let counterfoil_proof::End::Boundary(boundary) = end {
                        rids.insert(boundary.stamp.rid);
                    }
                }
            }
        }
    }
    let mut sum = counterfoil_proof::SignatureSum::default();
    for rid in rids {
        let own = |shelf: &MemoryShelf| {
            let node = shelf.nodes.entry(rid).map(|entry| entry.signature);
            node.or_else(|| shelf.entry(rid).and_then(Entry::signature))
        };
        sum.add(&own(shelf).or_else(|| own(world.publication.shelf())).expect("a signature"));
    }
    answer.signature = sum.finish().expect("a sum");
    answer
}

fn tiles(answer: &mut TotalsAnswer) -> Vec<&mut Tile> {
    let spans = answer.intervals[0].iter_mut();
    spans
        .filter_map(|span| match span {
            Span::Tile(tile) => Some(tile),
            Span::Rows(..) => None,
        })
        .collect()
}

#[test]
fn a_node_is_of_its_order_level_part_and_totals_and_of_nothing_else() {
    let mut world = filled();
    let question = days(&world, 20, 280);
    let answer = honest(&world, &question);
    let verified = check(&mut world, &question, &answer).expect("honest");
    assert!(verified.groups[0].totals.rows == 260 && verified.nodes > 5 && verified.signatures < 60);
    let forged = |world: &mut World, change: &dyn Fn(&mut Tile), what: &str| {
        let mut answer = answer.clone();
        let at = tiles(&mut answer).len() / 2;
        change(tiles(&mut answer)[at]);
        let refused = check(world, &question, &answer).err();
        assert!(matches!(refused, Some(Refusal::Forged(_))), "{what}: {refused:?}");
    };
    forged(&mut world, &|tile| tile.level += 1, "another level");
    forged(&mut world, &|tile| tile.totals.rows += 1, "a row more");
    forged(&mut world, &|tile| tile.totals.columns[1].count -= 1, "a NULL more");
    forged(&mut world, &|tile| tile.totals.columns[1].sum = 7.into(), "another sum");
    forged(&mut world, &|tile| tile.totals.columns[0].least = Value::Integer(-9), "another least");
    forged(&mut world, &|tile| tile.totals.columns[0].largest = Value::Integer(900), "another largest");
    forged(&mut world, &|tile| tile.stamp.version += 1, "another version");
    forged(&mut world, &|tile| tile.stamp.rid += 1, "another number");
    // One of another order with the same part: the root.
    let all = self::question(&world, 0, Interval::all(), 0);
    let mut root = honest(&world, &all);
    assert_eq!(check(&mut world, &all, &root).expect("honest").signatures, 1);
    let other = self::question(&world, 1, Interval::all(), 0);
    let other = honest(&world, &other);
    let Span::Tile(of_prices) = &other.intervals[0][0] else { panic!("one node") };
    let Span::Tile(own) = &mut root.intervals[0][0] else { panic!("one node") };
    own.stamp = of_prices.stamp;
    own.totals.columns[1] = of_prices.totals.columns[0].clone();
    root.signature = other.signature;
    assert!(matches!(check(&mut world, &all, &root), Err(Refusal::Forged(_))), "a node of another order");
}

#[test]
fn spans_that_overlap_leave_a_gap_or_end_early() {
    let mut world = filled();
    let question = days(&world, 20, 280);
    let answer = honest(&world, &question);
    for at in 0..answer.intervals[0].len() {
        let mut missing = answer.clone();
        missing.intervals[0].remove(at);
        let missing = resigned(&MemoryShelf::new(counted()), missing, &world);
        assert!(check(&mut world, &question, &missing).is_err(), "span {at} missing");
        let mut twice = answer.clone();
        let span = twice.intervals[0][at].clone();
        twice.intervals[0].insert(at, span);
        assert!(check(&mut world, &question, &twice).is_err(), "span {at} twice");
    }
    let mut short = answer.clone();
    short.intervals[0].pop();
    let short = resigned(&MemoryShelf::new(counted()), short, &world);
    assert!(matches!(check(&mut world, &question, &short), Err(Refusal::Incomplete(_))));
    // A row of the edge left out, and its signature with it.
    let mut dropped = answer.clone();
    let Some(Span::Rows(_, run)) = dropped.intervals[0].first_mut() else { panic!("rows at the edge") };
    run.rows.pop().expect("a row");
    let dropped = resigned(&MemoryShelf::new(counted()), dropped, &world);
    assert!(matches!(check(&mut world, &question, &dropped), Err(Refusal::Forged(_))));
    // What was answered to a question for less.
    let narrow = days(&world, 30, 270);
    let mut other = honest(&world, &narrow);
    assert_eq!(check(&mut world, &question, &other).err(), Some(Refusal::OtherQuestion));
    other.question = question.digest();
    assert!(matches!(
        check(&mut world, &question, &other),
        Err(Refusal::Forged(_) | Refusal::Incomplete(_) | Refusal::Malformed(_))
    ));
}

#[test]
fn nodes_of_before_a_change_are_stale() {
    let mut world = filled();
    let question = days(&world, 20, 280);
    let (old, before) = (honest(&world, &question), world.publication.shelf().clone());
    world.insert(vec![row("A", 150, Some(1_000_000), "new")]);
    // Within the open period it is as of the last summary, exactly.
    assert_eq!(check(&mut world, &question, &old).expect("as of the last period").groups[0].totals.rows, 260);
    world.close();
    assert!(matches!(check(&mut world, &question, &old), Err(Refusal::Stale(_))), "an insert was hidden");
    // Rows of now beside one node of then.
    let new = honest(&world, &question);
    assert_eq!(check(&mut world, &question, &new).expect("honest").groups[0].totals.rows, 261);
    let mut mixed = new.clone();
    let mut old_tiles = old.clone();
    let mut is_mixed = false;
    for tile in tiles(&mut mixed) {
        if let Some(same) = tiles(&mut old_tiles).into_iter().find(|old| old.end == tile.end && old.stamp != tile.stamp)
        {
            *tile = same.clone();
            is_mixed = true;
        }
    }
    assert!(is_mixed);
    let mixed = resigned(&before, mixed, &world);
    assert!(matches!(check(&mut world, &question, &mixed), Err(Refusal::Stale(_))));
    // A node that is gone: so many rows went that it was joined with another one.
    let gone: Vec<u64> = world.publication.shelf().rids(0).filter(|rid| *rid >= FIRST_RID).skip(100).take(80).collect();
    let before = world.publication.shelf().clone();
    world.publication.edit(Edit { delete: gone, ..Edit::default() }).expect("an edit");
    world.close();
    assert!(matches!(check(&mut world, &question, &new), Err(Refusal::Stale(_))));
    assert_eq!(verify(&mut world, &question).expect("honest").groups[0].totals.rows, 181);
    let stays = |entry: &&NodeEntry| world.publication.shelf().nodes.entry(entry.stamp.rid).is_none();
    let gone = before.nodes.of(0).find(stays).expect("a node that is gone").clone();
    let manifest = world.manifest();
    let chain = world.chain();
    let part = gone.node.part.clone();
    let question = self::question(&world, 0, part.clone(), 0);
    let tile =
        Tile { stamp: gone.stamp, level: gone.node.level, end: part.end().to_vec(), totals: gone.node.totals.clone() };
    let alone = counterfoil_proof::SignatureSum::sum_of(&[gone.signature]).finish().expect("a signature");
    let answer = TotalsAnswer {
        question: question.digest(),
        intervals: vec![vec![Span::Tile(tile)]],
        groups: Vec::new(),
        signature: alone,
        hints: None,
    };
    let bytes = answer.to_bytes(world.publication.definition(), &question).expect("bytes");
    let refused = |chain: &Chain| {
        let trust = Trust { manifest: &manifest, chain, now: world.now + 10, clock_error: 5, max_age: u64::MAX };
        check_totals(&trust, &question, &bytes).err()
    };
    assert!(matches!(refused(&chain), Some(Refusal::Stale(_))), "a node that is gone");
}

#[test]
fn a_row_that_moved_in_the_open_period_is_not_counted_twice() {
    let mut world = filled();
    let question = days(&world, 20, 280);
    let old = honest(&world, &question);
    // From the middle, where a node counts it, to the edge, where rows are shown.
    let rid = world.publication.shelf().rids(0).filter(|rid| *rid >= FIRST_RID).nth(150).expect("a row");
    world
        .publication
        .edit(Edit { update: vec![(rid, row("A", 279, Some(1), "moved"))], ..Edit::default() })
        .expect("an edit");
    let now = honest(&world, &question);
    assert!(matches!(check(&mut world, &question, &now), Err(Refusal::NotProvable(_))));
    assert_eq!(check(&mut world, &question, &old).expect("as of the last period").groups[0].totals.rows, 260);
    world.close();
    let now = honest(&world, &question);
    assert_eq!(check(&mut world, &question, &now).expect("honest").groups[0].totals.rows, 260);
    assert!(matches!(check(&mut world, &question, &old), Err(Refusal::Stale(_))));
}

#[test]
fn a_node_renewed_and_then_changed_in_one_period_is_the_changed_one() {
    let mut world = filled();
    let question = self::question(&world, 0, Interval::all(), 0);
    world.publication.renew_before(u64::MAX, usize::MAX).expect("signatures");
    let renewed = honest(&world, &question);
    let period = |answer: &TotalsAnswer| match &answer.intervals[0][0] {
        Span::Tile(tile) => tile.stamp.period,
        Span::Rows(..) => panic!("one node"),
    };
    assert_eq!(period(&renewed), 2);
    // What is renewed says the same, but was signed in a period that has not ended.
    assert!(matches!(check(&mut world, &question, &renewed), Err(Refusal::NotProvable(_))));
    world.insert(vec![row("B", 1, None, "new")]);
    world.close();
    assert!(matches!(check(&mut world, &question, &renewed), Err(Refusal::Stale(_))));
    assert_eq!(verify(&mut world, &question).expect("honest").groups[0].totals.rows, 301);
}

#[test]
fn empty_tables_empty_parts_nulls_and_sums_beyond_128_bits() {
    let mut definition = counted();
    definition.columns[2].kind = Type::Numeric(38, 2);
    let mut world = World::of(definition, [5; 96]);
    world.close();
    let all = question(&world, 0, Interval::all(), 0);
    let nothing = verify(&mut world, &all).expect("honest");
    assert!(nothing.groups[0].totals.rows == 0 && nothing.nodes == 1);
    let most = 10i128.pow(38) - 1;
    world.insert((0..50).map(|at| row("A", at, Some(most), "large")).chain([row("A", 60, None, "none")]).collect());
    world.close();
    let totals = |world: &mut World, question: &TotalsQuestion| {
        verify(world, question).expect("honest").groups[0].totals.clone()
    };
    let large = totals(&mut world, &all);
    assert!((large.rows, large.columns[1].count) == (51, 50));
    assert_eq!(large.columns[1].sum.to_i128(), None, "fifty times 10^38");
    assert!(large.columns[1].least == Value::Numeric(most) && large.columns[1].largest == Value::Numeric(most));
    // On the way to a sum that fits there may be one that does not.
    world.insert((0..50).map(|at| row("B", at, Some(1 - most), "small")).collect());
    world.close();
    assert_eq!(totals(&mut world, &all).columns[1].sum.to_i128(), Some(50));
    let none = days(&world, 52, 60);
    let empty = totals(&mut world, &none);
    assert!(empty.rows == 0 && empty.columns[1].count == 0 && empty.columns[1].least == Value::Null);
    let null = days(&world, 60, 61);
    let null = totals(&mut world, &null);
    assert!(null.rows == 1 && null.columns[1].count == 0 && null.columns[0].count == 1);
}

#[test]
fn any_byte_changed_is_refused_or_changes_nothing() {
    let mut world = filled();
    let question = days(&world, 3, 290).hinted();
    let bytes = honest(&world, &question).to_bytes(world.publication.definition(), &question).expect("bytes");
    let (manifest, chain) = (world.manifest(), world.chain());
    let trust = Trust { manifest: &manifest, chain: &chain, now: world.now, clock_error: 5, max_age: u64::MAX };
    let groups = check_totals(&trust, &question, &bytes).expect("honest").groups;
    let full = std::env::var("COUNTERFOIL_PROOF").is_ok_and(|size| size == "full");
    for at in (0..bytes.len()).step_by(if full { 1 } else { 7 }) {
        for bit in (0..8).filter(|bit| full || *bit == at % 8) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            if let Ok(verified) = check_totals(&trust, &question, &changed) {
                assert!(verified.groups == groups, "byte {at}, bit {bit}");
            }
        }
        assert!(check_totals(&trust, &question, &bytes[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn a_change_signs_a_node_a_level() {
    let mut world = filled();
    let entries = |world: &World| -> Vec<NodeEntry> { world.publication.shelf().nodes.of(0).cloned().collect() };
    let before = entries(&world);
    world.insert(vec![row("A", 151, Some(1), "new")]);
    world.close();
    let after = entries(&world);
    let levels = after.iter().map(|entry| entry.node.level).max().expect("nodes");
    let signed = after.iter().filter(|entry| !before.contains(entry)).count();
    assert_eq!((signed, levels), (3, 3), "of {} nodes", after.len());
    // Another note is nobody's total.
    let rid = world.publication.shelf().rids(0).filter(|rid| *rid >= FIRST_RID).nth(9).expect("a row");
    let update = vec![(rid, row("A", 9, Some(9), "another note"))];
    world.publication.edit(Edit { update, ..Edit::default() }).expect("an edit");
    world.close();
    assert!(entries(&world) == after, "nothing that is added up has changed");
}

#[test]
fn a_node_over_several_groups_is_none_of_each() {
    let mut world = World::of(counted(), [5; 96]);
    let symbols = ["A", "B", "C"];
    world.insert((0..90).map(|at| row(symbols[at as usize / 30], at, Some(i128::from(at)), "a note")).collect());
    world.close();
    let grouped = question(&world, 0, Interval::all(), 1);
    let verified = verify(&mut world, &grouped).expect("honest");
    assert!(verified.groups.iter().map(|group| group.totals.rows).eq([30, 30, 30]) && verified.nodes > 0);
    // The root as if all of it were of one group, and each node that reaches from one group into the next.
    let nodes: Vec<NodeEntry> = world.publication.shelf().nodes.of(0).cloned().collect();
    let mut wide = 0;
    for entry in nodes {
        let part = entry.node.part.clone();
        let whole = question(&world, 0, part.clone(), 0);
        let grouped = question(&world, 0, part.clone(), 1);
        let mut answer = honest(&world, &whole);
        assert_eq!(check(&mut world, &whole, &answer).expect("honest").nodes, 1);
        answer.question = grouped.digest();
        match check(&mut world, &grouped, &answer) {
            Ok(verified) => assert!(verified.groups.len() == 1 && verified.groups[0].totals == entry.node.totals),
            Err(Refusal::Malformed(_)) => wide += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(wide > 2, "{wide} nodes over several groups");
}

#[test]
fn a_node_may_be_the_oldest_signature_of_all() {
    let mut world = filled();
    let shelf = world.publication.shelf();
    let records = shelf.rids(0).filter_map(|rid| Some((rid, shelf.entry(rid)?.record.clone()?.values)));
    let update =
        records.map(|(rid, values)| (rid, [&values[..3], &[Value::Text("another".into())]].concat())).collect();
    world.publication.edit(Edit { update, ..Edit::default() }).expect("an edit");
    world.close();
    // Heads and tails keep their neighbours, and filters their values, so they are as old as the nodes: a shelf without that tells.
    let mut shelf = world.publication.shelf().clone();
    for rid in (0..shelf.definition().orders.len() as u64 * 2).collect::<Vec<_>>() {
        let mut entry = shelf.entry(rid).expect("a head or tail").clone();
        entry.stamp.period = 1;
        shelf.put(entry).expect("its place");
    }
    let filters = (0..shelf.definition().orders.len() as u8)
        .flat_map(|order| shelf.filters(order).map(|signed| signed.stamp.rid));
    for rid in filters.collect::<Vec<_>>() {
        shelf.remove_filter(rid);
    }
    assert_eq!((shelf.oldest(), world.publication.oldest_period()), (0, 0));
    let all = question(&world, 0, Interval::all(), 0);
    assert_eq!(verify(&mut world, &all).expect("honest").groups[0].totals.rows, 300);
}
