//! Tokens: random texts that programs show instead of a password.
//!
//! ```text
//! token: cft_ and 64 hex digits: 256 random bits, so that it needs no stretching
//! kept:  SHA-256 of the whole text [32]
//! ```

use core::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use crate::{Entropy, NoEntropy};

const PREFIX: &str = "cft_";
/// Letters and digits of a token.
pub const TOKEN_LETTERS: usize = PREFIX.len() + 64;

/// A token, to be shown once.
pub struct Token(Zeroizing<String>);

impl Token {
    /// Draws a new one.
    ///
    /// # Errors
    /// [`NoEntropy`].
    pub fn generate(entropy: &mut dyn Entropy) -> Result<Token, NoEntropy> {
        let mut bytes = [0; 32];
        entropy.fill(&mut bytes)?;
        let mut text = Zeroizing::new(String::with_capacity(TOKEN_LETTERS));
        text.push_str(PREFIX);
        for nibble in bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]) {
            text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
        bytes.zeroize();
        Ok(Token(text))
    }

    /// The text.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is kept of it.
    pub fn digest(&self) -> TokenDigest {
        TokenDigest::of(self.0.as_bytes())
    }
}

/// What tells a token from others, and does not tell the token.
#[derive(Clone, Copy)]
pub struct TokenDigest(pub [u8; 32]);

impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a digest of a token")
    }
}

impl TokenDigest {
    /// That of what somebody shows.
    pub fn of(shown: &[u8]) -> TokenDigest {
        TokenDigest(Sha256::digest(shown).into())
    }

    /// Whether both are of one token: in a time that does not depend on where they differ.
    pub fn matches(&self, other: &TokenDigest) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DangerFixedEntropy;

    #[test]
    fn a_token_matches_itself_alone() {
        let mut entropy = DangerFixedEntropy::seeded(1);
        let (one, two) = (Token::generate(&mut entropy).unwrap(), Token::generate(&mut entropy).unwrap());
        assert_eq!(one.reveal().len(), TOKEN_LETTERS);
        assert!(one.reveal().starts_with("cft_"));
        assert!(one.digest().matches(&TokenDigest::of(one.reveal().as_bytes())));
        assert!(!one.digest().matches(&two.digest()));
        assert!(!one.digest().matches(&TokenDigest::of(&one.reveal().as_bytes()[1..])));
        // SHA-256 of nothing, so that the kept bytes are those of any other implementation.
        assert_eq!(TokenDigest::of(b"").0[..4], [0xe3, 0xb0, 0xc4, 0x42]);
    }
}
