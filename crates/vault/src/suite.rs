//! The five page ciphers, under the numbers and names that stand in headers and on command lines.

use core::fmt;

use crate::CounterKind;

/// A page cipher. The number is what the header holds (SPEC, "vault: suites").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Suite {
    /// AES-256-GCM-SIV (RFC 8452): the default of hosts, and the one whose nonces may repeat at a bounded price.
    Aes256GcmSiv = 1,
    /// AES-256-GCM (NIST SP 800-38D).
    Aes256Gcm = 2,
    /// ChaCha20-Poly1305 (RFC 8439).
    ChaCha20Poly1305 = 3,
    /// Ascon-AEAD128 (NIST SP 800-232): devices without an AES engine.
    AsconAead128 = 4,
    /// AES-128-OCB3 (RFC 7253): devices with an AES engine.
    Aes128Ocb3 = 5,
}

impl Suite {
    /// All suites, in the order of their numbers.
    pub const ALL: [Suite; 5] =
        [Suite::Aes256GcmSiv, Suite::Aes256Gcm, Suite::ChaCha20Poly1305, Suite::AsconAead128, Suite::Aes128Ocb3];

    /// The number in the header.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The suite with this number, if there is one.
    pub fn from_number(number: u8) -> Option<Suite> {
        Suite::ALL.into_iter().find(|suite| suite.number() == number)
    }

    /// The name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Suite::Aes256GcmSiv => "aes-256-gcm-siv",
            Suite::Aes256Gcm => "aes-256-gcm",
            Suite::ChaCha20Poly1305 => "chacha20-poly1305",
            Suite::AsconAead128 => "ascon-aead128",
            Suite::Aes128Ocb3 => "aes-128-ocb3",
        }
    }

    /// The suite with this name, if there is one.
    pub fn from_name(name: &str) -> Option<Suite> {
        Suite::ALL.into_iter().find(|suite| suite.name() == name)
    }

    /// Bytes of a page key.
    pub fn key_bytes(self) -> usize {
        match self {
            Suite::Aes256GcmSiv | Suite::Aes256Gcm | Suite::ChaCha20Poly1305 => 32,
            Suite::AsconAead128 | Suite::Aes128Ocb3 => 16,
        }
    }

    /// Whether two pages sealed under one key and nonce give away no more than whether they are equal.
    pub fn resists_misuse(self) -> bool {
        self == Suite::Aes256GcmSiv
    }

    /// Whether this suite may be used with this counter on a machine with or without a random generator: where
    /// neither tells one life of a database from another, only the suite that survives repeated nonces may.
    pub fn allowed(self, counter: CounterKind, generator: bool) -> bool {
        generator || counter != CounterKind::None || self.resists_misuse()
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_lead_back() {
        for suite in Suite::ALL {
            assert_eq!(Suite::from_name(suite.name()), Some(suite));
            assert_eq!(Suite::from_number(suite.number()), Some(suite));
        }
        assert_eq!(Suite::from_number(0), None);
        assert_eq!(Suite::from_number(6), None);
        assert_eq!(Suite::from_name("aes-256-cbc"), None);
    }

    #[test]
    fn without_counter_and_generator_only_the_misuse_resistant_suite() {
        for suite in Suite::ALL {
            assert_eq!(suite.allowed(CounterKind::None, false), suite == Suite::Aes256GcmSiv);
            assert!(suite.allowed(CounterKind::None, true));
            assert!(suite.allowed(CounterKind::Nor, false));
        }
    }
}
