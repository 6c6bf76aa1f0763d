//! A mirror with a certificate: who speaks TLS is answered, and nobody else is waited for.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_mirror_server::{Allowed, Embedded, Limits, Listener, Tls, TlsError};
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

use crate::client::{Client, head, once};

struct Files {
    folder: TempDir,
    certified: CertifiedKey<KeyPair>,
}

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let certified = generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
        let files = Self { folder, certified };
        files.write("certificate", &files.certified.cert.pem());
        files.write("key", &files.certified.signing_key.serialize_pem());
        files
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    }

    fn listen(&self, limits: Limits) -> Listener {
        let tls = Tls::from_files(self.folder.path().join("certificate"), self.folder.path().join("key"));
        let store = Embedded::open(&self.folder.path().join("store")).expect("a store");
        let address = "127.0.0.1:0".parse().expect("an address");
        Listener::bind(address, Arc::new(store), Allowed::Any, limits, Some(tls.expect("a certificate")))
            .expect("bound")
    }

    fn client(&self, address: SocketAddr) -> StreamOwned<ClientConnection, TcpStream> {
        let mut known = RootCertStore::empty();
        known.add(self.certified.cert.der().clone()).expect("an authority");
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().expect("versions");
        let config = Arc::new(config.with_root_certificates(known).with_no_client_auth());
        let name = ServerName::try_from("127.0.0.1").expect("a name");
        let stream = TcpStream::connect(address).expect("a connection");
        StreamOwned::new(ClientConnection::new(config, name).expect("a client"), stream)
    }
}

#[test]
fn who_speaks_tls_is_answered() {
    let files = Files::new();
    let listener = files.listen(Limits::default());
    let mut client = files.client(listener.address());
    for _ in 0..2 {
        client.write_all(&head("GET /health", 0)).expect("sent");
        let mut reply = [0; 12];
        client.read_exact(&mut reply).expect("a reply");
        assert_eq!(&reply, b"HTTP/1.1 200");
        let mut byte = [0];
        let mut rest = Vec::new();
        while !rest.ends_with(b"\r\n\r\n") {
            client.read_exact(&mut byte).expect("a head");
            rest.push(byte[0]);
        }
        let length = String::from_utf8_lossy(&rest).to_lowercase();
        let length = length.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
        client.read_exact(&mut vec![0; length.unwrap_or(0)]).expect("a body");
    }
    drop(client);
    listener.shut_down();
}

/// Whether the other side ended it, and it was not merely waited for in vain.
fn is_left(mut client: Client) -> bool {
    match client.stream.read(&mut [0; 100]) {
        Ok(bytes) => bytes == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

#[test]
fn who_does_not_is_left_and_holds_nobody_up() {
    let files = Files::new();
    let mut limits = Limits::default();
    limits.head_timeout = Duration::from_millis(300);
    let listener = files.listen(limits);
    let mut clear = Client::new(listener.address());
    clear.send(&head("GET /health", 0));
    assert!(clear.reply().is_none(), "nothing is answered in clear");
    // One that says nothing, and one that stops in the middle of its hello.
    let silent = Client::new(listener.address());
    assert!(is_left(silent));
    let mut half = Client::new(listener.address());
    half.send(&[0x16, 3, 1, 2, 0, 1]);
    assert!(is_left(half));
    let mut client = files.client(listener.address());
    client.write_all(&head("GET /health", 0)).expect("sent");
    assert!(client.read(&mut [0; 12]).is_ok_and(|bytes| bytes > 0));
    // Whoever has not said hello yet is not waited for at the end.
    let _late = Client::new(listener.address());
    listener.shut_down();
}

#[test]
fn what_cannot_be_used_is_refused_before_anybody_is_served() {
    let files = Files::new();
    let (certificate, key) = (files.folder.path().join("certificate"), files.folder.path().join("key"));
    assert_eq!(format!("{:?}", Tls::from_files(&certificate, &key).expect("both")), "a certificate and its key");
    let other = files.write("other", &KeyPair::generate().expect("a key").serialize_pem());
    let (empty, nothing) = (files.write("empty", "no PEM"), files.folder.path().join("nothing"));
    let refused = |certificate: &PathBuf, key: &PathBuf| Tls::from_files(certificate, key).expect_err("refused");
    assert!(matches!(refused(&certificate, &other), TlsError::OtherKey(path) if path == other));
    assert!(matches!(refused(&key, &key), TlsError::NoCertificate(path) if path == key));
    assert!(matches!(refused(&empty, &key), TlsError::NoCertificate(_)));
    assert!(matches!(refused(&certificate, &empty), TlsError::NoKey(path) if path == empty));
    assert!(matches!(refused(&nothing, &key), TlsError::File(..)));
    let told = refused(&certificate, &nothing).to_string();
    assert!(told.contains("nothing"), "{told}");
}

#[test]
fn without_a_certificate_requests_come_in_clear() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Embedded::open(&folder.path().join("store")).expect("a store");
    let address = "127.0.0.1:0".parse().expect("an address");
    let listener = Listener::bind(address, Arc::new(store), Allowed::Any, Limits::default(), None).expect("bound");
    assert_eq!(once(listener.address(), "GET /health", b"").status, 200);
}
