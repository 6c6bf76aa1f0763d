//! Pages of any origin may read what is served here, and ask.
//!
//! A browser keeps what one site answers from the pages of others, since an answer may be meant for whoever has a cookie
//! there. Here it is meant for everybody: no cookie and no password decides anything, and what is asked is checked by whoever
//! asks. So a verifier's page may lie anywhere, on a disk too. Updates are the owner's and no page's: they stay closed.

use hyper::StatusCode;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE,
    ALLOW, CACHE_CONTROL, HeaderValue,
};

use crate::held::Held;
use crate::reply::Reply;

/// Lets pages of any origin see a reply.
pub(crate) fn open(reply: &mut Reply) {
    reply.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
}

/// What a browser is told that asks in advance whether a page may use `method`.
pub(crate) fn preflight(method: &'static str) -> Reply {
    let mut reply = Reply::new(Held::new(Vec::new(), None));
    *reply.status_mut() = StatusCode::NO_CONTENT;
    let headers = reply.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static(method));
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(method));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("content-type"));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    open(&mut reply);
    reply
}
