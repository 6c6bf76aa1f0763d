//! The attacker of attacker.rs against the views of each coalition, up to the declared size: what it finds beside what leakage.rs admits.
//!
//! - Rows that look equal are a group that is admitted, or all of them, or each alone.
//! - An order of bytes has no more to do with that of values than chance: six standard deviations, also of right guesses. Only where a
//!   total order is admitted it is found.
//! - Nothing comes in two columns, codings or layouts, and nothing at a place by which a row is known at another cloud or after REFRESH.
//!
//! And it is a good one: what is admitted it finds, to the row. All columns have the same values, so that what one coding says of another
//! would show; all that is drawn is the same each time.

use std::collections::{BTreeMap, BTreeSet};

use counterfoil_disperse::{
    Coding, Column, Condition, Declaration, Distribution, Kind, Operations, ROWS_MAX_DEFAULT, Value,
};

use crate::attacker::{self, Attacker, Group, Held, Known, Of, Part, is_share, orders};
use crate::facts::{self, Facts};
use crate::ledger::{number, text};
use crate::owner::Owner;
use crate::random::Random;
use crate::simulated::{coalitions, facts, is_full};

/// A value as it is compared, NULL first.
type Truth = Option<(i128, Vec<u8>)>;

const SHAPES: [(usize, usize, usize); 3] = [(3, 1, 1), (2, 0, 0), (4, 1, 2)];
const NUMBER: Kind = Kind::Number { bits: 27, wide: false, adds: true };
const NONE: Operations = Operations { equality: false, range: false, sum: false, prefix: false, danger_order: false };
const EQUALITY: Operations = Operations { equality: true, ..NONE };
const RANGE: Operations = Operations { range: true, ..NONE };
const DANGER: Operations = Operations { danger_order: true, ..NONE };

/// A column for each operation of a kind, at so many clouds, of which so many may fail and collude.
fn declared(kind: Kind, (count, may_fail, may_collude): (usize, usize, usize)) -> Declaration {
    let last = match kind {
        Kind::Text => [Operations { prefix: true, ..NONE }, EQUALITY],
        _ => [Operations { sum: true, ..NONE }; 2],
    };
    let columns = [NONE, EQUALITY, RANGE, DANGER, NONE].into_iter().chain(last);
    let column = |(id, operations): (u16, Operations)| Column {
        id,
        name: format!("column{id}"),
        kind,
        nullable: true,
        operations,
        distribution: if id == 4 { Distribution::Dispersed } else { Distribution::Spare },
        clouds: (0..count as u16).collect(),
    };
    Declaration {
        table: [42; 16],
        columns: (0..).zip(columns).map(column).collect(),
        clouds: ["a", "b", "c", "d", "e"][..count].iter().map(|name| (*name).to_owned()).collect(),
        may_fail,
        may_collude,
        rows_max: ROWS_MAX_DEFAULT,
    }
}

/// Texts of which few are frequent, and which begin alike.
fn texts(random: &mut Random, count: usize) -> Vec<Value> {
    let syllables = ["ba", "ne", "kö", "ri", "su", "ta", "lo", "mi"];
    let mut word = |_| (0..=random.below(30)).map(|_| syllables[random.below(syllables.len())]).collect::<String>();
    let words: Vec<String> = (0..60).map(&mut word).collect();
    let skewed = |_| {
        let end = random.below(words.len()) + 1;
        text(&words[random.below(end)])
    };
    (0..count).map(skewed).collect()
}

/// Numbers that follow one another, each once.
fn dense(random: &mut Random, count: usize) -> Vec<Value> {
    let mut numbers: Vec<i128> = (70_000_000..).take(count).collect();
    (1..count).rev().for_each(|last| numbers.swap(last, random.below(last + 1)));
    numbers.into_iter().map(number).collect()
}

fn ages(random: &mut Random, count: usize) -> Vec<Value> {
    (0..count).map(|_| number((18 + random.below(25) + random.below(25) + random.below(25)) as i128)).collect()
}

/// What is asked: single values, ranges, and texts that begin so.
fn questions(kind: Kind, values: &[Value]) -> Vec<Condition> {
    let mut sorted: Vec<&Value> = values.iter().collect();
    sorted.sort_by_key(|value| truth(&Some((*value).clone())));
    let nth = |of: usize| sorted[sorted.len() * of / 8].clone();
    let range =
        |column, low, high| Condition::Range { column, low: Some((nth(low), true)), high: Some((nth(high), false)) };
    let mut asked: Vec<Condition> =
        (1..4).map(|of| Condition::Equal { column: 1, values: vec![nth(of), nth(2 * of)] }).collect();
    asked.extend([range(2, 1, 3), range(2, 2, 5), range(2, 1, 7), range(3, 2, 6), range(3, 4, 5)]);
    let begins = |characters: usize| {
        let Value::String(bytes) = nth(4) else { panic!("a text") };
        let text = String::from_utf8(bytes).expect("a text").chars().take(characters).collect();
        Condition::Prefix { column: 5, text }
    };
    asked.extend([2, 4].into_iter().filter(|_| kind == Kind::Text).map(begins));
    asked
}

fn truth(value: &Option<Value>) -> Truth {
    value.as_ref().map(|value| match value {
        Value::Number(number) => (*number, Vec::new()),
        Value::String(bytes) => (0, bytes.clone()),
    })
}

/// Where fragments of the current layout belong.
fn known(owner: &Owner) -> Known {
    let layout = owner.kept.current();
    let (coder, mut known) = (layout.coder().expect("a placement"), Known::new());
    for (cloud, name) in layout.declaration.clouds.iter().enumerate() {
        known.extend(coder.placement().held_by(cloud).map(|fragment| {
            let of = Of { layout: layout.number, column: fragment.column, coding: fragment.coding };
            ((name.clone(), coder.column_name(cloud, of.column, of.coding)), of)
        }));
    }
    known
}

/// An owner who puts values in all columns, asks for them, and does so again after REFRESH.
fn owner(seed: u8, declaration: &Declaration, values: &[Value]) -> (Owner, Known) {
    let (mut owner, mut random) = (Owner::new(seed, declaration.clone()), Random(seed.into()));
    let mut line = |value: &Value| vec![(random.below(12) > 0).then(|| value.clone()); declaration.columns.len()];
    let lines: Vec<_> = values.iter().map(&mut line).collect();
    owner.insert(&lines);
    owner.tell();
    let all: Vec<u16> = declaration.columns.iter().map(|column| column.id).collect();
    let ask = |owner: &mut Owner| {
        let asked = questions(declaration.columns[0].kind, values);
        asked.iter().for_each(|condition| owner.ask(condition, &all));
        let sums = declaration.columns.iter().filter(|column| column.operations.sum);
        sums.for_each(|column| owner.sum(column.id, true));
    };
    ask(&mut owner);
    let mut names = known(&owner);
    // What was there before lies there still: what both have in common is seen best so.
    owner.begin(declaration.clone());
    while owner.move_some(values.len()) {}
    names.extend(known(&owner));
    ask(&mut owner);
    (owner, names)
}

/// What of a column is admitted, and what is true of it.
struct Admitted<'a> {
    facts: &'a Facts,
    truths: BTreeMap<u64, Truth>,
    whose: String,
}

impl Admitted<'_> {
    /// Rows of which it is said that they are alike in something.
    fn groups(&self) -> BTreeSet<Group> {
        let facts = self.facts;
        let mut groups = BTreeSet::from([self.truths.keys().copied().collect()]);
        groups.extend(facts.lengths.iter().flat_map(|_| self.lengths()));
        groups.extend(facts.equal.iter().flat_map(|own| by(&own.rows)));
        groups.extend(facts.begins.iter().flatten().flat_map(|own| by(&own.rows)));
        for nulls in facts.nulls.iter() {
            groups.insert(self.truths.keys().copied().filter(|row| !nulls.contains(row)).collect());
            groups.insert(nulls.clone());
        }
        groups
    }

    /// Rows of one class of lengths: four for each doubling, of at least 16 bytes, of a value with two bytes around it.
    fn lengths(&self) -> Vec<Group> {
        let bytes = |truth: &Truth| truth.as_ref().map_or(0, |(_, bytes)| bytes.len()) + 2;
        let class = |bytes: usize| {
            let step = [16, 32, 64].into_iter().find(|step| bytes <= 8 * step).expect("a short text");
            bytes.div_ceil(step) * step
        };
        by(&self.truths.iter().map(|(row, truth)| (*row, class(bytes(truth)))).collect())
    }

    /// Whether a group is no more than is admitted: neighbours in an order that is admitted may look equal, too.
    fn admits(&self, admitted: &BTreeSet<Group>, group: &Group) -> bool {
        let neighbours = self.facts.ranks.as_ref().is_some_and(|(ranks, _)| {
            let own: BTreeSet<usize> = group.iter().filter_map(|row| ranks.get(row).copied()).collect();
            let (Some(first), Some(last)) = (own.first(), own.last()) else { return false };
            ranks
                .iter()
                .filter(|(_, rank)| (first..=last).contains(rank))
                .map(|(row, _)| *row)
                .eq(group.iter().copied())
        });
        group.len() < 2 || admitted.contains(group) || neighbours
    }

    /// Where values are in their order, equal ones between their first and their last.
    fn ranks(&self, rows: &[u64]) -> Vec<f64> {
        let mut sorted: Vec<&Truth> = rows.iter().map(|row| &self.truths[row]).collect();
        sorted.sort();
        let rank = |own: &Truth| {
            let (first, end) = (sorted.partition_point(|of| *of < own), sorted.partition_point(|of| *of <= own));
            (first + end - 1) as f64 / 2.0
        };
        rows.iter().map(|row| rank(&self.truths[row])).collect()
    }
}

fn by<T: Ord + Clone>(rows: &BTreeMap<u64, T>) -> Vec<Group> {
    attacker::grouped(rows.iter().map(|(row, what)| (*row, what.clone())))
}

/// How far what stands at 0, 1, 2... rises with that, from -1 to 1.
fn correlation(ranks: &[f64]) -> f64 {
    let middle = (ranks.len() as f64 - 1.0) / 2.0;
    let (mut both, mut own, mut other) = (0.0, 0.0, 0.0);
    for (at, rank) in ranks.iter().enumerate() {
        let (at, rank) = (at as f64 - middle, rank - middle);
        (both, own, other) = (both + at * rank, own + at * at, other + rank * rank);
    }
    if other == 0.0 { 0.0 } else { both / (own * other).sqrt() }
}

/// Six standard deviations of an order by chance.
fn is_chance(ranks: &[f64], what: &str) {
    let (found, most) = (correlation(ranks), 6.0 / (ranks.len().max(2) as f64 - 1.0).sqrt());
    assert!(found.abs() < most || ranks.len() < 40, "{what} is in an order: {found} where chance is below {most}");
}

/// Six standard deviations of so many hits, and four where these are few.
fn are_few(hits: usize, expected: f64, what: &str) {
    let most = expected + 6.0 * expected.sqrt() + 4.0;
    assert!((hits as f64) < most, "{what}: {hits} where chance is below {most}");
}

/// That groups, orders and guesses that come from a fragment are no more than is admitted.
fn recovers_no_more(held: &Held, of: &Admitted<'_>) {
    let admitted = of.groups();
    for (what, groups) in held.groups() {
        let more = groups.iter().find(|group| !of.admits(&admitted, group));
        assert!(more.is_none(), "{}: equal by {what}: rows {more:?}", of.whose);
    }
    // A whole of prefixes is sorted by the first, of which there are few: they stand in it one by one.
    let parts = held.parts(&[8]).into_iter().skip(usize::from(held.of.coding == Coding::Prefix));
    for (what, part) in parts {
        let what = format!("{}, {what}", of.whose);
        let orders = orders(&part);
        low_bytes(&part, &orders[0], of, &what);
        if of.facts.ranks.is_none() {
            orders.iter().for_each(|order| is_chance(&of.ranks(order), &what));
            guesses(&part, &orders[0], of, &what);
        }
    }
}

/// Who lays known values over rows in the order of their bytes is right by chance. Groups that are admitted are right or wrong as a whole.
fn guesses(part: &Part, order: &[u64], of: &Admitted<'_>, what: &str) {
    if order.len() < part.len() {
        return;
    }
    let values: Vec<&Truth> = order.iter().map(|row| &of.truths[row]).collect();
    let guessed = attacker::guessed_by_order(part, &values);
    let hits = guessed.iter().filter(|(row, guess)| **guess == &of.truths[row]).count();
    let counts = by(&order.iter().map(|row| (*row, &of.truths[row])).collect());
    let squares: usize = counts.iter().map(|group| group.len().pow(2)).sum();
    are_few(hits, squares as f64 / order.len().max(1) as f64, what);
}

/// Nor is a byte of it the lowest of a number, or the first of a text, where these are not admitted. The highest byte of a share is one of 32.
fn low_bytes(part: &Part, order: &[u64], of: &Admitted<'_>, what: &str) {
    let own: BTreeMap<u64, &Vec<u8>> = part.iter().map(|(row, bytes)| (*row, bytes)).collect();
    let low = |row: &u64| of.truths[row].as_ref().map(|(number, text)| text.first().copied().unwrap_or(*number as u8));
    let is_first = of.facts.ranks.is_some() && of.truths.values().flatten().any(|(_, text)| !text.is_empty());
    for at in (0..8).filter(|_| !is_first) {
        let hits = order.iter().filter(|row| own[row].get(at).is_some_and(|byte| Some(*byte) == low(row))).count();
        are_few(hits, order.len() as f64 / 32.0, &format!("{what}, byte {at}"));
    }
}

/// That what is admitted of a fragment is found; its coding, if something is.
fn recovers_it(attacker: &Attacker, held: &Held, of: &Admitted<'_>, owner: &Owner) -> Option<Coding> {
    let (facts, whose) = (of.facts, &of.whose);
    let tags = || held.parts(&[16]).into_iter().skip(1).map(|(_, part)| attacker::grouped(part.into_iter()));
    match held.of.coding {
        Coding::Tag => {
            let found = tags().next().expect("tags");
            assert_eq!(several(&found), several(&by(&facts.equal.as_ref().expect("equality").rows)), "{whose}");
            frequencies(&found, of);
        }
        Coding::Prefix => {
            for (found, begins) in tags().zip(facts.begins.as_ref().expect("prefixes")) {
                assert_eq!(several(&found), several(&by(&begins.rows)), "{whose}");
            }
        }
        Coding::DangerOrder => {
            let codes = held.strings.iter().filter(|(_, code)| !code.is_empty());
            let codes: Part = codes.map(|(row, code)| (*row, code.clone())).collect();
            let ranks = &facts.ranks.as_ref().expect("ranks").0;
            let known: Vec<usize> = ranks.values().copied().collect();
            assert_eq!(attacker::guessed_by_order(&codes, &known), *ranks, "{whose}");
        }
        Coding::Cell | Coding::Piece(_) if facts.lengths.is_some() => {
            let (_, found) = held.groups().pop().expect("lengths");
            assert_eq!(several(&found), several(&of.lengths()), "{whose}");
        }
        Coding::Order => {
            assert_eq!(attacker.intervals(held), intervals(facts), "{whose}");
            questions_are_admitted(attacker, held.of, facts, owner, whose);
        }
        _ => return None,
    }
    Some(held.of.coding)
}

fn several(groups: &[Group]) -> BTreeSet<Group> {
    groups.iter().filter(|group| group.len() > 1).cloned().collect()
}

/// Who knows how often each value comes knows of those that come as often as no other where they are.
fn frequencies(found: &[Group], of: &Admitted<'_>) {
    let values: Vec<&Truth> = of.truths.values().filter(|truth| truth.is_some()).collect();
    let guessed = attacker::guessed_by_frequency(found, &values);
    let groups = several(&attacker::grouped(
        of.truths.iter().filter(|(_, truth)| truth.is_some()).map(|(row, truth)| (*row, truth)),
    ));
    for group in &groups {
        let is_alone = groups.iter().filter(|other| other.len() == group.len()).count() == 1;
        assert!(!is_alone || group.iter().all(|row| guessed[row] == &of.truths[row]), "{}", of.whose);
    }
}

/// Rows that compare alike with all that was asked.
fn intervals(facts: &Facts) -> Vec<Group> {
    let mut answers: BTreeMap<u64, Vec<_>> = BTreeMap::new();
    let all = &facts.order.as_ref().expect("an order").rows;
    all.iter().for_each(|((_, row), answer)| answers.entry(*row).or_default().push(*answer));
    by(&answers)
}

/// Of questions it is found how many blocks two have in common, and nothing of what a block is.
fn questions_are_admitted(attacker: &Attacker, of: Of, facts: &Facts, owner: &Owner, whose: &str) {
    let conditions = facts::conditions(&owner.deeds, of.layout);
    let bounds = conditions.iter().filter(|(_, condition)| condition.column() == of.column);
    let bounds = bounds.flat_map(|(_, condition)| facts::bounds(condition).into_iter().flatten());
    let kind = owner.declared[&of.layout].columns[usize::from(of.column)].kind;
    let numbers: Vec<u64> = bounds.map(|(value, _)| facts::ordinal(kind, value)).collect();
    let known = facts.order.as_ref().expect("an order").constants.values().copied().collect::<Vec<usize>>();
    assert_eq!(attacker.in_common((of.layout, of.column)).concat(), known, "{whose}");
    let asked = &attacker.asked[&(of.layout, of.column)];
    // Of each label that was shown: what its block is, and where it stands.
    let mut blocks: BTreeMap<&[u8], (u64, u8)> = BTreeMap::new();
    for (number, asked) in numbers.iter().zip(asked) {
        let shown = (0..).zip(asked.chunks_exact(17));
        blocks.extend(shown.map(|(at, block)| (&block[1..], (number >> (60 - 4 * at) & 15, block[0]))));
    }
    let blocks: Vec<(u64, u8)> = blocks.into_values().collect();
    let pairs = (0..blocks.len()).flat_map(|at| blocks[..at].iter().map(move |other| (at, other)));
    let alike: Vec<bool> =
        pairs.filter(|(at, other)| blocks[*at].0 == other.0).map(|(at, other)| blocks[at].1 == other.1).collect();
    let hits = alike.iter().filter(|is_hit| **is_hit).count();
    are_few(hits, alike.len() as f64 / 16.0, &format!("{whose}: equal blocks of questions stand at one place"));
}

/// No row is known by where it stands: at another cloud, after REFRESH, or by when it came.
fn places_say_nothing(attacker: &Attacker, whose: &str) {
    let rows = |rows: &[u64]| rows.iter().map(|row| row & ((1 << 40) - 1)).collect::<Vec<u64>>();
    for (at, (cloud, layout, own)) in attacker.batches.iter().enumerate() {
        let own = rows(own);
        let came: Vec<u64> = (0..own.len() as u64).collect();
        let others =
            attacker.batches[..at].iter().map(|(cloud, layout, other)| (format!("{cloud}, {layout}"), rows(other)));
        for (other, others) in others.chain([("when they came".to_owned(), came)]) {
            let what = format!("{whose}: places at {cloud}, {layout} and {other}");
            are_few(own.iter().zip(&others).filter(|(own, other)| own == other).count(), 1.0, &what);
            let stands: BTreeMap<u64, f64> = others.into_iter().zip((0..).map(f64::from)).collect();
            is_chance(&own.iter().map(|row| stands[row]).collect::<Vec<f64>>(), &what);
        }
    }
}

/// What values look like: numbers of eight bytes, as they are and as they are compared, digits, texts with and without what fills them up.
fn looks(values: &[Value]) -> BTreeSet<Vec<u8>> {
    let mut looks = BTreeSet::new();
    for value in values {
        match value {
            Value::Number(own) => {
                let own = *own as u64;
                looks.extend(
                    [own, own ^ 1 << 63]
                        .into_iter()
                        .flat_map(|own| [own.to_be_bytes(), own.to_le_bytes()])
                        .map(Vec::from),
                );
                looks.extend(Some(own.to_string().into_bytes()).filter(|digits| digits.len() > 7));
            }
            Value::String(own) => {
                looks.insert((0..8).map(|at| own.get(at).copied().unwrap_or(0)).collect());
            }
        }
    }
    looks
}

/// A coalition attacks; which codings gave it what is admitted.
fn attack(owner: &Owner, known: &Known, (whose, coalition): (&str, &[&str]), values: &[Value]) -> BTreeSet<Coding> {
    let declaration = owner.kept.declaration();
    let place = |cloud: &str| declaration.clouds.iter().position(|own| own == cloud).expect("a cloud");
    let views: Vec<_> =
        coalition.iter().map(|cloud| ((*cloud).to_owned(), place(cloud), owner.seen(cloud).events)).collect();
    let mut attacker = Attacker::new(&views, known, &owner.labels);
    assert_eq!(attacker.in_two().first(), None, "{whose}: in two columns");
    // Where one share would be the value all clouds have the same.
    if declaration.may_collude > 0 || coalition.len() == 1 {
        assert_eq!(attacker.near(1 << 20), 0, "{whose}: shares of one pad");
        attacker.put_together();
    }
    let looks = looks(values);
    assert_eq!(attacker.found(&looks), BTreeSet::new(), "{whose}: values as they are");
    places_say_nothing(&attacker, whose);
    let (facts, mut gave) = (facts(owner, coalition), BTreeSet::new());
    for held in &attacker.held {
        let facts = &facts[&held.of.layout][&held.of.column];
        let truths = held.strings.keys().map(|row| (*row, truth(&owner.lines[row][0]))).collect();
        let of = Admitted { facts, truths, whose: format!("{whose}: {:?} of {:?}", held.of, held.clouds) };
        recovers_no_more(held, &of);
        gave.extend(recovers_it(&attacker, held, &of, owner));
        if is_share(held.of.coding) {
            assert_eq!(held.same_differences(), 0, "{}: differences", of.whose);
        }
    }
    gave
}

/// All coalitions attack; which codings gave one of them what is admitted.
fn attacked(kind: Kind, draw: impl Fn(&mut Random, usize) -> Vec<Value>) -> BTreeSet<Coding> {
    let mut gave = BTreeSet::new();
    for (seed, shape) in (1..).zip(SHAPES) {
        let values = draw(&mut Random(seed.into()), if is_full() { 1000 } else { 160 });
        let (owner, known) = owner(seed, &declared(kind, shape), &values);
        for coalition in coalitions(&owner) {
            gave.extend(attack(&owner, &known, (&format!("{coalition:?} of {shape:?}"), &coalition), &values));
        }
    }
    gave
}

#[test]
fn an_order_that_lies_there_is_found() {
    let values = dense(&mut Random(1), 160);
    let facts = Facts::default();
    let of = Admitted {
        facts: &facts,
        truths: (0..).zip(values.iter().map(|value| truth(&Some(value.clone())))).collect(),
        whose: String::new(),
    };
    let coded = |code: fn(u64) -> [u8; 8]| -> Part {
        of.truths
            .iter()
            .map(|(row, truth)| (*row, code(truth.as_ref().expect("a number").0 as u64 * 3).to_vec()))
            .collect()
    };
    let found = |part: Part| orders(&part).map(|order| correlation(&of.ranks(&order)));
    assert!(found(coded(u64::to_be_bytes))[0] > 0.999 && found(coded(u64::to_le_bytes))[1] > 0.999);
    // By chance it is not.
    let [front, back] = found(coded(|own| Random(own).array()));
    assert!(front.abs() < 0.4 && back.abs() < 0.4, "{front} {back}");
}

#[test]
fn of_texts_of_which_few_are_frequent_no_more_is_found_than_is_admitted() {
    let gave = attacked(Kind::Text, texts);
    let all = [Coding::Cell, Coding::Piece(0), Coding::Tag, Coding::Prefix, Coding::Order, Coding::DangerOrder];
    assert!(all.iter().all(|coding| gave.contains(coding)), "{gave:?}");
}

#[test]
fn of_numbers_that_follow_one_another_no_more_is_found_than_is_admitted() {
    assert_eq!(attacked(NUMBER, dense), [Coding::Tag, Coding::Order, Coding::DangerOrder].into());
}

#[test]
fn of_ages_no_more_is_found_than_is_admitted() {
    assert_eq!(attacked(NUMBER, ages), [Coding::Tag, Coding::Order, Coding::DangerOrder].into());
}
