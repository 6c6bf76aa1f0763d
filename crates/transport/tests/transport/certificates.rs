//! An authority of a test, and certificates that it gives away.

use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// An authority, and its certificate in PEM.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub pem: String,
}

/// When a certificate counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Valid {
    Now,
    Before,
    Later,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Its certificate as a file in a folder.
    pub fn write(&self, folder: &Path) -> std::path::PathBuf {
        let path = folder.join("ca.pem");
        std::fs::write(&path, &self.pem).expect("written");
        path
    }

    /// What a server with a certificate for this name needs.
    pub fn server(&self, name: &str, valid: Valid) -> Arc<ServerConfig> {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        match valid {
            Valid::Now => {}
            Valid::Before => params.not_after = date_time_ymd(2020, 1, 1),
            Valid::Later => params.not_before = date_time_ymd(4000, 1, 1),
        }
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("a key of this certificate");
        Arc::new(config)
    }
}
