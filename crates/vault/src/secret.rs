//! What opens a slot: a passphrase, a key file, a recovery code.
//!
//! ```text
//! key file:       32 bytes, or 64 hex digits with an optional newline
//! recovery code:  20 random bytes and 20 bits of their SHA-256, as 36 letters in 6 groups
//!                 7K2Q9M-4TXW0C-...    (digits and letters without I, L, O, U; case and hyphens do not matter)
//! ```

use alloc::string::String;
use core::fmt;

use sha2::{Digest, Sha256};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::{Entropy, KeyKeeper, NoEntropy};

/// Something a person, a file or a machine offers to open a slot, or to make one with.
#[derive(Clone, Copy)]
pub enum Secret<'a> {
    /// The bytes of a passphrase, stretched by Argon2id. Also tried as a recovery code if it is written like one.
    Passphrase(&'a [u8]),
    /// A key file.
    KeyFile(&'a KeyFile),
    /// A recovery code.
    Recovery(&'a RecoveryCode),
    /// What gives a key out again: a TPM.
    Tpm(&'a dyn KeyKeeper),
}

/// The contents of a key file.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct KeyFile([u8; 32]);

/// Why bytes are not a key file, or a text not a recovery code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecretError {
    /// A key file has 32 bytes or 64 hex digits.
    KeyFileLength {
        /// Bytes there are.
        bytes: usize,
    },
    /// 64 bytes that are not all hex digits.
    KeyFileDigit,
    /// A recovery code has 36 letters and digits.
    CodeLength {
        /// Letters and digits there are.
        letters: usize,
    },
    /// A letter that no recovery code contains.
    CodeLetter {
        /// Its place, from 1, hyphens and spaces not counted.
        place: usize,
    },
    /// All letters are possible, and one of them is wrong.
    CodeChecksum,
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretError::KeyFileLength { bytes } => {
                write!(f, "a key file has exactly 32 bytes, or 64 hex digits; this one has {bytes} bytes")
            }
            SecretError::KeyFileDigit => f.write_str("a key file of 64 characters holds hex digits only"),
            SecretError::CodeLength { letters } => {
                write!(f, "a recovery code has {CODE_LETTERS} letters and digits; this one has {letters}")
            }
            SecretError::CodeLetter { place } => write!(f, "character {place} of the recovery code is not possible"),
            SecretError::CodeChecksum => f.write_str("the recovery code has a typing mistake"),
        }
    }
}

impl core::error::Error for SecretError {}

impl KeyFile {
    /// Draws a new one.
    ///
    /// # Errors
    /// [`NoEntropy`].
    pub fn generate(entropy: &mut dyn Entropy) -> Result<KeyFile, NoEntropy> {
        let mut key = KeyFile([0; 32]);
        entropy.fill(&mut key.0)?;
        Ok(key)
    }

    /// Understands the contents of a file.
    ///
    /// # Errors
    /// [`SecretError::KeyFileLength`], [`SecretError::KeyFileDigit`].
    pub fn parse(contents: &[u8]) -> Result<KeyFile, SecretError> {
        if let Ok(bytes) = <[u8; 32]>::try_from(contents) {
            return Ok(KeyFile(bytes));
        }
        let digits = contents.strip_suffix(b"\n").unwrap_or(contents);
        let digits = digits.strip_suffix(b"\r").unwrap_or(digits);
        if digits.len() != 64 {
            return Err(SecretError::KeyFileLength { bytes: contents.len() });
        }
        let mut key = KeyFile([0; 32]);
        for (byte, pair) in key.0.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = (hex_digit(pair[0])? << 4) | hex_digit(pair[1])?;
        }
        Ok(key)
    }

    /// The secret itself, for whoever writes the file.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    /// 64 hex digits, for a file that people can look at.
    pub fn hex(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(64));
        for nibble in self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]) {
            text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
        text
    }
}

fn hex_digit(digit: u8) -> Result<u8, SecretError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        b'A'..=b'F' => Ok(digit - b'A' + 10),
        _ => Err(SecretError::KeyFileDigit),
    }
}

/// Crockford's base 32: no I, L, O or U.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const CODE_BYTES: usize = 20;
const CODE_LETTERS: usize = 36;
const GROUP_LETTERS: usize = 6;

/// A code for paper: 160 random bits, so that it needs no stretching, and a checksum against typing mistakes.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct RecoveryCode([u8; CODE_BYTES]);

impl RecoveryCode {
    /// Draws a new one.
    ///
    /// # Errors
    /// [`NoEntropy`].
    pub fn generate(entropy: &mut dyn Entropy) -> Result<RecoveryCode, NoEntropy> {
        let mut code = RecoveryCode([0; CODE_BYTES]);
        entropy.fill(&mut code.0)?;
        Ok(code)
    }

    /// Understands what a person typed: case, hyphens and spaces do not matter, O is 0, I and L are 1.
    ///
    /// # Errors
    /// [`SecretError::CodeLength`], [`SecretError::CodeLetter`], [`SecretError::CodeChecksum`].
    pub fn parse(text: &str) -> Result<RecoveryCode, SecretError> {
        let letters = || text.chars().filter(|letter| *letter != '-' && !letter.is_whitespace());
        let count = letters().count();
        if count != CODE_LETTERS {
            return Err(SecretError::CodeLength { letters: count });
        }
        let mut bits = Bits::default();
        for (index, letter) in letters().enumerate() {
            let value = letter_value(letter).ok_or(SecretError::CodeLetter { place: index + 1 })?;
            bits.push(index, value);
        }
        let (code, checksum) = bits.split();
        if checksum != code.checksum() {
            return Err(SecretError::CodeChecksum);
        }
        Ok(code)
    }

    /// The code as it is printed.
    pub fn text(&self) -> Zeroizing<String> {
        let mut bytes = Zeroizing::new([0; CODE_BYTES + 3]);
        bytes[..CODE_BYTES].copy_from_slice(&self.0);
        // 20 bits of checksum, and 4 bits that no letter covers.
        bytes[CODE_BYTES..].copy_from_slice(&(self.checksum() << 4).to_be_bytes()[1..]);
        let mut text = Zeroizing::new(String::with_capacity(CODE_LETTERS + CODE_LETTERS / GROUP_LETTERS));
        for index in 0..CODE_LETTERS {
            if index > 0 && index % GROUP_LETTERS == 0 {
                text.push('-');
            }
            text.push(char::from(ALPHABET[usize::from(five_bits(&*bytes, index))]));
        }
        text
    }

    pub(crate) fn expose(&self) -> &[u8; CODE_BYTES] {
        &self.0
    }

    /// The first 20 bits of a hash of the code.
    fn checksum(&self) -> u32 {
        let digest = Sha256::new().chain_update(b"counterfoil/code").chain_update(self.0).finalize();
        u32::from_be_bytes([0, digest[0], digest[1], digest[2]]) >> 4
    }
}

/// The letters of a code, put back together.
#[derive(Zeroize, ZeroizeOnDrop, Default)]
struct Bits([u8; CODE_BYTES + 3]);

impl Bits {
    fn push(&mut self, index: usize, value: u8) {
        for bit in 0..5 {
            let at = index * 5 + bit;
            self.0[at / 8] |= ((value >> (4 - bit)) & 1) << (7 - at % 8);
        }
    }

    fn split(&self) -> (RecoveryCode, u32) {
        let mut code = RecoveryCode([0; CODE_BYTES]);
        code.0.copy_from_slice(&self.0[..CODE_BYTES]);
        let [.., high, middle, low] = self.0;
        (code, u32::from_be_bytes([0, high, middle, low]) >> 4)
    }
}

fn five_bits(bytes: &[u8], index: usize) -> u8 {
    (0..5).fold(0, |value, bit| {
        let at = index * 5 + bit;
        value << 1 | (bytes[at / 8] >> (7 - at % 8)) & 1
    })
}

fn letter_value(letter: char) -> Option<u8> {
    let letter = match letter.to_ascii_uppercase() {
        'O' => '0',
        'I' | 'L' => '1',
        other => other,
    };
    let position = ALPHABET.iter().position(|known| char::from(*known) == letter)?;
    u8::try_from(position).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DangerFixedEntropy;

    fn code() -> RecoveryCode {
        RecoveryCode::generate(&mut DangerFixedEntropy::seeded(1)).unwrap()
    }

    #[test]
    fn a_code_survives_being_written_down() {
        let code = code();
        let text = code.text();
        assert_eq!(text.len(), 41);
        let sloppy = text.to_lowercase().replace('-', " ").replace('0', "o").replace('1', "l");
        for typed in [text.as_str(), &sloppy] {
            assert!(RecoveryCode::parse(typed).is_ok_and(|parsed| parsed.0 == code.0));
        }
    }

    #[test]
    fn every_single_typing_mistake_is_noticed() {
        let text = code().text();
        for place in 0..text.len() {
            for letter in ALPHABET.iter().map(|letter| char::from(*letter)) {
                let mut typed = String::from(text.as_str());
                if typed.as_bytes()[place] != b'-' && !typed[place..].starts_with(letter) {
                    typed.replace_range(place..=place, letter.encode_utf8(&mut [0; 4]));
                    assert_eq!(RecoveryCode::parse(&typed).err(), Some(SecretError::CodeChecksum));
                }
            }
        }
        assert_eq!(RecoveryCode::parse("U234").err(), Some(SecretError::CodeLength { letters: 4 }));
        let impossible = text.replacen(|letter: char| letter != '-', "U", 1);
        assert_eq!(RecoveryCode::parse(&impossible).err(), Some(SecretError::CodeLetter { place: 1 }));
        assert_eq!(RecoveryCode::parse("").err(), Some(SecretError::CodeLength { letters: 0 }));
        assert!(RecoveryCode::parse(&"\u{fffd}".repeat(36)).is_err());
    }

    #[test]
    fn a_key_file_is_bytes_or_hex() {
        let key = KeyFile::generate(&mut DangerFixedEntropy::seeded(2)).unwrap();
        for ending in ["", "\n", "\r\n"] {
            let mut text = String::from(key.hex().as_str());
            text.push_str(ending);
            assert!(KeyFile::parse(text.as_bytes()).is_ok_and(|parsed| parsed.0 == key.0));
            assert!(KeyFile::parse(text.to_uppercase().as_bytes()).is_ok_and(|parsed| parsed.0 == key.0));
        }
        assert!(KeyFile::parse(&key.0).is_ok_and(|parsed| parsed.0 == key.0));
        assert_eq!(KeyFile::parse(b"").err(), Some(SecretError::KeyFileLength { bytes: 0 }));
        assert_eq!(KeyFile::parse(&[b'a'; 63]).err(), Some(SecretError::KeyFileLength { bytes: 63 }));
        assert_eq!(KeyFile::parse(&[b'g'; 64]).err(), Some(SecretError::KeyFileDigit));
        assert_eq!(KeyFile::parse(&[b'a'; 66]).err(), Some(SecretError::KeyFileLength { bytes: 66 }));
    }
}
