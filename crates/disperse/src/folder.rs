//! A folder as a store: of a disk, a share, or what somebody else keeps in step with a cloud.

use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::fragment_file::FILE_BYTES_MAX;
use crate::provider::Failure;
use crate::stored::Store;

/// Names that are listed at most, whoever put them there.
const NAMES_MAX: usize = 1 << 20;

/// A folder, which holds one for each table.
pub struct Folder(pub PathBuf);

impl Folder {
    fn failure(&self, error: &io::Error) -> Failure {
        Self::failure_at(&self.0, error)
    }

    fn failure_at(path: &Path, error: &io::Error) -> Failure {
        let what = format!("{}: {error}", path.display());
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

/// So old is a file that somebody was writing when he was cut: nobody writes one for so long.
const LEFT_BEHIND: Duration = Duration::from_secs(3600);

/// Removes what cuts have left of files that were being written.
fn clear(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if is_part(&entry.path()) && age().is_some_and(|age| age > LEFT_BEHIND) {
            _ = fs::remove_file(entry.path());
        }
    }
}

fn is_part(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "part")
}

/// Whether somebody put a folder where a file is to be: if nothing is in it, it goes as a file would.
fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|there| there.is_dir())
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
    fn is_near(&self) -> bool {
        true
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, Failure> {
        self.is_there()?;
        let names = || -> io::Result<Vec<String>> {
            let Some(entries) = if_there(fs::read_dir(self.0.join(folder)))? else { return Ok(Vec::new()) };
            let names = entries.take(NAMES_MAX + 1);
            names.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
        };
        let names = names().map_err(|error| self.failure(&error))?;
        match names.len() > NAMES_MAX {
            false => Ok(names),
            true => Err(Failure::Malformed(format!("more than {NAMES_MAX} files in a table's folder"))),
        }
    }

    fn get(&self, folder: &str, name: &str, range: Range<u64>) -> Result<Option<Vec<u8>>, Failure> {
        let path = self.path(folder, name);
        let failure = |error| Self::failure_at(&path, &error);
        let Some(there) = if_there(fs::metadata(&path)).map_err(failure)? else { return Ok(None) };
        // A pipe would never end, and never begin. Whatever it is, it is not what was written.
        if !there.is_file() || there.len() > FILE_BYTES_MAX {
            return Err(Failure::Malformed(format!("{name} is no file, or larger than any that is written here")));
        }
        let read = || -> io::Result<Option<Vec<u8>>> {
            let Some(mut file) = if_there(fs::File::open(&path))? else { return Ok(None) };
            let end = range.end.min(there.len());
            let length = end.saturating_sub(range.start);
            let mut bytes = Vec::with_capacity(length as usize);
            file.seek(SeekFrom::Start(range.start))?;
            // It may grow while it is read: then it is not what was written.
            file.take(length).read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        };
        read().map_err(failure)
    }

    fn put(&self, folder: &str, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        self.is_there()?;
        let own = self.0.join(folder);
        // A cut before the renaming leaves a file that no table has.
        let beside = own.join(format!("{name}.part"));
        let write = || {
            if !own.is_dir() {
                fs::create_dir_all(&own)?;
                // A file in a folder that a cut takes away is lost however durable it is.
                fs::File::open(&self.0)?.sync_all()?;
            }
            let mut file = fs::File::create(&beside)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            let path = self.path(folder, name);
            if is_folder(&path) {
                if_there(fs::remove_dir(&path))?;
            }
            fs::rename(&beside, path)?;
            fs::File::open(&own)?.sync_all()
        };
        write().map_err(|error| {
            // A medium that is full has it to give. What was renamed has this name no more.
            _ = fs::remove_file(&beside);
            clear(&own);
            self.failure(&error)
        })
    }

    fn delete(&self, folder: &str, name: &str) -> Result<(), Failure> {
        let path = self.path(folder, name);
        let remove = || -> io::Result<()> {
            let remove = if is_folder(&path) { fs::remove_dir } else { fs::remove_file };
            if if_there(remove(&path))?.is_some() {
                // What came back after a cut would be rows that are gone.
                fs::File::open(self.0.join(folder))?.sync_all()?;
            }
            Ok(())
        };
        remove().map_err(|error| Self::failure_at(&path, &error))
    }

    fn delete_folder(&self, folder: &str) -> Result<(), Failure> {
        let own = self.0.join(folder);
        let remove = || -> io::Result<()> {
            // Files of a cut write go with it.
            for entry in if_there(fs::read_dir(&own))?.into_iter().flatten() {
                let path = entry?.path();
                if is_part(&path) {
                    fs::remove_file(path)?;
                }
            }
            if_there(fs::remove_dir(&own)).map(drop)
        };
        remove().map_err(|error| self.failure(&error))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn what_is_no_file_is_damage_and_goes() {
        let own = tempfile::tempdir().expect("a folder");
        let (folder, table) = (Folder(own.path().to_owned()), own.path().join("t"));
        folder.put("t", "x", b"first").expect("written");
        fs::create_dir(table.join("y")).expect("a folder");
        File::create(table.join("z")).expect("a file").set_len(FILE_BYTES_MAX + 1).expect("a length");
        for name in ["y", "z"] {
            assert!(matches!(folder.get("t", name, 0..9), Err(Failure::Malformed(what)) if what.contains(name)));
            assert_eq!(folder.delete("t", name), Ok(()));
            assert_eq!(folder.get("t", name, 0..9), Ok(None));
        }
        fs::create_dir(table.join("y")).expect("a folder");
        assert_eq!(folder.put("t", "y", b"second"), Ok(()));
        fs::remove_file(table.join("y")).expect("a file");
        // What is in a folder was put there by somebody, who may want it.
        fs::create_dir_all(table.join("y/z")).expect("a folder");
        assert!(folder.delete("t", "y").is_err());
    }

    #[test]
    fn a_write_that_fails_leaves_nothing_nor_what_cuts_left_long_ago() {
        let own = tempfile::tempdir().expect("a folder");
        let (folder, table) = (Folder(own.path().to_owned()), own.path().join("t"));
        folder.put("t", "x", b"first").expect("written");
        // Where a folder has the name nothing is renamed to it.
        fs::create_dir_all(table.join("y/z")).expect("a folder");
        for (name, age) in [("old.part", LEFT_BEHIND * 2), ("new.part", Duration::ZERO)] {
            let left = File::create(table.join(name)).expect("a file");
            left.set_modified(SystemTime::now() - age).expect("its time");
        }
        assert!(folder.put("t", "y", b"second").is_err());
        let mut names = folder.list("t").expect("listed");
        names.sort();
        // Somebody may be writing the new one.
        assert_eq!(names, ["new.part", "x", "y"]);
        assert_eq!(folder.get("t", "x", 0..99), Ok(Some(b"first".to_vec())));
    }
}
