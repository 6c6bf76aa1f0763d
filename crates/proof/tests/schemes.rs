//! The vectors of tables whose values or groups are signed, which were computed from SPEC.md by another program.

use std::collections::HashMap;

use counterfoil_proof::attributes::{Salt, leaf, root, salt};
use counterfoil_proof::record::{Kind, Stamp, link, message, value_message};
use counterfoil_proof::{
    Answer, Boundary, Column, Definition, Digest, End, FIRST_GROUP, Interval, Malformed, Member, Members, Position,
    Question, Row, Run, Salts, Scheme, Signature, Type, Value, group_message, member, member_stamp,
};

const SEED: Salt = [9; 16];

fn vectors() -> HashMap<&'static str, Vec<u8>> {
    let lines = include_str!("vectors/schemes.txt").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_once(" = ").expect("a vector")).map(|(name, hex)| (name, bytes(hex))).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hex")).collect()
}

fn signature() -> Signature {
    let hex = "a77b88e5f99e895903517dca9843674f6fe01390cdfce9bbe2d21bc94ca08dca1f5a16f502b7fe770d8fb658bad08e85";
    Signature::from_bytes(&bytes(hex)).expect("a signature")
}

fn definition(scheme: Scheme) -> Definition {
    let column = |name: &str, kind| Column { name: name.into(), kind };
    Definition {
        table: std::array::from_fn(|at| at as u8),
        name: "prices".into(),
        columns: vec![column("symbol", Type::Text), column("price", Type::Numeric(10, 2))],
        orders: vec![vec![0]],
        scheme,
        nodes: Vec::new(),
        filters: Vec::new(),
    }
}

fn values(price: i128) -> Vec<Value> {
    vec![Value::Text("AB".into()), Value::Numeric(price)]
}

fn encoded(definition: &Definition, values: &[Value]) -> Vec<Vec<u8>> {
    let encode = |(column, value): (&Column, &Value)| {
        let mut bytes = Vec::new();
        column.kind.encode(value, &mut bytes).expect("of this type");
        bytes
    };
    definition.columns.iter().zip(values).map(encode).collect()
}

/// The links of 300 and 301.
fn links(definition: &Definition) -> [Digest; 2] {
    let position = |rid, price| {
        let values = values(price);
        definition.position(0, |at| &values[usize::from(at)], rid).expect("a position")
    };
    let (first, second) = (position(300, -1234), position(301, 1234));
    [link(0, &first, Some(&Position::head()), Some(&second)), link(0, &second, Some(&first), Some(&Position::tail()))]
}

fn end(position: Position, rid: u64) -> End {
    let stamp = Stamp { rid, version: 4, period: 6 };
    End::Boundary(Boundary { position, outer: None, stamp, root: None, links: Vec::new() })
}

fn answer(question: &Question, rows: Vec<Row>, groups: Vec<Members>) -> Answer {
    let run = Run { left: end(Position::head(), 0), rows, right: end(Position::tail(), 1) };
    Answer { question: question.digest(), runs: vec![run], groups, signature: signature(), hints: None }
}

/// An answer has the vector's bytes, and nothing shorter or longer is one.
fn is(name: &str, definition: &Definition, question: &Question, answer: &Answer) {
    let vector = &vectors()[name];
    assert_eq!(&answer.to_bytes(definition, question).expect("bytes"), vector, "{name}");
    assert_eq!(Answer::from_bytes(vector, definition, question).as_ref(), Ok(answer), "{name}");
    for length in 0..vector.len() {
        assert!(Answer::from_bytes(&vector[..length], definition, question).is_err(), "{name}, {length}");
    }
    assert!(Answer::from_bytes(&[&vector[..], &[0]].concat(), definition, question).is_err(), "{name}");
}

#[test]
fn per_attribute_is_as_the_specification_says() {
    let vectors = vectors();
    let is_vector = |name: &str, bytes: &[u8]| assert_eq!(vectors[name], bytes, "{name}");
    let definition = definition(Scheme::PerAttribute);
    let digest = definition.digest();
    is_vector("attribute_definition", &definition.to_bytes());
    is_vector("attribute_digest", &digest);
    let stamp = Stamp { rid: 300, version: 2, period: 7 };
    let links = links(&definition);
    is_vector("attribute_record", &message(&digest, Kind::Record, &stamp, &links[..1], &[0; 32]).0);
    for (column, value) in (0..).zip(encoded(&definition, &values(-1234))) {
        let name = format!("attribute_value_{column}");
        is_vector(&name, &value_message(&digest, &stamp, column, &value).0);
    }
    let row = |stamp| Row {
        stamp,
        values: vec![Value::Text("AB".into())],
        salts: Salts::None,
        hidden: Vec::new(),
        links: Vec::new(),
    };
    let question = Question::new(&definition, 0, vec![Interval::all()], &[]).expect("a question");
    let rows = vec![row(stamp), row(Stamp { rid: 301, version: 1, period: 6 })];
    is("attribute_answer", &definition, &question, &answer(&question, rows, Vec::new()));
}

#[test]
fn groups_are_as_the_specification_says() {
    let vectors = vectors();
    let is_vector = |name: &str, bytes: &[u8]| assert_eq!(vectors[name], bytes, "{name}");
    let definition = definition(Scheme::Group(16));
    let digest = definition.digest();
    is_vector("group_definition", &definition.to_bytes());
    is_vector("group_digest", &digest);
    let links = links(&definition);
    let member_of = |at: usize, price| {
        let encoded = encoded(&definition, &values(price));
        let leaves: Vec<Digest> =
            (0..).zip(&encoded).map(|(column, value)| leaf(column, &salt(&SEED, column), value)).collect();
        member(&digest, 300 + at as u64, &links[at..=at], &root(&leaves))
    };
    let members = [member_of(0, -1234), member_of(1, 1234)];
    is_vector("member_300", &members[0]);
    is_vector("member_301", &members[1]);
    let stamp = Stamp { rid: FIRST_GROUP + 5, version: 3, period: 8 };
    is_vector("group_message", &group_message(&digest, &stamp, &members).0);
    let row = |rid, price| Row {
        stamp: member_stamp(rid),
        values: values(price),
        salts: Salts::Seed(SEED),
        hidden: Vec::new(),
        links: Vec::new(),
    };
    let question = Question::new(&definition, 0, vec![Interval::all()], &[1]).expect("a question");
    let one = vec![Members { stamp, list: vec![Member::Shown(300), Member::Hidden(members[1])] }];
    is("group_answer", &definition, &question, &answer(&question, vec![row(300, -1234)], one));
    let both = vec![Members { stamp, list: vec![Member::Shown(300), Member::Shown(301)] }];
    let rows = vec![row(300, -1234), row(301, 1234)];
    is("group_answer_of_both", &definition, &question, &answer(&question, rows, both));
}

#[test]
fn groups_that_cannot_be_are_not_read() {
    let definition = definition(Scheme::Group(2));
    let question = Question::new(&definition, 0, vec![Interval::all()], &[]).expect("a question");
    let group = |number: u64, members| {
        let stamp = Stamp { rid: number, version: 1, period: 1 };
        Members { stamp, list: vec![Member::Hidden([1; 32]); members] }
    };
    let read = |groups: Vec<Members>| -> Result<Answer, Malformed> {
        let answer = answer(&question, Vec::new(), groups);
        Answer::from_bytes(&answer.to_bytes(&definition, &question)?, &definition, &question)
    };
    assert!(read(vec![group(FIRST_GROUP, 2), group(FIRST_GROUP + 9, 1)]).is_ok());
    for (what, groups) in [
        ("one twice", vec![group(FIRST_GROUP, 1), group(FIRST_GROUP, 1)]),
        ("descending", vec![group(FIRST_GROUP + 1, 1), group(FIRST_GROUP, 1)]),
        ("more records than a group has", vec![group(FIRST_GROUP, 3)]),
        ("a node's number", vec![group(2 * FIRST_GROUP, 1)]),
        ("a record's number", vec![group(40, 1)]),
    ] {
        assert!(read(groups).is_err(), "{what}");
    }
    // A table without groups has no place for them.
    let plain = self::definition(Scheme::PerRecord);
    let question = Question::new(&plain, 0, vec![Interval::all()], &[]).expect("a question");
    let answer = answer(&question, Vec::new(), vec![group(FIRST_GROUP, 1)]);
    assert!(answer.to_bytes(&plain, &question).is_err());
}
