//! Pages that questions read, counted on a simulated part: what is chosen reads at most ten times as many as the better of indexes and
//! a scan.

use std::sync::Arc;

use counterfoil_flash_sim::{Dice, Part, Scenario, SimulatedDevice};
use counterfoil_log::{Counting, Layout, Media, NoPins, Settings, Writer, create};
use counterfoil_relation::{
    Access, Comparison, Condition, Constant, Function, NewColumn, NewForeignKey, NewIndex, NewKey, NewTable, NoScratch,
    Output, Place, Plan, Relations, RowBuilder, Source, Test, Type, ValueRef,
};
use counterfoil_vault::{DangerFixedEntropy, DatabaseId, MemoryCounter, Suite, Vault, VolumeKey};

use crate::bench::rounds;

/// Opened pages that are kept: four.
const CACHE: usize = 8 << 10;
const PAGE_BYTES: u32 = 2048;
const BUDGET: usize = 64 << 10;
const QUERIES: u32 = 200;
/// A choice may cost so many times the better of the two.
const RATIO_MAX: u64 = 10;

/// The tables of MILo-DB's section 7, those that are referenced first, with the part of T0's rows that each has.
const TABLES: [(&str, &[&str], u64); 6] = [
    ("t2", &[], 100),
    ("t4", &[], 600),
    ("t5", &[], 30),
    ("t1", &["t2"], 10),
    ("t3", &["t4", "t5"], 8),
    ("t0", &["t1", "t3"], 1),
];
/// Columns with an index, and how many rows have the same value: one, ten, a hundred, a tenth and a half of the table.
const INDEXED: [&str; 5] = ["one", "ten", "hundred", "tenth", "half"];

struct Rig {
    device: SimulatedDevice,
    writer: Writer,
    relations: Relations,
    rows: u64,
}

fn rows_of(part: u64, rows: u64) -> u64 {
    (rows / part).max(10)
}

/// The value of a column that has `rows` of the table's `count` rows each.
fn value(column: usize, id: u64, count: u64) -> i64 {
    let mixed = (id.wrapping_mul(2_654_435_761) >> 7) % count;
    let same = [1, 10, 100, count.div_ceil(10), count.div_ceil(2)][column];
    (mixed / same) as i64
}

impl Rig {
    fn new(rows: u64) -> Rig {
        let device = SimulatedDevice::new(Part::file(PAGE_BYTES, 64, 1 << 12), Scenario::calm(1));
        let mut entropy = DangerFixedEntropy::seeded(1);
        let key = VolumeKey::generate(&mut entropy).unwrap();
        let id = DatabaseId::generate(&mut entropy).unwrap();
        let vault = Arc::new(Vault::new(&key, id, Suite::Aes256GcmSiv));
        let layout = Layout::new(&device.part().geometry, 64, 16).unwrap();
        let media = Media { reader: Arc::new(device.clone()), writer: Box::new(device.clone()) };
        let settings = Settings {
            counter: Some(Box::new(MemoryCounter::at(0, None))),
            counting: Counting::EveryCommit,
            pins: Box::new(NoPins),
            headers: None,
        };
        let writer = create(media, vault, layout, settings, &mut entropy, 0, CACHE).unwrap();
        let mut rig = Rig { device, writer, relations: Relations::with_fresh_rows(500).with_head_bytes(0), rows };
        TABLES.iter().for_each(|(name, references, part)| rig.fill(name, references, rows_of(*part, rows)));
        rig
    }

    fn fill(&mut self, name: &str, references: &[&str], count: u64) {
        let reference = |other: &&str| NewForeignKey {
            columns: vec![(*other).into()],
            parent: (*other).into(),
            ..NewForeignKey::default()
        };
        let columns = ["id"].iter().chain(references).chain(&INDEXED).chain(&["loose"]);
        let mut columns: Vec<_> = columns.map(|column| NewColumn::new(*column, Type::BigInt)).collect();
        // As wide as the paper's.
        columns.extend((0..8).map(|column| NewColumn::new(format!("pad{column}"), Type::BigInt)));
        self.writer.begin().unwrap();
        let new = NewTable {
            name: name.into(),
            columns,
            primary_key: Some(NewKey { name: None, columns: vec!["id".into()] }),
            foreign_keys: references.iter().map(reference).collect(),
            ..NewTable::default()
        };
        let mut table = self.relations.create_table(&mut self.writer, &new).unwrap();
        for column in INDEXED {
            let index = NewIndex { columns: vec![column.into()], ..NewIndex::default() };
            table = self.relations.create_index(&mut self.writer, &table, &index).unwrap();
        }
        self.writer.commit().unwrap();
        self.relations.committed(&self.writer);
        for first in (0..count).step_by(1000) {
            let mut batch = RowBuilder::new(table.layout());
            for id in first..(first + 1000).min(count) {
                let parent = |other: &&str| {
                    let (.., part) = TABLES.iter().find(|(name, ..)| name == other).unwrap();
                    ValueRef::BigInt((id.wrapping_mul(7919) % rows_of(*part, self.rows)) as i64)
                };
                let mut row = vec![ValueRef::BigInt(id as i64)];
                row.extend(references.iter().map(parent));
                row.extend((0..INDEXED.len()).map(|column| ValueRef::BigInt(value(column, id, count))));
                row.push(ValueRef::BigInt((id % 97) as i64));
                row.extend((0..8).map(|_| ValueRef::BigInt(id as i64)));
                batch.push(&row).unwrap();
            }
            let batch = batch.finish();
            self.writer.begin().unwrap();
            self.relations.insert(&mut self.writer, &table, &batch).unwrap();
            self.writer.commit().unwrap();
            self.relations.committed(&self.writer);
            self.writer.begin().unwrap();
            self.relations.maintain(&mut self.writer).unwrap();
            self.writer.commit().unwrap();
            self.relations.committed(&self.writer);
        }
    }

    /// The pages that a question reads, and what it answers.
    fn pages(&mut self, plan: &Plan, access: Access) -> (u64, Vec<String>, Vec<String>) {
        let plan = Plan { access, ..plan.clone() };
        self.pass_over("t3");
        let before = self.device.meters();
        let mut answer = self.relations.answer(self.writer.snapshot(), plan, BUDGET).unwrap();
        let mut rows = Vec::new();
        while let Some(batch) = answer.next(&self.relations, &mut NoScratch).unwrap() {
            for row in 0..batch.count() {
                rows.push(format!("{:?}", batch.image(row)));
            }
        }
        (self.device.meters().since(&before).reads, rows, answer.by().to_vec())
    }

    /// Reads a table whole, so that every way of asking begins with the same pages kept: the last ones of that table.
    fn pass_over(&mut self, name: &str) {
        let table = self.relations.table(&self.writer, name).unwrap().unwrap();
        let mut scan = self.relations.scan(self.writer.snapshot(), &table).unwrap();
        while scan.next(1000).unwrap().is_some() {}
    }

    /// A question over some of the tables, with tests of all selectivities, often under OR.
    fn question(&self, dice: &mut Dice) -> Plan {
        let table = |name: &str| self.relations.table(&self.writer, name).unwrap().unwrap();
        let root = table("t0");
        let mut sources = vec![Source { table: root.clone(), path: None, tests: Vec::new(), is_optional: false }];
        for (name, ..) in &TABLES[..5] {
            if dice.below(2) == 0 {
                let table = table(name);
                let path = root.joins.iter().position(|join| join.steps.last().is_some_and(|step| step.to == table.id));
                sources.push(Source { table, path, tests: Vec::new(), is_optional: dice.below(8) == 0 });
            }
        }
        let test = |dice: &mut Dice| {
            let source = dice.below(sources.len() as u64) as usize;
            (source, some_test(dice, &sources[source], self.rows))
        };
        let mut tests = Vec::new();
        let mut conditions = Vec::new();
        for _ in 0..1 + dice.below(3) {
            let (source, one) = test(dice);
            match dice.below(2) {
                0 => tests.push((source, one)),
                _ => {
                    let mut any = Condition::Of(source, one);
                    for _ in 0..1 + dice.below(2) {
                        let (source, other) = test(dice);
                        any = any.or(Condition::Of(source, other));
                    }
                    conditions.push(any);
                }
            }
        }
        tests.into_iter().for_each(|(source, test)| sources[source].tests.push(test));
        let column = Output::Column(Place { source: 0, column: 0 });
        let sum = Output::Aggregate(Function::Greatest, Place { source: sources.len() - 1, column: 0 });
        let (outputs, shown) = if dice.below(3) == 0 { (vec![Output::CountRows, sum], 2) } else { (vec![column], 1) };
        Plan { sources, conditions, outputs, shown, ..Plan::default() }
    }
}

fn some_test(dice: &mut Dice, source: &Source, rows: u64) -> Test {
    let part = TABLES.iter().find(|(name, ..)| *name == source.table.name).map_or(1, |(.., part)| *part);
    let count = rows_of(part, rows);
    let place = dice.below(INDEXED.len() as u64 + 1) as usize;
    let column = source.table.columns.iter().position(|column| column.name == "one").unwrap() + place;
    if place == INDEXED.len() {
        let constant = Constant::Whole(dice.below(97) as i64);
        return Test::Compare { column, comparison: Comparison::Equal, constant };
    }
    let mut constant = || Constant::Whole(value(place, dice.below(count), count));
    let constants = [constant(), constant(), constant()];
    let [one, other, _] = constants.clone();
    match dice.below(4) {
        0 => Test::In { column, constants: constants.to_vec() },
        1 => {
            let (Constant::Whole(low), Constant::Whole(width)) = (one, other) else { unreachable!("whole numbers") };
            let high = Constant::Whole(low + width % 50);
            let low = Constant::Whole(low);
            Test::All(vec![
                Test::Compare { column, comparison: Comparison::AtLeast, constant: low },
                Test::Compare { column, comparison: Comparison::AtMost, constant: high },
            ])
        }
        _ => Test::Compare { column, comparison: Comparison::Equal, constant: one },
    }
}

#[test]
fn what_is_chosen_reads_at_most_ten_times_the_pages_of_the_better_way() {
    let mut rig = Rig::new(rounds(4_000, 20_000));
    let (mut by_index, mut worst, mut sums) = (0, (0.0, String::new()), [0; 3]);
    let mut wrong = Vec::new();
    for seed in 0..QUERIES {
        let mut dice = Dice::new(u64::from(seed));
        let plan = rig.question(&mut dice);
        let (chosen, rows, by) = rig.pages(&plan, Access::Cheaper);
        let (indexed, same, by_force) = rig.pages(&plan, Access::Indexes);
        let (scanned, also, _) = rig.pages(&plan, Access::Scan);
        assert!(rows == same && rows == also, "seed {seed}: another answer, by {by:?} or {by_force:?}");
        by_index += usize::from(!by.is_empty());
        let better = indexed.min(scanned);
        let said = format!("seed {seed}: {chosen} pages by {by:?}, {indexed} by {by_force:?}, {scanned} by a scan");
        let ratio = chosen as f64 / better.max(1) as f64;
        if ratio > worst.0 {
            worst = (ratio, said.clone());
        }
        if chosen > RATIO_MAX * better.max(1) {
            wrong.push(said);
        }
        sums = [sums[0] + chosen, sums[1] + better, sums[2] + scanned];
    }
    println!("{by_index} of {QUERIES} by indexes; {sums:?} pages chosen, by the better way, by scans; {}", worst.1);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(by_index > QUERIES as usize / 4 && by_index < QUERIES as usize, "{by_index} by indexes");
    assert!(sums[0] < 2 * sums[1], "{sums:?}");
}
