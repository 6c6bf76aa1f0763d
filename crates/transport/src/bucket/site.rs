//! A site in a bucket, as its owner writes it.

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use counterfoil_mirror::site::{Destination, FILE_BYTES_MAX};
use md5::{Digest as _, Md5};

use super::account::Account;
use super::address::BucketAddress;
use super::request::{Requests, Sort};
use crate::authorities::Authorities;
use crate::error::Error;

/// Requests under way at once: most of each is waiting.
const AT_ONCE: usize = 8;
/// Files and bytes that wait to be sent together.
const WAITING_MAX: usize = 64;
const WAITING_BYTES_MAX: usize = 16 << 20;
/// Lists of a thousand objects that are asked for at most. A server could go on for ever.
const LISTS_MAX: usize = 4 << 10;

/// A page never changes, and whoever has one need not ask again. All else is to be asked for each time.
const PAGE: Sort =
    Sort { content_type: "application/octet-stream", cache_control: "public, max-age=31536000, immutable" };
const OTHER: Sort = Sort { content_type: "application/octet-stream", cache_control: "no-cache" };
const TEXT: Sort = Sort { content_type: "text/plain; charset=utf-8", cache_control: "no-cache" };
const HTML: Sort = Sort { content_type: "text/html; charset=utf-8", cache_control: "no-cache" };

/// A site in a bucket. What is put waits until there is enough to be sent together, or until [`Destination::settle`].
pub struct BucketSite {
    requests: Requests,
    /// What is there: bytes, and what the server calls their version.
    known: HashMap<String, (u64, Option<String>)>,
    waiting: Vec<(String, Vec<u8>)>,
    waiting_bytes: usize,
}

impl BucketSite {
    /// The site at an address. Asks what is there already.
    ///
    /// # Errors
    /// [`Error::Denied`], [`Error::Unreachable`], [`Error::NoServer`].
    pub fn open(account: &Account, address: &BucketAddress, authorities: &Authorities) -> Result<Self, Error> {
        let requests = Requests::new(account, address.clone(), authorities)?;
        let known = known(&requests)?;
        Ok(Self { requests, known, waiting: Vec::new(), waiting_bytes: 0 })
    }

    fn send(&mut self) -> Result<(), Error> {
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        let (next, failed, requests) = (AtomicUsize::new(0), Mutex::new(None), &self.requests);
        let work = || {
            while let Some((path, bytes)) = waiting.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(error) = requests.put(path, bytes, sort(path)) {
                    // The first to fail is told of; nobody begins another one.
                    next.store(waiting.len(), Ordering::Relaxed);
                    if let Ok(mut failed) = failed.lock() {
                        failed.get_or_insert(error);
                    }
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..AT_ONCE.min(waiting.len()) {
                scope.spawn(work);
            }
            work();
        });
        failed.into_inner().unwrap_or_default().map_or(Ok(()), Err)?;
        self.known.extend(waiting.into_iter().map(|(path, bytes)| (path, (bytes.len() as u64, Some(version(&bytes))))));
        Ok(())
    }
}

/// What is there below the prefix.
fn known(requests: &Requests) -> Result<HashMap<String, (u64, Option<String>)>, Error> {
    let (mut known, mut token) = (HashMap::new(), None::<String>);
    for _ in 0..LISTS_MAX {
        let list = requests.list(token.as_deref())?;
        for object in list.contents {
            if let (Some(path), Some(size)) = (requests.address.path(&object.key), object.size) {
                known.insert(path.to_owned(), (size, object.etag.map(|etag| etag.trim_matches('"').to_owned())));
            }
        }
        let next = list.next_continuation_token;
        if next.is_none() {
            return Ok(known);
        }
        if next == token {
            break;
        }
        token = next;
    }
    Err(Error::Unreachable(requests.address.to_string(), "it lists objects without an end".into()))
}

fn sort(path: &str) -> Sort {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        _ if path.starts_with("pages/") => PAGE,
        Some("txt") => TEXT,
        Some("html") => HTML,
        _ => OTHER,
    }
}

/// How servers call the version of an object that was put in one piece: its MD5, unless they encrypt it in ways of their own.
fn version(bytes: &[u8]) -> String {
    Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a page is called so.
fn is_page(path: &str) -> bool {
    let is_hex = |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts[..], ["pages", shard, page] if is_hex(shard, 2) && is_hex(page, 30))
}

impl Destination for BucketSite {
    fn has(&mut self, path: &str, bytes: &[u8]) -> io::Result<bool> {
        let Some((_, known)) = self.known.get(path).filter(|(size, _)| *size == bytes.len() as u64) else {
            return Ok(false);
        };
        // A page is named by its bytes, so that one of this length need not be looked at.
        Ok(is_page(path) || known.as_deref() == Some(version(bytes).as_str()))
    }

    fn put(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        self.waiting_bytes += bytes.len();
        self.waiting.push((path.to_owned(), bytes.to_owned()));
        let is_enough = self.waiting.len() >= WAITING_MAX || self.waiting_bytes >= WAITING_BYTES_MAX;
        if is_enough { self.settle() } else { Ok(()) }
    }

    fn settle(&mut self) -> io::Result<()> {
        self.send().map_err(io::Error::other)
    }

    fn read(&mut self, path: &str) -> io::Result<Option<Vec<u8>>> {
        self.requests.get(path, FILE_BYTES_MAX).map_err(io::Error::other)
    }

    fn pages(&mut self) -> io::Result<Vec<String>> {
        Ok(self.known.keys().filter(|path| is_page(path)).cloned().collect())
    }

    fn remove(&mut self, path: &str) -> io::Result<()> {
        self.requests.delete(path).map_err(io::Error::other)?;
        self.known.remove(path);
        Ok(())
    }
}
