//! A table against a map, through everything that can happen to it.

mod budget;
mod retention;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use proptest::prelude::*;

use crate::recompute;
use crate::{Batch, Kind, Limits, Options, Points, SeriesTables, Span, Summarized, TableNumber, Value};
use counterfoil_log::Memory;

const KINDS: [Kind; 2] = [Kind::Double, Kind::Integer];
pub(crate) const TABLE: TableNumber = TableNumber(7);
const LIMITS: Limits = Limits { late_points: 20, journal_bytes: 3000, open_bytes: 64 << 20 };

/// Value and quality of a point.
pub(crate) type Row = (Option<f64>, Option<i64>);
pub(crate) type Model = BTreeMap<(u32, i64), Row>;

/// Something that happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Points of a series, from a time on, so far apart.
    Insert {
        series: u32,
        from: i64,
        step: i64,
        count: usize,
        seed: u32,
    },
    /// Points of several series at once, in no order.
    Scatter {
        count: usize,
        seed: u32,
    },
    Delete {
        series: u32,
        from: i64,
        step: i64,
        count: usize,
    },
    Commit,
    RollBack,
    /// The process ends, and another one opens the database.
    Restart,
    Maintain,
    /// Everything before a time goes, with so many pages a call; once, or until nothing more can be given back.
    RetainFrom {
        time: i64,
        pages: u64,
        whole: bool,
    },
    DropOldest {
        pages: u64,
    },
    /// The medium wants so many of a hundred pages written anew.
    Relocate {
        percent: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0_u32..4, -500_i64..9000, 1_i64..9, 1_usize..400, any::<u32>())
            .prop_map(|(series, from, step, count, seed)| Step::Insert { series, from, step, count, seed }),
        3 => (1_usize..60, any::<u32>()).prop_map(|(count, seed)| Step::Scatter { count, seed }),
        2 => (0_u32..4, -500_i64..9000, 1_i64..4, 1_usize..300)
            .prop_map(|(series, from, step, count)| Step::Delete { series, from, step, count }),
        4 => Just(Step::Commit),
        1 => Just(Step::RollBack),
        1 => Just(Step::Restart),
        2 => Just(Step::Maintain),
        1 => (-600_i64..5000, 0_u64..60, any::<bool>())
            .prop_map(|(time, pages, whole)| Step::RetainFrom { time, pages, whole }),
        1 => (0_u64..40).prop_map(|pages| Step::DropOldest { pages }),
        1 => (1_usize..100).prop_map(|percent| Step::Relocate { percent }),
    ];
    prop::collection::vec(step, 1..40)
}

fn values(time: i64, seed: u32) -> Row {
    let noise = (time as u64 ^ u64::from(seed)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let value = match noise % 2003 {
        0 => f64::NAN,
        1 => f64::INFINITY,
        2 => f64::NEG_INFINITY,
        3 => -0.0,
        _ => (noise % 1000) as f64 / 8.0 - 20.0,
    };
    let value = (!noise.is_multiple_of(11)).then_some(value);
    // Eight bits that nothing makes fewer.
    let quality = (noise / 1024 % 64) as i64 + 192 * i64::from(!noise.is_multiple_of(5));
    (value, (noise % 13 != 1).then_some(quality))
}

pub(crate) struct House {
    limits: Limits,
    pub(crate) tables: SeriesTables,
    pub(crate) disk: Memory,
    /// As of the last commit.
    committed: (Memory, Model, i64),
    pub(crate) model: Model,
    /// What is before this is gone.
    oldest: i64,
}

impl House {
    fn with_pages(bytes: usize) -> House {
        House::with(bytes, 0)
    }

    /// So many columns have summaries.
    pub(crate) fn with(bytes: usize, summarized: u32) -> House {
        House::with_limits(bytes, summarized, LIMITS)
    }

    fn with_limits(bytes: usize, summarized: u32, limits: Limits) -> House {
        let tables = SeriesTables::with_limits(limits);
        let mut disk = Memory::default();
        disk.page_bytes = Some(bytes);
        let summarized = Summarized { columns: (0..summarized).collect(), quality: Some(1) };
        let options = Options { summarized, ..Options::default() };
        tables.create(&mut disk, TABLE, &KINDS, options).expect("made");
        let keys = [b"a", b"b", b"c", b"d"].map(|key| key.as_slice());
        assert_eq!(tables.number(&mut disk, TABLE, keys), Ok([0, 1, 2, 3].to_vec()));
        tables.committed(&disk);
        let committed = (disk.clone(), Model::new(), i64::MIN);
        House { limits, tables, committed, disk, model: Model::new(), oldest: i64::MIN }
    }

    pub(crate) fn insert(&mut self, rows: impl Iterator<Item = (u32, i64, u32)>) {
        let mut batch = Batch::new(&KINDS);
        for (series, time, seed) in rows {
            let (value, quality) = values(time, seed);
            batch.push(series, time, [value.map(Value::Double), quality.map(Value::Integer)]);
            if self.oldest <= time {
                self.model.insert((series, time), (value, quality));
            }
        }
        self.tables.insert(&mut self.disk, TABLE, &batch).expect("stored");
        self.check_budget();
    }

    /// Whether a change writes and frees pages for itself alone: else it may do so for the points it pushes out of the budget, and
    /// after a restart for all of them.
    fn is_unbounded(&self) -> bool {
        self.limits.open_bytes == LIMITS.open_bytes
    }

    fn check_budget(&self) {
        let open = self.tables.open_bytes();
        assert!(open <= self.limits.open_bytes, "{open} bytes are open of {}", self.limits.open_bytes);
    }

    /// Points of series 0 that the model does not know.
    fn insert_plain(&mut self, points: impl Iterator<Item = (i64, f64)>) {
        let mut batch = Batch::new(&KINDS);
        points.for_each(|(time, value)| batch.push(0, time, [Some(Value::Double(value)), Some(Value::Integer(192))]));
        self.tables.insert(&mut self.disk, TABLE, &batch).expect("stored");
    }

    pub(crate) fn run(&mut self, step: &Step) {
        match *step {
            Step::Insert { series, from, step, count, seed } => {
                self.insert((0..count as i64).map(|at| (series, from + at * step, seed)));
            }
            Step::Scatter { count, seed } => {
                let noise = |at: usize| (at as u64 + 1).wrapping_mul(u64::from(seed) | 1) >> 3;
                self.insert((0..count).map(|at| (noise(at) as u32 % 4, (noise(at) >> 2) as i64 % 12_000, seed)));
            }
            Step::Delete { series, from, step, count } => {
                let mut batch = Batch::new(&[]);
                for at in 0..count as i64 {
                    batch.push(series, from + at * step, []);
                    self.model.remove(&(series, from + at * step));
                }
                self.tables.delete(&mut self.disk, TABLE, &batch).expect("deleted");
                self.check_budget();
            }
            Step::Commit => {
                self.committed = (self.disk.clone(), self.model.clone(), self.oldest);
                self.tables.committed(&self.disk);
            }
            Step::RollBack => {
                (self.disk, self.model, self.oldest) = self.committed.clone();
                self.tables.rolled_back(&self.disk);
            }
            Step::Restart => {
                (self.disk, self.model, self.oldest) = self.committed.clone();
                self.tables = SeriesTables::with_limits(self.limits);
            }
            Step::Maintain => {
                self.run(&Step::Commit);
                if self.tables.maintain(&mut self.disk).expect("done") {
                    self.run(&Step::Commit);
                }
            }
            Step::RetainFrom { time, pages, whole } => self.retain_from(time, pages, whole),
            Step::DropOldest { pages } => self.drop_oldest(pages),
            Step::Relocate { percent } => self.relocate(percent),
        }
    }

    fn retain_from(&mut self, time: i64, pages: u64, whole: bool) {
        self.oldest = self.oldest.max(time);
        self.model.retain(|(_, at), _| time <= *at);
        for round in 0.. {
            let (before, written) = (self.disk.page_count() as u64, self.disk.pages_written);
            let dropped = self.tables.retain_from(&mut self.disk, TABLE, time, pages).expect("gone");
            let written = self.disk.pages_written - written;
            if self.is_unbounded() {
                assert_eq!(self.disk.page_count() as u64 + dropped.pages, before + written, "pages are counted");
                assert_eq!(dropped.written, written);
            }
            assert!(dropped.written <= written);
            assert!(dropped.pages <= pages.max(40) + 12, "{dropped:?} of {pages}");
            assert!(round < 10_000, "each call gets on");
            if !dropped.more || !whole {
                break;
            }
        }
        assert_eq!(self.tables.oldest(&self.disk, TABLE), Ok(self.oldest));
    }

    fn relocate(&mut self, percent: usize) {
        self.disk.relocate(percent);
        let before = self.disk.relocates_before;
        // Tables are asked that were used.
        let pool = self.tables.pool(&self.disk, TABLE).expect("there");
        for round in 0.. {
            self.run(&Step::Commit);
            if !self.tables.maintain(&mut self.disk).expect("done") {
                break;
            }
            assert!(round < 10_000, "each call gets on");
        }
        let left = counterfoil_log::Storage::pages_to_relocate(&self.disk, pool, 1);
        assert_eq!(left.map(|left| left.len()), Ok(0), "pages written before {before} have gone elsewhere");
        self.disk.relocates_before = 0;
        self.run(&Step::Commit);
    }

    fn drop_oldest(&mut self, pages: u64) {
        let before = self.disk.page_count() as u64;
        let dropped = self.tables.drop_oldest(&mut self.disk, TABLE, pages).expect("gone");
        let free = before.saturating_sub(self.disk.page_count() as u64);
        if self.is_unbounded() {
            assert!(free >= pages || !dropped.more, "{free} of {pages} pages: {dropped:?}");
            assert!(free <= pages + 40, "{free} pages for {pages}");
        }
        let before = |series: u32| dropped.series.iter().find(|(of, _)| *of == series).map(|(_, time)| *time);
        self.model.retain(|(series, time), _| before(*series).is_none_or(|before| before <= *time));
    }

    fn check(&self, view: &Memory, model: &Model, span: Span) {
        let mut scan = self.tables.scan(view.clone(), TABLE, None, span).expect("a scan");
        let mut found = Vec::new();
        while let Some(block) = scan.next().expect("a block") {
            for (at, time) in block.points.times.iter().enumerate() {
                let value = match block.points.columns[0].value(at) {
                    Some(Value::Double(value)) => Some(value),
                    _ => None,
                };
                let quality = match block.points.columns[1].value(at) {
                    Some(Value::Integer(quality)) => Some(quality),
                    _ => None,
                };
                found.push(((block.series, *time), (value, quality)));
            }
        }
        let wanted: Vec<_> =
            model.iter().filter(|((_, time), _)| span.contains(*time)).map(|(key, values)| (*key, *values)).collect();
        assert_eq!(found.len(), wanted.len());
        let bits = |rows: &[((u32, i64), Row)]| -> Vec<_> {
            rows.iter().map(|(key, row)| (*key, row.0.map(f64::to_bits), row.1)).collect()
        };
        assert!(bits(&found) == bits(&wanted), "points differ");
        self.check_columns(view, span);
        let pages = self.tables.pages(view, TABLE).expect("counted");
        assert_eq!(pages.iter().sum::<u64>(), view.page_count() as u64, "a page is nobody's");
        let (count, is_exact) = self.tables.count(view, TABLE).expect("counted");
        assert!(!is_exact || count == model.len() as u64, "{count} counted, {} there", model.len());
    }

    /// From its end backwards a span has the same points.
    fn check_backward(&self, view: &Memory, span: Span, all: &[(u32, Points)]) {
        for wanted in [&[0, 1][..], &[1], &[]] {
            let mut from = 0;
            for blocks in all.chunk_by(|one, other| one.0 == other.0) {
                let series = blocks[0].0;
                assert!(from <= series, "blocks of a series stand together");
                from = series + 1;
                let joined = |blocks: &mut dyn Iterator<Item = Points>| {
                    let mut joined = Points::new(&KINDS).select(wanted);
                    blocks.for_each(|points| joined.append(&points, 0..points.len()));
                    let mut bytes = Vec::new();
                    // So many as a leaf may have at most.
                    (0..joined.len()).step_by(1000).for_each(|at| {
                        joined.encode(at..joined.len().min(at + 1000), &mut bytes);
                    });
                    (joined.times, bytes)
                };
                let mut backward =
                    self.tables.backward(view.clone(), TABLE, series, span).expect("there").columns(wanted);
                let mut found = Vec::new();
                while let Some(block) = backward.next().expect("a block") {
                    assert!(block.series == series && !block.points.is_empty());
                    found.push(block.points);
                }
                let forward = joined(&mut blocks.iter().map(|(_, points)| points.clone().select(wanted)));
                assert!(joined(&mut found.into_iter().rev()) == forward, "backwards, columns {wanted:?} differ");
            }
        }
    }

    /// A scan of some columns gives what a scan of all has in them.
    fn check_columns(&self, view: &Memory, span: Span) {
        let blocks = |wanted: &[usize]| {
            let mut scan = self.tables.scan(view.clone(), TABLE, None, span).expect("a scan").columns(wanted);
            let mut blocks = Vec::new();
            while let Some(block) = scan.next().expect("a block") {
                blocks.push((block.series, block.points));
            }
            blocks
        };
        let bytes = |(series, points): &(u32, Points)| {
            let mut bytes = Vec::from(series.to_le_bytes());
            points.encode(0..points.len(), &mut bytes);
            bytes
        };
        let all = blocks(&[0, 1]);
        self.check_backward(view, span, &all);
        for wanted in [&[][..], &[0], &[1]] {
            let selected = all.iter().map(|(series, points)| (*series, points.clone().select(wanted)));
            let selected: Vec<_> = selected.map(|block| bytes(&block)).collect();
            assert!(blocks(wanted).iter().map(bytes).eq(selected), "columns {wanted:?} differ");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn a_table_is_a_map(
        steps in steps(),
        page_bytes in 256_usize..1400,
        first in -600_i64..9000,
        long in 0_i64..9000,
        open_bytes in prop_oneof![Just(1500_usize), Just(6000), Just(64 << 20)],
        summarized in 0_u32..3,
        width in prop::option::of(1_i64..3000),
    ) {
        let summarized = summarized.min(Summarized::columns_max(page_bytes) as u32);
        let mut house = House::with_limits(page_bytes, summarized, Limits { open_bytes, ..LIMITS });
        for step in &steps {
            house.run(step);
            house.check(&house.disk, &house.model, Span::ALL);
            house.check(&house.disk, &house.model, Span { first, last: first + long });
            recompute::check(&house.tables, &house.disk, &house.model, Span::ALL, width);
            recompute::check(&house.tables, &house.disk, &house.model, Span { first, last: first + long }, width);
            // Whoever reads an older commit meanwhile sees that.
            house.check(&house.committed.0, &house.committed.1, Span::ALL);
        }
    }
}

/// Levels of the tree of a series, with how many entries each has.
fn levels(house: &House) -> Vec<usize> {
    house.tables.levels(&house.disk, TABLE, 0).expect("there")
}

#[test]
fn a_tall_tree_takes_late_points_and_deletions() {
    let mut house = House::with_pages(256);
    for part in 0..60 {
        house.insert((0..5000).map(|at| (0, (part * 5000 + at) * 10, 1)));
        house.run(&Step::Maintain);
    }
    assert!(levels(&house).len() >= 2, "{:?}", levels(&house));
    // Ahead of everything, behind everything, everywhere between, and on top of what is there.
    house.insert((-50..0).map(|at| (0, at, 2)));
    house.insert((0..3000).map(|at| (0, at * 997 + 1, 3)));
    house.insert((0..3000).map(|at| (0, at * 990, 4)));
    house.run(&Step::Maintain);
    house.check(&house.disk, &house.model, Span::ALL);
    house.run(&Step::Delete { series: 0, from: 500_000, step: 1, count: 900_000 });
    house.run(&Step::Restart);
    house.run(&Step::Relocate { percent: 30 });
    house.check(&house.disk, &house.model, Span::ALL);
    house.run(&Step::Delete { series: 0, from: 600_000, step: 1, count: 900_000 });
    house.run(&Step::Relocate { percent: 90 });
    house.run(&Step::Commit);
    house.run(&Step::Restart);
    for span in [Span::ALL, Span { first: 599_999, last: 1_600_001 }, Span { first: 2_999_990, last: 5_000_000 }] {
        house.check(&house.disk, &house.model, span);
    }
}

#[test]
fn a_tree_of_three_levels_takes_late_points() {
    let (tables, mut disk) = (SeriesTables::with_limits(LIMITS), Memory::default());
    disk.page_bytes = Some(256);
    tables.create(&mut disk, TABLE, &[Kind::Text], Options::default()).expect("made");
    tables.number(&mut disk, TABLE, [&b"a"[..]]).expect("named");
    // Long texts: two points fill a leaf.
    let text = |time: i64, seed: i64| {
        let noise = (0..100_i64).map(|at| (time * 31 + at * 7919 + seed) as u8).collect::<Vec<_>>();
        crate::Text::from(noise)
    };
    let mut model = BTreeMap::new();
    let store = |disk: &mut Memory, model: &mut BTreeMap<i64, crate::Text>, times: &[i64], seed: i64| {
        for times in times.chunks(5000) {
            let mut batch = Batch::new(&[Kind::Text]);
            for time in times {
                batch.push(0, *time, [Some(Value::Text(text(*time, seed)))]);
                model.insert(*time, text(*time, seed));
            }
            tables.insert(disk, TABLE, &batch).expect("stored");
            tables.committed(disk);
            tables.maintain(disk).expect("kept");
            tables.committed(disk);
        }
    };
    // Times in which no rule is, so that few entries fill a node.
    let odd = |at: i64| at * 1_000_003 + (at.wrapping_mul(0x5851_F42D_4C95_7F2D) >> 44 & 0x7_FFFF);
    store(&mut disk, &mut model, &(0..60_000).map(odd).collect::<Vec<_>>(), 1);
    assert!(tables.levels(&disk, TABLE, 0).expect("there").len() >= 3);
    store(&mut disk, &mut model, &(0..500).map(|at| at * 119_300_007 - 40).collect::<Vec<_>>(), 2);
    let again = SeriesTables::with_limits(LIMITS);
    let mut scan = again.scan(disk.clone(), TABLE, None, Span::ALL).expect("a scan");
    let mut wanted = model.iter();
    while let Some(block) = scan.next().expect("a block") {
        for (at, time) in block.points.times.iter().enumerate() {
            let value = block.points.columns[0].value(at);
            assert!(wanted.next().is_some_and(|(key, text)| key == time && value == Some(Value::Text(text.clone()))));
        }
    }
    assert_eq!(wanted.next(), None);
}

#[test]
fn points_that_take_next_to_nothing_come_in_any_number_at_once() {
    // Just below what a leaf takes at most, at it and above.
    for count in [32_255, 32_500, 32_767, 32_768, 32_769, 40_000] {
        let mut house = House::with_pages(4072);
        house.insert_plain((0..count).map(|at| (at * 1000, 1.0)));
        house.insert_plain((count..count + 10).map(|at| (at * 1000, 1.0)));
        house.run(&Step::Commit);
        house.run(&Step::Restart);
        assert_eq!(house.tables.count(&house.disk, TABLE), Ok((count as u64 + 10, true)));
    }
}

#[test]
fn long_texts_of_many_series_fill_no_entry() {
    let (tables, mut disk) = (SeriesTables::with_limits(LIMITS), Memory::default());
    disk.page_bytes = Some(16_000);
    tables.create(&mut disk, TABLE, &[Kind::Text], Options::default()).expect("made");
    let keys: Vec<[u8; 4]> = (0..3000_u32).map(u32::to_le_bytes).collect();
    tables.number(&mut disk, TABLE, keys.iter().map(|key| key.as_slice())).expect("named");
    let mut batch = Batch::new(&[Kind::Text]);
    for series in 0..9000_u32 {
        let mut text = alloc::vec![0; 7900];
        text[..4].copy_from_slice(&series.to_le_bytes());
        batch.push(series % 3000, i64::from(series), [Some(Value::Text(text.into()))]);
    }
    tables.insert(&mut disk, TABLE, &batch).expect("stored");
    tables.committed(&disk);
    assert!(tables.maintain(&mut disk).expect("kept"));
    tables.committed(&disk);
    let again = SeriesTables::with_limits(LIMITS);
    assert_eq!(again.count(&disk, TABLE), Ok((9000, true)));
}

#[test]
fn pages_that_are_too_small_are_refused() {
    let (tables, mut disk) = (SeriesTables::new(), Memory::default());
    disk.page_bytes = Some(104);
    let made = tables.create(&mut disk, TABLE, &[Kind::Integer], Options::default());
    assert!(matches!(made, Err(crate::Error::Misuse(_))));
}

#[test]
fn ordered_points_write_each_page_once() {
    let mut house = House::with_pages(512);
    for part in 0..280 {
        house.insert((0..2000).map(|at| (0, (part * 2000 + at) * 10, 1)));
    }
    let pages = house.tables.pages(&house.disk, TABLE).expect("counted");
    assert_eq!(house.disk.page_count() as u64, house.disk.pages_written, "none was written anew: {pages:?}");
    // Nodes are full: k/L leaves, k/(L(F-1)) nodes less what stands in the edge (Chronos, property 1).
    let (leaves, nodes) = (pages[0], pages[1..].iter().sum::<u64>());
    let under = leaves - levels(&house)[0] as u64;
    assert!(nodes > 10 && under / nodes > 20, "{pages:?}");
}
