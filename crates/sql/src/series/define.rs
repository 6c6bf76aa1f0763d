//! CREATE TABLE ... WITH (engine = 'series', ...).

use std::sync::Arc;

use counterfoil_relation::{NewColumn, NewTable, Table, Type};
use counterfoil_series::{Kind, Options, SeriesTables};

use super::{Form, kind, told};
use crate::error::{Error, Result};
use crate::store::Lease;

/// How long points wait for others that came between them, before a leaf is packed.
const REORDER: &str = "reorder";
/// What happens to a row whose key is there already.
const ON_DUPLICATE: &str = "on_duplicate";
/// The database of InfluxDB whose measurement the table is: what clients of that interface may drop.
const INFLUX_DATABASE: &str = "influx_database";

/// Whether a series table can be told this.
pub(crate) fn option_is_known(name: &str) -> bool {
    [REORDER, ON_DUPLICATE, INFLUX_DATABASE].contains(&name)
}

fn option<'a>(options: &'a [(String, String)], name: &str) -> Option<&'a str> {
    options.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
}

/// Whether a row whose key is there already is refused, rather than that it takes the other's place.
pub(crate) fn refuses_duplicates(table: &Table) -> bool {
    table.engine.as_ref().is_some_and(|engine| option(&engine.options, ON_DUPLICATE) == Some("error"))
}

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
    let options = new.engine.as_ref().map_or(&[][..], |engine| &engine.options);
    match option(options, ON_DUPLICATE) {
        None | Some("last" | "error") => {}
        Some(_) => return sql("on_duplicate is 'last' or 'error'"),
    }
    reorder(options, false).map(|_| ())
}

/// The option `reorder` in the unit of the time column.
fn reorder(options: &[(String, String)], nanoseconds: bool) -> Result<i64> {
    let Some(text) = option(options, REORDER) else { return Ok(0) };
    let wrong = || Error::Sql(format!("reorder = '{text}': a span of time is due, such as '500 ms' or '2 s'"));
    let (number, unit) = text.trim().split_once(' ').ok_or_else(wrong)?;
    let number: i64 = number.parse().map_err(|_| wrong())?;
    let microseconds = match unit.trim() {
        "us" | "microsecond" | "microseconds" => 1,
        "ms" | "millisecond" | "milliseconds" => 1_000,
        "s" | "second" | "seconds" => 1_000_000,
        "min" | "minute" | "minutes" => 60_000_000,
        "h" | "hour" | "hours" => 3_600_000_000,
        _ => return Err(wrong()),
    };
    let span = number.checked_mul(microseconds).and_then(|span| span.checked_mul(if nanoseconds { 1000 } else { 1 }));
    span.filter(|span| *span >= 0).ok_or_else(wrong)
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
    tables.add_column(&mut **lease, Form::of(table)?.number, of).map_err(told(table))
}

/// Drops the points of a table that goes.
pub(crate) fn drop(tables: &SeriesTables, lease: &mut Lease, table: &Arc<Table>) -> Result<()> {
    tables.drop(&mut **lease, Form::of(table)?.number).map_err(told(table))
}

/// Takes all points out of a table.
pub(crate) fn truncate(tables: &SeriesTables, lease: &mut Lease, table: &Arc<Table>) -> Result<()> {
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
    let nanoseconds = matches!(table.columns[form.time].kind, Type::Timestamp { nanoseconds: true });
    let given = table.engine.as_ref().map_or(&[][..], |engine| &engine.options);
    let options = Options { reorder: reorder(given, nanoseconds)? };
    tables.create(&mut **lease, form.number, &kinds, options).map_err(told(table))
}
