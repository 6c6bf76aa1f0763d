//! Random bytes.

use core::fmt;

use sha2::{Digest, Sha256};
use zeroize::Zeroize;

/// A source of unpredictable bytes.
pub trait Entropy {
    /// Fills `bytes`, or leaves them unusable and says so.
    ///
    /// # Errors
    /// [`NoEntropy`] when the source has nothing to give.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoEntropy>;
}

/// The source of random bytes failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoEntropy;

impl fmt::Display for NoEntropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the source of random numbers failed")
    }
}

impl core::error::Error for NoEntropy {}

/// The operating system's generator.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

#[cfg(feature = "std")]
impl Entropy for SystemEntropy {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        getrandom::fill(bytes).map_err(|_| NoEntropy)
    }
}

/// **Danger: predictable.** The same bytes for the same seed, for tests that must be repeatable.
#[derive(Clone)]
pub struct DangerFixedEntropy {
    seed: [u8; 32],
    block: u64,
}

impl DangerFixedEntropy {
    /// A stream of bytes that depends on `seed` alone.
    pub fn seeded(seed: u64) -> DangerFixedEntropy {
        let mut wide = [0; 32];
        wide[..8].copy_from_slice(&seed.to_le_bytes());
        DangerFixedEntropy { seed: wide, block: 0 }
    }
}

impl Entropy for DangerFixedEntropy {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        for part in bytes.chunks_mut(32) {
            let mut block: [u8; 32] =
                Sha256::new().chain_update(self.seed).chain_update(self.block.to_le_bytes()).finalize().into();
            self.block += 1;
            part.copy_from_slice(&block[..part.len()]);
            block.zeroize();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_two_seeds_differ() {
        let draw = |seed| {
            let mut bytes = [0; 80];
            DangerFixedEntropy::seeded(seed).fill(&mut bytes).unwrap();
            bytes
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_ne!(draw(1)[..32], draw(1)[32..64]);
    }

    #[cfg(feature = "std")]
    #[test]
    fn the_system_gives_different_bytes() {
        let (mut one, mut two) = ([0; 32], [0; 32]);
        SystemEntropy.fill(&mut one).unwrap();
        SystemEntropy.fill(&mut two).unwrap();
        assert_ne!(one, two);
    }
}
