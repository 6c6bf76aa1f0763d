//! A connection as messages: frames come in, frames go out.
//!
//! ```text
//! frame: kind u8 | length u32, itself and the body | body
//! ```
//! 1. A length is looked at before a byte is made room for, and room grows with what comes. What is large is taken from the
//!    budget of all clients; where that has no room, its bytes go as they come.
//! 2. What goes out waits until 64 KiB are there, or until the next message would have to be waited for: so a client that sends
//!    many messages at once is answered at once, and nobody waits for what nobody sends.

use std::io::{self, BufRead, BufReader, Read as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::budget::{Budget, Held};
pub use crate::socket::Stream;
use crate::tls::Tls;

/// Bytes that wait to be sent.
const WAITING_BYTES: usize = 64 << 10;
/// Room that the first bytes of a message are given; then it doubles with what came.
const STEP_BYTES: usize = 16 << 10;
/// How long a message may take to come, and one more second for every so many bytes of it: what came of it takes room.
const PATIENCE: Duration = Duration::from_secs(10);
const SLOWEST_BYTES: usize = 256 << 10;
/// Why a message is not taken.
const TOO_LONG: Ended = Ended::Malformed("it is longer than what is taken");

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

/// A message that came, by its kind.
#[derive(Clone, Copy, Debug)]
pub enum Came {
    /// All of it: its body is in [`Wire::body`].
    Whole(u8),
    /// There was no room for it: its bytes are gone.
    Dropped(u8),
}

/// Messages over a stream.
pub struct Wire<S> {
    stream: BufReader<S>,
    budget: Arc<Budget>,
    body: Held,
    out: Vec<u8>,
}

impl<S: Stream> Wire<S> {
    /// Messages over this stream, the large ones of them within a budget.
    pub fn new(stream: S, budget: Arc<Budget>) -> Self {
        let (stream, body) = (BufReader::with_capacity(16 << 10, stream), Held::of(&budget));
        Wire { stream, budget, body, out: Vec::new() }
    }

    /// The budget.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// The next message. Idle clients are waited for without end, one in the middle of a
    /// message is not.
    ///
    /// # Errors
    /// [`Ended`].
    pub fn next(&mut self, bytes_max: usize) -> Result<Came, Ended> {
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
    ///
    /// # Errors
    /// [`Ended::Gone`].
    pub fn let_in(&mut self) -> Result<(), Ended> {
        Ok(self.stream.get_mut().let_in()?)
    }

    /// The first byte of all that a client sends.
    ///
    /// # Errors
    /// [`Ended::Gone`].
    pub fn first(&mut self) -> Result<u8, Ended> {
        self.stream.get_mut().first()?.ok_or(Ended::Gone)
    }

    /// Everything from here on goes behind TLS. A client that has sent more in clear than its request is gone: somebody on the
    /// way may have put it there, and nobody may take it for something that came behind TLS (CVE-2021-23214).
    ///
    /// # Errors
    /// [`Ended::Gone`].
    pub fn secure(&mut self, tls: &Tls, by_name: bool) -> Result<(), Ended> {
        match self.stream.buffer().is_empty() {
            true => Ok(self.stream.get_mut().secure(tls, by_name)?),
            false => Err(Ended::Gone),
        }
    }

    /// Whether it goes behind TLS.
    pub fn is_secure(&self) -> bool {
        self.stream.get_ref().is_secure()
    }

    /// Whether somebody between this machine and the client's could read along.
    pub fn is_exposed(&self) -> bool {
        !self.is_secure() && !self.stream.get_ref().is_local()
    }

    /// The next message of a client that has not shown who it is, and is not waited for.
    ///
    /// # Errors
    /// [`Ended`].
    pub fn next_of_stranger(&mut self, bytes_max: usize) -> Result<u8, Ended> {
        self.flush()?;
        match self.framed(bytes_max)? {
            Came::Whole(kind) => Ok(kind),
            Came::Dropped(_) => Err(TOO_LONG),
        }
    }

    fn framed(&mut self, bytes_max: usize) -> Result<Came, Ended> {
        let mut kind = [0];
        self.stream.read_exact(&mut kind)?;
        let is_whole = self.is_whole(bytes_max)?;
        Ok(if is_whole { Came::Whole(kind[0]) } else { Came::Dropped(kind[0]) })
    }

    /// The next message of those that have no kind: the first ones of a connection.
    ///
    /// # Errors
    /// [`Ended`].
    pub fn unframed(&mut self, bytes_max: usize) -> Result<(), Ended> {
        if self.is_whole(bytes_max)? { Ok(()) } else { Err(TOO_LONG) }
    }

    /// Reads a length and as many bytes; false where there is no room for them.
    fn is_whole(&mut self, bytes_max: usize) -> Result<bool, Ended> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        let Some(length) = length.checked_sub(4) else {
            return Err(Ended::Malformed("its length is less than itself"));
        };
        if length > bytes_max {
            return Err(TOO_LONG);
        }
        let until = Instant::now() + PATIENCE + Duration::from_secs((length / SLOWEST_BYTES) as u64);
        self.body.clear();
        while self.body.len() < length {
            let step = (length - self.body.len()).min(self.body.len().max(STEP_BYTES));
            // Of the budget a message takes what came of it and as much again: a length alone takes nothing.
            if !self.body.is_enlarged(self.body.len() + step) {
                let left = length - self.body.len();
                self.body.clear();
                self.read(left, until, |_, _| ())?;
                return Ok(false);
            }
            self.read(step, until, |body, bytes| body.extend_from_slice(bytes))?;
        }
        Ok(true)
    }

    /// Takes so many bytes as they come.
    fn read(&mut self, bytes: usize, until: Instant, take: impl Fn(&mut Vec<u8>, &[u8])) -> Result<(), Ended> {
        let mut left = bytes;
        while left > 0 {
            let came = self.stream.fill_buf()?;
            let count = came.len().min(left);
            if count == 0 {
                return Err(Ended::Gone);
            }
            take(self.body.bytes(), &came[..count]);
            self.stream.consume(count);
            left -= count;
            if left > 0 && Instant::now() > until {
                return Err(Ended::Malformed("it comes too slowly"));
            }
        }
        Ok(())
    }

    /// The body of the message that came last.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Takes the body of the message that came last away, so that it can be read while answers are written.
    pub fn take_body(&mut self) -> Held {
        std::mem::replace(&mut self.body, Held::of(&self.budget))
    }

    /// Gives its room back for the next one.
    pub fn give_back(&mut self, mut body: Held) {
        body.clear();
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
            io::Write::write_all(self.stream.get_mut(), &self.out)?;
            self.out.clear();
            self.out.shrink_to(2 * WAITING_BYTES);
        }
        Ok(io::Write::flush(self.stream.get_mut())?)
    }

    /// Sends what waits, and that nothing more comes. A client that is gone is not told.
    pub fn close(mut self) {
        let _ = self.flush().and_then(|()| Ok(self.stream.get_mut().close()?));
    }
}

/// Appends a text and the zero that ends it. A zero inside would end it too: it is left out.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|byte| *byte != 0));
    out.push(0);
}
