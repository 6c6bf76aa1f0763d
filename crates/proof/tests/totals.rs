//! The vectors of totals, which were computed from SPEC.md by another program.

use std::collections::{BTreeMap, HashMap};

use counterfoil_proof::attributes::{leaf, root, salt};
use counterfoil_proof::record::Stamp;
use counterfoil_proof::{
    Boundary, Column, Definition, Edge, End, FIRST_GROUP, Interval, Member, Members, Message, Node, NodesOf, Position,
    Row, Run, Salts, Scheme, SecretKey, Signature, Span, Summary, Tile, Totals, TotalsAnswer, TotalsQuestion, Type,
    Value, member_stamp,
};

fn vectors() -> HashMap<&'static str, Vec<u8>> {
    let lines = include_str!("vectors/totals.txt").lines().filter(|line| !line.starts_with('#'));
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
        orders: vec![vec![0]],
        scheme: Scheme::PerRecord,
        nodes: vec![NodesOf { order: 0, columns: vec![1] }],
        filters: Vec::new(),
    }
}

#[test]
fn every_layout_is_as_the_specification_says() {
    let vectors = vectors();
    let is = |name: &str, bytes: &[u8]| assert_eq!(vectors[name], bytes, "{name}");
    let definition = definition();
    is("definition", &definition.to_bytes());
    is("definition_digest", &definition.digest());
    let mut totals = Totals::none(&[Type::Numeric(10, 2)]);
    for price in [Value::Numeric(500), Value::Null, Value::Numeric(-1234)] {
        totals.add_row(&[Type::Numeric(10, 2)], [&price]).expect("a row");
    }
    let mut symbol = Vec::new();
    Type::Text.encode(&Value::Text("AB\0".into()), &mut symbol).expect("a text");
    let position = Position::of(&symbol, 300).expect("a position");
    let part = Interval::new(Edge::first()..Edge::at(&position)).expect("a part");
    let stamp = Stamp { rid: counterfoil_proof::FIRST_NODE + 5, version: 2, period: 7 };
    let node = Node { order: 0, level: 1, part, totals: totals.clone() };
    let digest = definition.digest();
    is("message", &node.message(&definition, &digest, &stamp).expect("a message").0);
    let interval = Interval::new(Edge::before(&symbol)..Edge::last()).expect("an interval");
    let question = TotalsQuestion::new(&definition, 0, vec![interval], 1).expect("a question").hinted();
    is("question", &question.to_bytes());
    is("question_digest", &question.digest());
    let changed = vec![300, stamp.rid];
    let (before, contents, finals) = ([3; 32], [4; 32], BTreeMap::new());
    let summary =
        Summary { definition: digest, period: 7, before, ended: 1_700_000_000_000, contents, changed, finals };
    is("summary_digest", &summary.digest());
    let tile = Tile { stamp, level: 1, end: vec![2], totals };
    let signature = SecretKey::from_entropy(&[7; 32]).expect("a key").sign(&Message([1; 32]));
    let intervals = vec![vec![Span::Tile(tile)]];
    let answer = TotalsAnswer { question: question.digest(), intervals, groups: Vec::new(), signature, hints: None };
    let bytes = answer.to_bytes(&definition, &question).expect("an answer");
    is("answer", &bytes[..bytes.len() - 49]);
    assert_eq!(TotalsAnswer::from_bytes(&bytes, &definition, &question), Ok(answer));
    assert!(vectors["message"].len() == 32 && bytes.ends_with(&[&signature.to_bytes()[..], &[0]].concat()));
    assert!(vectors["answer"].ends_with(&vectors["totals"]));
}

/// A run of the row 300 (AB, -12.34) between the head and 301 (AC, 12.34).
fn run(definition: &Definition) -> Run {
    let (is_grouped, seed) = (matches!(definition.scheme, Scheme::Group(_)), [9; 16]);
    let is_salted = definition.scheme != Scheme::PerAttribute;
    let stamp = |rid, version, period| {
        if is_grouped { member_stamp(rid) } else { Stamp { rid, version, period } }
    };
    let values = |symbol: &str, price| [Value::Text(symbol.into()), Value::Numeric(price)];
    let leaves: Vec<_> = (0..)
        .zip(values("AC", 1234))
        .map(|(column, value)| leaf(column, &salt(&seed, column), &encoded(definition, column, &value)))
        .collect();
    let end =
        |position, outer, stamp, root| End::Boundary(Boundary { position, outer, stamp, root, links: Vec::new() });
    let behind = Position::of(&encoded(definition, 0, &Value::Text("AC".into())), 301).expect("a position");
    let row = Row {
        stamp: stamp(300, 2, 7),
        values: values("AB", -1234).into(),
        salts: if is_salted { Salts::Seed(seed) } else { Salts::None },
        hidden: Vec::new(),
        links: Vec::new(),
    };
    Run {
        left: end(Position::head(), None, Stamp { rid: 0, version: 4, period: 6 }, None),
        rows: vec![row],
        right: end(behind, Some(Position::tail()), stamp(301, 1, 6), is_salted.then(|| root(&leaves))),
    }
}

fn encoded(definition: &Definition, column: u16, value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    definition.columns[usize::from(column)].kind.encode(value, &mut bytes).expect("of this type");
    bytes
}

/// The first one of signatures.txt, which is none of these answers': they are bytes to be read and written.
fn signature() -> Signature {
    let line = include_str!("vectors/signatures.txt").lines().find_map(|line| line.strip_prefix("signature "));
    let hex = line.expect("a signature");
    let bytes = (0..48).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hex"));
    Signature::from_bytes(&bytes.collect::<Vec<_>>()).expect("a signature")
}

#[test]
fn answers_of_totals_are_as_the_specification_says_in_every_scheme() {
    let vectors = vectors();
    for (name, scheme) in [("attribute", Scheme::PerAttribute), ("group", Scheme::Group(16))] {
        let definition = Definition { scheme, ..definition() };
        let symbol = |text: &str| encoded(&definition, 0, &Value::Text(text.into()));
        let interval = Interval::new(Edge::before(&symbol("AB"))..Edge::last()).expect("an interval");
        let question = TotalsQuestion::new(&definition, 0, vec![interval], 1).expect("a question");
        assert_eq!(question.to_bytes(), vectors[&format!("{name}_question")[..]], "{name}");
        let mut totals = Totals::none(&[Type::Numeric(10, 2)]);
        totals.add_row(&[Type::Numeric(10, 2)], [&Value::Numeric(1234)]).expect("a row");
        let stamp = Stamp { rid: counterfoil_proof::FIRST_NODE + 5, version: 2, period: 7 };
        let tile = Tile { stamp, level: 1, end: Edge::last().bytes().to_vec(), totals };
        let rows = Span::Rows(Edge::before(&symbol("AC")).bytes().to_vec(), Box::new(run(&definition)));
        let list = vec![Member::Shown(300), Member::Hidden([7; 32]), Member::Shown(301)];
        let group = Members { stamp: Stamp { rid: FIRST_GROUP + 5, version: 3, period: 8 }, list };
        let answer = TotalsAnswer {
            question: question.digest(),
            intervals: vec![vec![rows, Span::Tile(tile)]],
            groups: if scheme == Scheme::Group(16) { vec![group] } else { Vec::new() },
            signature: signature(),
            hints: None,
        };
        let vector = &vectors[&format!("{name}_answer")[..]];
        assert_eq!(&answer.to_bytes(&definition, &question).expect("bytes"), vector, "{name}");
        assert_eq!(TotalsAnswer::from_bytes(vector, &definition, &question).as_ref(), Ok(&answer), "{name}");
        for length in 0..vector.len() {
            assert!(TotalsAnswer::from_bytes(&vector[..length], &definition, &question).is_err(), "{name}, {length}");
        }
    }
}

/// Bytes of a definition with something behind its scheme, in the place of its nodes.
fn manifest_of(nodes: &[u8]) -> Result<Vec<NodesOf>, &'static str> {
    use counterfoil_proof::{Manifest, Owner, SigningKey, TrustedManifest};
    let [root, signing] = [[5; 32], [6; 32]].map(|entropy| SecretKey::from_entropy(&entropy).expect("a key"));
    let key = SigningKey { key: signing.public(), from_period: 0, until_period: 9, expires: 9 };
    let manifest = Manifest {
        definition: definition(),
        serial: 1,
        issued: 1,
        every: 0,
        renew: 0,
        max_age: 9,
        roots: vec![root.public()],
        keys: vec![key],
    };
    let served = manifest.sign(&[&root, &signing]).expect("a manifest");
    // The nodes are the last six bytes of the definition, which stands behind the lengths of the body and its own.
    let own = definition().to_bytes();
    let at = served.windows(own.len()).position(|window| window == own).expect("a definition");
    let mut body = vec![1];
    body.extend_from_slice(&[(own.len() - 6 + nodes.len()) as u8]);
    body.extend_from_slice(&own[..own.len() - 6]);
    body.extend_from_slice(nodes);
    body.extend_from_slice(&served[at + own.len()..served.len() - 96]);
    let mut domain = vec![22];
    domain.extend_from_slice(b"counterfoil/manifest/1");
    domain.extend_from_slice(&body);
    let message = Message(sha256(&domain));
    let mut forged = Vec::new();
    let mut length = body.len();
    while length >= 0x80 {
        forged.push(length as u8 | 0x80);
        length >>= 7;
    }
    forged.push(length as u8);
    forged.extend_from_slice(&body);
    forged.extend_from_slice(&root.sign(&message).to_bytes());
    forged.extend_from_slice(&signing.sign(&message).to_bytes());
    let checked = TrustedManifest::check(&forged, &Owner::of(&root.public()), 0);
    checked.map(|manifest| manifest.manifest().definition.nodes.clone()).map_err(|refusal| refusal.word())
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).into()
}

#[test]
fn definitions_have_one_encoding_even_if_their_owner_signs_another() {
    assert_eq!(manifest_of(&[4, 4, 1, 0, 1, 1]), Ok(vec![NodesOf { order: 0, columns: vec![1] }]));
    assert_eq!(manifest_of(&[4, 3, 1, 0, 0]), Ok(vec![NodesOf { order: 0, columns: vec![] }]), "rows are counted");
    assert_eq!(manifest_of(&[]), Ok(vec![]), "no nodes");
    for wrong in [
        &[4, 1, 0][..],                        // a list of none
        &[4, 3, 1, 1, 0],                      // an order that is not there
        &[4, 4, 1, 0, 1, 0],                   // a text has no totals
        &[4, 4, 1, 0, 1, 2],                   // a column that is not there
        &[4, 5, 1, 0, 2, 1, 1],                // a column twice
        &[4, 5, 2, 0, 0, 0, 0],                // an order twice
        &[4, 5, 1, 0, 1, 1, 0],                // a byte behind the end
        &[4, 4, 1, 0, 1, 1, 4, 4, 1, 0, 1, 1], // the part twice
        &[9, 1, 0],                            // a part of a later version
    ] {
        assert_eq!(manifest_of(wrong), Err("malformed"), "{wrong:?}");
    }
}
