//! Who vouches for servers: those whom this machine trusts, or one that the user names instead.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};

use crate::error::Error;

/// A larger file holds something else than certificates: all that machines commonly trust are a third of it.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Whom a client believes that a server is the one that it asked for.
#[derive(Clone)]
pub struct Authorities(RootCerts);

impl Default for Authorities {
    /// Those that this machine trusts: what its system says, or `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    fn default() -> Self {
        Self(RootCerts::PlatformVerifier)
    }
}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            RootCerts::Specific(named) => write!(f, "{} named authorities", named.len()),
            _ => f.write_str("this machine's authorities"),
        }
    }
}

impl Authorities {
    /// Those whose certificates are in a file in PEM, and nobody else.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::NoAuthority`]: it holds none, or one that makes no sense.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let failed = |error| Error::File(path.into(), error);
        let mut pem = Vec::new();
        File::open(path).map_err(failed)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut pem).map_err(failed)?;
        let named = if pem.len() as u64 > FILE_BYTES_MAX { None } else { certificates(&pem) };
        Ok(Self(RootCerts::Specific(Arc::new(named.ok_or_else(|| Error::NoAuthority(path.into()))?))))
    }

    /// How connections are encrypted. The ciphers are named here, so that no other part of a program decides on them.
    pub(crate) fn tls(&self) -> TlsConfig {
        TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
            .root_certs(self.0.clone())
            .build()
    }
}

/// The certificates of a file; none if it holds none, or one that nobody can be checked by.
fn certificates(pem: &[u8]) -> Option<Vec<Certificate<'static>>> {
    let mut found = Vec::new();
    // What cannot be used is told of here: a connection would leave it out and not say why nobody is trusted.
    let mut usable = RootCertStore::empty();
    for item in parse_pem(pem) {
        if let PemItem::Certificate(certificate) = item.ok()? {
            usable.add(CertificateDer::from(certificate.der().to_vec())).ok()?;
            found.push(certificate);
        }
    }
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &[u8]) -> Result<Authorities, Error> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ca.pem");
        std::fs::write(&path, content).expect("a file");
        Authorities::from_file(&path)
    }

    #[test]
    fn a_file_holds_certificates_that_can_be_used_or_is_refused() {
        let ca = rcgen::generate_simple_self_signed(vec!["ca.example".into()]).expect("a certificate");
        let pem = ca.cert.pem();
        assert_eq!(format!("{:?}", read(pem.as_bytes()).expect("one")), "1 named authorities");
        assert!(read([pem.as_str(), &pem].concat().as_bytes()).is_ok(), "two");
        let key = ca.signing_key.serialize_pem();
        for content in [
            "",
            "no certificate",
            &key,
            &pem[..pem.len() / 2],
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            assert!(matches!(read(content.as_bytes()), Err(Error::NoAuthority(_))), "{content}");
        }
        assert!(matches!(read(&vec![b'\n'; (1 << 20) + 1]), Err(Error::NoAuthority(_))));
        let missing = Authorities::from_file("/nowhere/at/all").expect_err("no file");
        assert!(matches!(missing, Error::File(..)) && missing.to_string().contains("/nowhere/at/all"), "{missing}");
    }

    #[test]
    fn a_private_key_beside_a_certificate_is_not_kept() {
        let ca = rcgen::generate_simple_self_signed(vec!["ca.example".into()]).expect("a certificate");
        let both = [ca.signing_key.serialize_pem(), ca.cert.pem()].concat();
        let Authorities(RootCerts::Specific(named)) = read(both.as_bytes()).expect("one") else { panic!("named") };
        assert_eq!(named.iter().map(Certificate::der).collect::<Vec<_>>(), [&ca.cert.der()[..]]);
    }
}
