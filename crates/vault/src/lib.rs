//! Keys, sealing and one-way counters: the only crate that knows a page cipher.
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]
extern crate alloc;

mod cells;
mod change;
mod cipher;
mod copies;
mod counter;
mod entropy;
mod error;
#[cfg(feature = "std")]
mod file_counter;
mod freshness;
mod header;
mod keys;
#[cfg(feature = "std")]
mod memory_counter;
mod opening;
mod page;
mod place;
mod sealing;
mod secret;
mod slot;
#[cfg(feature = "std")]
mod spill;
mod suite;
#[cfg(feature = "witness")]
pub mod witness;

pub use cells::{CELL_BYTES, CELL_PAYLOAD_MAX, CELL_POINTER_MAX, CellKey, CellLatch, CellPage, OpenedCell};
pub use change::{ChangeStep, HeaderChange};
pub use copies::{CopyFault, HeaderCopies, HeaderCopy, RootDigests, Settled, Unlocked, read_headers};
pub use counter::{Counter, CounterError, CounterKind, CounterValue};
#[cfg(feature = "std")]
pub use entropy::SystemEntropy;
pub use entropy::{DangerFixedEntropy, Entropy, NoEntropy};
pub use error::Tampered;
#[cfg(feature = "std")]
pub use file_counter::{CounterRecord, FileCounter, StateEnvironment};
pub use freshness::{Accepted, Refused, judge};
pub use header::{HEADER_BYTES, Header, HeaderError, SLOTS, SlotsDigest, VolumeLayout};
pub use keys::{DatabaseId, FORMAT, VolumeKey};
#[cfg(feature = "std")]
pub use memory_counter::MemoryCounter;
pub use page::{OPENING_BYTES, Opened, Plain, Sealed, TAG_BYTES, Tag};
pub use place::{Epoch, Kind, Place, SALT_BYTES};
pub use sealing::{PageKey, Vault};
pub use secret::{KeyFile, RecoveryCode, Secret, SecretError};
pub use slot::{ArgonCost, Slot, SlotKind};
#[cfg(feature = "std")]
pub use spill::{
    CHUNK_BYTES, CHUNK_HEAD_BYTES, SpillKey, SpillOpener, SpillReader, SpillSealer, SpillTampered, SpillWriter,
};
pub use suite::Suite;
