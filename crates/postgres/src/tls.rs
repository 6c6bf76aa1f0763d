//! TLS: the certificate that a server shows, and what a client can tell it by.
//!
//! 1. A certificate or a key that cannot be used is an error before anybody is served: nothing falls back to clear text.
//! 2. Every connection makes keys of its own: none is resumed by those of an earlier one.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use counterfoil::{Error, Kind, Result};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, ServerConfig};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{InconsistentKeys, ServerConnection};
use zeroize::Zeroizing;

use crate::end_point::end_point;

/// The first byte of a handshake: no message of a client that speaks in clear begins with it.
pub const HANDSHAKE: u8 = 0x16;
/// What clients of PostgreSQL call their protocol where they ask for it in a handshake (ALPN).
const PROTOCOL: &[u8] = b"postgresql";
/// Larger files hold neither a certificate nor a key.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A certificate and its key.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    end_point: Option<Arc<[u8]>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a certificate and its key")
    }
}

impl Tls {
    /// From files in PEM. Behind the server's own certificate stand those between it and a root that clients know. The key is
    /// one for RSA, ECDSA (P-256, P-384) or Ed25519, in PKCS #8, SEC 1 or PKCS #1, without a passphrase.
    ///
    /// # Errors
    /// What the system says about the files; [`Kind::Input`] for what cannot be used.
    pub fn from_files(certificate: impl AsRef<Path>, key: impl AsRef<Path>) -> Result<Self> {
        let (certificate, key) = (certificate.as_ref(), key.as_ref());
        let chain = chain(&read(certificate)?).map_err(|error| error.at(certificate.display()))?;
        let provider = Arc::new(ring::default_provider());
        let certified = private_key(&read(key)?)
            .and_then(|private| certified(&provider, chain, private))
            .map_err(|error| error.at(key.display()))?;
        let end_point = end_point(&certified.cert[0]).map(Arc::from);
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::new(Kind::Bug, error.to_string()))?;
        let mut config = config.with_no_client_auth().with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Tls { config: Arc::new(config), end_point })
    }

    /// A connection before its handshake.
    pub(crate) fn connection(&self) -> std::io::Result<ServerConnection> {
        ServerConnection::new(self.config.clone()).map_err(std::io::Error::other)
    }

    /// What channels are bound by, if the certificate is signed in a way for which that is settled.
    pub(crate) fn end_point(&self) -> Option<&[u8]> {
        self.end_point.as_deref()
    }
}

/// Whether a client asked for PostgreSQL by its name: one that begins with a handshake has to, so that nobody is talked into
/// sending here what was meant for another protocol.
pub fn is_asked_for(connection: &ServerConnection) -> bool {
    connection.alpn_protocol() == Some(PROTOCOL)
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    let host = |error: std::io::Error| Error::host("read the file", path.display(), &error);
    let mut content = Zeroizing::new(Vec::with_capacity(16 << 10));
    File::open(path).map_err(host)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut content).map_err(host)?;
    match content.len() as u64 > FILE_BYTES_MAX {
        true => Err(Error::new(Kind::Input, "the file is too large to hold a certificate or a key").at(path.display())),
        false => Ok(content),
    }
}

fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|_| no_certificate())?;
    if chain.is_empty() { Err(no_certificate()) } else { Ok(chain) }
}

fn no_certificate() -> Error {
    Error::new(Kind::Input, "no certificate is in the file").advise("write it in PEM: BEGIN CERTIFICATE")
}

fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|_| {
        Error::new(Kind::Input, "no key without a passphrase is in the file")
            .advise("write it in PEM: BEGIN PRIVATE KEY, as `openssl pkey` does")
    })
}

fn certified(
    provider: &CryptoProvider,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<CertifiedKey> {
    let key = provider.key_provider.load_private_key(key).map_err(|_| {
        Error::new(Kind::Input, "this key cannot be used")
            .advise("take one for RSA of 2048 to 8192 bits, ECDSA on P-256 or P-384, or Ed25519")
    })?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        Ok(()) => Ok(certified),
        Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Err(Error::new(Kind::Input, "the key is not that of the certificate")
                .advise("name the key that the certificate was made with, and put the server's own certificate first"))
        }
        Err(_) => Err(Error::new(Kind::Input, "the certificate makes no sense, or is not of X.509 version 3")
            .advise("make one with a subjectAltName, which makes it version 3")),
    }
}
