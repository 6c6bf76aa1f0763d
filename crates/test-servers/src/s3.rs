//! An S3 server of a test's own: versitygw, which keeps objects as files of a folder.

use std::path::PathBuf;
use std::process::Command;

use crate::server::{Server, free_port, is_server, missing};

/// What `scripts/versitygw` builds into the target folder.
const PROGRAM: &str = "versitygw/bin/versitygw";

/// An S3 server that ends with the test. It has one user, and a bucket `fragments`.
pub struct S3Server {
    server: Server,
    folder: tempfile::TempDir,
}

is_server!(S3Server);

/// The program, in the target folder that this test was built into.
fn program() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    own.ancestors().map(|folder| folder.join(PROGRAM)).find(|path| path.exists())
}

impl S3Server {
    /// Who may ask it.
    pub const KEY: &str = "counterfoil-test";
    /// And what they show.
    pub const SECRET: &str = "not-a-secret/of-anybody";
    /// The bucket that is there.
    pub const BUCKET: &str = "fragments";

    /// Starts one; none where it was not built, which in CI is a failure.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts one that lets nobody write.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start_read_only() -> Option<Self> {
        Self::start_with(&["--readonly"])
    }

    fn start_with(options: &[&str]) -> Option<Self> {
        let Some(program) = program() else {
            missing("versitygw", "scripts/versitygw builds it, with Go");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let port = free_port();
        std::fs::create_dir_all(folder.path().join("objects").join(Self::BUCKET)).expect("a bucket");
        let mut command = Command::new(program);
        command.env("ROOT_ACCESS_KEY", Self::KEY).env("ROOT_SECRET_KEY", Self::SECRET).env("HOME", folder.path());
        command
            .args(["--port", &format!("127.0.0.1:{port}")])
            .args(options)
            .arg("posix")
            .arg(folder.path().join("objects"));
        Some(Self { server: Server::start(command, port), folder })
    }

    /// Where it keeps the objects of its bucket, as files.
    #[must_use]
    pub fn objects(&self) -> PathBuf {
        self.folder.path().join("objects").join(Self::BUCKET)
    }

    /// Its address.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", std::net::SocketAddr::from(([127, 0, 0, 1], self.port())))
    }
}
