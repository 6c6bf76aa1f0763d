//! Lines of a stream, in memory that does not grow with it.
//!
//! 1. The buffer holds at most one line and one read: [`LINE_BYTES_MAX`] and 64 KiB.
//! 2. Each byte is looked at twice at most, however small the reads are and whatever the bytes; those of a comment that goes on
//!    in the next read three times.
//! 3. A string that is never closed costs its own line alone: up to where it was searched for its quote, every newline
//!    ends a line.
//! 4. Where the stream ends in an error, the line before it is not given: it may be half a line that reads well.

use std::io::{self, Read};

use memchr::memchr;

use crate::ending::Ending;
use crate::limits::LINE_BYTES_MAX;

const READ_BYTES: usize = 64 * 1024;

/// One line of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A line without its newline, neither empty nor a comment.
    Line {
        /// Its number from 1; of a line whose string holds newlines, that of its first.
        number: u64,
        /// Its bytes.
        text: &'a [u8],
    },
    /// A line longer than [`LINE_BYTES_MAX`], which was passed over.
    TooLong {
        /// Its number from 1.
        number: u64,
    },
}

/// Reads a stream line by line.
pub struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// The bytes of the buffer that were read from the source and not yet given.
    start: usize,
    end: usize,
    ended: bool,
    number: u64,
    /// Up to here a newline ends a line also in a string (3).
    strict_until: usize,
}

/// How one line lies in the buffer.
enum Found {
    Line { bytes: usize },
    TooLong,
    Nothing,
}

impl<R: Read> Lines<R> {
    /// Lines of `source`.
    pub fn new(source: R) -> Lines<R> {
        Lines { source, buffer: Vec::new(), start: 0, end: 0, ended: false, number: 0, strict_until: 0 }
    }

    /// The next line; none at the end.
    ///
    /// # Errors
    /// What the source says; there are no lines after that.
    #[allow(clippy::should_implement_trait, reason = "a line borrows the buffer, which an iterator's items cannot")]
    pub fn next(&mut self) -> io::Result<Option<Piece<'_>>> {
        loop {
            self.pass_over_nothing();
            let number = self.number + 1;
            let bytes = match self.find()? {
                Found::Nothing => return Ok(None),
                Found::TooLong => {
                    self.number = number;
                    self.pass_over()?;
                    return Ok(Some(Piece::TooLong { number }));
                }
                Found::Line { bytes } => bytes,
            };
            let range = self.start..self.start + bytes;
            self.number = number + memchr::memchr_iter(b'\n', &self.buffer[range.clone()]).count() as u64;
            self.start = (range.end + 1).min(self.end); // behind its newline
            let range = trimmed(&self.buffer, range);
            if !range.is_empty() && self.buffer[range.start] != b'#' {
                return Ok(Some(Piece::Line { number, text: &self.buffer[range] }));
            }
        }
    }

    /// Leaves lines behind that say nothing, as far as they were read: a body of newlines alone has 33 million of them, and looking
    /// for the end of each as for that of any other takes fifty times as long.
    fn pass_over_nothing(&mut self) {
        while let Some(first) = self.buffer[self.start..self.end].first() {
            let bytes = match first {
                b'\n' => 1,
                b'\r' if self.buffer[self.start..self.end].get(1) == Some(&b'\n') => 2,
                b'#' => match memchr(b'\n', &self.buffer[self.start..self.end]) {
                    Some(newline) if newline <= LINE_BYTES_MAX => newline + 1,
                    _ => return,
                },
                _ => return,
            };
            self.start += bytes;
            self.number += 1;
        }
    }

    /// Where the line that begins at `start` ends, after as many reads as that takes.
    fn find(&mut self) -> io::Result<Found> {
        if let Some(found) = self.strict() {
            return Ok(found);
        }
        let mut ending = Ending::default();
        let mut looked = 0;
        loop {
            let bytes = &self.buffer[self.start + looked..self.end];
            if let Some(newline) = ending.advance(bytes) {
                let bytes = looked + newline;
                return Ok(if bytes > LINE_BYTES_MAX { self.unclosed(&ending) } else { Found::Line { bytes } });
            }
            looked += bytes.len();
            if self.ended || looked > LINE_BYTES_MAX {
                return Ok(self.unclosed(&ending));
            }
            self.fill()?;
        }
    }

    /// A line in the part that was already searched for a closing quote: the next newline ends it.
    fn strict(&self) -> Option<Found> {
        let searched = self.buffer.get(self.start..self.strict_until)?;
        memchr(b'\n', searched).map(|bytes| Found::Line { bytes })
    }

    /// The bytes up to `end` hold no whole line: they are the last one, or too long, or a string was not closed.
    fn unclosed(&mut self, ending: &Ending) -> Found {
        let bytes = self.end - self.start;
        if ending.in_string() {
            self.strict_until = self.end;
            if let Some(found) = self.strict() {
                return found;
            }
        }
        match bytes {
            0 => Found::Nothing,
            _ if bytes > LINE_BYTES_MAX => Found::TooLong,
            _ => Found::Line { bytes },
        }
    }

    /// Leaves a line that is too long behind, without keeping it.
    fn pass_over(&mut self) -> io::Result<()> {
        loop {
            if let Some(newline) = memchr(b'\n', &self.buffer[self.start..self.end]) {
                self.start += newline + 1;
                return Ok(());
            }
            self.start = self.end;
            if self.ended {
                return Ok(());
            }
            self.fill()?;
        }
    }

    /// One read, behind the bytes that are still wanted.
    fn fill(&mut self) -> io::Result<()> {
        if self.start > 0 && (self.start == self.end || self.buffer.len() - self.end < READ_BYTES) {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.strict_until = self.strict_until.saturating_sub(self.start);
            self.start = 0;
        }
        self.buffer.resize(self.buffer.len().max(self.end + READ_BYTES), 0);
        let read = loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => break read?,
            }
        };
        self.end += read;
        self.ended = read == 0;
        Ok(())
    }
}

/// Without blanks before it and a carriage return behind it.
fn trimmed(buffer: &[u8], range: std::ops::Range<usize>) -> std::ops::Range<usize> {
    let text = &buffer[range.clone()];
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    range.start + blanks..range.start + text.len()
}

#[cfg(test)]
mod tests;
