//! Keys, sealing and one-way counters: the only crate that knows a page cipher.
//!
//! A database has one random *volume key*. It is wrapped in up to eight slots of the [`Header`], and every other key is
//! derived from it for one purpose, epoch and allocation ([`Vault`]). A page is sealed at the [`Place`] that its caller
//! names and opens there or not at all; bytes from a medium are [`Sealed`] until [`Vault::open`] made them [`Opened`],
//! so forgetting the check does not compile. A [`Counter`] remembers how far the database has come, out of reach of
//! whoever holds its file; [`judge`] is what an image is owed by it.
//!
//! What this crate does not know: what a page holds, when a commit is one, and which place is current. Its callers
//! never seal other bytes at a place to which a write was ever tried; the feature `witness` lets tests compare every
//! pair of key and nonce.
//!
//! ```
//! use counterfoil_vault::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let volume_key = VolumeKey::generate(&mut SystemEntropy)?;
//! let id = DatabaseId::generate(&mut SystemEntropy)?;
//! let vault = Vault::new(&volume_key, id, Suite::Aes256GcmSiv);
//!
//! let epoch = Epoch { number: 2, salt: [7; 16] };
//! let place = Place { kind: Kind::Container, allocation: 41, position: 5, epoch };
//! let mut page = vec![0; 4096];
//! page[..5].copy_from_slice(b"hello");
//! let tag = vault.seal(&place, Plain::new(&mut page)).tag();
//!
//! let opened = vault.open(&place, Sealed::from_medium(&mut page))?;
//! assert_eq!((&opened.payload()[..5], opened.tag()), (&b"hello"[..], tag));
//!
//! let elsewhere = Place { position: 6, ..place };
//! assert!(vault.open(&elsewhere, Sealed::from_medium(&mut page)).is_err());
//! # Ok(())
//! # }
//! ```
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]
#[cfg(feature = "alloc")]
extern crate alloc;

#[cfg(not(any(
    feature = "aes-256-gcm-siv",
    feature = "aes-256-gcm",
    feature = "chacha20-poly1305",
    feature = "ascon-aead128",
    feature = "aes-128-ocb3"
)))]
compile_error!("without `std`, ask for a suite: for example the feature `ascon-aead128`");

mod bank_io;
#[cfg(not(feature = "blocks"))]
mod blocks;
#[cfg(feature = "blocks")]
pub mod blocks;
#[cfg(feature = "cells")]
mod cell_page;
#[cfg(feature = "cells")]
mod cells;
#[cfg(feature = "alloc")]
mod change;
mod cipher;
#[cfg(feature = "alloc")]
mod copies;
mod counter;
mod digests;
mod ecc_counter;
mod entropy;
mod error;
#[cfg(feature = "std")]
mod file_counter;
mod freshness;
#[cfg(feature = "alloc")]
mod header;
#[cfg(feature = "std")]
mod host_counter;
#[cfg(feature = "alloc")]
mod keeper;
mod keys;
mod made_header;
#[cfg(feature = "std")]
mod memory_counter;
mod nor_counter;
mod opening;
mod page;
#[cfg(feature = "std")]
mod password;
mod place;
mod sealing;
#[cfg(feature = "alloc")]
mod secret;
#[cfg(feature = "alloc")]
mod slot;
#[cfg(feature = "std")]
mod spill;
#[cfg(feature = "alloc")]
mod split;
mod suite;
#[cfg(feature = "std")]
mod token;
#[cfg(feature = "tpm")]
mod tpm;
#[cfg(feature = "tpm")]
mod tpm_counter;
#[cfg(feature = "alloc")]
mod tpm_error;
#[cfg(feature = "witness")]
pub mod witness;

#[cfg(feature = "cells")]
pub use cell_page::cells_payload;
#[cfg(feature = "cells")]
pub use cells::{CELL_BYTES, CELL_PAYLOAD_MAX, CELL_POINTER_MAX, CellKey, CellLatch, CellPage, OpenedCell};
#[cfg(feature = "alloc")]
pub use change::{ChangeStep, HeaderChange};
#[cfg(feature = "alloc")]
pub use copies::{CopyFault, HeaderCopies, HeaderCopy, Settled, Unlocked, header_places, read_headers};
pub use counter::{Counter, CounterError, CounterKind, CounterValue};
pub use digests::{RootDigests, SlotsDigest};
pub use ecc_counter::EccCounter;
#[cfg(feature = "std")]
pub use entropy::SystemEntropy;
pub use entropy::{DangerFixedEntropy, Entropy, NoEntropy};
pub use error::Tampered;
#[cfg(feature = "std")]
pub use file_counter::{CounterRecord, FileCounter, StateEnvironment, Succession};
pub use freshness::{Accepted, Refused, judge};
#[cfg(feature = "alloc")]
pub use header::{Header, HeaderError, SLOTS, VolumeLayout};
#[cfg(feature = "std")]
pub use host_counter::HostCounter;
#[cfg(feature = "alloc")]
pub use keeper::{KeptSecret, KeyKeeper};
pub use keys::{DatabaseId, FORMAT, VolumeKey};
pub use made_header::{HEADER_BYTES, HeaderShape, MAGIC, MadeHeader};
#[cfg(feature = "std")]
pub use memory_counter::MemoryCounter;
pub use nor_counter::NorCounter;
pub use page::{OPENING_BYTES, Opened, Plain, Sealed, TAG_BYTES, Tag};
#[cfg(feature = "std")]
pub use password::{PASSWORD_ITERATIONS, PASSWORD_VERIFIER_BYTES, PasswordVerifier};
pub use place::{Epoch, Kind, Place, SALT_BYTES};
pub use sealing::{PageKey, Vault};
#[cfg(feature = "alloc")]
pub use secret::{KeyFile, RecoveryCode, Secret, SecretError};
#[cfg(feature = "alloc")]
pub use slot::{ArgonCost, Slot, SlotKind};
#[cfg(feature = "std")]
pub use spill::{
    CHUNK_BYTES, CHUNK_HEAD_BYTES, SpillKey, SpillOpener, SpillReader, SpillSealer, SpillTampered, SpillWriter,
};
#[cfg(feature = "alloc")]
pub use split::{Share, SplitError, join, split};
pub use suite::Suite;
#[cfg(feature = "std")]
pub use token::{TOKEN_LETTERS, Token, TokenDigest};
#[cfg(feature = "tpm")]
pub use tpm::Tpm;
#[cfg(feature = "tpm")]
pub use tpm_counter::TpmCounter;
#[cfg(feature = "alloc")]
pub use tpm_error::TpmError;
