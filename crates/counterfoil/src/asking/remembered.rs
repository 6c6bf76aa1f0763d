//! What this user's questions have seen of published tables: a small file for each, in the state directory.
//!
//! It is written aside and renamed. A cut leaves the file of before, which remembers a little less.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use counterfoil_proof::Owner;
use counterfoil_reader::Memory;

use crate::error::{Error, Kind, Result};

/// Where it is remembered what was seen of a table; nowhere on a machine that keeps no state.
pub struct Remembered(Option<PathBuf>);

impl Remembered {
    pub fn of(state: Option<&Path>, owner: &Owner, table: &str) -> Self {
        let Some(state) = state else { return Self(None) };
        let folder = state.join("readers").join(owner.to_string());
        // Bytes that a file's name could not have, and capitals, which some file systems do not tell from small letters.
        let mut name = String::new();
        for byte in table.bytes() {
            if byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' {
                name.push(char::from(byte));
            } else {
                let _ = write!(name, "%{byte:02X}");
            }
        }
        Self((name.len() <= 200).then(|| folder.join(name)))
    }

    pub fn is_somewhere(&self) -> bool {
        self.0.is_some()
    }

    pub fn read(&self) -> Result<Option<Memory>> {
        let Some(path) = &self.0 else { return Ok(None) };
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::host("read the file", path.display(), &error)),
        };
        let damaged = |what: counterfoil_proof::Malformed| {
            let told = Error::new(Kind::Corrupt, format!("{what} is damaged")).at(path.display());
            told.advise("delete the file to begin anew: an older state is then not noticed once")
        };
        Ok(Some(Memory::from_bytes(&bytes).map_err(damaged)?))
    }

    /// Remembers, unless another question has seen something newer meanwhile.
    pub fn write(&self, memory: &Memory) -> Result<()> {
        let Some(path) = &self.0 else { return Ok(()) };
        let failed = |what, path: &Path| {
            let path = path.display().to_string();
            move |error: io::Error| Error::host(what, path, &error)
        };
        let folder = path.parent().unwrap_or(path);
        fs::create_dir_all(folder).map_err(failed("make the folder", folder))?;
        // Its name is none of a table: those have no full stop. Whoever is killed leaves the lock to the next.
        let lock = folder.join(".lock");
        let held = fs::File::create(&lock).and_then(|file| file.lock().map(|()| file));
        let _held = held.map_err(failed("lock the file", &lock))?;
        if self.read()?.is_some_and(|known| !memory.is_as_new_as(&known)) {
            return Ok(());
        }
        let aside = folder.join(".new");
        let made = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside);
        let written = made.and_then(|mut file| file.write_all(&memory.to_bytes()));
        written.map_err(failed("write the file", &aside))?;
        fs::rename(&aside, path).map_err(failed("write the file", path))
    }
}
