//! What is kept of a user's password: a verifier of SCRAM-SHA-256 (RFC 5802, RFC 7677), from which the password cannot be read.
//!
//! ```text
//! 0 iterations u32 | 4 salt [16] | 20 stored key [32] | 52 server key [32]                        = 84 bytes
//! salted password = PBKDF2-HMAC-SHA-256(password, salt, iterations)
//! stored key = SHA-256(HMAC(salted password, "Client Key"));  server key = HMAC(salted password, "Server Key")
//! ```
//! 1. A salt is drawn anew for every verifier, so that equal passwords do not look equal.
//! 2. How long a check takes does not depend on where two keys differ.
//! 3. Iterations are bounded before they are counted: a verifier that was read cannot take a processor for ever.
//!
//! Passwords are bytes here: whoever calls has prepared them by SASLprep, as SCRAM wants.

use core::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::{Entropy, NoEntropy};

/// Bytes of a verifier.
pub const PASSWORD_VERIFIER_BYTES: usize = 84;
/// Iterations of new verifiers: a guess, and a check, costs as many.
pub const PASSWORD_ITERATIONS: u32 = 15_000;
/// The least that RFC 7677 allows, and the most that is counted.
const ITERATIONS_MIN: u32 = 4096;
const ITERATIONS_MAX: u32 = 10_000_000;
const SALT_BYTES: usize = 16;
const KEY_BYTES: usize = 32;

/// What tells the right password from others. It is a secret of its own: whoever has it can guess at leisure, and pose as
/// the server.
#[derive(Clone)]
pub struct PasswordVerifier {
    iterations: u32,
    salt: [u8; SALT_BYTES],
    stored_key: Zeroizing<[u8; KEY_BYTES]>,
    server_key: Zeroizing<[u8; KEY_BYTES]>,
}

impl fmt::Debug for PasswordVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a verifier of a password")
    }
}

impl PasswordVerifier {
    /// That of a password, with a salt of its own.
    ///
    /// # Errors
    /// [`NoEntropy`].
    pub fn new(password: &[u8], entropy: &mut dyn Entropy) -> Result<PasswordVerifier, NoEntropy> {
        let mut salt = [0; SALT_BYTES];
        entropy.fill(&mut salt)?;
        Ok(PasswordVerifier::derive(password, salt, PASSWORD_ITERATIONS))
    }

    fn derive(password: &[u8], salt: [u8; SALT_BYTES], iterations: u32) -> PasswordVerifier {
        let mut salted = Zeroizing::new([0; KEY_BYTES]);
        pbkdf2::pbkdf2_hmac::<Sha256>(password, &salt, iterations, &mut *salted);
        let client_key = mac(&salted, b"Client Key");
        let stored_key = Zeroizing::new(Sha256::digest(client_key.as_slice()).into());
        PasswordVerifier { iterations, salt, stored_key, server_key: mac(&salted, b"Server Key") }
    }

    /// Whether this is the password. Takes as long for a wrong one.
    pub fn accepts(&self, password: &[u8]) -> bool {
        let offered = PasswordVerifier::derive(password, self.salt, self.iterations);
        self.stored_key.ct_eq(&*offered.stored_key).into()
    }

    /// That of a user whom nobody is: no password is right. Whoever asks for the same name with the same secret is shown
    /// the same salt, as for a user who exists.
    pub fn nobodys(name: &[u8], secret: &[u8; KEY_BYTES]) -> PasswordVerifier {
        let derive = |what: &[u8]| mac(&mac(secret, what), name);
        let salt = array(&*derive(b"salt"), 0);
        let (stored_key, server_key) = (derive(b"stored key"), derive(b"server key"));
        PasswordVerifier { iterations: PASSWORD_ITERATIONS, salt, stored_key, server_key }
    }

    /// The salt that a client of SCRAM is shown.
    pub fn salt(&self) -> [u8; SALT_BYTES] {
        self.salt
    }

    /// The iterations that a client of SCRAM is shown.
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// What a server of SCRAM answers to the right proof (RFC 5802, section 3), none to a wrong one: `exchange` is the
    /// AuthMessage.
    pub fn signature(&self, exchange: &[u8], proof: &[u8; KEY_BYTES]) -> Option<[u8; KEY_BYTES]> {
        let signature = mac(&self.stored_key, exchange);
        let client_key = Zeroizing::new(core::array::from_fn::<u8, KEY_BYTES, _>(|at| proof[at] ^ signature[at]));
        let offered = Zeroizing::new(<[u8; KEY_BYTES]>::from(Sha256::digest(client_key.as_slice())));
        bool::from(self.stored_key.ct_eq(&*offered)).then(|| *mac(&self.server_key, exchange))
    }

    /// The bytes to keep, in a place where nobody can read them.
    pub fn encode(&self) -> Zeroizing<[u8; PASSWORD_VERIFIER_BYTES]> {
        let mut bytes = Zeroizing::new([0; PASSWORD_VERIFIER_BYTES]);
        bytes[..4].copy_from_slice(&self.iterations.to_le_bytes());
        bytes[4..20].copy_from_slice(&self.salt);
        bytes[20..52].copy_from_slice(&*self.stored_key);
        bytes[52..].copy_from_slice(&*self.server_key);
        bytes
    }

    /// What [`PasswordVerifier::encode`] wrote; none for iterations that no verifier has.
    pub fn decode(bytes: &[u8; PASSWORD_VERIFIER_BYTES]) -> Option<PasswordVerifier> {
        let iterations = u32::from_le_bytes(array(bytes, 0));
        (ITERATIONS_MIN..=ITERATIONS_MAX).contains(&iterations).then(|| PasswordVerifier {
            iterations,
            salt: array(bytes, 4),
            stored_key: Zeroizing::new(array(bytes, 20)),
            server_key: Zeroizing::new(array(bytes, 52)),
        })
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    core::array::from_fn(|index| bytes[at + index])
}

fn mac(key: &[u8; KEY_BYTES], text: &[u8]) -> Zeroizing<[u8; KEY_BYTES]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(text);
    Zeroizing::new(mac.finalize().into_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DangerFixedEntropy;

    /// RFC 7677, section 3: user "user", password "pencil", salt W22ZaJ0SNY7soEsUEjb6gQ==, 4096 iterations.
    #[test]
    fn the_example_of_rfc_7677() {
        let salt = [0x5b, 0x6d, 0x99, 0x68, 0x9d, 0x12, 0x35, 0x8e, 0xec, 0xa0, 0x4b, 0x14, 0x12, 0x36, 0xfa, 0x81];
        let verifier = PasswordVerifier::derive(b"pencil", salt, 4096);
        let exchange = b"n=user,r=rOprNGfwEbeRWgbNEkqO,\
            r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,\
            c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        // v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=
        let server = [
            0xea, 0xba, 0xe2, 0x4d, 0x10, 0x62, 0xdb, 0x75, 0xa9, 0x45, 0x1f, 0xf0, 0xb6, 0xea, 0x7e, 0x98, 0xc8, 0x54,
            0x65, 0x49, 0xff, 0x74, 0x1e, 0x67, 0x2d, 0x32, 0x51, 0xb2, 0x39, 0x7d, 0xe4, 0x6e,
        ];
        // p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=
        let proof = [
            0x74, 0x7c, 0xdb, 0x65, 0xaa, 0x56, 0x22, 0x4e, 0x23, 0x52, 0x13, 0x7e, 0x52, 0xd7, 0xbd, 0xca, 0xd6, 0xa0,
            0xf7, 0x38, 0xdf, 0x30, 0x78, 0x2c, 0xaa, 0x69, 0xa2, 0xcf, 0xb0, 0x27, 0x75, 0x54,
        ];
        assert_eq!(verifier.signature(exchange, &proof), Some(server));
        assert_eq!(verifier.signature(&exchange[1..], &proof), None);
        for bit in 0..256 {
            let mut wrong = proof;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(verifier.signature(exchange, &wrong), None, "bit {bit}");
        }
    }

    #[test]
    fn nobody_is_shown_the_same_salt_and_has_no_password() {
        let of = |name: &str, secret| PasswordVerifier::nobodys(name.as_bytes(), &[secret; 32]);
        assert_eq!(of("eve", 1).salt(), of("eve", 1).salt());
        assert_ne!(of("eve", 1).salt(), of("bob", 1).salt());
        assert_ne!(of("eve", 1).salt(), of("eve", 2).salt());
        assert_eq!(of("eve", 1).iterations(), PASSWORD_ITERATIONS);
        for password in ["", "eve", "password"] {
            assert!(!of("eve", 1).accepts(password.as_bytes()));
        }
    }

    #[test]
    fn the_right_password_is_accepted_and_no_other() {
        let mut entropy = DangerFixedEntropy::seeded(1);
        let verifier = PasswordVerifier::new("käse".as_bytes(), &mut entropy).unwrap();
        let kept = PasswordVerifier::decode(&verifier.encode()).unwrap();
        assert!(kept.accepts("käse".as_bytes()));
        for wrong in ["", "kase", "käse ", "Käse"] {
            assert!(!kept.accepts(wrong.as_bytes()), "{wrong}");
        }
        let again = PasswordVerifier::new("käse".as_bytes(), &mut entropy).unwrap();
        assert_ne!(*again.encode(), *verifier.encode(), "the same password, another salt");
        assert_eq!(format!("{verifier:?}"), "a verifier of a password");
    }

    #[test]
    fn iterations_are_bounded() {
        let mut entropy = DangerFixedEntropy::seeded(1);
        let verifier = PasswordVerifier::new(b"x", &mut entropy).unwrap().encode();
        for wrong in [0, 1, ITERATIONS_MIN - 1, ITERATIONS_MAX + 1, u32::MAX] {
            let mut bytes = verifier.clone();
            bytes[..4].copy_from_slice(&wrong.to_le_bytes());
            assert!(PasswordVerifier::decode(&bytes).is_none(), "{wrong}");
        }
    }
}
