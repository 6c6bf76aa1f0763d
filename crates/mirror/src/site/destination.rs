//! Where a site is written: a folder of this machine, or whatever else holds files under names.
//!
//! 1. A file is in its place as a whole, or what was there before is.
//! 2. What was put is there for good once [`Destination::settle`] has returned.
//! 3. Nothing but pages is ever removed: what else somebody put there stays.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::layout::FILE_BYTES_MAX;

/// Where a site is written. Paths are those that readers fetch.
pub trait Destination {
    /// Whether a file of just these bytes is there already.
    ///
    /// # Errors
    /// It cannot be told.
    fn has(&mut self, path: &str, bytes: &[u8]) -> io::Result<bool>;

    /// Puts a file in its place, now or soon.
    ///
    /// # Errors
    /// It could not be put, or one before it.
    fn put(&mut self, path: &str, bytes: &[u8]) -> io::Result<()>;

    /// Waits until all that was put is there.
    ///
    /// # Errors
    /// Some of it could not be put.
    fn settle(&mut self) -> io::Result<()>;

    /// The bytes of a file; none if there is none that a site can have.
    ///
    /// # Errors
    /// It cannot be told.
    fn read(&mut self, path: &str) -> io::Result<Option<Vec<u8>>>;

    /// The paths of all pages that are there, those put just now included or not.
    ///
    /// # Errors
    /// They cannot be told.
    fn pages(&mut self) -> io::Result<Vec<String>>;

    /// Removes a page.
    ///
    /// # Errors
    /// It could not be removed.
    fn remove(&mut self, path: &str) -> io::Result<()>;
}

/// A folder of this machine that its owner writes.
#[derive(Clone, Debug)]
pub struct OwnFolder(PathBuf);

impl OwnFolder {
    /// The folder of this name, made if it is not there.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn make(folder: &Path) -> io::Result<Self> {
        make_folder(folder)?;
        Ok(Self(folder.into()))
    }
}

impl Destination for OwnFolder {
    fn has(&mut self, path: &str, bytes: &[u8]) -> io::Result<bool> {
        Ok(read(&self.0.join(path)).is_some_and(|known| known == bytes))
    }

    fn put(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.0.join(path);
        let parent = path.parent().unwrap_or(&self.0);
        make_folder(parent)?;
        let aside = path.with_extension("new");
        let mut file = fs::File::create(&aside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&aside, &path)?;
        fs::File::open(parent)?.sync_all()
    }

    fn settle(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn read(&mut self, path: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(read(&self.0.join(path)))
    }

    fn pages(&mut self) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        for shard in fs::read_dir(self.0.join("pages"))? {
            let shard = shard?;
            if !shard.path().is_dir() {
                continue;
            }
            for page in fs::read_dir(shard.path())? {
                let page = page?;
                // No page has a name that is no text.
                if let (true, Ok(shard), Ok(page)) =
                    (page.path().is_file(), shard.file_name().into_string(), page.file_name().into_string())
                {
                    found.push(format!("pages/{shard}/{page}"));
                }
            }
        }
        Ok(found)
    }

    fn remove(&mut self, path: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(path))
    }
}

/// Makes a folder that a cut cannot take away again: its name is in its parent before anything counts on it.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make_folder(parent)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => fs::File::open(parent)?.sync_all(),
    }
}

/// The bytes of a file, if there is one that a site can have.
fn read(path: &Path) -> Option<Vec<u8>> {
    let length = fs::metadata(path).ok()?.len();
    if length > FILE_BYTES_MAX as u64 { None } else { fs::read(path).ok() }
}
