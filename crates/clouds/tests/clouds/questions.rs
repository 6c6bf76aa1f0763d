//! Steps of telling and asking, for any two clouds that are to be alike.

use counterfoil_disperse::coding::orders::Orders;
use counterfoil_disperse::fragments::{Answer, Data, Fragments, Name, Question, Strings, Test};
use counterfoil_disperse::{Failure, Provider, Secret};
use proptest::prelude::*;

/// A table's name.
pub fn table(number: u8) -> Name {
    name(&format!("t{number:016x}"))
}

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

fn columns() -> [Name; 5] {
    ["c0000000000000001", "c0000000000000002", "c0000000000000003", "c0000000000000004", "c0000000000000005"].map(name)
}

fn orders() -> Orders {
    Orders::new(&Secret::new([9; 32]))
}

/// A code that is in order by itself.
fn in_order(number: u64) -> [u8; 12] {
    std::array::from_fn(|at| if at == 0 { number as u8 * 5 } else { at as u8 })
}

/// Tags, shares, codes of an order of both sorts, and cells of different lengths; every fifth has no code.
fn fragments(places: &[u64]) -> Fragments {
    let [tags, shares, codes, cells, ordered] = columns();
    let mut strings = [Strings::default(), Strings::default(), Strings::default(), Strings::default()];
    for place in places {
        strings[0].push(&[(place % 3) as u8; 16]);
        let code = orders().stored(*place, place % 50);
        strings[1].push(if place % 5 == 0 { &[] } else { &code });
        let code = in_order(place % 50);
        strings[3].push(if place % 5 == 0 { &[] } else { &code });
        strings[2].push(&place.to_be_bytes().repeat((place % 4) as usize));
    }
    let [first, second, third, fourth] = strings;
    let numbers = places.iter().map(|place| (place.wrapping_mul(0x9E37_79B9_7F4A_7C15)) % ((1 << 61) - 1)).collect();
    let columns = vec![
        (tags, Data::Strings(first)),
        (shares, Data::Shares(numbers)),
        (codes, Data::Strings(second)),
        (cells, Data::Strings(third)),
        (ordered, Data::Strings(fourth)),
    ];
    Fragments { places: places.to_vec(), columns }
}

/// What is told or asked.
#[derive(Clone, Debug)]
pub enum Step {
    Put(Vec<u64>),
    Remove(Vec<u64>),
    Ask {
        tags: Vec<u8>,
        order: Option<(u64, [bool; 3])>,
        between: Option<(u64, u64)>,
        places: Option<Vec<u64>>,
        sums: bool,
    },
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Places of 64 bits, few enough to meet again.
    let place = || (0_u64..40).prop_map(|place| place.wrapping_mul(0xFEDC_BA98_7654_3211));
    let places =
        move || prop::collection::btree_set(place(), 1..20).prop_map(|set| set.into_iter().collect::<Vec<u64>>());
    let order = prop::option::of((0_u64..50, any::<[bool; 3]>()));
    let between = prop::option::of((0_u64..50, 0_u64..50));
    let ask = (prop::collection::vec(0_u8..4, 0..3), order, between, prop::option::of(places()), any::<bool>());
    let step = prop_oneof![
        2 => places().prop_map(Step::Put),
        1 => places().prop_map(Step::Remove),
        4 => ask.prop_map(|(tags, order, between, places, sums)| Step::Ask { tags, order, between, places, sums }),
    ];
    prop::collection::vec(step, 1..20)
}

/// An answer in an order of its own: rows with their fragments, how many were added up, and the sum.
pub type Said = (Vec<(u64, Vec<Vec<u8>>)>, u64, u64);

fn question(step: &Step) -> Question {
    let Step::Ask { tags, order, between, places, sums } = step else { return Question::default() };
    let [tag, shares, code, cells, ordered] = columns();
    let mut tests = Vec::new();
    if !tags.is_empty() {
        let mut tags: Vec<[u8; 16]> = tags.iter().map(|tag| [*tag; 16]).collect();
        tags.sort_unstable();
        tests.push(Test::Tagged { column: tag.clone(), at: 0, tags });
    }
    if let Some((number, allowed)) = order {
        tests.push(Test::Compared { column: code, asked: Box::new(orders().asked(*number)), allowed: *allowed });
    }
    if let Some((least, greatest)) = between {
        tests.push(Test::Between { column: ordered, least: in_order(*least), greatest: in_order(*greatest) });
    }
    let places = places.clone();
    match sums {
        true => Question { sums: vec![shares], tests, places, ..Question::default() },
        false => Question { columns: vec![cells, shares, tag], tests, places, ..Question::default() },
    }
}

/// What a cloud answers to a step.
pub fn done(cloud: &dyn Provider, table: &Name, step: &Step) -> Result<Said, Failure> {
    match step {
        Step::Put(places) => cloud.put(table, &fragments(places))?,
        Step::Remove(places) => cloud.remove(table, places)?,
        Step::Ask { .. } => {}
    }
    let (mut rows, mut added, mut sum) = (Vec::new(), 0, 0_u128);
    cloud.ask(table, &question(step), &mut |answer: Answer| {
        assert!(answer.rows.is_even());
        for (at, place) in answer.rows.places.iter().enumerate() {
            let fragment = |(_, data): &(Name, Data)| match data {
                Data::Strings(strings) => strings.get(at).to_vec(),
                Data::Shares(shares) => shares[at].to_be_bytes().to_vec(),
            };
            rows.push((*place, answer.rows.columns.iter().map(fragment).collect()));
        }
        added += answer.added;
        sum += answer.sums.iter().map(|sum| u128::from(*sum)).sum::<u128>();
        Ok(())
    })?;
    rows.sort_unstable();
    Ok((rows, added, (sum % ((1 << 61) - 1)) as u64))
}
