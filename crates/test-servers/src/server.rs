//! A server that is started, listens at a port of this machine, and is killed, stopped and started again.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// One that runs, or ran.
pub(crate) struct Server {
    command: Command,
    /// Where it listens.
    pub port: u16,
    /// A folder of files that one that was killed leaves in a state that the next one waits for, for ever.
    scratch: Option<PathBuf>,
    running: Option<Child>,
}

/// A port that nobody has.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port()
}

/// The first of some programs that is there.
pub(crate) fn program(paths: &[&str]) -> Option<String> {
    paths.iter().find(|path| std::path::Path::new(path).exists()).map(|path| (*path).to_owned())
}

/// Says that something is not installed; in CI that is a failure.
pub(crate) fn missing(what: &str, how: &str) {
    assert!(!crate::is_ci(), "{what} is not installed");
    println!("{what} is not installed ({how}): not tested");
}

impl Server {
    pub fn start(command: Command, port: u16) -> Self {
        Self::start_with_scratch(command, port, None)
    }

    pub fn start_with_scratch(mut command: Command, port: u16, scratch: Option<PathBuf>) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Self { command, port, scratch, running: None };
        server.run();
        server
    }

    /// Starts it, and waits until it listens.
    pub fn run(&mut self) {
        for file in self.scratch.iter().flat_map(|folder| std::fs::read_dir(folder).expect("a folder")) {
            std::fs::remove_file(file.expect("a file").path()).expect("removed");
        }
        let mut running = self.command.spawn().expect("a server");
        for _ in 0..600 {
            if TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], self.port))).is_ok() {
                self.running = Some(running);
                return;
            }
            if let Some(status) = running.try_wait().expect("its state") {
                panic!("{:?} ended: {status}", self.command.get_program());
            }
            thread::sleep(Duration::from_millis(100));
        }
        crate::process::kill_all(running);
        panic!("{:?} does not come up", self.command.get_program());
    }

    pub fn kill(&mut self) {
        self.running.take().into_iter().for_each(crate::process::kill_all);
    }

    pub fn signal(&self, signal: &str) {
        crate::process::signal(self.running.as_ref().expect("a server that runs"), signal);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What tests do with a server: each of them has it.
macro_rules! is_server {
    ($name:ident) => {
        impl $name {
            /// Where it listens, on this machine alone.
            #[must_use]
            pub fn port(&self) -> u16 {
                self.server.port
            }

            /// Kills it, and all that it began.
            pub fn kill(&mut self) {
                self.server.kill();
            }

            /// Starts it again after it was killed.
            ///
            /// # Panics
            /// If it does not come up.
            pub fn run(&mut self) {
                self.server.run();
            }

            /// Stops it and all that it began, as a machine that hangs: connections stay, and nobody answers.
            ///
            /// # Panics
            /// If it does not run.
            pub fn stop(&self) {
                self.server.signal("-STOP");
            }

            /// Has it go on where it was stopped.
            ///
            /// # Panics
            /// If it does not run.
            pub fn go_on(&self) {
                self.server.signal("-CONT");
            }
        }
    };
}
pub(crate) use is_server;
