use super::*;
use crate::column::Values;
use crate::line::Parser;
use crate::schema::{Kind, NoSchema};
use crate::value::FieldType;

fn push(batch: &mut Batch, line: &str, number: u64, reading: &Reading, schema: &dyn Schema) -> Result<(), Problem> {
    let mut parser = Parser::new();
    let line = parser.parse(line.as_bytes()).expect("a line that parses");
    batch.push(&line, number, reading, schema)
}

/// A batch of lines, each with what it was rejected for.
fn gather(lines: &[&str], reading: &Reading, schema: &dyn Schema) -> (Vec<Table>, Vec<Problem>) {
    let mut batch = Batch::new();
    let rejected = lines
        .iter()
        .enumerate()
        .filter_map(|(index, line)| push(&mut batch, line, index as u64 + 1, reading, schema).err())
        .collect();
    (batch.into_tables(), rejected)
}

fn plain(lines: &[&str]) -> (Vec<Table>, Vec<Problem>) {
    gather(lines, &Reading::default(), &NoSchema)
}

#[test]
fn lines_come_together_by_measurement() {
    let (tables, rejected) = plain(&[
        "cpu,host=a,zone=1 use=0.5,n=1i 10",
        "mem,host=a free=1u,ok=t 10",
        r"cpu,zone=1,host=a use=0.7 20",
        r"cpu,host=b n=2i,note=\x 30".replace(r"\x", r#""x\"y""#).as_str(),
        "c\\,pu free=1 5",
    ]);
    assert_eq!(rejected, []);
    let names: Vec<_> = tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, ["cpu", "mem", "c,pu"]);
    let cpu = &tables[0];
    assert_eq!((cpu.times.as_slice(), cpu.lines.as_slice()), (&[10, 20, 30][..], &[1, 3, 4][..]));
    assert_eq!(cpu.sets, [0, 0, 1]);
    assert_eq!(cpu.tags.names(), ["host", "zone"]);
    assert_eq!(cpu.tags.set(0).collect::<Vec<_>>(), [(0, "a"), (1, "1")]);
    assert_eq!(cpu.tags.set(1).collect::<Vec<_>>(), [(0, "b")]);
    assert_eq!(cpu.fields[0].values, Values::Float(vec![0.5, 0.7]));
    assert_eq!(cpu.fields[0].rows, Some(vec![0, 1]));
    assert_eq!(cpu.fields[1].rows, Some(vec![0, 2]));
    let Values::Text(texts) = &cpu.fields[2].values else { panic!() };
    assert_eq!((texts.get(0), texts.get(1)), (Some("x\"y"), None));
    assert_eq!(tables[1].fields[1].values, Values::Boolean(vec![true]));
    assert_eq!(tables[1].fields[1].rows, None);
}

#[test]
fn a_conflict_rejects_its_line_alone_and_whole() {
    let (tables, rejected) = plain(&["m a=1,b=1i", "m a=2,b=2.5", "m a=3,b=3i"]);
    let conflict = Problem::TypeConflict { field: "b".to_owned(), line: FieldType::Float, column: FieldType::Integer };
    assert_eq!(rejected, [conflict]);
    assert_eq!(tables[0].fields[0].values, Values::Float(vec![1.0, 3.0]));
    assert_eq!(tables[0].lines, [1, 3]);
}

#[test]
fn a_rejected_line_leaves_nothing_behind() {
    let (tables, rejected) = plain(&["m a=1i,a=2i", "m,t=x,t=y b=1", "n a=1,time=1", "m a=1.5", "m,a=x c=1"]);
    assert_eq!(
        rejected,
        [
            Problem::FieldTwice("a".to_owned()),
            Problem::TagTwice("t".to_owned()),
            Problem::ReservedName,
            Problem::TagAndField("a".to_owned())
        ]
    );
    assert_eq!(tables.len(), 1);
    assert_eq!(tables[0].fields.len(), 1);
    assert_eq!(tables[0].fields[0].values, Values::Float(vec![1.5]));
    assert!(tables[0].tags.names().is_empty());
}

#[test]
fn a_tag_is_no_field() {
    let (_, rejected) = plain(&["m,t=x t=1", "m,t=x a=1", "m t=1", "m,time=x a=1"]);
    let both = Problem::TagAndField("t".to_owned());
    assert_eq!(rejected, [both.clone(), both.clone(), Problem::ReservedName]);
    // Nor where a rejected line was the first to name it.
    let (tables, rejected) = plain(&["m t=1,t=2", "m,t=x a=1", "m t=1", "m,t=x a=1,t=1"]);
    assert_eq!(rejected, [Problem::FieldTwice("t".to_owned()), both.clone(), both]);
    assert_eq!((tables[0].rows(), tables[0].fields.len()), (1, 1));
}

#[test]
fn times_are_nanoseconds() {
    let reading = Reading { precision: Precision::Seconds, now: 5_999_999_999, ..Reading::default() };
    let (tables, rejected) = gather(&["m a=1 7", "m a=1", "m a=1 9223372037"], &reading, &NoSchema);
    assert_eq!(tables[0].times, [7_000_000_000, 5_000_000_000]);
    assert_eq!(rejected, [Problem::TimeOutOfRange]);
}

struct Store;

impl Schema for Store {
    fn column(&self, measurement: &str, name: &str) -> Option<Kind> {
        match (measurement, name) {
            ("m", "f") => Some(Kind::Field(FieldType::Float)),
            ("m", "t") => Some(Kind::Tag),
            _ => None,
        }
    }

    fn takes(&self, measurement: &str) -> Result<(), Problem> {
        if measurement == "m" { Ok(()) } else { Err(Problem::NoTable(measurement.to_owned())) }
    }
}

#[test]
fn the_store_is_asked_too() {
    let (tables, rejected) = gather(&["m f=1i", "m f=1", "m t=1", "m,f=x a=1", "new a=1"], &Reading::default(), &Store);
    assert_eq!(
        rejected,
        [
            Problem::TypeConflict { field: "f".to_owned(), line: FieldType::Integer, column: FieldType::Float },
            Problem::TagAndField("t".to_owned()),
            Problem::TagAndField("f".to_owned()),
            Problem::NoTable("new".to_owned())
        ]
    );
    assert_eq!(tables[0].rows(), 1);
}

#[test]
fn a_quality_is_a_number_of_its_own() {
    let reading = Reading { quality_fields: ["Quality".to_owned()].into(), ..Reading::default() };
    let lines = [r#"m v=1,Quality="OK (0x0)""#, "m v=2,Quality=2147483648u", r#"m v=3,Quality="?""#, "m v=4"];
    let (tables, rejected) = gather(&lines, &reading, &NoSchema);
    assert_eq!(rejected, [Problem::NotAQuality("?".to_owned())]);
    assert_eq!(tables[0].fields[1].values, Values::Quality(vec![192, 0]));
    assert_eq!(tables[0].fields[1].rows, Some(vec![0, 1]));
}

/// What it takes is a small multiple of the lines, also where every line has names of its own.
#[test]
fn memory_follows_the_lines() {
    let mut batch = Batch::new();
    let mut bytes = 0;
    for number in 0..20_000 {
        let line = format!("m{},t{number}=v{number} f{number}=1", number / 500);
        bytes += line.len();
        push(&mut batch, &line, number, &Reading::default(), &NoSchema).unwrap();
    }
    assert!(batch.bytes() > bytes && batch.bytes() < 60 * bytes, "{} of {bytes}", batch.bytes());
}
