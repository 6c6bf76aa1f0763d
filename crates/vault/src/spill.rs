//! Working data that a query cannot keep in memory: sealed under a key that dies with the process.
//!
//! ```text
//! stream:  chunk 0, chunk 1, ...; each 64 KiB of text but the last, which is shorter or marked by its nonce
//! chunk:   text bytes u32 (high bit: the last chunk) | text, encrypted | tag [16]
//! key    = HKDF(process key, info = "counterfoil/work" || process id u32 || stream number u64)
//! nonce  = chunk number u64 || 1 for the last chunk, else 0 || zero [3];  AES-256-GCM-SIV
//! ```
//! 1. A stream that was cut, lengthened, reordered or mixed with another ends in an error, not in other data.
//! 2. No two streams share a key, and a forked child's streams share none with its parent's.

use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};

use aead::inout::InOutBuf;
use aead::{AeadInOut, KeyInit, Nonce};
use aes_gcm_siv::Aes256GcmSiv;
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::{Entropy, NoEntropy, TAG_BYTES};

/// Most bytes of text in a chunk.
pub const CHUNK_BYTES: usize = 64 << 10;

/// Bytes before the text of a chunk.
pub const CHUNK_HEAD_BYTES: usize = 4;

const LAST: u32 = 1 << 31;

/// The key of everything that one process spills.
///
/// ```compile_fail
/// fn needs_debug<T: core::fmt::Debug>() {}
/// needs_debug::<counterfoil_vault::SpillKey>();
/// ```
pub struct SpillKey {
    key: Zeroizing<[u8; 32]>,
    streams: AtomicU32,
}

impl SpillKey {
    /// Draws a key. One for a process is enough.
    ///
    /// # Errors
    /// [`NoEntropy`].
    pub fn generate(entropy: &mut dyn Entropy) -> Result<SpillKey, NoEntropy> {
        let mut key = Zeroizing::new([0; 32]);
        entropy.fill(&mut *key)?;
        Ok(SpillKey { key, streams: AtomicU32::new(0) })
    }

    /// The two ends of a new stream.
    ///
    /// # Panics
    /// After 2^32 streams: a key that could be used twice is not handed out.
    pub fn stream(&self) -> (SpillSealer, SpillOpener) {
        let number = self.streams.fetch_add(1, Ordering::Relaxed);
        assert!(number < u32::MAX, "a process has fewer than 2^32 spill streams");
        let mut key = Zeroizing::new([0; 32]);
        let info: [&[u8]; 3] =
            [b"counterfoil/work", &std::process::id().to_le_bytes(), &u64::from(number).to_le_bytes()];
        let expanded = Hkdf::<Sha256>::new(None, &*self.key).expand_multi_info(&info, &mut *key);
        assert!(expanded.is_ok(), "HKDF-SHA-256 gives up to 8160 bytes");
        (SpillSealer { chunk: Chunks::new(&key) }, SpillOpener { chunk: Chunks::new(&key) })
    }
}

/// Spilled data is not what was spilled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpillTampered {
    /// The chunk that does not open, from 0.
    pub chunk: u64,
}

impl fmt::Display for SpillTampered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spilled working data was changed at chunk {}", self.chunk)
    }
}

impl core::error::Error for SpillTampered {}

/// The cipher of a stream and how far it has come.
struct Chunks {
    cipher: Aes256GcmSiv,
    next: u64,
    ended: bool,
    #[cfg(feature = "witness")]
    witness: crate::witness::KeyDigest,
}

impl Chunks {
    fn new(key: &[u8; 32]) -> Chunks {
        Chunks {
            cipher: Aes256GcmSiv::new(&(*key).into()),
            next: 0,
            ended: false,
            #[cfg(feature = "witness")]
            witness: crate::witness::key_digest(key),
        }
    }

    fn nonce(&self, last: bool) -> Nonce<Aes256GcmSiv> {
        let mut nonce = Nonce::<Aes256GcmSiv>::default();
        nonce[..8].copy_from_slice(&self.next.to_le_bytes());
        nonce[8] = u8::from(last);
        nonce
    }
}

/// The writing end of a stream.
pub struct SpillSealer {
    chunk: Chunks,
}

/// The reading end of a stream.
pub struct SpillOpener {
    chunk: Chunks,
}

impl SpillSealer {
    /// Appends one sealed chunk to `out`.
    ///
    /// # Panics
    /// On more than [`CHUNK_BYTES`] of text, and after the last chunk.
    pub fn seal(&mut self, text: &[u8], last: bool, out: &mut Vec<u8>) {
        assert!(text.len() <= CHUNK_BYTES, "a chunk has at most 64 KiB");
        assert!(!self.chunk.ended, "nothing follows the last chunk");
        let nonce = self.chunk.nonce(last);
        #[cfg(feature = "witness")]
        crate::witness::observe(self.chunk.witness, &nonce);
        let head = (text.len() as u32 | if last { LAST } else { 0 }).to_le_bytes();
        out.extend_from_slice(&head);
        let start = out.len();
        out.extend_from_slice(text);
        let sealed = self.chunk.cipher.encrypt_inout_detached(&nonce, &head, InOutBuf::from(&mut out[start..]));
        let Ok(tag) = sealed else { panic!("a chunk is never too long for its suite") };
        out.extend_from_slice(&tag);
        self.chunk.next += 1;
        self.chunk.ended = last;
    }
}

impl SpillOpener {
    /// Another reading end of the same stream, at its beginning.
    pub fn again(&self) -> SpillOpener {
        SpillOpener {
            chunk: Chunks {
                cipher: self.chunk.cipher.clone(),
                next: 0,
                ended: false,
                #[cfg(feature = "witness")]
                witness: self.chunk.witness,
            },
        }
    }

    /// Another reading end of the same stream, at one of its chunks.
    pub fn at(&self, chunk: u64) -> SpillOpener {
        let mut opener = self.again();
        opener.chunk.next = chunk;
        opener
    }

    /// How many bytes follow a chunk's head, by what the head says.
    ///
    /// # Errors
    /// [`SpillTampered`] if that is more than a chunk can have.
    pub fn following_bytes(&self, head: &[u8; CHUNK_HEAD_BYTES]) -> Result<usize, SpillTampered> {
        let text_bytes = (u32::from_le_bytes(*head) & !LAST) as usize;
        if text_bytes > CHUNK_BYTES { Err(self.tampered()) } else { Ok(text_bytes + TAG_BYTES) }
    }

    /// Opens the chunk with this head in place (`rest`: text and tag); its text, and whether it was the last.
    ///
    /// # Errors
    /// [`SpillTampered`].
    pub fn open<'a>(
        &mut self,
        head: &[u8; CHUNK_HEAD_BYTES],
        rest: &'a mut [u8],
    ) -> Result<(&'a [u8], bool), SpillTampered> {
        let tampered = self.tampered();
        if self.chunk.ended || rest.len() != self.following_bytes(head)? {
            return Err(tampered);
        }
        let last = u32::from_le_bytes(*head) & LAST != 0;
        let (text, tag) = rest.split_last_chunk_mut::<TAG_BYTES>().ok_or(tampered)?;
        let opened = self.chunk.cipher.decrypt_inout_detached(
            &self.chunk.nonce(last),
            head,
            InOutBuf::from(&mut *text),
            &(*tag).into(),
        );
        opened.map_err(|_| tampered)?;
        self.chunk.next += 1;
        self.chunk.ended = last;
        Ok((text, last))
    }

    fn tampered(&self) -> SpillTampered {
        SpillTampered { chunk: self.chunk.next }
    }
}

mod streams {
    use std::io::{self, ErrorKind, Read, Write};

    use super::*;

    /// Seals what is written and hands it on. [`SpillWriter::finish`] ends the stream; one that was only dropped ends
    /// in an error when it is read.
    pub struct SpillWriter<W: Write> {
        sealer: SpillSealer,
        text: Zeroizing<Vec<u8>>,
        sealed: Vec<u8>,
        out: W,
    }

    impl<W: Write> SpillWriter<W> {
        /// Seals into `out`.
        pub fn new(sealer: SpillSealer, out: W) -> SpillWriter<W> {
            SpillWriter { sealer, text: Zeroizing::new(Vec::with_capacity(CHUNK_BYTES)), sealed: Vec::new(), out }
        }

        /// Writes the last chunk and hands back what was written to.
        ///
        /// # Errors
        /// Those of the writer.
        pub fn finish(mut self) -> io::Result<W> {
            self.put(true)?;
            self.out.flush()?;
            Ok(self.out)
        }

        fn put(&mut self, last: bool) -> io::Result<()> {
            self.sealed.clear();
            self.sealer.seal(&self.text, last, &mut self.sealed);
            self.text.clear();
            self.out.write_all(&self.sealed)
        }
    }

    impl<W: Write> Write for SpillWriter<W> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.text.len() == CHUNK_BYTES {
                self.put(false)?;
            }
            let taken = bytes.len().min(CHUNK_BYTES - self.text.len());
            self.text.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        /// Does not cut a chunk short: spilled data is read after [`SpillWriter::finish`] only.
        fn flush(&mut self) -> io::Result<()> {
            self.out.flush()
        }
    }

    /// Opens what a [`SpillWriter`] wrote.
    pub struct SpillReader<R: Read> {
        opener: SpillOpener,
        input: R,
        chunk: Zeroizing<Vec<u8>>,
        read: usize,
        text_bytes: usize,
        ended: bool,
    }

    impl<R: Read> SpillReader<R> {
        /// Opens from `input`.
        pub fn new(opener: SpillOpener, input: R) -> SpillReader<R> {
            SpillReader { opener, input, chunk: Zeroizing::new(Vec::new()), read: 0, text_bytes: 0, ended: false }
        }

        fn fetch(&mut self) -> io::Result<()> {
            let changed = |error| io::Error::new(ErrorKind::InvalidData, error);
            let mut head = [0; CHUNK_HEAD_BYTES];
            // A stream that ends before its last chunk was cut.
            let cut = |error: io::Error, chunk| match error.kind() {
                ErrorKind::UnexpectedEof => changed(SpillTampered { chunk }),
                _ => error,
            };
            let number = self.opener.chunk.next;
            self.input.read_exact(&mut head).map_err(|error| cut(error, number))?;
            self.chunk.resize(self.opener.following_bytes(&head).map_err(changed)?, 0);
            self.input.read_exact(&mut self.chunk).map_err(|error| cut(error, number))?;
            let (text, last) = self.opener.open(&head, &mut self.chunk).map_err(changed)?;
            self.text_bytes = text.len();
            self.read = 0;
            self.ended = last;
            if last && self.input.read(&mut [0])? > 0 {
                return Err(changed(SpillTampered { chunk: number + 1 }));
            }
            Ok(())
        }
    }

    impl<R: Read> Read for SpillReader<R> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            while self.read == self.text_bytes && !self.ended && !out.is_empty() {
                self.text_bytes = 0;
                self.read = 0;
                self.fetch()?;
            }
            let taken = out.len().min(self.text_bytes - self.read);
            out[..taken].copy_from_slice(&self.chunk[self.read..self.read + taken]);
            self.read += taken;
            Ok(taken)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::DangerFixedEntropy;

        fn spilled(key: &SpillKey, text: &[u8]) -> (Vec<u8>, SpillOpener) {
            let (sealer, opener) = key.stream();
            let mut writer = SpillWriter::new(sealer, Vec::new());
            writer.write_all(text).unwrap();
            (writer.finish().unwrap(), opener)
        }

        fn read(opener: SpillOpener, bytes: &[u8]) -> io::Result<Vec<u8>> {
            let mut text = Vec::new();
            SpillReader::new(opener, bytes).read_to_end(&mut text).map(|_| text)
        }

        fn key() -> SpillKey {
            SpillKey::generate(&mut DangerFixedEntropy::seeded(1)).unwrap()
        }

        #[test]
        fn what_was_spilled_comes_back() {
            for bytes in [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES] {
                let text: Vec<u8> = (0..bytes).map(|index| (index % 251) as u8).collect();
                let (sealed, opener) = spilled(&key(), &text);
                assert_eq!(read(opener, &sealed).unwrap(), text);
            }
        }

        #[test]
        fn a_cut_changed_or_foreign_stream_is_an_error() {
            let (key, text) = (key(), std::vec![7; CHUNK_BYTES + 100]);
            let fresh = || spilled(&key, &text);
            let chunk = CHUNK_BYTES + CHUNK_HEAD_BYTES + TAG_BYTES;
            for cut in [0, 1, 4, 100, chunk - 1, chunk, chunk + 3, chunk + 50] {
                let (sealed, opener) = fresh();
                assert!(read(opener, &sealed[..cut]).is_err(), "cut at {cut}");
            }
            for at in [0, 3, 4, 1000, chunk - 1, chunk, chunk + 3, chunk + 10] {
                let (mut sealed, opener) = fresh();
                sealed[at] ^= 0x80;
                assert!(read(opener, &sealed).is_err(), "changed at {at}");
            }
            let (mut sealed, opener) = fresh();
            sealed.push(0);
            assert!(read(opener, &sealed).is_err(), "lengthened");
            let ((one, _), (_, opener)) = (fresh(), fresh());
            assert!(read(opener, &one).is_err());
            let (sealed, opener) = fresh();
            assert!(read(opener, &sealed[chunk..]).is_err(), "first chunk left out");
        }

        #[test]
        fn a_stream_that_was_not_finished_is_an_error() {
            let (sealer, opener) = key().stream();
            let mut out = Vec::new();
            let mut writer = SpillWriter::new(sealer, &mut out);
            writer.write_all(&std::vec![1; 2 * CHUNK_BYTES]).unwrap();
            drop(writer);
            assert!(read(opener, &out).is_err());
        }
    }
}

pub use streams::{SpillReader, SpillWriter};
