//! The body of a reply, which holds its part of the memory for replies until its client has read it.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

/// Bytes that go to the connection at a time: it takes the next ones when these are on their way.
const PART_BYTES: usize = 64 << 10;

/// A body, and its part of the memory.
pub(crate) struct Held {
    bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

impl Held {
    pub(crate) fn new(bytes: Vec<u8>, room: Option<OwnedSemaphorePermit>) -> Self {
        Self { bytes: bytes.into(), _room: room }
    }
}

impl Body for Held {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.bytes.len().min(PART_BYTES);
        // A copy, so that the whole is not kept by its last part.
        let part = Bytes::copy_from_slice(&self.bytes.split_to(length));
        Poll::Ready((length > 0).then(|| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}
