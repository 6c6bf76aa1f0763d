//! `counterfoil.incidents`: what the owner must be told of for ever, as a table.
//!
//! ```text
//! record of space INCIDENT, name: number u64 big-endian, so that they stand in order
//! value: 0 time u64, seconds since 1970 | 8 kind u8 | 9 text, UTF-8
//! ```

use std::sync::Arc;

use counterfoil_log::{View, record_space};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray};

use crate::error::{Error, Result};
use crate::types::UTC;

/// What sort of incident it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum IncidentKind {
    /// A counter was absent, and the image was taken for the newest.
    Adopted = 1,
    /// A person bound the counter anew.
    AdoptedByHand = 2,
    /// The database was made of a backup.
    Restored = 3,
    /// An older image was gone on from, as `on_rollback` says.
    RolledBack = 4,
}

impl IncidentKind {
    const ALL: [Self; 4] = [Self::Adopted, Self::AdoptedByHand, Self::Restored, Self::RolledBack];

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Adopted => "counter adopted",
            Self::AdoptedByHand => "counter adopted by hand",
            Self::Restored => "restored",
            Self::RolledBack => "rolled back",
        }
    }
}

/// Something the owner must be told of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Incident {
    /// Its number, from 1.
    pub number: u64,
    /// When, in seconds since 1970.
    pub time: u64,
    /// What sort.
    pub kind: &'static str,
    /// The story.
    pub text: String,
}

/// Name and value of the record of the next incident.
pub fn next_record(view: &dyn View, time: u64, kind: IncidentKind, text: &str) -> (Vec<u8>, Vec<u8>) {
    let last = view.records(record_space::INCIDENT, b"").last().and_then(|(name, _)| number(name)).unwrap_or(0);
    let mut value = time.to_le_bytes().to_vec();
    value.push(kind as u8);
    value.extend_from_slice(text.as_bytes());
    (last.saturating_add(1).to_be_bytes().to_vec(), value)
}

/// All incidents, in order.
///
/// # Errors
/// [`Error::Log`] for a record that makes no sense.
pub fn incidents(view: &dyn View) -> Result<Vec<Incident>> {
    let records = view.records(record_space::INCIDENT, b"");
    let decoded = records.iter().map(|(name, value)| decode(name, value));
    decoded.collect::<Option<_>>().ok_or_else(|| Error::Log(counterfoil_log::Error::corrupt("record of an incident")))
}

fn decode(name: &[u8], value: &[u8]) -> Option<Incident> {
    let (time, rest) = value.split_first_chunk::<8>()?;
    let (kind, text) = rest.split_first()?;
    let known = IncidentKind::ALL.into_iter().find(|known| *known as u8 == *kind);
    Some(Incident {
        number: number(name)?,
        time: u64::from_le_bytes(*time),
        kind: known.map_or("unknown", IncidentKind::name),
        text: String::from_utf8(text.to_vec()).ok()?,
    })
}

fn number(name: &[u8]) -> Option<u64> {
    name.try_into().ok().map(u64::from_be_bytes)
}

/// The table.
pub(crate) fn table(view: &dyn View) -> Result<RecordBatch> {
    let incidents = incidents(view)?;
    let time = |incident: &Incident| i64::try_from(incident.time).unwrap_or(i64::MAX / 1_000_000) * 1_000_000;
    let times = TimestampMicrosecondArray::from_iter_values(incidents.iter().map(time)).with_timezone(UTC);
    let number = |incident: &Incident| i64::try_from(incident.number).unwrap_or(i64::MAX);
    let columns: [(&str, ArrayRef); 4] = [
        ("number", Arc::new(Int64Array::from_iter_values(incidents.iter().map(number)))),
        ("time", Arc::new(times)),
        ("kind", Arc::new(StringViewArray::from_iter_values(incidents.iter().map(|incident| incident.kind)))),
        ("text", Arc::new(StringViewArray::from_iter_values(incidents.iter().map(|incident| &incident.text)))),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}
