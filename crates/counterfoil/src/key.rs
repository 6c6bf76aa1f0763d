//! What opens a database: a key or a passphrase. Neither is ever printed, and both are overwritten when dropped.

use std::path::{Path, PathBuf};

use counterfoil_vault as vault;
use vault::KeyFile;
use zeroize::{Zeroize, Zeroizing};

use crate::error::{Error, Kind, Result};
use crate::medium::Medium;
use crate::options::Place;
use crate::tpm::{Keeper, Tpm};

/// Bytes that nobody else may see: a passphrase, or one being typed.
#[derive(Default)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// An empty secret with room for `bytes`, so that filling it leaves no copies behind.
    #[must_use]
    pub fn with_room(bytes: usize) -> Self {
        Self(Zeroizing::new(Vec::with_capacity(bytes)))
    }

    /// A passphrase or password in a file; one line end after it does not count.
    ///
    /// # Errors
    /// What the system says about the file; [`Kind::Input`] for one that is too large.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let content = read_secret(path.as_ref(), "read the passphrase file")?;
        let line = content.strip_suffix(b"\n").map_or(&content[..], |line| line.strip_suffix(b"\r").unwrap_or(line));
        Ok(Self::from(line))
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends a byte.
    pub fn push(&mut self, byte: u8) {
        if self.0.len() == self.0.capacity() {
            let mut larger = Zeroizing::new(Vec::with_capacity((self.0.capacity() * 2).max(64)));
            larger.extend_from_slice(&self.0);
            self.0 = larger;
        }
        self.0.push(byte);
    }

    /// Takes the last letter (of UTF-8) away.
    pub fn pop_letter(&mut self) {
        while let Some(byte) = self.0.pop() {
            if byte & 0xC0 != 0x80 {
                break;
            }
        }
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.0.zeroize();
    }
}

impl From<&[u8]> for Secret {
    fn from(bytes: &[u8]) -> Self {
        Self(Zeroizing::new(bytes.to_vec()))
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text.into_bytes()))
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        // Both sides are typed by the same person a moment apart: nothing is learned from how long this takes.
        self.0 == other.0
    }
}

/// What opens a database.
pub struct Key(Material);

enum Material {
    File(KeyFile),
    /// Also tried as a recovery code where it has the shape of one.
    Passphrase(Secret),
    /// Put together from shares.
    Volume(vault::VolumeKey, vault::DatabaseId),
    Tpm(Keeper),
}

/// Bytes that nobody can foresee.
///
/// # Errors
/// [`Kind::Device`] if the system has no randomness.
pub fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    vault::Entropy::fill(&mut vault::SystemEntropy, &mut bytes).map_err(|_| crate::convert::no_entropy())?;
    Ok(bytes)
}

impl Key {
    /// Draws a new key.
    ///
    /// # Errors
    /// [`Kind::Device`] if the system has no randomness.
    pub fn generate() -> Result<Self> {
        let key = KeyFile::generate(&mut vault::SystemEntropy).map_err(|_| crate::convert::no_entropy())?;
        Ok(Self(Material::File(key)))
    }

    /// A key that a TPM gives out: to put into a slot, or to open with what was put there.
    ///
    /// # Errors
    /// [`Kind::NotSupported`] where this was built without the feature `tpm`.
    pub fn tpm(tpm: &Tpm) -> Result<Self> {
        Ok(Self(Material::Tpm(tpm.keeper()?)))
    }

    /// The key that the TPM has for the database at this place. None if there is no database there that says of itself
    /// that a TPM opens it.
    ///
    /// # Errors
    /// What the TPM says; [`Kind::WrongKey`] if the slot is another one's.
    pub fn tpm_for(place: &Place, tpm: &Tpm) -> Result<Option<Self>> {
        let Ok(medium) = Medium::open(place, true) else { return Ok(None) };
        let Ok(copies) = vault::read_headers(&medium) else { return Ok(None) };
        if !copies.kinds_unchecked().contains(&vault::SlotKind::Tpm) {
            return Ok(None);
        }
        let key = Self::tpm(tpm)?;
        key.unlock(&copies)?;
        Ok(Some(key))
    }

    /// A key of 32 bytes.
    ///
    /// # Panics
    /// Never: 32 bytes are always a key.
    #[must_use]
    pub fn bytes(bytes: &[u8; 32]) -> Self {
        Self(Material::File(KeyFile::parse(bytes).expect("32 bytes are a key")))
    }

    /// A passphrase, or the recovery code that was printed when the database was made.
    ///
    /// # Errors
    /// [`Kind::Misuse`] for an empty one.
    pub fn passphrase(secret: impl Into<Secret>) -> Result<Self> {
        let secret = secret.into();
        if secret.is_empty() {
            return Err(Error::new(Kind::Misuse, "the passphrase is empty").advise("choose one that is hard to guess"));
        }
        Ok(Self(Material::Passphrase(secret)))
    }

    /// A key in a file: exactly 32 bytes, or 64 hex digits with an optional line end. A folder is taken for one of
    /// shares ([`crate::Database::split_key`]).
    ///
    /// # Errors
    /// What the system says about the file; [`Kind::Input`] if it holds no key.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        if path.as_ref().is_dir() {
            return Self::from_shares(path.as_ref()).map_err(|error| error.at(path.as_ref().display()));
        }
        let content = read_secret(path.as_ref(), "read the key file")?;
        let key = KeyFile::parse(&content).map_err(|error| {
            Error::new(Kind::Input, error.to_string())
                .at(path.as_ref().display())
                .advise("make one with `counterfoil keygen -o FILE`")
        })?;
        Ok(Self(Material::File(key)))
    }

    /// A passphrase in a file; one line end after it does not count.
    ///
    /// # Errors
    /// What the system says about the file; [`Kind::Misuse`] for an empty one.
    pub fn from_passphrase_file(path: impl AsRef<Path>) -> Result<Self> {
        Self::passphrase(Secret::from_file(path.as_ref())?).map_err(|error| error.at(path.as_ref().display()))
    }

    /// A key as 64 hex digits.
    ///
    /// # Errors
    /// [`Kind::Misuse`] if that is not what it is.
    pub fn from_hex(digits: &str) -> Result<Self> {
        match KeyFile::parse(digits.as_bytes()) {
            Ok(key) if digits.len() >= 64 => Ok(Self(Material::File(key))),
            _ => Err(Error::new(Kind::Misuse, "a key is written as 64 hex digits")),
        }
    }

    /// The key that the environment names: by `COUNTERFOIL_KEY_FILE`, `COUNTERFOIL_PASSPHRASE_FILE`, the file
    /// `counterfoil.key` in `CREDENTIALS_DIRECTORY`, `COUNTERFOIL_KEY` (64 hex digits) or `COUNTERFOIL_PASSPHRASE`, in this
    /// order. None if none of them is set.
    ///
    /// # Errors
    /// Those of [`Key::from_file`], [`Key::from_passphrase_file`] and [`Key::from_hex`].
    pub fn from_environment() -> Result<Option<Self>> {
        let file = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(path) = file("COUNTERFOIL_KEY_FILE") {
            return Self::from_file(path).map(Some);
        }
        if let Some(path) = file("COUNTERFOIL_PASSPHRASE_FILE") {
            return Self::from_passphrase_file(path).map(Some);
        }
        if let Some(path) = file("CREDENTIALS_DIRECTORY").map(|folder| folder.join("counterfoil.key")) {
            // Services are given the folder whether or not it holds a key for us.
            if path.exists() {
                return Self::from_file(path).map(Some);
            }
        }
        if let Some(digits) = variable("COUNTERFOIL_KEY")? {
            return Self::from_hex(&digits).map(Some).map_err(|error| error.at("COUNTERFOIL_KEY"));
        }
        match variable("COUNTERFOIL_PASSPHRASE")? {
            Some(passphrase) => Self::passphrase(passphrase).map(Some),
            None => Ok(None),
        }
    }

    /// The key as 64 hex digits, for whoever writes the key file. None for a passphrase.
    #[must_use]
    pub fn to_hex(&self) -> Option<Zeroizing<String>> {
        match &self.0 {
            Material::File(key) => Some(key.hex()),
            Material::Passphrase(_) | Material::Volume(..) | Material::Tpm(_) => None,
        }
    }

    /// The shares in a folder, put together.
    fn from_shares(folder: &Path) -> Result<Self> {
        let host = |error: std::io::Error| Error::host("read the shares", folder.display(), &error);
        let mut shares = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(host)?.take(1024) {
            let path = entry.map_err(host)?.path();
            if path.is_file() {
                let content = read_secret(&path, "read the share")?;
                let share = std::str::from_utf8(&content).ok().and_then(|text| vault::Share::parse(text).ok());
                shares.push(share.ok_or_else(|| {
                    Error::new(Kind::Input, vault::SplitError::NoShare.to_string()).at(path.display())
                })?);
            }
        }
        let key = vault::join(&shares).map_err(|error| Error::new(Kind::Input, error.to_string()))?;
        // There are as many as are needed, and all of one database.
        Ok(Self(Material::Volume(key, shares[0].id())))
    }

    /// Opens a header.
    pub(crate) fn unlock(&self, copies: &vault::HeaderCopies) -> Result<vault::Unlocked> {
        Ok(match &self.0 {
            Material::Volume(key, _) => copies.unlock_with(key.duplicate())?,
            _ => copies.unlock(&[self.offered()?], &vault::ArgonCost::HOST)?,
        })
    }

    /// Shares put together: the key that seals the data, and the database that it is of. None for other keys.
    pub(crate) fn of_shares(&self) -> Option<(vault::VolumeKey, vault::DatabaseId)> {
        match &self.0 {
            Material::Volume(key, id) => Some((key.duplicate(), *id)),
            _ => None,
        }
    }

    /// The key that seals the data itself: devices have no slots in which it could be wrapped.
    pub(crate) fn volume_key(&self) -> Result<vault::VolumeKey> {
        match &self.0 {
            Material::File(key) => Ok(vault::VolumeKey::from_bytes(key.expose())),
            Material::Volume(key, _) => Ok(key.duplicate()),
            Material::Passphrase(_) | Material::Tpm(_) => {
                Err(Error::new(Kind::Misuse, "the image of a device has no slots: no passphrase and no TPM opens it")
                    .advise("give the device's own key, with --key-file, COUNTERFOIL_KEY_FILE or COUNTERFOIL_KEY"))
            }
        }
    }

    /// What is offered to a slot, or put into one.
    pub(crate) fn offered(&self) -> Result<vault::Secret<'_>> {
        match &self.0 {
            Material::File(key) => Ok(vault::Secret::KeyFile(key)),
            Material::Passphrase(secret) => Ok(vault::Secret::Passphrase(secret.as_bytes())),
            Material::Tpm(keeper) => Ok(vault::Secret::Tpm(&**keeper)),
            Material::Volume(..) => {
                Err(Error::new(Kind::Misuse, "shares are no key for a slot").advise("use a key file or a passphrase"))
            }
        }
    }
}

/// A variable of the environment that is set to something.
fn variable(name: &'static str) -> Result<Option<String>> {
    match std::env::var(name) {
        Ok(value) if value.is_empty() => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(Error::new(Kind::Misuse, "the variable is not text").at(name)),
    }
}

/// Larger files hold no key and no passphrase.
const SECRET_FILE_BYTES_MAX: u64 = 64 * 1024;

fn read_secret(path: &Path, doing: &str) -> Result<Zeroizing<Vec<u8>>> {
    use std::io::Read;
    let host = |error: &std::io::Error| Error::host(doing, path.display(), error);
    let file = std::fs::File::open(path).map_err(|error| host(&error))?;
    let mut content = Zeroizing::new(Vec::with_capacity(4096));
    file.take(SECRET_FILE_BYTES_MAX + 1).read_to_end(&mut content).map_err(|error| host(&error))?;
    if content.len() as u64 > SECRET_FILE_BYTES_MAX {
        return Err(Error::new(Kind::Input, "the file is too large to hold a key").at(path.display()));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_written_as_it_is_read() -> Result<()> {
        let digits = "0b".repeat(32);
        let key = Key::from_hex(&digits)?;
        assert_eq!(key.to_hex().as_deref(), Some(&digits));
        assert_eq!(Key::from_hex("0b").err().map(|error| error.kind()), Some(Kind::Misuse));
        // 32 letters are bytes of a key file, and no hex digits of a key.
        assert!(Key::from_hex(&"0b".repeat(16)).is_err());
        assert_eq!(Key::passphrase(String::new()).err().map(|error| error.kind()), Some(Kind::Misuse));
        Ok(())
    }

    #[test]
    fn letters_are_taken_back_whole() {
        let mut secret = Secret::with_room(8);
        "aä€".bytes().for_each(|byte| secret.push(byte));
        secret.pop_letter();
        assert_eq!(secret.as_bytes(), "aä".as_bytes());
        secret.pop_letter();
        secret.pop_letter();
        secret.pop_letter();
        assert!(secret.is_empty());
    }
}
