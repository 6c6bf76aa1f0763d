//! Replies: bytes, or a problem in a sentence for people.

use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use tokio::sync::OwnedSemaphorePermit;

use crate::held::Held;
use crate::store::{Refused, StoreError};

pub(crate) type Reply = Response<Held>;

/// Why a request was not done.
#[derive(Debug)]
pub(crate) enum Problem {
    NotFound(&'static str),
    Method(&'static str),
    Malformed(String),
    Forbidden(String),
    /// The update does not begin where the mirror stands.
    Conflict,
    /// A part of the table is missing yet.
    Loading,
    TooLarge(usize),
    Slow,
    Aborted,
    Busy,
    /// A thread of ours died of what it read.
    Died,
    Store(StoreError),
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Conflict => Self::Conflict,
            Refused::Forbidden(what) => Self::Forbidden(what),
            Refused::Malformed(what) => Self::Malformed(what),
        }
    }
}

impl Problem {
    fn status(&self) -> StatusCode {
        match self {
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Malformed(_) | Self::Aborted => StatusCode::BAD_REQUEST,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::Conflict => StatusCode::CONFLICT,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Loading | Self::Busy | Self::Store(StoreError::Overtaken) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Store(StoreError::TooMuch) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Store(_) | Self::Died => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::NotFound(what) => (*what).into(),
            Self::Method(method) => format!("use {method}"),
            Self::Malformed(what) => format!("malformed: {what}"),
            Self::Forbidden(what) => format!("refused: {what}"),
            Self::Conflict => "the update does not begin where this mirror stands: ask for its state".into(),
            Self::Loading => "the table is being loaded: come again".into(),
            Self::TooLarge(most) => format!("more than {most} bytes"),
            Self::Slow => "the body came too slowly".into(),
            Self::Aborted => "the body ended before its end".into(),
            Self::Busy => "too many requests at once: come again".into(),
            Self::Store(StoreError::TooMuch) => format!("{}: ask for less", StoreError::TooMuch),
            Self::Store(StoreError::Overtaken) => StoreError::Overtaken.to_string(),
            // What is wrong with its store is not everybody's affair.
            Self::Store(_) | Self::Died => "the mirror's store cannot be read or written".into(),
        }
    }

    pub(crate) fn reply(&self) -> Reply {
        let mut reply = Response::new(Held::new((self.text() + "\n").into_bytes(), None));
        *reply.status_mut() = self.status();
        let headers = reply.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.status() == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if let Self::Method(method) = self {
            headers.insert(ALLOW, HeaderValue::from_static(method));
        }
        reply
    }
}

/// Bytes for a program, with their part of the memory for replies. What they say can change with the next update, so nothing on the way may keep them.
pub(crate) fn bytes(bytes: Vec<u8>, room: OwnedSemaphorePermit) -> Reply {
    let mut reply = Response::new(Held::new(bytes, Some(room)));
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}
