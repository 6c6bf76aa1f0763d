//! The way to a TPM: a character device of the system, or the socket of an emulator. One command, one response.
//!
//! ```text
//! command:   tag u16 | bytes u32 | command code u32  | handles, sessions, parameters
//! response:  tag u16 | bytes u32 | response code u32 | handles, parameters, sessions
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use std::vec::Vec;
use std::{thread, vec};

use zeroize::Zeroizing;

use super::wire::{BYTES_MAX, Reader};
use crate::TpmError;

/// A response without sessions, and a command without.
pub(super) const NO_SESSIONS: u16 = 0x8001;
/// With.
pub(super) const SESSIONS: u16 = 0x8002;
const HEAD_BYTES: usize = 10;
/// A socket that is silent for so long has nobody at its other end. Devices have limits of their own.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a TPM that asks for another try is given one.
const RETRY: Duration = Duration::from_secs(10);

/// An open way to a TPM.
pub(super) struct Link(Stream);

enum Stream {
    Device(File),
    Socket(UnixStream),
}

impl Link {
    pub(super) fn open(path: &Path) -> Result<Link, TpmError> {
        let begun = Instant::now();
        loop {
            match open(path) {
                Ok(stream) => return Ok(Link(stream)),
                Err(error) if error.kind() == ErrorKind::NotFound => return Err(TpmError::Absent),
                // The device without a resource manager is one program's at a time.
                Err(error) if error.kind() == ErrorKind::ResourceBusy && begun.elapsed() < RETRY => pause(),
                Err(error) => return Err(failed("opened", &error)),
            }
        }
    }

    /// Sends a command, again as long as the TPM asks for that, and answers what follows the response code.
    pub(super) fn exchange(&mut self, command: &[u8], operation: &'static str) -> Result<Zeroizing<Vec<u8>>, TpmError> {
        let begun = Instant::now();
        loop {
            let response = self.0.exchange(command).map_err(|error| failed(operation, &error))?;
            let mut head = Reader::new(&response, operation);
            let (tag, bytes, code) = (head.u16()?, head.u32()?, head.u32()?);
            if bytes as usize != response.len() {
                return Err(TpmError::Malformed { operation });
            }
            match code {
                // Without this check somebody in between could leave the sessions, and so all MACs, away.
                0 if command.get(..2) != Some(&tag.to_be_bytes()) => return Err(TpmError::Malformed { operation }),
                0 => return Ok(Zeroizing::new(response[HEAD_BYTES..].to_vec())),
                code if asks_for_another_try(code) && begun.elapsed() < RETRY => pause(),
                code => return Err(TpmError::Refused { operation, code }),
            }
        }
    }
}

fn open(path: &Path) -> io::Result<Stream> {
    if !fs::metadata(path)?.file_type().is_socket() {
        return OpenOptions::new().read(true).write(true).open(path).map(Stream::Device);
    }
    let socket = UnixStream::connect(path)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(Stream::Socket(socket))
}

impl Stream {
    fn exchange(&mut self, command: &[u8]) -> io::Result<Zeroizing<Vec<u8>>> {
        let mut response = Zeroizing::new(vec![0; BYTES_MAX]);
        let count = match self {
            // The driver takes a command whole, and gives a response whole.
            Stream::Device(file) => {
                file.write_all(command)?;
                file.read(&mut response)?
            }
            Stream::Socket(socket) => {
                socket.write_all(command)?;
                let (head, rest) = response.split_at_mut(HEAD_BYTES);
                socket.read_exact(head)?;
                let bytes = u32::from_be_bytes([head[2], head[3], head[4], head[5]]) as usize;
                let rest = bytes.checked_sub(HEAD_BYTES).and_then(|bytes| rest.get_mut(..bytes));
                socket.read_exact(rest.ok_or(ErrorKind::InvalidData)?)?;
                bytes
            }
        };
        response.truncate(count);
        Ok(response)
    }
}

fn asks_for_another_try(code: u32) -> bool {
    // Yielded, testing itself, writing too often, or simply "again".
    matches!(code, 0x908 | 0x90A | 0x920 | 0x922)
}

fn pause() {
    thread::sleep(Duration::from_millis(20));
}

fn failed(operation: &'static str, error: &io::Error) -> TpmError {
    match error.kind() {
        ErrorKind::InvalidData => TpmError::Malformed { operation },
        // A peer that went away in the middle has no number: connection reset.
        ErrorKind::UnexpectedEof => TpmError::System { operation, code: 104 },
        _ => TpmError::System { operation, code: error.raw_os_error().unwrap_or(0) },
    }
}
