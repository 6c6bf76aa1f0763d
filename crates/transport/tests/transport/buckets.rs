//! A server of buckets: as much of S3 as a site takes, with signatures worked out here by the protocol's own description.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use hmac::{Hmac, KeyInit as _, Mac as _};
use md5::{Digest as _, Md5};
use percent_encoding::percent_decode_str;
use sha2::Sha256;

use super::server::{Reply, Request};

pub const KEY: &str = "AKIDEXAMPLE";
pub const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
pub const TOKEN: &str = "a token + of a session/=";
pub const REGION: &str = "eu-central-1";

/// Objects that a list holds: few, so that there are many.
const LISTED: usize = 7;

/// An object, and what it was put with.
#[derive(Clone)]
pub struct Object {
    pub bytes: Vec<u8>,
    pub content_type: String,
    pub cache_control: String,
}

/// What a server has, and how it behaves.
#[derive(Default)]
pub struct State {
    pub objects: BTreeMap<String, Object>,
    /// Signed requests that it answered, in their order: method and object.
    pub asked: Vec<String>,
    /// Answers in place of its own, the last one first.
    pub instead: Vec<Reply>,
    /// How many more signed requests it answers before it refuses all.
    pub left: Option<usize>,
}

/// One bucket, `prices`, that anybody may read.
#[derive(Clone, Default)]
pub struct Buckets(pub Arc<Mutex<State>>);

impl Buckets {
    pub fn state<T>(&self, with: impl FnOnce(&mut State) -> T) -> T {
        with(&mut self.0.lock().expect("no test panicked with it"))
    }

    pub fn answer(&self, request: &Request) -> Reply {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        assert!(!request.path.contains(SECRET) && request.headers.iter().all(|(_, value)| !value.contains(SECRET)));
        let Some(object) = path.strip_prefix("/prices/") else { return refused(404, "NoSuchBucket") };
        let object = percent_decode_str(object).decode_utf8_lossy().into_owned();
        self.state(|state| {
            if query.is_empty() {
                // Readers, who have no key.
                return match (&request.method[..], state.objects.get(&object)) {
                    ("GET", Some(found)) => Reply::found(found.bytes.clone()),
                    ("GET", None) => Reply::missing(),
                    _ => refused(403, "AccessDenied"),
                };
            }
            if let Some(reply) = state.instead.pop() {
                return reply;
            }
            if let Err(code) = signed(request, path, query) {
                return refused(403, code);
            }
            if let Some(left) = &mut state.left {
                let Some(fewer) = left.checked_sub(1) else { return refused(400, "InvalidRequest") };
                *left = fewer;
            }
            state.asked.push(format!("{} {object}", request.method));
            state.answer(request, object, query)
        })
    }
}

impl State {
    fn answer(&mut self, request: &Request, object: String, query: &str) -> Reply {
        match &request.method[..] {
            "GET" if object.is_empty() => self.list(query),
            "GET" => self
                .objects
                .get(&object)
                .map_or_else(|| refused(404, "NoSuchKey"), |found| Reply::found(found.bytes.clone())),
            "PUT" => {
                let header = |name| request.header(name).unwrap_or_default().to_owned();
                let (content_type, cache_control) = (header("content-type"), header("cache-control"));
                self.objects.insert(object, Object { bytes: request.body.clone(), content_type, cache_control });
                Reply::found("")
            }
            "DELETE" => {
                self.objects.remove(&object);
                Reply { status: 204, ..Reply::found("") }
            }
            _ => refused(405, "MethodNotAllowed"),
        }
    }

    fn list(&self, query: &str) -> Reply {
        let value =
            |name: &str| query.split('&').find_map(|part| Some(decoded(part.strip_prefix(name)?.strip_prefix('=')?)));
        let (prefix, after) = (value("prefix").unwrap_or_default(), value("continuation-token").unwrap_or_default());
        let found: Vec<_> =
            self.objects.iter().filter(|(name, _)| name.starts_with(&prefix) && **name > after).collect();
        let listed = &found[..found.len().min(LISTED)];
        let mut text =
            String::from("<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
        for (name, object) in listed {
            let (etag, size) = (hex(&Md5::digest(&object.bytes)), object.bytes.len());
            text +=
                &format!("<Contents><Key>{name}</Key><ETag>&quot;{etag}&quot;</ETag><Size>{size}</Size></Contents>");
        }
        if found.len() > LISTED {
            text += &format!("<NextContinuationToken>{}</NextContinuationToken>", listed[LISTED - 1].0);
        }
        text += &format!("<IsTruncated>{}</IsTruncated></ListBucketResult>", found.len() > LISTED);
        Reply::found(text)
    }
}

pub fn refused(status: u16, code: &str) -> Reply {
    Reply {
        status,
        ..Reply::found(format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>no</Message></Error>"))
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// Whether a request is signed with the key, as version 4 of signatures in a query has it.
fn signed(request: &Request, path: &str, query: &str) -> Result<(), &'static str> {
    let mut parts: Vec<&str> = query.split('&').filter(|part| !part.starts_with("X-Amz-Signature=")).collect();
    parts.sort_unstable();
    let value =
        |name: &str| query.split('&').find_map(|part| Some(decoded(part.strip_prefix(name)?.strip_prefix('=')?)));
    let scope = value("X-Amz-Credential").ok_or("AccessDenied")?;
    let scope = scope.strip_prefix(KEY).and_then(|scope| scope.strip_prefix('/')).ok_or("InvalidAccessKeyId")?;
    if value("X-Amz-Security-Token").as_deref() != Some(TOKEN) {
        return Err("InvalidToken");
    }
    let date = value("X-Amz-Date").ok_or("AccessDenied")?;
    assert_eq!(scope, format!("{}/{REGION}/s3/aws4_request", &date[..8]));
    assert!(value("X-Amz-Expires").and_then(|seconds| seconds.parse().ok()).is_some_and(|seconds: u64| seconds <= 900));
    let host = request.header("host").ok_or("AccessDenied")?;
    let canonical = format!("{}\n{path}\n{}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD", request.method, parts.join("&"));
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(&Sha256::digest(canonical.as_bytes())));
    let key = mac(format!("AWS4{SECRET}").as_bytes(), &date[..8]);
    let key = mac(&mac(&mac(&key, REGION), "s3"), "aws4_request");
    if value("X-Amz-Signature") == Some(hex(&mac(&key, &text))) { Ok(()) } else { Err("SignatureDoesNotMatch") }
}
