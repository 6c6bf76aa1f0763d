//! What keeps the secret of a slot outside the file: a TPM.

use zeroize::Zeroizing;

use crate::TpmError;

/// A secret that a keeper gives out again to whoever shows it the point.
pub struct KeptSecret {
    /// The secret.
    pub secret: Zeroizing<[u8; 32]>,
    /// What the keeper is shown; no secret.
    pub point: [u8; 64],
    /// What tells this keeper from others; no secret.
    pub pin: [u8; 32],
}

/// A thing that agrees on secrets, and finds them again as long as it exists.
pub trait KeyKeeper {
    /// A new secret for this purpose. It has been found once already.
    ///
    /// # Errors
    /// [`TpmError`].
    fn make(&self, purpose: &[u8; 32]) -> Result<KeptSecret, TpmError>;

    /// The secret made with this point; `None` if the pin is another keeper's.
    ///
    /// # Errors
    /// [`TpmError`].
    fn find(
        &self,
        purpose: &[u8; 32],
        point: &[u8; 64],
        pin: &[u8; 32],
    ) -> Result<Option<Zeroizing<[u8; 32]>>, TpmError>;
}
