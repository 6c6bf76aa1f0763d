//! What a page asks of the module, and what it is told: bytes in, bytes out.
//!
//! ```text
//! 1 owner sql now clock-error max-age memory    begins a question (texts, three numbers of milliseconds, bytes or none)
//! 2                                             goes on with it
//! 3 path kind bytes                             a file: 0 its bytes, 1 there is none, 2 a text that says what failed
//! 4 from count                                  rows of the result
//! 5 kind ...                                    a corruption: 0 row column, 1 row, 2 bit, 3, 4 path-or-nothing bit
//! 6                                             the answer with its proof, as `counterfoil ask --check` takes it
//! 7 memory                                      the newer of what was seen and what was remembered meanwhile
//! ```
//! Numbers and strings are those of [`counterfoil_proof::bytes`]. The reply is JSON, but for 6, and always an object: with
//! `refused` in it where there is a reason for no rows, and `misuse` where the page asked for nothing that there is.

use counterfoil_proof::bytes::Reader;
use counterfoil_proof::{Malformed, Owner};
use counterfoil_reader::{Error, Memory, Terms};
use serde_json::{Value, json};

use crate::corruption::Corruption;
use crate::fetched::Brought;
use crate::session::Session;
use crate::told;

/// Rows that are told at once.
const ROWS_MAX: u64 = 1000;

/// Answers one request. `session` is the question that is being asked.
pub fn call(session: &mut Option<Session>, request: &[u8]) -> Vec<u8> {
    let mut reader = Reader::new(request, "a request");
    let told = match asked(session, &mut reader) {
        Ok(Reply::Bytes(bytes)) => return bytes,
        Ok(Reply::Told(told)) => told,
        Err(Malformed(what)) => json!({ "misuse": what }),
    };
    told.to_string().into_bytes()
}

enum Reply {
    Told(Value),
    Bytes(Vec<u8>),
}

fn asked(session: &mut Option<Session>, reader: &mut Reader<'_>) -> Result<Reply, Malformed> {
    let kind = reader.byte()?;
    if kind == 1 {
        *session = None;
        return begin(session, reader).map(Reply::Told);
    }
    let session = session.as_mut().ok_or(Malformed("no question was asked"))?;
    Ok(Reply::Told(match kind {
        2 => {
            let effort = session.effort();
            let mut told = told::step(&session.step(), effort);
            if told.get("read").is_some() {
                told["used"] = told::files(session.fetched.used());
            }
            told["memory"] = told::memory(session.memory());
            told
        }
        3 => bring(session, reader)?,
        4 => {
            let (from, count) = (reader.number()?, reader.number()?.min(ROWS_MAX));
            told::rows(session.reading()?, from, count)
        }
        5 => told::corrupted(session.corrupt(&corruption(reader)?).as_ref()),
        6 => return session.reading().map(|reading| Reply::Bytes(reading.kept.to_bytes())),
        7 => {
            let elsewhere = reader.string()?;
            let elsewhere = Some(elsewhere).filter(|bytes| !bytes.is_empty());
            json!({ "memory": told::memory(session.newer(elsewhere)?.as_ref()) })
        }
        _ => return Err(reader.malformed()),
    }))
}

fn begin(session: &mut Option<Session>, reader: &mut Reader<'_>) -> Result<Value, Malformed> {
    let (owner, sql) = (reader.text()?, reader.text()?);
    let (now, clock_error, max_age) = (reader.number()?, reader.number()?, reader.number()?);
    let memory = reader.string()?;
    let owner: Owner = match owner.parse() {
        Ok(owner) => owner,
        Err(error) => return Ok(told::no_owner(&error)),
    };
    let memory = Some(memory).filter(|bytes| !bytes.is_empty()).map(Memory::from_bytes).transpose()?;
    let begun = Session::begin(sql, Terms { owner, now, clock_error, max_age, hints: true }, memory);
    Ok(match begun {
        Ok(begun) => {
            // The name as everybody writes it: what is remembered is kept under it.
            let told = json!({ "table": begun.table(), "owner": begun.terms().owner.to_string() });
            *session = Some(begun);
            told
        }
        Err(error) => told::refused(&error),
    })
}

fn bring(session: &mut Session, reader: &mut Reader<'_>) -> Result<Value, Malformed> {
    let path = reader.text()?;
    let brought = match reader.byte()? {
        0 => Brought::Bytes(reader.string()?.to_vec()),
        1 => Brought::Nothing,
        2 => Brought::Failed(reader.text()?.into()),
        _ => return Err(reader.malformed()),
    };
    Ok(session.bring(path, brought).map_or_else(|error: Error| told::refused(&error), |()| json!({})))
}

fn corruption(reader: &mut Reader<'_>) -> Result<Corruption, Malformed> {
    Ok(match reader.byte()? {
        0 => Corruption::Value { row: reader.number()?, column: reader.number()? },
        1 => Corruption::Row { row: reader.number()? },
        2 => Corruption::Summary { bit: reader.number()? },
        3 => Corruption::Yesterday,
        4 => {
            let path = reader.text()?;
            Corruption::Bit { path: (!path.is_empty()).then(|| path.into()), bit: reader.number()? }
        }
        _ => return Err(reader.malformed()),
    })
}
