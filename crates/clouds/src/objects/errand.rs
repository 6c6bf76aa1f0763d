//! The requests of one operation: how they get there, and how much may come back.
//!
//! 1. An operation makes so many requests, and takes so many bytes, whatever the server says. What it declares is looked at first, and
//!    what comes is counted.
//! 2. Nothing is led elsewhere: a key that was meant for one server is not shown to another.
//! 3. What went wrong is told from what was seen here, and not by the library's words: those repeat what was sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use counterfoil_disperse::Failure;
use futures::Stream;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::{Method, Request, Response, StatusCode};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;

use opendal::{Buffer, Error, ErrorKind, HttpBody};
use parking_lot::Mutex;

use crate::pace::Pace;

/// Bytes of a request that are handed on at once, so that it is seen how it gets on.
const PIECE_BYTES: usize = 64 << 10;

pub(crate) type Connections = Client<HttpsConnector<HttpConnector>, Sent>;

/// The requests of one operation.
pub(crate) struct Errand {
    connections: Connections,
    pace: Arc<Pace>,
    seen: Arc<Mutex<Seen>>,
}

/// What has been seen of an operation, and what it may still bring.
pub(crate) struct Seen {
    requests: u32,
    bytes: u64,
    /// What the server answered last.
    pub status: Option<StatusCode>,
    /// What ended it.
    pub failure: Option<Failure>,
}

impl Seen {
    pub fn new(requests: u32, bytes: u64) -> Self {
        Self { requests, bytes, status: None, failure: None }
    }

    /// Whether the server answered with all of an object, and nothing is wrong with that.
    pub fn gave_all(&self) -> bool {
        self.status == Some(StatusCode::OK) && self.failure.is_none()
    }

    fn take(&mut self, bytes: u64) -> Result<(), Error> {
        match self.bytes.checked_sub(bytes) {
            Some(rest) => {
                self.bytes = rest;
                Ok(())
            }
            None => Err(self.ended(Failure::Malformed("more bytes than any of ours has".into()))),
        }
    }

    fn ended(&mut self, failure: Failure) -> Error {
        let kept = self.failure.get_or_insert(failure);
        Error::new(ErrorKind::Unexpected, kept.to_string())
    }
}

impl Errand {
    pub fn new(connections: Connections, pace: Arc<Pace>, seen: Arc<Mutex<Seen>>) -> Self {
        Self { connections, pace, seen }
    }

    fn begin(&self) -> Result<(), Error> {
        let mut seen = self.seen.lock();
        seen.status = None;
        match seen.requests.checked_sub(1) {
            Some(rest) => {
                seen.requests = rest;
                Ok(())
            }
            None => Err(seen.ended(Failure::Malformed("a listing without end".into()))),
        }
    }
}

/// Why there is no answer: the innermost reason, which names no more than a host.
fn cause(error: &hyper_util::client::legacy::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

impl opendal::HttpTransport for Errand {
    async fn fetch(&self, request: Request<Buffer>) -> Result<Response<HttpBody>, Error> {
        self.begin()?;
        let is_head = request.method() == Method::HEAD;
        let request = request.map(|buffer| Sent { buffer, pace: self.pace.clone() });
        let answered = self.connections.request(request).await;
        let response = answered.map_err(|error| {
            let what = if error.is_connect() { "no connection" } else { "the connection failed" };
            self.seen.lock().ended(Failure::Unreachable(format!("{what}: {}", cause(&error))))
        })?;
        let mut seen = self.seen.lock();
        seen.status = Some(response.status());
        let (parts, incoming) = response.into_parts();
        let bytes = if is_head { None } else { incoming.size_hint().exact() };
        if bytes.is_some_and(|bytes| bytes > seen.bytes) {
            return Err(seen.ended(Failure::Malformed("more bytes than any of ours has".into())));
        }
        drop(seen);
        let received = Received { incoming, pace: self.pace.clone(), seen: self.seen.clone() };
        Ok(Response::from_parts(parts, HttpBody::new(received, bytes)))
    }
}

/// What is sent, piece by piece.
pub(crate) struct Sent {
    buffer: Buffer,
    pace: Arc<Pace>,
}

impl Body for Sent {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let own = self.get_mut();
        if own.buffer.is_empty() {
            return Poll::Ready(None);
        }
        let mut piece = own.buffer.current();
        piece.truncate(PIECE_BYTES);
        own.buffer = own.buffer.slice(piece.len()..);
        own.pace.moved(piece.len());
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.buffer.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.buffer.len() as u64)
    }
}

/// What comes, counted.
struct Received {
    incoming: Incoming,
    pace: Arc<Pace>,
    seen: Arc<Mutex<Seen>>,
}

impl Stream for Received {
    type Item = Result<Buffer, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let own = self.get_mut();
        loop {
            let Poll::Ready(frame) = Pin::new(&mut own.incoming).poll_frame(context) else { return Poll::Pending };
            let Some(frame) = frame else { return Poll::Ready(None) };
            let Ok(frame) = frame else {
                let broken = Failure::Unreachable("the connection ended in the middle of an answer".into());
                return Poll::Ready(Some(Err(own.seen.lock().ended(broken))));
            };
            let Ok(data) = frame.into_data() else { continue };
            own.pace.moved(data.len());
            return Poll::Ready(Some(own.seen.lock().take(data.len() as u64).map(|()| Buffer::from(data))));
        }
    }
}
