//! A server in this process, which ends with its test.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use counterfoil_provider::{Limits, Options, Tokens, serve};

/// What servers of these tests have said to whoever runs them.
pub static NOTES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A server that runs.
pub struct Host {
    pub url: String,
    stop: Option<Sender<()>>,
    running: Option<JoinHandle<()>>,
}

impl Host {
    /// One over a folder, at a port of its own or at this one.
    pub fn start(folder: &Path, port: u16, limits: Limits) -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], port));
        let note = |what: &str| NOTES.lock().expect("notes").push(what.to_owned());
        let options = Options { folder: folder.to_owned(), listen, limits, note };
        let (stop, stopped) = channel();
        let (told, tell) = channel();
        let running = std::thread::spawn(move || {
            let running = |url: &str| {
                told.send(url.to_owned()).expect("somebody waits");
                let _ = stopped.recv();
            };
            serve(options, running).expect("a server");
        });
        let url = tell.recv_timeout(Duration::from_secs(20)).expect("an address");
        Self { url, stop: Some(stop), running: Some(running) }
    }

    pub fn new(folder: &Path) -> Self {
        Self::start(folder, 0, Limits::default())
    }

    pub fn port(&self) -> u16 {
        let place = self.url.split(['/', '?']).nth(2).expect("a place");
        place.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.running.take().map(JoinHandle::join).transpose().expect("ended").unwrap_or_default();
    }
}

/// A token of a client.
pub fn token(folder: &Path, name: &str) -> String {
    let lasts = Duration::from_secs(3600);
    Tokens::in_folder(folder).add(name, lasts).expect("a token").reveal().to_owned()
}
