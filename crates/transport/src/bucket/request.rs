//! Signed requests, tried again while it helps.

use std::io::Read as _;
use std::thread;
use std::time::{Duration, SystemTime};

use rusty_s3::actions::{ListObjectsV2, ListObjectsV2Response};
use rusty_s3::{Bucket, S3Action};
use ureq::http::Response;
use ureq::{Agent, Body};
use url::Url;

use super::account::Account;
use super::address::BucketAddress;
use crate::authorities::Authorities;
use crate::error::{Denial, Error};
use crate::vouched;

/// How long a signed request counts. One that was overheard is of use to nobody afterwards.
const SIGNED_FOR: Duration = Duration::from_secs(300);
/// For a request with its body, each time that it is tried.
const PATIENCE: Duration = Duration::from_secs(300);
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// How often a request is tried, and how long it is waited after the first time; twice as long after each other.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);
/// Bytes of what a server says beside files, at most: a thousand names of objects, or an error.
const REPLY_BYTES_MAX: u64 = 8 << 20;
/// How wrong this machine's clock may be before it is told of as the reason.
const CLOCK_ERROR: Duration = Duration::from_secs(240);

/// A bucket, and the way to it.
pub(super) struct Requests {
    agent: Agent,
    account: Account,
    bucket: Bucket,
    pub address: BucketAddress,
}

/// How an object is told to whoever caches it.
#[derive(Clone, Copy)]
pub(super) struct Sort {
    pub content_type: &'static str,
    pub cache_control: &'static str,
}

impl Requests {
    pub fn new(account: &Account, address: BucketAddress, authorities: &Authorities) -> Result<Self, Error> {
        let bucket = account.bucket(&address)?;
        let config = Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .timeout_connect(Some(CONNECT_PATIENCE))
            // A signature is for one host: whoever leads elsewhere names a region.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .https_only(bucket.base_url().scheme() == "https")
            .tls_config(authorities.tls())
            .user_agent(concat!("counterfoil/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self { agent: config.into(), account: account.clone(), bucket, address })
    }

    /// The object of a path, at most `most` bytes; none if there is none.
    pub fn get(&self, path: &str, most: usize) -> Result<Option<Vec<u8>>, Error> {
        let object = self.address.object(path);
        self.tried(path, |this| {
            let url = this.signed(this.bucket.get_object(Some(this.account.credentials()), &object));
            let mut response = match this.answered(this.agent.get(url.as_str()).call())? {
                Some(response) => response,
                None => return Ok(None),
            };
            let mut bytes = Vec::new();
            let read = response.body_mut().as_reader().take(most as u64 + 1).read_to_end(&mut bytes);
            read.map_err(|error| Failed::Again(error.to_string()))?;
            Ok((bytes.len() <= most).then_some(bytes))
        })
    }

    /// Puts an object in its place.
    pub fn put(&self, path: &str, bytes: &[u8], sort: Sort) -> Result<(), Error> {
        let object = self.address.object(path);
        self.tried(path, |this| {
            let url = this.signed(this.bucket.put_object(Some(this.account.credentials()), &object));
            let request = this.agent.put(url.as_str()).content_type(sort.content_type);
            let sent = request.header("Cache-Control", sort.cache_control).send(bytes);
            match this.answered(sent)? {
                Some(_) => Ok(()),
                None => Err(Failed::Again("the server does not find what it is given".into())),
            }
        })
    }

    /// Removes an object, whether it is there or not.
    pub fn delete(&self, path: &str) -> Result<(), Error> {
        let object = self.address.object(path);
        self.tried(path, |this| {
            let url = this.signed(this.bucket.delete_object(Some(this.account.credentials()), &object));
            this.answered(this.agent.delete(url.as_str()).call()).map(drop)
        })
    }

    /// A thousand of the objects of the site, those behind the last time's if `token` is what was said then.
    pub fn list(&self, token: Option<&str>) -> Result<ListObjectsV2Response, Error> {
        self.tried("the list of objects", |this| {
            let mut list = this.bucket.list_objects_v2(Some(this.account.credentials()));
            list.with_prefix(this.address.object(""));
            token.into_iter().for_each(|token| list.with_continuation_token(token.to_owned()));
            let url = this.signed(list);
            let none = || Failed::Again("the server lists nothing".into());
            let mut response = this.answered(this.agent.get(url.as_str()).call())?.ok_or_else(none)?;
            let text = said(&mut response).ok_or_else(|| Failed::Again("the list of objects broke off".into()))?;
            ListObjectsV2::parse_response(&text)
                .map_err(|_| Failed::Again("a list of objects that makes no sense".into()))
        })
    }

    fn signed<'a>(&self, action: impl S3Action<'a>) -> Url {
        action.sign(SIGNED_FOR)
    }

    /// Does it until it is done, or trying again is of no use.
    fn tried<T>(&self, what: &str, once: impl Fn(&Self) -> Result<T, Failed>) -> Result<T, Error> {
        let (mut left, mut pause) = (TRIES, PAUSE);
        loop {
            left -= 1;
            let place = || self.address.to_string();
            match once(self) {
                Ok(done) => return Ok(done),
                Err(Failed::Denied(denial)) => return Err(Error::Denied(place(), denial)),
                Err(Failed::Again(why)) if left == 0 => {
                    return Err(Error::Unreachable(place(), format!("{what}: {why}")));
                }
                Err(Failed::Again(_)) => thread::sleep(pause),
            }
            pause *= 2;
        }
    }

    /// The response, if it is what was wanted; none if there is no such object.
    fn answered(&self, sent: Result<Response<Body>, ureq::Error>) -> Result<Option<Response<Body>>, Failed> {
        let mut response = sent.map_err(|error| match vouched::is_refused(&error) {
            // Nobody comes to be believed by being asked again.
            true => Failed::Denied(Denial::NotVouched(vouched::told(&error))),
            false => Failed::Again(vouched::told(&error)),
        })?;
        let status = response.status().as_u16();
        if (200..300).contains(&status) {
            return Ok(Some(response));
        }
        let region = header(&response, "x-amz-bucket-region");
        let date = header(&response, "date");
        let code = said(&mut response).as_deref().and_then(code).unwrap_or_default();
        match (status, &code[..]) {
            (404, "NoSuchBucket") => Err(Failed::Denied(Denial::NoBucket)),
            (_, "InvalidAccessKeyId" | "ExpiredToken" | "InvalidToken") => Err(Failed::Denied(Denial::Key(code))),
            (404 | 410, _) => Ok(None),
            (_, "RequestTimeTooSkewed") => Err(Failed::Denied(Denial::Clock)),
            (301 | 307 | 308, _)
            | (_, "AuthorizationHeaderMalformed" | "PermanentRedirect" | "IllegalLocationConstraintException") => {
                Err(Failed::Denied(Denial::Region(region.filter(|region| is_word(region)))))
            }
            (401 | 403, _) if date.as_deref().is_some_and(is_far) => Err(Failed::Denied(Denial::Clock)),
            (_, "SignatureDoesNotMatch") => Err(Failed::Denied(Denial::Key(code))),
            (401 | 403, _) => Err(Failed::Denied(Denial::NotAllowed)),
            (408 | 409 | 429 | 500.., _) => {
                Err(Failed::Again(format!("the server says {status} {code}").trim_end().to_owned()))
            }
            _ => Err(Failed::Denied(Denial::Refused(format!("{status} {code}").trim_end().to_owned()))),
        }
    }
}

/// Why a request was not done.
enum Failed {
    /// It may be the next time.
    Again(String),
    /// It will not be.
    Denied(Denial),
}

fn header(response: &Response<Body>, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

/// What a server says beside files.
fn said(response: &mut Response<Body>) -> Option<String> {
    let mut text = String::new();
    let read = response.body_mut().as_reader().take(REPLY_BYTES_MAX).read_to_string(&mut text);
    read.ok().map(|_| text)
}

/// The word by which a server tells what is wrong.
fn code(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    is_word(code).then(|| code.to_owned())
}

/// Whether a server's word can be told to people.
fn is_word(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Whether a server's time is another one than here.
fn is_far(date: &str) -> bool {
    let (Ok(theirs), ours) = (httpdate::parse_http_date(date), SystemTime::now()) else { return false };
    ours.duration_since(theirs).or_else(|_| theirs.duration_since(ours)).is_ok_and(|apart| apart > CLOCK_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_server_is_told_if_it_is_one() {
        let error = "<?xml version=\"1.0\"?><Error><Code>NoSuchBucket</Code><Message>no</Message></Error>";
        assert_eq!(code(error).as_deref(), Some("NoSuchBucket"));
        for other in ["", "<Code>", "<Code></Code>", "<Code>a b</Code>", "<Code>\x1b[31m</Code>"] {
            assert_eq!(code(other), None, "{other}");
        }
        assert_eq!(code(&format!("<Code>{}</Code>", "a".repeat(65))), None);
    }

    #[test]
    fn a_clock_is_wrong_if_it_is_far_from_the_servers() {
        let at = |seconds: u64, before: bool| {
            let (now, away) = (SystemTime::now(), Duration::from_secs(seconds));
            httpdate::fmt_http_date(if before { now - away } else { now + away })
        };
        assert!(is_far(&at(900, true)) && is_far(&at(900, false)));
        assert!(!is_far(&at(60, true)) && !is_far(&at(60, false)) && !is_far("yesterday"));
    }
}
