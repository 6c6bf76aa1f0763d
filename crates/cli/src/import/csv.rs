//! CSV as records of fields that know whether they stood in quotes, which is what tells NULL from an empty text.

use std::io::Read;

use counterfoil::Error;

use crate::failure::on_line;

/// A line of fields (or several lines, where a text in quotes spans them).
#[derive(Default)]
pub struct Record {
    bytes: Vec<u8>,
    ends: Vec<(usize, bool)>,
    /// The line it begins on, from 1.
    pub line: u64,
}

impl Record {
    /// Fields there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// A field, and whether it stood in quotes.
    pub fn field(&self, index: usize) -> (&[u8], bool) {
        let start = if index == 0 { 0 } else { self.ends[index - 1].0 };
        let (end, quoted) = self.ends[index];
        (&self.bytes[start..end], quoted)
    }

    /// Whether it is a line with nothing on it.
    pub fn is_blank(&self) -> bool {
        self.ends.len() == 1 && self.bytes.is_empty() && !self.ends[0].1
    }

    fn end_field(&mut self, quoted: bool) {
        self.ends.push((self.bytes.len(), quoted));
    }
}

/// Reads records one after the other.
pub struct Records<R> {
    source: R,
    delimiter: u8,
    buffer: Vec<u8>,
    at: usize,
    line: u64,
    begun: bool,
    ended: bool,
}

const BUFFER_BYTES: usize = 256 * 1024;
/// A record that is larger is taken for a quote that never ends.
const RECORD_BYTES_MAX: usize = 64 * 1024 * 1024;

impl<R: Read> Records<R> {
    pub fn new(source: R, delimiter: u8) -> Self {
        Self { source, delimiter, buffer: Vec::new(), at: 0, line: 1, begun: false, ended: false }
    }

    /// Reads the next record; false at the end.
    pub fn read(&mut self, record: &mut Record) -> Result<bool, Error> {
        record.bytes.clear();
        record.ends.clear();
        if self.at == self.buffer.len() && !self.fill()? {
            return Ok(false);
        }
        record.line = self.line;
        loop {
            let more = match self.peek()? {
                Some(b'"') => self.quoted(record)?,
                _ => self.unquoted(record)?,
            };
            if !more {
                return Ok(true);
            }
        }
    }

    /// A field without quotes; false if it ends the record.
    fn unquoted(&mut self, record: &mut Record) -> Result<bool, Error> {
        loop {
            let rest = &self.buffer[self.at..];
            let end = rest.iter().position(|byte| *byte == self.delimiter || matches!(*byte, b'\n' | b'\r'));
            let length = end.unwrap_or(rest.len());
            record.bytes.extend_from_slice(&rest[..length]);
            self.at += length;
            self.check_size(record)?;
            if end.is_some() || !self.fill()? {
                record.end_field(false);
                return self.separator(record.line);
            }
        }
    }

    /// A field in quotes; false if it ends the record.
    fn quoted(&mut self, record: &mut Record) -> Result<bool, Error> {
        let begins = self.line;
        self.at += 1;
        loop {
            let rest = &self.buffer[self.at..];
            let end = memchr::memchr(b'"', rest);
            let length = end.unwrap_or(rest.len());
            self.line += memchr::memchr_iter(b'\n', &rest[..length]).count() as u64;
            record.bytes.extend_from_slice(&rest[..length]);
            self.at += length;
            self.check_size(record)?;
            if end.is_none() {
                if !self.fill()? {
                    return Err(
                        on_line(begins, "a quote begins here and never ends").advise("close it, or double the quote")
                    );
                }
                continue;
            }
            self.at += 1;
            if self.peek()? == Some(b'"') {
                record.bytes.push(b'"');
                self.at += 1;
            } else {
                record.end_field(true);
                return self.separator(record.line);
            }
        }
    }

    /// What follows a field: true for a delimiter, false for the end of the record.
    fn separator(&mut self, line: u64) -> Result<bool, Error> {
        match self.peek()? {
            None => Ok(false),
            Some(byte) if byte == self.delimiter => {
                self.at += 1;
                Ok(true)
            }
            Some(b'\n') => {
                self.at += 1;
                self.line += 1;
                Ok(false)
            }
            Some(b'\r') => {
                self.at += 1;
                if self.peek()? == Some(b'\n') {
                    self.at += 1;
                }
                self.line += 1;
                Ok(false)
            }
            Some(_) => {
                Err(on_line(line, "there is text behind a closing quote")
                    .advise("double quotes that belong to the text"))
            }
        }
    }

    fn peek(&mut self) -> Result<Option<u8>, Error> {
        if self.at == self.buffer.len() && !self.fill()? {
            return Ok(None);
        }
        Ok(self.buffer.get(self.at).copied())
    }

    /// Reads on; false at the end.
    fn fill(&mut self) -> Result<bool, Error> {
        if self.ended {
            return Ok(false);
        }
        self.buffer.resize(BUFFER_BYTES, 0);
        let mut length = 0;
        // The first piece is filled up, so that a byte order mark is never cut in two.
        while length < if self.begun { 1 } else { 3 } {
            match self.source.read(&mut self.buffer[length..]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(read) => length += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let line = self.line;
                    return Err(on_line(line, format!("the file cannot be read on: {error}"))
                        .advise("check that it is complete"));
                }
            }
        }
        self.buffer.truncate(length);
        self.at = if !self.begun && self.buffer.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
        self.begun = true;
        // A mark that came alone is nothing yet.
        if self.at == self.buffer.len() && !self.ended { self.fill() } else { Ok(self.at < self.buffer.len()) }
    }

    fn check_size(&self, record: &Record) -> Result<(), Error> {
        if record.bytes.len() <= RECORD_BYTES_MAX {
            return Ok(());
        }
        Err(on_line(record.line, format!("the record has more than {RECORD_BYTES_MAX} bytes"))
            .advise("look for a quote that never ends"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out one byte at a time, as a slow pipe would.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = self.0.len().min(buffer.len()).min(1);
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    type Fields = Vec<Vec<(String, bool)>>;

    fn records(text: &[u8]) -> Result<Fields, String> {
        let whole = collect(Records::new(text, b','));
        assert_eq!(whole, collect(Records::new(Slow(text), b',')));
        whole
    }

    fn collect(mut records: Records<impl Read>) -> Result<Fields, String> {
        let mut all = Vec::new();
        let mut record = Record::default();
        while records.read(&mut record).map_err(|error| error.to_string())? {
            let field = |index| {
                let (bytes, quoted) = record.field(index);
                (String::from_utf8_lossy(bytes).into_owned(), quoted)
            };
            all.push((0..record.len()).map(field).collect());
        }
        Ok(all)
    }

    fn plain(fields: &[&str]) -> Vec<(String, bool)> {
        fields.iter().map(|field| (field.to_string(), false)).collect()
    }

    #[test]
    fn lines_end_in_every_way() {
        for text in ["a,b\nc,d\n", "a,b\r\nc,d\r\n", "a,b\rc,d", "\u{feff}a,b\nc,d"] {
            assert_eq!(records(text.as_bytes()), Ok(vec![plain(&["a", "b"]), plain(&["c", "d"])]));
        }
    }

    #[test]
    fn quotes_tell_an_empty_text_from_nothing() {
        let expected = vec![vec![(String::new(), true), (String::new(), false)]];
        assert_eq!(records(b"\"\",\n"), Ok(expected));
        assert_eq!(records(b"\"a\"\"b\",\"c\nd\"\n"), Ok(vec![vec![("a\"b".into(), true), ("c\nd".into(), true)]]));
        assert_eq!(records(b"a\"b,c"), Ok(vec![plain(&["a\"b", "c"])]));
    }

    #[test]
    fn a_blank_line_is_a_record_of_one_empty_field() {
        assert_eq!(records(b"a\n\nb\n"), Ok(vec![plain(&["a"]), plain(&[""]), plain(&["b"])]));
        assert_eq!(records(b""), Ok(vec![]));
    }

    #[test]
    fn what_never_ends_names_its_line() {
        let error = records(b"a\nb,\"c\nd").expect_err("no closing quote");
        assert!(error.starts_with("a quote begins here and never ends (line 2)"), "{error}");
        let error = records(b"a\n\"b\"c\n").expect_err("text behind the quote");
        assert!(error.starts_with("there is text behind a closing quote (line 2)"), "{error}");
    }

    #[test]
    fn noise_never_panics() {
        let letters = b"a,\"\n\r\xEF\xBB\xBF;";
        let mut seed = 7u64;
        for length in 0..2000 {
            let noise: Vec<u8> = (0..length % 17)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    letters[(seed >> 33) as usize % letters.len()]
                })
                .collect();
            let _ = records(&noise);
        }
    }
}
