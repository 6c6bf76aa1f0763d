//! `export`: a table, a query's rows, or everything, to files.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use counterfoil::{Connection, Database, Error, Kind, Rows, quoted};

use crate::arguments::{Export, Format};
use crate::begun::Begun;
use crate::context::Context;
use crate::failure::{Result, misuse};
use crate::import::format_of;
use crate::output::Style;
use crate::private;
use crate::terminal::{self, Unfinished, counted};

pub fn run(context: &Context, arguments: &Export) -> Result<()> {
    let is_kept = arguments.what.last().is_none_or(|path| path.as_os_str() != "-");
    terminal::when_interrupted(if is_kept { "nothing was exported" } else { "not all rows were written" });
    // One snapshot for the schema, all tables and the records.
    let database = Database::open(context.options(&arguments.db)?.read_only(true).as_of_opening(true))?;
    if let Some(folder) = &arguments.all {
        if !arguments.what.is_empty() {
            return Err(misuse("--all takes no table and no file").into());
        }
        return all(&database, folder, arguments);
    }
    let (sql, path) = match (&arguments.query, arguments.what.as_slice()) {
        (Some(query), [path]) => (query.clone(), path),
        (None, [table, path]) => (select_all(&database, &table.to_string_lossy())?, path),
        _ => {
            return Err(misuse("a table and a file are wanted, or --query SQL and a file")
                .advise("see `counterfoil export --help`")
                .into());
        }
    };
    let style = style(arguments, path)?;
    let mut connection = database.connect()?;
    let rows = connection.query(&sql, &[])?;
    let count = write_file(rows, &style, path)?;
    notices(&mut connection);
    if path.as_os_str() != "-" {
        terminal::done(format_args!("{}: {}", path.display(), counted(count, "row")));
    }
    Ok(())
}

fn style(arguments: &Export, path: &Path) -> Result<Style> {
    let named = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let format = match arguments.shape.format {
        None if is_packed(&named) => {
            return Err(Error::new(Kind::NotSupported, "not supported: packing what is exported")
                .at(path.display())
                .advise("export to - and pack what comes out")
                .into());
        }
        None => format_of(&named),
        Some(Format::Table | Format::Influx) => {
            return Err(misuse("files are written as csv, jsonl, json, parquet or arrow").into());
        }
        Some(format) => format,
    };
    Ok(Style::new(format, &arguments.shape.fields))
}

/// Whether a name promises what is not done.
fn is_packed(name: &str) -> bool {
    let extension = Path::new(name).extension().map(|extension| extension.to_string_lossy().to_lowercase());
    matches!(extension.as_deref(), Some("gz" | "zip" | "zst" | "bz2" | "xz"))
}

/// Schemas whose tables are not those of the database.
const SCHEMAS: [&str; 3] = ["counterfoil", "information_schema", "pg_catalog"];

fn select_all(database: &Database, table: &str) -> Result<String, Error> {
    let known = database.table_names()?;
    let is_known = |name: &str| known.iter().any(|known| known == name);
    let own = table.strip_prefix("public.").filter(|_| !is_known(table)).unwrap_or(table);
    let inner = own.strip_prefix('"').and_then(|name| name.strip_suffix('"')).map(|name| name.replace("\"\"", "\""));
    let exact = inner.unwrap_or_else(|| own.to_owned());
    // What the database says of itself has a schema of its own.
    let of_schema = table.split_once('.').map(|(schema, name)| (schema.to_lowercase(), name.to_lowercase()));
    if let Some((schema, name)) = of_schema.filter(|(schema, _)| SCHEMAS.contains(&schema.as_str()))
        && !is_known(&exact)
    {
        return Ok(format!("SELECT * FROM {}.{}", quoted(&schema), quoted(&name)));
    }
    // A view is found by its name in lower case, as SQL finds it.
    let name = if is_known(&exact) { exact } else { exact.to_lowercase() };
    Ok(format!("SELECT * FROM {}", quoted(&name)))
}

/// Writes rows to a file that gets its name when it is complete, or to standard output.
pub fn write_file(rows: Rows, style: &Style, path: &Path) -> Result<u64> {
    if path.as_os_str() == "-" {
        return write(rows, style, Box::new(BufWriter::new(io::stdout())));
    }
    if path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
        // A pipe or a device has no name to be given later.
        let file = private::create(path)?;
        return write(rows, style, Box::new(BufWriter::new(file))).map_err(|failure| failure.of_file(path));
    }
    let host = |error: io::Error| Error::host("write the file", path.display(), &error);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut temporary = tempfile::Builder::new().prefix(".export-").tempfile_in(folder).map_err(host)?;
    let unfinished = Unfinished::at(temporary.path());
    let written = write(rows, style, Box::new(BufWriter::new(temporary.as_file_mut())));
    let count = written.map_err(|failure| failure.of_file(path).at(path.display()))?;
    temporary.persist(path).map_err(|error| host(error.error))?;
    drop(unfinished);
    Ok(count)
}

fn write<'a>(rows: Rows, style: &Style, sink: Box<dyn Write + Send + 'a>) -> Result<u64> {
    let mut writer = style.begin(rows.schema(), sink)?;
    let mut count = 0;
    for batch in rows {
        let batch = batch?;
        count += batch.num_rows() as u64;
        writer.batch(&batch)?;
    }
    writer.finish()?;
    Ok(count)
}

/// schema.sql and a file for each table, as of one moment. `import --all` rebuilds the database from them.
fn all(database: &Database, folder: &Path, arguments: &Export) -> Result<()> {
    let format = match arguments.shape.format {
        None | Some(Format::Csv) => Format::Csv,
        Some(format @ (Format::Jsonl | Format::Parquet)) => format,
        Some(_) => return Err(misuse("--all writes csv, jsonl or parquet").into()),
    };
    let style = Style { format, null: None, header: true, delimiter: b',' };
    let begun = Begun::folder(folder)?;
    let mut connection = database.connect()?;
    let mut tables = database.filled_table_names()?;
    tables.extend(database.kept_apart_names()?);
    let mut rows = 0;
    let mut index = String::new();
    for (number, table) in tables.iter().enumerate() {
        let name = file_name(number, table, format);
        rows += one_table(&mut connection, table, &style, &folder.join(&name))?;
        index.push_str(&format!("{name}\t{table}\n"));
    }
    let schema = folder.join("schema.sql");
    private::write(&schema, database.schema_sql()?)?;
    private::write(&folder.join(TABLES_FILE), index)?;
    records(database, folder)?;
    begun.finish();
    let (tables, rows) = (counted(tables.len() as u64, "table"), counted(rows, "row"));
    terminal::done(format_args!("{}: {tables}, {rows}", folder.display()));
    Ok(())
}

/// Which file is which table's: file names cannot have every letter that table names have.
pub const TABLES_FILE: &str = "tables.tsv";
/// The records by name, if there are any.
pub const RECORDS_FOLDER: &str = "records";

fn one_table(connection: &mut Connection, table: &str, style: &Style, path: &Path) -> Result<u64> {
    let rows = connection.query(&format!("SELECT * FROM {}", quoted(table)), &[])?;
    let count = write_file(rows, style, path)?;
    notices(connection);
    Ok(count)
}

/// What was said beside the rows, of clouds above all.
fn notices(connection: &mut Connection) {
    for notice in connection.take_notices() {
        terminal::note(format_args!("{notice}"));
    }
}

fn file_name(number: usize, table: &str, format: Format) -> String {
    let plain =
        table.len() <= 100 && table.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter));
    let extension = match format {
        Format::Parquet => "parquet",
        Format::Jsonl => "jsonl",
        _ => "csv",
    };
    if plain { format!("{table}.{extension}") } else { format!("table-{number}.{extension}") }
}

/// Records lie in files of their own, named by their hex digits.
fn records(database: &Database, folder: &Path) -> Result<()> {
    let records = database.records();
    let names = records.list("")?;
    if names.is_empty() {
        return Ok(());
    }
    let folder: PathBuf = folder.join(RECORDS_FOLDER);
    std::fs::create_dir(&folder).map_err(|error| Error::host("make the folder", folder.display(), &error))?;
    let mut index = String::new();
    for (number, (name, _)) in names.iter().enumerate() {
        let path = folder.join(format!("{number}"));
        let value = records.get(name)?.unwrap_or_default();
        private::write(&path, &value)?;
        let name = serde_json::to_string(name).unwrap_or_default();
        index.push_str(&format!("{{\"file\":\"{number}\",\"name\":{name}}}\n"));
    }
    Ok(private::write(&folder.join("names.jsonl"), index)?)
}
