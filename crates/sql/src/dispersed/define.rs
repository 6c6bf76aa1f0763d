//! CREATE TABLE ... WITH (engine = 'dispersed', ...), and what becomes of it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use counterfoil_disperse::{
    self as disperse, Declaration, Kept, Operations, Placement, ROWS_MAX_DEFAULT, Secret, State,
};
use counterfoil_log::{View, record_space};
use counterfoil_relation::{Engine as Told, NewTable, Table};
use datafusion::sql::sqlparser::ast::{ColumnDef, ColumnOption, CreateTable};

use super::{Dropped, catalogue, clouds, columns, keep, kept, prefix, shared};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::incidents::incidents;
use crate::session::{Outcome, Session};
use crate::statement::fold;
use crate::transaction::Change;

const CLOUDS: &str = "clouds";
const MAY_FAIL: &str = "may_fail";
const MAY_COLLUDE: &str = "may_collude";
const MAX_ROWS: &str = "max_rows";
const KEY_BACKUP: &str = "key_backup";
const NO_BACKUP: &str = "none";
/// Before the name of a column, whose option says what it is FOR.
const FOR: &str = "for ";

/// Whether a dispersed table can be told this.
pub(crate) fn option_is_known(name: &str) -> bool {
    [CLOUDS, MAY_FAIL, MAY_COLLUDE, MAX_ROWS, KEY_BACKUP].contains(&name)
}

/// Whether an option's value may be a number without quotes.
pub(crate) fn option_is_number(name: &str) -> bool {
    [MAY_FAIL, MAY_COLLUDE, MAX_ROWS].contains(&name)
}

/// Whether a table is to be brought back if its database is lost.
pub(super) fn has_key_backup(table: &Table) -> bool {
    let options = table.engine.as_ref().map_or(&[][..], |engine| &engine.options);
    !options.iter().any(|(name, value)| name == KEY_BACKUP && value == NO_BACKUP)
}

/// Whether an option is about a column, which says it itself.
pub(crate) fn is_of_column(option: &str) -> bool {
    option.starts_with(FOR)
}

/// ` FOR (...)` of a column, as CREATE TABLE says it; nothing where it is for nothing.
#[must_use]
pub fn for_clause(table: &Table, column: &str) -> String {
    let told = table.engine.as_ref().filter(|engine| engine.name == super::ENGINE);
    let words = told.and_then(|told| {
        told.options.iter().find(|(name, _)| name.strip_prefix(FOR) == Some(column)).map(|(_, words)| words)
    });
    words.map_or_else(String::new, |words| format!(" FOR ({words})"))
}

/// What WITH says.
struct Options {
    clouds: Vec<String>,
    may_fail: usize,
    may_collude: usize,
    rows_max: u64,
}

impl Options {
    fn of(told: &Told) -> Result<Self> {
        let text = |name: &str| told.options.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        let count = |name: &str, default: u64| match text(name) {
            None => Ok(default),
            Some(text) => text.trim().parse().map_err(|_| Error::Sql(format!("{name} = '{text}': a number is due"))),
        };
        let clouds = text(CLOUDS).unwrap_or_default().split(',').map(|name| name.trim().to_lowercase());
        let clouds: Vec<String> = clouds.filter(|name| !name.is_empty()).collect();
        if clouds.is_empty() {
            return Err(Error::Sql(
                "at which clouds is it to lie? WITH (engine = 'dispersed', clouds = 'a, b, c')".into(),
            ));
        }
        // One of them may fail, and none need be trusted, unless that is said otherwise; of one or two that is too much.
        let spare = u64::from(clouds.len() > 2);
        let (may_fail, may_collude) = (count(MAY_FAIL, spare)?, count(MAY_COLLUDE, spare)?);
        let rows_max = count(MAX_ROWS, ROWS_MAX_DEFAULT)?;
        if let Some(other) = text(KEY_BACKUP).filter(|text| ![NO_BACKUP, "split"].contains(text)) {
            return Err(Error::Sql(format!(
                "{KEY_BACKUP} = '{other}': 'split' (unless said otherwise) or '{NO_BACKUP}'"
            )));
        }
        let small = |count: u64| usize::try_from(count).unwrap_or(usize::MAX).min(u16::MAX.into());
        Ok(Options { clouds, may_fail: small(may_fail), may_collude: small(may_collude), rows_max })
    }
}

/// Takes FOR (...) out of a table's columns: what each is for.
fn take_operations(given: &mut [ColumnDef]) -> Result<BTreeMap<String, Vec<String>>> {
    let mut all = BTreeMap::new();
    for column in given {
        let (own, others) = std::mem::take(&mut column.options)
            .into_iter()
            .partition(|option| matches!(option.option, ColumnOption::DialectSpecific(_)));
        column.options = others;
        let own: Vec<_> = own;
        let words = own.iter().flat_map(|option| match &option.option {
            ColumnOption::DialectSpecific(tokens) => tokens[1..].iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        });
        let words: Vec<String> = words.collect();
        if !words.is_empty() {
            all.insert(fold(&column.name), words);
        }
    }
    Ok(all)
}

fn operations(column: &str, words: &[String]) -> Result<Operations> {
    let mut operations = Operations::default();
    for word in words {
        match word.as_str() {
            "equality" => operations.equality = true,
            "range" => operations.range = true,
            "sum" => operations.sum = true,
            "prefix" => operations.prefix = true,
            "like" => {
                return Err(Error::NotSupported(format!(
                    "column {column} FOR (like): a search within texts shows clouds too much; FOR (prefix) serves LIKE 'abc%', \
                     and without it LIKE runs here"
                )));
            }
            other => {
                return Err(Error::Sql(format!("column {column} FOR ({other}): equality, range, sum or prefix")));
            }
        }
    }
    Ok(operations)
}

fn declaration(table: &Table, options: Options, told: &BTreeMap<String, Vec<String>>) -> Result<Declaration> {
    let in_key =
        |column: &counterfoil_relation::Column| table.unique_indexes().any(|index| index.columns.contains(&column.id));
    let column = |column: &counterfoil_relation::Column| {
        let words = told.get(&column.name).map_or(&[][..], Vec::as_slice);
        let mut operations = operations(&column.name, words)?;
        // Whether a key is there already is asked of clouds.
        operations.equality |= in_key(column);
        let id = u16::try_from(column.id.0)
            .map_err(|_| Error::NotSupported("a dispersed table of 65,536 columns".into()))?;
        let kind = columns::kind(&column.kind);
        Ok(disperse::Column { id, name: column.name.clone(), kind, nullable: !column.not_null, operations })
    };
    let columns = table.columns.iter().map(column).collect::<Result<_>>()?;
    let Options { clouds, may_fail, may_collude, rows_max } = options;
    Ok(Declaration { table: random()?, columns, clouds, may_fail, may_collude, rows_max })
}

/// Bytes of the system's generator.
pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let drawn = getrandom::fill(&mut bytes);
    drawn.map_err(|error| Error::Host(format!("the system gives no random numbers: {error}")))?;
    Ok(bytes)
}

fn check_given(given: &NewTable) -> Result<()> {
    match given.foreign_keys.is_empty() {
        true => Ok(()),
        false => Err(Error::NotSupported(format!("REFERENCES of table {}, which is dispersed", given.name))),
    }
}

impl Session {
    /// Makes a dispersed table, and says what each cloud learns of each of its columns.
    pub(crate) fn create_dispersed(&mut self, create: &CreateTable, name: String, told: Told) -> Result<Outcome> {
        self.rights.to_reach_out()?;
        if create.query.is_some() {
            let text = "CREATE TABLE ... AS for a dispersed table: CREATE it, then INSERT ... SELECT";
            return Err(Error::NotSupported(text.into()));
        }
        let (options, mut given) = (Options::of(&told)?, create.columns.clone());
        let operations = take_operations(&mut given)?;
        let mut lines = Vec::new();
        let done = self.change(|session, change| {
            if session.is_taken(&*change.lease, &name, create.if_not_exists)? {
                return Ok(Outcome::Done("CREATE TABLE"));
            }
            let table = session.new_table(name, &given, &create.constraints)?;
            check_given(&table)?;
            let words = operations.iter().map(|(column, words)| (format!("{FOR}{column}"), words.join(", ")));
            let mut engine = told;
            engine.options.extend(words);
            let table = NewTable { engine: Some(engine), ..table };
            let relations = session.engine().relations.clone();
            let table = relations.create_table(&mut *change.lease, &table).map_err(Error::Relation)?;
            lines = disperse_table(change, &table, options, &operations)?;
            // What the table is goes to clouds, too.
            shared(session.engine()).note_untold(table.id);
            Ok(Outcome::Done("CREATE TABLE"))
        })?;
        self.notices.extend(lines);
        Ok(done)
    }
}

/// Keeps what a new table is to clouds; what they learn, a line for each column.
fn disperse_table(
    change: &mut Change,
    table: &Arc<Table>,
    options: Options,
    operations: &BTreeMap<String, Vec<String>>,
) -> Result<Vec<String>> {
    let declaration = declaration(table, options, operations)?;
    for name in &declaration.clouds {
        if clouds::named(&*change.lease, name)?.is_none() {
            let text = format!("no cloud {name}: CREATE CLOUD {name} OPTIONS (url 'dir:/mnt/{name}') first");
            return Err(Error::NotFound(text));
        }
    }
    let placement = Placement::plan(&declaration);
    let placement = placement.map_err(|refusal| Error::NotSupported(refusal.to_string()))?;
    let line = |column: &disperse::Column| disperse::leakage::line(&declaration, &placement, column);
    let lines = declaration.columns.iter().map(line).collect();
    let clouds = declaration.clouds.len();
    let (state, incidents) = (State::new(clouds), incidents(&*change.lease)?.len() as u64);
    let told = vec![disperse::Told::default(); clouds];
    keep(
        &mut change.lease,
        table.id,
        &Kept { secret: Secret::new(random()?), declaration, state, incidents, told, version: 0 },
    )?;
    Ok(lines)
}

/// Forgets a table that goes, its key with it. Clouds are told to let go of their fragments, which are noise without the key, when that
/// has been committed; one that cannot be told keeps them.
pub(crate) fn forget(session: &mut Session, change: &mut Change, table: &Table) -> Result<()> {
    let kept = kept(&*change.lease, table)?;
    let opened = super::opened(&session.engine().dispersed, &*change.lease, table, &kept);
    let catalogue = catalogue::Leaving::of(shared(session.engine()), &*change.lease, table, &kept);
    for (name, _) in change.lease.records(record_space::SETTING, &prefix(table.id)) {
        change.lease.delete_record(record_space::SETTING, &name)?;
    }
    session.guard.transaction.be_durable();
    match opened {
        Ok(opened) => session.dropped.push(Dropped {
            id: table.id,
            name: table.name.clone(),
            clouds: kept.declaration.clouds,
            opened,
            catalogue,
        }),
        Err(error) => session.notices.push(format!("table {}: its clouds keep fragments: {error}", table.name)),
    }
    Ok(())
}

pub(super) fn tables(engine: &Engine, view: &dyn View) -> Result<Vec<Arc<Table>>> {
    let mut tables = engine.relations.tables(view).map_err(Error::Relation)?;
    tables.retain(|table| super::is_dispersed(table));
    Ok(tables)
}

/// Refuses to drop a cloud at which tables lie.
pub(super) fn keep_clouds(engine: &Engine, view: &dyn View, cloud: &str) -> Result<()> {
    for table in tables(engine, view)? {
        if kept(view, &table)?.declaration.clouds.iter().any(|name| name == cloud) {
            return Err(Error::Misuse(format!("table {} lies at cloud {cloud}: DROP it first", table.name)));
        }
    }
    Ok(())
}

/// For each cloud how many tables lie there, how many rows it is to be told of, and how many it is to let go of.
pub(super) fn waiting(engine: &Engine, view: &dyn View) -> Result<HashMap<String, [u64; 3]>> {
    let mut waiting: HashMap<String, [u64; 3]> = HashMap::new();
    for table in tables(engine, view)? {
        let Kept { declaration, state, .. } = kept(view, &table)?;
        let here = engine.relations.count(view, &table).map_err(Error::Relation)?;
        for (name, untold) in declaration.clouds.into_iter().zip(&state.untold) {
            let of = waiting.entry(name).or_default();
            // What has not left yet waits for all of them.
            let left = state.untold.iter().fold(disperse::Rows::new(), |all, of| all | &of.lacks).len();
            of[0] += 1;
            of[1] += untold.lacks.len() + here.saturating_sub(left);
            of[2] += untold.keeps.len();
        }
    }
    Ok(waiting)
}
