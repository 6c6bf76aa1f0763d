//! Why something could not be brought.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why something could not be brought.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An address of a sort that is not spoken here.
    Address(String),
    /// An address that means nothing: which, and why.
    NoAddress(String, String),
    /// A file could not be read.
    File(PathBuf, io::Error),
    /// A file that should hold certificates of authorities holds none that can be used.
    NoAuthority(PathBuf),
    /// A file that should be the verifier's page is something else.
    NoPage(PathBuf),
    /// An address that should name a bucket names none. It is not told again: there may be a secret in it.
    NoBucketAddress,
    /// No key for buckets is at hand.
    NoAccount,
    /// A file that should hold a key for buckets holds something else.
    SecretFile(PathBuf),
    /// The server of buckets that was named is none.
    NoServer,
    /// A bucket's server says no, and would again.
    Denied(String, Denial),
    /// A bucket's server could not be reached, or failed again and again: which, and what it was.
    Unreachable(String, String),
}

/// Why a bucket's server says no.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Denial {
    /// There is no such bucket.
    NoBucket,
    /// It does not know the key, or not this secret of it; the server's word.
    Key(String),
    /// The key may not do this.
    NotAllowed,
    /// Its clock and this machine's differ.
    Clock,
    /// The bucket is elsewhere, in the region that it may name.
    Region(Option<String>),
    /// Nobody vouches for it, in words for people.
    NotVouched(String),
    /// Something else; the server's word.
    Refused(String),
}

impl Error {
    /// What happened, without where.
    #[must_use]
    pub fn what(&self) -> String {
        match self {
            Self::Address(url) => {
                let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
                format!("not supported: servers at {scheme}://")
            }
            Self::NoAddress(_, why) => format!("this is no address of a server: {why}"),
            Self::File(_, error) => format!("could not read the file: {error}"),
            Self::NoAuthority(_) => "no certificate of an authority is in the file".into(),
            Self::NoPage(_) => "this is no verifier's page".into(),
            Self::NoBucketAddress => "this names no bucket".into(),
            Self::NoAccount => "no key for buckets is at hand".into(),
            Self::SecretFile(_) => "no key for buckets is in the file".into(),
            Self::NoServer => "the server of buckets that was named is none".into(),
            Self::Denied(_, denial) => denial.to_string(),
            Self::Unreachable(_, what) => what.clone(),
        }
    }

    /// Where it happened, if there is a place.
    #[must_use]
    pub fn place(&self) -> Option<String> {
        match self {
            Self::Address(place) | Self::NoAddress(place, _) | Self::Denied(place, _) | Self::Unreachable(place, _) => {
                Some(place.clone())
            }
            Self::File(path, _) | Self::NoAuthority(path) | Self::NoPage(path) | Self::SecretFile(path) => {
                Some(path.display().to_string())
            }
            Self::NoBucketAddress | Self::NoAccount | Self::NoServer => None,
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Address(_) => "use https:// or http://",
            Self::NoAddress(..) => "write it as https://example.com or http://127.0.0.1:8080",
            Self::File(..) => "check the path and its permissions",
            Self::NoAuthority(_) => "write the authority's certificate in PEM: BEGIN CERTIFICATE",
            Self::NoPage(_) => "name the page that scripts/build-verifier makes",
            Self::NoBucketAddress => "write s3://BUCKET/PREFIX, without a key",
            Self::NoAccount => {
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a file with them (--s3-secret-file)"
            }
            Self::SecretFile(_) => "write lines such as AWS_ACCESS_KEY_ID=..., of one account",
            Self::NoServer => "check AWS_ENDPOINT_URL and AWS_REGION",
            Self::Denied(_, denial) => denial.advice(),
            Self::Unreachable(..) => "publish again to send the rest",
        }
    }
}

impl Denial {
    fn advice(&self) -> &'static str {
        match self {
            Self::NoBucket => "make it, or check its name and AWS_REGION or AWS_ENDPOINT_URL",
            Self::Key(_) => "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN",
            Self::NotAllowed => "let the key list the bucket, and get, put and delete objects in it",
            Self::Clock => "set this machine's clock",
            Self::Region(_) => "name the bucket's region in AWS_REGION",
            Self::NotVouched(_) => "check the address",
            Self::Refused(_) => "check the bucket's settings",
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBucket => f.write_str("there is no such bucket"),
            Self::Key(word) => write!(f, "the server does not take the key ({word})"),
            Self::NotAllowed => f.write_str("the server does not let this key do this"),
            Self::Clock => f.write_str("this machine's clock and the server's differ by minutes"),
            Self::Region(None) => f.write_str("the bucket is in another region"),
            Self::Region(Some(region)) => write!(f, "the bucket is in the region {region}"),
            Self::NotVouched(what) => f.write_str(what),
            Self::Refused(word) => write!(f, "the server refuses it ({word})"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place() {
            Some(place) => write!(f, "{} ({place})", self.what()),
            None => f.write_str(&self.what()),
        }
    }
}

impl std::error::Error for Error {}
