//! Where a machine's TPM is, for counters and key slots in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use counterfoil_vault as vault;

use crate::error::{Error, Kind, Result};
use crate::key::Secret;

/// A TPM 2.0: a character device, or the socket of an emulator. Nothing is asked of it before it is needed.
#[derive(Clone)]
pub struct Tpm {
    path: PathBuf,
    owner: Option<Arc<Secret>>,
}

impl Tpm {
    /// The machine's own, shared with others: `/dev/tpmrm0`.
    #[must_use]
    pub fn usual() -> Self {
        Self::at("/dev/tpmrm0")
    }

    /// The one at this place.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), owner: None }
    }

    /// The one that `COUNTERFOIL_TPM` names (a device, or an emulator's socket), else [`Tpm::usual`]; with its owner's
    /// password where `COUNTERFOIL_TPM_PASSWORD_FILE` names a file with it.
    ///
    /// # Errors
    /// What the system says about that file.
    pub fn from_environment() -> Result<Self> {
        let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let tpm = named("COUNTERFOIL_TPM").map_or_else(Self::usual, Self::at);
        match named("COUNTERFOIL_TPM_PASSWORD_FILE") {
            Some(path) => Ok(tpm.owned_by(Secret::from_file(path)?)),
            None => Ok(tpm),
        }
    }

    /// With the password of its owner, where there is one: making and forgetting counters, and key slots, need it.
    #[must_use]
    pub fn owned_by(self, password: impl Into<Secret>) -> Self {
        Self { owner: Some(Arc::new(password.into())), ..self }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// What gives keys out.
pub(crate) type Keeper = Box<dyn vault::KeyKeeper + Send + Sync>;

#[cfg(feature = "tpm")]
impl Tpm {
    pub(crate) fn keeper(&self) -> Result<Keeper> {
        Ok(Box::new(self.handle()?))
    }

    /// The counter of a database. The writers of two copies of it are kept apart by a lock in this directory.
    pub(crate) fn counter(&self, locks: Option<&Path>, keys: &vault::Vault) -> Result<Box<dyn vault::HostCounter>> {
        Ok(Box::new(vault::TpmCounter::new(&self.handle()?, locks, keys)))
    }

    fn handle(&self) -> Result<vault::Tpm> {
        let tpm = vault::Tpm::at(&self.path);
        match self.owner.as_deref().map(Secret::as_bytes) {
            None => Ok(tpm),
            Some(password) if password.len() <= 32 => Ok(tpm.owned_by(password)),
            Some(_) => Err(Error::new(Kind::Misuse, "the password of a TPM's owner has at most 32 bytes")),
        }
    }
}

#[cfg(not(feature = "tpm"))]
impl Tpm {
    pub(crate) fn keeper(&self) -> Result<Keeper> {
        Err(self.not_built_in())
    }

    pub(crate) fn counter(&self, _: Option<&Path>, _: &vault::Vault) -> Result<Box<dyn vault::HostCounter>> {
        Err(self.not_built_in())
    }

    fn not_built_in(&self) -> Error {
        let _ = &self.owner;
        Error::new(Kind::NotSupported, "not supported: this program was built without TPMs")
            .advise("use one that was built with the feature tpm")
    }
}
