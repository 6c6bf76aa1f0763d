//! The five page ciphers, under the numbers and names that stand in headers and on command lines.

use core::fmt;

use crate::CounterKind;

/// The table of suites: the feature that brings one, which is also its name; its number; the bytes of its page keys.
macro_rules! suites {
    ($($(#[$page:meta])* $name:literal: $suite:ident = $number:literal, $key_bytes:literal;)*) => {
        /// A page cipher. The number is what the header holds (SPEC, "vault: suites"). A build without `std` has those
        /// whose features it asked for, and cannot name the others.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Suite {
            $($(#[$page])* #[cfg(feature = $name)] $suite = $number,)*
        }

        impl Suite {
            /// All suites of this build, in the order of their numbers.
            pub const ALL: [Suite; 0 $(+ cfg!(feature = $name) as usize)*] =
                [$(#[cfg(feature = $name)] Suite::$suite,)*];

            /// The name on command lines.
            pub fn name(self) -> &'static str {
                match self {
                    $(#[cfg(feature = $name)] Suite::$suite => $name,)*
                }
            }

            /// Bytes of a page key.
            pub fn key_bytes(self) -> usize {
                match self {
                    $(#[cfg(feature = $name)] Suite::$suite => $key_bytes,)*
                }
            }
        }
    };
}

suites! {
    /// AES-256-GCM-SIV (RFC 8452): the default of hosts, and the one whose nonces may repeat at a bounded price.
    "aes-256-gcm-siv": Aes256GcmSiv = 1, 32;
    /// AES-256-GCM (NIST SP 800-38D).
    "aes-256-gcm": Aes256Gcm = 2, 32;
    /// ChaCha20-Poly1305 (RFC 8439).
    "chacha20-poly1305": ChaCha20Poly1305 = 3, 32;
    /// Ascon-AEAD128 (NIST SP 800-232): devices without an AES engine.
    "ascon-aead128": AsconAead128 = 4, 16;
    /// AES-128-OCB3 (RFC 7253): devices with an AES engine.
    "aes-128-ocb3": Aes128Ocb3 = 5, 16;
}

impl Suite {
    /// The number in the header.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The suite with this number, if there is one.
    pub fn from_number(number: u8) -> Option<Suite> {
        Suite::ALL.into_iter().find(|suite| suite.number() == number)
    }

    /// The suite with this name, if there is one.
    pub fn from_name(name: &str) -> Option<Suite> {
        Suite::ALL.into_iter().find(|suite| suite.name() == name)
    }

    /// Whether two pages sealed under one key and nonce give away no more than whether they are equal.
    pub fn resists_misuse(self) -> bool {
        // By its number: AES-256-GCM-SIV may not be there to be named.
        self.number() == 1
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
