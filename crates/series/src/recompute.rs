//! Summaries held against what the points themselves say, computed in the plainest way.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use counterfoil_log::Memory;

use crate::tests::{House, Model, Row, Step, TABLE};
use crate::{Bucket, Question, SeriesTables, Span, Summary, Value};

/// A column of some points: their times, values and whether they are good.
type Samples = Vec<(i64, Option<f64>, bool)>;

/// What a summary says, in a form that is equal to itself.
#[derive(Debug, PartialEq)]
struct Said {
    count: u64,
    good: u64,
    sum: u64,
    least: Option<u64>,
    greatest: Option<u64>,
    first: Option<u64>,
    last: Option<u64>,
    lead: Option<u64>,
    area: u64,
    known: u64,
    held: Option<u64>,
}

/// The bits of a double; one NaN is as good as another where one was computed.
fn bits(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() }
}

fn plain(value: Option<Value>) -> Option<f64> {
    value.map(|value| match value {
        Value::Double(value) => value,
        Value::Integer(value) => value as f64,
        Value::Text(_) => panic!("a text in a summary"),
    })
}

fn said(summary: &Summary) -> Said {
    let value = |value| plain(value).map(bits);
    Said {
        count: summary.count,
        good: summary.good,
        sum: bits(summary.sum.double()),
        least: value(summary.least()),
        greatest: value(summary.greatest()),
        first: value(summary.first()),
        last: value(summary.last()),
        lead: summary.lead,
        area: bits(summary.area.double()),
        known: summary.known,
        held: value(summary.held()),
    }
}

fn recomputed(samples: &Samples) -> Said {
    let values: Vec<f64> = samples.iter().filter_map(|sample| sample.1).collect();
    let real: Vec<_> = samples.iter().filter(|(_, value, good)| value.is_some() || !good).collect();
    let until = samples.last().map_or(0, |sample| sample.0);
    let ends = real.iter().skip(1).map(|sample| sample.0).chain([until]);
    let held = real.iter().zip(ends).filter(|(sample, _)| sample.2);
    let held: Vec<(f64, i64)> = held.filter_map(|(sample, end)| Some((sample.1?, end - sample.0))).collect();
    let ordered = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick).map(bits);
    Said {
        count: values.len() as u64,
        good: samples.iter().filter(|sample| sample.1.is_some() && sample.2).count() as u64,
        sum: bits(values.iter().sum()),
        least: ordered(|one, other| if one.total_cmp(&other).is_le() { one } else { other }),
        greatest: ordered(|one, other| if one.total_cmp(&other).is_ge() { one } else { other }),
        first: samples.first().and_then(|sample| sample.1).map(bits),
        last: samples.last().and_then(|sample| sample.1).map(bits),
        lead: real.first().map(|sample| (sample.0 - samples[0].0) as u64),
        area: bits(held.iter().filter(|(_, long)| *long > 0).map(|(value, long)| value * *long as f64).sum()),
        known: held.iter().map(|(_, long)| *long as u64).sum(),
        held: real.last().filter(|sample| sample.2).and_then(|sample| sample.1).map(bits),
    }
}

/// The first time of a bucket; early and late there is none.
fn bucket(width: i64, time: i64) -> Option<i64> {
    Some(time.div_euclid(width) * width).filter(|_| (-300..9000).contains(&time))
}

/// Asks for both columns of all series within a span, by buckets of a width, and compares.
pub(crate) fn check(tables: &SeriesTables, view: &Memory, model: &Model, span: Span, width: Option<i64>) {
    let mut wanted = Vec::<(u32, Option<i64>, Vec<(i64, Row)>)>::new();
    for ((series, time), row) in model.iter().filter(|((_, time), _)| span.contains(*time)) {
        let name = width.and_then(|width| bucket(width, *time));
        match wanted.last_mut().filter(|last| (last.0, last.1) == (*series, name)) {
            Some(last) => last.2.push((*time, *row)),
            None => wanted.push((*series, name, Vec::from([(*time, *row)]))),
        }
    }
    let buckets = width.map(|width| Arc::new(move |time| bucket(width, time)) as crate::Buckets);
    let question = Question { span, columns: [0, 1].to_vec(), buckets, ends: true };
    let mut aggregation = tables.aggregate(view.clone(), TABLE, None, question).expect("asked");
    let has_quality = tables.summarized(view, TABLE).expect("there").quality.is_some();
    for (series, name, rows) in &wanted {
        let bucket = aggregation.next().expect("read").expect("a bucket is missing");
        assert_eq!((bucket.series, bucket.name, bucket.points), (*series, *name, rows.len() as u64));
        compare(&bucket, rows, has_quality);
    }
    assert_eq!(aggregation.next(), Ok(None));
}

fn compare(bucket: &Bucket, rows: &[(i64, Row)], has_quality: bool) {
    assert_eq!(bucket.span, Span { first: rows[0].0, last: rows[rows.len() - 1].0 });
    let is_good = |row: &Row| !has_quality || row.1.is_none_or(|quality| quality >= 192);
    let columns: [fn(&Row) -> Option<f64>; 2] = [|row| row.0, |row| row.1.map(|quality| quality as f64)];
    for (summary, column) in bucket.columns.iter().zip(columns) {
        let samples = rows.iter().map(|(time, row)| (*time, column(row), is_good(row))).collect();
        assert_eq!(said(summary), recomputed(&samples));
    }
    let [first, last] = bucket.ends.as_ref().expect("asked for");
    for (end, (time, row)) in [(first, &rows[0]), (last, &rows[rows.len() - 1])] {
        assert_eq!(end.times, [*time]);
        assert_eq!(plain(end.columns[0].value(0)).map(bits), row.0.map(bits));
        assert_eq!(plain(end.columns[1].value(0)), row.1.map(|quality| quality as f64));
    }
}

/// Pages that a question about series 0 reads.
fn pages_read(house: &House, question: Question) -> usize {
    let before = house.disk.pages_read.load(Ordering::Relaxed);
    let aggregation = house.tables.aggregate(house.disk.clone(), TABLE, Some([0].to_vec()), question);
    let mut aggregation = aggregation.expect("asked");
    while aggregation.next().expect("read").is_some() {}
    house.disk.pages_read.load(Ordering::Relaxed) - before
}

#[test]
fn an_aggregate_reads_its_borders_and_nothing_between() {
    let mut house = House::with(700, 1);
    for part in 0..60 {
        house.insert((0..4000).map(|at| (0, (part * 4000 + at) * 10, 1)));
        house.run(&Step::Maintain);
    }
    let levels = house.tables.levels(&house.disk, TABLE, 0).expect("there").len();
    let pages = house.tables.pages(&house.disk, TABLE).expect("counted");
    assert!(levels >= 3 && pages[0] > 600, "{pages:?}");
    let ask = |span, buckets, ends| Question { span, columns: [0].to_vec(), buckets, ends };
    assert_eq!(pages_read(&house, ask(Span::ALL, None, false)), 0, "the edge and the tail know all of it");
    let most = Span { first: 12_345, last: 2_345_678 };
    assert!(pages_read(&house, ask(most, None, false)) <= 2 * levels, "each border, a page of each level");
    assert!(pages_read(&house, ask(most, None, true)) <= 2 * levels, "the ends lie there");
    let tenth = most.last / 10;
    let buckets: crate::Buckets = Arc::new(move |time| Some(time / tenth));
    let read = pages_read(&house, ask(most, Some(buckets), false));
    assert!(read <= 12 * levels && read >= 8, "each bound of a bucket, a page of each level: {read}");
    // Late points: their leaves are read, and no others.
    house.insert((0..5).map(|at| (0, 100_001 + at * 400_000, 2)));
    assert!(pages_read(&house, ask(Span::ALL, None, false)) <= 5 * levels);
    check(&house.tables, &house.disk, &house.model, Span::ALL, Some(70_000));
    // A column without summaries: everything is read.
    let all = Question { span: Span::ALL, columns: [1].to_vec(), buckets: None, ends: false };
    assert!(pages_read(&house, all) as u64 >= pages[0]);
}

#[test]
fn the_newest_point_before_a_time_is_a_page_of_each_level() {
    let mut house = House::with(700, 1);
    for part in 0..60 {
        house.insert((0..4000).map(|at| (0, (part * 4000 + at) * 10, 1)));
        house.run(&Step::Maintain);
    }
    let levels = house.tables.levels(&house.disk, TABLE, 0).expect("there").len();
    assert!(levels >= 3);
    // Of a late point, too.
    house.insert([(0, 1_000_003, 2)].into_iter());
    for (last, newest) in
        [(5, 0), (123_456, 123_450), (1_000_004, 1_000_003), (2_345_678, 2_345_670), (i64::MAX, 2_399_990)]
    {
        let before = house.disk.pages_read.load(Ordering::Relaxed);
        let span = Span { first: i64::MIN, last };
        let mut backward = house.tables.backward(house.disk.clone(), TABLE, 0, span).expect("there");
        let block = backward.next().expect("read").expect("a block");
        assert_eq!(block.points.times.last(), Some(&newest));
        let pages = house.disk.pages_read.load(Ordering::Relaxed) - before;
        assert!(pages <= levels, "{pages} pages, {levels} levels");
    }
}

#[test]
fn what_is_in_no_bucket_may_be_early_and_late() {
    let mut house = House::with(1072, 2);
    // One leaf from before the first bucket to behind the last one.
    house.insert((-310..-180).map(|at| (3, at, 1)));
    house.insert((8990..9120).map(|at| (3, at, 1)));
    house.insert((9200..9400).map(|at| (3, at, 1)));
    assert_ne!(house.tables.pages(&house.disk, TABLE).expect("counted")[0], 0);
    check(&house.tables, &house.disk, &house.model, Span::ALL, Some(1));
    check(&house.tables, &house.disk, &house.model, Span::ALL, Some(3000));
}
