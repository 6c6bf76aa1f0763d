//! `ask`: a question to a server that nobody trusts, and rows only if they are the owner's.

mod remembered;
mod shown;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use counterfoil::publishing::Http;
use counterfoil::{Error, Kind};
use counterfoil_ask::{Asked, AskedJoin, Table};
use counterfoil_mirror::site::{Fetch, Folder};
use counterfoil_proof::Owner;
use counterfoil_reader as reader;
use counterfoil_reader::{KEPT_BYTES_MAX, Kept, KeptJoin, Memory, Terms};

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
    let (Some(sql), false) = (&arguments.sql, arguments.server.is_empty()) else {
        return Err(misuse("a SELECT and a server are wanted").into());
    };
    if let Some(path) = arguments.save.as_ref().filter(|path| path.symlink_metadata().is_ok()) {
        return Err(misuse("there is something of this name already").at(path.display()).into());
    }
    let answer = ask(sql, &owner, arguments)?;
    if arguments.explain {
        terminal::show(format_args!("plan: {}", answer.plan));
    }
    if let Some(path) = &arguments.save {
        private::write_new(path, &answer.kept)?;
    }
    shown::print(&answer.table, &style)?;
    terminal::done(format_args!("verified: {}", answer.verdict));
    Ok(())
}

/// What is shown of an answer, of one table or of two, and what is kept.
struct Answer {
    table: Table,
    verdict: String,
    plan: String,
    kept: Vec<u8>,
}

fn ask(sql: &str, owner: &Owner, arguments: &Ask) -> Result<Answer> {
    let place = arguments.server.join(", ");
    let told = |error| told(error, &place);
    let joined = AskedJoin::tables_of(sql).map_err(|error| told(error.into()))?;
    let tables = match joined {
        Some(tables) => tables.to_vec(),
        None => vec![Asked::table_of(sql).map_err(|error| told(error.into()))?],
    };
    let remembered: Vec<Remembered> = tables.iter().map(|table| Remembered::of(owner, table)).collect();
    let before = remembered.iter().map(Remembered::read).collect::<Result<Vec<_>>>()?;
    let mut memories = before.clone();
    let answer = read(sql, &terms(owner, arguments), &mut memories, &arguments.server)?;
    // What was seen is remembered even if the rows are refused: it was the owner's.
    for ((remembered, before), memory) in remembered.iter().zip(&before).zip(&memories) {
        if let Some(memory) = memory.as_ref().filter(|memory| before.as_ref() != Some(memory)) {
            remembered.write(memory)?;
        }
    }
    Ok(answer.map_err(told)?)
}

fn terms(owner: &Owner, arguments: &Ask) -> Terms {
    Terms {
        owner: *owner,
        now: milliseconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
        clock_error: milliseconds(arguments.clock_error),
        max_age: arguments.max_age.map_or(u64::MAX, milliseconds),
        hints: !arguments.compact,
    }
}

/// Asks; once more if a server was brought up to date meanwhile, so that a page of before is gone.
fn read(
    sql: &str,
    terms: &Terms,
    memories: &mut [Option<Memory>],
    servers: &[String],
) -> Result<Result<Answer, reader::Error>> {
    let _working = Working::begin("asking");
    // Two tables of one place are fetched over two connections: each counts what it brings by itself.
    let (first, second) = (servers.first(), servers.last());
    let wanted = || misuse("a server is wanted").advise("name it with --server");
    let mut first = fetch(first.ok_or_else(wanted)?)?;
    let mut second = fetch(second.ok_or_else(wanted)?)?;
    let mut once = || match memories {
        [memory] => reader::read(&mut *first, sql, terms, memory).map(|reading| Answer {
            table: reading.table,
            verdict: reading.verdict.to_string(),
            plan: reading.plan,
            kept: reading.kept.to_bytes(),
        }),
        [one, other] => reader::read_join(&mut *first, &mut *second, sql, terms, [one, other]).map(|reading| Answer {
            table: reading.table,
            verdict: reading.verdict.to_string(),
            plan: reading.plan,
            kept: reading.kept.to_bytes(),
        }),
        _ => Err(counterfoil_ask::Error::NotSupported("a question about so many tables".into()).into()),
    };
    Ok(match once() {
        Err(reader::Error::Withheld(_)) => once(),
        read => read,
    })
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
    let bytes = std::fs::read(path).map_err(read)?;
    let clock_error = milliseconds(arguments.clock_error);
    let told = |error| told(error, &place);
    let (at, sql, checked) = if KeptJoin::are(&bytes) {
        let kept = KeptJoin::from_bytes(&bytes).map_err(told)?;
        (kept.at(), kept.sql().to_owned(), kept.check(owner, clock_error))
    } else {
        let kept = Kept::from_bytes(&bytes).map_err(told)?;
        (kept.at(), kept.sql().to_owned(), kept.check(owner, clock_error))
    };
    let (table, verdict) = checked.map_err(told)?;
    terminal::done(format_args!("asked at {}: {sql}", shown::moment(at)));
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
