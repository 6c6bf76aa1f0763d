//! A connection as messages: frames come in, frames go out.
//!
//! ```text
//! frame: kind u8 | length u32, itself and the body | body
//! ```
//! 1. A length is looked at before a byte is made room for, and room grows with what comes.
//! 2. What goes out waits until 64 KiB are there, or until the next message would have to be waited for: so a client that sends
//!    many messages at once is answered at once, and nobody waits for what nobody sends.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use crate::limits::Limits;

/// Bytes that wait to be sent.
const WAITING_BYTES: usize = 64 << 10;
/// Room that is kept between messages; what a large one took beyond it is given back.
const ROOM_KEPT: usize = 64 << 10;

/// Why a connection ends.
#[derive(Debug)]
pub enum Ended {
    /// The client is gone, or does not read.
    Gone,
    /// What it sent cannot be understood: what is wrong.
    Malformed(&'static str),
}

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Self {
        Ended::Gone
    }
}

/// A stream whose patience can be set.
pub trait Stream: Read + Write {
    /// Whether the next reads are waited for without end, or for a bounded time.
    fn be_patient(&self, without_end: bool) -> io::Result<()>;

    /// The client has shown who it is: from now on it may take its time between messages.
    fn let_in(&mut self);
}

/// A socket. A stranger has so much time for all that it has to say, however it comes.
pub struct Socket {
    stream: TcpStream,
    limits: Limits,
    stranger_until: Option<Instant>,
}

impl Socket {
    /// A socket whose client is to read within what the limits say.
    pub fn new(stream: TcpStream, limits: Limits) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(limits.patience))?;
        stream.set_write_timeout(Some(limits.write_patience))?;
        Ok(Socket { stream, limits, stranger_until: Some(Instant::now() + limits.patience) })
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(until) = self.stranger_until {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(Some(left))?;
        }
        self.stream.read(buffer)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Stream for Socket {
    fn be_patient(&self, without_end: bool) -> io::Result<()> {
        self.stream.set_read_timeout(if without_end { None } else { Some(self.limits.patience) })
    }

    fn let_in(&mut self) {
        self.stranger_until = None;
    }
}

/// Messages over a stream.
pub struct Wire<S> {
    stream: BufReader<S>,
    body: Vec<u8>,
    out: Vec<u8>,
}

impl<S: Stream> Wire<S> {
    /// Messages over this stream.
    pub fn new(stream: S) -> Self {
        Wire { stream: BufReader::with_capacity(16 << 10, stream), body: Vec::new(), out: Vec::new() }
    }

    /// The next message: its kind, and its body in [`Wire::body`]. Idle clients are waited for without end, one in the middle of a
    /// message is not.
    ///
    /// # Errors
    /// [`Ended`].
    pub fn next(&mut self, bytes_max: usize) -> Result<u8, Ended> {
        if self.stream.buffer().is_empty() {
            self.flush()?;
            self.stream.get_ref().be_patient(true)?;
            if self.stream.fill_buf()?.is_empty() {
                return Err(Ended::Gone);
            }
            self.stream.get_ref().be_patient(false)?;
        }
        self.framed(bytes_max)
    }

    /// The client has shown who it is.
    pub fn let_in(&mut self) {
        self.stream.get_mut().let_in();
    }

    /// The next message of a client that has not shown who it is, and is not waited for.
    ///
    /// # Errors
    /// [`Ended`].
    pub fn next_of_stranger(&mut self, bytes_max: usize) -> Result<u8, Ended> {
        self.flush()?;
        self.framed(bytes_max)
    }

    fn framed(&mut self, bytes_max: usize) -> Result<u8, Ended> {
        let mut kind = [0];
        self.stream.read_exact(&mut kind)?;
        self.unframed(bytes_max)?;
        Ok(kind[0])
    }

    /// The next message of those that have no kind: the first ones of a connection.
    ///
    /// # Errors
    /// [`Ended`].
    pub fn unframed(&mut self, bytes_max: usize) -> Result<(), Ended> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        let Some(length) = length.checked_sub(4) else {
            return Err(Ended::Malformed("its length is less than itself"));
        };
        if length > bytes_max {
            return Err(Ended::Malformed("it is longer than what is taken"));
        }
        self.body.clear();
        self.body.shrink_to(ROOM_KEPT);
        let came = (&mut self.stream).take(length as u64).read_to_end(&mut self.body)?;
        if came == length { Ok(()) } else { Err(Ended::Gone) }
    }

    /// The body of the message that came last.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Takes the body of the message that came last away, so that it can be read while answers are written.
    pub fn take_body(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.body)
    }

    /// Gives its room back for the next one.
    pub fn give_back(&mut self, body: Vec<u8>) {
        self.body = body;
    }

    /// Sends a message of this kind, whose body `write` appends.
    ///
    /// # Errors
    /// [`Ended::Gone`].
    pub fn send(&mut self, kind: u8, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Ended> {
        let at = self.begin(kind);
        write(&mut self.out);
        self.end(at)
    }

    /// Sends a message whose body may turn out not to be possible: then nothing of it is sent.
    ///
    /// # Errors
    /// What `write` answers; [`Ended::Gone`].
    pub fn try_send<E: From<Ended>>(
        &mut self,
        kind: u8,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let before = self.out.len();
        let at = self.begin(kind);
        if let Err(error) = write(&mut self.out) {
            self.out.truncate(before);
            return Err(error);
        }
        Ok(self.end(at)?)
    }

    fn begin(&mut self, kind: u8) -> usize {
        self.out.push(kind);
        self.out.extend_from_slice(&[0; 4]);
        self.out.len() - 4
    }

    fn end(&mut self, at: usize) -> Result<(), Ended> {
        let length = u32::try_from(self.out.len() - at).map_err(|_| Ended::Malformed("an answer is too long"))?;
        self.out[at..at + 4].copy_from_slice(&length.to_be_bytes());
        if self.out.len() < WAITING_BYTES { Ok(()) } else { self.flush() }
    }

    /// Sends a byte that is no message: what asking for encryption is answered.
    ///
    /// # Errors
    /// [`Ended::Gone`].
    pub fn send_byte(&mut self, byte: u8) -> Result<(), Ended> {
        self.out.push(byte);
        self.flush()
    }

    /// Sends what waits.
    ///
    /// # Errors
    /// [`Ended::Gone`].
    pub fn flush(&mut self) -> Result<(), Ended> {
        if !self.out.is_empty() {
            self.stream.get_mut().write_all(&self.out)?;
            self.out.clear();
            self.out.shrink_to(2 * WAITING_BYTES);
        }
        Ok(self.stream.get_mut().flush()?)
    }
}

/// Appends a text and the zero that ends it. A zero inside would end it too: it is left out.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|byte| *byte != 0));
    out.push(0);
}
