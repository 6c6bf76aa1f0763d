//! Files and folders in the making: what is not finished goes, whether an error or an interruption ends it.

use std::fs;
use std::path::{Path, PathBuf};

use counterfoil::Error;

use crate::terminal::Unfinished;

/// A file or a folder that goes when this is dropped, unless it was finished.
pub struct Begun {
    path: PathBuf,
    is_finished: bool,
    _unfinished: Unfinished,
}

impl Begun {
    /// What was just made there.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), is_finished: false, _unfinished: Unfinished::at(path) }
    }

    /// Makes a folder.
    pub fn folder(path: &Path) -> Result<Self, Error> {
        fs::create_dir(path).map_err(|error| Error::host("make the folder", path.display(), &error))?;
        Ok(Self::at(path))
    }

    /// All of it is there: it stays.
    pub fn finish(mut self) {
        self.is_finished = true;
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if !self.is_finished {
            // What went wrong is told; a remnant that cannot be taken away is no worse.
            let _ = if self.path.is_dir() { fs::remove_dir_all(&self.path) } else { fs::remove_file(&self.path) };
        }
    }
}
