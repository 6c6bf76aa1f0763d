//! CREATE TABLE ... WITH (engine = 'series', ...).

use std::sync::Arc;

use counterfoil_relation::{NewColumn, NewTable, Table, Type};
use counterfoil_series::{Kind, Options, SeriesTables, Storage};

use super::bounds::LeftOut;
use super::options::{self, Named, Told};
use super::summaries::option as summaries;
use super::{Form, apart, kind, told};
use crate::error::{Error, Result};
use crate::store::Lease;

/// Refuses definitions that a series table cannot have.
pub(crate) fn check(new: &NewTable) -> Result<()> {
    let sql = |what: &str| Err(Error::Sql(format!("{what} (series table {})", new.name)));
    let refuse = |what: &str| Err(Error::NotSupported(format!("{what} (series table {})", new.name)));
    let Some(key) = &new.primary_key else {
        return sql("a series table has a PRIMARY KEY: the columns that name a series, and last the time");
    };
    if !new.uniques.is_empty() || !new.foreign_keys.is_empty() {
        return refuse("UNIQUE and REFERENCES: a series table has a primary key alone");
    }
    if new.columns.iter().any(|column| column.identity.is_some()) {
        return refuse("identity columns");
    }
    let column = |name: &String| new.columns.iter().find(|column| column.name == *name);
    for (at, name) in key.columns.iter().enumerate() {
        let Some(column) = column(name) else { continue };
        let is_time = matches!(column.kind, Type::Timestamp { .. } | Type::TimestampTz);
        if at + 1 == key.columns.len() && !is_time {
            return sql(&format!(
                "column {name} is the last of the PRIMARY KEY: it must be a TIMESTAMP or TIMESTAMPTZ"
            ));
        }
        if at + 1 < key.columns.len() && matches!(column.kind, Type::Real | Type::Double) {
            return refuse(&format!("column {name} of type {} in the key", crate::types::name(&column.kind)));
        }
    }
    let odd = new.columns.iter().find(|column| !key.columns.contains(&column.name) && kind(&column.kind).is_none());
    if let Some(column) = odd {
        return refuse(&format!("column {} of type {}", column.name, crate::types::name(&column.kind)));
    }
    let named: Vec<Named<'_>> = new
        .columns
        .iter()
        .map(|column| Named { name: &column.name, kind: &column.kind, is_key: key.columns.contains(&column.name) })
        .collect();
    let told = Told::of(new.engine.as_ref());
    summaries::check(new, told.given())?;
    told.check(&named)
}

/// Refuses columns that cannot be added.
pub(crate) fn check_added(table: &Table, column: &NewColumn) -> Result<()> {
    let refuse =
        |what: &str| Err(Error::NotSupported(format!("{what} (column {}, series table {})", column.name, table.name)));
    if column.not_null || column.default.is_some() || column.identity.is_some() {
        return refuse("ADD COLUMN with NOT NULL, DEFAULT or IDENTITY: points that are there have NULL in it");
    }
    if kind(&column.kind).is_none() { refuse(&format!("type {}", crate::types::name(&column.kind))) } else { Ok(()) }
}

/// Adds the newest column to the engine's side.
pub(crate) fn add_column(tables: &SeriesTables, lease: &mut Lease, table: &Arc<Table>) -> Result<()> {
    let column = table.columns.iter().max_by_key(|column| column.id);
    let of = column.and_then(|column| kind(&column.kind));
    let of = of.ok_or_else(|| Error::Bug("a type that series do not have".into()))?;
    for table in with_apart(tables, lease, table)? {
        tables.add_column(&mut **lease, Form::of(&table)?.number, of).map_err(told(&table))?;
    }
    Ok(())
}

/// A table, and what is kept apart of it if there is anything.
fn with_apart(tables: &SeriesTables, lease: &Lease, table: &Arc<Table>) -> Result<Vec<Arc<Table>>> {
    let mut both = vec![table.clone()];
    if let Some(apart) = apart::kept_apart(table)
        && apart::is_there(tables, &**lease, &apart)?
    {
        both.push(apart);
    }
    Ok(both)
}

/// Drops the points of a table that goes.
pub(crate) fn drop(tables: &SeriesTables, lease: &mut Lease, table: &Arc<Table>) -> Result<()> {
    for table in with_apart(tables, lease, table)? {
        tables.drop(&mut **lease, Form::of(&table)?.number).map_err(told(&table))?;
    }
    Ok(())
}

/// Takes all points out of a table, and leaves what is kept apart of it.
pub(crate) fn truncate(tables: &SeriesTables, lease: &mut Lease, table: &Arc<Table>) -> Result<()> {
    if !apart::is_there(tables, &**lease, table)? {
        return Ok(());
    }
    tables.truncate(&mut **lease, Form::of(table)?.number).map_err(told(table))
}

/// Makes the engine's side of a table that was just defined.
pub(crate) fn create(tables: &SeriesTables, lease: &mut Lease, table: &Arc<Table>) -> Result<()> {
    let form = Form::of(table)?;
    let slots = form.values.len();
    let mut kinds = vec![Kind::Integer; slots];
    for (place, slot) in &form.values {
        let of = kind(&table.columns[*place].kind);
        kinds[*slot] = of.ok_or_else(|| Error::Bug("a type that series do not have".into()))?;
    }
    let options = engine_options(table, &form, lease.page_bytes())?;
    tables.create(&mut **lease, form.number, &kinds, options).map_err(told(table))
}

fn engine_options(table: &Table, form: &Form, page_bytes: usize) -> Result<Options> {
    let told = Told::table(table);
    let reorder = options::ticks(&table.columns[form.time].kind, told.reorder()?);
    Ok(Options { reorder, summarized: summaries::of(table, form, told.given(), page_bytes) })
}

/// Makes the engine's side of what is kept apart of a table, unless it is there.
pub(super) fn create_apart(tables: &SeriesTables, lease: &mut Lease, apart: &Arc<Table>) -> Result<()> {
    if apart::is_there(tables, &**lease, apart)? {
        return Ok(());
    }
    let form = Form::of(apart)?;
    let kinds = tables.kinds(&**lease, apart::table_of(apart)).map_err(told(apart))?;
    let options = engine_options(apart, &form, lease.page_bytes())?;
    tables.create(&mut **lease, form.number, &kinds, options).map_err(told(apart))
}

/// Tells a table something else than before: options that are not given stay as they are.
pub(crate) fn set_options(
    engine: &crate::engine::Engine,
    lease: &mut Lease,
    table: &Table,
    given: Vec<(String, String)>,
) -> Result<Arc<Table>> {
    let mut told_before = table.engine.clone().ok_or_else(|| Error::Bug("a table without an engine".into()))?;
    let mut seen = std::collections::HashSet::new();
    for (name, value) in given {
        if !options::is_known(&name) {
            return Err(Error::NotSupported(format!("the table option {name} (engine {})", told_before.name)));
        }
        if [summaries::SUMMARIES, summaries::QUALITY].contains(&name.as_str()) {
            return Err(Error::NotSupported(format!(
                "{name} of a table that is there: it is told when a table is made"
            )));
        }
        if !seen.insert(name.clone()) {
            return Err(Error::Sql(format!("the option {name} is given twice")));
        }
        match told_before.options.iter_mut().find(|(other, _)| *other == name) {
            Some((_, before)) => *before = value,
            None => told_before.options.push((name, value)),
        }
    }
    let is_key = |column: &counterfoil_relation::Column| {
        table.primary_key.as_ref().is_some_and(|key| key.columns.contains(&column.id))
    };
    let named: Vec<Named<'_>> = table
        .columns
        .iter()
        .map(|column| Named { name: &column.name, kind: &column.kind, is_key: is_key(column) })
        .collect();
    Told::of(Some(&told_before)).check(&named)?;
    let changed = engine.relations.set_engine(&mut **lease, table, told_before).map_err(Error::Relation)?;
    engine.retention.note_told(&changed)?;
    for table in with_apart(&engine.series, lease, &changed)? {
        let form = Form::of(&table)?;
        let options = engine_options(&table, &form, lease.page_bytes())?;
        engine.series.set_options(&mut **lease, form.number, options).map_err(told(&table))?;
    }
    Ok(changed)
}

/// What options are to say once a column has another name: or that they forbid that it goes.
pub(crate) fn renamed_column(table: &Table, from: &str, to: Option<&str>) -> Result<Option<(String, String)>> {
    let Some(left_out) = LeftOut::of(&Told::table(table))? else { return Ok(None) };
    let way = left_out.way.name;
    match (left_out.renamed(from, to.unwrap_or(from)), to) {
        (Some(_), None) => {
            Err(Error::Sql(format!("{way} names column {from}: ALTER TABLE {} SET ({way} = ...) first", table.name)))
        }
        (renamed, _) => Ok(renamed.map(|(name, text)| (name.to_owned(), text))),
    }
}
