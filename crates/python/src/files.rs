//! Files of Python that COPY reads and writes: whatever has `read` or `write`, for bytes or for text.
//!
//! At most [`PIECE`] of a source is asked for at once, and a target gets what one batch of rows makes.

use std::io::{self, BufRead, Read};

use counterfoil::{Connection, CopyOut, Error, Outcome};
use pyo3::exceptions::PyBlockingIOError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::errors::{exception, misuse};
use crate::placeholders::copies_out;
use crate::waiting::{ended, raise};

/// Bytes or letters that are asked for at once.
const PIECE: usize = 256 << 10;

/// A file to read from. Its exceptions are what [`crate::waiting::wait`] answers.
pub struct Source {
    read: Py<PyAny>,
    piece: Vec<u8>,
    place: usize,
}

impl Source {
    /// Reads from `file`.
    pub fn new(file: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self { read: file.getattr("read")?.unbind(), piece: Vec::new(), place: 0 })
    }

    fn next(&self) -> PyResult<Vec<u8>> {
        Python::attach(|py| {
            let piece = self.read.bind(py).call1((PIECE,))?;
            match (piece.cast::<PyBytes>(), piece.cast::<PyString>()) {
                (Ok(bytes), _) => Ok(bytes.as_bytes().to_vec()),
                (_, Ok(text)) => Ok(text.to_str()?.as_bytes().to_vec()),
                _ => {
                    let text = format!("read gave a value of type {}", piece.get_type().qualname()?);
                    Err(exception(py, &misuse(text).advise("open the file for reading bytes or text")))
                }
            }
        })
    }
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(into)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Source {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.place == self.piece.len() {
            self.place = 0;
            self.piece = self.next().map_err(|error| {
                raise(error);
                io::Error::other("the file raised an exception")
            })?;
        }
        Ok(&self.piece[self.place..])
    }

    fn consume(&mut self, count: usize) {
        self.place += count;
    }
}

/// A file to write to.
pub struct Target {
    write: Py<PyAny>,
    is_text: bool,
    is_raw: bool,
}

impl Target {
    /// Writes to `file`: as text, if it is one of Python's text files.
    pub fn new(file: &Bound<'_, PyAny>) -> PyResult<Self> {
        let io = file.py().import("io")?;
        let is_text = file.is_instance(&io.getattr("TextIOBase")?)?;
        let is_raw = file.is_instance(&io.getattr("RawIOBase")?)?;
        Ok(Self { write: file.getattr("write")?.unbind(), is_text, is_raw })
    }

    fn write(&self, piece: &[u8]) -> PyResult<()> {
        Python::attach(|py| {
            let write = self.write.bind(py);
            if self.is_text {
                return write.call1((String::from_utf8_lossy(piece),)).map(drop);
            }
            let mut rest = piece;
            while !rest.is_empty() {
                // A file without a buffer may take less, and nothing where it would have to wait. Another that says nothing took
                // it all.
                let taken = write.call1((PyBytes::new(py, rest),))?;
                if taken.is_none() && self.is_raw {
                    return Err(PyBlockingIOError::new_err("the file takes no more now: open it so that it waits"));
                }
                let taken = if taken.is_none() { rest.len() } else { taken.extract()? };
                rest = rest.get(taken..).unwrap_or_default();
            }
            Ok(())
        })
    }
}

/// Runs `COPY ... TO STDOUT` and answers how many rows it had.
///
/// # Errors
/// [`counterfoil::Kind::Misuse`] for any other statement, of which nothing is done then; the query's.
pub fn copy_out(connection: &mut Connection, sql: &str, target: &Target) -> Result<u64, Error> {
    let other = || misuse("copy_out takes one COPY ... TO STDOUT");
    if !copies_out(sql) {
        return Err(other());
    }
    match connection.run(sql, &[])?.pop() {
        Some(Outcome::CopyOut(text)) => written(text, target),
        _ => Err(other()),
    }
}

fn written(mut text: CopyOut, target: &Target) -> Result<u64, Error> {
    for piece in text.by_ref() {
        target.write(&piece?).map_err(|error| {
            raise(error);
            ended()
        })?;
    }
    Ok(text.rows())
}
