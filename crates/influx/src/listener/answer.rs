//! Answers, in the words that clients of InfluxDB read.
//!
//! Telegraf and TSBS act on them like this, which is why they are what they are:
//! - Telegraf's `influxdb` drops what a 4xx answers (also 413 and 429), but creates the database on `database not found`;
//!   it sends again after a 5xx. Its `influxdb_v2` sends again after 401, 403, 429 and 5xx, waits for `Retry-After`
//!   after 429 and 503, splits after 413 and drops after any other 4xx. So what a later attempt
//!   of the same request could turn into success is a 5xx here, a body that came too slowly too; none is 429.
//! - TSBS's loader takes a status 500 whose body says `timeout` as "come again", and ends at anything else but 204. InfluxDB
//!   1 answers so when a write waited too long, and `/write` does here; `/api/v2/write` answers 503.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use crate::listener::sink::SinkError;
use crate::problem::Rejects;

/// The version that clients are told: that of the write interface.
pub(crate) const VERSION: &str = "1.8.10";
const BUILD: &str = "Counterfoil";

pub(crate) type Answer = Response<Full<Bytes>>;

/// Which of the two interfaces a request came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

/// Why a request was not done.
#[derive(Debug)]
pub(crate) enum Refusal {
    BadRequest(String),
    Unauthenticated(String),
    NotFound,
    Method(&'static str),
    Browser,
    TooLarge(usize),
    Encoding,
    Slow,
    /// The write waited too long for its turn.
    Busy(Duration),
    /// The listener is being shut down, or the ingesting thread is gone.
    Stopping(Duration),
    Sink(SinkError, Duration),
    Partial {
        lines: u64,
        rejects: Rejects,
    },
}

impl Refusal {
    fn status(&self, version: Version) -> StatusCode {
        match self {
            Refusal::BadRequest(_) | Refusal::Partial { .. } => StatusCode::BAD_REQUEST,
            Refusal::Unauthenticated(_) => StatusCode::UNAUTHORIZED,
            Refusal::NotFound => StatusCode::NOT_FOUND,
            Refusal::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Refusal::Browser => StatusCode::FORBIDDEN,
            Refusal::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Refusal::Encoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Refusal::Busy(_) if version == Version::One => StatusCode::INTERNAL_SERVER_ERROR,
            Refusal::Busy(_) | Refusal::Stopping(_) | Refusal::Slow => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::Sink(error, _) => sink_status(error),
        }
    }

    fn message(&self) -> String {
        match self {
            Refusal::BadRequest(text) | Refusal::Unauthenticated(text) => text.clone(),
            Refusal::NotFound => {
                "not found: there are /write, /api/v2/write, /query, /ping and /health here".to_owned()
            }
            Refusal::Method(allowed) => format!("method not allowed: use {allowed}"),
            Refusal::Browser => "refused: this listener does not serve web pages".to_owned(),
            Refusal::TooLarge(bytes) => format!("request too large: send at most {bytes} bytes at once, unpacked"),
            Refusal::Encoding => "unsupported content encoding: send gzip or identity".to_owned(),
            Refusal::Slow => "the body did not come in time: send it faster".to_owned(),
            Refusal::Busy(_) => "timeout: too many writes wait for the device: send it again later".to_owned(),
            Refusal::Stopping(_) => "the server is being shut down: send it again later".to_owned(),
            Refusal::Sink(error, _) => error.to_string(),
            Refusal::Partial { lines, rejects } => {
                let dropped = rejects.count();
                format!("partial write: {dropped} of {lines} lines were dropped: {rejects} dropped={dropped}")
            }
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Refusal::Busy(after) | Refusal::Stopping(after) => Some(*after),
            Refusal::Sink(SinkError::Unavailable(_) | SinkError::Full(_), after) => Some(*after),
            _ => None,
        }
    }

    /// The answer in the form of one interface.
    pub(crate) fn answer(&self, version: Version) -> Answer {
        let status = self.status(version);
        let message = self.message();
        let body = match version {
            Version::One => json!({ "error": message }),
            Version::Two => json!({ "code": code(status), "message": message }),
        };
        let mut answer = json_answer(status, &body);
        let headers = answer.headers_mut();
        headers.insert(HeaderName::from_static("x-influxdb-error"), header_text(&message));
        if let Some(after) = self.retry_after() {
            headers.insert(RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)));
        }
        if let Refusal::Method(allowed) = self {
            headers.insert(ALLOW, HeaderValue::from_static(allowed));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"InfluxDB\""));
        }
        answer
    }
}

fn sink_status(error: &SinkError) -> StatusCode {
    match error {
        SinkError::UnknownDatabase(_) => StatusCode::NOT_FOUND,
        SinkError::Unauthenticated => StatusCode::UNAUTHORIZED,
        SinkError::Forbidden(_) => StatusCode::FORBIDDEN,
        SinkError::Refused(_) => StatusCode::BAD_REQUEST,
        SinkError::Full(_) => StatusCode::INSUFFICIENT_STORAGE,
        SinkError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        SinkError::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The names that version 2 has for its errors.
fn code(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "invalid",
        StatusCode::UNAUTHORIZED => "unauthorized",
        StatusCode::FORBIDDEN => "forbidden",
        StatusCode::NOT_FOUND => "not found",
        StatusCode::METHOD_NOT_ALLOWED => "method not allowed",
        StatusCode::PAYLOAD_TOO_LARGE => "request too large",
        StatusCode::SERVICE_UNAVAILABLE => "unavailable",
        StatusCode::INTERNAL_SERVER_ERROR | StatusCode::INSUFFICIENT_STORAGE => "internal error",
        _ => "invalid",
    }
}

/// A message as a header can carry it: signs of ASCII, and not too many.
fn header_text(message: &str) -> HeaderValue {
    let text: String =
        message.chars().take(256).map(|sign| if (' '..='~').contains(&sign) { sign } else { '?' }).collect();
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("error"))
}

fn marked(mut answer: Answer) -> Answer {
    let headers = answer.headers_mut();
    headers.insert(HeaderName::from_static("x-influxdb-version"), HeaderValue::from_static(VERSION));
    headers.insert(HeaderName::from_static("x-influxdb-build"), HeaderValue::from_static(BUILD));
    answer
}

pub(crate) fn json_answer(status: StatusCode, body: &Value) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(format!("{body}\n"))));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    marked(answer)
}

/// 204.
pub(crate) fn done() -> Answer {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    marked(answer)
}
