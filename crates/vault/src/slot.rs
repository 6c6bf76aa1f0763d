//! One slot of the header: the volume key, wrapped under one secret.
//!
//! ```text
//! 0 kind u8 | 1 zero [3] | 4 Argon2id memory KiB u32 | 8 passes u32 | 12 lanes u32 | 16 created u64 | 24 zero [8]
//! 32 salt [32] | 64 wrapped volume key [32] | 96 tag [16] | 112 zero [112]                               = 224 bytes
//! TPM: 112 point that it is shown [64] | 176 pin, which tells it from others [32] | 208 zero [16]
//! ```
//! 1. A slot's salt is drawn anew whenever the slot is written, so no wrapping key wraps twice.
//! 2. Argon2id parameters are bounded before a byte is allocated for them.
//! 3. An empty slot is all zeros.

use core::fmt;

use aead::inout::InOutBuf;
use aead::{AeadInOut, KeyInit, Nonce};
use aes_gcm_siv::Aes256GcmSiv;
use argon2::{Algorithm, Argon2, Params, Version};
use hkdf::Hkdf;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::{DatabaseId, Entropy, FORMAT, HeaderError, RecoveryCode, Secret, TAG_BYTES, VolumeKey};

pub(crate) const SLOT_BYTES: usize = 224;
const SALT: core::ops::Range<usize> = 32..64;
const WRAPPED: core::ops::Range<usize> = 64..96;
const TAG: core::ops::Range<usize> = 96..112;
const POINT: core::ops::Range<usize> = 112..176;
const PIN: core::ops::Range<usize> = 176..208;
const LABEL: &[u8; 16] = b"counterfoil/slot";

/// What opens a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SlotKind {
    /// A passphrase, stretched by Argon2id.
    Passphrase = 1,
    /// A key file.
    KeyFile = 2,
    /// A recovery code.
    Recovery = 3,
    /// A key that one TPM gives out.
    Tpm = 4,
}

impl SlotKind {
    const ALL: [SlotKind; 4] = [SlotKind::Passphrase, SlotKind::KeyFile, SlotKind::Recovery, SlotKind::Tpm];
}

impl fmt::Display for SlotKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SlotKind::Passphrase => "passphrase",
            SlotKind::KeyFile => "key file",
            SlotKind::Recovery => "recovery code",
            SlotKind::Tpm => "tpm",
        })
    }
}

/// What one guess at a passphrase costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgonCost {
    /// Memory, in KiB.
    pub memory_kib: u32,
    /// Passes over it.
    pub passes: u32,
    /// Lanes.
    pub lanes: u32,
}

impl ArgonCost {
    /// What new slots of hosts cost: 64 MiB, 3 passes.
    pub const HOST: ArgonCost = ArgonCost { memory_kib: 64 << 10, passes: 3, lanes: 1 };
    /// The most that is ever spent on a slot: 1 GiB, 16 passes, 8 lanes.
    pub const MAXIMUM: ArgonCost = ArgonCost { memory_kib: 1 << 20, passes: 16, lanes: 8 };
    /// The least that Argon2id can be: for devices.
    pub const MINIMUM: ArgonCost = ArgonCost { memory_kib: 8, passes: 1, lanes: 1 };
    const NONE: ArgonCost = ArgonCost { memory_kib: 0, passes: 0, lanes: 0 };

    /// Whether this lies between `least` and [`ArgonCost::MAXIMUM`], and is possible at all.
    fn acceptable(&self, least: &ArgonCost) -> bool {
        let within = |value: u32, least: u32, most: u32| (least..=most).contains(&value);
        within(self.memory_kib, least.memory_kib, Self::MAXIMUM.memory_kib)
            && within(self.passes, least.passes, Self::MAXIMUM.passes)
            && within(self.lanes, 1, Self::MAXIMUM.lanes)
            && self.memory_kib >= 8 * self.lanes
    }

    fn stretch(&self, passphrase: &[u8], salt: &[u8]) -> Result<Zeroizing<[u8; 32]>, HeaderError> {
        let failed = |_| HeaderError::OutOfMemory { memory_kib: self.memory_kib };
        let parameters = Params::new(self.memory_kib, self.passes, self.lanes, Some(32)).map_err(failed)?;
        let mut stretched = Zeroizing::new([0; 32]);
        Argon2::new(Algorithm::Argon2id, Version::V0x13, parameters)
            .hash_password_into(passphrase, salt, &mut *stretched)
            .map_err(failed)?;
        Ok(stretched)
    }
}

/// A slot that is in use. Its bytes are no secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Slot {
    bytes: [u8; SLOT_BYTES],
    kind: SlotKind,
}

impl Slot {
    /// What opens it.
    pub fn kind(&self) -> SlotKind {
        self.kind
    }

    /// When it was written, in seconds since 1970.
    pub fn created(&self) -> u64 {
        u64::from_le_bytes(self.field(16))
    }

    /// What a guess at its passphrase costs; zeros for other kinds.
    pub fn cost(&self) -> ArgonCost {
        let number = |at| u32::from_le_bytes(self.field(at));
        ArgonCost { memory_kib: number(4), passes: number(8), lanes: number(12) }
    }

    pub(crate) fn bytes(&self) -> &[u8; SLOT_BYTES] {
        &self.bytes
    }

    /// Reads a slot; `None` if it is empty.
    pub(crate) fn decode(bytes: &[u8; SLOT_BYTES]) -> Result<Option<Slot>, HeaderError> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let kind = SlotKind::ALL.into_iter().find(|kind| *kind as u8 == bytes[0]);
        let slot = Slot { bytes: *bytes, kind: kind.ok_or(HeaderError::Corrupt { what: "kind of a key slot" })? };
        let end = if slot.kind == SlotKind::Tpm { PIN.end } else { TAG.end };
        let zeros = [1..4, 24..32, end..SLOT_BYTES];
        if zeros.into_iter().any(|range| bytes[range].iter().any(|byte| *byte != 0)) {
            return Err(HeaderError::Corrupt { what: "unused bytes of a key slot" });
        }
        if slot.kind != SlotKind::Passphrase && slot.cost() != ArgonCost::NONE {
            return Err(HeaderError::Corrupt { what: "cost of a key slot" });
        }
        Ok(Some(slot))
    }

    /// Wraps the volume key under `secret`; `cost` matters for passphrases alone.
    pub(crate) fn wrap(
        secret: &Secret<'_>,
        cost: &ArgonCost,
        volume_key: &VolumeKey,
        id: DatabaseId,
        created: u64,
        entropy: &mut dyn Entropy,
    ) -> Result<Slot, HeaderError> {
        let kind = match secret {
            Secret::Passphrase([]) => return Err(HeaderError::EmptyPassphrase),
            Secret::Passphrase(_) => SlotKind::Passphrase,
            Secret::KeyFile(_) => SlotKind::KeyFile,
            Secret::Recovery(_) => SlotKind::Recovery,
            Secret::Tpm(_) => SlotKind::Tpm,
        };
        let cost = if kind == SlotKind::Passphrase { cost } else { &ArgonCost::NONE };
        let mut slot = Slot { bytes: [0; SLOT_BYTES], kind };
        slot.bytes[0] = kind as u8;
        slot.bytes[4..8].copy_from_slice(&cost.memory_kib.to_le_bytes());
        slot.bytes[8..12].copy_from_slice(&cost.passes.to_le_bytes());
        slot.bytes[12..16].copy_from_slice(&cost.lanes.to_le_bytes());
        slot.bytes[16..24].copy_from_slice(&created.to_le_bytes());
        entropy.fill(&mut slot.bytes[SALT])?;
        let key = match secret {
            Secret::Tpm(keeper) => {
                let kept = keeper.make(&keeper_purpose(id))?;
                slot.bytes[POINT].copy_from_slice(&kept.point);
                slot.bytes[PIN].copy_from_slice(&kept.pin);
                slot.expand_kept(&kept.secret, id)
            }
            _ => slot.wrapping_key(secret, id, &ArgonCost::MINIMUM)?.ok_or(HeaderError::EmptyPassphrase)?,
        };
        #[cfg(feature = "witness")]
        crate::witness::observe(crate::witness::key_digest(&*key), &[]);
        let mut wrapped = Zeroizing::new(*volume_key.expose());
        let sealed = Aes256GcmSiv::new(&(*key).into()).encrypt_inout_detached(
            &Nonce::<Aes256GcmSiv>::default(),
            &slot.associated(id),
            InOutBuf::from(&mut wrapped[..]),
        );
        let Ok(tag) = sealed else { panic!("a volume key is never too long for its suite") };
        slot.bytes[WRAPPED].copy_from_slice(&*wrapped);
        slot.bytes[TAG].copy_from_slice(&tag);
        Ok(slot)
    }

    /// The volume key, if `secret` opens this slot; `None` if it does not.
    ///
    /// `least` is what a passphrase must cost here at least.
    pub(crate) fn unwrap(
        &self,
        secret: &Secret<'_>,
        id: DatabaseId,
        least: &ArgonCost,
    ) -> Result<Option<VolumeKey>, HeaderError> {
        let Some(key) = self.wrapping_key(secret, id, least)? else { return Ok(None) };
        let mut text = Zeroizing::new(self.field::<32>(WRAPPED.start));
        let opened = Aes256GcmSiv::new(&(*key).into()).decrypt_inout_detached(
            &Nonce::<Aes256GcmSiv>::default(),
            &self.associated(id),
            InOutBuf::from(&mut text[..]),
            &self.field::<TAG_BYTES>(TAG.start).into(),
        );
        Ok(opened.is_ok().then(|| VolumeKey::from_bytes(&text)))
    }

    /// The key that wraps the volume key; `None` if this secret is not of this slot's kind.
    fn wrapping_key(
        &self,
        secret: &Secret<'_>,
        id: DatabaseId,
        least: &ArgonCost,
    ) -> Result<Option<Zeroizing<[u8; 32]>>, HeaderError> {
        match (self.kind, secret) {
            (SlotKind::Passphrase, Secret::Passphrase(passphrase)) => {
                let cost = self.cost();
                if !cost.acceptable(least) {
                    return Err(HeaderError::Cost { cost });
                }
                let stretched = cost.stretch(passphrase, &self.bytes[SALT])?;
                Ok(Some(self.expand(&*stretched, id)))
            }
            (SlotKind::KeyFile, Secret::KeyFile(key)) => Ok(Some(self.expand(key.expose(), id))),
            (SlotKind::Recovery, Secret::Recovery(code)) => Ok(Some(self.expand(code.expose(), id))),
            (SlotKind::Tpm, Secret::Tpm(keeper)) => {
                let found = keeper.find(&keeper_purpose(id), &self.field(POINT.start), &self.field(PIN.start))?;
                Ok(found.map(|secret| self.expand_kept(&secret, id)))
            }
            (SlotKind::Recovery, Secret::Passphrase(typed)) => {
                let code = core::str::from_utf8(typed).ok().and_then(|typed| RecoveryCode::parse(typed).ok());
                Ok(code.map(|code| self.expand(code.expose(), id)))
            }
            _ => Ok(None),
        }
    }

    /// `HKDF(secret, salt = the slot's, info = label || kind || format || database id)`.
    fn expand(&self, secret: &[u8], id: DatabaseId) -> Zeroizing<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        let info: [&[u8]; 4] = [LABEL, &[self.kind as u8], &FORMAT.to_le_bytes(), &id.0];
        let expanded = Hkdf::<Sha256>::new(Some(&self.bytes[SALT]), secret).expand_multi_info(&info, &mut *key);
        assert!(expanded.is_ok(), "HKDF-SHA-256 gives up to 8160 bytes");
        key
    }

    /// The same of what a TPM gives out, with what it was shown for it: neither can be another one.
    fn expand_kept(&self, secret: &[u8; 32], id: DatabaseId) -> Zeroizing<[u8; 32]> {
        let mut all = Zeroizing::new([0; 128]);
        all[..32].copy_from_slice(secret);
        all[32..].copy_from_slice(&self.bytes[POINT.start..PIN.end]);
        self.expand(&*all, id)
    }

    /// All of the slot before the wrapped key, and the database: a slot carried elsewhere does not open.
    fn associated(&self, id: DatabaseId) -> [u8; 96] {
        let mut bytes = [0; 96];
        bytes[..64].copy_from_slice(&self.bytes[..64]);
        bytes[64..].copy_from_slice(&id.0);
        bytes
    }

    fn field<const BYTES: usize>(&self, at: usize) -> [u8; BYTES] {
        let mut field = [0; BYTES];
        field.copy_from_slice(&self.bytes[at..at + BYTES]);
        field
    }
}

/// What a TPM makes its keys from: those of two databases are two.
fn keeper_purpose(id: DatabaseId) -> [u8; 32] {
    Sha256::new().chain_update(b"counterfoil/tpm/slot\0").chain_update(id.0).finalize().into()
}
