//! What the owner must be told of for ever: counters adopted, backups restored, images taken for the newest.
//!
//! ```text
//! record of space INCIDENT, name: number u64 big-endian, so that they stand in order
//! value: 0 time u64, seconds since 1970 | 8 kind u8 | 9 text, UTF-8
//! ```

use counterfoil_log::{View, Writer, record_space};

use crate::error::{Error, Kind, Result};

/// A counter was absent, and the image was taken for the newest.
pub(crate) const ADOPTED: u8 = 1;
/// A person bound the counter anew.
pub(crate) const ADOPTED_BY_HAND: u8 = 2;
/// The database was restored from a backup.
pub(crate) const RESTORED: u8 = 3;

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Incident {
    /// Its number, from 1.
    pub number: u64,
    /// When, in seconds since 1970.
    pub time: u64,
    /// What sort: `counter adopted`, `counter adopted by hand`, `restored`.
    pub kind: &'static str,
    /// The story.
    pub text: String,
}

pub(crate) fn kind_name(kind: u8) -> &'static str {
    match kind {
        ADOPTED => "counter adopted",
        ADOPTED_BY_HAND => "counter adopted by hand",
        RESTORED => "restored",
        _ => "unknown",
    }
}

/// Leaves one behind, in a commit of its own.
pub(crate) fn record(writer: &mut Writer, kind: u8, text: &str) -> Result<()> {
    let last = writer.records(record_space::INCIDENT, b"").last().and_then(|(name, _)| number(name)).unwrap_or(0);
    let mut value = crate::time::now().to_le_bytes().to_vec();
    value.push(kind);
    value.extend_from_slice(text.as_bytes());
    writer.begin()?;
    writer.put_record(record_space::INCIDENT, &(last + 1).to_be_bytes(), &value)?;
    writer.commit()?;
    Ok(())
}

/// All of them.
pub(crate) fn all(view: &dyn View) -> Result<Vec<Incident>> {
    let records = view.records(record_space::INCIDENT, b"");
    records.iter().map(|(name, value)| decode(name, value)).collect()
}

fn decode(name: &[u8], value: &[u8]) -> Result<Incident> {
    let corrupt = || Error::new(Kind::Corrupt, "an incident makes no sense").advise("restore a backup");
    let number = number(name).ok_or_else(corrupt)?;
    let (time, rest) = value.split_first_chunk::<8>().ok_or_else(corrupt)?;
    let (kind, text) = rest.split_first().ok_or_else(corrupt)?;
    let text = String::from_utf8(text.to_vec()).map_err(|_| corrupt())?;
    Ok(Incident { number, time: u64::from_le_bytes(*time), kind: kind_name(*kind), text })
}

fn number(name: &[u8]) -> Option<u64> {
    name.try_into().ok().map(u64::from_be_bytes)
}
