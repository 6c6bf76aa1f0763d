//! The server's key: made once, kept beside what it holds, and known to owners by its hash.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring as provider, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

const FILE: &str = "identity";
/// A key takes some eighty bytes.
const FILE_BYTES_MAX: u64 = 4096;

/// SHA-256 of a server's public key (RFC 7250, as SubjectPublicKeyInfo).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin(pub [u8; 32]);

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Pin {
    /// A pin of 64 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut pin = [0; 32];
        for (byte, pair) in pin.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
        }
        Some(Self(pin))
    }

    fn of(key: &[u8]) -> Self {
        Self(Sha256::digest(key).into())
    }
}

/// A server's key.
pub struct Identity {
    key: Arc<CertifiedKey>,
    pin: Pin,
}

impl Identity {
    /// The key in a folder, which is made if there is none.
    ///
    /// # Errors
    /// What the system says, also of a file that holds no key.
    pub fn in_folder(folder: &Path) -> io::Result<Self> {
        let path = folder.join(FILE);
        let key = match read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(&path)?,
            other => other?,
        };
        let wrong = |what: &'static str| io::Error::other(format!("{}: {what}", path.display()));
        let key = PrivateKeyDer::try_from(key.to_vec()).map_err(wrong)?;
        let key = provider::sign::any_eddsa_type(match &key {
            PrivateKeyDer::Pkcs8(key) => key,
            _ => return Err(wrong("no key of a provider")),
        });
        let key = key.map_err(|_| wrong("no key of a provider"))?;
        let public = key.public_key().ok_or_else(|| wrong("a key without a public one"))?.to_vec();
        let pin = Pin::of(&public);
        Ok(Self { key: Arc::new(CertifiedKey::new(vec![CertificateDer::from(public)], key)), pin })
    }

    /// What owners know it by.
    #[must_use]
    pub fn pin(&self) -> Pin {
        self.pin
    }

    /// TLS 1.3 with this key.
    pub(crate) fn server(&self) -> Result<Arc<ServerConfig>, Error> {
        let config = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()));
        let config = config.with_protocol_versions(&[&rustls::version::TLS13])?.with_no_client_auth();
        Ok(Arc::new(config.with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(self.key.clone())))))
    }
}

fn read(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut key = Zeroizing::new(Vec::with_capacity(FILE_BYTES_MAX as usize));
    std::fs::File::open(path)?.take(FILE_BYTES_MAX).read_to_end(&mut key)?;
    Ok(key)
}

fn make(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
    let made = made.map_err(|_| io::Error::other("the system gives no random numbers"))?;
    // Under another name first: a cut in the middle must not leave half a key.
    let part = path.with_extension("part");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    file.write_all(made.as_ref())?;
    file.sync_all()?;
    std::fs::rename(&part, path)?;
    Ok(Zeroizing::new(made.as_ref().to_vec()))
}

/// TLS 1.3 with the server that has this key, and with no other.
pub(crate) fn client(pin: Pin, has_other_key: Arc<AtomicBool>) -> Result<Arc<ClientConfig>, Error> {
    let algorithms = provider::default_provider().signature_verification_algorithms;
    let own: Arc<CryptoProvider> = Arc::new(provider::default_provider());
    let config = ClientConfig::builder_with_provider(own).with_protocol_versions(&[&rustls::version::TLS13])?;
    let verifier = Arc::new(Pinned { pin, has_other_key, algorithms });
    let mut config = config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    // Where it is asked for is nobody's business on the way: the key says who it is.
    config.enable_sni = false;
    Ok(Arc::new(config))
}

#[derive(Debug)]
struct Pinned {
    pin: Pin,
    /// Whether the server that was met last has another one.
    has_other_key: Arc<AtomicBool>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let is_it = Pin::of(end_entity) == self.pin;
        self.has_other_key.store(!is_it, Ordering::Relaxed);
        match is_it {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.3 alone".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature_with_raw_key(
            message,
            &SubjectPublicKeyInfoDer::from(cert.as_ref()),
            dss,
            &self.algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
