//! A request's body on its way from the network to the thread that reads its lines.
//!
//! Pieces go through a channel that holds two of them, so that a client can be no faster than its lines are read. The
//! body ends with a piece that says so: where the client goes away before, the lines end in an error, and half a line is
//! not taken for a whole one.

use std::fmt;
use std::io::{self, Read};
use std::time::Duration;

use bytes::{Buf, Bytes};
use flate2::read::MultiGzDecoder;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use crate::listener::limits::Limits;

/// What a client that was refused may still send before its connection is closed, so that it reads the answer.
const DRAIN_BYTES_MAX: usize = 1 << 20;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a body was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFault {
    TooLarge,
    Slow,
    Aborted,
}

impl fmt::Display for BodyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BodyFault::TooLarge => "too large",
            BodyFault::Slow => "too slow",
            BodyFault::Aborted => "the body ended before its end",
        })
    }
}

impl std::error::Error for BodyFault {}

pub(crate) enum Piece {
    Bytes(Bytes),
    End,
    Fault(BodyFault),
}

/// Sends the body into the channel until it ends, fails, or nobody reads it any more.
pub(crate) async fn pump(body: &mut Incoming, pieces: mpsc::Sender<Piece>, limits: &Limits) {
    let begun = Instant::now();
    let mut received = 0;
    loop {
        let earned = Duration::from_secs((received / limits.body_bytes_per_second_min.max(1)) as u64);
        let frame = timeout_at(begun + limits.body_timeout + earned, body.frame()).await;
        let piece = match frame {
            Err(_) => Piece::Fault(BodyFault::Slow),
            Ok(None) => Piece::End,
            Ok(Some(Err(_))) => Piece::Fault(BodyFault::Aborted),
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(bytes) => {
                    received += bytes.len();
                    if received > limits.body_bytes_max {
                        Piece::Fault(BodyFault::TooLarge)
                    } else {
                        Piece::Bytes(bytes)
                    }
                }
                Err(_trailers) => continue,
            },
        };
        let last = !matches!(piece, Piece::Bytes(_));
        if pieces.send(piece).await.is_err() || last {
            return;
        }
    }
}

/// Reads a small body whole; none where it is larger, slower or cut short.
pub(crate) async fn whole(body: &mut Incoming, bytes_max: usize, limits: &Limits) -> Option<Vec<u8>> {
    let collect = async {
        let mut whole = Vec::new();
        while let Some(frame) = body.frame().await {
            if let Ok(bytes) = frame.ok()?.into_data() {
                whole.extend_from_slice(&bytes);
            }
            if whole.len() > bytes_max {
                return None;
            }
        }
        Some(whole)
    };
    timeout(limits.body_timeout, collect).await.ok()?
}

/// Reads on a little, so that a client in the middle of sending sees the answer and not a reset connection.
pub(crate) async fn drain(body: &mut Incoming) {
    let drained = async {
        let mut bytes = 0;
        while let Some(Ok(frame)) = body.frame().await {
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if bytes > DRAIN_BYTES_MAX {
                return;
            }
        }
    };
    let _ = timeout(DRAIN_TIMEOUT, drained).await;
}

/// The channel's other end, as a stream of bytes.
struct Pieces {
    pieces: mpsc::Receiver<Piece>,
    current: Bytes,
    ended: bool,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() && !self.ended {
            match self.pieces.blocking_recv() {
                Some(Piece::Bytes(bytes)) => self.current = bytes,
                Some(Piece::End) => self.ended = true,
                Some(Piece::Fault(fault)) => return Err(io::Error::other(fault)),
                None => return Err(io::Error::other(BodyFault::Aborted)),
            }
        }
        let bytes = buffer.len().min(self.current.len());
        self.current.copy_to_slice(&mut buffer[..bytes]);
        Ok(bytes)
    }
}

/// At most so many bytes of a stream; one more is an error. It stands behind the unpacking.
struct Bounded<R> {
    source: R,
    left: usize,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.left = self.left.checked_sub(read).ok_or_else(|| io::Error::other(BodyFault::TooLarge))?;
        Ok(read)
    }
}

/// The text of a body, unpacked where it is packed, and never more than `bytes_max` of it.
pub(crate) fn text(pieces: mpsc::Receiver<Piece>, gzip: bool, bytes_max: usize) -> Box<dyn Read + Send> {
    let pieces = Pieces { pieces, current: Bytes::new(), ended: false };
    match gzip {
        true => Box::new(Bounded { source: MultiGzDecoder::new(pieces), left: bytes_max }),
        false => Box::new(Bounded { source: pieces, left: bytes_max }),
    }
}

/// What an error of that stream was; none where the packing is at fault.
pub(crate) fn fault_of(error: &io::Error) -> Option<BodyFault> {
    error.get_ref()?.downcast_ref().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_ended_when_its_last_piece_says_so() {
        let read = |ends: bool| {
            let (sender, pieces) = mpsc::channel(2);
            sender.try_send(Piece::Bytes(Bytes::from_static(b"m a=12"))).ok().unwrap();
            if ends {
                sender.try_send(Piece::End).ok().unwrap();
            }
            drop(sender);
            let mut read = Vec::new();
            text(pieces, false, 100).read_to_end(&mut read).map(|_| read)
        };
        assert_eq!(read(true).unwrap(), b"m a=12");
        assert_eq!(fault_of(&read(false).unwrap_err()), Some(BodyFault::Aborted));
    }
}
