//! Which TPM is meant, and its owner's password.

use std::path::PathBuf;

use counterfoil::{Error, Secret, Tpm};

/// The TPM that `COUNTERFOIL_TPM` names (a device, or an emulator's socket), else the machine's own; with the password in
/// the file that `COUNTERFOIL_TPM_PASSWORD_FILE` names.
pub fn chosen() -> Result<Tpm, Error> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let tpm = named("COUNTERFOIL_TPM").map_or_else(Tpm::usual, Tpm::at);
    let Some(path) = named("COUNTERFOIL_TPM_PASSWORD_FILE") else { return Ok(tpm) };
    let mut password = Secret::from(
        &*std::fs::read(&path).map_err(|error| Error::host("read the password file", path.display(), &error))?,
    );
    // One line end after it does not count.
    for end in [b'\n', b'\r'] {
        if password.as_bytes().last() == Some(&end) {
            password.pop_letter();
        }
    }
    Ok(tpm.owned_by(password))
}
