//! What clouds see, held against what they are said to learn: the whole view of each coalition, every message in it.
//!
//! No proof, but a test that can fail: for each promise there is a planted fault that breaks it (`planted/disperse-*`).

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use counterfoil_disperse::coding::field::Element;
use counterfoil_disperse::coding::shares::interpolate;
use counterfoil_disperse::fragments::{Data, Fragments, Name, Question, Test};
use counterfoil_disperse::{
    Asking, Coder, Condition, Declaration, Epoch, Goal, Patient, Placement, Provider, Report, Secret, State, Table,
    Value,
};

use crate::clouds::{ID, NAME, NOTE, Person, SALARY, columns, declaration, in_order};
use crate::watching::{Event, Seen, Watching};

/// What each cloud has seen after people were put there, read, looked for and added up.
fn views(secret: u8, people: &[Person], asked: &Person) -> Vec<Seen> {
    views_of((3, 1, 1), secret, people, asked)
}

/// What clouds see of a table of so many, of which so many may fail and collude.
fn views_of(
    (count, may_fail, may_collude): (usize, usize, usize),
    secret: u8,
    people: &[Person],
    asked: &Person,
) -> Vec<Seen> {
    views_of_declared(declaration(count, may_fail, may_collude), secret, people, asked)
}

fn views_of_declared(declaration: Declaration, secret: u8, people: &[Person], asked: &Person) -> Vec<Seen> {
    let count = declaration.clouds.len();
    let coder =
        Coder::new(declaration.clone(), Placement::plan(&declaration).expect("a placement"), Secret::new([secret; 32]));
    let clouds: Vec<Arc<Watching>> = (0..count).map(|_| Arc::default()).collect();
    let table = Table::new(coder, clouds.iter().map(|cloud| cloud.clone() as Arc<dyn Provider>).collect());
    let mut state = State::new(count);
    state.epochs.begin(0, Epoch([secret; 16]));
    let rows: Vec<u64> = (0..people.len() as u64).collect();
    state.leaving(rows.iter().copied());
    let columns = columns(people);
    let coded = table.code(&state, &rows, &columns).expect("rows");
    for cloud in 0..count {
        table.put(&state, cloud, &coded).expect("a cloud");
        state.arrived(cloud, &rows.iter().copied().collect());
    }
    state.settle(&rows.iter().copied().collect());
    let (report, asking) = (&mut Report::default(), Asking { state: &state, watch: &Patient, goal: Goal::Ordinary });
    let text = |text: &Option<String>| Value::String(text.clone().unwrap_or_default().into_bytes());
    let salary = Value::Number(i128::from(asked.2.unwrap_or(0)));
    let conditions = [
        Condition::Equal { column: ID, values: vec![Value::Number(i128::from(asked.0))] },
        Condition::Equal { column: NAME, values: vec![text(&asked.1)] },
        Condition::Range { column: SALARY, low: Some((salary, true)), high: None },
        Condition::Prefix { column: NAME, text: asked.1.clone().unwrap_or_default() },
    ];
    for condition in conditions {
        table.read(asking, &[ID, NAME, SALARY, NOTE], &[condition], report).expect("rows");
    }
    table.sum(asking, SALARY, &rows, report).expect("a sum");
    let seen = clouds.iter().enumerate().map(|(cloud, own)| by_row(table.coder(), &state, cloud, own.seen()));
    seen.collect()
}

/// A view with its rows in the order of their numbers, as whoever has the key can put them.
fn by_row(coder: &Coder, state: &State, cloud: usize, mut seen: Seen) -> Seen {
    for event in &mut seen.events {
        let Event::Put(_, put) = event else { continue };
        let row = |at: &usize| coder.row(&state.epochs, cloud, put.places[*at]).expect("a row");
        let mut order: Vec<usize> = (0..put.places.len()).collect();
        order.sort_by_key(row);
        *put = put.chosen(&order);
    }
    seen
}

/// People of whom nothing is equal that an index would show, and whose texts are of one class.
fn people(seed: i64) -> Vec<Person> {
    (0..40)
        .map(|at| {
            let id = at * 7919 + seed * 104_729;
            let name = format!("{}{seed}-{at:02}", ["ux", "vy", "wz", "xa"][at as usize % 4]);
            (id, Some(name), Some(at * 131 + seed * 1000), Some("n".repeat((at % 7 + seed) as usize)))
        })
        .collect()
}

fn strings(data: &Data) -> Vec<&[u8]> {
    match data {
        Data::Strings(strings) => strings.iter().collect(),
        Data::Shares(_) => Vec::new(),
    }
}

fn shares(data: &Data) -> &[u64] {
    match data {
        Data::Shares(shares) => shares,
        Data::Strings(_) => &[],
    }
}

/// All bytes that a cloud has been shown, in questions and in what was put there.
fn bytes(seen: &Seen) -> Vec<u8> {
    let mut bytes = Vec::new();
    let names = seen.questions().flat_map(|question| question.columns.iter().chain(&question.sums));
    let names = names
        .chain(seen.events.iter().map(Event::table))
        .chain(seen.put().flat_map(|put| put.columns.iter().map(|(name, _)| name)));
    names.for_each(|name| bytes.extend_from_slice(name.as_str().as_bytes()));
    for put in seen.put() {
        put.columns
            .iter()
            .for_each(|(_, data)| strings(data).iter().for_each(|string| bytes.extend_from_slice(string)));
    }
    for test in seen.questions().flat_map(|question| &question.tests) {
        bytes.extend_from_slice(test.column().as_str().as_bytes());
        match test {
            Test::Tagged { tags, .. } => tags.iter().for_each(|tag| bytes.extend_from_slice(tag)),
            Test::Compared { asked, .. } => bytes.extend_from_slice(&asked[..]),
            Test::Between { least, greatest, .. } => bytes.extend([least, greatest].into_iter().flatten()),
        }
    }
    bytes
}

#[test]
fn no_value_and_no_name_is_in_what_clouds_see() {
    let people = people(3);
    for seen in views(1, &people, &people[5]) {
        let bytes = bytes(&seen);
        let contains = |wanted: &[u8]| bytes.windows(wanted.len()).any(|window| window == wanted);
        for text in ["salary", "people", "name", "note", "id\0", "vy3-05", "nnn", "wz3-06"] {
            assert!(!contains(text.as_bytes()), "{text}");
        }
        for (id, _, salary, _) in &people {
            assert!(!contains(&id.to_be_bytes()) && !contains(&salary.expect("a salary").to_be_bytes()));
        }
        // Names are what names look like, and no two clouds use the same.
        assert!(seen.put().flat_map(|put| &put.columns).all(|(name, _)| Name::parse(name.as_str()).is_some()));
    }
    let names: Vec<Name> = views(1, &people, &people[5]).iter().map(|seen| seen.events[0].table().clone()).collect();
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), 3);
}

#[test]
fn nothing_is_hidden_twice_in_the_same_way() {
    // Everybody is the same person, and two columns have the same numbers: what is equal in a view is what its codings admit.
    let same: Vec<Person> = (0..50).map(|_| (77, Some("Ada".into()), Some(77), Some("Ada".into()))).collect();
    let views = views(2, &same, &same[0]);
    let (mut cells, mut all_shares) = (HashSet::new(), HashSet::new());
    let mut by_tag: BTreeMap<Vec<u8>, HashSet<(usize, Name)>> = BTreeMap::new();
    for (cloud, seen) in views.iter().enumerate() {
        let mut own_cells: Vec<(Name, Vec<Vec<u8>>)> = Vec::new();
        for (name, data) in seen.put().flat_map(|put| &put.columns) {
            for string in strings(data).into_iter().filter(|string| string.len() == 16) {
                by_tag.entry(string.to_vec()).or_default().insert((cloud, name.clone()));
            }
            // Tags are 16 bytes and prefixes 96; cells of a value of one class 32, codes of an order 80.
            let sealed: Vec<Vec<u8>> =
                strings(data).into_iter().filter(|of| matches!(of.len(), 32 | 80)).map(<[u8]>::to_vec).collect();
            own_cells.push((name.clone(), sealed));
            for share in shares(data) {
                // Each limb and presence of each row is hidden by numbers of its own, at each cloud others.
                assert!(all_shares.insert(*share), "a share comes twice");
                assert!(*share != 77 && *share != 1, "a share is the value");
            }
        }
        for (name, sealed) in own_cells {
            let distinct: HashSet<&Vec<u8>> = sealed.iter().collect();
            assert_eq!(distinct.len(), sealed.len(), "equal values of {} are sealed alike", name.as_str());
            // Nor is the beginning the same: that is what one key stream for two values would show.
            let beginnings: HashSet<&[u8]> = sealed.iter().map(|cell| &cell[..8]).collect();
            assert_eq!(beginnings.len(), sealed.len());
            cells.extend(sealed);
        }
    }
    assert!(!cells.is_empty() && !all_shares.is_empty());
    // One tag for each column that has some, whatever other columns hold; its copies are the same at all clouds that have it.
    for holders in by_tag.values() {
        let at_one_cloud: HashSet<usize> = holders.iter().map(|(cloud, _)| *cloud).collect();
        assert_eq!(at_one_cloud.len(), holders.len(), "two columns of a cloud share a tag");
    }
}

#[test]
fn fewer_shares_than_the_threshold_are_noise() {
    // Of a million and of nought the shares of one cloud look alike: each bit is set about as often.
    let of = |salary: i64| -> Vec<Person> { (0..600).map(|id| (id, None, Some(salary), None)).collect() };
    // Where one share would be the value all clouds have it under one pad: noise at each, and at both together.
    for (salary, shape) in [(0, (3, 1, 1)), (1_000_000, (3, 1, 1)), (0, (1, 0, 0)), (1_000_000, (2, 1, 0))] {
        for (cloud, seen) in views_of(shape, 5, &of(salary), &(0, None, None, None)).iter().enumerate() {
            for (_, data) in seen.put().flat_map(|put| &put.columns) {
                let shares = shares(data);
                for bit in (0..61).filter(|_| !shares.is_empty()) {
                    let set = shares.iter().filter(|share| **share >> bit & 1 == 1).count();
                    // Six standard deviations of 12.
                    assert!((226..374).contains(&set), "bit {bit} at cloud {cloud} of {salary}: {set}");
                }
            }
        }
    }
    let [one, other] = &views_of((2, 1, 0), 5, &of(7), &(0, None, None, None))[..] else { panic!("two clouds") };
    let all = |seen: &Seen| -> Vec<u64> {
        let data = seen.put().flat_map(|put| &put.columns);
        data.flat_map(|(_, data)| shares(data).to_vec()).collect()
    };
    assert_eq!(all(one), all(other), "two that differ could be taken from one another");
}

/// Whether strings of a column as they were put are in the order of salaries, which rise with each person.
fn are_in_order(views: &[Seen]) -> bool {
    let columns = views.iter().flat_map(Seen::put).flat_map(|put| &put.columns);
    let is_in_order = |strings: &[&[u8]]| !strings.is_empty() && strings.windows(2).all(|pair| pair[0] < pair[1]);
    columns.into_iter().any(|(_, data)| is_in_order(&strings(data)))
}

#[test]
fn order_lies_there_only_where_somebody_said_danger() {
    let people = people(3);
    assert!(!are_in_order(&views(1, &people, &people[5])));
    let danger = views_of_declared(in_order(declaration(3, 1, 1)), 1, &people, &people[5]);
    assert!(are_in_order(&danger));
    // Everything else is as it was, and the numbers themselves are not there either.
    for seen in &danger {
        let bytes = bytes(seen);
        for (_, _, salary, _) in &people {
            let salary = salary.expect("a salary").to_be_bytes();
            assert!(!bytes.windows(8).any(|window| window == salary));
        }
    }
}

#[test]
fn whoever_asks_for_some_rows_names_them_and_no_others() {
    let (declaration, people) = (declaration(3, 1, 1), people(3));
    let placement = Placement::plan(&declaration).expect("a placement");
    let clouds: Vec<Arc<Watching>> = (0..3).map(|_| Arc::default()).collect();
    let coder = Coder::new(declaration, placement, Secret::new([1; 32]));
    let table = Table::new(coder, clouds.iter().map(|cloud| cloud.clone() as Arc<dyn Provider>).collect());
    let mut state = State::new(3);
    state.epochs.begin(0, Epoch([1; 16]));
    let (rows, columns) = ((0..people.len() as u64).collect::<Vec<u64>>(), columns(&people));
    state.leaving(rows.iter().copied());
    let coded = table.code(&state, &rows, &columns).expect("rows");
    for cloud in 0..3 {
        table.put(&state, cloud, &coded).expect("a cloud");
        state.arrived(cloud, &rows.iter().copied().collect());
    }
    state.settle(&rows.iter().copied().collect());
    // A change fetches the row that it is about; whoever wants nearly all is sooner given all.
    for (some, named) in [(7..8, Some(1)), (0..39, None)] {
        let state = state.of_some(&some.clone().collect());
        let asking = Asking { state: &state, watch: &Patient, goal: Goal::Ordinary };
        let found = table.read_rows(asking, &[NOTE], &state.live, &mut Report::default()).expect("rows");
        assert_eq!(found.rows, some.collect::<Vec<u64>>());
        let asked: Vec<Option<usize>> = clouds
            .iter()
            .flat_map(|cloud| cloud.take_seen().questions().cloned().collect::<Vec<_>>())
            .map(|question| question.places.map(|places| places.len()))
            .collect();
        assert_eq!(asked, [named]);
    }
}

/// All shares that a cloud was given in a column, the nth of those that have some, in the order of rows.
fn shares_of(seen: &Seen, nth: usize) -> Vec<u64> {
    let of_put = |put: &Fragments| {
        let mut columns = put.columns.iter().map(|(_, data)| shares(data)).filter(|shares| !shares.is_empty());
        columns.nth(nth).expect("a column of shares").to_vec()
    };
    seen.put().flat_map(of_put).collect()
}

#[test]
fn a_coalition_of_the_declared_size_puts_noise_together() {
    for shape @ (count, _, may_collude) in [(3, 1, 1), (4, 1, 2), (5, 2, 2)] {
        let people: Vec<Person> = (0..300).map(|id| (id, None, Some(7), None)).collect();
        let views = views_of(shape, 6, &people, &(0, None, None, None));
        for mask in (0..1_u32 << count).filter(|mask| mask.count_ones() as usize == may_collude) {
            let coalition: Vec<usize> = (0..count).filter(|cloud| mask >> cloud & 1 == 1).collect();
            // Of each row's salary, and of whether it has one.
            for (nth, value) in [(0, 7), (1, 1)] {
                let shares: Vec<Vec<u64>> = coalition.iter().map(|cloud| shares_of(&views[*cloud], nth)).collect();
                let put_together = |row: usize| {
                    let element = |number: u64| Element::reduce(u128::from(number));
                    let points = coalition.iter().zip(&shares);
                    let points: Vec<_> =
                        points.map(|(cloud, own)| (element(*cloud as u64 + 1), element(own[row]))).collect();
                    interpolate(&points).number()
                };
                let all: Vec<u64> = (0..people.len()).map(put_together).collect();
                assert!(all.iter().all(|own| *own != value), "{coalition:?} of {shape:?}");
                // Six standard deviations of 8.7 beside the half.
                let low = (0..60).map(|bit| all.iter().filter(|own| *own >> bit & 1 == 1).count());
                assert!(low.into_iter().all(|set| (98..202).contains(&set)), "{coalition:?} of {shape:?}");
            }
        }
    }
}

#[test]
fn columns_of_equal_values_have_tags_of_their_own() {
    let mut declaration = declaration(3, 1, 1);
    let operations = declaration.columns[usize::from(NAME)].operations;
    declaration.columns[usize::from(NOTE)].operations = operations;
    let same: Vec<Person> = (0..20).map(|id| (id, Some("Ada".into()), Some(7), Some("Ada".into()))).collect();
    let mut shared = 0;
    for seen in views_of_declared(declaration, 3, &same, &same[0]) {
        let mut columns: BTreeMap<&[u8], HashSet<&Name>> = BTreeMap::new();
        for (name, data) in seen.put().flat_map(|put| &put.columns) {
            for tag in strings(data).into_iter().filter(|string| string.len() == 16) {
                columns.entry(tag).or_default().insert(name);
            }
        }
        shared += usize::from(columns.len() > 1);
        assert!(columns.values().all(|names| names.len() == 1), "two columns of a cloud share a tag");
    }
    assert!(shared > 0, "a cloud holds tags of both");
}

/// The shape of a view: counts and sizes, and which strings of one column are equal.
fn shape(seen: &Seen) -> Vec<String> {
    let column = |(_, data): &(Name, Data)| {
        let (strings, mut known, mut equal) = (strings(data), BTreeMap::new(), Vec::new());
        for string in &strings {
            let next = known.len();
            equal.push(*known.entry(*string).or_insert(next));
        }
        let lengths: Vec<usize> = strings.iter().map(|string| string.len()).collect();
        format!("{} {lengths:?} {equal:?}", shares(data).len())
    };
    let put =
        seen.put().map(|put| format!("{} {:?}", put.places.len(), put.columns.iter().map(column).collect::<Vec<_>>()));
    let question = |of: &Question| {
        let tests: Vec<String> = of
            .tests
            .iter()
            .map(|test| match test {
                Test::Tagged { at, tags, .. } => format!("tags {at} {}", tags.len()),
                Test::Compared { allowed, .. } => format!("order {allowed:?}"),
                Test::Between { .. } => "between".to_owned(),
            })
            .collect();
        format!("{} {} {:?} {tests:?}", of.columns.len(), of.sums.len(), of.places.as_ref().map(Vec::len))
    };
    let answers = seen.answers.iter().map(|answer| format!("{} {}", answer.rows.places.len(), answer.added));
    put.chain(seen.questions().map(question)).chain(answers).collect()
}

#[test]
fn data_of_equal_leakage_have_views_of_equal_shape() {
    // Other ids, names, salaries and notes, other keys: the same equalities, prefixes, order of what is asked, and classes of lengths.
    let (one, other) = (people(1), people(2));
    let shapes = |secret, people: &[Person], asked| views(secret, people, asked).iter().map(shape).collect::<Vec<_>>();
    let first = shapes(8, &one, &one[20]);
    assert_eq!(first, shapes(9, &other, &other[20]));
    // And the shape is no constant: what is leaked shows in it.
    let mut equal = one.clone();
    equal[3].1 = one[7].1.clone();
    assert_ne!(first, shapes(8, &equal, &one[20]));
}
