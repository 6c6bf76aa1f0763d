//! What a page is told, as JSON. Texts are told as they are: that none becomes markup is the page's part.

use counterfoil_ask::{text, type_name};
use counterfoil_proof::{NoOwner, Type, Value as Cell};
use counterfoil_reader::{Error, Memory, Reading};
use serde_json::{Value, json};

use crate::corruption::{Corrupted, Same};
use crate::fetched::{BYTES_MAX, Wanted};
use crate::session::{Effort, Step};

/// Characters of a value that are told at most.
const CELL_CHARACTERS_MAX: usize = 4096;

/// Files that are told by name.
const FILES_TOLD_MAX: usize = 500;

pub(crate) fn step(step: &Step<'_>, effort: Effort) -> Value {
    match step {
        Step::Wanted(wanted) => {
            let wanted: Vec<Value> = wanted.iter().map(file).collect();
            json!({ "wanted": wanted, "bytesLeft": BYTES_MAX - effort.bytes })
        }
        Step::Read(reading) => json!({ "read": read(reading, effort) }),
        Step::Refused(error) => refused(error),
    }
}

fn file(wanted: &Wanted) -> Value {
    json!({ "path": wanted.path, "question": wanted.question.as_deref().map(hexadecimal), "most": wanted.most })
}

fn read(reading: &Reading, effort: Effort) -> Value {
    let (table, verdict) = (&reading.table, &reading.verdict);
    let kinds: Vec<String> = table.kinds.iter().map(|kind| type_name(*kind)).collect();
    let is_number = |kind: &Type| {
        matches!(kind, Type::SmallInt | Type::Integer | Type::BigInt | Type::Real | Type::Double | Type::Numeric(..))
    };
    let numbers: Vec<bool> = table.kinds.iter().map(is_number).collect();
    json!({
        "names": table.names,
        "kinds": kinds,
        "numbers": numbers,
        "count": table.rows.len(),
        "verdict": verdict.to_string(),
        "asOf": verdict.as_of,
        "signatures": verdict.signatures,
        "periods": reading.kept.summaries().len(),
        "wasAsked": reading.kept.answer().is_some(),
        "plan": reading.plan,
        "bytes": effort.bytes,
        "files": effort.files,
        "rounds": effort.rounds,
    })
}

/// The files that an answer was made of.
pub(crate) fn files<'a>(used: impl Iterator<Item = (&'a str, &'a [u8])>) -> Value {
    used.take(FILES_TOLD_MAX).map(|(path, bytes)| json!([path, bytes.len()])).collect()
}

pub(crate) fn rows(reading: &Reading, from: u64, count: u64) -> Value {
    let (from, count) = (usize::try_from(from).unwrap_or(usize::MAX), usize::try_from(count).unwrap_or(usize::MAX));
    let kinds = &reading.table.kinds;
    let told = |row: &Vec<Cell>| -> Value { row.iter().zip(kinds).map(|(value, kind)| cell(*kind, value)).collect() };
    let rows: Vec<Value> = reading.table.rows.iter().skip(from).take(count).map(told).collect();
    json!({ "rows": rows })
}

/// NULL, a text, or the beginning of a long one with the number of characters that follow.
fn cell(kind: Type, value: &Cell) -> Value {
    let Some(text) = text(kind, value) else { return Value::Null };
    match text.char_indices().nth(CELL_CHARACTERS_MAX) {
        None => Value::String(text),
        Some((end, _)) => json!([&text[..end], text[end..].chars().count()]),
    }
}

/// Why there are no rows: whether the mirror is at fault or silent, or the question none, and the verdict in a word.
pub(crate) fn refused(error: &Error) -> Value {
    let cause = if let Error::Moving(last) = error { &**last } else { error };
    let (kind, word) = match cause {
        Error::Sql(_) => ("sql", "not asked"),
        Error::Unreachable(_) | Error::NoTable(_) | Error::Withheld(_) => ("silent", "no answer"),
        Error::Refused(refusal) => ("refused", refusal.word()),
        Error::Damaged(..) => ("refused", "malformed"),
        _ => ("refused", "not understood"),
    };
    json!({ "refused": { "kind": kind, "word": word, "text": error.to_string() } })
}

pub(crate) fn no_owner(error: &NoOwner) -> Value {
    json!({ "refused": { "kind": "sql", "word": "not asked", "text": error.to_string() } })
}

pub(crate) fn corrupted(corrupted: Option<&Corrupted>) -> Value {
    let Some(corrupted) = corrupted else { return json!({ "nothing": true }) };
    let mut told = match &corrupted.outcome {
        Ok(same) => json!({ "accepted": if *same == Same::Rows { "same" } else { "other" } }),
        Err(error) => refused(error),
    };
    told["what"] = corrupted.what.clone().into();
    told
}

pub(crate) fn memory(memory: Option<&Memory>) -> Value {
    memory.map_or(Value::Null, |memory| Value::String(hexadecimal(&memory.to_bytes())))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
