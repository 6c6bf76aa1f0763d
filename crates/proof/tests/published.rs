//! The vectors of published tables, which were computed from SPEC.md by another program.

use std::collections::{BTreeMap, HashMap};

use counterfoil_proof::attributes::{leaf, root, salt};
use counterfoil_proof::record::{Kind, Stamp, link, message};
use counterfoil_proof::{
    Column, Definition, Direction, Edge, Interval, Position, Question, Scheme, Summary, Type, Value, contents_root,
};

fn vectors() -> HashMap<&'static str, Vec<u8>> {
    let lines = include_str!("vectors/published.txt").lines().filter(|line| !line.starts_with('#'));
    let bytes = |hex: &str| {
        (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hex")).collect()
    };
    lines.map(|line| line.split_once(" = ").expect("a vector")).map(|(name, hex)| (name, bytes(hex))).collect()
}

#[test]
fn every_layout_is_as_the_specification_says() {
    let vectors = vectors();
    let is = |name: &str, bytes: &[u8]| assert_eq!(vectors[name], bytes, "{name}");
    let column = |name: &str, kind| Column { name: name.into(), kind };
    let mut table = [0; 16];
    (0..16).for_each(|at| table[usize::from(at)] = at);
    let definition = Definition {
        table,
        name: "prices".into(),
        columns: vec![column("symbol", Type::Text), column("price", Type::Numeric(10, 2))],
        orders: vec![vec![0]],
        scheme: Scheme::PerRecord,
        nodes: Vec::new(),
        filters: Vec::new(),
    };
    is("definition", &definition.to_bytes());
    is("definition_digest", &definition.digest());
    let values = [Value::Text("AB\0".into()), Value::Numeric(-1234)];
    let mut encoded = [Vec::new(), Vec::new()];
    for ((column, value), encoded) in definition.columns.iter().zip(&values).zip(&mut encoded) {
        column.kind.encode(value, encoded).expect("of this type");
    }
    is("symbol", &encoded[0]);
    is("price", &encoded[1]);
    let position = definition.position(0, |at| &values[usize::from(at)], 300).expect("a position");
    is("position", position.bytes());
    let seed = [9; 16];
    is("salt_0", &salt(&seed, 0));
    let leaves = [0, 1].map(|at| leaf(at, &salt(&seed, at), &encoded[usize::from(at)]));
    is("leaf_0", &leaves[0]);
    is("root", &root(&leaves));
    let own = link(0, &position, Some(&Position::head()), Some(&Position::tail()));
    is("link", &own);
    let stamp = Stamp { rid: 300, version: 2, period: 7 };
    is("message", &message(&definition.digest(), Kind::Record, &stamp, &[own], &root(&leaves)).0);
    let head = link(0, &Position::head(), None, Some(&position));
    let stamp = Stamp { rid: 0, ..stamp };
    is("head_message", &message(&definition.digest(), Kind::Head, &stamp, &[head], &[0; 32]).0);
    let interval = Interval::new(Edge::before(&encoded[0])..Edge::last()).expect("an interval");
    let question = Question::new(&definition, 0, vec![interval], &[]).expect("a question");
    let question = question.limited(5, Direction::Descending).expect("a limit").hinted();
    is("question", &question.to_bytes());
    is("question_digest", &question.digest());
    let contents = contents_root(vec![[2; 32], [1; 32]]);
    is("contents", &contents);
    let summary = Summary {
        definition: definition.digest(),
        period: 7,
        before: [3; 32],
        ended: 1_700_000_000_000,
        contents,
        changed: vec![300],
        finals: BTreeMap::from([(300, Some(2)), (305, None)]),
    };
    is("summary_digest", &summary.digest());
}
