//! `kv`: records by name.

use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;

use counterfoil::{Error, Kind, Records};

use crate::arguments::{Kv, KvAction};
use crate::closing;
use crate::context::Context;
use crate::failure::{Failure, Result, input};
use crate::image;

pub fn run(context: &Context, arguments: &Kv) -> Result<()> {
    if image::is_one(&arguments.db)? {
        return image::run_kv(context, &arguments.db, &arguments.action);
    }
    match &arguments.action {
        KvAction::Get { name } => {
            let database = context.open_to_read(&arguments.db)?;
            let value = database.records().get(name)?.ok_or_else(|| absent(name))?;
            write(&value)
        }
        KvAction::Put { name, file } => {
            let value = read(file.as_deref())?;
            let database = context.open(&arguments.db)?;
            database.records().put(name, &value)?;
            closing::close(database)
        }
        KvAction::Delete { name } => {
            let database = context.open(&arguments.db)?;
            let records = database.records();
            for name in name {
                if records.get(name)?.is_none() {
                    return Err(absent(name).into());
                }
            }
            let names: Vec<&str> = name.iter().map(String::as_str).collect();
            records.delete(&names)?;
            drop(records);
            closing::close(database)
        }
        KvAction::List { prefix } => {
            let database = context.open_to_read(&arguments.db)?;
            let names = database.records().list(prefix.as_deref().unwrap_or_default())?;
            list(&names)
        }
    }
}

/// The bytes of a record, as they are.
pub fn write(value: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(value).and_then(|()| stdout.flush()).map_err(Failure::output)
}

/// The names of records, a line each.
pub fn list(names: &[(String, usize)]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    let mut put = || -> io::Result<()> {
        names.iter().try_for_each(|(name, _)| writeln!(stdout, "{name}"))?;
        stdout.flush()
    };
    put().map_err(Failure::output)
}

pub fn absent(name: &str) -> Error {
    Error::new(Kind::NotFound, format!("no record {name}")).advise("see `counterfoil kv DB list`")
}

/// The value that is to be kept.
pub fn read(file: Option<&Path>) -> Result<Vec<u8>, Error> {
    let path = file.unwrap_or(Path::new("-"));
    let mut bytes = Vec::new();
    let limit = Records::VALUE_BYTES_MAX as u64 + 1;
    let read = if path.as_os_str() == "-" {
        if io::stdin().is_terminal() && file.is_none() {
            crate::terminal::note("reading the value from standard input: end it with Ctrl-D");
        }
        io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    read.map_err(|error| Error::host("read the file", path.display(), &error))?;
    if bytes.len() as u64 == limit {
        return Err(input("the value is too large for a record")
            .at(path.display())
            .advise(format!("{} bytes fit at most", Records::VALUE_BYTES_MAX)));
    }
    Ok(bytes)
}
