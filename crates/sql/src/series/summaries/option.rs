//! WITH (summaries = 'value, pressure' | 'all', quality = 'state'): which columns of a series table have summaries.

use counterfoil_relation::{NewTable, Table, Type};
use counterfoil_series::{Kind, Summarized};

use crate::error::{Error, Result};
use crate::series::{Form, kind};

/// The option that names columns.
pub(crate) const SUMMARIES: &str = "summaries";
/// The option that names the column of qualities.
pub(crate) const QUALITY: &str = "quality";
/// All columns of numbers.
const ALL: &str = "all";

fn option<'a>(options: &'a [(String, String)], name: &str) -> Option<&'a str> {
    options.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
}

/// What the options say: the columns by name, none for all of them, and that of qualities.
struct Said<'a> {
    columns: Option<Vec<&'a str>>,
    quality: Option<&'a str>,
}

fn said(options: &[(String, String)]) -> Option<Said<'_>> {
    let columns = option(options, SUMMARIES)?;
    let named = || columns.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let columns = (!columns.trim().eq_ignore_ascii_case(ALL)).then(named);
    Some(Said { columns, quality: option(options, QUALITY) })
}

/// Whether `all` takes a column in.
fn is_number(of: &Type) -> bool {
    matches!(of, Type::SmallInt | Type::Integer | Type::BigInt | Type::Numeric { .. } | Type::Real | Type::Double)
}

/// Refuses options that name columns which cannot have summaries.
pub(crate) fn check(new: &NewTable, options: &[(String, String)]) -> Result<()> {
    let wrong = |what: String| Err(Error::Sql(format!("{what} (series table {})", new.name)));
    let Some(said) = said(options) else {
        return match option(options, QUALITY) {
            Some(_) => wrong("quality = '...' goes with summaries = '...'".into()),
            None => Ok(()),
        };
    };
    let key = new.primary_key.as_ref().map_or(&[][..], |key| &key.columns);
    let column = |name: &str| new.columns.iter().find(|column| column.name == name && !key.contains(&column.name));
    let held = |name: &str| column(name).and_then(|column| kind(&column.kind));
    for name in said.columns.iter().flatten() {
        if !matches!(held(name), Some(Kind::Integer | Kind::Double)) {
            return wrong(format!("summaries = '...': {name} is no column of numbers beside the key"));
        }
    }
    match said.quality {
        Some(name) if held(name) != Some(Kind::Integer) => {
            wrong(format!("quality = '{name}' is no column of integers beside the key"))
        }
        _ => Ok(()),
    }
}

/// Refuses to rename or drop a column that the options name: they would name nothing, or something else.
pub(crate) fn check_kept(table: &Table, column: &str) -> Result<()> {
    let options = table.engine.as_ref().map_or(&[][..], |engine| &engine.options);
    let Some(said) = said(options) else { return Ok(()) };
    if said.columns.is_some_and(|names| names.contains(&column)) || said.quality == Some(column) {
        return Err(Error::NotSupported(format!(
            "renaming or dropping column {column}, which summaries of series table {} are told by",
            table.name
        )));
    }
    Ok(())
}

/// Which columns of a table have summaries, where pages have so many bytes. A column `quality` of integers is the one of qualities unless another is named.
pub(crate) fn of(table: &Table, form: &Form, options: &[(String, String)], page_bytes: usize) -> Summarized {
    let Some(said) = said(options) else { return Summarized::default() };
    let quality_name = said.quality.unwrap_or(QUALITY);
    let quality = form.values.iter().find(|(place, _)| {
        let column = &table.columns[*place];
        column.name == quality_name && kind(&column.kind) == Some(Kind::Integer)
    });
    let quality = quality.map(|(_, slot)| *slot as u32);
    let wanted = |place: usize, slot: usize| match &said.columns {
        Some(names) => names.contains(&table.columns[place].name.as_str()),
        None => is_number(&table.columns[place].kind) && quality != Some(slot as u32),
    };
    let columns = form.values.iter().filter(|(place, slot)| wanted(*place, *slot)).map(|(_, slot)| *slot as u32);
    // All are as many as there is room for: those that are named too many are refused.
    let columns_max = said.columns.as_ref().map_or_else(|| Summarized::columns_max(page_bytes), Vec::len);
    Summarized { columns: columns.take(columns_max).collect(), quality }
}
