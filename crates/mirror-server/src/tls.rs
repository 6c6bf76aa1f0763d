//! TLS: the certificate that a mirror shows. It hides questions from those on the way; answers need no hiding, and are checked.
//!
//! 1. A certificate or a key that cannot be used is an error before anybody is served: nothing falls back to clear text.
//! 2. A handshake has the time that a head has.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Larger files hold neither a certificate nor a key.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A certificate and its key.
#[derive(Clone)]
pub struct Tls(Arc<ServerConfig>);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a certificate and its key")
    }
}

/// Why a certificate or a key cannot be used, and where it is.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    File(PathBuf, io::Error),
    /// No certificate is in the file.
    NoCertificate(PathBuf),
    /// No key without a passphrase is in the file.
    NoKey(PathBuf),
    /// The key cannot be used, or is another certificate's.
    OtherKey(PathBuf),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, error) => write!(f, "could not read the file ({}): {error}", path.display()),
            Self::NoCertificate(path) => write!(f, "no certificate in PEM is in the file ({})", path.display()),
            Self::NoKey(path) => write!(f, "no key in PEM without a passphrase is in the file ({})", path.display()),
            Self::OtherKey(path) => {
                write!(f, "the key is not that of the certificate, or cannot be used ({})", path.display())
            }
        }
    }
}

impl std::error::Error for TlsError {}

impl Tls {
    /// From files in PEM. Behind the server's own certificate stand those between it and an authority that readers know.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn from_files(certificate: impl AsRef<Path>, key: impl AsRef<Path>) -> Result<Self, TlsError> {
        let (certificate, key) = (certificate.as_ref(), key.as_ref());
        let chain = chain(&read(certificate)?).ok_or_else(|| TlsError::NoCertificate(certificate.into()))?;
        let private = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|_| TlsError::NoKey(key.into()))?;
        let other = |_| TlsError::OtherKey(key.into());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().map_err(other)?;
        let mut config = config.with_no_client_auth().with_single_cert(chain, private).map_err(other)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.0.clone().into()
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let failed = |error| TlsError::File(path.into(), error);
    let mut content = Vec::new();
    File::open(path).map_err(failed)?.take(FILE_BYTES_MAX).read_to_end(&mut content).map_err(failed)?;
    Ok(content)
}

fn chain(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let chain = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>().ok()?;
    (!chain.is_empty()).then_some(chain)
}
