//! A medium in one file.
//!
//! The file grows as pages are programmed or reserved, up to the limit of its shape; holes and everything past its end
//! read as zeros. It never shrinks. Nothing needs to be erased. Who may write is settled by [`crate::lock`], not here.

use std::fs::File;
use std::path::Path;

use crate::raw::{Handle, Purpose, typed};
use crate::{BlockNumber, Device, Error, Geometry, Operation, PageNumber, Read};

/// A medium in one file. Clones share the open file, and with it the latch after a failed write.
#[derive(Clone)]
pub struct FileDevice {
    handle: Handle,
    geometry: Geometry,
}

impl FileDevice {
    /// Creates an empty file that only its owner may read, and makes its name durable. An existing file is refused
    /// (`EEXIST`).
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::Device`] with what the system said, [`Error::Full`], [`Error::ReadOnly`].
    pub fn create_new(path: impl AsRef<Path>, geometry: Geometry) -> Result<Self, Error> {
        let device = Self::with(path.as_ref(), geometry, Purpose::CreateNew)?;
        // Without this a power cut could leave a database whose name was never written down.
        sync_directory_of(path.as_ref())?;
        Ok(device)
    }

    /// Opens an existing file for reading and writing. Its shape is the caller's to know; one who is about to read it
    /// off the header opens with a guess and goes on with [`FileDevice::with_geometry`].
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::WrongSort`] for a directory or a pipe, [`Error::Device`] with what the system said.
    pub fn open(path: impl AsRef<Path>, geometry: Geometry) -> Result<Self, Error> {
        Self::with(path.as_ref(), geometry, Purpose::Write)
    }

    /// Opens an existing file for reading; writing answers [`Error::ReadOnly`].
    ///
    /// # Errors
    /// As [`FileDevice::open`].
    pub fn open_read_only(path: impl AsRef<Path>, geometry: Geometry) -> Result<Self, Error> {
        Self::with(path.as_ref(), geometry, Purpose::Read)
    }

    fn with(path: &Path, geometry: Geometry, purpose: Purpose) -> Result<Self, Error> {
        check_shape(&geometry)?;
        let handle = Handle::open(path, purpose)?;
        let metadata = handle.file().metadata().map_err(|e| typed(Operation::Open, PageNumber(0), &e))?;
        if !metadata.is_file() {
            return Err(Error::WrongSort { wanted: "an ordinary file" });
        }
        Ok(Self { handle, geometry })
    }

    /// The same open file seen in another shape.
    ///
    /// # Errors
    /// [`Error::Shape`].
    pub fn with_geometry(&self, geometry: Geometry) -> Result<Self, Error> {
        check_shape(&geometry)?;
        Ok(Self { handle: self.handle.clone(), geometry })
    }

    /// Bytes in the file now.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn length(&self) -> Result<u64, Error> {
        let metadata = self.handle.file().metadata().map_err(|e| typed(Operation::Read, PageNumber(0), &e))?;
        Ok(metadata.len())
    }

    /// Whether an earlier write or flush failed.
    pub fn is_latched(&self) -> bool {
        self.handle.is_latched()
    }

    /// The open file, for [`crate::lock`].
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

fn check_shape(geometry: &Geometry) -> Result<(), Error> {
    geometry.validate()?;
    if geometry.erase_before_program {
        return Err(Error::Shape { reason: "a file needs no erase" });
    }
    Ok(())
}

/// Makes the directory entry of a new file durable.
fn sync_directory_of(path: &Path) -> Result<(), Error> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(|e| typed(Operation::Flush, PageNumber(0), &e))
}

impl Read for FileDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        self.handle.read(&self.geometry, page, offset, buffer)
    }
}

impl Device for FileDevice {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), Error> {
        self.handle.program(&self.geometry, page, data)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Error> {
        self.geometry.locate(self.geometry.first_page(block), 0, self.geometry.page_bytes as usize).map(|_| ())
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.handle.flush()
    }

    fn reserve(&mut self, page: PageNumber, pages: u64) -> Result<(), Error> {
        self.handle.reserve(&self.geometry, page, pages)
    }
}

#[cfg(test)]
mod tests;
