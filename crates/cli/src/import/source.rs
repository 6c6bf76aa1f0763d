//! The bytes of a file to import: as they are, or unpacked from gzip or zip on a thread of their own.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use counterfoil::Error;
use flate2::read::MultiGzDecoder;

use crate::failure::input;

/// A file to import, which can be read more than once.
pub struct Source {
    path: PathBuf,
    /// What standard input or a pipe held: it cannot be read twice.
    held: Option<Arc<[u8]>>,
    packed: Packed,
    /// The name of the data itself: of the member of an archive, or the file's without `.gz`.
    name: String,
    bytes: u64,
    read: Arc<AtomicU64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Packed {
    Plain,
    Gzip,
    Zip,
}

/// Bytes unpacked ahead of the parser, in pieces of this size.
const PIECE_BYTES: usize = 256 * 1024;
const PIECES_AHEAD: usize = 4;

impl Source {
    /// Opens a file, or standard input for `-`.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (head, held, bytes);
        if path.as_os_str() == "-" {
            let content = all(io::stdin().lock(), path)?;
            (head, bytes, held) = (beginning(&content), content.len() as u64, Some(content.into()));
        } else {
            let file = File::open(path).map_err(|error| unread(path, &error))?;
            let metadata = file.metadata().map_err(|error| unread(path, &error))?;
            if metadata.is_dir() {
                return Err(input("this is a folder").at(path.display()).advise("name a file"));
            }
            if metadata.is_file() {
                (head, bytes, held) = (beginning(&all(file.take(4), path)?), metadata.len(), None);
            } else {
                // A pipe is read once, as standard input is.
                let content = all(file, path)?;
                (head, bytes, held) = (beginning(&content), content.len() as u64, Some(content.into()));
            }
        }
        let packed = match head {
            [0x1F, 0x8B, ..] => Packed::Gzip,
            // The second is how an archive without files begins.
            [b'P', b'K', 3, 4] | [b'P', b'K', 5, 6] => Packed::Zip,
            _ => Packed::Plain,
        };
        refuse_what_is_not_packed(path, packed)?;
        let mut source =
            Self { path: path.into(), held, packed, name: String::new(), bytes, read: Arc::new(AtomicU64::new(0)) };
        source.name = source.inner_name()?;
        Ok(source)
    }

    /// Bytes of the file as it lies there.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many of them were read so far.
    pub fn progress(&self) -> Arc<AtomicU64> {
        self.read.clone()
    }

    /// The name of the data itself, such as `flights.csv` for `flights.csv.gz`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file's name, for messages.
    pub fn place(&self) -> String {
        if self.path.as_os_str() == "-" { "standard input".into() } else { self.path.display().to_string() }
    }

    /// The file itself, for formats that jump in it.
    pub fn file(&self) -> Result<File, Error> {
        if self.held.is_some() || self.packed != Packed::Plain {
            return Err(input("Parquet is read from a plain file").at(self.place()).advise("unpack it first"));
        }
        File::open(&self.path).map_err(|error| unread(&self.path, &error))
    }

    /// The data from its beginning.
    pub fn reader(&self) -> Result<Box<dyn Read + Send>, Error> {
        self.read.store(0, Ordering::Relaxed);
        let raw = self.raw()?;
        Ok(match self.packed {
            Packed::Plain => Box::new(Counted { inner: raw, read: self.read.clone() }),
            Packed::Gzip => ahead(MultiGzDecoder::new(Counted { inner: raw, read: self.read.clone() })),
            Packed::Zip => self.unzip(raw)?,
        })
    }

    fn raw(&self) -> Result<Raw, Error> {
        Ok(match &self.held {
            Some(held) => Raw::Memory(io::Cursor::new(held.clone())),
            None => Raw::File(File::open(&self.path).map_err(|error| unread(&self.path, &error))?),
        })
    }

    fn inner_name(&self) -> Result<String, Error> {
        let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(match self.packed {
            Packed::Plain => name,
            Packed::Gzip => name.strip_suffix(".gz").map_or(name.clone(), str::to_owned),
            Packed::Zip => {
                let mut archive = self.archive(self.raw()?)?;
                let member = archive.by_index(0).map_err(|error| self.not_a_zip(&error))?;
                let name = member.name().map(|name| name.into_owned()).unwrap_or_default();
                name.rsplit('/').next().unwrap_or_default().to_owned()
            }
        })
    }

    fn archive(&self, raw: Raw) -> Result<zip::ZipArchive<Counted>, Error> {
        let archive = zip::ZipArchive::new(Counted { inner: raw, read: self.read.clone() });
        let archive = archive.map_err(|error| self.not_a_zip(&error))?;
        let members = archive.len();
        if members != 1 {
            return Err(input(format!("the archive holds {members} files, where one is wanted"))
                .at(self.place())
                .advise("unpack it and name the files"));
        }
        Ok(archive)
    }

    /// The one member of an archive, unpacked on a thread that owns the archive.
    fn unzip(&self, raw: Raw) -> Result<Box<dyn Read + Send>, Error> {
        let mut archive = self.archive(raw)?;
        archive.by_index(0).map_err(|error| self.not_a_zip(&error))?;
        let (sender, receiver) = sync_channel(PIECES_AHEAD);
        std::thread::spawn(move || match archive.by_index(0) {
            Ok(member) => hand_over(member, &sender),
            Err(error) => drop(sender.send(Err(io::Error::other(error.to_string())))),
        });
        Ok(Box::new(Ahead { receiver, piece: Vec::new(), at: 0 }))
    }

    fn not_a_zip(&self, error: &zip::result::ZipError) -> Error {
        input(format!("the archive cannot be unpacked: {error}")).at(self.place()).advise("unpack it first")
    }
}

/// Refuses a file that is called an archive and is none: its bytes would be read as text.
fn refuse_what_is_not_packed(path: &Path, packed: Packed) -> Result<(), Error> {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let (is_packed, called) = match extension.as_deref() {
        Some("gz") => (packed == Packed::Gzip, "gzip"),
        Some("zip") => (packed == Packed::Zip, "zip"),
        Some("zst") => (false, "zstd"),
        Some("bz2") => (false, "bzip2"),
        Some("xz") => (false, "xz"),
        _ => return Ok(()),
    };
    if is_packed {
        return Ok(());
    }
    let (what, advice) = match called {
        "gzip" | "zip" => {
            (format!("this is no {called} file, though it is called one"), "call it what it is, or fetch it again")
        }
        _ => (format!("not supported: files packed with {called}"), "unpack it first"),
    };
    Err(input(what).at(path.display()).advise(advice))
}

fn all(mut reader: impl Read, path: &Path) -> Result<Vec<u8>, Error> {
    let mut content = Vec::new();
    reader.read_to_end(&mut content).map_err(|error| unread(path, &error))?;
    Ok(content)
}

/// The bytes that tell what a file is, zeros where it has fewer.
fn beginning(content: &[u8]) -> [u8; 4] {
    let mut head = [0; 4];
    let length = content.len().min(4);
    head[..length].copy_from_slice(&content[..length]);
    head
}

fn unread(path: &Path, error: &io::Error) -> Error {
    Error::host("read the file", path.display(), error)
}

enum Raw {
    File(File),
    Memory(io::Cursor<Arc<[u8]>>),
}

impl Read for Raw {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Raw::File(file) => file.read(buffer),
            Raw::Memory(cursor) => cursor.read(buffer),
        }
    }
}

impl Seek for Raw {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Raw::File(file) => file.seek(to),
            Raw::Memory(cursor) => cursor.seek(to),
        }
    }
}

/// Counts what is read, for the progress bar.
struct Counted {
    inner: Raw,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

/// Reads on a thread of its own, so that unpacking and parsing go on side by side.
pub fn ahead(reader: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    let (sender, receiver) = sync_channel(PIECES_AHEAD);
    std::thread::spawn(move || hand_over(reader, &sender));
    Box::new(Ahead { receiver, piece: Vec::new(), at: 0 })
}

/// Ends when the data ends, or when nobody wants it any more.
fn hand_over(mut reader: impl Read, sender: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let result = reader.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece);
        let (message, last) = match result {
            Ok(0) => (Ok(Vec::new()), true),
            Ok(_) => (Ok(piece), false),
            Err(error) => (Err(error), true),
        };
        if sender.send(message).is_err() || last {
            return;
        }
    }
}

struct Ahead {
    receiver: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    at: usize,
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() {
            self.piece = match self.receiver.recv() {
                Ok(piece) => piece?,
                Err(_) => return Ok(0),
            };
            self.at = 0;
        }
        let length = buffer.len().min(self.piece.len() - self.at);
        buffer[..length].copy_from_slice(&self.piece[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}
