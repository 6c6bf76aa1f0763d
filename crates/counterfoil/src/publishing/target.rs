//! Who is told of a publication: folders and mirrors.

use std::fmt;
use std::path::PathBuf;

use counterfoil_mirror::site;
use counterfoil_publish::{Ledger, Publication};

use super::{push, told};
use crate::error::{Error, Kind, Result};

/// A folder or a mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A folder that is served, by its whole path.
    Folder(PathBuf),
    /// A mirror's address.
    Mirror(String),
}

impl Target {
    /// Reads `dir:PATH` or `http://example.com`. A path that begins somewhere else than at the root begins where the process runs.
    pub fn parse(text: &str) -> Result<Self> {
        if let Some(path) = text.strip_prefix("dir:").filter(|path| !path.is_empty()) {
            let whole = std::path::absolute(path).map_err(|error| Error::host("find the folder", path, &error))?;
            return Ok(Self::Folder(whole));
        }
        if text.starts_with("http://") {
            return Ok(Self::Mirror(text.trim_end_matches('/').to_owned()));
        }
        let refused = Error::new(Kind::NotSupported, format!("not supported: publishing to {text}"));
        Err(refused.advise("name a folder as 'dir:PATH', or a mirror as 'http://example.com'"))
    }

    /// Brings it up to date; says what was done.
    pub fn deliver<L: Ledger>(&self, publication: &mut Publication<L>) -> Result<String> {
        match self {
            Self::Folder(folder) => {
                let summaries = publication.summaries().map_err(told)?;
                let written = site::write(publication.shelf(), publication.manifest(), &summaries, folder);
                let (files, bytes) =
                    written.map_err(|error| Error::host("write the folder", folder.display(), &error))?;
                Ok(format!("{self}: {files} files written, {bytes} bytes"))
            }
            Self::Mirror(mirror) => {
                let (parts, bytes) = push(publication, mirror)?;
                Ok(format!("{self}: {parts} updates sent, {bytes} bytes"))
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "dir:{}", folder.display()),
            Self::Mirror(mirror) => f.write_str(mirror),
        }
    }
}
