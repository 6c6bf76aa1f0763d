//! Where keys come from, in the order that `counterfoil --help` gives. Never from the command line itself.

use std::path::Path;

use counterfoil::{Error, Key, Kind, Place, Secret, Tpm};

use crate::arguments::{Common, NewKey};
use crate::failure::misuse;
use crate::terminal;

/// The key that opens a database. Asks only if nothing else gives one.
pub fn find(common: &Common, place: &Place) -> Result<Key, Error> {
    if let Some(key) = given(common)? {
        return Ok(key);
    }
    match Key::tpm_for(place, &Tpm::from_environment()?) {
        Ok(Some(key)) => return Ok(key),
        // Another TPM, or none here: that is what the other slots are for.
        Err(error) if terminal::can_ask() => terminal::note(error),
        Err(error) => return Err(error),
        Ok(None) => {}
    }
    if !terminal::can_ask() {
        return Err(no_key());
    }
    Key::passphrase(terminal::ask_secret("Passphrase")?)
}

/// The key of a device. It has no passphrase, so nobody is asked for one.
pub fn find_of_device(common: &Common) -> Result<Key, Error> {
    given(common)?.ok_or_else(|| misuse("no key was given").advise("use --key-file or COUNTERFOIL_KEY_FILE"))
}

/// The key for a new database: asks twice.
pub fn find_for_new(common: &Common) -> Result<Key, Error> {
    match given(common)? {
        Some(key) => Ok(key),
        None if terminal::can_ask() => ask_twice("New passphrase"),
        None => Err(no_key()),
    }
}

/// A key for another slot: from its own options, or asked for twice. The environment names the key that opens.
pub fn find_new(new: &NewKey) -> Result<Key, Error> {
    if new.tpm {
        return Key::tpm(&Tpm::from_environment()?);
    }
    if let Some(path) = &new.new_key_file {
        return Key::from_file(path);
    }
    if let Some(path) = &new.new_passphrase_file {
        return Key::from_passphrase_file(path);
    }
    if !terminal::can_ask() {
        return Err(misuse("no new key was given, and there is no terminal to ask on")
            .advise("use --new-key-file or --new-passphrase-file"));
    }
    ask_twice("New passphrase")
}

fn ask_twice(question: &str) -> Result<Key, Error> {
    Key::passphrase(secret_twice(question)?)
}

/// The password of a new user.
pub fn find_password(file: Option<&Path>) -> Result<Secret, Error> {
    match file {
        Some(path) => Secret::from_file(path),
        None if terminal::can_ask() => secret_twice("Password"),
        None => Err(misuse("no password was given, and there is no terminal to ask on")
            .advise("use --password-file, or --token for a token in its place")),
    }
}

/// A secret that is typed twice, unless it is empty.
fn secret_twice(question: &str) -> Result<Secret, Error> {
    let first = terminal::ask_secret(question)?;
    if !first.is_empty() && first != terminal::ask_secret("The same again")? {
        return Err(misuse("the two differ").advise("try again"));
    }
    Ok(first)
}

fn no_key() -> Error {
    Error::new(Kind::Misuse, "no key was given, and there is no terminal to ask on")
        .advise("use --key-file, --passphrase-file or COUNTERFOIL_KEY_FILE")
}

fn given(common: &Common) -> Result<Option<Key>, Error> {
    if let Some(path) = &common.key_file {
        return Key::from_file(path).map(Some);
    }
    if let Some(path) = &common.passphrase_file {
        return Key::from_passphrase_file(path).map(Some);
    }
    Key::from_environment()
}
