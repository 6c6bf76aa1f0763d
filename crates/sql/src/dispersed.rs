//! Tables whose rows lie with several clouds, none of which can read them.
//!
//! ```text
//! CREATE CLOUD a OPTIONS (url 'dir:/mnt/a')
//! CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT FOR (equality), salary NUMERIC(10,2) FOR (sum))
//!     WITH (engine = 'dispersed', clouds = 'a, b, c' [, may_fail = 1] [, may_collude = 1] [, max_rows = 16777216])
//! ```
//! ```text
//! INSERT -> a table of this database -> COMMIT -> fragments at every cloud (push) -> no longer here, but in the set of live rows
//! SELECT -> rows that are still here, and rows of clouds that are live as of the snapshot
//! DELETE -> not live any more -> COMMIT -> let go of at every cloud (push)           UPDATE -> DELETE and INSERT, under new numbers
//! ```
//! Invariants
//! 1. A commit is acknowledged when it is durable here: clouds may be down. What they have not been told waits, sealed.
//! 2. A row's number is that of the table here, which gives none twice; it is noted as leaving before it leaves.
//! 3. What a statement sees is decided by its snapshot: the set of live rows is a part of it, and clouds are asked for those alone.
//! 4. What an answer is to be above all is said behind a query (goals.rs).
//! 5. A table moves to other clouds, codings and keys row by row (moving.rs); a row lies in one layout, and is asked for there.
//!
//! Codings, and what clouds may be believed, are a matter of `counterfoil_disperse`; here are SQL, transactions and queries.

mod again;
mod apart;
mod asked_where;
mod before;
mod bounds;
mod brought_back;
mod catalogue;
mod change;
mod claiming;
mod closed;
mod clouds;
mod columns;
mod conditions;
mod contents;
mod define;
mod distribution;
mod dropped;
mod first;
mod folders;
mod following;
mod foreign;
mod goals;
mod gone_on;
mod leakage;
mod learning;
mod lease;
mod leases;
mod metering;
mod moving;
mod owed;
mod provider;
mod push;
mod readable;
mod readdressed;
mod reading;
mod repair;
mod scan;
mod sums;
mod tidying;
mod turns;
mod undone;
mod unreadable;
mod waiting;
mod whose;
mod words;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use counterfoil_disperse::{self as disperse, Epoch, Errands, Kept, Layout, Secret};
use counterfoil_log::{View, Writer, record_space};
use counterfoil_relation::{Table, TableId};
use parking_lot::Mutex;

pub use before::secrets_of_before;
pub(crate) use bounds::{refuse_both, without_bound};
pub use brought_back::{BroughtBack, Lost, lost_tables};
pub use catalogue::Owner;
pub(crate) use change::{conflicts, delete, fetch, insert, refuse, truncate, update};
pub use clouds::clouds_sql;
pub(crate) use clouds::{parse, read};
pub use define::for_clause;
pub(crate) use define::{forget, is_of_column, option_is_known, option_is_number, renamed, renamed_column};
pub(crate) use first::from_orders;
pub use foreign::leave_tables_to_the_other;
pub(crate) use goals::{said_goal, take_goal};
pub(crate) use leases::Leased;
pub(crate) use provider::DispersedProvider;
pub(crate) use sums::from_shares;
pub(crate) use words::{Relaid, Used, parse_column_option};

use crate::error::{Error, Result};
use crate::incidents::incidents;
use metering::Metering;
use waiting::Waiting;

/// What WITH (engine = ...) says for a dispersed table.
pub(crate) const ENGINE: &str = "dispersed";

const RECORDS: &[u8] = b"dispersed/";

/// Whether a table's rows lie with clouds.
#[must_use]
pub fn is_dispersed(table: &Table) -> bool {
    table.engine.as_ref().is_some_and(|engine| engine.name == ENGINE)
}

/// What is kept secret of a cloud: a file, and what it holds.
#[derive(Clone, Copy)]
pub struct CloudSecret<'a> {
    /// Its path.
    pub file: &'a str,
    /// Its text, without the end of the last line.
    pub text: &'a str,
}

/// Who reaches clouds over a network: this floor knows folders alone.
pub trait Clouds: Send + Sync {
    /// An address as it is kept; none: no address of this kind is known.
    fn whole_url(&self, url: &str) -> Option<Result<String, String>>;

    /// The cloud at an address, with what a file keeps secret of it; none: no address of this kind is known. `key` tells the owner's
    /// files from others, where a cloud keeps files. Nobody is asked yet.
    fn open(
        &self,
        url: &str,
        secret: Option<CloudSecret<'_>>,
        key: Secret,
    ) -> Option<Result<Arc<dyn disperse::Provider>, String>>;
}

/// What all sessions of a database share of its dispersed tables.
#[derive(Default)]
pub(crate) struct Dispersed {
    /// Who reaches clouds over a network.
    pub(crate) clouds: OnceLock<Arc<dyn Clouds>>,
    /// Who brings the database back.
    pub(crate) owner: OnceLock<Arc<dyn Owner>>,
    /// Tables of which clouds may not have been told everything, and when they are told next.
    untold: Mutex<HashMap<TableId, Instant>>,
    /// When clouds are told next of tables that were dropped.
    dropped: dropped::Due,
    /// Whether all tables were looked at since the database was opened.
    is_checked: AtomicBool,
    /// What this database changes and no other client meanwhile.
    leases: leases::Leases,
    /// The epochs that this process has begun.
    epochs: Mutex<HashMap<TableId, Epoch>>,
    /// What each cloud is told, by its address.
    errands: Mutex<HashMap<String, Arc<Errands>>>,
    /// Held by whoever tells clouds: one at a time, so that what goes is never overtaken by what comes.
    telling: Mutex<()>,
}

impl Dispersed {
    /// What the cloud at an address is told.
    fn errands(&self, url: &str) -> Arc<Errands> {
        self.errands.lock().entry(url.to_owned()).or_default().clone()
    }

    fn note_untold(&self, table: TableId) {
        self.untold.lock().insert(table, Instant::now());
        self.dropped.hasten();
    }

    /// Clouds were told all there is, or are told the rest later.
    fn note_told(&self, table: TableId, is_told: bool) {
        self.untold.lock().remove(&table);
        if !is_told {
            self.untold.lock().insert(table, Instant::now() + push::PAUSE);
        }
    }
}

fn prefix(table: TableId) -> Vec<u8> {
    [RECORDS, &table.0.to_be_bytes()].concat()
}

fn damaged(table: &str, what: disperse::Damaged) -> Error {
    if what == disperse::Damaged::OTHER_VERSION {
        let text = "export --all with the version that wrote it, import --all with this one";
        return Error::NotSupported(format!("dispersed table {table} is of another version of this program: {text}"));
    }
    Error::Relation(counterfoil_relation::Error::corrupt(table, what.0))
}

/// What is known here of a table's rows that lie at clouds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtClouds {
    /// How many there are.
    pub rows: u64,
    /// The clouds, by their names.
    pub clouds: Vec<String>,
}

impl AtClouds {
    /// Of a dispersed table; none of another one.
    ///
    /// # Errors
    /// [`Error::Relation`] where what is kept of it is damaged, [`Error::NotSupported`] where another version of this program keeps it.
    pub fn of(view: &dyn View, table: &Table) -> Result<Option<Self>> {
        let kept = is_dispersed(table).then(|| kept(view, table)).transpose()?;
        Ok(kept.map(|kept| Self { rows: kept.live().len(), clouds: kept.declaration().clouds.clone() }))
    }
}

/// What is to be said of a table's rows that lie at clouds, where tables are saved as far as they are here; none: none lie there.
#[must_use]
pub fn rows_elsewhere(view: &dyn View, table: &Table) -> Option<String> {
    let how = "`counterfoil restore --from URL NEW --key-file SHARES` brings them back from one of them";
    match is_dispersed(table).then(|| kept(view, table))? {
        Ok(kept) if kept.live().is_empty() => None,
        Ok(kept) => {
            let (rows, clouds) = (kept.live().len(), kept.declaration().clouds.join(", "));
            Some(format!(
                "table {}: {rows} of its rows lie at clouds {clouds} and are not saved here: {how}",
                table.name
            ))
        }
        Err(error) => {
            Some(format!("table {}: how many of its rows lie at clouds cannot be read ({error}): {how}", table.name))
        }
    }
}

/// What is kept of a dispersed table.
///
/// # Errors
/// [`Error::Relation`] where it is damaged, [`Error::NotSupported`] where another version of this program keeps it.
fn kept(view: &dyn View, table: &Table) -> Result<Kept> {
    let prefix = prefix(table.id);
    let records = view.records(record_space::SETTING, &prefix);
    let named = records.iter().map(|(name, bytes)| (&name[prefix.len()..], &bytes[..]));
    let kept = Kept::from_records(named).map_err(|what| damaged(&table.name, what))?;
    kept.ok_or_else(|| damaged(&table.name, disperse::Damaged("what is kept of a dispersed table")))
}

/// Keeps what has changed of a dispersed table.
fn keep(writer: &mut Writer, table: TableId, kept: &Kept) -> Result<()> {
    let prefix = prefix(table);
    let records = kept.to_records();
    for (name, _) in writer.records(record_space::SETTING, &prefix) {
        if !records.contains_key(&name[prefix.len()..]) {
            writer.delete_record(record_space::SETTING, &name)?;
        }
    }
    for (name, bytes) in records {
        let name = [&prefix[..], &name].concat();
        if writer.record(record_space::SETTING, &name).is_none_or(|there| there[..] != bytes[..]) {
            writer.put_record(record_space::SETTING, &name, &bytes)?;
        }
    }
    Ok(())
}

/// A layout of a dispersed table with its clouds.
fn opened(dispersed: &Dispersed, view: &dyn View, table: &Table, layout: &Layout) -> Result<disperse::Table> {
    metered(dispersed, view, table, layout, None)
}

/// A layout of a dispersed table with its clouds, of which it may be counted what they are asked.
fn metered(
    dispersed: &Dispersed,
    view: &dyn View,
    table: &Table,
    layout: &Layout,
    metering: Option<&Metering>,
) -> Result<disperse::Table> {
    let coder = layout.coder().map_err(|refusal| Error::Sql(refusal.to_string()))?;
    let open = |(at, name): (usize, &String)| {
        let Some(cloud) = clouds::named(view, name)? else {
            // Nobody asks a cloud that has dropped the layout.
            if layout.dropped.contains(&(at as u16)) {
                return Ok(Arc::new(disperse::MemoryProvider::default()) as Arc<dyn disperse::Provider>);
            }
            let text = format!("no cloud {name}, where table {} lies: CREATE CLOUD {name} again", table.name);
            return Err(Error::NotFound(text));
        };
        let key = layout.secret.derive(disperse::Purpose::Files, &disperse::Scope::provider(at as u16));
        let cloud = clouds::open_or_closed(dispersed, &cloud, key)?;
        Ok(match metering {
            Some(metering) => metering.of(name, cloud),
            None => cloud,
        })
    };
    let clouds = layout.declaration.clouds.iter().enumerate().map(open).collect::<Result<Vec<_>>>()?;
    Ok(disperse::Table::new(coder, clouds))
}

/// Whether the database was put back, or may have been, since clouds were last asked what they have: they may have let go of rows that
/// are here. What they say of conditions misses those, and no cloud is at fault.
fn is_put_back(view: &dyn View, kept: &Kept) -> Result<bool> {
    Ok(incidents(view)?.len() as u64 != kept.incidents)
}

fn put_back(table: &str) -> String {
    format!(
        "table {table}: this database was put back, and rows may have been deleted at clouds since its copy was made: all rows are \
         read until REPAIR TABLE {table}"
    )
}

/// What is to be said beside an answer of clouds that were found at fault.
fn notes(table: &str, clouds: &[String], report: &disperse::Report) -> Vec<String> {
    let mut notes = faults(table, clouds, report);
    if report.is_unverified {
        notes.push(format!(
            "table {table}: unverified: one cloud alone was believed, and rows may be missing or a sum wrong if it lies"
        ));
    }
    notes.extend(remedy(table, report));
    notes
}

fn faults(table: &str, clouds: &[String], report: &disperse::Report) -> Vec<String> {
    let note = |(cloud, fault): &(usize, disperse::Fault)| format!("table {table}: cloud {}: {fault}", clouds[*cloud]);
    report.faults.iter().map(note).collect()
}

/// What is to be done about a cloud whose bytes are not those that it was given.
fn remedy(table: &str, report: &disperse::Report) -> Option<String> {
    use disperse::{Failure, Fault};
    let has = |of: &dyn Fn(&Fault) -> bool| report.faults.iter().any(|(_, fault)| of(fault));
    let is_otherwise = |fault: &Fault| match fault {
        Fault::Forged | Fault::WrongSum | Fault::LeavesOut | Fault::NamesOthers => true,
        Fault::Failed(failure) => matches!(failure, Failure::Malformed(_)),
        Fault::Lacks | Fault::Slow => false,
    };
    if has(&is_otherwise) {
        return Some(format!(
            "table {table}: REPAIR TABLE {table} EXTENDED puts there anew what a cloud has otherwise"
        ));
    }
    let lacks = has(&|fault| *fault == Fault::Lacks);
    lacks.then(|| format!("table {table}: REPAIR TABLE {table} gives back what a cloud has lost"))
}

/// Why clouds gave no answer.
fn unanswered(table: &str, clouds: &[String], waiting: &Waiting<'_>, unanswered: disperse::Unanswered) -> Error {
    let (what, report) = match unanswered {
        disperse::Unanswered::CalledOff => return waiting.called_off(),
        disperse::Unanswered::Column { column, report } => (format!("column {column} of table {table}"), report),
        disperse::Unanswered::Pieces { column, report } => {
            let text =
                format!("column {column} of table {table}: what clouds show is of no cell: more of them lie than may");
            let known = faults(table, clouds, &report);
            let known = if known.is_empty() { String::new() } else { format!("; {}", known.join("; ")) };
            return Error::NotVerified(text + &known, None);
        }
        disperse::Unanswered::Quorum { column, wanted, there, report } => {
            let text = format!(
                "column {column} of table {table}: {there} of the {wanted} clouds that are wanted show the same"
            );
            let known = faults(table, clouds, &report);
            return Error::NotVerified(
                if known.is_empty() { text } else { format!("{text}: {}", known.join("; ")) },
                None,
            );
        }
    };
    let known = faults(table, clouds, &report);
    let known = if known.is_empty() { "no cloud says why".to_owned() } else { known.join("; ") };
    let text = format!("{what} cannot be had: {known}");
    // Who is silent may come back; who lies is not to be trusted.
    let lies = |(_, fault): &(usize, disperse::Fault)| match fault {
        disperse::Fault::Failed(failure) => matches!(failure, disperse::Failure::Malformed(_)),
        disperse::Fault::Slow => false,
        _ => true,
    };
    match report.faults.iter().any(lies) {
        true => Error::NotVerified(text, None),
        false => Error::Network(text),
    }
}

fn shared(of: &crate::engine::Engine) -> &Arc<Dispersed> {
    &of.dispersed
}
