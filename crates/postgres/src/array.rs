//! Arrays: their types, and those that come as parameters.

use counterfoil::Value;

use crate::body::Body;
use crate::parameter;
use crate::rows::Format;
use crate::sqlstate::Refusal;
use crate::types::oid;

/// Types and the types of their arrays.
const TYPES: [(u32, u32); 20] = [
    (oid::BOOL, 1000),
    (oid::BYTEA, 1001),
    (oid::CHAR, 1002),
    (oid::NAME, 1003),
    (oid::INT2, 1005),
    (oid::INT4, 1007),
    (oid::TEXT, 1009),
    (oid::VARCHAR, 1015),
    (oid::INT8, 1016),
    (oid::FLOAT4, 1021),
    (oid::FLOAT8, 1022),
    (oid::OID, 1028),
    (oid::TIMESTAMP, 1115),
    (oid::DATE, 1182),
    (oid::TIME, 1183),
    (oid::TIMESTAMPTZ, 1185),
    (oid::NUMERIC, 1231),
    (oid::BPCHAR, 1014),
    (oid::INTERVAL, 1187),
    (oid::UUID, 2951),
];

/// The type of arrays of a type; that of texts for types that are told as text.
pub fn of(element: u32) -> u32 {
    TYPES.iter().find(|(number, _)| *number == element).map_or(1009, |(_, array)| *array)
}

/// The type of the parts of an array.
pub fn element(array: u32) -> Option<u32> {
    TYPES.iter().find(|(_, number)| *number == array).map(|(element, _)| *element)
}

/// An array of one dimension as SQL writes it; none where it is no array.
///
/// # Errors
/// Those of its parts.
pub fn read(bytes: &[u8]) -> Result<Option<String>, Refusal> {
    let mut body = Body::new(bytes);
    let Some((dimensions, element)) = header(&mut body) else { return Ok(None) };
    if dimensions == 0 {
        return Ok(body.end().ok().map(|()| "{}".to_owned()));
    }
    let (Ok(count), Ok(_first), 1) = (body.u32(), body.u32(), dimensions) else { return Ok(None) };
    // Part by part into one text: each of them as a text of its own would take many times the room of what came.
    let mut text = String::from("{");
    for at in 0..count {
        // Each has four bytes at least, so that no more of them are read than there are bytes.
        let Ok(part) = body.value() else { return Ok(None) };
        if at > 0 {
            text.push(',');
        }
        match part {
            None => text.push_str("NULL"),
            Some(part) => write(&mut text, &parameter::read(element, Format::Binary, part)?),
        }
    }
    text.push('}');
    Ok(body.end().ok().map(|()| text))
}

/// The number of dimensions, and the type of the parts.
fn header(body: &mut Body<'_>) -> Option<(u32, u32)> {
    let (dimensions, _has_nulls, element) = (body.u32().ok()?, body.u32().ok()?, body.u32().ok()?);
    // An array of arrays is one of more dimensions: what nests without end is not read.
    (self::element(element).is_none()).then_some((dimensions, element))
}

fn write(out: &mut String, part: &Value) {
    let Some(text) = part.text() else { return out.push_str("NULL") };
    // What cannot be taken for a sign of the list stands without quotes.
    if matches!(part, Value::Boolean(_) | Value::Integer(_) | Value::Double(_)) {
        return out.push_str(&text);
    }
    out.push('"');
    for letter in text.chars() {
        if matches!(letter, '\\' | '"') {
            out.push('\\');
        }
        out.push(letter);
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(element: u32, parts: &[Option<&[u8]>]) -> Vec<u8> {
        let mut bytes: Vec<u8> = Vec::new();
        let count = parts.len() as u32;
        let header = if parts.is_empty() { vec![0, 0, element] } else { vec![1, 0, element, count, 1] };
        header.into_iter().for_each(|word| bytes.extend(word.to_be_bytes()));
        for part in parts {
            bytes.extend(part.map_or(-1, |part| part.len() as i32).to_be_bytes());
            bytes.extend(part.unwrap_or_default());
        }
        bytes
    }

    #[test]
    fn arrays_are_read_as_sql_writes_them() {
        let read = |bytes: &[u8]| super::read(bytes).ok().flatten();
        assert_eq!(read(&array(oid::OID, &[Some(&[0, 0, 0, 23]), None])).as_deref(), Some("{23,NULL}"));
        assert_eq!(read(&array(oid::TEXT, &[Some(b"a\"b")])).as_deref(), Some("{\"a\\\"b\"}"));
        assert_eq!(read(&array(oid::TEXT, &[])).as_deref(), Some("{}"));
        for cut in 0..array(oid::OID, &[Some(&[0, 0, 0, 23])]).len() {
            assert_eq!(read(&array(oid::OID, &[Some(&[0, 0, 0, 23])])[..cut]), None, "{cut}");
        }
        let mut many = array(oid::OID, &[Some(&[0, 0, 0, 23])]);
        many[12..16].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(read(&many), None);
        assert_eq!(read(&array(1028, &[Some(&[0, 0, 0, 23])])), None);
    }
}
