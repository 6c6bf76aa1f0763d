//! From the address of a cloud that only keeps objects to the cloud.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_disperse::Store;

use crate::address::{self, Address, Place};
use crate::objects::Objects;
use crate::sftp::Sftp;

/// How long a server may take for what is small, and for each mebibyte.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is kept secret of a cloud: a file, and what it holds.
#[derive(Clone, Copy)]
pub struct CloudSecret<'a> {
    /// Its path.
    pub file: &'a str,
    /// Its text, without the end of the last line.
    pub text: &'a str,
}

/// Whether an address is one of a store: `s3://`, `webdavs://`, `webdav://` or `sftp://`.
#[must_use]
pub fn is_store(url: &str) -> bool {
    address::is_store(url)
}

/// The address of a store as it is kept: always written the same way.
///
/// # Errors
/// What is wrong with it and what to do, for people.
pub fn whole_store_url(url: &str) -> Result<String, String> {
    Address::parse(url).map(|address| address.to_string())
}

/// The store at an address. Nobody is asked yet.
///
/// # Errors
/// What is wrong with the address or the secret and what to do, for people.
pub fn open_store(url: &str, secret: Option<CloudSecret<'_>>) -> Result<Arc<dyn Store>, String> {
    open_store_with_patience(url, secret, PATIENCE)
}

/// The same, with another idea of how long a server may take.
///
/// # Errors
/// As [`open_store`].
pub fn open_store_with_patience(
    url: &str,
    secret: Option<CloudSecret<'_>>,
    patience: Duration,
) -> Result<Arc<dyn Store>, String> {
    let address = Address::parse(url)?;
    Ok(match address.place {
        Place::Sftp { .. } => Arc::new(Sftp::new(address, secret.map(|secret| secret.file), patience)?),
        _ => Arc::new(Objects::new(address, secret.map(|secret| secret.text), patience)?),
    })
}
