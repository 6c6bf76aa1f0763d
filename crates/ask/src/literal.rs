//! Literals, and where they stand among the values of a column.

use counterfoil_proof::{Type, Value};
use sqlparser::ast::{CastKind, DataType, Expr, TimezoneInfo, UnaryOperator, Value as Written};

use crate::calendar::{DAY_NANOS, read_date, read_moment, read_time};
use crate::decimal::{Decimal, Scaled};
use crate::error::{Error, not_supported};
use crate::set::{FIRST, NULL, Set, behind};
use crate::text::parse_value;

/// A literal, before it is known what it is compared with.
#[derive(Clone, Debug)]
pub(crate) enum Literal {
    Null,
    Boolean(bool),
    Number(Decimal),
    /// A string, which takes the type of what it is compared with.
    Text(String),
    /// Nanoseconds from 1970, UTC where there is a zone.
    Moment(i128),
    /// Nanoseconds of a day.
    Time(i128),
    Uuid([u8; 16]),
}

/// Where a literal stands among the values of a column.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// Nowhere: NULL.
    Unknown,
    /// It is this value.
    Exact(Vec<u8>),
    /// It is none of them; this is the first encoding behind it.
    Between(Vec<u8>),
}

/// How a column is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// The same with the sides exchanged.
    pub(crate) fn flipped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }

    /// The values of a column for which it holds; none if it is unknown for all.
    pub(crate) fn values(self, place: &Place) -> Option<Set> {
        let (start, end) = match place {
            Place::Unknown => return None,
            Place::Exact(encoded) => (encoded.clone(), behind(encoded)),
            Place::Between(cut) => (cut.clone(), cut.clone()),
        };
        let equal = if let Place::Exact(encoded) = place { Set::point(encoded) } else { Set::default() };
        Some(match self {
            Self::Equal => equal,
            Self::NotEqual => equal.complement(),
            Self::Less => Set::range(FIRST, &start),
            Self::LessOrEqual => Set::range(FIRST, &end),
            Self::Greater => Set::range(&end, NULL),
            Self::GreaterOrEqual => Set::range(&start, NULL),
        })
    }
}

impl Literal {
    /// Reads a literal; none if the expression is none.
    pub(crate) fn of(expression: &Expr) -> Result<Option<Self>, Error> {
        Ok(Some(match expression {
            Expr::Nested(inner) => return Self::of(inner),
            Expr::Value(value) => Self::of_value(&value.value)?,
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match Self::of(expr)? {
                Some(Self::Number(number)) => Self::Number(number.negated()),
                Some(Self::Null) => Self::Null,
                _ => return Ok(None),
            },
            Expr::UnaryOp { op: UnaryOperator::Plus, expr } => match Self::of(expr)? {
                Some(number @ (Self::Number(_) | Self::Null)) => number,
                _ => return Ok(None),
            },
            Expr::TypedString(typed) if !typed.uses_odbc_syntax => match &typed.value.value {
                Written::SingleQuotedString(text) => Self::typed(&typed.data_type, text)?,
                _ => return not_supported("a literal of this form"),
            },
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr,
                data_type,
                array: false,
                format: None,
            } => match Self::of(expr)? {
                Some(Self::Text(text)) => Self::typed(data_type, &text)?,
                _ => return not_supported("CAST of anything but a string"),
            },
            _ => return Ok(None),
        }))
    }

    fn of_value(value: &Written) -> Result<Self, Error> {
        Ok(match value {
            Written::Null => Self::Null,
            Written::Boolean(value) => Self::Boolean(*value),
            Written::Number(text, false) => {
                Self::Number(Decimal::parse(text).ok_or_else(|| Error::Syntax("a number out of range".into()))?)
            }
            Written::SingleQuotedString(text) | Written::EscapedStringLiteral(text) => Self::Text(text.clone()),
            Written::Placeholder(_) => return not_supported("parameters"),
            _ => return not_supported("a literal of this form"),
        })
    }

    /// A string with a type before or behind it.
    fn typed(data_type: &DataType, text: &str) -> Result<Self, Error> {
        let has_zone = |zone: &TimezoneInfo| matches!(zone, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz);
        let (kind, literal) = match data_type {
            DataType::Date => (Type::Date, read_date(text).map(|days| Self::Moment(i128::from(days) * DAY_NANOS))),
            DataType::Time(_, zone) if !has_zone(zone) => (Type::Time, read_time(text).map(Self::Time)),
            DataType::Timestamp(_, zone) if has_zone(zone) => {
                (Type::TimestampTz, read_moment(text).map(|(nanos, zone)| Self::Moment(nanos - zone.unwrap_or(0))))
            }
            DataType::Timestamp(..) => (
                Type::Timestamp,
                read_moment(text).filter(|(_, zone)| zone.is_none()).map(|(nanos, _)| Self::Moment(nanos)),
            ),
            DataType::Uuid => (
                Type::Uuid,
                match parse_value(Type::Uuid, text) {
                    Ok(Value::Uuid(bytes)) => Some(Self::Uuid(bytes)),
                    _ => None,
                },
            ),
            _ => return not_supported("literals of types but DATE, TIME, TIMESTAMP, TIMESTAMPTZ and UUID"),
        };
        literal.ok_or(Error::NoValue(kind))
    }

    /// Where it stands among the values of `column`.
    pub(crate) fn place(&self, column: &str, kind: Type) -> Result<Place, Error> {
        let mismatch = |wanted: &str| {
            Err(Error::TypeMismatch {
                column: column.into(),
                kind,
                wanted: format!("it is not compared with {wanted}"),
            })
        };
        match self {
            Self::Null => Ok(Place::Unknown),
            Self::Boolean(value) if kind == Type::Boolean => exact(kind, &Value::Boolean(*value)),
            Self::Boolean(_) => mismatch("a truth value"),
            Self::Uuid(bytes) if kind == Type::Uuid => exact(kind, &Value::Uuid(*bytes)),
            Self::Uuid(_) => mismatch("a UUID"),
            Self::Time(nanos) if kind == Type::Time => units(kind, *nanos, 1000),
            Self::Time(_) => mismatch("a time of day"),
            Self::Moment(nanos) => match kind {
                Type::Date => units(kind, *nanos, DAY_NANOS),
                Type::Timestamp | Type::TimestampTz => units(kind, *nanos, 1000),
                Type::TimestampNanos => units(kind, *nanos, 1),
                _ => mismatch("a date or timestamp"),
            },
            Self::Number(number) => match kind {
                Type::SmallInt | Type::Integer | Type::BigInt => among(kind, number.scaled(0)),
                Type::Numeric(_, scale) => among(kind, number.scaled(scale)),
                Type::Real | Type::Double => {
                    number.double().map_or(Err(Error::NoValue(kind)), |value| floating(kind, value))
                }
                _ => mismatch("a number"),
            },
            Self::Text(text) => match kind {
                // PostgreSQL reads it as a NUMERIC of any scale.
                Type::Numeric(_, scale) => match Decimal::parse(text.trim()) {
                    Some(number) => among(kind, number.scaled(scale)),
                    None => Err(Error::NoValue(kind)),
                },
                _ => exact(kind, &parse_value(kind, text)?),
            },
        }
    }
}

/// Where a value stands among those of a column: also one that the column's type does not hold.
pub(crate) fn place_of(kind: Type, value: &Value) -> Result<Place, Error> {
    match (kind, value) {
        (_, Value::Null) => Ok(Place::Unknown),
        (_, Value::Integer(number)) => among(kind, Scaled::Exact(i128::from(*number))),
        (_, Value::Numeric(number)) => among(kind, Scaled::Exact(*number)),
        (_, Value::Double(number)) => floating(kind, *number),
        _ => exact(kind, value),
    }
}

fn encoded(kind: Type, value: &Value) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    kind.encode(value, &mut bytes).ok().map(|()| bytes)
}

fn exact(kind: Type, value: &Value) -> Result<Place, Error> {
    encoded(kind, value).map(Place::Exact).ok_or(Error::NoValue(kind))
}

/// Nanoseconds among the multiples of a unit.
fn units(kind: Type, nanos: i128, unit: i128) -> Result<Place, Error> {
    let floor = nanos.div_euclid(unit);
    among(kind, if nanos.rem_euclid(unit) == 0 { Scaled::Exact(floor) } else { Scaled::Above(floor) })
}

/// A number among those that a type of whole units holds.
fn among(kind: Type, number: Scaled) -> Result<Place, Error> {
    let (floor, is_exact) = match number {
        Scaled::Below => return Ok(Place::Between(FIRST.to_vec())),
        Scaled::Beyond => return Ok(Place::Between(NULL.to_vec())),
        Scaled::Exact(floor) => (floor, true),
        Scaled::Above(floor) => (floor, false),
    };
    let value = match kind {
        Type::Numeric(..) => Some(Value::Numeric(floor)),
        _ => i64::try_from(floor).ok().map(Value::Integer),
    };
    Ok(match value.and_then(|value| encoded(kind, &value)) {
        Some(bytes) if is_exact => Place::Exact(bytes),
        Some(bytes) => Place::Between(behind(&bytes)),
        None => Place::Between(if floor < 0 { FIRST } else { NULL }.to_vec()),
    })
}

/// A double among the values of a floating type: PostgreSQL compares a REAL as a double.
fn floating(kind: Type, value: f64) -> Result<Place, Error> {
    let nearest = if kind == Type::Real { f64::from(value as f32) } else { value };
    let bytes = encoded(kind, &Value::Double(nearest)).ok_or(Error::NoValue(kind))?;
    Ok(if nearest > value {
        Place::Between(bytes)
    } else if nearest < value {
        Place::Between(behind(&bytes))
    } else {
        Place::Exact(bytes)
    })
}
