//! What the database says of its series tables, as tables of the schema `counterfoil`:
//!
//! ```text
//! series          table_name, series, points, is_exact, kept_apart     not exact: changes of what is old are not merged yet
//! series_options  table_name, option_name, option_value      what each was told, or what it does untold
//! error_bounds    table_name, column_name, error_bound, compression     how far off what stands for points may be that were not stored
//! ```

use std::sync::Arc;

use counterfoil_log::Snapshot;
use counterfoil_relation::Table;
use datafusion::arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringViewArray};

use super::bounds::LeftOut;
use super::options::Told;
use super::{Form, apart, is_series, told};
use crate::engine::Engine;
use crate::error::{Error, Result};

/// One of these tables, by name.
pub(crate) fn table(name: &str, engine: &Engine, snapshot: &Snapshot) -> Result<Option<RecordBatch>> {
    let tables = || -> Result<Vec<Arc<Table>>> {
        let mut tables = engine.relations.tables(snapshot).map_err(Error::Relation)?;
        tables.retain(|table| is_series(table));
        Ok(tables)
    };
    match name {
        "series" => counted(&tables()?, engine, snapshot).map(Some),
        "series_options" => told_options(&tables()?).map(Some),
        "error_bounds" => error_bounds(&tables()?).map(Some),
        _ => Ok(None),
    }
}

fn texts<'t>(texts: impl Iterator<Item = &'t str>) -> ArrayRef {
    Arc::new(StringViewArray::from_iter_values(texts))
}

fn counted(tables: &[Arc<Table>], engine: &Engine, snapshot: &Snapshot) -> Result<RecordBatch> {
    let (mut series, mut points, mut exact, mut kept_apart) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    for table in tables {
        let number = Form::of(table)?.number;
        series.push(engine.series.keys(snapshot, number).map_err(told(table))?.len() as i64);
        let (count, is_exact) = engine.series.count(snapshot, number).map_err(told(table))?;
        points.push(whole(count));
        exact.push(is_exact);
        kept_apart.push(whole(apart::count_apart(&engine.series, snapshot, table)?));
    }
    let columns: [(&str, ArrayRef); 5] = [
        ("table_name", texts(tables.iter().map(|table| table.name.as_str()))),
        ("series", Arc::new(Int64Array::from(series))),
        ("points", Arc::new(Int64Array::from(points))),
        ("is_exact", Arc::new(BooleanArray::from(exact))),
        ("kept_apart", Arc::new(Int64Array::from(kept_apart))),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

fn told_options(tables: &[Arc<Table>]) -> Result<RecordBatch> {
    let rows: Vec<(&str, &str, &str)> = tables
        .iter()
        .flat_map(|table| Told::table(table).all().into_iter().map(|(name, value)| (&*table.name, name, value)))
        .collect();
    let columns: [(&str, ArrayRef); 3] = [
        ("table_name", texts(rows.iter().map(|row| row.0))),
        ("option_name", texts(rows.iter().map(|row| row.1))),
        ("option_value", texts(rows.iter().map(|row| row.2))),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

fn error_bounds(tables: &[Arc<Table>]) -> Result<RecordBatch> {
    let (mut names, mut columns, mut bounds, mut ways) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for table in tables {
        let Some(left_out) = LeftOut::of(&Told::table(table))? else { continue };
        for (column, bound) in left_out.bounds {
            names.push(table.name.as_str());
            columns.push(column);
            bounds.push(bound);
            ways.push(left_out.way.name);
        }
    }
    let columns: [(&str, ArrayRef); 4] = [
        ("table_name", texts(names.into_iter())),
        ("column_name", texts(columns.iter().map(String::as_str))),
        ("error_bound", Arc::new(Float64Array::from(bounds))),
        ("compression", texts(ways.into_iter())),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}
