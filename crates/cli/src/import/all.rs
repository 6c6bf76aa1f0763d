//! `import --all`: a whole database from the folder that `export --all` wrote.

use std::path::Path;

use counterfoil::{Connection, Error, Kind};

use super::progress::Progress;
use super::source::Source;
use super::text::Texts;
use super::{File, format_of, ipc, parquet};
use crate::arguments::{Fields, Format};
use crate::closing;
use crate::context::Context;
use crate::export::{RECORDS_FOLDER, TABLES_FILE};
use crate::failure::{Result, input, misuse};
use crate::import::json::{Value, object};
use crate::terminal::{self, counted};
use counterfoil::statements;

/// Everything in one transaction, into a database without tables.
pub fn run(context: &Context, db: &str, folder: &Path, format: Option<Format>) -> Result<()> {
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path).map_err(|error| Error::host("read the file", path.display(), &error))
    };
    let schema = read("schema.sql")?;
    let list = read(TABLES_FILE)?;
    let database = context.open(db)?;
    if !database.table_names()?.is_empty() {
        return Err(misuse("the database has tables already").at(db).advise("import into a new one").into());
    }
    let mut rows = 0;
    let mut tables = 0;
    let stored;
    {
        let mut connection = database.connect()?;
        connection.execute("BEGIN", &[])?;
        // What a series table has stored is not to be thinned a second time, nor held against another clock.
        connection.execute("SET as_given = on", &[])?;
        for statement in statements::split(&schema) {
            let line = statement.line;
            let place = || format!("{} line {line}", folder.join("schema.sql").display());
            connection.execute(statement.text, &[]).map_err(|error| error.at(place()))?;
        }
        for entry in list.lines() {
            let (file, table) = entry.split_once('\t').ok_or_else(|| {
                input("a line without a tab").at(folder.join(TABLES_FILE).display()).advise("export again")
            })?;
            rows += table_of(&mut connection, table, &plain_name(folder, file)?, format)?;
            tables += 1;
        }
        stored = records(&mut connection, folder)?;
        connection.execute("COMMIT", &[])?;
    }
    closing::close(database)?;
    let (tables, rows, records) = (counted(tables, "table"), counted(rows, "row"), counted(stored, "record"));
    terminal::done(format_args!("{db}: {tables}, {rows}, {records}"));
    Ok(())
}

/// A file of the folder, and of nowhere else.
fn plain_name(folder: &Path, name: &str) -> Result<std::path::PathBuf, Error> {
    if name.is_empty() || name.contains('/') || name == ".." {
        return Err(input("a name that leads out of the folder").at(folder.display()).advise("export again"));
    }
    Ok(folder.join(name))
}

fn table_of(connection: &mut Connection, table: &str, path: &Path, format: Option<Format>) -> Result<u64> {
    let source = Source::open(path)?;
    let place = source.place();
    let columns = connection
        .columns(table)?
        .ok_or_else(|| Error::new(Kind::NotFound, format!("schema.sql makes no table {table}")).at(&place))?;
    let format = format.unwrap_or_else(|| format_of(source.name()));
    let file = File { source, format };
    let progress = Progress::begin("importing", &file.source);
    let fields = Fields { null: None, no_header: false, delimiter: b',' };
    let read = match format {
        Format::Parquet => parquet::read(&file.source, &columns),
        Format::Arrow => ipc::read(&file.source, &columns),
        _ => Texts::new(&file, &fields).read(&columns, false),
    };
    let (names, batches) = read.map_err(|error| error.at(&place))?;
    let mut watched = batches.inspect(|_| progress.tick());
    Ok(connection.load(table, &names, &mut watched).map_err(|error| error.at(&place))?)
}

fn records(connection: &mut Connection, folder: &Path) -> Result<u64> {
    let folder = folder.join(RECORDS_FOLDER);
    let path = folder.join("names.jsonl");
    let Ok(list) = std::fs::read_to_string(&path) else { return Ok(0) };
    let mut count = 0;
    for line in list.lines() {
        let members = object(line).map_err(|why| input(why).at(path.display()).advise("export again"))?;
        let member = |wanted: &str| match members.iter().find(|(name, _)| name == wanted) {
            Some((_, Value::Text(text))) => Ok(text.to_string()),
            _ => Err(input(format!("a line without {wanted}")).at(path.display()).advise("export again")),
        };
        let file = plain_name(&folder, &member("file")?)?;
        let value = std::fs::read(&file).map_err(|error| Error::host("read the file", file.display(), &error))?;
        connection.put_record(&member("name")?, &value).map_err(|error| error.at(file.display()))?;
        count += 1;
    }
    Ok(count)
}
