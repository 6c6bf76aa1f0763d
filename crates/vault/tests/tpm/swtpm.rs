//! A TPM of each test's own: `swtpm`, with its state in a folder that ends with the test.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use counterfoil_vault::Tpm;
use tempfile::TempDir;

/// An emulator that runs, or was killed.
pub struct Swtpm {
    pub folder: TempDir,
    child: Option<Child>,
}

impl Swtpm {
    /// A new TPM. `None`, said aloud, where the emulator is not installed, except in CI.
    pub fn new() -> Option<Swtpm> {
        let present = Command::new("swtpm").arg("--version").stdout(Stdio::null()).status().is_ok();
        if !present {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "swtpm is not installed (scripts/setup test)");
            eprintln!("not tested: swtpm is not installed (scripts/setup test)");
            return None;
        }
        let mut swtpm = Swtpm { folder: TempDir::new().unwrap(), child: None };
        swtpm.start();
        Some(swtpm)
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub fn tpm(&self) -> Tpm {
        Tpm::at(&self.socket())
    }

    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub fn start(&mut self) {
        let state = self.state();
        fs::create_dir_all(&state).unwrap();
        let _ = fs::remove_file(self.socket());
        let child = Command::new("swtpm")
            .args(["socket", "--tpm2", "--flags", "not-need-init,startup-clear"])
            .arg("--tpmstate")
            .arg(format!("dir={}", state.display()))
            .arg("--server")
            .arg(format!("type=unixio,path={}", self.socket().display()))
            .arg("--ctrl")
            .arg(format!("type=unixio,path={}", self.folder.path().join("control").display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.child = Some(child);
        let begun = Instant::now();
        while UnixStream::connect(self.socket()).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(20), "swtpm does not answer");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends it as a power cut does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub fn restart(&mut self) {
        self.kill();
        self.start();
    }

    /// A copy of the state, for an attacker who can put it back.
    pub fn keep_state(&self, name: &str) {
        copy(&self.state(), &self.folder.path().join(name));
    }

    pub fn put_back_state(&mut self, name: &str) {
        self.kill();
        fs::remove_dir_all(self.state()).unwrap();
        copy(&self.folder.path().join(name), &self.state());
        self.start();
    }
}

impl Drop for Swtpm {
    fn drop(&mut self) {
        self.kill();
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// What somebody on the bus does with a command (its code, its bytes): `Some` answer instead of the TPM's, which is
/// asked all the same if the closure calls it.
pub type Meddle = dyn FnMut(u32, &[u8], &mut dyn FnMut(&[u8]) -> Vec<u8>) -> Option<Vec<u8>> + Send;

/// Somebody between us and the TPM.
pub struct Interposer {
    socket: PathBuf,
    pub commands: Arc<AtomicUsize>,
}

impl Interposer {
    pub fn before(swtpm: &Swtpm, meddle: Box<Meddle>) -> Interposer {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let socket = swtpm.folder.path().join(format!("bus{number}"));
        let listener = UnixListener::bind(&socket).unwrap();
        let (behind, commands) = (swtpm.socket(), Arc::new(AtomicUsize::new(0)));
        let (meddle, counted) = (Arc::new(Mutex::new(meddle)), commands.clone());
        thread::spawn(move || {
            while let Ok((ours, _)) = listener.accept() {
                let Ok(theirs) = UnixStream::connect(&behind) else { continue };
                pass(ours, theirs, &meddle, &counted);
            }
        });
        Interposer { socket, commands }
    }

    pub fn tpm(&self) -> Tpm {
        Tpm::at(&self.socket)
    }
}

fn pass(mut ours: UnixStream, mut theirs: UnixStream, meddle: &Mutex<Box<Meddle>>, counted: &AtomicUsize) {
    while let Some(command) = message(&mut ours) {
        counted.fetch_add(1, Ordering::Relaxed);
        let mut ask = |command: &[u8]| {
            theirs.write_all(command).ok();
            message(&mut theirs).unwrap_or_default()
        };
        let code = u32::from_be_bytes(command[6..10].try_into().unwrap());
        let answer = meddle.lock().unwrap()(code, &command, &mut ask).unwrap_or_else(|| ask(&command));
        // An empty answer is a bus that was cut.
        if answer.is_empty() || ours.write_all(&answer).is_err() {
            return;
        }
    }
}

fn message(stream: &mut UnixStream) -> Option<Vec<u8>> {
    let mut message = vec![0; 10];
    stream.read_exact(&mut message).ok()?;
    let bytes = u32::from_be_bytes(message[2..6].try_into().unwrap()) as usize;
    message.resize(bytes, 0);
    stream.read_exact(&mut message[10..]).ok()?;
    Some(message)
}

/// Sends one command as it is, under the owner's empty password: what anybody on the machine can do.
pub fn by_the_owner(tpm: &Tpm, code: u32, handles: &[u32], parameters: &[u8]) -> u32 {
    let mut body: Vec<u8> = handles.iter().flat_map(|handle| handle.to_be_bytes()).collect();
    body.extend([0, 0, 0, 9, 0x40, 0, 0, 9, 0, 0, 0, 0, 0]);
    body.extend(parameters);
    let mut command = vec![0x80, 0x02];
    command.extend((body.len() as u32 + 10).to_be_bytes());
    command.extend(code.to_be_bytes());
    command.extend(body);
    let mut stream = UnixStream::connect(tpm.path()).unwrap();
    stream.write_all(&command).unwrap();
    let answer = message(&mut stream).unwrap();
    u32::from_be_bytes(answer[6..10].try_into().unwrap())
}
