//! A file becomes a table that is published.

use std::path::{Path, PathBuf};

use counterfoil::publishing::{self, Alone, KEY_LIFE, TableLedger, is_expiring, new_key, now};
use counterfoil::{Database, Options, Place, quoted};
use counterfoil_proof::{Definition, Owner, Scheme, SecretKey, Value};
use counterfoil_publish::{Beside, Edited, Plan, Publication, Secrets, Terms};
use zeroize::Zeroizing;

use super::delivery::Recipients;
use super::owned::{alone, known};
use super::{root, status, told};
use crate::arguments::Publish;
use crate::closing;
use crate::context::Context;
use crate::failure::{Result, misuse};
use crate::import::{self, Make};
use crate::init;
use crate::terminal::{self, Working, counted};

const DAY: u64 = 24 * 3600 * 1000;

/// Days after which signatures are renewed, unless somebody says otherwise: readers fetch the summaries of so many.
const RENEW_DAYS: u32 = 90;

/// Signatures that are renewed in one commit.
const RENEWED_AT_ONCE: usize = 16 * 1024;

/// Publishes the file.
pub fn run(context: &Context, arguments: &Publish) -> Result<()> {
    let (name, place) = (table_name(arguments)?, state_place(arguments)?);
    let recipients = Recipients::of(arguments.out.as_ref(), &arguments.to, &arguments.delivery)?;
    let roots = root::all(context, &arguments.root)?;
    let there = Path::new(&place).symlink_metadata().is_ok();
    // Whatever is wrong with the file is said before anything is made.
    let read_before = if there { None } else { Some(read(arguments, &name, None)?) };
    let database = if there { context.open(&place)? } else { make_state(context, arguments, &place)? };
    let published = publish(&database, arguments, (&name, &place), read_before, (&recipients, &roots));
    let closed = closing::close(database);
    let owner = published?;
    closed?;
    crate::output::put(&mut std::io::stdout().lock(), format!("{owner}\n").as_bytes())
}

/// A definition and rows.
type Read = (Definition, Vec<Vec<Value>>);

/// Publishes from a state that is there.
fn publish(
    database: &Database,
    arguments: &Publish,
    (name, place): (&str, &str),
    read_before: Option<Read>,
    (recipients, roots): (&Recipients, &[SecretKey]),
) -> Result<Owner> {
    let alone = alone(database, place)?;
    let known = known(database, TableLedger::new(&alone)?, place, roots)?;
    if let Some(publication) = &known {
        is_same(publication.definition(), arguments, name, place)?;
    }
    let (definition, rows) = match read_before {
        Some(read) => read,
        None => read(arguments, name, known.as_ref().map(Publication::definition))?,
    };
    let publication = match known {
        Some(publication) => publication,
        None => begin(&alone, database, definition, arguments, (roots, place))?,
    };
    bring_up_to_date(publication, rows, arguments, recipients, roots, place)
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

/// Makes the database of the owner's state, on first use; where it lies beside the folder, what leads to both, too.
fn make_state(context: &Context, arguments: &Publish, place: &str) -> Result<Database> {
    let beside = arguments.out.as_deref().filter(|_| arguments.state.is_none()).and_then(Path::parent);
    if let Some(parent) = beside.filter(|parent| !parent.as_os_str().is_empty()) {
        let made = std::fs::create_dir_all(parent);
        made.map_err(|error| counterfoil::Error::host("make the folder", parent.display(), &error))?;
    }
    let database = init::create(context, context.options_without_key(place)?, true)?;
    terminal::done(format_args!("{place}: your keys are in it: keep it, and back it up"));
    Ok(database)
}

/// The table's name: as given, else that of the first file.
fn table_name(arguments: &Publish) -> Result<String> {
    let stem = || {
        let name = arguments.files.first()?.file_name()?.to_string_lossy().to_lowercase();
        name.split('.').next().filter(|stem| !stem.is_empty() && *stem != "-").map(str::to_owned)
    };
    let name = arguments.table.clone().or_else(stem);
    Ok(name.ok_or_else(|| misuse("the table has no name").advise("name it with --table"))?)
}

/// The rows of the files, and what table they are: the one that is published already, or the one that they make.
fn read(arguments: &Publish, name: &str, known: Option<&Definition>) -> Result<Read> {
    let scratch = Database::open(Options::memory())?;
    let create = known.map(|definition| publishing::create_sql(name, definition));
    let make = create.as_deref().map_or(Make::Fitting(&arguments.types), Make::By);
    import::into(&scratch, name, &arguments.files, &arguments.shape, make)?;
    let definition = match known {
        Some(definition) => {
            types_are_same(&scratch, definition, &arguments.types)?;
            definition.clone()
        }
        None => define(&scratch, name, arguments)?,
    };
    let rows = publishing::all(&mut scratch.connect()?, name, &definition)?;
    Ok((definition, rows))
}

/// Refuses types that a published table's columns do not have.
fn types_are_same(scratch: &Database, definition: &Definition, types: &[(String, String)]) -> Result<()> {
    if types.is_empty() {
        return Ok(());
    }
    let mut connection = scratch.connect()?;
    let asked: Vec<String> = types.iter().map(|(name, kind)| format!("{} {kind}", quoted(name))).collect();
    connection.execute(&format!("CREATE TABLE \"--type\" ({})", asked.join(", ")), &[])?;
    for asked in publishing::columns(&mut connection, "--type")? {
        let is = definition.columns.iter().find(|column| column.name.eq_ignore_ascii_case(&asked.name));
        if is.is_none_or(|is| is.kind != asked.kind) {
            let what = format!("column {} is published with another type, or not at all", asked.name);
            return Err(misuse(what).advise("leave --type out; another table has another --out or --state").into());
        }
    }
    Ok(())
}

/// Begins to publish a table, with new keys; under a root key that is kept elsewhere if one was named.
fn begin(
    alone: &Alone<'_>,
    database: &Database,
    definition: Definition,
    arguments: &Publish,
    (roots, place): (&[SecretKey], &str),
) -> Result<Publication<TableLedger>> {
    let told = |error| told(error, place);
    let entropy = Zeroizing::new(counterfoil::random::<96>()?);
    let mut half = Zeroizing::new([0; 64]);
    half.copy_from_slice(&entropy[32..]);
    let secrets = match roots {
        [] => Secrets::from_entropy(&entropy),
        [root] => Secrets::under(&root.public(), &half),
        _ => return Err(misuse("a new table has one root key").at(place).advise("name one with --root").into()),
    };
    let (now, renew) = (now()?, days(arguments.renew.unwrap_or(RENEW_DAYS)));
    let max_age = arguments.max_age.map_or(u64::MAX, days);
    let plan = Plan { definition, now, every: 0, renew, max_age, expires: now.saturating_add(KEY_LIFE) };
    let mut state = TableLedger::new(alone)?;
    state.set_incidents(database.incidents()?.len() as u64).map_err(told)?;
    Publication::create(state, plan, secrets.map_err(told)?, roots).map_err(told)
}

/// So many days in milliseconds.
fn days(count: u32) -> u64 {
    u64::from(count) * DAY
}

/// Makes what is published equal to `rows`, and tells whoever serves it; gives the owner's name.
fn bring_up_to_date(
    mut publication: Publication<TableLedger>,
    rows: Vec<Vec<Value>>,
    arguments: &Publish,
    recipients: &Recipients,
    roots: &[SecretKey],
    place: &str,
) -> Result<Owner> {
    let count = rows.len() as u64;
    keep_up(&mut publication, arguments, roots, place)?;
    let before = publication.signed();
    let edited = sign(&mut publication, rows, place)?;
    tell(&publication, count, &edited, publication.signed() - before);
    recipients.deliver(&mut publication, place)?;
    let (owner, table) = (publication.owner(), shown(&publication.definition().name));
    let server = recipients.server()?;
    terminal::done(format_args!(
        "ask with: counterfoil ask --server {server} --owner {owner} \"SELECT * FROM {table} LIMIT 5\""
    ));
    Ok(owner)
}

/// Terms as they were asked for, and another signing key before the one that signs expires.
fn keep_up(
    publication: &mut Publication<TableLedger>,
    arguments: &Publish,
    roots: &[SecretKey],
    place: &str,
) -> Result<()> {
    let told = |error| told(error, place);
    let now = now()?;
    let before = publication.terms();
    let renew = arguments.renew.map_or(before.renew, days);
    let max_age = arguments.max_age.map_or(before.max_age, days);
    publication.set_terms(now, Terms { renew, max_age, ..before }, roots).map_err(told)?;
    if let Some(expires) = is_expiring(publication, now) {
        let rotate = format!("counterfoil publish rotate {place} --root ROOT");
        let when = counterfoil::utc(expires / 1000);
        if publication.has_root() || !roots.is_empty() {
            publication.rotate(now, new_key()?, roots).map_err(told)?;
            terminal::note("the signing key expires within a year: from the next time on a new one signs");
        } else if expires <= now {
            let what = format!("the signing key expired {when}: no reader takes what it signs");
            return Err(misuse(what).at(place).advise(rotate).into());
        } else {
            terminal::note(format_args!("the signing key expires {when}: `{rotate}`"));
        }
    }
    publication.leave_expired_key(now).map_err(told)?;
    Ok(())
}

/// Signs what differs from what is published, and what has become old; the period ends with it.
fn sign(publication: &mut Publication<TableLedger>, rows: Vec<Vec<Value>>, place: &str) -> Result<Edited> {
    let told = |error| told(error, place);
    let working = Working::begin("signing");
    publication.watch(working.count("signature"));
    let edit = publication.difference(rows).map_err(told)?;
    let edited = publication.edit_in_parts(edit, now()?).map_err(told)?;
    while !publication.renew(now()?, RENEWED_AT_ONCE).map_err(told)?.is_done {}
    publication.close_period(now()?).map_err(told)?;
    Ok(edited)
}

fn tell(publication: &Publication<TableLedger>, rows: u64, edited: &Edited, signed: u64) {
    let name = &publication.definition().name;
    let (inserted, updated, deleted) = (edited.inserted, edited.updated, edited.deleted);
    let (rows, signed) = (counted(rows, "row"), counted(signed, "signature"));
    terminal::done(format_args!("{name}: {rows} ({inserted} new, {updated} changed, {deleted} gone), {signed}"));
}

/// A published table keeps its name, columns, orders, way of signing and what is signed beside rows for as long as it is
/// published: signatures say so.
fn is_same(definition: &Definition, arguments: &Publish, name: &str, place: &str) -> Result<()> {
    let advice = "another table has another --out or --state";
    if definition.name != name {
        let what = format!("this state is of the table {}, not of {name}", definition.name);
        return Err(misuse(what).at(place).advise(format!("{advice}; --table names it")).into());
    }
    let given = publishing::orders(&definition.columns, &wanted(arguments))?;
    if !given.is_empty() && given != definition.orders {
        return Err(misuse("the table is published in another order").at(place).advise(advice).into());
    }
    if arguments.sign.is_some_and(|scheme| scheme != definition.scheme) {
        let what = format!("the table is signed {}, and stays so", status::signed(definition.scheme));
        return Err(misuse(what).at(place).advise(advice).into());
    }
    let (there, wanted) = (Beside::of(definition), beside(arguments));
    if (there.totals && !wanted.totals) || (there.filters && !wanted.filters) {
        let what = "the table is published with what is to be left out";
        return Err(misuse(what).at(place).advise(advice).into());
    }
    Ok(())
}

/// What is signed beside the rows of a new table.
fn beside(arguments: &Publish) -> Beside {
    Beside { totals: !arguments.no_totals, filters: !arguments.no_filters }
}

/// The columns of each `--order-by`.
fn wanted(arguments: &Publish) -> Vec<Vec<String>> {
    let order = |text: &String| text.split(',').map(|name| name.trim().to_owned()).collect();
    arguments.order_by.iter().map(order).collect()
}

fn define(scratch: &Database, name: &str, arguments: &Publish) -> Result<Definition> {
    let columns = publishing::columns(&mut scratch.connect()?, name)?;
    let orders = publishing::orders(&columns, &wanted(arguments))?;
    if orders.is_empty() {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let advice = format!("add --order-by COLUMN; there are {}", names.join(", "));
        return Err(misuse("by which columns will readers ask?").advise(advice).into());
    }
    let table = counterfoil::random::<16>()?;
    let scheme = arguments.sign.unwrap_or(Scheme::PerRecord);
    let (nodes, filters) = (Vec::new(), Vec::new());
    let definition = Definition { table, name: name.to_owned(), columns, orders, scheme, nodes, filters };
    let definition = beside(arguments).put_into(definition);
    definition.check().map_err(|what| misuse(what.to_string()))?;
    Ok(definition)
}

/// A table's name as SQL would have it.
fn shown(name: &str) -> String {
    let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if plain { name.to_owned() } else { quoted(name).replace('"', "\\\"") }
}
