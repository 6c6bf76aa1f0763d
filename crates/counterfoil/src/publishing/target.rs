//! Who is told of a publication: folders, buckets and mirrors.

use std::fmt;
use std::io;
use std::path::PathBuf;

use counterfoil_mirror::site::{self, Destination, OwnFolder};
use counterfoil_publish::{Ledger, Publication};
use counterfoil_transport as transport;
use counterfoil_transport::{Account, BucketAddress, BucketSite, VerifierPage};

use super::{Authorities, push, told};
use crate::error::{Error, Kind, Result};

/// A folder, a bucket or a mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// A folder that is served.
    Folder(PathBuf),
    /// A place in a bucket of a server that speaks S3.
    Bucket(BucketAddress),
    /// A mirror's address.
    Mirror(String),
}

/// How those are reached who are not on this machine, and what they get beside the table.
#[derive(Debug, Default)]
pub struct Network {
    /// Who vouches for servers at `https://`.
    pub authorities: Authorities,
    /// The key for buckets; without one, that of the environment.
    pub account: Option<Account>,
    /// The page with which folders and buckets are asked in a browser.
    pub page: Option<VerifierPage>,
}

/// What was brought to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// What one of them is, such as a file, and what was done with it.
    pub unit: (&'static str, &'static str),
    /// How many.
    pub count: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl Network {
    fn account(&self) -> Result<Account> {
        match &self.account {
            Some(account) => Ok(account.clone()),
            None => Ok(Account::from_environment()?),
        }
    }
}

impl Target {
    /// Reads `dir:PATH`, `s3://BUCKET/PREFIX`, `https://example.com` or `http://example.com`. A path that begins somewhere else than at
    /// the root begins where the process runs.
    ///
    /// # Errors
    /// [`Kind::NotSupported`]: something else; [`Kind::Misuse`]: a bucket that cannot be.
    pub fn parse(text: &str) -> Result<Self> {
        if let Some(path) = text.strip_prefix("dir:").filter(|path| !path.is_empty()) {
            let whole = std::path::absolute(path).map_err(|error| Error::host("find the folder", path, &error))?;
            return Ok(Self::Folder(whole));
        }
        if text.starts_with("s3://") {
            return Ok(Self::Bucket(text.parse()?));
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            return Ok(Self::Mirror(text.trim_end_matches('/').to_owned()));
        }
        let refused = Error::new(Kind::NotSupported, format!("not supported: publishing to {text}"));
        Err(refused.advise(
            "name a folder as 'dir:PATH', a bucket as 's3://BUCKET/PREFIX', or a mirror as 'https://example.com'",
        ))
    }

    /// Brings it up to date. A mirror is sent no further part once it is called off.
    ///
    /// # Errors
    /// [`Kind::Network`], [`Kind::Interrupted`], what the system says about the folder, and those of the owner's state.
    pub fn deliver<L: Ledger>(
        &self,
        publication: &mut Publication<L>,
        network: &Network,
        is_called_off: &dyn Fn() -> bool,
    ) -> Result<Delivered> {
        let (unit, (count, bytes)) = match self {
            Self::Folder(folder) => {
                let failed = |error| failed(error, "write the folder", folder.display());
                let mut own = OwnFolder::make(folder).map_err(failed)?;
                (("file", "written"), write(publication, network, &mut own)?.map_err(failed)?)
            }
            Self::Bucket(address) => {
                let mut bucket = BucketSite::open(&network.account()?, address, &network.authorities)?;
                let failed = |error| failed(error, "write into the bucket", address);
                (("object", "written"), write(publication, network, &mut bucket)?.map_err(failed)?)
            }
            Self::Mirror(mirror) => {
                (("update", "sent"), push(publication, mirror, &network.authorities, is_called_off)?)
            }
        };
        Ok(Delivered { unit, count, bytes })
    }

    /// Where readers find it, as far as that is known here: its folder, or its address.
    ///
    /// # Errors
    /// [`Kind::Misuse`]: no key for buckets is at hand, so that nobody knows where the bucket is.
    pub fn server(&self, network: &Network) -> Result<String> {
        Ok(match self {
            Self::Folder(folder) => folder.display().to_string(),
            Self::Bucket(address) => network.account()?.public_address(address)?,
            Self::Mirror(mirror) => mirror.clone(),
        })
    }
}

/// Writes table and page; what they take together.
fn write<L: Ledger>(
    publication: &mut Publication<L>,
    network: &Network,
    destination: &mut dyn Destination,
) -> Result<io::Result<(u64, u64)>> {
    let summaries = publication.summaries().map_err(told)?;
    let written = site::write_to(publication.shelf(), publication.manifest(), &summaries, destination);
    let page = network.page.as_ref();
    Ok(written.and_then(|(count, bytes)| match page {
        Some(page) if page.put(destination)? => Ok((count + 1, bytes + page.bytes())),
        _ => Ok((count, bytes)),
    }))
}

/// What went wrong with a folder or a bucket: in words of a bucket's server, or of who put a page where another one is, or of the
/// system.
fn failed(error: io::Error, doing: &str, place: impl fmt::Display) -> Error {
    let is_told = error.get_ref().is_some() && error.kind() == io::ErrorKind::AlreadyExists;
    match error.downcast::<transport::Error>() {
        Ok(error) => error.into(),
        Err(error) if is_told => Error::new(Kind::Misuse, error.to_string()).at(place).advise("move it away first"),
        Err(error) => Error::host(doing, place, &error),
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "dir:{}", folder.display()),
            Self::Bucket(address) => address.fmt(f),
            Self::Mirror(mirror) => f.write_str(mirror),
        }
    }
}

impl fmt::Display for Delivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, done) = self.unit;
        let plural = if self.count == 1 { "" } else { "s" };
        write!(f, "{} {unit}{plural} {done}, {} bytes", self.count, self.bytes)
    }
}
