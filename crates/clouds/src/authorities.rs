//! Connections to web servers, and whom is believed that a server is the one that it was asked for.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::objects::Connections;

/// A larger file holds something else than certificates.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Connections that wait for somebody, and how long.
const IDLE_MAX: usize = 8;
const IDLE_TIME: Duration = Duration::from_secs(30);
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

/// How connections are encrypted: vouched for by those of a file, or by whom this machine trusts (`SSL_CERT_FILE`, `SSL_CERT_DIR`).
///
/// # Errors
/// What is wrong with the file, for people.
pub(crate) fn tls(ca: Option<&Path>) -> Result<ClientConfig, String> {
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

/// What makes connections, and keeps some. They are made on the runtime of whoever asks.
///
/// # Errors
/// What is wrong with the file of those who vouch, for people.
pub(crate) fn connections(ca: Option<&Path>, patience: Duration) -> Result<Connections, String> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT_PATIENCE.min(patience)));
    let https =
        HttpsConnectorBuilder::new().with_tls_config(tls(ca)?).https_or_http().enable_http1().wrap_connector(http);
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_max_idle_per_host(IDLE_MAX).pool_idle_timeout(IDLE_TIME).pool_timer(TokioTimer::new());
    Ok(builder.build(https))
}
