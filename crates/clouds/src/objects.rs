//! Objects of a bucket (S3), or files of a web server (WebDAV): what is reached by OpenDAL.
//!
//! ```text
//! S3       FOLDER/TABLE/NAME                    an object comes whole or not at all
//! WebDAV   FOLDER/TABLE/NAME.part, then NAME    a file that comes in pieces is renamed when it is whole
//! ```
//! 1. The server may be anybody's. An operation has an end in time, requests and bytes whatever it says (`errand`), and a panic of the
//!    library that reads what it says is an answer that makes no sense.
//! 2. Everything here may be done again: names say what is in a file. So what did not get through is tried again, as long as there is
//!    time; the library's own layer for that is not used, it knows neither.
//! 3. Folders are parts of names here, so that the library need not find out what is below one, for which it trusts the server.
//! 4. What is durable there is the server's promise: S3 gives it, WebDAV has no word for it.

mod errand;
#[cfg(test)]
mod tests;
mod told;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use counterfoil_disperse::{FILE_BYTES_MAX, Failure, Store};
use futures::TryStreamExt as _;
use opendal::raw::Servicer;
use opendal::services::{S3, Webdav};
use opendal::{ErrorKind, HttpTransporter, OperationContext, Operator};
use parking_lot::Mutex;

use crate::account::Account;
use crate::address::{Address, Place};
use crate::leftovers::Leftovers;
use crate::pace::Pace;
use crate::web;
use crate::worker::Worker;
pub(crate) use errand::Connections;
use errand::{Errand, Seen};

/// Names of a folder at most.
pub(crate) const NAMES_MAX: usize = 1 << 20;
/// Bytes of a listing at most.
const LISTING_BYTES_MAX: u64 = 256 << 20;
/// Requests of a listing at most: pages of a thousand names are usual.
const PAGES_MAX: u32 = 4096;
/// Requests, and bytes of answers, of what is small.
const REQUESTS_MAX: u32 = 64;
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// Before what did not get through is tried again.
pub(crate) const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

/// A bucket, or a folder of a web server.
pub(crate) struct Objects {
    worker: Worker,
    service: Servicer,
    connections: Connections,
    address: Address,
    /// The server of files that are renamed when they are whole; none: objects come whole.
    web: Option<String>,
    patience: Duration,
    file: Bounds,
    leftovers: Leftovers,
}

/// What may come back of an operation.
#[derive(Clone, Copy)]
struct Bounds {
    requests: u32,
    bytes: u64,
}

const SMALL: Bounds = Bounds { requests: REQUESTS_MAX, bytes: ANSWER_BYTES_MAX };
const LISTING: Bounds = Bounds { requests: PAGES_MAX, bytes: LISTING_BYTES_MAX };
const FILE: Bounds = Bounds { requests: REQUESTS_MAX, bytes: FILE_BYTES_MAX };

/// One try of an operation.
#[derive(Clone)]
struct Try {
    operator: Operator,
    seen: Arc<Mutex<Seen>>,
}

impl Try {
    fn fails<T>(&self, failure: Failure) -> opendal::Result<T> {
        let told = failure.to_string();
        self.seen.lock().failure.get_or_insert(failure);
        Err(opendal::Error::new(ErrorKind::Unexpected, told))
    }

    /// Whether the folder is there, in which tables lie. A share that the server has not mounted must not look like tables without rows.
    async fn finds(&self, folder: &str) -> opendal::Result<()> {
        if folder.is_empty() {
            return Ok(());
        }
        match self.operator.stat(&format!("{folder}/")).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.fails(Failure::Refused(format!("there is no folder {folder} at the server: make it")))
            }
            other => other.map(drop),
        }
    }

    /// Names below a folder. A name that leads elsewhere is none.
    async fn names(&self, folder: &str, server: &str) -> opendal::Result<Vec<String>> {
        let begin = format!("{folder}/");
        let mut lister = match self.operator.lister(&begin).await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            lister => lister?,
        };
        let mut names = Vec::new();
        while let Some(entry) = lister.try_next().await? {
            // Some servers name files by their whole addresses.
            let path = entry.path();
            let path = path.strip_prefix(server).map_or(path, |path| path.trim_start_matches('/'));
            let Some(name) = path.strip_prefix(&begin).filter(|name| !name.is_empty() && !name.contains('/')) else {
                continue;
            };
            if names.len() == NAMES_MAX {
                return self.fails(Failure::Malformed(format!("more than {NAMES_MAX} files in a table's folder")));
            }
            names.push(name.to_owned());
        }
        Ok(names)
    }

    async fn get(&self, path: &str, range: Range<u64>) -> opendal::Result<Option<Vec<u8>>> {
        let read = match self.operator.read_with(path).range(range).await {
            // A server that knows no ranges gives all of it, which the library does not take for what was asked for.
            Err(_) if self.seen.lock().gave_all() => self.operator.read(path).await,
            read => read,
        };
        match read {
            Ok(buffer) => Ok(Some(buffer.to_vec())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a file beside its place, and puts it there.
    async fn put_by_renaming(&self, address: &Address, folder: &str, name: &str, bytes: Bytes) -> opendal::Result<()> {
        let (beside, path) =
            (address.path(&format!("{folder}/{}", Leftovers::beside(name))), address.path(&format!("{folder}/{name}")));
        if let Err(error) = self.operator.write(&beside, bytes.clone()).await {
            if !told::lacks_folder(self.seen.lock().status) {
                return Err(error);
            }
            self.finds(&address.folder).await?;
            self.operator.create_dir(&format!("{}/", address.path(folder))).await?;
            self.operator.write(&beside, bytes).await?;
        }
        // A cut before this leaves the file beside.
        self.operator.rename(&beside, &path).await
    }
}

impl Objects {
    pub fn new(address: Address, secret: Option<&str>, patience: Duration) -> Result<Self, String> {
        let url = address.to_string();
        let refused = |what: String| format!("cloud at {url}: {what}");
        let (service, ca, web) = match &address.place {
            Place::S3 { bucket, endpoint, region, ca } => {
                let secret = secret.ok_or("an S3 server wants a key: secret_file '...'".to_owned()).map_err(refused)?;
                let account = Account::parse(secret).map_err(refused)?;
                (bucket_service(bucket, endpoint.as_deref(), region.as_deref(), &account), ca, None)
            }
            Place::WebDav { is_private, user, host, ca } => {
                let server = format!("{}://{host}", if *is_private { "https" } else { "http" });
                (web_service(&server, user.as_deref(), secret), ca, Some(server))
            }
            Place::Sftp { .. } => return Err(refused("this is reached by ssh".into())),
        };
        // The library's words may repeat what it was given.
        let service = service.map_err(|error| refused(format!("OpenDAL does not take it ({})", error.kind())))?;
        let connections = web::connections(ca.as_deref(), patience).map_err(refused)?;
        let worker = Worker::new(&url)?;
        Ok(Self { worker, service, connections, address, web, patience, file: FILE, leftovers: Leftovers::default() })
    }

    /// Does something, and again if it did not get through.
    fn with<T: Send + 'static, F: Future<Output = opendal::Result<T>> + Send>(
        &self,
        bounds: Bounds,
        body: impl Fn(Try) -> F + Send + Sync + 'static,
    ) -> Result<T, Failure> {
        let pace = Arc::new(Pace::new(self.patience));
        let (service, connections) = (self.service.clone(), self.connections.clone());
        self.worker.contained(async move {
            let mut pauses = PAUSES.iter();
            loop {
                let seen = Arc::new(Mutex::new(Seen::new(bounds.requests, bounds.bytes)));
                let errand = Errand::new(connections.clone(), pace.clone(), seen.clone());
                let context = OperationContext::default().with_http_transport(HttpTransporter::new(errand));
                let operator = Operator::from_parts(context, service.clone());
                let done = pace.hold(body(Try { operator, seen: seen.clone() })).await?;
                let failure = match done {
                    Ok(done) => return Ok(done),
                    Err(error) => told::told(&error, &seen.lock()),
                };
                let pause = pauses.next().filter(|pause| pace.allows(**pause));
                let (Failure::Unreachable(_), Some(pause)) = (&failure, pause) else { return Err(failure) };
                tokio::time::sleep(*pause).await;
            }
        })
    }

    fn names(&self, folder: &str) -> Result<Vec<String>, Failure> {
        let (root, path, web) = (self.address.folder.clone(), self.address.path(folder), self.web.clone());
        self.with(LISTING, move |tried| {
            let (root, path, web) = (root.clone(), path.clone(), web.clone());
            async move {
                let names = tried.names(&path, web.as_deref().unwrap_or("/")).await?;
                if names.is_empty() && web.is_some() {
                    tried.finds(&root).await?;
                }
                Ok(names)
            }
        })
    }

    fn remove(&self, path: String) -> Result<(), Failure> {
        self.with(SMALL, move |tried| {
            let path = path.clone();
            async move { tried.operator.delete(&path).await }
        })
    }
}

fn bucket_service(
    bucket: &str,
    endpoint: Option<&str>,
    region: Option<&str>,
    account: &Account,
) -> opendal::Result<Servicer> {
    let mut builder = S3::default()
        .bucket(bucket)
        .region(Place::region(region))
        .access_key_id(&account.key)
        .secret_access_key(&account.secret)
        // What this machine has for other purposes is not sent there.
        .disable_config_load()
        .disable_ec2_metadata();
    if let Some(token) = &account.token {
        builder = builder.session_token(token);
    }
    builder = match endpoint {
        Some(endpoint) => builder.endpoint(endpoint),
        // Certificates for names with a full stop are for none.
        None if bucket.contains('.') => builder,
        None => builder.enable_virtual_host_style(),
    };
    Ok(Operator::new(builder)?.into_parts().1)
}

fn web_service(server: &str, user: Option<&str>, password: Option<&str>) -> opendal::Result<Servicer> {
    let mut builder = Webdav::default().endpoint(server).disable_create_dir(true);
    if let Some(user) = user {
        builder = builder.username(user).password(password.unwrap_or_default());
    }
    Ok(Operator::new(builder)?.into_parts().1)
}

impl Store for Objects {
    fn list(&self, folder: &str) -> Result<Vec<String>, Failure> {
        let names = self.names(folder)?;
        self.leftovers.note(folder, &names);
        Ok(names)
    }

    fn get(&self, folder: &str, name: &str, range: Range<u64>) -> Result<Option<Vec<u8>>, Failure> {
        let path = self.address.path(&format!("{folder}/{name}"));
        self.with(self.file, move |tried| {
            let (path, range) = (path.clone(), range.clone());
            async move { tried.get(&path, range).await }
        })
    }

    fn put(&self, folder: &str, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let (address, bytes) = (self.address.clone(), Bytes::copy_from_slice(bytes));
        if self.web.is_none() {
            let path = address.path(&format!("{folder}/{name}"));
            return self.with(SMALL, move |tried| {
                let (path, bytes) = (path.clone(), bytes.clone());
                async move { tried.operator.write(&path, bytes).await.map(drop) }
            });
        }
        let (own, to) = (folder.to_owned(), name.to_owned());
        let done = self.with(SMALL, move |tried| {
            let (address, own, name, bytes) = (address.clone(), own.clone(), to.clone(), bytes.clone());
            async move { tried.put_by_renaming(&address, &own, &name, bytes).await }
        });
        for leftover in self.leftovers.take((folder, name), &done) {
            // One that stays is shown by the next listing.
            drop(self.remove(self.address.path(&format!("{folder}/{leftover}"))));
        }
        done
    }

    fn delete(&self, folder: &str, name: &str) -> Result<(), Failure> {
        self.remove(self.address.path(&format!("{folder}/{name}")))
    }

    fn delete_folder(&self, folder: &str) -> Result<(), Failure> {
        if self.web.is_none() {
            return Ok(()); // a bucket has no folders
        }
        let (cut, others): (Vec<_>, Vec<_>) = self.names(folder)?.into_iter().partition(|name| Leftovers::is_one(name));
        for name in cut {
            self.delete(folder, &name)?;
        }
        // A server deletes a folder with all that is in it. What else lies there is somebody else's.
        if others.is_empty() { self.remove(format!("{}/", self.address.path(folder))) } else { Ok(()) }
    }
}
