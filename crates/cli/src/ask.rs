//! `ask`: a question to a server that nobody trusts, and rows only if they are the owner's.

mod remembered;
mod shown;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use counterfoil::publishing::Http;
use counterfoil::{Error, Kind};
use counterfoil_ask::Asked;
use counterfoil_mirror::site::{Fetch, Folder};
use counterfoil_proof::Owner;
use counterfoil_reader as reader;
use counterfoil_reader::{KEPT_BYTES_MAX, Kept, Memory, Reading, Terms};

use crate::arguments::Ask;
use crate::failure::{Result, misuse};
use crate::output::Style;
use crate::private;
use crate::terminal::{self, Working};
use remembered::Remembered;

pub fn run(arguments: &Ask) -> Result<()> {
    let owner: Owner =
        arguments.owner.parse().map_err(|error: counterfoil_proof::NoOwner| misuse(error.to_string()))?;
    let style = Style::for_standard_output(arguments.shape.format, &arguments.shape.fields)?;
    if let Some(path) = &arguments.check {
        return look_again(path, &owner, arguments, &style);
    }
    let (Some(sql), Some(server)) = (&arguments.sql, &arguments.server) else {
        return Err(misuse("a SELECT and a server are wanted").into());
    };
    if let Some(path) = arguments.save.as_ref().filter(|path| path.symlink_metadata().is_ok()) {
        return Err(misuse("there is something of this name already").at(path.display()).into());
    }
    let reading = ask(sql, server, &owner, arguments)?;
    if arguments.explain {
        terminal::show(format_args!("plan: {}", reading.plan));
    }
    if let Some(path) = &arguments.save {
        private::write_new(path, &reading.kept.to_bytes())?;
    }
    shown::print(&reading.table, &style)?;
    terminal::done(format_args!("verified: {}", reading.verdict));
    Ok(())
}

fn ask(sql: &str, server: &str, owner: &Owner, arguments: &Ask) -> Result<Reading> {
    let table = Asked::table_of(sql).map_err(|error| told(error.into(), server))?;
    let remembered = Remembered::of(owner, &table);
    let before = remembered.read()?;
    let mut memory = before.clone();
    let terms = Terms {
        owner: *owner,
        now: milliseconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
        clock_error: milliseconds(arguments.clock_error),
        max_age: arguments.max_age.map_or(u64::MAX, milliseconds),
        hints: !arguments.compact,
    };
    let read = read(&mut *fetch(server)?, sql, &terms, &mut memory);
    // What was seen is remembered even if the rows are refused: it was the owner's.
    if let Some(memory) = memory.filter(|memory| before.as_ref() != Some(memory)) {
        remembered.write(&memory)?;
    }
    Ok(read.map_err(|error| told(error, server))?)
}

/// Asks; once more if the server was brought up to date meanwhile, so that a page of before is gone.
fn read(
    fetch: &mut dyn Fetch,
    sql: &str,
    terms: &Terms,
    memory: &mut Option<Memory>,
) -> Result<Reading, reader::Error> {
    let _working = Working::begin("asking");
    match reader::read(fetch, sql, terms, memory) {
        Err(reader::Error::Withheld(_)) => reader::read(fetch, sql, terms, memory),
        read => read,
    }
}

/// What brings a server's bytes.
fn fetch(server: &str) -> Result<Box<dyn Fetch>, Error> {
    Ok(match folder(server) {
        Some(folder) => Box::new(Folder(folder)),
        None => Box::new(Http::at(server)?),
    })
}

/// The folder that a server's name means, if it is none of a network.
fn folder(server: &str) -> Option<PathBuf> {
    match server.split_once("://") {
        Some(("file", path)) => Some(PathBuf::from(path)),
        Some(_) => None,
        None => Some(PathBuf::from(server)),
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn look_again(path: &Path, owner: &Owner, arguments: &Ask, style: &Style) -> Result<()> {
    let place = path.display().to_string();
    let read = |error: std::io::Error| Error::host("read the file", &place, &error);
    if std::fs::metadata(path).map_err(read)?.len() > KEPT_BYTES_MAX as u64 {
        return Err(misuse("a kept answer of more than a gigabyte").at(&place).into());
    }
    let kept = Kept::from_bytes(&std::fs::read(path).map_err(read)?).map_err(|error| told(error, &place))?;
    let checked = kept.check(owner, milliseconds(arguments.clock_error));
    let (table, verdict) = checked.map_err(|error| told(error, &place))?;
    terminal::done(format_args!("asked at {}: {}", shown::moment(kept.at()), kept.sql()));
    shown::print(&table, style)?;
    terminal::done(format_args!("verified: {verdict}, when it was asked"));
    Ok(())
}

/// A reader's error as the program tells it, at the server or file it is about.
fn told(error: reader::Error, place: &str) -> Error {
    let (kind, advice) = match &error {
        reader::Error::Sql(counterfoil_ask::Error::NotSupported(_)) => (Kind::NotSupported, ""),
        reader::Error::Sql(_) => return Error::new(Kind::Sql, error.to_string()),
        reader::Error::Unreachable(_) => (Kind::Network, "try again, or ask another server"),
        reader::Error::NoTable(_) => (Kind::NotFound, "check the address"),
        reader::Error::Withheld(_) => (Kind::Network, "try again, or ask another server"),
        reader::Error::Damaged(..) => (Kind::NotVerified, "do not use what it says; ask another server"),
        reader::Error::Refused(_) => (Kind::NotVerified, "do not use what it says; ask another server"),
        reader::Error::NotKept(_) => (Kind::Input, "check the file"),
        _ => (Kind::Bug, "please report it"),
    };
    let told = Error::new(kind, error.to_string()).at(place);
    if advice.is_empty() { told } else { told.advise(advice) }
}
