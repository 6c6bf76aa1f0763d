//! The header: what a database is, and the volume key in up to eight slots.
//!
//! ```text
//!    0 magic [8]: 89 "CFOIL" 0D 0A | 8 format u16 | 10 header bytes u16 = 2048
//!   12 suite u8 | 13 counter kind u8 | 14 zero [2] | 16 database id [32]
//!   48 page bytes u32 | 52 extent pages u32 | 56 record window: first extent u64, 64 extents u64
//!   72 size limit in bytes u64, 0 = none | 80 created u64, seconds since 1970 | 88 generation u64
//!   96 least commit u64: 0, or an image whose newest commit is an older one has lost something | 104 zero [24]
//!  128 eight slots of 224 bytes
//! 1920 check [32] = HMAC-SHA-256(header key, bytes 0..1920) | 1952 zero [96]                        = 2048 bytes
//! ```
//! 1. A header that was read is nothing but a [`crate::HeaderCopies`] until a slot opened it and its check held.
//! 2. The check commits: no second volume key makes it hold.
//! 3. There is always a slot in use.

use alloc::vec::Vec;
use core::fmt;

use counterfoil_flash as flash;
use hmac::Mac;

use crate::made_header::{CHECK_AT, CHECK_END, HEADER_BYTES, LEAST_COMMIT_AT, MAGIC, check_value, digest_of, field};
use crate::slot::{SLOT_BYTES, Slot};
use crate::{
    ArgonCost, CounterKind, DatabaseId, Entropy, FORMAT, NoEntropy, Secret, SlotsDigest, Suite, TpmError, VolumeKey,
};

/// Slots of the header.
pub const SLOTS: usize = 8;

const SLOTS_AT: usize = 128;
const _: () = assert!(CHECK_AT == SLOTS_AT + SLOTS * SLOT_BYTES);

/// Why a header could not be read, unlocked or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderError {
    /// Neither copy is recognisable.
    NotADatabase,
    /// The header is of a format that this program does not know.
    Format {
        /// The format it names.
        found: u16,
    },
    /// Recognisable, and nonsense.
    Corrupt {
        /// Which part.
        what: &'static str,
    },
    /// No slot opens with what was offered.
    WrongKey {
        /// Whether both copies could be read and agree, so that it can only be the key.
        certain: bool,
    },
    /// A slot opened, and the header around it is not what was last written.
    Tampered {
        /// What is wrong.
        what: &'static str,
    },
    /// A slot asks for more, or less, than is ever spent on one.
    Cost {
        /// What it asks for.
        cost: ArgonCost,
    },
    /// The memory that a passphrase slot needs is not to be had.
    OutOfMemory {
        /// KiB that it needs.
        memory_kib: u32,
    },
    /// An empty passphrase opens nothing and makes no slot.
    EmptyPassphrase,
    /// All eight slots are in use.
    NoFreeSlot,
    /// There is no such slot.
    NoSuchSlot {
        /// The number asked for.
        slot: usize,
    },
    /// The last slot cannot be removed.
    LastSlot,
    /// The random generator failed.
    NoEntropy,
    /// The medium failed.
    Device(flash::Error),
    /// A TPM was asked, and did not do it.
    Tpm(TpmError),
}

impl From<TpmError> for HeaderError {
    fn from(error: TpmError) -> HeaderError {
        HeaderError::Tpm(error)
    }
}

impl From<NoEntropy> for HeaderError {
    fn from(_: NoEntropy) -> HeaderError {
        HeaderError::NoEntropy
    }
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderError::NotADatabase => f.write_str("not a Counterfoil database"),
            HeaderError::Format { found } => {
                write!(f, "the database is of format {found}; this program knows formats up to {FORMAT}")
            }
            HeaderError::Corrupt { what } => write!(f, "the header makes no sense: {what}"),
            HeaderError::WrongKey { certain: true } => f.write_str("wrong key or passphrase"),
            HeaderError::WrongKey { certain: false } => {
                f.write_str("wrong key or passphrase, or a damaged header: its two copies do not agree")
            }
            HeaderError::Tampered { what } => write!(f, "the header is not what was last written: {what}"),
            HeaderError::Cost { cost } => write!(
                f,
                "a passphrase slot asks for {} KiB, {} passes and {} lanes, where at most {} KiB, {} passes and {} \
                 lanes, and on hosts at least {} KiB and {} passes, are accepted",
                cost.memory_kib,
                cost.passes,
                cost.lanes,
                ArgonCost::MAXIMUM.memory_kib,
                ArgonCost::MAXIMUM.passes,
                ArgonCost::MAXIMUM.lanes,
                ArgonCost::HOST.memory_kib,
                ArgonCost::HOST.passes
            ),
            HeaderError::OutOfMemory { memory_kib } => {
                write!(f, "a passphrase slot needs {memory_kib} KiB of memory, which are not to be had")
            }
            HeaderError::EmptyPassphrase => f.write_str("the passphrase is empty"),
            HeaderError::NoFreeSlot => write!(f, "all {SLOTS} key slots are in use"),
            HeaderError::NoSuchSlot { slot } => write!(f, "there is no key slot {slot}"),
            HeaderError::LastSlot => f.write_str("the last key slot cannot be removed"),
            HeaderError::NoEntropy => NoEntropy.fmt(f),
            HeaderError::Device(error) => error.fmt(f),
            HeaderError::Tpm(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for HeaderError {}

/// Where things lie on the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeLayout {
    /// Bytes in a page: a power of two from 128 to 65536.
    pub page_bytes: u32,
    /// Pages in an extent: a power of two; an extent has 2 KiB to 1 GiB.
    pub extent_pages: u32,
    /// The first extent of the record window; 2 or later.
    pub record_first_extent: u64,
    /// Extents of the record window; at least 1.
    pub record_extents: u64,
    /// Bytes that the database may have; 0 for no limit.
    pub size_limit: u64,
}

impl VolumeLayout {
    /// Bytes in an extent.
    pub fn extent_bytes(&self) -> u64 {
        u64::from(self.page_bytes).saturating_mul(u64::from(self.extent_pages))
    }

    /// Pages that one copy of the header takes, from the first page of its extent on.
    pub fn header_pages(&self) -> u32 {
        (HEADER_BYTES as u32).div_ceil(self.page_bytes.max(1))
    }

    /// # Errors
    /// [`HeaderError::Corrupt`], naming what cannot be.
    pub fn check(&self) -> Result<(), HeaderError> {
        let refuse = |what| Err(HeaderError::Corrupt { what });
        if !self.page_bytes.is_power_of_two() || !(128..=65536).contains(&self.page_bytes) {
            return refuse("page size");
        }
        if !self.extent_pages.is_power_of_two() || !(HEADER_BYTES as u64..=1 << 30).contains(&self.extent_bytes()) {
            return refuse("extent size");
        }
        let with_its_copy = self.record_extents.checked_mul(2);
        let window_end = with_its_copy.and_then(|extents| self.record_first_extent.checked_add(extents));
        let bytes = window_end.and_then(|end| end.checked_mul(self.extent_bytes()));
        match bytes {
            Some(bytes) if self.record_first_extent >= 2 && self.record_extents >= 1 && bytes < 1 << 62 => Ok(()),
            _ => refuse("record window"),
        }
    }
}

/// A header of our own making, or one that was unlocked.
#[derive(Clone, PartialEq, Eq)]
pub struct Header {
    /// The database's name.
    pub id: DatabaseId,
    /// The page cipher.
    pub suite: Suite,
    /// The counter that the database is bound to.
    pub counter: CounterKind,
    /// Where things lie.
    pub layout: VolumeLayout,
    /// When the database was made, in seconds since 1970.
    pub created: u64,
    /// How often the slots were changed.
    pub generation: u64,
    /// An image whose newest commit is older than this one is not whole: what a backup, which no counter knows, says of
    /// itself. Not part of the digest that the root holds, because the root of a backup is its original's.
    pub least_commit: u64,
    slots: [Option<Slot>; SLOTS],
}

impl Header {
    /// A header without a slot: [`Header::add_slot`] comes next.
    ///
    /// # Errors
    /// [`HeaderError::Corrupt`] for an impossible layout.
    pub fn new(
        id: DatabaseId,
        suite: Suite,
        counter: CounterKind,
        layout: VolumeLayout,
        created: u64,
    ) -> Result<Header, HeaderError> {
        layout.check()?;
        Ok(Header {
            id,
            suite,
            counter,
            layout,
            created,
            generation: 0,
            least_commit: 0,
            slots: [const { None }; SLOTS],
        })
    }

    /// The slots in use, with their numbers.
    pub fn slots(&self) -> impl Iterator<Item = (usize, &Slot)> {
        self.slots.iter().enumerate().filter_map(|(number, slot)| Some((number, slot.as_ref()?)))
    }

    /// Wraps the volume key under one more secret; the number of the slot. `cost` matters for passphrases alone.
    ///
    /// # Errors
    /// [`HeaderError::NoFreeSlot`], [`HeaderError::EmptyPassphrase`], [`HeaderError::Cost`],
    /// [`HeaderError::NoEntropy`], [`HeaderError::OutOfMemory`].
    pub fn add_slot(
        &mut self,
        secret: &Secret<'_>,
        cost: &ArgonCost,
        volume_key: &VolumeKey,
        now: u64,
        entropy: &mut dyn Entropy,
    ) -> Result<usize, HeaderError> {
        let number = self.slots.iter().position(Option::is_none).ok_or(HeaderError::NoFreeSlot)?;
        self.slots[number] = Some(Slot::wrap(secret, cost, volume_key, self.id, now, entropy)?);
        self.generation += 1;
        Ok(number)
    }

    /// Puts another secret into a slot that is in use.
    ///
    /// # Errors
    /// [`HeaderError::NoSuchSlot`], and as [`Header::add_slot`].
    pub fn change_slot(
        &mut self,
        slot: usize,
        secret: &Secret<'_>,
        cost: &ArgonCost,
        volume_key: &VolumeKey,
        now: u64,
        entropy: &mut dyn Entropy,
    ) -> Result<(), HeaderError> {
        let id = self.id;
        let place = self.slots.get_mut(slot).filter(|place| place.is_some());
        let place = place.ok_or(HeaderError::NoSuchSlot { slot })?;
        *place = Some(Slot::wrap(secret, cost, volume_key, id, now, entropy)?);
        self.generation += 1;
        Ok(())
    }

    /// Empties a slot.
    ///
    /// # Errors
    /// [`HeaderError::NoSuchSlot`], [`HeaderError::LastSlot`].
    pub fn remove_slot(&mut self, slot: usize) -> Result<(), HeaderError> {
        if self.slots.get(slot).is_none_or(Option::is_none) {
            return Err(HeaderError::NoSuchSlot { slot });
        }
        if self.slots().count() == 1 {
            return Err(HeaderError::LastSlot);
        }
        self.slots[slot] = None;
        self.generation += 1;
        Ok(())
    }

    /// Empties every slot: for a new volume key, which every secret must be wrapped under again.
    pub fn clear_slots(&mut self) {
        self.slots = [const { None }; SLOTS];
        self.generation += 1;
    }

    /// What the counter-bound root holds of this header.
    pub fn slots_digest(&self) -> SlotsDigest {
        digest_of(&self.body())
    }

    /// One copy, as it goes to the medium: whole pages, zeros behind the header.
    ///
    /// # Panics
    /// Without a slot in use: nobody could ever open the database.
    pub fn encode(&self, volume_key: &VolumeKey) -> Vec<u8> {
        assert!(self.slots().next().is_some(), "a header has a slot in use");
        let mut bytes = Vec::from(self.body());
        let check = check_value(&bytes[..CHECK_AT], volume_key, self.id, self.suite).finalize().into_bytes();
        bytes[CHECK_AT..CHECK_END].copy_from_slice(&check);
        bytes.resize(self.layout.header_pages() as usize * self.layout.page_bytes as usize, 0);
        bytes
    }

    /// Everything but the check.
    fn body(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[10..12].copy_from_slice(&(HEADER_BYTES as u16).to_le_bytes());
        bytes[12] = self.suite.number();
        bytes[13] = self.counter.number();
        bytes[16..48].copy_from_slice(&self.id.0);
        bytes[48..52].copy_from_slice(&self.layout.page_bytes.to_le_bytes());
        bytes[52..56].copy_from_slice(&self.layout.extent_pages.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.layout.record_first_extent.to_le_bytes());
        bytes[64..72].copy_from_slice(&self.layout.record_extents.to_le_bytes());
        bytes[72..80].copy_from_slice(&self.layout.size_limit.to_le_bytes());
        bytes[80..88].copy_from_slice(&self.created.to_le_bytes());
        bytes[88..96].copy_from_slice(&self.generation.to_le_bytes());
        bytes[LEAST_COMMIT_AT..LEAST_COMMIT_AT + 8].copy_from_slice(&self.least_commit.to_le_bytes());
        for (number, slot) in self.slots() {
            let at = SLOTS_AT + number * SLOT_BYTES;
            bytes[at..at + SLOT_BYTES].copy_from_slice(slot.bytes());
        }
        bytes
    }

    /// A header that the holder of the volume key made; none if these bytes are no such.
    #[must_use]
    pub fn made(bytes: &[u8], volume_key: &VolumeKey) -> Option<Header> {
        let bytes = bytes.first_chunk::<HEADER_BYTES>()?;
        Header::decode(bytes).ok().filter(|header| header.check_holds(bytes, volume_key))
    }

    /// Takes the slots of another header of the same database: what opened that one opens this one.
    pub fn take_slots(&mut self, of: &Header) {
        debug_assert!(self.id == of.id, "slots are bound to the database that they open");
        self.slots.clone_from(&of.slots);
        self.generation = self.generation.max(of.generation) + 1;
    }

    /// Reads the clear part of a copy. Nothing of it is to be believed before [`Header::check_holds`].
    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Header, HeaderError> {
        let corrupt = |what| HeaderError::Corrupt { what };
        if bytes[..8] != MAGIC {
            return Err(HeaderError::NotADatabase);
        }
        let format = u16::from_le_bytes(field(bytes, 8));
        if format != FORMAT {
            return Err(HeaderError::Format { found: format });
        }
        let mut slots = [const { None }; SLOTS];
        for (slot, bytes) in slots.iter_mut().zip(bytes[SLOTS_AT..CHECK_AT].as_chunks::<SLOT_BYTES>().0) {
            *slot = Slot::decode(bytes)?;
        }
        let header = Header {
            suite: Suite::from_number(bytes[12]).ok_or(corrupt("suite"))?,
            counter: CounterKind::from_number(bytes[13]).ok_or(corrupt("counter"))?,
            id: DatabaseId(field(bytes, 16)),
            layout: VolumeLayout {
                page_bytes: u32::from_le_bytes(field(bytes, 48)),
                extent_pages: u32::from_le_bytes(field(bytes, 52)),
                record_first_extent: u64::from_le_bytes(field(bytes, 56)),
                record_extents: u64::from_le_bytes(field(bytes, 64)),
                size_limit: u64::from_le_bytes(field(bytes, 72)),
            },
            created: u64::from_le_bytes(field(bytes, 80)),
            generation: u64::from_le_bytes(field(bytes, 88)),
            least_commit: u64::from_le_bytes(field(bytes, LEAST_COMMIT_AT)),
            slots,
        };
        header.layout.check()?;
        // What is written again from what was read is the same, so no byte of a copy is without meaning.
        let again = header.body();
        if again[..CHECK_AT] != bytes[..CHECK_AT] || again[CHECK_END..] != bytes[CHECK_END..] {
            return Err(corrupt("unused bytes"));
        }
        header.slots().next().ok_or(corrupt("no key slot"))?;
        Ok(header)
    }

    /// Whether these bytes, from which this header was read, are what the holder of the volume key wrote.
    pub(crate) fn check_holds(&self, bytes: &[u8; HEADER_BYTES], volume_key: &VolumeKey) -> bool {
        let check = check_value(&bytes[..CHECK_AT], volume_key, self.id, self.suite);
        check.verify_slice(&bytes[CHECK_AT..CHECK_END]).is_ok()
    }

    /// Whether this very slot is one of the header's.
    pub(crate) fn has_slot(&self, slot: &Slot) -> Option<usize> {
        self.slots().find(|(_, own)| *own == slot).map(|(number, _)| number)
    }
}
