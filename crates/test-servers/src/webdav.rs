//! A WebDAV server of a test's own: Apache.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::server::{Server, free_port, is_server, missing, program};

const MODULES: &str = "/usr/lib/apache2/modules";

/// A WebDAV server that ends with the test. It has one user, and a folder `fragments`.
pub struct WebDavServer {
    server: Server,
    folder: tempfile::TempDir,
}

is_server!(WebDavServer);

/// What one server is to do otherwise than others.
#[derive(Default)]
struct Otherwise<'a> {
    tls: Option<(&'a str, &'a str)>,
    is_read_only: bool,
}

fn configuration(folder: &Path, port: u16, otherwise: &Otherwise<'_>) -> String {
    let at = folder.display();
    let modules = [
        "mpm_event:mpm_event",
        "authn_core:authn_core",
        "authn_file:authn_file",
        "authz_core:authz_core",
        "authz_user:authz_user",
        "auth_basic:auth_basic",
        "dav:dav",
        "dav_fs:dav_fs",
    ];
    let load = |module: &str, file: &str| format!("LoadModule {module}_module {MODULES}/mod_{file}.so\n");
    let mut lines: String =
        modules.iter().filter_map(|pair| pair.split_once(':')).map(|(module, file)| load(module, file)).collect();
    let mut secured = String::new();
    if otherwise.tls.is_some() {
        lines += &load("socache_shmcb", "socache_shmcb");
        lines += &load("ssl", "ssl");
        secured =
            format!("SSLEngine on\nSSLCertificateFile {at}/certificate.pem\nSSLCertificateKeyFile {at}/key.pem\n");
    }
    let allowed = match otherwise.is_read_only {
        true => "<RequireAll>\nRequire valid-user\nRequire method GET HEAD OPTIONS PROPFIND\n</RequireAll>\n",
        false => "Require valid-user\n",
    };
    // As root it would serve as another user; its workers are few, so that they are soon there.
    let user = if is_root() { "User www-data\nGroup www-data\n" } else { "" };
    format!(
        "{lines}{user}{secured}ServerName localhost\nListen 127.0.0.1:{port}\nPidFile {at}/pid\nErrorLog {at}/errors\n\
         Mutex file:{at} default\nStartServers 1\nDocumentRoot {at}/files\nDavLockDB {at}/locks/db\nLimitRequestBody 0\n\
         <Directory {at}/files>\nDav on\nAuthType Basic\nAuthName fragments\nAuthUserFile {at}/users\n{allowed}</Directory>\n"
    )
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("id");
    output.stdout.trim_ascii() == b"0"
}

fn give_to_server(path: &Path) {
    if is_root() {
        assert!(Command::new("chown").args(["-R", "www-data:www-data"]).arg(path).status().expect("chown").success());
    }
}

impl WebDavServer {
    /// Who may ask it.
    pub const USER: &str = "counterfoil-test";
    /// And what they say.
    pub const PASSWORD: &str = "not a secret of anybody";
    /// The folder that is there.
    pub const FOLDER: &str = "fragments";

    /// Starts one; none where it is not installed, which in CI is a failure.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::start_with(&Otherwise::default())
    }

    /// Starts one that encrypts, with a certificate and its key in PEM.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start_with_tls(certificate: &str, key: &str) -> Option<Self> {
        Self::start_with(&Otherwise { tls: Some((certificate, key)), ..Otherwise::default() })
    }

    /// Starts one that lets nobody write.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start_read_only() -> Option<Self> {
        Self::start_with(&Otherwise { is_read_only: true, ..Otherwise::default() })
    }

    fn start_with(otherwise: &Otherwise<'_>) -> Option<Self> {
        let found = program(&["/usr/sbin/apache2"]).filter(|_| Path::new(MODULES).join("mod_dav_fs.so").exists());
        let Some(found) = found else {
            missing("Apache", "Debian: apache2, apache2-utils");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        for name in ["files", "locks", "files/fragments"] {
            std::fs::create_dir(at.join(name)).expect("a folder");
        }
        let made =
            Command::new("htpasswd").args(["-bc"]).arg(at.join("users")).args([Self::USER, Self::PASSWORD]).output();
        assert!(made.expect("htpasswd").status.success());
        if let Some((certificate, key)) = otherwise.tls {
            std::fs::write(at.join("certificate.pem"), certificate).expect("a certificate");
            std::fs::write(at.join("key.pem"), key).expect("a key");
        }
        let port = free_port();
        std::fs::write(at.join("configuration"), configuration(at, port, otherwise)).expect("a configuration");
        give_to_server(at);
        let mut command = Command::new(found);
        command.arg("-X").arg("-d").arg(at).arg("-f").arg(at.join("configuration"));
        // Its locks are in a library's files, which are not to be had after it was killed.
        let server = Server::start_with_scratch(command, port, Some(at.join("locks")));
        Some(Self { server, folder })
    }

    /// Where it keeps the files of its folder.
    #[must_use]
    pub fn files(&self) -> PathBuf {
        self.folder.path().join("files").join(Self::FOLDER)
    }
}
