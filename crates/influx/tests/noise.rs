//! Bytes from anywhere end in lines or in a reject: never in a panic, a hang, or memory beyond the bounds. And what
//! another parser of the same language reads, this one reads too.

use std::time::{Duration, Instant};

use counterfoil_influx::{Batch, Lines, NoSchema, Parser, Piece, Reading, Value, gather};
use influxdb_line_protocol::{FieldValue, parse_lines};
use proptest::prelude::*;

/// A line in one form, whoever read it.
#[derive(Debug, PartialEq)]
struct Read {
    measurement: String,
    tags: Vec<(String, String)>,
    fields: Vec<(String, String)>,
    time: Option<i64>,
}

fn ours(text: &str) -> Vec<Option<Read>> {
    let mut lines = Lines::new(text.as_bytes());
    let mut parser = Parser::new();
    let mut all = Vec::new();
    while let Some(piece) = lines.next().unwrap() {
        let Piece::Line { text, .. } = piece else { panic!("no line is that long") };
        all.push(parser.parse(text).ok().map(|line| Read {
            measurement: line.measurement().unescaped().into_owned(),
            tags: line.tags().map(|(name, value)| (name.unescaped().into(), value.unescaped().into())).collect(),
            fields: line.fields().map(|(name, value)| (name.unescaped().into(), spelled(&value))).collect(),
            time: line.time(),
        }));
    }
    all
}

fn spelled(value: &Value<'_>) -> String {
    match value {
        Value::Float(value) => format!("{value:?}"),
        Value::Integer(value) => format!("{value}i"),
        Value::Unsigned(value) => format!("{value}u"),
        Value::Boolean(value) => value.to_string(),
        Value::Text(text) => format!("{:?}", text.unescaped()),
    }
}

fn theirs(text: &str) -> Vec<Option<Read>> {
    parse_lines(text)
        .map(|line| {
            let line = line.ok()?;
            let tags = line.series.tag_set.iter().flatten();
            Some(Read {
                measurement: line.series.measurement.to_string(),
                tags: tags.map(|(name, value)| (name.to_string(), value.to_string())).collect(),
                fields: line.field_set.iter().map(|(name, value)| (name.to_string(), theirs_spelled(value))).collect(),
                time: line.timestamp,
            })
        })
        .collect()
}

fn theirs_spelled(value: &FieldValue<'_>) -> String {
    match value {
        FieldValue::F64(value) => format!("{value:?}"),
        FieldValue::I64(value) => format!("{value}i"),
        FieldValue::U64(value) => format!("{value}u"),
        FieldValue::Boolean(value) => value.to_string(),
        FieldValue::String(text) => format!("{:?}", text.as_str()),
    }
}

fn name() -> impl Strategy<Value = String> {
    proptest::string::string_regex(r"[a-zA-Zé_][a-z0-9é_.:/-]{0,4}((\\ |\\,)[a-z]{1,2})?").unwrap()
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<f64>().prop_filter("finite", |value| value.is_finite()).prop_map(|value| format!("{value}")),
        (-1e6f64..1e6).prop_map(|value| format!("{value}")),
        any::<i64>().prop_map(|value| format!("{value}i")),
        any::<u64>().prop_map(|value| format!("{value}u")),
        proptest::sample::select(vec!["t", "T", "true", "True", "TRUE", "f", "F", "false", "False", "FALSE"])
            .prop_map(str::to_owned),
        proptest::string::string_regex(r#""([a-z0-9 ,=\né#]|\\"|\\\\){0,12}""#).unwrap(),
    ]
}

fn line() -> impl Strategy<Value = String> {
    let pairs = |value: BoxedStrategy<String>, count: std::ops::Range<usize>| {
        proptest::collection::vec((name(), value).prop_map(|(name, value)| format!("{name}={value}")), count)
    };
    let tags = pairs(name().boxed(), 0..4);
    (name(), tags, pairs(value().boxed(), 1..5), proptest::option::of(any::<i64>())).prop_map(
        |(measurement, tags, fields, time)| {
            let tags: String = tags.iter().map(|tag| format!(",{tag}")).collect();
            let time = time.map_or(String::new(), |time| format!(" {time}"));
            format!("{measurement}{tags} {}{time}", fields.join(","))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn lines_mean_what_another_parser_says(lines in proptest::collection::vec(line(), 1..6)) {
        let text = lines.join("\n");
        let read = ours(&text);
        prop_assert!(read.iter().all(Option::is_some), "{text}");
        prop_assert_eq!(read, theirs(&text), "{}", text);
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        taken(&bytes);
    }

    #[test]
    fn no_text_of_the_language_s_signs_panics(text in r##"[ab1ie. ,=\\"#\n\r\tué-]{0,120}"##) {
        taken(text.as_bytes());
    }
}

/// Lines read and rows taken; together with the rejects they are all lines.
fn taken(bytes: &[u8]) -> u64 {
    let mut rows = 0;
    let take = |batch: Batch| {
        rows += batch.rows() as u64;
        for table in batch.into_tables() {
            check(&table);
        }
        Ok::<(), ()>(())
    };
    let gathered = gather(bytes, &Reading::default(), &NoSchema, 10_000, take).unwrap();
    assert_eq!(gathered.lines, rows + gathered.rejects.count());
    gathered.lines
}

fn check(table: &counterfoil_influx::Table) {
    let rows = table.rows();
    assert!(rows > 0 && table.sets.len() == rows && table.lines.len() == rows);
    assert!(table.sets.iter().all(|&set| (set as usize) < table.tags.len()));
    let mut values = vec![0; rows];
    for column in &table.fields {
        assert!(!table.tags.names().contains(&column.name), "{} is a tag too", column.name);
        let count = column.rows.as_ref().map_or(rows, Vec::len);
        assert_eq!(column.values.len(), count);
        for (row, values) in values.iter_mut().enumerate() {
            *values += usize::from(column.place(row as u32).is_some());
        }
    }
    assert!(values.iter().all(|&count| count > 0), "a row without a field");
}

/// Good lines with a few bytes changed, taken out or doubled, for some seconds.
#[test]
fn damaged_lines_do_not_panic() {
    let full = std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full");
    let length = Duration::from_secs(if full { 60 } else { 3 });
    let good = include_bytes!("data/telegraf.lp");
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let begun = Instant::now();
    let mut lines = 0;
    while begun.elapsed() < length {
        let start = random.below(good.len());
        let mut bytes = good[start..good.len().min(start + 2000)].to_vec();
        for _ in 0..random.below(20) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[at] = b" ,=\\\"\n\r#\t\x00\xff1ieu-."[random.below(17)],
                1 => drop(bytes.drain(at..bytes.len().min(at + 1 + random.below(8)))),
                _ => bytes.extend_from_within(at..),
            }
            if bytes.is_empty() {
                bytes.push(0);
            }
        }
        lines += taken(&bytes);
    }
    assert!(lines > 1000, "{lines}");
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}
