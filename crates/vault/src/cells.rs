//! Small sealed cells: ten bytes that are read without opening a page (AREA of the MILo-DB paper).
//!
//! ```text
//! cell [16]:  XEX block of  payload (at most 10 bytes; pointers 8), the rest zero
//! tweak    =  AES(tweak key, AES(tweak key, allocation u64 || position u32 || zero [4])
//!                             xor (epoch number u64 || zero [8])) times alpha^slot
//! cell     =  AES(block key, plain xor tweak) xor tweak
//! page MAC =  first 16 bytes of HMAC-SHA-256(MAC key, allocation u64 || position u32 || epoch number u64 || cells)
//! ```
//! Three keys, derived per epoch; AES has the key size of the database's suite. Multiplication by alpha is that of
//! XTS (IEEE 1619): little-endian, reduced by 0x87.
//!
//! 1. A cell is written once at its place in an epoch.
//! 2. A cell carried to another slot, page, allocation or epoch decrypts to noise, which the zeros betray but for one
//!    time in 2^48 (2^64 for pointers). There is no second guess ([`CellLatch`]): from the
//!    first failure on, cells are opened only out of pages whose MAC was checked.
//! 3. Before a "not here" is believed, the page is authenticated by its MAC.

use core::sync::atomic::{AtomicBool, Ordering};

#[cfg(any(feature = "ascon-aead128", feature = "aes-128-ocb3"))]
use aes::Aes128;
#[cfg(any(feature = "aes-256-gcm-siv", feature = "aes-256-gcm", feature = "chacha20-poly1305"))]
use aes::Aes256;
use aes::Block;
use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::keys::{Purpose, mac_under};
use crate::{Epoch, Kind, Suite, TAG_BYTES, Tag, Tampered, Vault};

/// Bytes of a sealed cell.
pub const CELL_BYTES: usize = 16;

/// Most bytes of payload in a cell.
pub const CELL_PAYLOAD_MAX: usize = 10;

/// Most bytes of payload in a cell that points somewhere.
pub const CELL_POINTER_MAX: usize = 8;

/// AES with the key size of a suite: of the two there are those that the suites of this build have.
#[allow(clippy::large_enum_variant, reason = "a device has one of them and no heap to put it on")]
enum BlockCipher {
    #[cfg(any(feature = "ascon-aead128", feature = "aes-128-ocb3"))]
    Aes128(Aes128),
    #[cfg(any(feature = "aes-256-gcm-siv", feature = "aes-256-gcm", feature = "chacha20-poly1305"))]
    Aes256(Aes256),
}

impl BlockCipher {
    fn new(key: &[u8; 32], suite: Suite) -> BlockCipher {
        match suite {
            #[cfg(feature = "ascon-aead128")]
            Suite::AsconAead128 => BlockCipher::short(key),
            #[cfg(feature = "aes-128-ocb3")]
            Suite::Aes128Ocb3 => BlockCipher::short(key),
            #[cfg(any(feature = "aes-256-gcm-siv", feature = "aes-256-gcm", feature = "chacha20-poly1305"))]
            _ => BlockCipher::Aes256(Aes256::new(&(*key).into())),
        }
    }

    #[cfg(any(feature = "ascon-aead128", feature = "aes-128-ocb3"))]
    fn short(key: &[u8; 32]) -> BlockCipher {
        let half: [u8; 16] = core::array::from_fn(|index| key[index]);
        BlockCipher::Aes128(Aes128::new(&half.into()))
    }

    fn encrypt(&self, block: u128) -> u128 {
        let mut bytes = Block::from(block.to_le_bytes());
        match self {
            #[cfg(any(feature = "ascon-aead128", feature = "aes-128-ocb3"))]
            BlockCipher::Aes128(cipher) => cipher.encrypt_block(&mut bytes),
            #[cfg(any(feature = "aes-256-gcm-siv", feature = "aes-256-gcm", feature = "chacha20-poly1305"))]
            BlockCipher::Aes256(cipher) => cipher.encrypt_block(&mut bytes),
        }
        u128::from_le_bytes(bytes.into())
    }

    fn decrypt(&self, block: u128) -> u128 {
        let mut bytes = Block::from(block.to_le_bytes());
        match self {
            #[cfg(any(feature = "ascon-aead128", feature = "aes-128-ocb3"))]
            BlockCipher::Aes128(cipher) => cipher.decrypt_block(&mut bytes),
            #[cfg(any(feature = "aes-256-gcm-siv", feature = "aes-256-gcm", feature = "chacha20-poly1305"))]
            BlockCipher::Aes256(cipher) => cipher.decrypt_block(&mut bytes),
        }
        u128::from_le_bytes(bytes.into())
    }
}

/// The keys of the cells of one epoch.
///
/// ```compile_fail
/// fn needs_debug<T: core::fmt::Debug>() {}
/// needs_debug::<counterfoil_vault::CellKey>();
/// ```
pub struct CellKey {
    block: BlockCipher,
    tweak: BlockCipher,
    mac: Hmac<Sha256>,
    epoch: u64,
    #[cfg(feature = "witness")]
    witness: crate::witness::KeyDigest,
}

/// One page of cells: its tweak is computed once.
pub struct CellPage<'a> {
    key: &'a CellKey,
    allocation: u64,
    position: u32,
    tweak: u128,
}

/// A cell that opened: its payload stands first, the zeros that were checked behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OpenedCell([u8; CELL_PAYLOAD_MAX]);

impl OpenedCell {
    /// The payload, with as many bytes as were asked for.
    pub fn payload<const BYTES: usize>(&self) -> [u8; BYTES] {
        const { assert!(BYTES <= CELL_PAYLOAD_MAX, "a cell has at most 10 bytes of payload") };
        core::array::from_fn(|index| self.0[index])
    }
}

impl Vault {
    /// The keys of the cells written in this epoch.
    pub fn cell_key(&self, epoch: &Epoch) -> CellKey {
        let derive = |purpose| self.root.derive(purpose, 0, epoch);
        let suite = self.suite();
        let block = derive(Purpose::CellBlock);
        CellKey {
            #[cfg(feature = "witness")]
            witness: crate::witness::key_digest(&*block),
            block: BlockCipher::new(&block, suite),
            tweak: BlockCipher::new(&derive(Purpose::CellTweak), suite),
            mac: mac_under(&derive(Purpose::CellMac)),
            epoch: epoch.number,
        }
    }
}

impl CellKey {
    /// The cells of one page.
    pub fn page(&self, allocation: u64, position: u32) -> CellPage<'_> {
        let place = u128::from(allocation) | u128::from(position) << 64;
        crate::blocks::count(2);
        // Two blocks of fixed length, chained: one block has no room for a place and an epoch.
        let tweak = self.tweak.encrypt(self.tweak.encrypt(place) ^ u128::from(self.epoch));
        CellPage { key: self, allocation, position, tweak }
    }
}

impl CellPage<'_> {
    /// Seals a payload for the slot with this number.
    ///
    /// # Panics
    /// On more than [`CELL_PAYLOAD_MAX`] bytes.
    pub fn seal(&self, slot: u16, payload: &[u8]) -> [u8; CELL_BYTES] {
        assert!(payload.len() <= CELL_PAYLOAD_MAX, "a cell has at most 10 bytes of payload");
        let mut plain = [0; CELL_BYTES];
        plain[..payload.len()].copy_from_slice(payload);
        #[cfg(feature = "witness")]
        self.observe(slot);
        crate::blocks::count(1);
        let tweak = times_alpha_to(self.tweak, slot);
        (self.key.block.encrypt(u128::from_le_bytes(plain) ^ tweak) ^ tweak).to_le_bytes()
    }

    /// Opens the cell in this slot, whose payload should have `payload_bytes` bytes (at most
    /// [`CELL_PAYLOAD_MAX`]; for anything that points somewhere at most [`CELL_POINTER_MAX`]).
    ///
    /// # Errors
    /// [`Tampered`]; the caller trips its [`CellLatch`] then.
    pub fn open(&self, slot: u16, cell: &[u8; CELL_BYTES], payload_bytes: usize) -> Result<OpenedCell, Tampered> {
        crate::blocks::count(1);
        let tweak = times_alpha_to(self.tweak, slot);
        let plain = (self.key.block.decrypt(u128::from_le_bytes(*cell) ^ tweak) ^ tweak).to_le_bytes();
        let payload_bytes = payload_bytes.min(CELL_PAYLOAD_MAX);
        if !bool::from(plain[payload_bytes..].ct_eq(&[0; CELL_BYTES][payload_bytes..])) {
            return Err(self.tampered());
        }
        Ok(OpenedCell(core::array::from_fn(|index| plain[index])))
    }

    /// The MAC of the whole page of sealed cells.
    pub fn mac(&self, cells: &[u8]) -> Tag {
        let full: [u8; 32] = self.mac_state(cells).finalize().into_bytes().into();
        core::array::from_fn(|index| full[index])
    }

    /// Checks the MAC of the whole page.
    ///
    /// # Errors
    /// [`Tampered`].
    pub fn verify(&self, cells: &[u8], tag: &Tag) -> Result<(), Tampered> {
        self.mac_state(cells).verify_truncated_left(&tag[..TAG_BYTES]).map_err(|_| self.tampered())
    }

    fn mac_state(&self, cells: &[u8]) -> Hmac<Sha256> {
        crate::blocks::count_text(cells.len(), 2);
        let mut mac = self.key.mac.clone();
        mac.update(&self.allocation.to_le_bytes());
        mac.update(&self.position.to_le_bytes());
        mac.update(&self.key.epoch.to_le_bytes());
        mac.update(cells);
        mac
    }

    #[cfg(feature = "witness")]
    fn observe(&self, slot: u16) {
        let mut nonce = [0; 14];
        nonce[..8].copy_from_slice(&self.allocation.to_le_bytes());
        nonce[8..12].copy_from_slice(&self.position.to_le_bytes());
        nonce[12..].copy_from_slice(&slot.to_le_bytes());
        crate::witness::observe(self.key.witness, &nonce);
    }

    pub(crate) fn tampered(&self) -> Tampered {
        Tampered { kind: Kind::Cells, allocation: self.allocation, position: self.position }
    }
}

/// `value` times alpha to the power of `slot`, in the field of XTS.
fn times_alpha_to(mut value: u128, slot: u16) -> u128 {
    let mut left = u32::from(slot);
    while left > 0 {
        let by = left.min(64);
        let carry = value >> (128 - by);
        value = value << by ^ carry ^ carry << 1 ^ carry << 2 ^ carry << 7;
        left -= by;
    }
    value
}

/// Trips at the first cell that does not open, and stays tripped until the database is opened again: a forger gets
/// one guess, not as many as there are queries. From then on pages of cells are read as wholes, whose MAC nobody guesses.
#[derive(Debug, Default)]
pub struct CellLatch {
    tripped: AtomicBool,
}

impl CellLatch {
    /// A latch that is not tripped.
    pub const fn new() -> CellLatch {
        CellLatch { tripped: AtomicBool::new(false) }
    }

    /// Whether a cell failed to open.
    pub fn tripped(&self) -> bool {
        self.tripped.load(Ordering::Acquire)
    }

    /// Hands on the answer of [`CellPage::open`] or [`CellPage::verify`], and trips if it is a failure.
    ///
    /// # Errors
    /// The one handed in.
    pub fn watch<T>(&self, answer: Result<T, Tampered>) -> Result<T, Tampered> {
        if answer.is_err() {
            self.tripped.store(true, Ordering::Release);
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DatabaseId, Suite, VolumeKey};

    const EPOCH: Epoch = Epoch { number: 7, salt: [3; 16] };

    fn key(suite: Suite) -> CellKey {
        Vault::new(&VolumeKey::from_bytes(&[1; 32]), DatabaseId([2; 32]), suite).cell_key(&EPOCH)
    }

    #[test]
    fn powers_of_alpha_follow_by_doubling() {
        let mut expected = 0x8123_4567_89ab_cdef_0011_2233_4455_6677_u128;
        let first = expected;
        for slot in 0..2000 {
            assert_eq!(times_alpha_to(first, slot), expected, "slot {slot}");
            let carry = expected >> 127;
            expected = (expected << 1) ^ (carry * 0x87);
        }
    }

    #[test]
    fn a_cell_opens_in_its_slot_alone() {
        for suite in Suite::ALL {
            let key = key(suite);
            let page = key.page(9, 4);
            let cell = page.seal(3, b"ten bytes!");
            assert!(page.open(3, &cell, 10).is_ok_and(|opened| opened.payload() == *b"ten bytes!"));
            assert!(page.open(3, &cell, 8).is_err(), "longer than what was asked for");
            assert!(page.open(4, &cell, 10).is_err());
            assert!(key.page(9, 5).open(3, &cell, 10).is_err());
            assert!(key.page(8, 4).open(3, &cell, 10).is_err());
            assert!(key.page(9, 4).open(3 + 256, &cell, 10).is_err());
        }
    }

    #[test]
    fn a_cell_of_another_epoch_or_database_does_not_open() {
        let cell = key(Suite::Aes256GcmSiv).page(9, 4).seal(3, b"payload");
        let volume_key = VolumeKey::from_bytes(&[1; 32]);
        let ours = Vault::new(&volume_key, DatabaseId([2; 32]), Suite::Aes256GcmSiv);
        let other = Vault::new(&volume_key, DatabaseId([5; 32]), Suite::Aes256GcmSiv);
        for key in [
            ours.cell_key(&Epoch { number: 8, ..EPOCH }),
            ours.cell_key(&Epoch { salt: [4; 16], ..EPOCH }),
            other.cell_key(&EPOCH),
        ] {
            assert!(key.page(9, 4).open(3, &cell, 7).is_err());
        }
    }

    #[test]
    fn every_flipped_bit_of_a_cell_is_caught() {
        let key = key(Suite::Aes128Ocb3);
        let page = key.page(1, 1);
        let cell = page.seal(0, &[0xff; 10]);
        for bit in 0..128 {
            let mut changed = cell;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(page.open(0, &changed, 10).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn the_mac_covers_every_cell_and_its_place() {
        let key = key(Suite::AsconAead128);
        let page = key.page(1, 2);
        let mut cells: [u8; 64] = core::array::from_fn(|index| index as u8);
        let tag = page.mac(&cells);
        page.verify(&cells, &tag).unwrap();
        assert!(key.page(1, 3).verify(&cells, &tag).is_err());
        assert!(key.page(2, 2).verify(&cells, &tag).is_err());
        assert!(page.verify(&cells[..48], &tag).is_err());
        for bit in 0..cells.len() * 8 {
            cells[bit / 8] ^= 1 << (bit % 8);
            assert!(page.verify(&cells, &tag).is_err(), "bit {bit}");
            cells[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn the_latch_trips_once_and_stays() {
        let key = key(Suite::Aes256GcmSiv);
        let page = key.page(1, 2);
        let latch = CellLatch::new();
        assert!(latch.watch(page.open(0, &page.seal(0, b"x"), 1)).is_ok() && !latch.tripped());
        assert!(latch.watch(page.open(1, &page.seal(0, b"x"), 1)).is_err() && latch.tripped());
        assert!(latch.watch(page.open(0, &page.seal(0, b"x"), 1)).is_ok() && latch.tripped());
    }
}
