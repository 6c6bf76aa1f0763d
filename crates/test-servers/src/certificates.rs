//! An authority of a test's own, and whom it vouches for.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// A certificate and its key in PEM, and a file of the authority that vouches for it, which goes with this.
pub struct Certificates {
    /// The server's, in PEM.
    pub certificate: String,
    /// Its private key, in PEM.
    pub key: String,
    /// The file of the authority.
    pub authority: PathBuf,
    _folder: tempfile::TempDir,
}

/// For a server of these names.
///
/// # Panics
/// If they are no names, or there is no room for the file.
#[must_use]
pub fn certificates(names: &[&str]) -> Certificates {
    let mut params = CertificateParams::new(Vec::new()).expect("an authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let certificate = CertificateParams::new(names).expect("names").signed_by(&key, &issuer).expect("a certificate");
    let folder = tempfile::tempdir().expect("a folder");
    let authority = folder.path().join("ca.pem");
    std::fs::write(&authority, issuer.pem()).expect("a file");
    Certificates { certificate: certificate.pem(), key: key.serialize_pem(), authority, _folder: folder }
}
