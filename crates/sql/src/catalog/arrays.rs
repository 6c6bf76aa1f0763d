//! Parameters that are arrays: they say so by a cast where they stand (`$1::oid[]`).

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, DataType as SqlType, Expr, Statement, Value as Literal, ValueWithSpan, visit_expressions,
};

use super::{SCHEMA, TYPE_OF};
use crate::parameters;

/// The places of parameters of a statement that are arrays, with what they are.
pub fn parameters(statement: &Statement) -> Vec<(usize, FieldRef)> {
    let mut found = Vec::new();
    let _ = visit_expressions(statement, |expr: &Expr| {
        if let Expr::Cast { expr: inner, data_type: SqlType::Array(of), .. } = expr
            && let Expr::Value(ValueWithSpan { value: Literal::Placeholder(name), .. }) = inner.as_ref()
            && let (Ok(place), Some(part)) = (parameters::index(name), part(of))
        {
            found.push((place, Arc::new(Field::new_list("", part, true))));
        }
        ControlFlow::<()>::Continue(())
    });
    found
}

/// The parts of such an array.
fn part(of: &ArrayElemTypeDef) -> Option<Field> {
    let ArrayElemTypeDef::SquareBracket(kind, _) = of else { return None };
    let name = kind.to_string().to_lowercase();
    let name = name.strip_prefix(SCHEMA).and_then(|name| name.strip_prefix('.')).unwrap_or(&name);
    // With the bounds that stand behind some of them.
    let starts_with = |words: &[&str]| words.contains(&name.split(['(', ' ']).next().unwrap_or_default());
    let kind = match name {
        "uuid" => return Some(crate::types::with_uuid(Field::new_list_field(DataType::Utf8View, true))),
        "bool" | "boolean" => DataType::Boolean,
        "int2" | "smallint" => DataType::Int16,
        "int4" | "int" | "integer" => DataType::Int32,
        "int8" | "bigint" => DataType::Int64,
        "oid" | "regclass" | "regtype" => DataType::UInt32,
        "float4" | "real" => DataType::Float32,
        "float8" | "double precision" => DataType::Float64,
        "bytea" => DataType::Binary,
        "date" => DataType::Date32,
        "time" | "time without time zone" => DataType::Time64(TimeUnit::Microsecond),
        "timestamp" | "timestamp without time zone" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "timestamptz" | "timestamp with time zone" => {
            DataType::Timestamp(TimeUnit::Microsecond, Some(crate::types::UTC.into()))
        }
        "name" | "\"char\"" | "text" => DataType::Utf8,
        _ if starts_with(&["numeric", "decimal"]) => DataType::Decimal128(38, 10),
        _ if starts_with(&["varchar", "character", "char", "bpchar"]) => DataType::Utf8,
        _ => return None,
    };
    let field = Field::new_list_field(kind, true);
    Some(match name {
        "name" | "\"char\"" => field.with_metadata([(TYPE_OF.to_owned(), name.trim_matches('"').to_owned())].into()),
        _ => field,
    })
}
