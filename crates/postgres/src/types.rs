//! Types as clients know them: numbers that PostgreSQL gave them.

use counterfoil::arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
use counterfoil::{TYPE_OF, is_uuid};

use crate::array;

/// Numbers of types (PostgreSQL's `pg_type`).
pub mod oid {
    #![allow(missing_docs)]
    pub const BOOL: u32 = 16;
    pub const BYTEA: u32 = 17;
    pub const CHAR: u32 = 18;
    pub const NAME: u32 = 19;
    pub const INT8: u32 = 20;
    pub const INT2: u32 = 21;
    pub const INT2VECTOR: u32 = 22;
    pub const INT4: u32 = 23;
    pub const TEXT: u32 = 25;
    pub const OID: u32 = 26;
    pub const OIDVECTOR: u32 = 30;
    pub const JSON: u32 = 114;
    pub const FLOAT4: u32 = 700;
    pub const FLOAT8: u32 = 701;
    pub const VARCHAR: u32 = 1043;
    pub const BPCHAR: u32 = 1042;
    pub const DATE: u32 = 1082;
    pub const TIME: u32 = 1083;
    pub const TIMESTAMP: u32 = 1114;
    pub const TIMESTAMPTZ: u32 = 1184;
    pub const INTERVAL: u32 = 1186;
    pub const NUMERIC: u32 = 1700;
    pub const UUID: u32 = 2950;
}

/// What a column is told as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The number of its type.
    pub oid: u32,
    /// Bytes of a value, -1 where they differ.
    pub bytes: i16,
    /// Digits of a NUMERIC as PostgreSQL packs them, -1 for none.
    pub modifier: i32,
}

impl Told {
    /// A column of a result. What PostgreSQL has no type for is told as text, which it is sent as.
    pub fn of(field: &Field) -> Self {
        use DataType::{
            Binary, BinaryView, Boolean, Date32, Decimal128, Duration, FixedSizeBinary, Float32, Float64, Int8, Int16,
            Int32, Int64, Interval, LargeBinary, List, Time64, Timestamp, UInt8, UInt16, UInt32, UInt64,
        };
        let told = |oid, bytes| Told { oid, bytes, modifier: -1 };
        match field.metadata().get(TYPE_OF).map(String::as_str) {
            Some("name") => return told(oid::NAME, 64),
            Some("char") => return told(oid::CHAR, 1),
            Some("int2vector") => return told(oid::INT2VECTOR, -1),
            Some("oidvector") => return told(oid::OIDVECTOR, -1),
            Some("json") => return told(oid::JSON, -1),
            _ => {}
        }
        match field.data_type() {
            DataType::Utf8View if is_uuid(field) => told(oid::UUID, 16),
            Boolean => told(oid::BOOL, 1),
            Int8 | UInt8 | Int16 => told(oid::INT2, 2),
            UInt16 | Int32 => told(oid::INT4, 4),
            Int64 => told(oid::INT8, 8),
            // Numbers of objects in the catalogue are unsigned, and nothing else of this size is.
            UInt32 => told(oid::OID, 4),
            // Counts, such as of row_number().
            UInt64 => told(oid::INT8, 8),
            Float32 => told(oid::FLOAT4, 4),
            Float64 => told(oid::FLOAT8, 8),
            Decimal128(precision, scale) => {
                let modifier = (i32::from(*precision) << 16 | i32::from(*scale).max(0)) + 4;
                Told { oid: oid::NUMERIC, bytes: -1, modifier }
            }
            Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => told(oid::BYTEA, -1),
            Date32 => told(oid::DATE, 4),
            Time64(_) => told(oid::TIME, 8),
            Timestamp(
                TimeUnit::Second | TimeUnit::Millisecond | TimeUnit::Microsecond | TimeUnit::Nanosecond,
                zone,
            ) => told(if zone.is_some() { oid::TIMESTAMPTZ } else { oid::TIMESTAMP }, 8),
            Interval(_) | Duration(_) => told(oid::INTERVAL, 16),
            List(of) => told(array::of(Told::of(of).oid), -1),
            _ => told(oid::TEXT, -1),
        }
    }

    /// Whether it is one of the lists of the catalogue that are written with blanks between their parts.
    pub fn is_vector(self) -> bool {
        matches!(self.oid, oid::INT2VECTOR | oid::OIDVECTOR)
    }
}

/// The type of values that are read from parameters of a type; none where a value may be anything.
pub fn of_parameter(oid: u32) -> Option<DataType> {
    Some(match oid {
        oid::BOOL => DataType::Boolean,
        oid::INT2 | oid::INT4 | oid::INT8 => DataType::Int64,
        oid::FLOAT4 | oid::FLOAT8 => DataType::Float64,
        oid::BYTEA => DataType::BinaryView,
        oid::DATE => DataType::Date32,
        oid::TIME => DataType::Time64(TimeUnit::Microsecond),
        oid::TIMESTAMP => DataType::Timestamp(TimeUnit::Microsecond, None),
        oid::TIMESTAMPTZ => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        oid::NUMERIC => DataType::Decimal128(38, 10),
        oid::INTERVAL => DataType::Interval(IntervalUnit::MonthDayNano),
        // A text stands for what is wanted where it stands, so it says nothing.
        _ => return None,
    })
}
