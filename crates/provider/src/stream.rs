//! A connection on which nobody waits longer than was said.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// A connection with a time at which it fails.
pub(crate) struct Timed {
    stream: TcpStream,
    until: Instant,
}

impl Timed {
    pub fn new(stream: TcpStream, patience: Duration) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(false)?;
        Ok(Self { stream, until: Instant::now() + patience })
    }

    /// From now on so long, however little comes at a time.
    pub fn wait(&mut self, patience: Duration) {
        self.until = Instant::now() + patience;
    }

    pub fn end(&self) {
        // Whoever has gone needs no word of it.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        match left.is_zero() {
            false => Ok(Some(left)),
            true => Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time")),
        }
    }
}

fn told(error: io::Error) -> io::Error {
    match error.kind() {
        // What the system says of a time that is over.
        io::ErrorKind::WouldBlock => io::Error::new(io::ErrorKind::TimedOut, "no answer in time"),
        _ => error,
    }
}

impl Read for Timed {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(bytes).map_err(told)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes).map_err(told)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
