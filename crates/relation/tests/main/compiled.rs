//! Compiled plans: they answer as what they were compiled from, the bytes are those of SPEC.md, and no bytes do harm.

use counterfoil_relation::{
    Cause, Comparison, Constant, Error, Function, Order, Output, PLAN_BYTES_MAX, Place, Plan, Scratch, Source, Test,
    Value,
};

use crate::bench::{Bench, rounds};
use crate::plans;

const SPEC: &str = include_str!("../../../../SPEC.md");
const BUDGET: usize = 1 << 20;

/// What has no room in memory.
#[derive(Default)]
struct Aside(Vec<u8>);

impl Scratch for Aside {
    fn append(&mut self, bytes: &[u8]) -> Result<u64, Error> {
        let start = self.0.len();
        self.0.extend_from_slice(bytes);
        Ok(start as u64)
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        buffer.copy_from_slice(&self.0[offset as usize..][..buffer.len()]);
        Ok(())
    }
}

fn answered(bench: &mut Bench, plan: Plan) -> Vec<Vec<Value>> {
    let view = bench.writer.snapshot();
    let mut answer = bench.relations.answer(view, plan, BUDGET).unwrap();
    let (mut rows, mut aside) = (Vec::new(), Aside::default());
    while let Some(batch) = answer.next(&bench.relations, &mut aside).unwrap() {
        rows.extend((0..batch.count()).map(|row| batch.row(row).unwrap()));
    }
    rows
}

/// The question of SPEC.md's vector: of `root` and the `near` that it joins, for each near.a from 2 on the count of rows and the
/// greatest root.b.
fn example(bench: &Bench) -> Plan {
    let (root, near) = (bench.table("root"), bench.table("near"));
    let place = |source, column| Place { source, column };
    let from_2 = Test::Compare { column: 2, comparison: Comparison::AtLeast, constant: Constant::Whole(2) };
    let not_null = Test::Null { column: 5, wanted: false };
    Plan {
        sources: vec![
            Source { table: root, path: None, tests: vec![not_null], is_optional: false },
            Source { table: near, path: Some(0), tests: vec![from_2], is_optional: false },
        ],
        outputs: vec![
            Output::Column(place(1, 2)),
            Output::CountRows,
            Output::Aggregate(Function::Greatest, place(0, 3)),
        ],
        having: vec![Test::Compare { column: 1, comparison: Comparison::Greater, constant: Constant::Whole(10) }],
        order: vec![Order { output: 0, is_descending: true, nulls_first: false }],
        limit: Some(5),
        shown: 3,
        ..Plan::default()
    }
}

#[test]
fn the_bytes_are_those_of_the_specification() {
    let bench = plans::populated(1);
    let bytes = example(&bench).compile().unwrap();
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(SPEC.contains(&format!("`{}`", hex.join(" "))), "SPEC.md does not have `{}`", hex.join(" "));
}

#[test]
fn compiled_plans_answer_as_what_they_were_compiled_from() {
    let mut bench = plans::populated(2);
    for round in 0..rounds(60, 2000) {
        let plan = if round == 0 { example(&bench) } else { plans::some_plan(&mut bench) };
        let bytes = plan.compile().unwrap();
        let compiled = bench.relations.compiled(&bench.writer, &bytes).unwrap();
        assert_eq!(compiled.compile().unwrap(), bytes);
        assert_eq!(answered(&mut bench, compiled), answered(&mut bench, plan));
    }
}

#[test]
fn bytes_from_anywhere_are_a_plan_or_a_typed_error() {
    let mut bench = plans::populated(3);
    let mut plans_found = 0;
    for _ in 0..rounds(3000, 100_000) {
        let plan = if bench.dice(4) == 0 { example(&bench) } else { plans::some_plan(&mut bench) };
        let mut bytes = plan.compile().unwrap();
        for _ in 0..=bench.dice(3) {
            let at = bench.dice(bytes.len() as u64) as usize;
            match bench.dice(4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, bench.dice(256) as u8),
                2 => bytes[at] = [0, 1, 0x7F, 0x80, 0xFF][bench.dice(5) as usize],
                _ => bytes[at] ^= 1 << bench.dice(8),
            }
            if bytes.is_empty() {
                break;
            }
        }
        match bench.relations.compiled(&bench.writer, &bytes).map_err(Error::into_cause) {
            Ok(plan) => {
                assert_eq!(plan.compile().unwrap(), bytes, "a plan has one encoding");
                plans_found += 1;
                // What was decoded can be asked, whatever it asks.
                let view = bench.writer.snapshot();
                let mut answer = bench.relations.answer(view, plan, BUDGET).unwrap();
                let mut aside = Aside::default();
                while answer.next(&bench.relations, &mut aside).unwrap().is_some() {}
            }
            Err(Cause::Misuse(_) | Cause::NotSupported(_)) => {}
            Err(cause) => panic!("{cause}"),
        }
    }
    assert!(plans_found > 100, "too few of the bytes were plans: {plans_found}");
}

#[test]
fn what_is_too_large_or_too_deep_is_refused() {
    let bench = plans::populated(4);
    let refused = |bytes: &[u8]| {
        matches!(bench.relations.compiled(&bench.writer, bytes).as_ref().map_err(Error::cause), Err(Cause::Misuse(_)))
    };
    let plan = example(&bench);
    let with = |test: Test| {
        let mut plan = plan.clone();
        plan.sources[0].tests = vec![test];
        plan.compile()
    };
    let nested = |depth: usize| (0..depth).fold(Test::Never, |test, _| Test::All(vec![test]));
    assert!(with(nested(8)).is_ok() && with(nested(9)).is_err());
    let list = |count: i64| Test::In { column: 0, constants: (0..count).map(Constant::Whole).collect() };
    assert!(with(list(240)).is_ok() && with(list(300)).is_err());
    let long = |bytes: usize| {
        let constant = Constant::Bytes(vec![b'x'; bytes]);
        Test::Compare { column: 5, comparison: Comparison::Equal, constant }
    };
    assert!(with(long(4000)).is_ok() && with(long(5000)).is_err());
    let other = Test::Compare { column: 0, comparison: Comparison::Equal, constant: Constant::Float(1.0) };
    assert!(with(other).is_err(), "a constant of another type");
    let bytes = plan.compile().unwrap();
    assert!(!refused(&bytes));
    assert!((0..bytes.len()).all(|end| refused(&bytes[..end])), "a plan has its end");
    assert!(refused(&[&bytes[..], &[0]].concat()) && refused(&vec![1; PLAN_BYTES_MAX + 1]) && refused(&[]));
    // A source with as many tests as a count can tell.
    assert!(refused(&[1, 1, 1, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F]));
}
