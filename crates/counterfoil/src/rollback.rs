//! Going on from an image that its counter has left behind, where `on_rollback` says so: for devices that nobody attends,
//! on media that lie about flush.
//!
//! ```text
//! record of space SETTING, name `rollback`: 0 count u32 | 4 zero [4] | 8 value u64 | 16 tag [16] of the counter then
//!
//! opening root above image and counter -> one commit: incident and record -> counter bound to it, with the count
//! ```
//! 1. A cut before the counter is bound leaves an image whose record names the counter as it stands: it is finished, and
//!    tells of one incident. A cut after it leaves an image that holds the incident.
//! 2. The count stands in the counter too: an older image that is put back again and again does not forget it.

use counterfoil_log::{View, Writer, record_space};
use counterfoil_sql::OnRollback;
use counterfoil_vault::CounterRecord;

use crate::error::{Error, Kind, Result};
use crate::incidents::{self, IncidentKind};

const RECORD: &[u8] = b"rollback";
const RECORD_BYTES: usize = 32;

/// How often older images were gone on from since a person accepted the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rollbacks {
    pub(crate) count: u32,
    /// The counter over which that happened last.
    value: u64,
    tag: [u8; 16],
}

impl Rollbacks {
    /// As an image tells it.
    pub(crate) fn of(view: &dyn View) -> Result<Self> {
        let Some(stored) = view.record(record_space::SETTING, RECORD) else { return Ok(Self::default()) };
        Self::decode(&stored).ok_or_else(|| Error::new(Kind::Corrupt, "the record of rollbacks makes no sense"))
    }

    fn decode(stored: &[u8]) -> Option<Self> {
        let (count, rest) = stored.split_first_chunk::<4>()?;
        let (zero, rest) = rest.split_first_chunk::<4>()?;
        let (value, tag) = rest.split_first_chunk::<8>()?;
        let sound = *zero == [0; 4] && *count != [0; 4];
        let tag = tag.try_into().ok().filter(|_| sound)?;
        Some(Self { count: u32::from_le_bytes(*count), value: u64::from_le_bytes(*value), tag })
    }

    fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut stored = [0; RECORD_BYTES];
        stored[..4].copy_from_slice(&self.count.to_le_bytes());
        stored[8..16].copy_from_slice(&self.value.to_le_bytes());
        stored[16..].copy_from_slice(&self.tag);
        stored
    }

    /// What `verify` says until a person has accepted them.
    pub(crate) fn unaccepted(&self) -> Option<Error> {
        let times = if self.count == 1 { "once".to_owned() } else { format!("{} times", self.count) };
        let text = format!("an older image than the newest was gone on from {times}, as on_rollback says");
        let advice = "see counterfoil.incidents, and accept it with `counterfoil counter adopt`";
        (self.count > 0).then(|| Error::new(Kind::RolledBack, text).advise(advice))
    }

    fn is_over(&self, counter: &CounterRecord) -> bool {
        self.count > 0 && (self.value, self.tag) == (counter.value, counter.tag)
    }
}

/// An older image that may be gone on from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permitted {
    /// Why it would have been refused.
    pub(crate) refusal: Error,
    /// What is to be recorded.
    pub(crate) rollbacks: Rollbacks,
    /// A cut ended an earlier attempt when the incident was durable already.
    is_told: bool,
}

/// Whether an image that `counter` speaks against may be gone on from all the same.
///
/// # Errors
/// `refusal`, if not.
pub(crate) fn permit(image: &dyn View, counter: &CounterRecord, refusal: Error) -> Result<Permitted> {
    let (setting, before) = (OnRollback::of(image)?, Rollbacks::of(image)?);
    let is_told = before.is_over(counter);
    if !setting.records || !(is_told || refusal.kind() == Kind::RolledBack) {
        return Err(refusal);
    }
    let count = before.count.max(counter.rollbacks);
    if !is_told && count >= setting.limit {
        let text = format!("{}; rollback_limit = {} is reached", refusal.what(), setting.limit);
        return Err(Error::new(Kind::RolledBack, text)
            .advise("put the newest image back, or accept this one with `counterfoil counter adopt`"));
    }
    let count = if is_told { before.count } else { count.saturating_add(1) };
    Ok(Permitted { refusal, rollbacks: Rollbacks { count, value: counter.value, tag: counter.tag }, is_told })
}

impl Permitted {
    /// Leaves the incident behind, before the counter is bound.
    pub(crate) fn record(&self, writer: &mut Writer, version: u64) -> Result<()> {
        if self.is_told {
            return Ok(());
        }
        let text = format!("gone on from an older image, version {version}: {}", self.refusal.what());
        writer.begin()?;
        incidents::put(writer, IncidentKind::RolledBack, &text)?;
        writer.put_record(record_space::SETTING, RECORD, &self.rollbacks.encode())?;
        writer.commit()?;
        Ok(())
    }
}

/// In the commit under way: a person accepts what happened.
pub(crate) fn accept(writer: &mut Writer) -> Result<()> {
    Ok(writer.delete_record(record_space::SETTING, RECORD)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_read_and_nothing_else() {
        let rollbacks = Rollbacks { count: 3, value: 1 << 40, tag: [9; 16] };
        let stored = rollbacks.encode();
        assert_eq!(Rollbacks::decode(&stored), Some(rollbacks));
        assert_eq!(Rollbacks::decode(&stored[..31]), None);
        assert_eq!(Rollbacks::decode(&[&stored[..], &[0]].concat()), None);
        assert_eq!(Rollbacks::decode(&[0; 32]), None, "no rollback leaves no record");
        let mut padded = stored;
        padded[5] = 1;
        assert_eq!(Rollbacks::decode(&padded), None);
    }
}
