//! `publish`: a file becomes a folder that anybody may serve and everybody can check.
//!
//! ```text
//! file -> rows (a table in memory) -> difference to what is published -> signatures -> the owner's state -> folder
//! ```
//! A cut before the state's commit leaves everything as it was. One behind it leaves an older folder: publishing again
//! writes what is missing.

mod push;
mod rows;
mod state;

use std::path::{Path, PathBuf};

use counterfoil::{Database, Error, Kind, Options, Place, quoted};
use counterfoil_mirror::site;
use counterfoil_proof::{Definition, Scheme, Value};
use counterfoil_publish as publish;
use counterfoil_publish::{Edited, NewKey, Plan, Publication, Restored, Secrets};
use zeroize::Zeroizing;

use crate::arguments::Publish;
use crate::context::Context;
use crate::failure::{Failure, Result, misuse};
use crate::terminal::{self, Working, counted};
use crate::{import, init};
use state::State;

/// Milliseconds for which a signing key is certified: five years.
const KEY_LIFE: u64 = 5 * 365 * 24 * 3600 * 1000;

pub fn run(context: &Context, arguments: &Publish) -> Result<()> {
    let (name, place) = (table_name(arguments)?, state_place(arguments)?);
    let there = Path::new(&place).symlink_metadata().is_ok();
    let database = if there { Some(context.open(&place)?) } else { None };
    let known = database.as_ref().map(|database| known(database, &place)).transpose()?.flatten();
    if let Some(publication) = &known {
        is_same(publication.definition(), arguments, &name, &place)?;
    }
    let (definition, rows) = read(arguments, &name, known.as_ref().map(Publication::definition))?;
    // Whatever is wrong with the file was said before anything is made.
    let database = match database {
        Some(database) => database,
        None => make_state(context, &place)?,
    };
    let published = match known {
        Some(publication) => Ok(publication),
        None => begin(&database, definition, &place),
    }
    .and_then(|publication| bring_up_to_date(publication, rows, arguments, &place));
    let closed = database.close();
    let owner = published?;
    closed?;
    crate::output::put(&mut std::io::stdout().lock(), format!("{owner}\n").as_bytes())
}

/// Where the owner's state is: beside the folder and never inside it, where a web server would hand it out.
fn state_place(arguments: &Publish) -> Result<String> {
    let beside = |out: &PathBuf| format!("{}.foil", out.to_string_lossy().trim_end_matches('/'));
    let place = arguments.state.clone().or_else(|| arguments.out.as_ref().map(beside)).unwrap_or_default();
    let Place::File(path) = Place::parse(&place) else {
        return Err(misuse("the owner's state is a file").at(place).advise("name one with --state").into());
    };
    let Some(out) = &arguments.out else { return Ok(place) };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let inside = match (std::fs::canonicalize(parent), std::fs::canonicalize(out)) {
        (Ok(parent), Ok(out)) => parent.starts_with(out),
        _ => path.starts_with(out),
    };
    if inside {
        let advice = "keep it beside the folder: who gets both needs only its key to sign for you";
        return Err(misuse("the owner's state would be served with the folder").at(place).advise(advice).into());
    }
    Ok(place)
}

/// Makes the database of the owner's state, on first use.
fn make_state(context: &Context, place: &str) -> Result<Database> {
    let database = init::create(context, context.options_without_key(place)?, true)?;
    terminal::done(format_args!("{place}: your keys are in it: keep it, and back it up"));
    Ok(database)
}

/// What is published from a state already; nothing if making it was cut short.
///
/// A state that was put back from a backup, or bound to its counter anew, may not know what was signed last: with the same
/// key, one number and version would be signed for two rows, and both would count. So a new key signs from there on.
fn known(database: &Database, place: &str) -> Result<Option<Publication<State>>> {
    let mut state = State::new(database.connect()?)?;
    let told = |error| told(error, place);
    let incidents = database.incidents()?.len() as u64;
    let looked_at = state.incidents().map_err(told)?;
    if state.is_new() {
        return Ok(None);
    }
    if incidents == looked_at {
        return Ok(Some(Publication::open(state).map_err(told)?));
    }
    terminal::note(
        "this state was put back: a new key signs from now on, and what was published since the copy is withdrawn",
    );
    let now = now()?;
    let entropy = Zeroizing::new(counterfoil::random::<32>()?);
    let key = NewKey::from_entropy(&entropy, now.saturating_add(KEY_LIFE)).map_err(told)?;
    let restored = Restored { now, seen_serial: 0, key, salts: counterfoil::random::<32>()? };
    let publication = Publication::open_restored(state, restored, &[]).map_err(told)?;
    // A cut before this makes another new key the next time, and nothing worse.
    State::new(database.connect()?)?.set_incidents(incidents).map_err(told)?;
    Ok(Some(publication))
}

/// The table's name: as given, else that of the file.
fn table_name(arguments: &Publish) -> Result<String> {
    let stem = || {
        let name = arguments.file.file_name()?.to_string_lossy().to_lowercase();
        name.split('.').next().filter(|stem| !stem.is_empty() && *stem != "-").map(str::to_owned)
    };
    let name = arguments.table.clone().or_else(stem);
    Ok(name.ok_or_else(|| misuse("the table has no name").advise("name it with --table"))?)
}

/// The rows of the file, and what table they are: the one that is published already, or the one that they make.
fn read(arguments: &Publish, name: &str, known: Option<&Definition>) -> Result<(Definition, Vec<Vec<Value>>)> {
    let scratch = Database::open(Options::memory())?;
    let create = known.map(|definition| rows::create_sql(name, definition));
    import::one(&scratch, name, &arguments.file, &arguments.shape, create.as_deref())?;
    let definition = match known {
        Some(definition) => definition.clone(),
        None => define(&scratch, name, arguments)?,
    };
    let rows = rows::all(&scratch, name, &definition)?;
    Ok((definition, rows))
}

/// Begins to publish a table, with new keys.
fn begin(database: &Database, definition: Definition, place: &str) -> Result<Publication<State>> {
    let entropy = Zeroizing::new(counterfoil::random::<96>()?);
    let secrets = Secrets::from_entropy(&entropy).map_err(|error| told(error, place))?;
    let now = now()?;
    let plan = Plan { definition, now, every: 0, renew: 0, max_age: u64::MAX, expires: now.saturating_add(KEY_LIFE) };
    let mut state = State::new(database.connect()?)?;
    state.set_incidents(database.incidents()?.len() as u64).map_err(|error| told(error, place))?;
    Publication::create(state, plan, secrets).map_err(|error| told(error, place))
}

/// Makes what is published equal to `rows`, and the folder to what is published; gives the owner's name.
fn bring_up_to_date(
    mut publication: Publication<State>,
    rows: Vec<Vec<Value>>,
    arguments: &Publish,
    place: &str,
) -> Result<String> {
    let told = |error| told(error, place);
    let count = rows.len() as u64;
    let edit = publication.difference(rows).map_err(told)?;
    let edited = {
        let _working = Working::begin("signing");
        publication.edit(edit).map_err(told)?
    };
    publication.close_period(now()?).map_err(told)?;
    tell(&publication, count, &edited);
    if let Some(out) = &arguments.out {
        let (files, bytes) = write(&mut publication, out, place)?;
        terminal::done(format_args!("{}: {} written, {bytes} bytes", out.display(), counted(files, "file")));
    }
    for mirror in &arguments.to {
        let (updates, bytes) = push::push(&mut publication, mirror, place)?;
        terminal::done(format_args!("{mirror}: {} sent, {bytes} bytes", counted(updates, "update")));
    }
    let out = arguments.out.as_ref().map(|out| out.display().to_string());
    let server = out.or_else(|| arguments.to.first().cloned()).unwrap_or_default();
    let (owner, table) = (publication.owner(), shown(&publication.definition().name));
    terminal::done(format_args!(
        "ask with: counterfoil ask --server {server} --owner {owner} \"SELECT * FROM {table} LIMIT 5\""
    ));
    Ok(owner.to_string())
}

fn tell(publication: &Publication<State>, rows: u64, edited: &Edited) {
    let name = &publication.definition().name;
    let (inserted, updated, deleted) = (edited.inserted, edited.updated, edited.deleted);
    let (rows, signed) = (counted(rows, "row"), counted(edited.signed, "signature"));
    terminal::done(format_args!("{name}: {rows} ({inserted} new, {updated} changed, {deleted} gone), {signed}"));
}

/// A published table keeps its name, columns and orders for as long as it is published: signatures say so.
fn is_same(definition: &Definition, arguments: &Publish, name: &str, place: &str) -> Result<()> {
    let advice = "another table has another --out or --state";
    if definition.name != name {
        let what = format!("this state is of the table {}, not of {name}", definition.name);
        return Err(misuse(what).at(place).advise(format!("{advice}; --table names it")).into());
    }
    let given = rows::orders(&definition.columns, &arguments.order_by)?;
    if !given.is_empty() && given != definition.orders {
        return Err(misuse("the table is published in another order").at(place).advise(advice).into());
    }
    Ok(())
}

fn define(scratch: &Database, name: &str, arguments: &Publish) -> Result<Definition> {
    let columns = rows::columns(scratch, name)?;
    let orders = rows::orders(&columns, &arguments.order_by)?;
    if orders.is_empty() {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let advice = format!("add --order-by COLUMN; there are {}", names.join(", "));
        return Err(misuse("by which columns will readers ask?").advise(advice).into());
    }
    let table = counterfoil::random::<16>()?;
    let definition = Definition { table, name: name.to_owned(), columns, orders, scheme: Scheme::PerRecord };
    definition.check().map_err(|what| misuse(what.to_string()))?;
    Ok(definition)
}

fn write(publication: &mut Publication<State>, folder: &Path, place: &str) -> Result<(u64, u64)> {
    let _working = Working::begin("writing the folder");
    let summaries = publication.summaries().map_err(|error| told(error, place))?;
    let written = site::write(publication.shelf(), publication.manifest(), &summaries, folder);
    Ok(written.map_err(|error| Error::host("write the folder", folder.display(), &error))?)
}

/// Milliseconds since 1970.
fn now() -> Result<u64> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let since = since.map_err(|_| misuse("this machine's clock is before 1970").advise("set it"))?;
    Ok(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A table's name as SQL would have it.
fn shown(name: &str) -> String {
    let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if plain { name.to_owned() } else { quoted(name).replace('"', "\\\"") }
}

fn told(error: publish::Error, place: &str) -> Failure {
    let kind = match &error {
        publish::Error::Misuse(_) => Kind::Input,
        publish::Error::Corrupt(_) => Kind::Corrupt,
        publish::Error::Ledger(_) => Kind::Device,
        _ => Kind::Bug,
    };
    Error::new(kind, error.to_string()).at(place).into()
}
