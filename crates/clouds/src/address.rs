//! Addresses of clouds that only keep objects.
//!
//! ```text
//! s3://BUCKET[/FOLDER][?endpoint=SERVER][&region=REGION][&tls_ca=FILE]     SERVER: https:// and a host, and :PORT
//! webdavs://USER@example.com/FOLDER[?tls_ca=FILE]           webdav:// on this machine alone
//! sftp://USER@example.com/FOLDER[?known_hosts=FILE]
//! ```
//! 1. There is no secret in one: it is kept in clear, and shown.
//! 2. No part of a folder leads out of it, and none is changed by a library that tidies paths.
//! 3. Nothing in one is taken for an option by a program that it is handed to.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use url::{Host, Url};

/// Bytes of a folder at most: names of objects have 1024, of which a table and a file take 60.
const FOLDER_BYTES_MAX: usize = 900;
const REGION: &str = "us-east-1";
/// What is written otherwise in an address.
const SPECIAL: &AsciiSet =
    &CONTROLS.add(b' ').add(b'%').add(b'?').add(b'#').add(b'&').add(b'+').add(b'"').add(b'<').add(b'>');
const SPECIAL_IN_USER: &AsciiSet = &SPECIAL.add(b'/').add(b'@');

/// Where objects are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub place: Place,
    /// Without a slash at its ends. Empty: all that there is.
    pub folder: String,
}

/// What keeps them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A bucket.
    S3 { bucket: String, endpoint: Option<String>, region: Option<String>, ca: Option<PathBuf> },
    /// A folder of a web server.
    WebDav { is_private: bool, user: Option<String>, host: String, ca: Option<PathBuf> },
    /// A folder of a machine that is reached by ssh. `is_home`: below the user's own.
    Sftp { user: String, host: String, port: Option<u16>, is_home: bool, known_hosts: Option<PathBuf> },
}

impl Place {
    pub fn region(region: Option<&str>) -> &str {
        region.unwrap_or(REGION)
    }
}

/// Whether an address is of this kind.
pub(crate) fn is_store(url: &str) -> bool {
    ["s3://", "webdav://", "webdavs://", "sftp://"].iter().any(|begin| url.starts_with(begin))
}

impl Address {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it and what to do, for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::read(text).map_err(|what| format!("cloud at {}: {what}", shown(text)))
    }

    fn read(text: &str) -> Result<Self, String> {
        // What the library would tidy away, it would take for something else than it says.
        if text.chars().any(|letter| letter.is_control() || letter.is_whitespace() || letter == '\\') {
            return Err("an address has no spaces and no backslashes; write a space as %20".into());
        }
        let (scheme, behind) = text.split_once("://").ok_or("an address begins like s3://")?;
        let path = behind.split(['?', '#']).next().unwrap_or_default().split_once('/').map_or("", |(_, path)| path);
        let url = Url::parse(text).map_err(|error| format!("this is no address: {error}"))?;
        if url.password().is_some() {
            return Err("a password in the address of a cloud: put it into a file, secret_file '...'".into());
        }
        if url.fragment().is_some() {
            return Err("an address has no '#'; write one that is meant as %23".into());
        }
        let options = Options::of(&url)?;
        match scheme {
            "s3" => Self::bucket(&url, path, options),
            "webdav" | "webdavs" => Self::web(&url, path, options),
            "sftp" => Self::machine(&url, path, options),
            _ => Err("an address begins with s3://, webdavs:// or sftp://".into()),
        }
    }

    fn bucket(url: &Url, path: &str, mut options: Options) -> Result<Self, String> {
        let bucket = url.host_str().unwrap_or_default().to_owned();
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
        let is_bucket = (3..=63).contains(&bucket.len())
            && bucket.bytes().all(plain)
            && !bucket.starts_with(['.', '-'])
            && !bucket.contains("..");
        if !is_bucket || url.port().is_some() || !url.username().is_empty() {
            return Err(
                "s3:// and the name of a bucket (small letters, digits, '-' and '.'); the server is endpoint=, \
                        the key is in secret_file"
                    .into(),
            );
        }
        let region = options.take("region");
        let named = |region: &String| {
            !region.is_empty()
                && region.len() <= 64
                && region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        if region.as_ref().is_some_and(|region| !named(region)) {
            return Err("region= is letters, digits and '-'".into());
        }
        let endpoint = options.take("endpoint").map(|endpoint| server(&endpoint)).transpose()?;
        let place = Place::S3 { bucket, endpoint, region, ca: options.take_file("tls_ca")? };
        options.end()?;
        Ok(Self { place, folder: folder(path)? })
    }

    fn web(url: &Url, path: &str, mut options: Options) -> Result<Self, String> {
        let is_private = url.scheme() == "webdavs";
        let host = host(url)?;
        if !is_private && !is_this_machine(url) {
            return Err(
                "webdav:// sends the password in clear, so it is for this machine alone; elsewhere webdavs://".into()
            );
        }
        let host = url.port().map_or(host.clone(), |port| format!("{host}:{port}"));
        let user = Some(user(url)?).filter(|user| !user.is_empty());
        let ca = options.take_file("tls_ca")?;
        if ca.is_some() && !is_private {
            return Err("tls_ca= is for webdavs://".into());
        }
        options.end()?;
        Ok(Self { place: Place::WebDav { is_private, user, host, ca }, folder: folder(path)? })
    }

    fn machine(url: &Url, path: &str, mut options: Options) -> Result<Self, String> {
        let (user, host) = (user(url)?, host(url)?);
        // Whoever reads their arguments takes what begins with '-' for an option, and ssh knows words with '%'.
        let plain = |text: &str| {
            !text.starts_with('-')
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._@+:[]".contains(&byte))
        };
        if user.is_empty() || !plain(&user) || !plain(&host) {
            return Err(
                "sftp://USER@example.com/FOLDER, with a user of letters, digits, '-', '.', '_', '@' and '+'".into()
            );
        }
        let (is_home, path) = match path.strip_prefix("~/") {
            Some(below) => (true, below),
            None => (false, path),
        };
        let folder = folder(path)?;
        if folder.is_empty() {
            return Err(
                "sftp://USER@example.com/FOLDER, or sftp://USER@example.com/~/FOLDER for one below the user's own"
                    .into(),
            );
        }
        let known_hosts = options.take_file("known_hosts")?;
        options.end()?;
        let place = Place::Sftp { user, host, port: url.port(), is_home, known_hosts };
        Ok(Self { place, folder })
    }

    /// The path of something in it, without a slash at its beginning.
    pub fn path(&self, rest: &str) -> String {
        if self.folder.is_empty() { rest.to_owned() } else { format!("{}/{rest}", self.folder) }
    }
}

/// An address for messages: its host and path. What cannot be read may have a password anywhere.
fn shown(text: &str) -> String {
    let scheme = text.split_once("://").map_or("an address without ://", |(scheme, _)| scheme);
    match Url::parse(text) {
        Ok(url) => {
            let path: String = url.path().chars().take(200).collect();
            format!("{scheme}://{}{path}", url.host_str().unwrap_or_default())
        }
        Err(_) => format!("{scheme}://..."),
    }
}

/// What stands behind the question mark.
struct Options(Vec<(String, String)>);

impl Options {
    fn of(url: &Url) -> Result<Self, String> {
        let mut options: Vec<(String, String)> = Vec::new();
        for (name, value) in url.query_pairs() {
            if options.iter().any(|(known, _)| *known == name) {
                return Err(format!("{name}= is said twice"));
            }
            options.push((name.into_owned(), value.into_owned()));
        }
        Ok(Self(options))
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(at).1)
    }

    /// A file, by its whole path: it is the same wherever the program runs.
    fn take_file(&mut self, name: &str) -> Result<Option<PathBuf>, String> {
        let Some(file) = self.take(name) else { return Ok(None) };
        // ssh would take a path apart at such letters.
        if file.is_empty() || file.chars().any(|letter| letter.is_control() || letter == '"') {
            return Err(format!("{name}= is the path of a file"));
        }
        std::path::absolute(&file).map(Some).map_err(|error| format!("{name}={file}: {error}"))
    }

    fn end(self) -> Result<(), String> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(format!("{name}= is no word of such an address")),
        }
    }
}

/// A folder of an address: its parts are names, and no library may change them.
fn folder(path: &str) -> Result<String, String> {
    let path = percent_decode_str(path).decode_utf8().map_err(|_| "a folder that is no UTF-8".to_owned())?;
    let path = path.trim_end_matches('/');
    let is_part = |part: &str| {
        !part.is_empty() && part != "." && part != ".." && part.trim() == part && !part.contains(char::is_control)
    };
    if path.len() > FOLDER_BYTES_MAX || !(path.is_empty() || path.split('/').all(is_part)) {
        return Err(format!("a folder is names between slashes, neither '.' nor '..', of {FOLDER_BYTES_MAX} bytes"));
    }
    Ok(path.to_owned())
}

fn host(url: &Url) -> Result<String, String> {
    url.host_str()
        .filter(|host| !host.is_empty())
        .map(str::to_ascii_lowercase)
        .ok_or_else(|| "the host is missing".into())
}

fn user(url: &Url) -> Result<String, String> {
    let user = percent_decode_str(url.username()).decode_utf8().map_err(|_| "a user that is no UTF-8".to_owned())?;
    match user.contains(|letter: char| letter.is_control() || letter == ':') {
        false => Ok(user.into_owned()),
        true => Err("a user without ':'".into()),
    }
}

/// Whether what is sent there stays on this machine.
fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => {
            name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        None => false,
    }
}

/// The server of an S3 that is not Amazon's.
fn server(text: &str) -> Result<String, String> {
    let wrong =
        || "endpoint= is https:// with a host, or http:// where the way there is protected otherwise".to_owned();
    let url = Url::parse(text).map_err(|_| wrong())?;
    let is_plain = matches!(url.scheme(), "http" | "https")
        && url.host_str().is_some_and(|host| !host.is_empty())
        && url.username().is_empty()
        && url.password().is_none()
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none();
    if is_plain { Ok(url.as_str().trim_end_matches('/').to_owned()) } else { Err(wrong()) }
}

fn written(text: &str) -> impl fmt::Display {
    utf8_percent_encode(text, SPECIAL)
}

fn written_file(path: &Path) -> String {
    written(&path.to_string_lossy()).to_string()
}

impl fmt::Display for Address {
    /// One address is always written the same way.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut options = Vec::new();
        let mut option = |name: &str, value: Option<String>| {
            value.into_iter().for_each(|value| options.push(format!("{name}={value}")));
        };
        let mut lead = "/";
        match &self.place {
            Place::S3 { bucket, endpoint, region, ca } => {
                write!(f, "s3://{bucket}")?;
                option("endpoint", endpoint.clone());
                option("region", region.clone());
                option("tls_ca", ca.as_deref().map(written_file));
            }
            Place::WebDav { is_private, user, host, ca } => {
                f.write_str(if *is_private { "webdavs://" } else { "webdav://" })?;
                user.iter().try_for_each(|user| write!(f, "{}@", utf8_percent_encode(user, SPECIAL_IN_USER)))?;
                f.write_str(host)?;
                option("tls_ca", ca.as_deref().map(written_file));
            }
            Place::Sftp { user, host, port, is_home, known_hosts } => {
                write!(f, "sftp://{}@{host}", utf8_percent_encode(user, SPECIAL_IN_USER))?;
                port.iter().try_for_each(|port| write!(f, ":{port}"))?;
                lead = if *is_home { "/~/" } else { "/" };
                option("known_hosts", known_hosts.as_deref().map(written_file));
            }
        }
        if !self.folder.is_empty() {
            write!(f, "{lead}{}", written(&self.folder))?;
        }
        if options.is_empty() { Ok(()) } else { write!(f, "?{}", options.join("&")) }
    }
}
