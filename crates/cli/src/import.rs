//! `import`: files into tables, each file whole or not at all.
//!
//! ```text
//! file -> (unpacked on a thread) -> records -> columns of the table's types (on a thread) -> the table, one transaction
//! ```
//! With `--create` all files are read once before, to find types that fit every value in them.

mod all;
mod columns;
mod csv;
mod infer;
mod ipc;
mod json;
mod lines;
mod parquet;
mod progress;
mod source;
mod text;

use std::path::{Path, PathBuf};

use counterfoil::arrow::array::RecordBatch;
use counterfoil::{ColumnInfo, Connection, Database, Error, Kind, quoted};

use crate::arguments::{Fields, Format, Import, Shape, Unit};
use crate::closing;
use crate::context::Context;
use crate::failure::{Result, input, misuse};
use crate::terminal;
use infer::Inferred;
use progress::Progress;
use source::Source;
use text::Texts;

/// Rows that travel together from the parser to the table.
const BATCH_ROWS: usize = 16 * 1024;

/// How a table is made for a file.
#[derive(Clone, Copy)]
pub enum Make<'a> {
    /// By this CREATE TABLE; the file is to have all its columns.
    By(&'a str),
    /// With types that fit every value, but for columns of which the type is said.
    Fitting(&'a [(String, String)]),
}

/// Batches on their way into a table.
type Batches = Box<dyn Iterator<Item = Result<RecordBatch, Error>>>;

pub fn run(context: &Context, arguments: &Import) -> Result<()> {
    if lines::are_meant(arguments) {
        return lines::run(context, arguments);
    }
    if let Some(folder) = &arguments.all {
        if !arguments.what.is_empty() {
            return Err(misuse("--all takes no table and no file").into());
        }
        return all::run(context, &arguments.db, folder, arguments.shape.format);
    }
    let [table, files @ ..] = arguments.what.as_slice() else { return Err(nothing_named().into()) };
    if files.is_empty() {
        return Err(nothing_named().into());
    }
    let files = files.iter().map(|path| File::open(path, arguments.shape.format)).collect::<Result<Vec<_>, _>>()?;
    let database = context.open(&arguments.db)?;
    let name = table_name(&database, &table.to_string_lossy())?;
    let rows;
    {
        let connection = database.connect()?;
        let mut importing = Importing { database: &database, connection, arguments, name: &name, has_all: false };
        let create = if arguments.create { Some(importing.create_sql(&files)?) } else { None };
        rows = importing.all(&files, create.as_deref())?;
    }
    closing::close(database)?;
    terminal::done(format_args!("{name}: {}", terminal::counted(rows, "row")));
    Ok(())
}

/// Brings files into a table, which is made as `make` says.
pub fn into(database: &Database, name: &str, paths: &[PathBuf], shape: &Shape, make: Make<'_>) -> Result<()> {
    let types = if let Make::Fitting(types) = make { types.to_vec() } else { Vec::new() };
    let arguments = Import {
        db: String::new(),
        what: Vec::new(),
        create: true,
        key: None,
        engine: None,
        types,
        batch: None,
        all: None,
        precision: Unit::Ns,
        quality_field: Vec::new(),
        shape: shape.clone(),
    };
    let files = paths.iter().map(|path| File::open(path, shape.format)).collect::<Result<Vec<_>, _>>()?;
    let has_all = matches!(make, Make::By(_));
    let mut importing = Importing { database, connection: database.connect()?, arguments: &arguments, name, has_all };
    let create = match make {
        Make::By(create) => create.to_owned(),
        Make::Fitting(_) => importing.create_sql(&files)?,
    };
    importing.all(&files, Some(&create))?;
    Ok(())
}

fn nothing_named() -> Error {
    misuse("a table and a file are wanted")
        .advise("`counterfoil import DB TABLE FILE`, or see `counterfoil import --help`")
}

/// The table's name as SQL would understand it: in lower case, unless it is written in quotes or already is one.
fn table_name(database: &Database, text: &str) -> Result<String, Error> {
    if let Some(inner) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        return Ok(inner.replace("\"\"", "\""));
    }
    let known = database.table_names()?;
    if known.iter().any(|name| name == text) {
        return Ok(text.to_owned());
    }
    Ok(text.strip_prefix("public.").unwrap_or(text).to_lowercase())
}

/// A file and how it is read.
pub struct File {
    source: Source,
    format: Format,
}

impl File {
    fn open(path: &Path, format: Option<Format>) -> Result<Self, Error> {
        let source = Source::open(path)?;
        let format = match format {
            Some(format) => format,
            None => format_of(source.name()),
        };
        match format {
            Format::Csv | Format::Jsonl | Format::Parquet | Format::Arrow => Ok(Self { source, format }),
            Format::Json => Ok(Self { source, format: Format::Jsonl }),
            Format::Influx => Err(misuse("line protocol names its tables itself")
                .at(source.place())
                .advise("leave the table out: `counterfoil import DB FILE.lp`")),
            _ => Err(misuse("files are read as csv, jsonl, parquet, arrow or influx").at(source.place())),
        }
    }

    fn place(&self) -> String {
        self.source.place()
    }
}

/// The format that a file's name says.
pub fn format_of(name: &str) -> Format {
    let extension = Path::new(name).extension().map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("parquet" | "pq") => Format::Parquet,
        Some("jsonl" | "ndjson" | "json") => Format::Jsonl,
        Some("arrow" | "arrows") => Format::Arrow,
        Some("lp" | "influx") => Format::Influx,
        _ => Format::Csv,
    }
}

struct Importing<'a> {
    database: &'a Database,
    connection: Connection,
    arguments: &'a Import,
    name: &'a str,
    /// Whether a file that lacks a column of the table is refused.
    has_all: bool,
}

impl Importing<'_> {
    fn fields(&self) -> &Fields {
        &self.arguments.shape.fields
    }

    /// Brings files in, one after the other. The first makes the table, if it is to be made.
    fn all(&mut self, files: &[File], create: Option<&str>) -> Result<u64> {
        let mut rows = 0;
        for (index, file) in files.iter().enumerate() {
            rows += self.file(file, create.filter(|_| index == 0))?;
        }
        Ok(rows)
    }

    /// CREATE TABLE with types that fit every value of every file.
    fn create_sql(&self, files: &[File]) -> Result<String> {
        let mut columns: Vec<(String, String)> = Vec::new();
        let mut texts: Vec<(String, infer::Guess)> = Vec::new();
        for file in files {
            let place = file.place();
            if file.format == Format::Parquet {
                merge(&mut columns, parquet::columns(&file.source)?, &place)?;
            } else if file.format == Format::Arrow {
                merge(&mut columns, ipc::columns(&file.source)?, &place)?;
            } else {
                let progress = Progress::begin("looking at", &file.source);
                let seen = Texts::new(file, self.fields()).guess(&mut texts, &progress);
                seen.map_err(|error| error.at(&place))?;
            }
        }
        if !columns.is_empty() && !texts.is_empty() {
            return Err(misuse("Parquet or Arrow and other files cannot make one table")
                .advise("import them one by one")
                .into());
        }
        if columns.is_empty() {
            let inferred = |(name, guess): &(String, infer::Guess)| {
                let kind: Inferred = guess.settle();
                (name.clone(), kind.sql().into_owned())
            };
            columns = texts.iter().map(inferred).collect();
            self.say_types(&mut columns)?;
        } else if !self.arguments.types.is_empty() {
            return Err(misuse("the columns of Parquet have types of their own").advise("leave --type out").into());
        }
        if columns.is_empty() {
            return Err(input("there is no column in it").at(files[0].place()).advise("check the file").into());
        }
        let key = self.key(&columns)?;
        let parts = columns.iter().map(|(name, kind)| format!("{} {kind}", quoted(name)));
        let parts: Vec<String> = parts.chain(key).collect();
        let with =
            self.arguments.engine.as_ref().map(|engine| format!(" WITH (engine = '{}')", engine.replace('\'', "''")));
        Ok(format!("CREATE TABLE {} ({}){}", quoted(self.name), parts.join(", "), with.unwrap_or_default()))
    }

    /// Types that were said in place of those that would fit.
    fn say_types(&self, columns: &mut [(String, String)]) -> Result<()> {
        for (name, kind) in &self.arguments.types {
            let at = place_of(columns, name, "--type")?;
            columns[at].1.clone_from(kind);
        }
        Ok(())
    }

    /// The PRIMARY KEY asked for.
    fn key(&self, columns: &[(String, String)]) -> Result<Option<String>> {
        let Some(key) = &self.arguments.key else { return Ok(None) };
        let mut names = Vec::new();
        for wanted in key.split(',').map(str::trim) {
            names.push(quoted(&columns[place_of(columns, wanted, "the key")?].0));
        }
        Ok(Some(format!("PRIMARY KEY ({})", names.join(", "))))
    }

    /// Brings in one file: whole, or in batches if that was asked for.
    fn file(&mut self, file: &File, create: Option<&str>) -> Result<u64> {
        let place = file.place();
        let rows = match self.arguments.batch {
            None => self.whole(file, create),
            Some(batch) => self.in_batches(file, create, batch),
        };
        rows.map_err(|failure| failure.at(&place))
    }

    fn whole(&mut self, file: &File, create: Option<&str>) -> Result<u64> {
        self.connection.execute("BEGIN", &[])?;
        let result = self.create_and_load(file, create);
        match result {
            Ok(rows) => {
                self.connection.execute("COMMIT", &[])?;
                // Clouds are told behind it.
                self.notices();
                Ok(rows)
            }
            Err(error) => {
                // The first error is the one to tell.
                let _ = self.connection.execute("ROLLBACK", &[]);
                Err(error)
            }
        }
    }

    fn create_and_load(&mut self, file: &File, create: Option<&str>) -> Result<u64> {
        if let Some(create) = create {
            self.connection.execute(create, &[])?;
        }
        let (columns, mut batches, progress) = self.read(file)?;
        let mut watched = batches.by_ref().inspect(|_| progress.tick());
        let rows = self.connection.load(self.name, &columns, &mut watched)?;
        self.notices();
        Ok(rows)
    }

    /// What the database said beside how many rows there were.
    fn notices(&mut self) {
        for notice in self.connection.take_notices() {
            terminal::note(format_args!("{notice}"));
        }
    }

    fn in_batches(&mut self, file: &File, create: Option<&str>, batch_rows: u64) -> Result<u64> {
        if let Some(create) = create {
            self.connection.execute(create, &[])?;
        }
        let (columns, batches, progress) = self.read(file)?;
        let mut cut = Cut { batches, rest: None, failed: None, ended: false };
        let mut rows = 0;
        while !cut.ended {
            let mut left = usize::try_from(batch_rows).unwrap_or(usize::MAX);
            let mut some = std::iter::from_fn(|| cut.next(&mut left)).inspect(|_| progress.tick());
            let loaded = self.connection.load(self.name, &columns, &mut some);
            if loaded.is_err() && rows > 0 {
                let place = file.place();
                terminal::warning(format_args!(
                    "the first {rows} rows of {place} are in, in batches of {batch_rows}: import the others"
                ));
            }
            rows += loaded?;
            self.notices();
        }
        Ok(rows)
    }

    /// The columns that a file has, and its rows.
    fn read(&mut self, file: &File) -> Result<(Vec<String>, Batches, Progress)> {
        let columns = self.columns()?;
        let progress = Progress::begin("importing", &file.source);
        let (names, batches) = match file.format {
            Format::Parquet => parquet::read(&file.source, &columns)?,
            Format::Arrow => ipc::read(&file.source, &columns)?,
            _ => Texts::new(file, self.fields()).read(&columns, self.arguments.create)?,
        };
        if let Some(missing) = columns.iter().find(|column| self.has_all && !names.contains(&column.name)) {
            let what = format!("column {} of table {} is not in the file", missing.name, self.name);
            return Err(input(what).advise("a table keeps its columns: add it, empty if need be").into());
        }
        Ok((names, batches, progress))
    }

    /// The table's columns, as this transaction sees them.
    fn columns(&mut self) -> Result<Vec<ColumnInfo>> {
        let _ = self.database;
        self.connection.columns(self.name)?.ok_or_else(|| {
            Error::new(Kind::NotFound, format!("no table {}", self.name)).advise("add --create to make it").into()
        })
    }
}

/// Where the column of this name is, in any case of its letters if none is called exactly so.
fn place_of(columns: &[(String, String)], wanted: &str, what_for: &str) -> Result<usize> {
    let found = columns.iter().position(|(name, _)| name == wanted);
    let found = found.or_else(|| columns.iter().position(|(name, _)| name.eq_ignore_ascii_case(wanted)));
    let names = || columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    let none = || misuse(format!("no column {wanted} for {what_for}")).advise(format!("there are {}", names()));
    Ok(found.ok_or_else(none)?)
}

/// Adds the columns of another file; what has one name has to have one type.
fn merge(columns: &mut Vec<(String, String)>, more: Vec<(String, String)>, place: &str) -> Result<()> {
    for (name, kind) in more {
        match columns.iter().find(|(known, _)| *known == name) {
            Some((_, known)) if *known != kind => {
                return Err(input(format!("column {name} is {kind} here and {known} in another file"))
                    .at(place)
                    .into());
            }
            Some(_) => {}
            None => columns.push((name, kind)),
        }
    }
    Ok(())
}

/// Cuts a stream of batches into stretches of a given number of rows.
struct Cut {
    batches: Batches,
    rest: Option<RecordBatch>,
    /// Why there is no more: an error of the stretch that it would be in, and of none before.
    failed: Option<Error>,
    ended: bool,
}

impl Cut {
    fn next(&mut self, left: &mut usize) -> Option<Result<RecordBatch, Error>> {
        if let Some(error) = self.failed.take_if(|_| *left > 0) {
            return Some(Err(error));
        }
        if *left == 0 {
            // Looked ahead, so that the last stretch is known to be the last.
            if self.rest.is_none() && self.failed.is_none() {
                match self.batches.next() {
                    None => self.ended = true,
                    Some(Ok(batch)) => self.rest = Some(batch),
                    Some(Err(error)) => self.failed = Some(error),
                }
            }
            return None;
        }
        let batch = match self.rest.take() {
            Some(batch) => batch,
            None => match self.batches.next() {
                Some(Ok(batch)) => batch,
                Some(Err(error)) => return Some(Err(error)),
                None => {
                    self.ended = true;
                    return None;
                }
            },
        };
        if batch.num_rows() > *left {
            self.rest = Some(batch.slice(*left, batch.num_rows() - *left));
        }
        let taken = batch.slice(0, batch.num_rows().min(*left));
        *left -= taken.num_rows();
        Some(Ok(taken))
    }
}
