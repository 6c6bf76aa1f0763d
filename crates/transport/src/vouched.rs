//! What is told of a server that is not the one it should be, or with which no connection can be encrypted.

use rustls::{CertificateError, Error as Tls};

const NO_AUTHORITY: &str = "nobody whom this machine trusts vouches for the server's certificate (an authority of your own is \
named with --tls-ca FILE, or SSL_CERT_FILE)";
const NO_ROOTS: &str = "this machine knows nobody who vouches for servers (install the package ca-certificates, or name an \
authority with --tls-ca FILE, or SSL_CERT_FILE)";
const IN_CLEAR: &str = "the server does not speak TLS there (is it http:// and not https://?)";
const HIDDEN: &str = "the server leads to an address without TLS, where others on the way could read what is asked";

/// What went wrong with a request, in words for people.
pub(crate) fn told(error: &ureq::Error) -> String {
    if let ureq::Error::RequireHttpsOnly(_) = error {
        return HIDDEN.into();
    }
    match tls(error) {
        None => error.to_string(),
        Some(Tls::InvalidCertificate(wrong)) => told_of_certificate(wrong),
        Some(Tls::General(what)) if what.starts_with("No CA certificates") => NO_ROOTS.into(),
        Some(Tls::InvalidMessage(_)) => IN_CLEAR.into(),
        Some(other) => format!("no encrypted connection could be made ({other})"),
    }
}

/// Whether it is the server that is not accepted, and not the way to it that failed.
pub(crate) fn is_refused(error: &ureq::Error) -> bool {
    matches!(error, ureq::Error::RequireHttpsOnly(_)) || tls(error).is_some()
}

fn told_of_certificate(wrong: &CertificateError) -> String {
    use CertificateError::{
        BadSignature, Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet,
        NotValidYetContext, UnknownIssuer,
    };
    match wrong {
        // An authority of another one's name counts for nothing either.
        UnknownIssuer | BadSignature => NO_AUTHORITY.into(),
        Expired | ExpiredContext { .. } => {
            "the server's certificate has expired, or this machine's clock is wrong".into()
        }
        NotValidYet | NotValidYetContext { .. } => {
            "the server's certificate is for a time to come, or this machine's clock is wrong".into()
        }
        NotValidForName | NotValidForNameContext { .. } => "the server's certificate is for another name".into(),
        other => format!("the server's certificate is not accepted ({other})"),
    }
}

/// The error of TLS in one of a request: in a handshake it comes as one of reading or writing.
fn tls(error: &ureq::Error) -> Option<&Tls> {
    match error {
        ureq::Error::Rustls(error) => Some(error),
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}
