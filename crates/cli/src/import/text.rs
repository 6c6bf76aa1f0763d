//! CSV and JSON lines as columns of a table: which field goes where, what is NULL, and what to say of a value that does
//! not fit.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use counterfoil::arrow::array::RecordBatch;
use counterfoil::arrow::datatypes::{Field, Schema, SchemaRef};
use counterfoil::{ColumnInfo, Error};

use super::columns::Column;
use super::csv::{Record, Records};
use super::infer::Guess;
use super::json::{Lines, Value, object};
use super::progress::Progress;
use super::source::Source;
use super::{BATCH_ROWS, Batches, File};
use crate::arguments::{Fields, Format};
use crate::failure::{input, on_line};

/// Batches that the parser may be ahead of the table.
const BATCHES_AHEAD: usize = 3;
/// Lines between two moves of the progress bar.
const LINES_PER_TICK: u64 = 4096;

/// A file of text to be read.
pub struct Texts<'a> {
    source: &'a Source,
    is_csv: bool,
    null: Option<String>,
    has_header: bool,
    delimiter: u8,
}

impl<'a> Texts<'a> {
    pub fn new(file: &'a File, fields: &Fields) -> Self {
        Self {
            source: &file.source,
            is_csv: file.format == Format::Csv,
            null: fields.null.clone(),
            has_header: !fields.no_header,
            delimiter: fields.delimiter,
        }
    }

    /// Reads the whole file to find what its columns could be; adds to what other files said.
    pub fn guess(&self, columns: &mut Vec<(String, Guess)>, progress: &Progress) -> Result<(), Error> {
        if self.is_csv { self.guess_csv(columns, progress) } else { self.guess_json(columns, progress) }
    }

    fn records(&self) -> Result<Records<Box<dyn Read + Send>>, Error> {
        Ok(Records::new(self.source.reader()?, self.delimiter))
    }

    fn guess_csv(&self, columns: &mut Vec<(String, Guess)>, progress: &Progress) -> Result<(), Error> {
        let mut records = self.records()?;
        let mut record = Record::default();
        let mut places: Option<Vec<usize>> = None;
        let mut first = records.read(&mut record)?;
        if first && self.has_header {
            places = Some(enlist(columns, header(&record, true)?));
            first = records.read(&mut record)?;
        }
        let mut more = first;
        while more {
            let width = places.get_or_insert_with(|| enlist(columns, numbered(record.len()))).len();
            if !(record.is_blank() && width > 1) {
                check_width(&record, width)?;
                for (field, place) in places.iter().flatten().enumerate() {
                    let (text, quoted) = record.field(field);
                    if !self.is_null(text, quoted) {
                        columns[*place].1.see(utf8(text, record.line)?);
                    }
                }
            }
            if record.line.is_multiple_of(LINES_PER_TICK) {
                progress.tick();
            }
            more = records.read(&mut record)?;
        }
        Ok(())
    }

    fn guess_json(&self, columns: &mut Vec<(String, Guess)>, progress: &Progress) -> Result<(), Error> {
        let mut lines = Lines::new(self.source.reader()?);
        let mut known: HashMap<String, usize> = HashMap::new();
        for (place, (name, _)) in columns.iter().enumerate() {
            known.insert(name.clone(), place);
        }
        loop {
            let Some((line, text)) = lines.read()? else { return Ok(()) };
            for (name, value) in members(text, line)? {
                let place = match known.get(name.as_ref()) {
                    Some(place) => *place,
                    None => {
                        columns.push((name.to_string(), Guess::default()));
                        known.insert(name.to_string(), columns.len() - 1);
                        columns.len() - 1
                    }
                };
                match value {
                    Value::Null => {}
                    Value::Boolean(text) | Value::Number(text) => columns[place].1.see(text),
                    Value::Text(text) if self.null.as_deref() == Some(text.as_ref()) => {}
                    Value::Text(text) => columns[place].1.see_text(&text),
                    Value::Nested(text) => columns[place].1.see_text(text),
                }
            }
            if line.is_multiple_of(LINES_PER_TICK) {
                progress.tick();
            }
        }
    }

    /// An unquoted empty field is NULL, and what `--null` says.
    fn is_null(&self, text: &[u8], quoted: bool) -> bool {
        !quoted && (text.is_empty() || self.null.as_deref().is_some_and(|null| null.as_bytes() == text))
    }

    /// The rows, for a table with these columns: which of them the file has, and their values.
    pub fn read(self, columns: &[ColumnInfo], created: bool) -> Result<(Vec<String>, Batches), Error> {
        if self.is_csv { self.read_csv(columns, created) } else { self.read_json(columns) }
    }

    fn read_csv(self, columns: &[ColumnInfo], created: bool) -> Result<(Vec<String>, Batches), Error> {
        let mut records = self.records()?;
        let mut record = Record::default();
        let chosen: Vec<&ColumnInfo> = if self.has_header {
            if !records.read(&mut record)? {
                return Err(input("the file is empty").advise("add --no-header if it has no line of names"));
            }
            let names = header(&record, created)?;
            names.iter().map(|name| find(columns, name)).collect::<Result<_, _>>()?
        } else {
            columns.iter().collect()
        };
        let names: Vec<String> = chosen.iter().map(|column| column.name.clone()).collect();
        let mut gathering = Gathering::new(&chosen);
        let (sender, receiver) = sync_channel(BATCHES_AHEAD);
        let null = self.null.clone();
        std::thread::spawn(move || {
            let is_null = |text: &[u8], quoted: bool| {
                !quoted && (text.is_empty() || null.as_deref().is_some_and(|null| null.as_bytes() == text))
            };
            let gathered = gather_csv(records, &mut gathering, is_null, &sender);
            gathering.end(gathered, &sender);
        });
        Ok((names, Box::new(receiver.into_iter())))
    }

    fn read_json(self, columns: &[ColumnInfo]) -> Result<(Vec<String>, Batches), Error> {
        // What no line names gets its default, so the names have to be known before the first row.
        let mut seen = Vec::new();
        self.guess_json(&mut seen, &Progress::begin("looking at", self.source))?;
        let chosen = seen.iter().map(|(name, _)| find(columns, name)).collect::<Result<Vec<_>, _>>()?;
        let names: Vec<String> = chosen.iter().map(|column| column.name.clone()).collect();
        let places = seen.into_iter().enumerate().map(|(place, (name, _))| (name, place)).collect();
        let mut gathering = Gathering::new(&chosen);
        let lines = Lines::new(self.source.reader()?);
        let (sender, receiver) = sync_channel(BATCHES_AHEAD);
        let null = self.null.clone();
        std::thread::spawn(move || {
            let gathered = gather_json(lines, &places, &mut gathering, null.as_deref(), &sender);
            gathering.end(gathered, &sender);
        });
        Ok((names, Box::new(receiver.into_iter())))
    }
}

type Sender = SyncSender<Result<RecordBatch, Error>>;

/// Rows being gathered into batches.
struct Gathering {
    columns: Vec<Column>,
    schema: Option<SchemaRef>,
    rows: usize,
}

impl Gathering {
    fn new(columns: &[&ColumnInfo]) -> Self {
        let columns = columns.iter().map(|column| Column::new(&column.name, &column.kind, &column.arrow)).collect();
        Self { columns, schema: None, rows: 0 }
    }

    /// Puts a value into a column of the row under way.
    fn push(&mut self, place: usize, text: &str, line: u64) -> Result<(), Error> {
        let column = &mut self.columns[place];
        column.push(text).ok_or_else(|| {
            let shown: String = text.chars().take(SHOWN_LETTERS_MAX).collect();
            let more = if shown.len() < text.len() { "…" } else { "" };
            on_line(line, format!("column {}: \"{shown}{more}\" is not of type {}", column.name, column.kind))
                .advise("correct it, or give the column another type")
        })
    }

    /// Ends a row; hands a full batch on. False if nobody wants more.
    fn end_row(&mut self, sender: &Sender) -> Result<bool, Error> {
        self.rows += 1;
        if self.rows < BATCH_ROWS { Ok(true) } else { self.hand_over(sender) }
    }

    /// Hands on what is left, and behind it why there is no more. Rows before one that is wrong are good, and are in where they are committed
    /// batch by batch.
    fn end(mut self, gathered: Result<(), Error>, sender: &Sender) {
        let handed = self.hand_over(sender).map(drop);
        if let Err(error) = gathered.and(handed) {
            // Nobody listens any more if the table has refused a row meanwhile.
            let _ = sender.send(Err(error));
        }
    }

    fn hand_over(&mut self, sender: &Sender) -> Result<bool, Error> {
        if self.rows == 0 {
            return Ok(true);
        }
        // Of a row that is wrong some columns have a value already.
        let arrays: Vec<_> = self.columns.iter_mut().map(|column| column.finish().slice(0, self.rows)).collect();
        let schema = self.schema.get_or_insert_with(|| {
            let fields = self.columns.iter().zip(&arrays);
            let fields = fields.map(|(column, array)| Field::new(&column.name, array.data_type().clone(), true));
            Arc::new(Schema::new(fields.collect::<Vec<_>>()))
        });
        self.rows = 0;
        let batch = RecordBatch::try_new(schema.clone(), arrays)
            .map_err(|error| Error::new(counterfoil::Kind::Bug, error.to_string()).advise("please report it"))?;
        Ok(sender.send(Ok(batch)).is_ok())
    }
}

/// Letters of an offending value that are shown.
const SHOWN_LETTERS_MAX: usize = 60;

fn gather_csv(
    mut records: Records<Box<dyn Read + Send>>,
    gathering: &mut Gathering,
    is_null: impl Fn(&[u8], bool) -> bool,
    sender: &Sender,
) -> Result<(), Error> {
    let mut record = Record::default();
    let width = gathering.columns.len();
    while records.read(&mut record)? {
        if record.is_blank() && width > 1 {
            continue;
        }
        check_width(&record, width)?;
        for place in 0..width {
            let (text, quoted) = record.field(place);
            if is_null(text, quoted) {
                gathering.columns[place].push_null();
            } else {
                gathering.push(place, utf8(text, record.line)?, record.line)?;
            }
        }
        if !gathering.end_row(sender)? {
            return Ok(());
        }
    }
    Ok(())
}

fn gather_json(
    mut lines: Lines<Box<dyn Read + Send>>,
    places: &HashMap<String, usize>,
    gathering: &mut Gathering,
    null: Option<&str>,
    sender: &Sender,
) -> Result<(), Error> {
    let mut filled = vec![false; gathering.columns.len()];
    while let Some((line, text)) = lines.read()? {
        filled.fill(false);
        for (name, value) in members(text, line)? {
            let Some(place) = places.get(name.as_ref()).copied() else { continue };
            if std::mem::replace(&mut filled[place], true) {
                return Err(on_line(line, format!("{name} is there twice")));
            }
            match value {
                Value::Null => gathering.columns[place].push_null(),
                Value::Text(text) if null == Some(text.as_ref()) => gathering.columns[place].push_null(),
                Value::Boolean(text) | Value::Number(text) | Value::Nested(text) => {
                    gathering.push(place, text, line)?
                }
                Value::Text(text) => gathering.push(place, &text, line)?,
            }
        }
        for (place, _) in filled.iter().enumerate().filter(|(_, filled)| !**filled) {
            gathering.columns[place].push_null();
        }
        if !gathering.end_row(sender)? {
            return Ok(());
        }
    }
    Ok(())
}

fn members(text: &str, line: u64) -> Result<Vec<(std::borrow::Cow<'_, str>, Value<'_>)>, Error> {
    object(text).map_err(|why| {
        let hint = if text.starts_with('[') { "write one object a line" } else { "correct the line" };
        on_line(line, why).advise(hint)
    })
}

/// The names in the first line. For a table to be made they are brought into the form in which SQL finds them unquoted.
fn header(record: &Record, fold: bool) -> Result<Vec<String>, Error> {
    let mut names = Vec::with_capacity(record.len());
    for index in 0..record.len() {
        let name = utf8(record.field(index).0, record.line)?.trim();
        names.push(if name.is_empty() { format!("column{}", index + 1) } else { name.to_owned() });
    }
    if fold {
        let folded: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
        if first_repeated(&folded).is_none() {
            names = folded;
        }
    }
    match first_repeated(&names) {
        Some(name) => Err(on_line(1, format!("column {name} is there twice")).advise("rename one of them")),
        None => Ok(names),
    }
}

fn first_repeated(names: &[String]) -> Option<&String> {
    names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)).map(|(_, name)| name)
}

fn numbered(width: usize) -> Vec<String> {
    (1..=width).map(|number| format!("column{number}")).collect()
}

/// Where the columns of a file stand among those of all files; new ones are added.
fn enlist(columns: &mut Vec<(String, Guess)>, names: Vec<String>) -> Vec<usize> {
    let mut places = Vec::with_capacity(names.len());
    for name in names {
        let known = columns.iter().position(|(known, _)| *known == name);
        places.push(known.unwrap_or_else(|| {
            columns.push((name, Guess::default()));
            columns.len() - 1
        }));
    }
    places
}

/// The table's column of a name in the file.
pub fn find<'a>(columns: &'a [ColumnInfo], name: &str) -> Result<&'a ColumnInfo, Error> {
    let exact = columns.iter().find(|column| column.name == name);
    let found = exact.or_else(|| columns.iter().find(|column| column.name.eq_ignore_ascii_case(name)));
    found.ok_or_else(|| {
        let known: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        input(format!("the table has no column {name}")).advise(format!("it has {}", known.join(", ")))
    })
}

fn check_width(record: &Record, width: usize) -> Result<(), Error> {
    if record.len() == width {
        return Ok(());
    }
    let last = String::from_utf8_lossy(record.field(record.len() - 1).0).into_owned();
    let shown: String = last.chars().take(SHOWN_LETTERS_MAX).collect();
    Err(on_line(record.line, format!("{} fields where {width} are wanted, the last of them \"{shown}\"", record.len()))
        .advise("correct the line"))
}

fn utf8(bytes: &[u8], line: u64) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|_| {
        let shown: String = String::from_utf8_lossy(bytes).chars().take(SHOWN_LETTERS_MAX).collect();
        on_line(line, format!("\"{shown}\" is not UTF-8")).advise("convert the file first")
    })
}
