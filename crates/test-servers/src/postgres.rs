//! A PostgreSQL of a test's own.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use ::postgres::{Client, NoTls};

/// A PostgreSQL that ends with the test. Its user is `mirror`, its database `postgres`; whoever reaches it needs no password.
pub struct PostgresServer {
    folder: tempfile::TempDir,
    programs: PathBuf,
    user: Option<(u32, u32)>,
    /// Where it listens, on this machine alone.
    pub port: u16,
    is_encrypted: bool,
    running: Option<Child>,
}

/// Where Debian puts PostgreSQL's programs, of the newest version.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.filter_map(Result::ok).map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        versions.map(|path| path.join("bin")).filter(|path| path.join("initdb").exists()).collect();
    found.sort();
    found.pop()
}

/// PostgreSQL does not run as root: then as its own user.
fn user() -> Option<(u32, u32)> {
    let number = |arguments: &[&str]| {
        let output = Command::new("id").args(arguments).output().expect("id");
        String::from_utf8_lossy(&output.stdout).trim().parse::<u32>().expect("a user: Debian's package makes it")
    };
    (number(&["-u"]) == 0).then(|| (number(&["-u", "postgres"]), number(&["-g", "postgres"])))
}

impl PostgresServer {
    /// Starts one; none where it is not installed, which in CI is a failure.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::start_with(None)
    }

    /// Starts one that wants connections to be encrypted, with a certificate and its key in PEM.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start_with_tls(certificate: &str, key: &str) -> Option<Self> {
        Self::start_with(Some((certificate, key)))
    }

    fn start_with(tls: Option<(&str, &str)>) -> Option<Self> {
        let Some(programs) = programs() else {
            assert!(!crate::is_ci(), "PostgreSQL is not installed");
            println!("PostgreSQL is not installed (Debian: postgresql): not tested");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let user = user();
        if let Some((uid, gid)) = user {
            std::os::unix::fs::chown(folder.path(), Some(uid), Some(gid)).expect("its folder");
        }
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        let mut server = Self { folder, programs, user, port, is_encrypted: tls.is_some(), running: None };
        let data = server.data();
        let made =
            server.command("initdb").arg("-D").arg(&data).args(["-U", "mirror", "-A", "trust", "--no-sync"]).output();
        let made = made.expect("initdb");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        tls.into_iter().for_each(|(certificate, key)| server.encrypt(certificate, key));
        server.run();
        Some(server)
    }

    /// Has it take no connections over a network but encrypted ones.
    fn encrypt(&self, certificate: &str, key: &str) {
        let own = |name: &str, text: &str| {
            let path = self.data().join(name);
            std::fs::write(&path, text).expect("a file");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("its rights");
            if let Some((uid, gid)) = self.user {
                std::os::unix::fs::chown(&path, Some(uid), Some(gid)).expect("its owner");
            }
        };
        own("server.crt", certificate);
        own("server.key", key);
        own("pg_hba.conf", "local all all trust\nhostssl all all 127.0.0.1/32 trust\n");
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(Path::new("/")).env("LC_ALL", "C.UTF-8").stdin(Stdio::null()).stdout(Stdio::null());
        if let Some((uid, gid)) = self.user {
            command.gid(gid).uid(uid);
        }
        command
    }

    /// Starts it again after it was killed.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn run(&mut self) {
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).arg("-k").arg(self.folder.path());
        command.args(["-c", "listen_addresses=127.0.0.1", "-p", &self.port.to_string()]).stderr(Stdio::null());
        if self.is_encrypted {
            command.args(["-c", "ssl=on"]);
        }
        self.running = Some(command.spawn().expect("PostgreSQL"));
        let socket = format!("host={} port={} user=mirror dbname=postgres", self.folder.path().display(), self.port);
        for _ in 0..600 {
            if Client::connect(&socket, NoTls).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
        panic!("PostgreSQL does not come up");
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.running.take().into_iter().for_each(crate::process::kill);
    }

    /// Stops it and all that it began, as a machine that hangs: connections stay, and nobody answers.
    ///
    /// # Panics
    /// If it does not run.
    pub fn stop(&self) {
        self.signal("-STOP");
    }

    /// Has it go on where it was stopped.
    ///
    /// # Panics
    /// If it does not run.
    pub fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let running = self.running.as_ref().expect("a server that runs");
        crate::process::signal(running, signal);
    }

    /// Its address, by way of a port that leads to it.
    #[must_use]
    pub fn url(&self, port: u16) -> String {
        format!("postgres://{}@{}/postgres", "mirror", SocketAddr::from(([127, 0, 0, 1], port)))
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
    }
}
