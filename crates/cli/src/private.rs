//! Files for their owner alone: whatever holds keys, rows or records in the clear has mode 0600 from the moment it is made.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use counterfoil::Error;

use crate::begun::Begun;

fn failed(path: &Path, error: &io::Error) -> Error {
    Error::host("write the file", path.display(), error)
}

/// Makes a file, or empties one that is there and leaves its permissions as they are.
pub fn create(path: &Path) -> Result<File, Error> {
    let made = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    made.map_err(|error| failed(path, &error))
}

/// Makes a file of these bytes.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
    create(path)?.write_all(bytes.as_ref()).map_err(|error| failed(path, &error))
}

/// Makes a file of these bytes and sees them to the disk; one that is there is not overwritten, and one that cannot be
/// filled goes again.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = made.map_err(|error| failed(path, &error))?;
    let begun = Begun::at(path);
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|error| failed(path, &error))?;
    begun.finish();
    Ok(())
}
