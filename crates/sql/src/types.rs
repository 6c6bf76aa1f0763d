//! The types of columns, as SQL names them and as Arrow carries them.
//!
//! | SQL | Arrow | |
//! |---|---|---|
//! | TEXT, VARCHAR(n), CHAR(n) | Utf8View | the 16-byte string of a row image is almost the view itself |
//! | BYTEA | BinaryView | |
//! | UUID | Utf8View | so that quoted literals compare; always the canonical lower-case text, with a mark on the field ([`TYPE_KEY`]) |
//! | NUMERIC(p,s) | Decimal128 | without (p,s): 38 digits, 10 of them behind the point |
//! | TIMESTAMP, TIMESTAMPTZ | Timestamp(µs) | TIMESTAMP(9): ns; TIMESTAMPTZ carries the zone +00:00 |
//! | TIME | Time64(µs) | |

use std::sync::Arc;

use counterfoil_relation::Type;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast::{CharacterLength, DataType as SqlType, ExactNumberInfo, TimezoneInfo};

use crate::error::{Error, Result};

/// The zone every TIMESTAMPTZ carries.
pub const UTC: &str = "+00:00";

/// Digits of a NUMERIC without precision and scale.
pub const NUMERIC_PRECISION: u8 = 38;
/// Digits behind the point of a NUMERIC without precision and scale.
pub const NUMERIC_SCALE: u8 = 10;

/// Where a field's metadata names the SQL type that its Arrow type alone does not tell: `uuid`. It is on columns of tables, on what
/// is cast to UUID, and so on the columns of results that come of these. (Arrow's own `arrow.uuid` is about 16 bytes, and these are
/// texts.)
pub const TYPE_KEY: &str = "counterfoil.type";

/// The field that carries a column of this type.
pub fn field(name: &str, kind: &Type, nullable: bool) -> Field {
    let field = Field::new(name, arrow(kind), nullable);
    if *kind == Type::Uuid { with_uuid(field) } else { field }
}

/// The field, marked as UUIDs.
pub fn with_uuid(field: Field) -> Field {
    field.with_metadata([(TYPE_KEY.to_owned(), "uuid".to_owned())].into())
}

/// Whether a field carries UUIDs, as texts.
pub fn is_uuid(field: &Field) -> bool {
    field.metadata().get(TYPE_KEY).is_some_and(|kind| kind == "uuid")
}

/// A result's schema as its plan has it: what runs a plan may lose a mark on the way, or leave one behind.
pub(crate) fn marked(schema: &SchemaRef, plan: &Schema) -> SchemaRef {
    let same = |(field, planned): (&FieldRef, &FieldRef)| is_uuid(field) == is_uuid(planned);
    if schema.fields().iter().zip(plan.fields()).all(same) {
        return schema.clone();
    }
    let fields = schema.fields().iter().zip(plan.fields());
    let field =
        |(field, planned): (&FieldRef, &FieldRef)| field.as_ref().clone().with_metadata(planned.metadata().clone());
    Arc::new(Schema::new(fields.map(field).collect::<Vec<_>>()))
}

/// The SQL name of the type of a result's field.
pub fn field_name(field: &Field) -> String {
    if is_uuid(field) { "uuid".to_owned() } else { result_name(field.data_type()) }
}

/// The column type that holds what a field of a query yields.
///
/// # Errors
/// As [`from_arrow`].
pub fn of_field(field: &Field) -> Result<Type> {
    if is_uuid(field) { Ok(Type::Uuid) } else { from_arrow(field.data_type()) }
}

/// The Arrow type that carries a column of this type.
pub fn arrow(kind: &Type) -> DataType {
    match kind {
        Type::Boolean => DataType::Boolean,
        Type::SmallInt => DataType::Int16,
        Type::Integer => DataType::Int32,
        Type::BigInt => DataType::Int64,
        Type::Real => DataType::Float32,
        Type::Double => DataType::Float64,
        Type::Numeric { precision, scale } => DataType::Decimal128(*precision, *scale as i8),
        Type::Bytea => DataType::BinaryView,
        Type::Date => DataType::Date32,
        Type::Time => DataType::Time64(TimeUnit::Microsecond),
        Type::Timestamp { nanoseconds: false } => DataType::Timestamp(TimeUnit::Microsecond, None),
        Type::Timestamp { nanoseconds: true } => DataType::Timestamp(TimeUnit::Nanosecond, None),
        Type::TimestampTz => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        _ => DataType::Utf8View,
    }
}

/// The type as SQL writes it, in lower case as `information_schema` and `DESCRIBE` show it.
pub fn name(kind: &Type) -> String {
    match kind {
        Type::Boolean => "boolean".into(),
        Type::SmallInt => "smallint".into(),
        Type::Integer => "integer".into(),
        Type::BigInt => "bigint".into(),
        Type::Real => "real".into(),
        Type::Double => "double precision".into(),
        Type::Numeric { precision, scale } => format!("numeric({precision},{scale})"),
        Type::Text => "text".into(),
        Type::VarChar(letters) => format!("character varying({letters})"),
        Type::Char(letters) => format!("character({letters})"),
        Type::Bytea => "bytea".into(),
        Type::Date => "date".into(),
        Type::Time => "time without time zone".into(),
        Type::Timestamp { nanoseconds: false } => "timestamp without time zone".into(),
        Type::Timestamp { nanoseconds: true } => "timestamp(9) without time zone".into(),
        Type::TimestampTz => "timestamp with time zone".into(),
        Type::Uuid => "uuid".into(),
        #[allow(unreachable_patterns)]
        _ => "unknown".into(),
    }
}

/// The column type that a SQL type names.
///
/// # Errors
/// [`Error::NotSupported`] for types that tables cannot hold, [`Error::Sql`] for impossible lengths.
pub fn column(sql: &SqlType) -> Result<Type> {
    Ok(match sql {
        SqlType::Boolean | SqlType::Bool => Type::Boolean,
        SqlType::SmallInt(_) | SqlType::Int2(_) | SqlType::Int16 | SqlType::TinyInt(_) => Type::SmallInt,
        SqlType::Integer(_) | SqlType::Int(_) | SqlType::Int4(_) | SqlType::Int32 | SqlType::MediumInt(_) => {
            Type::Integer
        }
        SqlType::BigInt(_) | SqlType::Int8(_) | SqlType::Int64 => Type::BigInt,
        SqlType::Real | SqlType::Float4 | SqlType::Float32 => Type::Real,
        SqlType::DoublePrecision | SqlType::Double(_) | SqlType::Float8 | SqlType::Float64 => Type::Double,
        SqlType::Float(digits) => float(digits)?,
        SqlType::Numeric(digits) | SqlType::Decimal(digits) | SqlType::Dec(digits) => numeric(digits)?,
        SqlType::Text | SqlType::String(None) | SqlType::Clob(_) => Type::Text,
        SqlType::Varchar(length)
        | SqlType::CharacterVarying(length)
        | SqlType::CharVarying(length)
        | SqlType::Nvarchar(length) => letters(length)?.map_or(Type::Text, Type::VarChar),
        SqlType::Char(length) | SqlType::Character(length) => Type::Char(letters(length)?.unwrap_or(1)),
        SqlType::Bytea | SqlType::Blob(_) | SqlType::Varbinary(_) => Type::Bytea,
        SqlType::Date => Type::Date,
        SqlType::Time(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            fraction(digits, "TIME", &[6])?;
            Type::Time
        }
        SqlType::Timestamp(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) | SqlType::Datetime(digits) => {
            Type::Timestamp { nanoseconds: fraction(digits, "TIMESTAMP", &[6, 9])? == 9 }
        }
        SqlType::Timestamp(digits, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            fraction(digits, "TIMESTAMPTZ", &[6])?;
            Type::TimestampTz
        }
        SqlType::Uuid => Type::Uuid,
        SqlType::Custom(name, _) => match name.to_string().to_ascii_lowercase().as_str() {
            "bpchar" | "name" => Type::Text,
            other => return Err(Error::NotSupported(format!("type {other}"))),
        },
        other => return Err(Error::NotSupported(format!("type {other}"))),
    })
}

fn float(digits: &ExactNumberInfo) -> Result<Type> {
    match digits {
        ExactNumberInfo::Precision(1..=24) => Ok(Type::Real),
        ExactNumberInfo::None | ExactNumberInfo::Precision(25..=53) => Ok(Type::Double),
        _ => Err(Error::Sql("FLOAT takes a precision from 1 to 53".into())),
    }
}

fn numeric(digits: &ExactNumberInfo) -> Result<Type> {
    let (precision, scale) = match digits {
        ExactNumberInfo::None => (u64::from(NUMERIC_PRECISION), i64::from(NUMERIC_SCALE)),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    if !(1..=38).contains(&precision) {
        return Err(Error::NotSupported(format!("NUMERIC with {precision} digits: from 1 to 38 are")));
    }
    if scale < 0 || scale.unsigned_abs() > precision {
        return Err(Error::Sql(format!("NUMERIC({precision},{scale}): the scale must be from 0 to the precision")));
    }
    Ok(Type::Numeric { precision: precision as u8, scale: scale as u8 })
}

fn letters(length: &Option<CharacterLength>) -> Result<Option<u32>> {
    match length {
        None | Some(CharacterLength::Max) => Ok(None),
        Some(CharacterLength::IntegerLength { length, .. }) => match u32::try_from(*length) {
            Ok(length @ 1..=10_485_760) => Ok(Some(length)),
            _ => Err(Error::Sql("the length of a character type must be from 1 to 10485760".into())),
        },
    }
}

/// The digits of a second that a type keeps. Fewer would have to round.
fn fraction(digits: &Option<u64>, name: &str, kept: &[u64]) -> Result<u64> {
    match digits {
        None => Ok(6),
        Some(digits) if kept.contains(digits) => Ok(*digits),
        Some(digits) => {
            let kept: Vec<String> = kept.iter().map(u64::to_string).collect();
            let kept = kept.join(" or ");
            Err(Error::NotSupported(format!("{name}({digits}): {name} keeps {kept} digits of a second")))
        }
    }
}

/// The column type that holds what a query yields, for CREATE TABLE AS and imports.
///
/// # Errors
/// [`Error::NotSupported`] for lists, intervals and other types no column has.
pub fn from_arrow(kind: &DataType) -> Result<Type> {
    Ok(match kind {
        DataType::Boolean => Type::Boolean,
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => Type::SmallInt,
        DataType::Int32 | DataType::UInt16 => Type::Integer,
        // An unsigned number of 64 bits is the count of something; one that is too large for BIGINT is refused when stored.
        DataType::Int64 | DataType::UInt32 | DataType::UInt64 => Type::BigInt,
        DataType::Float16 | DataType::Float32 => Type::Real,
        DataType::Float64 => Type::Double,
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
            if *scale >= 0 =>
        {
            Type::Numeric { precision: *precision, scale: *scale as u8 }
        }
        DataType::Decimal128(precision, scale) => {
            let precision = (i16::from(*precision) - i16::from(*scale)).clamp(1, 38);
            Type::Numeric { precision: precision as u8, scale: 0 }
        }
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Type::Text,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => Type::Bytea,
        DataType::Date32 | DataType::Date64 => Type::Date,
        DataType::Time32(_) | DataType::Time64(_) => Type::Time,
        DataType::Timestamp(TimeUnit::Nanosecond, None) => Type::Timestamp { nanoseconds: true },
        DataType::Timestamp(_, None) => Type::Timestamp { nanoseconds: false },
        DataType::Timestamp(_, Some(_)) => Type::TimestampTz,
        DataType::Dictionary(_, values) => from_arrow(values)?,
        other => {
            return Err(Error::NotSupported(format!("a column of type {}", crate::wording::plain(&other.to_string()))));
        }
    })
}

/// The SQL name of an Arrow type given by its own name: for messages.
pub fn arrow_name(name: &str) -> String {
    match name {
        "Boolean" => "boolean",
        "Int8" | "Int16" | "UInt8" => "smallint",
        "Int32" | "UInt16" => "integer",
        "Int64" | "UInt32" | "UInt64" => "bigint",
        "Float32" => "real",
        "Float64" => "double precision",
        "Utf8" | "LargeUtf8" | "Utf8View" => "text",
        "Binary" | "LargeBinary" | "BinaryView" => "bytea",
        "Date32" | "Date64" => "date",
        _ if name.starts_with("Time64") || name.starts_with("Time32") => "time",
        _ if name.starts_with("Timestamp") && name.contains('"') => "timestamp with time zone",
        _ if name.starts_with("Timestamp") => "timestamp",
        _ if name.starts_with("Decimal") => "numeric",
        _ => return name.to_ascii_lowercase(),
    }
    .to_owned()
}

/// The SQL name of the type of a query's column.
pub fn result_name(kind: &DataType) -> String {
    match kind {
        DataType::Decimal128(precision, scale) => format!("numeric({precision},{scale})"),
        DataType::List(field) => format!("{}[]", result_name(field.data_type())),
        DataType::Interval(_) | DataType::Duration(_) => "interval".to_owned(),
        other => arrow_name(&other.to_string()),
    }
}

/// Tells the query planner which Arrow types our SQL types are, so that casts and columns agree.
#[derive(Debug)]
pub struct Planner;

impl TypePlanner for Planner {
    fn plan_type_field(&self, sql: &SqlType) -> datafusion::common::Result<Option<FieldRef>> {
        let kind = match sql {
            // VARCHAR(n) as a cast target cuts in PostgreSQL; the planner's own rule is to ignore the length.
            SqlType::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone)
            | SqlType::Timestamp(_, _)
            | SqlType::Datetime(_)
            | SqlType::Uuid
            | SqlType::Bytea
            // Without digits it is a double here, and not in the planner's own rule.
            | SqlType::Float(_)
            | SqlType::Numeric(_)
            | SqlType::Decimal(_)
            | SqlType::Dec(_) => arrow(&column(sql)?),
            _ => return Ok(None),
        };
        Ok(Some(Arc::new(Field::new("", kind, true))))
    }
}
