//! What a client copies in, as a stream of bytes.

use std::io::{self, BufRead, Read};

use crate::budget::Held;
use crate::request::Request;
use crate::wire::{Came, Ended, Stream, Wire};

/// How what is copied in ended.
#[derive(Debug)]
pub enum CopyEnd {
    /// It goes on.
    Coming,
    /// All of it came.
    Done,
    /// The client gave up.
    GivenUp,
    /// All of it came, and for some of it there was no room.
    Dropped,
    /// The connection is over.
    Over(Ended),
}

/// The rows of COPY ... FROM STDIN.
pub struct CopyIn<'a, S> {
    wire: &'a mut Wire<S>,
    bytes_max: usize,
    piece: Held,
    at: usize,
    is_dropped: bool,
    end: CopyEnd,
}

impl<'a, S: Stream> CopyIn<'a, S> {
    /// What comes over this connection.
    pub fn new(wire: &'a mut Wire<S>, bytes_max: usize) -> Self {
        let piece = Held::of(wire.budget());
        CopyIn { wire, bytes_max, piece, at: 0, is_dropped: false, end: CopyEnd::Coming }
    }

    /// Reads on to its end, whatever comes, and says how it ended.
    pub fn finish(mut self) -> CopyEnd {
        while matches!(self.end, CopyEnd::Coming) {
            self.more();
        }
        if self.is_dropped && matches!(self.end, CopyEnd::Done) { CopyEnd::Dropped } else { self.end }
    }

    /// The next piece that has bytes, or the end.
    fn more(&mut self) {
        self.at = 0;
        self.piece.clear();
        while self.piece.is_empty() && matches!(self.end, CopyEnd::Coming) {
            let kind = match self.wire.next(self.bytes_max) {
                Ok(Came::Whole(kind)) => kind,
                Ok(Came::Dropped(_)) => {
                    self.is_dropped = true;
                    return;
                }
                Err(ended) => {
                    self.end = CopyEnd::Over(ended);
                    return;
                }
            };
            match Request::read(kind, self.wire.body()) {
                Ok(Request::CopyData(_)) => self.piece = self.wire.take_body(),
                Ok(Request::CopyDone) => self.end = CopyEnd::Done,
                Ok(Request::CopyFail(_)) => self.end = CopyEnd::GivenUp,
                // Clients that send messages ahead may ask for what comes anyway.
                Ok(Request::Flush | Request::Sync) => {}
                Ok(Request::Terminate) => self.end = CopyEnd::Over(Ended::Gone),
                Ok(_) => {
                    self.end = CopyEnd::Over(Ended::Malformed("rows are to be copied in, and something else came"))
                }
                Err(malformed) => self.end = CopyEnd::Over(Ended::Malformed(malformed.0)),
            }
        }
    }
}

impl<S: Stream> Read for CopyIn<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl<S: Stream> BufRead for CopyIn<'_, S> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.piece.len() {
            self.more();
        }
        match self.end {
            _ if self.is_dropped => Err(io::Error::other("there is no room for the rows")),
            CopyEnd::GivenUp => Err(io::Error::other("the client gave the rows up")),
            CopyEnd::Over(_) => Err(io::ErrorKind::ConnectionAborted.into()),
            CopyEnd::Coming | CopyEnd::Done | CopyEnd::Dropped => Ok(&self.piece[self.at..]),
        }
    }

    fn consume(&mut self, bytes: usize) {
        self.at += bytes;
    }
}
