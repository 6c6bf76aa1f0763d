//! A script that is run while it is read: statements, and behind a COPY ... FROM STDIN its rows.
//!
//! ```text
//! COPY t FROM STDIN;        a statement
//! 1<tab>one                 its rows, up to
//! \.                        this line, or the end
//! SELECT count(*) FROM t;   the next statement
//! ```

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::os::fd::AsFd;
use std::path::Path;

use counterfoil::{Error, Position};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::failure::{Result, input, misuse};
use counterfoil::statements;

const READ_BYTES: usize = 1 << 20;
const PIECE_BYTES: usize = 64 << 10;
/// The line that ends the rows of a COPY.
const END_OF_ROWS: &str = "\\.";

/// A script, and how far it was run.
pub struct Script {
    source: File,
    name: String,
    /// What was read and is text.
    text: String,
    /// The first bytes of a letter that has not been read whole.
    tail: Vec<u8>,
    /// How much of the text was run.
    at: usize,
    /// Where that stands in the whole.
    line: usize,
    column: usize,
    ended: bool,
    /// Nothing was read yet.
    begins: bool,
}

/// What some editors put before a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A statement of a script.
pub struct Step {
    /// Its text.
    pub text: String,
    /// Where it begins.
    pub begins: Position,
}

impl Script {
    /// A file, or standard input for `-`.
    pub fn open(path: &Path) -> Result<Self> {
        let (source, name) = if path.as_os_str() == "-" {
            (io::stdin().as_fd().try_clone_to_owned().map(File::from), "standard input".to_owned())
        } else {
            (File::open(path), path.display().to_string())
        };
        let source = source.map_err(|error| Error::host("read the file", &name, &error))?;
        Ok(Self {
            source,
            name,
            text: String::new(),
            tail: Vec::new(),
            at: 0,
            line: 1,
            column: 1,
            ended: false,
            begins: true,
        })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next statement.
    pub fn next(&mut self) -> Result<Option<Step>> {
        // A statement that does not end yet is looked at again only when there is twice as much of it, or when whoever
        // writes it waits.
        let mut enough = READ_BYTES;
        loop {
            match statements::first(&self.text[self.at..]) {
                Some((statement, taken, complete)) if complete || self.ended => {
                    let inner = Position { line: statement.line as u64, column: Some(statement.column as u64) };
                    let begins = Position { line: self.line as u64, column: Some(self.column as u64) };
                    let step = Step { text: statement.text.to_owned(), begins: inner.within(begins) };
                    self.pass(taken);
                    return Ok(Some(step));
                }
                None if self.ended => return Ok(None),
                _ => self.read_on(enough)?,
            }
            enough = READ_BYTES.max(self.text.len() - self.at);
        }
    }

    /// The rows behind a COPY ... FROM STDIN. They begin on the line after it.
    pub fn rows(&mut self) -> Result<Rows<'_>> {
        let rest = self.rest_of_line()?.len();
        if !self.text[self.at..self.at + rest].trim().is_empty() {
            return Err(misuse("the rows of COPY ... FROM STDIN begin on the line after it").into());
        }
        self.pass(rest);
        let begins = Position::of_line(self.line as u64);
        Ok(Rows { script: self, begins, left: 0, ended: false })
    }

    /// What is left of the line, with its end.
    fn rest_of_line(&mut self) -> Result<&str> {
        let mut searched = 0;
        loop {
            let text = &self.text[self.at..];
            if let Some(end) = text[searched..].find('\n') {
                let end = self.at + searched + end + 1;
                return Ok(&self.text[self.at..end]);
            }
            if self.ended {
                return Ok(&self.text[self.at..]);
            }
            searched = text.len();
            self.read_on(PIECE_BYTES)?;
        }
    }

    fn pass(&mut self, bytes: usize) {
        let passed = &self.text[self.at..self.at + bytes];
        (self.line, self.column) = statements::behind(passed, self.line, self.column);
        self.at += bytes;
    }

    /// Reads on, until enough is there or nothing more is waiting: who writes into a pipe may want an answer first.
    fn read_on(&mut self, enough: usize) -> Result<()> {
        self.text.drain(..self.at);
        self.at = 0;
        let mut bytes = std::mem::take(&mut self.tail);
        let read = read(&mut self.source, &mut bytes, enough);
        self.ended = read.map_err(|error| Error::host("read the file", &self.name, &error))?;
        let valid = match std::str::from_utf8(&bytes) {
            Ok(_) => bytes.len(),
            Err(error) if error.error_len().is_none() && !self.ended => error.valid_up_to(),
            Err(error) => {
                let before = self.text.as_bytes().iter().chain(&bytes[..error.valid_up_to()]);
                let line = self.line + before.filter(|byte| **byte == b'\n').count();
                let error = input("the text is not UTF-8").at(&self.name).at_position(Position::of_line(line as u64));
                return Err(error.advise("convert it first").into());
            }
        };
        let text = String::from_utf8_lossy(&bytes[..valid]);
        let is_first = !text.is_empty() && std::mem::take(&mut self.begins);
        self.text.push_str(text.strip_prefix(BYTE_ORDER_MARK).filter(|_| is_first).unwrap_or(&text));
        self.tail = bytes.split_off(valid);
        Ok(())
    }
}

/// Reads until enough is there or nothing more is waiting. True at the end.
fn read(source: &mut File, bytes: &mut Vec<u8>, enough: usize) -> io::Result<bool> {
    let before = bytes.len();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match source.read(&mut piece) {
            Ok(0) => return Ok(true),
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        let mut waiting = [PollFd::new(source.as_fd(), PollFlags::POLLIN)];
        // Where nobody can tell, reading is as good as asking.
        let waits = poll(&mut waiting, PollTimeout::ZERO).map_or(true, |ready| ready > 0);
        if bytes.len() - before >= enough || !waits {
            return Ok(false);
        }
    }
}

/// The rows of a COPY, line by line.
pub struct Rows<'a> {
    script: &'a mut Script,
    begins: Position,
    /// What is left of a line that was begun.
    left: usize,
    ended: bool,
}

impl Rows<'_> {
    /// The line of the first row.
    pub fn begins(&self) -> Position {
        self.begins
    }
}

impl BufRead for Rows<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 && !self.ended {
            let line = self.script.rest_of_line().map_err(|failure| io::Error::other(format!("{failure:?}")))?;
            self.left = line.len();
            self.ended = line.is_empty();
            if line.trim_end_matches(['\r', '\n']) == END_OF_ROWS {
                self.ended = true;
                self.script.pass(std::mem::take(&mut self.left));
            }
        }
        Ok(&self.script.text.as_bytes()[self.script.at..self.script.at + self.left])
    }

    fn consume(&mut self, bytes: usize) {
        self.script.pass(bytes);
        self.left -= bytes;
    }
}

impl Read for Rows<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let line = self.fill_buf()?;
        let bytes = line.len().min(buffer.len());
        buffer[..bytes].copy_from_slice(&line[..bytes]);
        self.consume(bytes);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn script(text: &[u8]) -> Script {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(text).expect("written");
        Script::open(file.path()).expect("opened")
    }

    #[test]
    fn rows_stand_between_statements() {
        let mut script = script(b"copy t from stdin;\n1;\n\\N\n\\.\nselect 1;\ncopy t from stdin;\r\n2");
        assert_eq!(script.next().unwrap().unwrap().text, "copy t from stdin");
        let mut rows = String::new();
        script.rows().unwrap().read_to_string(&mut rows).unwrap();
        assert_eq!(rows, "1;\n\\N\n");
        let step = script.next().unwrap().unwrap();
        assert_eq!((step.text.as_str(), step.begins.line), ("select 1", 5));
        assert_eq!(script.next().unwrap().unwrap().begins.line, 6);
        rows.clear();
        script.rows().unwrap().read_to_string(&mut rows).unwrap();
        assert_eq!(rows, "2");
        assert!(script.next().unwrap().is_none());
    }

    #[test]
    fn statements_know_the_letter_where_they_begin() {
        let mut script = script("select 'é'; two\n; three".as_bytes());
        let begins: Vec<String> =
            std::iter::from_fn(|| script.next().unwrap().map(|step| step.begins.to_string())).collect();
        assert_eq!(begins, ["line 1, column 1", "line 1, column 13", "line 2, column 3"]);
    }

    #[test]
    fn rows_do_not_begin_on_the_line_of_the_statement() {
        let mut script = script(b"copy t from stdin; select 1;\n");
        script.next().unwrap();
        assert!(script.rows().is_err());
    }

    #[test]
    fn what_is_no_text_is_named_by_its_line() {
        let Err(failure) = script(b"select 1;\nselect '\xff';").next() else { panic!("it is not text") };
        assert!(format!("{failure:?}").contains("line 2"));
    }
}
