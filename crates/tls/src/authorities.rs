//! Whom is believed that a server is the one that it was asked for.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// A larger file holds something else than certificates.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// How connections are encrypted: vouched for by those of a file, or by whom this machine trusts (`SSL_CERT_FILE`, `SSL_CERT_DIR`).
///
/// # Errors
/// What is wrong with the file, for people.
pub fn tls(ca: Option<&Path>) -> Result<ClientConfig, String> {
    // The ciphers are named here, so that no other part of a program decides on them.
    let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| format!("no encryption: {error}"))?;
    Ok(match ca {
        Some(file) => builder.with_root_certificates(roots(file)?).with_no_client_auth(),
        None => builder
            .with_platform_verifier()
            .map_err(|error| format!("whom this machine trusts cannot be read: {error}"))?
            .with_no_client_auth(),
    })
}

fn roots(file: &Path) -> Result<RootCertStore, String> {
    let failed = |error: std::io::Error| format!("certificates in {}: {error}", file.display());
    let none = || format!("{} holds no certificates in PEM that can be used", file.display());
    let mut pem = Vec::new();
    File::open(file).map_err(failed)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut pem).map_err(failed)?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.map_err(|_| none())?).map_err(|_| none())?;
    }
    if roots.is_empty() || pem.len() as u64 > FILE_BYTES_MAX { Err(none()) } else { Ok(roots) }
}
