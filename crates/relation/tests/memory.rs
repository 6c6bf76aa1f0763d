//! What a question takes of memory, counted by the allocator: never more than its budget.

#[allow(dead_code, reason = "the words of other tests")]
#[path = "main/bench.rs"]
mod bench;
#[allow(dead_code, reason = "the words of other tests")]
#[path = "main/plans.rs"]
mod plans;

use counterfoil_relation::{
    BUDGET_BYTES_MIN, Comparison, Constant, Error, Output, Place, Plan, Scratch, Source, Test, Value,
};
use peak_alloc::PeakAlloc;

use bench::{Bench, int, rounds, text};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// A medium of its own, which is no memory of the question's.
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

fn ask(bench: &mut Bench, plan: Plan, budget: usize, aside: &mut Aside) -> usize {
    let view = bench.writer.snapshot();
    aside.0.clear();
    let mut answer = bench.relations.answer(view, plan, budget).unwrap();
    let mut rows = 0;
    while let Some(batch) = answer.next(&bench.relations, aside).unwrap() {
        rows += batch.count();
    }
    rows
}

/// What a question takes.
fn taken(bench: &mut Bench, plan: &Plan, budget: usize, aside: &mut Aside) -> usize {
    // Pages that it reads are in the log's cache from then on, which is not its own.
    ask(bench, plan.clone(), budget, aside);
    let plan = plan.clone();
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    ask(bench, plan, budget, aside);
    MEMORY.peak_usage() - before
}

/// One test, because what is counted is the whole program's.
#[test]
fn no_question_takes_more_than_its_budget() {
    let mut bench = plans::populated(1);
    // Nothing is kept but pages, and those that are asked for are kept from the first time on.
    bench.relations = counterfoil_relation::Relations::with_fresh_rows(200).with_head_bytes(0);
    let mut aside = Aside(Vec::with_capacity(64 << 20));
    let budgets = [BUDGET_BYTES_MIN, 100_000, 256 << 10];
    let mut most = [0; 3];
    for _ in 0..rounds(100, 1000) {
        let plan = plans::some_plan(&mut bench);
        for (most, budget) in most.iter_mut().zip(budgets) {
            *most = taken(&mut bench, &plan, budget, &mut aside).max(*most);
        }
    }
    for (most, budget) in most.into_iter().zip(budgets) {
        assert!((budget / 4..=budget).contains(&most), "{most} bytes of {budget}");
    }
    long_texts(&mut bench, &mut aside);
    several_paths(&mut aside);
}

/// Rows that two paths name, of which windows are put aside.
fn several_paths(aside: &mut Aside) {
    let mut bench = plans::of_many(70_000);
    bench.relations = counterfoil_relation::Relations::with_fresh_rows(200).with_head_bytes(0);
    let (table, few) = (bench.table("many"), bench.table("few"));
    let some = |from: i64| {
        let tests = vec![Test::In { column: 0, constants: (from..from + 7).map(Constant::Whole).collect() }];
        Source { table: few.clone(), path: Some(0), tests, is_optional: false }
    };
    let many = Source { table, path: None, tests: Vec::new(), is_optional: false };
    let outputs = (0..3).map(|column| Output::Column(Place { source: 0, column })).collect();
    let plan = Plan { sources: vec![many, some(3), some(5)], shown: 3, outputs, ..Plan::default() };
    for budget in [BUDGET_BYTES_MIN, 36_000] {
        let taken = taken(&mut bench, &plan, budget, aside);
        assert!((budget / 4..=budget).contains(&taken) && aside.0.len() > 45_000, "{taken} bytes of {budget}");
    }
}

/// Rows with texts that only one of them has room for.
fn long_texts(bench: &mut Bench, aside: &mut Aside) {
    let note = "x".repeat(4_000);
    let row = |id: i32| {
        let parent = int(id % 300);
        vec![int(id), parent, Value::SmallInt(99), Value::Null, Value::Null, text(&note)]
    };
    bench.insert("root", &(3000..3030).map(row).collect::<Vec<_>>()).unwrap();
    let outputs: Vec<Output> = (0..6).map(|column| Output::Column(Place { source: 0, column })).collect();
    for column in [0, 2] {
        let (comparison, constant) = (Comparison::AtLeast, Constant::Whole([3000, 0, 99][column]));
        let tests = vec![Test::Compare { column, comparison, constant }];
        let sources = vec![Source { table: bench.table("root"), path: None, tests, is_optional: false }];
        let plan = Plan { sources, outputs: outputs.clone(), shown: 6, ..Plan::default() };
        assert_eq!(ask(bench, plan.clone(), BUDGET_BYTES_MIN, aside), 30);
        let taken = taken(bench, &plan, BUDGET_BYTES_MIN, aside);
        assert!(taken <= BUDGET_BYTES_MIN, "{taken} bytes");
    }
}
