//! What becomes of an image that its counter has left behind: the one setting that is the database's own.
//!
//! ```text
//! record of space SETTING, name `on_rollback`: 0 mode u8 (0 refuse, 1 record) | 1 zero [3] | 4 limit u32
//! ```
//! Without the record images are refused. It is changed like a row: with its transaction, and by whoever may write.

use std::fmt;

use counterfoil_log::{View, Writer, record_space};

use crate::error::{Error, Result};

const RECORD: &[u8] = b"on_rollback";

/// What becomes of an image that its counter has left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnRollback {
    /// Whether it is gone on from, with an incident, instead of refused.
    pub records: bool,
    /// How many it is gone on from until a person accepts them; the next one is refused.
    pub limit: u32,
}

impl Default for OnRollback {
    fn default() -> Self {
        OnRollback { records: false, limit: 3 }
    }
}

impl fmt::Display for OnRollback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.records { "record" } else { "refuse" })
    }
}

/// The names of the settings that are kept here.
pub(crate) const NAMES: [&str; 2] = ["on_rollback", "rollback_limit"];

impl OnRollback {
    /// As a state of the database has it.
    ///
    /// # Errors
    /// [`Error::Log`] for a record that makes no sense.
    pub fn of(view: &dyn View) -> Result<Self> {
        let Some(value) = view.record(record_space::SETTING, RECORD) else { return Ok(Self::default()) };
        Self::decode(&value).ok_or_else(|| Error::Log(counterfoil_log::Error::corrupt("setting on_rollback")))
    }

    fn decode(value: &[u8]) -> Option<Self> {
        let [mode @ (0 | 1), 0, 0, 0, limit @ ..] = value else { return None };
        Some(OnRollback { records: *mode == 1, limit: u32::from_le_bytes(limit.try_into().ok()?) })
    }

    fn store(self, writer: &mut Writer) -> Result<()> {
        let mut value = vec![u8::from(self.records), 0, 0, 0];
        value.extend_from_slice(&self.limit.to_le_bytes());
        Ok(writer.put_record(record_space::SETTING, RECORD, &value)?)
    }

    /// The value of one of [`NAMES`].
    pub(crate) fn value(self, name: &str) -> String {
        if name == NAMES[0] { self.to_string() } else { self.limit.to_string() }
    }

    /// Changes one of [`NAMES`] in the commit under way; without a value, to what it is by itself.
    pub(crate) fn change(writer: &mut Writer, name: &str, value: Option<&str>) -> Result<()> {
        let present = OnRollback::of(writer)?;
        let usual = OnRollback::default();
        let changed = match (name == NAMES[0], value.map(str::to_ascii_lowercase).as_deref()) {
            (true, None) => OnRollback { records: usual.records, ..present },
            (true, Some("record")) => OnRollback { records: true, ..present },
            (true, Some("refuse")) => OnRollback { records: false, ..present },
            (true, Some(other)) => return Err(Error::Sql(format!("on_rollback is 'refuse' or 'record', not {other}"))),
            (false, None) => OnRollback { limit: usual.limit, ..present },
            (false, Some(number)) => {
                let limit = number.parse();
                let limit = limit.map_err(|_| Error::Sql(format!("rollback_limit is a number, not {number}")))?;
                OnRollback { limit, ..present }
            }
        };
        changed.store(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_read_and_nothing_else() {
        let stored = [1, 0, 0, 0, 7, 1, 0, 0];
        assert_eq!(OnRollback::decode(&stored), Some(OnRollback { records: true, limit: 263 }));
        for (at, bytes) in [(0, 2), (1, 1), (3, 1)] {
            let mut changed = stored;
            changed[at] = bytes;
            assert_eq!(OnRollback::decode(&changed), None);
        }
        assert_eq!(OnRollback::decode(&stored[..7]), None);
        assert_eq!(OnRollback::decode(&[&stored[..], &[0]].concat()), None);
    }
}
