//! CREATE TABLE ... WITH (engine = 'dispersed', ...), and what becomes of it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use counterfoil_disperse::{
    self as disperse, Declaration, Distribution, Kept, Operations, Placement, ROWS_MAX_DEFAULT, Secret,
};
use counterfoil_log::{View, record_space};
use counterfoil_relation::{Engine as Told, NewTable, Table, TableId};
use datafusion::sql::sqlparser::ast::{ColumnDef, ColumnOption, CreateTable, Statement};

use super::distribution::distribution;
use super::words::{Relaid, Used};
use super::{clouds, columns, dropped, foreign, keep, kept, prefix, words};
use crate::define::engine_of;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::incidents::incidents;
use crate::session::{Outcome, Session};
use crate::show;
use crate::statement::{self, fold};
use crate::transaction::Change;

const CLOUDS: &str = "clouds";
const MAY_FAIL: &str = "may_fail";
const MAY_COLLUDE: &str = "may_collude";
const MAX_ROWS: &str = "max_rows";
const KEY_BACKUP: &str = "key_backup";
const CODING: &str = "coding";
const NO_BACKUP: &str = "none";
/// Before the name of a column, whose option says what it is FOR.
const FOR: &str = "for ";
/// Before the name of a column, whose option says at which clouds it lies.
const USE: &str = "use ";
/// Before the name of a column, whose option says how it is distributed there.
const WITH: &str = "with ";

/// Whether a dispersed table can be told this.
pub(crate) fn option_is_known(name: &str) -> bool {
    [CLOUDS, CODING, MAY_FAIL, MAY_COLLUDE, MAX_ROWS, KEY_BACKUP].contains(&name)
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
    [FOR, USE, WITH].iter().any(|of| option.starts_with(of))
}

/// What an option says of a column.
fn said_of<'a>(told: &'a Told, before: &str, column: &str) -> Option<&'a str> {
    let is_it = |name: &str| name.strip_prefix(before) == Some(column);
    told.options.iter().find(|(name, _)| is_it(name)).map(|(_, value)| value.as_str())
}

/// ` FOR (...) USE CLOUDS ... WITH ...` of a column, as CREATE TABLE says it; nothing where it is for nothing, and lies where the table does.
#[must_use]
pub fn for_clause(table: &Table, column: &str) -> String {
    let Some(told) = table.engine.as_ref().filter(|engine| engine.name == super::ENGINE) else { return String::new() };
    let uses = said_of(told, FOR, column).map(|words| names(words).collect::<Vec<_>>().join(", "));
    let uses = uses.filter(|words| !words.is_empty()).map(|words| format!(" FOR ({words})")).unwrap_or_default();
    let named = |clouds: &str| names(clouds).map(|name| format!("'{}'", name.replace('\'', "''"))).collect::<Vec<_>>();
    let clouds = said_of(told, USE, column).map(|clouds| named(clouds).join(" AND "));
    let coding = said_of(told, WITH, column).map(|words| format!(" WITH '{}'", words.replace('\'', "''")));
    let clouds = clouds.or_else(|| coding.as_ref().map(|_| format!("'{}'", words::AUTO)));
    let clouds = clouds.map(|clouds| format!(" USE CLOUDS {clouds}"));
    uses + &clouds.unwrap_or_default() + &coding.unwrap_or_default()
}

/// Names of clouds, apart by commas.
pub(super) fn names(text: &str) -> impl Iterator<Item = String> {
    text.split(',').map(|name| name.trim().to_lowercase()).filter(|name| !name.is_empty())
}

/// What WITH says.
struct Options {
    clouds: Vec<String>,
    distribution: Distribution,
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
        let clouds: Vec<String> = names(text(CLOUDS).unwrap_or_default()).collect();
        if clouds.is_empty() {
            return Err(Error::Sql(
                "at which clouds is it to lie? WITH (engine = 'dispersed', clouds = 'a, b, c')".into(),
            ));
        }
        // One of them may fail, and none need be trusted, unless that is said otherwise; of one or two that is too much.
        let spare = u64::from(clouds.len() > 2);
        let (may_fail, may_collude) = (count(MAY_FAIL, spare)?, count(MAY_COLLUDE, spare)?);
        let rows_max = count(MAX_ROWS, ROWS_MAX_DEFAULT)?;
        if rows_max == 0 {
            return Err(Error::Sql(format!("{MAX_ROWS} = 0: a table without room for a row")));
        }
        if let Some(other) = text(KEY_BACKUP).filter(|text| ![NO_BACKUP, "split"].contains(text)) {
            return Err(Error::Sql(format!(
                "{KEY_BACKUP} = '{other}': 'split' (unless said otherwise) or '{NO_BACKUP}'"
            )));
        }
        let distribution = text(CODING).map(|words| distribution("the table", words)).transpose()?.unwrap_or_default();
        let small = |count: u64| usize::try_from(count).unwrap_or(usize::MAX).min(u16::MAX.into());
        Ok(Options { clouds, distribution, may_fail: small(may_fail), may_collude: small(may_collude), rows_max })
    }
}

/// Takes what columns say of themselves out of their definitions: the options that stand for it.
fn take_options(given: &mut [ColumnDef]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for column in given {
        let (own, others): (Vec<_>, _) = std::mem::take(&mut column.options)
            .into_iter()
            .partition(|option| matches!(option.option, ColumnOption::DialectSpecific(_)));
        column.options = others;
        for option in own {
            let ColumnOption::DialectSpecific(tokens) = option.option else { continue };
            all.extend(words::options_of(&fold(&column.name), &tokens));
        }
    }
    all
}

/// How a table lies as a statement has it that makes it; none: that one makes another table, or is of another version.
pub(super) fn laid_by(table: &Table, sql: &str) -> Option<Told> {
    let [Statement::CreateTable(create)] = &statement::parse(sql).ok()?[..] else { return None };
    let mut told = engine_of(&create.table_options).ok()??;
    told.options.extend(take_options(&mut create.columns.clone()));
    let mut laid = table.clone();
    laid.engine = Some(told.clone());
    let is_it = told.name == super::ENGINE && show::create_table(&laid, |_| Ok(None)).ok()? == sql;
    is_it.then_some(told)
}

/// What a column is for: no option says nothing.
pub(super) fn option_for(column: &str, words: &str) -> (String, String) {
    (format!("{FOR}{column}"), words.to_owned())
}

/// How a column is distributed.
pub(super) fn option_with(column: &str, words: &str) -> (String, String) {
    (format!("{WITH}{column}"), words.to_owned())
}

/// Where a column lies.
pub(super) fn option_use(column: &str, clouds: &str) -> (String, String) {
    (format!("{USE}{column}"), clouds.to_owned())
}

/// What is said of a column is said of it under its new name; clouds hear of it, and know columns by their numbers.
pub(crate) fn renamed_column(
    session: &mut Session,
    change: &mut Change,
    table: &Arc<Table>,
    (from, to): (&str, &str),
) -> Result<Arc<Table>> {
    let mut told = table.engine.clone().ok_or_else(|| Error::Bug("a dispersed table without its engine".into()))?;
    for (name, _) in &mut told.options {
        if let Some(of) = [FOR, USE, WITH].into_iter().find(|of| name.strip_prefix(of) == Some(from)) {
            *name = format!("{of}{to}");
        }
    }
    let mut kept = kept(&*change.lease, table)?;
    let declared = kept.layouts_mut().iter_mut().flat_map(|layout| &mut layout.declaration.columns);
    declared.filter(|column| column.name == from).for_each(|column| column.name = to.to_owned());
    keep(&mut change.lease, table.id, &kept)?;
    renamed(session, table);
    let relations = session.engine().relations.clone();
    relations.set_engine(&mut *change.lease, table, told).map_err(Error::Relation)
}

/// Clouds are told what a table is called, since they bring it back.
pub(crate) fn renamed(session: &mut Session, table: &Table) {
    session.guard.transaction.be_durable();
    session.note_untold(table.id);
}

fn operations(column: &str, words: &str) -> Result<Operations> {
    let mut operations = Operations::default();
    for word in names(words) {
        match word.as_str() {
            // What every column is for.
            "fetching" => {}
            "equality" => operations.equality = true,
            "range" => operations.range = true,
            "sum" => operations.sum = true,
            "prefix" => operations.prefix = true,
            "danger order" => operations.danger_order = true,
            "like" => {
                return Err(Error::NotSupported(format!(
                    "column {column} FOR (like): a search within texts shows clouds too much; FOR (prefix) serves LIKE 'abc%', \
                     and without it LIKE runs here"
                )));
            }
            other => {
                return Err(Error::Sql(format!(
                    "column {column} FOR ({other}): equality, range, sum, prefix, danger order, or fetching alone"
                )));
            }
        }
    }
    Ok(operations)
}

/// What is declared of a table by its options. `number`: its own, for ever.
fn declaration(table: &Table, number: disperse::TableNumber) -> Result<Declaration> {
    let told = table.engine.as_ref().ok_or_else(|| Error::Bug("a dispersed table without its engine".into()))?;
    let Options { mut clouds, distribution: of_table, may_fail, may_collude, rows_max } = Options::of(told)?;
    let everywhere: Vec<u16> = (0..clouds.len() as u16).collect();
    let in_key = |id| table.unique_indexes().any(|index| index.columns.contains(&id));
    let mut columns = Vec::new();
    for column in &table.columns {
        let mut operations = operations(&column.name, said_of(told, FOR, &column.name).unwrap_or_default())?;
        // Whether a key is there already is asked of clouds.
        operations.equality |= in_key(column.id);
        let id = u16::try_from(column.id.0)
            .map_err(|_| Error::NotSupported("a dispersed table of 65,536 columns".into()))?;
        let own = said_of(told, USE, &column.name).map(|names_of| places(&mut clouds, names_of));
        let coding = said_of(told, WITH, &column.name);
        let coding = coding.map(|words| distribution(&format!("column {}", column.name), words)).transpose()?;
        columns.push(disperse::Column {
            id,
            name: column.name.clone(),
            kind: columns::kind(&column.kind),
            nullable: !column.not_null,
            operations,
            distribution: coding.unwrap_or(of_table),
            clouds: own.unwrap_or_else(|| everywhere.clone()),
        });
    }
    Ok(Declaration { table: number, columns, clouds, may_fail, may_collude, rows_max })
}

/// Places of clouds among others, ascending, which those that were not among them join.
fn places(clouds: &mut Vec<String>, of: &str) -> Vec<u16> {
    let mut places: Vec<u16> = Vec::new();
    for name in names(of) {
        let at = clouds.iter().position(|known| *known == name).unwrap_or_else(|| {
            clouds.push(name);
            clouds.len() - 1
        });
        places.push(at as u16);
    }
    places.sort_unstable();
    places.dedup();
    places
}

/// Bytes of the system's generator.
pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let drawn = getrandom::fill(&mut bytes);
    drawn.map_err(|error| Error::Host(format!("the system gives no random numbers: {error}")))?;
    Ok(bytes)
}

/// Refuses what is said twice, of which one would not count, and lists with nothing between two commas.
fn check_said(options: &[(String, String)]) -> Result<()> {
    for (at, (name, value)) in options.iter().enumerate() {
        if options[..at].iter().any(|(before, _)| before == name) {
            let said = [FOR, USE, WITH].iter().find_map(|of| name.strip_prefix(of).map(|column| (of, column)));
            let what =
                said.map_or_else(|| name.clone(), |(of, column)| format!("{}of column {column}", of.to_uppercase()));
            return Err(Error::Sql(format!("{what} is said twice: which of them counts?")));
        }
        if name == CLOUDS && value.split(',').any(|name| name.trim().is_empty()) {
            return Err(Error::Sql(format!("{CLOUDS} = '{value}': a cloud has a name, WITH (clouds = 'a, b, c')")));
        }
    }
    Ok(())
}

fn check_given(given: &NewTable) -> Result<()> {
    match given.foreign_keys.is_empty() {
        true => Ok(()),
        false => Err(Error::NotSupported(format!("REFERENCES of table {}, which is dispersed", given.name))),
    }
}

impl Session {
    /// What a table that says nothing of where it lies is told, after USE CLOUDS; none: it lies here.
    pub(crate) fn engine_used(&mut self) -> Result<Option<Told>> {
        let Some(Used { clouds, coding }) = self.settings.clouds.clone() else { return Ok(None) };
        let clouds = match clouds {
            Some(clouds) => clouds,
            None => clouds::all(&self.view()?)?.into_iter().map(|cloud| cloud.name).collect::<Vec<_>>().join(", "),
        };
        let coding = coding.map(|coding| (CODING.to_owned(), coding));
        let options = std::iter::once((CLOUDS.to_owned(), clouds)).chain(coding).collect();
        Ok(Some(Told { name: super::ENGINE.to_owned(), options }))
    }

    /// Makes a dispersed table, and says what each cloud learns of each of its columns.
    pub(crate) fn create_dispersed(&mut self, create: &CreateTable, name: String, told: Told) -> Result<Outcome> {
        self.to_write()?;
        if create.query.is_some() {
            let text = "CREATE TABLE ... AS for a dispersed table: CREATE it, then INSERT ... SELECT";
            return Err(Error::NotSupported(text.into()));
        }
        let mut given = create.columns.clone();
        let mut engine = told;
        engine.options.extend(take_options(&mut given));
        check_said(&engine.options)?;
        let view = self.view()?;
        if self.is_taken(&view, &name, create.if_not_exists)? {
            return Ok(Outcome::Done("CREATE TABLE"));
        }
        for (_, clouds) in engine.options.iter_mut().filter(|(name, _)| name.starts_with(USE)) {
            *clouds = self.with_folders_named(clouds)?;
        }
        let mut lines = Vec::new();
        let done = self.change(|session, change| {
            if session.is_taken(&*change.lease, &name, create.if_not_exists)? {
                return Ok(Outcome::Done("CREATE TABLE"));
            }
            let table = session.new_table(name, &given, &create.constraints)?;
            check_given(&table)?;
            let table = NewTable { engine: Some(engine), ..table };
            let relations = session.engine().relations.clone();
            let table = relations.create_table(&mut *change.lease, &table).map_err(Error::Relation)?;
            let (declaration, told) = declared(&*change.lease, &table, random()?)?;
            lines = told;
            let kept = Kept::new(Secret::new(random()?), declaration, incidents(&*change.lease)?.len() as u64);
            keep(&mut change.lease, table.id, &kept)?;
            // What the table is goes to clouds, too.
            session.note_untold(table.id);
            Ok(Outcome::Done("CREATE TABLE"))
        })?;
        self.notices.extend(lines);
        Ok(done)
    }
}

/// What a table's engine was told, changed.
pub(super) fn with_options(table: &Table, relaid: &Relaid) -> Result<Told> {
    let mut told = table.engine.clone().ok_or_else(|| Error::Bug("a dispersed table without its engine".into()))?;
    let before = Options::of(&told)?;
    let column_is_there = |column: &str| match table.column(column) {
        Some(_) => Ok(()),
        None => Err(Error::NoColumn(format!("no column {column} in table {}", table.name))),
    };
    let mut set = |(name, value): (String, Option<String>)| {
        told.options.retain(|(own, _)| *own != name);
        told.options.extend(value.map(|value| (name, value)));
    };
    match relaid {
        Relaid::Refreshed => {}
        Relaid::For { column, words } => {
            column_is_there(column)?;
            let (name, words) = option_for(column, words);
            set((name, Some(words)));
        }
        Relaid::Use { column, used: Used { clouds, coding } } => {
            column_is_there(column)?;
            let (name, _) = option_use(column, "");
            set((name, clouds.clone()));
            // Nothing said of it changes nothing of it.
            if let Some(coding) = coding {
                let (name, words) = option_with(column, coding);
                set((name, Some(words)));
            }
        }
        Relaid::Options(options) => {
            // What a table was to bear it is to bear on, however many clouds there are, unless that is said otherwise.
            let Options { may_fail, may_collude, .. } = before;
            set((MAY_FAIL.to_owned(), Some(may_fail.to_string())));
            set((MAY_COLLUDE.to_owned(), Some(may_collude.to_string())));
            for (name, value) in options {
                if ![CLOUDS, CODING, MAY_FAIL, MAY_COLLUDE, MAX_ROWS].contains(&name.as_str()) {
                    let text = format!(
                        "ALTER TABLE ... SET ({name} = ...) of a dispersed table: clouds, coding, may_fail, may_collude, \
                         max_rows"
                    );
                    return Err(Error::NotSupported(text));
                }
                set((name.clone(), Some(value.clone())));
            }
        }
    }
    Ok(told)
}

/// Refuses names of clouds of which one is not known.
pub(super) fn all_are_there(view: &dyn View, names: impl IntoIterator<Item = impl AsRef<str>>) -> Result<()> {
    for name in names {
        let name = name.as_ref();
        if clouds::named(view, name)?.is_none() {
            let text = format!("no cloud {name}: CREATE CLOUD {name} OPTIONS (url 'dir:/mnt/{name}') first");
            return Err(Error::NotFound(text));
        }
    }
    Ok(())
}

/// What a table's options declare, if it can be kept, and what clouds learn, a line for each column.
pub(super) fn declared(
    view: &dyn View,
    table: &Table,
    number: disperse::TableNumber,
) -> Result<(Declaration, Vec<String>)> {
    let declaration = declaration(table, number)?;
    all_are_there(view, declaration.clouds.iter())?;
    let placement = Placement::plan(&declaration);
    let placement = placement.map_err(|refusal| Error::NotSupported(refusal.to_string()))?;
    let line = |column: &disperse::Column| disperse::leakage::line(&declaration, &placement, column);
    let lines = declaration.columns.iter().map(line).collect();
    Ok((declaration, lines))
}

/// Forgets a table that goes, its key with it. Clouds are told to let go of it when that has been committed (dropped.rs).
pub(crate) fn forget(session: &mut Session, change: &mut Change, table: &Arc<Table>) -> Result<()> {
    let kept = kept(&*change.lease, table)?;
    if !session.leased.apart.contains(&table.id) {
        // Whoever waited for the writer may have been overtaken.
        let answered = session.is_leased_as_of(&*change.lease, table)?;
        dropped::note(session, change, table, (&kept, &answered))?;
    }
    for (name, _) in change.lease.records(record_space::SETTING, &prefix(table.id)) {
        change.lease.delete_record(record_space::SETTING, &name)?;
    }
    foreign::forget(change, table.id)?;
    session.guard.transaction.be_durable();
    Ok(())
}

pub(super) fn tables(engine: &Engine, view: &dyn View) -> Result<Vec<Arc<Table>>> {
    let mut tables = engine.relations.tables(view).map_err(Error::Relation)?;
    tables.retain(|table| super::is_dispersed(table));
    Ok(tables)
}

/// Refuses to drop a cloud at which tables lie, or have lain and may still have fragments.
pub(super) fn keep_clouds(engine: &Engine, view: &dyn View, cloud: &str) -> Result<()> {
    for table in tables(engine, view)? {
        let kept = kept(view, &table)?;
        let has = |declaration: &Declaration| declaration.clouds.iter().any(|name| name == cloud);
        if has(kept.declaration()) {
            return Err(Error::Misuse(format!(
                "table {0} lies at cloud {cloud}: ALTER TABLE {0} SET (clouds = '...') moves it, or DROP it first",
                table.name
            )));
        }
        let rows = kept.layouts().iter().filter(|layout| has(&layout.declaration));
        let rows = rows.map(|layout| layout.state.live.len()).sum::<u64>();
        if rows > 0 {
            let text =
                format!("{rows} rows of table {0} still lie at cloud {cloud}: REPAIR TABLE {0} moves them", table.name);
            return Err(Error::Misuse(text));
        }
    }
    Ok(())
}

/// Tables that have something at a cloud.
pub(super) fn lying_at(engine: &Engine, view: &dyn View, cloud: &str) -> Result<Vec<TableId>> {
    let mut lying = Vec::new();
    for table in tables(engine, view)? {
        let has = |layout: &disperse::Layout| layout.holders().any(|name| name == cloud);
        lying.extend(kept(view, &table)?.layouts().iter().any(has).then_some(table.id));
    }
    Ok(lying)
}

/// A cloud that nobody will ask any more has let go of all layouts that tables had there.
/// How many tables have moved away from it that it may have still.
pub(super) fn forget_cloud(engine: &Engine, change: &mut Change, cloud: &str) -> Result<u64> {
    let mut left = 0;
    for table in tables(engine, &*change.lease)? {
        let mut kept = kept(&*change.lease, &table)?;
        left += u64::from(kept.layouts().iter().any(|layout| layout.holders().any(|name| name == cloud)));
        let place = |layout: &disperse::Layout| layout.declaration.clouds.iter().position(|name| name == cloud);
        let held = kept.layouts().iter().filter_map(|layout| Some((layout.number, place(layout)?)));
        for (number, place) in held.collect::<Vec<_>>() {
            kept.dropped(number, place);
        }
        keep(&mut change.lease, table.id, &kept)?;
    }
    Ok(left)
}

/// What waits for a cloud.
#[derive(Default)]
pub(super) struct Waits {
    pub tables: u64,
    pub to_put: u64,
    pub to_remove: u64,
    /// Rows that are to move there.
    pub to_move: u64,
    /// Tables that are gone, and layouts of them, that it is to let go of.
    pub to_drop: u64,
}

/// For each cloud how many tables lie there, and what waits for it.
pub(super) fn waiting(engine: &Engine, view: &dyn View) -> Result<HashMap<String, Waits>> {
    let mut waiting: HashMap<String, Waits> = HashMap::new();
    for (cloud, to_drop) in dropped::waiting(view)? {
        waiting.entry(cloud).or_default().to_drop = to_drop;
    }
    for table in tables(engine, view)? {
        let kept = kept(view, &table)?;
        let here = engine.relations.count(view, &table).map_err(Error::Relation)?;
        let current = kept.current();
        let away = &kept.live() - &current.state.live;
        for (name, untold) in current.declaration.clouds.iter().zip(&current.state.untold) {
            let of = waiting.entry(name.clone()).or_default();
            // What has not left yet waits for all of them.
            let left = (current.on_their_way() - &away).len();
            of.to_put += (&untold.lacks - &away).len() + untold.owed.len() + here.saturating_sub(left);
            of.to_move += away.len();
        }
        let mut holders = BTreeSet::new();
        for layout in kept.layouts() {
            for (name, untold) in layout.declaration.clouds.iter().zip(&layout.state.untold) {
                waiting.entry(name.clone()).or_default().to_remove += untold.keeps.len();
            }
            // Where it lay it lies until that cloud has let go of it.
            holders.extend(layout.holders());
        }
        holders.into_iter().for_each(|name| waiting.entry(name.to_owned()).or_default().tables += 1);
    }
    Ok(waiting)
}
