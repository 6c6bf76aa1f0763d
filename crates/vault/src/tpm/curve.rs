//! Agreeing on a secret with a key of a TPM, on the curve P-256.

use std::vec::Vec;

use p256::{PublicKey, SecretKey};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::wire::{Reader, Writer};
use crate::{Entropy, SystemEntropy, TpmError};

/// Bytes of a coordinate.
pub(super) const COORDINATE_BYTES: usize = 32;

/// What the TPM can find out too: the shared point's first coordinate, and what it needs for that.
pub(super) struct Agreed {
    /// Ours, made for this once: both coordinates.
    pub(super) ours: [u8; 2 * COORDINATE_BYTES],
    theirs: [u8; COORDINATE_BYTES],
    pub(super) secret: Zeroizing<[u8; COORDINATE_BYTES]>,
}

impl Agreed {
    /// Draws a key for this once and agrees with the holder of `theirs`.
    pub(super) fn with(theirs: &PublicKey) -> Result<Agreed, TpmError> {
        let own = draw()?;
        let shared = own.diffie_hellman(theirs);
        let mut secret = Zeroizing::new([0; COORDINATE_BYTES]);
        secret.copy_from_slice(shared.raw_secret_bytes());
        let coordinates = coordinates(theirs);
        let mut first = [0; COORDINATE_BYTES];
        first.copy_from_slice(&coordinates[..COORDINATE_BYTES]);
        Ok(Agreed { ours: self::coordinates(&own.public_key()), theirs: first, secret })
    }

    /// Our point as a TPM reads it.
    pub(super) fn point(&self) -> Vec<u8> {
        point_bytes(&self.ours)
    }

    /// The salt of a session: KDFe, part 1, 11.4.10.3.
    pub(super) fn salt(&self) -> Zeroizing<[u8; 32]> {
        let hash = Sha256::new().chain_update(1_u32.to_be_bytes()).chain_update(&self.secret[..]);
        let hash = hash.chain_update(b"SECRET\0").chain_update(&self.ours[..COORDINATE_BYTES]);
        Zeroizing::new(hash.chain_update(self.theirs).finalize().into())
    }
}

fn draw() -> Result<SecretKey, TpmError> {
    let mut bytes = Zeroizing::new([0; COORDINATE_BYTES]);
    loop {
        SystemEntropy.fill(&mut *bytes).map_err(|_| TpmError::NoEntropy)?;
        // One number in 2^32 is not below the order of the curve.
        if let Ok(key) = SecretKey::from_slice(&*bytes) {
            return Ok(key);
        }
    }
}

fn coordinates(key: &PublicKey) -> [u8; 2 * COORDINATE_BYTES] {
    let bytes = key.to_sec1_bytes();
    let Some(coordinates) = bytes.last_chunk().filter(|_| bytes.len() == 65) else {
        panic!("a point of P-256 has two coordinates of 32 bytes")
    };
    *coordinates
}

/// A point as a TPM reads it: each coordinate after its length.
pub(super) fn point_bytes(coordinates: &[u8; 2 * COORDINATE_BYTES]) -> Vec<u8> {
    let (first, second) = coordinates.split_at(COORDINATE_BYTES);
    Writer::new().sized(first).sized(second).finish().to_vec()
}

/// Reads a point that must lie on the curve. A TPM may leave zeros in front away.
pub(super) fn read_point(reader: &mut Reader<'_>) -> Result<PublicKey, TpmError> {
    let mut bytes = Zeroizing::new([0; 1 + 2 * COORDINATE_BYTES]);
    bytes[0] = 4;
    for coordinate in bytes[1..].as_chunks_mut::<COORDINATE_BYTES>().0 {
        let found = reader.sized()?;
        let at = COORDINATE_BYTES.checked_sub(found.len()).ok_or(reader.malformed())?;
        coordinate[at..].copy_from_slice(found);
    }
    PublicKey::from_sec1_bytes(&*bytes).map_err(|_| reader.malformed())
}

/// The first coordinate of a point that is a secret.
pub(super) fn first_coordinate(point: &PublicKey) -> Zeroizing<[u8; COORDINATE_BYTES]> {
    let all = Zeroizing::new(coordinates(point));
    let mut first = Zeroizing::new([0; COORDINATE_BYTES]);
    first.copy_from_slice(&all[..COORDINATE_BYTES]);
    first
}
