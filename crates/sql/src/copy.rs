//! COPY: delimited text into a table, and rows out as delimited text.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use counterfoil_relation::{RowBatch, Table};
use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{
    CopyLegacyCsvOption, CopyLegacyOption, CopyOption, CopySource, CopyTarget, Ident, SelectItem, Statement,
};

use crate::assign;
use crate::change::{self, Changed};
use crate::delimited::{Field, Form, Reader, write_field};
use crate::engine::Rows;
use crate::error::{Error, Position, Result};
use crate::naming;
use crate::planner;
use crate::series;
use crate::session::{Outcome, Session, with_stack};
use crate::statement::{self, fold, table_name};
use crate::text;
use crate::transaction::Change;

/// Rows that are handed down at once: to a series table more, which writes least then.
const BATCH_ROWS: usize = 8192;
const SERIES_ROWS: usize = 1 << 17;
/// Bytes of texts from which on rows are handed down, however few they are.
const HEAP_BYTES: usize = 16 << 20;

/// The rows of COPY ... TO STDOUT, as text.
#[derive(Debug)]
pub struct CopyOut {
    rows: Rows,
    form: Form,
    /// The header is still to come.
    begins: bool,
    written: u64,
    /// Where rows of the last piece end.
    ends: Vec<usize>,
}

impl CopyOut {
    /// How many columns a row has.
    pub fn columns(&self) -> usize {
        self.rows.schema().fields().len()
    }

    /// How many rows the pieces had so far.
    pub fn rows(&self) -> u64 {
        self.written
    }

    /// Where the rows of the last piece end: who sends them one by one cuts it there.
    pub fn row_ends(&self) -> &[usize] {
        &self.ends
    }

    fn header(&self) -> String {
        let mut out = String::new();
        for (place, field) in self.rows.schema().fields().iter().enumerate() {
            if place > 0 {
                out.push(char::from(self.form.delimiter));
            }
            write_field(&mut out, Some(field.name()), &self.form);
        }
        out.push('\n');
        out
    }
}

impl Iterator for CopyOut {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.ends.clear();
        if std::mem::take(&mut self.begins) && self.form.header {
            let header = self.header();
            self.ends.push(header.len());
            return Some(Ok(header.into_bytes()));
        }
        let batch = match self.rows.next()? {
            Ok(batch) => batch,
            Err(error) => return Some(Err(error)),
        };
        self.written += batch.num_rows() as u64;
        let mut out = String::new();
        let mut cell = String::new();
        for row in 0..batch.num_rows() {
            for (place, column) in batch.columns().iter().enumerate() {
                if place > 0 {
                    out.push(char::from(self.form.delimiter));
                }
                cell.clear();
                if let Err(error) = text::write_cell(&mut cell, column.as_ref(), row) {
                    return Some(Err(error));
                }
                if *column.data_type() == DataType::Boolean {
                    // As PostgreSQL writes them.
                    cell.truncate(1);
                }
                let null = column.is_null(row) || column.data_type().is_null();
                write_field(&mut out, (!null).then_some(cell.as_str()), &self.form);
            }
            out.push('\n');
            self.ends.push(out.len());
        }
        Some(Ok(out.into_bytes()))
    }
}

impl Session {
    /// COPY from and to files, and to the standard output.
    pub(crate) fn copy(&mut self, statement: &Statement) -> Result<Outcome> {
        let Statement::Copy { source, to, target, options, legacy_options, values } = statement else {
            return Err(Error::Bug("COPY".into()));
        };
        let name = match target {
            CopyTarget::File { filename } => Some(filename.as_str()),
            CopyTarget::Stdin | CopyTarget::Stdout => None,
            CopyTarget::Program { .. } => return Err(Error::NotSupported("COPY with PROGRAM".into())),
        };
        if name.is_some() {
            self.rights.to_host_files()?;
        }
        let form = form(options, legacy_options, name)?;
        match (to, name) {
            (true, None) => self.copy_out(source, form).map(Outcome::CopyOut),
            (true, Some(file)) => {
                let out = self.copy_out(source, form)?;
                write_file(file, out)
            }
            (false, Some(file)) => {
                let input = File::open(file).map_err(|error| cannot("read", file, &error))?;
                self.copy_in_form(source, form, &mut BufReader::new(input)).map_err(|error| error.in_file(file))
            }
            (false, None) if !values.is_empty() => self.copy_values(source, values),
            (false, None) => Err(Error::Misuse("COPY ... FROM STDIN: give the rows with copy_in".into())),
        }
    }

    /// Runs `COPY ... FROM STDIN` with the rows that `input` gives.
    ///
    /// # Errors
    /// [`Error::Misuse`] for any other statement, [`Error::Input`] naming the line of text that is no record, and
    /// whatever the rows break. Nothing of the rows stays then.
    pub fn copy_in(&mut self, sql: &str, input: &mut dyn BufRead) -> Result<Outcome> {
        self.planner.interrupt.clear();
        self.notices.clear();
        with_stack(sql, || self.copy_in_here(sql, input))
    }

    fn copy_in_here(&mut self, sql: &str, input: &mut dyn BufRead) -> Result<Outcome> {
        self.begin_statement()?;
        let statements = statement::parse(sql)?;
        let [Statement::Copy { source, to: false, target: CopyTarget::Stdin, options, legacy_options, .. }] =
            statements.as_slice()
        else {
            return Err(Error::Misuse("copy_in takes one COPY ... FROM STDIN".into()));
        };
        let outcome = self.copy_in_form(source, form(options, legacy_options, None)?, input);
        if outcome.is_err() {
            self.guard.transaction.fail();
        }
        self.tell_clouds();
        outcome
    }

    fn copy_out(&mut self, source: &CopySource, form: Form) -> Result<CopyOut> {
        let mut query = match source {
            CopySource::Query(query) => (**query).clone(),
            CopySource::Table { table_name: name, columns } => {
                let name = table_name(name)?;
                let from = vec![planner::select_from(&name, &name)];
                let items = columns.iter().map(|column| change::column_item(&name, &fold(column), &fold(column)));
                let items: Vec<SelectItem> =
                    if columns.is_empty() { vec![SelectItem::Wildcard(Default::default())] } else { items.collect() };
                change::select(None, items, from, None)
            }
        };
        naming::name_query(&mut query, naming::Names::Written);
        self.follow(&query)?;
        let snapshot = self.view()?;
        let plan = self.planner.plan_query(query, &snapshot, Vec::new())?;
        Ok(CopyOut { rows: self.rows(&plan)?, form, begins: true, written: 0, ends: Vec::new() })
    }

    fn copy_in_form(&mut self, source: &CopySource, form: Form, input: &mut dyn BufRead) -> Result<Outcome> {
        let mut reader = Reader::new(input, form.clone());
        let header = if form.header { reader.record()? } else { None };
        self.copy_records(source, &mut |records| {
            if header.as_ref().is_some_and(|header| header.len() != records.columns) {
                let error = Error::Input(format!("the header has not {} names", records.columns));
                return Err(error.at(Position::Rows { line: 1 }));
            }
            while let Some(record) = reader.record()? {
                records.add(reader.line(), &record)?;
            }
            Ok(())
        })
    }

    /// The rows that stand in the text of the statement itself.
    fn copy_values(&mut self, source: &CopySource, values: &[Field]) -> Result<Outcome> {
        self.copy_records(source, &mut |records| {
            for (row, record) in values.chunks(records.columns.max(1)).enumerate() {
                records.add(row as u64 + 1, record)?;
            }
            Ok(())
        })
    }

    fn copy_records(
        &mut self,
        source: &CopySource,
        read: &mut dyn FnMut(&mut Records<'_>) -> Result<()>,
    ) -> Result<Outcome> {
        let CopySource::Table { table_name: name, columns } = source else {
            return Err(Error::Sql("COPY FROM puts rows into a table".into()));
        };
        let name = table_name(name)?;
        self.lease_named(&name)?;
        let rows = self.change(|session, change| {
            let table = planner::rows_of(session.engine(), &*change.lease, &name)?;
            let places = places(&table, columns)?;
            let changed = Changed::new(table.clone(), false, &[]);
            let batch = RowBatch::new(table.layout(), 0);
            let mut records =
                Records { columns: places.len(), session, change, places, changed, batch, row: Vec::new() };
            read(&mut records)?;
            records.flush()?;
            let Records { session, change, changed, .. } = records;
            Ok(changed.finish(session, change)?.rows)
        })?;
        Ok(Outcome::Count { tag: "COPY", rows })
    }
}

/// Records on their way into a table.
struct Records<'a> {
    columns: usize,
    session: &'a mut Session,
    change: &'a mut Change,
    places: Vec<usize>,
    changed: Changed,
    batch: RowBatch,
    row: Vec<usize>,
}

impl Records<'_> {
    fn add(&mut self, line: u64, record: &[Field]) -> Result<()> {
        if record.len() != self.places.len() {
            let (fields, columns) = (record.len(), self.places.len());
            let error = Error::Input(format!("{fields} fields for {columns} columns"));
            return Err(error.at(Position::Rows { line }));
        }
        let row = self.batch.grow(1);
        for (field, place) in record.iter().zip(&self.places) {
            let Some(text) = field else { continue };
            let column = &self.changed.table.columns[*place];
            let stored = assign::text_as(text, &column.kind).map_err(|misfit| {
                Error::Input(misfit.error(&column.name, &column.kind, "text").to_string()).at(Position::Rows { line })
            })?;
            self.batch.set(row, *place, stored.borrow()).map_err(Error::Relation)?;
        }
        self.row.push(row);
        let enough = if series::is_series(&self.changed.table) { SERIES_ROWS } else { BATCH_ROWS };
        if self.batch.count() >= enough || self.batch.heap().len() >= HEAP_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let table = self.changed.table.clone();
        let empty = RowBatch::new(table.layout(), 0);
        let mut batch = std::mem::replace(&mut self.batch, empty);
        let rows = std::mem::take(&mut self.row);
        if rows.is_empty() {
            return Ok(());
        }
        self.session.planner.interrupt.check()?;
        for place in (0..table.columns.len()).filter(|place| !self.places.contains(place)) {
            self.session.fill_default(self.change, &table, &mut batch, place, &rows)?;
        }
        self.session.store(self.change, batch, &mut self.changed)
    }
}

fn places(table: &Table, columns: &[Ident]) -> Result<Vec<usize>> {
    if columns.is_empty() {
        return Ok((0..table.columns.len()).collect());
    }
    columns.iter().map(|column| change::place(table, &fold(column))).collect()
}

fn write_file(file: &str, out: CopyOut) -> Result<Outcome> {
    let failed = |error: std::io::Error| cannot("written", file, &error);
    // Rows in the clear, for whoever asked for them and nobody else; a file that is there keeps its permissions.
    let made = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file);
    let mut writer = BufWriter::new(made.map_err(failed)?);
    let mut out = out;
    for chunk in out.by_ref() {
        writer.write_all(&chunk?).map_err(failed)?;
    }
    writer.flush().map_err(failed)?;
    Ok(Outcome::Count { tag: "COPY", rows: out.written })
}

/// What the system said about a file. A name that is wrong is nothing that ails the machine.
fn cannot(be: &str, file: &str, error: &std::io::Error) -> Error {
    let text = error.to_string();
    let why = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
    let told = |advice: &str| format!("the file cannot be {be}: {why} ({file}): {advice}");
    match error.kind() {
        ErrorKind::NotFound => Error::NotFound(told("check the name")),
        ErrorKind::IsADirectory | ErrorKind::NotADirectory | ErrorKind::InvalidInput => {
            Error::Misuse(told("check the name"))
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Error::Host(told("check the permissions")),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Error::Host(told("make room and try again")),
        _ => Error::Host(told("see the system's log")),
    }
}

/// The form that the options ask for; a file named .csv is CSV with a header unless they say otherwise.
fn form(options: &[CopyOption], legacy: &[CopyLegacyOption], file: Option<&str>) -> Result<Form> {
    let named = file.and_then(|file| Path::new(file).extension()).is_some_and(|end| end.eq_ignore_ascii_case("csv"));
    let asked = options.iter().find_map(|option| match option {
        CopyOption::Format(name) => Some(fold(name)),
        _ => None,
    });
    let legacy_csv = legacy.iter().any(|option| matches!(option, CopyLegacyOption::Csv(_)));
    let mut form = match asked.as_deref() {
        Some("csv") => Form::csv(),
        Some("text") => Form::text(),
        Some(other) => return Err(Error::NotSupported(format!("COPY with FORMAT {other}"))),
        None if legacy_csv => Form::csv(),
        None if named => Form { header: true, ..Form::csv() },
        None => Form::text(),
    };
    let mut escape = None;
    for option in options {
        match option {
            CopyOption::Format(_) | CopyOption::Freeze(_) => {}
            CopyOption::Delimiter(letter) => form.delimiter = delimiter(*letter)?,
            CopyOption::Null(text) => form.null = text.clone(),
            CopyOption::Header(header) => form.header = *header,
            CopyOption::Quote(letter) => form.quote = byte(*letter)?,
            CopyOption::Escape(letter) => escape = Some(byte(*letter)?),
            CopyOption::Encoding(name) if name.eq_ignore_ascii_case("utf8") || name.eq_ignore_ascii_case("utf-8") => {}
            other => return Err(Error::NotSupported(format!("COPY with {other}"))),
        }
    }
    for option in legacy {
        match option {
            CopyLegacyOption::Delimiter(letter) => form.delimiter = delimiter(*letter)?,
            CopyLegacyOption::Null(text) => form.null = text.clone(),
            CopyLegacyOption::Header => form.header = true,
            CopyLegacyOption::Csv(options) => {
                for option in options {
                    match option {
                        CopyLegacyCsvOption::Header => form.header = true,
                        CopyLegacyCsvOption::Quote(letter) => form.quote = byte(*letter)?,
                        CopyLegacyCsvOption::Escape(letter) => escape = Some(byte(*letter)?),
                        other => return Err(Error::NotSupported(format!("COPY with {other}"))),
                    }
                }
            }
            other => return Err(Error::NotSupported(format!("COPY with {other}"))),
        }
    }
    // A quote is doubled, if nothing else is said.
    form.escape = escape.unwrap_or(form.quote);
    Ok(form)
}

fn byte(letter: char) -> Result<u8> {
    let plain = u8::try_from(letter).ok().filter(|byte| byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | b'\0'));
    plain.ok_or_else(|| Error::Sql("delimiters and quotes of COPY are single ASCII letters".into()))
}

fn delimiter(letter: char) -> Result<u8> {
    match byte(letter)? {
        b'\\' => Err(Error::Sql("a backslash is no delimiter of COPY".into())),
        byte => Ok(byte),
    }
}
