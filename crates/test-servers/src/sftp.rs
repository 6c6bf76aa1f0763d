//! An SFTP server of a test's own: OpenSSH.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::server::{Server, free_port, is_server, missing, program};

/// An SFTP server that ends with the test. It lets in who has its key, as the user that the test runs as; there is a folder for fragments.
pub struct SftpServer {
    server: Server,
    folder: tempfile::TempDir,
    /// Who may ask it.
    pub user: String,
}

is_server!(SftpServer);

fn make_key(path: &Path) {
    let made =
        Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"]).arg(path).output();
    let made = made.expect("ssh-keygen");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// A public key as it stands in lists: its kind and its digits.
fn public_key(path: &Path) -> String {
    let text = std::fs::read_to_string(path.with_extension("pub")).expect("a public key");
    text.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

impl SftpServer {
    /// Starts one; none where it is not installed, which in CI is a failure.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::start_in(tempfile::tempdir().expect("a folder"), "internal-sftp")
    }

    /// Starts one that lets nobody write.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start_read_only() -> Option<Self> {
        Self::start_in(tempfile::tempdir().expect("a folder"), "internal-sftp -R")
    }

    /// Starts one where something else speaks, a script of the shell.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start_speaking(script: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("speaks");
        std::fs::write(&path, script).expect("a script");
        Self::start_in(folder, &format!("/bin/sh {}", path.display()))
    }

    fn start_in(folder: tempfile::TempDir, speaks: &str) -> Option<Self> {
        let found = program(&["/usr/sbin/sshd"]).filter(|_| Command::new("ssh").arg("-V").output().is_ok());
        let Some(found) = found else {
            missing("OpenSSH's server", "Debian: openssh-server");
            return None;
        };
        let (at, port) = (folder.path(), free_port());
        ["host", "user", "stranger"].iter().for_each(|name| make_key(&at.join(name)));
        std::fs::create_dir(at.join("fragments")).expect("a folder");
        std::fs::write(at.join("authorized"), public_key(&at.join("user"))).expect("who may come in");
        let known = |key: &str| format!("[127.0.0.1]:{port} {}\n", public_key(&at.join(key)));
        std::fs::write(at.join("known_hosts"), known("host")).expect("known hosts");
        std::fs::write(at.join("wrong_hosts"), known("stranger")).expect("known hosts");
        let shown = at.display();
        // The folder for that, which Debian makes when the service is started.
        drop(std::fs::create_dir_all("/run/sshd"));
        let configuration = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {shown}/host\nPidFile {shown}/pid\nAuthorizedKeysFile {shown}/authorized\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n\
             Subsystem sftp {speaks}\nMaxStartups 100\n"
        );
        std::fs::write(at.join("configuration"), configuration).expect("a configuration");
        std::fs::set_permissions(at.join("host"), std::fs::Permissions::from_mode(0o600)).expect("a key");
        let user = Command::new("id").arg("-un").output().expect("id");
        let user = String::from_utf8_lossy(&user.stdout).trim().to_owned();
        let mut command = Command::new(found);
        command.arg("-D").arg("-f").arg(at.join("configuration"));
        Some(Self { server: Server::start(command, port), folder, user })
    }

    /// Where it keeps the files.
    #[must_use]
    pub fn files(&self) -> PathBuf {
        self.folder.path().join("fragments")
    }

    /// The file of the key of whom it lets in.
    #[must_use]
    pub fn key_file(&self) -> PathBuf {
        self.folder.path().join("user")
    }

    /// The file of a key of somebody else.
    #[must_use]
    pub fn strangers_key_file(&self) -> PathBuf {
        self.folder.path().join("stranger")
    }

    /// A file that says what its host key is.
    #[must_use]
    pub fn known_hosts(&self) -> PathBuf {
        self.folder.path().join("known_hosts")
    }

    /// A file that says that it is another one.
    #[must_use]
    pub fn wrong_hosts(&self) -> PathBuf {
        self.folder.path().join("wrong_hosts")
    }
}
