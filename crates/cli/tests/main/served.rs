//! A server that a test started, and what it says.

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::stage::Stage;

/// A server, killed when it is dropped.
pub struct Served {
    pub child: Child,
    pub told: Receiver<String>,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    pub fn start(stage: &Stage, words: &[&str]) -> Self {
        let mut child = stage.spawn(words);
        let (sender, told) = std::sync::mpsc::channel();
        let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, told }
    }

    /// Waits for a line that holds this.
    pub fn says(&self, part: &str) -> String {
        loop {
            let line = self.told.recv_timeout(Duration::from_secs(60)).expect("it says something");
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Ends it by a signal; its exit code.
    pub fn end(&mut self, signal: Signal) -> Option<i32> {
        kill(Pid::from_raw(i32::try_from(self.child.id()).expect("a pid")), signal).expect("sent");
        self.child.wait().expect("ends").code()
    }
}
