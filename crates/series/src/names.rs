//! Names of series: keys as bytes, numbered as they come.
//!
//! ```text
//! a container of its own: for each series, in the order of its number: bytes of its key u16 | key
//! ```

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use counterfoil_log::{ContainerId, View};
use hashbrown::HashMap;

use crate::{Error, Storage};

/// Bytes that the key of a series has at most.
pub const KEY_BYTES_MAX: usize = 4096;
/// Series that a table has at most.
pub const SERIES_MAX: usize = 1 << 20;

/// The series of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    keys: Vec<Arc<[u8]>>,
    numbers: HashMap<Arc<[u8]>, u32>,
    /// Bytes of the container that are known.
    bytes: u64,
}

impl Names {
    pub(crate) fn number(&self, key: &[u8]) -> Option<u32> {
        self.numbers.get(key).copied()
    }

    pub(crate) fn key(&self, number: u32) -> Option<&Arc<[u8]>> {
        self.keys.get(number as usize)
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn note(&mut self, key: &[u8]) -> u32 {
        let (key, number) = (Arc::<[u8]>::from(key), self.keys.len() as u32);
        self.bytes += 2 + key.len() as u64;
        self.keys.push(key.clone());
        self.numbers.insert(key, number);
        number
    }

    /// Gives a new series a number.
    pub(crate) fn add(&mut self, storage: &mut dyn Storage, container: ContainerId, key: &[u8]) -> Result<u32, Error> {
        if key.len() > KEY_BYTES_MAX {
            return Err(Error::TooLong { bytes_max: KEY_BYTES_MAX });
        }
        if self.keys.len() >= SERIES_MAX {
            return Err(Error::Misuse("a series table holds 1,048,576 series at most"));
        }
        let mut entry = Vec::with_capacity(2 + key.len());
        entry.extend_from_slice(&(key.len() as u16).to_le_bytes());
        entry.extend_from_slice(key);
        storage.append(container, &entry)?;
        Ok(self.note(key))
    }

    /// Reads on, up to a length of the container.
    pub(crate) fn read_on(&mut self, view: &dyn View, container: ContainerId, length: u64) -> Result<(), Error> {
        let wrong = || Error::Corrupt { what: "list of series" };
        let more = length.checked_sub(self.bytes).ok_or_else(wrong)?;
        if more > (SERIES_MAX * (KEY_BYTES_MAX + 2)) as u64 {
            return Err(wrong());
        }
        let mut bytes = vec![0; more as usize];
        view.read(container, self.bytes, &mut bytes)?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (count, after) = rest.split_first_chunk::<2>().ok_or_else(wrong)?;
            let (key, after) = after.split_at_checked(usize::from(u16::from_le_bytes(*count))).ok_or_else(wrong)?;
            if self.numbers.contains_key(key) || key.len() > KEY_BYTES_MAX || self.keys.len() >= SERIES_MAX {
                return Err(wrong());
            }
            self.note(key);
            rest = after;
        }
        Ok(())
    }
}
