//! Rows of a table as they are published, and types as SQL names them.

use counterfoil_ask::{parse_value, type_name};
use counterfoil_proof::{Column, Definition, Type, Value};
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, TimeUnit};

use crate::connection::Connection;
use crate::error::{Error, Kind, Result};
use crate::relation::ColumnInfo;
use crate::schema::{quoted, write_cell};

/// The columns of a table, as they are published.
///
/// # Errors
/// [`Kind::NotFound`]; [`Kind::NotSupported`]: a type that cannot be.
pub fn columns(connection: &mut Connection, table: &str) -> Result<Vec<Column>> {
    let none = || Error::new(Kind::NotFound, format!("no table {table}"));
    let columns = connection.columns(table)?.ok_or_else(none)?;
    columns.into_iter().map(|column| Ok(Column { kind: kind(&column)?, name: column.name })).collect()
}

/// The type of a published column, from that of a table's.
fn kind(column: &ColumnInfo) -> Result<Type> {
    Ok(match &column.arrow {
        DataType::Boolean => Type::Boolean,
        DataType::Int16 => Type::SmallInt,
        DataType::Int32 => Type::Integer,
        DataType::Int64 => Type::BigInt,
        DataType::Float32 => Type::Real,
        DataType::Float64 => Type::Double,
        DataType::Decimal128(precision, scale) => Type::Numeric(*precision, scale.unsigned_abs()),
        // Arrow carries UUIDs as texts.
        DataType::Utf8 | DataType::Utf8View if column.kind == "uuid" => Type::Uuid,
        DataType::Utf8 | DataType::Utf8View => Type::Text,
        DataType::Binary | DataType::BinaryView => Type::Bytea,
        DataType::Date32 => Type::Date,
        DataType::Time64(TimeUnit::Microsecond) => Type::Time,
        DataType::Timestamp(TimeUnit::Nanosecond, None) => Type::TimestampNanos,
        DataType::Timestamp(TimeUnit::Microsecond, None) => Type::Timestamp,
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => Type::TimestampTz,
        _ => {
            let what = format!("not supported: publishing column {} of type {}", column.name, column.kind);
            return Err(Error::new(Kind::NotSupported, what));
        }
    })
}

/// CREATE TABLE with the columns of a published table: what is published again has to fit them.
#[must_use]
pub fn create_sql(name: &str, definition: &Definition) -> String {
    let column = |column: &Column| format!("{} {}", quoted(&column.name), type_name(column.kind));
    let columns: Vec<String> = definition.columns.iter().map(column).collect();
    format!("CREATE TABLE {} ({})", quoted(name), columns.join(", "))
}

/// The orders that were asked for by the names of their columns, by their numbers.
///
/// # Errors
/// [`Kind::Misuse`]: no such column; it says which there are.
pub fn orders(columns: &[Column], wanted: &[Vec<String>]) -> Result<Vec<Vec<u16>>> {
    let number = |name: &str| {
        let found = columns.iter().position(|column| column.name == name);
        let found = found.or_else(|| columns.iter().position(|column| column.name.eq_ignore_ascii_case(name)));
        let names = || columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ");
        let found = found.and_then(|at| u16::try_from(at).ok());
        let none = || Error::new(Kind::Misuse, format!("no column {name} to order by"));
        found.ok_or_else(|| none().advise(format!("there are {}", names())))
    };
    wanted.iter().map(|order| order.iter().map(|name| number(name)).collect()).collect()
}

/// All rows of a table, as of one moment. Each value goes by its text: one meaning for what is imported, published and shown.
///
/// # Errors
/// Those of reading; [`Kind::Input`]: a value that cannot be published.
pub fn all(connection: &mut Connection, table: &str, definition: &Definition) -> Result<Vec<Vec<Value>>> {
    let names: Vec<String> = definition.columns.iter().map(|column| quoted(&column.name)).collect();
    let (mut rows, mut text) = (Vec::new(), String::new());
    for batch in connection.query(&format!("SELECT {} FROM {}", names.join(", "), quoted(table)), &[])? {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            let value = |(column, array): (&Column, &ArrayRef)| {
                if array.is_null(row) {
                    return Ok(Value::Null);
                }
                text.clear();
                write_cell(&mut text, array.as_ref(), row)?;
                let unfit = |error: counterfoil_ask::Error| {
                    let what = format!("column {} of row {}: {error}", column.name, rows.len() + 1);
                    Error::new(Kind::Input, what)
                };
                parse_value(column.kind, &text).map_err(unfit)
            };
            let values: Result<Vec<Value>> = definition.columns.iter().zip(batch.columns()).map(value).collect();
            let values = values?;
            rows.push(values);
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_named_the_same_way_both_ways() {
        let kinds = [
            Type::Boolean,
            Type::SmallInt,
            Type::Integer,
            Type::BigInt,
            Type::Real,
            Type::Double,
            Type::Numeric(12, 3),
            Type::Text,
            Type::Bytea,
            Type::Date,
            Type::Time,
            Type::Timestamp,
            Type::TimestampNanos,
            Type::TimestampTz,
            Type::Uuid,
        ];
        let columns: Vec<Column> =
            kinds.iter().enumerate().map(|(at, kind)| Column { name: format!("c{at}"), kind: *kind }).collect();
        let scheme = counterfoil_proof::Scheme::PerRecord;
        let (orders, nodes, filters) = (vec![vec![0]], Vec::new(), Vec::new());
        let definition = Definition { table: [0; 16], name: "t".into(), columns, orders, scheme, nodes, filters };
        let database = crate::Database::open(crate::Options::memory()).expect("a database");
        let mut connection = database.connect().expect("a connection");
        let sql = create_sql("t", &definition);
        connection.execute(&sql, &[]).expect("a table");
        assert_eq!(super::columns(&mut connection, "t").expect("columns"), definition.columns);
    }
}
