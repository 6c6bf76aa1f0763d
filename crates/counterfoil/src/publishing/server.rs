//! Where published tables are read from: folders of this machine, and web servers.

use std::fmt;
use std::path::PathBuf;

use counterfoil_mirror::site::{Fetch, Folder};

use super::Http;
use crate::error::{Error, Kind, Result};

/// A place that published tables are read from. Nobody trusts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Server {
    /// A folder.
    Folder(PathBuf),
    /// An address.
    Web(String),
}

impl Server {
    /// Reads `dir:PATH`, `https://example.com` or `http://example.com`. A path that begins somewhere else than at the root begins where the process runs.
    ///
    /// # Errors
    /// [`Kind::NotSupported`] for anything else.
    pub fn parse(text: &str) -> Result<Self> {
        if let Some(path) = text.strip_prefix("dir:").filter(|path| !path.is_empty()) {
            let whole = std::path::absolute(path).map_err(|error| Error::host("find the folder", path, &error))?;
            return Ok(Self::Folder(whole));
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            return Ok(Self::Web(text.trim_end_matches('/').to_owned()));
        }
        let refused = Error::new(Kind::NotSupported, format!("not supported: the server {text}"));
        Err(refused.advise("name a folder as 'dir:PATH', or a server as 'https://example.com'"))
    }

    /// What brings its bytes.
    ///
    /// # Errors
    /// [`Kind::NotSupported`]: an address that is none.
    pub fn fetch(&self) -> Result<Box<dyn Fetch + Send>> {
        Ok(match self {
            Self::Folder(folder) => Box::new(Folder(folder.clone())),
            Self::Web(address) => Box::new(Http::at(address)?),
        })
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "dir:{}", folder.display()),
            Self::Web(address) => f.write_str(address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_server_is_refused() {
        let web = Server::parse("http://example.com/prices/").expect("a server");
        assert_eq!(web.to_string(), "http://example.com/prices");
        let folder = Server::parse("dir:/srv/prices").expect("a folder");
        assert_eq!(Server::parse(&folder.to_string()).ok(), Some(folder));
        for text in ["", "dir:", "/srv/prices", "ftp://example.com", "s3://example.com"] {
            let error = Server::parse(text).expect_err(text);
            assert_eq!(error.kind(), Kind::NotSupported, "{text}");
        }
    }
}
