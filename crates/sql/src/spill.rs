//! What a query cannot keep in memory goes to a file without a name, sealed under a key that dies with the process.
//!
//! ```text
//! query -> IPC bytes -> [chunk of at most 64 KiB, sealed] -> slot of an unlinked file -> [opened] -> IPC bytes -> query
//! ```
//!
//! 1. Nothing a query read reaches a disk in the clear.
//! 2. What comes back is what went out: the query library trusts the bytes of its spills without looking at them, so a
//!    changed chunk must end in an error here.
//! 3. All spills of an engine together stay below their bound; a spill's share is free again when it is dropped.
//!
//! A cut leaves nothing behind: the file has no name.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use counterfoil_vault::{SpillKey, SpillOpener, SpillSealer, SystemEntropy};
use datafusion::common::DataFusionError;
use datafusion::execution::{SpillFile, SpillWriter, TempFileFactory};
use futures::Stream;
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::pieces::Pieces;
use crate::slots::{Slot, Slots};

/// Bytes of text in a chunk.
const CHUNK_BYTES: usize = 64 << 10;
/// Bytes before the text of a chunk.
const HEAD_BYTES: usize = 4;

/// Where queries spill to, and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spill {
    /// The folder of the file.
    pub folder: PathBuf,
    /// Bytes that all spills of the engine may have together.
    pub bytes_max: u64,
}

/// Makes sealed files.
pub(crate) struct SealedFiles {
    key: SpillKey,
    slots: Arc<Slots>,
}

impl SealedFiles {
    pub(crate) fn new(spill: Spill) -> Result<Self> {
        let key = SpillKey::generate(&mut SystemEntropy).map_err(|_| {
            Error::Host("the source of randomness failed, and without it nothing may be spilled".into())
        })?;
        Ok(SealedFiles { key, slots: Arc::new(Slots::new(spill.folder, spill.bytes_max)) })
    }

    /// A place for pieces of so many bytes each, which are read in any order.
    pub(crate) fn pieces(&self, piece_bytes: usize) -> Pieces {
        Pieces::new(self.slots.clone(), self.key.stream(), piece_bytes)
    }
}

impl TempFileFactory for SealedFiles {
    fn create_temp_file(&self, _description: &str) -> Result<Arc<dyn SpillFile>, DataFusionError> {
        let (sealer, opener) = self.key.stream();
        let shared = Arc::new(Shared { slots: self.slots.clone(), chunks: Mutex::default() });
        Ok(Arc::new(SealedFile { shared, sealer: Mutex::new(Some(sealer)), opener }))
    }
}

/// Where the chunks lie that were written, in order.
struct Shared {
    slots: Arc<Slots>,
    chunks: Mutex<Vec<Arc<Slot>>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.slots.give_back(self.chunks.get_mut());
    }
}

struct SealedFile {
    shared: Arc<Shared>,
    sealer: Mutex<Option<SpillSealer>>,
    opener: SpillOpener,
}

impl SpillFile for SealedFile {
    fn size(&self) -> Option<u64> {
        Some(self.shared.chunks.lock().iter().map(|slot| slot.bytes()).sum())
    }

    fn read_stream(
        &self,
    ) -> Result<Pin<Box<dyn Stream<Item = Result<Bytes, DataFusionError>> + Send>>, DataFusionError> {
        let reader = Reader { shared: self.shared.clone(), opener: self.opener.again(), next: 0 };
        Ok(Box::pin(futures::stream::unfold(reader, |mut reader| async move {
            let read = reader.next().transpose()?;
            Some((read.map_err(DataFusionError::from), reader))
        })))
    }

    fn open_writer(&self) -> Result<Box<dyn SpillWriter>, DataFusionError> {
        let sealer = self.sealer.lock().take();
        let sealer = sealer.ok_or_else(|| Error::Bug("a spill file is written once".into()))?;
        Ok(Box::new(Writer { shared: self.shared.clone(), sealer, text: Vec::new(), sealed: Vec::new() }))
    }
}

struct Writer {
    shared: Arc<Shared>,
    sealer: SpillSealer,
    text: Vec<u8>,
    sealed: Vec<u8>,
}

impl Writer {
    fn put(&mut self, last: bool) -> io::Result<()> {
        if self.text.is_empty() && !last {
            return Ok(());
        }
        self.sealed.clear();
        self.sealer.seal(&self.text, last, &mut self.sealed);
        self.text.clear();
        let slots = &self.shared.slots;
        let slot = slots.put(&self.sealed).map_err(|error| io::Error::other(unwritten(&error, slots)))?;
        let slot = slot.ok_or_else(|| io::Error::other(full()))?;
        self.shared.chunks.lock().push(Arc::new(slot));
        Ok(())
    }
}

/// What spills may have is taken.
pub(crate) fn full() -> Error {
    Error::Memory("the query needs more room to spill than it may take: let it look at fewer rows".into())
}

/// Why something could not be written.
pub(crate) fn unwritten(error: &io::Error, slots: &Slots) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            Error::Memory("the disk is full with what the query spills: make room, or let it look at fewer rows".into())
        }
        // A folder that cannot be written is no fault of the database: other queries go on.
        _ => Error::Memory(format!("the query cannot spill to {}: {error}", slots.folder().display())),
    }
}

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(CHUNK_BYTES - self.text.len());
        self.text.extend_from_slice(&bytes[..taken]);
        if self.text.len() == CHUNK_BYTES {
            self.put(false)?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.put(false)
    }
}

impl SpillWriter for Writer {
    fn finish(&mut self) -> Result<(), DataFusionError> {
        self.put(true).map_err(DataFusionError::from)
    }
}

struct Reader {
    shared: Arc<Shared>,
    opener: SpillOpener,
    /// The chunk that is read next.
    next: usize,
}

impl Reader {
    fn next(&mut self) -> Result<Option<Bytes>> {
        let Some(slot) = self.shared.chunks.lock().get(self.next).cloned() else { return Ok(None) };
        self.next += 1;
        opened(&slot, 0, &mut self.opener).map(Some)
    }
}

/// The text of the chunk at an offset of a slot, which is the next that the opener expects.
pub(crate) fn opened(slot: &Slot, offset: usize, opener: &mut SpillOpener) -> Result<Bytes> {
    let read = |buffer: &mut [u8], offset| {
        let read = slot.read(buffer, offset);
        read.map_err(|error| Error::Host(format!("reading what a query spilled failed: {error}")))
    };
    let tampered = |_| Error::Host("what a query spilled was changed on the disk".into());
    let mut head = [0; HEAD_BYTES];
    read(&mut head, offset)?;
    let mut rest = vec![0; opener.following_bytes(&head).map_err(tampered)?];
    read(&mut rest, offset + HEAD_BYTES)?;
    let (text, _) = opener.open(&head, &mut rest).map_err(tampered)?;
    let bytes = text.len();
    rest.truncate(bytes);
    Ok(Bytes::from(rest))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use futures::StreamExt;

    use super::*;

    fn factory(bytes_max: u64) -> SealedFiles {
        SealedFiles::new(Spill { folder: std::env::temp_dir(), bytes_max }).unwrap()
    }

    fn read(file: &Arc<dyn SpillFile>) -> Result<Vec<u8>, DataFusionError> {
        futures::executor::block_on(async {
            let mut stream = file.read_stream()?;
            let mut bytes = Vec::new();
            while let Some(chunk) = stream.next().await {
                bytes.extend_from_slice(&chunk?);
            }
            Ok(bytes)
        })
    }

    #[test]
    fn what_is_spilled_comes_back_more_than_once() {
        let file = factory(1 << 30).create_temp_file("test").unwrap();
        let text: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut writer = file.open_writer().unwrap();
        writer.write_all(&text[..100]).unwrap();
        writer.flush().unwrap();
        assert_eq!(read(&file).unwrap(), text[..100]);
        writer.write_all(&text[100..]).unwrap();
        writer.finish().unwrap();
        assert_eq!(read(&file).unwrap(), text);
        assert_eq!(read(&file).unwrap(), text);
    }

    #[test]
    fn files_share_a_bound_and_give_it_back() {
        let factory = factory(150_000);
        let file = factory.create_temp_file("test").unwrap();
        let mut writer = file.open_writer().unwrap();
        writer.write_all(&[7; 100_000]).unwrap();
        let other = factory.create_temp_file("test").unwrap();
        let mut second = other.open_writer().unwrap();
        assert!(second.write_all(&[7; 100_000]).and_then(|()| second.flush()).is_err());
        drop((file, writer, other, second));
        assert_eq!(factory.slots.bytes(), 0);
    }
}
