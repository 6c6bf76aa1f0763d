//! What brings a server's files, until somebody calls it off.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use counterfoil_mirror::site::{Fetch, Folder};

use crate::error::{Error, Kind, Result};
use crate::publishing::{Authorities, Http, Patience};

/// What is said of a file that nobody wants any more.
pub(super) const CALLED_OFF: &str = "interrupted";

/// What brings the files of a server: an address, or a folder, by its path, with `dir:` or `file://` before it or without. No more is fetched once
/// `called_off` is set; servers may take what is left of `patience`.
///
/// # Errors
/// [`Kind::NotSupported`]: an address of another sort; [`Kind::Misuse`]: one that means nothing; [`Kind::NotFound`]: no such folder.
pub fn fetch(
    server: &str,
    authorities: &Authorities,
    patience: &Arc<Patience>,
    called_off: &Arc<AtomicBool>,
) -> Result<Box<dyn Fetch + Send>> {
    let from: Box<dyn Fetch + Send> = match folder(server) {
        // Whoever forgot http:// is told so, and not that no table is there.
        Some(folder) if !folder.is_dir() => {
            let text = format!("there is no folder {}", folder.display());
            let advice = "name a folder that is there, or a server with http:// or https:// before it";
            return Err(Error::new(Kind::NotFound, text).advise(advice));
        }
        Some(folder) => Box::new(Folder(folder)),
        None => Box::new(Http::vouched_for(server, authorities)?.with_patience(patience.clone())),
    };
    Ok(Box::new(Until { from, called_off: called_off.clone() }))
}

/// The folder that a server's name means, if it is none of a network.
fn folder(server: &str) -> Option<PathBuf> {
    match server.split_once("://") {
        Some(("file", path)) => Some(PathBuf::from(path)),
        Some(_) => None,
        None => Some(PathBuf::from(server.strip_prefix("dir:").unwrap_or(server))),
    }
}

struct Until {
    from: Box<dyn Fetch + Send>,
    called_off: Arc<AtomicBool>,
}

impl Until {
    fn go_on(&self) -> Result<(), String> {
        if self.called_off.load(Ordering::Relaxed) { Err(CALLED_OFF.into()) } else { Ok(()) }
    }
}

impl Fetch for Until {
    fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        self.go_on()?;
        self.from.fetch(path, most)
    }

    fn ask(&mut self, path: &str, question: &[u8], most: usize) -> Result<Option<Vec<u8>>, String> {
        self.go_on()?;
        self.from.ask(path, question, most)
    }

    fn soon(&mut self, level: usize, paths: &mut dyn Iterator<Item = String>) {
        self.from.soon(level, paths);
    }
}
