//! The vectors of filters and questions about values, which were computed from SPEC.md by another program.

use std::collections::{BTreeMap, HashMap};

use counterfoil_proof::attributes::{Salt, leaf, root, salt};
use counterfoil_proof::bytes::{Reader, Writer};
use counterfoil_proof::record::Stamp;
use counterfoil_proof::{
    Column, Definition, FIRST_FILTER, FIRST_GROUP, Filter, FilterBits, Found, Item, Mark, Member, Members, Points,
    Position, Row, Salts, Scheme, Signature, Stretch, Summary, Type, Value, contents_root, member_stamp,
};

fn vectors() -> HashMap<&'static str, Vec<u8>> {
    let lines = include_str!("vectors/joined.txt").lines().filter(|line| !line.starts_with('#'));
    let bytes = |hex: &str| {
        (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hex")).collect()
    };
    lines.map(|line| line.split_once(" = ").expect("a vector")).map(|(name, hex)| (name, bytes(hex))).collect()
}

fn definition() -> Definition {
    let column = |name: &str, kind| Column { name: name.into(), kind };
    Definition {
        table: std::array::from_fn(|at| at as u8),
        name: "prices".into(),
        columns: vec![column("symbol", Type::Text), column("price", Type::Numeric(10, 2))],
        orders: vec![vec![0], vec![1]],
        scheme: Scheme::PerRecord,
        nodes: Vec::new(),
        filters: vec![0],
    }
}

fn encoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    Type::Text.encode(&Value::Text(text.into()), &mut bytes).expect("a text");
    bytes
}

#[test]
fn every_layout_is_as_the_specification_says() {
    let vectors = vectors();
    let is = |name: &str, bytes: &[u8]| assert_eq!(vectors[name], bytes, "{name}");
    let definition = definition();
    is("definition", &definition.to_bytes());
    is("definition_digest", &definition.digest());
    let (known, high) = (encoded("AB"), Filter::whole_domain().1);
    let bits = FilterBits::build(std::array::from_fn(|at| at as u8), &[&known, &encoded("CD")], 8);
    let filter = Filter::new(0, known.clone(), high, bits).expect("bounds");
    for (name, before) in [("filter", &[][..]), ("filter_behind_another", &known)] {
        let mut writer = Writer::default();
        filter.write(&mut writer, before);
        is(name, &writer.0);
        assert_eq!(Filter::read(&mut Reader::new(&writer.0, "a filter"), 0, before), Ok(filter.clone()));
    }
    is("filter_place", filter.place().bytes());
    let stamp = Stamp { rid: FIRST_FILTER + 5, version: 3, period: 7 };
    is("filter_message", &filter.message(&definition.digest(), &stamp).0);
    let points = Points::new(&definition, 0, vec![known, encoded("ZZ")], &[]).expect("a question").hinted();
    is("question", &points.to_bytes());
    is("question_digest", &points.digest());
    let summary = Summary {
        definition: definition.digest(),
        period: 7,
        before: [3; 32],
        ended: 1_700_000_000_000,
        contents: contents_root(vec![[2; 32], [1; 32]]),
        changed: vec![300, FIRST_FILTER + 5, FIRST_FILTER + 6],
        finals: BTreeMap::from([(FIRST_FILTER + 5, Some(3))]),
    };
    is("summary_digest", &summary.digest());
}

/// The table of schemes.txt, whose records are 300 (AB, -12.34) and 301 (AC, 12.34).
fn signed_by(scheme: Scheme) -> Definition {
    Definition { scheme, orders: vec![vec![0]], filters: Vec::new(), ..definition() }
}

const SEED: Salt = [9; 16];

/// An answer about AB: the head, the row 300, and the boundary 301.
fn answer(definition: &Definition, points: &Points) -> Found {
    let is_grouped = matches!(definition.scheme, Scheme::Group(_));
    let is_salted = definition.scheme != Scheme::PerAttribute;
    let stamp = |rid, version, period| {
        if is_grouped { member_stamp(rid) } else { Stamp { rid, version, period } }
    };
    let leaves = |symbol: &str, price| {
        let mut priced = Vec::new();
        Type::Numeric(10, 2).encode(&Value::Numeric(price), &mut priced).expect("a price");
        [leaf(0, &salt(&SEED, 0), &encoded(symbol)), leaf(1, &salt(&SEED, 1), &priced)]
    };
    let (before, behind) = (Position::head(), Position::of(&encoded("AC"), 301).expect("a position"));
    let end = Stamp { rid: 0, version: 4, period: 6 };
    let row = Row {
        stamp: stamp(300, 2, 7),
        values: vec![Value::Text("AB".into())],
        salts: if is_salted { Salts::Each(vec![salt(&SEED, 0)]) } else { Salts::None },
        hidden: if is_salted { vec![leaves("AB", -1234)[1]] } else { Vec::new() },
        links: Vec::new(),
    };
    let root = is_salted.then(|| root(&leaves("AC", 1234)));
    let items = vec![
        Item::Mark(Mark { position: before, stamp: end, root: None, links: Vec::new() }),
        Item::Row(row),
        Item::Mark(Mark { position: behind, stamp: stamp(301, 1, 6), root, links: Vec::new() }),
    ];
    let list = vec![Member::Shown(300), Member::Hidden([7; 32]), Member::Shown(301)];
    let group = Members { stamp: Stamp { rid: FIRST_GROUP + 5, version: 3, period: 8 }, list };
    Found {
        question: points.digest(),
        filters: Vec::new(),
        stretches: vec![Stretch { before: None, items, behind: Some(Position::tail()) }],
        groups: if is_grouped { vec![group] } else { Vec::new() },
        signature: signature(),
        hints: None,
    }
}

/// The first one of signatures.txt, which is none of these answers': they are bytes to be read and written.
fn signature() -> Signature {
    let line = include_str!("vectors/signatures.txt").lines().find_map(|line| line.strip_prefix("signature "));
    let hex = line.expect("a signature");
    let bytes = (0..48).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hex"));
    Signature::from_bytes(&bytes.collect::<Vec<_>>()).expect("a signature")
}

#[test]
fn answers_about_values_are_as_the_specification_says_in_every_scheme() {
    let vectors = vectors();
    for (name, scheme) in [("attribute", Scheme::PerAttribute), ("group", Scheme::Group(16))] {
        let definition = signed_by(scheme);
        let points = Points::new(&definition, 0, vec![encoded("AB")], &[]).expect("a question");
        assert_eq!(points.to_bytes(), vectors[&format!("{name}_question")[..]], "{name}");
        let (answer, vector) = (answer(&definition, &points), &vectors[&format!("{name}_answer")[..]]);
        assert_eq!(&answer.to_bytes(&definition, &points).expect("bytes"), vector, "{name}");
        assert_eq!(Found::from_bytes(vector, &definition, &points).as_ref(), Ok(&answer), "{name}");
        for length in 0..vector.len() {
            assert!(Found::from_bytes(&vector[..length], &definition, &points).is_err(), "{name}, {length}");
        }
    }
}

#[test]
fn a_filter_is_written_in_one_way() {
    let bits = || FilterBits::build([1; 16], &[], 8);
    let (low, high) = Filter::whole_domain();
    let filter = Filter::new(0, low.clone(), high.clone(), bits()).expect("bounds");
    let mut writer = Writer::default();
    filter.write(&mut writer, &[]);
    // A bound that the reader knows is not told again, and one that it does not know is.
    assert!(Filter::read(&mut Reader::new(&writer.0, "a filter"), 0, &low).is_err());
    let mut short = Writer::default();
    filter.write(&mut short, &low);
    assert!(Filter::read(&mut Reader::new(&short.0, "a filter"), 0, &[]).is_err());
    for (low, high) in [(&[1][..], &[1][..]), (&[0], &[2]), (&[1], &[3]), (&[2], &[2, 0]), (&[], &[2])] {
        assert!(Filter::new(0, low.to_vec(), high.to_vec(), bits()).is_err(), "{low:?} {high:?}");
    }
    assert!(Filter::new(0, low, vec![1; 1025], bits()).is_err());
}

#[test]
fn filters_are_of_orders_that_are_there_and_have_a_column() {
    let is_taken = |filters: &[u8], orders: &[Vec<u16>]| {
        let definition = Definition { filters: filters.to_vec(), orders: orders.to_vec(), ..definition() };
        definition.check().is_ok()
    };
    let orders = [vec![0], vec![], vec![1]];
    assert!(is_taken(&[0, 2], &orders) && is_taken(&[], &orders));
    for refused in [&[1][..], &[3], &[2, 0], &[0, 0]] {
        assert!(!is_taken(refused, &orders), "{refused:?}");
    }
}

#[test]
fn places_of_filters_sort_as_their_bounds_do() {
    let place = |value: &[u8]| Filter::place_of(value).expect("a place");
    let mut bounds =
        vec![vec![1], encoded(""), encoded("\0"), encoded("\0\0\0\0\0\0\0\0\0"), encoded("a"), encoded("aa")];
    bounds.extend([i64::MIN, -1, 0, 1, i64::MAX].map(|number| {
        let mut bytes = Vec::new();
        Type::BigInt.encode(&Value::Integer(number), &mut bytes).expect("a number");
        bytes
    }));
    // Of one type, and the domain's beginning before each.
    for of_type in [&bounds[..6], &[&bounds[..1], &bounds[6..]].concat()] {
        assert!(of_type.windows(2).all(|pair| place(&pair[0]) < place(&pair[1])));
    }
}
