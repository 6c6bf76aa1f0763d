//! `resample`, `value_at`, `gapfill`, `lttb` and `m4` held against models that look at every microsecond, on random series:
//! gaps, samples at one time, every quality, NULL and NaN, bounds on samples and between them.

use std::collections::BTreeMap;

use crate::database::Database;

/// A generator of Lehmer's.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

/// A value, if it is good, and its quality.
type Measured = (Option<f64>, Option<i64>);

/// A row as it is stored: microsecond, value, quality.
type Row = (i64, Option<f64>, Option<i64>);

fn rows(random: &mut Random) -> Vec<Row> {
    let count = random.below(14);
    let mut rows = Vec::new();
    for _ in 0..count {
        let value = match random.below(20) {
            0 => None,
            1 => Some(f64::NAN),
            2 => Some(f64::INFINITY),
            3 => Some(0.0),
            _ => Some(random.below(200) as f64 / 8.0 - 10.0),
        };
        let quality = match random.below(6) {
            0 => None,
            1 => Some(random.below(256) as i64),
            2 => Some(random.below(65536) as i64 - 32768),
            _ => Some(192 + random.below(64) as i64),
        };
        rows.push((random.below(60) as i64, value, quality));
    }
    rows
}

fn is_good(quality: Option<i64>) -> bool {
    quality.is_none_or(|quality| quality.rem_euclid(256) >= 192)
}

/// 0 for bad, 1 for uncertain, 2 for good.
fn band(quality: i64) -> i64 {
    match quality.rem_euclid(256) {
        192..=255 => 2,
        64..=127 => 1,
        _ => 0,
    }
}

fn rank(quality: i64) -> (i64, i64, i64) {
    (band(quality), quality.rem_euclid(256), quality)
}

/// What counts of a series, by time.
fn samples(rows: &[Row]) -> BTreeMap<i64, Measured> {
    let mut times: BTreeMap<i64, Vec<Measured>> = BTreeMap::new();
    for (time, value, quality) in rows {
        match (is_good(*quality), value) {
            (true, None) => {}
            (true, value) => times.entry(*time).or_default().push((*value, *quality)),
            (false, _) => times.entry(*time).or_default().push((None, *quality)),
        }
    }
    let best = |mut all: Vec<Measured>| {
        all.sort_by(|left, right| {
            let key = |one: &Measured| (one.0.is_some(), one.1.map(rank));
            let number =
                |one: &Measured| one.0.map_or(0.0, |value| if value.is_nan() { f64::MAX * 2.0 } else { value });
            let nan = |one: &Measured| one.0.is_some_and(f64::is_nan);
            key(left).cmp(&key(right)).then(number(left).total_cmp(&number(right))).then(nan(left).cmp(&nan(right)))
        });
        all.pop().unwrap()
    };
    times.into_iter().map(|(time, all)| (time, best(all))).collect()
}

struct Model {
    samples: BTreeMap<i64, Measured>,
    linear: bool,
    max_age: Option<i64>,
}

impl Model {
    fn before(&self, time: i64) -> Option<(i64, Option<f64>, Option<i64>)> {
        self.samples.range(..=time).next_back().map(|(ts, (value, quality))| (*ts, *value, *quality))
    }

    /// The line or step on which a microsecond lies: its ends.
    fn segment(&self, time: i64) -> Option<((i64, f64), (i64, f64))> {
        let (ts, value, _) = self.before(time)?;
        let value = value?;
        let near = |other: i64| self.max_age.is_none_or(|age| other - ts <= age);
        if !self.linear {
            return near(time).then_some(((ts, value), (i64::MAX, value)));
        }
        let (next, (end, _)) = self.samples.range(time + 1..).next()?;
        Some(((ts, value), (*next, (*end)?))).filter(|_| near(*next))
    }

    fn on(&self, ((from, first), (to, last)): ((i64, f64), (i64, f64)), time: i64) -> f64 {
        match time {
            time if time == from || first == last => first,
            time if time == to => last,
            time => {
                let part = (time - from) as f64 / (to - from) as f64;
                first * (1.0 - part) + last * part
            }
        }
    }

    fn at(&self, time: i64) -> Option<f64> {
        match self.before(time)? {
            (ts, value, _) if ts == time => value,
            _ => self.segment(time).map(|segment| self.on(segment, time)),
        }
    }

    /// The columns of `resample` behind the bucket.
    fn bucket(&self, from: i64, to: i64) -> Vec<Option<f64>> {
        let (mut area, mut known) = (0.0, 0);
        let mut seen: Vec<f64> = self.at(from).into_iter().collect();
        for time in from..to {
            // What holds at a microsecond holds until the next, unless it is too old by then.
            let Some(segment) = self.segment(time) else { continue };
            if !self.linear && self.max_age.is_some_and(|age| time + 1 - segment.0.0 > age) {
                continue;
            }
            let (first, last) = (self.on(segment, time), self.on(segment, time + 1));
            area += if first == last { first } else { (first + last) / 2.0 };
            known += 1;
            seen.extend([first, last]);
        }
        let inside: Vec<_> = self.samples.range(from..to).collect();
        let good: Vec<f64> = inside.iter().filter_map(|(_, (value, _))| *value).collect();
        seen.extend(&good);
        let carried = self.before(from).and_then(|(_, _, quality)| quality);
        let qualities = inside.iter().filter_map(|(_, (_, quality))| *quality).chain(carried);
        let nan = seen.iter().any(|value| value.is_nan());
        let numbers = || seen.iter().copied().filter(|value| !value.is_nan());
        let min = numbers().reduce(f64::min).or(nan.then_some(f64::NAN));
        let max = if nan { Some(f64::NAN) } else { numbers().reduce(f64::max) };
        vec![
            self.at(from),
            (known > 0).then(|| area / known as f64),
            (known > 0).then(|| area / 1e6),
            min,
            max,
            good.first().copied(),
            good.last().copied(),
            Some(good.len() as f64),
            Some(inside.len() as f64),
            Some(100.0 * known as f64 / (to - from) as f64),
            qualities.min_by_key(|quality| rank(*quality)).map(|quality| quality as f64),
        ]
    }
}

fn instant(time: i64) -> String {
    format!("'2026-01-01 00:00:00.{time:06}'")
}

fn same(found: &str, expected: Option<f64>) -> bool {
    match expected {
        None => found == "NULL",
        Some(expected) if expected.is_nan() => found == "NaN",
        Some(expected) => found
            .parse::<f64>()
            .is_ok_and(|found| found == expected || (found - expected).abs() <= 1e-9 * expected.abs().max(1e-4)),
    }
}

fn literal<T: ToString>(value: Option<T>) -> String {
    value.map_or("NULL".into(), |value| format!("'{}'", value.to_string().replace("inf", "Infinity")))
}

/// A table with two series, one of them without a name, in an order that says nothing.
fn store(database: &mut Database, random: &mut Random, series: &[(&str, Vec<Row>)]) {
    let kind = if random.one_in(3) { "TIMESTAMP(9)" } else { "TIMESTAMP" };
    database.ask("DROP TABLE IF EXISTS t");
    database.ask(&format!("CREATE TABLE t (key TEXT, at {kind}, reading DOUBLE PRECISION, q SMALLINT)"));
    let mut lines = Vec::new();
    for (key, rows) in series {
        for (time, value, quality) in rows {
            let (value, quality) = (literal(*value), literal(*quality));
            lines.push(format!("({key}, {}, {value}, {quality})", instant(*time)));
        }
    }
    lines.push("('a', NULL, 5, 192)".into());
    for index in (1..lines.len()).rev() {
        lines.swap(index, random.below(index as u64 + 1) as usize);
    }
    let count = lines.len();
    assert_eq!(database.ask(&format!("INSERT INTO t VALUES {}", lines.join(", "))), format!("INSERT {count}"));
}

fn cases() -> u64 {
    if crate::database::is_full() { 5000 } else { 250 }
}

/// How a signal is made of the samples, as arguments.
fn options(random: &mut Random) -> (bool, Option<i64>, String) {
    let linear = random.one_in(2);
    let max_age = (!random.one_in(3)).then(|| 1 + random.below(25) as i64);
    let mut text = ", by => key, ts => at, value => reading, quality => q".to_owned();
    if linear {
        text += ", method => 'linear'";
    }
    if let Some(age) = max_age {
        text += &format!(", max_age => '{age} microseconds'");
    }
    (linear, max_age, text)
}

#[test]
fn resample_is_what_every_microsecond_says() {
    let mut database = Database::new();
    for seed in 0..cases() {
        let mut random = Random(seed);
        let series = [("'a'", rows(&mut random)), ("NULL", rows(&mut random))];
        store(&mut database, &mut random, &series);
        let (linear, max_age, options) = options(&mut random);
        let start = random.below(40) as i64;
        let stop = start + 1 + random.below(40) as i64;
        let width = 1 + random.below(25) as i64;
        let sql = format!(
            "SELECT * FROM resample(t, '{width} microseconds', {}, {} {options}) ORDER BY key, bucket",
            instant(start),
            instant(stop)
        );
        let answer = database.ask(&sql);
        let mut lines = answer.lines();
        for (key, rows) in &series {
            let model = Model { samples: samples(rows), linear, max_age };
            // A series has rows if something was read of it: nothing older than its maximum age is.
            let oldest = max_age.map_or(i64::MIN, |age| start - age);
            if !model.samples.range(oldest..stop).any(|_| true) {
                continue;
            }
            let mut from = start;
            while from < stop {
                let to = stop.min(from + width);
                let line = lines.next().unwrap_or_else(|| panic!("seed {seed}: {sql}\n{answer}\nends before {from}"));
                let cells: Vec<&str> = line.split('|').collect();
                assert_eq!(cells[0], key.trim_matches('\''), "seed {seed}: {sql}\n{answer}");
                let mut expected = model.bucket(from, to);
                if model.before(from).is_some_and(|(ts, ..)| ts < oldest) {
                    // The quality of what is too old to be read is not known.
                    let inside = model.samples.range(from..to).filter_map(|(_, (_, quality))| *quality);
                    expected[10] = inside.min_by_key(|quality| rank(*quality)).map(|quality| quality as f64);
                }
                for (cell, (found, expected)) in cells[2..].iter().zip(&expected).enumerate() {
                    let context = || {
                        format!("seed {seed}, column {cell} of {from}..{to}: {expected:?}\n{sql}\n{answer}\n{rows:?}")
                    };
                    assert!(same(found, *expected), "{}", context());
                }
                from = to;
            }
        }
        assert_eq!(lines.next(), None, "seed {seed}: {sql}");
    }
}

#[test]
fn value_at_is_what_the_series_says_at_every_instant() {
    let mut database = Database::new();
    for seed in 0..cases() {
        let mut random = Random(seed ^ 0xA5A5);
        let series = [("'a'", rows(&mut random)), ("'b'", rows(&mut random))];
        store(&mut database, &mut random, &series);
        let (linear, max_age, options) = options(&mut random);
        let times: Vec<i64> = (0..random.below(9)).map(|_| random.below(70) as i64).collect();
        let keyed = random.one_in(2);
        database.ask("DROP TABLE IF EXISTS asked");
        database.ask("CREATE TABLE asked (n INTEGER, key TEXT, moment TIMESTAMP)");
        for (n, time) in times.iter().enumerate() {
            let key = series[n % 2].0;
            database.ask(&format!("INSERT INTO asked VALUES ({n}, {key}, {})", instant(*time)));
        }
        let columns = if keyed { "n, key, moment" } else { "n, moment" };
        let sql = format!(
            "SELECT n, key, value, quality, sample_ts = {} FROM value_at(t, (SELECT {columns} FROM asked) {options}) \
             ORDER BY n, key",
            instant(0)
        );
        let answer = database.ask(&sql);
        let mut expected = Vec::new();
        for (n, time) in times.iter().enumerate() {
            for (place, (key, rows)) in series.iter().enumerate() {
                // A series that has no rows at all is not there to be asked.
                let is_there = !rows.is_empty() || *key == "'a'";
                if (keyed && place == n % 2) || (!keyed && is_there) {
                    expected.push((n, key.trim_matches('\''), *time, rows));
                }
            }
        }
        assert_eq!(answer.lines().count(), expected.len(), "seed {seed}: {sql}\n{answer}");
        for (line, (n, key, time, rows)) in answer.lines().zip(expected) {
            let model = Model { samples: samples(rows), linear, max_age };
            let cells: Vec<&str> = line.split('|').collect();
            let context =
                || format!("seed {seed}: {sql}\n{line}\nat {time}: {:?} of {:?}", model.at(time), model.samples);
            assert_eq!((cells[0], cells[1]), (n.to_string().as_str(), key), "{}", context());
            assert!(same(cells[2], model.at(time)), "{}", context());
            let before = model.before(time);
            assert!(same(cells[3], before.and_then(|before| before.2).map(|quality| quality as f64)), "{}", context());
            assert_eq!(cells[4], before.map_or("NULL".into(), |before| (before.0 == 0).to_string()), "{}", context());
        }
        // One instant asked of all series is the same question.
        let Some(time) = times.first() else { continue };
        let all =
            database.ask(&format!("SELECT key, value FROM value_at(t, {} {options}) ORDER BY key", instant(*time)));
        for line in all.lines() {
            let (key, value) = line.split_once('|').unwrap();
            let rows = &series[usize::from(key == "b")].1;
            let model = Model { samples: samples(rows), linear, max_age };
            assert!(same(value, model.at(*time)), "seed {seed}: {options} at {time}: {line}\n{:?}", model.samples);
        }
        let known =
            series.iter().filter(|(_, rows)| Model { samples: samples(rows), linear, max_age }.at(*time).is_some());
        assert_eq!(all.lines().filter(|line| !line.ends_with("NULL")).count(), known.count(), "seed {seed}: {all}");
    }
}

#[test]
fn gapfill_is_what_the_neighbours_say() {
    let mut database = Database::new();
    for seed in 0..cases() {
        let mut random = Random(seed ^ 0x5A5A);
        let (width, start, buckets) = (1 + random.below(4) as i64, random.below(8) as i64, 1 + random.below(9) as i64);
        let cut = random.below(width as u64) as i64;
        let stop = start + buckets * width - cut;
        database.ask("DROP TABLE IF EXISTS g");
        database.ask("CREATE TABLE g (key TEXT, bucket TIMESTAMP, mean DOUBLE PRECISION, note TEXT, n BIGINT)");
        let mut series: BTreeMap<&str, BTreeMap<i64, Option<f64>>> = BTreeMap::new();
        for key in ["a", "b"] {
            for index in -2..buckets + 3 {
                let time = start + index * width;
                if time >= 0 && random.one_in(2) {
                    let mean = (!random.one_in(6)).then(|| random.below(100) as f64);
                    series.entry(key).or_default().insert(time, mean);
                    let (at, shown) = (instant(time), literal(mean));
                    database.ask(&format!("INSERT INTO g VALUES ('{key}', {at}, {shown}, '{time}', {time})"));
                }
            }
        }
        let sql = format!(
            "SELECT * FROM gapfill(g, '{width} microseconds', {}, {}, by => key, fill => 'linear, previous, -1') \
             ORDER BY key, bucket",
            instant(start),
            instant(stop)
        );
        let answer = database.ask(&sql);
        let mut lines = answer.lines();
        for (key, there) in &series {
            for time in (start..stop).step_by(width as usize) {
                let line = lines.next().unwrap_or_else(|| panic!("seed {seed}: {sql}\n{answer}"));
                let cells: Vec<&str> = line.split('|').collect();
                let before = there.range(..=time).next_back();
                let after = there.range(time..).next();
                let mean = match (before, after) {
                    (Some((from, first)), Some((to, last))) if from < to => first
                        .zip(*last)
                        .map(|(first, last)| first + (last - first) * (time - from) as f64 / (to - from) as f64),
                    (Some((_, first)), Some(_)) => *first,
                    _ => None,
                };
                let note = before.map_or("NULL".into(), |(time, _)| time.to_string());
                let count = if there.contains_key(&time) { time } else { -1 };
                let context = || format!("seed {seed}, {time}: {mean:?} {note} {count}\n{sql}\n{answer}\n{series:?}");
                assert_eq!((cells[0], cells[3], cells[4]), (*key, &*note, &*count.to_string()), "{}", context());
                assert!(same(cells[2], mean), "{}", context());
            }
        }
        assert_eq!(lines.next(), None, "seed {seed}: {sql}\n{answer}\n{series:?}");
    }
}

/// The algorithm as the thesis's own code writes it, in floating point.
fn largest_triangles(points: &[(f64, f64)], count: usize) -> Vec<(f64, f64)> {
    if count >= points.len() {
        return points.to_vec();
    }
    let mut kept = vec![points[0]];
    let every = (points.len() - 2) as f64 / (count - 2) as f64;
    let begin = |bucket: usize| (bucket as f64 * every + 1e-9).floor() as usize + 1;
    for bucket in 0..count - 2 {
        let next = &points[begin(bucket + 1)..begin(bucket + 2).min(points.len())];
        let middle = (
            next.iter().map(|point| point.0).sum::<f64>() / next.len() as f64,
            next.iter().map(|point| point.1).sum::<f64>() / next.len() as f64,
        );
        let last = kept[kept.len() - 1];
        let area = |point: &(f64, f64)| {
            ((last.0 - middle.0) * (point.1 - last.1) - (last.0 - point.0) * (middle.1 - last.1)).abs() * 0.5
        };
        let here = &points[begin(bucket)..begin(bucket + 1)];
        let mut best = here[0];
        for point in here {
            if area(point) > area(&best) {
                best = *point;
            }
        }
        kept.push(best);
    }
    kept.push(points[points.len() - 1]);
    kept
}

#[test]
fn lttb_keeps_what_the_thesis_keeps() {
    let mut database = Database::new();
    for seed in 0..cases() / 10 {
        let mut random = Random(seed ^ 0x1771);
        let mut time = 0;
        let mut points = Vec::new();
        for _ in 0..3 + random.below(200) {
            time += 1 + random.below(20) as i64;
            points.push((time, random.below(1000) as f64 / 4.0));
        }
        let mut rows: Vec<Row> = points.iter().map(|(time, value)| (*time, Some(*value), Some(192))).collect();
        // What cannot be drawn is left out.
        rows.extend([(time + 1, Some(f64::NAN), None), (time + 2, Some(1.0), Some(0)), (time + 3, None, None)]);
        store(&mut database, &mut random, &[("'b'", rows)]);
        let count = 3 + random.below(50) as usize;
        let options = "by => key, ts => at, value => reading, quality => q";
        let sql = format!(
            "SELECT extract(microsecond FROM at)::bigint, value FROM lttb((SELECT * FROM t WHERE key = 'b'), {count}, {options}) ORDER BY at"
        );
        let floats: Vec<(f64, f64)> = points.iter().map(|(time, value)| (*time as f64, *value)).collect();
        let expected: Vec<String> =
            largest_triangles(&floats, count).iter().map(|(time, value)| format!("{time}|{value}")).collect();
        assert_eq!(database.ask(&sql), expected.join("\n"), "seed {seed}: {sql}");
    }
}

#[test]
fn m4_keeps_the_ends_and_the_extremes_of_each_bucket() {
    let mut database = Database::new();
    for seed in 0..cases() {
        let mut random = Random(seed ^ 0x4444);
        let series = [("'a'", rows(&mut random)), ("'b'", rows(&mut random))];
        store(&mut database, &mut random, &series);
        let (start, width) = (random.below(30) as i64, 1 + random.below(25) as i64);
        let stop = start + 1 + random.below(40) as i64;
        let sql = format!(
            "SELECT key, extract(microsecond FROM at)::bigint, value FROM m4(t, '{width} us', {}, {}, by => key, ts => at, \
             value => reading, quality => q) ORDER BY key, at",
            instant(start),
            instant(stop)
        );
        let mut expected = Vec::new();
        for (key, rows) in &series {
            let samples = samples(rows);
            for from in (start..stop).step_by(width as usize) {
                let inside = samples.range(from..stop.min(from + width));
                let points: Vec<(i64, f64)> = inside
                    .filter_map(|(time, (value, _))| {
                        value.filter(|value| value.is_finite()).map(|value| (*time, value))
                    })
                    .collect();
                let least = points.iter().min_by(|left, right| left.1.total_cmp(&right.1));
                let greatest = points.iter().rev().max_by(|left, right| left.1.total_cmp(&right.1));
                let kept = |point: &&(i64, f64)| {
                    let ends = [points.first(), points.last(), least, greatest];
                    ends.into_iter().flatten().any(|end| end.0 == point.0)
                };
                let key = key.trim_matches('\'');
                expected.extend(points.iter().filter(kept).map(|(time, value)| format!("{key}|{time}|{value}")));
            }
        }
        assert_eq!(database.ask(&sql), expected.join("\n"), "seed {seed}: {sql}\n{series:?}");
    }
}
