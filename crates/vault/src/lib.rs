//! Keys, sealing and one-way counters: the only crate that knows a page cipher.
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]
extern crate alloc;

mod cipher;
mod counter;
mod entropy;
mod error;
mod keys;
#[cfg(feature = "std")]
mod memory_counter;
mod opening;
mod page;
mod place;
mod sealing;
mod suite;
#[cfg(feature = "witness")]
pub mod witness;

pub use counter::{Counter, CounterError, CounterKind, CounterValue};
#[cfg(feature = "std")]
pub use entropy::SystemEntropy;
pub use entropy::{DangerFixedEntropy, Entropy, NoEntropy};
pub use error::Tampered;
pub use keys::{DatabaseId, FORMAT, VolumeKey};
#[cfg(feature = "std")]
pub use memory_counter::MemoryCounter;
pub use page::{OPENING_BYTES, Opened, Plain, Sealed, TAG_BYTES, Tag};
pub use place::{Epoch, Kind, Place, SALT_BYTES};
pub use sealing::{PageKey, Vault};
pub use suite::Suite;
