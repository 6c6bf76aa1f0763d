//! Columns and values, as C hands them over and is handed them.

use alloc::string::String;
use core::ffi::{CStr, c_char, c_void};

use counterfoil_relation::{Type, ValueRef};

/// A column of a new table.
#[repr(C)]
pub struct Column {
    name: *const c_char,
    kind: u32,
    size: u32,
    flags: u32,
    references: *const c_char,
}

/// NOT NULL.
const NOT_NULL: u32 = 1;
/// Part of the primary key.
const PRIMARY: u32 = 2;
/// With an index of its own.
const INDEXED: u32 = 4;

/// A column that is understood.
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) kind: Type,
    pub(crate) not_null: bool,
    pub(crate) is_primary: bool,
    pub(crate) is_indexed: bool,
    pub(crate) references: Option<String>,
}

/// The text of a pointer; none if it is null or no UTF-8.
///
/// # Safety
/// It is null, or a string that ends with a zero byte.
pub(crate) unsafe fn text<'t>(at: *const c_char) -> Option<&'t str> {
    // SAFETY: as the caller promised.
    let text = if at.is_null() { None } else { Some(unsafe { CStr::from_ptr(at) }) };
    text.and_then(|text| text.to_str().ok())
}

impl Column {
    /// What it says; none if that makes no sense.
    ///
    /// # Safety
    /// Its names are null, or strings that end with a zero byte.
    pub(crate) unsafe fn described(&self) -> Option<Described> {
        if self.flags & !(NOT_NULL | PRIMARY | INDEXED) != 0 {
            return None;
        }
        // SAFETY: as the caller promised.
        let (name, references) = unsafe { (text(self.name)?, text(self.references)) };
        if references.is_none() && !self.references.is_null() {
            return None;
        }
        Some(Described {
            name: name.into(),
            kind: type_of(self.kind, self.size)?,
            not_null: self.flags & NOT_NULL != 0,
            is_primary: self.flags & PRIMARY != 0,
            is_indexed: self.flags & INDEXED != 0,
            references: references.map(String::from),
        })
    }
}

/// The types, by the numbers of the header.
fn type_of(number: u32, size: u32) -> Option<Type> {
    Some(match number {
        1 => Type::Boolean,
        2 => Type::SmallInt,
        3 => Type::Integer,
        4 => Type::BigInt,
        5 => Type::Real,
        6 => Type::Double,
        7 => Type::Text,
        8 if size > 0 => Type::VarChar(size),
        9 if size > 0 => Type::Char(size),
        10 => Type::Bytea,
        11 => Type::Date,
        12 => Type::Time,
        13 => Type::Timestamp { nanoseconds: false },
        14 => Type::TimestampTz,
        15 => Type::Uuid,
        _ => return None,
    })
}

/// A value: which of its fields counts is said by the type of its column.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CellValue {
    is_null: u32,
    length: u32,
    whole: i64,
    number: f64,
    bytes: *const c_void,
}

/// NULL.
pub(crate) const NULL: CellValue = CellValue { is_null: 1, length: 0, whole: 0, number: 0.0, bytes: core::ptr::null() };

impl CellValue {
    /// The value for a column; none if it does not fit its type.
    ///
    /// # Safety
    /// Its bytes are null, or as many as it says.
    pub(crate) unsafe fn of(&self, kind: Type) -> Option<ValueRef<'_>> {
        if self.is_null != 0 {
            return Some(ValueRef::Null);
        }
        let bytes = match (self.bytes.is_null(), self.length) {
            (true, 1..) => return None,
            (true, 0) => &[][..],
            // SAFETY: as the caller promised.
            (false, _) => unsafe { core::slice::from_raw_parts(self.bytes.cast::<u8>(), self.length as usize) },
        };
        Some(match kind {
            Type::Boolean => ValueRef::Boolean(self.whole != 0),
            Type::SmallInt => ValueRef::SmallInt(self.whole.try_into().ok()?),
            Type::Integer => ValueRef::Integer(self.whole.try_into().ok()?),
            Type::BigInt => ValueRef::BigInt(self.whole),
            Type::Real => ValueRef::Real(self.number as f32),
            Type::Double => ValueRef::Double(self.number),
            Type::Numeric { .. } => ValueRef::Numeric(self.whole.into()),
            Type::Text | Type::VarChar(_) | Type::Char(_) => ValueRef::Text(core::str::from_utf8(bytes).ok()?),
            Type::Bytea => ValueRef::Bytea(bytes),
            Type::Date => ValueRef::Date(self.whole.try_into().ok()?),
            Type::Time => ValueRef::Time(self.whole),
            Type::Timestamp { .. } => ValueRef::Timestamp(self.whole),
            Type::TimestampTz => ValueRef::TimestampTz(self.whole),
            Type::Uuid => ValueRef::Uuid(bytes.try_into().ok()?),
        })
    }

    /// A value of an answer; its bytes are the answer's. A UUID's are those of `value`.
    pub(crate) fn from(value: &ValueRef<'_>) -> CellValue {
        let there = CellValue { is_null: 0, ..NULL };
        let whole = |whole: i64| CellValue { whole, ..there };
        let number = |number: f64| CellValue { number, ..there };
        let bytes = |bytes: &[u8]| CellValue { bytes: bytes.as_ptr().cast(), length: bytes.len() as u32, ..there };
        match value {
            ValueRef::Null => NULL,
            ValueRef::Boolean(value) => whole((*value).into()),
            ValueRef::SmallInt(value) => whole((*value).into()),
            ValueRef::Integer(value) | ValueRef::Date(value) => whole((*value).into()),
            ValueRef::BigInt(value)
            | ValueRef::Time(value)
            | ValueRef::Timestamp(value)
            | ValueRef::TimestampTz(value) => whole(*value),
            ValueRef::Numeric(value) => CellValue { number: *value as f64, ..whole(*value as i64) },
            ValueRef::Real(value) => number((*value).into()),
            ValueRef::Double(value) => number(*value),
            ValueRef::Text(value) => bytes(value.as_bytes()),
            ValueRef::Bytea(value) => bytes(value),
            ValueRef::Uuid(value) => bytes(value),
        }
    }
}
