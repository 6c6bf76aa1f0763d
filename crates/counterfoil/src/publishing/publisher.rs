//! What answers PUBLISH, UNPUBLISH and SHOW PUBLICATIONS, and publishes again when it is time.
//!
//! ```text
//! record `published/NAME` of space SETTING: seconds since 1970 when somebody was last told of the table, u64 big-endian, to the minute
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use counterfoil_log::{View, record_space};
use counterfoil_proof::{Definition, Scheme};
use counterfoil_publish::{Beside, Plan, Publication, Secrets, Terms};
use counterfoil_sql::{self as sql, Interrupt, Publish, Published, Publishing};
use parking_lot::{Mutex, MutexGuard};
use zeroize::Zeroizing;

use super::alone::Alone;
use super::ledger::TableLedger;
use super::load::{self, Load};
use super::opened::{KEY_LIFE, Opened, is_expiring, new_key, open};
use super::publication::{Publicized, milliseconds};
use super::push::NOT_KEPT;
use super::target::{Network, Target};
use super::worker::Worker;
use super::{now, rows, told};
use crate::connection::Connection;
use crate::database::{Database, Inner};
use crate::error::{Error, Kind, Result};
use crate::key::random;
use crate::schema::quoted;

/// Signatures that are renewed in one commit.
const RENEWED_AT_ONCE: usize = 16 * 1024;

/// How long after a failure it is tried again, at most.
const PATIENCE_MAX: Duration = Duration::from_secs(60);

/// How long a database is open before anything is published by itself: whoever opens it for one statement is not kept.
const PATIENCE_OPENED: Duration = Duration::from_secs(2);

const PUT_BACK: &str =
    "the database was put back: a new key signs from now on, and what was published since the copy is withdrawn";

/// The publications of an open database.
pub(crate) struct Publications {
    inner: Weak<Inner>,
    runs: Mutex<BTreeMap<String, Run>>,
    /// Two that publish one table at once would sign one period twice.
    one_at_a_time: Mutex<()>,
    worker: Worker,
}

/// How it went last.
struct Run {
    due: Instant,
    /// From when on the table is published anew: before that those are told again who could not be told.
    anew: Instant,
    /// Seconds since 1970.
    at: Option<u64>,
    error: Option<String>,
}

/// When somebody was last told is noted once in so many seconds: not each publication is a commit more.
const NOTED_EVERY: u64 = 60;

/// The name of the record that says when a table was last published.
fn published_record(table: &str) -> Vec<u8> {
    [b"published/", table.as_bytes()].concat()
}

/// When a table was last published, as it is noted.
fn noted(view: &dyn View, table: &str) -> Option<u64> {
    let record = view.record(record_space::SETTING, &published_record(table))?;
    Some(u64::from_be_bytes(record.as_ref().try_into().ok()?))
}

/// Whether what is being published is to end.
type CalledOff = Box<dyn Fn() -> bool + Send + Sync>;

/// What was done.
struct Done {
    rows: u64,
    signed: u64,
    /// How many others have been told.
    told: usize,
    /// What went wrong on the way to others: it is told, and tried again.
    failures: Vec<String>,
    notes: Vec<String>,
}

impl Publications {
    pub fn new(inner: Weak<Inner>) -> Arc<Self> {
        let publications =
            Self { inner, runs: Mutex::default(), one_at_a_time: Mutex::default(), worker: Worker::default() };
        Arc::new(publications)
    }

    /// Nobody else in this process publishes until it is dropped.
    pub fn one_at_a_time(&self) -> MutexGuard<'_, ()> {
        self.one_at_a_time.lock()
    }

    /// Begins to publish by itself what is published already.
    pub fn go_on(self: &Arc<Self>, database: &Database) -> Result<()> {
        if !sql::publications(&database.snapshot()?).is_empty() {
            self.worker.start(self);
        }
        Ok(())
    }

    /// Ends the thread, and what it is publishing: that has not happened then. Nothing is published by itself afterwards.
    pub fn stop(&self) {
        self.worker.stop();
    }

    /// Publishes what is due, if this process is the one that writes; gives how long there is nothing to do.
    pub fn work(self: &Arc<Self>) -> Duration {
        let Some(inner) = self.inner.upgrade() else { return PATIENCE_MAX };
        if !inner.store.has_written() {
            // Another process may be the one that writes, and is not to be kept from it.
            return Duration::from_secs(1);
        }
        let database = Database { inner };
        let Ok(snapshot) = database.snapshot() else { return PATIENCE_MAX };
        let tables: Vec<String> = sql::publications(&snapshot).into_iter().map(|(table, _)| table).collect();
        drop(snapshot);
        let mut wait = PATIENCE_MAX;
        for table in tables {
            let due = self.due(&database, &table);
            if due <= Instant::now() && !self.worker.is_ended() {
                self.run_again(&database, &table);
            }
            wait = wait.min(self.due(&database, &table).saturating_duration_since(Instant::now()));
        }
        wait
    }

    fn due(&self, database: &Database, table: &str) -> Instant {
        let at = || database.snapshot().ok().and_then(|view| noted(&view, table));
        let now = Instant::now();
        let first = || Run { due: now + PATIENCE_OPENED, anew: now, at: at(), error: None };
        self.runs.lock().entry(table.to_owned()).or_insert_with(first).due
    }

    fn run_again(self: &Arc<Self>, database: &Database, table: &str) {
        let this = self.clone();
        let is_anew = self.runs.lock().get(table).is_none_or(|run| run.anew <= Instant::now());
        let done = self.run(database, table, is_anew, Box::new(move || this.worker.is_ended()));
        let every = done.as_ref().map_or(PATIENCE_MAX, |(every, _)| *every);
        let done = done.as_ref().map(|(_, done)| done);
        if let Some(error) = failure(done) {
            database.volume().options.note(&format!("publishing {table}: {error}"));
        }
        self.note(database, table, (every, is_anew), done);
    }

    fn note(
        &self,
        database: &Database,
        table: &str,
        (every, is_anew): (Duration, bool),
        done: std::result::Result<&Done, &Error>,
    ) {
        let (now, error) = (Instant::now(), failure(done));
        let before = self.runs.lock().get(table).map(|run| (run.anew, run.at));
        // When somebody was told of it last, and not when that was tried.
        let at = match done {
            Ok(done) if done.told > 0 => Some(note_published(database, table)),
            _ => before.and_then(|(_, at)| at),
        };
        let soon = now + every.min(PATIENCE_MAX);
        let anew = match (is_anew, done) {
            (true, Ok(_)) => now + every,
            (true, Err(_)) => soon,
            (false, _) => before.map_or(now, |(anew, _)| anew),
        };
        let due = if error.is_some() { anew.min(soon) } else { anew };
        self.runs.lock().insert(table.to_owned(), Run { due, anew, at, error });
    }

    /// Publishes a table as it is now; or, not anew, tells others what was published.
    fn run(
        &self,
        database: &Database,
        table: &str,
        is_anew: bool,
        is_called_off: CalledOff,
    ) -> Result<(Duration, Done)> {
        let alone = Alone::with(database)?;
        let none = || Error::new(Kind::NotFound, format!("table {table} is not published"));
        let publicized = Publicized::of(&database.snapshot()?, table)?.ok_or_else(none)?;
        let opened = open(database, TableLedger::of_published(&alone, table)?, &[])?;
        let mut opened = opened.ok_or_else(|| Error::new(Kind::Corrupt, "the keys of a published table are gone"))?;
        let done = bring_up_to_date(database, (&mut opened, &publicized), is_anew, is_called_off)?;
        Ok((publicized.every, done))
    }

    fn publish(self: &Arc<Self>, database: &Database, asked: &Publish, interrupt: &Interrupt) -> Result<Published> {
        let begun = begin(&Alone::with(database)?, asked)?;
        let interrupt = interrupt.clone();
        let run = self.run(database, &asked.table, true, Box::new(move || interrupt.check().is_err()));
        // A mirror that does not know the owner yet is to be told its name: so the keys stay.
        let is_awaited = |done: &Done| done.failures.iter().any(|failure| failure.contains(NOT_KEPT));
        let nobody_knows = run.as_ref().is_ok_and(|(_, done)| done.told == 0 && !is_awaited(done));
        let (every, done) = match run.and_then(|run| somebody_was_told(run, asked)) {
            Ok(run) => run,
            Err(error) => {
                take_back(&Alone::with(database)?, &asked.table, (begun, nobody_knows))?;
                return Err(error);
            }
        };
        self.worker.start(self);
        self.note(database, &asked.table, (every, true), Ok(&done));
        self.worker.wake();
        let some = |text: String| vec![Some(text)];
        let columns = vec![
            ("owner", some(begun.owner)),
            ("table", some(asked.table.clone())),
            ("rows", some(done.rows.to_string())),
            ("signatures", some(done.signed.to_string())),
        ];
        let notices = [begun.notices, done.notes, done.failures].concat();
        Ok(Published { columns, notices })
    }

    /// Ends it. What was told stays where it was told; the keys stay too, unless they are to be forgotten.
    fn unpublish(&self, database: &Database, table: &str, forgets_keys: bool) -> Result<Published> {
        let _alone = Alone::with(database)?;
        let record = sql::publication_record(table);
        let snapshot = database.snapshot()?;
        let is_published = Publicized::of(&snapshot, table)?.is_some();
        let mut connection = Connection::own(database.inner.clone())?;
        let ledger = sql::ledger_name(table);
        let has_keys = connection.columns(&ledger)?.is_some();
        let has_to_go = is_published || (forgets_keys && has_keys);
        if !has_to_go {
            return Err(Error::new(Kind::NotFound, format!("table {table} is not published"))
                .advise("SHOW PUBLICATIONS lists what is"));
        }
        if is_published {
            database.change(|writer| {
                writer.delete_record(record_space::SETTING, &published_record(table))?;
                Ok(writer.delete_record(record_space::SETTING, &record)?)
            })?;
        }
        self.runs.lock().remove(table);
        let notice = if forgets_keys {
            connection.execute(&format!("DROP TABLE IF EXISTS {}", quoted(&ledger)), &[])?;
            "the keys are gone: a table of this name is published under another owner's name from now on"
        } else {
            "the keys are kept: PUBLISH goes on under the same owner's name; UNPUBLISH ... FORGET KEYS deletes them"
        };
        let columns = vec![("table", vec![Some(table.to_owned())])];
        Ok(Published { columns, notices: vec![notice.into(), "what was told to others stays with them".into()] })
    }

    fn show(&self, database: &Database) -> Result<Published> {
        let names = ["table", "owner", "orders", "every", "renew", "targets", "last_published", "last_error"];
        let mut columns: Vec<Vec<Option<String>>> = vec![Vec::new(); names.len()];
        let (runs, view) = (self.runs.lock(), database.snapshot()?);
        for (table, record) in sql::publications(&view) {
            let publicized = Publicized::from_bytes(&record)?;
            let run = runs.get(&table);
            let orders: Vec<String> = publicized.orders.iter().map(|order| format!("({})", order.join(", "))).collect();
            let targets: Vec<String> = publicized.targets.iter().map(Target::to_string).collect();
            // Another process may have told of it since.
            let at = run.and_then(|run| run.at).max(noted(&view, &table));
            let row = [
                Some(table),
                Some(publicized.owner.to_string()),
                Some(orders.join(", ")),
                Some(load::shown(publicized.every)),
                Some(load::shown(publicized.renew)),
                Some(targets.join(", ")),
                at.map(crate::time::utc),
                run.and_then(|run| run.error.clone()),
            ];
            columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        }
        Ok(Published { columns: names.into_iter().zip(columns).collect(), notices: Vec::new() })
    }

    fn answer(self: &Arc<Self>, asked: &Publishing, interrupt: &Interrupt) -> Result<Published> {
        let closed = || Error::new(Kind::Misuse, "the database is closed");
        let database = Database { inner: self.inner.upgrade().ok_or_else(closed)? };
        match asked {
            Publishing::Publish(asked) => self.publish(&database, asked, interrupt),
            Publishing::Unpublish { table, forgets_keys } => self.unpublish(&database, table, *forgets_keys),
            Publishing::Show => self.show(&database),
        }
    }
}

/// Notes that somebody was told of a table, and when that was. Where it cannot be noted, an earlier time stands after the next opening.
fn note_published(database: &Database, table: &str) -> u64 {
    let now = crate::time::now();
    let is_noted = |at: u64| now.saturating_sub(at) < NOTED_EVERY && at <= now;
    if !database.snapshot().is_ok_and(|view| noted(&view, table).is_some_and(is_noted)) {
        let name = published_record(table);
        _ = database.change(|writer| Ok(writer.put_record(record_space::SETTING, &name, &now.to_be_bytes())?));
    }
    now
}

/// As the SQL floor knows it.
pub(crate) struct Answering(pub Arc<Publications>);

impl sql::Publisher for Answering {
    fn publish(&self, asked: &Publishing, interrupt: &Interrupt) -> sql::Result<Published> {
        self.0.answer(asked, interrupt).map_err(|error| match self.0.inner.upgrade() {
            Some(inner) => inner.store.refuse(error),
            None => sql::Error::Misuse(error.to_string()),
        })
    }
}

/// A publication whose keys are made, and of which nobody is told yet.
struct Begun {
    owner: String,
    /// What the table's record was before.
    before: Option<Vec<u8>>,
    /// The terms of before, if it has keys already.
    terms: Option<Terms>,
    notices: Vec<String>,
}

/// Makes a publication, or gives one other settings; in the ledger first, then in the record that says that it is published.
/// A cut in between leaves keys that the next PUBLISH takes.
fn begin(alone: &Alone<'_>, asked: &Publish) -> Result<Begun> {
    let database = alone.database;
    let targets = asked.targets.iter().map(|target| Target::parse(target)).collect::<Result<Vec<_>>>()?;
    are_different(&targets)?;
    targets.iter().try_for_each(|target| keep_outside(database, target))?;
    let mut connection = database.connect()?;
    let columns = rows::columns(&mut connection, &asked.table)?;
    let orders = rows::orders(&columns, &asked.orders)?;
    let scheme = asked.signing.map_or(Scheme::PerRecord, scheme_of);
    let (table, name) = (random::<16>()?, asked.table.clone());
    let (nodes, filters) = (Vec::new(), Vec::new());
    let wanted = Definition { table, name, columns, orders, scheme, nodes, filters };
    let mut wanted = Beside { totals: asked.totals, filters: asked.filters }.put_into(wanted);
    wanted.check().map_err(|what| Error::new(Kind::Misuse, what.to_string()))?;
    let mut load = Load::measure(reading(&mut connection, &wanted)?, &wanted, asked.every, asked.renew)?;
    let ledger = TableLedger::of_published(alone, &asked.table)?;
    let opened = open(database, ledger, &[])?;
    // What is not said stays as it is.
    if let Some(opened) = opened.as_ref().filter(|_| asked.signing.is_none()) {
        wanted.scheme = opened.publication.definition().scheme;
        load.scheme = wanted.scheme;
    }
    load.check()?;
    let mut notices = load.told();
    let terms = opened.as_ref().map(|opened| opened.publication.terms());
    let publication = match opened {
        Some(opened) => {
            notices.extend(opened.was_put_back.then(|| PUT_BACK.to_owned()));
            again(opened, &wanted, asked)?
        }
        None => create(database, TableLedger::of_published(alone, &asked.table)?, wanted, asked)?,
    };
    let owner = publication.owner();
    let (every, renew, orders) = (asked.every, asked.renew, asked.orders.clone());
    let before = Publicized::of(&database.snapshot()?, &asked.table)?.map(|publicized| publicized.to_bytes());
    settle(database, &asked.table, Some(Publicized { every, renew, owner, orders, targets }.to_bytes()))?;
    Ok(Begun { owner: owner.to_string(), before, terms, notices })
}

/// Refuses a target that is named twice: it would be told twice each time.
fn are_different(targets: &[Target]) -> Result<()> {
    let twice = targets.iter().enumerate().find(|(at, target)| targets[..*at].contains(target));
    twice.map_or(Ok(()), |(_, target)| {
        Err(Error::new(Kind::Misuse, format!("{target} is named twice")).advise("name it once"))
    })
}

/// Refuses a folder in which the database lies: it would be served with the folder.
fn keep_outside(database: &Database, target: &Target) -> Result<()> {
    let (Target::Folder(folder), Some(path)) = (target, database.volume().options.place.path()) else { return Ok(()) };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (std::fs::canonicalize(parent), std::fs::canonicalize(folder)) {
        (Ok(parent), Ok(folder)) if parent.starts_with(&folder) => {
            Err(Error::new(Kind::Misuse, "the database would be served with the folder")
                .at(folder.display())
                .advise("publish into a folder beside it: who gets both needs only its key to sign for you"))
        }
        _ => Ok(()),
    }
}

/// Says that a table is published, and how; or that it is not. A PUBLISH that failed or was interrupted leaves it as it was.
fn settle(database: &Database, table: &str, record: Option<Vec<u8>>) -> Result<()> {
    let name = sql::publication_record(table);
    database.change(|writer| match &record {
        Some(record) => Ok(writer.put_record(record_space::SETTING, &name, record)?),
        None => Ok(writer.delete_record(record_space::SETTING, &name)?),
    })
}

/// Refuses what reached nobody: who mistyped the only address would learn of it from his readers.
fn somebody_was_told(run: (Duration, Done), asked: &Publish) -> Result<(Duration, Done)> {
    match &run.1.failures[..] {
        [failure, ..] if run.1.failures.len() == asked.targets.len() => {
            let what = format!("nobody could be told of table {}: {failure}", asked.table);
            Err(Error::new(Kind::Network, what).advise("it is as it was before; PUBLISH it again"))
        }
        _ => Ok(run),
    }
}

/// Leaves a table published as it was, or not: its record first, which says so, then the terms that readers are told. A cut in
/// between leaves terms that the next PUBLISH sets anew. Keys that were made and of which nobody knows go, too.
fn take_back(alone: &Alone<'_>, table: &str, (begun, nobody_knows): (Begun, bool)) -> Result<()> {
    let database = alone.database;
    settle(database, table, begun.before)?;
    let Some(terms) = begun.terms else {
        if nobody_knows {
            let ledger = quoted(&sql::ledger_name(table));
            Connection::own(database.inner.clone())?.execute(&format!("DROP TABLE IF EXISTS {ledger}"), &[])?;
        }
        return Ok(());
    };
    match open(database, TableLedger::of_published(alone, table)?, &[])? {
        Some(mut opened) => opened.publication.set_terms(now()?, terms, &[]).map_err(told),
        None => Ok(()),
    }
}

fn scheme_of(signing: sql::Signing) -> Scheme {
    match signing {
        sql::Signing::PerRecord => Scheme::PerRecord,
        sql::Signing::PerAttribute => Scheme::PerAttribute,
        sql::Signing::Group(rows_max) => Scheme::Group(rows_max),
    }
}

/// How many rows a table has, and how long it takes to read them.
fn reading(connection: &mut Connection, definition: &Definition) -> Result<(u64, Duration)> {
    let began = Instant::now();
    let rows = rows::all(connection, &definition.name, definition)?.len() as u64;
    Ok((rows, began.elapsed()))
}

/// The same publication on other terms. Its columns and orders, and what a signature covers, are signed: they stay.
fn again(opened: Opened, wanted: &Definition, asked: &Publish) -> Result<Publication<TableLedger>> {
    let Opened { mut publication, .. } = opened;
    let definition = publication.definition();
    let (is, asks) = (Beside::of(definition), Beside::of(wanted));
    let leaves_out = (is.totals && !asks.totals) || (is.filters && !asks.filters);
    let is_other = definition.columns != wanted.columns || definition.orders != wanted.orders;
    if is_other || definition.scheme != wanted.scheme || leaves_out {
        let what = format!(
            "table {} was published with other columns or orders, signed otherwise, or with more beside its rows",
            asked.table
        );
        let advice = format!("UNPUBLISH {} FORGET KEYS, and begin under another owner's name", quoted(&asked.table));
        return Err(Error::new(Kind::Misuse, what).advise(advice));
    }
    publication.set_terms(now()?, terms(asked), &[]).map_err(|error| match error {
        counterfoil_publish::Error::RootNeeded => told(error).advise(format!(
            "change them with `counterfoil publish terms DB --table {} --root ROOT`, then PUBLISH it on these",
            quoted(&asked.table)
        )),
        error => told(error),
    })?;
    Ok(publication)
}

fn terms(asked: &Publish) -> Terms {
    let max_age = asked.max_age.map_or(u64::MAX, milliseconds);
    Terms { every: milliseconds(asked.every), renew: milliseconds(asked.renew), max_age }
}

fn create(
    database: &Database,
    mut ledger: TableLedger,
    definition: Definition,
    asked: &Publish,
) -> Result<Publication<TableLedger>> {
    let entropy = Zeroizing::new(random::<96>()?);
    let secrets = Secrets::from_entropy(&entropy).map_err(told)?;
    let (now, Terms { every, renew, max_age }) = (now()?, terms(asked));
    let plan = Plan { definition, now, every, renew, max_age, expires: now.saturating_add(KEY_LIFE) };
    ledger.set_incidents(database.incidents()?.len() as u64).map_err(told)?;
    Publication::create(ledger, plan, secrets, &[]).map_err(told)
}

/// Signs what is new, if it is published anew, and tells the others.
fn bring_up_to_date(
    database: &Database,
    (opened, publicized): (&mut Opened, &Publicized),
    is_anew: bool,
    is_called_off: CalledOff,
) -> Result<Done> {
    let mut done = Done { rows: 0, signed: 0, told: 0, failures: Vec::new(), notes: Vec::new() };
    if opened.was_put_back {
        done.notes.push(PUT_BACK.into());
    }
    let (publication, is_called_off) = (&mut opened.publication, Arc::new(is_called_off));
    if is_anew {
        sign(database, publication, &mut done, &is_called_off)?;
    }
    for target in &publicized.targets {
        match target.deliver(publication, &Network::default(), &*is_called_off) {
            Ok(delivered) => {
                done.told += 1;
                done.notes.push(format!("{target}: {delivered}"));
            }
            Err(error) => done.failures.push(error.to_string()),
        }
    }
    Ok(done)
}

/// What went wrong first.
fn failure(done: std::result::Result<&Done, &Error>) -> Option<String> {
    match done {
        Ok(done) => done.failures.first().cloned(),
        Err(error) => Some(error.to_string()),
    }
}

/// Signs what differs from what is published and what has become old, and ends the period.
fn sign(
    database: &Database,
    publication: &mut Publication<TableLedger>,
    done: &mut Done,
    is_called_off: &Arc<CalledOff>,
) -> Result<()> {
    if is_expiring(publication, now()?).is_some() {
        publication.rotate(now()?, new_key()?, &[]).map_err(told)?;
        done.notes.push("the signing key expires within a year: a new one signs from the next time on".into());
    }
    publication.leave_expired_key(now()?).map_err(told)?;
    let (table, definition) = (publication.definition().name.clone(), publication.definition().clone());
    let mut connection = database.connect()?;
    let asked = is_called_off.clone();
    connection.ask_while_waiting(move || asked());
    let rows = rows::all(&mut connection, &table, &definition)?;
    let asked = is_called_off.clone();
    publication.watch(Box::new(move |_| !asked()));
    done.rows = rows.len() as u64;
    let edit = publication.difference(rows).map_err(told)?;
    let before = publication.signed();
    publication.edit_in_parts(edit, now()?).map_err(told)?;
    while !publication.renew(now()?, RENEWED_AT_ONCE).map_err(told)?.is_done {}
    publication.close_period(now()?).map_err(told)?;
    done.signed = publication.signed() - before;
    Ok(())
}

/// Refuses terms that this machine cannot keep, as PUBLISH does; none of a table that is published by hand.
///
/// # Errors
/// [`Kind::NotSupported`]: how long signing takes, or how many lists readers would fetch.
pub fn check_load(publication: &Publication<TableLedger>, terms: Terms) -> Result<()> {
    if terms.every == 0 {
        return Ok(());
    }
    let rows = publication.shelf().rids(0).count() as u64;
    let (every, renew) = (Duration::from_millis(terms.every), Duration::from_millis(terms.renew));
    Load::measure((rows, Duration::ZERO), publication.definition(), every, renew)?.check()
}

/// Whether PUBLISH publishes a table of a database: after UNPUBLISH it does not, and its keys may be there still.
///
/// # Errors
/// Those of reading.
pub fn is_published(database: &Database, table: &str) -> Result<bool> {
    Ok(Publicized::of(&database.snapshot()?, table)?.is_some())
}

/// Notes under which name a published table is found, and on which terms it is signed, where they were changed beside PUBLISH.
///
/// # Errors
/// Those of writing.
pub fn note_signed(database: &Database, table: &str, publication: &Publication<TableLedger>) -> Result<()> {
    let Some(known) = Publicized::of(&database.snapshot()?, table)? else { return Ok(()) };
    let (owner, terms) = (publication.owner(), publication.terms());
    let (every, renew) = (Duration::from_millis(terms.every), Duration::from_millis(terms.renew));
    if (known.owner, known.every, known.renew) == (owner, every, renew) {
        return Ok(());
    }
    settle(database, table, Some(Publicized { owner, every, renew, ..known }.to_bytes()))
}
