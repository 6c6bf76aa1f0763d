//! A folder as a store: of a disk, a share, or what somebody else keeps in step with a cloud.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use crate::provider::Failure;
use crate::stored::Store;

/// A folder, which holds one for each table.
pub struct Folder(pub PathBuf);

impl Folder {
    fn failure(&self, error: &io::Error) -> Failure {
        let what = format!("{}: {error}", self.0.display());
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::PermissionDenied => {
                Failure::Refused(what)
            }
            _ => Failure::Unreachable(what),
        }
    }

    fn path(&self, folder: &str, name: &str) -> PathBuf {
        self.0.join(folder).join(name)
    }

    fn is_there(&self) -> Result<(), Failure> {
        // A share that is not mounted is an empty folder, or none: neither may look like a table without rows.
        match self.0.is_dir() {
            true => Ok(()),
            false => Err(Failure::Unreachable(format!("{} is no folder", self.0.display()))),
        }
    }
}

/// Nothing there is no error.
fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Store for Folder {
    fn list(&self, folder: &str) -> Result<Vec<String>, Failure> {
        self.is_there()?;
        let names = || -> io::Result<Vec<String>> {
            let Some(entries) = if_there(fs::read_dir(self.0.join(folder)))? else { return Ok(Vec::new()) };
            let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
            names.collect()
        };
        names().map_err(|error| self.failure(&error))
    }

    fn get(&self, folder: &str, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        if_there(fs::read(self.path(folder, name))).map_err(|error| self.failure(&error))
    }

    fn put(&self, folder: &str, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        self.is_there()?;
        let write = || {
            let own = self.0.join(folder);
            fs::create_dir_all(&own)?;
            // A cut before the renaming leaves a file that no table has.
            let beside = own.join(format!("{name}.part"));
            let mut file = fs::File::create(&beside)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&beside, self.path(folder, name))?;
            fs::File::open(own)?.sync_all()
        };
        write().map_err(|error| self.failure(&error))
    }

    fn delete(&self, folder: &str, name: &str) -> Result<(), Failure> {
        if_there(fs::remove_file(self.path(folder, name))).map(drop).map_err(|error| self.failure(&error))
    }

    fn delete_folder(&self, folder: &str) -> Result<(), Failure> {
        let own = self.0.join(folder);
        let remove = || -> io::Result<()> {
            // Files of a cut write go with it.
            for entry in if_there(fs::read_dir(&own))?.into_iter().flatten() {
                let path = entry?.path();
                if path.extension().is_some_and(|ending| ending == "part") {
                    fs::remove_file(path)?;
                }
            }
            if_there(fs::remove_dir(&own)).map(drop)
        };
        remove().map_err(|error| self.failure(&error))
    }
}
